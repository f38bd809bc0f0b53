/* store/format.h - the interface of a container format.
 *
 * A format is a static constant, one per folder of src/formats/, one line in registry.c.  Reading: open()
 * goes through the index and calls tn_file_add() for each entry.  Writing: plan() sees all entries before
 * any data, finish() writes the index after all data.  All else (names, compound tensors, offsets, encoding,
 * checksums, durability) is common code.
 *
 * `err` is never NULL in these functions, so that a chain of steps can be one
 * expression:  return a(x, err) || b(x, err) ? err->status : TN_OK; */
#ifndef TN_STORE_FORMAT_H
#define TN_STORE_FORMAT_H

#include <tenon/convert.h>
#include <tenon/descriptor.h>

struct tn_file;
struct tn_writer;
struct tn_sink;
struct tn_beside;

/* The `properties` of a descriptor, which no other container can store, without is_contiguous: that follows
 * from the strides. */
typedef struct tn_properties {
    bool            given;          /* else the rest is not set */
    bool            requires_grad, is_pinned, zero_copy_compatible;
    const tn_wia_extra *extra;          /* other members of the object */
    size_t          nextra;
} tn_properties;

enum { TN_MAX_FORMAT_KEYS = 8 };        /* of one format */

typedef struct tn_format {
    tn_format_info info;

    /* How certain the first n bytes are of this format, 0 to 100; n may be 0. */
    int (*probe)(const uint8_t *head, size_t n);

    /* Its content says little: a file with its suffix that no format recognises is opened, to report what is
     * wrong with it. */
    bool has_no_magic;

    /* Whether a path has another suffix of this format; NULL: there is none. */
    bool (*has_other_suffix)(const char *path);

    /* Whether a name is that of a file of a set which is opened by another one; NULL: there are none. */
    bool (*is_later_file)(const char *name);

    /* Parses and checks the index of file->shards[0]; reads no data. */
    tn_status (*open)(struct tn_file *file, tn_error *err);

    /* The container's name of a type, or NULL. */
    const char *(*type_name)(const tn_dtype_info *type);

    /* For a format whose suffix means another one: whether a file of it that is converted to that suffix
     * stays one, with this as its only tensor.  Else NULL. */
    bool (*keeps)(const tn_tensor *tensor);

    /* The only codec that it compresses with, and only if asked to; 0: any but those of archives. */
    tn_encoding archive_codec;

    /* Bytes that the container needs before the data of an entry without a place; NULL: none, and the data is
     * aligned. */
    uint64_t (*room_before)(const struct tn_writer *writer, size_t entry);

    /* What a conversion to another format leaves behind, although tensors and metadata are all there: the
     * user is told once.  NULL: nothing. */
    const char *not_carried;

    bool whole_bytes;           /* a tensor of sub-byte elements must fill whole bytes */
    bool only_pads;             /* after plan() it writes nothing between entries, and reads nothing back */
    bool shares;                /* two entries may have the same range of bytes */
    bool keeps_properties;      /* can store tn_properties */
    bool names_parts;           /* each part of a tensor is an entry with its own name */
    tn_dtype index_type;        /* of sparse tensors with 64-bit indices; TN_UNKNOWN: any */
    uint64_t min_align;         /* of each part's data */
    uint64_t usual_align;       /* the default; 0: min_align */

    /* All entries are known: checks that the container can hold them, opens the files, sets known offsets. */
    tn_status (*plan)(struct tn_writer *writer, tn_error *err);

    /* All data is written: writes index and header, and sets each file's end. */
    tn_status (*finish)(struct tn_writer *writer, tn_error *err);

    /* Reports files in the same folder that may be taken for this one or that a crash left; may be NULL. */
    void (*look_beside)(const struct tn_beside *beside);

    bool meta_in_first;         /* the first file of a set has all its metadata: rewrite() writes that one */
    bool typed_meta;            /* its metadata has types: an edit keeps that of a key */

    /* Writes `file` with its present metadata into `sink`; *size is the size of the new file. */
    tn_status (*rewrite)(struct tn_file *file, struct tn_sink *sink, uint64_t *size, uint64_t *shared,
                         tn_error *err);
} tn_format;

extern const tn_format tn_format_ztensor, tn_format_safetensors, tn_format_raw, tn_format_btf;
extern const tn_format tn_format_npy, tn_format_npz, tn_format_scipy, tn_format_mtx, tn_format_idx;
extern const tn_format tn_format_onnx, tn_format_pytorch, tn_format_gguf;

/* The format of this name, or NULL. */
const tn_format *tn_format_find(const char *name);

/* The format for a path's suffix, or NULL. */
const tn_format *tn_format_by_suffix(const char *path);

/* The format that is most certain of these first bytes, or NULL. */
const tn_format *tn_format_probe(const uint8_t *head, size_t n);

/* What a file is that no format of this build reads, and what to do, by its first bytes; NULL: not known. */
const char *tn_format_foreign(const uint8_t *head, size_t n);

#endif
