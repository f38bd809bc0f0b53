/* quant/scaled_encode.c - the fast path of encoding.
 *
 * A block of a few thousand values stays in the first-level cache: first the range
 * of each tile, then all scales, then all codes.  Scales follow the rules of
 * tile_scale.c. */
#include "kernels/round/table.h"
#include "quant/scaled_fast.h"
#include "tensor/array.h"

#include <math.h>

enum {
    BLOCK = TN_ENCODE_BLOCK,    /* values per block, more if tiles are large */
    FEWEST = 8,                 /* tiles per block: this many end on a byte in every part */
    MOST = BLOCK / 2,           /* tiles per block: a tile has at least 2 values */
    LARGEST = 1024              /* values of a tile that is encoded together with others */
};

#define FAR 0x1p60f             /* TN_SCALES_FAR */

/* What is constant for a plan. */
typedef struct recipe {
    const tn_encode_kernels *kernels;
    const tn_scaled_plan    *plan;
    bool               is_power;        /* scales are exponents: values are multiplied */
    bool               inverts;         /* multiply by the inverse, not divide: 2^-42 and less are 0 */
    tn_exponent_rules  exponent;
    tn_scale_rules     scale;
    tn_codes_kind      kind;
    tn_codes_run       run;
    bool               rounds_first;    /* scaled values are rounded by `rounding`, then encoded exactly */
    tn_round_rules     rounding;
} recipe;

/* Ranges, scales and codes of the tiles of a block. */
typedef struct scratch {
    uint32_t high[MOST + TN_ENCODE_SLACK], low[MOST + TN_ENCODE_SLACK];
    uint32_t scale[MOST + TN_ENCODE_SLACK], zero[MOST + TN_ENCODE_SLACK];
    float    factor[MOST + TN_ENCODE_SLACK], inverse[MOST + TN_ENCODE_SLACK], shift[MOST + TN_ENCODE_SLACK];
    bool     is_far;            /* some scale or value is beyond FAR */
    size_t   tile;              /* of the block: the first one whose codes are written */
    uint8_t  codes[FEWEST * LARGEST];
    float    rounded[FEWEST * LARGEST];
} scratch;

/* --- which datatypes ---------------------------------------------------------------- */

/* Whether normal numbers are normal in float32, too. */
static bool is_plain_float(const tn_number_spec *n)
{
    return n->kind == TN_NUMBER_FLOAT && (n->bias < 127 || (n->bias == 127 && n->mantissa_bits));
}

static bool is_short_integer(const tn_number_spec *n)
{
    return (n->kind == TN_NUMBER_INT || n->kind == TN_NUMBER_UINT) && n->bits <= 16;
}

static bool set_rounding(tn_round_rules *rules, const tn_scaled_plan *p)
{
    tn_coder coder = tn_coder_for(&p->d->number, p->o.round, p->o.seed, TN_DRAW_VALUE);
    const tn_dtype_info *type = &p->d->number.type;
    if (p->d->number.kind != TN_NUMBER_FLOAT)
        type = tn_dtype_get(TN_INT32);
    return tn_round_rules_for(rules, type, p->o.round, coder.rules.seed);
}

static bool has_plain_number(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_FLOAT ? is_plain_float(&d->number) && d->number.bits <= 16
                                             : is_short_integer(&d->number);
}

static bool has_plain_scale(const tn_datatype *d)
{
    if (d->scope == TN_SCOPE_NONE)
        return d->number.kind == TN_NUMBER_FLOAT;
    if (d->scale.kind == TN_NUMBER_EXPONENT)
        return !d->has_zero && !d->has_tensor_scale;
    return is_plain_float(&d->scale) && (d->number.kind == TN_NUMBER_UINT) == d->has_zero &&
           (!d->has_zero || is_plain_float(&d->zero) ||
            (d->zero.kind == TN_NUMBER_INT && d->zero.bits <= 16));
}

/* Whether only codes depend on the rounding: scales are float32s, powers of two, or those of a tile beside
 * that of the tensor, which are rounded to even. */
static bool has_plain_rounding(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    bool plain_scale = d->scope == TN_SCOPE_NONE || d->scale.kind == TN_NUMBER_EXPONENT ||
                       d->has_tensor_scale || d->scale.dtype == TN_FLOAT32;
    tn_round_rules rules;
    return p->o.round == TN_ROUND_EVEN ||
           (plain_scale && !d->has_zero && !p->o.ggml && set_rounding(&rules, p));
}

static bool is_plain(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    return has_plain_rounding(p) && p->o.rule != TN_SCALE_MSE && !d->of && !d->subtile &&
           !d->offset_bits && has_plain_number(d) && has_plain_scale(d);
}

/* --- rules -------------------------------------------------------------------------- */

static tn_float_rules float_rules(const tn_number_spec *n)
{
    unsigned m = n->mantissa_bits, shift = 23 - m, bias = (unsigned)n->bias;
    bool rounds_to_even = m > 0;        /* a significand of one bit is odd: ties go up */
    tn_float_rules r = {
        .bits = n->bits, .shift = shift, .rebias = (127 - bias) << 23, .largest = n->maxfloat,
        .has_minus_zero = n->type.specials != TN_SPECIALS_FNUZ,
    };
    if (shift) {
        r.half = (UINT32_C(1) << (shift - 1)) - rounds_to_even;
        r.odd = rounds_to_even;
    }
    r.half -= r.rebias;
    if (bias < 127) {
        r.one = UINT32_C(1) << m;
        r.smallest = ldexpf(1, n->emin - (int)m);
        r.normal = (128 - bias) << 23;
        r.magic = r.normal + (shift << 23);
    }
    return r;
}

tn_exponent_rules tn_exponent_rules_of(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    const tn_number_spec *n = tn_compute_spec(d);
    return (tn_exponent_rules){ .bump = tn_scale_bump(n, p->o.rule), .offset = d->scale.bias - 127 - n->emax,
                                .last = (1 << d->scale.exponent_bits) - 2,
                                .inverse = 127 + tn_point_of(d) + d->scale.bias };
}

static tn_scale_rules scale_rules(const tn_datatype *d, float tensor_scale)
{
    const tn_number_spec *n = &d->number;
    tn_scale_rules r = { .scale = float_rules(&d->scale),
                         .tensor_scale = d->has_tensor_scale ? tensor_scale : 1,
                         .top = n->kind == TN_NUMBER_FLOAT ? n->maxfloat : (float)n->maxint };
    if (!d->has_zero)
        return r;
    r.zero_kind = d->zero.kind == TN_NUMBER_FLOAT ? TN_ZERO_FLOAT : TN_ZERO_INT;
    r.zero_last = d->zero.maxint;
    if (r.zero_kind == TN_ZERO_FLOAT)
        r.zero = float_rules(&d->zero);
    return r;
}

static tn_codes_kind kind_of(const tn_scaled_plan *p, bool is_power)
{
    const tn_datatype *d = p->d;
    if (p->o.ggml)
        return TN_CODES_GGML;
    switch (d->number.kind) {
    case TN_NUMBER_UINT: return d->zero.kind == TN_NUMBER_FLOAT ? TN_CODES_SHIFTED : TN_CODES_UINT;
    case TN_NUMBER_INT:  return is_power ? TN_CODES_INT_POWER : TN_CODES_INT;
    default:             return is_power ? TN_CODES_FLOAT_POWER : TN_CODES_FLOAT;
    }
}

static recipe recipe_for(const tn_encode_kernels *k, const tn_scaled_plan *p, float tensor_scale)
{
    const tn_datatype *d = p->d;
    recipe r = { .kernels = k, .plan = p,
                 .is_power = d->scope != TN_SCOPE_NONE && d->scale.kind == TN_NUMBER_EXPONENT };
    if (r.is_power)
        r.exponent = tn_exponent_rules_of(p);
    else if (d->scope != TN_SCOPE_NONE)
        r.scale = scale_rules(d, tensor_scale);
    r.kind = kind_of(p, r.is_power || d->scope == TN_SCOPE_NONE);
    r.rounds_first = p->o.round != TN_ROUND_EVEN && set_rounding(&r.rounding, p);
    r.run.most = d->number.maxint;
    r.inverts = true;
    if (d->number.kind == TN_NUMBER_FLOAT) {
        r.run.number = float_rules(&d->number);
        r.inverts = d->number.emin - d->number.mantissa_bits > -42;
    }
    return r;
}

/* --- numbers of parts ----------------------------------------------------------------- */

void tn_put_numbers(const tn_encode_kernels *kernels, uint8_t *part, unsigned bits, const uint32_t *codes,
                    size_t n)
{
    uint8_t bytes[MOST], *to = bits < 8 ? bytes : part;
    if (bits > 8)
        for (size_t k = 0; k < n; k++)
            tn_code_put(part, k, tn_scaled_word(bits), codes[k]);
    else
        for (size_t k = 0; k < n; k++)
            to[k] = (uint8_t)codes[k];
    if (bits < 8)
        kernels->pack(part, bytes, n, bits);
}

/* --- scales of tiles -------------------------------------------------------------------- */

/* ggml rounds the logarithm, so that up to 44 floats just below a power of two count as that power. */
static void round_up_for_ggml(const tn_scaled_plan *p, uint32_t *bits, size_t tiles)
{
    const uint32_t mantissa = 0x7fffff, close = mantissa - 63;
    for (size_t i = 0; i < tiles; i++) {
        float a = tn_float_of(bits[i]);
        if ((bits[i] & mantissa) >= close && isfinite(a) &&
            tn_scale_exponent(p->d, &p->o, a) > ilogbf(a) - p->d->number.emax)
            bits[i] = (bits[i] | mantissa) + 1;
    }
}

/* Tiles that kernels take several of: their size is a power of two. */
static bool is_small(size_t size)
{
    return size >= 2 && size <= LARGEST && (size & (size - 1)) == 0;
}

/* Scales and zero points from w->high and w->low; false: kernels cannot. */
static bool scales_of_ranges(const recipe *r, scratch *w, size_t tiles)
{
    const tn_encode_kernels *k = r->kernels;
    const tn_tile_scales to = { w->scale, w->factor, w->inverse, w->zero, w->shift };
    if (r->plan->o.ggml)
        round_up_for_ggml(r->plan, w->high, tiles);
    memset(w->high + tiles, 0, TN_ENCODE_SLACK * sizeof *w->high);
    memset(w->low + tiles, 0, TN_ENCODE_SLACK * sizeof *w->low);
    unsigned found = r->is_power ? k->exponents(&r->exponent, w->high, tiles, &to)
                                 : k->scales(&r->scale, w->high, w->low, tiles, &to);
    w->is_far = found & TN_SCALES_FAR;
    return !(found & TN_SCALES_SPECIAL);
}

/* Chooses scales and zero points of consecutive tiles; false: kernels cannot. */
static bool choose_scales(const recipe *r, scratch *w, const float *x, size_t tiles, size_t size)
{
    const tn_encode_kernels *k = r->kernels;
    size_t at_once = is_small(size) ? tiles : 1;
    for (size_t i = 0; i < tiles; i += at_once) {
        if (r->scale.zero_kind == TN_ZERO_NONE)
            k->largest(w->high + i, x + i * size, at_once, size);
        else
            k->ends(w->high + i, w->low + i, x + i * size, at_once, size);
    }
    return scales_of_ranges(r, w, tiles);
}

static void put_scales(const recipe *r, const tn_tiles *tiles, size_t first, const scratch *w, size_t n)
{
    unsigned scale = r->plan->scale.bits, zero = r->plan->zero.bits;
    tn_put_numbers(r->kernels, tiles->scale + tn_scaled_field_bytes(scale, first), scale, w->scale, n);
    if (r->plan->d->has_zero)
        tn_put_numbers(r->kernels, tiles->zero + tn_scaled_field_bytes(zero, first), zero, w->zero, n);
}

/* --- codes ------------------------------------------------------------------------------ */

/* Values to encode, and where their codes begin. */
typedef struct values {
    const float *x;
    size_t       n;             /* at most a block */
    uint8_t     *codes;
} values;

static void put_run(const recipe *r, const values *v, tn_codes_kind kind, const tn_codes_run *run, scratch *w)
{
    unsigned bits = r->plan->data.bits;
    if (bits > 8) {
        r->kernels->wide_codes[kind](v->codes, v->x, v->n, run);
    } else if (bits == 8) {
        r->kernels->codes[kind](v->codes, v->x, v->n, run);
    } else {
        r->kernels->codes[kind](w->codes, v->x, v->n, run);
        r->kernels->pack(v->codes, w->codes, v->n, bits);
    }
}

/* Rounds scaled values from element `first` on, and encodes what they are then; false: kernels cannot. */
static bool put_rounded(const recipe *r, const values *v, uint64_t first, const tn_codes_run *run, scratch *w)
{
    const float one = 1;
    bool is_power = r->kind == TN_CODES_FLOAT_POWER || r->kind == TN_CODES_INT_POWER,
         is_integer = r->kind == TN_CODES_INT || r->kind == TN_CODES_INT_POWER;
    const values own = { w->rounded, v->n, v->codes };
    tn_codes_run exact = *run;
    (is_power ? r->kernels->multiply : r->kernels->divide)(w->rounded, v->x, v->n, run);
    if (!tn_round_kernels_get()->round(w->rounded, w->rounded, v->n, first, &r->rounding))
        return false;
    exact.size = v->n;
    exact.factor = &one;
    put_run(r, &own, is_integer ? TN_CODES_INT_POWER : TN_CODES_FLOAT_POWER, &exact, w);
    return true;
}

/* Writes codes of n values, at most a block, from number `first`, which begins on a byte; false: kernels
 * cannot. */
static bool put_codes(const recipe *r, const tn_tiles *tiles, size_t first, scratch *w, size_t n, size_t size)
{
    const values v = { tiles->x + first, n,
                       tiles->data + tn_scaled_field_bytes(r->plan->data.bits, first) };
    tn_codes_run run = r->run;
    run.size = size;
    run.factor = w->factor + w->tile;
    run.inverse = r->inverts && !w->is_far ? w->inverse + w->tile : NULL;
    run.shift = w->shift + w->tile;
    run.zero = w->zero + w->tile;
    /* larger tiles and packed codes were measured to be slower */
    run.stream = tiles->stream && size < n && r->plan->data.bits >= 8 &&
                 (uintptr_t)v.codes % TN_ENCODE_ALIGN == 0;
    if (r->rounds_first)
        return put_rounded(r, &v, tiles->first + first, &run, w);
    put_run(r, &v, r->kind, &run, w);
    return true;
}

/* Sets the divisor and zero point from the choice of the group. */
static void set_scale(const recipe *r, const tn_tile_choice *choice, scratch *w)
{
    const tn_datatype *d = r->plan->d;
    float scale = d->scope == TN_SCOPE_NONE ? 1 : tn_scale_value(d, choice->scale, 0);
    if (d->has_tensor_scale)
        scale *= r->scale.tensor_scale;
    w->factor[0] = scale == 0 ? INFINITY : scale;
    w->inverse[0] = 1 / w->factor[0];
    w->shift[0] = 0;
    if (r->scale.zero_kind == TN_ZERO_FLOAT)
        w->shift[0] = tn_spec_value(&d->zero, choice->zero);
    else if (r->scale.zero_kind == TN_ZERO_INT)
        w->zero[0] = (uint32_t)tn_spec_integer(&d->zero, choice->zero);
    w->is_far = scale < 1 / FAR || scale > FAR || w->shift[0] > FAR;
}

/* Sets the factor from the choice of the group; false: it is not a normal float32, so all codes are 0. */
static bool set_exponent(const recipe *r, const tn_tile_choice *choice, scratch *w)
{
    int32_t field = r->exponent.inverse - (int32_t)choice->scale;
    bool is_normal = field >= 1 && field <= 254;
    w->factor[0] = is_normal ? tn_float_of((uint32_t)field << 23) : 0;
    w->is_far = true;           /* no inverse */
    return is_normal;
}

/* Encodes values with the scale of the group, or without scale. */
static bool encode_chosen(const recipe *r, const tn_tiles *tiles, scratch *w)
{
    size_t n = tiles->count * tiles->size;
    bool fits = !r->is_power || set_exponent(r, tiles->choice, w);
    if (!r->is_power)
        set_scale(r, tiles->choice, w);
    bool is_far = w->is_far;
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t some = n - i < BLOCK ? n - i : BLOCK;
        r->kernels->largest(w->high, tiles->x + i, 1, some);
        float most = tn_float_of(w->high[0]);
        if (!isfinite(most) || (most > 0 && !fits))
            return false;
        w->is_far = is_far || most > FAR;
        if (!put_codes(r, tiles, i, w, some, some))
            return false;
    }
    return true;
}

/* Large tiles whose scales are chosen before any of their codes.  Codes of a tile are made while its values
 * are in the cache, unless its scale shares a byte with those of others. */
static size_t large_at_once(const recipe *r, size_t size)
{
    const tn_scaled_plan *p = r->plan;
    bool on_bytes = tn_scaled_ends_on_byte(p->scale.bits, 1) && tn_scaled_ends_on_byte(p->zero.bits, 1);
    return on_bytes && size > BLOCK / FEWEST ? 1 : FEWEST;
}

/* Encodes tiles of any size, one after another.  False: some do not begin on a byte, or kernels cannot. */
static bool encode_large(const recipe *r, const tn_tiles *tiles, scratch *w)
{
    size_t size = tiles->size, at_once = large_at_once(r, size);
    if (tiles->count > 1 && r->plan->data.bits < 8 && size % 8)
        return false;
    for (size_t first = 0; first < tiles->count; first += at_once) {
        size_t n = tiles->count - first < at_once ? tiles->count - first : at_once;
        if (!choose_scales(r, w, tiles->x + first * size, n, size))
            return false;
        put_scales(r, tiles, first, w, n);
        for (w->tile = 0; w->tile < n; w->tile++)
            for (size_t i = 0; i < size; i += BLOCK) {
                size_t some = size - i < BLOCK ? size - i : BLOCK;
                if (!put_codes(r, tiles, (first + w->tile) * size + i, w, some, some))
                    return false;
            }
    }
    return true;
}

/* Encodes tiles whose size is a power of two, block by block. */
static bool encode_many(const recipe *r, const tn_tiles *tiles, scratch *w)
{
    size_t size = tiles->size, per_block = BLOCK / size > FEWEST ? BLOCK / size : FEWEST;
    for (size_t first = 0; first < tiles->count; first += per_block) {
        size_t n = tiles->count - first < per_block ? tiles->count - first : per_block;
        if (!choose_scales(r, w, tiles->x + first * size, n, size))
            return false;
        put_scales(r, tiles, first, w, n);
        if (!put_codes(r, tiles, first * size, w, n * size, size))
            return false;
    }
    return true;
}

bool tn_scaled_encode_with(const tn_encode_kernels *k, const tn_scaled_plan *p, const tn_tiles *tiles)
{
    scratch w;
    w.tile = 0;
    recipe r = recipe_for(k, p, tiles->tensor_scale);
    if (p->d->has_tensor_scale && !(tiles->tensor_scale > 0 && isfinite(tiles->tensor_scale)))
        return false;
    if (p->d->scope == TN_SCOPE_NONE || tiles->choice)
        return encode_chosen(&r, tiles, &w);
    bool many = tiles->count > 1 && is_small(tiles->size);
    return many ? encode_many(&r, tiles, &w) : encode_large(&r, tiles, &w);
}

static bool encode(const tn_scaled_plan *p, const tn_tiles *tiles)
{
    return tn_scaled_encode_with(tn_encode_kernels_get(), p, tiles);
}

tn_tiles_encode_fn tn_scaled_encoder(const tn_scaled_plan *p)
{
    if (TN_HOST_ORDER != TN_LITTLE_ENDIAN)              /* kernels pack codes in words */
        return NULL;
    tn_tiles_encode_fn searcher = tn_scaled_searcher(p);
    if (searcher)
        return searcher;
    return is_plain(p) ? encode : NULL;
}

/* --- tiles of several lines ------------------------------------------------------------- */

/* Widens the ranges of tiles by those of a line, in the numbers that kernels have for them. */
static void widen_ranges(scratch *w, const uint32_t *high, const uint32_t *low, size_t tiles)
{
    for (size_t i = 0; i < tiles; i++)
        w->high[i] = (int32_t)high[i] > (int32_t)w->high[i] ? high[i] : w->high[i];
    for (size_t i = 0; i < tiles && low; i++)
        w->low[i] = low[i] > w->low[i] ? low[i] : w->low[i];
}

/* Measures `n` lines from line i on, which follow one another if they are several. */
static void measure_lines(const recipe *r, const tn_tile_lines *l, size_t i, size_t n, scratch *w)
{
    uint32_t high[MOST + TN_ENCODE_SLACK], low[MOST + TN_ENCODE_SLACK];
    const float *x = l->values(l->context, i);
    size_t whole = l->n / l->size * n, rest = l->n % l->size;
    bool both = r->scale.zero_kind != TN_ZERO_NONE;
    if (!both && l->size == 1) {
        r->kernels->widen(w->high, x, l->n, n);
        return;
    }
    if (both)
        r->kernels->ends(high, low, x, whole, l->size);
    else
        r->kernels->largest(high, x, whole, l->size);
    if (rest && both)
        r->kernels->ends(high + whole, low + whole, x + whole * l->size, 1, rest);
    else if (rest)
        r->kernels->largest(high + whole, x + whole * l->size, 1, rest);
    for (size_t k = 0; k < n; k++)
        widen_ranges(w, high + k * l->tiles, both ? low + k * l->tiles : NULL, l->tiles);
}

/* Lines that are measured and encoded together: those that follow one another, a block at most. */
static size_t lines_at_once(const tn_tile_lines *l)
{
    size_t most = BLOCK / l->n < MOST / l->tiles ? BLOCK / l->n : MOST / l->tiles;
    if (!l->follow || l->n % l->size || most < 2)
        return 1;
    return most < l->lines ? most : l->lines;
}

static void repeat_words(void *words, size_t n, size_t times)
{
    for (size_t k = 1; k < times; k++)
        memcpy((uint8_t *)words + 4 * k * n, words, 4 * n);
}

/* Gives each of some lines its own scales of these tiles. */
static void repeat_scales(scratch *w, size_t tiles, size_t lines)
{
    repeat_words(w->factor, tiles, lines);
    repeat_words(w->inverse, tiles, lines);
    repeat_words(w->shift, tiles, lines);
    repeat_words(w->zero, tiles, lines);
}

bool tn_scaled_has_lines(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    bool packed = p->scale.bits < 8 || (d->has_zero && p->zero.bits < 8);
    return TN_HOST_ORDER == TN_LITTLE_ENDIAN && is_plain(p) && d->scope >= TN_SCOPE_CHANNEL && !packed &&
           (p->inner > 1 || (p->tile_rows > 1 && is_small((size_t)p->tile_columns)));
}

bool tn_scaled_encode_lines(const tn_encode_kernels *k, const tn_scaled_plan *p, const tn_tile_lines *l)
{
    scratch w;
    recipe r = recipe_for(k ? k : tn_encode_kernels_get(), p, l->tensor_scale);
    tn_tiles line = { .scale = l->scale, .zero = l->zero };
    if (l->n > TN_LINE_MOST || l->tiles > TN_LINE_TILES ||
        (p->d->has_tensor_scale && !(l->tensor_scale > 0 && isfinite(l->tensor_scale))))
        return false;
    size_t at_once = lines_at_once(l);
    w.tile = 0;
    memset(w.high, 0, l->tiles * sizeof *w.high);
    memset(w.low, 0, l->tiles * sizeof *w.low);
    for (size_t i = 0, n; i < l->lines; i += n) {
        n = l->lines - i < at_once ? l->lines - i : at_once;
        measure_lines(&r, l, i, n, &w);
    }
    if (!scales_of_ranges(&r, &w, l->tiles))
        return false;
    put_scales(&r, &line, 0, &w, l->tiles);
    repeat_scales(&w, l->tiles, at_once);
    r.run.ahead = at_once > 1 ? 0 : l->n;
    for (size_t i = 0, n; i < l->lines; i += n) {
        n = l->lines - i < at_once ? l->lines - i : at_once;
        line.x = l->values(l->context, i);
        line.data = l->codes(l->context, i);
        line.first = l->first(l->context, i);
        if (put_codes(&r, &line, 0, &w, n * l->n, l->size))
            continue;
        for (size_t done = 0; done < i + n; done++)     /* packed codes are written by OR */
            memset(l->codes(l->context, done), 0, (size_t)tn_scaled_field_bytes(p->data.bits, l->n));
        return false;
    }
    return true;
}

static tn_tile_range largest_of(const float *x, size_t n)
{
    uint32_t largest;
    tn_encode_kernels_get()->largest(&largest, x, 1, n);
    return (tn_tile_range){ .high = tn_float_of(largest) };
}

static tn_tile_range ends_of(const float *x, size_t n)
{
    uint32_t high, low;
    tn_encode_kernels_get()->ends(&high, &low, x, 1, n);
    return (tn_tile_range){ .low = low >> 31 ? tn_float_of(low) : 0,
                            .high = high >> 31 ? 0 : tn_float_of(high) };
}

tn_tile_range tn_scaled_range(const float *x, size_t n, bool ends)
{
    tn_tile_range all = { 0 };
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t some = n - i < BLOCK ? n - i : BLOCK;
        tn_tile_range one = ends ? ends_of(x + i, some) : largest_of(x + i, some);
        if (!isfinite(one.low) || !isfinite(one.high))
            one = tn_tile_range_of(x + i, some);
        tn_tile_range_join(&all, &one);
    }
    return all;
}
