/* quant/grammar/datatype.c - parse NUMBER|SCALE and check valid combinations. */
#include "quant/grammar/datatype_read.h"
#include "quant/quantizer.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TILE = 1024, MAX_NUMBERS = 3, MAX_CODE_BITS = 16, SPARSE_TILE = 64 };

/* t<T>[s<S>][o<O>][d<D>][n<N>m<M>] */
typedef struct tile {
    const char *at;
    uint32_t size, subtile, offset_bits, dim, keep, of;
    bool     has_dim;
} tile;

/* The segments of a SCALE. */
typedef struct scale {
    const char    *at;
    bool           multi;
    unsigned       numbers, tiles;
    const char    *number_at[MAX_NUMBERS];
    tn_number_spec number[MAX_NUMBERS];
    tile           tile[2];
} scale;

static tn_status bad(const tn_reading *r, const char *at, const char *what)
{
    return tn_reading_fail(r, TN_ERR_ARGUMENT, at, "%s", what);
}

/* ---- tiles ---- */

static tn_status read_value(tn_reading *r, const char *what, uint32_t low, uint32_t high, uint32_t *value)
{
    const char *begin = r->at;
    if (!tn_take_digits(r, value) || *value < low || *value > high) {
        size_t n = (size_t)(r->at - begin);
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "expected %s of %u to %u but found %s", what, low,
                               high, n ? tn_quote(begin, n < 12 ? n : 12).text : "none");
    }
    return TN_OK;
}

static tn_status read_size(tn_reading *r, tile *t)
{
    const char *begin = r->at;
    tn_status status = read_value(r, "a tile", 0, MAX_TILE, &t->size);
    if (status == TN_OK && t->size && (t->size == 1 || !tn_is_power_of_two(t->size)))
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin,
                               "a tile is 0 (all of the dimension) or a power of two of 2 to %d but "
                               "found %u",
                               MAX_TILE, t->size);
    return status;
}

static tn_status read_subtile(tn_reading *r, tile *t)
{
    const char *begin = r->at;
    tn_status status = read_value(r, "a subtile", 2, MAX_TILE, &t->subtile);
    if (status == TN_OK && (t->size == 0 || t->size % t->subtile))
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin, "a tile of %u cannot be cut into subtiles of %u",
                               t->size, t->subtile);
    return status;
}

static tn_status read_sparsity(tn_reading *r, tile *t)
{
    const char *begin = r->at;
    TN_TRY(read_value(r, "values to keep", 1, 15, &t->keep));
    if (!tn_take_word(r, "m"))
        return bad(r, r->at, "expected m and the size of a group but found none");
    const char *of = r->at;
    TN_TRY(read_value(r, "a group", 2, 16, &t->of));
    if (!tn_is_power_of_two(t->of))
        return tn_reading_fail(r, TN_ERR_ARGUMENT, of, "a group has 2, 4, 8 or 16 values but found %u",
                               t->of);
    if (t->keep >= t->of)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin,
                               "expected fewer than %u of %u values to keep but found %u", t->of, t->of,
                               t->keep);
    uint32_t run = t->subtile ? t->subtile : t->size;
    if (run % t->keep)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, begin,
                               "a %s of %u kept values is no whole number of groups that keep %u",
                               t->subtile ? "subtile" : "tile", run, t->keep);
    return TN_OK;
}

static tn_status read_dimension(tn_reading *r, tile *t)
{
    t->has_dim = tn_take_word(r, "d");
    return t->has_dim ? read_value(r, "a dimension", 0, TN_MAX_RANK - 1, &t->dim) : TN_OK;
}

static tn_status read_tile(tn_reading *r, tile *t)
{
    *t = (tile){ .at = r->at };
    tn_take_word(r, "t");
    TN_TRY(read_size(r, t));
    if (tn_take_word(r, "s"))
        TN_TRY(read_subtile(r, t));
    if (tn_take_word(r, "o")) {
        if (!t->subtile)
            return bad(r, r->at - 1,
                       "offset bits are of a subtile: expected s<S> before them but found none");
        TN_TRY(read_value(r, "offset bits", 1, 2, &t->offset_bits));
    }
    TN_TRY(read_dimension(r, t));
    if (tn_take_word(r, "n"))
        TN_TRY(read_sparsity(r, t));
    return r->at < r->end ? tn_expected(r, "t<T>[s<S>][o<O>][d<D>][n<N>m<M>]") : TN_OK;
}

/* ---- scales ---- */

static const char *segment_end(const tn_reading *r)
{
    tn_reading look = *r;
    tn_take_word(&look, "torch.");
    tn_take_word(&look, "float8_");             /* the only number spec with an underscore */
    while (look.at < look.end && *look.at != '_')
        look.at++;
    return look.at;
}

static bool tile_is_next(const tn_reading *r)
{
    tn_reading look = *r;
    return !tn_take_word(&look, "torch.") && tn_next(r) == 't';
}

static tn_status read_segment(tn_reading *r, scale *s)
{
    if (tile_is_next(r)) {
        if (s->tiles == 2)
            return bad(r, r->at, "expected at most 2 tiles but found a third");
        return read_tile(r, &s->tile[s->tiles++]);
    }
    if (s->numbers == MAX_NUMBERS)
        return bad(r, r->at, "expected at most 3 numbers but found a fourth");
    if (tn_codebook_is_next(r))
        return bad(r, r->at, "expected a float or an exponent but found a codebook");
    s->number_at[s->numbers] = r->at;
    return tn_number_read(r, &s->number[s->numbers++]);
}

/* Segments may come in any order.  s->multi: the first number is the scale of the tensor. */
static tn_status read_segments(tn_reading *r, scale *s)
{
    const char *end = r->end;
    *s = (scale){ .at = r->at };
    if (r->at == end)
        return bad(r, r->at, "expected a scale but found the end");
    s->multi = tn_take_word(r, "multi_");
    for (;;) {
        r->end = segment_end(r);
        TN_TRY(read_segment(r, s));
        r->end = end;
        if (r->at == end)
            break;
        r->at++;
    }
    if (s->numbers == 0 || (s->multi && s->numbers < 2))
        return tn_reading_fail(r, TN_ERR_ARGUMENT, s->at, "expected the number of a scale%s but found %u",
                               s->multi ? " and before it that of the tensor's" : "", s->numbers);
    s->multi |= s->numbers == MAX_NUMBERS;
    return TN_OK;
}

static const char *const matrix_sparsity = "matrix sparsity is not supported: a 2D mask has to keep as many "
                                           "values along both axes, and data cannot be compressed along two";

/* Matrix tiles: two adjacent dimensions, by default the last two. */
static tn_status resolve_matrix(const tn_reading *r, scale *s, tn_datatype *d)
{
    tile *a = &s->tile[0], *b = &s->tile[1];
    if (a->of || b->of)
        return tn_reading_fail(r, TN_ERR_UNSUPPORTED, (a->of ? a : b)->at, "%s", matrix_sparsity);
    if (a->has_dim != b->has_dim)
        return bad(r, b->at, "expected a dimension for both tiles or for none but found one");
    if (a->has_dim && a->dim > b->dim) {
        tile swap = *a;
        *a = *b;
        *b = swap;
    }
    if (a->has_dim && b->dim - a->dim != 1)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, b->at,
                               "expected tiles of adjacent dimensions but found %u and %u", a->dim, b->dim);
    if (a->size == 0 && b->size == 0)
        return bad(
            r, b->at,
            "expected all of one dimension at most but found all of both: that is a scale without tiles");
    if (a->subtile)
        return tn_reading_fail(r, TN_ERR_UNSUPPORTED, a->at,
                               "subtiles are along the second of two dimensions: expected s there "
                               "but found it in the first");
    if (b->subtile && a->size == 0)
        return bad(r, a->at, "subtiles need tiles of a fixed size but found all of a dimension");
    d->dim = a->has_dim ? (int32_t)a->dim : -2;
    d->tile[1] = b->size;
    return TN_OK;
}

static tn_status resolve_tiles(const tn_reading *r, scale *s, tn_datatype *d)
{
    d->tile[0] = d->tile[1] = 1;
    d->dims = s->tiles;
    d->scope = TN_SCOPE_TENSOR;
    if (s->tiles == 0)
        return TN_OK;
    if (s->tiles == 2) {
        TN_TRY(resolve_matrix(r, s, d));
    } else {
        d->dim = s->tile[0].has_dim ? (int32_t)s->tile[0].dim : -1;
    }
    const tile *last = &s->tile[s->tiles - 1];
    d->scope = s->tiles == 1 && last->size == 0 ? TN_SCOPE_CHANNEL : TN_SCOPE_TILE;
    d->tile[0] = s->tile[0].size;
    d->subtile = last->subtile;
    d->offset_bits = last->offset_bits;
    d->keep = last->keep;
    d->of = last->of;
    return TN_OK;
}

static tn_status resolve_numbers(const tn_reading *r, scale *s, tn_datatype *d)
{
    unsigned i = s->multi;
    d->has_tensor_scale = s->multi;
    d->has_zero = s->numbers > i + 1;
    if (s->multi)
        d->tensor_scale = s->number[0];
    d->scale = s->number[i];
    if (d->has_zero)
        d->zero = s->number[i + 1];
    if (d->scale.kind != TN_NUMBER_FLOAT && d->scale.kind != TN_NUMBER_EXPONENT)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, s->number_at[i],
                               "a scale is a float or an exponent but found %s", d->scale.text);
    if (!d->has_zero)
        return TN_OK;
    if (d->scale.kind != TN_NUMBER_FLOAT)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, s->number_at[i],
                               "a scale with a zero point is a float but found %s", d->scale.text);
    if (d->zero.kind != TN_NUMBER_FLOAT && d->zero.kind != TN_NUMBER_INT)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, s->number_at[i + 1],
                               "a zero point is a float or an int but found %s", d->zero.text);
    return TN_OK;
}

/* ---- valid combinations ---- */

static tn_status check_tensor_scale(const tn_reading *r, const scale *s, const tn_datatype *d)
{
    if (d->tensor_scale.dtype != TN_FLOAT32)
        return tn_reading_fail(r, TN_ERR_UNSUPPORTED, s->number_at[0],
                               "a tensor scale with tile scales is float32 but found %s",
                               d->tensor_scale.text);
    if (d->scope == TN_SCOPE_TENSOR)
        return bad(r, s->at, "a tensor with two scales needs tiles for one of them but found none");
    if (d->number.kind != TN_NUMBER_FLOAT || d->scale.kind != TN_NUMBER_FLOAT || d->has_zero)
        return tn_reading_fail(r, TN_ERR_UNSUPPORTED, s->at,
                               "a tensor scale with tile scales is for floats with float scales but "
                               "found %s with %s%s",
                               d->number.text, d->scale.text, d->has_zero ? " and a zero point" : "");
    return TN_OK;
}

static tn_status check_subtiles(const tn_reading *r, const scale *s, const tn_datatype *d)
{
    const char *at = s->tile[s->tiles - 1].at;
    bool codebook = d->number.kind == TN_NUMBER_CODEBOOK;
    if (d->offset_bits && codebook)
        return tn_reading_fail(r, TN_ERR_UNSUPPORTED, at, "a subtile has a mapping or an offset, not both");
    if (d->offset_bits && d->scale.kind != TN_NUMBER_EXPONENT)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, at,
                               "offsets are of exponents: expected a scale such as e8m0 but found %s",
                               d->scale.text);
    if (!d->offset_bits && !codebook)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, at,
                               "subtiles are for a codebook's mappings or for offsets (o1, o2) but found "
                               "%s without",
                               d->number.text);
    return TN_OK;
}

static tn_status check_scaled(const tn_reading *r, const scale *s, const tn_datatype *d)
{
    const tn_number_spec *n = &d->number;
    if (n->bits > MAX_CODE_BITS)
        return tn_reading_fail(r, TN_ERR_UNSUPPORTED, r->text,
                               "a scaled number has at most %d bits but found %s of %u", MAX_CODE_BITS,
                               n->text, n->bits);
    if (n->kind == TN_NUMBER_UINT && !d->has_zero)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, s->at,
                               "%s needs a zero point, as in float32_int8, but found none", n->text);
    if (n->kind != TN_NUMBER_UINT && d->has_zero)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, s->number_at[s->multi + 1],
                               "a zero point is for unsigned integers but found one "
                               "for %s",
                               n->text);
    tn_status status = d->has_tensor_scale ? check_tensor_scale(r, s, d) : TN_OK;
    return status == TN_OK && d->subtile ? check_subtiles(r, s, d) : status;
}

/* ---- text ---- */

static void put_tile(tn_buf *text, const tn_datatype *d, uint32_t i)
{
    bool last = i == d->dims - 1;
    tn_buf_printf(text, "_t%u", d->tile[i]);
    if (last && d->subtile)
        tn_buf_printf(text, "s%u", d->subtile);
    if (last && d->offset_bits)
        tn_buf_printf(text, "o%u", d->offset_bits);
    if (d->dim >= 0)
        tn_buf_printf(text, "d%u", (unsigned)d->dim + i);
    if (last && d->of)
        tn_buf_printf(text, "n%um%u", d->keep, d->of);
}

static void put_number(tn_buf *text, const tn_datatype *d)
{
    const tn_codebook *book = &d->codebook;
    if (!book->table) {
        tn_buf_puts(text, d->number.text);
        return;
    }
    tn_buf_printf(text, "cb%u%u", book->index_bits, book->meta_bits);
    tn_codebook_put_table(book, text);
    tn_buf_printf(text, "_%s", book->compute.text);
}

static void put_scale(tn_buf *text, const tn_datatype *d)
{
    tn_buf_putc(text, '|');
    if (d->has_tensor_scale)
        tn_buf_printf(text, "multi_%s_", d->tensor_scale.text);
    tn_buf_puts(text, d->scale.text);
    if (d->has_zero)
        tn_buf_printf(text, "_%s", d->zero.text);
    for (uint32_t i = 0; i < d->dims; i++)
        put_tile(text, d, i);
}

static void put_sparsity(tn_buf *text, const tn_datatype *d)
{
    tn_buf_printf(text, "|n%um%u", d->keep, d->of);
    if (d->dim >= 0)
        tn_buf_printf(text, "d%d", d->dim);
}

static tn_status put_text(tn_datatype *d, tn_error *err)
{
    tn_buf text = { 0 };
    put_number(&text, d);
    if (d->scope != TN_SCOPE_NONE)
        put_scale(&text, d);
    else if (d->of)
        put_sparsity(&text, d);
    tn_buf_putc(&text, '\0');
    d->text = (char *)text.data;
    return text.bad ? tn_fail_nomem(err) : TN_OK;
}

/* ---- datatypes ---- */

static tn_status read_scale(tn_reading *r, tn_datatype *d)
{
    scale s;
    TN_TRY(read_segments(r, &s));
    TN_TRY(resolve_tiles(r, &s, d));
    TN_TRY(resolve_numbers(r, &s, d));
    return check_scaled(r, &s, d);
}

/* n<N>m<M>[d<D>]: sparsity without scale. */
static tn_status read_sparse(tn_reading *r, tn_datatype *d)
{
    tile t = { .at = r->at };
    tn_take_word(r, "n");
    TN_TRY(read_sparsity(r, &t));
    TN_TRY(read_dimension(r, &t));
    if (r->at < r->end)
        return tn_expected(r, "n<N>m<M>[d<D>]");
    if (d->number.kind != TN_NUMBER_FLOAT)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, t.at,
                               "%s needs a scale: expected one, as in float32_t0n%um%u, but found none",
                               d->number.text, t.keep, t.of);
    d->dims = 1;
    d->tile[0] = SPARSE_TILE / t.of * t.keep;           /* tiles share nothing: any size works */
    d->dim = t.has_dim ? (int32_t)t.dim : -1;
    d->tile[1] = 1;
    d->keep = t.keep;
    d->of = t.of;
    return TN_OK;
}

static tn_status read_number(tn_reading *r, tn_datatype *d)
{
    const tn_datatype_name *name[2];
    if (tn_codebook_is_next(r))
        return tn_codebook_read(r, &d->number, &d->codebook);
    if (*r->end == '|' && tn_datatype_find(tn_rest(r), name) && strchr(name[0]->text, '|'))
        return tn_reading_fail(r, TN_ERR_ARGUMENT, r->at,
                               "expected a number but found %s, which has a scale already", name[0]->name);
    tn_status status = tn_number_read(r, &d->number);
    if (status == TN_OK && d->number.kind == TN_NUMBER_EXPONENT)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, r->text,
                               "expected a number but found %s, which only scales others", d->number.text);
    return status;
}

static tn_status check_unscaled(const tn_reading *r, const tn_datatype *d)
{
    if (d->number.kind != TN_NUMBER_FLOAT)
        return tn_reading_fail(r, TN_ERR_ARGUMENT, r->end,
                               "%s needs a scale: expected | and one, as in |float32, but found the end",
                               d->number.text);
    return TN_OK;
}

static tn_status read_datatype(const char *text, tn_datatype *d, tn_error *err)
{
    size_t number = strcspn(text, "|");
    tn_reading r = { .text = text, .at = text, .end = text + number, .err = err };
    TN_TRY(read_number(&r, d));
    if (!text[number])
        return check_unscaled(&r, d);
    r.at = text + number + 1;
    r.end = r.at + strlen(r.at);
    return tn_next(&r) == 'n' ? read_sparse(&r, d) : read_scale(&r, d);
}

static tn_status finish(tn_status status, tn_datatype *d, tn_datatype **datatype, tn_error *err)
{
    d->quantizer = &tn_tile_quantizer;
    if (status == TN_OK)
        status = put_text(d, err);
    if (status)
        tn_datatype_free(d);
    else
        *datatype = d;
    return status;
}

tn_status tn_tiles_parse(const char *text, tn_datatype **datatype, tn_error *err)
{
    tn_datatype *d = calloc(1, sizeof *d);
    return d ? finish(read_datatype(text, d, err), d, datatype, err) : tn_fail_nomem(err);
}

tn_status tn_datatype_parse(const char *text, tn_datatype **datatype, tn_error *err)
{
    const tn_datatype_name *name[2];
    if (!text || !datatype)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a datatype but found none");
    unsigned found = tn_datatype_find((tn_text){ text, strlen(text) }, name);
    if (found > 1)
        return tn_fail(err, TN_ERR_ARGUMENT, "%s could be %s or %s: expected one of them, in its own case",
                       tn_quote_z(text).text, name[0]->name, name[1]->name);
    text = found ? name[0]->text : text;
    return tn_quantizer_for(text)->parse(text, datatype, err);
}

tn_status tn_datatype_of_codebook(tn_codebook *book, const char *scale_text, tn_datatype **datatype,
                                  tn_error *err)
{
    char name[80];
    tn_datatype *d = calloc(1, sizeof *d);
    if (!d) {
        free((float *)book->value);
        return tn_fail_nomem(err);
    }
    snprintf(name, sizeof name, "cb%u%u_%s", book->index_bits, book->meta_bits, book->compute.text);
    d->codebook = *book;
    d->number = tn_codebook_number(book, name);
    tn_reading r = { .text = scale_text, .at = scale_text, .end = scale_text + strlen(scale_text),
                     .err = err };
    return finish(read_scale(&r, d), d, datatype, err);
}

void tn_datatype_free(tn_datatype *d)
{
    if (!d)
        return;
    free((float *)d->codebook.value);
    free(d->text);
    free(d);
}

const char *tn_datatype_text(const tn_datatype *d)
{
    return d ? d->text : "";
}
