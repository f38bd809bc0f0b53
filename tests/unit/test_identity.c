/* A file that is no longer the one that was read is not replaced. */
#include "support.h"

#include "bytes/identity.h"
#include "bytes/sink.h"
#include "bytes/sink_calls.h"
#include "file_systems.h"
#include "files.h"
#include "make.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>

static tn_identity identity(const char *name)
{
    struct stat st;
    CHECK(stat(in_folder(name).text, &st) == 0);
    return tn_identity_of(&st);
}

static tn_sink *open_expecting(const char *name, tn_identity read)
{
    tn_sink *s = NULL;
    CHECK(tn_sink_open(in_folder(name).text, true, &s, NULL) == TN_OK);
    CHECK(tn_sink_write(s, 0, "new text", 8, NULL) == TN_OK);
    tn_sink_expect(s, &read, false);
    return s;
}

/* ---- what counts as a change ---- */

static void append_to(const char *name)
{
    FILE *f = fopen(in_folder(name).text, "a");
    assert_non_null(f);
    CHECK(fputc('x', f) == 'x' && fclose(f) == 0);
}

static void change(int kind)
{
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1, .tv_nsec = 1 } };
    if (kind == 0)
        CHECK(unlink(in_folder("file").text) == 0);
    else if (kind == 1)
        append_to("file");
    else if (kind == 2)
        CHECK(utimensat(AT_FDCWD, in_folder("file").text, times, 0) == 0);
    else if (kind == 3)
        CHECK(rename(in_folder("other").text, in_folder("file").text) == 0);
    else if (kind == 4)
        CHECK(unlink(in_folder("file").text) == 0 && symlink("other", in_folder("file").text) == 0);
    else
        CHECK(unlink(in_folder("file").text) == 0 && mkdir(in_folder("file").text, 0755) == 0);
}

static void no_change_of_the_file_is_undone(void)
{
    for (int kind = 0; kind < 6; kind++) {
        tn_error err = { .text = "" };
        put_file("file", "old");
        put_file("other", "old");
        tn_sink *s = open_expecting("file", identity("file"));
        CHECK(tn_sink_check(s, NULL) == TN_OK);
        change(kind);
        int entries = count_entries(folder);
        CHECK(tn_sink_check(s, &err) == TN_ERR_CHANGED);
        CHECK(tn_sink_publish(s, 8, &err) == TN_ERR_CHANGED && err.status == TN_ERR_CHANGED);
        CHECK(strstr(line_of(&err), "has changed since it was read") && strstr(line_of(&err), "not replaced"));
        CHECK(!file_is("file", "new text") && count_entries(folder) == entries);
        remove(in_folder("file").text);
    }
}

static void a_file_as_it_was_read_is_replaced(void)
{
    tn_sink *s;
    put_file("file", "old");
    CHECK(symlink("file", in_folder("link").text) == 0);
    s = open_expecting("link", identity("file"));
    CHECK(tn_sink_publish(s, 8, NULL) == TN_OK && file_is("file", "new text") && count_entries(folder) == 2);
}

static void of_two_who_read_the_same_one_replaces_it(void)
{
    put_file("file", "old");
    tn_identity read = identity("file");
    tn_sink *first = open_expecting("file", read), *second = open_expecting("file", read);
    CHECK(tn_sink_publish(second, 3, NULL) == TN_OK);
    CHECK(tn_sink_publish(first, 8, NULL) == TN_ERR_CHANGED);
    CHECK(file_is("file", "new") && count_entries(folder) == 1);
}

/* ---- which file an output replaces ---- */

static void the_input_is_known_by_every_name(void)
{
    tn_sink *s;
    put_file("in", "old");
    put_file("new", "not read");
    CHECK(link(in_folder("in").text, in_folder("hard").text) == 0);
    CHECK(symlink("in", in_folder("soft").text) == 0);
    tn_identity read = identity("in");
    static const char *const names[] = { "in", "hard", "soft", "./in", "none", "new" };
    for (size_t i = 0; i < 6; i++) {
        CHECK(tn_sink_open(in_folder(names[i]).text, true, &s, NULL) == TN_OK);
        CHECK(tn_sink_replaces(s, &read, NULL) == (i < 4));
        CHECK(tn_sink_replaces(s, &read, in_folder("in").text) == (i < 4));
        tn_sink_abandon(s);
    }
    CHECK(rename(in_folder("new").text, in_folder("in").text) == 0);    /* it loses its name before we look */
    CHECK(tn_sink_open(in_folder("in").text, true, &s, NULL) == TN_OK);
    CHECK(!tn_sink_replaces(s, &read, NULL));
    CHECK(tn_sink_replaces(s, &read, in_folder("in").text));
    CHECK(tn_sink_replaces(s, &read, in_folder("soft").text));
    tn_sink_abandon(s);
}

/* ---- locks ---- */

static void *let_go(void *fd)
{
    nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
    close(*(int *)fd);
    return NULL;
}

static void a_lock_is_waited_for(void)
{
    pthread_t other;
    put_file("file", "old");
    tn_sink *s = open_expecting("file", identity("file"));
    int fd = open(in_folder("file").text, O_RDONLY);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    CHECK(pthread_create(&other, NULL, let_go, &fd) == 0);
    CHECK(tn_sink_publish(s, 8, NULL) == TN_OK && file_is("file", "new text"));
    CHECK(pthread_join(other, NULL) == 0);
}

static void a_lock_that_is_never_let_go_is_an_error(void)
{
    tn_error err = { .text = "" };
    put_file("file", "old");
    int fd = open(in_folder("file").text, O_RDONLY), again = open(in_folder("file").text, O_RDONLY);
    CHECK(fd >= 0 && again >= 0 && flock(fd, LOCK_SH) == 0);
    CHECK(tn_identity_lock(again, 0) == TN_LOCK_BUSY);
    tn_sink *s = open_expecting("file", identity("file"));
    CHECK(tn_sink_publish(s, 8, &err) == TN_ERR_IO && strstr(line_of(&err), "is locked by another program"));
    CHECK(file_is("file", "old") && count_entries(folder) == 1);
    close(fd);
    CHECK(tn_identity_lock(again, 0) == TN_LOCK_HELD);
    close(again);
}

static int no_locks(int fd, int operation)
{
    (void)fd, (void)operation;
    errno = ENOLCK;
    return -1;
}

static void without_locks_changes_are_seen_all_the_same(void)
{
    put_file("file", "old");
    tn_sink_calls.flock = no_locks;
    tn_sink *first = open_expecting("file", identity("file"));
    tn_sink *second = open_expecting("file", identity("file"));
    CHECK(tn_sink_publish(first, 8, NULL) == TN_OK && file_is("file", "new text"));
    CHECK(tn_sink_publish(second, 8, NULL) == TN_ERR_CHANGED);
}

/* ---- whole files ---- */

static const uint8_t bytes[12] = { 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2 };
static const simple tensors[] = {
    { .name = "a", .dtype = TN_UINT8, .rank = 1, .shape = { 12 }, .data = bytes },
};

static void a_conversion_into_its_input_is_refused_if_that_has_changed(void)
{
    static const char *const names[] = { "m.zt", "m.safetensors" };
    for (size_t i = 0; i < 2; i++)
        for (int late = 0; late < 2; late++) {
            tn_create_options create = { .size = sizeof create, .replace = true };
            tn_convert_options options = { .size = sizeof options, .create = &create };
            const tn_meta_edit edit = { NULL, "k", "v" };
            tn_error err = { .text = "" };
            write_file(names[i], (tn_create_options){ .replace = true }, tensors, 1);
            tn_file *f = open_file(names[i]);
            CHECK(tn_convert(f, in_folder(names[i]).text, &options, NULL, &err) == TN_OK);
            if (late)           /* the conversion above has changed it already */
                CHECK(tn_edit_meta(in_folder(names[i]).text, &edit, 1, NULL, NULL, NULL) == TN_OK);
            CHECK(tn_convert(f, in_folder(names[i]).text, &options, NULL, &err) == TN_ERR_CHANGED);
            CHECK(strstr(line_of(&err), names[i]) && strstr(line_of(&err), "has changed since it was read"));
            CHECK(tn_convert(f, in_folder("elsewhere.zt").text, &options, NULL, &err) == TN_OK);
            tn_close(f);
            f = open_file(names[i]);
            size_t n;
            tn_file_meta(f, &n);
            CHECK(n == (size_t)late);
            tn_close(f);
        }
    CHECK(count_entries(folder) == 3);
}

/* ---- two who edit ---- */

static void *edit_again_and_again(void *key)
{
    for (int i = 0; i < 40; i++) {
        char own[16];
        snprintf(own, sizeof own, "%s%d", (const char *)key, i);
        if (tn_edit_meta(in_folder("m.zt").text, &(tn_meta_edit){ NULL, own, "v" }, 1, NULL, NULL,
                         NULL) != TN_OK)
            return "failed";
    }
    return NULL;
}

static int no_sync(int fd)
{
    (void)fd;
    return 0;
}

static void no_edit_is_lost(void)
{
    pthread_t other;
    void *failed;
    size_t n;
    write_file("m.zt", (tn_create_options){ 0 }, tensors, 1);
    tn_sink_calls.fsync = no_sync;      /* says nothing here */
    CHECK(pthread_create(&other, NULL, edit_again_and_again, "a") == 0);
    CHECK(edit_again_and_again("b") == NULL);
    CHECK(pthread_join(other, &failed) == 0 && failed == NULL);
    tn_file *f = open_file("m.zt");
    tn_file_meta(f, &n);
    CHECK(n == 80);
    tn_close(f);
    CHECK(count_entries(folder) == 1);
}

#undef IN_FOLDER
#define IN_FOLDER(function) \
    { #function, (CMUnitTestFunction)(void (*)(void))function, keep_calls, restore_calls, NULL }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(no_change_of_the_file_is_undone),
        IN_FOLDER(a_file_as_it_was_read_is_replaced),
        IN_FOLDER(of_two_who_read_the_same_one_replaces_it),
        IN_FOLDER(the_input_is_known_by_every_name),
        IN_FOLDER(a_lock_is_waited_for),
        IN_FOLDER(a_lock_that_is_never_let_go_is_an_error),
        IN_FOLDER(without_locks_changes_are_seen_all_the_same),
        IN_FOLDER(a_conversion_into_its_input_is_refused_if_that_has_changed),
        IN_FOLDER(no_edit_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
