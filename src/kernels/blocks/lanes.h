/* kernels/blocks/lanes.h - vectors for the searches of encoders.
 *
 * Included by template.h after the vectors of a level.  Lanes are sub-blocks, one each: a sum over the values
 * of a sub-block then has the order of the definition. */

INLINE vf every_f(float x)              { return x - (vf){ 0 }; }
INLINE vf floats(const float *p)        { vf v; memcpy(&v, p, sizeof v); return v; }
INLINE void put_floats(float *p, vf v)  { memcpy(p, &v, sizeof v); }
INLINE vf number(vi v)                  { return __builtin_convertvector(v, vf); }
INLINE vf magnitude(vf v)               { return (vf)((vi)v & INT32_MAX); }
INLINE vm both(vm a, vm b)              { return (vm)(a & b); }
INLINE vm none_of(vm m)                 { return (vm)~m; }
INLINE vf evens(vf a, vf b)             { return __builtin_shufflevector(a, b, EVENS); }
INLINE vf odds(vf a, vf b)              { return __builtin_shufflevector(a, b, ODDS); }

/* 0, 1, 2 ... */
INLINE vf lane_numbers(void)
{
    vf v = { 0 };
    for (unsigned r = 0; r < LANES; r++)
        v[r] = (float)r;
    return v;
}

/* near() of any number. */
INLINE vi near_any(vf v)
{
    return ((vi)(v + 12582912.0f) & 0x7fffff) - 0x400000;
}

INLINE vf clamp_f(vf v, float low, float high)
{
    return least_f(most_f(v, every_f(low)), every_f(high));
}

/* clamp(near(v), low, high) as a float; `exact`: v may be 2^22 or more. */
INLINE vf near_within(vf v, float low, float high, bool exact)
{
    return clamp_f(exact ? number(near_any(v)) : rounded(v), low, high);
}

/* Rows become columns: log2(LANES) perfect shuffles. */
INLINE void transpose(vf v[LANES])
{
    vf t[LANES];
    for (unsigned s = 1; s < LANES; s *= 2) {
        for (unsigned i = 0; i < LANES / 2; i++) {
            t[i] = evens(v[2 * i], v[2 * i + 1]);
            t[i + LANES / 2] = odds(v[2 * i], v[2 * i + 1]);
        }
        for (unsigned i = 0; i < LANES; i++)
            v[i] = t[i];
    }
}

/* LANES rows of n values become columns: value e of each row is column e. */
INLINE void turn_rows(const float *const row[LANES], unsigned n, vf *columns)
{
    for (unsigned e = 0; e < n; e += LANES) {
        vf v[LANES];
        for (unsigned r = 0; r < LANES; r++)
            v[r] = floats(row[r] + e);
        transpose(v);
        for (unsigned r = 0; r < LANES; r++)
            columns[e + r] = v[r];
    }
}

/* The same of row `first` and those after it.  There are no rows after `last`: it is taken again. */
INLINE void load_columns(const float *x, size_t first, size_t last, unsigned n, vf *columns)
{
    const float *row[LANES];
    for (unsigned r = 0; r < LANES; r++)
        row[r] = x + (first + r < last ? first + r : last) * n;
    turn_rows(row, n, columns);
}

/* sum_squares() of each of n <= LANES rows of `size` values. */
static vf sums_of_squares(const float *x, size_t n, unsigned size)
{
    vf sum = { 0 };
    const float *row[LANES];
    for (unsigned r = 0; r < LANES; r++)
        row[r] = x + (r < n ? r : n - 1) * size;
    for (unsigned e = 0; e < size; e += LANES) {
        vf v[LANES];
        for (unsigned r = 0; r < LANES; r++)
            v[r] = floats(row[r] + e);
        transpose(v);
        for (unsigned r = 0; r < LANES; r++)
            sum += v[r] * v[r];
    }
    return sum;
}

/* first_largest() of each lane. */
INLINE vf first_largest_of(const vf *x, unsigned n)
{
    vf most = { 0 }, max = { 0 };
    for (unsigned e = 0; e < n; e++) {
        vm more = above(magnitude(x[e]), most);
        most = pick(more, magnitude(x[e]), most);
        max = pick(more, x[e], max);
    }
    return max;
}
