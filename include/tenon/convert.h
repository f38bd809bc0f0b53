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
    const tn_tensor *source;    /* the first, if several are joined */
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
    size_t           file;      /* number of the output file that has the data */
    uint64_t         offset;    /* of the data in it; UINT64_MAX: not known before it is compressed */
    const tn_tensor *const *sources;    /* all, in the order in which they are joined */
    size_t           nsources;
    const char      *steps;     /* what is done to it, in order: "slice, cast"; "": it is copied */
} tn_planned;
typedef void (*tn_plan_fn)(void *context, const tn_planned *planned);

/* What is to become of tensors: a step, and in text which tensors it is for and how.
 *
 *     slice      [GLOB=]START:STOP[:STEP],INDEX...   as in Python; dimensions not named are whole
 *     transpose  [GLOB=]1,0,2
 *     reshape    [GLOB=]16,-1
 *     add        [GLOB=]NUMBER           to each element, in float32
 *     concat     NEW=GLOB+GLOB...[,axis=N|,stack=N]
 *     split      GLOB=NEW+NEW...[,axis=N][,sizes=A+B...] or GLOB=NEW,unstack=N
 *     cast       [GLOB=]TYPE[,KEY=VALUE...]
 *     layout     [GLOB=]LAYOUT[,from=LAYOUT]
 *     pad        [GLOB=]DIM=N[,DIM=N...][,value=V][,compat=mli]
 *     form       [GLOB=]dense|coo|csr[,threshold=T][,duplicates=refuse|sum][,index=TYPE]
 *
 * A rule without a glob is for all tensors; a glob has no comma.  Where it says [GLOB=], "re:" and a regular
 * expression may be there: see tn_choose().  The command line has an option of the same name for each step,
 * and "tenon help rules" explains all of them.
 *
 * The steps of a tensor come in this order: slice, transpose, reshape, add, concat or split, layout, pad and
 * sparse forms, cast (docs/pipeline.md); with in_order in the order of the rules.  Globs of the first six
 * are for names in the input, the others for names of what comes of them.
 *
 * concat: tensors follow in the order of the globs and, of one glob, of the numbers in their names.  The
 * first stars of a GLOB are those of NEW, further ones count.  NEW is where its first input was.  split:
 * into equal pieces, or of these sizes; unstack: the last star of NEW is the index.  Of their globs only
 * '*' is special.
 *
 * cast: TYPE is an element type; fx8, fx16, sa8 or sa32 (codes of MLI); a datatype
 * (tn_datatype_load()); or N:M, which keeps the N largest of each M values along the last dimension. */
typedef struct tn_rule {
    const char *step;
    const char *text;
} tn_rule;

/* Whether a rule can be read; no tensor is looked at.  `cast_defaults` (may be NULL) is
 * KEY=VALUE[,KEY=VALUE...] for all casts: round, overflow, underflow, nan, seed, complex, mode, rotate,
 * dialect, virtual, importance.  What a rule says itself comes first.  Codes with scales and datatypes
 * saturate, or refuse to (error): another overflow is refused, and `saturate` too where they do not
 * (compat=mli, N:M of float32, float16 and bfloat16 without scales).
 *
 * importance is for block types: a file of llama.cpp's imatrix tool, whose path has no comma, or "none"
 * (tn_quantize_options.no_importance).  Tensors are looked up in it by their new names, else by their old
 * ones; one that it does not have is encoded without, or refused where its type needs it.
 *
 * TN_ERR_ARGUMENT: the text says what is wrong and where.  Others: a table of a datatype, or importance data,
 * cannot be read. */
TN_API tn_status tn_rule_check(const tn_rule *rule, const char *cast_defaults, tn_error *err);

enum {                          /* what tn_rule_makes() tells */
    TN_RULE_QUANTIZES = 1,      /* codes with scales, or the N largest of each M values */
    TN_RULE_TAKES_MODE = 2,     /* scales that are chosen as the defaults' mode says */
    TN_RULE_TAKES_DIALECT = 4,  /* and codes of the defaults' dialect */
    TN_RULE_KEEPS_N_OF_M = 8,   /* N:M, in the tensor's own type */
    TN_RULE_TAKES_IMPORTANCE = 16       /* block types, which the defaults' importance is for */
};
/* What a rule that can be read makes, as bits TN_RULE_*: 0 of other steps than casts. */
TN_API unsigned tn_rule_makes(const tn_rule *rule, const char *cast_defaults);

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

/* What a plain cast did to a tensor of whose values it made more than 1 % zero, or found more than 1 % beyond
 * the largest value of the type. */
typedef struct tn_cast_report {
    const char *name;               /* after renaming */
    tn_dtype    dtype;              /* of the new tensor */
    uint64_t    values;             /* other than 0 */
    uint64_t    flushed;            /* of them became 0 */
    uint64_t    saturated;          /* finite ones that were beyond the largest value */
} tn_cast_report;
typedef void (*tn_cast_report_fn)(void *context, const tn_cast_report *lost);

typedef struct tn_convert_options {
    size_t             size;    /* sizeof(tn_convert_options), set by the caller */
    const tn_create_options *create;    /* of the output; may be NULL */
    tn_keep            encoding;
    tn_keep            checksum;
    const char *const *only;        /* which tensors are written: see tn_choose(); NULL: all */
    size_t             nonly;
    const char *const *rename;      /* "OLD=NEW"; each side may have one '*' that stands for the same text; or
                                     * "re:EXPRESSION=NEW": NEW replaces what matches, \1 is group 1 */
    size_t             nrename;
    const tn_rule     *rules;       /* of each step the first that matches a tensor counts */
    size_t             nrules;
    bool               in_order;    /* all that match count, in the order given */
    const char        *cast_defaults;   /* see tn_rule_check(); may be NULL */
    bool               dry_run;     /* plan and check everything, write nothing */
    tn_plan_fn         plan;        /* may be NULL */
    tn_progress_fn     progress;    /* may be NULL */
    void              *context;     /* for both callbacks */
    uint64_t           max_bytes;   /* what data may be decoded into, of all tensors together and of each that
                                     * gets another form; 0: the file's, see tn_open_options */
    tn_quantize_report_fn quantized;    /* called for each tensor that a rule with a datatype made,
                                         * after it; may be NULL */
    bool               raw_codes;   /* another tool's packed codes, see tn_file_convention(), and their
                                     * scales are plain numbers: rules may change them, `only` may part
                                     * them */
    tn_cast_report_fn  lost;        /* called for such a tensor, after it; may be NULL */
    bool               strict;      /* such a tensor is an error: TN_ERR_LOSS */
    const char        *map;         /* what tensors are called in the output, and how they lie there, before
                                     * any rule: "llama", or the path of a table (docs/maps.md); or NULL */
    const char        *metadata_from;       /* path of a file whose metadata the output gets, and then what
                                             * the input has besides; or NULL */
    uint64_t           piece_size;  /* about how many bytes a piece writes: see tenon/plan.h; 0: 64 MiB. 
                                     * What is written does not depend on it */
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
 * TN_ERR_UNSUPPORTED: codes of another tool would be changed as if they were numbers.
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
    const char *const *types;   /* of each edit's text, see tn_meta_type_exists(); NULL, all or one: a text
                                 * or, where metadata has types (gguf), of the type that the key has */
} tn_edit_options;

/* Whether a text can be of this type: "str", a text as it is; "json", any JSON value; "u8", "i8", "u16",
 * "i16", "u32", "i32", "u64", "i64", "f32", "f64", "bool", a value of this type or a JSON array of such. */
TN_API bool tn_meta_type_exists(const char *type);

/* Replaces the file at `path` by one whose metadata is changed and whose data
 * is the same bytes: shared with the old file where the file system can, else
 * copied in the kernel.  `options` may be NULL.  *shared_bytes (may be NULL)
 * tells how many bytes are shared.  Others may do the same at the same time:
 * no change is lost.
 * TN_ERR_ARGUMENT: no such tensor or key, a text that is not of its type, or
 * the container has no place for it.  TN_ERR_CHANGED: others have changed the file again and again, without
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
    const char *const *only;    /* which tensors are compared: see tn_choose(); NULL: all */
    size_t         nonly;
    const char *const *rename;  /* what tensors of `a` are called in `b`: as in tn_convert_options */
    size_t         nrename;
    double         tolerance, relative;     /* values are equal if |a - b| <= tolerance + relative * |a|; if
                                             * one is not 0, types and forms may differ */
    struct tn_together *together;   /* not NULL: with other processes, see <tenon/work.h> */
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
    const char *const *only;        /* see tn_choose(); NULL: all */
    size_t             nonly;
    unsigned           jobs;
    tn_progress_fn     progress;    /* may be NULL */
    void              *context;     /* for both callbacks */
    const char        *cast_defaults;   /* instead of `quantize`: see tn_rule_check(); may be NULL */
    struct tn_together *together;   /* not NULL: with other processes, see <tenon/work.h>; then `quantize` is
                                     * NULL */
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
