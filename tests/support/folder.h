/* tests/support/folder.h - a folder of its own for every test, removed at its
 * end.  Include it after support.h. */
#ifndef TN_TESTS_FOLDER_H
#define TN_TESTS_FOLDER_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[PATH_MAX / 2];

static inline int make_folder(void **unused)
{
    (void)unused;
    strcpy(folder, "/tmp/tenon-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return chmod(folder, 0755);
}

static inline int remove_folder(void **unused)
{
    (void)unused;
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

typedef struct full_path { char text[PATH_MAX]; } full_path;

/* For use within one call: in_folder("name").text */
static inline full_path in_folder(const char *name)
{
    full_path p;
    snprintf(p.text, sizeof p.text, "%s/%s", folder, name);
    return p;
}

static inline void put_bytes(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(in_folder(name).text, "wb");
    assert_non_null(f);
    CHECK(fwrite(bytes, 1, n, f) == n);
    CHECK(fclose(f) == 0);
}

static inline void put_file(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

static inline bool file_is(const char *name, const char *text)
{
    char found[64] = "";
    FILE *f = fopen(in_folder(name).text, "r");
    if (!f)
        return false;
    size_t n = fread(found, 1, sizeof found - 1, f);
    fclose(f);
    return n == strlen(text) && memcmp(found, text, n) == 0;
}

/* Files of every kind, hidden ones too. */
static inline int count_entries(const char *where)
{
    int n = 0;
    DIR *dir = opendir(where);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

#endif
