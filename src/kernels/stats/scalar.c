/* kernels/stats/scalar.c - tallies: the definition. */
#include "kernels/stats/table.h"

#include <math.h>
#include <string.h>


static double load_f32(const void *numbers, size_t i)
{
    float x;
    memcpy(&x, (const uint8_t *)numbers + sizeof x * i, sizeof x);
    return (double)x;
}

static double load_f64(const void *numbers, size_t i)
{
    double x;
    memcpy(&x, (const uint8_t *)numbers + sizeof x * i, sizeof x);
    return x;
}

/* If numbers have both signs, sums of squares around 0 are at most a factor of n
 * less precise than sums around the mean, and not at all if there are many. */
static void begin(tn_tally *t, double (*load)(const void *, size_t), const void *numbers, size_t n)
{
    enum { LOOK = 256 };
    size_t i = 0;
    while (i < n && !isfinite(load(numbers, i)))
        i++;
    if (t->begun || i == n)
        return;
    double first = load(numbers, i);
    t->begun = true;
    t->pivot = t->min = t->max = first;
    for (size_t end = n - i > LOOK ? i + LOOK : n; i < end; i++) {
        double x = load(numbers, i);
        if (isfinite(x) && (first > 0 ? x <= 0 : x >= 0))
            t->pivot = 0;
    }
}

static void add(tn_tally *t, size_t lane, double x)
{
    if (!isfinite(x)) {
        *(isnan(x) ? &t->nans : &t->infinities) += 1;
        return;
    }
    double distance = t->huge ? x * TN_TALLY_SCALE - t->pivot * TN_TALLY_SCALE : x - t->pivot;
    double square = distance * distance, magnitude = fabs(x);
    t->sum[lane] += distance;
    t->squares[lane] += square;
    t->min = x < t->min ? x : t->min;
    t->max = x > t->max ? x : t->max;
    if (magnitude == 0) {
        t->zeros++;
        return;
    }
    t->subnormals += magnitude < t->smallest_normal;
    t->bins[tn_tally_bin(magnitude)]++;
}

void tn_tally_begin_f32(tn_tally *t, const void *numbers, size_t n)
{
    begin(t, load_f32, numbers, n);
}

void tn_tally_f32_scalar(tn_tally *t, const void *numbers, size_t n)
{
    begin(t, load_f32, numbers, n);
    for (size_t i = 0; i < n; i++)
        add(t, i % TN_TALLY_LANES, load_f32(numbers, i));
    t->count += n;
}

/* From the first huge number on sums are scaled; those so far are scaled here. */
static void look_for_huge(tn_tally *t, const void *numbers, size_t n)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        double magnitude = fabs(load_f64(numbers, i));
        found |= magnitude > 0x1p480 && isfinite(magnitude);
    }
    if (!found || t->huge)
        return;
    t->huge = true;
    for (int i = 0; i < TN_TALLY_LANES; i++) {
        t->sum[i] *= TN_TALLY_SCALE;
        t->squares[i] *= TN_TALLY_SCALE;
        t->squares[i] *= TN_TALLY_SCALE;
    }
}

static void tally_f64_scalar(tn_tally *t, const void *numbers, size_t n)
{
    begin(t, load_f64, numbers, n);
    look_for_huge(t, numbers, n);
    for (size_t i = 0; i < n; i++)
        add(t, i % TN_TALLY_LANES, load_f64(numbers, i));
    t->count += n;
}

/* Four tables, so that the counts of equal neighbours do not depend on each other. */
void tn_count_bytes(uint64_t counts[256], const uint8_t *bytes, size_t n)
{
    uint64_t tables[4][256] = { 0 };
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        for (int k = 0; k < 8; k++)
            tables[k % 4][word >> 8 * k & 255]++;
    }
    for (; i < n; i++)
        tables[0][bytes[i]]++;
    for (int v = 0; v < 256; v++)
        counts[v] += tables[0][v] + tables[1][v] + tables[2][v] + tables[3][v];
}

void tn_stats_kernels_init_scalar(tn_stats_kernels *k)
{
    *k = (tn_stats_kernels){ .f32 = tn_tally_f32_scalar, .f64 = tally_f64_scalar };
}
