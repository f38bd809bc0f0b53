/* test_mli_convert.c - every conversion that embARC MLI was asked for: its arithmetic gives its bytes, and
 * the exact one differs from them in as many values, and by as much, as MLI errs.  The functions for firmware
 * are held against the same answers. */
#include "support.h"

#include "affine.h"

#include <math.h>
#include <stdio.h>
#include <zstd.h>

#include "files.h"

#include <tenon/mli.h>
#include <tenon/tenon.h>

enum { SCALES = 64, FIELDS = 12 };

typedef struct side {
    const char *name;                   /* "fx8", "sa32", "fp32" ... */
    tn_dtype    dtype;
    int32_t     bits;                   /* frac_bits of fx */
    tn_scales   scales;
    float       scale[SCALES];
    int32_t     zero[SCALES];
    int64_t     stride[TN_MLI_MAX_RANK];
    const uint8_t *bytes;               /* with the gaps between its elements */
    size_t      nbytes;
} side;

typedef struct golden {
    size_t   number;
    tn_round round;                     /* of codes to codes */
    uint32_t rank;
    int64_t  shape[TN_MLI_MAX_RANK];
    uint64_t count;
    side     from, to;
    uint64_t differ;                    /* values that are not the exact ones */
    int64_t  largest;                   /* of those differences; of floats it was not looked for */
} golden;

/* ---- Reading ---- */

static uint32_t numbers(const char *text, int64_t *list, uint32_t cap)
{
    uint32_t n = 0;
    for (char *end; n < cap; text = end + 1) {
        list[n++] = strtoll(text, &end, 10);
        CHECK(end != text);
        if (*end == '\0')
            return n;
    }
    fail_msg("expected at most %u numbers", cap);
    return 0;
}

/* "7" fractional bits, or "AXIS;SCALE/ZERO/BITS;..." */
static void read_scales(side *s, char *text)
{
    int axis = TN_PER_TENSOR, scale, zero, bits;
    s->scales = (tn_scales){ .axis = axis, .scale = s->scale };
    if (strcmp(s->name, "fp32") == 0)
        return;
    if (s->name[0] == 'f') {
        s->bits = atoi(text);
        s->scale[0] = ldexpf(1, -s->bits);
        return;
    }
    CHECK(sscanf(text, "%d", &axis) == 1);
    s->scales.axis = axis;
    s->scales.zero = s->zero;
    for (size_t i = 0; (text = strchr(text, ';')) != NULL; i++) {
        CHECK(i < SCALES && sscanf(++text, "%d/%d/%d", &scale, &zero, &bits) == 3);
        s->scale[i] = ldexpf((float)scale, -bits);
        s->zero[i] = zero;
    }
}

static void read_side(golden *g, side *s, const char *type, char *scales, const char *strides,
                      const uint8_t *bytes, size_t left)
{
    s->name = type;
    s->dtype = strcmp(type, "fp32") == 0 ? TN_FLOAT32 : strcmp(type, "fx16") == 0 ? TN_INT16 :
               strcmp(type, "sa32") == 0 ? TN_INT32 : TN_INT8;
    read_scales(s, scales);
    CHECK(numbers(strides, s->stride, TN_MLI_MAX_RANK) == g->rank);
    size_t elements = 1;
    for (uint32_t i = 0; i < g->rank; i++)
        elements += (size_t)((g->shape[i] - 1) * s->stride[i]);
    s->bytes = bytes;
    s->nbytes = elements * tn_dtype_get(s->dtype)->bits / 8;
    CHECK(s->nbytes <= left);
}

static void read_golden(golden *g, char *line, const uint8_t *bytes, size_t size)
{
    char *field[FIELDS];
    size_t n = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at && n < FIELDS; at = strchr(at, '\t')) {
        if (n)
            *at++ = '\0';
        field[n++] = at;
    }
    CHECK(n == FIELDS);
    g->round = strcmp(field[0], "up") == 0 ? TN_ROUND_HALF_UP : TN_ROUND_EVEN;
    g->rank = numbers(field[5], g->shape, TN_MLI_MAX_RANK);
    CHECK(tn_shape_count(g->rank, g->shape, &g->count) == TN_OK);
    size_t input = strtoul(field[8], NULL, 10), output = strtoul(field[9], NULL, 10);
    CHECK(input <= size && output <= size);
    read_side(g, &g->from, field[1], field[2], field[6], bytes + input, size - input);
    read_side(g, &g->to, field[3], field[4], field[7], bytes + output, size - output);
    g->differ = strtoull(field[10], NULL, 10);
    g->largest = strtoll(field[11], NULL, 10);
}

static size_t each_golden(void (*use)(const golden *g))
{
    static uint8_t bytes[1 << 20];
    char line[1024];
    size_t n, cases = 0;
    uint8_t *packed = load_file(TEST_GOLDEN "/mli/convert.zst", &n);
    n = ZSTD_decompress(bytes, sizeof bytes, packed, n);
    CHECK(!ZSTD_isError(n));
    free(packed);
    FILE *table = fopen(TEST_GOLDEN "/mli/convert.tsv", "r");
    assert_non_null(table);
    while (fgets(line, sizeof line, table)) {
        golden g = { .number = cases };
        if (line[0] == '#')
            continue;
        read_golden(&g, line, bytes, n);
        use(&g);
        cases++;
    }
    fclose(table);
    return cases;
}

/* ---- Arrays ---- */

static tn_array dense_array(const golden *g, const side *s)
{
    return (tn_array){ .dtype = s->dtype, .rank = g->rank, .shape = g->shape };
}

static tn_array strided_array(const golden *g, const side *s)
{
    return (tn_array){ .dtype = s->dtype, .rank = g->rank, .shape = g->shape, .stride = s->stride };
}

static void *room_for(const golden *g, const side *s)
{
    void *room = malloc((size_t)g->count * tn_dtype_get(s->dtype)->bits / 8);
    assert_non_null(room);
    return room;
}

/* A side's elements without the gaps. */
static void *gather(const golden *g, const side *s)
{
    void *dense = room_for(g, s), *bytes = exact_copy(s->bytes, s->nbytes);
    const tn_array to = dense_array(g, s), from = strided_array(g, s);
    CHECK(tn_reorder(&to, dense, &from, bytes, NULL, NULL) == TN_OK);
    free(bytes);
    return dense;
}

/* The destination's elements, computed. */
static void *convert(const golden *g, tn_arithmetic arithmetic)
{
    const side *from = &g->from, *to = &g->to;
    const tn_array dst = dense_array(g, to), src = dense_array(g, from);
    void *in = gather(g, from), *out = room_for(g, to);
    affine_options o = { .axis = to->scales.axis, .round = TN_ROUND_AWAY, .jobs = 1, .arithmetic = arithmetic };
    const tn_requantize_options r = { .size = sizeof r, .round = g->round, .jobs = 1, .arithmetic = arithmetic };
    tn_error err = { .text = "" };
    tn_status status;
    if (from->dtype == TN_FLOAT32) {
        status = affine_quantize(&dst, out, &src, in, to->scale, to->scales.zero, &o, &err);
    } else if (to->dtype == TN_FLOAT32) {
        o.axis = from->scales.axis;
        status = affine_dequantize(&dst, out, &src, in, from->scale, from->scales.zero, &o, &err);
    } else {
        status = tn_requantize(&dst, out, &to->scales, &src, in, &from->scales, &r, &err);
    }
    if (status)
        fail_msg("case %zu: %s", g->number, line_of(&err));
    free(in);
    return out;
}

static void check_bytes(const golden *g)
{
    void *out = convert(g, TN_ARITH_MLI);
    uint8_t *bytes = malloc(g->to.nbytes);
    const tn_array dst = strided_array(g, &g->to), src = dense_array(g, &g->to);
    assert_non_null(bytes);
    memset(bytes, 0xA5, g->to.nbytes);
    CHECK(tn_reorder(&dst, bytes, &src, out, NULL, NULL) == TN_OK);
    for (size_t i = 0; i < g->to.nbytes; i++)
        if (bytes[i] != g->to.bytes[i])
            fail_msg("case %zu, %s to %s: byte %zu is %02x but MLI's %02x", g->number, g->from.name,
                     g->to.name, i, bytes[i], g->to.bytes[i]);
    free(bytes);
    free(out);
}

static void mlis_arithmetic_gives_mlis_bytes(void)
{
    CHECK(each_golden(check_bytes) == 424);
}

static int64_t code_at(const side *s, const void *data, uint64_t i)
{
    const uint8_t *p = data;
    int16_t i16;
    int32_t i32;
    switch (s->dtype) {
    case TN_INT8:
        return (int8_t)p[i];
    case TN_INT16:
        memcpy(&i16, p + 2 * i, 2);
        return i16;
    default:
        memcpy(&i32, p + 4 * i, 4);
        return i32;
    }
}

/* MLI's answers were compared with round(x / scale) + zero, which is the order here too. */
static void check_exact(const golden *g)
{
    void *exact = convert(g, TN_ARITH_EXACT), *mli = gather(g, &g->to);
    uint64_t differ = 0;
    int64_t largest = 0;
    for (uint64_t i = 0; i < g->count; i++) {
        int64_t by = llabs(code_at(&g->to, exact, i) - code_at(&g->to, mli, i));
        differ += by != 0;
        largest = by > largest && g->to.dtype != TN_FLOAT32 ? by : largest;
    }
    if (differ != g->differ || largest != g->largest)
        fail_msg("case %zu, %s to %s: expected %llu values that differ from MLI's by at most %lld but found "
                 "%llu by %lld",
                 g->number, g->from.name, g->to.name, (unsigned long long)g->differ, (long long)g->largest,
                 (unsigned long long)differ, (long long)largest);
    free(exact);
    free(mli);
}

static void exact_codes_differ_where_mli_errs(void)
{
    CHECK(each_golden(check_exact) == 424);
}

/* ---- Firmware ---- */

static float float_at(const void *data, uint64_t i)
{
    float x;
    memcpy(&x, (const uint8_t *)data + 4 * i, 4);
    return x;
}

static int32_t to_fx(const side *s, float x, tn_mli_round round)
{
    int8_t narrow = 0;
    int16_t wide = 0;
    if (s->dtype == TN_INT8)
        CHECK(tn_mli_float_to_fx8(x, s->bits, round, &narrow) == TN_MLI_OK);
    else
        CHECK(tn_mli_float_to_fx16(x, s->bits, round, &wide) == TN_MLI_OK);
    return s->dtype == TN_INT8 ? narrow : wide;
}

/* True if the exact value is another. */
static bool check_value(const golden *g, const void *in, const void *out, uint64_t i)
{
    const side *from = &g->from, *to = &g->to;
    tn_mli_round round = g->round == TN_ROUND_HALF_UP ? TN_FX_HALF_UP : TN_FX_HALF_EVEN;
    int64_t wanted = code_at(to, out, i);
    if (from->dtype == TN_FLOAT32) {
        CHECK(to_fx(to, float_at(in, i), TN_FX_FLOAT_STEPS) == wanted);
        return to_fx(to, float_at(in, i), TN_FX_HALF_AWAY) != wanted;
    }
    int16_t q = (int16_t)code_at(from, in, i);
    if (to->dtype == TN_FLOAT32) {
        float y = tn_mli_fx_to_float(q, from->bits);
        CHECK(memcmp(&y, (const uint8_t *)out + 4 * i, 4) == 0);
    } else if (to->dtype == TN_INT8) {
        CHECK(tn_mli_fx_to_fx8(q, from->bits, to->bits, round) == wanted);
    } else {
        CHECK(tn_mli_fx_to_fx16(q, from->bits, to->bits, round) == wanted);
    }
    return false;
}

static size_t fixed_cases;

static void check_values(const golden *g)
{
    if (g->from.name[0] == 's' || g->to.name[0] == 's')
        return;
    void *in = gather(g, &g->from), *out = gather(g, &g->to);
    uint64_t differ = 0;
    for (uint64_t i = 0; i < g->count; i++)
        differ += check_value(g, in, out, i);
    CHECK(differ == g->differ);
    fixed_cases++;
    free(in);
    free(out);
}

static void functions_for_firmware_meet_mlis_answers(void)
{
    fixed_cases = 0;
    each_golden(check_values);
    CHECK(fixed_cases == 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(mlis_arithmetic_gives_mlis_bytes),
        TEST(exact_codes_differ_where_mli_errs),
        TEST(functions_for_firmware_meet_mlis_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
