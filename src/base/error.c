/* base/error.c - statuses, messages, escaping of untrusted text. */
#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tn_status_text(tn_status status)
{
    switch (status) {
    case TN_OK:              return "done";
    case TN_ERR_NOMEM:       return "out of memory";
    case TN_ERR_IO:          return "the system refused";
    case TN_ERR_CANCELLED:   return "cancelled";
    case TN_ERR_TRUNCATED:   return "the input is truncated";
    case TN_ERR_CORRUPT:     return "the input is corrupt";
    case TN_ERR_UNSUPPORTED: return "not supported by this build";
    case TN_ERR_LIMIT:       return "beyond a limit";
    case TN_ERR_CHECKSUM:    return "checksum mismatch";
    case TN_ERR_LOSS:        return "something would be lost";
    case TN_ERR_ARGUMENT:    return "wrong argument";
    case TN_ERR_EXISTS:      return "already exists";
    case TN_ERR_CHANGED:     return "changed meanwhile";
    }
    return "unknown status";
}

__attribute__((format(printf, 3, 0)))
static void fill(tn_error *err, tn_status status, const char *format, va_list args)
{
    if (!err)
        return;
    err->status = status;
    err->offset = TN_NO_OFFSET;
    err->reason = TN_REASON_NONE;
    err->file[0] = err->tensor[0] = err->value[0] = '\0';
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    if (n >= (int)sizeof err->text)     /* never half a character */
        err->text[tn_utf8_valid(err->text, strlen(err->text))] = '\0';
}

tn_status tn_fail(tn_error *err, tn_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, status, format, args);
    va_end(args);
    return status;
}

tn_status tn_fail_at(tn_error *err, tn_status status, uint64_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, status, format, args);
    va_end(args);
    return tn_at_byte(status, offset, err);
}

tn_status tn_refuse(tn_error *err, tn_status status, tn_reason reason, const char *value, const char *format,
                    ...)
{
    va_list args;
    va_start(args, format);
    fill(err, status, format, args);
    va_end(args);
    return tn_with_reason(status, reason, value, err);
}

tn_status tn_fail_errno(tn_error *err, int error_number, const char *what)
{
    char reason[128];
    tn_status status = error_number == ENOMEM ? TN_ERR_NOMEM : TN_ERR_IO;
    return tn_fail(err, status, "%s: %s", what, strerror_r(error_number, reason, sizeof reason));
}

tn_status tn_fail_nomem(tn_error *err)
{
    return tn_fail(err, TN_ERR_NOMEM, "out of memory");
}

/* A cancelled operation failed nowhere. */
static bool has_place(tn_status status, const tn_error *err)
{
    return status && status != TN_ERR_CANCELLED && err;
}

tn_status tn_in_file(tn_status status, const char *path, tn_error *err)
{
    if (has_place(status, err) && path && !err->file[0])
        tn_escape(err->file, sizeof err->file, path, strlen(path));
    return status;
}

tn_status tn_at_byte(tn_status status, uint64_t offset, tn_error *err)
{
    if (status && err && err->offset == TN_NO_OFFSET)
        err->offset = offset;
    return status;
}

tn_status tn_in_tensor(tn_status status, const char *name, tn_error *err)
{
    if (has_place(status, err) && !err->tensor[0] && !err->file[0])
        tn_escape(err->tensor, sizeof err->tensor, name, strlen(name));
    return status;
}

tn_status tn_and_say(tn_status status, const char *text, tn_error *err)
{
    size_t n = status && err ? strlen(err->text) : 0;
    if (status && err && strlen(text) < sizeof err->text - n)
        memcpy(err->text + n, text, strlen(text) + 1);
    return status;
}

tn_status tn_with_reason(tn_status status, tn_reason reason, const char *value, tn_error *err)
{
    if (status && err && err->reason == TN_REASON_NONE) {
        err->reason = reason;
        snprintf(err->value, sizeof err->value, "%s", value ? value : "");
    }
    return status;
}

size_t tn_error_format(const tn_error *err, char *dst, size_t cap)
{
    char place[32] = "";
    if (!err) {
        if (cap > 0)
            *dst = '\0';
        return 0;
    }
    const char *colon = err->file[0] ? ": " : "", *before = "", *after = "";
    if (err->tensor[0]) {
        before = "tensor \"";
        after = "\": ";
    }
    if (err->offset != TN_NO_OFFSET)
        snprintf(place, sizeof place, "byte %llu: ", (unsigned long long)err->offset);
    int n = snprintf(dst, cap, "%s%s%s%s%s%s%s", err->file, colon, place, before, err->tensor, after,
                     err->text);
    if (n > 0 && (size_t)n >= cap && cap > 0)
        dst[tn_utf8_valid(dst, strlen(dst))] = '\0';
    return n > 0 ? (size_t)n : 0;
}

tn_quoted tn_quote(const char *text, size_t n)
{
    tn_quoted q;
    q.text[0] = '"';
    tn_escape(q.text + 1, sizeof q.text - 2, text, n);
    size_t end = strlen(q.text);
    q.text[end] = '"';
    q.text[end + 1] = '\0';
    return q;
}

tn_quoted tn_quote_z(const char *text)
{
    return tn_quote(text, strlen(text));
}

/* Code points that a terminal does not draw or that change the direction of
 * what follows: shown by number so that no two names look alike. */
bool tn_is_hidden(uint32_t c)
{
    return (c >= 0x80 && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
           c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

uint32_t tn_utf8_decode(const uint8_t *s, size_t n)
{
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3fu);
    return c;
}

/* Escapes one character; *used is how many bytes it took. */
static size_t escape_one(char out[16], const uint8_t *s, size_t n, size_t *used)
{
    size_t len = tn_utf8_length(s[0]);
    *used = 1;
    out[0] = (char)s[0];
    if (s[0] >= 0x20 && s[0] < 0x7f && s[0] != '"' && s[0] != '\\')        /* most are */
        return 1;
    if (len > n || tn_utf8_valid(s, len) != len)
        return (size_t)snprintf(out, 16, "\\x%02x", s[0]);
    if (len == 1) {
        static const char plain[] = "\n\t\r\"\\", names[] = "ntr\"\\";
        const char *p = s[0] ? strchr(plain, s[0]) : NULL;
        if (p)
            return (size_t)snprintf(out, 16, "\\%c", names[p - plain]);
        return (size_t)snprintf(out, 16, "\\x%02x", s[0]);
    }
    *used = len;
    uint32_t c = tn_utf8_decode(s, len);
    if (tn_is_hidden(c))
        return (size_t)snprintf(out, 16, "\\u{%x}", (unsigned)c);
    memcpy(out, s, len);
    return len;
}

size_t tn_escape(char *dst, size_t cap, const char *text, size_t n)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t total = 0, fit = 0, fit_dots = 0;    /* fit_dots: what still leaves room for "..." */
    for (size_t i = 0, used = 0; i < n; i += used) {
        char one[16];
        size_t len = escape_one(one, s + i, n - i, &used);
        if (total == fit && total + len < cap) {
            memcpy(dst + total, one, len);
            fit = total + len;
            if (fit + 3 < cap)
                fit_dots = fit;
        }
        total += len;
    }
    if (cap) {
        if (fit < total && cap > 3)
            memcpy(dst + fit_dots, "...", 3), fit = fit_dots + 3;
        dst[fit] = '\0';
    }
    return total;
}
