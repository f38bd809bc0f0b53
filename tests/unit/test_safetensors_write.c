/* Writing safetensors, sharded sets, rewriting with other metadata. */
#include "stored.h"
#include "safetensors_bytes.h"
#include "format_option.h"

#include "store/file.h"
#include "store/format.h"
#include "store/writer.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files on disk ---- */

static char folder[] = "/tmp/tenon-test-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static void empty_folder(void)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

static int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

static const char *in_folder(const char *name)
{
    static char paths[4][200];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static size_t files_in_folder(void)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static uint8_t *load(const char *name, size_t *size)
{
    FILE *f = fopen(in_folder(name), "rb");
    assert_non_null(f);
    struct stat st;
    CHECK(fstat(fileno(f), &st) == 0);
    *size = (size_t)st.st_size;
    uint8_t *bytes = calloc(1, *size + 1);
    CHECK(fread(bytes, 1, *size, f) == *size);
    fclose(f);
    return bytes;
}

static void store(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    CHECK(fwrite(bytes, 1, n, f) == n);
    fclose(f);
}

/* A dense tensor with data that only it has. */
typedef struct sample {
    tn_tensor tensor;
    tn_part   part;
    int64_t   shape[3];
    uint8_t   data[512];
} sample;

static void describe(sample *s, const char *name, tn_dtype dtype, int64_t rows, int64_t columns)
{
    *s = (sample){ .shape = { rows, columns } };
    tn_array a = { .dtype = dtype, .rank = 2, .shape = s->shape };
    uint64_t n;
    CHECK(tn_array_nbytes(&a, &n) == TN_OK && n <= sizeof s->data);
    for (size_t i = 0; i < n; i++)
        s->data[i] = (uint8_t)(i * 7 + (size_t)name[0]);
    s->part = (tn_part){ .role = "data", .array = a, .nbytes = n, .data = s->data };
    s->tensor = (tn_tensor){ .name = name, .form = TN_FORM_DENSE, .dtype = dtype, .rank = 2,
                             .shape = s->shape,
                             .parts = &s->part, .nparts = 1 };
}

typedef struct job {
    const char              *name;
    const tn_create_options *options;
    sample                  *samples;
    size_t                   nsamples;
    const tn_meta           *meta;
    size_t                   nmeta;
} job;

static tn_status write_job(const job *j, tn_error *err)
{
    tn_writer *w;
    tn_status status = tn_create(in_folder(j->name), j->options, &w, err);
    if (status)
        return status;
    for (size_t i = 0; i < j->nmeta && !status; i++)
        status = tn_writer_add_meta(w, &j->meta[i], err);
    for (size_t i = 0; i < j->nsamples && !status; i++)
        status = tn_writer_add(w, &j->samples[i].tensor, err);
    if (status) {
        tn_writer_abandon(w);
        return status;
    }
    return tn_writer_finish(w, err);
}

static void write_good(const job *j)
{
    tn_error err;
    tn_status status = write_job(j, &err);
    if (status)
        print_error("%s\n", line_of(&err));
    CHECK(status == TN_OK);
}

static tn_file *open_path(const char *name)
{
    tn_file *file;
    tn_error err;
    tn_status status = tn_open(in_folder(name), NULL, &file, &err);
    if (status)
        print_error("%s\n", line_of(&err));
    CHECK(status == TN_OK);
    return file;
}

static void check_samples(const tn_file *file, const sample *samples, size_t n)
{
    CHECK(tn_file_count(file) == n);
    for (size_t i = 0; i < n; i++) {
        const tn_tensor *want = &samples[i].tensor, *t = tn_file_find(file, want->name);
        uint8_t buffer[sizeof samples->data];
        assert_non_null(t);
        CHECK(t->dtype == want->dtype && t->rank == 2 && t->shape[0] == want->shape[0] &&
              t->shape[1] == want->shape[1]);
        CHECK(t->parts[0].nbytes == samples[i].part.nbytes);
        CHECK(tn_part_read(file, &t->parts[0], buffer, (size_t)t->parts[0].nbytes, NULL) == TN_OK);
        CHECK(memcmp(buffer, samples[i].data, (size_t)t->parts[0].nbytes) == 0);
    }
}

static void check_listing(const char *name, const char *header)
{
    size_t n;
    uint8_t *bytes = load(name, &n);
    size_t length = bytes[0] | (size_t)bytes[1] << 8, text = strlen(header);
    if (memcmp(bytes + 8, header, text) != 0)
        print_error("expected %s\nfound    %.*s\n", header, (int)length, (char *)bytes + 8);
    CHECK(text <= length && memcmp(bytes + 8, header, text) == 0);
    for (size_t i = text; i < length; i++)
        CHECK(bytes[8 + i] == ' ');
    free(bytes);
}

static void a_file_is_written_compact_and_aligned(void)
{
    sample s[5];
    describe(&s[0], "byte", TN_UINT8, 1, 3);
    describe(&s[1], "half", TN_FLOAT16, 1, 5);
    describe(&s[2], "none", TN_FLOAT32, 0, 4);
    describe(&s[3], "wide", TN_COMPLEX64, 1, 3);
    describe(&s[4], "\"q\"", TN_INT64, 1, 1);
    tn_meta meta[] = { { .key = "format", .text = "pt\n" } };
    job j = { .name = "a.safetensors", .samples = s, .nsamples = 5, .meta = meta, .nmeta = 1 };
    write_good(&j);
    check_listing("a.safetensors",
                  "{\"__metadata__\":{\"format\":\"pt\\n\"},"
                  "\"byte\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[42,45]},"
                  "\"half\":{\"dtype\":\"F16\",\"shape\":[1,5],\"data_offsets\":[32,42]},"
                  "\"none\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[32,32]},"
                  "\"wide\":{\"dtype\":\"C64\",\"shape\":[1,3],\"data_offsets\":[0,24]},"
                  "\"\\\"q\\\"\":{\"dtype\":\"I64\",\"shape\":[1,1],\"data_offsets\":[24,32]}}");
    tn_file *file = open_path("a.safetensors");
    check_samples(file, s, 5);
    CHECK(stored_info(&tn_file_find(file, "wide")->parts[0]).offset % 64 == 0);
    tn_close(file);
    size_t n, m;
    uint8_t *first = load("a.safetensors", &n);
    j.name = "b.safetensors";
    write_good(&j);
    uint8_t *second = load("b.safetensors", &m);
    CHECK(n == m && memcmp(first, second, n) == 0);
    free(first);
    free(second);
    empty_folder();
}

static void an_empty_file_is_written_and_read(void)
{
    write_good(&(job){ .name = "e.safetensors" });
    check_listing("e.safetensors", "{}");
    tn_file *file = open_path("e.safetensors");
    CHECK(tn_file_count(file) == 0 && tn_file_size(file) == 64);
    tn_close(file);
    empty_folder();
}

static void what_json_cannot_say_comes_back_all_the_same(void)
{
    sample s[3];
    describe(&s[0], "i4", TN_INT4, 1, 5);
    describe(&s[1], "f4", TN_FLOAT4_E2M1, 1, 3);       /* F4 wants whole bytes */
    describe(&s[2], "c", TN_COMPLEX128, 1, 2);
    tn_meta mixed[] = {
        { .key = "text", .text = "t" },
        { .key = "bytes", .cbor = (const uint8_t *)"\x42hi", .cbor_size = 3 },
        { .key = "number", .cbor = (const uint8_t *)"\x18\x64", .cbor_size = 2 },
        { .key = "long", .cbor = (const uint8_t *)"\x18\x01", .cbor_size = 2 },
        { .key = "null", .cbor = (const uint8_t *)"\xf6", .cbor_size = 1 },
    };
    s[0].tensor.meta = mixed;
    s[0].tensor.nmeta = 5;
    write_good(&(job){ .name = "m.safetensors", .samples = s, .nsamples = 3, .meta = mixed, .nmeta = 5 });
    tn_file *file = open_path("m.safetensors");
    check_samples(file, s, 3);
    size_t n;
    const tn_meta *found[2] = { tn_file_meta(file, &n), tn_file_find(file, "i4")->meta };
    CHECK(n == 5 && tn_file_find(file, "i4")->nmeta == 5);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < 5; i++) {
            CHECK(strcmp(found[k][i].key, mixed[i].key) == 0);
            CHECK(mixed[i].text ? strcmp(found[k][i].text, mixed[i].text) == 0
                                : found[k][i].cbor_size == mixed[i].cbor_size &&
                                  memcmp(found[k][i].cbor, mixed[i].cbor, mixed[i].cbor_size) == 0);
        }
    }
    tn_close(file);
    empty_folder();
}

static void tied_tensors_are_written_twice_and_noted(void)
{
    sample s[2];
    describe(&s[0], "a", TN_FLOAT32, 2, 2);
    describe(&s[1], "b", TN_FLOAT32, 2, 2);
    memcpy(s[1].data, s[0].data, sizeof s[0].data);
    s[1].tensor.tied = "a";
    s[1].part.data = NULL;
    write_good(&(job){ .name = "t.safetensors", .samples = s, .nsamples = 2 });
    tn_file *file = open_path("t.safetensors");
    check_samples(file, s, 2);
    const tn_tensor *b = tn_file_find(file, "b");
    CHECK(b->tied && strcmp(b->tied, "a") == 0 && !tn_file_find(file, "a")->tied);
    CHECK(stored_info(&b->parts[0]).offset != stored_info(&tn_file_find(file, "a")->parts[0]).offset);
    tn_close(file);
    empty_folder();
}

static void check_not_written(const job *j, tn_status expected, const char *text)
{
    tn_error err = { 0 };
    tn_status status = write_job(j, &err);
    if (status != expected || !strstr(line_of(&err), text))
        print_error("expected %d \"%s\" found %d \"%s\"\n", expected, text, status, line_of(&err));
    CHECK(status == expected && strstr(line_of(&err), text));
    CHECK(files_in_folder() == 0);
}

static void what_cannot_be_held_is_not_written(void)
{
    sample s[1];
    describe(&s[0], "x", TN_UINT8, 1, 1);
    tn_meta file_record = { .key = "tenon", .text = "{}" }, record = { .key = "tenon:x", .text = "{}" };
    job j = { .name = "x.safetensors", .samples = s, .nsamples = 1, .meta = &file_record, .nmeta = 1 };
    check_not_written(&j, TN_ERR_LOSS,
                      "metadata key \"tenon\" would be read back as Tenon's record of the file");
    j.meta = &record;
    check_not_written(&j, TN_ERR_LOSS,
                      "metadata key \"tenon:x\" would be read back as Tenon's record of a tensor");
    tn_create_options drop = { .size = sizeof drop, .drop_metadata = true };
    j.options = &drop;
    write_good(&j);
    tn_file *file = open_path("x.safetensors");
    CHECK(file->nmeta == 0);
    tn_close(file);
    empty_folder();
    j.nmeta = 0;
    tn_create_options zstd = { .size = sizeof zstd, .encoding = TN_ENCODING_ZSTD },
    crc = { .size = sizeof crc, .checksum = TN_CHECKSUM_CRC32C };
    j.options = &zstd;
    check_not_written(&j, TN_ERR_ARGUMENT, "cannot hold compressed data");
    j.options = &crc;
    check_not_written(&j, TN_ERR_ARGUMENT, "cannot hold checksums");
    j.options = NULL;
    s[0].tensor.name = "__metadata__";
    check_not_written(&j, TN_ERR_LOSS, "cannot hold a tensor called \"__metadata__\"");
    j.name = "x.safetensors.index.json";
    s[0].tensor.name = "x";
    check_not_written(&j, TN_ERR_ARGUMENT, "(shard_size)");
}

static void fillers_align_every_tensor_and_are_hidden(void)
{
    sample s[4];
    describe(&s[0], "a", TN_UINT8, 1, 3);
    describe(&s[1], "e", TN_UINT8, 0, 3);
    describe(&s[2], "b", TN_FLOAT32, 1, 32);
    describe(&s[3], "c", TN_FLOAT64, 1, 1);
    tn_create_options o = { .size = sizeof o, FILLER, .align = 128 };
    job j = { .name = "f.safetensors", .options = &o, .samples = s, .nsamples = 4 };
    write_good(&j);
    check_listing("f.safetensors",
                  "{\"__metadata__\":{\"tenon\":\"{\\\"fillers\\\":true}\"},"
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[0,3]},"
                  "\"e\":{\"dtype\":\"U8\",\"shape\":[0,3],\"data_offsets\":[3,3]},"
                  "\"__tenon_filler_0__\":{\"dtype\":\"U8\",\"shape\":[125],\"data_offsets\":[3,128]},"
                  "\"b\":{\"dtype\":\"F32\",\"shape\":[1,32],\"data_offsets\":[128,256]},"
                  "\"c\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[256,264]}}");
    tn_file *file = open_path("f.safetensors");
    check_samples(file, s, 4);
    for (size_t i = 0; i < 4; i++) {
        const tn_stored_info p = stored_info(&tn_file_tensor(file, i)->parts[0]);
        CHECK(!p.bytes || p.offset % 128 == 0);
    }
    tn_close(file);
    empty_folder();
    s[0].tensor.name = "__tenon_filler_7__";
    check_not_written(&j, TN_ERR_ARGUMENT, "has the name of a filler");
    o.nformat_options = 0;
    write_good(&j);
    empty_folder();
}

/* ---- sharded sets ---- */

static const char *const SHARDS[] = { "m-00001-of-00003.safetensors", "m-00002-of-00003.safetensors",
                                      "m-00003-of-00003.safetensors" };
#define INDEX "m.safetensors.index.json"

/* Four tensors of 16, 16, 100 and 8 bytes: shards of at most 32 bytes cut before and after the third. */
static void write_set(sample s[4], const char *name, bool filler)
{
    static const tn_meta meta[] = {
        { .key = "format", .text = "pt" },
        { .key = "n", .cbor = (const uint8_t *)"\x07", .cbor_size = 1 },
        { .key = "total_size", .text = "mine" },
    };
    describe(&s[0], "a", TN_UINT8, 4, 4);
    describe(&s[1], "b", TN_FLOAT32, 2, 2);
    describe(&s[2], "c", TN_UINT8, 10, 10);
    describe(&s[3], "d", TN_INT4, 1, 16);
    s[3].tensor.meta = meta;
    s[3].tensor.nmeta = 2;
    tn_create_options o = { .size = sizeof o, .shard_size = filler ? 80 : 32,
                            FORMAT_OPTION("safetensors", "filler", filler ? "yes" : "no") };
    write_good(&(job){ .name = name, .options = &o, .samples = s, .nsamples = 4, .meta = meta, .nmeta = 3 });
}

static void a_set_is_cut_in_order_and_opens_as_one(void)
{
    static const char *const outs[] = { "m.safetensors", INDEX };
    for (size_t k = 0; k < 2; k++) {
        sample s[4];
        size_t n;
        write_set(s, outs[k], false);
        CHECK(files_in_folder() == 4);
        uint8_t *index = load(INDEX, &n);
        CHECK(strcmp((char *)index,
                     "{\"metadata\":{\"total_size\":140,\"format\":\"pt\",\"n\":7},\"weight_map\":{"
                     "\"a\":\"m-00001-of-00003.safetensors\",\"b\":\"m-00001-of-00003.safetensors\","
                     "\"c\":\"m-00002-of-00003.safetensors\",\"d\":\"m-00003-of-00003.safetensors\"}}\n") ==
              0);
        free(index);
        tn_file *file = open_path(INDEX);
        check_samples(file, s, 4);
        CHECK(tn_file_shards(file) == 4 && strstr(tn_file_shard_name(file, 2), SHARDS[1]));
        CHECK(file->nmeta == 3 && file_has_text(file, "format", "pt") &&
              file_has_text(file, "total_size", "mine"));
        CHECK(tn_file_find(file, "d")->nmeta == 2 && tn_file_find(file, "d")->dtype == TN_INT4);
        tn_close(file);
        file = open_path(SHARDS[0]);
        CHECK(tn_file_count(file) == 2 && file_has_text(file, "format", "pt") && file->nmeta == 3);
        tn_close(file);
        empty_folder();
    }
}

static void what_fits_into_one_file_gets_no_index(void)
{
    static const char *const outs[] = { "m.safetensors", INDEX };
    for (size_t k = 0; k < 2; k++) {
        sample s[2];
        describe(&s[0], "a", TN_UINT8, 4, 4);
        describe(&s[1], "b", TN_FLOAT32, 2, 2);
        tn_create_options o = { .size = sizeof o, .shard_size = 32 };
        write_good(&(job){ .name = outs[k], .options = &o, .samples = s, .nsamples = 2 });
        CHECK(files_in_folder() == 1);
        tn_file *file = open_path("m.safetensors");
        check_samples(file, s, 2);
        tn_close(file);
        empty_folder();
    }
}

static void a_set_with_fillers_is_the_same_tensors(void)
{
    sample s[4];
    size_t n;
    write_set(s, INDEX, true);
    uint8_t *index = load(INDEX, &n);
    CHECK(strstr((char *)index, "\"__tenon_filler_0__\":\"m-00001-of-00003.safetensors\""));
    free(index);
    tn_file *file = open_path(INDEX);
    check_samples(file, s, 4);
    tn_close(file);
    empty_folder();
}

static void the_parts_of_a_tensor_stay_in_one_file(void)
{
    sample first, q[2];
    describe(&first, "a", TN_UINT8, 4, 5);
    describe(&q[0], "q", TN_UINT8, 4, 4);
    describe(&q[1], "scale", TN_FLOAT32, 4, 1);
    q[1].part.role = "scale";
    tn_part parts[] = { q[0].part, q[1].part };
    tn_tensor compound = { .name = "q", .form = TN_FORM_UNKNOWN, .form_text = "of a later version",
                           .dtype = TN_FLOAT32, .rank = 2,
                           .shape = q[0].shape,
                           .parts = parts, .nparts = 2 };
    tn_create_options o = { .size = sizeof o, .shard_size = 36 };       /* room for the first and one part */
    tn_writer *w;
    CHECK(tn_create(in_folder(INDEX), &o, &w, NULL) == TN_OK &&
          tn_writer_add(w, &first.tensor, NULL) == TN_OK);
    CHECK(tn_writer_add_as(w, &compound, (tn_stored_as[2]){ { 0 } }, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK && files_in_folder() == 3);
    tn_file *file = open_path(INDEX);
    const tn_tensor *t = tn_file_find(file, "q");
    CHECK(tn_file_count(file) == 2 && t->nparts == 2 && strcmp(t->form_text, compound.form_text) == 0 &&
          t->dtype == TN_FLOAT32);
    CHECK(strcmp(t->parts[1].role, "scale") == 0 && stored_info(&t->parts[0]).shard == 2 &&
          stored_info(&t->parts[1]).shard == 2);
    CHECK(memcmp(t->parts[1].data, q[1].data, 16) == 0 && memcmp(t->parts[0].data, q[0].data, 16) == 0);
    tn_close(file);
    file = open_path("m-00002-of-00002.safetensors");
    CHECK(tn_file_count(file) == 1);
    tn_close(file);
    empty_folder();
}

static void sets_read_without_mapping_are_the_same(void)
{
    sample s[4];
    tn_open_options o = { .size = sizeof o, .io = TN_IO_PREAD };
    tn_file *file;
    write_set(s, INDEX, false);
    CHECK(tn_open(in_folder(INDEX), &o, &file, NULL) == TN_OK);
    check_samples(file, s, 4);
    tn_close(file);
    empty_folder();
}

static void check_set_refused(const char *index, const char *text)
{
    tn_file *file;
    tn_error err = { 0 };
    store(INDEX, index, strlen(index));
    tn_status status = tn_open(in_folder(INDEX), NULL, &file, &err);
    if (status == TN_OK || !strstr(line_of(&err), text))
        print_error("%s\n  expected \"%s\"\n  found %d \"%s\"\n", index, text, status, line_of(&err));
    CHECK(status != TN_OK && strstr(line_of(&err), text));
    CHECK(tn_open(in_folder(INDEX), NULL, &file, NULL) == status);
}

static void store_shard(const char *name, const char *json, size_t data_size)
{
    size_t n;
    uint8_t *bytes = make_file(json, data_size, &n);
    store(name, bytes, n);
    free(bytes);
}

/* Three with metadata, of which some agree, and one that is too short. */
static void store_shards(void)
{
    store_shard("1", "{\"__metadata__\":{\"k\":\"1\",\"s\":\"same\"}," U8("a", 0, 1, 1) "}", 1);
    store_shard("2", "{\"__metadata__\":{\"k\":\"2\",\"s\":\"same\"}," U8("b", 0, 1, 1) "}", 1);
    store_shard("3", "{\"__metadata__\":{\"k\":\"1\"}," U8("c", 0, 1, 1) "}", 1);
    store_shard("bad", "{" U8("d", 0, 2, 2) "}", 1);
}

static void bad_sets_are_refused_with_the_reason(void)
{
    store_shards();
    check_set_refused("{\"metadata\":{}, \"weight_maps\":{}, \"weight_map\" }", "expected ':'");
    check_set_refused("{\"metadata\":{}, \"weight_map\":{}, \"weight_map\":{}}", "weight_map is there twice");
    check_set_refused("{\"metadata\":[], \"weight_map\":{}}", "expected an object");
    check_set_refused("{\"weight_map\":[]}", "expected an object");
    check_set_refused("{\"weight_map\":{\"a\":1}}", "tensor \"a\": expected a string");
    check_set_refused("{\"weight_map\":{\"a\":\"none\"}}", "none: cannot open");
    check_set_refused("{\"weight_map\":{\"a\":\"../1\"}}", "expected the plain name of a file");
    check_set_refused("{\"weight_map\":{\"a\":\"/tmp/1\"}}", "expected the plain name of a file");
    check_set_refused("{\"weight_map\":{\"a\":\"..\"}}", "expected the plain name of a file");
    check_set_refused("{\"weight_map\":{\"a\":\"\"}}", "expected the plain name of a file");
    check_set_refused("{\"weight_map\":{\"a\":\"1\\u0000\"}}", "NUL");
    check_set_refused("{\"weight_map\":{\"a\":\"1\",\"a\":\"1\"}}", "tensor \"a\": it is listed twice");
    check_set_refused("{\"weight_map\":{\"a\":\"1\",\"x\":\"1\"}}", "tensor \"x\": it is not in \"1\"");
    check_set_refused("{\"weight_map\":{\"x\":\"1\"}}", "tensor \"x\": it is not in \"1\"");
}

static void a_tensor_that_the_index_does_not_name_is_doubtful(void)
{
    static const char index[] = "{\"weight_map\":{\"b\":\"2\"}}", more[] = "{\"weight_map\":{\"b\":\"1\"}}";
    static const char shard[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                                "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}";
    const tn_open_options strict = { .size = sizeof strict, .strict = true };
    tn_error err = { 0 };
    tn_file *file;
    store_shard("1", shard, 4);
    store(INDEX, more, strlen(more));
    CHECK(tn_open(in_folder(INDEX), &strict, &file, &err) == TN_ERR_CORRUPT);
    CHECK(strstr(line_of(&err), "tensor \"a\": it is not in the index"));
    file = open_path(INDEX);
    CHECK(tn_file_count(file) == 2 && tn_file_find(file, "a") && !tn_file_warning(file, 1));
    CHECK(strstr(tn_file_warning(file, 0), "tensor \"a\" is in \"1\" but not in the index"));
    tn_close(file);
    store_shard("2", shard, 4);
    store(INDEX, index, strlen(index));
    file = open_path(INDEX);            /* the other one is no member */
    CHECK(tn_file_count(file) == 2);
    tn_close(file);
}

static void sets_disagreeing_with_their_shards_are_refused(void)
{
    store_shards();
    check_set_refused("{\"weight_map\":{\"c\":\"3\",\"a\":\"3\"}}", "tensor \"a\": it is not in \"3\"");
    check_set_refused("{\"weight_map\":{\"c\":\"3\",\"a\":\"3\",\"x\":\"1\"}}",
                      "tensor \"a\": it is here but the index says it is in \"3\"");
    check_set_refused("{\"weight_map\":{\"a\":\"1\",\"b\":\"2\"}}", "metadata key \"k\" has one value in");
    check_set_refused("{\"weight_map\":{\"a\":\"1\",\"d\":\"bad\"}}", "bad: byte");
    check_set_refused("{\"metadata\":{\"k\":1},\"weight_map\":{\"a\":\"1\"}}",
                      "metadata key \"k\" has one value in");
    static const char good[] =
        "{\"other\":[1],\"metadata\":{\"total_size\":\"no matter\",\"k\":\"1\",\"parameters\":300},"
        "\"weight_map\":{\"c\":\"3\",\"a\":\"1\"}}";
    store(INDEX, good, strlen(good));
    tn_file *file = open_path(INDEX);
    CHECK(tn_file_count(file) == 2 && file->nmeta == 3 && file_has_text(file, "s", "same"));
    const tn_meta *m = find_meta(file->meta, file->nmeta, "parameters");
    CHECK(m && m->cbor_size == 3 && memcmp(m->cbor, "\x19\x01\x2c", 3) == 0);
    tn_close(file);
    empty_folder();
}

/* ---- editing metadata ---- */

/* Rewrites FROM with other metadata, as tn_edit_meta() does; gives the status. */
static tn_status rewrite(tn_file *file, const char *to, uint64_t *size, tn_error *err)
{
    tn_sink *sink;
    uint64_t shared = 0;
    CHECK(tn_sink_open(in_folder(to), true, &sink, err) == TN_OK);
    tn_status status = tn_format_safetensors.rewrite(file, sink, size, &shared, err);
    if (status)
        tn_sink_abandon(sink);
    else
        CHECK(tn_sink_publish(sink, *size, err) == TN_OK);
    return status;
}

static void metadata_that_fits_leaves_the_data_in_place(void)
{
    size_t n;
    uint64_t size;
    tn_error err;
    uint8_t *bytes = make_file(SAMPLE, 12, &n);
    store("s.safetensors", bytes, n);
    tn_file *file = open_path("s.safetensors");
    tn_meta shorter[] = { { .key = "k", .text = "w" } };
    CHECK(tn_file_set_meta(file, shorter, 1, &err) == TN_OK);
    CHECK(rewrite(file, "r.safetensors", &size, &err) == TN_OK && size == n);
    tn_close(file);
    file = open_path("r.safetensors");
    CHECK(file->nmeta == 1 && file_has_text(file, "k", "w") && tn_file_count(file) == 2);
    const tn_tensor *i = tn_file_find(file, "i");
    CHECK(i->dtype == TN_INT4 && i->nmeta == 2 && i->meta[0].cbor_size == 2);
    CHECK(stored_info(&i->parts[0]).offset == n - 2 && memcmp(i->parts[0].data, bytes + n - 2, 2) == 0);
    tn_close(file);
    free(bytes);
    empty_folder();
}

static void metadata_that_grows_moves_the_data_by_whole_blocks(void)
{
    size_t n;
    uint64_t size;
    tn_error err;
    char large[6000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    uint8_t *bytes =
        make_file("{\"t\":{\"later\":1,\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, &n);
    store("s.safetensors", bytes, n);
    tn_file *file = open_path("s.safetensors");
    tn_meta meta[] = { { .key = "large", .text = large }, { .key = "n", .cbor = (const uint8_t *)"\x01",
                                                            .cbor_size = 1 } };
    CHECK(tn_file_set_meta(file, meta, 2, &err) == TN_OK);
    file->tensors[0].meta = meta;
    file->tensors[0].nmeta = 1;
    CHECK(rewrite(file, "r.safetensors", &size, &err) == TN_OK && size == n + 3 * 4096);
    tn_close(file);
    file = open_path("r.safetensors");
    CHECK(file->nmeta == 2 && file_has_text(file, "large", large) && file->meta[1].cbor_size == 1);
    const tn_tensor *t = tn_file_find(file, "t");
    CHECK(t->nmeta == 1 && strcmp(t->meta[0].text, large) == 0);
    CHECK(memcmp(t->parts[0].data, bytes + n - 3, 3) == 0);
    tn_close(file);
    free(bytes);
    empty_folder();
}

static void metadata_that_would_be_a_record_is_not_rewritten(void)
{
    size_t n;
    uint64_t size;
    tn_error err;
    uint8_t *bytes = make_file("{\"__metadata__\":{\"a\":\"b\"}," U8("t", 0, 1, 1) "}", 1, &n);
    store("s.safetensors", bytes, n);
    tn_file *file = open_path("s.safetensors");
    tn_meta meta[] = { { .key = "tenon:t", .text = "" } };
    CHECK(tn_file_set_meta(file, meta, 1, &err) == TN_OK);
    CHECK(rewrite(file, "r.safetensors", &size, &err) == TN_ERR_LOSS && strstr(line_of(&err), "tenon:t"));
    meta[0].key = "tenon";
    CHECK(tn_file_set_meta(file, meta, 1, &err) == TN_OK);
    CHECK(rewrite(file, "r.safetensors", &size, &err) == TN_ERR_LOSS);
    CHECK(tn_file_set_meta(file, meta, 0, &err) == TN_OK);
    CHECK(rewrite(file, "r.safetensors", &size, &err) == TN_OK && size == n);
    tn_close(file);
    check_listing("r.safetensors", "{" U8("t", 0, 1, 1) "}");
    free(bytes);
    empty_folder();
}

static void a_set_is_not_rewritten(void)
{
    sample s[4];
    uint64_t size;
    tn_error err;
    write_set(s, INDEX, false);
    tn_file *file = open_path(INDEX);
    CHECK(rewrite(file, "r.safetensors", &size, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "edit those"));
    tn_close(file);
    empty_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_written_compact_and_aligned),
        TEST(an_empty_file_is_written_and_read),
        TEST(what_json_cannot_say_comes_back_all_the_same),
        TEST(tied_tensors_are_written_twice_and_noted),
        TEST(what_cannot_be_held_is_not_written),
        TEST(fillers_align_every_tensor_and_are_hidden),
        TEST(a_set_is_cut_in_order_and_opens_as_one),
        TEST(what_fits_into_one_file_gets_no_index),
        TEST(a_set_with_fillers_is_the_same_tensors),
        TEST(the_parts_of_a_tensor_stay_in_one_file),
        TEST(sets_read_without_mapping_are_the_same),
        TEST(bad_sets_are_refused_with_the_reason),
        TEST(sets_disagreeing_with_their_shards_are_refused),
        TEST(a_tensor_that_the_index_does_not_name_is_doubtful),
        TEST(metadata_that_fits_leaves_the_data_in_place),
        TEST(metadata_that_grows_moves_the_data_by_whole_blocks),
        TEST(metadata_that_would_be_a_record_is_not_rewritten),
        TEST(a_set_is_not_rewritten),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
