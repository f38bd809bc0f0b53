/* What is lost when other tools' codes become bfloat16, which is counted without values in float32. */
#include "support.h"

#include "make.h"
#include "safetensors_bytes.h"

static tn_file *make_model(const void *bytes, size_t size)
{
    size_t n;
    uint8_t *file = make_file("{\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":[4,1],"
                              "\"data_offsets\":[0,16]},\"a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[4,64],"
                              "\"data_offsets\":[16,272]}}", size, &n);
    memcpy(file + n - size, bytes, size);
    put_bytes("model.safetensors", file, n);
    free(file);
    return open_file("model.safetensors");
}

static void take_lost(void *context, const tn_cast_report *lost)
{
    *(tn_cast_report *)context = *lost;
}

/* The values of out.zt. */
static void read_made(void *to, size_t size)
{
    tn_file *made = open_file("out.zt");
    CHECK(tn_read(made, tn_file_find(made, "a.weight"), TN_BFLOAT16, to, size, NULL) == TN_OK);
    tn_close(made);
}

static tn_cast_report cast_and_count(const tn_file *f, const char *type)
{
    const tn_rule cast = { "cast", type };
    const tn_create_options create = { .size = sizeof create, .replace = true };
    tn_cast_report lost = { .values = 0 };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &cast, .nrules = 1,
                                   .lost = take_lost, .context = &lost };
    CHECK(tn_convert(f, in_folder("out.zt").text, &o, NULL, NULL) == TN_OK);
    return lost;
}

/* Rows of e4m3fn codes with a scale each: whether all values stay or some become 0, bytes and counts are
 * those of two casts, by way of float32. */
static void what_is_lost_is_counted_as_by_way_of_float32(void)
{
    static const float scales[][4] = { { 1, 0.5f, 0, -3 }, { 1, 0x1p-140f, 0x1p-149f, 2 },
                                       { 0x1p-61f, 1, 0x1p-130f, 0x1p-149f } };
    enum { COLUMNS = 64, CODES = 4 * COLUMNS };
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        uint8_t data[16 + CODES];
        uint8_t once[2 * CODES], twice[2 * CODES];
        memcpy(data, scales[k], 16);
        for (unsigned i = 0; i < CODES; i++)
            data[16 + i] = (uint8_t)(i * 37 + k);           /* with both zeros and NaN */
        tn_file *f = make_model(data, sizeof data);
        tn_cast_report direct = cast_and_count(f, "bf16");
        read_made(once, sizeof once);
        cast_and_count(f, "f32");
        tn_close(f);
        CHECK(rename(in_folder("out.zt").text, in_folder("values.zt").text) == 0);
        f = open_file("values.zt");
        tn_cast_report by_values = cast_and_count(f, "bf16");
        read_made(twice, sizeof twice);
        tn_close(f);
        assert_memory_equal(once, twice, sizeof once);
        CHECK(direct.values == by_values.values && direct.flushed == by_values.flushed &&
              direct.saturated == by_values.saturated && (k > 0) == (direct.flushed > 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(what_is_lost_is_counted_as_by_way_of_float32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
