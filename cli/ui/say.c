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

/* While output is held back: where it is collected. */
typedef struct held {
    FILE  *to;                  /* NULL: it is not */
    char  *text;
    size_t size;
} held;

static held held_out, held_messages;

static FILE *out_to(void)      { return held_out.to ? held_out.to : stdout; }
static FILE *messages_to(void) { return held_messages.to ? held_messages.to : stderr; }

static void put_message(FILE *to, const char *format, va_list args)
{
    fputs("tenon: ", to);
    vfprintf(to, format, args);
    fputc('\n', to);
}

void say(const char *format, ...)
{
    out_flush();
    va_list args;
    va_start(args, format);
    put_message(messages_to(), format, args);
    va_end(args);
}

void say_now(const char *format, ...)
{
    out_flush();
    va_list args;
    va_start(args, format);
    put_message(stderr, format, args);
    va_end(args);
}

/* ---- errors ---- */

static tn_error why_failed;     /* the last one counts */
static bool has_failed;
static char message[TN_ERROR_LINE + 200];      /* the line that was said */

static int fail_with(int code, const tn_error *err, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    why_failed = *err;
    has_failed = true;
    vsnprintf(why_failed.text, sizeof why_failed.text, format, again);
    snprintf(message, sizeof message, "%s", why_failed.text);
    va_end(again);
    out_flush();
    put_message(messages_to(), format, args);
    return code;
}

int give_up(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    code = fail_with(code, &(tn_error){ .status = TN_OK, .offset = TN_NO_OFFSET }, format, args);
    va_end(args);
    return code;
}

int give_up_by(int code, const tn_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    code = fail_with(code, err, format, args);
    va_end(args);
    return code;
}

const tn_error *failure(const char **line)
{
    *line = message;
    return has_failed ? &why_failed : NULL;
}

/* What a reason of the library is on the command line; %s is the value it advises. */
static const char *const options_for[] = {
    [TN_REASON_NONE] = "",
    [TN_REASON_MAX_BYTES] = "--max-bytes",
    [TN_REASON_REPLACE] = "--force replaces it",
    [TN_REASON_DROP_METADATA] = "--drop-metadata",
    [TN_REASON_DROP_NAMES] = "--drop-names",
    [TN_REASON_FORM] = "--form %s",
    [TN_REASON_CAST] = "--cast %s",
    [TN_REASON_ONLY] = "--only or --exclude",
    [TN_REASON_RENAME] = "--rename",
    [TN_REASON_LAYOUT] = "--layout",
    [TN_REASON_NAN] = "--nan %s makes it 0",
    [TN_REASON_ENCODING] = "--compress %s",
    [TN_REASON_CHECKSUM] = "--checksum %s",
    [TN_REASON_FORMAT] = "--to %s",
    [TN_REASON_OPEN_FORMAT] = "--from %s",
    [TN_REASON_FORMAT_OPTION] = "without --option %s",
    [TN_REASON_SHARD_SIZE] = "--shard-size",
    [TN_REASON_HEADER] = "--align, --drop-metadata, --drop-names",
    [TN_REASON_JOBS] = "--jobs %s needs none",
    [TN_REASON_WINDOWS] = "--memory",
    [TN_REASON_UIDS] = "--allow-uid",
    [TN_REASON_BIND] = "\"tenon check --bind\" gives them values",
    [TN_REASON_MLI] = "--mli %s",
    [TN_REASON_BINARY] = "--binary takes it",
    [TN_REASON_CAST_BEFORE] = "\"tenon convert --cast %s\" first, or leave it out with --only",
    [TN_REASON_FORM_BEFORE] = "\"tenon convert --form %s\" first",
    [TN_REASON_CASTS] = "--cast, --sparse, --recipe",
    [TN_REASON_RULES] = "--%s",
    [TN_REASON_RAW_CODES] = "--raw takes them as numbers",
    [TN_REASON_TYPE] = "--cast takes \"tenon types\", \"tenon datatypes\", fx8, fx16, sa8, sa32",
    [TN_REASON_GLOB] = "or let the rule choose other tensors: --%s 'GLOB=...'",
    [TN_REASON_GRAPH] = "--graph MODEL.onnx",
    [TN_REASON_EXTERNAL] = "--external",
    [TN_REASON_IMPORTANCE] = "--importance imatrix.gguf",
    [TN_REASON_RENAME_BEFORE] = "\"tenon convert --rename\" first",
};

const char *reason_name(tn_reason reason)
{
    static const char *const names[] = {
        "max_bytes", "replace", "drop_metadata", "drop_names", "form", "cast", "only", "rename",
        "layout", "nan", "encoding", "checksum", "format", "open_format", "format_option", "shard_size",
        NULL, "header", "jobs", "windows", "uids", "bind", "mli", "binary", "cast_before",
        "form_before", "rename_before", "casts", NULL, NULL, NULL, "rules", "raw_codes", "type",
        "glob", "graph", "external", "importance",
    };
    size_t row = (size_t)reason - 1;
    return row < sizeof names / sizeof *names ? names[row] : NULL;
}

const char *option_for(tn_reason reason, const char *value)
{
    static char text[200];
    size_t known = sizeof options_for / sizeof *options_for;
    const char *option = (size_t)reason < known && options_for[reason] ? options_for[reason] : "";
    const char *place = strstr(option, "%s");
    if (!*option)
        return "";
    if (place && value && *value)
        snprintf(text, sizeof text, " (%.*s%s%s)", (int)(place - option), option, value, place + 2);
    else if (place)     /* without the value, and the space before it */
        snprintf(text, sizeof text, " (%.*s)", (int)(place - option) - 1, option);
    else
        snprintf(text, sizeof text, " (%s)", option);
    return text;
}

const char *error_line(const tn_error *err)
{
    static char line[TN_ERROR_LINE + 200];
    size_t n = tn_error_format(err, line, TN_ERROR_LINE);
    snprintf(line + n, sizeof line - n, "%s", option_for(err->reason, err->value));
    return line;
}

const char *error_text(const char *path, const tn_error *err)
{
    tn_error shown = *err;
    char file[sizeof shown.file];
    tn_escape(file, sizeof file, path, strlen(path));
    if (!shown.file[0] || strcmp(shown.file, file) == 0) {
        shown.file[0] = '\0';
        shown.offset = TN_NO_OFFSET;
    }
    return error_line(&shown);
}

int say_error(const char *path, const tn_error *err)
{
    tn_error shown = *err;
    if (path && !shown.file[0])
        tn_escape(shown.file, sizeof shown.file, path, strlen(path));
    why_failed = shown;
    has_failed = true;
    snprintf(message, sizeof message, "%s", error_line(&shown));
    if (err->status != TN_ERR_CANCELLED)
        say("%s", error_line(&shown));
    return exit_code(err->status);
}

void say_warnings(const char *path, const tn_file *file)
{
    for (size_t i = 0; tn_file_warning(file, i); i++)
        say("%s: %s", escaped(path), tn_file_warning(file, i));
}

void say_codes(const char *path, const tn_file *file, const tn_tensor *tensor)
{
    if (tensor && !tensor->scaling && tn_file_convention(file, tensor))
        say("%s: tensor \"%s\" holds or belongs to codes of %s: these are not values", escaped(path),
            escaped(tensor->name), tn_file_convention(file, tensor));
}

const char *did_you_mean(const tn_nearest *nearest)
{
    static char text[300];
    char name[200];
    if (!nearest->found)
        return "";
    tn_escape(name, sizeof name, nearest->found, strlen(nearest->found));
    snprintf(text, sizeof text, ": did you mean \"%s\"?", name);
    return text;
}

const tn_tensor *find_tensor(const char *path, const tn_file *file, const char *name)
{
    const tn_tensor *tensor = tn_file_find(file, name);
    tn_nearest nearest = { .word = name };
    for (size_t i = 0; !tensor && i < tn_file_count(file); i++)
        tn_nearest_offer(&nearest, tn_file_tensor(file, i)->name);
    const char *hint = did_you_mean(&nearest);
    if (!*hint && strpbrk(name, "*?"))
        hint = ": one name is expected; \"tenon ls --only GLOB\" lists several";
    if (!tensor)
        give_up(EXIT_BAD, "%s: no tensor \"%s\"%s", escaped(path), escaped(name), hint);
    return tensor;
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
    out_check(vfprintf(out_to(), format, args) >= 0);
    va_end(args);
}

void out_text(const char *text) { out_check(fputs_unlocked(text, out_to()) >= 0); }

void out_bytes(const char *bytes, size_t n) { out_check(fwrite_unlocked(bytes, 1, n, out_to()) == n); }

void out_flush(void) { out_check(fflush(stdout) == 0); }

static void hold(held *h)
{
    h->to = open_memstream(&h->text, &h->size);
    if (!h->to)
        give_up(EXIT_SYSTEM, "out of memory");
}

void out_hold(void)
{
    hold(&held_out);
    hold(&held_messages);
}

static void release(held *h, FILE *to)
{
    if (h->to)
        out_check(fclose(h->to) == 0);
    if (h->to && to)
        out_check(fwrite(h->text, 1, h->size, to) == h->size);
    free(h->text);
    *h = (held){ .to = NULL };
}

bool out_release(bool print)
{
    release(&held_out, print ? stdout : NULL);
    out_flush();
    release(&held_messages, print ? stderr : NULL);
    return out_errno == 0;
}

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
