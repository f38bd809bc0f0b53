/* pipeline/rules/rules.c - orders of dimensions, padding and forms, and to which tensors they
 * are given, from text. */
#include "pipeline/rules/rules.h"
#include "base/error.h"
#include "bytes/json.h"
#include "tensor/form.h"

#include <string.h>

static const tn_rule_word duplicates[] = { { "refuse", TN_DUPLICATES_REFUSE }, { "sum", TN_DUPLICATES_SUM },
                                           { NULL, 0 } };
static const tn_rule_word compats[] = { { "mli", 1 }, { NULL, 0 } };

size_t tn_rule_character(const tn_rule_reading *r, const char *at)
{
    size_t n = 1;
    for (const char *p = r->text; p < at; p++)
        n += ((unsigned char)*p & 0xc0) != 0x80;
    return n;
}

tn_status tn_rule_fail(const tn_rule_reading *r, tn_text what, const char *no_thing)
{
    return tn_fail(r->err, TN_ERR_ARGUMENT, "%s at character %zu is %s", tn_quote(what.ptr, what.len).text,
                   tn_rule_character(r, what.ptr), no_thing);
}

/* ---- values ---- */

bool tn_rule_word_take(const tn_rule_word *words, tn_text value, int *found)
{
    for (; words->name; words++) {
        if (tn_text_is(value, words->name)) {
            *found = words->value;
            return true;
        }
    }
    return false;
}

const char *tn_rule_word_for(const tn_rule_word *words, int value)
{
    while (words->name && words->value != value)
        words++;
    return words->name ? words->name : "another";
}

bool tn_rule_number(tn_text value, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < value.len; i++) {
        unsigned digit = (unsigned)(unsigned char)value.ptr[i] - '0';
        if (digit > 9 || *number > (UINT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return value.len > 0;
}

bool tn_rule_double(tn_text value, double *number)
{
    tn_json j;
    if (!value.len || strspn(value.ptr, "-+.0123456789eE") < value.len)     /* JSON would pass over spaces */
        return false;
    tn_json_init(&j, value.ptr, value.len, NULL);
    *number = tn_json_f64(&j);
    return tn_json_done(&j);
}

bool tn_rule_int32(tn_text value, int32_t *number)
{
    bool negative = value.len && value.ptr[0] == '-';
    uint64_t size = 0;
    if (!tn_rule_number((tn_text){ value.ptr + negative, value.len - negative },
                        &size) || size > (uint64_t)INT32_MAX + negative)
        return false;
    *number = (int32_t)(negative ? -(int64_t)size : (int64_t)size);
    return true;
}

bool tn_rule_text(tn_text value, char *to, size_t cap)
{
    if (!value.len || value.len >= cap)
        return false;
    memcpy(to, value.ptr, value.len);
    to[value.len] = '\0';
    return true;
}

/* ---- the parts of a rule ---- */

tn_status tn_rule_glob(const tn_rule_reading *r, const char *equals, char glob[256])
{
    if (!equals) {
        strcpy(glob, "*");
        return TN_OK;
    }
    tn_text text = { r->text, (size_t)(equals - r->text) };
    if (!text.len)
        return tn_rule_fail(r, text, "no glob");
    if (!tn_rule_text(text, glob, 256))
        return tn_fail(r->err, TN_ERR_ARGUMENT, "expected a glob of at most 255 bytes but found one of %zu",
                       text.len);
    return TN_OK;
}

tn_status tn_rule_pair(const tn_rule_reading *r, tn_text pair, tn_text *key, tn_text *value)
{
    const char *equals = pair.len ? memchr(pair.ptr, '=', pair.len) : NULL;
    if (!equals)
        return tn_rule_fail(r, pair, "no KEY=VALUE");
    *key = (tn_text){ pair.ptr, (size_t)(equals - pair.ptr) };
    *value = (tn_text){ equals + 1, pair.len - key->len - 1 };
    return TN_OK;
}

/* Up to the first comma, but in a regular expression not those in braces and brackets. */
static size_t head_length(const char *text)
{
    size_t n = 0;
    char closing = '\0';
    if (!tn_begins_with(text, "re:"))
        return strcspn(text, ",");
    for (; text[n] && (closing || text[n] != ','); n++) {
        if (text[n] == '\\' && text[n + 1])
            n++;
        else if (closing)
            closing = text[n] == closing ? '\0' : closing;
        else if (text[n] == '[' || text[n] == '{')
            closing = text[n] == '[' ? ']' : '}';
    }
    return n;
}

tn_text tn_rule_head(const tn_rule_reading *r, tn_text *what, const char **equals)
{
    tn_text head = { r->text, head_length(r->text) };
    *equals = head.len ? memrchr(head.ptr, '=', head.len) : NULL;
    *what = *equals ? (tn_text){ *equals + 1, head.len - (size_t)(*equals - head.ptr) - 1 } : head;
    return head;
}

/* ---- layouts ---- */

static tn_status read_layout(const tn_rule_reading *r, tn_text text, char *layout)
{
    tn_error why;
    if (!tn_rule_text(text, layout, TN_MAX_RANK + 1) || tn_layout_check(layout, (uint32_t)text.len, &why))
        return tn_rule_fail(r, text, "no layout: expected distinct letters, as in NHWC");
    return TN_OK;
}

tn_status tn_layout_rule_parse(const char *text, tn_layout_rule *rule, tn_error *err)
{
    tn_layout_rule read = { .from = "" };
    tn_rule_reading r = { .text = text, .err = err };
    const char *equals;
    tn_text to, key = { NULL, 0 }, value = { NULL, 0 }, head = tn_rule_head(&r, &to, &equals);
    tn_status status = tn_rule_glob(&r, equals, read.glob);
    if (!status)
        status = read_layout(&r, to, read.to);
    if (!status && text[head.len]) {
        tn_text pair = { text + head.len + 1, strlen(text + head.len + 1) };
        status = tn_rule_pair(&r, pair, &key, &value);
        if (!status)
            status = tn_text_is(key, "from") ? read_layout(&r, value, read.from)
                                             : tn_rule_fail(&r, key, "no key (from)");
    }
    if (!status)
        *rule = read;
    return status;
}

/* ---- padding ---- */

enum { FILL_VALUE, FILL_COMPAT };       /* keys */

/* value=V or compat=mli. */
static tn_status read_fill(tn_rule_reading *r, unsigned key, tn_text name, tn_text value, tn_pad_rule *rule)
{
    int found = 0;
    if (r->seen >> key & 1)
        return tn_rule_fail(r, name, "there a second time");
    r->seen |= 1u << key;
    if (key == FILL_VALUE)
        return tn_rule_double(value, &rule->value) ? TN_OK : tn_rule_fail(r, value, "no number");
    rule->raw_zero = true;
    return tn_rule_word_take(compats, value, &found) ? TN_OK : tn_rule_fail(r, value, "not \"mli\"");
}

/* DIM=N, value=V or compat=mli. */
static tn_status read_padding(tn_rule_reading *r, tn_text pair, tn_pad_rule *rule)
{
    tn_text key = { NULL, 0 }, value = { NULL, 0 };
    TN_TRY(tn_rule_pair(r, pair, &key, &value));
    uint64_t multiple = 0;
    if (tn_text_is(key, "value") || tn_text_is(key, "compat"))
        return read_fill(r, tn_text_is(key, "value") ? FILL_VALUE : FILL_COMPAT, key, value, rule);
    if (rule->count == TN_MAX_RANK)
        return tn_rule_fail(r, key, "one dimension too many");
    char letter = key.len == 1 && ((key.ptr[0] | 32) >= 'a' && (key.ptr[0] | 32) <= 'z') ? key.ptr[0] : '\0';
    rule->dims[rule->count].letter = letter;
    if (!letter && !tn_rule_int32(key, &rule->dims[rule->count].dimension))
        return tn_rule_fail(r, key, "no dimension: a letter of the layout or a number");
    for (uint32_t i = 0; i < rule->count; i++)
        if (rule->dims[i].letter == letter && rule->dims[i].dimension == rule->dims[rule->count].dimension)
            return tn_rule_fail(r, key, "there a second time");
    if (!tn_rule_number(value, &multiple) || multiple == 0 || multiple > INT64_C(1) << 40)
        return tn_rule_fail(r, value, "no number of elements from 1 to 2^40");
    rule->dims[rule->count++].multiple = (int64_t)multiple;
    return TN_OK;
}

tn_status tn_pad_rule_parse(const char *text, tn_pad_rule *rule, tn_error *err)
{
    tn_pad_rule read = { .count = 0 };
    tn_rule_reading r = { .text = text, .err = err };
    size_t head = strcspn(text, ",");
    const char *last = head ? memrchr(text, '=', head) : NULL;
    const char *equals = last ? memrchr(text, '=', (size_t)(last - text)) : NULL;     /* GLOB=DIM=N */
    tn_status status = tn_rule_glob(&r, equals, read.glob);
    for (const char *at = equals ? equals + 1 : text; !status;) {
        tn_text pair = { at, strcspn(at, ",") };
        status = read_padding(&r, pair, &read);
        at += pair.len;
        if (*at++ != ',')
            break;
    }
    if (!status && read.count == 0)
        status = tn_fail(err, TN_ERR_ARGUMENT, "expected a dimension to pad, as in C=16, but found none");
    if (!status && read.raw_zero && r.seen >> FILL_VALUE & 1)
        status = tn_fail(err, TN_ERR_ARGUMENT, "padding has a value, or is code 0 with compat=mli, not both");
    if (!status)
        *rule = read;
    return status;
}

/* ---- forms ---- */

static bool take_form(tn_text text, tn_form *form)
{
    char name[16] = "";
    tn_rule_text(text, name, sizeof name);
    *form = tn_form_parse(name);
    return tn_form_converts(TN_FORM_DENSE, *form);
}

static bool take_index_type(tn_text text, tn_dtype *dtype)
{
    char name[64] = "";
    tn_rule_text(text, name, sizeof name);
    *dtype = tn_dtype_parse(name);
    return *dtype == TN_INT32 || *dtype == TN_INT64 || *dtype == TN_UINT32 || *dtype == TN_UINT64;
}

static tn_status read_form_key(tn_rule_reading *r, tn_text pair, tn_sparse_options *o)
{
    enum { THRESHOLD, DUPLICATES, INDEX, COUNT };
    static const char *const names[COUNT] = { "threshold", "duplicates", "index" };
    tn_text key = { NULL, 0 }, value = { NULL, 0 };
    TN_TRY(tn_rule_pair(r, pair, &key, &value));
    unsigned i = 0;
    int found = 0;
    while (i < COUNT && !tn_text_is(key, names[i]))
        i++;
    if (i == COUNT)
        return tn_rule_fail(r, key, "no key (threshold, duplicates, index)");
    if (r->seen >> i & 1)
        return tn_rule_fail(r, key, "there a second time");
    r->seen |= 1u << i;
    if (i == INDEX)
        return take_index_type(value, &o->index)
                   ? TN_OK
                   : tn_rule_fail(r, value, "no type of indices (int32, int64, uint32, uint64)");
    if (i == DUPLICATES) {
        if (!tn_rule_word_take(duplicates, value, &found))
            return tn_rule_fail(r, value, "neither refuse nor sum");
        o->duplicates = (tn_duplicates)found;
        return TN_OK;
    }
    o->drop = true;
    return tn_rule_double(value, &o->threshold) && o->threshold >= 0
               ? TN_OK
               : tn_rule_fail(r, value, "no number that is 0 or more");
}

tn_status tn_form_rule_parse(const char *text, tn_form_rule *rule, tn_error *err)
{
    tn_form_rule read = { .options = { .size = sizeof read.options } };
    tn_rule_reading r = { .text = text, .err = err };
    const char *equals;
    tn_text form, head = tn_rule_head(&r, &form, &equals);
    TN_TRY(tn_rule_glob(&r, equals, read.glob));
    if (!take_form(form, &read.form))
        TN_TRY(tn_rule_fail(&r, form, "no form (dense, coo, csr)"));
    for (const char *at = text + head.len; *at;) {
        tn_text pair = { at + 1, strcspn(at + 1, ",") };
        TN_TRY(read_form_key(&r, pair, &read.options));
        at = pair.ptr + pair.len;
    }
    if (read.options.index != TN_UNKNOWN && read.form == TN_FORM_DENSE)
        return tn_fail(err, TN_ERR_ARGUMENT, "index is for coo and csr: a dense tensor has none");
    *rule = read;
    return TN_OK;
}
