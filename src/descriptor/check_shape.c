/* descriptor/check_shape.c - dimensions, layout, symbols, constraints, physical shape, padding. */
#include "descriptor/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <tenon/layout.h>

/* ---- dimensions and layout ---- */

static void check_dimensions(tn_checker *c)
{
    for (uint32_t i = 0; i < c->d->rank; i++) {
        const tn_wia_extent *e = &c->d->dimensions[i];
        tn_phrase path = tn_item_path("shape.dimensions", i);
        if (e->symbol && !tn_is_symbol(e->symbol))
            tn_error_at(c, path.text, "expected a symbol of letters, digits and _ but found %s",
                        tn_quote_z(e->symbol).text);
        if (!e->symbol && e->value < 0)
            tn_error_at(c, path.text, "expected an extent not below 0 but found %" PRId64, e->value);
    }
}

/* The dimension that a layout marks by 1. */
static void check_one(tn_checker *c, uint32_t i)
{
    const tn_wia_extent *e = &c->d->dimensions[i];
    if (e->symbol || e->value != 1)
        tn_error_at(c, tn_item_path("shape.dimensions", i).text,
                    "expected 1, as layout %s has it, but found %s", tn_quote_z(c->d->layout).text,
                    tn_extent_phrase(e).text);
}

static bool is_named_layout(const char *layout)
{
    return strcmp(layout, "NCHW") == 0 || strcmp(layout, "NHWC") == 0 || strcmp(layout, "CHWN") == 0;
}

/* One letter per dimension, none twice. Images and volumes (ranks 3 to 5) should have a layout; that is only
 * a remark, because the specification's example of a sequence has rank 3 and none. */
static void check_layout(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    tn_error why;
    if (d->layout && tn_layout_check(d->layout, d->rank, &why) != TN_OK)
        tn_error_at(c, "shape.layout", "%s", why.text);
    else if (d->layout && strchr(d->layout, '1'))
        check_one(c, (uint32_t)(strchr(d->layout, '1') - d->layout));
    if (c->options.strict && d->layout && *d->layout && !is_named_layout(d->layout))
        tn_error_at(c, "shape.layout", "expected NCHW, NHWC or CHWN, as in the specification, but found %s",
                    tn_quote_z(d->layout).text);
    if (!d->layout && d->rank >= 3 && d->rank <= 5 && !c->fragment)
        tn_remark_at(c, "shape.layout", "expected %u letters for %u dimensions but found none", d->rank,
                     d->rank);
}

/* ---- symbols ---- */

static void check_stride_symbols(tn_checker *c)
{
    for (uint32_t i = 0; c->d->strides && i < c->d->rank; i++)
        for (uint32_t k = 0; k < c->d->strides[i].nsymbols; k++)
            if (!tn_is_symbol(c->d->strides[i].symbols[k]))
                tn_error_at(c, tn_item_path("memory.strides", i).text,
                            "expected symbols of letters, digits and _ but found %s",
                            tn_quote_z(c->d->strides[i].symbols[k]).text);
}

/* The flag says whether there are symbols. */
static void check_symbolic(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    if (d->symbolic && c->symbols.count == 0)
        tn_error_at(c, "shape.symbolic", "expected false for a shape without symbols but found true");
    if (!d->symbolic && c->symbols.count > 0)
        tn_error_at(c, "shape.symbolic", "expected true for a shape with the symbol %s but found false",
                    tn_quote_z(c->symbols.items[0].symbol).text);
}

/* "shape.constraints.batch.min" */
static tn_phrase constraint_path(const char *symbol, const char *member)
{
    tn_phrase p;
    if (tn_is_symbol(symbol) && strlen(symbol) <= 64)
        snprintf(p.text, sizeof p.text, "shape.constraints.%s%s", symbol, member);
    else
        snprintf(p.text, sizeof p.text, "shape.constraints[%s]%s", tn_quote_z(symbol).text, member);
    return p;
}

/* Each constraint is for a used symbol and allows at least one value. */
static void check_constraint(tn_checker *c, const tn_wia_constraint *k)
{
    int64_t low, high;
    size_t before = c->wrong;
    if (!tn_symbols_find(&c->symbols, k->symbol))
        tn_error_at(c, constraint_path(k->symbol, "").text,
                    "expected a symbol of dimensions or strides but found %s", tn_quote_z(k->symbol).text);
    if (k->min < 0)
        tn_error_at(c, constraint_path(k->symbol, ".min").text,
                    "expected a number not below 0 but found %" PRId64, k->min);
    if (k->multiple_of < 1)
        tn_error_at(c, constraint_path(k->symbol, ".multiple_of").text,
                    "expected a number not below 1 but found %" PRId64, k->multiple_of);
    if (k->max < k->min)
        tn_error_at(c, constraint_path(k->symbol, ".max").text,
                    "expected a number not below the min of %" PRId64 " but found %" PRId64, k->min, k->max);
    if (c->wrong == before && !tn_constraint_bounds(k, &low, &high))
        tn_error_at(c, constraint_path(k->symbol, "").text, "expected %s but there is none",
                    tn_constraint_phrase(k).text);
}

/* ---- padding ---- */

/* The physical extent is at least the dimension, for every value of a symbol. */
static void check_physical(tn_checker *c, uint32_t i)
{
    const tn_wia_extent *e = &c->d->dimensions[i];
    int64_t physical = c->d->physical_shape[i];
    tn_wia_range range = tn_extent_range(&c->symbols, e);
    tn_phrase path = tn_item_path("physical_shape", i), dimension = tn_dimension_phrase(c->d, i);
    if (physical < 0)
        tn_error_at(c, path.text, "expected an extent not below 0 but found %" PRId64, physical);
    else if (range.unbounded && tn_symbol_is_endless(&c->symbols, range.unbounded))
        tn_error_at(c, path.text, "expected the maximum of %s, which has none, but found %" PRId64,
                    tn_symbol_phrase(range.unbounded).text, physical);
    else if (!range.unbounded && physical < range.high)
        tn_error_at(c, path.text, "expected at least %s for %s but found %" PRId64,
                    tn_wide_phrase(range.high).text, dimension.text, physical);
}

/* The padding of a dimension is the difference of the two shapes; for a symbol it is not known yet. */
static void check_padded(tn_checker *c, uint32_t i)
{
    const tn_wia_padding *p = &c->d->padding;
    const tn_wia_extent *e = &c->d->dimensions[i];
    int64_t physical = c->d->physical_shape[i];
    if (e->symbol || e->value < 0 || physical < e->value)
        return;
    int64_t added = physical - e->value;
    if (p->values && p->values[i] != added)
        tn_error_at(c, tn_item_path("padding.values", i).text,
                    "expected %" PRId64 " from %" PRId64 " to the physical %" PRId64 " but found %" PRId64,
                    added, e->value, physical, p->values[i]);
    static const char *const words[] = { "false", "true" };
    if (p->dims && p->dims[i] != (added > 0))
        tn_error_at(c, tn_item_path("padding.dims", i).text,
                    "expected %s for %" PRId64 " added elements but found %s", words[added != 0], added,
                    words[p->dims[i]]);
}

/* The fill of an integer type is one of its codes. */
static void check_fill(tn_checker *c)
{
    double fill = c->d->padding.fill;
    tn_wide low, high;
    if (!tn_integer_codes(c->type, &low, &high))
        return;
    /* both powers of 2: exact */
    if (!(fill >= (double)low && fill < (double)(high + 1) && fill == floor(fill)))
        tn_error_at(c, "padding.fill", "expected %s, but found %.17g", tn_codes_phrase(c->type).text, fill);
}

/* The specification has zero_fill alone. */
static void check_mode(tn_checker *c)
{
    const tn_wia_padding *p = &c->d->padding;
    if (!p->mode) {
        tn_remark_at(c, "padding.mode", "expected zero_fill or value_fill but found none");
    } else if (strcmp(p->mode, "value_fill") == 0) {
        if (c->options.strict)
            tn_error_at(c, "padding.mode", "expected the specification's zero_fill but found \"value_fill\"");
        check_fill(c);
    } else if (strcmp(p->mode, "zero_fill") != 0) {
        tn_error_at(c, "padding.mode", "expected zero_fill or value_fill but found %s",
                    tn_quote_z(p->mode).text);
    } else if (p->fill != 0) {
        tn_error_at(c, "padding.fill", "expected 0 for zero_fill but found %.17g", p->fill);
    }
}

static void check_padding(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    check_mode(c);
    if (!d->physical_shape)
        tn_error_at(c, "padding", "expected a physical_shape too but found none");
    for (uint32_t i = 0; d->physical_shape && i < d->rank; i++)
        check_padded(c, i);
}

void tn_check_shape(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    check_dimensions(c);
    check_layout(c);
    check_stride_symbols(c);
    check_symbolic(c);
    for (size_t i = 0; i < d->nconstraints; i++)
        check_constraint(c, &d->constraints[i]);
    for (uint32_t i = 0; d->physical_shape && i < d->rank; i++)
        check_physical(c, i);
    if (d->has_padding)
        check_padding(c);
}
