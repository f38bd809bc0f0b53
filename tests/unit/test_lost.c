/* What casts lose: every pair of types and many options, counted against the definition; what refuses it. */
#include "support.h"
#include "cast/cast.h"
#include "kernels/level.h"
#include "tensor/array.h"

#include <math.h>

enum { MANY = 70000, PIECE = 64 };

static uint64_t random_state = 1;

static uint64_t random64(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return random_state ^ random_state >> 29;
}

/* All codes of a type of at most 16 bits; else magnitudes of all sizes, and the neighbours of powers of two. */
static size_t make_codes(const tn_dtype_info *type, uint8_t *data)
{
    size_t n = type->bits <= 16 ? (size_t)1 << type->bits : 8000;
    for (size_t i = 0; i < n; i++) {
        uint64_t code = i;
        if (type->bits > 16)
            code = i % 2 ? random64() >> (64 - type->bits)
                         : (UINT64_C(1) << random64() % type->bits) + random64() % 5 - 2;
        tn_code_put(data, i, type->bits, code);
    }
    return n;
}

static tn_cast_lost by_definition(const tn_cast_plan *plan, const uint8_t *data, size_t n)
{
    tn_cast_lost lost = { 0 };
    for (size_t i = 0; i < n; i++) {
        uint64_t code = tn_code_get(data, i, plan->from->bits);
        tn_number x = tn_number_decode(plan->from, code), y;
        unsigned flags = tn_cast_flags(plan, code, i);
        if (x.class == TN_NUMBER_FINITE && !x.significand)
            continue;
        lost.values++;
        unsigned seen = 0;
        y = tn_number_decode(plan->to, tn_number_encode(plan->to, &plan->args.rules, x, i, &seen));
        if (!plan->args.has_scale && x.class == TN_NUMBER_FINITE)
            CHECK(!(flags & TN_CAST_FLUSHED) ==
                  !(y.class == TN_NUMBER_FINITE && !y.significand && !(seen & TN_ENCODED_OVERFLOW)));
        lost.flushed += (flags & TN_CAST_FLUSHED) != 0;
        lost.saturated += x.class == TN_NUMBER_FINITE && flags & TN_ENCODED_OVERFLOW;
    }
    return lost;
}

static void check_pair(tn_dtype to, tn_dtype from, tn_cast_options options, const uint8_t *data, size_t n)
{
    const tn_cast_types types = { to, from, TN_HOST_ORDER };
    const tn_cast_kernels *kernels[] = { tn_cast_kernels_get(), NULL };
    tn_cast_kernels scalar;
    tn_cast_kernels_init_scalar(&scalar);
    kernels[1] = &scalar;
    options.size = sizeof options;
    for (unsigned k = 0; k < 2; k++) {
        tn_cast_plan plan;
        tn_cast_lost found = { 0 };
        CHECK(tn_cast_plan_with(&plan, kernels[k], types, &options, NULL) == TN_OK);
        tn_cast_plan_count(&plan, kernels[k]);
        static uint8_t cast[16 * MANY];
        if (tn_cast_block(&plan, cast, data, n, 0, 1, &(int64_t){ (int64_t)n }, NULL))
            continue;           /* NaN that the type does not have */
        for (size_t i = 0; i < n; i += PIECE) {     /* of neighbours, so that some lose nothing */
            size_t to_byte = tn_dense_offset(i, plan.to->bits), from_byte = tn_dense_offset(i, plan.from->bits);
            tn_cast_count(&plan, cast + to_byte, data + from_byte, n - i < PIECE ? n - i : PIECE, i, &found);
        }
        tn_cast_lost expected = by_definition(&plan, data, n);
        if (plan.has_limits && found.values != expected.values)
            fail_msg("%s to %s, round %d: %llu values, not %llu", plan.from->name, plan.to->name,
                     (int)options.round, (unsigned long long)found.values, (unsigned long long)expected.values);
        if (found.flushed != expected.flushed || found.saturated != expected.saturated)
            fail_msg("%s to %s, round %d: flushed %llu, not %llu; saturated %llu, not %llu", plan.from->name,
                     plan.to->name, (int)options.round, (unsigned long long)found.flushed,
                     (unsigned long long)expected.flushed, (unsigned long long)found.saturated,
                     (unsigned long long)expected.saturated);
        CHECK(plan.has_limits || (!expected.flushed && !expected.saturated));
    }
}

static void counts_are_those_of_the_definition(void)
{
    static uint8_t data[8 * MANY];
    static const tn_cast_options all[] = { { 0 }, { .round = TN_ROUND_UP },
                                           { .round = TN_ROUND_TRUNC, .overflow = TN_OVERFLOW_SATURATE },
                                           { .scale = 0x1p-9f }, { .nan = TN_NAN_ZERO }, { .round = TN_ROUND_STOCHASTIC, .seed = 3 } };
    for (tn_dtype from = 1; from < TN_DTYPE_COUNT; from++) {
        if (tn_dtype_get(from)->kind == TN_KIND_COMPLEX)
            continue;
        size_t n = make_codes(tn_dtype_get(from), data);
        for (tn_dtype to = 1; to < TN_DTYPE_COUNT; to++)
            for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                if (tn_dtype_get(to)->kind != TN_KIND_COMPLEX)
                    check_pair(to, from, all[i], data, i ? n / 32 : n);
    }
}

/* Where nothing is lost, the results alone tell as much: 0 stays 0, and NaN is a value. */
static void results_alone_are_counted_where_nothing_is_lost(void)
{
    const tn_cast_types types = { TN_BFLOAT16, TN_FLOAT32, TN_HOST_ORDER };
    static float data[4 * PIECE];
    static uint16_t results[4 * PIECE];
    const size_t n = sizeof data / sizeof *data;
    tn_cast_plan plan;
    tn_cast_lost found = { 0 }, expected = { 0 };
    for (size_t i = 0; i < n; i++)
        data[i] = i % 3 ? (float)(int64_t)random64() * 0x1p-40f : i % 2 ? -0.0f : 0;
    data[7] = NAN;
    CHECK(tn_cast_plan_with(&plan, tn_cast_kernels_get(), types, NULL, NULL) == TN_OK);
    tn_cast_plan_count(&plan, tn_cast_kernels_get());
    CHECK(tn_cast_block(&plan, results, data, n, 0, 1, &(int64_t){ (int64_t)n }, NULL) == TN_OK);
    tn_cast_count(&plan, results, data, n, 0, &expected);
    CHECK(tn_cast_count_kept(&plan, results, n, &found));
    CHECK(found.values == expected.values && found.values == n - (n + 2) / 3);
    CHECK(!expected.flushed && !expected.saturated);
}

static tn_cast_lost count_complex(tn_dtype to, bool drops, const float *data, size_t n)
{
    tn_cast_plan plan;
    tn_cast_lost lost = { 0 };
    const tn_cast_options o = { .size = sizeof o, .drop_imaginary = drops };
    CHECK(tn_cast_plan_make(&plan, to, TN_COMPLEX64, TN_HOST_ORDER, &o, NULL) == TN_OK);
    tn_cast_plan_count(&plan, tn_cast_kernels_get());
    double cast[16];
    CHECK(tn_cast_block(&plan, cast, data, n, 0, 1, &(int64_t){ (int64_t)n }, NULL) == TN_OK);
    tn_cast_count(&plan, cast, data, n, 0, &lost);
    return lost;
}

static void parts_of_complex_values_are_counted_that_are_cast(void)
{
    const float data[] = { 0.1f, 0.2f, 3, 0, 0, 0.25f, 1e9f, 2 };
    tn_cast_lost real = count_complex(TN_INT8, true, data, 4), both = count_complex(TN_COMPLEX128, false, data, 4);
    CHECK(real.values == 3 && real.flushed == 1 && real.saturated == 1);
    CHECK(!both.flushed && !both.saturated);
}

static tn_status cast_one(tn_dtype to, double x, tn_byte_order order, tn_error *err)
{
    uint64_t bits, got[2];
    const int64_t one = 1;
    const tn_array from = { TN_FLOAT64, 1, &one, NULL }, into = { to, 1, &one, NULL };
    const tn_cast_options o = { .size = sizeof o, .underflow = TN_UNDERFLOW_ERROR };
    memcpy(&bits, &x, sizeof bits);
    if (order != TN_HOST_ORDER)
        bits = __builtin_bswap64(bits);
    return tn_cast(&into, got, &from, &bits, order, &o, err);
}

static void underflow_is_refused_with_its_place(void)
{
    tn_error err;
    CHECK(cast_one(TN_INT8, 0.02, TN_LITTLE_ENDIAN, &err) == TN_ERR_LOSS);
    CHECK(strcmp(err.text, "element [0] is 0.02, which becomes 0 in int8") == 0);
    CHECK(cast_one(TN_INT8, 0.02, TN_BIG_ENDIAN, &err) == TN_ERR_LOSS);
    CHECK(cast_one(TN_INT8, 0.0, TN_LITTLE_ENDIAN, NULL) == TN_OK);
    CHECK(cast_one(TN_INT8, -0.6, TN_BIG_ENDIAN, NULL) == TN_OK);
    CHECK(cast_one(TN_FLOAT32, 1e-60, TN_LITTLE_ENDIAN, NULL) == TN_ERR_LOSS);
    CHECK(cast_one(TN_FLOAT32, 1e-40, TN_LITTLE_ENDIAN, NULL) == TN_OK);
}

static void an_unknown_underflow_mode_is_refused(void)
{
    tn_error err;
    const tn_cast_options o = { .size = sizeof o, .underflow = (tn_underflow)2 };
    CHECK(tn_cast_check(TN_INT8, TN_FLOAT32, &o, &err) == TN_ERR_ARGUMENT);
    CHECK(strcmp(err.text, "expected an underflow mode of 0 to 1 but found 2") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(counts_are_those_of_the_definition),
        TEST(results_alone_are_counted_where_nothing_is_lost),
        TEST(parts_of_complex_values_are_counted_that_are_cast),
        TEST(underflow_is_refused_with_its_place),
        TEST(an_unknown_underflow_mode_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
