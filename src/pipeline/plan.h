/* pipeline/plan.h - the inside of tn_plan. */
#ifndef TN_PIPELINE_PLAN_H
#define TN_PIPELINE_PLAN_H

#include "base/sealed.h"
#include "pipeline/run.h"

#include <tenon/plan.h>

struct tn_plan {
    const tn_file      *in;
    tn_file            *other;      /* whose metadata the output gets; owned, or NULL */
    tn_file            *own;        /* the same, if the plan opened it; else NULL */
    const char         *in_path, *out_path;
    tn_convert_options  o;
    tn_create_options   create;
    tn_arena            arena;
    tn_arena            scratch;    /* of the view that is being planned */
    tn_arena            kept;       /* of views that are worth keeping until the data moves */
    tn_writer          *writer;     /* NULL once it is published */
    tn_walk             walk;       /* with the chosen tensors */
    tn_selection        selection;
    tn_tensor_plan    **plans;      /* what becomes of each; NULL: of most, nothing */
    tn_plan_place       place, quiet;
    struct { const tn_tensor *source; tn_tensor_plan *plan; } recent[16];  /* others may be like these */
    size_t              count;      /* of those chosen tensors that are planned */
    bool                is_shared;  /* processes with other working folders read it too: paths are absolute */
    tn_run              run;
};

/* tn_plan_make(); with a descriptor (not -1) the output goes there and `path` stands for it in messages. */
tn_status tn_plan_make_into(const tn_file *file, const char *path, int fd, const tn_convert_options *options,
                            tn_plan **plan, tn_error *err);

/* What a plan in a file is made anew from. */
typedef struct tn_plan_head {
    const char        *format, *tenon, *output, *container, *head;
    const char        *verb;        /* not NULL: it is no conversion, and the rest is not set */
    const char       **input;
    size_t             ninput;
    tn_open_options    open;
    tn_create_options  create;
    tn_convert_options o;           /* with all that follows */
    const char       **only, **rename;
    tn_rule           *rules;
    tn_format_option  *format_options;
    bool               is_shared;   /* set by the caller: see tn_plan */
    bool               replaces;    /* set by the caller: whatever the plan asks for */
} tn_plan_head;

/* Reads it from the JSON text of a plan; what it points to is in the arena and in the text. */
tn_status tn_plan_read_head(const void *text, size_t n, tn_arena *arena, tn_plan_head *head, tn_error *err);

/* Opens the input and makes the plan anew, which must be the text `saved` of the file `path`. */
tn_status tn_plan_make_again(const tn_plan_head *head, tn_text saved, const char *path, tn_plan **plan,
                             tn_error *err);

/* The file that makes the output valid: the only one, or that which names the others. */
const char *tn_plan_head_path(const tn_plan *plan);

/* The plan as text, and whether it is the one that was saved: TN_ERR_CHANGED names the first difference. */
tn_status tn_plan_write(const tn_plan *plan, tn_buf *text, tn_error *err);
tn_status tn_plan_compare(tn_text saved, tn_text made, tn_error *err);

/* What the plans of all work begin with, and what they say of a file that is read. */
void tn_plan_put_format(tn_buf *b);
void tn_plan_put_inputs(tn_buf *b, const tn_file *file, bool is_shared);

/* Makes piece i so that another process can place it, with an empty file for what has no place yet. */
tn_status tn_plan_run_apart(tn_plan *plan, size_t i, int part, tn_error *err);

/* Checks the options and copies them into the plan: plan_options.c. */
tn_status tn_plan_take_options(tn_plan *plan, const tn_convert_options *options, tn_error *err);

/* What finishing will tell, but for the size of the output. */
void tn_plan_result(const tn_plan *plan, tn_convert_result *result);

/* Bytes of a piece, about; tests make it small. */
extern TN_RELRO uint64_t tn_piece_bytes;

/* The error that there is no piece i. */
tn_status tn_fail_piece(tn_error *err, size_t i, size_t count);

/* Makes pieces [first, first + n) as one list. */
tn_status tn_plan_run_some(tn_plan *plan, size_t first, size_t n, tn_error *err);

#endif
