/* cli/cmd_show.c - the values of one tensor. */
#include "array_text.h"
#include "json.h"
#include "opts.h"
#include "text.h"

#include <stdio.h>

#define THRESHOLD 1000          /* more values than this are summarised */

/* What the parts of a scaled tensor mean. */
static void out_scaling(const tn_tensor *tensor)
{
    out("codes of %s values: %s * scale", type_of(tensor->dtype, NULL).s, tensor->nparts > 2 ? "(data - zero)" : "data");
    if (tensor->scaling->axis >= 0)
        out(", a scale for each index of dimension %d", tensor->scaling->axis);
    out_text("\n");
}

static void out_heading(const opts *o, const tn_tensor *tensor, const tn_part *part, const window *w)
{
    if (part == tensor->parts) {
        out("%s%s%s  %s %s", style_on_stdout(STYLE_BOLD), escaped(tensor->name), style_on_stdout(STYLE_PLAIN),
            tensor_type(tensor).s, shape_of(tensor->rank, tensor->shape).s);
        out("%s%s\n", tensor->layout ? " " : "", tensor->layout ? escaped(tensor->layout) : "");
        if (tensor->scaling)
            out_scaling(tensor);
    }
    if (tensor->nparts > 1)
        out("%s  %s %s\n", escaped(part->role), type_of(part->array.dtype, part).s,
            shape_of(part->array.rank, part->array.shape).s);
    if (o->slice)
        out("[%s] is %s\n", escaped(o->slice), shape_of(w->rank, w->shape).s);
}

static void json_scaling(const tn_tensor *tensor)
{
    if (!tensor->scaling)
        return;
    json_text_field("value_dtype", tn_dtype_get(tensor->dtype)->name);
    json_key("axis");
    if (tensor->scaling->axis >= 0)
        json_int(tensor->scaling->axis);
    else
        json_word("null");
}

static void json_heading(const tn_tensor *tensor, const tn_part *part, const window *w)
{
    if (part == tensor->parts) {
        json_open('{');
        json_text_field("name", tensor->name);
    }
    if (part == tensor->parts && tensor->nparts > 1) {
        json_text_field("form", tensor->form);
        json_scaling(tensor);
        json_key("parts");
        json_open('[');
    }
    if (tensor->nparts > 1) {
        json_open('{');
        json_text_field("role", part->role);
    }
    json_text_field("dtype", tn_dtype_get(part->array.dtype)->name);
    json_shape_field("shape", w->rank, w->shape);
    json_key("values");
}

/* One part.  Nothing is printed before it is known to be readable. */
static int show_part(const opts *o, const tn_file *file, const tn_tensor *tensor, const tn_part *part)
{
    tn_error err;
    elements e;
    window w;
    char why[200];
    if (!window_make(&w, &part->array, o->slice, why, sizeof why))
        return usage_error("show", "--slice \"%s\": %s", escaped(o->slice), why);
    if (elements_open(&e, file, part, &err) != TN_OK)
        return say_error(o->files[0], &err);
    tn_value first;
    tn_status status = w.count > 0 ? elements_get(&e, w.base, &first, &err) : TN_OK;
    if (status == TN_OK && o->json) {
        json_heading(tensor, part, &w);
        status = array_json(&e, &w, &err);
    } else if (status == TN_OK) {
        out_heading(o, tensor, part, &w);
        status = array_print(&e, &w, !o->full && w.count > THRESHOLD, &err);
    }
    elements_close(&e);
    return status == TN_OK ? EXIT_DONE : say_error(o->files[0], &err);
}

static int show(const opts *o, const tn_file *file, const tn_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->nparts; i++) {
        int code = show_part(o, file, tensor, &tensor->parts[i]);
        if (code != EXIT_DONE)
            return code;
        if (o->json && tensor->nparts > 1)
            json_close('}');
    }
    if (!o->json)
        return EXIT_DONE;
    if (tensor->nparts > 1)
        json_close(']');
    json_close('}');
    json_end();
    return EXIT_DONE;
}

static int run(const opts *o)
{
    const char *path = o->files[0], *name = o->files[1];
    tn_file *file;
    int code = open_input(o, path, &file);
    if (code != EXIT_DONE)
        return code;
    const tn_tensor *tensor = tn_file_find(file, name);
    if (!tensor) {
        say("%s: no tensor \"%s\"", escaped(path), escaped(name));
        code = EXIT_BAD;
    } else if (o->slice && tensor->nparts > 1) {
        code = usage_error("show", "--slice needs a tensor of one part, but \"%s\" has %u", escaped(name), tensor->nparts);
    } else {
        code = show(o, file, tensor);
    }
    tn_close(file);
    return code;
}

const command cmd_show = {
    .name = "show",
    .operands = "FILE NAME",
    .summary = "Shows the values of a tensor.",
    .about = "Of more than 1000 values only the first and last three along each dimension are\n"
             "shown, unless --full or --json is given.  Only what is shown is read.\n\n"
             "Of a scaled tensor the parts are shown: codes, scales and zero points.  A cast to\n"
             "a float type (convert --cast) makes values of them.  Of a sparse tensor the\n"
             "entries are shown: values, indices and row pointers (convert --form dense).",
    .example = "  $ tenon show model.zt h.0.attn.weight --slice 0:4,:,-1",
    .min_files = 2,
    .max_files = 2,
    .accepts = OPT(SLICE) | OPT(FULL) | OPT(JSON) | OPT(FROM) | OPT(IO),
    .run = run,
};
