/* DLPack: what goes out, what comes in, who calls the deleter, fields that lie. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/random.h"
#include "share/dlpack_abi.h"
#include "share/provider.h"

typedef struct DLManagedTensorVersioned managed_tensor;

#define COUNT(array) (sizeof (array) / sizeof *(array))

/* ---- the structures ---- */

static void structures_lie_as_dlpack_has_them(void)
{
    if (sizeof(void *) != 8)
        skip();
    CHECK(sizeof(tn_dlpack_type) == 4 && sizeof(tn_dlpack_tensor) == 48 && sizeof(managed_tensor) == 80);
    CHECK(offsetof(tn_dlpack_type, code) == 0 && offsetof(tn_dlpack_type, bits) == 1 &&
          offsetof(tn_dlpack_type, lanes) == 2);
    CHECK(offsetof(tn_dlpack_tensor, data) == 0 && offsetof(tn_dlpack_tensor, device_type) == 8);
    CHECK(offsetof(tn_dlpack_tensor, device_id) == 12 && offsetof(tn_dlpack_tensor, ndim) == 16);
    CHECK(offsetof(tn_dlpack_tensor, type) == 20 && offsetof(tn_dlpack_tensor, shape) == 24);
    CHECK(offsetof(tn_dlpack_tensor, strides) == 32 && offsetof(tn_dlpack_tensor, byte_offset) == 40);
    CHECK(offsetof(managed_tensor, major) == 0 && offsetof(managed_tensor, minor) == 4);
    CHECK(offsetof(managed_tensor, context) == 8 && offsetof(managed_tensor, deleter) == 16);
    CHECK(offsetof(managed_tensor, flags) == 24 && offsetof(managed_tensor, tensor) == 32);
}

static const struct { tn_dtype dtype; uint8_t code, bits; } names[] = {      /* as DLPack 1.3 has them */
    { TN_INT2, 0, 2 }, { TN_INT4, 0, 4 }, { TN_INT8, 0, 8 }, { TN_INT16, 0, 16 }, { TN_INT32, 0, 32 },
    { TN_INT64, 0, 64 },
    { TN_UINT2, 1, 2 }, { TN_UINT4, 1, 4 }, { TN_UINT8, 1, 8 }, { TN_UINT16, 1, 16 }, { TN_UINT32, 1, 32 },
    { TN_UINT64, 1, 64 },
    { TN_FLOAT16, 2, 16 }, { TN_FLOAT32, 2, 32 }, { TN_FLOAT64, 2, 64 }, { TN_BFLOAT16, 4, 16 },
    { TN_COMPLEX64, 5, 64 }, { TN_COMPLEX128, 5, 128 }, { TN_BOOL, 6, 8 },
    { TN_FLOAT8_E3M4, 7, 8 }, { TN_FLOAT8_E4M3, 8, 8 }, { TN_FLOAT8_E4M3FN, 10, 8 },
    { TN_FLOAT8_E4M3FNUZ, 11, 8 },
    { TN_FLOAT8_E5M2, 12, 8 }, { TN_FLOAT8_E5M2FNUZ, 13, 8 }, { TN_FLOAT8_E8M0, 14, 8 },
    { TN_FLOAT6_E2M3, 15, 6 }, { TN_FLOAT6_E3M2, 16, 6 }, { TN_FLOAT4_E2M1, 17, 4 },
};

static tn_dtype named(unsigned code, unsigned bits)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i].code == code && names[i].bits == bits)
            return names[i].dtype;
    return TN_UNKNOWN;
}

/* ---- making both kinds ---- */

static atomic_int released;

static void count_release(void *unused)
{
    (void)unused;
    atomic_fetch_add(&released, 1);
}

static tn_buffer *wrap(void *data, size_t n, bool read_only)
{
    tn_buffer *b;
    atomic_store(&released, 0);
    CHECK(tn_buffer_wrap(data, n, read_only, count_release, NULL, &b, NULL) == TN_OK);
    return b;
}

static managed_tensor *export_array(const tn_array *array, tn_buffer *buffer, uint64_t offset)
{
    managed_tensor *m = NULL;
    tn_error err = { .text = "" };
    if (tn_dlpack_export(array, buffer, offset, &m, &err))
        fail_msg("%s", line_of(&err));
    return m;
}

static void import_array(managed_tensor *m, tn_dlpack_array *a)
{
    tn_error err = { .text = "" };
    if (tn_dlpack_import(m, a, &err))
        fail_msg("%s", line_of(&err));
}

/* Somebody else's: on the heap, extents in blocks of exactly their size. */
static int deleted;

static void delete_foreign(managed_tensor *m)
{
    deleted++;
    free(m->tensor.shape);
    free(m->tensor.strides);
    free(m);
}

static managed_tensor *foreign(void *data, tn_dlpack_type type, int32_t ndim, const int64_t *shape,
                               const int64_t *strides)
{
    managed_tensor *m = calloc(1, sizeof *m);
    CHECK(m != NULL);
    size_t n = (size_t)ndim * sizeof *shape;
    *m = (managed_tensor){ .major = 1, .deleter = delete_foreign, .tensor = {
        .data = data, .device_type = 1, .ndim = ndim, .type = type,
        .shape = (void *)exact_copy(shape, n), .strides = strides ? (void *)exact_copy(strides, n) : NULL } };
    deleted = 0;
    return m;
}

static const tn_dlpack_type f32 = { 2, 32, 1 };

/* Refused with a reason that has these words, and still the caller's, who then deletes it. */
static void check_refused(managed_tensor *m, tn_status expected, const char *words)
{
    tn_dlpack_array a, untouched;
    tn_error err = { .text = "" };
    memset(&a, 0x5a, sizeof a);
    memcpy(&untouched, &a, sizeof a);
    tn_status status = tn_dlpack_import(m, &a, &err);
    if (status != expected || err.status != expected || !strstr(line_of(&err), words))
        fail_msg("status %d with \"%s\": expected %d with \"%s\"", status, line_of(&err), expected, words);
    CHECK(tn_dlpack_import(m, &a, NULL) == expected);
    CHECK(memcmp(&a, &untouched, sizeof a) == 0 && deleted == 0);
    delete_foreign(m);
}

/* ---- there and back ---- */

static void every_type_goes_out_and_comes_back(void)
{
    static const int64_t shape[] = { 3, 5 };
    unsigned found = 0;
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        tn_array array = { .dtype = (tn_dtype)i, .rank = 2, .shape = shape };
        uint64_t n;
        CHECK(tn_array_nbytes(&array, &n) == TN_OK);
        uint8_t *data = exact_copy((uint8_t[256]){ 0 }, n + 3);
        tn_buffer *b = wrap(data, n + 3, false);
        managed_tensor *m = NULL;
        tn_error err = { .text = "" };
        tn_status status = tn_dlpack_export(&array, b, 3, &m, &err);
        tn_buffer_unref(b);
        if (status) {
            CHECK(status == TN_ERR_UNSUPPORTED && strstr(line_of(&err), tn_dtype_get(array.dtype)->name));
            CHECK(i == TN_TF32 || i == TN_FX8 || i == TN_FX16);
            free(data);
            continue;
        }
        found++;
        CHECK(m->major == 1 && m->minor == 2 && m->flags == 0);
        const tn_dlpack_tensor *t = &m->tensor;
        CHECK(t->data == data + 3 && t->byte_offset == 0 && t->device_type == 1 && t->device_id == 0);
        CHECK(named(t->type.code, t->type.bits) == array.dtype && t->type.lanes == 1);
        CHECK(t->ndim == 2 && t->shape[0] == 3 && t->shape[1] == 5 && t->strides[0] == 5 &&
              t->strides[1] == 1);
        tn_dlpack_array a;
        import_array(m, &a);
        CHECK(a.array.dtype == array.dtype && a.array.rank == 2 && a.array.shape == a.shape &&
              a.array.stride == NULL);
        CHECK(a.shape[0] == 3 && a.shape[1] == 5 && a.stride[0] == 5 && a.stride[1] == 1);
        CHECK(a.data == data + 3 && tn_buffer_data(a.buffer) == a.data && tn_buffer_size(a.buffer) == n);
        CHECK(released == 0);
        tn_buffer_unref(a.buffer);
        CHECK(released == 1);
        free(data);
    }
    CHECK(found == COUNT(names));
}

static void every_pair_of_code_and_bits_is_the_type_of_that_name_or_refused(void)
{
    static const int64_t one = 1;
    uint8_t data[16];
    for (unsigned pair = 0; pair < 65536; pair++) {
        tn_dlpack_type type = { (uint8_t)(pair >> 8), (uint8_t)pair, 1 };
        managed_tensor *m = foreign(data, type, 1, &one, NULL);
        if (named(type.code, type.bits) == TN_UNKNOWN) {
            check_refused(m, TN_ERR_UNSUPPORTED, "is not in this build");
            continue;
        }
        tn_dlpack_array a;
        import_array(m, &a);
        CHECK(a.array.dtype == named(type.code, type.bits));
        CHECK(tn_buffer_size(a.buffer) == (type.bits + 7u) / 8);
        tn_buffer_unref(a.buffer);
        CHECK(deleted == 1);
    }
}

/* ---- views ---- */

typedef struct view { uint32_t rank; int64_t shape[3], stride[3]; int64_t first; bool dense; } view;

static const view views[] = {       /* of 6 x 7 elements */
    { 2, { 6, 7 }, { 7, 1 }, 0, true },
    { 2, { 7, 6 }, { 1, 7 }, 0, false },                /* transposed */
    { 2, { 6, 7 }, { -7, -1 }, 41, false },             /* from the end */
    { 2, { 6, 7 }, { -7, 1 }, 35, false },              /* rows from below */
    { 2, { 2, 3 }, { 14, 2 }, 8, false },               /* every other */
    { 3, { 2, 4, 7 }, { 0, 0, 1 }, 14, false },         /* one row, many times */
    { 1, { 42 }, { 1 }, 0, true },
    { 3, { 6, 1, 7 }, { 7, -99, 1 }, 0, true },         /* a stride that nobody follows */
    { 2, { 1, 1 }, { INT64_MAX, INT64_MIN }, 41, true },
    { 1, { 6 }, { 8 }, 0, false },                      /* the diagonal */
    { 0, { 0 }, { 0 }, 17, true },
    { 2, { 0, 7 }, { INT64_MIN, INT64_MAX }, 42, true },
};

/* The lowest and the highest element of a view, by walking it; false: there is none. */
static bool walk(const view *v, int64_t *lowest, int64_t *highest)
{
    int64_t extents[3] = { 1, 1, 1 };
    memcpy(extents, v->shape, v->rank * sizeof *extents);
    bool any = false;
    for (int64_t i = 0; i < extents[0]; i++)
        for (int64_t k = 0; k < extents[1]; k++)
            for (int64_t l = 0; l < extents[2]; l++) {
                int64_t at = v->first + (i ? i * v->stride[0] : 0) + (k ? k * v->stride[1] : 0) +
                             (l ? l * v->stride[2] : 0);
                *lowest = any && *lowest < at ? *lowest : at;
                *highest = any && *highest > at ? *highest : at;
                any = true;
            }
    return any;
}

static void views_keep_their_strides_and_the_buffer_has_their_bytes_only(void)
{
    static const tn_dtype types[] = { TN_INT8, TN_FLOAT32, TN_COMPLEX128 };
    for (size_t i = 0; i < COUNT(views) * COUNT(types); i++) {
        const view *v = &views[i / COUNT(types)];
        tn_dtype dtype = types[i % COUNT(types)];
        int64_t size = tn_dtype_get(dtype)->bits / 8, lowest = 0, highest = 0;
        uint8_t *data = calloc(42, (size_t)size);
        tn_buffer *b = wrap(data, (size_t)(42 * size), false);
        tn_array array = { .dtype = dtype, .rank = v->rank, .shape = v->shape, .stride = v->stride };
        managed_tensor *m = export_array(&array, b, (uint64_t)(v->first * size));
        bool any = walk(v, &lowest, &highest);
        CHECK(m->tensor.data == (any ? data + v->first * size : NULL));
        CHECK(v->rank ? m->tensor.shape && m->tensor.strides : !m->tensor.shape && !m->tensor.strides);
        tn_dlpack_array a;
        import_array(m, &a);
        CHECK(a.data == (any ? data + v->first * size : NULL));
        CHECK(tn_buffer_data(a.buffer) == (any ? data + lowest * size : NULL));
        CHECK(tn_buffer_size(a.buffer) == (any ? (uint64_t)((highest + 1 - lowest) * size) : 0));
        CHECK(a.array.stride == (v->dense ? NULL : a.stride));
        for (uint32_t k = 0; k < v->rank; k++) {
            CHECK(a.shape[k] == v->shape[k]);
            CHECK(a.stride[k] == (any && v->shape[k] > 1 ? v->stride[k] : a.stride[k]) &&
                  a.stride[k] != INT64_MIN);
        }
        tn_buffer_unref(a.buffer);
        CHECK(released == 0);
        tn_buffer_unref(b);
        CHECK(released == 1);
        free(data);
    }
}

static void what_one_writes_the_other_reads(void)
{
    static const int64_t shape[] = { 4 }, backwards[] = { -1 };
    float data[] = { 0, 1, 2, 3 };
    tn_buffer *b = wrap(data, sizeof data, false);
    tn_array array = { .dtype = TN_FLOAT32, .rank = 1, .shape = shape, .stride = backwards };
    tn_dlpack_array a;
    import_array(export_array(&array, b, 3 * sizeof *data), &a);
    float *other = a.data;
    CHECK(*other == 3 && other[a.stride[0]] == 2);
    other[3 * a.stride[0]] = 7;
    CHECK(data[0] == 7);
    data[3] = 9;
    CHECK(*other == 9);
    tn_buffer_unref(a.buffer);
    tn_buffer_unref(b);
}

static void arrays_outside_the_buffer_are_not_exported(void)
{
    static const struct {
        int64_t shape[2], stride[2];
        uint64_t offset;
        tn_status status;
        const char *says;
    } cases[] = {
        { { 6, 7 }, { 7, 1 }, 0, TN_OK, "" },
        { { 6, 7 }, { 7, 1 }, 1, TN_ERR_ARGUMENT, "168 bytes from byte 1 on" },
        { { 6, 7 }, { 7, 1 }, UINT64_MAX, TN_ERR_ARGUMENT, "" },
        { { 6, 8 }, { 7, 1 }, 0, TN_ERR_ARGUMENT, "" },
        { { 6, 7 }, { -7, 1 }, 35 * 4, TN_OK, "" },
        { { 6, 7 }, { -7, 1 }, 35 * 4 - 1, TN_ERR_ARGUMENT, "140 bytes before its element 0" },
        { { 6, 7 }, { -7, 1 }, 35 * 4 + 1, TN_ERR_ARGUMENT, "the buffer has 168 bytes" },
        { { 2, 2 }, { INT64_MIN, 1 }, 0, TN_ERR_LIMIT, "reaches over more" },
        { { 2, 2 }, { INT64_MAX, INT64_MAX }, 0, TN_ERR_LIMIT, "" },
        { { 2, 2 }, { INT64_MIN, INT64_MIN }, 0, TN_ERR_LIMIT, "" },
        { { 2, 2 }, { INT64_MIN / 16, 1 }, UINT64_MAX, TN_ERR_ARGUMENT, "" },
        { { 0, 7 }, { 7, 1 }, 42 * 4, TN_OK, "" },
        { { 0, 7 }, { 7, 1 }, 42 * 4 + 1, TN_ERR_ARGUMENT, "0 bytes from byte 169 on" },
        { { -1, 7 }, { 7, 1 }, 0, TN_ERR_ARGUMENT, "negative extent" },
        { { INT64_MAX, INT64_MAX }, { 0, 0 }, 0, TN_ERR_LIMIT, "" },
        { { INT64_MAX / 4, 1 }, { 0, 0 }, 0, TN_ERR_LIMIT, "" },
    };
    float data[42];
    for (size_t i = 0; i < COUNT(cases); i++) {
        tn_buffer *b = wrap(data, sizeof data, false);
        tn_array array = { .dtype = TN_FLOAT32, .rank = 2, .shape = cases[i].shape,
                           .stride = cases[i].stride };
        managed_tensor *m = NULL;
        tn_error err = { .text = "" };
        tn_status status = tn_dlpack_export(&array, b, cases[i].offset, &m, &err);
        if (status != cases[i].status || err.status != status || !strstr(line_of(&err), cases[i].says))
            fail_msg("case %zu: status %d: %s", i, status, line_of(&err));
        CHECK(!status == (m != NULL));
        tn_buffer_unref(b);
        CHECK(released == (status ? 1 : 0));    /* no reference is left behind */
        if (m)
            m->deleter(m);
        CHECK(released == 1);
    }
}

static void arrays_that_nobody_knows_are_not_exported(void)
{
    static const int64_t shape[TN_MAX_RANK + 1] = { 0 };
    static const int64_t sixty_four[TN_MAX_RANK] = { 1, 1, 1, 1, 2, 0 };
    uint8_t data[1];
    tn_buffer *b = wrap(data, 1, false);
    managed_tensor *m = NULL;
    tn_error err;
    CHECK(tn_dlpack_export(&(tn_array){ .dtype = TN_UNKNOWN, .rank = 1, .shape = shape }, b, 0, &m,
                           &err) == TN_ERR_ARGUMENT);
    CHECK(tn_dlpack_export(&(tn_array){ .dtype = TN_DTYPE_COUNT, .rank = 1, .shape = shape }, b, 0, &m,
                           &err) == TN_ERR_ARGUMENT);
    CHECK(tn_dlpack_export(&(tn_array){ .dtype = TN_INT8, .rank = 65, .shape = shape }, b, 0, &m,
                           &err) == TN_ERR_ARGUMENT);
    CHECK(tn_dlpack_export(&(tn_array){ .dtype = TN_INT8, .rank = 1 }, b, 0, &m, &err) == TN_ERR_ARGUMENT);
    CHECK(m == NULL);
    tn_dlpack_array a;
    import_array(export_array(&(tn_array){ .dtype = TN_INT8, .rank = 64, .shape = sixty_four }, b, 0), &a);
    CHECK(a.array.rank == 64 && a.shape[4] == 2 && a.data == NULL);
    tn_buffer_unref(a.buffer);
    tn_buffer_unref(b);
}

static tn_status map_nothing(tn_buffer *b, tn_error *err)
{
    (void)b, (void)err;
    return TN_OK;
}

static void memory_of_a_device_is_not_exported(void)
{
    static const tn_provider provider = { .type = TN_HANDLE_CUDA_IPC, .name = "cuda_ipc",
                                          .map = map_nothing };
    static const int64_t one = 1;
    uint8_t copy[16];
    for (int mapped = 0; mapped < 2; mapped++) {
        tn_buffer b = { .provider = &provider, .size = 16, .data = mapped ? copy : NULL, .fd = -1 };
        managed_tensor *m = NULL;
        tn_error err;
        atomic_init(&b.references, 1);
        CHECK(tn_dlpack_export(&(tn_array){ .dtype = TN_INT8, .rank = 1, .shape = &one }, &b, 0, &m,
                               &err) == TN_ERR_UNSUPPORTED);
        CHECK(strstr(line_of(&err), "cuda_ipc") && m == NULL && atomic_load(&b.references) == 1);
    }
}

static void read_only_stays_read_only(void)
{
    static const int64_t two = 2;
    static const char text[] = "ab";
    for (int read_only = 0; read_only < 2; read_only++) {
        tn_buffer *b = wrap((void *)(uintptr_t)text, 2, read_only);
        managed_tensor *m = export_array(&(tn_array){ .dtype = TN_UINT8, .rank = 1, .shape = &two }, b, 0);
        tn_dlpack_array a;
        CHECK(m->flags == (read_only ? TN_DLPACK_READ_ONLY : 0));
        import_array(m, &a);
        CHECK(tn_buffer_flags(a.buffer) == (read_only ? TN_MEM_READ_ONLY : 0));
        tn_buffer_unref(a.buffer);
        tn_buffer_unref(b);
    }
}

static void copies_and_flags_to_come_are_taken_as_they_are(void)
{
    static const int64_t two = 2;
    float data[2];
    managed_tensor *m = foreign(data, f32, 1, &two, NULL);
    tn_dlpack_array a;
    m->minor = UINT32_MAX;
    m->flags = ~TN_DLPACK_READ_ONLY;
    import_array(m, &a);
    CHECK(tn_buffer_flags(a.buffer) == 0 && tn_buffer_size(a.buffer) == sizeof data);
    tn_buffer_unref(a.buffer);
    CHECK(deleted == 1);
}

/* ---- the deleter ---- */

static void the_deleter_is_called_once_when_the_last_reference_goes(void)
{
    static const int64_t two = 2;
    float data[2];
    tn_dlpack_array a;
    import_array(foreign(data, f32, 1, &two, NULL), &a);
    tn_buffer *second = tn_buffer_ref(a.buffer);
    tn_buffer_unref(a.buffer);
    CHECK(deleted == 0);
    tn_buffer_unref(second);
    CHECK(deleted == 1);
}

static void a_tensor_without_a_deleter_is_taken_and_left_alone(void)
{
    static const int64_t two = 2;
    float data[2];
    managed_tensor *m = foreign(data, f32, 1, &two, NULL);
    tn_dlpack_array a;
    m->deleter = NULL;
    import_array(m, &a);
    CHECK(a.data == data);
    tn_buffer_unref(a.buffer);
    CHECK(deleted == 0);
    delete_foreign(m);
}

static void of_another_version_only_the_version_is_read(void)
{
    static const uint32_t versions[] = { 0, 2, 3, UINT32_MAX };
    volatile size_t known = offsetof(managed_tensor, tensor);       /* the rest may not be there */
    for (size_t i = 0; i < COUNT(versions); i++) {
        managed_tensor *m = malloc(known);
        tn_dlpack_array a;
        tn_error err;
        CHECK(m != NULL);
        m->major = versions[i];
        m->minor = 0;
        CHECK(tn_dlpack_import(m, &a, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "expected 1.x"));
        free(m);
    }
}

/* ---- lanes and narrow types ---- */

static void lanes_are_a_last_dimension(void)
{
    static const int64_t shape[] = { 2, 3 }, padded[] = { 4, 1 }, odd[] = { INT64_MAX, 7 }, one[] = { 1, 3 };
    float data[64];
    tn_dlpack_array a;
    import_array(foreign(data, (tn_dlpack_type){ 2, 32, 4 }, 2, shape, NULL), &a);
    CHECK(a.array.rank == 3 && a.shape[0] == 2 && a.shape[1] == 3 && a.shape[2] == 4 && !a.array.stride);
    CHECK(a.stride[0] == 12 && a.stride[1] == 4 && a.stride[2] == 1 &&
          tn_buffer_size(a.buffer) == 24 * sizeof *data);
    tn_buffer_unref(a.buffer);
    import_array(foreign(data, (tn_dlpack_type){ 2, 32, 4 }, 2, shape, padded), &a);
    CHECK(a.array.stride == a.stride && a.stride[0] == 16 && a.stride[1] == 4 && a.stride[2] == 1);
    CHECK(tn_buffer_size(a.buffer) == 28 * sizeof *data);
    tn_buffer_unref(a.buffer);
    /* the first stride is nobody's */
    import_array(foreign(data, (tn_dlpack_type){ 2, 32, 3 }, 2, one, odd), &a);
    CHECK(a.stride[0] == 9 && a.stride[1] == 21 && a.stride[2] == 1 && a.array.stride == a.stride);
    tn_buffer_unref(a.buffer);
    import_array(foreign(data, (tn_dlpack_type){ 1, 8, 65535 }, 0, NULL, NULL), &a);
    CHECK(a.array.rank == 1 && a.shape[0] == 65535 && tn_buffer_size(a.buffer) == 65535);
    tn_buffer_unref(a.buffer);
    check_refused(foreign(data, (tn_dlpack_type){ 2, 32, 2 }, 2, shape, odd), TN_ERR_LIMIT,
                  "stride of 9223372036854775807");
    check_refused(foreign(data, (tn_dlpack_type){ 2, 32, 0 }, 2, shape, NULL), TN_ERR_CORRUPT, "0 lanes");
    int64_t many[64] = { 0 };
    check_refused(foreign(data, (tn_dlpack_type){ 2, 32, 2 }, 64, many, NULL), TN_ERR_LIMIT, "at most 63");
}

static void narrow_types_are_packed_and_dense(void)
{
    static const int64_t shape[] = { 3, 5 }, strides[] = { 6, 1 }, turned[] = { 1, 3 };
    uint8_t data[64];
    for (size_t i = 0; i < COUNT(names); i++) {
        tn_dlpack_type type = { names[i].code, names[i].bits, 1 };
        if (type.bits >= 8)
            continue;
        check_refused(foreign(data, type, 2, shape, strides), TN_ERR_UNSUPPORTED, "expected dense");
        check_refused(foreign(data, type, 2, shape, turned), TN_ERR_UNSUPPORTED, "expected dense");
        managed_tensor *m = foreign(data, type, 2, shape, NULL);
        m->flags = TN_DLPACK_PADDED;
        check_refused(m, TN_ERR_UNSUPPORTED, "padded");
        type.lanes = 8;
        tn_dlpack_array a;
        import_array(foreign(data, type, 1, shape, NULL), &a);
        CHECK(a.array.rank == 2 && a.shape[1] == 8 && tn_buffer_size(a.buffer) == 3u * type.bits &&
              !a.array.stride);
        tn_buffer_unref(a.buffer);
        type.lanes = 3;
        check_refused(foreign(data, type, 1, shape, NULL), TN_ERR_UNSUPPORTED, "whole bytes");

        tn_buffer *b = wrap(data, sizeof data, false);
        managed_tensor *none = NULL;
        tn_array array = { .dtype = names[i].dtype, .rank = 2, .shape = shape, .stride = strides };
        CHECK(tn_dlpack_export(&array, b, 0, &none, NULL) == TN_ERR_ARGUMENT && none == NULL);
        tn_buffer_unref(b);
    }
    tn_dlpack_array pairs;      /* as PyTorch counts float4_e2m1fn_x2 */
    import_array(foreign(data, (tn_dlpack_type){ 17, 4, 2 }, 2, shape, NULL), &pairs);
    CHECK(pairs.array.dtype == TN_FLOAT4_E2M1 && pairs.array.rank == 3 && pairs.shape[2] == 2 &&
          tn_buffer_size(pairs.buffer) == 15);
    tn_buffer_unref(pairs.buffer);
}

static void element_i_of_a_narrow_type_is_at_bit_i_times_its_width(void)
{
    static const int64_t count = 11;
    for (size_t i = 0; i < COUNT(names); i++) {
        unsigned bits = names[i].bits;
        if (bits >= 8 || (names[i].code > 1 && bits != 4))
            continue;
        uint8_t data[16] = { 0 };
        for (uint64_t at = 0; at < (uint64_t)count; at++)
            for (unsigned k = 0; k < bits; k++)     /* the code of element i is i */
                if (at >> k & 1)
                    data[(at * bits + k) / 8] |= (uint8_t)(1u << (at * bits + k) % 8);
        tn_dlpack_array a;
        import_array(foreign(data, (tn_dlpack_type){ names[i].code, (uint8_t)bits, 1 }, 1, &count, NULL), &a);
        if (names[i].code == 1)
            for (uint64_t at = 0; at < (uint64_t)count; at++)
                CHECK(tn_value_get(a.array.dtype, a.data, at).u == (at & ((1u << bits) - 1)));
        CHECK(tn_buffer_size(a.buffer) == (11 * bits + 7) / 8);
        tn_buffer_unref(a.buffer);
    }
}

/* ---- fields that lie ---- */

static void fields_that_make_no_sense_are_refused(void)
{
    static const int64_t shape[] = { 2, 3 }, negative[] = { -1, 3 }, lowest[] = { 2, INT64_MIN },
    large[] = { INT64_MAX, 2 };
    static const int64_t apart[] = { INT64_MAX, 1 }, before[] = { INT64_MIN, 1 };
    float data[6];
    managed_tensor *m;
    static const int32_t dimensions[] = { INT32_MIN, -1, 65, INT32_MAX };
    for (size_t i = 0; i < COUNT(dimensions); i++) {
        m = foreign(data, f32, 2, shape, NULL);
        m->tensor.ndim = dimensions[i];
        check_refused(m, dimensions[i] < 0 ? TN_ERR_CORRUPT : TN_ERR_LIMIT, "dimensions: expected at");
    }
    m = foreign(data, f32, 2, shape, NULL);
    free(m->tensor.shape);
    m->tensor.shape = NULL;
    check_refused(m, TN_ERR_CORRUPT, "2 dimensions without a shape");
    check_refused(foreign(NULL, f32, 2, shape, NULL), TN_ERR_CORRUPT, "24 bytes at address NULL");
    check_refused(foreign(data, f32, 2, negative, NULL), TN_ERR_CORRUPT, "dimension 0 has -1 elements");
    check_refused(foreign(data, f32, 2, lowest, NULL), TN_ERR_CORRUPT,
                  "dimension 1 has -9223372036854775808");
    check_refused(foreign(data, f32, 2, large, NULL), TN_ERR_LIMIT, "63 bits");
    check_refused(foreign(data, f32, 2, shape, apart), TN_ERR_LIMIT, "reaches over more");
    check_refused(foreign(data, f32, 2, shape, before), TN_ERR_LIMIT, "reaches over more");
    static const uint64_t offsets[] = { UINT64_MAX, UINT64_MAX - 23, (uint64_t)INT64_MAX + 1 };
    for (size_t i = 0; i < COUNT(offsets); i++) {
        m = foreign(i == 2 ? (void *)(uintptr_t)INT64_MAX : data, f32, 2, shape, NULL);
        m->tensor.byte_offset = offsets[i];
        check_refused(m, TN_ERR_CORRUPT, "no memory is there");
    }
    static const int64_t back[] = { -((int64_t)1 << 50), 1 };
    check_refused(foreign(data, f32, 2, shape, back), TN_ERR_CORRUPT, "no memory is there");
    for (int32_t type = -2; type < 30; type++)
        if (type != 1 && type != 3 && type != 11) {
            m = foreign(data, f32, 2, shape, NULL);
            m->tensor.device_type = type;
            check_refused(m, TN_ERR_UNSUPPORTED, "memory of the host");
        }
}

static void a_byte_offset_is_added(void)
{
    static const int64_t two = 2;
    uint8_t data[64];
    for (uint64_t offset = 0; offset <= 56; offset++) {     /* no matter how it is aligned */
        managed_tensor *m = foreign(data, f32, 1, &two, NULL);
        tn_dlpack_array a;
        m->tensor.byte_offset = offset;
        import_array(m, &a);
        CHECK(a.data == data + offset && tn_buffer_data(a.buffer) == a.data && tn_buffer_size(a.buffer) == 8);
        tn_buffer_unref(a.buffer);
    }
}

static void nothing_of_an_empty_array_is_looked_at(void)
{
    static const int64_t shape[] = { INT64_MAX, 0, INT64_MAX },
    strides[] = { INT64_MIN, INT64_MIN, INT64_MAX };
    for (int32_t lanes = 1; lanes < 3; lanes++) {
        managed_tensor *m = foreign((void *)(uintptr_t)UINTPTR_MAX, (tn_dlpack_type){ 1, 4, (uint16_t)lanes },
                                    3, shape, strides);
        tn_dlpack_array a;
        if (lanes == 1)
            m->tensor.data = NULL;
        m->tensor.byte_offset = UINT64_MAX;
        import_array(m, &a);
        CHECK(a.data == NULL && tn_buffer_data(a.buffer) == NULL && tn_buffer_size(a.buffer) == 0 &&
              a.array.stride == NULL);
        tn_buffer_unref(a.buffer);
        CHECK(deleted == 1);
    }
}

__extension__ typedef __int128 wide;

/* What an array in a result must be, whatever it was made of. */
static void check_sound(const managed_tensor *m, const tn_dlpack_array *a)
{
    uint64_t count, size = tn_buffer_size(a->buffer), start = (uintptr_t)tn_buffer_data(a->buffer);
    unsigned bits = tn_dtype_get(a->array.dtype)->bits;
    CHECK(tn_shape_count(a->array.rank, a->shape, &count) == TN_OK && (count == 0) == (size == 0));
    CHECK((count == 0) == (a->data == NULL) && (size == 0 || start <= UINT64_MAX - size));
    if (count == 0)
        return;
    CHECK((uintptr_t)a->data == (uintptr_t)m->tensor.data + m->tensor.byte_offset);
    wide low = (uintptr_t)a->data, high = low;
    for (uint32_t i = 0; i < a->array.rank; i++) {
        wide way = ((wide)a->shape[i] - 1) * a->stride[i] * bits / 8;
        *(way < 0 ? &low : &high) += way;
    }
    CHECK(low == start);
    CHECK(bits < 8 || high + bits / 8 == (wide)start + size);
    CHECK(bits >= 8 || size == ((wide)count * bits + 7) / 8);
}

static void whatever_the_fields_say_what_is_taken_is_sound(void)
{
    static const int64_t extents[] = { 0, 1, 2, 3, 7, 255, 1 << 20, INT64_MAX / 2, INT64_MAX, -1, INT64_MIN };
    static const int64_t steps[] = { 0, 1, -1, 2, 3, -7, 255, -(1 << 20), (int64_t)1 << 40, INT64_MAX / 4,
                                     INT64_MAX, INT64_MIN, INT64_MIN + 1 };
    static const uint64_t places[] = { 0, 1, 4096, (uint64_t)1 << 47, INT64_MAX, UINT64_MAX / 2 + 1,
                                       UINT64_MAX - 7, UINT64_MAX };
    static const uint16_t lanes[] = { 1, 1, 1, 1, 1, 2, 4, 8, 65535, 0 };
    uint64_t thrown = 0;
    unsigned taken = 0;
    for (unsigned round = 0; round < 60000; round++) {
        uint64_t dice = tn_random_at(8, thrown++);
        int32_t ndim = (int32_t)(dice % 4);
        int64_t shape[3], strides[3];
        for (int i = 0; i < 3; i++) {
            uint64_t r = tn_random_at(8, thrown++);
            shape[i] = extents[r % (r >> 32 & 1 ? COUNT(extents) : 5)];
            strides[i] = steps[(r >> 8) % COUNT(steps)];
        }
        size_t row = (dice >> 8) % COUNT(names);
        tn_dlpack_type type = { names[row].code, names[row].bits, lanes[(dice >> 16) % COUNT(lanes)] };
        managed_tensor *m = foreign((void *)(uintptr_t)places[(dice >> 24) % COUNT(places)], type, ndim,
                                    shape, dice >> 32 & 3 ? strides : NULL);
        m->tensor.byte_offset = places[(dice >> 40) % COUNT(places)];
        tn_dlpack_array a;
        tn_error err = { .status = TN_OK };
        tn_status status = tn_dlpack_import(m, &a, &err);
        CHECK(status == err.status && deleted == 0);
        if (status) {
            CHECK(err.text[0] &&
                  (status == TN_ERR_UNSUPPORTED || status == TN_ERR_LIMIT || status == TN_ERR_CORRUPT));
            delete_foreign(m);
            continue;
        }
        taken++;
        check_sound(m, &a);
        tn_buffer_unref(a.buffer);
        CHECK(deleted == 1);
    }
    CHECK(taken > 1000);
}

/* The two pointers to extents are believed; all other bytes may be anything. */
static void a_changed_byte_anywhere_is_refused_or_sound(void)
{
    static const int64_t shape[] = { 2, 3 }, strides[] = { 3, 1 };
    float data[6];
    for (size_t at = 0; at < sizeof(managed_tensor); at++) {
        bool pointer = at >= offsetof(managed_tensor, context) && at < offsetof(managed_tensor, flags);
        size_t in = at - offsetof(managed_tensor, tensor);
        if (pointer ||
            (in >= offsetof(tn_dlpack_tensor, shape) && in < offsetof(tn_dlpack_tensor, byte_offset)))
            continue;
        for (unsigned bit = 0; bit < 8; bit++) {
            managed_tensor *m = foreign(data, f32, 2, shape, strides);
            tn_dlpack_array a;
            tn_error err = { .status = TN_OK };
            ((uint8_t *)m)[at] ^= (uint8_t)(1u << bit);
            /* extents that are not there cannot be told */
            if (m->tensor.ndim > 2 && m->tensor.ndim <= 64)
                m->tensor.ndim = 2;
            tn_status status = tn_dlpack_import(m, &a, &err);
            CHECK(status == err.status);
            if (status) {
                delete_foreign(m);
                continue;
            }
            check_sound(m, &a);
            tn_buffer_unref(a.buffer);
        }
    }
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 500 };

static void *export_and_import(void *context)
{
    static const int64_t shape[] = { 4, 4 };
    tn_buffer *b = context;
    for (int i = 0; i < ROUNDS; i++) {
        managed_tensor *m;
        tn_dlpack_array a;
        if (tn_dlpack_export(&(tn_array){ .dtype = TN_INT32, .rank = 2, .shape = shape }, b, 0, &m, NULL))
            return "export";
        if (i % 2)
            m->deleter(m);
        else if (tn_dlpack_import(m, &a, NULL))
            return "import";
        else
            tn_buffer_unref(a.buffer);
    }
    tn_buffer_unref(b);
    return NULL;
}

static void one_buffer_is_exported_by_many_threads(void)
{
    int32_t data[16];
    tn_buffer *b = wrap(data, sizeof data, false);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, export_and_import, tn_buffer_ref(b)) == 0);
    tn_buffer_unref(b);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        CHECK(pthread_join(threads[i], &failed) == 0 && failed == NULL);
    }
    CHECK(released == 1);
}

static void *call_deleter(void *context)
{
    managed_tensor *m = context;
    m->deleter(m);
    return NULL;
}

static void a_deleter_may_be_called_by_another_thread(void)
{
    static const int64_t shape[] = { 16 };
    int32_t data[16];
    tn_buffer *b = wrap(data, sizeof data, false);
    managed_tensor *m = export_array(&(tn_array){ .dtype = TN_INT32, .rank = 1, .shape = shape }, b, 0);
    pthread_t thread;
    tn_buffer_unref(b);
    CHECK(pthread_create(&thread, NULL, call_deleter, m) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(released == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(structures_lie_as_dlpack_has_them),
        TEST(every_type_goes_out_and_comes_back),
        TEST(every_pair_of_code_and_bits_is_the_type_of_that_name_or_refused),
        TEST(views_keep_their_strides_and_the_buffer_has_their_bytes_only),
        TEST(what_one_writes_the_other_reads),
        TEST(arrays_outside_the_buffer_are_not_exported),
        TEST(arrays_that_nobody_knows_are_not_exported),
        TEST(memory_of_a_device_is_not_exported),
        TEST(read_only_stays_read_only),
        TEST(copies_and_flags_to_come_are_taken_as_they_are),
        TEST(the_deleter_is_called_once_when_the_last_reference_goes),
        TEST(a_tensor_without_a_deleter_is_taken_and_left_alone),
        TEST(of_another_version_only_the_version_is_read),
        TEST(lanes_are_a_last_dimension),
        TEST(narrow_types_are_packed_and_dense),
        TEST(element_i_of_a_narrow_type_is_at_bit_i_times_its_width),
        TEST(fields_that_make_no_sense_are_refused),
        TEST(a_byte_offset_is_added),
        TEST(nothing_of_an_empty_array_is_looked_at),
        TEST(whatever_the_fields_say_what_is_taken_is_sound),
        TEST(a_changed_byte_anywhere_is_refused_or_sound),
        TEST(one_buffer_is_exported_by_many_threads),
        TEST(a_deleter_may_be_called_by_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
