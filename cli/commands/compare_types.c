/* cli/commands/compare_types.c - what several datatypes would do to the tensors of a file. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/rating.h"

#include <stdlib.h>
#include <string.h>

/* One datatype and what it did to all tensors. */
typedef struct candidate {
    char        *text;          /* as it was given */
    tn_datatype *datatype;
    rating       total;
    uint64_t     tensors;
    char        *worst;         /* the name of the tensor with the least SQNR, or NULL */
    double       worst_sqnr;
} candidate;

typedef struct contest {
    progress    bar;            /* first: progress_step() takes the context as its own */
    const opts *o;
    candidate  *candidates;
    size_t      count, next;    /* next: the candidate of the next report */
    bool        fits;           /* a datatype fits the tensor being reported */
    uint64_t    tensors, left_out;      /* left_out: by all datatypes */
} contest;

/* ---- the list of types ---- */

static char *copy_text(const char *text, size_t n)
{
    char *copy = must_allocate(n + 1, 1);
    memcpy(copy, text, n);
    return copy;
}

/* The number of a character, counted from 1. */
static size_t character(const char *text, const char *at)
{
    size_t n = 1;
    for (; text < at; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static int add_candidate(contest *c, const char *list, const char *at, size_t n)
{
    candidate *one = &c->candidates[c->count];
    tn_error err;
    *one = (candidate){ .text = copy_text(at, n) };
    c->count++;
    if (tn_datatype_load(one->text, &one->datatype, &err) != TN_OK) {
        int code = worse(EXIT_USAGE, exit_code(err.status));
        tn_nearest nearest = { .word = one->text };
        const tn_datatype_name *name;
        for (size_t i = 0; (name = tn_datatype_at(i)); i++)
            tn_nearest_offer(&nearest, name->name);
        return give_up_by(code, &err, "--types \"%s\": the type at character %zu: %s%s%s", escaped(list),
                       character(list, at), error_line(&err), did_you_mean(&nearest),
                       code == EXIT_USAGE ? " (see: tenon datatypes)" : "");
    }
    for (const candidate *other = c->candidates; other < one; other++) {
        if (strcmp(tn_datatype_text(other->datatype), tn_datatype_text(one->datatype)) == 0) {
            return give_up(EXIT_USAGE,
                           "--types \"%s\": \"%s\" at character %zu is the same as \"%s\" before it",
                           escaped(list), escaped(one->text), character(list, at), escaped(other->text));
        }
    }
    return EXIT_DONE;
}

/* One type: what has a '=' before the next comma is a key of it, as in int8,per=tensor. */
static size_t type_length(const char *at)
{
    size_t n = strcspn(at, ",");
    while (at[n] && at[n + 1 + strcspn(at + n + 1, ",=")] == '=')
        n += 1 + strcspn(at + n + 1, ",");
    return n;
}

static int read_types(contest *c, const char *list)
{
    size_t most = 1;
    for (const char *p = list; *p; p++)
        most += *p == ',';
    c->candidates = must_allocate(most, sizeof *c->candidates);
    for (const char *at = list;;) {
        size_t n = type_length(at);
        int code = add_candidate(c, list, at, n);
        if (code != EXIT_DONE || !at[n])
            return code;
        at += n + 1;
    }
}

static void free_types(contest *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->candidates[i].text);
        free(c->candidates[i].worst);
        tn_datatype_free(c->candidates[i].datatype);
    }
    free(c->candidates);
}

/* ---- reports ---- */

static void add_report(candidate *one, const tn_quantize_report *q)
{
    double sqnr = rating_sqnr(q->report);
    rating_add(&one->total, q);
    one->tensors++;
    if (!q->report->values || (one->worst && !(sqnr < one->worst_sqnr)))
        return;
    free(one->worst);
    one->worst = copy_text(q->name, strlen(q->name));
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
        table_name(&t, one->text);
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
    json_text_field("type", one->text);
    json_text_field("datatype", tn_datatype_text(one->datatype));
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
                                .progress = progress_step, .context = c };
    const tn_datatype **datatypes = must_allocate(c->count, sizeof *datatypes);
    tn_error err;
    for (size_t i = 0; i < c->count; i++)
        datatypes[i] = c->candidates[i].datatype;
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

static int run(const opts *o)
{
    contest c = { .o = o };
    tn_file *file = NULL;
    if (!o->types)
        return usage_error("compare-types", "expected --types LIST, such as mxfp4,nvfp4,int4_b32");
    signals_catch();
    int code = read_types(&c, o->types);
    if (code == EXIT_DONE)
        code = open_input(o, o->files[0], &file);
    if (code == EXIT_DONE)
        code = rate(&c, file);
    tn_close(file);
    free_types(&c);
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
                       OPT_MEMORY, OPT_MAX_BYTES, OPT_JSON, OPT_FROM, OPT_IO),
    .elsewhere = OPTIONS(OPTS_INPUT),
    .topics = "input",
    .run = run,
};
