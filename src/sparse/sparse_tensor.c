/* sparse/sparse_tensor.c - the tensor that a conversion makes in memory, and what it is made of. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/pages.h"
#include "sparse/sparse_plan.h"

enum {
    LINE        = 64,           /* bytes; parts begin on one */
    HUGE_PAGE   = 2 << 20,
    FRESH_BYTES = 32 << 20      /* a block of this size comes from the system, which gives zeros */
};

/* A tensor and all of its description; the data of its parts belong to it. */
typedef struct made_tensor {
    tn_tensor tensor;           /* first: who has this has the other */
    tn_part   parts[3];
    void     *blocks[3];        /* what to free: the data, or where they are in */
    int64_t   shapes[3][2];     /* of parts of a sparse one */
    int64_t   shape[];          /* and the texts after it */
} made_tensor;

/* --- memory ----------------------------------------------------------------------- */

void *tn_lines_alloc(uint64_t nbytes)
{
    uint64_t whole;
    if (!tn_align_u64(nbytes ? nbytes : 1, LINE, &whole) || whole > SIZE_MAX)
        return NULL;
    return whole < HUGE_PAGE ? aligned_alloc(LINE, (size_t)whole) : tn_pages_alloc((size_t)whole);
}

/* Zeros that need not be written: what the system gives is zero, and a page
 * without an entry is never touched. */
static uint8_t *alloc_zeros(uint64_t nbytes, void **block)
{
    *block = nbytes < SIZE_MAX - HUGE_PAGE ? calloc(1, (size_t)nbytes + HUGE_PAGE) : NULL;
    if (!*block)
        return NULL;
    uint8_t *data = *block;
    data += HUGE_PAGE - (uintptr_t)data % HUGE_PAGE;
#ifdef MADV_HUGEPAGE
    /* a wish: nothing depends on it */
    madvise(data, (size_t)nbytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return data;
}

/* Memory for a part, or the part where it has been made. */
static void *take_part(tn_sparse_conversion *r, uint32_t part, void **block)
{
    uint8_t **there = part == 2 ? &r->pointers : &r->gathered[part];
    if (r->to == TN_FORM_DENSE && (r->items.form != TN_FORM_DENSE || r->sifted) &&
        r->parts[part].nbytes >= FRESH_BYTES) {
        r->zeroed = true;
        return alloc_zeros(r->parts[part].nbytes, block);
    }
    *block = *there ? *there : tn_lines_alloc(r->parts[part].nbytes);
    *there = NULL;
    return *block;
}

/* --- description -------------------------------------------------------------------- */

static char *keep_text(char **next, const char *text)
{
    size_t n = text ? strlen(text) + 1 : 0;
    char *kept = *next;
    if (!text)
        return NULL;
    memcpy(kept, text, n);
    *next += n;
    return kept;
}

static made_tensor *copy_description(const tn_tensor *t)
{
    size_t name = t->name ? strlen(t->name) + 1 : 0, layout = t->layout ? strlen(t->layout) + 1 : 0;
    size_t shape = t->rank * sizeof *t->shape;
    made_tensor *m = calloc(1, sizeof *m + shape + name + layout);
    if (!m)
        return NULL;
    char *texts = (char *)m->shape + shape;
    m->tensor = *t;             /* the form and the roles live as long as the library */
    if (shape)
        memcpy(m->shape, t->shape, shape);
    m->tensor.shape = m->shape;
    m->tensor.name = keep_text(&texts, t->name);
    m->tensor.layout = keep_text(&texts, t->layout);
    m->tensor.parts = m->parts;
    for (uint32_t i = 0; i < t->nparts; i++) {
        m->parts[i] = t->parts[i];
        m->parts[i].array.shape = m->shape;
        if (t->nparts == 1)
            break;
        memcpy(m->shapes[i], t->parts[i].array.shape, t->parts[i].array.rank * sizeof *m->shape);
        m->parts[i].array.shape = m->shapes[i];
    }
    return m;
}

/* --- the tensor ------------------------------------------------------------------------ */

tn_status tn_sparse_make_tensor(tn_sparse_conversion *r, tn_pool *pool, tn_tensor **made, tn_error *err)
{
    made_tensor *m = copy_description(&r->result);
    void *data[3] = { NULL };
    bool room = m != NULL;
    for (uint32_t i = 0; i < r->result.nparts && room; i++) {
        m->parts[i].data = data[i] = take_part(r, i, &m->blocks[i]);
        room = data[i] != NULL;
    }
    tn_status status = room ? tn_sparse_make_all(r, data[0], data[1], pool, err) : tn_fail_nomem(err);
    if (status == TN_OK)
        *made = &m->tensor;
    else if (m)
        tn_tensor_free(&m->tensor);
    return status;
}

void tn_tensor_free(tn_tensor *made)
{
    if (!made)
        return;
    made_tensor *m = (made_tensor *)made;
    for (uint32_t i = 0; i < made->nparts; i++)
        free(m->blocks[i]);
    free(m);
}
