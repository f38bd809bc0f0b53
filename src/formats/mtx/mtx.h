/* formats/mtx/mtx.h - what the files of this folder share.
 *
 *     %%MatrixMarket matrix coordinate real general    the banner
 *     %tenon {"name":"w","dtype":"float32"}            what the format has no word for, see note.c
 *     % any text                                       comments
 *     3 4 2                                            rows, columns, entries (array: rows, columns)
 *     1 1 0.5 row, column from 1, value (array: values, column by column)
 *     3 2 -7e-3
 *
 * The text is its own index: opening a file reads all of it.
 *
 * read.c takes what stands before the entries, entries.c those, number.c turns
 * text into elements and back, note.c has the comments, write.c all of writing
 * but the check for symmetry (symmetric.c). */
#ifndef TN_CONTAINER_MTX_H
#define TN_CONTAINER_MTX_H

#include "base/vector.h"
#include "store/file.h"
#include "store/writer.h"
#include "tensor/number.h"

#define TN_MTX_SUFFIX  ".mtx"
#define TN_MTX_BANNER  "%%MatrixMarket"
#define TN_MTX_NOTE    "tenon {"        /* how a comment begins that is ours */
#define TN_MTX_COMMENT "comment"        /* the key of comments among a tensor's metadata */

typedef enum tn_mtx_field {
    TN_MTX_REAL, TN_MTX_INTEGER, TN_MTX_UNSIGNED, TN_MTX_COMPLEX, TN_MTX_PATTERN
} tn_mtx_field;
typedef enum tn_mtx_symmetry {
    TN_MTX_GENERAL,
    TN_MTX_SYMMETRIC,
    TN_MTX_SKEW,
    TN_MTX_HERMITIAN
} tn_mtx_symmetry;

/* The type of a field's elements where no note says otherwise, and whether a
 * note may say so of this one. */
tn_dtype tn_mtx_usual_type(tn_mtx_field field);
bool     tn_mtx_may_hold(tn_mtx_field field, const tn_dtype_info *type);

/* The type of the indices of a matrix where no note says otherwise. */
tn_dtype tn_mtx_usual_index(const int64_t shape[2]);

/* --- number.c --- */

/* How the numbers of one float type are read and written. */
typedef struct tn_mtx_real {
    const tn_dtype_info *type;
    const tn_dtype_info *digits;        /* the type whose digits are written: types of 8 bits or less have
                                         * those of float32 */
    tn_encode_rules      type_rules, digits_rules;
    unsigned             fewest, most;  /* any decimal of so many digits is told from others; any value has
                                         * one of so many */
} tn_mtx_real;

tn_mtx_real tn_mtx_real_of(tn_dtype dtype);

/* The numbers of an element: itself, or the two halves of a complex one. */
typedef struct tn_mtx_numbers {
    unsigned             count;
    const tn_dtype_info *type;          /* of each */
    tn_mtx_real          real;          /* if that is a float */
} tn_mtx_numbers;

tn_mtx_numbers tn_mtx_numbers_of(tn_dtype dtype);

/* Takes the number at p and returns its end.  NULL: there is none, or (*held
 * is false) it is none that the type holds. */
const char *tn_mtx_read_real(const tn_mtx_real *real, const char *p, const char *end, uint64_t *code,
                             bool *held);

/* The same for types that are integers; a bool is 0 or 1. */
const char *tn_mtx_read_integer(const tn_dtype_info *type, const char *p, const char *end, uint64_t *code,
                                bool *held);

/* Writes an element and returns its end. */
enum { TN_MTX_NUMBER_MAX = 40 };        /* bytes it takes at most */
char *tn_mtx_put_real(const tn_mtx_real *real, uint64_t code, char *p);
char *tn_mtx_put_integer(const tn_dtype_info *type, uint64_t code, char *p);
char *tn_mtx_put_u64(uint64_t value, char *p);

/* --- reading --- */

typedef struct tn_mtx_reader {
    tn_file        *file;
    tn_error       *err;        /* not NULL */
    const char     *text, *end;
    uint64_t        line;       /* number of the one being read, from 1 */

    bool            array;      /* else coordinate */
    tn_mtx_field    field;
    tn_mtx_symmetry symmetry;
    const char     *field_word; /* as spelled */
    int64_t         shape[2];
    uint64_t        listed;     /* entries (array: values) in the text */

    /* What the note and the comments say. */
    const char     *note;       /* its JSON, or NULL */
    uint64_t        note_line;
    const char     *name;       /* or NULL */
    const char     *layout;     /* or NULL */
    tn_dtype        dtype, index;       /* TN_UNKNOWN: the usual ones */
    const tn_meta  *meta;
    size_t          nmeta;

    /* What was read. */
    uint8_t        *values, *indices;
    uint64_t        count;      /* elements, mirrored ones included */
} tn_mtx_reader;

static inline bool tn_mtx_is_blank(char c) { return c == ' ' || c == '\t'; }

static inline const char *tn_mtx_skip_blanks(const char *p, const char *end)
{
    while (p < end && tn_mtx_is_blank(*p))
        p++;
    return p;
}

/* The end of what a person would call a word at p. */
static inline const char *tn_mtx_word_end(const char *p, const char *end)
{
    while (p < end && !tn_mtx_is_blank(*p) && *p != '\n' && *p != '\r')
        p++;
    return p;
}

/* "line 7: expected WHAT but found ..." of what stands at p: NULL. */
__attribute__((cold, format(printf, 3, 4)))
const char *tn_mtx_refuse(tn_mtx_reader *r, const char *p, const char *what, ...);

/* What stands first on the next line that is not blank; the end of the text if there is none. */
const char *tn_mtx_next_line(tn_mtx_reader *r, const char *p);

/* Behind the last word of a line: the beginning of the next; NULL if there is another word. */
const char *tn_mtx_end_line(tn_mtx_reader *r, const char *p);

/* Comments up to the size line, from the line behind the banner on; its beginning, or NULL. */
const char *tn_mtx_take_comments(tn_mtx_reader *r, const char *p);

/* "line 2: the note of Tenon's: WHY", of byte `at` of its JSON. */
__attribute__((cold, format(printf, 4, 5)))
tn_status tn_mtx_refuse_note(const tn_mtx_reader *r, tn_status status, size_t at, const char *why, ...);

/* All entries, and that nothing follows them. */
tn_status tn_mtx_take_entries(tn_mtx_reader *r, const char *p);

/* --- writing --- */

/* One tensor being written. */
typedef struct tn_mtx_matrix {
    const tn_tensor *tensor;
    const uint8_t   *values, *indices;  /* indices: NULL for an array */
    uint64_t         entries;           /* of a coordinate matrix */
    tn_mtx_field     field;
} tn_mtx_matrix;

/* An index of an entry, whichever type it has; negative ones are beyond any shape. */
uint64_t tn_mtx_index(const tn_mtx_matrix *m, uint64_t entry, unsigned dimension);

/* The note and the comments. */
void tn_mtx_put_comments(tn_buf *b, const tn_writer *w, const tn_mtx_matrix *m);

/* TN_ERR_LOSS with the first pair of elements that differ. */
tn_status tn_mtx_check_symmetric(const tn_mtx_matrix *m, tn_error *err);

tn_status tn_mtx_plan(tn_writer *w, tn_error *err);
tn_status tn_mtx_finish(tn_writer *w, tn_error *err);

#endif
