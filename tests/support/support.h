/* tests/support/support.h - what every unit test includes. */
#ifndef TN_TESTS_SUPPORT_H
#define TN_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

/* An error as programs show it, with what can be done about it in API terms: FILE: byte N: tensor "T": TEXT
 * (form coo).  Good until the fourth call after this one. */
static inline const char *line_of(const tn_error *err)
{
    static const char *const reason_names[] = {
        "", "max_bytes", "replace", "drop_metadata", "drop_names", "form", "cast", "only", "rename", "layout",
        "nan", "encoding", "checksum", "format", "open_format", "format_option", "shard_size", "", "header",
        "jobs", "windows", "uids", "bind", "mli", "binary", "cast_before", "form_before", "rename_before",
        "casts", "", "", "", "rules", "raw_codes", "type", "glob",
        "graph", "external", "importance",
    };
    static char lines[4][TN_ERROR_LINE + 100];
    static unsigned turn;
    char *line = lines[turn++ % 4];
    size_t n = tn_error_format(err, line, TN_ERROR_LINE);
    assert_true(n < TN_ERROR_LINE && (size_t)err->reason < sizeof reason_names / sizeof *reason_names);
    if (err->reason)
        snprintf(line + n, sizeof lines[0] - n, " (%s%s%s)", reason_names[err->reason],
                 err->value[0] ? " " : "", err->value);
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
