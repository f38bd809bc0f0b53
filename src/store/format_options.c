/* store/format_options.c - options that only one format has: FORMAT.KEY=VALUE. */
#include "base/error.h"
#include "store/writer.h"

#include <stdio.h>
#include <string.h>

/* Word i of a list; empty at its end. */
typedef tn_text (*word_at)(const void *list, size_t i);

static tn_text format_at(const void *list, size_t i)
{
    const tn_format_info *info = tn_format_at(i);
    (void)list;
    return info ? (tn_text){ info->name, strlen(info->name) } : (tn_text){ 0 };
}

static tn_text key_at(const void *list, size_t i)
{
    const tn_format_key *keys = list;
    const char *name = keys ? keys[i].name : NULL;
    return name ? (tn_text){ name, strlen(name) } : (tn_text){ 0 };
}

/* Of "a|b|c". */
static tn_text value_at(const void *list, size_t i)
{
    const char *value = list;
    for (; i && *value; i--) {
        value += strcspn(value, "|");
        value += *value == '|';
    }
    return (tn_text){ value, strcspn(value, "|") };
}

/* For messages: "a, b or c". */
typedef struct words { char text[200]; } words;

static words list_words(word_at at, const void *list)
{
    words all = { "" };
    size_t used = 0;
    for (size_t i = 0; at(list, i).len && used < sizeof all.text; i++) {
        tn_text word = at(list, i);
        const char *before = at(list, i + 1).len ? ", " : " or ";
        used += (size_t)snprintf(all.text + used, sizeof all.text - used, "%s%.*s", i ? before : "",
                                 (int)word.len, word.ptr);
    }
    return all;
}

/* The number of a word in its list, or -1. */
static int find_word(word_at at, const void *list, const char *word)
{
    for (int i = 0; at(list, (size_t)i).len; i++)
        if (tn_text_is(at(list, (size_t)i), word))
            return i;
    return -1;
}

static tn_status take_option(tn_writer *w, const tn_format_option *o, unsigned *given, tn_error *err)
{
    char name[100];
    snprintf(name, sizeof name, "%s.%s", o->format, o->key);
    tn_quoted who = tn_quote_z(name);
    const tn_format *format = tn_format_find(o->format);
    if (!format)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s: expected %s but found %s", who.text,
                       list_words(format_at, NULL).text, tn_quote_z(o->format).text);
    const tn_format_key *keys = format->info.keys;
    int k = find_word(key_at, keys, o->key);
    if (!keys)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s: %s has no options of its own", who.text, o->format);
    if (k < 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s: expected %s of %s but found %s", who.text,
                       list_words(key_at, keys).text, o->format, tn_quote_z(o->key).text);
    if (format != w->format)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s: it is for %s and the output is %s", who.text,
                       o->format, w->format->info.name);
    const char *values = keys[k].values;
    bool any = !*values && *o->value;
    int value = any ? 0 : find_word(value_at, values, o->value);
    if (value < 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s: expected %s but found %s", who.text,
                       *values ? list_words(value_at, values).text : "a text", tn_quote_z(o->value).text);
    if (*given & 1u << k)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s is given twice", who.text);
    *given |= 1u << k;
    w->choices[k] = (uint8_t)value;
    if (any)
        w->texts[k] = tn_arena_text(&w->arena, o->value, strlen(o->value));
    return any && !w->texts[k] ? tn_fail_nomem(err) : TN_OK;
}

tn_status tn_check_format_options(const tn_create_options *o, tn_error *err)
{
    TN_GIVEN(o->format_options || !o->nformat_options, "options of a format", err);
    for (size_t i = 0; i < o->nformat_options; i++)
        if (!o->format_options[i].format || !o->format_options[i].key || !o->format_options[i].value)
            return tn_fail(err, TN_ERR_ARGUMENT, "an option of a format has a format, a key and a value");
    return TN_OK;
}

tn_status tn_writer_take_format_options(tn_writer *w, tn_error *err)
{
    tn_create_options *o = &w->options;
    unsigned given = 0;
    TN_TRY(tn_check_format_options(o, err));
    for (size_t i = 0; i < o->nformat_options; i++)
        TN_TRY(take_option(w, &o->format_options[i], &given, err));
    o->format_options = NULL;           /* the caller's: not looked at again */
    o->nformat_options = 0;
    return TN_OK;
}

unsigned tn_writer_choice(const tn_writer *w, const char *key)
{
    int k = find_word(key_at, w->format->info.keys, key);
    return k < 0 ? 0 : w->choices[k];
}

const char *tn_writer_text(const tn_writer *w, const char *key)
{
    int k = find_word(key_at, w->format->info.keys, key);
    return k < 0 ? NULL : w->texts[k];
}
