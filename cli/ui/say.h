/* cli/ui/say.h - results on stdout, messages on stderr. */
#ifndef TENON_CLI_UI_SAY_H
#define TENON_CLI_UI_SAY_H

#include <stdbool.h>
#include <tenon/tenon.h>

enum {
    EXIT_DONE   = 0,
    EXIT_BAD    = 1,            /* the input is bad, or differs */
    EXIT_USAGE  = 2,
    EXIT_SYSTEM = 3             /* the system failed */
};

int exit_code(tn_status status);
static inline int worse(int a, int b) { return a > b ? a : b; }

/* "tenon: TEXT" on stderr, after everything that stdout already has. */
__attribute__((format(printf, 1, 2)))
void say(const char *format, ...);

/* The same, also while output is held back: see out_hold(). */
__attribute__((format(printf, 1, 2)))
void say_now(const char *format, ...);

/* ": did you mean "X"?", or "" where nothing is near.  Good until the next call. */
const char *did_you_mean(const tn_nearest *nearest);

/* The tensor of this name, or NULL after saying that there is none. */
const tn_tensor *find_tensor(const char *path, const tn_file *file, const char *name);

/* Prints the warnings of an open file, one line each. */
void say_warnings(const char *path, const tn_file *file);

/* Says of a tensor, which may be NULL, that its numbers are another tool's codes or belong to them. */
void say_codes(const char *path, const tn_file *file, const tn_tensor *tensor);

/* The name of a reason for programs, such as "max_bytes"; NULL of none. */
const char *reason_name(tn_reason reason);

/* The option that helps, as text to add: " (--form dense)", or "" where none does.  Good until the next
 * call. */
const char *option_for(tn_reason reason, const char *value);

/* The whole message with the option that helps: FILE: byte N: tensor "T": TEXT (--option).  Good until the
 * next call, as what error_text() returns. */
const char *error_line(const tn_error *err);

/* The same for output that has `path` beside it: its name and the byte are left out. */
const char *error_text(const char *path, const tn_error *err);

/* "tenon: " and the whole message; returns the exit code.  A cancelled operation says nothing.  `path` is the
 * file of an error that names none itself; may be NULL. */
int say_error(const char *path, const tn_error *err);

/* "tenon: TEXT", the reason why the command fails; returns `code`. */
__attribute__((format(printf, 2, 3)))
int give_up(int code, const char *format, ...);

/* The same because of an error of the library, whose status and reason it has. */
__attribute__((format(printf, 3, 4)))
int give_up_by(int code, const tn_error *err, const char *format, ...);

/* Why the command failed, and the line that was said, or NULL: a message alone has the status TN_OK and the
 * text. */
const tn_error *failure(const char **line);

/* The same on stdout.  A write that fails is remembered, said and returned by
 * out_finish(): the exit code of what was asked for, or EXIT_SYSTEM. */
__attribute__((format(printf, 1, 2)))
void out(const char *format, ...);
void out_text(const char *text);
void out_bytes(const char *bytes, size_t n);
void out_flush(void);

/* Holds back all output and messages; then prints them, or not.  False: a write failed. */
void out_hold(void);
bool out_release(bool print);

int  out_finish(int code);

/* Untrusted text as a terminal may show it.  Good until the fourth call after
 * this one: enough for one message. */
const char *escaped(const char *text);

/* The escape sequence of a style, or "" without colour. */
typedef enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_RED } style;
const char *style_on_stdout(style s);

/* Prints "word: " on stdout, the word in red if it is bad. */
void out_judgement(const char *word, bool bad);

/* Memory, or a message and EXIT_SYSTEM. */
void *must_resize(void *old, size_t size);
void *must_allocate(size_t count, size_t size);

#endif
