/* cli/main.c - runs the command. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/progress.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

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
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    if (strcmp(name, "complete") == 0)
        return complete(argc - 2, argv + 2);
    const command_alias *alias = find_alias(name);
    const command *c = find_command(name);
    if (alias && alias->option)
        return run_with(c, alias->option, argc - 1, argv + 1);
    if (c)
        return run(c, argc - 1, argv + 1);
    if (is_for_ls(name))
        return run(&cmd_ls, argc, argv);
    return usage_error("", "no command and no file \"%s\"%s", escaped(name), nearest_command(name));
}

/* Also where the line could not be read to its end. */
static bool wants_json(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--json") != 0)
        i++;
    return i < argc;
}

/* glibc reserves 64 MiB of address space for each thread that allocates.  Under a limit on address space the
 * rest could be too little for the work. */
static void share_one_heap(void)
{
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

/* Else the next file that is opened would get the output or the messages.  Writing to these fails. */
static void open_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDONLY);
}

int main(int argc, char **argv)
{
    open_standard();
    share_one_heap();
    if (!isatty(STDOUT_FILENO))
        setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    signal(SIGXFSZ, SIG_IGN);   /* a file too large becomes an error with a name */
    int code = dispatch(argc, argv);
    if (code != EXIT_DONE && wants_json(argc, argv))
        json_failed(code);
    code = out_finish(code);
    signals_pass_on();
    return code;
}
