/* tests/support/offering.h - a process that offers, until it is told to stop, and
 * sees that nothing is left of those who came.  Include it after support.h. */
#ifndef TN_TESTS_OFFERING_H
#define TN_TESTS_OFFERING_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "held.h"

#include <tenon/tenon.h>

/* So long that a busy machine does not matter: where nothing is said. */
enum { LONG = 60000 };

static tn_offer *offering;

static inline void stop_offering(int number)
{
    (void)number;
    tn_offer_stop(offering);
}

/* In a process of its own: offers what `fill` puts there. */
static inline void offer_until_told(const char *where, const tn_offer_options *options,
                                    void (*fill)(tn_offer *), int ready)
{
    tn_error err = { .text = "" };
    tn_offer_options patient = { .size = sizeof patient, .patience = LONG };
    struct sigaction action = { .sa_handler = stop_offering };
    if (tn_share_offer(where, options ? options : &patient, &offering, &err))
        fprintf(stderr, "%s: %s\n", where, line_of(&err));
    REQUIRE(!err.status);
    fill(offering);
    REQUIRE(sigaction(SIGTERM, &action, NULL) == 0);
    int before = held_descriptors();
    REQUIRE(write(ready, "", 1) == 1);
    REQUIRE(close(ready) == 0);
    REQUIRE(tn_offer_run(offering, NULL) == TN_OK);
    REQUIRE(held_descriptors() == before - 1);          /* `ready` was one */
    tn_offer_close(offering);
    REQUIRE(access(where, F_OK) != 0);
}

/* The process, once it answers. */
static inline pid_t start_offering(const char *where, const tn_offer_options *options,
                                   void (*fill)(tn_offer *))
{
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);       /* a test that fails leaves nobody behind */
        close(ends[0]);
        offer_until_told(where, options, fill, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1)
        fail_msg("%s is not offered", where);
    close(ends[0]);
    return pid;
}

/* Every process that was offering ends well, and has let go of everything. */
static inline void end_offering(pid_t pid)
{
    int status = -1;
    CHECK(kill(pid, SIGTERM) == 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    if (status != 0)
        fail_msg("the process that offered ended with status 0x%x", (unsigned)status);
}

static inline tn_attachment *attach_so(const char *where, const tn_attach_options *options)
{
    tn_attachment *a = NULL;
    tn_error err = { .text = "" };
    tn_attach_options patient = { .size = sizeof patient, .patience = LONG };
    if (tn_share_attach(where, options ? options : &patient, &a, &err))
        fail_msg("%s: %s", where, line_of(&err));
    return a;
}

static inline const tn_attached *attached_called(const tn_attachment *a, const char *name)
{
    for (size_t i = 0; i < tn_attached_count(a); i++)
        if (strcmp(tn_attached_at(a, i)->name, name) == 0)
            return tn_attached_at(a, i);
    fail_msg("%s is not there", name);
    return NULL;
}

#endif
