/* gguf_cpp copy IN OUT - reads a file with gguf.cpp of llama.cpp, its data too, and writes it again with it.
 * gguf_cpp make OUT - writes one with values of every type and tensors of every plain and several block types. */
#include <gguf.h>
#include <ggml.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int copy(const char *from, const char *to)
{
    struct ggml_context *data = NULL;
    struct gguf_context *in = gguf_init_from_file(from, (struct gguf_init_params){ .no_alloc = false, .ctx = &data });
    if (!in)
        return 1;
    struct gguf_context *out = gguf_init_empty();
    gguf_set_kv(out, in);
    for (int64_t i = 0; i < gguf_get_n_tensors(in); i++)
        gguf_add_tensor(out, ggml_get_tensor(data, gguf_get_tensor_name(in, i)));
    return gguf_write_to_file(out, to, false) ? 0 : 1;
}

static void add_tensors(struct gguf_context *out)
{
    static const enum ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_F64, GGML_TYPE_I8,
                                            GGML_TYPE_I16, GGML_TYPE_I32, GGML_TYPE_I64, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0,
                                            GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ2_XS, GGML_TYPE_TQ1_0,
                                            GGML_TYPE_MXFP4 };
    struct ggml_context *data = ggml_init((struct ggml_init_params){ .mem_size = (size_t)1 << 24 });
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct ggml_tensor *t = ggml_new_tensor_3d(data, types[i], 512, (int64_t)i % 3 + 1, 2);
        uint8_t *bytes = t->data;
        for (size_t k = 0; k < ggml_nbytes(t); k++)
            bytes[k] = (uint8_t)(k * 31 + i);
        ggml_set_name(t, ggml_type_name(types[i]));
        gguf_add_tensor(out, t);
    }
}

static int make(const char *to)
{
    static const char *words[] = { "a", "", "\xe2\x96\x81the", "\xff\xfe" };    /* the last is no UTF-8 */
    static const float floats[] = { 0.5f, -1e30f, 1e-45f };
    struct gguf_context *out = gguf_init_empty();
    gguf_set_val_str(out, "general.architecture", "tenon");
    gguf_set_val_u8(out, "u8", 255);
    gguf_set_val_i16(out, "i16", -5);
    gguf_set_val_i32(out, "i32", 5);
    gguf_set_val_u64(out, "u64", 5);
    gguf_set_val_f32(out, "f32", 0.1f);
    gguf_set_val_f64(out, "f64", 0.1);
    gguf_set_val_bool(out, "bool", true);
    gguf_set_arr_str(out, "words", words, sizeof words / sizeof *words);
    gguf_set_arr_data(out, "floats", GGUF_TYPE_FLOAT32, floats, 3);
    add_tensors(out);
    return gguf_write_to_file(out, to, false) ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "copy") == 0)
        return copy(argv[2], argv[3]);
    return argc == 3 && strcmp(argv[1], "make") == 0 ? make(argv[2]) : 2;
}
