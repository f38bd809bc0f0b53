/* formats/conventions/bitsandbytes.c - NF4, FP4 and int8.
 *
 *     4 bits  NAME: two codes a byte, of the flattened tensor; NAME.absmax: a scale for each block of them;
 *             NAME.quant_map: the table; NAME.quant_state.bitsandbytes__nf4: JSON with shape and block size.
 *             Nested: absmax has codes of its own, with nested_quant_map, nested_absmax and an offset
 *     int8    P.weight, P.SCB: the largest magnitude of each row */
#include "formats/conventions/unpack.h"
#include "base/error.h"
#include "bytes/json.h"
#include "quant/moved_codes.h"
#include "tensor/array.h"

#include <stdlib.h>
#include <string.h>

enum { STATE, CODES, ABSMAX, QUANT_MAP, NESTED_ABSMAX, NESTED_MAP };
enum { MAX_STATE = 1 << 16, NESTED_CODES = 256, TABLE = 16 };

typedef struct quant_state {
    tn_text  type;
    tn_dtype dtype;
    uint32_t rank;
    int64_t  shape[TN_MAX_RANK];
    uint64_t block, nested_block;
    double   nested_offset;
} quant_state;

/* ---- the state ---- */

static void read_shape(tn_json *j, quant_state *q)
{
    tn_json_array(j);
    while (tn_json_item(j)) {
        uint64_t size = tn_json_u64(j);
        if (q->rank == TN_MAX_RANK || size > INT64_MAX) {
            tn_json_reject(j, TN_ERR_CORRUPT, "the shape is too large");
            return;
        }
        q->shape[q->rank++] = (int64_t)size;
    }
}

static void read_keys(tn_json *j, quant_state *q)
{
    tn_json_keys keys = { 0 };
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        tn_json_push_key(j, &keys, key);
        if (tn_text_is(key, "quant_type"))
            q->type = tn_json_string(j);
        else if (tn_text_is(key, "blocksize"))
            q->block = tn_json_u64(j);
        else if (tn_text_is(key, "dtype"))
            q->dtype = tn_config_type(tn_json_string(j));
        else if (tn_text_is(key, "shape"))
            read_shape(j, q);
        else if (tn_text_is(key, "nested_blocksize"))
            q->nested_block = tn_json_u64(j);
        else if (tn_text_is(key, "nested_offset"))
            q->nested_offset = tn_json_f64(j);
        else
            tn_json_skip(j);
    }
    tn_json_pop_keys(j, &keys, 0);
    free(keys.items);
    tn_json_done(j);
}

static bool read_state(tn_unpacking *u, quant_state *q)
{
    const tn_tensor *state = u->from[STATE];
    size_t size = state->parts[0].nbytes <= MAX_STATE ? (size_t)state->parts[0].nbytes : 0;
    char *text = tn_arena_zalloc(&u->file->arena, size + 1, 1);
    tn_json j;
    if (!text) {
        u->status = tn_fail_nomem(u->err);
        return false;
    }
    if (!size || !tn_unpack_read(u, state, text, size))
        return tn_unpack_refuse(u, "%s has not the size of a JSON text", tn_quote_z(state->name).text);
    tn_json_init(&j, text, size, &u->file->arena);
    read_keys(&j, q);
    if (j.status == TN_ERR_NOMEM)
        u->status = tn_fail_nomem(u->err);
    if (j.status)
        return tn_unpack_refuse(u, "%s: %s", tn_quote_z(state->name).text, j.why);
    return true;
}

/* ---- 4 bits ---- */

/* The table must be the one that the datatype has. */
static bool has_table(tn_unpacking *u, const char *name)
{
    const tn_tensor *map = u->from[QUANT_MAP];
    float table[TABLE];
    if (map->dtype != TN_FLOAT32 || map->parts[0].nbytes != sizeof table ||
        !tn_unpack_read(u, map, table, sizeof table) ||
        memcmp(table, tn_lookup_table(name), sizeof table) != 0)
        return tn_unpack_refuse(u, "%s is not the table of its type", tn_quote_z(map->name).text);
    return true;
}

/* One line is what one nested scale is for. */
static tn_status fill_nested(tn_line_state *s, tn_error *err)
{
    const tn_lines *how = s->how;
    const float *map = (const float *)(const void *)s->scratch;
    uint8_t *codes = s->scratch + NESTED_CODES * sizeof *map;
    uint64_t left = how->columns - s->number * how->group;
    size_t n = (size_t)(left < how->group ? left : how->group);
    float scale;
    TN_TRY(tn_line_take(s, 1, &scale, sizeof scale, err));
    TN_TRY(tn_line_take(s, 0, codes, n, err));
    for (size_t i = 0; i < n; i++) {
        float product = map[codes[i]] * scale, value = product + how->offset;
        memcpy(s->line + i * sizeof value, &value, sizeof value);
    }
    s->size = n * sizeof(float);
    return TN_OK;
}

static tn_status read_map(tn_line_state *s, tn_error *err)
{
    return tn_line_take(s, 2, s->scratch, NESTED_CODES * sizeof(float), err);
}

static bool use_nested(tn_unpacking *u, const quant_state *q, uint64_t tiles)
{
    const tn_tensor *codes = u->from[ABSMAX], *scale = u->from[NESTED_ABSMAX], *map = u->from[NESTED_MAP];
    const tn_input inputs[] = { { codes, false }, { scale, false }, { map, false } };
    uint64_t block = q->nested_block;
    if (!scale || !map || scale->dtype != TN_FLOAT32 || map->dtype != TN_FLOAT32 ||
        map->parts[0].nbytes != NESTED_CODES * sizeof(float))
        return tn_unpack_refuse(u, "its nested scales are incomplete");
    if (!block || block > UINT16_MAX || codes->parts[0].nbytes != tiles ||
        scale->parts[0].nbytes / sizeof(float) != tiles / block + (tiles % block != 0))
        return tn_unpack_refuse(u, "its nested scales are not one for each %llu scales",
                                (unsigned long long)block);
    const tn_lines how = { .fill = fill_nested, .begin = read_map, .columns = tiles, .group = block,
                           .count = tiles / block + (tiles % block != 0),
                           .size = (size_t)block * sizeof(float), .offset = (float)q->nested_offset,
                           .scratch = NESTED_CODES * sizeof(float) + (size_t)block };
    return tn_unpack_lines(u, "scale", &how, inputs, 3);
}

bool tn_unpack_bnb_4bit(tn_unpacking *u)
{
    const tn_tensor *absmax = u->from[ABSMAX];
    quant_state q = { .dtype = TN_UNKNOWN };
    uint64_t count = 0;
    if (!tn_unpack_rename(u, "") || !read_state(u, &q))
        return false;
    const char *name = tn_text_is(q.type, "fp4") ? "bnb:fp4_t" : "bnb:nf4_t";
    if (!tn_text_is(q.type, "fp4") && !tn_text_is(q.type, "nf4"))
        return tn_unpack_refuse(u, "its type %s is none of nf4 and fp4",
                                tn_quote(q.type.ptr, q.type.len).text);
    if (!q.rank || tn_shape_count(q.rank, q.shape, &count) || !q.block)
        return tn_unpack_refuse(u, "its state has no shape or no block size");
    u->rank = q.rank;
    memcpy(u->shape, q.shape, q.rank * sizeof *q.shape);
    u->dtype = q.dtype;
    if (!has_table(u, name) || !tn_unpack_as(u, "%s%llu", name, (unsigned long long)q.block) ||
        !tn_unpack_take(u, "data", u->from[CODES]))
        return false;
    if (absmax->dtype == TN_UINT8)
        return use_nested(u, &q, count / q.block + (count % q.block != 0));
    return absmax->dtype == TN_FLOAT32 ? tn_unpack_take(u, "scale", absmax)
                                       : tn_unpack_refuse(u, "its scales are not float32");
}

/* ---- 8 bits ---- */

enum { SCB, WEIGHT, FORMAT };

bool tn_unpack_bnb_8bit(tn_unpacking *u)
{
    const tn_tensor *codes = u->from[WEIGHT], *scale = u->from[SCB];
    int64_t format = 0;
    if (u->from[FORMAT] && !tn_unpack_number(u, u->from[FORMAT], &format))
        return false;
    if (format)
        return tn_unpack_refuse(u, "its rows are in another order (weight_format %lld)", (long long)format);
    if (scale->dtype != TN_FLOAT32 || scale->rank != 1 || codes->rank != 2 ||
        scale->shape[0] != codes->shape[0])
        return tn_unpack_refuse(u, "its scales are not float32, one for each row");
    u->rank = codes->rank;
    memcpy(u->shape, codes->shape, codes->rank * sizeof *codes->shape);
    return tn_unpack_as(u, "bnb:int8|float32_t0") && tn_unpack_take(u, "data", codes) &&
           tn_unpack_take(u, "scale", scale);
}
