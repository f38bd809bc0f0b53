/* check_sparse.c - every level of the sparse kernels against the definition.
 *
 *     check_sparse [LEVEL]
 *
 * Every length 0..130 and a few long ones, all densities, random and special
 * values, thresholds of every shape, at any address up to a page that must not be
 * touched, with exactly the room that is needed and with more.  One line per
 * kernel; fails if one does. */
#include "check.h"

#include "kernels/sparse/table.h"

enum { ROOM = 12 << 10, MOST = 130, LONG = 700, TRIES = 4 };

static uint8_t *src_room, *values_room, *places_room;

static const size_t widths[TN_FILTER_KINDS] = { 1, 2, 4, 8, 1, 8, 16 };

/* Where `size` bytes go: the beginning or the end of a room, or an odd place in it. */
static size_t place(size_t size)
{
    switch (below(3)) {
    case 0:  return 0;
    case 1:  return ROOM - size;
    default: return below(ROOM - size + 1);
    }
}

/* --- inputs ------------------------------------------------------------ */

/* Zeros, thresholds of floats, of integers, and ones that keep or leave out everything. */
static tn_filter make_filter(tn_filter_kind kind, unsigned how)
{
    unsigned bits = kind == TN_FILTER_FNUZ     ? 8
                    : kind == TN_FILTER_PAIR_4 ? 32
                    : kind == TN_FILTER_PAIR_8 ? 64
                                              : 8u << kind;
    uint64_t ones = UINT64_MAX >> (64 - bits), any = (below(UINT32_MAX) << 32 | below(UINT32_MAX)) & ones;
    switch (how) {
    case 0:  return (tn_filter){ kind, 0, ones, 0 };
    case 1:  return (tn_filter){ kind, 0, ones >> 1, any >> 1 };
    case 2:  return (tn_filter){ kind, any >> 2, ones, any >> 2 << 1 };
    case 3:  return (tn_filter){ kind, 0, ones >> 1, 0 };
    case 4:  return (tn_filter){ kind, 0, ones, ones };
    default: return (tn_filter){ kind, 0, ones >> 1, ones >> 1 };
    }
}

/* About `percent` of the numbers are not zero: random ones, ends of ranges, and ones near the limit. */
static void fill(uint8_t *p, size_t n, size_t width, unsigned percent, const tn_filter *s)
{
    size_t unit = s->kind == TN_FILTER_PAIR_4 || s->kind == TN_FILTER_PAIR_8 ? width / 2 : width;
    memset(p, 0, n * width);
    for (size_t i = 0; i < n * width; i += unit) {
        if (below(100) >= percent)
            continue;
        uint64_t x = below(UINT32_MAX) << 33 ^ below(UINT32_MAX), sign = UINT64_C(1) << (unit * 8 - 1);
        switch (below(4)) {
        case 0:  x = s->limit - s->add + below(3) - 1; break;
        case 1:  x = (s->limit + below(3) - 1) ^ sign; break;
        case 2:  x = sign - below(2); break;
        default: break;
        }
        uint8_t bytes[8];
        memcpy(bytes, &x, sizeof bytes);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        memcpy(p + i, bytes + 8 - unit, unit);
#else
        memcpy(p + i, bytes, unit);
#endif
    }
}

/* --- the definition, once more ------------------------------------------------------- */

static uint64_t number(const uint8_t *p, size_t width)
{
    uint8_t  one = *p;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (width) {
    case 1:  return one;
    case 2:  memcpy(&two, p, 2); return two;
    case 4:  memcpy(&four, p, 4); return four;
    default: memcpy(&eight, p, 8); return eight;
    }
}

static bool keeps(const tn_filter *s, const uint8_t *p)
{
    size_t width = widths[s->kind];
    if (s->kind == TN_FILTER_PAIR_4 || s->kind == TN_FILTER_PAIR_8)
        return ((number(p, width / 2) + s->add) & s->mask) > s->limit ||
               ((number(p + width / 2, width / 2) + s->add) & s->mask) > s->limit;
    return ((number(p, width) + s->add) & s->mask) > s->limit || (s->kind == TN_FILTER_FNUZ && *p == 0x80);
}

/* --- one call ---------------------------------------------------------------------------- */

static bool untouched(const uint8_t *p, size_t from, size_t to)
{
    return from == to || (p[from] == CANARY && memcmp(p + from, p + from + 1, to - from - 1) == 0);
}

/* Entries of `what` at `at` in its room are right, and what may not be written is not. */
static bool check_output(const char *what, const uint8_t *p, size_t at, const uint8_t *want, size_t nbytes,
                         size_t room_bytes)
{
    if (memcmp(p + at, want, nbytes) == 0 && untouched(p, 0, at) && untouched(p, at + room_bytes, ROOM))
        return true;
    printf("      %s are wrong, or bytes around them", what);
    return false;
}

static bool check_call(const tn_sparse_kernels *k, const tn_filter *s, size_t n, unsigned percent)
{
    static uint8_t want_values[LONG * 16], want_places[LONG * 4];
    size_t width = widths[s->kind], from = place(n * width), want = 0;
    uint32_t base = below(2) ? (uint32_t)below(1000) : UINT32_MAX - (uint32_t)below(100);
    uint8_t *src = src_room + from;
    fill(src, n, width, percent, s);
    for (size_t i = 0; i < n; i++)
        if (keeps(s, src + i * width)) {
            uint32_t at = base + (uint32_t)i;
            memcpy(want_values + want * width, src + i * width, width);
            memcpy(want_places + want * 4, &at, 4);
            want++;
        }
    size_t room = want + (below(2) ? 0 : below(40)), to = place(room * width), to_places = place(room * 4);
    unsigned outputs = 1 + (unsigned)below(3);
    memset(values_room, CANARY, ROOM);
    memset(places_room, CANARY, ROOM);
    size_t counted = k->count[s->kind](s, src, n);
    tn_picked picks = { .values = outputs & 1 ? values_room + to : NULL, .base = base, .room = room };
    picks.places = outputs & 2 ? places_room + to_places : NULL;
    size_t picked = k->pick[s->kind](s, src, n, picks);
    bool good = counted == want && picked == want;
    if (!good)
        printf("      expected %zu but counted %zu and picked %zu", want, counted, picked);
    good = good &&
           (outputs & 1 ? check_output("values", values_room, to, want_values, want * width, room * width)
                        : untouched(values_room, 0, ROOM));
    good =
        good && (outputs & 2 ? check_output("places", places_room, to_places, want_places, want * 4, room * 4)
                             : untouched(places_room, 0, ROOM));
    if (!good)
        printf(" (%zu elements, %u %%, room for %zu; add %llx, mask %llx, limit %llx)\n", n, percent, room,
               (unsigned long long)s->add, (unsigned long long)s->mask, (unsigned long long)s->limit);
    return good;
}

static bool check_kind(const tn_sparse_kernels *k, tn_filter_kind kind)
{
    static const unsigned percents[] = { 0, 1, 5, 50, 100 };
    for (unsigned how = 0; how < 6; how++)
        for (unsigned i = 0; i < sizeof percents / sizeof *percents; i++) {
            for (size_t n = 0; n <= MOST; n++)
                for (unsigned tries = 0; tries < TRIES; tries++) {
                    tn_filter s = make_filter(kind, how);
                    if (!check_call(k, &s, n, percents[i]))
                        return false;
                }
            for (unsigned tries = 0; tries < TRIES; tries++) {
                tn_filter s = make_filter(kind, how);
                if (!check_call(k, &s, below(LONG), percents[i]))
                    return false;
            }
        }
    return true;
}

/* --- order ------------------------------------------------------------- */

/* Small steps, so that rows have several pairs; then one number is changed, or none. */
static void make_ascending(uint32_t *numbers, size_t n, size_t step)
{
    uint64_t next = below(3);
    for (size_t i = 0; i < n; i++, next += 1 + below(40)) {
        numbers[i * step] = (uint32_t)(step == 2 ? next / 100 : next);
        if (step == 2)
            numbers[i * step + 1] = (uint32_t)(next % 100);
    }
    if (n && below(4)) {
        static const uint32_t odd[] = { 0, 1, 99, 100, INT32_MAX, 0x80000000, UINT32_MAX };
        size_t i = below(n * step);
        numbers[i] = below(2) ? odd[below(7)] : numbers[i] - 1 + (uint32_t)below(3);
    }
}

static bool check_order(const tn_sparse_kernels *k)
{
    uint32_t numbers[2 * MOST];
    for (unsigned tries = 0; tries < 60; tries++)
        for (size_t n = 0; n <= MOST; n++) {
            const uint32_t limits[2] = { (uint32_t)below(60) + 1, below(2) ? 100 : INT32_MAX };
            make_ascending(numbers, n, 1);
            uint8_t *at = src_room + place(4 * n);
            memcpy(at, numbers, 4 * n);
            if (k->ascend(at, n) != tn_ascend_scalar(at, n))
                return printf("      %zu numbers\n", n), false;
            make_ascending(numbers, n, 2);
            at = src_room + place(8 * n);
            memcpy(at, numbers, 8 * n);
            if (k->pairs_ascend(at, n, limits) != tn_pairs_ascend_scalar(at, n, limits))
                return printf("      %zu pairs below %u and %u\n", n, limits[0], limits[1]), false;
        }
    return true;
}

/* --- levels ------------------------------------------------------------------------------- */

static void check_level(unsigned cpu)
{
    static const char *const names[TN_FILTER_KINDS] = {
        "elements of 1 byte",           "elements of 2 bytes", "elements of 4 bytes",
        "elements of 8 bytes",          "elements of fnuz",    "elements of pairs of 4 bytes",
        "elements of pairs of 8 bytes",
    };
    tn_sparse_kernels k;
    tn_sparse_kernels_init(&k, cpu);
    for (unsigned i = 0; i < TN_FILTER_KINDS; i++)
        report(tn_cpu_name(cpu), names[i], check_kind(&k, (tn_filter_kind)i));
    report(tn_cpu_name(cpu), "order", check_order(&k));
}

int main(int argc, char **argv)
{
    src_room = guarded(ROOM);
    values_room = guarded(ROOM);
    places_room = guarded(ROOM);
    return check_levels(argc, argv, check_level);
}
