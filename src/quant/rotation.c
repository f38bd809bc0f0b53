/* quant/rotation.c - rotations as text: hadamard32, walsh16:7, none. */
#include "quant/grammar/datatype_read.h"

#include <inttypes.h>
#include <stdio.h>

static const uint32_t sizes[] = { 4, 8, 16, 32, 64, 128 };

static tn_status fail_found(const tn_reading *r, const char *at, const char *expected)
{
    size_t n = (size_t)(r->end - at);
    return tn_reading_fail(r, TN_ERR_ARGUMENT, at, "expected %s but found %s", expected,
                           n ? tn_quote(at, n < 24 ? n : 24).text : "the end");
}

static tn_status read_size(tn_reading *r, uint32_t *size)
{
    const char *begin = r->at;
    if (tn_take_digits(r, size) && *begin != '0')
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            if (sizes[i] == *size)
                return TN_OK;
    return fail_found(r, begin, "a size of 4, 8, 16, 32, 64 or 128");
}

static tn_status read_seed(tn_reading *r, uint64_t *seed)
{
    const char *begin = r->at;
    bool fits = r->at < r->end;
    *seed = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        fits = fits && !__builtin_mul_overflow(*seed, 10, seed) &&
               !__builtin_add_overflow(*seed, (uint64_t)(*r->at - '0'), seed);
    if (!fits || r->at < r->end)
        return fail_found(r, begin, "a seed of 0 to 18446744073709551615");
    return TN_OK;
}

static tn_status read_rotation(tn_reading *r, tn_rotation *rotation)
{
    tn_status status;
    if (tn_take_word(r, "none"))
        return r->at < r->end ? fail_found(r, r->at, "nothing after none") : TN_OK;
    rotation->walsh = tn_take_word(r, "walsh");
    if (!rotation->walsh && !tn_take_word(r, "hadamard"))
        return fail_found(r, r->at, "hadamardN, walshN, either with :SEED, or none");
    if ((status = read_size(r, &rotation->size)))
        return status;
    rotation->random = tn_take_word(r, ":");
    if (rotation->random)
        return read_seed(r, &rotation->seed);
    return r->at < r->end ? fail_found(r, r->at, "nothing or :SEED after the size") : TN_OK;
}

tn_status tn_rotation_parse(const char *text, tn_rotation *rotation, tn_error *err)
{
    tn_reading r = { .text = text, .at = text, .end = text + strlen(text), .err = err };
    tn_rotation read = { .size = 0 };
    TN_TRY(read_rotation(&r, &read));
    *rotation = read;
    return TN_OK;
}

int tn_rotation_format(char *dst, size_t cap, const tn_rotation *rotation)
{
    const char *order = rotation->walsh ? "walsh" : "hadamard";
    if (rotation->size == 0)
        return snprintf(dst, cap, "none");
    if (!rotation->random)
        return snprintf(dst, cap, "%s%" PRIu32, order, rotation->size);
    return snprintf(dst, cap, "%s%" PRIu32 ":%" PRIu64, order, rotation->size, rotation->seed);
}
