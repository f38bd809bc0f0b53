/* cli/commands/check.c - validates WIA-AI-011 descriptors, and gives symbols values. */
#include "ui/document.h"
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct document {
    const char     *path;
    tn_descriptors *set;        /* NULL: could not be read */
    bool            list;       /* an array: paths begin with [i] */
    size_t          wrong, remarks;
    size_t          fragments;  /* descriptors that are fragments */
    int             level;      /* the highest that a descriptor needs */
    size_t          level_of;   /* the first such descriptor */
    const char     *level_why;
} document;

typedef struct checking {
    const opts *o;
    document   *documents;      /* one per operand */
    tn_wia_binding *bindings;   /* one per --bind */
    bool       *used;           /* bindings whose symbol some descriptor has */
    size_t      wrong;          /* in all documents together */
} checking;

/* Where findings belong. */
typedef struct place {
    const checking *c;
    document       *d;
    size_t          index;      /* of the descriptor */
    bool            binding;    /* --bind will set its symbols */
    bool            bound;      /* they are set */
    char           *remarked;   /* paths of remarks before that, each with its NUL */
    size_t          remarked_size;
} place;

/* ---- messages ---- */

/* "model.json: [3]", or without an array the file alone. */
static void out_place(const place *p)
{
    out("%s: ", escaped(p->d->path));
    if (p->d->list)
        out("[%zu]", p->index);
}

/* An error of the whole descriptor. */
static void wrong_descriptor(const place *p, const char *text)
{
    p->d->wrong++;
    if (p->c->o->json) {
        json_open('{');
        json_text_field("path", "");
        json_text_field("text", text);
        json_bool_field("remark", false);
        json_close('}');
        return;
    }
    out_place(p);
    out("%s%s\n", p->d->list ? ": " : "", text);
}

static void remember_remark(place *p, const char *path)
{
    size_t n = strlen(path) + 1;
    p->remarked = must_resize(p->remarked, p->remarked_size + n);
    memcpy(p->remarked + p->remarked_size, path, n);
    p->remarked_size += n;
}

/* Whether the same remark was made before the symbols were set; only its numbers may differ. */
static bool was_remarked(const place *p, const char *path)
{
    for (size_t i = 0; i < p->remarked_size; i += strlen(p->remarked + i) + 1) {
        if (strcmp(p->remarked + i, path) == 0)
            return true;
    }
    return false;
}

static void report(void *context, const tn_wia_finding *f)
{
    place *p = context;
    if (f->remark && p->bound && was_remarked(p, f->path))
        return;
    if (f->remark && p->binding && !p->bound)
        remember_remark(p, f->path);
    p->d->wrong += !f->remark;
    p->d->remarks += f->remark;
    if (p->c->o->json) {
        json_open('{');
        json_text_field("path", f->path);
        json_text_field("text", f->text);
        json_bool_field("remark", f->remark);
        json_close('}');
        return;
    }
    out_place(p);
    bool dotted = p->d->list && *f->path && *f->path != '[';
    out("%s%s: ", dotted ? "." : "", escaped(f->path));
    out("%s%s\n", f->remark ? "remark: " : "", f->text);
}

/* ---- one descriptor ---- */

static tn_status check_fields(place *p, const tn_descriptor *d, tn_error *err)
{
    tn_check_options options = { .size = sizeof options, .strict = p->c->o->strict, .report = report,
                                 .context = p };
    size_t wrong;
    return tn_descriptor_check(d, &options, &wrong, err);
}

static void check_level(place *p, const tn_descriptor *d)
{
    const char *why = "";
    int level = tn_descriptor_level(d, &why), asked = p->c->o->compliance;
    if (level > p->d->level) {
        p->d->level = level;
        p->d->level_of = p->index;
        p->d->level_why = why;
    }
    if (asked == 0 || level <= asked)
        return;
    char text[200];
    snprintf(text, sizeof text, "expected a descriptor of level %d but found one of level %d (%.100s)", asked,
             level, why);
    wrong_descriptor(p, text);
}

/* Strides as numbers: a bound descriptor has no symbols left. */
static void take_numbers(const tn_descriptor *d, int64_t *shape, int64_t *stride)
{
    for (uint32_t i = 0; i < d->rank && i < TN_MAX_RANK; i++) {
        shape[i] = d->dimensions[i].value;
        stride[i] = d->strides ? d->strides[i].factor : 0;
    }
}

static void out_bound(const place *p, const tn_descriptor *d)
{
    int64_t shape[TN_MAX_RANK], stride[TN_MAX_RANK];
    uint64_t bytes = d->total_bytes;
    take_numbers(d, shape, stride);
    if (!d->has_total && tn_descriptor_max_bytes(d, &bytes, NULL) != TN_OK)
        bytes = 0;              /* an unknown type, which the check has reported */
    bool sized = !tn_descriptor_is_fragment(d);
    if (p->c->o->json) {
        json_key("bound");
        json_open('{');
        json_shape_field("shape", d->rank, shape);
        json_shape_field("strides", d->rank, d->strides ? stride : NULL);
        if (sized)
            json_uint_field("total_bytes", bytes);
        json_close('}');
        return;
    }
    out_place(p);
    out("%sshape %s, ", p->d->list ? ": " : "", shape_of(d->rank, shape).s);
    if (d->strides)
        out("strides %s", shape_of(d->rank, stride).s);
    else
        out_text("dense");
    if (sized)
        out(", %s", counted(bytes, "byte").s);
    out_text("\n");
}

/* The symbols that descriptors use, with the constraints of all of them; free() the array. */
static tn_status unify(const tn_descriptor *const *descriptors, size_t n, tn_wia_constraint **constraints,
                       size_t *count, tn_error *err)
{
    tn_status status = tn_symbols_unify(descriptors, n, NULL, 0, count, err);
    *constraints = status == TN_OK ? must_allocate(*count, sizeof **constraints) : NULL;
    return status == TN_OK ? tn_symbols_unify(descriptors, n, *constraints, *count, count, err) : status;
}

/* Selects the bindings of one descriptor's symbols and marks them as used. */
static tn_status choose_bindings(const checking *c, const tn_descriptor *d, tn_wia_binding *chosen, size_t *n,
                                 tn_error *err)
{
    tn_wia_constraint *symbols;
    size_t count = 0;
    *n = 0;
    tn_status status = unify(&d, 1, &symbols, &count, err);
    for (size_t i = 0; status == TN_OK && i < c->o->binds.count; i++) {
        for (size_t k = 0; k < count; k++) {
            if (strcmp(c->bindings[i].symbol, symbols[k].symbol) != 0)
                continue;
            c->used[i] = true;
            chosen[(*n)++] = c->bindings[i];
        }
    }
    free(symbols);
    return status;
}

/* A descriptor with its symbols replaced, or NULL after printing why not. */
static tn_status bind(place *p, const tn_descriptor *d, tn_descriptors **bound, tn_error *err)
{
    tn_error why;
    size_t n;
    tn_wia_binding *chosen = must_allocate(p->c->o->binds.count, sizeof *chosen);
    *bound = NULL;
    tn_status status = choose_bindings(p->c, d, chosen, &n, &why);
    if (status == TN_OK)
        status = tn_descriptor_bind(d, chosen, n, bound, &why);
    free(chosen);
    if (status == TN_ERR_NOMEM) {
        *err = why;
        return status;
    }
    if (status != TN_OK)
        wrong_descriptor(p, why.text);
    return TN_OK;
}

/* The most memory that any values of the symbols need. */
static void out_most_bytes(const place *p, const tn_descriptor *d)
{
    uint64_t bytes = 0;
    tn_error err;
    bool bounded = tn_descriptor_max_bytes(d, &bytes, &err) == TN_OK;
    if (p->c->o->json && bounded) {
        json_uint_field("max_bytes", bytes);
    } else if (p->c->o->json) {
        json_text_field("max_bytes", NULL);
        json_text_field("unbounded", err.text);
    } else {
        out_place(p);
        out_text(p->d->list ? ": " : "");
        if (bounded)
            out("at most %s\n", counted(bytes, "byte").s);
        else
            out("no bound of bytes: %s\n", err.text);
    }
}

/* Whether there are symbols to bind; sparse data has none. */
static bool has_symbols(const tn_descriptor *d)
{
    for (uint32_t i = 0; i < d->rank && !d->sparse.format; i++) {
        if (d->dimensions[i].symbol || (d->strides && d->strides[i].nsymbols > 0))
            return true;
    }
    return false;
}

/* Prints the findings, then the size; adds to the document's counts. */
static tn_status check_descriptor(place *p, const tn_descriptor *d, tn_error *err)
{
    size_t before = p->d->wrong;
    tn_descriptors *bound = NULL;
    p->binding = p->c->o->binds.count > 0 && !d->sparse.format;
    tn_status status = check_fields(p, d, err);
    if (status == TN_OK)
        check_level(p, d);
    bool right = p->d->wrong == before;
    if (status == TN_OK && right && p->binding)
        status = bind(p, d, &bound, err);
    p->bound = bound != NULL;
    if (status == TN_OK && bound && has_symbols(d))
        status = check_fields(p, tn_descriptors_at(bound, 0), err);
    if (p->c->o->json)
        json_close(']');        /* of the findings */
    if (status == TN_OK && bound)
        out_bound(p, tn_descriptors_at(bound, 0));
    else if (status == TN_OK && right && !p->binding && has_symbols(d) && !tn_descriptor_is_fragment(d))
        out_most_bytes(p, d);
    tn_descriptors_free(bound);
    return status;
}

/* ---- one document ---- */

static void json_descriptor_begin(const tn_descriptor *d)
{
    const char *why;
    json_open('{');
    json_text_field("name", d->name);
    json_bool_field("fragment", tn_descriptor_is_fragment(d));
    json_uint_field("level", (uint64_t)tn_descriptor_level(d, &why));
    json_text_field("why", why);
    json_key("findings");
    json_open('[');
}

static tn_status check_descriptors(const checking *c, document *d, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < tn_descriptors_count(d->set) && status == TN_OK; i++) {
        const tn_descriptor *descriptor = tn_descriptors_at(d->set, i);
        place p = { .c = c, .d = d, .index = i };
        d->fragments += tn_descriptor_is_fragment(descriptor);
        if (c->o->json)
            json_descriptor_begin(descriptor);
        status = check_descriptor(&p, descriptor, err);
        free(p.remarked);
        if (c->o->json)
            json_close('}');
    }
    return status;
}

/* "3 descriptors and 1 fragment of a descriptor (no version, name or dtype)" */
static void out_counts(const document *d)
{
    size_t whole = tn_descriptors_count(d->set) - d->fragments;
    if (whole > 0 || d->fragments == 0)
        out("%s%s", counted(whole, "descriptor").s, d->fragments ? " and " : "");
    if (d->fragments > 0)
        out("%s of a descriptor (no version, name or dtype)", counted(d->fragments, "fragment").s);
}

/* "model.json: ok: 3 descriptors; level 2 is needed for [1]: quantization metadata" */
static void out_verdict(const document *d)
{
    bool bad = d->wrong > 0;
    out("%s: ", escaped(d->path));
    out_judgement(bad ? "BAD" : "ok", bad);
    out_counts(d);
    if (bad)
        out(", %s wrong", counted(d->wrong, "thing").s);
    if (d->remarks > 0)
        out(", %s", counted(d->remarks, "remark").s);
    if (d->level > 0) {
        out("; needs level %d", d->level);
        if (d->list)
            out(" for [%zu]", d->level_of);
        out(" (%s)", d->level_why);
    }
    out_text("\n");
}

static bool is_tensor_file(const char *path)
{
    tn_file *file;
    if (tn_open(path, NULL, &file, NULL) != TN_OK)
        return false;
    tn_close(file);
    return true;
}

static int check_document(checking *c, document *d)
{
    tn_error err = { .status = TN_OK };
    bool json = c->o->json;
    if (json) {
        json_open('{');
        json_text_field("file", d->path);
        json_key("descriptors");
        json_open('[');
    }
    tn_status status = document_read(d->path, &d->set, &d->list, &err);
    if (status == TN_OK)
        status = check_descriptors(c, d, &err);
    if (json) {
        json_close(']');
        json_error_field(d->path, status == TN_OK ? NULL : &err);
        json_uint_field("level", (uint64_t)d->level);
        json_uint_field("wrong", d->wrong);
        json_uint_field("remarks", d->remarks);
        json_close('}');
    } else if (status == TN_OK) {
        out_verdict(d);
    }
    c->wrong += d->wrong;
    if (status == TN_ERR_CORRUPT && is_tensor_file(d->path))
        return give_up_by(EXIT_BAD, &err, "%s: it is a tensor file and no descriptor: use \"tenon verify\"",
                          escaped(d->path));
    return status == TN_OK ? EXIT_DONE : say_error(d->path, &err);
}

/* ---- symbols of all documents together ---- */

static void out_constraint(const tn_wia_constraint *k, bool json)
{
    if (json) {
        json_open('{');
        json_text_field("symbol", k->symbol);
        json_uint_field("min", (uint64_t)k->min);
        json_key("max");
        if (k->max == INT64_MAX)
            json_word("null");
        else
            json_int(k->max);
        json_uint_field("multiple_of", (uint64_t)k->multiple_of);
        json_close('}');
        return;
    }
    out("symbol %s: ", escaped(k->symbol));
    if (k->max == INT64_MAX)
        out("%lld or more", (long long)k->min);
    else
        out("%lld to %lld", (long long)k->min, (long long)k->max);
    if (k->multiple_of > 1)
        out(", a multiple of %lld", (long long)k->multiple_of);
    out_text("\n");
}

/* The descriptors of all documents in a row; free() it. */
static const tn_descriptor **all_descriptors(const checking *c, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < c->o->nfiles; i++)
        *n += c->documents[i].set ? tn_descriptors_count(c->documents[i].set) : 0;
    const tn_descriptor **all = must_allocate(*n, sizeof *all);
    size_t k = 0;
    for (size_t i = 0; i < c->o->nfiles; i++) {
        for (size_t j = 0; c->documents[i].set && j < tn_descriptors_count(c->documents[i].set); j++)
            all[k++] = tn_descriptors_at(c->documents[i].set, j);
    }
    return all;
}

/* The constraints of each symbol in all descriptors; skipped if a descriptor is wrong. */
static int check_symbols(checking *c)
{
    bool json = c->o->json;
    size_t n, count = 0;
    tn_wia_constraint *constraints = NULL;
    tn_error err = { .status = TN_OK };
    const tn_descriptor **all = all_descriptors(c, &n);
    tn_status status = c->wrong > 0 ? TN_OK : unify(all, n, &constraints, &count, &err);
    if (json) {
        json_key("symbols");
        json_open('[');
    }
    for (size_t i = 0; status == TN_OK && i < count; i++)
        out_constraint(&constraints[i], json);
    if (json) {
        json_close(']');
        json_text_field("conflict", status == TN_OK ? NULL : err.text);
    } else if (status != TN_OK && status != TN_ERR_NOMEM) {
        out("symbol %s\n", err.text);
    }
    free(constraints);
    free(all);
    if (status == TN_ERR_NOMEM)
        return say_error(NULL, &err);
    return status == TN_OK ? EXIT_DONE : EXIT_BAD;
}

/* ---- the command ---- */

static void read_bindings(checking *c)
{
    size_t n = c->o->binds.count;
    c->bindings = must_allocate(n, sizeof *c->bindings);
    c->used = must_allocate(n, sizeof *c->used);
    for (size_t i = 0; i < n; i++) {
        const char *text = c->o->binds.items[i];
        size_t length = strcspn(text, "=");
        char *symbol = must_allocate(length + 1, 1);
        memcpy(symbol, text, length);
        c->bindings[i] = (tn_wia_binding){ .symbol = symbol, .value = strtoll(text + length + 1, NULL, 10) };
    }
}

/* A value for a symbol that nothing has is a mistake, unless something could not be read; NULL when there is
 * none. */
static const char *find_unused(const checking *c)
{
    for (size_t i = 0; i < c->o->binds.count; i++) {
        if (!c->used[i])
            return c->o->binds.items[i];
    }
    return NULL;
}

static void checking_free(checking *c)
{
    for (size_t i = 0; i < c->o->binds.count; i++)
        free((char *)c->bindings[i].symbol);
    for (size_t i = 0; i < c->o->nfiles; i++)
        tn_descriptors_free(c->documents[i].set);
    free(c->bindings);
    free(c->used);
    free(c->documents);
}

static int run(const opts *o)
{
    checking c = { .o = o, .documents = must_allocate(o->nfiles, sizeof *c.documents) };
    int code = EXIT_DONE;
    read_bindings(&c);
    if (o->json) {
        json_open('{');
        json_key("documents");
        json_open('[');
    }
    for (size_t i = 0; i < o->nfiles; i++) {
        c.documents[i].path = o->files[i];
        code = worse(code, check_document(&c, &c.documents[i]));
    }
    if (o->json)
        json_close(']');
    code = worse(worse(code, c.wrong > 0 ? EXIT_BAD : EXIT_DONE), check_symbols(&c));
    const char *unused = code == EXIT_DONE ? find_unused(&c) : NULL;
    if (o->json) {
        json_text_field("unused", unused);
        json_bool_field("ok", code == EXIT_DONE && !unused);
        json_close('}');
        json_end();
    }
    if (unused)
        code = usage_error("check", "--bind %s: no descriptor has that symbol", escaped(unused));
    checking_free(&c);
    return code;
}

const command cmd_check = {
    .name = "check",
    .operands = "DOC.json...",
    .summary = "Validate WIA-AI-011 descriptors and bind their symbols.",
    .about = "Each error is printed with its JSON path.  Remarks are not errors.  A fragment\n"
             "(only a shape, a quantization or a handle) is checked as far as possible.  Then\n"
             "comes the compliance level that the document needs; needing more than --level is\n"
             "an error.  For symbolic shapes prints the most bytes they can need, or with\n"
             "--bind the shape, strides and bytes; then the constraints that all documents\n"
             "together put on each symbol.  Exit status 1 on errors.",
    .details = "--strict refuses what the specification does not name: types beyond its 17,\n"
               "layouts other than NCHW, NHWC and CHWN, quantization schemes other than the four\n"
               "of per_tensor and per_channel, symmetric and asymmetric, memfd handles and\n"
               "value_fill.  A missing layout is never an error.  With --bind all symbols of a\n"
               "document need a value, which their constraints must allow.",
    .example = "  $ tenon check model.json --level 2\n"
               "  $ tenon check encoder.json decoder.json --bind batch=32 --bind length=128",
    .min_files = 1,
    .max_files = SIZE_MAX,
    .accepts = OPTIONS(OPT_STRICT, OPT_BIND, OPT_LEVEL, OPT_JSON),
    .run = run,
};
