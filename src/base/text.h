/* base/text.h - borrowed text, paths, UTF-8. */
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

static inline bool tn_text_equal(tn_text a, tn_text b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool tn_begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static inline bool tn_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

/* The last name of a path. */
static inline const char *tn_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static inline bool tn_text_has_nul(tn_text t)
{
    return t.len && memchr(t.ptr, 0, t.len) != NULL;
}

/* Whether it can only mean a file in the same folder: no slash, no NUL, not "." or "..". */
static inline bool tn_is_plain_name(tn_text name)
{
    return name.len && !memchr(name.ptr, '/', name.len) && !tn_text_has_nul(name) &&
           !tn_text_is(name, ".") && !tn_text_is(name, "..");
}

/* ASCII only: the C library's would depend on the locale. */
static inline char tn_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool tn_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* White space of JSON and of Python literals. */
static inline bool tn_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Appends a decimal digit to a number; false: it does not fit. */
static inline bool tn_add_digit(uint64_t *number, char digit)
{
    return !__builtin_mul_overflow(*number, 10, number) &&
           !__builtin_add_overflow(*number, (uint64_t)(digit - '0'), number);
}

/* The value of a hexadecimal digit in upper or lower case, or -1. */
static inline int tn_hex_digit(char c)
{
    char small = tn_lower(c);
    if (tn_is_digit(c))
        return c - '0';
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/* Reads exactly n bytes as pairs of hexadecimal digits; false: the text is something else. */
static inline bool tn_hex_read(tn_text digits, uint8_t *bytes, size_t n)
{
    bool valid = digits.len == 2 * n;
    for (size_t i = 0; valid && i < n; i++) {
        int high = tn_hex_digit(digits.ptr[2 * i]), low = tn_hex_digit(digits.ptr[2 * i + 1]);
        valid = high >= 0 && low >= 0;
        bytes[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
    return valid;
}

/* Bytes of the UTF-8 sequence that begins with this byte, if it is well-formed. */
static inline size_t tn_utf8_length(uint8_t first)
{
    return (size_t)1 + (first >= 0x80) + (first >= 0xe0) + (first >= 0xf0);
}

/* The length of the longest prefix that is well-formed UTF-8 (no overlong
 * forms, no surrogates, at most U+10FFFF): n when all of it is. */
size_t tn_utf8_valid(const void *text, size_t n);

/* The code point of a well-formed sequence of so many bytes. */
uint32_t tn_utf8_decode(const uint8_t *sequence, size_t n);

/* Whether a code point is invisible or changes the direction of text. */
bool tn_is_hidden(uint32_t code_point);

#endif
