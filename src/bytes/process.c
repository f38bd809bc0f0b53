/* bytes/process.c - which process it is: host, boot, number and start, one line of text. */
#include "bytes/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All of a small file as text; its length. */
static size_t read_text(const char *path, char *text, size_t room)
{
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 1;
    while (fd >= 0 && n + 1 < room && (got = read(fd, text + n, room - 1 - n)) > 0)
        n += (size_t)got;
    if (fd >= 0)
        close(fd);
    text[n] = '\0';
    return n;
}

/* Its state and start, behind the name in brackets, which may have any characters.  The state is X as soon as
 * it is ending: it loses its locks before it becomes a zombie. */
static bool read_stat(uint64_t pid, char *state, uint64_t *start)
{
    enum { FLAGS = 6, BEFORE_START = 19, ENDING = 4 };  /* fields from the state on; PF_EXITING */
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", pid);
    const char *p = read_text(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    if (!p || p[1] != ' ' || !p[2])
        return false;
    *state = p[2];
    p += 2;
    for (int i = 0; i < BEFORE_START && p; i++) {
        p = strchr(p + 1, ' ');
        if (p && i + 1 == FLAGS && (strtoull(p + 1, NULL, 10) & ENDING))
            *state = 'X';
    }
    *start = p ? strtoull(p + 1, NULL, 10) : 0;
    return p != NULL;
}

static void read_boot(char boot[static 37])
{
    char text[64];
    size_t n = read_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    n = n > 36 ? 36 : n;
    memcpy(boot, text, n);
    boot[n] = '\0';
    boot[strcspn(boot, " \n")] = '\0';
}

static void read_host(char host[static 65])
{
    if (gethostname(host, 64) != 0)
        host[0] = '\0';
    host[64] = '\0';
    host[strcspn(host, " \n/")] = '\0';
}

tn_process tn_process_self(void)
{
    tn_process p = { .pid = (uint64_t)getpid() };
    char state;
    read_host(p.host);
    read_boot(p.boot);
    if (!read_stat(p.pid, &state, &p.start))
        p.start = 0;
    return p;
}

void tn_process_format(const tn_process *p, char text[TN_PROCESS_TEXT])
{
    snprintf(text, TN_PROCESS_TEXT, "%s %" PRIu64 " %" PRIu64 " %s\n", *p->host ? p->host : "-", p->pid,
             p->start, *p->boot ? p->boot : "-");
}

/* The next word, of fewer than `room` bytes.  It is shown to users, so it is printable. */
static bool take_word(const char **p, const char *end, char *word, size_t room)
{
    size_t n = 0;
    while (*p + n < end && (*p)[n] > ' ' && (*p)[n] < 0x7f)
        n++;
    if (n == 0 || n >= room || *p + n == end || ((*p)[n] != ' ' && (*p)[n] != '\n'))
        return false;
    memcpy(word, *p, n);
    word[n] = '\0';
    *p += n + 1;
    return true;
}

static bool take_number(const char **p, const char *end, uint64_t *number)
{
    char word[24], *rest;
    if (!take_word(p, end, word, sizeof word) || word[0] < '0' || word[0] > '9')
        return false;
    *number = strtoull(word, &rest, 10);
    return *rest == '\0';
}

bool tn_process_parse(const char *text, size_t n, tn_process *p)
{
    const char *end = text + n;
    *p = (tn_process){ .pid = 0 };
    if (take_word(&text, end, p->host, sizeof p->host) && take_number(&text, end, &p->pid) &&
        take_number(&text, end, &p->start) && take_word(&text, end, p->boot, sizeof p->boot))
        return true;
    *p = (tn_process){ .pid = 0 };
    return false;
}

/* Containers of one machine have the same boot, but host names and numbers of processes of their own. */
static bool is_here(const tn_process *p)
{
    char boot[37], host[65];
    read_boot(boot);
    read_host(host);
    return strcmp(boot, p->boot) == 0 && strcmp(*host ? host : "-", *p->host ? p->host : "-") == 0;
}

tn_process_state tn_process_look(const tn_process *p)
{
    char state;
    uint64_t start;
    if (p->pid == 0 || !is_here(p))
        return TN_PROCESS_ELSEWHERE;
    if (!read_stat(p->pid, &state, &start) || start != p->start)
        return TN_PROCESS_ENDED;
    if (state == 'Z' || state == 'X')
        return TN_PROCESS_ENDED;
    return state == 'T' || state == 't' ? TN_PROCESS_STOPPED : TN_PROCESS_RUNS;
}
