/* cli/ui/rating.h - what quantizing did to values, in words. */
#ifndef TENON_CLI_UI_RATING_H
#define TENON_CLI_UI_RATING_H

#include "ui/table.h"
#include "ui/text.h"

/* Of one tensor, or of several together. */
typedef struct rating {
    tn_quantize_stats report;
    double bits;                /* of all values */
} rating;

void rating_add(rating *all, const tn_quantize_report *one);

double rating_sqnr(const tn_quantize_stats *report);     /* dB; infinite where nothing is lost */
double rating_bits(const rating *r);                    /* a value, 0 where there is none */
short_text sqnr_text(double sqnr);                      /* "18.62 dB", "exact" */
short_text bits_text(double bits);                      /* "4.25" */

/* bits, SQNR, largest error, share saturated, share flushed to zero: five cells, whose headings are these. */
#define RATING_HEADINGS "bits", "SQNR", "max error", "saturated", "flushed"
void rating_cells(table *t, const rating *r);
void rating_fields(const rating *r);                    /* of a JSON object */
void rating_out(const rating *r);                       /* "4.25 bits a value, SQNR 18.62 dB, ..." */

#endif
