/* report/data.c - a report as JSON: docs/json/report.schema.json. */
#include "report/report.h"
#include "base/text.h"
#include "bytes/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 5 };

/* What the data has: tensors and roles by their numbers. */
typedef struct listing {
    const tn_report *r;
    tn_buf          *b;
    bool            *tensors, *roles;
    size_t          *number;    /* of a role, in the data */
    size_t          *place;     /* of a tensor, in the data */
    size_t           ntensors, nroles;
} listing;

/* ---- members ---- */

static void put_count(tn_buf *b, const char *key, uint64_t n)
{
    tn_json_put_key(b, key);
    tn_buf_printf(b, "%llu", (unsigned long long)n);
}

static void put_figure(tn_buf *b, const char *key, double x)
{
    tn_json_put_key(b, key);
    tn_put_number(b, x, DIGITS);
}

static void put_text(tn_buf *b, const char *key, const char *text)
{
    tn_json_put_key(b, key);
    if (text)
        tn_put_json_text(b, text, 4 * TN_REPORT_NAME);
    else
        tn_buf_puts(b, "null");
}

static void put_name(tn_buf *b, const char *key, const char *name)
{
    tn_json_put_key(b, key);
    if (!tn_put_json_text(b, name, TN_REPORT_NAME))
        put_count(b, "name_bytes", strlen(name));
}

static void open_list(tn_buf *b, const char *key)
{
    tn_json_put_key(b, key);
    tn_buf_putc(b, '[');
}

static void open_item(tn_buf *b)
{
    tn_json_put_comma(b);
    tn_buf_putc(b, '{');
}

/* ---- the file ---- */

static void put_warnings(const tn_report *r, tn_buf *b)
{
    const char *text;
    open_list(b, "warnings");
    for (size_t i = 0; (text = tn_file_warning(r->file, i)) && i < TN_REPORT_WORST; i++) {
        tn_json_put_comma(b);
        tn_put_json_text(b, text, 4 * TN_REPORT_NAME);
    }
    tn_buf_putc(b, ']');
}

static void put_summary(const tn_report *r, tn_buf *b)
{
    const tn_report_totals *all = &r->totals;
    const tn_statistics *s = &all->statistics;
    tn_json_put_key(b, "summary");
    tn_buf_putc(b, '{');
    put_count(b, "tensors", all->tensors);
    put_count(b, "values", s->count);
    put_count(b, "bytes", all->nbytes);
    put_count(b, "files", tn_file_shards(r->file));
    put_count(b, "marked", all->marked);
    put_count(b, "unread", all->unread);
    put_count(b, "nans", s->nans);
    put_count(b, "infinities", s->infinities);
    put_count(b, "zeros", s->zeros);
    put_count(b, "subnormals", s->subnormals);
    put_count(b, "dead", all->dead);
    put_count(b, "constant", all->constant);
    put_figure(b, "absmax", s->absmax);
    put_warnings(r, b);
    tn_buf_putc(b, '}');
}

static void put_figures(tn_buf *b)
{
    put_figure(b, "mark_limit", tn_mark_limit);
    put_figure(b, "sqnr_floor", tn_sqnr_floor);
    open_list(b, "figures");
    for (size_t i = 0; i < TN_FIGURES; i++) {
        const tn_figure *f = &tn_figures[i];
        open_item(b);
        put_text(b, "figure", f->key);
        put_text(b, "title", f->title);
        tn_json_put_key(b, "log");
        tn_buf_puts(b, f->is_log ? "true" : "false");
        tn_json_put_key(b, "share");
        tn_buf_puts(b, f->is_share ? "true" : "false");
        put_figure(b, "floor", f->floor);
        tn_buf_putc(b, '}');
    }
    tn_buf_putc(b, ']');
}

/* The largest and the smallest magnitude of float types, for the strip of histograms. */
static void put_ranges(tn_buf *b)
{
    static const tn_dtype types[] = { TN_BFLOAT16, TN_FLOAT16, TN_FLOAT8_E5M2, TN_FLOAT8_E4M3FN,
                                      TN_FLOAT6_E3M2, TN_FLOAT6_E2M3, TN_FLOAT4_E2M1 };
    open_list(b, "ranges");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const tn_dtype_info *type = tn_dtype_get(types[i]);
        double most = 0, least = (double)INFINITY;
        for (uint32_t code = 0; code < 1u << type->bits; code++) {
            const uint16_t bits = (uint16_t)code;
            double x = fabs(tn_value_get(types[i], &bits, 0).re);
            most = isfinite(x) && x > most ? x : most;
            least = x > 0 && x < least ? x : least;
        }
        open_item(b);
        put_text(b, "type", type->name);
        put_figure(b, "largest", most);
        put_figure(b, "smallest", least);
        tn_buf_putc(b, '}');
    }
    tn_buf_putc(b, ']');
}

static void put_types(const tn_report *r, tn_buf *b)
{
    open_list(b, "types");
    for (size_t i = 0; i < r->o.ntypes; i++) {
        const tn_report_type *t = &r->types[i];
        open_item(b);
        put_text(b, "type", t->text);
        put_text(b, "datatype", t->datatype);
        put_figure(b, "bits", t->bits);
        put_figure(b, "sqnr", t->sqnr);
        put_count(b, "tensors", t->tensors);
        tn_json_put_key(b, "worst");
        if (t->worst == SIZE_MAX)
            tn_buf_puts(b, "null");
        else
            tn_put_json_text(b, r->tensors[t->worst].tensor->name, TN_REPORT_NAME);
        tn_buf_putc(b, '}');
    }
    tn_buf_putc(b, ']');
}

/* ---- tensors ---- */

static void put_roles(const listing *l)
{
    open_list(l->b, "roles");
    for (size_t i = 0; i < l->r->totals.roles; i++) {
        const tn_report_role *role = &l->r->roles[i];
        if (!l->roles[i])
            continue;
        open_item(l->b);
        put_name(l->b, "role", role->pattern);
        put_count(l->b, "tensors", role->tensors);
        put_count(l->b, "marked", role->marked);
        put_count(l->b, "values", role->values);
        put_count(l->b, "bytes", role->nbytes);
        tn_buf_putc(l->b, '}');
    }
    tn_buf_putc(l->b, ']');
}

/* The exponent of the first bin that is not empty, and log2 of the counts from there on; -1: an empty one. */
static void put_histogram(tn_buf *b, const tn_statistics *s)
{
    int first = 0, last = TN_STATS_BINS - 1;
    while (first < TN_STATS_BINS && !s->histogram[first])
        first++;
    while (last > first && !s->histogram[last])
        last--;
    if (first == TN_STATS_BINS)
        return;
    tn_json_put_key(b, "first");
    tn_buf_put_int(b, first + TN_STATS_LOW);
    open_list(b, "histogram");
    for (int k = first; k <= last; k++) {
        tn_json_put_comma(b);
        double tenths = s->histogram[k] ? floor(10 * log2((double)s->histogram[k]) + 0.5) / 10 : -1;
        tn_put_number(b, tenths, 4);
    }
    tn_buf_putc(b, ']');
}

static void put_ratings(tn_buf *b, const tn_report_rating *ratings, size_t n)
{
    open_list(b, "types");
    for (size_t i = 0; i < n; i++) {
        tn_json_put_comma(b);
        if (!ratings[i].fits) {
            tn_buf_puts(b, "null");
            continue;
        }
        tn_buf_putc(b, '[');
        tn_put_number(b, ratings[i].sqnr, 6);
        tn_buf_printf(b, ",%llu]", (unsigned long long)ratings[i].nbytes);
    }
    tn_buf_putc(b, ']');
}

static void put_statistics(tn_buf *b, const tn_statistics *s)
{
    put_figure(b, "min", s->min);
    put_figure(b, "max", s->max);
    put_figure(b, "mean", s->mean);
    put_figure(b, "std", s->deviation);
    put_count(b, "zeros", s->zeros);
    if (s->subnormals)
        put_count(b, "subnormals", s->subnormals);
    if (s->nans)
        put_count(b, "nans", s->nans);
    if (s->infinities)
        put_count(b, "infinities", s->infinities);
    put_histogram(b, s);
}

static const struct { unsigned bit; const char *word; } changes[] = {
    { TN_DIFF_ONLY_A, "only_here" }, { TN_DIFF_FORM, "form" },     { TN_DIFF_DTYPE, "dtype" },
    { TN_DIFF_SHAPE, "shape" },      { TN_DIFF_META, "metadata" }, { TN_DIFF_VALUES, "values" },
    { TN_DIFF_UNREAD, "unread" },    { TN_DIFF_LAYOUT, "layout" },
};

static void put_difference(tn_buf *b, const tn_difference *d)
{
    tn_json_put_key(b, "difference");
    tn_buf_putc(b, '{');
    open_list(b, "what");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (!(d->what & changes[i].bit))
            continue;
        tn_json_put_comma(b);
        tn_json_put_z(b, changes[i].word);
    }
    tn_buf_putc(b, ']');
    if (d->what & TN_DIFF_VALUES) {
        put_count(b, "elements", d->elements);
        put_count(b, "differing", d->differing);
        put_figure(b, "max_abs", d->max_abs);
        put_figure(b, "sqnr", d->sqnr);
    }
    if (d->what & TN_DIFF_UNREAD)
        put_text(b, "why", d->why);
    tn_buf_putc(b, '}');
}

static void put_tensor(const listing *l, const tn_report_tensor *t)
{
    tn_buf *b = l->b;
    open_item(b);
    put_name(b, "name", t->tensor->name);
    put_count(b, "role", l->number[t->role]);
    if (t->layer >= 0)
        put_count(b, "layer", (uint64_t)t->layer);
    put_text(b, "type", tn_report_type_name(t->tensor));
    if (t->tensor->form != TN_FORM_DENSE)
        put_text(b, "form", tn_tensor_form_name(t->tensor));
    tn_json_put_key(b, "shape");
    tn_json_put_shape(b, t->tensor->rank, t->tensor->shape);
    put_count(b, "values", t->values);
    put_count(b, "bytes", t->nbytes);
    if (t->why)
        put_text(b, "error", t->why);
    else
        put_statistics(b, &t->statistics);
    if (*t->odd_figure) {
        put_figure(b, "oddity", t->oddity);
        put_text(b, "odd", t->odd_figure);
    }
    if (t->marked) {
        tn_json_put_key(b, "marked");
        tn_buf_puts(b, "true");
    }
    if (l->r->o.ntypes)
        put_ratings(b, t->ratings, l->r->o.ntypes);
    if (t->difference)
        put_difference(b, t->difference);
    tn_buf_putc(b, '}');
}

static void put_tensors(const listing *l)
{
    put_count(l->b, "left_out", l->r->totals.tensors - l->ntensors);
    open_list(l->b, "tensors");
    for (size_t i = 0; i < l->r->totals.tensors; i++)
        if (l->tensors[i])
            put_tensor(l, &l->r->tensors[i]);
    tn_buf_putc(l->b, ']');
}

/* ---- cells: where tensors are left out ---- */

typedef struct cell {
    size_t  role, tensor;
    int64_t layer;
} cell;

static int by_cell(const void *x, const void *y)
{
    const cell *a = x, *b = y;
    if (a->role != b->role)
        return a->role < b->role ? -1 : 1;
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* The median of each figure, then of the SQNR of each type. */
static void put_medians(const listing *l, const cell *cells, size_t n, double *room)
{
    open_list(l->b, "medians");
    for (size_t figure = 0; figure < TN_FIGURES + l->r->o.ntypes; figure++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
            double x = tn_figure_of(&l->r->tensors[cells[i].tensor], figure);
            if (!isnan(x))
                room[count++] = x;
        }
        tn_json_put_comma(l->b);
        if (count)
            tn_put_number(l->b, tn_median(room, count), DIGITS);
        else
            tn_buf_puts(l->b, "null");
    }
    tn_buf_putc(l->b, ']');
}

static void put_cell(const listing *l, const cell *cells, size_t n, double *room)
{
    const tn_report_tensor *oddest = &l->r->tensors[cells[0].tensor];
    size_t marked = 0;
    for (size_t i = 0; i < n; i++) {
        const tn_report_tensor *t = &l->r->tensors[cells[i].tensor];
        oddest = t->oddity > oddest->oddity ? t : oddest;
        marked += t->marked;
    }
    open_item(l->b);
    put_count(l->b, "role", l->number[cells[0].role]);
    if (cells[0].layer >= 0)
        put_count(l->b, "layer", (uint64_t)cells[0].layer);
    put_count(l->b, "tensors", n);
    put_count(l->b, "marked", marked);
    put_figure(l->b, "oddity", oddest->oddity);
    put_text(l->b, "odd", oddest->odd_figure);
    put_medians(l, cells, n, room);
    tn_buf_putc(l->b, '}');
}

static void put_cells(const listing *l)
{
    size_t n = l->r->totals.tensors, put = 0;
    cell *cells = calloc(n + 1, sizeof *cells);
    double *room = calloc(n + 1, sizeof *room);
    l->b->bad |= !cells || !room;
    for (size_t i = 0; i < n && !l->b->bad; i++)
        cells[i] = (cell){ l->r->tensors[i].role, i, l->r->tensors[i].layer };
    open_list(l->b, "cells");
    if (!l->b->bad)
        qsort(cells, n, sizeof *cells, by_cell);
    for (size_t i = 0, end; i < n && put < TN_REPORT_CELLS && !l->b->bad; i = end) {
        for (end = i + 1; end < n && cells[end].role == cells[i].role && cells[end].layer == cells[i].layer;)
            end++;
        if (!l->roles[cells[i].role])
            continue;
        put_cell(l, cells + i, end - i, room);
        put++;
    }
    tn_buf_putc(l->b, ']');
    free(cells);
    free(room);
}

/* ---- pictures ---- */

static double mean_of(const tn_grid *g, size_t i)
{
    return g->finite[i] ? g->sum[i] / (double)g->finite[i] : 0;
}

/* Bytes of all blocks, row after row: 128 + 127 * mean / limit. */
static void put_means(tn_buf *b, const tn_picture *p)
{
    uint8_t bytes[TN_GRID * TN_GRID];
    double limit = 0;
    size_t n = 0;
    for (uint32_t y = 0; y < p->rows; y++)
        for (uint32_t x = 0; x < p->columns; x++)
            limit = fmax(limit, fabs(mean_of(p->grid, y * TN_GRID + x)));
    for (uint32_t y = 0; y < p->rows; y++)
        for (uint32_t x = 0; x < p->columns; x++) {
            double mean = mean_of(p->grid, y * TN_GRID + x);
            bytes[n++] = (uint8_t)(128 + (limit > 0 ? lrint(127 * (mean / limit)) : 0));
        }
    put_figure(b, "mean_limit", limit);
    tn_json_put_key(b, "means");
    tn_buf_putc(b, '"');
    tn_put_base64(b, bytes, n);
    tn_buf_putc(b, '"');
}

/* 0: all values are 0; else 1 + 254 * (log2 absmax - low) / (high - low). */
static void put_extremes(tn_buf *b, const tn_picture *p)
{
    uint8_t bytes[TN_GRID * TN_GRID];
    double low = (double)INFINITY, high = -(double)INFINITY;
    size_t n = 0;
    for (uint32_t y = 0; y < p->rows; y++)
        for (uint32_t x = 0; x < p->columns; x++) {
            double most = log2((double)p->grid->absmax[y * TN_GRID + x]);
            low = most < low && isfinite(most) ? most : low;
            high = fmax(high, most);
        }
    for (uint32_t y = 0; y < p->rows; y++)
        for (uint32_t x = 0; x < p->columns; x++) {
            double most = log2((double)p->grid->absmax[y * TN_GRID + x]);
            double part = high > low ? (most - low) / (high - low) : 1;
            bytes[n++] = (uint8_t)(isfinite(most) ? 1 + lrint(254 * part) : 0);
        }
    put_figure(b, "absmax_low", isfinite(low) ? low : 0);
    put_figure(b, "absmax_high", isfinite(high) ? high : 0);
    tn_json_put_key(b, "absmaxes");
    tn_buf_putc(b, '"');
    tn_put_base64(b, bytes, n);
    tn_buf_putc(b, '"');
}

/* The root mean square of the rows of blocks, or of their columns. */
static void put_norms(tn_buf *b, const tn_picture *p, bool of_rows)
{
    uint32_t n = of_rows ? p->rows : p->columns, m = of_rows ? p->columns : p->rows;
    open_list(b, of_rows ? "row_rms" : "column_rms");
    for (uint32_t i = 0; i < n; i++) {
        double squares = 0, finite = 0;
        for (uint32_t k = 0; k < m; k++) {
            size_t block = of_rows ? i * TN_GRID + k : k * TN_GRID + i;
            squares += p->grid->squares[block];
            finite += (double)p->grid->finite[block];
        }
        tn_json_put_comma(b);
        tn_put_number(b, finite > 0 ? sqrt(squares / finite) : 0, 3);
    }
    tn_buf_putc(b, ']');
}

static void put_pictures(const listing *l)
{
    tn_buf *b = l->b;
    open_list(b, "pictures");
    for (size_t i = 0; i < l->r->npictures; i++) {
        const tn_picture *p = &l->r->pictures[i];
        if (!p->grid)
            continue;
        open_item(b);
        put_count(b, "tensor", l->place[p->tensor]);
        put_count(b, "height", p->height);
        put_count(b, "width", p->width);
        put_count(b, "rows", p->rows);
        put_count(b, "columns", p->columns);
        put_means(b, p);
        put_extremes(b, p);
        put_norms(b, p, true);
        put_norms(b, p, false);
        tn_buf_putc(b, '}');
    }
    tn_buf_putc(b, ']');
}

/* ---- the whole ---- */

static void put_against(const tn_report *r, tn_buf *b)
{
    tn_json_put_key(b, "difference");
    if (!r->o.against) {
        tn_buf_puts(b, "null");
        return;
    }
    tn_buf_putc(b, '{');
    put_text(b, "against", tn_report_file_name(r->o.against));
    tn_json_put_key(b, "metadata");
    tn_buf_puts(b, r->metadata_differs ? "true" : "false");
    put_count(b, "changed", r->totals.changed);
    put_count(b, "only_here", r->totals.only_here);
    put_count(b, "only_there", r->totals.only_there);
    open_list(b, "names_only_there");
    for (size_t i = 0; i < r->totals.only_there && i < TN_REPORT_LISTED; i++) {
        tn_json_put_comma(b);
        tn_put_json_text(b, r->only_there[i]->name, TN_REPORT_NAME);
    }
    tn_buf_puts(b, "]}");
}

/* The most noticeable tensors and their roles, then other roles. */
static void choose_listed(listing *l)
{
    const tn_report *r = l->r;
    for (size_t i = 0; i < r->totals.tensors && l->ntensors < TN_REPORT_LISTED; i++) {
        size_t tensor = r->order[i], role = r->tensors[tensor].role;
        l->tensors[tensor] = true;
        l->ntensors++;
        l->nroles += !l->roles[role];
        l->roles[role] = true;
    }
    for (size_t i = 0; i < r->totals.roles && l->nroles < TN_REPORT_LISTED; i++) {
        l->nroles += !l->roles[i];
        l->roles[i] = true;
    }
    for (size_t i = 0, n = 0; i < r->totals.roles; i++)
        l->number[i] = l->roles[i] ? n++ : 0;
    for (size_t i = 0, n = 0; i < r->totals.tensors; i++)
        l->place[i] = l->tensors[i] ? n++ : 0;
}

static void put_all(const listing *l)
{
    const tn_report *r = l->r;
    tn_buf *b = l->b;
    tn_buf_putc(b, '{');
    put_count(b, "report", 1);
    put_text(b, "file", tn_report_file_name(r->file));
    put_text(b, "format", tn_file_format(r->file));
    put_text(b, "stamp", r->o.stamp);
    put_summary(r, b);
    put_figures(b);
    put_ranges(b);
    put_types(r, b);
    put_against(r, b);
    put_roles(l);
    put_tensors(l);
    if (l->ntensors < r->totals.tensors)
        put_cells(l);
    put_pictures(l);
    tn_buf_putc(b, '}');
}

void tn_report_put_data(const tn_report *r, tn_buf *b)
{
    listing l = { .r = r, .b = b };
    l.tensors = calloc(r->totals.tensors + 1, sizeof *l.tensors);
    l.place = calloc(r->totals.tensors + 1, sizeof *l.place);
    l.roles = calloc(r->totals.roles + 1, sizeof *l.roles);
    l.number = calloc(r->totals.roles + 1, sizeof *l.number);
    b->bad |= !l.tensors || !l.place || !l.roles || !l.number;
    if (!b->bad) {
        choose_listed(&l);
        put_all(&l);
    }
    free(l.tensors);
    free(l.place);
    free(l.roles);
    free(l.number);
}
