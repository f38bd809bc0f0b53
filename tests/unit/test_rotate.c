/* Rotations: the matrices, and the fast transform that applies them. */
#include "support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cpu.h"
#include "base/random.h"
#include "kernels/rotate/table.h"
#include "quant/rotate.h"

enum { LARGEST = 128 };

/* Numbers of both signs and of magnitudes from 2^-12 to 2^3. */
static float sample(uint64_t i)
{
    uint64_t bits = tn_random_at(99, i);
    return ldexpf((float)(int32_t)(bits >> 32), (int)(bits % 15) - 43);
}

static bool same_bits(const float *a, const float *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

/* Calls `check` with every kind of rotation. */
static void each_rotation(void (*check)(const tn_rotation *))
{
    for (uint32_t size = 4; size <= LARGEST; size *= 2)
        for (unsigned k = 0; k < 8; k++)
            check(&(tn_rotation){ .size = size, .walsh = k % 2, .random = k > 1, .seed = k });
}

/* ---- the matrix ---- */

static void matrices_are_tensorcasts(void)
{
    static const uint32_t sizes[] = { 4, 8, 32 };
    for (unsigned k = 0; k < 6; k++) {
        tn_rotation r = { .size = sizes[k / 2], .walsh = k % 2 };
        char path[200];
        float expected[32 * 32], m[32 * 32];
        size_t n = (size_t)r.size * r.size;
        snprintf(path, sizeof path, "%s/tensorcast/icp/%s%u.bin", TEST_GOLDEN, r.walsh ? "WH" : "H", r.size);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        CHECK(fread(expected, sizeof *m, n, file) == n && fgetc(file) == EOF);
        fclose(file);
        tn_rotate_matrix(&r, m);
        CHECK(same_bits(m, expected, n));
    }
}

static unsigned sign_changes(const float *row, unsigned n)
{
    unsigned changes = 0;
    for (unsigned i = 1; i < n; i++)
        changes += signbit(row[i]) != signbit(row[i - 1]);
    return changes;
}

static void walsh_rows_are_in_the_order_of_sign_changes(void)
{
    float m[LARGEST * LARGEST];
    for (uint32_t size = 4; size <= LARGEST; size *= 2) {
        tn_rotate_matrix(&(tn_rotation){ .size = size, .walsh = true, .random = true, .seed = 5 }, m);
        for (unsigned row = 0; row < size; row++)
            CHECK(sign_changes(m + row * size, size) == row);
    }
}

static void check_orthogonal(const tn_rotation *r)
{
    float m[LARGEST * LARGEST];
    tn_rotate_matrix(r, m);
    for (unsigned i = 0; i < r->size; i++) {
        for (unsigned j = 0; j < r->size; j++) {
            double dot = 0;
            for (unsigned k = 0; k < r->size; k++)
                dot += (double)m[i * r->size + k] * (double)m[j * r->size + k];
            CHECK(fabs(dot - (i == j)) < 2e-7);
        }
    }
}

static void matrices_are_orthogonal(void)
{
    each_rotation(check_orthogonal);
}

static void signs_depend_on_seed_and_row_alone(void)
{
    float plain[32 * 32], m[32 * 32];
    unsigned negative[2] = { 0, 0 };
    for (unsigned walsh = 0; walsh < 2; walsh++) {
        tn_rotate_matrix(&(tn_rotation){ .size = 32, .walsh = walsh }, plain);
        for (uint64_t seed = 0; seed < 50; seed++) {
            tn_rotate_matrix(&(tn_rotation){ .size = 32, .walsh = walsh, .random = true, .seed = seed }, m);
            for (unsigned row = 0; row < 32; row++) {
                bool minus = tn_random_at(seed, row) >> 63;
                negative[walsh] += minus;
                for (unsigned k = 0; k < 32; k++)
                    CHECK(m[row * 32 + k] == (minus ? -plain[row * 32 + k] : plain[row * 32 + k]));
            }
        }
        CHECK(negative[walsh] > 700 && negative[walsh] < 900);      /* of 1600 */
    }
    /* The documented first signs of seed 0: e220a839..., 6e789e6a..., 06c45d18..., f88bb8a8... */
    CHECK(tn_random_at(0, 0) == UINT64_C(0xe220a8397b1dcdaf) &&
          tn_random_at(0, 1) == UINT64_C(0x6e789e6aa1b965f4));
    CHECK(tn_random_at(0, 2) == UINT64_C(0x06c45d188009454f) &&
          tn_random_at(0, 3) == UINT64_C(0xf88bb8a8724c81ec));
}

/* ---- its application ---- */

static void rotate(const tn_rotation *r, bool back, uint64_t outer, uint64_t extent, uint64_t inner, float *x,
                   unsigned jobs)
{
    tn_pool *pool = NULL;
    CHECK(tn_pool_new(jobs, &pool, NULL) == TN_OK);
    CHECK(tn_rotate(r, back, outer, extent, inner, x, pool, NULL) == TN_OK);
    tn_pool_free(pool);
}

static void check_unit_vectors(const tn_rotation *r)
{
    float m[LARGEST * LARGEST], x[LARGEST * LARGEST] = { 0 };
    tn_rotate_matrix(r, m);
    for (unsigned i = 0; i < r->size; i++)
        x[i * r->size + i] = 1;
    rotate(r, false, r->size, r->size, 1, x, 1);
    CHECK(same_bits(x, m, (size_t)r->size * r->size));
}

static void unit_vectors_become_the_rows_of_the_matrix(void)
{
    each_rotation(check_unit_vectors);
}

/* x M or x M^T of one block in double precision. */
static double product(const tn_rotation *r, const float *m, bool back, const float *x, uint64_t stride,
                      unsigned at)
{
    double sum = 0;
    for (unsigned k = 0; k < r->size; k++)
        sum += (double)x[k * stride] * (double)m[back ? at * r->size + k : k * r->size + at];
    return sum;
}

/* Sums of 128 numbers below 2^3 in binary32. */
static const double bound = 1e-5;

static void check_product(const tn_rotation *r)
{
    static const uint64_t shapes[][3] = { { 3, 1, 1 }, { 1, 5, 1 }, { 2, 2, 2 }, { 1, 3, 16 }, { 2, 1, 17 },
                                          { 1, 2, 40 } };
    float m[LARGEST * LARGEST];
    tn_rotate_matrix(r, m);
    for (size_t s = 0; s < 2 * sizeof shapes / sizeof shapes[0]; s++) {
        const uint64_t *shape = shapes[s / 2];
        uint64_t outer = shape[0], extent = shape[1] * r->size, inner = shape[2];
        size_t n = (size_t)(outer * extent * inner);
        float *x = malloc(n * sizeof *x);
        assert_non_null(x);
        for (size_t i = 0; i < n; i++)
            x[i] = sample(i);
        float *y = (float *)(void *)exact_copy(x, n * sizeof *x);
        bool back = s % 2;
        rotate(r, back, outer, extent, inner, y, 1);
        for (size_t i = 0; i < n; i++) {
            uint64_t at = i / inner % r->size;
            CHECK(fabs(product(r, m, back, x + (i - at * inner), inner, (unsigned)at) - (double)y[i]) <
                  bound);
        }
        rotate(r, !back, outer, extent, inner, y, 1);
        for (size_t i = 0; i < n; i++)
            CHECK(fabsf(x[i] - y[i]) < (float)bound);
        free(x);
        free(y);
    }
}

static void it_is_the_product_with_the_matrix_and_back_undoes_it(void)
{
    each_rotation(check_product);
}

static void threads_and_the_place_of_the_dimension_change_no_bit(void)
{
    enum { ROWS = 40, EXTENT = 256, N = ROWS * EXTENT * 20 };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *x), *z = malloc(N * sizeof *x);
    assert_non_null(x);
    assert_non_null(y);
    assert_non_null(z);
    for (unsigned k = 0; k < 12; k++) {
        tn_rotation r = { .size = 4u << k % 6, .walsh = k > 5, .random = true, .seed = k };
        for (size_t i = 0; i < N; i++)
            x[i] = y[i] = sample(i + k);
        rotate(&r, k & 1, N / EXTENT, EXTENT, 1, x, 1);
        rotate(&r, k & 1, N / EXTENT, EXTENT, 1, y, 3);
        CHECK(same_bits(x, y, N));
        /* The same blocks as columns: [EXTENT][N / EXTENT]. */
        for (size_t i = 0; i < N; i++)
            z[i % EXTENT * (N / EXTENT) + i / EXTENT] = sample(i + k);
        rotate(&r, k & 1, 1, EXTENT, N / EXTENT, z, 3);
        for (size_t i = 0; i < N; i++)
            CHECK(same_bits(&z[i % EXTENT * (N / EXTENT) + i / EXTENT], &x[i], 1));
    }
    free(x);
    free(y);
    free(z);
}

static void infinities_and_nan_spoil_their_block_alone_with_one_nan(void)
{
    const uint32_t nan = TN_ROTATE_NAN, other = 0xffc12345;
    float quiet, odd;
    memcpy(&quiet, &nan, sizeof quiet);
    memcpy(&odd, &other, sizeof odd);
    for (unsigned k = 0; k < 4; k++) {
        tn_rotation r = { .size = 32, .walsh = k & 1, .random = k & 2, .seed = 3 };
        float x[3 * 32], clean[3 * 32];
        for (size_t i = 0; i < 96; i++)
            x[i] = clean[i] = sample(i);
        x[40] = odd;
        x[70] = INFINITY;
        x[71] = -INFINITY;
        rotate(&r, k & 2, 1, 96, 1, x, 1);
        rotate(&r, k & 2, 1, 96, 1, clean, 1);
        CHECK(same_bits(x, clean, 32));
        for (size_t i = 32; i < 64; i++)
            CHECK(same_bits(&x[i], &quiet, 1));
        for (size_t i = 64; i < 96; i++)
            CHECK(same_bits(&x[i], &quiet, 1) || isinf(x[i]));
    }
}

static void dimensions_that_do_not_fit_are_refused(void)
{
    tn_pool *pool = NULL;
    tn_error err = { .text = "" };
    float x[71] = { 1 }, y[71] = { 1 };
    CHECK(tn_pool_new(1, &pool, NULL) == TN_OK);
    CHECK(tn_rotate(&(tn_rotation){ .size = 32 }, false, 1, 71, 1, x, pool, &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err),
                        "a rotation of 32 values needs a dimension that is a multiple of 32 but found 71");
    CHECK(tn_rotate(&(tn_rotation){ .size = 32 }, false, 1, 71, 1, x, pool, NULL) == TN_ERR_ARGUMENT);
    CHECK(tn_rotate(&(tn_rotation){ .size = 0 }, false, 1, 71, 1, x, pool, &err) == TN_OK);
    CHECK(tn_rotate(&(tn_rotation){ .size = 32 }, false, 0, 64, 1, x, pool, &err) == TN_OK);
    CHECK(tn_rotate(&(tn_rotation){ .size = 32 }, false, 1, 0, 1, x, pool, &err) == TN_OK);
    CHECK(same_bits(x, y, 71));
    tn_pool_free(pool);
}

/* ---- kernels ---- */

static void fill_step(tn_rotate_step *step, unsigned size)
{
    step->size = size;
    for (unsigned i = 0; i < TN_ROTATE_MAX; i++) {
        step->sign[i] = (uint32_t)(tn_random_at(size, i % size) & 1) << 31;
        step->factor[i] = sample(i % size);
    }
}

/* Numbers and, here and there, what is special. */
static float any_float(uint64_t i)
{
    uint32_t bits = (uint32_t)tn_random_at(7, i);
    float x = sample(i);
    switch (tn_random_at(8, i) % 97) {
    case 0:  return 0.0f;
    case 1:  return -0.0f;
    case 2:  return INFINITY;
    case 3:  bits = 0x7f800001 | bits % 2 << 31; break;
    case 4:  bits &= 0x807fffff; break;
    case 5:  break;
    default: return x;
    }
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void check_permuted(const tn_rotate_kernels *level, const tn_rotate_kernels *definition, size_t blocks,
                           const uint8_t *in, const uint8_t *out, const tn_rotate_step *step)
{
    size_t n = blocks * step->size;
    float *a = malloc(n * sizeof *a + 1), *b = malloc(n * sizeof *b + 1);
    CHECK(a && b);
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] = any_float(i + 100 * blocks);
    definition->permuted(a, blocks, in, out, step);
    level->permuted(b, blocks, in, out, step);
    CHECK(same_bits(a, b, n));
    free(a);
    free(b);
}

static void check_level(const tn_rotate_kernels *level, const tn_rotate_kernels *definition, unsigned size)
{
    enum { PITCH = 19 };
    tn_rotate_step step;
    uint8_t in[TN_ROTATE_MAX], out[TN_ROTATE_MAX];
    fill_step(&step, size);
    for (unsigned k = 0; k < size; k++) {
        in[k] = (uint8_t)(size - 1 - (k ^ 1));
        out[k] = (uint8_t)(k ^ 2);
    }
    for (size_t blocks = 0; blocks <= 9; blocks++) {
        size_t n = blocks * size;
        float *src = malloc(n * sizeof *src + 1), *a = malloc(n * sizeof *a + 1),
              *b = malloc(n * sizeof *b + 1);
        CHECK(src && a && b);
        for (size_t i = 0; i < n; i++)
            src[i] = any_float(i + 1000 * blocks);
        definition->blocks(a, src, blocks, &step);
        level->blocks(b, src, blocks, &step);
        CHECK(same_bits(a, b, n));
        level->blocks(src, src, blocks, &step);
        CHECK(same_bits(a, src, n));
        free(src);
        free(a);
        free(b);
    }
    size_t n = (size_t)(size - 1) * PITCH + TN_ROTATE_LANES;
    float *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    CHECK(a && b);
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] = any_float(i);
    definition->columns(a, PITCH, in, out, &step);
    level->columns(b, PITCH, in, out, &step);
    CHECK(same_bits(a, b, n));
    free(a);
    free(b);
    for (size_t blocks = 0; blocks <= 70; blocks++)
        check_permuted(level, definition, blocks, in, out, &step);
}

static void every_level_gives_the_bits_of_the_definition(void)
{
    static const unsigned masks[] = { TN_CPU_AVX2, TN_CPU_AVX2 | TN_CPU_AVX512 };
    tn_rotate_kernels definition, level;
    tn_rotate_kernels_init(&definition, 0);
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        if ((tn_cpu_detect() & masks[i]) != masks[i])
            continue;
        tn_rotate_kernels_init(&level, masks[i]);
        CHECK(level.blocks != definition.blocks);
        for (unsigned size = 4; size <= TN_ROTATE_MAX; size *= 2)
            check_level(&level, &definition, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(matrices_are_tensorcasts),
        TEST(walsh_rows_are_in_the_order_of_sign_changes),
        TEST(matrices_are_orthogonal),
        TEST(signs_depend_on_seed_and_row_alone),
        TEST(unit_vectors_become_the_rows_of_the_matrix),
        TEST(it_is_the_product_with_the_matrix_and_back_undoes_it),
        TEST(threads_and_the_place_of_the_dimension_change_no_bit),
        TEST(infinities_and_nan_spoil_their_block_alone_with_one_nan),
        TEST(dimensions_that_do_not_fit_are_refused),
        TEST(every_level_gives_the_bits_of_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
