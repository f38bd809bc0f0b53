/* kernels/scaled_encode/scalar.c - encodes scaled tiles on any CPU, in vectors of the compiler. */
#include "kernels/level.h"

#define LEVEL(name) name##_scalar

enum { LANES = 4 };
typedef float    vf __attribute__((vector_size(16)));
typedef int32_t  vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));

#define FUSED 0
#define EVENS 0, 2, 4, 6
#define ODDS  1, 3, 5, 7

static inline vi choose(vi mask, vi x, vi y)        { return (mask & x) | (~mask & y); }
static inline vi pick(vi a, vi b, vi x, vi y)       { return choose((vi)(a > b), x, y); }
static inline vf least_f(vf a, vf b)                { return (vf)choose((vi)(a < b), (vi)a, (vi)b); }
static inline vf most_f(vf a, vf b)                 { return (vf)choose((vi)(a > b), (vi)a, (vi)b); }
static inline vi least_i(vi a, vi b)                { return pick(a, b, b, a); }
static inline vi most_i(vi a, vi b)                 { return pick(a, b, a, b); }
static inline vu most_u(vu a, vu b)                 { return (vu)choose((vi)(a > b), (vi)a, (vi)b); }
static inline vu right(vu v, unsigned n)            { return v >> n; }
static inline vf fused(vf a, vf b, vf c)            { return a * b + c; }
static inline vf smaller(vf x, vf limit)            { return least_f((vf)((vi)x & INT32_MAX), limit); }
static inline vi spread(vi v, vi order)             { return (vi){ v[order[0]], v[order[1]], v[order[2]],
                                                                   v[order[3]] }; }

/* The addition rounds at the last bit before the point. */
static inline vi nearest(vf v)
{
    const float magic = 0x1.8p23f;
    return (vi)(v + magic) - (vi)((vf){ 0 } + magic);
}

static inline void put8(uint8_t *p, const vu v[4], bool stream)
{
    (void)stream;
    for (unsigned i = 0; i < 4 * LANES; i++)
        p[i] = (uint8_t)v[i / LANES][i % LANES];
}

static inline void put16(uint8_t *p, const vu v[4], bool stream)
{
    (void)stream;
    for (unsigned i = 0; i < 4 * LANES; i++) {
        uint16_t code = (uint16_t)v[i / LANES][i % LANES];
        __builtin_memcpy(p + 2 * i, &code, sizeof code);
    }
}

/* Joins bytes to pairs, pairs to halves, then the halves. */
static inline uint64_t squeeze(uint64_t w, unsigned bits)
{
    w &= UINT64_C(0x0101010101010101) * ((1u << bits) - 1);
    w = (w & UINT64_C(0x00ff00ff00ff00ff)) | (w & UINT64_C(0xff00ff00ff00ff00)) >> (8 - bits);
    w = (w & UINT64_C(0x0000ffff0000ffff)) | (w & UINT64_C(0xffff0000ffff0000)) >> (16 - 2 * bits);
    return (w & UINT32_MAX) | (w & ~(uint64_t)UINT32_MAX) >> (32 - 4 * bits);
}

static inline void put_fours(uint8_t *p, const uint8_t *codes)
{
    for (unsigned i = 0; i < 8 * LANES; i += 2)
        p[i / 2] = (uint8_t)(codes[i] | codes[i + 1] << 4);
}

static inline void put_sixes(uint8_t *p, const uint8_t *codes)
{
    for (unsigned i = 0; i < 4 * LANES; i += 4, p += 3) {
        uint32_t four = codes[i] | (uint32_t)codes[i + 1] << 6 | (uint32_t)codes[i + 2] << 12 |
                        (uint32_t)codes[i + 3] << 18;
        __builtin_memcpy(p, &four, 3);
    }
}

#include "kernels/scaled_encode/template.h"
