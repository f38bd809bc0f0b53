/* Kernels of quantization: every level against the scalar one, and that against the definition of
 * rounding. */
#include "support.h"

#include "affine.h"

#include "random.h"

#include <math.h>
#include <stdbool.h>

#include "base/cpu.h"
#include "quant/affine.h"

enum { LEVELS = 3, LONGEST = 333 };

static unsigned make_levels(tn_quant_kernels *k)
{
    static const unsigned masks[LEVELS] = { 0, TN_CPU_AVX2, TN_CPU_AVX2 | TN_CPU_AVX512 };
    unsigned n = 0, here = tn_cpu_detect();
    for (int i = 0; i < LEVELS; i++)
        if ((masks[i] & here) == masks[i])
            tn_quant_kernels_init(&k[n++], masks[i]);
    return n;
}

/* Any bits: NaN, infinities and subnormals among them; or numbers that are rounded and cut, with a scale of
 * 1.5. */
static void make_input(float *x, size_t n, bool any, const int32_t *zero, bool each)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)bits64();
        if (any)
            memcpy(&x[i], &bits, 4);
        else
            x[i] = ((float)(bits % 1201) * 0.5f - 300 - (float)zero[each ? i : 0]) * 1.5f;
    }
}

static void compare_codes(const tn_quant_kernels *a, const tn_quant_kernels *b, const tn_quant_run *run,
                          size_t n, size_t odd, const float *x)
{
    uint8_t one[LONGEST * 2 + 16], two[LONGEST * 2 + 16];
    for (int wide = 0; wide < 2; wide++) {
        memset(one, 0x5a, sizeof one);
        memset(two, 0x5a, sizeof two);
        uint8_t *src = malloc(n * 4 + odd + 1);
        assert_non_null(src);
        uint8_t *end = src + odd;
        if (n)
            memcpy(end, x, n * 4);
        bool first = (wide ? a->to_16 : a->to_8)(one + odd, end, n, run);
        bool second = (wide ? b->to_16 : b->to_8)(two + odd, end, n, run);
        CHECK(first == second && memcmp(one, two, sizeof one) == 0);
        free(src);
    }
}

static void compare_values(const tn_quant_kernels *a, const tn_quant_kernels *b, const tn_quant_run *run,
                           size_t n, size_t odd)
{
    const tn_dequantize_fn from[][2] = { { a->from_i8, b->from_i8 }, { a->from_u8, b->from_u8 },
                                         { a->from_i16, b->from_i16 },
                                         { a->from_u16, b->from_u16 } };
    uint8_t codes[LONGEST * 2], one[LONGEST * 4 + 16], two[LONGEST * 4 + 16];
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)bits64();
    for (size_t k = 0; k < 4; k++) {
        uint8_t *src = exact_copy(codes, n * (k < 2 ? 1 : 2));
        memset(one, 0x5a, sizeof one);
        memset(two, 0x5a, sizeof two);
        from[k][0](one + odd, src, n, run);
        from[k][1](two + odd, src, n, run);
        CHECK(memcmp(one, two, sizeof one) == 0);
        free(src);
    }
}

static void compare_ranges(const tn_quant_kernels *a, const tn_quant_kernels *b, size_t n, const float *x)
{
    float low[2][LONGEST], high[2][LONGEST], l[2] = { 0 }, h[2] = { 0 };
    memset(low, 0, sizeof low);
    memset(high, 0, sizeof high);
    float *src = (float *)(void *)exact_copy(x, n * 4);
    for (int k = 0; k < 2; k++) {
        const tn_quant_kernels *kernels = k ? b : a;
        kernels->range(&l[k], &h[k], src, n);
        kernels->range_each(low[k], high[k], src, n);
        if (n > 3)
            kernels->range_each(low[k], high[k], src + 3, n - 3);
    }
    CHECK(l[0] == l[1] && h[0] == h[1]);
    for (size_t i = 0; i < LONGEST; i++)
        CHECK(low[0][i] == low[1][i] && high[0][i] == high[1][i]);
    free(src);
}

static uint64_t square_sum(const tn_quant_kernels *k, int type, const void *codes, const void *x, size_t n,
                           double step, double unit)
{
    return (type == 0 ? k->squares_i8 : type == 1 ? k->squares_i16 : k->squares_i32)(codes, x, n, step, unit);
}

/* Errors of every size up to those that are cut. */
static void sums_of_squares_are_the_same_at_every_level(void)
{
    tn_quant_kernels levels[LEVELS];
    unsigned count = make_levels(levels);
    for (size_t n = 0; n <= 1024; n += n < 140 ? 1 : 221)
        for (int kind = 0; kind < 12; kind++) {
            int type = kind % 3;
            double step = ldexp(1, (int)(bits64() % 40) - 20),
                   unit = ldexp(1, (int)(bits64() % 80) - 20) / (step * step);
            float *x = malloc(n * sizeof *x + 1);
            uint8_t *codes = malloc(((size_t)n << type) + 1);
            __extension__ unsigned __int128 sum = 0;
            assert_true(x && codes);
            for (size_t i = 0; i < n; i++) {
                int64_t code = (int64_t)(bits64() % 256) - 128;
                tn_code_put(codes, i, 8u << type, (uint64_t)code);
                x[i] = (float)(((double)code + uniform() - 0.5) * step *
                               (bits64() % 16 ? 1 : 30000 * uniform()));
                double error = (double)code * step - (double)x[i], square = error * error * unit;
                sum += square < 0x1p53 ? (uint64_t)square : UINT64_C(1) << 53;
            }
            for (unsigned level = 0; level < count; level++)
                CHECK(square_sum(&levels[level], type, codes, x, n, step, unit) == (uint64_t)sum);
            free(x);
            free(codes);
        }
}

static void every_level_gives_the_bits_of_the_scalar_one(void)
{
    tn_quant_kernels levels[LEVELS];
    unsigned count = make_levels(levels);
    float x[LONGEST], scale[LONGEST];
    int32_t zero[LONGEST];
    for (size_t n = 0; n <= LONGEST; n += n < 140 ? 1 : 19)
        for (unsigned kind = 0; kind < 16; kind++) {
            size_t odd = bits64() % 16;
            float power = ldexpf(1, (int)(bits64() % 277) - 149);
            for (size_t i = 0; i < LONGEST; i++) {
                scale[i] = kind & 8 ? power : kind & 1 ? (float)uniform() + 1e-3f : 1.5f;
                zero[i] = (int32_t)(bits64() % (2 * TN_QUANT_ZERO_LIMIT + 1)) - TN_QUANT_ZERO_LIMIT;
                zero[i] = i % 2 ? zero[i] : zero[i] % 300;
            }
            zero[0] = kind & 4 ? -TN_QUANT_ZERO_LIMIT : TN_QUANT_ZERO_LIMIT;
            make_input(x, n, kind & 1, zero, kind & 2);
            float *scales = (float *)(void *)exact_copy(scale, (kind & 2 ? n ? n : 1 : 1) * sizeof *scale);
            int32_t *zeros = (int32_t *)(void *)exact_copy(zero, (kind & 2 ? n ? n : 1 : 1) * sizeof *zero);
            tn_quant_run run = { .scale = scales, .zero = zeros, .each = kind & 2, .stream = kind & 4,
                                 .low = -127, .high = 127,
                                 .away = bits64() % 2, .exact = bits64() % 2 };
            run.low = kind & 4 ? 0 : run.low;
            run.high = kind & 4 ? 255 : run.high;
            for (unsigned level = 1; level < count; level++) {
                compare_codes(&levels[0], &levels[level], &run, n, odd, x);
                compare_values(&levels[0], &levels[level], &run, n, odd);
                compare_values(&levels[0], &levels[level], &run, n, odd / 4 * 4);
                compare_ranges(&levels[0], &levels[level], n, x);
            }
            free(scales);
            free(zeros);
        }
}

/* As far from 0 as quotients count. */
static void zeros_at_the_limit_reach_every_code(void)
{
    tn_quant_kernels levels[LEVELS];
    unsigned count = make_levels(levels);
    const float one = 1;
    float x[300];
    int16_t out[300];
    for (unsigned level = 0; level < count; level++)
        for (int32_t sign = -1; sign <= 1; sign += 2) {
            const int32_t zero = sign * TN_QUANT_ZERO_LIMIT;
            const tn_quant_run run = { .scale = &one, .zero = &zero, .low = -32768, .high = 32767 };
            for (int32_t i = 0; i < 300; i++)
                x[i] = (float)(i * 229 - 32768 - zero);
            CHECK(!levels[level].to_16(out, x, 300, &run));
            for (int32_t i = 0; i < 300; i++)
                CHECK(out[i] == (i * 229 - 32768 > 32767 ? 32767 : i * 229 - 32768));
        }
}

/* The kernels round as the definition of casts does, at every tie of a 16-bit code and beside it. */
static void kernels_agree_with_the_definition_of_rounding(void)
{
    enum { N = 65536 * 3 };
    tn_quant_kernels levels[LEVELS];
    unsigned count = make_levels(levels);
    float *x = malloc(N * sizeof *x);
    uint16_t *out = malloc(N * sizeof *out);
    const float one = 1;
    const int32_t zero = 0;
    assert_true(x && out);
    for (int32_t i = 0; i < 65536; i++) {
        float tie = (float)(i - 32768) + 0.5f;
        x[3 * i] = nextafterf(tie, -INFINITY);
        x[3 * i + 1] = tie;
        x[3 * i + 2] = nextafterf(tie, INFINITY);
    }
    for (unsigned level = 0; level < 2 * count; level++) {
        const bool away = level % 2;
        const tn_quant_run run = { .scale = &one, .zero = &zero, .low = -32768, .high = 32767, .away = away };
        const tn_cast_options saturate = { .size = sizeof saturate, .overflow = TN_OVERFLOW_SATURATE,
                                           .round = away ? TN_ROUND_AWAY : TN_ROUND_EVEN };
        const tn_encode_rules rules = tn_encode_rules_for(tn_dtype_get(TN_INT16), &saturate);
        levels[level / 2].to_16(out, x, N, &run);
        for (size_t i = 0; i < N; i++) {
            uint32_t bits;
            unsigned flags = 0;
            memcpy(&bits, &x[i], 4);
            CHECK(out[i] == tn_number_encode(tn_dtype_get(TN_INT16), &rules,
                                             tn_number_decode(tn_dtype_get(TN_FLOAT32), bits), 0, &flags));
        }
    }
    free(x);
    free(out);
}

/* ---- against the definition ---- */

/* Ties of the scale as near as float32 comes, their neighbours, numbers of any size, and what is no
 * number. */
static void make_doubtful(float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)bits64();
        double k = (double)(int32_t)(bits >> (12 + bits64() % 20)) * (bits64() % 2 ? 1 : -1);
        x[i] = (float)((k + 0.5) * (double)scale);
        x[i] = i % 3 ? nextafterf(x[i], i % 3 == 1 ? INFINITY : -INFINITY) : x[i];
        if (bits64() % 16 == 0)
            memcpy(&x[i], &bits, sizeof bits);
    }
}

static void compare_with_the_definition(const tn_quant_kernels *kernels, tn_dtype codes, const float *x,
                                        int64_t n, const float *scale, const int32_t *zero,
                                        const affine_options *o)
{
    static uint8_t one[8192], two[8192];
    const size_t size = (size_t)n * tn_dtype_get(codes)->bits / 8;
    tn_affine_plan plan;
    tn_scale_index index;
    memset(one, 1, sizeof one);
    memset(two, 2, sizeof two);
    CHECK(tn_scale_index_for(1, &n, o->axis, &index, NULL) == TN_OK);
    const tn_affine affine = affine_of(codes, o);
    const tn_quantize_options rules = affine_rules(o);
    CHECK(tn_affine_plan_make(&plan, &(tn_affine_task){ .affine = &affine, .values = TN_FLOAT32, .index = index,
                                                        .scale = scale, .zero = zero, .options = &rules,
                                                        .kernels = kernels }, NULL) == TN_OK);
    CHECK(plan.quantize);
    CHECK(tn_affine_encode(&plan, one, x, (size_t)n, 0, 1, &n, NULL) == TN_OK);
    plan.quantize = NULL;
    CHECK(tn_affine_encode(&plan, two, x, (size_t)n, 0, 1, &n, NULL) == TN_OK);
    CHECK(memcmp(one, two, size) == 0);
}

static void every_level_gives_the_codes_of_the_definition(void)
{
    static const float telling[] = { 1, 0x1p-15f, 0x1p126f, 0x1p127f, 0x1p-126f, 0x1p-127f, 0x1p-149f, 0.1f,
                                     3, 1e-40f, 0x1.fffffep-1f,
                                     0x1.000002p-8f, 0x1.fffffep127f, 0x1.fffffep-127f };
    enum { N = 3000, TELLING = sizeof telling / sizeof telling[0] };
    static float x[N], scale[N];
    static int32_t zero[N];
    tn_quant_kernels levels[LEVELS];
    unsigned count = make_levels(levels);
    for (size_t k = 0; k < TELLING + 60; k++) {
        float own = k < TELLING ? telling[k]
                    : k % 2     ? (float)(uniform() + 0.01)
                                : ldexpf(1, (int)(bits64() % 40) - 30);
        for (size_t i = 0; i < N; i++) {
            scale[i] = k < TELLING ? telling[bits64() % TELLING] : (float)(uniform() + 0.01);
            zero[i] = (int32_t)(bits64() % 200) - 100;
        }
        for (unsigned kind = 0; kind < 16; kind++) {
            const affine_options o = { .axis = kind & 1 ? 0 : TN_PER_TENSOR,
                                            .nan = TN_NAN_ZERO,
                                            .round = kind & 2 ? TN_ROUND_AWAY : TN_ROUND_EVEN,
                                            .arithmetic = kind & 4 ? TN_ARITH_EXACT : TN_ARITH_BINARY32 };
            make_doubtful(x, N, own);
            if (kind & 1)
                for (size_t i = 0; i < N; i++)
                    make_doubtful(x + i, 1, scale[i]);
            for (unsigned level = 0; level < count; level++)
                compare_with_the_definition(&levels[level], kind & 8 ? TN_INT16 : TN_INT8, x,
                                            N - (int64_t)(k % 64), kind & 1 ? scale : &own, zero, &o);
        }
    }
}

static void packed_codes_come_back_with_their_signs(void)
{
    uint8_t codes[200], back[200], packed[101];
    for (size_t n = 0; n <= 200; n++)
        for (unsigned bits = 2; bits <= 4; bits += 2)
            for (int is_signed = 0; is_signed < 2; is_signed++) {
                size_t size = (n * bits + 7) / 8;
                for (size_t i = 0; i < n; i++)
                    codes[i] = (uint8_t)bits64();               /* the upper bits do not count */
                memset(packed, 0xa5, sizeof packed);
                tn_pack_codes(packed, codes, n, bits);
                CHECK(packed[size] == 0xa5);
                if (n * bits % 8)
                    CHECK(packed[size - 1] >> n * bits % 8 == 0);
                uint8_t *exact = exact_copy(packed, size);
                tn_unpack_codes(back, exact, n, bits, is_signed);
                for (size_t i = 0; i < n; i++) {
                    int code = codes[i] % (1 << bits), lowest = 1 << (bits - 1);
                    CHECK(tn_code_get(packed, i, bits) == (uint64_t)code);
                    CHECK(back[i] == (uint8_t)(is_signed && code >= lowest ? code - 2 * lowest : code));
                }
                free(exact);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_level_gives_the_bits_of_the_scalar_one),
        TEST(sums_of_squares_are_the_same_at_every_level),
        TEST(zeros_at_the_limit_reach_every_code),
        TEST(kernels_agree_with_the_definition_of_rounding),
        TEST(every_level_gives_the_codes_of_the_definition),
        TEST(packed_codes_come_back_with_their_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
