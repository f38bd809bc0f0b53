/* tests/support/cast_file.c - casts a file of raw elements through tn_cast().
 *
 *   cast_file FROM TO COUNT IN OUT [overflow=N] [nan=N] [round=N] [seed=N]
 *
 * N are the numbers of tenon/cast.h.  Exit 0 done, 1 refused, 2 usage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/cast.h>

static int option(tn_cast_options *options, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return 0;
    size_t n = (size_t)(equals - text);
    int value = atoi(equals + 1);
    if (n == 8 && memcmp(text, "overflow", n) == 0)
        options->overflow = (tn_overflow)value;
    else if (n == 3 && memcmp(text, "nan", n) == 0)
        options->nan = (tn_nan)value;
    else if (n == 5 && memcmp(text, "round", n) == 0)
        options->round = (tn_round)value;
    else if (n == 4 && memcmp(text, "seed", n) == 0)
        options->seed = (uint64_t)value;
    else
        return 0;
    return 1;
}

static void *read_elements(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    void *data = malloc(size + 1);
    if (!file || !data || fread(data, 1, size + 1, file) != size) {
        fprintf(stderr, "cast_file: %s: expected %zu bytes\n", path, size);
        exit(2);
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    tn_cast_options options = { .size = sizeof options };
    const int64_t shape[] = { argc > 3 ? atoll(argv[3]) : 0 };
    tn_array src = { .rank = 1, .shape = shape }, dst = src;
    uint64_t in, out;
    int good = argc >= 6;
    for (int i = 6; i < argc; i++)
        good = good && option(&options, argv[i]);
    if (good) {
        src.dtype = tn_dtype_parse(argv[1]);
        dst.dtype = tn_dtype_parse(argv[2]);
        good = tn_array_nbytes(&src, &in) == TN_OK && tn_array_nbytes(&dst, &out) == TN_OK;
    }
    if (!good) {
        fputs("usage: cast_file FROM TO COUNT IN OUT [overflow=N] [nan=N] [round=N] [seed=N]\n", stderr);
        return 2;
    }
    void *data = read_elements(argv[4], in), *result = malloc(out + 1);
    tn_error err;
    if (!result || tn_cast(&dst, result, &src, data, TN_LITTLE_ENDIAN, &options, &err) != TN_OK) {
        fprintf(stderr, "cast_file: %s\n", result ? err.text : "out of memory");
        return 1;
    }
    FILE *file = fopen(argv[5], "wb");
    if (!file || fwrite(result, 1, out, file) != out || fclose(file) != 0)
        return 2;
    free(data);
    free(result);
    return 0;
}
