/* store/stored.h - how a part is stored in its file.
 *
 * Nearly every part is one extent of dense elements.  What few parts have (strides, bytes before the
 * elements, elements that are derived from other parts ...) is in a second struct, so that tn_stored is
 * small.  The public API shows a summary: tn_part_stored(). */
#ifndef TN_STORE_STORED_H
#define TN_STORE_STORED_H

#include "bytes/source.h"
#include "tensor/array.h"

#include <tenon/file.h>

/* How a part is made of other parts, which are read in order. */
typedef struct tn_derive {
    /* Whether the other parts fit this one; NULL: the format has checked them. */
    tn_status (*check)(const tn_part *part, tn_error *err);
    tn_status (*open)(const tn_file *file, const tn_tensor *tensor, const tn_part *part, void **state,
                      tn_error *err);
    /* The next whole elements, at most `cap` bytes, in host byte order.  *n is 0 at the end, after the
     * checksums of the other parts were checked. */
    tn_status (*next)(void *state, uint8_t *out, size_t cap, size_t *n, tn_error *err);
    void      (*close)(void *state);
    /* Makes lines [first, first + n), each of `line` bytes, alone, in any thread.  `scratch` has room for one
     * line more.  NULL: the part can only be read in order. */
    tn_status (*lines)(const tn_file *file, const tn_part *part, uint64_t first, uint64_t n, uint8_t *scratch,
                       uint8_t *out, tn_error *err);
    uint64_t    line;
} tn_derive;

typedef struct tn_stored_more {
    const char    *encoding_name;   /* as the file spells it, or "text"; NULL: the codec's name */
    const char    *never;           /* why no build reads elements of this type, or NULL */
    const char    *opaque;          /* a layout of the container that cannot be read, or NULL */
    const int64_t *stride;          /* in elements, not negative, from the first byte of the (decoded) extent;
                                     * NULL: row-major, dense */
    uint64_t       pitch;           /* raw only: bytes from one row (index of the first dimension) to the
                                     * next, where each row is dense; 0: rows follow each other */
    uint64_t       skip;            /* decoded bytes of the extent before the first element */
    uint64_t       decoded;         /* strided parts of a compressed extent: decoded bytes of all of it, which
                                     * its checksum covers; 0: there is no more than the part */
    tn_range       sum;             /* what the checksum covers if that is more than the part, or size 0 */
    bool           sums_file;       /* the checksum is that of its whole file */
    const struct tn_block_info *swapped;    /* it has blocks of this type in the other byte order, raw and
                                             * dense; or NULL */
    const tn_derive *derive;        /* the part has no extent but is made of others; or NULL */
    const tn_part *from;            /* those others... */
    uint32_t       nfrom;           /* ...so many, each with an extent */
} tn_stored_more;

struct tn_stored {
    uint64_t    offset, size;       /* the extent in its file */
    const char *type;               /* element type as the file spells it */
    const char *checksum_text;      /* as the file spells it, or NULL */
    const tn_stored_more *more;     /* or NULL */
    uint32_t    shard;              /* number of its file in the tn_file */
    uint8_t     encoding;           /* tn_encoding: the codec */
    uint8_t     checksum;           /* tn_checksum */
    uint8_t     order;              /* tn_byte_order of the elements */
};
typedef struct tn_stored tn_stored;

extern const tn_stored      tn_not_stored;      /* all 0: a part in memory */
extern const tn_stored_more tn_nothing_more;

static inline const tn_stored *tn_stored_of(const tn_part *part)
{
    return part->stored ? part->stored : &tn_not_stored;
}

static inline const tn_stored_more *tn_stored_more_of(const tn_part *part)
{
    const tn_stored_more *more = tn_stored_of(part)->more;
    return more ? more : &tn_nothing_more;
}

/* Whether a stream of the part may begin anywhere: it is raw and in one piece. */
static inline bool tn_part_splits(const tn_part *part)
{
    return tn_stored_of(part)->encoding == TN_ENCODING_RAW && !tn_stored_more_of(part)->derive;
}

/* Whether the part's bytes, in the file's byte order, are a range of its file: raw, dense, in one piece. */
static inline bool tn_part_is_range(const tn_part *part)
{
    const tn_stored_more *more = tn_stored_more_of(part);
    return tn_part_splits(part) && !more->stride && !more->pitch;
}

/* The unit of bytes to reverse for host order; 1: none. */
static inline unsigned tn_swap_unit(const tn_part *part)
{
    const tn_dtype_info *type = tn_dtype_get(part->array.dtype);
    return !type || tn_stored_of(part)->order == TN_HOST_ORDER ? 1 : type->swap_bytes;
}

/* Whether its bytes must be reversed for host order, those of elements or of the numbers in blocks. */
static inline bool tn_part_is_swapped(const tn_part *part)
{
    return tn_swap_unit(part) > 1 || tn_stored_more_of(part)->swapped;
}

/* The name of its encoding; never NULL. */
const char *tn_stored_encoding(const tn_stored *stored);

/* tn_part_stored(), with size 0. */
tn_stored_info tn_stored_summary(const tn_tensor *tensor, const tn_part *part);

/* The shape with padding. */
static inline const int64_t *tn_padded_shape(const tn_part *part)
{
    return part->padded ? part->padded->shape : part->array.shape;
}

#endif
