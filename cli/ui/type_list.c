/* cli/ui/type_list.c - the datatypes of --types. */
#include "ui/type_list.h"

#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *text, size_t n)
{
    char *copy = must_allocate(n + 1, 1);
    memcpy(copy, text, n);
    return copy;
}

/* The number of a character, counted from 1. */
static size_t character(const char *text, const char *at)
{
    size_t n = 1;
    for (; text < at; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static int add_type(type_list *types, const char *list, const char *at, size_t n)
{
    type_item *one = &types->items[types->count];
    tn_error err;
    *one = (type_item){ .text = copy_text(at, n) };
    types->count++;
    if (tn_datatype_load(one->text, &one->datatype, &err) != TN_OK) {
        int code = worse(EXIT_USAGE, exit_code(err.status));
        tn_nearest nearest = { .word = one->text };
        const tn_datatype_name *name;
        for (size_t i = 0; (name = tn_datatype_at(i)); i++)
            tn_nearest_offer(&nearest, name->name);
        return give_up_by(code, &err, "--types \"%s\": the type at character %zu: %s%s%s", escaped(list),
                       character(list, at), error_line(&err), did_you_mean(&nearest),
                       code == EXIT_USAGE ? " (see: tenon datatypes)" : "");
    }
    for (const type_item *other = types->items; other < one; other++) {
        if (strcmp(tn_datatype_text(other->datatype), tn_datatype_text(one->datatype)) == 0) {
            return give_up(EXIT_USAGE,
                           "--types \"%s\": \"%s\" at character %zu is the same as \"%s\" before it",
                           escaped(list), escaped(one->text), character(list, at), escaped(other->text));
        }
    }
    return EXIT_DONE;
}

/* One type: what has a '=' before the next comma is a key of it, as in int8,per=tensor. */
static size_t type_length(const char *at)
{
    size_t n = strcspn(at, ",");
    while (at[n] && at[n + 1 + strcspn(at + n + 1, ",=")] == '=')
        n += 1 + strcspn(at + n + 1, ",");
    return n;
}

int types_read(type_list *types, const char *list)
{
    size_t most = 1;
    for (const char *p = list; *p; p++)
        most += *p == ',';
    types->items = must_allocate(most, sizeof *types->items);
    for (const char *at = list;;) {
        size_t n = type_length(at);
        int code = add_type(types, list, at, n);
        if (code != EXIT_DONE || !at[n])
            return code;
        at += n + 1;
    }
}

void types_free(type_list *types)
{
    for (size_t i = 0; i < types->count; i++) {
        free(types->items[i].text);
        tn_datatype_free(types->items[i].datatype);
    }
    free(types->items);
}
