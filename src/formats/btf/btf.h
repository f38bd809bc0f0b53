/* formats/btf/btf.h - the layout of a file.
 *
 *     u64 n, u64 offset[n]        the table: the offset of each record
 *     u64 rank, u8 type, u8 layout, u8 reserved[6], u64 dims[rank]
 *       dense: the elements
 *       COO:   u64 N, u64 rank, u64 index[N][rank], u64 N, then N elements
 *     zeros up to a multiple of 8
 *
 * Everything is little-endian.  There are no names: tensors are called "0", "1" ... */
#ifndef TN_CONTAINER_BTF_H
#define TN_CONTAINER_BTF_H

#include "store/file.h"
#include "store/writer.h"

enum {
    BTF_WORD = 8,               /* bytes of every number but elements, and what records are padded to */
    BTF_HEADER = 16,            /* bytes of a record before its dimensions */
    BTF_RESERVED = 6,
    BTF_TYPES = 10
};

/* layout: TensorFlow Runtime writes 1 for COO, the specification says 2 */
enum { BTF_DENSE = 0, BTF_COO_TFRT = 1, BTF_COO = 2 };

/* write.c */
tn_status tn_btf_plan(tn_writer *w, tn_error *err);
tn_status tn_btf_finish(tn_writer *w, tn_error *err);

#endif
