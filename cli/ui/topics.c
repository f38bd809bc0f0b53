/* cli/ui/topics.c - what "tenon help TOPIC" explains: subjects that several options share.
 *
 * Each topic is a screen or two: at most 48 lines of 80 columns. */
#include "ui/topics.h"

#include <string.h>

static const topic topics[] = {
    { .name = "rules",
      .summary = "How rules choose tensors.",
      .about = "A rule is [GLOB=]VALUE[,KEY=VALUE...].  It applies to the tensors whose name\n"
               "matches GLOB, or without GLOB to all.  For each option the first matching rule\n"
               "wins.  Tensors without a match are left unchanged.  --cast, --recipe and\n"
               "--sparse share one list of rules.  A rule that matches no tensor is an error.\n\n"
               "In a GLOB * matches any text, ? one character.  re:EXPRESSION is a regular\n"
               "expression (POSIX, extended) that may match anywhere in a name; in --rename NEW\n"
               "replaces the match, \\1 is a group:\n"
               "  --rename 're:^model\\.layers\\.([0-9]+)=blk.\\1'\n"
               "Otherwise either side of --rename may have one *, for the same text:\n"
               "  --rename 'model.*=*'\n"
               "The GLOB of a rule ends at the last = before the first comma.  A file of\n"
               "--recipe has one rule per line; # begins a comment.",
      .options = OPTIONS(OPTS_RULES),
      .example = "  $ tenon convert in.safetensors out.zt --cast '*norm*=f32' --cast '*=bf16'" },
    { .name = "cast",
      .also = "casts",
      .summary = "How values are cast to another type.",
      .about = "The TYPE of --cast is an element type (\"tenon types\"), or see \"tenon help\n"
               "datatypes\" and \"tenon help fixed-point\".  Every value is rounded once, from its\n"
               "exact value; the result is the same on every machine.  Options of these names\n"
               "set defaults for all rules; a key of a rule wins.\n\n"
               "  round     to nearest with ties to even (the default), away from zero, toward\n"
               "            zero or half_up (toward plus infinity); toward zero (trunc), up or\n"
               "            down; stochastic (up with the probability of the distance)\n"
               "  overflow  default (infinity, or saturate in types without it), saturate (the\n"
               "            largest, for infinities too), inf (an error in types without it),\n"
               "            nan (in types without infinity), error; codes with scales have\n"
               "            saturate and error only\n"
               "  underflow allow: values other than 0 may become 0; error\n"
               "  nan       keep (an error in types without NaN), zero, error\n"
               "  times=X   multiply each value by X first (no option of that name)\n\n"
               "A plain cast that makes more than 1 % of a tensor's values 0, or finds more than\n"
               "1 % beyond the largest value, is a warning; with --strict it is an error.",
      .options = OPTIONS(OPTS_CASTS, OPT_STRICT),
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
    { .name = "together",
      .also = "processes",
      .summary = "How many processes share one conversion or one look at a file.",
      .about = "Any number of processes that are given the same command with --together, on one\n"
               "machine or on several that share a file system, divide it among themselves; the\n"
               "last one publishes OUT.  They need not know of each other: mpirun, srun, a job\n"
               "array, GNU parallel or two terminals may start them, at any time.\n\n"
               "They meet in the folder OUT.tenon.  Each takes a piece (about 64 MiB), makes it\n"
               "and records it.  If one is killed, the others take over its piece; if all are,\n"
               "the same command goes on where they stopped.  OUT is the same, byte by byte, for\n"
               "any number of processes, and appears whole or not at all.\n\n"
               "The same in steps: \"tenon plan IN OUT\" makes the folder, \"tenon run OUT.tenon\"\n"
               "makes pieces, \"tenon finish OUT.tenon\" publishes, \"tenon abandon OUT.tenon\"\n"
               "removes it; \"tenon ls OUT.tenon\" says how far it is.\n\n"
               "verify, stats, diff and compare-types take --together as well: one process\n"
               "prints what one alone would print, and all return the same exit status.  They\n"
               "meet in FILE.COMMAND.tenon beside the first file; --work names another folder.\n\n"
               "Where the file system has no locks that all processes see, that is said, and\n"
               "pieces are dealt by rank: from --ranks, TENON_RANK and TENON_RANKS, or the\n"
               "environment of the launcher.\n\n"
               "OUT may be s3://BUCKET/KEY: then --work names a folder that all of them share.\n"
               "docs/scale.md has recipes for MPI, Slurm, Kubernetes, GNU parallel, Dask, Ray.",
      .options = OPTIONS(OPTS_TOGETHER, OPT_PIECE),
      .example = "  $ mpirun -n 8 tenon convert --together in.safetensors out.zt --cast mxfp4" },
    { .name = "urls",
      .also = "remote",
      .summary = "How files that are elsewhere are named, read and written.",
      .about = "  https://HOST/PATH            a file on a web server; also http://\n"
               "  s3://BUCKET/KEY              an object of S3, or of a store like it\n"
               "  hf://ORG/REPO[@REV][/PATH]   a model on the Hugging Face hub\n\n"
               "A URL is an input of every command; one that ends in a slash, or names a whole\n"
               "model, is a folder.  Only what is needed is fetched.  s3:// is also an output of\n"
               "convert: the object appears whole or not at all.\n\n"
               "Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile\n"
               "in ~/.aws, or the machine; of the hub from HF_TOKEN; of web servers from\n"
               "~/.netrc.  They are never printed, nor is the query of a URL.\n\n"
               "Variables:\n"
               "  AWS_ENDPOINT_URL        another store than AWS\n"
               "  AWS_REGION              the region of the bucket\n"
               "  HF_ENDPOINT             another hub\n"
               "  TENON_REMOTE_PARALLEL   requests at a time (8)\n"
               "  TENON_REMOTE_TIMEOUT    seconds without progress until a try fails (20)",
      .example = "  $ tenon hf://ORG/REPO\n"
                 "  $ tenon convert s3://BUCKET/model.safetensors s3://BUCKET/model.zt" },
    { .name = "shapes",
      .summary = "How to choose indices, change shapes, join and cut tensors.",
      .about = "  slice      per dimension A:B[:STEP] or an index, as in Python; the rest whole\n"
               "  add        a number, added to each element in float32\n"
               "  concat     NEW=GLOB+GLOB...: in the order of the globs, each by the numbers in\n"
               "             the names; along axis=N (0), or stack=N, a new dimension; the first\n"
               "             stars of a GLOB stand for those of NEW, the others enumerate;\n"
               "             tensors of several types take the type that --cast gives NEW\n"
               "  split      GLOB=NEW+NEW...: along axis=N (0) into equal parts or sizes=A+B...;\n"
               "             GLOB=NEW,unstack=N: one per index, which NEW's last star becomes\n\n"
               "They come first and in this order, whatever the order of the options: slice,\n"
               "transpose, reshape, add, concat or split.  Their globs match names in IN; those\n"
               "of --cast, --layout, --pad and --form match the names of what comes of them.\n"
               "In the globs of concat and split only * is special.",
      .options = OPTIONS(OPTS_SHAPES),
      .example = "  $ tenon convert in.zt out.zt --slice 'emb=0:1000' --concat 'qkv.*=q.*+k.*+v.*'" },
    { .name = "maps",
      .also = "map",
      .summary = "How to go from Hugging Face to GGUF and back.",
      .about = "--map renames tensors and moves their data as llama.cpp expects it: rows of q and k\n"
               "for its rope, experts in one tensor, norms + 1.  The direction follows from the\n"
               "names in IN.  A name that the table does not have is an error.\n\n"
               "  llama      Llama, Mistral, Mixtral\n"
               "  qwen       Qwen 2, 2.5 and 3; Qwen 3 with experts too\n"
               "  gemma      Gemma;  gemma2: Gemma 2, and text models of Gemma 3\n"
               "  phi3       Phi 3, 3.5 and 4;  nemotron: Nemotron 3 and 4;  gpt2: GPT-2\n"
               "  PATH       a table of your own (docs/maps.md)\n\n"
               "Rules see the new names.  How many heads there are is in config.json beside IN,\n"
               "in the keys of a GGUF, or in those of --template, which also gives OUT a\n"
               "tokenizer and the keys of the architecture.",
      .options = OPTIONS(OPTS_NAMES),
      .example = "  $ tenon convert model/ out.gguf --map llama --template other.gguf" },
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
               "  2  usage: an unknown command, option or type; a pattern that matches no\n"
               "     tensor; a rule that cannot be applied; an output that exists (--force)\n"
               "  3  the system failed: a file that cannot be opened, no memory, no space, or\n"
               "     a file to be replaced that has changed since it was read\n\n"
               "With several files the highest status counts.  A signal ends the tool by that\n"
               "signal; nothing is left behind (\"tenon serve\" ends with 0).  Results go to\n"
               "stdout, messages to stderr.  With --json also a failure is an object on stdout.",
      .example = "  $ tenon verify model.zt && echo good" },
    { .name = "output",
      .summary = "How files are written.",
      .about = "Without options a tensor keeps its compression and its checksum, if the format\n"
               "has them; in .npz nothing is compressed unless --compress deflate asks for it.\n"
               "What the format cannot hold is an error unless an option allows to drop it.\n"
               "Padding is removed unless --pad asks for it.\n\n"
               "safetensors allows no gaps: there --align aligns the data section, and with\n"
               "--option safetensors.filler=yes each tensor, by fillers between them.\n\n"
               "--shard-size splits the tensors over files beside an index.  OUT is\n"
               "STEM.safetensors or STEM.safetensors.index.json; either way the set is opened by\n"
               "the index.  What fits into one file is STEM.safetensors without an index.  A set\n"
               "that replaces another has an id in the names of its files.  The index is\n"
               "replaced last, atomically; then the files of the old set are removed, also when\n"
               "--force replaces a set by a single file.\n\n"
               "Splits of GGUF have no index: OUT.gguf becomes OUT-00001-of-00003.gguf and so\n"
               "on, and none of these names may be in use.",
      .options = OPTIONS(OPTS_OUTPUT),
      .example = "  $ tenon convert in.safetensors out.zt --compress zstd:9 --checksum sha256" },
    { .name = "input",
      .summary = "How files are read, and the limits.",
      .about = "Formats are detected by content; those that cannot be need --from (\"tenon\n"
               "formats\").  A sharded safetensors model is opened by its index file, a split\n"
               "GGUF model by its first file.  An input that is truncated while it is read is\n"
               "an error, and nothing is written.\n\n"
               "A file can decode to much more than it stores: --max-bytes limits how much of\n"
               "that is kept (written, offered to others, held in memory or in a temporary\n"
               "file), of all tensors together, and with --form of each.  Data that only passes\n"
               "through in windows has no such limit.  Threads whose zstd windows would exceed\n"
               "--memory wait for others; data with a larger window is refused.  The result does\n"
               "not depend on --jobs.\n\n"
               "A folder stands for the index of a set in it, else for model.safetensors, else\n"
               "for its only tensor file.  \"-\" is standard input: a pipe is first copied into a\n"
               "temporary file.  \"tenon convert IN - --to FORMAT\" writes to standard output.\n\n"
               "A SIZE is a number of bytes.  K, M, G, T and KiB, MiB, GiB, TiB are powers of\n"
               "1024; KB, MB, GB, TB are powers of 1000.",
      .options = OPTIONS(OPTS_INPUT, OPT_RAW, OPT_JOBS),
      .example = "  $ tenon ls train-images-idx3-ubyte --from idx" },
    { .name = "files",
      .also = "environment",
      .summary = "Files that are written and replaced, and the environment.",
      .about = "While a file is being written its bytes are in an unnamed file in the folder of\n"
               "the output, which disappears if the program is killed.  If the file system has\n"
               "no unnamed files it is called .tenon-*.tmp meanwhile; a later run removes one\n"
               "that is left behind.\n\n"
               "A file that replaces another (--force, \"tenon meta --set\") gets its owner,\n"
               "group, mode, access list and extended attributes, as far as the system allows;\n"
               "what it does not is reported.  Nobody gets access who had none.  Set-user-ID,\n"
               "set-group-ID and capabilities are not kept.  Other hard links still lead to the\n"
               "old file.  If the output is a symbolic link, the file that it leads to is\n"
               "replaced; a link of another user in a folder that everybody may write to, such\n"
               "as /tmp, is not followed.\n\n"
               "Names and texts from files are printed escaped: control, invisible and\n"
               "direction-changing characters, quotes and backslashes appear as \\n, \\\", \\xNN\n"
               "or \\u{N}.  -- ends the options, for names that begin with a hyphen.\n\n"
               "  NO_COLOR   if set and not empty, output has no colour; else on terminals only\n"
               "  TERM       dumb: no colour\n"
               "  LC_ALL     (LC_CTYPE, LANG) if not UTF-8, histograms are drawn in ASCII\n"
               "  TMPDIR     where data is decoded that cannot be used in place, in files\n"
               "             without a name (default: /var/tmp or /tmp)\n"
               "  TENON_CPU  scalar, avx2, avx512 or neon: no better instructions than these;\n"
               "             the results are the same",
      .example = "  $ TMPDIR=/scratch tenon diff old.zt new.zt" },
};
enum { NTOPICS = sizeof topics / sizeof *topics };

const topic *topic_at(size_t i) { return i < NTOPICS ? &topics[i] : NULL; }

const topic *find_topic(const char *name)
{
    for (const topic *t = topics; t < topics + NTOPICS; t++)
        if (strcmp(t->name, name) == 0 || (t->also && strcmp(t->also, name) == 0))
            return t;
    return NULL;
}

void topic_help(const topic *t)
{
    out("%s\n\n%s\n", t->summary, t->about);
    if (t->options)
        out_options(t->options);
    out("\nExample:\n%s\n", t->example);
}

void out_topics(void)
{
    for (size_t i = 0; i < NTOPICS; i++)
        out("%s%s", i ? ", " : "", topics[i].name);
}

const char *nearest_topic(const char *name)
{
    tn_nearest nearest = { .word = name };
    for (size_t i = 0; i < NTOPICS; i++)
        tn_nearest_offer(&nearest, topics[i].name);
    return did_you_mean(&nearest);
}
