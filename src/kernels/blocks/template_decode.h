/* kernels/blocks/template_decode.h - values of block types.
 *
 * Loops of 16 or 32 values of one scale, which compilers turn into vectors. */

/* Calls NAME_values() for each block. */
#define DECODE(name, values_, bytes_)                                                   \
    static void decode_##name(const uint8_t *b, size_t n, float *y)                     \
    {                                                                                   \
        for (size_t i = 0; i < n; i++)                                                  \
            name##_values(b + i * (bytes_), y + i * (values_), false);                  \
    }                                                                                   \
    static void stream_##name(const uint8_t *b, size_t n, float *y)                     \
    {                                                                                   \
        for (size_t i = 0; i < n; i++)                                                  \
            name##_values(b + i * (bytes_), y + i * (values_), true);                   \
    }

/* `past`: past the caches. */
INLINE void put_values(float *y, eight_f v, bool past)
{
    if (past)
        put_past(y, v);
    else
        put_eight(y, v);
}

/* ---- codes of bytes ---- */

/* n values of q * d, q * d + m and q * d - m. */
INLINE void put_products(float *y, const int8_t *q, unsigned n, float d, bool past)
{
    for (unsigned e = 0; e < n; e += 8)
        put_values(y + e, widen(q + e) * d, past);
}

INLINE void put_sums(float *y, const int8_t *q, unsigned n, float d, float m, bool past)
{
    for (unsigned e = 0; e < n; e += 8)
        put_values(y + e, widen(q + e) * d + m, past);
}

INLINE void put_differences(float *y, const int8_t *q, unsigned n, float d, float m, bool past)
{
    for (unsigned e = 0; e < n; e += 8)
        put_values(y + e, widen(q + e) * d - m, past);
}

/* Low nibbles of 16 bytes, then high ones, less a number. */
INLINE code_bytes take_nibbles(const uint8_t *b, uint8_t less)
{
    bytes16 v = take16(b);
    return (code_bytes){ .half = { (v & 15) - less, (v >> 4) - less } };
}

/* The same with a fifth bit of each, of the 32 bits at `high`. */
INLINE code_bytes take_fives(const uint8_t *b, const uint8_t *high, uint8_t less)
{
    typedef uint32_t words __attribute__((vector_size(16)));
    const bytes16 bit = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    bytes16 v = take16(b), w = (bytes16)((words){ 0 } + word32(high));
    bytes16 first = __builtin_shufflevector(w, w, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    bytes16 second = __builtin_shufflevector(w, w, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    first = (bytes16)((first & bit) == bit) & 16;
    second = (bytes16)((second & bit) == bit) & 16;
    return (code_bytes){ .half = { ((v & 15) | first) - less, (v >> 4 | second) - less } };
}

INLINE void q4_0_values(const uint8_t *b, float *y, bool past)
{
    code_bytes c = take_nibbles(b + 2, 8);
    put_products(y, c.q, 32, half_float(b), past);
}

INLINE void q4_1_values(const uint8_t *b, float *y, bool past)
{
    code_bytes c = take_nibbles(b + 4, 0);
    put_sums(y, c.q, 32, half_float(b), half_float(b + 2), past);
}

INLINE void q5_0_values(const uint8_t *b, float *y, bool past)
{
    code_bytes c = take_fives(b + 6, b + 2, 16);
    put_products(y, c.q, 32, half_float(b), past);
}

INLINE void q5_1_values(const uint8_t *b, float *y, bool past)
{
    code_bytes c = take_fives(b + 8, b + 4, 0);
    put_sums(y, c.q, 32, half_float(b), half_float(b + 2), past);
}

INLINE void q8_0_values(const uint8_t *b, float *y, bool past)
{
    put_products(y, (const int8_t *)b + 2, 32, half_float(b), past);
}

INLINE void q8_1_values(const uint8_t *b, float *y, bool past)
{
    put_products(y, (const int8_t *)b + 4, 32, half_float(b), past);
}

INLINE void q8_K_values(const uint8_t *b, float *y, bool past)
{
    put_products(y, (const int8_t *)b + 4, 256, tn_float_of(word32(b)), past);
}

DECODE(q4_0, 32, 18)
DECODE(q4_1, 32, 20)
DECODE(q5_0, 32, 22)
DECODE(q5_1, 32, 24)
DECODE(q8_0, 32, 34)
DECODE(q8_1, 32, 36)
DECODE(q8_K, 256, 292)

/* ---- codes of 1 and 2 bits ---- */

/* The bits of a word from `step` times the number of a lane on. */
INLINE eight_u bits_from(unsigned word, unsigned step)
{
    const eight_u number = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return ((eight_u){ 0 } + word) >> number * step;
}

INLINE void q1_0_values(const uint8_t *b, float *y, bool past)
{
    uint32_t minus = tn_float_bits(half_float(b)) ^ 0x80000000;
    for (unsigned e = 0; e < 128; e += 8)
        put_values(y + e, (eight_f)(minus ^ bits_from(b[2 + e / 8], 1) << 31), past);
}

INLINE void q2_0_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b);
    for (unsigned e = 0; e < 64; e += 8)
        put_values(y + e, eight_numbers((bits_from(word16(b + 2 + e / 4), 2) & 3) - 1) * d, past);
}

/* Trits of 52 bytes; v * 3 moves the next one up. */
INLINE void take_trits(int8_t *q, const uint8_t *b)
{
    bytes32 v = take32(b);
    bytes16 w = take16(b + 32), last = { b[48], b[49], b[50], b[51] };
    for (unsigned t = 0; t < 5; t++, v = v + v + v, w = w + w + w, last = last + last + last) {
        bytes32 first = (bytes32)(-1 - (v > 85) - (v > 170));   /* the highest trit, less 1 */
        bytes16 second = (bytes16)(-1 - (w > 85) - (w > 170));
        bytes16 third = (bytes16)(-1 - (last > 85) - (last > 170));
        memcpy(q + 32 * t, &first, 32);
        memcpy(q + 160 + 16 * t, &second, 16);
        if (t < 4)
            memcpy(q + 240 + 4 * t, &third, 4);
    }
}

INLINE void tq1_0_values(const uint8_t *b, float *y, bool past)
{
    int8_t q[256];
    take_trits(q, b);
    put_products(y, q, 256, half_float(b + 52), past);
}

/* 128 values: bits 0 and 1 of each of 32 bytes, then bits 2 and 3 and so on. */
INLINE void tq2_0_half(const uint8_t *b, float d, float *y, bool past)
{
    bytes32 v = take32(b);
    code_bytes c[4] = { { .all = (v & 3) - 1 }, { .all = (v >> 2 & 3) - 1 }, { .all = (v >> 4 & 3) - 1 },
                        { .all = (v >> 6) - 1 } };
    for (unsigned j = 0; j < 4; j++)
        put_products(y + 32 * j, c[j].q, 32, d, past);
}

INLINE void tq2_0_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b + 64);
    tq2_0_half(b, d, y, past);
    tq2_0_half(b + 32, d, y + 128, past);
}

DECODE(q1_0, 128, 18)
DECODE(q2_0, 64, 18)
DECODE(tq1_0, 256, 54)
DECODE(tq2_0, 256, 66)

/* ---- codes that stand for other numbers ---- */

INLINE void iq4_nl_values(const uint8_t *b, float *y, bool past)
{
    int8_t q[32];
    look_up(q, b + 2, tn_block_iq4);
    put_products(y, q, 32, half_float(b), past);
}

INLINE void iq4_xs_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b);
    unsigned high = word16(b + 2);
    for (unsigned s = 0; s < 8; s++) {
        int8_t q[32];
        unsigned scale = nibble(b[4 + s / 2], s % 2) | (high >> 2 * s & 3) << 4;
        look_up(q, b + 8 + 16 * s, tn_block_iq4);
        put_products(y + 32 * s, q, 32, d * (float)((int)scale - 32), past);
    }
}

INLINE void mxfp4_values(const uint8_t *b, float *y, bool past)
{
    int8_t q[32];
    look_up(q, b + 1, tn_block_fp4);
    put_products(y, q, 32, mx_scale(b[0]), past);
}

INLINE void nvfp4_values(const uint8_t *b, float *y, bool past)
{
    for (unsigned s = 0; s < 4; s += 2) {
        int8_t q[32];           /* of two sub-blocks, 8 codes of each in turn */
        float first = nv_scale(b[s]), second = nv_scale(b[s + 1]), *at = y + 16 * s;
        look_up(q, b + 4 + 8 * s, tn_block_fp4);
        put_products(at, q, 8, first, past);
        put_products(at + 8, q + 16, 8, first, past);
        put_products(at + 16, q + 8, 8, second, past);
        put_products(at + 24, q + 24, 8, second, past);
    }
}

DECODE(iq4_nl, 32, 18)
DECODE(iq4_xs, 256, 136)
DECODE(mxfp4, 32, 17)
DECODE(nvfp4, 64, 36)

/* ---- 256 values, scales of sub-blocks ---- */

/* 128 values. */
INLINE void q2_K_half(const uint8_t *b, const uint8_t *sc, float d, float dmin, float *y, bool past)
{
    bytes32 v = take32(b);
    code_bytes c[4] = { { .all = v & 3 }, { .all = v >> 2 & 3 }, { .all = v >> 4 & 3 }, { .all = v >> 6 } };
    for (unsigned s = 0; s < 8; s++)
        put_differences(y + 16 * s, c[s / 2].q + 16 * (s % 2), 16, d * (float)(sc[s] & 15),
                        dmin * (float)(sc[s] >> 4), past);
}

INLINE void q2_K_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b + 80), dmin = half_float(b + 82);
    q2_K_half(b + 16, b, d, dmin, y, past);
    q2_K_half(b + 48, b + 8, d, dmin, y + 128, past);
}

/* 128 values; `high` has their third bits from bit 0 on. */
INLINE void q3_K_half(const uint8_t *b, bytes32 high, const float *scale, float *y, bool past)
{
    bytes32 v = take32(b);
    code_bytes c[4] = { { .all = ((v & 3) | (high << 2 & 4)) - 4 },
                        { .all = ((v >> 2 & 3) | (high << 1 & 4)) - 4 },
                        { .all = ((v >> 4 & 3) | (high & 4)) - 4 },
                        { .all = (v >> 6 | (high >> 1 & 4)) - 4 } };
    for (unsigned s = 0; s < 8; s++)
        put_products(y + 16 * s, c[s / 2].q + 16 * (s % 2), 16, scale[s], past);
}

INLINE void q3_K_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b + 108), scale[16];
    for (unsigned s = 0; s < 16; s++)
        scale[s] = d * (float)k3_scale(b + 96, s);
    q3_K_half(b + 32, take32(b), scale, y, past);
    q3_K_half(b + 64, take32(b) >> 4, scale + 8, y + 128, past);
}

/* The scales and minima of q4_K and q5_K. */
typedef struct k_factors {
    float scale[8], min[8];
} k_factors;

/* k_scale() of all sub-blocks: 6 bits of each, four in a word.  Where there are these vectors, bytes are
 * little-endian. */
INLINE void take_k_factors(const uint8_t *b, k_factors *f)
{
    const uint32_t first = word32(b + 4), second = word32(b + 8), third = word32(b + 12);
    const uint32_t scale[2] = { first & 0x3f3f3f3f, (third & 0x0f0f0f0f) | (first >> 2 & 0x30303030) };
    const uint32_t min[2] = { second & 0x3f3f3f3f, (third >> 4 & 0x0f0f0f0f) | (second >> 2 & 0x30303030) };
    put_eight(f->scale, half_float(b) * widen((const int8_t *)scale));
    put_eight(f->min, half_float(b + 2) * widen((const int8_t *)min));
}

INLINE void q4_K_values(const uint8_t *b, float *y, bool past)
{
    k_factors f;
    take_k_factors(b, &f);
    for (unsigned s = 0; s < 8; s += 2) {
        bytes32 v = take32(b + 16 + 16 * s);
        code_bytes low = { .all = v & 15 }, high = { .all = v >> 4 };
        put_differences(y + 32 * s, low.q, 32, f.scale[s], f.min[s], past);
        put_differences(y + 32 * s + 32, high.q, 32, f.scale[s + 1], f.min[s + 1], past);
    }
}

INLINE void q5_K_values(const uint8_t *b, float *y, bool past)
{
    k_factors f;
    take_k_factors(b, &f);
    bytes32 fifth = take32(b + 16);
    for (unsigned s = 0; s < 8; s += 2, fifth >>= 2) {
        bytes32 v = take32(b + 48 + 16 * s);
        code_bytes low = { .all = (v & 15) | (fifth << 4 & 16) };
        code_bytes high = { .all = v >> 4 | (fifth << 3 & 16) };
        put_differences(y + 32 * s, low.q, 32, f.scale[s], f.min[s], past);
        put_differences(y + 32 * s + 32, high.q, 32, f.scale[s + 1], f.min[s + 1], past);
    }
}

/* 128 values. */
INLINE void q6_K_half(const uint8_t *b, const uint8_t *qh, const uint8_t *sc, float d, float *y, bool past)
{
    bytes32 v = take32(b), w = take32(b + 32), high = take32(qh);
    code_bytes c[4] = { { .all = ((v & 15) | (high << 4 & 48)) - 32 },
                        { .all = ((w & 15) | (high << 2 & 48)) - 32 },
                        { .all = (v >> 4 | (high & 48)) - 32 }, { .all = (w >> 4 | (high >> 2 & 48)) - 32 } };
    for (unsigned s = 0; s < 8; s++)
        put_products(y + 16 * s, c[s / 2].q + 16 * (s % 2), 16, d * (float)(int8_t)sc[s], past);
}

INLINE void q6_K_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b + 208);
    q6_K_half(b, b + 128, b + 192, d, y, past);
    q6_K_half(b + 64, b + 160, b + 200, d, y + 128, past);
}

DECODE(q2_K, 256, 84)
DECODE(q3_K, 256, 110)
DECODE(q4_K, 256, 144)
DECODE(q5_K, 256, 176)
DECODE(q6_K, 256, 210)

/* ---- grids ---- */

INLINE eight_f with_signs(eight_f v, unsigned signs)
{
    const eight_u up = { 31, 30, 29, 28, 27, 26, 25, 24 };
    return (eight_f)((eight_u)v ^ (((eight_u){ 0 } + signs) << up & 0x80000000));
}

/* 8 values of iq2. */
INLINE void put_iq2(float *y, float d, unsigned point, unsigned signs, bool past)
{
    static const float levels[4] = { 8, 25, 43, 0 };
    put_values(y, with_signs(d * eight_of_4(levels, bits_from(point, 2)), signs), past);
}

INLINE float iq2_scale(float d, unsigned scale) { return d * (0.5f + (float)scale) * 0.25f; }

INLINE void iq2_xxs_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b);
    for (unsigned s = 0; s < 8; s++) {
        const uint8_t *words = b + 2 + 8 * s;
        uint32_t rest = word32(words + 4);
        float scale = iq2_scale(d, rest >> 28);
        for (unsigned g = 0; g < 4; g++)
            put_iq2(y + 32 * s + 8 * g, scale, tn_grid_iq2_xxs[words[g]], signs_of(rest >> 7 * g & 127),
                    past);
    }
}

INLINE void iq2_xs_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b);
    for (unsigned s = 0; s < 16; s++) {
        unsigned q = word16(b + 2 + 4 * s), r = word16(b + 4 + 4 * s);
        float scale = iq2_scale(d, nibble(b[66 + s / 2], s % 2));
        put_iq2(y + 16 * s, scale, tn_grid_iq2_xs[q & 511], signs_of(q >> 9), past);
        put_iq2(y + 16 * s + 8, scale, tn_grid_iq2_xs[r & 511], signs_of(r >> 9), past);
    }
}

INLINE void iq2_s_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b);
    for (unsigned s = 0; s < 8; s++) {
        unsigned high = (unsigned)b[66 + s] << 8;
        float scale[2] = { iq2_scale(d, b[74 + s] & 15), iq2_scale(d, b[74 + s] >> 4) };
        for (unsigned g = 0; g < 4; g++)
            put_iq2(y + 32 * s + 8 * g, scale[g / 2],
                    tn_grid_iq2_s[b[2 + 4 * s + g] | (high >> 2 * g & 0x300)], b[34 + 4 * s + g], past);
    }
}

/* 8 values of iq3, of two points. */
INLINE void put_iq3_xxs(float *y, float d, unsigned first, unsigned second, unsigned signs, bool past)
{
    static const float levels[8] = { 4, 12, 20, 28, 36, 44, 52, 62 };
    put_values(y, with_signs(d * eight_of_8(levels, bits_from(first | second << 12, 3)), signs), past);
}

INLINE void put_iq3_s(float *y, float d, unsigned first, unsigned second, unsigned signs, bool past)
{
    static const float levels[8] = { 1, 3, 5, 7, 9, 11, 13, 15 };
    put_values(y, with_signs(d * eight_of_8(levels, bits_from(first | second << 12, 3)), signs), past);
}

INLINE void iq3_xxs_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b);
    for (unsigned s = 0; s < 8; s++) {
        uint32_t rest = word32(b + 66 + 4 * s);
        float scale = d * (0.5f + (float)(rest >> 28)) * 0.5f;
        const uint8_t *q = b + 2 + 8 * s;
        for (unsigned g = 0; g < 4; g++, q += 2)
            put_iq3_xxs(y + 32 * s + 8 * g, scale, tn_grid_iq3_xxs[q[0]], tn_grid_iq3_xxs[q[1]],
                        signs_of(rest >> 7 * g & 127), past);
    }
}

INLINE void iq3_s_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b);
    for (unsigned s = 0; s < 8; s++) {
        unsigned high = (unsigned)b[66 + s] << 8;
        float scale = d * (1 + 2 * (float)nibble(b[106 + s / 2], s % 2));
        const uint8_t *q = b + 2 + 8 * s;
        for (unsigned g = 0; g < 4; g++, q += 2, high >>= 2)
            put_iq3_s(y + 32 * s + 8 * g, scale, tn_grid_iq3_s[q[0] | (high & 0x100)],
                      tn_grid_iq3_s[q[1] | (high >> 1 & 0x100)], b[74 + 4 * s + g], past);
    }
}

/* 8 values of iq1. */
INLINE void put_iq1(float *y, float d, unsigned point, unsigned is_lower, bool past)
{
    static const float levels[2][4] = { { -0.875f, 0.125f, 1.125f, 0 }, { -1.125f, -0.125f, 0.875f, 0 } };
    put_values(y, d * eight_of_4(levels[is_lower], bits_from(point, 2)), past);
}

INLINE void iq1_s_values(const uint8_t *b, float *y, bool past)
{
    float d = half_float(b);
    for (unsigned s = 0; s < 8; s++) {
        unsigned high = word16(b + 34 + 2 * s);
        float scale = d * (float)(2 * (high >> 12 & 7) + 1);
        for (unsigned g = 0; g < 4; g++)
            put_iq1(y + 32 * s + 8 * g, scale, tn_grid_iq1[b[2 + 4 * s + g] | (high >> 3 * g & 7) << 8],
                    high >> 15, past);
    }
}

INLINE void iq1_m_values(const uint8_t *b, float *y, bool past)
{
    unsigned h = 0;
    for (unsigned i = 0; i < 4; i++)
        h |= word16(b + 48 + 2 * i) >> 12 << 4 * i;
    float d = half_value(h);
    for (unsigned s = 0; s < 16; s++) {
        unsigned high = b[32 + s], word = word16(b + 48 + s / 4 * 2);
        float scale = d * (float)(2 * (word >> 3 * (s % 4) & 7) + 1);
        put_iq1(y + 16 * s, scale, tn_grid_iq1[b[2 * s] | (high & 7) << 8], high >> 3 & 1, past);
        put_iq1(y + 16 * s + 8, scale, tn_grid_iq1[b[2 * s + 1] | (high & 0x70) << 4], high >> 7, past);
    }
}

DECODE(iq2_xxs, 256, 66)
DECODE(iq2_xs, 256, 74)
DECODE(iq2_s, 256, 82)
DECODE(iq3_xxs, 256, 98)
DECODE(iq3_s, 256, 110)
DECODE(iq1_s, 256, 50)
DECODE(iq1_m, 256, 56)
