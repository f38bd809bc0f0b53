/* descriptor/descriptor.h - the inside of tn_descriptors. */
#ifndef TN_DESCRIPTOR_DESCRIPTOR_H
#define TN_DESCRIPTOR_DESCRIPTOR_H

#include "base/arena.h"
#include "base/text.h"
#include "base/vector.h"

#include <tenon/descriptor.h>

struct tn_descriptors {
    tn_arena       arena;       /* everything the items point to */
    tn_descriptor *items;       /* malloc()ed */
    size_t         count, cap;
};

/* An empty set. */
tn_status tn_descriptors_new(tn_descriptors **set, tn_error *err);

/* One more descriptor, zeroed; NULL: no memory. */
tn_descriptor *tn_descriptors_add(tn_descriptors *set);

/* Copies `src`, and all it points to into the arena.  TN_ERR_NOMEM. */
tn_status tn_descriptor_copy(tn_descriptor *dst, const tn_descriptor *src, tn_arena *arena, tn_error *err);

/* Appends one descriptor as JSON without a final newline; lines after the first have `indent` spaces. */
void tn_descriptor_put(const tn_descriptor *d, unsigned indent, tn_buf *out);

/* Sets d->tensor_id to the version 5 UUID of d's JSON without tensor_id, followed by `content`, the checksum
 * of the data, or NULL. */
tn_status tn_descriptor_identify(tn_descriptor *d, const char *content, tn_arena *arena, tn_error *err);

/* Fails like tn_descriptors_parse() of a document with this descriptor, alone or in a list. */
tn_status tn_descriptor_readable(const char *json, size_t n, bool in_list, tn_error *err);

/* The extra member that holds a quantization of an unknown scheme, or the name of that scheme if there is
 * only a quantization. NULL: there is none. */
const tn_wia_extra *tn_other_scheme(const tn_descriptor *d);

const tn_wia_extra *tn_find_extra(const tn_wia_extra *extra, size_t n, const char *path, const char *key);

/* A fragment without a shape: only a quantization, or a handle and its mapping. */
bool tn_has_no_shape(const tn_descriptor *d);

/* TN_ERR_CORRUPT with the first fault that tn_descriptor_check() finds. For a file that is being `opened` it
 * ignores is_contiguous of padded tensors, which earlier versions wrote as true. */
tn_status tn_descriptor_check_first(const tn_descriptor *d, bool opened, tn_error *err);

/* Whether a descriptor or a quantization has a member of this name. */
bool tn_wia_is_member(tn_text name);

bool tn_is_per_channel(tn_quant_scheme scheme);

/* The words of the specification for enum values; NULL if there is none. */
const char *tn_quant_scheme_name(tn_quant_scheme scheme);
const char *tn_handle_type_name(tn_handle_type type);
const char *tn_device_type_name(tn_device_type type);
const char *tn_memory_space_name(tn_memory_space space);

/* The word of value i is words[i]; a value without one has NULL. */
typedef struct tn_words {
    const char *const *words;
    int                count;
    bool               any_case;    /* "cpu" is read as "CPU" */
} tn_words;

extern const tn_words tn_quant_scheme_words, tn_handle_type_words, tn_device_type_words,
    tn_memory_space_words, tn_byte_order_words, tn_permission_words, tn_access_mode_words,
    tn_sparse_format_words, tn_index_type_words;

/* The specification's name of a type, else its own. */
const char *tn_type_label(const tn_dtype_info *type);

/* The type of a base_type: one of the 17, or a canonical name after "tenon:"; else TN_UNKNOWN. */
tn_dtype tn_wia_type(const char *base_type);

/* The base_type of a type: its WIA name, else "tenon:" and its canonical name, in the arena. */
const char *tn_wia_type_name(tn_dtype dtype, tn_arena *arena);

#endif
