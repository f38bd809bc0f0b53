/* formats/ztensor/ztensor.h - the layout of a zTensor 0.1 file.
 *
 *     0   "ZTEN0001"
 *         data of each tensor, at multiples of 64
 *         index: a CBOR array, one map per tensor
 *         u64 little-endian: size of the index          end of file
 */
#ifndef TN_ZTENSOR_H
#define TN_ZTENSOR_H

#include "store/file.h"
#include "store/writer.h"

#define ZT_MAGIC "ZTEN0001"
enum { ZT_MAGIC_BYTES = 8, ZT_TAIL_BYTES = 8, ZT_ALIGN = 64 };

/* The fields of an entry that the format defines; every other key is custom. */
typedef enum zt_field {
    ZT_NAME, ZT_OFFSET, ZT_SIZE, ZT_DTYPE, ZT_SHAPE, ZT_ENCODING,
    ZT_LAYOUT, ZT_ENDIANNESS, ZT_CHECKSUM, ZT_TENON, ZT_CUSTOM,
    ZT_REQUIRED = ZT_LAYOUT     /* the fields before it are required */
} zt_field;
zt_field zt_field_of(tn_text key);

/* Options that only this format has; the first value of each is 0. */

/* The index and its offset. */
typedef struct zt_index {
    uint64_t       at;
    const uint8_t *bytes;
    size_t         size;
} zt_index;
tn_status zt_find_index(tn_file *file, zt_index *index, tn_error *err);

/* Turns an entry with a sparse layout into a sparse tensor.  An entry with another
 * layout, or one that cannot be read, stays opaque. */
enum { ZT_COMPANIONS = 2 };
tn_status zt_take_sparse(tn_file *file, tn_entry *entry, tn_part companions[ZT_COMPANIONS], tn_error *err);

tn_status zt_plan(tn_writer *writer, tn_error *err);
tn_status zt_finish(tn_writer *writer, tn_error *err);
tn_status zt_rewrite(tn_file *file, tn_sink *sink, uint64_t *size, uint64_t *shared, tn_error *err);

#endif
