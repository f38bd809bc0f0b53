/* quant/block_quantizer.c - the quantizer of block types: scales are among the codes. */
#include "quant/quantizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/blocks/neighbours.h"
#include "kernels/stream.h"
#include "tensor/array.h"

enum { CHUNK = 1 << 14 };       /* values that are read at once to find the mean square of a row */

#define PREFIX TN_BLOCK_PREFIX

/* --- datatypes ------------------------------------------------------------------- */

/* Without the prefix mxfp4 and nvfp4 are the datatypes of the same values whose scales are a part. */
static const tn_block_info *find(const char *text)
{
    bool has_prefix = strncasecmp(text, PREFIX, strlen(PREFIX)) == 0;
    const tn_block_info *info = tn_block_named(has_prefix ? text + strlen(PREFIX) : text);
    bool is_other = info && (info->block == TN_BLOCK_MXFP4 || info->block == TN_BLOCK_NVFP4);
    return is_other && !has_prefix ? NULL : info;
}

static bool is_text(const char *text) { return find(text) != NULL; }

static tn_status parse(const char *text, tn_datatype **datatype, tn_error *err)
{
    const tn_block_info *info = find(text);
    size_t size = strlen(PREFIX) + strlen(info->name) + 1;
    tn_datatype *d = calloc(1, sizeof *d);
    if (!d || !(d->text = malloc(size))) {
        free(d);
        return tn_fail_nomem(err);
    }
    memcpy(d->text, PREFIX, strlen(PREFIX));
    memcpy(d->text + strlen(PREFIX), info->name, strlen(info->name) + 1);
    d->quantizer = &tn_block_quantizer;
    d->block = info;
    d->number = (tn_number_spec){ .kind = TN_NUMBER_INT, .bits = 8, .maxint = 127, .dtype = TN_UNKNOWN };
    d->scope = TN_SCOPE_TILE;
    d->dims = 1;
    d->dim = -1;
    d->tile[0] = info->values;
    *datatype = d;
    return TN_OK;
}

/* A type for rows of n values, which are not whole blocks of this one. */
static const char *fallback_for(const tn_block_info *info, int64_t n)
{
    const tn_block_info *next = tn_block_named(info->fallback);
    while (next && n % next->values) {
        info = next;
        next = tn_block_named(info->fallback);
    }
    return info->fallback;
}

/* Whole blocks in a row, one row after the other. */
static tn_status shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *s,
                        tn_error *err)
{
    const tn_block_info *info = d->block;
    int64_t last = rank ? shape[rank - 1] : 0;
    if (!rank || last % info->values)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%s needs rows of a multiple of %u values but found %lld (cast it to %s)", info->name,
                       (unsigned)info->values, rank ? (long long)last : 1,
                       fallback_for(info, rank ? last : 1));
    if (last / info->values > INT64_MAX / info->bytes)
        return tn_fail(err, TN_ERR_LIMIT, "too large for its datatype");
    tn_scaled_part *data = &s->parts[s->count++];
    *data = (tn_scaled_part){ .role = "data", .plain_dtype = TN_UINT8, .dtype = TN_UINT8, .rank = rank };
    for (uint32_t i = 0; i < rank; i++)
        data->shape[i] = data->plain_shape[i] = shape[i];
    data->shape[rank - 1] = data->plain_shape[rank - 1] = last / info->values * info->bytes;
    return TN_OK;
}

static tn_status check(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    if (o->unpacked || o->ggml || o->store != TN_UNKNOWN || o->rotation.size || o->rule != TN_SCALE_MAX ||
        o->round != TN_ROUND_EVEN || (o->percentile != 0 && o->percentile != 100))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%s has one way to be encoded: expected no rounding, scale mode, rotation, dialect or "
                       "layout of codes", d->block->name);
    return TN_OK;
}

/* --- importance -------------------------------------------------------------------- */

static bool needs_importance(tn_block block, bool none_allowed)
{
    if (block == TN_BLOCK_IQ2_XXS || block == TN_BLOCK_IQ2_XS || block == TN_BLOCK_IQ1_S)
        return true;
    return !none_allowed &&
           (block == TN_BLOCK_IQ2_S || block == TN_BLOCK_IQ3_XXS || block == TN_BLOCK_IQ1_M);
}

/* The values of each matrix: of all but the last two dimensions. */
static uint64_t matrix_rows(uint32_t rank, const int64_t *shape)
{
    return rank > 1 ? (uint64_t)shape[rank - 2] : 1;
}

tn_status tn_check_importance(const tn_datatype *d, const tn_quantize_options *o, uint32_t rank,
                              const int64_t *shape, tn_error *err)
{
    if (!o->importance) {
        if (!d->block || !needs_importance(d->block->block, o->no_importance))
            return TN_OK;
        const char *what = needs_importance(d->block->block, true)
                               ? "can only be encoded with importance data"
                               : "needs importance data to be good: give some, or \"none\" to do without";
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_IMPORTANCE, NULL, "%s %s", d->block->name, what);
    }
    if (!d->block)
        return tn_fail(err, TN_ERR_ARGUMENT, "importance data is for block types but found %s", d->text);
    uint64_t row = rank ? (uint64_t)shape[rank - 1] : 1, matrices = 1;
    for (uint32_t i = 0; i + 2 < rank; i++)
        matrices *= (uint64_t)shape[i];
    if (o->nimportance != row && o->nimportance != row * matrices)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected importance data for %llu columns of %llu matrices but found %llu numbers",
                       (unsigned long long)row, (unsigned long long)matrices,
                       (unsigned long long)o->nimportance);
    return TN_OK;
}

/* Whether importance is weighed against the mean square of the whole row; else of a block. */
static bool needs_mean_squares(const tn_scaled_plan *p)
{
    tn_block block = p->d->block->block;
    return p->o.importance && (block == TN_BLOCK_Q4_0 || block == TN_BLOCK_Q4_1 ||
                               block == TN_BLOCK_Q5_0 || block == TN_BLOCK_Q5_1);
}

static uint64_t row_of(const tn_scaled_plan *p)
{
    return (uint64_t)p->shape[p->rank - 1];
}

/* Of row `number`: a sum in the order of the values, as ggml has it. */
static tn_status find_mean_square(void *context, uint64_t number, tn_pool_use use, tn_error *err)
{
    const tn_scaled_job *j = context;
    tn_scaled_scratch *w = &j->scratches[use.scratch];
    uint64_t row = row_of(&j->plan), first = number * row;
    bool nan_is_0 = j->plan.o.nan == TN_NAN_ZERO;
    float sum = 0;
    for (uint64_t at = 0; at < row; at += CHUNK) {
        size_t n = (size_t)tn_min_u64(row - at, CHUNK);
        TN_TRY(tn_job_open_values(j, w, &j->results[use.result], first + at, n, err));
        const float *x = tn_job_floats(j, w, first + at, n);
        for (size_t i = 0; i < n; i++)
            if (!nan_is_0 || !isnan(x[i]))
                sum += x[i] * x[i];
    }
    ((float *)j->state)[number] = sum / (float)row;
    return TN_OK;
}

static tn_status find_mean_squares(tn_scaled_job *j, tn_error *err)
{
    const tn_ordered task = { .work = find_mean_square, .context = j };
    uint64_t rows = j->plan.count / row_of(&j->plan);
    TN_TRY(tn_job_workers(j, err));
    TN_NEED(j->state = calloc((size_t)rows, sizeof(float)), err);
    return tn_pool_run(j->work->pool, rows, &task, err);
}

static void end(tn_scaled_job *j)
{
    free(j->state);
}

/* --- encoding ---------------------------------------------------------------------- */

static tn_status prepare(tn_scaled_job *j, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    TN_NEED(tn_block_prepare(p->d->block->block), err);
    return p->count && needs_mean_squares(p) ? find_mean_squares(j, err) : TN_OK;
}

static tn_status refuse_value(const tn_scaled_job *j, uint64_t element, float value, tn_error *err)
{
    const tn_scaled_plan *p = &j->plan;
    char where[200];
    tn_element_text(where, sizeof where, element, p->rank, p->shape);
    if (isnan(value) && p->o.nan != TN_NAN_ERROR)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_NAN, "zero", "%s is nan, and %s has no NaN", where,
                         p->d->block->name);
    return tn_fail(err, TN_ERR_LOSS, "%s is %g, which %s has no code for", where, (double)value,
                   p->d->block->name);
}

/* Only finite values have codes; NaN becomes 0 if that is asked for. */
static tn_status take_values(const tn_scaled_job *j, tn_scaled_scratch *w, tn_job_block *b, tn_error *err)
{
    bool all = true;
    for (size_t i = 0; i < b->n; i++)
        all &= isfinite(b->x[i]) != 0;
    if (all)
        return TN_OK;
    if (b->x != w->x)
        memcpy(w->x, b->x, b->n * sizeof *w->x);
    b->x = w->x;
    for (size_t i = 0; i < b->n; i++) {
        if (isnan(w->x[i]) && j->plan.o.nan == TN_NAN_ZERO)
            w->x[i] = 0;
        if (!isfinite(w->x[i]))
            return refuse_value(j, b->first + i, w->x[i], err);
    }
    return TN_OK;
}

static bool is_finite_half(const uint8_t *p) { return (p[1] & 0x7c) != 0x7c; }

/* Whether the scales of a block are numbers. */
static bool is_good(const tn_block_info *info, const uint8_t *block)
{
    bool good = true;
    for (unsigned i = 0; i < info->scales; i++)
        good &= is_finite_half(block + info->fields[0].at + 2 * i);
    if (info->block == TN_BLOCK_IQ1_M)  /* its bits are in four words */
        good = (block[55] >> 4 & 7) != 7 || (block[53] & 0xc0) != 0xc0;
    return good;
}

static tn_status check_scales(const tn_scaled_job *j, const tn_job_block *b, tn_error *err)
{
    const tn_block_info *info = j->plan.d->block;
    for (size_t i = 0; i < b->n / info->values; i++) {
        if (is_good(info, b->codes + i * info->bytes))
            continue;
        char where[200];
        tn_element_text(where, sizeof where, b->first + i * info->values, j->plan.rank, j->plan.shape);
        return tn_fail(err, TN_ERR_LOSS, "the block that begins with %s has values beyond what a scale of %s "
                       "can hold", where, info->name);
    }
    return TN_OK;
}

/* Encodes the blocks of each row with the importance of its columns. */
static void encode_rows(const tn_scaled_job *j, const tn_job_block *b)
{
    const tn_scaled_plan *p = &j->plan;
    const tn_block_info *info = p->d->block;
    const uint64_t row = row_of(p), rows = matrix_rows(p->rank, p->shape);
    const float *mean_squares = j->state;
    for (size_t at = 0, n; at < b->n; at += n) {
        uint64_t number = (b->first + at) / row, column = (b->first + at) % row;
        uint64_t matrix = p->o.nimportance > row ? number / rows : 0;
        n = (size_t)tn_min_u64(b->n - at, row - column);
        tn_block_kernels_get()->encode[info->block](
            b->x + at, p->o.importance + matrix * row + column, mean_squares ? mean_squares[number] : 0,
            n / info->values, b->codes + at / info->values * info->bytes);
    }
}

static tn_status encode(const tn_scaled_job *j, tn_scaled_scratch *w, tn_scaled_result *f, uint64_t batch,
                        uint64_t piece, tn_error *err)
{
    const tn_block_info *info = j->plan.d->block;
    tn_job_block b = tn_job_block_of(j, w, batch);
    (void)piece;
    TN_TRY(take_values(j, w, &b, err));
    if (j->plan.o.importance)
        encode_rows(j, &b);
    else
        tn_block_kernels_get()->encode[info->block](b.x, NULL, 0, b.n / info->values, b.codes);
    TN_TRY(check_scales(j, &b, err));
    tn_job_decode_block(j, w, f, &b);
    return TN_OK;
}

/* --- decoding ------------------------------------------------------------------------ */

static tn_status open_values(tn_part_values *v, tn_error *err)
{
    (void)v, (void)err;
    return TN_OK;
}

/* Whole blocks. */
static void read_blocks(const tn_block_info *info, const uint8_t *blocks, size_t n, float *y, bool stream)
{
    const tn_block_kernels *k = tn_block_kernels_get();
    if (!stream || (uintptr_t)y % 16) {
        k->decode[info->block](blocks, n, y);
        return;
    }
    k->stream[info->block](blocks, n, y);
    tn_stream_fence();
}

/* A range may begin and end inside a block. */
static void read_values(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    const tn_block_info *info = v->plan->d->block;
    const tn_scaled_field *data = &v->plan->data;
    while (n > 0) {
        size_t skip = (size_t)(first % info->values), some = n / info->values * info->values;
        const uint8_t *blocks = data->data + (first / info->values * info->bytes - data->from);
        if (!skip && some) {
            read_blocks(info, blocks, some / info->values, y, v->stream);
        } else {
            float values[TN_BLOCK_VALUES];
            some = (size_t)tn_min_u64(n, info->values - skip);
            read_blocks(info, blocks, 1, values, false);
            memcpy(y, values + skip, some * sizeof *y);
        }
        first += some;
        y += some;
        n -= some;
    }
}

const tn_quantizer tn_block_quantizer = {
    .name = "ggml", .is_text = is_text, .parse = parse, .shapes = shapes, .check = check,
    .prepare = prepare, .encode = encode, .end = end, .open = open_values, .read = read_values,
};
