/* cli/ui/array_text.c - values in nested brackets. */
#include "ui/array_text.h"
#include "ui/json.h"
#include "ui/say.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EDGE       3            /* items shown at each end of a summarised dimension */
#define LINE_WIDTH 75
#define FRACTION   8            /* digits after the point, at most */
#define WORD       128

/* How all numbers of an array (or all real, or all imaginary halves) are laid
 * out so that their points stand in one column. */
typedef struct layout {
    double least, most;         /* of the finite non-zero magnitudes */
    int    left, right;         /* characters before and after the point */
    int    fraction, exponent;  /* scientific: digits of each */
    bool   scientific;
} layout;

typedef struct printer {
    elements     *e;
    const window *w;
    tn_dtype      dtype;
    tn_kind       kind;
    bool          summarise;
    layout        re, im;
    int           width;        /* of the widest word that is not a float */
    int           column;
    int           spaces;       /* due before the next word, forgotten at the end of a line */
    tn_error     *err;
} printer;

/* --- one float ------------------------------------------------------------ */

/* The shortest text that means the same value, taken apart: how many digits it
 * has and the decimal exponent of the first. */
static void shortest_digits(tn_dtype dtype, double x, int *digits, int *exponent)
{
    char text[64];
    tn_value_format(text, sizeof text, dtype, (tn_value){ .kind = TN_KIND_FLOAT, .re = x });
    int n = 0, trailing = 0, before = 0, leading = 0;
    bool point = false;
    for (const char *c = text; *c && *c != 'e'; c++) {
        if (*c == '.')
            point = true;
        if (*c < '0' || *c > '9')
            continue;
        before += !point && (n > 0 || *c != '0');
        if (n == 0 && *c == '0') {
            leading += point;
            continue;
        }
        n++;
        trailing = *c == '0' ? trailing + 1 : 0;
    }
    const char *e = strchr(text, 'e');
    *digits = n - trailing;
    *exponent = before > 0 ? before - 1 : -1 - leading;
    if (e)
        *exponent += (int)strtol(e + 1, NULL, 10);
}

/* "12.25", "3." */
static void positional(char *text, tn_dtype dtype, double x)
{
    int digits = 1, exponent = 0;
    if (x != 0)
        shortest_digits(dtype, x, &digits, &exponent);
    int fraction = digits - 1 - exponent;
    if (fraction <= 0) {
        snprintf(text, WORD, "%.0f.", x);
        return;
    }
    int n = snprintf(text, WORD, "%.*f", fraction < FRACTION ? fraction : FRACTION, x);
    while (n > 0 && text[n - 1] == '0')
        text[--n] = '\0';
}

/* How many digits after the point "1.25e-05" needs. */
static int scientific_fraction(tn_dtype dtype, double x)
{
    int digits = 1, exponent = 0;
    if (x != 0)
        shortest_digits(dtype, x, &digits, &exponent);
    if (digits - 1 <= FRACTION)
        return digits - 1;
    char text[64];
    snprintf(text, sizeof text, "%.*e", FRACTION, x);
    const char *end = strchr(text, 'e');
    int fraction = FRACTION;
    while (fraction > 0 && *--end == '0')
        fraction--;
    return fraction;
}

/* "1.25e-05", "1.e+100" */
static void scientific(char *text, double x, int fraction, int exponent_digits)
{
    char number[64];
    snprintf(number, sizeof number, "%.*e", fraction, x);
    char *e = strchr(number, 'e');
    *e = '\0';
    long exponent = strtol(e + 1, NULL, 10);
    const char *point = fraction > 0 ? "" : ".";
    char sign = exponent < 0 ? '-' : '+';
    snprintf(text, WORD, "%s%se%c%0*ld", number, point, sign, exponent_digits, labs(exponent));
}

static void at_least(int *most, long n)
{
    if (n > *most)
        *most = (int)n;
}

static void layout_measure(layout *l, tn_dtype dtype, double x)
{
    char text[WORD];
    if (!isfinite(x))
        return;
    double size = fabs(x);
    if (size > 0 && (l->least == 0 || size < l->least))
        l->least = size;
    if (size > l->most)
        l->most = size;
    if (size < 1e16) {
        positional(text, dtype, x);
        const char *point = strchr(text, '.');
        at_least(&l->left, point - text);
        at_least(&l->right, (long)strlen(point + 1));
    }
    at_least(&l->fraction, scientific_fraction(dtype, x));
    scientific(text, x, FRACTION, 2);
    at_least(&l->exponent, (long)strlen(strchr(text, 'e') + 2));
}

/* NumPy's choice: scientific for large numbers, small numbers and wide ranges.
 * What is large depends on how many digits the type has. */
static void layout_decide(layout *l, tn_dtype dtype)
{
    double digits = tn_dtype_get(dtype)->mantissa_bits * 0.30103;
    double large = digits >= 4 ? 1e6 : 1e3;
    if (digits >= 8)
        large = 1e8;
    l->scientific = l->most > 0 && (l->most >= large || l->least < 1e-4 || l->most / l->least > 1000);
    if (l->scientific) {
        l->left = 1;            /* widen() adds the sign */
        l->right = l->fraction + 2 + l->exponent;
    }
}

static const char *special_word(double x)
{
    if (isnan(x))
        return "nan";
    return x > 0 ? "inf" : "-inf";
}

static void float_word(char *word, const layout *l, tn_dtype dtype, double x)
{
    char text[WORD];
    int total = l->left + l->right + 1;
    if (!isfinite(x)) {
        snprintf(word, WORD, "%*s", total, special_word(x));
        return;
    }
    if (l->scientific)
        scientific(text, x, l->fraction, l->exponent);
    else
        positional(text, dtype, x);
    int before = (int)(strchr(text, '.') - text);
    int length = snprintf(word, WORD, "%*s%s", l->left > before ? l->left - before : 0, "", text);
    for (; length < total && length < WORD - 1; length++)
        memcpy(word + length, " ", 2);
}

/* The imaginary half: always with a sign, "j" right after the digits. */
static void imaginary_word(char *word, const layout *l, tn_dtype dtype, double x)
{
    char number[WORD];
    float_word(number, l, dtype, fabs(x));
    int pad = (int)strspn(number, " ");
    const char *digits = number + pad;
    int length = (int)strcspn(digits, " ");
    snprintf(word, WORD, "%*s%c%.*sj%s", pad, "", signbit(x) ? '-' : '+', length, digits, digits + length);
}

/* --- one element ---------------------------------------------------------- */

static bool is_float(const printer *p) { return p->kind == TN_KIND_FLOAT || p->kind == TN_KIND_COMPLEX; }

static void measure(printer *p, const tn_value *value)
{
    if (is_float(p)) {
        layout_measure(&p->re, p->dtype, value->re);
        if (p->kind == TN_KIND_COMPLEX)
            layout_measure(&p->im, p->dtype, fabs(value->im));
        return;
    }
    at_least(&p->width, tn_value_format(NULL, 0, p->dtype, *value));
}

/* Adds the width of "nan" and "-inf", and of the sign of scientific numbers. */
static void widen(printer *p, const tn_value *value)
{
    const double halves[] = { value->re, value->im };
    layout *const layouts[] = { &p->re, &p->im };
    for (int i = 0; i < (p->kind == TN_KIND_COMPLEX ? 2 : 1); i++) {
        bool negative = i == 0 && signbit(halves[i]) && !isnan(halves[i]);
        if (!isfinite(halves[i]))
            at_least(&layouts[i]->left, 3 + negative - (layouts[i]->right + 1));
        else if (layouts[i]->scientific && negative)
            at_least(&layouts[i]->left, 2);
    }
}

static void make_word(const printer *p, char *word, size_t cap, const tn_value *value)
{
    char re[WORD], im[WORD];
    if (p->kind == TN_KIND_FLOAT) {
        float_word(word, &p->re, p->dtype, value->re);
    } else if (p->kind == TN_KIND_COMPLEX) {
        float_word(re, &p->re, p->dtype, value->re);
        imaginary_word(im, &p->im, p->dtype, value->im);
        snprintf(word, cap, "%s%s", re, im);
    } else {
        tn_value_format(re, sizeof re, p->dtype, *value);
        snprintf(word, cap, "%*s", p->width, re);
    }
}

/* --- the array ------------------------------------------------------------ */

typedef void (*each_fn)(printer *p, const tn_value *value);

static bool shortened(const printer *p, uint32_t d) { return p->summarise && p->w->shape[d] > 2 * EDGE; }

/* The item after i, or the first of the other end. */
static int64_t next_item(const printer *p, uint32_t d, int64_t i)
{
    return shortened(p, d) && i == EDGE - 1 ? p->w->shape[d] - EDGE : i + 1;
}

static uint64_t item_at(const printer *p, uint32_t d, uint64_t flat, int64_t i)
{
    return flat + (uint64_t)(i * p->w->step[d]);
}

static tn_status for_each(printer *p, uint32_t d, uint64_t flat, each_fn each)
{
    tn_status status = TN_OK;
    if (d == p->w->rank) {
        tn_value value;
        status = elements_get(p->e, flat, &value, p->err);
        if (status == TN_OK)
            each(p, &value);
        return status;
    }
    for (int64_t i = 0; status == TN_OK && i < p->w->shape[d]; i = next_item(p, d, i))
        status = for_each(p, d + 1, item_at(p, d, flat, i), each);
    return status;
}

static void print_word(printer *p, const char *word, uint32_t d)
{
    int length = (int)strlen(word), indent = (int)d + 1, width = LINE_WIDTH - (int)d - 1;
    if (p->column > indent && p->column + length > width) {
        out("\n%*s", indent, "");
        p->spaces = 0;
        p->column = indent;
    }
    int shown = length;
    while (shown > 0 && word[shown - 1] == ' ')
        shown--;
    out("%*s%.*s", p->spaces, "", shown, word);
    p->spaces = length - shown + 1;
    p->column += length + 1;
}

static tn_status print_row(printer *p, uint32_t d, uint64_t flat)
{
    tn_status status = TN_OK;
    p->column = (int)d + 1;
    p->spaces = 0;
    for (int64_t i = 0; i < p->w->shape[d]; i = next_item(p, d, i)) {
        char word[2 * WORD];
        tn_value value;
        status = elements_get(p->e, item_at(p, d, flat, i), &value, p->err);
        if (status != TN_OK)
            return status;
        if (shortened(p, d) && i == p->w->shape[d] - EDGE)
            print_word(p, "...", d);
        make_word(p, word, sizeof word, &value);
        print_word(p, word, d);
    }
    out("%*s", p->spaces - 1, "");
    return status;
}

static void print_gap(const printer *p, uint32_t d)
{
    for (uint32_t left = p->w->rank - d; left > 1; left--)
        out_text("\n");
    out("%*s", (int)d + 1, "");
}

static tn_status print_nested(printer *p, uint32_t d, uint64_t flat)
{
    tn_status status = TN_OK;
    out_text("[");
    if (d + 1 == p->w->rank)
        status = print_row(p, d, flat);
    for (int64_t i = 0; d + 1 < p->w->rank && status == TN_OK && i < p->w->shape[d]; i = next_item(p, d, i)) {
        if (shortened(p, d) && i == p->w->shape[d] - EDGE) {
            print_gap(p, d);
            out_text("...");
        }
        if (i > 0)
            print_gap(p, d);
        status = print_nested(p, d + 1, item_at(p, d, flat, i));
    }
    out_text("]");
    return status;
}

static void print_scalar(printer *p, const tn_value *value)
{
    char word[2 * WORD];
    make_word(p, word, sizeof word, value);
    print_word(p, word + strspn(word, " "), 0);
}

tn_status array_print(elements *e, const window *w, bool summarise, tn_error *err)
{
    tn_dtype dtype = e->dtype;
    printer p = { .e = e, .w = w, .dtype = dtype, .kind = tn_dtype_get(dtype)->kind, .summarise = summarise,
                  .err = err };
    if (w->count == 0) {
        out_text("[]\n");
        return TN_OK;
    }
    tn_status status = for_each(&p, 0, w->base, measure);
    if (status == TN_OK && is_float(&p)) {
        layout_decide(&p.re, dtype);
        layout_decide(&p.im, dtype);
        status = for_each(&p, 0, w->base, widen);
    }
    if (status == TN_OK)
        status = w->rank == 0 ? for_each(&p, 0, w->base, print_scalar) : print_nested(&p, 0, w->base);
    out_text("\n");
    return status;
}

/* --- JSON ----------------------------------------------------------------- */

static void json_value(printer *p, const tn_value *value)
{
    char text[64];
    if (p->kind == TN_KIND_FLOAT) {
        json_double(value->re);
    } else if (p->kind == TN_KIND_COMPLEX) {
        json_open('[');
        json_double(value->re);
        json_double(value->im);
        json_close(']');
    } else {
        tn_value_format(text, sizeof text, p->dtype, *value);
        json_word(text);
    }
}

static tn_status json_nested(printer *p, uint32_t d, uint64_t flat)
{
    if (d == p->w->rank)
        return for_each(p, d, flat, json_value);
    tn_status status = TN_OK;
    json_open('[');
    for (int64_t i = 0; status == TN_OK && i < p->w->shape[d]; i++)
        status = json_nested(p, d + 1, item_at(p, d, flat, i));
    json_close(']');
    return status;
}

tn_status array_json(elements *e, const window *w, tn_error *err)
{
    tn_dtype dtype = e->dtype;
    printer p = { .e = e, .w = w, .dtype = dtype, .kind = tn_dtype_get(dtype)->kind, .err = err };
    if (w->count > 0)
        return json_nested(&p, 0, w->base);
    json_open('[');             /* not one bracket for each of 10^15 empty rows */
    json_close(']');
    return TN_OK;
}
