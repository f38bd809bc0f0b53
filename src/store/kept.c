/* store/kept.c - the limit for decoded data. */
#include "store/kept.h"
#include "base/error.h"
#include "tensor/array.h"

#include <string.h>

static uint64_t add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return tn_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return tn_mul_u64(a, b, &product) ? product : UINT64_MAX;
}

static void add_bytes(tn_kept *k, const tn_tensor *t, uint64_t stored, uint64_t decoded)
{
    k->all = add(k->all, decoded);
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

/* Elements of a part in memory that overlap count as compressed.  Indices that are derived belong to values
 * that are stored. */
static uint64_t stored_bytes(const tn_tensor *t, const tn_part *p)
{
    const tn_array *a = &p->array;
    uint64_t span;
    if (tn_stored_more_of(p)->derive && p != t->parts)
        return add(tn_stored_summary(t, p).bytes, tn_stored_summary(t, t->parts).bytes);
    if (!p->data || tn_stored_of(p)->size)
        return tn_stored_summary(t, p).bytes;
    return a->stride && !tn_strided_nbytes(a->dtype, a->rank, a->shape, a->stride, &span) ? span : p->nbytes;
}

static bool is_text(const tn_stored *s) { return strcmp(tn_stored_encoding(s), "text") == 0; }

static void see_range(tn_kept *k, const tn_stored *s)
{
    k->files = s->shard >= k->files ? s->shard + UINT64_C(1) : k->files;
    uint64_t end = add(s->offset, s->size);
    k->reach = end > k->reach ? end : k->reach;
}

/* Notes where a part is stored. */
static void see_part(tn_kept *k, const tn_tensor *t, const tn_part *p)
{
    const tn_stored *s = tn_stored_of(p);
    const tn_stored_more *more = tn_stored_more_of(p);
    for (uint32_t i = 0; i < more->nfrom; i++)
        see_range(k, tn_stored_of(&more->from[i]));
    if (is_text(s) || (p->data && !s->size))
        k->elsewhere = add(k->elsewhere, stored_bytes(t, p));
    else if (!more->derive)
        see_range(k, s);
}

void tn_kept_add_as(tn_kept *k, const tn_tensor *t, uint64_t decoded)
{
    uint64_t stored = 0;
    for (uint32_t i = 0; i < t->nparts; i++) {
        see_part(k, t, &t->parts[i]);
        stored = add(stored, stored_bytes(t, &t->parts[i]));
    }
    add_bytes(k, t, stored, decoded);
}

void tn_kept_add_part(tn_kept *k, const tn_tensor *t, const tn_part *p)
{
    uint64_t whole = tn_stored_more_of(p)->decoded;     /* what a view of compressed data needs decoded */
    see_part(k, t, p);
    add_bytes(k, t, stored_bytes(t, p), whole > p->nbytes ? whole : p->nbytes);
}

static tn_status fail_grown(const tn_kept *k, uint64_t stored, uint64_t most, tn_error *err)
{
    unsigned long long from = stored, decoded = k->decoded, limit = most;
    static const char one[] = "%llu stored bytes would be decoded into %llu, more than the %llu allowed";
    if (k->tensors == 1)
        return tn_in_tensor(
            tn_refuse(err, TN_ERR_LIMIT, TN_REASON_MAX_BYTES, NULL, one, from, decoded, limit), k->largest,
            err);
    return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_MAX_BYTES, NULL,
                     "%zu tensors, the largest is %s: %llu stored bytes would be decoded into %llu, "
                     "more than the %llu allowed",
                     k->tensors, tn_quote_z(k->largest).text, from, decoded, limit);
}

/* Tensors may share stored bytes, and no ranges are kept here to tell which.  But there are no more stored
 * bytes than the files have up to the end of the last part. */
tn_status tn_kept_check(const tn_kept *k, tn_error *err)
{
    uint64_t there = add(k->elsewhere, mul(k->files, k->reach));
    uint64_t stored = k->stored < there ? k->stored : there;
    uint64_t again = k->all > there ? k->all - there : 0;
    uint64_t most = tn_kept_limit(k->max_bytes, stored), most_again = tn_kept_limit(k->max_bytes, there);
    if (k->decoded > most)
        return fail_grown(k, stored, most, err);
    if (again <= most_again)
        return TN_OK;
    return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_MAX_BYTES, NULL,
                     "tensors share stored bytes: their copies would take %llu bytes, more than the %llu "
                     "allowed",
                     (unsigned long long)again, (unsigned long long)most_again);
}

tn_status tn_kept_check_part(const tn_file *f, const tn_tensor *t, const tn_part *p, tn_error *err)
{
    tn_kept k = { .max_bytes = f->max_bytes };
    tn_kept_add_part(&k, t, p);
    return tn_kept_check(&k, err);
}

tn_status tn_kept_check_spilled(const tn_file *f, const tn_tensor *t, const tn_part *p, tn_error *err)
{
    bool spilled = tn_stored_of(p)->encoding != TN_ENCODING_RAW && tn_stored_more_of(p)->stride;
    return spilled ? tn_kept_check_part(f, t, p, err) : TN_OK;
}

tn_status tn_check_decoded(const tn_tensor *const *tensors, size_t n, uint64_t max_bytes, tn_error *err)
{
    TN_GIVEN(tensors || !n, "tensors", err);
    tn_kept k = { .max_bytes = max_bytes };
    for (size_t i = 0; i < n; i++)
        TN_GIVEN(tensors[i], "tensors", err);
    for (size_t i = 0; i < n; i++)
        for (uint32_t part = 0; part < tensors[i]->nparts; part++)
            tn_kept_add_part(&k, tensors[i], &tensors[i]->parts[part]);
    return tn_kept_check(&k, err);
}
