/* bytes/source_calls.c - a source that functions of the caller read. */
#include "bytes/source_kind.h"
#include "base/error.h"

#include <stdlib.h>

typedef struct called {
    tn_source       source;
    tn_source_calls calls;
} called;

static tn_status read_called(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err)
{
    const tn_source_calls *calls = &((const called *)source)->calls;
    tn_error why = { .offset = TN_NO_OFFSET };          /* which `read` may leave as it is */
    why.status = n ? calls->read(calls->context, offset, buffer, n, &why) : TN_OK;
    if (why.status && !why.text[0])
        return tn_fail_at(err, why.status, offset, "expected %zu bytes but the source did not give them", n);
    if (why.status && err)
        *err = why;
    return why.status;
}

static void close_called(tn_source *source) { free(source); }

static const tn_source_kind kind = { .read = read_called, .close = close_called };

tn_status tn_source_open_calls(const tn_source_calls *calls, tn_source **source, tn_error *err)
{
    called *c = calloc(1, sizeof *c);
    TN_NEED(c, err);
    *c = (called){ .source = { .kind = &kind, .size = calls->bytes }, .calls = *calls };
    *source = &c->source;
    return TN_OK;
}
