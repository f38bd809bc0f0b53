/* tensor/layout.c - letters for dimensions, and the strides they stand for. */
#include "tensor/layout.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

static const tn_layout_info layouts[] = {
    { "NCHW",  "batch, channel, height, width: PyTorch, cuDNN, ONNX" },
    { "NHWC",  "batch, height, width, channel: TensorFlow, ARM, mobile NPUs" },
    { "CHWN",  "channel, height, width, batch: some accelerators" },
    { "HWCN",
      "height, width, channel in, channel out: weights of TensorFlow and of microcontroller libraries" },
    { "1HWN",  "1, height, width, channel: depthwise weights of microcontroller libraries (MLI 1.x)" },
    { "HW1N",  "height, width, 1, channel: depthwise weights of microcontroller libraries (MLI 2.0)" },
    { "HWC",   "height, width, channel: one decoded image" },
    { "CHW",   "channel, height, width: one planar image" },
    { "NCDHW", "batch, channel, depth, height, width: volumes and video" },
    { "NDHWC", "batch, depth, height, width, channel: volumes and video, channels last" },
    { "RC",    "row, column: a row-major matrix" },
    { "CR",    "column, row: a column-major matrix" },
};

const tn_layout_info *tn_layout_at(size_t i)
{
    return i < sizeof layouts / sizeof *layouts ? &layouts[i] : NULL;
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '1';
}

/* Distinct letters, any number of them; 1 counts as one. */
static tn_status check_letters(const char *layout, tn_error *err)
{
    if (!layout)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a layout but found none");
    for (size_t i = 0; layout[i]; i++) {
        if (!is_letter(layout[i]))
            return tn_fail(err, TN_ERR_ARGUMENT, "layout %s: expected letters but found %s",
                           tn_quote_z(layout).text, tn_quote(layout + i, 1).text);
        if (memchr(layout, layout[i], i))       /* this bounds i by the number of letters */
            return tn_fail(err, TN_ERR_ARGUMENT, "layout %s: expected distinct letters but found %c twice",
                           tn_quote_z(layout).text, layout[i]);
    }
    return TN_OK;
}

tn_status tn_layout_check(const char *layout, uint32_t rank, tn_error *err)
{
    tn_status status = check_letters(layout, err);
    if (status == TN_OK && strlen(layout) != rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "layout %s: expected %" PRIu32 " letters but found %zu",
                       tn_quote_z(layout).text, rank, strlen(layout));
    return status;
}

tn_status tn_layout_check_shape(const char *layout, uint32_t rank, const int64_t *shape, tn_error *err)
{
    tn_status status = tn_layout_check(layout, rank, err);
    const char *one = status ? NULL : strchr(layout, '1');
    if (one && shape[one - layout] != 1)
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "layout %s: expected an extent of 1 where it says so but found %" PRId64,
                       tn_quote_z(layout).text, shape[one - layout]);
    return status;
}

tn_status tn_layout_order(const char *from, const char *to, uint32_t order[TN_MAX_RANK], tn_error *err)
{
    uint32_t found[TN_MAX_RANK];
    TN_GIVEN(order, "a place for the order", err);
    TN_TRY(check_letters(from, err));
    TN_TRY(check_letters(to, err));
    size_t rank = strlen(to);
    if (strlen(from) != rank)
        return tn_fail(err, TN_ERR_ARGUMENT, "layout %s has %zu letters but layout %s has %zu",
                       tn_quote_z(to).text, rank, tn_quote_z(from).text, strlen(from));
    for (size_t i = 0; i < rank; i++) {
        const char *at = memchr(from, to[i], rank);
        if (!at)
            return tn_fail(err, TN_ERR_ARGUMENT, "layout %s has the letter %c, which layout %s has not",
                           tn_quote_z(to).text, to[i], tn_quote_z(from).text);
        found[i] = (uint32_t)(at - from);
    }
    memcpy(order, found, rank * sizeof *order);
    return TN_OK;
}

tn_status tn_layout_strides(const char *layout, const int64_t *shape, const char *memory, int64_t *stride,
                            tn_error *err)
{
    uint32_t order[TN_MAX_RANK];
    int64_t strides[TN_MAX_RANK], next = 1;
    TN_TRY(tn_layout_order(layout, memory, order, err));
    size_t rank = strlen(memory);
    TN_GIVEN(shape || !rank, "a shape", err);
    TN_GIVEN(stride || !rank, "a place for the strides", err);
    bool fits = true;
    for (size_t i = rank; i-- > 0; ) {
        int64_t extent = shape[order[i]];
        if (extent < 0)
            return tn_fail(err, TN_ERR_ARGUMENT, "dimension %c has an extent of %" PRId64, memory[i], extent);
        if (!fits)
            return tn_fail(err, TN_ERR_LIMIT, "the stride of dimension %c does not fit 63 bits", memory[i]);
        strides[order[i]] = next;
        /* the last product may overflow: no stride uses it */
        fits = !__builtin_mul_overflow(next, extent, &next);
    }
    memcpy(stride, strides, rank * sizeof *stride);
    return TN_OK;
}
