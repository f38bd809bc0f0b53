/* cli/commands/uploads.c - uploads that a killed process has left in an object store. */
#include "ui/json.h"
#include "ui/opts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct upload {
    char   *url, *id;
    int64_t began;              /* seconds since 1970, or 0 */
} upload;

typedef struct upload_list {
    const opts *o;
    upload     *items;
    size_t      count;
    int64_t     now;
} upload_list;

static char *copy_of(const char *text)
{
    char *copy = must_allocate(strlen(text) + 1, 1);
    memcpy(copy, text, strlen(text));
    return copy;
}

/* Whether it is older than --older-than; of an unknown age: only without that option. */
static bool is_chosen(const upload_list *l, int64_t began)
{
    return !l->o->older_than || (began && l->now - began > (int64_t)l->o->older_than);
}

static void take_upload(void *context, const char *url, const char *id, int64_t began)
{
    upload_list *l = context;
    if (!is_chosen(l, began))
        return;
    l->items = must_resize(l->items, (l->count + 1) * sizeof *l->items);
    l->items[l->count++] = (upload){ copy_of(url), copy_of(id), began };
}

static void format_time(int64_t began, char text[32])
{
    struct tm utc;
    time_t t = (time_t)began;
    if (!began || !gmtime_r(&t, &utc) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc))
        strcpy(text, "-");
}

static int show_upload(const upload_list *l, const upload *u)
{
    char when[32];
    tn_error err = { .status = TN_OK };
    bool ends = l->o->abort;
    if (ends)
        tn_uploads_end(u->url, u->id, &err);
    format_time(u->began, when);
    if (l->o->json) {
        json_open('{');
        json_text_field("url", u->url);
        json_text_field("id", u->id);
        json_text_field("begun", u->began ? when : NULL);
        json_bool_field("ended", ends && err.status == TN_OK);
        json_error_field(u->url, err.status ? &err : NULL);
        json_close('}');
        json_end();
    } else if (err.status == TN_OK) {
        out("%s  %s  %s%s\n", when, escaped(u->url), escaped(u->id), ends ? "  ended" : "");
    }
    return err.status ? say_error(u->url, &err) : EXIT_DONE;
}

static int run(const opts *o)
{
    upload_list l = { .o = o, .now = (int64_t)time(NULL) };
    tn_error err;
    tn_status status = tn_uploads_list(o->files[0], take_upload, &l, &err);
    int code = status ? say_error(o->files[0], &err) : EXIT_DONE;
    for (size_t i = 0; i < l.count; i++) {
        if (!status)
            code = worse(code, show_upload(&l, &l.items[i]));
        free(l.items[i].url);
        free(l.items[i].id);
    }
    free(l.items);
    return code;
}

const command cmd_uploads = {
    .name = "uploads",
    .operands = "s3://BUCKET/PREFIX",
    .summary = "List uploads to an object store that were not finished.",
    .about = "\"tenon convert IN s3://BUCKET/KEY\" sends an object in parts.  A process that is\n"
             "killed leaves them: nobody sees them, but they take space until the upload is\n"
             "ended.  Uploads that are being sent right now are listed too: --older-than\n"
             "leaves out what is young.",
    .example = "  $ tenon uploads s3://BUCKET/models/ --abort --older-than 1d",
    .min_files = 1, .max_files = 1,
    .accepts = OPTIONS(OPT_ABORT, OPT_OLDER_THAN, OPT_JSON),
    .run = run,
};
