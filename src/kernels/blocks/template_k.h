/* kernels/blocks/template_k.h - encodes with searches, many sub-blocks at a time: super-blocks, and blocks of
 * 32 values with importance. */

/* CHUNK super-blocks at a time; ROOM: their sub-blocks, and some more that are searched with them. */
enum { CHUNK = LANES, ROOM = CHUNK * TN_MOST_SUBS + QUAD * LANES };

/* What is found in a chunk, for each sub-block. */
typedef struct chunk {
    float   scale[ROOM], min[ROOM], inverse[ROOM], from[ROOM], weight[ROOM];
    float   mean[CHUNK];        /* mean squares of super-blocks, for weights */
    vf      levels[ROOM / LANES][Q3_SIZE];      /* q3_K without importance */
} chunk;

INLINE tn_subs subs_at(const chunk *k, size_t at)
{
    return (tn_subs){ .scale = k->scale + at, .min = k->min + at, .inverse = k->inverse + at,
                      .from = k->from + at };
}

static void put_found(chunk *k, size_t at, const found *f)
{
    put_floats(k->scale + at, f->scale);
    put_floats(k->min + at, f->min);
    put_floats(k->inverse + at, f->inverse);
    put_floats(k->from + at, f->from);
}

static void find_means(const float *x, size_t n, float factor, chunk *k)
{
    put_floats(k->mean, factor * sums_of_squares(x, n, TN_SUPER) / TN_SUPER);
}

/* n sub-blocks of `size` values; each `count` of them are a super-block. */
typedef struct rows {
    const float *x, *q;         /* q: importance, or NULL */
    size_t   n;
    unsigned size, count;
} rows;

INLINE void load_values(const rows *r, size_t at, columns *c)
{
    load_columns(r->x, at, r->n - 1, r->size, c->x);
}

INLINE void load_importance(const rows *r, size_t at, columns *c)
{
    load_columns(r->q, at, r->n - 1, r->size, c->w);
}

/* weigh() of the values of LANES sub-blocks. */
INLINE void weigh_columns(const rows *r, vf mean_square, size_t at, columns *c)
{
    load_importance(r, at, c);
    for (unsigned e = 0; e < r->size; e++)
        c->w[e] *= roots(mean_square + c->x[e] * c->x[e]);
}

/* The mean squares of the super-blocks of LANES sub-blocks. */
INLINE vf means_at(const chunk *k, const rows *r, size_t at)
{
    vf mean;
    for (unsigned i = 0; i < LANES; i++)
        mean[i] = k->mean[(at + i < r->n ? at + i : r->n - 1) / r->count];
    return mean;
}

static void put_weights(const columns *c, unsigned size, float *weight)
{
    vf sum = { 0 };
    for (unsigned e = 0; e < size; e++)
        sum += c->w[e];
    put_floats(weight, sum);
}

/* ---- scales with minima: q2_K, q4_K, q5_K ---- */

INLINE void weigh_plainly(unsigned size, bool by_magnitude, columns *c)
{
    vf usual = { 0 };
    for (unsigned e = 0; e < size && !by_magnitude; e++)
        usual += c->x[e] * c->x[e];
    usual = roots(usual / (float)size);
    for (unsigned e = 0; e < size; e++)
        c->w[e] = usual + magnitude(c->x[e]);
}

/* How many vectors are searched side by side when n sub-blocks are left. */
INLINE unsigned vectors_of(size_t n) { return n > PAIR * LANES ? QUAD : PAIR; }

/* Searches all sub-blocks. */
INLINE void search_chunk(const rows *r, const tn_affine_type *t, chunk *k)
{
    if (r->q)
        find_means(r->x, r->n / r->count, t->importance_factor, k);
    for (size_t at = 0; at < r->n; at += QUAD * LANES) {
        columns c[QUAD];
        found f[QUAD];
        const unsigned vectors = vectors_of(r->n - at);
        for (unsigned g = 0; g < vectors; g++) {
            size_t from = at + g * LANES;
            load_values(r, from, &c[g]);
            if (r->q) {
                weigh_columns(r, means_at(k, r, from), from, &c[g]);
                put_weights(&c[g], r->size, k->weight + from);
            } else {
                weigh_plainly(r->size, t->plain.by_magnitude, &c[g]);
            }
        }
        search_above(c, vectors, r->size, r->q ? &t->weighted : &t->plain, f);
        for (unsigned g = 0; g < vectors; g++)
            put_found(k, at + g * LANES, &f[g]);
    }
}

/* tn_search_positive() of the scales and of the minima of each super-block. */
INLINE void code_weighted(const chunk *k, const tn_affine_type *t, size_t n, tn_coded *coded)
{
    columns c[PAIR];
    vi codes[PAIR][SUB];
    vf d[PAIR];
    load_columns(k->scale, 0, n - 1, t->count, c[0].x);
    load_columns(k->min, 0, n - 1, t->count, c[1].x);
    for (unsigned g = 0; g < PAIR; g++)
        load_columns(k->weight, 0, n - 1, t->count, c[g].w);
    search_from_0(c, t->count, t->scale_codes, codes, d);
    for (size_t i = 0; i < n; i++) {
        coded[i].d = d[0][i];
        coded[i].dmin = d[1][i];
        for (unsigned s = 0; s < t->count; s++) {
            coded[i].scale[s] = (uint8_t)codes[0][s][i];
            coded[i].min[s] = (uint8_t)codes[1][s][i];
        }
    }
}

typedef void (*put_affine_fn)(const float *x, const tn_subs *s, const tn_coded *c, uint8_t *b);

INLINE void encode_affine(const float *x, const float *q, const tn_affine_type *t, size_t n, uint8_t *b,
                          put_affine_fn put)
{
    size_t bytes = tn_block_get(t->block)->bytes;
    for (size_t i = 0, some; i < n; i += some) {
        chunk k;
        tn_coded coded[CHUNK];
        some = n - i < CHUNK ? n - i : CHUNK;
        const rows r = { x + i * TN_SUPER, q ? q + i * TN_SUPER : NULL, some * t->count, t->size, t->count };
        search_chunk(&r, t, &k);
        if (q)
            code_weighted(&k, t, some, coded);
        for (size_t j = 0; j < some; j++) {
            tn_subs subs = subs_at(&k, j * t->count);
            if (!q) {
                coded[j].d = code_plainly(subs.scale, t->count, t->scale_codes, coded[j].scale);
                coded[j].dmin = code_plainly(subs.min, t->count, t->scale_codes, coded[j].min);
            }
            put(x + (i + j) * TN_SUPER, &subs, &coded[j], b + (i + j) * bytes);
        }
    }
}

#define AFFINE(name)                                                                                        \
    static void encode_##name(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)      \
    {                                                                                                       \
        (void)mean_square;                                                                                  \
        if (q)                                                                                              \
            encode_affine(x, q, &tn_type_##name, n, b, put_##name);                                         \
        else                                                                                                \
            encode_affine(x, NULL, &tn_type_##name, n, b, put_##name);                                      \
    }

AFFINE(q2_K)
AFFINE(q4_K)
AFFINE(q5_K)

/* ---- scales without minima: q3_K, q6_K ---- */

typedef enum weights { SQUARES, IMPORTANCE, WEIGHED } weights;  /* x * x; q; weigh() */

/* Searches all sub-blocks for codes around 0. */
INLINE void search_rows(const rows *r, int N, weights kind, chunk *k)
{
    for (size_t at = 0; at < r->n; at += PAIR * LANES) {
        columns c[PAIR];
        found f[PAIR];
        for (unsigned g = 0; g < PAIR; g++) {
            size_t from = at + g * LANES;
            load_values(r, from, &c[g]);
            if (kind == IMPORTANCE)
                load_importance(r, from, &c[g]);
            for (unsigned e = 0; e < r->size && kind == SQUARES; e++)
                c[g].w[e] = c[g].x[e] * c[g].x[e];
            if (kind == WEIGHED) {
                weigh_columns(r, means_at(k, r, from), from, &c[g]);
                put_weights(&c[g], r->size, k->weight + from);
            }
            f[g].min = f[g].from = (vf){ 0 };
        }
        search_around(c, r->size, N, f);
        for (unsigned g = 0; g < PAIR; g++)
            put_found(k, at + g * LANES, &f[g]);
    }
}

/* Of sub-block r of the rows of a vector. */
static void put_levels(const vf *l, unsigned r, size_t to, chunk *k)
{
    for (unsigned e = 0; e < Q3_SIZE; e++)
        k->levels[to / LANES][e][to % LANES] = l[e][r];
}

/* Searches some sub-blocks to the end. */
static void finish_q3(const float *x, const uint16_t *which, unsigned n, chunk *k)
{
    for (unsigned at = 0; at < n; at += QUAD * LANES) {
        columns c[QUAD];
        vf l[QUAD][Q3_SIZE], scale[QUAD];
        for (unsigned g = 0; g < QUAD; g++) {
            const float *row[LANES];
            for (unsigned r = 0, i = at + g * LANES; r < LANES; r++, i++)
                row[r] = x + which[i < n ? i : n - 1] * Q3_SIZE;
            turn_rows(row, Q3_SIZE, c[g].x);
        }
        search_q3(c, l, scale);
        for (unsigned i = at; i < n && i < at + QUAD * LANES; i++) {
            unsigned g = (i - at) / LANES, r = i % LANES;
            k->scale[which[i]] = scale[g][r];
            put_levels(l[g], r, which[i], k);
        }
    }
}

/* In most sub-blocks no pass changes anything; the others are searched together. */
static void search_q3_chunk(const float *x, size_t n, chunk *k)
{
    uint16_t which[ROOM];
    unsigned some = 0;
    for (size_t at = 0; at < n; at += LANES) {
        columns c;
        vm changes;
        load_columns(x, at, n - 1, Q3_SIZE, c.x);
        put_floats(k->scale + at, search_q3_once(&c, k->levels[at / LANES], &changes));
        for (unsigned bits = lane_bits(changes); bits; bits &= bits - 1)
            which[some++] = (uint16_t)(at + (unsigned)__builtin_ctz(bits));
    }
    while (some && which[some - 1] >= n)        /* the last one, taken again */
        some--;
    finish_q3(x, which, some, k);
}

/* Codes of the scales of n super-blocks with importance. */
static void code_q3_weighted(const chunk *k, size_t n, tn_coded *coded)
{
    const rows r = { k->scale, k->weight, n, 16, 1 };
    chunk scales;
    search_rows(&r, 32, IMPORTANCE, &scales);
    for (size_t i = 0; i < n; i++) {
        codes_around(k->scale + 16 * i, 16, 32, scales.inverse[i], coded[i].scale);
        coded[i].d = scales.scale[i];
    }
}

static void encode_q3_K(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)mean_square;
    for (size_t i = 0, some; i < n; i += some) {
        const float *values = x + i * TN_SUPER;
        chunk k;
        tn_coded coded[CHUNK];
        some = n - i < CHUNK ? n - i : CHUNK;
        if (q) {
            const rows r = { values, q + i * TN_SUPER, 16 * some, 16, 16 };
            find_means(values, some, 2, &k);
            search_rows(&r, 4, WEIGHED, &k);
            code_q3_weighted(&k, some, coded);
        } else {
            search_q3_chunk(values, 16 * some, &k);
        }
        for (size_t j = 0; j < some; j++) {
            tn_subs subs = subs_at(&k, 16 * j);
            if (!q) {
                subs.levels = (const float *)k.levels + TN_SUPER * j;
                subs.stride = LANES;
                coded[j].d = code_q3_scales(subs.scale, coded[j].scale);
            }
            put_q3_K(values + j * TN_SUPER, &subs, &coded[j], b + (i + j) * 110);
        }
    }
}

static void encode_q6_K(const float *x, const float *q, float mean_square, size_t n, uint8_t *b)
{
    (void)mean_square;
    for (size_t i = 0, some; i < n; i += some) {
        const float *values = x + i * TN_SUPER;
        chunk k;
        some = n - i < CHUNK ? n - i : CHUNK;
        const rows r = { values, q ? q + i * TN_SUPER : NULL, 16 * some, 16, 16 };
        if (q)
            search_rows(&r, 32, IMPORTANCE, &k);
        else
            search_rows(&r, 32, SQUARES, &k);
        for (size_t j = 0; j < some; j++) {
            tn_subs subs = subs_at(&k, 16 * j);
            put_q6_K(values + j * TN_SUPER, &subs, b + (i + j) * 210);
        }
    }
}

/* ---- blocks of 32 values with importance: q4_0, q4_1, q5_0, q5_1 ---- */

typedef void (*put_block_fn)(uint8_t *b, const uint8_t *d, const uint8_t *min, const code_bytes *c);

/* How blocks of a type are encoded. */
typedef struct type_32 {
    int    N;
    bool   has_min;             /* codes are 0 to N, else around N */
    size_t bytes;
    put_block_fn put;           /* with float16 scales */
} type_32;

INLINE void search_blocks(const rows *r, float mean_square, const type_32 *t, chunk *k)
{
    const tn_search_range range = TN_RANGE_32(t->N);
    columns c[QUAD];
    found f[QUAD];
    const unsigned vectors = vectors_of(r->n);
    for (unsigned g = 0; g < vectors; g++) {
        load_values(r, g * LANES, &c[g]);
        weigh_columns(r, every_f(mean_square), g * LANES, &c[g]);
        f[g].min = f[g].from = (vf){ 0 };
    }
    if (t->has_min)
        search_above(c, vectors, 32, &range, f);
    for (unsigned p = 0; p < vectors && !t->has_min; p += PAIR)
        search_around(c + p, 32, t->N, f + p);
    for (unsigned g = 0; g < vectors; g++)
        put_found(k, g * LANES, &f[g]);
}

INLINE void encode_weighted(const float *x, const float *q, float mean_square, size_t n, const type_32 *t,
                            uint8_t *b)
{
    enum { SOME = QUAD * LANES };
    for (size_t i = 0; i < n; i += SOME, x += 32 * SOME, q += 32 * SOME) {
        const rows r = { x, q, n - i < SOME ? n - i : SOME, 32, 1 };
        chunk k;
        search_blocks(&r, mean_square, t, &k);
        for (size_t j = 0; j < r.n; j++, b += t->bytes) {
            code_bytes c;
            uint8_t half[4];
            if (t->has_min)
                codes_above(x + 32 * j, 32, t->N, k.inverse[j], k.from[j], (uint8_t *)c.q);
            else
                codes_around(x + 32 * j, 32, t->N, k.inverse[j], (uint8_t *)c.q);
            put_half(half, k.scale[j]);
            put_half(half + 2, -k.min[j]);
            t->put(b, half, half + 2, &c);
        }
    }
}
