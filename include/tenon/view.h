/* tenon/view.h - the data of a tensor, whatever its form and however it is
 * stored: any range or box of it, and all of it as the type that is wanted.
 *
 * A view is a tensor and the steps that are applied to it.  Opening one reads
 * nothing but scales; elements are made when they are asked for.  Memory does
 * not grow with the tensor: what can only be made or decoded as a whole goes to
 * an unnamed file in $TMPDIR, /var/tmp or /tmp.
 *
 * One thread at a time may use a view; several views may be of one tensor.
 * Elements are dense, row-major and in host byte order.  Those narrower than a
 * byte are packed: they fill each byte from its least significant bit. */
#ifndef TENON_VIEW_H
#define TENON_VIEW_H

#include <tenon/file.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_view tn_view;

/* Opens a view of the tensor as it is stored: its form and parts.  The file stays open until the
 * view is closed; a tensor whose parts are in memory needs none (NULL).  *view is written on success only.
 *
 * TN_ERR_ARGUMENT: a NULL.  TN_ERR_UNSUPPORTED: a type or encoding that this
 * build cannot read. */
TN_API tn_status tn_view_open(const tn_file *file, const tn_tensor *tensor, tn_view **view, tn_error *err);

/* Makes it dense, with elements of `dtype` (TN_UNKNOWN: of its own type): codes with
 * scales become values, sparse entries find their places.  Other types are cast as
 * tn_cast() does it without options.  A sparse tensor is read now.  *view is
 * unchanged after a failure.
 *
 * TN_ERR_ARGUMENT: a NULL, an unknown type, a cast that does not exist.
 * TN_ERR_UNSUPPORTED: a form without values this build can read. */
TN_API tn_status tn_view_add_values(tn_view **view, tn_dtype dtype, tn_error *err);

/* Adds a step by its name: "slice", "transpose", "reshape", "layout", "pad", "form" or "cast", with the text
 * of a rule (tenon/convert.h) without a glob, such as "0:16,:".  *view is unchanged after a failure.
 *
 * TN_ERR_ARGUMENT: a NULL, an unknown step, a text that cannot be read, what does not fit the tensor.
 * TN_ERR_UNSUPPORTED: a step that its form does not have. */
TN_API tn_status tn_view_add(tn_view **view, const char *step, const char *text, tn_error *err);

/* Joins n views into one of this name, along a dimension ("axis=1"; NULL or "": the first) or a new one
 * ("stack=0").  It takes the views, which are closed with it, but not after a failure.  Their files stay
 * open.  Statuses as of tn_view_add(). */
TN_API tn_status tn_view_join(tn_view *const *inputs, size_t n, const char *name, const char *text,
                              tn_view **view, tn_error *err);

/* The tensor that comes out: form, type, shape and parts.  Lives as long as the view, until
 * the next step is added.  Data of scales that are searched for is there after the first read. */
TN_API const tn_tensor *tn_view_tensor(const tn_view *view);

/* Reads elements [first, first + count) of a part; `size` must be their bytes exactly.
 * Checksums are compared only of what is decoded as a whole.
 *
 * TN_ERR_ARGUMENT: a NULL, a part, range or size that does not fit.
 * TN_ERR_CORRUPT, TN_ERR_CHECKSUM, TN_ERR_TRUNCATED: the data is damaged.
 * TN_ERR_LIMIT: a few bytes would be decoded into very many, see tn_open_options. */
TN_API tn_status tn_view_read(tn_view *view, uint32_t part, uint64_t first, uint64_t count, void *buffer,
                              size_t size, tn_error *err);

/* Reads a box of a dense tensor: indices [first[i], first[i] + extent[i]) of each
 * dimension i, as a dense array of that shape.  A scalar has one element and needs no
 * indices (NULL is allowed).  Statuses as of tn_view_read(). */
TN_API tn_status tn_view_read_box(tn_view *view, const int64_t *first, const int64_t *extent, void *buffer,
                                  size_t size, tn_error *err);

/* Closes a view; NULL is allowed. */
TN_API void tn_view_close(tn_view *view);

/* Reads all of a tensor of any form, dense, as elements of `dtype`, see
 * tn_view_add_values().  `size` must be the bytes of that type and the tensor's
 * shape.  Takes one thread per core.
 *
 * TN_ERR_ARGUMENT: a NULL, an unknown type, another size, a cast that does not
 * exist.  TN_ERR_LOSS: a value that the type cannot hold, where tn_cast() refuses
 * it.  Others as of tn_view_read(). */
TN_API tn_status tn_read(const tn_file *file, const tn_tensor *tensor, tn_dtype dtype, void *buffer,
                         size_t size, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
