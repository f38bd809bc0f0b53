/* quant/tile_scale.c - the scale and zero point of a group of values.
 *
 * They follow from the range.  TN_SCALE_MSE tries several:
 *
 *     exponents        that of TN_SCALE_MAX, one more, one less
 *     floats           the scale of the range, then 5/16 to 25/16 of it: smaller
 *                      scales saturate the largest values, larger ones may move
 *                      many values closer to a number
 *     with zero points both ends of the range times 16, 15, 14, 12 and 9
 *                      sixteenths, in all combinations */
#include "quant/tile.h"

#include <float.h>
#include <math.h>

const float tn_range_ends[TN_RANGE_ENDS] = { 16 / 16.0f, 15 / 16.0f, 14 / 16.0f, 12 / 16.0f, 9 / 16.0f };

typedef struct search {
    const tn_datatype       *d;
    const tn_quantize_options *o;
    const tn_number_spec    *compute;
    tn_coder scale, zero;
    float    top;               /* float scales: the largest value becomes this number */
    float    tensor_scale;
    uint64_t index;
} search;

static float top_of(const tn_datatype *d)
{
    const tn_number_spec *n = &d->number;
    return n->kind == TN_NUMBER_INT || n->kind == TN_NUMBER_UINT ? (float)n->maxint
                                                                 : tn_compute_spec(d)->maxfloat;
}

static search search_for(const tn_datatype *d, const tn_quantize_options *o, float tensor_scale,
                         uint64_t index)
{
    /* NVFP4 rounds the scale of a block to nearest even whatever the mode. */
    tn_round round = d->has_tensor_scale ? TN_ROUND_EVEN : o->round;
    search s = {
        .d = d, .o = o, .compute = tn_compute_spec(d), .top = top_of(d), .tensor_scale = tensor_scale,
        .index = index,
        .scale = tn_coder_for(&d->scale, round, o->seed, TN_DRAW_SCALE),
    };
    if (d->has_zero)
        s.zero = tn_coder_for(&d->zero, o->round, o->seed, TN_DRAW_ZERO);
    return s;
}

/* A scale divided by the scale of the tensor. */
static float relative(const search *s, float x)
{
    return s->d->has_tensor_scale ? x / s->tensor_scale : x;
}

/* The value of a scale code times the scale of the tensor. */
static float absolute(const search *s, uint32_t code)
{
    float value = tn_scale_value(s->d, code, 0);
    return s->d->has_tensor_scale ? value * s->tensor_scale : value;
}

float tn_scale_value(const tn_datatype *d, uint32_t code, unsigned offset)
{
    float value = tn_spec_value(&d->scale, code);
    return offset ? ldexpf(value, -(int)offset) : value;
}

/* --- exponents ------------------------------------------------------------- */

/* ggml rounds the logarithm to float32: just below an integer it may become that
 * integer. */
static int ggml_exponent(float a)
{
    return (int)floorf((float)log2((double)a)) - 2;
}

/* Whether the rule makes the exponent one larger; m is the largest magnitude divided by the scale. */
static bool is_bumped(const tn_number_spec *n, tn_scale_rule mode, double m)
{
    bool is_float = n->exponent_bits > 1;
    switch (mode) {
    case TN_SCALE_MIDMAX:
        return is_float && m > n->midmax;
    case TN_SCALE_TOPBINADE:
        return is_float && m > (double)n->maxfloat;
    case TN_SCALE_OPTION3:
        return is_float && rint(ldexp(m, n->mantissa_bits - n->emax)) >= ldexp(1, n->mantissa_bits + 1);
    case TN_SCALE_CEIL:
        return m > (double)n->maxfloat;
    default:
        return false;
    }
}

int tn_scale_exponent(const tn_datatype *d, const tn_quantize_options *o, float a)
{
    const tn_number_spec *n = tn_compute_spec(d);
    if (o->ggml)
        return ggml_exponent(a);
    int e = ilogbf(a) - n->emax;
    return e + is_bumped(n, o->rule, ldexp((double)a, -e));
}

int32_t tn_scale_bump(const tn_number_spec *n, tn_scale_rule mode)
{
    const int32_t whole = 1 << 23;
    bool is_float = n->exponent_bits > 1;
    double limit = mode == TN_SCALE_MIDMAX ? n->midmax : (double)n->maxfloat;
    if (mode == TN_SCALE_MAX || mode == TN_SCALE_MSE || (!is_float && mode != TN_SCALE_CEIL))
        return 0;
    if (mode == TN_SCALE_OPTION3)
        return whole >> (n->mantissa_bits + 1);
    return whole - 1 - (int32_t)ldexp(ldexp(limit, -n->emax) - 1, 23);
}

/* The largest code is NaN, the one before it the largest exponent. */
static uint32_t exponent_code(const tn_number_spec *scale, int e)
{
    int code = e + scale->bias, largest = (1 << scale->exponent_bits) - 2;
    if (code < 0)
        return 0;
    return (uint32_t)(code < largest ? code : largest);
}

/* --- any scale --------------------------------------------------------------- */

static bool is_exponent(const search *s)
{
    return s->d->scale.kind == TN_NUMBER_EXPONENT;
}

static uint32_t float_code(const search *s, float value)
{
    return tn_coder_float(&s->scale, relative(s, value), s->index);
}

static uint32_t last_scale(const search *s)
{
    return is_exponent(s) ? exponent_code(&s->d->scale, INT16_MAX)
                          : tn_coder_float(&s->scale, s->d->scale.maxfloat, 0);
}

/* The largest scale at which the largest number is finite.  Starts at or just above their quotient. */
static uint32_t largest_scale(const search *s)
{
    float top = is_exponent(s) ? s->compute->maxfloat : s->top, value = relative(s, FLT_MAX / top);
    tn_coder down = tn_coder_for(&s->d->scale, TN_ROUND_TRUNC, 0, TN_DRAW_SCALE);
    uint32_t last = last_scale(s), code = last;
    if (is_exponent(s) && isfinite(value))
        code = exponent_code(&s->d->scale, ilogbf(value) + 1);
    else if (!is_exponent(s))
        code = tn_coder_float(&down, value, 0) + 1;
    if (code > last)
        code = last;
    while (code > 0 && isinf(top * absolute(s, code)))
        code--;
    return code;
}

static unsigned add(tn_tile_choice *choices, unsigned n, uint32_t scale, uint32_t zero)
{
    for (unsigned i = 0; i < n; i++)
        if (choices[i].scale == scale && choices[i].zero == zero)
            return n;
    choices[n] = (tn_tile_choice){ scale, zero, TN_EVERY_MAPPING };
    return n + 1;
}

static unsigned exponent_choices(const search *s, float largest, tn_tile_choice *choices)
{
    int e = tn_scale_exponent(s->d, s->o, largest);
    unsigned n = add(choices, 0, exponent_code(&s->d->scale, e), 0);
    if (s->o->rule == TN_SCALE_MSE) {
        n = add(choices, n, exponent_code(&s->d->scale, e + 1), 0);
        n = add(choices, n, exponent_code(&s->d->scale, e - 1), 0);
    }
    return n;
}

static unsigned float_choices(const search *s, float largest, tn_tile_choice *choices)
{
    float value = largest / s->top;
    unsigned n = add(choices, 0, float_code(s, value), 0);
    for (int k = TN_RATIO_LOW; k <= TN_RATIO_HIGH && s->o->rule == TN_SCALE_MSE; k++)
        n = add(choices, n, float_code(s, value * ((float)k / 16)), 0);
    return n;
}

/* --- zero points ----------------------------------------------------------------- */

/* The zero point of a range from `low`, not clamped. */
static int32_t zero_of(const search *s, float low, uint32_t scale)
{
    return tn_coder_integer(&s->zero, -low / absolute(s, scale), 0, INT32_MAX, s->index);
}

/* If an integer zero point is too large for its type, the scale is increased until it fits. */
static unsigned add_with_zero(const search *s, float low, float high, tn_tile_choice *choices, unsigned n)
{
    float step = (high - low) / s->top;
    uint32_t scale = float_code(s, step), last = last_scale(s);
    int32_t zero, largest = s->d->zero.maxint;
    if (absolute(s, scale) == 0)
        return add(choices, n, scale, 0);
    if (s->d->zero.kind == TN_NUMBER_FLOAT)
        return add(choices, n, scale, low < 0 ? tn_coder_float(&s->zero, -low, s->index) : 0);
    zero = zero_of(s, low, scale);
    if (zero > largest) {
        float wanted = -low / (float)largest;
        scale = float_code(s, step > wanted ? step : wanted);
        while ((zero = zero_of(s, low, scale)) > largest && scale < last)
            scale++;
    }
    return add(choices, n, scale, (uint32_t)(zero < largest ? zero : largest));
}

static unsigned zero_choices(const search *s, float low, float high, tn_tile_choice *choices)
{
    unsigned n = add_with_zero(s, low, high, choices, 0);
    if (s->o->rule != TN_SCALE_MSE)
        return n;
    for (int i = 0; i < TN_RANGE_ENDS; i++)
        for (int k = 0; k < TN_RANGE_ENDS; k++)
            n = add_with_zero(s, low * tn_range_ends[i], high * tn_range_ends[k], choices, n);
    return n;
}

unsigned tn_tile_choices(const tn_datatype *d, const tn_quantize_options *o, const tn_tile_range *range,
                         float tensor_scale, uint64_t index, tn_tile_choice *choices)
{
    if (d->scope == TN_SCOPE_NONE || (range->largest == 0 && !range->infinite))
        return add(choices, 0, 0, 0);
    search s = search_for(d, o, tensor_scale, index);
    if (range->largest == 0)
        return add(choices, 0, largest_scale(&s), 0);
    if (d->has_zero)
        return zero_choices(&s, range->low, range->high, choices);
    if (is_exponent(&s))
        return exponent_choices(&s, range->largest, choices);
    return float_choices(&s, range->largest, choices);
}

/* --- the scale of a tensor ----------------------------------------------------------- */

uint32_t tn_tensor_scale_for(const tn_datatype *d, const tn_quantize_options *o, const tn_tile_range *range)
{
    tn_coder coder = tn_coder_for(&d->tensor_scale, o->round, o->seed, TN_DRAW_TENSOR_SCALE);
    tn_coder down = tn_coder_for(&d->tensor_scale, TN_ROUND_TRUNC, 0, TN_DRAW_TENSOR_SCALE);
    float top = d->scale.maxfloat * top_of(d);
    if (isinf(top))             /* scales have the range of float32: scales of tiles are at most 1 */
        top = top_of(d);
    if (range->largest == 0 && !range->infinite)
        return tn_coder_float(&coder, 1, 0);
    if (range->largest == 0)
        return tn_coder_float(&down, FLT_MAX / top, 0);
    return tn_coder_float(&coder, range->largest / top, 0);
}
