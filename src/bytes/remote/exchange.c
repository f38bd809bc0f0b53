/* bytes/remote/exchange.c - the thread of transfers, and the tries of each request. */
#include "bytes/remote/exchange.h"
#include "base/random.h"
#include "bytes/remote/blocks.h"
#include "bytes/remote/curl_library.h"
#include "bytes/remote/retry.h"
#include "bytes/remote/url.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/version.h>
#include <time.h>

enum {
    MOST_REDIRECTS = 5,
    PROBLEM_BYTES = 64 << 10,   /* of a reply that is not good, to read its reason in */
    MOST_IGNORED = 1 << 20,     /* bytes of a body that goes nowhere: more of it ends the transfer */
    MOST_HEADER = 256 << 10,
    SLOWEST = 1000,             /* bytes per second: slower is as good as nothing */
    USUAL_PATIENCE = 20,
    MORE_PATIENCE = 15,         /* times the usual, where the server may take long */
    USUAL_PARALLEL = 8,
    MOST_CONNECTIONS = 32
};

/* Everything below `lock` is protected by it, but for `multi` and what libcurl has. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    pthread_t       thread;
    CURLM          *multi;
    tn_exchange    *list;       /* all that are sent and not done */
    unsigned        users, generation;
    bool            ends;
    uint64_t        dice;
} transfers = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static const tn_curl_table *curl;

void tn_remote_lock(void)   { pthread_mutex_lock(&transfers.lock); }
void tn_remote_unlock(void) { pthread_mutex_unlock(&transfers.lock); }
void tn_remote_wait(void)   { pthread_cond_wait(&transfers.changed, &transfers.lock); }
void tn_remote_tell(void)   { pthread_cond_broadcast(&transfers.changed); }

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A number from the environment, from 1 to `most`; anything else is the usual one. */
static unsigned setting(const char *name, unsigned usual, unsigned most)
{
    const char *text = getenv(name);
    unsigned long value = text ? strtoul(text, NULL, 10) : 0;
    return value >= 1 && value <= most ? (unsigned)value : usual;
}

unsigned tn_remote_parallel(void)
{
    return setting("TENON_REMOTE_PARALLEL", USUAL_PARALLEL, MOST_CONNECTIONS);
}

/* ---- callbacks of libcurl ---- */

static size_t stop(tn_exchange *x, tn_status status, const char *why)
{
    x->refused = why;
    x->refused_as = status;
    return 0;
}

static size_t take_header(char *line, size_t one, size_t n, void *context)
{
    tn_exchange *x = context;
    (void)one;
    x->header_bytes += n;
    if (x->header_bytes > MOST_HEADER)
        return stop(x, TN_ERR_IO, "the header of the server's reply does not end");
    tn_reply_line(&x->reply, line, n);
    return n;
}

static bool is_good(const tn_reply *r) { return r->status >= 200 && r->status <= 299; }

/* Before the first byte of a body that is good: whether it is what was asked for.  Not being able to send
 * ranges is noticed here, not after all bytes. */
static size_t check_body(tn_exchange *x, size_t n)
{
    const tn_reply *r = &x->reply;
    x->is_whole = r->status != 206;
    if (r->is_encoded)
        return stop(x, TN_ERR_IO, "the server sent the data compressed, which was not asked for");
    if (x->is_ranged && !x->is_whole && (!r->has_range || r->first != x->from + x->got))
        return stop(x, TN_ERR_IO, "the server sent another range than that asked for");
    if (x->is_ranged && x->is_whole && (!x->is_first || (r->has_length && r->length > x->room)))
        return stop(x, TN_ERR_IO, "the server sends whole files only, no ranges of them: "
                    "download it and use the copy");
    return n;
}

/* A body that goes nowhere, but for the reason in it. */
static size_t ignore_body(tn_exchange *x, const char *bytes, size_t n)
{
    if (x->problem.size < PROBLEM_BYTES)
        tn_buf_put(&x->problem, bytes, n);
    x->ignored += n;
    if (x->ignored > MOST_IGNORED)
        return stop(x, TN_ERR_IO, "the server answered with an error whose text does not end");
    return n;
}

static size_t take_body(char *bytes, size_t one, size_t n, void *context)
{
    tn_exchange *x = context;
    (void)one;
    if (!is_good(&x->reply) || !x->to)
        return ignore_body(x, bytes, n);
    if (x->got == x->got_before && !check_body(x, 1))
        return 0;
    if (n > x->room - x->got && x->is_ranged && x->is_whole)
        return stop(x, TN_ERR_IO, "the server sends whole files only, no ranges of them: "
                    "download it and use the copy");
    if (n > x->room - x->got)
        return stop(x, TN_ERR_IO, "the server sent more bytes than it was asked for");
    memcpy(x->to + x->got, bytes, n);
    x->got += n;
    return n;
}

/* ---- one try ---- */

static bool add_line(tn_exchange *x, const char *line)
{
    struct curl_slist *lines = curl->curl_slist_append(x->lines, line);
    if (lines)
        x->lines = lines;
    return lines != NULL;
}

static bool add_lines(tn_exchange *x)
{
    char range[80];
    bool good = !x->headers.bad && add_line(x, "Expect:");
    for (size_t at = 0; good && at < x->headers.size; at += strlen((char *)x->headers.data + at) + 1)
        good = add_line(x, (char *)x->headers.data + at);
    if (good && x->secret)
        good = add_line(x, x->secret);
    if (good && x->is_ranged) {
        snprintf(range, sizeof range, "Range: bytes=%llu-%llu", (unsigned long long)(x->from + x->got),
                 (unsigned long long)(x->from + x->room - 1));
        good = add_line(x, range);
    }
    return good;
}

static bool set_text(tn_exchange *x, CURLoption option, const char *text)
{
    return curl->curl_easy_setopt(x->easy, option, text) == CURLE_OK;
}

static bool set_number(tn_exchange *x, CURLoption option, long number)
{
    return curl->curl_easy_setopt(x->easy, option, number) == CURLE_OK;
}

/* Who vouches for servers: what these name, else what the system trusts. */
static bool set_authorities(tn_exchange *x)
{
    static const char *const names[] = { "CURL_CA_BUNDLE", "SSL_CERT_FILE", "AWS_CA_BUNDLE" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *file = getenv(names[i]);
        if (file && *file)
            return set_text(x, CURLOPT_CAINFO, file);
    }
    return true;
}

/* What every transfer has in common. */
static bool set_usual(tn_exchange *x)
{
    long usual = x->patience ? x->patience : setting("TENON_REMOTE_TIMEOUT", USUAL_PATIENCE, 3600);
    long patience = x->is_final ? MORE_PATIENCE * usual : usual;
    if (!set_authorities(x) || (x->is_direct && !set_text(x, CURLOPT_NOPROXY, "*")))
        return false;
    return set_text(x, CURLOPT_PROTOCOLS_STR, "http,https") && set_number(x, CURLOPT_FOLLOWLOCATION, 0) &&
           set_number(x, CURLOPT_FRESH_CONNECT, x->is_final) &&
           set_number(x, CURLOPT_NOSIGNAL, 1) && set_number(x, CURLOPT_NOPROGRESS, 1) &&
           set_number(x, CURLOPT_CONNECTTIMEOUT, usual) &&
           set_number(x, CURLOPT_LOW_SPEED_LIMIT, SLOWEST) &&
           set_number(x, CURLOPT_LOW_SPEED_TIME, patience) && set_number(x, CURLOPT_BUFFERSIZE, 256 << 10) &&
           set_number(x, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1) &&
           set_number(x, CURLOPT_PATH_AS_IS, 1) &&
           set_number(x, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS) &&
           set_number(x, CURLOPT_NETRC, x->secret ? CURL_NETRC_IGNORED : CURL_NETRC_OPTIONAL);
}

static bool set_body(tn_exchange *x)
{
    if (strcmp(x->method, "GET") == 0)
        return set_number(x, CURLOPT_HTTPGET, 1);
    if (strcmp(x->method, "HEAD") == 0)
        return set_number(x, CURLOPT_NOBODY, 1);
    curl->curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_size);
    curl->curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, x->body ? x->body : "");
    return set_text(x, CURLOPT_CUSTOMREQUEST, x->method);
}

static bool set_up(tn_exchange *x)
{
    char agent[40];
    snprintf(agent, sizeof agent, "tenon/%s", tn_version());
    x->easy = curl->curl_easy_init();
    if (!x->easy || !add_lines(x) || !set_usual(x) || !set_body(x))
        return false;
    curl->curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->lines);
    curl->curl_easy_setopt(x->easy, CURLOPT_HEADERFUNCTION, take_header);
    curl->curl_easy_setopt(x->easy, CURLOPT_HEADERDATA, x);
    curl->curl_easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, take_body);
    curl->curl_easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
    curl->curl_easy_setopt(x->easy, CURLOPT_PRIVATE, x);
    curl->curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->reason);
    return set_text(x, CURLOPT_USERAGENT, agent) && set_text(x, CURLOPT_URL, x->url);
}

static void take_down(tn_exchange *x)
{
    if (x->is_running)
        curl->curl_multi_remove_handle(transfers.multi, x->easy);
    if (x->easy)
        curl->curl_easy_cleanup(x->easy);
    curl->curl_slist_free_all(x->lines);
    x->easy = x->lines = NULL;
    x->is_running = false;
}

/* ---- what became of a try ---- */

static void finish(tn_exchange *x, tn_status status)
{
    x->status = status;
    x->done = true;
    x->easy = x->lines = NULL;          /* freed by whoever calls */
    for (tn_exchange **at = &transfers.list; *at; at = &(*at)->next)
        if (*at == x) {
            *at = x->next;
            break;
        }
    if (x->finished)
        x->finished(x);
    tn_remote_tell();
}

__attribute__((format(printf, 3, 4)))
static void fail(tn_exchange *x, tn_status status, const char *format, ...)
{
    char text[400], tries[40] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (x->failures > 1)
        snprintf(tries, sizeof tries, " (%u tries)", x->failures);
    uint64_t at = x->is_ranged && !x->is_first ? x->from + x->got : TN_NO_OFFSET;
    finish(x, tn_fail_at(&x->err, status, at, "%s%s", text, tries));
}

/* The server's own word for it, where it gives one. */
static void fail_status(tn_exchange *x)
{
    tn_text xml = { (const char *)x->problem.data, x->problem.size };
    char code[sizeof x->reply.code];
    if (!x->problem.bad && tn_xml_text(xml, "Code", code, sizeof code))
        tn_escape(x->reply.code, sizeof x->reply.code, code, strlen(code));
    const char *word = x->reply.code;
    if (!*word && x->reply.status == 404)
        word = "not found";
    else if (!*word && (x->reply.status == 401 || x->reply.status == 403))
        word = "access denied";
    fail(x, TN_ERR_IO, "the server answered %d%s%s", x->reply.status, *word ? " " : "", word);
}

static void try_again(tn_exchange *x, unsigned delay)
{
    x->due = now_ms() + delay;
    x->easy = x->lines = NULL;
    x->problem.size = 0;
    x->header_bytes = x->ignored = 0;
    x->reason[0] = '\0';
    x->reply = (tn_reply){ 0 };
}

/* Another try, if there may be one. */
static bool retry(tn_exchange *x)
{
    uint64_t now = now_ms();
    if (!x->failures++)
        x->gave_up_at = now + TN_REMOTE_PATIENCE * 1000;
    unsigned delay = tn_retry_delay(x->failures, (uint32_t)tn_random_at(now, transfers.dice++), &x->reply);
    if (x->once || x->failures >= TN_REMOTE_TRIES || now + delay > x->gave_up_at)
        return false;
    if (x->is_whole || x->is_first || !x->is_ranged)
        x->got = 0;             /* else the rest is asked for; of an object whose version is not known, all */
    try_again(x, delay);
    return true;
}

static void redirect(tn_exchange *x, const char *to)
{
    if (!to || !*to) {
        fail(x, TN_ERR_IO, "the server answered %d without a place to go to", x->reply.status);
        return;
    }
    bool safe = tn_begins_with(to, "https://") ||
                (tn_begins_with(to, "http://") && tn_begins_with(x->url, "http://"));
    if (!safe || ++x->redirects > MOST_REDIRECTS) {
        fail(x, TN_ERR_IO, safe ? "the server redirects more than %d times"
                                : "the server redirects to another kind of URL (%d redirects are followed, "
                                  "none from https to http)", MOST_REDIRECTS);
        return;
    }
    if (tn_exchange_move(x, to))
        try_again(x, 0);
    else
        finish(x, tn_fail_nomem(&x->err));
}

/* All bytes of the range came, or all that there are. */
static bool is_complete(const tn_exchange *x)
{
    const tn_reply *r = &x->reply;
    if (!x->to)
        return true;
    if (!x->is_ranged || x->is_whole)
        return !r->has_length || strcmp(x->method, "HEAD") == 0 || x->got == r->length;
    return x->got == x->room || (r->has_range && r->has_total && r->last + 1 == r->total &&
                                 x->from + x->got == r->total);
}

static void settle_reply(tn_exchange *x)
{
    char *to = NULL;
    if (x->is_first && is_good(&x->reply))
        x->is_whole = x->reply.status != 206;       /* also of a file without a byte */
    if (is_good(&x->reply) && is_complete(x)) {
        finish(x, TN_OK);
    } else if (is_good(&x->reply)) {
        if (!retry(x))
            fail(x, TN_ERR_IO, "the server sent fewer bytes than it was asked for");
    } else if (x->follows && x->reply.status >= 301 && x->reply.status <= 308 && x->reply.status != 304) {
        curl->curl_easy_getinfo(x->easy, CURLINFO_REDIRECT_URL, &to);
        redirect(x, to);
    } else if (!tn_retry_helps_status(x->reply.status) || !retry(x)) {
        fail_status(x);
    }
}

/* A try has ended; under the lock. */
static void settle(tn_exchange *x, CURLcode code)
{
    if (x->is_cancelled)
        fail(x, TN_ERR_CANCELLED, "cancelled");
    else if (x->refused)
        fail(x, x->refused_as, "%s", x->refused);
    else if (code == CURLE_OK && x->reply.status)
        settle_reply(x);
    else if (code == CURLE_OK || !tn_retry_helps_transfer((int)code) || !retry(x))
        fail(x, code == CURLE_OUT_OF_MEMORY ? TN_ERR_NOMEM : TN_ERR_IO, "cannot be reached: %s",
             x->reason[0] ? x->reason : curl->curl_easy_strerror(code));
}

/* ---- the thread ---- */

/* Begins what is due, ends what was cancelled; returns the milliseconds until the next is due. */
static int begin_due(void)
{
    uint64_t now = now_ms(), next = now + 1000;
    tn_remote_lock();
    for (tn_exchange *x = transfers.list, *following; x; x = following) {
        following = x->next;
        if (x->is_cancelled) {
            take_down(x);
            settle(x, CURLE_OK);
        } else if (!x->is_running && x->due <= now) {
            x->got_before = x->got;
            x->is_running = set_up(x) && curl->curl_multi_add_handle(transfers.multi, x->easy) == CURLM_OK;
            if (!x->is_running) {
                take_down(x);
                finish(x, tn_fail_nomem(&x->err));
            }
        } else if (!x->is_running && x->due < next) {
            next = x->due;
        }
    }
    tn_remote_unlock();
    return (int)(next - now);
}

static void take_ended(void)
{
    int left;
    for (CURLMsg *message; (message = curl->curl_multi_info_read(transfers.multi, &left)) != NULL;) {
        tn_exchange *x = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl->curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &x);
        /* Whoever waits may free it as soon as it is done: the handle goes when its reply was looked at. */
        tn_remote_lock();
        curl->curl_multi_remove_handle(transfers.multi, x->easy);
        x->is_running = false;
        CURL *easy = x->easy;
        struct curl_slist *lines = x->lines;
        settle(x, code);
        if (easy) {
            curl->curl_easy_cleanup(easy);
            curl->curl_slist_free_all(lines);
        }
        tn_remote_unlock();
    }
}

static void *run_transfers(void *nothing)
{
    bool ends = false;
    while (!ends) {
        int wait = begin_due(), running;
        curl->curl_multi_perform(transfers.multi, &running);
        take_ended();
        curl->curl_multi_poll(transfers.multi, NULL, 0, wait, NULL);
        tn_remote_lock();
        ends = transfers.ends;
        tn_remote_unlock();
    }
    return nothing;
}

/* ---- users ---- */

static void before_fork(void) { tn_remote_lock(); }
static void after_fork(void)  { tn_remote_unlock(); }

/* The thread is the parent's: what the child has of it is forgotten, and its connections are not touched. */
static void in_child(void)
{
    pthread_mutex_init(&transfers.lock, NULL);
    pthread_cond_init(&transfers.changed, NULL);
    transfers.list = NULL;
    transfers.multi = NULL;
    transfers.users = 0;
    transfers.ends = false;
    transfers.generation++;
    tn_blocks_forget_all();
}

static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

static tn_status start(tn_error *err)
{
    transfers.multi = curl->curl_multi_init();
    TN_NEED(transfers.multi, err);
    curl->curl_multi_setopt(transfers.multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)MOST_CONNECTIONS);
    curl->curl_multi_setopt(transfers.multi, CURLMOPT_MAXCONNECTS, (long)MOST_CONNECTIONS);
    transfers.ends = false;
    int problem = pthread_create(&transfers.thread, NULL, run_transfers, NULL);
    if (problem) {
        curl->curl_multi_cleanup(transfers.multi);
        return tn_fail_errno(err, problem, "cannot start a thread");
    }
    return TN_OK;
}

tn_status tn_transfers_use(tn_error *err)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    const tn_curl_table *loaded;
    TN_TRY(tn_curl_load(&loaded, err));
    pthread_once(&watched, watch_forks);
    tn_remote_lock();
    while (transfers.ends)      /* the last user is just leaving */
        tn_remote_wait();
    if (!transfers.users)       /* else the thread of transfers reads it, without the lock */
        curl = loaded;
    tn_status status = transfers.users ? TN_OK : start(err);
    transfers.users += !status;
    tn_remote_unlock();
    return status;
}

void tn_transfers_leave(void)
{
    tn_remote_lock();
    bool last = transfers.users && --transfers.users == 0;
    transfers.ends = last;
    tn_remote_unlock();
    if (!last)
        return;
    curl->curl_multi_wakeup(transfers.multi);
    pthread_join(transfers.thread, NULL);
    curl->curl_multi_cleanup(transfers.multi);
    tn_remote_lock();
    tn_blocks_drop_room();
    transfers.multi = NULL;
    transfers.ends = false;
    tn_remote_tell();
    tn_remote_unlock();
}

unsigned tn_transfers_generation(void)
{
    tn_remote_lock();
    unsigned generation = transfers.generation;
    tn_remote_unlock();
    return generation;
}

/* ---- one exchange ---- */

tn_exchange *tn_exchange_new(const char *method, const char *url)
{
    tn_exchange *x = calloc(1, sizeof *x);
    if (x)
        *x = (tn_exchange){ .method = method, .url = strdup(url), .err.offset = TN_NO_OFFSET };
    if (x && !x->url) {
        free(x);
        return NULL;
    }
    return x;
}

void tn_exchange_header(tn_exchange *x, const char *format, ...)
{
    char line[8192];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof line)
        tn_buf_put(&x->headers, line, (size_t)n + 1);
    else
        x->headers.bad = true;
}

bool tn_exchange_move(tn_exchange *x, const char *url)
{
    char *copy = strdup(url);
    if (!copy)
        return false;
    if (x->secret && !tn_url_same_origin(x->url, copy)) {
        explicit_bzero(x->secret, strlen(x->secret));
        free(x->secret);
        x->secret = NULL;
    }
    free(x->url);
    x->url = copy;
    return true;
}

void tn_exchange_send(tn_exchange *x)
{
    x->next = transfers.list;
    transfers.list = x;
    curl->curl_multi_wakeup(transfers.multi);
}

tn_status tn_exchange_run(tn_exchange *x, tn_error *err)
{
    tn_remote_lock();
    tn_exchange_send(x);
    while (!x->done)
        tn_remote_wait();
    tn_remote_unlock();
    if (x->status && err)
        *err = x->err;
    return x->status;
}

void tn_exchange_cancel(tn_exchange *x)
{
    x->is_cancelled = true;
    curl->curl_multi_wakeup(transfers.multi);
}

void tn_exchange_free(tn_exchange *x)
{
    if (!x)
        return;
    tn_buf_free(&x->headers);
    tn_buf_free(&x->problem);
    if (x->secret)
        explicit_bzero(x->secret, strlen(x->secret));
    free(x->secret);
    free(x->url);
    free(x);
}
