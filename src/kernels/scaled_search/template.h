/* kernels/scaled_search/template.h - searching and selecting in vectors.
 *
 * Included once by each level's file, which first includes the vectors of its
 * level (kernels/avx2.h) and defines
 *
 *   vd                 a vector of 8 doubles
 *   at_least(a, b)     lanes where a >= b, as floats
 *   more(a, b)         lanes where a > b, as signed integers
 *   where(m, x, y)     x in the lanes of m, else y
 *   bits(m)            a mask as bits
 *   count(v, m)        adds 1 in the lanes of m
 *   shift_right(v, n)  by a number of bits per lane
 *   lanes_of(v, order) lane order[i] of v in lane i
 *   mapped(table, which)   entry which[i] of 16 in lane i
 *   compress(p, v, m, n)   stores the n lanes of m one after another; writes nothing else
 *   bytes_to(p)        LANES bytes, widened
 *   put_bytes(p, v)    stores the low byte of each lane
 *   every_d(x)         a double in every lane
 *   halves(v, d)       a vector of floats as LANES / 8 vectors of doubles
 *   add_difference(s, a, b)    s + (a - b)^2
 *   add_square(s, a)   s + a^2, for a whose square is exact
 *   join_d(v)          the sum of the lanes, in the order that tile.h defines
 *   least_lane(v, n)   the number of the first of the smallest of n * 8 doubles */
#include "kernels/scaled_search/table.h"

enum { DOUBLES = LANES / 8, NOT_FINITE = 0x7f800000 };

INLINE vf every_f(float x)        { return (vf){ 0 } + x; }
INLINE vi every_i(int32_t n)      { return (vi){ 0 } + n; }
INLINE vf floats(const void *p)   { vf v; memcpy(&v, p, sizeof v); return v; }
INLINE vi integers(const void *p) { vi v; memcpy(&v, p, sizeof v); return v; }
INLINE vf magnitude(vf v)         { return (vf)((vi)v & INT32_MAX); }

/* ---- N:M ---- */

/* The other lanes of each lane's group, in a circle.  A lane is kept if fewer than `keep` are larger. */
typedef struct rivals {
    vi order[15];               /* the number of the other lane */
    vi earlier[15];             /* 1: it comes first, so it wins if both are equal */
} rivals;

static void find_rivals(rivals *r, unsigned of)
{
    for (unsigned by = 1; by < of; by++)
        for (unsigned i = 0; i < LANES; i++) {
            unsigned other = i / of * of + (i + by) % of;
            r->order[by - 1][i] = (int32_t)other;
            r->earlier[by - 1][i] = other < i;
        }
}

/* NaN is larger than infinity; all NaNs are equal. */
INLINE vi key_of(vi x)
{
    vi key = x & INT32_MAX;
    return (vi)where(more(key, every_i(NOT_FINITE)), (vf)every_i(NOT_FINITE + 1), (vf)key);
}

INLINE vm kept_lanes(vi key, const rivals *r, unsigned keep, unsigned of)
{
    vi better = { 0 };
    for (unsigned by = 0; by < of - 1; by++)
        better = count(better, more(lanes_of(key, r->order[by]), key - r->earlier[by]));
    return more(every_i((int32_t)keep), better);
}

INLINE uint32_t largest_lane(vi v)
{
    int32_t lane[LANES], most = 0;
    memcpy(lane, &v, sizeof lane);
    for (unsigned i = 0; i < LANES; i++)
        most = lane[i] > most ? lane[i] : most;
    return (uint32_t)most;
}

INLINE vi select_vector(uint8_t *kept, uint8_t *mask, const float *x, const rivals *r, unsigned keep,
                        unsigned of)
{
    vi v = integers(x), key = key_of(v);
    vm m = kept_lanes(key, r, keep, of);
    unsigned word = bits(m);
    memcpy(mask, &word, LANES / 8);
    compress(kept, v, m, LANES / of * keep);
    return key;
}

INLINE uint32_t select_all(uint8_t *restrict kept, uint8_t *restrict mask, const float *restrict x, size_t n,
                           unsigned keep, unsigned of)
{
    rivals r;
    vi seen = { 0 };
    size_t i = 0;
    find_rivals(&r, of);
    for (; n - i >= LANES; i += LANES)
        seen =
            most_i(seen, select_vector(kept + i / of * keep * sizeof *x, mask + i / 8, x + i, &r, keep, of));
    if (i == n)
        return largest_lane(seen);
    float rest[LANES] = { 0 };
    uint8_t some[sizeof rest];
    unsigned word = 0;
    memcpy(rest, x + i, (n - i) * sizeof *x);
    seen = most_i(seen, select_vector(some, (uint8_t *)&word, rest, &r, keep, of));
    memcpy(kept + i / of * keep * sizeof *x, some, (n - i) / of * keep * sizeof *x);
    word &= (1u << (n - i)) - 1;
    memcpy(mask + i / 8, &word, (n - i + 7) / 8);
    return largest_lane(seen);
}

static uint32_t select_some(void *restrict kept, uint8_t *restrict mask, const float *restrict x, size_t n,
                            unsigned keep, unsigned of)
{
    switch (of) {
    case 2:  return select_all(kept, mask, x, n, keep, 2);
    case 4:  return keep == 2 ? select_all(kept, mask, x, n, 2, 4) : select_all(kept, mask, x, n, keep, 4);
    case 16: return select_all(kept, mask, x, n, keep, LANES < 16 ? LANES : 16);    /* never with 8 lanes */
    default: return select_all(kept, mask, x, n, keep, 8);
    }
}

/* ---- rounding ---- */

/* Rounds a magnitude to the nearest number: adding `magic` makes a step the last bit. */
typedef struct rounded {
    vi exponent;                /* in place */
    vf magic, sum;
} rounded;

INLINE rounded round_magnitude(vf q, const tn_search_number *n)
{
    rounded r;
    q = least_f(magnitude(q), every_f(n->most));
    r.exponent = most_i((vi)q & NOT_FINITE, every_i((int32_t)n->lowest));
    r.magic = (vf)(r.exponent + (int32_t)n->above);
    r.sum = q + r.magic;
    return r;
}

INLINE vi code_of(vf q, const tn_search_number *n)
{
    rounded r = round_magnitude(q, n);
    vi steps = (vi)r.sum - (vi)r.magic, negative = (vi)q >> 31;
    if (n->integer)
        return ((steps ^ negative) - negative) & (int32_t)((1u << n->bits) - 1);
    vi code = steps + shift_right(r.exponent - (int32_t)n->lowest, every_i((int32_t)n->shift));
    vi sign = negative & (int32_t)(1u << (n->bits - 1));
    return n->signed_zero ? code | sign : code | (vi)where(more(code, every_i(0)), (vf)sign, (vf)every_i(0));
}

INLINE vf quotient(vf x, vf factor, bool divide)
{
    return divide ? x / factor : x * factor;
}

/* ---- zero points ---- */

#define MAGIC 0x1.8p23f         /* its last bit is worth 1, so adding it rounds to a whole number */

/* x in units of the scale, rounded to a whole number, without the zero point. */
INLINE vf number_from(vf x, vf factor, vf shift, float most, bool whole)
{
    vf q = whole ? x / factor : (x + shift) / factor;
    vf low = whole ? -shift : every_f(0), high = whole ? most - shift : every_f(most);
    return (least_f(most_f(q, low), high) + MAGIC) - MAGIC;
}

INLINE vi code_from(vf x, vf factor, vf shift, float most, bool whole)
{
    vf number = number_from(x, factor, shift, most, whole);
    return (vi)((whole ? number + shift : number) + MAGIC) - (vi)every_f(MAGIC);
}

INLINE vf value_from(vf x, vf factor, vf step, vf shift, float most, bool whole)
{
    vf value = step * number_from(x, factor, shift, most, whole);
    return whole ? value : value - shift;
}

/* ---- codes ---- */

/* How values become numbers: divided by the factor, multiplied with it, or with a zero point that is added to
 * values or, if it is a whole number, to codes. */
typedef enum mode { DIVIDE, MULTIPLY, SHIFT, SHIFT_WHOLE } mode;

static mode mode_of(const tn_search_tiles *t)
{
    if (t->shift)
        return t->whole ? SHIFT_WHOLE : SHIFT;
    return t->divide ? DIVIDE : MULTIPLY;
}

INLINE void encode_all(uint8_t *restrict codes, const tn_search_tiles *t, const tn_search_number *n, mode how)
{
    const bool shifted = how == SHIFT || how == SHIFT_WHOLE;
    for (size_t k = 0; k < t->count; k++) {
        vf factor = every_f(t->factor[k]), shift = every_f(shifted ? t->shift[k] : 0);
        for (size_t i = k * t->size; i < (k + 1) * t->size; i += LANES) {
            vf x = floats(t->x + i);
            put_bytes(codes + i, shifted ? code_from(x, factor, shift, n->most, how == SHIFT_WHOLE)
                                         : code_of(quotient(x, factor, how == DIVIDE), n));
        }
    }
}

static void encode(uint8_t *restrict codes, const tn_search_tiles *t)
{
    const tn_search_number n = t->number;
    switch (mode_of(t)) {
    case SHIFT_WHOLE: encode_all(codes, t, &n, SHIFT_WHOLE); break;
    case SHIFT:       encode_all(codes, t, &n, SHIFT); break;
    case DIVIDE:      encode_all(codes, t, &n, DIVIDE); break;
    default:          encode_all(codes, t, &n, MULTIPLY); break;
    }
}

/* ---- errors ---- */

/* Values and the wanted ones as doubles or, if `exact`, their differences, which are float32s.  They are if
 * steps are powers of two: a value is nearer than 0 is, or the largest, and its last bit is no lower than
 * that of the wanted value. */
typedef struct errors {
    vd value[DOUBLES], wanted[DOUBLES];
} errors;

INLINE errors errors_of(vf value, vf wanted, bool exact)
{
    errors e;
    halves(exact ? value - wanted : value, e.value);
    if (!exact)
        halves(wanted, e.wanted);
    return e;
}

INLINE vd add_error(vd sum, const errors *e, unsigned half, bool exact)
{
    return exact ? add_square(sum, e->value[half]) : add_difference(sum, e->value[half], e->wanted[half]);
}

INLINE vd add_errors(vd sum, vf value, vf wanted, bool exact)
{
    errors e = errors_of(value, wanted, exact);
    for (unsigned h = 0; h < DOUBLES; h++)
        sum = add_error(sum, &e, h, exact);
    return sum;
}

INLINE void squares_all(double *restrict sums, const tn_search_tiles *t, const tn_search_number *n, mode how)
{
    const bool shifted = how == SHIFT || how == SHIFT_WHOLE;
    for (size_t k = 0; k < t->count; k++) {
        vf factor = every_f(t->factor[k]), step = every_f(t->step[k]);
        vf shift = every_f(shifted ? t->shift[k] : 0);
        vd sum = every_d(0);
        for (size_t i = k * t->size; i < (k + 1) * t->size; i += LANES) {
            vf x = floats(t->x + i);
            if (shifted) {
                vf value = value_from(x, factor, step, shift, n->most, how == SHIFT_WHOLE);
                sum = add_errors(sum, value, x, false);
            } else {
                rounded r = round_magnitude(quotient(x, factor, how == DIVIDE), n);
                sum = add_errors(sum, (r.sum - r.magic) * step, magnitude(x), how == MULTIPLY);
            }
        }
        sums[k] = join_d(sum);
    }
}

static void squares(double *restrict sums, const tn_search_tiles *t)
{
    const tn_search_number n = t->number;
    switch (mode_of(t)) {
    case SHIFT_WHOLE: squares_all(sums, t, &n, SHIFT_WHOLE); break;
    case SHIFT:       squares_all(sums, t, &n, SHIFT); break;
    case DIVIDE:      squares_all(sums, t, &n, DIVIDE); break;
    default:          squares_all(sums, t, &n, MULTIPLY); break;
    }
}

/* ---- codebooks ---- */

/* The value that each mapping has for one magnitude. */
INLINE vf values_for(float q, const tn_search_book *b, unsigned block)
{
    vf v = { 0 };
    for (unsigned r = 1; r < TN_SEARCH_VALUES; r++)
        v = where(at_least(every_f(q), floats(b->from[r] + block * LANES)),
                  floats(b->value[r] + block * LANES), v);
    return v;
}

static void list(tn_search_book *b)
{
    for (uint32_t i = 0; i < b->rows; i++) {
        uint32_t bits = i ? (b->first_row + i) << b->row_shift : 0;
        float q;
        memcpy(&q, &bits, sizeof q);
        for (unsigned k = 0; k < TN_SEARCH_MAPPINGS / LANES; k++) {
            vf v = values_for(q, b, k);
            memcpy(b->row[i] + k * LANES, &v, sizeof v);
        }
    }
}

/* The magnitudes of a tile in units of its scale, and the row of the codebook for each. */
typedef struct measured {
    float   q[TN_SEARCH_LARGEST];
    int32_t row[TN_SEARCH_LARGEST];
} measured;

INLINE void measure(measured *to, const float *x, size_t n, float step, const tn_search_book *b)
{
    vi last = every_i((int32_t)b->rows - 1), shift = every_i((int32_t)b->row_shift);
    for (size_t i = 0; i < n; i += LANES) {
        vf q = magnitude(floats(x + i) / step);
        vi row = least_i(most_i(shift_right((vi)q, shift) - (int32_t)b->first_row, every_i(0)), last);
        memcpy(to->q + i, &q, sizeof q);
        memcpy(to->row + i, &row, sizeof row);
    }
}

/* How mappings are tried. */
typedef struct trying {
    unsigned eights;            /* of mappings */
    bool     listed;            /* their values for any magnitude are in rows */
    bool     exact;             /* errors are float32s */
    bool     sums;              /* the squared errors are wanted */
} trying;

/* A tile and its codebook. */
typedef struct book_tile {
    const float *x;
    size_t       size, subtile;
    float        step;
    const tn_search_book *book;
    vi           order;         /* for each lane, its subtile counted from that of the first lane */
} book_tile;

/* The first mapping with the least error for the subtile that begins with value `first`. */
INLINE unsigned best_mapping(const book_tile *t, const measured *m, size_t first, trying how)
{
    const tn_search_book *b = t->book;
    unsigned blocks = (how.eights + DOUBLES - 1) / DOUBLES, each = how.eights / blocks;
    vd sum[2], value[DOUBLES];
    for (unsigned h = 0; h < how.eights; h++)
        sum[h] = every_d(0);
    for (size_t i = first; i < first + t->subtile; i++) {
        float wanted = __builtin_fabsf(t->x[i]);
        for (unsigned k = 0; k < blocks; k++) {
            vf v = how.listed ? floats(b->row[m->row[i]] + k * LANES) : values_for(m->q[i], b, k);
            v *= t->step;
            halves(how.exact ? v - wanted : v, value);
            for (unsigned h = 0; h < each; h++) {
                vd *s = &sum[k * each + h];
                *s = how.exact ? add_square(*s, value[h])
                               : add_difference(*s, value[h], every_d((double)wanted));
            }
        }
    }
    return least_lane(sum, how.eights);
}

/* The codes of a vector whose lanes have these mappings. */
INLINE vi book_codes(vf x, vf q, vi mapping, const tn_search_book *b)
{
    vi rank = { 0 };
    for (unsigned v = 1; v < TN_SEARCH_VALUES; v++) {
        vf from = (vf)mapped(b->from[v], mapping);
        rank = count(rank, at_least(q, from));
    }
    vi code = shift_right(mapped(b->first, mapping), rank * 4) & 15;
    vi negative = (vi)where(more((vi)q, every_i(0)), x, (vf)every_i(0)) >> 31;  /* 0 has no sign */
    return code | (negative & (int32_t)b->sign);
}

/* Their values. */
INLINE vf book_values(vf q, vi mapping, const tn_search_book *b)
{
    vf v = { 0 };
    for (unsigned r = 1; r < TN_SEARCH_VALUES; r++)
        v = where(at_least(q, (vf)mapped(b->from[r], mapping)), (vf)mapped(b->value[r], mapping), v);
    return v;
}

/* Encodes with the chosen mappings; returns the sum of squared errors if it is wanted. */
INLINE double finish_tile(uint8_t *codes, const uint8_t *mappings, const book_tile *t, const measured *m,
                          trying how)
{
    vd sum = every_d(0);
    for (size_t i = 0; i < t->size; i += LANES) {
        vf v = floats(t->x + i), q = floats(m->q + i);
        vi mapping = lanes_of(bytes_to(mappings + i / t->subtile), t->order);
        put_bytes(codes + i, book_codes(v, q, mapping, t->book));
        if (how.sums)
            sum = add_errors(sum, book_values(q, mapping, t->book) * t->step, magnitude(v), how.exact);
    }
    return how.sums ? join_d(sum) : 0;
}

INLINE double choose_tile(uint8_t *codes, uint8_t *mappings, const book_tile *t, trying how, bool sums)
{
    measured m;
    measure(&m, t->x, t->size, t->step, t->book);
    for (size_t i = 0; i < t->size; i += t->subtile)
        mappings[i / t->subtile] = (uint8_t)best_mapping(t, &m, i, how);
    how.sums = true;
    if (sums)
        return finish_tile(codes, mappings, t, &m, how);
    how.sums = false;
    return finish_tile(codes, mappings, t, &m, how);
}

/* For a step of 0: all codes are 0, or -0 for negative values. */
static double choose_nothing(uint8_t *codes, uint8_t *mappings, const book_tile *t)
{
    vd sum = every_d(0);
    for (size_t i = 0; i < t->size; i++)
        codes[i] = t->x[i] < 0 ? (uint8_t)t->book->sign : 0;
    memset(mappings, 0, t->size / t->subtile);
    for (size_t i = 0; i < t->size; i += LANES)
        sum = add_errors(sum, floats(t->x + i), every_f(0), true);
    return join_d(sum);
}

INLINE void choose_all(uint8_t *restrict codes, uint8_t *restrict mappings, double *restrict sums,
                       const tn_search_tiles *tiles, book_tile t, trying how)
{
    for (size_t k = 0; k < tiles->count; k++) {
        uint8_t *to = codes + k * t.size, *own = mappings + k * (t.size / t.subtile);
        t.x = tiles->x + k * t.size;
        t.step = tiles->step[k];
        double sum = t.step == 0 ? choose_nothing(to, own, &t) : choose_tile(to, own, &t, how, sums);
        if (sums)
            sums[k] = sum;
    }
}

static void choose(uint8_t *restrict codes, uint8_t *restrict mappings, double *restrict sums,
                   const tn_search_tiles *tiles, size_t subtile, const tn_search_book *b)
{
    book_tile t = { .size = tiles->size, .subtile = subtile, .book = b };
    bool many = b->mappings > 8;
    for (unsigned i = 0; i < LANES; i++)
        t.order[i] = (int32_t)(i / subtile);
    if (!b->rows)
        choose_all(codes, mappings, sums, tiles, t, (trying){ .eights = 2 });
    else if (many && b->exact)
        choose_all(codes, mappings, sums, tiles, t, (trying){ .eights = 2, .listed = true, .exact = true });
    else if (many)
        choose_all(codes, mappings, sums, tiles, t, (trying){ .eights = 2, .listed = true });
    else if (b->exact)
        choose_all(codes, mappings, sums, tiles, t, (trying){ .eights = 1, .listed = true, .exact = true });
    else
        choose_all(codes, mappings, sums, tiles, t, (trying){ .eights = 1, .listed = true });
}

/* ---- offsets ---- */

/* The maximum of each subtile, in all its lanes. */
INLINE vi spread_most(vi v, size_t subtile, const vi *swap)
{
    v = most_i(v, lanes_of(v, swap[0]));
    if (subtile > 2)
        v = most_i(v, lanes_of(v, swap[1]));
    if (subtile > 4)
        v = most_i(v, lanes_of(v, swap[2]));
    return v;
}

INLINE void lower_all(uint8_t *restrict codes, uint8_t *restrict offsets, const tn_search_tiles *t,
                      const tn_search_offsets *o, const tn_search_number *n, size_t subtile)
{
    vi swap[3];
    for (unsigned s = 0; s < 3; s++)
        for (unsigned i = 0; i < LANES; i++)
            swap[s][i] = (int32_t)(i ^ 1u << s);
    for (size_t k = 0; k < t->count; k++) {
        vi highest = every_i(o->exponent[k]), factor = (vi)every_f(t->factor[k]);
        for (size_t i = k * t->size; i < (k + 1) * t->size; i += LANES) {
            vi own = spread_most(integers(t->x + i) & INT32_MAX, subtile, swap);
            vi below = highest - ((own + o->bump) >> 23);
            below = least_i(below, every_i(o->most));
            uint8_t each[LANES];
            put_bytes(codes + i, code_of(floats(t->x + i) * (vf)(factor + (below << 23)), n));
            put_bytes(each, below);
            for (unsigned u = 0; u < LANES; u += (unsigned)subtile)
                *offsets++ = each[u];
        }
    }
}

static void lower(uint8_t *restrict codes, uint8_t *restrict offsets, const tn_search_tiles *t,
                  const tn_search_offsets *o)
{
    const tn_search_number n = t->number;
    switch (o->subtile) {
    case 2:  lower_all(codes, offsets, t, o, &n, 2); break;
    case 4:  lower_all(codes, offsets, t, o, &n, 4); break;
    default: lower_all(codes, offsets, t, o, &n, 8); break;
    }
}

void LEVEL(tn_search_kernels_init)(tn_search_kernels *k)
{
    *k = (tn_search_kernels){ .widest = LANES, .select = select_some, .encode = encode, .squares = squares,
                              .list = list, .choose = choose, .lower = lower };
}
