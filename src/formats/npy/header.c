/* formats/npy/header.c - the header: a dict of Python with three keys.
 *
 * Only what NumPy writes is understood, and nothing is evaluated: strings
 * without escapes, True and False, a tuple of decimal numbers. */
#include "formats/npy/npy.h"
#include "base/error.h"
#include "store/dims.h"
#include "store/record.h"
#include "tensor/array.h"

#include <string.h>

enum { DESCR, FORTRAN, SHAPE, KEYS };
static const char *const keys[KEYS] = { "descr", "fortran_order", "shape" };

/* A text being parsed.  A function that returns false has filled `err`. */
typedef struct parser {
    const char    *text;
    size_t         pos, end;
    uint64_t       at;          /* of the text in the file, or TN_NO_OFFSET */
    unsigned       major;
    tn_arena      *arena;
    tn_npy_header *h;
    tn_error      *err;
} parser;

static uint64_t byte_at(uint64_t base, size_t pos)
{
    return base == TN_NO_OFFSET ? TN_NO_OFFSET : base + pos;
}

/* --- the bytes before the text --- */

tn_status tn_npy_header_size(const uint8_t *head, size_t n, uint64_t at, size_t *size, tn_error *err)
{
    if (n < TN_NPY_SHORTEST)
        return tn_fail_at(err, TN_ERR_TRUNCATED, at, "expected at least %d bytes of header but found %zu",
                          TN_NPY_SHORTEST, n);
    if (memcmp(head, TN_NPY_MAGIC, TN_NPY_MAGIC_BYTES) != 0)
        return tn_fail_at(err, TN_ERR_CORRUPT, at, "expected the magic \"\\x93NUMPY\" but found %s",
                          tn_quote((const char *)head, TN_NPY_MAGIC_BYTES).text);
    unsigned major = head[6], minor = head[7];
    if (major < 1 || major > 3 || minor != 0)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, byte_at(at, 6),
                          "expected version 1.0, 2.0 or 3.0 but found %u.%u", major, minor);
    size_t prefix = major == 1 ? TN_NPY_SHORTEST : TN_NPY_PREFIX_MAX;
    if (n < prefix)
        return tn_fail_at(err, TN_ERR_TRUNCATED, at, "expected at least %zu bytes of header but found %zu",
                          prefix, n);
    uint64_t length = 0;
    for (size_t i = prefix; i-- > 8;)
        length = length << 8 | head[i];
    if (length > TN_NPY_HEADER_MAX)
        return tn_fail_at(err, TN_ERR_LIMIT, byte_at(at, 8),
                          "expected a header of at most %u bytes but found %llu", TN_NPY_HEADER_MAX,
                          (unsigned long long)length);
    *size = prefix + (size_t)length;
    return TN_OK;
}

/* --- words --- */

static bool refuse(parser *p, const char *expected)
{
    size_t left = p->end - p->pos;
    tn_quoted found = tn_quote(p->text + p->pos, left < 16 ? left : 16);
    tn_fail_at(p->err, TN_ERR_CORRUPT, byte_at(p->at, p->pos), "the header: expected %s but found %s",
               expected, left ? found.text : "its end");
    return false;
}

static bool no_memory(parser *p)
{
    tn_fail_nomem(p->err);
    return false;
}

static void skip_space(parser *p)
{
    while (p->pos < p->end && tn_is_space(p->text[p->pos]))
        p->pos++;
}

/* Takes the next character if it is this one. */
static bool accept(parser *p, char c)
{
    skip_space(p);
    if (p->pos == p->end || p->text[p->pos] != c)
        return false;
    p->pos++;
    return true;
}

static bool next_is_one_of(parser *p, const char *set)
{
    skip_space(p);
    return p->pos < p->end && p->text[p->pos] && strchr(set, p->text[p->pos]);
}

static bool take_string(parser *p, const char *expected, tn_text *out)
{
    if (!next_is_one_of(p, "'\""))
        return refuse(p, expected);
    char quote = p->text[p->pos++];
    size_t begin = p->pos;
    for (; p->pos < p->end && p->text[p->pos] != quote; p->pos++)
        if (p->text[p->pos] < ' ' || p->text[p->pos] > '~' || p->text[p->pos] == '\\')
            return refuse(p, "a string of plain characters");
    if (p->pos == p->end)
        return refuse(p, "the end of a string");
    *out = (tn_text){ p->text + begin, p->pos++ - begin };
    return true;
}

static bool take_word(parser *p, const char *word)
{
    size_t n = strlen(word);
    if (p->end - p->pos < n || memcmp(p->text + p->pos, word, n) != 0)
        return false;
    p->pos += n;
    return true;
}

static bool take_bool(parser *p, bool *value)
{
    skip_space(p);
    *value = take_word(p, "True");
    return *value || take_word(p, "False") || refuse(p, "True or False");
}

/* Python 2 wrote an L behind long numbers, and read numbers with a leading 0 as octal. */
static bool take_number(parser *p, uint64_t *number)
{
    size_t begin = p->pos;
    bool fits = true;
    *number = 0;
    for (; p->pos < p->end && tn_is_digit(p->text[p->pos]); p->pos++)
        fits = fits && tn_add_digit(number, p->text[p->pos]) && *number <= INT64_MAX;
    size_t digits = p->pos - begin;
    bool octal = digits > 1 && p->text[begin] == '0';
    if (octal || !fits)
        p->pos = begin;
    if (octal)
        return refuse(p, "a dimension without leading zeros");
    if (!digits || !fits)
        return refuse(p, fits ? "a dimension" : "a dimension below 2^63");
    if (p->major < 3 && p->pos < p->end && p->text[p->pos] == 'L')
        p->pos++;
    return true;
}

/* --- values --- */

static bool take_shape(parser *p)
{
    tn_dims dims = { .rank = 0 };
    tn_error why;
    bool comma = true;          /* before the next dimension */
    if (!accept(p, '('))
        return refuse(p, "a tuple of dimensions");
    while (!accept(p, ')')) {
        uint64_t dim;
        if (!comma)
            return refuse(p, "a comma or the end of the tuple");
        if (!take_number(p, &dim))
            return false;
        if (tn_dims_add(&dims, dim, &why)) {
            tn_fail_at(p->err, why.status, byte_at(p->at, p->pos), "the header: %s", why.text);
            return false;
        }
        comma = accept(p, ',');
    }
    if (dims.rank == 1 && !comma)
        return refuse(p, "a comma behind a single dimension");
    p->h->rank = dims.rank;
    p->h->shape = tn_dims_keep(&dims, p->arena, NULL, 0);
    return p->h->shape || no_memory(p);
}

/* The type that ml_dtypes registers with NumPy under this name.  Its elements of
 * less than 8 bits take a byte each, so they are none of ours. */
static tn_dtype find_name(const char *descr)
{
    for (unsigned i = 1; i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *info = tn_dtype_get((tn_dtype)i);
        if (info && info->numpy && info->bits >= 8 && strcmp(info->numpy, descr) == 0)
            return info->dtype;
    }
    return TN_UNKNOWN;
}

/* NumPy has no codes for the types of ml_dtypes and writes their kind and size.
 * Two of them are unique: bfloat16 is the only one of kind V and two bytes
 * (NumPy's own void type has '|' in front), e5m2 the only one of kind f and one
 * byte. */
static tn_dtype find_type(const char *descr, tn_byte_order *order)
{
    bool mark = strchr("<>=|", descr[0]) && descr[0];
    char code[8] = "=";
    *order = TN_HOST_ORDER;
    if (descr[0] == '<' || descr[0] == '>')
        *order = descr[0] == '<' ? TN_LITTLE_ENDIAN : TN_BIG_ENDIAN;
    if (mark && descr[0] != '|' && strcmp(descr + 1, "V2") == 0)
        return TN_BFLOAT16;
    if (mark && strcmp(descr + 1, "f1") == 0)
        return TN_FLOAT8_E5M2;
    if (mark)
        return tn_dtype_parse(descr);
    tn_dtype named = find_name(descr);
    if (named != TN_UNKNOWN || strlen(descr) > sizeof code - 2)
        return named;
    strcpy(code + 1, descr);
    return tn_dtype_parse(code);
}

/* Keeps the text of a type for messages and listings; a long one is cut. */
static bool keep_type(parser *p, tn_text text)
{
    bool cut = text.len > TN_NPY_TYPE_MAX;
    char shown[TN_NPY_TYPE_MAX + sizeof "..."];
    size_t n = cut ? TN_NPY_TYPE_MAX : text.len;
    for (size_t i = 0; i < n; i++)
        shown[i] = text.ptr[i] < ' ' || text.ptr[i] > '~' ? '?' : text.ptr[i];
    strcpy(shown + n, cut ? "..." : "");
    p->h->type = tn_arena_text(p->arena, shown, strlen(shown));
    return p->h->type || no_memory(p);
}

/* Skips a structured type: a list or tuple, up to its closing bracket. */
static bool take_structured(parser *p)
{
    size_t begin = p->pos, depth = 0;
    char quote = 0;
    do {
        char c = p->pos < p->end ? p->text[p->pos] : 0;
        if (!c)
            return refuse(p, "the end of a type");
        if (quote && c == '\\' && p->end - p->pos > 1)
            p->pos++;
        else if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (strchr("[({", c))
            depth++;
        else if (strchr("])}", c))
            depth--;
        p->pos++;
    } while (depth);
    p->h->never = "an array of records (a structured type) is not read: save each field as an array of its "
                  "own";
    return keep_type(p, (tn_text){ p->text + begin, p->pos - begin });
}

static bool take_descr(parser *p)
{
    tn_text descr;
    bool structured = next_is_one_of(p, "[({");
    p->h->type_at = byte_at(p->at, p->pos);
    if (structured)
        return take_structured(p);
    if (!take_string(p, "a type", &descr) || !keep_type(p, descr))
        return false;
    const char *type = p->h->type;
    if (strcmp(type, "O") == 0 || strcmp(type, "|O") == 0)
        p->h->never = "it is an object array: Python objects in a pickle, which is never loaded";
    p->h->dtype = find_type(type, &p->h->order);
    return true;
}

/* --- the dict --- */

static bool take_item(parser *p, unsigned *seen)
{
    static const char expected[] = "one of the keys descr, fortran_order and shape, each once,";
    tn_text text;
    unsigned key = 0;
    skip_space(p);
    size_t begin = p->pos;
    if (!take_string(p, expected, &text))
        return false;
    while (key < KEYS && !tn_text_is(text, keys[key]))
        key++;
    if (key == KEYS || *seen & 1u << key) {
        p->pos = begin;
        return refuse(p, expected);
    }
    *seen |= 1u << key;
    if (!accept(p, ':'))
        return refuse(p, "a colon");
    switch (key) {
    case DESCR: return take_descr(p);
    case SHAPE: return take_shape(p);
    default:    return take_bool(p, &p->h->fortran);
    }
}

static bool take_dict(parser *p)
{
    unsigned seen = 0;
    bool comma = true;
    if (!accept(p, '{'))
        return refuse(p, "a dict");
    while (!accept(p, '}')) {
        if (!comma)
            return refuse(p, "a comma or the end of the dict");
        if (!take_item(p, &seen))
            return false;
        comma = accept(p, ',');
    }
    return seen == (1u << KEYS) - 1 ||
           refuse(p, "a dict with the keys descr, fortran_order and shape before this");
}

/* --- the comment --- */

static tn_status take_note_item(const tn_meta *item, tn_arena *arena, tn_npy_header *h, tn_error *err)
{
    tn_text cbor = { (const char *)item->cbor, item->cbor_size };
    if (strcmp(item->key, TN_NPY_NAME) == 0)
        h->name = item->text;
    else if (strcmp(item->key, TN_NPY_RECORD) == 0)
        h->record = cbor;
    else if (strcmp(item->key, TN_NPY_META) == 0)
        return tn_meta_parse_map(cbor, TN_NO_OFFSET, arena, &h->meta, &h->nmeta, err);
    else if (strcmp(item->key, TN_NPY_FILE_META) == 0)
        return tn_meta_parse_map(cbor, TN_NO_OFFSET, arena, &h->file_meta, &h->nfile_meta, err);
    return TN_OK;
}

tn_status tn_npy_take_note(tn_text json, tn_arena *arena, tn_npy_header *h, tn_error *err)
{
    const tn_meta *items;
    size_t count = 0;
    TN_TRY(tn_meta_read_json(json, arena, &items, &count, err));
    for (size_t i = 0; i < count; i++)
        TN_TRY(take_note_item(&items[i], arena, h, err));
    return TN_OK;
}

/* Up to the end of the line: JSON, and the spaces that fill the header. */
static bool take_comment(parser *p)
{
    size_t begin = p->pos;
    const char *json = p->text + begin, *line = memchr(json, '\n', p->end - begin);
    size_t n = line ? (size_t)(line - json) : p->end - begin;
    tn_error why;
    tn_status status = tn_npy_take_note((tn_text){ json, n }, p->arena, p->h, &why);
    if (status) {
        tn_fail_at(p->err, status, byte_at(p->at, begin), "the comment of the header: %s", why.text);
        return false;
    }
    p->h->comment = n;
    p->pos = begin + n;
    return true;
}

tn_status tn_npy_parse(const uint8_t *bytes, size_t size, uint64_t at, tn_arena *arena, tn_npy_header *h,
                       tn_error *err)
{
    size_t prefix = bytes[6] == 1 ? TN_NPY_SHORTEST : TN_NPY_PREFIX_MAX;
    parser p = { .text = (const char *)bytes + prefix, .end = size - prefix, .at = byte_at(at, prefix),
                 .major = bytes[6], .arena = arena, .h = h, .err = err };
    *h = (tn_npy_header){ .size = size };
    if (!take_dict(&p))
        return err->status;
    skip_space(&p);
    if (take_word(&p, TN_NPY_COMMENT) && !take_comment(&p))
        return err->status;
    skip_space(&p);
    return p.pos == p.end || refuse(&p, "nothing behind the dict") ? TN_OK : err->status;
}
