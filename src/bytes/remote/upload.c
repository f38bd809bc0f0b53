/* bytes/remote/upload.c - an object of S3 that appears whole or not at all. */
#include "bytes/remote/upload.h"
#include "base/vector.h"
#include "bytes/checksum.h"
#include "bytes/libcrypto.h"
#include "bytes/remote/credentials.h"
#include "bytes/remote/s3.h"
#include "bytes/remote/url.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GONE_TEXT "the store does not have the upload any more in which this object was being made: " \
                  "somebody, or a rule of the bucket, has ended it.  Abandon the work and begin again"
#define PART_BYTES ((uint64_t)16 << 20)
enum { PARTS_OF_A_SIZE = 1000, MOST_PARTS = 10000, REPLY_BYTES = 64 << 10, BEHIND = 2, COMPLETE_TRIES = 4 };

typedef enum part_state { PART_NEW, PART_SENDING, PART_SENT, PART_FAILED } part_state;

typedef struct part {
    part_state state;
    bool       is_dirty;        /* written to since it was sent */
    bool       is_recorded;     /* sent by any process, as its record says */
    char       etag[TN_UPLOAD_ETAG];
} part;

/* A part on its way. */
typedef struct sending {
    tn_upload *upload;
    unsigned   number;
    void      *map;             /* of the file, from the beginning of a page... */
    size_t     before;          /* ...so many bytes before the part */
    size_t     size;            /* of the part */
} sending;

/* What threads share is protected by the lock of exchange.h. */
struct tn_upload {
    tn_s3_object object;
    bool         replace;
    bool         is_used;       /* the thread of transfers */
    char         id[TN_UPLOAD_ID];      /* of the upload; "": not begun */
    bool         has_looked;    /* whether there is an object of this name */
    bool         is_done;       /* the object is there */
    char         expected[TN_UPLOAD_ETAG];      /* that an earlier process was about to give it, or "" */
    bool         is_shared;     /* other processes send parts of it too: it is not ended here */
    tn_sink_part *cuts;         /* where its parts begin, if not at the usual places; or NULL */
    size_t       ncuts;
    uint64_t     rest;          /* bytes of each part after the last of these begins */
    tn_sink_coming_fn coming;   /* told the ETag before the object appears, or NULL */
    void        *context;       /* of that */
    part        *parts;
    size_t       nparts, cap;
    uint64_t     highest;       /* end of what was written */
    unsigned     sending;
    bool         is_beginning;  /* some thread begins the upload */
    bool         ends;          /* nothing more is sent */
    tn_error     failure;       /* of the last part that failed */
    uint8_t      reply[REPLY_BYTES];
};

uint64_t tn_upload_part_begin(unsigned i)
{
    uint64_t begin = 0, size = PART_BYTES;
    for (; i > PARTS_OF_A_SIZE; i -= PARTS_OF_A_SIZE, size *= 2)
        begin += PARTS_OF_A_SIZE * size;
    return begin + i * size;
}

static uint64_t begin_of(const tn_upload *u, unsigned i)
{
    if (!u->ncuts)
        return tn_upload_part_begin(i);
    size_t last = u->ncuts - 1;
    return i <= last ? u->cuts[i].begin : u->cuts[last].begin + (i - last) * u->rest;
}

/* The part that has byte `offset`. */
static unsigned part_of(const tn_upload *u, uint64_t offset)
{
    unsigned low = 0, high = MOST_PARTS;
    while (high - low > 1) {
        unsigned middle = low + (high - low) / 2;
        if (begin_of(u, middle) <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- requests ---- */

/* Sends a request and waits, with new credentials or in another region if it is refused. */
static tn_status ask(tn_upload *u, const tn_s3_request *r, const char *condition, tn_exchange **done,
                     tn_error *err)
{
    tn_exchange *x = NULL;
    for (int tries = 0; tries < 3; tries++) {
        tn_exchange_free(x);
        *done = x = tn_s3_exchange(&u->object, r, err);
        if (!x)
            return err->status;
        if (condition)
            tn_exchange_header(x, "%s", condition);
        x->to = u->reply;
        x->room = sizeof u->reply;
        tn_status status = tn_exchange_run(x, err);
        int answer = x->reply.status;
        bool refused = answer == 400 || answer == 301 || answer == 401 || answer == 403;
        if (!status || !refused || !tn_s3_mend(&u->object, x))
            return status;
    }
    return err->status;
}

static tn_text reply_text(const tn_upload *u, const tn_exchange *x)
{
    return (tn_text){ (const char *)u->reply, x->got };
}

static tn_status cannot_write(tn_status status, tn_error *err)
{
    tn_error why = *err;
    return tn_fail(err, status, "cannot write: %s (nothing was replaced)", why.text);
}

static tn_status already_exists(tn_error *err)
{
    return tn_refuse(err, TN_ERR_EXISTS, TN_REASON_REPLACE, NULL, "already exists");
}

/* Asks for the object's size; *there: it exists. */
static tn_status look(tn_upload *u, bool *there, tn_reply *reply, tn_error *err)
{
    tn_exchange *x = NULL;
    tn_status status = ask(u, &(tn_s3_request){ .method = "HEAD", .query = "" }, NULL, &x, err);
    *there = !status;
    if (x)
        *reply = x->reply;
    if (status && x && x->reply.status == 404)
        status = TN_OK;
    tn_exchange_free(x);
    return status;
}

/* ---- opening ---- */

static tn_status look_first(tn_upload *u, tn_error *err)
{
    bool there = false;
    tn_reply reply;
    if (u->replace || u->has_looked)
        return TN_OK;
    tn_status status = look(u, &there, &reply, err);
    u->has_looked = !status;
    if (status)
        return cannot_write(status, err);
    return there ? already_exists(err) : TN_OK;
}

static tn_status open_object(tn_upload *u, const char *url, tn_error *err)
{
    TN_TRY(tn_s3_open(url, &u->object, err));
    if (!u->object.key[0] || u->object.version || tn_ends_with(u->object.key, "/"))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected s3://BUCKET/KEY, the name of an object to write");
    return TN_OK;
}

tn_status tn_upload_open(const char *url, bool replace, bool looks, tn_upload **upload, tn_error *err)
{
    tn_error own;
    err = err ? err : &own;
    if (!tn_begins_with(url, "s3://"))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "only s3:// URLs can be written: write a file and upload it");
    tn_upload *u = calloc(1, sizeof *u);
    TN_NEED(u, err);
    u->replace = replace;
    tn_status status = tn_transfers_use(err);
    u->is_used = !status;
    if (!status)
        status = open_object(u, url, err);
    if (!status && looks)
        status = look_first(u, err);
    if (status)
        tn_upload_close(u);
    else
        *upload = u;
    return status;
}

/* ---- parts ---- */

/* Makes room for the parts up to number n; the lock is held. */
static bool have_parts(tn_upload *u, size_t n)
{
    while (u->nparts < n) {
        if (!TN_GROW(u->parts, u->nparts, u->cap))
            return false;
        u->parts[u->nparts++] = (part){ .state = PART_NEW };
    }
    return true;
}

static void free_sending(sending *s)
{
    munmap(s->map, s->before + s->size);
    free(s);
}

static void part_is_sent(tn_exchange *x)
{
    sending *s = x->owner;
    tn_upload *u = s->upload;
    part *p = &u->parts[s->number];
    u->sending--;
    p->state = PART_FAILED;
    if (x->status && x->reply.status == 404) {
        tn_fail(&u->failure, TN_ERR_IO, GONE_TEXT);
    } else if (x->status) {
        u->failure = x->err;
    } else if (!tn_reply_is_strong(&x->reply) || strlen(x->reply.etag) >= sizeof p->etag) {
        tn_fail(&u->failure, TN_ERR_IO, "the store gave no ETag for a part");
    } else {
        p->state = PART_SENT;
        memcpy(p->etag, x->reply.etag, strlen(x->reply.etag) + 1);
    }
    free_sending(s);
    tn_exchange_free(x);
}

/* "AAAAAA==": a crc32c, most significant byte first. */
static void to_base64(uint32_t crc, char text[9])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t bits = (uint64_t)crc << 4;         /* 36 bits: six letters */
    for (int i = 5; i >= 0; i--, bits >>= 6)
        text[i] = letters[bits & 63];
    memcpy(text + 6, "==", 3);
}

static tn_exchange *part_request(tn_upload *u, const sending *s, tn_error *err)
{
    char crc[9];
    tn_buf query = { 0 };
    tn_exchange *x = NULL;
    const uint8_t *bytes = (const uint8_t *)s->map + s->before;
    to_base64(tn_crc32c(0, bytes, s->size), crc);
    tn_buf_printf(&query, "partNumber=%u&uploadId=", s->number + 1);
    tn_url_put(&query, (tn_text){ u->id, strlen(u->id) }, "");
    tn_buf_putc(&query, '\0');
    if (query.bad)
        tn_fail_nomem(err);
    else
        x = tn_s3_exchange(&u->object, &(tn_s3_request){ .method = "PUT", .query = (char *)query.data,
                           .body = bytes, .body_size = s->size, .crc32c = crc }, err);
    tn_buf_free(&query);
    return x;
}

/* Sends bytes [begin, end) of the file as a part, which is marked as sending. */
static tn_status send_part(tn_upload *u, int fd, unsigned number, uint64_t end, tn_error *err)
{
    uint64_t begin = begin_of(u, number);
    TN_TRY(tn_credentials_find(false, err));
    sending *s = malloc(sizeof *s);
    TN_NEED(s, err);
    size_t before = (size_t)(begin % (uint64_t)sysconf(_SC_PAGESIZE));
    *s = (sending){ u, number, NULL, before, (size_t)(end - begin) };
    s->map = mmap(NULL, before + s->size, PROT_READ, MAP_SHARED, fd, (off_t)(begin - before));
    if (s->map == MAP_FAILED) {
        free(s);
        return tn_fail_errno(err, errno, "cannot map a temporary file");
    }
    tn_exchange *x = part_request(u, s, err);
    if (!x) {
        free_sending(s);
        return err->status;
    }
    x->owner = s;
    x->finished = part_is_sent;
    tn_remote_lock();
    tn_exchange_send(x);
    tn_remote_unlock();
    return TN_OK;
}

/* Marks a part as sending; the lock is held. */
static void claim(tn_upload *u, unsigned number)
{
    u->parts[number].state = PART_SENDING;
    u->parts[number].is_dirty = false;
    u->sending++;
}

static void unclaim(tn_upload *u, unsigned number, const tn_error *why)
{
    tn_remote_lock();
    u->parts[number].state = PART_FAILED;
    u->failure = *why;
    u->sending--;
    tn_remote_tell();
    tn_remote_unlock();
}

/* Begins the upload. */
static tn_status begin(tn_upload *u, tn_error *err)
{
    tn_exchange *x = NULL;
    const tn_s3_request request = { .method = "POST", .query = "uploads=" };
    TN_TRY(look_first(u, err));
    tn_status status = ask(u, &request, NULL, &x, err);
    if (!status && !tn_xml_text(reply_text(u, x), "UploadId", u->id, sizeof u->id))
        status = tn_fail(err, TN_ERR_IO, "the store gave no id for an upload");
    tn_exchange_free(x);
    return status;
}

static void end_upload(tn_upload *u)
{
    tn_buf query = { 0 };
    tn_error ignored;
    tn_exchange *x = NULL;
    tn_buf_puts(&query, "uploadId=");
    tn_url_put(&query, (tn_text){ u->id, strlen(u->id) }, "");
    tn_buf_putc(&query, '\0');
    if (!query.bad)
        ask(u, &(tn_s3_request){ .method = "DELETE", .query = (char *)query.data }, NULL, &x, &ignored);
    tn_exchange_free(x);
    tn_buf_free(&query);
}

/* ---- while it is written ---- */

/* The next part that is likely complete: new, not the first, well behind what is written.  Claims it. */
static bool next_complete(tn_upload *u, unsigned *number)
{
    for (unsigned i = 1; i < u->nparts && i + BEHIND < MOST_PARTS; i++) {
        if (begin_of(u, i + 1 + BEHIND) > u->highest)
            return false;
        if (u->parts[i].state == PART_NEW) {
            *number = i;
            claim(u, i);
            return true;
        }
    }
    return false;
}

void tn_upload_wrote(tn_upload *u, int fd, uint64_t offset, uint64_t n)
{
    tn_error err;
    unsigned number;
    if (!n || u->ncuts)
        return;
    tn_remote_lock();
    unsigned first = part_of(u, offset), last = part_of(u, offset + n - 1);
    bool good = have_parts(u, (size_t)last + 1);
    for (unsigned i = first; good && i <= last; i++)
        u->parts[i].is_dirty = true;
    u->highest = u->highest > offset + n ? u->highest : offset + n;
    bool sends = good && !u->ends && !u->is_beginning && u->sending < tn_remote_parallel() / 2 + 1 &&
                 next_complete(u, &number);
    bool begins = sends && !u->id[0];
    u->is_beginning |= begins;
    tn_remote_unlock();
    tn_status status = begins ? begin(u, &err) : TN_OK;
    if (begins) {
        tn_remote_lock();
        u->is_beginning = false;
        u->ends |= status != TN_OK;     /* publishing tries again, and tells */
        tn_remote_unlock();
    }
    if (sends && !status)
        status = send_part(u, fd, number, begin_of(u, number + 1), &err);
    if (sends && status)
        unclaim(u, number, &err);
}

/* ---- publishing ---- */

/* Whether a part is among those of a piece, or of all. */
static bool is_of(const tn_upload *u, unsigned number, uint32_t piece)
{
    return piece == TN_NO_PIECE || (number < u->ncuts && u->cuts[number].piece == piece);
}

/* Sends those parts of a file of `size` bytes that are not sent as they are now, and waits for them. */
static tn_status send_rest(tn_upload *u, int fd, uint64_t size, uint32_t piece, tn_error *err)
{
    unsigned last = part_of(u, size - 1), number = 0;
    tn_status status = TN_OK;
    tn_remote_lock();
    if (!have_parts(u, (size_t)last + 1))
        status = tn_fail_nomem(err);
    while (!status && number <= last) {
        part *p = &u->parts[number];
        if (!is_of(u, number, piece) || (p->state == PART_SENT && !p->is_dirty)) {
            number++;
            continue;
        }
        if (p->state == PART_SENDING || u->sending >= tn_remote_parallel()) {
            tn_remote_wait();
            continue;
        }
        claim(u, number);
        uint64_t end = number == last ? size : begin_of(u, number + 1);
        tn_remote_unlock();
        status = send_part(u, fd, number, end, err);
        if (status)
            unclaim(u, number, err);
        tn_remote_lock();
        number++;
    }
    while (u->sending)
        tn_remote_wait();
    for (unsigned i = 0; i <= last && !status; i++)
        if (is_of(u, i, piece) && u->parts[i].state != PART_SENT) {
            *err = u->failure;
            status = err->status ? err->status : TN_ERR_IO;
        }
    tn_remote_unlock();
    return status;
}

static bool put_parts(const tn_upload *u, unsigned count, tn_buf *xml)
{
    tn_buf_puts(xml, "<CompleteMultipartUpload>");
    for (unsigned i = 0; i < count; i++)
        tn_buf_printf(xml, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", i + 1,
                      u->parts[i].etag);
    tn_buf_puts(xml, "</CompleteMultipartUpload>");
    return !xml->bad;
}

/* The reply to an earlier try may have been lost: whether the object is there as we made it. */
static bool was_completed(tn_upload *u, unsigned count, uint64_t size)
{
    char end[16];
    bool there = false;
    tn_reply r;
    tn_error ignored;
    snprintf(end, sizeof end, "-%u\"", count);
    return !look(u, &there, &r, &ignored) && there && r.has_length && r.length == size &&
           tn_ends_with(r.etag, end);
}

/* *again: another try may succeed.  *lost: it may have been completed, and the reply to that was lost. */
static tn_status complete_once(tn_upload *u, const tn_buf *xml, const char *query, bool *again, bool *lost,
                               tn_error *err)
{
    char code[64] = "";
    tn_exchange *x = NULL;
    const tn_s3_request request = { .method = "POST", .query = query, .body = xml->data,
                                    .body_size = xml->size, .is_final = true };
    tn_status status = ask(u, &request, u->replace ? NULL : "If-None-Match: *", &x, err);
    int answer = x ? x->reply.status : 0;
    *again = false;
    if (!status && tn_xml_text(reply_text(u, x), "Code", code, sizeof code)) {
        char shown[80];         /* 200 with an error: S3 does that */
        tn_escape(shown, sizeof shown, code, strlen(code));
        *again = true;
        status = tn_fail(err, TN_ERR_IO, "the store could not complete the upload: %s", shown);
    }
    *again |= x && x->failures && (answer == 404 || answer == 412);
    *lost = *again || (x && x->failures && answer == 0);
    if (status && answer == 404 && !*again)
        status = tn_fail(err, TN_ERR_IO, GONE_TEXT);
    if (status && answer == 412 && !*again)
        status = already_exists(err);
    tn_exchange_free(x);
    return status;
}

static tn_status complete(tn_upload *u, unsigned count, uint64_t size, tn_error *err)
{
    tn_buf xml = { 0 }, query = { 0 };
    tn_status status = TN_ERR_IO;
    bool again = true, lost;
    tn_buf_puts(&query, "uploadId=");
    tn_url_put(&query, (tn_text){ u->id, strlen(u->id) }, "");
    tn_buf_putc(&query, '\0');
    if (!put_parts(u, count, &xml) || query.bad)
        status = tn_fail_nomem(err);
    else
        for (int tries = 0; tries < COMPLETE_TRIES && status && again; tries++) {
            status = complete_once(u, &xml, (char *)query.data, &again, &lost, err);
            if (status && lost && was_completed(u, count, size))
                status = TN_OK;
        }
    tn_buf_free(&xml);
    tn_buf_free(&query);
    return status;
}

/* The reply to an earlier try may have been lost: whether the object has the bytes that were sent. */
static bool was_put(tn_upload *u, const void *bytes, size_t size)
{
    tn_error ignored;
    uint8_t *there = malloc(size + 1);
    tn_exchange *x = NULL;
    if (there)
        x = tn_s3_exchange(&u->object, &(tn_s3_request){ .method = "GET", .query = "" }, &ignored);
    bool same = false;
    if (x) {
        x->to = there;
        x->room = size + 1;
        same = !tn_exchange_run(x, &ignored) && x->got == size && memcmp(there, bytes, size) == 0;
    }
    tn_exchange_free(x);
    free(there);
    return same;
}

/* ---- the ETag that an object will have ---- */

/* Most stores take the MD5 of the bytes; of an object made of parts, that of the MD5s of the parts, and their
 * number.  Without MD5 it is not known. */
static bool put_md5(const void *bytes, size_t n, char hex[33])
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_MD_CTX *md5 = NULL;
    if (tn_crypto_begin(TN_CRYPTO_MD5, &md5, NULL) != TN_OK)
        return false;
    bool good = EVP_DigestUpdate(md5, bytes, n) == 1 && EVP_DigestFinal_ex(md5, sum, &size) == 1 &&
                size == 16;
    EVP_MD_CTX_free(md5);
    for (unsigned i = 0; i < 16 && good; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    return good;
}

/* Bytes that an ETag says in hexadecimal digits; false: it is no MD5. */
static bool take_md5(const char *etag, uint8_t sum[16])
{
    bool good = strlen(etag) == 34;
    for (unsigned i = 0; i < 16 && good; i++) {
        const char digits[3] = { etag[1 + 2 * i], etag[2 + 2 * i], '\0' };
        good = strspn(digits, "0123456789abcdef") == 2;
        sum[i] = good ? (uint8_t)strtoul(digits, NULL, 16) : 0;
    }
    return good;
}

static tn_status announce(const tn_upload *u, const void *bytes, size_t n, unsigned parts, tn_error *err)
{
    char hex[33], etag[60];
    if (!u->coming || !put_md5(bytes, n, hex))
        return TN_OK;
    snprintf(etag, sizeof etag, parts ? "\"%s-%u\"" : "\"%s\"", hex, parts);
    return u->coming(u->context, etag, err);
}

static tn_status announce_parts(const tn_upload *u, unsigned count, tn_error *err)
{
    tn_buf sums = { 0 };
    uint8_t sum[16];
    bool known = u->coming != NULL;
    for (unsigned i = 0; i < count && known; i++) {
        known = take_md5(u->parts[i].etag, sum);
        tn_buf_put(&sums, sum, sizeof sum);
    }
    tn_status status = known && !sums.bad ? announce(u, sums.data, sums.size, count, err) : TN_OK;
    tn_buf_free(&sums);
    return status;
}

/* ---- all at once, or part by part ---- */

/* All in one request. */
static tn_status put_small(tn_upload *u, int fd, uint64_t size, tn_error *err)
{
    char crc[9];
    tn_exchange *x = NULL;
    void *map = size ? mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0) : NULL;
    if (map == MAP_FAILED)
        return tn_fail_errno(err, errno, "cannot map a temporary file");
    to_base64(tn_crc32c(0, map, (size_t)size), crc);
    const tn_s3_request request = { .method = "PUT", .query = "", .body = map, .body_size = (size_t)size,
                                    .crc32c = crc, .is_final = true };
    tn_status status = announce(u, map ? map : "", (size_t)size, 0, err);
    if (!status)
        status = ask(u, &request, u->replace ? NULL : "If-None-Match: *", &x, err);
    bool exists = status && x && x->reply.status == 412;
    if (exists && x->failures && was_put(u, map ? map : "", (size_t)size))
        status = TN_OK;
    else if (exists)
        status = already_exists(err);
    tn_exchange_free(x);
    if (map)
        munmap(map, (size_t)size);
    return status;
}

/* Whether the object is the one that an earlier process was about to make. */
static bool is_there(tn_upload *u)
{
    bool there = false;
    tn_reply r;
    tn_error ignored;
    return !look(u, &there, &r, &ignored) && there && strcmp(r.etag, u->expected) == 0;
}

static tn_status publish(tn_upload *u, int fd, uint64_t size, tn_error *err)
{
    TN_TRY(tn_credentials_find(false, err));
    if (u->expected[0] && is_there(u))
        return TN_OK;
    if (!u->id[0] && size <= PART_BYTES)
        return put_small(u, fd, size, err);
    if (size > begin_of(u, MOST_PARTS))
        return tn_fail(err, TN_ERR_IO, "an object has at most %d parts, %" PRIu64 " bytes", MOST_PARTS,
                       begin_of(u, MOST_PARTS));
    if (!u->id[0])
        TN_TRY(begin(u, err));
    TN_TRY(send_rest(u, fd, size ? size : 1, TN_NO_PIECE, err));
    unsigned count = part_of(u, size - 1) + 1;
    TN_TRY(announce_parts(u, count, err));
    return complete(u, count, size, err);
}

tn_status tn_upload_finish(tn_upload *u, int fd, uint64_t size, tn_error *err)
{
    tn_error own;
    err = err ? err : &own;
    tn_remote_lock();
    u->ends = true;
    while (u->is_beginning)
        tn_remote_wait();
    tn_remote_unlock();
    tn_status status = publish(u, fd, size, err);
    u->is_done = !status;
    if (!status)
        u->id[0] = '\0';
    return status && status != TN_ERR_EXISTS ? cannot_write(status, err) : status;
}

/* ---- parts that several processes send ---- */

tn_status tn_upload_cut(tn_upload *u, const tn_sink_part *parts, size_t n, uint64_t rest, tn_error *err)
{
    u->cuts = malloc(n * sizeof *u->cuts);
    TN_NEED(u->cuts && have_parts(u, n), err);
    memcpy(u->cuts, parts, n * sizeof *u->cuts);
    u->ncuts = n;
    u->rest = rest;
    return TN_OK;
}

uint64_t tn_upload_run(const tn_upload *u, uint64_t offset, tn_upload_kind *kind)
{
    unsigned i = part_of(u, offset);
    *kind = TN_UPLOAD_KEPT;
    if (i < u->ncuts && u->cuts[i].piece != TN_NO_PIECE)
        *kind = u->parts[i].is_recorded ? TN_UPLOAD_RECORDED : TN_UPLOAD_SENT;
    return begin_of(u, i + 1);
}

tn_status tn_upload_begin(tn_upload *u, char id[TN_UPLOAD_ID], tn_error *err)
{
    tn_error own;
    err = err ? err : &own;
    tn_status status = tn_credentials_find(false, err);
    if (!status)
        status = begin(u, err);
    if (status && status != TN_ERR_EXISTS)
        return cannot_write(status, err);
    memcpy(id, u->id, sizeof u->id);
    return status;
}

void tn_upload_join(tn_upload *u, const char *id)
{
    if (u->id[0] && strcmp(u->id, id) != 0)
        end_upload(u);          /* it was begun here, but another process was faster */
    snprintf(u->id, sizeof u->id, "%s", id);
    u->is_shared = true;
}

void tn_upload_expect(tn_upload *u, const char *etag)
{
    snprintf(u->expected, sizeof u->expected, "%s", etag);
}

void tn_upload_take_back(tn_upload *u)
{
    tn_exchange *x = NULL;
    tn_error ignored;
    if (u->is_done && !u->is_shared)
        ask(u, &(tn_s3_request){ .method = "DELETE", .query = "" }, NULL, &x, &ignored);
    tn_exchange_free(x);
}

void tn_upload_announce(tn_upload *u, tn_sink_coming_fn coming, void *context)
{
    u->coming = coming;
    u->context = context;
}

bool tn_upload_has_id(const tn_upload *u) { return u->id[0] != '\0'; }

tn_status tn_upload_send(tn_upload *u, int fd, uint32_t piece, tn_buf *etags, tn_error *err)
{
    tn_error own;
    uint64_t end = 0;
    err = err ? err : &own;
    for (unsigned i = 0; i < u->ncuts; i++)
        if (is_of(u, i, piece)) {
            u->parts[i].is_dirty = true;
            end = begin_of(u, i + 1);
        }
    tn_status status = end ? send_rest(u, fd, end, piece, err) : TN_OK;
    for (unsigned i = 0; i < u->ncuts && !status; i++)
        if (is_of(u, i, piece))
            tn_buf_put(etags, u->parts[i].etag, strlen(u->parts[i].etag) + 1);
    return status ? cannot_write(status, err) : TN_OK;
}

/* As stores write them, and with nothing that XML would read. */
static bool is_etag(const char *text)
{
    size_t n = strlen(text);
    bool good = n > 2 && n < TN_UPLOAD_ETAG && text[0] == '"' && text[n - 1] == '"';
    for (size_t i = 1; i + 1 < n && good; i++)
        good = text[i] > ' ' && text[i] < 0x7f && !strchr("\"<>&", text[i]);
    return good;
}

bool tn_upload_was_sent(tn_upload *u, uint32_t piece, const char *const *etags, size_t n)
{
    size_t k = 0;
    for (unsigned i = 0; i < u->ncuts; i++) {
        if (!is_of(u, i, piece))
            continue;
        if (k == n || !is_etag(etags[k]))
            return false;
        snprintf(u->parts[i].etag, sizeof u->parts[i].etag, "%s", etags[k++]);
        u->parts[i].state = PART_SENT;
        u->parts[i].is_recorded = true;
        u->parts[i].is_dirty = false;
    }
    return k == n;
}

/* ---- the end ---- */

void tn_upload_close(tn_upload *u)
{
    if (!u)
        return;
    tn_remote_lock();
    u->ends = true;
    while (u->sending || u->is_beginning)
        tn_remote_wait();
    tn_remote_unlock();
    if (u->id[0] && !u->is_shared)
        end_upload(u);
    tn_s3_close(&u->object);
    free(u->cuts);
    free(u->parts);
    if (u->is_used)
        tn_transfers_leave();
    free(u);
}
