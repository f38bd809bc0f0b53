/* bare.c - a program without a C library that uses all of <tenon/mli.h> and prints a digest of the answers.
 *
 * Every target must print the same.  It runs on Linux for x86-64, i386 and ARM
 * (emulated), as there is nothing below it but two system calls. */
#include "bare.h"

#include <tenon/mli.h>

static void add_conversions(void)
{
    union { float f; uint32_t u; } x;
    uint32_t random = 1;
    for (int i = 0; i < 200000; i++) {
        random = random * 1664525u + 1013904223u;
        x.u = i & 1 ? random : (random & 0x807fffff) | (100 + (random >> 8 & 63)) << 23;
        int8_t narrow;
        int16_t wide;
        int32_t frac_bits = (int32_t)(random >> 10 & 63) - 24;
        tn_mli_round round = (tn_mli_round)(i >> 1 & 3);
        add((int32_t)tn_mli_float_to_fx8(x.f, frac_bits, round, &narrow));
        add((int32_t)tn_mli_float_to_fx16(x.f, frac_bits, round, &wide));
        add(narrow);
        add(wide);
        add(tn_mli_fx_to_fx8((int16_t)random, frac_bits, 7, round));
        add(tn_mli_fx_to_fx16((int16_t)random, frac_bits, 7, round));
        x.f = tn_mli_fx_to_float((int16_t)random, frac_bits * 4);
        add((int32_t)x.u);
    }
}

static int16_t elements[64];
static int16_t zeros[4] = { 1, -2, 3, -4 }, scales[4] = { 5, 6, 7, 8 };
static int8_t scale_bits[4] = { 9, -10, 11, -12 };
static const tn_mli_cut box = { { 1, 2, 3, 0 }, { 1, 1, 4, 0 }, 1 };
static const tn_mli_point point = { { 1, 2, 0, 0 }, 2, 2 };

static void add_1x(void)
{
    static tn_mli10_tensor a = { elements, sizeof elements, { 2, 4, 8, 0 }, 3, TN_MLI1_FX16, { { 12 } } },
    sub;
    static tn_mli11_tensor b, sub11;
    int32_t value = 0;
    uint32_t bytes = 0;
    add((int32_t)tn_mli10_check(&a));
    add((int32_t)tn_mli10_create_subtensor(&a, &box, &sub));
    add((int32_t)((int16_t *)sub.data - elements));
    add((int32_t)tn_mli10_point_to_subtensor(&a, &point, &sub));
    add((int32_t)((int16_t *)sub.data - elements));
    add((int32_t)sub.capacity);
    sub.rank = 0;
    add((int32_t)tn_mli10_scalar_set(&sub, -1234));
    add((int32_t)tn_mli10_scalar_get(&sub, &value));
    add(value);
    b.data = elements;
    b.capacity = sizeof elements;
    b.shape[0] = 2;
    b.shape[1] = 4;
    b.shape[2] = 8;
    b.rank = 3;
    b.el_type = TN_MLI1_FX16;
    add((int32_t)tn_mli11_create_subtensor(&b, &box, &sub11));
    add((int32_t)tn_mli11_bytes(&sub11, &bytes));
    add((int32_t)bytes);
    add(sub11.mem_stride[0]);
    b.data = (void *)1;
    b.capacity--;
    add((int32_t)tn_mli11_check(&b));
}

static void add_20(void)
{
    static tn_mli20_tensor t, sub;
    int32_t value = 0;
    t.data.capacity = sizeof elements;
    t.data.mem.pi16 = elements;
    t.shape[0] = 2;
    t.shape[1] = 4;
    t.shape[2] = 8;
    t.rank = 3;
    t.el_type = TN_MLI2_SA8;
    t.el_params.sa.zero_point.capacity = sizeof zeros;
    t.el_params.sa.zero_point.mem.pi16 = zeros;
    t.el_params.sa.scale.capacity = sizeof scales;
    t.el_params.sa.scale.mem.pi16 = scales;
    t.el_params.sa.dim = 1;
    t.el_params.sa.scale_frac_bits.capacity = sizeof scale_bits;
    t.el_params.sa.scale_frac_bits.mem.pi8 = scale_bits;
    add((int32_t)tn_mli20_check(&t));
    add((int32_t)tn_mli20_create_subtensor(&t, &box, &sub));
    add(sub.el_params.sa.scale.mem.i16);
    add(sub.el_params.sa.zero_point.mem.i16);
    add(sub.el_params.sa.scale_frac_bits.mem.i8);
    add((int32_t)tn_mli20_check(&sub));
    add((int32_t)tn_mli20_point_to_subtensor(&t, &point, &sub));
    add((int32_t)(sub.el_params.sa.scale.mem.pi16 - scales));
    add((int32_t)tn_mli20_count(&sub, 0));
    sub.rank = 0;
    sub.data.capacity = 0;
    sub.el_type = TN_MLI2_FX16;
    add((int32_t)tn_mli20_scalar_set(&sub, -4321));
    add((int32_t)tn_mli20_scalar_get(&sub, &value));
    add(value);
}

ENTRY void _start(void);
ENTRY void _start(void)
{
    add_conversions();
    add_1x();
    add_20();
    print_digest_and_end();
}
