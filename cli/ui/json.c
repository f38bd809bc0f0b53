/* cli/ui/json.c - JSON on stdout. */
#include "ui/json.h"
#include "ui/say.h"
#include "ui/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool comma_due;
static bool has_told;           /* why the command fails */
static char closing[16];        /* of what is open */
static size_t depth;

static void begin_value(void)
{
    if (comma_due)
        out_text(", ");
    comma_due = true;
}

void json_open(char bracket)
{
    begin_value();
    out_bytes(&bracket, 1);
    comma_due = false;
    closing[depth++ % sizeof closing] = bracket == '{' ? '}' : ']';
}

void json_close(char bracket)
{
    depth--;
    out_bytes(&bracket, 1);
    comma_due = true;
}

void json_end(void)
{
    out_text("\n");
    comma_due = false;
}

/* Decodes one well-formed UTF-8 sequence; returns its length, or 0. */
static size_t utf8_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if ((first & 0xe0) == 0xc0)
        return 2;
    if ((first & 0xf0) == 0xe0)
        return 3;
    return (first & 0xf8) == 0xf0 ? 4 : 0;
}

static size_t utf8_next(const unsigned char *s, uint32_t *point)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = utf8_length(*s);
    if (n == 0)
        return 0;
    *point = n == 1 ? *s : *s & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {        /* the final NUL is not a continuation byte */
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *point = *point << 6 | (s[i] & 0x3fu);
    }
    bool surrogate = *point >= 0xd800 && *point < 0xe000;
    return *point < least[n] || *point > 0x10ffff || surrogate ? 0 : n;
}

/* Characters that JSON forbids, and those that could mislead on a terminal. */
static bool needs_escape(uint32_t point)
{
    return point < 0x20 || point == '"' || point == '\\' || (point >= 0x7f && point < 0xa0) ||
           point == 0xad || (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2060 && point <= 0x206f) || point == 0xfeff;
}

static void out_escape(uint32_t point)
{
    static const char letters[] = "\"\"\\\\\nn\tt\rr\bb\ff";
    for (const char *letter = letters; *letter; letter += 2) {
        if ((unsigned char)*letter == point) {
            out("\\%c", letter[1]);
            return;
        }
    }
    out("\\u%04x", point);
}

static void out_string(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    const unsigned char *plain = s;
    out_text("\"");
    while (*s) {
        uint32_t point = 0;
        size_t n = utf8_next(s, &point);
        if (n > 0 && !needs_escape(point)) {
            s += n;
            continue;
        }
        out_bytes((const char *)plain, (size_t)(s - plain));
        out_escape(n > 0 ? point : 0xfffd);
        s += n > 0 ? n : 1;
        plain = s;
    }
    out_bytes((const char *)plain, (size_t)(s - plain));
    out_text("\"");
}

void json_key(const char *key)
{
    begin_value();
    out_string(key);
    out_text(": ");
    comma_due = false;
}

void json_text(const char *text)
{
    begin_value();
    if (text)
        out_string(text);
    else
        out_text("null");
}

void json_word(const char *json)
{
    begin_value();
    out_text(json);
}

/* Joins the lines of an indented document; its strings have no line breaks. */
static void put_on_one_line(char *json)
{
    char *to = json;
    for (const char *from = json; *from; from++) {
        if (*from != '\n') {
            *to++ = *from;
            continue;
        }
        while (from[1] == ' ')
            from++;
        if (from[1] && to > json && to[-1] == ',')
            *to++ = ' ';
    }
    *to = '\0';
}

void json_lines(char *json)
{
    put_on_one_line(json);
    json_word(json);
}

void json_uint(uint64_t value)
{
    char digits[24];
    begin_value();
    out_bytes(digits, (size_t)(put_number(digits, value) - digits));
}

void json_double(double value)
{
    if (isnan(value) || isinf(value)) {
        const char *infinity = value > 0 ? "Infinity" : "-Infinity";
        json_text(isnan(value) ? "NaN" : infinity);
        return;
    }
    char digits[40];
    /* the fewest digits that read back the same */
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    json_word(digits);
}

void json_bool(bool value) { json_word(value ? "true" : "false"); }

void json_int(int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    json_word(digits);
}

void json_shape(uint32_t rank, const int64_t *shape) { json_word(shape ? shape_of(rank, shape).s : "null"); }

static void json_meta_value(const tn_meta *meta)
{
    if (meta->text) {
        json_text(meta->text);
        return;
    }
    size_t size = tn_meta_json(meta, NULL, 0) + 1;
    char *json = must_allocate(size, 1);
    tn_meta_json(meta, json, size);
    json_word(json);
    free(json);
}

void json_meta(const tn_meta *meta, size_t count)
{
    json_open('{');
    for (size_t i = 0; i < count; i++) {
        json_key(meta[i].key);
        json_meta_value(&meta[i]);
    }
    json_close('}');
}

void json_text_field(const char *key, const char *text)
{
    json_key(key);
    json_text(text);
}

void json_uint_field(const char *key, uint64_t value)
{
    json_key(key);
    json_uint(value);
}

void json_bool_field(const char *key, bool value)
{
    json_key(key);
    json_bool(value);
}

void json_shape_field(const char *key, uint32_t rank, const int64_t *shape)
{
    json_key(key);
    json_shape(rank, shape);
}

/* ---- errors ---- */

static const char *status_name(tn_status status, int code)
{
    static const char *const names[] = {
        [TN_ERR_NOMEM] = "nomem",       [TN_ERR_IO] = "io",             [TN_ERR_CANCELLED] = "cancelled",
        [TN_ERR_TRUNCATED] = "truncated", [TN_ERR_CORRUPT] = "corrupt", [TN_ERR_UNSUPPORTED] = "unsupported",
        [TN_ERR_LIMIT] = "limit",       [TN_ERR_CHECKSUM] = "checksum", [TN_ERR_LOSS] = "loss",
        [TN_ERR_ARGUMENT] = "argument", [TN_ERR_EXISTS] = "exists",     [TN_ERR_CHANGED] = "changed",
    };
    static const char *const of_codes[] = { [EXIT_BAD] = "input", [EXIT_USAGE] = "argument",
                                            [EXIT_SYSTEM] = "io" };
    if (status != TN_OK && (size_t)status < sizeof names / sizeof *names && names[status])
        return names[status];
    return of_codes[code];
}

static void json_text_or_null(const char *key, const char *text)
{
    json_text_field(key, *text ? text : NULL);
}

static void json_error(const char *path, const tn_error *err, const char *message, int code)
{
    tn_error shown = *err;
    if (path && !shown.file[0])
        tn_escape(shown.file, sizeof shown.file, path, strlen(path));
    json_open('{');
    json_text_field("status", status_name(err->status, code));
    json_uint_field("exit", (uint64_t)code);
    json_text_or_null("file", shown.file);
    json_text_or_null("tensor", shown.tensor);
    json_key("offset");
    if (shown.offset == TN_NO_OFFSET)
        json_word("null");
    else
        json_uint(shown.offset);
    json_text_field("text", shown.text);
    json_text_field("reason", reason_name(shown.reason));
    json_text_or_null("value", shown.value);
    json_text_field("message", message ? message : error_line(&shown));
    json_close('}');
}

void json_error_field(const char *path, const tn_error *err)
{
    json_key("error");
    if (!err) {
        json_word("null");
        return;
    }
    json_error(path, err, NULL, exit_code(err->status));
    has_told = true;
}

void json_failed(int code)
{
    const char *line;
    const tn_error *err = failure(&line);
    if (!err || (has_told && !depth))
        return;
    while (depth > 1)
        json_close(closing[(depth - 1) % sizeof closing]);
    if (!depth)
        json_open('{');
    json_key("error");
    json_error(NULL, err, line, code);
    json_close('}');
    json_end();
}
