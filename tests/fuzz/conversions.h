/* tests/fuzz/conversions.h - conversions by rules that are chosen, and what must hold of
 * them: refused with a reason, or written so that the new file can be read and
 * verified; where nothing is asked for but another container, both are the same. */
#ifndef TN_FUZZ_CONVERSIONS_H
#define TN_FUZZ_CONVERSIONS_H

#include <tenon/descriptor.h>
#include <tenon/stats.h>

#include "memory_file.h"
#define MODEL_SMALL
#include "model.h"
#include "scarce.h"
#include "scratch.h"

static const char *const format_names[] = { "ztensor", "safetensors", "npz", "btf", "npy", "scipy-npz", "mtx",
                                            "raw" };

static const char *const casts[] = {
    "float32", "bfloat16", "float16", "float64", "int8", "uint4", "bool", "complex64",
    "complex128,complex=real", "int32,overflow=error",
    "float8_e4m3fn,overflow=saturate", "float8_e5m2,round=stochastic,seed=3", "tf32", "int64,nan=zero",
    "float32,times=0.5", "float6_e2m3",
    "float4_e2m1", "int8,per=tensor", "int8,per=channel,axis=0", "uint8,per=tensor,zero=asymmetric",
    "int4,per=channel,axis=-1",
    "int16,per=tensor,percentile=99", "int8,per=tensor,scale=0.5", "uint8,per=tensor,scale=0.25,zero=7",
    "fx8", "fx16,frac=least",
    "fx8,frac=3,compat=mli", "sa8", "sa32", "sa8,per=channel,axis=0", "sa8,compat=mli", "mxfp4", "mxfp8",
    "mxint8", "nvfp4", "mxfp6,store=unpacked",
    "mxfp4,mode=mse", "mxfp4,rotate=walsh32:5", "mxfp8,virtual=yes", "mxfp4,dialect=ggml", "mxfp4f4",
    "mxfp4e", "int4|float16_t32",
    "uint4|float16_int8_t32", "uint4|float16_bfloat16_t16", "int4|e5m2_t32n2m4", "e4m3fn|float32",
    "int8|float16_t0", "2:4", "1:2,virtual=no", "4:8",
    "float16,round=up", "float32,compat=mli", "int2|e8m0_t4_t4", "e2m1fnuz|e4m3fn_t16", "bf16,round=away",
};
static const char *const forms[] = { "dense", "coo", "csr", "coo,index=int32", "csr,index=uint64",
                                     "coo,threshold=0.5",
                                     "coo,duplicates=sum", "dense,duplicates=sum" };
static const char *const layouts[] = { "NHWC,from=NCHW", "CN,from=NC", "NC", "HWNC,from=NCHW", "WN,from=NW" };
static const char *const pads[] = { "0=4", "-1=8", "0=3,1=5,value=2", "1=32,value=nan", "0=2,compat=mli",
                                    "-1=16,value=-1" };

#define PICK(c, list) ((list)[choose((c), sizeof (list) / sizeof *(list))])

static inline bool has_ocp_names(const char *format)
{
    return strcmp(format, "ztensor") == 0 || strcmp(format, "safetensors") == 0 || strcmp(format, "npz") == 0;
}

typedef struct plan {
    tn_file           *file;
    tn_create_options  create;
    tn_format_option   names;           /* of the parts of a tensor */
    tn_convert_options options;
    tn_rule            rules[4];
    const char        *only, *rename;
    bool               by_path;         /* two files: no descriptor will do */
    int                fd;
} plan;

/* What is asked for: mostly one thing, for most pairs of them are refused. */
enum { CAST = 1, FORM = 2, LAYOUT = 4, PAD = 8, ONLY = 16, RENAME = 32 };
static const uint8_t wanted[] = { 0, CAST, CAST, CAST, CAST, CAST, FORM, FORM, LAYOUT, PAD, CAST | PAD,
                                  CAST | LAYOUT,
                                  LAYOUT | PAD, CAST | LAYOUT | PAD, FORM | CAST, ONLY | CAST, RENAME,
                                      ONLY | RENAME | FORM };

static inline void choose_rules(plan *p, chooser *c)
{
    static const char *const renames[] = { "*=x.*", "w=v", "*.weight=*", "*=same", "none=x", "a*b=c",
                                           "**=x" };
    tn_convert_options *o = &p->options;
    unsigned which = PICK(c, wanted);
    const char *cast = PICK(c, casts), *form = PICK(c, forms), *layout = PICK(c, layouts),
        *pad = PICK(c, pads);
    const tn_rule all[] = { { "cast", cast }, { "form", form }, { "layout", layout }, { "pad", pad } };
    for (unsigned i = 0; i < 4; i++)
        if (which >> i & 1)
            p->rules[o->nrules++] = all[i];
    p->only = choose(c, 4) ? "*w*" : "w";
    p->rename = PICK(c, renames);
    o->rules = p->rules;
    o->only = &p->only;
    o->nonly = (which & ONLY) != 0;
    o->rename = &p->rename;
    o->nrename = (which & RENAME) != 0;
}

static inline void choose_output(plan *p, chooser *c, unsigned number)
{
    tn_create_options *create = &p->create;
    *create = (tn_create_options){ .size = sizeof *create, .format = PICK(c, format_names), .replace = true,
                                   .jobs = 1 + (unsigned)(choose(c, 16) == 1) };
    uint64_t flags = choose_bits(c);
    bool zt = strcmp(create->format, "ztensor") == 0;
    create->encoding = zt && flags & 1 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW;
    create->checksum = zt ? (tn_checksum)(flags >> 1 & 1 ? 1 + (flags >> 2 & 1) : 0) : TN_CHECKSUM_NONE;
    create->drop_metadata = flags & 8;
    create->drop_names = flags & 16;
    /* The first result must not lie where the second goes. */
    p->by_path = strcmp(create->format, "raw") == 0 && number;
    if (!number && strcmp(create->format, "raw") == 0)
        create->format = "ztensor";
    p->names = (tn_format_option){ create->format, "ocp-names", "yes" };
    create->format_options = &p->names;
    create->nformat_options = flags & 32 && has_ocp_names(create->format);
    p->fd = memory_file(number);
    p->options.create = create;
    p->options.dry_run = choose(c, 32) == 1;
    p->options.encoding = flags & 64 ? TN_CHOOSE : TN_KEEP;
    p->options.checksum = flags & 128 ? TN_CHOOSE : TN_KEEP;
}

static inline tn_status convert(const plan *p, tn_error *err)
{
    if (p->by_path)
        return tn_convert(p->file, scratch_file("out.json"), &p->options, NULL, err);
    return tn_convert_into(p->file, p->fd, "out", &p->options, err);
}

/* Into another file: what came of the first time is still open. */
static inline tn_status convert_scarcely(const void *context, tn_error *err)
{
    plan p = *(const plan *)context;
    if (p.by_path)
        return tn_convert(p.file, scratch_file("scarce.json"), &p.options, NULL, err);
    p.fd = memory_file(3);
    return convert(&p, err);
}

/* Looks at everything in it; that something cannot be said is no matter. */
static inline void use(const tn_file *file)
{
    tn_descriptors *set = NULL;
    tn_stats_options options = { .size = sizeof options, .jobs = 1 };
    tn_error err = { .text = "" };
    walk_file(file);
    if (tn_describe(file, NULL, &set, &err))
        walk_error(&err, err.status);
    tn_descriptors_free(set);
    if (tn_stats(file, &options, NULL, &err))
        walk_error(&err, err.status);
}

/* What came of it, or NULL where it was refused. */
static inline tn_file *run(const plan *p)
{
    tn_open_options how = { .size = sizeof how, .format = p->create.format };
    tn_error err = { .text = "" };
    tn_file *copy = NULL;
    tn_status status = convert(p, &err);
    if (status) {
        walk_error(&err, status);
        REQUIRE(status != TN_ERR_IO && status != TN_ERR_NOMEM);
    }
    if (status || p->options.dry_run)
        return NULL;
    status = p->by_path ? tn_open(scratch_file("out.json"), &how, &copy, &err)
            : tn_open_fd(p->fd, &how, &copy, &err);
    snprintf(require_note, sizeof require_note, "(%.150s)", err.text);
    REQUIRE(status == TN_OK);
    require_note[0] = '\0';
    return copy;
}

/* A text has numbers, not the bits that a type ignores. */
static inline bool loses_bits(const plan *p)
{
    const tn_tensor *t = tn_file_tensor(p->file, 0);
    return strcmp(p->create.format, "mtx") == 0 && t && (t->dtype == TN_TF32 || t->dtype == TN_BOOL);
}

static inline void check_same(const plan *p, const tn_file *copy)
{
    const tn_convert_options *o = &p->options;
    bool rules = o->nrules || o->nonly || o->nrename;
    if (!rules && !p->create.drop_metadata && !p->create.drop_names && !loses_bits(p))
        require_same_tensors(p->file, copy);
}

/* One conversion by rules of its own, into file `number`. Takes the input, and gives what came of it, if
 * anything did. */
static inline tn_file *step(tn_file *file, chooser *c, unsigned number, bool scarce)
{
    plan p = { .file = file, .options = { .size = sizeof p.options } };
    tn_file *copy = NULL;
    choose_output(&p, c, number);
    choose_rules(&p, c);
    uint64_t choice = choose_bits(c) << 8 | choose_bits(c);
    copy = run(&p);
    if (copy) {
        use(copy);
        check_same(&p, copy);
    }
    if (scarce)
        scarce_check(convert_scarcely, &p, choice * UINT64_C(0x9e3779b97f4a7c15) >> 20);
    tn_close(file);
    return copy;
}

#endif
