/* Maps between the names of Hugging Face and GGUF: names, rows of heads, experts, numbers that are added. */
#include "support.h"

#include "files.h"
#include "make.h"

#include "pipeline/map.h"

#include <tenon/convert.h>

static tn_status convert(const char *in, const char *out, const char *map, const char *metadata_from,
                         tn_error *err)
{
    const tn_create_options create = { .size = sizeof create, .replace = true };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .map = map,
                                   .metadata_from = metadata_from };
    tn_file *file = open_file(in);
    tn_status status = tn_convert(file, in_folder(out).text, &o, NULL, err);
    tn_close(file);
    return status;
}

static void must_map(const char *in, const char *out, const char *map)
{
    tn_error err = { .text = "" };
    if (convert(in, out, map, NULL, &err))
        fail_msg("%s by %s: %s", in, map, line_of(&err));
}

static void write_config(const char *text)
{
    FILE *f = fopen(in_folder("config.json").text, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static const float *floats_of(const tn_file *file, const char *name, size_t n)
{
    const tn_tensor *t = tn_file_find(file, name);
    if (!t || t->dtype != TN_FLOAT32 || t->parts[0].nbytes != n * sizeof(float))
        fail_msg("%s is not there, or another", name);
    return t->parts[0].data;
}

enum { HEADS = 4, KEYS = 2, SIZE = 6, COLUMNS = 3, EXPERTS = 11 };

static void make_llama(void)
{
    static float q[HEADS * SIZE * COLUMNS], k[KEYS * SIZE], expert[EXPERTS][2];
    static char names[EXPERTS][80];
    simple t[EXPERTS + 3] = {
        { .name = "model.layers.3.self_attn.q_proj.weight", .dtype = TN_FLOAT32, .rank = 2,
          .shape = { HEADS * SIZE, COLUMNS }, .data = q },
        { .name = "model.layers.3.self_attn.k_proj.bias", .dtype = TN_FLOAT32, .rank = 1,
          .shape = { KEYS * SIZE }, .data = k },
        { .name = "model.layers.12.self_attn.rotary_emb.inv_freq", .dtype = TN_FLOAT32, .rank = 1,
          .shape = { 2 }, .data = k },
    };
    for (size_t i = 0; i < sizeof q / sizeof *q; i++)
        q[i] = (float)i;
    for (size_t i = 0; i < sizeof k / sizeof *k; i++)
        k[i] = (float)i;
    for (int i = 0; i < EXPERTS; i++) {
        snprintf(names[i], sizeof names[i], "model.layers.3.block_sparse_moe.experts.%d.w1.weight", i);
        expert[i][0] = expert[i][1] = (float)i;
        t[3 + i] = (simple){ .name = names[i], .dtype = TN_FLOAT32, .rank = 1, .shape = { 2 }, .data = expert[i] };
    }
    write_file("model.safetensors", (tn_create_options){ .replace = true }, t, EXPERTS + 3);
}

static void llama_goes_there_and_back(void)
{
    make_llama();
    write_config("{\"model_type\":\"llama\",\"text_config\":{\"num_attention_heads\":4,\"num_key_value_heads\":2}}");
    must_map("model.safetensors", "mapped.safetensors", "llama");
    tn_file *file = open_file("mapped.safetensors");
    CHECK(tn_file_count(file) == 3);
    const float *q = floats_of(file, "blk.3.attn_q.weight", HEADS * SIZE * COLUMNS),
                *k = floats_of(file, "blk.3.attn_k.bias", KEYS * SIZE),
                *experts = floats_of(file, "blk.3.ffn_gate_exps.weight", EXPERTS * 2);
    for (int h = 0; h < HEADS; h++)
        for (int half = 0; half < 2; half++)
            for (int i = 0; i < SIZE / 2; i++) {
                int from = h * SIZE + half * SIZE / 2 + i, to = h * SIZE + 2 * i + half;
                for (int c = 0; c < COLUMNS; c++)
                    CHECK(q[to * COLUMNS + c] == (float)(from * COLUMNS + c));
                CHECK(h >= KEYS || k[to] == (float)from);
            }
    for (int i = 0; i < EXPERTS; i++)
        CHECK(experts[2 * i] == (float)i);
    tn_close(file);
    must_map("mapped.safetensors", "back.safetensors", "llama");
    tn_file *a = open_file("model.safetensors"), *b = open_file("back.safetensors");
    CHECK(tn_file_count(b) == EXPERTS + 2);
    for (size_t i = 0; i < tn_file_count(b); i++) {
        const tn_tensor *t = tn_file_tensor(b, i), *old = tn_file_find(a, t->name);
        CHECK(old && old->parts[0].nbytes == t->parts[0].nbytes &&
              memcmp(old->parts[0].data, t->parts[0].data, t->parts[0].nbytes) == 0);
    }
    tn_close(a);
    tn_close(b);
}

static void gemma_adds_one(void)
{
    static const uint16_t norm[] = { 0x3f80, 0xbf00, 0 };       /* 1, -0.5, 0 */
    const simple t[] = { { .name = "model.norm.weight", .dtype = TN_BFLOAT16, .rank = 1, .shape = { 3 },
                           .data = norm },
                         { .name = "model.layers.0.pre_feedforward_layernorm.weight", .dtype = TN_BFLOAT16,
                           .rank = 1, .shape = { 3 }, .data = norm } };
    write_file("model.safetensors", (tn_create_options){ 0 }, t, 2);
    must_map("model.safetensors", "mapped.safetensors", "gemma2");
    tn_file *file = open_file("mapped.safetensors");
    const float *x = floats_of(file, "output_norm.weight", 3), *y = floats_of(file, "blk.0.ffn_norm.weight", 3);
    CHECK(x[0] == 2 && x[1] == 0.5f && x[2] == 1 && memcmp(x, y, 3 * sizeof *x) == 0);
    tn_close(file);
    must_map("mapped.safetensors", "back.safetensors", "gemma2");
    file = open_file("back.safetensors");
    x = floats_of(file, "model.norm.weight", 3);
    CHECK(x[0] == 1 && x[1] == -0.5f && x[2] == 0);
    tn_close(file);
}

/* Matrices of GPT-2 lie the other way round; names come in two spellings. */
static void gpt2_is_transposed(void)
{
    static const float matrix[] = { 1, 2, 3, 4, 5, 6 }, bias[] = { 7, 8, 9 };
    for (int spelling = 0; spelling < 2; spelling++) {
        const simple t[] = {
            { .name = spelling ? "transformer.h.1.mlp.c_fc.weight" : "h.1.mlp.c_fc.weight",
              .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 3 }, .data = matrix },
            { .name = spelling ? "transformer.h.1.mlp.c_fc.bias" : "h.1.mlp.c_fc.bias",
              .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = bias },
            { .name = "h.1.attn.masked_bias", .dtype = TN_FLOAT32, .rank = 0, .data = bias },
        };
        write_file("model.safetensors", (tn_create_options){ .replace = true }, t, 3);
        must_map("model.safetensors", "mapped.safetensors", "gpt2");
        tn_file *file = open_file("mapped.safetensors");
        CHECK(tn_file_count(file) == 2 && tn_file_find(file, "blk.1.ffn_up.weight")->shape[0] == 3);
        const float *w = floats_of(file, "blk.1.ffn_up.weight", 6);
        for (int i = 0; i < 6; i++)
            CHECK(w[i] == matrix[i % 2 * 3 + i / 2]);
        CHECK(memcmp(floats_of(file, "blk.1.ffn_up.bias", 3), bias, sizeof bias) == 0);
        tn_close(file);
        must_map("mapped.safetensors", "back.safetensors", "gpt2");
        file = open_file("back.safetensors");
        CHECK(memcmp(floats_of(file, "transformer.h.1.mlp.c_fc.weight", 6), matrix, sizeof matrix) == 0);
        tn_close(file);
    }
}

/* A row of each kind of the other tables: norms, what is fused, experts. */
static void other_architectures_have_their_own_names(void)
{
    static const float x[] = { 1, 2, 3, 4 };
    static const struct { const char *map, *from, *to; float first; } cases[] = {
        { "nemotron", "model.layers.7.input_layernorm.weight", "blk.7.attn_norm.weight", 2 },
        { "nemotron", "model.layers.7.input_layernorm.bias", "blk.7.attn_norm.bias", 1 },
        { "nemotron", "model.layers.7.mlp.up_proj.weight", "blk.7.ffn_up.weight", 1 },
        { "phi3", "model.layers.0.self_attn.qkv_proj.weight", "blk.0.attn_qkv.weight", 1 },
        { "phi3", "model.layers.0.mlp.gate_up_proj.weight", "blk.0.ffn_up.weight", 1 },
        { "phi3", "model.layers.0.block_sparse_moe.experts.0.w3.weight", "blk.0.ffn_up_exps.weight", 1 },
        { "qwen", "model.layers.2.mlp.experts.0.down_proj.weight", "blk.2.ffn_down_exps.weight", 1 },
        { "qwen", "model.layers.2.self_attn.q_proj.weight", "blk.2.attn_q.weight", 1 },
        { "gemma", "model.layers.2.post_attention_layernorm.weight", "blk.2.ffn_norm.weight", 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const simple t = { .name = cases[i].from, .dtype = TN_FLOAT32, .rank = 1, .shape = { 4 }, .data = x };
        write_file("model.safetensors", (tn_create_options){ .replace = true }, &t, 1);
        must_map("model.safetensors", "mapped.safetensors", cases[i].map);
        tn_file *file = open_file("mapped.safetensors");
        CHECK(*floats_of(file, cases[i].to, 4) == cases[i].first);
        tn_close(file);
        must_map("mapped.safetensors", "back.safetensors", cases[i].map);
        file = open_file("back.safetensors");
        CHECK(memcmp(floats_of(file, cases[i].from, 4), x, sizeof x) == 0);
        tn_close(file);
    }
}

static void what_a_map_does_not_say_is_refused(void)
{
    static const float x[6];
    const simple other = { .name = "h.0.attn.c_attn.weight", .dtype = TN_FLOAT32, .rank = 1, .shape = { 6 },
                           .data = x };
    const simple more[] = { { .name = "model.norm.weight", .dtype = TN_FLOAT32, .rank = 1, .shape = { 6 },
                              .data = x }, other };
    tn_error err = { .text = "" };
    make_llama();
    write_config("{\"num_attention_heads\":5}");
    check_status(convert("model.safetensors", "out.zt", "llama", NULL, &err), &err, TN_ERR_ARGUMENT,
                 "expected a multiple of 10 rows, two for each head, but found 24");
    write_config("{\"num_attention_heads\":\"many\"}");
    check_status(convert("model.safetensors", "out.zt", "llama", NULL, &err), &err, TN_ERR_ARGUMENT,
                 "nothing says how many there are");
    write_config("{");
    check_status(convert("model.safetensors", "out.zt", "llama", NULL, &err), &err, TN_ERR_TRUNCATED, "config.json");
    write_config("{}");
    check_status(convert("model.safetensors", "out.zt", "lama", NULL, &err), &err, TN_ERR_ARGUMENT,
                 "did you mean \"llama\"?");
    write_file("other.zt", (tn_create_options){ 0 }, &other, 1);
    check_status(convert("other.zt", "out.zt", "llama", NULL, &err), &err, TN_ERR_ARGUMENT,
                 "has none of the names of this file");
    write_file("more.zt", (tn_create_options){ 0 }, more, 2);
    check_status(convert("more.zt", "out.zt", "llama", NULL, &err), &err, TN_ERR_ARGUMENT,
                 "tensor \"h.0.attn.c_attn.weight\": map \"llama\" does not have this name");
}

/* Names are alike in many models, but what is done to the data is not. */
static void a_map_of_other_models_is_refused(void)
{
    tn_error err = { .text = "" };
    make_llama();
    write_config("{\"model_type\":\"gemma\",\"num_attention_heads\":4,\"num_key_value_heads\":2}");
    check_status(convert("model.safetensors", "out.zt", "llama", NULL, &err), &err, TN_ERR_ARGUMENT,
                 "map \"llama\" is for \"llama mistral mixtral\" but the model is \"gemma\"");
    write_config("{\"text_config\":{\"model_type\":\"mistral\",\"num_attention_heads\":4,"
                 "\"num_key_value_heads\":2},\"model_type\":\"mistral3\"}");
    must_map("model.safetensors", "mapped.safetensors", "llama");
    const tn_meta architecture = { .key = "general.architecture", .text = "qwen2" };
    const simple t = { .name = "w", .dtype = TN_FLOAT32, .rank = 1, .shape = { 1 }, .data = (float[]){ 1 } };
    tn_writer *w;
    CHECK(tn_create(in_folder("other.gguf").text, NULL, &w, NULL) == TN_OK);
    CHECK(tn_writer_add_meta(w, &architecture, NULL) == TN_OK && add_simple(w, &t, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    check_status(convert("model.safetensors", "out.zt", "llama", in_folder("other.gguf").text, &err), &err,
                 TN_ERR_ARGUMENT, "but the model is \"qwen2\"");
}

static void a_table_can_be_a_file(void)
{
    static const struct { const char *text, *wrong; } tables[] = {
        { "# mine\r\na.* b.* add=-2.5 # and more\n\n", NULL }, { "models: x\na.* b.* add=-2.5", NULL },
        { "a.* b.*\none", "line 2 of map" },        { "a.* b", "as many stars" },
        { "a.* b.* rope=all", "expected rope=heads" }, { "a.* b.* add=0", "expected rope=heads" },
        { "- -", "at least one name" },             { "a.*.* b.*", "as many stars" },
        { "a.*.*.*.*.* b.*.*.*.*.*", "as many stars" },
    };
    tn_error err = { .text = "" };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        tn_arena arena = { 0 };
        tn_map map;
        FILE *f = fopen(in_folder("my.map").text, "w");
        CHECK(f && fputs(tables[i].text, f) >= 0 && fclose(f) == 0);
        tn_status status = tn_map_read(in_folder("my.map").text, &arena, &map, &err);
        if (tables[i].wrong)
            check_status(status, &err, TN_ERR_ARGUMENT, tables[i].wrong);
        else
            CHECK(status == TN_OK && map.count == 1 && map.rows[0].add == -2.5);
        tn_arena_free(&arena);
    }
}

static void a_table_has_a_limit(void)
{
    tn_arena arena = { 0 };
    tn_map map;
    tn_error err = { .text = "" };
    FILE *f = fopen(in_folder("large.map").text, "w");
    CHECK(f && fseek(f, 16 << 20, SEEK_SET) == 0 && fputc('#', f) == '#' && fclose(f) == 0);
    check_status(tn_map_read(in_folder("large.map").text, &arena, &map, &err), &err, TN_ERR_LIMIT,
                 "expected a table of at most 16777216 bytes but found 16777217");
    tn_arena_free(&arena);
}

static void all_tables_can_be_read(void)
{
    for (size_t i = 0; tn_map_tables[i].name; i++) {
        tn_arena arena = { 0 };
        tn_map map;
        CHECK(tn_map_read(tn_map_tables[i].name, &arena, &map, NULL) == TN_OK && map.count > 10);
        for (size_t a = 0; a < map.count; a++)
            for (size_t b = 0; b < a; b++)      /* no name has two rows */
                CHECK(map.rows[a].from.len != map.rows[b].from.len || map.rows[a].from.len == 1 ||
                      memcmp(map.rows[a].from.ptr, map.rows[b].from.ptr, map.rows[a].from.len) != 0);
        tn_arena_free(&arena);
    }
}

static void a_star_is_a_number(void)
{
    tn_text stars[TN_MAP_STARS];
    const tn_text pattern = { "blk.*.w", 7 };
    CHECK(tn_map_matches(pattern, "blk.12.w", stars) && stars[0].len == 2);
    CHECK(!tn_map_matches(pattern, "blk.x.w", stars) && !tn_map_matches(pattern, "blk..w", stars) &&
          !tn_map_matches(pattern, "blk.1.ww", stars) && !tn_map_matches(pattern, "blk.1", stars));
}

/* The metadata of another file first, and then what the input has besides. */
static void metadata_can_come_from_another_file(void)
{
    static const float x[1];
    const tn_meta of_a[] = { { .key = "b", .text = "2" }, { .key = "a", .text = "1" } },
                  of_b[] = { { .key = "c", .text = "3" }, { .key = "a", .text = "4" } };
    const simple t = { .name = "w", .dtype = TN_FLOAT32, .rank = 1, .shape = { 1 }, .data = x };
    const tn_meta *const lists[] = { of_a, of_b };
    const char *const names[] = { "a.zt", "b.zt" };
    tn_error err = { .text = "" };
    for (int i = 0; i < 2; i++) {
        tn_writer *w;
        const tn_create_options create = { .size = sizeof create };
        CHECK(tn_create(in_folder(names[i]).text, &create, &w, &err) == TN_OK);
        for (int k = 0; k < 2; k++)
            CHECK(tn_writer_add_meta(w, &lists[i][k], &err) == TN_OK);
        CHECK(add_simple(w, &t, &err) == TN_OK && tn_writer_finish(w, &err) == TN_OK);
    }
    CHECK(convert("a.zt", "out.zt", NULL, in_folder("b.zt").text, &err) == TN_OK);
    tn_file *file = open_file("out.zt");
    size_t n;
    const tn_meta *meta = tn_file_meta(file, &n);
    CHECK(n == 3);
    static const char *const expected[] = { "4", "2", "3" };     /* of a, b and c */
    for (size_t i = 0; i < n; i++)
        assert_string_equal(meta[i].text, expected[meta[i].key[0] - 'a']);
    tn_close(file);
    check_status(convert("a.zt", "out.zt", NULL, in_folder("nothing").text, &err), &err, TN_ERR_IO, "nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(llama_goes_there_and_back),
        IN_FOLDER(gemma_adds_one),
        IN_FOLDER(gpt2_is_transposed),
        IN_FOLDER(other_architectures_have_their_own_names),
        IN_FOLDER(what_a_map_does_not_say_is_refused),
        IN_FOLDER(a_map_of_other_models_is_refused),
        IN_FOLDER(a_table_can_be_a_file),
        IN_FOLDER(a_table_has_a_limit),
        TEST(all_tables_can_be_read),
        TEST(a_star_is_a_number),
        IN_FOLDER(metadata_can_come_from_another_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
