/* report/summary.c - the part of the page that needs no script: totals, what is odd, the worst tensors. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- totals ---- */

static void put_fact(tn_buf *b, const char *label, uint64_t n)
{
    tn_buf_printf(b, "<div><dt>%s</dt><dd>", label);
    tn_put_grouped(b, n);
    tn_buf_puts(b, "</dd></div>\n");
}

static void put_facts(const tn_report *r, tn_buf *b)
{
    const tn_report_totals *all = &r->totals;
    const tn_statistics *s = &all->statistics;
    tn_buf_puts(b, "<dl class=\"facts\">\n");
    put_fact(b, "tensors", all->tensors);
    put_fact(b, "values", s->count);
    tn_buf_puts(b, "<div><dt>size</dt><dd>");
    tn_put_size(b, all->nbytes);
    tn_buf_puts(b, "</dd></div>\n");
    put_fact(b, "files", tn_file_shards(r->file));
    put_fact(b, "marked", all->marked);
    put_fact(b, "NaN", s->nans);
    put_fact(b, "infinities", s->infinities);
    put_fact(b, "all zero", all->dead);
    put_fact(b, "constant", all->constant);
    put_fact(b, "not read", all->unread);
    if (r->o.against) {
        put_fact(b, "changed", all->changed);
        put_fact(b, "only here", all->only_here);
        put_fact(b, "only there", all->only_there);
    }
    tn_buf_puts(b, "</dl>\n");
}

static void put_warnings(const tn_report *r, tn_buf *b)
{
    const char *text;
    for (size_t i = 0; (text = tn_file_warning(r->file, i)) && i < TN_REPORT_WORST; i++) {
        tn_buf_puts(b, "<p class=\"warning\">Warning: ");
        tn_put_html(b, text);
        tn_buf_puts(b, "</p>\n");
    }
    for (size_t i = 0, n = 0; i < r->totals.tensors && n < TN_REPORT_WORST; i++) {
        if (!r->tensors[i].why)
            continue;
        n++;
        tn_buf_puts(b, "<p class=\"warning\">Not read: <bdi>");
        tn_put_html(b, r->tensors[i].tensor->name);
        tn_buf_puts(b, "</bdi>: ");
        tn_put_html(b, r->tensors[i].why);
        tn_buf_puts(b, "</p>\n");
    }
}

/* ---- element types ---- */

typedef struct type_sum {
    size_t   tensors;
    uint64_t values, nbytes;
} type_sum;

static void put_type_row(tn_buf *b, const char *name, const type_sum *sum)
{
    tn_buf_puts(b, "<tr><th scope=\"row\">");
    tn_put_html(b, name);
    tn_buf_puts(b, "</th><td>");
    tn_put_grouped(b, sum->tensors);
    tn_buf_puts(b, "</td><td>");
    tn_put_grouped(b, sum->values);
    tn_buf_puts(b, "</td><td>");
    tn_put_size(b, sum->nbytes);
    tn_buf_puts(b, "</td></tr>\n");
}

/* By element type; codes with scales, and what else has several parts, are one more. */
static void put_element_types(const tn_report *r, tn_buf *b)
{
    type_sum sums[TN_DTYPE_COUNT + 1] = { { 0 } };
    for (size_t i = 0; i < r->totals.tensors; i++) {
        const tn_report_tensor *t = &r->tensors[i];
        bool plain = t->tensor->form == TN_FORM_DENSE;
        type_sum *sum = &sums[plain ? t->tensor->dtype : TN_DTYPE_COUNT];
        sum->tensors++;
        sum->values += t->values;
        sum->nbytes += t->nbytes;
    }
    tn_buf_puts(b, "<table><caption>Types</caption>\n<thead><tr><th scope=\"col\">type</th>"
                   "<th scope=\"col\">tensors</th><th scope=\"col\">values</th><th scope=\"col\">size</th>"
                   "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i <= TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *type = i < TN_DTYPE_COUNT ? tn_dtype_get((tn_dtype)i) : NULL;
        const char *other = i ? "scaled or sparse" : "unknown";
        if (sums[i].tensors)
            put_type_row(b, type ? type->name : other, &sums[i]);
    }
    tn_buf_puts(b, "</tbody></table>\n");
}

/* ---- lists ---- */

static void put_name(tn_buf *b, const tn_report_tensor *t)
{
    tn_buf_puts(b, "<th scope=\"row\"><bdi>");
    tn_put_html(b, t->tensor->name);
    tn_buf_puts(b, "</bdi></th>");
}

static void put_cell_number(tn_buf *b, double x)
{
    tn_buf_puts(b, "<td>");
    if (isfinite(x))
        tn_put_number(b, x, 4);
    else
        tn_buf_puts(b, isnan(x) ? "-" : "exact");
    tn_buf_puts(b, "</td>");
}

static void put_marked(const tn_report *r, tn_buf *b)
{
    if (!r->totals.marked) {
        tn_buf_puts(b, "<p>No tensor is marked as odd.</p>\n");
        return;
    }
    tn_buf_puts(b, "<table class=\"marked\">"
                   "<caption>Odd tensors: far from the median of their like</caption>\n"
                   "<thead><tr><th scope=\"col\">tensor</th><th scope=\"col\">figure</th>"
                   "<th scope=\"col\">median deviations</th><th scope=\"col\">std</th>"
                   "<th scope=\"col\">absmax</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < r->totals.marked && i < 2 * TN_REPORT_WORST; i++) {
        const tn_report_tensor *t = &r->tensors[r->order[i]];
        tn_buf_puts(b, "<tr>");
        put_name(b, t);
        tn_buf_puts(b, "<td>");
        tn_put_html(b, t->odd_figure);
        tn_buf_puts(b, "</td>");
        bool is_broken = t->statistics.nans || t->statistics.infinities;
        put_cell_number(b, is_broken ? (double)NAN : t->oddity);
        put_cell_number(b, t->statistics.deviation);
        put_cell_number(b, t->statistics.absmax);
        tn_buf_puts(b, "</tr>\n");
    }
    tn_buf_puts(b, "</tbody></table>\n");
    if (r->totals.marked > 2 * TN_REPORT_WORST)
        tn_buf_puts(b, "<p>And more: the matrix and the table have all of them.</p>\n");
}

/* The tensors with the largest values of a figure, or with the lowest. */
typedef struct worst {
    size_t tensor[TN_REPORT_WORST];
    double value[TN_REPORT_WORST];
    size_t n;
} worst;

static void add_worst(worst *w, size_t tensor, double x, bool lowest)
{
    size_t at = w->n;
    while (at && (lowest ? x < w->value[at - 1] : x > w->value[at - 1]))
        at--;
    if (at == TN_REPORT_WORST)
        return;
    w->n += w->n < TN_REPORT_WORST;
    memmove(w->tensor + at + 1, w->tensor + at, (w->n - at - 1) * sizeof *w->tensor);
    memmove(w->value + at + 1, w->value + at, (w->n - at - 1) * sizeof *w->value);
    w->tensor[at] = tensor;
    w->value[at] = x;
}

static void put_worst(const tn_report *r, tn_buf *b, size_t figure)
{
    worst w = { .n = 0 };
    bool is_type = figure >= TN_FIGURES;
    for (size_t i = 0; i < r->totals.tensors; i++) {
        double x = tn_figure_of(&r->tensors[i], figure);
        x = is_type ? x : fabs(x);
        if (is_type ? !isnan(x) : x > 0)
            add_worst(&w, i, x, is_type);
    }
    if (!w.n)
        return;
    tn_buf_puts(b, "<table><caption>");
    tn_buf_puts(b, is_type ? "Lowest SQNR as " : "Largest: ");
    tn_put_html(b, is_type ? r->types[figure - TN_FIGURES].text : tn_figures[figure].title);
    tn_buf_printf(b, "</caption>\n<thead><tr><th scope=\"col\">tensor</th><th scope=\"col\">%s</th></tr>"
                     "</thead>\n<tbody>\n", is_type ? "dB" : "value");
    for (size_t i = 0; i < w.n; i++) {
        tn_buf_puts(b, "<tr>");
        put_name(b, &r->tensors[w.tensor[i]]);
        put_cell_number(b, w.value[i]);
        tn_buf_puts(b, "</tr>\n");
    }
    tn_buf_puts(b, "</tbody></table>\n");
}

static void put_worst_lists(const tn_report *r, tn_buf *b)
{
    tn_buf_puts(b, "<details><summary>The ten most extreme tensors by each figure</summary>\n"
                   "<div class=\"lists\">\n");
    for (size_t figure = 0; figure < TN_FIGURES + r->o.ntypes; figure++)
        put_worst(r, b, figure);
    tn_buf_puts(b, "</div></details>\n");
}

static void put_types(const tn_report *r, tn_buf *b)
{
    if (!r->o.ntypes)
        return;
    tn_buf_puts(b, "<table><caption>Datatypes</caption>\n<thead><tr><th scope=\"col\">type</th>"
                   "<th scope=\"col\">bits per value</th><th scope=\"col\">SQNR, dB</th>"
                   "<th scope=\"col\">tensors</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < r->o.ntypes; i++) {
        const tn_report_type *t = &r->types[i];
        tn_buf_puts(b, "<tr><th scope=\"row\">");
        tn_put_html(b, t->text);
        tn_buf_puts(b, "</th>");
        put_cell_number(b, t->bits);
        put_cell_number(b, t->sqnr);
        tn_buf_puts(b, "<td>");
        tn_put_grouped(b, t->tensors);
        tn_buf_puts(b, "</td></tr>\n");
    }
    tn_buf_puts(b, "</tbody></table>\n");
}

void tn_report_put_summary(const tn_report *r, tn_buf *b)
{
    tn_buf_puts(b, "<section id=\"summary\" class=\"tenon-summary\" aria-labelledby=\"summary-title\">\n"
                   "<h2 id=\"summary-title\">What is this, and is anything wrong?</h2>\n<p><bdi>");
    tn_put_html(b, tn_report_file_name(r->file));
    tn_buf_printf(b, "</bdi>, %s", tn_file_format(r->file));
    if (r->o.against) {
        tn_buf_puts(b, ", compared with <bdi>");
        tn_put_html(b, tn_report_file_name(r->o.against));
        tn_buf_puts(b, "</bdi>");
    }
    tn_buf_puts(b, "</p>\n");
    put_facts(r, b);
    put_warnings(r, b);
    put_marked(r, b);
    tn_buf_puts(b, "<div class=\"lists\">\n");
    put_element_types(r, b);
    put_types(r, b);
    tn_buf_puts(b, "</div>\n");
    put_worst_lists(r, b);
    tn_buf_puts(b, "</section>\n");
}
