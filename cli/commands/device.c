/* cli/commands/device.c - what each device requires and supports. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/text.h"

#include <string.h>

#define LABEL       22          /* characters: the words before the figures */
#define HANDLE_NAME 14

static const char *device_type_name(tn_device_type type)
{
    static const char *const names[] = { "CPU", "GPU", "NPU", "TPU" };
    return names[type];
}

static const char *space_name(tn_memory_space space)
{
    static const char *const names[] = { "host", "device", "unified" };
    return names[space];
}

/* ---- text ---- */

/* Words separated by commas, in lines of at most 80 columns. */
typedef struct word_list {
    size_t column;
    bool   begun;
} word_list;

static void list_begin(word_list *l, const char *label)
{
    *l = (word_list){ .column = LABEL + 2 };
    out("  %-*s", LABEL, label);
}

static void list_word(word_list *l, const char *word)
{
    size_t length = strlen(word) + 2;
    if (l->begun)
        out_text(",");
    if (l->begun && l->column + length > 80) {
        out("\n%*s", LABEL + 2, "");
        l->column = LABEL + 2;
    } else if (l->begun) {
        out_text(" ");
    }
    out_text(word);
    l->column += length;
    l->begun = true;
}

static void list_end(const word_list *l) { out_text(l->begun ? "\n" : "none\n"); }

static void out_size(const char *label, uint64_t bytes, const char *if_zero)
{
    const char *word = bytes == UINT64_MAX ? "no limit" : NULL;
    if (bytes == 0)
        word = if_zero;
    out("  %-*s%s\n", LABEL, label, word ? word : human_size(bytes).s);
}

static void out_lists(const tn_device_info *d)
{
    word_list l;
    list_begin(&l, "types");
    for (size_t i = 0; i < d->ntypes; i++)
        list_word(&l, tn_dtype_get(d->types[i])->name);
    list_end(&l);
    list_begin(&l, "layouts");
    for (size_t i = 0; i < d->nlayouts; i++)
        list_word(&l, d->layouts[i]);
    list_word(&l, "any other letters");
    list_end(&l);
    list_begin(&l, "handles");
    for (size_t i = 0; i < d->nhandles; i++)
        list_word(&l, handle_name(d->handles[i]));
    list_end(&l);
}

static void out_device(const tn_device_info *d)
{
    out("%s%s%s  %s %lld, %s memory\n", style_on_stdout(STYLE_BOLD), d->name, style_on_stdout(STYLE_PLAIN),
        device_type_name(d->device.type), (long long)d->device.id, space_name(d->device.space));
    out_size("minimum alignment", d->min_alignment, NULL);
    out_size("recommended alignment", d->recommended_alignment, NULL);
    out_size("page", d->page_size, NULL);
    out_size("huge page", d->huge_page_size, "none");
    out_size("pinned memory", d->max_pinned_bytes, "none");
    out_size("memory", d->memory_bytes, "not known");
    out("  %-*s%u\n", LABEL, "dimensions", d->max_rank);
    out_lists(d);
}

static void out_handle_types(void)
{
    const tn_handle_info *h;
    out("%shandle types%s\n", style_on_stdout(STYLE_BOLD), style_on_stdout(STYLE_PLAIN));
    for (size_t i = 0; (h = tn_handle_query(i)); i++) {
        out("  %-*s%s", HANDLE_NAME, h->name, h->available ? "available" : "not available");
        out("%s%s\n", *h->why ? ": " : "", h->why);
    }
}

/* ---- JSON ---- */

static void json_lists(const tn_device_info *d)
{
    json_key("types");
    json_open('[');
    for (size_t i = 0; i < d->ntypes; i++)
        json_text(tn_dtype_get(d->types[i])->name);
    json_close(']');
    json_key("layouts");
    json_open('[');
    for (size_t i = 0; i < d->nlayouts; i++)
        json_text(d->layouts[i]);
    json_close(']');
    json_key("handles");
    json_open('[');
    for (size_t i = 0; i < d->nhandles; i++)
        json_text(handle_name(d->handles[i]));
    json_close(']');
}

static void json_handle_types(void)
{
    const tn_handle_info *h;
    json_key("handle_types");
    json_open('[');
    for (size_t i = 0; (h = tn_handle_query(i)); i++) {
        json_open('{');
        json_text_field("type", h->name);
        json_bool_field("available", h->available);
        json_text_field("why", h->why);
        json_close('}');
    }
    json_close(']');
}

static void json_device(const tn_device_info *d)
{
    json_open('{');
    json_text_field("name", d->name);
    json_text_field("type", device_type_name(d->device.type));
    json_key("id");
    json_int(d->device.id);
    json_text_field("memory_space", space_name(d->device.space));
    json_uint_field("min_alignment", d->min_alignment);
    json_uint_field("recommended_alignment", d->recommended_alignment);
    json_uint_field("page_size", d->page_size);
    json_uint_field("huge_page_size", d->huge_page_size);
    json_key("max_pinned_bytes");
    if (d->max_pinned_bytes == UINT64_MAX)
        json_word("null");
    else
        json_uint(d->max_pinned_bytes);
    json_uint_field("memory_bytes", d->memory_bytes);
    json_uint_field("max_rank", d->max_rank);
    json_lists(d);
    json_handle_types();
    json_close('}');
    json_end();
}

static int run(const opts *o)
{
    const tn_device_info *d;
    for (size_t i = 0; (d = tn_device_query(i)); i++) {
        if (o->json)
            json_device(d);
        else
            out_device(d);
    }
    if (!o->json)
        out_handle_types();
    return EXIT_DONE;
}

const command cmd_device = {
    .name = "device",
    .operands = "",
    .summary = "Print what the devices of this machine support.",
    .about = "This is the capability query of WIA-AI-011: alignment, pages, memory, element\n"
             "types, layouts.  \"pinned memory\" is how much this process may lock; \"handles\"\n"
             "are the ways to share memory with another process; \"handle types\" lists all of\n"
             "them, with the reason if one is not available.",
    .example = "  $ tenon device --json | jq .recommended_alignment",
    .accepts = OPTIONS(OPT_JSON),
    .run = run,
};
