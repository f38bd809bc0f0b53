/* descriptor/parse_shape.c - shape, memory and padding. */
#include "descriptor/reader.h"

#include <float.h>
#include <stdio.h>

/* Takes an array with one item of `size` bytes per dimension and notes how many it has. */
static const void *read_list(tn_wia_reader *r, tn_wia_list list, size_t size,
                             void (*read_item)(tn_wia_reader *r, void *item))
{
    _Alignas(tn_wia_product) uint8_t items[TN_MAX_RANK * sizeof(tn_wia_product)];
    size_t at = tn_wia_at(r);
    uint32_t n = 0;
    tn_json_array(&r->j);
    for (; tn_json_item(&r->j) && tn_wia_room(r, n); n++)
        read_item(r, items + n * size);
    r->notes.lists[list].there = true;
    r->notes.lists[list].at = at;
    r->notes.lists[list].count = n;
    return tn_wia_copy(r, items, n * size);
}

static void read_integer(tn_wia_reader *r, void *item)
{
    *(int64_t *)item = tn_json_i64(&r->j);
}

static void read_size(tn_wia_reader *r, void *item)
{
    *(int64_t *)item = tn_wia_size(r);
}

static void read_bool(tn_wia_reader *r, void *item)
{
    *(bool *)item = tn_json_bool(&r->j);
}

/* --- shape --- */

static void read_extent(tn_wia_reader *r, void *item)
{
    tn_wia_extent *extent = item;
    size_t at;
    tn_text symbol;
    *extent = (tn_wia_extent){ 0 };
    switch (tn_json_peek(&r->j)) {
    case TN_JSON_NUMBER:
        extent->value = tn_wia_size(r);
        break;
    case TN_JSON_STRING:
        symbol = tn_wia_string(r, &at);
        extent->symbol = tn_wia_symbol(r, symbol, at);
        break;
    default:
        tn_json_unexpected(&r->j, "a number or a symbol");
    }
}

static void read_dimensions(tn_wia_reader *r)
{
    tn_descriptor *d = r->d;
    d->dimensions = read_list(r, TN_WIA_DIMENSIONS, sizeof *d->dimensions, read_extent);
    d->rank = d->dimensions ? r->notes.lists[TN_WIA_DIMENSIONS].count : 0;
    for (uint32_t i = 0; i < d->rank && !r->notes.symbolic; i++)
        d->symbolic |= d->dimensions[i].symbol != NULL;         /* until shape.symbolic says so itself */
}

static void read_symbolic(tn_wia_reader *r)
{
    r->d->symbolic = tn_json_bool(&r->j);
    r->notes.symbolic = true;
}

static void read_constraint(tn_wia_reader *r, tn_text symbol)
{
    static const tn_wia_field fields[] = {
        TN_WIA_VALUE("min", TN_WIA_I64, tn_wia_constraint, min),
        TN_WIA_VALUE("max", TN_WIA_I64, tn_wia_constraint, max),
        TN_WIA_VALUE("multiple_of", TN_WIA_I64, tn_wia_constraint, multiple_of)
    };
    const char *name = tn_wia_symbol(r, symbol, r->j.pos);
    const char *path = name ? tn_arena_printf(&r->set->arena, "shape.constraints.%s", name) : NULL;
    if (!path || !TN_GROW(r->constraints, r->nconstraints, r->constraints_cap)) {
        tn_wia_nomem(r);
        return;
    }
    tn_wia_constraint *own = &r->constraints[r->nconstraints++];
    *own = (tn_wia_constraint){ .symbol = name, .max = INT64_MAX, .multiple_of = 1 };
    tn_wia_object(r, path, fields, TN_WIA_COUNT(fields), own);
}

static void read_constraints(tn_wia_reader *r)
{
    size_t first = r->keys.count;
    tn_text key;
    tn_json_object(&r->j);
    while (tn_json_key(&r->j, &key) && tn_json_push_key(&r->j, &r->keys, key))
        read_constraint(r, key);
    tn_json_pop_keys(&r->j, &r->keys, first);
    r->d->nconstraints = r->nconstraints;
    r->d->constraints = tn_wia_copy(r, r->constraints, r->nconstraints * sizeof *r->constraints);
}

void tn_wia_read_shape(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("dimensions", read_dimensions),
        TN_WIA_VALUE("layout", TN_WIA_TEXT, tn_descriptor, layout),
        TN_WIA_FIELD("symbolic", read_symbolic), TN_WIA_FIELD("constraints", read_constraints)
    };
    tn_json_type type = tn_json_peek(&r->j);
    r->notes.shape_at = r->j.pos;
    if (type == TN_JSON_ARRAY)
        read_dimensions(r);
    else if (type != TN_JSON_OBJECT)
        tn_json_unexpected(&r->j, "an object or an array of dimensions");
    else if (!(tn_wia_object(r, "shape", fields, TN_WIA_COUNT(fields), r->d) & 1))
        tn_wia_reject(r, r->notes.shape_at, "expected dimensions but found none");
}

/* --- memory --- */

/* An integer factor of a stride: digits, perhaps after a minus. */
static bool multiply(tn_wia_reader *r, tn_wia_product *product, tn_text factor, size_t at)
{
    int64_t value = 0;
    bool negative = factor.ptr[0] == '-', fits = true;
    for (size_t i = negative; i < factor.len; i++) {
        int64_t digit = factor.ptr[i] - '0';
        if (digit < 0 || digit > 9) {
            tn_wia_reject(r, at, "expected symbols and integers between * but found %s",
                          tn_quote(factor.ptr, factor.len).text);
            return false;
        }
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, negative ? -digit : digit, &value);
    }
    if (!fits || __builtin_mul_overflow(product->factor, value, &product->factor)) {
        r->j.pos = at;
        return tn_json_reject(&r->j, TN_ERR_LIMIT, "expected a factor of 64 bits but found more");
    }
    return true;
}

static tn_text trim(tn_text text)
{
    while (text.len && text.ptr[0] == ' ') {
        text.ptr++;
        text.len--;
    }
    while (text.len && text.ptr[text.len - 1] == ' ')
        text.len--;
    return text;
}

/* "768*sequence_length": integers and symbols in any order. */
static tn_wia_product read_product(tn_wia_reader *r)
{
    tn_wia_product product = { .factor = 1 };
    const char *symbols[TN_MAX_RANK];
    size_t at;
    tn_text text = tn_wia_string(r, &at);
    for (bool more = !r->j.status; more;) {
        const char *star = memchr(text.ptr, '*', text.len);
        tn_text factor = trim((tn_text){ text.ptr, star ? (size_t)(star - text.ptr) : text.len });
        if (factor.len &&
            ((factor.ptr[0] >= '0' && factor.ptr[0] <= '9') || (factor.ptr[0] == '-' && factor.len > 1))) {
            multiply(r, &product, factor, at);
        } else if (product.nsymbols == TN_MAX_RANK) {
            r->j.pos = at;
            tn_json_reject(&r->j, TN_ERR_LIMIT, "expected at most %d symbols but found more", TN_MAX_RANK);
        } else {
            symbols[product.nsymbols++] = tn_wia_symbol(r, factor, at);
        }
        more = star && !r->j.status;
        text = star ? (tn_text){ star + 1, text.len - (size_t)(star + 1 - text.ptr) } : text;
    }
    if (product.nsymbols)
        product.symbols = tn_wia_copy(r, symbols, product.nsymbols * sizeof *symbols);
    return product;
}

static void read_stride(tn_wia_reader *r, void *item)
{
    tn_wia_product *stride = item;
    *stride = (tn_wia_product){ 0 };
    switch (tn_json_peek(&r->j)) {
    case TN_JSON_NUMBER:
        stride->factor = tn_json_i64(&r->j);
        break;
    case TN_JSON_STRING:
        *stride = read_product(r);
        break;
    default:
        tn_json_unexpected(&r->j, "a number or a product of symbols");
    }
}

static void read_strides(tn_wia_reader *r)
{
    r->d->strides = read_list(r, TN_WIA_STRIDES, sizeof *r->d->strides, read_stride);
}

static void read_total(tn_wia_reader *r)
{
    r->d->has_total = true;
    r->d->total_bytes = tn_json_u64(&r->j);
}

static void read_alignment(tn_wia_reader *r)
{
    size_t at = tn_wia_at(r);
    r->d->alignment = tn_json_u64(&r->j);
    if (!r->d->alignment)
        tn_wia_reject(r, at, "expected at least 1 but found 0");
}

static void read_device(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_WORD("type", TN_WIA_ENUM, device.type, &tn_device_type_words),
        TN_WIA_VALUE("id", TN_WIA_I64, tn_descriptor, device.id),
        TN_WIA_WORD("memory_space", TN_WIA_ENUM, device.space, &tn_memory_space_words)
    };
    tn_wia_object(r, "memory.device", fields, TN_WIA_COUNT(fields), r->d);
}

void tn_wia_read_memory(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("strides", read_strides),
        TN_WIA_VALUE("offset_bytes", TN_WIA_U64, tn_descriptor, offset_bytes),
        TN_WIA_FIELD("total_bytes", read_total), TN_WIA_FIELD("alignment", read_alignment),
        TN_WIA_FIELD("device", read_device)
    };
    r->d->has_memory = true;
    tn_wia_object(r, "memory", fields, TN_WIA_COUNT(fields), r->d);
}

/* --- padding --- */

void tn_wia_read_physical_shape(tn_wia_reader *r)
{
    r->d->physical_shape = read_list(r, TN_WIA_PHYSICAL, sizeof(int64_t), read_size);
}

static void read_pad_values(tn_wia_reader *r)
{
    r->d->padding.values = read_list(r, TN_WIA_PAD_VALUES, sizeof(int64_t), read_integer);
}

static void read_pad_dims(tn_wia_reader *r)
{
    r->d->padding.dims = read_list(r, TN_WIA_PAD_DIMS, sizeof(bool), read_bool);
}

/* Whether reading an integer as the double x has changed it. The digits of a double are exact here. */
static bool is_changed_integer(tn_text number, double x)
{
    char digits[DBL_MAX_10_EXP + 8];
    for (size_t i = 0; i < number.len; i++)
        if (number.ptr[i] != '-' && (number.ptr[i] < '0' || number.ptr[i] > '9'))
            return false;
    snprintf(digits, sizeof digits, "%.0f", x);
    return !tn_text_is(number, digits);
}

/* A double cannot hold the largest codes of 64-bit types: another code must not replace them. */
static void read_pad_fill(tn_wia_reader *r)
{
    tn_json *j = &r->j;
    bool number = tn_json_peek(j) == TN_JSON_NUMBER;
    size_t at = j->pos;
    r->d->padding.fill = tn_wia_f64(r);
    tn_text text = { j->text + at, j->pos - at };
    if (j->status || !number || !is_changed_integer(text, r->d->padding.fill))
        return;
    j->pos = at;
    tn_json_reject(j, TN_ERR_LIMIT, "expected an integer that a double keeps exactly but found %.*s",
                   text.len < 40 ? (int)text.len : 40, text.ptr);
}

void tn_wia_read_padding(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("dims", read_pad_dims), TN_WIA_FIELD("values", read_pad_values),
        TN_WIA_VALUE("mode", TN_WIA_TEXT, tn_descriptor, padding.mode), TN_WIA_FIELD("fill", read_pad_fill)
    };
    r->d->has_padding = true;
    tn_wia_object(r, "padding", fields, TN_WIA_COUNT(fields), r->d);
}
