/* Documents that are no descriptors: refused with the path and the byte. */
#include "documents.h"

#include <stdio.h>

/* A document that must be refused at this byte with this text. */
static void refuse(const char *json, tn_status expected, size_t byte, const char *text)
{
    tn_descriptors *set = NULL;
    tn_error err;
    tn_status status = parse_n(json, strlen(json), &set, &err);
    if (status != expected || err.offset != byte || strcmp(said_of(&err), text) != 0)
        print_error("%s\n  expected %d, byte %zu: %s\n  found    %d, byte %llu: %s\n", json, (int)expected,
                    byte, text, (int)status, (unsigned long long)err.offset, line_of(&err));
    CHECK(status == expected && err.status == expected && set == NULL);
    CHECK(err.offset == byte);
    CHECK(strcmp(said_of(&err), text) == 0);
    CHECK(tn_descriptors_parse(json, strlen(json), &set, NULL) == expected);
}

/* ---- what is refused ---- */

typedef struct refusal {
    const char *json;           /* with ' for " */
    tn_status   status;
    size_t      byte;
    const char *text;
} refusal;

static void check_refusals(const refusal *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char json[200];
        CHECK(strlen(all[i].json) < sizeof json);
        snprintf(json, sizeof json, "%s", all[i].json);
        for (char *p = json; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        refuse(json, all[i].status, all[i].byte, all[i].text);
    }
}

static const refusal shape_refusals[] = {
    { "", TN_ERR_TRUNCATED, 0, "expected a descriptor or an array of them but the text ends" },
    { "  ", TN_ERR_TRUNCATED, 2, "expected a descriptor or an array of them but the text ends" },
    { "7", TN_ERR_CORRUPT, 0, "expected a descriptor or an array of them but found a number" },
    { "[7]", TN_ERR_CORRUPT, 1, "[0]: expected an object but found a number" },
    { "{}", TN_ERR_CORRUPT, 0, "expected a shape but found none" },
    { "[{'shape':[]},{}]", TN_ERR_CORRUPT, 14, "[1]: expected a shape but found none" },
    { "{'shape':[]} x", TN_ERR_CORRUPT, 13, "expected the end of the text but found 'x'" },
    { "{'shape':[]", TN_ERR_TRUNCATED, 11, "shape: expected ',' or '}' but the text ends" },
    { "[{'shape':[]},]", TN_ERR_CORRUPT, 14, "[1]: expected a value but found ']'" },
    { "{'shape':[],}", TN_ERR_CORRUPT, 12, "expected a string but found '}'" },
    { "{'shape' []}", TN_ERR_CORRUPT, 9, "shape: expected ':' after a key but found '['" },
    { "nul", TN_ERR_CORRUPT, 0, "expected a descriptor or an array of them but found null" },
    { "{'shape':7}", TN_ERR_CORRUPT, 9,
      "shape: expected an object or an array of dimensions but found a number" },
    { "{'shape':{}}", TN_ERR_CORRUPT, 9, "shape: expected dimensions but found none" },
    { "{'shape':{'layout':'NCHW'}}", TN_ERR_CORRUPT, 9, "shape: expected dimensions but found none" },
    { "{'shape':[1,true]}", TN_ERR_CORRUPT, 12, "shape[1]: expected a number or a symbol but found true" },
    { "{'shape':[1,-1]}", TN_ERR_CORRUPT, 12,
      "shape[1]: expected an integer that is not negative but found -1" },
    { "{'shape':[1.5]}", TN_ERR_CORRUPT, 10,
      "shape[0]: expected an integer that is not negative but found 1.5" },
    { "{'shape':[1e2]}", TN_ERR_CORRUPT, 10,
      "shape[0]: expected an integer that is not negative but found 1e2" },
    { "{'shape':[-0]}", TN_ERR_CORRUPT, 10,
      "shape[0]: expected an integer that is not negative but found -0" },
    { "{'shape':[9223372036854775808]}", TN_ERR_LIMIT, 10,
      "shape[0]: expected a number below 2^63 but found 9223372036854775808" },
    { "{'shape':[99999999999999999999999]}", TN_ERR_LIMIT, 10,
      "shape[0]: expected an integer of 64 bits but found 99999999999999999999999" },
    { "{'shape':['a b']}", TN_ERR_CORRUPT, 10,
      "shape[0]: expected a symbol of letters, digits and _ but found \"a b\"" },
    { "{'shape':['']}", TN_ERR_CORRUPT, 10,
      "shape[0]: expected a symbol of letters, digits and _ but found \"\"" },
    { "{'shape':['1a']}", TN_ERR_CORRUPT, 10,
      "shape[0]: expected a symbol of letters, digits and _ but found \"1a\"" },
    { "{'shape':['a\\u0000']}", TN_ERR_CORRUPT, 10,
      "shape[0]: expected text without NUL but found \"a\\x00\"" },
    { "{'shape':{'dimensions':7}}", TN_ERR_CORRUPT, 23,
      "shape.dimensions: expected an array but found a number" },
    { "{'shape':{'dimensions':[[1]]}}", TN_ERR_CORRUPT, 24,
      "shape.dimensions[0]: expected a number or a symbol but found an array" },
    { "{'shape':[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
      "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}",
      TN_ERR_LIMIT, 138, "shape[64]: expected at most 64 dimensions but found more" },
    { "{'shape':{'dimensions':[1],'layout':7}}", TN_ERR_CORRUPT, 36,
      "shape.layout: expected a string but found a number" },
    { "{'shape':{'dimensions':[1],'layout':'N\\u0000'}}", TN_ERR_CORRUPT, 36,
      "shape.layout: expected text without NUL but found \"N\\x00\"" },
    { "{'shape':{'dimensions':[1],'symbolic':1}}", TN_ERR_CORRUPT, 38,
      "shape.symbolic: expected true or false but found a number" },
    { "{'shape':{'dimensions':[],'constraints':[]}}", TN_ERR_CORRUPT, 40,
      "shape.constraints: expected an object but found an array" },
    { "{'shape':{'dimensions':[],'constraints':{'n':7}}}", TN_ERR_CORRUPT, 45,
      "shape.constraints.n: expected an object but found a number" },
    { "{'shape':{'dimensions':[],'constraints':{'n':{'min':1.5}}}}", TN_ERR_CORRUPT, 52,
      "shape.constraints.n.min: expected an integer but found 1.5" },
    { "{'shape':{'dimensions':[],'constraints':{'n':{'multiple_of':9223372036854775808}}}}", TN_ERR_LIMIT, 60,
      "shape.constraints.n.multiple_of: expected an integer of 64 bits but found 9223372036854775808" },
    { "{'shape':{'dimensions':[],'constraints':{'a-b':{}}}}", TN_ERR_CORRUPT, 47,
      "shape.constraints[\"a-b\"]: expected a symbol of letters, digits and _ but found \"a-b\"" },
    { "{'shape':[],'version':1}", TN_ERR_CORRUPT, 22, "version: expected a string but found a number" },
    { "{'shape':[],'tensor_id':null}", TN_ERR_CORRUPT, 24, "tensor_id: expected a string but found null" },
    { "{'shape':[],'name':[]}", TN_ERR_CORRUPT, 19, "name: expected a string but found an array" },
    { "{'shape':[],'name':'a\\u0000b'}", TN_ERR_CORRUPT, 19,
      "name: expected text without NUL but found \"a\\x00b\"" },
    { "{'shape':[],'na\\u0000me':1}", TN_ERR_CORRUPT, 25,
      "[\"na\\\\u0000me\"]: expected a key without NUL but found \"na\\x00me\"" },
    { "[{'shape':[]},{'shape':[],'memory':{'device':{'type':'QPU'}}}]", TN_ERR_CORRUPT, 53,
      "[1].memory.device.type: expected CPU, GPU, NPU or TPU but found \"QPU\"" },
};

static void documents_and_shapes_of_the_wrong_kind_are_refused(void)
{
    check_refusals(shape_refusals, sizeof shape_refusals / sizeof shape_refusals[0]);
}

static const refusal type_and_memory_refusals[] = {
    { "{'shape':[],'dtype':'FLOAT32'}", TN_ERR_CORRUPT, 20, "dtype: expected an object but found a string" },
    { "{'shape':[],'dtype':{}}", TN_ERR_CORRUPT, 20, "dtype: expected a base_type but found none" },
    { "{'shape':[],'dtype':{'base_type':1}}", TN_ERR_CORRUPT, 33,
      "dtype.base_type: expected a string but found a number" },
    { "{'shape':[],'dtype':{'base_type':'INT8','byte_order':'middle_endian'}}", TN_ERR_CORRUPT, 53,
      "dtype.byte_order: expected little_endian or big_endian but found \"middle_endian\"" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':7}}", TN_ERR_CORRUPT, 55,
      "dtype.quantization: expected null or an object but found a number" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{}}}", TN_ERR_CORRUPT, 55,
      "dtype.quantization: expected a scheme but found none" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':1}}}", TN_ERR_CORRUPT, 65,
      "dtype.quantization.scheme: expected a string but found a number" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','scale':'x'}}"
      "}",
      TN_ERR_CORRUPT, 96,
      "dtype.quantization.scale: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\" but found \"x\"" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','scale':1e999}"
      "}}",
      TN_ERR_LIMIT, 96, "dtype.quantization.scale: expected a number that fits a double but found 1e999" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','scale':1,'"
      "scales':[1]}}}",
      TN_ERR_CORRUPT, 107, "dtype.quantization.scales: expected one of scale and scales but found both" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','scales':[1,"
      "true]}}}",
      TN_ERR_CORRUPT, 100, "dtype.quantization.scales[1]: expected a number but found true" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','zero_point':"
      "1.5}}}",
      TN_ERR_CORRUPT, 101, "dtype.quantization.zero_point: expected an integer but found 1.5" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','zero_points':"
      "[1],'zero_point':1}}}",
      TN_ERR_CORRUPT, 119,
      "dtype.quantization.zero_point: expected one of zero_point and zero_points but found both" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','zero_points':"
      "[1,'x']}}}",
      TN_ERR_CORRUPT, 105, "dtype.quantization.zero_points[1]: expected a number but found a string" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','range':[1]}}"
      "}",
      TN_ERR_CORRUPT, 96,
      "dtype.quantization.range: expected the lowest and the highest code but found 1 numbers" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','range':[1,2,"
      "3]}}}",
      TN_ERR_CORRUPT, 96,
      "dtype.quantization.range: expected the lowest and the highest code but found 3 numbers" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','range':[0,"
      "18446744073709551615]}}}",
      TN_ERR_LIMIT, 99,
      "dtype.quantization.range[1]: expected an integer of 64 bits but found 18446744073709551615" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','range':7}}}",
      TN_ERR_CORRUPT, 96, "dtype.quantization.range: expected an array but found a number" },
    { "{'shape':[],'dtype':{'base_type':'INT8','quantization':{'scheme':'per_tensor_symmetric','channel_axis'"
      ":'C'}}}",
      TN_ERR_CORRUPT, 103, "dtype.quantization.channel_axis: expected a number but found a string" },
    { "{'shape':[],'memory':null}", TN_ERR_CORRUPT, 21, "memory: expected an object but found null" },
    { "{'shape':[1,2],'memory':{'strides':[1]}}", TN_ERR_CORRUPT, 35,
      "memory.strides: expected 2 items, one for each dimension, but found 1" },
    { "{'shape':[1,2],'memory':{'strides':[1,2,3]}}", TN_ERR_CORRUPT, 35,
      "memory.strides: expected 2 items, one for each dimension, but found 3" },
    { "{'shape':[1,2],'memory':{'strides':7}}", TN_ERR_CORRUPT, 35,
      "memory.strides: expected an array but found a number" },
    { "{'shape':[1,2],'memory':{'strides':[1,null]}}", TN_ERR_CORRUPT, 38,
      "memory.strides[1]: expected a number or a product of symbols but found null" },
    { "{'shape':[1,2],'memory':{'strides':[1,'2**a']}}", TN_ERR_CORRUPT, 38,
      "memory.strides[1]: expected a symbol of letters, digits and _ but found \"\"" },
    { "{'shape':[1,2],'memory':{'strides':[1,'']}}", TN_ERR_CORRUPT, 38,
      "memory.strides[1]: expected a symbol of letters, digits and _ but found \"\"" },
    { "{'shape':[1,2],'memory':{'strides':[1,'2a']}}", TN_ERR_CORRUPT, 38,
      "memory.strides[1]: expected symbols and integers between * but found \"2a\"" },
    { "{'shape':[1,2],'memory':{'strides':[1,'2.5*a']}}", TN_ERR_CORRUPT, 38,
      "memory.strides[1]: expected symbols and integers between * but found \"2.5\"" },
    { "{'shape':[1,2],'memory':{'strides':[1,'-']}}", TN_ERR_CORRUPT, 38,
      "memory.strides[1]: expected a symbol of letters, digits and _ but found \"-\"" },
    { "{'shape':[1,2],'memory':{'strides':[1,'9223372036854775808']}}", TN_ERR_LIMIT, 38,
      "memory.strides[1]: expected a factor of 64 bits but found more" },
    { "{'shape':[1,2],'memory':{'strides':[1,'4294967296*4294967296*n']}}", TN_ERR_LIMIT, 38,
      "memory.strides[1]: expected a factor of 64 bits but found more" },
    { "{'shape':[1,2],'memory':{'strides':[1,'a+b']}}", TN_ERR_CORRUPT, 38,
      "memory.strides[1]: expected a symbol of letters, digits and _ but found \"a+b\"" },
    { "{'shape':[1,2],'memory':{'strides':[1.0,2]}}", TN_ERR_CORRUPT, 36,
      "memory.strides[0]: expected an integer but found 1.0" },
    { "{'shape':[1,2],'memory':{'strides':[1,'a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*"
      "a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a']}}",
      TN_ERR_LIMIT, 38, "memory.strides[1]: expected at most 64 symbols but found more" },
    { "{'shape':[1,2],'memory':{'offset_bytes':-1}}", TN_ERR_CORRUPT, 40,
      "memory.offset_bytes: expected an integer that is not negative but found -1" },
    { "{'shape':[1,2],'memory':{'offset_bytes':18446744073709551616}}", TN_ERR_LIMIT, 40,
      "memory.offset_bytes: expected an integer of 64 bits but found 18446744073709551616" },
    { "{'shape':[1,2],'memory':{'total_bytes':1.5}}", TN_ERR_CORRUPT, 39,
      "memory.total_bytes: expected an integer that is not negative but found 1.5" },
    { "{'shape':[1,2],'memory':{'alignment':0}}", TN_ERR_CORRUPT, 37,
      "memory.alignment: expected at least 1 but found 0" },
    { "{'shape':[1,2],'memory':{'alignment':'64'}}", TN_ERR_CORRUPT, 37,
      "memory.alignment: expected a number but found a string" },
    { "{'shape':[1,2],'memory':{'device':'CPU'}}", TN_ERR_CORRUPT, 34,
      "memory.device: expected an object but found a string" },
    { "{'shape':[1,2],'memory':{'device':{'type':'cpus'}}}", TN_ERR_CORRUPT, 42,
      "memory.device.type: expected CPU, GPU, NPU or TPU but found \"cpus\"" },
    { "{'shape':[1,2],'memory':{'device':{'id':0.5}}}", TN_ERR_CORRUPT, 40,
      "memory.device.id: expected an integer but found 0.5" },
    { "{'shape':[1,2],'memory':{'device':{'memory_space':'vram'}}}", TN_ERR_CORRUPT, 50,
      "memory.device.memory_space: expected host, device or unified but found \"vram\"" },
};

static void types_and_memory_of_the_wrong_kind_are_refused(void)
{
    check_refusals(type_and_memory_refusals,
                   sizeof type_and_memory_refusals / sizeof type_and_memory_refusals[0]);
}

static const refusal blocks_refusals[] = {
    { "{'shape':{'dimensions':[],'constraints':{'n':{'max':'x'}}}}", TN_ERR_CORRUPT, 52,
      "shape.constraints.n.max: expected a number but found a string" },
    { "{'shape':[],'properties':[]}", TN_ERR_CORRUPT, 25,
      "properties: expected an object but found an array" },
    { "{'shape':[],'properties':{'is_pinned':0}}", TN_ERR_CORRUPT, 38,
      "properties.is_pinned: expected true or false but found a number" },
    { "{'shape':[],'metadata':[1]}", TN_ERR_CORRUPT, 23, "metadata: expected an object but found an array" },
    { "{'shape':[],'metadata':{'a':[1,{'b':1,'b':2}]}}", TN_ERR_CORRUPT, 42,
      "metadata.a[1].b: expected every key once but found \"b\" again" },
    { "{'shape':[],'metadata':{'a b':tru}}", TN_ERR_CORRUPT, 33,
      "metadata[\"a b\"]: expected true but found '}'" },
    { "{'shape':[],'metadata':{'\\u0061':1,'a':2}}", TN_ERR_CORRUPT, 39,
      "metadata.a: expected every key once but found \"a\" again" },
    { "{'shape':[],'x':{'a':01}}", TN_ERR_CORRUPT, 21,
      "x.a: expected a number without leading zeros but found 01" },
    { "{'shape':[1,2],'physical_shape':[1]}", TN_ERR_CORRUPT, 32,
      "physical_shape: expected 2 items, one for each dimension, but found 1" },
    { "{'shape':[1,2],'physical_shape':[1,-2]}", TN_ERR_CORRUPT, 35,
      "physical_shape[1]: expected an integer that is not negative but found -2" },
    { "{'shape':[1,2],'physical_shape':{}}", TN_ERR_CORRUPT, 32,
      "physical_shape: expected an array but found an object" },
    { "{'shape':[1,2],'padding':7}", TN_ERR_CORRUPT, 25, "padding: expected an object but found a number" },
    { "{'shape':[1,2],'padding':{'dims':[true]}}", TN_ERR_CORRUPT, 33,
      "padding.dims: expected 2 items, one for each dimension, but found 1" },
    { "{'shape':[1,2],'padding':{'dims':[0,1]}}", TN_ERR_CORRUPT, 34,
      "padding.dims[0]: expected true or false but found a number" },
    { "{'shape':[1,2],'padding':{'values':[1,2,3]}}", TN_ERR_CORRUPT, 35,
      "padding.values: expected 2 items, one for each dimension, but found 3" },
    { "{'shape':[1,2],'padding':{'values':[1,'a']}}", TN_ERR_CORRUPT, 38,
      "padding.values[1]: expected a number but found a string" },
    { "{'shape':[1,2],'padding':{'mode':0}}", TN_ERR_CORRUPT, 33,
      "padding.mode: expected a string but found a number" },
    { "{'shape':[1,2],'padding':{'fill':'zero'}}", TN_ERR_CORRUPT, 33,
      "padding.fill: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\" but found \"zero\"" },
    { "{'shape':[],'buffer_handle':null}", TN_ERR_CORRUPT, 28,
      "buffer_handle: expected an object but found null" },
    { "{'shape':[],'buffer_handle':{}}", TN_ERR_CORRUPT, 28,
      "buffer_handle: expected the member type but found none" },
    { "{'shape':[],'buffer_handle':{'handle':3,'size_bytes':64,'permissions':'read_only'}}", TN_ERR_CORRUPT,
      28, "buffer_handle: expected the member type but found none" },
    { "{'shape':[],'buffer_handle':{'type':'cuda_ipc','size_bytes':64,'permissions':'read_only'}}",
      TN_ERR_CORRUPT, 28, "buffer_handle: expected the member handle but found none" },
    { "{'shape':[],'buffer_handle':{'type':'cuda_ipc','handle':3,'permissions':'read_only'}}", TN_ERR_CORRUPT,
      28, "buffer_handle: expected the member size_bytes but found none" },
    { "{'shape':[],'buffer_handle':{'type':'cuda_ipc','handle':3,'size_bytes':64}}", TN_ERR_CORRUPT, 28,
      "buffer_handle: expected the member permissions but found none" },
    { "{'shape':[],'mapping':{'cpu_address':'0x40','access_mode':'cpu_device'}}", TN_ERR_CORRUPT, 22,
      "mapping: expected the member device_address but found none" },
    { "{'shape':[],'mapping':{'device_address':'0x40','cpu_address':'0x40'}}", TN_ERR_CORRUPT, 22,
      "mapping: expected the member access_mode but found none" },
    { "{'shape':[],'mapping':{}}", TN_ERR_CORRUPT, 22,
      "mapping: expected the member device_address but found none" },
    { "{'shape':[],'padding':{'fill':9007199254740993}}", TN_ERR_LIMIT, 30,
      "padding.fill: expected an integer that a double keeps exactly but found 9007199254740993" },
    { "{'shape':[],'padding':{'fill':-9007199254740993}}", TN_ERR_LIMIT, 30,
      "padding.fill: expected an integer that a double keeps exactly but found -9007199254740993" },
    { "{'shape':[],'padding':{'fill':9223372036854775807}}", TN_ERR_LIMIT, 30,
      "padding.fill: expected an integer that a double keeps exactly but found 9223372036854775807" },
    { "{'shape':[],'padding':{'fill':18446744073709551615}}", TN_ERR_LIMIT, 30,
      "padding.fill: expected an integer that a double keeps exactly but found 18446744073709551615" },
    { "{'shape':[],'padding':{'fill':100000000000000000000001}}", TN_ERR_LIMIT, 30,
      "padding.fill: expected an integer that a double keeps exactly but found 100000000000000000000001" },
    { "{'shape':[],'buffer_handle':{'type':'fd'}}", TN_ERR_CORRUPT, 36,
      "buffer_handle.type: expected dma_buf_fd, cuda_ipc, metal_shared or memfd but found \"fd\"" },
    { "{'shape':[],'buffer_handle':{'type':'cuda_ipc','handle':'3'}}", TN_ERR_CORRUPT, 56,
      "buffer_handle.handle: expected a number but found a string" },
    { "{'shape':[],'buffer_handle':{'type':'cuda_ipc','size_bytes':-1}}", TN_ERR_CORRUPT, 60,
      "buffer_handle.size_bytes: expected an integer that is not negative but found -1" },
    { "{'shape':[],'buffer_handle':{'type':'cuda_ipc','permissions':'write'}}", TN_ERR_CORRUPT, 61,
      "buffer_handle.permissions: expected read_write or read_only but found \"write\"" },
    { "{'shape':[],'mapping':[]}", TN_ERR_CORRUPT, 22, "mapping: expected an object but found an array" },
    { "{'shape':[],'mapping':{'device_address':null}}", TN_ERR_CORRUPT, 40,
      "mapping.device_address: expected a string but found null" },
    { "{'shape':[],'mapping':{'device_address':4096}}", TN_ERR_CORRUPT, 40,
      "mapping.device_address: expected a string but found a number" },
    { "{'shape':[],'mapping':{'device_address':'4096'}}", TN_ERR_CORRUPT, 40,
      "mapping.device_address: expected a hexadecimal address of 64 bits as \"0x1f00\" but found \"4096\"" },
    { "{'shape':[],'mapping':{'device_address':'0x'}}", TN_ERR_CORRUPT, 40,
      "mapping.device_address: expected a hexadecimal address of 64 bits as \"0x1f00\" but found \"0x\"" },
    { "{'shape':[],'mapping':{'device_address':'0X1'}}", TN_ERR_CORRUPT, 40,
      "mapping.device_address: expected a hexadecimal address of 64 bits as \"0x1f00\" but found \"0X1\"" },
    { "{'shape':[],'mapping':{'device_address':'0x1g'}}", TN_ERR_CORRUPT, 40,
      "mapping.device_address: expected a hexadecimal address of 64 bits as \"0x1f00\" but found \"0x1g\"" },
    { "{'shape':[],'mapping':{'device_address':'0x10000000000000000'}}", TN_ERR_CORRUPT, 40,
      "mapping.device_address: expected a hexadecimal address of 64 bits as \"0x1f00\" but found "
      "\"0x10000000000000000\"" },
    { "{'shape':[],'mapping':{'cpu_address':false}}", TN_ERR_CORRUPT, 37,
      "mapping.cpu_address: expected a string but found false" },
    { "{'shape':[],'mapping':{'access_mode':'cpu'}}", TN_ERR_CORRUPT, 37,
      "mapping.access_mode: expected device_only or cpu_device but found \"cpu\"" },
};

static void other_blocks_of_the_wrong_kind_are_refused(void)
{
    check_refusals(blocks_refusals, sizeof blocks_refusals / sizeof blocks_refusals[0]);
}

static const refusal sparse_refusals[] = {
    { "{'nnz':1,'shape':[1]}", TN_ERR_CORRUPT, 7,
      "nnz: expected a format (COO or CSR) too but found none" },
    { "{'format':'BSR','shape':[1]}", TN_ERR_CORRUPT, 10, "format: expected COO or CSR but found \"BSR\"" },
    { "{'format':'COO'}", TN_ERR_CORRUPT, 0, "expected a shape but found none" },
    { "{'format':'COO','shape':['n']}", TN_ERR_CORRUPT, 24,
      "shape: expected numbers in the shape of a sparse tensor but found the symbol n" },
    { "{'format':'COO','shape':[1],'row_pointers':[]}", TN_ERR_CORRUPT, 43,
      "row_pointers: expected no such member in format COO but found one" },
    { "{'format':'COO','shape':[1],'column_indices':[]}", TN_ERR_CORRUPT, 45,
      "column_indices: expected no such member in format COO but found one" },
    { "{'format':'CSR','shape':[1],'indices':{'data':[]}}", TN_ERR_CORRUPT, 38,
      "indices: expected no such member in format CSR but found one" },
    { "{'format':'COO','shape':[2,2],'nnz':-1}", TN_ERR_CORRUPT, 36,
      "nnz: expected an integer that is not negative but found -1" },
    { "{'format':'COO','shape':[2,2],'indices':[[0,0]]}", TN_ERR_CORRUPT, 40,
      "indices: expected an object but found an array" },
    { "{'format':'COO','shape':[2,2],'indices':{}}", TN_ERR_CORRUPT, 40,
      "indices: expected data but found none" },
    { "{'format':'COO','shape':[2,2],'indices':{'dtype':'UINT8','data':[]}}", TN_ERR_CORRUPT, 49,
      "indices.dtype: expected INT64 or INT32 but found \"UINT8\"" },
    { "{'format':'COO','shape':[2,2],'indices':{'data':[0]}}", TN_ERR_CORRUPT, 49,
      "indices.data[0]: expected an array but found a number" },
    { "{'format':'COO','shape':[2,2],'indices':{'data':[[]]}}", TN_ERR_CORRUPT, 49,
      "indices.data[0]: expected an index for each dimension but found none" },
    { "{'format':'COO','shape':[2,2],'indices':{'data':[[0,1],[0]]}}", TN_ERR_CORRUPT, 55,
      "indices.data[1]: expected 2 indices, as in the first row, but found 1" },
    { "{'format':'COO','shape':[2,2],'indices':{'data':[[0]]}}", TN_ERR_CORRUPT, 40,
      "indices: expected rows of 2 indices, one for each dimension, but found 1" },
    { "{'format':'COO','shape':[2,2],'indices':{'data':[[0,1.5]]}}", TN_ERR_CORRUPT, 52,
      "indices.data[0][1]: expected an integer but found 1.5" },
    { "{'format':'COO','shape':[2,2],'indices':{'data':[[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
      "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]]}}",
      TN_ERR_LIMIT, 178, "indices.data[0][64]: expected at most 64 dimensions but found more" },
    { "{'format':'COO','shape':[2,2],'values':7}", TN_ERR_CORRUPT, 39,
      "values: expected an array, or an object of dtype and data, but found a number" },
    { "{'format':'COO','shape':[2,2],'values':{}}", TN_ERR_CORRUPT, 39,
      "values: expected data but found none" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'POSIT','data':[]}}", TN_ERR_CORRUPT, 48,
      "values.dtype: expected a type this build has but found \"POSIT\"" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'INT8','data':[1,128]}}", TN_ERR_CORRUPT, 65,
      "values.data[1]: expected a value of INT8 but found 128" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'INT8','data':[1.0]}}", TN_ERR_CORRUPT, 63,
      "values.data[0]: expected an integer but found 1.0" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'UINT8','data':[-1]}}", TN_ERR_CORRUPT, 64,
      "values.data[0]: expected an integer that is not negative but found -1" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'FLOAT16','data':[65520]}}", TN_ERR_CORRUPT, 66,
      "values.data[0]: expected a value of FLOAT16 but found 65520" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'FLOAT32','data':[1e39]}}", TN_ERR_CORRUPT, 66,
      "values.data[0]: expected a value of FLOAT32 but found 1e39" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'FLOAT32','data':[1,1e99999]}}", TN_ERR_CORRUPT, 68,
      "values.data[1]: expected a value of FLOAT32 but found 1e99999" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'FLOAT64','data':[1e999]}}", TN_ERR_LIMIT, 66,
      "values.data[0]: expected a number that fits a double but found 1e999" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'FP8_E4M3','data':['Infinity']}}", TN_ERR_CORRUPT, 67,
      "values.data[0]: expected a value of FP8_E4M3 but found \"Infinity\"" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'tenon:float4_e2m1','data':['NaN']}}", TN_ERR_CORRUPT,
      76, "values.data[0]: expected a value of float4_e2m1 but found \"NaN\"" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'FLOAT32','data':['inf']}}", TN_ERR_CORRUPT, 66,
      "values.data[0]: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\" but found \"inf\"" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'FLOAT32','data':[null]}}", TN_ERR_CORRUPT, 66,
      "values.data[0]: expected a number but found null" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'tenon:bool','data':[1]}}", TN_ERR_CORRUPT, 69,
      "values.data[0]: expected true or false but found a number" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'tenon:complex64','data':[[1]]}}", TN_ERR_CORRUPT, 74,
      "values.data[0]: expected real and imaginary part but found less" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'tenon:complex64','data':[[1,2,3]]}}", TN_ERR_CORRUPT,
      74, "values.data[0]: expected real and imaginary part but found more" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'tenon:complex64','data':[1]}}", TN_ERR_CORRUPT, 74,
      "values.data[0]: expected an array but found a number" },
    { "{'format':'COO','shape':[2,2],'values':{'dtype':'FLOAT32','data':{'a':1}}}", TN_ERR_CORRUPT, 65,
      "values.data: expected an array but found an object" },
    { "{'format':'COO','shape':[2,2],'values':[1],'dtype':{'base_type':'POSIT'}}", TN_ERR_CORRUPT, 39,
      "values: expected values of a type this build has but found \"POSIT\"" },
    { "{'format':'CSR','shape':[1,1],'row_pointers':[0,1.5]}", TN_ERR_CORRUPT, 48,
      "row_pointers[1]: expected an integer but found 1.5" },
    { "{'format':'CSR','shape':[1,1],'column_indices':{}}", TN_ERR_CORRUPT, 47,
      "column_indices: expected an array but found an object" },
};

static void sparse_blocks_of_the_wrong_kind_are_refused(void)
{
    check_refusals(sparse_refusals, sizeof sparse_refusals / sizeof sparse_refusals[0]);
}

static void lists_longer_than_the_rank_may_be_are_refused(void)
{
    static const char *const heads[] = {
        "{\"shape\":[", "{\"physical_shape\":[", "{\"memory\":{\"strides\":[", "{\"padding\":{\"values\":[",
        "{\"indices\":{\"data\":[["
    };
    static const char *const paths[] = { "shape[64]: ", "physical_shape[64]: ", "memory.strides[64]: ",
                                         "padding.values[64]: ", "indices.data[0][64]: " };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char json[300], text[120];
        int n = snprintf(json, sizeof json, "%s", heads[i]);
        for (int k = 0; k < 200; k++)
            json[n + k] = "1,"[k % 2];
        json[n + 200] = '\0';
        snprintf(text, sizeof text, "%sexpected at most 64 dimensions but found more", paths[i]);
        refuse(json, TN_ERR_LIMIT, (size_t)n + 128, text);
    }
}

static void symbols_of_a_stride_are_limited(void)
{
    char json[300] = "{\"memory\":{\"strides\":[\"a";
    for (int i = 0; i < 64; i++)
        strcat(json, "*a");
    strcat(json, "\"]}}");
    refuse(json, TN_ERR_LIMIT, 22, "memory.strides[0]: expected at most 64 symbols but found more");
}

static void paths_of_any_length_fit_the_message(void)
{
    char json[600] = "{\"shape\":[],\"metadata\":{";
    for (int i = 0; i < 5; i++)
        sprintf(json + strlen(json), "\"%0100d\":{", i);
    tn_descriptors *set = NULL;
    tn_error err;
    CHECK(parse_n(json, strlen(json), &set, &err) == TN_ERR_TRUNCATED);
    CHECK(strncmp(said_of(&err), "metadata[\"0000", 14) == 0);
    CHECK(strstr(line_of(&err), ": expected ") != NULL);
}

static void what_is_not_utf8_is_refused(void)
{
    refuse("{\"shape\":[],\"name\":\"\xff\"}", TN_ERR_CORRUPT, 20,
           "name: expected UTF-8 but found byte 0xFF");
    refuse("}]}],,{{::\"\x80\"", TN_ERR_CORRUPT, 11, "expected UTF-8 but found byte 0x80");
    refuse("{\"shape\":[],\"\xe2\x82", TN_ERR_TRUNCATED, 13, "the text ends inside a UTF-8 character");
}

static void duplicates_are_refused_at_every_level(void)
{
    /* Each member of the full document once more, at the end of its object. */
    static const char *const objects[] = { "\"shape\":{",
                                           "\"constraints\":{",
                                           "\"seq\":{",
                                           "\"dtype\":{",
                                           "\"quantization\":{",
                                           "\"memory\":{",
                                           "\"device\":{",
                                           "\"properties\":{",
                                           "\"padding\":{",
                                           "\"buffer_handle\":{",
                                           "\"mapping\":{",
                                           "{\"any\": [1,2,{",
                                           "{" };
    size_t tried = 0;
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        const char *begin = strstr(full, objects[i]) + strlen(objects[i]);
        for (const char *key = begin;; key++) {
            size_t length = (size_t)(strchr(key + 1, '"') - key) + 1;
            const char *value = key + length + 1;
            char json[4 * sizeof full], path[64];
            int depth = 0;
            const char *end = value;            /* no string of the document has a bracket or a comma in it */
            for (; depth || (*end != ',' && *end != '}' && *end != ']'); end++)
                depth += (*end == '{' || *end == '[') - (*end == '}' || *end == ']');
            snprintf(json, sizeof json, "%.*s,%.*s%s", (int)(end - full), full, (int)(end - key), key, end);
            snprintf(path, sizeof path, "expected every key once but found %.*s again", (int)length, key);
            tn_descriptors *set = NULL;
            tn_error err;
            CHECK(parse_n(json, strlen(json), &set, &err) == TN_ERR_CORRUPT);
            CHECK(strstr(line_of(&err), path) != NULL);
            CHECK(err.offset == (uint64_t)(end - full) + 1 + length + 1);
            tried++;
            if (*end != ',')
                break;
            key = strchr(end, '"') - 1;
        }
    }
    CHECK(tried == 65);
}

static char *many_keys(const char *head, size_t n, const char *tail)
{
    char *json = malloc(strlen(head) + n * 24 + strlen(tail) + 1), *p = json;
    assert_non_null(json);
    p += sprintf(p, "%s", head);
    for (size_t i = 0; i < n; i++)
        p += sprintf(p, "\"k%zu\":{},", i);
    sprintf(p, "%s", tail);
    return json;
}

static void very_many_keys_take_no_quadratic_time(void)
{
    enum { MANY = 100000 };
    static const char *const heads[] = { "{\"shape\":[],", "{\"shape\":[],\"metadata\":{",
                                         "{\"shape\":{\"dimensions\":[],\"constraints\":{" };
    static const char *const tails[] = { "\"k0\":{}}", "\"k0\":{}}}", "\"k0\":{}}}}" };
    static const char *const good[] = { "\"k\":{}}", "\"k\":{}}}", "\"k\":{}}}}" };
    for (int i = 0; i < 3; i++) {
        tn_descriptors *set = NULL;
        tn_error err;
        char *json = many_keys(heads[i], MANY, tails[i]);
        CHECK(parse_n(json, strlen(json), &set, &err) == TN_ERR_CORRUPT);
        CHECK(strstr(line_of(&err), "k0: expected every key once but found \"k0\" again"));
        free(json);
        json = many_keys(heads[i], MANY, good[i]);
        set = parse(json);
        CHECK(tn_descriptors_at(set, 0)->nextra == (i == 0 ? MANY + 1 : 0));
        CHECK(tn_descriptors_at(set, 0)->nconstraints == (i == 2 ? MANY + 1 : 0));
        tn_descriptors_free(set);
        free(json);
    }
}

static void nesting_is_limited_wherever_it_is(void)
{
    static const char *const heads[] = { "", "{\"shape\":[],\"metadata\":{\"a\":", "{\"shape\":[],\"x\":",
                                         "{\"shape\":" };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char json[20000];
        size_t n = strlen(heads[i]);
        memcpy(json, heads[i], n);
        memset(json + n, '[', sizeof json - n);
        tn_descriptors *set = NULL;
        tn_error err;
        tn_status status = parse_n(json, sizeof json, &set, &err);
        CHECK(status == (i == 1 || i == 2 ? TN_ERR_LIMIT : TN_ERR_CORRUPT));
    }
}

/* ---- damage ---- */

static void check_damaged(const char *json, size_t n)
{
    tn_descriptors *set = NULL;
    tn_error err;
    tn_status status = parse_n(json, n, &set, &err);
    if (status == TN_OK) {
        tn_descriptors_free(set);
        return;
    }
    CHECK(set == NULL && err.status == status && err.text[0] && err.offset <= n);
    CHECK(status == TN_ERR_CORRUPT || status == TN_ERR_LIMIT || status == TN_ERR_TRUNCATED);
}

static void every_truncation_is_refused(void)
{
    static const char *const documents[] = { full, coo, csr };
    for (int k = 0; k < 3; k++) {
        for (size_t n = 0; n < strlen(documents[k]); n++) {
            tn_descriptors *set = NULL;
            tn_error err;
            CHECK(parse_n(documents[k], n, &set, &err) == TN_ERR_TRUNCATED);
            CHECK(set == NULL && err.offset <= n && err.text[0]);
        }
    }
}

static void every_flipped_or_missing_byte_is_survived(void)
{
    static const char *const documents[] = { full, coo, csr };
    static const uint8_t flips[] = { 1, 2, 4, 8, 16, 32, 64, 128, 255 };
    for (int k = 0; k < 3; k++) {
        size_t n = strlen(documents[k]);
        char *copy = malloc(n);
        assert_non_null(copy);
        for (size_t i = 0; i < n; i++) {
            for (size_t f = 0; f < sizeof flips; f++) {
                memcpy(copy, documents[k], n);
                copy[i] = (char)(copy[i] ^ flips[f]);
                check_damaged(copy, n);
            }
            memcpy(copy, documents[k], i);
            memcpy(copy + i, documents[k] + i + 1, n - i - 1);
            check_damaged(copy, n - 1);
        }
        free(copy);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(documents_and_shapes_of_the_wrong_kind_are_refused),
        TEST(types_and_memory_of_the_wrong_kind_are_refused),
        TEST(other_blocks_of_the_wrong_kind_are_refused),
        TEST(sparse_blocks_of_the_wrong_kind_are_refused),
        TEST(lists_longer_than_the_rank_may_be_are_refused),
        TEST(symbols_of_a_stride_are_limited),
        TEST(paths_of_any_length_fit_the_message),
        TEST(what_is_not_utf8_is_refused),
        TEST(duplicates_are_refused_at_every_level),
        TEST(very_many_keys_take_no_quadratic_time),
        TEST(nesting_is_limited_wherever_it_is),
        TEST(every_truncation_is_refused),
        TEST(every_flipped_or_missing_byte_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
