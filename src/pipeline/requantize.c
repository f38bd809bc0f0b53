/* pipeline/requantize.c - codes with scales that become codes of other scales. */
#include "pipeline/requantize.h"
#include "base/error.h"
#include "quant/scale_trials.h"
#include "quant/requantize.h"
#include "pipeline/values.h"

#include <math.h>
#include <string.h>

enum { PIECE = 1024 };          /* packed codes that are looked at at a time: a multiple of 8 */

/* The context of a change. */
typedef struct requantizer {
    tn_change       change;
    tn_requant_plan plan;
} requantizer;

static tn_status apply(const void *context, uint64_t first, const uint8_t *in, size_t n, uint8_t *out,
                       tn_error *err)
{
    const requantizer *k = context;
    (void)err;
    tn_requantize_block(&k->plan, out, in, n, first);
    return TN_OK;
}

tn_status tn_requantize_change(const tn_requantizing *r, tn_arena *arena, const tn_change **change,
                               tn_error *err)
{
    tn_dtype codes = r->tensor->parts[0].array.dtype;
    tn_scales from = { .axis = r->axis, .zero = r->zero };
    requantizer *k = tn_arena_zalloc(arena, 1, sizeof *k);
    if (!k)
        return tn_fail_nomem(err);
    tn_status status = tn_read_scales(r->file, r->tensor, arena, &from.scale, err);
    if (!status)
        status = tn_requant_plan_make(&k->plan, r->to, &r->scales, codes, &from, r->rank, r->shape,
                                      &r->options, err);
    if (status)
        return tn_in_tensor(status, r->tensor->name, err);
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

static tn_status read_codes(const tn_requantizing *r, tn_scale_index index, extremes *x, tn_error *err)
{
    const tn_part *p = &r->tensor->parts[0];
    const tn_dtype_info *type = tn_dtype_get(p->array.dtype);
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
        uint64_t n = (uint64_t)got * 8 / type->bits;
        n = n < count - done ? n : count - done;        /* the bits that fill the last byte are none */
        (type->bits < 8 ? take_packed : take_codes)(x, index, type, bytes, done, n);
        done += n;
        status = r->tick(r->context, err);
    }
    tn_stream_free(&stream);
    return status;
}

/* Both ends of a scale without codes mean 0; *any: some value is another one. */
static void settle(const tn_requantizing *r, extremes *x, bool *any)
{
    *any = false;
    for (int64_t i = 0; i < x->shape[0]; i++) {
        int32_t *ends = &x->codes[2 * i], zero = r->zero ? r->zero[i] : 0;
        if (ends[0] > ends[1])
            ends[0] = ends[1] = zero;
        *any |= ends[0] != zero || ends[1] != zero;
    }
}

static tn_status try_scale(const tn_requantizing *r, extremes *x, float scale, tn_round round, bool *fits,
                           tn_error *err)
{
    const tn_array array = { TN_INT32, 2, x->shape, NULL };
    const tn_scales to = { .axis = TN_PER_TENSOR, .scale = &scale };
    const tn_requantize_options o = { .size = sizeof o, .round = round, .jobs = 1,
                                      .arithmetic = TN_ARITH_EXACT,
                                    .range = { INT32_MIN, INT32_MAX } };
    tn_status status = tn_requantize(&array, x->trial, &to, &array, x->codes, &x->scales, &o, err);
    if (status)
        return tn_in_tensor(status, r->tensor->name, err);
    for (int64_t i = 0; i < 2 * x->shape[0]; i++)
        *fits &= x->trial[i] >= r->options.range[0] && x->trial[i] <= r->options.range[1];
    return TN_OK;
}

/* The largest number of fractional bits at which everything fits: where one does, so do all below it. */
static tn_status search(const tn_requantizing *r, extremes *x, int *frac, tn_error *err)
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

tn_status tn_requantize_power(const tn_requantizing *r, tn_arena *arena, float *scale, tn_error *err)
{
    const tn_tensor *t = r->tensor;
    extremes x = { .shape = { 0, 2 }, .scales = { .axis = t->scaling->axis < 0 ? TN_PER_TENSOR : 0,
                                                  .zero = r->zero } };
    int frac = (int)tn_dtype_get(r->to)->bits - 1;
    bool any = false;
    tn_scale_index index;
    tn_status status = tn_scale_index_for(t->rank, t->shape, t->scaling->axis, &index, err);
    if (status)
        return tn_in_tensor(status, r->tensor->name, err);
    x.shape[0] = (int64_t)index.count;
    x.codes = tn_arena_zalloc(arena, (size_t)index.count, 2 * sizeof *x.codes);
    x.trial = tn_arena_zalloc(arena, (size_t)index.count, 2 * sizeof *x.trial);
    if (!x.codes || !x.trial)
        return tn_fail_nomem(err);
    for (uint64_t i = 0; i < index.count; i++) {
        x.codes[2 * i] = INT32_MAX;
        x.codes[2 * i + 1] = INT32_MIN;
    }
    status = tn_read_scales(r->file, t, arena, &x.scales.scale, err);
    if (!status)
        status = read_codes(r, index, &x, err);
    if (!status)
        settle(r, &x, &any);
    if (!status && any)
        status = search(r, &x, &frac, err);
    *scale = ldexpf(1, -frac);
    return status;
}
