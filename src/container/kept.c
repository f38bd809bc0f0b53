/* container/kept.c - a few bytes that would be decoded into very many. */
#include "container/kept.h"
#include "base/error.h"
#include "tensor/array.h"

#include <string.h>

static uint64_t add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return tn_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

void tn_kept_add(tn_kept *k, const tn_tensor *t, uint64_t stored, uint64_t decoded)
{
    if (decoded <= stored)
        return;
    k->stored = add(k->stored, stored);
    k->decoded = add(k->decoded, decoded);
    k->tensors += !k->last || strcmp(k->last, t->name) != 0;
    k->last = t->name;
    if (!k->largest || decoded > k->largest_bytes) {
        k->largest = t->name;
        k->largest_bytes = decoded;
    }
}

/* Elements of a part in memory that lie on top of each other are as good as compressed. */
static uint64_t stored_bytes(const tn_tensor *t, const tn_part *p)
{
    const tn_array *a = &p->array;
    uint64_t span;
    if (!p->data || p->storage.size)
        return tn_part_stored(t, p).size;
    return a->stride && !tn_strided_nbytes(a->dtype, a->rank, a->shape, a->stride, &span) ? span : p->nbytes;
}

void tn_kept_add_part(tn_kept *k, const tn_tensor *t, const tn_part *p)
{
    tn_kept_add(k, t, stored_bytes(t, p), p->nbytes);
}

tn_status tn_kept_check(const tn_kept *k, tn_error *err)
{
    uint64_t most = tn_kept_limit(k->max_bytes, k->stored);
    if (k->decoded <= most)
        return TN_OK;
    unsigned long long stored = k->stored, decoded = k->decoded, limit = most;
    const tn_quoted name = tn_quote_z(k->largest);
    if (k->tensors == 1)
        return tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET,
                       "tensor %s: %llu stored bytes would be decoded into %llu, more than the %llu allowed (max_bytes)",
                       name.text, stored, decoded, limit);
    return tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET,
                   "%zu tensors, of which %s is the largest: %llu stored bytes would be decoded into %llu, more than "
                   "the %llu allowed (max_bytes)", k->tensors, name.text, stored, decoded, limit);
}

tn_status tn_kept_check_part(const tn_file *f, const tn_tensor *t, const tn_part *p, tn_error *err)
{
    tn_kept k = { .max_bytes = f->max_bytes };
    tn_kept_add_part(&k, t, p);
    return tn_kept_check(&k, err);
}

tn_status tn_kept_check_spooled(const tn_file *f, const tn_tensor *t, const tn_part *p, tn_error *err)
{
    bool spooled = p->storage.encoding != TN_ENCODING_RAW && p->storage.stride;
    return spooled ? tn_kept_check_part(f, t, p, err) : TN_OK;
}

tn_status tn_check_decoded(const tn_tensor *const *tensors, size_t n, uint64_t max_bytes, tn_error *err)
{
    tn_kept k = { .max_bytes = max_bytes };
    for (size_t i = 0; i < n; i++)
        for (uint32_t part = 0; part < tensors[i]->nparts; part++)
            tn_kept_add_part(&k, tensors[i], &tensors[i]->parts[part]);
    return tn_kept_check(&k, err);
}
