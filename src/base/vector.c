/* base/vector.c - growing arrays and byte strings. */
#include "base/vector.h"
#include "base/checked.h"
#include "base/pages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tn_grow(void *address_of_items, size_t count, size_t *cap, size_t item_size)
{
    if (count < *cap)
        return true;
    size_t room = *cap ? *cap : 8;
    uint64_t bytes;
    if (!tn_mul_u64(room, 2 * (uint64_t)item_size, &bytes) || bytes > SIZE_MAX)
        return false;
    void *items;
    memcpy(&items, address_of_items, sizeof items);     /* a pointer of any type */
    items = tn_pages_grow(items, (size_t)bytes);
    if (!items)
        return false;
    memcpy(address_of_items, &items, sizeof items);
    *cap = room * 2;
    return true;
}

enum { SMALLEST = 64 };

bool tn_buf_reserve(tn_buf *b, size_t n)
{
    if (b->bad || n <= b->cap - b->size)
        return !b->bad;
    size_t need = b->size + n, cap = b->cap * 2 > SMALLEST ? b->cap * 2 : SMALLEST;
    if (cap < need)
        cap = need;
    uint8_t *moved = need < n ? NULL : tn_pages_grow(b->data, cap);
    b->bad = !moved;
    if (moved)
        b->data = moved;
    b->cap = moved ? cap : b->size;     /* one that has failed has no room */
    return !b->bad;
}

uint8_t *tn_buf_room(tn_buf *b, size_t n)
{
    return tn_buf_reserve(b, n ? n : 1) ? b->data + b->size : NULL;
}

void tn_buf_put_int(tn_buf *b, int64_t value)
{
    static const char pairs[] =
        "000102030405060708091011121314151617181920212223242526272829"
        "303132333435363738394041424344454647484950515253545556575859"
        "606162636465666768697071727374757677787980818283848586878889"
        "90919293949596979899";
    char text[20];
    size_t at = sizeof text;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    for (; left >= 10; left /= 100) {
        const char *pair = pairs + left % 100 * 2;
        text[--at] = pair[1];
        text[--at] = pair[0];
    }
    if (left || at == sizeof text)
        text[--at] = (char)('0' + left);
    if (value < 0)
        tn_buf_putc(b, '-');
    tn_buf_put(b, text + at, sizeof text - at);
}

void tn_buf_fill(tn_buf *b, uint8_t byte, size_t n)
{
    if (n && tn_buf_reserve(b, n)) {
        memset(b->data + b->size, byte, n);
        b->size += n;
    }
}

void tn_buf_put_le(tn_buf *b, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        tn_buf_putc(b, (char)(value >> 8 * i & 0xff));
}

void tn_buf_printf(tn_buf *b, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof text) {
        tn_buf_put(b, text, (size_t)n);
        return;
    }
    b->bad = true;              /* for numbers and short words only: use tn_buf_put() for longer text */
    b->cap = b->size;
}

void tn_buf_free(tn_buf *b)
{
    free(b->data);
    *b = (tn_buf){ 0 };
}
