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

/* An empty set, to be filled with tn_descriptors_add(). */
tn_status tn_descriptors_new(tn_descriptors **set, tn_error *err);

/* Room for one more, zeroed; NULL when memory is out. */
tn_descriptor *tn_descriptors_add(tn_descriptors *set);

/* Copies `src`, and all it points to into the arena.  TN_ERR_NOMEM. */
tn_status tn_descriptor_copy(tn_descriptor *dst, const tn_descriptor *src, tn_arena *arena, tn_error *err);

/* Appends one descriptor as JSON, without a newline at its end, indented by
 * `indent` spaces after the first line. */
void tn_descriptor_put(const tn_descriptor *d, unsigned indent, tn_buf *out);

/* Sets d->tensor_id to the version 5 UUID of d's own JSON without tensor_id,
 * followed by `content`: what is known of the data (its checksum), or NULL. */
tn_status tn_descriptor_identify(tn_descriptor *d, const char *content, tn_arena *arena, tn_error *err);

/* Fails as tn_descriptors_parse() would of a document with this descriptor, alone or in a list. */
tn_status tn_descriptor_readable(const char *json, size_t n, bool in_list, tn_error *err);

/* The extra member that keeps a quantization of a scheme that the specification does not define; of a
 * quantization alone, the one with the name of that scheme.  NULL: there is none. */
const tn_wia_extra *tn_other_scheme(const tn_descriptor *d);

const tn_wia_extra *tn_find_extra(const tn_wia_extra *extra, size_t n, const char *path, const char *key);

/* A fragment without a shape: a quantization alone, or a handle and its mapping. */
bool tn_has_no_shape(const tn_descriptor *d);

/* tn_descriptor_check() of a file that is being opened.  is_contiguous of a padded tensor is not looked at:
 * it is true in files that earlier versions wrote. */
tn_status tn_descriptor_check_opened(const tn_descriptor *d, const tn_check_options *options, size_t *wrong,
                                     tn_error *err);

/* Whether the specification has a member of this name in a descriptor itself, or in a quantization. */
bool tn_wia_is_member(tn_text name);

bool tn_is_per_channel(tn_quant_scheme scheme);

/* The words of the specification for enum values, both ways; a NULL or -1 for
 * what there is no word for. */
const char *tn_quant_scheme_name(tn_quant_scheme scheme);
const char *tn_handle_type_name(tn_handle_type type);
const char *tn_device_type_name(tn_device_type type);
const char *tn_memory_space_name(tn_memory_space space);

/* The type for a base_type: one of the 17, or a canonical name after "tenon:"; TN_UNKNOWN otherwise. */
tn_dtype tn_wia_type(const char *base_type);

/* How base_type spells a type: its WIA name, else "tenon:" and its canonical name, in the arena. */
const char *tn_wia_type_name(tn_dtype dtype, tn_arena *arena);

#endif
