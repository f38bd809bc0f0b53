/* descriptor/symbols.c - binding symbols to numbers, and joining the constraints of several descriptors. */
#include "descriptor/descriptor.h"
#include "descriptor/extents.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

/* Bytes from the beginning of the buffer to the end of the last element. */
static tn_status buffer_bytes(const tn_descriptor *d, const tn_symbols *symbols, uint64_t *bytes,
                              tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(d->dtype);
    if (d->sparse.format)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a dense tensor but found %s data in the document",
                       tn_symbol_phrase(d->sparse.format).text);
    if (!type)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a type of known size but found %s",
                       d->base_type ? tn_quote_z(d->base_type).text : "none");
    tn_wia_range span = tn_descriptor_span(d, symbols, type->bits);
    if (span.unbounded)
        return tn_fail(err, TN_ERR_LIMIT, "%s: expected a largest value but found %s",
                       tn_symbol_phrase(span.unbounded).text,
                       tn_symbol_is_endless(symbols, span.unbounded) ? "no maximum"
                       : "that no value is allowed");
    tn_wide whole = (span.high + 7) / 8;
    if (whole > UINT64_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "expected a buffer of less than 2^64 bytes but found more");
    *bytes = (uint64_t)whole;
    return TN_OK;
}

tn_status tn_descriptor_max_bytes(const tn_descriptor *d, uint64_t *bytes, tn_error *err)
{
    tn_symbols symbols;
    TN_GIVEN(d, "a descriptor", err);
    TN_GIVEN(bytes, "a place for the bytes", err);
    TN_TRY(tn_symbols_init(&symbols, d, err));
    tn_status status = buffer_bytes(d, &symbols, bytes, err);
    tn_symbols_free(&symbols);
    return status;
}

/* ---- binding ---- */

/* The symbols' names, for a message. */
static void list_names(const tn_symbols *symbols, char *text, size_t cap)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < symbols->count && used < cap; i++) {
        int n = snprintf(text + used, cap - used, "%s%s", i ? ", " : "",
                         tn_symbol_phrase(symbols->items[i].symbol).text);
        used += (size_t)n;
    }
    if (used >= cap)
        memcpy(text + cap - 4, "...", 4);
}

/* Every name bound is a symbol of the descriptor. */
static tn_status check_names(const tn_symbols *symbols, const tn_wia_binding *bindings, size_t n,
                             tn_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char known[200];
        if (tn_symbols_find(symbols, bindings[i].symbol))
            continue;
        list_names(symbols, known, sizeof known);
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a symbol of the descriptor (%s) but found %s",
                       symbols->count ? known : "it has none", tn_quote_z(bindings[i].symbol).text);
    }
    return TN_OK;
}

/* Narrows a symbol's range to the one value it is bound to. */
static tn_status bind_symbol(tn_wia_constraint *c, const tn_wia_binding *bindings, size_t n, tn_error *err)
{
    const tn_wia_binding *found = NULL;
    tn_phrase name = tn_symbol_phrase(c->symbol);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(bindings[i].symbol, c->symbol) != 0)
            continue;
        if (found && found->value != bindings[i].value)
            return tn_fail(err, TN_ERR_ARGUMENT, "%s: expected one value but found %" PRId64 " and %" PRId64,
                           name.text, found->value, bindings[i].value);
        found = &bindings[i];
    }
    if (!found)
        return tn_fail(err, TN_ERR_ARGUMENT, "%s: expected %s but found no value", name.text,
                       tn_constraint_phrase(c).text);
    if (!tn_constraint_allows(c, found->value))
        return tn_fail(err, TN_ERR_ARGUMENT, "%s: expected %s but found %" PRId64, name.text,
                       tn_constraint_phrase(c).text, found->value);
    c->min = c->max = found->value;
    c->multiple_of = 1;
    return TN_OK;
}

/* The dimensions as numbers; they must fit the physical shape. */
static tn_status resolve_shape(tn_descriptor *d, const tn_symbols *symbols, tn_arena *arena, tn_error *err)
{
    tn_wia_extent *own = tn_arena_zalloc(arena, d->rank, sizeof *own);
    TN_NEED(own, err);
    for (uint32_t i = 0; i < d->rank; i++) {
        const char *symbol = d->dimensions[i].symbol;
        own[i].value = symbol ? tn_symbols_find(symbols, symbol)->max : d->dimensions[i].value;
        if (symbol && d->physical_shape && own[i].value > d->physical_shape[i])
            return tn_fail(err, TN_ERR_ARGUMENT,
                           "%s: expected at most %" PRId64 ", physical_shape[%u], but found %" PRId64,
                           tn_symbol_phrase(symbol).text, d->physical_shape[i], i, own[i].value);
        if (d->physical_shape && own[i].value < d->physical_shape[i])
            d->is_contiguous = false;           /* now there is padding */
    }
    d->dimensions = own;
    return TN_OK;
}

static tn_status resolve_strides(tn_descriptor *d, const tn_symbols *symbols, tn_arena *arena, tn_error *err)
{
    tn_wia_product *own = d->strides ? tn_arena_zalloc(arena, d->rank, sizeof *own) : NULL;
    if (d->strides && !own)
        return tn_fail_nomem(err);
    for (uint32_t i = 0; own && i < d->rank; i++) {
        tn_wia_range value = tn_product_range(symbols, &d->strides[i]);
        if (value.unbounded || value.high > INT64_MAX || value.low < INT64_MIN)
            return tn_fail(err, TN_ERR_LIMIT, "memory.strides[%u]: expected %s to fit 64 bits but found more",
                           i, tn_product_phrase(&d->strides[i]).text);
        own[i].factor = (int64_t)value.high;
    }
    d->strides = own;
    return TN_OK;
}

/* The padding of a symbolic dimension is known only now. */
static tn_status resolve_padding(tn_descriptor *d, tn_arena *arena, tn_error *err)
{
    if (!d->has_padding || !d->physical_shape || !(d->padding.values || d->padding.dims))
        return TN_OK;
    int64_t *values = tn_arena_zalloc(arena, d->rank, sizeof *values);
    bool *dims = tn_arena_zalloc(arena, d->rank, sizeof *dims);
    TN_NEED(values && dims, err);
    for (uint32_t i = 0; i < d->rank; i++) {
        values[i] = d->physical_shape[i] - d->dimensions[i].value;
        dims[i] = values[i] != 0;
    }
    d->padding.values = d->padding.values ? values : NULL;
    d->padding.dims = d->padding.dims ? dims : NULL;
    return TN_OK;
}

/* All symbols have one value by now. */
static tn_status resolve(tn_descriptor *d, const tn_symbols *symbols, tn_arena *arena, tn_error *err)
{
    if (symbols->count == 0)
        return TN_OK;           /* nothing changes */
    TN_TRY(resolve_shape(d, symbols, arena, err));
    TN_TRY(resolve_strides(d, symbols, arena, err));
    TN_TRY(resolve_padding(d, arena, err));
    d->symbolic = false;
    d->constraints = NULL;
    d->nconstraints = 0;
    if (tn_descriptor_is_fragment(d))
        return TN_OK;           /* its elements have no size */
    d->has_memory = d->has_total = true;
    return buffer_bytes(d, symbols, &d->total_bytes, err);
}

tn_status tn_descriptor_bind(const tn_descriptor *d, const tn_wia_binding *bindings, size_t n,
                             tn_descriptors **bound, tn_error *err)
{
    tn_symbols symbols;
    tn_descriptors *set = NULL;
    TN_GIVEN(d, "a descriptor", err);
    TN_GIVEN(bindings || !n, "bindings", err);
    for (size_t i = 0; i < n; i++)
        TN_GIVEN(bindings[i].symbol, "a symbol", err);
    TN_GIVEN(bound, "a place for the descriptor", err);
    TN_TRY(tn_symbols_init(&symbols, d, err));
    tn_status status = check_names(&symbols, bindings, n, err);
    for (size_t i = 0; i < symbols.count && !status; i++)
        status = bind_symbol(&symbols.items[i], bindings, n, err);
    if (!status)
        status = tn_descriptors_new(&set, err);
    tn_descriptor *own = status ? NULL : tn_descriptors_add(set);
    if (!status)
        status = own ? tn_descriptor_copy(own, d, &set->arena, err) : tn_fail_nomem(err);
    if (!status)
        status = resolve(own, &symbols, &set->arena, err);
    tn_symbols_free(&symbols);
    if (status)
        tn_descriptors_free(set);
    else
        *bound = set;
    return status;
}

/* ---- several descriptors ---- */

/* What one descriptor says of a symbol. */
typedef struct claim {
    tn_wia_constraint constraint;
    size_t        from;
} claim;

typedef struct claims {
    claim *items;
    size_t count, cap;
} claims;

static tn_status add_claims(claims *all, const tn_descriptor *d, size_t from, tn_error *err)
{
    tn_symbols symbols;
    tn_status status = tn_symbols_init(&symbols, d, err);
    for (size_t i = 0; !status && i < symbols.count; i++) {
        if (TN_GROW(all->items, all->count, all->cap))
            all->items[all->count++] = (claim){ .constraint = symbols.items[i], .from = from };
        else
            status = tn_fail_nomem(err);
    }
    tn_symbols_free(&symbols);
    return status;
}

static int by_symbol_then_place(const void *a, const void *b)
{
    const claim *x = a, *y = b;
    int order = strcmp(x->constraint.symbol, y->constraint.symbol);
    return order ? order : (x->from > y->from) - (x->from < y->from);
}

/* The name of a descriptor in messages. */
static tn_quoted title(const tn_descriptor *const *descriptors, size_t i)
{
    tn_quoted q;
    if (descriptors[i]->name)
        return tn_quote_z(descriptors[i]->name);
    snprintf(q.text, sizeof q.text, "descriptor %zu", i);
    return q;
}

static bool lcm(int64_t a, int64_t b, int64_t *result)
{
    int64_t x = a, y = b;
    while (y != 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return !__builtin_mul_overflow(a / x, b, result);
}

/* Narrows `all` by what `next` says; *last is the descriptor that narrowed it before. */
static tn_status narrow(const tn_descriptor *const *descriptors, tn_wia_constraint *all, const claim *next,
                        size_t *last, tn_error *err)
{
    const tn_wia_constraint *c = &next->constraint;
    tn_wia_constraint both = *all;
    int64_t low, high;
    both.min = c->min > all->min ? c->min : all->min;
    both.max = c->max < all->max ? c->max : all->max;
    if (!lcm(all->multiple_of, c->multiple_of, &both.multiple_of))
        return tn_fail(err, TN_ERR_LIMIT, "%s: expected a common multiple of %" PRId64 " (%s) and %" PRId64
                       " (%s) below 2^63 but found none", tn_symbol_phrase(c->symbol).text, all->multiple_of,
                       title(descriptors, *last).text, c->multiple_of, title(descriptors, next->from).text);
    if (!tn_constraint_bounds(&both, &low, &high))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%s: expected one value for all, but %s leaves %s and %s wants %s",
                       tn_symbol_phrase(c->symbol).text, title(descriptors, *last).text,
                       tn_constraint_phrase(all).text, title(descriptors, next->from).text,
                       tn_constraint_phrase(c).text);
    if (both.min != all->min || both.max != all->max || both.multiple_of != all->multiple_of)
        *last = next->from;
    *all = both;
    return TN_OK;
}

/* One symbol's claims, from items[0] on; *used is how many they are. */
static tn_status unify_one(const tn_descriptor *const *descriptors, const claim *items, size_t n,
                           tn_wia_constraint *all, size_t *used, tn_error *err)
{
    int64_t low, high;
    size_t last = items[0].from;
    *all = items[0].constraint;
    *used = 1;
    if (!tn_constraint_bounds(all, &low, &high))
        return tn_fail(err, TN_ERR_ARGUMENT, "%s: expected a value that %s allows but there is not %s",
                       tn_symbol_phrase(all->symbol).text, title(descriptors, last).text,
                       tn_constraint_phrase(all).text);
    for (; *used < n && strcmp(items[*used].constraint.symbol, all->symbol) == 0; ++*used)
        TN_TRY(narrow(descriptors, all, &items[*used], &last, err));
    return TN_OK;
}

tn_status tn_symbols_unify(const tn_descriptor *const *descriptors, size_t n, tn_wia_constraint *constraints,
                           size_t cap, size_t *count, tn_error *err)
{
    claims all = { 0 };
    tn_status status = TN_OK;
    size_t found = 0;
    TN_GIVEN(descriptors || !n, "descriptors", err);
    for (size_t i = 0; i < n; i++)
        TN_GIVEN(descriptors[i], "descriptors", err);
    TN_GIVEN(constraints || !cap, "a place for the constraints", err);
    TN_GIVEN(count, "a place for the count", err);
    for (size_t i = 0; i < n && !status; i++)
        status = add_claims(&all, descriptors[i], i, err);
    if (!status && all.count)
        qsort(all.items, all.count, sizeof *all.items, by_symbol_then_place);
    for (size_t i = 0, used; i < all.count && !status; i += used) {
        tn_wia_constraint one;
        status = unify_one(descriptors, all.items + i, all.count - i, &one, &used, err);
        if (!status && found < cap)
            constraints[found] = one;
        found += !status;
    }
    free(all.items);
    if (!status)
        *count = found;
    return status;
}
