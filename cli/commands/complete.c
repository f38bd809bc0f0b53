/* cli/commands/complete.c - what could follow the words typed so far: "tenon complete WORD...", for shells.
 *
 * Each line is a word, a tab and what it means.  A line ":files" or ":folders" asks the shell for those. */
#include "ui/opts.h"
#include "ui/topics.h"

#include <stdio.h>
#include <string.h>

typedef struct completion {
    const char    *before;      /* "--to=" where the value is part of the word, or "" */
    size_t         nbefore;
    const char    *word;        /* what is typed of it */
    const command *command;     /* or NULL */
    int            nwords;
    char         **words;
} completion;

static void offer(const completion *c, const char *word, const char *meaning)
{
    if (strncmp(word, c->word, strlen(c->word)) == 0)
        out("%.*s%s\t%s\n", (int)c->nbefore, c->before, word, meaning ? meaning : "");
}

/* Words of a text, cut at any of these characters. */
static void offer_words(const completion *c, const char *text, const char *cuts)
{
    char word[64];
    for (size_t n; *text; text += n + (text[n] != '\0')) {
        n = strcspn(text, cuts);
        if (n > 0 && n < sizeof word) {
            memcpy(word, text, n);
            word[n] = '\0';
            offer(c, word, NULL);
        }
    }
}

static void offer_formats(const completion *c)
{
    const tn_format_info *f;
    for (size_t i = 0; (f = tn_format_at(i)); i++)
        offer(c, f->name, f->title);
}

static void offer_written_formats(const completion *c)
{
    const tn_format_info *f;
    for (size_t i = 0; (f = tn_format_at(i)); i++)
        if (f->writes)
            offer(c, f->name, f->title);
}

/* FORMAT.KEY=VALUE */
static void offer_format_options(const completion *c)
{
    const tn_format_info *f;
    for (size_t i = 0; (f = tn_format_at(i)); i++)
        for (const tn_format_key *k = f->keys; k && k->name; k++)
            for (const char *value = k->values; *value;) {
                char text[128];
                int n = (int)strcspn(value, "|");
                snprintf(text, sizeof text, "%s.%s=%.*s", f->name, k->name, n, value);
                offer(c, text, k->title);
                value += n + (value[n] != '\0');
            }
}

static void offer_datatypes(const completion *c)
{
    const tn_datatype_name *d;
    for (size_t i = 0; (d = tn_datatype_at(i)); i++)
        offer(c, d->name, d->text);
}

static void offer_types(const completion *c)
{
    for (tn_dtype dtype = TN_UNKNOWN + 1; dtype < TN_DTYPE_COUNT; dtype++) {
        const tn_dtype_info *info = tn_dtype_get(dtype);
        if (info && info->short_name)
            offer(c, info->short_name, info->name);
    }
    offer_words(c, "sa8 sa32", " ");
    offer_datatypes(c);
}

static void offer_layouts(const completion *c)
{
    const tn_device_info *device = tn_device_query(0);
    for (size_t i = 0; device && i < device->nlayouts; i++)
        offer(c, device->layouts[i], NULL);
}

static void offer_value(const completion *c, opt_id id)
{
    static const struct { opt_id id; const char *words; } lists[] = {
        { OPT_COMPRESS, "zstd zstd:1 zstd:3 zstd:9 zstd:19 none" }, { OPT_CHECKSUM, "crc32c sha256 none" },
        { OPT_SPARSE, "1:2 2:4 4:8 8:16" }, { OPT_SHARD_SIZE, "1G 5G" },
        { OPT_SCALE_MODE, "max floor auto midmax topbinade option3 ceil mse" }, { OPT_FORM, "dense coo csr" },
        { OPT_ROTATE, "none hadamard16 hadamard32 hadamard64 hadamard128 walsh16 walsh32 walsh64 walsh128" },
        { OPT_ROUND, "even away zero half_up trunc up down stochastic" }, { OPT_COMPLEX, "real" },
        { OPT_OVERFLOW, "default saturate inf nan error" }, { OPT_UNDERFLOW, "allow error" },
        { OPT_SORT, "name size type shape" }, { OPT_MAP, "llama qwen gemma gemma2 phi3 nemotron gpt2" },
    };
    static const struct { opt_id id; void (*offer)(const completion *c); } tables[] = {
        { OPT_TO, offer_written_formats }, { OPT_FROM, offer_formats }, { OPT_OPTION, offer_format_options },
        { OPT_CAST, offer_types }, { OPT_TYPES, offer_datatypes }, { OPT_LAYOUT, offer_layouts },
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i].id == id)
            offer_words(c, lists[i].words, " ");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i].id == id)
            tables[i].offer(c);
    if (id == OPT_ALIGN)
        offer_words(c, c->command == &cmd_export_c ? "4 8 64 4K" : "64 4K 2M", " ");
    const char *value = option_at(id).value;
    if (value && strchr(value, '|') && !strpbrk(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        offer_words(c, value, "|");
    if (id == OPT_OUT && c->command == &cmd_export_c)
        out_text(":folders\n");
    else if (id == OPT_OUT || id == OPT_RECIPE || id == OPT_SOCKET || id == OPT_IMPORTANCE ||
             id == OPT_TEMPLATE || id == OPT_MAP)
        out_text(":files\n");
}

static void offer_options(const completion *c)
{
    for (opt_id id = 0; id < OPT_COUNT; id++) {
        const option_text t = option_at(id);
        char text[64];
        if (!command_takes(c->command, id))
            continue;
        if (t.name)
            snprintf(text, sizeof text, "--%s", t.name);
        else
            snprintf(text, sizeof text, "-%c", t.letter);
        offer(c, text, t.help);
    }
}

static void offer_commands(const completion *c)
{
    for (const command *const *k = commands; *k; k++)
        offer(c, (*k)->name, (*k)->summary);
    for (const command_alias *a = aliases; a->name; a++)
        offer(c, a->name, find_command(a->command)->summary);
}

/* The option that a word names, or OPT_COUNT. */
static opt_id option_named(const command *c, const char *word, size_t n)
{
    for (opt_id id = 0; id < OPT_COUNT; id++) {
        const option_text t = option_at(id);
        if (!command_takes(c, id) || !t.value)
            continue;
        if (t.name && n == strlen(t.name) + 2 && strncmp(word, "--", 2) == 0 &&
            strncmp(word + 2, t.name, n - 2) == 0)
            return id;
        if (t.letter && n == 2 && word[0] == '-' && word[1] == t.letter)
            return id;
    }
    return OPT_COUNT;
}

/* The names of a file's tensors. */
static bool offer_tensors(const completion *c)
{
    tn_file *file;
    if (c->command != &cmd_show || c->nwords < 3 || tn_open(c->words[c->nwords - 2], NULL, &file, NULL))
        return false;
    for (size_t i = 0; i < tn_file_count(file); i++)
        offer(c, escaped(tn_file_tensor(file, i)->name), NULL);
    tn_close(file);
    return true;
}

/* Words behind a command. */
static void offer_behind(completion *c)
{
    const char *last = c->word, *equals = strchr(last, '='), *previous = c->words[c->nwords - 2];
    opt_id id = OPT_COUNT;
    if (last[0] == '-' && equals) {     /* --to=zt */
        id = option_named(c->command, last, (size_t)(equals - last));
        c->before = last;
        c->nbefore = (size_t)(equals + 1 - last);
        c->word = equals + 1;
    } else if (c->nwords > 2) {
        id = option_named(c->command, previous, strlen(previous));
    }
    if (id != OPT_COUNT) {
        offer_value(c, id);
    } else if (last[0] == '-') {
        offer_options(c);
    } else if (c->command == &cmd_help) {
        offer_commands(c);
        for (size_t i = 0; topic_at(i); i++)
            offer(c, topic_at(i)->name, topic_at(i)->summary);
    } else if (!offer_tensors(c)) {
        out_text(":files\n");
    }
}

int complete(int nwords, char **words)
{
    completion c = { .before = "", .word = nwords > 0 ? words[nwords - 1] : "", .nwords = nwords,
                     .words = words };
    if (nwords > 1)
        c.command = find_command(words[0]) ? find_command(words[0]) : &cmd_ls;
    if (c.command) {
        offer_behind(&c);
        return EXIT_DONE;
    }
    offer_commands(&c);
    offer_words(&c, "--help --version", " ");
    out_text(":files\n");
    return EXIT_DONE;
}
