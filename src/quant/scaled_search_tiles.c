/* quant/scaled_search_tiles.c - blocks of tiles: scales and output. */
#include "quant/scaled_search.h"

/* --- blocks --------------------------------------------------------------------------- */

static size_t bytes_of(const tn_scaled_field *field, size_t n)
{
    return (size_t)tn_scaled_field_bytes(field->bits, n);
}

size_t tn_search_kept(const tn_datatype *d, size_t n)
{
    return d->of ? n / d->of * d->keep : n;
}

static uint8_t *moved(uint8_t *part, size_t n)
{
    return part ? part + n : NULL;
}

/* `count` tiles from `first`, a multiple of 8, or of 1 if they begin on bytes in every part. */
static tn_tiles some_of(const tn_scaled_plan *p, const tn_tiles *t, size_t first, size_t count)
{
    tn_tiles some = *t;
    size_t units = tn_tile_units(p->d, t->size);
    some.count = count;
    some.x = t->x + first * t->size;
    some.data = moved(t->data, bytes_of(&p->data, first * tn_search_kept(p->d, t->size)));
    some.scale = moved(t->scale, bytes_of(&p->scale, first));
    some.zero = moved(t->zero, bytes_of(&p->zero, first));
    some.offset = moved(t->offset, first * bytes_of(&p->offset, units));
    some.meta = moved(t->meta, first * bytes_of(&p->meta, units));
    some.mask = moved(t->mask, first * t->size / 8);
    return some;
}

/* Tiles per block: one, if it is long. */
static size_t block_of(size_t size)
{
    if (size > TN_SEARCH_LARGEST)
        return 1;
    size_t n = TN_SEARCH_BLOCK / size / TN_SEARCH_FEWEST * TN_SEARCH_FEWEST;
    return n > TN_SEARCH_FEWEST ? n : TN_SEARCH_FEWEST;
}

tn_tiles tn_search_next(const tn_scaled_plan *p, const tn_tiles *t, size_t first)
{
    size_t most = block_of(tn_search_kept(p->d, t->size)), left = t->count - first;
    return some_of(p, t, first, left < most ? left : most);
}

/* --- numbers and scales ------------------------------------------------------------------- */

bool tn_search_is_narrow(const tn_number_spec *n)
{
    return n->kind == TN_NUMBER_FLOAT && n->emin >= -126 && n->emax + 23 - n->mantissa_bits <= 127;
}

bool tn_search_is_wide(const tn_number_spec *n)
{
    return n->kind == TN_NUMBER_FLOAT && n->exponent_bits == 8 && n->bias == 127 &&
           n->infnan == TN_INFNAN_IEEE;
}

tn_search_number tn_search_number_of(const tn_number_spec *n)
{
    tn_search_number r = { .bits = n->bits, .integer = n->kind != TN_NUMBER_FLOAT };
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

tn_search_powers tn_search_powers_of(const tn_scaled_plan *p)
{
    return (tn_search_powers){ tn_exponent_rules_of(p), 127 - tn_point_of(p->d) - p->d->scale.bias };
}

bool tn_search_set_power(const tn_search_powers *r, int32_t code, float *factor, float *step)
{
    int32_t to = r->rules.inverse - code, from = r->one + code;
    *factor = tn_float_of((uint32_t)to << 23);
    *step = tn_float_of((uint32_t)from << 23);
    return code <= r->rules.last && to >= 1 && to < 254 - 3 && from >= 1 && from <= 254;
}

bool tn_search_set_powers(const tn_search_powers *r, tn_search_scratch *w, size_t tiles)
{
    for (size_t k = 0; k < tiles; k++) {
        int32_t code = tn_search_code(r, w->largest[k] + (uint32_t)r->rules.bump, 0);
        bool zero = w->largest[k] == 0,
             normal = w->largest[k] >= TN_BITS_NORMAL && w->largest[k] < TN_BITS_INFINITE;
        w->exponent[k] = zero ? 0 : code - r->rules.offset;
        w->own.scale[k] = zero ? 0 : (uint32_t)code;
        w->own.factor[k] = 1;
        w->own.step[k] = 0;
        if (!zero && (!normal || !tn_search_set_power(r, code, &w->own.factor[k], &w->own.step[k])))
            return false;
    }
    return true;
}

/* --- output ------------------------------------------------------------------------------- */

void tn_search_put_scales(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t,
                          const tn_search_scales *from)
{
    tn_put_numbers(kernels->encode, t->scale, p->scale.bits, from->scale, t->count);
    if (p->d->has_zero)
        tn_put_numbers(kernels->encode, t->zero, p->zero.bits, from->zero, t->count);
}

uint8_t *tn_search_codes_to(const tn_scaled_plan *p, const tn_tiles *t, tn_search_scratch *w)
{
    return p->data.bits == 8 ? t->data : w->codes;
}

void tn_search_put_codes(const tn_search_tables *kernels, const tn_scaled_plan *p, const tn_tiles *t,
                         const tn_search_scratch *from)
{
    if (p->data.bits < 8)
        kernels->encode->pack(t->data, from->codes, t->count * t->size, p->data.bits);
}

void tn_search_put_units(const tn_search_tables *kernels, uint8_t *part, const uint8_t *units, size_t tiles,
                         size_t each, unsigned bits)
{
    size_t bytes = (size_t)tn_packed_bytes(each, bits);
    if (each * bits % 8 == 0) {
        kernels->encode->pack(part, units, tiles * each, bits);
        return;
    }
    for (size_t k = 0; k < tiles; k++)
        kernels->encode->pack(part + k * bytes, units + k * each, each, bits);
}
