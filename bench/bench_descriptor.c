/* bench_descriptor.c - how fast a document of many descriptors is read.
 *
 *     bench-descriptor COUNT RUNS
 *
 * Prints the size of the document, then the seconds of each run, one per line.
 * The document is what tenon describe writes: every usual member, indented. */
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

static const tn_wia_extent dims[] = { { 4096, NULL }, { 4096, NULL } };
static const tn_wia_product strides[] = { { 4096, NULL, 0 }, { 1, NULL, 0 } };

/* Descriptors of the weights of a mixture-of-experts model, as a JSON array. */
static tn_status make_document(size_t count, char **json, size_t *size, tn_error *err)
{
    tn_descriptor *all = calloc(count, sizeof *all);
    char (*names)[64] = calloc(count, sizeof *names);
    tn_status status = TN_ERR_NOMEM;
    for (size_t i = 0; i < count && all && names; i++) {
        snprintf(names[i], sizeof names[i], "model.layers.%zu.mlp.experts.%zu.down_proj.weight", i / 64,
                 i % 64);
        all[i] = (tn_descriptor){
            .version = TN_WIA_VERSION, .tensor_id = "7e7eb0f9-0cb3-4368-a4cb-a91565892a66", .name = names[i],
            .rank = 2, .dimensions = dims, .dtype = TN_BFLOAT16, .has_memory = true, .strides = strides,
            .offset_bytes = i * (UINT64_C(2) << 24), .has_total = true,
            .total_bytes = (i + 1) * (UINT64_C(2) << 24),
            .alignment = 256, .has_properties = true, .is_contiguous = true, .zero_copy_compatible = true,
        };
    }
    if (all && names)
        status = tn_descriptors_write(all, count, true, json, size, err);
    free(names);
    free(all);
    return status;
}

int main(int argc, char **argv)
{
    tn_error err = { .text = "out of memory" };
    char *json;
    size_t size, count = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    if (!count) {
        fprintf(stderr, "usage: bench-descriptor COUNT RUNS\n");
        return 2;
    }
    tn_status status = make_document(count, &json, &size, &err);
    if (!status)
        printf("%zu\n", size);
    for (int run = atoi(argv[2]); run > 0 && !status; run--) {
        tn_descriptors *set;
        double began = now();
        status = tn_descriptors_parse(json, size, &set, &err);
        if (status)
            break;
        tn_descriptors_free(set);
        printf("%.6f\n", now() - began);
    }
    if (status) {
        fprintf(stderr, "bench-descriptor: %s\n", err.text);
        return 1;
    }
    free(json);
    return 0;
}
