/* pipeline/steps/repack.c - codes of a block type into those of another datatype, or back, by moving bits.
 *
 * Its input is the step `decode`, whose codes it takes instead of their values. */
#include "pipeline/steps/decode.h"
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "quant/repack.h"
#include "tensor/array.h"

#include <string.h>

enum { ITEM = 4096 };           /* blocks that are moved at a time */

typedef struct moving {
    const tn_repacking  *how;
    const tn_block_info *block;
    bool                 splits;        /* blocks into parts; else back */
    bool                 gathers;       /* scales are those of larger tiles, or of another type */
    uint64_t             count;         /* of all blocks */
} moving;

static const float one = 1;     /* the scale of the tensor, where a datatype has one */

/* Whether the parts have the scales of blocks as they are: nvfp4 may have one of the tensor besides. */
static bool has_own_scales(const tn_block_info *block, const char *datatype)
{
    return block->block != TN_BLOCK_NVFP4 && tn_repacking_find(block, datatype);
}

static const tn_repacking *find_like(const tn_block_info *block, const char *datatype)
{
    tn_datatype *d = NULL;
    if (tn_datatype_parse(datatype, &d, NULL) != TN_OK)
        return NULL;
    const tn_repacking *found = tn_repacking_like(block, d);
    tn_datatype_free(d);
    return found;
}

const tn_repacking *tn_repacking_of(const tn_view *decoded, const tn_datatype *to)
{
    const tn_scaling *from = decoded->step == &tn_step_decode ? decoded->input->tensor.scaling : NULL;
    if (!from || !from->datatype || from->unpacked || from->rotation.size || from->store != TN_UNKNOWN)
        return NULL;
    if (to->block && has_own_scales(to->block, from->datatype))
        return tn_repacking_find(to->block, from->datatype);
    if (to->block)
        return find_like(to->block, from->datatype);
    const char *colon = strchr(from->datatype, ':');    /* ggml:NAME */
    return colon ? tn_repacking_find(tn_block_named(colon + 1), tn_datatype_text(to)) : NULL;
}

static tn_status describe(tn_view *v, const void *options, tn_error *err)
{
    const tn_quantize_task *task = options;
    moving *m = v->state = tn_arena_zalloc(v->arena, 1, sizeof *m);
    uint64_t count;
    TN_NEED(m, err);
    tn_view_keep_codes(v->input);
    m->how = tn_repacking_of(v->input, task->datatype);
    m->block = tn_block_get(m->how->block);
    m->splits = !task->datatype->block;
    m->gathers = !m->splits && !has_own_scales(m->block, v->input->input->tensor.scaling->datatype);
    TN_TRY(tn_shape_count(v->tensor.rank, v->tensor.shape, &count));
    m->count = count / m->block->values;
    TN_TRY(tn_declare_codes(v, task->datatype, &task->options, err));
    for (uint32_t i = 0; i < v->tensor.nparts; i++)
        if (strcmp(v->parts[i].role, "tscale") == 0)
            v->parts[i].data = &one;
    return TN_OK;
}

static tn_status prepare(tn_view *v, const tn_preparing *p, tn_error *err)
{
    return tn_view_prepare(v->input, p, err);
}

static uint64_t blocks(const tn_view *v)
{
    const moving *m = v->state;
    return m->count ? tn_div_up_u64(m->count, ITEM) : 1;
}

static tn_status refuse(const tn_view *v, const moving *m, uint64_t block, tn_error *err)
{
    char where[200];
    tn_element_text(where, sizeof where, block * m->block->values, v->tensor.rank, v->tensor.shape);
    return tn_fail(err, TN_ERR_LOSS,
                   "a scale of the block that begins with %s means something else in %s than in %s: cast it "
                   "to float32 first", where, m->splits ? m->how->datatype : m->block->name,
                   m->splits ? m->block->name : m->how->datatype);
}

/* Some blocks. */
typedef struct range {
    uint64_t first;
    size_t   n;
} range;

static range range_of(const moving *m, uint64_t item)
{
    uint64_t first = item * ITEM;
    return (range){ first, (size_t)tn_min_u64(m->count - first, ITEM) };
}

/* Of a part that has so many bytes for each block. */
static tn_part_bytes take(const uint8_t *bytes, range r, size_t each)
{
    return (tn_part_bytes){ bytes, r.first * each, r.n * each };
}

static tn_status split(const tn_view *v, range r, tn_worker *w, tn_part_bytes *out, tn_error *err)
{
    const moving *m = v->state;
    const tn_repacking *how = m->how;
    const size_t each = (size_t)how->data + how->scale + how->zero;
    const tn_scaled_plan *from = &tn_view_decoder(v->input)->plan;
    tn_repacked_parts to = { 0 };
    TN_TRY(tn_worker_buffer(w, v, 0, r.n * each, &to.scale, err));
    to.zero = to.scale + r.n * how->scale;
    to.data = to.zero + r.n * how->zero;
    size_t moved = tn_repack_split(how, from->data.data + r.first * m->block->bytes, r.n, to);
    if (moved < r.n)
        return refuse(v, m, r.first + moved, err);
    for (uint32_t i = 0; i < v->tensor.nparts; i++) {
        const char *role = v->parts[i].role;
        if (strcmp(role, "data") == 0)
            out[i] = take(to.data, r, how->data);
        else if (strcmp(role, "scale") == 0)
            out[i] = take(to.scale, r, how->scale);
        else if (strcmp(role, "zero") == 0)
            out[i] = take(to.zero, r, how->zero);
    }
    return TN_OK;
}

static tn_status gather(const tn_view *v, range r, tn_worker *w, tn_part_bytes *out, tn_error *err)
{
    const moving *m = v->state;
    const tn_scaled_plan *from = &tn_view_decoder(v->input)->plan;
    const char *why = NULL;
    uint8_t *made = NULL;
    TN_TRY(tn_worker_buffer(w, v, 0, (uint64_t)r.n * m->block->bytes, &made, err));
    size_t moved = tn_repack_gather(m->how, from, r.first, r.n, made, &why);
    if (moved < r.n) {
        char where[200];
        tn_element_text(where, sizeof where, (r.first + moved) * m->block->values, v->tensor.rank,
                        v->tensor.shape);
        return tn_fail(err, TN_ERR_LOSS, "the block that begins with %s cannot become %s without rounding "
                       "again: %s (cast it to float32 first)", where, m->block->name, why);
    }
    out[0] = take(made, r, m->block->bytes);
    return TN_OK;
}

static tn_status join(const tn_view *v, range r, tn_worker *w, tn_part_bytes *out, tn_error *err)
{
    const moving *m = v->state;
    const tn_repacking *how = m->how;
    const tn_scaled_plan *p = &tn_view_decoder(v->input)->plan;
    tn_repacked_parts from = { .data = p->data.data + r.first * how->data,
                               .scale = p->scale.data + r.first * how->scale };
    uint8_t *made = NULL;
    if (how->zero)
        from.zero = p->zero.data + r.first * how->zero;
    TN_TRY(tn_worker_buffer(w, v, 0, (uint64_t)r.n * m->block->bytes, &made, err));
    size_t moved = tn_repack_join(how, from, r.n, made);
    if (moved < r.n)
        return refuse(v, m, r.first + moved, err);
    out[0] = take(made, r, m->block->bytes);
    return TN_OK;
}

static void span(const tn_view *v, uint64_t block, uint64_t *first, uint64_t *n)
{
    const moving *m = v->state;
    const range r = range_of(m, block);
    *first = r.first * m->block->values;
    *n = r.n * m->block->values;
}

static tn_status block(const tn_view *v, uint64_t number, tn_worker *w, tn_part_bytes *out, tn_error *err)
{
    const moving *m = v->state;
    const range r = range_of(m, number);
    if (!r.n)
        return TN_OK;
    if (m->gathers)
        return gather(v, r, w, out, err);
    return m->splits ? split(v, r, w, out, err) : join(v, r, w, out, err);
}

const tn_step tn_step_repack = {
    .name = "repack", .most_parts = TN_MAX_PARTS, .describe = describe, .prepare = prepare, .blocks = blocks,
    .block = block, .span = span,
};
