/* GGUF: golden files, hostile files, truncated and damaged ones. */
#include "support.h"
#include "files.h"
#include "walk.h"


#include "formats/gguf/gguf.h"

#include <strings.h>
#include <time.h>

#define FILES TEST_GOLDEN "/gguf/files"
#define HOSTILE TEST_GOLDEN "/gguf/hostile"

/* ---- tensors ---- */

/* Any NaN equals any NaN. */
static hex sha256_of_values(const tn_file *f, const tn_tensor *t)
{
    uint64_t count = 0;
    tn_error err = { .text = "" };
    CHECK(tn_shape_count(t->rank, t->shape, &count) == TN_OK);
    uint32_t *bits = malloc(count ? count * sizeof *bits : 1);
    assert_non_null(bits);
    if (tn_read(f, t, TN_FLOAT32, bits, count * sizeof *bits, &err))
        fail_msg("%s: %s", t->name, line_of(&err));
    for (uint64_t i = 0; i < count; i++)
        if ((bits[i] & 0x7fffffff) > 0x7f800000)
            bits[i] = 0x7fc00000;
    hex h = sha256_of(bits, count * sizeof *bits);
    free(bits);
    return h;
}

static void check_type(const tn_tensor *t, const char *type)
{
    bool blocks = t->form == TN_FORM_BLOCKS;
    const char *stored = stored_info(&t->parts[0]).type;
    CHECK(t->nparts == 1 && (blocks || t->form == TN_FORM_DENSE));
    CHECK(strncasecmp(stored, type, strcspn(type, "@")) == 0 && strlen(stored) == strcspn(type, "@"));
    CHECK(!blocks || t->dtype == TN_FLOAT32);
}

/* Before the first tensor of a file: the data begins here. */
static uint64_t data_of(const tn_file *f, uint32_t shard)
{
    return f->shards[shard].data_begin;
}

static void check_tensor(const tn_file *f, char *field[TABLE_FIELDS])
{
    const tn_tensor *t = tn_file_find(f, field[1]);
    assert_non_null(t);
    const tn_stored_info s = stored_info(&t->parts[0]);
    check_type(t, field[2]);
    CHECK(s.offset - data_of(f, s.shard) == strtoull(strchr(field[2], '@') + 1, NULL, 10));
    check_shape(t, field[3]);
    check_sha256(f, &t->parts[0], field[4]);
    if (strcmp(field[5], "-") != 0)
        assert_string_equal(sha256_of_values(f, t).text, field[5]);
}

static tn_file *open_gguf(const char *name, tn_io io)
{
    return open_at(FILES, name, NULL, io);
}

static void check_tensor_row(char *field[TABLE_FIELDS], size_t n)
{
    CHECK(n == 6);
    tn_file *mapped = open_gguf(field[0], TN_IO_MMAP), *read = open_gguf(field[0], TN_IO_PREAD);
    assert_string_equal(tn_file_format(mapped), "gguf");
    check_tensor(mapped, field);
    check_tensor(read, field);
    const tn_part *p = &tn_file_find(mapped, field[1])->parts[0];
    bool swapped = strstr(field[0], "_be.") && tn_part_is_swapped(p);
    CHECK(!!p->data == !swapped && !tn_file_find(read, field[1])->parts[0].data);
    tn_close(mapped);
    tn_close(read);
}

static void every_tensor_is_what_its_manifest_says(void)
{
    CHECK(each_row(TEST_GOLDEN "/gguf/tensors.tsv", check_tensor_row) == 181);
}

/* ---- metadata ---- */

static char last_file[100];
static size_t nth;

/* Where the payload of an encoded pair begins, and its type as the table says it. */
static size_t payload_of(const tn_buf *b, const char *key, char type[40])
{
    size_t at = 8 + strlen(key), begin = at + 4;
    uint32_t number, items;
    uint64_t count;
    memcpy(&number, b->data + at, 4);
    snprintf(type, 40, "%s", tn_meta_type_get(number)->name);
    if (number == TN_META_STRING)
        begin += 8;
    if (number == TN_META_ARRAY) {
        memcpy(&items, b->data + begin, 4);
        memcpy(&count, b->data + begin + 4, 8);
        snprintf(type, 40, "%s[%llu]", tn_meta_type_get(items)->name, (unsigned long long)count);
        begin += 12;
    }
    return begin;
}

static void check_meta_row(char *field[TABLE_FIELDS], size_t n)
{
    tn_file *f = open_gguf(field[0], TN_IO_AUTO);
    size_t count;
    const tn_meta *meta = tn_file_meta(f, &count);
    char type[40];
    CHECK(n == 4);
    if (strcmp(last_file, field[0]) != 0)
        nth = 0;
    snprintf(last_file, sizeof last_file, "%s", field[0]);
    if (tn_file_shards(f) > 1 && tn_gguf_is_split_key(field[1])) {      /* a set is no split */
        tn_close(f);
        return;
    }
    tn_buf b = { 0 };
    const tn_gguf_out o = { &b, { TN_GGUF_VERSION, false, 8 } };
    CHECK(nth < count && strcmp(meta[nth].key, field[1]) == 0);
    CHECK(tn_gguf_put_pair(&o, &meta[nth++], NULL) == TN_OK);
    size_t begin = payload_of(&b, field[1], type);
    assert_string_equal(type, field[2]);
    assert_string_equal(sha256_of(b.data + begin, b.size - begin).text, field[3]);
    tn_buf_free(&b);
    tn_close(f);
}

static void every_metadata_value_keeps_its_type_and_place(void)
{
    last_file[0] = '\0';
    CHECK(each_row(TEST_GOLDEN "/gguf/metadata.tsv", check_meta_row) == 270);
}

/* ---- hostile files ---- */

static void check_hostile_row(char *field[TABLE_FIELDS], size_t n)
{
    char path[PATH_MAX], found[TN_ERROR_LINE];
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    CHECK(n == 3);
    snprintf(path, sizeof path, HOSTILE "/%s", field[0]);
    tn_status status = tn_open(path, NULL, &f, &err);
    if ((strcmp(field[1], "accept") == 0) != !status)
        fail_msg("%s: expected %s but found %s", field[0], field[1], status ? line_of(&err) : "none");
    snprintf(found, sizeof found, "%s", status ? line_of(&err) + strlen(HOSTILE "/") : "-");
    if (!status && tn_file_warning(f, 0))
        snprintf(found, sizeof found, "%s", tn_file_warning(f, 0));
    if (strcmp(found, field[2]) != 0)
        fail_msg("%s:\nexpected %s\nfound    %s", field[0], field[2], found);
    if (!status)
        walk_file(f);
    tn_close(f);
}

static size_t files_walked;

static void walk_hostile(const char *name, const uint8_t *bytes, size_t n)
{
    (void)name;
    walk_bytes(bytes, n, NULL);
    files_walked++;
}

static void every_hostile_file_ends_as_decided(void)
{
    size_t rows = each_row(TEST_GOLDEN "/gguf/hostile.tsv", check_hostile_row);
    files_walked = 0;
    each_file(HOSTILE, walk_hostile);
    CHECK(rows == files_walked && rows == 100);
}

static void an_unknown_type_is_listed_and_not_read(void)
{
    tn_file *f = open_at(HOSTILE, "ttype_43.gguf", NULL, TN_IO_AUTO);
    const tn_tensor *t = tn_file_tensor(f, 0);
    tn_error err = { .text = "" };
    CHECK(t->dtype == TN_UNKNOWN && t->parts[0].nbytes == 0 && !t->parts[0].data);
    CHECK(tn_part_read(f, &t->parts[0], NULL, 0, &err) == TN_ERR_UNSUPPORTED);
    assert_string_equal(line_of(&err), "type \"ggml:43\" is not known to this build");
    tn_close(f);
}

static void equal_ranges_are_tied(void)
{
    tn_file *f = open_at(HOSTILE, "shared.gguf", NULL, TN_IO_AUTO);
    CHECK(tn_file_count(f) == 2 && !tn_file_tensor(f, 0)->tied);
    assert_string_equal(tn_file_tensor(f, 1)->tied, tn_file_tensor(f, 0)->name);
    tn_close(f);
}

/* ---- large headers ---- */

static void put_u64(tn_buf *b, uint64_t value) { tn_buf_put_le(b, value, 8); }

static void put_text(tn_buf *b, const char *text)
{
    put_u64(b, strlen(text));
    tn_buf_puts(b, text);
}

static void put_start(tn_buf *b, uint64_t tensors, uint64_t pairs)
{
    tn_buf_puts(b, "GGUF");
    tn_buf_put_le(b, 3, 4);
    put_u64(b, tensors);
    put_u64(b, pairs);
}

static tn_status open_bytes(tn_buf *b, tn_file **f, tn_error *err)
{
    CHECK(!b->bad);
    tn_status status = tn_open_memory(b->data, b->size, NULL, f, err);
    return status;
}

static void many_keys_and_many_tensors_take_linear_time(void)
{
    enum { MANY = 100000 };
    tn_buf b = { 0 };
    tn_file *f = NULL;
    char name[20];
    put_start(&b, MANY, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "k%u", i);
        put_text(&b, name);
        tn_buf_put_le(&b, TN_META_U8, 4);
        tn_buf_putc(&b, 1);
    }
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "t%u", i);
        put_text(&b, name);
        tn_buf_put_le(&b, 1, 4);
        put_u64(&b, 0);
        tn_buf_put_le(&b, 0, 4);
        put_u64(&b, 0);
    }
    tn_buf_fill(&b, 0, 32 - b.size % 32);
    clock_t begin = clock();
    CHECK(open_bytes(&b, &f, NULL) == TN_OK && tn_file_count(f) == MANY);
    CHECK(clock() - begin < 2 * CLOCKS_PER_SEC);
    tn_close(f);
    tn_buf_free(&b);
}

static void deeply_nested_arrays_are_refused(void)
{
    tn_buf b = { 0 };
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    put_start(&b, 0, 1);
    put_text(&b, "deep");
    for (unsigned i = 0; i < 20000; i++) {
        tn_buf_put_le(&b, TN_META_ARRAY, 4);
        if (i)
            put_u64(&b, 1);
    }
    tn_buf_fill(&b, 0, 12);
    CHECK(open_bytes(&b, &f, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err), "expected at most 64 nested arrays but found more");
    tn_buf_free(&b);
}

/* ---- damage ---- */

static void check_cut(const uint8_t *bytes, size_t n, uint64_t last)
{
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *copy = exact_copy(bytes, cut);
        tn_status status = walk_bytes(copy, cut, "gguf");
        CHECK((status == TN_OK) == (cut >= last));
        free(copy);
    }
}

/* A proper prefix of a file is refused unless it ends after the last byte of the last tensor. */
static void every_truncation_is_refused(void)
{
    static const char *const names[] = { "kv_v1.gguf", "kv_v2.gguf", "align64_be.gguf", "ranks.gguf",
                                         "kv_all.gguf", "kv_nested.gguf" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX];
        size_t n;
        uint64_t last = 0;
        snprintf(path, sizeof path, FILES "/%s", names[i]);
        uint8_t *bytes = load_file(path, &n);
        tn_file *f = open_gguf(names[i], TN_IO_AUTO);
        for (size_t k = 0; k < tn_file_count(f); k++) {
            const tn_stored_info s = stored_info(&tn_file_tensor(f, k)->parts[0]);
            last = s.offset + s.bytes > last ? s.offset + s.bytes : last;
        }
        tn_close(f);
        check_cut(bytes, n, last ? last : n);
        free(bytes);
    }
}

static void every_flipped_byte_is_handled(void)
{
    static const char *const names[] = { "kv_v1.gguf", "kv_all_be.gguf", "kv_nested.gguf", "ranks.gguf",
                                         "order_gap.gguf", "unicode.gguf" };
    static const uint8_t flips[] = { 0x01, 0x80, 0xff };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX];
        size_t n;
        snprintf(path, sizeof path, FILES "/%s", names[i]);
        uint8_t *bytes = load_file(path, &n);
        for (size_t at = 0; at < n; at++)
            for (size_t k = 0; k < sizeof flips; k++) {
                bytes[at] ^= flips[k];
                walk_bytes(bytes, n, "gguf");
                bytes[at] ^= flips[k];
            }
        free(bytes);
    }
}

static void the_beginning_tells_the_format(void)
{
    static const struct { const char *head; size_t n; int certainty; } cases[] = {
        { "GGUF\3\0\0\0", 8, 100 }, { "GGUF\0\0\0\1", 8, 100 }, { "GGUF\4\0\0\0", 8, 50 },
        { "GGUF", 4, 50 },          { "GGU", 3, 0 },            { "FUGG\3\0\0\0", 8, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(tn_format_gguf.probe((const uint8_t *)cases[i].head, cases[i].n) == cases[i].certainty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_tensor_is_what_its_manifest_says),
        TEST(every_metadata_value_keeps_its_type_and_place),
        TEST(every_hostile_file_ends_as_decided),
        TEST(an_unknown_type_is_listed_and_not_read),
        TEST(equal_ranges_are_tied),
        TEST(many_keys_and_many_tensors_take_linear_time),
        TEST(deeply_nested_arrays_are_refused),
        TEST(every_truncation_is_refused),
        TEST(every_flipped_byte_is_handled),
        TEST(the_beginning_tells_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
