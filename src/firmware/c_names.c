/* firmware/c_names.c - names of tensors in C. */
#include "firmware/c_names.h"
#include "base/checked.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/file.h>

enum { PIECE = 72 };            /* columns of a text literal on one line */

/* ---- identifiers ---- */

static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
static bool is_digit(char c)  { return c >= '0' && c <= '9'; }

void tn_c_words(const char *name, char *to, size_t cap)
{
    size_t n = 0;
    bool between = false;
    for (; *name; name++) {
        bool taken = is_letter(*name) || is_digit(*name), joint = taken && between && n;
        if (n + joint + 1 >= cap)
            break;
        if (joint)
            to[n++] = '_';
        if (taken)
            to[n++] = *name;
        between = !taken;
    }
    to[n] = '\0';
}

/* A name that needs an identifier. */
typedef struct candidate {
    const char *words;
    size_t      index;
    bool        exact;          /* the name itself */
} candidate;

/* By words; then names that are already words come first; then by their order in the file. */
static int compare(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    int order = strcmp(x->words, y->words);
    if (order == 0 && x->exact != y->exact)
        order = x->exact ? -1 : 1;
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int compare_words(const void *key, const void *item)
{
    return strcmp(key, ((const candidate *)item)->words);
}

static tn_status take_words(const char *const *names, size_t n, tn_arena *arena, candidate *all,
                            tn_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char words[TN_C_WORDS_MAX + 1];
        tn_c_words(names[i], words, sizeof words);
        const char *text = words[0] ? words : "unnamed";
        all[i] = (candidate){ tn_arena_text(arena, text, strlen(text)), i, strcmp(text, names[i]) == 0 };
        TN_NEED(all[i].words, err);
    }
    qsort(all, n, sizeof *all, compare);
    return TN_OK;
}

/* A number is free if no name has these words with it.  Different words cannot lead to the same
 * identifier. */
static tn_status number(const candidate *all, size_t n, tn_arena *arena, const char **ids, tn_error *err)
{
    unsigned long long next = 2;
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || strcmp(all[i - 1].words, all[i].words) != 0;
        ids[all[i].index] = all[i].words;
        if (first) {
            next = 2;
            continue;
        }
        char id[TN_C_WORDS_MAX + 24];
        do
            snprintf(id, sizeof id, "%s_%llu", all[i].words, next++);
        while (bsearch(id, all, n, sizeof *all, compare_words));
        ids[all[i].index] = tn_arena_text(arena, id, strlen(id));
        TN_NEED(ids[all[i].index], err);
    }
    return TN_OK;
}

tn_status tn_c_identifiers(const char *const *names, size_t n, tn_arena *arena, const char **ids,
                           tn_error *err)
{
    candidate *all = calloc(n ? n : 1, sizeof *all);
    tn_status status = all ? take_words(names, n, arena, all, err) : tn_fail_nomem(err);
    if (!status)
        status = number(all, n, arena, ids, err);
    free(all);
    return status;
}

/* ---- prefixes ---- */

bool tn_c_is_prefix(const char *text)
{
    char words[TN_EXPORT_MAX_NAME + 2];
    tn_c_words(text, words, sizeof words);
    return is_letter(text[0]) && strcmp(words, text) == 0 && strlen(text) <= TN_EXPORT_MAX_NAME;
}

/* Length of a file's name without its suffix. */
static size_t stem_length(const char *name)
{
    size_t n = strlen(name);
    const tn_format_info *format;
    for (size_t i = 0; (format = tn_format_at(i)) != NULL; i++) {
        const char *end = format->index_suffix;
        if (end && n > strlen(end) && tn_ends_with(name, end))
            return n - strlen(end);
    }
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? (size_t)(dot - name) : n;
}

void tn_c_prefix(const char *path, char to[TN_EXPORT_MAX_NAME + 1])
{
    const char *name = tn_base_name(path);
    char stem[256], words[TN_EXPORT_MAX_NAME + 1] = "";
    snprintf(stem, sizeof stem, "%.*s", (int)tn_min_u64(stem_length(name), sizeof stem - 1), name);
    tn_c_words(stem, words, sizeof words);
    if (is_letter(words[0]))
        memcpy(to, words, sizeof words);
    else
        snprintf(to, TN_EXPORT_MAX_NAME + 1, "model%s%.*s", words[0] ? "_" : "", TN_EXPORT_MAX_NAME - 6,
                 words);
    for (size_t n = strlen(to); n && to[n - 1] == '_'; n--)     /* where it was cut */
        to[n - 1] = '\0';
}

/* ---- texts ---- */

/* Pairs that end or open a comment, or begin a trigraph. */
static bool is_pair(char a, char b)
{
    return (a == '*' && b == '/') || (a == '/' && b == '*') || (a == '?' && b == '?');
}

void tn_c_put_comment(tn_buf *b, const char *name)
{
    char text[120];
    tn_escape(text, sizeof text, name, strlen(name));
    tn_buf_putc(b, '"');
    for (size_t i = 0; text[i]; i++) {
        if (i && is_pair(text[i - 1], text[i]))
            tn_buf_putc(b, '\\');
        tn_buf_putc(b, text[i]);
    }
    tn_buf_putc(b, '"');
}

void tn_c_put_literal(tn_buf *b, const char *name, const char *more)
{
    size_t column = 0;
    tn_buf_putc(b, '"');
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        bool plain = *p >= ' ' && *p < 0x7f && !strchr("\"\\?", *p);
        if (column >= PIECE) {
            tn_buf_printf(b, "\"%s\"", more);
            column = 0;
        }
        if (plain)
            tn_buf_putc(b, (char)*p);
        else
            tn_buf_printf(b, "\\%03o", *p);
        column += plain ? 1 : 4;
    }
    tn_buf_putc(b, '"');
}
