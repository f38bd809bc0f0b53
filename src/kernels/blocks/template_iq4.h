/* kernels/blocks/template_iq4.h - encodes iq4_nl and iq4_xs, a sub-block in each lane. */
#include "kernels/blocks/encode_iq4.h"

/* The nearest value of tn_block_iq4. */
INLINE vf nearest_level(vf v)
{
    static const float levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89,
                                      113 };
    vi code = (vi){ 0 } + 15;
    for (unsigned i = 0; i < 15; i++)
        code += (vi)(v < tn_iq4_middle[i]);     /* -1 in lanes where it is */
    return look16(levels, code);
}

INLINE void try_levels(const columns *c, const vf *inverse_scale, sums_2 *s)
{
    for (unsigned g = 0; g < PAIR; g++)
        s[g].A = s[g].B = (vf){ 0 };
    for (unsigned e = 0; e < TN_IQ4_SIZE; e++)
        for (unsigned g = 0; g < PAIR; g++) {
            vf level = nearest_level(inverse_scale[g] * c[g].x[e]), wl = c[g].w[e] * level;
            s[g].A += wl * c[g].x[e];
            s[g].B += wl * level;
        }
}

/* The scales of the sub-blocks of PAIR vectors. */
static void search_levels(const columns *c, vf *scale)
{
    const float lowest = -127;
    vf max[PAIR], best[PAIR], i[PAIR];
    vm tiny[PAIR];
    sums_2 s[PAIR];
    for (unsigned g = 0; g < PAIR; g++) {
        max[g] = first_largest_of(c[g].x, TN_IQ4_SIZE);
        tiny[g] = above(every_f(TN_GROUP_TINY), magnitude(max[g]));
        max[g] = pick(tiny[g], every_f(1), max[g]);
        i[g] = 1 / (-max[g] / lowest);
    }
    try_levels(c, i, s);
    for (unsigned g = 0; g < PAIR; g++) {
        scale[g] = pick(above(s[g].B, (vf){ 0 }), s[g].A / s[g].B, (vf){ 0 });
        best[g] = scale[g] * s[g].A;
    }
    for (int k = -7; k <= 7; k++) {
        for (unsigned g = 0; g < PAIR; g++)
            i[g] = ((float)k + lowest) / max[g];
        try_levels(c, i, s);
        for (unsigned g = 0; g < PAIR; g++) {
            vm better = both(above(s[g].B, (vf){ 0 }), above(s[g].A * s[g].A, best[g] * s[g].B));
            scale[g] = pick(better, s[g].A / s[g].B, scale[g]);
            best[g] = pick(better, scale[g] * s[g].A, best[g]);
        }
    }
    for (unsigned g = 0; g < PAIR; g++)
        scale[g] = pick(tiny[g], (vf){ 0 }, scale[g]);
}

/* The scales of sub-blocks.  A count of 1: the mean square is that of each; else it is known. */
INLINE void search_iq4(const rows *r, chunk *k)
{
    for (size_t at = 0; at < r->n; at += PAIR * LANES) {
        columns c[PAIR];
        vf scale[PAIR];
        for (unsigned g = 0; g < PAIR; g++) {
            size_t from = at + g * LANES;
            vf mean = { 0 };
            load_values(r, from, &c[g]);
            for (unsigned e = 0; e < TN_IQ4_SIZE; e++) {
                c[g].w[e] = c[g].x[e] * c[g].x[e];
                mean += c[g].w[e];
            }
            mean = r->count == 1 ? mean * (2.0f / TN_IQ4_SIZE) : means_at(k, r, from);
            if (r->q)
                weigh_columns(r, mean, from, &c[g]);
        }
        search_levels(c, scale);
        for (unsigned g = 0; g < PAIR; g++)
            put_floats(k->scale + at + g * LANES, scale[g]);
    }
}

static void encode_iq4_nl(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    enum { SOME = PAIR * LANES };
    (void)mean_square;
    for (size_t i = 0, some; i < n; i += some) {
        chunk k;
        some = n - i < SOME ? n - i : SOME;
        const rows r = { x + i * TN_IQ4_SIZE, q ? q + i * TN_IQ4_SIZE : NULL, some, TN_IQ4_SIZE, 1 };
        search_iq4(&r, &k);
        for (size_t j = i; j < i + some; j++)
            put_iq4_nl(x + j * TN_IQ4_SIZE, k.scale[j - i], b + 18 * j);
    }
}

static void encode_iq4_xs(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)mean_square;
    for (size_t i = 0, some; i < n; i += some) {
        chunk k;
        some = n - i < CHUNK ? n - i : CHUNK;
        if (q)
            put_floats(k.mean, sums_of_squares(x + i * TN_SUPER, some, TN_SUPER) * (2.0f / TN_SUPER));
        const rows r = { x + i * TN_SUPER, q ? q + i * TN_SUPER : NULL, 8 * some, TN_IQ4_SIZE, 8 };
        search_iq4(&r, &k);
        for (size_t j = i; j < i + some; j++)
            put_iq4_xs(x + j * TN_SUPER, k.scale + 8 * (j - i), b + 136 * j);
    }
}
