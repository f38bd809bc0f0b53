/* quant/grammar/affine.c - parse and write affine datatypes: integer codes with one
 * scale and zero point per tensor or per index of a dimension. */
#include "base/arena.h"
#include "base/options.h"
#include "quant/grammar/datatype_read.h"
#include "quant/quantizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FLOAT_BITS = 24 };       /* of a scale */

/* The types of embARC MLI.  They use all codes of their type. */
static const struct firmware {
    const char *name;
    tn_dtype codes;
    bool power;                 /* else scales of 15 bits, with zero points */
} firmware[] = {
    { "fx8", TN_INT8, true }, { "fx16", TN_INT16, true }, { "sa8", TN_INT8, false },
    { "sa32", TN_INT32, false }, { NULL, TN_UNKNOWN, false },
};

static void limits_of(tn_dtype codes, int64_t limits[2])
{
    const tn_dtype_info *type = tn_dtype_get(codes);
    bool is_signed = type->kind == TN_KIND_INT;
    limits[0] = is_signed ? -(INT64_C(1) << (type->bits - 1)) : 0;
    limits[1] = (INT64_C(1) << (type->bits - is_signed)) - 1;
}

bool tn_affine_named(tn_text name, tn_affine *affine)
{
    const struct firmware *f = firmware;
    while (f->name && !(strlen(f->name) == name.len && strncasecmp(f->name, name.ptr, name.len) == 0))
        f++;
    if (!f->name)
        return false;
    *affine = (tn_affine){ .size = sizeof *affine, .codes = f->codes, .axis = TN_PER_TENSOR,
                           .symmetric = true, .has_zeros = !f->power, .power = f->power,
                           .scale_bits = f->power ? 0 : TN_AFFINE_SHORT_BITS, .arithmetic = TN_ARITH_EXACT };
    limits_of(f->codes, affine->range);
    return true;
}

const char *tn_affine_name(const tn_affine *a)
{
    for (const struct firmware *f = firmware; f->name && a->arithmetic != TN_ARITH_BINARY32; f++)
        if (a->codes == f->codes && a->power == f->power && a->has_zeros == !f->power)
            return f->name;
    return tn_dtype_get(a->codes)->name;
}

/* ---- checks ---- */

tn_status tn_affine_check_codes(tn_dtype codes, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(codes);
    bool integer = type && (type->kind == TN_KIND_INT || type->kind == TN_KIND_UINT);
    if (!integer || type->bits > 32 || codes == TN_UINT32)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected codes of an integer type of at most 16 bits or int32 but found %s",
                       type ? type->name : "an unknown type");
    return TN_OK;
}

tn_status tn_affine_range(const tn_affine *a, int64_t range[2], tn_error *err)
{
    int64_t limits[2];
    TN_TRY(tn_affine_check_codes(a->codes, err));
    const tn_dtype_info *type = tn_dtype_get(a->codes);
    limits_of(a->codes, limits);
    if (a->symmetric && type->kind != TN_KIND_INT)
        return tn_fail(err, TN_ERR_ARGUMENT, "symmetric codes have a sign but %s has none", type->name);
    bool all = a->range[0] == 0 && a->range[1] == 0;
    range[0] = all ? limits[0] + a->symmetric : a->range[0];
    range[1] = all ? limits[1] : a->range[1];
    if (range[0] < limits[0] || range[1] > limits[1] || range[0] >= range[1])
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a range of codes within the %" PRId64 " to %" PRId64
                       " of %s but found %" PRId64 " to %" PRId64, limits[0], limits[1], type->name, range[0],
                       range[1]);
    if (a->symmetric && (range[0] > 0 || range[1] < 1))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected a range of symmetric codes with 0 and 1 in it but found %" PRId64
                       " to %" PRId64, range[0], range[1]);
    return TN_OK;
}

static tn_status check(const tn_affine *a, tn_error *err)
{
    if ((unsigned)a->arithmetic > TN_ARITH_MLI)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected an arithmetic of 0 to %d but found %d", TN_ARITH_MLI,
                       (int)a->arithmetic);
    if (a->axis != TN_PER_TENSOR && (a->axis < 0 || a->axis >= TN_MAX_RANK))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "expected an axis below %d or %d for one scale but found %" PRId32, TN_MAX_RANK,
                       TN_PER_TENSOR, a->axis);
    if (a->power && !a->symmetric)
        return tn_fail(err, TN_ERR_ARGUMENT, "scales that are powers of two need symmetric codes");
    if (a->scale_bits > FLOAT_BITS)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a scale of at most %d bits but found %u", FLOAT_BITS,
                       a->scale_bits);
    return TN_OK;
}

/* ---- text ---- */

static void put_keys(tn_buf *text, const tn_affine *a, const tn_affine *like)
{
    static const char *const arithmetics[] = { "binary32", "exact", "mli" };
    if (a->symmetric != like->symmetric)
        tn_buf_printf(text, ",zero=%s", a->symmetric ? "symmetric" : "asymmetric");
    if (a->symmetric && a->has_zeros != like->has_zeros)
        tn_buf_printf(text, ",zeros=%s", a->has_zeros ? "yes" : "no");
    if (a->power != like->power)
        tn_buf_printf(text, ",power=%s", a->power ? "yes" : "no");
    if (a->scale_bits != like->scale_bits)
        tn_buf_printf(text, ",scale_bits=%u", a->scale_bits);
    if (a->range[0] != like->range[0] || a->range[1] != like->range[1])
        tn_buf_printf(text, ",range=%" PRId64 ":%" PRId64, a->range[0], a->range[1]);
    if (a->arithmetic != like->arithmetic)
        tn_buf_printf(text, ",arithmetic=%s", arithmetics[a->arithmetic]);
}

/* The defaults of a type. */
static tn_affine default_of(tn_text name, tn_dtype codes)
{
    tn_affine like = { 0 };
    if (!tn_affine_named(name, &like)) {
        const tn_dtype_info *type = tn_dtype_get(codes);
        like = (tn_affine){ .size = sizeof like, .codes = codes, .axis = TN_PER_TENSOR,
                            .symmetric = type && type->kind == TN_KIND_INT };
    }
    return like;
}

static tn_status put_text(const tn_affine *a, char **result, tn_error *err)
{
    tn_buf text = { 0 };
    const char *name = tn_affine_name(a);
    tn_affine like = default_of((tn_text){ name, strlen(name) }, a->codes);
    tn_buf_puts(&text, name);
    if (a->axis >= 0)
        tn_buf_printf(&text, ",per=channel,axis=%d", (int)a->axis);
    else if (like.arithmetic == TN_ARITH_BINARY32)
        tn_buf_puts(&text, ",per=tensor");
    put_keys(&text, a, &like);
    tn_buf_putc(&text, '\0');
    *result = (char *)text.data;
    return text.bad ? tn_fail_nomem(err) : TN_OK;
}

/* ---- the datatype ---- */

static void set_numbers(tn_datatype *d)
{
    const tn_dtype_info *type = tn_dtype_get(d->affine.codes), *scale = tn_dtype_get(TN_FLOAT32),
                        *zero = tn_dtype_get(TN_INT32);
    d->number = (tn_number_spec){ .kind = type->kind == TN_KIND_INT ? TN_NUMBER_INT : TN_NUMBER_UINT,
                                  .bits = (uint8_t)type->bits, .dtype = type->dtype,
                                  .maxint = (int32_t)d->affine.range[1] };
    strncpy(d->number.text, tn_affine_name(&d->affine), sizeof d->number.text - 1);
    d->scale = (tn_number_spec){ .kind = TN_NUMBER_FLOAT, .bits = (uint8_t)scale->bits, .dtype = TN_FLOAT32 };
    d->zero = (tn_number_spec){ .kind = TN_NUMBER_INT, .bits = (uint8_t)zero->bits, .dtype = TN_INT32 };
    d->scope = TN_SCOPE_TENSOR;
    d->has_zero = d->affine.has_zeros || !d->affine.symmetric;
}

/* Leaves the default range out of the text, so that equal datatypes have equal texts. */
static void use_default_range(tn_affine *a, const int64_t range[2])
{
    const char *name = tn_affine_name(a);
    tn_affine like = default_of((tn_text){ name, strlen(name) }, a->codes);
    int64_t own[2];
    like.symmetric = a->symmetric;
    if (tn_affine_range(&like, own, NULL) == TN_OK && own[0] == range[0] && own[1] == range[1])
        memcpy(a->range, like.range, sizeof like.range);
}

tn_status tn_datatype_affine(const tn_affine *affine, tn_datatype **datatype, tn_error *err)
{
    tn_affine own = { .axis = TN_PER_TENSOR };
    int64_t range[2] = { 0, 0 };
    TN_GIVEN(datatype, "a place for the datatype", err);
    TN_TRY(tn_take_options(TN_SIZED(tn_affine, arithmetic), &own, affine, err));
    TN_TRY(tn_affine_range(&own, range, err));
    TN_TRY(check(&own, err));
    own.has_zeros |= !own.symmetric;
    use_default_range(&own, range);
    tn_datatype *d = calloc(1, sizeof *d);
    TN_NEED(d, err);
    d->quantizer = &tn_affine_quantizer;
    d->is_affine = true;
    d->affine = own;
    tn_status status = put_text(&own, &d->text, err);
    d->affine.range[0] = range[0];
    d->affine.range[1] = range[1];
    set_numbers(d);
    if (status)
        tn_datatype_free(d);
    else
        *datatype = d;
    return status;
}

/* ---- reading ---- */

static bool take_number(tn_text value, int64_t *number)
{
    char text[32], *end;
    if (value.len == 0 || value.len >= sizeof text)
        return false;
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    *number = strtoll(text, &end, 10);
    return !*end && text[0] != ' ' && text[0] != '+';
}

static bool take_range(tn_text value, int64_t range[2])
{
    const char *colon = value.len ? memchr(value.ptr, ':', value.len) : NULL;
    size_t n = colon ? (size_t)(colon - value.ptr) : 0;
    return colon && take_number((tn_text){ value.ptr, n }, &range[0]) &&
           take_number((tn_text){ colon + 1, value.len - n - 1 }, &range[1]);
}

/* One of two words. */
static bool take_choice(tn_text value, const char *no, const char *yes, bool *chosen)
{
    *chosen = tn_text_is(value, yes);
    return *chosen || tn_text_is(value, no);
}

static bool take_arithmetic(tn_text value, tn_arithmetic *arithmetic)
{
    *arithmetic = TN_ARITH_BINARY32;
    if (tn_text_is(value, "exact"))
        *arithmetic = TN_ARITH_EXACT;
    else if (tn_text_is(value, "mli"))
        *arithmetic = TN_ARITH_MLI;
    else
        return tn_text_is(value, "binary32");
    return true;
}

typedef struct reading {
    tn_affine affine;
    bool      has_per, channel, has_axis;
} reading;

/* *known: there is such a key.  False: it has no such value. */
static bool take_key(reading *r, tn_text key, tn_text value, bool *known)
{
    tn_affine *a = &r->affine;
    int64_t number = 0;
    bool axis = tn_text_is(key, "axis");
    *known = true;
    if (tn_text_is(key, "per")) {
        r->has_per = true;
        return take_choice(value, "tensor", "channel", &r->channel);
    }
    if (tn_text_is(key, "zero"))
        return take_choice(value, "asymmetric", "symmetric", &a->symmetric);
    if (tn_text_is(key, "zeros"))
        return take_choice(value, "no", "yes", &a->has_zeros);
    if (tn_text_is(key, "power"))
        return take_choice(value, "no", "yes", &a->power);
    if (tn_text_is(key, "arithmetic") || tn_text_is(key, "compat"))
        return take_arithmetic(value, &a->arithmetic);
    if (tn_text_is(key, "range"))
        return take_range(value, a->range);
    *known = axis || tn_text_is(key, "scale_bits");
    if (!*known || !take_number(value, &number) || number < 0 || number > INT16_MAX)
        return false;
    if (axis)
        a->axis = (int32_t)number, r->has_axis = true;
    else
        a->scale_bits = (unsigned)number;
    return true;
}

static const char known_keys[] = "per, axis, zero, zeros, power, scale_bits, range or arithmetic";

static tn_status read_keys(reading *r, const char *text, const char *at, tn_error *err)
{
    while (*at) {
        size_t n = strcspn(at + 1, ","), k = strcspn(at + 1, "=,");
        tn_text key = { at + 1, k }, value = { at + 1 + k + (k < n), n - k - (k < n) };
        bool known;
        if (!take_key(r, key, value, &known))
            return tn_fail(err, TN_ERR_ARGUMENT, "%s: expected %s but found %s at character %zu",
                           tn_quote_z(text).text, known ? "another value" : known_keys,
                           tn_quote(at + 1, n).text, (size_t)(at + 1 - text));
        at += 1 + n;
    }
    return TN_OK;
}

bool tn_affine_is_text(const char *text)
{
    tn_affine unused;
    char name[16] = "";
    size_t n = strcspn(text, ",");
    if (tn_affine_named((tn_text){ text, n }, &unused))
        return true;
    if (!text[n] || n >= sizeof name)
        return false;
    memcpy(name, text, n);
    return tn_affine_check_codes(tn_dtype_parse(name), NULL) == TN_OK;
}

tn_status tn_affine_parse(const char *text, tn_datatype **datatype, tn_error *err)
{
    char name[16] = "";
    size_t n = strcspn(text, ",");
    memcpy(name, text, n < sizeof name ? n : 0);
    reading r = { .affine = default_of((tn_text){ text, n }, tn_dtype_parse(name)) };
    bool named = r.affine.arithmetic != TN_ARITH_BINARY32;
    TN_TRY(read_keys(&r, text, text + n, err));
    if ((!named && !r.has_per) || r.channel != r.has_axis)
        return tn_fail(err, TN_ERR_ARGUMENT, "%s: expected per=tensor or per=channel,axis=A",
                       tn_quote_z(text).text);
    return tn_datatype_affine(&r.affine, datatype, err);
}
