/* bytes/remote/blocks.c - which bytes of a remote object are here, are coming, and will be asked for. */
#include "bytes/remote/blocks.h"
#include "base/checked.h"
#include "base/vector.h"
#include "bytes/remote/exchange.h"

#include <stdlib.h>

enum {
    SMALL_UNITS = 1, LARGE_UNITS = 4,   /* so many small transfers take the place of a large one */
    SPARE_BLOCKS = 4,                   /* ready ones, beside those being fetched */
    LOOK_AHEAD = 256                    /* blocks, in search of one to fetch */
};

/* Blocks that are ready, in the order in which they came. */
typedef struct ready_list {
    tn_remote_block *oldest, *newest;
} ready_list;

/* Of all objects together. */
static struct {
    unsigned   units;           /* of transfers */
    uint64_t   held;            /* bytes of announced blocks, ready or loading */
    uint64_t   kept;            /* bytes of the others that are ready */
    ready_list announced, others;
    tn_remote_blocks *first;    /* of the objects that were announced */
    uint8_t   *rooms[SPARE_BLOCKS];     /* of blocks that were given back; or NULL */
} all;

uint8_t *tn_block_room(uint64_t n)
{
    for (int i = 0; i < SPARE_BLOCKS && n == TN_BLOCK_BYTES; i++)
        if (all.rooms[i]) {
            uint8_t *room = all.rooms[i];
            all.rooms[i] = NULL;
            return room;
        }
    return malloc((size_t)n);
}

static void free_room(uint8_t *room, uint64_t n)
{
    for (int i = 0; i < SPARE_BLOCKS && room && n == TN_BLOCK_BYTES; i++)
        if (!all.rooms[i]) {
            all.rooms[i] = room;
            return;
        }
    free(room);
}

void tn_blocks_drop_room(void)
{
    for (int i = 0; i < SPARE_BLOCKS; i++) {
        free(all.rooms[i]);
        all.rooms[i] = NULL;
    }
}

/* ---- lists ---- */

static void push(ready_list *list, tn_remote_block *b)
{
    b->older = list->newest;
    b->newer = NULL;
    if (b->older)
        b->older->newer = b;
    else
        list->oldest = b;
    list->newest = b;
}

static void unlink_ready(ready_list *list, tn_remote_block *b)
{
    if (b->older)
        b->older->newer = b->newer;
    else
        list->oldest = b->newer;
    if (b->newer)
        b->newer->older = b->older;
    else
        list->newest = b->older;
}

/* The first block that ends after `offset`. */
static size_t find(const tn_remote_blocks *s, uint64_t offset)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->list[middle]->end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint64_t size_of(const tn_remote_block *b) { return b->end - b->begin; }

static unsigned units_of(const tn_remote_block *b)
{
    return size_of(b) <= TN_BLOCK_GAP ? SMALL_UNITS : LARGE_UNITS;
}

/* A planned block at place i of the list, last in the order of use; NULL: no memory. */
static tn_remote_block *insert(tn_remote_blocks *s, size_t i, uint64_t begin, uint64_t end)
{
    tn_remote_block *b = TN_GROW(s->list, s->count, s->cap) ? calloc(1, sizeof *b) : NULL;
    if (!b)
        return NULL;
    *b = (tn_remote_block){ .of = s, .begin = begin, .end = end, .need = end - begin, .round = s->round,
                            .before = s->last };
    memmove(s->list + i + 1, s->list + i, (s->count - i) * sizeof *s->list);
    s->list[i] = b;
    s->count++;
    if (s->last)
        s->last->after = b;
    else
        s->first = b;
    s->last = b;
    return b;
}

static void leave_order(tn_remote_block *b)
{
    tn_remote_blocks *s = b->of;
    if (b->before)
        b->before->after = b->after;
    else
        s->first = b->after;
    if (b->after)
        b->after->before = b->before;
    else
        s->last = b->before;
}

static void remove_block(tn_remote_block *b)
{
    tn_remote_blocks *s = b->of;
    size_t i = find(s, b->begin);
    if (b->state == TN_BLOCK_READY) {
        unlink_ready(b->is_kept ? &all.others : &all.announced, b);
        *(b->is_kept ? &all.kept : &all.held) -= size_of(b);
    }
    s->count--;
    memmove(s->list + i, s->list + i + 1, (s->count - i) * sizeof *s->list);
    leave_order(b);
    s->forget(b);
    free_room(b->bytes, size_of(b));
    free(b);
}

static void end_block(tn_remote_block *b)
{
    b->ends = true;
    if (!b->users && b->state != TN_BLOCK_LOADING)
        remove_block(b);
}

/* Gives the oldest blocks back that nobody uses, until `bytes` are at most `most`. */
static void shrink(const ready_list *list, const uint64_t *bytes, uint64_t most)
{
    for (tn_remote_block *b = list->oldest, *newer; b && *bytes > most; b = newer) {
        newer = b->newer;
        if (!b->users)
            end_block(b);
    }
}

/* ---- fetching ---- */

static void start(tn_remote_block *b)
{
    b->state = TN_BLOCK_LOADING;
    all.units += units_of(b);
    if (!b->is_kept)
        all.held += size_of(b);
    if (!b->of->start(b))
        tn_block_loaded(b, false);
}

static bool has_room(const tn_remote_block *b, unsigned parallel)
{
    uint64_t most = (parallel + SPARE_BLOCKS) * TN_BLOCK_BYTES;
    return all.units + units_of(b) <= parallel * LARGE_UNITS && all.held + size_of(b) <= most;
}

/* Fetches what is used after this block, here and in the objects that follow. */
static void look_ahead(tn_remote_blocks *s, tn_remote_block *b)
{
    unsigned parallel = tn_remote_parallel();
    for (int left = LOOK_AHEAD; left && s; left--) {
        if (!b) {
            s = s->following;
            b = s ? s->first : NULL;
            continue;
        }
        tn_remote_block *after = b->after;
        if (b->state == TN_BLOCK_PLANNED && !has_room(b, parallel))
            return;
        if (b->state == TN_BLOCK_PLANNED)
            start(b);
        b = after;
    }
}

void tn_block_loaded(tn_remote_block *b, bool good)
{
    tn_remote_blocks *s = b->of;
    tn_remote_block *after = b->after;
    all.units -= units_of(b);
    b->state = good ? TN_BLOCK_READY : TN_BLOCK_FAILED;
    if (!good && !b->is_kept)
        all.held -= size_of(b);
    if (good) {
        push(b->is_kept ? &all.others : &all.announced, b);
        all.kept += b->is_kept ? size_of(b) : 0;
    }
    if (b->ends && !b->users)
        remove_block(b);
    shrink(&all.others, &all.kept, TN_BLOCKS_KEPT);
    if (good)                   /* after a failure whoever reads decides */
        look_ahead(s, after);
}

/* ---- planning ---- */

/* Appends to the last block in the order of use, if that is not fetched yet and nothing lies between. */
static uint64_t merge(tn_remote_blocks *s, size_t i, uint64_t begin, uint64_t end)
{
    tn_remote_block *b = s->last;
    if (!b || b->state != TN_BLOCK_PLANNED || b->is_kept || i == 0 || s->list[i - 1] != b ||
        begin - b->end > TN_BLOCK_GAP || begin - b->begin >= TN_BLOCK_BYTES)
        return begin;
    uint64_t stop = tn_min_u64(end, b->begin + TN_BLOCK_BYTES);
    b->end = stop;
    b->need += stop - begin;
    return stop;
}

/* Plans the bytes that no block has.  Those of blocks from before this round will be read once more; a range
 * that is twice in a round, as of tied tensors, is fetched again if it is read again. */
static bool plan(tn_remote_blocks *s, uint64_t begin, uint64_t end)
{
    while (begin < end) {
        size_t i = find(s, begin);
        tn_remote_block *b = i < s->count ? s->list[i] : NULL;
        uint64_t stop = b ? tn_min_u64(end, b->begin) : end;
        if (b && b->begin <= begin) {
            b->need += b->round == s->round ? 0 : tn_min_u64(end, b->end) - begin;
            begin = b->end;
            continue;
        }
        begin = merge(s, i, begin, stop);
        if (begin == stop)
            continue;
        i = find(s, begin);
        stop = tn_min_u64(stop, begin + TN_BLOCK_BYTES);
        if (!insert(s, i, begin, stop))
            return false;
        begin = stop;
    }
    return true;
}

static void list_object(tn_remote_blocks *s)
{
    tn_remote_blocks **at = &all.first;
    if (s->is_listed)
        return;
    while (*at)
        at = &(*at)->following;
    *at = s;
    s->is_listed = true;
}

static void unlist_object(tn_remote_blocks *s)
{
    for (tn_remote_blocks **at = &all.first; *at; at = &(*at)->following)
        if (*at == s) {
            *at = s->following;
            return;
        }
}

bool tn_blocks_expect(tn_remote_blocks *s, const tn_range *ranges, size_t n)
{
    tn_remote_block *last = s->last;
    bool good = true;
    s->round++;
    for (size_t i = 0; i < n && good; i++)
        if (ranges[i].offset <= s->size && ranges[i].size <= s->size - ranges[i].offset)
            good = plan(s, ranges[i].offset, ranges[i].offset + ranges[i].size);
    list_object(s);
    look_ahead(s, last ? last : s->first);
    return good;
}

/* A block for bytes that nobody announced. */
static tn_remote_block *insert_unexpected(tn_remote_blocks *s, size_t i, uint64_t offset, uint64_t n)
{
    uint64_t size = TN_BLOCK_FIRST, begin = offset, end;
    for (size_t k = 0; k < sizeof s->runs / sizeof *s->runs; k++)
        if (s->runs[k].size && s->runs[k].end == offset)
            size = tn_min_u64(2 * s->runs[k].size, TN_BLOCK_BYTES);
    size = size < n ? tn_min_u64(n, TN_BLOCK_BYTES) : size;
    end = i < s->count ? s->list[i]->begin : s->size;
    end = end - offset > size ? offset + size : end;
    if (end == s->size && end - begin < TN_BLOCK_FIRST) {       /* the end: an index may be there */
        uint64_t free_from = i ? s->list[i - 1]->end : 0;
        begin = s->size > TN_BLOCK_FIRST ? s->size - TN_BLOCK_FIRST : 0;
        begin = begin < free_from ? free_from : begin;
    }
    tn_remote_block *b = insert(s, i, begin, end);
    if (!b)
        return NULL;
    b->is_kept = true;
    s->runs[s->next_run].end = end;
    s->runs[s->next_run].size = size;
    s->next_run = (s->next_run + 1) % (sizeof s->runs / sizeof *s->runs);
    return b;
}

tn_remote_block *tn_blocks_want(tn_remote_blocks *s, uint64_t offset, uint64_t n)
{
    size_t i = find(s, offset);
    bool covered = i < s->count && s->list[i]->begin <= offset;
    if (!covered && n > TN_BLOCK_BYTES) {
        if (!plan(s, offset, offset + n))
            return NULL;
        i = find(s, offset);
        covered = true;
    }
    tn_remote_block *b = covered ? s->list[i] : insert_unexpected(s, i, offset, n);
    if (!b)
        return NULL;
    b->users++;
    if (b->state == TN_BLOCK_PLANNED) {
        /* somebody waits for it: those who were fetched long ago and not read are not wanted any more */
        uint64_t most = (tn_remote_parallel() + SPARE_BLOCKS) * TN_BLOCK_BYTES;
        shrink(&all.announced, &all.held, most + SPARE_BLOCKS * TN_BLOCK_BYTES);
        start(b);
    }
    look_ahead(s, b->after);
    return b;
}

void tn_block_used(tn_remote_block *b, uint64_t n)
{
    tn_remote_blocks *s = b->of;
    tn_remote_block *after = b->after;
    b->users--;
    b->taken += n;
    bool is_read = b->taken >= b->need && !b->is_kept;
    if (is_read || b->ends || b->state == TN_BLOCK_FAILED)
        end_block(b);
    if (is_read)
        look_ahead(s, after);
}

bool tn_blocks_put(tn_remote_blocks *s, uint8_t *bytes, uint64_t size)
{
    tn_remote_block *b = size ? insert(s, 0, 0, size) : NULL;
    if (!b)
        return false;
    b->bytes = bytes;
    b->is_kept = true;
    b->state = TN_BLOCK_READY;
    push(&all.others, b);
    all.kept += size;
    shrink(&all.others, &all.kept, TN_BLOCKS_KEPT);
    return true;
}

void tn_blocks_free(tn_remote_blocks *s)
{
    unlist_object(s);
    while (s->count)
        remove_block(s->list[s->count - 1]);
    free(s->list);
}

void tn_blocks_forget_all(void)
{
    memset(&all, 0, sizeof all);
}
