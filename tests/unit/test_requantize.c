/* Codes of one scale as codes of another, against two slow computations: the exact quotient found by
 * comparing integers, and the steps of MLI's integer rescale as its description has them. */
#include "support.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "base/random.h"
#include "environment.h"
#include "random.h"
#include "quant/requantize.h"

static const tn_dtype code_types[] = { TN_INT8, TN_UINT8, TN_INT16, TN_UINT16, TN_INT32, TN_INT4, TN_UINT4,
                                       TN_INT2, TN_UINT2 };
enum { CODE_TYPES = sizeof code_types / sizeof code_types[0] };

static const tn_scales one = { .axis = TN_PER_TENSOR, .scale = &(const float){ 1 } };

static size_t size_of(tn_dtype dtype, size_t n)
{
    return (size_t)tn_packed_bytes(n, tn_dtype_get(dtype)->bits);
}

static int64_t lowest(tn_dtype dtype)
{
    return tn_dtype_get(dtype)->kind == TN_KIND_INT ? -(INT64_C(1) << (tn_dtype_get(dtype)->bits - 1)) : 0;
}

static int64_t highest(tn_dtype dtype)
{
    return lowest(dtype) + (INT64_C(1) << tn_dtype_get(dtype)->bits) - 1;
}

static int64_t code_at(tn_dtype dtype, const void *data, size_t i)
{
    int64_t range = INT64_C(1) << tn_dtype_get(dtype)->bits,
            code = (int64_t)tn_code_get(data, i, tn_dtype_get(dtype)->bits);
    return code > highest(dtype) ? code - range : code;
}

static int64_t cut(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* Codes near zero, near the ends and anywhere. */
static uint8_t *random_codes(tn_dtype dtype, size_t n)
{
    uint8_t *codes = calloc(size_of(dtype, n) + 1, 1);
    assert_non_null(codes);
    for (size_t i = 0; i < n; i++) {
        int64_t near = (int64_t)below(41) - 20, code;
        switch (below(4)) {
        case 0:  code = near; break;
        case 1:  code = below(2) ? lowest(dtype) + llabs(near) : highest(dtype) - llabs(near); break;
        default: code = (int64_t)bits64(); break;
        }
        tn_code_put(codes, i, tn_dtype_get(dtype)->bits, (uint64_t)code);
    }
    return codes;
}

/* ---- the exact quotient ---- */

__extension__ typedef unsigned __int128 wide;

static int leading_zeros(wide a)
{
    return a >> 64 ? __builtin_clzll((uint64_t)(a >> 64)) : 64 + __builtin_clzll((uint64_t)a);
}

/* Whether a * 2^x < b * 2^y; neither is 0. */
static bool is_less(wide a, int x, wide b, int y)
{
    int i = leading_zeros(a), k = leading_zeros(b);
    return x - i != y - k ? x - i < y - k : a << i < b << k;
}

/* The largest integer, at most 2^40, that is not above n * 2^x / d. */
static uint64_t whole_quotient(uint64_t n, int x, uint32_t d)
{
    uint64_t q = 0;
    for (int bit = 40; bit >= 0; bit--)
        if (!is_less(n, x, (wide)(q | UINT64_C(1) << bit) * d, 0))
            q |= UINT64_C(1) << bit;
    return q;
}

static bool goes_up(tn_round round, bool negative, bool odd, bool below_half, bool is_half)
{
    switch (round) {
    case TN_ROUND_EVEN:    return is_half ? odd : !below_half;
    case TN_ROUND_AWAY:    return !below_half;
    case TN_ROUND_ZERO:    return !below_half && !is_half;
    case TN_ROUND_HALF_UP: return is_half ? !negative : !below_half;
    case TN_ROUND_UP:      return !negative;
    case TN_ROUND_DOWN:    return negative;
    default:               return false;
    }
}

/* A scale as an integer times a power of two. */
static uint32_t integer_of(float scale, int *exponent)
{
    int e;
    uint32_t mantissa = (uint32_t)ldexpf(frexpf(scale, &e), 24);
    *exponent = e - 24;
    return mantissa;
}

static int64_t exact_code(int64_t code, float from, int32_t from_zero, float to, int32_t to_zero,
                          tn_round round)
{
    int64_t d = code - from_zero;
    int x, y;
    uint64_t n = (uint64_t)llabs(d) * integer_of(from, &x);
    uint32_t divisor = integer_of(to, &y);
    if (d == 0)
        return to_zero;
    uint64_t q = whole_quotient(n, x - y, divisor);
    wide half = (wide)(2 * q + 1) * divisor;
    bool below_half = is_less(n, x - y + 1, half, 0), above_half = is_less(half, 0, n, x - y + 1);
    bool is_exact = q && !is_less((wide)q * divisor, 0, n, x - y);
    if (!is_exact)
        q += goes_up(round, d < 0, q % 2, below_half, !below_half && !above_half);
    return (d < 0 ? -(int64_t)q : (int64_t)q) + to_zero;
}

/* ---- runs of one scale ---- */

typedef struct trial {
    tn_dtype from, to;
    float    from_scale, to_scale;
    int32_t  from_zero, to_zero;
    tn_round round;
} trial;

static uint8_t *requantize(const trial *t, tn_arithmetic arithmetic, const uint8_t *codes, size_t n)
{
    const int64_t shape[] = { (int64_t)n };
    const tn_array src = { .dtype = t->from, .rank = 1, .shape = shape },
    dst = { .dtype = t->to, .rank = 1, .shape = shape };
    const tn_scales from = { TN_PER_TENSOR, &t->from_scale, t->from_zero ? &t->from_zero : NULL };
    const tn_scales to = { TN_PER_TENSOR, &t->to_scale, &t->to_zero };
    const tn_requantize_options o = { .size = sizeof o, .round = t->round, .arithmetic = arithmetic,
                                    .jobs = 1 };
    tn_error err = { .text = "" };
    uint8_t *out = malloc(size_of(t->to, n));
    assert_non_null(out);
    memset(out, 0xA5, size_of(t->to, n));
    if (tn_requantize(&dst, out, &to, &src, codes, &from, &o, &err))
        fail_msg("%s", line_of(&err));
    return out;
}

static void check_code(const trial *t, int64_t code, int64_t found, int64_t expected)
{
    if (found != expected)
        fail_msg("%s to %s, rounding %d: (%lld - %d) * %a / %a + %d is %lld but found %lld",
                 tn_dtype_get(t->from)->name, tn_dtype_get(t->to)->name, (int)t->round, (long long)code,
                 (int)t->from_zero, (double)t->from_scale, (double)t->to_scale, (int)t->to_zero,
                 (long long)expected, (long long)found);
}

static void check_exact_codes(const trial *t, const uint8_t *codes, size_t n)
{
    uint8_t *out = requantize(t, TN_ARITH_EXACT, codes, n);
    for (size_t i = 0; i < n; i++) {
        int64_t code = code_at(t->from, codes, i);
        int64_t exact = exact_code(code, t->from_scale, t->from_zero, t->to_scale, t->to_zero, t->round);
        check_code(t, code, code_at(t->to, out, i), cut(exact, lowest(t->to), highest(t->to)));
    }
    free(out);
}

static void check_exact(const trial *t, size_t n)
{
    uint8_t *codes = random_codes(t->from, n);
    check_exact_codes(t, codes, n);
    free(codes);
}

/* Any mantissa, few bits of it, or a power of two. */
static float random_scale(int exponent)
{
    uint64_t r = bits64();
    uint32_t mantissa = r % 4 == 0   ? 1
                        : r % 4 == 1 ? 1 + (uint32_t)(r >> 8) % 7
                                     : 0x800000 | (uint32_t)(r >> 8 & 0x7fffff);
    float scale = ldexpf((float)mantissa, exponent);
    return scale > 0 && isfinite(scale) ? scale : 1;
}

static int32_t random_zero(tn_dtype dtype)
{
    switch (below(4)) {
    case 0:  return 0;
    case 1:  return (int32_t)bits64();
    default: return (int32_t)(lowest(dtype) / 2 + (int64_t)(below((uint64_t)(highest(dtype) / 2 + 1))));
    }
}

static void every_type_rounding_and_ratio_is_exact(void)
{
    for (size_t i = 0; i < CODE_TYPES * CODE_TYPES; i++)
        for (tn_round round = TN_ROUND_EVEN; round < TN_ROUND_STOCHASTIC; round++)
            for (int k = 0; k < 40; k++) {
                int exponent = -k, apart = (int)below(40) - 20;
                trial t = { code_types[i / CODE_TYPES], code_types[i % CODE_TYPES], random_scale(exponent),
                            random_scale(exponent + apart), random_zero(code_types[i / CODE_TYPES]),
                            random_zero(code_types[i % CODE_TYPES]), round };
                check_exact(&t, 13);
            }
}

/* e / 2^24 modulo b, which is odd. */
static uint32_t divided(uint32_t e, uint32_t b)
{
    for (int i = 0; i < 24; i++)
        e = (e % 2 ? e + b : e) / 2;
    return e;
}

/* d * 2^23 / b with 2^24 * d = e modulo b is e / 2b away from a tie: 2^-25 at quotients of up to 2^31, too
 * near for binary64. */
static void quotients_next_to_ties_are_exact(void)
{
    for (int k = 0; k < 4000; k++) {
        uint32_t b = 0x800001 | (uint32_t)(bits64() >> 41), off = (uint32_t)below(3);
        int32_t codes[400];
        trial t = { TN_INT32, TN_INT32, 0x1p23F, (float)b, (int32_t)below(2000) - 1000,
                    (int32_t)below(2000) - 1000,
                    (tn_round)below(TN_ROUND_HALF_UP + 1) };
        for (size_t i = 0; i < 400; i++) {
            int64_t d = divided(i % 2 ? off : b - off, b) + (int64_t)below(120) * b;
            codes[i] = (int32_t)((i % 4 < 2 ? d : -d) + t.from_zero);
        }
        check_exact_codes(&t, (const uint8_t *)codes, k % 40 ? 20 : 400);
    }
}

/* Every other quotient is a tie, or nearly one: small d * a / b with a next to (2k + 1) b / 2d. */
static void narrow_codes_next_to_ties_are_exact(void)
{
    static const tn_dtype types[] = { TN_INT16, TN_UINT16, TN_INT8 };
    for (int k = 0; k < 20000; k++) {
        uint64_t b = 0x800000 | bits64() >> 41, d = 1 + below(100), twice = 2 * below(100) + 1;
        float a = (float)((twice * b + d) / (2 * d));
        trial t = { types[k % 3], types[k / 3 % 2], a, (float)b, 0, (int32_t)below(200),
                    (tn_round)(k / 6 % 4) };
        uint8_t codes[40];
        for (size_t i = 0; i < 20; i++)
            tn_code_put(codes, i, tn_dtype_get(t.from)->bits,
                        i % 2   ? d
                        : i % 4 ? UINT64_C(0) - d
                                : below(100));
        check_exact_codes(&t, codes, 20);
    }
}

static void scales_at_the_ends_of_float_are_exact(void)
{
    static const float ends[] = {
        FLT_TRUE_MIN, 3 * FLT_TRUE_MIN, FLT_MIN, 0x1.fffffep-100F, 1, 0x1p30F, 0x1.8p31F, 0x1p127F, FLT_MAX
    };
    static const int32_t zeros[] = { 0, 1, INT32_MIN, INT32_MAX };
    enum { ENDS = sizeof ends / sizeof *ends };
    for (size_t i = 0; i < ENDS * ENDS; i++)
        for (size_t k = 0; k < 16; k++)
            for (tn_round round = TN_ROUND_EVEN; round < TN_ROUND_STOCHASTIC; round++)
                for (int type = 0; type < 2; type++) {
                    tn_dtype dtype = type ? TN_INT32 : TN_INT16;
                    trial t = { dtype, dtype, ends[i / ENDS], ends[i % ENDS], zeros[k / 4], zeros[k % 4],
                                round };
                    check_exact(&t, 9);
                }
}

/* Every code of 16 bits, by shifts and in 32 bits by division. */
static void powers_of_two_shift_exactly(void)
{
    static int16_t codes[65536], narrow[65536];
    static int32_t wider[65536];
    const int64_t shape[] = { 65536 }, range[2] = { INT16_MIN, INT16_MAX };
    const tn_array i16 = { .dtype = TN_INT16, .rank = 1, .shape = shape },
    i32 = { .dtype = TN_INT32, .rank = 1, .shape = shape };
    for (int i = 0; i < 65536; i++)
        codes[i] = (int16_t)(i - 32768);
    for (tn_round round = TN_ROUND_EVEN; round < TN_ROUND_STOCHASTIC; round++)
        for (int shift = -40; shift <= 30; shift += shift < -20 || shift > 18 ? 5 : 1) {
            const float scale = ldexpf(1, shift);
            const int32_t zero = shift % 3 == 0 ? 1 << 20 : -77, to_zero = shift % 2 ? -(1 << 20) : 5;
            const tn_scales from = { TN_PER_TENSOR, &scale, &zero },
            to = { TN_PER_TENSOR, one.scale, &to_zero };
            const tn_requantize_options o = { .size = sizeof o, .round = round,
                                            .range = { range[0], range[1] } };
            CHECK(tn_requantize(&i16, narrow, &to, &i16, codes, &from, &o, NULL) == TN_OK);
            CHECK(tn_requantize(&i32, wider, &to, &i16, codes, &from, &o, NULL) == TN_OK);
            for (int i = 0; i < 65536; i++)
                CHECK(narrow[i] == wider[i]);
        }
}

/* ---- as MLI does it ---- */

static int64_t saturate(int64_t x, int bits)
{
    return cut(x, -(INT64_C(1) << (bits - 1)), (INT64_C(1) << (bits - 1)) - 1);
}

static int norm(int64_t x, int bits)
{
    int n = 0;
    for (; n < bits - 1 && saturate(2 * x, bits) == 2 * x; n++)
        x *= 2;
    return n;
}

static int64_t asr_rnd(int64_t x, int n, tn_round round)
{
    if (n > 31)
        return 0;
    for (; n < 0; n++)
        x = saturate(2 * x, 32);
    if (n == 0)
        return x;
    if (round == TN_ROUND_HALF_UP)
        return saturate(x + (INT64_C(1) << (n - 1)), 32) >> n;
    int64_t floor = x >> n, twice = 2 * (x - floor * (INT64_C(1) << n)), step = INT64_C(1) << n;
    return floor + (twice > step || (twice == step && floor % 2 != 0));
}

typedef struct mli_scale {
    int scale, bits;                    /* scale * 2^-bits */
} mli_scale;

static int64_t mli_code(const trial *t, mli_scale in, mli_scale out, int64_t x)
{
    int k = norm(in.scale, 32) - norm(out.scale, 16);
    int64_t ratio = in.scale * (INT64_C(1) << k) / out.scale;
    int ns = 16 - norm(ratio, 32);
    int64_t scale = saturate(asr_rnd(ratio, ns, t->round), 16), y;
    int shift = k + in.bits - out.bits - ns;
    if (t->from != TN_INT32 && t->to != TN_INT32) {
        y = asr_rnd(saturate(x - t->from_zero, 16) * scale, shift < 31 ? shift : 31, t->round);
    } else {
        int64_t d = saturate(x - t->from_zero, 32);
        int dn = norm(d, 32), sn = norm(scale, 32);
        int64_t high = (d * (INT64_C(1) << dn)) * (scale * (INT64_C(1) << sn)) >> 32;
        y = asr_rnd(high, (shift < 63 ? shift : 63) + sn + dn - 32, t->round);
    }
    return saturate(saturate(y + t->to_zero, 32), (int)tn_dtype_get(t->to)->bits);
}

static mli_scale random_mli_scale(int bits)
{
    int scale = below(4) ? 1 + (int)below(32767) : 1;
    return (mli_scale){ scale, bits };
}

/* The same value with another scale, where there is one: halved or doubled. */
static mli_scale written_otherwise(mli_scale s)
{
    for (int times = (int)below(15); times > 0 && s.scale < 16384; times--)
        s = (mli_scale){ 2 * s.scale, s.bits + 1 };
    for (int times = (int)below(15); times > 0 && s.scale % 2 == 0; times--)
        s = (mli_scale){ s.scale / 2, s.bits - 1 };
    return s;
}

static void check_mli(const trial *t, mli_scale in, mli_scale out, size_t n)
{
    uint8_t *codes = random_codes(t->from, n), *found = requantize(t, TN_ARITH_MLI, codes, n);
    for (size_t i = 0; i < n; i++) {
        int64_t code = code_at(t->from, codes, i);
        check_code(t, code, code_at(t->to, found, i), mli_code(t, in, out, code));
        check_code(t, code, code_at(t->to, found, i),
                   mli_code(t, written_otherwise(in), written_otherwise(out), code));
    }
    free(codes);
    free(found);
}

static void mlis_steps_are_followed_however_scales_are_written(void)
{
    static const tn_dtype types[] = { TN_INT8, TN_INT16, TN_INT32 };
    for (int k = 0; k < 30000; k++) {
        int bits = (int)below(200) - 100, apart = k % 8 ? (int)below(50) - 25 : (int)below(200) - 100;
        if (bits + apart < -112 || bits + apart > 149)
            continue;
        mli_scale in = random_mli_scale(bits), out = random_mli_scale(bits + apart);
        trial t = { types[below(3)], types[below(3)], ldexpf((float)in.scale, -in.bits),
                    ldexpf((float)out.scale, -out.bits), (int16_t)bits64(), (int16_t)bits64(),
                    k % 2 ? TN_ROUND_EVEN : TN_ROUND_HALF_UP };
        check_mli(&t, in, out, 8);
    }
}

static void mlis_known_answers_are_met(void)
{
    const int32_t codes[] = { INT32_MAX, 1000000007 }, same[] = { 2147483644, 1000000006 };
    const trial t = { TN_INT32, TN_INT32, 1, 1, 0, 0, TN_ROUND_HALF_UP };
    const trial third = { TN_INT32, TN_INT32, 1, 3, 0, 0, TN_ROUND_HALF_UP };
    int32_t *found = (int32_t *)(void *)requantize(&t, TN_ARITH_MLI, (const uint8_t *)codes, 2);
    CHECK(memcmp(found, same, sizeof same) == 0);
    free(found);
    found = (int32_t *)(void *)requantize(&third, TN_ARITH_MLI, (const uint8_t *)codes, 2);
    CHECK(found[1] == 333328249);
    free(found);
    found = (int32_t *)(void *)requantize(&third, TN_ARITH_EXACT, (const uint8_t *)codes, 2);
    CHECK(found[0] == 715827882 && found[1] == 333333336);
    free(found);
}

/* ---- axes, blocks, threads ---- */

static const int64_t long_shape[] = { 7, 150, 67 };
enum { LONG = 7 * 150 * 67, AXES = 4 };

static float axis_scales[2][150];
static int32_t axis_zeros[2][150];

static void set_axes(void)
{
    for (size_t i = 0; i < 2 * 150; i++) {
        axis_scales[i / 150][i % 150] = random_scale(i % 3 ? -8 : -2);
        axis_zeros[i / 150][i % 150] = (int32_t)below(100) - 50;
    }
}

static size_t place(int32_t axis, size_t i)
{
    return axis == 0 ? i / (150 * 67) : axis == 1 ? i / 67 % 150 : axis == 2 ? i % 67 : 0;
}

static void either_side_has_scales_along_any_axis(void)
{
    set_axes();
    for (int k = 0; k < AXES * AXES; k++) {
        int32_t a = k / AXES - 1, b = k % AXES - 1;
        const tn_scales from = { a, axis_scales[0], k % 5 ? axis_zeros[0] : NULL };
        const tn_scales to = { b, axis_scales[1], k % 7 ? axis_zeros[1] : NULL };
        tn_dtype types[] = { k % 2 ? TN_INT16 : TN_INT8, k % 3 ? TN_INT8 : TN_INT4 };
        const tn_array src = { .dtype = types[0], .rank = 3, .shape = long_shape };
        const tn_array dst = { .dtype = types[1], .rank = 3, .shape = long_shape };
        uint8_t *codes = random_codes(types[0], LONG), *out = malloc(size_of(types[1], LONG));
        const tn_requantize_options o = { .size = sizeof o, .round = TN_ROUND_AWAY, .jobs = 2 };
        assert_non_null(out);
        CHECK(tn_requantize(&dst, out, &to, &src, codes, &from, &o, NULL) == TN_OK);
        for (size_t i = 0; i < LONG; i++) {
            size_t p = place(a, i), q = place(b, i);
            int64_t exact =
                exact_code(code_at(types[0], codes, i), axis_scales[0][p], from.zero ? axis_zeros[0][p] : 0,
                           axis_scales[1][q], to.zero ? axis_zeros[1][q] : 0, TN_ROUND_AWAY);
            CHECK(code_at(types[1], out, i) == cut(exact, lowest(types[1]), highest(types[1])));
        }
        free(codes);
        free(out);
    }
}

static void blocks_and_threads_do_not_show(void)
{
    set_axes();
    const tn_scales from = { 2, axis_scales[0], axis_zeros[0] }, to = { 1, axis_scales[1], axis_zeros[1] };
    const tn_array src = { .dtype = TN_INT16, .rank = 3, .shape = long_shape };
    const tn_array dst = { .dtype = TN_INT4, .rank = 3, .shape = long_shape };
    uint8_t *codes = random_codes(TN_INT16, LONG), *out[3], pieces[LONG / 2 + 8];
    const size_t bytes = size_of(TN_INT4, LONG);
    for (tn_round round = TN_ROUND_EVEN; round <= TN_ROUND_STOCHASTIC; round++) {
        tn_requantize_options o = { .size = sizeof o, .round = round, .seed = 5 };
        tn_requant_plan plan;
        for (unsigned i = 0; i < 3; i++) {
            o.jobs = 1 + 2 * i;
            out[i] = malloc(bytes);
            assert_non_null(out[i]);
            CHECK(tn_requantize(&dst, out[i], &to, &src, codes, &from, &o, NULL) == TN_OK);
            CHECK(memcmp(out[0], out[i], bytes) == 0);
        }
        CHECK(tn_requant_plan_make(&plan, TN_INT4, &to, TN_INT16, &from, 3, long_shape, &o, NULL) == TN_OK);
        for (size_t i = 0, n; i < LONG; i += n) {
            n = 8 * below(300);
            n = n < LONG - i ? n : LONG - i;
            tn_requantize_block(&plan, pieces + i / 2, codes + 2 * i, n, i);
        }
        CHECK(memcmp(out[0], pieces, bytes) == 0);
        for (unsigned i = 0; i < 3; i++)
            free(out[i]);
    }
    free(codes);
}

static void bytes_beyond_the_elements_stay(void)
{
    const float scale = 0.75F;
    const tn_scales from = { TN_PER_TENSOR, &scale, NULL };
    for (size_t k = 0; k < CODE_TYPES * CODE_TYPES; k++)
        for (size_t n = 0; n < 20; n++) {
            tn_dtype a = code_types[k / CODE_TYPES], b = code_types[k % CODE_TYPES];
            const int64_t shape[] = { (int64_t)n };
            const tn_array src = { .dtype = a, .rank = 1, .shape = shape },
            dst = { .dtype = b, .rank = 1, .shape = shape };
            uint8_t *codes = random_codes(a, n), *in = exact_copy(codes, size_of(a, n)), out[100];
            memset(out, 0xA5, sizeof out);
            CHECK(tn_requantize(&dst, out + 1, &one, &src, in, &from, NULL, NULL) == TN_OK);
            CHECK(out[0] == 0xA5 && out[1 + size_of(b, n)] == 0xA5);
            for (size_t i = n; i < 8 * size_of(b, n) / tn_dtype_get(b)->bits; i++)
                CHECK(tn_code_get(out + 1, i, tn_dtype_get(b)->bits) == 0);
            for (size_t i = 0; i < n; i++) {
                int64_t exact = exact_code(code_at(a, codes, i), scale, 0, 1, 0, TN_ROUND_EVEN);
                CHECK(code_at(b, out + 1, i) == cut(exact, lowest(b), highest(b)));
            }
            free(codes);
            free(in);
        }
}

static void the_callers_environment_does_not_matter(void)
{
    const float from_scale = 5 * FLT_TRUE_MIN, to_scale = 12 * FLT_TRUE_MIN;
    const tn_scales from = { TN_PER_TENSOR, &from_scale, NULL }, to = { TN_PER_TENSOR, &to_scale, NULL };
    const int64_t shape[] = { 5 };
    const struct { tn_dtype from; const void *codes; int8_t expected[5]; } cases[] = {
        { TN_INT32, (const int32_t[]){ 6, 12, -6, 100, -300 }, { 3, 5, -3, 42, -125 } },
        { TN_INT16, (const int16_t[]){ 6, 12, -6, 100, -300 }, { 3, 5, -3, 42, -125 } },
        { TN_INT8, (const int8_t[]){ 6, 12, -6, 100, -128 }, { 3, 5, -3, 42, -53 } },         /* by a table,
                                                                                               * made on the
                                                                                               * way */
    };
    const tn_requantize_options o = { .size = sizeof o, .round = TN_ROUND_AWAY };
    for (environment e = 0; e < ENVIRONMENTS; e++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const tn_array src = { .dtype = cases[i].from, .rank = 1, .shape = shape };
            const tn_array dst = { .dtype = TN_INT8, .rank = 1, .shape = shape };
            int8_t out[5] = { 0 };
            enter_environment(e);
            uint64_t before = environment_seen();
            tn_status status = tn_requantize(&dst, out, &to, &src, cases[i].codes, &from, &o, NULL);
            uint64_t after = environment_seen();
            leave_environment();
            CHECK(status == TN_OK && memcmp(out, cases[i].expected, sizeof out) == 0 && before == after);
        }
}

/* ---- options ---- */

/* Up where the hash of the index is below the fraction, to 2^-26. */
static void check_chances(tn_dtype dtype, float scale)
{
    enum { N = 20000 };
    static int32_t out[N];
    const int64_t shape[] = { N };
    const tn_array src = { .dtype = dtype, .rank = 1, .shape = shape },
    dst = { .dtype = TN_INT32, .rank = 1, .shape = shape };
    const tn_scales from = { TN_PER_TENSOR, &scale, NULL };
    const tn_requantize_options o = { .size = sizeof o, .round = TN_ROUND_STOCHASTIC, .seed = 77 };
    uint8_t *codes = random_codes(dtype, N), *narrow = malloc(size_of(dtype, N));
    assert_non_null(narrow);
    CHECK(tn_requantize(&dst, out, &one, &src, codes, &from, &o, NULL) == TN_OK);
    CHECK(tn_requantize(&src, narrow, &one, &src, codes, &from, &o, NULL) == TN_OK);
    for (size_t i = 0; i < N; i++) {
        double code = (double)code_at(dtype, codes, i), x = fabs(code * (double)scale), whole = floor(x);
        double chance = x - whole, drawn = ldexp((double)tn_random_at(77, i), -64);
        bool up = fabs((double)out[i]) > whole;
        CHECK(fabs((double)out[i]) == whole + up && (out[i] == 0 || (out[i] < 0) == (code < 0)));
        CHECK(fabs(chance - drawn) < 0x1p-26 || up == (drawn < chance));
        CHECK(code_at(dtype, narrow, i) == out[i]);
    }
    free(codes);
    free(narrow);
}

static void chances_are_those_of_the_fraction(void)
{
    check_chances(TN_INT32, 0.3F);
    check_chances(TN_INT16, 0.3F);
    check_chances(TN_INT16, 0.0625F);
    check_chances(TN_INT8, 0.3F);
    check_chances(TN_UINT4, 0.25F);
    check_chances(TN_INT32, 1);
}

static void codes_are_cut_to_the_range_asked_for(void)
{
    const int64_t shape[] = { 4 };
    const tn_array array = { .dtype = TN_INT8, .rank = 1, .shape = shape };
    const int8_t codes[] = { -128, -20, 20, 127 };
    int8_t out[4];
    for (tn_arithmetic a = TN_ARITH_BINARY32; a <= TN_ARITH_MLI; a++) {
        tn_requantize_options o = { .size = sizeof o, .range = { -100, 7 }, .arithmetic = a };
        CHECK(tn_requantize(&array, out, &one, &array, codes, &one, &o, NULL) == TN_OK);
        CHECK(out[0] == -100 && out[1] == -20 && out[2] == 7 && out[3] == 7);
        o.range[0] = o.range[1] = 0;
        /* all of the type: -128 is a code */
        CHECK(tn_requantize(&array, out, &one, &array, codes, &one, &o, NULL) == TN_OK &&
              memcmp(codes, out, 4) == 0);
    }
}

static void empty_arrays_and_single_codes_are_fine(void)
{
    const int64_t shape[] = { 3, 0, 2 };
    const tn_array none = { .dtype = TN_INT8, .rank = 3, .shape = shape },
    single = { .dtype = TN_INT8, .rank = 0 };
    const tn_scales along = { .axis = 1 };
    int8_t code = 9, out = 0;
    CHECK(tn_requantize(&none, NULL, &one, &none, NULL, &along, NULL, NULL) == TN_OK);
    CHECK(tn_requantize(&single, &out, &one, &single, &code, &one, NULL, NULL) == TN_OK && out == 9);
}

/* ---- refusals ---- */

typedef struct request {
    tn_array            dst, src;
    tn_scales           to, from;
    tn_requantize_options o;
    const void         *data;
} request;

static const int64_t small_shape[] = { 2, 3 };

static request sample(void)
{
    static const int8_t data[6] = { 0 };
    return (request){
        .dst = { .dtype = TN_INT8, .rank = 2, .shape = small_shape },
        .src = { .dtype = TN_INT16, .rank = 2, .shape = small_shape },
        .to = one, .from = one, .o = { .size = sizeof(tn_requantize_options) }, .data = data,
    };
}

static void refused(const request *r, const char *text)
{
    int16_t codes[6] = { 0 };
    uint8_t out[6] = { 0 };
    tn_error err = { .text = "" };
    tn_status status =
        tn_requantize(&r->dst, out, &r->to, &r->src, r->data ? codes : NULL, &r->from, &r->o, &err);
    if (status != TN_ERR_ARGUMENT || err.status != status || !strstr(line_of(&err), text))
        fail_msg("expected a refusal with \"%s\" but found %d: %s", text, (int)status, line_of(&err));
    CHECK(tn_requantize(&r->dst, out, &r->to, &r->src, r->data ? codes : NULL, &r->from, &r->o, NULL) ==
          TN_ERR_ARGUMENT);
}

#define REFUSED(change, text) do { request r = sample(); change; refused(&r, text); } while (0)

static void arrays_that_make_no_sense_are_refused(void)
{
    static const int64_t other[] = { 3, 2 }, negative[] = { 2, -3 }, apart[] = { 6, 2 };
    REFUSED(r.dst.shape = other, "2");
    REFUSED(r.dst.rank = 1, "");
    REFUSED(r.src.shape = negative, "negative");
    REFUSED(r.src.stride = apart, "expected a dense source, with a stride of 3 in dimension 0, but found 6");
    REFUSED(r.data = NULL, "the source has no data");
    REFUSED(r.dst.dtype = TN_FLOAT32,
            "expected codes of an integer type of at most 16 bits or int32 but found float32");
    REFUSED(r.src.dtype = TN_UINT32, "found uint32");
    REFUSED(r.src.dtype = TN_INT64, "found int64");
    REFUSED(r.dst.dtype = (tn_dtype)9999, "");
}

static void scales_that_make_no_sense_are_refused(void)
{
    static const float bad[][2] = { { 1, 0 }, { 1, -1 }, { 1, INFINITY }, { 1, NAN }, { 1, -0.0F },
                                    { 1, -FLT_TRUE_MIN } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        REFUSED(r.from = ((tn_scales){ .scale = bad[i] }),
                "expected a finite scale above 0 but scale 1 of the source is");
        REFUSED(r.to = ((tn_scales){ .scale = bad[i] }),
                "expected a finite scale above 0 but scale 1 of the destination is");
    }
    REFUSED(r.from.scale = NULL, "expected 1 scales of the source but found none");
    REFUSED(r.to = ((tn_scales){ .axis = 1 }), "expected 3 scales of the destination but found none");
    REFUSED(r.to.axis = 2, "expected an axis below 2 or -1 for one scale but found 2");
    REFUSED(r.from.axis = -2, "found -2");
}

static void options_that_make_no_sense_are_refused(void)
{
    REFUSED(r.o.round = (tn_round)8, "8");
    REFUSED(r.o.round = (tn_round)-1, "-1");
    REFUSED(r.o.arithmetic = (tn_arithmetic)3, "expected an arithmetic of 0 to 2 but found 3");
    REFUSED(
        {
            r.o.range[0] = 5;
            r.o.range[1] = 200;
        },
        "expected a range of codes within the -128 to 127 of int8 but found 5 to 200");
    REFUSED(r.o.range[0] = 5, "found 5 to 0");
}

static void what_mli_does_not_have_is_refused(void)
{
    static const float fits = 32767 * 0x1p-20F, long_scale = 32769 * 0x1p-30F, tiny = 0x4001 * FLT_TRUE_MIN,
                       third = 1 / 3.0F;
    static const int32_t good[] = { INT16_MIN, INT16_MAX }, low = INT16_MIN - 1, high = INT16_MAX + 1;
    request ok = sample();
    int16_t codes[6] = { 0 };
    int8_t out[6];
    ok.o.arithmetic = TN_ARITH_MLI;
    ok.to = (tn_scales){ TN_PER_TENSOR, &fits, &good[0] };
    ok.from = (tn_scales){ TN_PER_TENSOR, &tiny, &good[1] };
    CHECK(tn_requantize(&ok.dst, out, &ok.to, &ok.src, codes, &ok.from, &ok.o, NULL) == TN_OK);
#define MLI_REFUSED(change, text) REFUSED({ r.o.arithmetic = TN_ARITH_MLI; change; }, text)
    MLI_REFUSED(r.from.scale = &third,
                "expected a scale of at most 15 bits for MLI but scale 0 of the source is 0.333333343");
    MLI_REFUSED(r.to.scale = &long_scale,
                "expected a scale of at most 15 bits for MLI but scale 0 of the destination is");
    MLI_REFUSED(r.from.zero = &low,
                "expected a zero of -32768 to 32767 for MLI but zero 0 of the source is -32769");
    MLI_REFUSED(r.to.zero = &high, "zero 0 of the destination is 32768");
    MLI_REFUSED(r.src.dtype = TN_UINT16,
                "expected codes of int8, int16 or int32 for MLI but the source has uint16");
    MLI_REFUSED(r.dst.dtype = TN_INT4, "the destination has int4");
    for (tn_round round = TN_ROUND_AWAY; round <= TN_ROUND_STOCHASTIC; round++)
        if (round != TN_ROUND_HALF_UP)
            MLI_REFUSED(r.o.round = round, "expected rounding half up (3) or to even (0) for MLI but found");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_rounding_and_ratio_is_exact),
        TEST(quotients_next_to_ties_are_exact),
        TEST(narrow_codes_next_to_ties_are_exact),
        TEST(scales_at_the_ends_of_float_are_exact),
        TEST(powers_of_two_shift_exactly),
        TEST(mlis_steps_are_followed_however_scales_are_written),
        TEST(mlis_known_answers_are_met),
        TEST(either_side_has_scales_along_any_axis),
        TEST(blocks_and_threads_do_not_show),
        TEST(bytes_beyond_the_elements_stay),
        TEST(the_callers_environment_does_not_matter),
        TEST(chances_are_those_of_the_fraction),
        TEST(codes_are_cut_to_the_range_asked_for),
        TEST(empty_arrays_and_single_codes_are_fine),
        TEST(arrays_that_make_no_sense_are_refused),
        TEST(scales_that_make_no_sense_are_refused),
        TEST(options_that_make_no_sense_are_refused),
        TEST(what_mli_does_not_have_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
