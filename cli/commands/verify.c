/* cli/commands/verify.c - checks structure and checksums. */
#include "ui/json.h"
#include "ui/open_file.h"
#include "ui/progress.h"
#include "ui/text.h"
#include "ui/together.h"

#include <stdio.h>
#include <string.h>

typedef struct check {
    progress    bar;            /* first: progress_step() takes the context as its own */
    const opts *o;
    const char *path;
    uint64_t    parts;
    uint64_t    crc32c, crc32, sha256;  /* checked and right */
    uint64_t    none, not_checked, unreadable, bad;
    uint64_t    decoded;        /* of `none`: compressed, so at least that was checked */
    uint64_t    indexed;        /* of `none`: indices of sparse tensors, which were checked */
    uint64_t    doubtful;       /* files beside this one that may be taken for it */
} check;

/* The word for a part with a problem or warning. */
static const char *verdict_text(tn_verdict verdict)
{
    static const char *const texts[] = { "warning", "warning", "not checked", "unreadable", "BAD" };
    return texts[verdict];
}

static void count(check *c, tn_verdict verdict, tn_checksum kind)
{
    if (verdict == TN_VERDICT_OK && kind == TN_CHECKSUM_SHA256)
        c->sha256++;
    else if (verdict == TN_VERDICT_OK && kind == TN_CHECKSUM_CRC32)
        c->crc32++;
    else if (verdict == TN_VERDICT_OK)
        c->crc32c++;
    else if (verdict == TN_VERDICT_NONE)
        c->none++;
    else if (verdict == TN_VERDICT_NOT_CHECKED)
        c->not_checked++;
    else if (verdict == TN_VERDICT_UNREADABLE)
        c->unreadable++;
    else
        c->bad++;
}

static void json_problem(const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                         const tn_error *why)
{
    json_open('{');
    json_text_field("name", tensor->name);
    json_text_field("part", part->role);
    json_text_field("verdict", verdict_text(verdict));
    json_text_field("why", why->text);
    if (why->offset != TN_NO_OFFSET)
        json_uint_field("offset", why->offset);
    json_close('}');
}

static void out_problem(const check *c, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                        const tn_error *why)
{
    bool bad = verdict == TN_VERDICT_BAD;
    out("%s: ", escaped(c->path));
    out_judgement(verdict_text(verdict), bad);
    if (why->offset != TN_NO_OFFSET)
        out("byte %llu: ", (unsigned long long)why->offset);
    out("tensor \"%s\": ", escaped(tensor->name));
    if (tensor->nparts > 1)
        out("part %s: ", escaped(part->role));
    out("%s%s\n", why->text, option_for(why->reason, why->value));
}

static void report(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                   const tn_error *why)
{
    check *c = context;
    c->parts++;
    const tn_stored_info stored = stored_info(tensor, part);
    count(c, verdict, stored.checksum);
    uint64_t entries;
    c->decoded += verdict == TN_VERDICT_NONE && stored.encoding != TN_ENCODING_RAW;
    c->indexed += verdict == TN_VERDICT_NONE && is_sparse(tensor, &entries) && part != tensor->parts;
    if (!why->text[0])
        return;
    progress_end(&c->bar);
    if (c->o->json)
        json_problem(tensor, part, verdict, why);
    else
        out_problem(c, tensor, part, verdict, why);
}

/* A file beside this one. */
static void report_beside(void *context, const char *text, bool doubtful)
{
    check *c = context;
    const char *verdict = doubtful ? "AMBIGUOUS" : "warning";
    c->doubtful += doubtful;
    progress_end(&c->bar);
    if (c->o->json) {
        json_open('{');
        json_text_field("verdict", verdict);
        json_text_field("why", text);
        json_close('}');
    } else {
        out("%s: ", escaped(c->path));
        out_judgement(verdict, doubtful);
        out("%s\n", text);
    }
}

/* The result for the whole file. */
static const char *judgement(const check *c)
{
    if (c->bad)
        return "BAD";
    if (c->doubtful)
        return "AMBIGUOUS";
    return c->not_checked || c->unreadable ? "not fully checked" : "ok";
}

/* What was checked if there is no checksum at all. */
static const char *checked_text(const check *c)
{
    if (c->indexed)
        return c->decoded ? "the structure, the indices and the compressed data were"
                          : "the structure and the indices were";
    return c->decoded ? "the structure and the compressed data were" : "the structure was";
}

/* One line: what was checked, and what was not. */
static void out_summary(const check *c, size_t tensors)
{
    bool bad = c->bad > 0 || c->doubtful > 0;
    out("%s: ", escaped(c->path));
    out_judgement(judgement(c), bad);
    out_text(counted(tensors, "tensor").s);
    if (c->parts != tensors)
        out(", %s", counted(c->parts, "part").s);
    if (tensors > 0 && c->none == c->parts) {
        out("; no checksums: only %s checked\n", checked_text(c));
        return;
    }
    const struct { uint64_t count; const char *what; } counts[] = {
        { c->bad, "bad" }, { c->crc32c, "crc32c checked" }, { c->crc32, "crc32 checked" },
        { c->sha256, "sha256 checked" },
        { c->not_checked, "not checked" }, { c->unreadable, "unreadable" }
    };
    const char *separator = "; ";
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i].count > 0) {
            out("%s%s %s", separator, grouped(counts[i].count).s, counts[i].what);
            separator = ", ";
        }
    }
    if (tensors > 0)
        out("%s%s without checksum", separator, grouped(c->none).s);
    out_text("\n");
}

static void json_summary(const check *c, size_t tensors)
{
    json_close(']');
    json_uint_field("tensors", tensors);
    json_uint_field("parts", c->parts);
    json_uint_field("crc32c", c->crc32c);
    json_uint_field("crc32", c->crc32);
    json_uint_field("sha256", c->sha256);
    json_uint_field("without_checksum", c->none);
    json_uint_field("not_checked", c->not_checked);
    json_uint_field("unreadable", c->unreadable);
    json_uint_field("bad", c->bad);
    json_uint_field("ambiguous", c->doubtful);
}

static int verify(const opts *o, const char *path, const tn_file *file, tn_error *err)
{
    check c = { .o = o, .path = path };
    tn_verify_options options = { .size = sizeof options, .jobs = o->jobs, .progress = progress_step,
                                  .context = &c,
                                  .beside = report_beside, .together = shared() };
    say_warnings(path, file);
    if (o->json) {
        json_key("problems");
        json_open('[');
    }
    progress_begin(&c.bar, false);
    tn_status status = tn_verify(file, &options, report, err);
    progress_end(&c.bar);
    if (o->json)
        json_summary(&c, tn_file_count(file));
    else if (status == TN_OK)
        out_summary(&c, tn_file_count(file));
    if (status != TN_OK)
        return exit_code(status);
    bool unchecked = (c.not_checked > 0 || c.unreadable > 0) && !o->allow_unchecked;
    return c.bad > 0 || c.doubtful > 0 || unchecked ? EXIT_BAD : EXIT_DONE;
}

const file_task verify_task = { .visit = verify, .judges = true };

static int run(const opts *o) { return each_file(o, &verify_task); }

const command cmd_verify = {
    .name = "verify",
    .operands = "FILE...",
    .summary = "Check structure, compressed data, indices and every checksum.",
    .about = "Prints for each file what was checked and how many tensors have no checksum.\n"
             "Also reports files beside it that an interrupted run may have left.  Exit status\n"
             "1 if anything is bad or cannot be read or checked by this build, or if another\n"
             "file could be loaded in place of this one.",
    .details = "A part of an unknown type, encoding or kind of checksum is not checked, and so\n"
               "is one that is never read (Python objects in a .npz): the exit status is 1\n"
               "unless --allow-unchecked is given.  Without checksums the structure alone is\n"
               "checked; that is said, and the exit status is 0.\n\n"
               "Shards or raw data that no index or descriptor names are a warning.  A single\n"
               "safetensors file beside the index of a set of the same name is AMBIGUOUS,\n"
               "because a loader may take either: the exit status is 1.",
    .example = "  $ tenon verify *.zt",
    .min_files = 1,
    .max_files = SIZE_MAX,
    .accepts = OPTIONS(OPT_ALLOW_UNCHECKED, OPT_STRICT, OPT_JOBS, OPT_MEMORY, OPT_JSON, OPT_FROM, OPT_IO,
                       OPTS_TOGETHER),
    .elsewhere = OPTIONS(OPTS_INPUT, OPTS_TOGETHER),
    .topics = "input|together",
    .run = run,
};
