/* cli/commands/help.c - the commands, and what explains them. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/topics.h"

#include <stdio.h>
#include <string.h>

const command *const commands[] = {
    &cmd_ls,         &cmd_show,      &cmd_stats,         &cmd_verify, &cmd_convert,    &cmd_quantize,
    &cmd_dequantize, &cmd_export_c,  &cmd_compare_types, &cmd_report, &cmd_diff,       &cmd_meta,
    &cmd_describe,   &cmd_check,     &cmd_serve,         &cmd_attach, &cmd_compliance, &cmd_device,
    &cmd_plan,       &cmd_run,       &cmd_finish,        &cmd_abandon,
    &cmd_uploads,    &cmd_formats,   &cmd_types,         &cmd_datatypes, &cmd_version,  &cmd_help,
    NULL
};

const command_alias aliases[] = {
    { "list", "ls", NULL },
    { "info", "ls", "-l" },
    { "cat", "show", NULL },
    { "cp", "convert", NULL },
    { NULL, NULL, NULL },
};

const command_alias *find_alias(const char *name)
{
    for (const command_alias *a = aliases; a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

const command *find_command(const char *name)
{
    const command_alias *alias = find_alias(name);
    for (const command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, alias ? alias->command : name) == 0)
            return *c;
    return NULL;
}

/* Words of other tools, and what does that here. */
static const char *const elsewhere[][2] = {
    { "open", "ls" }, { "view", "ls" }, { "inspect", "ls -l" }, { "summary", "stats" }, { "print", "show" },
    { "dump", "show" }, { "head", "show" }, { "compare", "diff" }, { "cmp", "diff" }, { "test", "verify" },
    { "validate", "verify" }, { "checksum", "verify" }, { "cast", "convert --cast" }, { "copy", "convert" },
    { "compress", "convert --compress zstd" }, { "decompress", "convert --compress none" },
    { "merge", "convert IN... OUT" }, { "concat", "convert --concat" }, { "shard", "convert --shard-size" },
    { "split", "convert --split" }, { "extract", "convert --only" }, { "filter", "convert --only" },
    { "rename", "convert --rename" }, { "mv", "convert --rename" }, { "rm", "convert --exclude" },
    { "transpose", "convert --transpose" }, { "reshape", "convert --reshape" }, { "metadata", "meta" },
    { "export", "export-c" }, { "prune", "convert --form csr,threshold=T" },
};

const char *nearest_command(const char *name)
{
    static char text[80];
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        if (strcmp(name, elsewhere[i][0]) == 0) {
            snprintf(text, sizeof text, ": try \"tenon %s\"", elsewhere[i][1]);
            return text;
        }
    }
    tn_nearest nearest = { .word = name };
    for (const command *const *c = commands; *c; c++)
        tn_nearest_offer(&nearest, (*c)->name);
    for (const command_alias *a = aliases; a->name; a++)
        tn_nearest_offer(&nearest, a->name);
    return did_you_mean(&nearest);
}

/* The last commands share lines, so that all fits a screen. */
static void overview(void)
{
    out_text("Usage: tenon COMMAND [OPTION]... FILE...       \"tenon FILE...\" lists\n");
    for (const command *const *c = commands; *c != &cmd_formats; c++)
        out("  %-13s  %s\n", (*c)->name, (*c)->summary);
    out_text("  formats        List formats; likewise \"types\", \"datatypes\", and \"version\".\n"
             "Other names: list (ls), info (ls -l), cat (show), cp (convert).\n"
             "\"tenon help COMMAND|TOPIC\" explains more.  Topics: formats, datatypes,\n  ");
    out_topics();
    out_text("\nExit status: 0 success, 1 bad input or a difference, 2 usage, 3 system failure.\n");
}

/* ---- JSON ---- */

static void json_option(opt_id id)
{
    const option_text t = option_at(id);
    char letter[2] = { t.letter, '\0' };
    json_open('{');
    json_text_field("name", t.name);
    json_text_field("letter", t.letter ? letter : NULL);
    json_text_field("value", t.value);
    json_text_field("help", t.help);
    json_close('}');
}

static void json_command(const command *c)
{
    json_open('{');
    json_text_field("name", c->name);
    json_text_field("operands", c->operands);
    json_text_field("summary", c->summary);
    json_text_field("about", c->about);
    json_text_field("details", c->details);
    json_text_field("example", c->example);
    json_text_field("topics", c->topics);
    json_key("options");
    json_open('[');
    for (opt_id id = 0; id < OPT_COUNT; id++)
        if (command_takes(c, id))
            json_option(id);
    json_close(']');
    json_close('}');
}

static void json_topic(const topic *t)
{
    json_open('{');
    json_text_field("name", t->name);
    json_text_field("summary", t->summary);
    json_text_field("about", t->about);
    json_text_field("example", t->example);
    json_key("options");
    json_open('[');
    for (opt_list id = t->options; id && *id != OPT_COUNT; id++)
        json_option(*id);
    json_close(']');
    json_close('}');
}

/* All, or one of the two. */
static void json_overview(const command *only, const topic *only_topic)
{
    json_open('{');
    json_key("commands");
    json_open('[');
    for (const command *const *c = commands; *c; c++)
        if (*c == only || (!only && !only_topic))
            json_command(*c);
    json_close(']');
    json_key("aliases");
    json_open('{');
    for (const command_alias *a = aliases; a->name; a++)
        json_text_field(a->name, a->command);
    json_close('}');
    json_key("topics");
    json_open('[');
    for (size_t i = 0; topic_at(i); i++)
        if (topic_at(i) == only_topic || (!only && !only_topic))
            json_topic(topic_at(i));
    json_close(']');
    json_close('}');
    json_end();
}

/* ---- the run ---- */

/* ": ...", what could be meant, or "". */
static const char *meant_by(const char *name)
{
    const tn_rule cast = { "cast", name };
    const tn_format_info *f;
    for (size_t i = 0; (f = tn_format_at(i)); i++)
        if (names_format(f, name, false) || names_format(f, name, true))
            return ": it is a format, which \"tenon formats\" lists";
    if (tn_rule_check(&cast, NULL, NULL) == TN_OK)
        return ": it is a type, which \"tenon help cast\" explains";
    const char *near = nearest_topic(name);
    return *near ? near : nearest_command(name);
}

static int run(const opts *o)
{
    const char *name = o->nfiles ? o->files[0] : NULL;
    const command_alias *alias = name ? find_alias(name) : NULL;
    const command *c = name ? find_command(name) : NULL;
    const topic *t = name && !c ? find_topic(name) : NULL;
    if (name && !c && !t)
        return usage_error("help", "no command or topic \"%s\"%s", escaped(name), meant_by(name));
    if (o->json) {
        json_overview(c, t);
        return EXIT_DONE;
    }
    if (alias)
        out("\"tenon %s\" is another name for \"tenon %s%s%s\".\n", name, alias->command,
            alias->option ? " " : "", alias->option ? alias->option : "");
    if (c)
        command_pages(c);
    else if (t)
        topic_help(t);
    else
        overview();
    return EXIT_DONE;
}

const command cmd_help = {
    .name = "help",
    .operands = "[COMMAND|TOPIC]",
    .summary = "Explain a command or a topic.",
    .example = "  $ tenon help convert",
    .max_files = 1,
    .accepts = OPTIONS(OPT_JSON),
    .run = run,
};
