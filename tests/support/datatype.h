/* tests/support/datatype.h - a datatype by its text.  Include it after support.h. */
#ifndef TN_TESTS_DATATYPE_H
#define TN_TESTS_DATATYPE_H

#include <tenon/datatype.h>

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
