/* BTF: golden files, edge files, damaged files, and what is written. */
#include "support.h"
#include "format_option.h"

#include "files.h"
#include "make.h"
#include "verdicts.h"

#define EDGE TEST_GOLDEN "/btf/edge"
#define WRITTEN TEST_GOLDEN "/btf/ref_written"

static tn_file *open_btf(const char *where, const char *name, tn_io io)
{
    return open_at(where, name, "btf", io);
}

/* ---- what is in the files ---- */

static void check_tensor(const tn_file *f, char *field[TABLE_FIELDS], bool mapped)
{
    bool coo = strcmp(field[5], "-") != 0;
    const tn_tensor *t = check_listed_tensor(f, field);
    CHECK(t == tn_file_tensor(f, strtoul(field[1], NULL, 10)));
    CHECK(t->form == (coo ? TN_FORM_COO : TN_FORM_DENSE));
    CHECK(t->nparts == (coo ? 2u : 1u));
    if (coo)
        check_sha256(f, &t->parts[1], field[5]);
    for (uint32_t k = 0; k < t->nparts; k++)
        CHECK((t->parts[k].data != NULL) == mapped);
}

static const char *tables_folder;

static void check_row(char *field[TABLE_FIELDS], size_t n)
{
    CHECK(n == 6);
    tn_file *mapped = open_btf(tables_folder, field[0], TN_IO_MMAP),
            *read = open_btf(tables_folder, field[0], TN_IO_PREAD);
    check_tensor(mapped, field, true);
    check_tensor(read, field, false);
    CHECK(tn_file_meta(mapped, &n) == NULL && n == 0);
    tn_close(mapped);
    tn_close(read);
}

static void every_golden_file_reads_to_what_its_manifest_says(void)
{
    tables_folder = TEST_GOLDEN "/btf";
    CHECK(each_row(TEST_GOLDEN "/btf/tensors.tsv", check_row) == 153);
}

static void every_published_file_reads_to_what_its_manifest_says(void)
{
    char folder_of_btf[PATH_MAX];
    const char *corpus = getenv("TENON_CORPUS");
    if (!corpus) {
        print_message("TENON_CORPUS is not set: the files that TensorFlow Runtime published are not read\n");
        skip();
    }
    snprintf(folder_of_btf, sizeof folder_of_btf, "%s/btf", corpus);
    tables_folder = folder_of_btf;
    CHECK(each_row(TEST_GOLDEN "/btf/corpus.tsv", check_row) == 13);
}

/* ---- verdicts ---- */

static void check_warnings(const char *file, const tn_file *f, char *texts[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *found = tn_file_warning(f, i);
        if (!found || strcmp(found, texts[i]) != 0)
            fail_msg("%s:\nexpected %s\nfound    %s", file, texts[i], found ? found : "no warning");
    }
    if (tn_file_warning(f, n))
        fail_msg("%s: %s", file, tn_file_warning(f, n));
}

static void check_refused(const char *file, const tn_error *err, const char *word, const char *text)
{
    char found[600];
    tn_status expected = strcmp(word, "refused-truncated") == 0 ? TN_ERR_TRUNCATED
                         : strcmp(word, "refused-limit") == 0   ? TN_ERR_LIMIT : TN_ERR_CORRUPT;
    snprintf(found, sizeof found, "byte %llu: %s", (unsigned long long)err->offset, said_of(err));
    if (err->status != expected || strcmp(found, text) != 0)
        fail_msg("%s: expected %s\n%s\nfound status %d\n%s", file, word, text, err->status, found);
}

static void check_edge_row(char *field[TABLE_FIELDS], size_t n)
{
    char where[PATH_MAX];
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .format = "btf" };
    CHECK(n >= 3);
    snprintf(where, sizeof where, "%s/%s", EDGE, field[0]);
    if (tn_open(where, &options, &f, &err)) {
        check_refused(field[0], &err, field[1], field[2]);
        return;
    }
    assert_string_equal(field[1], strcmp(field[2], "-") == 0 ? "fine" : "warns");
    check_warnings(field[0], f, field + 2, strcmp(field[1], "fine") == 0 ? 0 : n - 2);
    walk_file(f);
    tn_close(f);
}

static size_t files_walked;

static void walk_bytes_of(const char *name, const uint8_t *bytes, size_t n)
{
    (void)name;
    walk_bytes(bytes, n, "btf");
    files_walked++;
}

static void every_edge_file_gets_the_decided_verdict(void)
{
    size_t rows = each_row(EDGE ".tsv", check_edge_row);
    files_walked = 0;
    each_file(EDGE, walk_bytes_of);
    CHECK(rows == files_walked && rows == 74);
}

static void check_no_warning(const char *name, const uint8_t *bytes, size_t n)
{
    tn_file *f;
    tn_open_options options = { .size = sizeof options, .format = "btf" };
    CHECK(tn_open_memory(bytes, n, &options, &f, NULL) == TN_OK);
    check_warnings(name, f, NULL, 0);
    tn_close(f);
}

static void files_of_the_original_writer_give_no_warning(void)
{
    CHECK(each_file(WRITTEN, check_no_warning) == 23);
}

/* ---- what only the data tells ---- */

/* Closes it; values are never judged. */
static seen verify(tn_file *f)
{
    seen s = verify_file(f);
    CHECK(s.verdict[0] == TN_VERDICT_NONE && s.why[0].text[0] == '\0');
    tn_close(f);
    return s;
}

static void check_verified(const char *name, tn_verdict verdict, const char *text)
{
    /* of the first tensor, behind table, header and dimensions */
    enum { INDICES = 16 + 16 + 2 * 8 + 2 * 8 };
    seen s = verify(open_btf(EDGE, name, TN_IO_AUTO));
    bool bad = verdict == TN_VERDICT_BAD;
    CHECK(s.verdict[1] == verdict && s.why[1].status == (bad ? TN_ERR_CORRUPT : TN_OK));
    CHECK(s.why[1].offset == (bad ? INDICES + 8 : TN_NO_OFFSET));
    assert_string_equal(said_of(&s.why[1]), text);
}

static void indices_are_looked_at_by_verify_and_not_before(void)
{
    check_verified("coo_index_eq_dim.btf", TN_VERDICT_BAD,
                   "tensor \"0\": entry 0: expected an index below 4 in dimension 1 but found 4");
    check_verified(
        "coo_index_2_63.btf", TN_VERDICT_BAD,
        "tensor \"0\": entry 0: expected an index below 4 in dimension 1 but found 9223372036854775808");
    check_verified("coo_unsorted.btf", TN_VERDICT_NONE,
                   "tensor \"0\": entry 1 is out of order: it sorts before entry 0");
    check_verified("coo_duplicate.btf", TN_VERDICT_NONE, "tensor \"0\": entry 1 has the indices of entry 0");
    check_verified("coo_i32_r4.btf", TN_VERDICT_NONE,
                   "tensor \"0\": entry 2 is out of order: it sorts before entry 1");
    static const char *const in_order[] = {
        "coo_f32.btf",           "coo_i8.btf",      "coo_i32_r1.btf",
        "coo_i32_r3.btf",        "coo_n0.btf",      "coo_rank0.btf",
        "coo_explicit_zero.btf", "coo_bigdims.btf", "coo_dense_bomb.btf",
        "coo_layout_code_2.btf",
    };
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++)
        check_verified(in_order[i], TN_VERDICT_NONE, "");
}

/* ---- damage ---- */

static void walk_truncations(const char *name, const uint8_t *bytes, size_t n)
{
    (void)name;
    for (size_t cut = 0; n < 1100 && cut < n; cut++) {
        uint8_t *copy = exact_copy(bytes, cut);
        walk_bytes(copy, cut, "btf");
        free(copy);
    }
}

/* Every number of a record is believed or refused, whatever it is. */
static void walk_flips(const char *name, const uint8_t *bytes, size_t n)
{
    static const uint8_t flips[] = { 0xff, 0x01, 0x80 };
    (void)name;
    for (size_t at = 0; n < 600 && at < n; at++) {
        for (size_t k = 0; k < sizeof flips; k++) {
            uint8_t *copy = exact_copy(bytes, n);
            copy[at] ^= flips[k];
            walk_bytes(copy, n, "btf");
            free(copy);
        }
    }
}

static void every_truncation_and_every_flipped_byte_is_handled(void)
{
    each_file(EDGE, walk_truncations);
    each_file(WRITTEN, walk_truncations);
    each_file(EDGE, walk_flips);
    each_file(WRITTEN, walk_flips);
}

static void put_word(uint8_t *to, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

static tn_status open_words(const uint64_t *words, size_t n, tn_file **f, tn_error *err)
{
    static uint8_t bytes[40000];
    tn_open_options options = { .size = sizeof options, .format = "btf" };
    CHECK(n * 8 <= sizeof bytes);
    for (size_t i = 0; i < n; i++)
        put_word(bytes + 8 * i, words[i]);
    return tn_open_memory(bytes, n * 8, &options, f, err);
}

static void sizes_that_overflow_are_refused(void)
{
    enum { I8_COO = 0x0200 };
    const uint64_t entries[] = { 1, 16, 1, I8_COO, 5, UINT64_C(1) << 61, 1, 0 };
    const uint64_t shape[] = { 1, 16, 2, I8_COO, UINT64_C(1) << 62, 4, 0, 2, 0 };
    const uint64_t no_rank[] = { 1, 16, 0, I8_COO, INT64_MAX, 0, INT64_MAX, 0 };
    uint64_t rank[70] = { 1, 16, 65, 0 };
    tn_file *f;
    tn_error err;
    CHECK(open_words(entries, 8, &f, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err),
        "tensor \"0\": expected its array of indices in at most 9223372036854775807 bytes but shape "
        "[2305843009213693952, 1] of ui64 takes more");
    CHECK(err.offset == 40);
    CHECK(open_words(shape, 9, &f, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err), "tensor \"0\": expected at most 9223372036854775807 elements but shape "
                                  "[4611686018427387904, 4] has more");
    CHECK(err.offset == 32);
    CHECK(open_words(no_rank, 8, &f, &err) == TN_ERR_TRUNCATED);
    CHECK(open_words(rank, 70, &f, &err) == TN_ERR_LIMIT);
    assert_string_equal(said_of(&err), "tensor \"0\": expected at most 64 dimensions but found 65");
    rank[2] = 64;
    for (size_t i = 0; i < 64; i++)
        rank[4 + i] = 1000 + i;
    CHECK(open_words(rank, 70, &f, &err) == TN_ERR_LIMIT && err.offset == 32);
    assert_string_equal(said_of(&err),
                        "tensor \"0\": expected its data in at most 9223372036854775807 bytes but shape "
                        "[1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, ...] of i8 takes more");
}

static void a_coo_record_that_is_cut_says_what_is_missing(void)
{
    const uint64_t words[] = { 1, 16, 1, 0x0206, 9, 1, 1, 3 };
    tn_file *f;
    tn_error err;
    CHECK(open_words(words, 6, &f, &err) == TN_ERR_TRUNCATED && err.offset == 40);
    assert_string_equal(said_of(&err),
                        "tensor \"0\": its shape of indices takes 16 bytes but the file ends after 8");
    CHECK(open_words(words, 8, &f, &err) == TN_ERR_TRUNCATED && err.offset == 64);
    assert_string_equal(said_of(&err),
                        "tensor \"0\": its number of values takes 8 bytes but the file ends after 0");
}

/* The table is 24 bytes: where it begins is not the only wrong place. */
static void a_record_inside_the_table_is_refused(void)
{
    const uint64_t words[] = { 2, 24, 8, 0, 0, 5 };
    tn_file *f;
    tn_error err;
    CHECK(open_words(words, 6, &f, &err) == TN_ERR_CORRUPT && err.offset == 16);
    assert_string_equal(said_of(&err),
        "tensor \"1\": expected its record between 24, the end of the table, and 48, the end of the file, "
        "but found it at 8");
}

static void a_scalar_with_several_entries_has_them_twice(void)
{
    static const uint64_t words[] = { 1, 16, 0, 0x0206, 3, 0, 3, 0x030201 },
    one[] = { 1, 16, 0, 0x0206, 1, 0, 1, 9 };
    tn_file *f;
    CHECK(open_words(words, 8, &f, NULL) == TN_OK);
    seen s = verify(f);
    CHECK(s.verdict[1] == TN_VERDICT_NONE && s.why[1].status == TN_OK);
    assert_string_equal(said_of(&s.why[1]), "tensor \"0\": entry 1 has the indices of entry 0");
    CHECK(open_words(one, 8, &f, NULL) == TN_OK);
    s = verify(f);
    assert_string_equal(said_of(&s.why[1]), "");
}

/* 150 tensors whose record is the same COO one, more than fit the first list of tensors. */
static void many_tensors_keep_their_parts_and_the_warnings_are_counted(void)
{
    enum { N = 150, RECORD = 8 * (N + 1) };
    static const uint64_t coo[] = { 1, 0x0206, 9, 2, 1, 3, 5, 2, 0xbbaa };
    uint64_t words[N + 10] = { N };
    tn_file *f;
    for (size_t i = 0; i < N; i++)
        words[1 + i] = RECORD;
    memcpy(words + N + 1, coo, sizeof coo);
    CHECK(open_words(words, N + 10, &f, NULL) == TN_OK);
    CHECK(tn_file_count(f) == N);
    for (size_t i = 0; i < N; i++) {
        const tn_tensor *t = tn_file_tensor(f, i);
        CHECK(t->nparts == 2 && t->rank == 1 && t->shape[0] == 9 && !t->tied);
        CHECK(strcmp(t->parts[0].role, "values") == 0 && memcmp(t->parts[0].data, "\xaa\xbb", 2) == 0);
        CHECK(strcmp(t->parts[1].role, "indices") == 0 &&
              memcmp(t->parts[1].data, "\x03\0\0\0\0\0\0\0\x05", 9) == 0);
    }
    assert_string_equal(tn_file_warning(f, 0), "byte 1208: tensor \"1\": its record is that of \"0\"");
    assert_string_equal(tn_file_warning(f, 99), "byte 1208: tensor \"100\": its record is that of \"0\"");
    assert_string_equal(tn_file_warning(f, 100), "and 49 more");
    CHECK(tn_file_warning(f, 101) == NULL);
    walk_file(f);
    tn_close(f);
}

/* A file of `size` bytes whose n offsets are `step` bytes apart; words[] is what lies behind them, then
 * zeros. */
static tn_status open_steps(size_t size, size_t n, size_t step, const uint64_t *words, size_t count,
                            tn_error *err)
{
    tn_open_options options = { .size = sizeof options, .format = "btf" };
    tn_file *f;
    uint8_t *bytes = calloc(1, size);
    CHECK(bytes && 8 * (1 + n + count) <= size);
    put_word(bytes, n);
    for (size_t i = 0; i < n; i++)
        put_word(bytes + 8 * (1 + i), 8 * (1 + n) + i * step);
    for (size_t i = 0; i < count; i++)
        put_word(bytes + 8 * (1 + n + i), words[i]);
    tn_status status = tn_open_memory(bytes, size, &options, &f, err);
    if (!status)
        tn_close(f);
    free(bytes);
    return status;
}

/* A shape of 64 dimensions, 528 bytes with the header, costs 8 bytes when it is named again. */
static void records_may_not_say_more_than_the_file_has_bytes(void)
{
    uint64_t same[66] = { 64 }, inside[2 * 1000];
    tn_error err;
    CHECK(open_steps(4000, 122, 0, same, 66, &err) == TN_OK);           /* a small file: 64 KiB */
    CHECK(open_steps(4000, 123, 0, same, 66, &err) == TN_ERR_LIMIT && err.offset == 8 * 124);
    assert_string_equal(said_of(&err),
        "tensor \"122\": too many records overlap: expected the table and their headers in at most 65536 "
        "bytes but up to here they take 65936");
    CHECK(open_steps(8 + 536 * 186, 186, 0, same, 66, &err) == TN_OK);
    CHECK(open_steps(8 + 536 * 186 - 1, 186, 0, same, 66, &err) == TN_ERR_LIMIT);
    for (size_t i = 0; i < 1000; i++) {
        inside[2 * i] = 64;                             /* a rank, and a dimension of the records before it */
        inside[2 * i + 1] = i % 2 ? i << 16 : 0;        /* type and layout 0; no elements */
    }
    CHECK(open_steps(20000, 122, 16, inside, 2000, &err) == TN_OK);
    CHECK(open_steps(20000, 123, 16, inside, 2000, &err) == TN_ERR_LIMIT);
    CHECK(strstr(line_of(&err), "too many records overlap"));
}

/* Nothing is smaller than a scalar of one byte without padding. */
static void records_that_lie_apart_may_be_as_many_as_fit(void)
{
    enum { N = 5000, SIZE = 8 + N * (8 + 17) };
    CHECK(open_steps(SIZE, N, 17, NULL, 0, NULL) == TN_OK);
}

static void records_that_overlap_are_read_with_a_warning(void)
{
    const uint64_t words[] = { 2, 24, 48, 1, 0x0006, 32, 0, 0x0006, 77, 0 };    /* a scalar inside 32 bytes */
    char *texts[] = { "byte 48: tensor \"1\": its record begins inside that of \"0\", which ends at 80" };
    tn_file *f;
    CHECK(open_words(words, 10, &f, NULL) == TN_OK);
    check_warnings("overlap", f, texts, 1);
    CHECK(tn_file_tensor(f, 1)->rank == 0 && *(const uint8_t *)tn_file_tensor(f, 1)->parts[0].data == 77);
    walk_file(f);
    tn_close(f);
}

static void content_does_not_tell_that_a_file_is_btf_but_its_suffix_does(void)
{
    tn_file *f;
    size_t n;
    CHECK(tn_open(WRITTEN "/mixed.btf", NULL, &f, NULL) == TN_OK);
    assert_string_equal(tn_file_format(f), "btf");
    tn_close(f);
    uint8_t *bytes = load_file(WRITTEN "/mixed.btf", &n);
    CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_ERR_UNSUPPORTED);
    free(bytes);
}

/* ---- writing ---- */

static tn_status convert(const tn_file *f, const char *name, tn_create_options create, tn_error *err)
{
    create.size = sizeof create;
    create.replace = true;
    tn_convert_options options = { .size = sizeof options, .create = &create };
    return tn_convert(f, in_folder(name).text, &options, NULL, err);
}

static void check_written_again(const char *name, const uint8_t *bytes, size_t n)
{
    tn_file *f;
    size_t m;
    tn_error err = { .text = "" };
    tn_open_options options = { .size = sizeof options, .format = "btf" };
    CHECK(tn_open_memory(bytes, n, &options, &f, NULL) == TN_OK);
    if (convert(f, "again.btf", (tn_create_options){ 0 }, &err))
        fail_msg("%s: %s", name, line_of(&err));
    uint8_t *again = load_file(in_folder("again.btf").text, &m);
    if (n != m || memcmp(bytes, again, n) != 0)
        fail_msg("%s: read and written again it is not the same", name);
    free(again);
    tn_close(f);
}

static void files_of_the_original_are_written_again_as_they_were(void)
{
    CHECK(each_file(WRITTEN, check_written_again) == 23);
}

static void check_coo_written(const char *edge, int code)
{
    char where[PATH_MAX];
    snprintf(where, sizeof where, "%s/%s", EDGE, edge);
    tn_file *f = open_btf(EDGE, edge, TN_IO_AUTO);
    CHECK(convert(f, "again.btf", (tn_create_options){ FORMAT_OPTION("btf", "coo-code", code == 1 ? "1" : "2") }, NULL) == TN_OK);
    tn_close(f);
    check_same_files(where, in_folder("again.btf").text);
}

static void coo_tensors_are_written_under_either_code(void)
{
    static const char *const files[] = {
        "coo_f32.btf", "coo_i8.btf", "coo_i32_r1.btf", "coo_i32_r3.btf", "coo_i32_r4.btf", "coo_n0.btf",
        "coo_rank0.btf", "coo_unsorted.btf", "coo_duplicate.btf", "coo_dense_bomb.btf",
        "coo_i64_btf_info_test.btf",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        check_coo_written(files[i], 1);
    check_coo_written("coo_layout_code_2.btf", 2);
    check_coo_written("coo_layout_code_2.btf", 0);
}

/* Bytes that no tensor has are lost when there are any beside padding; padding and reserved bytes say
 * nothing. */
static void aliased_and_misplaced_records_are_written_in_order(void)
{
    static const struct { const char *name; bool rest; } files[] = {
        { "offset_alias.btf", true }, { "offset_reversed.btf", false },
        { "padding_missing_middle.btf", false }, { "offset_gap.btf", true },
        { "padding_extra.btf", true }, { "trailing_bytes.btf", true }, { "count_0_trailing.btf", true },
        { "padding_nonzero.btf", false },
        { "reserved_nonzero.btf", false },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        tn_error err = { .text = "" };
        tn_file *f = open_btf(EDGE, files[i].name, TN_IO_AUTO);
        if (files[i].rest) {
            CHECK(convert(f, "again.btf", (tn_create_options){ 0 }, &err) == TN_ERR_LOSS);
            CHECK(strstr(line_of(&err), "it has \"bytes that belong to no record\", which the new file cannot "
                                   "hold (drop_metadata)"));
        }
        CHECK(convert(f, "again.btf", (tn_create_options){ .drop_metadata = files[i].rest }, NULL) == TN_OK);
        tn_file *again = open_btf(folder, "again.btf", TN_IO_AUTO);
        check_warnings(files[i].name, again, NULL, 0);
        require_same_tensors(f, again);
        tn_close(again);
        tn_close(f);
    }
}

static void coo_tensors_come_back_from_other_containers(void)
{
    static const char *const names[] = { "coo.zt", "coo.safetensors" };
    size_t n, m;
    uint8_t *bytes = load_file(EDGE "/coo_layout_code_2.btf", &n);
    for (size_t i = 0; i < 2; i++) {
        tn_file *f = open_btf(EDGE, "coo_layout_code_2.btf", TN_IO_AUTO);
        CHECK(convert(f, names[i], (tn_create_options){ 0 }, NULL) == TN_OK);
        tn_close(f);
        f = open_file(names[i]);
        CHECK(convert(f, "back.btf", (tn_create_options){ 0 }, NULL) == TN_OK);
        tn_close(f);
        uint8_t *back = load_file(in_folder("back.btf").text, &m);
        CHECK(n == m && memcmp(bytes, back, n) == 0);
        free(back);
    }
    free(bytes);
}

/* Values first, as parts are numbered, although the file has the indices first. */
static void parts_can_be_streamed_in_any_pieces(void)
{
    size_t n, m;
    tn_writer *w;
    tn_create_options options = { .size = sizeof options };
    uint8_t *bytes = load_file(EDGE "/coo_layout_code_2.btf", &n);
    tn_file *f = open_btf(EDGE, "coo_layout_code_2.btf", TN_IO_MMAP);
    const tn_tensor *t = tn_file_tensor(f, 0);
    tn_tensor declared = *t;
    tn_part parts[2] = { t->parts[0], t->parts[1] };
    parts[0].data = parts[1].data = NULL;
    declared.parts = parts;
    CHECK(tn_create(in_folder("streamed.btf").text, &options, &w, NULL) == TN_OK);
    CHECK(tn_writer_add(w, &declared, NULL) == TN_OK);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < t->parts[k].nbytes; i++)
            CHECK(tn_writer_write(w, 0, k, (const uint8_t *)t->parts[k].data + i, 1, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    uint8_t *streamed = load_file(in_folder("streamed.btf").text, &m);
    CHECK(n == m && memcmp(bytes, streamed, n) == 0);
    free(streamed);
    free(bytes);
    tn_close(f);
}

static void a_dry_run_knows_the_size_and_writes_nothing(void)
{
    size_t n;
    tn_convert_result result;
    tn_create_options create = { .size = sizeof create };
    tn_convert_options options = { .size = sizeof options, .create = &create, .dry_run = true };
    free(load_file(WRITTEN "/padding_0_to_7.btf", &n));
    tn_file *f = open_btf(WRITTEN, "padding_0_to_7.btf", TN_IO_AUTO);
    CHECK(tn_convert(f, in_folder("dry.btf").text, &options, &result, NULL) == TN_OK);
    CHECK(result.bytes_out == n && count_entries(folder) == 0);
    tn_close(f);
}

static const int64_t three[] = { 3 };
static const float floats[] = { 1, 2, 3 };

static void check_refuses(tn_create_options options, const simple *tensors, size_t n, tn_status status,
                          const char *text)
{
    tn_error err = { .text = "" };
    CHECK(try_write("refused.btf", options, tensors, n, &err) == status);
    assert_string_equal(said_of(&err), text);
    CHECK(access(in_folder("refused.btf").text, F_OK) != 0);
}

static void names_and_metadata_are_dropped_only_when_that_is_allowed(void)
{
    const tn_meta meta = { .key = "k", .text = "v" };
    const simple named = { .name = "w", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = floats };
    const simple noted = { .name = "0", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = floats,
                           .meta = &meta, .nmeta = 1 };
    const simple swapped[] = { { .name = "1", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 },
                                 .data = floats },
                               { .name = "0", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 },
                                 .data = floats } };
    check_refuses((tn_create_options){ 0 }, &named, 1, TN_ERR_LOSS,
                  "tensor \"w\": btf has no names and it would be called \"0\" (drop_names)");
    check_refuses((tn_create_options){ 0 }, swapped, 2, TN_ERR_LOSS,
                  "tensor \"1\": btf has no names and it would be called \"0\" (drop_names)");
    check_refuses((tn_create_options){ 0 }, &noted, 1, TN_ERR_LOSS,
                  "tensor \"0\": btf cannot hold its metadata (drop_metadata)");
    write_file("named.btf", (tn_create_options){ .drop_names = true }, &named, 1);
    write_file("noted.btf", (tn_create_options){ .drop_metadata = true }, &noted, 1);
    tn_file *f = open_btf(folder, "named.btf", TN_IO_AUTO);
    CHECK(tn_file_count(f) == 1 && memcmp(tn_file_find(f, "0")->parts[0].data, floats, sizeof floats) == 0);
    tn_close(f);
}

static void what_btf_cannot_hold_is_refused_before_anything_is_written(void)
{
    const simple half = { .name = "0", .dtype = TN_FLOAT16, .rank = 1, .shape = { 3 }, .data = floats };
    const simple fits = { .name = "0", .dtype = TN_FLOAT32, .rank = 1, .shape = { 3 }, .data = floats };
    check_refuses((tn_create_options){ 0 }, &half, 1, TN_ERR_UNSUPPORTED,
                  "tensor \"0\": btf has no type float16: it has integers of 8 to 64 bits, float32 and "
                  "float64 (cast)");
    check_refuses((tn_create_options){ .align = 64 }, &fits, 1, TN_ERR_ARGUMENT,
                  "btf has its data at multiples of 8 and cannot align it to 64");
    check_refuses((tn_create_options){ FORMAT_OPTION("btf", "coo-code", "3") }, &fits, 1, TN_ERR_ARGUMENT,
                  "option \"btf.coo-code\": expected 2 or 1 but found \"3\"");
    check_refuses((tn_create_options){ .encoding = TN_ENCODING_ZSTD }, &fits, 1, TN_ERR_ARGUMENT,
                  "btf cannot hold compressed data (encoding none)");
}

static tn_status write_parts(const tn_tensor *t, bool drop, tn_error *err)
{
    return try_write_tensor("refused.btf", (tn_create_options){ .drop_metadata = drop }, t, err);
}

static void forms_and_indices_that_btf_has_not_are_refused(void)
{
    static const int64_t one_row[] = { 3, 1 };
    static const int32_t narrow[] = { 0, 1, 2 };
    static const float scale = 1;
    const tn_scaling scaling = { .axis = -1, .range = { 0, 255 } };
    tn_part coo[] = { { .role = "values", .array = { TN_FLOAT32, 1, three, NULL }, .data = floats },
                      { .role = "indices", .array = { TN_INT32, 2, one_row, NULL }, .data = narrow } };
    const tn_part scaled[] = { { .role = "data", .array = { TN_INT32, 1, three, NULL }, .data = narrow },
                               { .role = "scale", .array = { TN_FLOAT32, 0, NULL, NULL }, .data = &scale } };
    tn_tensor t = { .name = "0", .form = TN_FORM_COO, .dtype = TN_FLOAT32, .rank = 1, .shape = three,
                    .parts = coo,
                    .nparts = 2 };
    tn_error err = { .text = "" };
    CHECK(write_parts(&t, false, &err) == TN_ERR_UNSUPPORTED);
    assert_string_equal(said_of(&err),
                        "tensor \"0\": btf has indices of 64 bits but found int32 (form coo,index=int64)");
    coo[1].array.dtype = TN_UINT32;
    CHECK(write_parts(&t, false, &err) == TN_ERR_UNSUPPORTED);
    assert_string_equal(said_of(&err),
                        "tensor \"0\": btf has indices of 64 bits but found uint32 (form coo,index=int64)");
    t.form = TN_FORM_SCALED;
    t.parts = scaled;
    t.scaling = &scaling;
    CHECK(write_parts(&t, false, &err) == TN_ERR_UNSUPPORTED);
    assert_string_equal(said_of(&err), "tensor \"0\": btf holds dense and coo tensors but found form \"scaled\"");
    CHECK(count_entries(folder) == 0);
}

static void a_layout_is_dropped_only_when_that_is_allowed(void)
{
    const tn_part part = { .role = "data", .array = { TN_FLOAT32, 1, three, NULL }, .data = floats };
    const tn_tensor t = { .name = "0", .form = TN_FORM_DENSE, .dtype = TN_FLOAT32, .rank = 1, .shape = three,
                          .parts = &part, .nparts = 1,
                          .layout = "C" };
    tn_error err = { .text = "" };
    CHECK(write_parts(&t, false, &err) == TN_ERR_LOSS && count_entries(folder) == 0);
    assert_string_equal(said_of(&err), "tensor \"0\": btf cannot hold its layout (drop_metadata)");
    CHECK(write_parts(&t, true, &err) == TN_OK);
}

static void csr_tensors_are_refused_and_told_what_to_become(void)
{
    static const int64_t shape[] = { 2, 4 }, indices[] = { 0, 3, 1 }, indptr[] = { 0, 2, 3 };
    const tn_part parts[] = { { .role = "values", .array = { TN_FLOAT32, 1, three, NULL }, .data = floats },
                              { .role = "indices", .array = { TN_INT64, 1, three, NULL }, .data = indices },
                              { .role = "indptr", .array = { TN_INT64, 1, three, NULL }, .data = indptr } };
    const tn_tensor t = { .name = "0", .form = TN_FORM_CSR, .dtype = TN_FLOAT32, .rank = 2, .shape = shape,
                          .parts = parts, .nparts = 3 };
    tn_error err = { .text = "" };
    CHECK(write_parts(&t, false, &err) == TN_ERR_UNSUPPORTED);
    assert_string_equal(said_of(&err),
                        "tensor \"0\": btf holds dense and coo tensors but found form \"csr\" (form coo)");
    CHECK(count_entries(folder) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_golden_file_reads_to_what_its_manifest_says),
        TEST(every_published_file_reads_to_what_its_manifest_says),
        TEST(every_edge_file_gets_the_decided_verdict),
        TEST(files_of_the_original_writer_give_no_warning),
        TEST(indices_are_looked_at_by_verify_and_not_before),
        TEST(every_truncation_and_every_flipped_byte_is_handled),
        TEST(sizes_that_overflow_are_refused),
        TEST(a_coo_record_that_is_cut_says_what_is_missing),
        TEST(a_record_inside_the_table_is_refused),
        TEST(a_scalar_with_several_entries_has_them_twice),
        TEST(many_tensors_keep_their_parts_and_the_warnings_are_counted),
        TEST(records_may_not_say_more_than_the_file_has_bytes),
        TEST(records_that_lie_apart_may_be_as_many_as_fit),
        TEST(records_that_overlap_are_read_with_a_warning),
        TEST(content_does_not_tell_that_a_file_is_btf_but_its_suffix_does),
        IN_FOLDER(files_of_the_original_are_written_again_as_they_were),
        IN_FOLDER(coo_tensors_are_written_under_either_code),
        IN_FOLDER(aliased_and_misplaced_records_are_written_in_order),
        IN_FOLDER(coo_tensors_come_back_from_other_containers),
        IN_FOLDER(parts_can_be_streamed_in_any_pieces),
        IN_FOLDER(a_dry_run_knows_the_size_and_writes_nothing),
        IN_FOLDER(names_and_metadata_are_dropped_only_when_that_is_allowed),
        IN_FOLDER(what_btf_cannot_hold_is_refused_before_anything_is_written),
        IN_FOLDER(forms_and_indices_that_btf_has_not_are_refused),
        IN_FOLDER(a_layout_is_dropped_only_when_that_is_allowed),
        IN_FOLDER(csr_tensors_are_refused_and_told_what_to_become),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
