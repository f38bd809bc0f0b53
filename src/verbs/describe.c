/* verbs/describe.c - descriptors of the tensors in any container. */
#include "base/error.h"
#include "base/options.h"
#include "bytes/sink.h"
#include "bytes/json.h"
#include "store/kept.h"
#include "formats/raw/raw.h"
#include "pipeline/view.h"
#include "descriptor/descriptor.h"
#include "tensor/array.h"
#include "tensor/form.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_ALIGN  = 64,          /* of data that is described in place */
    BUFFER_ALIGN = 256,         /* of a separate buffer */
    PAGE         = 4096         /* of a mapped file */
};

/* The data is text in the file. */
static bool is_text(const tn_file *file, const tn_part *p)
{
    return file->shards[tn_stored_of(p)->shard].decoded;
}

/* Raw, in host order and aligned: usable in place. */
static bool lies_ready(const tn_file *file, const tn_part *p)
{
    const tn_stored *s = tn_stored_of(p);
    return tn_part_splits(p) && !is_text(file, p) && !tn_stored_more_of(p)->pitch &&
           s->offset % LEAST_ALIGN == 0 && !tn_part_is_swapped(p);
}

static uint64_t align_of(uint64_t offset)
{
    uint64_t lowest = offset & (~offset + 1);
    return lowest && lowest < PAGE ? lowest : PAGE;
}

static void place(const tn_file *file, const tn_part *p, tn_raw_subject *s)
{
    s->in_place = lies_ready(file, p);
    s->end = p->nbytes;
    s->align = BUFFER_ALIGN;
    if (!s->in_place)
        return;
    s->offset = tn_stored_of(p)->offset;
    s->end = s->offset + tn_stored_of(p)->size;
    s->align = align_of(s->offset);
    s->stride = p->padded ? NULL : tn_stored_more_of(p)->stride;
    s->physical = p->padded ? p->padded->shape : NULL;
}

/* The name of the part's file. */
static const char *file_name(const tn_file *file, const tn_part *p)
{
    return tn_base_name(tn_file_shard_name(file, tn_stored_of(p)->shard));
}

/* Where the bytes are. */
static void put_source(tn_buf *own, const tn_file *file, const tn_part *p)
{
    const char *name = file_name(file, p);
    if (*name) {
        tn_buf_puts(own, "\"file\":");
        tn_json_put_z(own, name);
        tn_buf_putc(own, ',');
    }
    tn_buf_printf(own, "\"encoding\":\"%s\"", tn_stored_encoding(tn_stored_of(p)));
    if (!is_text(file, p))
        tn_buf_printf(own, ",\"offset\":%llu,\"size\":%llu", (unsigned long long)tn_stored_of(p)->offset,
                      (unsigned long long)tn_stored_of(p)->size);
}

/* The same for the parts of a tensor with a datatype. */
static void find_places(const tn_file *file, const tn_tensor *t, tn_raw_place *places)
{
    for (uint32_t k = 0; k < t->nparts; k++) {
        const tn_stored *s = tn_stored_of(&t->parts[k]);
        bool elsewhere = s->shard != tn_stored_of(&t->parts[0])->shard;
        places[k] = (tn_raw_place){ .encoding = tn_stored_encoding(s), .offset = s->offset, .size = s->size,
                                    .file = elsewhere ? file_name(file, &t->parts[k]) : NULL };
    }
}

/* Whether the description holds the numbers of a part. */
static bool is_described(const tn_tensor *t, uint32_t part)
{
    return tn_form_is_sparse(t->form) || (part > 0 && !tn_form_has_datatype(t));
}

/* `least` counts the text of the sparse tensors so far, which are described with their data. */
static tn_status check_form(const tn_tensor *t, uint64_t *least, tn_error *err)
{
    tn_status status = tn_part_readable(t, &t->parts[0], err);
    if (status || t->form == TN_FORM_DENSE || tn_form_is_scaled(t->form))
        return status;
    if (!tn_form_is_sparse(t->form))
        status = tn_fail(err, TN_ERR_UNSUPPORTED, "form %s cannot be described",
                         tn_quote_z(tn_tensor_form_name(t)).text);
    if (!status)
        status = tn_raw_check_sparse(t, err);
    if (!status)
        status = tn_raw_check_length(t, least, err);
    return tn_in_tensor(status, t->name, err);
}

/* Reads the numbers of a part into the arena. */
static tn_status read_numbers(const tn_file *file, const tn_tensor *t, uint32_t k, tn_arena *arena,
                              const void **numbers, tn_error *err)
{
    const tn_view_place place = { .file = file, .unchecked = true };
    void *buffer = tn_arena_alloc(arena, (size_t)t->parts[k].nbytes);
    *numbers = buffer;
    return buffer ? tn_copy_part(&place, t, k, TN_UNKNOWN, buffer, err) : tn_fail_nomem(err);
}

/* A sparse tensor with indices outside its shape has no description. */
static tn_status describe_sparse(const tn_file *file, tn_raw_subject *s, tn_arena *arena, tn_descriptor *d,
                                 tn_error *err)
{
    const tn_tensor *t = s->tensor;
    for (uint32_t k = 0; k < t->nparts; k++)
        TN_TRY(read_numbers(file, t, k, arena, &s->data[k], err));
    TN_TRY(tn_raw_describe(s, arena, d, err));
    return tn_raw_check(d, TN_NO_OFFSET, TN_ERR_CORRUPT, err);
}

/* A dense tensor, or one of codes with scales. */
static tn_status describe_data(const tn_file *file, tn_raw_subject *s, tn_arena *arena, tn_descriptor *d,
                               tn_error *err)
{
    const tn_tensor *t = s->tensor;
    const void *numbers[3] = { NULL };
    bool typed = tn_form_has_datatype(t);
    tn_raw_place places[TN_MAX_PARTS];
    tn_buf own = { 0 };
    for (uint32_t k = 1; k < 3 && k < t->nparts && !typed; k++)
        TN_TRY(read_numbers(file, t, k, arena, &numbers[k], err));
    find_places(file, t, places);
    s->places = typed ? places : NULL;
    place(file, &t->parts[0], s);
    s->content = tn_stored_of(&t->parts[0])->checksum_text;
    put_source(&own, file, &t->parts[0]);
    s->scale = numbers[1];
    s->zero = numbers[2];
    s->own = &own;
    tn_status status = tn_raw_describe(s, arena, d, err);
    tn_buf_free(&own);
    return status;
}

static tn_status describe_one(const tn_file *file, const tn_tensor *t, tn_descriptors *set, tn_error *err)
{
    tn_raw_subject s = { .tensor = t, .meta = t->meta, .nmeta = t->nmeta, .properties =
                         tn_file_properties(file, t) };
    tn_descriptor *d = tn_descriptors_add(set);
    if (!d)
        return tn_fail_nomem(err);
    return tn_form_is_sparse(t->form) ? describe_sparse(file, &s, &set->arena, d, err)
                                      : describe_data(file, &s, &set->arena, d, err);
}

tn_status tn_describe(const tn_file *file, const tn_tensor *tensor, tn_descriptors **set, tn_error *err)
{
    TN_GIVEN(file, "a file", err);
    TN_GIVEN(set, "a place for the descriptors", err);
    tn_descriptors *made;
    uint64_t least = 0;
    tn_kept kept = { .max_bytes = file->max_bytes };
    size_t count = tensor ? 1 : tn_file_count(file);
    tn_status status = TN_OK;
    for (size_t i = 0; i < count && !status; i++) {     /* all of them, before anything is read */
        const tn_tensor *t = tensor ? tensor : tn_file_tensor(file, i);
        status = check_form(t, &least, err);
        for (uint32_t k = 0; k < t->nparts; k++)
            if (is_described(t, k))
                tn_kept_add_part(&kept, t, &t->parts[k]);
    }
    if (!status)
        status = tn_kept_check(&kept, err);
    if (!status)
        status = tn_descriptors_new(&made, err);
    if (status)
        return status;
    for (size_t i = 0; i < count && !status; i++)
        status = describe_one(file, tensor ? tensor : tn_file_tensor(file, i), made, err);
    if (status)
        tn_descriptors_free(made);
    else
        *set = made;
    return status;
}

tn_status tn_descriptors_save(const tn_descriptor *descriptors, size_t n, const char *path,
                              const tn_save_options *options, size_t *size, tn_error *err)
{
    TN_GIVEN(descriptors || !n, "descriptors", err);
    TN_GIVEN(path, "a path", err);
    tn_save_options o = { 0 };
    tn_sink *sink = NULL;
    char *json = NULL;
    size_t length = 0;
    TN_TRY(tn_take_options(TN_SIZED(tn_save_options, context), &o, options, err));
    tn_status status = tn_descriptors_write(descriptors, n, o.list, &json, &length, err);
    if (!status)
        status = tn_sink_open(path, o.replace, &sink, err);
    if (!status)
        status = tn_sink_write(sink, 0, json, length, err);
    free(json);
    if (status) {
        tn_sink_abandon(sink);
        return status;
    }
    if (size)
        *size = length;
    tn_sink_listen(sink, (tn_listener){ o.note, o.context, path });
    return tn_sink_publish(sink, length, err);
}
