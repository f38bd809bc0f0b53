/* sparse/sparse_tensor.c - the result of a conversion as a tensor in memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/pages.h"
#include "kernels/stream.h"
#include "sparse/sparse_plan.h"

enum {
    HUGE_PAGE   = 2 << 20,
    FRESH_BYTES = 32 << 20      /* calloc() gets a block of this size from the system, which gives zeros */
};

/* A tensor that owns its description and the data of its parts. */
typedef struct owned_tensor {
    tn_tensor tensor;           /* first, so that tn_tensor_free() can cast */
    tn_part   parts[3];
    void     *blocks[3];        /* to free: the data, or the memory around it */
    int64_t   shapes[3][2];     /* of the parts of a sparse tensor */
    int64_t   shape[];          /* then the name and the layout */
} owned_tensor;

/* --- memory ----------------------------------------------------------------------- */

void *tn_lines_alloc(uint64_t nbytes)
{
    uint64_t whole;
    if (!tn_align_u64(nbytes ? nbytes : 1, TN_LINE, &whole) || whole > SIZE_MAX)
        return NULL;
    return whole < HUGE_PAGE ? aligned_alloc(TN_LINE, (size_t)whole) : tn_pages_alloc((size_t)whole);
}

/* Fresh memory is zero already, and a page without an entry is never touched. */
static uint8_t *alloc_zeros(uint64_t nbytes, void **block)
{
    *block = nbytes < SIZE_MAX - HUGE_PAGE ? calloc(1, (size_t)nbytes + HUGE_PAGE) : NULL;
    if (!*block)
        return NULL;
    uint8_t *data = *block;
    data += HUGE_PAGE - (uintptr_t)data % HUGE_PAGE;
#ifdef MADV_HUGEPAGE
    /* only a hint */
    madvise(data, (size_t)nbytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return data;
}

/* Memory for a part, or the part itself if it is converted already. */
static void *take_part(tn_sparse_conversion *r, uint32_t part, void **block)
{
    uint8_t **there = part == 2 ? &r->pointers : &r->converted[part];
    if (r->to == TN_FORM_DENSE && (r->items.form != TN_FORM_DENSE || r->filtered) &&
        r->parts[part].nbytes >= FRESH_BYTES) {
        r->zeroed = true;
        return alloc_zeros(r->parts[part].nbytes, block);
    }
    *block = *there ? *there : tn_lines_alloc(r->parts[part].nbytes);
    *there = NULL;
    return *block;
}

/* --- description -------------------------------------------------------------------- */

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static char *copy_text(char **next, const char *text)
{
    char *copy = text ? memcpy(*next, text, text_bytes(text)) : NULL;
    *next += text_bytes(text);
    return copy;
}

static owned_tensor *copy_description(const tn_tensor *t)
{
    size_t shape = t->rank * sizeof *t->shape;
    owned_tensor *m = calloc(1, sizeof *m + shape + text_bytes(t->name) + text_bytes(t->layout));
    if (!m)
        return NULL;
    char *texts = (char *)m->shape + shape;
    m->tensor = *t;             /* form and roles are constants of the library */
    if (shape)
        memcpy(m->shape, t->shape, shape);
    m->tensor.shape = m->shape;
    m->tensor.name = copy_text(&texts, t->name);
    m->tensor.layout = copy_text(&texts, t->layout);
    m->tensor.parts = m->parts;
    for (uint32_t i = 0; i < t->nparts; i++) {
        m->parts[i] = t->parts[i];
        m->parts[i].array.shape = t->nparts == 1 ? m->shape : m->shapes[i];
        if (t->nparts > 1)
            memcpy(m->shapes[i], t->parts[i].array.shape, t->parts[i].array.rank * sizeof *m->shape);
    }
    return m;
}

/* --- the tensor ------------------------------------------------------------------------ */

tn_status tn_sparse_tensor(tn_sparse_conversion *r, tn_pool *pool, tn_tensor **result, tn_error *err)
{
    owned_tensor *m = copy_description(&r->result);
    void *data[3] = { NULL };
    bool room = m != NULL;
    for (uint32_t i = 0; i < r->result.nparts && room; i++) {
        m->parts[i].data = data[i] = take_part(r, i, &m->blocks[i]);
        room = data[i] != NULL;
    }
    tn_status status = room ? tn_sparse_convert_all(r, data[0], data[1], pool, err) : tn_fail_nomem(err);
    if (status == TN_OK)
        *result = &m->tensor;
    else if (m)
        tn_tensor_free(&m->tensor);
    return status;
}

void tn_tensor_free(tn_tensor *tensor)
{
    owned_tensor *m = (owned_tensor *)tensor;
    for (uint32_t i = 0; m && i < tensor->nparts; i++)
        free(m->blocks[i]);
    free(m);
}
