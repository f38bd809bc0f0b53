/* test_move.c - tn_move() against MLI's mov and permute, against index arithmetic, and every bad argument. */
#include "support.h"

#include <stdbool.h>
#include <stdio.h>

#include <zstd.h>

#include "files.h"
#include "side.h"

#include <tenon/layout.h>

static void check_text(const tn_error *err, const char *text)
{
    if (!strstr(line_of(err), text))
        fail_msg("expected \"%s\" but found: %s", text, line_of(err));
}

/* --- MLI's answers ------------------------------------------------------------ */

typedef struct golden_side {
    int64_t     shape[4], stride[4];
    int64_t     axis;           /* of its parameters; below 0: one for all */
    size_t      n;              /* bytes of its buffer */
    const char *bytes, *parameters;     /* the latter NULL: it has none */
} golden_side;

typedef struct golden {
    tn_dtype    dtype;
    uint32_t    rank;
    size_t      size;           /* bytes of an element */
    golden_side src, dst;
    int64_t     offset[4], extent[4], step[4], at[4], before[4], after[4];
    uint32_t    order[4];
} golden;

typedef struct tally {
    size_t rows, affine, differ;
} tally;

static char *load_blob(const char *path)
{
    size_t n;
    uint8_t *packed = load_file(path, &n);
    size_t size = (size_t)ZSTD_getFrameContentSize(packed, n);
    CHECK(size < 1 << 20);
    char *blob = malloc(size);
    assert_non_null(blob);
    CHECK(ZSTD_decompress(blob, size, packed, n) == size);
    free(packed);
    return blob;
}

/* "1,2,3" or, where all items are `usual`, "-"; returns how many there are. */
static uint32_t read_list(const char *text, int64_t usual, int64_t list[4])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 4; i++)
        list[i] = usual;
    for (char *end; *text && *text != '-' && n < 4; text = *end ? end + 1 : end)
        list[n++] = strtoll(text, &end, 10);
    return n;
}

static void read_side(golden *g, golden_side *s, char *const *field, const char *axis, const char *parameters,
                      const char *blob)
{
    int64_t last = 0;
    g->rank = read_list(field[0], 1, s->shape);
    CHECK(read_list(field[1], 1, s->stride) == g->rank);
    for (uint32_t i = 0; i < g->rank; i++)
        last += (s->shape[i] - 1) * s->stride[i];
    s->n = (size_t)(last + 1) * g->size;
    s->bytes = blob + strtoul(field[2], NULL, 10);
    s->axis = strtol(axis, NULL, 10);
    s->parameters = *parameters == '-' ? NULL : blob + strtoul(parameters, NULL, 10);
}

static golden read_golden(char *line, const char *blob)
{
    static const struct { const char *name; tn_dtype dtype; } types[] = {
        { "fx8", TN_INT8 }, { "fx16", TN_INT16 }, { "sa8", TN_INT8 }, { "sa32", TN_INT32 },
        { "fp32", TN_FLOAT32 },
    };
    golden g = { .dtype = TN_UNKNOWN };
    char *field[18], *rest = line;
    int64_t order[4];
    for (size_t i = 0; i < 18; i++)
        assert_non_null(field[i] = strsep(&rest, "\t\n"));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        g.dtype = strcmp(field[0], types[i].name) == 0 ? types[i].dtype : g.dtype;
    CHECK(g.dtype != TN_UNKNOWN);
    g.size = tn_dtype_get(g.dtype)->bits / 8;
    read_side(&g, &g.src, &field[1], field[14], field[16], blob);
    read_side(&g, &g.dst, &field[4], field[15], field[17], blob);
    read_list(field[7], 0, g.offset);
    read_list(field[8], 0, g.extent);
    read_list(field[9], 1, g.step);
    read_list(field[10], 0, g.at);
    bool given = read_list(field[11], 0, order);
    read_list(field[12], 0, g.before);
    read_list(field[13], 0, g.after);
    for (uint32_t i = 0; i < g.rank; i++)
        g.order[i] = given ? (uint32_t)order[i] : i;
    return g;
}

static tn_move_options options_of(const golden *g)
{
    return (tn_move_options){ .size = sizeof(tn_move_options), .before = g->before, .after = g->after,
                              .offset = g->offset,
                              .extent = g->extent, .step = g->step, .order = g->order };
}

/* Into the part of `to`, a buffer of the destination, that lies at its offset. */
static void move_golden(const golden *g, uint8_t *to, const uint8_t *from, const void *fill)
{
    tn_move_options o = options_of(g);
    int64_t shape[4], place = 0;
    tn_error err = { .text = "" };
    o.fill = fill;
    CHECK(tn_move_shape(g->rank, g->src.shape, &o, shape, &err) == TN_OK);
    for (uint32_t i = 0; i < g->rank; i++) {
        CHECK(shape[i] + g->at[i] == g->dst.shape[i]);
        place += g->at[i] * g->dst.stride[i];
    }
    const tn_array dst = { g->dtype, g->rank, shape, g->dst.stride },
    src = { g->dtype, g->rank, g->src.shape, g->src.stride };
    if (tn_move(&dst, to + (size_t)place * g->size, &src, from, &o, &err))
        fail_msg("%s", line_of(&err));
}

/* A parameter of each index of the axis, as an array of its own; the golden that says how it moves. */
static golden along_the_axis(const golden *g, tn_dtype dtype)
{
    size_t from = (size_t)g->src.axis, to = (size_t)g->dst.axis;
    golden p = { .dtype = dtype, .rank = 1, .size = tn_dtype_get(dtype)->bits / 8 };
    p.src.shape[0] = g->src.shape[from];
    p.dst.shape[0] = g->dst.shape[to];
    p.src.stride[0] = p.dst.stride[0] = 1;
    p.src.n = (size_t)p.src.shape[0] * p.size;
    p.dst.n = (size_t)p.dst.shape[0] * p.size;
    p.before[0] = g->before[from];
    p.after[0] = g->after[from];
    p.offset[0] = g->offset[from];
    p.extent[0] = g->extent[from];
    p.step[0] = g->step[from];
    p.at[0] = g->at[to];
    return p;
}

/* Scales, zero points and fractional bits; what was not written was 0. */
static void check_parameters(const golden *g)
{
    static const struct { tn_dtype dtype; int16_t fill; } kinds[] = { { TN_INT16, 1 }, { TN_INT16, 0 },
                                                                      { TN_INT8, 0 } };
    const char *from = g->src.parameters, *to = g->dst.parameters;
    CHECK(g->order[g->dst.axis] == (uint32_t)g->src.axis);
    for (size_t i = 0; i < 3; i++) {
        golden p = along_the_axis(g, kinds[i].dtype);
        uint8_t *in = exact_copy(from, p.src.n), *out = calloc(p.dst.n, 1);
        assert_non_null(out);
        move_golden(&p, out, in, &kinds[i].fill);
        assert_memory_equal(out, to, p.dst.n);
        free(in);
        free(out);
        from += p.src.n;
        to += p.dst.n;
    }
}

static uint8_t *new_buffer(const golden *g)
{
    uint8_t *out = malloc(g->dst.n);
    assert_non_null(out);
    memset(out, 0xA5, g->dst.n);
    return out;
}

static int32_t zero_at(const golden *g, int64_t index)
{
    int64_t n = g->src.axis < 0 ? 1 : g->src.shape[g->src.axis];
    int16_t zero = 0;
    if (index >= 0 && index < n)
        memcpy(&zero, g->src.parameters + (size_t)(n + index) * 2, 2);
    return zero;
}

/* Padding that means zero: index by index of the axis, a box each. */
static void move_with_zero_points(const golden *g, uint8_t *to, const uint8_t *from)
{
    if (g->src.axis < 0) {
        int32_t zero = zero_at(g, 0);
        move_golden(g, to, from, &zero);
        return;
    }
    size_t axis = (size_t)g->src.axis, new_axis = (size_t)g->dst.axis;
    for (int64_t w = 0; w < g->dst.shape[new_axis] - g->at[new_axis]; w++) {
        golden one = *g;
        one.offset[axis] += w * g->step[axis];
        one.extent[axis] = 1;
        one.at[new_axis] += w;
        one.dst.shape[new_axis] = one.at[new_axis] + 1;
        int32_t zero = zero_at(g, one.offset[axis] - g->before[axis]);
        move_golden(&one, to, from, &zero);
    }
}

static bool pads_with_a_zero_point(const golden *g)
{
    bool pads = false, any = false;
    for (uint32_t i = 0; i < g->rank; i++)
        pads |= g->before[i] || g->after[i];
    for (int64_t i = 0; i < (g->src.axis < 0 ? 1 : g->src.shape[g->src.axis]); i++)
        any |= zero_at(g, i) != 0;
    return pads && any;
}

static void check_golden(const golden *g, tally *t)
{
    uint8_t *in = exact_copy(g->src.bytes, g->src.n), *out = new_buffer(g), *affine = new_buffer(g);
    move_golden(g, out, in, NULL);
    assert_memory_equal(out, g->dst.bytes, g->dst.n);
    t->rows++;
    if (g->src.parameters) {
        if (g->src.axis >= 0)
            check_parameters(g);
        else
            CHECK(g->dst.axis < 0 && memcmp(g->src.parameters, g->dst.parameters, 5) == 0);
        move_with_zero_points(g, affine, in);
        bool differs = memcmp(affine, out, g->dst.n) != 0;
        CHECK(!differs || pads_with_a_zero_point(g));
        t->affine += pads_with_a_zero_point(g);
        t->differ += differs;
    }
    free(in);
    free(out);
    free(affine);
}

static tally check_table(const char *table, const char *blob_path)
{
    char line[512], *blob = load_blob(blob_path);
    FILE *f = fopen(table, "r");
    tally t = { 0 };
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#')
            continue;
        golden g = read_golden(line, blob);
        check_golden(&g, &t);
    }
    fclose(f);
    free(blob);
    return t;
}

static void mlis_permutations_are_met_byte_by_byte(void)
{
    tally t = check_table(TEST_GOLDEN "/mli/permute.tsv", TEST_GOLDEN "/mli/permute.zst");
    CHECK(t.rows == 99 && t.affine == 0 && t.differ == 0);
}

/* MLI pads with raw 0.  Where a zero point is meant instead, this is seen in 32 of the 35 that pad and have
 * one: in the others the box has no padding in it, or only such as has no zero point, or one of 0. */
static void mlis_moves_are_met_byte_by_byte(void)
{
    tally t = check_table(TEST_GOLDEN "/mli/mov.tsv", TEST_GOLDEN "/mli/mov.zst");
    CHECK(t.rows == 239 && t.affine == 35 && t.differ == 32);
}

/* --- index arithmetic --------------------------------------------------------- */

typedef struct task {
    int64_t  before[MAX_DIMS], after[MAX_DIMS], offset[MAX_DIMS], extent[MAX_DIMS], step[MAX_DIMS];
    uint32_t order[MAX_DIMS];
    uint8_t  fill[16];
} task;

/* Elements of the result along dimension k of the source. */
static int64_t count_of(const side *src, const task *t, uint32_t k)
{
    int64_t box = t->extent[k] ? t->extent[k] : t->before[k] + src->shape[k] + t->after[k] - t->offset[k],
            n = 0;
    for (int64_t i = 0; i < box; i += t->step[k])
        n++;
    return n;
}

static void make_task(side *dst, side *src, task *t)
{
    bool pads = below(4), cuts = below(4), thins = below(3) == 0;
    src->rank = dst->rank = (uint32_t)below(MAX_DIMS);        /* more of them take long */
    shuffle(t->order, src->rank);
    for (uint32_t k = 0; k < src->rank; k++) {
        src->shape[k] = below(40) ? 1 + (int64_t)below(src->rank < 3 ? 40 : 7) : 0;
        t->before[k] = pads && below(2) ? (int64_t)below(6) : 0;
        t->after[k] = pads && below(2) ? (int64_t)below(6) : 0;
        int64_t padded = t->before[k] + src->shape[k] + t->after[k];
        t->offset[k] =
            cuts && below(2) ? (int64_t)below((uint64_t)padded + (padded == 0 || below(20) == 0)) : 0;
        t->extent[k] = cuts && below(2) ? (int64_t)below((uint64_t)(padded - t->offset[k]) + 1) : 0;
        t->step[k] = thins ? 1 + (int64_t)below(below(9) ? 4 : 60) : 1;
    }
    for (uint32_t i = 0; i < dst->rank; i++)
        dst->shape[i] = count_of(src, t, t->order[i]);
    for (size_t i = 0; i < sizeof t->fill; i++)
        t->fill[i] = (uint8_t)below(256);
}

static bool is_empty(const side *s)
{
    bool empty = false;
    for (uint32_t i = 0; i < s->rank; i++)
        empty |= s->shape[i] == 0;
    return empty;
}

/* What is behind the padding before the source's elements begins on a byte, dimension by dimension. */
static bool leads_end_on_bytes(const side *dst, const task *t)
{
    int64_t place = 0;
    for (uint32_t i = 0; i < dst->rank && !is_empty(dst); i++) {
        uint32_t k = t->order[i];
        int64_t lead = 0;
        while (lead < dst->shape[i] && t->offset[k] + lead * t->step[k] < t->before[k])
            lead++;
        if (lead == dst->shape[i])      /* nothing is behind it */
            return true;
        place += lead * dst->stride[i] * dst->bits;
        if (place % 8)
            return false;
    }
    return true;
}

/* The definition, element by element of dst.  Returns whether the first one read begins on a byte. */
static bool expect(const side *dst, uint8_t *out, const side *src, const task *t)
{
    int64_t index[MAX_DIMS] = { 0 };
    bool any = false, more = !is_empty(dst), on_byte = true;
    while (more) {
        int64_t to = dst->first * 8, from = src->first * 8;
        bool inside = true;
        for (uint32_t i = 0; i < dst->rank; i++) {
            uint32_t k = t->order[i];
            int64_t at = t->offset[k] + index[i] * t->step[k] - t->before[k];
            inside &= at >= 0 && at < src->shape[k];
            to += index[i] * dst->stride[i] * dst->bits;
            from += at * src->stride[k] * src->bits;
        }
        if (inside)
            copy_bits(out, to, src->buffer, from, dst->bits);
        else
            copy_bits(out, to, t->fill, 0, dst->bits);
        on_byte &= any || !inside || from % 8 == 0;
        any |= inside;
        more = false;
        for (uint32_t i = dst->rank; i-- > 0 && !more; index[i] = more ? index[i] : 0)
            more = ++index[i] < dst->shape[i];
    }
    return on_byte;
}

/* Returns whether it was done; elements narrower than a byte need not be. */
static bool check_case(tn_dtype dtype, unsigned jobs)
{
    side src = { .dtype = dtype, .bits = tn_dtype_get(dtype)->bits }, dst = src;
    task t = { .step = { 0 } };
    tn_error err = { .text = "" };
    int64_t shape[MAX_DIMS] = { 0 };
    make_task(&dst, &src, &t);
    make_strides(&src, true);
    make_buffer(&src);
    make_strides(&dst, false);
    make_buffer(&dst);
    uint8_t *wanted = exact_copy(dst.buffer, dst.size), *before = exact_copy(dst.buffer, dst.size);
    bool moves = expect(&dst, wanted, &src, &t) && leads_end_on_bytes(&dst, &t);
    const tn_array to = array_of(&dst), from = array_of(&src);
    const tn_move_options o = { sizeof o, t.before, t.after, t.offset, t.extent, t.step, t.order, t.fill,
                                jobs };
    CHECK(tn_move_shape(src.rank, src.shape, &o, shape, &err) == TN_OK &&
          memcmp(shape, dst.shape, sizeof shape) == 0);
    tn_status status = tn_move(&to, dst.buffer + dst.first, &from, src.buffer + src.first, &o, &err);
    if (status != (moves ? TN_OK : TN_ERR_UNSUPPORTED))
        fail_msg("status %d, %s", status, line_of(&err));
    assert_memory_equal(dst.buffer, status ? before : wanted, dst.size);
    free(wanted);
    free(before);
    free(src.buffer);
    free(dst.buffer);
    return !status;
}

static void boxes_are_where_index_arithmetic_finds_them(void)
{
    static const tn_dtype types[] = { TN_INT8, TN_FLOAT16, TN_FLOAT32, TN_INT64, TN_COMPLEX128 };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (size_t i = 0; i < 600; i++)
            CHECK(check_case(types[k], i % 3 ? 1 : 2));
}

static void elements_narrower_than_a_byte_are_moved_or_refused(void)
{
    static const tn_dtype types[] = { TN_INT4, TN_UINT2, TN_FLOAT6_E2M3 };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        size_t moved = 0;
        for (size_t i = 0; i < 600; i++)
            moved += check_case(types[k], 1);
        CHECK(moved > 100 && moved < 500);
    }
}

static void threads_share_the_work(void)
{
    enum { ROWS = 900, COLUMNS = 1100, BEFORE = 3 };
    int16_t *src = malloc(ROWS * COLUMNS * sizeof *src),
            *dst = malloc((ROWS + BEFORE) * COLUMNS * sizeof *dst), fill = -7;
    const int64_t shape[] = { ROWS, COLUMNS }, result[] = { COLUMNS, ROWS + BEFORE };
    assert_true(src && dst);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        src[i] = (int16_t)below(65536);
    const tn_array from = { TN_INT16, 2, shape, NULL }, to = { TN_INT16, 2, result, NULL };
    const tn_move_options o = { .size = sizeof o, .before = (int64_t[]){ BEFORE, 0 },
                                .order = (uint32_t[]){ 1, 0 }, .fill = &fill, .jobs = 3 };
    CHECK(tn_move(&to, dst, &from, src, &o, NULL) == TN_OK);
    for (size_t c = 0; c < COLUMNS; c++)
        for (size_t r = 0; r < ROWS + BEFORE; r++)
            CHECK(dst[c * (ROWS + BEFORE) + r] == (r < BEFORE ? fill : src[(r - BEFORE) * COLUMNS + c]));
    free(src);
    free(dst);
}

/* --- options ------------------------------------------------------------------- */

static void without_options_everything_is_copied(void)
{
    const uint8_t src[] = { 1, 2, 3, 4, 5, 6 };
    uint8_t dst[6] = { 0 };
    const int64_t shape[] = { 2, 3 };
    const tn_array a = { TN_UINT8, 2, shape, NULL };
    const tn_move_options none = { .size = sizeof none }, forgotten = { 0 };
    CHECK(tn_move(&a, dst, &a, src, NULL, NULL) == TN_OK && memcmp(dst, src, 6) == 0);
    memset(dst, 0, 6);
    CHECK(tn_move(&a, dst, &a, src, &none, NULL) == TN_OK && memcmp(dst, src, 6) == 0);
    memset(dst, 0, 6);
    CHECK(tn_move(&a, dst, &a, src, &forgotten, NULL) == TN_ERR_ARGUMENT && dst[0] == 0);
    const tn_array scalar = { .dtype = TN_UINT8 };
    CHECK(tn_move(&scalar, dst, &scalar, src + 4, NULL, NULL) == TN_OK && dst[0] == 5 && dst[1] == 0);
    CHECK(tn_move_shape(0, NULL, NULL, NULL, NULL) == TN_OK);
}

static void what_lies_in_padding_alone_needs_no_source(void)
{
    uint8_t dst[3] = { 0 }, fill = 9;
    const tn_array to = { TN_UINT8, 1, (int64_t[]){ 3 }, NULL },
    from = { TN_UINT8, 1, (int64_t[]){ 5 }, NULL };
    const tn_array none = { TN_UINT8, 1, (int64_t[]){ 0 }, NULL };
    tn_move_options o = { .size = sizeof o, .before = (int64_t[]){ 4 }, .after = (int64_t[]){ 4 },
                          .offset = (int64_t[]){ 1 },
                          .extent = (int64_t[]){ 3 }, .fill = &fill };
    CHECK(tn_move(&to, dst, &from, NULL, &o, NULL) == TN_OK && dst[0] == 9 && dst[1] == 9 && dst[2] == 9);
    o.offset = (int64_t[]){ 10 };
    fill = 8;
    CHECK(tn_move(&to, dst, &from, NULL, &o, NULL) == TN_OK && dst[0] == 8 && dst[1] == 8 && dst[2] == 8);
    o.offset = (int64_t[]){ 2 };
    fill = 7;
    CHECK(tn_move(&to, dst, &none, NULL, &o, NULL) == TN_OK && dst[0] == 7 && dst[2] == 7);
    /* one element has no next one */
    const tn_array far = { TN_UINT8, 1, (int64_t[]){ 1 }, &(int64_t){ INT64_MAX } };
    o.extent = (int64_t[]){ 1 };
    fill = 6;
    CHECK(tn_move(&far, dst, &far, NULL, &o, NULL) == TN_OK && dst[0] == 6 && dst[1] == 7);
    o.offset = (int64_t[]){ 13 };
    o.extent = NULL;
    CHECK(tn_move(&none, NULL, &from, NULL, &o, NULL) == TN_OK);        /* an empty box */
}

static void extents_up_to_63_bits_are_no_trouble(void)
{
    const int64_t most = INT64_MAX;
    int64_t shape[1] = { 0 };
    const uint8_t value = 42;
    uint8_t dst[3] = { 0 }, fill = 9;
    tn_move_options o = { .size = sizeof o, .step = &most };
    CHECK(tn_move_shape(1, &most, &o, shape, NULL) == TN_OK && shape[0] == 1);
    o = (tn_move_options){ .size = sizeof o, .before = (int64_t[]){ most - 5 }, .offset = (int64_t[]){ 1 },
                           .step = (int64_t[]){ most - 7 } };
    CHECK(tn_move_shape(1, (int64_t[]){ 5 }, &o, shape, NULL) == TN_OK && shape[0] == 2);
    o.fill = &fill;
    CHECK(tn_move(&(tn_array){ TN_UINT8, 1, shape, NULL }, dst, &(tn_array){ TN_UINT8, 1, (int64_t[]){ 5 },
                                                                             NULL },
                  (uint8_t[]){ 10, 11, 12, 13, 14 }, &o, NULL) == TN_OK);
    /* places 1 and most - 6: the source begins at most - 5 */
    CHECK(dst[0] == 9 && dst[1] == 9 && dst[2] == 0);
    o = (tn_move_options){ .size = sizeof o, .offset = (int64_t[]){ most - 2 } };
    const tn_array everywhere = { TN_UINT8, 1, &most, (int64_t[]){ 0 } },
    two = { TN_UINT8, 1, (int64_t[]){ 2 }, NULL };
    CHECK(tn_move(&two, dst, &everywhere, &value, &o, NULL) == TN_OK && dst[0] == 42 && dst[1] == 42 &&
          dst[2] == 0);
}

/* --- refusals ------------------------------------------------------------------ */

/* Of 2 x 3 elements. */
static void refuse(const tn_move_options *o, tn_status status, const char *text)
{
    tn_error err = { .text = "" };
    int64_t shape[2] = { 77, 77 };
    uint8_t dst[6] = { 0 };
    const int64_t given[] = { 2, 3 };
    const tn_array a = { TN_UINT8, 2, given, NULL };
    CHECK(tn_move_shape(2, given, o, shape, &err) == status && shape[0] == 77 && shape[1] == 77);
    check_text(&err, text);
    CHECK(tn_move(&a, dst, &a, (uint8_t[]){ 1, 2, 3, 4, 5, 6 }, o, &err) == status && dst[0] == 0);
    check_text(&err, text);
    CHECK(tn_move_shape(2, given, o, shape, NULL) == status);
}

#define LIST(name, a, b) &(tn_move_options){ .size = sizeof(tn_move_options), .name = (int64_t[]){ a, b } }

static void a_box_lies_inside(void)
{
    refuse(LIST(before, 0, -1), TN_ERR_ARGUMENT,
           "dimension 1: expected an extent and padding from 0 on but found 3 with -1 before and 0 after");
    refuse(LIST(after, INT64_MIN, 0), TN_ERR_ARGUMENT,
           "dimension 0: expected an extent and padding from 0 on");
    refuse(LIST(before, INT64_MAX - 1, 0), TN_ERR_LIMIT,
           "dimension 0: 2 elements with 9223372036854775806 before and 0 after do not fit");
    refuse(LIST(after, 0, INT64_MAX - 2), TN_ERR_LIMIT,
           "dimension 1: 3 elements with 0 before and 9223372036854775805 after do not fit");
    refuse(&(tn_move_options){ .size = sizeof(tn_move_options), .before = (int64_t[]){ INT64_MAX / 2, 0 },
                               .after = (int64_t[]){ INT64_MAX / 2, 0 } },
           TN_ERR_LIMIT, "do not fit 63 bits");
    refuse(LIST(offset, 0, -1), TN_ERR_ARGUMENT,
           "dimension 1: expected a box inside 3 elements but found 0 from -1 on");
    refuse(LIST(offset, 0, 4), TN_ERR_ARGUMENT, "found 0 from 4 on");
    refuse(LIST(offset, INT64_MAX, 0), TN_ERR_ARGUMENT, "dimension 0: expected a box inside 2 elements");
    refuse(LIST(extent, 0, 4), TN_ERR_ARGUMENT,
           "dimension 1: expected a box inside 3 elements but found 4 from 0 on");
    refuse(&(tn_move_options){ .size = sizeof(tn_move_options), .offset = (int64_t[]){ 0, 2 },
                               .extent = (int64_t[]){ 0, 2 } },
           TN_ERR_ARGUMENT, "dimension 1: expected a box inside 3 elements but found 2 from 2 on");
    refuse(LIST(extent, -1, 0), TN_ERR_ARGUMENT, "found -1 from 0 on");
    refuse(&(tn_move_options){ .size = sizeof(tn_move_options), .offset = (int64_t[]){ 1, 0 },
                               .extent = (int64_t[]){ INT64_MAX, 0 } },
           TN_ERR_ARGUMENT, "found 9223372036854775807 from 1 on");
    refuse(LIST(step, 1, 0), TN_ERR_ARGUMENT, "dimension 1: expected a step from 1 on but found 0");
    refuse(LIST(step, INT64_MIN, 1), TN_ERR_ARGUMENT, "dimension 0: expected a step from 1 on");
}

static void an_order_is_a_permutation(void)
{
    refuse(&(tn_move_options){ .size = sizeof(tn_move_options), .order = (uint32_t[]){ 0, 2 } },
           TN_ERR_ARGUMENT, "order[1]: expected a dimension below 2");
    refuse(&(tn_move_options){ .size = sizeof(tn_move_options), .order = (uint32_t[]){ 1, 1 } },
           TN_ERR_ARGUMENT, "for the second time");
}

static void shapes_are_known_and_fit(void)
{
    static const int64_t many[TN_MAX_RANK + 1] = { 0 };
    int64_t result[TN_MAX_RANK];
    tn_error err = { .text = "" };
    CHECK(tn_move_shape(TN_MAX_RANK + 1, many, NULL, result, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "at most 64 dimensions but found one of 65");
    CHECK(tn_move_shape(1, NULL, NULL, result, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_move_shape(1, (int64_t[]){ -1 }, NULL, result, &err) == TN_ERR_ARGUMENT);
    check_text(&err, "dimension 0: expected an extent and padding from 0 on but found -1");
    CHECK(tn_move_shape(TN_MAX_RANK, many, NULL, result, &err) == TN_OK);
}

/* What would be wrong at its end is seen at once: nothing is written. */
static void refuse_arrays(const tn_array *dst, const tn_array *src, bool data, tn_status status,
                          const char *text)
{
    tn_error err = { .text = "" };
    uint8_t to[64], from[64] = { 0 }, zero[64] = { 0 };
    const tn_move_options o = { .size = sizeof o, .before = (int64_t[]){ 1 }, .fill = "\x55" };
    memset(to, 0, sizeof to);
    CHECK(tn_move(dst, to, src, data ? from : NULL, &o, &err) == status);
    check_text(&err, text);
    assert_memory_equal(to, zero, sizeof to);
    CHECK(tn_move(dst, to, src, data ? from : NULL, &o, NULL) == status);
}

#define ARRAY(dtype, n, stride) &(tn_array){ dtype, 1, (int64_t[]){ n }, (int64_t[]){ stride } }

static void arrays_fit_each_other_and_themselves(void)
{
    refuse_arrays(ARRAY(TN_INT8, 3, 1), ARRAY(TN_INT8, 3, 1), true, TN_ERR_ARGUMENT,
                  "dimension 0: expected 4 elements in the destination but found 3");
    refuse_arrays(ARRAY(TN_INT8, 4, 1), ARRAY(TN_UINT8, 3, 1), true, TN_ERR_ARGUMENT,
                  "the destination is of int8 but the source of uint8");
    refuse_arrays(&(tn_array){ .dtype = TN_INT8 }, ARRAY(TN_INT8, 3, 1), true, TN_ERR_ARGUMENT,
                  "the destination has rank 0 but the source has 1");
    refuse_arrays(ARRAY(TN_INT8, 4, 1), ARRAY(TN_INT8, -3, 1), true, TN_ERR_ARGUMENT, "the source has");
    refuse_arrays(ARRAY(TN_INT8, 2, 0), ARRAY(TN_INT8, 1, 1), true, TN_ERR_ARGUMENT,
                  "the destination has a stride of 0: 2 elements in one place");
    refuse_arrays(ARRAY(TN_INT8, 4, 1), ARRAY(TN_INT8, 3, INT64_MAX), true, TN_ERR_ARGUMENT,
                  "the source has a stride of 9223372036854775807 for 3 elements");
    refuse_arrays(ARRAY(TN_INT8, 4, INT64_MIN), ARRAY(TN_INT8, 3, 1), true, TN_ERR_ARGUMENT,
                  "the destination has a stride of -9223372036854775808");
    refuse_arrays(ARRAY(TN_INT8, 2, INT64_MAX / 8), ARRAY(TN_INT8, 1, 1), true, TN_ERR_ARGUMENT,
                  "beyond what 63 bits can count");
    refuse_arrays(ARRAY(TN_INT8, 4, 1), ARRAY(TN_INT8, 3, 1), false, TN_ERR_ARGUMENT,
                  "the source has no data");
    refuse_arrays(ARRAY(TN_INT4, 4, -2), ARRAY(TN_INT4, 3, 1), true, TN_ERR_ARGUMENT,
                  "elements of 4 bits must have strides from 0 on, but found -2");
    refuse_arrays(ARRAY(TN_INT4, 4, 2), ARRAY(TN_INT4, 3, -1), true, TN_ERR_ARGUMENT,
                  "elements of 4 bits must have strides from 0 on, but found -1");
    refuse_arrays(ARRAY(TN_INT4, 4, 1), ARRAY(TN_INT4, 3, 1), true, TN_ERR_UNSUPPORTED,
                  "place 1 of the destination, in elements of 4 bits, does not begin on a byte");
    CHECK(tn_move(ARRAY(TN_INT8, 4, 1), NULL, ARRAY(TN_INT8, 4, 1), "abcd", NULL, NULL) == TN_ERR_ARGUMENT);
}

static void a_box_of_packed_elements_begins_on_a_byte(void)
{
    const uint8_t src[] = { 0x21, 0x43, 0x65 };
    uint8_t dst[2] = { 0, 0 };
    int64_t offset = 1;
    const tn_move_options o = { .size = sizeof o, .offset = &offset, .extent = (int64_t[]){ 3 } };
    const tn_array from = { TN_UINT4, 1, (int64_t[]){ 6 }, NULL },
    to = { TN_UINT4, 1, (int64_t[]){ 3 }, NULL };
    tn_error err = { .text = "" };
    CHECK(tn_move(&to, dst, &from, src, &o, &err) == TN_ERR_UNSUPPORTED);
    check_text(&err, "place 1 of the source, in elements of 4 bits, does not begin on a byte");
    CHECK(dst[0] == 0 && dst[1] == 0);
    offset = 2;
    dst[1] = 0x90;              /* the half byte behind stays */
    CHECK(tn_move(&to, dst, &from, src, &o, &err) == TN_OK && dst[0] == 0x43 && dst[1] == 0x95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(mlis_permutations_are_met_byte_by_byte), TEST(mlis_moves_are_met_byte_by_byte),
        TEST(boxes_are_where_index_arithmetic_finds_them),
        TEST(elements_narrower_than_a_byte_are_moved_or_refused), TEST(threads_share_the_work),
        TEST(without_options_everything_is_copied), TEST(what_lies_in_padding_alone_needs_no_source),
        TEST(extents_up_to_63_bits_are_no_trouble), TEST(a_box_lies_inside), TEST(an_order_is_a_permutation),
        TEST(shapes_are_known_and_fit), TEST(arrays_fit_each_other_and_themselves),
        TEST(a_box_of_packed_elements_begins_on_a_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
