/* base/text.h - borrowed text, UTF-8. */
#ifndef TN_BASE_TEXT_H
#define TN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Text that somebody else owns; not NUL-terminated. */
typedef struct tn_text {
    const char *ptr;
    size_t      len;
} tn_text;

static inline bool tn_text_is(tn_text t, const char *literal)
{
    size_t n = strlen(literal);
    return t.len == n && memcmp(t.ptr, literal, n) == 0;
}

static inline bool tn_text_has_nul(tn_text t)
{
    return t.len && memchr(t.ptr, 0, t.len) != NULL;
}

/* ASCII only: the C library's would depend on the locale. */
static inline char tn_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The value of a hexadecimal digit in upper or lower case, or -1. */
static inline int tn_hex_digit(char c)
{
    char small = tn_lower(c);
    if (c >= '0' && c <= '9')
        return c - '0';
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/* The length of the longest prefix that is well-formed UTF-8 (no overlong
 * forms, no surrogates, at most U+10FFFF): n when all of it is. */
size_t tn_utf8_valid(const void *text, size_t n);

#endif
