/* pipeline/spool.c - the decoded bytes of a part as memory, however it is stored. */
#include "pipeline/spool.h"
#include "base/error.h"

#include <string.h>

static tn_status tick(tn_spooling *s, tn_error *err)
{
    tn_status status = s->tick ? s->tick(s->context, err) : TN_OK;
    s->output_failed = status != TN_OK;
    return status;
}

tn_status tn_spool_check(tn_spooling *s, tn_error *err)
{
    tn_stream stream = { 0 };
    const uint8_t *bytes;
    size_t n = 1;
    if (tn_part_checksum(s->part) == TN_CHECKSUM_NONE)
        return TN_OK;
    tn_status status =
        tn_stream_open_stored(&stream, s->in, s->tensor, s->part, tn_part_checksum(s->part), err);
    while (!status && n) {
        status = tn_stream_next(&stream, &bytes, &n, err);
        if (!status)
            status = tick(s, err);
    }
    if (!status)
        status = tn_stream_check(&stream, s->tensor, s->part, err);
    tn_stream_free(&stream);
    return status;
}

/* Everything the stream gives. */
static tn_status fill(tn_spooling *s, tn_stream *stream, tn_room *room, tn_error *err)
{
    uint64_t at = 0;
    for (;;) {
        const uint8_t *bytes;
        size_t n;
        tn_status status = tn_stream_next(stream, &bytes, &n, err);
        if (status || !n)
            return status;
        memcpy(room->bytes + at, bytes, n);     /* a stream gives no more than the part has */
        at += n;
        status = tick(s, err);
        if (status)
            return status;
    }
}

tn_status tn_spool_part(tn_spooling *s, tn_room *room, tn_error *err)
{
    const tn_part *p = s->part;
    tn_stream stream = { 0 };
    tn_status status = tn_room_make(room, s->beside, p->nbytes, err);
    s->output_failed = status != TN_OK;
    if (!status)
        status = tn_stream_open(&stream, s->in, s->tensor, p, 0, p->nbytes, tn_part_checksum(p), err);
    if (!status)
        status = fill(s, &stream, room, err);
    if (!status)
        status = tn_stream_check(&stream, s->tensor, s->part, err);
    tn_stream_free(&stream);
    return status;
}
