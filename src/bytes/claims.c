/* bytes/claims.c - pieces of work, divided by locks. */
#include "bytes/claims.h"
#include "base/error.h"
#include "bytes/checksum.h"
#include "bytes/identity.h"
#include "bytes/source.h"
#include "bytes/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
#define QUESTION ".ask"
#define NO_LOCKS "no-locks"

tn_status tn_claims_fail(tn_error *err, int error_number, const char *what)
{
    char text[120];
    if (error_number == ENOENT)
        return tn_fail(err, TN_ERR_CHANGED, "%s is gone: another process has finished or abandoned the work",
                       what);
    snprintf(text, sizeof text, "cannot use %s", what);
    return tn_fail_errno(err, error_number, text);
}

/* ---- files of a piece ---- */

void tn_claim_name(size_t piece, const char *suffix, char name[TN_CLAIM_NAME])
{
    snprintf(name, TN_CLAIM_NAME, "%05zu%s", piece, suffix);
}

void tn_claim_path(const tn_claims *c, size_t piece, const char *suffix, char path[PATH_MAX])
{
    char name[TN_CLAIM_NAME];
    tn_claim_name(piece, suffix, name);
    int n = snprintf(path, PATH_MAX, "%s%spieces/%s", c->path ? c->path : "", c->path ? "/" : "", name);
    if (n >= PATH_MAX)
        snprintf(path, PATH_MAX, "%s", name);
}

bool tn_claim_has(const tn_claims *c, size_t piece, const char *suffix)
{
    char name[TN_CLAIM_NAME];
    tn_claim_name(piece, suffix, name);
    return faccessat(c->pieces, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void tn_claim_remove(const tn_claims *c, size_t piece, const char *suffix)
{
    char name[TN_CLAIM_NAME];
    tn_claim_name(piece, suffix, name);
    unlinkat(c->pieces, name, 0);
}

static int write_all(int fd, tn_text text)
{
    for (size_t at = 0; at < text.len;) {
        ssize_t n = write(fd, text.ptr + at, text.len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

/* A file of this process alone: no other has its name. */
static int create_own(const tn_claims *c, size_t piece, char name[TN_CLAIM_PART])
{
    snprintf(name, TN_CLAIM_PART, "%05zu.%s", piece, c->name);
    return openat(c->pieces, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
}

tn_status tn_claim_put(const tn_claims *c, size_t piece, const char *suffix, tn_text text, tn_error *err)
{
    char own[TN_CLAIM_PART], name[TN_CLAIM_NAME];
    int fd = create_own(c, piece, own);
    tn_claim_name(piece, suffix, name);
    bool good = fd >= 0 && write_all(fd, text) == 0;
    int problem = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        problem = errno;
    }
    if (good && renameat(c->pieces, own, c->pieces, name) == 0)
        return TN_OK;
    problem = good ? errno : problem;
    unlinkat(c->pieces, own, 0);
    return tn_claims_fail(err, problem, "the record of a piece");
}

tn_status tn_claim_get(const tn_claims *c, size_t piece, const char *suffix, tn_arena *arena, tn_text *text,
                       bool *there, tn_error *err)
{
    char name[TN_CLAIM_NAME], path[PATH_MAX];
    tn_source *source = NULL;
    const uint8_t *bytes = NULL;
    uint64_t most = c->most ? c->most : TN_CLAIM_MOST;
    tn_claim_name(piece, suffix, name);
    int fd = openat(c->pieces, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    *there = fd >= 0;
    if (fd < 0)
        return errno == ENOENT ? TN_OK : tn_claims_fail(err, errno, name);
    tn_status status = tn_source_open_fd(fd, TN_IO_PREAD, &source, err);
    close(fd);
    uint64_t size = status ? 0 : tn_source_size(source);
    if (!status && size > most)
        status = tn_fail(err, TN_ERR_LIMIT, "expected at most %" PRIu64 " bytes in a record but found %"
                         PRIu64, most, size);
    if (!status)
        status = tn_source_copy(source, 0, size, arena, &bytes, err);
    if (!status)
        *text = (tn_text){ (const char *)bytes, (size_t)size };
    tn_source_close(source);
    tn_claim_path(c, piece, suffix, path);
    return tn_in_file(status, path, err);
}

/* Where locks do not work another process may have been faster. */
tn_status tn_claim_settle(const tn_claims *c, size_t piece, tn_error *err)
{
    char from[TN_CLAIM_NAME], to[TN_CLAIM_NAME];
    tn_claim_name(piece, c->unsynced, from);
    tn_claim_name(piece, ".done", to);
    if (renameat(c->pieces, from, c->pieces, to) == 0)
        return TN_OK;
    int problem = errno;
    return tn_claim_has(c, piece, ".done") ? TN_OK : tn_claims_fail(err, problem, "the record of a piece");
}

tn_status tn_claim_open_part(const tn_claims *c, size_t piece, char name[TN_CLAIM_PART], int *fd,
                             tn_error *err)
{
    *fd = create_own(c, piece, name);
    return *fd >= 0 ? TN_OK : tn_claims_fail(err, errno, "the file of a piece");
}

tn_status tn_claim_name_part(const tn_claims *c, size_t piece, const char *name, tn_error *err)
{
    char part[TN_CLAIM_NAME];
    tn_claim_name(piece, ".part", part);
    return renameat(c->pieces, name, c->pieces, part) == 0
               ? TN_OK : tn_claims_fail(err, errno, "the file of a piece");
}

/* ---- claims ---- */

static int open_lock(const tn_claims *c, size_t piece, int flags)
{
    char name[TN_CLAIM_NAME];
    tn_claim_name(piece, ".lock", name);
    return openat(c->pieces, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
}

tn_status tn_claim_piece(tn_claims *c, size_t piece, tn_claim *claim, int *lock, tn_error *err)
{
    char text[TN_PROCESS_TEXT];
    *lock = -1;
    *claim = TN_CLAIM_DONE;
    if (tn_claim_has(c, piece, ".done"))
        return TN_OK;
    int fd = open_lock(c, piece, O_CREAT);
    if (fd < 0)
        return tn_claims_fail(err, errno, "the lock of a piece");
    *claim = TN_CLAIM_MINE;
    tn_lock got = c->problem ? TN_LOCK_NONE : tn_identity_lock(fd, 0);
    if (got == TN_LOCK_NONE && !c->problem)
        c->problem = TN_LOCKS_NONE;
    if (got == TN_LOCK_BUSY)
        *claim = TN_CLAIM_HELD;
    else if (tn_claim_has(c, piece, ".done"))   /* by whoever had the lock before */
        *claim = TN_CLAIM_DONE;
    if (*claim != TN_CLAIM_MINE) {
        close(fd);
        return TN_OK;
    }
    tn_process_format(&c->self, text);
    size_t n = strlen(text);
    if (pwrite(fd, text, n, 0) == (ssize_t)n)           /* what is not written is not known: no harm */
        (void)!ftruncate(fd, (off_t)n);
    *lock = fd;
    return TN_OK;
}

/* Who has it is forgotten first: the lock may be looked at without being tried.  A process that was forked
 * meanwhile has the lock as well, until it is given back. */
void tn_claim_release(int lock)
{
    if (lock < 0)
        return;
    (void)!ftruncate(lock, 0);
    (void)flock(lock, LOCK_UN);
    close(lock);
}

static bool read_process(int fd, tn_process *p)
{
    char text[TN_PROCESS_TEXT];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    return n > 0 && tn_process_parse(text, (size_t)n, p);
}

bool tn_claim_holder(const tn_claims *c, size_t piece, tn_process *holder)
{
    int fd = open_lock(c, piece, O_NONBLOCK);
    bool known = fd >= 0 && read_process(fd, holder);
    if (fd >= 0)
        close(fd);
    return known;
}

bool tn_claim_lock(tn_claims *c, size_t piece, int *lock)
{
    *lock = c->problem ? -1 : open_lock(c, piece, O_CREAT);
    if (*lock < 0 || tn_identity_lock(*lock, 0) != TN_LOCK_BUSY)
        return true;
    close(*lock);
    *lock = -1;
    return false;
}

/* ---- who is there ---- */

typedef struct tn_asked {
    char             name[48];
    struct tn_asked *next;
} tn_asked;

static bool is_question(const char *name)
{
    size_t n = strlen(name), q = sizeof QUESTION - 1;
    return n > q && strcmp(name + n - q, QUESTION) == 0;
}

static void question_of(const char *name, char question[60])
{
    snprintf(question, 60, "%.48s" QUESTION, name);
}

/* Asked before; then whether it has answered by removing the question. */
static bool has_answered(tn_claims *c, const char *name)
{
    char question[60];
    tn_asked *a = c->asked;
    while (a && strcmp(a->name, name) != 0)
        a = a->next;
    question_of(name, question);
    if (a)
        return faccessat(c->processes, question, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
    a = calloc(1, sizeof *a);
    int fd = a ? openat(c->processes, question, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    if (fd < 0) {
        free(a);
        return false;
    }
    close(fd);
    snprintf(a->name, sizeof a->name, "%s", name);
    a->next = c->asked;
    c->asked = a;
    return false;
}

/* The file of another process.  If its lock can be had the process is dead, or locks are not seen. */
static void check_process(tn_claims *c, const char *name)
{
    tn_process other;
    int fd = openat(c->processes, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    bool known = read_process(fd, &other);
    if (known && tn_identity_lock(fd, 0) == TN_LOCK_HELD) {
        switch (tn_process_look(&other)) {
        case TN_PROCESS_ENDED:
            unlinkat(c->processes, name, 0);
            break;
        case TN_PROCESS_RUNS:
        case TN_PROCESS_STOPPED:
            if (faccessat(c->processes, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                c->problem = TN_LOCKS_LOCAL;
            break;
        case TN_PROCESS_ELSEWHERE:
            if (has_answered(c, name) && faccessat(c->processes, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                c->problem = TN_LOCKS_LOCAL;
            break;
        }
    }
    close(fd);
}

typedef void (*visit_fn)(tn_claims *c, const char *name);

static void each_process(tn_claims *c, visit_fn visit)
{
    int fd = openat(c->processes, ".", FOLDER_FLAGS);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.' && !is_question(entry->d_name) && strcmp(entry->d_name, c->name) != 0)
            visit(c, entry->d_name);
    if (dir)
        closedir(dir);
}

/* Whoever finds that locks do not work tells the others. */
void tn_claims_check(tn_claims *c)
{
    char question[60];
    if (c->alive >= 0) {
        question_of(c->name, question);
        unlinkat(c->processes, question, 0);
    }
    bool knew = c->problem != NULL;
    if (!knew && faccessat(c->work, NO_LOCKS, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        c->problem = TN_LOCKS_LOCAL;
    else if (!knew)
        each_process(c, check_process);
    if (!knew && c->problem) {
        int fd = openat(c->work, NO_LOCKS, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
}

static void count_living(tn_claims *c, const char *name)
{
    int fd = openat(c->processes, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    tn_process other;
    bool counts = !c->here || (read_process(fd, &other) && strcmp(other.host, c->self.host) == 0);
    c->living += counts && tn_identity_is_locked(fd);
    close(fd);
}

size_t tn_claims_living(tn_claims *c, bool here)
{
    c->living = c->alive >= 0 ? 1 : 0;
    c->here = here;
    each_process(c, count_living);
    return c->living;
}

/* Whether it is the one that is looked for, and lives. */
static void find_holder(tn_claims *c, const char *name)
{
    tn_process other;
    int fd = openat(c->processes, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    bool same = read_process(fd, &other) && other.pid == c->holder.pid && other.start == c->holder.start &&
                strcmp(other.host, c->holder.host) == 0;
    c->living += same && tn_identity_is_locked(fd);
    close(fd);
}

/* A lock that is tried for would be missed by a process that tries to get it just then. */
bool tn_claim_is_held(tn_claims *c, size_t piece)
{
    if (c->problem || !tn_claim_holder(c, piece, &c->holder))
        return false;
    c->living = 0;
    each_process(c, find_holder);
    return c->living > 0;
}

static void count_file(tn_claims *c, const char *name)
{
    (void)name;
    c->living++;
}

bool tn_claims_are_alone(tn_claims *c)
{
    c->living = 0;
    each_process(c, count_file);
    return c->living == 0;
}

bool tn_claims_are_gone(const tn_claims *c)
{
    struct stat st;
    return fstat(c->work, &st) != 0 || st.st_nlink == 0 ||
           faccessat(c->work, "plan.json", F_OK, AT_SYMLINK_NOFOLLOW) != 0;
}

/* ---- joining ---- */

/* It has its lock before it has its name. */
static tn_status show_life(tn_claims *c, tn_error *err)
{
    char hidden[64], text[TN_PROCESS_TEXT], random[TN_TEMPORARY_NAME];
    if (!tn_temporary_name(random))
        return tn_fail(err, TN_ERR_IO, "the system gives no random bytes");
    snprintf(c->name, sizeof c->name, "%.20s.%llu.%.6s", *c->self.host ? c->self.host : "-",
             (unsigned long long)c->self.pid, random + sizeof ".tenon-" - 1);
    snprintf(hidden, sizeof hidden, ".%s", c->name);
    tn_process_format(&c->self, text);
    c->alive = openat(c->processes, hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (c->alive < 0)
        return tn_claims_fail(err, errno, "the folder of processes");
    tn_lock got = tn_identity_lock(c->alive, 0);
    if (got == TN_LOCK_NONE)
        c->problem = TN_LOCKS_NONE;
    if (write_all(c->alive, (tn_text){ text, strlen(text) }) != 0 ||
        renameat(c->processes, hidden, c->processes, c->name) != 0) {
        int problem = errno;
        unlinkat(c->processes, hidden, 0);
        return tn_claims_fail(err, problem, "the folder of processes");
    }
    return TN_OK;
}

tn_status tn_claims_open(tn_claims *c, int work, tn_error *err)
{
    *c = (tn_claims){ .work = work, .alive = -1, .self = tn_process_self() };
    const void *which = *c->self.boot ? (const void *)c->self.boot : (const void *)&c->self;
    snprintf(c->unsynced, sizeof c->unsynced, ".made-%08" PRIx32,
             tn_crc32c(0, which, *c->self.boot ? strlen(c->self.boot) : sizeof c->self));
    c->pieces = openat(work, "pieces", FOLDER_FLAGS);
    int problem = errno;
    c->processes = openat(work, "processes", FOLDER_FLAGS);
    if (c->pieces < 0 || c->processes < 0)
        return tn_claims_fail(err, c->pieces < 0 ? problem : errno, "the work folder");
    return TN_OK;
}

tn_status tn_claims_join(tn_claims *c, tn_error *err)
{
    TN_TRY(show_life(c, err));
    tn_claims_check(c);
    return TN_OK;
}

void tn_claims_close(tn_claims *c)
{
    while (c->asked) {
        tn_asked *next = c->asked->next;
        free(c->asked);
        c->asked = next;
    }
    if (c->alive >= 0) {
        unlinkat(c->processes, c->name, 0);
        close(c->alive);
    }
    if (c->pieces >= 0)
        close(c->pieces);
    if (c->processes >= 0)
        close(c->processes);
    c->alive = c->pieces = c->processes = -1;
}
