/* cli/ui/rating.h - the errors of quantizing, as text. */
#ifndef TENON_CLI_UI_RATING_H
#define TENON_CLI_UI_RATING_H

#include "ui/table.h"
#include "ui/text.h"

/* The sums of one tensor or of several. */
typedef struct rating {
    tn_quantize_stats report;
    double bits;                /* of all values */
} rating;

void rating_add(rating *all, const tn_quantize_report *one);

double rating_sqnr(const tn_quantize_stats *report);     /* dB; infinite if nothing is lost */
double rating_bits(const rating *r);                    /* per value; 0 without values */
short_text sqnr_text(double sqnr);                      /* "18.62 dB", "exact" */
short_text bits_text(double bits);                      /* "4.25" */

/* bits, SQNR, largest error, share saturated, share flushed to zero: five cells, whose headings are these. */
#define RATING_HEADINGS "bits", "SQNR", "max error", "saturated", "flushed"
void rating_cells(table *t, const rating *r);
void rating_fields(const rating *r);                    /* of a JSON object */
void rating_out(const rating *r);                       /* "4.25 bits per value, SQNR 18.62 dB, ..." */

#endif
