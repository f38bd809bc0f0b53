/* bytes/codec.h - how stored bytes become plain bytes: one row per codec.
 *
 * A new codec is a file that defines its row, a line in codec.c and a number in
 * tenon/tensor.h.  Nobody else calls a compression library. */
#ifndef TN_BYTES_CODEC_H
#define TN_BYTES_CODEC_H

#include "base/error.h"
#include "base/text.h"
#include "bytes/source.h"

#include <stdbool.h>
#include <tenon/tensor.h>

/* Input and output of a call, which advances both. */
typedef struct tn_coding {
    const uint8_t *in;
    size_t         nin;
    uint8_t       *out;
    size_t         nout;
} tn_coding;

/* Advances the input by `used` bytes and the output by `given`; either pointer may be NULL with 0 bytes. */
static inline void tn_coding_advance(tn_coding *c, size_t used, size_t given)
{
    if (used)
        c->in += used;
    if (given)
        c->out += given;
    c->nin -= used;
    c->nout -= given;
}

/* Where the output of an encoding stream goes, in order. */
typedef tn_status (*tn_emit_fn)(void *context, const void *data, size_t n, tn_error *err);

#define TN_ENCODE_WHOLE_MAX ((size_t)8 << 20)

typedef struct tn_codec {
    tn_encoding id;
    const char *name;           /* in files and messages */
    bool        splits;         /* any block can be decoded alone */
    bool        sums_decoded;   /* checksums are of decoded bytes, not of stored ones */

    /* State of one thread, reused for the next data.  NULL: bytes are stored unchanged, and all that follows
     * is NULL too. */
    tn_status (*open)(void **state, tn_error *err);
    void      (*close)(void *state);

    /* How many bytes of memory it takes to decode [from, from + size) of a source into `content` bytes.
     * NULL: few. */
    tn_status (*find_window)(const tn_source *source, uint64_t from, uint64_t size, uint64_t content,
                             uint64_t *window, tn_error *err);
    unsigned    ratio_max;      /* data decodes to at most this many times its size; 0: no limit */
    /* Decodes data in pieces.  TN_ERR_LIMIT: it needs a larger window than this. */
    tn_status (*decode_begin)(void *state, uint64_t window, tn_error *err);
    tn_status (*decode)(void *state, tn_coding *coding, tn_error *err);
    bool      (*decode_at_end)(const void *state);      /* the data decoded so far is complete */
    void      (*decode_end)(void *state);       /* frees memory that is not worth keeping; or NULL */

    /* Encoding.  NULL: read only.  The output depends on data and level, not on the number of threads: data
     * of at most TN_ENCODE_WHOLE_MAX bytes is encoded whole, by one thread; more is a stream. */
    int       (*level_min)(void);
    int       (*level_max)(void);
    size_t    (*bound)(size_t n);
    size_t    (*encode_memory)(int level);      /* of encode(), about */
    tn_status (*encode)(void *state, int level, tn_coding *coding, tn_error *err);
    tn_status (*stream_begin)(void *state, int level, uint64_t total, unsigned jobs, tn_error *err);
    tn_status (*stream_write)(void *state, const void *data, size_t n, tn_emit_fn emit, void *context,
                              tn_error *err);
    tn_status (*stream_end)(void *state, tn_emit_fn emit, void *context, tn_error *err);
} tn_codec;

extern const tn_codec tn_codec_raw, tn_codec_zstd;
extern const tn_codec tn_codec_deflate;

/* The row, or NULL if there is none. */
const tn_codec *tn_codec_of(unsigned encoding);

/* The row of this name if it can encode, or NULL. */
const tn_codec *tn_codec_named(tn_text name);

/* For data that is compressed with a codec that cannot encode. */
const tn_codec *tn_codec_usual(void);

/* The most bytes that any codec encodes n bytes to. */
size_t tn_encoded_bound(size_t n);

/* A codec with its state.  Zero-initialise to begin. */
typedef struct tn_codec_state {
    const tn_codec *codec;
    void           *state;
} tn_codec_state;

/* Opens a state of this codec, unless it has one. */
tn_status tn_codec_use(tn_codec_state *coder, const tn_codec *codec, tn_error *err);
void      tn_codec_free(tn_codec_state *coder);

#endif
