/* Memory that runs out at every single allocation, those inside libzstd, zlib
 * and libcrypto included: always TN_ERR_NOMEM, nothing lost, nothing left behind.
 *
 * The linker gives our malloc() and friends to the library (see CMakeLists.txt:
 * --wrap), and the three libraries are asked to use them. */
#include "support.h"
#include "format_option.h"

#include <stdatomic.h>

#include <openssl/crypto.h>
#include <zlib.h>
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "files.h"
#include "make.h"
#include "model.h"
#include "values.h"

#include <tenon/descriptor.h>
#include <tenon/sparse.h>

/* ---- counting ---- */

static atomic_long allocations;         /* since the last reset */
static atomic_long fail_first, fail_last;   /* the numbers of those that fail; 0: none */
static atomic_long living;              /* blocks not freed */
static atomic_bool failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void  __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void  __wrap_free(void *p);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void);
int   __real_inflateInit2_(z_streamp stream, int bits, const char *version, int size);
int   __wrap_inflateInit2_(z_streamp stream, int bits, const char *version, int size);

static bool must_fail(void)
{
    long k = atomic_fetch_add(&allocations, 1) + 1;
    if (k < atomic_load(&fail_first) || k > atomic_load(&fail_last))
        return false;
    atomic_store(&failed, true);
    return true;
}

static void *count(void *p)
{
    if (p)
        atomic_fetch_add(&living, 1);
    return p;
}

void *__wrap_malloc(size_t n) { return must_fail() ? NULL : count(__real_malloc(n)); }
void *__wrap_calloc(size_t n, size_t size) { return must_fail() ? NULL : count(__real_calloc(n, size)); }
void *__wrap_aligned_alloc(size_t align, size_t n)
{
    return must_fail() ? NULL : count(__real_aligned_alloc(align, n));
}

void *__wrap_realloc(void *old, size_t n)
{
    if (must_fail())
        return NULL;
    void *p = __real_realloc(old, n);
    return old ? p : count(p);
}

void __wrap_free(void *p)
{
    if (p)
        atomic_fetch_sub(&living, 1);
    __real_free(p);
}

static void *zstd_malloc(void *opaque, size_t n) { (void)opaque; return __wrap_malloc(n); }
static void zstd_free(void *opaque, void *p) { (void)opaque; __wrap_free(p); }
static const ZSTD_customMem zstd_memory = { zstd_malloc, zstd_free, NULL };

ZSTD_CCtx *__wrap_ZSTD_createCCtx(void) { return ZSTD_createCCtx_advanced(zstd_memory); }
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void) { return ZSTD_createDCtx_advanced(zstd_memory); }

static voidpf zlib_malloc(voidpf opaque, uInt n, uInt size)
{
    (void)opaque;
    return __wrap_malloc((size_t)n * size);
}
static void zlib_free(voidpf opaque, voidpf p) { (void)opaque; __wrap_free(p); }

int __wrap_inflateInit2_(z_streamp stream, int bits, const char *version, int size)
{
    stream->zalloc = zlib_malloc;
    stream->zfree = zlib_free;
    return __real_inflateInit2_(stream, bits, version, size);
}

static void *crypto_malloc(size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return __wrap_malloc(n);
}
static void *crypto_realloc(void *p, size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return __wrap_realloc(p, n);
}
static void crypto_free(void *p, const char *file, int line) { (void)file; (void)line; __wrap_free(p); }

/* ---- what is done while memory runs out ---- */

static unsigned jobs;

static tn_status convert(const tn_file *f, const char *name, tn_encoding encoding, tn_checksum checksum,
                         tn_error *err)
{
    const tn_create_options create = { .size = sizeof create, .replace = true, .jobs = jobs,
                                       .encoding = encoding,
                                       .checksum = checksum };
    tn_convert_options options = { .size = sizeof options, .create = &create, .encoding = TN_CHOOSE,
                                   .checksum = TN_CHOOSE };
    return tn_convert(f, in_folder(name).text, &options, NULL, err);
}

static void ignore_verdict(void *context, const tn_tensor *t, const tn_part *p, tn_verdict verdict,
                           const tn_error *why)
{
    (void)context;
    (void)t;
    (void)p;
    REQUIRE(verdict != TN_VERDICT_BAD || why->status == TN_ERR_NOMEM);
}

static tn_status read_all(const tn_file *f, tn_error *err)
{
    static uint8_t buffer[MODEL_BYTES];
    tn_status status = TN_OK;
    for (size_t i = 0; i < tn_file_count(f) && !status; i++) {
        const tn_part *p = tn_file_tensor(f, i)->parts;
        status = tn_part_read(f, p, buffer, p->nbytes, err);
    }
    return status;
}

static tn_status use(const char *name, tn_error *err)
{
    tn_file *f, *g;
    size_t different = 0;
    tn_verify_options verify = { .size = sizeof verify, .jobs = jobs };
    tn_compare_options compare = { .size = sizeof compare, .jobs = jobs };
    tn_status status = tn_open(in_folder(name).text, NULL, &f, err);
    if (status)
        return status;
    if (!status)
        status = read_all(f, err);
    if (!status)
        status = tn_verify(f, &verify, ignore_verdict, err);
    if (!status)
        status = convert(f, "out.zt", TN_ENCODING_ZSTD, TN_CHECKSUM_SHA256, err);
    if (!status)
        status = convert(f, "out.safetensors", TN_ENCODING_RAW, TN_CHECKSUM_NONE, err);
    if (!status) {
        status = tn_open(in_folder("out.safetensors").text, NULL, &g, err);
        if (!status) {
            status = tn_compare(f, g, &compare, NULL, &different, err);
            tn_close(g);
        }
    }
    tn_close(f);
    REQUIRE(status || different == 0);
    return status;
}

static tn_status edit(const char *name, tn_error *err)
{
    static const tn_meta_edit edits[] = { { .key = "new", .text = "value" }, { .key = "new" } };
    return tn_edit_meta(in_folder(name).text, edits, 2, NULL, NULL, err);
}

static tn_status remake(const tn_file *f, const char *name, const char *cast, const char *layout,
                        const char *pad, tn_error *err)
{
    const tn_rule rules[] = { { "cast", cast }, { "layout", layout }, { "pad", pad } };
    const tn_create_options create = { .size = sizeof create, .replace = true, .jobs = jobs };
    tn_convert_options o = { .size = sizeof o, .create = &create, .rules = rules, .nrules = pad ? 3 : 2,
                             .encoding = TN_CHOOSE };
    return tn_convert(f, in_folder(name).text, &o, NULL, err);
}

static void ignore_finding(void *context, const tn_wia_finding *finding)
{
    (void)context;
    REQUIRE(finding->remark);
}

/* Descriptors of all tensors: made, checked, written, parsed. */
static tn_status describe(const tn_file *f, tn_error *err)
{
    tn_descriptors *set, *again;
    const tn_check_options check = { .size = sizeof check, .report = ignore_finding };
    char *json = NULL;
    size_t size = 0, wrong;
    tn_status status = tn_describe(f, NULL, &set, err);
    if (status)
        return status;
    size_t n = tn_descriptors_count(set);
    for (size_t i = 0; i < n && !status; i++)
        status = tn_descriptor_check(tn_descriptors_at(set, i), &check, &wrong, err);
    if (!status)
        status = tn_descriptors_write(tn_descriptors_at(set, 0), n, true, &json, &size, err);
    if (!status)
        status = tn_descriptors_parse(json, size, &again, err);
    if (!status)
        tn_descriptors_free(again);
    free(json);
    tn_descriptors_free(set);
    return status;
}

static tn_status open_and(const char *name, tn_status (*action)(const tn_file *, tn_error *), tn_error *err)
{
    tn_file *f;
    tn_status status = tn_open(in_folder(name).text, NULL, &f, err);
    if (status)
        return status;
    status = action(f, err);
    tn_close(f);
    return status;
}

static tn_status quantize(const tn_file *f, tn_error *err)
{
    return remake(f, "out.zt", "x=int4,per=channel,axis=1,zero=asymmetric,percentile=99", "x=NHWC,from=NCHW",
                  "x=C=4", err);
}

static tn_status dequantize(const tn_file *f, tn_error *err)
{
    return remake(f, "out.json", "x=f16", "x=NCHW", NULL, err);
}

static tn_status arrange(const char *name, tn_error *err)
{
    tn_status status = open_and(name, quantize, err);
    if (!status)
        status = open_and("out.zt", describe, err);
    if (!status)
        status = open_and("out.zt", dequantize, err);
    return status ? status : open_and("out.json", describe, err);
}

/* All parts of all tensors, read and verified. */
static tn_status read_parts(const tn_file *f, tn_error *err)
{
    static uint8_t buffer[MODEL_BYTES];
    const tn_verify_options verify = { .size = sizeof verify, .jobs = jobs };
    tn_status status = TN_OK;
    for (size_t i = 0; i < tn_file_count(f); i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        for (uint32_t k = 0; k < t->nparts && !status; k++)
            status = tn_part_read(f, &t->parts[k], buffer, t->parts[k].nbytes, err);
    }
    return status ? status : tn_verify(f, &verify, ignore_verdict, err);
}

/* Sparse tensors that stand in a text as digits, read and written as such. */
static tn_status use_document(const char *name, tn_error *err)
{
    tn_file *f;
    tn_status status = tn_open(in_folder(name).text, NULL, &f, err);
    if (status)
        return status;
    status = read_parts(f, err);
    if (!status)
        status = convert(f, "out.json", TN_ENCODING_RAW, TN_CHECKSUM_NONE, err);
    if (!status)
        status = describe(f, err);
    tn_close(f);
    return status;
}

static tn_status convert_form(const tn_file *f, const char *name, const char *form, tn_error *err)
{
    const tn_rule rule = { "form", form };
    const tn_create_options create = { .size = sizeof create, .replace = true, .jobs = jobs };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1,
                                   .encoding = TN_KEEP };
    return tn_convert(f, in_folder(name).text, &o, NULL, err);
}

static tn_status to_csr(const tn_file *f, tn_error *err) { return convert_form(f, "csr.zt", "csr", err); }
static tn_status to_dense(const tn_file *f, tn_error *err)
{
    return convert_form(f, "dense.zt", "dense", err);
}

static tn_status convert_forms(const char *name, tn_error *err)
{
    tn_status status = open_and(name, to_csr, err);
    return status ? status : open_and("csr.zt", to_dense, err);
}

static const char *datatype;            /* what --cast would say */

static tn_status cast_to(const tn_file *f, const char *out, const char *text, tn_error *err)
{
    const tn_create_options create = { .size = sizeof create, .replace = true, .jobs = jobs };
    const tn_rule rule = { "cast", text };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1 };
    return tn_convert(f, in_folder(out).text, &o, NULL, err);
}

static tn_status to_codes(const tn_file *f, tn_error *err) { return cast_to(f, "codes.zt", datatype, err); }
static tn_status to_values(const tn_file *f, tn_error *err)
{
    return cast_to(f, "values.zt", "bfloat16", err);
}

static tn_status convert_codes(const char *name, tn_error *err)
{
    tn_status status = open_and(name, to_codes, err);
    return status ? status : open_and("codes.zt", to_values, err);
}

/* The values of codes, wherever they are looked at. */
static tn_status look_at_values(const tn_file *f, tn_error *err)
{
    const tn_stats_options stats = { .size = sizeof stats, .jobs = jobs };
    const tn_compare_options compare = { .size = sizeof compare, .jobs = jobs };
    const tn_tensor *t = tn_file_tensor(f, 0);
    static float out[24 * 40];
    tn_view *v;
    tn_file *dense;
    tn_status status = tn_stats(f, &stats, NULL, err);
    if (!status)
        status = open_values(f, t, &v, err);
    if (status)
        return status;
    status = get_values(v, 0, 24 * 40, out, sizeof out, err);
    tn_view_close(v);
    if (!status)
        status = tn_open(in_folder("in.zt").text, NULL, &dense, err);
    if (status)
        return status;
    status = tn_compare(dense, f, &compare, NULL, NULL, err);
    tn_close(dense);
    return status;
}

static tn_status use_values(const char *name, tn_error *err) { return open_and(name, look_at_values, err); }

/* Codes that stay codes, in containers with records and in documents. */
static tn_status use_codes(const char *name, tn_error *err)
{
    tn_file *f;
    tn_status status = use_document(name, err);
    if (!status)
        status = open_and("out.json", describe, err);
    if (!status)
        status = tn_open(in_folder(name).text, NULL, &f, err);
    if (status)
        return status;
    const tn_create_options create = { .size = sizeof create, .replace = true, .jobs = jobs,
                                       OCP_NAMES("safetensors") };
    const tn_convert_options options = { .size = sizeof options, .create = &create };
    status = tn_convert(f, in_folder("out.safetensors").text, &options, NULL, err);
    tn_close(f);
    return status ? status : open_and("out.safetensors", read_parts, err);
}

/* Reads a golden file and writes it again, in its own format if that is written. */
static tn_status copy(const char *name, tn_error *err)
{
    const char *format = strstr(name, ".btf")      ? "btf"
                         : strstr(name, ".mtx")    ? "mtx"
                         : strstr(name, "/scipy/") ? "scipy-npz"
                                                   : NULL;
    const char *out = strstr(name, ".npy") ? "out.npy" : "out.npz";
    bool idx = strstr(name, ".idx") != NULL;            /* which is not written */
    const tn_format_option symmetric = { "mtx", "symmetric", "yes" };
    const tn_open_options open = { .size = sizeof open, .format = idx ? "idx" : format },
    again = { .size = sizeof again, .format = format };
    const tn_create_options create = { .size = sizeof create, .format = format, .replace = true, .jobs = jobs,
                                       .drop_names = true,
                                       .format_options = &symmetric,
                                       .nformat_options = strstr(name, "symmetric") != NULL };
    const tn_convert_options options = { .size = sizeof options, .create = &create };
    char golden[PATH_MAX];
    tn_file *f;
    snprintf(golden, sizeof golden, TEST_GOLDEN "%s", name);
    tn_status status = tn_open(golden, &open, &f, err);
    if (status)
        return status;
    status = read_parts(f, err);
    if (!status)
        status = tn_convert(f, in_folder(out).text, &options, NULL, err);
    tn_close(f);
    if (!status)
        status = tn_open(in_folder(out).text, &again, &f, err);
    if (status)
        return status;
    status = read_parts(f, err);
    tn_close(f);
    return status;
}

/* ---- every allocation in turn ---- */

static bool can_do_without;             /* some of the memory only makes it faster */

static void check_failure(const char *name, tn_status (*action)(const char *, tn_error *), long first,
                          long last)
{
    tn_error err = { .text = "" };
    OPENSSL_thread_stop();
    long before = atomic_load(&living);
    snprintf(require_note, sizeof require_note, "(%s, %u jobs, allocations %ld to %ld)", name, jobs, first,
             last);
    atomic_store(&allocations, 0);
    atomic_store(&failed, false);
    atomic_store(&fail_first, first);
    atomic_store(&fail_last, last);
    tn_status status = action(name, &err);
    atomic_store(&fail_last, 0);
    if (status != (atomic_load(&failed) ? TN_ERR_NOMEM : TN_OK) && !(can_do_without && !status))
        fail_msg("%s: status %d: %s", require_note, status, line_of(&err));
    REQUIRE(!status || (err.status == status && strstr(line_of(&err), "memory")));
    OPENSSL_thread_stop();                      /* libcrypto remembers the failures of each thread */
    REQUIRE(atomic_load(&living) == before);
    REQUIRE(count_entries(folder) <= 4);        /* the input and the outputs: no litter */
}

/* Each allocation alone, then each and all behind it. */
static void fail_each(const char *name, tn_status (*action)(const char *, tn_error *))
{
    check_failure(name, action, 0, 0);
    check_failure(name, action, 0, 0);          /* twice: what is kept for good is there now */
    long n = atomic_load(&allocations);
    CHECK(n > 5);
    for (long k = 1; k <= n; k++) {
        check_failure(name, action, k, k);
        check_failure(name, action, k, LONG_MAX);
    }
}

static void make_input(const char *name, uint64_t seed, tn_create_options options)
{
    model m;
    chooser c = { .seed = seed };
    tn_error err = { .text = "" };
    options.size = sizeof options;
    model_make(&m, &c);
    if (model_write(&m, &c, in_folder(name).text, &options, &err))
        fail_msg("%s", line_of(&err));
    model_free(&m);
}

static void zstd_and_sha256_run_out_of_memory(void)
{
    make_input("in.zt", 12, (tn_create_options){ .encoding = TN_ENCODING_ZSTD,
                                                 .checksum = TN_CHECKSUM_SHA256 });
    for (jobs = 1; jobs <= 2; jobs++)
        fail_each("in.zt", use);
}

static void raw_files_run_out_of_memory(void)
{
    make_input("in.zt", 21, (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C });
    for (jobs = 1; jobs <= 2; jobs++)
        fail_each("in.zt", use);
}

static void safetensors_runs_out_of_memory(void)
{
    make_input("in.safetensors", 33, (tn_create_options){ FILLER, .align = 64 });
    jobs = 1;
    fail_each("in.safetensors", use);
}

static void editing_metadata_runs_out_of_memory(void)
{
    make_input("in.zt", 12, (tn_create_options){ 0 });
    make_input("in.safetensors", 12, (tn_create_options){ 0 });
    fail_each("in.zt", edit);
    fail_each("in.safetensors", edit);
}

static void layouts_and_scales_run_out_of_memory(void)
{
    static float values[2 * 3 * 4 * 5];
    const simple x = { .name = "x", .dtype = TN_FLOAT32, .rank = 4, .shape = { 2, 3, 4, 5 }, .data = values };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)i - 50;
    write_file("in.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD }, &x, 1);
    for (jobs = 1; jobs <= 2; jobs++) {
        CHECK(arrange("in.zt", NULL) == TN_OK);         /* libcrypto keeps what it learns of SHA-1 */
        fail_each("in.zt", arrange);
    }
}

static void sparse_documents_run_out_of_memory(void)
{
    put_file(
        "in.json",
        "[{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"s\",\"shape\":{\"dimensions\":[3,4],\"layout\":\"RC\"},"
        "\"dtype\":{\"base_type\":\"FLOAT32\"},\"format\":\"COO\",\"nnz\":3,"
        "\"indices\":{\"dtype\":\"INT32\",\"data\":[[0,1],[1,0],[2,3]]},"
        "\"values\":{\"dtype\":\"FLOAT32\",\"data\":[1.5,\"-Infinity\",2e-3]}},"
        "{\"version\":\"WIA-AI-011-v1.0\",\"name\":\"c\",\"format\":\"CSR\",\"shape\":[2,3],\"row_pointers\":"
        "[0,1,3],"
        "\"column_indices\":[2,0,1],\"values\":[1,-2,0.25],\"tenon\":{\"index\":\"int64\"}}]");
    for (jobs = 1; jobs <= 2; jobs++)
        fail_each("in.json", use_document);
}

/* ---- forms ---- */

enum { ROWS = 1100, COLUMNS = 1024, UNSORTED = (1 << 17) + 100 };

static float elements[ROWS * COLUMNS];          /* more than 4 MiB: gone through once */
static int64_t rows[UNSORTED][2];

/* One in ten is there. */
static void fill_elements(void)
{
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        elements[i] = i % 10 ? 0 : (float)i;
}

static tn_tensor dense_of(tn_part *part, const int64_t *shape)
{
    *part = (tn_part){ .role = "data", .array = { TN_FLOAT32, 2, shape, NULL }, .data = elements };
    return (tn_tensor){ .name = "x", .form = TN_FORM_DENSE, .dtype = TN_FLOAT32, .rank = 2, .shape = shape,
                        .parts = part, .nparts = 1 };
}

/* `n` entries, the first of them last in order; all others are near each other, and have to be dealt again
 * where they are many. */
static void fill_rows(const int64_t *shape, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t place = n - i;
        rows[i][0] = i ? place / shape[1] : shape[0] - 1;
        rows[i][1] = i ? place % shape[1] : shape[1] - 1;
    }
}

static tn_tensor unsorted_of(tn_part parts[2], const int64_t *shape, const int64_t *count)
{
    parts[0] = (tn_part){ .role = "values", .array = { TN_FLOAT32, 1, count, NULL }, .data = elements };
    parts[1] = (tn_part){ .role = "indices", .array = { TN_INT64, 2, count, NULL }, .data = rows };
    return (tn_tensor){ .name = "x", .form = TN_FORM_COO, .dtype = TN_FLOAT32, .rank = 2, .shape = shape,
                        .parts = parts, .nparts = 2 };
}

/* Into another form and from there into a third. */
static tn_status reform_twice(const tn_tensor *t, tn_form form, tn_form then, tn_tensor **again,
                              tn_error *err)
{
    const tn_sparse_options options = { .size = sizeof options, .jobs = jobs };
    tn_tensor *made;
    tn_status status = tn_convert_form(t, form, &options, &made, err);
    if (status)
        return status;
    status = tn_convert_form(made, then, &options, again, err);
    tn_tensor_free(made);
    return status;
}

static tn_status reform_dense(const char *name, tn_error *err)
{
    static const int64_t shape[] = { ROWS, COLUMNS };
    tn_part part;
    tn_tensor *made;
    const tn_tensor t = dense_of(&part, shape);
    (void)name;
    tn_status status = reform_twice(&t, TN_FORM_CSR, TN_FORM_DENSE, &made, err);
    if (status)
        return status;
    REQUIRE(memcmp(made->parts[0].data, elements, sizeof elements) == 0);
    tn_tensor_free(made);
    return TN_OK;
}

static const int64_t wide[] = { 1 << 20, 1 << 20 };

static tn_status reform_unsorted(const char *name, tn_error *err)
{
    static const int64_t count[] = { UNSORTED, 2 };
    tn_part parts[2];
    tn_tensor *made;
    const tn_tensor t = unsorted_of(parts, wide, count);
    (void)name;
    tn_status status = reform_twice(&t, TN_FORM_COO, TN_FORM_CSR, &made, err);
    if (status)
        return status;
    REQUIRE(made->parts[0].array.shape[0] == UNSORTED);
    tn_tensor_free(made);
    return TN_OK;
}

static void forms_in_memory_run_out_of_it(void)
{
    fill_rows(wide, UNSORTED);
    for (jobs = 1; jobs <= 2; jobs++) {
        can_do_without = true;          /* what would save reading a large tensor twice */
        fail_each("dense", reform_dense);
        can_do_without = false;
        fail_each("unsorted", reform_unsorted);
    }
}

static void write_tensor(const char *name, const tn_tensor *t, tn_encoding encoding)
{
    const tn_create_options o = { .size = sizeof o, .replace = true, .encoding = encoding };
    tn_writer *w;
    CHECK(tn_create(in_folder(name).text, &o, &w, NULL) == TN_OK && tn_writer_add(w, t, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
}

static void conversions_of_form_run_out_of_memory(void)
{
    static const int64_t shape[] = { 30, 40 }, count[] = { 50, 2 };
    static const tn_encoding encodings[] = { TN_ENCODING_RAW, TN_ENCODING_ZSTD };
    tn_part part, parts[2];
    fill_rows(shape, count[0]);
    for (size_t i = 0; i < 2; i++) {
        tn_tensor t = dense_of(&part, shape);
        write_tensor("in.zt", &t, encodings[i]);
        for (jobs = 1; jobs <= 2; jobs++)
            fail_each("in.zt", convert_forms);
        t = unsorted_of(parts, shape, count);
        write_tensor("in.zt", &t, encodings[i]);
        for (jobs = 1; jobs <= 2; jobs++)
            fail_each("in.zt", convert_forms);
    }
    CHECK(count_entries(folder) == 3);
}

static void datatypes_run_out_of_memory(void)
{
    static const int64_t shape[] = { 30, 40 };
    static const char *const all[] = { "nvfp4", "icb44fi2_e32s8", "e2m1fnuz|e8m0_t32d0",
                                       "int8|float16,rotate=hadamard8", "2:4",
                                       "mxfp4,virtual=yes", "uint4_fi32,rotate=walsh4,virtual=yes" };
    tn_part part;
    tn_tensor t = dense_of(&part, shape);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        datatype = all[i];
        write_tensor("in.zt", &t, i % 2 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW);
        for (jobs = 1; jobs <= 2; jobs++) {
            CHECK(convert_codes("in.zt", NULL) == TN_OK);
            fail_each("in.zt", convert_codes);
        }
    }
    CHECK(count_entries(folder) == 3);
}

/* A tensor whose name is so long that it takes memory to look it up is not taken for one that the data does not
 * have. */
static void importance_runs_out_of_memory(void)
{
    enum { LONG = 20000 };
    static const int64_t shape[] = { 6, 64 };
    static float sums[64];
    static const float counts[] = { 1 };
    static char cast[PATH_MAX + 40], name[LONG], of_sums[LONG + 10], of_counts[LONG + 10];
    memset(name, 'x', LONG - 1);
    snprintf(of_sums, sizeof of_sums, "%s.in_sum2", name);
    snprintf(of_counts, sizeof of_counts, "%s.counts", name);
    const simple data[] = {
        { .name = of_sums, .dtype = TN_FLOAT32, .rank = 2, .shape = { 1, 64 }, .data = sums },
        { .name = of_counts, .dtype = TN_FLOAT32, .rank = 2, .shape = { 1, 1 }, .data = counts },
    };
    tn_part part;
    tn_tensor t = dense_of(&part, shape);
    t.name = name;
    write_tensor("in.zt", &t, TN_ENCODING_RAW);
    write_file("imatrix.zt", (tn_create_options){ 0 }, data, 2);
    snprintf(cast, sizeof cast, "q4_0,importance=%s", in_folder("imatrix.zt").text);
    datatype = cast;
    for (jobs = 1; jobs <= 2; jobs++)
        fail_each("in.zt", convert_codes);
    CHECK(count_entries(folder) == 4);
}

static void values_of_codes_run_out_of_memory(void)
{
    static const int64_t shape[] = { 24, 40 };
    static const char *const all[] = { "nvfp4", "e2m1fnuz|e8m0_t32d0,rotate=walsh8",
                                       "int8|float16,rotate=hadamard8" };
    tn_part part;
    tn_tensor t = dense_of(&part, shape);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        datatype = all[i];
        write_tensor("in.zt", &t, i == 0 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW);
        CHECK(open_and("in.zt", to_codes, NULL) == TN_OK);
        for (jobs = 1; jobs <= 2; jobs++)
            fail_each("codes.zt", use_values);
    }
}

static void codes_in_files_run_out_of_memory(void)
{
    static const int64_t shape[] = { 30, 40 };
    tn_part part;
    tn_tensor t = dense_of(&part, shape);
    datatype = "cb31[0.5:1:1.5;1:2:3]_e2m3fnuz|e8m0_t32s8,rotate=walsh8:3";
    jobs = 1;
    write_tensor("in.zt", &t, TN_ENCODING_RAW);
    CHECK(open_and("in.zt", to_codes, NULL) == TN_OK && unlink(in_folder("in.zt").text) == 0);
    CHECK(use_codes("codes.zt", NULL) == TN_OK);        /* libcrypto keeps what it learns of SHA-1 */
    fail_each("codes.zt", use_codes);
}

/* Of codes against their values, with a datatype; the page is made too. */
static tn_status make_report(const tn_file *f, tn_error *err)
{
    static const char *const types[] = { "mxfp4" };
    tn_file *other;
    tn_report *report = NULL;
    const char *text;
    tn_status status = tn_open(in_folder("in.zt").text, NULL, &other, err);
    if (status)
        return status;
    const tn_report_options options = { .size = sizeof options, .jobs = jobs, .types = types, .ntypes = 1,
                                        .against = other };
    status = tn_report_make(f, &options, &report, err);
    if (!status)
        status = tn_report_text(report, TN_REPORT_PAGE, &text, NULL, err);
    if (!status)
        status = tn_report_text(report, TN_REPORT_SUMMARY, &text, NULL, err);
    tn_report_free(report);
    tn_close(other);
    return status;
}

static tn_status use_report(const char *name, tn_error *err) { return open_and(name, make_report, err); }

static void reports_run_out_of_memory(void)
{
    static const int64_t shape[] = { 24, 40 };
    tn_part part;
    tn_tensor t = dense_of(&part, shape);
    datatype = "nvfp4";
    write_tensor("in.zt", &t, TN_ENCODING_RAW);
    CHECK(open_and("in.zt", to_codes, NULL) == TN_OK);
    for (jobs = 1; jobs <= 2; jobs++)
        fail_each("codes.zt", use_report);
}

static void formats_of_others_run_out_of_memory(void)
{
    static const char *const files[] = {
        "/btf/ref_written/padding_0_to_7.btf", "/btf/edge/coo_layout_code_2.btf", "/numpy/float32.npy",
        "/numpy/big_columns.npy", "/numpy/stored.npz", "/numpy/deflated.npz", "/numpy/zip64.npz",
        "/scipy/csr.npz", "/scipy/csr_stored.npz", "/scipy/coo.npz", "/scipy/coo_stored.npz",
        "/mtx/scipy/coordinate_real.mtx", "/mtx/scipy/coordinate_symmetric.mtx",
        "/mtx/scipy/array_complex.mtx", "/mtx/hand/array_integer_symmetric.mtx", "/idx/int16.idx",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (jobs = 1; jobs <= 2; jobs++)
            fail_each(files[i], copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(zstd_and_sha256_run_out_of_memory),
        IN_FOLDER(raw_files_run_out_of_memory),
        IN_FOLDER(safetensors_runs_out_of_memory),
        IN_FOLDER(editing_metadata_runs_out_of_memory),
        IN_FOLDER(layouts_and_scales_run_out_of_memory),
        IN_FOLDER(sparse_documents_run_out_of_memory),
        IN_FOLDER(forms_in_memory_run_out_of_it),
        IN_FOLDER(conversions_of_form_run_out_of_memory),
        IN_FOLDER(datatypes_run_out_of_memory),
        IN_FOLDER(importance_runs_out_of_memory),
        IN_FOLDER(values_of_codes_run_out_of_memory),
        IN_FOLDER(codes_in_files_run_out_of_memory),
        IN_FOLDER(reports_run_out_of_memory),
        IN_FOLDER(formats_of_others_run_out_of_memory),
    };
    if (!CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free))
        return 1;
    fill_elements();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
