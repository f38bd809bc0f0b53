/* cli/commands/show.c - the values of one tensor. */
#include "ui/array_text.h"
#include "ui/json.h"
#include "ui/open_file.h"
#include "ui/text.h"

#include <stdio.h>
#include <unistd.h>

#define THRESHOLD 1000          /* more values than this are summarised */

static bool has_datatype(const tn_tensor *tensor)
{
    return tensor->scaling && tensor->scaling->datatype;
}

static void out_datatype(const tn_tensor *tensor)
{
    const tn_scaling *s = tensor->scaling;
    char rotation[64] = "";
    if (s->rotation.size)
        tn_rotation_format(rotation, sizeof rotation, &s->rotation);
    out("codes of %s values: %s%s%s%s\n", type_of(tensor->dtype, NULL).s, escaped(s->datatype),
        stored_as(s).s, *rotation ? ", rotated by " : "", rotation);
}

/* How values follow from the parts of a scaled tensor. */
static void out_scaling(const tn_tensor *tensor)
{
    if (has_datatype(tensor)) {
        out_datatype(tensor);
        return;
    }
    out("codes of %s values: %s * scale", type_of(tensor->dtype, NULL).s,
        tensor->nparts > 2 ? "(data - zero)" : "data");
    if (tensor->scaling->axis >= 0)
        out(", a scale for each index of dimension %d", tensor->scaling->axis);
    out_text("\n");
}

static void out_name(const tn_tensor *tensor)
{
    out("%s%s%s  %s %s", style_on_stdout(STYLE_BOLD), escaped(tensor->name), style_on_stdout(STYLE_PLAIN),
        tensor_type(tensor).s, shape_of(tensor->rank, tensor->shape).s);
    if (tensor->layout)
        out(" %s", escaped(tensor->layout));
    out_text("\n");
    if (tensor->scaling)
        out_scaling(tensor);
}

static void out_slice(const opts *o, const window *w)
{
    if (o->slice)
        out("[%s] is %s\n", escaped(o->slice), shape_of(w->rank, w->shape).s);
}

static void out_heading(const opts *o, const tn_tensor *tensor, const tn_part *part, const window *w)
{
    if (part == tensor->parts && !has_datatype(tensor))
        out_name(tensor);
    if (tensor->nparts > 1)
        out("%s  %s %s\n", escaped(part->role), type_of(part->array.dtype, part).s,
            shape_of(part->array.rank, part->array.shape).s);
    out_slice(o, w);
}

static void json_scaling(const tn_tensor *tensor)
{
    if (!tensor->scaling)
        return;
    json_text_field("value_dtype", tn_dtype_get(tensor->dtype)->name);
    if (has_datatype(tensor)) {
        json_text_field("datatype", tensor->scaling->datatype);
        return;
    }
    json_key("axis");
    if (tensor->scaling->axis >= 0)
        json_int(tensor->scaling->axis);
    else
        json_word("null");
}

static void json_name(const tn_tensor *tensor)
{
    json_open('{');
    json_text_field("name", tensor->name);
    if (tensor->nparts > 1 || has_datatype(tensor)) {
        json_text_field("form", tn_tensor_form_name(tensor));
        json_scaling(tensor);
    }
}

static void json_heading(const tn_tensor *tensor, const tn_part *part, const window *w)
{
    bool several = tensor->nparts > 1 || has_datatype(tensor);
    if (part == tensor->parts && !has_datatype(tensor))
        json_name(tensor);
    if (part == tensor->parts && several) {
        json_key("parts");
        json_open('[');
    }
    if (several) {
        json_open('{');
        json_text_field("role", part->role);
    }
    json_text_field("dtype", tn_dtype_get(part->array.dtype)->name);
    json_shape_field("shape", w->rank, w->shape);
    json_key("values");
}

/* A window of values or of a part's elements.  Nothing is printed before it is known to be readable. */
static int show_elements(const opts *o, elements *e, const tn_tensor *tensor, const tn_part *part,
                         const window *w)
{
    tn_error err;
    tn_value first;
    tn_status status = w->count > 0 ? elements_get(e, w->base, &first, &err) : TN_OK;
    if (status == TN_OK && o->json) {
        if (part) {
            json_heading(tensor, part, w);
        } else {
            json_name(tensor);
            json_shape_field("shape", w->rank, w->shape);
            json_key("values");
        }
        status = array_json(e, w, &err);
    } else if (status == TN_OK) {
        if (part) {
            out_heading(o, tensor, part, w);
        } else {
            out_name(tensor);
            out_slice(o, w);
        }
        status = array_print(e, w, !o->full && w->count > THRESHOLD, &err);
    }
    elements_close(e);
    return status == TN_OK ? EXIT_DONE : say_error(o->files[0], &err);
}

/* One part, or with none the values. */
static int show_part(const opts *o, const tn_file *file, const tn_tensor *tensor, const tn_part *part)
{
    const tn_array values = { .dtype = tensor->dtype, .rank = tensor->rank, .shape = tensor->shape };
    tn_error err;
    elements e;
    window w;
    char why[200];
    if (!window_make(&w, part ? &part->array : &values, o->slice, why, sizeof why))
        return usage_error(o->command, "--slice \"%s\": %s", escaped(o->slice), why);
    bool apart = part && stored_info(tensor, part).stride &&
                 stored_info(tensor, part).encoding != TN_ENCODING_RAW;
    /* all of it is to be decoded */
    if (apart && tn_check_decoded(&tensor, 1, o->max_bytes, &err) != TN_OK)
        return say_error(o->files[0], &err);
    tn_status status = elements_open(&e, file, tensor, part, &err);
    return status == TN_OK ? show_elements(o, &e, tensor, part, &w) : say_error(o->files[0], &err);
}

static int show_parts(const opts *o, const tn_file *file, const tn_tensor *tensor)
{
    bool several = tensor->nparts > 1 || has_datatype(tensor);
    for (uint32_t i = 0; i < tensor->nparts; i++) {
        int code = show_part(o, file, tensor, &tensor->parts[i]);
        if (code != EXIT_DONE)
            return code;
        if (o->json && several)
            json_close('}');
    }
    if (o->json && several)
        json_close(']');
    return EXIT_DONE;
}

/* Codes of a datatype are packed: its values come first.  A slice is of values alone. */
int show_tensor(const opts *o, const tn_file *file, const tn_tensor *tensor)
{
    bool sliced = o->slice && (tensor->nparts > 1 || has_datatype(tensor));
    int code = EXIT_DONE;
    if (sliced || has_datatype(tensor))
        code = show_part(o, file, tensor, NULL);
    if (code == EXIT_DONE && !sliced)
        code = show_parts(o, file, tensor);
    if (code != EXIT_DONE || !o->json)
        return code;
    json_close('}');
    json_end();
    return EXIT_DONE;
}

static int run(const opts *o)
{
    const char *path = o->files[0];
    tn_file *file;
    if (access(path, F_OK) != 0 && access(o->files[1], F_OK) == 0)
        return usage_error("show", "expected FILE NAME, but \"%s\" is no file and \"%s\" is", escaped(path),
                           escaped(o->files[1]));
    int code = open_input(o, path, &file);
    if (code != EXIT_DONE)
        return code;
    const tn_tensor *tensor = find_tensor(path, file, o->files[1]);
    say_codes(path, file, tensor);
    code = tensor ? show_tensor(o, file, tensor) : EXIT_BAD;
    tn_close(file);
    return code;
}

const command cmd_show = {
    .name = "show",
    .operands = "FILE NAME",
    .summary = "Print the values of a tensor.",
    .about = "A tensor of more than 1000 values is abbreviated to the first and last three\n"
             "along each dimension, unless --full or --json is given.  Only printed values are\n"
             "read.\n\n"
             "Scaled tensors are printed as codes, scales and zero points, those of a datatype\n"
             "also as values.  Sparse tensors are printed as entries: values, indices and row\n"
             "pointers.  With --slice the values of any tensor are printed, dense.",
    .details = "A slice has one item per dimension, separated by commas, as in Python: an index,\n"
               "which removes the dimension, or START:STOP:STEP, each of which may be left out.\n"
               "Negative indices count from the end; ... stands for all missing dimensions.",
    .example = "  $ tenon show model.zt h.0.attn.weight --slice 0:4,:,-1",
    .min_files = 2,
    .max_files = 2,
    .accepts = OPTIONS(OPT_SLICE, OPT_FULL, OPT_MEMORY, OPT_MAX_BYTES, OPT_JSON, OPT_FROM, OPT_IO),
    .elsewhere = OPTIONS(OPTS_INPUT),
    .topics = "input",
    .run = run,
};
