/* bytes/remote/credentials.c - who asks an object store. */
#include "bytes/remote/credentials.h"
#include "bytes/remote/reply.h"
#include "base/arena.h"
#include "bytes/json.h"
#include "bytes/remote/exchange.h"
#include "bytes/remote/program.h"
#include "bytes/remote/url.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_BYTES = 256 << 10,     /* of ~/.aws/config and the like */
    REPLY_BYTES = 64 << 10,
    EARLY = 300,                /* seconds before they expire */
    AGAIN = 30,                 /* seconds between requests for others that do not expire so soon */
    HOP = 1                     /* seconds that a metadata service may take */
};

/* Whoever finds credentials holds `finding` and waits for replies; requests are signed meanwhile, also by the
 * thread that those replies come to.  So `lock` is held for a moment only. */
static pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static tn_credentials found;
static bool is_found;
static time_t found_at;

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Copies a text that fits; false: it does not. */
static bool keep(char *to, size_t cap, const char *from, size_t n)
{
    if (n >= cap || memchr(from, '\n', n) || memchr(from, '\r', n))
        return false;
    memcpy(to, from, n);
    to[n] = '\0';
    return true;
}

#define KEEP(to, from) keep(to, sizeof(to), from, strlen(from))

/* ---- texts ---- */

static int two(const char *digits) { return (digits[0] - '0') * 10 + digits[1] - '0'; }

bool tn_credentials_time(tn_text text, time_t *t)
{
    static const char shape[] = "0000-00-00T00:00:00";
    if (text.len < sizeof shape - 1)
        return false;
    for (size_t i = 0; i < sizeof shape - 1; i++)
        if (shape[i] == '0' ? !tn_is_digit(text.ptr[i]) : text.ptr[i] != shape[i])
            return false;
    const char *p = text.ptr;
    struct tm utc = { .tm_year = two(p) * 100 + two(p + 2) - 1900, .tm_mon = two(p + 5) - 1,
                      .tm_mday = two(p + 8), .tm_hour = two(p + 11), .tm_min = two(p + 14),
                      .tm_sec = two(p + 17) };
    *t = timegm(&utc);
    return true;
}

static tn_status incomplete(tn_error *err)
{
    return tn_fail(err, TN_ERR_CORRUPT, "expected JSON with AccessKeyId and SecretAccessKey");
}

tn_status tn_credentials_read(tn_text json, tn_credentials *c, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_json j;
    tn_text key;
    bool fits = true;
    *c = (tn_credentials){ 0 };
    tn_json_init(&j, json.ptr, json.len, &arena);
    tn_json_object(&j);
    while (fits && tn_json_key(&j, &key)) {
        if (tn_json_peek(&j) != TN_JSON_STRING) {
            tn_json_skip(&j);
            continue;
        }
        tn_text value = tn_json_string(&j);
        if (j.status)
            break;
        if (tn_text_is(key, "AccessKeyId"))
            fits = keep(c->id, sizeof c->id, value.ptr, value.len);
        else if (tn_text_is(key, "SecretAccessKey"))
            fits = keep(c->secret, sizeof c->secret, value.ptr, value.len);
        else if (tn_text_is(key, "SessionToken") || tn_text_is(key, "Token"))
            fits = keep(c->token, sizeof c->token, value.ptr, value.len);
        else if (tn_text_is(key, "Expiration"))
            fits = tn_credentials_time(value, &c->expires);
    }
    bool good = fits && tn_json_done(&j) && c->id[0] && c->secret[0];
    tn_arena_free(&arena);
    return good ? TN_OK : incomplete(err);
}

bool tn_ini_find(tn_text file, const char *section, const char *key, char *value, size_t cap)
{
    bool inside = false;
    while (file.len) {
        const char *end = memchr(file.ptr, '\n', file.len);
        size_t n = end ? (size_t)(end - file.ptr) : file.len;
        tn_text line = tn_remote_trim((tn_text){ file.ptr, n });
        file.ptr += n + (end != NULL);
        file.len -= n + (end != NULL);
        const char *equals = line.len ? memchr(line.ptr, '=', line.len) : NULL;
        if (line.len > 2 && line.ptr[0] == '[' && line.ptr[line.len - 1] == ']') {
            inside = tn_text_is(tn_remote_trim((tn_text){ line.ptr + 1, line.len - 2 }), section);
            if (inside && !key)
                return true;
        } else if (inside && key && equals && line.ptr[0] != '#' && line.ptr[0] != ';') {
            size_t length = (size_t)(equals - line.ptr);
            tn_text right = tn_remote_trim((tn_text){ equals + 1, line.len - length - 1 });
            if (tn_text_is(tn_remote_trim((tn_text){ line.ptr, length }), key))
                return keep(value, cap, right.ptr, right.len);
        }
    }
    return false;
}

/* A small file as text, to be freed; NULL: it cannot be read. */
static char *load_text(const char *path, size_t *n)
{
    FILE *f = fopen(path, "re");
    char *text = f ? malloc(FILE_BYTES) : NULL;
    *n = text ? fread(text, 1, FILE_BYTES, f) : 0;
    if (f)
        fclose(f);
    return text;
}

/* ---- profiles ---- */

/* A key of the profile: of ~/.aws/credentials, else of ~/.aws/config.  Without a key: whether it exists. */
static bool profile_key(const char *key, char *value, size_t cap)
{
    static const struct { const char *variable, *file, *prefix; } files[] = {
        { "AWS_SHARED_CREDENTIALS_FILE", "credentials", "" }, { "AWS_CONFIG_FILE", "config", "profile " },
    };
    const char *name = environment("AWS_PROFILE"), *home = environment("HOME");
    bool there = false;
    name = name ? name : "default";
    for (size_t i = 0; i < 2 && !there; i++) {
        char path[4096], section[300];
        const char *given = environment(files[i].variable);
        const char *prefix = strcmp(name, "default") == 0 ? "" : files[i].prefix;
        size_t n;
        snprintf(path, sizeof path, "%s/.aws/%s", home ? home : "", files[i].file);
        snprintf(section, sizeof section, "%s%s", prefix, name);
        char *text = load_text(given ? given : path, &n);
        there = text && tn_ini_find((tn_text){ text, n }, section, key, value, cap);
        if (text)
            explicit_bzero(text, n);
        free(text);
    }
    return there;
}

static tn_status by_program(const char *command, tn_credentials *c, tn_error *err)
{
    char *text = malloc(REPLY_BYTES);
    size_t n = 0;
    TN_NEED(text, err);
    tn_status status = tn_program_run(command, text, REPLY_BYTES, &n, err);
    if (!status)
        status = tn_credentials_read((tn_text){ text, n }, c, err);
    explicit_bzero(text, n);
    free(text);
    return status ? tn_and_say(status, " (credential_process of the AWS profile)", err) : TN_OK;
}

static tn_status from_profile(tn_credentials *c, tn_error *err)
{
    char command[2048];
    const char *named = environment("AWS_PROFILE");
    if (named && !profile_key(NULL, NULL, 0))
        return tn_fail(err, TN_ERR_ARGUMENT, "AWS_PROFILE names %s, which is neither in ~/.aws/credentials "
                       "nor in ~/.aws/config", tn_quote(named, strlen(named)).text);
    if (profile_key("aws_access_key_id", c->id, sizeof c->id)) {
        if (!profile_key("aws_secret_access_key", c->secret, sizeof c->secret))
            return tn_fail(err, TN_ERR_ARGUMENT, "the AWS profile has an aws_access_key_id but no "
                           "aws_secret_access_key");
        (void)profile_key("aws_session_token", c->token, sizeof c->token);
        return TN_OK;
    }
    return profile_key("credential_process", command, sizeof command) ? by_program(command, c, err) : TN_OK;
}

static tn_status from_environment(tn_credentials *c, tn_error *err)
{
    const char *id = environment("AWS_ACCESS_KEY_ID"), *secret = environment("AWS_SECRET_ACCESS_KEY");
    const char *token = environment("AWS_SESSION_TOKEN");
    if (!id || !secret)
        return TN_OK;
    if (!KEEP(c->id, id) || !KEEP(c->secret, secret) || (token && !KEEP(c->token, token)))
        return tn_fail(err, TN_ERR_ARGUMENT, "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN "
                       "is too long");
    return TN_OK;
}

/* ---- services ---- */

/* One request; its reply is text of *n bytes. */
typedef struct question {
    const char *method, *url;
    const char *header;         /* "Name: value", or NULL */
    bool        once;           /* one short try: it may not be there */
} question;

static tn_status ask(const question *q, char *text, size_t *n, tn_error *err)
{
    tn_exchange *x = tn_exchange_new(q->method, q->url);
    TN_NEED(x, err);
    if (q->header)
        tn_exchange_header(x, "%s", q->header);
    x->to = (uint8_t *)text;
    x->room = REPLY_BYTES - 1;
    x->once = q->once;
    x->patience = q->once ? HOP : 0;
    x->is_direct = tn_begins_with(q->url, "http://");       /* nobody else is to see secrets */
    tn_status status = tn_exchange_run(x, err);
    *n = x->got;
    text[x->got] = '\0';
    tn_exchange_free(x);
    return status;
}

/* Plain HTTP only where nobody else listens: this machine, or what a container runtime offers. */
static bool is_container_url(const char *url)
{
    static const char *const hosts[] = { "127.0.0.1", "localhost", "[::1]", "169.254.170.2",
                                         "169.254.170.23" };
    tn_url u;
    if (tn_url_parse(url, &u, NULL))
        return false;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        size_t n = strlen(hosts[i]);
        bool begins = u.host.len >= n && memcmp(u.host.ptr, hosts[i], n) == 0;
        if (begins && (u.host.len == n || u.host.ptr[n] == ':'))
            return true;
    }
    return tn_text_is(u.scheme, "https");
}

static tn_status from_container(char *text, tn_credentials *c, tn_error *err)
{
    char url[2048], header[5000];
    const char *full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    const char *token_file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    size_t n;
    if (!full && !relative)
        return TN_OK;
    snprintf(url, sizeof url, "%s%s", relative ? "http://169.254.170.2" : "", relative ? relative : full);
    if (!is_container_url(url))
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor this machine");
    char *loaded = token_file ? load_text(token_file, &n) : NULL;
    token = token ? token : "";
    tn_text secret = loaded ? tn_remote_trim((tn_text){ loaded, n }) : (tn_text){ token, strlen(token) };
    snprintf(header, sizeof header, "Authorization: %.*s", (int)secret.len, secret.ptr);
    free(loaded);
    TN_TRY(ask(&(question){ "GET", url, secret.len ? header : NULL, false }, text, &n, err));
    return tn_credentials_read((tn_text){ text, n }, c, err);
}

static tn_status from_web_identity(char *text, tn_credentials *c, tn_error *err)
{
    const char *file = environment("AWS_WEB_IDENTITY_TOKEN_FILE"), *role = environment("AWS_ROLE_ARN");
    const char *endpoint = environment("AWS_ENDPOINT_URL_STS");
    const char *session = environment("AWS_ROLE_SESSION_NAME");
    size_t n;
    if (!file || !role)
        return TN_OK;
    char *token = load_text(file, &n), region[64], when[40];
    if (!token)
        return tn_fail(err, TN_ERR_IO, "cannot read the file of AWS_WEB_IDENTITY_TOKEN_FILE");
    tn_text trimmed = tn_remote_trim((tn_text){ token, n });
    tn_buf url = { 0 };
    tn_credentials_region(region);
    if (endpoint)
        tn_buf_puts(&url, endpoint);
    else
        tn_buf_printf(&url, "https://sts.%s.amazonaws.com", region);
    tn_buf_puts(&url, "/?Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=");
    tn_url_put(&url, (tn_text){ role, strlen(role) }, "");
    tn_buf_puts(&url, "&RoleSessionName=");
    session = session ? session : "tenon";
    tn_url_put(&url, (tn_text){ session, strlen(session) }, "");
    tn_buf_puts(&url, "&WebIdentityToken=");
    tn_url_put(&url, trimmed, "");
    tn_buf_putc(&url, '\0');
    tn_status status = url.bad ? tn_fail_nomem(err)
                               : ask(&(question){ "GET", (char *)url.data, NULL, false }, text, &n, err);
    tn_buf_free(&url);
    free(token);
    if (status)
        return tn_and_say(status, " (AssumeRoleWithWebIdentity)", err);
    tn_text xml = { text, n };
    bool good = tn_xml_text(xml, "AccessKeyId", c->id, sizeof c->id) &&
                tn_xml_text(xml, "SecretAccessKey", c->secret, sizeof c->secret) &&
                tn_xml_text(xml, "SessionToken", c->token, sizeof c->token) &&
                tn_xml_text(xml, "Expiration", when, sizeof when) &&
                tn_credentials_time((tn_text){ when, strlen(when) }, &c->expires);
    return good ? TN_OK : tn_fail(err, TN_ERR_IO, "AssumeRoleWithWebIdentity answered without credentials");
}

/* Not being there is usual. */
static void from_instance(char *text, tn_credentials *c)
{
    const char *endpoint = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *disabled = environment("AWS_EC2_METADATA_DISABLED");
    char header[400], url[800], role[200];
    size_t n;
    if (disabled && strcmp(disabled, "true") == 0)
        return;
    endpoint = endpoint ? endpoint : "http://169.254.169.254";
    snprintf(url, sizeof url, "%s/latest/api/token", endpoint);
    if (ask(&(question){ "PUT", url, "X-aws-ec2-metadata-token-ttl-seconds: 21600", true }, text, &n, NULL) ||
        !keep(role, sizeof role, text, n))
        return;
    snprintf(header, sizeof header, "X-aws-ec2-metadata-token: %s", role);
    snprintf(url, sizeof url, "%s/latest/meta-data/iam/security-credentials/", endpoint);
    if (ask(&(question){ "GET", url, header, true }, text, &n, NULL) ||
        !keep(role, sizeof role, text, strcspn(text, "\r\n")))
        return;
    tn_buf whole = { 0 };
    tn_buf_puts(&whole, url);
    tn_url_put(&whole, (tn_text){ role, strlen(role) }, "");
    tn_buf_putc(&whole, '\0');
    bool good = !whole.bad && !ask(&(question){ "GET", (char *)whole.data, header, true }, text, &n, NULL);
    tn_buf_free(&whole);
    if (!good || tn_credentials_read((tn_text){ text, n }, c, NULL))
        *c = (tn_credentials){ 0 };
}

/* ---- the chain ---- */

static tn_status find(tn_credentials *c, tn_error *err)
{
    tn_status status = from_environment(c, err);
    if (!status && !c->id[0])
        status = from_profile(c, err);
    char *text = !status && !c->id[0] ? malloc(REPLY_BYTES) : NULL;
    if (!text)
        return !status && !c->id[0] ? tn_fail_nomem(err) : status;
    status = from_container(text, c, err);
    if (!status && !c->id[0])
        status = from_web_identity(text, c, err);
    if (!status && !c->id[0])
        from_instance(text, c);
    explicit_bzero(text, REPLY_BYTES);
    free(text);
    return status;
}

/* Whether credentials are to be found now; *usable: those that are here do still. */
static bool is_due(bool again, bool *usable)
{
    pthread_mutex_lock(&lock);
    time_t now = time(NULL);
    bool expire = found.expires && found.expires - EARLY < now && now - found_at >= AGAIN;
    *usable = is_found && !again && (!found.expires || found.expires > now);
    bool due = !is_found || expire || again;
    pthread_mutex_unlock(&lock);
    return due;
}

static void take(const tn_credentials *now)
{
    pthread_mutex_lock(&lock);
    if (now)
        found = *now;
    is_found = true;
    found_at = time(NULL);
    pthread_mutex_unlock(&lock);
}

tn_status tn_credentials_find(bool again, tn_error *err)
{
    tn_status status = TN_OK;
    bool usable;
    pthread_mutex_lock(&finding);
    if (is_due(again, &usable)) {
        tn_credentials now = { 0 };
        status = find(&now, err);
        if (!status || usable)
            take(status ? NULL : &now);
        explicit_bzero(&now, sizeof now);
    }
    pthread_mutex_unlock(&finding);
    return usable ? TN_OK : status;
}

void tn_credentials_get(tn_credentials *c)
{
    pthread_mutex_lock(&lock);
    *c = found;
    pthread_mutex_unlock(&lock);
}

void tn_credentials_region(char region[64])
{
    const char *given = environment("AWS_REGION");
    given = given ? given : environment("AWS_DEFAULT_REGION");
    if (given && keep(region, 64, given, strlen(given)))
        return;
    if (!profile_key("region", region, 64) || !region[0])
        memcpy(region, "us-east-1", sizeof "us-east-1");
}
