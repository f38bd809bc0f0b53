/* formats/conventions/conventions.h - how other tools store quantized tensors as several plain entries.
 *
 * A convention is one row of table.c: the entries of one module by how their names end, with types and
 * shapes.  find.c goes through a file's entries, config.c reads what lies beside it. */
#ifndef TN_FORMATS_CONVENTIONS_CONVENTIONS_H
#define TN_FORMATS_CONVENTIONS_CONVENTIONS_H

#include "store/packed.h"

/* Sets of element types. */
enum {
    TN_HAS_U8 = 1, TN_HAS_I8 = 2, TN_HAS_I16 = 4, TN_HAS_I32 = 8, TN_HAS_U32 = 16, TN_HAS_I64 = 32,
    TN_HAS_F8 = 64, TN_HAS_E8M0 = 128,
    TN_HAS_FLOAT = 256,         /* of 16 bits or more */
    TN_HAS_OTHER = 512,
    TN_HAS_ANY = 1023
};

typedef enum tn_part_use {
    TN_PART_SIGN,               /* without it the convention is another one */
    TN_PART_NEEDED,             /* without it the tensor is incomplete */
    TN_PART_OPTIONAL
} tn_part_use;

typedef struct tn_convention_part {
    const char *suffix;         /* how its name ends, after what all parts of a tensor have in common */
    unsigned    types;
    tn_part_use use;
    uint8_t     min_rank;
} tn_convention_part;

enum { TN_CONVENTION_PARTS = 8, TN_CONVENTION_ROWS = 64 };

typedef struct tn_convention {
    const char *name;           /* "NVFP4 (ModelOpt)"; NULL: codes, but nobody says whose */
    const char *method;         /* only where config.json names this quantization method; NULL: any or none */
    unsigned    codes;          /* which part has the codes */
    /* The first part leads to the others; the rest is zero. */
    tn_convention_part parts[TN_CONVENTION_PARTS];
    /* Whether the shapes fit where names and types do not tell all; NULL: they do.  Parts are in the order
     * of `parts`; those that are needed are there. */
    bool (*fits)(const tn_tensor *const *parts);
} tn_convention;

/* Row i in the order of recognition; NULL: there are no more. */
const tn_convention *tn_convention_at(size_t i);

/* Whether some row or tool is known to have this quantization method. */
bool tn_convention_knows(const char *method);

/* The files beside a model that may name its quantization method, in the order of trust. */
const char *tn_config_name(size_t i);       /* NULL: there are no more */

/* The method that the text of file i names, in the arena; NULL: none, "": it has one without a name. */
tn_status tn_config_read(size_t i, tn_text text, tn_arena *arena, const char **method, tn_error *err);

/* The quantization method that the files beside `path` name, in the arena; NULL: none.  A file that is there
 * and cannot be read or understood is an error. */
tn_status tn_config_method(const char *path, tn_arena *arena, const char **method, tn_error *err);

#endif
