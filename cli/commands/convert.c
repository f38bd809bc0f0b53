/* cli/commands/convert.c - writes the tensors of one or more files into another. */
#include "ui/chosen.h"
#include "ui/json.h"
#include "ui/lost.h"
#include "ui/open_file.h"
#include "ui/progress.h"
#include "ui/report.h"
#include "ui/rules.h"
#include "ui/standard.h"
#include "ui/table.h"
#include "ui/text.h"
#include "ui/together.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct job {
    progress    bar;            /* first: progress_step() takes the context as its own */
    const opts *o;
    const rule_list *rules;
    table       plan;           /* of a dry run */
    const char *headings[10];   /* of the plan, NULL-terminated */
    uint64_t    memory;         /* of a thread, as planned */
    report      done;           /* --report */
    lost_values lost;
} job;

static const char *output_of(const opts *o) { return o->files[o->nfiles - 1]; }

/* ---- a dry run ---- */

/* What is of a form this build does not know keeps it. */
static const char *form_name(const tn_planned *planned)
{
    return planned->form == TN_FORM_UNKNOWN ? tn_tensor_form_name(planned->source)
                                            : tn_form_name(planned->form);
}

static void json_offset_field(uint64_t offset)
{
    json_key("offset");
    if (offset == UINT64_MAX)
        json_word("null");
    else
        json_uint(offset);
}

static void json_plan_row(const tn_planned *planned)
{
    const tn_tensor *source = planned->source;
    const tn_dtype_info *from = tn_dtype_get(source->scaling ? source->parts[0].array.dtype : source->dtype);
    const tn_dtype_info *info = tn_dtype_get(planned->dtype);
    json_open('{');
    json_text_field("name", planned->name);
    json_text_field("source", source->name);
    json_key("sources");
    json_open('[');
    for (size_t i = 0; i < planned->nsources; i++)
        json_text(planned->sources[i]->name);
    json_close(']');
    json_text_field("steps", planned->steps);
    json_text_field("from", from ? from->name : NULL);
    json_text_field("dtype", info ? info->name : NULL);
    json_text_field("form", form_name(planned));
    json_text_field("datatype", planned->datatype);
    json_shape_field("shape", planned->rank, planned->shape);
    json_shape_field("physical_shape", planned->rank, planned->physical);
    json_text_field("layout", planned->layout);
    json_uint_field("nbytes", planned->nbytes);
    json_text_field("encoding", tn_encoding_name(planned->encoding));
    json_text_field("checksum", checksum_name(planned->checksum));
    json_uint_field("file", planned->file);
    json_offset_field(planned->offset);
    json_close('}');
}

/* "[2, 11, 4, 4]", and with padding "[2, 11, 4, 4] in [2, 16, 4, 4]". */
static void shape_cell(table *t, const tn_planned *planned)
{
    char text[2 * sizeof(shape_text) + 8];
    if (planned->physical)
        snprintf(text, sizeof text, "%s in %s", shape_of(planned->rank, planned->shape).s,
                 shape_of(planned->rank, planned->physical).s);
    table_cell(t, planned->physical ? text : shape_of(planned->rank, planned->shape).s);
}

static const char *checksum_text(tn_checksum checksum)
{
    if (checksum == TN_CHECKSUM_NONE)
        return "-";
    return checksum_name(checksum) ? checksum_name(checksum) : "?";
}

static bool shows_layout(const job *j)
{
    return rules_have(j->rules, "layout") || rules_have(j->rules, "pad");
}

/* What is joined, in its order; of many the first two and the last. */
static void source_notes(table *t, const tn_planned *planned)
{
    size_t n = planned->nsources;
    for (size_t i = 0; i < n && n > 1; i++) {
        if (n > 4 && i == 2) {
            table_note(t, "...");
            i = n - 1;
        }
        table_note(t, "%zu: %s", i + 1, escaped(planned->sources[i]->name));
    }
}

static void plan_row(void *context, const tn_planned *planned)
{
    job *j = context;
    if (j->o->json) {
        json_plan_row(planned);
        return;
    }
    table_name(&j->plan, planned->name);
    if (rules_have(j->rules, "cast"))
        table_cell(&j->plan, tensor_type(planned->source).s);
    table_cell(&j->plan, planned->datatype
                             ? type_and_datatype(planned->source->dtype, planned->datatype).s
                             : type_and_form(planned->dtype, form_name(planned),
                                             stored_info(NULL, planned->source->parts).type).s);
    if (shows_layout(j))
        table_cell(&j->plan, planned->layout ? planned->layout : "-");
    shape_cell(&j->plan, planned);
    table_cell(&j->plan, human_size(planned->nbytes).s);
    table_cell(&j->plan, tn_encoding_name(planned->encoding) ? tn_encoding_name(planned->encoding) : "?");
    table_cell(&j->plan, checksum_text(planned->checksum));
    if (j->rules->count)
        table_cell(&j->plan, *planned->steps ? planned->steps : "-");
    source_notes(&j->plan, planned);
}

static void plan_begin(job *j)
{
    static const char *const all[] = { "name", "from", "type", "layout", "shape", "size", "encoding",
                                       "checksum", "steps" };
    size_t n = 0;
    uint32_t right = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if ((i == 1 && !rules_have(j->rules, "cast")) || (i == 3 && !shows_layout(j)) ||
            (i == 8 && !j->rules->count))
            continue;
        right |= i == 5 ? 1u << n : 0;
        j->headings[n++] = all[i];
    }
    if (j->o->json) {
        json_key("plan");
        json_open('[');
    } else {
        table_begin(&j->plan, j->headings, right);
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

/* The input, and what can be made by itself. */
static void json_pieces(const opts *o, const tn_plan *plan)
{
    json_key("inputs");
    json_open('[');
    for (size_t i = 0; i + 1 < o->nfiles; i++)
        json_text(o->files[i]);
    json_close(']');
    json_key("pieces");
    json_open('[');
    for (size_t i = 0; i < tn_plan_count(plan); i++) {
        tn_plan_piece_info piece = { .size = sizeof piece };
        if (tn_plan_piece(plan, i, &piece, NULL))
            break;
        json_open('{');
        json_uint_field("file", piece.file);
        json_offset_field(piece.offset);
        json_uint_field("first_tensor", piece.first_tensor);
        json_uint_field("tensors", piece.tensors);
        json_uint_field("first_block", piece.first_block);
        json_uint_field("blocks", piece.blocks);
        json_uint_field("bytes_written", piece.bytes_written);
        json_uint_field("bytes_read", piece.bytes_read);
        json_close('}');
    }
    json_close(']');
}

static tn_status run_dry(job *j, const tn_file *file, const tn_convert_options *options,
                         tn_convert_result *result, tn_error *err)
{
    tn_plan *plan = NULL;
    plan_begin(j);
    tn_status status = tn_plan_make(file, output_of(j->o), options, &plan, err);
    progress_end(&j->bar);
    plan_end(j, status);
    j->memory = tn_plan_memory(plan, 1);
    if (status == TN_OK && j->o->json)
        json_pieces(j->o, plan);
    if (status == TN_OK)
        status = tn_plan_finish(plan, result, err);
    tn_plan_free(plan);
    return status;
}

/* ---- the run ---- */

static bool output_exists(const opts *o) { return access(output_of(o), F_OK) == 0; }

static void json_result(const job *j, const tn_convert_result *result, double seconds)
{
    json_uint_field("tensors", result->tensors);
    json_uint_field("bytes_in", result->bytes_in);
    json_uint_field("bytes_out", result->bytes_out);
    if (!j->o->dry_run) {
        json_key("seconds");
        json_double(seconds);
        json_lost(&j->lost);
        return;
    }
    json_uint_field("thread_memory", j->memory);
    json_bool_field("exists", output_exists(j->o));
}

static void say_result(const job *j, const tn_convert_result *result, double seconds)
{
    const opts *o = j->o;
    const char *path = escaped(output_of(o));
    if (o->dry_run) {
        out("%s: %s, %s%s would be written; about %s of memory per thread\n", path,
            counted(result->tensors, "tensor").s, o->encoding != TN_ENCODING_RAW ? "at most " : "",
            human_size(result->bytes_out).s, human_size(j->memory).s);
        if (!o->force && output_exists(o))
            out("%s exists: --force replaces it\n", path);
        return;
    }
    if (o->quiet || o->plans)
        return;
    out_flush();                /* the report comes first */
    if (o->together && result->tensors == 0) {
        fprintf(stderr, "%s: %s, made by other processes\n", path, human_size(result->bytes_out).s);
        return;
    }
    fprintf(stderr, "%s: %s, %s -> %s in %.2f s (%s/s)\n", path, counted(result->tensors, "tensor").s,
            human_size(result->bytes_in).s, human_size(result->bytes_out).s, seconds,
            human_size((uint64_t)((double)result->bytes_in / (seconds > 1e-6 ? seconds : 1e-6))).s);
}

static void report_row(void *context, const tn_quantize_report *quantized)
{
    job *j = context;
    progress_end(&j->bar);
    report_add(&j->done, quantized);
}

static void lost_row(void *context, const tn_cast_report *lost)
{
    lost_add(&((job *)context)->lost, lost);
}

tn_create_options create_options(const opts *o)
{
    return (tn_create_options){
        .size = sizeof(tn_create_options),
        .format = o->to,
        .replace = o->force || o->dry_run,     /* which replaces nothing */
        .drop_metadata = o->drop_metadata,
        .drop_names = o->drop_names,
        .format_options = o->format_options,
        .nformat_options = o->nformat_options,
        .align = o->align,
        .shard_size = o->shard_size,
        .encoding = o->encoding,
        .level = o->level,
        .checksum = o->checksum,
        .jobs = o->jobs,
        .note = progress_note,
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
        .rules = j->rules->items,
        .nrules = j->rules->count,
        .cast_defaults = j->rules->cast_defaults,
        .max_bytes = o->max_bytes,
        .dry_run = o->dry_run,
        .raw_codes = o->raw,
        .lost = lost_row,
        .strict = o->strict,
        .map = o->map,
        .metadata_from = o->metadata_from,
        .piece_size = o->piece_size,
        .plan = o->dry_run ? plan_row : NULL,
        .quantized = o->report ? report_row : NULL,
        .progress = progress_step,
        .context = j,
    };
}

/* Of the tensors that are chosen: what the result will tell. */
static uint64_t stored_bytes(const opts *o, const tn_file *file)
{
    chosen c;
    tn_error err;
    uint64_t bytes = 0;
    if (chosen_make(&c, o, file, &err) == TN_OK)
        for (size_t i = 0; i < c.count; i++)
            for (uint32_t k = 0; k < c.tensors[i]->nparts; k++)
                bytes += stored_info(c.tensors[i], &c.tensors[i]->parts[k]).bytes;
    chosen_free(&c);
    return bytes;
}

/* Standard output cannot be written at offsets: the file is made first. */
static tn_status run_convert(const job *j, const tn_file *file, tn_convert_options *options,
                             tn_convert_result *result, tn_error *err)
{
    const char *path = output_of(j->o);
    tn_create_options create = *options->create;
    if (j->o->plans)
        return convert_plan(j->o, file, options, result, err);
    if (j->o->together)
        return convert_together(j->o, file, options, result, err);
    if (!is_standard(path))
        return tn_convert(file, path, options, result, err);
    create.to_fd = true;
    create.fd = temporary_file(err);
    if (create.fd < 0)
        return err->status;
    options->create = &create;
    tn_status status = tn_convert(file, path, options, result, err);
    if (status == TN_OK)
        status = copy_to_output(create.fd, err);
    close(create.fd);
    return status;
}

int convert_file(const opts *o, const tn_file *file, const rule_list *rules)
{
    job j = { .o = o, .rules = rules };
    tn_create_options create = create_options(o);
    create.note_context = &j.bar;
    tn_convert_options options = convert_options(&j, &create);
    tn_convert_result result = { 0 };
    tn_error err;
    progress_begin(&j.bar, o->quiet);
    j.bar.input = j.bar.shown ? stored_bytes(o, file) : 0;
    if (o->json) {
        json_open('{');
        json_text_field("file", output_of(o));
    }
    if (o->report)
        report_begin(&j.done, o->json);
    tn_status status = o->dry_run ? run_dry(&j, file, &options, &result, &err)
                                  : run_convert(&j, file, &options, &result, &err);
    double seconds = now() - j.bar.began;
    progress_end(&j.bar);
    if (o->report)
        report_end(&j.done, status == TN_OK);
    if (status == TN_OK)
        say_lost(&j.lost);
    if (o->json) {
        json_error_field(NULL, status == TN_OK ? NULL : &err);
        if (!o->plans)
            json_result(&j, &result, seconds);
        json_close('}');
        json_end();
    } else if (status == TN_OK) {
        say_result(&j, &result, seconds);
    }
    lost_free(&j.lost);
    return status == TN_OK ? EXIT_DONE : say_error(NULL, &err);
}

static int check_options(const opts *o)
{
    if (o->cast_default && !first_given(o, OPTIONS(OPT_CAST, OPT_SPARSE, OPT_RECIPE)))
        return usage_error(o->command, "--%s needs --cast or --recipe", o->cast_default);
    if (o->report && o->dry_run)
        return usage_error(o->command, "--report needs a conversion, and --dry-run writes nothing "
                                      "(\"tenon compare-types\" reports without writing)");
    if (o->report && (o->together || o->plans))
        return usage_error(o->command, "--report is of one process: leave out --together (\"tenon "
                                      "compare-types\" reports without writing)");
    const char *of_many = first_given(o, OPTIONS(OPT_WORK, OPT_RANKS, OPT_PIECE_SIZE));
    if (!o->together && !o->plans && of_many)
        return usage_error(o->command, "--%s needs --together", of_many);
    if ((o->together || o->plans) && !o->work && strstr(output_of(o), "://"))
        return usage_error(o->command, "an output that is elsewhere needs a work folder that all processes "
                                      "share: --work DIR");
    if (is_standard(output_of(o)) && (o->together || o->plans))
        return usage_error(o->command,
                           "standard output (-) cannot be written by several processes: name a file");
    if (!is_standard(output_of(o)))
        return EXIT_DONE;
    if (!o->to)
        return usage_error(o->command, "standard output (-) has no suffix: name the format with --to");
    if (!o->dry_run && (o->json || o->report))
        return usage_error(o->command, "the file goes to standard output (-): leave out --json and --report");
    if (!o->dry_run && isatty(STDOUT_FILENO))
        return usage_error(o->command, "standard output (-) is a terminal: expected a pipe or a file");
    return EXIT_DONE;
}

/* An option for scales that are exponents which no rule takes: a rule for other scales drops it. */
static const char *unused_option(const opts *o, unsigned makes)
{
    const char *mode = o->cast_values[CAST_MODE], *dialect = o->cast_values[CAST_DIALECT];
    if (mode && !(makes & TN_RULE_TAKES_MODE))
        return "scale-mode";
    return dialect && !(makes & TN_RULE_TAKES_DIALECT) ? "dialect" : NULL;
}

/* Options that need a rule which quantizes. */
static int check_rules(const opts *o, const rule_list *rules)
{
    const char *option = o->report ? "report" : NULL;
    if (o->datatype_default)
        option = o->datatype_default;
    if (option && !(rules_make(rules) & TN_RULE_QUANTIZES))
        return usage_error(o->command,
                           "--%s needs a --cast rule that quantizes, such as mxfp4 or int8,per=tensor",
                           option);
    if (o->cast_values[CAST_IMPORTANCE] && !(rules_make(rules) & TN_RULE_TAKES_IMPORTANCE))
        return usage_error(o->command, "--importance needs a --cast rule with a block type, such as q4_K");
    option = unused_option(o, rules_make(rules));
    if (option)
        return usage_error(o->command,
                           "this --%s needs a --cast rule whose scales are exponents, such as mxfp4", option);
    return EXIT_DONE;
}

static int convert(const opts *o, bool must_quantize)
{
    tn_file *file = NULL;
    rule_list rules;
    int code = check_options(o);
    if (code != EXIT_DONE)
        return code;
    signals_catch();
    code = rules_read(&rules, o);
    if (code == EXIT_DONE && must_quantize && !(rules_make(&rules) & TN_RULE_QUANTIZES))
        code = usage_error(o->command, "expected --cast with a type that quantizes, such as mxfp4 or "
                                       "int8,per=channel,axis=0");
    if (code == EXIT_DONE)
        code = check_rules(o, &rules);
    if (code == EXIT_DONE)
        code = open_inputs(o, o->nfiles - 1, &file);
    if (code == EXIT_DONE && !o->quiet && o->nfiles == 2)
        say_warnings(o->files[0], file);
    if (code == EXIT_DONE)
        code = convert_file(o, file, &rules);
    tn_close(file);
    rules_free(&rules);
    return code;
}

static int run(const opts *o) { return convert(o, false); }

static int plan(const opts *o)
{
    opts planned = *o;
    planned.plans = true;
    return convert(&planned, false);
}

static int quantize(const opts *o) { return convert(o, true); }

/* Values are what is left of a tensor in dense form. */
static int dequantize(const opts *o)
{
    opts dense = *o;
    if (!o->given[OPT_FORM])
        dense.rules[dense.nrules++] = (tn_rule){ "form", "dense" };     /* there is room: one per argument */
    return convert(&dense, false);
}

#define ACCEPTED                                                                                           \
    OPTIONS(OPTS_RULES, OPTS_CASTS, OPTS_QUANTIZE, OPTS_SHAPES, OPTS_NAMES, OPTS_OUTPUT, OPTS_INPUT,       \
            OPT_RAW, OPT_STRICT, OPTS_TOGETHER, OPT_JOBS, OPT_DRY_RUN, OPT_FORCE, OPT_QUIET, OPT_JSON)
#define EXPLAINED_ELSEWHERE                                                                                \
    OPTIONS(OPT_EXCLUDE, OPT_RENAME, OPT_RECIPE, OPT_PAD, OPTS_SHAPES, OPTS_NAMES, OPTS_CASTS,              \
            OPTS_QUANTIZE, OPTS_DETAILS, OPTS_INPUT, OPT_RAW, OPT_STRICT, OPTS_TOGETHER)
/* "tenon help quantize" explains OPTS_QUANTIZE. */

const command cmd_convert = {
    .name = "convert",
    .operands = "IN... OUT",
    .summary = "Convert a tensor file: format, types, layout, compression.",
    .about = "OUT is written completely or not at all; it may be an IN.  Several INs become\n"
             "one file.  What OUT cannot hold is an error unless an option allows to drop it.",
    .details = "Checksums of IN are checked on the way.  The metadata of several INs is merged;\n"
               "their tensors must have different names.  If OUT is one of the INs and another\n"
               "program changes that file meanwhile, nothing is replaced.",
    .example = "  $ tenon convert in.safetensors out.zt --cast '*norm*=f32' --cast '*=mxfp4'",
    .min_files = 2,
    .max_files = SIZE_MAX,
    .accepts = ACCEPTED,
    .elsewhere = EXPLAINED_ELSEWHERE,
    .topics = "rules|cast|shapes|layouts|sparse|output|input|together",
    .run = run,
};

const command cmd_plan = {
    .name = "plan",
    .operands = "IN... OUT",
    .summary = "Plan a conversion for many processes, and write nothing yet.",
    .about = "Makes the folder OUT.tenon with the plan, for \"tenon run\" and \"tenon finish\".\n"
             "Takes all options of convert.  A folder that is there must have the same plan.",
    .example = "  $ tenon plan in.safetensors out.zt --cast mxfp4",
    .min_files = 2,
    .max_files = SIZE_MAX,
    .accepts = OPTIONS(OPTS_RULES, OPTS_CASTS, OPTS_QUANTIZE, OPTS_SHAPES, OPTS_NAMES, OPTS_OUTPUT,
                       OPTS_INPUT, OPT_RAW, OPT_STRICT, OPT_WORK, OPT_PIECE_SIZE, OPT_JOBS, OPT_FORCE,
                       OPT_QUIET, OPT_JSON),
    .elsewhere = OPTIONS(OPTS_RULES, OPTS_SHAPES, OPTS_NAMES, OPTS_CASTS, OPTS_QUANTIZE, OPTS_OUTPUT,
                         OPTS_INPUT, OPT_RAW, OPT_STRICT),
    .topics = "together|rules|cast|output|input",
    .run = plan,
};

const command cmd_quantize = {
    .name = "quantize",
    .operands = "IN... OUT",
    .summary = "Convert values to small codes with scales.",
    .about = "This is \"tenon convert\" that insists on a --cast which quantizes; it takes all\n"
             "options of convert.  --report prints what was lost.",
    .example = "  $ tenon quantize in.safetensors out.zt --cast '*_proj.weight=mxfp4' --report",
    .min_files = 2,
    .max_files = SIZE_MAX,
    .accepts = ACCEPTED,
    .elsewhere = OPTIONS(OPT_EXCLUDE, OPT_RENAME, OPT_RECIPE, OPT_PAD, OPT_LAYOUT, OPT_FORM, OPTS_SHAPES,
                         OPTS_NAMES, OPTS_CASTS, OPTS_OUTPUT, OPTS_INPUT, OPT_RAW, OPT_STRICT, OPT_JOBS,
                         OPTS_TOGETHER),
    .topics = "datatypes|rules|cast|output|input",
    .run = quantize,
};

const command cmd_dequantize = {
    .name = "dequantize",
    .operands = "IN... OUT",
    .summary = "Convert codes with scales back to values.",
    .about = "This is \"tenon convert --form dense\": codes become values, in the type they had\n"
             "before they were quantized, or that of --cast.  Takes all options of convert.",
    .example = "  $ tenon dequantize mx.zt values.safetensors --cast bf16",
    .min_files = 2,
    .max_files = SIZE_MAX,
    .accepts = ACCEPTED,
    .elsewhere = EXPLAINED_ELSEWHERE,
    .topics = "rules|cast|output|input",
    .run = dequantize,
};
