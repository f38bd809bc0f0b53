/* pipeline/steps/join.c - several tensors as one, and the same elements in another shape. */
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "tensor/array.h"
#include "tensor/code.h"

#include <string.h>

/* ---- another shape ---- */

static tn_status describe_reshape(tn_view *v, const void *options, tn_error *err)
{
    const tn_shape *to = options;
    uint64_t before = 0, after = 0;
    int64_t *shape = tn_arena_copy(v->arena, to->extent, (to->rank + 1) * sizeof *shape);
    if (!shape)
        return tn_fail_nomem(err);
    TN_TRY(tn_view_check_places(v, err));
    TN_TRY(tn_view_take_padding(v, err));
    if (v->tensor.scaling && v->tensor.scaling->axis >= 0)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_CAST, "f32",
                         "its scales belong to one dimension, which a new shape would not have");
    if (tn_shape_count(v->tensor.rank, v->tensor.shape, &before) ||
        tn_shape_count(to->rank, shape, &after) || before != after)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a shape of its %llu elements but found one of %llu",
                       (unsigned long long)before, (unsigned long long)after);
    v->tensor.rank = v->parts[0].array.rank = to->rank;
    v->tensor.shape = v->parts[0].array.shape = shape;
    v->tensor.layout = NULL;
    v->is_moved = true;
    return tn_view_resize(v, to->rank, shape, err);
}

static tn_status apply_reshape(const tn_view *v, uint64_t first, const uint8_t *in, size_t n, uint8_t *out,
                               tn_error *err)
{
    (void)first, (void)err;
    memcpy(out, in, (size_t)tn_packed_bytes(n, v->bits));
    return TN_OK;
}

/* Memory without gaps has any shape. */
static bool strided_reshape(const tn_view *v, tn_strided *strided)
{
    int64_t dense[TN_MAX_RANK];
    const tn_array *from = &v->input->parts[0].array;
    if (!tn_view_strided(v->input, strided))
        return false;
    tn_dense_strides(from->rank, tn_view_shape(v->input), dense);
    if (from->rank && memcmp(dense, strided->stride, from->rank * sizeof *dense) != 0)
        return false;
    tn_dense_strides(v->tensor.rank, v->tensor.shape, strided->stride);
    return true;
}

const tn_step tn_step_reshape = { .name = "reshape", .describe = describe_reshape, .apply = apply_reshape,
                                  .strided = strided_reshape };

/* ---- several tensors ---- */

/* The result has `outer` rows, in each of which every input has one piece. */
typedef struct joined {
    uint64_t  outer, row;       /* rows, and elements of one */
    uint64_t *piece;            /* of each input: elements */
} joined;

static tn_status check_shapes(const tn_view *a, const tn_view *b, const tn_joining *how, tn_error *err)
{
    const int64_t *one = tn_view_shape(a), *other = tn_view_shape(b);
    if (a->tensor.rank != b->tensor.rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected tensors of %u dimensions to join but found %u of %s",
                       a->tensor.rank, b->tensor.rank, tn_quote_z(b->tensor.name).text);
    for (uint32_t i = 0; i < a->tensor.rank; i++)
        if (one[i] != other[i] && (how->is_new || (int32_t)i != how->axis))
            return tn_fail(err, TN_ERR_ARGUMENT, "expected tensors of %lld indices of dimension %u to join "
                           "but found %lld of %s", (long long)one[i], i, (long long)other[i],
                           tn_quote_z(b->tensor.name).text);
    return TN_OK;
}

static tn_status check_alike(const tn_view *a, const tn_view *b, const tn_joining *how, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(a->parts[0].array.dtype),
                        *other = tn_dtype_get(b->parts[0].array.dtype);
    TN_TRY(tn_view_check_places(b, err));
    if (a->tensor.form != TN_FORM_DENSE || b->tensor.form != TN_FORM_DENSE)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_CAST, "f32",
                         "codes of other scales cannot be joined: their values can");
    if (type != other)
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_CAST, NULL,
                         "expected tensors of one type to join but found %s and %s of %s: cast them to one",
                         type->name, other->name, tn_quote_z(b->tensor.name).text);
    return check_shapes(a, b, how, err);
}

/* Joined tensors have their dimensions in common, and so the letters of these: what only some of them say
 * is true of all. */
static tn_status join_layouts(tn_view *v, tn_error *err)
{
    const char *layout = NULL;
    for (uint32_t i = 0; i < v->ninputs; i++) {
        const tn_tensor *t = &v->inputs[i]->tensor;
        if (layout && t->layout && strcmp(layout, t->layout) != 0)
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "expected tensors of one layout to join but found %s and %s of %s", layout,
                           t->layout, tn_quote_z(t->name).text);
        layout = layout ? layout : t->layout;
    }
    v->tensor.layout = layout;
    return TN_OK;
}

static tn_status find_join_axis(const tn_joining *how, uint32_t rank, tn_joining *found, tn_error *err)
{
    int32_t most = (int32_t)rank + (how->is_new ? 1 : 0);
    *found = *how;
    found->axis += found->axis < 0 ? most : 0;
    if (found->axis < 0 || found->axis >= most || most > TN_MAX_RANK)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected one of its %d dimensions to join along but found %d",
                       most, how->axis);
    return TN_OK;
}

static tn_status describe_concat(tn_view *v, const void *options, tn_error *err)
{
    tn_joining how;
    uint32_t rank = v->tensor.rank;
    joined *own = v->state = tn_arena_zalloc(v->arena, 1, sizeof *own);
    int64_t *shape = tn_arena_zalloc(v->arena, TN_MAX_RANK + 1, sizeof *shape);
    if (!own || !shape || !(own->piece = tn_arena_zalloc(v->arena, v->ninputs, sizeof *own->piece)))
        return tn_fail_nomem(err);
    TN_TRY(find_join_axis(options, rank, &how, err));
    for (uint32_t i = 0; i < v->ninputs; i++)
        TN_TRY(check_alike(v->input, v->inputs[i], &how, err));
    TN_TRY(join_layouts(v, err));
    for (uint32_t i = 0, k = 0; i < rank + how.is_new; i++)
        shape[i] = how.is_new && (int32_t)i == how.axis ? (int64_t)v->ninputs : tn_view_shape(v->input)[k++];
    uint64_t inner = 1;
    own->outer = 1;
    for (uint32_t i = 0; i < rank + how.is_new; i++) {
        own->outer *= (int32_t)i < how.axis ? (uint64_t)shape[i] : 1;
        if ((int32_t)i > how.axis && !tn_mul_u64(inner, (uint64_t)shape[i], &inner))
            return tn_fail(err, TN_ERR_LIMIT, "joined, it would have 2^63 indices or more");
    }
    int64_t along = 0;
    for (uint32_t i = 0; i < v->ninputs; i++) {
        int64_t extent = how.is_new ? 1 : tn_view_shape(v->inputs[i])[how.axis];
        own->piece[i] = (uint64_t)extent * inner;
        own->row += own->piece[i];
        if (__builtin_add_overflow(along, extent, &along))
            return tn_fail(err, TN_ERR_LIMIT, "joined, it would have 2^63 indices or more");
    }
    shape[how.axis] = along;
    v->parts[0].padded = NULL;
    v->tensor.layout = how.is_new ? NULL : v->tensor.layout;
    v->tensor.rank = v->parts[0].array.rank = rank + how.is_new;
    v->tensor.shape = v->parts[0].array.shape = shape;
    v->is_moved = true;
    v->grain = 0;
    return tn_view_resize(v, v->tensor.rank, shape, err);
}

static tn_status prepare_concat(tn_view *v, const tn_preparing *p, tn_error *err)
{
    for (uint32_t i = 0; i < v->ninputs; i++) {
        TN_TRY(tn_view_prepare(v->inputs[i], p, err));
        if (!tn_view_has_ranges(v->inputs[i]))
            TN_TRY(tn_view_fill(v->inputs[i], p, err));
    }
    return TN_OK;
}

/* What a range of the result has of one input: `rows` times `each` elements, from element `from` on; they
 * go to element `to` and, row by row, `row` elements later. */
typedef struct joint {
    uint32_t input;
    uint64_t from, each, rows, to;
} joint;

/* The joint that holds element `first`, of at most n elements.  Whole rows are taken together: input by
 * input, `input` being the one to take. */
static joint find_joint(const joined *j, uint64_t first, uint64_t n, uint32_t input)
{
    uint64_t row = first / j->row, at = first % j->row, before = 0;
    joint found = { .input = input };
    if (at == 0 && n >= j->row) {
        for (uint32_t i = 0; i < input; i++)
            before += j->piece[i];
        found.each = j->piece[input];
        found.rows = n / j->row;
        found.from = row * found.each;
        found.to = before;
        return found;
    }
    for (found.input = 0; before + j->piece[found.input] <= at; found.input++)
        before += j->piece[found.input];
    uint64_t piece = j->piece[found.input];
    found.from = row * piece + (at - before);
    found.each = tn_min_u64(piece - (at - before), n);
    found.rows = 1;
    return found;
}

static tn_status read_joint(const tn_view *v, const joint *x, tn_worker *w, uint8_t *out, tn_error *err)
{
    const joined *j = v->state;
    const tn_view *input = v->inputs[x->input];
    uint64_t first = x->from / 8 * 8, skip = x->from - first;
    const uint8_t *bytes;
    if (!x->each)
        return TN_OK;
    w->counted = x->from;       /* by the joint before */
    TN_TRY(tn_view_range(input, first, (size_t)(skip + x->rows * x->each), w, &bytes, err));
    if (v->bits >= 8) {
        size_t width = v->bits / 8, n = (size_t)x->each * width;
        for (uint64_t i = 0; i < x->rows; i++)
            memcpy(out + (x->to + i * j->row) * width, bytes + skip * width + i * n, n);
        return TN_OK;
    }
    for (uint64_t i = 0; i < x->rows; i++)
        for (uint64_t k = 0; k < x->each; k++)
            tn_packed_put(out, x->to + i * j->row + k, v->bits,
                          tn_packed_get(bytes, skip + i * x->each + k, v->bits));
    return TN_OK;
}

/* What is wanted of each joint: its elements or, without a worker, the stored bytes that it is made of. */
typedef struct joint_use {
    tn_worker *worker;
    uint8_t   *out;
    tn_needs  *needs;
} joint_use;

static tn_status use_joint(const tn_view *v, const joint *x, const joint_use *use, tn_error *err)
{
    if (use->worker)
        return read_joint(v, x, use->worker, use->out, err);
    return x->each ? tn_view_needs(v->inputs[x->input], x->from, x->rows * x->each, use->needs, err) : TN_OK;
}

static tn_status walk_joints(const tn_view *v, uint64_t first, uint64_t n, const joint_use *use,
                             tn_error *err)
{
    const joined *j = v->state;
    for (uint64_t done = 0, some; done < n; done += some) {
        bool whole = (first + done) % j->row == 0 && n - done >= j->row;
        some = whole ? (n - done) / j->row * j->row : 0;
        for (uint32_t i = 0; i < (whole ? v->ninputs : 1); i++) {
            joint x = find_joint(j, first + done, n - done, i);
            some = whole ? some : x.each;
            x.to += done;
            TN_TRY(use_joint(v, &x, use, err));
        }
    }
    return TN_OK;
}

static tn_status make_concat(const tn_view *v, uint64_t first, size_t n, tn_worker *w, uint8_t *out,
                             tn_error *err)
{
    uint64_t counted = w->counted;      /* of the elements that are made here; inputs have their own */
    if (v->bits < 8)
        memset(out, 0, (size_t)tn_packed_bytes(n, v->bits));
    tn_status status = walk_joints(v, first, n, &(joint_use){ .worker = w, .out = out }, err);
    w->counted = counted;
    return status;
}

static tn_status needs_concat(const tn_view *v, uint64_t first, uint64_t n, tn_needs *needs, tn_error *err)
{
    return walk_joints(v, first, n, &(joint_use){ .needs = needs }, err);
}

const tn_step tn_step_concat = { .name = "concat", .describe = describe_concat, .prepare = prepare_concat,
                                 .make = make_concat, .needs = needs_concat,
                                 .is_local = tn_step_is_local };
