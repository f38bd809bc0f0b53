/* formats/mtx/entries.c - the lines behind the size line: entries with their
 * indices, or the values of an array column by column.
 *
 * A matrix with a symmetry lists its lower triangle only; the other one is made
 * here.  All of the text passes through these loops once. */
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
    tn_fail_at(r->err, left ? TN_ERR_CORRUPT : TN_ERR_TRUNCATED, (uint64_t)(p - r->text),
               "line %llu: expected %s but found %s", (unsigned long long)r->line, expected,
               !left ? "the end of the file" : line_end ? "the end of the line" : word.text);
    return NULL;
}

/* Behind the end of the line that p is at the end of; else p itself. */
static inline const char *step_over_end(tn_mtx_reader *r, const char *p)
{
    const char *feed = p < r->end && *p == '\r' ? p + 1 : p;
    if (feed == r->end)
        return feed;
    if (*feed != '\n')
        return p;
    r->line++;
    return feed + 1;
}

const char *tn_mtx_next_line(tn_mtx_reader *r, const char *p)
{
    for (;;) {
        p = tn_mtx_skip_blanks(p, r->end);
        const char *next = step_over_end(r, p);
        if (next == p)
            return p;
        p = next;
    }
}

static inline const char *end_line(tn_mtx_reader *r, const char *p)
{
    p = tn_mtx_skip_blanks(p, r->end);
    const char *next = step_over_end(r, p);
    return next > p || p == r->end ? next : tn_mtx_refuse(r, p, "the end of the line");
}

const char *tn_mtx_end_line(tn_mtx_reader *r, const char *p)
{
    return end_line(r, p);
}

/* --- what the loops need --- */

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
    uint64_t low = tn_dtype_limit(type, true), high = tn_dtype_limit(type, false);
    if (type->kind == TN_KIND_FLOAT)
        return held ? tn_mtx_refuse(l->r, p, "a number")
                    : tn_mtx_refuse(l->r, p, "a number that %s holds", type->name);
    char text[2][TN_MTX_NUMBER_MAX];
    *tn_mtx_put_integer(type, low, text[0]) = '\0';
    *tn_mtx_put_integer(type, high, text[1]) = '\0';
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
    l.take = r->field == TN_MTX_PATTERN              ? take_nothing
             : l.numbers.count == 2                  ? take_complex
             : l.numbers.type->kind == TN_KIND_FLOAT ? take_real
                                                     : take_integer;
    return l;
}

static inline void store(const loop *l, uint64_t at, const uint64_t *code)
{
    for (unsigned k = 0; k < l->numbers.count; k++)
        tn_code_put(l->r->values, at * l->numbers.count + k, l->bits, code[k]);
}

/* --- symmetry --- */

/* A number with the other sign; but a zero stays without one, so that elements
 * which are 0 on one side of the diagonal are so on the other. */
static uint64_t negative(const loop *l, uint64_t code)
{
    uint64_t sign = UINT64_C(1) << (l->bits - 1);
    if (l->numbers.type->kind == TN_KIND_FLOAT)
        return code & (sign - 1) ? code ^ sign : 0;
    return (0 - code) & (UINT64_MAX >> (64 - l->bits));
}

/* An element of the lower triangle becomes its mirror image; `at` is where its
 * value stands.  Types that cannot be negated have no skew-symmetric matrices. */
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

/* An index from 1 to `most`; it becomes one from 0. */
static inline const char *take_index(loop *l, const char *p, unsigned dimension, uint64_t *index)
{
    uint64_t n = 0, most = l->most[dimension];
    p = tn_mtx_skip_blanks(p, l->end);
    const char *first = p;
    for (; p < l->end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n) ||
            n > most)
            break;
    if (!n || !at_word_end(p, l->end))
        return tn_mtx_refuse(l->r, first, "a %s from 1 to %llu", dimension ? "column" : "row",
                             (unsigned long long)most);
    *index = n - 1;
    return p;
}

static void store_entry(const loop *l, uint64_t row, uint64_t column, const uint64_t *code)
{
    tn_mtx_reader *r = l->r;
    store(l, r->count, code);
    tn_code_put(r->indices, 2 * r->count, l->index_bits, row);
    tn_code_put(r->indices, 2 * r->count + 1, l->index_bits, column);
    r->count++;
}

static const char *take_entry(loop *l, const char *p)
{
    uint64_t row = 0, column = 0, code[2] = { 0 };
    const char *at = p, *value = NULL;
    p = take_index(l, p, 0, &row);
    if (p)
        p = take_index(l, p, 1, &column);
    if (p) {
        value = tn_mtx_skip_blanks(p, l->end);
        p = l->take(l, p, code);
    }
    if (!p)
        return NULL;
    store_entry(l, row, column, code);
    if (l->r->symmetry != TN_MTX_GENERAL) {
        if (column > row)
            return tn_mtx_refuse(l->r, at,
                                 "an entry below the diagonal (of a symmetry only these are listed)");
        if (column == row ? !check_diagonal(l, value, code) : !mirror(l, value, code))
            return NULL;
        if (column != row)
            store_entry(l, column, row, code);
    }
    return end_line(l->r, p);
}

/* --- values of an array --- */

static const char *take_value(loop *l, const char *p, uint64_t row, uint64_t column)
{
    uint64_t code[2] = { 0 }, columns = (uint64_t)l->r->shape[1];
    const char *at = p;
    p = l->take(l, p, code);
    if (!p)
        return NULL;
    store(l, row * columns + column, code);
    if (l->r->symmetry != TN_MTX_GENERAL) {
        if (column == row ? !check_diagonal(l, at, code) : !mirror(l, at, code))
            return NULL;
        if (column != row)
            store(l, column * columns + row, code);
    }
    return end_line(l->r, p);
}

/* --- all --- */

static const char *next_item(tn_mtx_reader *r, const char *p, uint64_t taken)
{
    p = tn_mtx_next_line(r, p);
    if (p == r->end)
        return tn_mtx_refuse(r, p, r->array ? "value %llu of %llu" : "entry %llu of %llu",
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
                p = take_value(l, p, row, column);
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
    if (p < r->end)
        tn_mtx_refuse(r, p,
                      r->array ? "the end of the file behind %llu values"
                               : "the end of the file behind %llu entries",
                      (unsigned long long)r->listed);
    return p < r->end ? TN_ERR_CORRUPT : TN_OK;
}
