/* Files of other programs: each is named, with what to do about it. */
#include "support.h"

#include "files.h"
#include "store/format.h"

#define FOREIGN TEST_GOLDEN "/foreign"

static tn_status try_open(const char *name, tn_error *err)
{
    char path[500];
    tn_file *f = NULL;
    snprintf(path, sizeof path, FOREIGN "/%s", name);
    tn_status status = tn_open(path, NULL, &f, err);
    tn_close(f);
    return status;
}

static size_t named;

static void check_row(char *field[TABLE_FIELDS], size_t n)
{
    tn_error err = { .text = "" };
    CHECK(n == 2);
    tn_status status = try_open(field[0], &err);
    const char *colon = strchr(err.text, ':');
    if (status != TN_ERR_UNSUPPORTED || err.offset != 0 || strncmp(err.text, "it is ", 6) != 0 ||
        !strstr(err.text, field[1]) || !colon || strlen(colon) < 10)
        fail_msg("%s: %d %s", field[0], (int)status, line_of(&err));
    CHECK(strlen(err.text) < sizeof err.text - 1);      /* nothing is cut */
    named++;
}

static void every_file_is_named(void)
{
    each_row(FOREIGN "/foreign.tsv", check_row);
    CHECK(named == 15);
}

static size_t files;

/* What is known of the whole head is known of a part of it or not at all, and nothing else is said. */
static void cut_head(const char *name, const uint8_t *bytes, size_t size)
{
    size_t most = size < 1024 ? size : 1024;
    (void)name;
    for (size_t n = 0; n <= most; n++) {
        uint8_t *copy = exact_copy(bytes, n);
        const char *found = tn_format_foreign(copy, n);
        CHECK(!found || strlen(found) > 20);
        for (int bit = 0; bit < 8 && n < 64 && n; bit++) {
            copy[n - 1] ^= (uint8_t)(1 << bit);
            found = tn_format_foreign(copy, n);
            CHECK(!found || strlen(found) > 20);
            copy[n - 1] ^= (uint8_t)(1 << bit);
        }
        free(copy);
    }
    files++;
}

static void any_head_can_be_looked_at(void)
{
    each_file(FOREIGN, cut_head);
    CHECK(files == 16);         /* and the table */
}

static void what_is_read_is_not_foreign(const char *name, const uint8_t *bytes, size_t n)
{
    size_t head = n < 4096 ? n : 4096;
    if (tn_format_probe(bytes, head) && strncmp((const char *)bytes, "PK", 2) != 0 &&
        tn_format_foreign(bytes, head))
        fail_msg("%s: %s", name, tn_format_foreign(bytes, head));
}

static void no_container_of_this_build_is_named(void)
{
    CHECK(each_file(TEST_GOLDEN "/ztensor/good", what_is_read_is_not_foreign) > 0);
    CHECK(each_file(TEST_GOLDEN "/mtx/hand", what_is_read_is_not_foreign) > 0);
}

static void bytes_of_nobody_are_not_named(void)
{
    static const char *const texts[] = { "", "P", "PK\3", "\x80", "\x80\x02", "GGU", "<", "<htm", "hello, world",
                                         "\x08\x01", "\x08\x01\x12", "version https://example.org/" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t n = strlen(texts[i]);
        uint8_t *copy = exact_copy(texts[i], n);
        if (tn_format_foreign(copy, n))
            fail_msg("%s: %s", texts[i], tn_format_foreign(copy, n));
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_file_is_named), TEST(any_head_can_be_looked_at), TEST(no_container_of_this_build_is_named),
        TEST(bytes_of_nobody_are_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
