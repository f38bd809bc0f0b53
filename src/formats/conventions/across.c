/* formats/conventions/across.c - codes that lie across the lines of a part. */
#include "formats/conventions/unpack.h"
#include "base/error.h"
#include "quant/moved_codes.h"

#include <string.h>

/* ---- codes across lines ---- */

/* Lines of words that are taken at a time, and the rows of codes in them. */
static uint64_t words_at_once(const tn_lines *how)
{
    return how->order || how->is_apart || 32 % how->bits == 0 ? 1 : how->bits;
}

static uint64_t rows_at_once(const tn_lines *how)
{
    return 32 * words_at_once(how) / how->bits;
}

static size_t row_bytes(const tn_lines *how)
{
    return (size_t)(how->width ? how->columns * how->width : (how->columns * how->bits + 7) / 8);
}

/* The codes of one row: `shift` bits up from the first bit of `low`, some of them perhaps in `high`. */
typedef struct code_row {
    const uint32_t *low, *high;
    unsigned        shift;
    uint32_t        mask;
} code_row;

static uint32_t code_at(const code_row *r, size_t column)
{
    uint64_t two = (uint64_t)r->high[column] << 32 | r->low[column];
    return (uint32_t)(two >> r->shift) & r->mask;
}

static void pack_nibbles(const code_row *r, size_t columns, uint8_t *out)
{
    size_t i = 0;
    for (; i + 1 < columns; i += 2)
        out[i / 2] = (uint8_t)((r->low[i] >> r->shift & 15) | (r->low[i + 1] >> r->shift & 15) << 4);
    if (i < columns)
        out[i / 2] = (uint8_t)(r->low[i] >> r->shift & 15);
}

static void pack_row(const tn_lines *how, const code_row *r, uint8_t *out)
{
    uint64_t bits = 0;
    unsigned have = 0;
    if (how->bits == 4) {
        pack_nibbles(r, (size_t)how->columns, out);
        return;
    }
    for (size_t i = 0; i < how->columns; i++) {
        bits |= (uint64_t)code_at(r, i) << have;
        for (have += how->bits; have >= 8; have -= 8, bits >>= 8)
            *out++ = (uint8_t)bits;
    }
    if (have)
        *out = (uint8_t)bits;
}

/* A zero point of a symmetric tensor: the middle code, or in some files one less, and always the same. */
static tn_status check_middle(tn_line_state *s, uint32_t code, tn_error *err)
{
    uint32_t middle = UINT32_C(1) << (s->how->bits - 1);
    if (!s->zero)
        s->zero = code;
    if ((code == middle || code + 1 == middle) && code == s->zero)
        return TN_OK;
    if (code == middle || code + 1 == middle)
        return tn_fail(err, TN_ERR_CORRUPT, "expected one zero point for all codes, because the "
                       "configuration says that it is symmetric (sym), but found %u and %u", s->zero, code);
    return tn_fail(err, TN_ERR_CORRUPT, "expected zero points of %u or %u, because the configuration says "
                   "that it is symmetric (sym), but found %u", middle - 1, middle, code);
}

static tn_status put_row(tn_line_state *s, const code_row *r, uint8_t *out, tn_error *err)
{
    const tn_lines *how = s->how;
    if (!how->width) {
        pack_row(how, r, out);
        return TN_OK;
    }
    if (how->width == 1 && !how->is_symmetric) {
        for (size_t i = 0; i < how->columns; i++)
            out[i] = (uint8_t)((int32_t)code_at(r, i) + how->add);
        return TN_OK;
    }
    for (size_t i = 0; i < how->columns; i++) {
        uint32_t code = code_at(r, i);
        int16_t value = (int16_t)((int32_t)code + how->add);
        if (how->is_symmetric) {
            TN_TRY(check_middle(s, code, err));
            value = (int16_t)(1 << (how->bits - 1));
        }
        const int8_t narrow = (int8_t)value;
        memcpy(out + i * how->width, how->width == 1 ? (const void *)&narrow : &value, how->width);
    }
    return TN_OK;
}

/* Eight rows at once, as they come from words of eight codes. */
static void turn_words(tn_line_state *s, const uint32_t *words, size_t bytes)
{
    static const uint8_t in_order[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const uint8_t *order = s->how->order ? s->how->order : in_order;
    uint8_t *out[8];
    for (unsigned r = 0; r < 8; r++)
        out[order[r]] = s->line + r * bytes;
    tn_codes_turn(out, words, (size_t)s->how->columns);
}

static tn_status fill_across(tn_line_state *s, tn_error *err)
{
    const tn_lines *how = s->how;
    uint64_t most = words_at_once(how), first = s->number * rows_at_once(how), rows = how->rows - first;
    uint64_t words = how->words - s->number * most;
    size_t columns = (size_t)how->columns, bytes = row_bytes(how);
    const void *lent = NULL;
    words = words < most ? words : most;
    rows = rows < rows_at_once(how) ? rows : rows_at_once(how);
    TN_TRY(tn_line_lend(s, 0, (size_t)words * columns * sizeof(uint32_t), &lent, err));
    const uint32_t *word = lent;
    s->size = (size_t)rows * bytes;
    if (how->bits == 4 && !how->width && rows == 8) {
        turn_words(s, word, bytes);
        return TN_OK;
    }
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t bit = (how->order ? how->order[r] : r) * how->bits, at = bit / 32;
        uint64_t next = at + 1 < words ? at + 1 : at;
        const code_row row = { word + at * columns, word + next * columns, (unsigned)(bit % 32),
                               (UINT32_C(1) << how->bits) - 1 };
        TN_TRY(put_row(s, &row, s->line + r * bytes, err));
    }
    return TN_OK;
}

/* The index has as many elements as the part that it is for has columns of values. */
static tn_status check_index(tn_line_state *s, tn_error *err)
{
    int32_t group;
    if (s->ninputs < 2)
        return TN_OK;
    uint64_t columns = (uint64_t)s->in[1].stream.part->array.shape[0];
    for (uint64_t i = 0; i < columns; i++) {
        TN_TRY(tn_line_take(s, 1, &group, sizeof group, err));
        if (group < 0 || (uint64_t)group != i / s->how->group)
            return tn_fail(err, TN_ERR_CORRUPT, "expected groups in order, because the configuration says so "
                           "(desc_act), but column %llu has group %d", (unsigned long long)i, (int)group);
    }
    return TN_OK;
}

bool tn_unpack_across(tn_unpacking *u, tn_lines *how)
{
    uint64_t words = words_at_once(how), rows = rows_at_once(how);
    how->fill = fill_across;
    how->begin = check_index;
    how->count = (how->words + words - 1) / words;
    how->size = (size_t)rows * row_bytes(how);
    how->scratch = (size_t)(words * how->columns) * sizeof(uint32_t);
    if (how->columns > TN_UNPACK_LINE || how->words > INT64_MAX / 32)
        return tn_unpack_refuse(u, "its rows have more than %d columns", TN_UNPACK_LINE);
    /* the last lines have the last rows */
    if (how->count && ((how->count - 1) * rows >= how->rows || how->rows > how->words * 32 / how->bits))
        return tn_unpack_refuse(u, "its codes have another shape than its scales");
    return true;
}

/* ---- groups of columns ---- */

/* All of them at once. */
static tn_status fill_index(tn_line_state *s, tn_error *err)
{
    const tn_lines *how = s->how;
    int32_t *group = (int32_t *)(void *)s->scratch, least = 0;
    TN_TRY(tn_line_take(s, 0, group, how->size, err));
    for (size_t i = 0; i < how->columns; i++)
        least = group[i] < least ? group[i] : least;
    if (least < 0 && (least < -1 || !how->may_be_unused))
        return tn_fail(err, TN_ERR_CORRUPT, "expected groups from 0 on but found %d", (int)least);
    for (size_t i = 0; i < how->columns && least < 0; i++)
        group[i] = (int32_t)(i / how->group);
    memcpy(s->line, group, how->size);
    return TN_OK;
}

bool tn_unpack_index(tn_unpacking *u, const tn_tensor *entry, uint64_t group, bool may_be_unused)
{
    const tn_input input = { entry, false };
    uint64_t columns = (uint64_t)u->shape[u->rank - 1];
    const tn_lines how = { .fill = fill_index, .columns = columns, .group = group, .count = columns != 0,
                           .size = (size_t)columns * sizeof(int32_t), .may_be_unused = may_be_unused,
                           .scratch = (size_t)columns * sizeof(int32_t) };
    return tn_unpack_lines(u, "index", &how, &input, 1);
}
