/* descriptor/fields.c - reading members: known and unknown keys, duplicates, words, numbers, and the path of
 * a failure. */
#include "descriptor/reader.h"
#include "descriptor/extents.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* --- failing --- */

void tn_wia_reject(tn_wia_reader *r, size_t at, const char *format, ...)
{
    if (r->j.status)
        return;
    char why[sizeof r->j.why];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    r->j.pos = at;
    tn_json_reject(&r->j, TN_ERR_CORRUPT, "%s", why);
}

bool tn_wia_nomem(tn_wia_reader *r)
{
    return tn_json_reject(&r->j, TN_ERR_NOMEM, "out of memory");
}

/* The path to a byte: one step per object and array around it. */
typedef struct step {
    bool     object, before_key;
    size_t   index;             /* of the item in an array */
    size_t   key, key_end;      /* the key in the text, quotes included; 0, 0 before the first */
} step;

static size_t string_end(const char *text, size_t p, size_t at)
{
    for (p++; p < at && text[p] != '"'; p++)
        p += text[p] == '\\';
    return p < at ? p + 1 : at;
}

/* Scans the text up to `at` again: only after a failure. The text before it is well-formed, unless it is not
 * UTF-8; then any path will do. */
static unsigned steps_to(const char *text, size_t at, step steps[TN_JSON_MAX_DEPTH])
{
    unsigned depth = 0;
    for (size_t p = 0; p < at; p++) {
        step *top = depth ? &steps[depth - 1] : NULL;
        switch (text[p]) {
        case '{':
        case '[':
            if (depth < TN_JSON_MAX_DEPTH)
                steps[depth++] = (step){ .object = text[p] == '{', .before_key = true };
            break;
        case '}':
        case ']':
            depth -= depth > 0;
            break;
        case ',':
            if (top) {
                top->index++;
                top->before_key = true;
            }
            break;
        case '"':;
            size_t end = string_end(text, p, at);
            if (top && top->object && top->before_key && end < at) {
                top->key = p;
                top->key_end = end;
                top->before_key = false;
            }
            p = end - 1;
            break;
        default:
            break;
        }
    }
    return depth;
}

static bool is_plain(const char *key, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((key[i] >= 'a' && key[i] <= 'z') || (key[i] >= 'A' && key[i] <= 'Z') || key[i] == '_' ||
              (key[i] >= '0' && key[i] <= '9')))
            return false;
    return n > 0 && n <= 64;
}

/* The path of byte `at`: memory.strides[1], metadata["a b"].c; cut where it is very long. */
static void path_of(const char *text, size_t at, char *path, size_t cap)
{
    step steps[TN_JSON_MAX_DEPTH];
    unsigned depth = steps_to(text, at, steps);
    size_t n = 0;
    path[0] = '\0';
    for (unsigned i = 0; i < depth && n + 1 < cap; i++) {
        const char *key = text + steps[i].key + 1;
        size_t length = steps[i].key_end - steps[i].key;
        int put = 0;
        if (!steps[i].object)
            put = snprintf(path + n, cap - n, "[%zu]", steps[i].index);
        else if (steps[i].before_key)
            break;
        else if (is_plain(key, length - 2))
            put = snprintf(path + n, cap - n, "%s%.*s", n ? "." : "", (int)(length - 2), key);
        else
            put = snprintf(path + n, cap - n, "[%s]", tn_quote(key, length - 2).text);
        n += put > 0 ? (size_t)put : 0;
    }
}

tn_status tn_wia_fail(const tn_wia_reader *r, const char *text, size_t n, tn_error *err)
{
    const tn_json *j = &r->j;
    if (j->status == TN_ERR_NOMEM)
        return tn_fail_nomem(err);
    char path[240];
    path_of(text, j->at < n ? j->at : n, path, sizeof path);
    return tn_fail_at(err, j->status, j->at, "%s%s%s", path, path[0] ? ": " : "", j->why);
}

/* --- keys --- */

/* Skips any value; the JSON reader bounds the recursion. */
static void take_value(tn_wia_reader *r)
{
    tn_json *j = &r->j;
    size_t first = r->keys.count;
    tn_text key;
    switch (tn_json_peek(j)) {
    case TN_JSON_OBJECT:
        tn_json_object(j);
        while (tn_json_key(j, &key) && tn_json_push_key(&r->j, &r->keys, key))
            take_value(r);
        tn_json_pop_keys(&r->j, &r->keys, first);
        break;
    case TN_JSON_ARRAY:
        tn_json_array(j);
        while (tn_json_item(j))
            take_value(r);
        break;
    default:
        tn_json_skip(j);
    }
}

const char *tn_wia_raw(tn_wia_reader *r)
{
    const tn_json *j = &r->j;
    size_t begin = tn_wia_at(r);
    take_value(r);
    return tn_wia_kept(r, (tn_text){ j->text + begin, j->pos - begin });
}

void tn_wia_keep(tn_wia_reader *r, const char *path, tn_text key)
{
    if (!TN_GROW(r->extra, r->nextra, r->extra_cap)) {
        tn_wia_nomem(r);
        return;
    }
    if (tn_text_has_nul(key)) {
        tn_wia_reject(r, r->j.pos, "expected a key without NUL but found %s",
                      tn_quote(key.ptr, key.len).text);
        return;
    }
    const char *name = tn_wia_kept(r, key);
    const char *json = tn_wia_raw(r);
    r->extra[r->nextra++] = (tn_wia_extra){ .path = path, .key = name, .json = json };
}

/* Documents mostly have the order of the specification: the next field is tried first. */
static size_t find_field(const tn_wia_field *fields, size_t n, size_t next, tn_text key)
{
    for (size_t tried = 0; tried < n; tried++, next++) {
        next = next < n ? next : 0;
        if (tn_text_equal(fields[next].name, key))
            return next;
    }
    return n;
}

bool tn_wia_has_field(const tn_wia_field *fields, size_t n, tn_text name)
{
    return find_field(fields, n, 0, name) < n;
}

static void read_value(tn_wia_reader *r, const tn_wia_field *field, void *to)
{
    int word = field->words ? tn_wia_word(r, field->words) : 0;
    switch (field->kind) {
    case TN_WIA_BOOL: *(bool *)to = tn_json_bool(&r->j);            break;
    case TN_WIA_I64:  *(int64_t *)to = tn_json_i64(&r->j);          break;
    case TN_WIA_U64:  *(uint64_t *)to = tn_json_u64(&r->j);         break;
    case TN_WIA_SIZE: *(int64_t *)to = tn_wia_size(r);              break;
    case TN_WIA_TEXT: *(const char **)to = tn_wia_text(r);          break;
    case TN_WIA_ENUM: memcpy(to, &word, sizeof word);               break;
    case TN_WIA_FLAG: *(bool *)to = word == 1;                      break;
    }
}

unsigned tn_wia_object(tn_wia_reader *r, const char *path, const tn_wia_field *fields, size_t n, void *object)
{
    tn_json *j = &r->j;
    unsigned have = 0;
    size_t next = 0, first = r->keys.count;
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        size_t k = find_field(fields, n, next, key);
        if (k == n) {
            if (tn_json_push_key(&r->j, &r->keys, key))
                tn_wia_keep(r, path, key);
            continue;
        }
        if (have >> k & 1)
            tn_wia_reject(r, j->pos, "expected every key once but found \"%s\" again", fields[k].name.ptr);
        have |= 1u << k;
        if (fields[k].read)
            fields[k].read(r);
        else
            read_value(r, &fields[k], (uint8_t *)object + fields[k].offset);
        next = k + 1;
    }
    tn_json_pop_keys(&r->j, &r->keys, first);
    return have;
}

/* --- text and words --- */

size_t tn_wia_at(tn_wia_reader *r)
{
    tn_json_peek(&r->j);
    return r->j.pos;
}

tn_text tn_wia_string(tn_wia_reader *r, size_t *at)
{
    *at = tn_wia_at(r);
    tn_text text = tn_json_string(&r->j);
    if (tn_text_has_nul(text))
        tn_wia_reject(r, *at, "expected text without NUL but found %s", tn_quote(text.ptr, text.len).text);
    return text;
}

const char *tn_wia_kept(tn_wia_reader *r, tn_text text)
{
    const char *kept = r->j.status ? NULL : tn_arena_text(&r->set->arena, text.ptr, text.len);
    if (!kept)
        tn_wia_nomem(r);
    return kept;
}

const void *tn_wia_copy(tn_wia_reader *r, const void *items, size_t size)
{
    const void *copy = r->j.status ? NULL : tn_arena_copy(&r->set->arena, items, size);
    if (!copy)
        tn_wia_nomem(r);
    return copy;
}

const char *tn_wia_text(tn_wia_reader *r)
{
    size_t at;
    return tn_wia_kept(r, tn_wia_string(r, &at));
}

const char *tn_wia_symbol(tn_wia_reader *r, tn_text name, size_t at)
{
    const char *kept = tn_wia_kept(r, name);
    if (kept && (tn_text_has_nul(name) || !tn_is_symbol(kept)))
        tn_wia_reject(r, at, "expected a symbol of letters, digits and _ but found %s",
                      tn_quote(name.ptr, name.len).text);
    return kept;
}

/* "a, b or c" */
static void list_words(const tn_words *words, char *list, size_t cap)
{
    size_t n = 0;
    list[0] = '\0';
    for (int i = 0; i < words->count; i++) {
        if (!words->words[i])
            continue;
        const char *separator = i == words->count - 1 ? " or " : ", ";
        int put = snprintf(list + n, cap - n, "%s%s", n ? separator : "", words->words[i]);
        n += (size_t)put < cap - n ? (size_t)put : 0;
    }
}

static bool is_word(tn_text text, const char *word, bool any_case)
{
    if (!any_case || text.len != strlen(word))
        return tn_text_is(text, word);
    for (size_t i = 0; i < text.len; i++)
        if (tn_lower(text.ptr[i]) != tn_lower(word[i]))
            return false;
    return true;
}

int tn_wia_word(tn_wia_reader *r, const tn_words *words)
{
    size_t at;
    tn_text text = tn_wia_string(r, &at);
    for (int i = 0; i < words->count && !r->j.status; i++)
        if (words->words[i] && is_word(text, words->words[i], words->any_case))
            return i;
    char list[80];
    list_words(words, list, sizeof list);
    tn_wia_reject(r, at, "expected %s but found %s", list, tn_quote(text.ptr, text.len).text);
    return 0;
}

/* --- numbers --- */

bool tn_wia_room(tn_wia_reader *r, uint32_t n)
{
    if (n < TN_MAX_RANK)
        return true;
    tn_json_peek(&r->j);
    return tn_json_reject(&r->j, TN_ERR_LIMIT, "expected at most %d dimensions but found more", TN_MAX_RANK);
}

int64_t tn_wia_size(tn_wia_reader *r)
{
    size_t at = tn_wia_at(r);
    uint64_t value = tn_json_u64(&r->j);
    if (value <= INT64_MAX)
        return (int64_t)value;
    r->j.pos = at;
    return tn_json_reject(&r->j, TN_ERR_LIMIT, "expected a number below 2^63 but found %llu",
                          (unsigned long long)value);
}

/* "NaN", "Infinity" or "-Infinity"; fails for any other string. */
static double not_finite(tn_wia_reader *r)
{
    size_t at;
    tn_text text = tn_wia_string(r, &at);
    if (tn_text_is(text, "NaN"))
        return (double)NAN;
    if (tn_text_is(text, "Infinity"))
        return HUGE_VAL;
    if (tn_text_is(text, "-Infinity"))
        return -HUGE_VAL;
    tn_wia_reject(r, at, "expected a number, \"NaN\", \"Infinity\" or \"-Infinity\" but found %s",
                  tn_quote(text.ptr, text.len).text);
    return 0;
}

double tn_wia_f64(tn_wia_reader *r)
{
    return tn_json_peek(&r->j) == TN_JSON_STRING ? not_finite(r) : tn_json_f64(&r->j);
}

bool tn_wia_push(tn_wia_reader *r, uint64_t word)
{
    if (!TN_GROW(r->words, r->nwords, r->words_cap))
        return tn_wia_nomem(r);
    r->words[r->nwords++] = word;
    return true;
}

const int64_t *tn_wia_integers(tn_wia_reader *r, size_t *n)
{
    r->nwords = 0;
    tn_json_array(&r->j);
    while (tn_json_item(&r->j) && tn_wia_push(r, (uint64_t)tn_json_i64(&r->j)))
        ;
    *n = r->nwords;
    return tn_wia_copy(r, r->words, *n * sizeof *r->words);
}
