/* report/texts.c - numbers and names, as JSON and as HTML.  Nothing depends on the locale. */
#include "report/report.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* Digits without trailing zeros, d.ddd * 10^exponent. */
static void put_digits(tn_buf *b, const char *digits, int n, int exponent)
{
    if (exponent < -4 || exponent > 14) {
        tn_buf_putc(b, digits[0]);
        if (n > 1)
            tn_buf_putc(b, '.');
        tn_buf_put(b, digits + 1, (size_t)n - 1);
        tn_buf_printf(b, "e%d", exponent);
        return;
    }
    if (exponent < 0)
        tn_buf_puts(b, "0.");
    for (int i = exponent; i < -1; i++)
        tn_buf_putc(b, '0');
    for (int i = 0; i < n || i <= exponent; i++) {
        if (i && i == exponent + 1)
            tn_buf_putc(b, '.');
        tn_buf_putc(b, i < n ? digits[i] : '0');
    }
}

void tn_put_number(tn_buf *b, double x, int most)
{
    char text[40], digits[20];
    int n = 0;
    if (!isfinite(x)) {
        const char *sign = x < 0 ? "-" : "";
        tn_buf_printf(b, "\"%s%s\"", isnan(x) ? "" : sign, isnan(x) ? "NaN" : "Infinity");
        return;
    }
    snprintf(text, sizeof text, "%.*e", most - 1, fabs(x));     /* whatever its decimal point is */
    const char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (tn_is_digit(*p))
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (x < 0)
        tn_buf_putc(b, '-');
    put_digits(b, digits, n, (int)strtol(e + 1, NULL, 10));
}

void tn_put_grouped(tn_buf *b, uint64_t number)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            tn_buf_putc(b, ',');
        tn_buf_putc(b, digits[i]);
    }
}

void tn_put_size(tn_buf *b, uint64_t bytes)
{
    static const char units[] = "KMGTPE";
    double size = (double)bytes / 1024;
    int unit = 0;
    if (bytes < 1024) {
        tn_buf_printf(b, "%u B", (unsigned)bytes);
        return;
    }
    for (; size >= 1024; unit++)
        size /= 1024;
    tn_put_number(b, size, size < 100 ? 2 : 3 + (size >= 1000));
    tn_buf_printf(b, " %ciB", units[unit]);
}

void tn_put_base64(tn_buf *b, const uint8_t *bytes, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= i + 2 < n ? bytes[i + 2] : 0;
        tn_buf_putc(b, letters[group >> 18]);
        tn_buf_putc(b, letters[group >> 12 & 63]);
        tn_buf_putc(b, i + 1 < n ? letters[group >> 6 & 63] : '=');
        tn_buf_putc(b, i + 2 < n ? letters[group & 63] : '=');
    }
}

/* ---- names ---- */

static size_t put_code_point(char out[16], uint32_t c)
{
    if (c < 0x10000)
        return (size_t)snprintf(out, 16, "\\u%04x", (unsigned)c);
    c -= 0x10000;
    return (size_t)snprintf(out, 16, "\\u%04x\\u%04x", (unsigned)(0xd800 + (c >> 10)),
                            (unsigned)(0xdc00 + (c & 0x3ff)));
}

/* What must not stand in a script element or in JSON as it is. */
static bool is_special(uint32_t c)
{
    return c < 0x20 || c == 0x7f || (c < 0x80 && strchr("\"\\<>&", (int)c)) || tn_is_hidden(c);
}

bool tn_put_json_text(tn_buf *b, const char *text, size_t most)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t used = 0, n = strlen(text);
    tn_buf_putc(b, '"');
    for (size_t at = 0, length; at < n; at += length) {
        char out[16];
        length = tn_utf8_length(s[at]);
        bool valid = length <= n - at && tn_utf8_valid(s + at, length) == length;
        length = valid ? length : 1;
        uint32_t c = valid ? tn_utf8_decode(s + at, length) : 0xfffd;
        size_t size = length;
        if (is_special(c) || !valid)
            size = put_code_point(out, c);
        else
            memcpy(out, s + at, length);
        if (size > most - used) {
            tn_buf_puts(b, "…\"");
            return false;
        }
        tn_buf_put(b, out, size);
        used += size;
    }
    tn_buf_putc(b, '"');
    return true;
}

void tn_put_html(tn_buf *b, const char *text)
{
    char escaped[TN_REPORT_NAME];
    tn_escape(escaped, sizeof escaped, text, strlen(text));
    for (const char *p = escaped; *p; p++) {
        switch (*p) {
        case '<':  tn_buf_puts(b, "&lt;"); break;
        case '>':  tn_buf_puts(b, "&gt;"); break;
        case '&':  tn_buf_puts(b, "&amp;"); break;
        case '"':  tn_buf_puts(b, "&quot;"); break;
        case '\'': tn_buf_puts(b, "&#39;"); break;
        default:   tn_buf_putc(b, *p);
        }
    }
}
