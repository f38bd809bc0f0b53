/* pipeline/rules/rules_cast.c - types of elements, and to which tensors they are given, from text. */
#include "pipeline/rules/rules.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/nearest.h"
#include "pipeline/importance.h"
#include "quant/quantizer.h"
#include "quant/scale_search.h"
#include "quant/scale_trials.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static const tn_rule_word rounds[] = {
    { "even", TN_ROUND_EVEN },   { "away", TN_ROUND_AWAY }, { "zero", TN_ROUND_ZERO },
    { "half_up", TN_ROUND_HALF_UP },
    { "trunc", TN_ROUND_TRUNC }, { "up", TN_ROUND_UP },     { "down", TN_ROUND_DOWN },
    { "stochastic", TN_ROUND_STOCHASTIC },
    { NULL, 0 }
};
static const tn_rule_word overflows[] = {
    { "default", TN_OVERFLOW_DEFAULT }, { "saturate", TN_OVERFLOW_SATURATE }, { "inf", TN_OVERFLOW_INF },
    { "nan", TN_OVERFLOW_NAN },         { "error", TN_OVERFLOW_ERROR },       { NULL, 0 }
};
static const tn_rule_word underflows[] = { { "allow", TN_UNDERFLOW_ALLOW }, { "error", TN_UNDERFLOW_ERROR },
                                           { NULL, 0 } };
static const tn_rule_word nans[] = { { "keep", TN_NAN_KEEP }, { "zero", TN_NAN_ZERO },
                                     { "error", TN_NAN_ERROR }, { NULL, 0 } };
static const tn_rule_word complexes[] = { { "real", 1 }, { NULL, 0 } };
static const tn_rule_word pers[] = { { "tensor", 0 }, { "channel", 1 }, { NULL, 0 } };
static const tn_rule_word modes[] = {
    { "max", TN_SCALE_MAX },     { "floor", TN_SCALE_MAX },     { "auto", TN_SCALE_MIDMAX },
    { "midmax", TN_SCALE_MIDMAX },
    { "topbinade", TN_SCALE_TOPBINADE }, { "option3", TN_SCALE_OPTION3 }, { "ceil", TN_SCALE_CEIL },
    { "mse", TN_SCALE_MSE },
    { NULL, 0 }
};
static const tn_rule_word stores[] = {
    { "packed", 0 },
    { "unpacked", 1 },
    { "e4m3fn", TN_FLOAT8_E4M3FN },
    { "float8_e4m3fn", TN_FLOAT8_E4M3FN },
    { "e5m2", TN_FLOAT8_E5M2 },
    { "float8_e5m2", TN_FLOAT8_E5M2 },
    { NULL, 0 },
};
static const tn_rule_word dialects[] = { { "ocp", 0 }, { "ggml", 1 }, { NULL, 0 } };
static const tn_rule_word answers[] = { { "no", 0 }, { "yes", 1 }, { NULL, 0 } };
static const tn_rule_word zeros[] = { { "asymmetric", 0 }, { "symmetric", 1 }, { NULL, 0 } };
static const tn_rule_word fracs[] = { { "auto", TN_SCALE_MAX }, { "least", TN_SCALE_MSE }, { NULL, 0 } };
static const tn_rule_word compats[] = { { "mli", TN_ARITH_MLI }, { NULL, 0 } };

/* A decimal between two float32 is first taken as the nearest float64. */
bool tn_rule_float(tn_text value, float *number)
{
    double x;
    if (!tn_rule_double(value, &x))
        return false;
    *number = (float)x;
    return isfinite(*number) && *number != 0;
}

/* What a cast makes, and so which keys it takes. */
enum { ELEMENTS = 1, DATATYPE = 2, SPARSE = 4, FIXED = 8, AFFINE = 16, CODES = FIXED | AFFINE };

enum {
    KEY_ROUND, KEY_OVERFLOW, KEY_UNDERFLOW, KEY_NAN, KEY_SEED, KEY_TIMES, KEY_COMPLEX,
    KEY_PER, KEY_AXIS, KEY_ZERO, KEY_PERCENTILE, KEY_SCALE,
    KEY_MODE, KEY_STORE, KEY_DIALECT, KEY_ROTATE, KEY_VIRTUAL, KEY_FRAC, KEY_COMPAT, KEY_IMPORTANCE,
    KEYS,
    AXIS_IS_DUE = KEYS, ZERO_BY_NUMBER          /* what else has been seen */
};
static const struct {
    const char *name;
    unsigned of;
    const tn_rule_word *words;
    const char *not_one;
} keys[KEYS] = {
    [KEY_ROUND] = { "round", ELEMENTS | DATATYPE | CODES, rounds,
                    "no rounding (even, away, zero, half_up, trunc, up, down, stochastic)" },
    [KEY_OVERFLOW] = { "overflow", ELEMENTS | DATATYPE | CODES, overflows,
                       "no way to overflow (default, saturate, inf, nan, error)" },
    [KEY_UNDERFLOW] = { "underflow", ELEMENTS | DATATYPE | CODES, underflows, "neither allow nor error" },
    [KEY_NAN] = { "nan", ELEMENTS | DATATYPE | CODES, nans, "nothing to do with NaN (keep, zero, error)" },
    [KEY_SEED] = { "seed", ELEMENTS | DATATYPE | CODES, NULL, "no number from 0 to 18446744073709551615" },
    [KEY_TIMES] = { "times", ELEMENTS, NULL, "no number that float32 holds, other than 0" },
    [KEY_COMPLEX] = { "complex", ELEMENTS, complexes, "not \"real\"" },
    [KEY_PER] = { "per", ELEMENTS | AFFINE, pers, "neither tensor nor channel" },
    [KEY_AXIS] = { "axis", ELEMENTS | AFFINE, NULL, "no dimension: a letter or a number" },
    [KEY_ZERO] = { "zero", ELEMENTS | AFFINE, NULL, "neither symmetric, asymmetric nor a number of 32 bits" },
    [KEY_PERCENTILE] = { "percentile", ELEMENTS | DATATYPE | CODES, NULL,
                         "no percentage above 0 and up to 100" },
    [KEY_SCALE] = { "scale", ELEMENTS | AFFINE, NULL, "no positive number that float32 holds" },
    [KEY_MODE] = { "mode", ELEMENTS | DATATYPE | CODES, modes,
                   "no scale mode (max, floor, auto, midmax, topbinade, option3, ceil, mse)" },
    [KEY_STORE] = { "store", DATATYPE, stores, "no way to store codes (packed, unpacked, e4m3fn, e5m2)" },
    [KEY_DIALECT] = { "dialect", DATATYPE, dialects, "no dialect (ocp, ggml)" },
    [KEY_ROTATE] = { "rotate", ELEMENTS | DATATYPE | CODES, NULL,
                     "no rotation (none, hadamardN, walshN, hadamardN:SEED, walshN:SEED; N is 4, 8 ... "
                     "128)" },
    [KEY_VIRTUAL] = { "virtual", ELEMENTS | DATATYPE | SPARSE | CODES, answers, "neither yes nor no" },
    [KEY_FRAC] = { "frac", FIXED, NULL, "neither auto, least nor a number from -127 to 126" },
    [KEY_COMPAT] = { "compat", ELEMENTS | CODES, compats, "not \"mli\"" },
    [KEY_IMPORTANCE] = { "importance", DATATYPE, NULL, "no file with importance data, nor none" },
};

static bool seen(const tn_rule_reading *r, unsigned key) { return r->seen >> key & 1; }

static bool set_zero(tn_cast_rule *rule, tn_text value)
{
    int found = 0;
    rule->affine.symmetric = tn_rule_word_take(zeros, value, &found) && found;
    return rule->affine.symmetric || tn_text_is(value, "asymmetric") || tn_rule_int32(value, &rule->zero);
}

static bool set_frac(tn_cast_rule *rule, tn_text value)
{
    int found = TN_SCALE_GIVEN;
    int32_t bits = 0;
    bool given = !tn_rule_word_take(fracs, value, &found);
    if (given && (!tn_rule_int32(value, &bits) || bits < TN_POWER_LEAST || bits > TN_POWER_MOST))
        return false;
    rule->quantize.rule = (tn_scale_rule)found;
    rule->scale = given ? ldexpf(1, -bits) : 0;
    return true;
}

static bool set_rotation(tn_cast_rule *rule, tn_text value)
{
    char text[64];
    return tn_rule_text(value, text, sizeof text) &&
           tn_rotation_parse(text, &rule->quantize.rotation, NULL) == TN_OK;
}

/* Packed codes, codes a byte each, or the numbers that they are, in a type of a byte. */
static void set_store(tn_cast_rule *rule, int found)
{
    rule->quantize.unpacked = found != 0;
    rule->quantize.store = found > 1 ? (tn_dtype)found : TN_UNKNOWN;
}

static bool set_value(tn_cast_rule *rule, unsigned key, tn_text value)
{
    tn_cast_options *o = &rule->options;
    int found = 0;
    if (keys[key].words && !tn_rule_word_take(keys[key].words, value, &found))
        return false;
    switch (key) {
    case KEY_ROUND:    o->round = (tn_round)found; rule->round_given = true; return true;
    case KEY_OVERFLOW: o->overflow = (tn_overflow)found; return true;
    case KEY_UNDERFLOW: o->underflow = (tn_underflow)found; return true;
    case KEY_NAN:      o->nan = (tn_nan)found; return true;
    case KEY_COMPLEX:  o->drop_imaginary = true; return true;
    case KEY_SEED:     return tn_rule_number(value, &o->seed);
    case KEY_TIMES:    return tn_rule_float(value, &o->scale);
    case KEY_PER:      return true;
    case KEY_AXIS:     return tn_rule_text(value, rule->axis, sizeof rule->axis);
    case KEY_ZERO:     return set_zero(rule, value);
    case KEY_MODE:     rule->quantize.rule = (tn_scale_rule)found; return true;
    case KEY_STORE:    set_store(rule, found); return true;
    case KEY_DIALECT:  rule->quantize.ggml = found; return true;
    case KEY_ROTATE:   return set_rotation(rule, value);
    case KEY_VIRTUAL:  rule->is_virtual = found; return true;
    case KEY_FRAC:     return set_frac(rule, value);
    case KEY_IMPORTANCE: rule->importance = value; return value.len > 0;
    case KEY_COMPAT:   rule->affine.arithmetic = (tn_arithmetic)found; return true;
    case KEY_SCALE:    return tn_rule_float(value, &rule->scale) && rule->scale > 0;
    default:
        return tn_rule_double(value, &rule->quantize.percentile) && rule->quantize.percentile > 0 &&
               rule->quantize.percentile <= 100;
    }
}

static tn_status no_such_key(const tn_rule_reading *r, tn_text key)
{
    static const char of_datatype[] = "no key of a datatype (round, overflow, underflow, nan, seed, mode, "
                                      "percentile, store, dialect, rotate, virtual, importance)",
                      of_sparse[] = "no key of N:M (virtual)",
                      of_fixed[] = "no key of fx8 and fx16 (frac, mode, percentile, round, overflow, "
                                   "underflow, nan, seed, rotate, virtual, compat)",
                      of_affine[] = "no key of sa8 and sa32 (per, axis, zero, percentile, scale, mode, "
                                    "round, overflow, underflow, nan, seed, rotate, virtual, compat)",
                      of_elements[] = "no key of an element type (round, overflow, underflow, nan, seed, "
                                      "times, complex, per, axis, zero, percentile, scale, mode, rotate, "
                                      "virtual, compat)";
    switch (r->makes) {
    case DATATYPE: return tn_rule_fail(r, key, of_datatype);
    case SPARSE:   return tn_rule_fail(r, key, of_sparse);
    case FIXED:    return tn_rule_fail(r, key, of_fixed);
    case AFFINE:   return tn_rule_fail(r, key, of_affine);
    default:       return tn_rule_fail(r, key, of_elements);
    }
}

static tn_status read_pair(tn_rule_reading *r, tn_text pair, tn_cast_rule *rule)
{
    tn_text key = { NULL, 0 }, value = { NULL, 0 };
    TN_TRY(tn_rule_pair(r, pair, &key, &value));
    unsigned i = 0;
    while (i < KEYS && !tn_text_is(key, keys[i].name))
        i++;
    if (i == KEYS || !(keys[i].of & r->makes))
        return no_such_key(r, key);
    if (r->seen >> i & 1)
        return tn_rule_fail(r, key, "there a second time");
    r->seen |= 1u << i;
    rule->quantized |= i == KEY_PER;
    if (i == KEY_PER && tn_text_is(value, "channel"))
        r->seen |= 1u << AXIS_IS_DUE;
    if (!set_value(rule, i, value))
        return tn_rule_fail(r, value, keys[i].not_one);
    if (i == KEY_ZERO && !rule->affine.symmetric && !tn_text_is(value, "asymmetric"))
        r->seen |= 1u << ZERO_BY_NUMBER;
    return TN_OK;
}

static void set_options(tn_cast_rule *rule)
{
    rule->quantize.size = sizeof rule->quantize;
    rule->quantize.round = rule->options.round;
    rule->quantize.nan = rule->options.nan;
    rule->quantize.seed = rule->options.seed;
}

static tn_status check_zero(const tn_rule_reading *r, const tn_cast_rule *rule)
{
    int64_t range[2];
    tn_error why;
    if (tn_affine_range(&rule->affine, range, &why))
        return tn_fail(r->err, TN_ERR_ARGUMENT, "%s", why.text);
    if (r->makes == AFFINE) {               /* MLI's zero points have 16 bits, whatever codes have */
        range[0] = INT16_MIN;
        range[1] = INT16_MAX;
    }
    if (rule->zero < range[0] || rule->zero > range[1])
        return tn_fail(r->err, TN_ERR_ARGUMENT, "expected a zero point from %lld to %lld but found %d",
                       (long long)range[0], (long long)range[1], rule->zero);
    return TN_OK;
}

/* The last word about codes with scales. */
static tn_status settle_codes(const tn_rule_reading *r, tn_cast_rule *rule)
{
    tn_round round = rule->options.round;
    tn_scale_rule *scale = &rule->quantize.rule;
    set_options(rule);
    if (rule->affine.arithmetic == TN_ARITH_MLI && round != TN_ROUND_AWAY && round != TN_ROUND_HALF_UP &&
        round != TN_ROUND_EVEN)
        return tn_fail(r->err, TN_ERR_ARGUMENT,
                       "compat=mli rounds values away, codes half_up or even, but found round=%s",
                       tn_rule_word_for(rounds, (int)round));
    if (*scale != TN_SCALE_MAX && *scale != TN_SCALE_MSE && *scale != TN_SCALE_GIVEN) {
        if (seen(r, KEY_MODE))
            return tn_fail(r->err, TN_ERR_ARGUMENT,
                           "mode=%s is for scales that are exponents (e8m0 ...): expected max or mse",
                           tn_rule_word_for(modes, (int)*scale));
        *scale = TN_SCALE_MAX;              /* a default for others */
    }
    rule->quantize.unpacked = rule->quantize.ggml = false;
    rule->quantize.store = TN_UNKNOWN;
    return check_zero(r, rule);
}

typedef struct number { char text[48]; } number;

static number number_text(float x)
{
    number n;
    tn_value_format(n.text, sizeof n.text, TN_FLOAT32, (tn_value){ .kind = TN_KIND_FLOAT, .re = (double)x });
    return n;
}

/* A scale that MLI cannot hold is not rounded behind anybody's back. */
static tn_status check_affine_scale(const tn_rule_reading *r, const tn_cast_rule *rule)
{
    int exponent;
    frexpf(rule->scale, &exponent);
    int last = exponent - TN_AFFINE_SHORT_BITS;
    last = last < TN_SHORT_SCALE_LEAST ? TN_SHORT_SCALE_LEAST : last;
    float steps = ldexpf(rule->scale, -last), low = floorf(steps);
    if (steps == low)
        return TN_OK;
    return tn_fail(r->err, TN_ERR_ARGUMENT,
                   "expected a scale of at most %d significant bits, none below 2^%d, but found %s: "
                   "the nearest are %s and %s", TN_AFFINE_SHORT_BITS, TN_SHORT_SCALE_LEAST,
                   number_text(rule->scale).text, number_text(ldexpf(low, last)).text,
                   number_text(ldexpf(low + 1, last)).text);
}

/* What the keys say about each other. */
static tn_status check_keys(const tn_rule_reading *r, const tn_cast_rule *rule)
{
    bool channel = seen(r, AXIS_IS_DUE),
         of_scales = seen(r, KEY_AXIS) || seen(r, KEY_ZERO) || seen(r, KEY_PERCENTILE) || seen(r, KEY_SCALE),
         of_codes = seen(r, KEY_MODE) || seen(r, KEY_ROTATE) || seen(r, KEY_VIRTUAL);
    const char *wrong = NULL;
    if (of_scales && !rule->quantized)
        wrong =
            "axis, zero, percentile and scale need per=tensor or per=channel (times=N multiplies each value)";
    else if (of_codes && !rule->quantized)
        wrong = "mode, rotate and virtual need per=tensor or per=channel: an element type has no scales";
    else if (channel != seen(r, KEY_AXIS))
        wrong = "per=channel and axis=DIMENSION go together";
    else if (rule->quantized && (seen(r, KEY_TIMES) || seen(r, KEY_COMPLEX)))
        wrong = "times and complex are not for codes with scales";
    else if (seen(r, KEY_PERCENTILE) && seen(r, KEY_SCALE))
        wrong = "a scale is given or found by a percentile, not both";
    else if (seen(r, KEY_MODE) && seen(r, KEY_SCALE))
        wrong = "a scale is given or found by a mode, not both";
    else if (seen(r, ZERO_BY_NUMBER) && !seen(r, KEY_SCALE))
        wrong = "a zero point by number needs a scale too";
    else if (seen(r, KEY_ZERO) && seen(r, KEY_SCALE) && !rule->affine.symmetric && !seen(r, ZERO_BY_NUMBER))
        wrong = "zero=asymmetric finds zero points for scales that are found: beside a scale say zero=NUMBER";
    else if (r->makes == ELEMENTS && seen(r, KEY_COMPAT) &&
             (rule->quantized || tn_dtype_get(rule->dtype)->kind != TN_KIND_FLOAT))
        wrong = "compat=mli is for fx8, fx16, sa8 and sa32, and for the float types that they become";
    else if (rule->dtype == TN_INT32 && r->makes == AFFINE && seen(r, KEY_ZERO) &&
             !rule->affine.symmetric && !seen(r, ZERO_BY_NUMBER))
        wrong = "sa32 is symmetric or has a zero point by number: one that is found would not fit the 16 "
                "bits it has";
    return wrong ? tn_fail(r->err, TN_ERR_ARGUMENT, "%s", wrong) : TN_OK;
}

static tn_status settle_elements(const tn_rule_reading *r, tn_cast_rule *rule)
{
    tn_status status = check_keys(r, rule);
    if (status || !rule->quantized)
        return status;
    rule->affine.codes = rule->dtype;
    if (seen(r, KEY_SCALE))
        rule->quantize.rule = TN_SCALE_GIVEN;
    if (!seen(r, KEY_ZERO))
        rule->affine.symmetric = tn_dtype_get(rule->dtype)->kind == TN_KIND_INT;
    if (r->makes == AFFINE && seen(r, KEY_SCALE))
        status = check_affine_scale(r, rule);
    return status ? status : settle_codes(r, rule);
}

/* Opens the importance data of a block type; a default is not for other datatypes. */
static tn_status open_importance(const tn_rule_reading *r, tn_cast_rule *rule)
{
    if (rule->datatype->block)
        return tn_importance_open(rule->importance, &rule->weights, &rule->quantize.no_importance, r->err);
    if (!seen(r, KEY_IMPORTANCE))
        return TN_OK;
    return tn_fail(r->err, TN_ERR_ARGUMENT, "importance is for block types (q4_K ...) but found %s",
                   tn_datatype_text(rule->datatype));
}

static tn_status settle_datatype(const tn_rule_reading *r, tn_cast_rule *rule)
{
    tn_quantize_options *o = &rule->quantize;
    tn_round round = rule->options.round;
    if (round != TN_ROUND_EVEN && round != TN_ROUND_AWAY && round != TN_ROUND_ZERO &&
        round != TN_ROUND_STOCHASTIC)
        return tn_fail(r->err, TN_ERR_ARGUMENT,
                       "a datatype rounds even, away, zero or stochastic but found %s",
                       tn_rule_word_for(rounds, (int)round));
    if (rule->is_virtual && seen(r, KEY_STORE))
        return tn_fail(r->err, TN_ERR_ARGUMENT,
                       "store says how codes are stored, but a virtual cast has none");
    set_options(rule);
    if (o->ggml && (round != TN_ROUND_EVEN || o->rule != TN_SCALE_MAX))
        return tn_fail(r->err, TN_ERR_ARGUMENT,
                       "dialect=ggml has ties and a scale rule of its own, but found round=%s and mode=%s",
                       tn_rule_word_for(rounds, (int)round), tn_rule_word_for(modes, (int)o->rule));
    TN_TRY(tn_quantizer_check(rule->datatype, o, r->err));
    return open_importance(r, rule);
}

/* What becomes of values beyond all codes that have scales is no choice: a default that asks for anything
 * else is not passed over. */
static tn_status check_overflow(const tn_cast_rule *rule, tn_error *err)
{
    tn_overflow overflow = rule->options.overflow;
    if (!rule->quantized && !rule->datatype)
        return TN_OK;
    bool exact = rule->datatype && tn_datatype_is_exact(rule->datatype),
         mli = rule->affine.arithmetic == TN_ARITH_MLI;
    const char *fact = "codes with scales saturate";
    if (exact)
        fact = "N:M without scales overflows as casts do by default";
    else if (rule->datatype)
        fact = "a datatype saturates";
    else if (mli)
        fact = "compat=mli overflows as MLI does";
    if (overflow == TN_OVERFLOW_DEFAULT || (overflow == TN_OVERFLOW_SATURATE && !exact && !mli) ||
        (overflow == TN_OVERFLOW_ERROR && !exact))
        return TN_OK;
    return tn_fail(err, TN_ERR_ARGUMENT,
                   "%s, and overflow %s is for element types only: say it in their rules, as in "
                   "f16,overflow=%s", fact, tn_rule_word_for(overflows, (int)overflow),
                   tn_rule_word_for(overflows, (int)overflow));
}

/* frac says how the scale is found, or what it is. */
static tn_status settle_fixed(const tn_rule_reading *r, tn_cast_rule *rule)
{
    bool both = seen(r, KEY_FRAC) && seen(r, KEY_MODE),
         given = rule->quantize.rule == TN_SCALE_GIVEN && seen(r, KEY_PERCENTILE);
    if (both || given)
        return tn_fail(r->err, TN_ERR_ARGUMENT, "%s",
                       both ? "frac=auto and frac=least are mode=max and mode=mse: say one of them"
                       : "a scale is given or found by a percentile, not both");
    return settle_codes(r, rule);
}

static tn_status settle_keys(const tn_rule_reading *r, tn_cast_rule *rule)
{
    if (r->makes == DATATYPE)
        return settle_datatype(r, rule);
    if (r->makes == SPARSE)
        return TN_OK;
    if (r->makes & CODES && !rule->round_given)
        rule->options.round = TN_ROUND_AWAY;
    rule->is_virtual &= rule->quantized;
    return r->makes == FIXED ? settle_fixed(r, rule) : settle_elements(r, rule);
}

static tn_status settle_cast(const tn_rule_reading *r, tn_cast_rule *rule)
{
    tn_status status = settle_keys(r, rule);
    return status ? status : check_overflow(rule, r->err);
}

/* Digits, a colon and digits. */
static bool looks_like_sparsity(tn_text type)
{
    const char *colon = type.len ? memchr(type.ptr, ':', type.len) : NULL;
    return colon && strspn(type.ptr, ":0123456789") >= type.len;
}

static tn_status read_sparsity(const tn_rule_reading *r, tn_text type, tn_cast_rule *rule)
{
    const char *colon = memchr(type.ptr, ':', type.len);
    size_t n = (size_t)(colon - type.ptr);
    uint64_t keep, of;
    if (!tn_rule_number((tn_text){ type.ptr, n }, &keep) ||
        !tn_rule_number((tn_text){ colon + 1, type.len - n - 1 }, &of) ||
        (of != 2 && of != 4 && of != 8 && of != 16) || keep == 0 || keep >= of)
        return tn_rule_fail(r, type, "no N:M with M of 2, 4, 8 or 16 and N from 1 to M - 1");
    rule->keep = (unsigned)keep;
    rule->of = (unsigned)of;
    return TN_OK;
}

static bool is_word(tn_text type, const char *word)
{
    return type.len == strlen(word) && strncasecmp(type.ptr, word, type.len) == 0;
}

static bool is_datatype_name(tn_text type)
{
    const tn_datatype_name *name;
    for (size_t i = 0; (name = tn_datatype_at(i)); i++)
        if (is_word(type, name->name))
            return true;
    return false;
}

/* Whether somebody meant a datatype: what is wrong with it then, its grammar says best. */
static bool looks_like_datatype(tn_text type)
{
    static const char *const words[] = { "e", "int", "uint", "float", "bfloat", "binary", "cb", "icb" };
    if ((type.len && memchr(type.ptr, '|', type.len)) ||
        (type.len > 5 && memcmp(type.ptr + type.len - 5, ".json", 5) == 0))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if (type.len > n && strncasecmp(type.ptr, words[i], n) == 0 && type.ptr[n] >= '0' &&
            type.ptr[n] <= '9')
            return true;
    }
    return is_datatype_name(type);
}

static tn_status fail_unknown(const tn_rule_reading *r, tn_text type)
{
    static const char *const codes[] = { "fx8", "fx16", "sa8", "sa32" };
    char word[64] = "";
    tn_nearest nearest = { .word = word };
    const tn_datatype_name *name;
    tn_rule_text(type, word, sizeof word);
    for (tn_dtype dtype = TN_UNKNOWN + 1; dtype < TN_DTYPE_COUNT; dtype++) {
        const tn_dtype_info *info = tn_dtype_get(dtype);
        tn_nearest_offer(&nearest, info ? info->name : NULL);
        tn_nearest_offer(&nearest, info ? info->short_name : NULL);
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        tn_nearest_offer(&nearest, codes[i]);
    for (size_t i = 0; (name = tn_datatype_at(i)); i++)
        tn_nearest_offer(&nearest, name->name);
    tn_status status = tn_refuse(r->err, TN_ERR_ARGUMENT, TN_REASON_TYPE, NULL,
                                 "unknown type %s at character %zu",
                                 tn_quote(type.ptr, type.len).text, tn_rule_character(r, type.ptr));
    return tn_and_nearest(status, &nearest, r->err);
}

static tn_status read_datatype(const tn_rule_reading *r, tn_text type, tn_cast_rule *rule)
{
    tn_arena arena = { 0 };
    tn_error why;
    const char *text = tn_arena_text(&arena, type.ptr, type.len);
    tn_status status = text ? tn_datatype_load(text, &rule->datatype, &why) : tn_fail_nomem(&why);
    tn_arena_free(&arena);
    if (status == TN_ERR_ARGUMENT && !looks_like_datatype(type))
        return fail_unknown(r, type);
    if (status && r->err)
        *r->err = why;
    return status;
}

/* Words that mean one thing to those who write casts and another to TensorCast, whose meaning they keep
 * inside datatypes (docs/types.md). */
static tn_status read_element(const tn_rule_reading *r, tn_text type, tn_dtype *element)
{
    char name[64] = "";
    if (is_word(type, "e4m3") || is_word(type, "f8e4m3"))
        return tn_fail(r->err, TN_ERR_ARGUMENT,
                       "%s at character %zu could be float8_e4m3fn (largest 448, no infinity) or float8_e4m3 "
                       "(largest 240): expected one of them", tn_quote(type.ptr, type.len).text,
                       tn_rule_character(r, type.ptr));
    tn_rule_text(type, name, sizeof name);
    *element = is_word(type, "fp8") ? TN_FLOAT8_E4M3FN : tn_dtype_parse(name);
    return TN_OK;
}

static tn_status read_type(tn_rule_reading *r, tn_text type, tn_cast_rule *rule)
{
    tn_dtype element = TN_UNKNOWN;
    if (looks_like_sparsity(type)) {
        r->makes = SPARSE;
        return read_sparsity(r, type, rule);
    }
    TN_TRY(read_element(r, type, &element));
    bool fixed = element == TN_FX8 || element == TN_FX16;       /* by any name it has */
    if (fixed)
        type = (tn_text){ tn_dtype_get(element)->name, strlen(tn_dtype_get(element)->name) };
    if (tn_affine_named(type, &rule->affine)) {
        r->makes = rule->affine.power ? FIXED : AFFINE;
        rule->dtype = rule->affine.codes;
        rule->quantized = true;
        return TN_OK;
    }
    rule->affine = (tn_affine){ .size = sizeof rule->affine, .axis = TN_PER_TENSOR };
    rule->dtype = element;
    r->makes = element ? ELEMENTS : DATATYPE;
    return element ? TN_OK : read_datatype(r, type, rule);
}

const char *tn_cast_rule_type(const tn_cast_rule *rule)
{
    return rule->quantized ? tn_affine_name(&rule->affine) : tn_dtype_get(rule->dtype)->name;
}

static void take_defaults(tn_cast_rule *rule, const tn_cast_rule *defaults)
{
    if (defaults) {
        rule->options = defaults->options;
        rule->quantize = defaults->quantize;
        rule->is_virtual = defaults->is_virtual;
        rule->importance = defaults->importance;
        rule->round_given = defaults->round_given || rule->options.round != TN_ROUND_EVEN;
    }
    rule->options.size = sizeof rule->options;
    rule->quantize.size = sizeof rule->quantize;
}

tn_status tn_cast_rule_parse(const char *text, const tn_cast_rule *defaults, tn_cast_rule *rule,
                             tn_error *err)
{
    tn_cast_rule read = { .dtype = TN_UNKNOWN };
    tn_rule_reading r = { .text = text, .err = err };
    const char *equals;
    tn_text type, head = tn_rule_head(&r, &type, &equals);
    take_defaults(&read, defaults);
    tn_status status = tn_rule_glob(&r, equals, read.glob);
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
    tn_close(rule->weights);
    rule->datatype = NULL;
    rule->weights = NULL;
}

/* ---- defaults ---- */

static bool is_default(unsigned key)
{
    static const unsigned all = 1u << KEY_ROUND | 1u << KEY_OVERFLOW | 1u << KEY_UNDERFLOW | 1u << KEY_NAN |
                                1u << KEY_SEED | 1u << KEY_COMPLEX | 1u << KEY_MODE | 1u << KEY_ROTATE |
                                1u << KEY_DIALECT | 1u << KEY_VIRTUAL | 1u << KEY_IMPORTANCE;
    return key < KEYS && all >> key & 1;
}

tn_status tn_cast_defaults_parse(const char *text, tn_cast_rule *defaults, tn_error *err)
{
    tn_rule_reading r = { .text = text ? text : "", .err = err };
    *defaults = (tn_cast_rule){ .options.size = sizeof defaults->options,
                                .quantize.size = sizeof defaults->quantize };
    for (const char *at = r.text; *at;) {
        tn_text pair = { at, strcspn(at, ",") }, key = { NULL, 0 }, value = { NULL, 0 };
        unsigned i = 0;
        TN_TRY(tn_rule_pair(&r, pair, &key, &value));
        while (i < KEYS && !tn_text_is(key, keys[i].name))
            i++;
        if (!is_default(i))
            return tn_rule_fail(&r, key, "no key of all casts (round, overflow, underflow, nan, seed, "
                                         "complex, mode, rotate, dialect, virtual, importance)");
        if (r.seen >> i & 1)
            return tn_rule_fail(&r, key, "there a second time");
        r.seen |= 1u << i;
        if (!set_value(defaults, i, value))
            return tn_rule_fail(&r, value, keys[i].not_one);
        at = pair.ptr + pair.len;
        if (*at && !*++at)
            return tn_rule_fail(&r, (tn_text){ at, 0 }, "no KEY=VALUE");
    }
    return TN_OK;
}
