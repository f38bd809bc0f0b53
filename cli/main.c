/* cli/main.c - chooses the command. */
#include "ui/opts.h"
#include "ui/progress.h"

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
    .operands = "[COMMAND]",
    .summary = "Explains a command.",
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
    out_text("Usage: tenon COMMAND [OPTION]... FILE...\n"
             "Describes, stores, checks, rearranges and converts tensor files.\n\nCommands:\n");
    for (const command *const *c = commands; *c; c++)
        out("  %-13s  %-14s  %s\n", (*c)->name, (*c)->operands, (*c)->summary);
    out_text("\n\"tenon COMMAND --help\" says more.  Results go to stdout, talk to stderr.\n"
             "Exit status: 0 done, 1 the input is bad or differs, 2 usage, 3 the system failed.\n\n"
             "Example:\n"
             "  $ tenon convert model.safetensors model.zt --compress zstd --checksum crc32c\n");
}

static int cmd_help(const opts *o)
{
    if (o->nfiles == 0) {
        overview();
        return EXIT_DONE;
    }
    const command *c = find(o->files[0]);
    if (!c)
        return usage_error("help", "no command \"%s\"", escaped(o->files[0]));
    command_help(c);
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

/* glibc reserves 64 MiB of address space for each thread that allocates, when it can have them: where address
 * space is limited, what is left is then too little for the work. */
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
