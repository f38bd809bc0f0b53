/* sparse/sparse_sort.c - sorts the entries of a sparse tensor into row-major order.
 *
 * A parallel radix sort.  Entries are partitioned into buckets by the high bits
 * of their keys, on all cores: each span of entries is counted first, so it knows
 * where its entries go in every bucket, and entries with the same key keep their
 * order.  A bucket that fits a cache becomes a piece, which one worker sorts.
 * Larger buckets are partitioned again by the highest bits that differ in them.
 *
 * Indices are read twice, for counting and for partitioning, from what may be a
 * file that somebody writes to.  If a key is then outside the range, or a bucket
 * has another size, the sort fails.  After that everything is in our own memory.
 *
 * The result is written to the memory of the buckets: 8 bytes and the value per
 * entry.  Buckets that are partitioned again need as much once more, one at a
 * time. */
#include "sparse/sparse_sort.h"
#include "base/pages.h"
#include "base/vector.h"
#include "tensor/indices.h"
#include "tensor/number.h"
#include "kernels/level.h"
#include "kernels/stream.h"
#include "sparse/sparse_entries.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BLOCK        = 512,         /* keys at a time: they stay in the L1 cache */
    PIECE        = 1 << 17,     /* entries that one worker sorts */
    BUCKET       = 1 << 13,     /* entries that a bucket should have at least */
    MAX_BITS     = 12,          /* of a key per partition */
    FEW          = 24,          /* words that are sorted by insertion */
    PIECE_BITS   = 15,          /* of a word per partition of a piece */
    LEVELS       = 13           /* of nested buckets in a piece: each takes at least 5 bits of a word */
};

__extension__ typedef __int128 wide;

typedef struct range { uint64_t low, high; } range;

static unsigned bit_width(uint64_t x) { return x ? 64 - (unsigned)__builtin_clzll(x) : 0; }

static range range_of(const uint64_t *keys, size_t n, range r)
{
    for (size_t i = 0; i < n; i++) {
        r.low = keys[i] < r.low ? keys[i] : r.low;
        r.high = keys[i] > r.high ? keys[i] : r.high;
    }
    return r;
}

static const range no_range = { UINT64_MAX, 0 };

static range join(range a, range b)
{
    a.low = b.low < a.low ? b.low : a.low;
    a.high = b.high > a.high ? b.high : a.high;
    return a;
}

/* --- partitioning into buckets ------------------------------------------- */

/* The next cache line of a bucket, filled by one worker. */
typedef struct line {
    _Alignas(TN_LINE) uint8_t keys[TN_LINE];
    uint8_t values[TN_LINE];
} line;

typedef struct partition {
    const tn_entry_view *v;     /* has the keys; NULL: from_keys has them */
    const uint64_t *from_keys;
    const uint8_t  *from_values;
    uint64_t       *keys;       /* the buckets, one after another */
    uint8_t        *values;
    size_t          size;       /* of a value */
    uint64_t        count, per_span;
    unsigned        spans;
    range           used;       /* all keys are in it */
    range          *span_used;  /* smallest and largest key of each span */
    unsigned        shift;
    size_t          buckets;    /* key k goes into bucket (k - used.low) >> shift */
    uint64_t       *next;       /* [spans][buckets]: counts of entries, then the place of the next one */
    uint64_t       *ends;       /* [spans][buckets]: the place after the last entry */
    uint64_t       *first;      /* [workers][buckets]: the place of the first entry of a span */
    line           *lines;      /* [workers][buckets] */
} partition;

/* The entries of a span, [*first, *end). */
static void span_bounds(const partition *d, uint64_t span, uint64_t *first, uint64_t *end)
{
    *first = span * d->per_span < d->count ? span * d->per_span : d->count;
    *end = d->count - *first < d->per_span ? d->count : *first + d->per_span;
}

static size_t block_size(uint64_t left) { return left < BLOCK ? (size_t)left : BLOCK; }

static const uint64_t *keys_of(const partition *d, uint64_t first, size_t n, uint64_t *buffer)
{
    if (!d->v)
        return d->from_keys + first;
    tn_entry_keys(d->v, first, n, buffer);
    return buffer;
}

static tn_status count_span(void *context, uint64_t span, tn_pool_use use, tn_error *err)
{
    const partition *d = context;
    (void)use;
    range r = no_range;
    uint64_t at, end, buffer[BLOCK], *counts = d->next + span * d->buckets;
    span_bounds(d, span, &at, &end);
    for (size_t n; at < end; at += n) {
        n = block_size(end - at);
        const uint64_t *keys = keys_of(d, at, n, buffer);
        r = range_of(keys, n, r);
        if (r.low < d->used.low || r.high > d->used.high)
            return tn_entry_fail_changed(err);
        for (size_t i = 0; i < n; i++)
            counts[(keys[i] - d->used.low) >> d->shift]++;
    }
    d->span_used[span] = r;
    return TN_OK;
}

/* Stores an item at place `at` in the line.  A full line is written to the
 * bucket, but nothing before place `first`: that belongs to another span. */
INLINE void append(uint8_t *to, uint8_t *from_line, uint64_t at, uint64_t first, const void *item,
                   size_t size)
{
    const uint64_t most = TN_LINE / size, place = at % most;
    memcpy(from_line + place * size, item, size);
    if (place < most - 1)
        return;
    if (first + place <= at)
        tn_stream_line(to + (at - place) * size, from_line);
    else
        memcpy(to + first * size, from_line + first % most * size, (at + 1 - first) * size);
}

/* Writes the rest of a line. */
static void flush(uint8_t *to, const uint8_t *from_line, uint64_t end, uint64_t first, size_t size)
{
    uint64_t most = TN_LINE / size, begin = end - end % most < first ? first : end - end % most;
    memcpy(to + begin * size, from_line + begin % most * size, (end - begin) * size);
}

/* The places of one span in each bucket. */
typedef struct places {
    uint64_t *first, *next;     /* of the first entry and of the next one */
    line     *lines;
} places;

/* False if there is no such bucket, or more entries than were counted.  Compiled once per size. */
INLINE bool partition_sized(const partition *d, places h, const uint64_t *keys, const uint8_t *values,
                            size_t n, size_t size)
{
    uint8_t *to_keys = (uint8_t *)d->keys, *to_values = d->values;
    uint64_t low = d->used.low, buckets = d->buckets, count = d->count;
    unsigned shift = d->shift;
    for (size_t i = 0; i < n; i++) {
        uint64_t b = (keys[i] - low) >> shift;
        if (b >= buckets || h.next[b] >= count)
            return false;
        uint64_t at = h.next[b]++;
        append(to_keys, h.lines[b].keys, at, h.first[b], &keys[i], sizeof *keys);
        append(to_values, h.lines[b].values, at, h.first[b], values + i * size, size);
    }
    return true;
}

static bool partition_block(const partition *d, places h, const uint64_t *keys, const uint8_t *values,
                            size_t n)
{
    switch (d->size) {
    case 1:  return partition_sized(d, h, keys, values, n, 1);
    case 2:  return partition_sized(d, h, keys, values, n, 2);
    case 4:  return partition_sized(d, h, keys, values, n, 4);
    case 8:  return partition_sized(d, h, keys, values, n, 8);
    default: return partition_sized(d, h, keys, values, n, 16);
    }
}

static tn_status partition_span(void *context, uint64_t span, tn_pool_use use, tn_error *err)
{
    const partition *d = context;
    size_t mine = use.scratch * d->buckets;
    places h = { .first = d->first + mine, .next = d->next + span * d->buckets, .lines = d->lines + mine };
    uint64_t at, end, buffer[BLOCK];
    memcpy(h.first, h.next, d->buckets * sizeof *h.first);
    span_bounds(d, span, &at, &end);
    bool same = true;
    for (size_t n; at < end && same; at += n) {
        n = block_size(end - at);
        same = partition_block(d, h, keys_of(d, at, n, buffer), d->from_values + at * d->size, n);
    }
    same = same && memcmp(h.next, d->ends + span * d->buckets, d->buckets * sizeof *h.next) == 0;
    for (size_t b = 0; b < d->buckets && same; b++) {
        flush((uint8_t *)d->keys, h.lines[b].keys, h.next[b], h.first[b], sizeof *d->keys);
        flush(d->values, h.lines[b].values, h.next[b], h.first[b], d->size);
    }
    tn_stream_fence();
    return same ? TN_OK : tn_entry_fail_changed(err);
}

/* Turns counts into places: within a bucket, spans keep their order. */
static void find_places(partition *d)
{
    uint64_t place = 0;
    for (size_t b = 0; b < d->buckets; b++)
        for (unsigned s = 0; s < d->spans; s++) {
            uint64_t *next = &d->next[s * d->buckets + b], n = *next;
            *next = place;
            place += n;
            d->ends[s * d->buckets + b] = place;
        }
}

/* The end of a filled bucket: where its last span stopped. */
static uint64_t bucket_end(const partition *d, size_t bucket)
{
    return d->next[(d->spans - 1) * d->buckets + bucket];
}

/* Buckets take the highest bits that differ in the range.  Few entries need only one bucket. */
static void choose_buckets(partition *d)
{
    uint64_t used = d->used.high - d->used.low;
    unsigned bits = d->count > PIECE ? bit_width(d->count / BUCKET) : 0, width = bit_width(used);
    bits = bits < MAX_BITS ? bits : MAX_BITS;
    d->shift = width > bits ? width - bits : 0;
    d->buckets = (size_t)(used >> d->shift) + 1;
}

/* Counts the entries of each bucket; again with a narrower range if the keys use only that. */
static tn_status count_buckets(partition *d, tn_pool *pool, tn_error *err)
{
    const tn_ordered task = { .work = count_span, .context = d };
    uint64_t most = d->count / BUCKET + 1, wanted = 4 * (uint64_t)tn_pool_jobs(pool);
    d->spans = (unsigned)(wanted < most ? wanted : most);
    d->per_span = (d->count + d->spans - 1) / d->spans;
    for (;;) {
        choose_buckets(d);
        d->next = calloc(d->spans * d->buckets, sizeof *d->next);
        d->span_used = calloc(d->spans, sizeof *d->span_used);
        tn_status status =
            d->next && d->span_used ? tn_pool_run(pool, d->spans, &task, err) : tn_fail_nomem(err);
        range found = no_range;
        for (unsigned i = 0; i < d->spans && !status; i++)
            found = join(found, d->span_used[i]);
        free(d->span_used);
        if (status || bit_width(found.high - found.low) == bit_width(d->used.high - d->used.low))
            return status;
        free(d->next);
        d->next = NULL;
        d->used = found;
    }
}

static tn_status partition_entries(partition *d, tn_pool *pool, tn_error *err)
{
    const tn_ordered task = { .work = partition_span, .context = d };
    size_t lines = tn_pool_jobs(pool) * d->buckets;
    d->ends = calloc(d->spans * d->buckets, sizeof *d->ends);
    d->first = calloc(lines, sizeof *d->first);
    d->lines = aligned_alloc(TN_LINE, lines * sizeof *d->lines);
    tn_status status = d->ends && d->first && d->lines ? TN_OK : tn_fail_nomem(err);
    if (!status) {
        find_places(d);
        status = tn_pool_run(pool, d->spans, &task, err);
    }
    free(d->ends);
    free(d->first);
    free(d->lines);
    return status;
}

/* --- cutting into pieces ------------------------------------------------- */

typedef struct piece {
    uint64_t first, count;
    range    keys;              /* all are in it */
    bool     equal;             /* all keys are: there may be any number of them */
} piece;

/* A sorted piece until its place in the output is known: result_keys and
 * result_values hold its entries.  The next piece that uses the same result
 * copies them there first. */
typedef struct result {
    uint64_t count, at;
} result;

typedef struct sorting {
    tn_entry_view   v;
    const tn_dtype_info *type;  /* of the values */
    const tn_dtype_info *real;  /* of a value or of half a complex value */
    tn_encode_rules rules;      /* of sums */
    size_t          size;       /* of a value */
    tn_pool        *pool;
    tn_duplicates   duplicates;
    piece          *pieces;
    size_t          npieces, cap;
    tn_entries     *entries;    /* the buckets; where all earlier pieces are done, the result */
    size_t          most;       /* entries of a piece that is sorted */
    result         *results;
    uint64_t       *result_keys;        /* [results][most] */
    uint8_t        *result_values;      /* [results][most * size] */
    uint64_t       *words, *sorted;     /* [workers][most] */
    uint32_t       *order;              /* [workers][most] */
    uint32_t       *counts;             /* [workers][LEVELS << PIECE_BITS] */
} sorting;

/* The buffers of one worker. */
typedef struct worker {
    uint64_t *words, *sorted;
    uint32_t *order, *counts;
} worker;

static worker worker_of(const sorting *s, unsigned i)
{
    return (worker){ s->words + i * s->most, s->sorted + i * s->most, s->order + i * s->most,
                     s->counts + i * ((size_t)LEVELS << PIECE_BITS) };
}

/* Joins small neighbours. */
static tn_status add_piece(sorting *s, piece p, tn_error *err)
{
    piece *last = s->npieces ? &s->pieces[s->npieces - 1] : NULL;
    if (last && !last->equal && !p.equal && last->count + p.count <= BUCKET) {
        last->count += p.count;
        last->keys = join(last->keys, p.keys);
        return TN_OK;
    }
    TN_NEED(TN_GROW(s->pieces, s->npieces, s->cap), err);
    s->pieces[s->npieces++] = p;
    return TN_OK;
}

static tn_status cut(sorting *s, piece p, tn_error *err);

static tn_status cut_buckets(sorting *s, const partition *d, uint64_t first, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t b = 0; b < d->buckets && !status; b++) {
        uint64_t begin = b ? bucket_end(d, b - 1) : 0, end = bucket_end(d, b);
        uint64_t low = d->used.low + ((uint64_t)b << d->shift);
        range keys = { low, low + (((uint64_t)1 << d->shift) - 1) };
        if (begin < end)
            status = cut(s, (piece){ first + begin, end - begin, keys, false }, err);
    }
    return status;
}

static tn_status copy_back(void *context, uint64_t span, tn_pool_use use, tn_error *err)
{
    const partition *d = context;
    (void)use;
    (void)err;
    uint64_t at, end;
    span_bounds(d, span, &at, &end);
    memcpy(d->keys + at, d->from_keys + at, (end - at) * sizeof *d->keys);
    memcpy(d->values + at * d->size, d->from_values + at * d->size, (end - at) * d->size);
    return TN_OK;
}

/* Partitions a piece that is too large: into new memory, then copied back. */
static tn_status partition_piece(sorting *s, partition *d, tn_error *err)
{
    partition back = *d;
    d->keys = tn_pages_alloc(d->count * sizeof *d->keys);
    d->values = tn_pages_alloc(d->count * d->size);
    tn_status status = d->keys && d->values ? partition_entries(d, s->pool, err) : tn_fail_nomem(err);
    if (!status) {
        back.from_keys = d->keys;
        back.from_values = d->values;
        const tn_ordered task = { .work = copy_back, .context = &back };
        status = tn_pool_run(s->pool, d->spans, &task, err);
    }
    free(d->keys);
    free(d->values);
    return status;
}

/* Each partition takes at least 5 bits from the keys of a bucket, so at most 13 are nested. */
static tn_status cut(sorting *s, piece p, tn_error *err)
{
    if (p.count <= PIECE)
        return add_piece(s, p, err);
    partition d = { .keys = s->entries->keys + p.first, .values = s->entries->values + p.first * s->size,
                    .size = s->size, .count = p.count, .used = p.keys };
    d.from_keys = d.keys;
    d.from_values = d.values;
    tn_status status = count_buckets(&d, s->pool, err);
    if (!status && d.used.low == d.used.high) {
        p.equal = true;
        status = add_piece(s, p, err);
    } else {
        if (!status)
            status = partition_piece(s, &d, err);
        if (!status)
            status = cut_buckets(s, &d, p.first, err);
    }
    free(d.next);
    return status;
}

/* Partitions all entries into pieces. */
static tn_status make_pieces(sorting *s, tn_error *err)
{
    uint64_t elements = 0;
    partition d = { .v = &s->v, .from_values = s->v.values, .keys = s->entries->keys,
                    .values = s->entries->values, .size = s->size, .count = s->v.count };
    if (!d.count)
        return TN_OK;
    tn_shape_count(s->v.tensor->rank, s->v.tensor->shape, &elements);
    d.used = (range){ 0, elements - 1 };
    tn_status status = count_buckets(&d, s->pool, err);
    if (!status)
        status = partition_entries(&d, s->pool, err);
    if (!status)
        status = cut_buckets(s, &d, 0, err);
    free(d.next);
    return status;
}

/* --- sorting a piece -----------------------------------------------------
 *
 * Sorts words.  A word is a key minus the smallest key, followed by the number of
 * the entry in the piece, so no two words are equal. */

/* For words that are near their places. */
static void sort_few(uint64_t *w, size_t n)
{
    if (n < 2)
        return;
    /* this pass has no branches and sorts most pairs */
    uint64_t largest = w[0];
    for (size_t i = 1; i < n; i++) {
        uint64_t it = w[i];
        w[i - 1] = it < largest ? it : largest;
        largest = it < largest ? largest : it;
    }
    w[n - 1] = largest;
    for (size_t i = 1; i < n; i++) {
        uint64_t it = w[i];
        size_t k = i;
        for (; k && w[k - 1] > it; k--)
            w[k] = w[k - 1];
        w[k] = it;
    }
}

/* Moves n words, all in the range, into `to` by the highest bits that differ.
 * Returns the number of buckets; counts[i] becomes the end of bucket i. */
static size_t partition_words(const uint64_t *from, uint64_t *to, size_t n, range used, uint32_t *counts,
                         uint32_t *largest)
{
    unsigned bits = bit_width(n), width = bit_width(used.high - used.low);
    bits = bits < PIECE_BITS ? bits : PIECE_BITS;
    unsigned shift = width > bits ? width - bits : 0;
    size_t buckets = (size_t)((used.high - used.low) >> shift) + 1;
    memset(counts, 0, buckets * sizeof *counts);
    for (size_t i = 0; i < n; i++)
        counts[(from[i] - used.low) >> shift]++;
    uint32_t place = 0;
    *largest = 0;
    for (size_t b = 0; b < buckets; b++) {
        uint32_t count = counts[b];
        counts[b] = place;
        place += count;
        *largest = count > *largest ? count : *largest;
    }
    for (size_t i = 0; i < n; i++)
        to[counts[(from[i] - used.low) >> shift]++] = from[i];
    return buckets;
}

/* Sorts n words, all in the range, into `to`; `from` is overwritten. */
static void sort_words(uint64_t *from, uint64_t *to, size_t n, range used, uint32_t *counts)
{
    uint32_t largest;
    size_t buckets = partition_words(from, to, n, used, counts, &largest), sorted = 0, first = 0;
    for (size_t b = 0; b < buckets && largest > FEW; b++) {
        size_t end = counts[b], size = end - first;
        if (size > FEW) {                       /* the buckets before are small: no word moves far */
            sort_few(to + sorted, first - sorted);
            if (!tn_is_ascending(to + first, size)) {
                sort_words(to + first, from + first, size, range_of(to + first, size, no_range),
                           counts + buckets);
                memcpy(to + first, from + first, size * sizeof *to);
            }
            sorted = end;
        }
        first = end;
    }
    sort_few(to + sorted, n - sorted);
}

/* Sorts n keys, all in the range, as words into w->sorted. */
static void sort_as_words(const uint64_t *keys, size_t n, range used, unsigned bits, const worker *w)
{
    for (size_t i = 0; i < n; i++)
        w->words[i] = (keys[i] - used.low) << bits | i;
    range words = { 0, (used.high - used.low) << bits | (((uint64_t)1 << bits) - 1) };
    sort_words(w->words, w->sorted, n, words, w->counts);
}

/* For keys that leave no room for a number: sorts by the low half, then by the high one. */
static void sort_in_halves(const uint64_t *keys, size_t n, range used, unsigned bits, const worker *w,
                           uint64_t *half)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    for (size_t i = 0; i < n; i++)
        half[i] = (keys[i] - used.low) & UINT32_MAX;
    sort_as_words(half, n, (range){ 0, UINT32_MAX }, bits, w);
    for (size_t i = 0; i < n; i++) {
        w->order[i] = (uint32_t)(w->sorted[i] & mask);
        half[i] = (keys[w->order[i]] - used.low) >> 32;
    }
    sort_as_words(half, n, (range){ 0, UINT32_MAX }, bits, w);
    for (size_t i = 0; i < n; i++)
        w->sorted[i] = w->order[w->sorted[i] & mask];
}

/* Sorts the keys of a piece; w->order receives the numbers of their entries. */
static void sort_keys(const uint64_t *keys, size_t n, range used, const worker *w, uint64_t *sorted_keys)
{
    unsigned bits = bit_width(n - 1);
    if (bit_width(used.high - used.low) + bits > 64) {
        sort_in_halves(keys, n, used, bits, w, sorted_keys);
        for (size_t i = 0; i < n; i++) {
            w->order[i] = (uint32_t)w->sorted[i];
            sorted_keys[i] = keys[w->order[i]];
        }
        return;
    }
    sort_as_words(keys, n, used, bits, w);
    for (size_t i = 0; i < n; i++) {
        w->order[i] = (uint32_t)(w->sorted[i] & (((uint64_t)1 << bits) - 1));
        sorted_keys[i] = used.low + (w->sorted[i] >> bits);
    }
}

/* --- duplicates ---------------------------------------------------------- */

/* Entries of a piece sorted by key: those with the numbers order[0], order[1]
 * ... or, if order is NULL, 0, 1 ... */
typedef struct sorted {
    const uint64_t *keys;
    const uint8_t  *values;
    const uint32_t *order;
} sorted;

static uint64_t number_of(const sorted *e, uint64_t i) { return e->order ? e->order[i] : i; }

static tn_indices_text show_key(const tn_entry_view *v, uint64_t key)
{
    return tn_indices_show(key, v->tensor->rank, v->tensor->shape);
}

/* Names the first two entries that have this key. */
static tn_status fail_duplicate(const tn_entry_view *v, uint64_t key, tn_error *err)
{
    uint64_t keys[BLOCK], found[2] = { 0, 0 };
    unsigned n = 0;
    for (uint64_t at = 0; at < v->count && n < 2; at += BLOCK) {
        size_t size = block_size(v->count - at);
        tn_entry_keys(v, at, size, keys);
        for (size_t i = 0; i < size && n < 2; i++)
            if (keys[i] == key)
                found[n++] = at + i;
    }
    return tn_fail(err, TN_ERR_LOSS,
                   "entries %llu and %llu have the same indices (%s): add them up with duplicates=sum",
                   (unsigned long long)found[0], (unsigned long long)found[1], show_key(v, key).text);
}

/* Stores a sum, rounded to nearest, as element i: a complex value has two. */
static void put_sum(const sorting *s, uint8_t *to, unsigned i, double sum)
{
    unsigned flags = 0;
    sum = isnan(sum) ? (double)NAN : sum;       /* CPUs differ in the bits of NaN */
    uint64_t code = tn_number_encode(s->real, &s->rules, tn_number_of_double(sum), 0, &flags);
    tn_code_put(to, i, s->real->bits, code);
}

static void add_floats(const sorting *s, const sorted *e, uint64_t first, uint64_t n, uint8_t *to)
{
    const tn_dtype_info *type = s->type;
    tn_value sum = tn_value_get(type->dtype, e->values, number_of(e, first));
    for (uint64_t i = 1; i < n; i++) {
        tn_value v = tn_value_get(type->dtype, e->values, number_of(e, first + i));
        sum.re += v.re;
        sum.im += v.im;
    }
    put_sum(s, to, 0, sum.re);
    if (type->kind == TN_KIND_COMPLEX)
        put_sum(s, to, 1, sum.im);
}

typedef struct wide_text { char text[48]; } wide_text;

static wide_text show_wide(wide x)
{
    wide_text t;
    char *p = t.text + sizeof t.text;
    bool negative = x < 0;
    *--p = 0;
    do {
        *--p = (char)('0' + (int)(negative ? -(x % 10) : x % 10));
        x /= 10;
    } while (x);
    if (negative)
        *--p = '-';
    memmove(t.text, p, (size_t)(t.text + sizeof t.text - p));
    return t;
}

static tn_status add_integers(const sorting *s, const sorted *e, uint64_t first, uint64_t n, uint8_t *to,
                              tn_error *err)
{
    const tn_dtype_info *type = s->type;
    bool sign = type->kind != TN_KIND_UINT;
    wide sum = 0, high = ((wide)1 << (type->bits - sign)) - 1, low = sign ? -high - 1 : 0;
    for (uint64_t i = 0; i < n; i++) {
        tn_value v = tn_value_get(type->dtype, e->values, number_of(e, first + i));
        sum += sign ? (wide)v.i : (wide)v.u;
    }
    if (sum < low || sum > high)
        return tn_fail(err, TN_ERR_LOSS,
                       "the %llu entries with indices (%s): expected a sum from %s to %s (%s) but found %s",
                       (unsigned long long)n, show_key(&s->v, e->keys[number_of(e, first)]).text,
                       show_wide(low).text, show_wide(high).text, type->name, show_wide(sum).text);
    tn_code_put(to, 0, type->bits, (uint64_t)sum);
    return TN_OK;
}

static tn_status add_up(const sorting *s, const sorted *e, uint64_t first, uint64_t n, uint8_t *to,
                        tn_error *err)
{
    switch (s->type->kind) {
    case TN_KIND_FLOAT:
    case TN_KIND_COMPLEX:
        add_floats(s, e, first, n, to);
        return TN_OK;
    case TN_KIND_BOOL:
        to[0] = 0;
        for (uint64_t i = 0; i < n; i++)
            to[0] = to[0] || e->values[number_of(e, first + i)];
        return TN_OK;
    default:
        return add_integers(s, e, first, n, to, err);
    }
}

/* --- the result ---------------------------------------------------------- */

INLINE void copy_sized(uint8_t *to, const uint8_t *from, const uint32_t *order, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * size, from + order[i] * size, size);
}

static void copy_in_order(uint8_t *to, const uint8_t *from, const uint32_t *order, size_t n, size_t size)
{
    switch (size) {             /* one loop per constant size */
    case 1:  copy_sized(to, from, order, n, 1); break;
    case 2:  copy_sized(to, from, order, n, 2); break;
    case 4:  copy_sized(to, from, order, n, 4); break;
    case 8:  copy_sized(to, from, order, n, 8); break;
    default: copy_sized(to, from, order, n, 16); break;
    }
}

/* The empty buffers of a result. */
static tn_entries buffers_of(const sorting *s, unsigned number)
{
    size_t first = number * s->most;
    return (tn_entries){ 0, s->result_keys + first, s->result_values + first * s->size };
}

/* Merges entries with the same key. */
static tn_status merge(const sorting *s, const sorted *e, uint64_t n, tn_entries *to, tn_error *err)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0, same; i < n && !status; i += same) {
        uint64_t number = number_of(e, i), key = e->keys[number];
        uint8_t *value = to->values + to->count * s->size;
        for (same = 1; i + same < n && e->keys[number_of(e, i + same)] == key;)
            same++;
        to->keys[to->count++] = key;
        if (same == 1)
            memcpy(value, e->values + number * s->size, s->size);
        else if (s->duplicates == TN_DUPLICATES_SUM)
            status = add_up(s, e, i, same, value, err);
        else
            status = fail_duplicate(&s->v, key, err);
    }
    return status;
}

/* Copies the entries of a result to their place. */
static void settle(const sorting *s, unsigned number)
{
    result *it = &s->results[number];
    tn_entries from = buffers_of(s, number);
    memcpy(s->entries->keys + it->at, from.keys, it->count * sizeof *from.keys);
    memcpy(s->entries->values + it->at * s->size, from.values, it->count * s->size);
    it->count = 0;
}

static tn_status sort_piece(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const sorting *s = context;
    const piece *p = &s->pieces[item];
    const worker w = worker_of(s, use.scratch);
    sorted e = { .keys = s->entries->keys + p->first, .values = s->entries->values + p->first * s->size };
    tn_entries to = buffers_of(s, use.result);
    tn_status status = TN_OK;
    settle(s, use.result);
    if (!p->equal) {
        sort_keys(e.keys, p->count, p->keys, &w, to.keys);
        e.order = w.order;
    }
    if (p->equal || !tn_is_ascending(to.keys, p->count)) {
        status = merge(s, &e, p->count, &to, err);
    } else {
        copy_in_order(to.values, e.values, e.order, p->count, s->size);
        to.count = p->count;
    }
    s->results[use.result].count = to.count;
    return status;
}

static tn_status place_piece(void *context, uint64_t item, unsigned number, tn_error *err)
{
    const sorting *s = context;
    result *it = &s->results[number];
    (void)item;
    (void)err;
    it->at = s->entries->count;
    s->entries->count += it->count;
    return TN_OK;
}

static tn_status prepare(sorting *s, tn_error *err)
{
    size_t jobs = tn_pool_jobs(s->pool), results = tn_pool_results(s->pool);
    s->most = s->v.count < PIECE ? (size_t)s->v.count : PIECE;
    s->entries->keys = tn_pages_alloc(s->v.count * sizeof *s->entries->keys);
    s->entries->values = tn_pages_alloc(s->v.count * s->size);
    s->results = calloc(results, sizeof *s->results);
    s->result_keys = tn_pages_alloc(results * s->most * sizeof *s->result_keys);
    s->result_values = tn_pages_alloc(results * s->most * s->size);
    s->words = tn_pages_alloc(jobs * s->most * sizeof *s->words);
    s->sorted = tn_pages_alloc(jobs * s->most * sizeof *s->sorted);
    s->order = tn_pages_alloc(jobs * s->most * sizeof *s->order);
    s->counts = tn_pages_alloc(jobs * ((size_t)LEVELS << PIECE_BITS) * sizeof *s->counts);
    bool whole = s->entries->keys && s->entries->values && s->results && s->result_keys && s->result_values;
    return whole && s->words && s->sorted && s->order && s->counts ? TN_OK : tn_fail_nomem(err);
}

static void release(sorting *s)
{
    free(s->results);
    free(s->result_keys);
    free(s->result_values);
    free(s->words);
    free(s->sorted);
    free(s->order);
    free(s->counts);
    free(s->pieces);
}

tn_status tn_entries_sort(const tn_tensor *tensor, tn_duplicates duplicates, tn_pool *pool,
                          tn_entries *entries, tn_error *err)
{
    sorting s = { .v = tn_entry_view_of(tensor), .type = tn_dtype_get(tensor->dtype), .pool = pool,
                  .duplicates = duplicates, .entries = entries };
    const tn_ordered task = { .work = sort_piece, .emit = place_piece, .context = &s };
    *entries = (tn_entries){ 0 };
    s.size = s.type->bits / 8u;
    s.real = tn_real_type(s.type);
    s.rules = tn_encode_rules_for(s.real, NULL);
    tn_status status = prepare(&s, err);
    if (!status)
        status = make_pieces(&s, err);
    if (!status)
        status = tn_pool_run(pool, s.npieces, &task, err);
    for (unsigned i = 0; i < tn_pool_results(pool) && !status; i++)
        settle(&s, i);
    release(&s);
    if (status)
        tn_entries_free(entries);
    return status;
}

void tn_entries_free(tn_entries *entries)
{
    free(entries->keys);
    free(entries->values);
    *entries = (tn_entries){ 0 };
}
