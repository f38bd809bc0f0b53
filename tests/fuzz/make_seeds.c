/* make_seeds FOLDER TESTS - seeds for the fuzz targets: one file of tensors of every
 * kind, converted by many rules into every container, and the texts that stand in
 * the unit tests (TESTS/unit).  FOLDER/TARGET gets the inputs of fuzz_TARGET; the same
 * ones every time. */
#include <errno.h>
#include <sys/stat.h>

#include "literals.h"
#include "model.h"
#include "scratch.h"
#include "sets.h"
#include "share/wire.h"
#include "shared_work.h"

static const char *out;
static size_t kept, refused;

enum { LARGEST = 16384 };

static void put_seed(const char *target, const void *bytes, size_t n)
{
    static unsigned number;
    char path[400];
    snprintf(path, sizeof path, "%s/%s", out, target);
    REQUIRE(mkdir(path, 0777) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/%s/made-%04u", out, target, number++);
    FILE *f = fopen(path, "wb");
    REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    kept++;
}

static size_t load(const char *path, uint8_t bytes[LARGEST])
{
    FILE *f = fopen(path, "rb");
    REQUIRE(f);
    size_t n = fread(bytes, 1, LARGEST, f);
    bool whole = fgetc(f) == EOF;
    fclose(f);
    return whole ? n : 0;
}

static void note_small(const char *target, const uint8_t *bytes, size_t n);

static void keep_file(const char *target, const char *path)
{
    uint8_t bytes[LARGEST];
    size_t n = load(path, bytes);
    if (!n)
        return;
    put_seed(target, bytes, n);
    note_small(target, bytes, n);
}

/* ---- the source ---- */

/* Every type once, and shapes that datatypes, forms and MLI want. */
static void write_source(const char *path)
{
    static const int64_t matrix[] = { 4, 32 }, picture[] = { 1, 3, 2, 2 }, few[] = { 3 }, none[] = { 0, 3 };
    static uint8_t data[4096];
    tn_create_options options = { .size = sizeof options, .format = "ztensor", .replace = true, .jobs = 1 };
    tn_writer *w;
    char name[40];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = i % 5 == 3 ? 0x3f : (uint8_t)(i * (i % 3 != 0));
    REQUIRE(tn_create(path, &options, &w, NULL) == TN_OK);
    REQUIRE(tn_writer_add_meta(w, &(tn_meta){ .key = "note", .text = "f\xc3\xbcr \"alle\"" }, NULL) == TN_OK);
    REQUIRE(tn_writer_add_meta(w, &(tn_meta){ .key = "odd", .cbor = (const uint8_t *)"\xf9\x7e\x00",
                                              .cbor_size = 3 }, NULL) == TN_OK);
    static const tn_meta meta[] = { { .key = "a", .text = "b" },
                                    { .key = "n", .cbor = (const uint8_t *)"\x82\x01\xf6", .cbor_size = 3 },
                                    { .key = "x", .cbor = (const uint8_t *)"\x41\x01", .cbor_size = 2 } };
    for (unsigned i = 0; i <= TN_DTYPE_COUNT; i++) {
        bool typed = i > 0 && i < TN_DTYPE_COUNT;
        tn_array array = { .dtype = (tn_dtype)i, .rank = 1, .shape = i % 7 ? few : none };
        if (!typed)
            array = (tn_array){ .dtype = TN_FLOAT32, .rank = i ? 4 : 2, .shape = i ? picture : matrix };
        if (i % 11 == 5)
            array.rank = 0;
        tn_part part = { .role = "data", .array = array, .data = data };
        REQUIRE(tn_array_nbytes(&array, &part.nbytes) == TN_OK);
        snprintf(name, sizeof name, "t.%u", i);
        if (!typed)
            strcpy(name, i ? "nchw" : "w");
        const tn_tensor t = { .name = name, .form = TN_FORM_DENSE, .dtype = array.dtype, .rank = array.rank,
                              .shape = array.shape,
                              .parts = &part, .nparts = 1, .meta = meta, .nmeta = i % 4,
                                  .layout = i == TN_DTYPE_COUNT ? "NCHW" : NULL };
        REQUIRE(tn_writer_add(w, &t, NULL) == TN_OK);
    }
    REQUIRE(tn_writer_finish(w, NULL) == TN_OK);
}

/* ---- conversions ---- */

typedef struct recipe {
    const char *only, *cast, *form, *layout, *pad;
} recipe;

static const recipe recipes[] = {
    { .only = NULL }, { .only = "w" }, { .only = "t.1*" }, { .only = "nchw" }, { .only = "t.7" },
    { .only = "t.?" },
    { .only = "w", .cast = "int8,per=tensor" },
    { .only = "w", .cast = "int8,per=channel,axis=0,zero=asymmetric" },
    { .only = "w", .cast = "uint8,per=tensor,zero=asymmetric" },
    { .only = "w", .cast = "int4,per=channel,axis=1" },
    { .only = "w", .cast = "fx8" }, { .only = "w", .cast = "sa8,per=channel,axis=0" },
    { .only = "w", .cast = "sa32" },
    { .only = "w", .cast = "mxfp4" }, { .only = "w", .cast = "mxfp6,store=unpacked" },
    { .only = "w", .cast = "nvfp4" },
    { .only = "w", .cast = "mxfp8,rotate=walsh32:7" }, { .only = "w", .cast = "mxfp4f4" },
    { .only = "w", .cast = "2:4" },
    { .only = "w", .cast = "int4|e5m2_t32n2m4" }, { .only = "w", .cast = "uint4|float16_int8_t8" },
    { .only = "w", .cast = "bfloat16" },
    { .only = "w", .form = "coo" }, { .only = "w", .form = "csr" },
    { .only = "w", .form = "coo,index=uint64" },
    { .only = "nchw", .form = "coo,index=int32" }, { .only = "w", .form = "csr,index=int32" },
    { .only = "w", .form = "csr,index=uint64" },
    { .only = "nchw", .layout = "NHWC" }, { .only = "nchw", .layout = "NHWC", .pad = "C=4" },
    { .only = "w", .pad = "0=8,1=64,value=2" },
    { .only = "w", .cast = "int8,per=tensor", .pad = "1=48" },
    { .only = "w", .cast = "complex64", .form = "csr" },
    { .only = "w", .cast = "int4", .form = "coo" }, { .only = "w", .cast = "bool", .form = "coo" },
    { .only = "w", .cast = "uint8" },
};

static const struct { const char *format, *target, *suffix; } formats[] = {
    { "ztensor", "ztensor", ".zt" }, { "safetensors", "safetensors", ".safetensors" },
    { "npy", "npy", ".npy" }, { "npz", "npz", ".npz" },
    { "scipy-npz", "npz", ".npz" }, { "btf", "btf", ".btf" }, { "mtx", "mtx", ".mtx" },
    { "raw", "raw", ".json" },
};

static void convert(const tn_file *file, const recipe *r, size_t format, unsigned variant)
{
    char path[120];
    const tn_rule all[] = { { "form", r->form }, { "layout", r->layout }, { "pad", r->pad },
                            { "cast", r->cast } };
    tn_rule rules[4];
    size_t n = 0;
    tn_error err = { .text = "" };
    bool zt = format == 0;
    tn_create_options create = { .size = sizeof create, .format = formats[format].format, .replace = true,
                                 .jobs = 1,
                                 .drop_metadata = formats[format].format[0] == 'b', .drop_names = true };
    create.encoding = zt && variant % 2 && !r->pad ? TN_ENCODING_ZSTD : TN_ENCODING_RAW;
    create.checksum = zt ? (tn_checksum)(variant % 3) : TN_CHECKSUM_NONE;
    const tn_format_option own[] = { { formats[format].format, "ocp-names", "yes" },
                                     { "safetensors", "filler", "yes" } };
    bool filler = format == 1 && variant % 2, names = format < 2 && variant % 3 == 2;
    create.align = filler ? 64 : 0;
    create.format_options = names ? own : own + 1;
    create.nformat_options = (size_t)filler + names;
    for (size_t i = 0; i < 4; i++)
        if (all[i].text)
            rules[n++] = all[i];
    for (size_t i = 0; i < n; i++) {
        tn_status status = tn_rule_check(&rules[i], NULL, &err);
        if (status)
            fprintf(stderr, "make_seeds: %s\n", err.text);
        REQUIRE(status == TN_OK);
    }
    tn_convert_options options = { .size = sizeof options, .create = &create, .encoding = TN_CHOOSE,
                                   .checksum = TN_CHOOSE,
                                   .only = &r->only, .nonly = r->only != NULL, .rules = rules,
                                   .nrules = n };
    snprintf(path, sizeof path, "%s", scratch_file("seed"));
    strcat(path, formats[format].suffix);
    if (tn_convert(file, path, &options, NULL, &err) == TN_OK)
        keep_file(formats[format].target, path);
    else
        refused++;              /* not every container holds everything */
}

static void convert_all(void)
{
    char path[120];
    tn_file *file;
    snprintf(path, sizeof path, "%s", scratch_file("source.zt"));
    write_source(path);
    REQUIRE(tn_open(path, NULL, &file, NULL) == TN_OK);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
            convert(file, &recipes[i], k, (unsigned)(i + k));
    tn_close(file);
}

/* ---- models: metadata of all sorts, ties, ranks up to 64 ---- */

static void write_models(void)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        bool zt = seed % 2;
        char path[120];
        chooser c = { .seed = seed };
        model m;
        tn_create_options options = { .size = sizeof options, .format = zt ? "ztensor" : "safetensors",
                                      .replace = true, .jobs = 1 };
        options.encoding = zt && seed % 3 == 0 ? TN_ENCODING_ZSTD : TN_ENCODING_RAW;
        options.checksum = zt ? (tn_checksum)(seed % 3) : TN_CHECKSUM_NONE;
        snprintf(path, sizeof path, "%s", scratch_file("model"));
        model_make(&m, &c);
        if (m.count > 4)
            m.count = 4;
        for (size_t i = 0; i < m.count; i++)
            m.tensors[i].tied = NULL;
        REQUIRE(model_write(&m, &c, path, &options, NULL) == TN_OK);
        keep_file(zt ? "ztensor" : "safetensors", path);
        model_free(&m);
    }
}

/* ---- sets of shards, as fuzz_shards takes them ---- */

static void write_set(const tn_file *file, const char *only, uint64_t shard_size)
{
    tn_create_options create = { .size = sizeof create, .format = "safetensors", .replace = true, .jobs = 1,
                                 .shard_size = shard_size };
    tn_convert_options options = { .size = sizeof options, .create = &create, .only = &only, .nonly = 1 };
    char path[120];
    uint8_t bytes[LARGEST], input[LARGEST];
    size_t n = 0;
    snprintf(path, sizeof path, "%s", scratch_file(SET_STEM ".safetensors"));
    REQUIRE(tn_convert(file, path, &options, NULL, NULL) == TN_OK);
    size_t size = load(scratch_file(SET_INDEX), bytes);
    n = set_put(input, sizeof input, n, bytes, size);
    for (unsigned total = 1; total <= SET_FILES; total++)
        for (unsigned i = 1; i <= total; i++) {
            char name[60];
            set_name(name, i, total);
            if (access(scratch_file(name), F_OK) != 0)
                continue;
            size = load(scratch_file(name), bytes);
            n = set_put(input, sizeof input, n, bytes, size);
            unlink(scratch_file(name));
        }
    unlink(scratch_file(SET_INDEX));
    put_seed("shards", input, n);
}

static void write_sets(void)
{
    tn_file *file;
    REQUIRE(tn_open(scratch_file("source.zt"), NULL, &file, NULL) == TN_OK);
    write_set(file, "t.?", 16);
    write_set(file, "t.?", 64);
    write_set(file, "t.1?", 40);
    write_set(file, "t.2?", 12);
    tn_close(file);
}

/* ---- inputs that are made of several ---- */

enum { SMALL_FILE = 3000 };

static uint8_t small[200][SMALL_FILE];
static size_t small_size[200], nsmall;

/* Called by keep_file(): containers that can be edited and compared. */
static void note_small(const char *target, const uint8_t *bytes, size_t n)
{
    bool wanted = strcmp(target, "ztensor") == 0 || strcmp(target, "safetensors") == 0;
    if (!wanted || n > SMALL_FILE || nsmall == sizeof small_size / sizeof *small_size)
        return;
    memcpy(small[nsmall], bytes, n);
    small_size[nsmall++] = n;
}

/* The indices of zTensor files, as items of CBOR. */
static void write_indices(void)
{
    for (size_t i = 0; i < nsmall; i++) {
        size_t n = small_size[i], index = n > 16 ? (size_t)small[i][n - 8] | (size_t)small[i][n - 7] << 8 : 0;
        if (memcmp(small[i], "ZTEN0001", 8) == 0 && index && index <= n - 16)
            put_seed("cbor", small[i] + n - 8 - index, index);
    }
}

static void write_edits(void)
{
    static const char *const edits[] = { "\nkey\ntext\n", "r\nnote\n", "t\nw\na\nother\n", "rt\nw\na\n",
                                         "\nnote\n\n\nodd\nx\nr\nnote\n",
                                         "\ntenon\n1\n", "\ntenon:w\n1\n", "t\nnchw\nk\nv\n",
                                         "t\nnone\nk\nv\n", "t\nw\nname\nv\n",
                                         "t\nt.5\ndtype\nv\n", "rt\nt.5\nn\n" };
    for (size_t i = 0; i < nsmall; i++) {
        uint8_t input[SMALL_FILE + 100];
        const char *edit = edits[i % (sizeof edits / sizeof *edits)];
        size_t n = strlen(edit);
        memcpy(input, edit, n);
        input[n] = 0xff;
        memcpy(input + n + 1, small[i], small_size[i]);
        put_seed("edit", input, n + 1 + small_size[i]);
    }
    static const char text[] = "\nk\nv\n\xff%%MatrixMarket matrix array real general\n1 1\n1\n";
    static const char document[] = "\nk\nv\n\xff{\"format\":\"COO\","
                                   "\"shape\":[2],\"nnz\":1,\"indices\":{\"data\":[[1]],\"dtype\":\"INT32\"},"
                                   "\"values\":{\"data\":[1.5],\"dtype\":\"FLOAT32\"}}";
    static const char bad[] = "\n\x80\xc0k\nv\n\xffZTEN0001\x80\1\0\0\0\0\0\0\0";
    put_seed("edit", text, sizeof text - 1);
    put_seed("edit", document, sizeof document - 1);
    put_seed("edit", bad, sizeof bad - 1);
}

/* Names that become the same words, long ones, and those that C reads as something else. */
static void write_names(void)
{
    static const char *const lists[] = { "a.b\na_b\na b\na..b\n_a_b_\na_b_2\na.b.2\n",
                                         "?\?/\n*/\n/*\n\"\\\n%s\n\x01\x7f\n\xc3\xa9\n", "1\n2.\n_\n.\n" };
    char longest[3001];
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        put_seed("export", lists[i], strlen(lists[i]));
    for (size_t i = 0; i < sizeof longest - 1; i++)
        longest[i] = i % 13 == 0 ? '.' : (char)('a' + i % 7);
    longest[1000] = longest[1200] = '\n';
    put_seed("export", longest, sizeof longest - 1);
    put_seed("export", longest, 1200);
}

static void write_pairs(void)
{
    for (size_t i = 0; i + 2 < nsmall; i++) {
        uint8_t input[2 * SMALL_FILE + 2];
        size_t other = i % 3 ? i + i % 3 : i;
        input[0] = (uint8_t)small_size[i];
        input[1] = (uint8_t)(small_size[i] >> 8);
        memcpy(input + 2, small[i], small_size[i]);
        memcpy(input + 2 + small_size[i], small[other], small_size[other]);
        put_seed("compare", input, 2 + small_size[i] + small_size[other]);
    }
}

/* Files to be converted, behind bytes that choose how. */
static void write_remakes(void)
{
    for (size_t i = 0; i < 3 * nsmall; i++) {
        uint8_t input[SMALL_FILE + 12];
        chooser c = { .seed = 1 + i };
        for (size_t k = 0; k < 12; k++)
            input[k] = (uint8_t)choose_bits(&c);
        memcpy(input + 12, small[i % nsmall], small_size[i % nsmall]);
        put_seed("remake", input, 12 + small_size[i % nsmall]);
    }
}

static size_t put_piece(uint8_t *input, size_t at, uint8_t kind, const uint8_t *bytes, size_t n)
{
    at = set_put(input, LARGEST, at, bytes, n);
    size_t from = at - n;
    memmove(input + from + 1, input + from, n);
    input[from] = kind;
    return at + 1;
}

/* Conversations as fuzz_attach takes them: a file, a tensor (from the corpus of packets), the end. */
static void write_conversations(const char *packets)
{
    static const char *const tensors[] = { "tensor", "cuda", "refused", "hello", "next" };
    tn_buf packet = { 0 };
    uint8_t input[LARGEST + 8], bytes[LARGEST];
    for (size_t i = 0; i < nsmall; i += 4) {
        packet.size = 0;
        bool in_place = memcmp(small[i], "ZTEN", 4) != 0;
        const char *format = in_place ? "safetensors" : "ztensor";
        const tn_wire file = { .kind = TN_WIRE_FILE, .name = "f", .format = format, .bytes = small_size[i],
                               .in_place = in_place };
        REQUIRE(tn_wire_encode(&file, &packet, NULL) == TN_OK);
        size_t at = put_piece(input, 0, in_place ? 3 : 1, packet.data, packet.size);
        at = put_piece(input, at, 0, small[i], small_size[i]);
        packet.size = 0;
        REQUIRE(tn_wire_encode(&(tn_wire){ .kind = TN_WIRE_END, .items = 1 }, &packet, NULL) == TN_OK);
        at = put_piece(input, at, 0, packet.data, packet.size);
        put_seed("attach", input, at);
    }
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", packets, tensors[i]);
        size_t at = put_piece(input, 0, i == 0 ? 2 : 0, bytes, load(path, bytes));
        if (i == 0)
            at = put_piece(input, at, 0, (const uint8_t *)small, 4096);         /* as its handle says */
        packet.size = 0;
        REQUIRE(tn_wire_encode(&(tn_wire){ .kind = TN_WIRE_END, .items = 1 }, &packet, NULL) == TN_OK);
        at = put_piece(input, at, 0, packet.data, packet.size);
        put_seed("attach", input, at);
    }
    tn_buf_free(&packet);
}

/* ---- folders of works, as fuzz_work takes them ---- */

/* A file of the folder without its checksum, its paths and the number of its plan. */
static size_t put_work_file(uint8_t *input, size_t at, uint8_t kind, const char *name)
{
    size_t n, size = 0;
    char *text = work_load(name, &n), *end = text ? strstr(text, "\"checksum\":\"crc32c:0x") : NULL;
    uint8_t *plain = calloc(1, 65536);
    if (!end || !plain) {
        free(text);
        free(plain);
        return at;
    }
    plain[size++] = kind;
    for (char *next; (next = strstr(end, "\n\"checksum\":\"crc32c:0x")) != NULL;)
        end = next + 1;
    n = (size_t)(end - text);
    for (size_t i = 0; i < n; i++) {
        size_t folder = strlen(scratch_folder);
        if (i + folder <= n && memcmp(text + i, scratch_folder, folder) == 0) {
            plain[size++] = '@';
            plain[size++] = '@';
            i += folder - 1;
        } else if (kind != WORK_PLAN && i + 7 < n && memcmp(text + i, "\"plan\":", 7) == 0) {
            memcpy(plain + size, "\"plan\":0", 8);
            size += 8;
            i += 6 + strspn(text + i + 7, "0123456789");
        } else {
            plain[size++] = (uint8_t)text[i];
        }
    }
    at = set_put(input, LARGEST, at, plain, size);
    free(text);
    free(plain);
    return at;
}

static void make_and_keep(const struct work_way *way, uint8_t number)
{
    tn_work *work = NULL;
    uint8_t input[LARGEST];
    char name[40];
    size_t at = WORK_CHOICES;
    if (way->verb) {
        REQUIRE(work_look_as(way, 0, NULL) == TN_OK);
    } else {
        REQUIRE(work_make(way, &work, NULL) == TN_OK && tn_work_run_all(work, false, NULL) == TN_OK);
        tn_work_close(work);
    }
    input[0] = number;
    input[1] = 2;
    at = put_work_file(input, at, WORK_PLAN, "plan.json");
    put_seed("work", input, at);
    for (uint8_t i = 0, first = 1; i < 16; i++) {
        snprintf(name, sizeof name, "pieces/%05u.done", i);
        if (access(work_file(name), F_OK) != 0)
            continue;
        at = put_work_file(input, first ? WORK_CHOICES : at, i, name);
        first = 0;
        put_seed("work", input, at);
    }
    (void)tn_work_abandon(scratch_file("out.zt.tenon"), NULL);
}

static void write_works(void)
{
    static const uint8_t failed[] = "\0\2\x19\0\x80" "2 somewhere: cannot write\n";
    for (uint8_t i = 0; i < WORK_WAYS; i++)
        make_and_keep(&work_ways[i], i);
    put_seed("work", failed, sizeof failed - 1);
}

/* Choices at random for targets whose input is choices. */
static void write_choices(void)
{
    static const char *const targets[] = { "convert", "round_trip", "scipy" };
    for (uint64_t seed = 1; seed <= 240; seed++) {
        uint8_t input[160];
        chooser c = { .seed = seed };
        for (size_t i = 0; i < sizeof input; i++)
            input[i] = (uint8_t)choose_bits(&c);
        put_seed(targets[seed % 3], input, 20 + seed % 140);
    }
}

/* ---- texts of unit tests ---- */

static void put_text(const char *target, const char *text, size_t n)
{
    if (n > 1)
        put_seed(target, text, n);
}

static void put_le(uint8_t *p, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

static int hex_value(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 32) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Bytes spelled in hexadecimal, with spaces. */
static void put_hex(const char *target, const char *text, size_t n)
{
    uint8_t bytes[LITERAL_MAX];
    size_t size = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        while (i + 1 < n && text[i] == ' ')
            i++;
        int high = hex_value(text[i]), low = hex_value(text[i + 1]);
        if (high < 0 || low < 0)
            return;
        bytes[size++] = (uint8_t)(high << 4 | low);
    }
    if (size)
        put_seed(target, bytes, size);
}

/* A codebook as the file that a recipe names. */
static void put_codebook(const char *target, const char *text, size_t n)
{
    static const char rules[] = "# codes\n"
                                "*.w=table.json|e8m0_t32s4,round=even  # a rule\n\nbias=float16\n\xff";
    uint8_t input[LARGEST];
    if (n < 2 || text[0] != '{')
        return;
    memcpy(input, rules, sizeof rules - 1);
    memcpy(input + sizeof rules - 1, text, n);
    put_seed(target, input, sizeof rules - 1 + n);
}

/* A header of safetensors, with as much data as its offsets speak of. */
static void put_header(const char *target, const char *text, size_t n)
{
    uint8_t input[LARGEST + 8] = { 0 };
    char copy[LITERAL_MAX + 1];
    unsigned long end = 0;
    if (n < 2 || text[0] != '{' || n > LARGEST / 2)
        return;
    memcpy(copy, text, n);
    copy[n] = '\0';
    for (const char *at = copy; (at = strstr(at, "\"data_offsets\"")) != NULL; at++) {
        unsigned long from, to;
        if (sscanf(at, "\"data_offsets\":[%lu,%lu]", &from, &to) == 2 && to > end)
            end = to;
    }
    put_le(input, n, 8);
    memcpy(input + 8, text, n);
    for (size_t i = 0; i < 100; i++)
        input[8 + n + i] = (uint8_t)(i + 1);
    put_seed(target, input, 8 + n + (end < 4096 ? end : 0));
}

/* An index without shards, as fuzz_shards takes it. */
static void put_index(const char *target, const char *text, size_t n)
{
    static const char shard[] = "\x3e\0\0\0\0\0\0\0"
                                "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}          \1";
    uint8_t input[LARGEST];
    if (n < 2 || text[0] != '{')
        return;
    size_t at = set_put(input, sizeof input, 0, (const uint8_t *)text, n);
    at = set_put(input, sizeof input, at, (const uint8_t *)shard, 8 + 0x3e + 1);
    put_seed(target, input, at);
}

/* A header of .npy with 48 bytes of data, in version 1. */
static void put_array(const char *target, const char *text, size_t n)
{
    uint8_t input[LARGEST] = "\x93NUMPY\1\0";
    if (n < 8 || text[0] != '{')
        return;
    put_le(input + 8, n, 2);
    memcpy(input + 10, text, n);
    for (size_t i = 0; i < 48; i++)
        input[10 + n + i] = (uint8_t)i;
    put_seed(target, input, 10 + n + 48);
}

/* The JSON of a packet, as one of each kind. */
static void put_packet(const char *target, const char *text, size_t n)
{
    for (unsigned kind = 1; kind <= 6; kind++) {
        uint8_t input[LARGEST] = "TNSH\1";
        if (n < 2 || text[0] != '{')
            return;
        put_le(input + 6, kind, 2);
        put_le(input + 8, n, 4);
        put_le(input + 12, kind == 2 || kind == 3, 4);
        memcpy(input + 16, text, n);
        put_seed(target, input, 16 + n);
    }
}

static const struct { const char *file, *target; literal_fn put; } texts[] = {
    { "test_rules", "rules", put_text }, { "test_rules_datatype", "rules", put_text },
    { "test_rules_fixed", "rules", put_text },
    { "test_rules", "recipe", put_text }, { "test_rules_datatype", "recipe", put_text },
    { "test_codebook", "recipe", put_codebook }, { "test_datatype_files", "recipe", put_codebook },
    { "test_datatype", "datatype", put_text }, { "test_datatype_files", "datatype", put_text },
    { "test_codebook", "datatype", put_text },
    { "test_json", "json", put_text }, { "test_transcode", "json", put_text },
    { "test_cbor", "cbor", put_hex },
    { "test_transcode", "cbor", put_hex }, { "test_json", "cbor", put_hex },
    { "test_descriptor_parse", "descriptor", put_text },
    { "test_descriptor_refuse", "descriptor", put_text }, { "test_descriptor_check", "descriptor", put_text },
    { "test_symbols", "descriptor", put_text }, { "test_raw", "raw", put_text },
    { "test_raw_damage", "raw", put_text },
    { "test_raw_sparse", "raw", put_text }, { "test_raw_datatype", "raw", put_text },
    { "test_raw_properties", "raw", put_text },
    { "test_mtx", "mtx", put_text }, { "test_mtx_number", "mtx", put_text },
    { "test_safetensors", "safetensors", put_header },
    { "test_shards_hostile", "shards", put_index }, { "test_safetensors", "shards", put_index },
    { "test_npy", "npy", put_array },
    { "test_wire", "wire", put_packet }, { "test_share_hostile", "wire", put_packet },
    { "test_c_names", "export", put_text },
};

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: make_seeds FOLDER TESTS\n");
        return 2;
    }
    char path[400];
    out = argv[1];
    convert_all();
    write_models();
    write_sets();
    write_indices();
    write_edits();
    write_names();
    write_pairs();
    write_remakes();
    write_works();
    write_choices();
    snprintf(path, sizeof path, "%s/fuzz/corpus/wire", argv[2]);
    write_conversations(path);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(path, sizeof path, "%s/unit/%s.c", argv[2], texts[i].file);
        each_literal(path, texts[i].target, texts[i].put);
    }
    printf("%zu seeds, %zu conversions refused\n", kept, refused);
    return 0;
}
