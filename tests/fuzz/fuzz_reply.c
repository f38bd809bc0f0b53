/* What a hostile server or configuration says: headers, XML, URLs, profiles, credentials.  Whatever the text, values
 * are inside it, printable and short, and numbers are consistent. */
#include "mutate.h"
#include "scarce.h"

#include "bytes/remote/credentials.h"
#include "bytes/remote/hub.h"
#include "bytes/remote/reply.h"
#include "bytes/remote/url.h"

#include <string.h>

static void check_text(const char *text, size_t cap)
{
    REQUIRE(memchr(text, 0, cap));
    for (; *text; text++)
        REQUIRE(*text >= ' ' && *text <= '~');
}

static void check_reply(tn_text lines)
{
    tn_reply r = { 0 };
    while (lines.len) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        size_t n = end ? (size_t)(end - lines.ptr) + 1 : lines.len;
        tn_reply_line(&r, lines.ptr, n);
        lines.ptr += n;
        lines.len -= n;
    }
    check_text(r.etag, sizeof r.etag);
    check_text(r.modified, sizeof r.modified);
    check_text(r.region, sizeof r.region);
    REQUIRE(r.status == 0 || (r.status >= 100 && r.status <= 999));
    REQUIRE(!r.has_range || r.first <= r.last);
    REQUIRE(!r.has_range || !r.has_total || r.last < r.total);
    REQUIRE(r.total <= TN_REMOTE_SIZE_MAX && r.last <= TN_REMOTE_SIZE_MAX);
}

static void check_xml(tn_text xml)
{
    char found[40];
    tn_text rest = xml, value;
    unsigned count = 0;
    while (tn_xml_next(&rest, "Key", &value)) {
        REQUIRE(value.ptr >= xml.ptr && value.ptr + value.len <= xml.ptr + xml.len);
        REQUIRE(++count <= xml.len / 11);
    }
    REQUIRE(!tn_xml_text(xml, "Code", found, sizeof found) || strlen(found) < sizeof found);
}

static void check_names(const char *text)
{
    tn_url url;
    tn_buf b = { 0 };
    tn_error err = { .status = TN_OK };
    REQUIRE(tn_url_shown(text) <= strlen(text));
    (void)tn_url_is_folder(text);
    if (!tn_url_parse(text, &url, &err))
        REQUIRE(url.host.len && url.query.ptr + url.query.len <= text + strlen(text));
    if (strncmp(text, "hf://", 5) == 0 && !tn_hub_url(text, "http://h", &b, &err))
        REQUIRE(!tn_url_parse((char *)b.data, &url, NULL));
    tn_buf_free(&b);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_text(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char value[40], name[300];
    const tn_text all = { (const char *)data, size };
    tn_credentials c;
    check_reply(all);
    check_xml(all);
    size_t n = size < sizeof name ? size : sizeof name - 1;
    memcpy(name, data, n);
    name[n] = '\0';
    check_names(name);
    REQUIRE(!tn_ini_find(all, "default", "region", value, sizeof value) || memchr(value, 0, sizeof value));
    tn_error err = { .status = TN_OK };
    REQUIRE(tn_credentials_read(all, &c, &err) == err.status && (err.status || (c.id[0] && c.secret[0])));
    return 0;
}
