/* The bytes choose tensors, types, metadata and options: what is written is
 * what is read, in every container, and still is after a conversion. */
#include "model.h"
#include "scratch.h"
#include "walk.h"

static tn_create_options choose_options(chooser *c)
{
    bool ztensor = choose(c, 2) == 0;
    tn_create_options options = { .size = sizeof options, .format = ztensor ? "ztensor" : "safetensors", .replace = true,
                                  .jobs = 1 + (unsigned)(choose(c, 8) == 0) };
    if (ztensor) {
        options.encoding = choose(c, 2) ? TN_ENCODING_ZSTD : TN_ENCODING_RAW;
        options.checksum = (tn_checksum)choose(c, 3);
        options.level = (int)choose(c, 6) - 2;
        options.align = choose(c, 2) ? 0 : UINT64_C(64) << choose(c, 7);
    } else {
        options.filler = choose(c, 2);
        options.align = options.filler || choose(c, 2) ? UINT64_C(8) << choose(c, 7) : 0;
    }
    return options;
}

static tn_file *open_checked(const char *name, chooser *c)
{
    tn_file *file = NULL;
    tn_error err = { 0 };
    tn_open_options how = { .size = sizeof how, .io = choose(c, 2) ? TN_IO_PREAD : TN_IO_MMAP };
    REQUIRE(tn_open(scratch_file(name), &how, &file, &err) == TN_OK);
    return file;
}

/* From one container to another and back, by options of its own. */
static void check_conversion(const model *m, const tn_file *file, chooser *c)
{
    tn_create_options create = choose_options(c);
    tn_convert_options options = { .size = sizeof options, .create = &create, .encoding = TN_CHOOSE, .checksum = TN_CHOOSE };
    tn_error err = { 0 };
    if (tn_convert(file, scratch_file("converted"), &options, NULL, &err)) {
        REQUIRE(err.status == TN_ERR_ARGUMENT && create.align && create.align < 64);
        return;
    }
    tn_file *copy = open_checked("converted", c);
    model_check(m, copy, create.checksum);
    require_same_tensors(file, copy);
    tn_close(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    model m;
    chooser c = { .bytes = data, .left = size };
    tn_error err = { 0 };
    tn_create_options options = choose_options(&c);
    model_make(&m, &c);
    tn_status status = model_write(&m, &c, scratch_file("made"), &options, &err);
    if (status) {
        snprintf(require_note, sizeof require_note, "(%.150s)", err.text);
        REQUIRE(status == TN_ERR_ARGUMENT && options.align && options.align < 64);      /* less than a container's own */
    } else {
        tn_file *file = open_checked("made", &c);
        model_check(&m, file, options.checksum);
        walk_file(file);
        check_conversion(&m, file, &c);
        tn_close(file);
    }
    model_free(&m);
    return 0;
}
