/* Tests of store/kept.c: how much decoded data may be kept. */
#include "support.h"

#include "store/kept.h"

#define GIB (UINT64_C(1) << 30)

static const int64_t few[1] = { 4 };

/* One of the last few: each has a place of its own. */
static tn_part part_at(uint64_t offset, uint64_t stored, uint64_t decoded)
{
    static tn_stored places[64];
    static size_t used;
    tn_stored *place = &places[used++ % 64];
    *place = (tn_stored){ .offset = offset, .size = stored, .encoding = TN_ENCODING_ZSTD };
    return (tn_part){ .role = "data", .array = { TN_UINT8, 1, few, NULL }, .nbytes = decoded,
                      .stored = place };
}

static tn_part part_of(uint64_t stored, uint64_t decoded)
{
    return part_at(0, stored, decoded);
}

static tn_status check_one(uint64_t stored, uint64_t decoded, uint64_t max_bytes, tn_error *err)
{
    tn_part p = part_of(stored, decoded);
    tn_tensor t = { .name = "t", .form = TN_FORM_DENSE, .parts = &p, .nparts = 1 };
    const tn_tensor *all[] = { &t };
    return tn_check_decoded(all, 1, max_bytes, err);
}

static void the_usual_limit_is_a_gigabyte_or_a_thousand_times(void)
{
    CHECK(tn_kept_limit(0, 0) == GIB);
    CHECK(tn_kept_limit(0, 1073741) == GIB && tn_kept_limit(0, 1073742) == 1073742000);
    CHECK(tn_kept_limit(0, UINT64_MAX) == UINT64_MAX);
    CHECK(tn_kept_limit(0, UINT64_MAX / 1000 + 1) == UINT64_MAX);
    CHECK(tn_kept_limit(7, GIB) == 7);
}

static void one_tensor_is_held_against_the_limit(void)
{
    tn_error err;
    CHECK(check_one(10, GIB, 0, &err) == TN_OK);
    CHECK(check_one(10, GIB + 1, 0, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err),
                        "tensor \"t\": 10 stored bytes would be decoded into 1073741825, more than the "
                        "1073741824 allowed (max_bytes)");
    CHECK(check_one(10, GIB + 1, GIB + 1, &err) == TN_OK);
    CHECK(check_one(2 * GIB, 2000 * GIB, 0, &err) == TN_OK);
    CHECK(check_one(2 * GIB, 2000 * GIB + 1, 0, &err) == TN_ERR_LIMIT);
    CHECK(check_one(10, 20, 19, NULL) == TN_ERR_LIMIT);
}

static void what_does_not_grow_has_no_limit(void)
{
    CHECK(check_one(5 * GIB, 5 * GIB, 1, NULL) == TN_OK);
    CHECK(check_one(5 * GIB, 4 * GIB, 1, NULL) == TN_OK);
    CHECK(check_one(0, 0, 1, NULL) == TN_OK);
}

static void tensors_are_added_up(void)
{
    tn_part parts[2] = { part_at(0, 10, GIB / 2), part_at(10, 10, GIB / 2) };
    tn_part one = part_at(20, 10, GIB / 2 + 1);
    tn_tensor a = { .name = "a", .parts = parts, .nparts = 2 };
    tn_tensor b = { .name = "b", .parts = &one, .nparts = 1 };
    const tn_tensor *all[] = { &a, &b };
    tn_error err;
    CHECK(tn_check_decoded(all, 1, 0, &err) == TN_OK);
    CHECK(tn_check_decoded(all + 1, 1, 0, &err) == TN_OK);
    CHECK(tn_check_decoded(all, 2, 0, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err),
                        "2 tensors, the largest is \"b\": 30 stored bytes would be decoded into "
                        "1610612737, more than the 1073741824 allowed (max_bytes)");
    CHECK(tn_check_decoded(NULL, 0, 1, &err) == TN_OK);
}

/* 4 MiB that 2000 tensors have in common, and 4 MiB of their own each. */
static void shared_bytes_count_once(void)
{
    enum { N = 2000 };
    static tn_tensor tensors[N];
    static tn_part shared[N], apart[N];
    static const tn_tensor *all[N];
    const uint64_t size = UINT64_C(4) << 20;
    tn_error err;
    for (size_t i = 0; i < N; i++) {
        shared[i] = part_at(64, size, size);
        apart[i] = part_at(64 + i * size, size, size);
        tensors[i] = (tn_tensor){ .name = "t", .form = TN_FORM_DENSE, .parts = &shared[i], .nparts = 1 };
        all[i] = &tensors[i];
    }
    CHECK(tn_check_decoded(all, N / 2, 0, &err) == TN_OK);
    CHECK(tn_check_decoded(all, 2, size, &err) == TN_OK);
    CHECK(tn_check_decoded(all, N, 0, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err), "tensors share stored bytes: their copies would take 8384413632 bytes, "
                        "more than the 4194368000 allowed (max_bytes)");
    CHECK(tn_check_decoded(all, N, 2000 * size, &err) == TN_OK);
    for (size_t i = 0; i < N; i++)
        shared[i].nbytes = 999 * size;          /* each of them alone is within the limit */
    CHECK(tn_check_decoded(all, 1, 0, &err) == TN_OK);
    CHECK(tn_check_decoded(all, N, 0, &err) == TN_ERR_LIMIT);
    for (size_t i = 0; i < N; i++)
        tensors[i].parts = &apart[i];
    CHECK(tn_check_decoded(all, N, 1, &err) == TN_OK);
}

static void sums_beyond_64_bits_stay_the_largest_number(void)
{
    tn_part parts[2] = { part_of(1, UINT64_MAX), part_of(1, UINT64_MAX) };
    tn_tensor t = { .name = "t", .parts = parts, .nparts = 2 };
    const tn_tensor *all[] = { &t };
    CHECK(tn_check_decoded(all, 1, UINT64_MAX - 1, NULL) == TN_ERR_LIMIT);
}

/* A tensor that another process offers, whose strides are 0: four bytes stand for a terabyte. */
static void elements_in_memory_that_lie_on_each_other_are_a_bomb(void)
{
    const int64_t shape[2] = { 1 << 20, 1 << 18 }, none[2] = { 0, 0 }, dense[2] = { 1 << 18, 1 };
    tn_part p = { .role = "data", .array = { TN_FLOAT32, 2, shape, none }, .nbytes = UINT64_C(1) << 40,
                  .data = "abc" };
    tn_tensor t = { .name = "t", .form = TN_FORM_DENSE, .parts = &p, .nparts = 1 };
    const tn_tensor *all[] = { &t };
    tn_error err;
    CHECK(tn_check_decoded(all, 1, 0, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err),
                        "tensor \"t\": 4 stored bytes would be decoded into 1099511627776, more than the "
                        "1073741824 allowed (max_bytes)");
    p.array.stride = dense;
    CHECK(tn_check_decoded(all, 1, 0, &err) == TN_OK);
    p.array.stride = NULL;
    CHECK(tn_check_decoded(all, 1, 0, &err) == TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_usual_limit_is_a_gigabyte_or_a_thousand_times),
        TEST(one_tensor_is_held_against_the_limit),
        TEST(what_does_not_grow_has_no_limit),
        TEST(tensors_are_added_up),
        TEST(shared_bytes_count_once),
        TEST(sums_beyond_64_bits_stay_the_largest_number),
        TEST(elements_in_memory_that_lie_on_each_other_are_a_bomb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
