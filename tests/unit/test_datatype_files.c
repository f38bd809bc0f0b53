/* Tensors of a datatype in files: written, read, converted, and records that lie. */
#include "support.h"
#include "format_option.h"

#include "datatype_tensor.h"
#include "files.h"
#include "make.h"
#include "values.h"

static const tn_create_options ways[] = {
    { .format = "ztensor" },
    { .format = "ztensor", .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C },
    { .format = "ztensor", OCP_NAMES("ztensor") },
    { .format = "safetensors" },
    { .format = "safetensors", .align = 256, FILLER },
    { .format = "safetensors", OCP_NAMES("safetensors") },
    { .format = "npz" },
    { .format = "npz", OCP_NAMES("npz") },
    { .format = "raw" },
};
enum { WAYS = sizeof ways / sizeof *ways, OCP_WAY = 2, MOST = 400 };

/* Tensors that are written together. */
typedef struct set {
    scaled_tensor *items[MOST];
    size_t         count;
} set;

static void add(set *s, const char *name, tn_datatype *d, uint32_t rank, const int64_t *shape, bool unpacked,
                const char *rotation)
{
    CHECK(s->count < MOST);
    s->items[s->count++] = scaled_of(name, d, rank, shape, unpacked, rotation);
}

static void drop(set *s)
{
    for (size_t i = 0; i < s->count; i++)
        scaled_free(s->items[i]);
}

static tn_status try_set(const set *s, const char *name, tn_create_options options, tn_error *err)
{
    const tn_tensor *tensors[MOST];
    for (size_t i = 0; i < s->count; i++)
        tensors[i] = &s->items[i]->t;
    return try_write_tensors(name, options, tensors, s->count, err);
}

static void write_set(const set *s, const char *name, tn_create_options options)
{
    tn_error err = { .text = "" };
    if (try_set(s, name, options, &err))
        fail_msg("%s: %s", options.format, line_of(&err));
}

static void check_set(const set *s, const char *name)
{
    tn_file *f = open_file(name);
    assert_int_equal(tn_file_count(f), s->count);
    for (size_t i = 0; i < s->count; i++)
        check_scaled_tensor(f, s->items[i]);
    tn_close(f);
}

static void add_every_datatype(set *s)
{
    static const int64_t shape[] = { 3, 33, 70 };
    const tn_datatype_name *name;
    for (size_t i = 0; (name = tiles_at(i)) != NULL; i++)
        add(s, name->name, datatype_of(name->name), 3, shape, i % 3 == 2, NULL);
}

static void add_others(set *s)
{
    static const char json[] =
        "{\"compute\":\"e2m3fnuz\",\"mappings\":[[0.125,1,1.5,2,3,4,6],[1,2.0,3e0,4,5,6,7]]}";
    static const int64_t shape[] = { 64, 2, 128 }, none[] = { 0, 64 };
    tn_datatype *book = NULL;
    CHECK(tn_datatype_codebook(json, strlen(json), "e8m0_t32s4", &book, NULL) == TN_OK);
    add(s, "a table", book, 3, shape, false, NULL);
    add(s, "first dimension", datatype_of("e2m1fnuz|e8m0_t32d0"), 3, shape, false, NULL);
    add(s, "sparse", datatype_of("e2m1fnuz|e8m0_t32n2m4"), 3, shape, false, NULL);
    add(s, "sparse, unpacked", datatype_of("e2m1fnuz|e8m0_t32n2m4"), 3, shape, true, NULL);
    add(s, "sparse alone", datatype_of("float32|n2m4"), 3, shape, false, NULL);
    add(s, "offsets", datatype_of("int4|e8m0_t32s4o2"), 3, shape, false, NULL);
    add(s, "narrow scales", datatype_of("int4|e5m0_t32"), 3, shape, false, NULL);
    add(s, "empty", datatype_of("mxfp4"), 2, none, false, NULL);
    add(s, "no tiles", datatype_of("int8|float32"), 0, NULL, false, NULL);
    add(s, "rotated", datatype_of("mxfp4"), 3, shape, false, "hadamard32");
    add(s, "rotated by chance", datatype_of("mxfp4"), 3, shape, true, "walsh128:18446744073709551615");
    s->items[0]->t.dtype = TN_BFLOAT16;         /* of the values that it stands for */
    s->items[1]->t.layout = "NCW";
}

static void tensors_of_every_datatype_come_back_from_every_container(void)
{
    set s = { .count = 0 };
    add_every_datatype(&s);
    add_others(&s);
    for (size_t i = 0; i < WAYS; i++) {
        write_set(&s, "t", ways[i]);
        check_set(&s, "t");
    }
    drop(&s);
}

static void they_go_from_container_to_container_unchanged(void)
{
    set s = { .count = 0 };
    add_others(&s);
    write_set(&s, "first", ways[0]);
    tn_file *from = open_file("first");
    for (size_t i = 0; i < WAYS; i++) {
        const char *name = i % 2 ? "odd" : "even";
        tn_create_options create = ways[(i * 5 + 3) % WAYS];
        create.size = sizeof create;
        create.replace = true;
        const tn_convert_options options = { .size = sizeof options, .create = &create, .encoding = TN_CHOOSE,
                                             .checksum = TN_CHOOSE };
        tn_error err = { .text = "" };
        if (tn_convert(from, in_folder(name).text, &options, NULL, &err))
            fail_msg("to %s: %s", create.format, line_of(&err));
        tn_close(from);
        check_set(&s, name);
        from = open_file(name);
    }
    tn_close(from);
    drop(&s);
}

static void shards_have_all_parts_of_a_tensor(void)
{
    set s = { .count = 0 };
    add_others(&s);
    for (int ocp = 0; ocp < 2; ocp++) {
        const tn_create_options o = { .format = "safetensors", .shard_size = 6000,
                                      FORMAT_OPTION("safetensors", "ocp-names", ocp ? "yes" : "no") };
        write_set(&s, "t.safetensors.index.json", o);
        check_set(&s, "t.safetensors.index.json");
        tn_file *f = open_file("t.safetensors.index.json");
        CHECK(tn_file_shards(f) > 3);
        tn_close(f);
        CHECK(remove_folder(NULL) == 0 && mkdir(folder, 0755) == 0);
    }
    drop(&s);
}

/* ---- what is refused ---- */

static void containers_without_a_place_for_them_refuse(void)
{
    static const int64_t shape[] = { 2, 64 };
    static const struct { const char *format, *datatype, *text; tn_status status; } cases[] = {
        { "btf", "mxfp4", "tensor \"0\": btf holds dense and coo tensors but found form \"scaled\"",
          TN_ERR_UNSUPPORTED },
        { "mtx", "mxfp4", "tensor \"0\": mtx holds dense, coo and csr tensors but found form \"scaled\"",
          TN_ERR_UNSUPPORTED },
        { "npy", "mxfp4", "npy holds one array and there are 2: use npz", TN_ERR_ARGUMENT },
        { "scipy-npz", "e3m3fnuz",
          "tensor \"0\": scipy-npz holds a tensor of form csr or coo but found \"scaled\" (form csr)",
          TN_ERR_UNSUPPORTED },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set s = { .count = 0 };
        tn_error err = { .text = "" };
        add(&s, "0", datatype_of(cases[i].datatype), 2, shape, false, NULL);
        assert_int_equal(try_set(&s, "t", (tn_create_options){ .format = cases[i].format }, &err),
                         cases[i].status);
        assert_string_equal(said_of(&err), cases[i].text);
        drop(&s);
    }
}

static void names_of_other_software_need_names_of_parts(void)
{
    static const char *const formats[] = { "raw", "btf", "npy", "mtx", "scipy-npz" };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char text[100];
        set s = { .count = 0 };
        tn_error err = { .text = "" };
        CHECK(try_set(&s, "t", (tn_create_options){ .format = formats[i], OCP_NAMES(formats[i]) },
                      &err) == TN_ERR_ARGUMENT);
        snprintf(text, sizeof text, "option \"%s.ocp-names\": ", formats[i]);
        CHECK(strstr(said_of(&err), text));
    }
}

static void parts_that_do_not_fit_the_datatype_are_not_written(void)
{
    static const int64_t shape[] = { 2, 64 }, other[] = { 2, 31 };
    set s = { .count = 0 };
    tn_error err = { .text = "" };
    add(&s, "w", datatype_of("mxfp4"), 2, shape, false, NULL);
    scaled_tensor *w = s.items[0];
    w->parts[0].array.shape = other;
    CHECK(try_set(&s, "t", ways[0], &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "tensor \"w\": its part \"data\" does not have the type uint8 and the "
                                  "shape that its datatype gives it");
    w->parts[0].array = scaled_array(w, 0);
    w->scaling.datatype = "mxfp";
    CHECK(try_set(&s, "t", ways[0], &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "tensor \"w\": its datatype \"mxfp\": expected a number"));
    w->scaling.datatype = "MXFP4";          /* any spelling will do... */
    for (size_t i = 0; i < WAYS; i++) {
        write_set(&s, "t", ways[i]);
        check_set(&s, "t");                 /* ...and is read back as the one */
    }
    drop(&s);
}

/* ---- names ---- */

/* Whether an entry of this name, type and shape is there for software that knows no records. */
static void check_entry(const char *json, const char *entry)
{
    if (!strstr(json, entry))
        fail_msg("expected %s in %s", entry, json);
}

static void other_software_sees_scales_under_the_names_it_knows(void)
{
    static const int64_t shape[] = { 2, 64 };
    set s = { .count = 0 };
    size_t n;
    add(&s, "fc.weight", datatype_of("nvfp4"), 2, shape, false, NULL);
    add(&s, "up.weight", datatype_of("mxfp4"), 2, shape, false, NULL);
    add(&s, "q", datatype_of("uint4|float32_int8_t32"), 2, shape, false, NULL);
    write_set(&s, "t", (tn_create_options){ .format = "safetensors", OCP_NAMES("safetensors") });
    uint8_t *bytes = load_file(in_folder("t").text, &n);
    bytes[n - 1] = '\0';
    const char *json = (const char *)bytes + 8;
    check_entry(json, "\"fc.weight\":{\"dtype\":\"U8\",\"shape\":[2,32],");
    check_entry(json, "\"fc.weight_scale\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,4],");
    check_entry(json, "\"fc.weight_scale_2\":{\"dtype\":\"F32\",\"shape\":[],");
    check_entry(json, "\"up.weight\":{\"dtype\":\"U8\",\"shape\":[2,32],");
    check_entry(json, "\"up.weight_scale\":{\"dtype\":\"F8_E8M0\",\"shape\":[2,2],");
    check_entry(json, "\"q_scale\":{\"dtype\":\"F32\",\"shape\":[2,2],");
    check_entry(json, "\"q.zero\":{\"dtype\":\"I8\",\"shape\":[2,2],");
    free(bytes);
    check_set(&s, "t");
    drop(&s);
}

static void a_tensor_of_that_name_is_no_scale(void)
{
    static const int64_t shape[] = { 2, 64 };
    set s = { .count = 0 };
    tn_error err = { .text = "" };
    add(&s, "w", datatype_of("mxfp4"), 2, shape, false, NULL);
    add(&s, "w_scale", datatype_of("e3m3fnuz"), 2, shape, false, NULL);
    write_set(&s, "t", ways[0]);
    check_set(&s, "t");
    CHECK(try_set(&s, "t", ways[OCP_WAY], &err) == TN_ERR_ARGUMENT);
    assert_string_equal(said_of(&err), "tensor \"w_scale\": two tensors (or parts) would be called \"w_scale\"");
    drop(&s);
}

/* ---- records that lie ---- */

/* A safetensors file whose header has `to` in place of `from`. */
static uint8_t *edited(const uint8_t *bytes, size_t n, const char *from, const char *to, size_t *size)
{
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    const uint8_t *place = memmem(bytes + 8, header, from, strlen(from));
    assert_non_null(place);
    size_t before = (size_t)(place - bytes), after = n - before - strlen(from);
    *size = before + strlen(to) + after;
    uint8_t *copy = malloc(*size);
    assert_non_null(copy);
    memcpy(copy, bytes, before);
    memcpy(copy + before, to, strlen(to));
    memcpy(copy + before + strlen(to), place + strlen(from), after);
    header += strlen(to) - strlen(from);
    memcpy(copy, &header, sizeof header);
    return copy;
}

static uint8_t *write_one(const char *datatype, const int64_t *shape, bool ocp, const char *rotation,
                          size_t *n)
{
    set s = { .count = 0 };
    add(&s, "w", datatype_of(datatype), 2, shape, false, rotation);
    const tn_create_options o = { .format = "safetensors",
                                  FORMAT_OPTION("safetensors", "ocp-names", ocp ? "yes" : "no") };
    write_set(&s, "t", o);
    drop(&s);
    return load_file(in_folder("t").text, n);
}

#define Q "\\\""

static void records_that_lie_are_refused(void)
{
    static const int64_t shape[] = { 2, 64 };
    static const struct { const char *from, *to, *text; } cases[] = {
        { "_t32" Q, "_t16" Q, "its part \"scale\" does not have the type float8_e8m0 and the shape" },
        { "e2m1fnuz|e8m0_t32" Q, "e2m3fnuz|e8m0_t32" Q,
          "its part \"data\" does not have the type uint8 and the shape" },
        { "e2m1fnuz|e8m0_t32" Q, "e2m1fnuz|e8m0_t32_t32" Q, "its part \"scale\" does not have the type" },
        { "e2m1fnuz|e8m0_t32" Q, "e2m1fnuz|e8m0_t32d2" Q,
          "its tiles need rank 3 or more but the tensor has rank 2" },
        { "e2m1fnuz|e8m0_t32" Q, "e2m1fnuz" Q, "its datatype has 1 parts but found 2" },
        { "e2m1fnuz|e8m0_t32" Q, "e2m1fnuz|e8m0_t32n2m4" Q, "its datatype has 3 parts but found 2" },
        { "e2m1fnuz|e8m0_t32" Q, "e2m1fnuz|e99" Q, "its datatype \"e2m1fnuz|e99\": " },
        { "e2m1fnuz|e8m0_t32" Q, Q, "its datatype \"\": expected a number" },
        { Q "e2m1fnuz|e8m0_t32" Q, "4", "expected text" },
        { "datatype" Q, "datatypo" Q, "its scaling is not known" },
        { Q "datatype" Q ":", Q "unpacked" Q ":true," Q "datatype" Q ":",
          "its part \"data\" does not have the type uint8 and the shape" },
        { Q "datatype" Q ":", Q "unpacked" Q ":1," Q "datatype" Q ":", "expected" },
        { Q "datatype" Q ":", Q "rotation" Q ":" Q "hadamard3" Q "," Q "datatype" Q ":", "hadamard3" },
        { Q "datatype" Q ":", Q "rotation" Q ":" Q "walsh128" Q "," Q "datatype" Q ":",
          "a rotation of 128 values needs a dimension" },
        { "shape" Q ":[2,64]", "shape" Q ":[2,66]", "its part \"data\" does not have" },
        { "shape" Q ":[2,64]", "shape" Q ":[128]", "its part \"data\" does not have" },
        { "shape" Q ":[2,64]", "shape" Q ":[2,9223372036854775807]", "its part \"data\" does not have" },
        { Q "dtype" Q ":" Q "float32" Q, Q "dtype" Q ":" Q "int32" Q,
          "its values must be of a signed float type" },
        { Q "dtype" Q ":" Q "float32" Q, Q "dtype" Q ":" Q "later" Q,
          "its values must be of a signed float type" },
        { Q "parts" Q ":[" Q "data" Q "," Q "scale" Q "]", Q "parts" Q ":[" Q "scale" Q "," Q "scale" Q "]",
          "part 0 of form \"scaled\" is \"data\" but found \"scale\"" },
        { Q "parts" Q ":[" Q "data" Q "," Q "scale" Q "]", Q "parts" Q ":[" Q "data" Q "]",
          "its datatype has 2 parts but found 1" },
        { Q "parts" Q ":[" Q "data" Q "," Q "scale" Q "]", Q "parts" Q ":[" Q "data" Q "," Q "zero" Q "]",
          "its part \"w.zero\" is not in the file" },
        { Q "parts" Q ":[" Q "data" Q "," Q "scale" Q "]",
          Q "parts" Q ":[" Q "data" Q "," Q "scale" Q "," Q "scale" Q "]",
          "its part \"w.scale\" is in use by another tensor" },
        { Q "datatype" Q ":", Q "entries" Q ":[]," Q "datatype" Q ":",
          "expected 1 entries, one for each part but the first, but found 0" },
        { Q "datatype" Q ":", Q "entries" Q ":[" Q "w" Q "]," Q "datatype" Q ":",
          "its part \"w\" is a tensor of several parts" },
        { Q "datatype" Q ":", Q "entries" Q ":[" Q "v" Q "]," Q "datatype" Q ":",
          "its part \"v\" is not in the file" },
        { Q "form" Q ":" Q "scaled" Q, Q "form" Q ":" Q "dense" Q,
          "form \"dense\" has 1 parts but 2 were given" },
    };
    size_t n, size;
    uint8_t *good = write_one("mxfp4", shape, false, NULL, &n);
    CHECK(walk_bytes(good, n, NULL) == TN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        uint8_t *bad = edited(good, n, cases[i].from, cases[i].to, &size);
        tn_status status = tn_open_memory(bad, size, NULL, &f, &err);
        if (status != TN_ERR_CORRUPT || !strstr(line_of(&err), cases[i].text))
            fail_msg("case %zu: expected \"%s\" but found status %d: %s", i, cases[i].text, status, line_of(&err));
        free(bad);
    }
    free(good);
}

/* A form of a later version that has a datatype is listed and kept. */
static void a_form_of_a_later_version_keeps_its_datatype(void)
{
    static const int64_t shape[] = { 2, 64 };
    size_t n, size;
    tn_file *f = NULL;
    uint8_t *good = write_one("mxfp4", shape, false, NULL, &n);
    uint8_t *later = edited(good, n, Q "form" Q ":" Q "scaled" Q, Q "form" Q ":" Q "rescaled" Q, &size);
    uint8_t *unknown = edited(later, size, "e2m1fnuz|e8m0_t32" Q, "posit4|e8m0_t32" Q, &n);
    CHECK(tn_open_memory(unknown, n, NULL, &f, NULL) == TN_OK);
    for (int i = 0; i < 2; i++) {
        const tn_tensor *t = tn_file_find(f, "w");
        CHECK(t && t->form == TN_FORM_UNKNOWN && strcmp(t->form_text, "rescaled") == 0 && t->nparts == 2 &&
              t->scaling);
        assert_string_equal(t->scaling->datatype, "posit4|e8m0_t32");
        if (i == 0) {
            CHECK(tn_convert(f, in_folder("u.zt").text, NULL, NULL, NULL) == TN_OK);
            tn_close(f);
            f = open_file("u.zt");
        }
    }
    tn_close(f);
    free(unknown);
    free(later);
    free(good);
}

/* Its parts were held against nothing: what it says of a datatype is not believed. */
static void a_form_of_a_later_version_has_no_values(void)
{
    static const int64_t shape[] = { 2, 64 };
    size_t n, size;
    tn_file *f = NULL;
    tn_view *values = NULL;
    tn_error err = { .text = "" };
    uint8_t *good = write_one("mxfp4", shape, false, NULL, &n);
    uint8_t *later = edited(good, n, Q "form" Q ":" Q "scaled" Q, Q "form" Q ":" Q "rescaled" Q, &size);
    uint8_t *larger = edited(later, size, "shape" Q ":[2,64]", "shape" Q ":[2000000,64]", &n);
    CHECK(tn_open_memory(larger, n, NULL, &f, NULL) == TN_OK);
    CHECK(open_values(f, tn_file_find(f, "w"), &values, &err) == TN_ERR_UNSUPPORTED);
    const tn_rule cast = { "cast", "f32" };
    const tn_convert_options options = { .size = sizeof options, .rules = &cast, .nrules = 1 };
    CHECK(tn_convert(f, in_folder("v.zt").text, &options, NULL, &err) == TN_ERR_UNSUPPORTED);
    CHECK(strstr(line_of(&err), "found form \"rescaled\"") != NULL);
    tn_close(f);
    free(larger);
    free(later);
    free(good);
}

/* No message is longer than others. */
static void a_datatype_of_a_megabyte_is_refused(void)
{
    enum { LENGTH = 1 << 20 };
    static const int64_t shape[] = { 2, 64 };
    static const char *const begins[] = { "e2m1fnuz|e8m0_", "cb42[", "int" };
    char *text = malloc(LENGTH + 1);
    assert_non_null(text);
    size_t n, size;
    uint8_t *good = write_one("mxfp4", shape, false, NULL, &n);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        tn_file *f = NULL;
        tn_error err = { .text = "" };
        memset(text, '1', LENGTH);
        memcpy(text, begins[i], strlen(begins[i]));
        memcpy(text + LENGTH - 2, Q, 3);
        uint8_t *bad = edited(good, n, "e2m1fnuz|e8m0_t32" Q, text, &size);
        CHECK(tn_open_memory(bad, size, NULL, &f, &err) == TN_ERR_CORRUPT &&
              strlen(err.text) < sizeof err.text);
        CHECK(strstr(line_of(&err), "its datatype \""));
        free(bad);
    }
    free(good);
    free(text);
}

static void every_truncation_and_flip_of_a_file_is_handled(void)
{
    static const int64_t shape[] = { 2, 16 };
    static const struct { const char *datatype; bool ocp; } cases[] = {
        { "cb31[0.5:1:1.5;1:2:3]_e2m3fnuz|e8m0_t8s4", false }, { "nvfp4", true },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        size_t n;
        uint8_t *good = write_one(cases[k].datatype, shape, cases[k].ocp, "hadamard8:3", &n);
        for (size_t cut = 0; cut < n; cut++) {
            uint8_t *copy = exact_copy(good, cut);
            CHECK(walk_bytes(copy, cut, "safetensors") != TN_OK);
            free(copy);
        }
        for (size_t i = 0; i < n; i++) {
            uint8_t *copy = exact_copy(good, n);
            copy[i] ^= (uint8_t)(1u << i % 8);
            walk_bytes(copy, n, "safetensors");
            copy[i] = good[i] ^ 0x15;           /* another letter or digit */
            walk_bytes(copy, n, "safetensors");
            free(copy);
        }
        free(good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(tensors_of_every_datatype_come_back_from_every_container),
        IN_FOLDER(they_go_from_container_to_container_unchanged),
        IN_FOLDER(shards_have_all_parts_of_a_tensor),
        IN_FOLDER(containers_without_a_place_for_them_refuse),
        IN_FOLDER(names_of_other_software_need_names_of_parts),
        IN_FOLDER(parts_that_do_not_fit_the_datatype_are_not_written),
        IN_FOLDER(other_software_sees_scales_under_the_names_it_knows),
        IN_FOLDER(a_tensor_of_that_name_is_no_scale),
        IN_FOLDER(records_that_lie_are_refused),
        IN_FOLDER(a_form_of_a_later_version_keeps_its_datatype),
        IN_FOLDER(a_form_of_a_later_version_has_no_values),
        IN_FOLDER(a_datatype_of_a_megabyte_is_refused),
        IN_FOLDER(every_truncation_and_flip_of_a_file_is_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
