/* cli/compliance/descriptors.c - tests of quantization, sparse tensors and dynamic shapes. */
#include "trials.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tn_status seen(tn_error *err, const char *text)
{
    return trial_error(err, TN_ERR_CORRUPT, "%s", text);
}

/* ---- quantization ---- */

#define CHANNELS 4
#define WIDTH    32
#define VALUES   (CHANNELS * WIDTH)

static const int64_t quant_shape[] = { CHANNELS, WIDTH };

/* One scheme under test. */
typedef struct quant_case {
    tn_quant_scheme     scheme;
    tn_affine           affine;
    float               values[VALUES];
    float               scale[CHANNELS];
    int32_t             zero[CHANNELS];
    uint64_t            nscales;
    int8_t              codes[VALUES];
} quant_case;

static tn_array floats_of(void) { return (tn_array){ .dtype = TN_FLOAT32, .rank = 2, .shape = quant_shape }; }
static tn_array codes_of(void) { return (tn_array){ .dtype = TN_INT8, .rank = 2, .shape = quant_shape }; }

/* Each channel has its own range, not centred at zero. */
static void begin_case(quant_case *c, tn_quant_scheme scheme)
{
    bool channel = scheme == TN_QUANT_PER_CHANNEL_SYMMETRIC || scheme == TN_QUANT_PER_CHANNEL_ASYMMETRIC;
    *c = (quant_case){ .scheme = scheme };
    c->affine = (tn_affine){ .size = sizeof c->affine, .codes = TN_INT8,
                             .axis = channel ? 0 : TN_PER_TENSOR };
    c->affine.symmetric =
        scheme == TN_QUANT_PER_TENSOR_SYMMETRIC || scheme == TN_QUANT_PER_CHANNEL_SYMMETRIC;
    for (int i = 0; i < VALUES; i++)
        c->values[i] = (float)(i % WIDTH - 9) * (float)(1 + i / WIDTH) / 7;
}

static tn_status make_codes(quant_case *c, tn_error *err)
{
    const tn_array floats = floats_of();
    void *const parts[] = { c->codes, c->scale, c->zero };
    tn_datatype *datatype = NULL;
    tn_status status = tn_datatype_affine(&c->affine, &datatype, err);
    if (!status)
        status = tn_quantize(datatype, &floats, c->values, parts, NULL, NULL, err);
    c->nscales = c->affine.axis < 0 ? 1 : CHANNELS;
    tn_datatype_free(datatype);
    return status;
}

static tn_status store_codes(const quant_case *c, const char *path, tn_error *err)
{
    const int64_t count = (int64_t)c->nscales;
    const uint32_t rank = c->affine.axis >= 0;
    const tn_part parts[] = {
        { .role = "data", .array = codes_of(), .nbytes = VALUES, .data = c->codes },
        { .role = "scale", .array = { TN_FLOAT32, rank, &count, NULL }, .nbytes = c->nscales * sizeof(float),
          .data = c->scale },
        { .role = "zero", .array = { TN_INT32, rank, &count, NULL }, .nbytes = c->nscales * sizeof(int32_t),
          .data = c->zero },
    };
    const tn_scaling scaling = { .axis = c->affine.axis, .range = { c->affine.symmetric ? -127 : -128,
                                                                     127 } };
    const tn_tensor tensor = { .name = "codes", .form = TN_FORM_SCALED, .dtype = TN_FLOAT32, .rank = 2,
                               .shape = quant_shape,
                               .parts = parts, .nparts = c->affine.symmetric ? 2 : 3, .scaling = &scaling };
    return store_tensor(path, "raw", &tensor, err);
}

/* Compares the descriptor's scales. */
static tn_status check_metadata(const quant_case *c, const tn_file *file, tn_error *err)
{
    tn_descriptors *set;
    tn_status status = tn_describe(file, NULL, &set, err);
    if (status)
        return status;
    const tn_descriptor *d = tn_descriptors_at(set, 0);
    const tn_wia_quantization *q = &d->quantization;
    bool same = q->scheme == c->scheme && q->nscales == c->nscales;
    for (size_t i = 0; same && i < c->nscales; i++) {
        same = (float)q->scales[i] == c->scale[i];
        if (!c->affine.symmetric)
            same = same && i < q->nzero_points && q->zero_points[i] == c->zero[i];
    }
    size_t wrong = 0;
    status = tn_descriptor_check(d, NULL, &wrong, err);
    tn_descriptors_free(set);
    if (status || (same && wrong == 0))
        return status;
    return seen(err, "the descriptor has other scales than the codes were made with");
}

/* The values of the codes and scales in the file. */
static tn_status check_values(const quant_case *c, const tn_file *file, tn_error *err)
{
    const tn_tensor *t = tn_file_find(file, "codes");
    const tn_array floats = floats_of();
    tn_datatype *datatype = NULL;
    int8_t read[VALUES];
    float scale[CHANNELS], back[VALUES];
    int32_t zero[CHANNELS] = { 0 };
    size_t nbytes = (size_t)c->nscales * sizeof *scale;
    if (!t || !t->scaling || t->scaling->axis != c->affine.axis ||
        t->nparts != (c->affine.symmetric ? 2 : 3))
        return seen(err, "the file does not have the scaled tensor that was put into it");
    tn_status status = tn_part_read(file, &t->parts[0], read, sizeof read, err);
    if (!status)
        status = tn_part_read(file, &t->parts[1], scale, nbytes, err);
    if (!status && t->nparts > 2)
        status = tn_part_read(file, &t->parts[2], zero, nbytes, err);
    if (!status)
        status = tn_datatype_affine(&c->affine, &datatype, err);
    if (!status)
        status = tn_dequantize(datatype, &floats, (const void *[]){ read, scale, zero }, back, NULL, err);
    tn_datatype_free(datatype);
    for (int i = 0; i < VALUES && !status; i++) {
        double step = (double)scale[c->affine.axis == 0 ? i / WIDTH : 0],
               off = fabs((double)back[i] - (double)c->values[i]);
        if (off > 0.501 * step)
            return trial_error(err, TN_ERR_CORRUPT,
                               "value %d: expected %g within half a step of %g but found %g", i,
                               (double)c->values[i], step, (double)back[i]);
    }
    return status;
}

static tn_status try_scheme(const char *path, tn_quant_scheme scheme, tn_error *err)
{
    quant_case c;
    tn_file *file;
    begin_case(&c, scheme);
    tn_status status = make_codes(&c, err);
    if (!status)
        status = store_codes(&c, path, err);
    if (!status)
        status = tn_open(path, NULL, &file, err);
    if (status)
        return status;
    status = check_metadata(&c, file, err);
    if (!status)
        status = check_values(&c, file, err);
    tn_close(file);
    return status;
}

tn_status try_quantization(trial *t, tn_error *err)
{
    file_path path = file_in(t, "codes.json");
    tn_status status = TN_OK;
    for (int scheme = TN_QUANT_PER_TENSOR_SYMMETRIC; scheme <= TN_QUANT_PER_CHANNEL_ASYMMETRIC && !status;
         scheme++)
        status = try_scheme(path.s, (tn_quant_scheme)scheme, err);
    saw(t,
        "%d values by 4 schemes (per tensor and per channel, symmetric and asymmetric), stored with "
        "descriptors: the same "
        "scales and zero points, values within half a step",
        VALUES);
    return status;
}

/* ---- descriptors ---- */

/* One descriptor from text; the set is the caller's. */
static tn_status parse_one(const char *json, tn_descriptors **set, size_t *wrong, tn_error *err)
{
    tn_status status = tn_descriptors_parse(json, strlen(json), set, err);
    if (status)
        return status;
    status = tn_descriptor_check(tn_descriptors_at(*set, 0), NULL, wrong, err);
    if (status)
        tn_descriptors_free(*set);
    return status;
}

/* ---- sparse tensors ---- */

#define NAMED "{\"version\": \"" TN_WIA_VERSION "\", \"name\": \"s\", "

static const char coo[] = NAMED
    "\"format\": \"COO\", \"shape\": [3, 4], \"nnz\": 3, \"indices\": {\"dtype\": \"INT64\", "
    "\"data\": [[0, 1], [1, 0], [2, 3]]}, \"values\": {\"dtype\": \"FLOAT32\", \"data\": [1.5, -2, 0.25]}}";
static const char csr[] = NAMED "\"format\": \"CSR\", \"shape\": [3, 4], \"row_pointers\": [0, 1, 2, 3], "
    "\"column_indices\": [1, 0, 3], \"values\": [1.5, -2, 0.25]}";
static const float both_dense[] = { 0, 1.5f, 0, 0, -2, 0, 0, 0, 0, 0, 0, 0.25f };
static const char coo_outside[] =
    NAMED "\"format\": \"COO\", \"shape\": [3, 4], \"nnz\": 1, \"indices\": {\"dtype\": \"INT64\", "
          "\"data\": [[0, 4]]}, \"values\": {\"dtype\": \"FLOAT32\", \"data\": [1.5]}}";
static const char csr_descending[] =
    NAMED "\"format\": \"CSR\", \"shape\": [2, 4], \"row_pointers\": [0, 2, 1], "
          "\"column_indices\": [1], \"values\": [1.5]}";

static bool same_sparse(const tn_wia_sparse *a, const tn_wia_sparse *b)
{
    size_t width = tn_dtype_get(a->value_type) ? tn_dtype_get(a->value_type)->bits / 8u : 0;
    return a->format && b->format && strcmp(a->format, b->format) == 0 && a->rank == b->rank &&
           a->nvalues == b->nvalues && a->value_type == b->value_type && a->nindices == b->nindices &&
           a->npointers == b->npointers && a->nvalues == 3 &&
           memcmp(a->indices, b->indices, a->nindices * sizeof *a->indices) == 0 &&
           memcmp(a->values, b->values, a->nvalues * width) == 0 &&
           (a->npointers == 0 || memcmp(a->pointers, b->pointers, a->npointers * sizeof *a->pointers) == 0);
}

/* Reads, checks, writes, reads again. */
static tn_status try_sparse_document(const char *json, tn_error *err)
{
    tn_descriptors *first, *second;
    char *written = NULL;
    size_t size, wrong = 0;
    tn_status status = parse_one(json, &first, &wrong, err);
    if (status)
        return status;
    status = wrong ? seen(err, "a sparse descriptor that is right was found wrong")
                   : tn_descriptors_write(tn_descriptors_at(first, 0), 1, false, &written, &size, err);
    if (!status)
        status = tn_descriptors_parse(written, size, &second, err);
    if (!status) {
        if (!same_sparse(&tn_descriptors_at(first, 0)->sparse, &tn_descriptors_at(second, 0)->sparse))
            status = seen(err, "a sparse descriptor came back as another one");
        tn_descriptors_free(second);
    }
    free(written);
    tn_descriptors_free(first);
    return status;
}

static tn_status expect_wrong(const char *json, tn_error *err)
{
    tn_descriptors *set;
    size_t wrong = 0;
    tn_status status = parse_one(json, &set, &wrong, err);
    if (status)
        return status;
    tn_descriptors_free(set);
    return wrong ? TN_OK : seen(err, "a sparse descriptor with an index outside was not found wrong");
}

static bool same_parts(const tn_tensor *a, const tn_tensor *b)
{
    bool same = a->form == b->form && a->nparts == b->nparts;
    for (uint32_t k = 0; same && k < a->nparts; k++)
        same = a->parts[k].array.dtype == b->parts[k].array.dtype &&
               a->parts[k].nbytes == b->parts[k].nbytes &&
               memcmp(a->parts[k].data, b->parts[k].data, (size_t)a->parts[k].nbytes) == 0;
    return same;
}

/* Writes a file and reads it back. */
static tn_status try_stored(const char *path, const tn_tensor *t, tn_error *err)
{
    tn_file *file;
    tn_status status = store_tensor(path, "raw", t, err);
    if (!status)
        status = tn_open(path, NULL, &file, err);
    if (status)
        return status;
    const tn_tensor *found = tn_file_find(file, t->name);
    bool same = found && same_parts(found, t);
    for (uint32_t k = 0; same && k < t->nparts && !status; k++) {
        uint8_t read[64];
        size_t n = (size_t)t->parts[k].nbytes;
        same = n <= sizeof read && !(status = tn_part_read(file, &found->parts[k], read, n, err)) &&
               memcmp(read, t->parts[k].data, n) == 0;
    }
    tn_close(file);
    if (status || same)
        return status;
    return seen(err, "a sparse tensor came back from its file as another one");
}

/* Converts a sparse tensor to dense, and that to both sparse forms. */
static tn_status try_forms(const tn_tensor *t, const tn_tensor *other, const char *path, tn_error *err)
{
    tn_sparse_options options = { .size = sizeof options, .index = t->parts[1].array.dtype };
    tn_tensor *dense = NULL, *again = NULL, *direct = NULL;
    tn_status status = tn_convert_form(t, TN_FORM_DENSE, NULL, &dense, err);
    if (!status && (dense->parts[0].nbytes != sizeof both_dense ||
                    memcmp(dense->parts[0].data, both_dense, sizeof both_dense) != 0))
        status = seen(err, "a sparse tensor was made dense with other elements than its indices say");
    if (!status)
        status = tn_convert_form(dense, t->form, &options, &again, err);
    if (!status && !same_parts(again, t))
        status = seen(err, "a dense tensor was made sparse with other entries than it has");
    options.index = other->parts[1].array.dtype;
    if (!status)
        status = tn_convert_form(t, other->form, &options, &direct, err);
    if (!status && !same_parts(direct, other))
        status = seen(err, "a sparse tensor was given another form with other entries than it has");
    if (!status)
        status = try_stored(path, again, err);
    tn_tensor_free(dense);
    tn_tensor_free(again);
    tn_tensor_free(direct);
    return status;
}

/* Opens both documents as tensors. */
static tn_status try_sparse_tensors(const char *path, tn_error *err)
{
    tn_file *first = NULL, *second = NULL;
    tn_status status = tn_open_memory(coo, strlen(coo), NULL, &first, err);
    if (!status)
        status = tn_open_memory(csr, strlen(csr), NULL, &second, err);
    const tn_tensor *a = status ? NULL : tn_file_find(first, "s");
    const tn_tensor *b = status ? NULL : tn_file_find(second, "s");
    if (!status && (!a || !b || a->form != TN_FORM_COO || b->form != TN_FORM_CSR))
        status = seen(err, "a sparse document was not read as a sparse tensor");
    if (!status)
        status = try_forms(a, b, path, err);
    if (!status)
        status = try_forms(b, a, path, err);
    tn_close(first);
    tn_close(second);
    return status;
}

tn_status try_sparse(trial *t, tn_error *err)
{
    file_path path = file_in(t, "sparse.json");
    tn_status status = try_sparse_document(coo, err);
    if (!status)
        status = try_sparse_document(csr, err);
    if (!status)
        status = expect_wrong(coo_outside, err);
    if (!status)
        status = expect_wrong(csr_descending, err);
    if (!status)
        status = try_sparse_tensors(path.s, err);
    saw(t, "COO and CSR descriptors with 3 values were read, checked, written and read again, 2 wrong ones "
           "found; each was "
           "made dense, sparse again and the other form, and stored: every bit the same");
    return status;
}

/* ---- dynamic shapes ---- */

static const char dynamic[] =
    NAMED "\"shape\": {\"dimensions\": [\"batch\", \"sequence_length\", 768], \"symbolic\": true, "
          "\"constraints\": {\"batch\": {\"min\": 1, \"max\": 256}, \"sequence_length\": {\"min\": 1, "
          "\"max\": 2048, "
          "\"multiple_of\": 8}}}, \"dtype\": {\"base_type\": \"FLOAT32\"}, "
          "\"memory\": {\"strides\": [\"768*sequence_length\", 768, 1]}}";
static const char narrower[] =
    NAMED "\"shape\": {\"dimensions\": [\"batch\", 10], \"symbolic\": true, \"constraints\": "
          "{\"batch\": {\"min\": 4, \"max\": 64}}}, \"dtype\": {\"base_type\": \"FLOAT32\"}}";

#define MOST_BYTES (UINT64_C(256) * 2048 * 768 * 4)
#define BOUND_BYTES (UINT64_C(32) * 128 * 768 * 4)

static tn_status try_binding(const tn_descriptor *d, tn_error *err)
{
    static const tn_wia_binding good[] = { { "batch", 32 }, { "sequence_length", 128 } };
    static const tn_wia_binding bad[][2] = { { { "batch", 257 }, { "sequence_length", 128 } },
                                         { { "batch", 32 }, { "sequence_length", 13 } } };
    tn_descriptors *bound;
    tn_status status = tn_descriptor_bind(d, good, 2, &bound, err);
    if (status)
        return status;
    const tn_descriptor *b = tn_descriptors_at(bound, 0);
    bool right = b->dimensions[0].value == 32 && b->dimensions[1].value == 128 &&
                 b->dimensions[2].value == 768 && b->strides && b->strides[0].factor == 98304 &&
                 b->strides[1].factor == 768 && b->total_bytes == BOUND_BYTES;
    tn_descriptors_free(bound);
    if (!right)
        return seen(
            err, "a bound descriptor has another shape, other strides or another size than its symbols say");
    for (size_t i = 0; i < 2; i++) {
        if (tn_descriptor_bind(d, bad[i], 2, &bound, NULL))
            continue;
        tn_descriptors_free(bound);
        return seen(err, "a symbol took a value that its constraints forbid");
    }
    return TN_OK;
}

static tn_status try_constraints(const tn_descriptor *d, const tn_descriptor *other, tn_error *err)
{
    const tn_descriptor *const both[] = { d, other };
    tn_wia_constraint left[2] = { 0 };
    uint64_t most = 0;
    size_t n = 0;
    tn_status status = tn_descriptor_max_bytes(d, &most, err);
    if (!status)
        status = tn_symbols_unify(both, 2, left, 2, &n, err);
    if (status)
        return status;
    if (most != MOST_BYTES)
        return trial_error(err, TN_ERR_CORRUPT, "expected at most %" PRIu64 " bytes but found %" PRIu64,
                           MOST_BYTES, most);
    bool right =
        n == 2 && left[0].min == 4 && left[0].max == 64 && left[1].multiple_of == 8 && left[1].max == 2048;
    return right ? TN_OK
                 : seen(err, "two descriptors leave other values of a symbol than their constraints say");
}

tn_status try_dynamic_shapes(trial *t, tn_error *err)
{
    tn_descriptors *set, *other;
    size_t wrong = 0, wrong_other = 0;
    tn_status status = parse_one(dynamic, &set, &wrong, err);
    if (status)
        return status;
    status = wrong ? seen(err, "a symbolic descriptor that is right was found wrong")
                   : try_binding(tn_descriptors_at(set, 0), err);
    if (!status)
        status = parse_one(narrower, &other, &wrong_other, err);
    if (!status) {
        status = try_constraints(tn_descriptors_at(set, 0), tn_descriptors_at(other, 0), err);
        tn_descriptors_free(other);
    }
    tn_descriptors_free(set);
    saw(t, "[batch, sequence_length, 768] bound to 32 and 128: %" PRIu64 " bytes, at most %" PRIu64
                 "; 2 forbidden values refused, 2 descriptors unified", BOUND_BYTES, MOST_BYTES);
    return status;
}
