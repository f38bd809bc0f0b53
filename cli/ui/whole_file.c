/* cli/ui/whole_file.c - small files, read whole. */
#include "ui/whole_file.h"
#include "ui/say.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tn_status refuse(tn_error *err, tn_status status, const char *what, int error_number)
{
    *err = (tn_error){ .status = status, .offset = TN_NO_OFFSET };
    if (error_number)
        snprintf(err->text, sizeof err->text, "%s: %s", what, strerror(error_number));
    else
        snprintf(err->text, sizeof err->text, "%s", what);
    return status;
}

static tn_status read_all(FILE *f, size_t most, char **bytes, size_t *n, tn_error *err)
{
    size_t cap = 1 << 16;
    char *buffer = must_resize(NULL, cap);
    *n = 0;
    for (size_t got; (got = fread(buffer + *n, 1, cap - *n, f)) > 0;) {
        *n += got;
        if (*n == cap && cap <= most)
            buffer = must_resize(buffer, cap *= 2);
    }
    *bytes = buffer;
    if (ferror(f))
        return refuse(err, TN_ERR_IO, "cannot read", errno);
    if (*n <= most)
        return TN_OK;
    char text[80];
    snprintf(text, sizeof text, "expected at most %zu bytes but found more", most);
    return refuse(err, TN_ERR_LIMIT, text, 0);
}

tn_status whole_file_read(const char *path, size_t most, char **bytes, size_t *n, tn_error *err)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return refuse(err, TN_ERR_IO, "cannot open", errno);
    tn_status status = read_all(f, most, bytes, n, err);
    fclose(f);
    if (status != TN_OK)
        free(*bytes);
    return status;
}
