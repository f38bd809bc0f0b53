/* recode.c - codes with scales that become codes of other scales. */
#include "recode.h"
#include "base/error.h"
#include "transform/power.h"
#include "transform/requantize.h"
#include "values.h"

#include <math.h>

/* The context of a change. */
typedef struct recoder {
    tn_change       change;
    tn_requant_plan plan;
} recoder;

static tn_status apply(const void *context, uint64_t first, const uint8_t *in, size_t n, uint8_t *out, tn_error *err)
{
    const recoder *k = context;
    (void)err;
    tn_requantize_block(&k->plan, out, in, n, first);
    return TN_OK;
}

static tn_status fail(const tn_recoding *r, const tn_error *why, tn_error *err)
{
    return tn_fail(err, why->status, TN_NO_OFFSET, "tensor %s: %s", tn_quote_z(r->tensor->name).text, why->text);
}

tn_status tn_recode_change(const tn_recoding *r, tn_arena *arena, const tn_change **change, tn_error *err)
{
    tn_dtype codes = r->tensor->parts[0].array.dtype;
    tn_scales from = { .axis = r->axis, .zero = r->zero };
    recoder *k = tn_arena_zalloc(arena, 1, sizeof *k);
    tn_error why;
    if (!k)
        return tn_fail_nomem(err);
    tn_status status = tn_read_scales(r->file, r->tensor, arena, &from.scale, err);
    if (status)
        return status;
    if (tn_requant_plan_make(&k->plan, r->to, &r->scales, codes, &from, r->rank, r->shape, &r->options, &why))
        return fail(r, &why, err);
    k->change = (tn_change){ apply, k, tn_dtype_get(codes)->bits, tn_dtype_get(r->to)->bits };
    *change = &k->change;
    return TN_OK;
}

/* ---- the power of two that fits ---- */

/* What codes the tensor has: of each scale the lowest and the highest. */
typedef struct extremes {
    int64_t   shape[2];         /* scales, 2 */
    tn_scales scales;
    int32_t  *codes;            /* of that shape */
    int32_t  *trial;            /* the same at another scale */
} extremes;

static void take_codes(extremes *x, tn_scale_index index, tn_dtype type, const uint8_t *bytes, uint64_t first, uint64_t n)
{
    tn_scale_walk walk = tn_scale_walk_at(index, first);
    for (uint64_t i = 0; i < n; i++) {
        tn_value v = tn_value_get(type, bytes, i);
        int32_t code = (int32_t)(v.kind == TN_KIND_UINT ? (int64_t)v.u : v.i), *ends = &x->codes[2 * walk.scale];
        ends[0] = code < ends[0] ? code : ends[0];
        ends[1] = code > ends[1] ? code : ends[1];
        tn_scale_walk_on(&walk, index, 1);
    }
}

static tn_status read_codes(const tn_recoding *r, tn_scale_index index, extremes *x, tn_error *err)
{
    const tn_part *p = &r->tensor->parts[0];
    unsigned bits = tn_dtype_get(p->array.dtype)->bits;
    tn_stream stream = { 0 };
    uint64_t count = 0;
    tn_shape_count(r->tensor->rank, r->tensor->shape, &count);      /* cannot fail: its bytes were counted */
    tn_status status = tn_stream_open(&stream, r->file, r->tensor, p, 0, p->nbytes, TN_CHECKSUM_NONE, err);
    for (uint64_t done = 0; !status && done < count;) {
        const uint8_t *bytes;
        size_t got;
        status = tn_stream_next(&stream, &bytes, &got, err);
        if (status || !got)
            break;
        uint64_t n = (uint64_t)got * 8 / bits;
        n = n < count - done ? n : count - done;        /* the bits that fill the last byte are none */
        take_codes(x, index, p->array.dtype, bytes, done, n);
        done += n;
        status = r->tick(r->context, err);
    }
    tn_stream_free(&stream);
    return status;
}

/* Both ends of a scale without codes mean 0; *any: some value is another one. */
static void settle(const tn_recoding *r, extremes *x, bool *any)
{
    *any = false;
    for (int64_t i = 0; i < x->shape[0]; i++) {
        int32_t *ends = &x->codes[2 * i], zero = r->zero ? r->zero[i] : 0;
        if (ends[0] > ends[1])
            ends[0] = ends[1] = zero;
        *any |= ends[0] != zero || ends[1] != zero;
    }
}

static tn_status try_scale(const tn_recoding *r, extremes *x, float scale, tn_round round, bool *fits, tn_error *err)
{
    const tn_array array = { TN_INT32, 2, x->shape, NULL };
    const tn_scales to = { .axis = TN_PER_TENSOR, .scale = &scale };
    const tn_quantize_options o = { .size = sizeof o, .round = round, .arithmetic = TN_QUANT_EXACT, .jobs = 1,
                                    .range = { INT32_MIN, INT32_MAX } };
    tn_error why;
    if (tn_requantize(&array, x->trial, &to, &array, x->codes, &x->scales, &o, &why))
        return fail(r, &why, err);
    for (int64_t i = 0; i < 2 * x->shape[0]; i++)
        *fits &= x->trial[i] >= r->options.range[0] && x->trial[i] <= r->options.range[1];
    return TN_OK;
}

/* The largest number of fractional bits at which everything fits: where one does, so do all below it. */
static tn_status search(const tn_recoding *r, extremes *x, int *frac, tn_error *err)
{
    bool either = r->options.round == TN_ROUND_STOCHASTIC;
    int low = TN_POWER_LEAST, high = TN_POWER_MOST;
    while (low < high) {
        int middle = high - (high - low) / 2;      /* above low */
        float scale = ldexpf(1, -middle);
        bool fits = true;
        tn_status status = try_scale(r, x, scale, either ? TN_ROUND_UP : r->options.round, &fits, err);
        if (!status && either)
            status = try_scale(r, x, scale, TN_ROUND_DOWN, &fits, err);
        if (status)
            return status;
        low = fits ? middle : low;
        high = fits ? high : middle - 1;
    }
    *frac = low;
    return TN_OK;
}

tn_status tn_recode_power(const tn_recoding *r, tn_arena *arena, float *scale, tn_error *err)
{
    const tn_tensor *t = r->tensor;
    extremes x = { .shape = { 0, 2 }, .scales = { .axis = t->scaling->axis < 0 ? TN_PER_TENSOR : 0, .zero = r->zero } };
    int frac = (int)tn_dtype_get(r->to)->bits - 1;
    bool any = false;
    tn_scale_index index;
    tn_error why;
    if (tn_scale_index_for(t->rank, t->shape, t->scaling->axis, &index, &why))
        return fail(r, &why, err);
    x.shape[0] = (int64_t)index.count;
    x.codes = tn_arena_zalloc(arena, (size_t)index.count, 2 * sizeof *x.codes);
    x.trial = tn_arena_zalloc(arena, (size_t)index.count, 2 * sizeof *x.trial);
    if (!x.codes || !x.trial)
        return tn_fail_nomem(err);
    for (uint64_t i = 0; i < index.count; i++) {
        x.codes[2 * i] = INT32_MAX;
        x.codes[2 * i + 1] = INT32_MIN;
    }
    tn_status status = tn_read_scales(r->file, t, arena, &x.scales.scale, err);
    if (!status)
        status = read_codes(r, index, &x, err);
    if (!status)
        settle(r, &x, &any);
    if (!status && any)
        status = search(r, &x, &frac, err);
    *scale = ldexpf(1, -frac);
    return status;
}
