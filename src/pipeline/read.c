/* pipeline/read.c - views as callers of the library have them: any range or box of a part, or all of it. */
#include "pipeline/read.h"
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "tensor/array.h"
#include "tensor/code.h"

#include <stdlib.h>
#include <string.h>

enum {
    NEAR      = 16,             /* rows that are at most so many times as far apart as they are long */
    JOB_BYTES = 1 << 20         /* that are worth a thread */
};

/* ---- opening ---- */

/* A tensor that is in memory needs no file, so nobody has looked at it. */
static tn_status check_in_memory(const tn_tensor *t, tn_error *err)
{
    const tn_form_info *form = tn_form_get(t->form);
    tn_part parts[TN_MAX_PARTS];
    tn_tensor named = *t;
    uint64_t count, nbytes = 0;
    if (t->nparts > TN_MAX_PARTS || (t->rank && !t->shape))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a shape and at most %d parts", TN_MAX_PARTS);
    for (uint32_t k = 0; k < t->nparts; k++) {
        parts[k] = t->parts[k];
        if (!parts[k].data && parts[k].nbytes)
            return tn_fail(err, TN_ERR_ARGUMENT, "expected the file of the tensor but found NULL");
        TN_TRY(tn_array_check_dense(&parts[k].array, parts[k].data, "part", &count, err));
        if (tn_array_nbytes(&parts[k].array, &nbytes) || nbytes != parts[k].nbytes)
            return tn_fail(err, TN_ERR_ARGUMENT, "expected %llu bytes of part %u but found %llu",
                           (unsigned long long)nbytes, k, (unsigned long long)parts[k].nbytes);
        if (!parts[k].role)
            parts[k].role = form && form->roles[k] ? form->roles[k] : "";
    }
    named.parts = parts;
    return tn_form_check(&named, NULL, err);
}

static tn_status check_tensor(const tn_file *file, const tn_tensor *t, tn_error *err)
{
    if (!t)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a tensor but found NULL");
    if (!t->nparts || !t->parts)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a tensor with parts but found none");
    return file ? TN_OK : check_in_memory(t, err);
}

static void free_spills(tn_opened *o)
{
    for (unsigned k = 0; k < TN_MAX_PARTS; k++)
        tn_spill_free(&o->spills[k]);
    o->whole = NULL;
}

static void free_opened(tn_opened *o)
{
    while (o) {
        tn_opened *next = o->next;
        tn_worker_free(&o->worker);
        free_spills(o);
        tn_pool_free(o->pool);
        tn_arena_free(&o->arena);
        free(o);
        o = next;
    }
}

tn_status tn_view_open(const tn_file *file, const tn_tensor *t, tn_view **view, tn_error *err)
{
    if (!view)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a place for the view but found NULL");
    TN_TRY(check_tensor(file, t, err));
    tn_opened *o = calloc(1, sizeof *o);
    if (!o)
        return tn_fail_nomem(err);
    o->place = (tn_view_place){ .file = file, .unchecked = true };
    o->workers[0] = &o->worker;
    tn_status status = tn_pool_new(1, &o->pool, err);
    if (!status)
        status = tn_view_stored(&o->place, t, &o->arena, view, err);
    if (status)
        free_opened(o);
    return status;
}

const tn_tensor *tn_view_tensor(const tn_view *v) { return v ? &v->tensor : NULL; }

void tn_view_close(tn_view *v)
{
    tn_opened *o = v ? tn_opened_of(v) : NULL;
    tn_view_free(v);
    free_opened(o);
}

/* ---- reading ---- */

/* One call: runs of elements of a part, one after another into a buffer. */
typedef struct reading {
    const tn_view *view;        /* has ranges, or is read in order */
    const uint8_t *memory;      /* else all elements are here */
    tn_worker     *worker;
    unsigned       bits;
    uint64_t       count;       /* elements of the part */
    uint32_t       rank;        /* runs are rows of a box... */
    const int64_t *shape, *first, *extent;
    uint64_t       from, run;   /* ...or this single one */
    uint8_t       *to;
    uint64_t       done;        /* elements in the buffer */
    struct { const uint8_t *bytes; uint64_t from, end; } window;
} reading;

/* Elements of the window that follow those in the buffer: of a type narrower than a byte they may begin
 * anywhere in one. */
static void put(reading *r, uint64_t from, uint64_t n)
{
    const uint8_t *bytes = r->window.bytes;
    uint64_t at = from - r->window.from, size = tn_packed_bytes(n, r->bits);
    uint8_t *to = r->to + tn_packed_byte(r->done, r->bits);
    if (tn_packed_bit(at, r->bits) || tn_packed_bit(r->done, r->bits)) {
        for (uint64_t i = 0; i < n; i++)
            tn_packed_put(r->to, r->done + i, r->bits, tn_packed_get(bytes, at + i, r->bits));
    } else {
        memcpy(to, bytes + tn_packed_byte(at, r->bits), (size_t)size);
    }
    r->done += n;
}

/* Values of codes need no window: they are made where they are wanted.  *from is the first that is left. */
static tn_status make_run(reading *r, uint64_t *from, uint64_t end, tn_error *err)
{
    const tn_view *v = r->view;
    bool is_made = v && !v->memory && v->step == &tn_step_decode && r->bits % 8 == 0 && *from % 8 == 0;
    while (is_made && *from < end) {
        uint64_t n = tn_min_u64(end - *from, tn_view_block_elements(v));
        TN_TRY(v->step->make(v, *from, (size_t)n, r->worker, r->to + tn_packed_byte(r->done, r->bits), err));
        r->done += n;
        *from += n;
    }
    return TN_OK;
}

/* Elements [from, end), a window of them at a time; what follows up to `most` is taken along. */
static tn_status read_run(reading *r, uint64_t from, uint64_t end, uint64_t most, tn_error *err)
{
    if (most == end)
        TN_TRY(make_run(r, &from, end, err));
    while (from < end) {
        if (from < r->window.from || from >= r->window.end) {
            uint64_t begin = from / 8 * 8, n = tn_min_u64(most - begin, TN_WINDOW / r->bits * 8);
            if (r->memory)
                r->window.bytes = r->memory + tn_packed_byte(begin, r->bits);
            else
                TN_TRY(tn_view_range(r->view, begin, (size_t)n, r->worker, &r->window.bytes, err));
            r->window.from = begin;
            r->window.end = begin + n;
        }
        uint64_t n = tn_min_u64(end, r->window.end) - from;
        put(r, from, n);
        from += n;
    }
    return TN_OK;
}

/* Rows of a box: whole dimensions at the end make them longer; rows near to one another are read at once. */
static tn_status read_rows(reading *r, tn_error *err)
{
    int64_t stride[TN_MAX_RANK], index[TN_MAX_RANK] = { 0 };
    uint64_t from = 0, last = 0, row = 1;
    uint32_t outer = r->rank;
    tn_dense_strides(r->rank, r->shape, stride);
    for (uint32_t i = 0; i < r->rank; i++) {
        from += (uint64_t)(r->first[i] * stride[i]);
        last += (uint64_t)((r->first[i] + r->extent[i] - 1) * stride[i]);
    }
    for (bool is_whole = true; outer > 0 && is_whole; ) {
        outer--;
        row *= (uint64_t)r->extent[outer];
        is_whole = r->extent[outer] == r->shape[outer];
    }
    bool is_near = outer > 0 && (uint64_t)stride[outer - 1] <= NEAR * row;
    for (;;) {
        TN_TRY(read_run(r, from, from + row, is_near ? last + 1 : from + row, err));
        uint32_t i = outer;
        while (i > 0 && index[i - 1] + 1 == r->extent[i - 1]) {
            i--;
            from -= (uint64_t)(index[i] * stride[i]);
            index[i] = 0;
        }
        if (i == 0)
            return TN_OK;
        index[i - 1]++;
        from += (uint64_t)stride[i - 1];
    }
}

static tn_status read_all(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    reading *r = context;
    (void)item, (void)use;
    TN_TRY(r->shape ? read_rows(r, err) : read_run(r, r->from, r->from + r->run, r->from + r->run, err));
    unsigned rest = tn_packed_bit(r->done, r->bits);
    if (rest)                   /* the bits that fill the last byte */
        r->to[tn_packed_byte(r->done, r->bits)] &= (uint8_t)((1u << rest) - 1);
    return TN_OK;
}

/* ---- where elements are ---- */

/* A part that no step makes, as it is in the file. */
static tn_status copy_part(const tn_view *v, tn_opened *o, uint32_t k, tn_error *err)
{
    const tn_tensor *t = tn_stored_tensor(v);
    if (o->whole != v)
        free_spills(o);
    o->whole = v;
    if (o->spills[k].bytes || !v->parts[k].nbytes)
        return TN_OK;
    if (o->place.file)
        TN_TRY(tn_kept_check_part(o->place.file, t, &t->parts[k], err));
    TN_TRY(tn_spill_make(&o->spills[k], NULL, v->parts[k].nbytes, err));
    tn_status status = tn_copy_part(&o->place, t, k, v->parts[k].array.dtype, o->spills[k].bytes, err);
    if (status)
        tn_spill_free(&o->spills[k]);
    return status;
}

/* The view whose elements others change one by one. */
static const tn_view *maker_of(const tn_view *v)
{
    return v->step->apply ? maker_of(v->input) : v;
}

/* The first time data is read in order; after that all of it is kept in a spill. */
static tn_status find_elements(tn_view *v, uint32_t part, reading *r, tn_error *err)
{
    tn_opened *o = tn_opened_of(v);
    const tn_preparing p = { .pool = o->pool, .workers = o->workers, .in_order = !o->was_read };
    TN_TRY(tn_view_prepare(v, &p, err));
    o->was_read |= part == 0;
    if (part == 0 && (tn_view_has_ranges(v) || maker_of(v)->step == &tn_step_stored)) {
        r->view = v;
        r->worker = &o->worker;
        return TN_OK;
    }
    r->memory = v->parts[part].data;
    if (r->memory)
        return TN_OK;
    if (tn_view_makes_parts(v)) {
        const tn_tensor *whole;
        TN_TRY(tn_view_complete(v, &p, &whole, err));
        r->memory = whole->parts[part].data;
        return TN_OK;
    }
    TN_TRY(copy_part(v, o, part, err));
    r->memory = o->spills[part].bytes;
    return TN_OK;
}

static tn_status settle(const tn_view *v, tn_status status, tn_error *err)
{
    for (uint32_t i = 0; i < v->ninputs; i++)
        status = settle(v->inputs[i], status, err);
    return v->ninputs ? status : tn_tensor_settle(v->place->file, tn_stored_tensor(v), status, err);
}

static tn_status run(tn_view *v, uint32_t part, reading *r, tn_error *err)
{
    tn_opened *o = tn_opened_of(v);
    tn_status status = find_elements(v, part, r, err);
    bool is_in_order = !r->shape && maker_of(v)->step == &tn_step_stored;       /* element by element */
    o->worker.until = is_in_order ? r->from + r->run : 0;
    if (!status)
        status = tn_pool_run(o->pool, 1, &(tn_ordered){ .work = read_all, .context = r }, err);
    tn_worker_rest(&o->worker);         /* nobody may wait for its windows */
    return tn_in_tensor(settle(v, status, err), v->tensor.name, err);
}

/* ---- what callers ask for ---- */

static tn_status check_size(uint64_t count, unsigned bits, const void *buffer, size_t size, tn_error *err)
{
    uint64_t expected = tn_packed_bytes(count, bits);
    if (size != expected)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a buffer of %llu bytes but found %zu",
                       (unsigned long long)expected, size);
    return buffer || !size ? TN_OK : tn_fail(err, TN_ERR_ARGUMENT, "expected a buffer but found NULL");
}

tn_status tn_view_read(tn_view *v, uint32_t part, uint64_t first, uint64_t count, void *buffer, size_t size,
                       tn_error *err)
{
    if (!v)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a view but found NULL");
    if (part >= v->tensor.nparts)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a part below %u but found %u", v->tensor.nparts, part);
    const tn_array *a = &v->parts[part].array;
    reading r = { .bits = tn_dtype_get(a->dtype)->bits, .count = v->count, .from = first, .run = count,
                  .to = buffer };
    if (part)
        tn_shape_count(a->rank, a->shape, &r.count);    /* cannot fail: its bytes were counted */
    if (first > r.count || count > r.count - first)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a range within %llu elements but found %llu from %llu on",
                       (unsigned long long)r.count, (unsigned long long)count, (unsigned long long)first);
    TN_TRY(check_size(count, r.bits, buffer, size, err));
    return count ? run(v, part, &r, err) : TN_OK;
}

static tn_status check_box(const tn_view *v, const int64_t *first, const int64_t *extent, uint64_t *count,
                           tn_error *err)
{
    const tn_array *a = &v->parts[0].array;
    *count = 1;
    if (v->tensor.nparts != 1 || v->parts[0].padded)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a dense tensor without padding but found form %s%s",
                       tn_quote_z(tn_tensor_form_name(&v->tensor)).text,
                       v->parts[0].padded ? " with padding" : "");
    if (a->rank && (!first || !extent))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected indices and extents but found NULL");
    for (uint32_t i = 0; i < a->rank; i++) {
        if (first[i] < 0 || extent[i] < 0 || first[i] > a->shape[i] || extent[i] > a->shape[i] - first[i])
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected a box within %lld indices of dimension %u but found %lld from %lld on",
                           (long long)a->shape[i], i, (long long)extent[i], (long long)first[i]);
        *count *= (uint64_t)extent[i];  /* not more than the tensor has */
    }
    return TN_OK;
}

tn_status tn_view_read_box(tn_view *v, const int64_t *first, const int64_t *extent, void *buffer, size_t size,
                           tn_error *err)
{
    static const int64_t none[1];
    uint64_t count;
    if (!v)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a view but found NULL");
    TN_TRY(check_box(v, first, extent, &count, err));
    TN_TRY(check_size(count, v->bits, buffer, size, err));
    const tn_array *a = &v->parts[0].array;
    reading r = { .bits = v->bits, .count = v->count, .rank = a->rank, .first = first, .extent = extent,
                  .shape = a->rank ? a->shape : none, .to = buffer };
    return count ? run(v, 0, &r, err) : TN_OK;
}

/* ---- all of a tensor ---- */

typedef struct copying {
    tn_view   *view;
    tn_worker *workers;
    uint8_t   *to;
} copying;

static tn_status copy_block(void *context, uint64_t block, tn_pool_use use, tn_error *err)
{
    const copying *c = context;
    tn_part_bytes out[TN_MAX_PARTS] = { 0 };
    TN_TRY(tn_view_block(c->view, block, &c->workers[use.scratch], out, err));
    if (out[0].size)
        memcpy(c->to + out[0].offset, out[0].bytes, (size_t)out[0].size);
    return TN_OK;
}

static tn_status copy_in_order(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const copying *c = context;
    (void)item;
    return tn_view_copy(c->view, &c->workers[use.scratch], c->to, err);
}

/* What was made of the tensor, by all threads. */
static tn_status copy_view(tn_view *v, tn_pool *pool, uint8_t *to, tn_error *err)
{
    unsigned jobs = tn_pool_jobs(pool);
    copying c = { v, calloc(jobs, sizeof *c.workers), to };
    tn_worker **workers = calloc(jobs, sizeof *workers);
    const tn_preparing p = { .pool = pool, .workers = workers, .in_order = true };
    tn_status status = c.workers && workers ? TN_OK : tn_fail_nomem(err);
    for (unsigned i = 0; i < jobs && !status; i++)
        workers[i] = &c.workers[i];
    if (!status)
        status = tn_view_prepare(v, &p, err);
    bool is_stream = !status && !tn_view_has_ranges(v) && maker_of(v)->step == &tn_step_stored;
    if (!status)
        status = is_stream ? tn_pool_run(pool, 1, &(tn_ordered){ .work = copy_in_order, .context = &c }, err)
                           : tn_pool_run(pool, tn_view_blocks(v),
                                         &(tn_ordered){ .work = copy_block, .context = &c }, err);
    for (unsigned i = 0; c.workers && i < jobs; i++)
        tn_worker_free(&c.workers[i]);
    free(c.workers);
    free(workers);
    return status;
}

tn_status tn_read(const tn_file *file, const tn_tensor *t, tn_dtype dtype, void *buffer, size_t size,
                  tn_error *err)
{
    const tn_view_place place = { .file = file, .unchecked = true };
    tn_arena arena = { 0 };
    tn_pool *pool = NULL;
    tn_view *v = NULL;
    uint64_t count = 0;
    TN_TRY(check_tensor(file, t, err));
    const tn_dtype_info *type = tn_dtype_get(dtype == TN_UNKNOWN ? t->dtype : dtype);
    if (dtype != TN_UNKNOWN && !type)
        return tn_fail(err, TN_ERR_ARGUMENT, "type %d is not known", (int)dtype);
    if (type && !tn_shape_count(t->rank, t->shape, &count))
        TN_TRY(check_size(count, type->bits, buffer, size, err));
    tn_status status = tn_view_stored(&place, t, &arena, &v, err);
    if (!status)
        status = tn_view_add_values(&v, dtype, err);
    if (!status && count)
        status = tn_pool_new(tn_jobs_for(0, 1 + size / JOB_BYTES), &pool, err);
    if (!status && count)
        status = copy_view(v, pool, buffer, err);
    status = tn_tensor_settle(file, t, status, err);
    tn_view_free(v);
    tn_pool_free(pool);
    tn_arena_free(&arena);
    return status;
}
