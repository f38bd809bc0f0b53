/* quant/scaled_search_least.c - scales and zero points with the least squared error,
 * of those that tile_scale.c lists. */
#include "quant/scaled_search.h"

#include <math.h>

/* --- scales to try ------------------------------------------------------------------------------ */

static tn_search_float float_of(const tn_number_spec *n)
{
    return (tn_search_float){ .wide = tn_search_is_wide(n), .number = tn_search_number_of(n) };
}

/* The code and the value of the number nearest to x >= 0. */
static uint32_t code_near(const tn_search_float *f, float x, float *value)
{
    const tn_search_number *n = &f->number;
    uint32_t bits = tn_float_bits(x < n->most ? x : n->most), code;
    if (f->wide) {
        code = n->shift ? (bits + (UINT32_C(1) << (n->shift - 1)) - 1 + (bits >> n->shift & 1)) >> n->shift
                        : bits;
        *value = tn_float_of(code << n->shift);
        return code;
    }
    uint32_t exponent = bits & TN_BITS_INFINITE;
    exponent = exponent > n->lowest ? exponent : n->lowest;
    float magic = tn_float_of(exponent + n->above), sum = tn_float_of(bits) + magic;
    *value = sum - magic;
    return tn_float_bits(sum) - tn_float_bits(magic) + ((exponent - n->lowest) >> n->shift);
}

tn_search_trials tn_search_trials_of(const tn_scaled_plan *p, float tensor_scale)
{
    const tn_datatype *d = p->d;
    bool power = tn_search_is_power(d);
    tn_search_trials r = { .count = power ? 3 : 2 + TN_RATIO_HIGH - TN_RATIO_LOW, .is_power = power,
                           .relative = d->has_tensor_scale,
                           .tensor_scale = d->has_tensor_scale ? tensor_scale : 1 };
    if (power) {
        r.power = tn_search_powers_of(p);
        return r;
    }
    r.scale = float_of(&d->scale);
    r.top = d->number.kind == TN_NUMBER_INT ? (float)d->number.maxint : tn_compute_spec(d)->maxfloat;
    return r;
}

/* Trial 0 is the exponent of TN_SCALE_MAX, 1 is one more, 2 is one less. */
static bool try_power(const tn_search_trials *r, tn_search_scratch *w, size_t tiles, unsigned trial)
{
    for (size_t k = 0; k < tiles; k++) {
        int32_t code = tn_search_code(&r->power, w->largest[k], (trial == 1) - (trial == 2));
        w->own.scale[k] = (uint32_t)code;
        if (w->largest[k] && !tn_search_set_power(&r->power, code, &w->own.factor[k], &w->own.step[k]))
            return false;
    }
    return true;
}

/* With a scale of 0 all codes are 0, as with a divisor of infinity. */
static float divisor(float scale)
{
    return scale == 0 ? INFINITY : scale;
}

/* Trial 0 is the scale of the range, the others are sixteenths of it. */
static void try_float(const tn_search_trials *r, tn_search_scratch *w, size_t tiles, unsigned trial)
{
    float ratio = trial ? (float)(TN_RATIO_LOW + trial - 1) / 16 : 1;
    for (size_t k = 0; k < tiles; k++) {
        float wanted = tn_float_of(w->largest[k]) / r->top * ratio, value;
        w->own.scale[k] = code_near(&r->scale, r->relative ? wanted / r->tensor_scale : wanted, &value);
        w->own.step[k] = value * r->tensor_scale;
        w->own.factor[k] = divisor(w->own.step[k]);
    }
}

/* Tiles of zeros have scale code 0. */
static void set_zero_tiles(tn_search_scratch *w, size_t tiles)
{
    for (size_t k = 0; k < tiles; k++)
        if (w->largest[k] == 0) {
            w->own.scale[k] = 0;
            w->own.factor[k] = 1;
            w->own.step[k] = 0;
        }
}

void tn_search_take_better(tn_search_scratch *w, size_t tiles, bool first)
{
    for (size_t k = 0; k < tiles; k++) {
        if (!first && !(w->sums[k] < w->least[k]))
            continue;
        w->least[k] = w->sums[k];
        w->best.scale[k] = w->own.scale[k];
        w->best.zero[k] = w->own.zero[k];
        w->best.factor[k] = w->own.factor[k];
        w->best.step[k] = w->own.step[k];
        w->best.shift[k] = w->own.shift[k];
    }
}

bool tn_search_are_normal(const tn_search_scratch *w, size_t tiles)
{
    for (size_t k = 0; k < tiles; k++)
        if (w->largest[k] && (w->largest[k] < TN_BITS_NORMAL || w->largest[k] >= TN_BITS_INFINITE))
            return false;
    return true;
}

bool tn_search_set_trial(const tn_search_trials *r, tn_search_scratch *w, size_t tiles, unsigned trial)
{
    if (!r->is_power)
        try_float(r, w, tiles, trial);
    else if (!try_power(r, w, tiles, trial))
        return false;
    set_zero_tiles(w, tiles);
    return true;
}

/* --- zero points ----------------------------------------------------------------------------------- */

/* Constants for trials with zero points: ranges with lower ends. */
typedef struct zeros {
    const tn_datatype *d;
    tn_search_float scale, zero;
    float    top;
    uint32_t last;              /* the largest scale code */
} zeros;

static zeros zeros_of(const tn_datatype *d)
{
    zeros r = { .d = d, .scale = float_of(&d->scale), .top = (float)d->number.maxint };
    float value;
    if (d->zero.kind == TN_NUMBER_FLOAT)
        r.zero = float_of(&d->zero);
    r.last = code_near(&r.scale, d->scale.maxfloat, &value);
    return r;
}

/* The integer zero point of a range from `low`; the scale is not 0. */
static float zero_near(float low, float scale)
{
    return rintf(-low / scale);
}

/* Increases the scale until the zero point fits its type. */
static void increase_scale(const zeros *r, float low, float step, tn_search_scales *to, size_t k)
{
    float largest = (float)r->d->zero.maxint, wanted = -low / largest;
    to->scale[k] = code_near(&r->scale, step > wanted ? step : wanted, &to->step[k]);
    while (zero_near(low, to->step[k]) > largest && to->scale[k] < r->last)
        to->step[k] = tn_scale_value(r->d, ++to->scale[k], 0);
    to->shift[k] = fminf(zero_near(low, to->step[k]), largest);
}

static void try_range(const zeros *r, float low, float high, tn_search_scales *to, size_t k)
{
    float step = (high - low) / r->top;
    bool whole = r->d->zero.kind == TN_NUMBER_INT;
    to->scale[k] = code_near(&r->scale, step, &to->step[k]);
    to->shift[k] = 0;
    to->zero[k] = 0;
    if (to->step[k] != 0 && !whole) {
        to->zero[k] = low < 0 ? code_near(&r->zero, -low, &to->shift[k]) : 0;
    } else if (to->step[k] != 0) {
        to->shift[k] = zero_near(low, to->step[k]);
        if (to->shift[k] > (float)r->d->zero.maxint)
            increase_scale(r, low, step, to, k);
        to->zero[k] = (uint32_t)to->shift[k];
    }
    to->factor[k] = divisor(to->step[k]);
}

static bool are_finite(const tn_search_scratch *w, size_t tiles)
{
    for (size_t k = 0; k < tiles; k++)
        if ((w->high[k] >= TN_BITS_INFINITE && !(w->high[k] >> 31)) ||
            w->low[k] >= (UINT32_C(1) << 31 | TN_BITS_INFINITE))
            return false;
    return true;
}

static void set_ranges(const zeros *r, tn_search_scratch *w, size_t tiles, unsigned trial)
{
    for (size_t k = 0; k < tiles; k++) {
        float low = w->low[k] >> 31 ? tn_float_of(w->low[k]) : 0,
              high = w->high[k] >> 31 ? 0 : tn_float_of(w->high[k]);
        try_range(r, low * tn_range_ends[trial / TN_RANGE_ENDS], high * tn_range_ends[trial % TN_RANGE_ENDS],
                  &w->own, k);
    }
}

/* --- the least error ------------------------------------------------------------------------------ */

static bool try_scales(const tn_search_tables *kernels, const tn_search_trials *r,
                       const tn_search_tiles *tiles, tn_search_scratch *w)
{
    kernels->encode->largest(w->largest, tiles->x, tiles->count, tiles->size);
    if (!tn_search_are_normal(w, tiles->count))
        return false;
    for (unsigned i = 0; i < r->count; i++) {
        if (!tn_search_set_trial(r, w, tiles->count, i))
            return false;
        kernels->search->squares(w->sums, tiles);
        tn_search_take_better(w, tiles->count, i == 0);
    }
    return true;
}

static bool try_zeros(const tn_search_tables *kernels, const zeros *r, const tn_search_tiles *tiles,
                      tn_search_scratch *w)
{
    kernels->encode->ends(w->high, w->low, tiles->x, tiles->count, tiles->size);
    if (!are_finite(w, tiles->count))
        return false;
    for (unsigned i = 0; i < TN_RANGE_ENDS * TN_RANGE_ENDS; i++) {
        set_ranges(r, w, tiles->count, i);
        kernels->search->squares(w->sums, tiles);
        tn_search_take_better(w, tiles->count, i == 0);
    }
    return true;
}

/* Encodes with the best scales; long tiles in parts, because codes have little memory. */
static void encode_best(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t,
                        const tn_search_tiles *tiles, tn_search_scratch *w)
{
    const size_t most = TN_SEARCH_FEWEST * TN_SEARCH_LARGEST;
    tn_tiles part = *t;
    tn_search_tiles some = *tiles;
    w->own = w->best;
    for (size_t i = 0; i < t->size; i += part.size) {
        part.size = some.size = t->size - i < most ? t->size - i : most;
        some.x = tiles->x + i;
        part.data = t->data + tn_scaled_field_bytes(p->data.bits, i);
        kernels->search->encode(tn_search_codes_to(p, &part, w), &some);
        tn_search_put_codes(kernels, p, &part, w);
    }
    tn_search_put_scales(kernels, p, t, &w->own);
}

bool tn_search_encode_least(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t)
{
    const tn_datatype *d = p->d;
    const tn_search_trials r = tn_search_trials_of(p, t->tensor_scale);
    const zeros z = d->has_zero ? zeros_of(d) : (zeros){ .d = d };
    tn_search_scratch w;
    if (!(r.tensor_scale > 0 && isfinite(r.tensor_scale)))
        return false;
    for (size_t first = 0, n; first < t->count; first += n) {
        tn_tiles some = tn_search_next(p, t, first);
        const tn_search_tiles tiles = { .x = some.x, .count = some.count, .size = some.size,
                                        .factor = w.own.factor,
                                        .step = w.own.step, .shift = d->has_zero ? w.own.shift : NULL,
                                        .whole = d->zero.kind == TN_NUMBER_INT,
                                        .divide = !r.is_power, .number = tn_search_number_of(&d->number) };
        n = some.count;
        if (!(d->has_zero ? try_zeros(kernels, &z, &tiles, &w) : try_scales(kernels, &r, &tiles, &w)))
            return false;
        encode_best(kernels, p, &some, &tiles, &w);
    }
    return true;
}
