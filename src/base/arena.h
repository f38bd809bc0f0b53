/* base/arena.h - memory that is freed all at once.
 *
 * Names, shapes and tensors of an open file are in its arena.
 * Zero-initialise an arena to begin; not thread-safe. */
#ifndef TN_BASE_ARENA_H
#define TN_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct tn_arena {
    struct tn_arena_block *blocks;
    uint8_t *next;
    size_t   left;
} tn_arena;

/* `size` uninitialised bytes aligned for any object; NULL if memory runs out.
 * A size of 0 gives a valid pointer. */
void *tn_arena_alloc(tn_arena *arena, size_t size);

/* The same for `count` items of `size`, checked for overflow and zeroed. */
void *tn_arena_zalloc(tn_arena *arena, size_t count, size_t size);

/* A NUL-terminated copy of n bytes, not aligned. */
char *tn_arena_text(tn_arena *arena, const char *text, size_t n);

/* The same of two texts, one after the other. */
char *tn_arena_join(tn_arena *arena, const char *head, size_t n, const char *tail);

/* Formatted text of any length. */
__attribute__((format(printf, 2, 3)))
char *tn_arena_printf(tn_arena *arena, const char *format, ...);

/* A copy of n bytes aligned for any object. */
void *tn_arena_copy(tn_arena *arena, const void *data, size_t n);

/* A copy of the arena marks a position; rewinding frees what was allocated after it. */
typedef tn_arena tn_arena_mark;
void tn_arena_rewind(tn_arena *arena, tn_arena_mark mark);

void tn_arena_free(tn_arena *arena);

#endif
