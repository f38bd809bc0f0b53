/* The entries of GPTQ and AWQ: what tells apart those who write them, and where the parts lie. */
#include "support.h"

#include "files.h"
#include "make.h"
#include "safetensors_bytes.h"

#define CASES TEST_GOLDEN "/conventions"

static void check_digest(const tn_file *f, const tn_tensor *t, const char *expected)
{
    float values[32 * 128];
    tn_error err = { .text = "" };
    if (tn_read(f, t, TN_FLOAT32, values, sizeof values, &err) != TN_OK)
        fail_msg("%s", line_of(&err));
    assert_string_equal(sha256_of(values, sizeof values).text, expected);
}

/* The entries of a golden case of GPTQ, asymmetric, with what AutoRound says of them. */
static void check_packing(const char *name, const char *packing, const char *digest)
{
    char config[300], command[PATH_MAX + 300];
    snprintf(command, sizeof command, "cp " CASES "/%s/model.safetensors %s/", name, folder);
    CHECK(system(command) == 0);
    snprintf(config, sizeof config, "{\"quantization_config\":{\"bits\":4,\"group_size\":%s,\"sym\":false,"
             "\"quant_method\":\"auto-round\"%s}}", strstr(name, "g64") ? "64" : "32", packing);
    put_file("config.json", config);
    tn_file *f = open_file("model.safetensors");
    const tn_tensor *t = tn_file_find(f, "model.layers.0.mlp.gate_proj.weight");
    CHECK(t && t->scaling);
    check_digest(f, t, digest);
    tn_close(f);
}

static void zero_points_of_auto_round_are_as_its_packing_says(void)
{
    static const char first[] = "a46e86033a8fff4b90a34ecdecaa0e690f8b667d8ac797319dc2942bc287d446";
    static const char second[] = "c532d3dedd32b1ce398c83b8bfb89efcd93334aaeac1ad7b27ed24f9916f964a";
    check_packing("gptq_int4_g64_asym", "", first);
    check_packing("gptq_int4_g64_asym", ",\"packing_format\":\"auto_round:auto_gptq\"", first);
    check_packing("gptq_v2_int4_asym", ",\"packing_format\":\"auto_round:gptqmodel\"", second);
    check_packing("gptq_v2_int4_asym", ",\"packing_format\":\"auto_round\"", second);
}

/* What is made of one entry is where that entry is. */
static void parts_that_are_made_have_a_place(void)
{
    tn_file *f = open_at(CASES "/awq_gemm_g64", "model.safetensors", NULL, TN_IO_AUTO);
    const tn_tensor *t = tn_file_find(f, "model.layers.0.self_attn.o_proj.weight");
    tn_stored_info codes = { .size = sizeof codes }, zeros = { .size = sizeof zeros };
    CHECK(tn_part_stored(t, &t->parts[0], &codes) == TN_OK);
    CHECK(tn_part_stored(t, &t->parts[2], &zeros) == TN_OK);
    CHECK(codes.extents == 1 && codes.offset == 384 && codes.bytes == 6144);
    CHECK(zeros.extents == 1 && zeros.offset == 6528);
    tn_close(f);
    f = open_at(CASES "/bitnet", "model.safetensors", NULL, TN_IO_AUTO);     /* lines of one entry */
    t = tn_file_find(f, "model.layers.0.mlp.up_proj.weight");
    CHECK(tn_part_stored(t, &t->parts[0], &codes) == TN_OK);
    CHECK(codes.extents == 1 && codes.offset == 194 && codes.bytes == 512);
    tn_close(f);
}

/* Codes of 2 bits in groups of 16: qweight has as many rows as scales, as in AWQ (gemv). */
static void groups_of_gptq_may_be_small(void)
{
    static const char header[] =
        "{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[2,32],\"data_offsets\":[0,256]},"
        "\"a.qzeros\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[256,272]},"
        "\"a.scales\":{\"dtype\":\"F16\",\"shape\":[2,32],\"data_offsets\":[272,400]}}";
    static const uint8_t zeros[400];
    size_t n;
    uint8_t *file = make_file(header, sizeof zeros, &n);
    memcpy(file + n - sizeof zeros, zeros, sizeof zeros);
    put_bytes("model.safetensors", file, n);
    put_file("config.json", "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":2,"
                            "\"group_size\":16}}");
    free(file);
    tn_file *f = open_file("model.safetensors");
    const tn_tensor *t = tn_file_find(f, "a.weight");
    assert_string_equal(tn_file_convention(f, t), "GPTQ");
    CHECK(t->rank == 2 && t->shape[0] == 32 && t->shape[1] == 32);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(zero_points_of_auto_round_are_as_its_packing_says),
        IN_FOLDER(groups_of_gptq_may_be_small),
        TEST(parts_that_are_made_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
