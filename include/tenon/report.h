/* tenon/report.h - a file as pictures: figures of every tensor, which of them are odd, and a page that shows
 * them.
 *
 * Tensors are compared with their like.  A name is cut at its numbers: "layers.3.mlp.up.weight" has the role
 * "layers.*.mlp.up.weight" and the layer 3.  A further number (of experts) belongs to the role.
 * docs/report.md says how figures are compared and when a tensor is marked. */
#ifndef TENON_REPORT_H
#define TENON_REPORT_H

#include <tenon/convert.h>
#include <tenon/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_report tn_report;

typedef struct tn_report_options {
    size_t         size;        /* sizeof(tn_report_options), set by the caller */
    const char *const *types;   /* datatypes whose effect is measured, see tn_datatype_load(); may be NULL */
    size_t         ntypes;
    const tn_file *against;     /* another file, with which the tensors are compared; may be NULL */
    const char *const *only;    /* which tensors: see tn_choose(); NULL: all */
    size_t         nonly;
    unsigned       jobs;        /* threads; 0: one per core */
    tn_progress_fn progress;    /* may be NULL */
    void          *context;     /* of progress */
    const char    *stamp;       /* a text for the end of the page, such as the time; NULL: none, and the same
                                 * input gives the same bytes */
} tn_report_options;

/* What one datatype would make of a tensor. */
typedef struct tn_report_rating {
    bool     fits;              /* false: not measured, or the shape does not fit; the rest is not set */
    double   sqnr;              /* dB; infinite if nothing is lost */
    uint64_t nbytes;            /* of all parts */
} tn_report_rating;

/* The structs below are the report's: they live until tn_report_free(), and later versions may append to
 * them. */
typedef struct tn_report_tensor {
    const tn_tensor *tensor;    /* of the file, which must be open for it */
    tn_statistics    statistics;
    const char      *why;       /* it could not be read, and why; or NULL */
    uint64_t         values, nbytes;    /* of its shape; stored bytes, decoded, of all parts */
    size_t           role;
    int64_t          layer;     /* -1: its name has no number */
    bool             marked;    /* it is odd, see docs/report.md */
    double           oddity;    /* how far its oddest figure is from the median of its role, in median
                                 * deviations; at most 999 */
    const char      *odd_figure;        /* which: "std", "peak", "NaN" ...; "": none can be compared */
    const tn_report_rating *ratings;    /* one per type, or NULL */
    const tn_difference    *difference; /* from the tensor of the other file; NULL: equal, or not compared */
} tn_report_tensor;

typedef struct tn_report_role {
    const char *pattern;        /* "layers.*.mlp.up.weight" */
    size_t      tensors, marked;
    uint64_t    values, nbytes;
} tn_report_role;

typedef struct tn_report_type {
    const char *text;           /* as in the options */
    const char *datatype;       /* tn_datatype_text() */
    double      bits, sqnr;     /* of all tensors that it fits; 0 and NaN: of none */
    size_t      tensors;        /* that it fits */
    size_t      worst;          /* number of the tensor with the least SQNR; SIZE_MAX: none */
} tn_report_type;

typedef struct tn_report_totals {
    size_t        tensors, roles, types;
    size_t        marked, unread;
    size_t        dead, constant;       /* all values are 0; all are the same other number */
    uint64_t      nbytes;
    tn_statistics statistics;
    size_t        only_here, only_there, changed;       /* compared with the other file; changed: in type,
                                                         * shape, form or values */
} tn_report_totals;

/* Reads all chosen tensors: once for statistics, once for all datatypes, once to compare, and the most
 * noticeable ones again for their pictures.  Memory grows with the number of tensors, not with their
 * sizes.  *report is written on success only; both files stay open until it is freed.
 *
 * A tensor that cannot be read is reported, not an error; datatypes are not tried on it, nor on one with NaN
 * or infinity.  TN_ERR_ARGUMENT: a glob that matches nothing, a type that cannot be read.  TN_ERR_IO,
 * TN_ERR_NOMEM, TN_ERR_CANCELLED: stopped early.  Others: the other file is damaged. */
TN_API tn_status tn_report_make(const tn_file *file, const tn_report_options *options, tn_report **report,
                                tn_error *err);

/* Frees a report; NULL is allowed. */
TN_API void tn_report_free(tn_report *report);

/* What a report found.  Totals of no report (NULL), and numbers that are out of range, give NULL. */
TN_API const tn_report_totals *tn_report_sums(const tn_report *report);     /* The totals. */
TN_API const tn_report_tensor *tn_report_tensor_at(const tn_report *report, size_t i);  /* In file order. */
TN_API const tn_report_role   *tn_report_role_at(const tn_report *report, size_t i);    /* As they appear. */
TN_API const tn_report_type   *tn_report_type_at(const tn_report *report, size_t i);    /* As given. */

typedef enum tn_report_text_kind {
    TN_REPORT_DATA    = 0,      /* all of it as JSON, on one line: docs/json/report.schema.json */
    TN_REPORT_PAGE    = 1,      /* a whole HTML page with the data in it, which loads nothing else */
    TN_REPORT_SUMMARY = 2       /* the beginning of that page, for another one: an element, without scripts */
} tn_report_text_kind;

/* The report as text, which lives until it is freed; *n (may be NULL) is its length.  One thread at a time.
 * TN_ERR_ARGUMENT: a NULL, or an unknown kind. */
TN_API tn_status tn_report_text(tn_report *report, tn_report_text_kind kind, const char **text, size_t *n,
                                tn_error *err);

/* Writes the page to `path`, which appears whole or not at all.  TN_ERR_EXISTS: the file exists, and
 * `replace` is false. */
TN_API tn_status tn_report_save(tn_report *report, const char *path, bool replace, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
