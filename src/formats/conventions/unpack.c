/* formats/conventions/unpack.c - the parts of one tensor, as the entries of a module have them. */
#include "formats/conventions/unpack.h"
#include "base/error.h"
#include "store/forms.h"
#include "store/gather.h"
#include "tensor/array.h"
#include "tensor/form.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tn_unpack_refuse(tn_unpacking *u, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    u->why = tn_arena_text(&u->file->arena, text, strlen(text));
    if (!u->why)
        u->status = tn_fail_nomem(u->err);
    return false;
}

static bool has_memory(tn_unpacking *u, const void *memory)
{
    if (!memory && !u->status)
        u->status = tn_fail_nomem(u->err);
    return memory != NULL;
}

bool tn_unpack_rename(tn_unpacking *u, const char *suffix)
{
    u->name = tn_arena_printf(&u->file->arena, "%s%s", u->module, suffix);
    return has_memory(u, u->name);
}

const char *tn_unpack_spelling(tn_dtype dtype)
{
    static const char *const names[TN_DTYPE_COUNT] = {
        [TN_FLOAT8_E4M3FN] = "e4m3fn", [TN_FLOAT8_E5M2] = "e5m2", [TN_FLOAT8_E4M3FNUZ] = "e4m3b8fnuz",
        [TN_FLOAT8_E5M2FNUZ] = "e5m2b16fnuz", [TN_FLOAT8_E8M0] = "e8m0", [TN_UINT8] = "e8m0",
        [TN_FLOAT16] = "float16", [TN_BFLOAT16] = "bfloat16", [TN_FLOAT32] = "float32",
    };
    return dtype < TN_DTYPE_COUNT ? names[dtype] : NULL;
}

bool tn_unpack_as(tn_unpacking *u, const char *format, ...)
{
    tn_datatype *d = NULL;
    tn_error why;
    va_list args;
    va_start(args, format);
    vsnprintf(u->datatype, sizeof u->datatype, format, args);
    va_end(args);
    tn_status status = tn_datatype_parse(u->datatype, &d, &why);
    if (!status)
        status = tn_scaled_shapes_for(d, u->rank, u->shape, &u->shapes, &why);
    tn_datatype_free(d);
    return status ? tn_unpack_refuse(u, "%s: %s", u->datatype, why.text) : true;
}

/* ---- parts ---- */

/* Everything of a part but where its bytes are; NULL: the datatype has no such part. */
static tn_part *find_part(tn_unpacking *u, const char *role)
{
    for (uint32_t i = 0; i < u->shapes.count && i < TN_UNPACK_PARTS; i++) {
        const tn_scaled_part *p = &u->shapes.parts[i];
        tn_part *part = &u->parts[i];
        if (strcmp(p->role, role) != 0)
            continue;
        const int64_t *shape = tn_arena_copy(&u->file->arena, p->shape, p->rank * sizeof *shape + 1);
        if (!has_memory(u, shape))
            return NULL;
        *part = (tn_part){ .role = p->role, .array = { p->dtype, p->rank, shape, NULL } };
        if (tn_array_nbytes(&part->array, &part->nbytes) == TN_OK)
            return part;
        tn_unpack_refuse(u, "its values are more than a tensor can have");
        return NULL;
    }
    tn_unpack_refuse(u, "%s has no part %s", u->datatype, role);
    return NULL;
}

/* Whether the bytes of an entry lie one after the other, first element first. */
static bool is_dense(tn_unpacking *u, const tn_tensor *entry)
{
    const tn_part *p = &entry->parts[0];
    const tn_stored_more *more = tn_stored_more_of(p);
    if (!p->padded && !more->stride && !more->pitch && !more->derive && !more->skip)
        return true;
    return tn_unpack_refuse(u, "%s is stored with strides", tn_quote_z(entry->name).text);
}

/* Elements of several bytes that become bytes must have the lowest first. */
static bool is_little_endian(tn_unpacking *u, const tn_tensor *entry)
{
    if (tn_stored_of(&entry->parts[0])->order == TN_LITTLE_ENDIAN)
        return true;
    return tn_unpack_refuse(u, "%s is big-endian", tn_quote_z(entry->name).text);
}

bool tn_unpack_take(tn_unpacking *u, const char *role, const tn_tensor *entry)
{
    tn_part *p = find_part(u, role);
    if (!p || !is_dense(u, entry))
        return false;
    if (p->nbytes != entry->parts[0].nbytes)
        return tn_unpack_refuse(u, "%s has %llu bytes, but the values take %llu",
                                tn_quote_z(entry->name).text, (unsigned long long)entry->parts[0].nbytes,
                                (unsigned long long)p->nbytes);
    if (p->array.dtype != entry->dtype && tn_dtype_get(entry->dtype)->bits > 8 && !is_little_endian(u, entry))
        return false;
    p->stored = entry->parts[0].stored;
    p->data = tn_file_view(u->file, p);
    return true;
}

/* The part can be read in any order. */
static bool is_seekable(tn_unpacking *u, const tn_tensor *entry)
{
    uint8_t encoding = tn_stored_of(&entry->parts[0])->encoding;
    if (encoding == TN_ENCODING_RAW || encoding == TN_ENCODING_DEFLATE)
        return true;
    return tn_unpack_refuse(u, "%s is compressed", tn_quote_z(entry->name).text);
}

/* An entry, a matrix, with its dimensions exchanged. */
static bool transpose(tn_unpacking *u, const tn_tensor *entry, tn_part *p)
{
    int64_t *shape = tn_arena_zalloc(&u->file->arena, 4, sizeof *shape), *stride = shape ? shape + 2 : NULL;
    if (!has_memory(u, shape) || !is_dense(u, entry) || !is_seekable(u, entry))
        return false;
    if (entry->rank != 2)
        return tn_unpack_refuse(u, "%s is not a matrix", tn_quote_z(entry->name).text);
    shape[0] = entry->shape[1];
    shape[1] = entry->shape[0];
    stride[0] = 1;
    stride[1] = entry->shape[1];
    *p = entry->parts[0];
    p->array.shape = shape;
    p->data = NULL;
    tn_stored_more more = *tn_stored_more_of(p);
    more.stride = stride;
    p->stored = tn_file_keep_stored(u->file, p->stored, &more);
    return has_memory(u, p->stored);
}

bool tn_unpack_transpose(tn_unpacking *u, const char *role, const tn_tensor *entry)
{
    tn_part *p = find_part(u, role), turned;
    if (!p || !transpose(u, entry, &turned))
        return false;
    if (p->array.dtype != turned.array.dtype ||
        !tn_same_shape(p->array.rank, p->array.shape, 2, turned.array.shape))
        return tn_unpack_refuse(u, "the shape of %s does not fit the codes", tn_quote_z(entry->name).text);
    p->stored = turned.stored;
    return true;
}

bool tn_unpack_read(tn_unpacking *u, const tn_tensor *entry, void *to, size_t n)
{
    tn_status status;
    if (entry->parts[0].nbytes != n)
        return tn_unpack_refuse(u, "%s has another size than expected", tn_quote_z(entry->name).text);
    status = tn_part_read(u->file, &entry->parts[0], to, n, u->err);
    if (status)
        u->status = tn_in_tensor(status, entry->name, u->err);
    return !status;
}

bool tn_unpack_number(tn_unpacking *u, const tn_tensor *entry, int64_t *number)
{
    uint8_t bytes[8];
    size_t size = (size_t)entry->parts[0].nbytes;
    const tn_dtype_info *type = tn_dtype_get(entry->dtype);
    bool is_integer = type && (type->kind == TN_KIND_INT || type->kind == TN_KIND_UINT) && type->bits >= 8;
    if (!is_integer || entry->parts[0].nbytes != type->bits / 8)
        return tn_unpack_refuse(u, "%s is not one integer", tn_quote_z(entry->name).text);
    if (!tn_unpack_read(u, entry, bytes, size))
        return false;
    const tn_value value = tn_value_get(entry->dtype, bytes, 0);
    *number = value.kind == TN_KIND_INT ? value.i : (int64_t)value.u;
    return true;
}

bool tn_unpack_check(tn_unpacking *u, const tn_tensor *entry, int64_t rows, int64_t columns)
{
    if (entry->rank == 2 && entry->shape[0] == rows && entry->shape[1] == columns)
        return true;
    return tn_unpack_refuse(u, "%s must have the shape %lldx%lld to fit the codes",
                            tn_quote_z(entry->name).text, (long long)rows, (long long)columns);
}

/* ---- lines ---- */

static void close_lines(void *state)
{
    tn_line_state *s = state;
    for (uint32_t i = 0; i < s->ninputs; i++)
        tn_stream_free(&s->in[i].stream);
    free(s->room);
    free(s->scratch);
    free(s);
}

static tn_status open_inputs(tn_line_state *s, const tn_file *file, tn_error *err)
{
    const tn_stored_more *more = tn_stored_more_of(s->part);
    for (; s->ninputs < more->nfrom; s->ninputs++) {
        const tn_part *p = &more->from[s->ninputs];
        tn_status status = tn_stream_open(&s->in[s->ninputs].stream, file, s->tensor, p, 0, p->nbytes,
                                          tn_part_checksum(p), err);
        if (status) {
            s->ninputs++;
            return status;
        }
    }
    return s->how->begin ? s->how->begin(s, err) : TN_OK;
}

static tn_status open_lines(const tn_file *file, const tn_tensor *tensor, const tn_part *part, void **state,
                            tn_error *err)
{
    tn_line_state *s = calloc(1, sizeof *s);
    TN_NEED(s, err);
    s->how = (const tn_lines *)tn_stored_more_of(part)->derive;
    s->tensor = tensor;
    s->part = part;
    s->room = malloc(s->how->size + 1);
    s->scratch = malloc(s->how->scratch + 1);
    tn_status status = s->room && s->scratch ? open_inputs(s, file, err) : tn_fail_nomem(err);
    if (status)
        close_lines(s);
    else
        *state = s;
    return status;
}

tn_status tn_line_take(tn_line_state *s, unsigned input, void *to, size_t n, tn_error *err)
{
    uint8_t *out = to;
    while (n) {
        if (!s->in[input].left)
            TN_TRY(tn_stream_next(&s->in[input].stream, &s->in[input].bytes, &s->in[input].left, err));
        size_t some = s->in[input].left < n ? s->in[input].left : n;
        if (!some)
            return tn_fail(err, TN_ERR_CORRUPT, "its entry for the part %s ends early", s->part->role);
        memcpy(out, s->in[input].bytes, some);
        out += some;
        n -= some;
        s->in[input].bytes += some;
        s->in[input].left -= some;
    }
    return TN_OK;
}

tn_status tn_line_lend(tn_line_state *s, unsigned input, size_t n, const void **bytes, tn_error *err)
{
    const uint8_t *at = s->in[input].bytes;
    *bytes = s->scratch;
    if (s->in[input].left < n || (uintptr_t)at % sizeof(uint32_t))
        return tn_line_take(s, input, s->scratch, n, err);
    *bytes = at;
    s->in[input].bytes += n;
    s->in[input].left -= n;
    return TN_OK;
}

/* After the last line: the checksums of all inputs. */
static tn_status end_inputs(tn_line_state *s, tn_error *err)
{
    for (uint32_t i = 0; i < s->ninputs && !s->ended; i++) {
        TN_TRY(tn_stream_next(&s->in[i].stream, &s->in[i].bytes, &s->in[i].left, err));
        TN_TRY(tn_stream_check(&s->in[i].stream, s->tensor, s->in[i].stream.part, err));
    }
    s->ended = true;
    return TN_OK;
}

/* Makes the next line at `line`. */
static tn_status fill_line(tn_line_state *s, uint8_t *line, tn_error *err)
{
    s->at = 0;
    s->size = s->how->size;
    s->line = line;
    tn_status status = s->how->fill(s, err);
    s->number++;
    return status;
}

static tn_status next_lines(void *state, uint8_t *out, size_t cap, size_t *n, tn_error *err)
{
    tn_line_state *s = state;
    tn_status status = TN_OK;
    *n = 0;
    while (*n < cap && !status) {
        bool whole = s->at == s->size;
        if (whole && s->number == s->how->count)
            return *n ? TN_OK : end_inputs(s, err);
        if (whole && cap - *n >= s->how->size) {        /* where it is wanted */
            status = fill_line(s, out + *n, err);
            s->at = s->size;
            *n += s->size;
            continue;
        }
        if (whole)
            status = fill_line(s, s->room, err);
        size_t some = s->size - s->at < cap - *n ? s->size - s->at : cap - *n;
        if (!status)
            memcpy(out + *n, s->line + s->at, some);
        s->at += some;
        *n += some;
    }
    return status && s->tensor ? tn_in_tensor(status, s->tensor->name, err) : status;
}

/* ---- any lines ---- */

/* Bytes of an input that is mapped, as it is or transposed.  The buffer for others is not needed. */
static tn_status get_input(const tn_file *file, const tn_part *p, uint64_t from, uint64_t n, uint8_t *scratch,
                           tn_error *err)
{
    const tn_stored *stored = tn_stored_of(p);
    const tn_source *source = file->shards[stored->shard].source;
    const int64_t *stride = tn_stored_more_of(p)->stride;
    const unsigned bits = tn_dtype_get(p->array.dtype)->bits;
    if (!stride)
        return tn_source_read(source, stored->offset + from, scratch, (size_t)n, err);
    uint8_t few[64];
    const tn_gather gather = { source, stored->offset, few, sizeof few };
    const tn_grid grid = { bits, p->array.rank, p->array.shape, stride };
    return tn_gather_elements(&gather, &grid, from / (bits / 8), n / (bits / 8), scratch, err);
}

static tn_status make_some(const tn_file *file, const tn_part *part, uint64_t first, uint64_t n,
                           uint8_t *scratch, uint8_t *out, tn_error *err)
{
    const tn_lines *how = (const tn_lines *)tn_stored_more_of(part)->derive;
    const tn_part *from = &tn_stored_more_of(part)->from[0];
    const uint64_t size = n * how->size;
    tn_line_state s = { .how = how, .part = part, .number = first, .scratch = scratch + size };
    s.in[0].bytes = scratch;
    s.in[0].left = (size_t)size;
    TN_TRY(get_input(file, from, first * how->size, size, how->is_copy ? out : scratch, err));
    for (uint64_t i = 0; i < n && !how->is_copy; i++)
        TN_TRY(fill_line(&s, out + i * how->size, err));
    return TN_OK;
}

/* Whether lines can be made alone: the input is mapped, in the host's order, and has no checksum. */
static bool is_alone(const tn_lines *how, const tn_tensor *entry, const tn_part *from)
{
    return how->is_alone && entry->parts[0].data && tn_stored_of(from)->size && tn_swap_unit(from) == 1 &&
           tn_part_checksum(from) == TN_CHECKSUM_NONE && from->nbytes == how->count * how->size;
}

/* An input as a part of its own. */
static bool use_input(tn_unpacking *u, const tn_input *in, tn_part *p)
{
    if (in->transposed)
        return transpose(u, in->entry, p);
    *p = in->entry->parts[0];
    return is_dense(u, in->entry) && is_seekable(u, in->entry);
}

static bool make_lines(tn_unpacking *u, tn_part *p, const tn_lines *how, const tn_input *inputs, size_t n)
{
    tn_part *from = tn_arena_zalloc(&u->file->arena, n + 1, sizeof *from);
    tn_lines *kept = tn_arena_copy(&u->file->arena, how, sizeof *how);
    if (!has_memory(u, from) || !has_memory(u, kept))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!use_input(u, &inputs[i], &from[i]))
            return false;
    if (how->columns > TN_UNPACK_LINE)
        return tn_unpack_refuse(u, "its rows have more than %d columns", TN_UNPACK_LINE);
    kept->derive = (tn_derive){ .open = open_lines, .next = next_lines, .close = close_lines,
                                .line = how->size,
                                .lines = n == 1 && is_alone(how, inputs[0].entry, from) ? make_some : NULL };
    const tn_stored stored = { .type = n ? tn_stored_of(&from[0])->type : "", .order = TN_HOST_ORDER,
                               .shard = n ? tn_stored_of(&from[0])->shard : 0 };
    const tn_stored_more more = { .derive = &kept->derive, .from = from, .nfrom = (uint32_t)n };
    p->stored = tn_file_keep_stored(u->file, &stored, &more);
    return has_memory(u, p->stored);
}

bool tn_unpack_lines(tn_unpacking *u, const char *role, const tn_lines *how, const tn_input *inputs, size_t n)
{
    tn_part *p = find_part(u, role);
    return p && make_lines(u, p, how, inputs, n);
}

static void put_integer(uint8_t *out, int32_t value, size_t width)
{
    const int8_t narrow = (int8_t)value;
    const int16_t wide = (int16_t)value;
    memcpy(out, width == 1 ? (const void *)&narrow : &wide, width);
}

static tn_status fill_constant(tn_line_state *s, tn_error *err)
{
    (void)err;
    for (size_t i = 0; i < s->how->columns; i++)
        put_integer(s->line + i * s->how->width, s->how->add, s->how->width);
    return TN_OK;
}

bool tn_unpack_constant(tn_unpacking *u, const char *role, int32_t value)
{
    tn_part *p = find_part(u, role);
    if (!p || !p->array.rank)
        return false;
    uint64_t columns = (uint64_t)p->array.shape[p->array.rank - 1];
    uint32_t width = tn_dtype_get(p->array.dtype)->bits / 8;
    const tn_lines how = { .fill = fill_constant, .size = (size_t)columns * width, .columns = columns,
                           .count = columns ? p->nbytes / (columns * width) : 0, .width = width,
                           .add = value };
    return make_lines(u, p, &how, NULL, 0);
}

/* ---- the tensor ---- */

/* The common name of the entries. */
static bool find_module(tn_unpacking *u)
{
    const char *codes = u->from[u->row->codes]->name;
    size_t len = strlen(codes), tail = strlen(u->row->parts[u->row->codes].suffix);
    u->name = codes;
    u->module = tn_arena_text(&u->file->arena, codes, len - tail);
    return has_memory(u, u->module);
}

static tn_dtype value_type(const tn_unpacking *u)
{
    if (u->dtype != TN_UNKNOWN)
        return u->dtype;
    return u->config->dtype != TN_UNKNOWN ? u->config->dtype : TN_FLOAT32;
}

static bool build(tn_unpacking *u, tn_tensor *t)
{
    const tn_scaling scaling = { .axis = -1, .datatype = u->datatype, .store = TN_UNKNOWN };
    tn_error why;
    *t = *u->from[u->row->codes];
    t->name = u->name;
    t->form = TN_FORM_SCALED;
    t->dtype = value_type(u);
    t->rank = u->rank;
    t->shape = tn_arena_copy(&u->file->arena, u->shape, u->rank * sizeof *u->shape + 1);
    t->parts = tn_arena_copy(&u->file->arena, u->parts, u->shapes.count * sizeof *u->parts);
    t->nparts = u->shapes.count;
    t->tied = NULL;
    t->layout = NULL;
    t->scaling = tn_scaling_keep(&u->file->arena, &scaling, &u->file->datatype);
    if (!has_memory(u, t->shape) || !has_memory(u, t->parts) || !has_memory(u, t->scaling))
        return false;
    if (tn_form_check(t, tn_scaling_datatype(t->scaling, &u->file->datatype), &why))
        return tn_unpack_refuse(u, "%s", why.text);
    return true;
}

tn_status tn_unpack(tn_unpacking *u, const tn_tensor **tensor, tn_error *err)
{
    tn_tensor *t = tn_arena_zalloc(&u->file->arena, 1, sizeof *t);
    TN_NEED(t, err);
    u->err = err;
    bool made = find_module(u) && u->row->unpack(u) && build(u, t);
    *tensor = made ? t : NULL;
    return u->status;
}
