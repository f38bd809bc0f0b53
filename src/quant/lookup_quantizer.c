/* quant/lookup_quantizer.c - the 4-bit tables of bitsandbytes: bnb:nf4_t64, bnb:fp4_t64.
 *
 * A value is table[code] * scale.  Tiles are of the flattened tensor and may cross rows.  Two codes share a
 * byte, the first in the high bits.  They are read, not written. */
#include "quant/quantizer.h"
#include "quant/moved_codes.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/lookup/table.h"
#include "tensor/array.h"

enum { LEAST_TILE = 16, MOST_TILE = 1 << 16 };

typedef struct table {
    const char *name;
    float       values[16];
} table;

static const table tables[] = {
    { "bnb:nf4_t",
      { -1.0f, -0x1.647362p-1f, -0x1.0cd66p-1f, -0x1.946540p-2f, -0x1.23449ap-2f, -0x1.7a6a7ep-3f,
        -0x1.74f0e2p-4f, 0, 0x1.45f5fep-4f, 0x1.4995c6p-3f, 0x1.f809bap-3f, 0x1.5a0674p-2f, 0x1.c34970p-2f,
        0x1.200f56p-1f, 0x1.722766p-1f, 1.0f } },
    { "bnb:fp4_t",
      { 0, 0x1.555556p-8f, 0x1.555556p-1f, 1.0f, 0x1.555556p-2f, 0.5f, 0x1.555556p-3f, 0.25f,
        0, -0x1.555556p-8f, -0x1.555556p-1f, -1.0f, -0x1.555556p-2f, -0.5f, -0x1.555556p-3f, -0.25f } },
};

static const table *find(const char *text)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strncmp(text, tables[i].name, strlen(tables[i].name)) == 0)
            return &tables[i];
    return NULL;
}

const float *tn_lookup_table(const char *text)
{
    const table *t = find(text);
    return t ? t->values : NULL;
}

static bool is_text(const char *text) { return find(text) != NULL; }

/* A power of two, without other characters after it; 0: something else. */
static uint32_t read_tile(const char *digits)
{
    uint32_t tile = 0;
    for (; *digits >= '0' && *digits <= '9' && tile <= MOST_TILE; digits++)
        tile = tile * 10 + (uint32_t)(*digits - '0');
    return *digits || tile < LEAST_TILE || tile > MOST_TILE || !tn_is_power_of_two(tile) ? 0 : tile;
}

static tn_status parse(const char *text, tn_datatype **datatype, tn_error *err)
{
    uint32_t tile = read_tile(text + strlen(find(text)->name));
    if (!tile)
        return tn_fail(err, TN_ERR_ARGUMENT, "%s: a tile is a power of two of %d to %d",
                       tn_quote_z(text).text, LEAST_TILE, MOST_TILE);
    tn_datatype *d = calloc(1, sizeof *d);
    if (!d || !(d->text = strdup(text))) {
        free(d);
        return tn_fail_nomem(err);
    }
    d->quantizer = &tn_lookup_quantizer;
    d->number = (tn_number_spec){ .kind = TN_NUMBER_CODEBOOK, .bits = 4, .maxint = 15, .dtype = TN_UNKNOWN };
    d->scale = (tn_number_spec){ .kind = TN_NUMBER_FLOAT, .bits = 32, .dtype = TN_FLOAT32 };
    d->scope = TN_SCOPE_TILE;
    d->dims = 1;
    d->dim = -1;
    d->tile[0] = tile;
    *datatype = d;
    return TN_OK;
}

static tn_status shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *s,
                        tn_error *err)
{
    uint64_t count;
    if (!rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "%s is for tensors of one dimension or more", d->text);
    tn_status status = tn_shape_count(rank, shape, &count);
    if (status)
        return tn_fail(err, status, "the tensor is too large");
    s->parts[s->count++] = (tn_scaled_part){ .role = "data", .plain_dtype = TN_UINT8, .dtype = TN_UINT8,
                                             .rank = 1, .plain_shape = { (int64_t)count },
                                             .shape = { (int64_t)tn_div_up_u64(count, 2) } };
    int64_t tiles = (int64_t)tn_div_up_u64(count, d->tile[0]);
    s->parts[s->count++] = (tn_scaled_part){ .role = "scale", .plain_dtype = TN_FLOAT32,
                                             .dtype = TN_FLOAT32, .rank = 1, .plain_shape = { tiles },
                                             .shape = { tiles } };
    return TN_OK;
}

static tn_status open_values(tn_part_values *v, tn_error *err)
{
    (void)v, (void)err;
    return TN_OK;
}

typedef struct reader {
    const tn_scaled_plan    *p;
    const tn_lookup_kernels *k;
    const float             *table;
} reader;

/* Values of one tile from its element `at` on, which is even. */
static inline void read_piece(const reader *r, uint64_t at, size_t n, float *y)
{
    float scale;
    memcpy(&scale, r->p->scale.data + at / r->p->d->tile[0] * sizeof scale, sizeof scale);
    r->k->fours(y, r->p->data.data + at / 2, n, r->table, scale);
}

static void read_values(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    const reader r = { v->plan, tn_lookup_kernels_get(), find(v->plan->d->text)->values };
    const uint32_t tile = v->plan->d->tile[0];
    while (n) {
        float pair[2];
        size_t some = (size_t)tn_min_u64(n, tile - first % tile);
        if (first % 2) {                /* inside a byte */
            read_piece(&r, first - 1, 2, pair);
            *y = pair[1];
            some = 1;
        } else {
            read_piece(&r, first, some, y);
        }
        first += some;
        y += some;
        n -= some;
    }
}

enum { TILES = 256 };           /* at a time */

static bool read_bf16(const tn_part_values *v, uint64_t first, size_t n, uint8_t *y)
{
    const tn_scaled_plan *p = v->plan;
    const uint32_t tile = p->d->tile[0];
    float scale[TILES];
    const tn_lookup_values values = { .number = find(p->d->text)->values, .scale = scale,
                                      .high_first = true };
    if (first % tile || n % tile)
        return false;
    for (size_t tiles; n; first += tiles * tile, n -= tiles * tile, y += 2 * tiles * tile) {
        tiles = (size_t)tn_min_u64(n / tile, TILES);
        memcpy(scale, p->scale.data + first / tile * sizeof *scale, tiles * sizeof *scale);
        tn_lookup_kernels_get()->fours_to_bf16(y, p->data.data + first / 2, tiles, tile, &values);
    }
    return true;
}

static bool keeps_bf16(const tn_part_values *v)
{
    const uint64_t tiles = v->plan->count / v->plan->d->tile[0];
    float scale[TILES];
    bool all = true;
    for (uint64_t at = 0; at < tiles && all; at += TILES) {
        const size_t n = (size_t)tn_min_u64(tiles - at, TILES);
        memcpy(scale, v->plan->scale.data + at * sizeof *scale, n * sizeof *scale);
        all = tn_are_moderate(scale, n);
    }
    return all;
}

const tn_quantizer tn_lookup_quantizer = {
    .name = "lookup", .is_text = is_text, .parse = parse, .shapes = shapes, .check = tn_check_plain_options,
    .prepare = tn_refuse_encoding, .open = open_values, .read = read_values,
    .read_bf16 = read_bf16, .keeps_bf16 = keeps_bf16,
};
