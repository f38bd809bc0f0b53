/* tests/support/datatype.h - a datatype by its text.  Include it after support.h. */
#ifndef TN_TESTS_DATATYPE_H
#define TN_TESTS_DATATYPE_H

#include <tenon/datatype.h>

/* Names of block types come last: test_blocks.c has their tests. */
static inline bool is_block_type(const tn_datatype_name *name) { return strcmp(name->family, "GGUF") == 0; }

/* The names before them, by number; NULL after the last. */
static inline const tn_datatype_name *tiles_at(size_t i)
{
    const tn_datatype_name *name = tn_datatype_at(i);
    return name && !is_block_type(name) ? name : NULL;
}

/* The caller frees it. */
static inline tn_datatype *datatype_of(const char *text)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    if (tn_datatype_parse(text, &d, &err))
        fail_msg("%s: %s", text, line_of(&err));
    return d;
}

#endif
