/* Data in another order and with padding, slab by slab: every element against index arithmetic. */
#include "support.h"

#include "pipeline/arrange.h"
#include "files.h"
#include "make.h"
#include "random.h"
#include "tensor/code.h"
#include "cast/cast.h"

typedef struct sample {
    simple     tensor;
    uint8_t   *data;
    uint64_t   count;
    tn_arrange how;
} sample;

typedef struct output {
    uint8_t *bytes;
    size_t   size, cap;
    uint64_t done;
} output;

static tn_status collect(void *context, const uint8_t *bytes, size_t n, uint64_t done, tn_error *err)
{
    output *o = context;
    (void)err;
    CHECK(n <= o->cap - o->size);
    CHECK(done >= o->done);
    if (n)
        memcpy(o->bytes + o->size, bytes, n);
    o->size += n;
    o->done = done;
    return TN_OK;
}

static void random_shape(sample *s)
{
    static const tn_dtype types[] = { TN_UINT8, TN_INT4, TN_UINT2, TN_FLOAT6_E2M3, TN_FLOAT16, TN_FLOAT32,
                                      TN_INT64, TN_COMPLEX128 };
    s->tensor.name = "t";
    s->tensor.dtype = types[below(sizeof types / sizeof *types)];
    s->tensor.rank = (uint32_t)below(6);
    s->count = 1;
    for (uint32_t i = 0; i < s->tensor.rank; i++) {
        s->tensor.shape[i] = (int64_t)below(20) == 0 ? 0 : (int64_t)below(6) + 1;
        s->count *= (uint64_t)s->tensor.shape[i];
    }
    s->data = malloc((size_t)s->count * 16 + 16);
    assert_non_null(s->data);
    for (size_t i = 0; i < s->count * 16 + 16; i++)
        s->data[i] = (uint8_t)below(256);
    s->tensor.data = s->data;
}

static void random_order(sample *s)
{
    tn_arrange *how = &s->how;
    *how = (tn_arrange){ .rank = s->tensor.rank, .to_bits = tn_dtype_get(s->tensor.dtype)->bits, .axis = -1 };
    for (uint32_t i = 0; i < how->rank; i++)
        how->order[i] = i;
    for (uint32_t i = how->rank; i > 1; i--) {
        uint32_t k = (uint32_t)below(i), other = how->order[i - 1];
        how->order[i - 1] = how->order[k];
        how->order[k] = other;
    }
    for (uint32_t i = 0; i < how->rank; i++) {
        how->shape[i] = how->physical[i] = s->tensor.shape[how->order[i]];
        if (below(3) == 0 && how->shape[i])
            how->physical[i] += (int64_t)below(4);
    }
    for (size_t i = 0; i < sizeof how->fill; i++)
        how->fill[i] = (uint8_t)below(256);
}

static bool same_element(const uint8_t *x, uint64_t i, const uint8_t *y, uint64_t k, unsigned bits)
{
    if (bits == 128)
        return memcmp(x + i * 16, y + k * 16, 16) == 0;
    return tn_code_get(x, i, bits) == tn_code_get(y, k, bits);
}

/* The row-major number in the source of element `number` of the padded output; false: it is padding. */
static bool source_of(const sample *s, uint64_t number, uint64_t *source, int64_t index[TN_MAX_RANK])
{
    const tn_arrange *how = &s->how;
    int64_t at[TN_MAX_RANK] = { 0 };
    for (uint32_t i = how->rank; i-- > 0; number /= (uint64_t)how->physical[i]) {
        index[i] = (int64_t)(number % (uint64_t)how->physical[i]);
        if (index[i] < how->shape[i])
            at[how->order[i]] = index[i];
        else
            at[how->order[i]] = -1;
    }
    *source = 0;
    for (uint32_t i = 0; i < how->rank; i++) {
        if (at[i] < 0)
            return false;
        *source = *source * (uint64_t)s->tensor.shape[i] + (uint64_t)at[i];
    }
    return true;
}

static output run(const sample *s, const tn_file *f, uint64_t slab, unsigned jobs)
{
    const tn_tensor *t = tn_file_find(f, "t");
    uint64_t elements = 1;
    tn_pool *pool;
    tn_error err = { .text = "" };
    for (uint32_t i = 0; i < s->how.rank; i++)
        elements *= (uint64_t)s->how.physical[i];
    output out = { .cap = (size_t)((elements * s->how.to_bits + 7) / 8) };
    out.bytes = malloc(out.cap ? out.cap : 1);
    assert_non_null(out.bytes);
    CHECK(tn_pool_new(jobs, &pool, &err) == TN_OK);
    tn_arranging a = { .in = f, .tensor = t, .part = &t->parts[0], .how = &s->how,
                       .beside = in_folder("out").text, .pool = pool,
                       .slab = slab, .emit = collect, .context = &out };
    if (tn_arrange_run(&a, &err))
        fail_msg("%s", line_of(&err));
    tn_pool_free(pool);
    assert_int_equal(out.size, out.cap);
    return out;
}

/* With padding. */
static uint64_t elements_of(const sample *s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->how.rank; i++)
        n *= (uint64_t)s->how.physical[i];
    return n;
}

static void check_output(const sample *s, const output *out)
{
    unsigned bits = s->how.to_bits;
    uint64_t n = elements_of(s), source;
    int64_t index[TN_MAX_RANK];
    for (uint64_t i = 0; i < n; i++) {
        bool inside = source_of(s, i, &source, index);
        if (inside ? !same_element(out->bytes, i, s->data, source, bits)
                   : !same_element(out->bytes, i, s->how.fill, 0, bits))
            fail_msg("%s element %llu of rank %u is wrong", tn_dtype_get(s->tensor.dtype)->name,
                     (unsigned long long)i, s->how.rank);
    }
}

static void check_case(uint64_t seed)
{
    static const char *const names[] = { "in.zt", "in.safetensors", "packed.zt" };
    sample s = { .count = 0 };
    random_state = seed;
    random_shape(&s);
    random_order(&s);
    size_t kind = (size_t)below(3);
    tn_create_options o = { .replace = true, .encoding = kind == 2 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW,
                            .checksum = kind == 1 ? TN_CHECKSUM_NONE : TN_CHECKSUM_CRC32C };
    write_file(names[kind], o, &s.tensor, 1);
    tn_file *f = open_file(names[kind]);
    output out = run(&s, f, below(3) ? below(200) + 1 : 0, (unsigned)below(3) + 1);
    check_output(&s, &out);
    unsigned used = (unsigned)(elements_of(&s) * s.how.to_bits % 8);
    if (used)                   /* the bits that fill the last byte */
        CHECK(out.bytes[out.cap - 1] >> used == 0);
    free(out.bytes);
    free(s.data);
    tn_close(f);
}

static void every_element_is_where_index_arithmetic_says(void)
{
    for (uint64_t seed = 1; seed <= 1500; seed++)
        check_case(seed);
}

/* Zero points: a fill for each index along one dimension, the plain one beyond it. */
static void padding_differs_along_an_axis(void)
{
    static const int32_t fills[] = { 11, 12, 13 };
    for (uint64_t seed = 1; seed <= 200; seed++) {
        sample s = { .tensor = { .name = "t", .dtype = seed % 2 ? TN_INT8 : TN_INT4, .rank = 3,
                                 .shape = { 2, 3, 4 } }, .count = 24 };
        uint8_t data[24];
        random_state = seed;
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = (uint8_t)below(256);
        s.tensor.data = s.data = data;
        random_order(&s);
        memset(s.how.fill, 0, sizeof s.how.fill);
        s.how.fills = fills;
        for (uint32_t i = 0; i < 3; i++)
            s.how.axis = s.how.order[i] == 1 ? (int32_t)i : s.how.axis;
        write_file("in.zt", (tn_create_options){ .replace = true }, &s.tensor, 1);
        tn_file *f = open_file("in.zt");
        output out = run(&s, f, below(40) + 1, 2);
        for (uint64_t i = 0, n = elements_of(&s); i < n; i++) {
            uint64_t source;
            int64_t index[TN_MAX_RANK];
            bool inside = source_of(&s, i, &source, index);
            int64_t on_axis = index[s.how.axis];
            uint64_t expected = inside        ? tn_code_get(data, source, s.how.to_bits)
                                : on_axis < 3 ? (uint64_t)fills[on_axis]
                                              : 0;
            CHECK(tn_code_get(out.bytes, i, s.how.to_bits) == expected);
        }
        free(out.bytes);
        tn_close(f);
    }
}

static tn_status refuse(void *context, const uint8_t *bytes, size_t n, uint64_t done, tn_error *err)
{
    (void)context, (void)bytes, (void)n, (void)done;
    if (err)
        *err = (tn_error){ .status = TN_ERR_IO, .file = "out", .text = "no room" };
    return TN_ERR_IO;
}

static void failures_say_whose_they_are(void)
{
    static const uint8_t data[12] = { 1, 2, 3 };
    const simple t = { .name = "t", .dtype = TN_UINT8, .rank = 2, .shape = { 3, 4 }, .data = data };
    tn_pool *pool;
    tn_error err = { .text = "" };
    write_file("in.zt", (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C }, &t, 1);
    tn_file *f = open_file("in.zt");
    sample s = { .tensor = t };
    random_order(&s);
    CHECK(tn_pool_new(2, &pool, &err) == TN_OK);
    tn_arranging a = { .in = f, .tensor = tn_file_find(f, "t"), .how = &s.how,
                       .beside = in_folder("out").text, .pool = pool, .emit = refuse };
    a.part = &a.tensor->parts[0];
    CHECK(tn_arrange_run(&a, &err) == TN_ERR_IO);
    assert_string_equal(line_of(&err), "out: byte 0: no room");
    tn_part damaged = a.tensor->parts[0];
    tn_stored stored = *damaged.stored;
    stored.checksum_text = "crc32c:0x00000000";
    damaged.stored = &stored;
    output out = { .bytes = (uint8_t[64]){ 0 }, .cap = 64 };
    a.part = &damaged;
    a.emit = collect;
    a.context = &out;
    CHECK(tn_arrange_run(&a, &err) == TN_ERR_CHECKSUM);
    assert_string_equal(err.file, "");
    tn_pool_free(pool);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_element_is_where_index_arithmetic_says),
        IN_FOLDER(padding_differs_along_an_axis),
        IN_FOLDER(failures_say_whose_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
