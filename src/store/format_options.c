/* store/format_options.c - options that only one format has: FORMAT.KEY=VALUE. */
#include "base/error.h"
#include "store/writer.h"

#include <stdio.h>
#include <string.h>

/* A list of words for a message, each with what stands before it: "a, b or c". */
typedef struct words { char text[200]; size_t used, count; } words;

static void add_word(words *w, const char *word, size_t n, bool last)
{
    const char *before = last ? " or " : ", ";
    if (w->count == 0)
        before = "";
    int added = snprintf(w->text + w->used, sizeof w->text - w->used, "%s%.*s", before, (int)n, word);
    w->used += (size_t)added < sizeof w->text - w->used ? (size_t)added : 0;
    w->count++;
}

static words known_formats(void)
{
    words w = { .text = "" };
    for (size_t i = 0; tn_format_at(i); i++)
        add_word(&w, tn_format_at(i)->name, strlen(tn_format_at(i)->name), !tn_format_at(i + 1));
    return w;
}

static words known_keys(const tn_format_key *keys)
{
    words w = { .text = "" };
    for (; keys && keys->name; keys++)
        add_word(&w, keys->name, strlen(keys->name), !keys[1].name);
    return w;
}

static words known_values(const char *values)
{
    words w = { .text = "" };
    for (size_t n; *values; values += n + (values[n] == '|')) {
        n = strcspn(values, "|");
        add_word(&w, values, n, !values[n]);
    }
    return w;
}

/* The place of a word in "a|b|c", or -1. */
static int value_number(const char *values, const char *word)
{
    size_t length = strlen(word);
    for (int i = 0; *values; i++) {
        size_t n = strcspn(values, "|");
        if (n == length && memcmp(values, word, n) == 0)
            return i;
        values += n + (values[n] == '|');
    }
    return -1;
}

static tn_status find_key(const tn_format *format, const tn_format_option *o, const char *who, size_t *k,
                          tn_error *err)
{
    const tn_format_key *keys = format->info.keys;
    for (*k = 0; keys && keys[*k].name; ++*k)
        if (strcmp(keys[*k].name, o->key) == 0)
            return TN_OK;
    if (!keys)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s: %s has no options of its own", who, o->format);
    return tn_fail(err, TN_ERR_ARGUMENT, "option %s: expected %s of %s but found %s", who,
                   known_keys(keys).text, o->format, tn_quote_z(o->key).text);
}

static tn_status take_option(tn_writer *w, const tn_format_option *o, unsigned *given, tn_error *err)
{
    char name[100];
    size_t k;
    if (!o->format || !o->key || !o->value)
        return tn_fail(err, TN_ERR_ARGUMENT, "an option of a format has a format, a key and a value");
    snprintf(name, sizeof name, "%s.%s", o->format, o->key);
    tn_quoted who = tn_quote_z(name);
    const tn_format *format = tn_format_find(o->format);
    if (!format)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s: expected %s but found %s", who.text,
                       known_formats().text, tn_quote_z(o->format).text);
    tn_status status = find_key(format, o, who.text, &k, err);
    if (status)
        return status;
    if (format != w->format)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s: it is for %s and the output is %s", who.text,
                       o->format, w->format->info.name);
    const char *values = format->info.keys[k].values;
    int value = value_number(values, o->value);
    if (value < 0)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s: expected %s but found %s", who.text,
                       known_values(values).text, tn_quote_z(o->value).text);
    if (*given & 1u << k)
        return tn_fail(err, TN_ERR_ARGUMENT, "option %s is given twice", who.text);
    *given |= 1u << k;
    w->choices[k] = (uint8_t)value;
    return TN_OK;
}

tn_status tn_writer_take_format_options(tn_writer *w, tn_error *err)
{
    tn_create_options *o = &w->options;
    unsigned given = 0;
    tn_status status = TN_OK;
    for (size_t i = 0; i < o->nformat_options && !status; i++)
        status = take_option(w, &o->format_options[i], &given, err);
    o->format_options = NULL;           /* the caller's: not looked at again */
    o->nformat_options = 0;
    return status;
}
