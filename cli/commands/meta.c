/* cli/commands/meta.c - shows and edits metadata. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void out_meta(const char *whose, const char *name, const tn_meta *meta, size_t count)
{
    out("%s%s: %s\n", whose, name ? escaped(name) : "", counted(count, "key").s);
    for (size_t i = 0; i < count; i++)
        out("  %s = %s\n", escaped(meta[i].key), meta_text(&meta[i]));
}

static void json_tensor_meta(const tn_tensor *tensor)
{
    json_key(tensor->name);
    json_meta(tensor->meta, tensor->nmeta);
}

static void show_json(const char *path, const tn_file *file, const tn_tensor *one)
{
    json_open('{');
    json_text_field("file", path);
    if (!one) {
        size_t count;
        const tn_meta *meta = tn_file_meta(file, &count);
        json_key("metadata");
        json_meta(meta, count);
    }
    json_key("tensors");
    json_open('{');
    if (one)
        json_tensor_meta(one);
    for (size_t i = 0; !one && i < tn_file_count(file); i++) {
        if (tn_file_tensor(file, i)->nmeta > 0)
            json_tensor_meta(tn_file_tensor(file, i));
    }
    json_close('}');
    json_close('}');
    json_end();
}

static void show_text(const tn_file *file, const tn_tensor *one)
{
    if (one) {
        out_meta("tensor ", one->name, one->meta, one->nmeta);
        return;
    }
    size_t count;
    const tn_meta *meta = tn_file_meta(file, &count);
    out_meta("file", NULL, meta, count);
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_tensor *tensor = tn_file_tensor(file, i);
        if (tensor->nmeta > 0)
            out_meta("tensor ", tensor->name, tensor->meta, tensor->nmeta);
    }
}

static int show(const opts *o)
{
    const char *path = o->files[0];
    tn_file *file;
    int code = open_input(o, path, &file);
    if (code != EXIT_DONE)
        return code;
    const tn_tensor *one = o->tensor ? find_tensor(path, file, o->tensor) : NULL;
    if (o->tensor && !one) {
        code = EXIT_BAD;
    } else if (o->json) {
        show_json(path, file, one);
    } else {
        show_text(file, one);
    }
    tn_close(file);
    return code;
}

/* Turns "KEY=VALUE" and "KEY" into edits; `keys` gets copies of the keys. */
static void make_edits(const opts *o, tn_meta_edit *edits, char **keys)
{
    for (size_t i = 0; i < o->changes.count; i++) {
        const char *change = o->changes.items[i];
        size_t length = strcspn(change, "=");
        keys[i] = must_allocate(length + 1, 1);
        memcpy(keys[i], change, length);
        edits[i] = (tn_meta_edit){ o->tensor, keys[i], change[length] ? change + length + 1 : NULL };
    }
}

static void edit_done(const opts *o, uint64_t shared)
{
    size_t n = o->changes.count;
    if (o->json) {
        json_open('{');
        json_text_field("file", o->files[0]);
        json_uint_field("changes", n);
        json_uint_field("shared_bytes", shared);
        json_close('}');
        json_end();
    } else if (!o->quiet) {
        fprintf(stderr, "%s: %s, ", escaped(o->files[0]), counted(n, "change").s);
        if (shared > 0)
            fprintf(stderr, "%s shared with the old file\n", human_size(shared).s);
        else
            fprintf(stderr, "data copied\n");
    }
}

static int edit(const opts *o)
{
    size_t n = o->changes.count;
    tn_meta_edit *edits = must_allocate(n, sizeof *edits);
    char **keys = must_allocate(n, sizeof *keys);
    make_edits(o, edits, keys);
    tn_error err;
    uint64_t shared = 0;
    int code = EXIT_DONE;
    signals_catch();            /* an edit completes before a signal takes effect */
    const tn_edit_options options = { .size = sizeof options, .note = progress_note };
    if (tn_edit_meta(o->files[0], edits, n, &options, &shared, &err) == TN_OK)
        edit_done(o, shared);
    else
        code = say_error(NULL, &err);
    for (size_t i = 0; i < n; i++)
        free(keys[i]);
    free(keys);
    free(edits);
    return code;
}

static int run(const opts *o) { return o->changes.count > 0 ? edit(o) : show(o); }

const command cmd_meta = {
    .name = "meta",
    .operands = "FILE",
    .summary = "Print or edit metadata.",
    .about = "Prints the metadata of the file and of each tensor that has any.  --set and\n"
             "--unset are applied in order.  They replace FILE atomically; the new file shares\n"
             "the data of the old one if the file system can.",
    .details = "Texts are printed in quotes, other values as JSON.  Edits are applied all or\n"
               "none. Several programs may edit a file at once: none undoes the edits of\n"
               "another.",
    .example = "  $ tenon meta model.zt --set licence=MIT --unset draft",
    .min_files = 1,
    .max_files = 1,
    .accepts = OPTIONS(OPT_JSON, OPT_TENSOR, OPT_SET, OPT_UNSET, OPT_QUIET),
    .run = run,
};
