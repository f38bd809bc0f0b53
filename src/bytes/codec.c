/* bytes/codec.c - the table of codecs. */
#include "bytes/codec.h"

#include <string.h>

const tn_codec tn_codec_raw = { .id = TN_ENCODING_RAW, .name = "raw", .splits = true };

static const tn_codec *const codecs[] = {
    &tn_codec_raw,
    &tn_codec_zstd,
    &tn_codec_deflate,
};

enum { COUNT = sizeof codecs / sizeof *codecs };

const tn_codec *tn_codec_of(unsigned encoding)
{
    for (size_t i = 0; i < COUNT; i++)
        if (codecs[i]->id == encoding)
            return codecs[i];
    return NULL;
}

const tn_codec *tn_codec_named(tn_text name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (tn_text_is(name, codecs[i]->name) && (codecs[i]->encode || !codecs[i]->decode))
            return codecs[i];
    return NULL;
}

const char *tn_encoding_name(tn_encoding encoding)
{
    const tn_codec *codec = tn_codec_of(encoding);
    return codec ? codec->name : NULL;
}

tn_encoding tn_encoding_parse(const char *name)
{
    const tn_codec *codec = name ? tn_codec_named((tn_text){ name, strlen(name) }) : NULL;
    return codec ? codec->id : TN_ENCODING_UNKNOWN;
}

const tn_codec *tn_codec_usual(void) { return &tn_codec_zstd; }

size_t tn_encoded_bound(size_t n)
{
    size_t most = n;
    for (size_t i = 0; i < COUNT; i++) {
        size_t bound = codecs[i]->bound ? codecs[i]->bound(n) : n;
        most = bound > most ? bound : most;
    }
    return most;
}

tn_status tn_codec_use(tn_codec_state *c, const tn_codec *codec, tn_error *err)
{
    if (c->codec == codec)
        return TN_OK;
    tn_codec_free(c);
    tn_status status = codec->open ? codec->open(&c->state, err) : TN_OK;
    c->codec = status ? NULL : codec;
    return status;
}

void tn_codec_free(tn_codec_state *c)
{
    if (c->codec && c->codec->close)
        c->codec->close(c->state);
    *c = (tn_codec_state){ 0 };
}
