/* quant/tile_report.c - error statistics of encoded tiles. */
#include "quant/tile.h"

#include <math.h>
#include <stdlib.h>

/* Whether x is beyond the largest number at its scale, which is not 0, and y is that number. */
static bool is_saturated(const tn_datatype *d, float x, float y, uint32_t code)
{
    const tn_number_spec *n = &d->number;
    bool beyond = fabsf(x) > fabsf(y);
    switch (n->kind) {
    case TN_NUMBER_UINT:
        return (code == 0 && x < y) || (code == (uint32_t)n->maxint && x > y);
    case TN_NUMBER_INT:
        return beyond && abs(tn_spec_integer(n, code)) == n->maxint;
    case TN_NUMBER_CODEBOOK:
        return beyond && (code & (d->codebook.values - 1)) == d->codebook.values - 1;
    default:
        return beyond && fabsf(tn_spec_value(n, code)) == n->maxfloat;
    }
}

static void report_value(tn_quantize_stats *r, float x, float y)
{
    double error = fabs((double)x - (double)y);
    r->flushed += x != 0 && y == 0;
    r->signal += (double)x * (double)x;
    r->noise += error * error;
    if (error > r->max_error)
        r->max_error = error;
}

void tn_tile_report(const tn_datatype *d, const tn_tile *t, const float *y, tn_quantize_stats *report)
{
    const uint32_t *slot = t->code;
    /* with a scale of 0 nothing saturates: all values become 0 */
    bool zeros = d->scope != TN_SCOPE_NONE && tn_scale_value(d, t->scale, 0) * t->tensor_scale == 0;
    for (size_t i = 0; i < t->n; i++) {
        if (d->of && i % d->of == 0)
            slot = t->code + i / d->of * d->keep;
        const uint32_t *code = d->of ? NULL : &t->code[i];
        if (d->of && t->mask[i])
            code = slot++;
        if (t->index[i] == UINT64_MAX)
            continue;
        report->values++;
        if (!isfinite(t->x[i]))
            continue;
        report_value(report, t->x[i], y[i]);
        report->saturated += code && !zeros && is_saturated(d, t->x[i], y[i], *code);
    }
}

void tn_values_report(const float *x, const float *y, const float *low, const float *high, size_t n,
                      tn_quantize_stats *report)
{
    tn_quantize_stats r = *report;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        report_value(&r, x[i], y[i]);
        r.saturated +=
            high[i] != low[i] && ((y[i] == high[i] && x[i] > y[i]) || (y[i] == low[i] && x[i] < y[i]));
    }
    r.values += n;
    *report = r;
}

void tn_last_codes(const tn_datatype *d, uint32_t codes[2])
{
    const tn_number_spec *n = &d->number;
    tn_coder coder;
    if (d->is_affine) {
        codes[0] = (uint32_t)d->affine.range[0];
        codes[1] = (uint32_t)d->affine.range[1];
        return;
    }
    switch (n->kind) {
    case TN_NUMBER_UINT:
        codes[0] = 0;
        codes[1] = (uint32_t)n->maxint;
        break;
    case TN_NUMBER_INT:
        codes[0] = (uint32_t)-n->maxint & ((UINT32_C(2) << (n->bits - 1)) - 1);
        codes[1] = (uint32_t)n->maxint;
        break;
    case TN_NUMBER_CODEBOOK:
        codes[0] = 2 * d->codebook.values - 1;
        codes[1] = d->codebook.values - 1;
        break;
    default:
        coder = tn_coder_for(n, TN_ROUND_EVEN, 0, TN_DRAW_VALUE);
        codes[0] = tn_coder_float(&coder, -n->maxfloat, 0);
        codes[1] = tn_coder_float(&coder, n->maxfloat, 0);
    }
}

void tn_quantize_stats_add(tn_quantize_stats *all, const tn_quantize_stats *one)
{
    all->values += one->values;
    all->saturated += one->saturated;
    all->flushed += one->flushed;
    all->signal += one->signal;
    all->noise += one->noise;
    if (one->max_error > all->max_error)
        all->max_error = one->max_error;
}
