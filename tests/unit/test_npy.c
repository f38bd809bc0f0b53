/* NumPy's .npy: headers of every kind, well formed and not, and what is
 * written.  tests/interop holds it against NumPy itself. */
#include "support.h"
#include "stored.h"

#include "files.h"
#include "make.h"

#include "bytes/cbor.h"
#include "formats/npy/npy.h"
#include "tensor/array.h"

/* ---- files by hand ---- */

typedef struct npy {
    uint8_t bytes[1024];
    size_t  n;
} npy;

/* A file of this version, header and elements. */
static npy make_npy(unsigned major, const char *header, const void *data, size_t n)
{
    npy f = { .n = 0 };
    size_t length = strlen(header), field = major == 1 ? 2 : 4;
    memcpy(f.bytes, TN_NPY_MAGIC, 6);
    f.bytes[6] = (uint8_t)major;
    for (size_t i = 0; i < field; i++)
        f.bytes[8 + i] = (uint8_t)(length >> 8 * i);
    CHECK(8 + field + length + n <= sizeof f.bytes);
    memcpy(f.bytes + 8 + field, header, length);
    if (n)
        memcpy(f.bytes + 8 + field + length, data, n);
    f.n = 8 + field + length + n;
    return f;
}

static tn_file *open_npy(const npy *f)
{
    tn_file *file = NULL;
    tn_error err = { .text = "" };
    if (tn_open_memory(f->bytes, f->n, NULL, &file, &err))
        fail_msg("%s", line_of(&err));
    walk_file(file);
    return file;
}

static void check_refused(const npy *f, tn_status expected, const char *text)
{
    tn_file *file = NULL;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .format = "npy" };
    tn_status status = tn_open_memory(f->bytes, f->n, &options, &file, &err);
    if (!status)
        tn_close(file);
    if (status != expected || !strstr(line_of(&err), text))
        fail_msg("expected %d \"%s\"\nfound    %d \"%s\"", (int)expected, text, (int)status, line_of(&err));
    CHECK(err.offset <= f->n);
    CHECK(tn_open_memory(f->bytes, f->n, &options, &file, NULL) == expected);
}

static const uint8_t numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                   22, 23, 24 };

/* ---- reading ---- */

static void headers_are_read_however_they_are_spelled(void)
{
    static const char *const good[] = {
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'shape': (2, 3), 'fortran_order': False, 'descr': '<i2'}",
        "{\"descr\":\"<i2\",\"fortran_order\":False,\"shape\":(2,3,)}\n\n",
        "  {  'descr'  :\t'<i2' ,\r\n'fortran_order' : False , 'shape' : ( 2 , 3 ) , }  \n",
        "{'descr': 'i2', 'fortran_order': False, 'shape': (2L, 3L), }\n",
        "{'descr': '=i2', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'descr': '|i2', 'fortran_order': False, 'shape': (2, 3), }\n",
    };
    for (unsigned major = 1; major <= 2; major++) {
        for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
            npy f = make_npy(major, good[i], numbers, 12);
            tn_file *file = open_npy(&f);
            const tn_tensor *t = tn_file_tensor(file, 0);
            assert_string_equal(t->name, "tensor");
            CHECK(tn_file_count(file) == 1 && t->dtype == TN_INT16 && t->rank == 2 && t->shape[0] == 2 &&
                  t->shape[1] == 3);
            CHECK(t->parts[0].data && memcmp(t->parts[0].data, numbers, 12) == 0);
            tn_close(file);
        }
    }
}

static void a_name_beside_the_header_is_the_tensors(void)
{
    static const struct { const char *comment, *name; } names[] = {
        { " # tenon {\"name\":\"Gr\\u00fc\\u00dfe\"}", "Grüße" }, { " # tenon {\"name\":7}", "tensor" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char header[160];
        snprintf(header, sizeof header, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }%s\n",
                 names[i].comment);
        npy f = make_npy(1, header, numbers, 12);
        tn_file *file = open_npy(&f);
        assert_string_equal(tn_file_tensor(file, 0)->name, names[i].name);
        tn_close(file);
    }
}

static void types_are_told_by_their_code(void)
{
    static const struct { const char *descr; tn_dtype dtype; size_t bytes; } types[] = {
        { "|b1", TN_BOOL, 1 }, { "|i1", TN_INT8, 1 }, { "<i8", TN_INT64, 8 }, { "|u1", TN_UINT8, 1 },
        { "<u2", TN_UINT16, 2 },
        { "<u4", TN_UINT32, 4 }, { "<u8", TN_UINT64, 8 }, { "<f2", TN_FLOAT16, 2 }, { "<f4", TN_FLOAT32, 4 },
        { "<f8", TN_FLOAT64, 8 }, { "<c8", TN_COMPLEX64, 8 }, { "<c16", TN_COMPLEX128, 16 },
        { "c16", TN_COMPLEX128, 16 },
        { "f4", TN_FLOAT32, 4 }, { "<V2", TN_BFLOAT16, 2 }, { "bfloat16", TN_BFLOAT16, 2 },
        { "<f1", TN_FLOAT8_E5M2, 1 },
        { "float8_e4m3fn", TN_FLOAT8_E4M3FN, 1 }, { "float8_e8m0fnu", TN_FLOAT8_E8M0, 1 },
        { "|V2", TN_UNKNOWN, 2 }, { "<V1", TN_UNKNOWN, 1 }, { "<U3", TN_UNKNOWN, 12 },
        { "|S3", TN_UNKNOWN, 3 },
        { "<M8[ns]", TN_UNKNOWN, 8 }, { "<f16", TN_UNKNOWN, 16 }, { "int4", TN_UNKNOWN, 1 },
        { "", TN_UNKNOWN, 3 },
        { "<", TN_UNKNOWN, 3 }, { "a rather long name of a type", TN_UNKNOWN, 1 },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char header[128];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }\n",
                 types[i].descr);
        npy f = make_npy(1, header, numbers, types[i].bytes);
        tn_file *file = open_npy(&f);
        const tn_part *p = tn_file_tensor(file, 0)->parts;
        if (p->array.dtype != types[i].dtype)
            fail_msg("%s became %u", types[i].descr, (unsigned)p->array.dtype);
        assert_string_equal(stored_info(p).type, types[i].descr);
        CHECK(stored_info(p).bytes == types[i].bytes);
        tn_close(file);
    }
}

static void columns_and_big_endian_numbers_come_out_as_rows(void)
{
    static const uint8_t expected[] = { 2, 1, 6, 5, 10, 9, 4, 3, 8, 7, 12, 11 };
    uint8_t found[sizeof expected];
    npy f = make_npy(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }", numbers, 12);
    tn_file *file = open_npy(&f);
    const tn_part *p = tn_file_tensor(file, 0)->parts;
    CHECK(!p->data && stored_info(p).order == TN_BIG_ENDIAN && stored_info(p).stride[0] == 1 &&
          stored_info(p).stride[1] == 2);
    CHECK(tn_part_read(file, p, found, sizeof found, NULL) == TN_OK &&
          memcmp(found, expected, sizeof found) == 0);
    tn_close(file);
}

static void one_running_index_needs_no_strides(void)
{
    static const char *const headers[] = {
        "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 6, 1), }",
        "{'descr': '|u1', 'fortran_order': True, 'shape': (6,), }",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (7, 0, 9), }",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (), }",
    };
    static const size_t sizes[] = { 6, 6, 0, 8 };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        npy f = make_npy(2, headers[i], numbers, sizes[i]);
        tn_file *file = open_npy(&f);
        const tn_part *p = tn_file_tensor(file, 0)->parts;
        CHECK(!stored_info(p).stride && p->nbytes == sizes[i]);
        tn_close(file);
    }
}

static void what_is_not_a_header_is_refused_with_the_byte(void)
{
    static const struct { const char *header; tn_status status; const char *text;
    } bad[] = {
        { "", TN_ERR_CORRUPT, "expected a dict but found its end" },
        { "[]", TN_ERR_CORRUPT, "expected a dict but found \"[]\"" },
        { "{}", TN_ERR_CORRUPT, "with the keys descr, fortran_order and shape" },
        { "{'descr': '<i2', 'shape': (6,)}", TN_ERR_CORRUPT, "with the keys descr, fortran_order and shape" },
        { "{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (6,)}", TN_ERR_CORRUPT,
          "each once" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,), 'x': 1}", TN_ERR_CORRUPT,
          "one of the keys" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)", TN_ERR_CORRUPT,
          "the end of the dict but found its end" },
        { "{'descr': '<i2' 'fortran_order': False, 'shape': (6,)}", TN_ERR_CORRUPT, "a comma" },
        { "{'descr' '<i2', 'fortran_order': False, 'shape': (6,)}", TN_ERR_CORRUPT, "a colon" },
        { "{'descr': <i2, 'fortran_order': False, 'shape': (6,)}", TN_ERR_CORRUPT, "a type" },
        { "{'descr': '<i2, 'fortran_order': False, 'shape': (6,)}", TN_ERR_CORRUPT, "a comma" },
        { "{'descr': '<i2", TN_ERR_CORRUPT, "the end of a string" },
        { "{'descr': '<i\\x32', 'fortran_order': False, 'shape': (6,)}", TN_ERR_CORRUPT, "plain characters" },
        { "{'descr': '<i2', 'fortran_order': 0, 'shape': (6,)}", TN_ERR_CORRUPT, "True or False" },
        { "{'descr': '<i2', 'fortran_order': false, 'shape': (6,)}", TN_ERR_CORRUPT, "True or False" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6)}", TN_ERR_CORRUPT,
          "a comma behind a single dimension" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': 6}", TN_ERR_CORRUPT, "a tuple" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': [6]}", TN_ERR_CORRUPT, "a tuple" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (06,)}", TN_ERR_CORRUPT,
          "without leading zeros but found \"06,)}\"" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (00, 3)}", TN_ERR_CORRUPT,
          "without leading zeros" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (-6,)}", TN_ERR_CORRUPT,
          "a dimension but found \"-6" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (2*3,)}", TN_ERR_CORRUPT,
          "a comma or the end of the tuple" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (2 3)}", TN_ERR_CORRUPT,
          "a comma or the end of the tuple" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (,)}", TN_ERR_CORRUPT, "a dimension" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,", TN_ERR_CORRUPT,
          "a dimension but found its end" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (9223372036854775808,)}", TN_ERR_CORRUPT,
          "below 2^63" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,)}", TN_ERR_CORRUPT,
          "below 2^63" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (9223372036854775807,)}", TN_ERR_LIMIT,
          "more than 2^63 bytes" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)} + {}", TN_ERR_CORRUPT,
          "nothing behind the dict" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)} # a comment", TN_ERR_CORRUPT,
          "nothing behind the dict" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)} # tenon {", TN_ERR_TRUNCATED,
          "the comment of the header" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)} # tenon {}\nx", TN_ERR_CORRUPT,
          "nothing behind the dict" },
        { "{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (6,)}", TN_ERR_UNSUPPORTED,
          "structured" },
        { "{'descr': [('a', '<i2'), 'fortran_order': False, 'shape': (6,)", TN_ERR_CORRUPT,
          "the end of a type but found its end" },
        { "{'descr': [('a\\", TN_ERR_CORRUPT, "the end of a type but found its end" },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (6,)}", TN_ERR_UNSUPPORTED, "pickle" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (7,)}", TN_ERR_TRUNCATED,
          "take 14 bytes but 12 follow" },
        { "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)} # tenon {\"record\":{\"layout\":\"NC\"}}",
          TN_ERR_CORRUPT, "found Fortran order" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)} # tenon "
          "{\"record\":{\"dtype\":\"int4\",\"shape\":[24]}}",
          TN_ERR_CORRUPT, "its record says int4" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)} # tenon {\"meta\":3}", TN_ERR_CORRUPT,
          "the comment" },
        { "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)} # tenon {\"name\":\"a\\u0000\"}",
          TN_ERR_CORRUPT, "NUL" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        npy f = make_npy(1, bad[i].header, numbers, 12);
        check_refused(&f, bad[i].status, bad[i].text);
    }
}

/* Only Python 2 wrote it, which knew no version 3.0. */
static void numbers_end_in_l_up_to_version_2(void)
{
    npy f = make_npy(3, "{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 3L), }\n", numbers, 12);
    check_refused(&f, TN_ERR_CORRUPT, "a comma or the end of the tuple but found \"L, 3L), }");
}

static void what_no_build_reads_is_refused_where_its_type_stands(void)
{
    static const char *const types[] = { "'|O'", "[('a', '<i2')]", "('<i2', (2,))" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char header[100];
        tn_error err = { .text = "" };
        tn_file *file;
        snprintf(header, sizeof header, "{'fortran_order': False, 'descr': %s, 'shape': (6,)}", types[i]);
        npy f = make_npy(1, header, numbers, 12);
        CHECK(tn_open_memory(f.bytes, f.n, NULL, &file, &err) == TN_ERR_UNSUPPORTED && err.offset == 10 + 34);
    }
}

static void a_long_type_is_cut_to_be_shown(void)
{
    char header[500], type[301];
    memset(type, 't', 300);
    type[300] = '\0';
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (6,)}", type);
    npy f = make_npy(1, header, numbers, 12);
    tn_file *file = open_npy(&f);
    strcpy(type + TN_NPY_TYPE_MAX, "...");
    assert_string_equal(stored_info(tn_file_tensor(file, 0)->parts).type, type);
    tn_close(file);
}

static void what_follows_the_array_is_left_with_a_warning(void)
{
    npy f = make_npy(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (5,)}", numbers, 12);
    tn_file *file = open_npy(&f);
    CHECK(tn_file_tensor(file, 0)->parts[0].nbytes == 10);
    assert_string_equal(tn_file_warning(file, 0), "byte 75: 2 bytes follow the array and are not read");
    CHECK(file->left_out != NULL);
    tn_close(file);
}

static void a_65th_dimension_is_refused(void)
{
    char header[512] = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
    for (int i = 0; i < 65; i++)
        strcat(header, "1, ");
    strcat(header, ")}");
    npy f = make_npy(1, header, numbers, 1);
    check_refused(&f, TN_ERR_LIMIT, "at most 64 dimensions");
}

static void versions_and_lengths_are_checked(void)
{
    npy f = make_npy(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)}", numbers, 12), g = f;
    g.bytes[6] = 4;
    check_refused(&g, TN_ERR_UNSUPPORTED, "expected version 1.0, 2.0 or 3.0 but found 4.0");
    g.bytes[6] = 1, g.bytes[7] = 1;
    check_refused(&g, TN_ERR_UNSUPPORTED, "but found 1.1");
    g = f, g.bytes[0] = 'x';
    check_refused(&g, TN_ERR_CORRUPT, "expected the magic");
    g = f, g.bytes[9] = 4;
    check_refused(&g, TN_ERR_TRUNCATED, "the header ends at 1089 but the file has 77 bytes");
    g = make_npy(2, "{}", numbers, 12), g.bytes[11] = 255;
    check_refused(&g, TN_ERR_LIMIT, "expected a header of at most 65536 bytes");
}

/* ---- damage ---- */

static npy sample(void)
{
    return make_npy(
        1,
        "{'descr': '>c8', 'fortran_order': True, 'shape': (1, 3), } # tenon {\"meta\":{\"a\":[1,\"x\"]}}\n",
        numbers, 24);
}

static void every_truncation_is_refused(void)
{
    npy f = sample();
    for (size_t n = 0; n <= f.n; n++) {
        uint8_t *copy = exact_copy(f.bytes, n);
        CHECK((walk_bytes(copy, n, "npy") == TN_OK) == (n == f.n));
        free(copy);
    }
}

static void a_flipped_or_dropped_byte_never_hurts(void)
{
    npy f = sample();
    for (size_t i = 0; i < f.n; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            uint8_t *copy = exact_copy(f.bytes, f.n);
            copy[i] ^= (uint8_t)(1u << bit);
            walk_bytes(copy, f.n, "npy");
            free(copy);
        }
        uint8_t *copy = exact_copy(f.bytes, f.n - 1);
        memcpy(copy + i, f.bytes + i + 1, f.n - 1 - i);
        walk_bytes(copy, f.n - 1, "npy");
        free(copy);
    }
}

/* ---- writing ---- */

static void a_plain_array_is_written_as_numpy_writes_it(void)
{
    static const float values[] = { 1, 2, 3, 4, 5, 6 };
    static const char expected[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, "
                                   "'shape': (2, 3), }                                 "
                                   "                         \n";
    size_t n;
    simple s = { .name = "a", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 3 }, .data = values };
    write_file("a.npy", (tn_create_options){ 0 }, &s, 1);
    uint8_t *bytes = load_file(in_folder("a.npy").text, &n);
    CHECK(sizeof expected - 1 == 128 && n == 128 + sizeof values);
    CHECK(memcmp(bytes, expected, 128) == 0 && memcmp(bytes + 128, values, sizeof values) == 0);
    free(bytes);
    tn_file *f = open_file("a.npy");
    assert_string_equal(tn_file_tensor(f, 0)->name, "a");
    tn_close(f);
}

/* In the comment of the header, unless the file is called so. */
static void a_name_is_that_of_the_file_or_dropped(void)
{
    static const char *const names[] = { "a", "a.b", "a.npy", "x/a", "tensor", "größe" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        simple s = { .name = names[i], .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = numbers };
        tn_error err = { .text = "" };
        size_t n;
        tn_status status = try_write("a.npy", (tn_create_options){ .replace = true }, &s, 1, &err);
        if (i == 0)
            CHECK(status == TN_OK);
        else
            check_status(status, &err, TN_ERR_LOSS, "no place for its name but the name of the file, \"a.npy\"");
        write_file("a.npy", (tn_create_options){ .replace = true, .drop_names = true }, &s, 1);
        tn_file *f = open_file("a.npy");
        assert_string_equal(tn_file_tensor(f, 0)->name, "a");
        CHECK(memcmp(tn_file_tensor(f, 0)->parts->data, numbers, 4) == 0);
        tn_close(f);
        uint8_t *bytes = load_file(in_folder("a.npy").text, &n);
        CHECK(n == 132 && !memchr(bytes, '#', 128));
        free(bytes);
    }
}

/* Read with few calls, through a buffer that its columns do not fit side by side. */
static void columns_of_wide_elements_are_read_without_a_mapping(void)
{
    enum { A = 101, B = 103, C = 107, COUNT = A * B * C };
    uint64_t *stored = malloc(COUNT * 16), *found = malloc(COUNT * 16);
    char header[100];
    tn_open_options options = { .size = sizeof options, .io = TN_IO_PREAD };
    tn_file *f;
    CHECK(stored && found);
    for (uint64_t i = 0; i < COUNT; i++)
        stored[2 * i] = i, stored[2 * i + 1] = ~i;
    snprintf(header, sizeof header, "{'descr': '<c16', 'fortran_order': True, 'shape': (%d, %d, %d), }\n", A,
             B, C);
    npy head = make_npy(1, header, NULL, 0);
    FILE *file = fopen(in_folder("c.npy").text, "wb");
    CHECK(file && fwrite(head.bytes, 1, head.n, file) == head.n && fwrite(stored, 16, COUNT, file) == COUNT &&
          fclose(file) == 0);
    CHECK(tn_open(in_folder("c.npy").text, &options, &f, NULL) == TN_OK);
    CHECK(tn_part_read(f, tn_file_tensor(f, 0)->parts, found, COUNT * 16, NULL) == TN_OK);
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t a = i / C / B, b = i / C % B, c = i % C, at = a + A * (b + B * c);
        CHECK(found[2 * i] == at && found[2 * i + 1] == ~at);
    }
    tn_close(f);
    free(stored);
    free(found);
}

static void types_of_numpy_come_back_and_others_are_refused(void)
{
    unsigned refused = 0;
    for (tn_dtype d = 1; d < TN_DTYPE_COUNT; d++) {
        simple s = { .name = "t", .dtype = d, .rank = 3, .shape = { 1, 1, 1 }, .data = numbers };
        uint64_t nbytes;
        tn_error err = { .text = "" };
        if (!tn_npy_type_name(tn_dtype_get(d))) {
            tn_status status = try_write("t.npy", (tn_create_options){ .replace = true }, &s, 1, &err);
            check_status(status, &err, TN_ERR_LOSS, "NumPy has no type ");
            CHECK(err.reason == TN_REASON_CAST && tn_npy_type_name(tn_dtype_get(tn_dtype_parse(err.value))));
            refused++;
            continue;
        }
        for (s.shape[0] = 0; s.shape[0] < 2; s.shape[0]++) {
            write_file("t.npy", (tn_create_options){ .replace = true }, &s, 1);
            tn_file *f = open_file("t.npy");
            const tn_tensor *t = tn_file_tensor(f, 0);
            CHECK(t->dtype == d && t->rank == 3 && t->shape[0] == s.shape[0] && t->shape[2] == 1);
            CHECK(tn_shape_nbytes(d, 3, s.shape, &nbytes) == TN_OK && t->parts[0].nbytes == nbytes);
            CHECK(!nbytes || memcmp(t->parts[0].data, numbers, nbytes) == 0);
            tn_close(f);
        }
    }
    CHECK(refused > 10);
}

/* What earlier versions wrote, as they wrote it. */
static void a_comment_of_earlier_versions_is_read(void)
{
    static const char text[] =
        "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), } # tenon {\"name\":\"größe\",\"record\":"
        "{\"dtype\":\"int4\",\"shape\":[8]},\"meta\":{\"unit\":\"µ\"},\"file\":{\"made\":\"today\"}}";
    uint8_t bytes[400] = { 0 };
    size_t length = 320, n;
    memset(bytes, ' ', 12 + length);
    memcpy(bytes, "\x93NUMPY\x03", 8);
    memcpy(bytes + 8, "\x40\x01\x00\x00", 4);
    memcpy(bytes + 12, text, sizeof text - 1);
    bytes[12 + length - 1] = '\n';
    memcpy(bytes + 12 + length, numbers, 4);
    put_bytes("old.npy", bytes, 12 + length + 4);
    tn_file *f = open_file("old.npy");
    const tn_tensor *t = tn_file_find(f, "größe");
    const tn_meta *of_file = tn_file_meta(f, &n);
    CHECK(t && t->dtype == TN_INT4 && t->rank == 1 && t->shape[0] == 8 && t->nmeta == 1);
    CHECK(strcmp(t->meta->text, "µ") == 0 && n == 1 && strcmp(of_file->text, "today") == 0);
    CHECK(memcmp(t->parts->data, numbers, 4) == 0);
    tn_close(f);
}

static void metadata_and_layouts_are_refused_or_dropped(void)
{
    const tn_meta meta = { .key = "unit", .text = "µ" };
    simple s = { .name = "m", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = numbers, .meta = &meta,
                 .nmeta = 1 };
    tn_error err = { .text = "" };
    check_status(try_write("m.npy", (tn_create_options){ 0 }, &s, 1, &err), &err, TN_ERR_LOSS,
                 "npy cannot hold metadata: use npz, or leave it out (drop_metadata)");
    CHECK(count_entries(folder) == 0);
    write_file("m.npy", (tn_create_options){ .drop_metadata = true }, &s, 1);
    tn_file *f = open_file("m.npy");
    CHECK(tn_file_tensor(f, 0)->nmeta == 0);
    tn_close(f);
    const int64_t shape[] = { 2, 2 };
    const tn_part part = { .role = "data", .array = { .dtype = TN_UINT8, .rank = 2, .shape = shape },
                           .data = numbers };
    const tn_tensor t = { .name = "l", .form = TN_FORM_DENSE, .dtype = TN_UINT8, .rank = 2, .shape = shape,
                          .parts = &part, .nparts = 1, .layout = "NC" };
    check_status(try_write_tensor("l.npy", (tn_create_options){ 0 }, &t, &err), &err, TN_ERR_LOSS,
                 "npy cannot hold its layout");
    CHECK(try_write_tensor("l.npy", (tn_create_options){ .drop_metadata = true }, &t, &err) == TN_OK);
}

static void what_numpy_would_not_read_is_not_written(void)
{
    simple s = { .name = "m", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = numbers };
    tn_error err = { .text = "" };
    write_file("m.npy", (tn_create_options){ .align = 8192 }, &s, 1);
    check_status(try_write("m.npy", (tn_create_options){ .align = 16384, .replace = true }, &s, 1, &err), &err,
                 TN_ERR_LIMIT, "NumPy reads at most 10000: choose a smaller alignment");
}

static void one_file_holds_one_array(void)
{
    simple s[] = { { .name = "x", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = numbers },
                   { .name = "y", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = numbers } };
    tn_error err = { .text = "" };
    CHECK(try_write("n.npy", (tn_create_options){ 0 }, s, 2, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "there are 2: use npz"));
    CHECK(try_write("n.npy", (tn_create_options){ 0 }, s, 0, &err) == TN_ERR_ARGUMENT &&
          strstr(line_of(&err), "there are 0"));
    CHECK(try_write("n.npy", (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C }, s, 1,
                    &err) == TN_ERR_ARGUMENT);
}

static void a_file_that_is_read_is_the_same_as_one_that_is_mapped(void)
{
    simple s = { .name = "p", .dtype = TN_INT16, .rank = 1, .shape = { 12 }, .data = numbers };
    tn_open_options options = { .size = sizeof options, .io = TN_IO_PREAD };
    uint8_t found[sizeof numbers];
    tn_file *f;
    write_file("p.npy", (tn_create_options){ .align = 4096 }, &s, 1);
    CHECK(tn_open(in_folder("p.npy").text, &options, &f, NULL) == TN_OK);
    const tn_part *p = tn_file_tensor(f, 0)->parts;
    CHECK(!p->data && stored_info(p).offset == 4096);
    CHECK(tn_part_read(f, p, found, sizeof found, NULL) == TN_OK &&
          memcmp(found, numbers, sizeof found) == 0);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(headers_are_read_however_they_are_spelled),
        TEST(a_name_beside_the_header_is_the_tensors),
        TEST(types_are_told_by_their_code),
        TEST(columns_and_big_endian_numbers_come_out_as_rows),
        TEST(one_running_index_needs_no_strides),
        TEST(what_is_not_a_header_is_refused_with_the_byte),
        TEST(numbers_end_in_l_up_to_version_2),
        TEST(what_no_build_reads_is_refused_where_its_type_stands),
        TEST(a_long_type_is_cut_to_be_shown),
        TEST(what_follows_the_array_is_left_with_a_warning),
        TEST(a_65th_dimension_is_refused),
        TEST(versions_and_lengths_are_checked),
        TEST(every_truncation_is_refused),
        TEST(a_flipped_or_dropped_byte_never_hurts),
        IN_FOLDER(a_plain_array_is_written_as_numpy_writes_it),
        IN_FOLDER(a_name_is_that_of_the_file_or_dropped),
        IN_FOLDER(columns_of_wide_elements_are_read_without_a_mapping),
        IN_FOLDER(types_of_numpy_come_back_and_others_are_refused),
        IN_FOLDER(a_comment_of_earlier_versions_is_read),
        IN_FOLDER(metadata_and_layouts_are_refused_or_dropped),
        IN_FOLDER(what_numpy_would_not_read_is_not_written),
        IN_FOLDER(one_file_holds_one_array),
        IN_FOLDER(a_file_that_is_read_is_the_same_as_one_that_is_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
