/* Several files opened as one. */
#include "support.h"
#include "make.h"
#include "files.h"
#include "scaled_tensor.h"

#include <unistd.h>

static const uint8_t bytes[4] = { 1, 2, 3, 4 };
static const float floats[4] = { 0, 1.5f, 0, -2 };
static const tn_meta first_meta[] = { { "author", "x", NULL, 0 }, { "year", "1", NULL, 0 } };

static simple of_bytes(const char *name, const uint8_t *data)
{
    return (simple){ .name = name, .dtype = TN_UINT8, .rank = 1, .shape = { 4 }, .data = data };
}

static void write_with_meta(const char *name, const char *tensor, const tn_meta *meta, size_t n)
{
    const simple s = of_bytes(tensor, bytes);
    const tn_create_options o = { .size = sizeof o };
    tn_writer *w;
    CHECK(tn_create(in_folder(name).text, &o, &w, NULL) == TN_OK);
    for (size_t i = 0; i < n; i++)
        CHECK(tn_writer_add_meta(w, &meta[i], NULL) == TN_OK);
    CHECK(add_simple(w, &s, NULL) == TN_OK && tn_writer_finish(w, NULL) == TN_OK);
}

/* Up to four names in the test's folder. */
static tn_status open_all(tn_file **f, tn_error *err, const char *a, const char *b, const char *c, const char *d)
{
    const char *const names[] = { a, b, c, d };
    full_path full[4];
    const char *paths[4];
    size_t n = 0;
    for (; n < 4 && names[n]; n++) {
        full[n] = in_folder(names[n]);
        paths[n] = full[n].text;
    }
    return tn_open_several(paths, n, NULL, f, err);
}

static void check_tensor(const tn_file *f, size_t i, const char *name, const char *shard)
{
    const tn_tensor *t = tn_file_tensor(f, i);
    tn_stored_info info = { .size = sizeof info };
    CHECK(t && strcmp(t->name, name) == 0 && tn_file_find(f, name) == t);
    CHECK(tn_part_stored(t, t->parts, &info) == TN_OK);
    CHECK(strstr(tn_file_shard_name(f, info.shard), shard));
}

/* All of it is in the converted file, too. */
static void check_converted(const tn_file *f)
{
    tn_error err = { .text = "" };
    size_t different = 1;
    if (tn_convert(f, in_folder("all.zt").text, NULL, NULL, &err))
        fail_msg("%s", line_of(&err));
    tn_file *g = open_file("all.zt");
    CHECK(tn_compare(f, g, NULL, NULL, &different, &err) == TN_OK && different == 0);
    tn_close(g);
}

static void files_of_any_formats_are_one(void)
{
    const simple few[] = { of_bytes("a", bytes), of_bytes("b", bytes), of_bytes("c", bytes) };
    write_file("set.safetensors", (tn_create_options){ .shard_size = 4 }, few, 3);
    const simple d = of_bytes("d", bytes);
    write_file("d.npy", (tn_create_options){ .drop_names = true }, &d, 1);
    put_file("m.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 5\n2 2 6\n");
    const simple last = of_bytes("last", bytes);
    write_file("z.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD }, &last, 1);
    tn_file *f;
    CHECK(open_all(&f, NULL, "set.safetensors.index.json", "m.mtx", "d.npy", "z.zt") == TN_OK);
    walk_file(f);
    CHECK(tn_file_count(f) == 6 && tn_file_shards(f) == 7 && tn_file_intact(f, NULL) == TN_OK);
    check_tensor(f, 0, "a", "-00001-of-00003");
    check_tensor(f, 2, "c", "-00003-of-00003");
    check_tensor(f, 3, "m", "m.mtx");
    check_tensor(f, 4, "d", "d.npy");
    check_tensor(f, 5, "last", "z.zt");
    CHECK(strcmp(tn_file_format(f), "safetensors") == 0);
    check_converted(f);
    tn_close(f);
}

static void sparse_scaled_and_tied_tensors_stay_what_they_are(void)
{
    const int64_t shape[] = { 2, 2 };
    const simple tied[] = { of_bytes("a", bytes), { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { 4 },
                                                    .tied = "a" } };
    scaled_tensor s;
    write_file("tied.zt", (tn_create_options){ 0 }, tied, 2);
    make_scaled(&s, "mxfp4e2", TN_FLOAT32, 2, (int64_t[]){ 2, 32 }, (tn_quantize_options){ 0 });
    CHECK(try_write_tensor("scaled.safetensors", (tn_create_options){ 0 }, &s.tensor, NULL) == TN_OK);
    const tn_part part = { .role = "data", .array = { TN_FLOAT32, 2, shape, NULL }, .data = floats };
    const tn_tensor dense = { .name = "sparse", .dtype = TN_FLOAT32, .rank = 2, .shape = shape, .parts = &part,
                              .nparts = 1 };
    tn_tensor *coo;
    CHECK(tn_convert_form(&dense, TN_FORM_COO, NULL, &coo, NULL) == TN_OK);
    CHECK(try_write_tensor("sparse.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD }, coo, NULL) == TN_OK);
    tn_tensor_free(coo);
    tn_file *f;
    CHECK(open_all(&f, NULL, "tied.zt", "scaled.safetensors", "sparse.zt", NULL) == TN_OK);
    walk_file(f);
    CHECK(strcmp(tn_file_tensor(f, 1)->tied, "a") == 0);
    CHECK(tn_file_tensor(f, 2)->form == TN_FORM_SCALED && tn_file_tensor(f, 3)->form == TN_FORM_COO);
    check_converted(f);
    tn_file *g = open_file("all.zt");
    CHECK(tn_file_find(g, "b")->tied && tn_file_find(g, "sparse")->form == TN_FORM_COO);
    tn_close(g);
    tn_close(f);
    free_scaled(&s);
}

static void a_name_in_two_files_is_refused_with_both(void)
{
    tn_file *f;
    tn_error err;
    const simple a[] = { of_bytes("x", bytes), of_bytes("same", bytes) }, b = of_bytes("same", bytes);
    write_file("1.zt", (tn_create_options){ 0 }, a, 2);
    write_file("2.zt", (tn_create_options){ 0 }, &b, 1);
    CHECK(open_all(&f, &err, "1.zt", "2.zt", NULL, NULL) == TN_ERR_ARGUMENT);
    CHECK(strstr(err.file, "2.zt") && strcmp(err.tensor, "same") == 0 && strstr(err.text, "1.zt"));
    CHECK(open_all(&f, &err, "2.zt", "2.zt", NULL, NULL) == TN_ERR_ARGUMENT);
}

static void metadata_is_merged_and_two_values_are_a_loss(void)
{
    const tn_meta same[] = { { "year", "1", NULL, 0 }, { "more", "2", NULL, 0 } };
    const tn_meta other[] = { { "author", "y", NULL, 0 } };
    write_with_meta("1.zt", "a", first_meta, 2);
    write_with_meta("2.safetensors", "b", same, 2);
    write_with_meta("3.zt", "c", other, 1);
    tn_file *f;
    size_t n;
    tn_error err;
    CHECK(open_all(&f, NULL, "1.zt", "2.safetensors", NULL, NULL) == TN_OK);
    const tn_meta *meta = tn_file_meta(f, &n);
    CHECK(n == 3 && strcmp(meta[0].key, "author") == 0 && strcmp(meta[2].key, "more") == 0);
    check_converted(f);
    tn_close(f);
    CHECK(open_all(&f, NULL, "1.zt", "2.safetensors", "3.zt", NULL) == TN_OK);
    CHECK(strcmp(tn_file_meta(f, &n)[0].text, "x") == 0 && n == 3);
    CHECK(tn_convert(f, in_folder("no.zt").text, NULL, NULL, &err) == TN_ERR_LOSS);
    CHECK(err.reason == TN_REASON_DROP_METADATA && strstr(err.text, "two values of metadata author"));
    const tn_create_options drop = { .size = sizeof drop, .drop_metadata = true };
    const tn_convert_options o = { .size = sizeof o, .create = &drop };
    CHECK(tn_convert(f, in_folder("yes.zt").text, &o, NULL, NULL) == TN_OK);
    tn_close(f);
}

static void what_is_wrong_with_a_member_is_told_with_its_path(void)
{
    tn_file *f;
    tn_error err;
    const simple a = of_bytes("a", bytes), b = of_bytes("b", bytes);
    write_file("1.zt", (tn_create_options){ 0 }, &a, 1);
    write_file("2.safetensors", (tn_create_options){ 0 }, &b, 1);
    size_t n;
    uint8_t *whole = load_file(in_folder("2.safetensors").text, &n);
    for (size_t k = 0; k < n; k++) {
        put_bytes("2.safetensors", whole, k);
        if (open_all(&f, &err, "1.zt", "2.safetensors", NULL, NULL) == TN_OK || !strstr(err.file, "2.safetensors"))
            fail_msg("%zu bytes of %zu: %s", k, n, line_of(&err));
    }
    put_bytes("2.safetensors", whole, n);
    free(whole);
    CHECK(open_all(&f, NULL, "1.zt", "2.safetensors", NULL, NULL) == TN_OK);
    CHECK(truncate(in_folder("2.safetensors").text, 10) == 0);
    CHECK(tn_file_intact(f, &err) == TN_ERR_TRUNCATED && strstr(err.file, "2.safetensors"));
    CHECK(tn_convert(f, in_folder("o.zt").text, NULL, NULL, &err) == TN_ERR_TRUNCATED &&
          strstr(err.file, "2.safetensors"));
    tn_close(f);
}

static void an_error_of_a_tensor_names_its_file(void)
{
    const simple a = of_bytes("a", bytes);
    const simple bad = { .name = "bad", .dtype = TN_COMPLEX64, .rank = 1, .shape = { 0 } };
    write_file("1.zt", (tn_create_options){ 0 }, &a, 1);
    write_file("2.zt", (tn_create_options){ 0 }, &bad, 1);
    tn_file *f;
    tn_error err;
    const tn_rule rule = { "cast", "bad=f32" };
    const tn_convert_options o = { .size = sizeof o, .rules = &rule, .nrules = 1 };
    CHECK(open_all(&f, NULL, "1.zt", "2.zt", NULL, NULL) == TN_OK);
    CHECK(tn_convert(f, in_folder("o.zt").text, &o, NULL, &err) == TN_ERR_LOSS);
    CHECK(strstr(err.file, "2.zt") && strcmp(err.tensor, "bad") == 0);
    tn_close(f);
}

static void warnings_have_the_path(void)
{
    const simple a = of_bytes("a", bytes);
    write_file("1.zt", (tn_create_options){ 0 }, &a, 1);
    put_file("2.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 5\n1 1 6\n");
    tn_file *f, *alone = open_file("2.mtx");
    CHECK(open_all(&f, NULL, "1.zt", "2.mtx", NULL, NULL) == TN_OK);
    for (size_t i = 0; tn_file_warning(alone, i); i++)
        CHECK(strstr(tn_file_warning(f, i), "2.mtx: ") && strstr(tn_file_warning(f, i), tn_file_warning(alone, i)));
    tn_close(alone);
    tn_close(f);
}

static void one_path_is_a_file_and_none_is_an_error(void)
{
    tn_file *f;
    tn_error err;
    const simple a = of_bytes("a", bytes);
    write_file("1.zt", (tn_create_options){ 0 }, &a, 1);
    CHECK(open_all(&f, NULL, "1.zt", NULL, NULL, NULL) == TN_OK && tn_file_shards(f) == 1);
    tn_close(f);
    CHECK(tn_open_several(NULL, 0, NULL, &f, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_open_several(NULL, 2, NULL, &f, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_open_several((const char *[]){ "x", NULL }, 2, NULL, &f, &err) == TN_ERR_ARGUMENT);
    CHECK(open_all(&f, &err, "1.zt", "none.zt", NULL, NULL) == TN_ERR_IO && strstr(err.file, "none.zt"));
}

/* The output replaces an input only as it was read. */
static void an_input_may_be_the_output(void)
{
    const tn_create_options create = { .size = sizeof create, .replace = true };
    const tn_convert_options o = { .size = sizeof o, .create = &create };
    const simple a = of_bytes("a", bytes), b = of_bytes("b", bytes);
    for (int changed = 0; changed < 2; changed++) {
        write_file("1.zt", (tn_create_options){ .replace = true }, &a, 1);
        write_file("2.zt", (tn_create_options){ .replace = true }, &b, 1);
        tn_file *f;
        CHECK(open_all(&f, NULL, "1.zt", "2.zt", NULL, NULL) == TN_OK);
        if (changed)
            write_file("2.zt", (tn_create_options){ .replace = true }, &b, 1);
        CHECK(tn_convert(f, in_folder("2.zt").text, &o, NULL, NULL) == (changed ? TN_ERR_CHANGED : TN_OK));
        tn_close(f);
        f = open_file("2.zt");
        CHECK(tn_file_count(f) == (changed ? 1 : 2));
        tn_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(files_of_any_formats_are_one),
        IN_FOLDER(sparse_scaled_and_tied_tensors_stay_what_they_are),
        IN_FOLDER(a_name_in_two_files_is_refused_with_both),
        IN_FOLDER(metadata_is_merged_and_two_values_are_a_loss),
        IN_FOLDER(what_is_wrong_with_a_member_is_told_with_its_path),
        IN_FOLDER(an_error_of_a_tensor_names_its_file),
        IN_FOLDER(warnings_have_the_path),
        IN_FOLDER(one_path_is_a_file_and_none_is_an_error),
        IN_FOLDER(an_input_may_be_the_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
