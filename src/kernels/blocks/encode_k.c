/* kernels/blocks/encode_k.c - encoding super-blocks of 256 values: the definition. */
#include "kernels/blocks/encode_k.h"

/* Of a super-block. */
typedef struct sub_blocks {
    float   scale[TN_MOST_SUBS], min[TN_MOST_SUBS], inverse[TN_MOST_SUBS], from[TN_MOST_SUBS];
    float   weight[TN_MOST_SUBS];
    float   levels[TN_SUPER];   /* q3_K */
} sub_blocks;

static tn_subs subs_of(const sub_blocks *s)
{
    return (tn_subs){ .scale = s->scale, .min = s->min, .inverse = s->inverse, .from = s->from };
}

static void keep(sub_blocks *s, unsigned k, tn_found found)
{
    s->scale[k] = found.scale;
    s->min[k] = found.min;
    s->inverse[k] = found.inverse;
    s->from[k] = found.from;
}

static float sum_of(const float *x, unsigned n)
{
    float sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* ---- scales with minima: q2_K, q4_K, q5_K ---- */

/* Without importance: of q2_K magnitudes, of the others magnitudes and what is usual in the sub-block. */
static void weigh_plain(const float *x, unsigned n, bool by_magnitude, float *w)
{
    float usual = by_magnitude ? 0 : sqrtf(sum_squares(x, n) / (float)n);
    for (unsigned i = 0; i < n; i++)
        w[i] = usual + fabsf(x[i]);
}

static void search_affine(const float *x, const float *q, const tn_affine_type *t, sub_blocks *s)
{
    float w[32], mean_square = q ? t->importance_factor * sum_squares(x, TN_SUPER) / TN_SUPER : 0;
    for (unsigned k = 0; k < t->count; k++) {
        unsigned at = k * t->size;
        if (q)
            weigh(x + at, q + at, mean_square, t->size, w);
        else
            weigh_plain(x + at, t->size, t->plain.by_magnitude, w);
        s->weight[k] = sum_of(w, t->size);
        keep(s, k, tn_search_affine(x + at, w, t->size, q ? &t->weighted : &t->plain));
    }
}

static float code_scales(const float *scale, const float *weight, const tn_affine_type *t, uint8_t *codes)
{
    if (weight)
        return tn_search_positive(scale, weight, t->count, t->scale_codes, codes);
    return code_plainly(scale, t->count, t->scale_codes, codes);
}

static tn_coded encode_affine(const float *x, const float *q, const tn_affine_type *t, sub_blocks *s)
{
    tn_coded c;
    search_affine(x, q, t, s);
    c.d = code_scales(s->scale, q ? s->weight : NULL, t, c.scale);
    c.dmin = code_scales(s->min, q ? s->weight : NULL, t, c.min);
    return c;
}

#define AFFINE(name)                                                                            \
    static void name##_block(const float *x, const float *q, float mean_square, uint8_t *b)     \
    {                                                                                           \
        sub_blocks s;                                                                           \
        tn_coded c = encode_affine(x, q, &tn_type_##name, &s);                                  \
        tn_subs subs = subs_of(&s);                                                             \
        (void)mean_square;                                                                      \
        put_##name(x, &subs, &c, b);                                                            \
    }

AFFINE(q2_K)
AFFINE(q4_K)
AFFINE(q5_K)

/* ---- scales without minima: q3_K, q6_K ---- */

static void q3_K_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    float w[16];
    sub_blocks s;
    tn_subs subs = subs_of(&s);
    tn_coded c;
    mean_square = q ? 2 * sum_squares(x, TN_SUPER) / TN_SUPER : 0;
    for (unsigned k = 0; k < 16; k++) {
        if (!q) {
            s.scale[k] = tn_search_q3(x + 16 * k, 16, s.levels + 16 * k);
            continue;
        }
        weigh(x + 16 * k, q + 16 * k, mean_square, 16, w);
        s.weight[k] = sum_of(w, 16);
        keep(&s, k, tn_search_symmetric(x + 16 * k, w, 16, 4));
    }
    if (q) {
        tn_found found = tn_search_symmetric(s.scale, s.weight, 16, 32);
        codes_around(s.scale, 16, 32, found.inverse, c.scale);
        c.d = found.scale;
    } else {
        c.d = code_q3_scales(s.scale, c.scale);
        subs.levels = s.levels;
        subs.stride = 1;
    }
    put_q3_K(x, &subs, &c, b);
}

static void q6_K_block(const float *x, const float *q, float mean_square, uint8_t *b)
{
    sub_blocks s;
    tn_subs subs = subs_of(&s);
    (void)mean_square;
    for (unsigned k = 0; k < 16; k++)
        keep(&s, k, tn_search_symmetric(x + 16 * k, q ? q + 16 * k : NULL, 16, 32));
    put_q6_K(x, &subs, b);
}

ENCODE_EACH(q2_K, 256, 84)
ENCODE_EACH(q3_K, 256, 110)
ENCODE_EACH(q4_K, 256, 144)
ENCODE_EACH(q5_K, 256, 176)
ENCODE_EACH(q6_K, 256, 210)

void tn_block_kernels_init_encode_k(tn_block_kernels *k)
{
    k->encode[TN_BLOCK_Q2_K] = q2_K;
    k->encode[TN_BLOCK_Q3_K] = q3_K;
    k->encode[TN_BLOCK_Q4_K] = q4_K;
    k->encode[TN_BLOCK_Q5_K] = q5_K;
    k->encode[TN_BLOCK_Q6_K] = q6_K;
}
