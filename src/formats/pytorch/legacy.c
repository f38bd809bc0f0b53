/* formats/pytorch/legacy.c - files of torch before 1.6.
 *
 * Five pickles follow each other: a magic number, a protocol, the sizes of types, the object, and the list of
 * its storages.  Then each storage has a count of elements in 8 bytes, and the elements, little-endian on
 * every machine. */
#include "formats/pytorch/pytorch.h"
#include "base/checked.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>

/* The integer 0x1950a86a20f9469cfc6c, and the end of its pickle. */
static const uint8_t magic[] = { 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                 0x20, 0x6a, 0xa8, 0x50, 0x19, '.' };

enum { PROTOCOL = 1001, COUNT_BYTES = 8, FIRST_BYTES = 1 << 20 };

/* Protocol 2 to 5; from 4 on there is a frame, unless the pickle is very short. */
bool tn_pt_is_legacy(const uint8_t *head, size_t n)
{
    enum { PROTO = 2, FRAME = 9 };
    size_t at = n > PROTO && head[PROTO] == 0x95 ? PROTO + FRAME : PROTO;
    return n >= at + sizeof magic && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 &&
           memcmp(head + at, magic, sizeof magic) == 0;
}

/* The storages by key. */
typedef struct legacy {
    tn_pt_machine machine;
    tn_pt_value   root, keys;
    struct { const char *key; const tn_pt_storage *storage; uint64_t at; bool found; } *storages;
    size_t        count;
    tn_names      table;
} legacy;

static const char *storage_key(const void *owner, size_t i)
{
    return ((const legacy *)owner)->storages[i].key;
}

/* --- the pickles --- */

static tn_status run_pickles(legacy *l, tn_error *err)
{
    tn_pt_machine *m = &l->machine;
    tn_pt_value first, protocol, sizes;
    TN_TRY(tn_pt_run(m, &first, err));
    TN_TRY(tn_pt_run(m, &protocol, err));
    if (protocol.kind != TN_PT_INT || protocol.i != PROTOCOL)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, 0, "expected protocol %d but found another",
                          PROTOCOL);
    TN_TRY(tn_pt_run(m, &sizes, err));
    TN_TRY(tn_pt_run(m, &l->root, err));
    return tn_pt_run(m, &l->keys, err);
}

/* How long the pickles are is known when they end: if they are cut off, more is read and they run again. */
static tn_status load_pickles(tn_pt_reader *r, legacy *l, tn_pt_pickle *p, tn_error *err)
{
    const tn_source *source = r->file->shards[r->shard].source;
    uint64_t size = tn_source_size(source), most = tn_min_u64(size, TN_INDEX_MAX);
    for (uint64_t n = tn_min_u64(most, FIRST_BYTES);; n = tn_min_u64(most, 4 * n)) {
        const uint8_t *bytes = NULL;
        tn_arena_free(&r->arena);
        r->arena = (tn_arena){ 0 };
        tn_pt_machine_free(&l->machine);
        TN_TRY(tn_source_copy(source, 0, n, &r->arena, &bytes, err));
        l->machine = (tn_pt_machine){ .arena = &r->arena, .cur = { .base = bytes, .end = (size_t)n } };
        *p = (tn_pt_pickle){ .bytes = { (const char *)bytes, (size_t)n }, .is_raw = true };
        tn_status status = run_pickles(l, err);
        if (status != TN_ERR_TRUNCATED || n == most)
            return status;
    }
}

/* --- storages --- */

static uint64_t width_of(const tn_pt_storage *s) { return s->type ? s->type->width : 1; }

/* Each key once, with the storage that the pickle says it is. */
static tn_status index_storages(tn_pt_reader *r, legacy *l, tn_error *err)
{
    const tn_pt_machine *m = &l->machine;
    l->storages = calloc(m->nstorages ? m->nstorages : 1, sizeof *l->storages);
    TN_NEED(l->storages && tn_names_init(&l->table, m->nstorages), err);
    for (size_t i = 0; i < m->nstorages; i++) {
        const tn_pt_storage *s = m->storages[i];
        const char *key = tn_file_text(r->file, s->key, "key of a storage", 0, err);
        if (!key)
            return err->status;
        l->storages[l->count].key = key;
        l->storages[l->count].storage = s;
        size_t other = tn_names_add(&l->table, l, storage_key, l->count);
        TN_NEED(other != TN_NAMES_NOMEM, err);
        if (other == TN_NAMES_ADDED)
            l->count++;
        else if (l->storages[other].storage->count * width_of(l->storages[other].storage) !=
                 s->count * width_of(s))
            return tn_fail(err, TN_ERR_CORRUPT, "storage %s has two sizes", tn_quote_z(key).text);
    }
    return TN_OK;
}

static tn_status place_storage(const legacy *l, const tn_source *source, const tn_pt_value *key, uint64_t *at,
                               tn_error *err)
{
    uint8_t count[COUNT_BYTES];
    char name[64];
    uint64_t size = tn_source_size(source), i = l->count;
    if (key->kind == TN_PT_TEXT && key->size < sizeof name && !tn_text_has_nul(tn_pt_text(key))) {
        memcpy(name, key->text, key->size);
        name[key->size] = 0;
        i = tn_names_find(&l->table, l, storage_key, name);
    }
    if (i >= l->count || l->storages[i].found)
        return tn_fail_at(err, TN_ERR_CORRUPT, *at,
                          "the list of storages has one that no tensor has, or has it twice");
    if (size - *at < COUNT_BYTES)
        return tn_fail_at(err, TN_ERR_TRUNCATED, *at, "the file ends before storage %s",
                          tn_quote_z(name).text);
    TN_TRY(tn_source_read(source, *at, count, sizeof count, err));
    *at += COUNT_BYTES;
    const tn_pt_storage *s = l->storages[i].storage;
    uint64_t bytes = 0;
    if (tn_load_u64le(count) != s->count || !tn_mul_u64(s->count, width_of(s), &bytes))
        return tn_fail_at(err, TN_ERR_CORRUPT, *at - COUNT_BYTES,
                          "storage %s has %" PRIu64 " elements but the pickle says %" PRIu64,
                          tn_quote_z(name).text, tn_load_u64le(count), s->count);
    if (bytes > size - *at)
        return tn_fail_at(err, TN_ERR_TRUNCATED, *at,
                          "storage %s takes %" PRIu64 " bytes but %" PRIu64 " follow",
                          tn_quote_z(name).text, bytes, size - *at);
    l->storages[i].at = *at;
    l->storages[i].found = true;
    *at += bytes;
    return TN_OK;
}

/* torch leaves storages that the list does not name uninitialised, and ignores bytes behind the last. */
static tn_status place_storages(const legacy *l, const tn_source *source, tn_error *err)
{
    uint64_t at = l->machine.cur.pos, size = tn_source_size(source);
    if (!tn_pt_is_list(&l->keys))
        return tn_fail_at(err, TN_ERR_CORRUPT, at, "expected the list of storages but found another value");
    for (uint32_t i = 0; i < l->keys.items->count; i++)
        TN_TRY(place_storage(l, source, &l->keys.items->at[i], &at, err));
    if (l->keys.items->count != l->count)
        return tn_fail_at(err, TN_ERR_CORRUPT, l->machine.cur.pos,
                          "the list of storages has %u but the pickle has %zu", l->keys.items->count,
                          l->count);
    if (at != size)
        return tn_fail_at(err, TN_ERR_CORRUPT, at, "%" PRIu64 " bytes follow the last storage", size - at);
    return TN_OK;
}

static tn_status locate(tn_pt_reader *r, const tn_pt_pickle *from, const tn_pt_storage *s, tn_pt_place *place,
                        tn_error *err)
{
    const legacy *l = r->storages;
    (void)from;
    const char *key = tn_arena_text(&r->arena, s->key.ptr, s->key.len);
    TN_NEED(key, err);
    size_t i = tn_names_find(&l->table, l, storage_key, key);   /* there: it is of the same pickle */
    uint64_t bytes = l->storages[i].storage->count * width_of(l->storages[i].storage);
    *place = (tn_pt_place){ .offset = l->storages[i].at, .size = bytes, .decoded = bytes };
    return tn_pt_check_storage(s, bytes, l->storages[i].at, err);
}

/* --- the file --- */

static tn_status read_legacy(tn_pt_reader *r, legacy *l, tn_pt_pickle *p, tn_error *err)
{
    TN_TRY(load_pickles(r, l, p, err));
    TN_TRY(index_storages(r, l, err));
    TN_TRY(place_storages(l, r->file->shards[r->shard].source, err));
    p->bytes.len = l->machine.cur.pos;
    TN_TRY(tn_pt_walk(r, &l->machine, p, &l->root, err));
    TN_TRY(tn_pt_name_calls(r, &l->machine, p, err));
    r->locate = locate;
    r->storages = l;
    return tn_pt_add_tensors(r, err);
}

tn_status tn_pt_read_legacy(tn_pt_reader *r, tn_error *err)
{
    legacy l = { .count = 0 };
    tn_pt_pickle p = { .at = 0 };
    tn_status status = read_legacy(r, &l, &p, err);
    tn_pt_machine_free(&l.machine);
    free(l.storages);
    tn_names_free(&l.table);
    return status;
}
