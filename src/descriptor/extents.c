/* descriptor/extents.c - ranges of symbols, extents and strides. */
#include "descriptor/extents.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tn_wide tn_wide_mul(tn_wide a, tn_wide b)
{
    if (a == 0 || b == 0)
        return 0;
    tn_wide a_size = a < 0 ? -a : a;
    tn_wide b_size = b < 0 ? -b : b;
    tn_wide size = a_size > TN_WIDE_MAX / b_size ? TN_WIDE_MAX : a_size * b_size;
    return (a < 0) == (b < 0) ? size : -size;
}

tn_phrase tn_wide_phrase(tn_wide n)
{
    const tn_wide most = (tn_wide)1 << 64;
    char digits[40];
    size_t at = sizeof digits;
    tn_phrase p;
    if (n > most || n < -most)
        return n > 0 ? (tn_phrase){ "more than 2^64" } : (tn_phrase){ "less than -2^64" };
    digits[--at] = '\0';
    for (tn_wide size = n < 0 ? -n : n; size > 0 || digits[at] == '\0'; size /= 10)
        digits[--at] = (char)('0' + (int)(size % 10));
    snprintf(p.text, sizeof p.text, "%s%s", n < 0 ? "-" : "", digits + at);
    return p;
}

/* Adds text, escaped; what does not fit ends in "...". */
static void add(tn_phrase *p, const char *text)
{
    size_t used = strlen(p->text);
    if (used + 4 < sizeof p->text)
        tn_escape(p->text + used, sizeof p->text - used, text, strlen(text));
}

static void add_number(tn_phrase *p, int64_t n)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, n);
    add(p, digits);
}

/* ---- symbols ---- */

static bool is_symbol_start(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool tn_is_symbol(const char *text)
{
    if (!is_symbol_start(*text))
        return false;
    while (is_symbol_start(*text) || (*text >= '0' && *text <= '9'))
        text++;
    return *text == '\0';
}

tn_phrase tn_symbol_phrase(const char *name)
{
    tn_phrase p = { "" };
    add(&p, name);
    return p;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tn_wia_constraint *)a)->symbol, ((const tn_wia_constraint *)b)->symbol);
}

static size_t count_uses(const tn_descriptor *d)
{
    size_t n = d->rank;
    for (uint32_t i = 0; d->strides && i < d->rank; i++)
        n += d->strides[i].nsymbols;
    return n;
}

static void add_use(tn_symbols *s, const char *name)
{
    s->items[s->count++] = (tn_wia_constraint){ .symbol = name, .max = INT64_MAX, .multiple_of = 1 };
}

static void collect(tn_symbols *s, const tn_descriptor *d)
{
    for (uint32_t i = 0; i < d->rank; i++)
        if (d->dimensions[i].symbol)
            add_use(s, d->dimensions[i].symbol);
    for (uint32_t i = 0; d->strides && i < d->rank; i++)
        for (uint32_t k = 0; k < d->strides[i].nsymbols; k++)
            add_use(s, d->strides[i].symbols[k]);
}

static void sort_and_unite(tn_symbols *s)
{
    size_t kept = 0;
    if (s->count)
        qsort(s->items, s->count, sizeof *s->items, by_name);
    for (size_t i = 0; i < s->count; i++)
        if (kept == 0 || by_name(&s->items[kept - 1], &s->items[i]) != 0)
            s->items[kept++] = s->items[i];
    s->count = kept;
}

tn_status tn_symbols_init(tn_symbols *s, const tn_descriptor *d, tn_error *err)
{
    *s = (tn_symbols){ .items = calloc(count_uses(d) + 1, sizeof *s->items) };
    TN_NEED(s->items, err);
    collect(s, d);
    sort_and_unite(s);
    for (size_t i = 0; i < d->nconstraints; i++) {
        const tn_wia_constraint *given = &d->constraints[i];
        tn_wia_constraint *own = tn_symbols_find(s, given->symbol);
        if (own) {
            own->min = given->min > 0 ? given->min : 0;
            own->max = given->max;
            own->multiple_of = given->multiple_of > 1 ? given->multiple_of : 1;
        }
    }
    return TN_OK;
}

void tn_symbols_free(tn_symbols *s)
{
    free(s->items);
    *s = (tn_symbols){ 0 };
}

tn_wia_constraint *tn_symbols_find(const tn_symbols *s, const char *name)
{
    const tn_wia_constraint key = { .symbol = name };
    return s->count ? bsearch(&key, s->items, s->count, sizeof *s->items, by_name) : NULL;
}

bool tn_constraint_bounds(const tn_wia_constraint *c, int64_t *low, int64_t *high)
{
    int64_t min = c->min > 0 ? c->min : 0;
    int64_t step = c->multiple_of > 1 ? c->multiple_of : 1;
    int64_t below = min % step;         /* distance to the multiple before min */
    if (below != 0 && step - below > INT64_MAX - min)
        return false;
    *low = below ? min + (step - below) : min;
    *high = c->max == INT64_MAX ? INT64_MAX : c->max - c->max % step;
    return *low <= c->max;
}

bool tn_constraint_allows(const tn_wia_constraint *c, int64_t value)
{
    return value >= 0 && value >= c->min && value <= c->max &&
           (c->multiple_of < 2 || value % c->multiple_of == 0);
}

bool tn_symbol_is_endless(const tn_symbols *symbols, const char *name)
{
    const tn_wia_constraint *c = tn_symbols_find(symbols, name);
    int64_t low, high;
    return c && tn_constraint_bounds(c, &low, &high) && high == INT64_MAX;
}

tn_phrase tn_constraint_phrase(const tn_wia_constraint *c)
{
    tn_phrase p = { "a number" };
    if (c->multiple_of > 1) {
        p = (tn_phrase){ "a multiple of " };
        add_number(&p, c->multiple_of);
    }
    add(&p, c->max == INT64_MAX ? " not below " : " from ");
    add_number(&p, c->min > 0 ? c->min : 0);
    if (c->max != INT64_MAX) {
        add(&p, " to ");
        add_number(&p, c->max);
    }
    return p;
}

/* ---- extents and strides ---- */

static tn_wia_range symbol_range(const tn_symbols *symbols, const char *name)
{
    const tn_wia_constraint *c = tn_symbols_find(symbols, name);
    int64_t low, high;
    if (!c || !tn_constraint_bounds(c, &low, &high) || high == INT64_MAX)
        return (tn_wia_range){ .unbounded = name };
    return (tn_wia_range){ .low = low, .high = high };
}

tn_wia_range tn_extent_range(const tn_symbols *symbols, const tn_wia_extent *e)
{
    return e->symbol ? symbol_range(symbols, e->symbol) : (tn_wia_range){ .low = e->value, .high = e->value };
}

tn_wia_range tn_product_range(const tn_symbols *symbols, const tn_wia_product *p)
{
    tn_wia_range all = { .low = p->factor, .high = p->factor };
    for (uint32_t i = 0; i < p->nsymbols && p->factor != 0; i++) {
        tn_wia_range one = symbol_range(symbols, p->symbols[i]);
        if (one.unbounded)
            return one;
        all.low = tn_wide_mul(all.low, p->factor > 0 ? one.low : one.high);
        all.high = tn_wide_mul(all.high, p->factor > 0 ? one.high : one.low);
    }
    return all;
}

tn_phrase tn_product_phrase(const tn_wia_product *p)
{
    tn_phrase out = { "" };
    if (p->factor != 1 || p->nsymbols == 0)
        add_number(&out, p->factor);
    for (uint32_t i = 0; i < p->nsymbols; i++) {
        if (out.text[0])
            add(&out, "*");
        add(&out, p->symbols[i]);
    }
    return out;
}

tn_phrase tn_extent_phrase(const tn_wia_extent *e)
{
    tn_phrase out = { "" };
    if (e->symbol)
        return tn_symbol_phrase(e->symbol);
    add_number(&out, e->value);
    return out;
}

tn_wia_extent tn_physical_extent(const tn_descriptor *d, uint32_t i)
{
    return d->physical_shape ? (tn_wia_extent){ .value = d->physical_shape[i] } : d->dimensions[i];
}

tn_wia_product tn_dense_stride(const tn_descriptor *d, uint32_t i, const char **names)
{
    tn_wia_product p = { .factor = 1, .symbols = names };
    for (uint32_t k = i + 1; k < d->rank; k++) {
        tn_wia_extent e = tn_physical_extent(d, k);
        if (e.symbol)
            names[p.nsymbols++] = e.symbol;
        else if (__builtin_mul_overflow(p.factor, e.value, &p.factor))
            p.factor = INT64_MAX;
    }
    return p;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool same_product(const tn_wia_product *a, const tn_wia_product *b)
{
    const char *left[TN_MAX_RANK], *right[TN_MAX_RANK];
    uint32_t n = a->nsymbols;
    if (a->factor != b->factor || n != b->nsymbols || n > TN_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        left[i] = a->symbols[i];
        right[i] = b->symbols[i];
    }
    qsort(left, n, sizeof *left, by_text);
    qsort(right, n, sizeof *right, by_text);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(left[i], right[i]) != 0)
            return false;
    return true;
}

static tn_wia_range physical_range(const tn_descriptor *d, const tn_symbols *symbols, uint32_t i)
{
    tn_wia_extent extent = tn_physical_extent(d, i);
    return tn_extent_range(symbols, &extent);
}

/* No element can exist. */
static bool is_empty(const tn_descriptor *d, const tn_symbols *symbols)
{
    for (uint32_t i = 0; i < d->rank; i++) {
        tn_wia_range range = physical_range(d, symbols, i);
        if (!range.unbounded && range.high <= 0)
            return true;
    }
    return false;
}

bool tn_stride_is_dense(const tn_descriptor *d, const tn_symbols *symbols, uint32_t i)
{
    const char *names[TN_MAX_RANK];
    tn_wia_range range = physical_range(d, symbols, i);
    if (!d->strides || (!range.unbounded && range.high <= 1) || is_empty(d, symbols))
        return true;
    tn_wia_product dense = tn_dense_stride(d, i, names);
    return same_product(&dense, &d->strides[i]);
}

bool tn_descriptor_has_symbols(const tn_descriptor *d)
{
    for (uint32_t i = 0; i < d->rank; i++)
        if (d->dimensions[i].symbol || (d->strides && d->strides[i].nsymbols))
            return true;
    return false;
}

/* ---- the bits that elements take ---- */

/* Elements of a dense tensor. */
static tn_wia_range dense_count(const tn_descriptor *d, const tn_symbols *symbols)
{
    tn_wia_range count = { .high = 1 };
    for (uint32_t i = 0; i < d->rank; i++) {
        tn_wia_range range = physical_range(d, symbols, i);
        if (range.unbounded)
            return range;
        count.high = tn_wide_mul(count.high, range.high);
    }
    return count;
}

/* The elements from the first in memory to after the last, counted from index 0. */
static tn_wia_range strided_span(const tn_descriptor *d, const tn_symbols *symbols)
{
    tn_wia_range span = { .high = 1 };
    for (uint32_t i = 0; i < d->rank; i++) {
        tn_wia_range steps = physical_range(d, symbols, i);
        tn_wia_range stride = tn_product_range(symbols, &d->strides[i]);
        if (d->strides[i].factor == 0 || (!steps.unbounded && steps.high <= 1))
            continue;
        if (steps.unbounded || stride.unbounded)
            return steps.unbounded ? steps : stride;
        if (d->strides[i].factor > 0)
            span.high += tn_wide_mul(steps.high - 1, stride.high);
        else
            span.low += tn_wide_mul(steps.high - 1, stride.low);
    }
    return span;
}

tn_wia_range tn_descriptor_span(const tn_descriptor *d, const tn_symbols *symbols, unsigned bits)
{
    tn_wide offset = (tn_wide)d->offset_bytes * 8;
    if (is_empty(d, symbols))
        return (tn_wia_range){ .low = offset, .high = offset };
    tn_wia_range span = d->strides ? strided_span(d, symbols) : dense_count(d, symbols);
    span.low = offset + tn_wide_mul(span.low, bits);
    span.high = offset + tn_wide_mul(span.high, bits);
    return span;
}
