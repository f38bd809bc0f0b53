/* Writing descriptors: what is written reads back the same, and is written the
 * same again. */
#include "documents.h"

#include "descriptor/descriptor.h"

#include <math.h>
#include <stdio.h>

/* ---- comparing ---- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_bytes(const void *a, const void *b, size_t n)
{
    return a && b ? memcmp(a, b, n) == 0 : a == b;
}

static bool same_doubles(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n && a && b; i++)
        if (!(isnan(a[i]) && isnan(b[i])) && memcmp(&a[i], &b[i], sizeof *a) != 0)
            return false;
    return !a == !b;
}

static void check_same_shape(const tn_descriptor *a, const tn_descriptor *b)
{
    CHECK(same_text(a->version, b->version));
    CHECK(same_text(a->tensor_id, b->tensor_id));
    CHECK(same_text(a->name, b->name));
    CHECK(a->rank == b->rank);
    for (uint32_t i = 0; i < a->rank; i++)
        CHECK(a->dimensions[i].value == b->dimensions[i].value &&
              same_text(a->dimensions[i].symbol, b->dimensions[i].symbol));
    CHECK(same_text(a->layout, b->layout));
    CHECK(a->symbolic == b->symbolic);
    CHECK(a->nconstraints == b->nconstraints && !a->constraints == !b->constraints);
    for (size_t i = 0; i < a->nconstraints; i++) {
        const tn_wia_constraint *x = &a->constraints[i], *y = &b->constraints[i];
        CHECK(same_text(x->symbol, y->symbol) && x->min == y->min && x->max == y->max &&
              x->multiple_of == y->multiple_of);
    }
    CHECK(same_bytes(a->physical_shape, b->physical_shape, a->rank * sizeof *a->physical_shape));
    CHECK(a->has_padding == b->has_padding);
    CHECK(same_bytes(a->padding.dims, b->padding.dims, a->rank * sizeof *a->padding.dims));
    CHECK(same_bytes(a->padding.values, b->padding.values, a->rank * sizeof *a->padding.values));
    CHECK(same_text(a->padding.mode, b->padding.mode) && same_doubles(&a->padding.fill, &b->padding.fill, 1));
}

static void check_same_type_and_memory(const tn_descriptor *a, const tn_descriptor *b)
{
    const tn_wia_quantization *p = &a->quantization, *q = &b->quantization;
    CHECK(a->dtype == b->dtype && same_text(a->base_type, b->base_type) && a->byte_order == b->byte_order);
    CHECK(p->scheme == q->scheme && p->nscales == q->nscales && p->nzero_points == q->nzero_points);
    CHECK(same_doubles(p->scales, q->scales, p->nscales));
    CHECK(same_bytes(p->zero_points, q->zero_points, p->nzero_points * sizeof *p->zero_points));
    CHECK(p->has_range == q->has_range && p->range[0] == q->range[0] && p->range[1] == q->range[1]);
    CHECK(p->has_axis == q->has_axis && p->channel_axis == q->channel_axis);
    CHECK(a->has_memory == b->has_memory && !a->strides == !b->strides);
    for (uint32_t i = 0; i < a->rank && a->strides; i++) {
        CHECK(a->strides[i].factor == b->strides[i].factor &&
              a->strides[i].nsymbols == b->strides[i].nsymbols);
        for (uint32_t k = 0; k < a->strides[i].nsymbols; k++)
            CHECK(same_text(a->strides[i].symbols[k], b->strides[i].symbols[k]));
    }
    CHECK(a->offset_bytes == b->offset_bytes && a->has_total == b->has_total &&
          a->total_bytes == b->total_bytes);
    CHECK(a->alignment == b->alignment && a->device.type == b->device.type && a->device.id == b->device.id);
    CHECK(a->device.space == b->device.space);
}

static void check_same_blocks(const tn_descriptor *a, const tn_descriptor *b)
{
    CHECK(a->has_properties == b->has_properties && a->requires_grad == b->requires_grad &&
          a->is_pinned == b->is_pinned);
    CHECK(a->is_contiguous == b->is_contiguous && a->zero_copy_compatible == b->zero_copy_compatible);
    CHECK(same_text(a->metadata, b->metadata));
    const tn_buffer_handle *g = &a->buffer_handle, *h = &b->buffer_handle;
    CHECK(g->type == h->type && g->handle == h->handle && g->size_bytes == h->size_bytes &&
          g->read_only == h->read_only);
    const tn_wia_mapping *m = &a->mapping, *n = &b->mapping;
    CHECK(m->present == n->present && m->device_address == n->device_address &&
          m->cpu_mapped == n->cpu_mapped);
    CHECK(m->cpu_address == n->cpu_address && m->cpu_device == n->cpu_device);
    CHECK(a->nextra == b->nextra);
    for (size_t i = 0; i < a->nextra; i++) {
        bool found = false;     /* the order of objects may differ, that within each may not */
        for (size_t k = 0; k < b->nextra && !found; k++)
            found = same_text(a->extra[i].path, b->extra[k].path) &&
                    same_text(a->extra[i].key, b->extra[k].key) &&
                    same_text(a->extra[i].json, b->extra[k].json);
        CHECK(found);
    }
}

static void check_same_sparse(const tn_wia_sparse *a, const tn_wia_sparse *b)
{
    CHECK(same_text(a->format, b->format) && a->rank == b->rank);
    CHECK(same_bytes(a->shape, b->shape, a->rank * sizeof *a->shape));
    CHECK(a->has_nnz == b->has_nnz && a->nnz == b->nnz && a->index_type == b->index_type);
    CHECK(a->nindices == b->nindices && same_bytes(a->indices, b->indices, a->nindices * sizeof *a->indices));
    CHECK(a->npointers == b->npointers &&
          same_bytes(a->pointers, b->pointers, a->npointers * sizeof *a->pointers));
    CHECK(a->value_type == b->value_type && a->nvalues == b->nvalues && !a->values == !b->values);
    for (size_t i = 0; i < a->nvalues; i++) {
        tn_value x = tn_value_get(a->value_type, a->values, i), y = tn_value_get(b->value_type, b->values, i);
        CHECK(same_doubles(&x.re, &y.re, 1) && same_doubles(&x.im, &y.im, 1) && x.i == y.i && x.u == y.u);
    }
}

static void check_same(const tn_descriptor *a, const tn_descriptor *b)
{
    check_same_shape(a, b);
    check_same_type_and_memory(a, b);
    check_same_blocks(a, b);
    check_same_sparse(&a->sparse, &b->sparse);
}

/* Writes, reads, compares, writes again. */
static void check_round_trip(const tn_descriptor *d, size_t n, bool list)
{
    char *json = NULL, *again = NULL;
    size_t size = 0, size_again = 0;
    tn_descriptors *set = NULL;
    tn_error err;
    CHECK(tn_descriptors_write(d, n, list, &json, &size, &err) == TN_OK);
    CHECK(json[size] == '\0' && strlen(json) == size && json[size - 1] == '\n');
    tn_status status = parse_n(json, size, &set, &err);
    if (status)
        print_error("%s\nbyte %llu: %s\n", json, (unsigned long long)err.offset, line_of(&err));
    CHECK(status == TN_OK);
    CHECK(tn_descriptors_count(set) == n);
    for (size_t i = 0; i < n; i++)
        check_same(&d[i], tn_descriptors_at(set, i));
    CHECK(tn_descriptors_write(tn_descriptors_at(set, 0), n, list, &again, &size_again, &err) == TN_OK);
    if (size != size_again || memcmp(json, again, size) != 0)
        print_error("%s\n%s\n", json, again);
    CHECK(size == size_again && memcmp(json, again, size) == 0);
    free(again);
    free(json);
    tn_descriptors_free(set);
}

/* ---- descriptors at random ---- */

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t n) { return draw() % n; }
static bool     coin(void)        { return below(2) == 0; }

static void *some(tn_arena *a, size_t count, size_t size)
{
    void *p = tn_arena_zalloc(a, count, size);
    assert_non_null(p);
    return p;
}

static int64_t any_int(void)
{
    static const int64_t special[] = { 0, 1, -1, INT64_MAX, INT64_MIN, 4096, INT64_C(9007199254740993) };
    return coin() ? special[below(7)] : (int64_t)(draw() >> below(64)) * (coin() ? 1 : -1);
}

static int64_t any_size(void) { return (int64_t)(draw() >> (1 + below(63))); }

static double any_double(void)
{
    static const double special[] = { 0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, -1.7976931348623157e308, 1.0 / 3 };
    uint64_t bits = draw();
    double x;
    memcpy(&x, &bits, sizeof x);
    return coin() ? special[below(8)] : x;
}

static const char *any_word(void)
{
    static const char *const words[] = { "batch", "seq", "_n1", "H", "", "a \"b\"\\\n\t\x01",
                                         "\xc3\xa9\xe4\xba\xba", "x/y" };
    return words[below(8)];
}

static const char *any_symbol(void)
{
    static const char *const symbols[] = { "batch", "seq", "_n1", "H" };
    return symbols[below(4)];
}

static const char *any_json(void)
{
    static const char *const values[] = {
        "1", "null", "\"text\\u0000\"", "[1, 2,3]", "{\"a\": {\"b\":[ ]}}", "{\n  \"deep\": 1\n}", "-0.50e+3"
    };
    return values[below(7)];
}

static int64_t *any_ints(tn_arena *a, size_t n, int64_t (*draw_one)(void))
{
    int64_t *ints = some(a, n, sizeof *ints);
    for (size_t i = 0; i < n; i++)
        ints[i] = draw_one();
    return ints;
}

static void draw_shape(tn_arena *a, tn_descriptor *d, bool numbers)
{
    d->rank = (uint32_t)(below(20) ? below(6) : TN_MAX_RANK);
    tn_wia_extent *dims = some(a, d->rank, sizeof *dims);
    for (uint32_t i = 0; i < d->rank; i++)
        dims[i] =
            coin() || numbers ? (tn_wia_extent){ .value = any_size() } : (tn_wia_extent){ .symbol = any_symbol() };
    d->dimensions = dims;
    d->layout = coin() ? any_word() : NULL;
    d->symbolic = coin();
    if (coin()) {
        static const char *const symbols[] = { "H", "seq", "batch" };
        tn_wia_constraint *all = some(a, 3, sizeof *all);
        for (size_t i = 0; i < 3; i++)
            all[i] = (tn_wia_constraint){ symbols[i], any_int(), coin() ? INT64_MAX : any_int(),
                                      coin() ? 1 : any_int() };
        d->constraints = all;
        d->nconstraints = below(4);
    }
    d->physical_shape = coin() ? any_ints(a, d->rank, any_size) : NULL;
    d->has_padding = coin();
    if (d->has_padding) {
        bool *pads = some(a, d->rank, sizeof *pads);
        for (uint32_t i = 0; i < d->rank; i++)
            pads[i] = coin();
        d->padding = (tn_wia_padding){ coin() ? pads : NULL, coin() ? any_ints(a, d->rank, any_int) : NULL,
                                   coin()   ? "value_fill"
                                   : coin() ? any_word()
                                            : NULL,
                                   coin() ? any_double() : 0.0 };
    }
}

static void draw_type(tn_arena *a, tn_descriptor *d)
{
    tn_wia_quantization *q = &d->quantization;
    d->dtype = (tn_dtype)below(TN_DTYPE_COUNT);
    d->base_type = d->dtype ? tn_wia_type_name(d->dtype, a) : coin() ? "POSIT16" : NULL;
    if (!d->base_type)
        return;
    d->byte_order = coin() ? TN_LITTLE_ENDIAN : TN_BIG_ENDIAN;
    q->scheme = (tn_quant_scheme)below(5);
    if (q->scheme == TN_QUANT_NONE)
        return;
    if (coin()) {
        q->nscales = coin() ? 1 : below(40);
        double *scales = some(a, q->nscales, sizeof *scales);
        for (size_t i = 0; i < q->nscales; i++)
            scales[i] = any_double();
        q->scales = scales;
    }
    if (coin()) {
        q->nzero_points = coin() ? 1 : below(40);
        q->zero_points = any_ints(a, q->nzero_points, any_int);
    }
    q->has_range = coin();
    q->range[0] = q->has_range ? any_int() : 0;
    q->range[1] = q->has_range ? any_int() : 0;
    q->has_axis = coin();
    q->channel_axis = q->has_axis ? any_int() : 0;
}

static void draw_memory(tn_arena *a, tn_descriptor *d)
{
    d->has_memory = coin();
    if (!d->has_memory)
        return;
    if (coin()) {
        tn_wia_product *strides = some(a, d->rank, sizeof *strides);
        for (uint32_t i = 0; i < d->rank; i++) {
            strides[i].nsymbols = (uint32_t)below(4);
            const char **symbols = some(a, strides[i].nsymbols, sizeof *symbols);
            for (uint32_t k = 0; k < strides[i].nsymbols; k++)
                symbols[k] = any_symbol();
            strides[i].symbols = strides[i].nsymbols ? symbols : NULL;
            strides[i].factor = any_int();
        }
        d->strides = strides;
    }
    d->offset_bytes = coin() ? 0 : draw();
    d->has_total = coin();
    d->total_bytes = d->has_total ? draw() : 0;
    d->alignment = coin() ? 0 : draw() | 1;
    d->device = (tn_device){ (tn_device_type)below(4), any_int(), (tn_memory_space)below(3) };
}

static void draw_blocks(tn_descriptor *d)
{
    d->version = coin() ? TN_WIA_VERSION : coin() ? any_word() : NULL;
    d->tensor_id = coin() ? any_word() : NULL;
    d->name = coin() ? any_word() : NULL;
    d->has_properties = coin();
    if (d->has_properties) {
        d->requires_grad = coin();
        d->is_pinned = coin();
        d->is_contiguous = coin();
        d->zero_copy_compatible = coin();
    }
    d->metadata = coin() ? "{\"a\": 1,\n   \"b\":[]}" : NULL;
    if (coin())
        d->buffer_handle = (tn_buffer_handle){ (tn_handle_type)(1 + below(4)), any_int(), any_size(),
                                               coin() };
    if (coin()) {
        d->mapping = (tn_wia_mapping){ .present = true, .device_address = draw() >> below(64),
                                   .cpu_device = coin() };
        d->mapping.cpu_mapped = coin();
        d->mapping.cpu_address = d->mapping.cpu_mapped ? draw() >> below(64) : 0;
    }
}

static void draw_sparse(tn_arena *a, tn_descriptor *d)
{
    tn_wia_sparse *s = &d->sparse;
    bool is_coo = coin() && d->rank > 0;
    s->format = is_coo ? "COO" : "CSR";
    s->rank = d->rank;
    int64_t *shape = some(a, d->rank, sizeof *shape);
    for (uint32_t i = 0; i < d->rank; i++)
        shape[i] = d->dimensions[i].value;
    s->shape = shape;
    s->has_nnz = coin();
    s->nnz = s->has_nnz ? any_size() : 0;
    s->index_type = is_coo && coin() ? TN_INT32 : TN_INT64;
    s->nindices = below(12) * (is_coo ? d->rank : 1);
    s->indices = any_ints(a, s->nindices, any_int);
    if (!is_coo) {
        s->npointers = below(12);
        s->pointers = any_ints(a, s->npointers, any_int);
    }
    s->value_type = coin() && d->dtype ? d->dtype : (tn_dtype)(1 + below(TN_DTYPE_COUNT - 1));
    const tn_dtype_info *type = tn_dtype_get(s->value_type);
    s->nvalues = below(30);
    size_t bytes = s->nvalues * (type->bits < 8 ? 8 : type->bits) / 8;
    uint8_t *values = some(a, bytes, 1);
    for (size_t i = 0; i < bytes; i++)
        values[i] = type->kind == TN_KIND_BOOL ? coin() : (uint8_t)draw();
    s->values = values;
}

static void draw_extra(tn_arena *a, tn_descriptor *d)
{
    const char *paths[16];
    size_t n = 0;
    paths[n++] = "";
    paths[n++] = "shape";
    if (d->base_type)
        paths[n++] = "dtype";
    if (d->quantization.scheme)
        paths[n++] = "dtype.quantization";
    if (d->has_memory)
        paths[n++] = "memory";
    if (d->has_memory)
        paths[n++] = "memory.device";
    if (d->has_properties)
        paths[n++] = "properties";
    if (d->has_padding)
        paths[n++] = "padding";
    if (d->buffer_handle.type)
        paths[n++] = "buffer_handle";
    if (d->mapping.present)
        paths[n++] = "mapping";
    if (d->nconstraints > 1)
        paths[n++] = "shape.constraints.seq";
    if (d->sparse.format)
        paths[n++] = "values";
    if (d->sparse.format && strcmp(d->sparse.format, "COO") == 0)
        paths[n++] = "indices";
    tn_wia_extra *extra = some(a, 10, sizeof *extra);
    static const char *const keys[] = { "k0", "k 1", "k\"2", "k3", "k4", "k5", "k6", "k7", "", "k9" };
    d->nextra = below(11);
    for (size_t i = 0; i < d->nextra; i++)
        extra[i] = (tn_wia_extra){ paths[below(n)], keys[i], any_json() };
    d->extra = extra;
}

static void draw_descriptor(tn_arena *a, tn_descriptor *d)
{
    bool sparse = below(3) == 0;
    *d = (tn_descriptor){ 0 };
    draw_blocks(d);
    draw_shape(a, d, sparse);
    draw_type(a, d);
    draw_memory(a, d);
    if (sparse)
        draw_sparse(a, d);
    draw_extra(a, d);
}

static void what_is_written_reads_back_the_same(void)
{
    for (int i = 0; i < 3000; i++) {
        tn_arena arena = { 0 };
        tn_descriptor d[3];
        size_t n = i % 10 ? 1 : below(4);
        for (size_t k = 0; k < n; k++)
            draw_descriptor(&arena, &d[k]);
        check_round_trip(d, n, n != 1 || coin());
        tn_arena_free(&arena);
    }
}

static void documents_survive_being_read_and_written(void)
{
    static const char *const documents[] = { full, coo, csr };
    for (int i = 0; i < 3; i++) {
        tn_descriptors *set = parse(documents[i]);
        check_round_trip(tn_descriptors_at(set, 0), 1, false);
        tn_descriptors_free(set);
    }
}

/* ---- the text itself ---- */

static void check_text(const tn_descriptor *d, const char *expected)
{
    char *json;
    size_t size;
    CHECK(tn_descriptors_write(d, 1, false, &json, &size, NULL) == TN_OK);
    if (strcmp(json, expected) != 0)
        print_error("%s", json);
    CHECK(strcmp(json, expected) == 0);
    free(json);
}

static const tn_wia_extent image[] = { { 32, NULL }, { 3, NULL }, { 224, NULL }, { 224, NULL } };

static void keys_come_in_the_order_of_the_specification(void)
{
    static const tn_wia_product strides[] = { { 150528, NULL, 0 }, { 50176, NULL, 0 }, { 224, NULL, 0 },
                                          { 1, NULL, 0 } };
    tn_descriptor d = {
        .version = TN_WIA_VERSION, .tensor_id = "7e7eb0f9-0cb3-4368-a4cb-a91565892a66", .name = "images",
        .rank = 4,
        .dimensions = image, .layout = "NCHW", .dtype = TN_FLOAT32, .has_memory = true, .strides = strides,
        .has_total = true, .total_bytes = 19267584, .alignment = 256, .has_properties = true,
        .is_contiguous = true,
        .metadata = "{}",
    };
    check_text(&d, "{\n"
                   "  \"version\": \"WIA-AI-011-v1.0\",\n"
                   "  \"tensor_id\": \"7e7eb0f9-0cb3-4368-a4cb-a91565892a66\",\n"
                   "  \"name\": \"images\",\n"
                   "  \"shape\": {\n    \"dimensions\": [32, 3, 224, 224],\n    \"layout\": \"NCHW\",\n    "
                   "\"symbolic\": false\n  },\n"
                   "  \"dtype\": {\n    \"base_type\": \"FLOAT32\",\n    \"quantization\": null,\n    "
                   "\"byte_order\": \"little_endian\"\n  },\n"
                   "  \"memory\": {\n    \"strides\": [150528, 50176, 224, 1],\n    \"offset_bytes\": 0,\n   "
                   " \"total_bytes\": 19267584,\n"
                   "    \"alignment\": 256,\n    \"device\": {\n      \"type\": \"CPU\",\n      \"id\": 0,\n "
                   "     \"memory_space\": \"host\"\n    }\n  },\n"
                   "  \"properties\": {\n    \"requires_grad\": false,\n    \"is_pinned\": false,\n    "
                   "\"is_contiguous\": true,\n"
                   "    \"zero_copy_compatible\": false\n  },\n"
                   "  \"metadata\": {}\n"
                   "}\n");
}

static void long_lists_fill_lines(void)
{
    double scales[25];
    for (size_t i = 0; i < 25; i++)
        scales[i] = (double)i / 8;
    tn_descriptor d = { .dtype = TN_INT8, .quantization = { .scheme = TN_QUANT_PER_CHANNEL_SYMMETRIC,
                                                            .scales = scales, .nscales = 25 } };
    check_text(&d, "{\n"
                   "  \"shape\": {\n    \"dimensions\": [],\n    \"symbolic\": false\n  },\n"
                   "  \"dtype\": {\n    \"base_type\": \"INT8\",\n    \"quantization\": {\n      \"scheme\": "
                   "\"per_channel_symmetric\",\n"
                   "      \"scales\": [\n"
                   "        0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.375, 1.5, "
                   "1.625, 1.75,\n"
                   "        1.875, 2.0, 2.125, 2.25, 2.375, 2.5, 2.625, 2.75, 2.875, 3.0\n"
                   "      ]\n    },\n"
                   "    \"byte_order\": \"little_endian\"\n  }\n"
                   "}\n");
}

static void lists_of_descriptors_are_indented(void)
{
    char *json;
    size_t size;
    tn_descriptor d[2] = { { .name = "a" }, { .name = "b" } };
    CHECK(tn_descriptors_write(d, 2, true, &json, &size, NULL) == TN_OK);
    CHECK(strcmp(json, "[\n  {\n    \"name\": \"a\",\n    \"shape\": {\n      \"dimensions\": [],\n      "
                       "\"symbolic\": false\n    }\n  },\n"
                       "  {\n    \"name\": \"b\",\n    \"shape\": {\n      \"dimensions\": [],\n      "
                       "\"symbolic\": false\n    }\n  }\n]\n") == 0);
    free(json);
    CHECK(tn_descriptors_write(NULL, 0, true, &json, &size, NULL) == TN_OK);
    CHECK(strcmp(json, "[]\n") == 0 && size == 3);
    free(json);
}

static void the_type_decides_where_its_spelling_disagrees(void)
{
    tn_descriptor d = { .dtype = TN_BOOL, .base_type = "FLOAT32" };
    tn_buf out = { 0 };
    tn_descriptor_put(&d, 0, &out);
    tn_buf_putc(&out, '\0');
    CHECK(!out.bad && strstr((char *)out.data, "\"base_type\": \"tenon:bool\""));
    tn_buf_free(&out);
}

/* ---- what cannot be written ---- */

static void check_refused(const tn_descriptor *d, size_t n, const char *text)
{
    char *json = NULL;
    size_t size;
    tn_error err;
    CHECK(tn_descriptors_write(d, n, false, &json, &size, &err) == TN_ERR_ARGUMENT);
    if (strcmp(said_of(&err), text) != 0)
        print_error("expected %s\nfound    %s\n", text, line_of(&err));
    CHECK(json == NULL && strcmp(said_of(&err), text) == 0);
}

static void nothing_is_dropped_silently(void)
{
    static const tn_wia_extra extra[] = { { "memory", "k", "1" }, { "", "l", "2" } };
    check_refused(&(tn_descriptor){ .extra = extra, .nextra = 2 }, 1,
                  "1 of 2 extra members are in objects that the descriptor does not have");
    check_refused(&(tn_descriptor){ .dtype = TN_INT8, .quantization = { .scheme = (tn_quant_scheme)9 } }, 1,
                  "scheme has a value that the specification has no word for");
    check_refused(&(tn_descriptor){ .dtype = (tn_dtype)99 }, 1,
                  "base_type has a value that the specification has no word for");
    check_refused(&(tn_descriptor){ .name = "\xff" }, 1, "name: expected UTF-8 but found byte 0xFF");
    check_refused(NULL, 0, "expected 1 descriptor where there is no list but found 0");
}

static void what_cannot_be_read_is_not_written(void)
{
    static const tn_wia_extent negative = { .value = -1 }, spaced = { .symbol = "a b" };
    static const int64_t minus_one = -1;
    check_refused(&(tn_descriptor){ .rank = 1, .dimensions = &negative }, 1,
                  "shape.dimensions[0]: expected an integer that is not negative but found -1");
    check_refused(&(tn_descriptor){ .rank = 1, .dimensions = &spaced }, 1,
                  "shape.dimensions[0]: expected a symbol of letters, digits and _ but found \"a b\"");
    check_refused(&(tn_descriptor){ .rank = 1, .dimensions = &image[0], .physical_shape = &minus_one }, 1,
                  "physical_shape[0]: expected an integer that is not negative but found -1");
    check_refused(&(tn_descriptor){ .metadata = "[]" }, 1, "metadata: expected an object but found an array");
    check_refused(&(tn_descriptor){ .metadata = "{\"a\":1,\"a\":2}" }, 1,
                  "metadata.a: expected every key once but found \"a\" again");
}

static void json_of_the_caller_is_one_value(void)
{
    static const char *const texts[][2] = {
        { "", "expected a value but the text ends" },
        { "{", "expected ',' or '}' but the text ends" },
        { "}", "expected a value but found '}'" },
        { "{} 7", "expected the end of the text but found '7'" },
        { "{}, \"name\": \"x\"", "expected the end of the text but found ','" },
        { "{}}", "expected the end of the text but found '}'" },
        { "{\"a\":01}", "expected a number without leading zeros but found 01" },
        { "\"\xff\"", "expected UTF-8 but found byte 0xFF" },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const tn_wia_extra extra = { .path = "shape", .key = "a\nb", .json = texts[i][0] };
        char text[120];
        snprintf(text, sizeof text, "expected one JSON value for \"metadata\": %s", texts[i][1]);
        check_refused(&(tn_descriptor){ .metadata = texts[i][0] }, 1, text);
        snprintf(text, sizeof text, "expected one JSON value for \"a\\nb\": %s", texts[i][1]);
        check_refused(&(tn_descriptor){ .extra = &extra, .nextra = 1 }, 1, text);
    }
}

static void extra_members_have_names_of_their_own(void)
{
    static const tn_wia_extra known = { "", "shape", "[1]" }, absent = { "shape", "layout", "\"N\"" };
    static const tn_wia_extra twice[] = { { "shape", "k", "1" }, { "shape", "k", "2" } };
    check_refused(&(tn_descriptor){ .extra = &known, .nextra = 1 }, 1,
                  "shape: expected every key once but found \"shape\" again");
    check_refused(&(tn_descriptor){ .layout = "", .extra = &absent, .nextra = 1 }, 1,
                  "shape.layout: expected every key once but found \"layout\" again");
    check_refused(&(tn_descriptor){ .extra = twice, .nextra = 2 }, 1,
                  "shape.k: expected every key once but found \"k\" again");
}

static void symbols_of_strides_are_symbols(void)
{
    static const char *const names[] = { "", "7", "a*b", "a b", "a\", \"b", "\xff" };
    static const char *const shown[] = { "", "7", "a*b", "a b", "a\\\", \\\"b", "\\xff" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tn_wia_product stride = { .factor = 2, .symbols = &names[i], .nsymbols = 1 };
        char text[100];
        snprintf(text, sizeof text,
                 "memory.strides[0]: expected symbols of letters, digits and _ but found \"%s\"", shown[i]);
        check_refused(&(tn_descriptor){ .rank = 1, .dimensions = image, .has_memory = true,
                                        .strides = &stride }, 1, text);
    }
}

/* 64 levels may be read; a list is one of them. */
static void nesting_is_counted_with_the_list(void)
{
    enum { ARRAYS = 62 };
    char deep[2 * ARRAYS + 8] = "{\"a\":", *json;
    size_t n = strlen(deep), size;
    tn_descriptors *set = NULL;
    tn_error err;
    memset(deep + n, '[', ARRAYS);
    memset(deep + n + ARRAYS, ']', ARRAYS);
    deep[n + 2 * ARRAYS] = '}';
    tn_descriptor d = { .metadata = deep };
    CHECK(tn_descriptors_write(&d, 1, false, &json, &size, &err) == TN_OK);
    CHECK(parse_n(json, size, &set, &err) == TN_OK);
    tn_descriptors_free(set);
    free(json);
    CHECK(tn_descriptors_write(&d, 1, true, &json, &size, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "nest"));
}

/* ---- identity ---- */

static void ids_are_version_5_uuids_of_the_description(void)
{
    tn_arena arena = { 0 };
    tn_descriptor d = { .version = TN_WIA_VERSION, .name = "w", .rank = 4, .dimensions = image,
                        .dtype = TN_FLOAT32 };
    CHECK(tn_descriptor_identify(&d, NULL, &arena, NULL) == TN_OK);
    /* as Python's uuid.uuid5() gives it for the namespace in identify.c and the text */
    CHECK(strcmp(d.tensor_id, "2012bbd7-4e39-5bdf-8500-0cd676bebdab") == 0);
    const char *first = d.tensor_id;
    CHECK(tn_descriptor_identify(&d, NULL, &arena, NULL) == TN_OK);
    CHECK(strcmp(d.tensor_id, first) == 0);             /* the old id is not part of it */
    d.name = "v";
    CHECK(tn_descriptor_identify(&d, NULL, &arena, NULL) == TN_OK);
    CHECK(strlen(d.tensor_id) == 36 && d.tensor_id[14] == '5' && strchr("89ab", d.tensor_id[19]));
    CHECK(strcmp(d.tensor_id, first) != 0);
    tn_arena_free(&arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(what_is_written_reads_back_the_same),
        TEST(documents_survive_being_read_and_written),
        TEST(keys_come_in_the_order_of_the_specification),
        TEST(long_lists_fill_lines),
        TEST(lists_of_descriptors_are_indented),
        TEST(the_type_decides_where_its_spelling_disagrees),
        TEST(nothing_is_dropped_silently),
        TEST(what_cannot_be_read_is_not_written),
        TEST(json_of_the_caller_is_one_value),
        TEST(extra_members_have_names_of_their_own),
        TEST(symbols_of_strides_are_symbols),
        TEST(nesting_is_counted_with_the_list),
        TEST(ids_are_version_5_uuids_of_the_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
