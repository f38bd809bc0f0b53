/* formats/gguf/split.c - sets of files: PREFIX-00001-of-00003.gguf and the others.
 *
 * Each file is whole, with three keys that tell of the set.  The first has all other metadata; it may have no
 * tensors.  It is opened, and the names of the others follow from its name. */
#include "formats/gguf/gguf.h"
#include "base/checked.h"
#include "base/error.h"
#include "store/publish.h"
#include "store/set_index.h"

#include <inttypes.h>

/* ---- names ---- */

/* Reads the digits before `end`, at least five; returns how many, or 0. */
static size_t digits_before(const char *text, size_t end, uint32_t *number)
{
    size_t first = end;
    uint64_t value = 0;
    while (first > 0 && tn_is_digit(text[first - 1]))
        first--;
    for (size_t i = first; i < end; i++)
        if (!tn_add_digit(&value, text[i]) || value > UINT32_MAX)
            return 0;
    *number = (uint32_t)value;
    return end - first >= 5 ? end - first : 0;
}

bool tn_gguf_split_name(const char *path, tn_gguf_name_parts *parts)
{
    static const char of[] = "-of-";
    const char *base = tn_base_name(path);
    size_t n = strlen(base), digits;
    if (!tn_ends_with(base, TN_GGUF_SUFFIX))
        return false;
    n -= strlen(TN_GGUF_SUFFIX);
    if (!(digits = digits_before(base, n, &parts->count)))
        return false;
    n -= digits;
    if (n < strlen(of) || memcmp(base + n - strlen(of), of, strlen(of)) != 0)
        return false;
    n -= strlen(of);
    if (!(digits = digits_before(base, n, &parts->number)) || n == digits || base[n - digits - 1] != '-')
        return false;
    parts->prefix = (size_t)(base - path) + n - digits - 1;
    return true;
}

bool tn_gguf_is_later_file(const char *name)
{
    tn_gguf_name_parts parts;
    return tn_gguf_split_name(name, &parts) && parts.number > 1;
}

/* ---- what a file says ---- */

bool tn_gguf_is_split_key(const char *key)
{
    return strcmp(key, TN_GGUF_NO) == 0 || strcmp(key, TN_GGUF_COUNT) == 0 ||
           strcmp(key, TN_GGUF_TENSORS) == 0;
}

static tn_status number_of(const tn_gguf_header *h, const char *key, int64_t *value, tn_error *err)
{
    const tn_meta *meta = tn_gguf_find(h, key);
    if (meta && !tn_gguf_integer(meta, value))
        return tn_fail(err, TN_ERR_CORRUPT, "%s: expected an integer", key);
    return TN_OK;
}

tn_status tn_gguf_split_of(const tn_gguf_header *h, tn_gguf_split *s, tn_error *err)
{
    *s = (tn_gguf_split){ .count = 1, .tensors = -1 };
    TN_TRY(number_of(h, TN_GGUF_COUNT, &s->count, err));
    if (s->count < 2)
        return TN_OK;           /* what is left of a set that was merged */
    TN_TRY(number_of(h, TN_GGUF_NO, &s->no, err));
    TN_TRY(number_of(h, TN_GGUF_TENSORS, &s->tensors, err));
    if (s->no < 0 || s->no >= s->count)
        return tn_fail(err, TN_ERR_CORRUPT, TN_GGUF_NO ": expected a number below %" PRId64 " but found %"
                       PRId64, s->count, s->no);
    return TN_OK;
}

/* ---- opening ---- */

/* All metadata of the set: no file of it is a split any more. */
static tn_status merge(tn_set_merged *all, const tn_gguf_header *h, bool first, const char *from,
                       tn_error *err)
{
    for (size_t i = 0; i < h->nmeta; i++) {
        const char *key = h->meta[i].key;
        if (tn_gguf_is_split_key(key) || (!first && strcmp(key, TN_GGUF_ALIGNMENT) == 0))
            continue;
        TN_TRY(tn_set_merge(all, &h->meta[i], from, TN_NO_OFFSET, err));
    }
    return TN_OK;
}

static tn_status check_member(const tn_gguf_header *h, const tn_gguf_split *set, int64_t no, tn_error *err)
{
    tn_gguf_split s;
    TN_TRY(tn_gguf_split_of(h, &s, err));
    if (s.count != set->count)
        return tn_fail(err, TN_ERR_CORRUPT, TN_GGUF_COUNT ": expected %" PRId64 ", as in the first file, but "
                       "found %" PRId64, set->count, s.count);
    if (s.no != no)
        return tn_fail(err, TN_ERR_CORRUPT, TN_GGUF_NO ": expected %" PRId64 " but found %" PRId64, no, s.no);
    return TN_OK;
}

static tn_status read_member(tn_file *file, uint32_t shard, const tn_gguf_split *set, tn_set_merged *all,
                             tn_error *err)
{
    tn_gguf_in in;
    tn_gguf_header h = { 0 };
    const tn_shard *s = &file->shards[shard];
    bool failed = tn_gguf_begin(&in, s->source, err) || tn_gguf_read_header(&in, &h, &file->arena) ||
                  check_member(&h, set, shard, err) || tn_gguf_read_tensors(&in, &h, file, shard) ||
                  merge(all, &h, false, s->path, err);
    tn_gguf_end(&in);
    tn_gguf_header_free(&h);
    return failed ? tn_in_file(err->status, s->path, err) : TN_OK;
}

static tn_status read_members(tn_file *file, const tn_gguf_split *set, tn_set_merged *all, tn_error *err)
{
    const char *path = file->shards[0].path;
    tn_gguf_name_parts name;
    if (!tn_gguf_split_name(path, &name) || name.number != 1 || name.count != set->count)
        return tn_fail(err, TN_ERR_CORRUPT,
                       "it is the first of %" PRId64 " files, whose names follow from its own: expected "
                       "PREFIX-00001-of-%05" PRId64 TN_GGUF_SUFFIX, set->count, set->count);
    for (int64_t i = 1; i < set->count; i++) {
        uint32_t shard;
        const char *other = tn_arena_printf(&file->arena, "%.*s-%05" PRId64 "-of-%05" PRId64 TN_GGUF_SUFFIX,
                                            (int)name.prefix, path, i + 1, set->count);
        TN_NEED(other, err);
        if (tn_file_add_shard(file, other, &shard, err))
            return tn_in_file(err->status, other, err);
        TN_TRY(read_member(file, shard, set, all, err));
    }
    if (set->tensors >= 0 && (uint64_t)set->tensors != file->count)
        return tn_fail(err, TN_ERR_CORRUPT, TN_GGUF_TENSORS ": expected %zu, as many as all files have, but "
                       "found %" PRId64, file->count, set->tensors);
    return TN_OK;
}

tn_status tn_gguf_open_rest(tn_file *file, const tn_gguf_header *first, const tn_gguf_split *set,
                            tn_error *err)
{
    tn_set_merged all = { 0 };
    bool failed = merge(&all, first, true, file->shards[0].path, err) ||
                  read_members(file, set, &all, err) || tn_file_set_meta(file, all.items, all.count, err);
    tn_set_merged_free(&all);
    return failed ? err->status : TN_OK;
}

/* ---- writing ---- */

/* Bytes of data when entry i follows the first `at` bytes. */
static uint64_t end_after(const tn_writer *w, const tn_gguf_plan *plan, uint64_t at, size_t i)
{
    uint64_t end;
    if (!tn_add_u64(at, w->entries[i].nbytes, &end) || !tn_align_u64(end, plan->align, &end))
        end = UINT64_MAX;
    return end;
}

/* Distributes the tensors over files, in order; returns the number of files.  `files` may be NULL. */
static size_t cut(const tn_writer *w, const tn_gguf_plan *plan, tn_gguf_file *files)
{
    uint64_t limit = w->options.shard_size ? w->options.shard_size : UINT64_MAX, at = 0;
    size_t n = 0, first = 0;
    for (size_t i = 0; i < w->count; i++) {
        uint64_t end = end_after(w, plan, at, i);
        if (end > limit && i > first) {
            if (files)
                files[n] = (tn_gguf_file){ .first = first, .last = i };
            n++;
            first = i;
            end = end_after(w, plan, 0, i);
        }
        at = end;
    }
    if (files)
        files[n] = (tn_gguf_file){ .first = first, .last = w->count };
    return n + 1;
}

tn_status tn_gguf_cut(tn_writer *w, tn_gguf_plan *plan, tn_error *err)
{
    plan->nfiles = cut(w, plan, NULL);
    if (plan->nfiles > UINT16_MAX)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_SHARD_SIZE, NULL,
                         "expected at most %u files of a set but found %zu: choose a larger shard size",
                         UINT16_MAX, plan->nfiles);
    plan->files = tn_arena_zalloc(&w->arena, plan->nfiles, sizeof *plan->files);
    TN_NEED(plan->files, err);
    cut(w, plan, plan->files);
    return TN_OK;
}

/* The path of file i of the writer's set; NULL without memory. */
static const char *path_of(tn_writer *w, size_t i)
{
    const tn_gguf_plan *plan = w->state;
    tn_gguf_name_parts name;
    size_t prefix = strlen(w->path);
    if (tn_gguf_split_name(w->path, &name))
        prefix = name.prefix;
    else if (tn_ends_with(w->path, TN_GGUF_SUFFIX))
        prefix -= strlen(TN_GGUF_SUFFIX);
    return tn_arena_printf(&w->arena, "%.*s-%05zu-of-%05zu" TN_GGUF_SUFFIX, (int)prefix, w->path, i + 1,
                           plan->nfiles);
}

static const char *member_name(tn_writer *w, size_t i, const char *id)
{
    const char *path = path_of(w, i + 1);       /* the first file is no member: it names the others */
    (void)id;
    return path ? tn_base_name(path) : NULL;
}

tn_status tn_gguf_name_files(tn_writer *w, tn_error *err)
{
    return tn_writer_name_members(w, member_name, false, err);
}

/* The names of a set follow from each other, so an old set cannot be replaced as a whole. */
static tn_status check_names(tn_writer *w, const tn_gguf_plan *plan, tn_error *err)
{
    for (size_t i = 0; i < plan->nfiles; i++) {
        const char *path = path_of(w, i);
        TN_NEED(path, err);
        TN_TRY(tn_writer_check_name(w, tn_base_name(path), err));
        if (tn_exists_beside(path, tn_base_name(path)))
            return tn_fail(err, TN_ERR_EXISTS,
                           "%s already exists, and a set of GGUF files cannot be replaced as a whole: remove "
                           "it, or choose another name",
                           tn_quote_z(tn_base_name(path)).text);
    }
    return TN_OK;
}

tn_status tn_gguf_open_files(tn_writer *w, tn_gguf_plan *plan, tn_error *err)
{
    if (plan->nfiles == 1)
        return tn_writer_add_file(w, w->path, &plan->files[0].file, err);
    TN_TRY(check_names(w, plan, err));
    for (size_t i = 1; i < plan->nfiles; i++) {
        TN_TRY(tn_writer_add_member(w, &plan->files[i].file, err));
        w->files[plan->files[i].file].path = member_name(w, i - 1, NULL);
        TN_NEED(w->files[plan->files[i].file].path, err);
    }
    const char *first = path_of(w, 0);
    return first ? tn_writer_add_file(w, first, &plan->files[0].file, err) : tn_fail_nomem(err);
}
