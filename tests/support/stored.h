/* tests/support/stored.h - how a part is stored, in one expression. */
#ifndef TN_TESTS_STORED_H
#define TN_TESTS_STORED_H

#include <tenon/file.h>

static inline tn_stored_info stored_info(const tn_part *part)
{
    tn_stored_info info = { .size = sizeof info };
    tn_part_stored(NULL, part, &info);
    return info;
}

#endif
