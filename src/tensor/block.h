/* tensor/block.h - block types: a fixed number of values in a fixed number of bytes, with the scales among
 * them.
 *
 * These are the types of GGUF files that are not plain numbers.  A row of a tensor is whole blocks. */
#ifndef TN_TENSOR_BLOCK_H
#define TN_TENSOR_BLOCK_H

#include <stdint.h>

typedef enum tn_block {         /* in the order of their numbers in GGUF */
    TN_BLOCK_Q4_0, TN_BLOCK_Q4_1, TN_BLOCK_Q5_0, TN_BLOCK_Q5_1, TN_BLOCK_Q8_0, TN_BLOCK_Q8_1,
    TN_BLOCK_Q2_K, TN_BLOCK_Q3_K, TN_BLOCK_Q4_K, TN_BLOCK_Q5_K, TN_BLOCK_Q6_K, TN_BLOCK_Q8_K,
    TN_BLOCK_IQ2_XXS, TN_BLOCK_IQ2_XS, TN_BLOCK_IQ3_XXS, TN_BLOCK_IQ1_S, TN_BLOCK_IQ4_NL, TN_BLOCK_IQ3_S,
    TN_BLOCK_IQ2_S, TN_BLOCK_IQ4_XS, TN_BLOCK_IQ1_M, TN_BLOCK_TQ1_0, TN_BLOCK_TQ2_0, TN_BLOCK_MXFP4,
    TN_BLOCK_NVFP4, TN_BLOCK_Q1_0, TN_BLOCK_Q2_0,
    TN_BLOCK_COUNT
} tn_block;

enum { TN_BLOCK_VALUES = 256, TN_BLOCK_BYTES = 292 };    /* the largest */

/* Numbers of several bytes in a block: `count` of `width` bytes from byte `at` on. */
typedef struct tn_block_field {
    uint16_t at;
    uint8_t  width, count;
} tn_block_field;

typedef struct tn_block_info {
    tn_block    block;
    const char *name;           /* "q4_K" */
    uint32_t    number;         /* in GGUF */
    uint16_t    values, bytes;  /* of a block */
    tn_block_field fields[2];   /* whose bytes are reversed in the other byte order; count 0: none */
    uint8_t     scales;         /* of the first field: so many are float16 scales that must be finite */
    const char *fallback;       /* a type for rows that are not whole blocks */
} tn_block_info;

/* NULL: no such block type.  Names are found in any case. */
const tn_block_info *tn_block_get(tn_block block);
const tn_block_info *tn_block_numbered(uint32_t number);
const tn_block_info *tn_block_named(const char *name);

/* The block type of a datatype, "ggml:q4_K"; NULL: it has none. */
#define TN_BLOCK_PREFIX "ggml:"
const tn_block_info *tn_block_of_datatype(const char *datatype);

/* Reverses the bytes of the fields of n blocks. */
void tn_block_swap(const tn_block_info *info, uint8_t *blocks, uint64_t n);

#endif
