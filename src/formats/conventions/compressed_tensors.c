/* formats/conventions/compressed_tensors.c - what compressed-tensors has packed: integers in words, 2:4.
 *
 *     weight_packed      [N, words]: a stream of bits along each row; before 2026 as many codes as a word
 *                        holds, which is the same for 2, 4 and 8 bits
 *     weight_zero_point  [words, groups]: a stream of bits down each column
 *     weight_g_idx       [K]: the group of each column
 *     weight_shape       N and K
 *
 * Codes and zero points are stored with half of their range added, which makes them unsigned.  Merged experts
 * have one more dimension before the others.
 *
 *     compressed [N, K / 2], bitmask [N, K / 8], shape: two values of each four, and which */
#include "formats/conventions/unpack.h"
#include "base/error.h"

#include <string.h>

enum { PACKED, SCALE, SHAPE, ZERO, G_IDX };

typedef struct packing {
    int64_t  rows, columns, groups, words;
    int64_t  expert_rows;       /* of one of several matrices; else all rows */
    uint32_t bits;
    bool     apart;             /* no code crosses the end of a word */
} packing;

static int64_t divide_up(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

static bool is_dense(const packing *p, uint32_t bits)
{
    return divide_up(p->columns * bits, 32) == p->words;
}

static bool is_apart(const packing *p, uint32_t bits)
{
    return 32 % bits && divide_up(p->columns, 32 / bits) == p->words;
}

/* The bits that the configuration says, else those that fit, if only one number does. */
static bool find_bits(tn_unpacking *u, packing *p)
{
    unsigned found = 0;
    for (uint32_t b = 2; b <= 8; b++) {
        bool dense = is_dense(p, b), apart = is_apart(p, b);
        if ((u->config->bits && u->config->bits != b) || (!dense && !apart))
            continue;
        found += dense && apart ? 2 : 1;
        p->bits = b;
        p->apart = apart;
    }
    if (found == 1)
        return true;
    return tn_unpack_refuse(u, found ? "no config.json beside the file says how many bits they have"
                                     : "its words are not those of its shape and bits");
}

/* ---- data ---- */

/* A row without the end of its last word, and without gaps. */
static tn_status fill_row(tn_line_state *s, tn_error *err)
{
    const tn_lines *how = s->how;
    uint32_t *word = (uint32_t *)(void *)s->scratch, per = 32 / how->bits;
    uint64_t bits = 0;
    unsigned have = 0;
    uint8_t *out = s->line;
    TN_TRY(tn_line_take(s, 0, word, how->scratch, err));
    for (uint64_t i = 0; i < how->columns; i++) {
        uint64_t at = how->is_symmetric ? i / per * 32 + i % per * how->bits : i * how->bits;
        uint64_t two = word[at / 32] | (uint64_t)(at % 32 + how->bits > 32 ? word[at / 32 + 1] : 0) << 32;
        bits |= (two >> at % 32 & ((UINT32_C(1) << how->bits) - 1)) << have;
        for (have += how->bits; have >= 8; have -= 8, bits >>= 8)
            *out++ = (uint8_t)bits;
    }
    if (have)
        *out = (uint8_t)bits;
    return TN_OK;
}

static bool use_data(tn_unpacking *u, const packing *p)
{
    const tn_input words = { u->from[PACKED], false };
    const tn_lines how = { .fill = fill_row, .columns = (uint64_t)p->columns, .bits = p->bits,
                           .size = (size_t)divide_up(p->columns * p->bits, 8), .count = (uint64_t)p->rows,
                           .scratch = (size_t)p->words * 4, .is_symmetric = p->apart };
    if (!p->apart && p->columns * p->bits == p->words * 32)
        return tn_unpack_take(u, "data", u->from[PACKED]);
    return tn_unpack_lines(u, "data", &how, &words, 1);
}

/* ---- zero points ---- */

static bool use_zero(tn_unpacking *u, const packing *p)
{
    const tn_input words = { u->from[ZERO], false };
    int64_t per = 32 / p->bits, experts = p->rows / p->expert_rows;
    tn_lines how = { .columns = (uint64_t)p->groups, .rows = (uint64_t)p->rows, .bits = p->bits,
                     .words = (uint64_t)divide_up(p->rows * p->bits, 32), .width = p->bits == 8 ? 2 : 1,
                     .is_apart = p->apart };
    uint64_t count = 0;
    if (!u->from[ZERO])
        return tn_unpack_constant(u, "zero", 1 << (p->bits - 1));
    if (p->apart)
        how.words = (uint64_t)divide_up(p->rows, per);
    if (experts > 1 && (p->apart ? p->expert_rows % per : p->expert_rows * p->bits % 32) != 0)
        return tn_unpack_refuse(u, "the zero points of its experts do not fill words of 32 bits");
    tn_shape_count(u->from[ZERO]->rank, u->from[ZERO]->shape, &count);
    if (count != how.words * how.columns)
        return tn_unpack_refuse(u, "its zero points are not one for each group");
    return tn_unpack_across(u, &how) && tn_unpack_lines(u, "zero", &how, &words, 1);
}

/* ---- the tensor ---- */

/* One scale of all, one for each row, or one for each group of columns. */
static bool choose_datatype(tn_unpacking *u, packing *p)
{
    const tn_tensor *scale = u->from[SCALE];
    const char *kind = tn_unpack_spelling(scale->dtype);
    bool of_tensor = scale->parts[0].nbytes * 8 == tn_dtype_get(scale->dtype)->bits && scale->rank < 2;
    int zero = p->bits == 8 ? 16 : 8;
    if (!kind)
        return tn_unpack_refuse(u, "its scales are of a type that no datatype has");
    u->dtype = scale->dtype;
    if (of_tensor && (u->from[ZERO] || u->from[G_IDX]))
        return tn_unpack_refuse(u, "it has one scale for groups of zero points");
    if (of_tensor)
        return tn_unpack_as(u, "uint%u|%s_int%d", p->bits, kind, zero);
    bool alike = scale->rank == u->rank;
    for (uint32_t i = 0; i + 1 < u->rank && alike; i++)
        alike = scale->shape[i] == u->shape[i];
    p->groups = alike ? scale->shape[u->rank - 1] : 0;
    if (p->groups < 1 || p->columns % p->groups)
        return tn_unpack_refuse(u, "its scales are not one for each group of columns");
    return tn_unpack_as(u, "%suint%u|%s_int%d_t%lld", u->from[G_IDX] ? "indexed:" : "", p->bits, kind, zero,
                        (long long)(p->groups == 1 ? 0 : p->columns / p->groups));
}

/* weight_shape has the two dimensions of a matrix, or all. */
static bool find_shape(tn_unpacking *u, packing *p)
{
    const tn_tensor *words = u->from[PACKED], *entry = u->from[SHAPE];
    int64_t shape[3] = { 0 };
    uint32_t rank = words->rank;
    if (rank != 2 && rank != 3)
        return tn_unpack_refuse(u, "it is not a matrix, or matrices of experts");
    uint32_t said = entry->parts[0].nbytes == 3 * sizeof *shape && rank == 3 ? 3 : 2;
    if (!tn_unpack_read(u, entry, shape, said * sizeof *shape))
        return false;
    p->words = words->shape[rank - 1];
    p->columns = shape[said - 1];
    p->expert_rows = words->shape[rank - 2];
    p->rows = rank == 3 ? words->shape[0] : 1;
    bool fits = shape[said - 2] == p->expert_rows && p->columns > 0 && p->columns <= TN_UNPACK_LINE &&
                p->expert_rows > 0 && p->expert_rows < INT64_MAX / 64 / (p->rows + 1);
    if (!fits)
        return tn_unpack_refuse(u, "%s says %lldx%lld, which its words do not have",
                                tn_quote_z(entry->name).text, (long long)shape[said - 2],
                                (long long)shape[said - 1]);
    p->rows *= p->expert_rows;
    u->rank = rank;
    memcpy(u->shape, words->shape, rank * sizeof *words->shape);
    u->shape[rank - 1] = p->columns;
    return true;
}

static bool use_index(tn_unpacking *u, const packing *p)
{
    const tn_tensor *index = u->from[G_IDX];
    if (index && (index->rank != 1 || index->shape[0] != p->columns))
        return tn_unpack_refuse(u, "%s has not one group for each of %lld columns",
                                tn_quote_z(index->name).text, (long long)p->columns);
    return !index || tn_unpack_index(u, index, (uint64_t)(p->columns / p->groups), true);
}

bool tn_unpack_ct_pack(tn_unpacking *u)
{
    packing p = { 0 };
    if (u->config->is_asymmetric && !u->from[ZERO])
        return tn_unpack_refuse(u, "the configuration says that they have zero points (symmetric), but there "
                                   "are none");
    if (u->config->has_actorder && !u->from[G_IDX])
        return tn_unpack_refuse(u, "the configuration says that columns have groups of their own (actorder), "
                                   "but there is no weight_g_idx");
    return tn_unpack_rename(u, ".weight") && find_shape(u, &p) && find_bits(u, &p) &&
           choose_datatype(u, &p) && use_data(u, &p) && tn_unpack_take(u, "scale", u->from[SCALE]) &&
           use_zero(u, &p) && use_index(u, &p);
}

/* ---- 2:4 ---- */

enum { BITMASK, COMPRESSED, SPARSE_SHAPE };

/* Bits of a row: two of each four. */
static tn_status fill_mask(tn_line_state *s, tn_error *err)
{
    TN_TRY(tn_line_take(s, 0, s->line, s->how->size, err));
    for (size_t i = 0; i < s->how->size; i++)
        if (__builtin_popcount(s->line[i] & 15u) != 2 || __builtin_popcount(s->line[i] >> 4) != 2)
            return tn_fail(err, TN_ERR_CORRUPT, "expected two of each four values but row %llu has others "
                           "in column %zu", (unsigned long long)s->number, i * 8);
    return TN_OK;
}

bool tn_unpack_ct_sparse(tn_unpacking *u)
{
    const tn_tensor *mask = u->from[BITMASK], *values = u->from[COMPRESSED];
    const char *kind = tn_unpack_spelling(values->dtype);
    const tn_input input = { mask, false };
    int64_t shape[2];
    if (!kind || values->dtype == TN_UINT8 || values->dtype == TN_FLOAT8_E8M0)
        return tn_unpack_refuse(u, "its values are of a type that no datatype has");
    if (!tn_unpack_rename(u, ".weight") || !tn_unpack_read(u, u->from[SPARSE_SHAPE], shape, sizeof shape))
        return false;
    if (shape[0] < 0 || shape[1] < 8 || shape[1] % 8 || shape[1] > TN_UNPACK_LINE ||
        !tn_unpack_check(u, mask, shape[0], shape[1] / 8) ||
        !tn_unpack_check(u, values, shape[0], shape[1] / 2))
        return tn_unpack_refuse(u, "its values and its mask are not those of its shape");
    const tn_lines how = { .fill = fill_mask, .columns = (uint64_t)shape[1] / 8,
                           .size = (size_t)shape[1] / 8, .count = (uint64_t)shape[0] };
    u->rank = 2;
    memcpy(u->shape, shape, sizeof shape);
    u->dtype = values->dtype;
    return tn_unpack_as(u, "%s|n2m4", kind) && tn_unpack_take(u, "data", values) &&
           tn_unpack_lines(u, "mask", &how, &input, 1);
}
