/* A codec for the test that adds one of each: every byte inverted. */
#include "bytes/codec.h"

#include <stdlib.h>

static tn_status open_flip(void **state, tn_error *err)
{
    *state = malloc(1);
    return *state ? TN_OK : tn_fail_nomem(err);
}

static tn_status begin(void *state, uint64_t window, tn_error *err)
{
    (void)state, (void)window, (void)err;
    return TN_OK;
}

static tn_status flip(void *state, tn_coding *c, tn_error *err)
{
    (void)state, (void)err;
    for (; c->nin && c->nout; c->nin--, c->nout--)
        *c->out++ = (uint8_t)~*c->in++;
    return TN_OK;
}

static tn_status encode(void *state, int level, tn_coding *c, tn_error *err)
{
    (void)level;
    return flip(state, c, err);
}

static bool at_end(const void *state)
{
    (void)state;
    return true;
}

static int no_level(void) { return 0; }
static size_t bound(size_t n) { return n; }

const tn_codec tn_codec_flip = {
    .id = TN_ENCODING_FLIP, .name = "flip", .open = open_flip, .close = free, .decode_begin = begin,
    .decode = flip, .decode_at_end = at_end, .level_min = no_level, .level_max = no_level, .bound = bound,
    .encode = encode,
};
