/* store/folder.c - the tensor file of a folder, as the models of Hugging Face are kept. */
#include "store/folder.h"
#include "base/text.h"
#include "store/format.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* How much a name says that it is the one, most first. */
enum { USUAL_INDEX, INDEX, USUAL_FILE, TORCH_INDEX, TORCH_FILE, TENSORS, RANKS };

static const char *const usual[RANKS] = { [USUAL_INDEX] = "model.safetensors.index.json",
                                          [USUAL_FILE] = "model.safetensors",
                                          [TORCH_INDEX] = "pytorch_model.bin.index.json",
                                          [TORCH_FILE] = "pytorch_model.bin" };

typedef struct found {
    const char *name[RANKS];    /* the first by name */
    size_t      count[RANKS];
} found;

/* RANKS: it is no tensor file.  JSON may be anything. */
static unsigned rank_of(const char *name)
{
    for (unsigned rank = 0; rank < RANKS; rank++)
        if (usual[rank] && strcmp(usual[rank], name) == 0)
            return rank;
    const tn_format *f = *name == '.' ? NULL : tn_format_by_suffix(name);
    if (!f || (f->is_later_file && f->is_later_file(name)))
        return RANKS;
    if (f->info.index_suffix && tn_ends_with(name, f->info.index_suffix))
        return INDEX;
    return tn_ends_with(name, ".json") ? RANKS : TENSORS;
}

static tn_status look(DIR *folder, tn_arena *arena, found *f, tn_error *err)
{
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(folder)) != NULL) {
        unsigned rank = rank_of(entry->d_name);
        if (rank == RANKS)
            continue;
        f->count[rank]++;
        if (f->name[rank] && strcmp(f->name[rank], entry->d_name) < 0)
            continue;
        f->name[rank] = tn_arena_text(arena, entry->d_name, strlen(entry->d_name));
        TN_NEED(f->name[rank], err);
    }
    return errno ? tn_fail_errno(err, errno, "cannot read the folder") : TN_OK;
}

static tn_status choose(const found *f, const char **name, tn_error *err)
{
    unsigned rank = 0;
    while (rank < RANKS && !f->count[rank])
        rank++;
    if (rank == RANKS)
        return tn_fail(err, TN_ERR_IO, "is a folder without a tensor file: expected an index, "
                       "model.safetensors, pytorch_model.bin or one file of a known suffix");
    if (f->count[rank] > 1)
        return tn_fail(err, TN_ERR_IO, "is a folder of %zu tensor files, such as %s: name those to open",
                       f->count[rank], tn_quote_z(f->name[rank]).text);
    *name = f->name[rank];
    return TN_OK;
}

tn_status tn_folder_file(const char *path, tn_arena *arena, const char **file, tn_error *err)
{
    struct stat st;
    found f = { .count = { 0 } };
    const char *name = NULL;
    *file = NULL;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return TN_OK;           /* whatever it is, opening it tells */
    DIR *folder = opendir(path);
    if (!folder)
        return tn_fail_errno(err, errno, "cannot open");
    tn_status status = look(folder, arena, &f, err);
    closedir(folder);
    if (!status)
        status = choose(&f, &name, err);
    if (status)
        return status;
    *file = tn_arena_printf(arena, "%s%s%s", path, tn_ends_with(path, "/") ? "" : "/", name);
    return *file ? TN_OK : tn_fail_nomem(err);
}

size_t tn_folder_usual(const char *url, tn_arena *arena, const char *urls[TN_FOLDER_USUAL])
{
    size_t n = 0;
    for (unsigned rank = 0; rank < RANKS && n < TN_FOLDER_USUAL; rank++) {
        if (!usual[rank])
            continue;
        urls[n] = tn_arena_printf(arena, "%s%s%s", url, tn_ends_with(url, "/") ? "" : "/", usual[rank]);
        if (!urls[n++])
            return 0;
    }
    return n;
}
