/* quant/grammar/codebook.c - parse the name of a codebook and compute its mappings.
 *
 *     cb<I><M>CLAUSES_COMPUTE    f|i[OFFSETS][e[EXPONENTS]]   p|s[<INTERVAL>[OFFSETS]]
 *     icb<I><M>CLAUSES_COMPUTE   f|i[<OFFSET>]                p|s[<INTERVAL - 1>[<OFFSET>]]
 *     cb<I><M>[TABLE]_COMPUTE    see codebook_table.c
 *
 * A code has I bits, the choice of a mapping M bits.  A clause is a pattern on the
 * number line of the compute type, counted down from the largest number: that of
 * small floats, of integers, of growing (p) or of equal (s) steps.  In cb each digit
 * gives a mapping.  icb shifts each pattern down until there are enough mappings. */
#include "quant/grammar/datatype_read.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_VALUES = 128, MAX_DIGITS = 10, NAME_SIZE = sizeof ((tn_number_spec *)0)->text };

typedef struct clause {
    const char *at;
    char     letter;            /* f, i, p, s */
    bool     pure;              /* f, i: the pattern is not shifted */
    unsigned interval;          /* p, s: the first step */
    unsigned offsets, exponents;
    uint8_t  offset[MAX_DIGITS], exponent[MAX_DIGITS];
} clause;

typedef struct builder {
    tn_reading    *r;
    const char    *begin;       /* of its name */
    bool           implicit;    /* icb */
    tn_codebook    book;
    float         *value;
    uint32_t       count;       /* mappings so far */
    char           name[NAME_SIZE];     /* canonical */
    size_t         name_size;   /* may be larger than the array */
} builder;

static void put_name(builder *m, char c)
{
    if (m->name_size < NAME_SIZE - 1)
        m->name[m->name_size] = c;
    m->name_size++;
}

static tn_status fail_at(const builder *m, const char *at, const char *what)
{
    return tn_reading_fail(m->r, TN_ERR_ARGUMENT, at, "%s", what);
}

/* ---- clauses ---- */

/* Reads at most `max` digits from 0 to `largest`. */
static tn_status read_digits(builder *m, unsigned largest, unsigned max, uint8_t digits[MAX_DIGITS],
                             unsigned *count)
{
    *count = 0;
    for (char c; (c = tn_next(m->r)) >= '0' && c <= '9'; m->r->at++) {
        unsigned digit = (unsigned)(c - '0');
        if (digit > largest)
            return tn_reading_fail(m->r, TN_ERR_ARGUMENT, m->r->at, "expected a digit up to %u but found %u",
                                   largest, digit);
        if (*count == max)
            return tn_reading_fail(m->r, TN_ERR_ARGUMENT, m->r->at,
                                   "expected at most %u digits here but found one more", max);
        digits[(*count)++] = (uint8_t)digit;
    }
    return TN_OK;
}

static void put_digits(builder *m, const uint8_t *digits, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        put_name(m, (char)('0' + digits[i]));
}

/* cb: f|i[OFFSETS][e[EXPONENTS]] */
static tn_status read_pattern(builder *m, clause *c)
{
    TN_TRY(read_digits(m, 9, MAX_DIGITS, c->offset, &c->offsets));
    put_digits(m, c->offset, c->offsets);
    c->pure = c->offsets == 0;
    if (c->pure)
        c->offsets = 1;
    if (!tn_take_word(m->r, "e")) {
        c->exponents = 1;
        return TN_OK;
    }
    TN_TRY(read_digits(m, 3, MAX_DIGITS, c->exponent, &c->exponents));
    put_name(m, 'e');
    if (c->exponents == 2 && c->exponent[0] == 0 && c->exponent[1] == 1)
        return TN_OK;
    put_digits(m, c->exponent, c->exponents);
    if (c->exponents == 0) {                    /* e is e01 */
        c->exponent[1] = 1;
        c->exponents = 2;
    }
    return TN_OK;
}

/* cb: p|s[<INTERVAL>[OFFSETS]] */
static tn_status read_steps(builder *m, clause *c)
{
    uint8_t digits[MAX_DIGITS];
    unsigned count;
    const char *begin = m->r->at;
    TN_TRY(read_digits(m, 9, MAX_DIGITS, digits, &count));
    if (count && digits[0] == 0)
        return fail_at(m, begin, "expected a first step of 1 to 9 but found 0");
    c->interval = count ? digits[0] : 1;
    c->exponents = c->offsets = 1;
    put_name(m, (char)('0' + c->interval));
    if (count > 1) {
        c->offsets = count - 1;
        memcpy(c->offset, digits + 1, c->offsets);
    }
    if (c->offsets > 1 || c->offset[0] != 0)    /* p1 is p10 */
        put_digits(m, c->offset, c->offsets);
    return TN_OK;
}

/* icb: f|i[<OFFSET>] and p|s[<INTERVAL - 1>[<OFFSET>]].  Missing digits are 0. */
static tn_status read_implicit(builder *m, clause *c)
{
    bool steps = c->letter == 'p' || c->letter == 's';
    uint8_t digits[MAX_DIGITS] = { 0 };
    unsigned count;
    TN_TRY(read_digits(m, 9, steps ? 2 : 1, digits, &count));
    while (count && digits[count - 1] == 0)
        count--;
    put_digits(m, digits, count);
    c->exponents = c->offsets = 1;
    c->offset[0] = digits[steps];
    c->interval = digits[0] + 1u;
    return TN_OK;
}

static tn_status read_clause(builder *m, clause *c)
{
    *c = (clause){ .at = m->r->at, .letter = tn_next(m->r) };
    if (!c->letter || !strchr("fips", c->letter))
        return tn_reading_fail(m->r, TN_ERR_ARGUMENT, m->r->at,
                               "expected f, i, p, s or _ and the compute type but found %s",
                               tn_quote(m->r->at, m->r->at < m->r->end).text);
    m->r->at++;
    put_name(m, c->letter);
    if (m->implicit)
        return read_implicit(m, c);
    return c->letter == 'f' || c->letter == 'i' ? read_pattern(m, c) : read_steps(m, c);
}

/* ---- mappings ---- */

/* Sets the distance of each value of the pattern from the largest number, in places on
 * the number line, largest value first.  Sets the values of f and i too. */
static tn_status find_pattern(const builder *m, const clause *c, uint32_t distance[MAX_VALUES],
                              double value[MAX_VALUES])
{
    const tn_codebook *b = &m->book;
    uint32_t top = tn_number_top(&b->compute), count = b->values - 1, index;
    if (c->letter == 'p' || c->letter == 's') {
        uint32_t step = c->interval, sum = 0;
        for (uint32_t k = 0; k < count; k++, sum += step, step += c->letter == 'p')
            distance[k] = sum;
        return TN_OK;
    }
    bool small_float = c->letter == 'f';
    if (small_float && (b->index_bits < 3 || b->index_bits > 6))
        return tn_reading_fail(m->r, TN_ERR_ARGUMENT, c->at, "f needs codes of 3 to 6 bits but found %u",
                               b->index_bits);
    const tn_number_spec small = {              /* e2m(I - 3), or the integer of I bits */
        .exponent_bits = small_float ? 2 : 1,
        .mantissa_bits = (uint8_t)(b->index_bits - (small_float ? 3 : 2)),
        .bias = 1, .emax = small_float ? 2 : 0, .infnan = TN_INFNAN_FNUZ,
    };
    for (uint32_t k = 0; k < count; k++) {
        value[k] = ldexp(tn_number_at(&small, count - k), b->compute.emax - small.emax);
        if (!tn_number_find(&b->compute, value[k], &index))
            return tn_reading_fail(m->r, TN_ERR_ARGUMENT, c->at, "%s%u needs %.9g but %s has no such number",
                                   small_float ? "e2m" : "int",
                                   small_float ? b->index_bits - 3 : b->index_bits, value[k],
                                   b->compute.text);
        distance[k] = top - index;
    }
    return TN_OK;
}

/* Adds one mapping: the pattern with its largest value `shift` places below the
 * largest number, divided by 2^exponent.  Places below zero are an error in cb and
 * zero in icb. */
static tn_status put_mapping(builder *m, const clause *c, const uint32_t *distance, const double *value,
                             uint32_t shift, unsigned exponent)
{
    const tn_number_spec *compute = &m->book.compute;
    uint32_t top = tn_number_top(compute), values = m->book.values, index;
    float *mapping = m->value + (size_t)m->count * values;
    for (uint32_t k = 0; k < values - 1; k++) {
        uint32_t below = distance[k] - distance[0] + shift;
        if (below >= top && !m->implicit && !c->pure)
            return tn_reading_fail(m->r, TN_ERR_ARGUMENT, c->at,
                                   "value %u of %u from the top is number %u but %s has %u", k + 1,
                                   values - 1, below + 1, compute->text, top);
        double v = below < top ? tn_number_at(compute, top - below) : 0;
        if (c->pure)
            v = value[k];
        v = ldexp(v, -(int)exponent);
        if (!tn_number_find(compute, v, &index))
            return tn_reading_fail(m->r, TN_ERR_ARGUMENT, c->at, "e%u needs %.9g but %s has no such number",
                                   exponent, v, compute->text);
        mapping[values - 1 - k] = (float)v;
    }
    m->count++;
    return TN_OK;
}

/* Adds the mappings of a clause of cb: one per exponent and offset. */
static tn_status put_explicit(builder *m, const clause *c)
{
    uint32_t distance[MAX_VALUES];
    double value[MAX_VALUES];
    TN_TRY(find_pattern(m, c, distance, value));
    if (c->offsets * c->exponents > m->book.mappings - m->count)
        return tn_reading_fail(m->r, TN_ERR_ARGUMENT, c->at,
                               "%u bits choose among %u mappings but found more", m->book.meta_bits,
                               m->book.mappings);
    for (unsigned e = 0; e < c->exponents; e++)
        for (unsigned o = 0; o < c->offsets; o++)
            TN_TRY(put_mapping(m, c, distance, value, c->offset[o], c->exponent[e]));
    return TN_OK;
}

/* Adds the mappings of a clause of icb: the pattern, shifted further down each time. */
static tn_status put_shifts(builder *m, const clause *c, uint32_t shifts)
{
    uint32_t distance[MAX_VALUES];
    double value[MAX_VALUES];
    uint32_t step = m->book.meta_bits > 1 && shifts < UINT32_C(1) << m->book.compute.mantissa_bits ? 2 : 1;
    TN_TRY(find_pattern(m, c, distance, value));
    for (uint32_t i = 0; i < shifts; i++)
        TN_TRY(put_mapping(m, c, distance, value, c->offset[0] + i * step, 0));
    return TN_OK;
}

/* ---- codebooks ---- */

/* Only a table may have M = 0: one mapping and no choice. */
static bool table_follows(const builder *m)
{
    return !m->implicit && m->r->end - m->r->at > 1 && m->r->at[1] == '[';
}

/* cb<I><M>: the sizes. */
static tn_status read_head(builder *m)
{
    m->implicit = tn_take_word(m->r, "icb");
    if (!m->implicit)
        tn_take_word(m->r, "cb");
    for (const char *p = m->begin; p < m->r->at; p++)
        put_name(m, tn_lower(*p));
    unsigned digits[2];
    for (int i = 0; i < 2; i++) {
        digits[i] = (unsigned)tn_next(m->r) - '0';
        unsigned low = m->implicit ? 4 : 2, high = m->implicit ? 4 : 8;
        const char *limits = m->implicit ? "4 in icb" : "2 to 8";
        if (i == 1) {
            low = !table_follows(m);
            high = 8;
            limits = "1 to 8";
        }
        if (digits[i] < low || digits[i] > high)
            return tn_reading_fail(m->r, TN_ERR_ARGUMENT, m->r->at,
                                   "expected the bits of a %s, %s, but found %s",
                                   i ? "choice of mapping" : "code", limits,
                                   m->r->at < m->r->end ? tn_quote(m->r->at, 1).text : "the end");
        put_name(m, (char)('0' + digits[i]));
        m->r->at++;
    }
    m->book.index_bits = digits[0];
    m->book.meta_bits = digits[1];
    m->book.values = UINT32_C(1) << (digits[0] - 1);
    m->book.mappings = UINT32_C(1) << digits[1];
    return TN_OK;
}

static const char *find_underscore(const tn_reading *r)
{
    const char *p = r->at;
    while (p < r->end && *p != '_')
        p++;
    return p;
}

/* Reads the compute type first: the clauses need it. */
static tn_status read_compute(builder *m, const char *underscore)
{
    if (underscore == m->r->end)
        return fail_at(m, underscore, "expected _ and the compute type but found the end");
    tn_reading compute = *m->r;
    compute.at = underscore + 1;
    TN_TRY(tn_number_read(&compute, &m->book.compute));
    if (m->book.compute.kind != TN_NUMBER_FLOAT && m->book.compute.kind != TN_NUMBER_INT)
        return tn_reading_fail(m->r, TN_ERR_ARGUMENT, underscore + 1,
                               "expected a float or an int to compute with but found %s",
                               m->book.compute.text);
    return TN_OK;
}

static unsigned count_clauses(const tn_reading *r)
{
    unsigned count = 0;
    for (const char *p = r->at; p < r->end; p++)
        count += *p < '0' || *p > '9';
    return count;
}

/* icb: each clause has the same number of mappings. */
static tn_status divide_mappings(const builder *m, uint32_t *shifts)
{
    unsigned clauses = count_clauses(m->r);
    *shifts = clauses ? m->book.mappings / clauses : 0;
    if (*shifts == 0 || *shifts * clauses != m->book.mappings)
        return tn_reading_fail(m->r, TN_ERR_ARGUMENT, m->r->at,
                               "%u mappings cannot be divided among %u clauses", m->book.mappings,
                               clauses);
    return TN_OK;
}

static tn_status read_clauses(builder *m)
{
    uint32_t shifts = 0;
    TN_TRY(m->implicit ? divide_mappings(m, &shifts) : TN_OK);
    if (m->r->at == m->r->end)
        return fail_at(
            m, m->r->at,
            "a codebook without clauses has no mappings of its own: they come with a table of values");
    while (m->r->at < m->r->end) {
        clause c;
        TN_TRY(read_clause(m, &c));
        TN_TRY(m->implicit ? put_shifts(m, &c, shifts) : put_explicit(m, &c));
    }
    if (m->count != m->book.mappings)
        return tn_reading_fail(m->r, TN_ERR_ARGUMENT, m->r->at,
                               "%u bits choose among %u mappings but found %u", m->book.meta_bits,
                               m->book.mappings, m->count);
    return TN_OK;
}

bool tn_codebook_is_next(const tn_reading *r)
{
    tn_reading look = *r;
    return tn_take_word(&look, "cb") || tn_take_word(&look, "icb");
}

tn_number_spec tn_codebook_number(const tn_codebook *book, const char *name)
{
    tn_number_spec n = { .kind = TN_NUMBER_CODEBOOK, .bits = (uint8_t)book->index_bits };
    memcpy(n.text, name, strnlen(name, sizeof n.text - 1));
    return n;
}

static tn_status build(builder *m)
{
    tn_reading all = *m->r;
    const char *underscore = find_underscore(m->r);
    m->r->end = underscore;
    TN_TRY(read_head(m));
    m->r->end = all.end;
    TN_TRY(read_compute(m, underscore));
    m->r->end = underscore;
    m->value = calloc((size_t)m->book.mappings * m->book.values, sizeof *m->value);
    TN_NEED(m->value, m->r->err);
    m->book.table = !m->implicit && tn_next(m->r) == '[';
    TN_TRY(m->book.table ? tn_codebook_read_table(m->r, &m->book, m->value) : read_clauses(m));
    put_name(m, '_');
    for (const char *p = m->book.compute.text; *p; p++)
        put_name(m, *p);
    if (m->name_size >= NAME_SIZE)
        return tn_reading_fail(m->r, TN_ERR_UNSUPPORTED, m->begin,
                               "a codebook's name has at most %d characters but found more", NAME_SIZE - 1);
    m->r->at = m->r->end = all.end;
    return TN_OK;
}

tn_status tn_codebook_read(tn_reading *r, tn_number_spec *number, tn_codebook *book)
{
    builder m = { .r = r, .begin = r->at };
    tn_status status = build(&m);
    if (status) {
        free(m.value);
        return status;
    }
    *number = tn_codebook_number(&m.book, m.name);
    m.book.value = m.value;
    *book = m.book;
    return TN_OK;
}
