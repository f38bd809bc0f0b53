/* kernels/quantize/scalar.c - quantization: the definition. */
#include "kernels/quantize/table.h"

#include <math.h>
#include <string.h>

#include "tensor/code.h"

/* --- to codes -------------------------------------------------------------- */

/* Adding this to a number of at most 2^22 leaves no bits for a fraction: the
 * addition rounds to an integer, in the low bits of the sum. */
#define ROUNDER 0x1.8p23f
#define FAR     0x1p22f         /* larger quotients are outside any range */
#define ALMOST  0x1.fffffep-2f  /* the largest float below 0.5: adding it moves ties, and nothing below them,
                                 * to the next integer */

INLINE int32_t nearest(float quotient, bool away)
{
    if (away)
        return (int32_t)(quotient + copysignf(ALMOST, quotient));
    return (int32_t)(tn_float_bits(quotient + ROUNDER) - tn_float_bits(ROUNDER));
}

/* For a quotient that is a tie in binary32.  Its product with the scale is exact
 * in binary64 and tells on which side of the tie x is. */
static int32_t exact_integer(float x, float scale, float quotient, bool away)
{
    double tie = (double)quotient * (double)scale, exact = (double)x;
    int32_t up = (int32_t)(quotient + 0.5f);
    if (exact == tie)
        return nearest(quotient, away);
    return exact > tie ? up : up - 1;
}

/* What a loop is compiled for. */
typedef struct variant {
    size_t size;                /* bytes of a code */
    bool   away, exact;
    bool   multiply;            /* by the reciprocal */
} variant;

INLINE int32_t integer_of(float x, float by, variant v, bool *nan)
{
    float quotient = v.multiply ? x * by : x / by;
    if (quotient != quotient) {
        *nan = true;
        return 0;
    }
    quotient = quotient > -FAR ? quotient : -FAR;
    quotient = quotient < FAR ? quotient : FAR;
    int32_t integer = nearest(quotient, v.away);
    float rest = quotient - (float)integer;
    return v.exact && (rest == 0.5f || rest == -0.5f) ? exact_integer(x, by, quotient, v.away) : integer;
}

INLINE bool quantize_by(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, const tn_quant_run *run,
                        const float *by, variant v)
{
    bool nan = false;
    for (size_t i = 0; i < n; i++) {
        size_t k = run->each ? i : 0;
        float x;
        memcpy(&x, src + sizeof x * i, sizeof x);
        int32_t code = integer_of(x, by[k], v, &nan) + run->zero[k];
        code = code > run->low ? code : run->low;
        code = code < run->high ? code : run->high;
        uint16_t half = (uint16_t)code;
        if (v.size == 1)
            dst[i] = (uint8_t)code;
        else
            memcpy(dst + sizeof half * i, &half, sizeof half);
    }
    return nan;
}

INLINE bool quantize_rounding(uint8_t *dst, const uint8_t *src, size_t n, const tn_quant_run *run,
                              size_t size, bool away)
{
    float reciprocal;
    if (!run->each && tn_exact_reciprocal(run->scale[0], &reciprocal))
        return quantize_by(dst, src, n, run, &reciprocal,
                           (variant){ .size = size, .away = away, .multiply = true });
    if (run->exact)
        return quantize_by(dst, src, n, run, run->scale,
                           (variant){ .size = size, .away = away, .exact = true });
    return quantize_by(dst, src, n, run, run->scale, (variant){ .size = size, .away = away });
}

INLINE bool quantize(uint8_t *dst, const uint8_t *src, size_t n, const tn_quant_run *run, size_t size)
{
    return run->away ? quantize_rounding(dst, src, n, run, size, true)
                     : quantize_rounding(dst, src, n, run, size, false);
}

bool tn_quantize_8_scalar(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run)
{
    return quantize(dst, src, n, run, 1);
}

bool tn_quantize_16_scalar(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run)
{
    return quantize(dst, src, n, run, 2);
}

/* --- from codes ------------------------------------------------------------ */

#define DEQUANTIZE(name, type)                                                                              \
    static void name(void *restrict dst, const void *restrict src, size_t n, const tn_quant_run *run)       \
    {                                                                                                       \
        for (size_t i = 0; i < n; i++) {                                                                    \
            size_t k = run->each ? i : 0;                                                                   \
            type code;                                                                                      \
            memcpy(&code, (const uint8_t *)src + sizeof code * i, sizeof code);                             \
            float value = (float)(code - run->zero[k]) * run->scale[k];                                     \
            memcpy((uint8_t *)dst + sizeof value * i, &value, sizeof value);                                \
        }                                                                                                   \
    }

DEQUANTIZE(from_i8, int8_t)
DEQUANTIZE(from_u8, uint8_t)
DEQUANTIZE(from_i16, int16_t)
DEQUANTIZE(from_u16, uint16_t)

/* --- packed codes ----------------------------------------------------------- */

/* Fewer codes than fit a byte. */
static uint8_t pack_few(const uint8_t *src, size_t n, unsigned bits)
{
    unsigned byte = 0;
    for (size_t i = 0; i < n; i++)
        byte |= (src[i] & ((1u << bits) - 1)) << i * bits;
    return (uint8_t)byte;
}

void tn_pack_codes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, unsigned bits)
{
    size_t codes = 8 / bits, whole = n / codes;
    if (bits == 4)              /* loops that compilers vectorise */
        for (size_t i = 0; i < whole; i++)
            dst[i] = (uint8_t)((src[2 * i] & 15) | src[2 * i + 1] << 4);
    else
        for (size_t i = 0; i < whole; i++)
            dst[i] = (uint8_t)((src[4 * i] & 3) | (src[4 * i + 1] & 3) << 2 | (src[4 * i + 2] & 3) << 4 |
                               src[4 * i + 3] << 6);
    if (n % codes)
        dst[whole] = pack_few(src + whole * codes, n % codes, bits);
}

/* Extends the sign of a code; `sign` is its highest bit, or 0 if it has no sign. */
INLINE uint8_t with_sign(unsigned code, unsigned sign)
{
    return (uint8_t)((code ^ sign) - sign);
}

void tn_unpack_codes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, unsigned bits,
                     bool is_signed)
{
    size_t codes = 8 / bits, whole = n / codes;
    unsigned sign = is_signed ? 1u << (bits - 1) : 0;
    if (bits == 4)
        for (size_t i = 0; i < whole; i++) {
            dst[2 * i] = with_sign(src[i] & 15, sign);
            dst[2 * i + 1] = with_sign(src[i] >> 4, sign);
        }
    else
        for (size_t i = 0; i < whole; i++) {
            dst[4 * i] = with_sign(src[i] & 3, sign);
            dst[4 * i + 1] = with_sign(src[i] >> 2 & 3, sign);
            dst[4 * i + 2] = with_sign(src[i] >> 4 & 3, sign);
            dst[4 * i + 3] = with_sign(src[i] >> 6, sign);
        }
    for (size_t i = whole * codes; i < n; i++)
        dst[i] = with_sign(src[whole] >> (i % codes) * bits & ((1u << bits) - 1), sign);
}

/* --- ranges ---------------------------------------------------------------- */

/* The number, or 0 for infinity and NaN: every range contains 0. */
INLINE float finite_at(const void *src, size_t i)
{
    uint32_t bits;
    float x;
    memcpy(&bits, (const uint8_t *)src + sizeof bits * i, sizeof bits);
    bits = (bits & 0x7f800000) == 0x7f800000 ? 0 : bits;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void range(float *restrict low, float *restrict high, const void *restrict src, size_t n)
{
    float l = *low, h = *high;
    for (size_t i = 0; i < n; i++) {
        float x = finite_at(src, i);
        l = x < l ? x : l;
        h = x > h ? x : h;
    }
    *low = l;
    *high = h;
}

static void range_each(float *restrict low, float *restrict high, const void *restrict src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = finite_at(src, i);
        low[i] = x < low[i] ? x : low[i];
        high[i] = x > high[i] ? x : high[i];
    }
}

/* --- errors ---------------------------------------------------------------- */

#define SQUARES(name, type)                                                                                  \
    uint64_t name(const void *restrict codes, const void *restrict src, size_t n, double step, double unit)  \
    {                                                                                                        \
        uint64_t sum = 0;                                                                                    \
        for (size_t i = 0; i < n; i++) {                                                                     \
            type code;                                                                                       \
            float x;                                                                                         \
            memcpy(&code, (const uint8_t *)codes + sizeof code * i, sizeof code);                            \
            memcpy(&x, (const uint8_t *)src + sizeof x * i, sizeof x);                                       \
            double error = (double)code * step - (double)x, square = error * error * unit;                   \
            sum += (uint64_t)(int64_t)(square < 0x1p53 ? square : 0x1p53);                                   \
        }                                                                                                    \
        return sum;                                                                                          \
    }

SQUARES(tn_squares_i8_scalar, int8_t)
SQUARES(tn_squares_i16_scalar, int16_t)
static SQUARES(squares_i32, int32_t)

/* --- the table ------------------------------------------------------------- */

void tn_quant_kernels_init_scalar(tn_quant_kernels *k)
{
    *k = (tn_quant_kernels){
        .to_8 = tn_quantize_8_scalar, .to_16 = tn_quantize_16_scalar,
        .from_i8 = from_i8, .from_u8 = from_u8, .from_i16 = from_i16, .from_u16 = from_u16,
        .range = range, .range_each = range_each,
        .squares_i8 = tn_squares_i8_scalar, .squares_i16 = tn_squares_i16_scalar, .squares_i32 = squares_i32,
    };
}
