/* pipeline/rules/rules_cast.c - types of elements, and to which tensors they are given, from text. */
#include "pipeline/rules/rules.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/options.h"
#include "quant/power.h"
#include "quant/scaled_plan.h"
#include "quant/tile.h"

#include <tenon/convert.h>

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
static const tn_rule_word nans[] = { { "keep", TN_NAN_KEEP }, { "zero", TN_NAN_ZERO },
                                     { "error", TN_NAN_ERROR }, { NULL, 0 } };
static const tn_rule_word complexes[] = { { "real", 1 }, { NULL, 0 } };
static const tn_rule_word pers[] = { { "tensor", 0 }, { "channel", 1 }, { NULL, 0 } };
static const tn_rule_word modes[] = {
    { "max", TN_SCALE_FLOOR },   { "floor", TN_SCALE_FLOOR },     { "auto", TN_SCALE_MIDMAX },
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
static const tn_rule_word fracs[] = { { "auto", TN_SCALE_POWER }, { "least", TN_SCALE_LEAST }, { NULL, 0 } };
static const tn_rule_word compats[] = { { "mli", TN_ARITH_MLI }, { NULL, 0 } };

enum { AFFINE_BITS = 15 };      /* of a scale: MLI has them as positive int16 with an exponent */

/* What a float32 can hold, other than 0.  A decimal between two
 * float32 is first taken as the nearest float64. */
static bool take_float(tn_text value, float *number)
{
    double x;
    if (!tn_rule_double(value, &x))
        return false;
    *number = (float)x;
    return isfinite(*number) && *number != 0;
}

/* What a cast makes, and so which keys it takes. */
enum { ELEMENTS = 1, DATATYPE = 2, SPARSE = 4, FIXED = 8, AFFINE = 16, CODES = FIXED | AFFINE };

/* The types of embARC MLI, which are codes with scales here. */
static const struct { tn_dtype element; const char *name; tn_dtype codes; unsigned makes; } firmware[] = {
    { TN_FX8, "fx8", TN_INT8, FIXED },      { TN_FX16, "fx16", TN_INT16, FIXED },
    { TN_UNKNOWN, "sa8", TN_INT8, AFFINE }, { TN_UNKNOWN, "sa32", TN_INT32, AFFINE },
};

enum {
    KEY_ROUND, KEY_OVERFLOW, KEY_NAN, KEY_SEED, KEY_TIMES, KEY_COMPLEX,
    KEY_PER, KEY_AXIS, KEY_ZERO, KEY_PERCENTILE, KEY_SCALE,
    KEY_MODE, KEY_STORE, KEY_DIALECT, KEY_ROTATE, KEY_VIRTUAL, KEY_FRAC, KEY_COMPAT, KEYS,
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
    [KEY_OVERFLOW] = { "overflow", ELEMENTS, overflows,
                       "no way to overflow (default, saturate, inf, nan, error)" },
    [KEY_NAN] = { "nan", ELEMENTS | DATATYPE | CODES, nans, "nothing to do with NaN (keep, zero, error)" },
    [KEY_SEED] = { "seed", ELEMENTS | DATATYPE | CODES, NULL, "no number from 0 to 18446744073709551615" },
    [KEY_TIMES] = { "times", ELEMENTS, NULL, "no number that float32 holds, other than 0" },
    [KEY_COMPLEX] = { "complex", ELEMENTS, complexes, "not \"real\"" },
    [KEY_PER] = { "per", ELEMENTS | AFFINE, pers, "neither tensor nor channel" },
    [KEY_AXIS] = { "axis", ELEMENTS | AFFINE, NULL, "no dimension: a letter or a number" },
    [KEY_ZERO] = { "zero", ELEMENTS | AFFINE, NULL, "neither symmetric, asymmetric nor a number of 32 bits" },
    [KEY_PERCENTILE] = { "percentile", ELEMENTS | AFFINE, NULL, "no percentage above 0 and up to 100" },
    [KEY_SCALE] = { "scale", ELEMENTS | AFFINE, NULL, "no positive number that float32 holds" },
    [KEY_MODE] = { "mode", DATATYPE, modes,
                   "no scale mode (max, floor, auto, midmax, topbinade, option3, ceil, mse)" },
    [KEY_STORE] = { "store", DATATYPE, stores, "no way to store codes (packed, unpacked, e4m3fn, e5m2)" },
    [KEY_DIALECT] = { "dialect", DATATYPE, dialects, "no dialect (ocp, ggml)" },
    [KEY_ROTATE] = { "rotate", DATATYPE, NULL,
                     "no rotation (none, hadamardN, walshN, hadamardN:SEED, walshN:SEED; N is 4, 8 ... "
                     "128)" },
    [KEY_VIRTUAL] = { "virtual", DATATYPE | SPARSE, answers, "neither yes nor no" },
    [KEY_FRAC] = { "frac", FIXED, NULL, "neither auto, least nor a number from -127 to 126" },
    [KEY_COMPAT] = { "compat", ELEMENTS | CODES, compats, "not \"mli\"" },
};

static bool set_zero(tn_cast_rule *rule, tn_text value)
{
    int found = 0;
    rule->quantize.symmetric = tn_rule_word_take(zeros, value, &found) && found;
    return rule->quantize.symmetric || tn_text_is(value, "asymmetric") || tn_rule_int32(value, &rule->zero);
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
           tn_rotation_parse(text, &rule->scaled.rotation, NULL) == TN_OK;
}

/* Packed codes, codes a byte each, or the numbers that they are, in a type of a byte. */
static void set_store(tn_cast_rule *rule, int found)
{
    rule->scaled.unpacked = found != 0;
    rule->scaled.store = found > 1 ? (tn_dtype)found : TN_UNKNOWN;
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
    case KEY_NAN:      o->nan = (tn_nan)found; return true;
    case KEY_COMPLEX:  o->drop_imaginary = true; return true;
    case KEY_SEED:     return tn_rule_number(value, &o->seed);
    case KEY_TIMES:    return take_float(value, &o->scale);
    case KEY_PER:      return true;
    case KEY_AXIS:     return tn_rule_text(value, rule->axis, sizeof rule->axis);
    case KEY_ZERO:     return set_zero(rule, value);
    case KEY_MODE:     rule->scaled.mode = (tn_scale_mode)found; return true;
    case KEY_STORE:    set_store(rule, found); return true;
    case KEY_DIALECT:  rule->scaled.ggml = found; return true;
    case KEY_ROTATE:   return set_rotation(rule, value);
    case KEY_VIRTUAL:  rule->is_virtual = found; return true;
    case KEY_FRAC:     return set_frac(rule, value);
    case KEY_COMPAT:   rule->quantize.arithmetic = (tn_arithmetic)found; return true;
    case KEY_SCALE:    return take_float(value, &rule->scale) && rule->scale > 0;
    default:
        return tn_rule_double(value, &rule->quantize.percentile) && rule->quantize.percentile > 0 &&
               rule->quantize.percentile <= 100;
    }
}

static tn_status no_such_key(const tn_rule_reading *r, tn_text key)
{
    switch (r->makes) {
    case DATATYPE:
        return tn_rule_fail(r, key,
                            "no key of a datatype (round, nan, seed, mode, store, dialect, rotate, virtual)");
    case SPARSE:
        return tn_rule_fail(r, key, "no key of N:M (virtual)");
    case FIXED:
        return tn_rule_fail(r, key, "no key of fx8 and fx16 (frac, round, nan, seed, compat)");
    case AFFINE:
        return tn_rule_fail(
            r, key, "no key of sa8 and sa32 (per, axis, zero, percentile, scale, round, nan, seed, compat)");
    default:
        return tn_rule_fail(r, key,
                            "no key of an element type (round, overflow, nan, seed, times, complex, per, "
                            "axis, zero, percentile, "
                            "scale, compat)");
    }
}

static tn_status read_pair(tn_rule_reading *r, tn_text pair, tn_cast_rule *rule)
{
    tn_text key = { NULL, 0 }, value = { NULL, 0 };
    tn_status status = tn_rule_pair(r, pair, &key, &value);
    if (status)
        return status;
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
    if (i == KEY_ZERO && !rule->quantize.symmetric && !tn_text_is(value, "asymmetric"))
        r->seen |= 1u << ZERO_BY_NUMBER;
    return TN_OK;
}

static bool seen(const tn_rule_reading *r, unsigned key) { return r->seen >> key & 1; }

/* The last word about codes with scales. */
static tn_status settle_codes(const tn_rule_reading *r, tn_cast_rule *rule)
{
    tn_quantize_options *q = &rule->quantize;
    tn_round round = rule->options.round;
    tn_error why;
    int64_t range[2];
    q->size = sizeof *q;
    q->round = round;
    q->nan = rule->options.nan;
    q->seed = rule->options.seed;
    if (q->arithmetic == TN_ARITH_MLI && round != TN_ROUND_AWAY && round != TN_ROUND_HALF_UP &&
        round != TN_ROUND_EVEN)
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "compat=mli rounds values away, codes half_up or even, but found round=%s",
                       tn_rule_word_for(rounds, (int)round));
    if (tn_code_range(rule->dtype, q, range, &why))
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "%s", why.text);
    if (r->makes == AFFINE) {               /* MLI's zero points have 16 bits, whatever codes have */
        range[0] = INT16_MIN;
        range[1] = INT16_MAX;
    }
    if (rule->zero < range[0] || rule->zero > range[1])
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "expected a zero point from %lld to %lld but found %d", (long long)range[0],
                       (long long)range[1], rule->zero);
    return TN_OK;
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
    int last = exponent - AFFINE_BITS < TN_SHORT_SCALE_LEAST ? TN_SHORT_SCALE_LEAST : exponent - AFFINE_BITS;
    float steps = ldexpf(rule->scale, -last), low = floorf(steps);
    if (steps == low)
        return TN_OK;
    return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                   "expected a scale of at most %d significant bits, none below 2^%d, but found %s: "
                   "the nearest are %s and %s",
                   AFFINE_BITS, TN_SHORT_SCALE_LEAST, number_text(rule->scale).text,
                   number_text(ldexpf(low, last)).text, number_text(ldexpf(low + 1, last)).text);
}

/* What the keys say about each other. */
static tn_status check_keys(const tn_rule_reading *r, const tn_cast_rule *rule)
{
    bool channel = seen(r, AXIS_IS_DUE),
         of_scales = seen(r, KEY_AXIS) || seen(r, KEY_ZERO) || seen(r, KEY_PERCENTILE) || seen(r, KEY_SCALE);
    const char *wrong = NULL;
    if (of_scales && !rule->quantized)
        wrong =
            "axis, zero, percentile and scale need per=tensor or per=channel (times=N multiplies each value)";
    else if (channel != seen(r, KEY_AXIS))
        wrong = "per=channel and axis=DIMENSION go together";
    else if (rule->quantized && (seen(r, KEY_TIMES) || seen(r, KEY_OVERFLOW) || seen(r, KEY_COMPLEX)))
        wrong = "times, overflow and complex are not for codes with scales, which saturate";
    else if (seen(r, KEY_PERCENTILE) && seen(r, KEY_SCALE))
        wrong = "a scale is given or found by a percentile, not both";
    else if (seen(r, ZERO_BY_NUMBER) && !seen(r, KEY_SCALE))
        wrong = "a zero point by number needs a scale too";
    else if (seen(r, KEY_ZERO) && seen(r, KEY_SCALE) && !rule->quantize.symmetric && !seen(r, ZERO_BY_NUMBER))
        wrong = "zero=asymmetric finds zero points for scales that are found: beside a scale say zero=NUMBER";
    else if (r->makes == ELEMENTS && seen(r, KEY_COMPAT) &&
             (rule->quantized || tn_dtype_get(rule->dtype)->kind != TN_KIND_FLOAT))
        wrong = "compat=mli is for fx8, fx16, sa8 and sa32, and for the float types that they become";
    else if (rule->dtype == TN_INT32 && r->makes == AFFINE && seen(r, KEY_ZERO) &&
             !rule->quantize.symmetric && !seen(r, ZERO_BY_NUMBER))
        wrong = "sa32 is symmetric or has a zero point by number: one that is found would not fit the 16 "
                "bits it has";
    return wrong ? tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET, "%s", wrong) : TN_OK;
}

static tn_status settle_elements(const tn_rule_reading *r, tn_cast_rule *rule)
{
    tn_quantize_options *q = &rule->quantize;
    tn_status status = check_keys(r, rule);
    if (status || !rule->quantized)
        return status;
    q->rule = seen(r, KEY_SCALE)        ? TN_SCALE_GIVEN
              : seen(r, KEY_PERCENTILE) ? TN_SCALE_PERCENTILE
                                        : TN_SCALE_RANGE;
    if (!seen(r, KEY_ZERO))
        q->symmetric = tn_dtype_get(rule->dtype)->kind == TN_KIND_INT;
    if (r->makes == AFFINE && q->rule == TN_SCALE_GIVEN)
        status = check_affine_scale(r, rule);
    return status ? status : settle_codes(r, rule);
}

static tn_status settle_datatype(const tn_rule_reading *r, tn_cast_rule *rule)
{
    tn_scaled_options *o = &rule->scaled;
    tn_round round = rule->options.round;
    if (round != TN_ROUND_EVEN && round != TN_ROUND_AWAY && round != TN_ROUND_ZERO &&
        round != TN_ROUND_STOCHASTIC)
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "a datatype rounds even, away, zero or stochastic but found %s",
                       tn_rule_word_for(rounds, (int)round));
    if (rule->is_virtual && seen(r, KEY_STORE))
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "store says how codes are stored, but a virtual cast has none");
    o->size = sizeof *o;
    o->round = round;
    o->nan = rule->options.nan;
    o->seed = rule->options.seed;
    if (o->ggml && (round != TN_ROUND_EVEN || o->mode != TN_SCALE_FLOOR))
        return tn_fail(r->err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "dialect=ggml has ties and a scale rule of its own, but found round=%s and "
                       "mode=%s",
                       tn_rule_word_for(rounds, (int)round), tn_rule_word_for(modes, (int)o->mode));
    return tn_scaled_check(rule->datatype, o, r->err);
}

/* What becomes of values beyond all codes that have scales is no choice: a default that asks for anything
 * else is not passed over. */
tn_status tn_cast_rule_check(const tn_cast_rule *rule, tn_error *err)
{
    tn_overflow overflow = rule->options.overflow;
    if (!rule->quantized && !rule->datatype)
        return TN_OK;
    bool exact = rule->datatype && tn_datatype_is_exact(rule->datatype),
         mli = rule->quantize.arithmetic == TN_ARITH_MLI;
    const char *fact = "codes with scales saturate";
    if (exact)
        fact = "N:M without scales overflows as casts do by default";
    else if (rule->datatype)
        fact = "a datatype saturates";
    else if (mli)
        fact = "compat=mli overflows as MLI does";
    if (overflow == TN_OVERFLOW_DEFAULT || (overflow == TN_OVERFLOW_SATURATE && !exact && !mli))
        return TN_OK;
    return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                   "%s, and overflow %s is for element types only: say it in their rules, as in "
                   "f16,overflow=%s",
                   fact, tn_rule_word_for(overflows, (int)overflow),
                   tn_rule_word_for(overflows, (int)overflow));
}

static tn_status settle_keys(const tn_rule_reading *r, tn_cast_rule *rule)
{
    if (r->makes == DATATYPE)
        return settle_datatype(r, rule);
    if (r->makes == SPARSE)
        return TN_OK;
    rule->is_virtual = false;
    if (r->makes & CODES && !rule->round_given)
        rule->options.round = TN_ROUND_AWAY;
    return r->makes == FIXED ? settle_codes(r, rule) : settle_elements(r, rule);
}

static tn_status settle_cast(const tn_rule_reading *r, tn_cast_rule *rule)
{
    tn_status status = settle_keys(r, rule);
    return status ? status : tn_cast_rule_check(rule, r->err);
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

static tn_status read_datatype(const tn_rule_reading *r, tn_text type, tn_cast_rule *rule)
{
    tn_arena arena = { 0 };
    tn_error why;
    const char *text = tn_arena_text(&arena, type.ptr, type.len);
    tn_status status = text ? tn_datatype_load(text, &rule->datatype, &why) : tn_fail_nomem(&why);
    tn_arena_free(&arena);
    if (status == TN_ERR_ARGUMENT && !looks_like_datatype(type))
        return tn_rule_fail(r, type,
                            "no type (see: tenon types, tenon datatypes; also fx8, fx16, sa8, sa32)");
    if (status && r->err)
        *r->err = why;
    return status;
}

/* Codes of all bits of their type, as firmware has them: exact unless compat says otherwise. */
static void read_firmware(unsigned makes, tn_dtype codes, tn_cast_rule *rule)
{
    int64_t highest = (INT64_C(1) << (tn_dtype_get(codes)->bits - 1)) - 1;
    rule->dtype = codes;
    rule->quantized = true;
    rule->has_zeros = makes == AFFINE;
    rule->quantize.symmetric = true;
    rule->quantize.rule = makes == FIXED ? TN_SCALE_POWER : TN_SCALE_RANGE;
    rule->quantize.range[0] = -highest - 1;
    rule->quantize.range[1] = highest;
    rule->quantize.arithmetic = TN_ARITH_EXACT;
    rule->quantize.scale_bits = makes == AFFINE ? AFFINE_BITS : 0;
}

static bool is_firmware(tn_text type, tn_dtype element, size_t i)
{
    return element ? element == firmware[i].element
                   : type.len == strlen(firmware[i].name) &&
                         strncasecmp(type.ptr, firmware[i].name, type.len) == 0;
}

static tn_status read_type(tn_rule_reading *r, tn_text type, tn_cast_rule *rule)
{
    char name[64] = "";
    if (looks_like_sparsity(type)) {
        r->makes = SPARSE;
        return read_sparsity(r, type, rule);
    }
    tn_rule_text(type, name, sizeof name);
    tn_dtype element = tn_dtype_parse(name);
    for (size_t i = 0; i < sizeof firmware / sizeof *firmware; i++) {
        if (is_firmware(type, element, i)) {
            r->makes = firmware[i].makes;
            read_firmware(r->makes, firmware[i].codes, rule);
            return TN_OK;
        }
    }
    rule->dtype = element;
    r->makes = element ? ELEMENTS : DATATYPE;
    return element ? TN_OK : read_datatype(r, type, rule);
}

const char *tn_cast_rule_type(const tn_cast_rule *rule)
{
    bool is_firmwares = rule->quantized && rule->quantize.arithmetic != TN_ARITH_BINARY32;
    for (size_t i = 0; i < sizeof firmware / sizeof *firmware && is_firmwares; i++)
        if (rule->dtype == firmware[i].codes && rule->has_zeros == (firmware[i].makes == AFFINE))
            return firmware[i].name;
    return tn_dtype_get(rule->dtype)->name;
}

static void take_defaults(tn_cast_rule *rule, const tn_cast_rule *defaults)
{
    if (defaults) {
        tn_take_options(&rule->options, sizeof rule->options, &defaults->options);
        tn_take_options(&rule->scaled, sizeof rule->scaled, &defaults->scaled);
        rule->is_virtual = defaults->is_virtual;
        rule->round_given = defaults->round_given || rule->options.round != TN_ROUND_EVEN;
    }
    rule->options.size = sizeof rule->options;
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
    rule->datatype = NULL;
}
