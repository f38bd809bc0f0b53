/* report/marks.c - which tensors are unlike the others of their role.
 *
 * Each figure of a tensor is compared with the median of those of its role and shape, in median deviations.
 * A deviation is at least `floor`: where all tensors are nearly equal, small differences mean nothing.
 * Tensors with few values vary by chance, so theirs is larger. */
#include "report/report.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const tn_figure tn_figures[TN_FIGURES] = {
    { "std", "standard deviation", .is_log = true, .floor = 0.35 },
    { "absmax", "largest magnitude", .is_log = true, .floor = 0.35 },
    { "peak", "absmax / std", .is_log = true, .floor = 0.35 },
    { "mean", "mean", .floor = 0.1 },           /* compared in root mean squares of its tensor */
    { "zeros", "zeros", .is_share = true, .floor = 0.01 },
    { "subnormals", "subnormal values", .is_share = true, .floor = 0.01 },
};
const double tn_sqnr_floor = 1, tn_mark_limit = 8;

enum {
    LIKE = 5,                   /* tensors that are alike, at least, to be compared */
    VALUES = 16                 /* finite values that a tensor has at least */
};
#define MOST 999.0

static double share(uint64_t n, uint64_t of) { return of ? (double)n / (double)of : (double)NAN; }

double tn_figure_of(const tn_report_tensor *t, size_t figure)
{
    const tn_statistics *s = &t->statistics;
    if (figure >= TN_FIGURES) {
        const tn_report_rating *rating = t->ratings ? &t->ratings[figure - TN_FIGURES] : NULL;
        return rating && rating->fits ? rating->sqnr : (double)NAN;
    }
    switch (figure) {
    case 0:  return s->deviation;
    case 1:  return s->absmax;
    case 2:  return s->deviation > 0 ? s->absmax / s->deviation : (double)NAN;
    case 3:  return s->mean;
    case 4:  return share(s->zeros, s->count);
    default: return share(s->subnormals, s->count);
    }
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double tn_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    if (n % 2)
        return values[n / 2];
    double low = values[n / 2 - 1], high = values[n / 2];
    return low == high ? low : low / 2 + high / 2;
}

/* ---- one figure of one role ---- */

/* Tensors of a role and a shape, and room for a number of each. */
typedef struct alike {
    tn_report *report;
    const size_t *members;
    size_t  n;
    double *numbers, *sorted;
} alike;

static bool is_compared(const tn_report_tensor *t)
{
    return !t->why && t->statistics.finite >= VALUES;
}

static double rms(const tn_statistics *s) { return hypot(s->mean, s->deviation); }

/* A mean is compared in root mean squares, so that it does not matter how large the values are. */
static double compared_value(const tn_report_tensor *t, size_t figure)
{
    double x = tn_figure_of(t, figure);
    if (figure >= TN_FIGURES)
        return x;
    if (strcmp(tn_figures[figure].key, "mean") == 0)
        return x / rms(&t->statistics);
    return tn_figures[figure].is_log ? log2(x) : x;
}

/* The median of all numbers but NaN; *count tells of how many. */
static double median_of(const alike *a, bool of_magnitudes, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < a->n; i++)
        if (!isnan(a->numbers[i]))
            a->sorted[(*count)++] = of_magnitudes ? fabs(a->numbers[i]) : a->numbers[i];
    return *count ? tn_median(a->sorted, *count) : (double)NAN;
}

static void note_oddity(tn_report_tensor *t, double oddity, const char *figure)
{
    oddity = oddity < MOST ? oddity : MOST;
    if (!(oddity > t->oddity))
        return;
    t->oddity = oddity;
    t->odd_figure = figure;
}

static void compare_figure(const alike *a, size_t figure, const char *name)
{
    size_t count;
    for (size_t i = 0; i < a->n; i++) {
        const tn_report_tensor *t = &a->report->tensors[a->members[i]];
        a->numbers[i] = is_compared(t) ? compared_value(t, figure) : (double)NAN;
    }
    double middle = median_of(a, false, &count);
    double floor = figure < TN_FIGURES ? tn_figures[figure].floor : tn_sqnr_floor;
    if (count < LIKE || !isfinite(middle))
        return;
    for (size_t i = 0; i < a->n; i++)
        a->numbers[i] -= middle;
    double deviation = fmax(median_of(a, true, &count), floor);
    for (size_t i = 0; i < a->n; i++) {
        tn_report_tensor *t = &a->report->tensors[a->members[i]];
        double away = a->numbers[i];
        bool counts = figure < TN_FIGURES ? !isnan(away) : away < 0;
        double chance = 4 * floor / sqrt((double)t->statistics.finite + 1);
        if (counts)
            note_oddity(t, fabs(away) / (deviation + chance), name);
    }
}

/* ---- all ---- */

static tn_status compare_alike(const alike *a, tn_error *err)
{
    tn_report *r = a->report;
    for (size_t figure = 0; figure < TN_FIGURES; figure++)
        compare_figure(a, figure, tn_figures[figure].key);
    for (size_t i = 0; i < r->o.ntypes; i++) {
        const char *name = tn_arena_printf(&r->arena, "SQNR as %s", r->types[i].text);
        TN_NEED(name, err);
        compare_figure(a, TN_FIGURES + i, name);
    }
    return TN_OK;
}

static int by_shape(const tn_tensor *a, const tn_tensor *b)
{
    int order = (a->rank > b->rank) - (a->rank < b->rank);
    for (uint32_t i = 0; i < a->rank && !order; i++)
        order = (a->shape[i] > b->shape[i]) - (a->shape[i] < b->shape[i]);
    return order;
}

static int by_role_and_shape(const void *x, const void *y)
{
    const tn_report_tensor *a = *(const tn_report_tensor *const *)x, *b = *(const tn_report_tensor *const *)y;
    int order = (a->role > b->role) - (a->role < b->role);
    order = order ? order : by_shape(a->tensor, b->tensor);
    return order ? order : (a > b) - (a < b);
}

/* Numbers of all tensors, those that are alike together. */
static bool sort_alike(tn_report *r, size_t *members)
{
    size_t n = r->totals.tensors;
    const tn_report_tensor **list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        list[i] = &r->tensors[i];
    if (list)
        qsort(list, n, sizeof *list, by_role_and_shape);
    for (size_t i = 0; list && i < n; i++)
        members[i] = (size_t)(list[i] - r->tensors);
    free(list);
    return list != NULL;
}

static bool are_alike(const tn_report_tensor *a, const tn_report_tensor *b)
{
    return a->role == b->role && by_shape(a->tensor, b->tensor) == 0;
}

static tn_status compare_all(tn_report *r, tn_error *err)
{
    size_t n = r->totals.tensors, *members = calloc(n + 1, sizeof *members);
    double *numbers = calloc(n + 1, sizeof *numbers), *sorted = calloc(n + 1, sizeof *sorted);
    bool fine = members && numbers && sorted && sort_alike(r, members);
    tn_status status = fine ? TN_OK : tn_fail_nomem(err);
    for (size_t i = 0, end; i < n && !status; i = end) {
        for (end = i + 1; end < n && are_alike(&r->tensors[members[i]], &r->tensors[members[end]]);)
            end++;
        const alike a = { r, members + i, end - i, numbers, sorted };
        if (a.n >= LIKE)
            status = compare_alike(&a, err);
    }
    free(members);
    free(numbers);
    free(sorted);
    return status;
}

static void add_tensor(tn_report *r, tn_report_tensor *t)
{
    const tn_statistics *s = &t->statistics;
    tn_report_totals *all = &r->totals;
    if (s->nans)
        note_oddity(t, MOST, "NaN");
    else if (s->infinities)
        note_oddity(t, MOST, "infinity");
    t->marked = t->oddity >= tn_mark_limit;
    r->roles[t->role].marked += t->marked;
    all->marked += t->marked;
    all->unread += t->why != NULL;
    all->dead += s->count && s->zeros == s->count;
    all->constant += s->count > 1 && s->finite == s->count && s->min >= s->max && s->zeros != s->count;
    if (!t->difference)
        return;
    bool is_alone = t->difference->what & TN_DIFF_ONLY_A;
    all->only_here += is_alone;
    all->changed += !is_alone;
}

static void add_type(tn_report *r, size_t type)
{
    tn_report_type *to = &r->types[type];
    double bits = 0, values = 0, signal = 0, noise = 0, least = (double)INFINITY;
    to->worst = SIZE_MAX;
    for (size_t i = 0; i < r->totals.tensors; i++) {
        const tn_report_tensor *t = &r->tensors[i];
        const tn_report_rating *rating = &t->ratings[type];
        if (!rating->fits)
            continue;
        double power = (double)t->values * rms(&t->statistics) * rms(&t->statistics);
        to->tensors++;
        bits += 8 * (double)rating->nbytes;
        values += (double)t->values;
        signal += power;
        noise += power / pow(10, rating->sqnr / 10);
        if (rating->sqnr < least || to->worst == SIZE_MAX) {
            least = rating->sqnr;
            to->worst = i;
        }
    }
    to->bits = values > 0 ? bits / values : 0;
    to->sqnr = to->tensors ? 10 * log10(signal / noise) : (double)NAN;
}

tn_status tn_report_mark(tn_report *r, tn_error *err)
{
    TN_TRY(compare_all(r, err));
    for (size_t i = 0; i < r->totals.tensors; i++)
        add_tensor(r, &r->tensors[i]);
    for (size_t i = 0; i < r->o.ntypes; i++)
        add_type(r, i);
    r->totals.types = r->o.ntypes;
    return TN_OK;
}

/* ---- the most noticeable ---- */

static int by_notice(const void *x, const void *y)
{
    const tn_report_tensor *a = *(const tn_report_tensor *const *)x, *b = *(const tn_report_tensor *const *)y;
    bool changed_a = a->difference != NULL, changed_b = b->difference != NULL;
    if (a->marked != b->marked)
        return a->marked ? -1 : 1;
    if (changed_a != changed_b)
        return changed_a ? -1 : 1;
    if (a->oddity > b->oddity || a->oddity < b->oddity)
        return a->oddity > b->oddity ? -1 : 1;
    if (a->nbytes != b->nbytes)
        return a->nbytes > b->nbytes ? -1 : 1;
    return a < b ? -1 : a > b;
}

tn_status tn_report_rank(tn_report *r, size_t **order, tn_error *err)
{
    size_t n = r->totals.tensors;
    const tn_report_tensor **list = calloc(n + 1, sizeof *list);
    *order = tn_arena_zalloc(&r->arena, n + 1, sizeof **order);
    tn_status status = list && *order ? TN_OK : tn_fail_nomem(err);
    for (size_t i = 0; i < n && !status; i++)
        list[i] = &r->tensors[i];
    if (!status)
        qsort(list, n, sizeof *list, by_notice);
    for (size_t i = 0; i < n && !status; i++)
        (*order)[i] = (size_t)(list[i] - r->tensors);
    free(list);
    return status;
}
