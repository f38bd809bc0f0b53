/* Metadata: edits of any file are refused with a reason, and then the file is what
 * it was, or made, and then nothing else has changed. */
#include "mutate.h"
#include "scarce.h"
#include "scratch.h"
#include "walk.h"

#define KEY_MAX 24

/* The input is edits, each a byte that says what and two texts, then "\xff" and a file. */
typedef struct edits {
    size_t       count;
    tn_meta_edit at[4];
    char         key[4][KEY_MAX + 1], text[4][KEY_MAX + 1], tensor[4][KEY_MAX + 1];
} edits;

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    const uint8_t *mark = size ? memchr(data, 0xff, size) : NULL;
    if (!mark)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t from = (size_t)(mark - data) + 1;
    if (mutant_pick(&m, 2)) {
        mutate_range(&m, 0, from - 1);
        return m.size;
    }
    bool zt = size - from > 8 && memcmp(data + from, "ZTEN0001", 8) == 0;
    size_t n = zt ? mutate_ztensor(data + from, size - from, max_size - from, seed)
                  : mutate_safetensors(data + from, size - from, max_size - from, seed);
    return from + n;
}

static const uint8_t *take_text(const uint8_t *at, const uint8_t *end, char to[KEY_MAX + 1])
{
    size_t n = 0;
    for (; at < end && *at != '\n'; at++)
        if (n < KEY_MAX && *at)
            to[n++] = (char)*at;
    to[n] = '\0';
    return at < end ? at + 1 : end;
}

/* Lines of three: what (r removes, t is a tensor's), key, text; a tensor's name stands before the key. */
static void read_edits(const uint8_t *at, const uint8_t *end, edits *e)
{
    for (e->count = 0; at < end && e->count < 4; e->count++) {
        size_t i = e->count;
        char what[KEY_MAX + 1];
        at = take_text(at, end, what);
        bool tensor = strchr(what, 't');
        if (tensor)
            at = take_text(at, end, e->tensor[i]);
        at = take_text(at, end, e->key[i]);
        if (!strchr(what, 'r'))
            at = take_text(at, end, e->text[i]);
        e->at[i] = (tn_meta_edit){ .tensor = tensor ? e->tensor[i] : NULL, .key = e->key[i],
                                   .text = strchr(what, 'r') ? NULL : e->text[i] };
    }
}

/* What the last edit of a key says is what is there. */
static void check_edit(const tn_file *file, const edits *e, size_t i)
{
    size_t n;
    const tn_meta *meta = tn_file_meta(file, &n);
    for (size_t k = i + 1; k < e->count; k++)
        if (strcmp(e->at[k].key, e->at[i].key) == 0 && !e->at[k].tensor == !e->at[i].tensor)
            return;
    if (e->at[i].tensor) {
        const tn_tensor *t = tn_file_find(file, e->at[i].tensor);
        REQUIRE(t);
        meta = t->meta;
        n = t->nmeta;
    }
    for (size_t k = 0; k < n; k++) {
        if (strcmp(meta[k].key, e->at[i].key) != 0)
            continue;
        bool typed = !meta[k].text && strcmp(tn_file_format(file), "gguf") == 0;
        REQUIRE(e->at[i].text && (typed || (meta[k].text && strcmp(meta[k].text, e->at[i].text) == 0)));
        return;
    }
    REQUIRE(!e->at[i].text);
}

static void check_edited(const edits *e, const tn_file *before, tn_status status)
{
    tn_compare_options options = { .size = sizeof options, .jobs = 1, .ignore_meta = status == TN_OK };
    size_t different = 1;
    tn_file *after;
    tn_error err = { .text = "" };
    REQUIRE(tn_open(scratch_file("edited"), NULL, &after, &err) == TN_OK);
    /* Not damaged. */
    if (tn_compare(before, before, &options, NULL, &different, &err) == TN_OK && different == 0)
        REQUIRE(tn_compare(before, after, &options, NULL, &different, &err) == TN_OK && different == 0);
    for (size_t i = 0; i < e->count && status == TN_OK; i++)
        check_edit(after, e, i);
    tn_close(after);
}

typedef struct task {
    const uint8_t *file;
    size_t         size;
    const edits   *edits;
} task;

/* The file is put there anew each time. */
static tn_status edit(const void *context, tn_error *err)
{
    const task *t = context;
    FILE *f = fopen(scratch_file("edited"), "wb");
    REQUIRE(f && fwrite(t->file, 1, t->size, f) == t->size && fclose(f) == 0);
    return tn_edit_meta(scratch_file("edited"), t->edits->at, t->edits->count, NULL, NULL, err);
}

static bool is_of(const tn_file *file, const char *format) { return strcmp(tn_file_format(file), format) == 0; }

static bool is_editable(const tn_file *file)
{
    return is_of(file, "ztensor") || is_of(file, "safetensors") || is_of(file, "gguf");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *mark = size ? memchr(data, 0xff, size) : NULL;
    edits e;
    tn_file *before = NULL;
    tn_error err = { .text = "" };
    if (!mark)
        return 0;
    read_edits(data, mark, &e);
    task t = { mark + 1, size - (size_t)(mark + 1 - data), &e };
    tn_status readable = tn_open_memory(t.file, t.size, NULL, &before, NULL), status = edit(&t, &err);
    if (status)
        walk_error(&err, status);
    REQUIRE(!readable || status);
    REQUIRE(readable || is_editable(before) || status == TN_ERR_UNSUPPORTED);
    /* A text may become another type in GGUF, which fuzz_gguf writes again. */
    if (!readable && is_editable(before) && !is_of(before, "gguf") && walk_is_small(before))
        check_edited(&e, before, status);
    if (size % 4 == 0)
        scarce_check(edit, &t, scarce_choice(data, size));
    tn_close(before);
    return 0;
}
