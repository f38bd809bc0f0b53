/* kernels/cast/scalar.c - casts on any CPU.
 *
 * Common types of weights have short loops; all others use the definition,
 * element by element. */
#include "kernels/cast/count.h"
#include "kernels/half.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tensor/array.h"

/* The last byte of a packed array may have unused bits. */
static void clear_last_byte(void *dst, size_t n, unsigned bits)
{
    if (n * bits % 8)
        ((uint8_t *)dst)[n * bits / 8] = 0;
}

/* --- to float32 ---------------------------------------------------------- */

static float value_as_f32(const tn_dtype_info *from, uint64_t code)
{
    const tn_dtype_info *f32 = tn_dtype_get(TN_FLOAT32);
    tn_encode_rules rules = tn_encode_rules_for(f32, NULL);
    unsigned flags = 0;
    return tn_float_of((uint32_t)tn_number_encode(f32, &rules, tn_number_decode(from, code), 0, &flags));
}

/* The values of types of at most 8 bits, by code: computed when a type is first used. */
static float           values[TN_DTYPE_COUNT][256];
static atomic_bool     is_ready[TN_DTYPE_COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const float *values_of(const tn_dtype_info *type)
{
    float *list = values[type->dtype];
    if (atomic_load_explicit(&is_ready[type->dtype], memory_order_acquire))
        return list;
    pthread_mutex_lock(&lock);
    for (unsigned code = 0; !is_ready[type->dtype] && code < 1u << type->bits; code++)
        list[code] = value_as_f32(type, code);
    atomic_store_explicit(&is_ready[type->dtype], true, memory_order_release);
    pthread_mutex_unlock(&lock);
    return list;
}

static unsigned small_to_f32(uint8_t *dst, const uint8_t *src, size_t n, tn_dtype from)
{
    const tn_dtype_info *type = tn_dtype_get(from);
    const float *list = values_of(type);
    unsigned bits = type->bits;
    for (size_t i = 0; i < n; i++)
        memcpy(dst + 4 * i, &list[tn_code_get(src, i, bits)], 4);
    return 0;
}

static uint32_t f16_as_f32(uint16_t h) { return half_bits(h); }

static uint32_t bf16_as_f32(uint16_t h)
{
    bool nan = (h & 0x7fff) > 0x7f80;
    return (uint32_t)(h | (nan ? 0x40 : 0)) << 16;
}

static uint32_t i16_as_f32(uint16_t h) { return tn_float_bits((float)(int16_t)h); }
static uint32_t u16_as_f32(uint16_t h) { return tn_float_bits((float)h); }

static uint32_t tf32_as_f32(uint32_t w)
{
    bool nan = (w & 0x7fffe000) > 0x7f800000;
    return (w & ~0x1fffu) | (nan ? 0x400000 : 0);
}

#define TO_F32(name, type, convert)                                                                         \
    static unsigned name##_to_f32(void *restrict dst, const void *restrict src, size_t n,                   \
                                  const tn_cast_args *args)                                               \
    {                                                                                                       \
        (void)args;                                                                                         \
        for (size_t i = 0; i < n; i++) {                                                                    \
            type x;                                                                                         \
            memcpy(&x, (const uint8_t *)src + sizeof x * i, sizeof x);                                      \
            uint32_t w = convert(x);                                                                        \
            memcpy((uint8_t *)dst + 4 * i, &w, 4);                                                          \
        }                                                                                                   \
        return 0;                                                                                           \
    }

TO_F32(f16, uint16_t, f16_as_f32)
TO_F32(bf16, uint16_t, bf16_as_f32)
TO_F32(i16, uint16_t, i16_as_f32)
TO_F32(u16, uint16_t, u16_as_f32)
TO_F32(tf32, uint32_t, tf32_as_f32)

/* --- from float32 -------------------------------------------------------- */

static float scaled(float x, const tn_cast_args *args)
{
    return args->has_scale ? x * args->scale : x;
}

/* Any pair, by the definition, a block of codes at a time. */
static unsigned any_to_any(uint8_t *dst, const uint8_t *src, size_t n, const tn_cast_args *args,
                           tn_dtype to_dtype, tn_dtype from_dtype)
{
    enum { BLOCK = 256 };
    const tn_dtype_info *to = tn_dtype_get(to_dtype), *from = tn_dtype_get(from_dtype);
    uint64_t codes[BLOCK];
    unsigned flags = 0;
    clear_last_byte(dst, n, to->bits);
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t count = n - i < BLOCK ? n - i : BLOCK;
        for (size_t k = 0; k < count; k++)
            codes[k] = tn_code_get(src, i + k, from->bits);
        for (size_t k = 0; args->has_scale && k < count; k++)
            codes[k] = tn_float_bits(scaled(tn_float_of((uint32_t)codes[k]), args));
        flags |= tn_codes_cast(to, &args->rules, from, codes, count, i);
        for (size_t k = 0; k < count; k++)
            tn_code_put(dst, i + k, to->bits, codes[k]);
    }
    return flags;
}

static unsigned f32_to_any(uint8_t *dst, const uint8_t *src, size_t n, const tn_cast_args *args,
                           tn_dtype to)
{
    return any_to_any(dst, src, n, args, to, TN_FLOAT32);
}

/* A float type narrower than float32, as constants for rounding in 32 bits. */
typedef struct narrow {
    unsigned mantissa_bits;
    int      lowest;            /* exponent field, in float32, of the smallest normal value */
    uint32_t largest;           /* fields of the largest finite value */
    uint32_t signed_zero;       /* code of -0, or of 0 where there is no -0 */
    uint32_t sign;
    unsigned ignored;           /* bits below the mantissa */
} narrow;

static narrow narrow_of(const tn_dtype_info *type)
{
    unsigned ignored = type->bits - 1u - type->exponent_bits - type->mantissa_bits;
    uint32_t sign = UINT32_C(1) << (type->bits - 1);
    return (narrow){
        .mantissa_bits = type->mantissa_bits,
        .lowest = 128 - type->bias,
        .largest = ((uint32_t)tn_dtype_limit(type, false)) >> ignored,
        .sign = sign,
        .signed_zero = type->specials == TN_SPECIALS_FNUZ ? 0 : sign,
        .ignored = ignored,
    };
}

/* Rounds as the definition does, in 32 bits. */
static uint32_t narrow_finite(const narrow *t, uint32_t magnitude)
{
    int e = (int)(magnitude >> 23);
    uint32_t significand = (magnitude & 0x7fffff) | (uint32_t)(e != 0) << 23;
    e += e == 0;
    int below = t->lowest > e ? t->lowest - e : 0;
    unsigned drop = 23 - t->mantissa_bits + (unsigned)below;
    drop = drop < 31 ? drop : 31;           /* nothing is left at 26 already */
    uint32_t odd = significand >> drop & 1;
    uint32_t rounded = (significand + (UINT32_C(1) << (drop - 1)) - 1 + odd) >> drop;
    return ((uint32_t)(e + below - t->lowest) << t->mantissa_bits) + rounded;
}

static inline uint32_t narrow_one(const narrow *t, const tn_dtype_info *type, const tn_cast_args *args,
                                  uint32_t w, unsigned *flags)
{
    uint32_t magnitude = w & 0x7fffffff;
    if (magnitude >= 0x7f800000)
        return (uint32_t)tn_number_encode(type, &args->rules, tn_number_decode(tn_dtype_get(TN_FLOAT32), w),
                                          0, flags);
    uint32_t fields = narrow_finite(t, magnitude);
    bool negative = w >> 31;
    if (fields > t->largest) {
        *flags |= TN_ENCODED_OVERFLOW;
        return (uint32_t)(negative ? args->rules.negative_overflow : args->rules.positive_overflow);
    }
    uint32_t sign = fields ? t->sign : t->signed_zero;
    return fields << t->ignored | (negative ? sign : 0);
}

static unsigned f32_to_narrow(uint8_t *dst, const uint8_t *src, size_t n, const tn_cast_args *args,
                              tn_dtype to)
{
    const tn_dtype_info *type = tn_dtype_get(to);
    const narrow t = narrow_of(type);
    unsigned flags = 0, bits = type->bits;
    clear_last_byte(dst, n, bits);
    for (size_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, src + 4 * i, 4);
        tn_code_put(dst, i, bits, narrow_one(&t, type, args, tn_float_bits(scaled(x, args)), &flags));
    }
    return flags;
}

/* --- one function per type ----------------------------------------------- */

#define EACH_SMALL_TYPE(X)                                                                                  \
    X(TN_FLOAT8_E4M3FN, f32_to_narrow)      X(TN_FLOAT8_E5M2, f32_to_narrow)                                \
    X(TN_FLOAT8_E4M3FNUZ, f32_to_narrow)    X(TN_FLOAT8_E5M2FNUZ, f32_to_narrow)                            \
    X(TN_FLOAT8_E4M3, f32_to_narrow)        X(TN_FLOAT8_E3M4, f32_to_narrow)                                \
    X(TN_FLOAT6_E2M3, f32_to_narrow)        X(TN_FLOAT6_E3M2, f32_to_narrow)                                \
    X(TN_FLOAT4_E2M1, f32_to_narrow)        X(TN_FLOAT8_E8M0, f32_to_any)                                   \
    X(TN_INT8, f32_to_any)                  X(TN_INT4, f32_to_any)              X(TN_INT2, f32_to_any)      \
    X(TN_UINT8, f32_to_any)                 X(TN_UINT4, f32_to_any)             X(TN_UINT2, f32_to_any)     \
    X(TN_BOOL, f32_to_any)                  X(TN_FX8, f32_to_any)
#define EACH_WIDE_TYPE(X)                                                                                   \
    X(TN_FLOAT64, f32_to_any)               X(TN_FLOAT32, f32_to_any)           X(TN_TF32, f32_to_narrow)   \
    X(TN_FLOAT16, f32_to_narrow)            X(TN_BFLOAT16, f32_to_narrow)       X(TN_FX16, f32_to_any)      \
    X(TN_INT64, f32_to_any)                 X(TN_INT32, f32_to_any)             X(TN_INT16, f32_to_any)     \
    X(TN_UINT64, f32_to_any)                X(TN_UINT32, f32_to_any)            X(TN_UINT16, f32_to_any)

#define DEFINE_TO_F32(type, encode)                                                                         \
    static unsigned type##_to_f32(void *restrict dst, const void *restrict src, size_t n,                   \
                                  const tn_cast_args *args)                                                 \
    {                                                                                                       \
        (void)args;                                                                                         \
        return small_to_f32(dst, src, n, type);                                                             \
    }
#define DEFINE_FROM_F32(type, encode)                                                                       \
    static unsigned f32_to_##type(void *restrict dst, const void *restrict src, size_t n,                   \
                                  const tn_cast_args *args)                                                 \
    {                                                                                                       \
        return encode(dst, src, n, args, type);                                                             \
    }

EACH_SMALL_TYPE(DEFINE_TO_F32)
EACH_SMALL_TYPE(DEFINE_FROM_F32)
EACH_WIDE_TYPE(DEFINE_FROM_F32)

/* --- float64, and float16 with bfloat16 ---------------------------------- */

#define DIRECT(name, to, from)                                                                              \
    static unsigned name(void *restrict dst, const void *restrict src, size_t n, const tn_cast_args *args) \
    {                                                                                                       \
        return any_to_any(dst, src, n, args, to, from);                                                     \
    }

DIRECT(f64_to_f32, TN_FLOAT32, TN_FLOAT64)
DIRECT(f16_to_bf16, TN_BFLOAT16, TN_FLOAT16)
DIRECT(bf16_to_f16, TN_FLOAT16, TN_BFLOAT16)

/* Truncates, and sets the last bit if that was inexact.  The result is then
 * strictly between the same neighbours in any narrower type. */
static unsigned f64_to_f32_odd(void *restrict dst, const void *restrict src, size_t n,
                               const tn_cast_args *args)
{
    const tn_dtype_info *f64 = tn_dtype_get(TN_FLOAT64), *f32 = tn_dtype_get(TN_FLOAT32);
    const tn_cast_options cut = { .size = sizeof cut, .round = TN_ROUND_TRUNC };
    const tn_encode_rules rules = tn_encode_rules_for(f32, &cut);
    (void)args;
    for (size_t i = 0; i < n; i++) {
        unsigned flags = 0;
        double x;
        memcpy(&x, (const uint8_t *)src + 8 * i, 8);
        uint32_t w = (uint32_t)tn_number_encode(f32, &rules, tn_number_decode(f64, tn_code_get(src, i, 64)),
                                                0, &flags);
        w |= x == x && (double)tn_float_of(w) != x;
        memcpy((uint8_t *)dst + 4 * i, &w, 4);
    }
    return 0;
}

static unsigned f32_to_f64(void *restrict dst, const void *restrict src, size_t n, const tn_cast_args *args)
{
    (void)args;
    for (size_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, (const uint8_t *)src + 4 * i, 4);
        double y = (double)x;           /* the hardware makes NaN quiet and keeps its payload */
        memcpy((uint8_t *)dst + 8 * i, &y, 8);
    }
    return 0;
}

/* --- the table ----------------------------------------------------------- */

#define TO_F32_ENTRY(type, encode)   [type] = type##_to_f32,
#define FROM_F32_ENTRY(type, encode) [type] = f32_to_##type,

void tn_cast_kernels_init_scalar(tn_cast_kernels *k)
{
    *k = (tn_cast_kernels){
        .to_f32 = {
            EACH_SMALL_TYPE(TO_F32_ENTRY)
            [TN_TF32] = tf32_to_f32, [TN_FLOAT16] = f16_to_f32, [TN_BFLOAT16] = bf16_to_f32,
            [TN_INT16] = i16_to_f32, [TN_FX16] = i16_to_f32, [TN_UINT16] = u16_to_f32,
        },
        .from_f32 = { EACH_SMALL_TYPE(FROM_F32_ENTRY) EACH_WIDE_TYPE(FROM_F32_ENTRY) },
        .f64_to_f32_odd = f64_to_f32_odd,
        .f16_to_bf16 = f16_to_bf16,
        .bf16_to_f16 = bf16_to_f16,
        .f64_to_f32 = f64_to_f32,
        .f32_to_f64 = f32_to_f64,
        .swap = tn_swap_bytes,
    };
    set_counters(k);
}
