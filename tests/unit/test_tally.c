/* Tallies: every level against the scalar one, which is checked by hand. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "random.h"
#include "kernels/cast/table.h"
#include "kernels/stats/table.h"

static const unsigned levels[] = { TN_CPU_AVX2, TN_CPU_AVX2 | TN_CPU_AVX512, TN_CPU_NEON };

/* All levels that this machine has. */
static size_t each_level(void (*use)(const tn_stats_kernels *k))
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if ((levels[i] & ~tn_cpu_detect()) == 0) {
            tn_stats_kernels k;
            tn_stats_kernels_init(&k, levels[i]);
            use(&k);
            count++;
        }
    }
    return count;
}

static uint32_t bits32(void)
{
    return (uint32_t)(next_state() >> 32);
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Kinds of data that take different ways. */
enum { WEIGHTS, POSITIVE, ANY_BITS, SPECIALS, ZEROS, ONE_VALUE, NO_FINITE, SMALL, KINDS };
static float number(int kind, size_t i)
{
    static const uint32_t special[] = { 0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
                                        0x7f800001, 1, 0x807fffff,
                                        0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000 };
    float unit = (float)bits32() * 0x1p-32f;
    switch (kind) {
    case WEIGHTS:   return (unit - 0.5f) * (unit - 0.3f) * 0.1f;
    case POSITIVE:  return 1000 + unit;
    case ANY_BITS:  return from_bits(bits32());
    case SPECIALS:  return from_bits(special[bits32() % 13]);
    case ZEROS:     return bits32() % 3 ? 0 : unit - 0.5f;
    case ONE_VALUE: return -0.1f;
    case NO_FINITE: return from_bits(special[2 + bits32() % 5]);
    default:        return (i % 7 ? unit : -unit) * 0x1p-13f;      /* around float16's smallest normal */
    }
}

static void fill(float *x, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++)
        x[i] = number(kind, i);
}

static tn_tally tally(tn_tally_fn f, const void *x, size_t n)
{
    tn_tally t = { .smallest_normal = n % 2 ? 0x1p-126 : 0x1p-14 };
    f(&t, x, n);
    return t;
}

static bool same(const tn_tally *a, const tn_tally *b)
{
    return a->begun == b->begun && a->pivot == b->pivot && a->min == b->min && a->max == b->max &&
           a->count == b->count && a->zeros == b->zeros && a->subnormals == b->subnormals &&
           a->nans == b->nans && a->infinities == b->infinities &&
           memcmp(a->sum, b->sum, sizeof a->sum) == 0 &&
           memcmp(a->squares, b->squares, sizeof a->squares) == 0 &&
           memcmp(a->bins, b->bins, sizeof a->bins) == 0;
}

static void compare_levels(const tn_stats_kernels *k, const void *x, size_t n, int kind)
{
    tn_stats_kernels scalar;
    tn_stats_kernels_init(&scalar, 0);
    tn_tally a = tally(scalar.f32, x, n), b = tally(k->f32, x, n);
    if (!same(&a, &b))
        fail_msg("kind %d, %zu numbers: not the same as the scalar kernel", kind, n);
}

static void every_length(const tn_stats_kernels *k)
{
    float x[131];
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t n = 0; n <= 130; n++) {
            fill(x, n, kind);
            uint8_t *copy = exact_copy(x, 4 * n);
            compare_levels(k, copy, n, kind);
            free(copy);
        }
    }
}

static void levels_agree_for_every_length(void)
{
    each_level(every_length);
}

static void large_blocks(const tn_stats_kernels *k)
{
    static const size_t sizes[] = { 4096, 4097, 8191, 20000, 100003 };
    static float x[100003];
    static uint8_t odd[sizeof x + 3];
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < 5; i++) {
            fill(x, sizes[i], kind);
            memcpy(odd + 1 + i % 3, x, 4 * sizes[i]);
            compare_levels(k, odd + 1 + i % 3, sizes[i], kind);
        }
    }
}

static void levels_agree_in_large_blocks_at_odd_addresses(void)
{
    each_level(large_blocks);
}

/* One number of another kind in a block of weights. */
static void one_of_a_kind(const tn_stats_kernels *k)
{
    static const uint32_t kinds[] = { 0, 1, 0x7f800000, 0x7fc00000, 0x7f7fffff, 0x00800000, 0x80000001 };
    static float x[8192];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (size_t at = 0; at < 8192; at += 509) {
            fill(x, 8192, POSITIVE);
            x[at] = from_bits(kinds[i]);
            compare_levels(k, x, 8192, (int)i);
        }
    }
}

static void one_number_of_another_kind_is_found(void)
{
    each_level(one_of_a_kind);
}

/* The numbers end where memory does. */
static void at_a_guard_page(const tn_stats_kernels *k)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *memory = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && mprotect(memory + 8 * page, page, PROT_NONE) == 0);
    for (size_t n = 0; n < 2 * page; n += n < 130 ? 1 : 97) {
        float x[1];
        for (size_t i = 0; i < n; i++) {
            x[0] = number((int)(n % KINDS), i);
            memcpy(memory + 8 * page - 4 * n + 4 * i, x, 4);
        }
        compare_levels(k, memory + 8 * page - 4 * n, n, (int)(n % KINDS));
    }
    munmap(memory, 9 * page);
}

static void no_level_reads_beyond_the_end(void)
{
    each_level(at_a_guard_page);
}

/* Straight from 16 bits as through float32, whatever the block is like. */
static void compare_direct(const tn_stats_kernels *k, tn_dtype dtype, int kind)
{
    enum { BLOCKS = 3, N = BLOCKS * TN_TALLY_BLOCK };
    static float x[N];
    static uint8_t codes[2 * N];
    tn_tally_block_fn direct = dtype == TN_BFLOAT16 ? k->bf16 : k->f16;
    tn_cast_kernels cast;
    tn_stats_kernels scalar;
    tn_cast_kernels_init(&cast, 0);
    tn_stats_kernels_init(&scalar, 0);
    fill(x, N, kind);
    cast.from_f32[dtype](codes, x, N,
                         &(tn_cast_args){ .rules = tn_encode_rules_for(tn_dtype_get(dtype), NULL) });
    cast.to_f32[dtype](x, codes, N, &(tn_cast_args){ 0 });
    tn_tally a = { .smallest_normal = dtype == TN_FLOAT16 ? 0x1p-14 : 0x1p-126 }, b = a;
    scalar.f32(&a, x, TN_TALLY_BLOCK);          /* alone: the pivot is chosen among the first */
    scalar.f32(&a, x + TN_TALLY_BLOCK, N - TN_TALLY_BLOCK);
    scalar.f32(&b, x, TN_TALLY_BLOCK);
    for (size_t at = TN_TALLY_BLOCK; at < N && b.begun; at += TN_TALLY_BLOCK) {
        uint8_t *copy = exact_copy(codes + 2 * at - 1, 2 * TN_TALLY_BLOCK + 1);
        direct(&b, copy + 1);
        free(copy);
    }
    if (b.begun && !same(&a, &b))
        fail_msg("%s, kind %d: not the same as through float32", tn_dtype_get(dtype)->name, kind);
}

static void both_of_sixteen_bits(const tn_stats_kernels *k)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (k->bf16)
            compare_direct(k, TN_BFLOAT16, kind);
        if (k->f16)
            compare_direct(k, TN_FLOAT16, kind);
    }
}

static void types_of_sixteen_bits_are_tallied_as_float32(void)
{
    each_level(both_of_sixteen_bits);
}

static void pieces_of_whole_lanes_add_up_to_the_same(void)
{
    static float x[10000];
    tn_stats_kernels k;
    tn_stats_kernels_init(&k, tn_cpu_detect());
    for (int kind = 0; kind < KINDS; kind++) {
        fill(x, 10000, kind);
        x[0] = 1;                       /* the pivot is chosen among the first: keep them together */
        x[1] = -1;
        tn_tally whole = tally(k.f32, x, 10000), pieces = { .smallest_normal = whole.smallest_normal };
        for (size_t at = 0, n; at < 10000; at += n) {
            n = 256 + at % 5 * TN_TALLY_LANES;
            n = n < 10000 - at ? n : 10000 - at;
            k.f32(&pieces, x + at, n);
        }
        CHECK(same(&whole, &pieces));
    }
}

static void numbers_are_counted_by_kind_and_magnitude(void)
{
    static const float x[] = { 0, -0.0f, 1, -1.5f, 2, NAN, INFINITY, -INFINITY, 0x1p-130f, 0x1p-126f, 0x1p30f,
                               0x1p-40f, 0x1p-41f, 3 };
    tn_stats_kernels k;
    tn_stats_kernels_init(&k, 0);
    tn_tally t = tally(k.f32, x, 14);
    CHECK(t.count == 14 && t.zeros == 2 && t.nans == 1 && t.infinities == 2 && t.min == -1.5 &&
          t.max == 0x1p30 && t.pivot == 0);
    CHECK(t.bins[40] == 2 && t.bins[41] == 2 && t.bins[63] == 1 && t.bins[0] == 4);
    CHECK(t.subnormals == 4);           /* an even count: tally() takes float16's */
    t = tally(k.f32, x, 13);
    CHECK(t.subnormals == 1);
}

static void a_pivot_is_near_numbers_of_one_sign(void)
{
    static const double far[] = { NAN, 1e9, 1e9 + 1, 1e9 + 2 }, both[] = { 1e9, -1, 5 },
    none[] = { NAN, INFINITY };
    tn_stats_kernels k;
    tn_stats_kernels_init(&k, 0);
    tn_tally t = tally(k.f64, far, 4);
    CHECK(t.pivot == 1e9 && t.sum[1] == 0 && t.sum[2] == 1 && t.squares[3] == 4);
    CHECK(tally(k.f64, both, 3).pivot == 0);
    t = tally(k.f64, none, 2);
    CHECK(!t.begun && t.nans == 1 && t.infinities == 1 && t.count == 2);
}

static void bytes_are_counted(void)
{
    uint8_t bytes[1003];
    uint64_t counts[256] = { 0 }, expected[256] = { 0 };
    for (size_t i = 0; i < sizeof bytes; i++)
        expected[bytes[i] = (uint8_t)(bits32() >> 24 & (i % 3 ? 255 : 3))]++;
    tn_count_bytes(counts, bytes, sizeof bytes);
    CHECK(memcmp(counts, expected, sizeof counts) == 0);
    tn_count_bytes(counts, bytes, 0);
    CHECK(memcmp(counts, expected, sizeof counts) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers_are_counted_by_kind_and_magnitude),
        TEST(a_pivot_is_near_numbers_of_one_sign),
        TEST(bytes_are_counted),
        TEST(levels_agree_for_every_length),
        TEST(levels_agree_in_large_blocks_at_odd_addresses),
        TEST(one_number_of_another_kind_is_found),
        TEST(no_level_reads_beyond_the_end),
        TEST(types_of_sixteen_bits_are_tallied_as_float32),
        TEST(pieces_of_whole_lanes_add_up_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
