/* remake.h - what becomes of one tensor on its way into another file: its
 * element type, its scales, the order of its dimensions, its padding. */
#ifndef TN_REMAKE_H
#define TN_REMAKE_H

#include "arrange.h"
#include "transform/quantize.h"

#include <tenon/convert.h>

/* The rule of each kind that matches the tensor, or NULL. */
typedef struct tn_remake_rules {
    const tn_cast_rule   *cast;
    const tn_layout_rule *layout;
    const tn_pad_rule    *pad;
} tn_remake_rules;

/* Scales that are still to be found: after planning, before the data moves. */
typedef struct tn_unknown_scales {
    tn_quantize_options options;
    tn_dtype            codes;
    float              *scale;
    int32_t            *zero;       /* or NULL */
} tn_unknown_scales;

typedef struct tn_remade {
    tn_tensor         tensor;       /* as it is to be declared; parts with data are there already, others are streamed */
    const tn_change  *change;       /* of the elements of the first part, or NULL */
    const tn_arrange *arrange;      /* or NULL: they stay in order; has the change */
    tn_unknown_scales *unknown;     /* or NULL */
} tn_remade;

/* Decides what becomes of `source` under the rules; everything is in the arena.
 * Cast plans are kept in `plans` by source type, one table a cast rule (NULL
 * where there is none yet).  TN_ERR_ARGUMENT, TN_ERR_LOSS, TN_ERR_UNSUPPORTED
 * with the tensor's name: a rule that cannot be honoured. */
tn_status tn_remake(const tn_file *file, const tn_tensor *source, const tn_remake_rules *rules,
                    const tn_cast_plan **plans, tn_arena *arena, tn_remade *made, tn_error *err);

#endif
