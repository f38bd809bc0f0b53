/* quant/repack.c - codes and scales moved between blocks and parts.
 *
 * Blocks of 4-bit codes keep code j of a sub-block in the low half of a byte and code j + half of it in the
 * high half; a part has neighbours in one byte.  Signed codes are two's complement in a part and begin with
 * the lowest in a block: the topmost bit is the other way round.  The zero point of a part is subtracted, the
 * minimum of a block added: it has the other sign. */
#include "quant/repack.h"

#include <string.h>

static const tn_repacking rows[] = {
    { TN_BLOCK_MXFP4, "e2m1fnuz|e8m0_t32", 16, 1, 0 },
    { TN_BLOCK_NVFP4, "e2m1fnuz|multi_float32_e4m3fn_t16", 32, 4, 0 },
    { TN_BLOCK_Q4_0, "int4|float16_t32", 16, 2, 0 },
    { TN_BLOCK_Q4_1, "uint4|float16_float16_t32", 16, 2, 2 },
    { TN_BLOCK_Q5_0, "int5|float16_t32", 20, 2, 0 },
    { TN_BLOCK_Q5_1, "uint5|float16_float16_t32", 20, 2, 2 },
    { TN_BLOCK_Q8_0, "int8|float16_t32", 32, 2, 0 },
};

const tn_repacking *tn_repacking_find(const tn_block_info *block, const char *datatype)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (block && rows[i].block == block->block && strcmp(rows[i].datatype, datatype) == 0)
            return &rows[i];
    return NULL;
}

const tn_repacking *tn_repacking_of_block(const tn_block_info *block)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].block == block->block)
            return &rows[i];
    return NULL;
}

static bool is_signed(const tn_repacking *r)
{
    return r->block == TN_BLOCK_Q4_0 || r->block == TN_BLOCK_Q5_0;
}

/* ---- codes of 4 bits ---- */

static void split_halves(const uint8_t *codes, size_t half, uint8_t flip, uint8_t *out)
{
    for (size_t i = 0; i < half / 2; i++) {
        uint8_t a = codes[2 * i] ^ flip, b = codes[2 * i + 1] ^ flip;
        out[i] = (uint8_t)((a & 15) | b << 4);
        out[half / 2 + i] = (uint8_t)(a >> 4 | (b & 0xf0));
    }
}

static void join_halves(const uint8_t *in, size_t half, uint8_t flip, uint8_t *codes)
{
    for (size_t i = 0; i < half / 2; i++) {
        uint8_t low = in[i] ^ flip, high = in[half / 2 + i] ^ flip;
        codes[2 * i] = (uint8_t)((low & 15) | high << 4);
        codes[2 * i + 1] = (uint8_t)(low >> 4 | (high & 0xf0));
    }
}

/* ---- codes of 5 bits: the topmost ones lie together ---- */

static void split_fives(const uint8_t *block, const uint8_t *codes, uint8_t flip, uint8_t *out)
{
    for (unsigned group = 0; group < 4; group++) {      /* of 8 codes, which take 5 bytes */
        uint64_t packed = 0;
        for (unsigned i = 0; i < 8; i++) {
            unsigned e = 8 * group + i, low = e < 16 ? codes[e] & 15u : codes[e - 16] >> 4;
            unsigned top = block[group] >> i & 1u;
            packed |= (uint64_t)((low | top << 4) ^ flip) << (5 * i);
        }
        for (unsigned i = 0; i < 5; i++)
            *out++ = (uint8_t)(packed >> (8 * i));
    }
}

static void join_fives(const uint8_t *in, uint8_t flip, uint8_t *block, uint8_t *codes)
{
    memset(block, 0, 4);
    memset(codes, 0, 16);
    for (unsigned group = 0; group < 4; group++) {
        uint64_t packed = 0;
        for (unsigned i = 0; i < 5; i++)
            packed |= (uint64_t)*in++ << (8 * i);
        for (unsigned i = 0; i < 8; i++) {
            unsigned e = 8 * group + i, code = ((unsigned)(packed >> (5 * i)) & 31) ^ flip;
            block[group] |= (uint8_t)((code >> 4) << i);
            codes[e % 16] |= (uint8_t)((code & 15) << (e < 16 ? 0 : 4));
        }
    }
}

/* ---- scales ---- */

static void split_number(const uint8_t *from, uint16_t flip, uint8_t *to)
{
    uint16_t number = (uint16_t)(from[0] | from[1] << 8) ^ flip;
    memcpy(to, &number, sizeof number);
}

static void join_number(const uint8_t *from, uint16_t flip, uint8_t *to)
{
    uint16_t number;
    memcpy(&number, from, sizeof number);
    number ^= flip;
    to[0] = (uint8_t)number;
    to[1] = (uint8_t)(number >> 8);
}

/* e8m0 has NaN where mxfp4 has 2^127; e4m3fn has a sign, and NaN where nvfp4 has 0. */
static bool is_same_scale(const tn_repacking *r, const uint8_t *scale)
{
    bool same = r->block != TN_BLOCK_MXFP4 || *scale != 0xff;
    for (unsigned i = 0; i < 4 && r->block == TN_BLOCK_NVFP4; i++)
        same &= scale[i] < 0x7f;
    return same;
}

/* ---- blocks ---- */

static void split_codes(const tn_repacking *r, const uint8_t *block, uint8_t *out)
{
    const uint8_t *codes = block + r->scale + r->zero;
    if (r->block == TN_BLOCK_Q8_0)
        memcpy(out, codes, 32);
    else if (r->data == 20)
        split_fives(codes, codes + 4, is_signed(r) ? 16 : 0, out);
    else if (r->block == TN_BLOCK_NVFP4)
        for (unsigned s = 0; s < 4; s++)
            split_halves(codes + 8 * s, 8, 0, out + 8 * s);
    else
        split_halves(codes, 16, is_signed(r) ? 0x88 : 0, out);
}

static void join_codes(const tn_repacking *r, const uint8_t *in, uint8_t *block)
{
    uint8_t *codes = block + r->scale + r->zero;
    if (r->block == TN_BLOCK_Q8_0)
        memcpy(codes, in, 32);
    else if (r->data == 20)
        join_fives(in, is_signed(r) ? 16 : 0, codes, codes + 4);
    else if (r->block == TN_BLOCK_NVFP4)
        for (unsigned s = 0; s < 4; s++)
            join_halves(in + 8 * s, 8, 0, codes + 8 * s);
    else
        join_halves(in, 16, is_signed(r) ? 0x88 : 0, codes);
}

size_t tn_repack_split(const tn_repacking *r, const uint8_t *blocks, size_t n, tn_repacked_parts to)
{
    const size_t bytes = tn_block_get(r->block)->bytes;
    for (size_t i = 0; i < n; i++, blocks += bytes) {
        if (!is_same_scale(r, blocks))
            return i;
        if (r->scale == 2)
            split_number(blocks, 0, to.scale + 2 * i);
        else
            memcpy(to.scale + i * r->scale, blocks, r->scale);
        if (r->zero)
            split_number(blocks + 2, 0x8000, to.zero + 2 * i);
        split_codes(r, blocks, to.data + i * r->data);
    }
    return n;
}

size_t tn_repack_join(const tn_repacking *r, tn_repacked_parts from, size_t n, uint8_t *blocks)
{
    const size_t bytes = tn_block_get(r->block)->bytes;
    for (size_t i = 0; i < n; i++, blocks += bytes) {
        if (!is_same_scale(r, from.scale + i * r->scale))
            return i;
        if (r->scale == 2)
            join_number(from.scale + 2 * i, 0, blocks);
        else
            memcpy(blocks, from.scale + i * r->scale, r->scale);
        if (r->zero)
            join_number(from.zero + 2 * i, 0x8000, blocks + 2);
        join_codes(r, from.data + i * r->data, blocks);
    }
    return n;
}
