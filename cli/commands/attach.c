/* cli/commands/attach.c - lists, prints, checks or saves what another process offers. */
#include "ui/json.h"
#include "ui/open_file.h"
#include "ui/progress.h"
#include "ui/table.h"
#include "ui/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the operands name. */
typedef struct choice {
    const tn_attached *item;    /* NULL: everything */
    const tn_tensor   *tensor;  /* of it; NULL: all of its file */
} choice;

static bool is_chosen(const choice *c, const tn_attached *item) { return !c->item || c->item == item; }

/* ---- finding ---- */

/* By its name or as FILE:NAME. */
static const tn_tensor *find_in_file(const tn_attached *item, const char *name)
{
    size_t n = strlen(item->name);
    const tn_tensor *tensor = tn_file_find(item->file, name);
    return !tensor && strncmp(name, item->name, n) == 0 && name[n] == ':'
               ? tn_file_find(item->file, name + n + 1)
               : tensor;
}

static int find_in_files(const opts *o, const tn_attachment *a, choice *c)
{
    const char *name = o->files[1];
    const tn_attached *item;
    for (size_t i = 0; (item = tn_attached_at(a, i)); i++) {
        const tn_tensor *tensor = item->file ? find_in_file(item, name) : NULL;
        if (tensor && c->tensor)
            return usage_error("attach", "tensor \"%s\" is in \"%s\" and in \"%s\": name one as FILE:NAME",
                               escaped(name), escaped(c->item->name), escaped(item->name));
        if (tensor)
            *c = (choice){ item, tensor };
    }
    if (c->tensor)
        return EXIT_DONE;
    return give_up(EXIT_BAD, "%s: no file or tensor \"%s\" is offered", escaped(o->files[0]), escaped(name));
}

/* An item of that name comes first, then a tensor of that name in any file. */
static int find(const opts *o, const tn_attachment *a, choice *c)
{
    const tn_attached *item;
    *c = (choice){ NULL, NULL };
    if (o->nfiles < 2)
        return EXIT_DONE;
    for (size_t i = 0; (item = tn_attached_at(a, i)); i++) {
        if (strcmp(item->name, o->files[1]) == 0) {
            *c = (choice){ item, item->tensor };
            return EXIT_DONE;
        }
    }
    return find_in_files(o, a, c);
}

/* ---- tensors that are offered separately ---- */

/* The tensor with dense strides; `copy` is its data if it had to be copied. */
typedef struct dense {
    tn_part   part;
    tn_tensor tensor;
    void     *copy;
} dense;

static int dense_make(const opts *o, const tn_attached *item, dense *d)
{
    tn_error err;
    *d = (dense){ .part = item->tensor->parts[0], .tensor = *item->tensor };
    d->tensor.parts = &d->part;
    tn_status status = tn_buffer_begin(item->buffer, false, &err);
    if (status != TN_OK)
        return say_error(o->files[0], &err);
    if (!d->part.data && d->part.nbytes > 0) {
        return give_up(EXIT_BAD, "%s: tensor \"%s\" is in memory that the CPU cannot access",
                    escaped(o->files[0]), escaped(item->name));
    }
    if (!d->part.array.stride)
        return EXIT_DONE;
    d->part.array.stride = NULL;
    d->part.data = d->copy = must_allocate((size_t)d->part.nbytes, 1);
    status = tn_reorder(&d->part.array, d->copy, &item->tensor->parts[0].array, item->tensor->parts[0].data,
                        NULL, &err);
    return status == TN_OK ? EXIT_DONE : say_error(o->files[0], &err);
}

static void dense_free(const tn_attached *item, dense *d)
{
    tn_buffer_end(item->buffer, false, NULL);
    free(d->copy);
}

static int json_tensor(const opts *o, const tn_attached *item)
{
    char *json;
    size_t size;
    tn_error err;
    if (tn_descriptors_write(item->descriptor, 1, false, &json, &size, &err) != TN_OK)
        return say_error(o->files[0], &err);
    json_open('{');
    json_text_field("tensor", item->name);
    json_key("descriptor");
    json_lines(json);
    json_close('}');
    json_end();
    free(json);
    return EXIT_DONE;
}

static int json_tensors(const opts *o, const tn_attachment *a)
{
    const tn_attached *item;
    int code = EXIT_DONE;
    for (size_t i = 0; (item = tn_attached_at(a, i)); i++)
        if (item->tensor)
            code = worse(code, json_tensor(o, item));
    return code;
}

static void out_tensors(const tn_attachment *a)
{
    static const char *const headings[] = { "name", "type", "shape", "size", "handle", "access", NULL };
    const tn_attached *item;
    uint64_t count = 0, elements = 0, bytes = 0;
    table t;
    table_begin(&t, headings, 1u << 3);
    for (size_t i = 0; (item = tn_attached_at(a, i)); i++) {
        if (!item->tensor)
            continue;
        count++;
        elements += tensor_elements(item->tensor);
        bytes += tensor_nbytes(item->tensor);
        table_name(&t, item->name);
        table_cell(&t, tensor_type(item->tensor).s);
        table_cell(&t, shape_of(item->tensor->rank, item->tensor->shape).s);
        table_cell(&t, human_size(tensor_nbytes(item->tensor)).s);
        table_cell(&t, handle_name(item->descriptor->buffer_handle.type));
        table_cell(&t, item->descriptor->buffer_handle.read_only ? "read" : "read, write");
    }
    table_end(&t);
    out("%s, %s, %s\n", counted(count, "tensor").s, counted(elements, "element").s, human_size(bytes).s);
}

/* ---- listing ---- */

static void heading(const opts *o, const choice *c, const tn_attachment *a, const char *text, bool *listed)
{
    if (!o->json && !c->item && tn_attached_count(a) > 1)
        out("%s%s:\n", *listed ? "\n" : "", text);
    *listed = true;
}

static int list(const opts *o, const tn_attachment *a, const choice *c)
{
    const tn_attached *item;
    bool listed = false, separate = false;
    for (size_t i = 0; (item = tn_attached_at(a, i)); i++) {
        separate = separate || item->tensor;
        if (!item->file || !is_chosen(c, item))
            continue;
        heading(o, c, a, escaped(item->name), &listed);
        int code = list_file(o, item->name, item->file);
        if (code != EXIT_DONE)
            return code;
    }
    if (c->item || !separate)
        return EXIT_DONE;
    if (o->json)
        return json_tensors(o, a);
    if (listed)
        heading(o, c, a, "tensors", &listed);
    out_tensors(a);
    return EXIT_DONE;
}

/* ---- one tensor ---- */

static int show(const opts *o, const choice *c)
{
    dense d;
    tn_error err;
    if (c->item->file)
        return show_tensor(o, c->item->file, c->tensor);
    if (tn_check_decoded(&c->item->tensor, 1, o->max_bytes, &err) != TN_OK)
        return say_error(o->files[0], &err);
    int code = dense_make(o, c->item, &d);
    if (code == EXIT_DONE)
        code = show_tensor(o, NULL, &d.tensor);
    dense_free(c->item, &d);
    return code;
}

/* ---- checking ---- */

static int verify(const opts *o, const tn_attachment *a, const choice *c)
{
    const tn_attached *item;
    uint64_t separate = 0;
    int code = EXIT_DONE;
    for (size_t i = 0; (item = tn_attached_at(a, i)) && !signals_came(); i++) {
        separate += is_chosen(c, item) && item->tensor;
        if (is_chosen(c, item) && item->file)
            code = worse(code, visit_open_file(o, &verify_task, item->name, item->file));
    }
    if (separate)
        say("%s: %s without checksums, offered separately", escaped(o->files[0]),
            counted(separate, "tensor").s);
    return code;
}

/* ---- saving ---- */

/* A glob that matches this name and no other. */
static char *glob_of(const char *name)
{
    char *glob = must_allocate(2 * strlen(name) + 1, 1), *to = glob;
    for (; *name; name++) {
        if (strchr("*?[]\\", *name))
            *to++ = '\\';
        *to++ = *name;
    }
    return glob;
}

static int save_file(const opts *o, const choice *c)
{
    const rule_list none = { 0 };
    char *files[] = { o->files[0], (char *)(uintptr_t)o->out };
    char *glob = c->tensor ? glob_of(c->tensor->name) : NULL;
    const char *only[] = { glob };
    opts save = *o;
    save.files = files;
    save.nfiles = 2;
    if (glob)
        save.only = (text_list){ only, 1 };
    int code = convert_file(&save, c->item->file, &none);
    free(glob);
    return code;
}

/* The tensors offered separately that --only and --exclude choose. */
static int find_wanted(const opts *o, const tn_attachment *a, const choice *c, const tn_attached **items,
                       size_t *n)
{
    size_t count = tn_attached_count(a), offered = 0;
    const char **names = must_allocate(count, sizeof *names);
    bool *takes = must_allocate(count, sizeof *takes);
    tn_error err;
    for (size_t i = 0; i < count; i++) {
        const tn_attached *item = tn_attached_at(a, i);
        if (item->tensor && is_chosen(c, item)) {
            names[offered] = item->name;
            items[offered++] = item;
        }
    }
    tn_status status = tn_choose(names, offered, o->only.items, o->only.count, takes, &err);
    for (size_t i = 0; i < offered; i++)
        if (takes[i])
            items[(*n)++] = items[i];
    free(names);
    free(takes);
    return status == TN_OK ? EXIT_DONE : say_error(o->files[0], &err);
}

static tn_status write_tensors(const opts *o, const dense *tensors, size_t n, tn_error *err)
{
    tn_create_options options = create_options(o);
    tn_writer *writer;
    tn_status status = tn_create(o->out, &options, &writer, err);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < n && status == TN_OK; i++)
        status = tn_writer_add(writer, &tensors[i].tensor, err);
    if (status == TN_OK)
        return tn_writer_finish(writer, err);
    tn_writer_abandon(writer);
    return status;
}

static int say_saved(const opts *o, size_t n, tn_status status, const tn_error *err)
{
    if (o->json) {
        json_open('{');
        json_text_field("file", o->out);
        json_error_field(o->out, status == TN_OK ? NULL : err);
        json_uint_field("tensors", n);
        json_close('}');
        json_end();
    } else if (status == TN_OK && !o->quiet) {
        fprintf(stderr, "%s: %s\n", escaped(o->out), counted(n, "tensor").s);
    }
    return status == TN_OK ? EXIT_DONE : say_error(o->out, err);
}

/* Elements that overlap in memory take more bytes in a file, and the peer chooses how many. */
static int check_sizes(const opts *o, const tn_attached *const *items, size_t n)
{
    const tn_tensor **tensors = must_allocate(n, sizeof *tensors);
    tn_error err;
    for (size_t i = 0; i < n; i++)
        tensors[i] = items[i]->tensor;
    tn_status status = tn_check_decoded(tensors, n, o->max_bytes, &err);
    free(tensors);
    return status == TN_OK ? EXIT_DONE : say_error(o->files[0], &err);
}

static int save_tensors(const opts *o, const tn_attachment *a, const choice *c)
{
    size_t n = 0, made = 0, count = tn_attached_count(a);
    dense *tensors = must_allocate(count, sizeof *tensors);
    const tn_attached **items = must_allocate(count, sizeof *items);
    tn_error err;
    int code = find_wanted(o, a, c, items, &n);
    if (code == EXIT_DONE)
        code = check_sizes(o, items, n);
    for (; made < n && code == EXIT_DONE; made++)
        code = dense_make(o, items[made], &tensors[made]);
    if (code == EXIT_DONE)
        code = say_saved(o, n, write_tensors(o, tensors, n, &err), &err);
    for (size_t i = 0; i < made; i++)
        dense_free(items[i], &tensors[i]);
    free(items);
    free(tensors);
    return code;
}

/* Saves one file, or all tensors that are offered separately. */
static int save(const opts *o, const tn_attachment *a, choice *c)
{
    size_t count = tn_attached_count(a), files = 0;
    for (size_t i = 0; i < count; i++)
        files += tn_attached_at(a, i)->file != NULL;
    if (!c->item && files > 0 && count > 1)
        return usage_error("attach", "--out saves one file, but %zu are offered: name one", count);
    if (!c->item && count == 0) {
        return give_up(EXIT_BAD, "%s: nothing is offered", escaped(o->files[0]));
    }
    if (!c->item && files == 1)
        c->item = tn_attached_at(a, 0);
    return c->item && c->item->file ? save_file(o, c) : save_tensors(o, a, c);
}

/* ---- the run ---- */

#define SAVING  OPT_TO, OPTS_CHOICE, OPT_COMPRESS, OPT_CHECKSUM, OPT_DROP_METADATA, OPT_DROP_NAMES, OPT_FORCE
#define SHOWING OPT_SLICE, OPT_FULL

static int check_options(const opts *o)
{
    if (o->verify && o->out)
        return usage_error("attach", "--out also checks every checksum: give it or --verify, not both");
    const char *saving = first_given(o, OPTIONS(SAVING)), *showing = first_given(o, OPTIONS(SHOWING));
    if (saving && !o->out)
        return usage_error("attach", "--%s needs --out", saving);
    if (showing && (o->verify || o->out))
        return usage_error("attach", "--%s prints a tensor and does not go with --%s", showing,
                           o->verify ? "verify" : "out");
    if (showing && o->nfiles < 2)
        return usage_error("attach", "--%s needs the NAME of a tensor", showing);
    return EXIT_DONE;
}

static int act(const opts *o, const tn_attachment *a)
{
    choice c;
    int code = find(o, a, &c);
    if (code != EXIT_DONE)
        return code;
    if (c.tensor && o->only.count > 0)
        return usage_error("attach", "--only selects tensors of a file, but \"%s\" is a tensor",
                           escaped(o->files[1]));
    if (o->out)
        return save(o, a, &c);
    if (o->verify && c.item && c.item->file && c.tensor)
        return usage_error("attach", "--verify checks whole files: name \"%s\"", escaped(c.item->name));
    if (o->verify)
        return verify(o, a, &c);
    if (first_given(o, OPTIONS(SHOWING)) && !c.tensor)
        return usage_error("attach", "--%s needs the NAME of a tensor, but \"%s\" is a file",
                           first_given(o, OPTIONS(SHOWING)), escaped(o->files[1]));
    return c.tensor ? show(o, &c) : list(o, a, &c);
}

/* Only a file offered in place can be truncated; what was read of it is then not valid. */
static int check_whole(const opts *o, const tn_attachment *a, int code)
{
    const tn_attached *item;
    for (size_t i = 0; (item = tn_attached_at(a, i)); i++) {
        if (tn_buffer_broken(item->buffer)) {
            code = give_up(worse(code, EXIT_BAD), "%s: %s: the file was truncated while it was read",
                        escaped(o->files[0]), escaped(item->name));
        }
    }
    return code;
}

/* Called before anything is read from the server.  Failing is a message, as in "serve". */
static tn_status confine(void *context, tn_error *err)
{
    const opts *o = context;
    tn_error why;
    (void)err;
    if (tn_attach_confine(o->out, o->in_place, NULL, &why) != TN_OK)
        say("%s: not confined: %s", escaped(o->files[0]), why.text);
    return TN_OK;
}

static int run(const opts *o)
{
    const tn_attach_options options = {
        .size = sizeof options, .uids = o->uids.items, .nuids = o->uids.count, .in_place = o->in_place,
        .max_bytes = o->max_bytes, .connected = confine, .context = (void *)(uintptr_t)o,
    };
    tn_attachment *attachment;
    tn_error err;
    int code = check_options(o);
    if (code != EXIT_DONE)
        return code;
    signals_catch();
    if (tn_share_attach(o->files[0], &options, &attachment, &err) != TN_OK)
        return say_error(o->files[0], &err);
    if (tn_attached_withheld(attachment) > 0)
        say("%s: %s offered in place: use --in-place", escaped(o->files[0]),
            counted(tn_attached_withheld(attachment), tn_attached_count(attachment) ? "more item" : "item")
                .s);
    code = check_whole(o, attachment, act(o, attachment));
    tn_detach(attachment);
    return code;
}

const command cmd_attach = {
    .name = "attach",
    .operands = "SOCKET [NAME]",
    .summary = "List, print, check or save what \"tenon serve\" offers.",
    .about = "Lists everything, or the tensors of file NAME, or prints the values of tensor\n"
             "NAME (or FILE:NAME).  Nothing is copied: the memory is mapped and outlives the\n"
             "server.  Only servers of your own user, root and --allow-uid are trusted.",
    .details = "-o saves a file, or all tensors that are offered separately, or the tensor NAME,\n"
               "as \"tenon convert\" does.  --verify checks as \"tenon verify\" does; tensors that\n"
               "are offered separately have no checksum.  --in-place also takes files that are\n"
               "offered in place; if one of them is truncated while it is read, the command\n"
               "fails.\n\n"
               "Before it reads from the server, this process gives up executing programs,\n"
               "connecting anywhere and opening files; with -o and --in-place it keeps the files\n"
               "in the folder of the output and in that for temporary files (by seccomp and\n"
               "landlock, if the build and the system have them).",
    .example = "  $ tenon attach /run/user/1000/model.sock -o copy.zt --only 'h.0.*'",
    .min_files = 1,
    .max_files = 2,
    .accepts = OPTIONS(SAVING, SHOWING, OPT_LONG, OPT_VERIFY, OPT_OUT, OPT_IN_PLACE, OPT_ALLOW_UID,
                       OPT_JOBS, OPT_MEMORY, OPT_MAX_BYTES, OPT_QUIET, OPT_JSON),
    .elsewhere = OPTIONS(OPT_EXCLUDE, OPTS_OUTPUT, OPTS_INPUT, OPT_JOBS),
    .topics = "rules|output|input",
    .run = run,
};
