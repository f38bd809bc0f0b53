/* make_many.c - a file of very many small tensors, named as those of a
 * mixture-of-experts model are.
 *
 *     make-many FILE COUNT
 *
 * The suffix of FILE chooses the container. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

enum { EXPERTS = 512 };

static tn_status add_tensor(tn_writer *w, int i, tn_error *err)
{
    static const char *const roles[] = { "gate_proj", "up_proj", "down_proj" };
    static const int64_t shape[] = { 2, 2 };
    static const float data[4] = { 0.5f, -1.25f, 2.0f, 0.0f };
    char name[100];
    snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%d.%s.weight", i / 3 / EXPERTS, i / 3 % EXPERTS,
             roles[i % 3]);
    tn_part part = {
        .role = "data", .array = { .dtype = TN_FLOAT32, .rank = 2, .shape = shape }, .nbytes = sizeof data,
        .data = data,
    };
    tn_tensor tensor = {
        .name = name, .form = TN_FORM_DENSE, .dtype = TN_FLOAT32, .rank = 2, .shape = shape, .parts = &part,
        .nparts = 1,
    };
    return tn_writer_add(w, &tensor, err);
}

static tn_status write_many(const char *path, int count, tn_error *err)
{
    tn_create_options options = { .size = sizeof options, .replace = true };
    tn_writer *w;
    tn_status status = tn_create(path, &options, &w, err);
    if (status)
        return status;
    for (int i = 0; i < count && !status; i++)
        status = add_tensor(w, i, err);
    if (!status)
        return tn_writer_finish(w, err);
    tn_writer_abandon(w);
    return status;
}

int main(int argc, char **argv)
{
    tn_error err;
    if (argc != 3 || atoi(argv[2]) < 1) {
        fprintf(stderr, "usage: make-many FILE COUNT\n");
        return 2;
    }
    if (write_many(argv[1], atoi(argv[2]), &err) == TN_OK)
        return 0;
    fprintf(stderr, "make-many: %s: %s\n", argv[1], err.text);
    return 1;
}
