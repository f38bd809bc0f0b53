/* store/format.h - what a container is to the rest of Tenon.
 *
 * A format is immutable and static, one per folder of src/formats/, one line
 * in registry.c.  Reading: open() walks the index and calls tn_file_add() once
 * an entry.  Writing: plan() sees all entries before any data, finish() writes
 * the index when all data is there.  Everything between (names, compound
 * tensors, placing, encoding, checksums, durability) is common code.
 *
 * `err` is never NULL in these functions, so that a chain of steps can be one
 * expression:  return a(x, err) || b(x, err) ? err->status : TN_OK; */
#ifndef TN_STORE_FORMAT_H
#define TN_STORE_FORMAT_H

#include <tenon/convert.h>

struct tn_file;
struct tn_writer;
struct tn_sink;
struct tn_beside;

enum { TN_MAX_FORMAT_KEYS = 8 };        /* of one format */

typedef struct tn_format {
    tn_format_info info;

    /* 0 not mine .. 100 certain, from the first n bytes; n may be anything, 0 included. */
    int (*probe)(const uint8_t *head, size_t n);

    /* Whether a path has one of the other suffixes that files of this format have; NULL: there are none. */
    bool (*has_other_suffix)(const char *path);

    /* Parses and checks the index of file->shards[0]; reads no data. */
    tn_status (*open)(struct tn_file *file, tn_error *err);

    /* How this container spells a type, or NULL. */
    const char *(*type_name)(const tn_dtype_info *type);

    /* Elements narrower than a byte: the container wants whole bytes a tensor. */
    bool whole_bytes;
    bool shares;                /* two entries may name one range of bytes */
    bool keeps_properties;      /* has a place for tn_properties */
    bool names_parts;           /* each part of a tensor is an entry with a name of its own */
    tn_dtype index_type;        /* of sparse tensors, where they have 64 bits, signed or not; TN_UNKNOWN:
                                 * any */
    uint64_t min_align;         /* of each part's data... */
    uint64_t usual_align;       /* ...and where nobody asks for more; 0: the same */

    /* All entries are known: check that they can be held, choose the files,
     * and place entries whose offset must be known before the data. */
    tn_status (*plan)(struct tn_writer *writer, tn_error *err);

    /* All data is written: write the index (and header); sets each file's end. */
    tn_status (*finish)(struct tn_writer *writer, tn_error *err);

    /* Tells what lies beside a file and may be taken for it, or was left of it by a crash; NULL: nothing
     * can. */
    void (*look_beside)(const struct tn_beside *beside);

    /* Writes the index of `file` again with its present metadata into `sink`,
     * with the data copied in the kernel; *size is that of the new file. */
    tn_status (*rewrite)(struct tn_file *file, struct tn_sink *sink, uint64_t *size, uint64_t *shared,
                         tn_error *err);
} tn_format;

extern const tn_format tn_format_ztensor, tn_format_safetensors, tn_format_raw, tn_format_btf;
extern const tn_format tn_format_npy, tn_format_npz, tn_format_scipy, tn_format_mtx, tn_format_idx;

/* The format of this name, or NULL. */
const tn_format *tn_format_find(const char *name);

/* The format a path's suffix names, or NULL. */
const tn_format *tn_format_by_suffix(const char *path);

/* The most certain of the formats for these first bytes, or NULL. */
const tn_format *tn_format_probe(const uint8_t *head, size_t n);

#endif
