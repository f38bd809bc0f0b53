/* report/roles.c - which tensors are alike: names without their numbers. */
#include "report/report.h"
#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DIGITS = 9 };

static bool separates(char c) { return c == '.' || c == '/' || c == ':' || c == '\0'; }

/* The digits at `at` that stand between separators; 0: there are none.  "_" separates before the first number
 * of a name ("layer_3") but not before others: "w_1" and "w_2" beside it are no layers. */
static size_t number_at(const char *name, size_t at, bool is_first)
{
    char before = at ? name[at - 1] : '\0';
    size_t n = 0;
    while (tn_is_digit(name[at + n]))
        n++;
    bool begins = separates(before) || (is_first && before == '_');
    bool ends = separates(name[at + n]) || (is_first && name[at + n] == '_');
    return begins && ends && n <= MAX_DIGITS ? n : 0;
}

int64_t tn_role_of(const char *name, char *role)
{
    int64_t layer = -1;
    size_t to = 0;
    for (size_t at = 0; name[at];) {
        size_t n = number_at(name, at, layer < 0);
        if (n && layer < 0)
            layer = strtol(name + at, NULL, 10);
        role[to++] = n ? '*' : name[at];
        at += n ? n : 1;
    }
    role[to] = '\0';
    return layer;
}

/* One tensor while they are sorted. */
typedef struct named {
    const char *role;
    size_t      tensor;
    size_t      first;          /* the first tensor of its role */
} named;

static int by_role(const void *x, const void *y)
{
    const named *a = x, *b = y;
    int order = strcmp(a->role, b->role);
    return order ? order : (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

/* Roles in the order in which the file has their first tensors. */
static int by_first(const void *x, const void *y)
{
    const named *a = x, *b = y;
    int order = (a->first > b->first) - (a->first < b->first);
    return order ? order : (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

static tn_status name_all(tn_report *r, named *list, tn_error *err)
{
    for (size_t i = 0; i < r->totals.tensors; i++) {
        const char *name = r->tensors[i].tensor->name;
        char *role = tn_arena_text(&r->arena, name, strlen(name));
        TN_NEED(role, err);
        r->tensors[i].layer = tn_role_of(name, role);
        list[i] = (named){ role, i, i };
    }
    return TN_OK;
}

static void add_to_role(tn_report_role *role, const char *pattern, const tn_report_tensor *t)
{
    role->pattern = pattern;
    role->tensors++;
    role->values += t->values;
    role->nbytes += t->nbytes;
}

tn_status tn_report_find_roles(tn_report *r, tn_error *err)
{
    size_t n = r->totals.tensors, role = 0;
    named *list = calloc(n + 1, sizeof *list);
    r->roles = tn_arena_zalloc(&r->arena, n + 1, sizeof *r->roles);
    tn_status status = list && r->roles ? name_all(r, list, err) : tn_fail_nomem(err);
    if (!status && n) {
        qsort(list, n, sizeof *list, by_role);
        for (size_t i = 1; i < n; i++)
            if (strcmp(list[i].role, list[i - 1].role) == 0)
                list[i].first = list[i - 1].first;
        qsort(list, n, sizeof *list, by_first);
        for (size_t i = 0; i < n; i++) {
            role += i && list[i].first != list[i - 1].first;
            r->tensors[list[i].tensor].role = role;
            add_to_role(&r->roles[role], list[i].role, &r->tensors[list[i].tensor]);
        }
        r->totals.roles = role + 1;
    }
    free(list);
    return status;
}
