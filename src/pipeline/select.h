/* pipeline/select.h - which tensors come out of a conversion, under which names and by which rules. */
#ifndef TN_PIPELINE_SELECT_H
#define TN_PIPELINE_SELECT_H

#include "pipeline/plan_tensor.h"
#include "pipeline/steps/table.h"
#include "store/format.h"

struct tn_origin_list;

/* Begin with tn_select(), end with tn_selection_end(), also after a failure. */
typedef struct tn_selection {
    const tn_file            *file;
    const tn_convert_options *options;
    tn_walk                  *walk;     /* with the (first) source of each tensor that comes out */
    tn_arena                 *arena;
    const char              **names;    /* new ones; NULL: nothing is renamed */
    const tn_origin         **origins;  /* of each tensor that comes out; NULL: all are those of the file */
    tn_read_rule             *rules;
    size_t                    nrules;
    bool                     *used;     /* which of them matched something */
    tn_renames                renames;
    struct tn_mapping        *mapping;  /* of options->map, or NULL */
    const tn_format          *to;       /* of the output */
    const tn_file            *other;    /* whose metadata may say what the input does not; or NULL */
    tn_cast_rule              defaults; /* of casts */
    bool                      by_names; /* a cast depends on the name of its tensor */
    tn_read_rule             *values;   /* casts to the types of the values of scaled tensors, or NULL */
} tn_selection;

/* Checks the rules and chooses the tensors of the walk.  All that is given lives as long as the selection. */
tn_status tn_select(tn_selection *s, const tn_file *file, const tn_convert_options *options, tn_walk *walk,
                    tn_arena *arena, tn_error *err);        /* `to` and `other` are set before, or NULL */

void tn_selection_end(tn_selection *s);

/* What comes of the chosen tensors by rules that are for their names in the input (select_origins.c). */
tn_status tn_select_origins(tn_selection *s, tn_error *err);

/* What comes of the list of all tensors by options->map (select_map.c). */
tn_status tn_select_map(tn_selection *s, struct tn_origin_list *list, tn_error *err);
void      tn_mapping_free(struct tn_mapping *mapping);

/* Origins in the order of the output, and rules applied to them (select_origins.c). */
typedef struct tn_origin_list {
    const tn_origin **items;
    size_t            count, cap;
} tn_origin_list;

tn_status tn_origin_apply(tn_selection *s, const tn_read_rule *rule, const tn_origin **o, tn_error *err);
tn_status tn_origins_apply(tn_selection *s, const tn_read_rule *rule, tn_origin_list *list, tn_error *err);

/* The pattern with its stars replaced; NULL when memory is out. */
const char *tn_put_stars(tn_arena *arena, tn_text pattern, const tn_text *stars);

/* Name and rules of tensor i; the threads of the walk are started if a rule needs them. */
tn_status tn_select_rules(tn_selection *s, size_t i, tn_tensor_rules *rules, tn_error *err);

/* The name of tensor i, once its rules were asked for. */
const char *tn_selected_name(const tn_selection *s, size_t i);

/* The tensors of the file that tensor i is made of, in the order in which they are joined; the caller frees
 * the list.  NULL: no memory. */
const tn_tensor **tn_selected_sources(const tn_selection *s, size_t i, size_t *n);

/* Gives the tensor that comes out its metadata, and tells its properties: what all that it is made of have
 * (select_meta.c).  TN_ERR_LOSS: one has something else, and metadata may not be dropped. */
tn_status tn_select_meta(const tn_selection *s, size_t i, tn_tensor *made, const tn_properties **properties,
                         tn_error *err);

/* The metadata of the new file: that of `other`, and what the input has besides (select_meta.c). */
tn_status tn_select_file_meta(const tn_selection *s, struct tn_writer *writer, tn_error *err);

/* TN_ERR_ARGUMENT: a rule that was never used. */
tn_status tn_select_check(const tn_selection *s, tn_error *err);

#endif
