/* formats/idx/read.c - one array, named after the file.
 *
 *     u8 0, u8 0, u8 type, u8 rank
 *     u32 dims[rank]
 *     elements                     to the end of the file, no byte more or less
 *
 * Everything is big-endian.  MNIST and the examples of embARC MLI use this
 * format.  It is read, not written, and never recognised by content: two zeros
 * and a type are too little evidence. */
#include "base/checked.h"
#include "base/error.h"
#include "store/dims.h"
#include "store/file.h"
#include "tensor/array.h"

#include <string.h>

enum { IDX_START = 4, IDX_TYPE = 2, IDX_RANK = 3, IDX_DIM = 4 };

typedef struct header {
    tn_dtype dtype;
    tn_dims  dims;
    uint64_t size;              /* bytes before the elements */
} header;

static tn_dtype type_of(uint8_t code)
{
    switch (code) {
    case 0x08: return TN_UINT8;
    case 0x09: return TN_INT8;
    case 0x0b: return TN_INT16;
    case 0x0c: return TN_INT32;
    case 0x0d: return TN_FLOAT32;
    case 0x0e: return TN_FLOAT64;
    default:   return TN_UNKNOWN;
    }
}

/* --- the header --- */

static tn_status cut_header(unsigned long long expected, unsigned long long found, tn_error *err)
{
    return tn_fail_at(err, TN_ERR_TRUNCATED, found,
                      "expected an IDX header of %llu bytes but the file has %llu", expected, found);
}

static tn_status check_start(const uint8_t *start, tn_error *err)
{
    if (start[0] || start[1])
        return tn_fail_at(err, TN_ERR_CORRUPT, start[0] ? 0 : 1,
                          "expected two bytes of 0 but found 0x%02x 0x%02x", start[0], start[1]);
    if (type_of(start[IDX_TYPE]) == TN_UNKNOWN)
        return tn_fail_at(err, TN_ERR_CORRUPT, IDX_TYPE,
                          "expected type 0x08, 0x09, 0x0b, 0x0c, 0x0d or 0x0e but found 0x%02x",
                          start[IDX_TYPE]);
    if (start[IDX_RANK] > TN_MAX_RANK)
        return tn_fail_at(err, TN_ERR_LIMIT, IDX_RANK, "expected at most %d dimensions but found %u",
                          TN_MAX_RANK, start[IDX_RANK]);
    return TN_OK;
}

static tn_status read_header(const tn_source *source, header *h, tn_error *err)
{
    uint8_t start[IDX_START], dims[TN_MAX_RANK * IDX_DIM];
    uint64_t size = tn_source_size(source);
    if (size < sizeof start)
        return cut_header(sizeof start, size, err);
    if (tn_source_read(source, 0, start, sizeof start, err) || check_start(start, err))
        return err->status;
    size_t rank = start[IDX_RANK], n = rank * IDX_DIM;
    *h = (header){ .dtype = type_of(start[IDX_TYPE]), .size = IDX_START + n };
    if (n > size - IDX_START)
        return cut_header(h->size, size, err);
    tn_status status = tn_source_read(source, IDX_START, dims, n, err);
    for (size_t i = 0; i < rank && !status; i++) {
        const uint8_t *d = dims + i * IDX_DIM;
        uint64_t dim = (uint64_t)d[0] << 24 | (uint64_t)d[1] << 16 | (uint64_t)d[2] << 8 | d[3];
        status = tn_dims_add(&h->dims, dim, err);
    }
    return status;
}

/* --- the array --- */

/* The suffix of a path: .idx, .idx3-ubyte or -idx3-ubyte, with any rank and type; "" if it has none. */
static const char *suffix_of(const char *path)
{
    static const char digits[] = "0123456789", letters[] = "abcdefghijklmnopqrstuvwxyz";
    for (const char *at = path; (at = strpbrk(at, ".-")); at++) {
        if (strcmp(at, tn_format_idx.info.suffix) == 0)
            return at;
        if (strncmp(at + 1, "idx", 3) != 0)
            continue;
        const char *rank = at + 4, *dash = rank + strspn(rank, digits);
        if (dash > rank && dash[0] == '-' && dash[1] && !dash[1 + strspn(dash + 1, letters)])
            return at;
    }
    return "";
}

static bool has_other_suffix(const char *path) { return *suffix_of(path) != '\0'; }

static tn_status check_size(const tn_entry *e, uint64_t found, tn_error *err)
{
    uint64_t nbytes;
    const char *type = tn_dtype_get(e->dtype)->name;
    tn_shown_shape shape = tn_show_shape(e->rank, e->shape);
    if (tn_shape_nbytes(e->dtype, e->rank, e->shape, &nbytes))
        return tn_fail_at(err, TN_ERR_LIMIT, IDX_START, "shape %s of %s takes 2^63 bytes or more", shape.text,
                          type);
    if (nbytes == found)
        return TN_OK;
    tn_status status = nbytes > found ? TN_ERR_TRUNCATED : TN_ERR_CORRUPT;
    return tn_fail_at(err, status, e->stored.offset + tn_min_u64(nbytes, found),
                      "shape %s of %s takes %llu bytes but %llu follow the IDX header", shape.text, type,
                      (unsigned long long)nbytes, (unsigned long long)found);
}

static tn_status open_idx(tn_file *f, tn_error *err)
{
    header h;
    TN_TRY(read_header(f->shards[0].source, &h, err));
    uint64_t follow = tn_source_size(f->shards[0].source) - h.size;
    tn_entry e = {
        .name = tn_file_stem(f, suffix_of(f->shards[0].path)), .dtype = h.dtype, .rank = h.dims.rank,
        .shape = tn_dims_keep(&h.dims, &f->arena, NULL, 0),
        .stored = { .offset = h.size, .size = follow, .type = tn_dtype_get(h.dtype)->name,
                    .order = TN_BIG_ENDIAN },
    };
    TN_NEED(e.name && e.shape, err);
    tn_status status = tn_in_tensor(check_size(&e, follow, err), e.name, err);
    return status ? status : tn_file_add(f, &e, err);
}

const tn_format tn_format_idx = {
    .info = { .name = "idx", .suffix = ".idx",
              .title = "one array, big-endian, as MNIST and embARC MLI have them",
              .reads = true },
    .has_other_suffix = has_other_suffix,
    .open = open_idx,
};
