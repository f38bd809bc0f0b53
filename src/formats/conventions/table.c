/* formats/conventions/table.c - the one table of other tools' conventions. */
#include "formats/conventions/unpack.h"

#include <string.h>

enum {
    U8 = TN_HAS_U8, I8 = TN_HAS_I8, I16 = TN_HAS_I16, I32 = TN_HAS_I32, U32 = TN_HAS_U32, I64 = TN_HAS_I64,
    F8 = TN_HAS_F8, E8M0 = TN_HAS_E8M0, FLOAT = TN_HAS_FLOAT, ANY = TN_HAS_ANY
};

#define SIGN TN_PART_SIGN
#define NEEDED TN_PART_NEEDED
#define OPTIONAL TN_PART_OPTIONAL

/* ---- shapes, where names and types are those of several ---- */

static bool are_matrices(const tn_tensor *const *parts)
{
    return parts[0]->rank == 2 && parts[1]->rank == 2;
}

/* Eight codes of a row in a word of qweight, a scale for each column. */
static bool fits_awq_gemm(const tn_tensor *const *parts)
{
    return are_matrices(parts) && parts[0]->shape[1] == parts[1]->shape[1] / 8 &&
           parts[1]->shape[1] % 8 == 0;
}

/* A row of scales for each row of qweight, eight of them for each word of zero points, and no groups of
 * columns (g_idx): GPTQ may have as many rows of both. */
static bool fits_awq_gemv(const tn_tensor *const *parts)
{
    return are_matrices(parts) && parts[2]->rank == 2 && !parts[3] &&
           parts[0]->shape[0] == parts[1]->shape[0] && parts[1]->shape[1] / 8 == parts[2]->shape[1];
}

/* Words of 32 bits for each scale. */
static bool has_words(const tn_tensor *const *parts, int64_t words)
{
    uint32_t last = parts[0]->rank - 1;
    return parts[0]->rank == parts[1]->rank && parts[0]->shape[last] % words == 0 &&
           parts[0]->shape[last] / words == parts[1]->shape[last];
}

static bool fits_mlx_nvfp4(const tn_tensor *const *parts) { return has_words(parts, 2); }
static bool fits_mlx_mxfp4(const tn_tensor *const *parts) { return has_words(parts, 4); }
static bool fits_mlx_mxfp8(const tn_tensor *const *parts) { return has_words(parts, 8); }

/* ---- the table ---- */

#define WEIGHT(types) { ".weight", types, SIGN, 2 }
#define SCALE(types) { ".weight_scale", types, SIGN, 0 }

static const tn_convention conventions[] = {    /* of several that fit the first is taken */
    { "NVFP4 (ComfyUI)", NULL, 0,
      { WEIGHT(U8), SCALE(F8), { ".comfy_quant", U8, SIGN, 0 }, { ".weight_scale_2", FLOAT, NEEDED, 0 } },
      NULL, tn_unpack_comfy_nvfp4, NULL },
    { "NVFP4 (ComfyUI)", "comfyui", 0,
      { WEIGHT(U8), SCALE(F8), { ".weight_scale_2", FLOAT, NEEDED, 0 } }, NULL, tn_unpack_comfy_nvfp4, NULL },
    { "NVFP4 (ModelOpt)", NULL, 0,
      { WEIGHT(U8), SCALE(F8), { ".weight_scale_2", FLOAT, NEEDED, 0 } }, NULL, tn_unpack_nvfp4, "modelopt" },
    { "NVFP4 (ModelOpt)", NULL, 0,      /* merged experts */
      { { "", U8, SIGN, 3 }, { "_weight_scale", F8, SIGN, 0 },
        { "_weight_scale_2", FLOAT, NEEDED, 0 } }, NULL, tn_unpack_nvfp4, "modelopt" },
    { "NVFP4 (compressed-tensors)", NULL, 0,
      { { ".weight_packed", U8, SIGN, 2 }, SCALE(F8), { ".weight_global_scale", FLOAT, NEEDED, 0 } },
      NULL, tn_unpack_nvfp4, "compressed-tensors auto-round" },
    /* AutoRound has integers (mx_int) in the same entries */
    { "MXFP4 (compressed-tensors)", NULL, 0,
      { { ".weight_packed", U8, SIGN, 2 }, SCALE(U8 | E8M0) }, NULL, tn_unpack_mxfp4, "compressed-tensors" },
    { "FP4 (compressed-tensors)", NULL, 0,
      { { ".weight_packed", U8, SIGN, 0 }, { ".weight_scale", F8 | U8 | E8M0, NEEDED, 0 } },
      NULL, NULL, "compressed-tensors" },
    { "Marlin 2:4 (compressed-tensors)", NULL, 0,
      { { ".weight_packed", I32, SIGN, 0 }, { ".scale_packed", FLOAT, SIGN, 0 }, { ".meta", ANY, SIGN, 0 } },
      NULL, NULL, "compressed-tensors" },
    { "compressed-tensors (pack-quantized)", NULL, 0,
      { { ".weight_packed", I32, SIGN, 0 }, { ".weight_scale", FLOAT, NEEDED, 0 },
        { ".weight_shape", I64, NEEDED, 0 }, { ".weight_zero_point", I32, OPTIONAL, 0 },
        { ".weight_g_idx", I32, OPTIONAL, 0 } }, NULL, tn_unpack_ct_pack, "compressed-tensors" },
    { "compressed-tensors (2:4 bitmask)", NULL, 1,
      { { ".bitmask", U8, SIGN, 2 }, { ".compressed", ANY, SIGN, 2 }, { ".shape", I64, NEEDED, 0 } },
      NULL, tn_unpack_ct_sparse, "compressed-tensors" },

    { "MXFP8 (ModelOpt)", "modelopt", 0, { WEIGHT(F8), SCALE(U8 | E8M0) }, NULL, tn_unpack_fp8, NULL },
    { "MXFP8 (compressed-tensors)", "compressed-tensors", 0, { WEIGHT(F8), SCALE(U8 | E8M0) },
      NULL, tn_unpack_fp8, NULL },
    { "MXFP8", NULL, 0, { WEIGHT(F8), SCALE(U8 | E8M0) }, NULL, tn_unpack_fp8, NULL },
    { "FP8 (ComfyUI)", NULL, 0,
      { WEIGHT(F8), SCALE(FLOAT), { ".comfy_quant", U8, SIGN, 0 } }, NULL, tn_unpack_fp8, NULL },
    { "FP8 (ComfyUI)", NULL, 0,         /* older files */
      { WEIGHT(F8), { ".scale_weight", FLOAT, SIGN, 0 }, { ".scale_input", FLOAT, OPTIONAL, 0 } },
      NULL, tn_unpack_fp8, NULL },
    { "FP8 (ComfyUI)", "comfyui", 0, { WEIGHT(F8), SCALE(FLOAT) }, NULL, tn_unpack_fp8, NULL },
    { "FP8 (ModelOpt)", "modelopt", 0, { WEIGHT(F8), SCALE(FLOAT) }, NULL, tn_unpack_fp8, NULL },
    { "FP8 (compressed-tensors)", "compressed-tensors", 0, { WEIGHT(F8), SCALE(FLOAT) },
      NULL, tn_unpack_fp8, NULL },
    { "FP8 (FBGEMM)", "fbgemm_fp8", 0, { WEIGHT(F8), SCALE(FLOAT) }, NULL, tn_unpack_fp8, NULL },
    { "FP8 with scales", NULL, 0, { WEIGHT(F8), SCALE(FLOAT) }, NULL, tn_unpack_fp8, NULL },
    { "block FP8 (DeepSeek)", NULL, 1,
      { { ".weight_scale_inv", FLOAT | E8M0 | U8, SIGN, 0 }, { ".weight", F8, NEEDED, 2 } },
      NULL, tn_unpack_fp8, "fp8 mxfp8 modelopt quark auto-round" },
    { "block FP8 (DeepSeek)", NULL, 1,  /* merged experts */
      { { "_scale_inv", FLOAT | E8M0 | U8, SIGN, 0 }, { "", F8, SIGN, 2 } },
      NULL, tn_unpack_fp8, "fp8 mxfp8 modelopt quark" },
    { "block FP8 (DeepSeek)", NULL, 1, { { ".scale", E8M0, SIGN, 0 }, WEIGHT(F8) },
      NULL, tn_unpack_fp8, "fp8 mxfp8 modelopt quark" },
    { "MXFP4 (DeepSeek)", NULL, 1, { { ".scale", E8M0, SIGN, 0 }, WEIGHT(I8) },
      NULL, tn_unpack_mxfp4, "fp8" },

    { "int8 (compressed-tensors)", NULL, 0,
      { WEIGHT(I8), SCALE(FLOAT), { ".weight_zero_point", I8, OPTIONAL, 0 } },
      NULL, tn_unpack_int8, "compressed-tensors modelopt quark" },
    { "MXFP4 (Quark)", NULL, 0, { WEIGHT(U8), SCALE(U8 | E8M0) },
      NULL, tn_unpack_mxfp4, "quark modelopt mxfp4" },
    { "INT4 AWQ (ModelOpt)", "modelopt", 0,
      { WEIGHT(U8), SCALE(FLOAT) }, NULL, tn_unpack_int4_awq, NULL },
    { "BitNet", "bitnet", 0, { WEIGHT(U8), SCALE(FLOAT) }, NULL, tn_unpack_bitnet, NULL },
    { NULL, NULL, 0, { WEIGHT(U8), SCALE(FLOAT) }, NULL, NULL, NULL },

    /* old files have a quantize_config.json, as GPTQ has */
    { "AWQ", NULL, 0,
      { { ".qweight", I32, SIGN, 2 }, { ".scales", FLOAT, SIGN, 0 }, { ".qzeros", I32, NEEDED, 0 } },
      fits_awq_gemm, tn_unpack_awq, "awq auto-round gptq" },
    { "AWQ (gemv)", NULL, 0,
      { { ".qweight", I32, SIGN, 2 }, { ".scales", FLOAT, SIGN, 0 }, { ".qzeros", I32, NEEDED, 0 },
        { ".g_idx", ANY, OPTIONAL, 0 } }, fits_awq_gemv, tn_unpack_awq_gemv, "awq auto-round" },
    { "GPTQ", NULL, 0,
      { { ".qweight", I32, SIGN, 2 }, { ".scales", FLOAT, SIGN, 0 }, { ".qzeros", I32, NEEDED, 0 },
        { ".g_idx", I32, OPTIONAL, 0 } }, NULL, tn_unpack_gptq, "gptq auto-round" },

    { "NF4 (bitsandbytes)", NULL, 1,
      { { ".quant_state.bitsandbytes__nf4", U8, SIGN, 0 }, { "", ANY, NEEDED, 0 },
        { ".absmax", FLOAT | U8, NEEDED, 0 }, { ".quant_map", FLOAT, NEEDED, 0 },
        { ".nested_absmax", FLOAT, OPTIONAL, 0 }, { ".nested_quant_map", FLOAT, OPTIONAL, 0 } },
      NULL, tn_unpack_bnb_4bit, "bitsandbytes" },
    { "FP4 (bitsandbytes)", NULL, 1,
      { { ".quant_state.bitsandbytes__fp4", U8, SIGN, 0 }, { "", ANY, NEEDED, 0 },
        { ".absmax", FLOAT | U8, NEEDED, 0 }, { ".quant_map", FLOAT, NEEDED, 0 },
        { ".nested_absmax", FLOAT, OPTIONAL, 0 }, { ".nested_quant_map", FLOAT, OPTIONAL, 0 } },
      NULL, tn_unpack_bnb_4bit, "bitsandbytes" },
    { "int8 (bitsandbytes)", NULL, 1,
      { { ".SCB", FLOAT, SIGN, 0 }, { ".weight", I8, NEEDED, 2 }, { ".weight_format", U8, OPTIONAL, 0 } },
      NULL, tn_unpack_bnb_8bit, "bitsandbytes" },

    { "affine (MLX)", NULL, 0,
      { WEIGHT(U32), { ".scales", FLOAT, SIGN, 0 }, { ".biases", FLOAT, NEEDED, 0 } },
      NULL, tn_unpack_mlx, "mlx" },
    { "NVFP4 (MLX)", NULL, 0, { WEIGHT(U32), { ".scales", U8, SIGN, 2 } },
      fits_mlx_nvfp4, tn_unpack_mxfp4, "mlx" },
    { "MXFP4 (MLX)", NULL, 0, { WEIGHT(U32), { ".scales", U8, SIGN, 2 } },
      fits_mlx_mxfp4, tn_unpack_mxfp4, "mlx" },
    { "MXFP8 (MLX)", NULL, 0, { WEIGHT(U32), { ".scales", U8, SIGN, 2 } },
      fits_mlx_mxfp8, tn_unpack_mxfp4, "mlx" },
    { "MLX", NULL, 0, { WEIGHT(U32), { ".scales", U8, SIGN, 0 } }, NULL, NULL, NULL },

    { "MXFP4 (gpt-oss)", NULL, 0, { { "_blocks", U8, SIGN, 2 }, { "_scales", U8, SIGN, 1 } },
      NULL, tn_unpack_mxfp4, "mxfp4" },
    { "HQQ", NULL, 0,
      { { ".W_q", U8 | I32, SIGN, 0 }, { ".scale", FLOAT | U8, NEEDED, 0 },
        { ".zero", FLOAT | U8, NEEDED, 0 }, { ".shape", I64, NEEDED, 0 }, { ".nbits", ANY, NEEDED, 0 },
        { ".group_size", ANY, OPTIONAL, 0 }, { ".axis", ANY, OPTIONAL, 0 }, { ".packing", U8, OPTIONAL, 0 },
        { ".channel_wise", U8, OPTIONAL, 0 }, { ".compute_dtype", U8, OPTIONAL, 0 },
        { ".encoded_state_dict", U8, OPTIONAL, 0 }, { ".offload_meta", U8, OPTIONAL, 0 },
        { ".optimize", U8, OPTIONAL, 0 }, { ".quant_scale", U8, OPTIONAL, 0 },
        { ".quant_zero", U8, OPTIONAL, 0 }, { ".round_zero", U8, OPTIONAL, 0 },
        { ".stores_quant_config", U8, OPTIONAL, 0 }, { ".unpack_view_dtype", U8, OPTIONAL, 0 },
        { ".view_as_float", U8, OPTIONAL, 0 } }, NULL, tn_unpack_hqq, "hqq" },
    { "quanto", NULL, 0,
      { { "._data._data", U8, SIGN, 0 }, { "._scale", FLOAT, NEEDED, 0 }, { "._shift", FLOAT, NEEDED, 0 } },
      NULL, tn_unpack_quanto_int4, "quanto" },
    { "quanto", NULL, 0, { { "._data", I8 | F8, SIGN, 0 }, { "._scale", FLOAT, SIGN, 0 } },
      NULL, tn_unpack_quanto, "quanto" },
    { "torchao", NULL, 0,
      { { "._weight_qdata", U8 | I8 | I32 | F8, SIGN, 0 }, { "._weight_scale", FLOAT, NEEDED, 0 },
        { "._weight_zero_point", ANY, OPTIONAL, 0 } }, NULL, tn_unpack_torchao, "torchao" },
    { "EXL2", NULL, 0,
      { { ".q_weight", I32, SIGN, 0 }, { ".q_scale", I32, NEEDED, 0 }, { ".q_groups", I16, NEEDED, 0 },
        { ".q_scale_max", FLOAT, OPTIONAL, 0 }, { ".q_invperm", I16 | I32, OPTIONAL, 0 },
        { ".q_perm", I16 | I32, OPTIONAL, 0 } }, NULL, NULL, NULL },
    { "EXL3", NULL, 0,
      { { ".trellis", I16, SIGN, 0 }, { ".suh", FLOAT, NEEDED, 0 }, { ".svh", FLOAT, NEEDED, 0 } },
      NULL, NULL, NULL },
    { "AQLM", NULL, 0,
      { { ".codes", U8 | I8 | I16 | I32, SIGN, 0 }, { ".codebooks", FLOAT, SIGN, 0 },
        { ".scales", FLOAT, NEEDED, 0 } }, NULL, NULL, NULL },
    { "Marlin", NULL, 0, { { ".B", I32, SIGN, 2 }, { ".s", FLOAT, SIGN, 1 } }, NULL, NULL, NULL },
    { "VPTQ", NULL, 0,
      { { ".indices", I16 | I32 | I64, SIGN, 0 }, { ".centroids", FLOAT, SIGN, 0 } }, NULL, NULL, NULL },
};
_Static_assert(sizeof conventions / sizeof *conventions <= TN_CONVENTION_ROWS, "find.c has a bit for each");

const tn_convention *tn_convention_at(size_t i)
{
    return i < sizeof conventions / sizeof *conventions ? &conventions[i] : NULL;
}

bool tn_convention_knows(const char *method)
{
    static const char *const methods[] = {      /* config.json's quant_method; their names decide */
        "fp8", "fbgemm_fp8", "modelopt", "compressed-tensors", "comfyui", "mxfp4", "mxfp8", "quark", "gptq",
        "awq", "auto-round", "bitsandbytes", "mlx", "hqq", "quanto", "torchao", "bitnet", "exl2", "exl3",
        "aqlm", "vptq", "marlin",
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i], method) == 0)
            return true;
    return false;
}
