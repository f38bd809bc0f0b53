/* base/text.c - UTF-8 validation. */
#include "base/text.h"

static size_t ascii_run(const uint8_t *s, size_t i, size_t n)
{
    for (; n - i >= 32; i += 32) {
        uint64_t w[4];
        memcpy(w, s + i, 32);
        if ((w[0] | w[1] | w[2] | w[3]) & UINT64_C(0x8080808080808080))
            break;
    }
    while (i < n && s[i] < 0x80)
        i++;
    return i;
}

/* Length of the well-formed sequence at s, whose first byte is not ASCII; 0 when there is none. */
static size_t sequence(const uint8_t *s, size_t left)
{
    uint8_t lo = 0x80, hi = 0xbf;       /* bounds of the second byte */
    size_t len;
    if (s[0] >= 0xc2 && s[0] <= 0xdf) {
        len = 2;
    } else if (s[0] >= 0xe0 && s[0] <= 0xef) {
        len = 3;
        lo = s[0] == 0xe0 ? 0xa0 : lo;  /* overlong */
        hi = s[0] == 0xed ? 0x9f : hi;  /* surrogates */
    } else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        len = 4;
        lo = s[0] == 0xf0 ? 0x90 : lo;  /* overlong */
        hi = s[0] == 0xf4 ? 0x8f : hi;  /* beyond U+10FFFF */
    } else {
        return 0;
    }
    if (len > left || s[1] < lo || s[1] > hi)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

size_t tn_utf8_valid(const void *text, size_t n)
{
    const uint8_t *s = text;
    size_t i = 0;
    while ((i = ascii_run(s, i, n)) < n) {
        size_t len = sequence(s + i, n - i);
        if (!len)
            return i;
        i += len;
    }
    return n;
}
