/* kernels/cast/neon.c - casts with NEON. */
#include "kernels/neon.h"

static inline vm above(vu a, vu b)         { return (vi)a > (vi)b; }
static inline vm both(vm a, vm b)          { return a & b; }
static inline vm differ(vf a, vf b)        { return a != b; }
static inline vu pick(vm m, vu a, vu b)
{
    return (vu)vbslq_u32((uint32x4_t)m, (uint32x4_t)a, (uint32x4_t)b);
}
static inline vm outside(vf x, float low, float high) { return ~((x >= low) & (x < high)); }

static inline vf clamp(vf x, float low, float high)
{
    return (vf)vminq_f32(vdupq_n_f32(high), vmaxq_f32(vdupq_n_f32(low), (float32x4_t)x));
}

static inline void widen16(vu v[4], const uint8_t *p)
{
    for (unsigned j = 0; j < 2; j++) {
        uint16x8_t halves = vreinterpretq_u16_u8(vld1q_u8(p + 16 * j));
        v[2 * j] = (vu)vmovl_u16(vget_low_u16(halves));
        v[2 * j + 1] = (vu)vmovl_high_u16(halves);
    }
}

static inline void widen8(vu v[4], const uint8_t *p)
{
    uint8x16_t bytes = vld1q_u8(p);
    uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
    v[0] = (vu)vmovl_u16(vget_low_u16(low));
    v[1] = (vu)vmovl_high_u16(low);
    v[2] = (vu)vmovl_u16(vget_low_u16(high));
    v[3] = (vu)vmovl_high_u16(high);
}

static inline void narrow24(uint8_t *p, vu v)
{
    static const uint8_t triples[16] = { 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 255, 255, 255, 255 };
    vst1q_u8(p, vqtbl1q_u8((uint8x16_t)v, vld1q_u8(triples)));
}

static inline vu widen24(const uint8_t *p)
{
    static const uint8_t fours[16] = { 0, 1, 2, 255, 3, 4, 5, 255, 6, 7, 8, 255, 9, 10, 11, 255 };
    uint8x16_t bytes = vdupq_n_u8(0);
    memcpy(&bytes, p, 12);
    return (vu)vqtbl1q_u8(bytes, vld1q_u8(fours));
}

static inline void widen_f16(vu v[4], const uint8_t *p)
{
    for (unsigned j = 0; j < 2; j++) {
        float16x8_t halves = vreinterpretq_f16_u8(vld1q_u8(p + 16 * j));
        v[2 * j] = (vu)vcvt_f32_f16(vget_low_f16(halves));
        v[2 * j + 1] = (vu)vcvt_high_f32_f16(halves);
    }
}

static inline vu narrow_f16(vu a, vu b)
{
    return (vu)vcvt_high_f16_f32(vcvt_f16_f32((float32x4_t)a), (float32x4_t)b);
}

static inline void put(uint8_t *p, vu v, bool stream)
{
    (void)stream;
    vst1q_u8(p, (uint8x16_t)v);
}

#include "kernels/cast/template.h"
