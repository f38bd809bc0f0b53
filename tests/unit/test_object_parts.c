/* The parts of objects that several processes make: what a store takes, whatever the pieces are. */
#include "support.h"

#include "pipeline/object_parts.h"

#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
enum { SPANS = 20000 };

static uint64_t state = 1;

static uint64_t pick(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 20) % below;
}

static tn_object_span spans[SPANS];

/* What one piece makes has gaps and bytes of nobody in it. */
static size_t make_spans(uint64_t each, uint64_t size)
{
    uint64_t at = pick(1000000) + 8;
    size_t n = 0;
    while (n < SPANS && at < size) {
        uint64_t bytes = pick(8) ? each / 2 + pick(each) : pick(100) + 1;
        bytes = bytes < size - at ? bytes : size - at;
        spans[n] = (tn_object_span){ at, at + bytes, pick(5) ? (uint32_t)n : TN_NO_PIECE };
        at += bytes + (pick(3) ? 0 : pick(64));
        n++;
    }
    return n;
}

/* Whether [begin, end) is part of what a piece makes. */
static bool is_of(uint64_t begin, uint64_t end, uint32_t piece)
{
    return spans[piece].piece == piece && spans[piece].begin <= begin && end <= spans[piece].end;
}

static void check_parts(size_t n, uint64_t size)
{
    tn_sink_part *parts = NULL;
    size_t count = 0;
    uint64_t by_pieces = 0, usual = tn_object_part_bytes(size);
    CHECK(tn_object_parts(spans, n, size, &parts, &count, NULL) == TN_OK);
    CHECK(count > 0 && parts[0].begin == 0 && parts[count - 1].piece == TN_NO_PIECE);
    for (size_t i = 0; i + 1 < count; i++) {
        uint64_t bytes = parts[i + 1].begin - parts[i].begin;
        CHECK(parts[i + 1].begin > parts[i].begin && bytes >= TN_PART_LEAST && bytes <= 5 * GIB);
        if (parts[i].piece != TN_NO_PIECE) {
            CHECK(is_of(parts[i].begin, parts[i + 1].begin, parts[i].piece));
            by_pieces += bytes;
        }
    }
    CHECK(parts[count - 1].begin <= size);
    CHECK(count + (size - parts[count - 1].begin) / usual <= 10000);
    for (size_t i = 0; i < n; i++)      /* what is large is sent by who makes it */
        if (spans[i].piece != TN_NO_PIECE && spans[i].end - spans[i].begin > 1300 * MIB)
            CHECK(by_pieces > 0);
    free(parts);
}

static void parts_of_any_pieces_are_what_a_store_takes(void **unused)
{
    static const uint64_t sizes[] = { 0, 1, 5 * MIB, 100 * MIB, 10 * GIB, 70 * GIB, 500 * GIB, 5120 * GIB };
    static const uint64_t pieces[] = { 1000, 3 * MIB, 6 * MIB, 64 * MIB, 700 * MIB, 3 * GIB };
    (void)unused;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
            check_parts(make_spans(pieces[p], sizes[s]), sizes[s]);
}

static void header_and_what_follows_belong_to_who_publishes(void **unused)
{
    tn_sink_part *parts = NULL;
    size_t count = 0;
    (void)unused;
    spans[0] = (tn_object_span){ 100, 64 * MIB, 0 };
    spans[1] = (tn_object_span){ 64 * MIB, 64 * MIB + 4, TN_NO_PIECE };
    spans[2] = (tn_object_span){ 64 * MIB + 4, 96 * MIB, 2 };
    CHECK(tn_object_parts(spans, 3, 96 * MIB, &parts, &count, NULL) == TN_OK);
    assert_int_equal(count, 9);
    assert_int_equal(parts[1].begin, 5 * MIB);
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(parts[i].piece, 0);
    CHECK(parts[5].begin == 64 * MIB && parts[5].piece == TN_NO_PIECE);
    CHECK(parts[6].begin == 69 * MIB && parts[6].piece == 2);
    CHECK(parts[7].piece == 2 && parts[8].piece == TN_NO_PIECE);
    free(parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_any_pieces_are_what_a_store_takes),
        cmocka_unit_test(header_and_what_follows_belong_to_who_publishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
