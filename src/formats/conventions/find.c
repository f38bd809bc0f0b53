/* formats/conventions/find.c - which entries of a file are codes of a convention, or belong to them. */
#include "formats/conventions/unpack.h"
#include "base/error.h"
#include "base/vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_SETS = 10 };

typedef struct finding {
    tn_file    *file;
    tn_quant_config config;
    const char *unknown;        /* the name of a convention that has no row here, or NULL */
    uint64_t    rows[TYPE_SETS];    /* whose first part may have a type, by the number of its bit */
    uint64_t    ends[256];      /* whose first part may have a name that ends with this byte */
    tn_buf      name;           /* of a part, NUL-terminated */
    const tn_tensor **made;     /* tensors that several entries become */
    size_t      nmade, cap;
    tn_names    made_names;
    const char *input_scale;    /* the first entry that multiplies the inputs of a layer, or NULL */
    size_t      input_scales;
} finding;

static unsigned type_set(tn_dtype dtype)
{
    static const uint16_t sets[TN_DTYPE_COUNT] = {
        [TN_UINT8] = TN_HAS_U8, [TN_INT8] = TN_HAS_I8, [TN_INT16] = TN_HAS_I16, [TN_INT32] = TN_HAS_I32,
        [TN_UINT32] = TN_HAS_U32, [TN_INT64] = TN_HAS_I64, [TN_FLOAT8_E4M3FN] = TN_HAS_F8,
        [TN_FLOAT8_E5M2] = TN_HAS_F8, [TN_FLOAT8_E4M3FNUZ] = TN_HAS_F8, [TN_FLOAT8_E5M2FNUZ] = TN_HAS_F8,
        [TN_FLOAT8_E4M3] = TN_HAS_F8, [TN_FLOAT8_E8M0] = TN_HAS_E8M0, [TN_FLOAT16] = TN_HAS_FLOAT,
        [TN_BFLOAT16] = TN_HAS_FLOAT, [TN_FLOAT32] = TN_HAS_FLOAT, [TN_FLOAT64] = TN_HAS_FLOAT,
    };
    return dtype < TN_DTYPE_COUNT && sets[dtype] ? sets[dtype] : TN_HAS_OTHER;
}

static bool is_plain(const tn_tensor *t)
{
    return t->form == TN_FORM_DENSE && t->nparts == 1;
}

/* Whether it may be codes in a file whose quantization is not known. */
static bool may_be_codes(const tn_tensor *t)
{
    const unsigned codes = TN_HAS_U8 | TN_HAS_I8 | TN_HAS_I16 | TN_HAS_I32 | TN_HAS_U32 | TN_HAS_I64 |
                           TN_HAS_F8 | TN_HAS_E8M0;
    return t->rank >= 2 && is_plain(t) && (type_set(t->dtype) & codes);
}

static void list_rows(finding *f)
{
    const tn_convention *row;
    for (size_t i = 0; (row = tn_convention_at(i)); i++) {
        bool named = !row->method || (f->config.method && strcmp(row->method, f->config.method) == 0);
        for (unsigned k = 0; named && k < TYPE_SETS; k++)
            f->rows[k] |= (uint64_t)(row->parts[0].types >> k & 1) << i;
        const char *suffix = row->parts[0].suffix;
        for (unsigned end = 0; end < 256; end++)
            if (!*suffix || end == (uint8_t)suffix[strlen(suffix) - 1])
                f->ends[end] |= UINT64_C(1) << i;
    }
}

/* The name of a part of the tensor whose common name has n bytes; NULL without memory. */
static const char *part_name(finding *f, const char *common, size_t n, const char *suffix)
{
    f->name.size = 0;
    tn_buf_put(&f->name, common, n);
    tn_buf_put(&f->name, suffix, strlen(suffix) + 1);
    return f->name.bad ? NULL : (const char *)f->name.data;
}

/* NULL: it is not there, or of another kind. */
static const tn_tensor *find_part(const finding *f, const char *name, const tn_convention_part *part)
{
    const tn_tensor *t = tn_file_find(f->file, name);
    bool fits = t && is_plain(t) && (type_set(t->dtype) & part->types) && t->rank >= part->min_rank;
    return fits && !tn_packed_known(f->file, t) ? t : NULL;
}

static tn_status keep(finding *f, const tn_convention *row, const tn_tensor *const *parts,
                      const tn_packed *found, tn_error *err)
{
    const tn_packed *kept = tn_arena_copy(&f->file->arena, found, sizeof *found);
    if (!f->file->packed)
        f->file->packed = tn_arena_zalloc(&f->file->arena, f->file->count, sizeof *f->file->packed);
    TN_NEED(kept && f->file->packed, err);
    for (unsigned k = 0; k < TN_CONVENTION_PARTS && row->parts[k].suffix; k++)
        if (parts[k])
            f->file->packed[parts[k] - f->file->tensors] = kept;
    return TN_OK;
}

/* The parts of a tensor whose first one is t; *fits: they are of this convention. */
static tn_status find_parts(finding *f, const tn_convention *row, const tn_tensor **parts, tn_packed *found,
                            bool *fits, tn_error *err)
{
    const tn_tensor *t = parts[0];
    size_t len = strlen(t->name), tail = strlen(row->parts[0].suffix);
    *fits = len >= tail && memcmp(t->name + len - tail, row->parts[0].suffix, tail) == 0 &&
            t->rank >= row->parts[0].min_rank;
    for (size_t k = 1; *fits && k < TN_CONVENTION_PARTS && row->parts[k].suffix; k++) {
        const char *name = part_name(f, t->name, len - tail, row->parts[k].suffix);
        TN_NEED(name, err);
        parts[k] = find_part(f, name, &row->parts[k]);
        found->count += parts[k] != NULL;
        *fits = parts[k] || row->parts[k].use != TN_PART_SIGN;
        bool lacks = row->parts[k].use == TN_PART_NEEDED || tn_file_find(f->file, name);
        if (!parts[k] && lacks && !found->missing) {
            found->missing = tn_arena_text(&f->file->arena, name, strlen(name));
            TN_NEED(found->missing, err);
        }
    }
    if (*fits && !found->missing && row->fits)
        *fits = row->fits(parts);
    return TN_OK;
}

/* An entry of the module whose weight begins with `first`, or NULL. */
static tn_status find_beside(finding *f, const tn_convention *row, const tn_tensor *first, const char *suffix,
                             const tn_tensor **entry, tn_error *err)
{
    const char *name = part_name(f, first->name, strlen(first->name) - strlen(row->parts[0].suffix), suffix);
    TN_NEED(name, err);
    *entry = tn_file_find(f->file, name);
    return TN_OK;
}

/* Sets found->why if an entry changes the values of the weight. */
static tn_status find_change(finding *f, const tn_convention *row, const tn_tensor *first, tn_packed *found,
                             tn_error *err)
{
    const tn_tensor *entry;
    TN_TRY(find_beside(f, row, first, ".svdquant_lora_a", &entry, err));
    if (!entry)
        return TN_OK;
    found->why = tn_arena_printf(&f->file->arena, "to the weight is to be added the product with %s, "
                                 "which this version does not do", tn_quote_z(entry->name).text);
    TN_NEED(found->why, err);
    return TN_OK;
}

/* Counts entries that multiply the inputs of a layer: they are tensors of their own. */
static tn_status count_input_scale(finding *f, const tn_convention *row, const tn_tensor *first,
                                   tn_error *err)
{
    static const char *const suffixes[] = { ".pre_quant_scale", "_pre_quant_scale" };
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const tn_tensor *entry;
        TN_TRY(find_beside(f, row, first, suffixes[i], &entry, err));
        if (!entry)
            continue;
        if (!f->input_scales++)
            f->input_scale = entry->name;
    }
    return TN_OK;
}

/* Values of the weights alone would be wrong without them. */
static void warn_of_input_scales(const finding *f)
{
    char line[300], more[40] = "";
    if (f->input_scales > 1)
        snprintf(more, sizeof more, " and %zu more", f->input_scales - 1);
    snprintf(line, sizeof line,
             "tensor %s%s: multiplies the inputs of its layer; it stays a tensor of its own",
             tn_quote_z(f->input_scale).text, more);
    tn_file_keep_warning(f->file, line);
}

static const char *made_name(const void *owner, size_t i)
{
    return ((const finding *)owner)->made[i]->name;
}

/* Keeps a tensor that was made; *same: another one has its name. */
static tn_status keep_made(finding *f, const tn_tensor *t, bool *same, tn_error *err)
{
    TN_NEED(TN_GROW(f->made, f->nmade, f->cap), err);
    f->made[f->nmade] = t;
    size_t other = tn_names_add(&f->made_names, f, made_name, f->nmade);
    TN_NEED(other != TN_NAMES_NOMEM, err);
    *same = other != TN_NAMES_ADDED;
    f->nmade += !*same;
    return TN_OK;
}

/* Whether a word is one of those in a text. */
static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

/* The configuration may name a method whose models have other entries. */
static tn_status find_contradiction(const finding *f, const tn_convention *row, tn_packed *found,
                                    tn_error *err)
{
    const char *method = f->config.method;
    if (!method || !*method || !row->methods || has_word(row->methods, method))
        return TN_OK;
    found->why = tn_arena_printf(&f->file->arena, "the configuration says that the quantization method is %s",
                                 tn_quote_z(method).text);
    TN_NEED(found->why, err);
    return TN_OK;
}

/* One tensor of the parts, if this version can make it: else found->why says why not. */
static tn_status unpack(finding *f, const tn_convention *row, const tn_tensor *const *parts,
                        tn_packed *found, tn_error *err)
{
    tn_unpacking u = { .file = f->file, .row = row, .config = &f->config, .from = parts };
    if (!row->unpack || found->missing || f->unknown)
        return TN_OK;
    TN_TRY(find_contradiction(f, row, found, err));
    if (!found->why)
        TN_TRY(find_change(f, row, parts[0], found, err));
    if (found->why)
        return TN_OK;
    TN_TRY(count_input_scale(f, row, parts[0], err));
    TN_TRY(tn_unpack(&u, &found->tensor, err));
    const tn_tensor *same = found->tensor ? tn_file_find(f->file, found->tensor->name) : NULL;
    for (unsigned k = 0; k < TN_CONVENTION_PARTS && same; k++)
        same = parts[k] == same ? NULL : same;
    bool taken = same != NULL;
    if (found->tensor && !same)
        TN_TRY(keep_made(f, found->tensor, &taken, err));
    if (taken) {
        found->tensor = NULL;
        u.why = "another tensor has the name of the values";
    }
    found->why = u.why;
    return TN_OK;
}

/* Of a name; 0: it is empty. */
static uint8_t last_byte(const char *name)
{
    size_t n = strlen(name);
    return n ? (uint8_t)name[n - 1] : 0;
}

static tn_status find_packed(finding *f, const tn_tensor *t, tn_error *err)
{
    uint64_t rows = f->rows[__builtin_ctz(type_set(t->dtype))];
    if (rows)
        rows &= f->ends[last_byte(t->name)];
    if (!rows || !is_plain(t) || tn_packed_known(f->file, t))
        return TN_OK;
    for (; rows; rows &= rows - 1) {
        const tn_convention *row = tn_convention_at((size_t)__builtin_ctzll(rows));
        const tn_tensor *parts[TN_CONVENTION_PARTS] = { t };
        tn_packed found = { .convention = row->name, .count = 1 };
        bool fits;
        TN_TRY(find_parts(f, row, parts, &found, &fits, err));
        if (!fits)
            continue;
        if (!row->name)
            found.convention = f->unknown ? f->unknown : "an unknown convention";
        found.codes = parts[row->codes] ? parts[row->codes]->name : t->name;
        TN_TRY(unpack(f, row, parts, &found, err));
        return keep(f, row, parts, &found, err);
    }
    return TN_OK;
}

/* Methods whose weights of float8 have scales. */
static bool scales_float8(const char *method)
{
    static const char *const methods[] = { "fp8", "fbgemm_fp8", "modelopt", "compressed-tensors" };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i], method) == 0)
            return true;
    return false;
}

/* Whether it may be codes that a known method left without their other parts.  Integers of 64 bits are
 * positions and the like. */
static bool may_be_left_over(const finding *f, const tn_tensor *t)
{
    const char *method = f->config.method;
    return method && *method && t->dtype != TN_INT64 &&
           (!(type_set(t->dtype) & (TN_HAS_F8 | TN_HAS_E8M0)) || scales_float8(method));
}

/* A tensor of integers in a file whose quantization is not known, or is and explains it not. */
static tn_status suspect(finding *f, const tn_tensor *t, tn_error *err)
{
    static const tn_convention any = { .parts = { { .suffix = "" } } };
    tn_packed found = { .convention = f->unknown, .codes = t->name, .count = 1 };
    if (!may_be_codes(t) || tn_packed_known(f->file, t) || (!f->unknown && !may_be_left_over(f, t)))
        return TN_OK;
    if (!f->unknown) {
        found.convention = tn_arena_printf(&f->file->arena, "the quantization method %s",
                                           tn_quote_z(f->config.method).text);
        found.why = "their scales or other parts are missing or of another type";
        TN_NEED(found.convention, err);
    }
    return keep(f, &any, &t, &found, err);
}

/* What names the method, in the order of trust: the configuration, the file's metadata. */
static tn_status find_method(finding *f, tn_arena *arena, tn_error *err)
{
    tn_file *file = f->file;
    tn_error why;
    tn_status status = tn_config_find(file->shards[0].path, arena, &f->config, &why);
    if (status == TN_ERR_NOMEM)
        return tn_fail_nomem(err);
    if (status) {
        char line[TN_ERROR_LINE];
        tn_error_format(&why, line, sizeof line);
        tn_file_keep_warning(file, line);
        f->config = (tn_quant_config){ 0 };
        f->unknown = "a quantization that the broken configuration beside the file may name";
    }
    for (size_t i = 0; i < file->nmeta && !f->config.method && !status; i++)
        if (strcmp(file->meta[i].key, "_quantization_metadata") == 0)
            f->config.method = "comfyui";
    if (f->config.method && !tn_convention_knows(f->config.method)) {
        f->unknown = tn_arena_printf(&file->arena, "the unknown quantization method %s",
                                     tn_quote_z(f->config.method).text);
        TN_NEED(f->unknown, err);
    }
    return TN_OK;
}

static tn_status find_all(finding *f, tn_error *err)
{
    tn_file *file = f->file;
    list_rows(f);
    for (size_t i = 0; i < file->count; i++)
        TN_TRY(find_packed(f, &file->tensors[i], err));
    bool suspects = f->unknown || (f->config.method && *f->config.method);
    for (size_t i = 0; i < file->count && suspects; i++)
        TN_TRY(suspect(f, &file->tensors[i], err));
    if (f->input_scales)
        warn_of_input_scales(f);
    return TN_OK;
}

static const char *tensor_name(const void *owner, size_t i)
{
    return ((const tn_file *)owner)->tensors[i].name;
}

static tn_status index_names(tn_file *file, tn_error *err)
{
    size_t other;
    tn_names_free(&file->names);
    TN_NEED(tn_names_init(&file->names, file->count), err);
    size_t i = tn_names_add_all(&file->names, file, tensor_name, file->count, &other);
    if (i == file->count)
        return TN_OK;
    return tn_in_tensor(tn_fail(err, TN_ERR_CORRUPT, "two quantized tensors have this name"),
                        file->tensors[i].name, err);
}

/* The place of the codes is that of the tensor. */
static bool has_place(const tn_packed *p, const tn_tensor *entry)
{
    return !p || !p->tensor || strcmp(p->codes, entry->name) == 0;
}

/* What the container lists, each with the place of its tensor in the file's list. */
static tn_status list_entries(tn_file *file, tn_error *err)
{
    tn_listed *listed = tn_arena_zalloc(&file->arena, file->count, sizeof *listed);
    size_t *places = tn_arena_zalloc(&file->arena, file->count, sizeof *places), kept = 0;
    TN_NEED(listed && places, err);
    for (size_t i = 0; i < file->count; i++)
        places[i] = has_place(file->packed[i], &file->tensors[i]) ? kept++ : 0;
    for (size_t i = 0; i < file->count; i++) {
        const tn_packed *p = file->packed[i];
        const tn_tensor *t = p && p->tensor ? tn_file_find(file, p->codes) : &file->tensors[i];
        listed[i] = (tn_listed){ file->tensors[i], places[t - file->tensors] };
    }
    file->listed = listed;
    file->nlisted = file->count;
    return TN_OK;
}

/* Tensors take the places of their codes, and the other entries are dropped. */
static tn_status replace(tn_file *file, tn_error *err)
{
    tn_properties *properties = NULL;
    size_t kept = 0;
    TN_TRY(list_entries(file, err));
    if (file->properties)
        TN_NEED(properties = tn_arena_zalloc(&file->arena, file->count, sizeof *properties), err);
    for (size_t i = 0; i < file->count; i++) {
        const tn_packed *p = file->packed[i];
        if (!has_place(p, &file->tensors[i]))
            continue;
        if (properties)
            properties[kept] = file->properties[i];
        if (file->at)
            file->at[kept] = file->at[i];
        file->tensors[kept] = p && p->tensor ? *p->tensor : file->tensors[i];
        file->packed[kept++] = p;
    }
    file->count = kept;
    file->properties = properties;
    return index_names(file, err);
}

/* Files of floats alone need no configuration. */
static bool has_other_than_floats(const tn_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        if (!(type_set(file->tensors[i].dtype) & (TN_HAS_FLOAT | TN_HAS_OTHER)))
            return true;
    return false;
}

static tn_status find(finding *f, tn_error *err)
{
    tn_status status = find_all(f, err);
    if (!status && f->nmade)
        status = replace(f->file, err);
    free(f->made);
    tn_names_free(&f->made_names);
    tn_buf_free(&f->name);
    return status;
}

tn_status tn_packed_find(tn_file *file, tn_error *err)
{
    finding f = { .file = file };
    tn_arena arena = { 0 };
    tn_status status = has_other_than_floats(file) ? find_method(&f, &arena, err) : TN_OK;
    if (!status)
        status = find(&f, err);
    tn_arena_free(&arena);
    return status;
}

tn_status tn_packed_find_with(tn_file *file, const tn_quant_config *config, tn_error *err)
{
    finding f = { .file = file, .config = *config };
    return find(&f, err);
}
