/* tests/support/files.h - golden files and their tables.  Include it after support.h. */
#ifndef TN_TESTS_FILES_H
#define TN_TESTS_FILES_H

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#include <openssl/evp.h>

#include <tenon/tenon.h>

/* A whole file in a heap block of exactly its size. */
static inline uint8_t *load_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    CHECK(fseek(f, 0, SEEK_END) == 0);
    long size = ftell(f);
    CHECK(size >= 0);
    rewind(f);
    uint8_t *bytes = malloc(size ? (size_t)size : 1);
    assert_non_null(bytes);
    CHECK(fread(bytes, 1, (size_t)size, f) == (size_t)size);
    fclose(f);
    *n = (size_t)size;
    return bytes;
}

typedef struct hex { char text[65]; } hex;

static inline hex sha256_of(const void *data, size_t n)
{
    uint8_t digest[32];
    hex h;
    CHECK(EVP_Digest(data, n, digest, NULL, EVP_sha256(), NULL) == 1);
    for (int i = 0; i < 32; i++)
        snprintf(h.text + 2 * i, 3, "%02x", digest[i]);
    return h;
}

/* Decoded bytes of a tensor's only part, in a heap block of exactly their size. */
static inline uint8_t *read_tensor(const tn_file *file, const tn_tensor *t)
{
    tn_error err = { .text = "" };
    size_t n = (size_t)t->parts[0].nbytes;
    uint8_t *bytes = malloc(n ? n : 1);
    assert_non_null(bytes);
    if (tn_part_read(file, &t->parts[0], bytes, n, &err))
        fail_msg("%s: %s", t->name, err.text);
    return bytes;
}

/* Calls `row` for every line of a table that is no comment, cut at its tabs. */
#define TABLE_FIELDS 6
static inline size_t each_row(const char *path, void (*row)(char *field[TABLE_FIELDS], size_t n))
{
    char line[1024], *field[TABLE_FIELDS];
    size_t rows = 0;
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("cannot open %s", path);
    while (fgets(line, sizeof line, f)) {
        size_t n = 0;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#')
            continue;
        for (char *at = line; at && n < TABLE_FIELDS; at = strchr(at, '\t')) {
            if (n)
                *at++ = '\0';
            field[n++] = at;
        }
        row(field, n);
        rows++;
    }
    fclose(f);
    return rows;
}

/* Calls `use` with the path and bytes of every file of a folder; returns how many. */
static inline size_t each_file(const char *folder_path, void (*use)(const char *name, const uint8_t *bytes, size_t n))
{
    size_t count = 0;
    DIR *dir = opendir(folder_path);
    if (!dir)
        fail_msg("cannot open %s", folder_path);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[PATH_MAX];
        size_t n;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder_path, entry->d_name);
        uint8_t *bytes = load_file(path, &n);
        use(entry->d_name, bytes, n);
        free(bytes);
        count++;
    }
    closedir(dir);
    return count;
}

#endif
