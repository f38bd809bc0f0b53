/* kernels/reorder/neon.c - reorders with NEON. */
#include <arm_neon.h>
#include <string.h>

#include "kernels/reorder/table.h"

#define LEVEL(name) name##_neon
#define VECTOR 16
typedef uint8x16_t vec;

static inline vec load(const void *p)
{
    return vld1q_u8(p);
}

static inline vec load_part(const void *p, size_t n)
{
    vec v = vdupq_n_u8(0);
    memcpy(&v, p, n);
    return v;
}

static inline void put(void *p, vec v, bool stream)
{
    (void)stream;
    vst1q_u8(p, v);
}

static inline void put_part(void *p, vec v, size_t n)
{
    memcpy(p, &v, n);
}

static inline vec low(vec a, vec b, unsigned size)
{
    switch (size) {
    case 1:  return vzip1q_u8(a, b);
    case 2:  return (vec)vzip1q_u16((uint16x8_t)a, (uint16x8_t)b);
    case 4:  return (vec)vzip1q_u32((uint32x4_t)a, (uint32x4_t)b);
    default: return (vec)vzip1q_u64((uint64x2_t)a, (uint64x2_t)b);
    }
}

static inline vec high(vec a, vec b, unsigned size)
{
    switch (size) {
    case 1:  return vzip2q_u8(a, b);
    case 2:  return (vec)vzip2q_u16((uint16x8_t)a, (uint16x8_t)b);
    case 4:  return (vec)vzip2q_u32((uint32x4_t)a, (uint32x4_t)b);
    default: return (vec)vzip2q_u64((uint64x2_t)a, (uint64x2_t)b);
    }
}

static inline void turn(vec v[1])
{
    (void)v;                    /* 16 bytes are one lane */
}

enum { WIDTH = 16 };
typedef uint8x16_t bytes;

static inline bytes load_bytes(const void *p)
{
    return vld1q_u8(p);
}

static inline void put_bytes(void *p, bytes v, bool stream)
{
    (void)stream;
    vst1q_u8(p, v);
}

static inline bytes pick(bytes from, bytes v)
{
    return vqtbl1q_u8(v, from);
}

#include "kernels/reorder/interleave.h"

#define ADD_INTERLEAVE(k) add_interleave(k)

#include "kernels/reorder/template.h"
