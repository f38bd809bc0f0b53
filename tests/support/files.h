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

/* Byte for byte; both by their paths. */
static inline void check_same_files(const char *a, const char *b)
{
    size_t n, m;
    uint8_t *x = load_file(a, &n), *y = load_file(b, &m);
    if (n != m || memcmp(x, y, n) != 0)
        fail_msg("%s and %s differ", a, b);
    free(x);
    free(y);
}

static inline void check_file_text(const char *path, const char *expected)
{
    size_t n;
    char *found = (char *)load_file(path, &n);
    if (n != strlen(expected) || memcmp(found, expected, n) != 0)
        fail_msg("%s: expected\n%s\nfound\n%.*s", path, expected, (int)n, found);
    free(found);
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

/* Decoded bytes of a part, in a heap block of exactly their size. */
static inline uint8_t *read_part(const tn_file *file, const tn_part *part)
{
    tn_error err = { .text = "" };
    size_t n = (size_t)part->nbytes;
    uint8_t *bytes = malloc(n ? n : 1);
    assert_non_null(bytes);
    if (tn_part_read(file, part, bytes, n, &err))
        fail_msg("%s: %s", part->role, line_of(&err));
    return bytes;
}

/* Those of a tensor's only part, or of its first. */
static inline uint8_t *read_tensor(const tn_file *file, const tn_tensor *t)
{
    return read_part(file, &t->parts[0]);
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

/* "3,5", or "-" for a scalar. */
static inline void check_shape(const tn_tensor *t, const char *expected)
{
    char text[200] = "-";
    size_t n = 0;
    for (uint32_t i = 0; i < t->rank && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, i ? ",%lld" : "%lld", (long long)t->shape[i]);
    assert_string_equal(text, expected);
}

static inline void check_sha256(const tn_file *file, const tn_part *part, const char *sha256)
{
    uint8_t *bytes = read_part(file, part);
    assert_string_equal(sha256_of(bytes, (size_t)part->nbytes).text, sha256);
    free(bytes);
}

/* The tensor of a table's line: file, name, type, shape, SHA-256 of the decoded bytes of its (first) part. */
static inline const tn_tensor *check_listed_tensor(const tn_file *file, char *field[TABLE_FIELDS])
{
    const tn_tensor *t = tn_file_find(file, field[1]);
    assert_non_null(t);
    assert_string_equal(tn_dtype_get(t->dtype)->name, field[2]);
    check_shape(t, field[3]);
    check_sha256(file, &t->parts[0], field[4]);
    return t;
}

/* Opens FOLDER/NAME; `format` may be NULL. */
static inline tn_file *open_at(const char *folder_path, const char *name, const char *format, tn_io io)
{
    char path[PATH_MAX];
    tn_file *f = NULL;
    tn_error err = { .text = "" };
    const tn_open_options options = { .size = sizeof options, .format = format, .io = io };
    snprintf(path, sizeof path, "%s/%s", folder_path, name);
    if (tn_open(path, &options, &f, &err))
        fail_msg("%s: %s", name, line_of(&err));
    return f;
}

/* Calls `use` with the path and bytes of every file of a folder; returns how many. */
static inline size_t each_file(const char *folder_path,
                               void (*use)(const char *name, const uint8_t *bytes, size_t n))
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
