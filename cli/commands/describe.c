/* cli/commands/describe.c - the WIA-AI-011 descriptors of tensors. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1000 };          /* descriptors that are printed at a time */

/* Descriptors from several calls, as one list. */
typedef struct collection {
    tn_descriptors **sets;
    size_t           nsets;
    const tn_descriptor *items;
    size_t           count;
    tn_descriptor   *copies;    /* of the items, if they come from several sets */
} collection;

static int add_set(collection *c, const char *path, const tn_file *file, const tn_tensor *tensor)
{
    tn_descriptors *set;
    tn_error err;
    if (tn_describe(file, tensor, &set, &err) != TN_OK)
        return say_error(path, &err);
    c->sets[c->nsets++] = set;
    c->count += tn_descriptors_count(set);
    return EXIT_DONE;
}

/* Puts the descriptors of all sets into one array. */
static void join_sets(collection *c)
{
    size_t n = 0;
    c->copies = must_allocate(c->count, sizeof *c->copies);
    c->items = c->copies;
    for (size_t i = 0; i < c->nsets; i++)
        for (size_t k = 0; k < tn_descriptors_count(c->sets[i]); k++)
            c->copies[n++] = *tn_descriptors_at(c->sets[i], k);
}

/* The named tensors, or all. */
static int collect(collection *c, const opts *o, const tn_file *file)
{
    const char *path = o->files[0];
    int code = EXIT_DONE;
    c->sets = must_allocate(o->nfiles, sizeof *c->sets);
    if (o->nfiles == 1) {
        code = add_set(c, path, file, NULL);
        c->items = code == EXIT_DONE ? tn_descriptors_at(c->sets[0], 0) : NULL;
        return code;
    }
    for (size_t i = 1; i < o->nfiles && code == EXIT_DONE; i++) {
        const tn_tensor *tensor = find_tensor(path, file, o->files[i]);
        if (!tensor)
            return EXIT_BAD;
        code = add_set(c, path, file, tensor);
    }
    join_sets(c);
    return code;
}

static void collection_free(collection *c)
{
    for (size_t i = 0; i < c->nsets; i++)
        tn_descriptors_free(c->sets[i]);
    free(c->sets);
    free(c->copies);
}

static void json_written(const char *path, size_t count, size_t size)
{
    json_open('{');
    json_text_field("file", path);
    json_uint_field("count", count);
    json_uint_field("bytes", size);
    json_close('}');
    json_end();
}

static int write_sidecar(const opts *o, const collection *c)
{
    static const char suffix[] = ".wia.json";
    size_t n = strlen(o->files[0]);
    char *path = must_allocate(n + sizeof suffix, 1);
    memcpy(path, o->files[0], n);
    memcpy(path + n, suffix, sizeof suffix);
    tn_error err;
    size_t size = 0;
    const tn_save_options options = {
        .size = sizeof options, .list = c->count != 1, .replace = o->force, .note = progress_note,
    };
    tn_status status = tn_descriptors_save(c->items, c->count, path, &options, &size, &err);
    int code = EXIT_DONE;
    if (status != TN_OK)
        code = say_error(path, &err);
    else if (o->json)
        json_written(path, c->count, size);
    else if (!o->quiet)
        fprintf(stderr, "%s: %s, %s\n", escaped(path), counted(c->count, "descriptor").s, human_size(size).s);
    free(path);
    return code;
}

/* With --json: an object that has the list. */
static int print_json(const opts *o, const collection *c)
{
    json_open('{');
    json_text_field("file", o->files[0]);
    json_key("descriptors");
    json_open('[');
    for (size_t from = 0; from < c->count; from += PIECE) {
        size_t n = c->count - from < PIECE ? c->count - from : PIECE, size;
        char *json;
        tn_error err;
        if (tn_descriptors_write(c->items + from, n, true, &json, &size, &err) != TN_OK)
            return say_error(o->files[0], &err);
        *strrchr(json, ']') = '\0';
        json_lines(strchr(json, '[') + 1);
        free(json);
    }
    json_close(']');
    json_close('}');
    json_end();
    return EXIT_DONE;
}

/* Items [from, from + n) of the list; only the first and the last piece have its brackets. */
static int print_piece(const opts *o, const collection *c, size_t from, size_t n)
{
    static const char end[] = "\n]\n";
    char *json;
    size_t size;
    tn_error err;
    if (tn_descriptors_write(c->items + from, n, true, &json, &size, &err) != TN_OK)
        return say_error(o->files[0], &err);
    bool first = from == 0, last = from + n == c->count;
    if (!first)
        out_text(",");
    out_bytes(json + !first, size - !first - (last ? 0 : strlen(end)));
    free(json);
    return EXIT_DONE;
}

/* Long lists are printed in pieces, so that their text does not fill memory. */
static int print(const opts *o, const collection *c)
{
    char *json;
    size_t size;
    tn_error err;
    if (c->count > PIECE) {
        int code = EXIT_DONE;
        for (size_t from = 0; from < c->count && code == EXIT_DONE; from += PIECE)
            code = print_piece(o, c, from, c->count - from < PIECE ? c->count - from : PIECE);
        return code;
    }
    if (tn_descriptors_write(c->items, c->count, c->count != 1, &json, &size, &err) != TN_OK)
        return say_error(o->files[0], &err);
    out_bytes(json, size);
    if (size == 0 || json[size - 1] != '\n')
        out_text("\n");
    free(json);
    return EXIT_DONE;
}

static int put(const opts *o, const collection *c)
{
    if (o->sidecar)
        return write_sidecar(o, c);
    return o->json ? print_json(o, c) : print(o, c);
}

static int run(const opts *o)
{
    if (o->force && !o->sidecar)
        return usage_error("describe", "--force needs --sidecar");
    tn_file *file;
    signals_catch();            /* a sidecar is completed before a signal takes effect */
    int code = open_input(o, o->files[0], &file);
    if (code != EXIT_DONE)
        return code;
    collection c = { 0 };
    code = collect(&c, o, file);
    if (code == EXIT_DONE)
        code = put(o, &c);
    collection_free(&c);
    tn_close(file);
    return code;
}

const command cmd_describe = {
    .name = "describe",
    .operands = "FILE [NAME]...",
    .summary = "Print WIA-AI-011 descriptors of tensors.",
    .about = "One tensor gives a JSON object, several give an array.  A tensor that is stored\n"
             "raw, in host byte order and aligned to 64 bytes is described in place:\n"
             "offset_bytes counts from the start of FILE, or of the shard that the member\n"
             "\"tenon\" names.  Any other tensor is described as a dense buffer of its own, a\n"
             "sparse one with its entries.",
    .example = "  $ tenon describe model.zt conv1.weight",
    .min_files = 1,
    .max_files = SIZE_MAX,
    .accepts = OPTIONS(OPT_SIDECAR, OPT_JSON, OPT_MAX_BYTES, OPT_FORCE, OPT_QUIET, OPT_FROM, OPT_IO),
    .elsewhere = OPTIONS(OPTS_INPUT),
    .topics = "input",
    .run = run,
};
