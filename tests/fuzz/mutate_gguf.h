/* tests/fuzz/mutate_gguf.h - mutations of GGUF files: metadata, strings and tensors are deleted, doubled and
 * changed; lengths, counts and the size of the data follow. */
#ifndef TN_FUZZ_MUTATE_GGUF_H
#define TN_FUZZ_MUTATE_GGUF_H

#include "mutate.h"

enum { GGUF_PIECES = 200 };

/* A pair or a tensor, and the strings, types and numbers in it. */
typedef struct gguf_piece {
    size_t begin, end;
} gguf_piece;

typedef struct gguf_scan {
    const mutant *m;
    size_t     pos;
    bool       bad, big;
    unsigned   wide;
    gguf_piece pairs[GGUF_PIECES], tensors[GGUF_PIECES], strings[GGUF_PIECES], numbers[GGUF_PIECES];
    size_t     npairs, ntensors, nstrings, nnumbers;
} gguf_scan;

static inline uint64_t get_number(const uint8_t *p, unsigned n, bool big)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value = value << 8 | p[big ? i : n - 1 - i];
    return value;
}

static inline void set_number(uint8_t *p, uint64_t value, unsigned n, bool big)
{
    for (unsigned i = 0; i < n; i++)
        p[big ? n - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

static inline void note_piece(gguf_piece *pieces, size_t *n, size_t begin, size_t end)
{
    if (*n < GGUF_PIECES)
        pieces[(*n)++] = (gguf_piece){ begin, end };
}

static inline void skip_gguf(gguf_scan *s, uint64_t n)
{
    s->bad |= n > s->m->size - s->pos;
    s->pos += s->bad ? 0 : (size_t)n;
}

static inline uint64_t scan_number(gguf_scan *s, unsigned n)
{
    size_t at = s->pos;
    skip_gguf(s, n);
    if (s->bad)
        return 0;
    note_piece(s->numbers, &s->nnumbers, at, s->pos);
    return get_number(s->m->data + at, n, s->big);
}

static inline void scan_string(gguf_scan *s)
{
    size_t at = s->pos;
    uint64_t n = scan_number(s, s->wide);
    skip_gguf(s, n);
    if (!s->bad)
        note_piece(s->strings, &s->nstrings, at, s->pos);
}

static inline void scan_value(gguf_scan *s, uint64_t type, unsigned depth)
{
    static const uint8_t sizes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    s->bad |= type > 12 || depth > 60;
    if (s->bad)
        return;
    if (type == 8) {
        scan_string(s);
    } else if (type == 9) {
        uint64_t item = scan_number(s, 4), n = scan_number(s, s->wide);
        for (uint64_t i = 0; i < n && !s->bad; i++)
            scan_value(s, item, depth + 1);
    } else {
        scan_number(s, sizes[type]);
    }
}

static inline void scan_tensor(gguf_scan *s)
{
    scan_string(s);
    uint64_t rank = scan_number(s, 4);
    for (uint64_t i = 0; i < rank && i < 65 && !s->bad; i++)
        scan_number(s, s->wide);
    scan_number(s, 4);
    scan_number(s, 8);
}

static inline void scan_gguf(gguf_scan *s, const mutant *m)
{
    *s = (gguf_scan){ .m = m, .pos = 8, .wide = 8 };
    s->bad = m->size < 16 || memcmp(m->data, "GGUF", 4) != 0;
    if (s->bad)
        return;
    s->big = m->data[4] == 0;
    s->wide = m->data[s->big ? 7 : 4] == 1 ? 4 : 8;
    uint64_t tensors = scan_number(s, s->wide), pairs = scan_number(s, s->wide);
    for (uint64_t i = 0; i < pairs && !s->bad; i++) {
        size_t at = s->pos;
        scan_string(s);
        scan_value(s, scan_number(s, 4), 0);
        note_piece(s->pairs, &s->npairs, at, s->pos);
    }
    for (uint64_t i = 0; i < tensors && !s->bad; i++) {
        size_t at = s->pos;
        scan_tensor(s);
        note_piece(s->tensors, &s->ntensors, at, s->pos);
    }
}

/* One more or one less: `count` is where their number is. */
static inline void change_count(mutant *m, const gguf_scan *s, size_t count, const gguf_piece *p)
{
    uint64_t n = get_number(m->data + count, s->wide, s->big);
    bool more = mutant_pick(m, 2);
    size_t size = p->end - p->begin;
    if (replace_range(m, p->begin, more ? 0 : size, m->data + p->begin, more ? size : 0))
        set_number(m->data + count, more ? n + 1 : n - 1, s->wide, s->big);
}

static inline void change_string(mutant *m, const gguf_scan *s, const gguf_piece *p)
{
    size_t before = m->size, n = p->end - p->begin - s->wide;
    mutate_range(m, p->begin + s->wide, n);
    set_number(m->data + p->begin, n + (m->size - before), s->wide, s->big);
}

static inline void change_number(mutant *m, const gguf_scan *s, const gguf_piece *p)
{
    static const uint64_t words[] = { 0, 1, 2, 3, 4, 5, 8, 9, 12, 16, 30, 32, 39, 64, 256, UINT64_C(1) << 32,
                                      UINT64_C(1) << 62, INT64_MAX, UINT64_MAX };
    set_number(m->data + p->begin, words[mutant_pick(m, sizeof words / sizeof *words)],
               (unsigned)(p->end - p->begin), s->big);
}

static inline size_t mutate_gguf(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static gguf_scan s;
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    scan_gguf(&s, &m);
    if (s.bad || mutant_pick(&m, 8) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    unsigned what = (unsigned)mutant_pick(&m, 5);
    if (what == 0 && s.npairs)
        change_count(&m, &s, 8 + s.wide, &s.pairs[mutant_pick(&m, s.npairs)]);
    else if (what == 1 && s.ntensors)
        change_count(&m, &s, 8, &s.tensors[mutant_pick(&m, s.ntensors)]);
    else if (what == 2 && s.nstrings)
        change_string(&m, &s, &s.strings[mutant_pick(&m, s.nstrings)]);
    else if (what == 3 && s.nnumbers)
        change_number(&m, &s, &s.numbers[mutant_pick(&m, s.nnumbers)]);
    else
        mutate_range(&m, s.pos, m.size - s.pos);
    if (mutant_pick(&m, 4) == 0 && m.cap > m.size) {    /* more data, for tensors that became larger */
        size_t more = mutant_pick(&m, m.cap - m.size < 2048 ? m.cap - m.size : 2048);
        memset(m.data + m.size, 0, more);
        m.size += more;
    }
    return m.size;
}

#endif
