/* cli/commands/compare_types.c - what several datatypes would do to the tensors of a file. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/rating.h"
#include "ui/together.h"
#include "ui/type_list.h"

#include <stdlib.h>
#include <string.h>

/* One datatype and what it did to all tensors. */
typedef struct candidate {
    const type_item *type;
    rating       total;
    uint64_t     tensors;
    char        *worst;         /* the name of the tensor with the least SQNR, or NULL */
    double       worst_sqnr;
} candidate;

typedef struct contest {
    progress    bar;            /* first: progress_step() takes the context as its own */
    const opts *o;
    type_list   types;
    candidate  *candidates;
    size_t      count, next;    /* next: the candidate of the next report */
    bool        fits;           /* a datatype fits the tensor being reported */
    uint64_t    tensors, left_out;      /* left_out: by all datatypes */
} contest;

/* ---- reports ---- */

static void add_report(candidate *one, const tn_quantize_report *q)
{
    double sqnr = rating_sqnr(q->report);
    rating_add(&one->total, q);
    one->tensors++;
    if (!q->report->values || (one->worst && !(sqnr < one->worst_sqnr)))
        return;
    free(one->worst);
    one->worst = must_allocate(strlen(q->name) + 1, 1);
    strcpy(one->worst, q->name);
    one->worst_sqnr = sqnr;
}

/* Called for each tensor, and for each of its datatypes in order. */
static void take_report(void *context, const tn_quantize_report *q)
{
    contest *c = context;
    if (q->report)
        add_report(&c->candidates[c->next], q);
    c->fits |= q->report != NULL;
    c->next = (c->next + 1) % c->count;
    if (c->next)
        return;
    c->tensors += c->fits;
    c->left_out += !c->fits;
    c->fits = false;
}

static void out_results(const contest *c)
{
    static const char *const headings[] = { "type", RATING_HEADINGS, "worst tensor", "its SQNR", NULL };
    table t;
    table_begin(&t, headings, 0xbe);
    for (size_t i = 0; i < c->count; i++) {
        const candidate *one = &c->candidates[i];
        table_name(&t, one->type->text);
        rating_cells(&t, &one->total);
        table_name(&t, one->worst ? one->worst : "-");
        table_cell(&t, one->worst ? sqnr_text(one->worst_sqnr).s : "-");
        if (one->tensors < c->tensors)
            table_note(&t, "without %s, whose shape it does not fit",
                       counted(c->tensors - one->tensors, "tensor").s);
    }
    table_end(&t);
    out("%s rated", counted(c->tensors, "tensor").s);
    if (c->left_out)
        out(", %s left out: not floats, codes of another tool, or of a shape that fits none",
            grouped(c->left_out).s);
    out_text("\n");
}

static void json_candidate(const contest *c, const candidate *one)
{
    json_open('{');
    json_text_field("type", one->type->text);
    json_text_field("datatype", tn_datatype_text(one->type->datatype));
    rating_fields(&one->total);
    json_uint_field("tensors", one->tensors);
    json_uint_field("left_out", c->tensors - one->tensors);
    json_text_field("worst", one->worst);
    json_key("worst_sqnr");
    if (one->worst)
        json_double(one->worst_sqnr);
    else
        json_word("null");
    json_close('}');
}

static void json_results(const contest *c, const tn_error *err)
{
    json_open('{');
    json_text_field("file", c->o->files[0]);
    json_error_field(c->o->files[0], err);
    json_key("types");
    json_open('[');
    for (size_t i = 0; i < c->count && !err; i++)
        json_candidate(c, &c->candidates[i]);
    json_close(']');
    json_uint_field("tensors", c->tensors);
    json_uint_field("left_out", c->left_out);
    json_close('}');
    json_end();
}

/* ---- the run ---- */

static int rate(contest *c, const tn_file *file)
{
    const opts *o = c->o;
    char *defaults = cast_defaults(o);
    tn_compare_datatypes_options options = { .size = sizeof options, .cast_defaults = defaults,
                                             .only = o->only.items,
                                .nonly = o->only.count, .jobs = o->jobs,
                                .progress = progress_step, .context = c,
                                .together = shared() };
    const tn_datatype **datatypes = must_allocate(c->count, sizeof *datatypes);
    tn_error err;
    for (size_t i = 0; i < c->count; i++)
        datatypes[i] = c->types.items[i].datatype;
    progress_begin(&c->bar, false);
    tn_status status = tn_compare_datatypes(file, datatypes, c->count, &options, take_report, &err);
    progress_end(&c->bar);
    free(datatypes);
    free(defaults);
    if (o->json)
        json_results(c, status == TN_OK ? NULL : &err);
    else if (status == TN_OK)
        out_results(c);
    return status == TN_OK ? EXIT_DONE : say_error(o->files[0], &err);
}

static void begin(contest *c)
{
    c->count = c->types.count;
    c->candidates = must_allocate(c->count + 1, sizeof *c->candidates);
    for (size_t i = 0; i < c->count; i++)
        c->candidates[i].type = &c->types.items[i];
}

static void end(contest *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->candidates[i].worst);
    free(c->candidates);
    types_free(&c->types);
}

static int run(const opts *o)
{
    contest c = { .o = o };
    tn_file *file = NULL;
    if (!o->types)
        return usage_error("compare-types", "expected --types LIST, such as mxfp4,nvfp4,int4_b32");
    signals_catch();
    int code = types_read(&c.types, o->types);
    begin(&c);
    if (code == EXIT_DONE)
        code = open_input(o, o->files[0], &file);
    if (code == EXIT_DONE)
        code = shared_begin(o, o->files[0]);
    if (code == EXIT_DONE)
        code = rate(&c, file);
    shared_end();
    tn_close(file);
    end(&c);
    return code;
}

const command cmd_compare_types = {
    .name = "compare-types",
    .operands = "FILE",
    .summary = "Compare datatypes: what each would do to the values.",
    .about = "Quantizes all float tensors, writes nothing, and prints one line per\n"
             "datatype: bits per value with scales, signal to quantization noise ratio (SQNR,\n"
             "higher is better), largest error, share of saturated values, share of nonzero\n"
             "values that become zero, and the tensor with the lowest SQNR.  \"tenon datatypes\"\n"
             "lists the names.",
    .details = "Prints also how many tensors were left out because of their type, or because a\n"
               "datatype does not fit their shape.",
    .example = "  $ tenon compare-types model.safetensors --types mxfp4,nvfp4 --only '*.weight'",
    .min_files = 1,
    .max_files = 1,
    .accepts = OPTIONS(OPT_TYPES, OPTS_CHOICE, OPT_NAN, OPT_SCALE_MODE, OPT_ROTATE, OPT_IMPORTANCE, OPT_JOBS,
                       OPT_MEMORY, OPT_MAX_BYTES, OPT_JSON, OPT_FROM, OPT_IO, OPTS_TOGETHER),
    .elsewhere = OPTIONS(OPTS_INPUT, OPTS_TOGETHER),
    .topics = "input|together",
    .run = run,
};
