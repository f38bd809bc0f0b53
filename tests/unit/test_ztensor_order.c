/* zTensor 0.1: data in the other byte order, every way it can take into a file; options of one format. */
#include "support.h"
#include "stored.h"

#include "store/format.h"
#include "convert.h"
#include "files.h"
#include "tensor/array.h"

static const tn_format_option big = { "ztensor", "byte-order", "big" };
#define BIG .format_options = &big, .nformat_options = 1

/* What is stored of a part must be its bytes, each unit of them in reverse. */
static void check_stored(const char *name, const tn_file *f, const tn_part *p)
{
    const tn_stored_info s = stored_info(p);
    unsigned unit = tn_dtype_get(p->array.dtype)->swap_bytes;
    size_t n;
    if (s.encoding != TN_ENCODING_RAW || p->padded) {
        CHECK(s.encoding == TN_ENCODING_RAW || s.order == TN_LITTLE_ENDIAN);
        return;
    }
    CHECK(s.order == (unit > 1 ? TN_BIG_ENDIAN : TN_LITTLE_ENDIAN));
    uint8_t *file = load_file(in_folder(name).text, &n), *bytes = read_part(f, p);
    CHECK(s.offset + s.bytes <= n && s.bytes == p->nbytes);
    for (size_t i = 0; i < s.bytes; i++)
        if (file[s.offset + i] != bytes[i / unit * unit + unit - 1 - i % unit])
            fail_msg("%s: byte %zu of %s", name, i, p->role);
    free(file);
    free(bytes);
}

static void count_good(void *context, const tn_tensor *t, const tn_part *p, tn_verdict verdict,
                       const tn_error *why)
{
    (void)t;
    (void)why;
    *(size_t *)context += stored_info(p).checksum == TN_CHECKSUM_NONE || verdict == TN_VERDICT_OK;
}

static void check_all_stored(const char *name)
{
    tn_file *f = open_file(name);
    size_t good = 0, parts = 0;
    const tn_verify_options options = { .size = sizeof options, .context = &good };
    CHECK(tn_verify(f, &options, count_good, NULL) == TN_OK);
    for (size_t i = 0; i < tn_file_count(f); i++)
        parts += tn_file_tensor(f, i)->nparts;
    CHECK(good == parts);
    for (size_t i = 0; i < tn_file_count(f); i++)
        for (uint32_t k = 0; k < tn_file_tensor(f, i)->nparts; k++)
            check_stored(name, f, &tn_file_tensor(f, i)->parts[k]);
    tn_close(f);
}

/* ---- every type ---- */

enum { ODD = 4099 };            /* elements: no multiple of anything */

/* Through tn_writer_write() in pieces of these sizes, in turn. */
static void write_in_pieces(tn_dtype dtype, tn_create_options options, const uint8_t *data, size_t n)
{
    static const size_t pieces[] = { 1, 3, 2, 7, 1000, 5, 65536, 8 };
    const int64_t shape[] = { ODD };
    const tn_part part = { .role = "data", .array = { .dtype = dtype, .rank = 1, .shape = shape } };
    const tn_tensor t = { .name = "t", .form = TN_FORM_DENSE, .dtype = dtype, .rank = 1, .shape = shape,
                          .parts = &part, .nparts = 1 };
    tn_writer *w;
    tn_error err = { .text = "" };
    options.size = sizeof options;
    options.replace = true;
    CHECK(tn_create(in_folder("t.zt").text, &options, &w, &err) == TN_OK);
    CHECK(tn_writer_add(w, &t, &err) == TN_OK);
    for (size_t at = 0, k = 0; at < n; k++) {
        size_t piece = pieces[k % 8] < n - at ? pieces[k % 8] : n - at;
        if (tn_writer_write(w, 0, 0, data + at, piece, &err))
            fail_msg("%s", line_of(&err));
        at += piece;
    }
    CHECK(tn_writer_finish(w, &err) == TN_OK);
}

static void every_type_and_encoding_comes_back(void)
{
    static const tn_encoding encodings[] = { TN_ENCODING_RAW, TN_ENCODING_ZSTD };
    static const tn_checksum sums[] = { TN_CHECKSUM_NONE, TN_CHECKSUM_CRC32C, TN_CHECKSUM_SHA256 };
    static uint8_t data[ODD * 16];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + i / 256);
    for (int i = 0; i < 6 * (TN_DTYPE_COUNT - 1); i++) {
        const tn_dtype dtype = (tn_dtype)(1 + i / 6);
        size_t n = ((size_t)ODD * tn_dtype_get(dtype)->bits + 7) / 8;
        if (tn_dtype_get(dtype)->bits < 8)
            data[n - 1] = 0;            /* the bits that fill the last byte */
        write_in_pieces(dtype, (tn_create_options){ .encoding = encodings[i % 2], .checksum = sums[i / 2 % 3],
                                                    BIG }, data, n);
        check_all_stored("t.zt");
        tn_file *f = open_file("t.zt");
        uint8_t *found = read_tensor(f, tn_file_tensor(f, 0));
        CHECK(tn_file_tensor(f, 0)->dtype == dtype);
        assert_memory_equal(found, data, n);
        free(found);
        tn_close(f);
    }
}

/* ---- every way ---- */

static void check_no_difference(const char *a, const char *b, const char *what)
{
    size_t different = 1;
    tn_error err = { .text = "" };
    tn_file *x = open_file(a), *y = open_file(b);
    if (tn_compare(x, y, NULL, NULL, &different, &err) || different)
        fail_msg("%s: %zu differ %s", what, different, line_of(&err));
    tn_close(x);
    tn_close(y);
}

static void every_way_into_a_file_swaps(void)
{
    static const wish ways[] = {
        { .cast = NULL }, { .cast = "f64" }, { .cast = "f16" }, { .cast = "c64" }, { .cast = "tf32" },
            { .cast = "e4m3fn" },
        { .cast = "mxfp4" }, { .cast = "nvfp4" }, { .cast = "int8_f" }, { .cast = "uint4_ff32" },
            { .cast = "float32|n2m4" },
        { .cast = "int4_f32" }, { .cast = "bf16" }, { .cast = "mxfp8,virtual=yes" },
            { .cast = "i8,per=channel,axis=0" },
        { .cast = "i16,per=tensor,zero=asymmetric" }, { .cast = "fx16" },
            { .cast = "sa8,per=channel,axis=1" }, { .form = "coo" },
        { .form = "csr" }, { .form = "csr", .cast = "f64" }, { .form = "csr,index=i32" },
            { .layout = "BA,from=AB" },
        { .layout = "BA,from=AB", .cast = "f64" }, { .pad = "1=128" }, { .pad = "1=128",
                                                                         .layout = "BA,from=AB" },
    };
    enum { ROWS = 96, COLS = 100, COUNT = ROWS * COLS };
    static float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = i % 3 ? 0 : (float)(i % 251 - 125) / 64;
    const simple m = { .name = "m", .dtype = TN_FLOAT32, .rank = 2, .shape = { ROWS, COLS }, .data = values };
    write_file("in.safetensors", (tn_create_options){ 0 }, &m, 1);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (unsigned encoding = 0; encoding < 2; encoding++) {
            wish w = ways[i];
            if (w.pad && encoding)
                continue;               /* padding is never compressed */
            char what[60];
            snprintf(what, sizeof what, "way %zu, encoding %u", i, encoding);
            w.create = (tn_create_options){ .encoding = encoding ? TN_ENCODING_ZSTD : TN_ENCODING_RAW,
                                            .checksum = TN_CHECKSUM_CRC32C };
            must_convert("in.safetensors", "little.zt", w);
            w.create.format_options = &big;
            w.create.nformat_options = 1;
            must_convert("in.safetensors", "big.zt", w);
            check_all_stored("big.zt");
            check_no_difference("little.zt", "big.zt", what);
            must_convert("little.zt", "a.zt", (wish){ .cast = NULL });
            must_convert("big.zt", "b.zt", (wish){ .cast = NULL });
            check_same_files(in_folder("a.zt").text, in_folder("b.zt").text);
            must_convert("b.zt", "c.zt", (wish){ .create = { BIG } });
            check_all_stored("c.zt");
            check_no_difference("big.zt", "c.zt", what);
        }
}

/* Cut into spans that threads share; the checksum of the whole is joined of theirs. */
static void large_parts_are_the_same_for_any_number_of_threads(void)
{
    enum { COUNT = (9 << 20) / 2 + 1 };
    static uint16_t values[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = (uint16_t)(i * 2654435761u >> 13);
    const simple t = { .name = "t", .dtype = TN_UINT16, .rank = 1, .shape = { COUNT }, .data = values };
    write_file("in.safetensors", (tn_create_options){ 0 }, &t, 1);
    must_convert("in.safetensors", "1.zt", (wish){ .create = { .checksum = TN_CHECKSUM_CRC32C, .jobs = 1,
                                                               BIG } });
    must_convert("in.safetensors", "4.zt", (wish){ .create = { .checksum = TN_CHECKSUM_CRC32C, .jobs = 4,
                                                               BIG } });
    must_convert("1.zt", "again.zt", (wish){ .create = { .checksum = TN_CHECKSUM_CRC32C, .jobs = 4, BIG } });
    check_same_files(in_folder("1.zt").text, in_folder("4.zt").text);
    check_same_files(in_folder("1.zt").text, in_folder("again.zt").text);
    check_all_stored("1.zt");
}

static void tied_tensors_have_one_copy_in_that_order(void)
{
    static const uint32_t values[] = { 1, 2, 3 };
    const simple tensors[] = {
        { .name = "a", .dtype = TN_UINT32, .rank = 1, .shape = { 3 }, .data = values },
        { .name = "b", .dtype = TN_UINT32, .rank = 1, .shape = { 3 }, .tied = "a" },
    };
    write_file("t.zt", (tn_create_options){ BIG }, tensors, 2);
    check_all_stored("t.zt");
    tn_file *f = open_file("t.zt");
    const tn_part *a = tn_file_find(f, "a")->parts, *b = tn_file_find(f, "b")->parts;
    CHECK(stored_info(b).offset == stored_info(a).offset);
    tn_close(f);
}

/* What the format's own library stored of the same values, to the byte. */
static void data_is_stored_as_the_format_s_own_library_does(void)
{
    size_t n, m, compared = 0;
    tn_error err = { .text = "" };
    tn_file *theirs = open_at(TEST_GOLDEN "/ztensor/good", "raw_big.zt", NULL, TN_IO_MMAP);
    if (convert_open(theirs, "ours.zt", (wish){ .create = { BIG } }, &err))
        fail_msg("%s", line_of(&err));
    uint8_t *a = load_file(TEST_GOLDEN "/ztensor/good/raw_big.zt", &n),
        *b = load_file(in_folder("ours.zt").text, &m);
    tn_file *ours = open_file("ours.zt");
    for (size_t i = 0; i < tn_file_count(theirs); i++) {
        const tn_stored_info x = stored_info(&tn_file_tensor(theirs, i)->parts[0]);
        const tn_stored_info y = stored_info(&tn_file_tensor(ours, i)->parts[0]);
        CHECK(x.bytes == y.bytes && memcmp(a + x.offset, b + y.offset, (size_t)x.bytes) == 0);
        compared += x.order == TN_BIG_ENDIAN && y.order == TN_BIG_ENDIAN;
    }
    CHECK(compared > 5);
    free(a);
    free(b);
    tn_close(ours);
    tn_close(theirs);
}

/* ---- options of one format ---- */

static void options_that_are_not_known_are_refused_with_those_that_are(void)
{
    static const struct { const char *out; tn_format_option option; const char *text; } cases[] = {
        { "o.zt", { "ztensor", "byte-order", "middle" }, "option \"ztensor.byte-order\": expected little or "
          "big but found \"middle\"" },
        { "o.zt", { "ztensor", "byte-order", "" }, "expected little or big but found \"\"" },
        { "o.zt", { "ztensor", "byte-order", "bi" }, "expected little or big but found \"bi\"" },
        { "o.zt", { "ztensor", "byte-order", "little|big" },
          "expected little or big but found \"little|big\"" },
        { "o.zt", { "ztensor", "order", "big" }, "option \"ztensor.order\": expected byte-order or "
          "ocp-names of ztensor but found \"order\"" },
        { "o.zt", { "zt", "byte-order", "big" }, "expected ztensor, safetensors, gguf, pytorch, raw, btf, npy, "
          "npz, scipy-npz, mtx, idx or onnx but found \"zt\"" },
        { "o.npz", { "npz", "byte-order", "big" }, "option \"npz.byte-order\": expected ocp-names of npz but "
          "found \"byte-order\"" },
        { "o.npy", { "npy", "byte-order", "big" }, "option \"npy.byte-order\": npy has no options of its "
          "own" },
        { "o.npz", { "ztensor", "byte-order", "big" }, "option \"ztensor.byte-order\": it is for ztensor "
          "and the output is npz" },
        { "o.onnx", { "onnx", "graph", "" }, "option \"onnx.graph\": expected a text but found \"\"" },
        { "o.zt", { NULL, "byte-order", "big" }, "has a format, a key and a value" },
        { "o.zt", { "ztensor", NULL, "big" }, "has a format, a key and a value" },
        { "o.zt", { "ztensor", "byte-order", NULL }, "has a format, a key and a value" },
        { "o.zt", { "ztensor", "a\x1b[31m\"b", "big" }, "found \"a\\x1b[31m\\\"b\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_writer *w = NULL;
        tn_error err = { .text = "" };
        const tn_create_options o = { .size = sizeof o, .format_options = &cases[i].option,
                                      .nformat_options = 1 };
        check_status(tn_create(in_folder(cases[i].out).text, &o, &w, &err), &err, TN_ERR_ARGUMENT,
                     cases[i].text);
        CHECK(!w && tn_create(in_folder(cases[i].out).text, &o, &w, NULL) == TN_ERR_ARGUMENT);
    }
    const tn_format_option twice[] = { big, { "ztensor", "byte-order", "little" } };
    const tn_create_options o = { .size = sizeof o, .format_options = twice, .nformat_options = 2 };
    tn_writer *w = NULL;
    tn_error err = { .text = "" };
    check_status(tn_create(in_folder("o.zt").text, &o, &w, &err), &err, TN_ERR_ARGUMENT, "is given twice");
}

static void every_format_says_what_its_options_take(void)
{
    size_t all = 0;
    for (size_t i = 0; tn_format_at(i); i++) {
        size_t n = 0;
        for (const tn_format_key *k = tn_format_at(i)->keys; k && k->name; k++, n++)
            CHECK(k->values && (!*k->values || strchr(k->values, '|')) && k->title && *k->title);
        CHECK(n <= TN_MAX_FORMAT_KEYS);
        all += n;
    }
    CHECK(all >= 1);
}

static void little_endian_is_what_holds_without_a_word(void)
{
    static const uint32_t value = 1;
    const simple t = { .name = "t", .dtype = TN_UINT32, .data = &value };
    const tn_format_option little = { "ztensor", "byte-order", "little" };
    write_file("a.zt", (tn_create_options){ 0 }, &t, 1);
    write_file("b.zt", (tn_create_options){ .format_options = &little, .nformat_options = 1 }, &t, 1);
    check_same_files(in_folder("a.zt").text, in_folder("b.zt").text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_type_and_encoding_comes_back),
        IN_FOLDER(every_way_into_a_file_swaps),
        IN_FOLDER(large_parts_are_the_same_for_any_number_of_threads),
        IN_FOLDER(tied_tensors_have_one_copy_in_that_order),
        IN_FOLDER(data_is_stored_as_the_format_s_own_library_does),
        IN_FOLDER(options_that_are_not_known_are_refused_with_those_that_are),
        TEST(every_format_says_what_its_options_take),
        IN_FOLDER(little_endian_is_what_holds_without_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
