/* report/page.c - one HTML file with everything in it.
 *
 * page.html has a word in double braces wherever something is to be put. */
#include "report/page.h"
#include "base/error.h"
#include "base/text.h"
#include "bytes/checksum.h"
#include "report/report.h"

#include <string.h>

/* The policy allows one script and one style alone. */
static tn_status put_hash(tn_buf *b, const unsigned char *bytes, size_t n, tn_error *err)
{
    tn_hash hash;
    tn_digest digest;
    TN_TRY(tn_hash_begin(&hash, TN_CHECKSUM_SHA256, err));
    tn_hash_update(&hash, bytes, n);
    TN_TRY(tn_hash_end(&hash, &digest, err));
    tn_put_base64(b, digest.sha256, sizeof digest.sha256);
    return TN_OK;
}

static tn_status put_data(tn_report *r, tn_buf *b, tn_error *err)
{
    const char *text;
    size_t n;
    TN_TRY(tn_report_text(r, TN_REPORT_DATA, &text, &n, err));
    tn_buf_put(b, text, n);
    return TN_OK;
}

static tn_status put_word(tn_report *r, tn_text word, tn_buf *b, tn_error *err)
{
    if (tn_text_is(word, "hash"))
        return put_hash(b, tn_page_script, tn_page_script_size, err);
    if (tn_text_is(word, "style-hash"))
        return put_hash(b, tn_page_style, tn_page_style_size, err);
    if (tn_text_is(word, "data"))
        return put_data(r, b, err);
    if (tn_text_is(word, "file"))
        tn_put_html(b, tn_report_file_name(r->file));
    else if (tn_text_is(word, "style"))
        tn_buf_put(b, tn_page_style, tn_page_style_size);
    else if (tn_text_is(word, "stamp"))
        tn_put_html(b, r->o.stamp ? r->o.stamp : "");
    else if (tn_text_is(word, "script"))
        tn_buf_put(b, tn_page_script, tn_page_script_size);
    else
        tn_report_put_summary(r, b);
    return TN_OK;
}

tn_status tn_report_put_page(tn_report *r, tn_buf *b, tn_error *err)
{
    const char *text = (const char *)tn_page_html;
    size_t n = tn_page_html_size;
    for (size_t at = 0; at < n;) {
        const char *open = memmem(text + at, n - at, "{{", 2);
        size_t until = open ? (size_t)(open - text) : n;
        tn_buf_put(b, text + at, until - at);
        at = until;
        if (!open)
            break;
        const char *close = memmem(open, n - at, "}}", 2);
        TN_TRY(put_word(r, (tn_text){ open + 2, (size_t)(close - open) - 2 }, b, err));
        at = (size_t)(close - text) + 2;
    }
    return TN_OK;
}
