/* rules.c - which tensors become elements of which type, from text. */
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "bytes/json.h"

#include <tenon/convert.h>

#include <math.h>
#include <string.h>

typedef struct reading {
    const char   *text;
    tn_cast_rule *rule;
    unsigned      seen;         /* bit i: key i was given */
    tn_error     *err;
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

/* A number as JSON spells it, which no locale changes, that a float32 can hold. */
static bool take_float(tn_text value, float *number)
{
    tn_json j;
    if (strspn(value.ptr, "-+.0123456789eE") < value.len)       /* JSON would pass over spaces */
        return false;
    tn_json_init(&j, value.ptr, value.len, NULL);
    double x = tn_json_f64(&j);
    *number = (float)x;
    return tn_json_done(&j) && isfinite(*number) && *number != 0;
}

/* ---- keys ---- */

enum { KEY_ROUND, KEY_OVERFLOW, KEY_NAN, KEY_SEED, KEY_SCALE, KEY_COMPLEX, KEYS };
static const struct { const char *name; const word *words; const char *not_one; } keys[KEYS] = {
    [KEY_ROUND] = { "round", rounds, "no rounding (even, away, zero, half_up, trunc, up, down, stochastic)" },
    [KEY_OVERFLOW] = { "overflow", overflows, "no way to overflow (default, saturate, inf, nan, error)" },
    [KEY_NAN] = { "nan", nans, "nothing to do with NaN (keep, zero, error)" },
    [KEY_SEED] = { "seed", NULL, "no number from 0 to 18446744073709551615" },
    [KEY_SCALE] = { "scale", NULL, "no number that float32 holds, other than 0" },
    [KEY_COMPLEX] = { "complex", complexes, "not \"real\"" },
};

static bool set_value(tn_cast_options *o, unsigned key, tn_text value)
{
    int found = 0;
    if (keys[key].words && !take_word(keys[key].words, value, &found))
        return false;
    switch (key) {
    case KEY_ROUND:    o->round = (tn_round)found; return true;
    case KEY_OVERFLOW: o->overflow = (tn_overflow)found; return true;
    case KEY_NAN:      o->nan = (tn_nan)found; return true;
    case KEY_COMPLEX:  o->drop_imaginary = true; return true;
    case KEY_SEED:     return take_number(value, &o->seed);
    default:           return take_float(value, &o->scale);
    }
}

/* KEY=VALUE */
static tn_status read_pair(reading *r, tn_text pair)
{
    const char *equals = pair.len ? memchr(pair.ptr, '=', pair.len) : NULL;
    if (!equals)
        return fail_at(r, pair, "no KEY=VALUE");
    tn_text key = { pair.ptr, (size_t)(equals - pair.ptr) }, value = { equals + 1, pair.len - key.len - 1 };
    unsigned i = 0;
    while (i < KEYS && !tn_text_is(key, keys[i].name))
        i++;
    if (i == KEYS)
        return fail_at(r, key, "no key (round, overflow, nan, seed, scale, complex)");
    if (r->seen >> i & 1)
        return fail_at(r, key, "there a second time");
    r->seen |= 1u << i;
    return set_value(&r->rule->options, i, value) ? TN_OK : fail_at(r, value, keys[i].not_one);
}

/* ---- the rule ---- */

/* Everything before the last '=' of `head`; without one, all names. */
static tn_status read_glob(reading *r, tn_text head, tn_text *type)
{
    const char *equals = head.len ? memrchr(head.ptr, '=', head.len) : NULL;
    tn_text glob = { head.ptr, equals ? (size_t)(equals - head.ptr) : 0 };
    *type = head;
    if (!equals) {
        strcpy(r->rule->glob, "*");
        return TN_OK;
    }
    *type = (tn_text){ equals + 1, head.len - glob.len - 1 };
    if (!glob.len)
        return fail_at(r, glob, "no glob");
    if (glob.len >= sizeof r->rule->glob)
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "expected a glob of at most %zu bytes but found one of %zu",
                       sizeof r->rule->glob - 1, glob.len);
    memcpy(r->rule->glob, glob.ptr, glob.len);
    r->rule->glob[glob.len] = '\0';
    return TN_OK;
}

static tn_status read_type(reading *r, tn_text type)
{
    char name[64] = "";
    if (type.len < sizeof name)
        memcpy(name, type.ptr, type.len);
    r->rule->dtype = tn_dtype_parse(name);
    return r->rule->dtype == TN_UNKNOWN ? fail_at(r, type, "no type (see: tenon types)") : TN_OK;
}

tn_status tn_cast_rule_parse(const char *text, const tn_cast_options *defaults, tn_cast_rule *rule, tn_error *err)
{
    tn_cast_rule read = { .dtype = TN_UNKNOWN };
    reading r = { .text = text, .rule = &read, .err = err };
    tn_text head = { text, strcspn(text, ",") }, type;
    tn_take_options(&read.options, sizeof read.options, defaults);
    read.options.size = sizeof read.options;
    tn_status status = read_glob(&r, head, &type);
    if (!status)
        status = read_type(&r, type);
    for (const char *at = text + head.len; *at && !status;) {
        tn_text pair = { at + 1, strcspn(at + 1, ",") };
        status = read_pair(&r, pair);
        at = pair.ptr + pair.len;
    }
    if (!status)
        *rule = read;
    return status;
}
