/* cli/ui/topics.c - what "tenon help TOPIC" explains: subjects that several options share.
 *
 * Each topic is one screen: at most 24 lines of 80 columns. */
#include "ui/topics.h"

#include "ui/opts.h"

#include <string.h>

typedef struct topic {
    const char *name;
    const char *also;           /* another name, or NULL */
    const char *summary;        /* one line */
    const char *about;
    opt_list    options;        /* or NULL */
    const char *example;        /* lines after "$ " */
} topic;

static const topic topics[] = {
    { .name = "rules",
      .summary = "How rules choose tensors.",
      .about = "A rule is [GLOB=]VALUE[,KEY=VALUE...].  It applies to the tensors whose name\n"
               "matches GLOB, or without GLOB to all.  For each option the first matching rule\n"
               "wins.  Tensors without a match are left unchanged.  --cast, --recipe and\n"
               "--sparse share one list of rules.  In a GLOB * matches any text, ? one\n"
               "character.  re:EXPRESSION is a regular expression (POSIX, extended) that may\n"
               "match anywhere in a name; in --rename NEW replaces the match, \\1 is a group:\n"
               "--rename 're:^model\\.layers\\.([0-9]+)=blk.\\1'.",
      .options = OPTIONS(OPTS_RULES),
      .example = "  $ tenon convert in.safetensors out.zt --cast '*norm*=f32' --cast '*=bf16'" },
    { .name = "cast",
      .also = "casts",
      .summary = "How values are cast to another type.",
      .about = "The TYPE of --cast is an element type (\"tenon types\"), or see \"tenon help\n"
               "datatypes\" and \"tenon help fixed-point\".  Every value is rounded once.  The\n"
               "options below set defaults for all rules; a key of the same name in a rule wins.\n\n"
               "  round     to nearest with ties to even, away, zero or half_up; toward zero\n"
               "            (trunc), up or down; stochastic\n"
               "  overflow  default (infinity, or saturate in types without it), saturate, inf,\n"
               "            nan, error\n"
               "  nan       keep (an error in types without NaN), zero, error\n"
               "  times=X   multiply each value by X first (no option of that name)",
      .options = OPTIONS(OPTS_CASTS),
      .example = "  $ tenon convert in.npy out.npy --cast f32,times=0.5,round=away" },
    { .name = "fixed-point",
      .summary = "How values become the types of embARC MLI: fx8, fx16, sa8, sa32.",
      .about = "The value of fx8 and fx16 is code / 2^frac.  frac=N sets the fractional bits;\n"
               "frac=auto (the default) picks the most that clip no value; frac=least\n"
               "minimises the squared error.  sa8 and sa32 have a zero point and a scale of 15\n"
               "bits, with the keys of per= (\"tenon help datatypes\").\n\n"
               "Values round with ties away from zero; codes of another scale half_up.  round=\n"
               "selects another mode.  compat=mli computes as MLI's own code does, also in a\n"
               "cast back to a float type.  \"tenon export-c\" writes the result as C source.",
      .example = "  $ tenon convert in.safetensors out.zt --cast '*.bias=fx16' --cast '*=fx8'\n"
                 "  $ tenon convert in.safetensors out.zt --cast sa8,per=channel,axis=0" },
    { .name = "shapes",
      .summary = "How to choose indices, change shapes, join and cut tensors.",
      .about = "  slice      per dimension A:B[:STEP] or an index, as in Python; the rest whole\n"
               "  concat     NEW=GLOB+GLOB...: in the order of the globs, each by the numbers in\n"
               "             the names; along axis=N (0), or stack=N, a new dimension; the first\n"
               "             stars of a GLOB stand for those of NEW, the others enumerate;\n"
               "             tensors of several types take the type that --cast gives NEW\n"
               "  split      GLOB=NEW+NEW...: along axis=N (0) into equal parts or sizes=A+B...;\n"
               "             GLOB=NEW,unstack=N: one per index, which NEW's last star becomes\n\n"
               "They come first and in this order, whatever the order of the options: slice,\n"
               "transpose, reshape, concat or split.  Their globs match names in IN; those of\n"
               "--cast, --layout, --pad and --form match the names of what comes of them.\n"
               "In the globs of concat and split only * is special.",
      .options = OPTIONS(OPTS_SHAPES),
      .example = "  $ tenon convert in.zt out.zt --slice 'emb=0:1000' --concat 'qkv.*=q.*+k.*+v.*'" },
    { .name = "layouts",
      .summary = "How to reorder and pad dimensions.",
      .about = "A layout has one letter per dimension, in the order of the shape.  --layout\n"
               "reorders the dimensions and the data.  from= names the present layout, unless\n"
               "the file records it.  1 stands for a dimension of extent 1.\n\n"
               "--pad extends each DIM (a letter or a number) to a multiple of N.  The padding\n"
               "is zero, value=V, or in codes the zero point (with compat=mli code 0).  The\n"
               "tensor keeps its shape: padding is a property of the storage.",
      .options = OPTIONS(OPT_LAYOUT, OPT_PAD),
      .example = "  $ tenon convert in.safetensors out.zt --layout 'conv*=NHWC,from=NCHW'" },
    { .name = "sparse",
      .also = "forms",
      .summary = "How to store sparse tensors.",
      .about = "coo and csr store only the nonzero elements; dense stores all of them.\n\n"
               "  threshold=T     drop values of magnitude T and below\n"
               "  duplicates=sum  add up entries with the same indices (default: refuse them)\n"
               "  index=TYPE      type of the indices: int32, int64, uint32 or uint64",
      .options = OPTIONS(OPT_FORM),
      .example = "  $ tenon convert pruned.safetensors small.zt --form csr,threshold=0.001" },
    { .name = "exit",
      .summary = "What the exit status of a command says.",
      .about = "  0  done\n"
               "  1  the input is bad, or differs: a damaged file, a wrong checksum, no such\n"
               "     tensor, two files that \"tenon diff\" finds different\n"
               "  2  usage: an unknown command, option or type; an output that exists (--force)\n"
               "  3  the system failed: a file that cannot be opened, no memory, no space\n\n"
               "A signal ends the tool by that signal; nothing is left behind.  Results go to\n"
               "stdout, messages to stderr.",
      .example = "  $ tenon verify model.zt && echo good" },
    { .name = "output",
      .summary = "How files are written.",
      .about = "Without options a tensor keeps its compression and its checksum.  What the\n"
               "format cannot hold is an error unless an option allows to drop it.",
      .options = OPTIONS(OPTS_OUTPUT),
      .example = "  $ tenon convert in.safetensors out.zt --compress zstd:9 --checksum sha256" },
    { .name = "input",
      .summary = "How files are read, and the limits.",
      .about = "Formats are detected by content; those that cannot be need --from (\"tenon\n"
               "formats\").  A file can decode to much more than it stores: --max-bytes limits\n"
               "how much of that is kept.  A SIZE is a number of bytes.  K, M, G and KiB, MiB,\n"
               "GiB are powers of 1024; KB, MB, GB are powers of 1000.",
      .options = OPTIONS(OPTS_INPUT, OPT_RAW, OPT_JOBS),
      .example = "  $ tenon ls train-images-idx3-ubyte --from idx" },
};
enum { NTOPICS = sizeof topics / sizeof *topics };

bool topic_help(const char *name)
{
    const topic *t = topics;
    while (t < topics + NTOPICS && strcmp(t->name, name) != 0 && (!t->also || strcmp(t->also, name) != 0))
        t++;
    if (t == topics + NTOPICS)
        return false;
    out("%s\n\n%s\n", t->summary, t->about);
    if (t->options)
        out_options(t->options);
    out("\nExample:\n%s\n", t->example);
    return true;
}

void out_topics(void)
{
    for (size_t i = 0; i < NTOPICS; i++)
        out("%s%s", i ? ", " : "", topics[i].name);
}

const char *topic_at(size_t i) { return i < NTOPICS ? topics[i].name : NULL; }

const char *nearest_topic(const char *name)
{
    tn_nearest nearest = { .word = name };
    for (size_t i = 0; i < NTOPICS; i++)
        tn_nearest_offer(&nearest, topics[i].name);
    return did_you_mean(&nearest);
}
