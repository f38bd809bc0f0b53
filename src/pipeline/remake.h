/* pipeline/remake.h - what becomes of one tensor on its way into another file: its
 * element type, its scales, the order of its dimensions, its padding. */
#ifndef TN_PIPELINE_REMAKE_H
#define TN_PIPELINE_REMAKE_H

#include "pipeline/arrange.h"
#include "pipeline/reform.h"
#include "pipeline/rescale.h"
#include "pipeline/walk.h"
#include "quant/affine.h"

#include <tenon/convert.h>

/* The rule of each kind that matches the tensor, or NULL. */
typedef struct tn_remake_rules {
    const tn_cast_rule   *cast;
    const tn_layout_rule *layout;
    const tn_pad_rule    *pad;
    const tn_form_rule   *form;
} tn_remake_rules;

/* What is the same for all tensors of a conversion. */
typedef struct tn_remake_place {
    const tn_file *file;
    const char    *beside;          /* the output's path */
    tn_walk       *walk;            /* started where a rule has a form */
    tn_arena      *arena;
    uint64_t       max_bytes;       /* of a tensor in another form or by a datatype; 0: see tn_loading and
                                     * tn_sparse_options */
    tn_dtype       index_type;      /* the only one that the output has for coordinates, or TN_UNKNOWN */
    bool           reports;         /* somebody wants to know what quantizing does */
} tn_remake_place;

/* Scales that are still to be found: after planning, before the data moves. */
typedef struct tn_unknown_scales {
    tn_affine           affine;     /* with its axis along the source */
    tn_quantize_options options;
    float              *scale;
    int32_t            *zero;       /* or NULL */
} tn_unknown_scales;

typedef struct tn_remade {
    tn_remake_rules   rules;
    tn_tensor         tensor;       /* as it is to be declared; parts with data are there already, others are
                                     * streamed */
    const tn_change  *change;       /* of the elements of the first part, or NULL */
    const tn_change  *index_change; /* of the indices of a coo tensor, or NULL */
    const tn_arrange *arrange;      /* or NULL: they stay in order; has the change */
    tn_unknown_scales *unknown;     /* or NULL */
    const tn_form_task *reform;   /* or NULL: its parts are those of the source, or made of them one by
                                     * one */
    const tn_rescale_task *rescale; /* or NULL; its datatype to be freed by the caller where it is its own */
    const tn_rescale_task *report;  /* or NULL: a look at what codes that are made one by one do to values;
                                     * its datatype as above */
    tn_form_conversion *reformed;   /* begun for planning and worth keeping, or NULL: to be freed by the
                                     * caller */
} tn_remade;

/* Decides what becomes of `source` under the rules; everything is in the arena. Cast plans are kept in
 * `plans` by source type, one table a cast rule (NULL where there is none yet).  For a new form the data is
 * read: how many entries there are must be known; and so it is for a power of two that codes are to fit.
 * TN_ERR_ARGUMENT, TN_ERR_LOSS, TN_ERR_UNSUPPORTED with the tensor's name: a rule that cannot be honoured.
 * made->reformed and made->rescale are to be freed after a failure too. */
tn_status tn_remake(const tn_remake_place *place, const tn_tensor *source, const tn_remake_rules *rules,
                    const tn_cast_plan **plans, tn_remade *made, tn_error *err);

#endif
