/* quant/tile.c - encode and decode one tile: the definition. */
#include "quant/tile.h"

#include <math.h>
#include <stdlib.h>

/* What the codes of one subtile, or of a whole tile, mean. */
typedef struct level {
    float   scale;
    float   shift;              /* uint: a float zero point, in units of x */
    int32_t zero;               /* uint: an integer zero point, in units of codes */
    const float *mapping;       /* codebooks: magnitudes by rank */
} level;

typedef struct encoder {
    const tn_datatype       *d;
    const tn_quantize_options *o;
    tn_coder number;
    tn_tile *t;
} encoder;

static bool is_codebook(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_CODEBOOK;
}

static bool is_kept(const tn_datatype *d, const tn_tile *t, size_t i)
{
    return d->of == 0 || t->mask[i];
}

/* Values of a subtile, kept and dropped. */
static size_t unit_size(const tn_datatype *d, size_t n)
{
    if (d->subtile == 0)
        return n;
    return d->of ? (size_t)d->subtile / d->keep * d->of : d->subtile;
}

size_t tn_tile_units(const tn_datatype *d, size_t n)
{
    return d->subtile ? n / unit_size(d, n) : 1;
}

/* --- the value of a code ------------------------------------------------------- */

static level level_of(const tn_datatype *d, float tensor_scale, uint32_t scale, uint32_t zero,
                      unsigned offset, uint32_t mapping)
{
    level l = { .scale = 1 };
    if (d->scope != TN_SCOPE_NONE)
        l.scale = tn_scale_value(d, scale, offset);
    if (d->has_tensor_scale)
        l.scale *= tensor_scale;
    if (d->has_zero && d->zero.kind == TN_NUMBER_FLOAT)
        l.shift = tn_spec_value(&d->zero, zero);
    else if (d->has_zero)
        l.zero = tn_spec_integer(&d->zero, zero);
    if (is_codebook(d))
        l.mapping = d->codebook.value + (size_t)mapping * d->codebook.values;
    return l;
}

static float codebook_value(const tn_datatype *d, const level *l, uint32_t code)
{
    float magnitude = l->mapping[code & (d->codebook.values - 1)];
    return code & d->codebook.values ? -magnitude : magnitude;
}

static float value_of(const tn_datatype *d, const level *l, uint32_t code)
{
    float value;
    if (tn_datatype_is_exact(d))
        return tn_spec_exact(&d->number, code);
    code &= (UINT32_C(2) << (d->number.bits - 1)) - 1;
    switch (d->number.kind) {
    case TN_NUMBER_CODEBOOK:
        value = codebook_value(d, l, code) * l->scale;
        break;
    case TN_NUMBER_INT:
        value = ldexpf((float)tn_spec_integer(&d->number, code), -tn_point_of(d)) * l->scale;
        break;
    case TN_NUMBER_UINT:
        if (d->zero.kind == TN_NUMBER_FLOAT)
            value = l->scale * (float)code - l->shift;
        else
            value = l->scale * (float)((int64_t)code - l->zero);
        break;
    default:
        value = tn_spec_value(&d->number, code) * l->scale;
    }
    return isnan(value) ? NAN : value;          /* all NaN have the same bits */
}

/* --- the code of a value --------------------------------------------------------- */

/* x / scale; 0 if the scale is 0. */
static float quotient(const level *l, float x)
{
    return l->scale == 0 && !isnan(x) ? copysignf(0, x) : x / l->scale;
}

/* The nearest magnitude.  Ties go to the larger one.  Equal magnitudes use the first code. */
static uint32_t codebook_code(const tn_datatype *d, const level *l, float x)
{
    const float *p = l->mapping, q = quotient(l, x);
    bool negative = l->scale == 0 ? x < 0 : q < 0;      /* -0 becomes 0 */
    uint32_t rank = 0;
    for (uint32_t k = 1; k < d->codebook.values; k++)
        if ((double)fabsf(q) >= ((double)p[k - 1] + (double)p[k]) / 2)
            rank = k;
    while (rank && p[rank - 1] == p[rank])
        rank--;
    return negative ? rank | d->codebook.values : rank;
}

/* The first of the 16 codes with the smallest float32 difference.  So ties go to the
 * smaller magnitude, and 0 comes before -0. */
static uint32_t ggml_code(const encoder *e, const level *l, float x)
{
    uint32_t best = 0;
    float least = INFINITY;
    for (uint32_t code = 0; code < 16; code++) {
        float error = fabsf(value_of(e->d, l, code) - x);
        if (error < least || code == 0) {
            least = error;
            best = code;
        }
    }
    return best;
}

static uint32_t uint_code(const encoder *e, const level *l, float x, uint64_t index)
{
    int32_t largest = e->d->number.maxint;
    if (e->d->zero.kind == TN_NUMBER_FLOAT)
        return (uint32_t)tn_coder_integer(&e->number, quotient(l, x + l->shift), 0, largest, index);
    return (uint32_t)(tn_coder_integer(&e->number, quotient(l, x), -l->zero, largest - l->zero, index) +
                      l->zero);
}

static uint32_t int_code(const encoder *e, const level *l, float x, uint64_t index)
{
    int32_t largest = e->d->number.maxint;
    int32_t code =
        tn_coder_integer(&e->number, ldexpf(quotient(l, x), tn_point_of(e->d)), -largest, largest, index);
    return (uint32_t)code & ((UINT32_C(2) << (e->d->number.bits - 1)) - 1);
}

static uint32_t code_of(const encoder *e, const level *l, float x, uint64_t index)
{
    if (e->o->ggml && isfinite(x))
        return ggml_code(e, l, x);
    switch (e->d->number.kind) {
    case TN_NUMBER_CODEBOOK: return codebook_code(e->d, l, x);
    case TN_NUMBER_INT:      return int_code(e, l, x, index);
    case TN_NUMBER_UINT:     return uint_code(e, l, x, index);
    default:                 return tn_coder_float(&e->number, e->number.exact ? x : quotient(l, x), index);
    }
}

/* --- before the scale is known ----------------------------------------------------- */

/* Larger in magnitude; NaN is the largest. */
static bool is_larger(float a, float b)
{
    return isnan(a) ? !isnan(b) : fabsf(a) > fabsf(b);
}

/* Keeps the largest values of each group.  The first of equal ones wins.  Padding is never kept. */
static void choose_kept(const tn_datatype *d, tn_tile *t)
{
    for (size_t g = 0; g < t->n; g += d->of) {
        memset(t->mask + g, 0, d->of);
        for (unsigned k = 0; k < d->keep; k++) {
            size_t best = SIZE_MAX;
            for (size_t i = g; i < g + d->of; i++)
                if (t->index[i] != UINT64_MAX && !t->mask[i] &&
                    (best == SIZE_MAX || is_larger(t->x[i], t->x[best])))
                    best = i;
            if (best != SIZE_MAX)
                t->mask[best] = 1;
        }
    }
}

tn_status tn_tile_prepare(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t, size_t *bad)
{
    bool allowed = o->nan == TN_NAN_ZERO || (o->nan == TN_NAN_KEEP && tn_spec_has_nan(&d->number));
    for (size_t i = 0; i < t->n && !allowed; i++) {
        if (isnan(t->x[i])) {
            *bad = i;
            return TN_ERR_LOSS;
        }
    }
    if (d->of)
        choose_kept(d, t);
    return TN_OK;
}

static void widen(tn_tile_range *range, float x)
{
    if (isinf(x))
        range->infinite = true;
    if (!isfinite(x))
        return;
    if (fabsf(x) > range->largest)
        range->largest = fabsf(x);
    if (x < range->low)
        range->low = x;
    if (x > range->high)
        range->high = x;
}

static tn_tile_range range_of(const tn_datatype *d, const tn_tile *t, size_t from, size_t to)
{
    tn_tile_range range = { 0 };
    for (size_t i = from; i < to; i++)
        if (is_kept(d, t, i))
            widen(&range, t->x[i]);
    return range;
}

void tn_tile_range_join(tn_tile_range *all, const tn_tile_range *one)
{
    widen(all, one->low);
    widen(all, one->high);
    all->infinite |= one->infinite;
}

tn_tile_range tn_tile_range_of(const float *x, size_t n)
{
    tn_tile_range range = { 0 };
    for (size_t i = 0; i < n; i++)
        widen(&range, x[i]);
    return range;
}

static int compare_floats(const void *a, const void *b)
{
    float x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

uint64_t tn_percentile_count(uint64_t n, double percentile)
{
    double part = ceil((double)n * percentile / 100);
    if (part < 1)
        return 1;
    return part >= (double)n ? n : (uint64_t)part;
}

/* The range of the values within the percentile: the smallest magnitudes, or with zero points the values
 * between both tails. */
static tn_tile_range percentile_range(const tn_datatype *d, const tn_quantize_options *o, const tn_tile *t)
{
    tn_tile_range range = { 0 };
    float *x = t->scratch;
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        bool counts = is_kept(d, t, i) && t->index[i] != UINT64_MAX;
        range.infinite |= counts && isinf(t->x[i]);
        if (counts && isfinite(t->x[i]))
            x[n++] = d->has_zero ? t->x[i] : fabsf(t->x[i]);
    }
    if (n == 0)
        return range;
    qsort(x, n, sizeof *x, compare_floats);
    size_t fit = (size_t)tn_percentile_count(n, o->percentile), out = (n - fit) / 2;
    widen(&range, d->has_zero ? x[out] : -x[fit - 1]);
    widen(&range, d->has_zero ? x[n - 1 - out] : x[fit - 1]);
    return range;
}

void tn_tile_measure(const tn_datatype *d, const tn_tile *t, tn_tile_range *range)
{
    tn_tile_range own = range_of(d, t, 0, t->n);
    tn_tile_range_join(range, &own);
}

/* --- encoding ------------------------------------------------------------------------ */

/* The value to encode: TN_NAN_ZERO replaces NaN by 0. */
static float input(const encoder *e, size_t i)
{
    float x = e->t->x[i];
    return isnan(x) && e->o->nan == TN_NAN_ZERO ? 0 : x;
}

/* Whether the error of a value counts. */
static bool counts(const encoder *e, size_t i)
{
    return is_kept(e->d, e->t, i) && isfinite(input(e, i));
}

static double square_of(const encoder *e, const level *l, size_t i)
{
    float x = input(e, i);
    double error = (double)value_of(e->d, l, code_of(e, l, x, e->t->index[i])) - (double)x;
    return error * error;
}

/* The sum of squared errors of a subtile. */
static double squares_of(const encoder *e, const level *l, size_t from, size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++)
        if (counts(e, i))
            sum += square_of(e, l, i);
    return sum;
}

/* The squared errors of a piece as eight partial sums, so that vectors can add eight
 * values at a time.  The k-th value that counts goes to sum k % 8. */
typedef struct total {
    double sum[8];
    size_t n;
} total;

static void add_squares(const encoder *e, const level *l, size_t from, size_t to, total *all)
{
    for (size_t i = from; i < to; i++)
        if (counts(e, i))
            all->sum[all->n++ % 8] += square_of(e, l, i);
}

static double joined(const total *all)
{
    const double *s = all->sum;
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Encodes the kept values of whole groups.  Unused slots are 0. */
static void encode_sparse(const encoder *e, const level *l, size_t from, size_t to)
{
    const tn_datatype *d = e->d;
    for (size_t g = from; g < to; g += d->of) {
        uint32_t *slot = e->t->code + g / d->of * d->keep;
        memset(slot, 0, d->keep * sizeof *slot);
        for (size_t i = g; i < g + d->of; i++)
            if (e->t->mask[i])
                *slot++ = code_of(e, l, input(e, i), e->t->index[i]);
    }
}

static void encode_unit(const encoder *e, const level *l, size_t from, size_t to)
{
    if (e->d->of) {
        encode_sparse(e, l, from, to);
        return;
    }
    for (size_t i = from; i < to; i++)
        e->t->code[i] = code_of(e, l, input(e, i), e->t->index[i]);
}

/* How far the exponent of a subtile is below that of the tile; the most for a subtile of zeros. */
static unsigned offset_of(const encoder *e, uint32_t scale, size_t from, size_t to)
{
    tn_tile_range range = range_of(e->d, e->t, from, to);
    int largest = (1 << e->d->offset_bits) - 1;
    if (range.largest == 0)
        return range.infinite ? 0 : (unsigned)largest;
    int offset = (int)scale - e->d->scale.bias - tn_scale_exponent(e->d, e->o, range.largest);
    if (offset < 0)
        return 0;
    return (unsigned)(offset < largest ? offset : largest);
}

/* The offsets and mappings to try. */
typedef struct trial {
    unsigned offset[2];         /* first and last */
    uint32_t mapping[2];        /* first and last */
} trial;

static trial trial_of(const encoder *e, const tn_tile_choice *choice, bool empty, size_t from, size_t to)
{
    trial r = { 0 };
    if (e->d->offset_bits && !empty) {
        r.offset[0] = r.offset[1] = offset_of(e, choice->scale, from, to);
        if (e->o->rule == TN_SCALE_MSE) {
            r.offset[0] = 0;
            r.offset[1] = (1u << e->d->offset_bits) - 1;
        }
    }
    if (is_codebook(e->d)) {
        bool every = choice->mapping == TN_EVERY_MAPPING;
        r.mapping[0] = every ? 0 : (uint32_t)choice->mapping;
        r.mapping[1] = every ? e->d->codebook.mappings - 1 : (uint32_t)choice->mapping;
    }
    return r;
}

/* The first trial with the least error. */
static level best_level(const encoder *e, const tn_tile_choice *choice, const trial *r, size_t unit,
                        size_t from, size_t to)
{
    const tn_datatype *d = e->d;
    bool single = r->offset[0] == r->offset[1] && r->mapping[0] == r->mapping[1];
    level best = { 0 };
    double least = INFINITY;
    for (unsigned offset = r->offset[0]; offset <= r->offset[1]; offset++) {
        for (uint32_t mapping = r->mapping[0]; mapping <= r->mapping[1]; mapping++) {
            level l = level_of(d, e->t->tensor_scale, choice->scale, choice->zero, offset, mapping);
            bool first = offset == r->offset[0] && mapping == r->mapping[0];
            double squares = single ? 0 : squares_of(e, &l, from, to);
            if (!first && !(squares < least))
                continue;
            least = squares;
            best = l;
            if (d->offset_bits)
                e->t->offset[unit] = (uint8_t)offset;
            if (is_codebook(d))
                e->t->meta[unit] = (uint8_t)mapping;
        }
    }
    return best;
}

void tn_tile_apply(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t,
                   const tn_tile_choice *choice, double *squares)
{
    const encoder e = { d, o, tn_datatype_is_exact(d) ? tn_coder_exact(&d->number, o->round, o->seed)
                                          : tn_coder_for(&d->number, o->round, o->seed, TN_DRAW_VALUE), t };
    size_t size = unit_size(d, t->n), units = tn_tile_units(d, t->n);
    tn_tile_range range = d->offset_bits ? range_of(d, t, 0, t->n) : (tn_tile_range){ 0 };
    bool empty = range.largest == 0 && !range.infinite;
    total all = { .n = 0 };
    for (size_t u = 0; u < units; u++) {
        size_t from = u * size, to = from + size;
        trial r = trial_of(&e, choice, empty, from, to);
        level l = best_level(&e, choice, &r, u, from, to);
        encode_unit(&e, &l, from, to);
        if (squares)
            add_squares(&e, &l, from, to, &all);
    }
    if (squares)
        *squares += joined(&all);
    t->scale = choice->scale;
    t->zero = choice->zero;
}

/* The first choice with the least error. */
static tn_tile_choice best_choice(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t,
                                  const tn_tile_choice *choices, unsigned n)
{
    unsigned best = 0;
    double least = INFINITY;
    for (unsigned i = 0; i < n && n > 1; i++) {
        double squares = 0;
        tn_tile_apply(d, o, t, &choices[i], &squares);
        if (squares < least) {
            least = squares;
            best = i;
        }
    }
    return choices[best];
}

tn_status tn_tile_encode(const tn_datatype *d, const tn_quantize_options *o, tn_tile *t, size_t *bad)
{
    tn_tile_choice choices[TN_TILE_CHOICES];
    tn_tile_range range = { 0 };
    TN_TRY(tn_tile_prepare(d, o, t, bad));
    if (tn_has_percentile(o))
        range = percentile_range(d, o, t);
    else
        tn_tile_measure(d, t, &range);
    unsigned n = tn_tile_choices(d, o, &range, t->tensor_scale, t->n ? t->index[0] : 0, choices);
    tn_tile_choice choice = best_choice(d, o, t, choices, n);
    tn_tile_apply(d, o, t, &choice, NULL);
    return TN_OK;
}

/* --- decoding ------------------------------------------------------------------------- */

static void decode_sparse(const tn_datatype *d, const tn_tile *t, const level *l, size_t from, size_t to,
                          float *y)
{
    for (size_t g = from; g < to; g += d->of) {
        const uint32_t *slot = t->code + g / d->of * d->keep;
        unsigned used = 0;
        for (size_t i = g; i < g + d->of; i++) {
            y[i] = 0;
            if (t->mask[i] && used < d->keep)           /* a mask of a file may keep too many */
                y[i] = value_of(d, l, slot[used++]);
        }
    }
}

void tn_tile_decode(const tn_datatype *d, const tn_tile *t, float *y)
{
    size_t size = unit_size(d, t->n), units = tn_tile_units(d, t->n);
    for (size_t u = 0; u < units; u++) {
        size_t from = u * size, to = from + size;
        level l = level_of(d, t->tensor_scale, t->scale, t->zero, d->offset_bits ? t->offset[u] : 0,
                           is_codebook(d) ? t->meta[u] : 0);
        if (d->of) {
            decode_sparse(d, t, &l, from, to, y);
            continue;
        }
        for (size_t i = from; i < to; i++)
            y[i] = value_of(d, &l, t->code[i]);
    }
}
