/* quant/grammar/datatype_read.h - reading the text of a datatype: what the files of
 * the grammar share.
 *
 * datatype.c        NUMBER|SCALE, the rules between them
 * datatype_number.c number specs
 * codebook.c        codebooks and their mappings
 * codebook_table.c  mappings that stand in the text */
#ifndef TN_QUANT_GRAMMAR_DATATYPE_READ_H
#define TN_QUANT_GRAMMAR_DATATYPE_READ_H

#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"
#include "quant/grammar/datatype.h"

/* A place in a text.  Nothing at `end` or beyond is looked at. */
typedef struct tn_reading {
    const char *text;           /* all of it, for messages */
    const char *at, *end;
    tn_error   *err;
} tn_reading;

/* The next character in lower case; 0 at the end. */
static inline char tn_next(const tn_reading *r)
{
    return r->at < r->end ? tn_lower(*r->at) : '\0';
}

/* What is left. */
static inline tn_text tn_rest(const tn_reading *r)
{
    return (tn_text){ r->at, (size_t)(r->end - r->at) };
}

/* Takes `word` (in lower case) where the text goes on with it. */
bool tn_take_word(tn_reading *r, const char *word);

/* Takes decimal digits; what is too large becomes UINT32_MAX.  False: there is none. */
bool tn_take_digits(tn_reading *r, uint32_t *value);

/* "ALL OF THE TEXT": MESSAGE at character N */
__attribute__((format(printf, 4, 5)))
tn_status tn_reading_fail(const tn_reading *r, tn_status status, const char *at, const char *format, ...);

/* The number spec that the text is from `at` to `end`; codebooks are none. */
tn_status tn_number_read(tn_reading *r, tn_number_spec *number);

/* The numbers of a float or an int spec that are not negative, counted from 0
 * in ascending order: what each is, how many follow the zero, and which number
 * a value is (false: none of them). */
double   tn_number_at(const tn_number_spec *number, uint32_t index);
uint32_t tn_number_top(const tn_number_spec *number);
bool     tn_number_find(const tn_number_spec *number, double value, uint32_t *index);

/* Whether a codebook begins here. */
bool tn_codebook_is_next(const tn_reading *r);

/* The codebook that the text is from `at` to `end`, and the number spec that
 * it is.  `value` is the caller's to free(). */
tn_status tn_codebook_read(tn_reading *r, tn_number_spec *number, tn_codebook *book);

/* The mappings of a codebook, whose sizes and compute type are known, from the
 * table that is all of the text, and that text. */
tn_status tn_codebook_read_table(tn_reading *r, const tn_codebook *book, float *value);
void      tn_codebook_put_table(const tn_codebook *book, tn_buf *out);

/* The number spec of a codebook called `name`. */
tn_number_spec tn_codebook_number(const tn_codebook *book, const char *name);

/* The datatype of a caller's own codebook, whose values it takes over, also
 * when it fails.  `scale` is a SCALE. */
tn_status tn_datatype_of_codebook(tn_codebook *book, const char *scale, tn_datatype **datatype,
                                  tn_error *err);

/* How many predefined names this could be, at most two: exactly as it is
 * spelled, or else in any case. */
unsigned tn_datatype_find(tn_text text, const tn_datatype_name *found[2]);

/* Whether a decimal number is 0 as it is written: one that is merely too small for a double is not. */
static inline bool tn_digits_are_zero(const char *text, size_t n)
{
    for (size_t i = 0; i < n && text[i] != 'e' && text[i] != 'E'; i++)
        if (text[i] >= '1' && text[i] <= '9')
            return false;
    return true;
}

#endif
