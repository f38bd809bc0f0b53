/* Files that somebody writes to while they are opened and read: another thread
 * turns bytes of the mapped file over and over.  What is read may be anything,
 * but nothing may be overrun; that is for the sanitizers to see. */
#include "support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "make.h"
#include "random.h"
#include "scaled_tensor.h"
#include "zt_bytes.h"
#include "values.h"

enum { OPENS = 1000, MOST_OPENS = 100 * OPENS, TURNS = 64, LONG = 3000, MOST = 1 << 16 };

/* ---- the one who writes ---- */

typedef struct writer {
    pthread_t    thread;
    atomic_bool  stop;
    uint8_t     *bytes;
    size_t       size;
} writer;

/* Most of the time one byte is turned to and fro: whoever looks twice sees two of them. */
static void *turn_bytes(void *context)
{
    static const uint8_t others[] = { 0x00, 0x01, '"', '\\', '9', 0x5f, 0x78, 0x7f, 0x80, 0xff };
    writer *w = context;
    volatile uint8_t *bytes = w->bytes;
    while (!atomic_load(&w->stop)) {
        size_t at = draw() % w->size;
        uint8_t was = bytes[at], other = others[draw() % sizeof others];
        for (int i = 0; i < TURNS && !atomic_load(&w->stop); i++) {
            bytes[at] = other;
            for (volatile int wait = 0; wait < i; wait++)
                continue;
            bytes[at] = was;
        }
    }
    return NULL;
}

static void begin_writing(writer *w, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    w->size = (size_t)st.st_size;
    w->bytes = mmap(NULL, w->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(w->bytes != MAP_FAILED);
    close(fd);
    atomic_init(&w->stop, false);
    CHECK(pthread_create(&w->thread, NULL, turn_bytes, w) == 0);
}

static void end_writing(writer *w)
{
    atomic_store(&w->stop, true);
    pthread_join(w->thread, NULL);
    munmap(w->bytes, w->size);
}

/* ---- the one who reads ---- */

static void heed_nothing(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                         const tn_error *why)
{
    (void)context, (void)tensor, (void)part, (void)verdict, (void)why;
}

static void read_part(const tn_file *file, const tn_part *part)
{
    uint8_t *bytes = part->nbytes <= MOST ? malloc(part->nbytes + 1) : NULL;
    if (bytes)
        tn_part_read(file, part, bytes, part->nbytes, NULL);
    free(bytes);
}

static void read_values(const tn_file *file, const tn_tensor *t)
{
    static uint8_t some[64 * 16];
    tn_view *values;
    if (open_values(file, t, &values, NULL))
        return;
    const tn_dtype_info *type = tn_dtype_get(t->dtype);
    get_values(values, 0, 64, some, 8u * type->bits, NULL);
    tn_view_close(values);
}

static void reform(const tn_tensor *t)
{
    static const tn_form forms[] = { TN_FORM_DENSE, TN_FORM_COO, TN_FORM_CSR };
    const tn_sparse_options options = { .size = sizeof options, .limit = MOST, .jobs = 1 };
    for (int i = 0; i < 3; i++) {
        tn_tensor *made;
        if (!tn_convert_form(t, forms[i], &options, &made, NULL))
            tn_tensor_free(made);
    }
}

static void read_all(const tn_file *file)
{
    size_t nmeta;
    const tn_meta *meta = tn_file_meta(file, &nmeta);
    walk_meta(meta, nmeta);
    for (size_t i = 0; i < tn_file_count(file); i++) {
        const tn_tensor *t = tn_file_tensor(file, i);
        CHECK(tn_file_find(file, t->name) == t);
        walk_meta(t->meta, t->nmeta);
        for (uint32_t k = 0; k < t->nparts; k++)
            read_part(file, &t->parts[k]);
        read_values(file, t);
        reform(t);
    }
    tn_verify(file, &(tn_verify_options){ .size = sizeof(tn_verify_options), .jobs = 1 }, heed_nothing, NULL);
}

/* `watched` is the one that is written to: `opened` itself or a file beside it. */
static void open_while_it_changes(const char *opened, const char *watched, const char *format)
{
    writer w;
    int good = 0;
    begin_writing(&w, in_folder(watched).text);
    /* On a busy machine a byte may stay turned for many opens. */
    for (int i = 0; i < OPENS || (good == 0 && i < MOST_OPENS); i++) {
        tn_file *file;
        tn_error err = { .text = "" };
        tn_open_options options = { .size = sizeof options, .format = format, .io = TN_IO_MMAP };
        if (tn_open(in_folder(opened).text, &options, &file, &err)) {
            walk_error(&err, err.status);
            continue;
        }
        good++;
        read_all(file);
        tn_close(file);
    }
    end_writing(&w);
    tn_file *whole;
    CHECK(good > 0);            /* or nothing was read */
    CHECK(tn_open(in_folder(opened).text, &(tn_open_options){ .size = sizeof(tn_open_options),
                                                              .format = format }, &whole, NULL) == TN_OK);
    tn_close(whole);            /* all bytes are what they were */
}

static void change(const char *name)
{
    open_while_it_changes(name, name, NULL);
}

static void copy_golden(const char *golden, const char *name)
{
    static uint8_t bytes[MOST];
    char path[PATH_MAX];
    snprintf(path, sizeof path, TEST_GOLDEN "/%s", golden);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    CHECK(n > 0 && n < sizeof bytes);
    put_bytes(name, bytes, n);
}

/* ---- files ---- */

/* A string of escapes that takes a block of memory alone, so that its end is guarded. */
static void put_escapes(tn_buf *b)
{
    for (int i = 0; i < LONG; i++)
        tn_buf_puts(b, i % 2 ? "\\u00e9" : "\\n");
}

static void a_safetensors_header_may_change(void)
{
    tn_buf b = { 0 };
    tn_buf_fill(&b, 0, 8);
    tn_buf_puts(&b, "{\"__metadata__\":{\"k\":\"");
    put_escapes(&b);
    tn_buf_puts(&b, "\"},\"");
    put_escapes(&b);
    tn_buf_puts(&b, "\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}");
    for (int i = 0; i < 8; i++)
        b.data[i] = (uint8_t)((b.size - 8) >> 8 * i);
    tn_buf_fill(&b, 1, 16);
    put_bytes("m.safetensors", b.data, b.size);
    tn_buf_free(&b);
    change("m.safetensors");
}

static const float numbers[64] = { 1, 0, 2, 0, 0, 3, -1, 0, 0.5f };
static const simple tensors[] = {
    { .name = "a", .dtype = TN_FLOAT32, .rank = 2, .shape = { 8, 8 }, .data = numbers },
    { .name = "b", .dtype = TN_FLOAT32, .rank = 1, .shape = { 64 }, .data = numbers },
};

static void an_index_of_shards_may_change(void)
{
    write_file("s.safetensors", (tn_create_options){ .shard_size = 256 }, tensors, 2);
    change("s.safetensors.index.json");
    open_while_it_changes("s.safetensors.index.json", "s-00001-of-00002.safetensors", NULL);
}

/* A name of many pieces, whose sizes are added up first. */
static void a_ztensor_index_may_change(void)
{
    zt_bytes z = zt_begin(16);
    char piece[200];
    memset(piece, 'n', sizeof piece);
    tn_cbor_put_array(&z.file, 1);
    tn_buf_putc(&z.file, (char)0xa6);
    zt_text(&z, "name");
    tn_buf_putc(&z.file, 0x7f);
    for (int i = 0; i < 40; i++)
        tn_cbor_put_text(&z.file, piece, sizeof piece);
    tn_buf_putc(&z.file, (char)0xff);
    for (int i = 1; i < ZT_FIELDS; i++)
        zt_field_put(&z, i, "", 64, 16);
    zt_end(&z);
    put_bytes("m.zt", z.file.data, z.file.size);
    tn_buf_free(&z.file);
    change("m.zt");
}

static void compressed_data_may_change(void)
{
    write_file("c.zt", (tn_create_options){ .encoding = TN_ENCODING_ZSTD, .checksum = TN_CHECKSUM_CRC32C },
               tensors, 2);
    change("c.zt");
    copy_golden("numpy/deflated.npz", "d.npz");
    change("d.npz");
}

static void entries_of_a_sparse_tensor_may_change(void)
{
    static const tn_form forms[] = { TN_FORM_COO, TN_FORM_CSR };
    static const char *const names[] = { "coo.zt", "csr.zt" };
    for (int i = 0; i < 2; i++) {
        const int64_t shape[] = { 8, 8 };
        const tn_part part = { .role = "data", .array = { TN_FLOAT32, 2, shape, NULL },
                               .nbytes = sizeof numbers, .data = numbers };
        const tn_tensor t = { .name = "t", .form = TN_FORM_DENSE, .dtype = TN_FLOAT32, .rank = 2,
                              .shape = shape,
                              .parts = &part, .nparts = 1 };
        tn_tensor *sparse;
        CHECK(tn_convert_form(&t, forms[i], NULL, &sparse, NULL) == TN_OK);
        CHECK(try_write_tensor(names[i], (tn_create_options){ 0 }, sparse, NULL) == TN_OK);
        tn_tensor_free(sparse);
        change(names[i]);
    }
}

static void parts_of_a_scaled_tensor_may_change(void)
{
    static const char *const datatypes[] = { "mxfp4e2", "int4|bfloat16_t32", "int4|bfloat16_t16n2m4" };
    static const int64_t shape[] = { 4, 64 };
    for (size_t i = 0; i < sizeof datatypes / sizeof *datatypes; i++) {
        scaled_tensor s;
        make_scaled(&s, datatypes[i], TN_FLOAT32, 2, shape, (tn_quantize_options){ 0 });
        CHECK(try_write_tensor("q.zt", (tn_create_options){ 0 }, &s.tensor, NULL) == TN_OK);
        free_scaled(&s);
        change("q.zt");
    }
}

static void numpy_files_may_change(void)
{
    copy_golden("numpy/version2.npy", "two.npy");
    change("two.npy");
    copy_golden("numpy/columns.npy", "columns.npy");
    change("columns.npy");
    copy_golden("numpy/stored.npz", "stored.npz");
    change("stored.npz");
    copy_golden("scipy/csr.npz", "csr.npz");
    change("csr.npz");
    copy_golden("scipy/coo_stored.npz", "coo.npz");
    change("coo.npz");
}

static void text_may_change(void)
{
    copy_golden("mtx/hand/spelling.mtx", "spelling.mtx");
    change("spelling.mtx");
    copy_golden("mtx/scipy/coordinate_real.mtx", "real.mtx");
    change("real.mtx");
}

static void files_without_names_may_change(void)
{
    copy_golden("btf/ref_written/padding_0_to_7.btf", "m.btf");
    open_while_it_changes("m.btf", "m.btf", "btf");
    copy_golden("idx/float32.idx", "f.idx");
    open_while_it_changes("f.idx", "f.idx", "idx");
}

static void a_descriptor_and_its_data_may_change(void)
{
    write_file("r.json", (tn_create_options){ 0 }, tensors, 2);
    change("r.json");
    open_while_it_changes("r.json", "r.bin", NULL);
}

/* Copies cost memory: what only claims to be an index, in a file of holes, must not cost it. */
static void an_index_has_a_limit(void)
{
    enum { MAX = 1 << 30 };
    static const struct { const char *name, *start, *end; size_t nend; off_t end_at; } cases[] = {
        { "i.zt", "ZTEN0001", "\1\0\0\x40\0\0\0", 8, 8 + MAX + 1 },
        { "d.npz", "PK\3\4", "PK\5\6\0\0\0\0\0\0\0\0\1\0\0\x40\0\0\0\0\0", 22, MAX + 1 },
    };
    for (int i = 0; i < 2; i++) {
        put_file(cases[i].name, cases[i].start);
        int fd = open(in_folder(cases[i].name).text, O_WRONLY | O_CLOEXEC);
        CHECK(fd >= 0 && pwrite(fd, cases[i].end, cases[i].nend, cases[i].end_at) == (ssize_t)cases[i].nend &&
              close(fd) == 0);
        tn_file *file;
        tn_error err = { .text = "" };
        tn_status status = tn_open(in_folder(cases[i].name).text, NULL, &file, &err);
        check_status(status, &err, TN_ERR_LIMIT,
                     "expected an index of at most 1073741824 bytes but found 1073741825");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_safetensors_header_may_change), IN_FOLDER(an_index_of_shards_may_change),
        IN_FOLDER(a_ztensor_index_may_change), IN_FOLDER(compressed_data_may_change),
        IN_FOLDER(entries_of_a_sparse_tensor_may_change), IN_FOLDER(parts_of_a_scaled_tensor_may_change),
        IN_FOLDER(numpy_files_may_change), IN_FOLDER(text_may_change),
        IN_FOLDER(files_without_names_may_change), IN_FOLDER(a_descriptor_and_its_data_may_change),
        IN_FOLDER(an_index_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
