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

#endif
