/* cli/commands/diff.c - compares two files, of any containers. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/rating.h"
#include "ui/together.h"
#include "ui/worst.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct comparison {
    progress    bar;            /* first: progress_step() takes the context as its own */
    const opts *o;
    const tn_file *a, *b;
    uint64_t    tensors, elements, unread;
    worst_list  worst;
} comparison;

/* One side's metadata: a tensor's, or the file's own. */
typedef struct meta_list {
    const tn_meta *items;
    size_t         count;
} meta_list;

static meta_list meta_of(const tn_file *file, const tn_tensor *tensor)
{
    meta_list list;
    if (tensor)
        return (meta_list){ tensor->meta, tensor->nmeta };
    list.items = tn_file_meta(file, &list.count);
    return list;
}

static bool same_value(const tn_meta *x, const tn_meta *y)
{
    if (x->text || y->text)
        return x->text && y->text && strcmp(x->text, y->text) == 0;
    return x->cbor_size == y->cbor_size && memcmp(x->cbor, y->cbor, x->cbor_size) == 0;
}

static const tn_meta *find_key(meta_list list, const char *key)
{
    for (size_t i = 0; i < list.count; i++) {
        if (strcmp(list.items[i].key, key) == 0)
            return &list.items[i];
    }
    return NULL;
}

typedef void (*key_fn)(const char *key, const char *where, size_t nth);

/* Calls `each` for every key that is not the same in both. */
static void differing_keys(meta_list a, meta_list b, key_fn each)
{
    size_t n = 0;
    for (size_t i = 0; i < a.count; i++) {
        const tn_meta *other = find_key(b, a.items[i].key);
        if (!other)
            each(a.items[i].key, "a", n++);
        else if (!same_value(&a.items[i], other))
            each(a.items[i].key, "both", n++);
    }
    for (size_t i = 0; i < b.count; i++) {
        if (!find_key(a, b.items[i].key))
            each(b.items[i].key, "b", n++);
    }
}

static void out_key(const char *key, const char *where, size_t nth)
{
    out("%s%s", nth > 0 ? ", " : "", escaped(key));
    if (strcmp(where, "both") != 0)
        out_text(*where == 'a' ? " only in A" : " only in B");
}

static void json_key_difference(const char *key, const char *where, size_t nth)
{
    (void)nth;
    json_open('{');
    json_text_field("key", key);
    json_text_field("in", where);
    json_close('}');
}

/* Naming keys is quadratic: not for the long lists of a hostile file. */
static bool can_name_keys(meta_list a, meta_list b) { return a.count <= 1000 && b.count <= 1000; }

static double percentage(const tn_difference *d)
{
    return d->elements ? 100 * (double)d->differing / (double)d->elements : 0;
}

static void out_distance(const tn_difference *d)
{
    if (d->differing > d->specials) {
        out(", max abs %.6g, max rel %.6g", d->max_abs, d->max_rel);
        if (isfinite(d->sqnr))
            out(", SQNR %.1f dB", d->sqnr);
        out(", max %.6g ulp", d->max_ulp);
    }
    if (d->saturated > 0)
        out(", %s saturated", percent(d->saturated, d->elements).s);
    if (d->flushed > 0)
        out(", %s flushed to zero", percent(d->flushed, d->elements).s);
    if (d->specials > 0)
        out(", %s with NaN or infinity", grouped(d->specials).s);
}

/* The bits per value of both sides, if they differ. */
static void out_bits(const tn_difference *d)
{
    double a = tensor_bits(d->a), b = tensor_bits(d->b);
    if (a != b)
        out(", %s bits per value in A, %s in B", bits_text(a).s, bits_text(b).s);
}

static bool is_scaled(const tn_tensor *t)
{
    return t->form == TN_FORM_SCALED;
}

/* Parts of an unknown form are compared one by one; their distances have no meaning. */
static void out_values(const tn_difference *d)
{
    const tn_part *part = d->part ? d->part : &d->a->parts[0];
    bool scaled = is_scaled(d->a) || is_scaled(d->b), whole = d->a->nparts == 1 || scaled;
    shape_text first = scaled ? index_of(d->first, d->a->rank, d->a->shape)
                              : index_of(d->first, part->array.rank, part->array.shape);
    out("%s of %s", grouped(d->differing).s, counted(d->elements, whole ? "value" : "element").s);
    out("%s differ (%.3g%%), first ", whole ? "" : " of its parts", percentage(d));
    if (!whole)
        out("in part %s ", escaped(part->role));
    out("at %s", first.s);
    if (whole)
        out_distance(d);
    if (d->bits > 0)
        out(", %s", counted(d->bits, "bit").s);
    if (whole)
        out_bits(d);
}

static void out_descriptions(const tn_difference *d, const char **separator)
{
    if (d->what & TN_DIFF_FORM) {
        out("%sform %s in A, %s in B", *separator, escaped(tn_tensor_form_name(d->a)),
            escaped(tn_tensor_form_name(d->b)));
        *separator = "; ";
    }
    if (d->what & TN_DIFF_LAYOUT) {
        out("%slayout %s in A, %s in B", *separator, escaped(d->a->layout), escaped(d->b->layout));
        *separator = "; ";
    }
    if (d->what & TN_DIFF_DTYPE) {
        out("%stype %s in A, %s in B", *separator, type_of(d->a->dtype, &d->a->parts[0]).s,
            type_of(d->b->dtype, &d->b->parts[0]).s);
        *separator = "; ";
    }
    if (d->what & TN_DIFF_SHAPE) {
        out("%sshape %s in A, %s in B", *separator, shape_of(d->a->rank, d->a->shape).s,
            shape_of(d->b->rank, d->b->shape).s);
        *separator = "; ";
    }
}

static void out_meta_difference(const comparison *c, const tn_difference *d)
{
    meta_list a = meta_of(c->a, d->a), b = meta_of(c->b, d->b);
    if (!can_name_keys(a, b)) {
        out_text("metadata");
        return;
    }
    out_text("metadata (");
    differing_keys(a, b, out_key);
    out_text(")");
}

static void out_difference(const comparison *c, const tn_difference *d)
{
    const tn_tensor *either = d->a ? d->a : d->b;
    const char *separator = "";
    out("%s%s%s: ", style_on_stdout(STYLE_BOLD), either ? escaped(either->name) : "the file",
        style_on_stdout(STYLE_PLAIN));
    if (d->what & (TN_DIFF_ONLY_A | TN_DIFF_ONLY_B)) {
        out("only in %s\n", d->what & TN_DIFF_ONLY_A ? "A" : "B");
        return;
    }
    out_descriptions(d, &separator);
    if (d->what & TN_DIFF_VALUES) {
        out_text(separator);
        out_values(d);
        separator = "; ";
    }
    if (d->what & TN_DIFF_META) {
        out_text(separator);
        out_meta_difference(c, d);
        separator = "; ";
    }
    if (d->what & TN_DIFF_UNREAD)
        out("%snot compared: %s%s", separator, d->why ? d->why : "cannot be read",
            option_for(d->reason, d->value));
    out_text("\n");
}

static void json_side(const char *key, const tn_tensor *tensor)
{
    json_key(key);
    if (!tensor) {
        json_word("null");
        return;
    }
    const tn_dtype_info *info = tn_dtype_get(tensor->dtype);
    json_open('{');
    json_text_field("form", tn_tensor_form_name(tensor));
    json_text_field("dtype", info ? info->name : NULL);
    json_shape_field("shape", tensor->rank, tensor->shape);
    json_text_field("datatype", tensor->scaling ? tensor->scaling->datatype : NULL);
    json_key("bits");
    json_double(tensor_bits(tensor));
    json_close('}');
}

static void json_values(const tn_difference *d)
{
    json_key("values");
    json_open('{');
    json_text_field("part", d->part ? d->part->role : NULL);
    json_uint_field("elements", d->elements);
    json_uint_field("differing", d->differing);
    json_uint_field("first", d->first);
    json_uint_field("bits", d->bits);
    json_uint_field("specials", d->specials);
    json_key("max_abs");
    json_double(d->max_abs);
    json_key("max_rel");
    json_double(d->max_rel);
    json_key("max_ulp");
    json_double(d->max_ulp);
    json_key("sqnr");
    json_double(d->sqnr);
    json_uint_field("saturated", d->saturated);
    json_uint_field("flushed", d->flushed);
    json_close('}');
}

static void json_what(unsigned what)
{
    static const struct { unsigned bit; const char *word; } words[] = {
        { TN_DIFF_ONLY_A, "only_a" }, { TN_DIFF_ONLY_B, "only_b" },   { TN_DIFF_FORM, "form" },
        { TN_DIFF_DTYPE, "dtype" },   { TN_DIFF_SHAPE, "shape" },     { TN_DIFF_META, "metadata" },
        { TN_DIFF_VALUES, "values" }, { TN_DIFF_UNREAD, "unread" },   { TN_DIFF_LAYOUT, "layout" },
    };
    json_key("what");
    json_open('[');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (what & words[i].bit)
            json_text(words[i].word);
    }
    json_close(']');
}

static void json_why(const tn_difference *d)
{
    char text[TN_ERROR_LINE];
    snprintf(text, sizeof text, "%s%s", d->why ? d->why : "", option_for(d->reason, d->value));
    json_text_field("why", d->why ? text : NULL);
}

static void json_difference(const comparison *c, const tn_difference *d)
{
    const tn_tensor *either = d->a ? d->a : d->b;
    json_open('{');
    json_text_field("name", either ? either->name : NULL);
    json_what(d->what);
    if (either) {
        json_side("a", d->a);
        json_side("b", d->b);
    }
    if (d->what & TN_DIFF_VALUES)
        json_values(d);
    if (d->what & TN_DIFF_META) {
        meta_list a = meta_of(c->a, d->a), b = meta_of(c->b, d->b);
        json_key("metadata");
        json_open('[');
        if (can_name_keys(a, b))
            differing_keys(a, b, json_key_difference);
        json_close(']');
    }
    if (d->what & TN_DIFF_UNREAD)
        json_why(d);
    json_close('}');
}

static void report(void *context, const tn_difference *d)
{
    comparison *c = context;
    c->tensors += d->a || d->b;
    c->elements += d->elements;
    c->unread += (d->what & TN_DIFF_UNREAD) != 0;
    if (d->what == 0)
        return;
    if (d->what & TN_DIFF_VALUES && isfinite(d->sqnr))
        worst_add(&c->worst, d->a->name, d->sqnr);
    progress_end(&c->bar);
    if (c->o->json)
        json_difference(c, d);
    else
        out_difference(c, d);
}

static void summary(const comparison *c, size_t different)
{
    bool equal = different == 0 && c->unread == 0;
    if (c->o->json) {
        json_bool_field("equal", equal);
        json_uint_field("different", different);
        json_uint_field("tensors", c->tensors);
        json_uint_field("elements", c->elements);
        json_key("worst");
        worst_json(&c->worst);
        return;
    }
    if (equal)
        out("equal: %s, %s\n", counted(c->tensors, "tensor").s, counted(c->elements, "element").s);
    else
        out("%s; %s, %s compared\n", counted(different, "difference").s, counted(c->tensors, "tensor").s,
            counted(c->elements, "element").s);
    worst_out(&c->worst);
}

static int compare(comparison *c)
{
    tn_compare_options options = { .size = sizeof options, .jobs = c->o->jobs,
                                   .ignore_meta = c->o->ignore_metadata,
                                   .progress = progress_step, .context = c,
                                   .only = c->o->only.items, .nonly = c->o->only.count,
                                   .rename = c->o->rename.items, .nrename = c->o->rename.count,
                                   .tolerance = c->o->tolerance, .relative = c->o->relative,
                                   .together = shared() };
    size_t different = 0;
    tn_error err;
    if (c->o->json) {
        json_open('{');
        json_text_field("a", c->o->files[0]);
        json_text_field("b", c->o->files[1]);
        json_key("differences");
        json_open('[');
    }
    progress_begin(&c->bar, false);
    tn_status status = tn_compare(c->a, c->b, &options, report, &different, &err);
    progress_end(&c->bar);
    if (c->o->json) {
        json_close(']');
        json_error_field(NULL, status == TN_OK ? NULL : &err);
    }
    if (status == TN_OK)
        summary(c, different);
    if (c->o->json) {
        json_close('}');
        json_end();
    }
    if (status != TN_OK)
        return say_error(NULL, &err);
    return different > 0 || c->unread > 0 ? EXIT_BAD : EXIT_DONE;
}

static int run(const opts *o)
{
    tn_file *a = NULL, *b = NULL;
    comparison c = { .o = o };
    signals_catch();
    int code = open_input(o, o->files[0], &a);
    code = worse(code, open_input(o, o->files[1], &b));
    c.a = a;
    c.b = b;
    if (code == EXIT_DONE)
        code = shared_begin(o, o->files[0]);
    if (code == EXIT_DONE)
        code = compare(&c);
    shared_end();
    worst_free(&c.worst);
    tn_close(a);
    tn_close(b);
    return code;
}

const command cmd_diff = {
    .name = "diff",
    .operands = "A B",
    .summary = "Compare names, types, shapes, metadata and values.",
    .about = "A and B may have different formats and types.  For each tensor that differs,\n"
             "prints how many values differ, the first of them, and by how much: SQNR is the\n"
             "signal to noise ratio of B, ulp the step of the coarser type at a value of A.\n"
             "Scaled tensors are compared by value.  Exit status 1 if anything differs.  With\n"
             "--tolerance types may differ, and values by so much.  --rename OLD=NEW compares\n"
             "tensor OLD of A with NEW of B; --only and --exclude are for the names in A.",
    .details = "NaN equals NaN.  SQNR is computed from the sums of squares of A and of the\n"
               "differences.  An ulp of an integer is 1.  If the types are equal, prints how\n"
               "many bits differ; if the sizes differ, the bits per value on either side,\n"
               "including scales.  Saturated values of codes are those of A beyond the largest\n"
               "number that B's scale can represent; flushed values are zero in B only.  At the\n"
               "end come the ten tensors with the lowest SQNR.",
    .example = "  $ tenon diff model.safetensors model.zt",
    .min_files = 2,
    .max_files = 2,
    .accepts = OPTIONS(OPTS_CHOICE, OPT_RENAME, OPT_TOLERANCE, OPT_JSON, OPT_IGNORE_METADATA, OPT_JOBS,
                       OPTS_INPUT, OPTS_TOGETHER),
    .elsewhere = OPTIONS(OPTS_INPUT, OPTS_TOGETHER),
    .topics = "rules|input|together",
    .run = run,
};
