/* cli/ui/rating.c - the errors of quantizing, as text. */
#include "ui/rating.h"
#include "ui/json.h"
#include "ui/say.h"

#include <math.h>
#include <stdio.h>

void rating_add(rating *all, const tn_quantize_report *one)
{
    const tn_quantize_stats *r = one->report;
    all->report.values += r->values;
    all->report.saturated += r->saturated;
    all->report.flushed += r->flushed;
    all->report.signal += r->signal;
    all->report.noise += r->noise;
    if (r->max_error > all->report.max_error)
        all->report.max_error = r->max_error;
    all->bits += one->bits * (double)r->values;
}

double rating_sqnr(const tn_quantize_stats *r)
{
    return r->noise == 0 ? INFINITY : 10 * log10(r->signal / r->noise);
}

double rating_bits(const rating *r)
{
    return r->report.values ? r->bits / (double)r->report.values : 0;
}

short_text sqnr_text(double sqnr)
{
    short_text text = { "exact" };
    if (sqnr != INFINITY)
        snprintf(text.s, sizeof text.s, "%.2f dB", sqnr);
    return text;
}

short_text bits_text(double bits)
{
    short_text text;
    snprintf(text.s, sizeof text.s, "%.6g", bits);
    return text;
}

void rating_cells(table *t, const rating *r)
{
    const tn_quantize_stats *report = &r->report;
    char error[40];
    if (!report->values) {
        for (int i = 0; i < 5; i++)
            table_cell(t, "-");
        return;
    }
    snprintf(error, sizeof error, "%.5g", report->max_error);
    table_cell(t, bits_text(rating_bits(r)).s);
    table_cell(t, sqnr_text(rating_sqnr(report)).s);
    table_cell(t, error);
    table_cell(t, percent(report->saturated, report->values).s);
    table_cell(t, percent(report->flushed, report->values).s);
}

void rating_fields(const rating *r)
{
    const tn_quantize_stats *report = &r->report;
    json_uint_field("values", report->values);
    json_key("bits");
    json_double(rating_bits(r));
    json_key("sqnr");
    json_double(rating_sqnr(report));
    json_key("max_error");
    json_double(report->max_error);
    json_uint_field("saturated", report->saturated);
    json_uint_field("flushed", report->flushed);
}

void rating_out(const rating *r)
{
    const tn_quantize_stats *report = &r->report;
    if (!report->values) {
        out_text("nothing to quantize");
        return;
    }
    out("%s bits per value, SQNR %s, max error %.5g, ", bits_text(rating_bits(r)).s,
        sqnr_text(rating_sqnr(report)).s, report->max_error);
    out("%s saturated, %s flushed to zero", percent(report->saturated, report->values).s,
        percent(report->flushed, report->values).s);
}
