/* tests/support/hex.h - bytes as tests spell them.  Include it after support.h. */
#ifndef TN_TESTS_HEX_H
#define TN_TESTS_HEX_H

#include <stdio.h>

/* Bytes from hexadecimal digits; spaces are allowed. */
static inline size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (unsigned value; *hex; hex += 2) {
        hex += strspn(hex, " ");
        CHECK(sscanf(hex, "%2x", &value) == 1);
        out[n++] = (uint8_t)value;
    }
    return n;
}

#endif
