/* Declaring, streaming, finishing, and what a writer refuses. */
#include "support.h"

#include "files.h"
#include "make.h"

static const uint8_t some[4] = { 1, 2, 3, 4 };

static simple bytes_called(const char *name)
{
    return (simple){ .name = name, .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = some };
}

static tn_writer *begin(const char *name, tn_create_options options)
{
    tn_writer *w;
    tn_error err = { .text = "" };
    options.size = sizeof options;
    if (tn_create(in_folder(name).text, &options, &w, &err))
        fail_msg("%s", line_of(&err));
    return w;
}

/* ---- metadata ---- */

/* One item of every kind CBOR has. */
static const struct { const char *key, *bytes; size_t n; } kinds[] = {
    { "uint", "\x00", 1 }, { "uint 64 bits", "\x1b\xff\xff\xff\xff\xff\xff\xff\xff", 9 },
    { "long form", "\x19\0\1", 3 },
    { "negative", "\x20", 1 }, { "most negative", "\x3b\xff\xff\xff\xff\xff\xff\xff\xff", 9 },
    { "bytes", "\x43\0\xff\x80", 4 }, { "no bytes", "\x40", 1 },
    { "chunked bytes", "\x5f\x41\1\x40\x41\2\xff", 7 },
    { "array", "\x82\1\x82\xf6\xf5", 5 }, { "indefinite array", "\x9f\1\x80\xff", 4 },
    { "map", "\xa1\x61k\x61v", 5 }, { "indefinite map", "\xbf\1\2\xff", 4 },
    { "map of any key", "\xa2\x80\1\xf6\2", 5 },
    { "tagged text", "\xc0\x61t", 3 }, { "tagged tag", "\xd9\xd9\xf7\xc1\0", 5 },
    { "half", "\xf9\x3c\0", 3 }, { "nan", "\xf9\x7e\0", 3 }, { "single", "\xfa\x7f\x80\0\0", 5 },
    { "double", "\xfb\x3f\xb9\x99\x99\x99\x99\x99\x9a", 9 },
    { "false", "\xf4", 1 }, { "true", "\xf5", 1 }, { "null", "\xf6", 1 }, { "undefined", "\xf7", 1 },
    { "simple", "\xe0", 1 }, { "simple 255", "\xf8\xff", 2 },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void fill_kinds(tn_meta meta[KINDS + 2])
{
    for (size_t i = 0; i < KINDS; i++)
        meta[i] = (tn_meta){ .key = kinds[i].key, .cbor = (const uint8_t *)kinds[i].bytes,
                             .cbor_size = kinds[i].n };
    meta[KINDS] = (tn_meta){ .key = "text", .text = "t\xc3\xa9xt \"\\\n" };
    meta[KINDS + 1] = (tn_meta){ .key = "", .text = "" };
}

static bool same_meta(const tn_meta *a, const tn_meta *b)
{
    if (strcmp(a->key, b->key) != 0 || (a->text != NULL) != (b->text != NULL))
        return false;
    return a->text ? strcmp(a->text, b->text) == 0
                   : a->cbor_size == b->cbor_size && memcmp(a->cbor, b->cbor, a->cbor_size) == 0;
}

/* Each is there, once; safetensors lists texts before the rest. */
static void check_kinds(const tn_meta *found, size_t n)
{
    tn_meta expected[KINDS + 2];
    fill_kinds(expected);
    CHECK(n == KINDS + 2);
    for (size_t i = 0; i < n; i++) {
        size_t times = 0;
        for (size_t k = 0; k < n; k++)
            times += same_meta(&expected[i], &found[k]);
        if (times != 1)
            fail_msg("\"%s\" came back %zu times", expected[i].key, times);
    }
}

static void metadata_of_every_kind_comes_back_as_it_was(void)
{
    static const char *const names[] = { "m.zt", "m.safetensors" };
    tn_meta meta[KINDS + 2];
    fill_kinds(meta);
    for (size_t k = 0; k < 2; k++) {
        tn_error err = { .text = "" };
        tn_writer *w = begin(names[k], (tn_create_options){ 0 });
        for (size_t i = 0; i < KINDS + 2; i++)
            CHECK(tn_writer_add_meta(w, &meta[i], NULL) == TN_OK);
        simple first = bytes_called("first"), second = bytes_called("second");
        second.meta = meta;
        second.nmeta = KINDS + 2;
        CHECK(add_simple(w, &first, NULL) == TN_OK && add_simple(w, &second, NULL) == TN_OK);
        if (tn_writer_finish(w, &err))
            fail_msg("%s: %s", names[k], line_of(&err));
        tn_file *f = open_file(names[k]);
        size_t n;
        const tn_meta *of_file = tn_file_meta(f, &n);
        check_kinds(of_file, n);
        CHECK(tn_file_find(f, "first")->nmeta == 0);
        check_kinds(tn_file_find(f, "second")->meta, tn_file_find(f, "second")->nmeta);
        tn_close(f);
    }
}

static void wrong_metadata_is_refused(void)
{
    static const struct { tn_meta meta; const char *what; } wrong[] = {
        { { .key = "\xff", .text = "t" }, "key not UTF-8" },
        { { .key = "k", .text = "\xc3" }, "text not UTF-8" },
        { { .key = "k", .cbor = (const uint8_t *)"", .cbor_size = 0 }, "no CBOR at all" },
        { { .key = "k", .cbor = (const uint8_t *)"\x82\1", .cbor_size = 2 }, "CBOR cut off" },
        { { .key = "k", .cbor = (const uint8_t *)"\1\2", .cbor_size = 2 }, "two CBOR items" },
        { { .key = "k", .cbor = (const uint8_t *)"\xff", .cbor_size = 1 }, "a break alone" },
        { { .key = "k", .cbor = (const uint8_t *)"\x61\xff", .cbor_size = 2 }, "CBOR text not UTF-8" },
    };
    for (size_t i = 0; i < 2 * (sizeof wrong / sizeof *wrong); i++) {
        tn_error err = { .text = "" };
        tn_writer *w = begin("w.zt", (tn_create_options){ .replace = true });
        simple t = bytes_called("t");
        tn_status status = TN_OK;
        if (i % 2) {
            t.meta = &wrong[i / 2].meta;
            t.nmeta = 1;
        } else {
            status = tn_writer_add_meta(w, &wrong[i / 2].meta, &err);
        }
        if (!status)
            status = add_simple(w, &t, &err);
        if (status != TN_ERR_ARGUMENT)
            print_error("accepted: %s\n", wrong[i / 2].what);
        tn_writer_abandon(w);
        CHECK(status == TN_ERR_ARGUMENT);
        walk_error(&err, status);
    }
}

/* What is nested too deep to be read back must be refused before anything is written. */
static void nested_metadata_can_be_read_back_or_is_refused(void)
{
    static const char *const names[] = { "d.zt", "d.safetensors" };
    for (size_t depth = 1; depth < 70; depth++) {
        uint8_t nested[71];
        memset(nested, 0x81, depth);
        nested[depth] = 0xf7;
        const tn_meta meta = { .key = "deep", .cbor = nested, .cbor_size = depth + 1 };
        for (size_t k = 0; k < 4; k++) {
            tn_writer *w = begin(names[k % 2], (tn_create_options){ .replace = true });
            simple t = bytes_called("t");
            t.meta = &meta;
            t.nmeta = k < 2;
            tn_status status = k < 2 ? TN_OK : tn_writer_add_meta(w, &meta, NULL);
            if (!status)
                status = add_simple(w, &t, NULL);
            if (!status)
                status = tn_writer_finish(w, NULL);
            else
                tn_writer_abandon(w);
            CHECK(status == TN_OK || depth > 32);
            if (status)
                continue;
            tn_file *f;
            tn_error err = { .text = "" };
            if (tn_open(in_folder(names[k % 2]).text, NULL, &f, &err))
                fail_msg("depth %zu of %s in %s: %s", depth, k < 2 ? "a tensor" : "the file", names[k % 2],
                         line_of(&err));
            tn_close(f);
        }
    }
}

static void a_metadata_key_twice_is_refused(void)
{
    static const tn_meta twice[] = { { .key = "k", .text = "a" }, { .key = "k", .text = "a" } };
    tn_writer *w = begin("w.zt", (tn_create_options){ 0 });
    simple t = bytes_called("t");
    t.meta = twice;
    t.nmeta = 2;
    CHECK(add_simple(w, &t, NULL) != TN_OK);
    tn_writer_abandon(w);
    w = begin("w.zt", (tn_create_options){ 0 });
    tn_status status = tn_writer_add_meta(w, &twice[0], NULL);
    if (!status)
        status = tn_writer_add_meta(w, &twice[1], NULL);
    t.nmeta = 0;
    if (!status)
        status = add_simple(w, &t, NULL);
    CHECK(tn_writer_finish(w, NULL) != TN_OK || status != TN_OK);
    CHECK(count_entries(folder) == 0);
}

static void keys_of_the_format_are_no_metadata(void)
{
    static const char *const keys[] = { "name", "offset", "size", "dtype", "shape", "encoding", "layout",
                                        "data_endianness", "checksum", "tenon" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const tn_meta meta = { .key = keys[i], .text = "x" };
        tn_error err = { .text = "" };
        simple t = bytes_called("t");
        t.meta = &meta;
        t.nmeta = 1;
        CHECK(try_write("k.zt", (tn_create_options){ 0 }, &t, 1, &err) == TN_ERR_LOSS);
        walk_error(&err, TN_ERR_LOSS);
        CHECK(count_entries(folder) == 0);
    }
    const tn_meta meta = { .key = "size", .text = "x" };
    simple t = bytes_called("t");
    t.meta = &meta;
    t.nmeta = 1;
    write_file("k.zt", (tn_create_options){ .drop_metadata = true }, &t, 1);
    tn_file *f = open_file("k.zt");
    CHECK(tn_file_find(f, "t")->nmeta == 0);
    tn_close(f);
}

static void metadata_of_a_file_without_tensors_is_not_lost_silently(void)
{
    for (int drop = 0; drop < 2; drop++) {
        tn_writer *w = begin("e.zt", (tn_create_options){ .drop_metadata = drop });
        CHECK(tn_writer_add_meta(w, &(tn_meta){ .key = "k", .text = "v" }, NULL) == TN_OK);
        CHECK(tn_writer_finish(w, NULL) == (drop ? TN_OK : TN_ERR_LOSS));
        CHECK(count_entries(folder) == drop);
    }
}

/* ---- names ---- */

static void wrong_names_are_refused(void)
{
    static const char *const wrong[] = { "\xff", "a\xc3", "\xed\xa0\x80", "t" };    /* "t" is there already */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = { .text = "" };
        tn_writer *w = begin("n.zt", (tn_create_options){ 0 });
        simple t = bytes_called("t"), bad = bytes_called(wrong[i]);
        CHECK(add_simple(w, &t, NULL) == TN_OK);
        tn_status status = add_simple(w, &bad, &err);
        tn_writer_abandon(w);
        if (status != TN_ERR_ARGUMENT)
            fail_msg("name %zu was accepted", i);
        walk_error(&err, status);
    }
    CHECK(count_entries(folder) == 0);
}

static void wrong_shapes_and_types_are_refused(void)
{
    static const simple wrong[] = {
        { .name = "t", .dtype = TN_UNKNOWN, .rank = 0 }, { .name = "t", .dtype = TN_DTYPE_COUNT, .rank = 0 },
        { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { -1 } },
        { .name = "t", .dtype = TN_FLOAT64, .rank = 2, .shape = { INT64_C(1) << 40, INT64_C(1) << 40 } },
        { .name = "t", .dtype = TN_UINT8, .rank = 65 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = { .text = "" };
        tn_status status = try_write("s.zt", (tn_create_options){ 0 }, &wrong[i], 1, &err);
        CHECK(status == TN_ERR_ARGUMENT || status == TN_ERR_UNSUPPORTED || status == TN_ERR_LIMIT);
        walk_error(&err, status);
    }
    CHECK(count_entries(folder) == 0);
}

/* ---- streaming ---- */

/* Writes two tensors in pieces of `piece` bytes, the second one first. */
static uint8_t *write_in_pieces(size_t piece, tn_encoding encoding, size_t *n)
{
    static uint8_t data[2][3000];
    for (size_t i = 0; i < sizeof data[0]; i++)
        data[0][i] = (uint8_t)(i / 11), data[1][i] = (uint8_t)(i * i);
    tn_writer *w = begin("p.zt", (tn_create_options){ .replace = true, .encoding = encoding,
                                                      .checksum = TN_CHECKSUM_CRC32C });
    simple t = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { sizeof data[0] } }, empty = t;
    CHECK(add_simple(w, &t, NULL) == TN_OK);
    empty.name = "empty";
    empty.shape[0] = 0;
    CHECK(add_simple(w, &empty, NULL) == TN_OK);
    t.name = "b";
    CHECK(add_simple(w, &t, NULL) == TN_OK);
    for (size_t k = 0; k < 2; k++)
        for (size_t at = 0; at < sizeof data[0]; at += piece) {
            size_t size = sizeof data[0] - at < piece ? sizeof data[0] - at : piece;
            CHECK(tn_writer_write(w, k ? 0 : 2, 0, data[k ? 0 : 1] + at, size, NULL) == TN_OK);
        }
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    tn_file *f = open_file("p.zt");
    uint8_t *a = read_tensor(f, tn_file_find(f, "a")), *b = read_tensor(f, tn_file_find(f, "b"));
    assert_memory_equal(a, data[0], sizeof data[0]);
    assert_memory_equal(b, data[1], sizeof data[1]);
    free(a);
    free(b);
    tn_close(f);
    return load_file(in_folder("p.zt").text, n);
}

static void any_cutting_gives_the_same_file(void)
{
    static const tn_encoding encodings[] = { TN_ENCODING_RAW, TN_ENCODING_ZSTD };
    static const size_t pieces[] = { 1, 2, 7, 1000, 2999, 3000 };
    for (size_t e = 0; e < 2; e++) {
        size_t n, m;
        uint8_t *first = write_in_pieces(5000, encodings[e], &n);
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            uint8_t *again = write_in_pieces(pieces[i], encodings[e], &m);
            CHECK(n == m);
            assert_memory_equal(first, again, n);
            free(again);
        }
        free(first);
    }
}

static void misuse_is_an_error_and_leaves_nothing(void)
{
    uint8_t data[8] = { 0 };
    simple t = bytes_called("a"), given = bytes_called("given");
    t.data = NULL;
    for (int misuse = 0; misuse < 8; misuse++) {
        tn_error err = { .text = "" };
        tn_writer *w = begin("u.zt", (tn_create_options){ 0 });
        CHECK(add_simple(w, &t, NULL) == TN_OK && add_simple(w, &given, NULL) == TN_OK);
        tn_status status = TN_OK;
        switch (misuse) {
        case 0: status = tn_writer_write(w, 0, 0, data, 5, &err); break;        /* too much */
        case 1: status = tn_writer_write(w, 1, 0, data, 4, &err); break;        /* it was given */
        case 2: status = tn_writer_write(w, 2, 0, data, 4, &err); break;        /* no such tensor */
        case 3: status = tn_writer_write(w, 0, 1, data, 4, &err); break;        /* no such part */
        case 4: status = tn_writer_write(w, SIZE_MAX, SIZE_MAX, data, 4, &err); break;
        case 5:                                                                 /* twice */
            CHECK(tn_writer_write(w, 0, 0, data, 4, NULL) == TN_OK);
            status = tn_writer_write(w, 0, 0, data, 1, &err);
            break;
        case 6:                                                                 /* a tensor after data */
            CHECK(tn_writer_write(w, 0, 0, data, 1, NULL) == TN_OK);
            status = add_simple(w, &(simple){ .name = "late", .dtype = TN_UINT8, .data = some }, &err);
            break;
        default:                                                                /* too little */
            CHECK(tn_writer_write(w, 0, 0, data, 3, NULL) == TN_OK);
            status = tn_writer_finish(w, &err);
            w = NULL;
            break;
        }
        tn_writer_abandon(w);
        CHECK(status == TN_ERR_ARGUMENT);
        walk_error(&err, status);
        CHECK(count_entries(folder) == 0);
    }
}

static void the_old_file_stays_until_the_end(void)
{
    simple old = bytes_called("old"), new = bytes_called("new");
    tn_error err = { .text = "" };
    write_file("o.zt", (tn_create_options){ 0 }, &old, 1);
    CHECK(try_write("o.zt", (tn_create_options){ 0 }, &new, 1, &err) == TN_ERR_EXISTS);
    new.data = NULL;
    tn_writer *w = begin("o.zt", (tn_create_options){ .replace = true });
    CHECK(add_simple(w, &new, NULL) == TN_OK && tn_writer_write(w, 0, 0, some, 3, NULL) == TN_OK);
    tn_file *f = open_file("o.zt");
    CHECK(tn_file_find(f, "old") != NULL);
    tn_close(f);
    CHECK(tn_writer_write(w, 0, 0, some, 1, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
    f = open_file("o.zt");
    CHECK(tn_file_find(f, "new") != NULL);
    tn_close(f);
    CHECK(count_entries(folder) == 1);
}

static void ties_need_an_earlier_tensor_of_the_same_bytes(void)
{
    static const simple wrong[] = {
        { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .tied = "nobody" },
        { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .tied = "t" },
        { .name = "t", .dtype = TN_UINT8, .rank = 1, .shape = { 5 }, .tied = "a" },
        { .name = "t", .dtype = TN_UINT32, .rank = 0, .tied = "a" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        simple both[] = { bytes_called("a"), wrong[i] };
        tn_error err = { .text = "" };
        CHECK(try_write("t.zt", (tn_create_options){ 0 }, both, 2, &err) == TN_ERR_ARGUMENT);
        walk_error(&err, TN_ERR_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(metadata_of_every_kind_comes_back_as_it_was),
        IN_FOLDER(wrong_metadata_is_refused),
        IN_FOLDER(nested_metadata_can_be_read_back_or_is_refused),
        IN_FOLDER(a_metadata_key_twice_is_refused),
        IN_FOLDER(keys_of_the_format_are_no_metadata),
        IN_FOLDER(metadata_of_a_file_without_tensors_is_not_lost_silently),
        IN_FOLDER(wrong_names_are_refused),
        IN_FOLDER(wrong_shapes_and_types_are_refused),
        IN_FOLDER(any_cutting_gives_the_same_file),
        IN_FOLDER(misuse_is_an_error_and_leaves_nothing),
        IN_FOLDER(the_old_file_stays_until_the_end),
        IN_FOLDER(ties_need_an_earlier_tensor_of_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
