#include <math.h>
#include <stdbool.h>

#include "environment.h"
#include "support.h"
#include "tensor/array.h"
#include "cast/cast.h"

enum { MANY = 4096 };

static const tn_dtype_info *row(tn_dtype dtype) { return tn_dtype_get(dtype); }

static bool is_complex(tn_dtype dtype) { return row(dtype)->kind == TN_KIND_COMPLEX; }

static size_t size_of(tn_dtype dtype, size_t n) { return (n * row(dtype)->bits + 7) / 8; }

static tn_array flat(tn_dtype dtype, const int64_t *n) { return (tn_array){ .dtype = dtype, .rank = 1,
                                                                            .shape = n }; }

static tn_status cast_flat(tn_dtype to, void *dst, tn_dtype from, const void *src, size_t n,
                           tn_cast_options options, tn_error *err)
{
    const int64_t shape[] = { (int64_t)n };
    tn_array d = flat(to, shape), s = flat(from, shape);
    options.size = sizeof options;
    return tn_cast(&d, dst, &s, src, TN_HOST_ORDER, &options, err);
}

/* Codes that tell ways of casting apart: all of a narrow type, and the ends,
 * ties and neighbours of a wide one. */
static size_t telling_codes(tn_dtype dtype, uint64_t *codes)
{
    const tn_dtype_info *type = row(dtype);
    size_t n = 0;
    if (type->bits <= 8) {
        for (; n < (size_t)1 << type->bits; n++)
            codes[n] = n;
        return n;
    }
    static const double values[] = { 0, 0.5, 1, 1.5, 2.5, 3, 6, 7, 8, 126.5, 127, 127.5, 128, 240, 248, 255.5,
                                     256, 448, 464, 480, 57344, 61440, 65504, 65519, 65520, 65536, 0x1p31,
                                     0x1.fffffffcp30, 0x1p32, 0x1p63, 0x1p64, 0x1.fffffep127, 0x1.ffffffp127,
                                     0x1p-14, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-126, 0x1p-133, 0x1p-134,
                                     0x1p-149, 0x1p-150, 0x1p-1074, 0x1.fffffffffffffp1023, 0x1.002002p0,
                                     0x1.001p0, 0x1.0010000000001p0, 0x1.00ffffffffffp0, 0x1.01p0,
                                     0x1.0100000000001p0, 0x1.0000010000001p0, 0x1.fffffffffffffp-127,
                                     0x1.ffcp15, 0x1.ffdfffffffp15, INFINITY, NAN };
    unsigned flags = 0;
    tn_encode_rules rules = tn_encode_rules_for(type, NULL);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        for (int sign = 0; sign < 2; sign++) {
            double x = sign ? -values[i] : values[i];
            uint64_t bits;
            memcpy(&bits, &x, sizeof bits);
            uint64_t code =
                tn_number_encode(type, &rules, tn_number_decode(row(TN_FLOAT64), bits), 0, &flags);
            for (uint64_t beside = 0; beside < 3; beside++)
                codes[n++] =
                    (code + beside - 1) & (type->bits < 64 ? (UINT64_C(1) << type->bits) - 1 : UINT64_MAX);
        }
    for (uint64_t k = 1; n < 700; k++)          /* and no pattern at all */
        codes[n++] = (k * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - type->bits);
    return n;
}

static bool refused(tn_dtype to, const tn_cast_options *o, unsigned flags)
{
    bool inf = tn_dtype_has_infinity(row(to)), nan = tn_dtype_has_nan(row(to));
    if (flags & TN_ENCODED_OVERFLOW &&
        (o->overflow == TN_OVERFLOW_ERROR || (o->overflow == TN_OVERFLOW_INF && !inf) ||
         (o->overflow == TN_OVERFLOW_NAN && !inf && !nan)))
        return true;
    return flags & TN_ENCODED_NAN &&
           (o->nan == TN_NAN_ERROR || (o->nan == TN_NAN_KEEP && !nan && to != TN_BOOL));
}

/* --- every pair ------------------------------------------------------------- */

static void check_pair(tn_dtype to, tn_dtype from, const uint64_t *codes, size_t n, tn_cast_options options)
{
    uint8_t src[MANY * 8], dst[MANY * 8];
    uint64_t expected[MANY], good[MANY];
    tn_encode_rules rules = tn_encode_rules_for(row(to), &options);
    size_t kept = 0;
    /* Nothing to change: the very bits, also those of a signalling NaN or of a bool of 2. */
    bool same = to == from && (options.nan == TN_NAN_KEEP || !tn_dtype_has_nan(row(to))) &&
                (options.overflow != TN_OVERFLOW_SATURATE || !tn_dtype_has_infinity(row(to)));
    for (size_t i = 0; i < n; i++) {
        unsigned flags = 0;
        uint64_t index = options.first + kept;
        uint64_t code =
            tn_number_encode(row(to), &rules, tn_number_decode(row(from), codes[i]), index, &flags);
        if (refused(to, &options, flags) && !same) {
            uint8_t one[8], result[8];
            tn_code_put(one, 0, row(from)->bits < 8 ? 8 : row(from)->bits, codes[i]);
            CHECK(cast_flat(to, result, from, one, 1, options, NULL) == TN_ERR_LOSS);
            continue;
        }
        good[kept] = codes[i];
        expected[kept++] = same ? codes[i] : code;
    }
    for (size_t i = 0; i < kept; i++)
        tn_code_put(src, i, row(from)->bits, good[i]);
    CHECK(cast_flat(to, dst, from, src, kept, options, NULL) == TN_OK);
    for (size_t i = 0; i < kept; i++)
        if (tn_code_get(dst, i, row(to)->bits) != expected[i])
            fail_msg("%s to %s, rounding %d, overflow %d: %#llx becomes %#llx, expected %#llx",
                     row(from)->name, row(to)->name, (int)options.round, (int)options.overflow,
                     (unsigned long long)good[i], (unsigned long long)tn_code_get(dst, i, row(to)->bits),
                     (unsigned long long)expected[i]);
}

static void every_pair_casts_as_the_definition_says(void)
{
    static uint64_t codes[MANY];
    for (tn_dtype from = 1; from < TN_DTYPE_COUNT; from++) {
        if (is_complex(from))
            continue;
        size_t n = telling_codes(from, codes);
        for (tn_dtype to = 1; to < TN_DTYPE_COUNT; to++) {
            if (is_complex(to))
                continue;
            for (tn_round round = TN_ROUND_EVEN; round <= TN_ROUND_STOCHASTIC; round++)
                check_pair(to, from, codes, n, (tn_cast_options){ .round = round, .nan = TN_NAN_ZERO,
                                                                  .seed = 5,
                                                                  .first = 77 });
            for (tn_overflow overflow = TN_OVERFLOW_DEFAULT; overflow <= TN_OVERFLOW_ERROR; overflow++)
                for (tn_nan nan = TN_NAN_KEEP; nan <= TN_NAN_ERROR; nan++)
                    check_pair(to, from, codes, n, (tn_cast_options){ .overflow = overflow, .nan = nan });
        }
    }
}

static void values_are_rounded_once(void)
{
    /* Through float32 this would be a tie, and the wrong one. */
    const double near_tie[] = { 0x1.0020000000001p0, 0x1.001fffffffffp0, 0x1.006p0 };
    uint16_t half[3];
    CHECK(cast_flat(TN_FLOAT16, half, TN_FLOAT64, near_tie, 3, (tn_cast_options){ 0 }, NULL) == TN_OK);
    CHECK(half[0] == 0x3c01 && half[1] == 0x3c00 && half[2] == 0x3c02);
    const int64_t big[] = { (INT64_C(1) << 53) + 1, (INT64_C(1) << 24) + 1, INT64_MAX, INT64_MIN, -16777217 };
    float single[5];
    CHECK(cast_flat(TN_FLOAT32, single, TN_INT64, big, 5, (tn_cast_options){ 0 }, NULL) == TN_OK);
    for (int i = 0; i < 5; i++)
        CHECK(single[i] == (float)big[i]);
    const uint64_t huge[] = { UINT64_MAX, UINT64_C(1) << 63, UINT64_C(0xfffffffffffffbff),
                              UINT64_C(0xfffffffffffffc00) };
    double wide[4];
    CHECK(cast_flat(TN_FLOAT64, wide, TN_UINT64, huge, 4, (tn_cast_options){ 0 }, NULL) == TN_OK);
    for (int i = 0; i < 4; i++)
        CHECK(wide[i] == (double)huge[i]);
    uint64_t back[4];
    const double up[] = { 0x1p63, 0x1.fffffffffffffp63, 0x1p64, -1 };
    CHECK(cast_flat(TN_UINT64, back, TN_FLOAT64, up, 4, (tn_cast_options){ 0 }, NULL) == TN_OK);
    CHECK(back[0] == UINT64_C(1) << 63 && back[1] == UINT64_C(0xfffffffffffff800) && back[2] == UINT64_MAX &&
          back[3] == 0);
}

/* --- complex ------------------------------------------------------------------ */

static void complex_numbers_are_cast_by_halves(void)
{
    const float c64[] = { 1.5f, -2.25f, INFINITY, 3e38f };
    double c128[4];
    float back[4];
    CHECK(cast_flat(TN_COMPLEX128, c128, TN_COMPLEX64, c64, 2, (tn_cast_options){ 0 }, NULL) == TN_OK);
    for (int i = 0; i < 4; i++)
        CHECK(c128[i] == (double)c64[i]);
    CHECK(cast_flat(TN_COMPLEX64, back, TN_COMPLEX128, c128, 2, (tn_cast_options){ 0 }, NULL) == TN_OK);
    CHECK(memcmp(back, c64, sizeof back) == 0);
    CHECK(cast_flat(TN_COMPLEX64, back, TN_COMPLEX64, c64, 2, (tn_cast_options){ 0 }, NULL) == TN_OK);
    CHECK(memcmp(back, c64, sizeof back) == 0);
}

static void complex_to_real_is_refused_unless_asked_for(void)
{
    static double c128[2 * 3000];
    static int16_t real[3000];
    for (int i = 0; i < 3000; i++) {
        c128[2 * i] = i - 1500;
        c128[2 * i + 1] = 99;
    }
    tn_error err;
    CHECK(cast_flat(TN_INT16, real, TN_COMPLEX128, c128, 3000, (tn_cast_options){ 0 }, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "complex128 to int16 would lose the imaginary parts");
    CHECK(tn_cast_check(TN_INT16, TN_COMPLEX128, NULL, NULL) == TN_ERR_LOSS);
    CHECK(cast_flat(TN_INT16, real, TN_COMPLEX128, c128, 3000, (tn_cast_options){ .drop_imaginary = true },
                    &err) == TN_OK);
    for (int i = 0; i < 3000; i++)
        CHECK(real[i] == i - 1500);
}

static void real_to_complex_adds_zeros(void)
{
    static uint8_t small[3001];
    static float c64[2 * 3001];
    for (int i = 0; i < 3001; i++)
        small[i] = (uint8_t)i;
    CHECK(cast_flat(TN_COMPLEX64, c64, TN_UINT8, small, 3001, (tn_cast_options){ 0 }, NULL) == TN_OK);
    for (int i = 0; i < 3001; i++)
        CHECK(c64[2 * i] == (float)small[i] && c64[2 * i + 1] == 0 && !signbit(c64[2 * i + 1]));
}

/* --- how arrays lie ------------------------------------------------------------ */

static void strides_reach_every_element(void)
{
    enum { ROWS = 37, COLUMNS = 53 };
    static float grid[ROWS * COLUMNS];
    static uint16_t dense[ROWS * COLUMNS], strided[2 * ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        grid[i] = (float)i * 0.37f - 300;
    CHECK(cast_flat(TN_FLOAT16, dense, TN_FLOAT32, grid, ROWS * COLUMNS, (tn_cast_options){ 0 },
                    NULL) == TN_OK);

    /* Transposed and upside down in, every other column out. */
    const int64_t shape[] = { COLUMNS, 1, ROWS }, in[] = { -1, 12345, -COLUMNS }, out[] = { 2 * ROWS, -7, 2 };
    tn_array src = { TN_FLOAT32, 3, shape, in }, dst = { TN_FLOAT16, 3, shape, out };
    memset(strided, 0x5a, sizeof strided);
    CHECK(tn_cast(&dst, strided, &src, grid + ROWS * COLUMNS - 1, TN_HOST_ORDER, NULL, NULL) == TN_OK);
    for (int c = 0; c < COLUMNS; c++)
        for (int r = 0; r < ROWS; r++) {
            CHECK(strided[2 * (c * ROWS + r)] == dense[ROWS * COLUMNS - 1 - (r * COLUMNS + c)]);
            CHECK(strided[2 * (c * ROWS + r) + 1] == 0x5a5a);
        }

    /* One row for all rows. */
    const int64_t plane[] = { ROWS, COLUMNS }, again[] = { 0, 1 };
    tn_array one_row = { TN_FLOAT32, 2, plane, again }, whole = { TN_FLOAT16, 2, plane, NULL };
    CHECK(tn_cast(&whole, strided, &one_row, grid, TN_HOST_ORDER, NULL, NULL) == TN_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK(strided[i] == dense[i % COLUMNS]);
}

static void elements_of_every_width_are_gathered_and_scattered(void)
{
    static const tn_dtype types[] = { TN_INT8, TN_FLOAT16, TN_FLOAT32, TN_FLOAT64, TN_COMPLEX64,
                                      TN_COMPLEX128 };
    enum { N = 2500 };
    static uint8_t src[N * 16], dst[2 * N * 16];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(i * 37 % 120);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        size_t size = size_of(types[t], 1);
        const int64_t shape[] = { N }, backwards[] = { -1 }, apart[] = { 2 };
        tn_array s = { types[t], 1, shape, backwards }, d = { types[t], 1, shape, apart };
        CHECK(tn_cast(&d, dst, &s, src + (N - 1) * size, TN_HOST_ORDER, NULL, NULL) == TN_OK);
        for (size_t i = 0; i < N; i++)
            CHECK(memcmp(dst + 2 * i * size, src + (N - 1 - i) * size, size) == 0);
    }
}

static void the_other_byte_order_is_swapped_on_the_way(void)
{
    static const tn_dtype types[] = { TN_FLOAT64, TN_FLOAT32, TN_FLOAT16, TN_INT64, TN_INT32, TN_UINT16,
                                      TN_COMPLEX64,
                                      TN_COMPLEX128, TN_INT8, TN_INT4 };
    const tn_byte_order other = TN_HOST_ORDER == TN_LITTLE_ENDIAN ? TN_BIG_ENDIAN : TN_LITTLE_ENDIAN;
    enum { N = 2501 };
    static uint8_t src[N * 16], swapped[N * 16], plain[N * 16], dst[N * 16];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(i * 193 + i / 256);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const int64_t shape[] = { N };
        const tn_cast_options zero = { .size = sizeof zero, .nan = TN_NAN_ZERO };
        size_t size = size_of(types[t], N);
        tn_swap_bytes(swapped, src, size, row(types[t])->swap_bytes);
        const tn_dtype targets[] = { is_complex(types[t]) ? TN_COMPLEX64 : TN_BFLOAT16,
                                     is_complex(types[t]) ? TN_COMPLEX128 : TN_INT4, types[t] };
        for (int k = 0; k < 3; k++) {
            tn_array s = flat(types[t], shape), d = flat(targets[k], shape);
            memset(dst, 1, sizeof dst);
            memset(plain, 1, sizeof plain);
            CHECK(tn_cast(&d, plain, &s, src, TN_HOST_ORDER, &zero, NULL) == TN_OK);
            CHECK(tn_cast(&d, dst, &s, swapped, other, &zero, NULL) == TN_OK);
            CHECK(memcmp(dst, plain, sizeof dst) == 0);
        }
    }
}

static void packed_arrays_of_any_length_end_in_zero_bits(void)
{
    static const tn_dtype packed[] = { TN_INT4, TN_UINT4, TN_INT2, TN_UINT2, TN_FLOAT4_E2M1, TN_FLOAT6_E2M3,
                                       TN_FLOAT6_E3M2 };
    for (size_t t = 0; t < sizeof packed / sizeof packed[0]; t++)
        for (size_t n = 0; n <= 70; n++) {
            float values[70];
            unsigned bits = row(packed[t])->bits;
            for (size_t i = 0; i < n; i++)
                values[i] = (float)(i % 5) * 0.5f;
            float *src = (float *)(void *)exact_copy(values, n * sizeof *values);
            uint8_t *dst = malloc(size_of(packed[t], n) + 1), *again = malloc(size_of(packed[t], n) + 1);
            memset(dst, 0xff, size_of(packed[t], n) + 1);
            memset(again, 0xff, size_of(packed[t], n) + 1);
            CHECK(cast_flat(packed[t], dst, TN_FLOAT32, src, n, (tn_cast_options){ 0 }, NULL) == TN_OK);
            CHECK(cast_flat(packed[t], again, packed[t], dst, n, (tn_cast_options){ 0 }, NULL) == TN_OK);
            CHECK(memcmp(dst, again, size_of(packed[t], n) + 1) == 0);
            CHECK(dst[size_of(packed[t], n)] == 0xff);          /* no byte beyond */
            for (size_t b = n * bits; b < 8 * size_of(packed[t], n); b++)
                CHECK((dst[b / 8] >> b % 8 & 1) == 0);
            float *back = malloc(n * sizeof *back + 1);
            CHECK(cast_flat(TN_FLOAT32, back, packed[t], dst, n, (tn_cast_options){ 0 }, NULL) == TN_OK);
            for (size_t i = 0; i < n; i++)
                CHECK(row(packed[t])->kind != TN_KIND_FLOAT || back[i] == values[i]);
            free(src);
            free(dst);
            free(again);
            free(back);
        }
}

/* --- threads, pieces, in place --------------------------------------------------- */

static void the_number_of_jobs_changes_nothing(void)
{
    enum { N = 300001 };
    float *src = malloc(N * sizeof *src);
    uint8_t *one = malloc(N), *more = malloc(N);
    assert_non_null(src);
    for (int i = 0; i < N; i++)
        src[i] = sinf((float)i) * 300;
    static const tn_dtype types[] = { TN_FLOAT8_E4M3FN, TN_FLOAT6_E3M2, TN_INT4, TN_INT2 };
    for (size_t t = 0; t < 4; t++)
        for (tn_round round = TN_ROUND_EVEN; round <= TN_ROUND_STOCHASTIC; round += TN_ROUND_STOCHASTIC) {
            memset(one, 0, N);
            CHECK(cast_flat(types[t], one, TN_FLOAT32, src, N, (tn_cast_options){ .round = round, .jobs = 1 },
                            NULL) == TN_OK);
            for (unsigned jobs = 2; jobs <= 7; jobs += 5) {
                memset(more, 0, N);
                CHECK(cast_flat(types[t], more, TN_FLOAT32, src, N,
                                (tn_cast_options){ .round = round, .jobs = jobs },
                                NULL) == TN_OK);
                CHECK(memcmp(one, more, N) == 0);
            }
        }
    free(src);
    free(one);
    free(more);
}

/* By kernels, by table and by the definition; with numbers that are subnormal, tied, infinite and NaN. */
static void the_callers_floating_point_environment_changes_nothing(void)
{
    enum { N = 150000 };
    static const struct { tn_dtype to, from; tn_cast_options options; } casts[] = {
        { TN_FLOAT32, TN_FLOAT16, { 0 } }, { TN_FLOAT16, TN_FLOAT32, { 0 } },
        { TN_FLOAT64, TN_FLOAT32, { 0 } },
        { TN_FLOAT32, TN_FLOAT64, { 0 } }, { TN_BFLOAT16, TN_FLOAT64, { 0 } },
        { TN_FLOAT8_E5M2, TN_FLOAT32, { 0 } },
        { TN_INT8, TN_FLOAT32, { .nan = TN_NAN_ZERO } }, { TN_FLOAT32, TN_FLOAT8_E5M2, { 0 } },
        { TN_FLOAT32, TN_FLOAT32, { .scale = 0x1p-140f } },
        { TN_FLOAT32, TN_FLOAT8_E5M2, { .scale = 0x1.555554p-128f, .round = TN_ROUND_TRUNC } },
    };
    uint8_t *src = malloc(N * 8), *usual = malloc(N * 8), *got = malloc(N * 8);
    for (size_t c = 0; c < sizeof casts / sizeof casts[0]; c++)
        for (unsigned jobs = 1; jobs <= 3; jobs += 2) {
            static uint64_t codes[MANY];
            tn_dtype to = casts[c].to, from = casts[c].from;
            tn_cast_options options = casts[c].options;
            size_t telling = telling_codes(from, codes);
            options.jobs = jobs;
            for (size_t i = 0; i < N; i++)
                tn_code_put(src, i, row(from)->bits, codes[i % telling]);
            CHECK(cast_flat(to, usual, from, src, N, options, NULL) == TN_OK);
            for (environment e = 0; e < ENVIRONMENTS; e++) {
                enter_environment(e);
                uint64_t before = environment_seen();
                tn_status status = cast_flat(to, got, from, src, N, options, NULL);
                uint64_t after = environment_seen();
                leave_environment();
                CHECK(status == TN_OK && before == after && memcmp(got, usual, size_of(to, N)) == 0);
            }
        }
    free(src);
    free(usual);
    free(got);
}

static void stochastic_pieces_make_the_whole(void)
{
    enum { N = 10000 };
    static float src[N];
    static int8_t whole[N], pieces[N], other[N];
    for (int i = 0; i < N; i++)
        src[i] = (float)i / 97 - 50;
    tn_cast_options options = { .round = TN_ROUND_STOCHASTIC, .seed = 42 };
    CHECK(cast_flat(TN_INT8, whole, TN_FLOAT32, src, N, options, NULL) == TN_OK);
    for (size_t at = 0; at < N; at += 777) {
        options.first = at;
        CHECK(cast_flat(TN_INT8, pieces + at, TN_FLOAT32, src + at, N - at < 777 ? N - at : 777, options,
                        NULL) == TN_OK);
    }
    CHECK(memcmp(whole, pieces, N) == 0);
    CHECK(cast_flat(TN_INT8, other, TN_FLOAT32, src, N,
                    (tn_cast_options){ .round = TN_ROUND_STOCHASTIC, .seed = 43 }, NULL) == TN_OK);
    CHECK(memcmp(whole, other, N) != 0);
}

static void the_halves_of_a_complex_element_have_indices_of_their_own(void)
{
    enum { N = 3000 };
    static double halves[2 * N], swapped[2 * N];
    static float complex[2 * N], real[2 * N];
    for (int i = 0; i < 2 * N; i++)
        halves[i] = sin(i);
    tn_cast_options options = { .size = sizeof options, .round = TN_ROUND_STOCHASTIC, .first = 10 };
    CHECK(cast_flat(TN_COMPLEX64, complex, TN_COMPLEX128, halves, N, options, NULL) == TN_OK);
    options.first = 20;
    CHECK(cast_flat(TN_FLOAT32, real, TN_FLOAT64, halves, 2 * N, options, NULL) == TN_OK);
    CHECK(memcmp(complex, real, sizeof real) == 0);

    const int64_t shape[] = { N };
    tn_array s = flat(TN_COMPLEX128, shape), d = flat(TN_COMPLEX64, shape);
    options.first = 10;
    tn_swap_bytes(swapped, halves, sizeof swapped, 8);
    memset(complex, 0, sizeof complex);
    CHECK(tn_cast(&d, complex, &s, swapped,
                  TN_HOST_ORDER == TN_LITTLE_ENDIAN ? TN_BIG_ENDIAN : TN_LITTLE_ENDIAN, &options,
                  NULL) == TN_OK);
    CHECK(memcmp(complex, real, sizeof real) == 0);
}

static void a_real_part_alone_has_the_index_of_its_element(void)
{
    enum { N = 3000 };
    static double halves[2 * N], parts[N];
    static float complex[2 * N], real[N], expected[N];
    for (int i = 0; i < 2 * N; i++)
        halves[i] = sin(i);
    for (int i = 0; i < N; i++)
        parts[i] = halves[2 * i];
    const tn_cast_options options = { .round = TN_ROUND_STOCHASTIC, .first = 10, .drop_imaginary = true };
    CHECK(cast_flat(TN_FLOAT32, expected, TN_FLOAT64, parts, N, options, NULL) == TN_OK);
    CHECK(cast_flat(TN_FLOAT32, real, TN_COMPLEX128, halves, N, options, NULL) == TN_OK);
    CHECK(memcmp(real, expected, sizeof real) == 0);
    CHECK(cast_flat(TN_COMPLEX64, complex, TN_FLOAT64, parts, N, options, NULL) == TN_OK);
    for (int i = 0; i < N; i++)
        CHECK(complex[2 * i] == expected[i] && complex[2 * i + 1] == 0);
}

static void a_cast_may_be_done_in_place(void)
{
    enum { N = 200003 };
    static const tn_dtype types[] = { TN_FLOAT32, TN_INT32, TN_FLOAT16, TN_INT4, TN_FLOAT8_E5M2, TN_UINT2,
                                      TN_FLOAT6_E2M3 };
    float *src = malloc(N * sizeof *src), *same = malloc(N * sizeof *src);
    uint8_t *apart = malloc(N * sizeof *src);
    assert_non_null(src);
    for (int i = 0; i < N; i++)
        src[i] = cosf((float)i) * 5;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        tn_cast_options options = { .jobs = 3, .overflow = TN_OVERFLOW_SATURATE };
        memcpy(same, src, N * sizeof *src);
        CHECK(cast_flat(types[t], apart, TN_FLOAT32, src, N, options, NULL) == TN_OK);
        CHECK(cast_flat(types[t], same, TN_FLOAT32, same, N, options, NULL) == TN_OK);
        CHECK(memcmp(same, apart, size_of(types[t], N)) == 0);
    }
    tn_error err;
    CHECK(cast_flat(TN_FLOAT64, same, TN_FLOAT32, same, N, (tn_cast_options){ 0 }, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "a cast in place needs dense arrays and an element no wider than the source's 32 bits "
                  "but found 64");
    src[N - 1] = NAN;           /* the message comes from the source, though it is being overwritten */
    CHECK(cast_flat(TN_INT8, src, TN_FLOAT32, src, N, (tn_cast_options){ 0 }, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "element [200002] is nan, and int8 has no NaN (nan zero)");
    free(src);
    free(same);
    free(apart);
}

/* --- scale ------------------------------------------------------------------------- */

static void a_scale_multiplies_in_float32(void)
{
    const float src[] = { 1.1f, -3.3f, 100, 1e30f, 0.4f, -0.0f, INFINITY };
    int8_t whole[7];
    tn_cast_options options = { .scale = 10 };
    CHECK(cast_flat(TN_INT8, whole, TN_FLOAT32, src, 7, options, NULL) == TN_OK);
    for (int i = 0; i < 7; i++) {
        float product = src[i] * 10.0f;
        CHECK(whole[i] == (product > 127 ? 127 : (int8_t)lrintf(product)));
    }
    const double wide[] = { 0x1.0000001p0, 1e300 };
    float single[2];
    options.scale = 3;
    CHECK(cast_flat(TN_FLOAT32, single, TN_FLOAT64, wide, 2, options, NULL) == TN_OK);
    CHECK(single[0] == 3.0f && isinf(single[1]));
    options.overflow = TN_OVERFLOW_ERROR;
    tn_error err;
    CHECK(cast_flat(TN_FLOAT32, single, TN_FLOAT64, wide, 2, options, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err),
                        "element [1] is 1e+300, times the scale 3 beyond float32's largest 3.4028235e+38");
    const float big[] = { 1e30f };
    options.scale = -1e20f;     /* the product is infinite in float32: that is an overflow too */
    CHECK(cast_flat(TN_BFLOAT16, single, TN_FLOAT32, big, 1, options, &err) == TN_ERR_LOSS);
    CHECK(strstr(line_of(&err), "beyond bfloat16's lowest -3.3895314e+38") != NULL);
    const int64_t ints[] = { INT64_C(1) << 40 };
    options = (tn_cast_options){ .scale = 0x1p-38f, .round = TN_ROUND_UP };
    CHECK(cast_flat(TN_INT8, whole, TN_INT64, ints, 1, options, NULL) == TN_OK && whole[0] == 4);
}

/* A product beyond float32 is an overflow like any other, whatever the rounding. */
static void a_product_beyond_float32_overflows_as_documented(void)
{
    static const struct { tn_round round; uint16_t positive, negative; } halves[] = {
        { TN_ROUND_EVEN, 0x7c00, 0xfc00 },  { TN_ROUND_TRUNC, 0x7bff, 0xfbff },
        { TN_ROUND_UP, 0x7c00, 0xfbff },
        { TN_ROUND_DOWN, 0x7bff, 0xfc00 },
    };
    const float big[] = { 3e38f, -3e38f };
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        uint16_t half[2];
        tn_cast_options options = { .scale = 2, .round = halves[i].round };
        CHECK(cast_flat(TN_FLOAT16, half, TN_FLOAT32, big, 2, options, NULL) == TN_OK);
        CHECK(half[0] == halves[i].positive && half[1] == halves[i].negative);
    }
    const float infinite[] = { INFINITY };      /* one that was there before stays */
    uint16_t half;
    CHECK(cast_flat(TN_FLOAT16, &half, TN_FLOAT32, infinite, 1,
                    (tn_cast_options){ .scale = 2, .round = TN_ROUND_TRUNC },
                    NULL) == TN_OK && half == 0x7c00);
}

static void bool_never_overflows(void)
{
    const float f32[] = { 3e38f, -3e38f, 0, INFINITY };
    const double f64[] = { 1e39, -1e300, 0, INFINITY };
    for (tn_round round = TN_ROUND_EVEN; round <= TN_ROUND_STOCHASTIC; round++)
        for (tn_overflow overflow = TN_OVERFLOW_DEFAULT; overflow <= TN_OVERFLOW_ERROR; overflow++)
            for (int scaled = 0; scaled < 2; scaled++) {
                uint8_t narrow[4] = { 9, 9, 9, 9 }, wide[4] = { 9, 9, 9, 9 };
                tn_cast_options options = { .round = round, .overflow = overflow, .scale = scaled ? 2 : 0 };
                CHECK(cast_flat(TN_BOOL, narrow, TN_FLOAT32, f32, 4, options, NULL) == TN_OK);
                CHECK(cast_flat(TN_BOOL, wide, TN_FLOAT64, f64, 4, options, NULL) == TN_OK);
                CHECK(memcmp(narrow, "\1\1\0\1", 4) == 0 && memcmp(wide, "\1\1\0\1", 4) == 0);
            }
}

/* --- what is refused ---------------------------------------------------------------- */

static void a_refused_value_is_named_with_its_place(void)
{
    float src[4 * 9] = { 0 };
    uint16_t half[4 * 9];
    int64_t shape[] = { 4, 9 };
    tn_array s = { TN_FLOAT32, 2, shape, NULL }, d = { TN_FLOAT16, 2, shape, NULL };
    tn_cast_options strict = { .size = sizeof strict, .overflow = TN_OVERFLOW_ERROR };
    tn_error err;
    src[3 * 9 + 7] = 70000;
    CHECK(tn_cast(&d, half, &s, src, TN_HOST_ORDER, &strict, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "element [3, 7] is 70000.0, beyond float16's largest 65504.0");
    src[2] = -1e9f;
    CHECK(tn_cast(&d, half, &s, src, TN_HOST_ORDER, &strict, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "element [0, 2] is -1000000000.0, beyond float16's lowest -65504.0");
    src[0] = NAN;
    strict.nan = TN_NAN_ERROR;
    CHECK(tn_cast(&d, half, &s, src, TN_HOST_ORDER, &strict, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "element [0, 0] is nan, which the NaN mode refuses");

    static const struct {
        tn_dtype to;
        float value;
        tn_overflow mode;
        const char *text;
        float scale;
    } cases[] = {
        { TN_INT8, NAN, TN_OVERFLOW_DEFAULT,
          "the element is nan, and int8 has no NaN (nan zero)", 0 },
        { TN_FLOAT4_E2M1, NAN, TN_OVERFLOW_DEFAULT,
          "the element is nan, and float4_e2m1 has no NaN (nan zero)", 0 },
        { TN_UINT8, -1, TN_OVERFLOW_ERROR, "the element is -1.0, beyond uint8's lowest 0", 0 },
        { TN_INT8, INFINITY, TN_OVERFLOW_NAN, "the element is inf, beyond int8's largest 127", 0 },
        { TN_INT4, -9, TN_OVERFLOW_ERROR, "the element is -9.0, beyond int4's lowest -8", 0 },
        { TN_FLOAT8_E4M3FN, 500, TN_OVERFLOW_INF,
          "the element is 500.0, beyond float8_e4m3fn's largest 448.0", 0 },
        { TN_FLOAT6_E2M3, -8, TN_OVERFLOW_NAN, "the element is -8.0, beyond float6_e2m3's lowest -7.5", 0 },
        { TN_FLOAT8_E8M0, 0, TN_OVERFLOW_ERROR,
          "the element is 0.0, below float8_e8m0's smallest 5.877472e-39", 0 },
        { TN_FLOAT8_E8M0, INFINITY, TN_OVERFLOW_ERROR,
          "the element is inf, beyond float8_e8m0's largest 1.7014118e+38", 0 },
        { TN_FLOAT8_E8M0, -INFINITY, TN_OVERFLOW_ERROR,
          "the element is -inf, below float8_e8m0's smallest 5.877472e-39", 0 },
        { TN_FLOAT8_E8M0, 1e-40f, TN_OVERFLOW_ERROR,
          "the element is 1e-40, times the scale 1.00000001e-10 below float8_e8m0's smallest 5.877472e-39",
          1e-10f },
        { TN_FLOAT8_E8M0, -3e38f, TN_OVERFLOW_ERROR,
          "the element is -3e+38, times the scale -2 beyond float8_e8m0's largest 1.7014118e+38", -2 },
        { TN_INT8, -200, TN_OVERFLOW_ERROR,
          "the element is -200.0, times the scale -1 beyond int8's largest 127", -1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_array one = { TN_FLOAT32, 0, NULL, NULL }, to = { cases[i].to, 0, NULL, NULL };
        const tn_cast_options options = { .size = sizeof options, .overflow = cases[i].mode,
                                          .scale = cases[i].scale };
        CHECK(tn_cast(&to, half, &one, &cases[i].value, TN_HOST_ORDER, &options, &err) == TN_ERR_LOSS);
        assert_string_equal(said_of(&err), cases[i].text);
    }
}

static void the_first_refused_element_is_the_same_for_any_jobs(void)
{
    enum { N = 400000 };
    double *src = calloc(N, sizeof *src);
    int8_t *dst = malloc(N);
    assert_non_null(src);
    src[130001] = src[130002] = 1000;
    src[390000] = NAN;
    for (unsigned jobs = 1; jobs <= 7; jobs += 3) {
        tn_error err;
        CHECK(cast_flat(TN_INT8, dst, TN_FLOAT64, src, N,
                        (tn_cast_options){ .jobs = jobs, .overflow = TN_OVERFLOW_ERROR },
                        &err) == TN_ERR_LOSS);
        assert_string_equal(said_of(&err), "element [130001] is 1000.0, beyond int8's largest 127");
    }
    free(src);
    free(dst);
}

static void swapped_complex_and_strided_values_are_shown_as_they_are(void)
{
    uint8_t big_endian[16] = { 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0x7e, 0x37, 0xe4, 0x3c, 0x88, 0x00, 0x75, 0x9c };
    float c64[2];
    tn_array s = { TN_COMPLEX128, 0, NULL, NULL }, d = { TN_COMPLEX64, 0, NULL, NULL };
    const tn_cast_options strict = { .size = sizeof strict, .overflow = TN_OVERFLOW_ERROR };
    tn_error err;
    CHECK(tn_cast(&d, c64, &s, big_endian, TN_BIG_ENDIAN, &strict, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "the element is 1.5+1e+300j, beyond float32's largest 3.4028235e+38");

    const float grid[] = { 1, 2, 1e6f, 4, 5, 6 };
    const int64_t shape[] = { 3, 2 }, transposed[] = { 1, 3 };
    tn_array t = { TN_FLOAT32, 2, shape, transposed }, h = { TN_FLOAT16, 2, shape, NULL };
    CHECK(tn_cast(&h, big_endian, &t, grid, TN_HOST_ORDER, &strict, &err) == TN_ERR_LOSS);
    assert_string_equal(said_of(&err), "element [2, 0] is 1000000.0, beyond float16's largest 65504.0");
}

static void broken_promises_are_told(void)
{
    float data[8] = { 0 };
    uint8_t out[64];
    const int64_t two[] = { 2 }, three[] = { 3 }, zero[] = { 0 }, negative[] = { -1 }, apart[] = { 2 };
    tn_array f32 = { TN_FLOAT32, 1, two, NULL }, i8 = { TN_INT8, 1, two, NULL },
    longer = { TN_INT8, 1, three, NULL };
    tn_array scalar = { TN_INT8, 0, NULL, NULL }, unknown = { TN_UNKNOWN, 1, two, NULL };
    tn_array still = { TN_INT8, 1, two, zero }, bad = { TN_FLOAT32, 1, negative, NULL };
    tn_array split = { TN_INT4, 1, two, apart };
    tn_error err;
    CHECK(tn_cast(&longer, out, &f32, data, TN_HOST_ORDER, NULL, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "dimension 0 has 3 elements in the destination but 2 in the source");
    CHECK(tn_cast(&scalar, out, &f32, data, TN_HOST_ORDER, NULL, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_cast(&unknown, out, &f32, data, TN_HOST_ORDER, NULL, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_cast(&i8, out, &bad, data, TN_HOST_ORDER, NULL, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_cast(&still, out, &f32, data, TN_HOST_ORDER, NULL, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_cast(&split, out, &f32, data, TN_HOST_ORDER, NULL, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "elements of 4 bits must be dense");
    CHECK(tn_cast(&i8, NULL, &f32, data, TN_HOST_ORDER, NULL, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "the destination has no data");
    const tn_cast_options wrong[] = {
        { .size = sizeof wrong[0], .round = (tn_round)8 },
        { .size = sizeof wrong[0], .overflow = (tn_overflow)5 },
        { .size = sizeof wrong[0], .nan = (tn_nan)3 }, { .size = sizeof wrong[0], .scale = INFINITY },
    };
    for (int i = 0; i < 4; i++) {
        CHECK(tn_cast(&i8, out, &f32, data, TN_HOST_ORDER, &wrong[i], &err) == TN_ERR_ARGUMENT);
        CHECK(tn_cast_check(TN_INT8, TN_FLOAT32, &wrong[i], NULL) == TN_ERR_ARGUMENT);
    }
    tn_array none = { TN_FLOAT32, 1, zero, NULL }, nothing = { TN_INT8, 1, zero, NULL };
    CHECK(tn_cast(&nothing, NULL, &none, NULL, TN_HOST_ORDER, NULL, &err) == TN_OK);
    CHECK(tn_cast_check(TN_INT8, TN_FLOAT32, NULL, NULL) == TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_pair_casts_as_the_definition_says),
        TEST(values_are_rounded_once),
        TEST(complex_numbers_are_cast_by_halves),
        TEST(complex_to_real_is_refused_unless_asked_for),
        TEST(real_to_complex_adds_zeros),
        TEST(strides_reach_every_element),
        TEST(elements_of_every_width_are_gathered_and_scattered),
        TEST(the_other_byte_order_is_swapped_on_the_way),
        TEST(packed_arrays_of_any_length_end_in_zero_bits),
        TEST(the_number_of_jobs_changes_nothing),
        TEST(the_callers_floating_point_environment_changes_nothing),
        TEST(stochastic_pieces_make_the_whole),
        TEST(the_halves_of_a_complex_element_have_indices_of_their_own),
        TEST(a_real_part_alone_has_the_index_of_its_element),
        TEST(a_cast_may_be_done_in_place),
        TEST(a_scale_multiplies_in_float32),
        TEST(a_product_beyond_float32_overflows_as_documented),
        TEST(bool_never_overflows),
        TEST(a_refused_value_is_named_with_its_place),
        TEST(the_first_refused_element_is_the_same_for_any_jobs),
        TEST(swapped_complex_and_strided_values_are_shown_as_they_are),
        TEST(broken_promises_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
