/* formats/conventions/unpack.h - one scaled tensor of the entries of a module.
 *
 * The function of a row says the shape and the datatype, which gives the parts, and then where each part
 * comes from: an entry whose bytes are the part as they are (nothing is copied), an entry read in another
 * order, or lines that are made of entries while they are read (tn_lines).  Helpers return false when the
 * entries do not fit; `why` tells a person. */
#ifndef TN_FORMATS_CONVENTIONS_UNPACK_H
#define TN_FORMATS_CONVENTIONS_UNPACK_H

#include "formats/conventions/conventions.h"
#include "store/stream.h"

#include <tenon/datatype.h>

enum {
    TN_UNPACK_PARTS = 4,
    TN_UNPACK_INPUTS = 10,
    TN_UNPACK_LINE = 1 << 22        /* the most columns of a tensor whose codes must be moved */
};

typedef struct tn_unpacking {
    tn_file               *file;
    const tn_convention   *row;
    const tn_quant_config *config;
    const tn_tensor *const *from;       /* the entries, in the order of the row's parts; NULL: not there */
    const char            *module;      /* what their names have in common */
    const char            *name;        /* of the tensor: that of the codes unless a row says another one */
    const char            *why;         /* not decoded for this reason, in the file's arena; or NULL */
    tn_status              status;      /* no memory, or the file cannot be read */
    tn_error              *err;
    tn_dtype               dtype;       /* of the values; TN_UNKNOWN: the configuration's, or float32 */
    uint32_t               rank;
    int64_t                shape[TN_MAX_RANK];
    char                   datatype[64];
    tn_scaled_shapes       shapes;
    tn_part                parts[TN_UNPACK_PARTS];
} tn_unpacking;

/* Why the entries are not decoded.  Returns false. */
__attribute__((format(printf, 2, 3)))
bool tn_unpack_refuse(tn_unpacking *u, const char *format, ...);

/* Names the tensor: the module and a suffix. */
bool tn_unpack_rename(tn_unpacking *u, const char *suffix);

/* Sets the datatype, after the shape, and so the parts. */
__attribute__((format(printf, 2, 3)))
bool tn_unpack_as(tn_unpacking *u, const char *format, ...);

/* The spelling of an element type in a datatype ("bfloat16", uint8 and float8_e8m0: "e8m0"); NULL: it has
 * none. */
const char *tn_unpack_spelling(tn_dtype dtype);

/* The bytes of the entry are those of the part. */
bool tn_unpack_take(tn_unpacking *u, const char *role, const tn_tensor *entry);

/* The entry is a matrix, and the part its transpose. */
bool tn_unpack_transpose(tn_unpacking *u, const char *role, const tn_tensor *entry);

/* Reads the few bytes of a small entry, in host order. */
bool tn_unpack_read(tn_unpacking *u, const tn_tensor *entry, void *to, size_t n);

/* The entry has exactly these extents; else refuses. */
bool tn_unpack_check(tn_unpacking *u, const tn_tensor *entry, int64_t rows, int64_t columns);

/* ---- lines ---- */

/* An entry that lines are made of, as it is or transposed. */
typedef struct tn_input {
    const tn_tensor *entry;
    bool             transposed;
} tn_input;

struct tn_line_state;

/* How a part is made, line by line. */
typedef struct tn_lines {
    tn_derive derive;           /* set by tn_unpack_lines() */
    /* Makes the next line at state->line, of `size` bytes unless it sets state->size. */
    tn_status (*fill)(struct tn_line_state *state, tn_error *err);
    tn_status (*begin)(struct tn_line_state *state, tn_error *err);     /* before the first; may be NULL */
    size_t    size;             /* bytes of a line */
    size_t    scratch;          /* bytes that fill() needs besides */
    bool      is_alone;         /* a line is made of the next `size` bytes of the only input, and fill() needs
                                 * at most as many besides... */
    bool      is_copy;          /* ...or, in the host's order, it is these bytes */
    uint64_t  count;            /* lines */
    /* For fill(): */
    const uint8_t *order;
    uint64_t  columns, rows, words, group;
    uint32_t  bits, width;      /* of a code; bytes of an element */
    int32_t   add;
    float     offset;
    bool      is_symmetric, is_apart;   /* apart: no code crosses the end of a word */
    bool      may_be_unused;    /* groups of -1 say that there are none */
} tn_lines;

typedef struct tn_line_state {
    const tn_lines  *how;
    const tn_tensor *tensor;
    const tn_part   *part;
    uint64_t         number;    /* of the line */
    uint8_t         *line;      /* where fill() makes it; need not be aligned */
    uint8_t         *room, *scratch;    /* of a line that is taken in pieces, and of fill() */
    size_t           at, size;  /* bytes of the line that were taken, and in all */
    bool             ended;
    uint32_t         zero;      /* the zero point of a symmetric tensor; 0: none was read */
    uint32_t         ninputs;
    struct { tn_stream stream; const uint8_t *bytes; size_t left; } in[TN_UNPACK_INPUTS];
} tn_line_state;

/* The part is made of lines of `n` inputs. */
bool tn_unpack_lines(tn_unpacking *u, const char *role, const tn_lines *how, const tn_input *inputs,
                     size_t n);

/* Takes the next n bytes of an input. */
tn_status tn_line_take(tn_line_state *s, unsigned input, void *to, size_t n, tn_error *err);

/* The same in place, or in the scratch space, which has room for them: aligned for words of 32 bits, until
 * the next ones are taken. */
tn_status tn_line_lend(tn_line_state *s, unsigned input, size_t n, const void **bytes, tn_error *err);

/* The part `index`: the group of each column.  A negative number anywhere means that they are in order, each
 * of `group` columns (across.c). */
bool tn_unpack_index(tn_unpacking *u, const tn_tensor *entry, uint64_t group, bool may_be_unused);

/* Codes in planes: elements of the entry (`rows` of `columns` of them, `width` bytes each) have several codes
 * of `bits`, and the rows of one plane follow those of the one before.  The first plane is in the lowest
 * bits, or with is_apart in those from bit `add` on and the others below it.  They become `count` packed
 * lines of `columns` codes (planes.c). */
bool tn_unpack_planes(tn_unpacking *u, const tn_lines *how, const tn_tensor *entry, unsigned planes);

/* Reads a number of a scalar entry of integers; refuses others. */
bool tn_unpack_number(tn_unpacking *u, const tn_tensor *entry, int64_t *number);

/* All integers of the part are this one. */
bool tn_unpack_constant(tn_unpacking *u, const char *role, int32_t value);

/* Codes of `bits` in a matrix of 32-bit words, `words` by `columns`: a stream of bits runs down each column,
 * or (with `order`) a word has eight codes of 4 bits, the one of row r in place order[r].  They become `rows`
 * lines of `columns` codes: packed (width 0), or integers of `width` bytes, each with `add`.  is_symmetric:
 * all of them stand for the middle code and must be that one, or all one less.
 * The second input, if there is one, has the group of each column of values: `group` columns in order
 * must have the same (across.c). */
bool tn_unpack_across(tn_unpacking *u, tn_lines *how);

/* ---- rows ---- */

bool tn_unpack_fp8(tn_unpacking *u);            /* fp8.c */
bool tn_unpack_mxfp4(tn_unpacking *u);          /* fp4.c */
bool tn_unpack_nvfp4(tn_unpacking *u);
bool tn_unpack_comfy_nvfp4(tn_unpacking *u);
bool tn_unpack_int8(tn_unpacking *u);           /* int8.c */
bool tn_unpack_quanto(tn_unpacking *u);
bool tn_unpack_torchao(tn_unpacking *u);
bool tn_unpack_bitnet(tn_unpacking *u);         /* planes.c */
bool tn_unpack_quanto_int4(tn_unpacking *u);
bool tn_unpack_hqq(tn_unpacking *u);            /* hqq.c */
bool tn_unpack_bnb_4bit(tn_unpacking *u);       /* bitsandbytes.c */
bool tn_unpack_bnb_8bit(tn_unpacking *u);
bool tn_unpack_mlx(tn_unpacking *u);            /* mlx.c */
bool tn_unpack_gptq(tn_unpacking *u);           /* gptq.c */
bool tn_unpack_awq(tn_unpacking *u);
bool tn_unpack_awq_gemv(tn_unpacking *u);
bool tn_unpack_int4_awq(tn_unpacking *u);       /* int4.c */
bool tn_unpack_ct_pack(tn_unpacking *u);        /* compressed_tensors.c */
bool tn_unpack_ct_sparse(tn_unpacking *u);

/* A scale of 16 bits or more for each value of a dimension, or groups along the last one, as fp8.c has it:
 * the codes as they are, and the scale beside them. */
bool tn_unpack_with_scale(tn_unpacking *u, const tn_tensor *codes, const tn_tensor *scale,
                          const char *number);

/* The tensor of the entries, in the file's arena; NULL: *why says why there is none. */
tn_status tn_unpack(tn_unpacking *u, const tn_tensor **tensor, tn_error *err);

#endif
