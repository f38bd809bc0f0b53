/* report/report.h - a report as data, as HTML, and what is odd in it. */
#ifndef TN_REPORT_REPORT_H
#define TN_REPORT_REPORT_H

#include "verbs/report.h"

enum {
    TN_REPORT_LISTED = 2000,    /* tensors and roles that the data has at most: the most noticeable */
    TN_REPORT_CELLS  = 4000,    /* cells of the matrix, where tensors are left out */
    TN_REPORT_NAME   = 240,     /* bytes of a name in the data, with its escapes; a longer one is cut */
    TN_REPORT_WORST  = 10       /* tensors in a list of the worst */
};

/* ---- roles.c ---- */

/* Cuts a name at its numbers: writes the role, of at most the length of the name, and gives the first number,
 * or -1. */
int64_t tn_role_of(const char *name, char *role);

/* Sets role and layer of all tensors, and the roles. */
tn_status tn_report_find_roles(tn_report *report, tn_error *err);

/* ---- marks.c ---- */

/* A figure by which the tensors of a role are compared. */
typedef struct tn_figure {
    const char *key;            /* in the data: "std" */
    const char *title;          /* for people: "absmax / std" */
    bool        is_log;         /* compared by its logarithm to base 2 */
    bool        is_share;       /* of 1, shown in percent */
    double      floor;          /* the least deviation that counts as one: octaves, shares, rms or dB */
} tn_figure;

enum { TN_FIGURES = 6 };
extern const tn_figure tn_figures[TN_FIGURES];
extern const double    tn_sqnr_floor;   /* dB; SQNR counts only below the median */
extern const double    tn_mark_limit;   /* deviations from which on a tensor is marked */

/* The value of a figure, or of the SQNR of a type: number TN_FIGURES + i.  NaN: there is none. */
double tn_figure_of(const tn_report_tensor *tensor, size_t figure);

/* Sets oddity and marks of all tensors, and the totals. */
tn_status tn_report_mark(tn_report *report, tn_error *err);

/* Numbers of tensors, the most noticeable first; in the arena. */
tn_status tn_report_rank(tn_report *report, size_t **order, tn_error *err);

/* The median of n numbers, whose order changes; n > 0. */
double tn_median(double *values, size_t n);

/* ---- texts.c ---- */

void tn_put_number(tn_buf *b, double x, int digits);    /* as JSON: 0.0123, "NaN" */
void tn_put_base64(tn_buf *b, const uint8_t *bytes, size_t n);

/* A text as JSON that may stand in HTML; invisible characters as \uXXXX.  At most `most` bytes of it are
 * written, then "…": then false. */
bool tn_put_json_text(tn_buf *b, const char *text, size_t most);

/* A text in HTML, as the terminal would show it. */
void tn_put_html(tn_buf *b, const char *text);

/* 26,411,520 and 9.4 KiB */
void tn_put_grouped(tn_buf *b, uint64_t number);
void tn_put_size(tn_buf *b, uint64_t bytes);

/* ---- data.c, summary.c, page.c ---- */

void tn_report_put_data(const tn_report *report, tn_buf *b);
void tn_report_put_summary(const tn_report *report, tn_buf *b);
tn_status tn_report_put_page(tn_report *report, tn_buf *b, tn_error *err);

/* What the file is called: the last name of its path, or "memory". */
const char *tn_report_file_name(const tn_file *file);

/* What a tensor's type is called: "bfloat16", "mxfp4 scaled"; writes into the arena's text. */
const char *tn_report_type_name(const tn_tensor *tensor);

#endif
