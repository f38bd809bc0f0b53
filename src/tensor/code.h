/* tensor/code.h - the bits of one element: the only place that knows how elements are packed into bytes.
 *
 * Inline, because loops over elements call them. */
#ifndef TN_TENSOR_CODE_H
#define TN_TENSOR_CODE_H

#include <tenon/dtype.h>

#include <stdint.h>
#include <string.h>

/* The code of a float32, and the float32 of a code. */
static inline uint32_t tn_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float tn_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The first byte of element `i`, which is narrower than a byte, and its first bit there.  Eight elements take
 * `bits` bytes. */
static inline uint64_t tn_packed_byte(uint64_t i, unsigned bits) { return i / 8 * bits + i % 8 * bits / 8; }
static inline unsigned tn_packed_bit(uint64_t i, unsigned bits)  { return (unsigned)(i % 8) * bits % 8; }

/* Bytes of n elements of any width that begin on a byte. */
static inline uint64_t tn_packed_bytes(uint64_t n, unsigned bits)
{
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

static inline uint64_t tn_packed_get(const uint8_t *data, uint64_t i, unsigned bits)
{
    const uint8_t *p = data + tn_packed_byte(i, bits);
    unsigned bit = tn_packed_bit(i, bits), word = p[0];
    if (bit + bits > 8)                 /* else the next byte may be beyond the end */
        word |= (unsigned)p[1] << 8;
    return word >> bit & ((1u << bits) - 1);
}

static inline void tn_packed_put(uint8_t *data, uint64_t i, unsigned bits, uint64_t code)
{
    uint8_t *p = data + tn_packed_byte(i, bits);
    unsigned bit = tn_packed_bit(i, bits), mask = ((1u << bits) - 1) << bit;
    unsigned word = ((unsigned)code << bit) & mask;
    p[0] = (uint8_t)((p[0] & ~mask) | word);
    if (bit + bits > 8)
        p[1] = (uint8_t)((p[1] & ~(mask >> 8)) | word >> 8);
}

/* Element `i` of a packed array; `bits` is 1 to 8, 16, 32 or 64.  i * bits must not overflow. */
static inline uint64_t tn_code_get(const void *data, uint64_t i, unsigned bits)
{
    const uint8_t *p = data;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (bits) {
    case 8:
        return p[i];
    case 16:
        memcpy(&u16, p + i * sizeof u16, sizeof u16);
        return u16;
    case 32:
        memcpy(&u32, p + i * sizeof u32, sizeof u32);
        return u32;
    case 64:
        memcpy(&u64, p + i * sizeof u64, sizeof u64);
        return u64;
    default:
        return tn_packed_get(p, i, bits);
    }
}

/* Index `i` of a sparse tensor: an int32, uint32, int64 or uint64.  Negative ones become too large for any
 * shape. */
static inline uint64_t tn_index_get(tn_dtype dtype, const void *data, uint64_t i)
{
    uint64_t code = tn_code_get(data, i, dtype == TN_INT32 || dtype == TN_UINT32 ? 32 : 64);
    return dtype == TN_INT32 ? (uint64_t)(int64_t)(int32_t)(uint32_t)code : code;
}

/* Stores the low bits of `code` as element `i`. */
static inline void tn_code_put(void *data, uint64_t i, unsigned bits, uint64_t code)
{
    uint8_t *p = data;
    uint16_t u16 = (uint16_t)code;
    uint32_t u32 = (uint32_t)code;
    switch (bits) {
    case 8:
        p[i] = (uint8_t)code;
        break;
    case 16:
        memcpy(p + i * sizeof u16, &u16, sizeof u16);
        break;
    case 32:
        memcpy(p + i * sizeof u32, &u32, sizeof u32);
        break;
    case 64:
        memcpy(p + i * sizeof code, &code, sizeof code);
        break;
    default:
        tn_packed_put(p, i, bits, code);
    }
}

#endif
