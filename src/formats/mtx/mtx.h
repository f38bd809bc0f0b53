/* formats/mtx/mtx.h - MatrixMarket files.
 *
 *     %%MatrixMarket matrix coordinate real general    the banner
 *     %tenon {"name":"w","dtype":"float32"}            the note: what the format cannot express, see note.c
 *     % any text                                       comments
 *     3 4 2                                            rows, columns, entries (array: rows, columns)
 *     1 1 0.5                                          row, column from 1, value (array: values by column)
 *     3 2 -7e-3
 *
 * A file has no index, so opening it reads all of its text.
 *
 * read.c reads all before the entries, entries.c the entries, note.c the comments.
 * number.c converts between text and elements.  write.c writes, and symmetric.c
 * checks whether a matrix can be written as symmetric. */
#ifndef TN_CONTAINER_MTX_H
#define TN_CONTAINER_MTX_H

#include "base/vector.h"
#include "store/file.h"
#include "store/writer.h"
#include "tensor/number.h"

#define TN_MTX_SUFFIX  ".mtx"
#define TN_MTX_ONE_TRIANGLE "symmetric"     /* the option of that name */
#define TN_MTX_BANNER  "%%MatrixMarket"
#define TN_MTX_NOTE    "tenon {"        /* the start of the note, behind the percent sign */
#define TN_MTX_COMMENT "comment"        /* the key of comments among a tensor's metadata */

typedef enum tn_mtx_field {
    TN_MTX_REAL, TN_MTX_INTEGER, TN_MTX_UNSIGNED, TN_MTX_COMPLEX, TN_MTX_PATTERN,
    TN_MTX_DOUBLE               /* a word for TN_MTX_REAL that is only read */
} tn_mtx_field;
extern const char *const tn_mtx_fields[];       /* their words in the banner */

typedef enum tn_mtx_symmetry {
    TN_MTX_GENERAL,
    TN_MTX_SYMMETRIC,
    TN_MTX_SKEW,
    TN_MTX_HERMITIAN
} tn_mtx_symmetry;

/* The types of a field's elements and of the indices if no note has another. */
tn_dtype tn_mtx_usual_type(tn_mtx_field field);
tn_dtype tn_mtx_usual_index(const int64_t shape[2]);

/* --- number.c --- */

/* How the numbers of one float type are read and written. */
typedef struct tn_mtx_real {
    const tn_dtype_info *type;
    const tn_dtype_info *digits;        /* the type whose digits are written: types of 8 bits or less have
                                         * those of float32 */
    tn_encode_rules      type_rules, digits_rules;
    unsigned             fewest, most;  /* digits: decimals of `fewest` are read as different values; each
                                         * value is read back from `most` */
} tn_mtx_real;

tn_mtx_real tn_mtx_real_of(tn_dtype dtype);

/* The numbers of an element: itself, or the two halves of a complex one. */
typedef struct tn_mtx_numbers {
    unsigned             count;
    const tn_dtype_info *type;          /* of each */
    tn_mtx_real          real;          /* if that is a float */
} tn_mtx_numbers;

tn_mtx_numbers tn_mtx_numbers_of(tn_dtype dtype);

/* Reads the number at p and returns its end.  NULL: there is none.  *held is false
 * if the type cannot hold it. */
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

/* The end of the word at p. */
static inline const char *tn_mtx_word_end(const char *p, const char *end)
{
    while (p < end && !tn_mtx_is_blank(*p) && *p != '\n' && *p != '\r')
        p++;
    return p;
}

/* Fails with "line 7: expected WHAT but found ..." and the word at p.  Always NULL. */
__attribute__((cold, format(printf, 3, 4)))
const char *tn_mtx_refuse(tn_mtx_reader *r, const char *p, const char *what, ...);

/* Behind the end of the line that p is at the end of; else p itself. */
static inline const char *tn_mtx_step_over_end(tn_mtx_reader *r, const char *p)
{
    const char *feed = p < r->end && *p == '\r' ? p + 1 : p;
    if (feed == r->end)
        return feed;
    if (*feed != '\n')
        return p;
    r->line++;
    return feed + 1;
}

/* The first character of the next line that is not blank; the end of the text if there is none. */
const char *tn_mtx_next_line(tn_mtx_reader *r, const char *p);

/* From behind the last word of a line to the next line; NULL if there is another word. */
static inline const char *tn_mtx_end_line(tn_mtx_reader *r, const char *p)
{
    p = tn_mtx_skip_blanks(p, r->end);
    const char *next = tn_mtx_step_over_end(r, p);
    return next > p || p == r->end ? next : tn_mtx_refuse(r, p, "the end of the line");
}

/* Reads the comments between the banner and the size line, which is returned, or NULL. */
const char *tn_mtx_take_comments(tn_mtx_reader *r, const char *p);

/* Fails with "line 2: Tenon's note: WHY", at byte `at` of its JSON. */
__attribute__((cold, format(printf, 4, 5)))
tn_status tn_mtx_refuse_note(const tn_mtx_reader *r, tn_status status, size_t at, const char *why, ...);

/* Reads all entries up to the end of the file. */
tn_status tn_mtx_take_entries(tn_mtx_reader *r, const char *p);

/* --- writing --- */

/* One tensor being written. */
typedef struct tn_mtx_matrix {
    const tn_tensor *tensor;
    const uint8_t   *values, *indices;  /* indices: NULL for an array */
    const uint8_t   *pointers;          /* csr: of its rows; else NULL */
    uint64_t        *row;               /* csr: that of the last entry that was asked for */
    uint64_t         entries;           /* of a coordinate matrix */
    tn_mtx_field     field;
} tn_mtx_matrix;

/* An index of an entry, of any type.  A negative one becomes too large for any shape.  The row pointers of
 * csr were checked; entries one after the other are found without a search. */
uint64_t tn_mtx_index(const tn_mtx_matrix *m, uint64_t entry, unsigned dimension);

/* The note and the comments. */
void tn_mtx_put_comments(tn_buf *b, const tn_writer *w, const tn_mtx_matrix *m);

/* TN_ERR_LOSS with the first pair of elements that differ. */
tn_status tn_mtx_check_symmetric(const tn_mtx_matrix *m, tn_error *err);

tn_status tn_mtx_plan(tn_writer *w, tn_error *err);
tn_status tn_mtx_finish(tn_writer *w, tn_error *err);

#endif
