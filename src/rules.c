/* rules.c - what is to become of which tensors, from text. */
#include "base/arena.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "bytes/json.h"
#include "transform/quantize.h"
#include "transform/scaled_plan.h"

#include <tenon/convert.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct reading {
    const char *text;
    unsigned    seen;           /* bit i: key i was given */
    tn_error   *err;
} reading;

typedef struct word {
    const char *name;
    int         value;
} word;

static const word rounds[] = {
    { "even", TN_ROUND_EVEN },   { "away", TN_ROUND_AWAY }, { "zero", TN_ROUND_ZERO }, { "half_up", TN_ROUND_HALF_UP },
    { "trunc", TN_ROUND_TRUNC }, { "up", TN_ROUND_UP },     { "down", TN_ROUND_DOWN }, { "stochastic", TN_ROUND_STOCHASTIC },
    { NULL, 0 }
};
static const word overflows[] = {
    { "default", TN_OVERFLOW_DEFAULT }, { "saturate", TN_OVERFLOW_SATURATE }, { "inf", TN_OVERFLOW_INF },
    { "nan", TN_OVERFLOW_NAN },         { "error", TN_OVERFLOW_ERROR },       { NULL, 0 }
};
static const word nans[] = { { "keep", TN_NAN_KEEP }, { "zero", TN_NAN_ZERO }, { "error", TN_NAN_ERROR }, { NULL, 0 } };
static const word complexes[] = { { "real", 1 }, { NULL, 0 } };
static const word pers[] = { { "tensor", 0 }, { "channel", 1 }, { NULL, 0 } };
static const word duplicates[] = { { "refuse", TN_DUPLICATES_REFUSE }, { "sum", TN_DUPLICATES_SUM }, { NULL, 0 } };
static const word modes[] = {
    { "max", TN_SCALE_FLOOR },   { "floor", TN_SCALE_FLOOR },     { "auto", TN_SCALE_MIDMAX }, { "midmax", TN_SCALE_MIDMAX },
    { "topbinade", TN_SCALE_TOPBINADE }, { "option3", TN_SCALE_OPTION3 }, { "ceil", TN_SCALE_CEIL }, { "mse", TN_SCALE_MSE },
    { NULL, 0 }
};
static const word stores[] = { { "packed", 0 }, { "unpacked", 1 }, { NULL, 0 } };
static const word dialects[] = { { "ocp", 0 }, { "ggml", 1 }, { NULL, 0 } };
static const word answers[] = { { "no", 0 }, { "yes", 1 }, { NULL, 0 } };
static const word zeros[] = { { "asymmetric", 0 }, { "symmetric", 1 }, { NULL, 0 } };

/* Characters before a place, and that one: what a person counts. */
static size_t character(const reading *r, const char *at)
{
    size_t n = 1;
    for (const char *p = r->text; p < at; p++)
        n += ((unsigned char)*p & 0xc0) != 0x80;
    return n;
}

/* "WHAT" at character N is NO THING */
static tn_status fail_at(const reading *r, tn_text what, const char *no_thing)
{
    return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "%s at character %zu is %s", tn_quote(what.ptr, what.len).text,
                   character(r, what.ptr), no_thing);
}

/* ---- values ---- */

static bool take_word(const word *words, tn_text value, int *found)
{
    for (; words->name; words++) {
        if (tn_text_is(value, words->name)) {
            *found = words->value;
            return true;
        }
    }
    return false;
}

static const char *word_for(const word *words, int value)
{
    while (words->name && words->value != value)
        words++;
    return words->name ? words->name : "another";
}

/* Decimal digits. */
static bool take_number(tn_text value, uint64_t *number)
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

/* A number as JSON spells it, which no locale changes. */
static bool take_double(tn_text value, double *number)
{
    tn_json j;
    if (!value.len || strspn(value.ptr, "-+.0123456789eE") < value.len)     /* JSON would pass over spaces */
        return false;
    tn_json_init(&j, value.ptr, value.len, NULL);
    *number = tn_json_f64(&j);
    return tn_json_done(&j);
}

/* The same that a float32 can hold, other than 0.  A decimal between two
 * float32 is first taken as the nearest float64. */
static bool take_float(tn_text value, float *number)
{
    double x;
    if (!take_double(value, &x))
        return false;
    *number = (float)x;
    return isfinite(*number) && *number != 0;
}

static bool take_int32(tn_text value, int32_t *number)
{
    bool negative = value.len && value.ptr[0] == '-';
    uint64_t size = 0;
    if (!take_number((tn_text){ value.ptr + negative, value.len - negative }, &size) || size > (uint64_t)INT32_MAX + negative)
        return false;
    *number = (int32_t)(negative ? -(int64_t)size : (int64_t)size);
    return true;
}

static bool take_text(tn_text value, char *to, size_t cap)
{
    if (!value.len || value.len >= cap)
        return false;
    memcpy(to, value.ptr, value.len);
    to[value.len] = '\0';
    return true;
}

/* ---- the parts of a rule ---- */

/* Everything before the '=' at `equals`; all names where that is NULL. */
static tn_status read_glob(const reading *r, const char *equals, char glob[256])
{
    if (!equals) {
        strcpy(glob, "*");
        return TN_OK;
    }
    tn_text text = { r->text, (size_t)(equals - r->text) };
    if (!text.len)
        return fail_at(r, text, "no glob");
    if (!take_text(text, glob, 256))
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a glob of at most 255 bytes but found one of %zu", text.len);
    return TN_OK;
}

/* Cuts KEY=VALUE in two. */
static tn_status split_pair(const reading *r, tn_text pair, tn_text *key, tn_text *value)
{
    const char *equals = pair.len ? memchr(pair.ptr, '=', pair.len) : NULL;
    if (!equals)
        return fail_at(r, pair, "no KEY=VALUE");
    *key = (tn_text){ pair.ptr, (size_t)(equals - pair.ptr) };
    *value = (tn_text){ equals + 1, pair.len - key->len - 1 };
    return TN_OK;
}

/* What comes before the first comma, and where a '=' makes a glob of its beginning. */
static tn_text read_head(const reading *r, tn_text *what, const char **equals)
{
    tn_text head = { r->text, strcspn(r->text, ",") };
    *equals = head.len ? memrchr(head.ptr, '=', head.len) : NULL;
    *what = *equals ? (tn_text){ *equals + 1, head.len - (size_t)(*equals - head.ptr) - 1 } : head;
    return head;
}

/* ---- casts ---- */

/* What a cast makes, and so which keys it takes. */
enum { ELEMENTS = 1, DATATYPE = 2, SPARSE = 4 };

enum {
    KEY_ROUND, KEY_OVERFLOW, KEY_NAN, KEY_SEED, KEY_TIMES, KEY_COMPLEX,
    KEY_PER, KEY_AXIS, KEY_ZERO, KEY_PERCENTILE, KEY_SCALE,
    KEY_MODE, KEY_STORE, KEY_DIALECT, KEY_ROTATE, KEY_VIRTUAL, KEYS,
    AXIS_IS_DUE = KEYS, ZERO_BY_NUMBER          /* what else has been seen */
};
static const struct { const char *name; unsigned of; const word *words; const char *not_one; } keys[KEYS] = {
    [KEY_ROUND] = { "round", ELEMENTS | DATATYPE, rounds, "no rounding (even, away, zero, half_up, trunc, up, down, stochastic)" },
    [KEY_OVERFLOW] = { "overflow", ELEMENTS, overflows, "no way to overflow (default, saturate, inf, nan, error)" },
    [KEY_NAN] = { "nan", ELEMENTS | DATATYPE, nans, "nothing to do with NaN (keep, zero, error)" },
    [KEY_SEED] = { "seed", ELEMENTS | DATATYPE, NULL, "no number from 0 to 18446744073709551615" },
    [KEY_TIMES] = { "times", ELEMENTS, NULL, "no number that float32 holds, other than 0" },
    [KEY_COMPLEX] = { "complex", ELEMENTS, complexes, "not \"real\"" },
    [KEY_PER] = { "per", ELEMENTS, pers, "neither tensor nor channel" },
    [KEY_AXIS] = { "axis", ELEMENTS, NULL, "no dimension: a letter or a number" },
    [KEY_ZERO] = { "zero", ELEMENTS, NULL, "neither symmetric, asymmetric nor a number of 32 bits" },
    [KEY_PERCENTILE] = { "percentile", ELEMENTS, NULL, "no percentage above 0 and up to 100" },
    [KEY_SCALE] = { "scale", ELEMENTS, NULL, "no positive number that float32 holds" },
    [KEY_MODE] = { "mode", DATATYPE, modes, "no scale mode (max, floor, auto, midmax, topbinade, option3, ceil, mse)" },
    [KEY_STORE] = { "store", DATATYPE, stores, "neither packed nor unpacked" },
    [KEY_DIALECT] = { "dialect", DATATYPE, dialects, "no dialect (ocp, ggml)" },
    [KEY_ROTATE] = { "rotate", DATATYPE, NULL, "no rotation (none, hadamardN, walshN, hadamardN:SEED, walshN:SEED; N is 4, 8 ... 128)" },
    [KEY_VIRTUAL] = { "virtual", DATATYPE | SPARSE, answers, "neither yes nor no" },
};

static unsigned what_it_makes(const tn_cast_rule *rule) { return rule->datatype ? DATATYPE : rule->of ? SPARSE : ELEMENTS; }

static bool set_zero(tn_cast_rule *rule, tn_text value)
{
    int found = 0;
    rule->quantize.symmetric = take_word(zeros, value, &found) && found;
    return rule->quantize.symmetric || tn_text_is(value, "asymmetric") || take_int32(value, &rule->zero);
}

static bool set_rotation(tn_cast_rule *rule, tn_text value)
{
    char text[64];
    return take_text(value, text, sizeof text) && tn_rotation_parse(text, &rule->scaled.rotation, NULL) == TN_OK;
}

static bool set_value(tn_cast_rule *rule, unsigned key, tn_text value)
{
    tn_cast_options *o = &rule->options;
    int found = 0;
    if (keys[key].words && !take_word(keys[key].words, value, &found))
        return false;
    switch (key) {
    case KEY_ROUND:    o->round = (tn_round)found; return true;
    case KEY_OVERFLOW: o->overflow = (tn_overflow)found; return true;
    case KEY_NAN:      o->nan = (tn_nan)found; return true;
    case KEY_COMPLEX:  o->drop_imaginary = true; return true;
    case KEY_SEED:     return take_number(value, &o->seed);
    case KEY_TIMES:    return take_float(value, &o->scale);
    case KEY_PER:      return true;
    case KEY_AXIS:     return take_text(value, rule->axis, sizeof rule->axis);
    case KEY_ZERO:     return set_zero(rule, value);
    case KEY_MODE:     rule->scaled.mode = (tn_scale_mode)found; return true;
    case KEY_STORE:    rule->scaled.unpacked = found; return true;
    case KEY_DIALECT:  rule->scaled.ggml = found; return true;
    case KEY_ROTATE:   return set_rotation(rule, value);
    case KEY_VIRTUAL:  rule->is_virtual = found; return true;
    case KEY_SCALE:    return take_float(value, &rule->scale) && rule->scale > 0;
    default:           return take_double(value, &rule->quantize.percentile) && rule->quantize.percentile > 0 &&
                              rule->quantize.percentile <= 100;
    }
}

static tn_status no_such_key(const reading *r, tn_text key, const tn_cast_rule *rule)
{
    switch (what_it_makes(rule)) {
    case DATATYPE:
        return fail_at(r, key, "no key of a datatype (round, nan, seed, mode, store, dialect, rotate, virtual)");
    case SPARSE:
        return fail_at(r, key, "no key of N:M (virtual)");
    default:
        return fail_at(r, key, "no key of an element type (round, overflow, nan, seed, times, complex, per, axis, zero, percentile, "
                               "scale)");
    }
}

static tn_status read_pair(reading *r, tn_text pair, tn_cast_rule *rule)
{
    tn_text key = { NULL, 0 }, value = { NULL, 0 };
    tn_status status = split_pair(r, pair, &key, &value);
    if (status)
        return status;
    unsigned i = 0;
    while (i < KEYS && !tn_text_is(key, keys[i].name))
        i++;
    if (i == KEYS || !(keys[i].of & what_it_makes(rule)))
        return no_such_key(r, key, rule);
    if (r->seen >> i & 1)
        return fail_at(r, key, "there a second time");
    r->seen |= 1u << i;
    rule->quantized |= i == KEY_PER;
    if (i == KEY_PER && tn_text_is(value, "channel"))
        r->seen |= 1u << AXIS_IS_DUE;
    if (!set_value(rule, i, value))
        return fail_at(r, value, keys[i].not_one);
    if (i == KEY_ZERO && !rule->quantize.symmetric && !tn_text_is(value, "asymmetric"))
        r->seen |= 1u << ZERO_BY_NUMBER;
    return TN_OK;
}

static bool seen(const reading *r, unsigned key) { return r->seen >> key & 1; }

/* What the keys say about each other. */
static tn_status settle_elements(const reading *r, tn_cast_rule *rule)
{
    tn_quantize_options *q = &rule->quantize;
    bool channel = seen(r, AXIS_IS_DUE), of_scales = seen(r, KEY_AXIS) || seen(r, KEY_ZERO) || seen(r, KEY_PERCENTILE) || seen(r, KEY_SCALE);
    const char *wrong = NULL;
    if (of_scales && !rule->quantized)
        wrong = "axis, zero, percentile and scale need per=tensor or per=channel (times=N multiplies each value)";
    else if (channel != seen(r, KEY_AXIS))
        wrong = "per=channel and axis=DIMENSION go together";
    else if (rule->quantized && (seen(r, KEY_TIMES) || seen(r, KEY_OVERFLOW) || seen(r, KEY_COMPLEX)))
        wrong = "times, overflow and complex are not for codes with scales, which always fit their range";
    else if (seen(r, KEY_PERCENTILE) && seen(r, KEY_SCALE))
        wrong = "a scale is given or found by a percentile, not both";
    if (wrong)
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "%s", wrong);
    if (!rule->quantized)
        return TN_OK;
    q->size = sizeof *q;
    q->rule = seen(r, KEY_SCALE) ? TN_SCALE_GIVEN : seen(r, KEY_PERCENTILE) ? TN_SCALE_PERCENTILE : TN_SCALE_RANGE;
    if (!seen(r, KEY_ZERO))
        q->symmetric = tn_dtype_get(rule->dtype)->kind == TN_KIND_INT;
    if (seen(r, ZERO_BY_NUMBER) && !seen(r, KEY_SCALE))
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "a zero point by number needs a scale too");
    q->round = rule->options.round;
    q->nan = rule->options.nan;
    q->seed = rule->options.seed;
    tn_error why;
    int64_t range[2];
    if (tn_code_range(rule->dtype, q, range, &why))
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "%s", why.text);
    if (rule->zero < range[0] || rule->zero > range[1])
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a zero point from %lld to %lld but found %d",
                       (long long)range[0], (long long)range[1], rule->zero);
    return TN_OK;
}

static tn_status settle_datatype(const reading *r, tn_cast_rule *rule)
{
    tn_scaled_options *o = &rule->scaled;
    tn_round round = rule->options.round;
    if (round != TN_ROUND_EVEN && round != TN_ROUND_AWAY && round != TN_ROUND_ZERO && round != TN_ROUND_STOCHASTIC)
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "a datatype rounds even, away, zero or stochastic but found %s",
                       word_for(rounds, (int)round));
    if (rule->is_virtual && seen(r, KEY_STORE))
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "store says how codes are stored, but a virtual cast has none");
    o->size = sizeof *o;
    o->round = round;
    o->nan = rule->options.nan;
    o->seed = rule->options.seed;
    if (o->ggml && (round != TN_ROUND_EVEN || o->mode != TN_SCALE_FLOOR))
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "dialect=ggml has ties and a scale rule of its own, but found round=%s and "
                       "mode=%s", word_for(rounds, (int)round), word_for(modes, (int)o->mode));
    return tn_scaled_check(rule->datatype, o, r->err);
}

static tn_status settle_cast(const reading *r, tn_cast_rule *rule)
{
    switch (what_it_makes(rule)) {
    case DATATYPE:
        return settle_datatype(r, rule);
    case SPARSE:
        return TN_OK;
    default:
        rule->is_virtual = false;
        return settle_elements(r, rule);
    }
}

/* Digits, a colon and digits. */
static bool looks_like_sparsity(tn_text type)
{
    const char *colon = type.len ? memchr(type.ptr, ':', type.len) : NULL;
    return colon && strspn(type.ptr, ":0123456789") >= type.len;
}

static tn_status read_sparsity(const reading *r, tn_text type, tn_cast_rule *rule)
{
    const char *colon = memchr(type.ptr, ':', type.len);
    size_t n = (size_t)(colon - type.ptr);
    uint64_t keep, of;
    if (!take_number((tn_text){ type.ptr, n }, &keep) || !take_number((tn_text){ colon + 1, type.len - n - 1 }, &of) ||
        (of != 2 && of != 4 && of != 8 && of != 16) || keep == 0 || keep >= of)
        return fail_at(r, type, "no N:M with M of 2, 4, 8 or 16 and N from 1 to M - 1");
    rule->keep = (unsigned)keep;
    rule->of = (unsigned)of;
    return TN_OK;
}

static bool is_datatype_name(tn_text type)
{
    const tn_datatype_name *name;
    for (size_t i = 0; (name = tn_datatype_at(i)); i++)
        if (strlen(name->name) == type.len && strncasecmp(name->name, type.ptr, type.len) == 0)
            return true;
    return false;
}

/* Whether somebody meant a datatype: what is wrong with it then, its grammar says best. */
static bool looks_like_datatype(tn_text type)
{
    static const char *const words[] = { "e", "int", "uint", "float", "bfloat", "binary", "cb", "icb" };
    if ((type.len && memchr(type.ptr, '|', type.len)) || (type.len > 5 && memcmp(type.ptr + type.len - 5, ".json", 5) == 0))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if (type.len > n && strncasecmp(type.ptr, words[i], n) == 0 && type.ptr[n] >= '0' && type.ptr[n] <= '9')
            return true;
    }
    return is_datatype_name(type);
}

static tn_status read_datatype(const reading *r, tn_text type, tn_cast_rule *rule)
{
    tn_arena arena = { 0 };
    tn_error why;
    const char *text = tn_arena_text(&arena, type.ptr, type.len);
    tn_status status = text ? tn_datatype_load(text, &rule->datatype, &why) : tn_fail_nomem(&why);
    tn_arena_free(&arena);
    if (status == TN_ERR_ARGUMENT && !looks_like_datatype(type))
        return fail_at(r, type, "no type (see: tenon types, tenon datatypes)");
    if (status && r->err)
        *r->err = why;
    return status;
}

static tn_status read_type(const reading *r, tn_text type, tn_cast_rule *rule)
{
    char name[64] = "";
    if (looks_like_sparsity(type))
        return read_sparsity(r, type, rule);
    take_text(type, name, sizeof name);
    rule->dtype = tn_dtype_parse(name);
    return rule->dtype == TN_UNKNOWN ? read_datatype(r, type, rule) : TN_OK;
}

static void take_defaults(tn_cast_rule *rule, const tn_cast_rule *defaults)
{
    if (defaults) {
        tn_take_options(&rule->options, sizeof rule->options, &defaults->options);
        tn_take_options(&rule->scaled, sizeof rule->scaled, &defaults->scaled);
        rule->is_virtual = defaults->is_virtual;
    }
    rule->options.size = sizeof rule->options;
}

tn_status tn_cast_rule_parse(const char *text, const tn_cast_rule *defaults, tn_cast_rule *rule, tn_error *err)
{
    tn_cast_rule read = { .dtype = TN_UNKNOWN };
    reading r = { .text = text, .err = err };
    const char *equals;
    tn_text type, head = read_head(&r, &type, &equals);
    take_defaults(&read, defaults);
    tn_status status = read_glob(&r, equals, read.glob);
    if (!status)
        status = read_type(&r, type, &read);
    for (const char *at = text + head.len; *at && !status;) {
        tn_text pair = { at + 1, strcspn(at + 1, ",") };
        status = read_pair(&r, pair, &read);
        at = pair.ptr + pair.len;
    }
    if (!status)
        status = settle_cast(&r, &read);
    if (status)
        tn_cast_rule_free(&read);
    else
        *rule = read;
    return status;
}

void tn_cast_rule_free(tn_cast_rule *rule)
{
    if (!rule)
        return;
    tn_datatype_free(rule->datatype);
    rule->datatype = NULL;
}

/* ---- layouts ---- */

static tn_status read_layout(const reading *r, tn_text text, char *layout)
{
    tn_error why;
    if (!take_text(text, layout, TN_MAX_RANK + 1) || tn_layout_check(layout, (uint32_t)text.len, &why))
        return fail_at(r, text, "no layout: expected distinct letters, as in NHWC");
    return TN_OK;
}

tn_status tn_layout_rule_parse(const char *text, tn_layout_rule *rule, tn_error *err)
{
    tn_layout_rule read = { .from = "" };
    reading r = { .text = text, .err = err };
    const char *equals;
    tn_text to, key = { NULL, 0 }, value = { NULL, 0 }, head = read_head(&r, &to, &equals);
    tn_status status = read_glob(&r, equals, read.glob);
    if (!status)
        status = read_layout(&r, to, read.to);
    if (!status && text[head.len]) {
        tn_text pair = { text + head.len + 1, strlen(text + head.len + 1) };
        status = split_pair(&r, pair, &key, &value);
        if (!status)
            status = tn_text_is(key, "from") ? read_layout(&r, value, read.from) : fail_at(&r, key, "no key (from)");
    }
    if (!status)
        *rule = read;
    return status;
}

/* ---- padding ---- */

/* DIM=N or value=V. */
static tn_status read_padding(reading *r, tn_text pair, tn_pad_rule *rule)
{
    tn_text key = { NULL, 0 }, value = { NULL, 0 };
    tn_status status = split_pair(r, pair, &key, &value);
    uint64_t multiple = 0;
    if (status)
        return status;
    if (tn_text_is(key, "value")) {
        bool again = r->seen++ > 0;
        return again ? fail_at(r, key, "there a second time") : take_double(value, &rule->value) ? TN_OK : fail_at(r, value, "no number");
    }
    if (rule->count == TN_MAX_RANK)
        return fail_at(r, key, "one dimension too many");
    char letter = key.len == 1 && ((key.ptr[0] | 32) >= 'a' && (key.ptr[0] | 32) <= 'z') ? key.ptr[0] : '\0';
    rule->dims[rule->count].letter = letter;
    if (!letter && !take_int32(key, &rule->dims[rule->count].dimension))
        return fail_at(r, key, "no dimension: a letter of the layout or a number");
    for (uint32_t i = 0; i < rule->count; i++)
        if (rule->dims[i].letter == letter && rule->dims[i].dimension == rule->dims[rule->count].dimension)
            return fail_at(r, key, "there a second time");
    if (!take_number(value, &multiple) || multiple == 0 || multiple > INT64_C(1) << 40)
        return fail_at(r, value, "no number of elements from 1 to 2^40");
    rule->dims[rule->count++].multiple = (int64_t)multiple;
    return TN_OK;
}

tn_status tn_pad_rule_parse(const char *text, tn_pad_rule *rule, tn_error *err)
{
    tn_pad_rule read = { .count = 0 };
    reading r = { .text = text, .err = err };
    size_t head = strcspn(text, ",");
    const char *last = head ? memrchr(text, '=', head) : NULL;
    const char *equals = last ? memrchr(text, '=', (size_t)(last - text)) : NULL;     /* GLOB=DIM=N */
    tn_status status = read_glob(&r, equals, read.glob);
    for (const char *at = equals ? equals + 1 : text; !status;) {
        tn_text pair = { at, strcspn(at, ",") };
        status = read_padding(&r, pair, &read);
        at += pair.len;
        if (*at++ != ',')
            break;
    }
    if (!status && read.count == 0)
        status = tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a dimension to pad, as in C=16, but found none");
    if (!status)
        *rule = read;
    return status;
}

/* ---- forms ---- */

static bool take_form(tn_text text, char form[16])
{
    return (tn_text_is(text, "dense") || tn_text_is(text, "coo") || tn_text_is(text, "csr")) && take_text(text, form, 16);
}

static bool take_index_type(tn_text text, tn_dtype *dtype)
{
    char name[64] = "";
    take_text(text, name, sizeof name);
    *dtype = tn_dtype_parse(name);
    return *dtype == TN_INT32 || *dtype == TN_INT64 || *dtype == TN_UINT32 || *dtype == TN_UINT64;
}

static tn_status read_form_key(reading *r, tn_text pair, tn_sparse_options *o)
{
    enum { THRESHOLD, DUPLICATES, INDEX, COUNT };
    static const char *const names[COUNT] = { "threshold", "duplicates", "index" };
    tn_text key = { NULL, 0 }, value = { NULL, 0 };
    tn_status status = split_pair(r, pair, &key, &value);
    unsigned i = 0;
    int found = 0;
    if (status)
        return status;
    while (i < COUNT && !tn_text_is(key, names[i]))
        i++;
    if (i == COUNT)
        return fail_at(r, key, "no key (threshold, duplicates, index)");
    if (r->seen >> i & 1)
        return fail_at(r, key, "there a second time");
    r->seen |= 1u << i;
    if (i == INDEX)
        return take_index_type(value, &o->index) ? TN_OK : fail_at(r, value, "no type of indices (int32, int64, uint32, uint64)");
    if (i == DUPLICATES) {
        if (!take_word(duplicates, value, &found))
            return fail_at(r, value, "neither refuse nor sum");
        o->duplicates = (tn_duplicates)found;
        return TN_OK;
    }
    o->drop = true;
    return take_double(value, &o->threshold) && o->threshold >= 0 ? TN_OK : fail_at(r, value, "no number that is 0 or more");
}

tn_status tn_form_rule_parse(const char *text, tn_form_rule *rule, tn_error *err)
{
    tn_form_rule read = { .options = { .size = sizeof read.options } };
    reading r = { .text = text, .err = err };
    const char *equals;
    tn_text form, head = read_head(&r, &form, &equals);
    tn_status status = read_glob(&r, equals, read.glob);
    if (!status && !take_form(form, read.form))
        status = fail_at(&r, form, "no form (dense, coo, csr)");
    for (const char *at = text + head.len; *at && !status;) {
        tn_text pair = { at + 1, strcspn(at + 1, ",") };
        status = read_form_key(&r, pair, &read.options);
        at = pair.ptr + pair.len;
    }
    if (!status && read.options.index != TN_UNKNOWN && strcmp(read.form, "dense") == 0)
        status = tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "index is for coo and csr: a dense tensor has none");
    if (!status)
        *rule = read;
    return status;
}
