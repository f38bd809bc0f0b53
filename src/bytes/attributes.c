/* bytes/attributes.c - a new file like the old one. */
#include "bytes/attributes.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACL "system.posix_acl_access"

enum { MOST = 1 << 16 };        /* bytes of a list of names or of a value; the kernel's limits */

/* The old file.  One that may not be read is looked at through /proc. */
typedef struct old_file {
    int         fd;             /* -1: removed */
    char        path[40];       /* in /proc; "": fd is open for reading */
    struct stat st;
} old_file;

__attribute__((format(printf, 2, 3)))
static void lose(tn_lost *lost, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t left = sizeof lost->text - lost->length;
    int n = snprintf(lost->text + lost->length, left, "%s", lost->length ? ", " : "");
    if (n >= 0 && (size_t)n < left)
        n += vsnprintf(lost->text + lost->length + n, left - (size_t)n, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= left)         /* drop an item that does not fit */
        lost->text[lost->length] = '\0';
    else
        lost->length += (size_t)n;
}

static void open_old(old_file *old, const tn_replaced *what)
{
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    *old = (old_file){ .st = *what->seen };
    old->fd = openat(what->folder, what->name, O_RDONLY | flags);
    if (old->fd < 0 && errno == EACCES) {
        old->fd = openat(what->folder, what->name, O_PATH | flags);
        snprintf(old->path, sizeof old->path, "/proc/self/fd/%d", old->fd);
    }
    struct stat st;
    if (old->fd >= 0 && fstat(old->fd, &st) == 0 && S_ISREG(st.st_mode))
        old->st = st;
}

static ssize_t list_names(const old_file *old, char *names, size_t size)
{
    if (old->fd < 0)
        return 0;
    return old->path[0] ? listxattr(old->path, names, size) : flistxattr(old->fd, names, size);
}

static ssize_t get_value(const old_file *old, const char *name, void *value, size_t size)
{
    if (old->fd < 0) {
        errno = ENODATA;
        return -1;
    }
    return old->path[0] ? getxattr(old->path, name, value, size) : fgetxattr(old->fd, name, value, size);
}

/* ---- owner and group ---- */

typedef struct kept {
    bool owner, group, acl;
} kept;

static void keep_owner(const old_file *old, int to, kept *k, tn_lost *lost)
{
    struct stat st;
    if (fstat(to, &st) != 0)
        return;
    if (st.st_uid != old->st.st_uid && fchown(to, old->st.st_uid, old->st.st_gid) == 0)
        st.st_uid = old->st.st_uid, st.st_gid = old->st.st_gid;
    if (st.st_gid != old->st.st_gid && fchown(to, (uid_t)-1, old->st.st_gid) == 0)
        st.st_gid = old->st.st_gid;
    k->owner = st.st_uid == old->st.st_uid;
    k->group = st.st_gid == old->st.st_gid;
    if (!k->owner)
        lose(lost, "owner %lu", (unsigned long)old->st.st_uid);
    if (!k->group)
        lose(lost, "group %lu", (unsigned long)old->st.st_gid);
}

/* ---- mode and access list ---- */

static bool has_none(int error_number)
{
    return error_number == ENODATA || error_number == EOPNOTSUPP || error_number == ENOSYS;
}

/* An access list grants and denies access by user and group, so it is kept only together with owner and
 * group. */
static void keep_acl(const old_file *old, int to, kept *k, uint8_t *value, tn_lost *lost)
{
    ssize_t n = get_value(old, ACL, value, MOST);
    if (n < 0 && has_none(errno)) {
        (void)fremovexattr(to, ACL);        /* the default list of the folder */
        k->acl = true;
        return;
    }
    k->acl = n >= 0 && k->owner && k->group && fsetxattr(to, ACL, value, (size_t)n, 0) == 0;
    if (k->acl)
        return;
    (void)fremovexattr(to, ACL);
    lose(lost, "access list");
}

/* If the group changes, users move between group and others, so both get what both had.  If the owner
 * changes, the old owner is now one of these, so they get at most what the owner had.  A lost list may have
 * denied anything to anybody. */
static mode_t narrow(mode_t mode, const kept *k)
{
    mode_t owner = mode >> 6 & 7, group = mode >> 3 & 7, other = mode & 7;
    if (!k->acl)
        group = other = 0;
    if (!k->group)
        group = other = group & other;
    if (!k->owner) {
        group &= owner;
        other &= owner;
    }
    return owner << 6 | group << 3 | other;
}

static void keep_mode(const old_file *old, int to, const kept *k, tn_lost *lost)
{
    mode_t had = old->st.st_mode & 07777, wanted = narrow(had, k);
    struct stat st;
    (void)fchmod(to, wanted);               /* a file system without modes may refuse */
    mode_t has = fstat(to, &st) == 0 ? st.st_mode & 07777 : 0;
    if (has != had)
        lose(lost, "mode %04o (now %04o)", (unsigned)had, (unsigned)has);
}

/* ---- extended attributes ---- */

typedef struct copying {
    const old_file *old;
    int             to;
    uint8_t        *value, *there;  /* of MOST bytes each */
    tn_lost        *lost;
} copying;

/* Checksums of the content, and the access list, which keep_acl() has set. */
static bool is_left_out(const char *name)
{
    return strcmp(name, "security.ima") == 0 || strcmp(name, "security.evm") == 0 ||
           tn_begins_with(name, "system.posix_acl_");
}

static void copy_one(const copying *c, const char *name)
{
    ssize_t n = get_value(c->old, name, c->value, MOST);
    if (n < 0 && errno == ENODATA)
        return;
    bool done = false;
    if (n >= 0 && strcmp(name, "security.capability") != 0) {
        ssize_t m = fgetxattr(c->to, name, c->there, MOST);
        done = (m == n && memcmp(c->value, c->there, (size_t)n) == 0) ||
               fsetxattr(c->to, name, c->value, (size_t)n, 0) == 0;
    }
    if (!done)
        lose(c->lost, "attribute %s", tn_quote_z(name).text);
}

/* Access lists of NFS ("system.") are set after the mode, which would change them; the others before it,
 * because the mode may forbid it. */
static void copy_attributes(const copying *c, const char *names, ssize_t n, bool of_system)
{
    for (const char *name = names; name < names + n; name += strlen(name) + 1)
        if (tn_begins_with(name, "system.") == of_system && !is_left_out(name))
            copy_one(c, name);
}

static void keep_all(const old_file *old, int to, char *buffer, tn_lost *lost)
{
    uint8_t *value = (uint8_t *)buffer;
    char *names = buffer + 2 * MOST;
    copying c = { .old = old, .to = to, .value = value, .there = value + MOST, .lost = lost };
    kept k = { 0 };
    ssize_t n = list_names(old, names, MOST);
    if (n < 0 && !has_none(errno))
        lose(lost, "extended attributes");
    (void)fchmod(to, S_IRUSR | S_IWUSR);    /* only the owner, until all is done */
    keep_owner(old, to, &k, lost);
    copy_attributes(&c, names, n, false);
    keep_acl(old, to, &k, value, lost);
    keep_mode(old, to, &k, lost);
    copy_attributes(&c, names, n, true);
}

tn_status tn_attributes_keep(tn_replaced what, int to, tn_lost *lost, tn_error *err)
{
    old_file old;
    char *buffer = malloc(3 * MOST);
    *lost = (tn_lost){ .text = "" };
    TN_NEED(buffer, err);
    open_old(&old, &what);
    keep_all(&old, to, buffer, lost);
    if (old.fd >= 0)
        close(old.fd);
    free(buffer);
    return TN_OK;
}
