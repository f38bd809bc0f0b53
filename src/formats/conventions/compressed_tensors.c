/* formats/conventions/compressed_tensors.c - integers that compressed-tensors has packed into words.
 *
 *     weight_packed      [N, words]: a stream of bits along each row; before 2026 as many codes as a word
 *                        holds, which is the same for 2, 4 and 8 bits
 *     weight_zero_point  [words, groups]: a stream of bits down each column
 *     weight_g_idx       [K]: the group of each column
 *     weight_shape       N and K
 *
 * Codes and zero points are stored with half of their range added, which makes them unsigned. */
#include "formats/conventions/unpack.h"
#include "base/error.h"

enum { PACKED, SCALE, SHAPE, ZERO, G_IDX };

typedef struct packing {
    int64_t  rows, columns, groups, words;
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
    return tn_unpack_refuse(u, found ? "no configuration beside the file says how many bits they have"
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
    tn_lines how = { .columns = (uint64_t)p->groups, .rows = (uint64_t)p->rows, .bits = p->bits,
                     .words = (uint64_t)divide_up(p->rows * p->bits, 32), .width = p->bits == 8 ? 2 : 1 };
    if (!u->from[ZERO])
        return tn_unpack_constant(u, "zero", 1 << (p->bits - 1));
    if (p->apart)
        return tn_unpack_refuse(u, "its zero points are packed in an old way that is not read");
    return tn_unpack_check(u, u->from[ZERO], (int64_t)how.words, p->groups) && tn_unpack_across(u, &how) &&
           tn_unpack_lines(u, "zero", &how, &words, 1);
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
    if (of_tensor && u->from[ZERO])
        return tn_unpack_refuse(u, "it has one scale for groups of zero points");
    if (of_tensor)
        return tn_unpack_as(u, "uint%u|%s_int%d", p->bits, kind, zero);
    p->groups = scale->rank == 2 ? scale->shape[1] : 0;
    if (p->groups < 1 || scale->shape[0] != p->rows || p->columns % p->groups)
        return tn_unpack_refuse(u, "its scales are not one for each group of columns");
    return tn_unpack_as(u, "uint%u|%s_int%d_t%lld", p->bits, kind, zero,
                        (long long)(p->groups == 1 ? 0 : p->columns / p->groups));
}

bool tn_unpack_ct_pack(tn_unpacking *u)
{
    const tn_tensor *words = u->from[PACKED];
    int64_t shape[2];
    if (words->rank != 2)
        return tn_unpack_refuse(u, "it is not a matrix");
    if (u->from[G_IDX])
        return tn_unpack_refuse(u, "columns with groups of their own (weight_g_idx) are not read yet");
    if (!tn_unpack_rename(u, ".weight") || !tn_unpack_read(u, u->from[SHAPE], shape, sizeof shape))
        return false;
    packing p = { .rows = words->shape[0], .columns = shape[1], .words = words->shape[1] };
    if (shape[0] != p.rows || shape[1] < 1 || shape[1] > TN_UNPACK_LINE || p.rows > INT64_MAX / 8)
        return tn_unpack_refuse(u, "%s says %lldx%lld, which its words do not have",
                                tn_quote_z(u->from[SHAPE]->name).text, (long long)shape[0],
                                (long long)shape[1]);
    u->rank = 2;
    u->shape[0] = p.rows;
    u->shape[1] = p.columns;
    return find_bits(u, &p) && choose_datatype(u, &p) && use_data(u, &p) &&
           tn_unpack_take(u, "scale", u->from[SCALE]) && use_zero(u, &p);
}
