/* bytes/remote/url.c - the parts of a URL, and text that is safe inside one. */
#include "bytes/remote/url.h"

static tn_text until(const char *from, const char *ends)
{
    return (tn_text){ from, strcspn(from, ends) };
}

static bool has_odd_byte(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f)
            return true;
    return false;
}

tn_status tn_url_parse(const char *text, tn_url *url, tn_error *err)
{
    const char *mark = strstr(text, "://");
    if (!mark)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a URL: scheme://host/path");
    url->scheme = (tn_text){ text, (size_t)(mark - text) };
    url->host = until(mark + 3, "/?#");
    const char *rest = url->host.ptr + url->host.len;
    url->path = until(rest, "?#");
    rest += url->path.len;
    url->query = *rest == '?' ? until(rest + 1, "#") : (tn_text){ rest, 0 };
    if (!url->host.len)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a host after ://");
    if (memchr(url->host.ptr, '@', url->host.len))
        return tn_fail(err, TN_ERR_ARGUMENT, "a URL with a user or password is not taken, because others can "
                       "see it: put them into ~/.netrc");
    if (has_odd_byte(text))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a URL without spaces, control characters and letters "
                       "outside ASCII: write them as %%XX");
    return TN_OK;
}

size_t tn_url_shown(const char *name)
{
    const char *mark = strstr(name, "://");
    if (!tn_begins_with(name, "http://") && !tn_begins_with(name, "https://"))
        return strlen(name);
    tn_text host = until(mark + 3, "/?#");
    return memchr(host.ptr, '@', host.len) ? (size_t)(host.ptr - name) : strcspn(name, "?#");
}

/* hf://ORG/REPO without more. */
static bool is_repository(const char *name)
{
    const char *slash = tn_begins_with(name, "hf://") ? strchr(name + 5, '/') : NULL;
    return slash && slash > name + 5 && slash[1] && !strchr(slash + 1, '/');
}

bool tn_url_is_folder(const char *name)
{
    const char *mark = strstr(name, "://");
    bool ends = tn_ends_with(name, "/") && mark && mark[3] != '/' && mark[3] != '\0';
    return ends || is_repository(name);
}

void tn_url_put(tn_buf *b, tn_text text, const char *keep)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i], small = tn_lower(c);
        unsigned char byte = (unsigned char)c;
        bool plain = (small >= 'a' && small <= 'z') || tn_is_digit(c) || (c && strchr("-._~", c));
        if (plain || (c && strchr(keep, c))) {
            tn_buf_putc(b, c);
        } else {
            tn_buf_putc(b, '%');
            tn_buf_putc(b, digits[byte >> 4]);
            tn_buf_putc(b, digits[byte & 15]);
        }
    }
}

bool tn_url_same_origin(const char *a, const char *b)
{
    tn_url x, y;
    return !tn_url_parse(a, &x, NULL) && !tn_url_parse(b, &y, NULL) && tn_text_equal(x.scheme, y.scheme) &&
           tn_text_equal(x.host, y.host);
}
