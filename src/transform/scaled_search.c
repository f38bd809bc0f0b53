/* transform/scaled_search.c - the fast ways of datatypes that search or select.
 *
 * What is kept of sparse tiles is a tensor of its own, which is encoded like
 * one that is not sparse.  Mappings, offsets and scales with the least error
 * are tried for some tiles at a time, which stay in the first cache. */
#include "transform/scaled_fast.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/scaled_search.h"

enum {
    BLOCK = 4096,               /* values, or more: */
    FEWEST = 8,                 /* tiles of a block: numbers of so many end on a byte */
    LARGEST = TN_SEARCH_LARGEST,        /* tile */
    MOST = BLOCK / TN_SEARCH_SIZE,      /* tiles */
    NORMAL = 0x00800000, INFINITE = 0x7f800000          /* bits of float32 */
};

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* --- some of the tiles ---------------------------------------------------------------- */

/* Bytes of n numbers that begin and end on a byte, or are the last. */
static size_t bytes_of(const tn_scaled_field *field, size_t n)
{
    return (size_t)(field->bits < 8 ? tn_packed_bytes(n, field->bits) : (uint64_t)n * (tn_scaled_word(field->bits) / 8));
}

static size_t kept_of(const tn_datatype *d, size_t n)
{
    return d->of ? n / d->of * d->keep : n;
}

static uint8_t *moved(uint8_t *part, size_t n)
{
    return part ? part + n : NULL;
}

/* `count` of them from `first` on, a multiple of 8. */
static tn_tiles some_of(const tn_scaled_plan *p, const tn_tiles *t, size_t first, size_t count)
{
    tn_tiles some = *t;
    size_t units = tn_tile_units(p->d, t->size);
    some.count = count;
    some.x = t->x + first * t->size;
    some.data = moved(t->data, bytes_of(&p->data, first * kept_of(p->d, t->size)));
    some.scale = moved(t->scale, bytes_of(&p->scale, first));
    some.zero = moved(t->zero, bytes_of(&p->zero, first));
    some.offset = moved(t->offset, first * bytes_of(&p->offset, units));
    some.meta = moved(t->meta, first * bytes_of(&p->meta, units));
    some.mask = moved(t->mask, first * t->size / 8);
    return some;
}

/* How many to take at a time. */
static size_t block_of(size_t size)
{
    size_t n = BLOCK / size / FEWEST * FEWEST;
    return n > FEWEST ? n : FEWEST;
}

static int32_t most_of(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* --- sparse ones ------------------------------------------------------------------------ */

/* Sparsity alone: what a plain cast makes of the values. */
static bool is_cast(const tn_datatype *d)
{
    tn_dtype type = d->number.dtype;
    return d->scope == TN_SCOPE_NONE && (type == TN_FLOAT32 || type == TN_FLOAT16 || type == TN_BFLOAT16);
}

/* The plan of what is kept. */
typedef struct thinned {
    tn_datatype    d;
    tn_scaled_plan plan;
} thinned;

static void thin(thinned *to, const tn_scaled_plan *p)
{
    to->d = *p->d;
    to->d.keep = to->d.of = 0;
    to->plan = *p;
    to->plan.d = &to->d;
}

/* Values of one chunk; `kept` has room for those that are. */
static bool encode_kept(const tn_search_ways *w, const tn_scaled_plan *p, const thinned *dense, const tn_tiles *t, float *kept)
{
    const tn_datatype *d = p->d;
    size_t n = t->count * t->size;
    bool plain = is_cast(d);
    uint32_t most = w->search->select(plain && d->number.bits == 32 ? (void *)t->data : kept, t->mask, t->x, n, d->keep, d->of);
    if (most > INFINITE && (!plain || p->o.nan != TN_NAN_KEEP))
        return false;
    if (plain && d->number.bits == 32)
        return true;
    if (plain) {
        const tn_kernel_args args = { .rules = tn_encode_rules_for(&d->number.type, NULL) };
        tn_kernels_get()->from_f32[d->number.dtype](t->data, kept, kept_of(d, n), &args);
        return true;
    }
    tn_tiles part = *t;
    part.x = kept;
    part.size = kept_of(d, t->size);
    return tn_scaled_search_kind(&dense->plan) ? tn_scaled_search_with(w, &dense->plan, &part)
                                               : tn_scaled_encode_with(w->encode, &dense->plan, &part);
}

static bool encode_sparse(const tn_search_ways *w, const tn_scaled_plan *p, const tn_tiles *t)
{
    float room[FEWEST * LARGEST], *kept = room;
    size_t each = kept_of(p->d, t->size), at_once = block_of(each);
    thinned dense;
    bool done = true;
    thin(&dense, p);
    if (t->count == 1 && each > sizeof room / sizeof *room)
        kept = malloc(each * sizeof *kept);
    else if (each > LARGEST && t->count > 1)
        return false;
    for (size_t first = 0; kept && done && first < t->count; first += at_once) {
        tn_tiles some = some_of(p, t, first, smaller(at_once, t->count - first));
        done = encode_kept(w, p, &dense, &some, kept);
    }
    done = done && kept;
    if (kept != room)
        free(kept);
    return done;
}

/* --- numbers and scales ------------------------------------------------------------------- */

static bool is_power(const tn_datatype *d)
{
    return d->scale.kind == TN_NUMBER_EXPONENT;
}

/* Integers of a scale that is an exponent have the binary point after their first bit. */
static int point_of(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_INT && is_power(d) ? d->number.bits - 2 : 0;
}

/* Floats that are rounded by an addition of what makes a step the last bit. */
static bool is_narrow(const tn_number_spec *n)
{
    return n->kind == TN_NUMBER_FLOAT && n->emin >= -126 && n->emax + 23 - n->mantissa_bits <= 127;
}

/* Those that are the beginning of a float32. */
static bool is_wide(const tn_number_spec *n)
{
    return n->kind == TN_NUMBER_FLOAT && n->exponent_bits == 8 && n->bias == 127 && n->infnan == TN_INFNAN_IEEE;
}

static bool has_simple_number(const tn_datatype *d)
{
    return d->number.bits <= 8 && (d->number.kind == TN_NUMBER_INT || is_narrow(&d->number));
}

static tn_search_number number_of(const tn_number_spec *n)
{
    tn_search_number r = { .bits = n->bits, .integer = n->kind == TN_NUMBER_INT };
    if (r.integer) {
        r.most = (float)n->maxint;
        r.lowest = (127u + n->bits) << 23;
        r.above = (23u - n->bits) << 23;
        return r;
    }
    r.most = n->maxfloat;
    r.lowest = (uint32_t)(127 + n->emin) << 23;
    r.shift = 23u - n->mantissa_bits;
    r.above = r.shift << 23;
    r.signed_zero = n->type.specials != TN_SPECIALS_FNUZ;
    return r;
}

/* What is found out about the tiles of a block. */
typedef struct desk {
    uint32_t largest[MOST + TN_ENCODE_SLACK];
    uint32_t scale[MOST];
    int32_t  exponent[MOST];
    float    factor[MOST], step[MOST];
    /* Of those that are tried, and the best one: */
    uint32_t tried[MOST];
    double   sums[MOST], least[MOST];
    float    best_factor[MOST], best_step[MOST];
    uint8_t  codes[FEWEST * LARGEST], units[FEWEST * LARGEST / 2 + TN_SEARCH_SLACK];
} desk;

/* What exponent scales follow from: see tn_scale_exponent(). */
typedef struct powers {
    int32_t bump;
    int32_t offset;             /* from the exponent field of the largest magnitude to the code */
    int32_t last;               /* code */
    int32_t inverse, one;       /* exponent fields of the factor and the step: less, and with, the code */
} powers;

static powers powers_of(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    const tn_number_spec *n = tn_compute_spec(d);
    int point = point_of(d);
    return (powers){ .bump = tn_scale_bump(n, p->o.mode), .offset = d->scale.bias - 127 - n->emax,
                     .last = (1 << d->scale.exponent_bits) - 2, .inverse = 127 + point + d->scale.bias,
                     .one = 127 - point - d->scale.bias };
}

/* Factor and step of one scale; false: it is too large, or one of them, or with an offset, is not normal. */
static bool set_power(const powers *r, int32_t code, float *factor, float *step)
{
    int32_t to = r->inverse - code, from = r->one + code;
    *factor = float_of((uint32_t)to << 23);
    *step = float_of((uint32_t)from << 23);
    return code <= r->last && to >= 1 && to < 254 - 3 && from >= 1 && from <= 254;
}

/* Codes, factors and steps of all tiles; those of zeros have the lowest scale, and a step of 0.  False: not for kernels. */
static bool set_powers(const powers *r, desk *w, size_t tiles)
{
    for (size_t k = 0; k < tiles; k++) {
        int32_t code = most_of(((int32_t)(w->largest[k] + (uint32_t)r->bump) >> 23) + r->offset, 0);
        w->exponent[k] = code - r->offset;
        w->scale[k] = (uint32_t)code;
        if (w->largest[k] == 0) {
            w->exponent[k] = 0;
            w->scale[k] = 0;
            w->factor[k] = 1;
            w->step[k] = 0;
        } else if (w->largest[k] < NORMAL || w->largest[k] >= INFINITE ||
                   !set_power(r, code, &w->factor[k], &w->step[k])) {
            return false;
        }
    }
    return true;
}

/* The same with scales that are floats. */
static bool set_floats(const tn_scaled_plan *p, desk *w, size_t tiles)
{
    const tn_datatype *d = p->d;
    tn_coder coder = tn_coder_for(&d->scale, TN_ROUND_EVEN, 0, TN_DRAW_SCALE);
    float top = tn_compute_spec(d)->maxfloat;
    for (size_t k = 0; k < tiles; k++) {
        float largest = float_of(w->largest[k]);
        w->scale[k] = largest > 0 ? tn_coder_float(&coder, largest / top, 0) : 0;
        w->step[k] = tn_scale_value(d, w->scale[k], 0);
        if (w->largest[k] >= INFINITE)
            return false;
    }
    return true;
}

/* --- what is written ---------------------------------------------------------------------- */

static void put_scales(const tn_search_ways *w, const tn_scaled_plan *p, const tn_tiles *t, const desk *from)
{
    uint8_t bytes[MOST];
    unsigned bits = p->scale.bits;
    for (size_t k = 0; k < t->count; k++) {
        if (bits > 8)
            tn_code_put(t->scale, k, tn_scaled_word(bits), from->scale[k]);
        else
            (bits == 8 ? t->scale : bytes)[k] = (uint8_t)from->scale[k];
    }
    if (bits < 8)
        w->encode->pack(t->scale, bytes, t->count, bits);
}

/* Codes go where they are packed from, unless a byte each is what is wanted. */
static uint8_t *codes_of(const tn_scaled_plan *p, const tn_tiles *t, desk *w)
{
    return p->data.bits == 8 ? t->data : w->codes;
}

static void put_codes(const tn_search_ways *w, const tn_scaled_plan *p, const tn_tiles *t, const desk *from)
{
    if (p->data.bits < 8)
        w->encode->pack(t->data, from->codes, t->count * t->size, p->data.bits);
}

/* A number for each subtile, those of one tile on bytes of their own. */
static void put_units(const tn_search_ways *w, uint8_t *part, const uint8_t *units, size_t tiles, size_t each, unsigned bits)
{
    size_t bytes = (size_t)tn_packed_bytes(each, bits);
    if (each * bits % 8 == 0) {
        w->encode->pack(part, units, tiles * each, bits);
        return;
    }
    for (size_t k = 0; k < tiles; k++)
        w->encode->pack(part + k * bytes, units + k * each, each, bits);
}

/* --- scales to try ------------------------------------------------------------------------------ */

/* What scales are tried: those of tile_scale.c. */
typedef struct trials {
    unsigned count;
    bool     is_power;
    powers   power;
    /* Floats: */
    bool     wide;              /* with the exponents of float32 */
    tn_search_number scale;
    float    top, tensor_scale;
    bool     relative;          /* to the tensor's scale */
} trials;

static trials trials_of(const tn_scaled_plan *p, float tensor_scale)
{
    const tn_datatype *d = p->d;
    bool power = is_power(d);
    trials r = { .count = power ? 3 : 2 + TN_RATIO_HIGH - TN_RATIO_LOW, .is_power = power, .relative = d->has_tensor_scale,
                 .tensor_scale = d->has_tensor_scale ? tensor_scale : 1 };
    if (power) {
        r.power = powers_of(p);
        return r;
    }
    r.scale = number_of(&d->scale);
    r.wide = is_wide(&d->scale);
    r.top = d->number.kind == TN_NUMBER_INT ? (float)d->number.maxint : tn_compute_spec(d)->maxfloat;
    return r;
}

/* Floor's exponent, one more, one less; false: not for kernels. */
static bool try_power(const trials *r, desk *w, size_t tiles, unsigned trial)
{
    for (size_t k = 0; k < tiles; k++) {
        int32_t code = most_of(((int32_t)w->largest[k] >> 23) + r->power.offset + (trial == 1) - (trial == 2), 0);
        w->tried[k] = (uint32_t)code;
        if (w->largest[k] && !set_power(&r->power, code, &w->factor[k], &w->step[k]))
            return false;
    }
    return true;
}

/* The nearest scale, and the value of its code. */
static uint32_t scale_near(const trials *r, float x, float *value)
{
    const tn_search_number *n = &r->scale;
    uint32_t bits = bits_of(x < n->most ? x : n->most), code;
    if (r->wide) {
        code = n->shift ? (bits + (UINT32_C(1) << (n->shift - 1)) - 1 + (bits >> n->shift & 1)) >> n->shift : bits;
        *value = float_of(code << n->shift);
        return code;
    }
    uint32_t exponent = bits & INFINITE;
    exponent = exponent > n->lowest ? exponent : n->lowest;
    float magic = float_of(exponent + n->above), sum = float_of(bits) + magic;
    *value = sum - magic;
    return bits_of(sum) - bits_of(magic) + ((exponent - n->lowest) >> n->shift);
}

/* The range's scale, then it times so many sixteenths. */
static void try_float(const trials *r, desk *w, size_t tiles, unsigned trial)
{
    float ratio = trial ? (float)(TN_RATIO_LOW + trial - 1) / 16 : 1;
    for (size_t k = 0; k < tiles; k++) {
        float wanted = float_of(w->largest[k]) / r->top * ratio, value;
        w->tried[k] = scale_near(r, r->relative ? wanted / r->tensor_scale : wanted, &value);
        w->step[k] = value * r->tensor_scale;
        w->factor[k] = w->step[k] == 0 ? INFINITY : w->step[k];         /* which makes zeros */
    }
}

/* Zeros have the lowest scale. */
static void settle_zeros(desk *w, size_t tiles)
{
    for (size_t k = 0; k < tiles; k++)
        if (w->largest[k] == 0) {
            w->tried[k] = 0;
            w->factor[k] = 1;
            w->step[k] = 0;
        }
}

/* The first with the least error becomes the choice. */
static void take_better(desk *w, size_t tiles, bool first)
{
    for (size_t k = 0; k < tiles; k++) {
        if (!first && !(w->sums[k] < w->least[k]))
            continue;
        w->least[k] = w->sums[k];
        w->scale[k] = w->tried[k];
        w->best_factor[k] = w->factor[k];
        w->best_step[k] = w->step[k];
    }
}

static bool are_normal(const desk *w, size_t tiles)
{
    for (size_t k = 0; k < tiles; k++)
        if (w->largest[k] && (w->largest[k] < NORMAL || w->largest[k] >= INFINITE))
            return false;
    return true;
}

/* The scales of one trial; false: not for kernels. */
static bool set_trial(const trials *r, desk *w, size_t tiles, unsigned trial)
{
    if (!r->is_power)
        try_float(r, w, tiles, trial);
    else if (!try_power(r, w, tiles, trial))
        return false;
    settle_zeros(w, tiles);
    return true;
}

/* The best ones are those to encode with. */
static void settle_trials(desk *w, size_t tiles)
{
    memcpy(w->factor, w->best_factor, tiles * sizeof *w->factor);
    memcpy(w->step, w->best_step, tiles * sizeof *w->step);
}

/* --- codebooks ------------------------------------------------------------------------------ */

/* The smallest float32 that is no smaller than the middle. */
static float middle_of(float a, float b)
{
    double middle = ((double)a + (double)b) / 2;
    float near = (float)middle;
    return (double)near < middle ? nextafterf(near, INFINITY) : near;
}

static void set_mapping(tn_search_book *b, uint32_t m, const float *value, uint32_t values)
{
    uint32_t first = 0;
    b->first[m] = 0;
    for (uint32_t v = 1; v < TN_SEARCH_VALUES; v++) {
        if (v < values && value[v] != value[v - 1])
            first = v;
        b->value[v][m] = v < values ? value[v] : 0;
        b->from[v][m] = v < values ? middle_of(value[v - 1], value[v]) : INFINITY;
        b->first[m] |= first << 4 * v;
    }
}

/* Whether the last bit of the smallest number is no lower than that of the largest value, twice the largest number. */
static bool is_coarse(const tn_number_spec *n)
{
    return n->emax - n->emin + n->mantissa_bits <= 22;
}

/* All magnitudes at which values change are whole numbers of the last bit that is kept. */
static void set_rows(tn_search_book *b)
{
    uint32_t any = 0, least = INFINITE, most = 0;
    for (uint32_t v = 1; v < TN_SEARCH_VALUES; v++)
        for (uint32_t m = 0; m < TN_SEARCH_MAPPINGS; m++) {
            uint32_t bits = bits_of(b->from[v][m]);
            if (bits == 0 || bits == INFINITE)
                continue;
            any |= bits;
            least = bits < least ? bits : least;
            most = bits > most ? bits : most;
        }
    b->row_shift = (unsigned)__builtin_ctz(any | NORMAL);
    b->first_row = (least >> b->row_shift) - 1;
    b->rows = (most >> b->row_shift) - b->first_row + 1;
    if (b->rows > TN_SEARCH_ROWS || least < NORMAL)
        b->rows = 0;
}

static void set_book(tn_search_book *b, const tn_datatype *d)
{
    const tn_codebook *from = &d->codebook;
    b->mappings = from->mappings;
    b->sign = from->values;
    b->exact = is_power(d) && is_coarse(&from->compute);
    for (uint32_t m = 0; m < TN_SEARCH_MAPPINGS; m++)
        set_mapping(b, m, from->value + (m < from->mappings ? m : 0) * from->values, from->values);
    set_rows(b);
}

/* How a plan's tiles get their mappings. */
typedef struct librarian {
    tn_search_book book;
    powers power;
    trials trials;
    size_t subtile;
} librarian;

/* Scales of tiles whose largest magnitudes are known: the mode's, or those with the least error. */
static bool choose_scales(const tn_search_ways *ways, const tn_scaled_plan *p, const librarian *l, const tn_search_tiles *tiles, desk *w)
{
    size_t n = tiles->count;
    if (p->o.mode != TN_SCALE_MSE)
        return is_power(p->d) ? set_powers(&l->power, w, n) : set_floats(p, w, n);
    if (!are_normal(w, n))
        return false;
    for (unsigned i = 0; i < l->trials.count; i++) {
        if (!set_trial(&l->trials, w, n, i))
            return false;
        ways->search->choose(w->codes, w->units, w->sums, tiles, l->subtile, &l->book);
        take_better(w, n, i == 0);
    }
    settle_trials(w, n);
    return true;
}

static bool encode_book(const tn_search_ways *ways, const tn_scaled_plan *p, const tn_tiles *t)
{
    size_t at_once = block_of(t->size);
    librarian l = { .power = powers_of(p), .trials = trials_of(p, 1), .subtile = p->d->subtile ? p->d->subtile : t->size };
    desk w;
    set_book(&l.book, p->d);
    ways->search->list(&l.book);
    for (size_t first = 0; first < t->count; first += at_once) {
        tn_tiles some = some_of(p, t, first, smaller(at_once, t->count - first));
        const tn_search_tiles tiles = { .x = some.x, .count = some.count, .size = some.size, .step = w.step };
        ways->encode->largest(w.largest, some.x, some.count, some.size);
        if (!choose_scales(ways, p, &l, &tiles, &w))
            return false;
        ways->search->choose(codes_of(p, &some, &w), w.units, NULL, &tiles, l.subtile, &l.book);
        put_scales(ways, p, &some, &w);
        put_codes(ways, p, &some, &w);
        if (some.meta)
            put_units(ways, some.meta, w.units, some.count, some.size / l.subtile, p->meta.bits);
    }
    return true;
}

/* --- offsets ---------------------------------------------------------------------------------- */

/* What is below a normal number by less than the largest offset may have no offset of its own. */
static bool are_high(const desk *w, size_t tiles, int32_t most)
{
    for (size_t k = 0; k < tiles; k++)
        if (w->largest[k] && w->exponent[k] <= most)
            return false;
    return true;
}

static bool encode_offsets(const tn_search_ways *w, const tn_scaled_plan *p, const tn_tiles *t)
{
    const tn_datatype *d = p->d;
    const powers r = powers_of(p);
    size_t at_once = block_of(t->size);
    desk own;
    tn_search_offsets rules = { .subtile = d->subtile, .bump = r.bump, .most = (1 << d->offset_bits) - 1, .exponent = own.exponent };
    for (size_t first = 0; first < t->count; first += at_once) {
        tn_tiles some = some_of(p, t, first, smaller(at_once, t->count - first));
        w->encode->largest(own.largest, some.x, some.count, some.size);
        if (!set_powers(&r, &own, some.count) || !are_high(&own, some.count, rules.most))
            return false;
        const tn_search_tiles tiles = { .x = some.x, .count = some.count, .size = some.size, .factor = own.factor,
                                        .number = number_of(&d->number) };
        w->search->lower(codes_of(p, &some, &own), own.units, &tiles, &rules);
        put_scales(w, p, &some, &own);
        put_codes(w, p, &some, &own);
        put_units(w, some.offset, own.units, some.count, some.size / d->subtile, d->offset_bits);
    }
    return true;
}

/* --- the least error ------------------------------------------------------------------------------ */

static bool encode_least(const tn_search_ways *ways, const tn_scaled_plan *p, const tn_tiles *t)
{
    const trials r = trials_of(p, t->tensor_scale);
    size_t at_once = block_of(t->size);
    desk w;
    if (!(r.tensor_scale > 0 && isfinite(r.tensor_scale)))
        return false;
    for (size_t first = 0; first < t->count; first += at_once) {
        tn_tiles some = some_of(p, t, first, smaller(at_once, t->count - first));
        const tn_search_tiles tiles = { .x = some.x, .count = some.count, .size = some.size, .factor = w.factor, .step = w.step,
                                        .divide = !r.is_power, .number = number_of(&p->d->number) };
        ways->encode->largest(w.largest, some.x, some.count, some.size);
        if (!are_normal(&w, some.count))
            return false;
        for (unsigned i = 0; i < r.count; i++) {
            if (!set_trial(&r, &w, some.count, i))
                return false;
            ways->search->squares(w.sums, &tiles);
            take_better(&w, some.count, i == 0);
        }
        settle_trials(&w, some.count);
        ways->search->encode(codes_of(p, &some, &w), &tiles);
        put_scales(ways, p, &some, &w);
        put_codes(ways, p, &some, &w);
    }
    return true;
}

/* --- which way ------------------------------------------------------------------------------------ */

static bool has_simple_tiles(const tn_datatype *d)
{
    return d->scope == TN_SCOPE_TILE && d->dims == 1 && d->tile[0] >= TN_SEARCH_SIZE && d->tile[0] <= LARGEST && !d->has_zero;
}

tn_search_kind tn_scaled_search_kind(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    bool least = p->o.mode == TN_SCALE_MSE;
    if (p->o.round != TN_ROUND_EVEN || p->o.ggml)
        return TN_SEARCH_NONE;
    if (d->of)
        return p->o.unpacked ? TN_SEARCH_NONE : TN_SEARCH_SPARSE;
    if (!has_simple_tiles(d))
        return TN_SEARCH_NONE;
    if (least && !is_power(d) && !is_narrow(&d->scale) && !is_wide(&d->scale))
        return TN_SEARCH_NONE;
    if (d->number.kind == TN_NUMBER_CODEBOOK)
        return d->codebook.mappings <= TN_SEARCH_MAPPINGS && d->codebook.values <= TN_SEARCH_VALUES ? TN_SEARCH_BOOK : TN_SEARCH_NONE;
    if (!has_simple_number(d) || least == (d->offset_bits != 0))
        return TN_SEARCH_NONE;
    if (least)
        return TN_SEARCH_LEAST;
    return d->subtile <= TN_SEARCH_SUBTILE ? TN_SEARCH_OFFSETS : TN_SEARCH_NONE;
}

/* Whether what is kept can be encoded. */
static bool can_thin(const tn_scaled_plan *p)
{
    thinned dense;
    thin(&dense, p);
    return is_cast(p->d) || tn_scaled_encoder(&dense.plan);
}

bool tn_scaled_search_with(const tn_search_ways *w, const tn_scaled_plan *p, const tn_tiles *t)
{
    tn_search_kind kind = tn_scaled_search_kind(p);
    if (!w->search->select || t->choice)
        return false;
    if (kind == TN_SEARCH_SPARSE)
        return p->d->of <= w->search->widest && encode_sparse(w, p, t);
    if (t->size % TN_SEARCH_SIZE)               /* one that is larger than the dimension is cut to it */
        return false;
    switch (kind) {
    case TN_SEARCH_BOOK:    return encode_book(w, p, t);
    case TN_SEARCH_OFFSETS: return encode_offsets(w, p, t);
    case TN_SEARCH_LEAST:   return encode_least(w, p, t);
    default:                return false;
    }
}

static tn_search_kernels machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

static void make_machine(void)
{
    tn_search_kernels_init(&machine, tn_cpu_detect());
}

static const tn_search_kernels *kernels(void)
{
    pthread_once(&machine_once, make_machine);
    return &machine;
}

static bool search(const tn_scaled_plan *p, const tn_tiles *t)
{
    return tn_scaled_search_with(&(tn_search_ways){ kernels(), tn_encode_kernels_get() }, p, t);
}

tn_tiles_encode_fn tn_scaled_searcher(const tn_scaled_plan *p)
{
    tn_search_kind kind = tn_scaled_search_kind(p);
    if (kind == TN_SEARCH_NONE || !kernels()->select)
        return NULL;
    if (kind == TN_SEARCH_SPARSE && (p->d->of > kernels()->widest || !can_thin(p)))
        return NULL;
    return search;
}
