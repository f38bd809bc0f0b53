/* ONNX: whatever the bytes, a model is refused with a reason or lists tensors that can be read; what can be
 * written again reads back equal.  The same bytes as a graph for another tensor are refused or make a model. */
#include "format_option.h"
#include "memory_file.h"
#include "mutate_proto.h"
#include "scarce_open.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_proto(data, size, max_size, seed);
}

/* A file with one tensor, as most seeds have it: w, float32 [4]. */
static tn_file *one_tensor(void)
{
    static const uint8_t bytes[] = "\x38\0\0\0\0\0\0\0" "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}"
                                   " 0123456789abcdef";
    tn_file *file = NULL;
    REQUIRE(tn_open_memory(bytes, sizeof bytes - 1, NULL, &file, NULL) == TN_OK);
    return file;
}

/* The graph is a file, which has a name by its descriptor. */
static void replace(const uint8_t *data, size_t size)
{
    char path[40];
    int graph = memory_file(1), out = memory_file(2);
    tn_error err = { .text = "" };
    REQUIRE(write(graph, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", graph);
    const tn_create_options create = { .size = sizeof create, .format = "onnx", .jobs = 1,
                                       FORMAT_OPTION("onnx", "graph", path) };
    const tn_convert_options options = { .size = sizeof options, .create = &create };
    tn_file *one = one_tensor(), *made = NULL;
    tn_status status = tn_convert_into(one, out, "made.onnx", &options, &err);
    if (status)
        walk_error(&err, status);
    else
        REQUIRE(tn_open_fd(out, &(tn_open_options){ .size = sizeof(tn_open_options), .format = "onnx" }, &made,
                           &err) == TN_OK);
    tn_close(made);
    tn_close(one);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    scarce_open(data, size, "onnx");
    replace(data, size);
    if (walk_open(data, size, "onnx", &file))
        return 0;
    const tn_create_options create = { .size = sizeof create, .format = "onnx", .jobs = 1 };
    if (walk_is_small(file))
        memory_same(file, &create);
    tn_close(file);
    return 0;
}
