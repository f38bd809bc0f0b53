/* cli/main.c - chooses the command. */
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/topics.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static int cmd_help(const opts *o);

static const command help_command = {
    .name = "help",
    .operands = "[COMMAND|TOPIC]",
    .summary = "Explain a command or a topic.",
    .example = "  $ tenon help convert",
    .max_files = 1,
    .run = cmd_help,
};

const command *const commands[] = {
    &cmd_ls,        &cmd_show,    &cmd_stats,  &cmd_verify,        &cmd_convert,  &cmd_quantize,
    &cmd_dequantize, &cmd_export_c, &cmd_compare_types, &cmd_diff, &cmd_meta,     &cmd_describe,
    &cmd_check,     &cmd_serve,   &cmd_attach, &cmd_compliance,    &cmd_device,   &cmd_formats,
    &cmd_types,     &cmd_datatypes, &cmd_version, &help_command,   NULL
};

/* Other names of commands, for those who try them. */
static const struct alias {
    const char *name, *command;
    const char *option;         /* given first, or NULL */
} aliases[] = {
    { "list", "ls", NULL },
    { "info", "ls", "-l" },
    { "cat", "show", NULL },
    { "cp", "convert", NULL },
};
enum { ALIASES = sizeof aliases / sizeof *aliases };

static const struct alias *find_alias(const char *name)
{
    for (size_t i = 0; i < ALIASES; i++)
        if (strcmp(aliases[i].name, name) == 0)
            return &aliases[i];
    return NULL;
}

/* By one of its names. */
static const command *find(const char *name)
{
    const struct alias *alias = find_alias(name);
    for (const command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, alias ? alias->command : name) == 0)
            return *c;
    return NULL;
}

static void offer_commands(tn_nearest *nearest)
{
    for (const command *const *c = commands; *c; c++)
        tn_nearest_offer(nearest, (*c)->name);
    for (size_t i = 0; i < ALIASES; i++)
        tn_nearest_offer(nearest, aliases[i].name);
}

/* The last commands share lines, so that all fits a screen. */
static void overview(void)
{
    out_text("Usage: tenon COMMAND [OPTION]... FILE...       \"tenon FILE...\" lists\n");
    for (const command *const *c = commands; *c != &cmd_formats; c++)
        out("  %-13s  %s\n", (*c)->name, (*c)->summary);
    out_text("  formats        List formats; \"tenon types\", \"tenon datatypes\" list those.\n"
             "  version        Print the version and the libraries of this build.\n"
             "Other names: list (ls), info (ls -l), cat (show), cp (convert).\n"
             "\"tenon help COMMAND|TOPIC\" explains more.  Topics: formats, datatypes,\n  ");
    out_topics();
    out_text("\nExit status: 0 success, 1 bad input or a difference, 2 usage, 3 system failure.\n");
}

static int cmd_help(const opts *o)
{
    if (o->nfiles == 0) {
        overview();
        return EXIT_DONE;
    }
    const char *name = o->files[0];
    const struct alias *alias = find_alias(name);
    const command *c = find(name);
    if (alias)
        out("\"tenon %s\" is another name for \"tenon %s%s%s\".\n", name, alias->command,
            alias->option ? " " : "", alias->option ? alias->option : "");
    if (c) {
        command_help(c);
    } else if (!topic_help(name)) {
        tn_nearest nearest = { .word = name };
        offer_commands(&nearest);
        offer_topics(&nearest);
        return usage_error("help", "no command or topic \"%s\"%s", escaped(name), did_you_mean(&nearest));
    }
    return EXIT_DONE;
}

static int run(const command *c, int argc, char **argv)
{
    opts o;
    int code = opts_parse(&o, c, argc, argv);
    if (code == EXIT_DONE && o.help)
        command_help(c);
    tn_set_window_memory(o.memory);
    if (code == EXIT_DONE && !o.help)
        code = c->run(&o);
    opts_free(&o);
    return code;
}

/* Runs a command with one more option, `first`, before the others. */
static int run_with(const command *c, const char *first, int argc, char **argv)
{
    char **words = must_allocate((size_t)argc + 2, sizeof *words);
    words[0] = argv[0];
    words[1] = (char *)(uintptr_t)first;
    memcpy(words + 2, argv + 1, (size_t)argc * sizeof *words);      /* with the NULL at its end */
    int code = run(c, argc + 1, words);
    free(words);
    return code;
}

/* What is no command: a file to list, or an option of that. */
static bool is_for_ls(const char *word)
{
    struct stat s;
    return strchr(word, '/') || strchr(word, '.') || (word[0] == '-' && word[1]) || stat(word, &s) == 0;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return usage_error("", "expected a command or a file");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    const struct alias *alias = find_alias(name);
    const command *c = find(name);
    if (alias && alias->option)
        return run_with(c, alias->option, argc - 1, argv + 1);
    if (c)
        return run(c, argc - 1, argv + 1);
    if (is_for_ls(name))
        return run(&cmd_ls, argc, argv);
    tn_nearest nearest = { .word = name };
    offer_commands(&nearest);
    return usage_error("", "no command and no file \"%s\"%s", escaped(name), did_you_mean(&nearest));
}

/* glibc reserves 64 MiB of address space for each thread that allocates.  Under a limit on address space the
 * rest could be too little for the work. */
static void share_one_heap(void)
{
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

int main(int argc, char **argv)
{
    share_one_heap();
    if (!isatty(STDOUT_FILENO))
        setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    signal(SIGXFSZ, SIG_IGN);   /* a file too large becomes an error with a name */
    int code = out_finish(dispatch(argc, argv));
    signals_pass_on();
    return code;
}
