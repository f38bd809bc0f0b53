/* The bytes choose tensors, types, metadata and options: what is written is
 * what is read, in every container, and still is after a conversion. */
#include "store/writer.h"
#include "memory_file.h"
#define MODEL_SMALL
#include "model.h"
#include "scratch.h"

static tn_create_options choose_options(chooser *c)
{
    static const tn_format_option big = { "ztensor", "byte-order", "big" };
    static const tn_format_option filler = { "safetensors", "filler", "yes" };
    bool ztensor = choose(c, 2) == 0;
    tn_create_options options = { .size = sizeof options, .format = ztensor ? "ztensor" : "safetensors",
                                  .replace = true,
                                  .jobs = 1 + (unsigned)(choose(c, 16) == 1) };
    if (ztensor) {
        options.encoding = choose(c, 4) == 3 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW;
        options.checksum = (tn_checksum)choose(c, 3);
        uint64_t more = choose(c, 12);
        options.level = (int)(more % 6) - 2;
        options.format_options = &big;
        options.nformat_options = more >= 6;
        options.align = choose(c, 2) ? 0 : UINT64_C(64) << choose(c, 7);
    } else {
        options.format_options = &filler;
        options.nformat_options = choose(c, 2);
        options.align = options.nformat_options || choose(c, 2) ? UINT64_C(8) << choose(c, 7) : 0;
    }
    return options;
}

/* Where a file goes: into memory, or (a folder takes most of the time) into one. */
typedef struct place {
    const char *path;           /* or NULL */
    int         fd;
} place;

static place choose_place(chooser *c, const char *name, unsigned number)
{
    static char paths[MEMORY_FILES][120];
    if (choose(c, 16) != 1)
        return (place){ .fd = memory_file(number) };
    snprintf(paths[number], sizeof paths[number], "%s", scratch_file(name));
    return (place){ .path = paths[number], .fd = -1 };
}

static tn_file *open_checked(const place *at, const char *format, chooser *c)
{
    tn_file *file = NULL;
    tn_error err = { 0 };
    tn_open_options how = { .size = sizeof how, .format = choose(c, 2) ? format : NULL };
    how.io = choose(c, 2) ? TN_IO_PREAD : TN_IO_MMAP;
    REQUIRE((at->path ? tn_open(at->path, &how, &file, &err)
             : tn_open_fd(at->fd, &how, &file, &err)) == TN_OK);
    return file;
}

static tn_status write_model(const model *m, chooser *c, const place *at, const tn_create_options *options,
                             tn_error *err)
{
    tn_writer *w;
    tn_status status = tn_create(at->path ? at->path : "memory", options, &w, err);
    if (status)
        return status;
    w->fd = at->fd;
    return model_put(m, c, w, err);
}

/* From one container to another and back, by options of its own. */
static void check_conversion(const model *m, const tn_file *file, chooser *c)
{
    tn_create_options create = choose_options(c);
    tn_convert_options options = { .size = sizeof options, .create = &create, .encoding = TN_CHOOSE,
                                   .checksum = TN_CHOOSE };
    tn_error err = { 0 };
    place at = choose_place(c, "converted", 1);
    tn_status status = at.path ? tn_convert(file, at.path, &options, NULL, &err)
            : tn_convert_into(file, at.fd, "converted", &options, &err);
    if (status) {
        REQUIRE(err.status == TN_ERR_ARGUMENT && create.align && create.align < 64);
        return;
    }
    tn_file *copy = open_checked(&at, create.format, c);
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
    place at = choose_place(&c, "made", 0);
    model_make(&m, &c);
    tn_status status = write_model(&m, &c, &at, &options, &err);
    if (status) {
        snprintf(require_note, sizeof require_note, "(%.150s)", err.text);
        /* less than a container's own */
        REQUIRE(status == TN_ERR_ARGUMENT && options.align && options.align < 64);
    } else {
        tn_file *file = open_checked(&at, options.format, &c);
        model_check(&m, file, options.checksum);
        walk_file(file);
        check_conversion(&m, file, &c);
        tn_close(file);
    }
    model_free(&m);
    return 0;
}
