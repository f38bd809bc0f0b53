/* process.h - what the system says of a process, for the programs of this folder. */
#ifndef TEST_PROCESS_H
#define TEST_PROCESS_H

#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static unsigned passed, failed;

/* One test, as a line. */
__attribute__((format(printf, 2, 3)))
static inline void judge(bool good, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%s  ", good ? "ok  " : "FAIL");
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    *(good ? &passed : &failed) += 1;
}

static inline int tally(void)
{
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}

__attribute__((format(printf, 1, 2)))
static inline _Noreturn void give_up(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n0 passed, 1 failed\n");
    exit(1);
}

static inline FILE *open_of(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    FILE *f = fopen(path, "r");
    if (!f)
        give_up("cannot open %s", path);
    return f;
}

/* Memory in KiB, where a page that n processes have counts for 1/n in each: "Pss", or of one kind "Pss_File";
 * 0: not said. */
static inline long memory_of(pid_t pid, const char *kind)
{
    char line[200];
    long kib = 0;
    size_t n = strlen(kind);
    FILE *f = open_of(pid, "smaps_rollup");
    while (fgets(line, sizeof line, f))
        if (strncmp(line, kind, n) == 0 && line[n] == ':')
            kib = atol(line + n + 1);
    fclose(f);
    return kib;
}

static inline long pss_of(pid_t pid) { return memory_of(pid, "Pss"); }

static inline int mappings_of(pid_t pid)
{
    int lines = 0, c;
    FILE *f = open_of(pid, "maps");
    while ((c = getc(f)) != EOF)
        lines += c == '\n';
    fclose(f);
    return lines;
}

static inline int descriptors_of(pid_t pid)
{
    char path[64];
    int n = -2;                 /* . and .. */
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *folder = opendir(path);
    if (!folder)
        give_up("cannot open %s", path);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

#endif
