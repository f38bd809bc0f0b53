/* Quantization against a slow computation of its own: in double, by the words of tenon/quantize.h. */
#include "support.h"

#include "affine.h"

#include "random.h"
#include "rounding.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "tensor/array.h"
#include "quant/affine.h"

static const tn_dtype code_types[] = { TN_INT8, TN_UINT8, TN_INT16, TN_UINT16, TN_INT32, TN_INT4, TN_UINT4,
                                       TN_INT2, TN_UINT2 };
enum { CODE_TYPES = sizeof code_types / sizeof code_types[0] };

static const tn_dtype_info *row(tn_dtype dtype) { return tn_dtype_get(dtype); }
static size_t size_of(tn_dtype dtype, size_t n) { return (n * row(dtype)->bits + 7) / 8; }

static void make_floats(float *x, size_t n, double width)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((uniform() * 2 - 1) * width);
}

static int64_t code_at(tn_dtype dtype, const void *data, size_t i)
{
    tn_value v = tn_value_get(dtype, data, i);
    return v.kind == TN_KIND_INT ? v.i : (int64_t)v.u;
}

/* ---- the slow computation ---- */

static double rounded(double y, tn_round mode, uint64_t seed, uint64_t index)
{
    if (!isfinite(y) || mode != TN_ROUND_STOCHASTIC)
        return isfinite(y) ? rounded_surely(y, mode) : y;
    double magnitude = fabs(y), whole = floor(magnitude), fraction = ldexp(magnitude - whole, 64);
    uint64_t steps = (uint64_t)fraction | (fraction != floor(fraction));
    return copysign(whole + (steps && chance_of(seed, index) < steps), y);
}

static int64_t expected_code(float x, float scale, int32_t zero, const int64_t range[2],
                             const affine_options *o, uint64_t index)
{
    double quotient = (double)(float)((double)x / (double)scale);
    double code = isnan(x) ? zero : rounded(quotient, o->round, o->seed, index) + zero;
    return code < (double)range[0] ? range[0] : code > (double)range[1] ? range[1] : (int64_t)code;
}

static float expected_value(int64_t code, float scale, int32_t zero)
{
    return (float)((long double)(code - zero) * (long double)scale);        /* 57 bits */
}

/* ---- arrays ---- */

typedef struct sample {
    uint32_t rank;
    int64_t  shape[4];
    size_t   n, inner, count;
    float   *scale;
    int32_t *zero;
} sample;

static sample sample_of(uint32_t rank, const int64_t *shape, int32_t axis)
{
    sample s = { .rank = rank, .n = 1, .inner = 1, .count = axis < 0 ? 1 : (size_t)shape[axis] };
    for (uint32_t i = 0; i < rank; i++) {
        s.shape[i] = shape[i];
        s.n *= (size_t)shape[i];
        s.inner *= axis >= 0 && i > (uint32_t)axis ? (size_t)shape[i] : 1;
    }
    s.inner = axis < 0 ? s.n + 1 : s.inner;
    s.scale = malloc((s.count + 1) * sizeof *s.scale);
    s.zero = malloc((s.count + 1) * sizeof *s.zero);
    assert_true(s.scale && s.zero);
    return s;
}

static size_t channel(const sample *s, size_t i) { return i / s->inner % s->count; }

static void forget(sample *s)
{
    free(s->scale);
    free(s->zero);
}

static tn_array array(const sample *s, tn_dtype dtype)
{
    return (tn_array){ .dtype = dtype, .rank = s->rank, .shape = s->shape };
}

static void quantize_ok(const sample *s, tn_dtype codes, void *dst, tn_dtype values, const void *src,
                        const affine_options *o)
{
    tn_array d = array(s, codes), v = array(s, values);
    tn_error err = { .text = "" };
    if (affine_quantize(&d, dst, &v, src, s->scale, s->zero, o, &err))
        fail_msg("%s", line_of(&err));
}

static void dequantize_ok(const sample *s, tn_dtype values, void *dst, tn_dtype codes, const void *src,
                          const affine_options *o)
{
    tn_array d = array(s, values), v = array(s, codes);
    tn_error err = { .text = "" };
    if (affine_dequantize(&d, dst, &v, src, s->scale, s->zero, o, &err))
        fail_msg("%s", line_of(&err));
}

static void check_codes(const sample *s, tn_dtype codes, const float *x, const affine_options *o)
{
    uint8_t *out = malloc(size_of(codes, s->n) + 1);
    int64_t range[2];
    assert_non_null(out);
    CHECK(affine_range(codes, o, range) == TN_OK);
    quantize_ok(s, codes, out, TN_FLOAT32, x, o);
    for (size_t i = 0; i < s->n; i++) {
        size_t c = channel(s, i);
        int64_t want = expected_code(x[i], s->scale[c], s->zero[c], range, o, i),
                found = code_at(codes, out, i);
        if (found != want)
            fail_msg("%s: element %zu, %a / %a + %d in mode %d, is %lld but not %lld", row(codes)->name, i,
                     (double)x[i], (double)s->scale[c], (int)s->zero[c], (int)o->round, (long long)found,
                     (long long)want);
    }
    free(out);
}

static void check_values(const sample *s, tn_dtype codes, const void *data, const affine_options *o)
{
    float *out = malloc(s->n * sizeof *out + 1);
    assert_non_null(out);
    dequantize_ok(s, TN_FLOAT32, out, codes, data, o);
    for (size_t i = 0; i < s->n; i++) {
        size_t c = channel(s, i);
        float want = expected_value(code_at(codes, data, i), s->scale[c], s->zero[c]);
        CHECK(memcmp(&out[i], &want, sizeof want) == 0);
    }
    free(out);
}

/* ---- codes ---- */

static void every_rounding_mode_is_as_described(void)
{
    static const float telling[] = {
        0,           -0.0f,        0.5f,        -0.5f,      1.5f,        -1.5f,      2.5f,           -2.5f,
        0.49999997f, -0.49999997f, 0.50000006f, 1,          -1,          3.4999998f, 1e-45f,         -1e-45f,
        126.5f,      127.5f,       -127.5f,     -128.5f,    255.5f,      32767.5f,   -32768.5f,      65535.5f,
        8388607.5f,  0x1p22f,      -0x1p22f,    0x1p23f,    0x1p31f,     -0x1p31f,   0x1.fffffep30f, FLT_MAX,
        -FLT_MAX,    INFINITY,     -INFINITY,   4194303.5f, -4194303.5f, 4194304.5f
    };
    enum { TELLING = sizeof telling / sizeof telling[0], N = 1200 };
    static const float scales[] = { 1, 0.1f, 3, FLT_MIN, 1e-45f, FLT_MAX };
    static float x[N];
    const int64_t shape[] = { N };
    sample s = sample_of(1, shape, TN_PER_TENSOR);
    memcpy(x, telling, sizeof telling);
    make_floats(x + TELLING, 400, 300);
    make_floats(x + TELLING + 400, 400, 4);
    make_floats(x + TELLING + 800, N - TELLING - 800, 1e5);
    for (size_t t = 0; t < CODE_TYPES; t++)
        for (int mode = TN_ROUND_EVEN; mode <= TN_ROUND_STOCHASTIC; mode++)
            for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++)
                for (int asymmetric = 0; asymmetric < 2; asymmetric++) {
                    affine_options o = { .axis = TN_PER_TENSOR,
                                              .round = (tn_round)mode, .seed = 99, .jobs = 1 };
                    o.symmetric = !asymmetric && row(code_types[t])->kind == TN_KIND_INT;
                    s.scale[0] = scales[k];
                    s.zero[0] = o.symmetric ? 0 : (int32_t)(bits64() % 8);
                    check_codes(&s, code_types[t], x, &o);
                }
    forget(&s);
}

static void every_axis_of_any_shape_finds_its_scales(void)
{
    static float x[70000];
    static uint8_t codes[sizeof x];
    for (int round = 0; round < 400; round++) {
        uint32_t rank = 1 + (uint32_t)(bits64() % 4);
        int64_t shape[4];
        for (uint32_t i = 0; i < rank; i++)     /* long and short runs, long and short rows */
            shape[i] = 1 + (int64_t)(bits64() % (bits64() % 4 == 0 && rank < 4 ? 200 : 9));
        if (rank == 3 && shape[0] * shape[1] * shape[2] > 60000)
            continue;
        for (int32_t axis = TN_PER_TENSOR; axis < (int32_t)rank; axis++) {
            tn_dtype type = code_types[bits64() % CODE_TYPES];
            sample s = sample_of(rank, shape, axis);
            affine_options o = { .axis = axis, .jobs = 1, .seed = bits64() };
            o.round = bits64() % 3 ? TN_ROUND_EVEN : (tn_round)(bits64() % 8);
            for (size_t c = 0; c < s.count; c++) {
                s.scale[c] = (float)(uniform() + 0.01);
                s.zero[c] = (int32_t)(bits64() % 400) - 200;
            }
            make_floats(x, s.n, 500);
            check_codes(&s, type, x, &o);
            for (size_t i = 0; i < size_of(type, s.n); i++)
                codes[i] = (uint8_t)bits64();
            check_values(&s, type, codes, &o);
            int32_t *zero = s.zero;
            s.zero = memset(zero, 0, s.count * sizeof *zero);
            check_codes(&s, type, x, &o);
            s.zero = NULL;                      /* the same as zeros of 0 */
            uint8_t *with = calloc(1, s.n * 4), *without = calloc(1, s.n * 4);
            assert_true(with && without);
            quantize_ok(&s, type, without, TN_FLOAT32, x, &o);
            s.zero = zero;
            quantize_ok(&s, type, with, TN_FLOAT32, x, &o);
            CHECK(memcmp(with, without, s.n * 4) == 0);
            free(with);
            free(without);
            forget(&s);
        }
    }
}

static void zeros_far_from_the_codes_saturate_exactly(void)
{
    static const int32_t zeros[] = { 1 << 20, -(1 << 20), (1 << 20) + 1, -(1 << 20) - 1, INT32_MAX,
                                     INT32_MIN };
    float x[600];
    uint8_t codes[600 * 4];
    const int64_t shape[] = { 600 };
    const affine_options o = { .axis = TN_PER_TENSOR, .jobs = 1 };
    sample s = sample_of(1, shape, TN_PER_TENSOR);
    s.scale[0] = 0.75f;
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)bits64();
    for (size_t k = 0; k < sizeof zeros / sizeof zeros[0]; k++)
        for (size_t t = 0; t < CODE_TYPES; t++) {
            s.zero[0] = zeros[k];
            for (size_t i = 0; i < 600; i++)
                x[i] = (float)(-(double)zeros[k] + (uniform() * 2 - 1) * 300) * 0.75f;
            check_codes(&s, code_types[t], x, &o);
            check_values(&s, code_types[t], codes, &o);
        }
    forget(&s);
}

static void rows_longer_than_a_block_find_their_scales(void)
{
    enum { N = 3 * 2500 };
    static float x[N];
    static uint8_t a[N], b[N];
    const int64_t shape[] = { 3, 2500 };
    const affine_options o = { .axis = 1, .jobs = 1 };
    sample s = sample_of(2, shape, 1);
    for (size_t c = 0; c < s.count; c++) {
        s.scale[c] = (float)uniform() + 0.01f;
        s.zero[c] = 0;
    }
    make_floats(x, N, 100);
    check_codes(&s, TN_INT8, x, &o);
    quantize_ok(&s, TN_INT8, a, TN_FLOAT32, x, &o);
    int32_t *zero = s.zero;
    s.zero = NULL;
    quantize_ok(&s, TN_INT8, b, TN_FLOAT32, x, &o);
    CHECK(memcmp(a, b, N) == 0);
    s.zero = zero;
    check_values(&s, TN_INT8, a, &o);
    forget(&s);
}

static void ranges_narrower_than_the_type_are_kept(void)
{
    float x[500];
    int8_t out[500];
    const int64_t shape[] = { 500 };
    sample s = sample_of(1, shape, TN_PER_TENSOR);
    s.scale[0] = 1;
    s.zero[0] = -2;
    make_floats(x, 500, 200);
    x[0] = INFINITY;
    x[1] = -INFINITY;
    for (int mode = TN_ROUND_EVEN; mode <= TN_ROUND_STOCHASTIC; mode++) {
        affine_options o = { .axis = TN_PER_TENSOR, .range = { -5, 17 },
                                  .round = (tn_round)mode, .jobs = 1 };
        check_codes(&s, TN_INT8, x, &o);
        quantize_ok(&s, TN_INT8, out, TN_FLOAT32, x, &o);
        CHECK(out[0] == 17 && out[1] == -5);
    }
    forget(&s);
}

static void packed_codes_of_any_length_stay_in_their_bytes(void)
{
    static const tn_dtype types[] = { TN_INT4, TN_UINT4, TN_INT2, TN_UINT2 };
    for (int64_t n = 0; n <= 70; n++)
        for (size_t t = 0; t < 4; t++) {
            unsigned bits = row(types[t])->bits;
            size_t size = size_of(types[t], (size_t)n);
            const affine_options o = { .axis = TN_PER_TENSOR, .jobs = 1 };
            sample s = sample_of(1, &n, TN_PER_TENSOR);
            s.scale[0] = 1;
            s.zero[0] = 1;
            float *x = malloc((size_t)n * sizeof *x + 1), *back = malloc((size_t)n * sizeof *back + 1);
            uint8_t *codes = malloc(size + 1);
            assert_true(x && back && codes);
            make_floats(x, (size_t)n, 12);
            memset(codes, 0xff, size + 1);
            quantize_ok(&s, types[t], codes, TN_FLOAT32, x, &o);
            CHECK(codes[size] == 0xff);
            if ((size_t)n * bits % 8)
                CHECK(codes[size - 1] >> (size_t)n * bits % 8 == 0);
            uint8_t *exact = exact_copy(codes, size);       /* nothing beyond is read */
            dequantize_ok(&s, TN_FLOAT32, back, types[t], exact, &o);
            for (size_t i = 0; i < (size_t)n; i++)
                CHECK(back[i] == expected_value(code_at(types[t], codes, i), 1, 1));
            free(exact);
            free(codes);
            free(back);
            free(x);
            forget(&s);
        }
}

/* ---- NaN ---- */

static void a_nan_is_refused_with_its_index_or_becomes_the_zero(void)
{
    const int64_t shape[] = { 3, 50 };
    float x[150];
    int8_t out[150];
    uint8_t nibbles[75];
    const float scale = 0.5f;
    const int32_t zero = 7;
    tn_error err;
    make_floats(x, 150, 20);
    x[107] = NAN;
    x[149] = -NAN;
    tn_array d = { .dtype = TN_INT8, .rank = 2, .shape = shape },
    s = { .dtype = TN_FLOAT32, .rank = 2, .shape = shape };
    affine_options o = { .axis = TN_PER_TENSOR, .jobs = 1 };
    CHECK(affine_quantize(&d, out, &s, x, &scale, &zero, &o, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "element [2, 7] is nan, and int8 has no NaN (nan zero)");
    CHECK(affine_quantize(&d, out, &s, x, &scale, &zero, &o, NULL) == TN_ERR_LOSS);
    o.nan = TN_NAN_ERROR;
    CHECK(affine_quantize(&d, out, &s, x, &scale, &zero, &o, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "element [2, 7] is nan, which the NaN mode refuses");
    o.nan = TN_NAN_ZERO;
    for (int mode = TN_ROUND_EVEN; mode <= TN_ROUND_STOCHASTIC; mode++) {
        o.round = (tn_round)mode;
        CHECK(affine_quantize(&d, out, &s, x, &scale, &zero, &o, &err) == TN_OK && out[107] == 7 &&
              out[149] == 7);
        sample all = sample_of(2, shape, TN_PER_TENSOR);
        all.scale[0] = scale;
        all.zero[0] = zero;
        check_codes(&all, TN_INT8, x, &o);
        check_codes(&all, TN_INT4, x, &o);
        forget(&all);
    }
    d.dtype = TN_INT4;
    o = (affine_options){ .axis = 1, .round = TN_ROUND_DOWN, .jobs = 1 };
    float scales[50];
    for (size_t i = 0; i < 50; i++)
        scales[i] = 1;
    CHECK(affine_quantize(&d, nibbles, &s, x, scales, NULL, &o, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "element [2, 7] is nan, and int4 has no NaN (nan zero)");
}

static void the_first_nan_is_named_by_any_number_of_threads(void)
{
    enum { N = 400000 };
    const int64_t shape[] = { N };
    float *x = malloc(N * sizeof *x);
    int8_t *out = malloc(N);
    const float scale = 1;
    tn_error err;
    assert_true(x && out);
    make_floats(x, N, 100);
    x[390001] = x[200003] = NAN;
    tn_array d = { .dtype = TN_INT8, .rank = 1, .shape = shape },
    s = { .dtype = TN_FLOAT32, .rank = 1, .shape = shape };
    for (unsigned jobs = 1; jobs <= 4; jobs++) {
        const affine_options o = { .axis = TN_PER_TENSOR, .jobs = jobs };
        CHECK(affine_quantize(&d, out, &s, x, &scale, NULL, &o, &err) == TN_ERR_LOSS &&
              strstr(line_of(&err), "[200003]"));
    }
    free(x);
    free(out);
}

/* ---- other float types ---- */

static tn_array flat(tn_dtype dtype, const int64_t *n) { return (tn_array){ .dtype = dtype, .rank = 1,
                                                                            .shape = n }; }

static void values_of_any_float_type_enter_as_float32(void)
{
    enum { N = 3001 };
    static float x[N], narrow[N];
    static uint8_t values[N * 8], a[N], b[N];
    const int64_t n = N;
    const float scale = 0.11f;
    const int32_t zero = 3;
    for (int type = TN_FLOAT64; type <= TN_FLOAT4_E2M1; type++) {
        tn_dtype from = (tn_dtype)type;
        const tn_cast_options saturate = { .size = sizeof saturate, .overflow = TN_OVERFLOW_SATURATE };
        const affine_options o = { .axis = TN_PER_TENSOR, .jobs = 1 };
        tn_array wide = flat(TN_FLOAT32, &n), own = flat(from, &n), codes = flat(TN_INT8, &n);
        make_floats(x, N, 6);
        CHECK(tn_cast(&own, values, &wide, x, TN_HOST_ORDER, &saturate, NULL) == TN_OK);
        CHECK(tn_cast(&wide, narrow, &own, values, TN_HOST_ORDER, NULL, NULL) == TN_OK);
        CHECK(affine_quantize(&codes, a, &own, values, &scale, &zero, &o, NULL) == TN_OK);
        CHECK(affine_quantize(&codes, b, &wide, narrow, &scale, &zero, &o, NULL) == TN_OK);
        CHECK(memcmp(a, b, N) == 0);
        /* And back: rounded to float32, then cast. */
        CHECK(affine_dequantize(&own, values, &codes, a, &scale, &zero, &o, NULL) == TN_OK);
        CHECK(affine_dequantize(&wide, x, &codes, a, &scale, &zero, &o, NULL) == TN_OK);
        static uint8_t cast[N * 8];
        CHECK(tn_cast(&own, cast, &wide, x, TN_HOST_ORDER, NULL, NULL) == TN_OK);
        CHECK(memcmp(cast, values, size_of(from, N)) == 0);
    }
}

static void float64_is_rounded_to_float32_first(void)
{
    const int64_t n = 3;
    const double x[] = { 0.5 + 0x1p-40, 1e300, -1e300 };     /* 0.5 in float32: a tie, to even */
    const float scale = 1;
    int8_t out[3];
    tn_array d = flat(TN_INT8, &n), s = flat(TN_FLOAT64, &n);
    CHECK(affine_quantize(&d, out, &s, x, &scale, NULL, NULL, NULL) == TN_OK);
    CHECK(out[0] == 0 && out[1] == 127 && out[2] == -128);
}

static void differences_beyond_float32_are_rounded_once(void)
{
    const int64_t n = 4;
    const int32_t codes[] = { INT32_MAX, INT32_MIN, 16777219, 0 };
    const int32_t zero = -2147483646;
    const float scale = 1;
    float out[4];
    tn_array d = flat(TN_FLOAT32, &n), s = flat(TN_INT32, &n);
    CHECK(affine_dequantize(&d, out, &s, codes, &scale, &zero, NULL, NULL) == TN_OK);
    CHECK(out[0] == (float)4294967293.0 && out[1] == -2 && out[2] == (float)2164260865.0 &&
          out[3] == (float)2147483646.0);
}

/* ---- cutting and threads ---- */

static void threads_do_not_change_a_bit(void)
{
    const int64_t shape[] = { 37, 129, 67 };
    for (int32_t axis = TN_PER_TENSOR; axis < 3; axis++)
        for (int mode = 0; mode < 2; mode++)
            for (size_t t = 0; t < CODE_TYPES; t++) {
                sample s = sample_of(3, shape, axis);
                affine_options o = { .axis = axis, .seed = 5 };
                o.round = mode ? TN_ROUND_STOCHASTIC : TN_ROUND_EVEN;
                float *x = malloc(s.n * sizeof *x), *back[2] = { malloc(s.n * 4), malloc(s.n * 4) };
                uint8_t *out[2] = { calloc(s.n, 4), calloc(s.n, 4) };
                assert_true(x && back[0] && back[1] && out[0] && out[1]);
                make_floats(x, s.n, 3);
                for (size_t c = 0; c < s.count; c++) {
                    s.scale[c] = (float)uniform() + 0.001f;
                    s.zero[c] = (int32_t)(bits64() % 9);
                }
                for (unsigned k = 0; k < 2; k++) {
                    o.jobs = k ? 4 : 1;
                    quantize_ok(&s, code_types[t], out[k], TN_FLOAT32, x, &o);
                    dequantize_ok(&s, TN_FLOAT32, back[k], code_types[t], out[k], &o);
                }
                CHECK(memcmp(out[0], out[1], s.n * 4) == 0 && memcmp(back[0], back[1], s.n * 4) == 0);
                for (unsigned k = 0; k < 2; k++) {
                    free(out[k]);
                    free(back[k]);
                }
                free(x);
                forget(&s);
            }
}

static void blocks_cut_anywhere_give_what_the_whole_does(void)
{
    enum { N = 4000 };
    static float x[N], values[N];
    static uint8_t whole[N * 4], cut[N * 4];
    const int64_t shape[] = { 20, 10, 20 };
    for (int32_t axis = TN_PER_TENSOR; axis < 3; axis++)
        for (size_t t = 0; t < CODE_TYPES; t++) {
            tn_dtype codes = code_types[t];
            sample s = sample_of(3, shape, axis);
            affine_options o = { .axis = axis,
                                      .round = t % 2 ? TN_ROUND_STOCHASTIC : TN_ROUND_EVEN, .jobs = 1 };
            tn_scale_index index;
            tn_affine_plan to, from;
            make_floats(x, N, 9);
            for (size_t c = 0; c < s.count; c++) {
                s.scale[c] = (float)uniform() + 0.01f;
                s.zero[c] = (int32_t)c;
            }
            memset(whole, 0, sizeof whole);
            quantize_ok(&s, codes, whole, TN_FLOAT32, x, &o);
            CHECK(tn_scale_index_for(3, shape, axis, &index, NULL) == TN_OK);
            const tn_affine affine = affine_of(codes, &o);
            const tn_quantize_options rules = affine_rules(&o);
            tn_affine_task task = { .affine = &affine, .values = TN_FLOAT32, .index = index, .scale = s.scale,
                                    .zero = s.zero, .options = &rules };
            CHECK(tn_affine_plan_make(&to, &task, NULL) == TN_OK);
            task.decodes = true;
            CHECK(tn_affine_plan_make(&from, &task, NULL) == TN_OK);
            memset(cut, 0, sizeof cut);
            for (size_t i = 0, n; i < N; i += n) {
                n = 8 * (1 + bits64() % 60);
                n = n < N - i ? n : N - i;
                size_t at = i * row(codes)->bits / 8;
                CHECK(tn_affine_encode(&to, cut + at, x + i, n, i, 3, shape, NULL) == TN_OK);
                CHECK(tn_affine_decode(&from, values + i, cut + at, n, i, 3, shape, NULL) == TN_OK);
            }
            CHECK(memcmp(cut, whole, sizeof cut) == 0);
            for (size_t i = 0; i < N; i++)
                CHECK(values[i] == expected_value(code_at(codes, whole, i), s.scale[channel(&s, i)],
                                                  s.zero[channel(&s, i)]));
            forget(&s);
        }
}

static void what_comes_back_is_half_a_step_away_at_most(void)
{
    static const tn_dtype types[] = { TN_INT8, TN_UINT8, TN_INT16, TN_UINT16, TN_INT4, TN_UINT4, TN_INT2,
                                      TN_UINT2 };
    enum { N = 5000 };
    static float x[N], back[N];
    static uint8_t codes[N * 2];
    const int64_t n = N;
    tn_array d = flat(TN_FLOAT32, &n);
    size_t outside = 0;
    for (size_t t = 0; t < 8; t++)
        for (int symmetric = 0; symmetric < 2; symmetric++)
            for (double width = 1e-30; width < 1e31; width *= 1e10) {
                affine_options o = { .axis = TN_PER_TENSOR, .symmetric = symmetric,
                                          .jobs = 1 };
                tn_array c = flat(types[t], &n);
                float scale;
                int32_t zero;
                if (symmetric && row(types[t])->kind == TN_KIND_UINT)
                    continue;
                make_floats(x, N, width);
                for (size_t i = 0; i < N; i++)
                    x[i] += symmetric ? 0 : (float)width * 0.3f;
                CHECK(affine_choose_scales(types[t], &d, x, &o, &scale, &zero, NULL) == TN_OK);
                CHECK(affine_quantize(&c, codes, &d, x, &scale, &zero, &o, NULL) == TN_OK);
                CHECK(affine_dequantize(&d, back, &c, codes, &scale, &zero, &o, NULL) == TN_OK);
                int64_t range[2];
                CHECK(affine_range(types[t], &o, range) == TN_OK);
                for (size_t i = 0; i < N; i++) {
                    /* The rounding of the zero moves the ends by half a step: what is cut is a step away. */
                    double step = (double)scale, exact = (double)x[i], place = exact / step + zero;
                    bool inside = place >= (double)range[0] && place <= (double)range[1];
                    CHECK(fabs(exact - (double)back[i]) <= step * (inside ? 0.5 : 1) + fabs(exact) * 0x1p-22);
                    outside += !inside;
                }
            }
    CHECK(outside < 8 * 2 * 7 * N / 10);
}

/* ---- what makes no sense ---- */

static void check_refusal(tn_dtype codes, tn_dtype values, affine_options o, float scale, int32_t zero,
                          const char *text)
{
    const int64_t shape[] = { 2, 3 };
    float x[12] = { 0 }, scales[] = { 1, scale, 1 };
    int32_t zeros[] = { 0, zero, 0 };
    uint8_t out[64] = { 0 };
    tn_error err = { .text = "" };
    tn_array d = { .dtype = codes, .rank = 2, .shape = shape },
    s = { .dtype = values, .rank = 2, .shape = shape };
    CHECK(affine_quantize(&d, out, &s, x, scales, zeros, &o, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), text);
    CHECK(affine_quantize(&d, out, &s, x, scales, zeros, &o, NULL) == TN_ERR_ARGUMENT);
}

static void what_makes_no_sense_is_refused_with_a_reason(void)
{
    const affine_options none = { .axis = 1 }, symmetric = { .axis = 1, .symmetric = true };
    check_refusal(TN_INT64, TN_FLOAT32, none, 1, 0,
                  "expected codes of an integer type of at most 16 bits or int32 but found int64");
    check_refusal(TN_UINT32, TN_FLOAT32, none, 1, 0,
                  "expected codes of an integer type of at most 16 bits or int32 but found uint32");
    check_refusal(TN_BOOL, TN_FLOAT32, none, 1, 0,
                  "expected codes of an integer type of at most 16 bits or int32 but found bool");
    check_refusal(TN_INT8, TN_INT16, none, 1, 0, "expected values of a float type but found int16");
    check_refusal(TN_INT8, TN_COMPLEX64, none, 1, 0, "expected values of a float type but found complex64");
    check_refusal(TN_UINT8, TN_FLOAT32, symmetric, 1, 0, "symmetric codes have a sign but uint8 has none");
    check_refusal(TN_INT8, TN_FLOAT32, symmetric, 1, 4,
                  "expected a zero of 0 for symmetric codes but zero 1 is 4");
    check_refusal(TN_INT8, TN_FLOAT32, none, 0, 0, "expected a finite scale above 0 but scale 1 is 0");
    check_refusal(TN_INT8, TN_FLOAT32, none, -1, 0, "expected a finite scale above 0 but scale 1 is -1");
    check_refusal(TN_INT8, TN_FLOAT32, none, NAN, 0, "expected a finite scale above 0 but scale 1 is nan");
    check_refusal(TN_INT8, TN_FLOAT32, none, INFINITY, 0,
                  "expected a finite scale above 0 but scale 1 is inf");
    check_refusal(TN_INT8, TN_FLOAT32, (affine_options){ .axis = 2 }, 1, 0,
                  "expected an axis below 2 or -1 for one scale but found 2");
    check_refusal(TN_INT8, TN_FLOAT32, (affine_options){ .axis = -2 }, 1, 0,
                  "expected an axis below 64 or -1 for one scale but found -2");
    check_refusal(TN_INT8, TN_FLOAT32, (affine_options){ .range = { -129, 0 } }, 1, 0,
                  "expected a range of codes within the -128 to 127 of int8 but found -129 to 0");
    check_refusal(TN_UINT4, TN_FLOAT32, (affine_options){ .range = { 3, 3 } }, 1, 0,
                  "expected a range of codes within the 0 to 15 of uint4 but found 3 to 3");
    check_refusal(TN_INT8, TN_FLOAT32, (affine_options){ .symmetric = true, .range = { -9, 0 } }, 1, 0,
                  "expected a range of symmetric codes with 0 and 1 in it but found -9 to 0");
    check_refusal(TN_INT8, TN_FLOAT32, (affine_options){ .round = (tn_round)8 }, 1, 0,
                  "expected a rounding mode of 0 to 7 but found 8");
    check_refusal(TN_INT8, TN_FLOAT32, (affine_options){ .nan = (tn_nan)3 }, 1, 0,
                  "expected a NaN mode of 0 to 2 but found 3");
}

static void arrays_that_do_not_fit_are_refused(void)
{
    const int64_t shape[] = { 2, 3 }, turned[] = { 1, 2 }, dense[] = { 3, 1 },
    negative[] = { 2, -1 };
    float x[8] = { 0 }, scale = 1;
    int8_t out[8] = { 0 };
    tn_error err;
    tn_array d = { .dtype = TN_INT8, .rank = 2, .shape = shape }, s = { .dtype = TN_FLOAT32, .rank = 2 };
    CHECK(affine_quantize(&d, out, &s, x, &scale, NULL, NULL, &err) == TN_ERR_ARGUMENT);
    s = (tn_array){ .dtype = TN_FLOAT32, .rank = TN_MAX_RANK + 1, .shape = shape };
    CHECK(affine_quantize(&d, out, &s, x, &scale, NULL, NULL, &err) == TN_ERR_ARGUMENT);
    s = (tn_array){ .dtype = TN_FLOAT32, .rank = 2, .shape = shape, .stride = turned };
    CHECK(affine_quantize(&d, out, &s, x, &scale, NULL, NULL, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "expected a dense tensor, with a stride of 3 in dimension 0, but found 1");
    s.stride = dense;
    CHECK(affine_quantize(&d, out, &s, x, &scale, NULL, NULL, &err) == TN_OK);
    CHECK(affine_quantize(&d, out, &s, NULL, &scale, NULL, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "tensor has no data"));
    CHECK(affine_quantize(&d, NULL, &s, x, &scale, NULL, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "expected 6 bytes for the part data but found none"));
    CHECK(affine_quantize(&d, out, &s, x, NULL, NULL, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "expected 4 bytes for the part scale but found none"));
    s.shape = negative;
    CHECK(affine_quantize(&d, out, &s, x, &scale, NULL, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "negative extent"));
    s = (tn_array){ .dtype = TN_FLOAT32, .rank = 2, .shape = shape };
    scale = NAN;
    CHECK(affine_dequantize(&s, x, &d, out, &scale, NULL, NULL, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "scale 0 is nan"));
    scale = -0.5f;          /* odd, but what it means is clear */
    out[0] = 4;
    CHECK(affine_dequantize(&s, x, &d, out, &scale, NULL, NULL, &err) == TN_OK && x[0] == -2);
}

static void empty_arrays_and_scalars_are_fine(void)
{
    const int64_t empty[] = { 0, 5 };
    tn_array d = { .dtype = TN_INT8, .rank = 2, .shape = empty },
    s = { .dtype = TN_FLOAT32, .rank = 2, .shape = empty };
    const affine_options o = { .axis = 0 };
    uint64_t count = 9;
    CHECK(affine_quantize(&d, NULL, &s, NULL, NULL, NULL, &o, NULL) == TN_OK);
    CHECK(affine_dequantize(&s, NULL, &d, NULL, NULL, NULL, &o, NULL) == TN_OK);
    CHECK(affine_count(2, empty, 0, &count, NULL) == TN_OK && count == 0);
    CHECK(affine_count(2, empty, 1, &count, NULL) == TN_OK && count == 5);
    CHECK(affine_count(2, empty, TN_PER_TENSOR, &count, NULL) == TN_OK && count == 1);
    CHECK(affine_count(0, NULL, TN_PER_TENSOR, &count, NULL) == TN_OK && count == 1);
    CHECK(affine_count(0, NULL, 0, &count, NULL) == TN_ERR_ARGUMENT);
    CHECK(affine_count(65, empty, 0, &count, NULL) == TN_ERR_ARGUMENT);
    const float x = 2.6f, scale = 0.5f;
    int8_t out;
    d.rank = s.rank = 0;
    CHECK(affine_quantize(&d, &out, &s, &x, &scale, NULL, NULL, NULL) == TN_OK && out == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_rounding_mode_is_as_described),
        TEST(every_axis_of_any_shape_finds_its_scales),
        TEST(zeros_far_from_the_codes_saturate_exactly),
        TEST(rows_longer_than_a_block_find_their_scales),
        TEST(ranges_narrower_than_the_type_are_kept),
        TEST(packed_codes_of_any_length_stay_in_their_bytes),
        TEST(a_nan_is_refused_with_its_index_or_becomes_the_zero),
        TEST(the_first_nan_is_named_by_any_number_of_threads),
        TEST(values_of_any_float_type_enter_as_float32),
        TEST(float64_is_rounded_to_float32_first),
        TEST(differences_beyond_float32_are_rounded_once),
        TEST(threads_do_not_change_a_bit),
        TEST(blocks_cut_anywhere_give_what_the_whole_does),
        TEST(what_comes_back_is_half_a_step_away_at_most),
        TEST(what_makes_no_sense_is_refused_with_a_reason),
        TEST(arrays_that_do_not_fit_are_refused),
        TEST(empty_arrays_and_scalars_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
