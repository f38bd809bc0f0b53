/* bytes/remote/s3.c - objects of S3 and of stores that speak its protocol. */
#include "bytes/remote/s3.h"
#include "bytes/remote/credentials.h"
#include "bytes/remote/sigv4.h"
#include "bytes/remote/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_MARK "?versionId="

/* ---- names ---- */

static bool is_bucket_name(tn_text name)
{
    bool good = name.len >= 3 && name.len <= 63;
    for (size_t i = 0; i < name.len && good; i++)
        good = tn_is_digit(name.ptr[i]) || (name.ptr[i] >= 'a' && name.ptr[i] <= 'z') ||
               (name.ptr[i] && strchr(".-_", name.ptr[i])) || (name.ptr[i] >= 'A' && name.ptr[i] <= 'Z');
    return good;
}

tn_status tn_s3_open(const char *name, tn_s3_object *o, tn_error *err)
{
    const char *bucket = name + strlen("s3://"), *slash = strchr(bucket, '/');
    size_t nbucket = slash ? (size_t)(slash - bucket) : strlen(bucket);
    const char *key = slash ? slash + 1 : "", *version = strstr(key, VERSION_MARK);
    size_t nkey = version ? (size_t)(version - key) : strlen(key);
    *o = (tn_s3_object){ 0 };
    if (!is_bucket_name((tn_text){ bucket, nbucket }))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected s3://BUCKET/KEY with a bucket of 3 to 63 letters, "
                       "digits, dots and dashes but found %s", tn_quote(bucket, nbucket).text);
    if (nkey > 1024)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a key of at most 1024 bytes but found %zu", nkey);
    TN_TRY(tn_credentials_find(false, err));
    tn_credentials_region(o->region);
    o->bucket = strndup(bucket, nbucket);
    o->key = strndup(key, nkey);
    o->version = version ? strdup(version + strlen(VERSION_MARK)) : NULL;
    if (o->bucket && o->key && (o->version || !version))
        return TN_OK;
    tn_s3_close(o);
    return tn_fail_nomem(err);
}

void tn_s3_close(tn_s3_object *o)
{
    free(o->bucket);
    free(o->key);
    free(o->version);
    *o = (tn_s3_object){ 0 };
}

/* ---- requests ---- */

/* Where requests go: scheme and host, and the path of the object, encoded. */
typedef struct place {
    tn_buf base, path;
} place;

static void find_place(const tn_s3_object *o, place *p)
{
    const char *endpoint = getenv("AWS_ENDPOINT_URL_S3");
    endpoint = endpoint && *endpoint ? endpoint : getenv("AWS_ENDPOINT_URL");
    bool own_host = !strchr(o->bucket, '.');    /* certificates do not cover names with more dots */
    tn_buf_puts(&p->path, "/");
    if (endpoint && *endpoint) {
        size_t n = strlen(endpoint);
        while (n && endpoint[n - 1] == '/')
            n--;
        tn_buf_put(&p->base, endpoint, n);
        own_host = false;
    } else if (own_host) {
        tn_buf_printf(&p->base, "https://%s.s3.%s.amazonaws.com", o->bucket, o->region);
    } else {
        tn_buf_printf(&p->base, "https://s3.%s.amazonaws.com", o->region);
    }
    if (!own_host) {
        tn_url_put(&p->path, (tn_text){ o->bucket, strlen(o->bucket) }, "");
        if (*o->key)
            tn_buf_putc(&p->path, '/');
    }
    tn_url_put(&p->path, (tn_text){ o->key, strlen(o->key) }, "/");
    tn_buf_putc(&p->path, '\0');
    tn_buf_putc(&p->base, '\0');
}

static void free_place(place *p)
{
    tn_buf_free(&p->base);
    tn_buf_free(&p->path);
}

enum { MOST_SIGNED = 5 };

/* The headers that are signed, sorted; all are sent as they are here: libcurl's Host has no ":443". */
static size_t list_headers(tn_signed_header *list, const char *host, const char *crc, const char *payload,
                           const char *when, const char *token)
{
    size_t n = 0;
    list[n++] = (tn_signed_header){ "host", host };
    if (crc)
        list[n++] = (tn_signed_header){ "x-amz-checksum-crc32c", crc };
    list[n++] = (tn_signed_header){ "x-amz-content-sha256", payload };
    list[n++] = (tn_signed_header){ "x-amz-date", when };
    if (*token)
        list[n++] = (tn_signed_header){ "x-amz-security-token", token };
    return n;
}

static tn_status sign(tn_exchange *x, tn_to_sign *s, const tn_credentials *who, tn_error *err)
{
    tn_buf line = { 0 };
    for (size_t i = 0; i < s->nheaders; i++)
        tn_exchange_header(x, "%s: %s", s->headers[i].name, s->headers[i].value);
    if (!who->id[0])
        return TN_OK;
    s->id = who->id;
    s->secret = who->secret;
    tn_buf_puts(&line, "Authorization: ");
    tn_status status = tn_sigv4_put(s, &line, err);
    tn_buf_putc(&line, '\0');
    if (!status && !line.bad)
        x->secret = strdup((char *)line.data);
    tn_buf_free(&line);
    return status || x->secret ? status : tn_fail_nomem(err);
}

/* Over TLS the body is protected already, and its SHA-256 would take longer than sending it. */
static tn_status hash_body(const tn_s3_request *r, bool tls, char payload[TN_HEX_SHA256], tn_error *err)
{
    if (!tls || !r->body_size)
        return tn_sha256_hex(r->body ? r->body : "", r->body_size, payload, err);
    memcpy(payload, TN_UNSIGNED_PAYLOAD, sizeof TN_UNSIGNED_PAYLOAD);
    return TN_OK;
}

static tn_status sign_request(tn_exchange *x, const tn_s3_object *o, const tn_s3_request *r, const place *p,
                              tn_error *err)
{
    char payload[TN_HEX_SHA256], when[17], host[300];
    tn_signed_header headers[MOST_SIGNED];
    tn_credentials who;
    tn_url url;
    TN_TRY(tn_url_parse(x->url, &url, err));
    TN_TRY(hash_body(r, tn_text_is(url.scheme, "https"), payload, err));
    tn_sigv4_when(time(NULL), when);
    snprintf(host, sizeof host, "%.*s", (int)url.host.len, url.host.ptr);
    tn_credentials_get(&who);
    size_t n = list_headers(headers, host, r->crc32c, payload, when, who.token);
    tn_to_sign s = { .method = r->method, .path = (char *)p->path.data, .query = r->query, .headers = headers,
                     .nheaders = n, .payload = payload, .when = when, .region = o->region, .service = "s3" };
    tn_status status = sign(x, &s, &who, err);
    explicit_bzero(&who, sizeof who);
    return status;
}

tn_exchange *tn_s3_exchange(const tn_s3_object *o, const tn_s3_request *r, tn_error *err)
{
    place p = { 0 };
    tn_exchange *x = NULL;
    find_place(o, &p);
    tn_buf url = { 0 };
    if (!p.base.bad && !p.path.bad)
        tn_buf_printf(&url, "%s%s%s%s", (char *)p.base.data, (char *)p.path.data, *r->query ? "?" : "",
                      r->query);
    tn_buf_putc(&url, '\0');
    if (!url.bad && url.size > 1)
        x = tn_exchange_new(r->method, (char *)url.data);
    tn_buf_free(&url);
    tn_status status = x ? sign_request(x, o, r, &p, err) : tn_fail_nomem(err);
    free_place(&p);
    if (status) {
        tn_exchange_free(x);
        return NULL;
    }
    x->body = r->body;
    x->body_size = r->body_size;
    x->is_final = r->is_final;
    if (r->body_size)
        tn_exchange_header(x, "Content-Type: %s", strcmp(r->method, "PUT") == 0 ? "application/octet-stream"
                                                                               : "application/xml");
    return x;
}

/* A region becomes part of a host's name: a reply must not choose another host. */
static bool is_region(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n && !name[n];
}

bool tn_s3_mend(tn_s3_object *o, const tn_exchange *refused)
{
    const tn_reply *r = &refused->reply;
    tn_credentials before, after;
    if (is_region(r->region) && strcmp(r->region, o->region) != 0) {
        tn_remote_lock();       /* requests are made under it */
        memcpy(o->region, r->region, sizeof o->region);
        tn_remote_unlock();
        return true;
    }
    tn_credentials_get(&before);
    bool changed = false;
    if (tn_credentials_find(true, NULL) == TN_OK) {
        tn_credentials_get(&after);
        changed = strcmp(before.id, after.id) != 0 || strcmp(before.secret, after.secret) != 0 ||
                  strcmp(before.token, after.token) != 0;
        explicit_bzero(&after, sizeof after);
    }
    explicit_bzero(&before, sizeof before);
    return changed;
}

/* ---- as a source ---- */

static tn_exchange *get(const tn_target *t, tn_error *err)
{
    const tn_s3_object *o = t->own;
    tn_buf query = { 0 };
    if (o->version) {
        tn_buf_puts(&query, "versionId=");
        tn_url_put(&query, (tn_text){ o->version, strlen(o->version) }, "");
    }
    tn_buf_putc(&query, '\0');
    tn_exchange *x = NULL;
    if (query.bad)
        tn_fail_nomem(err);
    else
        x = tn_s3_exchange(o, &(tn_s3_request){ .method = "GET", .query = (char *)query.data }, err);
    tn_buf_free(&query);
    return x;
}

static tn_status resolve(const char *name, tn_target *target, tn_error *err)
{
    tn_s3_object *o = calloc(1, sizeof *o);
    TN_NEED(o, err);
    target->own = o;
    return tn_s3_open(name, o, err);
}

static tn_status renew(tn_target *target, tn_error *err)
{
    (void)target;
    return tn_credentials_find(false, err);
}

static bool mend(tn_target *target, const tn_exchange *refused) { return tn_s3_mend(target->own, refused); }

static void free_own(tn_target *target)
{
    if (target->own)
        tn_s3_close(target->own);
    free(target->own);
}

const tn_scheme tn_scheme_s3 = {
    .resolve = resolve, .get = get, .renew = renew, .mend = mend, .free = free_own,
};
