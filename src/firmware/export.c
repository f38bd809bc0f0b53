/* firmware/export.c - tensors of a file as C source or as a flat image. */
#include "base/checked.h"
#include "base/options.h"
#include "store/kept.h"
#include "store/packed.h"
#include "firmware/c_files.h"
#include "firmware/c_names.h"
#include "firmware/c_text.h"
#include "pipeline/view.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "tensor/form.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 1000 };   /* every compiler accepts literals of that length */

typedef struct job {
    const tn_file    *in;
    tn_export_options o;
    tn_export_result  result;
    tn_c_export       e;
    tn_c_tensor      *tensors;
    char              name[TN_EXPORT_MAX_NAME + 1];
    tn_arena          arena;
    tn_c_files        files;
    tn_buf            text;     /* not yet written */
    uint8_t          *window;   /* TN_WINDOW bytes, for elements that are computed */
    tn_walk           walk;     /* counts bytes of data */
} job;

/* ---- reading ---- */

/* Takes the next n bytes of a part, whole elements. */
typedef tn_status (*take_fn)(void *context, const uint8_t *bytes, size_t n, tn_error *err);

static tn_status read_view(tn_view *v, tn_worker *w, take_fn take, void *context, tn_error *err)
{
    uint64_t window = tn_view_window(v);
    const uint8_t *bytes;
    TN_TRY(tn_view_hold(v, w, v->count, err));
    for (uint64_t at = 0, n; at < v->count; at += n) {
        n = tn_min_u64(v->count - at, window);
        TN_TRY(tn_view_range(v, at, (size_t)n, w, &bytes, err));
        TN_TRY(take(context, bytes, (size_t)tn_packed_bytes(n, v->bits), err));
    }
    return TN_OK;
}

static tn_status read_part(const job *j, const tn_tensor *t, uint32_t k, take_fn take, void *context,
                           tn_error *err)
{
    const tn_view_place place = { .file = j->in };
    tn_worker w = { 0 };
    tn_arena arena = { 0 };
    tn_view *v = NULL;
    tn_status status = tn_view_stored_part(&place, t, k, &arena, &v, err);
    if (!status)
        status = read_view(v, &w, take, context, err);
    tn_view_free(v);
    tn_worker_free(&w);
    tn_arena_free(&arena);
    return status;
}

/* ---- scales and zero points ---- */

/* The scales or zero points of one tensor while they are read. */
typedef struct survey {
    tn_mli_version mli;
    tn_c_tensor   *c;
    uint64_t       index;
    float          largest;     /* scale so far */
} survey;

static tn_status find_largest(void *context, const uint8_t *bytes, size_t n, tn_error *err)
{
    survey *s = context;
    for (size_t i = 0; i < n / sizeof(float); i++, s->index++) {
        float scale;
        memcpy(&scale, bytes + i * sizeof scale, sizeof scale);
        if (!(scale > 0) || isinf(scale))
            return tn_fail(err, TN_ERR_UNSUPPORTED, "scale %.9g at %llu: MLI expects a finite one above 0",
                           (double)scale, (unsigned long long)s->index);
        s->largest = scale > s->largest ? scale : s->largest;
    }
    return TN_OK;
}

static tn_status fail_scale(const survey *s, float scale, int32_t frac_bits, tn_error *err)
{
    const char *type = s->c->type->name;
    bool shared = s->mli == TN_FOR_MLI_1_1 && s->c->axis >= 0;
    return tn_refuse(err, TN_ERR_LOSS, TN_REASON_CAST_BEFORE, "f32",
                     "scale %.9g at %llu is no integer of %d bits with %d fractional bits%s: cast it to "
                     "float32, and that to %s%s, which chooses scales that are",
                     (double)scale, (unsigned long long)s->index, s->mli == TN_FOR_MLI_2_0 ? 15 : 31,
                     frac_bits,
                     shared ? ", as many as the largest one leaves (MLI 2.0 has some for each)" : "", type,
                     shared ? ",per=tensor" : "");
}

/* Checks that all scales fit as integers; keeps the last one. */
static tn_status check_scales(void *context, const uint8_t *bytes, size_t n, tn_error *err)
{
    survey *s = context;
    for (size_t i = 0; i < n / sizeof(float); i++, s->index++) {
        float scale;
        memcpy(&scale, bytes + i * sizeof scale, sizeof scale);
        int32_t frac_bits = s->mli == TN_FOR_MLI_2_0 ? tn_c_scale_frac(s->mli, scale) : s->c->frac_bits;
        if (!tn_c_scale_integer(s->mli, scale, frac_bits, &s->c->scale))
            return fail_scale(s, scale, frac_bits, err);
    }
    return TN_OK;
}

/* A type that MLI has a structure for. */
static const char *fixed_point_for(const tn_c_tensor *c)
{
    return c->type->dtype == TN_INT8 ? "fx8,frac=auto" : "fx16,frac=auto";
}

static tn_status check_zeros(void *context, const uint8_t *bytes, size_t n, tn_error *err)
{
    survey *s = context;
    for (size_t i = 0; i < n / sizeof(int32_t); i++, s->index++) {
        memcpy(&s->c->zero, bytes + i * sizeof(int32_t), sizeof(int32_t));
        if (s->c->zero < INT16_MIN || s->c->zero > INT16_MAX)
            return tn_refuse(err, TN_ERR_LOSS, TN_REASON_CAST_BEFORE, fixed_point_for(s->c),
                             "zero point %d at %llu: MLI expects -32768 to 32767: cast it to fixed point",
                             s->c->zero, (unsigned long long)s->index);
    }
    return TN_OK;
}

static tn_status plan_parameters(const job *j, tn_c_tensor *c, float largest, tn_error *err)
{
    const tn_tensor *t = c->source;
    survey s = { .mli = j->o.mli, .c = c };
    c->axis = t->scaling->axis;
    c->frac_bits = tn_c_scale_frac(s.mli, largest);
    TN_TRY(read_part(j, t, 1, check_scales, &s, err));
    s.index = 0;
    return t->nparts > 2 ? read_part(j, t, 2, check_zeros, &s, err) : TN_OK;
}

/* ---- planning one tensor ---- */

static tn_status fail_type(const char *found, tn_reason reason, const char *value, tn_error *err)
{
    return tn_refuse(err, TN_ERR_UNSUPPORTED, reason, value, "MLI has no structure for %s", found);
}

static tn_status check_version(const job *j, const tn_c_tensor *c, tn_error *err)
{
    const char *name = c->type->name, *mli = tn_c_versions[j->o.mli].name;
    if (c->type->ours[j->o.mli])
        return TN_OK;
    return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_MLI, "2.0",
                     "MLI %s has no %s: use MLI %s, or cast it to %s", mli, name,
                     c->type->kind == TN_C_FP ? "2.0" : "1.1 or 2.0", fixed_point_for(c));
}

static tn_status plan_dense(const job *j, tn_c_tensor *c, tn_error *err)
{
    const tn_tensor *t = c->source;
    const tn_dtype_info *info = tn_dtype_get(t->dtype);
    char found[80];
    c->type = tn_c_type_find(TN_C_FP, t->dtype);
    if (c->type)
        return check_version(j, c, err);
    if (!info)
        return tn_part_readable(t, &t->parts[0], err);
    bool is_float = info->kind == TN_KIND_FLOAT;
    snprintf(found, sizeof found, "plain %s%s", info->name,
             is_float ? "" : ": cast it to float32, and that to fx16,frac=auto");
    return fail_type(found, TN_REASON_CAST_BEFORE, is_float ? "fx16,frac=auto" : "f32", err);
}

static tn_status check_frac_bits(const job *j, const tn_c_tensor *c, tn_error *err)
{
    bool is_signed = j->o.mli == TN_FOR_MLI_2_0;
    int32_t least = is_signed ? INT8_MIN : 0;
    int32_t most = is_signed ? INT8_MAX : UINT8_MAX;
    if (c->frac_bits >= least && c->frac_bits <= most)
        return TN_OK;
    bool below = c->frac_bits < least;
    char cast[48];
    snprintf(cast, sizeof cast, "%s,frac=%s", c->type->name, below ? "0" : "auto");
    return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_CAST_BEFORE, cast,
                     "frac_bits is %d, MLI %s expects %d to %d%s", c->frac_bits, tn_c_versions[j->o.mli].name,
                     least, most, below ? ": use MLI 2.0, or cut larger values" : "");
}

static tn_status plan_scaled(const job *j, tn_c_tensor *c, tn_error *err)
{
    const tn_tensor *t = c->source;
    tn_dtype codes = t->parts[0].array.dtype;
    survey s = { .mli = j->o.mli, .c = c };
    TN_TRY(read_part(j, t, 1, find_largest, &s, err));
    if (t->nparts == 2 && t->scaling->axis < 0 && tn_c_frac_bits(s.largest, &c->frac_bits)) {
        c->type = tn_c_type_find(TN_C_FX, codes);
        if (c->type)
            return check_frac_bits(j, c, err);
    }
    c->type = tn_c_type_find(TN_C_SA, codes);
    if (!c->type && codes == TN_INT16)
        return fail_type("int16 but with one scale that is a power of two and no zero points",
                         TN_REASON_CAST_BEFORE, "fx16,frac=auto", err);
    if (!c->type)
        return fail_type(tn_dtype_get(codes)->name, TN_REASON_CAST_BEFORE, "fx8,frac=auto", err);
    TN_TRY(check_version(j, c, err));
    return plan_parameters(j, c, s.largest, err);
}

static tn_status plan_type(const job *j, tn_c_tensor *c, tn_error *err)
{
    const tn_tensor *t = c->source;
    char found[160];
    if (tn_form_is_sparse(t->form)) {
        snprintf(found, sizeof found, "form %s", tn_form_name(t->form));
        return fail_type(found, TN_REASON_FORM_BEFORE, tn_form_name(TN_FORM_DENSE), err);
    }
    if (tn_form_has_datatype(t)) {
        snprintf(found, sizeof found, "codes of datatype %s", tn_quote_z(t->scaling->datatype).text);
        return fail_type(found, TN_REASON_CAST_BEFORE, "f32", err);
    }
    if (t->scaling && t->parts[1].array.dtype != TN_FLOAT32)
        return fail_type("scales of float64", TN_REASON_CAST_BEFORE, "f32", err);
    if (t->form == TN_FORM_DENSE)
        return plan_dense(j, c, err);
    if (t->form == TN_FORM_SCALED && t->scaling)
        return plan_scaled(j, c, err);
    snprintf(found, sizeof found, "form %s", tn_quote_z(tn_tensor_form_name(t)).text);
    return fail_type(found, TN_REASON_ONLY, NULL, err);
}

static tn_status plan_shape(const job *j, tn_c_tensor *c, tn_error *err)
{
    const tn_tensor *t = c->source;
    if (t->rank > TN_MLI_MAX_RANK)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_ONLY, NULL,
                         "it has %u dimensions, MLI at most %d: leave it out", t->rank, TN_MLI_MAX_RANK);
    c->rank = t->rank ? t->rank : 1;
    c->shape[0] = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        c->shape[i] = t->shape[i];
    tn_status status = tn_shape_count(c->rank, c->shape, &c->count);
    if (status)
        return tn_fail(err, status, "its shape has no number of elements");
    if (c->count == 0)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_ONLY, NULL,
                         "it is empty, MLI expects at least one element: leave it out");
    uint64_t most = tn_c_versions[j->o.mli].most;
    if (c->count > most || tn_c_array_bytes(c, j->o.mli, TN_C_DATA) > most)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_ONLY, NULL,
                         "%llu elements of type %s, MLI %s counts at most %llu bytes: leave it out",
                         (unsigned long long)c->count, c->type->name, tn_c_versions[j->o.mli].name,
                         (unsigned long long)most);
    return TN_OK;
}

static tn_status plan_tensor(const job *j, tn_c_tensor *c, tn_error *err)
{
    size_t length = strlen(c->source->name);
    if (length > LONGEST_NAME)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_RENAME_BEFORE, NULL,
                         "a name of %zu bytes, at most %d can be in a text: give it another",
                         length, LONGEST_NAME);
    tn_status status = plan_type(j, c, err);
    return status ? status : plan_shape(j, c, err);
}

/* ---- planning all tensors ---- */

/* All tensors get identifiers, so that they do not depend on the selection. */
static tn_status name_tensors(job *j, const char ***ids, tn_error *err)
{
    size_t n = tn_file_count(j->in);
    const char **names = tn_arena_zalloc(&j->arena, n, sizeof *names);
    *ids = tn_arena_zalloc(&j->arena, n, sizeof **ids);
    TN_NEED(names && *ids, err);
    for (size_t i = 0; i < n; i++)
        names[i] = tn_file_tensor(j->in, i)->name;
    return tn_c_identifiers(names, n, &j->arena, *ids, err);
}

static tn_status plan_tensors(job *j, tn_error *err)
{
    const char **ids;
    TN_TRY(name_tensors(j, &ids, err));
    j->tensors = tn_arena_zalloc(&j->arena, j->walk.count, sizeof *j->tensors);
    TN_NEED(j->tensors, err);
    for (size_t i = 0; i < j->walk.count; i++) {
        const tn_tensor *t = j->walk.tensors[i];
        tn_c_tensor *c = &j->tensors[j->result.tensors++];
        *c = (tn_c_tensor){ .source = t, .id = ids[t - j->in->tensors], .axis = -1 };
        if (tn_packed_of(j->in, t))
            return tn_packed_refuse(tn_packed_of(j->in, t), t, err);
        TN_TRY(tn_in_tensor(plan_tensor(j, c, err), c->source->name, err));
    }
    return TN_OK;
}

static tn_status check_kept(const job *j, tn_error *err)
{
    tn_kept kept = { .max_bytes = j->in->max_bytes };
    for (size_t i = 0; i < j->result.tensors; i++)
        for (uint32_t k = 0; k < j->tensors[i].source->nparts; k++)
            tn_kept_add_part(&kept, j->tensors[i].source, &j->tensors[i].source->parts[k]);
    return tn_kept_check(&kept, err);
}

static tn_status plan(job *j, tn_error *err)
{
    TN_TRY(tn_walk_choose(&j->walk, j->in, j->o.only, j->o.nonly, err));
    if (j->walk.count == 0)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "there is no tensor to export");
    TN_TRY(plan_tensors(j, err));
    return check_kept(j, err);
}

/* An image aligns everything alike.  Source aligns data; parameters have the alignment of their elements. */
static void place_array(job *j, tn_c_tensor *c, tn_c_array array, uint64_t end[2])
{
    uint64_t bytes = tn_c_array_bytes(c, j->o.mli, array), begin = 0;
    bool with_data = array == TN_C_DATA || j->o.binary;
    uint64_t align = with_data ? j->o.align : tn_dtype_get(tn_c_array_type(c, j->o.mli, array))->bits / 8;
    if (!bytes)
        return;
    tn_align_u64(end[!with_data], align, &begin);       /* cannot wrap: so much is in no file */
    c->at[array] = begin;
    uint64_t grown = begin + bytes - end[!with_data];
    end[!with_data] = begin + bytes;
    if (array == TN_C_DATA)
        j->result.data_bytes += grown;
    else
        j->result.parameter_bytes += grown;
}

static tn_status place(job *j, tn_error *err)
{
    tn_export_result *r = &j->result;
    uint64_t end[2] = { 0, 0 };
    for (size_t i = 0; i < r->tensors; i++) {
        tn_c_tensor *c = &j->tensors[i];
        uint64_t bytes = tn_c_array_bytes(c, j->o.mli, TN_C_DATA);
        for (tn_c_array a = TN_C_DATA; a < TN_C_ARRAYS; a++)
            place_array(j, c, a, end);
        /* two pointers in the list */
        r->structure_bytes += tn_c_versions[j->o.mli].bytes + (j->o.binary ? 0 : 8);
        r->name_bytes += j->o.binary ? 0 : strlen(c->source->name) + 1;
        if (bytes > r->largest_bytes) {
            r->largest = c->source;
            r->largest_bytes = bytes;
        }
        j->walk.total += bytes;
    }
    if (j->o.binary && end[0] > UINT32_MAX)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_ONLY, NULL,
                         "an image of %llu bytes: expected at most 4294967295: leave tensors out",
                         (unsigned long long)end[0]);
    j->e = (tn_c_export){ .name = j->name, .mli = j->o.mli, .align = j->o.align, .section = j->o.section,
                          .binary = j->o.binary, .tensors = j->tensors, .count = r->tensors,
                          .image_bytes = end[0] };
    return TN_OK;
}

static void report(const job *j)
{
    for (size_t i = 0; j->o.report && i < j->result.tensors; i++) {
        const tn_c_tensor *c = &j->tensors[i];
        char identifier[TN_EXPORT_MAX_NAME + TN_C_WORDS_MAX + 40];
        snprintf(identifier, sizeof identifier, "%s_tensor_%s", j->name, c->id);
        tn_export_tensor one = {
            .source = c->source, .identifier = identifier, .type = c->type->name, .rank = c->rank,
            .shape = c->shape, .axis = c->axis, .structure_bytes = tn_c_versions[j->o.mli].bytes,
            .data_bytes = tn_c_array_bytes(c, j->o.mli, TN_C_DATA),
        };
        if (c->type->kind == TN_C_FX)
            one.frac_bits = c->frac_bits;
        if (j->o.binary)
            one.offset = c->at[TN_C_DATA];
        for (tn_c_array a = TN_C_ZERO; a < TN_C_ARRAYS; a++)
            one.parameter_bytes += tn_c_array_bytes(c, j->o.mli, a);
        j->o.report(j->o.context, &one);
    }
}

/* ---- writing ---- */

static tn_status flush(job *j, tn_c_file *file, tn_error *err)
{
    tn_status status =
        j->text.bad ? tn_fail_nomem(err) : tn_c_file_write(file, j->text.data, j->text.size, err);
    j->text.size = 0;
    return status;
}

/* The array that is being written. */
typedef struct writing {
    job         *j;
    tn_c_tensor *c;
    tn_c_array   array;
    unsigned     column;
    uint64_t     index;         /* of the next element */
} writing;

static tn_status put_image_elements(job *j, tn_dtype dtype, const uint8_t *elements, size_t n, tn_error *err)
{
    unsigned unit = tn_dtype_get(dtype)->bits / 8;
    if (TN_HOST_ORDER != TN_LITTLE_ENDIAN) {
        tn_swap_bytes(j->window, elements, n * unit, unit);
        elements = j->window;
    }
    return tn_c_file_write(&j->files.first, elements, n * unit, err);
}

static tn_status put_elements(writing *w, const uint8_t *elements, size_t n, tn_error *err)
{
    job *j = w->j;
    tn_dtype dtype = tn_c_array_type(w->c, j->o.mli, w->array);
    size_t bad;
    if (j->o.binary)
        return put_image_elements(j, dtype, elements, n, err);
    if (!tn_c_put_elements(&j->text, dtype, elements, n, &w->column, &bad))
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_BINARY, NULL,
                         "element %llu is infinite or NaN, which C has no constant for",
                         (unsigned long long)(w->index + bad));
    return flush(j, &j->files.first, err);
}

static tn_status take_elements(void *context, const uint8_t *bytes, size_t n, tn_error *err)
{
    writing *w = context;
    size_t from = w->array == TN_C_DATA ? tn_dtype_get(w->c->type->dtype)->bits / 8 : sizeof(float);
    const uint8_t *elements = bytes;
    if (w->array != TN_C_DATA) {
        tn_c_array_make(w->c, w->j->o.mli, w->array, bytes, n / from, w->j->window);
        elements = w->j->window;
    }
    TN_TRY(tn_in_tensor(put_elements(w, elements, n / from, err), w->c->source->name, err));
    w->index += n / from;
    return w->array == TN_C_DATA ? tn_walk_advance(&w->j->walk, n, err) : TN_OK;
}

/* Writes zero points that the source does not have. */
static tn_status put_zeros(writing *w, uint64_t count, tn_error *err)
{
    job *j = w->j;
    if (!j->o.binary) {
        tn_buf_puts(&j->text, "    0");         /* C sets the others to 0 too */
        return TN_OK;
    }
    memset(j->window, 0, TN_WINDOW);
    for (uint64_t left = count * sizeof(int16_t); left;) {
        size_t n = (size_t)tn_min_u64(left, TN_WINDOW);
        TN_TRY(tn_c_file_write(&j->files.first, j->window, n, err));
        left -= n;
    }
    return TN_OK;
}

static tn_status pad(job *j, uint64_t to, tn_error *err)
{
    static const uint8_t nothing[TN_EXPORT_MAX_ALIGN];
    uint64_t n = to - j->files.first.size;
    return n ? tn_c_file_write(&j->files.first, nothing, (size_t)n, err) : TN_OK;
}

/* The source of an array; NULL: zero points that the tensor does not have. */
static const tn_part *source_of(const tn_tensor *t, tn_c_array array)
{
    if (array == TN_C_ZERO)
        return t->nparts > 2 ? &t->parts[2] : NULL;
    return &t->parts[array == TN_C_DATA ? 0 : 1];
}

static tn_status write_array(job *j, tn_c_tensor *c, tn_c_array array, tn_error *err)
{
    const tn_tensor *t = c->source;
    const tn_part *part = source_of(t, array);
    uint64_t count = tn_c_array_count(c, j->o.mli, array);
    writing w = { .j = j, .c = c, .array = array };
    tn_status status = TN_OK;
    if (count == 0)
        return TN_OK;
    if (j->o.binary)
        status = pad(j, c->at[array], err);
    else
        tn_c_put_array_begin(&j->text, &j->e, c, array);
    if (!status)
        status = part ? read_part(j, t, (uint32_t)(part - t->parts), take_elements, &w, err)
                      : put_zeros(&w, count, err);
    if (!j->o.binary)
        tn_c_put_array_end(&j->text);
    return status;
}

static tn_status write_tensor(job *j, tn_c_tensor *c, tn_error *err)
{
    for (tn_c_array a = TN_C_DATA; a < TN_C_ARRAYS; a++)
        TN_TRY(write_array(j, c, a, err));
    if (!j->o.binary)
        tn_c_put_structure(&j->text, &j->e, c);
    return TN_OK;
}

static tn_status write_both(job *j, tn_error *err)
{
    tn_status status = TN_OK;
    if (!j->o.binary)
        tn_c_put_source_begin(&j->text, &j->e);
    for (size_t i = 0; i < j->result.tensors && !status; i++)
        status = write_tensor(j, &j->tensors[i], err);
    if (!j->o.binary)
        tn_c_put_source_list(&j->text, &j->e);
    if (!status)
        status = flush(j, &j->files.first, err);
    j->e.crc = j->files.first.crc;
    if (!j->o.binary)
        tn_c_put_source_end(&j->text, &j->e);
    if (!status)
        status = flush(j, &j->files.first, err);
    if (status)
        return status;
    tn_c_put_header(&j->text, &j->e);
    return flush(j, &j->files.second, err);
}

static tn_status write_files(job *j, const char *folder, tn_error *err)
{
    j->window = malloc(TN_WINDOW);
    TN_NEED(j->window, err);
    const char *suffix = j->o.binary ? ".bin" : ".c";
    TN_TRY(tn_c_files_open(&j->files, folder, j->name, suffix, j->o.replace, err));
    tn_sink_listen(j->files.first.sink, (tn_listener){ j->o.note, j->o.context, j->files.first.path });
    tn_sink_listen(j->files.second.sink, (tn_listener){ j->o.note, j->o.context, j->files.second.path });
    tn_status status = write_both(j, err);
    if (tn_file_intact(j->in, NULL))
        status = tn_file_settle(j->in, status, err);
    if (status) {
        tn_c_files_abandon(&j->files);
        return status;
    }
    return tn_c_files_publish(&j->files, err);
}

/* ---- all of it ---- */

static bool is_section(const char *text)
{
    static const char taken[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._$-";
    size_t n = strlen(text);
    return n > 0 && n <= TN_EXPORT_MAX_SECTION && strspn(text, taken) == n;
}

static tn_status take_options(job *j, const tn_export_options *given, tn_error *err)
{
    TN_TRY(tn_take_options(TN_SIZED(tn_export_options, note), &j->o, given, err));
    if (!j->o.align)
        j->o.align = TN_EXPORT_ALIGN;
    if (j->o.mli > TN_FOR_MLI_2_0)
        return tn_fail(err, TN_ERR_ARGUMENT, "there is no MLI version %d", (int)j->o.mli);
    if (!tn_is_power_of_two(j->o.align) || j->o.align < TN_EXPORT_ALIGN || j->o.align > TN_EXPORT_MAX_ALIGN)
        return tn_fail(err, TN_ERR_ARGUMENT, "alignment %llu: expected a power of two from %d to %d",
                       (unsigned long long)j->o.align, TN_EXPORT_ALIGN, TN_EXPORT_MAX_ALIGN);
    if (j->o.section && !is_section(j->o.section))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "section %s: expected letters, digits, '.', '_', '$' and '-', at most %d of them",
                       tn_quote_z(j->o.section).text, TN_EXPORT_MAX_SECTION);
    if (j->o.name && !tn_c_is_prefix(j->o.name))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "name %s: expected letters, digits and single underscores between them, a letter "
                       "first and at most %d of them", tn_quote_z(j->o.name).text, TN_EXPORT_MAX_NAME);
    if (j->o.name)
        snprintf(j->name, sizeof j->name, "%s", j->o.name);
    else
        tn_c_prefix(tn_file_shard_name(j->in, 0), j->name);
    memcpy(j->result.name, j->name, sizeof j->result.name);
    return TN_OK;
}

static tn_status run(job *j, const char *folder, tn_error *err)
{
    TN_TRY(plan(j, err));
    TN_TRY(place(j, err));
    report(j);
    return folder ? write_files(j, folder, err) : TN_OK;
}

tn_status tn_export_c(const tn_file *file, const char *folder, const tn_export_options *given,
                      tn_export_result *result, tn_error *err)
{
    TN_GIVEN(file, "a file", err);
    tn_error own;
    job *j = calloc(1, sizeof *j);
    TN_NEED(j, err);
    err = err ? err : &own;
    j->in = file;
    tn_status status = take_options(j, given, err);
    j->walk = (tn_walk){ .jobs = 1, .progress = j->o.progress, .context = j->o.context };
    if (!status)
        status = tn_in_file(run(j, folder, err), tn_file_shard_name(j->in, 0), err);
    if (!status && result)
        *result = j->result;
    tn_buf_free(&j->text);
    tn_walk_end(&j->walk);
    tn_arena_free(&j->arena);
    free(j->window);
    free(j);
    return status;
}
