/* tenon/sparse.h - tensors of which most elements are zero, in memory.
 *
 *     form     parts
 *     dense    data       all elements
 *     coo      values     [n]
 *              indices    [n, rank]: for each value a row of indices
 *     csr      values     [n]
 *              indices    [n]: for each value its index along the last dimension
 *              indptr     [rows + 1]: row i has the entries indptr[i] .. indptr[i + 1]
 *
 * A tensor of rank 2 has a row for each index of the first dimension; one of
 * rank 3 is a batch of matrices, whose rows follow each other: shape[0] *
 * shape[1] of them.  CSR has rank 2 or 3, COO any.  Indices are int32, int64,
 * uint32 or uint64; those of a CSR tensor are all of one type.
 *
 * Entries are canonical when they stand in row-major order and none has the
 * indices of another.  Only what is canonical is ever made here; what is taken
 * may be in any order.
 *
 * Elements are moved as bits: from dense to sparse and back, every bit is as it
 * was (negative zeros are entries).  Results do not depend on the CPU or the number of threads.
 * Thread-safe. */
#ifndef TENON_SPARSE_H
#define TENON_SPARSE_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_duplicates {    /* entries with the same indices */
    TN_DUPLICATES_REFUSE = 0,
    TN_DUPLICATES_SUM    = 1    /* floats: summed in float64 in their order and cast once, as tn_cast() does
                                 * without options; integers: an error where they overflow */
} tn_duplicates;

typedef struct tn_sparse_options {
    size_t        size;         /* sizeof(tn_sparse_options), set by the caller */
    bool          drop;         /* leave out elements of magnitude `threshold` or less (complex: both halves):
                                 * 0 leaves out zeros of either sign, stored ones too.  NaN always stays.
                                 * Without it an element is left out only if all its bits are zero, and stored
                                 * entries all stay. */
    double        threshold;    /* 0 or more, with `drop` only */
    tn_duplicates duplicates;
    tn_dtype      index;        /* of indices and indptr; TN_UNKNOWN: as they are; from dense: int32, or int64
                                 * where that is too small */
    uint64_t      limit;        /* bytes of all parts; 0: 1 GiB, or 1000 times the bytes of the parts given if
                                 * that is more */
    unsigned      jobs;         /* threads; 0: one per core */
} tn_sparse_options;

/* Makes a tensor of another form, or of the same in canonical order.  Every
 * part of `tensor` has its data (dense, host order, any alignment); the new
 * one has its own, on cache lines, and belongs to the caller: tn_tensor_free().
 * Of its description it has name, layout, form, type and shape, all its own.
 * `options` may be NULL.
 *
 * TN_ERR_ARGUMENT: no such form; a tensor that does not fit its own; options
 * that make no sense.  TN_ERR_UNSUPPORTED: elements narrower than a byte, a type without a
 * zero, a rank that CSR does not have.  TN_ERR_CORRUPT: an index outside the
 * shape, pointers that do not ascend.  TN_ERR_LOSS: duplicates, where they are
 * refused; a sum that overflows an integer type; an index type too small.
 * TN_ERR_LIMIT: the result would be larger than allowed. */
TN_API tn_status tn_convert_form(const tn_tensor *tensor, tn_form form, const tn_sparse_options *options,
                                 tn_tensor **result, tn_error *err);

/* Frees a result of tn_convert_form(); NULL is allowed. */
TN_API void tn_tensor_free(tn_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
