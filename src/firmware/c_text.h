/* firmware/c_text.h - the text of exported source and headers: C99, and C++ from C++11 on.
 *
 * All functions append to a buffer; nothing here reads or writes files. */
#ifndef TN_FIRMWARE_C_TEXT_H
#define TN_FIRMWARE_C_TEXT_H

#include "base/vector.h"
#include "firmware/c_tensor.h"

typedef struct tn_c_export {
    const char        *name;        /* prefix of every identifier */
    tn_mli_version     mli;
    uint64_t           align;
    const char        *section;     /* or NULL */
    bool               binary;
    const tn_c_tensor *tensors;
    size_t             count;
    uint64_t           image_bytes;
    uint32_t           crc;         /* crc32c of the image, or of the source before its last lines */
} tn_c_export;

/* printf() in which $ is the export's name and @ the identifier of tensor t (NULL: there is no @), so that
 * "$_data_@" becomes "model_data_conv1".  No argument may contain $ or @. */
__attribute__((format(printf, 4, 5)))
void tn_c_put(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t, const char *format, ...);

/* "data", "zero", "scale", "frac". */
const char *tn_c_array_word(tn_c_array array);

/* The C type of an element, such as "int16_t". */
const char *tn_c_type_name(tn_dtype dtype);

/* NAME.h.  crc must be known. */
void tn_c_put_header(tn_buf *b, const tn_c_export *e);

/* NAME.c, in this order: its beginning, for each tensor its arrays and its structure, its end. */
void tn_c_put_source_begin(tn_buf *b, const tn_c_export *e);
void tn_c_put_array_begin(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t, tn_c_array array);
void tn_c_put_array_end(tn_buf *b);
void tn_c_put_structure(tn_buf *b, const tn_c_export *e, const tn_c_tensor *t);
void tn_c_put_source_list(tn_buf *b, const tn_c_export *e);
void tn_c_put_source_end(tn_buf *b, const tn_c_export *e);      /* crc must be known */

/* The next n elements of an array.  *column is the length of the last line, 0 at first.  false: element *bad
 * is infinite or NaN, which C has no literal for. */
bool tn_c_put_elements(tn_buf *b, tn_dtype dtype, const uint8_t *elements, size_t n, unsigned *column,
                       size_t *bad);

/* The part of a header that replaces the declarations if the data is an image (c_image.c). */
void tn_c_put_image(tn_buf *b, const tn_c_export *e);

#endif
