/* pipeline/map.h - tables that say what tensors are called elsewhere, and how they lie there.
 *
 * A row has a name of Hugging Face, a name of GGUF and what else changes on the way from the first to the
 * second: rope=heads, add=N, transpose, f32, stack (docs/maps.md).  A star is a number, the same on both
 * sides; `-` means that the tensor is left out.  A line "models: NAME..." says which models it is for. */
#ifndef TN_PIPELINE_MAP_H
#define TN_PIPELINE_MAP_H

#include "base/arena.h"
#include "base/text.h"

#include <tenon/file.h>

typedef struct tn_map_row {
    tn_text from, to;           /* of Hugging Face, of GGUF */
    tn_text heads;              /* rope: which number of heads; empty: rows stay in their order */
    double  add;                /* 0: nothing */
    bool    is_float32, is_stacked, is_transposed;
} tn_map_row;

typedef struct tn_map {
    const char *name;
    tn_text     models;         /* names of architectures, with spaces between them; empty: any */
    tn_map_row *rows;
    size_t      count;
} tn_map;

/* Reads a table: one of those of the library, or a file.  TN_ERR_ARGUMENT: no such table, or a line that is
 * not a row. */
tn_status tn_map_read(const char *name, tn_arena *arena, tn_map *map, tn_error *err);

/* Whether most names are of GGUF.  TN_ERR_ARGUMENT: neither side has a name of the file. */
tn_status tn_map_is_backward(const tn_map *map, const tn_file *file, bool *backward, tn_error *err);

/* Whether a name is that of a pattern; stars[i] is what its star i stands for. */
enum { TN_MAP_STARS = 4 };
bool tn_map_matches(tn_text pattern, const char *name, tn_text stars[TN_MAP_STARS]);

/* How many heads a model has, "heads" or "kv_heads": of config.json beside the file or, of a GGUF, by its
 * keys, else by those of `other` (may be NULL).  TN_ERR_ARGUMENT: nothing says it. */
tn_status tn_map_heads(const tn_file *file, const tn_file *other, tn_text which, int64_t *heads,
                       tn_error *err);

/* TN_ERR_ARGUMENT: the map is for other models than that of config.json beside the file or, of a GGUF, of its
 * keys; or than that of `other` (may be NULL). */
tn_status tn_map_check_model(const tn_map *map, const tn_file *file, const tn_file *other, tn_error *err);

/* The tables that were there when the library was built; the last has no name. */
typedef struct tn_map_table {
    const char        *name;
    const char *const *lines;   /* NULL after the last */
} tn_map_table;
extern const tn_map_table tn_map_tables[];

#endif
