/* cli/cmd_convert.c - writes the tensors of one file into another. */
#include "json.h"
#include "opts.h"
#include "progress.h"
#include "rules.h"
#include "table.h"
#include "text.h"

#include <stdio.h>

typedef struct job {
    progress    bar;            /* first: progress_step() takes the context as its own */
    const opts *o;
    table       plan;           /* of a dry run */
    const tn_cast_rule *casts;
    size_t      ncasts;
} job;

static void plan_row(void *context, const tn_planned *planned)
{
    job *j = context;
    const tn_tensor *source = planned->source;
    if (j->o->json) {
        const tn_dtype_info *from = tn_dtype_get(source->dtype), *info = tn_dtype_get(planned->dtype);
        json_open('{');
        json_text_field("name", planned->name);
        json_text_field("source", source->name);
        json_text_field("from", from ? from->name : NULL);
        json_text_field("dtype", info ? info->name : NULL);
        json_key("shape");
        json_shape(source->rank, source->shape);
        json_uint_field("nbytes", planned->nbytes);
        json_text_field("encoding", encoding_name(planned->encoding));
        json_text_field("checksum", checksum_name(planned->checksum));
        json_close('}');
        return;
    }
    table_name(&j->plan, planned->name);
    if (j->casts)
        table_cell(&j->plan, type_of(source->dtype, &source->parts[0]).s);
    table_cell(&j->plan, type_of(planned->dtype, &source->parts[0]).s);
    table_cell(&j->plan, shape_of(source->rank, source->shape).s);
    table_cell(&j->plan, human_size(planned->nbytes).s);
    table_cell(&j->plan, encoding_name(planned->encoding) ? encoding_name(planned->encoding) : "?");
    table_cell(&j->plan, planned->checksum == TN_CHECKSUM_NONE ? "-" :
                         checksum_name(planned->checksum) ? checksum_name(planned->checksum) : "?");
}

static void plan_begin(job *j)
{
    static const char *const headings[] = { "name", "type", "shape", "size", "encoding", "checksum", NULL };
    static const char *const cast_headings[] = { "name", "from", "type", "shape", "size", "encoding", "checksum", NULL };
    if (j->o->json) {
        json_key("plan");
        json_open('[');
    } else {
        table_begin(&j->plan, j->casts ? cast_headings : headings, j->casts ? 1u << 4 : 1u << 3);
    }
}

static void plan_end(job *j, tn_status status)
{
    if (j->o->json)
        json_close(']');
    else if (status == TN_OK)
        table_end(&j->plan);
    else
        table_drop(&j->plan);
}

static void json_result(const opts *o, const tn_convert_result *result, double seconds)
{
    json_uint_field("tensors", result->tensors);
    json_uint_field("bytes_in", result->bytes_in);
    json_uint_field("bytes_out", result->bytes_out);
    if (!o->dry_run) {
        json_key("seconds");
        json_double(seconds);
    }
}

static void say_result(const opts *o, const tn_convert_result *result, double seconds)
{
    const char *path = escaped(o->files[1]);
    if (o->dry_run) {
        out("%s: %s, %s%s would be written\n", path, counted(result->tensors, "tensor").s,
            o->encoding == TN_ENCODING_ZSTD ? "at most " : "", human_size(result->bytes_out).s);
        return;
    }
    if (o->quiet)
        return;
    double most = (double)(result->bytes_in > result->bytes_out ? result->bytes_in : result->bytes_out);
    fprintf(stderr, "%s: %s, %s -> %s in %.2f s (%s/s)\n", path, counted(result->tensors, "tensor").s,
            human_size(result->bytes_in).s, human_size(result->bytes_out).s, seconds,
            human_size((uint64_t)(most / (seconds > 1e-6 ? seconds : 1e-6))).s);
}

static tn_create_options create_options(const opts *o)
{
    return (tn_create_options){
        .size = sizeof(tn_create_options),
        .format = o->to,
        .replace = o->force,
        .drop_metadata = o->drop_metadata,
        .filler = o->filler,
        .align = o->align,
        .shard_size = o->shard_size,
        .encoding = o->encoding,
        .level = o->level,
        .checksum = o->checksum,
        .jobs = o->jobs,
    };
}

static tn_convert_options convert_options(job *j, const tn_create_options *create)
{
    const opts *o = j->o;
    return (tn_convert_options){
        .size = sizeof(tn_convert_options),
        .create = create,
        .encoding = o->keep_encoding,
        .checksum = o->keep_checksum,
        .only = o->only.count > 0 ? o->only.items : NULL,
        .nonly = o->only.count,
        .rename = o->rename.count > 0 ? o->rename.items : NULL,
        .nrename = o->rename.count,
        .casts = j->casts,
        .ncasts = j->ncasts,
        .dry_run = o->dry_run,
        .plan = o->dry_run ? plan_row : NULL,
        .progress = progress_step,
        .context = j,
    };
}

static int convert(const opts *o, const tn_file *file, const rule_list *rules)
{
    job j = { .o = o, .casts = rules->items, .ncasts = rules->count };
    tn_create_options create = create_options(o);
    tn_convert_options options = convert_options(&j, &create);
    tn_convert_result result = { 0 };
    tn_error err;
    progress_begin(&j.bar, o->quiet);
    if (o->json) {
        json_open('{');
        json_text_field("file", o->files[1]);
    }
    if (o->dry_run)
        plan_begin(&j);
    tn_status status = tn_convert(file, o->files[1], &options, &result, &err);
    double seconds = now() - j.bar.began;
    progress_end(&j.bar);
    if (o->dry_run)
        plan_end(&j, status);
    if (o->json) {
        json_text_field("error", status == TN_OK ? NULL : err.text);
        json_result(o, &result, seconds);
        json_close('}');
        json_end();
    } else if (status == TN_OK) {
        say_result(o, &result, seconds);
    }
    if (status == TN_ERR_EXISTS) {
        say("%s (--force replaces it)", err.text);
        return EXIT_USAGE;
    }
    return status == TN_OK ? EXIT_DONE : say_error(NULL, &err);
}

static int run(const opts *o)
{
    if (o->filler && o->align == 0)
        return usage_error("convert", "--filler needs --align SIZE");
    if (o->cast_default && o->casts.count == 0 && o->recipes.count == 0)
        return usage_error("convert", "--%s needs --cast or --recipe", o->cast_default);
    tn_file *file = NULL;
    rule_list rules;
    signals_catch();
    int code = rules_read(&rules, o);
    if (code == EXIT_DONE)
        code = open_input(o, o->files[0], &file);
    if (code == EXIT_DONE)
        code = convert(o, file, &rules);
    tn_close(file);
    rules_free(&rules);
    return code;
}

const command cmd_convert = {
    .name = "convert",
    .operands = "IN OUT",
    .summary = "Writes the tensors and metadata of IN into a new file OUT.",
    .about = "OUT's format is that of its suffix unless --to names one.  IN and OUT may be\n"
             "the same file.  OUT appears whole or not at all.  What OUT cannot hold is an\n"
             "error unless an option allows its loss.  SIZE is a number of bytes; K, M, G\n"
             "and KiB, MiB, GiB are powers of 1024, KB, MB, GB powers of 1000.\n\n"
             "A RULE is [GLOB=]TYPE[,KEY=VALUE...]; a tensor that none matches keeps its type.\n"
             "Keys, and the options that set their defaults: round (even, away, zero, half_up,\n"
             "trunc, up, down, stochastic), overflow (default, saturate, inf, nan, error), nan\n"
             "(keep, zero, error), seed, complex (real).  The key scale multiplies each value\n"
             "first.  \"tenon types\" lists the types.",
    .example = "  $ tenon convert model.safetensors model.zt --compress zstd --checksum crc32c\n"
               "  $ tenon convert model.safetensors small.zt --cast '*norm*=f32' --cast '*.weight=bf16'",
    .min_files = 2,
    .max_files = 2,
    .accepts = OPT(TO) | OPT(FROM) | OPT(ONLY) | OPT(RENAME) | OPT(CAST) | OPT(RECIPE) | OPT(ROUND) |
               OPT(OVERFLOW) | OPT(NAN) | OPT(SEED) | OPT(COMPLEX) | OPT(COMPRESS) | OPT(CHECKSUM) | OPT(ALIGN) | OPT(FILLER) |
               OPT(SHARD_SIZE) | OPT(JOBS) | OPT(IO) | OPT(DRY_RUN) | OPT(FORCE) | OPT(DROP_METADATA) | OPT(QUIET) |
               OPT(JSON),
    .run = run,
};
