#include "support.h"

#include "tensor/array.h"

static void a_shape_counts_its_elements(void)
{
    static const int64_t shape[] = { 2, 3, 5, 7 };
    static const uint64_t expected[] = { 1, 2, 6, 30, 210 };
    for (uint32_t rank = 0; rank <= 4; rank++) {
        uint64_t count = 99;
        CHECK(tn_shape_count(rank, rank ? shape : NULL, &count) == TN_OK);
        CHECK(count == expected[rank]);
    }
}

static void ranks_end_at_64(void)
{
    int64_t ones[65];
    for (int i = 0; i < 65; i++)
        ones[i] = 1;
    uint64_t count = 99;
    CHECK(tn_shape_count(64, ones, &count) == TN_OK && count == 1);
    count = 99;
    CHECK(tn_shape_count(65, ones, &count) == TN_ERR_ARGUMENT && count == 99);
    CHECK(tn_shape_count(UINT32_MAX, ones, &count) == TN_ERR_ARGUMENT);
    CHECK(tn_shape_count(1, NULL, &count) == TN_ERR_ARGUMENT);
}

static void negative_extents_are_refused_wherever_they_stand(void)
{
    for (unsigned at = 0; at < 3; at++) {
        int64_t shape[] = { 0, INT64_MAX, INT64_MAX };
        shape[at] = at ? -1 : INT64_MIN;
        uint64_t count = 99;
        CHECK(tn_shape_count(3, shape, &count) == TN_ERR_ARGUMENT && count == 99);
    }
}

static void a_product_beyond_int64_is_refused(void)
{
    const int64_t most[] = { INT64_MAX }, fits[] = { INT64_C(1) << 31, INT64_C(1) << 31 };
    const int64_t beyond[] = { INT64_C(1) << 32, INT64_C(1) << 31 },
    wraps[] = { INT64_C(1) << 32, INT64_C(1) << 32 };
    const int64_t beyond_in_three[] = { 0x7fffffff, 0x7fffffff, 0x7fffffff };
    uint64_t count = 99;
    CHECK(tn_shape_count(2, beyond, &count) == TN_ERR_LIMIT && count == 99);
    CHECK(tn_shape_count(2, wraps, &count) == TN_ERR_LIMIT && count == 99);
    CHECK(tn_shape_count(3, beyond_in_three, &count) == TN_ERR_LIMIT && count == 99);
    CHECK(tn_shape_count(1, most, &count) == TN_OK && count == INT64_MAX);
    CHECK(tn_shape_count(2, fits, &count) == TN_OK && count == UINT64_C(1) << 62);
}

static void a_zero_extent_empties_any_shape(void)
{
    for (unsigned at = 0; at < 3; at++) {
        int64_t shape[] = { INT64_MAX, INT64_MAX, INT64_MAX };
        shape[at] = 0;
        uint64_t count = 99, nbytes = 99;
        CHECK(tn_shape_count(3, shape, &count) == TN_OK && count == 0);
        CHECK(tn_shape_nbytes(TN_COMPLEX128, 3, shape, &nbytes) == TN_OK && nbytes == 0);
    }
}

/* By adding up bits one element at a time. */
static void every_type_packs_densely(void)
{
    for (int d = 1; d < TN_DTYPE_COUNT; d++) {
        uint64_t bits = 0;
        for (int64_t n = 0; n <= 130; n++) {
            uint64_t nbytes = 99;
            CHECK(tn_shape_nbytes((tn_dtype)d, 1, &n, &nbytes) == TN_OK);
            CHECK(nbytes == bits / 8 + (bits % 8 != 0));
            bits += tn_dtype_get((tn_dtype)d)->bits;
        }
    }
}

static void sub_byte_types_pack_across_rows(void)
{
    const int64_t shape[] = { 3, 3 };
    tn_array array = { .dtype = TN_INT4, .rank = 2, .shape = shape };
    uint64_t nbytes = 0;
    CHECK(tn_array_nbytes(&array, &nbytes) == TN_OK && nbytes == 5);
    array.dtype = TN_FLOAT6_E3M2;
    CHECK(tn_array_nbytes(&array, &nbytes) == TN_OK && nbytes == 7);
    array.rank = 0;
    CHECK(tn_array_nbytes(&array, &nbytes) == TN_OK && nbytes == 1);
}

static void bytes_beyond_int64_are_refused(void)
{
    const int64_t most = INT64_MAX, fits = INT64_MAX / 16, beyond = INT64_MAX / 16 + 1;
    uint64_t nbytes = 99;
    CHECK(tn_shape_nbytes(TN_INT16, 1, &most, &nbytes) == TN_ERR_LIMIT && nbytes == 99);
    CHECK(tn_shape_nbytes(TN_COMPLEX128, 1, &most, &nbytes) == TN_ERR_LIMIT && nbytes == 99);
    CHECK(tn_shape_nbytes(TN_COMPLEX128, 1, &beyond, &nbytes) == TN_ERR_LIMIT && nbytes == 99);
    CHECK(tn_shape_nbytes(TN_COMPLEX128, 1, &fits, &nbytes) == TN_OK && nbytes == (uint64_t)fits * 16);
    CHECK(tn_shape_nbytes(TN_INT8, 1, &most, &nbytes) == TN_OK && nbytes == INT64_MAX);
    CHECK(tn_shape_nbytes(TN_INT4, 1, &most, &nbytes) == TN_OK && nbytes == UINT64_C(1) << 62);
}

static void unknown_types_have_no_size(void)
{
    const int64_t n = 1;
    uint64_t nbytes = 99;
    CHECK(tn_shape_nbytes(TN_UNKNOWN, 1, &n, &nbytes) == TN_ERR_ARGUMENT && nbytes == 99);
    CHECK(tn_shape_nbytes(TN_DTYPE_COUNT, 1, &n, &nbytes) == TN_ERR_ARGUMENT && nbytes == 99);
}

static void fill(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
}

static bool is_swapped(const uint8_t *dst, const uint8_t *src, size_t n, unsigned unit)
{
    for (size_t i = 0; i < n; i++)
        if (dst[i] != src[i / unit * unit + (unit - 1 - i % unit)])
            return false;
    return true;
}

static void swapping_reverses_every_unit(void)
{
    uint8_t source[8 * 130 + 1];
    fill(source, sizeof source);
    for (unsigned unit = 1; unit <= 8; unit *= 2) {
        for (size_t n = 0; n <= 130 * unit; n += unit) {
            for (size_t odd = 0; odd <= 1; odd++) {
                uint8_t *src = exact_copy(source, n + odd), *dst = exact_copy(source, n + odd);
                memset(dst, 0xee, n + odd);
                tn_swap_bytes(dst + odd, src + odd, n, unit);
                CHECK(is_swapped(dst + odd, src + odd, n, unit));
                CHECK(!odd || dst[0] == 0xee);
                CHECK(memcmp(src, source, n + odd) == 0);
                free(src);
                free(dst);
            }
        }
    }
}

static void swapping_works_in_place(void)
{
    uint8_t source[8 * 130 + 1];
    fill(source, sizeof source);
    for (unsigned unit = 1; unit <= 8; unit *= 2) {
        for (size_t n = 0; n <= 130 * unit; n += unit) {
            uint8_t *bytes = exact_copy(source, n + 1);
            tn_swap_bytes(bytes + 1, bytes + 1, n, unit);
            CHECK(is_swapped(bytes + 1, source + 1, n, unit) && bytes[0] == source[0]);
            tn_swap_bytes(bytes + 1, bytes + 1, n, unit);
            CHECK(memcmp(bytes, source, n + 1) == 0);
            free(bytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_shape_counts_its_elements),
        TEST(ranks_end_at_64),
        TEST(negative_extents_are_refused_wherever_they_stand),
        TEST(a_product_beyond_int64_is_refused),
        TEST(a_zero_extent_empties_any_shape),
        TEST(every_type_packs_densely),
        TEST(sub_byte_types_pack_across_rows),
        TEST(bytes_beyond_int64_are_refused),
        TEST(unknown_types_have_no_size),
        TEST(swapping_reverses_every_unit),
        TEST(swapping_works_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
