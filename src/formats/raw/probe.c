/* formats/raw/probe.c - whether the first bytes of a file are those of a
 * WIA-AI-011 document.
 *
 * A descriptor says so in its version.  The specification's examples of sparse
 * tensors have none, and members of a document come in any order, so the names
 * of those that begin within the first bytes decide. */
#include "formats/raw/raw.h"
#include "descriptor/descriptor.h"

#include <string.h>

typedef struct scanner {
    const char *text;
    size_t      pos, end;
} scanner;

/* The next character that is not white space, or NUL at the end. */
static char next(scanner *s)
{
    while (s->pos < s->end && tn_is_space(s->text[s->pos]))
        s->pos++;
    return s->pos < s->end ? s->text[s->pos] : '\0';
}

static bool take(scanner *s, char c)
{
    bool there = next(s) == c;
    s->pos += there;
    return there;
}

/* A string without its quotes, escapes not decoded; ptr NULL: there is none, or it has no end. */
static tn_text take_string(scanner *s)
{
    if (!take(s, '"'))
        return (tn_text){ 0 };
    size_t begin = s->pos;
    while (s->pos < s->end && s->text[s->pos] != '"')
        s->pos += s->text[s->pos] == '\\' ? 2 : 1;
    if (s->pos >= s->end) {
        s->pos = s->end;
        return (tn_text){ 0 };
    }
    return (tn_text){ s->text + begin, s->pos++ - begin };
}

/* Up to the comma or bracket behind the value. */
static void skip_value(scanner *s)
{
    for (size_t depth = 0; s->pos < s->end;) {
        char c = s->text[s->pos];
        if (depth == 0 && (c == ',' || c == '}'))
            return;
        if (c == '"') {
            take_string(s);
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= depth > 0 && (c == '}' || c == ']');
        s->pos++;
    }
}

static bool is_one_of(tn_text text, const char *const *words)
{
    if (!text.ptr)
        return false;
    while (*words && !tn_text_is(text, *words))
        words++;
    return *words != NULL;
}

/* Sure: "format" is COO or CSR, or a member is one that only sparse tensors have.
 * Likely: all members are in the specification, and one of them is essential. */
static int probe_members(scanner *s)
{
    static const char *const formats[] = { "COO", "CSR", NULL };
    static const char *const sparse[] = { "nnz", "row_pointers", "column_indices", NULL };
    static const char *const essential[] = { "shape", "indices", "values", "buffer_handle", "mapping",
                                             "scheme", NULL };
    bool foreign = false, found = false;
    tn_text key;
    while ((key = take_string(s)).ptr && take(s, ':')) {
        scanner value = *s;
        bool format = tn_text_is(key, "format") && is_one_of(take_string(&value), formats);
        if (format || is_one_of(key, sparse))
            return TN_RAW_SURE;
        foreign |= !tn_wia_is_member(key);
        found |= is_one_of(key, essential);
        skip_value(s);
        if (!take(s, ','))
            break;
    }
    return found && !foreign ? TN_RAW_LIKELY : 0;
}

int tn_raw_probe(const uint8_t *head, size_t n)
{
    static const char mark[] = "\"WIA-AI-011";
    scanner s = { .text = (const char *)head, .end = n };
    bool list = take(&s, '[');
    if (list && take(&s, ']'))
        return next(&s) == '\0' && s.pos == n ? TN_RAW_POSSIBLE : 0;     /* no descriptor at all */
    if (!take(&s, '{'))
        return 0;
    return memmem(head, n, mark, strlen(mark)) ? TN_RAW_SURE : probe_members(&s);
}
