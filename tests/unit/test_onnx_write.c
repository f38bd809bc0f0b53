/* ONNX: the graph of a model with other data. */
#include "support.h"
#include "format_option.h"

#include "bytes/proto.h"
#include "files.h"
#include "folder.h"

#define ONNX TEST_GOLDEN "/onnx"

static const char *const models[] = {
    "constants.onnx", "external_many.onnx", "external_one.onnx", "external_tied.onnx", "functions.onnx",
    "odd_shapes.onnx", "ort_quantized.onnx", "plain.onnx", "qdq.onnx", "raw_types.onnx", "sparse.onnx",
    "subgraphs.onnx", "torch_1.4.0.onnx", "torch_1.6.0.onnx", "torch_2.1.2.onnx", "torch_2.15.0.onnx",
    "torch_2.15.0_external.onnx", "typed_fields.onnx", "wire_variants.onnx",
};
enum { MODELS = sizeof models / sizeof *models };

/* ---- converting ---- */

typedef struct wish {
    const char *graph;          /* or NULL */
    bool        external, replace, drop_metadata;
    uint64_t    align;
    const char *only;           /* or NULL */
    unsigned    jobs;
} wish;

static tn_status convert(const tn_file *f, const char *out, wish want, tn_error *err)
{
    const tn_format_option options[] = {
        { "onnx", "external", want.external ? "yes" : "no" }, { "onnx", "graph", want.graph },
    };
    const tn_create_options create = {
        .size = sizeof create, .replace = want.replace, .drop_metadata = want.drop_metadata,
        .align = want.align, .jobs = want.jobs, .format_options = options,
        .nformat_options = want.graph ? 2 : 1,
    };
    const tn_convert_options how = { .size = sizeof how, .create = &create, .only = &want.only,
                                     .nonly = want.only ? 1 : 0 };
    return tn_convert(f, in_folder(out).text, &how, NULL, err);
}

/* To something else than a model. */
static void convert_plainly(const tn_file *f, const char *out, const char *only)
{
    tn_error err = { .text = "" };
    const tn_convert_options how = { .size = sizeof how, .only = &only, .nonly = only ? 1 : 0 };
    if (tn_convert(f, in_folder(out).text, &how, NULL, &err))
        fail_msg("%s: %s", out, line_of(&err));
}

static tn_file *open_made(const char *name)
{
    return open_at(folder, name, NULL, TN_IO_AUTO);
}

static void check_ok(tn_status status, const char *name, const tn_error *err)
{
    if (status)
        fail_msg("%s: %s", name, line_of(err));
}

/* odd_shapes.onnx has strings, which are not read. */
static const char *readable(const char *model)
{
    return strcmp(model, "odd_shapes.onnx") == 0 ? "!strings" : NULL;
}

/* All tensors that are read, part by part. */
static void check_same_tensors(const tn_file *a, const tn_file *b)
{
    CHECK(tn_file_count(a) == tn_file_count(b));
    for (size_t i = 0; i < tn_file_count(a); i++) {
        const tn_tensor *x = tn_file_tensor(a, i), *y = tn_file_tensor(b, i);
        assert_string_equal(x->name, y->name);
        CHECK(x->dtype == y->dtype && x->form == y->form && x->nparts == y->nparts && x->rank == y->rank);
        CHECK(!x->rank || memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0);
        for (uint32_t k = 0; k < x->nparts && x->dtype != TN_UNKNOWN; k++) {
            uint8_t *p = read_part(a, &x->parts[k]), *q = read_part(b, &y->parts[k]);
            CHECK(x->parts[k].nbytes == y->parts[k].nbytes && memcmp(p, q, x->parts[k].nbytes) == 0);
            free(p);
            free(q);
        }
    }
}

/* ---- what stays ---- */

/* A model as text: its fields from the outermost to the innermost, but for the data of tensors.  Messages are
 * found by guessing: what can be one is one, in both models alike. */
static bool is_data_field(const tn_proto_field *f)
{
    static const uint32_t data[] = { 4, 5, 7, 9, 10, 11, 13, 14 };
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        if (f->number == data[i])
            return true;
    return false;
}

static const tn_proto_rule no_rules[] = { { NULL, 0, false } };
static const tn_proto_kind any_kind = TN_PROTO_KIND("message", no_rules);

/* The messages that lead to tensors, by the numbers of their fields. */
typedef enum level { MODEL, GRAPH, NODE, ATTRIBUTE, TENSOR, SPARSE, FUNCTION, OTHER } level;

static level level_of(level outer, uint32_t number)
{
    static const struct { level outer; uint32_t number; level inner; } table[] = {
        { MODEL, 7, GRAPH }, { MODEL, 25, FUNCTION }, { GRAPH, 1, NODE }, { GRAPH, 5, TENSOR },
        { GRAPH, 15, SPARSE }, { NODE, 5, ATTRIBUTE }, { ATTRIBUTE, 5, TENSOR }, { ATTRIBUTE, 6, GRAPH },
        { ATTRIBUTE, 11, GRAPH }, { ATTRIBUTE, 22, SPARSE }, { SPARSE, 1, TENSOR }, { SPARSE, 2, TENSOR },
        { FUNCTION, 7, NODE },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].outer == outer && table[i].number == number)
            return table[i].inner;
    return OTHER;
}

static void put_rest(tn_buf *out, tn_proto p, level here, const uint8_t *bytes)
{
    tn_proto_field f;
    while (tn_proto_next(&p, &f)) {
        level inner = level_of(here, f.number);
        if (here == TENSOR && is_data_field(&f))
            continue;
        tn_buf_put(out, bytes + f.at, (size_t)(f.value_at - f.at));             /* the tag */
        if (f.wire == TN_WIRE_LENGTH && inner != OTHER)
            put_rest(out, tn_proto_enter(&p, &f, &any_kind), inner, bytes);
        else
            tn_buf_put(out, bytes + f.value_at, (size_t)(p.pos - f.value_at));
    }
}

/* All bytes of a model but lengths of messages around data, and that data. */
static tn_buf rest_of(const char *path)
{
    size_t n;
    tn_error err = { .text = "" };
    tn_buf out = { 0 };
    tn_source *source;
    uint8_t *bytes = load_file(path, &n);
    tn_proto_input *in = calloc(1, sizeof *in);
    assert_non_null(in);
    CHECK(tn_source_open_memory(bytes, n, &source, NULL) == TN_OK);
    in->source = source;
    in->err = &err;
    put_rest(&out, tn_proto_open(in, &any_kind), MODEL, bytes);
    if (in->status)
        fail_msg("%s: %s", path, line_of(&err));
    tn_source_close(source);
    free(in);
    free(bytes);
    return out;
}

static void check_same_rest(const char *a, const char *b)
{
    tn_buf x = rest_of(a), y = rest_of(b);
    if (x.size != y.size || memcmp(x.data, y.data, x.size) != 0)
        fail_msg("%s and %s differ in more than data", a, b);
    tn_buf_free(&x);
    tn_buf_free(&y);
}

/* ---- every model ---- */

static void check_round_trip(const char *name, bool external, unsigned jobs)
{
    tn_error err = { .text = "" };
    char path[PATH_MAX];
    snprintf(path, sizeof path, ONNX "/%s", name);
    tn_file *f = open_at(ONNX, name, NULL, TN_IO_AUTO);
    const wish want = { .external = external, .only = readable(name), .jobs = jobs, .replace = true };
    check_ok(convert(f, "out.onnx", want, &err), name, &err);
    tn_file *made = open_made("out.onnx");
    check_same_tensors(f, made);
    check_same_rest(path, in_folder("out.onnx").text);
    tn_close(made);
    tn_close(f);
}

static void every_model_is_written_again_and_all_else_stays(void)
{
    for (size_t i = 0; i < MODELS; i++)
        for (unsigned jobs = 1; jobs <= 3; jobs += 2) {
            check_round_trip(models[i], false, jobs);
            check_round_trip(models[i], true, jobs);
        }
}

static void the_same_bytes_are_written_again(void)
{
    for (size_t i = 0; i < MODELS; i++) {
        tn_error err = { .text = "" };
        tn_file *f = open_at(ONNX, models[i], NULL, TN_IO_AUTO);
        const wish want = { .only = readable(models[i]), .replace = true };
        check_ok(convert(f, "one.onnx", want, &err), models[i], &err);
        tn_close(f);
        f = open_made("one.onnx");
        check_ok(convert(f, "two.onnx", want, &err), models[i], &err);
        tn_close(f);
        check_same_files(in_folder("one.onnx").text, in_folder("two.onnx").text);
    }
}

/* Through another format and back. */
static void new_data_goes_into_the_graph_of_a_model(void)
{
    for (size_t i = 0; i < MODELS; i++) {
        tn_error err = { .text = "" };
        char path[PATH_MAX];
        snprintf(path, sizeof path, ONNX "/%s", models[i]);
        tn_file *f = open_at(ONNX, models[i], NULL, TN_IO_AUTO);
        convert_plainly(f, "new.zt", readable(models[i]));
        tn_file *new = open_made("new.zt");
        check_ok(convert(new, "back.onnx", (wish){ .graph = path, .replace = true }, &err), models[i], &err);
        tn_file *back = open_made("back.onnx");
        check_same_tensors(f, back);
        check_same_rest(path, in_folder("back.onnx").text);
        tn_close(back);
        tn_close(new);
        tn_close(f);
        CHECK(unlink(in_folder("new.zt").text) == 0);
    }
}

/* ---- data in another file ---- */

/* A model of one graph with float32 tensors of so many elements, all of them 0, in memory. */
static void put_model(const char *name, const uint64_t *counts, size_t n)
{
    tn_buf graph = { 0 }, model = { 0 };
    for (size_t i = 0; i < n; i++) {
        tn_buf t = { 0 };
        char text[24];
        snprintf(text, sizeof text, "t%zu", i);
        tn_proto_put_tag(&t, 1, TN_WIRE_VARINT);
        tn_proto_put_varint(&t, counts[i]);
        tn_proto_put_tag(&t, 2, TN_WIRE_VARINT);
        tn_proto_put_varint(&t, 1);
        tn_proto_put_text(&t, 8, text);
        tn_proto_put_tag(&t, 9, TN_WIRE_LENGTH);
        tn_proto_put_varint(&t, counts[i] * 4);
        tn_buf_fill(&t, (uint8_t)(i + 1), counts[i] * 4);
        tn_proto_put_tag(&graph, 5, TN_WIRE_LENGTH);
        tn_proto_put_varint(&graph, t.size);
        tn_buf_put(&graph, t.data, t.size);
        tn_buf_free(&t);
    }
    tn_proto_put_tag(&model, 1, TN_WIRE_VARINT);
    tn_proto_put_varint(&model, 8);
    tn_proto_put_tag(&model, 7, TN_WIRE_LENGTH);
    tn_proto_put_varint(&model, graph.size);
    tn_buf_put(&model, graph.data, graph.size);
    CHECK(!model.bad);
    put_bytes(name, model.data, model.size);
    tn_buf_free(&graph);
    tn_buf_free(&model);
}

static const uint64_t sizes[] = { 255, 256, 257, 300000, 1, 262144, 262143, 1000 };
enum { SIZES = sizeof sizes / sizeof *sizes };

static void check_places(const tn_file *f, uint64_t least)
{
    for (size_t i = 0; i < SIZES; i++) {
        tn_stored_info info = { .size = sizeof info };
        uint64_t n = sizes[i] * 4, align = n >= 1 << 20 ? 4096 : 64;
        align = align > least ? align : least;
        CHECK(tn_part_stored(NULL, &tn_file_tensor(f, i)->parts[0], &info) == TN_OK);
        CHECK(info.shard == (n >= 1024 ? 1 : 0));
        CHECK(n < 1024 || info.offset % align == 0);
    }
}

static void data_in_another_file_is_aligned(void)
{
    tn_error err = { .text = "" };
    put_model("m.onnx", sizes, SIZES);
    tn_file *f = open_made("m.onnx");
    check_ok(convert(f, "out.onnx", (wish){ .external = true }, &err), "m.onnx", &err);
    tn_file *made = open_made("out.onnx");
    check_same_tensors(f, made);
    check_places(made, 1);
    assert_string_equal(tn_file_shard_name(made, 1), in_folder("out.onnx.data").text);
    tn_close(made);
    check_ok(convert(f, "wide.onnx", (wish){ .external = true, .align = 16384 }, &err), "m.onnx", &err);
    made = open_made("wide.onnx");
    check_places(made, 16384);
    tn_close(made);
    CHECK(convert(f, "no.onnx", (wish){ .align = 64 }, &err) == TN_ERR_ARGUMENT);
    CHECK(err.reason == TN_REASON_EXTERNAL);
    tn_close(f);
}

/* The data has a name of its own, and the old one goes. */
static void a_model_with_data_beside_it_is_replaced_whole(void)
{
    tn_error err = { .text = "" };
    put_model("m.onnx", sizes, SIZES);
    tn_file *f = open_made("m.onnx");
    check_ok(convert(f, "out.onnx", (wish){ .external = true }, &err), "m.onnx", &err);
    CHECK(convert(f, "out.onnx", (wish){ .external = true }, &err) == TN_ERR_EXISTS);
    CHECK(err.reason == TN_REASON_REPLACE);
    check_ok(convert(f, "out.onnx", (wish){ .external = true, .replace = true }, &err), "m.onnx", &err);
    tn_file *made = open_made("out.onnx");
    check_same_tensors(f, made);
    const char *data = tn_file_shard_name(made, 1);
    CHECK(strstr(data, "/out-") && strstr(data, ".onnx.data") && strlen(strstr(data, "/out-")) == 23);
    CHECK(access(in_folder("out.onnx.data").text, F_OK) != 0);
    /* onto itself, and into one file */
    check_ok(convert(made, "out.onnx", (wish){ .external = true, .replace = true }, &err), "out.onnx", &err);
    tn_close(made);
    made = open_made("out.onnx");
    check_same_tensors(f, made);
    check_ok(convert(made, "out.onnx", (wish){ .replace = true }, &err), "out.onnx", &err);
    tn_close(made);
    made = open_made("out.onnx");
    check_same_tensors(f, made);
    CHECK(tn_file_shards(made) == 1);
    tn_close(made);
    tn_close(f);
    CHECK(count_entries(folder) == 2);
}

static void a_file_that_is_no_data_of_the_model_stays(void)
{
    tn_error err = { .text = "" };
    static const uint64_t one[] = { 1000 };
    put_model("m.onnx", one, 1);
    put_file("out.onnx", "no model");
    put_file("other.bin", "x");
    tn_file *f = open_made("m.onnx");
    check_ok(convert(f, "out.onnx", (wish){ .replace = true }, &err), "m.onnx", &err);
    CHECK(file_is("other.bin", "x"));
    tn_close(f);
}

/* ---- what is refused ---- */

static void check_refused(const tn_file *f, wish want, tn_status status, const char *text)
{
    tn_error err = { .text = "" };
    CHECK(convert(f, "refused.onnx", want, &err) == status);
    if (!strstr(line_of(&err), text))
        fail_msg("expected %s\nfound    %s", text, line_of(&err));
    CHECK(access(in_folder("refused.onnx").text, F_OK) != 0);
}

static tn_file *save_one(const char *name, tn_dtype dtype, int64_t count, const char *meta)
{
    tn_writer *w;
    static const float zeros[16];
    CHECK(tn_create(in_folder("new.zt").text, &(tn_create_options){ .size = sizeof(tn_create_options),
                                                                    .replace = true }, &w, NULL) == TN_OK);
    if (meta)
        CHECK(tn_writer_add_meta(w, &(tn_meta){ .key = meta, .text = "text" }, NULL) == TN_OK);
    CHECK(tn_writer_add_array(w, name, dtype, 1, &count, zeros, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    return open_made("new.zt");
}

static void what_does_not_fit_the_graph_is_refused(void)
{
    static const uint64_t one[] = { 4 };
    put_model("m.onnx", one, 1);
    const full_path graph = in_folder("m.onnx");
    const wish want = { .graph = graph.text };
    const struct { const char *name; tn_dtype dtype; int64_t count; tn_status status; const char *text; } cases[] = {
        { "t0", TN_FLOAT32, 4, TN_OK, "" },
        { "t0", TN_FLOAT32, 5, TN_ERR_UNSUPPORTED,
          "tensor \"t0\": the graph needs float32 [4] but found float32 [5]" },
        { "t0", TN_INT32, 4, TN_ERR_UNSUPPORTED,
          "tensor \"t0\": the graph needs float32 [4] but found int32 [4]" },
        { "t1", TN_FLOAT32, 4, TN_ERR_UNSUPPORTED,
          "tensor \"t0\": the graph needs it but it is not in the input" },
    };
    for (size_t i = 1; i < sizeof cases / sizeof *cases; i++) {
        tn_file *f = save_one(cases[i].name, cases[i].dtype, cases[i].count, NULL);
        check_refused(f, want, cases[i].status, cases[i].text);
        tn_close(f);
    }
    tn_file *f = save_one("t0", TN_FLOAT32, 4, NULL);
    check_refused(f, (wish){ .graph = NULL }, TN_ERR_ARGUMENT, "name the one whose graph they are for (graph)");
    tn_error err = { .text = "" };
    check_ok(convert(f, "good.onnx", want, &err), "good", &err);
    tn_close(f);
    f = save_one("t0", TN_FLOAT32, 4, "note");
    check_refused(f, want, TN_ERR_LOSS, "metadata \"note\" is not that of the model");
    check_ok(convert(f, "dropped.onnx", (wish){ .graph = graph.text, .drop_metadata = true }, &err), "dropped",
             &err);
    tn_close(f);
}

static void tensors_that_the_graph_does_not_have_are_refused(void)
{
    static const uint64_t one[] = { 4 }, two[] = { 4, 4 };
    put_model("m.onnx", one, 1);
    put_model("more.onnx", two, 2);
    const full_path graph = in_folder("m.onnx");
    tn_file *f = open_made("more.onnx");
    check_refused(f, (wish){ .graph = graph.text }, TN_ERR_UNSUPPORTED,
                  "tensor \"t1\": the graph has no tensor of this name (only)");
    tn_error err = { .text = "" };
    check_ok(convert(f, "part.onnx", (wish){ .graph = graph.text, .only = "t0" }, &err), "part", &err);
    tn_close(f);
}

static void a_graph_that_is_no_model_is_refused(void)
{
    put_file("text.onnx", "this is no model");
    const full_path graph = in_folder("text.onnx"), none = in_folder("none.onnx");
    tn_file *f = save_one("t0", TN_FLOAT32, 4, NULL);
    check_refused(f, (wish){ .graph = graph.text }, TN_ERR_UNSUPPORTED, "text.onnx: byte 0: ModelProto has");
    check_refused(f, (wish){ .graph = none.text }, TN_ERR_IO, "none.onnx: cannot open: No such file");
    tn_close(f);
}

/* A tensor of another operator is not listed, so its data would stay behind. */
static void data_of_attributes_in_other_files_is_refused(void)
{
    tn_buf model = { 0 }, graph = { 0 }, node = { 0 }, attribute = { 0 }, t = { 0 };
    tn_proto_put_tag(&t, 14, TN_WIRE_VARINT);
    tn_proto_put_varint(&t, 1);
    const struct { tn_buf *outer; uint32_t number; tn_buf *inner; } nest[] = {
        { &attribute, 5, &t }, { &node, 5, &attribute }, { &graph, 1, &node }, { &model, 7, &graph },
    };
    tn_proto_put_tag(&model, 1, TN_WIRE_VARINT);
    tn_proto_put_varint(&model, 8);
    for (size_t i = 0; i < sizeof nest / sizeof *nest; i++) {
        tn_proto_put_tag(nest[i].outer, nest[i].number, TN_WIRE_LENGTH);
        tn_proto_put_varint(nest[i].outer, nest[i].inner->size);
        tn_buf_put(nest[i].outer, nest[i].inner->data, nest[i].inner->size);
        tn_buf_free(nest[i].inner);
    }
    put_bytes("m.onnx", model.data, model.size);
    tn_buf_free(&model);
    tn_file *f = open_made("m.onnx");
    check_refused(f, (wish){ .graph = NULL }, TN_ERR_UNSUPPORTED,
                  "byte 8 of the model: a tensor that is not read has data in another file");
    tn_close(f);
}

/* 2 GiB of data as a hole of a file, which is never read. */
static void a_model_of_2_gib_needs_another_file(void)
{
    enum { COUNT = 1 << 29 };
    tn_buf model = { 0 }, graph = { 0 }, t = { 0 }, entry = { 0 };
    tn_proto_put_tag(&t, 1, TN_WIRE_VARINT);
    tn_proto_put_varint(&t, COUNT);
    tn_proto_put_tag(&t, 2, TN_WIRE_VARINT);
    tn_proto_put_varint(&t, 1);
    tn_proto_put_text(&t, 8, "big");
    tn_proto_put_text(&entry, 1, "location");
    tn_proto_put_text(&entry, 2, "hole.bin");
    tn_proto_put_tag(&t, 13, TN_WIRE_LENGTH);
    tn_proto_put_varint(&t, entry.size);
    tn_buf_put(&t, entry.data, entry.size);
    tn_proto_put_tag(&t, 14, TN_WIRE_VARINT);
    tn_proto_put_varint(&t, 1);
    tn_proto_put_tag(&graph, 5, TN_WIRE_LENGTH);
    tn_proto_put_varint(&graph, t.size);
    tn_buf_put(&graph, t.data, t.size);
    tn_proto_put_tag(&model, 1, TN_WIRE_VARINT);
    tn_proto_put_varint(&model, 8);
    tn_proto_put_tag(&model, 7, TN_WIRE_LENGTH);
    tn_proto_put_varint(&model, graph.size);
    tn_buf_put(&model, graph.data, graph.size);
    put_bytes("m.onnx", model.data, model.size);
    put_bytes("hole.bin", "", 0);
    CHECK(truncate(in_folder("hole.bin").text, (off_t)COUNT * 4) == 0);
    tn_file *f = open_made("m.onnx");
    check_refused(f, (wish){ .external = false }, TN_ERR_LIMIT,
                  "the model would take more than the 2147483647 bytes that protobuf reads (external)");
    const tn_format_option external = { "onnx", "external", "yes" };
    const tn_create_options create = { .size = sizeof create, .format_options = &external, .nformat_options = 1 };
    const tn_convert_options dry = { .size = sizeof dry, .create = &create, .dry_run = true };
    tn_convert_result result;
    CHECK(tn_convert(f, in_folder("out.onnx").text, &dry, &result, NULL) == TN_OK);
    CHECK(result.bytes_out > (uint64_t)COUNT * 4 && result.bytes_out < (uint64_t)COUNT * 4 + 1000);
    tn_close(f);
    tn_buf_free(&model);
    tn_buf_free(&graph);
    tn_buf_free(&t);
    tn_buf_free(&entry);
}

/* ---- pieces ---- */

static void a_plan_makes_the_same_bytes_piece_by_piece(void)
{
    tn_error err = { .text = "" };
    const tn_format_option external = { "onnx", "external", "yes" };
    put_model("m.onnx", sizes, SIZES);
    tn_file *f = open_made("m.onnx");
    for (size_t n = 0; n < 2; n++) {
        const tn_create_options create = { .size = sizeof create, .format_options = &external,
                                           .nformat_options = n };
        const tn_convert_options how = { .size = sizeof how, .create = &create };
        tn_plan *plan;
        check_ok(convert(f, n ? "a.onnx" : "c.onnx", (wish){ .external = n == 1 }, &err), "whole", &err);
        check_ok(tn_plan_make(f, in_folder(n ? "b.onnx" : "d.onnx").text, &how, &plan, &err), "plan", &err);
        for (size_t i = tn_plan_count(plan); i-- > 0;)
            check_ok(tn_plan_run(plan, i, &err), "piece", &err);
        check_ok(tn_plan_finish(plan, NULL, &err), "plan", &err);
        tn_plan_free(plan);
    }
    check_same_files(in_folder("c.onnx").text, in_folder("d.onnx").text);
    check_same_files(in_folder("a.onnx.data").text, in_folder("b.onnx.data").text);
    tn_close(f);
}

#define TEST_IN_FOLDER(function) \
    { #function, (CMUnitTestFunction)(void (*)(void))function, make_folder, remove_folder, NULL }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(every_model_is_written_again_and_all_else_stays),
        TEST_IN_FOLDER(the_same_bytes_are_written_again),
        TEST_IN_FOLDER(new_data_goes_into_the_graph_of_a_model),
        TEST_IN_FOLDER(data_in_another_file_is_aligned),
        TEST_IN_FOLDER(a_model_with_data_beside_it_is_replaced_whole),
        TEST_IN_FOLDER(a_file_that_is_no_data_of_the_model_stays),
        TEST_IN_FOLDER(what_does_not_fit_the_graph_is_refused),
        TEST_IN_FOLDER(tensors_that_the_graph_does_not_have_are_refused),
        TEST_IN_FOLDER(a_graph_that_is_no_model_is_refused),
        TEST_IN_FOLDER(data_of_attributes_in_other_files_is_refused),
        TEST_IN_FOLDER(a_model_of_2_gib_needs_another_file),
        TEST_IN_FOLDER(a_plan_makes_the_same_bytes_piece_by_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
