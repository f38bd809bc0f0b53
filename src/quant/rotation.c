/* quant/rotation.c - rotations as text: hadamard32, walsh16:7, none. */
#include "quant/grammar/datatype_read.h"

#include <inttypes.h>
#include <stdio.h>

static const uint32_t sizes[] = { 4, 8, 16, 32, 64, 128 };

static tn_status read_size(tn_reading *r, uint32_t *size)
{
    const char *begin = r->at;
    if (tn_take_digits(r, size) && *begin != '0')
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            if (sizes[i] == *size)
                return TN_OK;
    r->at = begin;
    return tn_expected(r, "a size of 4, 8, 16, 32, 64 or 128");
}

static tn_status read_seed(tn_reading *r, uint64_t *seed)
{
    const char *begin = r->at;
    bool fits = r->at < r->end;
    *seed = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        fits = fits && !__builtin_mul_overflow(*seed, 10, seed) &&
               !__builtin_add_overflow(*seed, (uint64_t)(*r->at - '0'), seed);
    if (fits && r->at == r->end)
        return TN_OK;
    r->at = begin;
    return tn_expected(r, "a seed of 0 to 18446744073709551615");
}

static tn_status read_rotation(tn_reading *r, tn_rotation *rotation)
{
    if (tn_take_word(r, "none"))
        return r->at < r->end ? tn_expected(r, "nothing after none") : TN_OK;
    rotation->walsh = tn_take_word(r, "walsh");
    if (!rotation->walsh && !tn_take_word(r, "hadamard"))
        return tn_expected(r, "hadamardN, walshN, either with :SEED, or none");
    TN_TRY(read_size(r, &rotation->size));
    rotation->random = tn_take_word(r, ":");
    if (rotation->random)
        return read_seed(r, &rotation->seed);
    return r->at < r->end ? tn_expected(r, "nothing or :SEED after the size") : TN_OK;
}

tn_status tn_rotation_parse(const char *text, tn_rotation *rotation, tn_error *err)
{
    TN_GIVEN(text, "a rotation", err);
    TN_GIVEN(rotation, "a place for the rotation", err);
    tn_reading r = { .text = text, .at = text, .end = text + strlen(text), .err = err };
    tn_rotation read = { .size = 0 };
    TN_TRY(read_rotation(&r, &read));
    *rotation = read;
    return TN_OK;
}

int tn_rotation_format(char *dst, size_t cap, const tn_rotation *rotation)
{
    if (!rotation || rotation->size == 0)
        return snprintf(dst, cap, "none");
    const char *order = rotation->walsh ? "walsh" : "hadamard";
    if (!rotation->random)
        return snprintf(dst, cap, "%s%" PRIu32, order, rotation->size);
    return snprintf(dst, cap, "%s%" PRIu32 ":%" PRIu64, order, rotation->size, rotation->seed);
}
