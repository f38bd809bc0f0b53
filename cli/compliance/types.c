/* cli/compliance/types.c - tests of types, layouts, alignment and strides. */
#include "trials.h"
#include "ui/say.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HOST_ORDER TN_BIG_ENDIAN
#else
#define HOST_ORDER TN_LITTLE_ENDIAN
#endif
#define VALUES 4096             /* of a type's trial */

/* Pseudo-random numbers, the same every time. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ---- types ---- */

/* The values of one type's trial before and after rounding. */
typedef struct type_case {
    const tn_dtype_info *type;
    const char          *path;
    double               values[VALUES];    /* requested */
    double               rounded[VALUES];   /* of the codes */
    uint8_t              codes[VALUES * sizeof(double)];
    uint8_t              again[VALUES * sizeof(double)];
} type_case;

/* The bits of an integer's magnitude. */
static int width_of(const tn_dtype_info *type) { return type->bits - (type->kind == TN_KIND_INT); }

/* Magnitudes over the whole width of an integer type; of floats around 1, where every type has normal
 * numbers. */
static void make_values(type_case *c)
{
    uint32_t state = c->type->dtype;
    bool whole = c->type->kind != TN_KIND_FLOAT, negative = c->type->kind != TN_KIND_UINT;
    for (int i = 0; i < VALUES; i++) {
        double fraction = (double)next_random(&state) / (1 << 24);
        c->values[i] = ldexp(fraction, whole ? i % (width_of(c->type) + 1) : i % 13 - 5);
        if (negative && i % 2)
            c->values[i] = -c->values[i];
    }
}

/* The largest allowed rounding error. */
static double step_at(const tn_dtype_info *type, double value)
{
    if (type->kind != TN_KIND_FLOAT)
        return 0.5;
    double normal = ldexp(fabs(value), -type->mantissa_bits - 1);
    double least = ldexp(1, 1 - type->bias - type->mantissa_bits - 1);
    return normal > least ? normal : least;
}

/* Integers saturate; other values are at most half a step away. */
static bool is_near(const tn_dtype_info *type, double value, double rounded)
{
    double largest = ldexp(1, width_of(type)) - 1;
    if (type->kind != TN_KIND_FLOAT && value > largest)
        return rounded == largest;
    return fabs(value - rounded) <= step_at(type, value);
}

static double number_of(tn_value v)
{
    if (v.kind == TN_KIND_FLOAT)
        return v.re;
    return v.kind == TN_KIND_INT ? (double)v.i : (double)v.u;
}

/* Values to codes, back, and to codes again: the same codes, near the requested values. */
static tn_status try_casts(type_case *c, size_t nbytes, tn_error *err)
{
    const int64_t count = VALUES;
    const tn_array codes = { .dtype = c->type->dtype, .rank = 1, .shape = &count };
    const tn_array values = { .dtype = TN_FLOAT64, .rank = 1, .shape = &count };
    const tn_cast_options o = { .size = sizeof o, .overflow = TN_OVERFLOW_SATURATE };
    tn_status status = tn_cast(&codes, c->codes, &values, c->values, HOST_ORDER, &o, err);
    if (!status)
        status = tn_cast(&values, c->rounded, &codes, c->codes, HOST_ORDER, &o, err);
    if (!status)
        status = tn_cast(&codes, c->again, &values, c->rounded, HOST_ORDER, &o, err);
    if (!status && memcmp(c->codes, c->again, nbytes) != 0)
        return trial_error(err, TN_ERR_CORRUPT, "codes cast to float64 and back came out as other codes");
    for (int i = 0; i < VALUES && !status; i++)
        if (!is_near(c->type, c->values[i], c->rounded[i]))
            return trial_error(err, TN_ERR_CORRUPT, "value %d: expected %.17g within %g but found %.17g", i,
                               c->values[i], step_at(c->type, c->values[i]), c->rounded[i]);
    return status;
}

/* Compares the tensor in the file and its bytes. */
static tn_status compare_loaded(const tn_file *file, type_case *c, size_t nbytes, tn_error *err)
{
    const tn_tensor *t = tn_file_find(file, "values");
    if (!t || t->dtype != c->type->dtype || t->parts[0].nbytes != nbytes)
        return trial_error(err, TN_ERR_CORRUPT,
                           "the file written does not have the tensor that was put into it");
    tn_stored_info stored = { .size = sizeof stored };
    tn_part_stored(t, &t->parts[0], &stored);
    if (!stored.type || strcmp(stored.type, c->type->wia) != 0)
        return trial_error(err, TN_ERR_CORRUPT, "expected the type %s in the file but found \"%s\"",
                           c->type->wia, escaped(stored.type ? stored.type : ""));
    memset(c->again, 0, nbytes);
    tn_status status = tn_part_read(file, &t->parts[0], c->again, nbytes, err);
    for (int i = 0; i < VALUES && !status; i++)
        if (number_of(tn_value_get(t->dtype, c->again, (uint64_t)i)) != c->rounded[i])
            return trial_error(err, TN_ERR_CORRUPT, "value %d: expected %.17g from the file but found %.17g",
                               i, c->rounded[i], number_of(tn_value_get(t->dtype, c->again, (uint64_t)i)));
    if (!status && memcmp(c->codes, c->again, nbytes) != 0)
        return trial_error(err, TN_ERR_CORRUPT, "the bytes read are not those written");
    return status;
}

static tn_status store_and_load(type_case *c, size_t nbytes, tn_error *err)
{
    const int64_t count = VALUES;
    const tn_part part = { .role = "data", .array = { .dtype = c->type->dtype, .rank = 1, .shape = &count },
                           .nbytes = nbytes,
                           .data = c->codes };
    const tn_tensor tensor = { .name = "values", .form = TN_FORM_DENSE, .dtype = c->type->dtype, .rank = 1,
                               .shape = &count,
                               .parts = &part, .nparts = 1 };
    tn_file *file;
    tn_status status = store_tensor(c->path, "raw", &tensor, err);
    if (!status)
        status = tn_open(c->path, NULL, &file, err);
    if (status)
        return status;
    status = compare_loaded(file, c, nbytes, err);
    tn_close(file);
    return status;
}

tn_status try_type(trial *t, tn_error *err)
{
    file_path path = file_in(t, "type.json");
    type_case *c = calloc(1, sizeof *c);
    if (!c)
        return trial_nomem(err);
    c->type = tn_dtype_get(t->dtype);
    c->path = path.s;
    size_t nbytes = (size_t)VALUES * c->type->bits / 8;
    make_values(c);
    tn_status status = try_casts(c, nbytes, err);
    if (!status)
        status = store_and_load(c, nbytes, err);
    saw(t, "%d values cast, stored (%zu bytes) and loaded: every bit the same", VALUES, nbytes);
    free(c);
    return status;
}

/* ---- layouts ---- */

static int64_t extent_of(char letter)
{
    static const struct { char letter; int64_t extent; } extents[] = {
        { 'N', 3 }, { 'C', 5 }, { 'D', 2 }, { 'H', 4 }, { 'W', 7 }, { 'R', 6 }, { '1', 1 }
    };
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        if (extents[i].letter == letter)
            return extents[i].extent;
    return 2 + letter % 3;
}

/* The place in row-major `from` of element `at` of row-major `to`, by index arithmetic alone. */
static uint64_t place_in(const char *from, const char *to, uint64_t at)
{
    int64_t index[128] = { 0 };         /* by letter */
    uint64_t place = 0;
    for (size_t i = strlen(to); i-- > 0;) {
        uint64_t extent = (uint64_t)extent_of(to[i]);
        index[to[i] & 127] = (int64_t)(at % extent);
        at /= extent;
    }
    for (; *from; from++)
        place = place * (uint64_t)extent_of(*from) + (uint64_t)index[*from & 127];
    return place;
}

#define MOST_ELEMENTS 2048      /* of a layout's trial */

static tn_status reorder(tn_dtype dtype, const char *from, const char *to, const void *src, void *dst,
                         tn_error *err)
{
    int64_t src_shape[TN_MAX_RANK], dst_shape[TN_MAX_RANK];
    uint32_t order[TN_MAX_RANK], rank = (uint32_t)strlen(from);
    for (uint32_t i = 0; i < rank; i++) {
        src_shape[i] = extent_of(from[i]);
        dst_shape[i] = extent_of(to[i]);
    }
    const tn_array in = { .dtype = dtype, .rank = rank, .shape = src_shape };
    const tn_array out = { .dtype = dtype, .rank = rank, .shape = dst_shape };
    const tn_reorder_options o = { .size = sizeof o, .order = order };
    tn_status status = tn_layout_order(from, to, order, err);
    return status ? status : tn_reorder(&out, dst, &in, src, &o, err);
}

/* Reorders, compares element by element, and reorders back. */
static tn_status try_reorder(tn_dtype dtype, const char *from, const char *to, uint64_t *elements,
                             tn_error *err)
{
    uint8_t there[MOST_ELEMENTS * 4], original[MOST_ELEMENTS * 4], back[MOST_ELEMENTS * 4] = { 0 };
    uint64_t count = 1, bits = tn_dtype_get(dtype)->bits;
    uint32_t state = dtype;
    for (const char *letter = from; *letter; letter++)
        count *= (uint64_t)extent_of(*letter);
    if (count * bits > sizeof there * 8)
        return trial_error(err, TN_ERR_CORRUPT, "%s has %" PRIu64 " elements, more than a trial has room for",
                           from, count);
    memset(there, 0, sizeof there);
    for (size_t i = 0; i < sizeof original; i++)
        /* bytes of floats that are never NaN, which would not compare equal */
        original[i] = (uint8_t)(next_random(&state) & 63);
    tn_status status = reorder(dtype, from, to, original, there, err);
    for (uint64_t i = 0; i < count && !status; i++)
        if (number_of(tn_value_get(dtype, there, i)) !=
            number_of(tn_value_get(dtype, original, place_in(from, to, i))))
            return trial_error(err, TN_ERR_CORRUPT,
                               "%s from %s to %s: element %" PRIu64 " is not the one that belongs there",
                               tn_dtype_get(dtype)->name, from, to, i);
    if (!status)
        status = reorder(dtype, to, from, there, back, err);
    for (uint64_t i = 0; i < count && !status; i++)
        if (number_of(tn_value_get(dtype, back, i)) != number_of(tn_value_get(dtype, original, i)))
            return trial_error(err, TN_ERR_CORRUPT,
                               "%s from %s to %s and back: element %" PRIu64 " is another",
                               tn_dtype_get(dtype)->name, from, to, i);
    *elements += count;
    return status;
}

tn_status try_one_layout(trial *t, tn_error *err)
{
    uint64_t elements = 0;
    tn_status status = try_reorder(TN_FLOAT32, "NCHW", "NHWC", &elements, err);
    saw(t, "%" PRIu64 " float32 elements from NCHW to NHWC and back: each found by index arithmetic",
        elements);
    return status;
}

tn_status try_both_layouts(trial *t, tn_error *err)
{
    static const tn_dtype types[] = { TN_FLOAT32, TN_FLOAT16, TN_BFLOAT16, TN_INT8 };
    uint64_t elements = 0;
    tn_status status = TN_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types && !status; i++) {
        status = try_reorder(types[i], "NCHW", "NHWC", &elements, err);
        if (!status)
            status = try_reorder(types[i], "NHWC", "NCHW", &elements, err);
    }
    saw(t, "%" PRIu64 " elements of 4 types between NCHW and NHWC, both ways: each found by index arithmetic",
        elements);
    return status;
}

static bool same_letters(const char *a, const char *b)
{
    return strlen(a) == strlen(b) && strspn(a, b) == strlen(a);
}

/* Converts between all named layouts of the same letters, and between unnamed ones. */
tn_status try_all_layouts(trial *t, tn_error *err)
{
    const tn_layout_info *from, *to;
    uint64_t elements = 0;
    unsigned layouts = 0, pairs = 0;
    tn_status status = TN_OK;
    for (size_t i = 0; (from = tn_layout_at(i)) && !status; i++) {
        layouts++;
        for (size_t k = 0; (to = tn_layout_at(k)) && !status; k++) {
            if (!same_letters(from->name, to->name))
                continue;
            pairs++;
            status = try_reorder(TN_INT8, from->name, to->name, &elements, err);
            if (!status)
                status = try_reorder(TN_UINT4, from->name, to->name, &elements, err);
        }
    }
    if (!status)
        status = try_reorder(TN_FLOAT32, "abXQzP", "QaPzbX", &elements, err);
    saw(t,
        "%u layouts in %u pairs and custom letters, %" PRIu64
        " elements of 8, 4 and 32 bits: each found by index "
        "arithmetic",
        layouts, pairs, elements);
    return status;
}

/* ---- alignment ---- */

/* Every tensor begins at a multiple of the host's minimum, in the file and in memory. */
static tn_status check_alignment(const tn_file *file, uint64_t *least, tn_error *err)
{
    uint64_t wanted = tn_device_query(0)->min_alignment;
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_part *part = &tn_file_tensor(file, i)->parts[0];
        tn_stored_info stored = { .size = sizeof stored };
        tn_part_stored(NULL, part, &stored);
        uint64_t offset = stored.offset, alignment = offset & (0 - offset);
        if (offset % wanted || (uintptr_t)part->data % wanted)
            return trial_error(err, TN_ERR_CORRUPT,
                               "expected data aligned to %" PRIu64 " bytes but found it at %" PRIu64, wanted,
                               offset);
        if (offset && alignment < *least)
            *least = alignment;
    }
    return TN_OK;
}

/* Three tensors of awkward sizes. */
static tn_status store_odd_sizes(const char *path, const char *format, tn_error *err)
{
    static const uint8_t data[77] = { 1 };
    static const int64_t sizes[] = { 5, 77, 3 };
    static const char *const names[] = { "a", "b", "c" };
    const tn_create_options options = { .size = sizeof options, .format = format, .replace = true };
    tn_writer *writer;
    tn_status status = tn_create(path, &options, &writer, err);
    if (status)
        return status;
    for (size_t i = 0; i < 3 && !status; i++) {
        const tn_part part = { .role = "data", .array = { .dtype = TN_UINT8, .rank = 1, .shape = &sizes[i] },
                               .nbytes = (uint64_t)sizes[i], .data = data };
        const tn_tensor tensor = { .name = names[i], .form = TN_FORM_DENSE, .dtype = TN_UINT8, .rank = 1,
                                   .shape = &sizes[i],
                                   .parts = &part, .nparts = 1 };
        status = tn_writer_add(writer, &tensor, err);
    }
    if (!status)
        return tn_writer_finish(writer, err);
    tn_writer_abandon(writer);
    return status;
}

tn_status try_alignment(trial *t, tn_error *err)
{
    static const struct { const char *format, *name; } files[] = { { "ztensor", "aligned.zt" },
                                                                   { "raw", "aligned.json" } };
    uint64_t least[2] = { UINT64_MAX, UINT64_MAX };
    tn_status status = TN_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        file_path path = file_in(t, files[i].name);
        tn_file *file = NULL;
        status = store_odd_sizes(path.s, files[i].format, err);
        if (!status)
            status = tn_open(path.s, NULL, &file, err);
        if (!status)
            status = check_alignment(file, &least[i], err);
        tn_close(file);
    }
    saw(t, "tensors of 5, 77 and 3 bytes begin at multiples of %" PRIu64 " in a zTensor file and of %" PRIu64
                 " in a raw one, and so in memory", least[0], least[1]);
    return status;
}

/* ---- strides ---- */

static tn_status write_bytes(const char *path, const void *bytes, size_t n, tn_error *err)
{
    FILE *f = fopen(path, "wbe");
    bool good = f && fwrite(bytes, 1, n, f) == n;
    int error_number = errno;
    if (f && fclose(f) != 0) {
        good = false;
        error_number = errno;
    }
    return good ? TN_OK : trial_errno(err, error_number, "cannot write a temporary file");
}

#define ROWS 5
#define COLUMNS 7
#define ROW_STRIDE 1
#define COLUMN_STRIDE 8         /* columns of 5 with a gap of 3 between them */
#define DUMP_OFFSET 64          /* bytes */

/* A device's dump: a descriptor whose strides say where in the bytes each element is. */
static tn_status write_dump(const char *json_path, const char *data_path, const float *dump, size_t n,
                            tn_error *err)
{
    static const tn_wia_extent dimensions[] = { { .value = ROWS }, { .value = COLUMNS } };
    static const tn_wia_product strides[] = { { .factor = ROW_STRIDE }, { .factor = COLUMN_STRIDE } };
    const tn_descriptor d = { .version = TN_WIA_VERSION, .name = "dump", .rank = 2, .dimensions = dimensions,
                              .dtype = TN_FLOAT32, .base_type = "FLOAT32", .has_memory = true,
                              .strides = strides,
                              .offset_bytes = DUMP_OFFSET, .has_total = true, .total_bytes = n * sizeof *dump,
                              .alignment = 64 };
    char *json;
    size_t size;
    tn_status status = tn_descriptors_write(&d, 1, false, &json, &size, err);
    if (status)
        return status;
    status = write_bytes(json_path, json, size, err);
    free(json);
    return status ? status : write_bytes(data_path, dump, n * sizeof *dump, err);
}

/* element_offset = base_offset + sum(index * stride) */
static tn_status compare_dump(const tn_file *file, const float *dump, tn_error *err)
{
    const tn_tensor *t = tn_file_find(file, "dump");
    float values[ROWS * COLUMNS];
    if (!t || t->parts[0].nbytes != sizeof values)
        return trial_error(err, TN_ERR_CORRUPT, "the dump is not read as a tensor of %dx%d", ROWS, COLUMNS);
    tn_status status = tn_part_read(file, &t->parts[0], values, sizeof values, err);
    for (int r = 0; r < ROWS && !status; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            float expected = dump[DUMP_OFFSET / (int)sizeof *dump + r * ROW_STRIDE + c * COLUMN_STRIDE];
            if (values[r * COLUMNS + c] != expected)
                return trial_error(err, TN_ERR_CORRUPT, "element [%d, %d]: expected %g but found %g", r, c,
                                   (double)expected, (double)values[r * COLUMNS + c]);
        }
    }
    return status;
}

tn_status try_strides(trial *t, tn_error *err)
{
    enum { FLOATS = DUMP_OFFSET / sizeof(float) + (COLUMNS - 1) * COLUMN_STRIDE + ROWS };
    float dump[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        dump[i] = (float)i;
    file_path json = file_in(t, "dump.json"), data = file_in(t, "dump.bin");
    tn_file *file;
    tn_status status = write_dump(json.s, data.s, dump, FLOATS, err);
    if (!status)
        status = tn_open(json.s, NULL, &file, err);
    if (status)
        return status;
    status = compare_dump(file, dump, err);
    tn_close(file);
    saw(t,
        "%d values with strides [%d, %d] from byte %d on of a dump of %zu bytes: each read where the formula "
        "says",
        ROWS * COLUMNS, ROW_STRIDE, COLUMN_STRIDE, DUMP_OFFSET, sizeof dump);
    return status;
}
