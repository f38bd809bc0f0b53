/* formats/mtx/entries.c - the lines behind the size line: entries with their
 * indices, or the values of an array column by column.
 *
 * A matrix with a symmetry lists its lower triangle only; the other triangle is
 * added here. */
#include "formats/mtx/mtx.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- lines --- */

const char *tn_mtx_refuse(tn_mtx_reader *r, const char *p, const char *what, ...)
{
    char expected[200];
    va_list args;
    va_start(args, what);
    vsnprintf(expected, sizeof expected, what, args);
    va_end(args);
    size_t n = (size_t)(tn_mtx_word_end(p, r->end) - p), left = (size_t)(r->end - p);
    bool line_end = left && (*p == '\n' || (*p == '\r' && (left == 1 || p[1] == '\n')));
    tn_quoted word = tn_quote(p, n || !left ? n : 1);
    const char *found = word.text;
    if (!left || line_end)
        found = left ? "the end of the line" : "the end of the file";
    tn_fail_at(r->err, left ? TN_ERR_CORRUPT : TN_ERR_TRUNCATED, (uint64_t)(p - r->text),
               "line %llu: expected %s but found %s", (unsigned long long)r->line, expected, found);
    return NULL;
}

const char *tn_mtx_next_line(tn_mtx_reader *r, const char *p)
{
    for (;;) {
        p = tn_mtx_skip_blanks(p, r->end);
        const char *next = tn_mtx_step_over_end(r, p);
        if (next == p)
            return p;
        p = next;
    }
}

/* --- one number --- */

static inline bool at_word_end(const char *p, const char *end)
{
    return p == end || tn_mtx_is_blank(*p) || *p == '\n' || *p == '\r';
}

typedef struct loop {
    tn_mtx_reader       *r;
    const char          *end;
    tn_mtx_numbers       numbers;
    unsigned             bits;          /* of each of them */
    unsigned             index_bits;
    uint64_t             most[2];       /* highest row and column, from 1 */
    const char        *(*take)(struct loop *l, const char *p, uint64_t *code);
} loop;

static const char *refuse_value(loop *l, const char *p, bool held)
{
    const tn_dtype_info *type = l->numbers.type;
    if (type->kind == TN_KIND_FLOAT)
        return held ? tn_mtx_refuse(l->r, p, "a number")
                    : tn_mtx_refuse(l->r, p, "a number that %s holds", type->name);
    char text[2][TN_MTX_NUMBER_MAX];
    *tn_mtx_put_integer(type, tn_dtype_limit(type, true), text[0]) = '\0';
    *tn_mtx_put_integer(type, tn_dtype_limit(type, false), text[1]) = '\0';
    return tn_mtx_refuse(l->r, p, "an integer from %s to %s", text[0], text[1]);
}

static const char *take_real(loop *l, const char *p, uint64_t *code)
{
    bool held;
    p = tn_mtx_skip_blanks(p, l->end);
    const char *next = tn_mtx_read_real(&l->numbers.real, p, l->end, code, &held);
    bool good = next && held && at_word_end(next, l->end);
    return good ? next : refuse_value(l, p, !next || held);
}

static const char *take_complex(loop *l, const char *p, uint64_t *code)
{
    p = take_real(l, p, &code[0]);
    return p ? take_real(l, p, &code[1]) : NULL;
}

static const char *take_integer(loop *l, const char *p, uint64_t *code)
{
    bool held;
    p = tn_mtx_skip_blanks(p, l->end);
    const char *next = tn_mtx_read_integer(l->numbers.type, p, l->end, code, &held);
    bool good = next && held && at_word_end(next, l->end);
    return good ? next : refuse_value(l, p, true);
}

static const char *take_nothing(loop *l, const char *p, uint64_t *code)
{
    (void)l;
    code[0] = 1;
    return p;
}

static loop make_loop(tn_mtx_reader *r)
{
    const tn_dtype_info *index = tn_dtype_get(r->index);
    loop l = { .r = r, .end = r->end, .numbers = tn_mtx_numbers_of(r->dtype), .index_bits = index->bits };
    uint64_t highest = tn_dtype_limit(index, false);
    for (int i = 0; i < 2; i++)
        l.most[i] = (uint64_t)r->shape[i] - 1 < highest || !r->shape[i] ? (uint64_t)r->shape[i] : highest + 1;
    l.bits = l.numbers.type->bits;
    l.take = take_integer;
    if (r->field == TN_MTX_PATTERN)
        l.take = take_nothing;
    else if (l.numbers.count == 2)
        l.take = take_complex;
    else if (l.numbers.type->kind == TN_KIND_FLOAT)
        l.take = take_real;
    return l;
}

static inline void store(const loop *l, uint64_t at, const uint64_t *code)
{
    for (unsigned k = 0; k < l->numbers.count; k++)
        tn_code_put(l->r->values, at * l->numbers.count + k, l->bits, code[k]);
}

/* --- symmetry --- */

/* A number with the other sign.  Zero stays +0, so that an element which is 0 on
 * one side of the diagonal is so on the other. */
static uint64_t negative(const loop *l, uint64_t code)
{
    uint64_t sign = UINT64_C(1) << (l->bits - 1);
    if (l->numbers.type->kind == TN_KIND_FLOAT)
        return code & (sign - 1) ? code ^ sign : 0;
    return (0 - code) & (UINT64_MAX >> (64 - l->bits));
}

/* Turns an element of the lower triangle into its mirror image; `at` is the text of
 * its value.  Types that cannot be negated have no skew-symmetric matrices. */
static bool mirror(const loop *l, const char *at, uint64_t *code)
{
    bool skew = l->r->symmetry == TN_MTX_SKEW;
    if (skew && l->numbers.type->kind != TN_KIND_FLOAT && code[0] == UINT64_C(1) << (l->bits - 1))
        return tn_mtx_refuse(l->r, at, "an integer whose negative %s holds too", l->numbers.type->name) !=
               NULL;
    if (skew)
        code[0] = negative(l, code[0]);
    if (l->numbers.count == 2 && l->r->symmetry != TN_MTX_SYMMETRIC)
        code[1] = negative(l, code[1]);
    return true;
}

/* An element of the diagonal is its own mirror image. */
static bool check_diagonal(const loop *l, const char *at, const uint64_t *code)
{
    if (l->r->symmetry == TN_MTX_SKEW)
        return tn_mtx_refuse(l->r, at, "no entry on the diagonal of a skew-symmetric matrix") != NULL;
    if (l->r->symmetry == TN_MTX_HERMITIAN && code[1] << (65 - l->bits))
        return tn_mtx_refuse(l->r, tn_mtx_skip_blanks(tn_mtx_word_end(at, l->end), l->end),
                             "no imaginary part on the diagonal of a hermitian matrix") != NULL;
    return true;
}

/* --- entries --- */

/* Reads an index from 1 and makes it one from 0. */
static inline const char *take_index(loop *l, const char *p, unsigned dimension, uint64_t *index)
{
    uint64_t n = 0, most = l->most[dimension];
    p = tn_mtx_skip_blanks(p, l->end);
    const char *first = p;
    while (p < l->end && tn_is_digit(*p) && tn_add_digit(&n, *p) && n <= most)
        p++;
    if (!n || !at_word_end(p, l->end))
        return tn_mtx_refuse(l->r, first, "a %s from 1 to %llu", dimension ? "column" : "row",
                             (unsigned long long)most);
    *index = n - 1;
    return p;
}

static inline void store_element(const loop *l, uint64_t row, uint64_t column, const uint64_t *code)
{
    tn_mtx_reader *r = l->r;
    if (r->array) {
        store(l, row * (uint64_t)r->shape[1] + column, code);
        return;
    }
    store(l, r->count, code);
    tn_code_put(r->indices, 2 * r->count, l->index_bits, row);
    tn_code_put(r->indices, 2 * r->count + 1, l->index_bits, column);
    r->count++;
}

/* Reads the value at p, the last word of the line that begins at `line`, and stores the element and its
 * mirror image. */
static inline const char *take_value(loop *l, const char *line, const char *p, uint64_t row, uint64_t column)
{
    uint64_t code[2] = { 0 };
    const char *value = tn_mtx_skip_blanks(p, l->end);
    p = l->take(l, p, code);
    if (!p)
        return NULL;
    store_element(l, row, column, code);
    if (l->r->symmetry != TN_MTX_GENERAL) {
        if (column > row)
            return tn_mtx_refuse(l->r, line, "an entry on or below the diagonal (a matrix with a symmetry "
                                 "lists only these)");
        if (column == row ? !check_diagonal(l, value, code) : !mirror(l, value, code))
            return NULL;
        if (column != row)
            store_element(l, column, row, code);
    }
    return tn_mtx_end_line(l->r, p);
}

static const char *take_entry(loop *l, const char *line)
{
    uint64_t row = 0, column = 0;
    const char *p = take_index(l, line, 0, &row);
    if (p)
        p = take_index(l, p, 1, &column);
    return p ? take_value(l, line, p, row, column) : NULL;
}

/* --- the matrix --- */

static const char *next_item(tn_mtx_reader *r, const char *p, uint64_t taken)
{
    p = tn_mtx_next_line(r, p);
    if (p == r->end)
        return tn_mtx_refuse(r, p, "%s %llu of %llu", r->array ? "value" : "entry",
                             (unsigned long long)taken + 1, (unsigned long long)r->listed);
    if (*p == '%')
        return tn_mtx_refuse(r, p, "comments before the size line only");
    return p;
}

static const char *take_coordinate(loop *l, const char *p)
{
    tn_mtx_reader *r = l->r;
    for (uint64_t k = 0; k < r->listed && p; k++) {
        p = next_item(r, p, k);
        if (p)
            p = take_entry(l, p);
    }
    return p;
}

static const char *take_array(loop *l, const char *p)
{
    tn_mtx_reader *r = l->r;
    uint64_t taken = 0, rows = (uint64_t)r->shape[0];
    for (uint64_t column = 0; taken < r->listed && p; column++) {
        uint64_t first = r->symmetry == TN_MTX_GENERAL ? 0 : column + (r->symmetry == TN_MTX_SKEW);
        for (uint64_t row = first; row < rows && p; row++) {
            p = next_item(r, p, taken++);
            if (p)
                p = take_value(l, p, p, row, column);
        }
    }
    return p;
}

tn_status tn_mtx_take_entries(tn_mtx_reader *r, const char *p)
{
    loop l = make_loop(r);
    p = r->array ? take_array(&l, p) : take_coordinate(&l, p);
    if (!p)
        return r->err->status;
    p = tn_mtx_next_line(r, p);
    if (p == r->end)
        return TN_OK;
    tn_mtx_refuse(r, p, "the end of the file behind %llu %s", (unsigned long long)r->listed,
                  r->array ? "values" : "entries");
    return TN_ERR_CORRUPT;
}
