/* cli/commands/export_c.c - writes the tensors of a file as C source or as a flat image, for firmware. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/table.h"
#include "ui/text.h"

#include <stdio.h>

typedef struct job {
    progress    bar;            /* first: progress_step() takes the context as its own */
    const opts *o;
    table       plan;
} job;

/* ---- tensors ---- */

static bool is_fixed_point(const tn_export_tensor *x) { return x->type[0] == 'f' && x->type[1] == 'x'; }

static void json_row(const tn_export_tensor *x)
{
    json_open('{');
    json_text_field("name", x->source->name);
    json_text_field("identifier", x->identifier);
    json_text_field("type", x->type);
    json_shape_field("shape", x->rank, x->shape);
    if (is_fixed_point(x)) {
        json_key("frac_bits");
        json_int(x->frac_bits);
    }
    if (x->axis >= 0) {
        json_key("axis");
        json_int(x->axis);
    }
    json_uint_field("offset", x->offset);
    json_uint_field("data_bytes", x->data_bytes);
    json_uint_field("parameter_bytes", x->parameter_bytes);
    json_uint_field("structure_bytes", x->structure_bytes);
    json_close('}');
}

/* "fx16 frac 12", "sa8 axis 0" */
static void type_cell(table *t, const tn_export_tensor *x)
{
    char text[60];
    if (is_fixed_point(x))
        snprintf(text, sizeof text, "%s frac %d", x->type, (int)x->frac_bits);
    else if (x->axis >= 0)
        snprintf(text, sizeof text, "%s axis %d", x->type, (int)x->axis);
    else
        snprintf(text, sizeof text, "%s", x->type);
    table_cell(t, text);
}

static void row(void *context, const tn_export_tensor *x)
{
    job *j = context;
    if (j->o->json) {
        json_row(x);
        return;
    }
    table_name(&j->plan, x->source->name);
    table_cell(&j->plan, x->identifier);
    type_cell(&j->plan, x);
    table_cell(&j->plan, shape_of(x->rank, x->shape).s);
    if (j->o->binary)
        table_number(&j->plan, x->offset);
    table_number(&j->plan, x->data_bytes);
    table_number(&j->plan, x->parameter_bytes);
    table_number(&j->plan, x->structure_bytes);
}

static void rows_begin(job *j)
{
    static const char *const in_source[] = { "name", "identifier", "type", "shape", "data", "parameters",
                                             "structure", NULL };
    static const char *const in_image[] = { "name", "identifier", "type", "shape", "offset", "data",
                                            "parameters", "structure", NULL };
    if (j->o->json) {
        json_key("tensors");
        json_open('[');
    } else {
        table_begin(&j->plan, j->o->binary ? in_image : in_source, 0xf0);
    }
}

static void rows_end(job *j, bool good)
{
    if (j->o->json)
        json_close(']');
    else if (good)
        table_end(&j->plan);
    else
        table_drop(&j->plan);
}

/* ---- sections ---- */

/* The bytes of one section. */
typedef struct section { const char *where, *what; uint64_t bytes; } section;

static size_t sections_of(const opts *o, const tn_export_result *r, section s[4])
{
    const char *rest = o->binary ? "image" : ".rodata";
    const char *data = !o->binary && o->section ? o->section : rest;
    s[0] = (section){ data, "data", r->data_bytes };
    s[1] = (section){ rest, "parameters", r->parameter_bytes };
    s[2] = (section){ o->binary ? "memory" : ".rodata", "structures", r->structure_bytes };
    s[3] = (section){ ".rodata", "names", r->name_bytes };
    return o->binary ? 3 : 4;
}

static uint64_t total_of(const tn_export_result *r)
{
    return r->data_bytes + r->parameter_bytes + r->structure_bytes + r->name_bytes;
}

static void json_sections(const opts *o, const tn_export_result *r)
{
    section s[4];
    size_t n = sections_of(o, r, s);
    json_key("sections");
    json_open('[');
    for (size_t i = 0; i < n; i++) {
        json_open('{');
        json_text_field("section", s[i].where);
        json_text_field("what", s[i].what);
        json_uint_field("bytes", s[i].bytes);
        json_close('}');
    }
    json_close(']');
    json_key("largest");
    json_open('{');
    json_text_field("name", r->largest->name);
    json_uint_field("bytes", r->largest_bytes);
    json_close('}');
    json_uint_field("total", total_of(r));
}

static void out_sections(const opts *o, const tn_export_result *r)
{
    static const char *const headings[] = { "section", "what", "bytes", NULL };
    section s[4];
    table t = { 0 };
    size_t n = sections_of(o, r, s);
    table_begin(&t, headings, 4);
    for (size_t i = 0; i < n; i++) {
        table_cell(&t, escaped(s[i].where));
        table_cell(&t, s[i].what);
        table_number(&t, s[i].bytes);
    }
    table_cell(&t, "all");
    table_cell(&t, counted(r->tensors, "tensor").s);
    table_number(&t, total_of(r));
    out_text("\n");
    table_end(&t);
    out("\nThe largest is \"%s\" with %s bytes of data.  Structures are those of a 32-bit processor.\n",
        escaped(r->largest->name), grouped(r->largest_bytes).s);
}

/* ---- the run ---- */

static void say_result(const opts *o, const tn_export_result *r)
{
    if (o->quiet || !o->out)
        return;
    fprintf(stderr, "%s/%s.%s and .h: %s, %s of data\n", escaped(o->out), r->name, o->binary ? "bin" : "c",
            counted(r->tensors, "tensor").s, human_size(r->data_bytes).s);
}

static void json_result(const opts *o, tn_status status, const tn_export_result *r, const tn_error *err)
{
    static const char *const source[] = { ".c", ".h" }, *const image[] = { ".bin", ".h" };
    json_error_field(NULL, status == TN_OK ? NULL : err);
    if (status == TN_OK)
        json_sections(o, r);
    json_key("files");
    json_open('[');
    for (int i = 0; status == TN_OK && o->out && i < 2; i++) {
        char name[sizeof r->name + 8];
        snprintf(name, sizeof name, "%s%s", r->name, (o->binary ? image : source)[i]);
        json_text(name);
    }
    json_close(']');
    json_close('}');
    json_end();
}

static int export_file(const opts *o, const tn_file *file)
{
    job j = { .o = o };
    bool rows = o->plan || o->json;
    tn_export_options options = {
        .size = sizeof options, .mli = o->mli, .name = o->name, .section = o->section, .align = o->align,
        .binary = o->binary,
        .replace = o->force, .only = o->only.items, .nonly = o->only.count, .report = rows ? row : NULL,
        .progress = progress_step,
        .context = &j, .note = progress_note,
    };
    tn_export_result result = { 0 };
    tn_error err;
    progress_begin(&j.bar, o->quiet);
    if (o->json) {
        json_open('{');
        json_text_field("folder", o->out);
    }
    if (rows)
        rows_begin(&j);
    tn_status status = tn_export_c(file, o->out, &options, &result, &err);
    progress_end(&j.bar);
    if (rows)
        rows_end(&j, status == TN_OK);
    if (o->json)
        json_result(o, status, &result, &err);
    else if (status == TN_OK && o->plan)
        out_sections(o, &result);
    if (status == TN_OK && !o->json)
        say_result(o, &result);
    if (status == TN_ERR_ARGUMENT)
        return usage_error("export-c", "%s", error_line(&err));
    return status == TN_OK ? EXIT_DONE : say_error(NULL, &err);
}

static int run(const opts *o)
{
    tn_file *file = NULL;
    if (!o->out && !o->plan)
        return usage_error("export-c", "expected -o DIR to write into, or --plan");
    if (o->section && o->binary)
        return usage_error("export-c", "--section applies to C source, which --binary does not write");
    signals_catch();
    int code = open_input(o, o->files[0], &file);
    if (code == EXIT_DONE)
        code = export_file(o, file);
    tn_close(file);
    return code;
}

const command cmd_export_c = {
    .name = "export-c",
    .operands = "FILE",
    .summary = "Write tensors as C arrays and MLI structures, for firmware.",
    .about = "Writes NAME.c and NAME.h, or with --binary NAME.bin and NAME.h, to the folder\n"
             "PATH.  The structures are those of <tenon/mli.h>, or with TENON_USE_EMBARC those\n"
             "of embARC.  \"tenon convert --cast fx16\" makes tensors that have one.",
    .details = "int8 and int16 codes with one power-of-two scale and no zero points become fx8\n"
               "and fx16; other int8 and int32 codes become sa8 and sa32 (MLI 1.1 and 2.0);\n"
               "float32 becomes fp32 (2.0).  Scales must be exact as the integers of that\n"
               "version.  Other tensors are refused before anything is written.  A scalar\n"
               "becomes a vector of one element; padding is left out.\n\n"
               "--align takes a power of two from 4 (the default, which MLI's kernels require)\n"
               "to 4096.  --plan counts bytes as on a 32-bit processor.  In identifiers,\n"
               "characters other than letters and digits become underscores; a number is\n"
               "appended to duplicates.  They do not depend on --only.\n\n"
               "PATH is created if it is missing; its parent must exist.  Both files are written\n"
               "or neither is, and the same input gives the same bytes.  If the process is\n"
               "killed while it replaces old files, one may be new and one old: then NAME.c does\n"
               "not compile, and the checksum of NAME.bin is not that of NAME.h.",
    .example = "  $ tenon export-c fixed.zt -o firmware --name model --section .mli_data",
    .min_files = 1,
    .max_files = 1,
    .accepts = OPTIONS(OPT_OUT, OPT_MLI, OPT_SECTION, OPT_ALIGN, OPT_NAME, OPT_BINARY, OPT_PLAN, OPTS_CHOICE,
                       OPT_FORCE, OPT_MEMORY, OPT_MAX_BYTES, OPT_RAW, OPT_FROM, OPT_IO, OPT_JSON, OPT_QUIET),
    .elsewhere = OPTIONS(OPT_EXCLUDE, OPTS_INPUT, OPT_RAW),
    .topics = "rules|input",
    .run = run,
};
