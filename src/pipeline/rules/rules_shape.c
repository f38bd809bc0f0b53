/* pipeline/rules/rules_shape.c - which indices, which order and which shape, what is joined and what is cut,
 * from text. */
#include "pipeline/rules/rules.h"
#include "base/error.h"

#include <string.h>

/* ---- values ---- */

static bool take_int64(tn_text value, int64_t *number)
{
    bool negative = value.len && value.ptr[0] == '-';
    uint64_t size = 0;
    if (!tn_rule_number((tn_text){ value.ptr + negative, value.len - negative }, &size) || size > INT64_MAX)
        return false;
    *number = negative ? -(int64_t)size : (int64_t)size;
    return true;
}

/* The text up to a separator; *at is after it, or NULL after the last. */
static tn_text next_text(const char **at, const char *end, char separator)
{
    const char *found = *at < end ? memchr(*at, separator, (size_t)(end - *at)) : NULL;
    tn_text item = { *at, (size_t)((found ? found : end) - *at) };
    *at = found ? found + 1 : NULL;
    return item;
}

/* [GLOB=]ITEM,ITEM...: `take` gets each item. */
typedef tn_status (*take_item)(const tn_rule_reading *r, tn_text item, void *rule);

static tn_status read_items(const char *text, void *rule, take_item take, tn_error *err)
{
    const tn_rule_reading r = { .text = text, .err = err };
    const char *equals = strrchr(text, '='), *at = equals ? equals + 1 : text, *end = text + strlen(text);
    TN_TRY(tn_rule_glob(&r, equals, rule));
    while (at)
        TN_TRY(take(&r, next_text(&at, end, ','), rule));
    return TN_OK;
}

/* ---- slices ---- */

static tn_status take_slice(const tn_rule_reading *r, tn_text item, void *to)
{
    tn_slice_rule *rule = to;
    const char *at = item.ptr, *end = item.ptr + item.len;
    tn_slice_dim *d = &rule->dims[rule->count];
    tn_text parts[3] = { 0 };
    unsigned n = 0;
    if (rule->count == TN_MAX_RANK)
        return tn_rule_fail(r, item, "one dimension too many");
    while (at && n < 3)
        parts[n++] = next_text(&at, end, ':');
    *d = (tn_slice_dim){ .step = 1, .is_index = n == 1, .has_start = parts[0].len > 0,
                         .has_stop = parts[1].len > 0 };
    bool good = !at && (n > 1 || item.len);
    good = good && (!parts[0].len || take_int64(parts[0], &d->start));
    good = good && (!parts[1].len || take_int64(parts[1], &d->stop));
    good = good && (!parts[2].len || take_int64(parts[2], &d->step)) && d->step > 0;
    rule->count++;
    return good ? TN_OK : tn_rule_fail(r, item, "no index and no START:STOP[:STEP] with a step above 0");
}

tn_status tn_slice_rule_parse(const char *text, tn_slice_rule *rule, tn_error *err)
{
    tn_slice_rule read = { .count = 0 };
    TN_TRY(read_items(text, &read, take_slice, err));
    *rule = read;
    return TN_OK;
}

/* ---- orders and shapes ---- */

static tn_status take_extent(const tn_rule_reading *r, tn_text item, void *to)
{
    tn_dims_rule *rule = to;
    if (rule->count == TN_MAX_RANK)
        return tn_rule_fail(r, item, "one dimension too many");
    if (!take_int64(item, &rule->dims[rule->count]) || rule->dims[rule->count] < -1)
        return tn_rule_fail(r, item, "no extent: a number, or -1 for what is left");
    for (uint32_t i = 0; i < rule->count && rule->dims[rule->count] == -1; i++)
        if (rule->dims[i] == -1)
            return tn_rule_fail(r, item, "there a second time");
    rule->count++;
    return TN_OK;
}

tn_status tn_reshape_rule_parse(const char *text, tn_dims_rule *rule, tn_error *err)
{
    tn_dims_rule read = { .count = 0 };
    TN_TRY(read_items(text, &read, take_extent, err));
    *rule = read;
    return TN_OK;
}

static tn_status take_number(const tn_rule_reading *r, tn_text item, void *to)
{
    tn_add_rule *rule = to;
    bool is_first = rule->number == 0;
    return is_first && tn_rule_float(item, &rule->number)
               ? TN_OK
               : tn_rule_fail(r, item, "no number that float32 holds, other than 0");
}

tn_status tn_add_rule_parse(const char *text, tn_add_rule *rule, tn_error *err)
{
    tn_add_rule read = { .number = 0 };
    TN_TRY(read_items(text, &read, take_number, err));
    *rule = read;
    return TN_OK;
}

static tn_status take_dimension(const tn_rule_reading *r, tn_text item, void *to)
{
    tn_dims_rule *rule = to;
    int64_t *dim = &rule->dims[rule->count];
    if (rule->count == TN_MAX_RANK)
        return tn_rule_fail(r, item, "one dimension too many");
    if (!take_int64(item, dim) || *dim < 0 || *dim >= TN_MAX_RANK)
        return tn_rule_fail(r, item, "no dimension: a number from 0 on");
    for (uint32_t i = 0; i < rule->count; i++)
        if (rule->dims[i] == *dim)
            return tn_rule_fail(r, item, "there a second time");
    rule->count++;
    return TN_OK;
}

tn_status tn_transpose_rule_parse(const char *text, tn_dims_rule *rule, tn_error *err)
{
    tn_dims_rule read = { .count = 0 };
    TN_TRY(read_items(text, &read, take_dimension, err));
    for (uint32_t i = 0; i < read.count; i++)
        if (read.dims[i] >= read.count)
            return tn_fail(err, TN_ERR_ARGUMENT, "expected each of %u dimensions once but found %lld",
                           read.count, (long long)read.dims[i]);
    *rule = read;
    return TN_OK;
}

/* ---- joining and cutting ---- */

static unsigned count_stars(tn_text text)
{
    unsigned n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '*';
    return n;
}

/* NAME+NAME... */
static tn_status read_names(const tn_rule_reading *r, tn_text all, tn_join_rule *rule)
{
    const char *at = all.ptr, *end = all.ptr + all.len;
    while (at) {
        tn_text name = next_text(&at, end, '+');
        if (!name.len)
            return tn_rule_fail(r, name, "no name");
        if (rule->count == TN_MAX_JOIN)
            return tn_rule_fail(r, name, "one name too many");
        rule->names[rule->count++] = name;
    }
    return TN_OK;
}

static tn_status read_sizes(const tn_rule_reading *r, tn_text all, tn_join_rule *rule)
{
    const char *at = all.ptr, *end = all.ptr + all.len;
    for (; at; rule->nsizes++) {
        tn_text size = next_text(&at, end, '+');
        if (rule->nsizes == TN_MAX_JOIN || !take_int64(size, &rule->sizes[rule->nsizes]) ||
            rule->sizes[rule->nsizes] < 0)
            return tn_rule_fail(r, size, "no number of indices");
    }
    return TN_OK;
}

/* ,KEY=VALUE... with the first `nkeys` of axis, NEW, sizes; NEW is stack or unstack. */
static tn_status read_join_keys(tn_rule_reading *r, const char *at, const char *is_new, bool sizes,
                                tn_join_rule *rule)
{
    for (; *at; at += strcspn(at, ",")) {
        tn_text pair = { at + 1, strcspn(at + 1, ",") }, key = { NULL, 0 }, value = { NULL, 0 };
        TN_TRY(tn_rule_pair(r, pair, &key, &value));
        bool stacks = tn_text_is(key, is_new), is_sizes = sizes && tn_text_is(key, "sizes");
        if (!stacks && !is_sizes && !tn_text_is(key, "axis"))
            return tn_rule_fail(r, key, sizes ? "no key (axis, sizes, unstack)" : "no key (axis, stack)");
        if (is_sizes ? rule->nsizes > 0 : r->seen & 1)
            return tn_rule_fail(r, key, "there a second time");
        if (is_sizes) {
            TN_TRY(read_sizes(r, value, rule));
        } else if (!tn_rule_int32(value, &rule->axis)) {
            return tn_rule_fail(r, value, "no dimension");
        }
        r->seen |= !is_sizes;
        rule->is_new |= stacks;
        at++;
    }
    return TN_OK;
}

static tn_status check_stars(const tn_rule_reading *r, tn_text name, unsigned most, const char *why)
{
    return count_stars(name) > most ? tn_rule_fail(r, name, why) : TN_OK;
}

tn_status tn_concat_rule_parse(const char *text, tn_join_rule *rule, tn_error *err)
{
    tn_join_rule read = { .glob = "" };
    tn_rule_reading r = { .text = text, .err = err };
    const char *equals;
    tn_text globs, head = tn_rule_head(&r, &globs, &equals);
    if (!equals)
        return tn_rule_fail(&r, head, "no NEW=GLOB+GLOB...");
    TN_TRY(tn_rule_glob(&r, equals, read.glob));
    read.whole = (tn_text){ text, (size_t)(equals - text) };
    TN_TRY(read_names(&r, globs, &read));
    TN_TRY(read_join_keys(&r, text + head.len, "stack", false, &read));
    for (uint32_t i = 0; i < read.count; i++)
        if (count_stars(read.names[i]) < count_stars(read.whole))
            return tn_rule_fail(&r, read.names[i], "without a '*' for each of the new name");
    *rule = read;
    return TN_OK;
}

tn_status tn_split_rule_parse(const char *text, tn_join_rule *rule, tn_error *err)
{
    tn_join_rule read = { .glob = "" };
    tn_rule_reading r = { .text = text, .err = err };
    const char *equals;
    tn_text names, head = tn_rule_head(&r, &names, &equals);
    if (!equals)
        return tn_rule_fail(&r, head, "no GLOB=NEW+NEW...");
    TN_TRY(tn_rule_glob(&r, equals, read.glob));
    read.whole = (tn_text){ text, (size_t)(equals - text) };
    TN_TRY(read_names(&r, names, &read));
    TN_TRY(read_join_keys(&r, text + head.len, "unstack", true, &read));
    unsigned stars = count_stars(read.whole);
    if (read.is_new && (read.count != 1 || count_stars(read.names[0]) != stars + 1 || read.nsizes))
        return tn_rule_fail(&r, names, "no single name with one '*' more than the glob, as unstack needs");
    for (uint32_t i = 0; i < read.count && !read.is_new; i++)
        TN_TRY(check_stars(&r, read.names[i], stars, "with more '*' than the glob"));
    if (read.nsizes && read.nsizes != read.count)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a size for each of %u names but found %u", read.count,
                       read.nsizes);
    *rule = read;
    return TN_OK;
}
