/* bytes/json.c - the JSON reader and writer.
 *
 * After a failure the text ends at the current position, so the hot paths need not test `status`. */
#include "bytes/json.h"

#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const tn_text nothing = { "", 0 };

/* --- failing --- */

bool tn_json_reject(tn_json *j, tn_status status, const char *format, ...)
{
    if (j->status)
        return false;           /* the first failure counts */
    j->status = status;
    j->at = j->pos;
    j->end = j->pos;
    va_list args;
    va_start(args, format);
    vsnprintf(j->why, sizeof j->why, format, args);
    va_end(args);
    j->why[tn_utf8_valid(j->why, strlen(j->why))] = '\0';      /* a cut must not leave half a character */
    return false;
}

tn_status tn_json_fail(const tn_json *j, uint64_t offset, tn_error *err)
{
    if (j->status == TN_ERR_NOMEM)
        return tn_fail_nomem(err);
    return tn_fail_at(err, j->status, offset == TN_NO_OFFSET ? offset : offset + j->at, "%s", j->why);
}

static tn_json_type type_of(char c)
{
    switch (c) {
    case '{': return TN_JSON_OBJECT;
    case '[': return TN_JSON_ARRAY;
    case '"': return TN_JSON_STRING;
    case 't': return TN_JSON_TRUE;
    case 'f': return TN_JSON_FALSE;
    case 'n': return TN_JSON_NULL;
    default:  return c == '-' || (c >= '0' && c <= '9') ? TN_JSON_NUMBER : TN_JSON_END;
    }
}

/* Fails because something else than `expected` is at pos. */
static bool unexpected(tn_json *j, const char *expected)
{
    static const char *const names[] = {
        [TN_JSON_OBJECT] = "an object", [TN_JSON_ARRAY] = "an array", [TN_JSON_STRING] = "a string",
        [TN_JSON_NUMBER] = "a number", [TN_JSON_TRUE] = "true", [TN_JSON_FALSE] = "false",
        [TN_JSON_NULL] = "null"
    };
    if (j->pos == j->end)
        return tn_json_reject(j, TN_ERR_TRUNCATED, "expected %s but the text ends", expected);
    unsigned char c = (unsigned char)j->text[j->pos];
    tn_json_type type = type_of((char)c);
    if (type != TN_JSON_END)
        return tn_json_reject(j, TN_ERR_CORRUPT, "expected %s but found %s", expected, names[type]);
    if (c > 0x20 && c < 0x7f)
        return tn_json_reject(j, TN_ERR_CORRUPT, "expected %s but found '%c'", expected, c);
    return tn_json_reject(j, TN_ERR_CORRUPT, "expected %s but found byte 0x%02X", expected, c);
}

void tn_json_unexpected(tn_json *j, const char *expected)
{
    tn_json_peek(j);
    unexpected(j, expected);
}

/* The same for a single character, not a value. */
static bool unexpected_char(tn_json *j, size_t pos, const char *expected)
{
    j->pos = pos;
    if (pos < j->end && j->text[pos] > 0x20 && j->text[pos] < 0x7f)
        return tn_json_reject(j, TN_ERR_CORRUPT, "expected %s but found '%c'", expected, j->text[pos]);
    return unexpected(j, expected);
}

/* --- positions --- */

static bool text_ends_inside_character(const uint8_t *s, size_t left)
{
    if (s[0] < 0xc2 || s[0] > 0xf4 || left >= tn_utf8_length(s[0]))
        return false;
    for (size_t i = 1; i < left; i++)
        if ((s[i] & 0xc0) != 0x80)
            return false;
    return true;
}

void tn_json_init(tn_json *j, const char *text, size_t n, tn_arena *arena)
{
    *j = (tn_json){ .text = n ? text : "", .end = n, .arena = arena, .first = true };
    size_t valid = tn_utf8_valid(j->text, n);
    if (valid == n)
        return;
    const uint8_t *bad = (const uint8_t *)j->text + valid;
    j->pos = valid;
    if (text_ends_inside_character(bad, n - valid))
        tn_json_reject(j, TN_ERR_TRUNCATED, "the text ends inside a UTF-8 character");
    else
        tn_json_reject(j, TN_ERR_CORRUPT, "expected UTF-8 but found byte 0x%02X", bad[0]);
}

static inline void skip_space(tn_json *j)
{
    while (j->pos < j->end) {
        char c = j->text[j->pos];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            break;
        j->pos++;
    }
}

/* Takes `c` if it is the next thing that is not white space. */
static inline bool take(tn_json *j, char c)
{
    skip_space(j);
    if (j->pos == j->end || j->text[j->pos] != c)
        return false;
    j->pos++;
    return true;
}

tn_json_type tn_json_peek(tn_json *j)
{
    skip_space(j);
    if (j->pos == j->end)
        return TN_JSON_END;
    tn_json_type type = type_of(j->text[j->pos]);
    if (type == TN_JSON_END)
        unexpected(j, "a value");
    return type;
}

bool tn_json_open_slow(tn_json *j, char bracket)
{
    if (!take(j, bracket))
        return unexpected(j, bracket == '{' ? "an object" : "an array");
    if (j->depth == TN_JSON_MAX_DEPTH) {
        j->pos--;
        return tn_json_reject(j, TN_ERR_LIMIT, "expected at most %d nested objects and arrays but found more",
                              TN_JSON_MAX_DEPTH);
    }
    j->depth++;
    j->first = true;
    return true;
}

bool tn_json_next_slow(tn_json *j, char bracket)
{
    if (take(j, bracket)) {
        j->depth--;
        j->first = false;
        return false;
    }
    bool follows = j->first ? j->pos < j->end : take(j, ',');
    j->first = false;
    return follows || unexpected_char(j, j->pos, bracket == '}' ? "',' or '}'" : "',' or ']'");
}

bool tn_json_done(tn_json *j)
{
    skip_space(j);
    if (j->pos < j->end)
        unexpected_char(j, j->pos, "the end of the text");
    return !j->status;
}

/* --- strings --- */

/* Eight bytes with the first one lowest. */
static inline uint64_t load8(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Eight bytes at a time: a byte below n has its high bit set in v - n*ones, unless it had it before.  A
 * borrow affects only bytes above the first hit. */
size_t tn_json_plain_end(const char *text, size_t p, size_t end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    for (; end - p >= 8; p += 8) {
        uint64_t v = load8(text + p);
        uint64_t quote = (v ^ '"' * ones) - ones, backslash = (v ^ '\\' * ones) - ones,
                 control = v - 0x20 * ones;
        uint64_t hits = (quote | backslash | control) & ~v & 0x80 * ones;
        if (hits)
            return p + ((size_t)__builtin_ctzll(hits) >> 3);
    }
    while (p < end && text[p] != '"' && text[p] != '\\' && (unsigned char)text[p] >= 0x20)
        p++;
    return p;
}

/* Four hexadecimal digits at p; UINT32_MAX after a failure. */
static uint32_t take_hex4(tn_json *j, size_t p)
{
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++, p++) {
        int digit = p < j->end ? tn_hex_digit(j->text[p]) : -1;
        if (digit < 0) {
            unexpected_char(j, p, "four hexadecimal digits after \\u");
            return UINT32_MAX;
        }
        value = value << 4 | (uint32_t)digit;
    }
    return value;
}

/* Reads \uXXXX at p, or a surrogate pair: its length, or 0 after a failure. */
static size_t take_unicode_escape(tn_json *j, size_t p, uint32_t *code)
{
    uint32_t high = take_hex4(j, p + 2);
    if (high == UINT32_MAX)
        return 0;
    *code = high;
    if (high < 0xd800 || high > 0xdfff)
        return 6;
    if (high >= 0xdc00) {
        j->pos = p;
        return tn_json_reject(j, TN_ERR_CORRUPT, "expected a character but found the lone surrogate \\u%04X",
                              high);
    }
    for (size_t i = 0; i < 2; i++) {
        if (j->end - p <= 6 + i || j->text[p + 6 + i] != "\\u"[i])
            return unexpected_char(j, p + 6 + i, "the second half of a surrogate pair");
    }
    uint32_t low = take_hex4(j, p + 8);
    if (low == UINT32_MAX)
        return 0;
    if (low < 0xdc00 || low > 0xdfff) {
        j->pos = p;
        return tn_json_reject(j, TN_ERR_CORRUPT, "expected a low surrogate after \\u%04X but found \\u%04X",
                              high, low);
    }
    *code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    return 12;
}

/* Reads the escape whose backslash is at p: its length in the text, or 0 after a failure. */
static size_t take_escape(tn_json *j, size_t p, uint32_t *code)
{
    char c = j->end - p > 1 ? j->text[p + 1] : '\0';
    switch (c) {
    case '"': case '\\': case '/': *code = (uint32_t)c; return 2;
    case 'b': *code = '\b'; return 2;
    case 'f': *code = '\f'; return 2;
    case 'n': *code = '\n'; return 2;
    case 'r': *code = '\r'; return 2;
    case 't': *code = '\t'; return 2;
    case 'u': return take_unicode_escape(j, p, code);
    default:
        return unexpected_char(j, p + 1, "one of \"\\/bfnrtu after a backslash");
    }
}

static size_t put_utf8(char *out, uint32_t code)
{
    static const uint8_t marks[] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };  /* of the first byte, by length */
    size_t n = (size_t)1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(marks[n] | code);
    return n;
}

/* Decodes a string that check_string() accepted.  No escape is shorter than its character. */
static tn_text unescape(tn_json *j, size_t p, size_t end)
{
    char *out = tn_arena_alloc(j->arena, end - p);
    if (!out) {
        tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
        return nothing;
    }
    size_t n = 0;
    while (p < end) {
        size_t plain = tn_json_plain_end(j->text, p, end);
        memcpy(out + n, j->text + p, plain - p);
        n += plain - p;
        p = plain;
        if (p < end) {
            uint32_t code = 0;
            p += take_escape(j, p, &code);
            n += put_utf8(out + n, code);
        }
    }
    return (tn_text){ out, n };
}

/* Takes a string and checks every escape; sets where its text begins and its closing quote. */
static bool check_string(tn_json *j, size_t *begin, size_t *close)
{
    if (!take(j, '"'))
        return unexpected(j, "a string");
    *begin = j->pos;
    for (;;) {
        j->pos = tn_json_plain_end(j->text, j->pos, j->end);
        if (j->pos == j->end)
            return tn_json_reject(j, TN_ERR_TRUNCATED, "the text ends inside a string");
        char c = j->text[j->pos];
        if (c == '"') {
            *close = j->pos++;
            return true;
        }
        if (c != '\\')
            return tn_json_reject(j, TN_ERR_CORRUPT,
                                  "expected control characters in strings to be escaped but found 0x%02X",
                                  (unsigned char)c);
        uint32_t code;
        size_t length = take_escape(j, j->pos, &code);
        if (!length)
            return false;
        j->pos += length;
    }
}

tn_text tn_json_string_slow(tn_json *j)
{
    size_t begin, close;
    if (!check_string(j, &begin, &close))
        return nothing;
    if (memchr(j->text + begin, '\\', close - begin))
        return unescape(j, begin, close);
    return (tn_text){ j->text + begin, close - begin };
}

const char *tn_json_keep(tn_json *j, tn_text text)
{
    if (tn_text_has_nul(text))
        tn_json_reject(j, TN_ERR_CORRUPT, "expected text without NUL characters");
    if (j->status)
        return NULL;
    const char *copy = tn_arena_text(j->arena, text.ptr, text.len);
    if (!copy)
        tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
    return copy;
}

bool tn_json_colon_slow(tn_json *j)
{
    return take(j, ':') || unexpected_char(j, j->pos, "':' after a key");
}

/* --- numbers --- */

static inline size_t digits_end(const tn_json *j, size_t p)
{
    while (p < j->end && j->text[p] >= '0' && j->text[p] <= '9')
        p++;
    return p;
}

/* One or more digits at p: where they end, or 0 after a failure. */
static size_t take_digits(tn_json *j, size_t p)
{
    size_t end = digits_end(j, p);
    return end > p ? end : unexpected_char(j, p, "a digit");
}

/* How many characters of a number a message shows. */
static int shown(size_t n)
{
    return n < 40 ? (int)n : 40;
}

/* The end of the number at pos, or 0 after a failure.  Does not take it. */
static size_t check_number(tn_json *j, bool *integer)
{
    skip_space(j);
    if (j->pos == j->end || type_of(j->text[j->pos]) != TN_JSON_NUMBER)
        return unexpected(j, "a number");
    size_t begin = j->pos + (j->text[j->pos] == '-'), p = take_digits(j, begin);
    if (p && j->text[begin] == '0' && p - begin > 1)
        return tn_json_reject(j, TN_ERR_CORRUPT, "expected a number without leading zeros but found %.*s",
                              shown(p - j->pos), j->text + j->pos);
    *integer = true;
    if (p && p < j->end && j->text[p] == '.') {
        *integer = false;
        p = take_digits(j, p + 1);
    }
    if (p && p < j->end && (j->text[p] == 'e' || j->text[p] == 'E')) {
        *integer = false;
        p++;
        if (p < j->end && (j->text[p] == '+' || j->text[p] == '-'))
            p++;
        p = take_digits(j, p);
    }
    return p;
}

tn_text tn_json_number(tn_json *j)
{
    bool integer;
    size_t end = check_number(j, &integer);
    if (!end)
        return nothing;
    tn_text number = { j->text + j->pos, end - j->pos };
    j->pos = end;
    return number;
}

/* Takes an integer between -lowest and highest; its sign and magnitude. */
static uint64_t take_integer(tn_json *j, uint64_t lowest, uint64_t highest, bool *negative)
{
    bool integer;
    size_t end = check_number(j, &integer);
    if (!end)
        return 0;
    const char *number = j->text + j->pos;
    size_t n = end - j->pos;
    *negative = number[0] == '-';
    if (!integer || (*negative && (lowest == 0 || number[1] == '0')))
        return tn_json_reject(j, TN_ERR_CORRUPT, "expected %s but found %.*s",
                              lowest ? "an integer" : "an integer that is not negative", shown(n), number);
    uint64_t value = 0, limit = *negative ? lowest : highest;
    for (size_t i = *negative; i < n; i++) {
        uint64_t digit = (uint64_t)(number[i] - '0');
        if (value > limit / 10 || digit > limit - value * 10)
            return tn_json_reject(j, TN_ERR_LIMIT, "expected an integer of 64 bits but found %.*s", shown(n),
                                  number);
        value = value * 10 + digit;
    }
    j->pos = end;
    return value;
}

uint64_t tn_json_u64_slow(tn_json *j)
{
    bool negative;
    return take_integer(j, 0, UINT64_MAX, &negative);
}

int64_t tn_json_i64(tn_json *j)
{
    bool negative = false;
    uint64_t magnitude = take_integer(j, UINT64_C(1) << 63, INT64_MAX, &negative);
    return negative && magnitude ? -(int64_t)(magnitude - 1) - 1 : (int64_t)magnitude;
}

/* strtod() and printf() use the thread's locale, where the point may be a comma.  uselocale() changes it for
 * this thread and for both functions. */
typedef struct c_locale {
    locale_t c, before;
} c_locale;

static bool c_locale_enter(c_locale *l)
{
    l->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!l->c)
        return false;
    l->before = uselocale(l->c);
    return true;
}

static void c_locale_leave(c_locale *l)
{
    uselocale(l->before);
    freelocale(l->c);
}

static double nearest(const char *text)
{
    int before = fegetround();
    fesetround(FE_TONEAREST);
    double x = strtod(text, NULL);
    fesetround(before);
    return x;
}

/* A number's text as the nearest double; false when memory is out. */
static bool to_double(tn_text number, double *value)
{
    char small[64], *copy = small;      /* strtod wants a NUL, and the input has none */
    if (number.len >= sizeof small && !(copy = malloc(number.len + 1)))
        return false;
    memcpy(copy, number.ptr, number.len);
    copy[number.len] = '\0';
    c_locale l;
    bool entered = c_locale_enter(&l);
    if (entered) {
        *value = nearest(copy);
        c_locale_leave(&l);
    }
    if (copy != small)
        free(copy);
    return entered;
}

double tn_json_f64(tn_json *j)
{
    bool integer;
    size_t end = check_number(j, &integer);
    if (!end)
        return 0;
    tn_text number = { j->text + j->pos, end - j->pos };
    double value = 0;
    if (!to_double(number, &value))
        tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
    else if (isinf(value))
        tn_json_reject(j, TN_ERR_LIMIT, "expected a number that fits a double but found %.*s",
                       shown(number.len), number.ptr);
    if (j->status)
        return 0;
    j->pos = end;
    return value;
}

/* --- words and whole values --- */

static bool take_word(tn_json *j, const char *word, const char *expected)
{
    skip_space(j);
    if (j->pos == j->end || j->text[j->pos] != word[0])
        return unexpected(j, expected);
    size_t n = 1;
    while (word[n] && n < j->end - j->pos && j->text[j->pos + n] == word[n])
        n++;
    if (word[n])
        return unexpected_char(j, j->pos + n, word);
    j->pos += n;
    return true;
}

bool tn_json_bool(tn_json *j)
{
    skip_space(j);
    if (j->pos < j->end && j->text[j->pos] == 'f') {
        take_word(j, "false", "true or false");
        return false;
    }
    return take_word(j, "true", "true or false");
}

void tn_json_null(tn_json *j)
{
    take_word(j, "null", "null");
}

/* Checks a string without decoding it. */
static inline void skip_string(tn_json *j)
{
    size_t begin = j->pos + tn_json_is_next(j, '"'), close = tn_json_plain_end(j->text, begin, j->end);
    if (begin > j->pos && close < j->end && j->text[close] == '"')
        j->pos = close + 1;
    else
        check_string(j, &begin, &close);
}

/* Takes a value, or the opening bracket of one. */
static void take_head(tn_json *j, bool is_object[])
{
    tn_json_type type = tn_json_peek(j);
    is_object[j->depth] = type == TN_JSON_OBJECT;
    switch (type) {
    case TN_JSON_OBJECT: tn_json_object(j); break;
    case TN_JSON_ARRAY:  tn_json_array(j); break;
    case TN_JSON_STRING: skip_string(j); break;
    case TN_JSON_NUMBER: tn_json_number(j); break;
    case TN_JSON_TRUE:
    case TN_JSON_FALSE:  tn_json_bool(j); break;
    case TN_JSON_NULL:   tn_json_null(j); break;
    default:             unexpected(j, "a value"); break;
    }
}

/* Steps to the next value in an object or array opened by tn_json_skip(). */
static bool skip_to_value(tn_json *j, bool in_object)
{
    if (!in_object)
        return tn_json_item(j);
    if (!tn_json_next(j, '}'))
        return false;
    skip_string(j);
    return tn_json_colon_slow(j);
}

void tn_json_skip(tn_json *j)
{
    bool is_object[TN_JSON_MAX_DEPTH + 1];      /* of each container opened here, by depth */
    unsigned outside = j->depth;
    take_head(j, is_object);
    while (j->depth > outside && !j->status) {
        if (skip_to_value(j, is_object[j->depth - 1]))
            take_head(j, is_object);
    }
}

tn_text tn_json_raw(tn_json *j)
{
    skip_space(j);
    size_t begin = j->pos;
    tn_json_skip(j);
    return j->status ? nothing : (tn_text){ j->text + begin, j->pos - begin };
}

/* --- duplicate keys --- */

bool tn_json_push_key(tn_json *j, tn_json_keys *keys, tn_text key)
{
    if (!TN_GROW(keys->items, keys->count, keys->cap))
        return tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
    keys->items[keys->count++] = (struct tn_json_key){ key, j->pos };
    return true;
}

/* Sorts equal keys together, earlier ones first. */
static int compare_keys(const void *a, const void *b)
{
    const struct tn_json_key *x = a, *y = b;
    if (x->text.len != y->text.len)
        return x->text.len < y->text.len ? -1 : 1;
    int order = memcmp(x->text.ptr, y->text.ptr, x->text.len);
    if (order)
        return order;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Sorted, not hashed: hostile keys cannot make this slow. */
void tn_json_pop_keys(tn_json *j, tn_json_keys *keys, size_t first)
{
    size_t n = keys->count - first;
    keys->count = first;
    if (n < 2 || j->status)
        return;
    struct tn_json_key *own = keys->items + first;
    qsort(own, n, sizeof *own, compare_keys);
    for (size_t i = 1; i < n && !j->status; i++) {
        if (!tn_text_equal(own[i].text, own[i - 1].text))
            continue;
        j->pos = own[i].at;
        tn_json_reject(j, TN_ERR_CORRUPT, "expected every key once but found %s again",
                       tn_quote(own[i].text.ptr, own[i].text.len).text);
    }
}

/* --- writing --- */

void tn_json_put_escaped(tn_buf *b, const char *text, size_t n)
{
    for (size_t p = 0; p < n; p++) {
        size_t plain = tn_json_plain_end(text, p, n);
        tn_buf_put(b, text + p, plain - p);
        p = plain;
        if (p == n)
            break;
        unsigned char c = (unsigned char)text[p];
        if (c == '"' || c == '\\')
            tn_buf_put(b, (char[]){ '\\', (char)c }, 2);
        else if (c >= '\b' && c <= '\r' && c != '\v')
            tn_buf_printf(b, "\\%c", "btn?fr"[c - '\b']);
        else
            tn_buf_printf(b, "\\u%04x", c);
    }
}

void tn_json_put_string(tn_buf *b, const char *text, size_t n)
{
    tn_buf_putc(b, '"');
    tn_json_put_escaped(b, text, n);
    tn_buf_putc(b, '"');
}

void tn_json_put_comma(tn_buf *b)
{
    char last = b->size ? (char)b->data[b->size - 1] : '{';
    if (last != '{' && last != '[')
        tn_buf_putc(b, ',');
}

void tn_json_put_key(tn_buf *b, const char *key)
{
    tn_json_put_comma(b);
    tn_json_put_z(b, key);
    tn_buf_putc(b, ':');
}

void tn_json_put_shape(tn_buf *b, uint32_t rank, const int64_t *shape)
{
    tn_buf_putc(b, '[');
    for (uint32_t i = 0; i < rank; i++) {
        if (i)
            tn_buf_putc(b, ',');
        tn_buf_put_int(b, shape[i]);
    }
    tn_buf_putc(b, ']');
}

void tn_json_put_f64(tn_buf *b, double value)
{
    c_locale l;
    if (!c_locale_enter(&l)) {
        b->bad = true;
        return;
    }
    /* 15 digits keep every decimal of up to 15 digits, 17 every double; subnormals have fewer digits. */
    char text[40];
    int digits = fabs(value) < DBL_MIN ? 1 : 15;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    c_locale_leave(&l);
    tn_buf_puts(b, text);
    if (!strpbrk(text, ".e"))
        tn_buf_puts(b, ".0");       /* a float stays one when it is read again */
}
