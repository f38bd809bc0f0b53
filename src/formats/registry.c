/* formats/registry.c - the one table of containers. */
#include "base/text.h"
#include "store/format.h"

#include <string.h>

static const tn_format *const formats[] = {     /* order of probing and of --help */
    &tn_format_ztensor,
    &tn_format_safetensors,
    &tn_format_gguf,
    &tn_format_pytorch,
    &tn_format_raw,             /* after those whose index ends in .json too */
    &tn_format_btf,
    &tn_format_npy,
    &tn_format_npz,
    &tn_format_scipy,           /* after npz, which has the same suffix */
    &tn_format_mtx,
    &tn_format_idx,
    &tn_format_onnx,
};

enum { NFORMATS = sizeof formats / sizeof *formats };

const tn_format_info *tn_format_at(size_t i)
{
    return i < NFORMATS ? &formats[i]->info : NULL;
}

const tn_format *tn_format_find(const char *name)
{
    for (size_t i = 0; i < NFORMATS; i++)
        if (strcmp(formats[i]->info.name, name) == 0)
            return formats[i];
    return NULL;
}

const tn_format *tn_format_by_suffix(const char *path)
{
    for (size_t i = 0; i < NFORMATS; i++) {
        const tn_format *f = formats[i];
        if (tn_ends_with(path, f->info.suffix) ||
            (f->info.index_suffix && tn_ends_with(path, f->info.index_suffix)) ||
            (f->has_other_suffix && f->has_other_suffix(path)))
            return f;
    }
    return NULL;
}

const tn_format *tn_format_probe(const uint8_t *head, size_t n)
{
    const tn_format *best = NULL;
    int most = 0;
    for (size_t i = 0; i < NFORMATS; i++) {
        int certainty = formats[i]->probe ? formats[i]->probe(head, n) : 0;
        if (certainty > most) {
            most = certainty;
            best = formats[i];
        }
    }
    return best;
}
