/* tests/fuzz/literals.h - the texts that stand in a C source, decoded: unit tests
 * have one for every rule of a grammar, good and bad. */
#ifndef TN_FUZZ_LITERALS_H
#define TN_FUZZ_LITERALS_H

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"

enum { LITERAL_MAX = 8192 };

/* One escape behind the backslash; returns what follows it. */
static inline const char *take_escape(const char *at, char *to)
{
    static const char names[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    const char *known = *at ? strchr(names, *at) : NULL;
    if (*at == 'x') {
        unsigned value = 0;
        for (at++; isxdigit((unsigned char)*at); at++)
            value = value * 16 + (unsigned)(isdigit((unsigned char)*at) ? *at - '0' : (*at | 32) - 'a' + 10);
        *to = (char)value;
        return at;
    }
    if (*at >= '0' && *at <= '7') {
        unsigned value = 0;
        for (int i = 0; i < 3 && *at >= '0' && *at <= '7'; i++)
            value = value * 8 + (unsigned)(*at++ - '0');
        *to = (char)value;
        return at;
    }
    *to = known ? values[known - names] : *at;
    return at + 1;
}

/* The literal at a quote, and those that follow it with nothing between; *n gets its size. */
static inline const char *take_literal(const char *at, char to[LITERAL_MAX], size_t *n)
{
    *n = 0;
    while (*at == '"') {
        for (at++; *at && *at != '"'; ) {
            char c = *at;
            at = c == '\\' ? take_escape(at + 1, &c) : at + 1;
            if (*n < LITERAL_MAX)
                to[(*n)++] = c;
        }
        at += *at == '"';
        const char *next = at + strspn(at, " \t\n\\");
        if (*next != '"')
            break;
        at = next;
    }
    return at;
}

/* Calls `use` for each of them, those of #include lines excepted. */
typedef void (*literal_fn)(const char *target, const char *text, size_t n);

static inline void each_literal(const char *path, const char *target, literal_fn use)
{
    static char source[1 << 20], text[LITERAL_MAX];
    FILE *f = fopen(path, "r");
    snprintf(require_note, sizeof require_note, "(%.150s)", path);
    REQUIRE(f);
    require_note[0] = '\0';
    source[fread(source, 1, sizeof source - 1, f)] = '\0';
    fclose(f);
    for (const char *at = source; *at; ) {
        size_t n;
        if (strncmp(at, "/*", 2) == 0) {
            const char *end = strstr(at, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else if (*at == '\'') {
            at += at[1] == '\\' ? 4 : 3;
        } else if (strncmp(at, "#include", 8) == 0) {
            at += strcspn(at, "\n");
        } else if (*at == '"') {
            at = take_literal(at, text, &n);
            use(target, text, n);
        } else {
            at++;
        }
    }
}

#endif
