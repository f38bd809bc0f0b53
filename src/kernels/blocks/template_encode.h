/* kernels/blocks/template_encode.h - encodes block types of one scale.
 *
 * Where a scale is so small that it has no inverse, the definition multiplies with infinity, and all codes
 * become the same. */
#include "kernels/blocks/encode_fp4.h"

/* ---- ranges ---- */

INLINE vf join_lanes(vf v[LANES])
{
    for (unsigned n = LANES; n > 1; n /= 2)
        for (unsigned i = 0; i < n / 2; i++)
            v[i] = most_f(evens(v[2 * i], v[2 * i + 1]), odds(v[2 * i], v[2 * i + 1]));
    return v[0];
}

/* LANES blocks of `size` values, or fewer: then the last is taken again. */
INLINE const float *block_at(const float *x, size_t n, unsigned size, unsigned r)
{
    return x + (r < n ? r : n - 1) * size;
}

/* The largest magnitudes of blocks, one in each lane. */
INLINE vf peaks_of(const float *x, size_t n, unsigned size)
{
    vf most[LANES];
    for (unsigned r = 0; r < LANES; r++) {
        const float *block = block_at(x, n, size, r);
        most[r] = magnitude(floats(block));
        for (unsigned e = LANES; e < size; e += LANES)
            most[r] = most_f(magnitude(floats(block + e)), most[r]);
    }
    return join_lanes(most);
}

/* The highest and the lowest values of blocks. */
INLINE vf ends_of(const float *x, size_t n, unsigned size, vf *lowest)
{
    vf high[LANES], low[LANES];
    for (unsigned r = 0; r < LANES; r++) {
        const float *block = block_at(x, n, size, r);
        high[r] = low[r] = floats(block);
        for (unsigned e = LANES; e < size; e += LANES) {
            high[r] = most_f(floats(block + e), high[r]);
            low[r] = least_f(floats(block + e), low[r]);
        }
        low[r] = -low[r];
    }
    *lowest = -join_lanes(low);
    return join_lanes(high);
}

/* first_largest() of blocks: only if both signs have this magnitude it matters which is first. */
INLINE vf first_peaks_of(const float *x, size_t n, unsigned size)
{
    vf low, high = ends_of(x, n, size, &low), first = pick(above(high, -low), high, low);
    if (any(same(high, -low)))
        for (unsigned r = 0; r < LANES; r++)
            if (high[r] == -low[r])
                first[r] = first_largest(block_at(x, n, size, r), size);
    return first;
}

/* The scales of some blocks. */
typedef struct steps {
    float   d[LANES], inverse[LANES];   /* inverse: 0 if there is none */
    float   min[LANES];
    uint8_t half[2 * LANES], half_min[2 * LANES];       /* as they are stored */
} steps;

/* inverse(), and infinite ones become 0. */
INLINE void set_steps(vf d, steps *s)
{
    vf i = 1 / d;
    i = pick(above(magnitude(i), every_f(FLT_MAX)), (vf){ 0 }, i);
    put_floats(s->d, d);
    put_floats(s->inverse, i);
    put_halves(s->half, d);
}

/* ---- codes ---- */

INLINE eight_f eight(const float *p)        { eight_f v; memcpy(&v, p, sizeof v); return v; }
INLINE eight_i cut_eight(eight_f v)         { return __builtin_convertvector(v, eight_i); }
INLINE eight_f eight_magnitudes(eight_f v)  { return (eight_f)((eight_i)v & INT32_MAX); }

/* Rounds half away from zero, below 2^22. */
INLINE eight_i away(eight_f v)
{
    const eight_i nearly_half = (eight_i)((eight_f){ 0 } + 0x1.fffffep-2f);
    return cut_eight(v + (eight_f)(((eight_i)v & INT32_MIN) | nearly_half));
}

/* ---- 4 and 5 bits ---- */

/* Codes of 32 values, at most `most`. */
INLINE bytes32 put_codes(const eight_i v[4], uint8_t most)
{
    uint8_t q[32];
    put_bytes(q, v);
    bytes32 all = take32(q), more = (bytes32)(all > most);
    return (all & ~more) | (most & more);
}

/* Codes of a block around N.  A scale without an inverse gives 0, but one of 0 gives N. */
INLINE bytes32 quick_codes_around(const float *x, int N, float d, float id)
{
    eight_i v[4];
    if (id == 0 && d != 0)
        return (bytes32){ 0 };
    for (unsigned k = 0; k < 4; k++)
        v[k] = cut_eight(eight(x + 8 * k) * id + ((float)N + 0.5f));
    return put_codes(v, (uint8_t)(2 * N - 1));
}

/* Codes of a block above a minimum. */
INLINE bytes32 quick_codes_above(const float *x, int N, float d, float id, float min)
{
    eight_i v[4];
    if (d > FLT_MAX)            /* the range is infinite */
        return (bytes32){ 0 };
    for (unsigned k = 0; k < 4; k++)
        v[k] = cut_eight((eight(x + 8 * k) - min) * id + 0.5f);
    return put_codes(v, (uint8_t)N);
}

/* The scales of blocks of codes around N. */
INLINE void set_around(const float *x, size_t n, int N, steps *s)
{
    set_steps(first_peaks_of(x, n, 32) / -(float)N, s);
}

/* The scales and minima of blocks of codes 0 to N. */
INLINE void set_above(const float *x, size_t n, int N, steps *s)
{
    vf low, high = ends_of(x, n, 32, &low);
    if (any(same(low, (vf){ 0 })))
        for (unsigned r = 0; r < LANES; r++)
            for (unsigned e = 0; low[r] == 0; e++)      /* the sign is that of the first 0 */
                if (block_at(x, n, 32, r)[e] == 0) {
                    low[r] = block_at(x, n, 32, r)[e];
                    break;
                }
    put_floats(s->min, low);
    put_halves(s->half_min, low);
    set_steps(pick(same(high, low), (vf){ 0 }, high - low) / (float)N, s);
}

/* put_nibbles() */
INLINE void put_pairs(uint8_t *qs, const code_bytes *c)
{
    bytes16 v = (c->half[0] & 15) | c->half[1] << 4;
    memcpy(qs, &v, sizeof v);
}

INLINE void put_q4_0(uint8_t *b, const uint8_t *d, const uint8_t *min, const code_bytes *c)
{
    (void)min;
    memcpy(b, d, 2);
    put_pairs(b + 2, c);
}

INLINE void put_q5_0(uint8_t *b, const uint8_t *d, const uint8_t *min, const code_bytes *c)
{
    (void)min;
    memcpy(b, d, 2);
    put32(b + 2, fifth_bits(c->q));
    put_pairs(b + 6, c);
}

INLINE void put_q4_1(uint8_t *b, const uint8_t *d, const uint8_t *min, const code_bytes *c)
{
    memcpy(b, d, 2);
    memcpy(b + 2, min, 2);
    put_pairs(b + 4, c);
}

INLINE void put_q5_1(uint8_t *b, const uint8_t *d, const uint8_t *min, const code_bytes *c)
{
    memcpy(b, d, 2);
    memcpy(b + 2, min, 2);
    put32(b + 4, fifth_bits(c->q));
    put_pairs(b + 8, c);
}

INLINE void encode_32(const float *x, size_t n, const type_32 *t, uint8_t *b)
{
    for (size_t i = 0; i < n; i += LANES) {
        steps s;
        if (t->has_min)
            set_above(x, n - i, t->N, &s);
        else
            set_around(x, n - i, t->N, &s);
        for (unsigned r = 0; r < LANES && r < n - i; r++, x += 32, b += t->bytes) {
            code_bytes c;
            if (t->has_min)
                c.all = quick_codes_above(x, t->N, s.d[r], s.inverse[r], s.min[r]);
            else
                c.all = quick_codes_around(x, t->N, s.d[r], s.inverse[r]);
            t->put(b, s.half + 2 * r, s.half_min + 2 * r, &c);
        }
    }
}

#define ENCODE_32(name, N_, has_min_, bytes_)                                                               \
    static void encode_##name(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)      \
    {                                                                                                       \
        const type_32 t = { .N = N_, .has_min = has_min_, .bytes = bytes_, .put = put_##name };             \
        if (q)                                                                                              \
            encode_weighted(x, q, mean_square, n, &t, b);                                                   \
        else                                                                                                \
            encode_32(x, n, &t, b);                                                                         \
    }

ENCODE_32(q4_0, 8, false, 18)
ENCODE_32(q5_0, 16, false, 22)
ENCODE_32(q4_1, 15, true, 20)
ENCODE_32(q5_1, 31, true, 24)

/* ---- 8 bits ---- */

/* Returns the sum of the codes. */
INLINE int put_eights(const float *x, float id, uint8_t *qs)
{
    eight_i v[4], sum = { 0 };
    for (unsigned k = 0; k < 4; k++) {
        v[k] = away(eight(x + 8 * k) * id);
        sum += v[k];
        v[k] &= 255;
    }
    put_bytes(qs, v);
    int all = 0;
    for (unsigned i = 0; i < 8; i++)
        all += sum[i];
    return all;
}

static void encode_q8_0(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (size_t i = 0; i < n; i += LANES) {
        steps s;
        set_steps(peaks_of(x, n - i, 32) / 127, &s);
        for (unsigned r = 0; r < LANES && r < n - i; r++, x += 32, b += 34) {
            memcpy(b, s.half + 2 * r, 2);
            put_eights(x, s.inverse[r], b + 2);
        }
    }
}

static void encode_q8_1(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (size_t i = 0; i < n; i += LANES) {
        steps s;
        set_steps(peaks_of(x, n - i, 32) / 127, &s);
        for (unsigned r = 0; r < LANES && r < n - i; r++, x += 32, b += 36) {
            memcpy(b, s.half + 2 * r, 2);
            put_half_quickly(b + 2, (float)put_eights(x, s.inverse[r], b + 4) * s.d[r]);
        }
    }
}

INLINE void encode_eights(const float *restrict x, float i, uint8_t *restrict b)
{
    put32(b, tn_float_bits(1 / i));
    for (unsigned e = 0; e < 256; e++) {
        int code = near(i * x[e]);
        b[4 + e] = (uint8_t)(code < 127 ? code : 127);
    }
    for (unsigned s = 0; s < 16; s++) {
        int sum = 0;
        for (unsigned e = 0; e < 16; e++)
            sum += (int8_t)b[4 + 16 * s + e];
        put16(b + 260 + 2 * s, (uint32_t)sum & 0xffff);
    }
}

/* first_largest() of 256 values, or only its magnitude. */
INLINE float one_peak(const float *x, bool with_sign)
{
    vf high = floats(x), low = high;
    for (unsigned e = LANES; e < 256; e += LANES) {
        high = most_f(floats(x + e), high);
        low = least_f(floats(x + e), low);
    }
    float highest = -least_lane(-high)[0], lowest = least_lane(low)[0];
    if (!with_sign)
        return fabsf(highest > -lowest ? highest : lowest);
    if (highest == -lowest)     /* it matters which is first */
        return first_largest(x, 256);
    return highest > -lowest ? highest : lowest;
}

static void encode_q8_K(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (size_t i = 0; i < n; i++, x += 256, b += 292) {
        float max = one_peak(x, true);
        if (max != 0)
            encode_eights(x, -127 / max, b);
        else
            memset(b, 0, 292);
    }
}

/* ---- 1 and 2 bits ---- */

/* Bits of 128 values that are not negative. */
INLINE void put_signs(const float *x, uint8_t *b)
{
    for (unsigned e = 0; e < 128; e += 16) {
        unsigned bits = 0;
        for (unsigned k = 0; k < 16; k += LANES)
            bits |= lane_bits(none_of(above((vf){ 0 }, floats(x + e + k)))) << k;
        put16(b + e / 8, bits);
    }
}

/* The sum of the magnitudes of each of n <= LANES blocks of 128 values, a block in each lane. */
INLINE vf sums_of_magnitudes(const float *x, size_t n)
{
    vf sum = { 0 };
    const float *row[LANES];
    for (unsigned r = 0; r < LANES; r++)
        row[r] = x + (r < n ? r : n - 1) * 128;
    for (unsigned e = 0; e < 128; e += LANES) {
        vf v[LANES];
        for (unsigned r = 0; r < LANES; r++)
            v[r] = floats(row[r] + e);
        transpose(v);
        for (unsigned r = 0; r < LANES; r++)
            sum += magnitude(v[r]);
    }
    return sum;
}

static void encode_q1_0(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (size_t i = 0; i < n; i += LANES) {
        size_t some = n - i < LANES ? n - i : LANES;
        vf mean = sums_of_magnitudes(x + i * 128, some) / 128;
        for (size_t j = 0; j < some; j++, b += 18) {
            put_half_quickly(b, mean[j]);
            put_signs(x + (i + j) * 128, b + 2);
        }
    }
}

/* 0, 1 or 2 for each of n values. */
INLINE void put_trits(const float *x, unsigned n, float id, uint8_t *trits)
{
    for (unsigned e = 0; e < n; e += 32) {
        eight_i v[4];
        for (unsigned k = 0; k < 4; k++)
            v[k] = away(eight(x + e + 8 * k) * id) + 1;
        put_bytes(trits + e, v);
    }
}

static void encode_q2_0(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (size_t i = 0; i < n; i += LANES) {
        steps s;
        set_steps(peaks_of(x, n - i, 64), &s);
        for (unsigned r = 0; r < LANES && r < n - i; r++, x += 64, b += 18) {
            uint8_t trits[64] = { 0 };
            if (s.inverse[r] != 0 || s.d[r] == 0)
                put_trits(x, 64, s.inverse[r], trits);
            memcpy(b, s.half + 2 * r, 2);
            for (unsigned j = 0; j < 16; j++)   /* the product moves four bytes together */
                b[2 + j] = (uint8_t)(word32(trits + 4 * j) * 0x01041040 >> 24);
        }
    }
}

/* 256 values as 0, 1 and 2, and their scale. */
INLINE float all_trits(const float *x, uint8_t *trits)
{
    float d = one_peak(x, false), id = inverse(d);
    put_trits(x, 256, id <= FLT_MAX ? id : 0, trits);
    return d;
}

/* Five trits, `n` apart, in each of n bytes. */
INLINE void put_fives(uint8_t *restrict b, const uint8_t *restrict t, unsigned n)
{
    for (unsigned m = 0; m < n; m++) {
        unsigned five = (((t[m] * 3u + t[m + n]) * 3 + t[m + 2 * n]) * 3 + t[m + 3 * n]) * 3 + t[m + 4 * n];
        b[m] = (uint8_t)((uint16_t)(five * 256 + 242) / 243);
    }
}

static void encode_tq1_0(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (size_t i = 0; i < n; i++, x += 256, b += 54) {
        uint8_t trits[256 + 4] = { 0 };         /* the last bytes have four trits, and 0 */
        put_half_quickly(b + 52, all_trits(x, trits));
        put_fives(b, trits, 32);
        put_fives(b + 32, trits + 160, 16);
        put_fives(b + 48, trits + 240, 4);
    }
}

static void encode_tq2_0(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (size_t i = 0; i < n; i++, x += 256, b += 66) {
        uint8_t trits[256];
        put_half_quickly(b + 64, all_trits(x, trits));
        put_quarters(b, trits);
    }
}

/* ---- 4-bit floats ---- */

/* Codes of 8 values that are not much larger than their scale: in the middle the smaller magnitude. */
INLINE eight_i fp4_codes(eight_f x, float d)
{
    eight_f a = eight_magnitudes(x);
    eight_i some = (eight_i)(a > 0.5f * d);
    eight_i code = some + (eight_i)(a > 1.5f * d) + (eight_i)(a > 2.5f * d) + (eight_i)(a > 3.5f * d) +
                   (eight_i)(a > 5 * d) + (eight_i)(a > 7 * d) + (eight_i)(a > 10 * d);
    return (some & 8 & (eight_i)x >> 28) - code;
}

static void encode_mxfp4(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (size_t i = 0; i < n; i += LANES) {
        float most[LANES];
        put_floats(most, peaks_of(x, n - i, 32));
        for (unsigned r = 0; r < LANES && r < n - i; r++, x += 32, b += 17) {
            code_bytes c;
            eight_i v[4];
            b[0] = mx_code(most[r]);
            float d = mx_scale(b[0]);
            for (unsigned k = 0; k < 4; k++)
                v[k] = fp4_codes(eight(x + 8 * k), d);
            put_bytes((uint8_t *)c.q, v);
            put_pairs(b + 1, &c);
        }
    }
}

/* Codes of a sub-block of nvfp4: 8 in v[0] and 8 in v[2]. */
INLINE void code_nv(const float *x, float most, float d, eight_i *v)
{
    v[0] = v[2] = (eight_i){ 0 };
    if (d == 0)
        return;
    if (most < d * 0x1p20f) {
        v[0] = fp4_codes(eight(x), d);
        v[2] = fp4_codes(eight(x + 8), d);
        return;
    }
    for (unsigned e = 0; e < 16; e++)
        v[e / 8 * 2][e % 8] = (int32_t)fp4_code(x[e], d);
}

static void encode_nvfp4(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)q, (void)mean_square;
    for (size_t i = 0; i < 4 * n; i += LANES) {         /* sub-blocks */
        float most[LANES];
        put_floats(most, peaks_of(x, 4 * n - i, 16));
        for (unsigned r = 0; r < LANES && r < 4 * n - i; r += 2, x += 32) {
            code_bytes c;
            eight_i v[4];
            unsigned s = (i + r) % 4;
            for (unsigned k = 0; k < 2; k++) {
                b[s + k] = nv_code(most[r + k] / 6);
                code_nv(x + 16 * k, most[r + k], nv_scale(b[s + k]), v + k);
            }
            put_bytes((uint8_t *)c.q, v);
            put_pairs(b + 4 + 8 * s, &c);
            b += s ? 36 : 0;
        }
    }
}
