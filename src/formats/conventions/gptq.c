/* formats/conventions/gptq.c - GPTQ and AWQ: integers with a scale and a zero point for each group.
 *
 *     GPTQ   qweight [K * bits / 32, N]: a stream of bits down each column
 *            qzeros [groups, N * bits / 32]: a stream of bits along each row, one less than the zero point
 *            unless checkpoint_format is gptq_v2
 *     AWQ    qweight [K, N / 8], qzeros [groups, N / 8]: eight codes a word, in an order of its own
 *
 * Both have scales [groups, N], and the tensor is [N, K]: all is transposed.  g_idx [K] has the group of each
 * column of GPTQ.
 *
 *     AWQ (gemv)   qweight [N, K / 8], qzeros and scales [N, padded groups]: codes as they are */
#include "formats/conventions/unpack.h"
#include "base/error.h"

#include <string.h>

enum { QWEIGHT, SCALES, QZEROS, G_IDX };

typedef struct packed_matrix {
    int64_t  rows, columns, groups;     /* N, K */
    uint32_t bits;
    int64_t  group;                     /* columns of a group */
    const uint8_t *order;               /* of AWQ */
    bool     is_indexed;                /* columns have groups of their own */
} packed_matrix;

static tn_lines zero_lines(const tn_unpacking *u, const packed_matrix *m)
{
    bool first = !m->order && !u->config->is_gptq_v2;
    return (tn_lines){ .order = m->order, .columns = (uint64_t)m->groups, .rows = (uint64_t)m->rows,
                       .words = (uint64_t)u->from[QZEROS]->shape[1], .bits = m->bits,
                       .group = (uint64_t)m->group, .width = m->bits == 8 ? 2 : 1, .add = first ? 1 : 0,
                       .is_symmetric = !m->order && u->config->is_symmetric };
}

/* GPTQ may say that groups are in order: then they must be. */
static bool use_zeros(tn_unpacking *u, const packed_matrix *m)
{
    bool checks = !m->order && !m->is_indexed;
    const tn_input inputs[] = { { u->from[QZEROS], true }, { checks ? u->from[G_IDX] : NULL, false } };
    tn_lines how = zero_lines(u, m);
    return tn_unpack_across(u, &how) && tn_unpack_lines(u, "zero", &how, inputs, inputs[1].entry ? 2 : 1);
}

/* Columns of a group, once K and the groups are known. */
static bool find_group(tn_unpacking *u, packed_matrix *m)
{
    m->groups = u->from[SCALES]->shape[0];
    m->group = u->config->group;
    if (!m->group || m->groups == 1)
        m->group = m->groups ? m->columns / m->groups : 0;
    bool fits = m->group > 0 && m->columns / m->group + (m->columns % m->group != 0) == m->groups;
    return fits || tn_unpack_refuse(u, "its %lld groups of scales are not those of %lld columns",
                                    (long long)m->groups, (long long)m->columns);
}

static bool choose_datatype(tn_unpacking *u, const packed_matrix *m)
{
    const char *scale = tn_unpack_spelling(u->from[SCALES]->dtype);
    long long tile = m->groups == 1 ? 0 : m->group;
    u->rank = 2;
    u->shape[0] = m->rows;
    u->shape[1] = m->columns;
    u->dtype = u->from[SCALES]->dtype;
    if (!scale)
        return tn_unpack_refuse(u, "its scales are of a type that no datatype has");
    return tn_unpack_as(u, "%suint%u|%s_int%d_t%lld", m->is_indexed ? "indexed:" : "", m->bits, scale,
                        m->bits == 8 ? 16 : 8, tile);
}

static bool has_shapes(tn_unpacking *u, const packed_matrix *m)
{
    if (m->rows % 32 * m->bits % 32)
        return tn_unpack_refuse(u, "its %lld rows do not fill words of 32 bits", (long long)m->rows);
    int64_t words = m->rows / 32 * m->bits + m->rows % 32 * m->bits / 32;
    return tn_unpack_check(u, u->from[SCALES], m->groups, m->rows) &&
           tn_unpack_check(u, u->from[QZEROS], m->groups, words);
}

/* The bytes of transposed words, as they are. */
static tn_status fill_words(tn_line_state *s, tn_error *err)
{
    TN_TRY(tn_line_take(s, 0, s->line, s->how->size, err));
    if (TN_HOST_ORDER != TN_LITTLE_ENDIAN)
        tn_swap_bytes(s->line, s->line, s->how->size, sizeof(uint32_t));
    return TN_OK;
}

static bool use_gptq_data(tn_unpacking *u, const packed_matrix *m)
{
    const tn_input words = { u->from[QWEIGHT], true };
    size_t bytes = (size_t)u->from[QWEIGHT]->shape[0] * 4;
    const tn_lines how = { .fill = fill_words, .size = bytes, .count = (uint64_t)m->rows,
                           .columns = (uint64_t)m->columns, .is_alone = true, .is_copy = true };
    return tn_unpack_lines(u, "data", &how, &words, 1);
}

static bool check_index(tn_unpacking *u, const packed_matrix *m)
{
    const tn_tensor *index = u->from[G_IDX];
    return !index || (index->rank == 1 && index->shape[0] == m->columns) ||
           tn_unpack_refuse(u, "%s has not one group for each of %lld columns", tn_quote_z(index->name).text,
                            (long long)m->columns);
}

bool tn_unpack_gptq(tn_unpacking *u)
{
    const tn_tensor *words = u->from[QWEIGHT];
    packed_matrix m = { .bits = u->config->bits, .is_indexed = u->from[G_IDX] && u->config->is_reordered };
    if (!m.bits)
        return tn_unpack_refuse(u, "no config.json beside the file says how many bits they have");
    if (u->config->is_reordered && !u->from[G_IDX])
        return tn_unpack_refuse(u, "the configuration says that columns have groups of their own (desc_act), "
                                   "but there is no g_idx");
    if (m.bits != 2 && m.bits != 3 && m.bits != 4 && m.bits != 8)
        return tn_unpack_refuse(u, "%u bits are none of 2, 3, 4 and 8", m.bits);
    if (words->rank != 2 || u->from[SCALES]->rank != 2 || words->shape[0] > TN_UNPACK_LINE / 4 ||
        words->shape[0] % (m.bits == 3 ? 3 : 1))
        return tn_unpack_refuse(u, "its codes do not have the shape of %u bits", m.bits);
    m.rows = words->shape[1];
    m.columns = words->shape[0] * 32 / m.bits;
    return tn_unpack_rename(u, ".weight") && find_group(u, &m) && check_index(u, &m) && has_shapes(u, &m) &&
           choose_datatype(u, &m) && use_gptq_data(u, &m) &&
           tn_unpack_transpose(u, "scale", u->from[SCALES]) && use_zeros(u, &m) &&
           (!m.is_indexed || tn_unpack_index(u, u->from[G_IDX], (uint64_t)m.group, false));
}

/* ---- AWQ ---- */

/* Where the code of row r is in its word: row 8 c + (0, 2, 4, 6, 1, 3, 5, 7)[i] is in place i. */
static const uint8_t awq_order[] = { 0, 4, 1, 5, 2, 6, 3, 7 };

bool tn_unpack_awq(tn_unpacking *u)
{
    const tn_tensor *words = u->from[QWEIGHT];
    packed_matrix m = { .bits = 4, .order = awq_order, .columns = words->shape[0],
                        .rows = u->from[SCALES]->shape[1] };
    const tn_input data = { words, true };
    tn_lines how = { .order = awq_order, .columns = (uint64_t)m.columns, .rows = (uint64_t)m.rows,
                     .words = (uint64_t)words->shape[1], .bits = 4, .is_alone = true };
    return tn_unpack_rename(u, ".weight") && find_group(u, &m) && has_shapes(u, &m) &&
           choose_datatype(u, &m) && tn_unpack_across(u, &how) &&
           tn_unpack_lines(u, "data", &how, &data, 1) &&
           tn_unpack_transpose(u, "scale", u->from[SCALES]) && use_zeros(u, &m);
}

/* ---- AWQ (gemv) ---- */

/* The first numbers of a row; the others are padding. */
static tn_status fill_first(tn_line_state *s, tn_error *err)
{
    TN_TRY(tn_line_take(s, 0, s->scratch, s->how->scratch, err));
    memcpy(s->line, s->scratch, s->how->size);
    return TN_OK;
}

/* The same of codes of 4 bits, as integers. */
static tn_status fill_zeros(tn_line_state *s, tn_error *err)
{
    const uint32_t *word = (const uint32_t *)(const void *)s->scratch;
    TN_TRY(tn_line_take(s, 0, s->scratch, s->how->scratch, err));
    for (size_t i = 0; i < s->how->size; i++)
        s->line[i] = (uint8_t)(word[i / 8] >> 4 * (i % 8) & 15);
    return TN_OK;
}

static bool use_padded(tn_unpacking *u, const packed_matrix *m)
{
    const tn_tensor *scales = u->from[SCALES], *zeros = u->from[QZEROS];
    const tn_input of_scale = { scales, false }, of_zero = { zeros, false };
    size_t width = tn_dtype_get(scales->dtype)->bits / 8, groups = (size_t)m->groups;
    const tn_lines first = { .fill = fill_first, .size = groups * width, .count = (uint64_t)m->rows,
                             .scratch = (size_t)scales->shape[1] * width,
                             .columns = (uint64_t)scales->shape[1] };
    const tn_lines codes = { .fill = fill_zeros, .size = groups, .count = (uint64_t)m->rows,
                             .scratch = (size_t)zeros->shape[1] * sizeof(uint32_t),
                             .columns = (uint64_t)zeros->shape[1] };
    return tn_unpack_lines(u, "scale", &first, &of_scale, 1) &&
           tn_unpack_lines(u, "zero", &codes, &of_zero, 1);
}

bool tn_unpack_awq_gemv(tn_unpacking *u)
{
    const tn_tensor *words = u->from[QWEIGHT], *scales = u->from[SCALES], *zeros = u->from[QZEROS];
    packed_matrix m = { .bits = 4, .rows = words->shape[0], .group = u->config->group };
    if (words->shape[1] > TN_UNPACK_LINE / 8)
        return tn_unpack_refuse(u, "its rows have more than %d columns", TN_UNPACK_LINE);
    m.columns = words->shape[1] * 8;
    if (!m.group || !m.columns)
        return tn_unpack_refuse(u, "no config.json beside the file says how many columns a group has");
    m.groups = m.columns / m.group + (m.columns % m.group != 0);
    if (zeros->rank != 2 || zeros->shape[0] != m.rows || scales->shape[1] < m.groups ||
        zeros->shape[1] < m.groups / 8 + (m.groups % 8 != 0))
        return tn_unpack_refuse(u, "its scales or zero points are fewer than %lld groups",
                                (long long)m.groups);
    return tn_unpack_rename(u, ".weight") && choose_datatype(u, &m) && tn_unpack_take(u, "data", words) &&
           use_padded(u, &m);
}
