/* Elements that lie apart, by every way of reading them, against one at a time. */
#include "support.h"

#include "store/gather.h"
#include "make.h"
#include "tensor/array.h"
#include "tensor/code.h"

#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 3 << 20, OFFSET = 3 };

static uint8_t stored[OFFSET + BYTES];

typedef struct laid {
    tn_dtype dtype;
    uint32_t rank;
    int64_t  shape[5], stride[5];
} laid;

static const laid all[] = {
    { TN_UINT32, 2, { 400, 500 }, { 1, 400 } },                         /* columns */
    { TN_UINT8, 2, { 3, 100000 }, { 1, 3 } },
    { TN_UINT64, 2, { 50000, 3 }, { 1, 50000 } },
    { TN_COMPLEX128, 3, { 11, 13, 17 }, { 1, 11, 143 } },
    { TN_UINT16, 4, { 7, 5, 9, 11 }, { 1, 7, 35, 315 } },
    { TN_UINT32, 3, { 40, 50, 60 }, { 60, 2400, 1 } },                  /* other orders */
    { TN_UINT32, 3, { 40, 50, 60 }, { 1, 2400, 40 } },
    { TN_UINT16, 3, { 30, 40, 50 }, { 2400, 60, 1 } },                  /* padding */
    { TN_UINT16, 3, { 30, 40, 50 }, { 6000, 150, 3 } },
    { TN_FLOAT32, 2, { 300, 40 }, { 2000, 1 } },
    { TN_FLOAT32, 2, { 300, 1 }, { 2000, 1 } },
    { TN_FLOAT32, 2, { 60, 70 }, { 0, 5000 } },                         /* the same again, or far away */
    { TN_FLOAT32, 2, { 60, 70 }, { 3, 0 } },
    { TN_FLOAT32, 3, { 20, 30, 40 }, { 5, 7, 11 } },                    /* one inside the other */
    { TN_UINT8, 1, { 300 }, { 10000 } },
    { TN_UINT8, 0, { 0 }, { 0 } },
    { TN_UINT8, 3, { 1, 1, 1 }, { 9, 8, 7 } },
    { TN_INT4, 2, { 200, 302 }, { 1, 200 } },                           /* narrower than a byte */
    { TN_UINT2, 3, { 24, 31, 32 }, { 1, 24, 744 } },
    { TN_FLOAT6_E2M3, 2, { 64, 500 }, { 1, 64 } },
    { TN_FLOAT6_E2M3, 2, { 64, 80 }, { 99, 1 } },
};

static void fill_stored(void)
{
    for (size_t i = 0; i < sizeof stored; i++)
        stored[i] = (uint8_t)(i * 2654435761u >> 13);
}

/* Element i of the part; of narrow ones one bit after the other. */
static void take_element(const laid *l, uint64_t i, uint8_t *out, uint64_t to)
{
    unsigned bits = tn_dtype_get(l->dtype)->bits;
    uint64_t at = 0;
    for (uint32_t k = l->rank; k-- > 0; i /= (uint64_t)l->shape[k])
        at += i % (uint64_t)l->shape[k] * (uint64_t)l->stride[k];
    if (bits % 8 == 0)
        memcpy(out + to * bits / 8, stored + OFFSET + at * bits / 8, bits / 8);
    for (unsigned b = 0; b < bits && bits % 8; b++) {
        uint64_t from = at * bits + b, bit = to * bits + b;
        unsigned value = stored[OFFSET + from / 8] >> from % 8 & 1;
        out[bit / 8] = (uint8_t)((out[bit / 8] & ~(1u << bit % 8)) | value << bit % 8);
    }
}

static void check_range(const laid *l, const tn_gather *g, uint64_t first, uint64_t count)
{
    const tn_grid grid = { tn_dtype_get(l->dtype)->bits, l->rank, l->shape, l->stride };
    size_t n = (size_t)tn_packed_bytes(count, tn_dtype_get(l->dtype)->bits);
    uint8_t *found = calloc(n ? n : 1, 1), *expected = calloc(n ? n : 1, 1);
    CHECK(found && expected);
    for (uint64_t i = 0; i < count; i++)
        take_element(l, first + i, expected, i);
    CHECK(tn_gather_elements(g, &grid, first, count, found, NULL) == TN_OK);
    assert_memory_equal(found, expected, n);
    free(found);
    free(expected);
}

/* All of it, and ranges that begin and end anywhere. */
static void check_layout(const laid *l, const tn_gather *g)
{
    uint64_t count, span;
    CHECK(tn_shape_count(l->rank, l->shape, &count) == TN_OK);
    CHECK(tn_strided_nbytes(l->dtype, l->rank, l->shape, l->stride, &span) == TN_OK && span <= BYTES);
    check_range(l, g, 0, count);
    for (uint64_t k = 0; k < 12; k++) {
        uint64_t first = count * k / 13, n = (count - first) * (k * 7 % 12 + 1) / 12;
        check_range(l, g, first, n < 3000 ? n : 3000);
    }
    check_range(l, g, count - 1, 1);
    check_range(l, g, count, 0);
}

static void check_all(const tn_source *source)
{
    static const size_t caps[] = { 64, 100, 1000, 196608 };
    for (size_t k = 0; k < sizeof caps / sizeof *caps; k++) {
        tn_gather g = { source, OFFSET, malloc(caps[k]), caps[k] };
        assert_non_null(g.buffer);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            check_layout(&all[i], &g);
        free(g.buffer);
    }
}

static void elements_are_gathered_from_memory(void)
{
    tn_source *source;
    fill_stored();
    CHECK(tn_source_open_memory(stored, sizeof stored, &source, NULL) == TN_OK);
    check_all(source);
    tn_source_close(source);
}

static void elements_are_gathered_from_a_file_that_is_read(void)
{
    tn_source *source;
    fill_stored();
    FILE *file = fopen(in_folder("s").text, "wb");
    CHECK(file && fwrite(stored, 1, sizeof stored, file) == sizeof stored && fclose(file) == 0);
    CHECK(tn_source_open(in_folder("s").text, TN_IO_PREAD, &source, NULL) == TN_OK);
    check_all(source);
    tn_source_close(source);
}

/* What was read so far: calls, and bytes. */
typedef struct tally { unsigned long long calls, bytes; } tally;

static tally reads(void)
{
    tally t = { 0, 0 };
    char line[80];
    FILE *f = fopen("/proc/self/io", "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f)) {
        sscanf(line, "syscr: %llu", &t.calls);
        sscanf(line, "rchar: %llu", &t.bytes);
    }
    CHECK(fclose(f) == 0);
    return t;
}

/* What is near is read along with the rest; what is far is not. */
static void columns_take_few_reads_of_little_more_than_they_need(void)
{
    static const struct {
        int64_t shape[2], stride[2];
        uint64_t count;
        unsigned long long calls, bytes;
    } some[] = {
        { { 1500, 2000 }, { 1, 1500 }, 3000000, 60, 3100000 },
        { { 3, 1000000 }, { 1, 3 }, 3000000, 60, 3100000 },
        { { 1500, 2000 }, { 1, 1500 }, 20000, 60, 3100000 }, /* ten rows, from all columns */
        { { 30000, 100 }, { 1, 30000 }, 1000, 160, 10000 },
    };
    uint8_t *buffer = malloc(196608), *out = malloc(BYTES);
    tn_source *source;
    CHECK(buffer && out);
    FILE *file = fopen(in_folder("s").text, "wb");
    CHECK(file && fwrite(stored, 1, sizeof stored, file) == sizeof stored && fclose(file) == 0);
    CHECK(tn_source_open(in_folder("s").text, TN_IO_PREAD, &source, NULL) == TN_OK);
    const tn_gather g = { source, OFFSET, buffer, 196608 };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const tn_grid grid = { 8, 2, some[i].shape, some[i].stride };
        tally before = reads();
        CHECK(tn_gather_elements(&g, &grid, 0, some[i].count, out, NULL) == TN_OK);
        tally after = reads();
        CHECK(after.calls - before.calls < some[i].calls && after.bytes - before.bytes < some[i].bytes);
    }
    tn_source_close(source);
    free(buffer);
    free(out);
}

static void a_source_that_is_too_short_is_an_error(void)
{
    static const laid l = { TN_UINT8, 2, { 3, 50 }, { 1, 3 } };
    uint8_t buffer[64], out[150];
    tn_source *source;
    tn_error err = { .text = "" };
    CHECK(tn_source_open_memory(stored, OFFSET + 149, &source, NULL) == TN_OK);
    const tn_gather g = { source, OFFSET, buffer, sizeof buffer };
    const tn_grid grid = { 8, 2, l.shape, l.stride };
    CHECK(tn_gather_elements(&g, &grid, 0, 150, out, &err) == TN_ERR_TRUNCATED && err.text[0]);
    tn_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(elements_are_gathered_from_memory),
        IN_FOLDER(elements_are_gathered_from_a_file_that_is_read),
        IN_FOLDER(columns_take_few_reads_of_little_more_than_they_need),
        TEST(a_source_that_is_too_short_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
