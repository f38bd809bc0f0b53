/* pipeline/work_text.c - texts that processes leave for each other. */
#include "pipeline/work_text.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TRAILER "\"checksum\":\"crc32c:0x%08X\"}\n"
enum { TRAILER_SIZE = sizeof "\"checksum\":\"crc32c:0x00000000\"}\n" - 1 };

void tn_work_seal(tn_buf *b)
{
    tn_buf_printf(b, TRAILER, b->bad ? 0 : tn_crc32c(0, b->data, b->size));
}

bool tn_work_is_whole(tn_text text)
{
    char trailer[TRAILER_SIZE + 1];
    size_t n = text.len > TRAILER_SIZE ? text.len - TRAILER_SIZE : 0;
    snprintf(trailer, sizeof trailer, TRAILER, tn_crc32c(0, text.ptr, n));
    return n && memcmp(text.ptr + n, trailer, TRAILER_SIZE) == 0;
}

/* ---- numbers ---- */

void tn_work_put_numbers(tn_buf *b, const uint64_t *numbers, size_t n)
{
    tn_buf_putc(b, '[');
    for (size_t i = 0; i < n; i++)
        tn_buf_printf(b, "%s%" PRIu64, i ? "," : "", numbers[i]);
    tn_buf_putc(b, ']');
}

void tn_work_take_numbers(tn_json *j, uint64_t *numbers, size_t n)
{
    size_t found = 0;
    memset(numbers, 0, n * sizeof *numbers);
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (found == n) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected %zu numbers but found more", n);
            return;
        }
        numbers[found++] = tn_json_u64(j);
    }
    if (!j->status && found < n)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected %zu numbers but found %zu", n, found);
}

/* ---- checksums ---- */

void tn_work_put_digest(tn_buf *b, const tn_digest *digest)
{
    char text[TN_CHECKSUM_TEXT_MAX] = "";
    if (digest && digest->kind != TN_CHECKSUM_NONE)
        tn_digest_format(digest, text);
    tn_json_put_z(b, text);
}

void tn_work_take_digest(tn_json *j, tn_checksum kind, tn_digest *digest)
{
    char text[TN_CHECKSUM_TEXT_MAX];
    const tn_text t = tn_json_string(j);
    *digest = (tn_digest){ .kind = TN_CHECKSUM_NONE };
    if (j->status || t.len == 0)
        return;
    if (t.len >= sizeof text) {
        tn_json_reject(j, TN_ERR_CORRUPT, "expected a checksum");
        return;
    }
    memcpy(text, t.ptr, t.len);
    text[t.len] = '\0';
    digest->kind = tn_checksum_kind(text);
    if (digest->kind != kind || tn_digest_parse(text, digest, NULL) != TN_OK)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected a checksum of another kind");
}

/* ---- errors ---- */

void tn_work_put_error(tn_buf *b, const tn_error *err)
{
    const uint64_t numbers[] = { (uint64_t)err->status, (uint64_t)err->reason, err->offset };
    const char *const texts[] = { err->file, err->tensor, err->value, err->text };
    if (!err->status && !*err->text) {
        tn_buf_puts(b, "null");
        return;
    }
    tn_buf_putc(b, '[');
    tn_work_put_numbers(b, numbers, 3);
    for (size_t i = 0; i < 4; i++) {
        tn_buf_putc(b, ',');
        tn_json_put_z(b, texts[i]);
    }
    tn_buf_putc(b, ']');
}

/* One line, as all texts of an error. */
static void take_line(tn_json *j, char *to, size_t cap)
{
    const tn_text t = tn_json_string(j);
    bool good = !j->status && t.len < cap;
    for (size_t i = 0; i < t.len && good; i++)
        good = (unsigned char)t.ptr[i] >= ' ' && t.ptr[i] != 0x7f;
    if (!good) {
        tn_json_reject(j, TN_ERR_CORRUPT, "expected a line of at most %zu bytes", cap - 1);
        return;
    }
    memcpy(to, t.ptr, t.len);
    to[t.len] = '\0';
}

void tn_work_take_error(tn_json *j, tn_error *err)
{
    const struct { char *to; size_t cap; } texts[] = {
        { err->file, sizeof err->file }, { err->tensor, sizeof err->tensor },
        { err->value, sizeof err->value }, { err->text, sizeof err->text },
    };
    uint64_t numbers[3] = { 0 };
    size_t n = 0;
    *err = (tn_error){ .offset = TN_NO_OFFSET };
    if (tn_json_peek(j) == TN_JSON_NULL) {
        tn_json_null(j);
        return;
    }
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (n > 4) {
            tn_json_reject(j, TN_ERR_CORRUPT, "expected an error");
            return;
        }
        if (n == 0)
            tn_work_take_numbers(j, numbers, 3);
        else
            take_line(j, texts[n - 1].to, texts[n - 1].cap);
        n++;
    }
    if (!j->status && (n != 5 || numbers[0] > TN_ERR_CHANGED || numbers[1] > TN_REASON_IMPORTANCE))
        tn_json_reject(j, TN_ERR_CORRUPT, "expected an error");
    err->status = j->status ? TN_OK : (tn_status)numbers[0];
    err->reason = j->status ? TN_REASON_NONE : (tn_reason)numbers[1];
    err->offset = numbers[2];
}
