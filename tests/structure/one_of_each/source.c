/* A source for the test that adds one of each: a file whose bytes are stored inverted. */
#include "base/error.h"
#include "bytes/source_kind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char scheme[] = "inverted:";

typedef struct inverted {
    tn_source source;
    FILE     *file;
} inverted;

static tn_status open_inverted(const char *name, tn_io io, tn_source **source, tn_error *err)
{
    inverted *s = calloc(1, sizeof *s);
    (void)io;
    if (!s)
        return tn_fail_nomem(err);
    s->file = fopen(name + strlen(scheme), "rb");
    if (!s->file) {
        free(s);
        return tn_fail_errno(err, errno, "cannot open");
    }
    fseek(s->file, 0, SEEK_END);
    s->source = (tn_source){ .kind = &tn_source_inverted, .size = (uint64_t)ftell(s->file) };
    *source = &s->source;
    return TN_OK;
}

static tn_status read_inverted(const tn_source *source, uint64_t offset, void *buffer, size_t n,
                               tn_error *err)
{
    const inverted *s = (const inverted *)source;
    uint8_t *bytes = buffer;
    if (fseek(s->file, (long)offset, SEEK_SET) || fread(buffer, 1, n, s->file) != n)
        return tn_fail_errno(err, errno, "cannot read");
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)~bytes[i];
    return TN_OK;
}

static void close_inverted(tn_source *source)
{
    fclose(((inverted *)source)->file);
    free(source);
}

const tn_source_kind tn_source_inverted = {
    .scheme = scheme, .open = open_inverted, .read = read_inverted, .close = close_inverted,
};
