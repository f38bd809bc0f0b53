/* pipeline/object_parts.c - the parts of an object that several processes make. */
#include "pipeline/object_parts.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/vector.h"

#include <inttypes.h>
#include <stdlib.h>

/* Part numbers end at 10,000: of usual parts there are so many at most, of the smallest ones so many. */
enum { USUAL_PARTS = 4000, MOST_PARTS = 8000 };
#define MIB ((uint64_t)1 << 20)

uint64_t tn_object_part_bytes(uint64_t size)
{
    uint64_t each = tn_div_up_u64(tn_div_up_u64(size, USUAL_PARTS), MIB) * MIB;
    return each > TN_OBJECT_PART ? each : TN_OBJECT_PART;
}

static uint64_t longest(const tn_out_entry *e)
{
    return e->encoding == TN_ENCODING_RAW ? e->nbytes : tn_codec_of(e->encoding)->bound((size_t)e->nbytes);
}

uint64_t tn_object_bytes(const tn_writer *w)
{
    uint64_t total = 0;
    for (size_t i = 0; i < w->count; i++)
        if (!tn_add_u64(total, longest(&w->entries[i]), &total))
            return UINT64_MAX;
    return total;
}

/* ---- which bytes a piece makes ---- */

typedef struct span_list {
    tn_object_span *list;
    size_t          count, cap;
} span_list;

static bool add_span(span_list *all, uint64_t begin, uint64_t end, uint32_t piece)
{
    if (begin == end)
        return true;
    if (!TN_GROW(all->list, all->count, all->cap))
        return false;
    all->list[all->count++] = (tn_object_span){ begin, end, piece };
    return true;
}

/* Entries whose bytes are copied when all pieces are made; freed by the caller. */
static bool *find_copied(const tn_writer *w)
{
    bool *copied = calloc(w->count + 1, sizeof *copied);
    for (size_t i = 0; i < w->count && copied; i++)
        if (w->entries[i].tied != TN_NOT_TIED && !w->format->shares)
            copied[w->entries[i].tied] = true;
    return copied;
}

/* Some blocks of a tensor with one part, which follow those of the piece before. */
static bool add_blocks(const tn_plan *p, size_t i, bool is_copied, uint64_t *at, span_list *all)
{
    const tn_piece *piece = &p->run.pieces[i];
    const tn_out_entry *e = &p->writer->entries[p->writer->first_entry[piece->first]];
    uint64_t begin = piece->block ? *at : e->offset;
    *at = begin + piece->written;
    return add_span(all, begin, *at, is_copied ? TN_NO_PIECE : (uint32_t)i);
}

static bool add_piece(const tn_plan *p, size_t i, const bool *copied, uint32_t file, span_list *all)
{
    const tn_writer *w = p->writer;
    const tn_piece *piece = &p->run.pieces[i];
    size_t end = tn_writer_first(w, (size_t)piece->first + piece->count);
    bool good = true;
    for (size_t k = w->first_entry[piece->first]; k < end && good; k++) {
        const tn_out_entry *e = &w->entries[k];
        bool made = tn_run_moves(e) && !copied[k], shares = e->tied != TN_NOT_TIED && w->format->shares;
        if (e->file == file && e->offset != TN_UNPLACED && !shares)
            good = add_span(all, e->offset, e->offset + e->nbytes, made ? (uint32_t)i : TN_NO_PIECE);
    }
    return good;
}

static int by_place(const void *a, const void *b)
{
    const tn_object_span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->piece < y->piece ? -1 : x->piece > y->piece;
}

/* In the order of the file.  Padding goes with what is before it. */
static void join_spans(span_list *all)
{
    size_t n = 0;
    if (all->count)
        qsort(all->list, all->count, sizeof *all->list, by_place);
    for (size_t i = 0; i < all->count; i++) {
        tn_object_span *last = n ? &all->list[n - 1] : NULL;
        if (last)
            last->end = all->list[i].begin;
        if (last && last->piece == all->list[i].piece)
            last->end = all->list[i].end;
        else
            all->list[n++] = all->list[i];
    }
    all->count = n;
}

static tn_status find_spans(const tn_plan *p, uint32_t file, span_list *all, tn_error *err)
{
    const tn_writer *w = p->writer;
    bool *copied = find_copied(w), good = copied != NULL;
    uint64_t at = 0;
    for (size_t i = 0; i < p->run.npieces && good; i++) {
        const tn_piece *piece = &p->run.pieces[i];
        size_t first = w->first_entry[piece->first];
        if (w->entries[first].file == file && piece->nblocks)
            good = add_blocks(p, i, copied[first], &at, all);
        else if (w->entries[first].file == file)
            good = add_piece(p, i, copied, file, all);
    }
    free(copied);
    join_spans(all);
    return good ? TN_OK : tn_fail_nomem(err);
}

/* ---- parts ---- */

typedef struct parts {
    tn_sink_part *list;
    size_t        count, cap;
    uint64_t      usual, least; /* bytes */
} parts;

/* Cuts [begin, end) into parts that are about as large as each other. */
static bool add_parts(parts *all, uint64_t begin, uint64_t end, uint32_t piece)
{
    uint64_t n = tn_div_up_u64(end - begin, all->usual);
    for (uint64_t k = 0; k < n; k++) {
        if (!TN_GROW(all->list, all->count, all->cap))
            return false;
        all->list[all->count++] = (tn_sink_part){ begin + (end - begin) / n * k, piece };
    }
    return true;
}

static bool choose_parts(const tn_object_span *spans, size_t n, parts *all)
{
    uint64_t done = 0;
    for (size_t i = 0; i < n; i++) {
        const tn_object_span *s = &spans[i];
        uint64_t begin = s->begin > done ? s->begin : done;
        if (begin > done && begin - done < all->least)
            begin = done + all->least;
        if (s->piece == TN_NO_PIECE || s->end < begin || s->end - begin < all->least)
            continue;
        if (!add_parts(all, done, begin, TN_NO_PIECE) || !add_parts(all, begin, s->end, s->piece))
            return false;
        done = s->end;
    }
    if (!TN_GROW(all->list, all->count, all->cap))
        return false;
    all->list[all->count++] = (tn_sink_part){ done, TN_NO_PIECE };
    return true;
}

tn_status tn_object_parts(const tn_object_span *spans, size_t n, uint64_t size, tn_sink_part **list,
                          size_t *count, tn_error *err)
{
    parts all = { .usual = tn_object_part_bytes(size), .least = tn_div_up_u64(size, MOST_PARTS) };
    all.least = all.least > TN_PART_LEAST ? all.least : TN_PART_LEAST;
    bool good = choose_parts(spans, n, &all);
    *list = all.list;
    *count = all.count;
    return good ? TN_OK : tn_fail_nomem(err);
}

static tn_status cut_object(const tn_plan *p, uint32_t file, tn_error *err)
{
    span_list spans = { 0 };
    tn_sink_part *list = NULL;
    size_t count = 0;
    uint64_t most = tn_object_bytes(p->writer);
    tn_status status = p->writer->format->only_pads ? find_spans(p, file, &spans, err) : TN_OK;
    if (!status)
        status = tn_object_parts(spans.list, spans.count, most, &list, &count, err);
    if (!status)
        status = tn_sink_cut(p->writer->files[file].sink, list, count, tn_object_part_bytes(most), err);
    free(spans.list);
    free(list);
    return status;
}

tn_status tn_objects_cut(const tn_plan *p, tn_error *err)
{
    const tn_writer *w = p->writer;
    for (size_t i = 0; i < w->nfiles; i++)
        if (w->files[i].sink && tn_sink_is_far(w->files[i].sink))
            TN_TRY(cut_object(p, (uint32_t)i, err));
    return TN_OK;
}

bool tn_object_has_parts(const tn_plan *p, size_t piece)
{
    const tn_writer *w = p->writer;
    const tn_sink *sink = w->files[w->entries[w->first_entry[p->run.pieces[piece].first]].file].sink;
    return sink && tn_sink_count_parts(sink, (uint32_t)piece) > 0;
}
