/* store/load.c - loading the parts of a tensor into memory. */
#include "store/load.h"
#include "base/error.h"
#include "store/kept.h"

#include <string.h>

/* Copies everything the stream gives to memory with room for it; NULL: only reads it. */
static tn_status drain(tn_loading *l, tn_stream *stream, uint8_t *to, tn_error *err)
{
    for (;;) {
        const uint8_t *bytes;
        size_t n;
        tn_status status = tn_stream_next(stream, &bytes, &n, err);
        if (status || !n)
            return status;
        if (to)
            to = (uint8_t *)memcpy(to, bytes, n) + n;
        status = l->tick ? l->tick(l->context, err) : TN_OK;
        if (status)
            return status;
    }
}

static tn_status finish(tn_loading *l, const tn_part *p, tn_stream *stream, tn_status status, tn_error *err)
{
    if (!status)
        status = tn_stream_check(stream, l->tensor, p, err);
    tn_stream_free(stream);
    return status;
}

tn_status tn_load_check(tn_loading *l, const tn_part *p, tn_error *err)
{
    tn_stream stream = { 0 };
    tn_checksum kind = tn_part_checksum(p);
    if (kind == TN_CHECKSUM_NONE)
        return TN_OK;
    tn_status status = tn_stream_open_stored(&stream, l->in, l->tensor, p, kind, err);
    if (!status)
        status = drain(l, &stream, NULL, err);
    return finish(l, p, &stream, status, err);
}

tn_status tn_load_part(tn_loading *l, const tn_part *p, tn_spill *spill, tn_error *err)
{
    tn_stream stream = { 0 };
    tn_status status = tn_spill_make(spill, l->beside, p->nbytes, err);
    if (!status)
        status = tn_stream_open(&stream, l->in, l->tensor, p, 0, p->nbytes, tn_part_checksum(p), err);
    if (!status)
        status = drain(l, &stream, spill->bytes, err);
    return finish(l, p, &stream, status, err);
}

static tn_status load_part(tn_loading *l, tn_loaded *loaded, uint32_t k, tn_error *err)
{
    const tn_part *from = &l->tensor->parts[k];
    tn_part *p = &loaded->parts[k];
    TN_TRY(tn_part_readable(l->tensor, from, err));
    if (from == l->without)
        return TN_OK;
    if (p->data || !p->nbytes) {
        p->data = p->data ? p->data : "";
        return tn_load_check(l, from, err);
    }
    tn_kept kept = { .max_bytes = l->limit ? l->limit : l->in->max_bytes };
    tn_kept_add_part(&kept, l->tensor, from);
    TN_TRY(tn_kept_check(&kept, err));
    TN_TRY(tn_load_part(l, from, &loaded->spills[k], err));
    loaded->decoded = true;
    p->data = loaded->spills[k].bytes;
    return TN_OK;
}

tn_status tn_load(tn_loading *l, tn_loaded *loaded, tn_error *err)
{
    loaded->tensor = *l->tensor;
    loaded->tensor.parts = loaded->parts;
    for (uint32_t k = 0; k < l->tensor->nparts && k < TN_MAX_PARTS; k++) {
        loaded->parts[k] = l->tensor->parts[k];
        TN_TRY(load_part(l, loaded, k, err));
    }
    return TN_OK;
}

void tn_loaded_free(tn_loaded *loaded)
{
    for (unsigned k = 0; k < TN_MAX_PARTS; k++)
        tn_spill_free(&loaded->spills[k]);
}
