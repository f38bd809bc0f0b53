/* cli/ui/chosen.c - the tensors of a file that --only and --exclude choose, in the order of --sort. */
#include "ui/chosen.h"
#include "ui/text.h"

#include <stdlib.h>
#include <string.h>

typedef int (*order_fn)(const void *x, const void *y);

static const tn_tensor *at(const void *item) { return *(const tn_tensor *const *)item; }

/* As in the file: its tensors are one array. */
static int by_place(const void *x, const void *y) { return (at(x) > at(y)) - (at(x) < at(y)); }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Compares the numbers that two texts begin with, and moves behind them. */
static int compare_numbers(const char **a, const char **b)
{
    size_t m, n;
    while (**a == '0' && is_digit((*a)[1]))
        ++*a;
    while (**b == '0' && is_digit((*b)[1]))
        ++*b;
    m = strspn(*a, "0123456789");
    n = strspn(*b, "0123456789");
    int order = m == n ? memcmp(*a, *b, n) : (m > n) - (m < n);
    *a += m;
    *b += n;
    return order;
}

/* "a.b" before "a-b": what is below a name follows it. */
static int weight(char c) { return c == '.' ? 1 : (unsigned char)c; }

static int by_name(const void *x, const void *y)
{
    const char *a = at(x)->name, *b = at(y)->name;
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            int order = compare_numbers(&a, &b);
            if (order)
                return order;
        } else if (*a != *b) {
            break;
        } else {
            a++;
            b++;
        }
    }
    int order = *a && *b ? weight(*a) - weight(*b) : (*a != '\0') - (*b != '\0');
    return order ? order : by_place(x, y);
}

/* The largest first. */
static int by_size(const void *x, const void *y)
{
    uint64_t a = tensor_nbytes(at(x)), b = tensor_nbytes(at(y));
    return a != b ? (a < b) - (a > b) : by_place(x, y);
}

static int by_type(const void *x, const void *y)
{
    form_text a = tensor_type(at(x)), b = tensor_type(at(y));
    int order = strcmp(a.s, b.s);
    return order ? order : by_place(x, y);
}

/* Fewer dimensions first, then the extents from the first on. */
static int by_shape(const void *x, const void *y)
{
    const tn_tensor *a = at(x), *b = at(y);
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return a->shape[i] < b->shape[i] ? -1 : 1;
    return by_place(x, y);
}

void chosen_sort_names(chosen *c) { qsort(c->tensors, c->count, sizeof *c->tensors, by_name); }

tn_status chosen_make(chosen *c, const opts *o, const tn_file *file, tn_error *err)
{
    static const order_fn orders[] = { [SORT_NONE] = NULL, [SORT_NAME] = by_name, [SORT_SIZE] = by_size,
                                       [SORT_TYPE] = by_type, [SORT_SHAPE] = by_shape };
    size_t n = tn_file_count(file);
    const char **names = must_allocate(n, sizeof *names);
    bool *takes = must_allocate(n, sizeof *takes);
    *c = (chosen){ .tensors = must_allocate(n, sizeof *c->tensors) };
    for (size_t i = 0; i < n; i++)
        names[i] = tn_file_tensor(file, i)->name;
    tn_status status = tn_choose(names, n, o->only.items, o->only.count, takes, err);
    for (size_t i = 0; i < n && status == TN_OK; i++)
        if (takes[i])
            c->tensors[c->count++] = tn_file_tensor(file, i);
    free(names);
    free(takes);
    if (orders[o->sort])
        qsort(c->tensors, c->count, sizeof *c->tensors, orders[o->sort]);
    return status;
}

void chosen_free(chosen *c) { free(c->tensors); }
