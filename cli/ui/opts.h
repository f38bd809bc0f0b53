/* cli/ui/opts.h - commands, and the options they share.
 *
 * One table in opts.c says what each option is called, takes and does; each
 * command lists the options it accepts.  Parsing and --help both read it. */
#ifndef TENON_CLI_UI_OPTS_H
#define TENON_CLI_UI_OPTS_H

#include "ui/say.h"

typedef enum opt_id {
    OPT_LONG, OPT_FROM, OPT_IO, OPT_SLICE, OPT_FULL, OPT_TO, OPT_ONLY, OPT_EXCLUDE, OPT_SORT, OPT_TREE,
    OPT_TOLERANCE, OPT_RENAME, OPT_CAST, OPT_RECIPE,
    OPT_ROUND, OPT_OVERFLOW, OPT_UNDERFLOW, OPT_NAN, OPT_SEED, OPT_COMPLEX, OPT_SPARSE, OPT_VIRTUAL,
    OPT_SCALE_MODE,
    OPT_ROTATE, OPT_DIALECT, OPT_IMPORTANCE, OPT_REPORT, OPT_LAYOUT, OPT_PAD, OPT_FORM, OPT_COMPRESS,
    OPT_CHECKSUM, OPT_ALIGN,
    OPT_SHARD_SIZE, OPT_DROP_METADATA, OPT_DROP_NAMES, OPT_RAW,
    OPT_OPTION, OPT_GRAPH, OPT_EXTERNAL, OPT_TYPES, OPT_OUT, OPT_MLI, OPT_SECTION, OPT_NAME, OPT_BINARY,
    OPT_PLAN,
    OPT_DRY_RUN, OPT_SIDECAR, OPT_FORCE, OPT_TENSOR, OPT_SET, OPT_SET_FILE, OPT_UNSET,
    OPT_IGNORE_METADATA, OPT_STRICT,
    OPT_BIND, OPT_LEVEL, OPT_SOCKET, OPT_ALLOW_UID, OPT_ALLOW_GID, OPT_WRITABLE, OPT_IN_PLACE, OPT_VERIFY,
    OPT_ALLOW_UNCHECKED,
    OPT_JOBS, OPT_MEMORY, OPT_MAX_BYTES, OPT_JSON, OPT_QUIET,
    OPT_TRANSPOSE, OPT_RESHAPE, OPT_ADD, OPT_CONCAT, OPT_SPLIT, OPT_MAP, OPT_TEMPLATE,
    OPT_AGAINST, OPT_STAMP, OPT_ABORT, OPT_OLDER_THAN, OPT_TOGETHER, OPT_WORK, OPT_RANKS, OPT_PIECE,
    OPT_PIECE_SIZE,     OPT_HELP, OPT_COUNT
} opt_id;

/* A list of options, as commands and topics have them. */
typedef const opt_id *opt_list;
#define OPTIONS(...) ((const opt_id[]){ __VA_ARGS__, OPT_COUNT })

/* The options that a topic of "tenon help" explains (ui/topics.c), so that a command's help fits a screen. */
#define OPTS_SHAPES   OPT_SLICE, OPT_TRANSPOSE, OPT_RESHAPE, OPT_ADD, OPT_CONCAT, OPT_SPLIT
#define OPTS_NAMES    OPT_MAP, OPT_TEMPLATE
#define OPTS_CHOICE   OPT_ONLY, OPT_EXCLUDE
#define OPTS_RULES    OPTS_CHOICE, OPT_RENAME, OPT_CAST, OPT_RECIPE, OPT_LAYOUT, OPT_PAD, OPT_FORM
#define OPTS_CASTS    OPT_ROUND, OPT_OVERFLOW, OPT_UNDERFLOW, OPT_NAN, OPT_SEED, OPT_COMPLEX
#define OPTS_QUANTIZE OPT_SPARSE, OPT_VIRTUAL, OPT_SCALE_MODE, OPT_ROTATE, OPT_DIALECT, OPT_IMPORTANCE, \
                      OPT_REPORT
#define OPTS_TOGETHER OPT_TOGETHER, OPT_WORK, OPT_RANKS, OPT_PIECE_SIZE
#define OPTS_DETAILS  OPT_ALIGN, OPT_SHARD_SIZE, OPT_DROP_METADATA, OPT_DROP_NAMES, OPT_OPTION, \
                      OPT_GRAPH, OPT_EXTERNAL
#define OPTS_OUTPUT   OPT_TO, OPT_COMPRESS, OPT_CHECKSUM, OPTS_DETAILS
#define OPTS_INPUT    OPT_FROM, OPT_IO, OPT_MEMORY, OPT_MAX_BYTES

typedef struct text_list {
    const char **items;
    size_t       count;
} text_list;

typedef struct id_list {        /* of users or groups */
    uint32_t *items;
    size_t    count;
} id_list;

/* The options that hold for all casts, as keys of a rule. */
enum {
    CAST_ROUND, CAST_OVERFLOW, CAST_UNDERFLOW, CAST_NAN, CAST_SEED, CAST_COMPLEX, CAST_MODE, CAST_ROTATE,
    CAST_DIALECT, CAST_VIRTUAL, CAST_IMPORTANCE, CAST_DEFAULTS
};

typedef enum sort_key { SORT_NONE, SORT_NAME, SORT_SIZE, SORT_TYPE, SORT_SHAPE } sort_key;

typedef struct opts {
    bool long_list, json, full, drop_metadata, drop_names, dry_run, force, quiet,
        ignore_metadata, sidecar, strict, report, help;
    bool together, plans;       /* plans: the work folder is made, and nothing else */
    bool tree, binary, plan, raw, writable, in_place, verify, allow_unchecked, stamp, abort;
    const char *command;        /* its name */
    bool        given[OPT_COUNT];   /* options */
    const char *from, *to, *slice, *tensor, *types, *out, *section, *name, *socket, *map, *metadata_from;
    const char *against, *work; /* work: the folder */
    uint32_t    rank, ranks;    /* of --ranks; ranks 0: not given */
    text_list   pieces;         /* "I" or "I-J" */
    tn_mli_version mli;
    tn_io       io;
    unsigned    jobs;
    uint64_t    align, shard_size, piece_size, max_bytes, memory;
    uint64_t    older_than;     /* seconds; 0: any age */
    tn_keep     keep_encoding, keep_checksum;
    tn_encoding encoding;
    int         level;
    sort_key    sort;
    double      tolerance, relative;
    tn_checksum checksum;
    text_list   only;           /* of --exclude, with "!" before it */
    text_list   rename, recipes;
    text_list   owned;          /* texts to be freed */
    tn_rule    *rules;          /* of --cast, --layout ..., in the order given */
    size_t      nrules;
    const char *cast_default;   /* the last option of --round, --overflow ... that was given, or NULL */
    const char *datatype_default;   /* the last option that needs a rule with a datatype, or NULL */
    const char *cast_values[CAST_DEFAULTS];  /* of these options, or NULL */
    id_list     uids, gids;
    text_list   binds;          /* "NAME=VALUE" */
    tn_format_option *format_options;       /* `format` owns the memory of all three texts */
    size_t      nformat_options;
    int         compliance;     /* level 1, 2 or 3; 0: not given */
    text_list   changes;        /* "KEY=VALUE" to set, "KEY" alone to unset, in the order given */
    text_list   file_changes;   /* "KEY=PATH" */
    char      **files;          /* operands */
    size_t      nfiles;
} opts;

typedef struct command {
    const char *name;
    const char *operands;       /* "FILE..." */
    const char *summary;        /* one line */
    const char *about;          /* more for --help, or NULL; lines of at most 80 columns */
    const char *details;        /* what "tenon help NAME" says after it, or NULL */
    const char *example;        /* lines after "$ " */
    size_t      min_files, max_files;
    opt_list    accepts;        /* OPTIONS(...); --help always; NULL: no other */
    opt_list    elsewhere;      /* those of them that topics explain, or NULL */
    const char *topics;         /* for the line "More: tenon help ...", or NULL */
    int       (*run)(const opts *o);
} command;

extern const command cmd_ls, cmd_show, cmd_stats, cmd_verify, cmd_convert, cmd_quantize, cmd_dequantize,
    cmd_export_c, cmd_compare_types, cmd_report, cmd_diff, cmd_meta, cmd_describe, cmd_check, cmd_serve,
    cmd_attach,
    cmd_compliance, cmd_device, cmd_formats, cmd_types, cmd_datatypes, cmd_version, cmd_uploads,
    cmd_help, cmd_plan, cmd_run, cmd_finish, cmd_abandon;

extern const command *const commands[];     /* all, in the order of help; NULL after the last */

/* Other names of commands, for those who try them; a name that is NULL follows the last. */
typedef struct command_alias {
    const char *name, *command;
    const char *option;         /* given first, or NULL */
} command_alias;
extern const command_alias aliases[];
const command_alias *find_alias(const char *name);

/* Prints what could follow the words that were typed, one per line with a tab and its meaning, for the shell
 * (commands/complete.c); returns the exit code. */
int complete(int nwords, char **words);

/* Parses argv (argv[0] is the command's name).  Returns EXIT_DONE, or
 * EXIT_USAGE after printing what is wrong. */
int  opts_parse(opts *o, const command *c, int argc, char **argv);
void opts_free(opts *o);
void command_help(const command *c);    /* --help: a screen */
void command_pages(const command *c);   /* "tenon help NAME": all of it */
void out_options(opt_list options);     /* the list of a help text */

/* What help says of an option. */
typedef struct option_text {
    const char *name;           /* without dashes; NULL: it has a letter only */
    const char *value;          /* NULL: a flag */
    const char *help;
    char        letter;         /* or 0 */
} option_text;
option_text option_at(opt_id id);
bool        command_takes(const command *c, opt_id id);

/* The command of this name, or of this other name; NULL: there is none. */
const command *find_command(const char *name);

/* Whether a word is the name of a format, or its suffix without the dot. */
bool names_format(const tn_format_info *format, const char *word, bool by_suffix);

/* ": did you mean ...?", or "". */
const char *nearest_command(const char *name);

/* The name of the first of these options that was given, or NULL. */
const char *first_given(const opts *o, opt_list options);

/* Prints what is wrong with the command line and where help is; returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3)))
int usage_error(const char *command_name, const char *format, ...);

/* KEY=VALUE[,KEY=VALUE...] of the options that hold for all casts, or NULL; the caller frees it. */
char *cast_defaults(const opts *o);

/* Opens a file as the options say; "-" is standard input. */
tn_status open_path(const opts *o, const char *path, tn_file **file, tn_error *err);

/* Opens an input with the options --from and --io.  On failure prints why, leaves
 * *file NULL and returns the exit code. */
int open_input(const opts *o, const char *path, tn_file **file);

/* The first n operands as one file. */
int open_inputs(const opts *o, size_t n, tn_file **file);

#endif
