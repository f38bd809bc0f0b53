/* pipeline/steps/steps.h - the steps that a view can be made of, and their options. */
#ifndef TN_PIPELINE_STEPS_STEPS_H
#define TN_PIPELINE_STEPS_STEPS_H

#include "cast/cast.h"
#include "pipeline/rules/rules.h"
#include "pipeline/view.h"
#include "store/kept.h"

extern const tn_step tn_step_stored;            /* tn_tensor: of the file */
extern const tn_step tn_step_cast;              /* tn_cast_task */
extern const tn_step tn_step_quantize;          /* tn_quantize_task: affine, element by element */
extern const tn_step tn_step_requantize;        /* tn_quantize_task: codes with scales into others */
extern const tn_step tn_step_encode;            /* tn_quantize_task: any datatype, by blocks */
extern const tn_step tn_step_dequantize;        /* tn_dequantize_task: scales without a datatype */
extern const tn_step tn_step_decode;            /* tn_dequantize_task: codes of a datatype */
extern const tn_step tn_step_repack;            /* tn_quantize_task: codes into those of another datatype */
extern const tn_step tn_step_reorder;           /* uint32_t[rank]: dimension i was order[i] */
extern const tn_step tn_step_slice;             /* tn_arrangement */
extern const tn_step tn_step_reshape;           /* tn_shape: of as many elements */
extern const tn_step tn_step_add;               /* float: to each element of float32 */
extern const tn_step tn_step_concat;            /* tn_joining, of several inputs */
extern const tn_step tn_step_pad;               /* tn_pad_rule, or NULL: rows of codes begin on a byte */
extern const tn_step tn_step_form;              /* tn_form_rule */

/* Some indices of each dimension, in another order of dimensions. */
typedef struct tn_arrangement {
    uint32_t rank;                      /* of the result */
    uint32_t from[TN_MAX_RANK];         /* dimension i of the result was this one... */
    int64_t  extent[TN_MAX_RANK];       /* ...of which it has so many indices */
    int64_t  start[TN_MAX_RANK], step[TN_MAX_RANK];     /* of each dimension of the input */
} tn_arrangement;

typedef struct tn_shape {
    uint32_t rank;
    int64_t  extent[TN_MAX_RANK];
} tn_shape;

typedef struct tn_joining {
    int32_t axis;               /* the inputs follow one another along this dimension... */
    bool    is_new;             /* ...which they do not have yet */
} tn_joining;

typedef struct tn_cast_task {
    tn_dtype               to;
    const tn_cast_options *options;
    const tn_cast_plan    *plan;        /* of these, or NULL: it is made */
    bool                   counts;      /* blocks say in their worker what was lost */
} tn_cast_task;

typedef struct tn_refused {
    bool saturated, flushed;    /* of the values of a tn_quantize_stats */
} tn_refused;

typedef struct tn_quantize_task {
    const tn_datatype  *datatype;       /* lives as long as the view */
    tn_datatype        *own;            /* freed by the step, also if it fails; or NULL */
    const tn_affine    *affine;         /* of an affine datatype, with its axis */
    tn_quantize_options options;
    float               scale;          /* TN_SCALE_GIVEN: of all */
    int32_t             zero;
    const char         *name;           /* of the codes, for messages */
    bool                fakes;          /* the result is what the codes stand for... */
    tn_cast_options     cast;           /* ...rounded so to the type of the input */
    bool                reports;        /* blocks say in their worker what was done to the values */
    tn_refused          refused;        /* what must not be done to any */
} tn_quantize_task;

typedef struct tn_dequantize_task {
    tn_dtype               to;
    tn_arithmetic          arithmetic;
    const tn_cast_options *cast;        /* from float32; may be NULL */
    bool                   counts;      /* as of a tn_cast_task; decode only */
} tn_dequantize_task;

/* The tensor of the file, and tn_view_range() of it (stored.c). */
const tn_tensor *tn_stored_tensor(const tn_view *v);
tn_status tn_stored_range(const tn_view *v, uint64_t first, size_t n, tn_worker *w, const uint8_t **bytes,
                          tn_error *err);

/* The same view of another tensor, like the one it was of (stored.c). */
void tn_stored_rebind(tn_view *stored, const tn_tensor *tensor);

/* ---- a stored part, read once and in order (stored.c) ---- */

/* The stored view that elementwise steps take their elements from, or NULL if there are other steps. */
tn_view *tn_view_streamed(tn_view *v);

/* Its data is read once, by ranges that follow one another: what can be checked meanwhile is not checked when
 * it is prepared.  Before that. */
void tn_stored_stream(tn_view *stored);

/* Whether threads may take ranges of it, each of its own, and join their checksums. */
bool tn_stored_splits(const tn_view *stored);

/* Begins elements [first, first + n): all unless it splits.  Ranges of the view are read in order by this
 * worker until the end, where there is the checksum of these bytes, or of all that is stored.
 * tn_stored_sum() counts elements of a part in memory, which need no reading. */
tn_status tn_stored_begin(const tn_view *stored, uint64_t first, uint64_t n, tn_worker *w, tn_error *err);
void      tn_stored_sum(const tn_view *stored, uint64_t first, uint64_t n, tn_worker *w);
tn_status tn_stored_end(const tn_view *stored, tn_worker *w, tn_digest *sum, tn_error *err);
void      tn_stored_rest(tn_worker *w);         /* gives up what was begun, if anything */

/* All bytes of a small part, in memory already or read into the view's arena (affine.c). */
tn_status tn_view_read_part(const tn_view *v, uint32_t part, const void **data, tn_error *err);

/* Scales and zero points of a tensor without a datatype, as float32 and int32, in the view's arena: from
 * memory or from the file; *zero is NULL if there are none (affine.c). */
tn_status tn_view_scales(const tn_view *v, const float **scale, const int32_t **zero, tn_error *err);

/* Whether values of a type have a sign; else TN_ERR_ARGUMENT.  Whether codes become that type without a cast
 * after it (values.c). */
tn_status tn_check_floats(tn_dtype dtype, tn_error *err);
bool      tn_is_whole_float(tn_dtype dtype);

/* The codes of a view that was quantized or requantized last (affine.c). */
const tn_affine *tn_quantize_affine(const tn_view *quantized);

/* Whether scales are found, and not given (affine.c). */
bool tn_quantize_searches(const tn_view *quantized);

/* Counts the scales and zero points that a view of the tensor's values will hold, for whoever has those of
 * many tensors at once.  TN_ERR_LIMIT: too much (values.c). */
tn_status tn_keep_scales(tn_kept *kept, const tn_tensor *tensor, tn_error *err);

/* The datatype of a view that was encoded last (encode.c). */
const tn_datatype *tn_encode_datatype(const tn_view *v);

/* Makes the tensor of the view one of codes, whose parts are to be made (encode.c). */
tn_status tn_declare_codes(tn_view *v, const tn_datatype *datatype, const tn_quantize_options *o,
                           tn_error *err);

/* How the codes that a view decodes can become those of another datatype by moving bits, or NULL
 * (repack.c). */
const struct tn_repacking *tn_repacking_of(const tn_view *decoded, const tn_datatype *to);

/* TN_ERR_UNSUPPORTED: the elements of the view have no places: it is sparse, or has codes of a datatype
 * (arrange.c). */
tn_status tn_view_check_places(const tn_view *v, tn_error *err);

/* The dimension of its input that dimension i of a reordered view was (arrange.c). */
uint32_t tn_reorder_source(const tn_view *v, uint32_t i);

/* Whether the view holds a copy of the tensor: better made again later than kept (form.c). */
bool tn_form_is_large(const tn_view *v);

/* TN_ERR_LOSS: the report of a block has values that are refused (affine.c). */
tn_status tn_check_refused(tn_refused refused, const tn_quantize_stats *report, tn_error *err);

/* Adds to the worker's report what a cast that counts loses of elements (cast.c). */
void tn_report_lost(const tn_cast_plan *plan, const void *out, const void *in, size_t n, uint64_t first,
                    tn_worker *w);

/* The same by the results alone, where it is known that nothing is lost.  False: they cannot tell. */
bool tn_report_kept(const tn_cast_plan *plan, const void *out, size_t n, uint64_t first, tn_worker *w);

/* Notes in an error of an element that its indices are not those of the file. */
tn_status tn_view_moved(const tn_view *v, tn_status status, tn_error *err);

/* TN_ERR_UNSUPPORTED: what the view is made of are another tool's packed codes, not numbers. */
tn_status tn_view_check_numbers(const tn_view *view, tn_error *err);

#endif
