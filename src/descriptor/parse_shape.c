/* descriptor/parse_shape.c - what has an item for each dimension: shape,
 * strides (with the rest of the memory block) and padding. */
#include "descriptor/reader.h"

#include <float.h>
#include <stdio.h>

/* Where a list of `rank` items begins, and how many it has. */
static void note_list(tn_wia_reader *r, tn_wia_list list, size_t at, uint32_t count)
{
    r->notes.lists[list].there = true;
    r->notes.lists[list].at = at;
    r->notes.lists[list].count = count;
}

/* --- shape --- */

static tn_wia_extent read_extent(tn_wia_reader *r)
{
    size_t at;
    tn_text symbol;
    switch (tn_json_peek(&r->j)) {
    case TN_JSON_NUMBER:
        return (tn_wia_extent){ .value = tn_wia_size(r) };
    case TN_JSON_STRING:
        symbol = tn_wia_string(r, &at);
        return (tn_wia_extent){ .symbol = tn_wia_symbol(r, symbol, at) };
    default:
        tn_wia_unexpected(r, "a number or a symbol");
        return (tn_wia_extent){ 0 };
    }
}

static void read_dimensions(tn_wia_reader *r)
{
    tn_wia_extent dims[TN_MAX_RANK];
    uint32_t rank = 0;
    bool symbols = false;
    tn_json_array(&r->j);
    while (tn_json_item(&r->j) && tn_wia_room(r, rank)) {
        dims[rank] = read_extent(r);
        symbols |= dims[rank++].symbol != NULL;
    }
    if (r->j.status)
        return;
    r->d->rank = rank;
    r->d->dimensions = tn_arena_copy(&r->set->arena, dims, rank * sizeof *dims);
    if (!r->d->dimensions)
        tn_wia_nomem(r);
    if (!r->notes.symbolic)
        r->d->symbolic = symbols;       /* until shape.symbolic says so itself */
}

static void read_layout(tn_wia_reader *r)
{
    r->d->layout = tn_wia_text(r);
}

static void read_symbolic(tn_wia_reader *r)
{
    r->d->symbolic = tn_json_bool(&r->j);
    r->notes.symbolic = true;
}

static void read_min(tn_wia_reader *r)
{
    r->constraints[r->nconstraints - 1].min = tn_json_i64(&r->j);
}

static void read_max(tn_wia_reader *r)
{
    r->constraints[r->nconstraints - 1].max = tn_json_i64(&r->j);
}

static void read_multiple(tn_wia_reader *r)
{
    r->constraints[r->nconstraints - 1].multiple_of = tn_json_i64(&r->j);
}

static void read_constraint(tn_wia_reader *r, tn_text symbol)
{
    static const tn_wia_field fields[] = { TN_WIA_FIELD("min", read_min), TN_WIA_FIELD("max", read_max),
                                           TN_WIA_FIELD("multiple_of", read_multiple) };
    static const char above[] = "shape.constraints.";
    const size_t n = sizeof above - 1;
    const char *name = tn_wia_symbol(r, symbol, r->j.pos);
    tn_wia_constraint *all = tn_grow(r->constraints, r->nconstraints, &r->constraints_cap, sizeof *all);
    r->constraints = all ? all : r->constraints;
    char *path = tn_arena_alloc(&r->set->arena, n + symbol.len + 1);
    if (!name || !all || !path) {
        tn_wia_nomem(r);
        return;
    }
    memcpy(path, above, n);
    memcpy(path + n, name, symbol.len + 1);
    const tn_wia_constraint any = { .symbol = name, .max = INT64_MAX, .multiple_of = 1 };
    r->constraints[r->nconstraints++] = any;
    tn_wia_object(r, path, fields, TN_WIA_COUNT(fields));
}

static void read_constraints(tn_wia_reader *r)
{
    size_t first = r->nkeys;
    tn_text key;
    tn_json_object(&r->j);
    while (tn_json_key(&r->j, &key) && tn_wia_push_key(r, key))
        read_constraint(r, key);
    tn_wia_unique_keys(r, first);
    if (r->j.status)
        return;
    r->d->nconstraints = r->nconstraints;
    r->d->constraints =
        tn_arena_copy(&r->set->arena, r->constraints, r->nconstraints * sizeof *r->constraints);
    if (!r->d->constraints)
        tn_wia_nomem(r);
}

void tn_wia_read_shape(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("dimensions", read_dimensions), TN_WIA_FIELD("layout", read_layout),
        TN_WIA_FIELD("symbolic", read_symbolic), TN_WIA_FIELD("constraints", read_constraints)
    };
    tn_json_type type = tn_json_peek(&r->j);
    r->notes.shape_at = r->j.pos;
    if (type == TN_JSON_ARRAY)
        read_dimensions(r);
    else if (type != TN_JSON_OBJECT)
        tn_wia_unexpected(r, "an object or an array of dimensions");
    else if (!(tn_wia_object(r, "shape", fields, TN_WIA_COUNT(fields)) & 1))
        tn_wia_reject(r, r->notes.shape_at, "expected dimensions but found none");
}

/* --- memory --- */

/* One integer factor of a stride: digits, perhaps with a minus before them. */
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
    if (product.nsymbols && !r->j.status) {
        product.symbols = tn_arena_copy(&r->set->arena, symbols, product.nsymbols * sizeof *symbols);
        if (!product.symbols)
            tn_wia_nomem(r);
    }
    return product;
}

static tn_wia_product read_stride(tn_wia_reader *r)
{
    switch (tn_json_peek(&r->j)) {
    case TN_JSON_NUMBER:
        return (tn_wia_product){ .factor = tn_json_i64(&r->j) };
    case TN_JSON_STRING:
        return read_product(r);
    default:
        tn_wia_unexpected(r, "a number or a product of symbols");
        return (tn_wia_product){ 0 };
    }
}

static void read_strides(tn_wia_reader *r)
{
    tn_wia_product strides[TN_MAX_RANK];
    uint32_t n = 0;
    tn_json_peek(&r->j);
    size_t at = r->j.pos;
    tn_json_array(&r->j);
    while (tn_json_item(&r->j) && tn_wia_room(r, n))
        strides[n++] = read_stride(r);
    if (r->j.status)
        return;
    note_list(r, TN_WIA_STRIDES, at, n);
    r->d->strides = tn_arena_copy(&r->set->arena, strides, n * sizeof *strides);
    if (!r->d->strides)
        tn_wia_nomem(r);
}

static void read_offset(tn_wia_reader *r)
{
    r->d->offset_bytes = tn_json_u64(&r->j);
}

static void read_total(tn_wia_reader *r)
{
    r->d->has_total = true;
    r->d->total_bytes = tn_json_u64(&r->j);
}

static void read_alignment(tn_wia_reader *r)
{
    tn_json_peek(&r->j);
    size_t at = r->j.pos;
    r->d->alignment = tn_json_u64(&r->j);
    if (!r->d->alignment)
        tn_wia_reject(r, at, "expected at least 1 but found 0");
}

static void read_device_type(tn_wia_reader *r)
{
    r->d->device.type = (tn_device_type)tn_wia_word(r, &tn_device_type_words);
}

static void read_device_id(tn_wia_reader *r)
{
    r->d->device.id = tn_json_i64(&r->j);
}

static void read_memory_space(tn_wia_reader *r)
{
    r->d->device.space = (tn_memory_space)tn_wia_word(r, &tn_memory_space_words);
}

static void read_device(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("type", read_device_type), TN_WIA_FIELD("id", read_device_id),
        TN_WIA_FIELD("memory_space", read_memory_space)
    };
    tn_wia_object(r, "memory.device", fields, TN_WIA_COUNT(fields));
}

void tn_wia_read_memory(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("strides", read_strides), TN_WIA_FIELD("offset_bytes", read_offset),
        TN_WIA_FIELD("total_bytes", read_total), TN_WIA_FIELD("alignment", read_alignment),
        TN_WIA_FIELD("device", read_device)
    };
    r->d->has_memory = true;
    tn_wia_object(r, "memory", fields, TN_WIA_COUNT(fields));
}

/* --- padding --- */

/* A number for each dimension. */
static const int64_t *read_numbers(tn_wia_reader *r, tn_wia_list list, int64_t (*read)(tn_wia_reader *r))
{
    int64_t numbers[TN_MAX_RANK];
    uint32_t n = 0;
    tn_json_peek(&r->j);
    size_t at = r->j.pos;
    tn_json_array(&r->j);
    while (tn_json_item(&r->j) && tn_wia_room(r, n))
        numbers[n++] = read(r);
    note_list(r, list, at, n);
    const int64_t *copy = r->j.status ? NULL : tn_arena_copy(&r->set->arena, numbers, n * sizeof *numbers);
    if (!copy)
        tn_wia_nomem(r);
    return copy;
}

static int64_t read_signed(tn_wia_reader *r)
{
    return tn_json_i64(&r->j);
}

void tn_wia_read_physical_shape(tn_wia_reader *r)
{
    r->d->physical_shape = read_numbers(r, TN_WIA_PHYSICAL, tn_wia_size);
}

static void read_pad_values(tn_wia_reader *r)
{
    r->d->padding.values = read_numbers(r, TN_WIA_PAD_VALUES, read_signed);
}

static void read_pad_dims(tn_wia_reader *r)
{
    bool dims[TN_MAX_RANK];
    uint32_t n = 0;
    tn_json_peek(&r->j);
    size_t at = r->j.pos;
    tn_json_array(&r->j);
    while (tn_json_item(&r->j) && tn_wia_room(r, n))
        dims[n++] = tn_json_bool(&r->j);
    if (r->j.status)
        return;
    note_list(r, TN_WIA_PAD_DIMS, at, n);
    r->d->padding.dims = tn_arena_copy(&r->set->arena, dims, n * sizeof *dims);
    if (!r->d->padding.dims)
        tn_wia_nomem(r);
}

static void read_pad_mode(tn_wia_reader *r)
{
    r->d->padding.mode = tn_wia_text(r);
}

/* Whether a number was written as an integer and reading it as x has changed it; the digits of a double are
 * exact here. */
static bool is_changed_integer(tn_text number, double x)
{
    char digits[DBL_MAX_10_EXP + 8];
    for (size_t i = 0; i < number.len; i++)
        if (number.ptr[i] != '-' && (number.ptr[i] < '0' || number.ptr[i] > '9'))
            return false;
    snprintf(digits, sizeof digits, "%.0f", x);
    return !tn_text_is(number, digits);
}

/* A double: the largest codes of 64-bit types do not fit one, and another code must not take their place. */
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
        TN_WIA_FIELD("mode", read_pad_mode), TN_WIA_FIELD("fill", read_pad_fill)
    };
    r->d->has_padding = true;
    tn_wia_object(r, "padding", fields, TN_WIA_COUNT(fields));
}
