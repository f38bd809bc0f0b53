/* Which process holds something, as one line of text that anybody may have written. */
#include "support.h"

#include "bytes/process.h"

#include <ctype.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static bool same(const tn_process *a, const tn_process *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->boot, b->boot) == 0 && a->pid == b->pid &&
           a->start == b->start;
}

/* Parses a copy of exactly n bytes.  What is refused is empty, and what is not can be shown. */
static bool parse(const char *text, size_t n, tn_process *p)
{
    static const tn_process none;
    char *copy = (char *)exact_copy(text, n);
    bool known = tn_process_parse(copy, n, p);
    free(copy);
    CHECK(memchr(p->host, 0, sizeof p->host) && memchr(p->boot, 0, sizeof p->boot));
    for (const char *c = p->host; *c; c++)
        CHECK(isgraph((unsigned char)*c));
    CHECK(known || same(p, &none));
    return known;
}

static void a_process_is_known_by_its_text(void)
{
    const tn_process self = tn_process_self();
    const tn_process odd = { .host = "", .boot = "", .pid = UINT64_MAX, .start = UINT64_MAX };
    char text[TN_PROCESS_TEXT];
    tn_process p;
    CHECK(self.pid == (uint64_t)getpid() && self.start && strlen(self.boot) == 36);
    tn_process_format(&self, text);
    CHECK(parse(text, strlen(text), &p) && same(&p, &self));
    CHECK(tn_process_look(&p) == TN_PROCESS_RUNS);
    tn_process_format(&odd, text);
    CHECK(parse(text, strlen(text), &p) && p.pid == UINT64_MAX && strcmp(p.host, "-") == 0);
}

static void the_longest_host_fits(void)
{
    tn_process self = { .pid = UINT64_MAX, .start = UINT64_MAX }, p;
    char text[TN_PROCESS_TEXT];
    memset(self.host, 'h', sizeof self.host - 1);
    memset(self.boot, 'b', sizeof self.boot - 1);
    tn_process_format(&self, text);
    CHECK(text[strlen(text) - 1] == '\n');
    CHECK(parse(text, strlen(text), &p) && same(&p, &self));
}

static void every_truncation_is_refused(void)
{
    const tn_process self = tn_process_self();
    char text[TN_PROCESS_TEXT];
    tn_process p;
    tn_process_format(&self, text);
    for (size_t n = 0; n < strlen(text); n++)
        CHECK(!parse(text, n, &p));
}

static void every_flipped_byte_is_refused_or_read(void)
{
    const tn_process self = tn_process_self();
    char text[TN_PROCESS_TEXT];
    tn_process p;
    tn_process_format(&self, text);
    for (size_t i = 0; i < strlen(text); i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            (void)parse(text, strlen(text), &p);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
}

static void what_is_no_process_is_refused(void)
{
    static const char *const bad[] = {
        "", "\n", " ", "host\n", "host 1 2\n", "host x 2 boot\n", "host -1 2 boot\n", "host +1 2 boot\n",
        "host 1 2 \n", " 1 2 boot\n", "host 99999999999999999999999999 2 boot\n",
        "host 1 2 boot-that-is-longer-than-any-boot-can-be\n", "\x1b[2Jhost 1 2 boot\n", "h\tst 1 2 boot\n",
        "h\xc3\xa4st 1 2 boot\n",
        "a-host-whose-name-is-longer-than-the-sixty-four-characters-of-linux 1 2 boot\n",
    };
    tn_process p;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse(bad[i], strlen(bad[i]), &p))
            fail_msg("accepted: %s", bad[i]);
}

static void look_until(const tn_process *p, tn_process_state expected)
{
    for (int i = 0; i < 2000 && tn_process_look(p) != expected; i++)
        usleep(1000);
    assert_int_equal(tn_process_look(p), expected);
}

static void a_process_is_seen_to_stop_and_end(void)
{
    int ready[2];
    tn_process child;
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        child = tn_process_self();
        (void)!write(ready[1], &child, sizeof child);
        for (;;)
            pause();
    }
    CHECK(read(ready[0], &child, sizeof child) == sizeof child);
    look_until(&child, TN_PROCESS_RUNS);
    CHECK(kill(pid, SIGSTOP) == 0);
    look_until(&child, TN_PROCESS_STOPPED);
    CHECK(kill(pid, SIGKILL) == 0);
    look_until(&child, TN_PROCESS_ENDED);           /* a zombie has lost its locks */
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK(tn_process_look(&child) == TN_PROCESS_ENDED);
    close(ready[0]);
    close(ready[1]);
}

static void another_start_or_boot_is_another_process(void)
{
    tn_process p = tn_process_self();
    p.start++;
    CHECK(tn_process_look(&p) == TN_PROCESS_ENDED);         /* its number was given to this one */
    p = tn_process_self();
    p.boot[0] = p.boot[0] == '0' ? '1' : '0';
    CHECK(tn_process_look(&p) == TN_PROCESS_ELSEWHERE);
    p = tn_process_self();
    p.host[0] = p.host[0] == 'h' ? 'g' : 'h';               /* of another container, with our number and start */
    CHECK(tn_process_look(&p) == TN_PROCESS_ELSEWHERE);
    p = (tn_process){ .pid = 0 };
    CHECK(tn_process_look(&p) == TN_PROCESS_ELSEWHERE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_process_is_known_by_its_text),
        TEST(the_longest_host_fits),
        TEST(every_truncation_is_refused),
        TEST(every_flipped_byte_is_refused_or_read),
        TEST(what_is_no_process_is_refused),
        TEST(a_process_is_seen_to_stop_and_end),
        TEST(another_start_or_boot_is_another_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
