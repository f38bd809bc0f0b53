/* formats/onnx/types.c - the types of elements by their numbers, and the fields of the messages. */
#include "formats/onnx/onnx.h"

#include <string.h>

enum { FLOATS = TN_ONNX_TENSOR_FLOATS, INT32S = TN_ONNX_TENSOR_INT32S, INT64S = TN_ONNX_TENSOR_INT64S,
       DOUBLES = TN_ONNX_TENSOR_DOUBLES, UINT64S = TN_ONNX_TENSOR_UINT64S };

/* Types of less than a byte have one packed byte in each number. */
static const tn_onnx_type types[] = {
    [1] = { "FLOAT", TN_FLOAT32, FLOATS, 4, 0, 0 },
    [2] = { "UINT8", TN_UINT8, INT32S, 1, 0, UINT8_MAX },
    [3] = { "INT8", TN_INT8, INT32S, 1, INT8_MIN, INT8_MAX },
    [4] = { "UINT16", TN_UINT16, INT32S, 2, 0, UINT16_MAX },
    [5] = { "INT16", TN_INT16, INT32S, 2, INT16_MIN, INT16_MAX },
    [6] = { "INT32", TN_INT32, INT32S, 4, INT32_MIN, INT32_MAX },
    [7] = { "INT64", TN_INT64, INT64S, 8, 0, 0 },
    [8] = { "STRING", TN_UNKNOWN, TN_ONNX_TENSOR_STRINGS, 0, 0, 0 },
    [9] = { "BOOL", TN_BOOL, INT32S, 1, 0, 1 },
    [10] = { "FLOAT16", TN_FLOAT16, INT32S, 2, 0, UINT16_MAX },
    [11] = { "DOUBLE", TN_FLOAT64, DOUBLES, 8, 0, 0 },
    [12] = { "UINT32", TN_UINT32, UINT64S, 4, 0, UINT32_MAX },
    [13] = { "UINT64", TN_UINT64, UINT64S, 8, 0, 0 },
    [14] = { "COMPLEX64", TN_COMPLEX64, FLOATS, 4, 0, 0 },
    [15] = { "COMPLEX128", TN_COMPLEX128, DOUBLES, 8, 0, 0 },
    [16] = { "BFLOAT16", TN_BFLOAT16, INT32S, 2, 0, UINT16_MAX },
    [17] = { "FLOAT8E4M3FN", TN_FLOAT8_E4M3FN, INT32S, 1, 0, UINT8_MAX },
    [18] = { "FLOAT8E4M3FNUZ", TN_FLOAT8_E4M3FNUZ, INT32S, 1, 0, UINT8_MAX },
    [19] = { "FLOAT8E5M2", TN_FLOAT8_E5M2, INT32S, 1, 0, UINT8_MAX },
    [20] = { "FLOAT8E5M2FNUZ", TN_FLOAT8_E5M2FNUZ, INT32S, 1, 0, UINT8_MAX },
    [21] = { "UINT4", TN_UINT4, INT32S, 1, 0, UINT8_MAX },
    [22] = { "INT4", TN_INT4, INT32S, 1, 0, UINT8_MAX },
    [23] = { "FLOAT4E2M1", TN_FLOAT4_E2M1, INT32S, 1, 0, UINT8_MAX },
    [24] = { "FLOAT8E8M0", TN_FLOAT8_E8M0, INT32S, 1, 0, UINT8_MAX },
    [25] = { "UINT2", TN_UINT2, INT32S, 1, 0, UINT8_MAX },
    [26] = { "INT2", TN_INT2, INT32S, 1, 0, UINT8_MAX },
};

const tn_onnx_type *tn_onnx_type_of(uint64_t number)
{
    bool known = number < sizeof types / sizeof *types && types[number].name;
    return known ? &types[number] : NULL;
}

const char *tn_onnx_type_name(const tn_dtype_info *type)
{
    for (size_t i = 1; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == type->dtype)
            return types[i].name;
    return NULL;
}

static const tn_proto_rule model_fields[] = {
    [TN_ONNX_MODEL_IR_VERSION] = { "ir_version", TN_PROTO_VARINT, true },
    [TN_ONNX_MODEL_PRODUCER_NAME] = { "producer_name", TN_PROTO_LENGTH, true },
    [TN_ONNX_MODEL_PRODUCER_VERSION] = { "producer_version", TN_PROTO_LENGTH, true },
    [TN_ONNX_MODEL_DOMAIN] = { "domain", TN_PROTO_LENGTH, true },
    [TN_ONNX_MODEL_VERSION] = { "model_version", TN_PROTO_VARINT, true },
    [TN_ONNX_MODEL_DOC_STRING] = { "doc_string", TN_PROTO_LENGTH, true },
    [TN_ONNX_MODEL_GRAPH] = { "graph", TN_PROTO_LENGTH, true },
    [TN_ONNX_MODEL_OPSET_IMPORT] = { "opset_import", TN_PROTO_LENGTH, false },
    [TN_ONNX_MODEL_METADATA_PROPS] = { "metadata_props", TN_PROTO_LENGTH, false },
    [TN_ONNX_MODEL_TRAINING_INFO] = { "training_info", TN_PROTO_LENGTH, false },
    [TN_ONNX_MODEL_FUNCTIONS] = { "functions", TN_PROTO_LENGTH, false },
    [26] = { "configuration", TN_PROTO_LENGTH, false },
};
const tn_proto_kind tn_onnx_model_kind = TN_PROTO_KIND("ModelProto", model_fields);

static const tn_proto_rule tensor_fields[] = {
    [TN_ONNX_TENSOR_DIMS] = { "dims", TN_PROTO_VARINTS, false },
    [TN_ONNX_TENSOR_TYPE] = { "data_type", TN_PROTO_VARINT, true },
    [TN_ONNX_TENSOR_SEGMENT] = { "segment", TN_PROTO_LENGTH, true },
    [TN_ONNX_TENSOR_FLOATS] = { "float_data", TN_PROTO_FIXED32S, false },
    [TN_ONNX_TENSOR_INT32S] = { "int32_data", TN_PROTO_VARINTS, false },
    [TN_ONNX_TENSOR_STRINGS] = { "string_data", TN_PROTO_LENGTH, false },
    [TN_ONNX_TENSOR_INT64S] = { "int64_data", TN_PROTO_VARINTS, false },
    [TN_ONNX_TENSOR_NAME] = { "name", TN_PROTO_LENGTH, true },
    [TN_ONNX_TENSOR_RAW] = { "raw_data", TN_PROTO_LENGTH, true },
    [TN_ONNX_TENSOR_DOUBLES] = { "double_data", TN_PROTO_FIXED64S, false },
    [TN_ONNX_TENSOR_UINT64S] = { "uint64_data", TN_PROTO_VARINTS, false },
    [12] = { "doc_string", TN_PROTO_LENGTH, true },
    [TN_ONNX_TENSOR_EXTERNAL] = { "external_data", TN_PROTO_LENGTH, false },
    [TN_ONNX_TENSOR_LOCATION] = { "data_location", TN_PROTO_VARINT, true },
    [16] = { "metadata_props", TN_PROTO_LENGTH, false },
};
const tn_proto_kind tn_onnx_tensor_kind = TN_PROTO_KIND("TensorProto", tensor_fields);

static const tn_proto_rule entry_fields[] = {
    [TN_ONNX_ENTRY_KEY] = { "key", TN_PROTO_LENGTH, true },
    [TN_ONNX_ENTRY_VALUE] = { "value", TN_PROTO_LENGTH, true },
};
const tn_proto_kind tn_onnx_entry_kind = TN_PROTO_KIND("StringStringEntryProto", entry_fields);
