/* formats/pytorch/pytorch.h - checkpoints of torch.save() and TorchScript archives.
 *
 *     zip      NAME/data.pkl, a pickle, and NAME/data/KEY, one storage each (zip.c)
 *     legacy   pickles one after the other, then the storages (legacy.c)
 *
 * machine.c and calls.c run a pickle and make values of it, walk.c names the tensors and the metadata in
 * them, tensors.c turns views of storages into entries.  Nothing of a pickle is executed or imported. */
#ifndef TN_FORMATS_PYTORCH_H
#define TN_FORMATS_PYTORCH_H

#include "base/vector.h"
#include "formats/pytorch/machine.h"
#include "store/file.h"

#define TN_PT_SUFFIX    ".pt"
#define TN_PT_INDEX_MAX 100000000u      /* bytes of the index of a set, as of safetensors */

/* One pickle: its bytes in memory, and where they are in the file. */
typedef struct tn_pt_pickle {
    tn_text     bytes;
    uint64_t    at;             /* byte of the file */
    bool        is_raw;         /* the bytes in memory are those of the file */
    const char *folder;         /* zip: its storages are members that begin with this */
} tn_pt_pickle;

/* Where the bytes of a storage are. */
typedef struct tn_pt_place {
    uint64_t    offset, size;   /* as they are stored */
    uint64_t    decoded;
    uint8_t     encoding;       /* tn_encoding */
    bool        has_crc;
    uint32_t    crc;            /* of the decoded bytes */
    bool       *is_summed;      /* some tensor has this checksum; NULL: there is none */
} tn_pt_place;

/* A tensor that the walk found. */
typedef struct tn_pt_found {
    const char          *name;
    const tn_pt_tensor  *tensor;
    const tn_pt_pickle  *from;
    uint64_t             decoded[2];    /* where its bytes are in `decoded` of the reader */
} tn_pt_found;

/* One file that is being read.  Zero-initialise to begin. */
typedef struct tn_pt_reader {
    tn_file      *file;
    uint32_t      shard;
    tn_arena      arena;        /* of values: freed when the file is open */
    tn_byte_order order;        /* of the storages */
    tn_pt_found  *found;
    size_t        nfound, found_cap;
    tn_meta      *meta;
    size_t        nmeta, meta_cap;
    tn_names      meta_names;
    tn_buf        decoded;      /* numbers and arrays that are not in the file as bytes */
    uint32_t      decoded_shard;
    /* Finds a storage.  TN_ERR_CORRUPT: it is not there, or has another size. */
    tn_status   (*locate)(struct tn_pt_reader *r, const tn_pt_pickle *from, const tn_pt_storage *storage,
                          tn_pt_place *place, tn_error *err);
    void         *storages;     /* of that function */
} tn_pt_reader;

/* --- zip.c, legacy.c --- */

bool      tn_pt_is_zip(const uint8_t *head, size_t n);
bool      tn_pt_is_legacy(const uint8_t *head, size_t n);
tn_status tn_pt_read_zip(tn_pt_reader *r, tn_error *err);
tn_status tn_pt_read_legacy(tn_pt_reader *r, tn_error *err);

/* TN_ERR_CORRUPT: the bytes of a storage are not those of its elements. */
tn_status tn_pt_check_storage(const tn_pt_storage *s, uint64_t bytes, uint64_t at, tn_error *err);

/* --- walk.c --- */

/* Finds the tensors and the metadata below a value, and keeps warnings for what is left out.  A root that is
 * a tensor is named after the file.  TN_ERR_LIMIT: too deep, too long a name, or too often the same. */
tn_status tn_pt_walk(tn_pt_reader *r, const tn_pt_machine *m, const tn_pt_pickle *pickle,
                     const tn_pt_value *root, tn_error *err);

/* The same for the constants of TorchScript: CONSTANTS.c0, ... */
tn_status tn_pt_walk_constants(tn_pt_reader *r, const tn_pt_machine *m, const tn_pt_pickle *pickle,
                               const tn_pt_value *root, tn_error *err);

/* Keeps a warning for each call that was not made. */
tn_status tn_pt_name_calls(tn_pt_reader *r, const tn_pt_machine *m, const tn_pt_pickle *pickle,
                           tn_error *err);

/* --- tensors.c --- */

/* Adds all that was found to the file. */
tn_status tn_pt_add_tensors(tn_pt_reader *r, tn_error *err);

/* --- read.c --- */

/* Reads one shard of a set, or the only file. */
tn_status tn_pt_read_shard(tn_pt_reader *r, tn_error *err);
void      tn_pt_reader_free(tn_pt_reader *r);

#endif
