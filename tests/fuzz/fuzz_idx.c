/* IDX: whatever the bytes, a file is refused with a reason or holds one array
 * that is all of it but the header. */
#include "scarce_open.h"
#include "scratch.h"
#include "walk.h"

/* Recognised by its name where content cannot tell. */
static void open_named(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "a.idx", "a-idx3-ubyte", "a.idx3-ubyte", "a.idx1-float32", "idx3",
                                         "a-idx-ubyte", "a.idx3-" };
    const char *name = scratch_file(names[size % (sizeof names / sizeof *names)]);
    tn_open_options options = { .size = sizeof options, .format = "idx" };
    tn_error err = { .text = "" };
    tn_file *file = NULL;
    FILE *f = fopen(name, "wb");
    REQUIRE(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
    if (tn_open(name, NULL, &file, &err))
        walk_error(&err, err.status);
    tn_close(file);
    file = NULL;
    if (tn_open(name, &options, &file, &err) == TN_OK)
        REQUIRE(tn_file_tensor(file, 0)->name[0]);
    tn_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_file *file;
    scarce_open(data, size, "idx");
    open_named(data, size);
    if (walk_open(data, size, "idx", &file))
        return 0;
    REQUIRE(tn_file_count(file) == 1);
    const tn_tensor *t = tn_file_tensor(file, 0);
    REQUIRE(t->parts->nbytes == size - 4 - 4 * t->rank && !tn_file_warning(file, 0));
    tn_close(file);
    return 0;
}
