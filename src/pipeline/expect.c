/* pipeline/expect.c - tells sources which parts will be read, in which order. */
#include "pipeline/expect.h"
#include "base/vector.h"

#include <stdlib.h>

static void tell(tn_expected *e)
{
    if (e->count)
        tn_source_expect(e->file->shards[e->shard].source, e->list, e->count);
    e->count = 0;
}

static void add_range(tn_expected *e, const tn_stored *s)
{
    bool there = s->size && s->shard < e->file->nshards;
    if (!there || !tn_source_is_far(e->file->shards[s->shard].source))
        return;
    if (e->count && s->shard != e->shard)
        tell(e);
    e->shard = s->shard;
    if (TN_GROW(e->list, e->count, e->cap))
        e->list[e->count++] = (tn_range){ s->offset, s->size };
}

void tn_expect_part(tn_expected *e, const tn_part *part)
{
    const tn_stored_more *more = tn_stored_more_of(part);
    if (part->stored && !more->derive)
        add_range(e, part->stored);
    for (uint32_t i = 0; i < more->nfrom; i++)
        add_range(e, tn_stored_of(&more->from[i]));
}

void tn_expect_tensor(tn_expected *e, const tn_tensor *tensor)
{
    for (uint32_t k = 0; k < tensor->nparts; k++)
        tn_expect_part(e, &tensor->parts[k]);
}

void tn_expect_end(tn_expected *e)
{
    tell(e);
    free(e->list);
    *e = (tn_expected){ .file = e->file };
}

void tn_expect_tensors(const tn_file *file, const tn_tensor *const *tensors, size_t n)
{
    tn_expected e = { .file = file };
    for (size_t i = 0; i < n; i++)
        tn_expect_tensor(&e, tensors[i]);
    tn_expect_end(&e);
}
