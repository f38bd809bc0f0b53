/* cli/ui/json.h - JSON on stdout, one object per line.
 *
 * Commas take care of themselves: open, then keys and values, then close. */
#ifndef TENON_CLI_UI_JSON_H
#define TENON_CLI_UI_JSON_H

#include <stdbool.h>
#include <tenon/tenon.h>

void json_open(char bracket);           /* '{' or '[' */
void json_close(char bracket);
void json_end(void);                    /* ends the outermost value with a new line */
void json_key(const char *key);

/* Values.  Control, invisible and direction-changing characters are written
 * as \uXXXX, bytes that are not UTF-8 as U+FFFD; NULL is null. */
void json_text(const char *text);
void json_word(const char *json);       /* JSON already: a number, null, metadata */
void json_lines(char *json);            /* JSON already, on several lines: put on one, and changed so */
void json_uint(uint64_t value);
void json_double(double value);         /* NaN and infinities become texts */
void json_bool(bool value);
void json_int(int64_t value);
void json_shape(uint32_t rank, const int64_t *shape);   /* NULL is null */
void json_meta(const tn_meta *meta, size_t count);      /* an object */

/* "error": an object that says what went wrong, or null.  `path` (may be NULL) is the file of an error that
 * names none itself. */
void json_error_field(const char *path, const tn_error *err);

/* Ends the output of a command that failed: what is open is closed, and unless an object has told why, one
 * with "error" does. */
void json_failed(int code);

/* "key": value */
void json_text_field(const char *key, const char *text);
void json_uint_field(const char *key, uint64_t value);
void json_bool_field(const char *key, bool value);
void json_shape_field(const char *key, uint32_t rank, const int64_t *shape);

#endif
