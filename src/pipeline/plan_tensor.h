/* pipeline/plan_tensor.h - what becomes of one tensor on its way into another file: the rules that match it
 * as steps of a view. */
#ifndef TN_PIPELINE_PLAN_TENSOR_H
#define TN_PIPELINE_PLAN_TENSOR_H

#include "pipeline/steps/steps.h"
#include "pipeline/steps/table.h"

/* Where a tensor that comes out is from: a tensor of the file, or what rules make of others before its own
 * rules are looked at.  Small, for there may be very many. */
typedef struct tn_origin {
    const tn_tensor        *source;     /* of the file; then nothing else is set but the name */
    const tn_read_rule     *rule;
    const struct tn_origin *const *inputs;
    uint32_t                ninputs;    /* several: they are joined */
    uint32_t                piece;      /* which one, where the rule cuts its input */
    uint32_t                depth;
    uint32_t                sources;    /* of the file, each counted as often as it is read */
    const char             *name;
} tn_origin;

/* The rule of each kind that matches the tensor, or NULL. */
typedef struct tn_tensor_rules {
    const tn_origin      *origin;   /* or NULL: the tensor of the file */
    const tn_cast_rule   *cast;
    const tn_layout_rule *layout;
    const tn_pad_rule    *pad;
    const tn_form_rule   *form;
    const char           *name;     /* that it will have, if a rule has importance data; else NULL */
    const tn_cast_plan  **plans;    /* of the cast rule, by source type: made when they are needed */
} tn_tensor_rules;

/* What is the same for all tensors of a conversion. */
typedef struct tn_plan_place {
    tn_view_place view;             /* its walk is started if a rule has a form */
    tn_arena     *arena;            /* of cast plans */
    tn_dtype      index_type;       /* the only one that the output has for coordinates, or TN_UNKNOWN */
    bool          reports;          /* somebody wants to know what quantizing does */
    bool          counts;           /* and what casts lose */
    bool          names_steps;      /* and what the steps are */
} tn_plan_place;

/* A tensor that is being planned. */
typedef struct tn_planning {
    const tn_plan_place   *place;
    const tn_tensor_rules *rules;
    tn_view               *view;
    tn_tensor              base;        /* before its layout changes: what the axis of a cast is of */
    uint32_t               order[TN_MAX_RANK];      /* of that, since then */
    bool                   is_cast;     /* values of codes have the type that is asked for */
    bool                   joins;       /* the view is joined to others */
    bool                   shapes_only; /* nothing is read: tensors of the file are taken for dense ones */
    bool                   gives;       /* datatypes of rules become the view's */
} tn_planning;

/* For the table: what a rule adds to a view. */
tn_status tn_plan_add_slice(tn_planning *p, void *rule, tn_error *err);
tn_status tn_plan_add_transpose(tn_planning *p, void *rule, tn_error *err);
tn_status tn_plan_add_reshape(tn_planning *p, void *rule, tn_error *err);
tn_status tn_plan_add_number(tn_planning *p, void *rule, tn_error *err);
tn_status tn_plan_add_layout(tn_planning *p, void *rule, tn_error *err);
tn_status tn_plan_add_pad(tn_planning *p, void *rule, tn_error *err);
tn_status tn_plan_add_form(tn_planning *p, void *rule, tn_error *err);
tn_status tn_plan_add_cast(tn_planning *p, void *rule, tn_error *err);

/* Piece i of what a rule cuts, and how many there are (plan_shape.c). */
tn_status tn_plan_add_piece(tn_planning *p, const tn_join_rule *rule, uint32_t i, tn_error *err);
tn_status tn_plan_pieces(const tn_view *v, const tn_join_rule *rule, uint64_t *n, tn_error *err);

/* Adds what a rule says to the view, whatever came before; the view is unchanged after a failure, but may
 * have more steps. */
tn_status tn_plan_apply(tn_planning *p, const tn_read_rule *rule, tn_error *err);

/* The view of an origin, by the rules of the planning. */
tn_status tn_plan_origin(tn_planning *p, const tn_origin *origin, tn_arena *arena, tn_error *err);

/* A dense tensor without rules: nothing is to be planned. */
bool tn_plan_is_plain(const tn_tensor *source, const tn_tensor_rules *rules);

/* Makes the view of `source` under the rules.  A new form reads the data: how many entries there are must be
 * known.  TN_ERR_ARGUMENT, TN_ERR_LOSS, TN_ERR_UNSUPPORTED with the tensor's name: a rule that cannot be
 * honoured. */
tn_status tn_plan_view(const tn_plan_place *place, const tn_tensor *source, const tn_tensor_rules *rules,
                       tn_arena *arena, tn_view **view, tn_error *err);

/* The plan of one tensor, or of several that are alike but for their names and metadata. */
typedef struct tn_tensor_plan {
    tn_tensor_rules rules;
    size_t          first;          /* the number in the output of the one that it was made for */
    tn_tensor       tensor;         /* as it is to be declared; parts with data are written at the end */
    tn_view        *kept;           /* made for planning and kept until the data moves; or NULL */
    bool            is_made;        /* the first part is made by blocks; else it is streamed */
    bool            makes_parts;    /* and so are the others */
    bool            is_quantized;   /* blocks report what quantizing did, and somebody asks for it */
    bool            is_counted;     /* blocks report what a cast loses, and somebody asks for it */
    uint64_t        source_bytes;   /* decoded, of all that it is made of */
    uint64_t        searched;       /* bytes that a search for scales tells the walk of, unless one thread
                                     * makes it */
    bool            is_formed;      /* a step gives it another form */
    bool            is_new;         /* nothing of it can be tied to the source */
    const char     *datatype;       /* of a report... */
    double          value_bits;     /* ...and the bits of a value */
    const char     *steps;          /* their names, if somebody asks for them */
} tn_tensor_plan;

/* Describes a view for the plan, in the arena. */
tn_status tn_plan_describe(const tn_view *view, const tn_plan_place *place, tn_arena *arena,
                           tn_tensor_plan *plan, tn_error *err);

/* Tells somebody what quantizing did to a tensor. */
void tn_plan_tell(const tn_tensor *source, const tn_tensor_plan *plan, const char *name,
                  const tn_quantize_stats *stats, tn_quantize_report_fn tell, void *context);

#endif
