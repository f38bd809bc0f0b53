/* bytes/remote/uploads.c - uploads that were begun and not finished. */
#include "bytes/remote/credentials.h"
#include "bytes/remote/s3.h"
#include "bytes/remote/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/remote.h>

enum { PAGE_BYTES = 4 << 20, MOST_PAGES = 10000, KEY_BYTES = 1100, ID_BYTES = 1100 };

/* The place in a long list where the next page begins. */
typedef struct marker {
    char key[KEY_BYTES], id[ID_BYTES];
    bool more;
} marker;

static void put_item(tn_buf *b, const char *name, const char *value)
{
    tn_buf_printf(b, "%s%s=", b->size ? "&" : "", name);
    tn_url_put(b, (tn_text){ value, strlen(value) }, "");
}

/* Sends a request, to the right region; the reply is in `to`, and its status in *answered (may be NULL). */
static tn_status ask(tn_s3_object *o, const tn_s3_request *r, tn_buf *to, int *answered, tn_error *err)
{
    tn_status status = TN_OK;
    bool again = true;
    for (int tries = 0; tries < 3 && again && !status; tries++) {
        tn_exchange *x = tn_s3_exchange(o, r, err);
        if (!x)
            return err->status;
        x->to = to->data;
        x->room = to->cap;
        status = tn_exchange_run(x, err);
        to->size = x->got;
        int answer = x->reply.status;
        if (answered)
            *answered = answer;
        again = status && (answer == 400 || answer == 301 || answer == 403) && tn_s3_mend(o, x);
        status = again ? TN_OK : status;
        tn_exchange_free(x);
    }
    return again ? tn_fail(err, TN_ERR_IO, "the store refuses every region and all credentials") : status;
}

static tn_status report_page(const tn_s3_object *o, tn_text xml, tn_uploads_fn report, void *context,
                             tn_error *err)
{
    char key[KEY_BYTES], id[ID_BYTES], when[40], url[KEY_BYTES + 100];
    tn_text one;
    while (tn_xml_next(&xml, "Upload", &one)) {
        time_t began = 0;
        if (!tn_xml_text(one, "Key", key, sizeof key) || !tn_xml_text(one, "UploadId", id, sizeof id))
            return tn_fail(err, TN_ERR_IO, "the store lists an upload without a key or an id");
        if (tn_xml_text(one, "Initiated", when, sizeof when))
            (void)tn_credentials_time((tn_text){ when, strlen(when) }, &began);
        snprintf(url, sizeof url, "s3://%s/%s", o->bucket, key);
        if (report)
            report(context, url, id, (int64_t)began);
    }
    return TN_OK;
}

static tn_status list_page(tn_s3_object *o, const char *prefix, marker *m, tn_buf *page, tn_error *err)
{
    tn_buf query = { 0 };
    char truncated[8] = "";
    if (m->more)
        put_item(&query, "key-marker", m->key);
    if (*prefix)
        put_item(&query, "prefix", prefix);
    if (m->more)
        put_item(&query, "upload-id-marker", m->id);
    put_item(&query, "uploads", "");
    tn_buf_putc(&query, '\0');
    tn_status status = query.bad ? tn_fail_nomem(err) : TN_OK;
    if (!status)
        status = ask(o, &(tn_s3_request){ .method = "GET", .query = (char *)query.data }, page, NULL, err);
    tn_buf_free(&query);
    if (status)
        return status;
    tn_text xml = { (char *)page->data, page->size };
    m->more = tn_xml_text(xml, "IsTruncated", truncated, sizeof truncated) && strcmp(truncated, "true") == 0;
    if (m->more && (!tn_xml_text(xml, "NextKeyMarker", m->key, sizeof m->key) ||
                    !tn_xml_text(xml, "NextUploadIdMarker", m->id, sizeof m->id)))
        return tn_fail(err, TN_ERR_IO, "the store's list is cut but does not say where it goes on");
    return TN_OK;
}

static tn_status list_all(tn_s3_object *o, tn_uploads_fn report, void *context, tn_error *err)
{
    char *prefix = o->key;
    tn_buf page = { .data = malloc(PAGE_BYTES), .cap = PAGE_BYTES };
    marker m = { .more = false };
    tn_status status = page.data ? TN_OK : tn_fail_nomem(err);
    o->key = strdup("");        /* the request is on the bucket */
    if (!o->key)
        status = tn_fail_nomem(err);
    for (unsigned pages = 0; !status && (pages == 0 || m.more); pages++) {
        status = pages < MOST_PAGES ? list_page(o, prefix, &m, &page, err)
                                    : tn_fail(err, TN_ERR_IO, "the store's list of uploads does not end");
        if (!status)
            status = report_page(o, (tn_text){ (char *)page.data, page.size }, report, context, err);
    }
    free(prefix);
    tn_buf_free(&page);
    return status;
}

/* Opens the object and the thread of transfers for one call. */
static tn_status begin(const char *url, tn_s3_object *o, tn_error *err)
{
    if (!tn_begins_with(url, "s3://"))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected s3://BUCKET/KEY: only object stores have uploads");
    TN_TRY(tn_transfers_use(err));
    tn_status status = tn_s3_open(url, o, err);
    if (status)
        tn_transfers_leave();
    return status;
}

tn_status tn_uploads_list(const char *url, tn_uploads_fn report, void *context, tn_error *err)
{
    tn_s3_object o;
    tn_error own;
    err = err ? err : &own;
    TN_GIVEN(url, "a URL", err);
    tn_status status = begin(url, &o, err);
    if (!status) {
        status = list_all(&o, report, context, err);
        tn_s3_close(&o);
        tn_transfers_leave();
    }
    return tn_in_file(status, url, err);
}

tn_status tn_uploads_end(const char *url, const char *id, tn_error *err)
{
    tn_s3_object o;
    tn_error own;
    tn_buf query = { 0 }, reply = { 0 };
    int answer = 0;
    err = err ? err : &own;
    TN_GIVEN(url, "a URL", err);
    TN_GIVEN(id, "the id of an upload", err);
    tn_status status = begin(url, &o, err);
    if (status)
        return tn_in_file(status, url, err);
    put_item(&query, "uploadId", id);
    tn_buf_putc(&query, '\0');
    status = query.bad ? tn_fail_nomem(err) : TN_OK;
    if (!status)
        status = ask(&o, &(tn_s3_request){ .method = "DELETE", .query = (char *)query.data }, &reply, &answer,
                     err);
    if (status && answer == 404)
        status = TN_OK;         /* it has ended already */
    tn_buf_free(&query);
    tn_s3_close(&o);
    tn_transfers_leave();
    return tn_in_file(status, url, err);
}
