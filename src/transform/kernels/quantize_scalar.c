/* transform/kernels/quantize_scalar.c - the definition of quantization's inner
 * loops, and the table of its kernels. */
#include "transform/kernels/quantize.h"

#include <pthread.h>
#include <string.h>

#include "base/cpu.h"

#define INLINE static inline __attribute__((always_inline))

/* --- to codes -------------------------------------------------------------- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Added to a number of at most 2^22, this leaves no bits for a fraction: the
 * addition rounds, and the sum's bits count from there. */
#define ROUNDER 0x1.8p23f
#define FAR     0x1p22f         /* quotients beyond it are beyond any range */

INLINE int32_t code_of(float x, float scale, int32_t zero, const tn_quant_run *run, bool *nan)
{
    float quotient = x / scale;
    int32_t code = zero;
    if (quotient != quotient) {
        *nan = true;
    } else {
        quotient = quotient > -FAR ? quotient : -FAR;
        quotient = quotient < FAR ? quotient : FAR;
        code += (int32_t)(bits_of(quotient + ROUNDER) - bits_of(ROUNDER));
    }
    code = code > run->low ? code : run->low;
    return code < run->high ? code : run->high;
}

INLINE bool quantize(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, const tn_quant_run *run, size_t size)
{
    bool nan = false;
    for (size_t i = 0; i < n; i++) {
        size_t k = run->each ? i : 0;
        float x;
        memcpy(&x, src + sizeof x * i, sizeof x);
        int32_t code = code_of(x, run->scale[k], run->zero[k], run, &nan);
        uint16_t half = (uint16_t)code;
        if (size == 1)
            dst[i] = (uint8_t)code;
        else
            memcpy(dst + sizeof half * i, &half, sizeof half);
    }
    return nan;
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

void tn_quant_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

/* --- several codes a byte -------------------------------------------------- */

/* Fewer codes than a byte takes. */
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
    if (bits == 4)              /* loops that compilers make vectors of */
        for (size_t i = 0; i < whole; i++)
            dst[i] = (uint8_t)((src[2 * i] & 15) | src[2 * i + 1] << 4);
    else
        for (size_t i = 0; i < whole; i++)
            dst[i] = (uint8_t)((src[4 * i] & 3) | (src[4 * i + 1] & 3) << 2 | (src[4 * i + 2] & 3) << 4 | src[4 * i + 3] << 6);
    if (n % codes)
        dst[whole] = pack_few(src + whole * codes, n % codes, bits);
}

/* Of a code in the low bits, whose highest is `sign`; 0: it has none. */
INLINE uint8_t with_sign(unsigned code, unsigned sign)
{
    return (uint8_t)((code ^ sign) - sign);
}

void tn_unpack_codes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n, unsigned bits, bool is_signed)
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

/* The number, or 0 for infinities and NaN: every range holds 0. */
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

/* --- the table ------------------------------------------------------------- */

void tn_quant_kernels_init(tn_quant_kernels *k, unsigned cpu)
{
    *k = (tn_quant_kernels){
        .to_8 = tn_quantize_8_scalar, .to_16 = tn_quantize_16_scalar,
        .from_i8 = from_i8, .from_u8 = from_u8, .from_i16 = from_i16, .from_u16 = from_u16,
        .range = range, .range_each = range_each,
    };
#if defined(__x86_64__)
    if (cpu & TN_CPU_AVX2)
        tn_quant_kernels_init_avx2(k);
    if (cpu & TN_CPU_AVX512)
        tn_quant_kernels_init_avx512(k);
#else
    (void)cpu;
#endif
}

static tn_quant_kernels machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

static void make_machine(void)
{
    tn_quant_kernels_init(&machine, tn_cpu_detect());
}

const tn_quant_kernels *tn_quant_kernels_get(void)
{
    pthread_once(&machine_once, make_machine);
    return &machine;
}
