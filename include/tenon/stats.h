/* tenon/stats.h - what the values of a tensor look like, in one pass. */
#ifndef TENON_STATS_H
#define TENON_STATS_H

#include <tenon/file.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Powers of two by magnitude: bin k counts finite values that are not zero with
 * 2^(k + TN_STATS_LOW) <= |x| < 2^(k + 1 + TN_STATS_LOW); the first and last
 * bin take what lies beyond. */
#define TN_STATS_BINS 64
#define TN_STATS_LOW  (-40)

typedef struct tn_statistics {
    uint64_t count;
    uint64_t zeros, subnormals, nans, infinities;   /* subnormals of the tensor's own type */
    uint64_t finite;
    double   min, max;              /* of finite values; NaN when there is none */
    double   mean, deviation;       /* of finite values; population standard deviation */
    double   absmax;
    uint64_t histogram[TN_STATS_BINS];
} tn_statistics;

/* Called once per tensor, in the order of the file, from one thread at a time;
 * at last once with tensor == NULL for all together.  `why` is NULL, or says why
 * the tensor could not be read (its statistics are then empty). */
typedef void (*tn_stats_fn)(void *context, const tn_tensor *tensor, const tn_statistics *statistics,
                            const tn_error *why);

typedef struct tn_stats_options {
    size_t         size;        /* sizeof(tn_stats_options), set by the caller */
    unsigned       jobs;            /* threads; 0: one per core */
    tn_progress_fn progress;        /* may be NULL */
    void          *context;         /* for both callbacks */
    const char *const *only;        /* which tensors: see tn_choose(); NULL: all */
    size_t         nonly;
    struct tn_together *together;   /* not NULL: with other processes, see <tenon/work.h> */
} tn_stats_options;

/* Goes through every tensor (complex: both halves are values; scaled: the values that the codes stand for;
 * sparse: the entries, and zeros for all that is not stored); one of a form this build does not know is
 * reported with the reason, as one that cannot be read is.  The figures do not depend on the number of
 * threads, the CPU, the byte order or the encoding.
 *
 * TN_ERR_ARGUMENT: a glob that matches nothing.  TN_ERR_IO, TN_ERR_NOMEM,
 * TN_ERR_CANCELLED: stopped early. */
TN_API tn_status tn_stats(const tn_file *file, const tn_stats_options *options, tn_stats_fn report,
                          tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
