/* formats/conventions/conventions.h - how other tools store quantized tensors as several plain entries.
 *
 * A convention is one row of table.c: the entries of one module by how their names end, with types and
 * shapes, and the function that makes one tensor of them.  find.c goes through a file's entries, config.c
 * reads what lies beside it, unpack.h has what the functions of rows share. */
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

enum { TN_CONVENTION_PARTS = 20, TN_CONVENTION_ROWS = 64 };

struct tn_unpacking;

typedef struct tn_convention {
    const char *name;           /* "NVFP4 (ModelOpt)"; NULL: codes, but nobody says whose */
    const char *method;         /* only where config.json names this quantization method; NULL: any or none */
    unsigned    codes;          /* which part has the codes */
    /* The first part leads to the others; the rest is zero. */
    tn_convention_part parts[TN_CONVENTION_PARTS];
    /* Whether the shapes fit where names and types do not tell all; NULL: they do.  Parts are in the order
     * of `parts`; those that are needed are there. */
    bool (*fits)(const tn_tensor *const *parts);
    /* Makes one tensor of the parts (unpack.h); false: `why` or the status says why not.  NULL: this version
     * copies such tensors but does not decode them. */
    bool (*unpack)(struct tn_unpacking *u);
    const char *methods;        /* the quantization methods whose models have it: a configuration that names
                                 * another one contradicts the entries.  NULL: any */
} tn_convention;

/* Row i in the order of recognition; NULL: there are no more. */
const tn_convention *tn_convention_at(size_t i);

/* Whether some row or tool is known to have this quantization method. */
bool tn_convention_knows(const char *method);

/* ---- the configuration ---- */

/* What holds for one module; 0: the same as for all. */
typedef struct tn_quant_module {
    const char *name;
    uint32_t    bits, group;
} tn_quant_module;

/* What the files beside a model say about its quantization, in an arena. */
typedef struct tn_quant_config {
    const char *method;         /* NULL: none is named, "": there is one without a name */
    tn_dtype    dtype;          /* of the model; TN_UNKNOWN: not said */
    uint32_t    bits, group;    /* 0: not said, or not the same for all modules */
    uint32_t    block[2];       /* rows and columns that share a scale; 0: not said */
    bool        is_symmetric, is_reordered;     /* sym, desc_act of GPTQ */
    bool        is_gptq_v2;     /* zero points are stored as they are: checkpoint_format, packing_format */
    bool        is_asymmetric, has_actorder;    /* of all groups of compressed-tensors */
    bool        is_auto_bit_linear;     /* linear_class of BitNet */
    const tn_quant_module *modules;     /* by name */
    size_t      nmodules;
} tn_quant_config;

/* The type that a text names as PyTorch does, one of those that weights have; else TN_UNKNOWN. */
tn_dtype tn_config_type(tn_text name);

/* What it says of one module; NULL: nothing. */
const tn_quant_module *tn_config_module(const tn_quant_config *config, const char *name);

/* The files beside a model that may name its quantization method, in the order of trust. */
const char *tn_config_name(size_t i);       /* NULL: there are no more */

/* Adds what the text of file i says to *config, which is zero before the first one.  Its method is that of
 * this file. */
tn_status tn_config_read(size_t i, tn_text text, tn_arena *arena, tn_quant_config *config, tn_error *err);

/* What the files beside `path` say.  A file that is there and cannot be read or understood is an error. */
tn_status tn_config_find(const char *path, tn_arena *arena, tn_quant_config *config, tn_error *err);

/* tn_packed_find() with this configuration instead of what lies beside the file. */
tn_status tn_packed_find_with(tn_file *file, const tn_quant_config *config, tn_error *err);

#endif
