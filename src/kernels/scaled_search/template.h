/* kernels/scaled_search/template.h - searching and selecting in vectors.
 *
 * Included once by each level's file, which first defines
 *
 *   LANES, vf, vi      vectors of that many float, int32_t
 *   vm                 a mask of lanes
 *   vd                 eight doubles
 *   least_f(a, b), most_f(a, b), most_i(a, b), least_i(a, b)
 *   at_least(a, b)     as floats; more(a, b) as signed integers
 *   where(m, x, y)     x in the lanes of m, else y
 *   bits(m)            a mask as bits
 *   count(v, m)        one more in the lanes of m
 *   shift_right(v, n)  by a number of bits for each lane
 *   lanes_of(v, order) lane order[i] of v in lane i
 *   mapped(table, which)   entry which[i] of 16 in lane i
 *   compress(p, v, m, n)   stores the lanes of m, which are n, side by side; writes no other
 *   bytes_to(p)        LANES bytes, widened
 *   put_bytes(p, v)    the low byte of each lane
 *   every_d(x), halves(v, d)   doubles; a vector of floats as LANES / 8 of doubles
 *   add_difference(s, a, b)    s + (a - b)^2
 *   add_square(s, a)   s + a^2, whose square is exact
 *   join_d(v)          the sum of eight, as tile.h says
 *   least_lane(v, n)   the number of the first of the smallest of n * 8 doubles */
#include <string.h>

#include "kernels/scaled_search/table.h"

enum { DOUBLES = LANES / 8, NOT_FINITE = 0x7f800000 };

INLINE vf every_f(float x)        { return (vf){ 0 } + x; }
INLINE vi every_i(int32_t n)      { return (vi){ 0 } + n; }
INLINE vf floats(const void *p)   { vf v; memcpy(&v, p, sizeof v); return v; }
INLINE vi integers(const void *p) { vi v; memcpy(&v, p, sizeof v); return v; }
INLINE vf magnitude(vf v)         { return (vf)((vi)v & INT32_MAX); }

/* ---- N:M ---- */

/* For each lane: is one of its group, `by` lanes on (in a circle), kept rather than it? */
typedef struct rivals {
    vi order[15];               /* where it is */
    vi earlier[15];             /* 1: it comes first, so that it wins where they are equal */
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

/* NaN is larger than infinity, and no NaN than another. */
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
    case 16: return select_all(kept, mask, x, n, keep, LANES < 16 ? LANES : 16);       /* not where there are
                                                                                        * 8 lanes */
    default: return select_all(kept, mask, x, n, keep, 8);
    }
}

/* ---- rounding ---- */

/* A magnitude on its way to the nearest number: to this is added what makes a step its last bit. */
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

#define MAGIC 0x1.8p23f         /* its last bit is 1: an addition rounds to a whole number */

/* The whole number, zero point left out, that x is in units of the scale. */
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

INLINE void encode_from(uint8_t *restrict codes, const tn_search_tiles *t, bool whole)
{
    for (size_t k = 0; k < t->count; k++)
        for (size_t i = k * t->size; i < (k + 1) * t->size; i += LANES)
            put_bytes(codes + i, code_from(floats(t->x + i), every_f(t->factor[k]), every_f(t->shift[k]),
                                           t->number.most, whole));
}

/* ---- codes ---- */

INLINE void encode_all(uint8_t *restrict codes, const tn_search_tiles *t, const tn_search_number *n,
                       bool divide)
{
    for (size_t k = 0; k < t->count; k++) {
        vf factor = every_f(t->factor[k]);
        for (size_t i = k * t->size; i < (k + 1) * t->size; i += LANES)
            put_bytes(codes + i, code_of(quotient(floats(t->x + i), factor, divide), n));
    }
}

static void encode(uint8_t *restrict codes, const tn_search_tiles *t)
{
    const tn_search_number n = t->number;
    if (t->shift && t->whole)
        encode_from(codes, t, true);
    else if (t->shift)
        encode_from(codes, t, false);
    else if (t->divide)
        encode_all(codes, t, &n, true);
    else
        encode_all(codes, t, &n, false);
}

/* ---- errors ---- */

/* Values and what is wanted of them, as doubles; or (`exact`) their differences, which are float32s.  Where
 * steps are powers of two they are: a value is nearer than 0 is, or the largest, and its last bit no lower
 * than what is wanted has. */
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

INLINE double squares_of(const float *x, size_t size, vf factor, vf step, const tn_search_number *n,
                         bool divide)
{
    vd sum = every_d(0);
    for (size_t i = 0; i < size; i += LANES) {
        vf v = floats(x + i);
        rounded r = round_magnitude(quotient(v, factor, divide), n);
        errors e = errors_of((r.sum - r.magic) * step, magnitude(v), !divide);
        for (unsigned h = 0; h < DOUBLES; h++)
            sum = add_error(sum, &e, h, !divide);
    }
    return join_d(sum);
}

INLINE void squares_all(double *restrict sums, const tn_search_tiles *t, const tn_search_number *n,
                        bool divide)
{
    for (size_t k = 0; k < t->count; k++)
        sums[k] =
            squares_of(t->x + k * t->size, t->size, every_f(t->factor[k]), every_f(t->step[k]), n, divide);
}

INLINE void squares_from(double *restrict sums, const tn_search_tiles *t, bool whole)
{
    for (size_t k = 0; k < t->count; k++) {
        vd sum = every_d(0);
        for (size_t i = k * t->size; i < (k + 1) * t->size; i += LANES) {
            vf v = floats(t->x + i);
            vf value = value_from(v, every_f(t->factor[k]), every_f(t->step[k]), every_f(t->shift[k]),
                                  t->number.most, whole);
            errors e = errors_of(value, v, false);
            for (unsigned h = 0; h < DOUBLES; h++)
                sum = add_error(sum, &e, h, false);
        }
        sums[k] = join_d(sum);
    }
}

static void squares(double *restrict sums, const tn_search_tiles *t)
{
    const tn_search_number n = t->number;
    if (t->shift && t->whole)
        squares_from(sums, t, true);
    else if (t->shift)
        squares_from(sums, t, false);
    else if (t->divide)
        squares_all(sums, t, &n, true);
    else
        squares_all(sums, t, &n, false);
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

/* Magnitudes of a tile in units of its scale, and where the values for them are listed. */
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
    unsigned eights;            /* of them */
    bool     listed;            /* their values for any magnitude */
    bool     exact;             /* errors are float32s */
} trying;

/* The first mapping with the least error for n values from number `first` on. */
INLINE unsigned best_mapping(const tn_search_book *b, const measured *m, const float *x, size_t first,
                             size_t n, float step, trying how)
{
    unsigned blocks = (how.eights + DOUBLES - 1) / DOUBLES, each = how.eights / blocks;
    vd sum[2], value[DOUBLES];
    for (unsigned h = 0; h < how.eights; h++)
        sum[h] = every_d(0);
    for (size_t i = first; i < first + n; i++) {
        float wanted = __builtin_fabsf(x[i]);
        for (unsigned k = 0; k < blocks; k++) {
            vf v = (how.listed ? floats(b->row[m->row[i]] + k * LANES) : values_for(m->q[i], b, k)) * step;
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

/* Codes of a vector whose lanes have these mappings. */
INLINE vi book_codes(vf x, vf q, vi mapping, const tn_search_book *b)
{
    vi rank = { 0 };
    for (unsigned v = 1; v < TN_SEARCH_VALUES; v++) {
        vf from = (vf)mapped(b->from[v], mapping);
        rank = count(rank, at_least(q, from));
    }
    vi code = shift_right(mapped(b->first, mapping), rank * 4) & 15;
    vi negative = (vi)where(more((vi)q, every_i(0)), x, (vf)every_i(0)) >> 31;  /* what became 0 has none */
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

/* The subtile of each lane of a vector, counted from its first one's. */
INLINE vi unit_order(size_t subtile)
{
    vi order;
    for (unsigned i = 0; i < LANES; i++)
        order[i] = (int32_t)(i / subtile);
    return order;
}

/* Encodes with the mappings that were chosen; returns the sum of squared errors where it is asked for. */
INLINE double finish_tile(uint8_t *codes, const uint8_t *mappings, const measured *m, const float *x,
                          size_t size, float step, size_t subtile, const tn_search_book *b, vi order,
                          bool sums, bool exact)
{
    vd sum = every_d(0);
    for (size_t i = 0; i < size; i += LANES) {
        vf v = floats(x + i), q = floats(m->q + i);
        vi mapping = lanes_of(bytes_to(mappings + i / subtile), order);
        put_bytes(codes + i, book_codes(v, q, mapping, b));
        if (!sums)
            continue;
        errors e = errors_of(book_values(q, mapping, b) * step, magnitude(v), exact);
        for (unsigned h = 0; h < DOUBLES; h++)
            sum = add_error(sum, &e, h, exact);
    }
    return sums ? join_d(sum) : 0;
}

INLINE double choose_tile(uint8_t *codes, uint8_t *mappings, const float *x, size_t size, float step,
                          size_t subtile, const tn_search_book *b, vi order, trying how, bool sums)
{
    measured m;
    measure(&m, x, size, step, b);
    for (size_t i = 0; i < size; i += subtile)
        mappings[i / subtile] = (uint8_t)best_mapping(b, &m, x, i, subtile, step, how);
    return sums ? finish_tile(codes, mappings, &m, x, size, step, subtile, b, order, true, how.exact)
                : finish_tile(codes, mappings, &m, x, size, step, subtile, b, order, false, how.exact);
}

/* All is 0, or -0 where there are negative values. */
static double choose_nothing(uint8_t *codes, uint8_t *mappings, const float *x, size_t size, size_t subtile,
                             const tn_search_book *b)
{
    vd sum = every_d(0);
    for (size_t i = 0; i < size; i++)
        codes[i] = x[i] < 0 ? (uint8_t)b->sign : 0;
    memset(mappings, 0, size / subtile);
    for (size_t i = 0; i < size; i += LANES) {
        errors e = errors_of(floats(x + i), every_f(0), true);
        for (unsigned h = 0; h < DOUBLES; h++)
            sum = add_error(sum, &e, h, true);
    }
    return join_d(sum);
}

INLINE void choose_all(uint8_t *restrict codes, uint8_t *restrict mappings, double *restrict sums,
                       const tn_search_tiles *t, size_t subtile, const tn_search_book *b, trying how)
{
    vi order = unit_order(subtile);
    for (size_t k = 0; k < t->count; k++) {
        const float *x = t->x + k * t->size;
        uint8_t *to = codes + k * t->size, *own = mappings + k * (t->size / subtile);
        double sum = t->step[k] == 0
                         ? choose_nothing(to, own, x, t->size, subtile, b)
                         : choose_tile(to, own, x, t->size, t->step[k], subtile, b, order, how, sums);
        if (sums)
            sums[k] = sum;
    }
}

static void choose(uint8_t *restrict codes, uint8_t *restrict mappings, double *restrict sums,
                   const tn_search_tiles *t, size_t subtile, const tn_search_book *b)
{
    bool many = b->mappings > 8;
    if (!b->rows)
        choose_all(codes, mappings, sums, t, subtile, b, (trying){ 2, false, false });
    else if (many && b->exact)
        choose_all(codes, mappings, sums, t, subtile, b, (trying){ 2, true, true });
    else if (many)
        choose_all(codes, mappings, sums, t, subtile, b, (trying){ 2, true, false });
    else if (b->exact)
        choose_all(codes, mappings, sums, t, subtile, b, (trying){ 1, true, true });
    else
        choose_all(codes, mappings, sums, t, subtile, b, (trying){ 1, true, false });
}

/* ---- offsets ---- */

/* The largest of each subtile in all its lanes. */
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
                              .list = list,
                              .choose = choose, .lower = lower };
}
