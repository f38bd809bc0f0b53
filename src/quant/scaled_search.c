/* quant/scaled_search.c - the fast paths of datatypes that search or select.
 *
 * The kept values of sparse tiles are encoded like a dense tensor.  Mappings,
 * offsets and scales are tried for a block of tiles that stays in the first-level
 * cache. */
#include "quant/scaled_search.h"

#include <stdlib.h>

#include "kernels/cast/table.h"

/* --- sparsity --------------------------------------------------------------------------- */

/* The plan without its sparsity, for the kept values. */
typedef struct kept_plan {
    tn_datatype    d;
    tn_scaled_plan plan;
} kept_plan;

static void drop_sparsity(kept_plan *to, const tn_scaled_plan *p)
{
    to->d = *p->d;
    to->d.keep = to->d.of = 0;
    to->plan = *p;
    to->plan.d = &to->d;
}

/* Encodes one block; `kept` is a buffer for its kept values. */
static bool encode_kept(const tn_search_tables *w, const tn_scaled_plan *p, const kept_plan *dense,
                        const tn_tiles *t, float *kept)
{
    const tn_datatype *d = p->d;
    size_t n = t->count * t->size;
    bool plain = tn_datatype_is_exact(d);
    uint32_t most = w->search->select(plain && d->number.bits == 32 ? (void *)t->data : kept, t->mask, t->x,
                                      n, d->keep, d->of);
    if (most > TN_BITS_INFINITE && (!plain || p->o.nan != TN_NAN_KEEP))
        return false;
    if (plain && d->number.bits == 32)
        return true;
    if (plain) {
        const tn_cast_args args = { .rules = tn_encode_rules_for(&d->number.type, NULL) };
        tn_cast_kernels_get()->from_f32[d->number.dtype](t->data, kept, tn_search_kept(d, n), &args);
        return true;
    }
    tn_tiles part = *t;
    part.x = kept;
    part.size = tn_search_kept(d, t->size);
    return tn_scaled_search_kind(&dense->plan) ? tn_scaled_search_with(w, &dense->plan, &part)
                                               : tn_scaled_encode_with(w->encode, &dense->plan, &part);
}

static bool encode_sparse(const tn_search_tables *w, const tn_scaled_plan *p, const tn_tiles *t)
{
    float buffer[TN_SEARCH_FEWEST * TN_SEARCH_LARGEST], *kept = buffer;
    size_t each = tn_search_kept(p->d, t->size);
    kept_plan dense;
    bool done = true;
    drop_sparsity(&dense, p);
    if (t->count == 1 && each > sizeof buffer / sizeof *buffer)
        kept = malloc(each * sizeof *kept);
    else if (each > TN_SEARCH_LARGEST && t->count > 1)
        return false;
    for (size_t first = 0, n; kept && done && first < t->count; first += n) {
        tn_tiles some = tn_search_next(p, t, first);
        n = some.count;
        done = encode_kept(w, p, &dense, &some, kept);
    }
    done = done && kept;
    if (kept != buffer)
        free(kept);
    return done;
}

/* --- offsets ---------------------------------------------------------------------------------- */

/* Whether every exponent stays normal when the largest offset is subtracted. */
static bool are_high(const tn_search_scratch *w, size_t tiles, int32_t most)
{
    for (size_t k = 0; k < tiles; k++)
        if (w->largest[k] && w->exponent[k] <= most)
            return false;
    return true;
}

static bool encode_offsets(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t)
{
    const tn_datatype *d = p->d;
    const tn_search_powers r = tn_search_powers_of(p);
    tn_search_scratch w;
    const tn_search_offsets rules = { .subtile = d->subtile, .bump = r.rules.bump,
                                      .most = (1 << d->offset_bits) - 1,
                                      .exponent = w.exponent };
    for (size_t first = 0, n; first < t->count; first += n) {
        tn_tiles some = tn_search_next(p, t, first);
        const tn_search_tiles tiles = { .x = some.x, .count = some.count, .size = some.size,
                                        .factor = w.own.factor,
                                        .number = tn_search_number_of(&d->number) };
        n = some.count;
        kernels->encode->largest(w.largest, some.x, n, some.size);
        if (!tn_search_set_powers(&r, &w, n) || !are_high(&w, n, rules.most))
            return false;
        kernels->search->lower(tn_search_codes_to(p, &some, &w), w.units, &tiles, &rules);
        tn_search_put_scales(kernels, p, &some, &w.own);
        tn_search_put_codes(kernels, p, &some, &w);
        tn_search_put_units(kernels, some.offset, w.units, n, some.size / d->subtile, d->offset_bits);
    }
    return true;
}

/* --- selection ------------------------------------------------------------------------------------ */

static bool has_simple_tiles(const tn_datatype *d)
{
    return d->scope == TN_SCOPE_TILE && d->dims == 1 && d->tile[0] >= TN_SEARCH_SIZE &&
           d->tile[0] <= TN_SEARCH_LARGEST;
}

/* Tiles of one piece that are tried one by one: rows of any length. */
static bool has_long_tiles(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    return d->scope == TN_SCOPE_CHANNEL && d->number.kind != TN_NUMBER_CODEBOOK && !d->subtile &&
           !d->offset_bits && d->dims == 1 && p->inner == 1 && tn_scaled_pieces(p) == 1 &&
           p->count && p->tile_columns % TN_SEARCH_SIZE == 0 &&
           tn_scaled_ends_on_byte(p->scale.bits, 1) && tn_scaled_ends_on_byte(p->zero.bits, 1) &&
           tn_scaled_ends_on_byte(p->data.bits, p->tile_columns);
}

static bool is_simple_float(const tn_number_spec *n)
{
    return tn_search_is_narrow(n) || tn_search_is_wide(n);
}

static bool has_simple_number(const tn_datatype *d)
{
    return d->number.bits <= 8 && (d->number.kind == TN_NUMBER_INT || tn_search_is_narrow(&d->number));
}

static bool has_simple_zero(const tn_datatype *d)
{
    return d->number.kind == TN_NUMBER_UINT && d->number.bits <= 8 &&
           (d->zero.kind == TN_NUMBER_INT ? d->zero.bits <= 16 : is_simple_float(&d->zero));
}

static bool has_small_book(const tn_datatype *d)
{
    return d->codebook.mappings <= TN_SEARCH_MAPPINGS && d->codebook.values <= TN_SEARCH_VALUES;
}

tn_search_kind tn_scaled_search_kind(const tn_scaled_plan *p)
{
    const tn_datatype *d = p->d;
    bool least = p->o.rule == TN_SCALE_MSE;
    if (p->o.round != TN_ROUND_EVEN || p->o.ggml)
        return TN_SEARCH_NONE;
    if (d->of)
        return p->o.unpacked ? TN_SEARCH_NONE : TN_SEARCH_SPARSE;
    if (!has_simple_tiles(d) && !(least && has_long_tiles(p)))
        return TN_SEARCH_NONE;
    if (least && !tn_search_is_power(d) && !is_simple_float(&d->scale))
        return TN_SEARCH_NONE;
    if (d->number.kind == TN_NUMBER_CODEBOOK)
        return has_small_book(d) ? TN_SEARCH_BOOK : TN_SEARCH_NONE;
    if (least)
        return !d->offset_bits && (has_simple_number(d) || has_simple_zero(d)) ? TN_SEARCH_LEAST
                                                                               : TN_SEARCH_NONE;
    return d->offset_bits && d->subtile <= TN_SEARCH_SUBTILE && has_simple_number(d) ? TN_SEARCH_OFFSETS
                                                                                     : TN_SEARCH_NONE;
}

static bool can_encode_kept(const tn_scaled_plan *p)
{
    kept_plan dense;
    drop_sparsity(&dense, p);
    return tn_datatype_is_exact(p->d) || tn_scaled_encoder(&dense.plan);
}

bool tn_scaled_search_with(const tn_search_tables *w, const tn_scaled_plan *p, const tn_tiles *t)
{
    tn_search_kind kind = tn_scaled_search_kind(p);
    if (!w->search->select || t->choice)
        return false;
    if (kind == TN_SEARCH_SPARSE)
        return p->d->of <= w->search->widest && encode_sparse(w, p, t);
    if (t->size % TN_SEARCH_SIZE)               /* a tile larger than the dimension is shortened to it */
        return false;
    switch (kind) {
    case TN_SEARCH_BOOK:    return tn_search_encode_book(w, p, t);
    case TN_SEARCH_OFFSETS: return encode_offsets(w, p, t);
    case TN_SEARCH_LEAST:   return tn_search_encode_least(w, p, t);
    default:                return false;
    }
}

static bool search(const tn_scaled_plan *p, const tn_tiles *t)
{
    const tn_search_tables kernels = { tn_search_kernels_get(), tn_encode_kernels_get() };
    return tn_scaled_search_with(&kernels, p, t);
}

tn_tiles_encode_fn tn_scaled_searcher(const tn_scaled_plan *p)
{
    const tn_search_kernels *k = tn_search_kernels_get();
    tn_search_kind kind = tn_scaled_search_kind(p);
    if (kind == TN_SEARCH_NONE || !k->select)
        return NULL;
    if (kind == TN_SEARCH_SPARSE && (p->d->of > k->widest || !can_encode_kept(p)))
        return NULL;
    return search;
}
