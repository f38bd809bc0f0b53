/* store/stored.c - how a part is stored, in short. */
#include "store/stored.h"
#include "base/options.h"
#include "bytes/codec.h"

#include <string.h>

const tn_stored      tn_not_stored;
const tn_stored_more tn_nothing_more;

const char *tn_stored_encoding(const tn_stored *s)
{
    const tn_codec *codec = tn_codec_of(s->encoding);
    if (s->more && s->more->encoding_name)
        return s->more->encoding_name;
    return codec ? codec->name : "";
}

/* Whether it is the extent of an earlier one, which is read once more. */
static bool is_repeated(const tn_stored_more *more, uint32_t i)
{
    bool found = false;
    for (uint32_t k = 0; k < i && !found; k++) {
        const tn_stored *a = tn_stored_of(&more->from[k]), *b = tn_stored_of(&more->from[i]);
        found = a->shard == b->shard && a->offset == b->offset && a->size == b->size;
    }
    return found;
}

static void add_derived(const tn_stored_more *more, tn_stored_info *info)
{
    const tn_stored *first = tn_stored_of(&more->from[0]);
    info->encoding = first->encoding;
    info->encoding_name = tn_stored_encoding(first);
    info->order = first->order;
    info->checksum = first->checksum;
    info->checksum_text = first->checksum_text;
    info->extents = 0;
    info->dense = false;
    for (uint32_t i = 0; i < more->nfrom; i++) {
        if (is_repeated(more, i))
            continue;
        info->bytes += tn_stored_of(&more->from[i])->size;
        info->extents++;
    }
    if (info->extents == 1)
        info->offset = first->offset;
}

tn_stored_info tn_stored_summary(const tn_tensor *t, const tn_part *p)
{
    const tn_stored *s = tn_stored_of(p), *first = t ? tn_stored_of(&t->parts[0]) : s;
    const tn_stored_more *more = tn_stored_more_of(p);
    tn_stored_info info = {
        .offset = s->offset, .bytes = more->pitch ? p->nbytes : s->size, .type = s->type,
        .encoding_name = tn_stored_encoding(s), .checksum_text = s->checksum_text, .opaque = more->opaque,
        .stride = more->stride, .encoding = s->encoding, .checksum = s->checksum, .order = s->order,
        .shard = s->shard, .extents = p->stored != NULL, .dense = !more->stride && !more->pitch,
    };
    if (more->derive)
        add_derived(more, &info);
    if (first->more && first->more->sum.size) {
        info.checksum = first->checksum;
        info.checksum_text = first->checksum_text;
    }
    return info;
}

tn_status tn_part_stored(const tn_tensor *t, const tn_part *p, tn_stored_info *info)
{
    size_t size;
    if (!p || !info)
        return TN_ERR_ARGUMENT;
    TN_TRY(tn_check_size(TN_SIZED(tn_stored_info, dense), info, &size, NULL));
    if (size >= sizeof *info) {         /* a listing asks for very many */
        *info = tn_stored_summary(t, p);
        info->size = size;
        return TN_OK;
    }
    tn_stored_info all = tn_stored_summary(t, p);
    all.size = size;
    memcpy(info, &all, size);
    return TN_OK;
}
