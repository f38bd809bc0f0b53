/* base/arena.c - blocks that grow with use, freed together. */
#include "base/arena.h"
#include "base/checked.h"
#include "base/pages.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tn_arena_block {
    struct tn_arena_block *older;
    size_t size;
    alignas(max_align_t) uint8_t bytes[];
};

/* The largest block with its head fills exactly two huge pages. */
enum { FIRST_BLOCK = 4 << 10, LARGEST_STEP = (4 << 20) - (int)sizeof(struct tn_arena_block) };

/* Adds a new aligned block with space for `size` bytes. */
static bool add_block(tn_arena *a, size_t size)
{
    size_t step = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK;
    step = step < LARGEST_STEP ? step : LARGEST_STEP;
    step = size > step ? size : step;
    if (step > SIZE_MAX - sizeof(struct tn_arena_block))
        return false;
    struct tn_arena_block *block = tn_pages_alloc(sizeof *block + step);
    if (!block)
        return false;
    *block = (struct tn_arena_block){ .older = a->blocks, .size = step };
    a->blocks = block;
    a->next = block->bytes;
    a->left = step;
    return true;
}

static void *take(tn_arena *a, size_t size)
{
    if ((size > a->left || !a->next) && !add_block(a, size))
        return NULL;
    void *p = a->next;
    a->next += size;
    a->left -= size;
    return p;
}

void *tn_arena_alloc(tn_arena *a, size_t size)
{
    size_t pad = -(uintptr_t)a->next & (alignof(max_align_t) - 1);
    if (pad > a->left || size > a->left - pad)
        return add_block(a, size) ? take(a, size) : NULL;
    if (pad) {
        a->next += pad;
        a->left -= pad;
    }
    return take(a, size);
}

void *tn_arena_zalloc(tn_arena *a, size_t count, size_t size)
{
    uint64_t bytes;
    if (!tn_mul_u64(count, size, &bytes) || bytes > SIZE_MAX)
        return NULL;
    void *p = tn_arena_alloc(a, (size_t)bytes);
    return p ? memset(p, 0, (size_t)bytes) : NULL;
}

char *tn_arena_text(tn_arena *a, const char *text, size_t n)
{
    char *p = n < SIZE_MAX ? take(a, n + 1) : NULL;
    if (p) {
        if (n)
            memcpy(p, text, n);
        p[n] = '\0';
    }
    return p;
}

char *tn_arena_join(tn_arena *a, const char *head, size_t n, const char *tail)
{
    size_t rest = strlen(tail) + 1;
    char *p = n < SIZE_MAX - rest ? take(a, n + rest) : NULL;
    if (p) {
        memcpy(p, head, n);
        memcpy(p + n, tail, rest);
    }
    return p;
}

char *tn_arena_printf(tn_arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf((char *)a->next, a->left, format, args);
    bool fits = n >= 0 && (size_t)n < a->left;
    char *p = n < 0 ? NULL : take(a, (size_t)n + 1);
    if (p && !fits)
        vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return p;
}

void *tn_arena_copy(tn_arena *a, const void *data, size_t n)
{
    void *p = tn_arena_alloc(a, n);
    return p && n ? memcpy(p, data, n) : p;
}

void tn_arena_rewind(tn_arena *a, tn_arena_mark mark)
{
    for (struct tn_arena_block *b = a->blocks, *older; b != mark.blocks; b = older) {
        older = b->older;
        free(b);
    }
    *a = mark;
}

void tn_arena_free(tn_arena *a)
{
    tn_arena_rewind(a, (tn_arena_mark){ 0 });
}
