/* check_lookup.c - every level of the lookup kernels against the scalar one.
 *
 *     check_lookup [LEVEL]
 *
 * Every length 0..130 and a few long ones, random codes, special scales, at any address up to a page that must
 * not be touched.  One line per kernel; fails if one does. */
#include "check.h"

#include <math.h>

#include "kernels/lookup/table.h"

enum { MOST = 130, LONG = 1000 };

static uint8_t *in_room, *out_room, *expected_room;

enum { IN_ROOM = 4 * LONG, OUT_ROOM = 4 * LONG };

static size_t length(unsigned i)
{
    return i <= MOST ? i : MOST + (size_t)below(LONG - MOST);
}

static uint8_t *fill(size_t size)
{
    uint8_t *in = in_room + (IN_ROOM - size);
    for (size_t i = 0; i < size; i++)
        in[i] = (uint8_t)below(256);
    return in;
}

static bool same(size_t size)
{
    return memcmp(out_room + (OUT_ROOM - size), expected_room + (OUT_ROOM - size), size) == 0;
}

static bool check_fours(const tn_lookup_kernels *k, const tn_lookup_kernels *definition)
{
    static const float scales[] = { 1, -0.37f, 0, 3e38f, 1e-44f, INFINITY, NAN };
    float table[16], *out, *expected;
    bool good = true;
    for (unsigned i = 0; i <= MOST + 20; i++)
        for (unsigned s = 0; s < sizeof scales / sizeof *scales; s++) {
            size_t n = length(i);
            const uint8_t *in = fill((n + 1) / 2);
            for (unsigned t = 0; t < 16; t++)
                table[t] = t % 5 ? (float)below(2000) / 1000 - 1 : 0;
            out = (float *)(void *)(out_room + (OUT_ROOM - n * sizeof *out));
            expected = (float *)(void *)(expected_room + (OUT_ROOM - n * sizeof *out));
            k->fours(out, in, n, table, scales[s]);
            definition->fours(expected, in, n, table, scales[s]);
            good &= same(n * sizeof *out);
        }
    return good;
}

static bool check_fours_to_bf16(const tn_lookup_kernels *k, const tn_lookup_kernels *definition)
{
    static const float odd[] = { 1, -0.37f, 0, 3e38f, 1e-44f, INFINITY, NAN, 0x1.01p0f };
    float number[16], scale[8], shift[8];
    bool good = true;
    for (unsigned i = 0; i < 2000; i++) {
        size_t tiles = (size_t)below(9), each = 16 * (1 + (size_t)below(i % 2 ? 4 : 1)), n = tiles * each;
        const uint8_t *in = fill(n / 2);
        for (unsigned t = 0; t < 16; t++)
            number[t] = i % 3 ? (float)t : (float)below(2000) / 1000 - 1;
        for (unsigned t = 8; t < 16 && i % 9 == 0; t++)         /* those of a float with a sign */
            number[t] = -number[t - 8];
        for (unsigned t = 0; t < 8; t++) {
            scale[t] = i % 5 ? (float)below(2000) / 999 - 1 : odd[below(8)];
            shift[t] = i % 7 ? (float)below(16) : odd[below(8)];
        }
        const tn_lookup_values values = { .number = number, .scale = scale, .shift = i % 4 ? shift : NULL,
                                          .shifts_first = i % 4 == 1, .high_first = i % 2 };
        k->fours_to_bf16(out_room + (OUT_ROOM - 2 * n), in, tiles, each, &values);
        definition->fours_to_bf16(expected_room + (OUT_ROOM - 2 * n), in, tiles, each, &values);
        good &= same(2 * n);
    }
    return good;
}

static bool check_e4m3(const tn_lookup_kernels *k, const tn_lookup_kernels *definition)
{
    static const float scales[] = { 1, -0.37f, 0, 3e38f, 1e-44f, INFINITY, NAN, 0x1.01p0f, 0x1.fffffep118f,
                                    -0x1p119f, 0x1p-125f, -0x1.8p-120f, 0x1p100f,
                                    -0x1.000002p100f, -0x1p-100f, 0x1.fffffep-101f, 0x1.fdfdfep-7f };
    const size_t count = sizeof scales / sizeof *scales;
    bool good = true;
    for (unsigned i = 0; i <= MOST + 200; i++) {
        size_t n = length(i);
        const uint8_t *in = fill(n);
        k->e4m3_to_bf16(out_room + (OUT_ROOM - 2 * n), in, n, scales[i % count]);
        definition->e4m3_to_bf16(expected_room + (OUT_ROOM - 2 * n), in, n, scales[i % count]);
        good &= same(2 * n);
    }
    return good;
}

static bool check_swap(const tn_lookup_kernels *k, const tn_lookup_kernels *definition)
{
    bool good = true;
    for (unsigned i = 0; i <= MOST + 20; i++) {
        size_t n = length(i);
        const uint8_t *in = fill(n);
        k->swap_halves(out_room + (OUT_ROOM - n), in, n);
        definition->swap_halves(expected_room + (OUT_ROOM - n), in, n);
        good &= same(n) && (!n || out_room[OUT_ROOM - 1] == (uint8_t)(in[n - 1] >> 4 | in[n - 1] << 4));
    }
    return good;
}

/* Rows in any order, one after the other. */
static bool check_eights(const tn_lookup_kernels *k, const tn_lookup_kernels *definition)
{
    bool good = true;
    for (unsigned i = 0; i <= MOST + 20; i++) {
        size_t n = length(i), row = (n + 1) / 2;
        const uint32_t *in = (const uint32_t *)(const void *)fill(n * sizeof *in);
        uint8_t *out[8], *expected[8];
        for (unsigned r = 0; r < 8; r++) {
            unsigned at = (r * 3 + i) % 8 + 1;
            out[r] = out_room + (OUT_ROOM - at * row);
            expected[r] = expected_room + (OUT_ROOM - at * row);
        }
        k->eights(out, in, n);
        definition->eights(expected, in, n);
        good &= same(8 * row) && (!n || (out[5][0] & 15) == (in[0] >> 20 & 15));
    }
    return good;
}

static void check_level(unsigned cpu)
{
    tn_lookup_kernels k, definition;
    tn_lookup_kernels_init(&k, cpu);
    tn_lookup_kernels_init(&definition, 0);
    report(tn_cpu_name(cpu), "fours", check_fours(&k, &definition));
    report(tn_cpu_name(cpu), "fours_to_bf16", check_fours_to_bf16(&k, &definition));
    report(tn_cpu_name(cpu), "e4m3_to_bf16", check_e4m3(&k, &definition));
    report(tn_cpu_name(cpu), "swap_halves", check_swap(&k, &definition));
    report(tn_cpu_name(cpu), "eights", check_eights(&k, &definition));
}

int main(int argc, char **argv)
{
    in_room = guarded(IN_ROOM);
    out_room = guarded(OUT_ROOM);
    expected_room = guarded(OUT_ROOM);
    return check_levels(argc, argv, check_level);
}
