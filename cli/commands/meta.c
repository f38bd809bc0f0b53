/* cli/commands/meta.c - shows and edits metadata. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/say.h"
#include "ui/text.h"
#include "ui/whole_file.h"

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

/* The edits, and the memory that they point to. */
typedef struct changes {
    size_t        count;
    tn_meta_edit *edits;
    const char  **types;
    char        **keys, **texts;
} changes;

/* "KEY=VALUE", "KEY:TYPE=VALUE", or "KEY" alone. */
static void add_change(changes *c, const char *tensor, const char *change)
{
    size_t i = c->count++, length = strcspn(change, "=");
    char *key = must_allocate(length + 1, 1), *colon;
    memcpy(key, change, length);
    colon = strrchr(key, ':');
    if (colon && change[length] && tn_meta_type_exists(colon + 1)) {
        *colon = '\0';
        c->types[i] = colon + 1;
    }
    c->keys[i] = key;
    c->edits[i] = (tn_meta_edit){ tensor, key, change[length] ? change + length + 1 : NULL };
}

/* The text of an edit is that of the file it names. */
static int load_text(changes *c)
{
    enum { TEXT_MAX = 1 << 30 };
    tn_meta_edit *edit = &c->edits[c->count - 1];
    const char *path = edit->text;
    char *text = NULL;
    size_t size = 0;
    tn_error err;
    if (whole_file_read(path, TEXT_MAX, &text, &size, &err))
        return say_error(path, &err);
    bool has_nul = memchr(text, 0, size);
    text = must_resize(text, size + 1);
    text[size] = '\0';
    c->texts[c->count - 1] = text;
    edit->text = text;
    if (!has_nul)
        return EXIT_DONE;
    say("%s: expected a text but found a NUL character", escaped(path));
    return EXIT_BAD;
}

static int make_changes(const opts *o, changes *c)
{
    size_t n = o->changes.count + o->file_changes.count;
    int code = EXIT_DONE;
    c->edits = must_allocate(n, sizeof *c->edits);
    c->types = must_allocate(n, sizeof *c->types);
    c->keys = must_allocate(n, sizeof *c->keys);
    c->texts = must_allocate(n, sizeof *c->texts);
    for (size_t i = 0; i < o->changes.count; i++)
        add_change(c, o->tensor, o->changes.items[i]);
    for (size_t i = 0; i < o->file_changes.count && code == EXIT_DONE; i++) {
        add_change(c, o->tensor, o->file_changes.items[i]);
        code = load_text(c);
    }
    return code;
}

static void free_changes(changes *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->keys[i]);
        free(c->texts[i]);
    }
    free(c->edits);
    free(c->types);
    free(c->keys);
    free(c->texts);
}

static void edit_done(const opts *o, size_t n, uint64_t shared)
{
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
    changes c = { 0 };
    tn_error err;
    uint64_t shared = 0;
    int code = make_changes(o, &c);
    signals_catch();            /* an edit completes before a signal takes effect */
    const tn_edit_options options = { .size = sizeof options, .note = progress_note, .types = c.types };
    if (code == EXIT_DONE && tn_edit_meta(o->files[0], c.edits, c.count, &options, &shared, &err))
        code = say_error(NULL, &err);
    else if (code == EXIT_DONE)
        edit_done(o, c.count, shared);
    free_changes(&c);
    return code;
}

static int run(const opts *o)
{
    return o->changes.count + o->file_changes.count > 0 ? edit(o) : show(o);
}

const command cmd_meta = {
    .name = "meta",
    .operands = "FILE",
    .summary = "Print or edit metadata.",
    .about = "Prints the metadata of the file and of each tensor that has any.  --set and\n"
             "--unset are applied in order, --set-file after them.  They replace FILE\n"
             "atomically; the new file shares the data of the old one if the file system can.",
    .details = "Texts are printed in quotes, other values as JSON, long arrays shortened (--json\n"
               "prints all of them).  VALUE is a text.  In GGUF files, where values have types,\n"
               "it is of the type that KEY has.  TYPE says another: str, json, bool, u8, i8,\n"
               "u16, i16, u32, i32, u64, i64, f32, f64, a value of it or a JSON array of such.\n"
               "Edits are applied all or none. Several programs may edit a file at once: none\n"
               "undoes the edits of another.",
    .example = "  $ tenon meta model.zt --set licence=MIT --unset draft\n"
               "  $ tenon meta model.gguf --set general.file_type:u32=15\n"
               "  $ tenon meta model.gguf --set-file tokenizer.chat_template=chat.jinja",
    .min_files = 1,
    .max_files = 1,
    .accepts = OPTIONS(OPT_JSON, OPT_TENSOR, OPT_SET, OPT_SET_FILE, OPT_UNSET, OPT_QUIET),
    .run = run,
};
