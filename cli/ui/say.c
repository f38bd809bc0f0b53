/* cli/ui/say.c - messages, output, exit codes. */
#include "ui/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int exit_code(tn_status status)
{
    switch (status) {
    case TN_OK:
        return EXIT_DONE;
    case TN_ERR_NOMEM:
    case TN_ERR_IO:
    case TN_ERR_CANCELLED:
    case TN_ERR_CHANGED:
        return EXIT_SYSTEM;
    case TN_ERR_ARGUMENT:
    case TN_ERR_EXISTS:
        return EXIT_USAGE;
    default:
        return EXIT_BAD;
    }
}

void say(const char *format, ...)
{
    out_flush();
    va_list args;
    va_start(args, format);
    fputs("tenon: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

const char *with_options(const char *text)
{
    static const char field[] = "(max_bytes)", option[] = "(--max-bytes)";
    static char changed[TN_ERROR_LINE + 200 + sizeof option];
    size_t n = strlen(text), end = sizeof field - 1;
    if (n < end || strcmp(text + n - end, field) != 0)
        return text;
    snprintf(changed, sizeof changed, "%.*s%s", (int)(n - end), text, option);
    return changed;
}

/* ---- errors ---- */

/* What a reason of the library is on the command line; %s is the value it advises. */
static const char *const options_for[] = {
    [TN_REASON_NONE]      = "",
    [TN_REASON_MAX_BYTES] = "--max-bytes",
    [TN_REASON_REPLACE]   = "--force replaces it",
};

/* " (--option)", or "" where no option helps. */
static void format_option(const tn_error *err, char *dst, size_t cap)
{
    size_t known = sizeof options_for / sizeof *options_for;
    const char *option = (size_t)err->reason < known ? options_for[err->reason] : "";
    const char *value = strstr(option, "%s");
    int before = (int)(value ? (size_t)(value - option) : strlen(option));
    dst[0] = '\0';
    if (*option)
        snprintf(dst, cap, " (%.*s%s%s)", before, option, value ? err->value : "", value ? value + 2 : "");
}

static const char *format_error(const tn_error *err)
{
    static char line[TN_ERROR_LINE + 200];
    char option[200];
    format_option(err, option, sizeof option);
    size_t n = tn_error_format(err, line, TN_ERROR_LINE);
    snprintf(line + n, sizeof line - n, "%s", option);
    return with_options(line);
}

const char *error_line(const tn_error *err) { return format_error(err); }

const char *error_text(const char *path, const tn_error *err)
{
    tn_error shown = *err;
    char file[sizeof shown.file];
    tn_escape(file, sizeof file, path, strlen(path));
    if (!shown.file[0] || strcmp(shown.file, file) == 0) {
        shown.file[0] = '\0';
        shown.offset = TN_NO_OFFSET;
    }
    return format_error(&shown);
}

int say_error(const char *path, const tn_error *err)
{
    tn_error shown = *err;
    if (path && !shown.file[0])
        tn_escape(shown.file, sizeof shown.file, path, strlen(path));
    if (err->status != TN_ERR_CANCELLED)
        say("%s", format_error(&shown));
    return exit_code(err->status);
}

void say_warnings(const char *path, const tn_file *file)
{
    for (size_t i = 0; tn_file_warning(file, i); i++)
        say("%s: %s", escaped(path), tn_file_warning(file, i));
}

static int out_errno;           /* of the first write that failed */

static void out_check(bool ok)
{
    if (!ok && out_errno == 0)
        out_errno = errno ? errno : EIO;
}

void out(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    out_check(vprintf(format, args) >= 0);
    va_end(args);
}

void out_text(const char *text) { out_check(fputs_unlocked(text, stdout) >= 0); }

void out_bytes(const char *bytes, size_t n) { out_check(fwrite_unlocked(bytes, 1, n, stdout) == n); }

void out_flush(void) { out_check(fflush(stdout) == 0); }

int out_finish(int code)
{
    out_flush();
    if (out_errno == 0)
        return code;
    fprintf(stderr, "tenon: cannot write: %s\n", strerror(out_errno));
    return EXIT_SYSTEM;
}

const char *escaped(const char *text)
{
    static struct { char *text; size_t cap; } slots[4];
    static unsigned turn;
    unsigned slot = turn++ % 4;
    size_t n = strlen(text);
    if (slots[slot].cap == 0)
        slots[slot].text = must_resize(NULL, slots[slot].cap = 256);
    size_t length = tn_escape(slots[slot].text, slots[slot].cap, text, n);
    if (length >= slots[slot].cap) {
        slots[slot].text = must_resize(slots[slot].text, slots[slot].cap = length + 1);
        tn_escape(slots[slot].text, slots[slot].cap, text, n);
    }
    return slots[slot].text;
}

const char *style_on_stdout(style s)
{
    static const char *const codes[] = { "\033[0m", "\033[1m", "\033[1;31m" };
    static int wanted = -1;
    if (wanted < 0) {
        const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
        wanted =
            isatty(STDOUT_FILENO) && (!no_colour || !*no_colour) && terminal && strcmp(terminal, "dumb") != 0;
    }
    return wanted ? codes[s] : "";
}

void out_judgement(const char *word, bool bad)
{
    if (bad)
        out("%s%s%s: ", style_on_stdout(STYLE_RED), word, style_on_stdout(STYLE_PLAIN));
    else
        out("%s: ", word);
}

void *must_resize(void *old, size_t size)
{
    void *memory = realloc(old, size ? size : 1);
    if (!memory) {
        say("out of memory: %zu bytes wanted", size);
        exit(EXIT_SYSTEM);
    }
    return memory;
}

void *must_allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        say("out of memory: %zu times %zu bytes wanted", count, size);
        exit(EXIT_SYSTEM);
    }
    return memory;
}
