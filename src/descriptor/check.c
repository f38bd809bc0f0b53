/* descriptor/check.c - reporting, and fields that need no others. */
#include "descriptor/check.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tenon/layout.h>

/* ---- reporting ---- */

__attribute__((format(printf, 4, 0)))
static void find(tn_checker *c, bool remark, const char *path, const char *format, va_list args)
{
    char text[sizeof((tn_error *)0)->text];
    vsnprintf(text, sizeof text, format, args);
    c->wrong += !remark;
    if (c->options.report)
        c->options.report(c->options.context,
                          &(tn_wia_finding){ .remark = remark, .path = path, .text = text });
}

void tn_error_at(tn_checker *c, const char *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    find(c, false, path, format, args);
    va_end(args);
}

void tn_remark_at(tn_checker *c, const char *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    find(c, true, path, format, args);
    va_end(args);
}

tn_phrase tn_item_path(const char *list, size_t i)
{
    tn_phrase p;
    snprintf(p.text, sizeof p.text, "%s[%zu]", list, i);
    return p;
}

tn_phrase tn_dimension_phrase(const tn_descriptor *d, uint32_t i)
{
    tn_phrase p;
    /* which reads as a number */
    if (d->layout && tn_layout_check(d->layout, d->rank, NULL) == TN_OK && d->layout[i] != '1')
        snprintf(p.text, sizeof p.text, "dimension %c", d->layout[i]);
    else
        snprintf(p.text, sizeof p.text, "dimension %u", i);
    return p;
}

bool tn_integer_codes(const tn_dtype_info *type, tn_wide *low, tn_wide *high)
{
    if (!type || (type->kind != TN_KIND_INT && type->kind != TN_KIND_UINT))
        return false;
    tn_wide codes = (tn_wide)1 << type->bits;
    *low = type->kind == TN_KIND_INT ? -codes / 2 : 0;
    *high = *low + codes - 1;
    return true;
}

tn_phrase tn_codes_phrase(const tn_dtype_info *type)
{
    tn_wide low = 0, high = 0;
    tn_phrase p;
    tn_integer_codes(type, &low, &high);
    snprintf(p.text, sizeof p.text, "a code of %.40s, %.40s to %.40s", type->name, tn_wide_phrase(low).text,
             tn_wide_phrase(high).text);
    return p;
}

/* ---- single fields ---- */

static tn_quoted quote(const char *text)
{
    return text ? tn_quote_z(text) : (tn_quoted){ "none" };
}

/* There is one version of the specification; its sparse objects may have none. */
static void check_version(tn_checker *c)
{
    const char *version = c->d->version;
    if (c->fragment)
        return;
    if (version ? strcmp(version, TN_WIA_VERSION) != 0 : !c->d->sparse.format)
        tn_error_at(c, "version", "expected \"" TN_WIA_VERSION "\" but found %s", quote(version).text);
}

/* 8-4-4-4-12 hexadecimal digits, of any version. */
static bool is_uuid(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    /* the NUL is compared too, and nothing is read beyond it */
    for (size_t i = 0; i < sizeof form; i++)
        if (form[i] == 'x' ? tn_hex_digit(text[i]) < 0 : text[i] != form[i])
            return false;
    return true;
}

static void check_names(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    if (d->tensor_id && !is_uuid(d->tensor_id))
        tn_error_at(c, "tensor_id", "expected a UUID (8-4-4-4-12 hexadecimal digits) but found %s",
                    quote(d->tensor_id).text);
    if (!d->name && !d->sparse.format && !c->fragment)
        tn_error_at(c, "name", "expected a string but found none");
}

/* The specification lists 17 types; Tenon's others have a prefix that other implementations do not know. */
static void check_type(tn_checker *c)
{
    const tn_descriptor *d = c->d;
    bool inside = d->base_type || !d->sparse.format;
    const char *path = inside ? "dtype.base_type" : "values.dtype";
    const char *name = inside || !c->type ? d->base_type : c->type->name;
    if (c->fragment)
        return;
    if (!c->type)
        tn_error_at(c, path,
                    "expected one of the specification's 17 types, or another after \"tenon:\", but found %s",
                    quote(name).text);
    else if (!c->type->wia || (d->base_type && strcmp(d->base_type, c->type->wia) != 0))
        (c->options.strict ? tn_error_at : tn_remark_at)(
            c, path, "expected one of the specification's 17 types but found %s", quote(name).text);
}

/* Integers have no gradient. */
static void check_gradient(tn_checker *c)
{
    tn_wide low, high;
    if (c->d->requires_grad && c->d->quantization.scheme == TN_QUANT_NONE &&
        tn_integer_codes(c->type, &low, &high))
        tn_remark_at(c, "properties.requires_grad", "expected false for %s but found true", c->type->name);
}

static tn_status check_all(tn_checker *c, tn_error *err)
{
    check_version(c);
    check_names(c);
    tn_check_shape(c);
    check_type(c);
    tn_check_quantization(c);
    check_gradient(c);
    if (!c->d->sparse.format && !tn_has_no_shape(c->d))
        tn_check_memory(c);     /* else the data is in the document, or there is none */
    tn_check_sharing(c);
    return tn_check_sparse(c, err);
}

static tn_status check(const tn_descriptor *d, const tn_check_options *options, bool opened, size_t *wrong,
                       tn_error *err)
{
    bool bare = d->sparse.format && !d->base_type;
    tn_checker c = { .d = d, .type = tn_dtype_get(bare ? d->sparse.value_type : d->dtype),
                     .fragment = tn_descriptor_is_fragment(d), .opened = opened };
    TN_TRY(tn_take_options(TN_SIZED(tn_check_options, context), &c.options, options, err));
    if (d->rank > TN_MAX_RANK) {
        tn_error_at(&c, "shape.dimensions", "expected at most %d dimensions but found %u", TN_MAX_RANK,
                    d->rank);
        *wrong = c.wrong;
        return TN_OK;           /* nothing else can be checked */
    }
    TN_TRY(tn_symbols_init(&c.symbols, d, err));
    tn_status status = check_all(&c, err);
    tn_symbols_free(&c.symbols);
    *wrong = c.wrong;
    return status;
}

tn_status tn_descriptor_check(const tn_descriptor *d, const tn_check_options *options, size_t *wrong,
                              tn_error *err)
{
    TN_GIVEN(d, "a descriptor", err);
    TN_GIVEN(wrong, "a place for the count", err);
    return check(d, options, false, wrong, err);
}

static void keep_first(void *context, const tn_wia_finding *f)
{
    tn_error *first = context;
    if (!f->remark && !first->status)
        tn_fail(first, TN_ERR_CORRUPT, "%s: %s", f->path, f->text);
}

tn_status tn_descriptor_check_first(const tn_descriptor *d, bool opened, tn_error *err)
{
    tn_error first = { .status = TN_OK };
    const tn_check_options options = { .size = sizeof options, .report = keep_first, .context = &first };
    size_t wrong;
    TN_TRY(check(d, &options, opened, &wrong, err));
    return wrong ? tn_fail(err, TN_ERR_CORRUPT, "%s", first.text) : TN_OK;
}
