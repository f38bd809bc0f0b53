/* cli/ui/text.c - numbers, shapes and storage as text. */
#include "ui/text.h"
#include "ui/say.h"

#include <stdio.h>
#include <string.h>

char *put_number(char *to, uint64_t number)
{
    char digits[24];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (n > 0)
        *to++ = digits[--n];
    return to;
}

short_text human_size(uint64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    short_text text;
    if (bytes < 1024) {
        memcpy(put_number(text.s, bytes), " B", 3);
        return text;
    }
    double size = (double)bytes / 1024;
    size_t unit = 0;
    for (; size >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1024;
    snprintf(text.s, sizeof text.s, "%.1f %s", size, units[unit]);
    return text;
}

short_text grouped(uint64_t number)
{
    char digits[24];
    int n = (int)(put_number(digits, number) - digits);
    short_text text;
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            text.s[used++] = ',';
        text.s[used++] = digits[i];
    }
    text.s[used] = '\0';
    return text;
}

short_text counted(uint64_t n, const char *thing)
{
    short_text text;
    snprintf(text.s, sizeof text.s, "%.30s %.30s%s", grouped(n).s, thing, n == 1 ? "" : "s");
    return text;
}

short_text percent(uint64_t part, uint64_t all)
{
    short_text text;
    snprintf(text.s, sizeof text.s, "%.3g%%", 100 * (double)part / (double)all);
    return text;
}

shape_text shape_of(uint32_t rank, const int64_t *shape)
{
    shape_text text;
    char *to = text.s;
    *to++ = '[';
    for (uint32_t d = 0; d < rank && d < TN_MAX_RANK; d++) {
        if (d > 0) {
            *to++ = ',';
            *to++ = ' ';
        }
        if (shape[d] < 0)
            *to++ = '-';
        to = put_number(to, shape[d] < 0 ? 0 - (uint64_t)shape[d] : (uint64_t)shape[d]);
    }
    *to++ = ']';
    *to = '\0';
    return text;
}

shape_text index_of(uint64_t flat, uint32_t rank, const int64_t *shape)
{
    int64_t index[TN_MAX_RANK] = { 0 };
    for (uint32_t d = rank; d-- > 0;) {
        uint64_t extent = shape[d] > 0 ? (uint64_t)shape[d] : 1;
        index[d] = (int64_t)(flat % extent);
        flat /= extent;
    }
    return shape_of(rank, index);
}

static short_text foreign(const char *spelling, size_t n)
{
    char cut[40];
    tn_escape(cut, sizeof cut, spelling, n);
    short_text text;
    snprintf(text.s, sizeof text.s, "?%s?", cut);
    return text;
}

static short_text copied(const char *name)
{
    short_text text;
    size_t n = strnlen(name, sizeof text.s - 1);
    memcpy(text.s, name, n);
    text.s[n] = '\0';
    return text;
}

tn_stored_info stored_info(const tn_tensor *tensor, const tn_part *part)
{
    tn_stored_info info = { .size = sizeof info };
    tn_part_stored(tensor, part, &info);        /* cannot fail: it knows this size */
    return info;
}

static short_text type_or_spelling(tn_dtype dtype, const char *spelling)
{
    const tn_dtype_info *info = tn_dtype_get(dtype);
    if (info)
        return copied(info->name);
    return spelling ? foreign(spelling, strlen(spelling)) : foreign("", 0);
}

short_text type_of(tn_dtype dtype, const tn_part *part)
{
    return type_or_spelling(dtype, part ? stored_info(NULL, part).type : NULL);
}

form_text type_and_form(tn_dtype data, const char *form, const char *spelling)
{
    form_text text;
    short_text type = type_or_spelling(data, spelling);
    memcpy(text.s, type.s, sizeof type.s);
    if (strcmp(form, tn_form_name(TN_FORM_DENSE)) != 0)
        snprintf(text.s, sizeof text.s, "%s %.80s", type.s, escaped(form));
    return text;
}

bool is_sparse(const tn_tensor *tensor, uint64_t *entries)
{
    bool sparse = tensor->form == TN_FORM_COO || tensor->form == TN_FORM_CSR;
    *entries = sparse ? (uint64_t)tensor->parts[0].array.shape[0] : 0;
    return sparse;
}

form_text datatype_name(const char *datatype)
{
    const tn_datatype_name *name = NULL;
    const char *open = strchr(datatype, '['), *close = open ? strchr(open, ']') : NULL;
    form_text text;
    for (size_t i = 0; (name = tn_datatype_at(i)) && strcmp(name->text, datatype) != 0;)
        i++;
    snprintf(text.s, sizeof text.s, "%s", name ? name->name : escaped(datatype));
    if (close) {
        char head[40];
        tn_escape(head, sizeof head, datatype, (size_t)(open + 1 - datatype));
        snprintf(text.s, sizeof text.s, "%s...%s", head, escaped(close));
    }
    return text;
}

short_text stored_as(const tn_scaling *s)
{
    short_text text = { "" };
    if (s->store)
        snprintf(text.s, sizeof text.s, ", stored as %.48s", type_of(s->store, NULL).s);
    else if (s->unpacked)
        snprintf(text.s, sizeof text.s, ", unpacked");
    return text;
}

form_text type_and_datatype(tn_dtype values, const char *datatype)
{
    form_text text, name = datatype_name(datatype);
    short_text type = type_of(values, NULL);
    size_t n = strlen(type.s);
    if (strncmp(name.s, type.s, n) == 0 && name.s[n] == '|')
        return name;
    snprintf(text.s, sizeof text.s, "%s %.90s", type.s, name.s);
    return text;
}

/* For integer codes with scales, the type of the codes. */
form_text tensor_type(const tn_tensor *tensor)
{
    uint64_t entries, all = tensor_elements(tensor);
    if (tensor->scaling && tensor->scaling->datatype)
        return type_and_datatype(tensor->dtype, tensor->scaling->datatype);
    form_text text = type_and_form(tensor->scaling ? tensor->parts[0].array.dtype : tensor->dtype,
                                   tn_tensor_form_name(tensor), stored_info(tensor, tensor->parts).type);
    if (is_sparse(tensor, &entries) && all) {
        size_t n = strlen(text.s);
        snprintf(text.s + n, sizeof text.s - n, " %.20s", percent(entries, all).s);
    }
    return text;
}

const char *checksum_name(tn_checksum checksum)
{
    switch (checksum) {
    case TN_CHECKSUM_NONE:
        return "none";
    case TN_CHECKSUM_CRC32C:
        return "crc32c";
    case TN_CHECKSUM_SHA256:
        return "sha256";
    case TN_CHECKSUM_CRC32:
        return "crc32";
    default:
        return NULL;
    }
}

bool is_text(const tn_stored_info *stored)
{
    const char *name = stored->encoding_name;
    return stored->encoding == TN_ENCODING_RAW && name && strcmp(name, "text") == 0;
}

short_text encoding_of(const tn_stored_info *stored, uint64_t nbytes)
{
    const char *name = is_text(stored) ? "text" : tn_encoding_name(stored->encoding);
    if (!name) {
        const char *spelling = stored->encoding_name ? stored->encoding_name : "";
        return foreign(spelling, strlen(spelling));
    }
    short_text text = copied(name);
    size_t used = strlen(text.s);
    if (stored->encoding != TN_ENCODING_RAW && nbytes > 0)
        used += (size_t)snprintf(text.s + used, sizeof text.s - used, " %.0f%%",
                                 100 * (double)stored->bytes / (double)nbytes);
    if (stored->order == TN_BIG_ENDIAN)
        snprintf(text.s + used, sizeof text.s - used, " big-endian");
    return text;
}

short_text checksum_of(const tn_stored_info *stored)
{
    if (stored->checksum == TN_CHECKSUM_NONE)
        return copied("-");
    const char *name = checksum_name(stored->checksum);
    if (name)
        return copied(name);
    const char *spelling = stored->checksum_text ? stored->checksum_text : "";
    return foreign(spelling, strcspn(spelling, ":"));
}

unsigned alignment_of(uint64_t offset)
{
    unsigned alignment = 1;
    while (alignment < 4096 && offset % (2 * alignment) == 0)
        alignment *= 2;
    return alignment;
}

uint64_t tensor_nbytes(const tn_tensor *tensor)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < tensor->nparts; i++) {
        const tn_part *part = &tensor->parts[i];
        total += part->array.dtype == TN_UNKNOWN ? stored_info(tensor, part).bytes : part->nbytes;
    }
    return total;
}

uint64_t tensor_elements(const tn_tensor *tensor)
{
    uint64_t count = 0;
    return tn_shape_count(tensor->rank, tensor->shape, &count) == TN_OK ? count : 0;
}

double tensor_bits(const tn_tensor *tensor)
{
    uint64_t all = tensor_elements(tensor);
    return all ? 8 * (double)tensor_nbytes(tensor) / (double)all : 0;
}

/* Where a JSON text has the comma after an item of its outermost array from byte `from` on; 0: nowhere.
 * *items counts all of them. */
static size_t find_comma(const char *json, size_t from, size_t *items)
{
    size_t found = 0, depth = 0;
    bool quoted = false;
    *items = 1;
    for (size_t i = 0; json[i]; i++) {
        if (json[i] == '"')
            quoted = !quoted;
        else if (quoted && json[i] == '\\')
            i++;
        else if (!quoted && strchr("[{", json[i]))
            depth++;
        else if (!quoted && strchr("]}", json[i]))
            depth--;
        if (quoted || json[i] != ',' || depth != 1)
            continue;
        ++*items;
        found = !found && i >= from ? i : found;
    }
    return found;
}

/* Shortens a long array: its first items, and how many there are. */
static char *shorten(char *json)
{
    enum { LONG = 200, KEPT = 100, ROOM = 40 };
    size_t items, n = strlen(json);
    if (n <= LONG || *json != '[')
        return json;
    size_t cut = find_comma(json, KEPT, &items);
    if (cut && cut + ROOM < n)
        snprintf(json + cut, ROOM, ",...] (%zu items)", items);
    return json;
}

const char *meta_text(const tn_meta *meta)
{
    static char *text;
    if (meta->text) {
        const char *safe = escaped(meta->text);
        size_t size = strlen(safe) + 3;
        text = must_resize(text, size);
        snprintf(text, size, "\"%s\"", safe);
    } else {
        size_t size = tn_meta_json(meta, NULL, 0) + 1;
        text = must_resize(text, size);
        tn_meta_json(meta, text, size);
        text = shorten(text);
    }
    return text;
}

const char *handle_name(tn_handle_type type)
{
    static const char *const names[] = { "none", "dma_buf_fd", "cuda_ipc", "metal_shared", "memfd" };
    return names[type];
}
