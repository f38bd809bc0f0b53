/* cli/main.c - chooses the command. */
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/topics.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
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

static const command *const commands[] = {
    &cmd_ls,     &cmd_show,    &cmd_stats,    &cmd_verify,    &cmd_convert, &cmd_export_c, &cmd_compare_types,
    &cmd_diff,   &cmd_meta,    &cmd_describe, &cmd_check,     &cmd_serve,   &cmd_attach,   &cmd_compliance,
    &cmd_device, &cmd_formats, &cmd_types,    &cmd_datatypes, &cmd_version, &help_command, NULL
};

static const command *find(const char *name)
{
    for (const command *const *c = commands; *c; c++) {
        if (strcmp((*c)->name, name) == 0)
            return *c;
    }
    return NULL;
}

static void overview(void)
{
    out_text("Usage: tenon COMMAND [OPTION]... FILE...\n");
    for (const command *const *c = commands; *c; c++)
        out("  %-13s  %s\n", (*c)->name, (*c)->summary);
    out_text("\"tenon help COMMAND\" or \"tenon help TOPIC\" explains more.  Topics:\n  ");
    out_topics();
    out_text("\nExit status: 0 success, 1 bad input or a difference, 2 usage, 3 system failure.\n");
}

static int cmd_help(const opts *o)
{
    if (o->nfiles == 0) {
        overview();
        return EXIT_DONE;
    }
    const command *c = find(o->files[0]);
    if (c)
        command_help(c);
    else if (!topic_help(o->files[0]))
        return usage_error("help", "no command or topic \"%s\"", escaped(o->files[0]));
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

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return usage_error("", "expected a command");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    const command *c = find(name);
    if (!c)
        return usage_error("", "no command \"%s\"", escaped(name));
    return run(c, argc - 1, argv + 1);
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
