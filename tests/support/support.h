/* tests/support/support.h - what every unit test includes. */
#ifndef TN_TESTS_SUPPORT_H
#define TN_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tenon/error.h>

/* Shorter than cmocka's own; the failed expression and line are printed. */
#define CHECK(expression) assert_true(expression)

/* A test function as STYLE has them: void name(void). */
#define TEST(function) { #function, (CMUnitTestFunction)(void (*)(void))function, NULL, NULL, NULL }

/* A heap block of exactly n bytes, so that AddressSanitizer guards its end. */
static inline uint8_t *exact_copy(const void *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n)
        memcpy(copy, data, n);
    return copy;
}

/* An error as programs show it: FILE: byte N: tensor "T": TEXT.  Good until the fourth call after this one. */
static inline const char *line_of(const tn_error *err)
{
    static char lines[4][TN_ERROR_LINE];
    static unsigned turn;
    char *line = lines[turn++ % 4];
    assert_true(tn_error_format(err, line, TN_ERROR_LINE) < TN_ERROR_LINE);
    return line;
}

/* The same without file and byte. */
static inline const char *said_of(const tn_error *err)
{
    tn_error said = *err;
    said.file[0] = '\0';
    said.offset = TN_NO_OFFSET;
    return line_of(&said);
}

#endif
