/* SciPy's .npz: the bytes choose arrays, which make a well-formed archive.  It
 * is one tensor, or plain arrays, or is refused with a reason; and a tensor that
 * can be written as SciPy has it is the same when it is read again. */
#include "memory_file.h"
#include "model.h"
#include "scarce_open.h"

#define CHECK REQUIRE
#define assert_non_null(pointer) REQUIRE((pointer) != NULL)
#include "npz_bytes.h"

enum { ARRAYS_MAX = 8, ELEMENTS_MAX = 36, ITEM_MAX = 16 };

static const char *const names[] = { "data", "indices", "indptr", "shape", "format", "row", "col", "coords",
                                     "_is_array", "extra", "offsets" };
static const char *const words[] = { "csr", "coo", "csc", "c\0r", "bsr", "dia" };
static const struct { const char *text; size_t size; } types[] = {
    { "<f4", 4 }, { "<i4", 4 }, { "<i8", 8 }, { ">i4", 4 }, { ">i8", 8 }, { "|b1", 1 }, { "|S3", 3 },
    { "<U3", 12 }, { ">U3", 12 },
    { "<u8", 8 }, { "<f2", 2 }, { "<f16", 16 },
};

static void add_chosen(archive *a, chooser *c)
{
    char name[40], shape[40] = "", header[120];
    uint8_t data[ELEMENTS_MAX * ITEM_MAX];
    size_t which = choose(c, sizeof names / sizeof *names), type = choose(c, sizeof types / sizeof *types),
           rank = choose(c, 4), n = 1;
    unsigned method = choose(c, 2) ? TN_ZIP_DEFLATED : TN_ZIP_STORED;
    for (size_t i = 0; i < rank; i++) {
        size_t extent = choose(c, rank < 3 ? 7 : 4);
        n *= extent;
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%zu,", extent);
    }
    for (size_t i = 0; i < n * types[type].size; i++)
        data[i] = (uint8_t)choose_bits(c);
    if (types[type].size == 3 && n == 1)
        memcpy(data, words[choose(c, sizeof words / sizeof *words)], 3);
    snprintf(name, sizeof name, "%s.npy", names[which]);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", types[type].text,
             choose(c, 8) ? "False" : "True", shape);
    add_array(a, name, method, header, data, n * types[type].size);
}

/* Every part has the same bytes in both. */
static void check_same(const tn_file *a, const tn_file *b)
{
    const tn_tensor *s = tn_file_tensor(a, 0), *t = tn_file_tensor(b, 0);
    REQUIRE(tn_file_count(b) == 1 && s->nparts == t->nparts && s->form == t->form &&
            s->dtype == t->dtype);
    for (uint32_t k = 0; k < s->nparts; k++) {
        uint8_t x[2 * ELEMENTS_MAX * ITEM_MAX], y[2 * ELEMENTS_MAX * ITEM_MAX];
        uint64_t n = s->parts[k].nbytes;
        REQUIRE(n <= sizeof x && t->parts[k].nbytes == n &&
                s->parts[k].array.dtype == t->parts[k].array.dtype);
        REQUIRE(tn_part_read(a, &s->parts[k], x, n, NULL) == TN_OK &&
                tn_part_read(b, &t->parts[k], y, n, NULL) == TN_OK);
        REQUIRE(memcmp(x, y, n) == 0);
    }
}

static void write_again(const tn_file *file)
{
    const tn_create_options create = { .size = sizeof create, .format = "scipy-npz", .jobs = 1 };
    tn_status status;
    tn_file *copy = memory_again(file, &create, &status);
    if (!copy) {
        REQUIRE(status == TN_ERR_UNSUPPORTED || status == TN_ERR_CORRUPT);     /* the latter: indices outside the shape */
        return;
    }
    walk_file(copy);
    check_same(file, copy);
    tn_close(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chooser c = { .bytes = data, .left = size };
    archive a = { .wide = false };
    tn_file *file = NULL;
    size_t n = 1 + choose(&c, ARRAYS_MAX);
    for (size_t i = 0; i < n; i++)
        add_chosen(&a, &c);
    end_archive(&a);
    tn_status plain = walk_bytes(a.bytes.data, a.bytes.size, NULL),
              strict = walk_bytes(a.bytes.data, a.bytes.size, "scipy-npz");
    scarce_open(a.bytes.data, a.bytes.size, "scipy-npz");
    REQUIRE(plain == strict || strict == TN_ERR_UNSUPPORTED);
    if (!strict) {
        REQUIRE(tn_open_memory(a.bytes.data, a.bytes.size, NULL, &file, NULL) == TN_OK &&
                tn_file_count(file) == 1);
        write_again(file);
        tn_close(file);
    }
    tn_buf_free(&a.bytes);
    return 0;
}
