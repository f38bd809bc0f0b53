/* Files that are cut while they are mapped: zeros and a flag, no SIGBUS; and
 * every other SIGBUS goes where it went before.
 *
 * A process has one handler for good, so what depends on who was there first
 * runs in a process of its own. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "folder.h"
#include "held.h"

#include "bytes/guard.h"

#include <tenon/buffer.h>

#define HERE(test) { #test, (CMUnitTestFunction)(void (*)(void))test, make_folder, remove_folder, NULL }

enum { PAGE = 4096, PAGES = 8, BYTES = PAGES * PAGE };

/* Name i, all bytes 'a' + i. */
static void make_plain(int i)
{
    char name[20], page[PAGE];
    snprintf(name, sizeof name, "plain%d", i);
    FILE *f = fopen(in_folder(name).text, "w");
    REQUIRE(f);
    memset(page, 'a' + i % 26, sizeof page);
    for (int k = 0; k < PAGES; k++)
        REQUIRE(fwrite(page, PAGE, 1, f) == 1);
    REQUIRE(fclose(f) == 0);
}

static void cut(int i, off_t size)
{
    char name[20];
    snprintf(name, sizeof name, "plain%d", i);
    REQUIRE(truncate(in_folder(name).text, size) == 0);
}

static int open_plain(int i)
{
    char name[20];
    snprintf(name, sizeof name, "plain%d", i);
    int fd = open(in_folder(name).text, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    return fd;
}

static tn_buffer *guarded(int i, uint64_t offset, uint64_t n)
{
    tn_exported e = { .type = TN_HANDLE_MEMFD, .bytes = n, .offset = offset, .read_only = true,
                      .fd = open_plain(i) };
    tn_buffer *b = NULL;
    REQUIRE(tn_buffer_import(&e, true, &b, NULL) == TN_OK);
    return b;
}

static char at(const tn_buffer *b, size_t i)
{
    return ((const volatile char *)tn_buffer_data(b))[i];
}

/* ---- what is read ---- */

static void what_was_cut_reads_as_zero_and_the_buffer_is_broken(void)
{
    static const off_t ends[] = { 0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, BYTES - PAGE };
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        for (size_t first = 0; first < BYTES; first += 3 * PAGE + 5) {
            make_plain(0);
            held before = held_now();
            tn_buffer *b = guarded(0, 0, BYTES);
            CHECK(at(b, BYTES - 1) == 'a' && !tn_buffer_broken(b));
            cut(0, ends[k]);
            errno = 77;
            char c = at(b, first);              /* any place may be met first */
            CHECK(errno == 77 && c == (first < (size_t)ends[k] ? 'a' : 0));
            for (size_t i = 0; i < BYTES; i += 7)
                CHECK(at(b, i) == (i < (size_t)ends[k] ? 'a' : 0));
            CHECK(tn_buffer_broken(b));
            tn_buffer_unref(b);
            CHECK(nothing_more_than(before));
        }
}

/* As a hole in memory that others may write, which the system has no page for. */
static void what_is_missed_by_writing_is_written_to_zeros(void)
{
    make_plain(0);
    int fd = open(in_folder("plain0").text, O_RDWR | O_CLOEXEC);
    char *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    tn_guard *guard;
    REQUIRE(fd >= 0 && map != MAP_FAILED);
    tn_guarded what = { .base = map, .extent = BYTES, .grain = PAGE, .fd = fd, .writable = true };
    REQUIRE(tn_guard_add(&what, &guard, NULL) == TN_OK);
    cut(0, PAGE);
    ((volatile char *)map)[PAGE] = 'x';
    uint64_t missed = 0;
    CHECK(((volatile char *)map)[PAGE] == 'x' && map[PAGE + 1] == 0 && map[0] == 'a');
    CHECK(tn_guard_harm(guard, &missed) == TN_HARM_CUT && missed == PAGE);
    tn_guard_drop(guard);
    munmap(map, BYTES);
    close(fd);
}

/* As where a disk fails: a page is missing that is not beyond the end of the file, here by the descriptor of
 * another. */
static void what_cannot_be_read_is_a_page_of_zeros(void)
{
    make_plain(0);
    make_plain(1);
    int fd = open_plain(0), other = open_plain(1);
    const volatile char *map = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    tn_guard *guard;
    uint64_t missed = 0;
    REQUIRE(map != MAP_FAILED);
    tn_guarded what = { .base = (void *)(uintptr_t)map, .extent = BYTES, .grain = PAGE, .fd = other };
    REQUIRE(tn_guard_add(&what, &guard, NULL) == TN_OK);
    CHECK(tn_guard_harm(guard, &missed) == TN_HARM_NONE);
    cut(0, 2 * PAGE);
    CHECK(map[3 * PAGE] == 0 && tn_guard_harm(guard, &missed) == TN_HARM_UNREADABLE && missed == 3 * PAGE);
    make_plain(0);
    CHECK(map[3 * PAGE] == 0 && map[4 * PAGE] == 'a');          /* the others stay as they are */
    CHECK(tn_guard_harm(guard, &missed) == TN_HARM_UNREADABLE && missed == 3 * PAGE);
    tn_guard_drop(guard);
    munmap((void *)(uintptr_t)map, BYTES);
    close(fd), close(other);
}

static void what_was_not_read_is_not_missed(void)
{
    make_plain(0);
    tn_buffer *b = guarded(0, 0, BYTES);
    cut(0, PAGE);
    CHECK(at(b, 0) == 'a' && !tn_buffer_broken(b));
    cut(0, BYTES);              /* grown again: zeros of the file */
    CHECK(at(b, BYTES - 1) == 0 && !tn_buffer_broken(b));
    tn_buffer_unref(b);
}

static void a_file_may_be_cut_again_and_again(void)
{
    make_plain(0);
    tn_buffer *b = guarded(0, 0, BYTES);
    for (size_t left = PAGES; left-- > 0;) {
        cut(0, (off_t)left * PAGE);
        for (size_t i = 0; i < BYTES; i += 100)
            CHECK(at(b, i) == (i < left * PAGE ? 'a' : 0));
    }
    cut(0, BYTES);
    CHECK(at(b, 0) == 0 && tn_buffer_broken(b));
    tn_buffer_unref(b);
}

static void what_was_cut_stays_zero_when_the_file_grows_again(void)
{
    static const struct { uint64_t offset, bytes; size_t lost; } cases[] = { { 0, BYTES, 3 * PAGE },
                                                                             { 2 * PAGE, 4 * PAGE, PAGE } };
    for (int i = 0; i < 2; i++) {
        make_plain(0);
        tn_buffer *b = guarded(0, cases[i].offset, cases[i].bytes);
        cut(0, 3 * PAGE);
        CHECK(at(b, cases[i].bytes - 1) == 0);
        make_plain(0);          /* the same file, all there */
        for (size_t k = 0; k < cases[i].bytes; k += 100)
            CHECK(at(b, k) == (k < cases[i].lost ? 'a' : 0));
        tn_buffer_unref(b);
    }
}

static void a_mapping_of_the_middle_of_a_file_is_guarded_too(void)
{
    make_plain(0);
    tn_buffer *b = guarded(0, 2 * PAGE + 100, 3 * PAGE);
    cut(0, 3 * PAGE);
    CHECK(at(b, PAGE - 101) == 'a' && at(b, PAGE - 100) == 0 && at(b, 3 * PAGE - 1) == 0);
    CHECK(tn_buffer_broken(b));
    tn_buffer_unref(b);
    make_plain(0);
    b = guarded(0, 2 * PAGE + 100, 3 * PAGE);
    cut(0, PAGE);               /* before it begins */
    CHECK(at(b, 0) == 0 && at(b, 3 * PAGE - 1) == 0 && tn_buffer_broken(b));
    tn_buffer_unref(b);
}

static void the_kernel_gets_an_error_instead(void)
{
    int pipes[2];
    make_plain(0);
    CHECK(pipe(pipes) == 0);
    tn_buffer *b = guarded(0, 0, BYTES);
    cut(0, 0);
    CHECK(write(pipes[1], tn_buffer_data(b), 10) == -1 && errno == EFAULT && !tn_buffer_broken(b));
    tn_guard_touch(tn_buffer_data(b), 10);
    CHECK(tn_buffer_broken(b));
    tn_guard_touch((void *)8, 10);      /* not ours */
    tn_buffer_unref(b);
    close(pipes[0]), close(pipes[1]);
}

static void any_number_of_files_is_guarded_each_for_itself(void)
{
    enum { FILES = 150 };       /* more than a block of slots */
    tn_buffer *buffers[FILES];
    held before = held_now();
    for (int i = 0; i < FILES; i++) {
        make_plain(i);
        buffers[i] = guarded(i, 0, BYTES);
    }
    for (int i = 0; i < FILES; i += 3)
        cut(i, PAGE);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < FILES; i++) {
            bool is_cut = i % 3 == 0;
            CHECK(at(buffers[i], PAGE) == (is_cut ? 0 : 'a' + i % 26) && at(buffers[i], 0) == 'a' + i % 26);
            CHECK(tn_buffer_broken(buffers[i]) == is_cut);
            if (i % 2 == 0 && round == 0) {     /* slots that are free again */
                tn_buffer_unref(buffers[i]);
                make_plain(i);
                buffers[i] = guarded(i, 0, BYTES);
                CHECK(!tn_buffer_broken(buffers[i]));
                if (is_cut)
                    cut(i, PAGE);
            }
        }
    for (int i = 0; i < FILES; i++)
        tn_buffer_unref(buffers[i]);
    CHECK(nothing_more_than(before));
}

/* ---- many threads ---- */

static atomic_bool enough;
static tn_buffer *common;

static void *come_and_go(void *argument)
{
    while (!atomic_load(&enough)) {
        tn_buffer *b = guarded(*(int *)argument, 0, BYTES);
        REQUIRE(at(b, 0) == 'a' + *(int *)argument && !tn_buffer_broken(b));
        tn_buffer_unref(b);
    }
    return NULL;
}

static void *read_common(void *unused)
{
    for (size_t i = 0; i < BYTES; i += 64)
        REQUIRE(at(common, i) == (i < PAGE ? 'a' : 0));
    return unused;
}

static void threads_may_meet_the_end_at_once_while_others_come_and_go(void)
{
    enum { READERS = 4, OTHERS = 3, ROUNDS = 20 };
    pthread_t readers[READERS], others[OTHERS];
    int names[OTHERS];
    atomic_store(&enough, false);
    for (int i = 0; i < OTHERS; i++) {
        names[i] = i + 1;
        make_plain(i + 1);
        CHECK(pthread_create(&others[i], NULL, come_and_go, &names[i]) == 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        make_plain(0);
        common = guarded(0, 0, BYTES);
        cut(0, PAGE);
        for (int i = 0; i < READERS; i++)
            CHECK(pthread_create(&readers[i], NULL, read_common, NULL) == 0);
        for (int i = 0; i < READERS; i++)
            CHECK(pthread_join(readers[i], NULL) == 0);
        CHECK(tn_buffer_broken(common));
        tn_buffer_unref(common);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < OTHERS; i++)
        CHECK(pthread_join(others[i], NULL) == 0);
}

/* ---- what is not ours ---- */

static sigjmp_buf back;
static volatile sig_atomic_t heard;
static volatile char seen;      /* what is read goes somewhere: valgrind leaves out reads for nothing */
static void *volatile heard_where;

static void hear(int number)
{
    heard = number;
    siglongjmp(back, 1);
}

static void hear_where(int number, siginfo_t *info, void *context)
{
    (void)context;
    heard_where = info->si_addr;
    hear(number);
}

static void before_us(struct sigaction action)
{
    REQUIRE(sigaction(SIGBUS, &action, NULL) == 0);
    make_plain(0);
    make_plain(1);
    tn_buffer *b = guarded(0, 0, BYTES);        /* installs ours */
    cut(0, 0);
    REQUIRE(at(b, 0) == 0 && tn_buffer_broken(b));
}

/* A mapping that nobody guards, of a file that was cut. */
static const volatile char *unguarded(void)
{
    int fd = open_plain(1);
    const volatile char *map = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    REQUIRE(map != MAP_FAILED);
    cut(1, 0);
    return map;
}

static void hear_faults(void)
{
    before_us((struct sigaction){ .sa_sigaction = hear_where, .sa_flags = SA_SIGINFO });
    const volatile char *map = unguarded();
    for (int i = 0; i < 2; i++) {
        heard = 0;
        if (sigsetjmp(back, 1) == 0)
            seen = map[2 * PAGE];
        REQUIRE(heard == SIGBUS && heard_where == (void *)(uintptr_t)(map + 2 * PAGE));
    }
}

static void hear_signals(void)
{
    before_us((struct sigaction){ .sa_handler = hear });
    const volatile char *map = unguarded();
    if (sigsetjmp(back, 1) == 0)
        seen = map[0];
    REQUIRE(heard == SIGBUS);
    heard = 0;
    if (sigsetjmp(back, 1) == 0)
        raise(SIGBUS);
    REQUIRE(heard == SIGBUS);
}

static void hear_what_was_guarded_once(void)
{
    before_us((struct sigaction){ .sa_handler = hear });
    tn_buffer *b = guarded(1, 0, BYTES);
    void *place = tn_buffer_data(b);
    tn_buffer_unref(b);
    int fd = open_plain(1);
    const volatile char *map = mmap(place, BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
    REQUIRE(map == place);
    cut(1, 0);
    if (sigsetjmp(back, 1) == 0)
        seen = map[0];
    REQUIRE(heard == SIGBUS);
}

/* What is sent says what the sender likes: such an address is not one that was missed. */
static void hear_what_was_sent_with_an_address_of_ours(void)
{
    static const int codes[] = { SI_QUEUE, BUS_ADRALN };
    before_us((struct sigaction){ .sa_sigaction = hear_where, .sa_flags = SA_SIGINFO });
    tn_buffer *b = guarded(1, 0, BYTES);
    for (int i = 0; i < 2; i++) {
        siginfo_t info = { .si_signo = SIGBUS, .si_code = codes[i] };
        info.si_addr = tn_buffer_data(b);
        heard = 0;
        if (sigsetjmp(back, 1) == 0)
            REQUIRE(syscall(SYS_rt_sigqueueinfo, getpid(), SIGBUS, &info) == 0);
        REQUIRE(heard == SIGBUS && heard_where == tn_buffer_data(b) && !tn_buffer_broken(b) &&
                at(b, 0) == 'b');
    }
}

static void fault_by_default(void)
{
    before_us((struct sigaction){ .sa_handler = SIG_DFL });
    seen = unguarded()[0];
}

static void fault_ignored(void)
{
    before_us((struct sigaction){ .sa_handler = SIG_IGN });
    seen = unguarded()[0];
}

static void sent_by_default(void)
{
    before_us((struct sigaction){ .sa_handler = SIG_DFL });
    kill(getpid(), SIGBUS);
}

static void sent_ignored(void)
{
    before_us((struct sigaction){ .sa_handler = SIG_IGN });
    REQUIRE(kill(getpid(), SIGBUS) == 0);
}

static bool ended_by_sigbus(void (*function)(void))
{
    int status = in_child(function);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
}

static void every_other_sigbus_reaches_the_handler_before(void)
{
    CHECK(in_child(hear_faults) == 0);
    CHECK(in_child(hear_signals) == 0);
    CHECK(in_child(hear_what_was_guarded_once) == 0);
    CHECK(in_child(hear_what_was_sent_with_an_address_of_ours) == 0);
    CHECK(ended_by_sigbus(fault_by_default));
    CHECK(ended_by_sigbus(fault_ignored));
    CHECK(ended_by_sigbus(sent_by_default));
    CHECK(in_child(sent_ignored) == 0);
}

/* ---- handlers that come later ---- */

static struct sigaction ours;
static int later_calls;

static void hand_back(int number, siginfo_t *info, void *context)
{
    later_calls++;
    ours.sa_sigaction(number, info, context);
}

/* A program that is as polite as we are, and we come again: nobody goes in circles. */
static void hear_behind_others(void)
{
    struct sigaction later = { .sa_sigaction = hand_back, .sa_flags = SA_SIGINFO };
    before_us((struct sigaction){ .sa_handler = hear });
    REQUIRE(sigaction(SIGBUS, &later, &ours) == 0);
    make_plain(2);
    tn_buffer *b = guarded(2, 0, BYTES);
    cut(2, 0);
    REQUIRE(at(b, 0) == 0 && later_calls == 0);
    const volatile char *map = unguarded();
    for (int i = 1; i < 3; i++) {
        heard = 0;
        if (sigsetjmp(back, 1) == 0)
            seen = map[0];
        REQUIRE(heard == SIGBUS && later_calls == i);
    }
}

/* A program that is not. */
static void come_again(void)
{
    struct sigaction rude = { .sa_handler = hear };
    before_us((struct sigaction){ .sa_handler = SIG_DFL });
    for (int i = 0; i < 40; i++) {
        REQUIRE(sigaction(SIGBUS, &rude, NULL) == 0);
        make_plain(2);
        tn_buffer *b = guarded(2, 0, BYTES);
        cut(2, 0);
        REQUIRE(at(b, 0) == 0 && tn_buffer_broken(b));
        tn_buffer_unref(b);
    }
    if (sigsetjmp(back, 1) == 0)
        seen = unguarded()[0];
    REQUIRE(heard == SIGBUS);
}

static void handlers_that_were_put_over_ours_lie_under_it_with_the_next_guard(void)
{
    CHECK(in_child(hear_behind_others) == 0);
    CHECK(in_child(come_again) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HERE(every_other_sigbus_reaches_the_handler_before),    /* first: while there is no handler of ours */
        HERE(handlers_that_were_put_over_ours_lie_under_it_with_the_next_guard),
        HERE(what_was_cut_reads_as_zero_and_the_buffer_is_broken),
        HERE(what_is_missed_by_writing_is_written_to_zeros),
        HERE(what_cannot_be_read_is_a_page_of_zeros),
        HERE(what_was_not_read_is_not_missed),
        HERE(a_file_may_be_cut_again_and_again),
        HERE(what_was_cut_stays_zero_when_the_file_grows_again),
        HERE(a_mapping_of_the_middle_of_a_file_is_guarded_too),
        HERE(the_kernel_gets_an_error_instead),
        HERE(any_number_of_files_is_guarded_each_for_itself),
        HERE(threads_may_meet_the_end_at_once_while_others_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
