/* cli/ui/text.h - numbers, shapes and storage as text.
 *
 * The structs are returned by value, for use within one call:
 *     out("%s\n", human_size(n).s); */
#ifndef TENON_CLI_UI_TEXT_H
#define TENON_CLI_UI_TEXT_H

#include <tenon/tenon.h>

typedef struct short_text { char s[64]; } short_text;
typedef struct form_text { char s[160]; } form_text;
typedef struct shape_text { char s[TN_MAX_RANK * 22 + 3]; } shape_text;

/* Decimal digits, without a NUL, at most 20; returns the place behind them.
 * Listings format little else: snprintf would be half their time. */
char *put_number(char *to, uint64_t number);

short_text human_size(uint64_t bytes);              /* "512 B", "9.4 KiB" */
short_text grouped(uint64_t number);                /* "26,411,520" */
short_text counted(uint64_t n, const char *thing);  /* "1 tensor", "1,000 tensors" */
short_text percent(uint64_t part, uint64_t all);    /* "5.02%", "100%" */
shape_text shape_of(uint32_t rank, const int64_t *shape);   /* "[768, 2304]" */
shape_text index_of(uint64_t flat, uint32_t rank, const int64_t *shape);    /* row-major: "[2, 0, 5]" */

/* The name of a type, or the file's own spelling as ?NAME?, cut if long. */
short_text type_of(tn_dtype dtype, const tn_part *part);

/* Entries of a sparse tensor, stored zeros included; false for another. */
bool is_sparse(const tn_tensor *tensor, uint64_t *entries);

/* The first name that "tenon datatypes" lists for it, or its text, cut if long:
 * "mxfp4", "cb41[...]_e2m3fnuz|e8m0_t32s8". */
form_text datatype_name(const char *datatype);

/* How the codes of a datatype are stored, if they are not packed: ", unpacked",
 * ", stored as float8_e4m3fn"; or "". */
short_text stored_as(const tn_scaling *scaling);

/* The type of values that a datatype stores, and it: "bfloat16 mxfp4", but "bfloat16|n2m4" alone. */
form_text type_and_datatype(tn_dtype values, const char *datatype);

/* The type of a tensor's data, the form where it is not a plain array, and the
 * density of a sparse one: "float32", "int8 scaled", "float32 csr 5.02%"; of
 * one with a datatype, type_and_datatype(). */
form_text  type_and_form(tn_dtype data, const char *form, const char *spelling);
form_text  tensor_type(const tn_tensor *tensor);

/* How a part is stored; the tensor may be NULL, see tn_part_stored(). */
tn_stored_info stored_info(const tn_tensor *tensor, const tn_part *part);

/* Whether the part is text in the file, without an offset of its bytes. */
bool is_text(const tn_stored_info *stored);

/* "raw", "text", "zstd 43%", "raw big-endian" */
short_text encoding_of(const tn_stored_info *stored, uint64_t nbytes);
short_text checksum_of(const tn_stored_info *stored);  /* "crc32c", "-" */

const char *checksum_name(tn_checksum checksum);
const char *handle_name(tn_handle_type type);

/* The largest power of two, at most 4096, that divides an offset. */
unsigned alignment_of(uint64_t offset);

double   tensor_bits(const tn_tensor *tensor);      /* per value, with all parts; 0: it has none */
uint64_t tensor_nbytes(const tn_tensor *tensor);    /* decoded; stored if the type is unknown */
uint64_t tensor_elements(const tn_tensor *tensor);

/* A metadata value: texts escaped in double quotes, everything else as JSON.
 * Good until the next call. */
const char *meta_text(const tn_meta *meta);

#endif
