/* cli/ui/report_view.c - a report in the terminal. */
#include "ui/report_view.h"
#include "ui/histogram.h"
#include "ui/rating.h"
#include "ui/say.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    WIDTH = 80, NARROWEST = 40,
    LABEL = 20,                 /* of a role, at least, where roles are long */
    BESIDE = 12,                /* a space, and "  N marked" */
    LIST = 20,
    LONGEST = 200,              /* characters of a name that is cut */
    BESIDE_MARKED = 38, BESIDE_WORST = 50, BESIDE_CHANGED = 44      /* columns beside the name of a row */
};

static size_t terminal_width(void)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= NARROWEST;
    return known ? size.ws_col : WIDTH;
}

/* ---- the matrix ---- */

/* Layers are columns; where there are more than fit, several share one. */
typedef struct matrix {
    const tn_report *report;
    int64_t *layers;            /* that exist, in order */
    size_t   nlayers, ncolumns;
    size_t   label;             /* width of a role */
    double  *cells;             /* oddity, role by role; negative: no tensor */
} matrix;

static int by_number(const void *x, const void *y)
{
    const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

static void find_layers(matrix *m)
{
    const tn_report_tensor *t;
    size_t n = 0, kept = 0;
    m->layers = must_allocate(tn_report_sums(m->report)->tensors + 1, sizeof *m->layers);
    for (size_t i = 0; (t = tn_report_tensor_at(m->report, i)); i++)
        if (t->layer >= 0)
            m->layers[n++] = t->layer;
    qsort(m->layers, n, sizeof *m->layers, by_number);
    for (size_t i = 0; i < n; i++)
        if (!i || m->layers[i] != m->layers[i - 1])
            m->layers[kept++] = m->layers[i];
    m->nlayers = kept;
}

static size_t column_of(const matrix *m, int64_t layer)
{
    size_t low = 0, high = m->nlayers;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (m->layers[middle] <= layer)
            low = middle;
        else
            high = middle;
    }
    return low * m->ncolumns / m->nlayers;
}

static void fill_cells(matrix *m)
{
    const tn_report_tensor *t;
    size_t n = tn_report_sums(m->report)->roles * m->ncolumns;
    m->cells = must_allocate(n, sizeof *m->cells);
    for (size_t i = 0; i < n; i++)
        m->cells[i] = -1;
    for (size_t i = 0; (t = tn_report_tensor_at(m->report, i)); i++) {
        if (t->layer < 0)
            continue;
        double *cell = &m->cells[t->role * m->ncolumns + column_of(m, t->layer)];
        *cell = t->oddity > *cell ? t->oddity : *cell;
    }
}

/* How odd a cell is, in four steps; the last one is marked. */
static int level_of(double oddity)
{
    if (oddity >= 8)
        return 3;
    return (oddity >= 2) + (oddity >= 4);
}

/* A mark that does not need colour; on a terminal it has a background too. */
static void out_cell(double oddity)
{
    static const char marks[] = ".:o#";
    static const char *const colours[] = { "", "\033[48;5;24m\033[97m", "\033[48;5;130m\033[97m",
                                           "\033[48;5;208m\033[30m\033[1m" };
    bool coloured = *style_on_stdout(STYLE_PLAIN);
    int level = level_of(oddity);
    if (oddity < 0)
        out_text(" ");
    else if (coloured && level)
        out("%s%c%s", colours[level], marks[level], style_on_stdout(STYLE_PLAIN));
    else
        out("%c", marks[level]);
}

/* A role, cut in its middle: its end says most. */
static void out_label(const char *role, size_t width)
{
    const char *text = escaped(role);
    size_t n = strlen(text);
    if (n <= width) {
        out("%-*s ", (int)width, text);
        return;
    }
    const char *tail = text + n - (width - 3);
    while (((unsigned char)*tail & 0xc0) == 0x80)
        tail++;
    out("...%-*s ", (int)width - 3, tail);
}

static void out_matrix_rows(const matrix *m)
{
    const tn_report_role *role;
    out("%-*s layer %lld", (int)m->label, "role", (long long)m->layers[0]);
    if (m->nlayers > 1)
        out(" to %lld, %s", (long long)m->layers[m->nlayers - 1],
            m->ncolumns == m->nlayers ? "one character each" : "several layers a character");
    out_text("\n");
    for (size_t i = 0; (role = tn_report_role_at(m->report, i)); i++) {
        const double *cells = m->cells + i * m->ncolumns;
        size_t used = 0;
        for (size_t k = 0; k < m->ncolumns; k++)
            used += cells[k] >= 0;
        if (used < 2)
            continue;
        out_label(role->pattern, m->label);
        for (size_t k = 0; k < m->ncolumns; k++)
            out_cell(cells[k]);
        if (role->marked)
            out("  %s marked", grouped(role->marked).s);
        out_text("\n");
    }
}

static size_t longest_role(const tn_report *r, size_t most)
{
    const tn_report_role *role;
    size_t n = 4;
    for (size_t i = 0; (role = tn_report_role_at(r, i)); i++) {
        size_t length = strlen(role->pattern);
        n = length > n ? length : n;
    }
    return n < most ? n : most;
}

static void out_matrix(const tn_report *r)
{
    matrix m = { .report = r };
    size_t width = terminal_width();
    find_layers(&m);
    if (m.nlayers > 1) {
        bool fits = m.nlayers + LABEL + BESIDE <= width;
        m.label = longest_role(r, fits ? width - BESIDE - m.nlayers : LABEL);
        m.ncolumns = width - m.label - BESIDE;
        m.ncolumns = m.nlayers < m.ncolumns ? m.nlayers : m.ncolumns;
        fill_cells(&m);
        out_text("\nWhich tensors are unlike the others of their role?\n"
                 "Median deviations of the oddest figure: . under 2, : under 4, o under 8, # odd\n");
        out_matrix_rows(&m);
    }
    free(m.layers);
    free(m.cells);
}

/* ---- lists ---- */

static void number_cell(table *t, double x)
{
    char text[40];
    snprintf(text, sizeof text, "%.5g", x);
    table_cell(t, text);
}

/* On a terminal names are cut at their front, so that a row fits beside what else it has. */
static void name_cell(table *t, const char *name, size_t beside)
{
    char cut[LONGEST + 8];
    size_t width = terminal_width(), n = strlen(name);
    size_t room = width > beside + LABEL ? width - beside : LABEL;
    room = room < LONGEST ? room : LONGEST;
    if (n <= room || !isatty(STDOUT_FILENO)) {
        table_name(t, name);
        return;
    }
    const char *tail = name + n - (room - 3);
    while (((unsigned char)*tail & 0xc0) == 0x80)
        tail++;
    snprintf(cut, sizeof cut, "...%s", tail);
    table_name(t, cut);
}

/* What the oddest figure of a tensor is. */
static void odd_value_cell(table *rows, const tn_report *r, const tn_report_tensor *t)
{
    const tn_statistics *s = &t->statistics;
    const char *figure = t->odd_figure;
    const struct { const char *figure; double value; } numbers[] = {
        { "std", s->deviation }, { "absmax", s->absmax }, { "peak", s->absmax / s->deviation },
        { "mean", s->mean }, { "NaN", (double)s->nans }, { "infinity", (double)s->infinities },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(figure, numbers[i].figure) == 0) {
            number_cell(rows, numbers[i].value);
            return;
        }
    const char *type = strrchr(figure, ' ');        /* "SQNR as mxfp4" */
    for (size_t i = 0; type && i < tn_report_sums(r)->types; i++)
        if (strcmp(type + 1, tn_report_type_at(r, i)->text) == 0) {
            table_cell(rows, sqnr_text(t->ratings[i].sqnr).s);
            return;
        }
    uint64_t n = strcmp(figure, "zeros") == 0 ? s->zeros : s->subnormals;
    table_cell(rows, percent(n, s->count).s);
}

static void out_marked(const tn_report *r)
{
    static const char *const headings[] = { "odd tensor", "figure", "deviations", "value", NULL };
    const tn_report_tensor *t;
    table rows;
    size_t left = LIST;
    if (!tn_report_sums(r)->marked)
        return;
    out_text("\n");
    table_begin(&rows, headings, 0xc);
    for (size_t i = 0; left && (t = tn_report_tensor_at(r, i)); i++) {
        const tn_statistics *s = &t->statistics;
        if (!t->marked)
            continue;
        left--;
        name_cell(&rows, t->tensor->name, BESIDE_MARKED);
        table_cell(&rows, t->odd_figure);
        if (s->nans || s->infinities)
            table_cell(&rows, "-");
        else
            number_cell(&rows, floor(t->oddity * 10) / 10);
        odd_value_cell(&rows, r, t);
        table_note(&rows, "%s", histogram(s).s);
    }
    table_end(&rows);
    if (tn_report_sums(r)->marked > LIST)
        out("and %s more\n", grouped(tn_report_sums(r)->marked - LIST).s);
}

static void out_types(const tn_report *r)
{
    static const char *const headings[] = { "type", "bits", "SQNR", "tensors", "worst tensor", "its SQNR",
                                            NULL };
    const tn_report_type *type;
    table rows;
    if (!tn_report_sums(r)->types)
        return;
    out_text("\nWhat would a smaller type cost?\n");
    table_begin(&rows, headings, 0x2e);
    for (size_t i = 0; (type = tn_report_type_at(r, i)); i++) {
        const tn_report_tensor *worst = tn_report_tensor_at(r, type->worst);
        table_name(&rows, type->text);
        table_cell(&rows, bits_text(type->bits).s);
        table_cell(&rows, type->tensors ? sqnr_text(type->sqnr).s : "-");
        table_number(&rows, type->tensors);
        name_cell(&rows, worst ? worst->tensor->name : "-", BESIDE_WORST);
        table_cell(&rows, worst ? sqnr_text(worst->ratings[i].sqnr).s : "-");
    }
    table_end(&rows);
}

static void out_change(table *rows, const tn_report_tensor *t)
{
    const tn_difference *d = t->difference;
    bool values = d->what & TN_DIFF_VALUES;
    name_cell(rows, t->tensor->name, BESIDE_CHANGED);
    if (d->what & TN_DIFF_ONLY_A)
        table_cell(rows, "only here");
    else if (d->what & TN_DIFF_UNREAD)
        table_cell(rows, "not compared");
    else
        table_cell(rows, values ? "values" : "description");
    table_cell(rows, values ? percent(d->differing, d->elements).s : "-");
    if (values)
        number_cell(rows, d->max_abs);
    else
        table_cell(rows, "-");
    table_cell(rows, values && !isnan(d->sqnr) ? sqnr_text(d->sqnr).s : "-");
}

static void out_changes(const char *against, const tn_report *r)
{
    static const char *const headings[] = { "changed tensor", "what", "of its values", "max abs", "SQNR",
                                            NULL };
    const tn_report_totals *all = tn_report_sums(r);
    const tn_report_tensor *t;
    table rows;
    size_t left = LIST;
    if (!against)
        return;
    out("\nWhat is different from %s?\n%s changed, %s only here, %s only there\n", escaped(against),
        grouped(all->changed).s, grouped(all->only_here).s, grouped(all->only_there).s);
    table_begin(&rows, headings, 0x1c);
    for (size_t i = 0; left && (t = tn_report_tensor_at(r, i)); i++) {
        if (!t->difference)
            continue;
        left--;
        out_change(&rows, t);
    }
    if (left < LIST)
        table_end(&rows);
    else
        table_drop(&rows);
}

void out_report(const char *path, const char *against, const tn_report *r)
{
    const tn_report_totals *all = tn_report_sums(r);
    const tn_statistics *s = &all->statistics;
    out("%s: %s, %s, %s", escaped(path), counted(all->tensors, "tensor").s, counted(s->count, "value").s,
        human_size(all->nbytes).s);
    out("; %s marked, %s NaN, %s infinite", grouped(all->marked).s, grouped(s->nans).s,
        grouped(s->infinities).s);
    out(", %s all zero, %s constant, %s not read\n", grouped(all->dead).s, grouped(all->constant).s,
        grouped(all->unread).s);
    if (*histogram(s).s)
        out("    %s\n", histogram(s).s);
    out_matrix(r);
    out_marked(r);
    out_types(r);
    out_changes(against, r);
}
