/* bytes/remote/hub.c - models of the Hugging Face hub. */
#include "bytes/remote/hub.h"
#include "bytes/remote/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "hf://"
enum { TOKEN_BYTES = 512 };

/* What a name says. */
typedef struct parts {
    tn_text organisation, repository, revision, path;
} parts;

static bool split(const char *name, parts *p)
{
    const char *at = name + strlen(PREFIX), *slash = strchr(at, '/');
    if (!slash)
        return false;
    p->organisation = (tn_text){ at, (size_t)(slash - at) };
    at = slash + 1;
    size_t n = strcspn(at, "/"), repository = strcspn(at, "@/");
    p->repository = (tn_text){ at, repository };
    p->revision = (tn_text){ "main", 4 };
    if (repository < n)
        p->revision = (tn_text){ at + repository + 1, n - repository - 1 };
    p->path = (tn_text){ at + n + (at[n] == '/'), strlen(at + n + (at[n] == '/')) };
    return p->organisation.len && p->repository.len && p->revision.len;
}

tn_status tn_hub_url(const char *name, const char *endpoint, tn_buf *url, tn_error *err)
{
    parts p;
    if (!split(name, &p) || !p.path.len)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected hf://ORG/REPO[@REVISION]/PATH");
    size_t n = strlen(endpoint);
    while (n && endpoint[n - 1] == '/')
        n--;
    tn_buf_put(url, endpoint, n);
    tn_buf_putc(url, '/');
    tn_url_put(url, p.organisation, "");
    tn_buf_putc(url, '/');
    tn_url_put(url, p.repository, "");
    tn_buf_puts(url, "/resolve/");
    tn_url_put(url, p.revision, "%");           /* a name with a slash is written as refs%2Fpr%2F1 */
    tn_buf_putc(url, '/');
    tn_url_put(url, p.path, "/");
    tn_buf_putc(url, '\0');
    return url->bad ? tn_fail_nomem(err) : TN_OK;
}

/* The token of HF_TOKEN, or of the file that the hub's own tools write. */
static bool find_token(char token[TOKEN_BYTES])
{
    const char *given = getenv("HF_TOKEN"), *path = getenv("HF_TOKEN_PATH"), *home = getenv("HF_HOME");
    char file[4096];
    if (given && *given && strlen(given) < TOKEN_BYTES) {
        memcpy(token, given, strlen(given) + 1);
    } else {
        if (path && *path)
            snprintf(file, sizeof file, "%s", path);
        else if (home && *home)
            snprintf(file, sizeof file, "%s/token", home);
        else
            snprintf(file, sizeof file, "%s/.cache/huggingface/token", getenv("HOME") ? getenv("HOME") : "");
        FILE *f = fopen(file, "re");
        if (!f || !fgets(token, TOKEN_BYTES, f))
            token[0] = '\0';
        if (f)
            fclose(f);
    }
    token[strcspn(token, " \t\r\n")] = '\0';
    return token[0] != '\0';
}

static tn_status resolve(const char *name, tn_target *target, tn_error *err)
{
    const char *endpoint = getenv("HF_ENDPOINT");
    tn_buf url = { 0 };
    tn_url parsed;
    endpoint = endpoint && *endpoint ? endpoint : "https://huggingface.co";
    tn_status status = tn_hub_url(name, endpoint, &url, err);
    if (!status)
        status = tn_url_parse((char *)url.data, &parsed, err);
    if (!status && !(target->url = strdup((char *)url.data)))
        status = tn_fail_nomem(err);
    tn_buf_free(&url);
    return status;
}

static tn_exchange *get(const tn_target *target, tn_error *err)
{
    char token[TOKEN_BYTES], line[TOKEN_BYTES + 40];
    tn_exchange *x = tn_exchange_new("GET", target->url);
    if (!x) {
        tn_fail_nomem(err);
        return NULL;
    }
    if (find_token(token)) {
        snprintf(line, sizeof line, "Authorization: Bearer %s", token);
        x->secret = strdup(line);
        explicit_bzero(line, sizeof line);
    }
    explicit_bzero(token, sizeof token);
    return x;
}

const tn_scheme tn_scheme_hub = { .resolve = resolve, .get = get, .follows = true };
