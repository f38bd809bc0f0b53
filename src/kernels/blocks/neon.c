/* kernels/blocks/neon.c - block types with NEON. */
#include "kernels/neon.h"
#include "kernels/blocks/bytes.h"

#define EVENS 0, 2, 4, 6
#define ODDS  1, 3, 5, 7

static inline vm above(vf a, vf b)      { return a > b; }
static inline vm same(vf a, vf b)       { return a == b; }
static inline vf pick(vm m, vf a, vf b)
{
    return (vf)vbslq_f32((uint32x4_t)m, (float32x4_t)a, (float32x4_t)b);
}
static inline vf rounded(vf v)          { return (vf)vrndnq_f32((float32x4_t)v); }
static inline unsigned lane_bits(vm m)  { return vaddvq_u32((uint32x4_t)(m & (vi){ 1, 2, 4, 8 })); }
static inline vf roots(vf v)            { return (vf)vsqrtq_f32((float32x4_t)v); }
static inline vf rough_inverse(vf v)    { return 1 / v; }
static inline vi more_in(vm m, vi v)    { return v - m; }
static inline vi less_in(vm m, vi v)    { return v + m; }
static inline vf least_f(vf a, vf b)    { return pick(b > a, a, b); }
static inline vf most_f(vf a, vf b)     { return pick(a > b, a, b); }
static inline vi least_i(vi a, vi b)    { return (vi)vminq_s32((int32x4_t)a, (int32x4_t)b); }

/* The low bytes of the numbers choose floats of four vectors. */
static inline vu widen_points(const uint16_t *p) { return (vu)vmovl_u16(vld1_u16(p)); }

static inline vf look4(const float table[4], vu index)
{
    uint8x16_t bytes = vreinterpretq_u8_f32(vld1q_f32(table));
    return (vf)vqtbl1q_u8(bytes, (uint8x16_t)((index & 3) * 0x04040404 + 0x03020100));
}

static inline vf look8(const float table[8], vu index)
{
    uint8x16x2_t bytes = vld1q_u8_x2((const uint8_t *)table);
    return (vf)vqtbl2q_u8(bytes, (uint8x16_t)((index & 7) * 0x04040404 + 0x03020100));
}

static inline vf least_lane(vf v) { return (vf)vdupq_n_f32(vminnmvq_f32((float32x4_t)v)); }

static inline vf look16(const float table[16], vi index)
{
    uint8x16x4_t bytes = vld1q_u8_x4((const uint8_t *)table);
    return (vf)vqtbl4q_u8(bytes, (uint8x16_t)(index * 0x04040404 + 0x03020100));
}

static inline float half_float(const uint8_t *p)
{
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16((uint16_t)(p[0] | p[1] << 8)))), 0);
}

static inline eight_f eight_looked_up(const float *table, eight_u index, vf (*look)(const float *, vu))
{
    vu part[2];
    eight_f all;
    memcpy(part, &index, sizeof part);
    vf two[2] = { look(table, part[0]), look(table, part[1]) };
    memcpy(&all, two, sizeof all);
    return all;
}

static inline eight_f eight_of_4(const float table[4], eight_u index)
{
    return eight_looked_up(table, index, look4);
}

static inline eight_f eight_of_8(const float table[8], eight_u index)
{
    return eight_looked_up(table, index, look8);
}

static inline void put_past(float *y, eight_f v) { memcpy(y, &v, sizeof v); }

static inline eight_f widen(const int8_t q[8])
{
    int16x8_t v = vmovl_s8(vld1_s8(q));
    float32x4_t two[2] = { vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), vcvtq_f32_s32(vmovl_high_s16(v)) };
    eight_f all;
    memcpy(&all, two, sizeof all);
    return all;
}

static inline void put_half_quickly(uint8_t *p, float v)
{
    uint16_t h = vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(v))), 0);
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

static inline void put_halves(uint8_t *p, vf v)
{
    vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32((float32x4_t)v)));
}

static inline void put_bytes(uint8_t q[32], const eight_i v[4])
{
    vu part[8];
    memcpy(part, v, sizeof part);
    vst1q_u8(q, (uint8x16_t)narrow8(part));
    vst1q_u8(q + 16, (uint8x16_t)narrow8(part + 4));
}

static inline eight_i within(eight_i v, int low, int high)
{
    int32x4_t two[2];
    memcpy(two, &v, sizeof two);
    for (unsigned i = 0; i < 2; i++)
        two[i] = vminq_s32(vmaxq_s32(two[i], vdupq_n_s32(low)), vdupq_n_s32(high));
    memcpy(&v, two, sizeof two);
    return v;
}

static inline uint32_t fifth_bits(const int8_t q[32])
{
    static const uint8_t bits[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    uint32_t all = 0;
    for (unsigned i = 0; i < 2; i++) {
        uint8x16_t set = vtstq_u8(vld1q_u8((const uint8_t *)q + 16 * i), vdupq_n_u8(16));
        uint8x16_t v = vandq_u8(set, vld1q_u8(bits));
        all |= (uint32_t)(vaddv_u8(vget_low_u8(v)) | vaddv_u8(vget_high_u8(v)) << 8) << 16 * i;
    }
    return all;
}

static inline void look_up(int8_t q[32], const uint8_t b[16], const int8_t table[16])
{
    int8x16_t values = vld1q_s8(table);
    uint8x16_t bytes = vld1q_u8(b);
    vst1q_s8(q, vqtbl1q_s8(values, vandq_u8(bytes, vdupq_n_u8(15))));
    vst1q_s8(q + 16, vqtbl1q_s8(values, vshrq_n_u8(bytes, 4)));
}

#include "kernels/blocks/template.h"
