/* cli/ui/opts.h - commands, and the options they share.
 *
 * One table in opts.c says what each option is called, takes and does; each
 * command lists the options it accepts.  Parsing and --help both read it. */
#ifndef TENON_CLI_UI_OPTS_H
#define TENON_CLI_UI_OPTS_H

#include "ui/say.h"

typedef enum opt_id {
    OPT_LONG, OPT_FROM, OPT_IO, OPT_SLICE, OPT_FULL, OPT_TO, OPT_ONLY, OPT_RENAME, OPT_CAST, OPT_RECIPE,
    OPT_ROUND, OPT_OVERFLOW, OPT_NAN, OPT_SEED, OPT_COMPLEX, OPT_SPARSE, OPT_VIRTUAL, OPT_SCALE_MODE,
    OPT_ROTATE, OPT_DIALECT, OPT_REPORT, OPT_LAYOUT, OPT_PAD, OPT_FORM, OPT_COMPRESS, OPT_CHECKSUM, OPT_ALIGN,
    OPT_SHARD_SIZE, OPT_DROP_METADATA, OPT_DROP_NAMES, OPT_RAW,
    OPT_OPTION, OPT_TYPES, OPT_OUT, OPT_MLI, OPT_SECTION, OPT_NAME, OPT_BINARY, OPT_PLAN,
    OPT_DRY_RUN, OPT_SIDECAR, OPT_FORCE, OPT_TENSOR, OPT_SET, OPT_UNSET, OPT_IGNORE_METADATA, OPT_STRICT,
    OPT_BIND, OPT_LEVEL, OPT_SOCKET, OPT_ALLOW_UID, OPT_ALLOW_GID, OPT_WRITABLE, OPT_IN_PLACE, OPT_VERIFY,
    OPT_JOBS, OPT_MEMORY, OPT_MAX_BYTES, OPT_JSON, OPT_QUIET,
    OPT_SHAPE, OPT_TRANSPOSE = OPT_SHAPE, OPT_RESHAPE, OPT_CONCAT, OPT_SPLIT, OPT_HELP, OPT_COUNT
} opt_id;
_Static_assert(OPT_SHAPE < 64, "one bit each; those after it share its bit, and --help needs none");
#define OPT(id) (UINT64_C(1) << OPT_##id)

/* The options that a topic of "tenon help" explains (ui/topics.c), so that a command's help fits a screen. */
#define OPTS_SHAPES (OPT(SLICE) | OPT(SHAPE))
#define OPTS_RULES (OPT(ONLY) | OPT(RENAME) | OPT(CAST) | OPT(RECIPE) | OPT(LAYOUT) | OPT(PAD) | OPT(FORM))
#define OPTS_CASTS (OPT(ROUND) | OPT(OVERFLOW) | OPT(NAN) | OPT(SEED) | OPT(COMPLEX))
#define OPTS_QUANTIZE (OPT(SPARSE) | OPT(VIRTUAL) | OPT(SCALE_MODE) | OPT(ROTATE) | OPT(DIALECT) | \
                       OPT(REPORT))
#define OPTS_OUTPUT (OPT(TO) | OPT(COMPRESS) | OPT(CHECKSUM) | OPT(ALIGN) | OPT(SHARD_SIZE) | \
                     OPT(DROP_METADATA) | OPT(DROP_NAMES) | OPT(OPTION))
#define OPTS_INPUT (OPT(FROM) | OPT(IO) | OPT(MEMORY) | OPT(MAX_BYTES) | OPT(RAW))

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
    CAST_ROUND, CAST_OVERFLOW, CAST_NAN, CAST_SEED, CAST_COMPLEX, CAST_MODE, CAST_ROTATE, CAST_DIALECT,
    CAST_VIRTUAL, CAST_DEFAULTS
};

typedef struct opts {
    bool long_list, json, full, drop_metadata, drop_names, dry_run, force, quiet,
        ignore_metadata, sidecar, strict, report, help;
    bool binary, plan, raw, writable, in_place, verify;
    const char *command;        /* its name */
    uint64_t    given;          /* options, as OPT() bits */
    const char *from, *to, *slice, *tensor, *types, *out, *section, *name, *socket;
    tn_mli_version mli;
    tn_io       io;
    unsigned    jobs;
    uint64_t    align, shard_size, max_bytes, memory;
    tn_keep     keep_encoding, keep_checksum;
    tn_encoding encoding;
    int         level;
    tn_checksum checksum;
    text_list   only, rename, recipes;
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
    char      **files;          /* operands */
    size_t      nfiles;
} opts;

typedef struct command {
    const char *name;
    const char *operands;       /* "FILE..." */
    const char *summary;        /* one line */
    const char *about;          /* more for --help, or NULL; lines of at most 80 columns */
    const char *example;        /* lines after "$ " */
    size_t      min_files, max_files;
    uint64_t    accepts;        /* OPT(...) | OPT(...); --help always */
    uint64_t    elsewhere;      /* those of them that topics explain */
    const char *topics;         /* for the line "More: tenon help ...", or NULL */
    int       (*run)(const opts *o);
} command;

extern const command cmd_ls, cmd_show, cmd_stats, cmd_verify, cmd_convert, cmd_export_c, cmd_compare_types,
    cmd_diff, cmd_meta, cmd_describe, cmd_check, cmd_serve, cmd_attach, cmd_compliance, cmd_device,
    cmd_formats, cmd_types, cmd_datatypes, cmd_version;

/* Parses argv (argv[0] is the command's name).  Returns EXIT_DONE, or
 * EXIT_USAGE after printing what is wrong. */
int  opts_parse(opts *o, const command *c, int argc, char **argv);
void opts_free(opts *o);
void command_help(const command *c);
void out_options(uint64_t options);     /* the list of a help text */

/* The name of the first of these options that was given, or NULL. */
const char *first_given(const opts *o, uint64_t options);

/* Prints what is wrong with the command line and where help is; returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3)))
int usage_error(const char *command_name, const char *format, ...);

/* KEY=VALUE[,KEY=VALUE...] of the options that hold for all casts, or NULL; the caller frees it. */
char *cast_defaults(const opts *o);

/* Opens an input with the options --from and --io.  On failure prints why, leaves
 * *file NULL and returns the exit code. */
int open_input(const opts *o, const char *path, tn_file **file);

/* The first n operands as one file. */
int open_inputs(const opts *o, size_t n, tn_file **file);

#endif
