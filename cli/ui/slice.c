/* cli/ui/slice.c - which elements of an array. */
#include "ui/slice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bounds {
    int64_t  start, step;
    uint64_t count;
    bool     single;            /* one index: the dimension disappears */
} bounds;

static bool parse_integer(const char **at, int64_t *value)
{
    char *end;
    if (**at != '-' && (**at < '0' || **at > '9'))
        return false;
    errno = 0;
    *value = strtoll(*at, &end, 10);
    bool good = end != *at && errno == 0 && *value > INT64_MIN;
    *at = end;
    return good;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

/* START:STOP:STEP for a dimension of `extent`, each with Python's defaults. */
static bool parse_range(const char **at, int64_t extent, int64_t first, bool has_first, bounds *b)
{
    int64_t stop = 0;
    bool has_stop = parse_integer(at, &stop);
    b->step = 1;
    if (**at == ':') {
        ++*at;
        if (!parse_integer(at, &b->step) && **at != ',' && **at != '\0')
            return false;
    }
    if (b->step == 0)
        return false;
    bool forward = b->step > 0;
    int64_t low = forward ? 0 : -1;
    int64_t high = forward ? extent : extent - 1;
    int64_t start = forward ? low : high;
    int64_t end = forward ? high : low;
    if (has_first)
        start = clamp(first < 0 ? first + extent : first, low, high);
    if (has_stop)
        end = clamp(stop < 0 ? stop + extent : stop, low, high);
    int64_t span = forward ? end - start : start - end;
    int64_t stride = forward ? b->step : -b->step;
    b->start = start;
    b->count = span > 0 ? (uint64_t)((span - 1) / stride + 1) : 0;
    return true;
}

static bool parse_item(const char **at, uint32_t dimension, int64_t extent, bounds *b, char *why, size_t cap)
{
    int64_t first = 0;
    bool has_first = parse_integer(at, &first), good = has_first || **at == ':';
    *b = (bounds){ .start = first < 0 ? first + extent : first, .step = 1, .count = 1, .single = true };
    if (**at == ':') {
        ++*at;
        b->single = false;
        good = parse_range(at, extent, first, has_first, b);
    }
    if (!good || (**at != ',' && **at != '\0')) {
        snprintf(why, cap, "dimension %u takes I, A:B or A:B:STEP, with a STEP other than 0", dimension);
        return false;
    }
    if (b->single && (b->start < 0 || b->start >= extent)) {
        snprintf(why, cap, "index %lld is outside dimension %u, which has %lld", (long long)first, dimension,
                 (long long)extent);
        return false;
    }
    return true;
}

/* Fills one `bounds` per dimension; dimensions that the text does not mention stay whole. */
static bool parse_slice(const char *text, const tn_array *array, bounds *b, char *why, size_t cap)
{
    uint32_t items = 1, d = 0;
    bool dots = false;
    for (const char *c = text; *c; c++)
        items += *c == ',';
    for (const char *at = text;;) {
        if (strncmp(at, "...", 3) == 0 && !dots && (at[3] == ',' || at[3] == '\0')) {
            dots = true;
            at += 3;
            d += items - 1 <= array->rank ? array->rank - (items - 1) : 0;
        } else if (d >= array->rank) {
            snprintf(why, cap, "%u dimensions asked for, but the array has %u", items, array->rank);
            return false;
        } else if (!parse_item(&at, d, array->shape[d], &b[d], why, cap)) {
            return false;
        } else {
            d++;
        }
        if (*at++ == '\0')
            break;
    }
    return true;
}

bool window_make(window *w, const tn_array *array, const char *slice, char *why, size_t cap)
{
    bounds b[TN_MAX_RANK];
    *w = (window){ .count = 1 };
    for (uint32_t d = 0; d < array->rank; d++)
        b[d] = (bounds){ .step = 1, .count = (uint64_t)array->shape[d] };
    if (slice && !parse_slice(slice, array, b, why, cap))
        return false;

    int64_t distance[TN_MAX_RANK], far = 1;     /* between neighbours along each dimension */
    bool empty = false;
    for (uint32_t d = 0; d < array->rank; d++)
        empty = empty || b[d].count == 0;
    for (uint32_t d = array->rank; d-- > 0;) {
        distance[d] = far;
        far = empty ? 0 : far * array->shape[d];
    }
    for (uint32_t d = 0; d < array->rank; d++) {
        w->base += empty ? 0 : (uint64_t)(b[d].start * distance[d]);
        w->count *= empty ? 0 : b[d].count;
        if (b[d].single)
            continue;
        w->shape[w->rank] = (int64_t)b[d].count;
        w->step[w->rank++] = b[d].count > 1 && !empty ? b[d].step * distance[d] : 0;
    }
    return true;
}
