/* pipeline/map.c - tables that say what tensors are called elsewhere: reading them, and numbers of heads. */
#include "pipeline/map.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/vector.h"
#include "bytes/json.h"
#include "bytes/source.h"
#include "pipeline/rules/rules.h"
#include "store/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 16 << 20, MAX_LINE = 1000 };

/* ---- rows ---- */

/* The next word of a line; empty at its end or before a comment. */
static tn_text next_word(tn_text *line)
{
    while (line->len && (*line->ptr == ' ' || *line->ptr == '\t' || *line->ptr == '\r')) {
        line->ptr++;
        line->len--;
    }
    tn_text word = { line->ptr, 0 };
    if (line->len && *line->ptr == '#')
        line->len = 0;
    while (word.len < line->len && !strchr(" \t\r", line->ptr[word.len]))
        word.len++;
    line->ptr += word.len;
    line->len -= word.len;
    return word;
}

static size_t count_stars(tn_text name)
{
    size_t n = 0;
    for (size_t i = 0; i < name.len; i++)
        n += name.ptr[i] == '*';
    return n;
}

static bool begins_with(tn_text word, const char *text)
{
    return word.len > strlen(text) && memcmp(word.ptr, text, strlen(text)) == 0;
}

static bool take_action(tn_text word, tn_map_row *row)
{
    if (tn_text_is(word, "f32"))
        return row->is_float32 = true;
    if (tn_text_is(word, "transpose"))
        return row->is_transposed = true;
    if (tn_text_is(word, "stack"))
        return row->is_stacked = true;
    if (begins_with(word, "add="))
        return tn_rule_double((tn_text){ word.ptr + 4, word.len - 4 }, &row->add) && row->add != 0;
    row->heads = begins_with(word, "rope=") ? (tn_text){ word.ptr + 5, word.len - 5 } : row->heads;
    return tn_text_is(row->heads, "heads") || tn_text_is(row->heads, "kv_heads");
}

static bool is_left_out(tn_text name) { return tn_text_is(name, "-"); }

/* NULL: the row is good; else what is wrong with it. */
static const char *read_row(tn_text line, tn_map_row *row)
{
    row->from = next_word(&line);
    row->to = next_word(&line);
    if (!row->to.len)
        return "expected two names";
    for (tn_text word; (word = next_word(&line)).len;)
        if (!take_action(word, row))
            return "expected rope=heads, rope=kv_heads, add=NUMBER, transpose, f32 or stack after the names";
    size_t here = count_stars(row->from), there = count_stars(row->to) + row->is_stacked;
    bool one_side = is_left_out(row->from) || is_left_out(row->to);
    if (is_left_out(row->from) && is_left_out(row->to))
        return "expected at least one name";
    if (here > TN_MAP_STARS || there > TN_MAP_STARS || (!one_side && here != there))
        return "expected as many stars in both names, and one more before stack";
    return NULL;
}

static tn_status add_line(tn_map *map, size_t *cap, tn_text line, size_t number, tn_error *err)
{
    tn_map_row row = { .add = 0 };
    tn_text rest = line, first = next_word(&rest);
    if (!first.len)
        return TN_OK;
    const char *wrong = line.len > MAX_LINE ? "expected at most 1000 characters" : NULL;
    if (tn_text_is(first, "models:"))
        map->models = rest;
    else if (!wrong)
        wrong = read_row(line, &row);
    if (wrong)
        return tn_fail(err, TN_ERR_ARGUMENT, "line %zu of map %s: %s", number, tn_quote_z(map->name).text,
                       wrong);
    if (!row.to.len)
        return TN_OK;
    TN_NEED(TN_GROW(map->rows, map->count, *cap), err);
    map->rows[map->count++] = row;
    return TN_OK;
}

/* ---- tables ---- */

static tn_status read_file(tn_map *map, size_t *cap, tn_arena *arena, tn_error *err)
{
    tn_text text;
    TN_TRY(tn_source_load(map->name, MAX_FILE, "a table", arena, &text, err));
    for (size_t number = 1; text.len; number++) {
        const char *end = memchr(text.ptr, '\n', text.len);
        tn_text line = { text.ptr, end ? (size_t)(end - text.ptr) : text.len };
        size_t taken = line.len + (end != NULL);
        TN_TRY(add_line(map, cap, line, number, err));
        text.ptr += taken;
        text.len -= taken;
    }
    return TN_OK;
}

static tn_status no_such_map(const char *name, tn_error *err)
{
    tn_nearest nearest = { .word = name };
    char known[200] = "";
    for (size_t i = 0, n = 0; tn_map_tables[i].name; i++) {
        tn_nearest_offer(&nearest, tn_map_tables[i].name);
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", tn_map_tables[i].name);
    }
    tn_status status = tn_fail(err, TN_ERR_ARGUMENT, "unknown map %s: expected %s, or the path of a table",
                               tn_quote_z(name).text, known);
    return tn_and_nearest(status, &nearest, err);
}

static tn_status read_lines(tn_map *map, size_t *cap, tn_arena *arena, tn_error *err)
{
    size_t t = 0;
    while (tn_map_tables[t].name && strcmp(tn_map_tables[t].name, map->name) != 0)
        t++;
    if (!tn_map_tables[t].name)
        return strpbrk(map->name, "/.") ? read_file(map, cap, arena, err) : no_such_map(map->name, err);
    for (size_t i = 0; tn_map_tables[t].lines[i]; i++) {
        const char *line = tn_map_tables[t].lines[i];
        TN_TRY(add_line(map, cap, (tn_text){ line, strlen(line) }, i + 1, err));
    }
    return TN_OK;
}

tn_status tn_map_read(const char *name, tn_arena *arena, tn_map *map, tn_error *err)
{
    size_t cap = 0;
    *map = (tn_map){ .name = name };
    tn_status status = read_lines(map, &cap, arena, err);
    tn_map_row *rows = status ? NULL : tn_arena_copy(arena, map->rows, map->count * sizeof *rows);
    free(map->rows);
    map->rows = rows;
    return status || rows ? status : tn_fail_nomem(err);
}

/* ---- names ---- */

/* A star is digits: what follows it decides where they end. */
bool tn_map_matches(tn_text pattern, const char *name, tn_text stars[TN_MAP_STARS])
{
    size_t star = 0;
    for (size_t i = 0; i < pattern.len; i++) {
        if (pattern.ptr[i] != '*') {
            if (*name++ != pattern.ptr[i])
                return false;
            continue;
        }
        stars[star] = (tn_text){ name, strspn(name, "0123456789") };
        if (!stars[star].len)
            return false;
        name += stars[star++].len;
    }
    return !*name;
}

tn_status tn_map_is_backward(const tn_map *map, const tn_file *file, bool *backward, tn_error *err)
{
    size_t here = 0, there = 0;
    tn_text stars[TN_MAP_STARS];
    for (size_t i = 0; i < tn_file_count(file); i++)
        for (size_t r = 0; r < map->count; r++) {
            here += tn_map_matches(map->rows[r].from, tn_file_tensor(file, i)->name, stars);
            there += tn_map_matches(map->rows[r].to, tn_file_tensor(file, i)->name, stars);
        }
    *backward = there > here;
    if (here || there)
        return TN_OK;
    return tn_fail(err, TN_ERR_ARGUMENT, "map %s has none of the names of this file",
                   tn_quote_z(map->name).text);
}

/* ---- what the model says ---- */

/* What is wanted of config.json: of it or of its text_config, which models with pictures have. */
typedef struct config {
    const char *key;
    uint64_t    number;         /* of the key; 0: it is not there */
    tn_text     model[2];       /* the kind of model: of all, of the text */
} config;

static void read_config(tn_json *j, config *c, unsigned depth)
{
    tn_text found;
    tn_json_object(j);
    while (tn_json_key(j, &found)) {
        tn_json_type type = tn_json_peek(j);
        if (tn_text_is(found, c->key) && type == TN_JSON_NUMBER)
            c->number = tn_json_u64(j);
        else if (tn_text_is(found, "model_type") && type == TN_JSON_STRING)
            c->model[depth] = tn_json_string(j);
        else if (!depth && tn_text_is(found, "text_config") && type == TN_JSON_OBJECT)
            read_config(j, c, depth + 1);
        else
            tn_json_skip(j);
    }
}

/* The file beside the input, if there is one; texts live in the arena. */
static tn_status load_config(const tn_file *file, config *c, tn_arena *arena, tn_error *err)
{
    const char *path = tn_file_path(file);
    const char *beside = tn_arena_printf(arena, "%.*sconfig.json", (int)(tn_base_name(path) - path), path);
    tn_text text;
    bool there;
    tn_json j;
    TN_NEED(beside, err);
    if (!*path)
        return TN_OK;
    TN_TRY(tn_source_load_if(beside, MAX_FILE, "a configuration", arena, &text, &there, err));
    if (!there)
        return TN_OK;
    tn_json_init(&j, text.ptr, text.len, arena);
    read_config(&j, c, 0);
    tn_json_done(&j);
    return j.status ? tn_in_file(tn_json_fail(&j, 0, err), beside, err) : TN_OK;
}

/* A key of a file's metadata that is a number, of any width; 0: it is not there. */
static uint64_t number_of_key(const tn_file *file, const char *key)
{
    size_t n;
    const tn_meta *meta = tn_file_meta(file, &n);
    char text[24];
    uint64_t number = 0;
    for (size_t i = 0; i < n; i++) {
        size_t length = strcmp(meta[i].key, key) == 0 ? tn_meta_json(&meta[i], text, sizeof text) : 0;
        if (!length || length >= sizeof text || !tn_rule_number((tn_text){ text, length }, &number))
            continue;
        return number;
    }
    return 0;
}

/* NULL: no file, or it does not say. */
static const char *architecture_of(const tn_file *file)
{
    size_t n = 0;
    const tn_meta *meta = file ? tn_file_meta(file, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(meta[i].key, "general.architecture") == 0)
            return meta[i].text;
    return NULL;
}

static uint64_t number_of_gguf(const tn_file *file, const char *key)
{
    const char *architecture = architecture_of(file);
    char whole[200];
    if (!architecture)
        return 0;
    snprintf(whole, sizeof whole, "%s.attention.%s", architecture, key);
    return number_of_key(file, whole);
}

/* ---- numbers of heads ---- */

tn_status tn_map_heads(const tn_file *file, const tn_file *other, tn_text which, int64_t *heads,
                       tn_error *err)
{
    bool of_keys = tn_text_is(which, "kv_heads");
    const char *key = of_keys ? "head_count_kv" : "head_count";
    config c = { .key = of_keys ? "num_key_value_heads" : "num_attention_heads" };
    uint64_t number = number_of_gguf(file, key);
    tn_arena arena = { 0 };
    tn_status status = number ? TN_OK : load_config(file, &c, &arena, err);
    tn_arena_free(&arena);
    TN_TRY(status);
    number = number ? number : c.number;
    number = number ? number : number_of_gguf(other, key);
    if (!number && of_keys)             /* as many as others, if nothing is said of them */
        return tn_map_heads(file, other, (tn_text){ "heads", 5 }, heads, err);
    if (!number || number > INT32_MAX)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "its rows are moved by heads, but nothing says how many there are: expected %s in "
                       "config.json beside it, or ARCHITECTURE.attention.%s in the metadata", c.key, key);
    *heads = (int64_t)number;
    return TN_OK;
}

/* ---- the kind of model ---- */

static bool is_for(const tn_map *map, tn_text model)
{
    tn_text rest = map->models, word;
    while ((word = next_word(&rest)).len)
        if (word.len == model.len && memcmp(word.ptr, model.ptr, word.len) == 0)
            return true;
    return false;
}

static tn_status check_model(const tn_map *map, tn_text model, tn_error *err)
{
    if (!model.len || is_for(map, model))
        return TN_OK;
    tn_text rest = map->models;
    while (rest.len && *rest.ptr == ' ')
        rest = (tn_text){ rest.ptr + 1, rest.len - 1 };
    return tn_fail(err, TN_ERR_ARGUMENT, "map %s is for %s but the model is %s: its names may mean something "
                   "else there", tn_quote_z(map->name).text, tn_quote(rest.ptr, rest.len).text,
                   tn_quote(model.ptr, model.len).text);
}

static tn_text architecture_text(const tn_file *file)
{
    const char *text = architecture_of(file);
    return (tn_text){ text, text ? strlen(text) : 0 };
}

static tn_status check_config(const tn_map *map, const tn_file *file, tn_error *err)
{
    tn_arena arena = { 0 };
    config c = { .key = "" };
    tn_status status = load_config(file, &c, &arena, err);
    if (!status)
        status = check_model(map, c.model[c.model[1].len ? 1 : 0], err);
    tn_arena_free(&arena);
    return status;
}

tn_status tn_map_check_model(const tn_map *map, const tn_file *file, const tn_file *other, tn_error *err)
{
    if (!map->models.len)
        return TN_OK;
    TN_TRY(check_model(map, architecture_text(other), err));
    if (architecture_of(file))
        return check_model(map, architecture_text(file), err);
    return check_config(map, file, err);
}
