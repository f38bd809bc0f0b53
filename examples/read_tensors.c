/* read_tensors FILE [NAME] - shows the first values of tensor NAME, or lists all
 * tensors where there is none of that name.
 *
 *     cc read_tensors.c $(pkg-config --cflags --libs tenon) -o read_tensors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

static void print_tensor(const tn_tensor *tensor)
{
    char name[200];             /* names are untrusted: a terminal gets them escaped */
    const tn_dtype_info *type = tn_dtype_get(tensor->dtype);
    tn_escape(name, sizeof name, tensor->name, strlen(tensor->name));
    printf("%s %s [", name, type ? type->name : "of an unknown type");
    for (uint32_t i = 0; i < tensor->rank; i++)
        printf(i ? ", %lld" : "%lld", (long long)tensor->shape[i]);
    printf("]\n");
}

/* Eight values at most: in place where they lie ready in the file, else from a copy. */
static tn_status print_values(const tn_file *file, const tn_part *part, tn_error *err)
{
    uint64_t count = 0;
    void *copy = part->data ? NULL : malloc(part->nbytes + 1);
    tn_status status = part->data || copy ? TN_OK : TN_ERR_NOMEM;
    if (copy)
        status = tn_part_read(file, part, copy, part->nbytes, err);
    if (status == TN_OK)
        status = tn_shape_count(part->array.rank, part->array.shape, &count);
    for (uint64_t i = 0; i < count && i < 8; i++) {
        char text[64];
        tn_value value = tn_value_get(part->array.dtype, copy ? copy : part->data, i);
        tn_value_format(text, sizeof text, part->array.dtype, value);
        printf("%s%s", text, i + 1 < count && i < 7 ? " " : "\n");
    }
    free(copy);
    return status;
}

int main(int argc, char **argv)
{
    tn_file *file = NULL;
    tn_error err = { .text = "" };
    if (argc < 2) {
        fprintf(stderr, "usage: read_tensors FILE [NAME]\n");
        return 2;
    }
    tn_status status = tn_open(argv[1], NULL, &file, &err);
    const tn_tensor *tensor = status == TN_OK && argc > 2 ? tn_file_find(file, argv[2]) : NULL;
    if (tensor)
        status = print_values(file, &tensor->parts[0], &err);
    for (size_t i = 0; status == TN_OK && !tensor && i < tn_file_count(file); i++)
        print_tensor(tn_file_tensor(file, i));
    if (status != TN_OK) {
        char line[TN_ERROR_LINE];
        tn_error_format(&err, line, sizeof line);
        fprintf(stderr, "read_tensors: %s\n", line);
    }
    tn_close(file);
    return status == TN_OK ? 0 : 1;
}
