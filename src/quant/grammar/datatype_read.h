/* quant/grammar/datatype_read.h - parse the text of a datatype: functions shared by the
 * files of the grammar. */
#ifndef TN_QUANT_GRAMMAR_DATATYPE_READ_H
#define TN_QUANT_GRAMMAR_DATATYPE_READ_H

#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"
#include "quant/grammar/datatype.h"

/* A position in a text.  Nothing at or after `end` is read. */
typedef struct tn_reading {
    const char *text;           /* the whole text, for messages */
    const char *at, *end;
    tn_error   *err;
} tn_reading;

/* The next character in lower case; 0 at the end. */
static inline char tn_next(const tn_reading *r)
{
    return r->at < r->end ? tn_lower(*r->at) : '\0';
}

static inline tn_text tn_rest(const tn_reading *r)
{
    return (tn_text){ r->at, (size_t)(r->end - r->at) };
}

/* Skips `word`, given in lower case, if it is next. */
bool tn_take_word(tn_reading *r, const char *word);

/* Reads decimal digits.  Larger numbers become UINT32_MAX.  False: no digit. */
bool tn_take_digits(tn_reading *r, uint32_t *value);

/* "TEXT": MESSAGE at character N */
__attribute__((format(printf, 4, 5)))
tn_status tn_reading_fail(const tn_reading *r, tn_status status, const char *at, const char *format, ...);

/* "expected WHAT but found" the next characters. */
tn_status tn_expected(const tn_reading *r, const char *what);

/* Parses the text from `at` to `end` as a number spec, not a codebook. */
tn_status tn_number_read(tn_reading *r, tn_number_spec *number);

/* The numbers of 0 and more of a float or int spec, in ascending order: number
 * `index`, the index of the largest one, and the index of a value (false: not a
 * number of the spec). */
double   tn_number_at(const tn_number_spec *number, uint32_t index);
uint32_t tn_number_top(const tn_number_spec *number);
bool     tn_number_find(const tn_number_spec *number, double value, uint32_t *index);

bool tn_codebook_is_next(const tn_reading *r);

/* Parses the text from `at` to `end` as a codebook and sets its number spec.  The
 * caller frees book->value. */
tn_status tn_codebook_read(tn_reading *r, tn_number_spec *number, tn_codebook *book);

/* Parse and write the table of a codebook.  Its sizes and compute type are set. */
tn_status tn_codebook_read_table(tn_reading *r, const tn_codebook *book, float *value);
void      tn_codebook_put_table(const tn_codebook *book, tn_buf *out);

tn_number_spec tn_codebook_number(const tn_codebook *book, const char *name);

/* The datatype of a codebook and a SCALE.  Takes over book->value, also on failure. */
tn_status tn_datatype_of_codebook(tn_codebook *book, const char *scale, tn_datatype **datatype,
                                  tn_error *err);

/* Finds predefined names: an exact match, else up to two that differ in case only.
 * Returns how many. */
unsigned tn_datatype_find(tn_text text, const tn_datatype_name *found[2]);

/* Whether all digits of a decimal number are 0.  A number too small for a double is not. */
static inline bool tn_digits_are_zero(const char *text, size_t n)
{
    for (size_t i = 0; i < n && text[i] != 'e' && text[i] != 'E'; i++)
        if (text[i] >= '1' && text[i] <= '9')
            return false;
    return true;
}

#endif
