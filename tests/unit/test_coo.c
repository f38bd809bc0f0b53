/* The indices of COO tensors, as tn_verify() sees them: whatever their type,
 * and wherever rows are cut by windows. */
#include "support.h"

#include "make.h"

enum { RANK = 5, ENTRIES = 20000 };     /* rows of 20 or 40 bytes, which no window holds a whole number of */

static const int64_t shape[RANK] = { 7, 11, 13, 17, 19 };
static uint64_t rows[ENTRIES][RANK];

/* Entry i is at place 16 * i of the tensor: in order, each once. */
static void make_rows(void)
{
    for (uint64_t i = 0; i < ENTRIES; i++) {
        uint64_t place = 16 * i;
        for (int k = RANK - 1; k >= 0; k--) {
            rows[i][k] = place % (uint64_t)shape[k];
            place /= (uint64_t)shape[k];
        }
    }
}

static void write_coo(tn_dtype type, tn_encoding encoding)
{
    static uint8_t values[ENTRIES];
    static uint32_t narrow[ENTRIES][RANK];
    static const int64_t count[] = { ENTRIES, RANK };
    bool wide = type == TN_INT64 || type == TN_UINT64;
    for (size_t i = 0; i < ENTRIES; i++)
        for (size_t k = 0; k < RANK; k++)
            narrow[i][k] = (uint32_t)rows[i][k];
    const tn_part parts[] = { { .role = "values", .array = { TN_UINT8, 1, count, NULL }, .data = values },
                              { .role = "indices", .array = { type, 2, count, NULL }, .data = wide ? (void *)rows : narrow } };
    const tn_tensor t = { .name = "t", .form = "coo", .dtype = TN_UINT8, .rank = RANK, .shape = shape, .parts = parts, .nparts = 2 };
    tn_create_options options = { .size = sizeof options, .replace = true, .encoding = encoding, .checksum = TN_CHECKSUM_CRC32C };
    tn_writer *w;
    CHECK(tn_create(in_folder("t.zt").text, &options, &w, NULL) == TN_OK);
    CHECK(tn_writer_add(w, &t, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
}

typedef struct seen {
    tn_verdict verdict[2];
    tn_error   why[2];
} seen;

static void see_verdict(void *context, const tn_tensor *t, const tn_part *p, tn_verdict verdict, const tn_error *why)
{
    seen *s = context;
    size_t k = (size_t)(p - t->parts);
    s->verdict[k] = verdict;
    s->why[k] = *why;
}

static void check_verdict(tn_dtype type, tn_encoding encoding, tn_verdict verdict, const char *text)
{
    seen s = { 0 };
    tn_verify_options options = { .size = sizeof options, .context = &s };
    write_coo(type, encoding);
    tn_file *f = open_file("t.zt");
    CHECK(tn_verify(f, &options, see_verdict, NULL) == TN_OK);
    CHECK(s.verdict[0] == TN_VERDICT_OK && s.verdict[1] == verdict);
    assert_string_equal(s.why[1].text, text);
    CHECK(s.why[1].status == (verdict == TN_VERDICT_BAD ? TN_ERR_CORRUPT : TN_OK));
    tn_close(f);
}

static const tn_dtype types[] = { TN_INT32, TN_INT64, TN_UINT32, TN_UINT64 };

static void indices_in_order_are_no_news(void)
{
    make_rows();
    for (size_t i = 0; i < 4; i++) {
        check_verdict(types[i], TN_ENCODING_RAW, TN_VERDICT_OK, "");
        check_verdict(types[i], TN_ENCODING_ZSTD, TN_VERDICT_OK, "");
    }
}

static void an_index_outside_the_shape_is_bad(void)
{
    make_rows();
    rows[ENTRIES - 1][4] = 19;
    for (size_t i = 0; i < 4; i++)
        check_verdict(types[i], i % 2 ? TN_ENCODING_RAW : TN_ENCODING_ZSTD, TN_VERDICT_BAD,
                      "tensor \"t\": entry 19999: expected an index below 19 in dimension 4 but found 19");
    rows[4915][3] = UINT64_MAX - 1;
    check_verdict(TN_INT64, TN_ENCODING_RAW, TN_VERDICT_BAD,
                  "tensor \"t\": entry 4915: expected an index below 17 in dimension 3 but found -2");
    check_verdict(TN_INT32, TN_ENCODING_RAW, TN_VERDICT_BAD,
                  "tensor \"t\": entry 4915: expected an index below 17 in dimension 3 but found -2");
    check_verdict(TN_UINT64, TN_ENCODING_RAW, TN_VERDICT_BAD,
                  "tensor \"t\": entry 4915: expected an index below 17 in dimension 3 but found 18446744073709551614");
    check_verdict(TN_UINT32, TN_ENCODING_RAW, TN_VERDICT_BAD,
                  "tensor \"t\": entry 4915: expected an index below 17 in dimension 3 but found 4294967294");
}

/* Entry 4915 of 40 bytes is the one that the first window of 192 KiB ends in. */
static void entries_out_of_order_and_twice_are_told_of(void)
{
    for (size_t at = 4914; at <= 4917; at++) {
        char text[120];
        make_rows();
        memcpy(rows[at], rows[at - 1], sizeof rows[at]);
        snprintf(text, sizeof text, "tensor \"t\": entry %zu has the indices of entry %zu", at, at - 1);
        check_verdict(TN_INT64, TN_ENCODING_RAW, TN_VERDICT_OK, text);
        memcpy(rows[at], rows[at - 2], sizeof rows[at]);
        snprintf(text, sizeof text, "tensor \"t\": entry %zu is out of order: it sorts before entry %zu", at, at - 1);
        check_verdict(TN_UINT64, TN_ENCODING_ZSTD, TN_VERDICT_OK, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(indices_in_order_are_no_news),
        IN_FOLDER(an_index_outside_the_shape_is_bad),
        IN_FOLDER(entries_out_of_order_and_twice_are_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
