/* pipeline/steps/decode.c - codes of a datatype into values: any range of them, made of all parts at once. */
#include "pipeline/steps/decode.h"
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "quant/rotate.h"
#include "tensor/array.h"

#include <stdlib.h>
#include <string.h>

/* What values become: rounded so from float32. */
typedef struct decode_as {
    tn_dtype        to;
    tn_cast_options options;
    bool            counts;     /* what is lost is reported */
} decode_as;

typedef struct decoding {
    decode_as   as;
    tn_decoder *decoder;        /* once it is prepared */
    bool        keeps_codes;    /* all of them are to be in memory */
} decoding;

enum {
    BLOCK = 4096,               /* values at a time: whole bytes in every type */
    LEAST_LINES = 16,           /* at a time, where codes are made by lines: cache lines of words... */
    MOST_LINES = 64,
    SOME_BYTES = 256 << 10,     /* ...of so many bytes, of more if these are fewer than the least lines... */
    MOST_BYTES = 4 << 20,       /* ...but never of more than this unless it is one line */
    COLUMNS = 512,              /* of each row, where a rotation lies across rows */
    GRAIN = 1 << 16             /* values that such a rotation makes at a time, at least */
};

/* Blocks of a rotation that are not rows of elements: a value is made of values many rows apart. */
static bool is_rotated_across(const tn_decoder *m)
{
    return m->plan.o.rotation.size && m->plan.count && m->plan.inner > 1;
}

static bool is_in_place(const tn_tensor *t)
{
    bool in_place = true;
    for (uint32_t k = 0; k < t->nparts; k++)
        in_place &= t->parts[k].data || !t->parts[k].nbytes;
    return in_place;
}

static size_t lines_at_once(const tn_derive *d)
{
    uint64_t n = tn_min_u64(SOME_BYTES / d->line, MOST_LINES);
    n = n > LEAST_LINES ? n : LEAST_LINES;
    return (size_t)(n * d->line <= MOST_BYTES ? n : MOST_BYTES / d->line + (d->line > MOST_BYTES));
}

static void free_decoder(tn_decoder *m)
{
    if (!m)
        return;
    tn_part_values_close(&m->parts);
    tn_datatype_free(m->datatype);
    tn_loaded_free(&m->loaded);
    free(m);
}

/* ---- making ---- */

/* The range that is asked for. */
typedef struct wanted {
    const tn_decoder *decoder;
    const tn_part_values *parts;
    uint64_t          first, end;
    uint8_t          *out;
    tn_worker        *worker;   /* for a report, or NULL */
} wanted;

/* Those of n values from element `at` on that are wanted, as the type wanted. */
static tn_status put(const wanted *r, uint64_t at, size_t n, const float *values, tn_error *err)
{
    const tn_decoder *m = r->decoder;
    uint64_t from = at > r->first ? at : r->first, to = tn_min_u64(at + n, r->end);
    if (from >= to)
        return TN_OK;
    size_t some = (size_t)(to - from);
    uint8_t *out = r->out + tn_dense_bytes(from - r->first, m->bits);
    tn_status status = tn_cast_block(&m->narrow, out, values + (from - at), some, from, m->plan.rank,
                                     m->plan.shape, err);
    if (!status && r->worker)
        tn_report_lost(&m->narrow, out, values + (from - at), some, from, r->worker);
    return status;
}

/* Without float32 in between; false: it cannot be done, or what is lost is not known so. */
static bool make_bf16(const wanted *r, size_t n)
{
    const tn_decoder *m = r->decoder;
    return tn_part_values_read_bf16(r->parts, r->first, n, r->out) &&
           (!r->worker || tn_report_kept(&m->narrow, r->out, n, r->first, r->worker));
}

/* Whole blocks of the rotation, if there is one. */
static tn_status make_in_order(const wanted *r, tn_error *err)
{
    float values[BLOCK];
    const tn_decoder *m = r->decoder;
    const tn_rotation *rotation = &m->plan.o.rotation;
    uint64_t size = rotation->size ? rotation->size : 1, last = (r->end + size - 1) / size * size;
    if (size == 1 && m->to_bf16 && make_bf16(r, (size_t)(r->end - r->first)))
        return TN_OK;
    for (uint64_t at = r->first / size * size; at < last; at += BLOCK) {
        size_t some = (size_t)tn_min_u64(last - at, BLOCK);
        uint8_t *to = size == 1 ? r->out + tn_dense_bytes(at - r->first, m->bits) : NULL;
        if (to && m->narrow.route == TN_ROUTE_COPY && (uintptr_t)to % _Alignof(float) == 0) {
            tn_part_values_read(r->parts, at, some, (float *)(void *)to);
            continue;
        }
        tn_part_values_read(r->parts, at, some, values);
        if (size > 1)
            tn_rotate_blocks(rotation, true, some / size, 1, values);
        TN_TRY(put(r, at, some, values, err));
    }
    return TN_OK;
}

/* Rows of a block of a rotation across rows, n elements of each from element `at` on. */
static tn_status make_columns(const wanted *r, uint64_t at, size_t n, float *values, tn_error *err)
{
    const tn_scaled_plan *p = &r->decoder->plan;
    uint32_t size = p->o.rotation.size;
    bool any = false;
    for (uint32_t k = 0; k < size; k++)
        any |= at + k * p->inner < r->end && at + k * p->inner + n > r->first;
    for (uint32_t k = 0; k < size && any; k++)
        tn_part_values_read(r->parts, at + k * p->inner, n, values + k * n);
    if (any)
        tn_rotate_blocks(&p->o.rotation, true, 1, n, values);
    for (uint32_t k = 0; k < size && any; k++)
        TN_TRY(put(r, at + k * p->inner, n, values + k * n, err));
    return TN_OK;
}

static tn_status make_across(const wanted *r, float *values, tn_error *err)
{
    uint64_t inner = r->decoder->plan.inner, block = inner * r->decoder->plan.o.rotation.size;
    for (uint64_t at = r->first / block * block; at < r->end; at += block)
        for (uint64_t i = 0; i < inner; i += COLUMNS)
            TN_TRY(make_columns(r, at + i, (size_t)tn_min_u64(inner - i, COLUMNS), values, err));
    return TN_OK;
}

/* Values of one line of codes if it is whole rows, or else 0. */
static uint64_t line_values(const tn_decoder *m, const tn_derive *d)
{
    const uint64_t columns = m->plan.rank ? (uint64_t)m->plan.shape[m->plan.rank - 1] : 1;
    const uint64_t row = tn_packed_bytes(columns, m->plan.data.bits);
    return row && d->line % row == 0 ? d->line / row * columns : 0;
}

/* Some lines of codes at a time, into a buffer that fits the cache, and then their values. */
static tn_status make_by_lines(const tn_view *v, const wanted *all, uint8_t *codes, tn_error *err)
{
    const tn_decoder *m = all->decoder;
    const tn_derive *d = tn_stored_more_of(m->lines)->derive;
    const uint64_t each = line_values(m, d), most = lines_at_once(d);
    tn_scaled_plan plan = m->plan;
    tn_part_values parts = m->parts;
    wanted r = *all;
    parts.plan = &plan;
    plan.data.data = codes;
    r.parts = &parts;
    for (uint64_t line = all->first / each; r.first < all->end; r.first = r.end, line = r.first / each) {
        const uint64_t n = tn_min_u64(tn_div_up_u64(all->end, each) - line, most - line % most);
        TN_TRY(d->lines(v->place->file, m->lines, line, n, codes + most * d->line, codes, err));
        plan.data.from = line * d->line;
        r.end = tn_min_u64((line + n) * each, all->end);
        r.out = all->out + tn_dense_bytes(r.first - all->first, m->bits);
        TN_TRY(make_in_order(&r, err));
    }
    return TN_OK;
}

static tn_status make(const tn_view *v, uint64_t first, size_t n, tn_worker *w, uint8_t *out, tn_error *err)
{
    const tn_decoder *m = tn_view_decoder(v);
    const wanted r = { m, &m->parts, first, first + n, out, v->reports ? w : NULL };
    const tn_derive *d = m->lines ? tn_stored_more_of(m->lines)->derive : NULL;
    uint8_t *room = NULL;
    tn_status status = TN_OK;
    if (is_rotated_across(m))
        status = tn_worker_buffer(w, v, 1, sizeof(float) * COLUMNS * m->plan.o.rotation.size, &room, err);
    else if (d)
        status = tn_worker_buffer(w, v, 1, (2 * lines_at_once(d) + 1) * d->line, &room, err);
    if (!status && d)
        status = make_by_lines(v, &r, room, err);
    else if (!status)
        status = room ? make_across(&r, (float *)(void *)room, err) : make_in_order(&r, err);
    return tn_in_tensor(status, m->tensor->name, err);
}

/* ---- parts ---- */

static const tn_part *find_part(const tn_tensor *t, const char *role)
{
    for (uint32_t k = 0; k < t->nparts; k++)
        if (strcmp(t->parts[k].role, role) == 0)
            return &t->parts[k];
    return NULL;
}

/* The part of this role, which must be as large as the datatype says. */
static tn_status take_part(const tn_tensor *t, const tn_scaled_part *expected, bool plain,
                           const tn_part **part, tn_error *err)
{
    uint64_t nbytes;
    *part = find_part(t, expected->role);
    if (!*part)
        return tn_fail(err, TN_ERR_CORRUPT, "expected a part %s but found none", expected->role);
    tn_status status = tn_shape_nbytes(plain ? expected->plain_dtype : expected->dtype, expected->rank,
                                       plain ? expected->plain_shape : expected->shape, &nbytes);
    if (status)
        return tn_fail(err, status, "the part %s is too large", expected->role);
    if ((*part)->nbytes != nbytes)
        return tn_fail(err, TN_ERR_CORRUPT, "expected a part %s of %llu bytes but found %llu", expected->role,
                       (unsigned long long)nbytes, (unsigned long long)(*part)->nbytes);
    return TN_OK;
}

/* Lays the parts of `t` down where the plan looks for them; those of a tensor that was not loaded may have no
 * data. */
static tn_status lay_out(tn_decoder *m, const tn_tensor *t, tn_error *err)
{
    tn_scaled_shapes shapes;
    const tn_quantize_options o = { .size = sizeof o, .unpacked = t->scaling->unpacked,
                                  .rotation = t->scaling->rotation };
    void *parts[TN_MAX_PARTS] = { NULL };
    bool complete = true;
    tn_status status = tn_scaled_shapes_for(m->datatype, t->rank, t->shape, &shapes, err);
    for (uint32_t i = 0; !status && i < shapes.count; i++) {
        const tn_part *p;
        status = take_part(t, &shapes.parts[i], o.unpacked && i == 0, &p, err);
        if (status)
            break;
        parts[i] = (void *)(uintptr_t)(p->data ? p->data : "");     /* which are only read */
        complete &= p->data || !p->nbytes || m->lines;
    }
    if (!status)
        status =
            tn_scaled_plan_make(&m->plan, m->datatype, t->rank, t->shape, &o, complete ? parts : NULL, err);
    if (!status)
        status = tn_scaled_check_rotation(&m->plan, err);
    if (!status && complete && m->plan.count)
        status = tn_part_values_open(&m->parts, &m->plan, false, err);
    return status;
}

/* The codes, if any lines of them can be made alone and are whole rows; or NULL. */
static const tn_part *find_lines(const tn_decoder *m, const tn_tensor *t)
{
    const tn_part *codes = find_part(t, "data");
    const tn_derive *d = codes ? tn_stored_more_of(codes)->derive : NULL;
    bool is_plain = m->datatype->quantizer == &tn_tile_quantizer && !t->scaling->rotation.size &&
                    !t->scaling->unpacked;
    const uint64_t values = d && d->lines ? line_values(m, d) : 0;
    return is_plain && m->plan.count && values && values % 8 == 0 ? codes : NULL;
}

/* ---- what comes out ---- */

static tn_status check_type(const tn_tensor *t, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    if (!tn_check_floats(t->dtype, NULL))
        return TN_OK;
    return tn_fail(err, TN_ERR_UNSUPPORTED, "expected values of a signed float type but found %s",
                   type ? type->name : "an unknown one");
}

static bool is_plain_bf16(const tn_cast_plan *p)
{
    return p->to_dtype == TN_BFLOAT16 && p->kernel == tn_cast_kernels_get()->from_f32[TN_BFLOAT16] &&
           !p->second && !p->args.has_scale && !p->refused && !p->refuses_every_nan;
}

/* All but the bytes of parts. */
static tn_status begin(const tn_tensor *t, const decode_as *as, tn_decoder **made, tn_error *err)
{
    tn_decoder *m = calloc(1, sizeof *m);       /* the plan of a cast is large */
    if (!m)
        return tn_fail_nomem(err);
    m->tensor = t;
    tn_status status = check_type(t, err);
    if (!status)
        status = tn_datatype_parse_stored(t->scaling->datatype, t->scaling->store, &m->datatype, err);
    if (!status)
        status = tn_cast_plan_make(&m->narrow, as->to, TN_FLOAT32, TN_HOST_ORDER, &as->options, err);
    if (!status && as->counts)
        tn_cast_plan_count(&m->narrow, tn_cast_kernels_get());
    if (!status)
        status = lay_out(m, t, err);
    if (status) {
        free_decoder(m);
        return tn_in_tensor(status, t->name, err);
    }
    m->bits = tn_dtype_get(as->to)->bits;
    m->to_bf16 = is_plain_bf16(&m->narrow);
    *made = m;
    return TN_OK;
}

/* The codes: as they are stored, or as the step before makes them. */
static bool is_stored(const tn_view *v)
{
    return v->input->step == &tn_step_stored;
}

static const tn_tensor *codes_of(const tn_view *v)
{
    return is_stored(v) ? tn_stored_tensor(v) : &v->input->tensor;
}

/* Whether there is a way to the values; reads nothing.  Any thread may have any range of them unless parts
 * are to be decoded or made first.  Blocks of a rotation are best made whole. */
static tn_status check(tn_view *v, const decode_as *as, tn_error *err)
{
    const tn_tensor *t = codes_of(v);
    tn_decoder *m = NULL;
    tn_status status = begin(t, as, &m, err);
    for (uint32_t k = 0; k < t->nparts && !status && is_stored(v); k++)
        status = tn_part_readable(t, &t->parts[k], err);
    v->reach = status || !is_in_place(t) ? TN_REACH_IN_ORDER : TN_REACH_ANY;
    v->reports = !status && m->narrow.has_limits;
    if (!status && is_rotated_across(m)) {
        uint64_t block = m->plan.inner * (m->plan.o.rotation.size > 8 ? m->plan.o.rotation.size : 8);
        v->grain = (GRAIN / block + 1) * block;
    }
    if (!status && is_stored(v))
        m->lines = find_lines(m, t);
    if (m && m->lines) {
        const tn_derive *d = tn_stored_more_of(m->lines)->derive;
        v->grain = lines_at_once(d) * line_values(m, d);
    }
    free_decoder(m);
    return status;
}

static tn_status describe(tn_view *v, const void *options, tn_error *err)
{
    const tn_dequantize_task *task = options;
    const tn_dtype_info *to = tn_dtype_get(task->to);
    decoding *d = v->state = tn_arena_zalloc(v->arena, 1, sizeof *d);
    if (!d)
        return tn_fail_nomem(err);
    if (task->to != v->tensor.dtype && !tn_is_whole_float(task->to))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "a scaled tensor becomes a signed float type of whole bytes, and from there any "
                       "other, but found %s", to->name);
    d->as.to = task->to;
    d->as.counts = task->counts;
    if (task->cast)
        d->as.options = *task->cast;
    d->as.options.size = sizeof d->as.options;
    TN_TRY(check(v, &d->as, err));
    v->tensor.form = TN_FORM_DENSE;
    v->tensor.scaling = NULL;
    v->tensor.nparts = 1;
    v->tensor.dtype = task->to;
    v->parts[0] = (tn_part){ .role = "data", .array = { task->to, v->tensor.rank, v->tensor.shape, NULL } };
    return tn_view_resize(v, v->tensor.rank, v->tensor.shape, err);
}

/* ---- what comes first ---- */

static tn_status tick(void *context, tn_error *err)
{
    return tn_walk_check(context, err);
}

static void release(tn_view *v)
{
    decoding *d = v->state;
    if (d)
        free_decoder(d->decoder);
    if (d)
        d->decoder = NULL;
}

/* Parts that are not in memory are loaded; the checksums of those that are used in place are compared. */
static tn_status prepare_stored(const tn_view *v, decoding *d, tn_error *err)
{
    const tn_tensor *t = tn_stored_tensor(v);
    tn_loading loading = { .in = v->place->file, .tensor = t, .beside = v->place->beside,
                           .limit = v->place->max_bytes, .tick = tick, .context = v->place->walk };
    TN_TRY(begin(t, &d->as, &d->decoder, err));
    tn_decoder *m = d->decoder;
    loading.without = m->lines = d->keeps_codes ? NULL : find_lines(m, t);
    for (uint32_t k = 0; k < t->nparts && is_in_place(t) && !v->place->unchecked; k++)
        TN_TRY(tn_load_check(&loading, &t->parts[k], err));
    if (!is_in_place(t)) {
        TN_TRY(tn_load(&loading, &m->loaded, err));
        TN_TRY(lay_out(m, &m->loaded.tensor, err));
    }
    return TN_OK;
}

static tn_status prepare_made(const tn_view *v, decoding *d, const tn_preparing *p, tn_error *err)
{
    const tn_tensor *whole;
    TN_TRY(tn_view_prepare(v->input, p, err));
    TN_TRY(tn_view_complete(v->input, p, &whole, err));
    return begin(whole, &d->as, &d->decoder, err);
}

/* What is lost is counted by the values in float32, unless the scales show that nothing can be. */
static tn_status prepare(tn_view *v, const tn_preparing *p, tn_error *err)
{
    decoding *d = v->state;
    release(v);
    TN_TRY(is_stored(v) ? prepare_stored(v, d, err) : prepare_made(v, d, p, err));
    tn_decoder *m = d->decoder;
    m->to_bf16 = m->to_bf16 && (!m->narrow.has_limits || tn_part_values_keep_bf16(&m->parts));
    return TN_OK;
}

void tn_view_keep_codes(const tn_view *v)
{
    decoding *d = v->state;
    d->keeps_codes = true;
}

const tn_decoder *tn_view_decoder(const tn_view *v)
{
    return v->step == &tn_step_decode ? ((const decoding *)v->state)->decoder : NULL;
}

const tn_step tn_step_decode = {
    .name = "decode", .most_parts = 1, .describe = describe, .prepare = prepare, .make = make,
    .release = release,
};
