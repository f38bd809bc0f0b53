/* bytes/sink_set.c - several files that appear as one. */
#include "bytes/sink_set.h"
#include "bytes/place.h"
#include "bytes/sink_calls.h"
#include "bytes/sink_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { NUMBER_SIZE = 24, LOCK_SECONDS = 30, PARKING_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

struct tn_sink_set {
    tn_fd_list  descriptors;
    int         folder;         /* where the members will be */
    bool        locked;         /* the folder is locked, or cannot be */
    int         parking;        /* folder of the members that are closed; -1: none is */
    char        parking_name[TN_TEMPORARY_NAME];
    tn_leftover leftover;       /* of that */
    tn_place    like;           /* whose attributes the members get, if it exists */
    tn_lost     lost;           /* attributes that the members do not have */
    tn_listener listener;
    bool        shared;         /* the members are files of `parking`, which others write to as well */
    tn_sink   **members;        /* NULL: freed */
    size_t      count, cap;
};

/* ---- parked files ---- */

static void number_name(const tn_sink *s, char name[NUMBER_SIZE])
{
    snprintf(name, NUMBER_SIZE, "%zu", s->member.number);
}

static bool is_number(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n < NUMBER_SIZE && strspn(name, "0123456789") == n;
}

/* Another sink may remove the folder before it is locked; then the next name is tried. */
static bool open_parking(tn_sink_set *set)
{
    char name[TN_TEMPORARY_NAME];
    for (int i = 0; i < TN_TEMP_TRIES && tn_temporary_name(name); i++) {
        if (mkdirat(set->folder, name, 0700) != 0) {
            if (errno == EEXIST)
                continue;
            return false;
        }
        int fd = openat(set->folder, name, PARKING_FLAGS);
        bool lost = fd < 0 || (tn_sink_calls.flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK);
        if (!lost && tn_is_named(set->folder, name, fd)) {
            set->parking = fd;
            memcpy(set->parking_name, name, sizeof name);
            set->leftover = (tn_leftover){ .folder = set->folder, .name = set->parking_name,
                                           .is_parking = true };
            tn_leftover_add(&set->leftover);
            return true;
        }
        if (fd >= 0)
            close(fd);
    }
    return false;
}

/* A set puts only files there whose names are numbers. */
static void remove_parked(int parking, const char *name)
{
    struct stat st;
    if (is_number(name) && fstatat(parking, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        unlinkat(parking, name, 0);
}

static void empty_parking(int fd, int folder, const char *name)
{
    tn_sink_each_name(fd, remove_parked);
    unlinkat(folder, name, AT_REMOVEDIR);
}

void tn_sink_empty_parking(int folder, const char *name)
{
    int fd = openat(folder, name, PARKING_FLAGS);
    if (fd >= 0) {
        empty_parking(fd, folder, name);
        close(fd);
    }
}

void tn_sink_remove_parking(int folder, const char *name)
{
    int fd = openat(folder, name, PARKING_FLAGS);
    if (fd < 0)
        return;
    if (tn_sink_calls.flock(fd, LOCK_EX | LOCK_NB) == 0 && tn_is_named(folder, name, fd))
        empty_parking(fd, folder, name);
    close(fd);
}

/* ---- opening and closing members ---- */

static tn_sink *sink_of(tn_cached_fd *cached)
{
    return (tn_sink *)(void *)((char *)cached - offsetof(tn_sink, member.cached));
}

static tn_status create_member(tn_sink *s, tn_error *err)
{
    tn_sink_set *set = s->member.set;
    tn_lost lost = { .length = 0 };
    s->folder = set->folder;
    s->exists = set->like.exists;
    TN_TRY(tn_sink_create(s, err));
    s->member.created = true;
    s->member.dirty = true;
    if (set->like.exists)
        TN_TRY(tn_attributes_keep((tn_replaced){ set->like.folder, set->like.name, &set->like.old }, s->fd,
                                  &lost, err));
    if (lost.length)
        set->lost = lost;
    if (fstat(s->fd, &s->member.own) != 0)
        return tn_fail_write(err, errno);
    if (s->member.size)
        TN_TRY(tn_sink_reserve_open(s, s->member.size, err));
    return tn_sink_write_open(s, 0, s->member.head, s->member.head_size, err);
}

/* Members of a read-only set must be made writable for a moment. */
static int open_parked(const tn_sink *s)
{
    char name[NUMBER_SIZE];
    struct stat st;
    int parking = s->member.set->parking;
    int flags = s->member.set->shared ? TN_SHARED_FLAGS : O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    number_name(s, name);
    int fd = openat(parking, name, flags);
    if (fd >= 0 || errno != EACCES || fstatat(parking, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        fchmodat(parking, name, (st.st_mode & 07777) | S_IRUSR | S_IWUSR, 0) != 0)
        return fd;
    fd = openat(parking, name, flags);
    if (fd >= 0 && fchmod(fd, st.st_mode & 07777) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static tn_status reopen(tn_cached_fd *cached, tn_error *err)
{
    tn_sink *s = sink_of(cached);
    tn_status status = TN_OK;
    if (!s->member.created) {
        status = create_member(s, err);
        if (status && s->fd >= 0) {     /* incomplete: removed with the set */
            close(s->fd);
            s->fd = -1;
        }
    } else {
        s->fd = open_parked(s);
        if (s->fd < 0)
            status = tn_fail_write(err, errno);
        else if (s->member.set->shared)
            status = tn_sink_write_open(s, 0, s->member.head, s->member.head_size, err);
    }
    cached->fd = s->fd;
    return status;
}

static bool park(tn_sink *s)
{
    tn_sink_set *set = s->member.set;
    char name[NUMBER_SIZE];
    if (s->member.parked || s->member.named)
        return true;
    if (set->parking < 0 && !open_parking(set))
        return false;
    number_name(s, name);
    s->member.parked = s->temp[0] ? tn_rename_if_free(set->folder, s->temp, set->parking, name) == 0
                                  : tn_sink_link(s, set->parking, name) == 0;
    if (s->member.parked)
        s->temp[0] = '\0';
    return s->member.parked;
}

/* Synced first: after close() an error would go unnoticed. */
static bool close_member(tn_cached_fd *cached)
{
    tn_sink *s = sink_of(cached);
    if (!park(s))
        return false;
    if (atomic_exchange(&s->member.dirty, false) && tn_sync_fd(s->fd) != 0 && !s->member.problem)
        s->member.problem = errno;
    close(s->fd);
    s->fd = -1;
    return true;
}

/* Built when needed, because it has function pointers: those are not kept in writable memory. */
static tn_fd_cache cache_of(tn_sink_set *set)
{
    return (tn_fd_cache){ &set->descriptors, reopen, close_member };
}

tn_status tn_sink_hold(tn_sink *sink, int *fd, tn_error *err)
{
    *fd = sink->fd;
    if (!sink->member.set)
        return TN_OK;
    TN_TRY(tn_fd_cache_hold(cache_of(sink->member.set), &sink->member.cached, fd, err));
    sink->member.dirty = true;
    return TN_OK;
}

void tn_sink_release(tn_sink *sink)
{
    if (sink->member.set)
        tn_fd_cache_release(cache_of(sink->member.set), &sink->member.cached);
}

bool tn_sink_set_postpones(tn_sink *sink, uint64_t size)
{
    if (!sink->member.set || sink->member.created || tn_fd_cache_has_room(cache_of(sink->member.set)))
        return false;
    sink->member.size = size;
    return true;
}

/* ---- opening ---- */

static int open_folder_of(const char *path)
{
    char folder[PATH_MAX];
    if (!tn_folder_of(path, folder)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* `like` may be a link; its target has the attributes. */
static void find_like(tn_sink_set *set, const char *like)
{
    if (!like || tn_place_find(like, &set->like, NULL) != TN_OK) {
        set->like.exists = false;
        return;
    }
    set->like.exists = set->like.exists && S_ISREG(set->like.old.st_mode);
    if (!set->like.exists)
        close(set->like.folder);
}

tn_status tn_sink_set_open(const char *path, const char *like, tn_sink_set **set, tn_error *err)
{
    tn_sink_set *s = calloc(1, sizeof *s);
    TN_NEED(s, err);
    s->parking = -1;
    s->folder = open_folder_of(path);
    if (s->folder < 0) {
        tn_status status = tn_fail_errno(err, errno, "cannot open its folder");
        free(s);
        return status;
    }
    find_like(s, like);
    pthread_mutex_init(&s->descriptors.lock, NULL);
    tn_sink_remove_litter(s->folder);
    *set = s;
    return TN_OK;
}

void tn_sink_set_listen(tn_sink_set *set, tn_listener listener) { set->listener = listener; }
void tn_sink_set_limit(tn_sink_set *set, size_t limit)          { set->descriptors.limit = limit; }

tn_status tn_sink_set_add(tn_sink_set *set, tn_sink **sink, tn_error *err)
{
    tn_sink *s = TN_GROW(set->members, set->count, set->cap) ? tn_sink_new() : NULL;
    TN_NEED(s, err);
    s->member.set = set;
    s->member.number = set->count;
    set->members[set->count++] = s;
    *sink = s;
    return TN_OK;
}

tn_status tn_sink_set_make_shared(tn_sink_set *set, int folder, tn_error *err)
{
    tn_status status = TN_OK;
    char name[NUMBER_SIZE];
    for (size_t i = 0; i < set->count && !status; i++) {
        number_name(set->members[i], name);
        set->members[i]->folder = set->folder;
        set->members[i]->exists = set->like.exists;
        status = tn_sink_make_shared(set->members[i], folder, name, err);
    }
    return status;
}

/* It looks as if its file had been made and closed.  The attributes are given by whoever publishes. */
static tn_status share_member(tn_sink_set *set, tn_sink *s, tn_error *err)
{
    char name[NUMBER_SIZE];
    number_name(s, name);
    if (fstatat(set->parking, name, &s->member.own, AT_SYMLINK_NOFOLLOW) != 0)
        return tn_fail_errno(err, errno, "cannot open a file of the work folder");
    if (!S_ISREG(s->member.own.st_mode))
        return tn_fail(err, TN_ERR_CORRUPT, "a file of the work folder is no regular file");
    s->folder = set->folder;
    s->exists = set->like.exists;
    s->member.created = s->member.parked = true;
    return TN_OK;
}

tn_status tn_sink_set_share(tn_sink_set *set, int folder, tn_error *err)
{
    struct stat ours, theirs;
    if (fstat(folder, &theirs) != 0 || fstat(set->folder, &ours) != 0 || ours.st_dev != theirs.st_dev)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "the work folder is on another file system than the output, "
                       "whose files it is to hold");
    set->parking = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    if (set->parking < 0)
        return tn_fail_errno(err, errno, "cannot open the work folder");
    set->shared = true;
    for (size_t i = 0; i < set->count; i++)
        TN_TRY(share_member(set, set->members[i], err));
    return TN_OK;
}

bool tn_sink_is_shared_member(const tn_sink *sink) { return sink->member.set && sink->member.set->shared; }

int tn_sink_open_member(const tn_sink *sink)
{
    char name[NUMBER_SIZE];
    number_name(sink, name);
    return openat(sink->member.set->parking, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

void tn_sink_set_head(tn_sink *member, const void *head, size_t n)
{
    member->member.head = head;
    member->member.head_size = n;
}

/* Whether the shared file of a member has this name in the folder of the set: it was published before. */
static bool has_name(const tn_sink *s, const char *name)
{
    struct stat here, there;
    char number[NUMBER_SIZE];
    const tn_sink_set *set = s->member.set;
    number_name(s, number);
    return set->shared && fstatat(set->folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(set->parking, number, &here, AT_SYMLINK_NOFOLLOW) == 0 && tn_same_file(&here, &there);
}

bool tn_sink_set_taken(const tn_sink_set *set, const tn_sink *member, const char *name)
{
    struct stat st;
    return fstatat(set->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !(member && has_name(member, name));
}

/* ---- publishing ---- */

/* The lock is held until the set is closed.  It keeps other programs from naming new files between the check
 * of an old file and its removal.  Without a lock only that check protects. */
static void lock_folder(tn_sink_set *set)
{
    if (!set->locked)
        (void)tn_identity_lock(set->folder, LOCK_SECONDS);
    set->locked = true;
}

/* Other members got the attributes when they were created. */
static tn_status keep_shared(tn_sink *s, tn_error *err)
{
    tn_sink_set *set = s->member.set;
    tn_lost lost = { .length = 0 };
    int fd;
    if (!set->like.exists)
        return TN_OK;
    TN_TRY(tn_sink_hold(s, &fd, err));
    tn_status status = tn_attributes_keep((tn_replaced){ set->like.folder, set->like.name, &set->like.old },
                                          fd, &lost, err);
    tn_sink_release(s);
    if (lost.length)
        set->lost = lost;
    return status;
}

static tn_status settle_member(const tn_sink_member *m, tn_error *err)
{
    tn_sink *s = m->sink;
    int fd;
    struct stat st;
    char name[NUMBER_SIZE];
    number_name(s, name);
    bool closed = s->member.created && !atomic_load(&s->member.dirty);
    if (s->member.problem)
        return tn_fail_write(err, s->member.problem);
    if (s->member.set->shared)
        TN_TRY(keep_shared(s, err));
    /* it is durable then: nothing to do, unless it has another size */
    if (closed && fstatat(s->member.set->parking, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        (uint64_t)st.st_size == m->size)
        return TN_OK;
    TN_TRY(tn_sink_hold(s, &fd, err));
    tn_status status = tn_sink_settle_file(s, m->size, err);
    s->member.dirty = false;
    tn_sink_release(s);
    return status;
}

/* The names were free when they were chosen. */
static tn_status fail_taken(bool replace, tn_error *err)
{
    if (!replace)
        return tn_sink_fail_exists(err);
    return tn_fail(err, TN_ERR_CHANGED,
                   "was created by another program meanwhile: nothing was replaced; try again");
}

/* No other thread uses the set any more, so the file stays open or closed. */
static tn_status name_member(const tn_sink_member *m, bool replace, tn_error *err)
{
    tn_sink *s = m->sink;
    tn_sink_set *set = s->member.set;
    char number[NUMBER_SIZE];
    int result;
    number_name(s, number);
    if (has_name(s, m->name))
        return TN_OK;           /* who gave it may take it back */
    if (set->shared)
        result = tn_sink_calls.linkat(set->parking, number, set->folder, m->name, 0);
    else if (s->member.parked)
        result = tn_rename_if_free(set->parking, number, set->folder, m->name);
    else if (s->temp[0])
        result = tn_rename_if_free(set->folder, s->temp, set->folder, m->name);
    else
        result = tn_sink_link(s, set->folder, m->name);
    if (result != 0 && errno == EEXIST && has_name(s, m->name))
        return TN_OK;
    if (result != 0) {
        tn_status status = errno == EEXIST ? fail_taken(replace, err) : tn_fail_write(err, errno);
        return tn_in_file(status, m->name, err);
    }
    s->member.named = true;
    s->member.parked = set->shared;
    s->temp[0] = '\0';
    return TN_OK;
}

/* A member that has its name loses it again, unless somebody has put another file there. */
static void take_back(const tn_sink_member *m)
{
    const tn_sink *s = m->sink;
    struct stat st;
    int folder = s->member.set->folder;
    if (s->member.named && fstatat(folder, m->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        tn_same_file(&st, &s->member.own))
        unlinkat(folder, m->name, 0);
}

static tn_status settle_all(const tn_sink_member *members, size_t n, tn_sink *last, uint64_t last_size,
                            tn_error *err)
{
    for (size_t i = 0; i < n; i++)
        TN_TRY(settle_member(&members[i], err));
    return tn_sink_settle_file(last, last_size, err);
}

static tn_status name_all(tn_sink_set *set, const tn_sink_member *members, size_t n, tn_sink *last,
                          tn_error *err)
{
    for (size_t i = 0; i < n; i++)
        TN_TRY(name_member(&members[i], last->replace, err));
    if (tn_sync_fd(set->folder) != 0 && errno != EINVAL)
        return tn_fail_write(err, errno);
    return tn_sink_take_place(last, err);
}

tn_status tn_sink_set_publish(tn_sink_set *set, const tn_sink_member *members, size_t n, tn_sink *last,
                              uint64_t last_size, tn_error *err)
{
    tn_status status = settle_all(members, n, last, last_size, err);
    lock_folder(set);
    tn_publishing_begin();
    if (!status)
        status = name_all(set, members, n, last, err);
    for (size_t i = 0; status && i < n && !tn_sink_is_published(last); i++)
        take_back(&members[i]);
    tn_publishing_end();
    if (!status) {
        tn_sink_tell(&set->listener, &set->lost, "files");
        status = tn_sink_sync_folder(last, err);
    }
    tn_sink_abandon(last);
    for (size_t i = 0; i < n; i++)
        tn_sink_abandon(members[i].sink);
    return status;
}

tn_status tn_sink_set_check_old(const tn_sink_set *set, const tn_obsolete *old, tn_error *err)
{
    if (!tn_sink_set_taken(set, NULL, old->name))
        return TN_OK;
    tn_status status = tn_identity_check(set->folder, old->name, &old->seen, err);
    return tn_in_file(status, old->name, err);
}

/* 0, or -1 with errno: 0 for a file that somebody has put there or written to since. */
static int remove_old(const tn_sink_set *set, const tn_obsolete *old)
{
    if (tn_sink_set_check_old(set, old, NULL) != TN_OK) {
        errno = 0;
        return -1;
    }
    return unlinkat(set->folder, old->name, 0) == 0 || errno == ENOENT ? 0 : -1;
}

void tn_sink_set_remove(tn_sink_set *set, const tn_obsolete *files, size_t n, tn_not_removed failed,
                        void *context)
{
    bool goes_on = true;
    lock_folder(set);
    tn_publishing_begin();
    for (size_t i = 0; i < n && goes_on; i++) {
        goes_on = remove_old(set, &files[i]) == 0 || failed(context, files[i].name, errno);
        if (goes_on && (i == 0 || i == n - 1))
            (void)tn_sync_fd(set->folder);
    }
    tn_publishing_end();
}

/* ---- the end ---- */

void tn_sink_drop_member(tn_sink *s)
{
    tn_sink_set *set = s->member.set;
    char number[NUMBER_SIZE];
    tn_leftover_remove(&s->leftover);
    if (s->temp[0])
        unlinkat(set->folder, s->temp, 0);
    if (s->member.parked && !set->shared) {
        number_name(s, number);
        unlinkat(set->parking, number, 0);
    }
    s->temp[0] = '\0';
    s->member.named = true;      /* it needs no other name when it is closed */
    s->member.dirty = false;
    tn_fd_cache_remove(cache_of(set), &s->member.cached);
    set->members[s->member.number] = NULL;
    tn_sink_free(s);
}

void tn_sink_set_close(tn_sink_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++)
        tn_sink_abandon(set->members[i]);
    tn_leftover_remove(&set->leftover);
    if (set->parking >= 0 && !set->shared)
        unlinkat(set->folder, set->parking_name, AT_REMOVEDIR);
    if (set->parking >= 0)
        close(set->parking);
    if (set->like.exists)
        close(set->like.folder);
    close(set->folder);
    pthread_mutex_destroy(&set->descriptors.lock);
    free(set->members);
    free(set);
}
