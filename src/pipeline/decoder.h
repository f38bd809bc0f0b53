/* pipeline/decoder.h - the values of a scaled tensor of a datatype: any range of them, made
 * of all its parts at once. */
#ifndef TN_PIPELINE_DECODER_H
#define TN_PIPELINE_DECODER_H

#include "store/load.h"
#include "bytes/spill.h"
#include "quant/quantizer.h"

/* What values become: rounded so from float32. */
typedef struct tn_decode_as {
    tn_dtype        to;
    tn_cast_options options;
} tn_decode_as;

/* Any number of threads may have values made of one. */
typedef struct tn_decoder {
    tn_range_decoder        maker;          /* of elements of the type that values become */
    const tn_tensor *tensor;
    tn_datatype    *datatype;
    tn_scaled_plan  plan;
    tn_part_values  parts;
    tn_cast_plan    narrow;         /* from float32 to that type */
    tn_loaded       loaded;         /* where parts cannot be had in place */
    tn_spill        values;         /* all of them as float32, where a rotation lies across rows */
} tn_decoder;

/* Whether a tensor is scaled by a datatype. */
bool tn_has_decoder(const tn_tensor *tensor);

/* Whether there is a way to the values, with the reason where there is none; reads nothing.  *light: opening
 * costs little, so that each thread may do it for itself, for a range of its own. */
tn_status tn_decoder_check(const tn_tensor *tensor, bool *light, tn_error *err);

/* Parts that cannot be had in place are loaded, as tn_load() does it.  `as` may be NULL: values of the
 * tensor's own type. */
tn_status tn_decoder_open_as(const tn_loading *loading, const tn_decode_as *as, tn_decoder **made,
                             tn_error *err);

/* The same of a file's tensor, with its own type and the file's limits. */
tn_status tn_decoder_open(const tn_file *file, const tn_tensor *tensor, tn_decoder **made, tn_error *err);
void      tn_decoder_free(tn_decoder *made);      /* NULL is allowed */

#endif
