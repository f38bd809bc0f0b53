/* descriptor/copy.c - a descriptor with everything it points to. */
#include "descriptor/descriptor.h"
#include "base/error.h"
#include "tensor/array.h"

#include <string.h>

/* A failed copy stays failed: copy everything, test `bad` once. */
typedef struct copier {
    tn_arena *arena;
    bool      bad;
} copier;

static void *copy(copier *c, const void *items, size_t n, size_t size)
{
    if (!items)
        return NULL;
    void *own = tn_arena_zalloc(c->arena, n, size);
    c->bad = c->bad || !own;
    return own && n ? memcpy(own, items, n * size) : own;
}

static const char *copy_text(copier *c, const char *text)
{
    const char *own = text ? tn_arena_text(c->arena, text, strlen(text)) : NULL;
    c->bad = c->bad || (text && !own);
    return own;
}

static const tn_wia_extent *copy_extents(copier *c, const tn_wia_extent *given, uint32_t rank)
{
    tn_wia_extent *own = copy(c, given, rank, sizeof *own);
    for (uint32_t i = 0; own && i < rank; i++)
        own[i].symbol = copy_text(c, given[i].symbol);
    return own;
}

static const tn_wia_product *copy_products(copier *c, const tn_wia_product *given, uint32_t rank)
{
    tn_wia_product *own = copy(c, given, rank, sizeof *own);
    for (uint32_t i = 0; own && i < rank; i++) {
        const char **names = tn_arena_zalloc(c->arena, given[i].nsymbols, sizeof *names);
        c->bad = c->bad || !names;
        for (uint32_t k = 0; names && k < given[i].nsymbols; k++)
            names[k] = copy_text(c, given[i].symbols[k]);
        own[i].symbols = names;
    }
    return own;
}

static const tn_wia_constraint *copy_constraints(copier *c, const tn_wia_constraint *given, size_t n)
{
    tn_wia_constraint *own = copy(c, given, n, sizeof *own);
    for (size_t i = 0; own && i < n; i++)
        own[i].symbol = copy_text(c, given[i].symbol);
    return own;
}

static const tn_wia_extra *copy_extra(copier *c, const tn_wia_extra *given, size_t n)
{
    tn_wia_extra *own = copy(c, given, n, sizeof *own);
    for (size_t i = 0; own && i < n; i++)
        own[i] = (tn_wia_extra){ .path = copy_text(c, given[i].path), .key = copy_text(c, given[i].key),
                             .json = copy_text(c, given[i].json) };
    return own;
}

static void copy_sparse(copier *c, tn_wia_sparse *s)
{
    uint64_t bytes = 0;
    const int64_t count = (int64_t)s->nvalues;
    s->format = copy_text(c, s->format);
    s->shape = copy(c, s->shape, s->rank, sizeof *s->shape);
    s->indices = copy(c, s->indices, s->nindices, sizeof *s->indices);
    s->pointers = copy(c, s->pointers, s->npointers, sizeof *s->pointers);
    bool sized = tn_shape_nbytes(s->value_type, 1, &count, &bytes) == TN_OK;
    s->values = sized ? copy(c, s->values, (size_t)bytes, 1) : NULL;
}

tn_status tn_descriptor_copy(tn_descriptor *dst, const tn_descriptor *src, tn_arena *arena, tn_error *err)
{
    copier c = { .arena = arena };
    tn_descriptor d = *src;
    d.version = copy_text(&c, src->version);
    d.tensor_id = copy_text(&c, src->tensor_id);
    d.name = copy_text(&c, src->name);
    d.dimensions = copy_extents(&c, src->dimensions, src->rank);
    d.layout = copy_text(&c, src->layout);
    d.constraints = copy_constraints(&c, src->constraints, src->nconstraints);
    d.base_type = copy_text(&c, src->base_type);
    d.quantization.scales = copy(&c, src->quantization.scales, src->quantization.nscales, sizeof(double));
    d.quantization.zero_points =
        copy(&c, src->quantization.zero_points, src->quantization.nzero_points, sizeof(int64_t));
    d.strides = copy_products(&c, src->strides, src->rank);
    d.metadata = copy_text(&c, src->metadata);
    d.physical_shape = copy(&c, src->physical_shape, src->rank, sizeof *src->physical_shape);
    d.padding.dims = copy(&c, src->padding.dims, src->rank, sizeof *src->padding.dims);
    d.padding.values = copy(&c, src->padding.values, src->rank, sizeof *src->padding.values);
    d.padding.mode = copy_text(&c, src->padding.mode);
    copy_sparse(&c, &d.sparse);
    d.extra = copy_extra(&c, src->extra, src->nextra);
    TN_NEED(!c.bad, err);
    *dst = d;
    return TN_OK;
}
