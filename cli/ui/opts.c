/* cli/ui/opts.c - the option table, parsing, help. */
#include "ui/opts.h"
#include "ui/ranks.h"
#include "ui/standard.h"
#include "ui/url.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Takes one option's value; false: the value is not valid. */
struct option_row;
typedef bool (*take_fn)(opts *o, const struct option_row *row, const char *value);

typedef struct option_row {
    const char *name;
    const char *value;          /* what --help calls the value; NULL: a flag */
    const char *wants;          /* what a message says it takes; NULL: `value` says it */
    const char *help;
    take_fn     take;
    size_t      field;          /* offset in opts, for the functions that several rows share */
    char        letter;
} option_row;

static bool take_flag(opts *o, const option_row *row, const char *value)
{
    (void)value;
    *(bool *)((char *)o + row->field) = true;
    return true;
}

static bool take_text(opts *o, const option_row *row, const char *value)
{
    *(const char **)((char *)o + row->field) = value;
    return true;
}

static bool take_path(opts *o, const option_row *row, const char *value)
{
    return *value && take_text(o, row, value);
}

static bool take_list(opts *o, const option_row *row, const char *value)
{
    text_list *list = (text_list *)((char *)o + row->field);
    list->items[list->count++] = value;
    return true;
}

static bool take_exclude(opts *o, const option_row *row, const char *value)
{
    size_t n = strlen(value) + 2;
    char *text = must_allocate(n, 1);
    snprintf(text, n, "!%s", value);
    o->owned.items[o->owned.count++] = text;
    return take_list(o, row, text);
}

static bool take_sort(opts *o, const option_row *row, const char *value)
{
    static const char *const keys[] = { [SORT_NAME] = "name", [SORT_SIZE] = "size", [SORT_TYPE] = "type",
                                        [SORT_SHAPE] = "shape" };
    (void)row;
    for (sort_key key = SORT_NAME; key <= SORT_SHAPE; key++)
        if (strcmp(keys[key], value) == 0)
            o->sort = key;
    return o->sort != SORT_NONE;
}

/* ABS[,REL], neither negative. */
static bool take_tolerance(opts *o, const option_row *row, const char *value)
{
    (void)row;
    char *end;
    o->tolerance = strtod(value, &end);
    bool good = end != value && o->tolerance >= 0 && isfinite(o->tolerance);
    if (good && *end == ',') {
        value = end + 1;
        o->relative = strtod(value, &end);
        good = end != value && o->relative >= 0 && isfinite(o->relative);
    }
    return good && !*end;
}

static bool take_rename(opts *o, const option_row *row, const char *value)
{
    return strchr(value, '=') && take_list(o, row, value);
}

/* Cuts FORMAT.KEY=VALUE into three; the library checks the words. */
static bool take_format_option(opts *o, const option_row *row, const char *value)
{
    (void)row;
    size_t format = strcspn(value, "."), equals = strcspn(value, "=");
    if (!format || equals <= format + 1 || !value[equals] || !value[equals + 1])
        return false;
    size_t n = strlen(value) + 1;
    char *copy = must_allocate(n, 1);
    memcpy(copy, value, n);
    copy[format] = copy[equals] = '\0';
    const tn_format_option option = { .format = copy, .key = copy + format + 1, .value = copy + equals + 1 };
    o->format_options[o->nformat_options++] = option;
    return true;
}

/* An option of ONNX that has a name of its own. */
static bool take_onnx_option(opts *o, const option_row *row, const char *value)
{
    size_t n = strlen(row->name) + strlen(value ? value : "") + 10;
    char *text = must_allocate(n, 1);
    snprintf(text, n, "onnx.%s=%s", row->name, value ? value : "yes");
    bool good = take_format_option(o, row, text);
    free(text);
    return good;
}

static bool take_set(opts *o, const option_row *row, const char *value)
{
    return strchr(value, '=') && *value != '=' && take_list(o, row, value);
}

static bool take_unset(opts *o, const option_row *row, const char *value)
{
    return *value && !strchr(value, '=') && take_list(o, row, value);
}

bool names_format(const tn_format_info *format, const char *word, bool by_suffix)
{
    const char *suffix = format->suffix;
    if (!by_suffix)
        return strcmp(format->name, word) == 0;
    return suffix && *suffix == '.' && strcmp(suffix + 1, word) == 0;
}

static bool take_format(opts *o, const option_row *row, const char *value)
{
    const tn_format_info *format;
    for (int by_suffix = 0; by_suffix < 2; by_suffix++)
        for (size_t i = 0; (format = tn_format_at(i)); i++)
            if (names_format(format, value, by_suffix))
                return take_text(o, row, format->name);
    return false;
}

static void offer_formats(tn_nearest *nearest)
{
    const tn_format_info *format;
    for (size_t i = 0; (format = tn_format_at(i)); i++)
        tn_nearest_offer(nearest, format->name);
}

/* Digits and a unit: K, M, G, T and KiB ... are powers of 1024, KB ... of 1000. */
static bool parse_size(const char *text, uint64_t *size)
{
    if (*text < '0' || *text > '9')
        return false;
    char *unit;
    errno = 0;
    unsigned long long number = strtoull(text, &unit, 10);
    if (errno)
        return false;
    static const char letters[] = "KMGT";
    char first = *unit == 'k' ? 'K' : *unit;
    const char *letter = first ? strchr(letters, first) : NULL;
    uint64_t base = letter && strcasecmp(unit + 1, "B") == 0 ? 1000 : 1024;
    bool spelled = letter ? unit[1] == '\0' || base == 1000 || strcasecmp(unit + 1, "iB") == 0
                          : *unit == '\0' || strcmp(unit, "B") == 0;
    for (; letter && letter >= letters; letter--) {
        if (number > UINT64_MAX / base)
            return false;
        number *= base;
    }
    *size = number;
    return spelled;
}

static bool take_size(opts *o, const option_row *row, const char *value)
{
    uint64_t size;
    if (!parse_size(value, &size) || size == 0)
        return false;
    *(uint64_t *)((char *)o + row->field) = size;
    return true;
}

static bool take_align(opts *o, const option_row *row, const char *value)
{
    return take_size(o, row, value) && (o->align & (o->align - 1)) == 0;
}

static bool parse_number(const char *text, long least, long most, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *number >= least && *number <= most;
}

/* A number of minutes, hours or days, in seconds. */
static bool take_time(opts *o, const option_row *row, const char *value)
{
    static const struct {
        char     unit;
        uint64_t seconds;
    } units[] = { { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    char *end;
    unsigned long long number = *value >= '0' && *value <= '9' ? strtoull(value, &end, 10) : 0;
    for (size_t i = 0; number && number < 1000000 && i < 3; i++)
        if (end[0] == units[i].unit && !end[1]) {
            *(uint64_t *)((char *)o + row->field) = number * units[i].seconds;
            return true;
        }
    return false;
}

static bool take_jobs(opts *o, const option_row *row, const char *value)
{
    (void)row;
    long jobs;
    if (!parse_number(value, 0, 1024, &jobs))
        return false;
    o->jobs = (unsigned)jobs;
    return true;
}

/* NAME=VALUE with a value that is a whole number. */
static bool take_bind(opts *o, const option_row *row, const char *value)
{
    const char *equals = strchr(value, '=');
    long number;
    return equals && equals > value && parse_number(equals + 1, 0, LONG_MAX, &number) &&
           take_list(o, row, value);
}

/* Every id but the largest, which means "no user" to the system. */
static bool take_id(opts *o, const option_row *row, const char *value)
{
    id_list *list = (id_list *)((char *)o + row->field);
    long id;
    if (!parse_number(value, 0, UINT32_MAX - 1L, &id))
        return false;
    list->items[list->count++] = (uint32_t)id;
    return true;
}

static bool take_level(opts *o, const option_row *row, const char *value)
{
    (void)row;
    long level;
    if (!parse_number(value, 1, 3, &level))
        return false;
    o->compliance = (int)level;
    return true;
}

/* R/N, counted from 0. */
static bool take_ranks(opts *o, const option_row *row, const char *value)
{
    (void)row;
    return parse_ranks(value, &o->rank, &o->ranks);
}

/* I or I-J. */
static bool take_piece(opts *o, const option_row *row, const char *value)
{
    size_t digits = strspn(value, "0123456789"), more;
    if (!digits || digits > 9)
        return false;
    more = value[digits] == '-' ? strspn(value + digits + 1, "0123456789") : 0;
    if (value[digits] == '-' && (!more || more > 9 || value[digits + 1 + more]))
        return false;
    return (value[digits] == '-' || !value[digits]) && take_list(o, row, value);
}

static bool take_mli(opts *o, const option_row *row, const char *value)
{
    (void)row;
    static const struct { const char *name; tn_mli_version mli; } versions[] = {
        { "1.0", TN_FOR_MLI_1_0 }, { "1.1", TN_FOR_MLI_1_1 }, { "2.0", TN_FOR_MLI_2_0 }
    };
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (strcmp(value, versions[i].name) == 0) {
            o->mli = versions[i].mli;
            return true;
        }
    }
    return false;
}

static bool take_io(opts *o, const option_row *row, const char *value)
{
    (void)row;
    o->io = strcmp(value, "mmap") == 0 ? TN_IO_MMAP : TN_IO_PREAD;
    return o->io == TN_IO_MMAP || strcmp(value, "pread") == 0;
}

static bool take_compress(opts *o, const option_row *row, const char *value)
{
    (void)row;
    char name[16];
    long level = 0;
    size_t n = strcspn(value, ":");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), value);
    o->keep_encoding = TN_CHOOSE;
    o->encoding = tn_encoding_parse(name);
    if (strcmp(value, "none") == 0) {
        o->encoding = TN_ENCODING_RAW;
        return true;
    }
    bool good = o->encoding != TN_ENCODING_UNKNOWN && o->encoding != TN_ENCODING_RAW && n < sizeof name;
    if (good && value[n])
        good = parse_number(value + n + 1, 1, 22, &level);
    o->level = (int)level;
    return good;
}

static bool take_checksum(opts *o, const option_row *row, const char *value)
{
    (void)row;
    static const struct { const char *name; tn_checksum checksum; } kinds[] = {
        { "crc32c", TN_CHECKSUM_CRC32C }, { "sha256", TN_CHECKSUM_SHA256 }, { "none", TN_CHECKSUM_NONE }
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(value, kinds[i].name) == 0) {
            o->keep_checksum = TN_CHOOSE;
            o->checksum = kinds[i].checksum;
            return true;
        }
    }
    return false;
}

static const char *const cast_keys[CAST_DEFAULTS] = {
    [CAST_ROUND] = "round", [CAST_OVERFLOW] = "overflow", [CAST_UNDERFLOW] = "underflow", [CAST_NAN] = "nan",
    [CAST_SEED] = "seed",
    [CAST_COMPLEX] = "complex", [CAST_MODE] = "mode", [CAST_ROTATE] = "rotate", [CAST_DIALECT] = "dialect",
    [CAST_VIRTUAL] = "virtual", [CAST_IMPORTANCE] = "importance",
};

char *cast_defaults(const opts *o)
{
    size_t size = 1, n = 0;
    for (size_t i = 0; i < CAST_DEFAULTS; i++)
        size += o->cast_values[i] ? strlen(cast_keys[i]) + strlen(o->cast_values[i]) + 2 : 0;
    if (size == 1)
        return NULL;
    char *text = must_allocate(size, 1);
    for (size_t i = 0; i < CAST_DEFAULTS; i++)
        if (o->cast_values[i])
            n += (size_t)snprintf(text + n, size - n, "%s%s=%s", n ? "," : "", cast_keys[i],
                                  o->cast_values[i]);
    return text;
}

/* Sets what KEY=VALUE is for all casts, if a rule for this type takes it. */
static bool set_default(opts *o, size_t key, const char *type, const char *value)
{
    char rule[80];
    const tn_rule cast = { "cast", rule };
    int n = snprintf(rule, sizeof rule, "%s,%s=%s", type, cast_keys[key], value);
    if (n >= (int)sizeof rule || strchr(value, ',') || tn_rule_check(&cast, NULL, NULL) != TN_OK)
        return false;
    o->cast_values[key] = value;
    return true;
}

/* --round up is parsed as "bool,round=up". */
static bool take_cast_default(opts *o, const option_row *row, const char *value)
{
    o->cast_default = row->name;
    return set_default(o, row->field, "bool", value);
}

/* --scale-mode ceil is parsed as "mxfp4,mode=ceil". */
static bool take_datatype_default(opts *o, const option_row *row, const char *value)
{
    o->datatype_default = row->name;
    return set_default(o, row->field, "mxfp4", value ? value : "yes");
}

/* A path, which is opened with the rules, or "none". */
static bool take_importance(opts *o, const option_row *row, const char *value)
{
    o->datatype_default = row->name;
    o->cast_values[CAST_IMPORTANCE] = value;
    return *value && !strchr(value, ',');
}

static bool take_rule(opts *o, const option_row *row, const char *value)
{
    o->rules[o->nrules++] = (tn_rule){ row->name, value };
    return true;
}

/* A rule of "convert", or what "show" prints. */
static bool take_slice(opts *o, const option_row *row, const char *value)
{
    return take_rule(o, row, value) && take_text(o, row, value);
}

/* A rule among those of --cast, so that the first match wins. */
static bool take_sparse(opts *o, const option_row *row, const char *value)
{
    const tn_rule rule = { "cast", value };
    (void)row;
    o->rules[o->nrules++] = rule;
    return tn_rule_makes(&rule, NULL) & TN_RULE_KEEPS_N_OF_M;
}

#define FIELD(name) offsetof(opts, name)
#define A_FORMAT "a name that \"tenon formats\" lists"
#define A_SIZE   "a size such as 4096, 64K or 2GB"
#define AN_ID    "a number from 0 to 4294967294"
#define A_SEED   "a number from 0 to 18446744073709551615"
#define ROUNDING "even, away, zero, half_up, trunc, up, down or stochastic"
#define ROTATION "none, hadamardN, walshN, hadamardN:SEED or walshN:SEED with N of 4, 8 ... 128"
/* A help text has at most 51 characters, so that its line fits 80 columns. */
static const option_row rows[OPT_COUNT] = {
    [OPT_LONG] = { NULL, NULL, NULL, "also print offsets, alignment, parts and metadata", take_flag,
                   FIELD(long_list), 'l' },
    [OPT_FROM] = { "from", "FORMAT", A_FORMAT, "read as FORMAT instead of detecting the format", take_format,
                   FIELD(from), 0 },
    [OPT_IO] = { "io", "mmap|pread", NULL, "map the input, or read it (network file systems)", take_io, 0,
                 0 },
    [OPT_SLICE] = { "slice", "I,A:B,...", NULL, "only these indices, as in Python: 0:4,:,-1", take_slice,
                    FIELD(slice), 0 },
    [OPT_FULL] = { "full", NULL, NULL, "print every value", take_flag, FIELD(full), 0 },
    [OPT_TO] = { "to", "FORMAT", A_FORMAT, "write FORMAT (default: from the suffix of OUT)", take_format,
                 FIELD(to), 0 },
    [OPT_ONLY] = { "only", "GLOB", NULL, "only tensors whose name matches (repeatable)", take_list,
                   FIELD(only), 0 },
    [OPT_EXCLUDE] = { "exclude", "GLOB", NULL, "without tensors whose name matches (repeatable)",
                      take_exclude, FIELD(only), 0 },
    [OPT_SORT] = { "sort", "KEY", "name, size, type or shape",
                   "order: name, size (largest first), type, shape", take_sort, 0, 0 },
    [OPT_TREE] = { "tree", NULL, NULL, "what names with dots have in common as a tree", take_flag,
                   FIELD(tree), 0 },
    [OPT_TOLERANCE] = { "tolerance", "ABS[,REL]", NULL, "equal if |a - b| <= ABS + REL * |a|", take_tolerance,
                        0, 0 },
    [OPT_RENAME] = { "rename", "OLD=NEW", NULL, "rename a tensor, or many: a.*=b.* (repeatable)", take_rename,
                     FIELD(rename), 0 },
    [OPT_CAST] = { "cast", "RULE", NULL, "[GLOB=]TYPE[,KEY=VALUE...] (repeatable)", take_rule, 0, 0 },
    [OPT_RECIPE] = { "recipe", "FILE", NULL, "read more --cast rules, one per line; # comments", take_list,
                     FIELD(recipes), 0 },
    [OPT_ROUND] = { "round", "MODE", ROUNDING, "rounding (default: even)", take_cast_default, CAST_ROUND, 0 },
    [OPT_OVERFLOW] = { "overflow", "MODE", "default, saturate, inf, nan or error",
                       "what values become that are too large", take_cast_default, CAST_OVERFLOW, 0 },
    [OPT_UNDERFLOW] = { "underflow", "MODE", "allow or error", "whether other values may become 0",
                        take_cast_default, CAST_UNDERFLOW, 0 },
    [OPT_NAN] = { "nan", "keep|zero|error", NULL, "what a NaN becomes (default: keep)", take_cast_default,
                  CAST_NAN, 0 },
    [OPT_SEED] = { "seed", "N", A_SEED, "seed of stochastic rounding (default: 0)", take_cast_default,
                   CAST_SEED, 0 },
    [OPT_COMPLEX] = { "complex", "real", NULL, "cast complex to real by dropping imaginary parts",
                      take_cast_default, CAST_COMPLEX, 0 },
    [OPT_SPARSE] = { "sparse", "RULE", "[GLOB=]N:M with M of 2, 4, 8 or 16 and N below M",
                     "[GLOB=]N:M: keep the N largest of each M values", take_sparse, 0, 0 },
    [OPT_VIRTUAL] = { "virtual", NULL, NULL, "fake quantization: keep the type, round the values",
                      take_datatype_default, CAST_VIRTUAL, 0 },
    [OPT_SCALE_MODE] = { "scale-mode", "MODE", "max, floor, auto, midmax, topbinade, option3, ceil or mse",
                         "how scales are chosen (default: max)", take_datatype_default, CAST_MODE, 0 },
    [OPT_ROTATE] = { "rotate", "ROTATION", ROTATION, "spread outliers: hadamardN[:SEED], walshN[:SEED]",
                     take_datatype_default, CAST_ROTATE, 0 },
    [OPT_DIALECT] = { "dialect", "ocp|ggml", NULL, "mxfp4: codes and scales of OCP or of ggml",
                      take_datatype_default, CAST_DIALECT, 0 },
    [OPT_IMPORTANCE] = { "importance", "FILE|none", "a file without a comma in its name, or none",
                         "block types: importance of columns (imatrix)", take_importance, 0, 0 },
    [OPT_REPORT] = { "report", NULL, NULL, "print the quantization error of each tensor", take_flag,
                     FIELD(report), 0 },
    [OPT_LAYOUT] = { "layout", "RULE", NULL, "[GLOB=]NHWC[,from=NCHW] (repeatable)", take_rule, 0, 0 },
    [OPT_PAD] = { "pad", "RULE", NULL, "[GLOB=]DIM=N[,DIM=N...][,value=V][,compat=mli]", take_rule, 0,
                  0 },
    [OPT_FORM] = { "form", "RULE", NULL, "[GLOB=]dense|coo|csr[,KEY=VALUE...] (repeatable)", take_rule, 0,
                   0 },
    [OPT_COMPRESS] = { "compress", "METHOD",
                       "zstd, zstd:LEVEL with LEVEL 1 to 22, deflate, deflate:LEVEL with LEVEL 1 to 9, "
                       "or none",
                       "zstd[:1-22], deflate[:1-9], none (default: as IN)", take_compress, 0, 0 },
    [OPT_CHECKSUM] = { "checksum", "METHOD", "crc32c, sha256 or none",
                       "crc32c, sha256 or none (default: as IN)", take_checksum, 0, 0 },
    [OPT_ALIGN] = { "align", "SIZE", "a power of two such as 64 or 4K", "align data to SIZE, a power of two",
                    take_align, FIELD(align), 0 },
    [OPT_SHARD_SIZE] = { "shard-size", "SIZE", A_SIZE, "safetensors: at most SIZE of data per file",
                         take_size, FIELD(shard_size), 0 },
    [OPT_DROP_NAMES] = { "drop-names", NULL, NULL, "drop names that OUT cannot hold (BTF, .npy)", take_flag,
                         FIELD(drop_names), 0 },
    [OPT_RAW] = { "raw", NULL, NULL, "take another tool's packed codes as plain numbers", take_flag,
                  FIELD(raw), 0 },
    [OPT_OPTION] = { "option", "F.KEY=VALUE", "FORMAT.KEY=VALUE",
                     "option of format F (\"tenon formats\" lists them)", take_format_option, 0, 0 },
    [OPT_GRAPH] = { "graph", "MODEL", "a path", "ONNX: the model whose graph the tensors are for",
                    take_onnx_option, 0, 0 },
    [OPT_EXTERNAL] = { "external", NULL, NULL, "ONNX: write data to OUT.onnx.data, aligned",
                       take_onnx_option, 0, 0 },
    [OPT_TYPES] = { "types", "LIST", NULL, "datatypes to compare: mxfp4,nvfp4,int4_b32", take_text,
                    FIELD(types), 0 },
    [OPT_DROP_METADATA] = { "drop-metadata", NULL, NULL, "drop metadata that OUT cannot hold", take_flag,
                            FIELD(drop_metadata), 0 },
    [OPT_OUT] = { "out", "PATH", "a path", "where to write: a file, or (export-c) a folder", take_path,
                  FIELD(out), 'o' },
    [OPT_MLI] = { "mli", "1.0|1.1|2.0", NULL, "version of MLI (default: 1.0)", take_mli, 0, 0 },
    [OPT_SECTION] = { "section", "NAME", NULL, "linker section of the data", take_text, FIELD(section), 0 },
    [OPT_NAME] = { "name", "NAME", NULL, "name of files and identifiers (default: as FILE)", take_text,
                   FIELD(name), 0 },
    [OPT_BINARY] = { "binary", NULL, NULL, "write a flat image and a header of offsets", take_flag,
                     FIELD(binary), 0 },
    [OPT_PLAN] = { "plan", NULL, NULL, "print the sizes; write nothing without -o", take_flag, FIELD(plan),
                   0 },
    [OPT_DRY_RUN] = { "dry-run", NULL, NULL, "check everything, print the plan, write nothing", take_flag,
                      FIELD(dry_run), 'n' },
    [OPT_SIDECAR] = { "sidecar", NULL, NULL, "write FILE.wia.json beside FILE", take_flag, FIELD(sidecar),
                      0 },
    [OPT_FORCE] = { "force", NULL, NULL, "replace the output if it exists", take_flag, FIELD(force), 'f' },
    [OPT_TENSOR] = { "tensor", "NAME", NULL, "metadata of this tensor, not of the file", take_text,
                     FIELD(tensor), 0 },
    [OPT_SET] = { "set", "KEY=VALUE", NULL, "set a key, or KEY:TYPE=VALUE (repeatable)", take_set,
                  FIELD(changes), 0 },
    [OPT_SET_FILE] = { "set-file", "KEY=PATH", NULL, "set a key to the text in a file (repeatable)", take_set,
                       FIELD(file_changes), 0 },
    [OPT_UNSET] = { "unset", "KEY", "a key without \"=\"", "remove a key (repeatable)", take_unset,
                    FIELD(changes), 0 },
    [OPT_IGNORE_METADATA] = { "ignore-metadata", NULL, NULL, "compare tensors only", take_flag,
                              FIELD(ignore_metadata), 0 },
    [OPT_STRICT] = { "strict", NULL, NULL, "refuse what is doubtful or loses much", take_flag,
                     FIELD(strict), 0 },
    [OPT_BIND] = { "bind", "NAME=VALUE", "a symbol and a whole number, as in batch=32",
                   "set a symbol (repeatable)", take_bind, FIELD(binds), 0 },
    [OPT_LEVEL] = { "level", "1|2|3", NULL, "required compliance level", take_level, 0, 0 },
    [OPT_SOCKET] = { "socket", "PATH", NULL, "socket that others attach to (required)", take_text,
                     FIELD(socket), 0 },
    [OPT_ALLOW_UID] = { "allow-uid", "N", AN_ID, "also trust this user (repeatable)", take_id, FIELD(uids),
                        0 },
    [OPT_ALLOW_GID] = { "allow-gid", "N", AN_ID, "also trust this group (repeatable)", take_id, FIELD(gids),
                        0 },
    [OPT_WRITABLE] = { "writable", NULL, NULL, "offer dense tensors in memory that all may write", take_flag,
                       FIELD(writable), 0 },
    [OPT_IN_PLACE] = { "in-place", NULL, NULL, "the files themselves instead of sealed copies", take_flag,
                       FIELD(in_place), 0 },
    [OPT_ALLOW_UNCHECKED] = { "allow-unchecked", NULL, NULL,
                              "accept what this build cannot read or check", take_flag,
                              FIELD(allow_unchecked), 0 },
    [OPT_VERIFY] = { "verify", NULL, NULL, "check every checksum", take_flag, FIELD(verify), 0 },
    [OPT_JOBS] = { "jobs", "N", "a number from 0 to 1024", "threads (default and 0: one per core)", take_jobs,
                   0, 'j' },
    [OPT_MEMORY] = { "memory", "SIZE", A_SIZE, "limit for zstd windows of all threads (256M)", take_size,
                     FIELD(memory), 0 },
    [OPT_MAX_BYTES] = { "max-bytes", "SIZE", A_SIZE, "limit for decoded data (1G, or 1000 x stored)",
                        take_size, FIELD(max_bytes), 0 },
    [OPT_JSON] = { "json", NULL, NULL, "print JSON, one object per line", take_flag, FIELD(json), 0 },
    [OPT_QUIET] = { "quiet", NULL, NULL, "print errors only", take_flag, FIELD(quiet), 'q' },
    [OPT_TRANSPOSE] = { "transpose", "RULE", NULL, "[GLOB=]1,0,2: another order of dimensions", take_rule, 0,
                        0 },
    [OPT_RESHAPE] = { "reshape", "RULE", NULL, "[GLOB=]16,-1: the same elements in another shape", take_rule,
                      0, 0 },
    [OPT_ADD] = { "add", "RULE", NULL, "[GLOB=]NUMBER: added to each element, in float32", take_rule, 0, 0 },
    [OPT_CONCAT] = { "concat", "RULE", NULL, "NEW=GLOB+GLOB...[,axis=N|,stack=N]: join tensors", take_rule, 0,
                     0 },
    [OPT_SPLIT] = { "split", "RULE", NULL, "GLOB=NEW+NEW...[,KEY=VALUE...]: cut tensors", take_rule, 0, 0 },
    [OPT_MAP] = { "map", "NAME", NULL, "names of Hugging Face and GGUF: llama, qwen ...", take_text,
                  FIELD(map), 0 },
    [OPT_TEMPLATE] = { "template", "FILE", "a path", "copy the metadata of FILE, such as a GGUF's tokenizer",
                       take_path, FIELD(metadata_from), 0 },
    [OPT_AGAINST] = { "against", "FILE", "a path", "compare with FILE, such as an earlier checkpoint",
                      take_path, FIELD(against), 0 },
    [OPT_ABORT] = { "abort", NULL, NULL, "end the uploads: the store forgets their parts", take_flag,
                    FIELD(abort), 0 },
    [OPT_OLDER_THAN] = { "older-than", "TIME", "a time such as 90m, 12h or 7d",
                         "only those begun before: 90m, 12h, 7d", take_time, FIELD(older_than), 0 },
    [OPT_TOGETHER] = { "together", NULL, NULL, "share the work with processes of the same command", take_flag,
                       FIELD(together), 0 },
    [OPT_WORK] = { "work", "DIR", "a path", "folder (default: OUT.tenon or FILE.COMMAND.tenon)", take_path,
                   FIELD(work), 0 },
    [OPT_RANKS] = { "ranks", "R/N", "R/N with R from 0 to N - 1",
                    "this is process R of N (default: the launcher's)", take_ranks, 0, 0 },
    [OPT_PIECE] = { "piece", "I[-J]", "a number from 0, or two with a dash", "only these pieces (repeatable)",
                    take_piece, FIELD(pieces), 0 },
    [OPT_PIECE_SIZE] = { "piece-size", "SIZE", A_SIZE, "about so many bytes in a piece (default: 64M)",
                         take_size, FIELD(piece_size), 0 },
    [OPT_STAMP] = { "stamp", NULL, NULL, "end the page with the time and Tenon's version", take_flag,
                    FIELD(stamp), 0 },
    [OPT_HELP] = { "help", NULL, NULL, "print this help", take_flag, FIELD(help), 'h' },
};

int usage_error(const char *command_name, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (*command_name)
        return give_up(EXIT_USAGE, "%s: %s (see \"tenon %s --help\")", command_name, text, command_name);
    return give_up(EXIT_USAGE, "%s (see \"tenon --help\")", text);
}

/* A list may be NULL: empty. */
static bool is_among(opt_list options, opt_id id)
{
    while (options && *options != OPT_COUNT && *options != id)
        options++;
    return options && *options == id;
}

bool command_takes(const command *c, opt_id id) { return id == OPT_HELP || is_among(c->accepts, id); }

option_text option_at(opt_id id)
{
    const option_row *row = &rows[id];
    return (option_text){ row->name, row->value, row->help, row->letter };
}

/* The first command that takes an option of this name, or NULL. */
static const command *command_with(const char *name)
{
    for (const command *const *c = commands; *c; c++)
        for (opt_id id = 0; id < OPT_HELP; id++)
            if (rows[id].name && strcmp(rows[id].name, name) == 0 && command_takes(*c, id))
                return *c;
    return NULL;
}

/* Words of other tools. */
static const struct { const char *word; opt_id id; } elsewhere[] = {
    { "dtype", OPT_CAST }, { "type", OPT_CAST }, { "precision", OPT_CAST }, { "quantize", OPT_CAST },
    { "format", OPT_TO }, { "output-format", OPT_TO }, { "input-format", OPT_FROM }, { "threads", OPT_JOBS },
    { "workers", OPT_JOBS }, { "overwrite", OPT_FORCE }, { "yes", OPT_FORCE }, { "include", OPT_ONLY },
    { "filter", OPT_ONLY }, { "tensors", OPT_ONLY }, { "pattern", OPT_ONLY }, { "ignore", OPT_EXCLUDE },
    { "skip", OPT_EXCLUDE }, { "long", OPT_LONG }, { "verbose", OPT_LONG }, { "silent", OPT_QUIET },
    { "compression", OPT_COMPRESS }, { "sparsity", OPT_SPARSE }, { "hash", OPT_CHECKSUM },
    { "atol", OPT_TOLERANCE }, { "rtol", OPT_TOLERANCE }, { "check", OPT_DRY_RUN }, { "key", OPT_TENSOR },
};

/* What an option of another tool is called here, as "--cast" or "-l"; NULL: this command has none. */
static const char *called_here(const command *c, const char *name)
{
    static char text[64];
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        const option_row *row = &rows[elsewhere[i].id];
        if (strcmp(elsewhere[i].word, name) != 0 || !command_takes(c, elsewhere[i].id))
            continue;
        if (row->name)
            snprintf(text, sizeof text, "--%s", row->name);
        else
            snprintf(text, sizeof text, "-%c", row->letter);
        return text;
    }
    return NULL;
}

/* Options of one format had names of their own before --option. */
static int unknown_option(const command *c, const char *word)
{
    char name[64];
    size_t dashes = strspn(word, "-"), n = strcspn(word + dashes, "=");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : 0), word + dashes);
    if (called_here(c, name))
        return usage_error(c->name, "unknown option --%s: did you mean %s?", name, called_here(c, name));
    if (strcmp(name, "output") == 0 || strcmp(name, "out") == 0 || strcmp(word, "-o") == 0)
        if (!command_takes(c, OPT_OUT) && strstr(c->operands, "OUT"))
            return usage_error(c->name, "no option %s: the output is the last operand, as in %s",
                               escaped(word), c->operands);
    static const char *const moved[][2] = {
        { "--filler", "safetensors.filler=yes" },
        { "--ocp-names", "safetensors.ocp-names=yes" },
        { "--btf-coo-code", "btf.coo-code=1" },
        { "--mtx-symmetric", "mtx.symmetric=yes" },
    };
    for (size_t i = 0; i < sizeof moved / sizeof *moved && command_takes(c, OPT_OPTION); i++)
        if (strncmp(word, moved[i][0], strlen(moved[i][0])) == 0)
            return usage_error(c->name, "%s is now --option %s", moved[i][0], moved[i][1]);
    const command *other = command_with(name);
    if (other)
        return usage_error(c->name, "no option --%s here, but \"tenon %s\" has it", name, other->name);
    tn_nearest nearest = { .word = name };
    for (opt_id id = 0; id < OPT_COUNT; id++)
        if (rows[id].name && command_takes(c, id))
            tn_nearest_offer(&nearest, rows[id].name);
    if (!nearest.found)
        return usage_error(c->name, "unknown option %s", escaped(word));
    return usage_error(c->name, "unknown option %s: did you mean --%s?", escaped(word), nearest.found);
}

/* getopt's own tables, made from ours; a long option's code is 256 + its row. */
static void make_getopt_tables(const command *c, struct option *longs, char *shorts)
{
    *shorts++ = ':';            /* tell a missing value from an unknown option */
    for (opt_id id = 0; id < OPT_COUNT; id++) {
        if (!command_takes(c, id))
            continue;
        int argument = rows[id].value ? required_argument : no_argument;
        if (rows[id].name)
            *longs++ = (struct option){ rows[id].name, argument, NULL, 256 + (int)id };
        if (rows[id].letter) {
            *shorts++ = rows[id].letter;
            if (rows[id].value)
                *shorts++ = ':';
        }
    }
    *longs = (struct option){ 0 };
    *shorts = '\0';
}

static size_t row_of(int code)
{
    if (code >= 256)
        return (size_t)code - 256;
    size_t id = 0;
    while (rows[id].letter != code)
        id++;
    return id;
}

static int bad_value(const command *c, const option_row *row, const char *value)
{
    tn_nearest nearest = { .word = value };
    if (row->take == take_format)
        offer_formats(&nearest);
    return usage_error(c->name, "option --%s takes %s, not \"%s\"%s", row->name,
                       row->wants ? row->wants : row->value, escaped(value), did_you_mean(&nearest));
}

static int parse_options(opts *o, const command *c, int argc, char **argv)
{
    struct option longs[OPT_COUNT + 1];
    char shorts[2 * OPT_COUNT + 2];
    make_getopt_tables(c, longs, shorts);
    opterr = 0;
    optind = 1;
    for (int code; (code = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        const char *word = argv[optind - 1];
        if (code == ':')
            return usage_error(c->name, "option %s needs a value", escaped(word));
        if (code == '?' && optopt >= 256)
            return usage_error(c->name, "option --%s takes no value", rows[row_of(optopt)].name);
        if (code == '?' && optopt == 'o')
            return unknown_option(c, "-o");
        if (code == '?' && optopt != 0)
            return usage_error(c->name, "unknown option -%c", optopt > ' ' && optopt < 127 ? optopt : '?');
        if (code == '?')
            return unknown_option(c, word);
        const option_row *row = &rows[row_of(code)];
        if (!row->take(o, row, optarg))
            return bad_value(c, row, optarg);
        o->given[row - rows] = true;
    }
    return EXIT_DONE;
}

static const size_t lists[] = { FIELD(only), FIELD(owned), FIELD(rename), FIELD(recipes), FIELD(binds),
                                FIELD(changes), FIELD(file_changes), FIELD(pieces) };
enum { NLISTS = sizeof lists / sizeof *lists };

static text_list *list_at(opts *o, size_t i) { return (text_list *)((char *)o + lists[i]); }

const char *first_given(const opts *o, opt_list options)
{
    for (; *options != OPT_COUNT; options++)
        if (o->given[*options])
            return rows[*options].name;
    return NULL;
}

int opts_parse(opts *o, const command *c, int argc, char **argv)
{
    *o = (opts){ .command = c->name, .rules = must_allocate((size_t)argc, sizeof *o->rules) };
    for (size_t i = 0; i < NLISTS; i++)
        list_at(o, i)->items = must_allocate((size_t)argc, sizeof(char *));
    o->format_options = must_allocate((size_t)argc, sizeof *o->format_options);
    o->uids.items = must_allocate((size_t)argc, sizeof(uint32_t));
    o->gids.items = must_allocate((size_t)argc, sizeof(uint32_t));
    int code = parse_options(o, c, argc, argv);
    if (code != EXIT_DONE || o->help)
        return code;
    o->files = argv + optind;
    o->nfiles = (size_t)(argc - optind);
    urls_hide(o->files, o->nfiles);
    if (o->nfiles < c->min_files && o->nfiles > 0)
        return usage_error(c->name, "expected %s but found only \"%s\"", c->operands, escaped(o->files[0]));
    if (o->nfiles < c->min_files)
        return usage_error(c->name, "expected %s", c->operands);
    if (o->nfiles > c->max_files)
        return usage_error(c->name, "expected %s but found \"%s\" too",
                           c->max_files ? c->operands : "no operand", escaped(o->files[c->max_files]));
    return EXIT_DONE;
}

void opts_free(opts *o)
{
    for (size_t i = 0; i < o->owned.count; i++)
        free((char *)o->owned.items[i]);
    for (size_t i = 0; i < NLISTS; i++)
        free(list_at(o, i)->items);
    for (size_t i = 0; i < o->nformat_options; i++)
        free((char *)o->format_options[i].format);
    free(o->format_options);
    free(o->rules);
    free(o->uids.items);
    free(o->gids.items);
}

/* "-o, --out PATH", "    --json" */
static void out_option(const option_row *row)
{
    char left[60] = "";
    size_t n = 0;
    if (row->letter)
        n += (size_t)snprintf(left, sizeof left, "-%c%s", row->letter, row->name ? ", " : "");
    if (row->name)
        n += (size_t)snprintf(left + n, sizeof left - n, "%s--%s", row->letter ? "" : "    ", row->name);
    if (row->value)
        snprintf(left + n, sizeof left - n, " %s", row->value);
    out("  %-25s  %s\n", left, row->help);
}

/* In the order of the table. */
static void out_options_but(opt_list options, opt_list but)
{
    out_text("\nOptions:\n");
    for (opt_id id = 0; id < OPT_HELP; id++)
        if (is_among(options, id) && !is_among(but, id))
            out_option(&rows[id]);
}

void out_options(opt_list options) { out_options_but(options, NULL); }

/* Of `all` there is nothing more to say but the topics. */
static void help_text(const command *c, bool all)
{
    out("Usage: tenon %s [OPTION]...%s%s\n%s\n", c->name, *c->operands ? " " : "", c->operands, c->summary);
    if (c->about)
        out("\n%s\n", c->about);
    if (c->details && all)
        out("\n%s\n", c->details);
    out_options_but(c->accepts, all ? NULL : c->elsewhere);
    out_option(&rows[OPT_HELP]);
    bool more = !all && (c->details || c->elsewhere);
    if (more || c->topics)
        out("More: tenon help %s%s%s\n", more ? c->name : "", more && c->topics ? "|" : "",
            c->topics ? c->topics : "");
    out("\nExample:\n%s\n", c->example);
}

void command_help(const command *c) { help_text(c, false); }
void command_pages(const command *c) { help_text(c, true); }

static tn_open_options open_options(const opts *o)
{
    return (tn_open_options){ .size = sizeof(tn_open_options), .format = o->from, .io = o->io,
                              .max_bytes = o->max_bytes, .raw_codes = o->raw, .strict = o->strict };
}

tn_status open_path(const opts *o, const char *path, tn_file **file, tn_error *err)
{
    tn_open_options options = open_options(o);
    if (is_standard(path))
        return open_standard_input(&options, file, err);
    return tn_open(url_whole(path), &options, file, err);
}

int open_input(const opts *o, const char *path, tn_file **file)
{
    tn_error err;
    *file = NULL;
    return open_path(o, path, file, &err) == TN_OK ? EXIT_DONE : say_error(path, &err);
}

int open_inputs(const opts *o, size_t n, tn_file **file)
{
    tn_open_options options = open_options(o);
    const char *const *paths = (const char *const *)o->files;
    tn_error err;
    *file = NULL;
    if (n == 1)
        return open_input(o, paths[0], file);
    for (size_t i = 0; i < n; i++)
        if (is_standard(paths[i]))
            return usage_error(o->command, "standard input (-) cannot be one of several files");
    const char **whole = must_allocate(n, sizeof *whole);
    for (size_t i = 0; i < n; i++)
        whole[i] = url_whole(paths[i]);
    tn_status status = tn_open_several(whole, n, &options, file, &err);
    free(whole);
    return status == TN_OK ? EXIT_DONE : say_error(NULL, &err);
}
