/* Pinned memory: locked where the user may, and a text that helps where not. */
#include "support.h"

#include <errno.h>
#include <grp.h>
#include <sys/resource.h>

#include "held.h"

#include "share/memory_calls.h"

#include <tenon/buffer.h>

enum { NOBODY = 65534, KIB = 1024 };

static const tn_handle_type types[] = { TN_HANDLE_NONE, TN_HANDLE_MEMFD };

/* A number of /proc/self/status. */
static unsigned long long status_number(const char *format)
{
    char line[200];
    unsigned long long number = 0;
    FILE *f = fopen("/proc/self/status", "re");
    REQUIRE(f);
    while (fgets(line, sizeof line, f) && sscanf(line, format, &number) != 1)
        ;
    fclose(f);
    return number;
}

static unsigned long long locked_kib(void) { return status_number("VmLck: %llu kB"); }
static bool privileged(void)               { return status_number("CapEff: %llx") >> 14 & 1; }

static tn_status pin(tn_handle_type type, uint64_t bytes, tn_buffer **b, tn_error *err)
{
    tn_buffer_options options = { .size = sizeof options, .type = type, .flags = TN_MEM_PINNED };
    *b = NULL;
    return tn_buffer_new(bytes, &options, b, err);
}

/* A user without privileges who may lock so much. */
static void become_nobody(rlim_t limit)
{
    struct rlimit l = { limit, limit };
    REQUIRE(setrlimit(RLIMIT_MEMLOCK, &l) == 0);
    if (geteuid() == 0)
        REQUIRE(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
                setresuid(NOBODY, NOBODY, NOBODY) == 0);
    REQUIRE(!privileged());
}

/* ---- without privileges ---- */

static void check_help(const tn_error *err, const char *asked, const char *limit, const char *used)
{
    const char *const words[] = { asked, limit, used, "RLIMIT_MEMLOCK", "ulimit -l", "LimitMEMLOCK=",
                                  "/etc/security/limits.conf",
                                  "CAP_IPC_LOCK" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(line_of(err), words[i])) {
            fprintf(stderr, "no \"%s\" in: %s\n", words[i], line_of(err));
            abort();
        }
}

static void pin_nothing(void)
{
    become_nobody(0);
    held before = held_now();
    for (int i = 0; i < 2; i++) {
        tn_buffer *b;
        tn_error err;
        REQUIRE(pin(types[i], 100 * KIB, &b, &err) == TN_ERR_LIMIT && err.status == TN_ERR_LIMIT &&
                b == NULL);
        check_help(&err, "cannot pin 102400 bytes", "is 0 bytes", "which 0 are in use");
        REQUIRE(pin(types[i], 1, &b, NULL) == TN_ERR_LIMIT);
        REQUIRE(nothing_more_than(before) && locked_kib() == 0);
    }
}

static void pin_up_to_the_limit(void)
{
    become_nobody(1024 * KIB);
    held before = held_now();
    for (int i = 0; i < 2; i++) {
        tn_buffer *b, *more;
        tn_error err;
        REQUIRE(pin(types[i], 2048 * KIB, &b, &err) == TN_ERR_LIMIT);
        check_help(&err, "cannot pin 2097152 bytes", "is 1048576 bytes", "which 0 are in use");
        REQUIRE(pin(types[i], 600 * KIB, &b, &err) == TN_OK);
        REQUIRE(tn_buffer_flags(b) & TN_MEM_PINNED && locked_kib() == 600);
        REQUIRE(pin(types[1 - i], 600 * KIB, &more, &err) == TN_ERR_LIMIT);
        check_help(&err, "cannot pin 614400 bytes", "is 1048576 bytes", "which 614400 are in use");
        REQUIRE(locked_kib() == 600);
        REQUIRE(pin(types[1 - i], 400 * KIB, &more, &err) == TN_OK && locked_kib() == 1000);
        tn_buffer_unref(b);
        REQUIRE(locked_kib() == 400);
        tn_buffer_unref(more);
        REQUIRE(locked_kib() == 0 && nothing_more_than(before));
    }
}

static void freeze_pinned(void)
{
    become_nobody(1024 * KIB);
    tn_buffer *b;
    REQUIRE(pin(TN_HANDLE_MEMFD, 600 * KIB, &b, NULL) == TN_OK && locked_kib() == 600);
    strcpy(tn_buffer_data(b), "text");
    REQUIRE(tn_buffer_freeze(b, NULL) == TN_OK && locked_kib() == 600);
    REQUIRE(tn_buffer_flags(b) & TN_MEM_PINNED && strcmp(tn_buffer_data(b), "text") == 0);
    tn_buffer_unref(b);
    REQUIRE(locked_kib() == 0);
}

static void a_user_who_may_lock_nothing_is_told_how_that_is_changed(void)
{
    CHECK(in_child(pin_nothing) == 0);
}
static void a_user_may_lock_up_to_the_limit(void)
{
    CHECK(in_child(pin_up_to_the_limit) == 0);
}
static void frozen_memory_stays_pinned(void)
{
    CHECK(in_child(freeze_pinned) == 0);
}

/* ---- with privileges, and other failures ---- */

static int problem;

static int no_lock(const void *address, size_t n)
{
    (void)address, (void)n;
    errno = problem;
    return -1;
}

static void pin_beyond_the_limit(void)
{
    struct rlimit none = { 0, 0 };
    tn_buffer *b;
    REQUIRE(setrlimit(RLIMIT_MEMLOCK, &none) == 0);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pin(types[i], 100 * KIB, &b, NULL) == TN_OK && locked_kib() == 100);
        tn_buffer_unref(b);
    }
    tn_memory_calls.mlock = no_lock;
    problem = ENOMEM;
    REQUIRE(pin(TN_HANDLE_NONE, 100 * KIB, &b, NULL) == TN_ERR_NOMEM);
}

static void the_limit_does_not_count_for_who_has_the_capability(void)
{
    if (!privileged())
        skip();
    CHECK(in_child(pin_beyond_the_limit) == 0);
}

/* A limit that was not met is not blamed. */
static void fail_otherwise(void)
{
    tn_buffer *b;
    tn_error err;
    become_nobody(1024 * KIB);
    tn_memory_calls.mlock = no_lock;
    held before = held_now();
    problem = ENOMEM;
    REQUIRE(pin(TN_HANDLE_NONE, 100 * KIB, &b, &err) == TN_ERR_NOMEM && !strstr(line_of(&err), "RLIMIT"));
    REQUIRE(pin(TN_HANDLE_NONE, 1025 * KIB, &b, &err) == TN_ERR_LIMIT);
    problem = EAGAIN;
    REQUIRE(pin(TN_HANDLE_MEMFD, 1025 * KIB, &b, &err) == TN_ERR_IO && strstr(line_of(&err), "cannot pin: "));
    problem = EPERM;
    REQUIRE(pin(TN_HANDLE_MEMFD, 100 * KIB, &b, &err) == TN_ERR_LIMIT);
    REQUIRE(nothing_more_than(before));
}

static void other_reasons_are_not_called_a_limit(void) { CHECK(in_child(fail_otherwise) == 0); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_user_who_may_lock_nothing_is_told_how_that_is_changed),
        TEST(a_user_may_lock_up_to_the_limit),
        TEST(frozen_memory_stays_pinned),
        TEST(the_limit_does_not_count_for_who_has_the_capability),
        TEST(other_reasons_are_not_called_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
