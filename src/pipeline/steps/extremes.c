/* pipeline/steps/extremes.c - the power of two at which no code with scales is cut. */
#include "pipeline/steps/extremes.h"
#include "pipeline/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"
#include "quant/affine.h"
#include "quant/scale_trials.h"
#include "tensor/array.h"
#include "tensor/code.h"

#include <math.h>
#include <string.h>

enum { PIECE = 1024 };          /* packed codes that are looked at at a time: a multiple of 8 */

/* What codes the tensor has: of each scale the lowest and the highest. */
typedef struct extremes {
    int64_t   shape[2];         /* scales, 2 */
    tn_scales scales;
    int32_t  *codes;            /* of that shape */
    int32_t  *trial;            /* the same at another scale */
} extremes;

/* Codes that have a scale in common and a type of whole bytes, in memory of any alignment. */
#define TAKE_RUN(type)                                                  \
    static void take_##type(int32_t ends[2], const uint8_t *bytes, uint64_t n)  \
    {                                                                   \
        int32_t low = ends[0], high = ends[1];                          \
        for (uint64_t i = 0; i < n; i++) {                              \
            type code;                                                  \
            memcpy(&code, bytes + i * sizeof code, sizeof code);        \
            low = code < low ? code : low;                              \
            high = code > high ? code : high;                           \
        }                                                               \
        ends[0] = low;                                                  \
        ends[1] = high;                                                 \
    }

TAKE_RUN(int8_t)
TAKE_RUN(uint8_t)
TAKE_RUN(int16_t)
TAKE_RUN(uint16_t)
TAKE_RUN(int32_t)

static void take_run(int32_t ends[2], const tn_dtype_info *type, const uint8_t *bytes, uint64_t n)
{
    bool is_signed = type->kind == TN_KIND_INT;
    if (type->bits == 32)
        take_int32_t(ends, bytes, n);
    else if (type->bits == 16)
        (is_signed ? take_int16_t : take_uint16_t)(ends, bytes, n);
    else
        (is_signed ? take_int8_t : take_uint8_t)(ends, bytes, n);
}

/* Run by run; `type` has whole bytes. */
static void take_codes(extremes *x, tn_scale_index index, const tn_dtype_info *type, const uint8_t *bytes,
                       uint64_t first, uint64_t n)
{
    tn_scale_walk walk = tn_scale_walk_at(index, first);
    for (uint64_t i = 0, run; i < n; i += run) {
        run = walk.left < n - i ? walk.left : n - i;
        take_run(&x->codes[2 * walk.scale], type, bytes + i * (type->bits / 8), run);
        tn_scale_walk_on(&walk, index, run);
    }
}

/* Packed codes of less than a byte each: a piece of them at a time, unpacked. */
static void take_packed(extremes *x, tn_scale_index index, const tn_dtype_info *type, const uint8_t *bytes,
                        uint64_t first, uint64_t n)
{
    bool is_signed = type->kind == TN_KIND_INT;
    uint8_t piece[PIECE];
    for (uint64_t i = 0, count; i < n; i += count) {
        count = n - i < PIECE ? n - i : PIECE;
        tn_unpack_codes(piece, bytes + i * type->bits / 8, (size_t)count, type->bits, is_signed);
        take_codes(x, index, tn_dtype_get(is_signed ? TN_INT8 : TN_UINT8), piece, first + i, count);
    }
}

/* All codes, in order. */
static tn_status read_codes(const tn_view *v, tn_scale_index index, tn_worker *w, extremes *x, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(v->parts[0].array.dtype);
    tn_status status = TN_OK;
    w->until = v->count;
    for (uint64_t done = 0, n; done < v->count && !status; done += n) {
        const uint8_t *bytes;
        n = tn_min_u64(tn_view_window(v), v->count - done);
        status = tn_view_range(v, done, (size_t)n, w, &bytes, err);
        if (!status)
            (type->bits < 8 ? take_packed : take_codes)(x, index, type, bytes, done, n);
        if (!status)
            status = tn_walk_check(v->place->walk, err);
    }
    tn_worker_rest(w);
    return status;
}

/* Both ends of a scale without codes mean 0; *any: some value is another one. */
static void settle(extremes *x, bool *any)
{
    *any = false;
    for (int64_t i = 0; i < x->shape[0]; i++) {
        int32_t *ends = &x->codes[2 * i], zero = x->scales.zero ? x->scales.zero[i] : 0;
        if (ends[0] > ends[1])
            ends[0] = ends[1] = zero;
        *any |= ends[0] != zero || ends[1] != zero;
    }
}

static tn_status try_scale(const tn_requantize_options *options, extremes *x, float scale, tn_round round,
                           bool *fits, tn_error *err)
{
    const tn_array array = { TN_INT32, 2, x->shape, NULL };
    const tn_scales to = { .axis = TN_PER_TENSOR, .scale = &scale };
    const tn_requantize_options o = { .size = sizeof o, .round = round, .jobs = 1,
                                      .arithmetic = TN_ARITH_EXACT, .range = { INT32_MIN, INT32_MAX } };
    tn_status status = tn_requantize(&array, x->trial, &to, &array, x->codes, &x->scales, &o, err);
    for (int64_t i = 0; i < 2 * x->shape[0] && !status; i++)
        *fits &= x->trial[i] >= options->range[0] && x->trial[i] <= options->range[1];
    return status;
}

/* The largest number of fractional bits at which everything fits: where one does, so do all below it. */
static tn_status search(const tn_requantize_options *options, extremes *x, int *frac, tn_error *err)
{
    bool either = options->round == TN_ROUND_STOCHASTIC;
    int low = TN_POWER_LEAST, high = TN_POWER_MOST;
    while (low < high) {
        int middle = high - (high - low) / 2;      /* above low */
        float scale = ldexpf(1, -middle);
        bool fits = true;
        tn_status status = try_scale(options, x, scale, either ? TN_ROUND_UP : options->round, &fits, err);
        if (!status && either)
            status = try_scale(options, x, scale, TN_ROUND_DOWN, &fits, err);
        if (status)
            return status;
        low = fits ? middle : low;
        high = fits ? high : middle - 1;
    }
    *frac = low;
    return TN_OK;
}

tn_status tn_find_power(const tn_view *v, tn_dtype to, const tn_requantize_options *options, tn_worker *w,
                        float *scale, tn_error *err)
{
    const tn_tensor *t = &v->tensor;
    extremes x = { .shape = { 0, 2 }, .scales = { .axis = t->scaling->axis < 0 ? TN_PER_TENSOR : 0 } };
    int frac = (int)tn_dtype_get(to)->bits - 1;
    bool any = false;
    tn_scale_index index;
    TN_TRY(tn_scale_index_for(t->rank, tn_view_shape(v), t->scaling->axis, &index, err));
    x.shape[0] = (int64_t)index.count;
    x.codes = tn_arena_zalloc(v->arena, (size_t)index.count, 2 * sizeof *x.codes);
    x.trial = tn_arena_zalloc(v->arena, (size_t)index.count, 2 * sizeof *x.trial);
    if (!x.codes || !x.trial)
        return tn_fail_nomem(err);
    for (uint64_t i = 0; i < index.count; i++) {
        x.codes[2 * i] = INT32_MAX;
        x.codes[2 * i + 1] = INT32_MIN;
    }
    TN_TRY(tn_view_scales(v, &x.scales.scale, &x.scales.zero, err));
    TN_TRY(read_codes(v, index, w, &x, err));
    settle(&x, &any);
    if (any)
        TN_TRY(search(options, &x, &frac, err));
    *scale = ldexpf(1, -frac);
    return TN_OK;
}
