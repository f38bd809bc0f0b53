/* cli/commands/serve.c - offers the tensors of files to other processes. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/text.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static tn_offer *offered;       /* stopped by a signal; set before the handler is installed */
static volatile sig_atomic_t stopped;

static void on_stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
    tn_offer_stop(offered);
}

/* A second signal ends the program at once. */
static void stop_on_signals(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        struct sigaction old, new = { .sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND };
        sigemptyset(&new.sa_mask);
        if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(stops[i], &new, NULL);
    }
    signal(SIGPIPE, SIG_IGN);   /* the reader of our messages may exit */
}

/* Each writable tensor needs descriptors, and so does each client. */
static void allow_many_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* ---- what is offered ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int check_names(const opts *o)
{
    for (size_t i = 1; i < o->nfiles; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(base_name(o->files[i]), base_name(o->files[k])) == 0)
                return usage_error("serve", "\"%s\" and \"%s\" would both be offered as \"%s\"",
                                   escaped(o->files[k]), escaped(o->files[i]),
                                   escaped(base_name(o->files[i])));
    return EXIT_DONE;
}

static tn_status offer_buffer(tn_offer *offer, const char *name, const tn_file *file, const tn_tensor *tensor,
                              tn_buffer *buffer, tn_error *err)
{
    const tn_part *stored = &tensor->parts[0];
    const tn_part part = { .role = "data", .array = stored->array, .nbytes = stored->nbytes,
                           .data = tn_buffer_data(buffer) };
    const tn_tensor shared = {
        .name = name, .form = TN_FORM_DENSE, .dtype = tensor->dtype, .rank = tensor->rank,
            .shape = tensor->shape,
        .parts = &part, .nparts = 1,
        .meta = tensor->meta, .nmeta = tensor->nmeta, .layout = tensor->layout,
    };
    tn_status status = tn_part_read(file, stored, tn_buffer_data(buffer), (size_t)stored->nbytes, err);
    return status == TN_OK ? tn_offer_tensor(offer, &shared, buffer, 0, true, err) : status;
}

/* With several files the name is FILE:NAME, because they may have tensors of one name. */
static int offer_tensor(const opts *o, tn_offer *offer, const char *path, const tn_file *file,
                        const tn_tensor *tensor)
{
    const tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_MEMFD };
    uint64_t bytes = tensor->parts[0].nbytes;
    size_t size = strlen(base_name(path)) + strlen(tensor->name) + 2;
    char *name = must_allocate(size, 1);
    if (o->nfiles > 1)
        snprintf(name, size, "%s:%s", base_name(path), tensor->name);
    else
        snprintf(name, size, "%s", tensor->name);
    tn_buffer *buffer = NULL;
    tn_error err;
    tn_status status = tn_buffer_new(bytes ? bytes : 1, &options, &buffer, &err);
    if (status == TN_OK)
        status = offer_buffer(offer, name, file, tensor, buffer, &err);
    tn_buffer_unref(buffer);
    free(name);
    return status == TN_OK ? EXIT_DONE : say_error(path, &err);
}

static void keep_first_bad(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                           const tn_error *why)
{
    (void)tensor;
    (void)part;
    tn_error *first = context;
    if (verdict == TN_VERDICT_BAD && first->status == TN_OK)
        *first = *why;
}

/* A damaged file is not offered. */
static int check_file(const char *path, const tn_file *file)
{
    tn_error err, bad = { .status = TN_OK };
    const tn_verify_options options = { .size = sizeof options, .context = &bad };
    if (tn_verify(file, &options, keep_first_bad, &err) != TN_OK)
        return say_error(path, &err);
    return bad.status == TN_OK ? EXIT_DONE : say_error(path, &bad);
}

static bool is_dense(const tn_tensor *t) { return t->form == TN_FORM_DENSE && t->nparts == 1; }

/* All dense tensors will be kept in memory. */
static int check_sizes(const opts *o, const char *path, const tn_file *file)
{
    const tn_tensor **tensors = must_allocate(tn_file_count(file), sizeof *tensors);
    size_t n = 0;
    tn_error err;
    for (size_t i = 0; i < tn_file_count(file); i++)
        if (is_dense(tn_file_tensor(file, i)))
            tensors[n++] = tn_file_tensor(file, i);
    tn_status status = tn_check_decoded(tensors, n, o->max_bytes, &err);
    free(tensors);
    return status == TN_OK ? EXIT_DONE : say_error(path, &err);
}

static int offer_tensors(const opts *o, tn_offer *offer, const char *path, const tn_file *file,
                         size_t *tensors)
{
    int code = check_sizes(o, path, file);
    if (code == EXIT_DONE)
        code = check_file(path, file);
    for (size_t i = 0; i < tn_file_count(file) && code == EXIT_DONE && !stopped; i++) {
        const tn_tensor *tensor = tn_file_tensor(file, i);
        if (!is_dense(tensor)) {
            say("%s: tensor \"%s\" is %s and not offered: --writable needs dense tensors", escaped(path),
                escaped(tensor->name), escaped(tn_tensor_form_name(tensor)));
            continue;
        }
        code = offer_tensor(o, offer, path, file, tensor);
        *tensors += code == EXIT_DONE;
    }
    return code;
}

static int offer_file(const opts *o, tn_offer *offer, const char *path, size_t *tensors)
{
    tn_file *file;
    tn_error err;
    int code = open_input(o, path, &file);
    if (code != EXIT_DONE)
        return code;
    say_warnings(path, file);
    if (o->writable) {
        code = offer_tensors(o, offer, path, file, tensors);
    } else {
        *tensors += tn_file_count(file);
        if (tn_offer_file(offer, base_name(path), file, o->in_place, &err) != TN_OK)
            code = say_error(NULL, &err);       /* the text names the file */
    }
    tn_close(file);
    return code;
}

/* ---- answering ---- */

/* Whether stderr takes a line without blocking.  Clients cause the messages, so a pipe that
 * nobody reads must not stop the server: messages that do not fit are dropped. */
static bool can_say(void)
{
    struct pollfd messages = { .fd = STDERR_FILENO, .events = POLLOUT };
    return poll(&messages, 1, 0) == 1 && messages.revents & POLLOUT;
}

static void log_text(void *context, const char *text)
{
    const opts *o = context;
    if (can_say())
        say("%s: %s", escaped(o->socket), text);
}

static const char *access_text(const opts *o)
{
    if (o->writable)
        return ", who may write";
    return o->in_place ? ", in place" : "";
}

/* "3 tensors of 2 files offered to user 1000, group 50". */
static void say_ready(const opts *o, size_t tensors, uid_t self, const char *how)
{
    char *who;
    size_t size;
    FILE *f = open_memstream(&who, &size);
    if (!f)
        return;
    for (size_t i = 0; i < o->uids.count; i++)
        fprintf(f, ", user %lu", (unsigned long)o->uids.items[i]);
    for (size_t i = 0; i < o->gids.count; i++)
        fprintf(f, ", group %lu", (unsigned long)o->gids.items[i]);
    if (fclose(f) == 0)
        say("%s: %s of %s offered to user %lu%s%s; %s", escaped(o->socket), counted(tensors, "tensor").s,
            counted(o->nfiles, "file").s, (unsigned long)self, who,
            access_text(o), how);
    free(who);
}

static void json_ids(const char *key, const id_list *ids)
{
    json_key(key);
    json_open('[');
    for (size_t i = 0; i < ids->count; i++)
        json_uint(ids->items[i]);
    json_close(']');
}

static void json_ready(const opts *o, size_t tensors, const char *how)
{
    json_open('{');
    json_text_field("socket", o->socket);
    json_uint_field("files", o->nfiles);
    json_uint_field("tensors", tensors);
    json_ids("users", &o->uids);
    json_ids("groups", &o->gids);
    json_bool_field("writable", o->writable);
    json_bool_field("in_place", o->in_place);
    json_text_field("confined", how);
    json_close('}');
    json_end();
    out_flush();
}

static int answer(const opts *o, tn_offer *offer, size_t tensors)
{
    tn_error err, why;
    const char *how = "not confined";
    uid_t self = geteuid();     /* before confining, which forbids the call */
    if (tn_offer_confine(offer, &how, &why) != TN_OK)
        say("%s: not confined: %s", escaped(o->socket), why.text);
    if (o->json)
        json_ready(o, tensors, how);
    else if (!o->quiet)
        say_ready(o, tensors, self, how);
    if (tn_offer_run(offer, &err) != TN_OK)
        return say_error(o->socket, &err);
    if (!o->quiet && can_say())
        say("%s: stopped", escaped(o->socket));
    return EXIT_DONE;
}

static int serve(const opts *o, tn_offer *offer)
{
    size_t tensors = 0;
    int code = EXIT_DONE;
    for (size_t i = 0; i < o->nfiles && code == EXIT_DONE && !stopped; i++)
        code = offer_file(o, offer, o->files[i], &tensors);
    if (code == EXIT_DONE && o->writable && tensors == 0 && !stopped) {
        code = give_up(EXIT_BAD, "%s: no dense tensor to offer", escaped(o->files[0]));
    }
    return code == EXIT_DONE && !stopped ? answer(o, offer, tensors) : code;
}

static int run(const opts *o)
{
    const tn_offer_options options = {
        .size = sizeof options, .uids = o->uids.items, .nuids = o->uids.count, .gids = o->gids.items,
        .ngids = o->gids.count,
        .log = o->quiet ? NULL : log_text, .context = (void *)(uintptr_t)o,
    };
    tn_error err;
    if (!o->socket)
        return usage_error("serve", "expected --socket PATH");
    if (o->writable && o->in_place)
        return usage_error("serve", "--writable copies tensors and --in-place does not: give one of them");
    int code = check_names(o);
    if (code != EXIT_DONE)
        return code;
    if (tn_share_offer(o->socket, &options, &offered, &err) != TN_OK)
        return say_error(o->socket, &err);
    allow_many_descriptors();
    stop_on_signals();
    code = serve(o, offered);
    tn_offer_close(offered);
    return code;
}

const command cmd_serve = {
    .name = "serve",
    .operands = "FILE...",
    .summary = "Offer the tensors of files to other processes, without copies.",
    .about = "Decodes and checks the tensors once, into sealed memory that \"tenon attach\" and\n"
             "tn_share_attach() map.  Runs until SIGTERM or SIGINT.  Only processes of your\n"
             "own user, and of users and groups that you name, may attach.  Each FILE is\n"
             "offered under its name without folders.  --writable offers each dense tensor\n"
             "separately; nothing is written back.  With --in-place, whoever can write FILE\n"
             "can change what others see.",
    .details = "Processes that attach may exit or be killed at any time; what they have mapped\n"
               "stays valid when the server exits.  A socket that nobody listens on any more is\n"
               "replaced.  Two files of the same name are an error.  --writable offers at most\n"
               "1024 tensors; of several files they are named FILE:NAME, and other tensors are\n"
               "reported and not offered.\n\n"
               "Before it answers, the server gives up opening files, executing programs and\n"
               "connecting anywhere (by seccomp, if the build and the system have it; else it\n"
               "says so).  One line on stderr says when it is ready, who may attach, and how it\n"
               "is confined; then one line for each process that attaches or is refused.",
    .example = "  $ tenon serve model.zt --socket /run/user/1000/model.sock",
    .min_files = 1,
    .max_files = SIZE_MAX,
    .accepts = OPTIONS(OPT_SOCKET, OPT_ALLOW_UID, OPT_ALLOW_GID, OPT_WRITABLE, OPT_IN_PLACE, OPT_MEMORY,
                       OPT_MAX_BYTES, OPT_QUIET, OPT_JSON, OPT_FROM, OPT_IO),
    .elsewhere = OPTIONS(OPTS_INPUT),
    .topics = "input",
    .run = run,
};
