/* What the public headers promise beyond the ordinary: failed writers, short
 * option structs, late calls. */
#include "support.h"

#include "make.h"

static const uint8_t bytes[16] = { 1, 2, 3 };
static const simple one = { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 16 } };

static const char *const names[] = { "f.zt", "f.safetensors" };

static void a_failed_plan_is_not_forgotten(void)
{
    for (size_t i = 0; i < 2; i++) {
        tn_writer *w;
        tn_error err = { .text = "" };
        simple old = one;
        old.data = bytes;
        old.name = "old";
        write_file(names[i], (tn_create_options){ 0 }, &old, 1);
        CHECK(tn_create(in_folder(names[i]).text, NULL, &w, &err) == TN_OK &&
              add_simple(w, &one, &err) == TN_OK);
        CHECK(tn_writer_write(w, 0, 0, bytes, 16, &err) == TN_ERR_EXISTS);
        CHECK(tn_writer_write(w, 0, 0, bytes, 16, &err) == TN_ERR_EXISTS);
        CHECK(add_simple(w, &one, &err) == TN_ERR_EXISTS);
        CHECK(tn_writer_add_meta(w, &(tn_meta){ .key = "k", .text = "v" }, &err) == TN_ERR_EXISTS);
        CHECK(tn_writer_finish(w, &err) == TN_ERR_EXISTS && strstr(line_of(&err), "earlier"));
        tn_file *f = open_file(names[i]);
        CHECK(tn_file_find(f, "old") && !tn_file_find(f, "a"));
        tn_close(f);
    }
}

static void a_failed_add_fails_the_file(void)
{
    tn_writer *w;
    CHECK(tn_create(in_folder("f.zt").text, NULL, &w, NULL) == TN_OK && add_simple(w, &one, NULL) == TN_OK);
    CHECK(add_simple(w, &one, NULL) == TN_ERR_ARGUMENT);        /* the name twice */
    CHECK(tn_writer_finish(w, NULL) == TN_ERR_ARGUMENT && access(in_folder("f.zt").text, F_OK) != 0);
}

static void metadata_after_data_is_refused(void)
{
    for (size_t i = 0; i < 2; i++) {
        tn_writer *w;
        CHECK(tn_create(in_folder(names[i]).text, NULL, &w, NULL) == TN_OK &&
              add_simple(w, &one, NULL) == TN_OK);
        CHECK(tn_writer_write(w, 0, 0, bytes, 8, NULL) == TN_OK);
        CHECK(tn_writer_add_meta(w, &(tn_meta){ .key = "k", .text = "v" }, NULL) == TN_ERR_ARGUMENT);
        tn_writer_abandon(w);
    }
}

/* tests/unit/test_options.c tests the check itself. */
static void a_struct_whose_size_is_forgotten_is_refused_by_name(void)
{
    simple whole = one;
    whole.data = bytes;
    write_file("f.zt", (tn_create_options){ 0 }, &whole, 1);
    size_t *only_size = malloc(sizeof *only_size);      /* AddressSanitizer guards what lies behind */
    assert_non_null(only_size);
    tn_file *f = open_file("f.zt"), *g;
    tn_writer *w;
    tn_error err;
    size_t different = 1;
    for (*only_size = 0; *only_size <= sizeof *only_size; *only_size += sizeof *only_size) {
        CHECK(tn_open(in_folder("f.zt").text, (const void *)only_size, &g, &err) == TN_ERR_ARGUMENT);
        CHECK(strstr(err.text, "sizeof(tn_open_options)"));
        CHECK(tn_verify(f, (const void *)only_size, NULL, &err) == TN_ERR_ARGUMENT);
        CHECK(strstr(err.text, "sizeof(tn_verify_options)"));
        CHECK(tn_convert(f, in_folder("g.zt").text, (const void *)only_size, NULL, &err) == TN_ERR_ARGUMENT);
        CHECK(strstr(err.text, "sizeof(tn_convert_options)"));
        CHECK(tn_compare(f, f, (const void *)only_size, NULL, &different, &err) == TN_ERR_ARGUMENT);
        CHECK(strstr(err.text, "sizeof(tn_compare_options)"));
        CHECK(tn_create(in_folder("h.zt").text, (const void *)only_size, &w, &err) == TN_ERR_ARGUMENT);
        CHECK(strstr(err.text, "sizeof(tn_create_options)"));
    }
    tn_close(f);
    free(only_size);
}

static void an_encoding_that_cannot_be_made_is_refused(void)
{
    tn_create_options o = { .size = sizeof o, .encoding = TN_ENCODING_UNKNOWN };
    tn_writer *w;
    CHECK(tn_create(in_folder("f.zt").text, &o, &w, NULL) == TN_ERR_ARGUMENT);
    o = (tn_create_options){ .size = sizeof o, .checksum = TN_CHECKSUM_UNKNOWN };
    CHECK(tn_create(in_folder("f.zt").text, &o, &w, NULL) == TN_ERR_ARGUMENT);
}

static void count_differing(void *context, const tn_difference *d)
{
    *(uint64_t *)context += d->differing;
}

static void large_integers_of_two_types_are_compared_exactly(void)
{
    static const int64_t odd[2] = { INT64_C(9007199254740993), -1 };
    static const uint64_t even[2] = { UINT64_C(9007199254740992), UINT64_MAX };
    static const double rounded[2] = { 9007199254740992.0, -1.0 };
    simple a = { .name = "a", .dtype = TN_INT64, .rank = 1, .shape = { 2 }, .data = odd }, b = a, c = a;
    b.dtype = TN_UINT64;
    b.data = even;
    c.dtype = TN_FLOAT64;
    c.data = rounded;
    write_file("a.zt", (tn_create_options){ 0 }, &a, 1);
    write_file("b.zt", (tn_create_options){ 0 }, &b, 1);
    write_file("c.zt", (tn_create_options){ 0 }, &c, 1);
    tn_file *x = open_file("a.zt"), *y = open_file("b.zt"), *z = open_file("c.zt");
    uint64_t differing = 0;
    tn_compare_options o = { .size = sizeof o, .context = &differing };
    CHECK(tn_compare(x, y, &o, count_differing, NULL, NULL) == TN_OK && differing == 2);
    differing = 0;
    CHECK(tn_compare(x, z, &o, count_differing, NULL, NULL) == TN_OK && differing == 1);
    tn_close(x);
    tn_close(y);
    tn_close(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_failed_plan_is_not_forgotten),
        IN_FOLDER(a_failed_add_fails_the_file),
        IN_FOLDER(metadata_after_data_is_refused),
        IN_FOLDER(a_struct_whose_size_is_forgotten_is_refused_by_name),
        IN_FOLDER(an_encoding_that_cannot_be_made_is_refused),
        IN_FOLDER(large_integers_of_two_types_are_compared_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
