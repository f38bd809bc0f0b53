/* cli/commands/ls.c - lists the tensors of files. */
#include "ui/chosen.h"
#include "ui/document.h"
#include "ui/each_file.h"
#include "ui/json.h"
#include "ui/open_file.h"
#include "ui/table.h"
#include "ui/text.h"
#include "ui/together.h"
#include "ui/tree.h"

#include <stdio.h>
#include <string.h>

typedef struct totals {
    uint64_t elements, nbytes, stored;
    const char *compressed;     /* how, or NULL */
} totals;

/* Whether another tensor has the same range of the file: its bytes are counted once. */
static bool shares_bytes(const tn_file *file, const tn_tensor *tensor)
{
    const tn_tensor *other = tensor->tied ? tn_file_find(file, tensor->tied) : NULL;
    if (!other)
        return false;
    const tn_stored_info a = stored_info(other, other->parts), b = stored_info(tensor, tensor->parts);
    return a.offset == b.offset && a.shard == b.shard;
}

static void add_to_totals(totals *sum, const tn_file *file, const tn_tensor *tensor)
{
    sum->elements += tensor_elements(tensor);
    if (shares_bytes(file, tensor))
        return;
    sum->nbytes += tensor_nbytes(tensor);
    for (uint32_t i = 0; i < tensor->nparts; i++) {
        const tn_stored_info stored = stored_info(tensor, &tensor->parts[i]);
        sum->stored += stored.bytes;
        if (stored.encoding != TN_ENCODING_RAW && tn_encoding_name(stored.encoding))
            sum->compressed = tn_encoding_name(stored.encoding);
    }
}

static void out_totals(const tn_file *file, const chosen *c)
{
    totals sum = { 0 };
    for (size_t i = 0; i < c->count; i++)
        add_to_totals(&sum, file, c->tensors[i]);
    if (c->count < tn_file_count(file))
        out("%s of ", grouped(c->count).s);
    out("%s, %s, %s", counted(tn_file_count(file), "tensor").s, counted(sum.elements, "element").s,
        human_size(sum.nbytes).s);
    if (sum.compressed)
        out(" (%s: %s stored)", sum.compressed, human_size(sum.stored).s);
    out(", %s", tn_file_format(file));
    if (tn_file_shards(file) > 1)
        out(" in %s files", grouped(tn_file_shards(file)).s);
    out_text("\n");
}

static const char *alignment_text(unsigned alignment, char buffer[16])
{
    if (alignment >= 1024)
        snprintf(buffer, 16, "%uK", alignment / 1024);
    else
        snprintf(buffer, 16, "%u", alignment);
    return buffer;
}

static void place_cells(table *t, const tn_file *file, const tn_stored_info *stored)
{
    char buffer[16];
    if (is_text(stored)) {
        table_cell(t, "-");
        table_cell(t, "-");
    } else {
        table_number(t, stored->offset);
        table_cell(t, alignment_text(alignment_of(stored->offset), buffer));
    }
    if (tn_file_shards(file) > 1)
        table_name(t, tn_file_shard_name(file, stored->shard));
}

/* The order of the elements, if they are not dense. */
static void place_note(table *t, const tn_part *part)
{
    uint32_t rank = part->array.rank;
    const int64_t *stride = stored_info(NULL, part).stride;
    if (part->padded)
        table_note(t, "padded to %s", shape_of(rank, part->padded->shape).s);
    else if (stride)
        table_note(t, "strides %s", shape_of(rank, stride).s);
}

static void datatype_note(table *t, const tn_tensor *tensor)
{
    const tn_scaling *s = tensor->scaling;
    char rotation[64] = "";
    if (s->rotation.size)
        tn_rotation_format(rotation, sizeof rotation, &s->rotation);
    form_text name = datatype_name(s->datatype);
    const char *datatype = strlen(s->datatype) < 200 ? escaped(s->datatype) : name.s;
    table_note(t, "codes of %s values: %s%s%s%s, %.6g bits per value", type_of(tensor->dtype, NULL).s,
               datatype, stored_as(s).s, *rotation ? ", rotated by " : "", rotation, tensor_bits(tensor));
}

static void scaling_note(table *t, const tn_tensor *tensor)
{
    const tn_scaling *s = tensor->scaling;
    if (s->datatype) {
        datatype_note(t, tensor);
        return;
    }
    char scales[60] = "one scale";
    if (s->axis >= 0)
        snprintf(scales, sizeof scales, "a scale for each index of dimension %d", s->axis);
    table_note(t, "codes of %s values: %s, codes %lld to %lld", type_of(tensor->dtype, NULL).s, scales,
               (long long)s->range[0], (long long)s->range[1]);
}

static void part_notes(table *t, const tn_tensor *tensor)
{
    for (uint32_t i = 0; tensor->nparts > 1 && i < tensor->nparts; i++) {
        const tn_part *part = &tensor->parts[i];
        const tn_stored_info stored = stored_info(tensor, part);
        char offset[40] = "";
        if (!is_text(&stored) && stored.extents == 1)
            snprintf(offset, sizeof offset, ", offset %llu", (unsigned long long)stored.offset);
        table_note(t, "part %s: %s %s, %s, %s%s", escaped(part->role), type_of(part->array.dtype, part).s,
                   shape_of(part->array.rank, part->array.shape).s, human_size(part->nbytes).s,
                   encoding_of(&stored, part->nbytes).s, offset);
    }
}

static void long_notes(table *t, const tn_file *file, const tn_tensor *tensor)
{
    const char *convention = tn_file_convention(file, tensor);
    if (convention)
        table_note(t, tensor->scaling ? "stored as %s" : "codes of %s", convention);
    if (tensor->layout)
        table_note(t, "layout %s", escaped(tensor->layout));
    place_note(t, &tensor->parts[0]);
    if (tensor->scaling)
        scaling_note(t, tensor);
    part_notes(t, tensor);
    if (tensor->tied)
        table_note(t, "tied to %s", escaped(tensor->tied));
    for (uint32_t i = 0; i < tensor->nmeta; i++)
        table_note(t, "%s = %s", escaped(tensor->meta[i].key), meta_text(&tensor->meta[i]));
}

/* How many tensors are stored as another tool does, are its codes, or belong to them. */
static void list_conventions(const tn_file *file, const chosen *c)
{
    struct { const char *what; size_t count; bool decoded; } kinds[16] = { 0 };
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++) {
        const char *what = tn_file_convention(file, c->tensors[i]);
        size_t k = 0;
        bool decoded = c->tensors[i]->scaling != NULL;
        while (what && k < n && (strcmp(kinds[k].what, what) != 0 || kinds[k].decoded != decoded))
            k++;
        if (what && k < sizeof kinds / sizeof *kinds) {
            n = k == n ? n + 1 : n;
            kinds[k].what = what;
            kinds[k].decoded = decoded;
            kinds[k].count++;
        }
    }
    for (size_t k = 0; k < n; k++)
        out("%s %s %s\n", counted(kinds[k].count, "tensor").s,
            kinds[k].decoded ? "stored as" : "with codes of", kinds[k].what);
}

static void list_rows(const tn_file *file, const chosen *c, bool long_list)
{
    static const char *const brief[] = { "name", "type", "shape", "size", "encoding", "checksum", NULL };
    static const char *const full[] = { "name", "type", "shape", "size", "encoding", "checksum", "offset",
                                        "align", NULL };
    static const char *const sharded[] = { "name", "type", "shape", "size", "encoding", "checksum", "offset",
                                           "align",
                                           "file", NULL };
    const char *const *headings = brief;
    if (long_list)
        headings = tn_file_shards(file) > 1 ? sharded : full;
    table t;
    table_begin(&t, headings, 1u << 3 | 1u << 6 | 1u << 7);
    for (size_t i = 0; i < c->count; i++) {
        const tn_tensor *tensor = c->tensors[i];
        const tn_part *part = &tensor->parts[0];
        table_name(&t, tensor->name);
        table_cell(&t, tensor_type(tensor).s);
        table_cell(&t, shape_of(tensor->rank, tensor->shape).s);
        table_cell(&t, human_size(tensor_nbytes(tensor)).s);
        const tn_stored_info stored = stored_info(tensor, part);
        table_cell(&t, encoding_of(&stored, part->nbytes).s);
        table_cell(&t, checksum_of(&stored).s);
        if (long_list) {
            place_cells(&t, file, &stored);
            long_notes(&t, file, tensor);
        }
    }
    table_end(&t);
}

static void list_file_meta(const tn_file *file)
{
    size_t count;
    const tn_meta *meta = tn_file_meta(file, &count);
    for (size_t i = 0; i < count; i++)
        out("%s = %s\n", escaped(meta[i].key), meta_text(&meta[i]));
    if (count > 0)
        out_text("\n");
}

static void json_part(const tn_file *file, const tn_tensor *tensor, const tn_part *part)
{
    const tn_dtype_info *info = tn_dtype_get(part->array.dtype);
    const tn_stored_info stored = stored_info(tensor, part);
    json_text_field("dtype", info ? info->name : NULL);
    json_text_field("type", stored.type);
    json_shape_field("shape", part->array.rank, part->array.shape);
    json_uint_field("nbytes", part->nbytes);
    json_uint_field("stored", stored.bytes);
    json_text_field("encoding", stored.encoding_name);
    json_text_field("byteorder", stored.order == TN_BIG_ENDIAN ? "big" : "little");
    json_text_field("checksum", stored.checksum_text);
    if (!is_text(&stored) && stored.extents == 1) {
        json_uint_field("offset", stored.offset);
        json_uint_field("align", alignment_of(stored.offset));
    }
    json_shape_field("physical_shape", part->array.rank, part->padded ? part->padded->shape : NULL);
    json_shape_field("strides", part->array.rank, stored.stride);
    if (tn_file_shards(file) > 1)
        json_text_field("file", tn_file_shard_name(file, stored.shard));
}

static void json_parts(const tn_file *file, const tn_tensor *tensor)
{
    const tn_dtype_info *info = tn_dtype_get(tensor->dtype);
    json_text_field("dtype", info ? info->name : NULL);
    json_shape_field("shape", tensor->rank, tensor->shape);
    json_key("parts");
    json_open('[');
    for (uint32_t i = 0; i < tensor->nparts; i++) {
        json_open('{');
        json_text_field("role", tensor->parts[i].role);
        json_part(file, tensor, &tensor->parts[i]);
        json_close('}');
    }
    json_close(']');
}

static void json_datatype(const tn_scaling *s)
{
    char rotation[64] = "";
    if (s->rotation.size)
        tn_rotation_format(rotation, sizeof rotation, &s->rotation);
    json_open('{');
    json_text_field("datatype", s->datatype);
    json_bool_field("unpacked", s->unpacked);
    json_text_field("rotation", *rotation ? rotation : NULL);
    json_text_field("store", s->store ? type_of(s->store, NULL).s : NULL);
    json_close('}');
}

static void json_scaling(const tn_scaling *s)
{
    json_key("scaling");
    if (!s) {
        json_word("null");
        return;
    }
    if (s->datatype) {
        json_datatype(s);
        return;
    }
    json_open('{');
    json_key("axis");
    if (s->axis >= 0)
        json_int(s->axis);
    else
        json_word("null");
    json_shape_field("range", 2, s->range);
    json_close('}');
}

static void json_density(const tn_tensor *tensor)
{
    uint64_t entries, all = tensor_elements(tensor);
    if (!is_sparse(tensor, &entries))
        return;
    json_uint_field("entries", entries);
    json_key("density");
    json_double(all ? (double)entries / (double)all : 0);
}

static void json_tensor(const tn_file *file, const tn_tensor *tensor)
{
    bool dense = tensor->form == TN_FORM_DENSE && tensor->nparts == 1;
    json_open('{');
    json_text_field("name", tensor->name);
    json_text_field("form", tn_tensor_form_name(tensor));
    json_density(tensor);
    if (dense)
        json_part(file, tensor, &tensor->parts[0]);
    else
        json_parts(file, tensor);
    json_text_field("layout", tensor->layout);
    if (tn_file_convention(file, tensor))
        json_text_field("convention", tn_file_convention(file, tensor));
    json_scaling(tensor->scaling);
    json_text_field("tied", tensor->tied);
    json_key("metadata");
    json_meta(tensor->meta, tensor->nmeta);
    json_close('}');
}

static void json_warnings(const tn_file *file)
{
    json_key("warnings");
    json_open('[');
    for (size_t i = 0; tn_file_warning(file, i); i++)
        json_text(tn_file_warning(file, i));
    json_close(']');
}

static void list_json(const char *path, const tn_file *file, const chosen *c)
{
    size_t count;
    const tn_meta *meta = tn_file_meta(file, &count);
    json_open('{');
    json_text_field("file", path);
    json_text_field("format", tn_file_format(file));
    json_uint_field("size", tn_file_size(file));
    json_uint_field("files", tn_file_shards(file));
    json_warnings(file);
    json_key("metadata");
    json_meta(meta, count);
    json_key("tensors");
    json_open('[');
    for (size_t i = 0; i < c->count; i++)
        json_tensor(file, c->tensors[i]);
    json_close(']');
    json_close('}');
    json_end();
}

static void list_text(const opts *o, const tn_file *file, chosen *c)
{
    if (o->long_list)
        list_file_meta(file);
    if (o->tree)
        out_tree(c);
    else
        list_rows(file, c, o->long_list);
    out_totals(file, c);
    list_conventions(file, c);
}

int list_file(const opts *o, const char *path, const tn_file *file)
{
    chosen c;
    tn_error err;
    tn_status status = chosen_make(&c, o, file, &err);
    if (status == TN_OK && o->json)
        list_json(path, file, &c);
    else if (status == TN_OK)
        list_text(o, file, &c);
    chosen_free(&c);
    return status == TN_OK ? EXIT_DONE : refuse_file(o, path, &err);
}

void list_heading(const opts *o, const char *path, bool *listed)
{
    if (!o->json && o->nfiles > 1)
        out("%s%s:\n", *listed ? "\n" : "", escaped(path));
    *listed = true;
}

/* Lists one file; *listed: another one was listed before. */
static int list(const opts *o, const char *path, bool *listed)
{
    tn_file *file;
    tn_error err = { .status = TN_OK };
    int code;
    if (list_work(o, path, listed, &code))
        return code;
    if (open_path(o, path, &file, &err) != TN_OK) {
        bool behind = *listed;
        int failed = document_list(o, path, listed, &err);
        if (behind)
            suggest_only(o, path, err.status);
        return failed;
    }
    say_warnings(path, file);
    list_heading(o, path, listed);
    code = list_file(o, path, file);
    tn_close(file);
    return code;
}

static int run(const opts *o)
{
    int code = EXIT_DONE;
    bool listed = false;
    if (o->tree && (o->json || o->sort || o->long_list))
        return usage_error(o->command,
                           "--tree sorts by name and prints text: leave out --json, --sort and -l");
    for (size_t i = 0; i < o->nfiles; i++)
        code = worse(code, list(o, o->files[i], &listed));
    return code;
}

const command cmd_ls = {
    .name = "ls",
    .operands = "FILE...",
    .summary = "List tensors: name, type, shape, size, encoding, checksum.",
    .about = "Only the index is read.  Unknown types, encodings and checksums are printed\n"
             "between question marks.  \"int8 scaled\" means int8 codes with scales, \"bfloat16\n"
             "mxfp4\" means bfloat16 values quantized to mxfp4, \"float32 csr 5%\" means a sparse\n"
             "tensor that stores 5 % of its elements.",
    .details = "-l adds the offset of the data in the file, its alignment (the largest power of\n"
               "two, up to 4K, that divides the offset), the file of a sharded set, the layout,\n"
               "padding or strides, the parts of a compound tensor and the meaning of its codes,\n"
               "the tensor it is tied to, and metadata.\n\n"
               "WIA-AI-011 descriptors whose tensors cannot be opened, because the data is\n"
               "missing or a shape has symbols, are listed without data, with the reason on\n"
               "stderr.",
    .example = "  $ tenon ls model.safetensors --only '*norm*' --sort size",
    .min_files = 1,
    .max_files = SIZE_MAX,
    .accepts = OPTIONS(OPT_LONG, OPTS_CHOICE, OPT_SORT, OPT_TREE, OPT_JSON, OPT_FROM, OPT_IO),
    .topics = "rules",
    .run = run,
};
