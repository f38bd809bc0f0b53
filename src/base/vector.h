/* base/vector.h - growing arrays and byte strings in the heap. */
#ifndef TN_BASE_VECTOR_H
#define TN_BASE_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Makes room for one more item in the array `items`, which may move; `cap` is its room in items.
 * false: no memory, and the array is unchanged. */
#define TN_GROW(items, count, cap) tn_grow(&(items), count, &(cap), sizeof *(items))
bool tn_grow(void *address_of_items, size_t count, size_t *cap, size_t item_size);

/* A byte string that is written from front to back.  A failed one stays
 * failed: write everything, test `bad` once.  Zero-initialise to begin. */
typedef struct tn_buf {
    uint8_t *data;
    size_t   size, cap;
    bool     bad;               /* memory ran out */
} tn_buf;

/* Makes room for n more bytes; false: bad. */
bool tn_buf_reserve(tn_buf *b, size_t n);

/* Inline: indexes of very many tensors are written piece by piece. */
static inline void tn_buf_put(tn_buf *b, const void *data, size_t n)
{
    if (n && (n <= b->cap - b->size || tn_buf_reserve(b, n))) {
        memcpy(b->data + b->size, data, n);
        b->size += n;
    }
}

static inline void tn_buf_puts(tn_buf *b, const char *text)
{
    tn_buf_put(b, text, strlen(text));
}

static inline void tn_buf_putc(tn_buf *b, char c)
{
    if (b->size < b->cap || tn_buf_reserve(b, 1))
        b->data[b->size++] = (uint8_t)c;
}

uint8_t *tn_buf_room(tn_buf *b, size_t n);      /* for n bytes at the end, which are not counted; NULL: bad */
void tn_buf_fill(tn_buf *b, uint8_t byte, size_t n);
void tn_buf_put_int(tn_buf *b, int64_t value);      /* decimal */
void tn_buf_put_le(tn_buf *b, uint64_t value, unsigned n);     /* n bytes, little-endian */
__attribute__((format(printf, 2, 3)))
void tn_buf_printf(tn_buf *b, const char *format, ...);
void tn_buf_free(tn_buf *b);

#endif
