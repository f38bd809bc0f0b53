/* The folder in which processes make something together: whatever is in it, it is joined or refused. */
#include "support.h"

#include "pipeline/piece_record.h"
#include "pipeline/work_folder.h"
#include "pipeline/work_text.h"
#include "files.h"
#include "make.h"

#include <sys/resource.h>
#include <sys/stat.h>

static tn_buf plan_text(const char *verb)
{
    tn_buf b = { 0 };
    tn_plan_put_format(&b);
    tn_buf_printf(&b, "\"verb\":\"%s\",\n\"pieces\":[\n{\"written\":1},\n{\"written\":2}],\n", verb);
    tn_work_seal(&b);
    CHECK(!b.bad);
    return b;
}

static tn_status join_as(const char *verb, int *work, tn_error *err)
{
    tn_buf b = plan_text(verb);
    const tn_work_joining joining = { .plan = { (const char *)b.data, b.size } };
    *work = -1;
    tn_status status = tn_work_folder_join(in_folder("work").text, work, &joining, err);
    tn_buf_free(&b);
    return status;
}

static void must_join(int *work)
{
    tn_error err = { .text = "" };
    if (join_as("look", work, &err))
        fail_msg("%s", line_of(&err));
}

static void must_remove(int work)
{
    tn_error err = { .text = "" };
    if (tn_work_folder_remove(work, in_folder("work").text, &err))
        fail_msg("%s", line_of(&err));
    close(work);
    CHECK(access(in_folder("work").text, F_OK) != 0);
    assert_int_equal(count_entries(folder), 0);
}

static void processes_with_the_same_plan_join_and_others_are_refused(void)
{
    int first, second, third;
    tn_error err = { .text = "" };
    must_join(&first);
    must_join(&second);
    check_status(join_as("other", &third, &err), &err, TN_ERR_CHANGED, "it is the work folder of");
    CHECK(!tn_work_folder_is_gone(first, in_folder("work").text));
    close(third);
    close(second);
    must_remove(first);
}

/* Puts another plan into the folder and joins; what is refused says why, and the plan stays. */
static void join_over(const uint8_t *bytes, size_t n, bool same)
{
    int work;
    size_t found;
    tn_error err = { .text = "" };
    put_bytes("work/plan.json", bytes, n);
    tn_status status = join_as("look", &work, &err);
    CHECK((status == TN_OK) == same);
    CHECK(same || (err.status == status && err.text[0]));
    uint8_t *now = load_file(in_folder("work/plan.json").text, &found);
    CHECK(found == n && memcmp(now, bytes, n) == 0);
    free(now);
    close(work);
}

static void a_plan_with_any_byte_cut_off_or_flipped_is_refused(void)
{
    int work;
    must_join(&work);
    tn_buf b = plan_text("look");
    for (size_t n = 0; n < b.size; n++)
        join_over(b.data, n, false);
    for (size_t i = 0; i < b.size; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            b.data[i] ^= (uint8_t)(1u << bit);
            join_over(b.data, b.size, false);
            b.data[i] ^= (uint8_t)(1u << bit);
        }
    join_over(b.data, b.size, true);
    tn_buf_free(&b);
    must_remove(work);
}

static void a_plan_that_is_too_large_is_refused_before_it_is_read(void)
{
    int work, again;
    struct rusage before, after;
    tn_error err = { .text = "" };
    must_join(&work);
    CHECK(truncate(in_folder("work/plan.json").text, (off_t)TN_INDEX_MAX + 1) == 0);
    CHECK(getrusage(RUSAGE_SELF, &before) == 0);
    check_status(join_as("look", &again, &err), &err, TN_ERR_LIMIT, "expected an index of at most");
    CHECK(getrusage(RUSAGE_SELF, &after) == 0);
    CHECK(after.ru_maxrss - before.ru_maxrss < 8 << 10);
    close(again);
    must_remove(work);
}

static void a_folder_of_others_is_left_as_it_is(void)
{
    int work;
    tn_error err = { .text = "" };
    CHECK(mkdir(in_folder("work").text, 0700) == 0);
    put_file("work/mine", "mine");
    check_status(join_as("look", &work, &err), &err, TN_ERR_CORRUPT, "other files");
    CHECK(file_is("work/mine", "mine"));
    assert_int_equal(count_entries(in_folder("work").text), 1);
    close(work);
    put_file("file", "mine");
    CHECK(tn_work_folder_open(in_folder("file").text, &work, &err) == TN_ERR_IO && work == -1);
    CHECK(symlink("work", in_folder("link").text) == 0);
    CHECK(tn_work_folder_open(in_folder("link").text, &work, &err) == TN_ERR_IO && work == -1);
    CHECK(tn_work_folder_open(in_folder("none").text, &work, &err) == TN_OK && work == -1);
}

static void files_of_others_stay_when_it_is_removed(void)
{
    int work;
    tn_error err = { .text = "" };
    must_join(&work);
    put_file("work/mine", "mine");
    tn_status status = tn_work_folder_remove(work, in_folder("work").text, &err);
    check_status(status, &err, TN_ERR_IO, "other files");
    CHECK(file_is("work/mine", "mine"));
    assert_int_equal(count_entries(in_folder("work").text), 1);
    close(work);
}

static void what_a_killed_process_has_left_is_cleaned_up(void)
{
    int work;
    must_join(&work);
    CHECK(rename(in_folder("work").text, in_folder(".tenon-work-abcdef").text) == 0);
    CHECK(tn_work_folder_is_gone(work, in_folder("work").text));
    close(work);
    put_file(".tenon-work-file00", "no folder");
    tn_work_folder_clean(in_folder("work").text);
    CHECK(access(in_folder(".tenon-work-abcdef").text, F_OK) != 0);
    CHECK(file_is(".tenon-work-file00", "no folder"));
}

static void ranks_are_counted_once(void)
{
    int work;
    must_join(&work);
    CHECK(tn_work_folder_ranks(work) == 0 && !tn_work_folder_has_rank(work, 3));
    tn_work_folder_add_rank(work, 3);
    tn_work_folder_add_rank(work, 3);
    tn_work_folder_add_rank(work, UINT32_MAX);
    CHECK(tn_work_folder_ranks(work) == 2 && tn_work_folder_has_rank(work, 3));
    must_remove(work);
}

static void what_was_published_is_known_by_its_whole_note_only(void)
{
    int work;
    bool same;
    uint8_t *note;
    size_t n;
    must_join(&work);
    put_file("out", "some bytes");
    CHECK(!tn_work_folder_was_left(work, in_folder("out").text, &same) && !same);
    CHECK(tn_work_folder_leave(work, in_folder("out").text));
    CHECK(tn_work_folder_was_left(work, in_folder("out").text, &same) && same);
    CHECK(tn_work_folder_was_left(work, in_folder("none").text, &same) && !same);
    note = load_file(in_folder("work/published").text, &n);
    for (size_t i = 0; i < n; i++) {
        put_bytes("work/published", note, i);
        CHECK(tn_work_folder_was_left(work, in_folder("out").text, &same) && !same);
        for (unsigned bit = 0; bit < 8; bit++) {
            note[i] ^= (uint8_t)(1u << bit);
            put_bytes("work/published", note, n);
            CHECK(tn_work_folder_was_left(work, in_folder("out").text, &same) && !same);
            note[i] ^= (uint8_t)(1u << bit);
        }
    }
    put_bytes("work/published", note, n);
    CHECK(tn_work_folder_was_left(work, in_folder("out").text, &same) && same);
    put_file("out", "other");
    CHECK(tn_work_folder_was_left(work, in_folder("out").text, &same) && !same);
    free(note);
    CHECK(unlink(in_folder("out").text) == 0);
    must_remove(work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(processes_with_the_same_plan_join_and_others_are_refused),
        IN_FOLDER(a_plan_with_any_byte_cut_off_or_flipped_is_refused),
        IN_FOLDER(a_plan_that_is_too_large_is_refused_before_it_is_read),
        IN_FOLDER(a_folder_of_others_is_left_as_it_is),
        IN_FOLDER(files_of_others_stay_when_it_is_removed),
        IN_FOLDER(what_a_killed_process_has_left_is_cleaned_up),
        IN_FOLDER(ranks_are_counted_once),
        IN_FOLDER(what_was_published_is_known_by_its_whole_note_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
