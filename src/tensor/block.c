/* tensor/block.c - the table of block types. */
#include "tensor/block.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define ROW(id, name, number, values, bytes, scales, fallback, ...)                     \
    [TN_BLOCK_##id] = { TN_BLOCK_##id, name, number, values, bytes, { __VA_ARGS__ }, scales, fallback }

static const tn_block_info table[TN_BLOCK_COUNT] = {
    ROW(Q4_0, "q4_0", 2, 32, 18, 1, "f16", { 0, 2, 1 }),
    ROW(Q4_1, "q4_1", 3, 32, 20, 2, "f16", { 0, 2, 2 }),
    ROW(Q5_0, "q5_0", 6, 32, 22, 1, "f16", { 0, 2, 1 }, { 2, 4, 1 }),
    ROW(Q5_1, "q5_1", 7, 32, 24, 2, "f16", { 0, 2, 2 }, { 4, 4, 1 }),
    ROW(Q8_0, "q8_0", 8, 32, 34, 1, "f16", { 0, 2, 1 }),
    ROW(Q8_1, "q8_1", 9, 32, 36, 0, "f16", { 0, 2, 2 }),     /* ggml does not look at its scale */
    ROW(Q2_K, "q2_K", 10, 256, 84, 2, "q4_0", { 80, 2, 2 }),
    ROW(Q3_K, "q3_K", 11, 256, 110, 1, "q4_0", { 108, 2, 1 }),
    ROW(Q4_K, "q4_K", 12, 256, 144, 2, "q5_0", { 0, 2, 2 }),
    ROW(Q5_K, "q5_K", 13, 256, 176, 2, "q5_1", { 0, 2, 2 }),
    ROW(Q6_K, "q6_K", 14, 256, 210, 1, "q8_0", { 208, 2, 1 }),
    ROW(Q8_K, "q8_K", 15, 256, 292, 0, "q8_0", { 0, 4, 1 }, { 260, 2, 16 }),
    ROW(IQ2_XXS, "iq2_xxs", 16, 256, 66, 1, "iq4_nl", { 0, 2, 1 }, { 2, 4, 16 }),
    ROW(IQ2_XS, "iq2_xs", 17, 256, 74, 1, "iq4_nl", { 0, 2, 1 }, { 2, 2, 32 }),
    ROW(IQ3_XXS, "iq3_xxs", 18, 256, 98, 1, "iq4_nl", { 0, 2, 1 }, { 66, 4, 8 }),
    ROW(IQ1_S, "iq1_s", 19, 256, 50, 1, "iq4_nl", { 0, 2, 1 }, { 34, 2, 8 }),
    ROW(IQ4_NL, "iq4_nl", 20, 32, 18, 1, "f16", { 0, 2, 1 }),
    ROW(IQ3_S, "iq3_s", 21, 256, 110, 1, "iq4_nl", { 0, 2, 1 }),
    ROW(IQ2_S, "iq2_s", 22, 256, 82, 1, "iq4_nl", { 0, 2, 1 }),
    ROW(IQ4_XS, "iq4_xs", 23, 256, 136, 1, "iq4_nl", { 0, 2, 2 }),
    ROW(IQ1_M, "iq1_m", 29, 256, 56, 0, "iq4_nl", { 48, 2, 4 }),
    ROW(TQ1_0, "tq1_0", 34, 256, 54, 1, "q4_0", { 52, 2, 1 }),
    ROW(TQ2_0, "tq2_0", 35, 256, 66, 1, "q4_0", { 64, 2, 1 }),
    ROW(MXFP4, "mxfp4", 39, 32, 17, 0, "f16", { 0, 0, 0 }),
    ROW(NVFP4, "nvfp4", 40, 64, 36, 0, "q8_0", { 0, 0, 0 }),
    ROW(Q1_0, "q1_0", 41, 128, 18, 1, "q8_0", { 0, 2, 1 }),
    ROW(Q2_0, "q2_0", 42, 64, 18, 1, "q8_0", { 0, 2, 1 }),
};

const tn_block_info *tn_block_get(tn_block block)
{
    return (unsigned)block < TN_BLOCK_COUNT ? &table[block] : NULL;
}

const tn_block_info *tn_block_numbered(uint32_t number)
{
    size_t i = 0;
    while (i < TN_BLOCK_COUNT && table[i].number != number)
        i++;
    return i < TN_BLOCK_COUNT ? &table[i] : NULL;
}

const tn_block_info *tn_block_named(const char *name)
{
    size_t i = 0;
    while (i < TN_BLOCK_COUNT && strcasecmp(table[i].name, name) != 0)
        i++;
    return i < TN_BLOCK_COUNT ? &table[i] : NULL;
}

const tn_block_info *tn_block_of_datatype(const char *datatype)
{
    size_t n = strlen(TN_BLOCK_PREFIX);
    return strncmp(datatype, TN_BLOCK_PREFIX, n) == 0 ? tn_block_named(datatype + n) : NULL;
}

static void reverse(uint8_t *bytes, unsigned n)
{
    for (unsigned i = 0; i < n / 2; i++) {
        uint8_t other = bytes[i];
        bytes[i] = bytes[n - 1 - i];
        bytes[n - 1 - i] = other;
    }
}

void tn_block_swap(const tn_block_info *info, uint8_t *blocks, uint64_t n)
{
    for (uint64_t k = 0; k < n; k++, blocks += info->bytes)
        for (size_t f = 0; f < sizeof info->fields / sizeof *info->fields; f++)
            for (unsigned i = 0; i < info->fields[f].count; i++)
                reverse(blocks + info->fields[f].at + i * info->fields[f].width, info->fields[f].width);
}
