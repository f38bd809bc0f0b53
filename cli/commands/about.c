/* cli/commands/about.c - what this build can do: formats, types, datatypes, version. */
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/table.h"

#include <stdio.h>

static void json_format_keys(const tn_format_key *k)
{
    json_key("options");
    json_open('[');
    for (; k && k->name; k++) {
        json_open('{');
        json_text_field("key", k->name);
        json_text_field("values", k->values);
        json_text_field("title", k->title);
        json_close('}');
    }
    json_close(']');
}

static void json_formats(void)
{
    const tn_format_info *f;
    for (size_t i = 0; (f = tn_format_at(i)); i++) {
        json_open('{');
        json_text_field("name", f->name);
        json_text_field("suffix", f->suffix);
        json_text_field("title", f->title);
        json_bool_field("reads", f->reads);
        json_bool_field("writes", f->writes);
        json_bool_field("probes", f->probes);
        json_bool_field("compresses", f->compresses);
        json_bool_field("checksums", f->checksums);
        json_bool_field("shards", f->shards);
        json_format_keys(f->keys);
        json_close('}');
        json_end();
    }
}

/* Printed below the table: few formats have any. */
static void list_format_keys(void)
{
    const tn_format_info *f;
    out_text("\nOptions of one format (--option FORMAT.KEY=VALUE; the first value is the default):\n");
    for (size_t i = 0; (f = tn_format_at(i)); i++)
        for (const tn_format_key *k = f->keys; k && k->name; k++)
            out("  %s.%s=%s  %s\n", f->name, k->name, *k->values ? k->values : "TEXT", k->title);
}

static const char *reads_text(const tn_format_info *f)
{
    if (!f->reads)
        return "-";
    return f->probes ? "yes" : "with --from";
}

static int formats(const opts *o)
{
    static const char *const headings[] = { "name", "suffix", "reads", "writes", "compresses", "checksums",
                                            "shards",
                                            "what it is", NULL };
    if (o->json) {
        json_formats();
        return EXIT_DONE;
    }
    table t;
    table_begin(&t, headings, 0);
    const tn_format_info *f;
    for (size_t i = 0; (f = tn_format_at(i)); i++) {
        table_cell(&t, f->name);
        table_cell(&t, f->suffix);
        table_cell(&t, reads_text(f));
        const bool can[] = { f->writes, f->compresses, f->checksums, f->shards };
        for (size_t k = 0; k < sizeof can / sizeof *can; k++)
            table_cell(&t, can[k] ? "yes" : "-");
        table_cell(&t, f->title);
    }
    table_end(&t);
    list_format_keys();
    return EXIT_DONE;
}

static const char *kind_name(tn_kind kind)
{
    static const char *const names[] = { "none", "float", "int", "uint", "bool", "complex", "fixed" };
    return names[kind];
}

static const char *specials_name(tn_specials specials)
{
    static const char *const names[] = { "none", "ieee", "fn", "fnuz", "e8m0" };
    return names[specials];
}

static void json_type(const tn_dtype_info *t)
{
    json_open('{');
    json_text_field("name", t->name);
    json_text_field("kind", kind_name(t->kind));
    json_uint_field("bits", t->bits);
    json_uint_field("exponent_bits", t->exponent_bits);
    json_uint_field("mantissa_bits", t->mantissa_bits);
    json_key("bias");
    json_double(t->bias);
    json_text_field("specials", specials_name(t->specials));
    json_text_field("short", t->short_name);
    json_text_field("wia", t->wia);
    json_text_field("ztensor", t->ztensor);
    json_text_field("safetensors", t->safetensors);
    json_text_field("numpy", t->numpy);
    json_text_field("torch", t->torch);
    json_text_field("mli", t->mli);
    json_close('}');
    json_end();
}

static void type_row(table *t, const tn_dtype_info *type)
{
    char layout[24] = "-";
    if (type->exponent_bits > 0)
        snprintf(layout, sizeof layout, "e%um%u", type->exponent_bits, type->mantissa_bits);
    table_cell(t, type->name);
    table_number(t, type->bits);
    table_cell(t, kind_name(type->kind));
    table_cell(t, layout);
    table_cell(t, type->kind == TN_KIND_FLOAT ? specials_name(type->specials) : "-");
    const char *const names[] = { type->short_name, type->wia, type->ztensor, type->safetensors, type->numpy,
                                  type->torch,
                                  type->mli };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        table_cell(t, names[k] ? names[k] : "-");
}

static int types(const opts *o)
{
    static const char *const headings[] = { "name", "bits", "kind", "layout", "specials", "short", "wia",
                                            "ztensor",
                                            "safetensors", "numpy", "torch", "mli", NULL };
    table t;
    if (!o->json)
        table_begin(&t, headings, 1u << 1);
    for (tn_dtype dtype = TN_UNKNOWN + 1; dtype < TN_DTYPE_COUNT; dtype++) {
        const tn_dtype_info *info = tn_dtype_get(dtype);
        if (info && o->json)
            json_type(info);
        else if (info)
            type_row(&t, info);
    }
    if (!o->json)
        table_end(&t);
    return EXIT_DONE;
}

static void datatype_row(table *t, const opts *o, const tn_datatype_name *d, double bits)
{
    char text[24];
    if (o->json) {
        json_open('{');
        json_text_field("name", d->name);
        json_text_field("datatype", d->text);
        json_key("bits");
        json_double(bits);
        json_text_field("family", d->family);
        json_close('}');
        json_end();
        return;
    }
    snprintf(text, sizeof text, "%.6g", bits);
    table_cell(t, d->name);
    table_cell(t, text);
    table_cell(t, d->text);
    table_cell(t, d->family);
}

static int datatypes(const opts *o)
{
    static const char *const headings[] = { "name", "bits", "number|scale", "family", NULL };
    const tn_datatype_name *d;
    tn_error err;
    table t;
    if (!o->json)
        table_begin(&t, headings, 1u << 1);
    for (size_t i = 0; (d = tn_datatype_at(i)); i++) {
        tn_datatype *datatype;
        if (tn_datatype_parse(d->name, &datatype, &err) != TN_OK) {
            if (!o->json)
                table_drop(&t);
            return say_error(NULL, &err);
        }
        datatype_row(&t, o, d, tn_datatype_bits(datatype));
        tn_datatype_free(datatype);
    }
    if (!o->json)
        table_end(&t);
    return EXIT_DONE;
}

static int version(const opts *o)
{
    char tool[40];
    snprintf(tool, sizeof tool, "%d.%d.%d", TN_VERSION_MAJOR, TN_VERSION_MINOR, TN_VERSION_PATCH);
    if (!o->json) {
        out("tenon %s (libtenon %s)\n", tool, tn_version());
        for (size_t i = 0; tn_build_fact(i); i++)
            out("  %s\n", tn_build_fact(i));
        return EXIT_DONE;
    }
    json_open('{');
    json_text_field("version", tool);
    json_text_field("library", tn_version());
    json_key("built_with");
    json_open('[');
    for (size_t i = 0; tn_build_fact(i); i++)
        json_text(tn_build_fact(i));
    json_close(']');
    json_close('}');
    json_end();
    return EXIT_DONE;
}

const command cmd_formats = {
    .name = "formats",
    .operands = "",
    .summary = "List the formats that this build reads and writes.",
    .about = "An input is recognised by its content; --from FORMAT names its format.  An\n"
             "output has the format of its suffix; --to FORMAT names another.  A FORMAT is a\n"
             "name of the list, or a suffix without the dot: ztensor or zt.\n\n"
             "\"compresses\" and \"checksums\" refer to --compress and --checksum of \"tenon\n"
             "convert\".  Members of an .npz always have a crc32, which \"tenon verify\" checks.",
    .example = "  $ tenon formats",
    .accepts = OPTIONS(OPT_JSON),
    .run = formats,
};

const command cmd_types = {
    .name = "types",
    .operands = "",
    .summary = "List the element types and their names elsewhere.",
    .about = "--cast also takes fx8, fx16, sa8 and sa32 (\"tenon help fixed-point\") and\n"
             "datatypes (\"tenon datatypes\").",
    .example = "  $ tenon types",
    .accepts = OPTIONS(OPT_JSON),
    .run = types,
};

const command cmd_datatypes = {
    .name = "datatypes",
    .operands = "",
    .summary = "List the scaled datatypes that have a name.",
    .about = "A datatype says how values become small codes with scales.  --cast takes\n"
             "  mxfp4                    a name that \"tenon datatypes\" lists\n"
             "  'e2m1fnuz|e8m0_t32'      NUMBER|SCALE spelled out, or 'table.json|e8m0_t32'\n"
             "  int8,per=tensor          integer codes with one scale\n"
             "  int8,per=channel,axis=0  ... with one per index of a dimension\n"
             "  2:4                      N:M sparsity: keep the 2 largest of each 4 values\n"
             "Keys of all: percentile=P (that share fits, the rest saturates), mode, rotate,\n"
             "virtual=yes.  Keys of per=: zero=symmetric|asymmetric|N, scale=S.  Keys of names\n"
             "and NUMBER|SCALE: dialect, store=packed|unpacked|e4m3fn|e5m2.  The options of\n"
             "\"tenon help quantize\" set defaults.  A cast to a float type dequantizes.  In the\n"
             "list \"bits\" is the average size of a value with its share of scales.",
    .details = "A name that is also an element type, such as float16, means the element type.\n\n"
               "  store=    packed: codes narrower than a byte share bytes (the default);\n"
               "            unpacked: one code per byte; e4m3fn, e5m2: the numbers of the codes\n"
               "            as that float8 type, if it has all of them\n"
               "  zero=     symmetric: 0 (signed types); asymmetric: the zero point that uses\n"
               "            the whole range of codes (unsigned types); N, beside scale=\n"
               "  mode=     for exponent scales max or floor (the exponent of the largest\n"
               "            magnitude; the default), midmax or auto (one more if it would round\n"
               "            beyond the largest number), topbinade (one more if it lies beyond\n"
               "            that), option3 (as topbinade, of the magnitude rounded to the\n"
               "            mantissa), ceil (the smallest at which nothing saturates); for all\n"
               "            scales mse (of the nearby ones that with the least squared error)\n"
               "  rotate=   hadamardN or walshN with N of 4, 8 ... 128, and :SEED for random\n"
               "            signs: multiplies blocks of N values by an orthogonal matrix, which\n"
               "            spreads outliers over their block; dequantizing undoes it\n"
               "  dialect=  mxfp4 as the OCP specification says, or with ggml's scales and ties",
    .example = "  $ tenon datatypes | grep mxfp",
    .accepts = OPTIONS(OPT_JSON),
    .run = datatypes,
};

const command cmd_version = {
    .name = "version",
    .operands = "",
    .summary = "Print the version and the libraries of this build.",
    .example = "  $ tenon version",
    .accepts = OPTIONS(OPT_JSON),
    .run = version,
};
