/* tests/fuzz/replay.c FOLDER... - runs a fuzz target over the files of folders: what libFuzzer's main() does,
 * without fuzzing and for any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

enum { LARGEST = 65536 };       /* as scripts/fuzz has it */

/* Mutators call it; nothing is mutated here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data, (void)max_size;
    return size;
}

/* In memory of its very size, so that a sanitizer sees a byte beyond it. */
static int run_file(const char *path)
{
    static uint8_t bytes[LARGEST];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        return 1;
    for (size_t i = 0; i < n; i++)
        copy[i] = bytes[i];
    fprintf(stderr, "%s\n", path);      /* the last line names the input that broke it */
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    return 0;
}

static int run_folder(const char *folder, size_t *count)
{
    char path[4096];
    struct stat is;
    struct dirent *entry;
    int failed = 0;
    DIR *d = opendir(folder);
    if (!d) {
        perror(folder);
        return 1;
    }
    while ((entry = readdir(d))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (stat(path, &is) == 0 && S_ISREG(is.st_mode)) {
            failed |= run_file(path);
            ++*count;
        }
    }
    closedir(d);
    return failed;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= run_folder(argv[i], &count);
    printf("%zu inputs\n", count);
    return failed || !count;
}
