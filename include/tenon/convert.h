/* tenon/convert.h - whole files: convert, edit metadata, compare.
 *
 * These functions handle two files: their error texts begin with the name of
 * the file concerned and carry the byte in the text. */
#ifndef TENON_CONVERT_H
#define TENON_CONVERT_H

#include <tenon/layout.h>
#include <tenon/quantize.h>
#include <tenon/sparse.h>
#include <tenon/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of one tensor; reported by a dry run in the order of writing. */
typedef struct tn_planned {
    const tn_tensor *source;
    const char      *name;      /* after renaming */
    tn_dtype         dtype;     /* after casting: of the data */
    const char      *datatype;  /* of a tensor scaled by one, or NULL */
    tn_form          form;
    uint32_t         rank;
    const int64_t   *shape;     /* after reordering, without padding */
    const int64_t   *physical;  /* with padding, or NULL */
    const char      *layout;    /* or NULL */
    tn_encoding      encoding;
    tn_checksum      checksum;
    uint64_t         nbytes;    /* decoded, all parts */
} tn_planned;
typedef void (*tn_plan_fn)(void *context, const tn_planned *planned);

/* Which tensors become elements of another type; the first rule that matches a
 * tensor counts, others leave it as it is. */
typedef struct tn_cast_rule {
    char            glob[256];  /* of names; "*": all */
    tn_dtype        dtype;
    tn_cast_options options;
    bool            quantized;  /* integer codes with a scale, as `affine` says; else one element for one */
    tn_affine       affine;     /* without its axis; where nothing is quantized, its arithmetic is that of
                                 * values from codes */
    char            axis[24];   /* the dimension: a letter of the layout or a number (negative: from the
                                 * last); "": per tensor */
    float           scale;      /* TN_SCALE_GIVEN: for all */
    int32_t         zero;
    tn_datatype    *datatype;   /* owned, or NULL; then dtype is TN_UNKNOWN */
    tn_quantize_options quantize;   /* of both; its round, nan and seed are those of `options` */
    bool            is_virtual; /* values in the tensor's own type instead of codes */
    unsigned        keep, of;   /* N:M sparsity alone, in the tensor's own type; of 0: none */
    bool            round_given;    /* else codes that are made of codes round HALF_UP, whatever `options`
                                     * say */
} tn_cast_rule;

/* Reads a rule: [GLOB=]TYPE[,KEY=VALUE...] with the keys round, overflow, nan,
 * seed, times (each value is multiplied by it first) and complex (real); and
 * for codes with a scale per (tensor, channel: this makes it one), axis, zero
 * (symmetric, asymmetric, or a number), percentile, scale, mode (max, mse), rotate, virtual;
 * and compat (mli: the values of codes as embARC MLI computes them).
 *
 * TYPE may also be fx8 or fx16, codes of all 8 or 16 bits whose scale is 2^-N: keys frac (auto: the largest
 * at which nothing is cut; least: the one with the least error; or N, -127 to 126), mode, percentile, round,
 * nan, seed, rotate, virtual, compat (mli).  Or sa8, sa32: codes of all 8 or 32 bits with zero points and
 * scales of 15 bits: keys per (tensor), axis, zero, percentile, scale, mode, round, nan, seed, rotate,
 * virtual, compat.  Both are TN_ARITH_EXACT unless compat says MLI, round AWAY, and are made of float types
 * or, with a scale that is given, of codes with scales.
 *
 * TYPE may also be a datatype (tn_datatype_load()) with the keys round, nan, seed, percentile, mode
 * (max, floor, auto, midmax, topbinade, option3, ceil, mse), store (packed,
 * unpacked, e4m3fn, e5m2), dialect (ocp, ggml), rotate (tn_rotation_parse()) and virtual (yes,
 * no), or N:M: the N largest of each M along the last dimension are kept.
 *
 * A glob given so has no comma.  What the text does not say is taken from `defaults`
 * (may be NULL; of it options, quantize, is_virtual and round_given count).
 * Codes with scales and datatypes saturate: other defaults for overflow are refused, and
 * `saturate` too where they do not (compat=mli, N:M of float32, float16 and bfloat16 without scales).
 * TN_ERR_ARGUMENT: the text says what and where.  The caller frees the rule. */
TN_API tn_status tn_cast_rule_parse(const char *text, const tn_cast_rule *defaults, tn_cast_rule *rule,
                                    tn_error *err);
TN_API void tn_cast_rule_free(tn_cast_rule *rule);

/* Which tensors get another order of dimensions; the first rule that matches counts. */
typedef struct tn_layout_rule {
    char glob[256];
    char to[TN_MAX_RANK + 1];
    char from[TN_MAX_RANK + 1]; /* "": the tensor's own layout, which must be known */
} tn_layout_rule;

/* Reads [GLOB=]LAYOUT[,from=LAYOUT]. */
TN_API tn_status tn_layout_rule_parse(const char *text, tn_layout_rule *rule, tn_error *err);

/* Which tensors get padding; the first rule that matches counts. */
typedef struct tn_pad_rule {
    char     glob[256];
    uint32_t count;
    struct {
        char    letter;         /* of the new layout; 0: by number */
        int32_t dimension;      /* negative: from the last */
        int64_t multiple;       /* the extent becomes the next multiple of this */
    } dims[TN_MAX_RANK];
    double   value;             /* of the elements added; of a scaled tensor 0 only */
    bool     raw_zero;          /* of a scaled tensor: they are code 0, as embARC MLI pads, not the code of
                                 * 0 */
} tn_pad_rule;

/* Reads [GLOB=]DIM=N[,DIM=N...][,value=V][,compat=mli]; DIM is a letter or a number. */
TN_API tn_status tn_pad_rule_parse(const char *text, tn_pad_rule *rule, tn_error *err);

/* Which tensors get another form; the first rule that matches counts.  A tensor
 * that has the form already becomes canonical (see tenon/sparse.h). */
typedef struct tn_form_rule {
    char              glob[256];
    tn_form           form;     /* dense, coo or csr */
    tn_sparse_options options;  /* limit and jobs are not looked at */
} tn_form_rule;

/* Reads [GLOB=]FORM[,threshold=T][,duplicates=refuse|sum][,index=TYPE]. */
TN_API tn_status tn_form_rule_parse(const char *text, tn_form_rule *rule, tn_error *err);

typedef enum tn_keep {          /* for encoding and checksum */
    TN_KEEP   = 0,              /* as in the input, where the output can hold it */
    TN_CHOOSE = 1               /* as create->encoding or create->checksum says */
} tn_keep;

/* What quantizing did to one tensor. */
typedef struct tn_quantize_report {
    const tn_tensor        *source;
    const char             *name;       /* after renaming */
    const char             *datatype;
    double                  bits;       /* a value takes, with all parts */
    const tn_quantize_stats *report;
} tn_quantize_report;
typedef void (*tn_quantize_report_fn)(void *context, const tn_quantize_report *quantized);

typedef struct tn_convert_options {
    size_t             size;    /* sizeof(tn_convert_options), set by the caller */
    const tn_create_options *create;    /* of the output; may be NULL */
    tn_keep            encoding;
    tn_keep            checksum;
    const char *const *only;        /* globs: a tensor is written if one matches; NULL: all */
    size_t             nonly;
    const char *const *rename;      /* "OLD=NEW"; each side may have one '*' that stands for the same text */
    size_t             nrename;
    const tn_cast_rule *casts;
    size_t             ncasts;
    bool               dry_run;     /* plan and check everything, write nothing */
    tn_plan_fn         plan;        /* may be NULL */
    tn_progress_fn     progress;    /* may be NULL */
    void              *context;     /* for both callbacks */
    const tn_layout_rule *layouts;
    size_t             nlayouts;
    const tn_pad_rule *pads;
    size_t             npads;
    const tn_form_rule *forms;
    size_t             nforms;
    uint64_t           max_bytes;   /* what data may be decoded into, of all tensors together and of each that
                                     * gets another form; 0: the file's, see tn_open_options */
    tn_quantize_report_fn quantized;    /* called for each tensor that a rule with a datatype made,
                                         * after it; may be NULL */
} tn_convert_options;

typedef struct tn_convert_result {
    uint64_t tensors;
    uint64_t bytes_in;              /* stored bytes read */
    uint64_t bytes_out;             /* of the new file or files; after a dry run with compression, an upper
                                     * bound */
} tn_convert_result;

/* Writes the tensors and metadata of an open file into a new one.  `path` may
 * be the very file that is open.  Checksums of the input are checked on the
 * way.  `result` may be NULL.  Memory does not grow with the tensors, but for
 * text containers (mtx, sparse entries in raw), whose text is made in memory.
 *
 * TN_ERR_ARGUMENT: a glob or an old name that matches nothing, two tensors of
 * one new name, a cast that has no meaning.  TN_ERR_LOSS: something the output cannot hold.
 * TN_ERR_LIMIT: compressed or sparse data would be decoded into more than
 * max_bytes.  TN_ERR_CHECKSUM: the input is damaged.  TN_ERR_CHANGED: `path` is
 * the input, which has changed since it was opened.  In all cases nothing was
 * written or replaced. */
TN_API tn_status tn_convert(const tn_file *file, const char *path, const tn_convert_options *options,
                            tn_convert_result *result, tn_error *err);

/* One change of metadata: text == NULL removes the key. */
typedef struct tn_meta_edit {
    const char *tensor;         /* NULL: the file's own metadata */
    const char *key;
    const char *text;
} tn_meta_edit;

typedef struct tn_edit_options {
    size_t     size;            /* sizeof(tn_edit_options), set by the caller */
    tn_note_fn note;            /* may be NULL */
    void      *context;
} tn_edit_options;

/* Replaces the file at `path` by one whose metadata is changed and whose data
 * is the same bytes: shared with the old file where the file system can, else
 * copied in the kernel.  `options` may be NULL.  *shared_bytes (may be NULL)
 * tells how many bytes are shared.  Others may do the same at the same time:
 * no change is lost.
 * TN_ERR_ARGUMENT: no such tensor or key, or the container has no place for
 * it.  TN_ERR_CHANGED: others have changed the file again and again, without
 * end.  TN_ERR_IO also: another program keeps it locked. */
TN_API tn_status tn_edit_meta(const char *path, const tn_meta_edit *edits, size_t nedits,
                              const tn_edit_options *options, uint64_t *shared_bytes, tn_error *err);

enum {                          /* tn_difference.what */
    TN_DIFF_ONLY_A = 1,         /* b is NULL */
    TN_DIFF_ONLY_B = 2,         /* a is NULL */
    TN_DIFF_FORM   = 4,
    TN_DIFF_DTYPE  = 8,
    TN_DIFF_SHAPE  = 16,
    TN_DIFF_META   = 32,
    TN_DIFF_VALUES = 64,
    TN_DIFF_UNREAD = 128,       /* values could not be compared: the text says why */
    TN_DIFF_LAYOUT = 256        /* the letters of the dimensions, where both are known */
};

typedef struct tn_difference {
    unsigned         what;      /* 0: equal */
    const tn_tensor *a, *b;
    const tn_part   *part;      /* of a: where VALUES differ */
    uint64_t         elements;  /* compared */
    uint64_t         differing; /* elements whose values differ (NaN equals NaN) or, of one type, whose bits
                                 * do */
    uint64_t         first;     /* row-major index of the first of them */
    uint64_t         bits;      /* of one type: how many bits differ */
    uint64_t         specials;  /* differing elements where one side is NaN or infinite: not in the maxima */
    double           max_abs;   /* largest |a - b|; infinite where it is beyond a double */
    double           max_rel;   /* largest |a - b| / |a| with a not 0 */
    double           max_ulp;   /* largest |a - b| in units of the last place of the coarser type at a; of
                                 * integers, |a - b| */
    double           sqnr;      /* 10 log10(sum a^2 / sum (a - b)^2) in dB over pairs of finite values;
                                 * infinite when equal */
    const char      *why;       /* UNREAD: the text of an error, */
    tn_reason        reason;    /* what can be done about it, */
    const char      *value;     /* and with which value: "" or as in tn_error */
    uint64_t         flushed;   /* b is 0 and a is not; pairs of finite values */
    uint64_t         saturated; /* a is finite and lies beyond the last number that the scale of b can say,
                                 * which b is; only where b is scaled by a datatype without rotation, else
                                 * 0 */
} tn_difference;
typedef void (*tn_compare_fn)(void *context, const tn_difference *difference);

typedef struct tn_compare_options {
    size_t         size;        /* sizeof(tn_compare_options), set by the caller */
    unsigned       jobs;
    bool           ignore_meta;
    tn_progress_fn progress;    /* may be NULL */
    void          *context;     /* for both callbacks */
} tn_compare_options;

/* Compares two open files, of any containers, tensor by tensor (a scaled one
 * by the values it stands for, whatever its partner is): first those of
 * `a` in its order, then those only `b` has; the file's own metadata first,
 * with a == b == NULL.  `report` is called once each, from one thread at a
 * time.  *different counts the tensors (and the metadata) that differ. */
TN_API tn_status tn_compare(const tn_file *a, const tn_file *b, const tn_compare_options *options,
                            tn_compare_fn report, size_t *different, tn_error *err);

typedef struct tn_compare_datatypes_options {
    size_t             size;    /* sizeof(tn_compare_datatypes_options), set by the caller */
    const tn_quantize_options *quantize;    /* may be NULL */
    const char *const *only;        /* globs; NULL: all */
    size_t             nonly;
    unsigned           jobs;
    tn_progress_fn     progress;    /* may be NULL */
    void              *context;     /* for both callbacks */
} tn_compare_datatypes_options;

/* What each datatype would do to each float tensor of a file: `report` is called
 * for tensor after tensor and, for each, datatype after datatype.  Others are
 * left out, as are those whose shape a datatype does not fit: report is NULL in
 * what the callback gets then.  Nothing is written. */
TN_API tn_status tn_compare_datatypes(const tn_file *file, const tn_datatype *const *datatypes, size_t n,
                                   const tn_compare_datatypes_options *options, tn_quantize_report_fn report,
                                   tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
