/* Two files: comparing them tells of every tensor of both, gives the same verdicts
 * the other way round, and misses none; or says what is damaged. */
#include "mutate.h"
#include "scarce.h"
#include "walk.h"

/* The input is two files: two bytes of length, little-endian, before the first. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    size_t first = size >= 2 ? (size_t)get_le(data, 2) : SIZE_MAX;
    if (size < 2 || first > size - 2 || mutant_pick(&m, 16) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    bool second = mutant_pick(&m, 2);
    size_t from = second ? 2 + first : 2, n = second ? size - from : first, cap = n + 400;
    uint8_t *copy = malloc(cap);
    REQUIRE(copy);
    memcpy(copy, data + from, n);
    if (mutant_pick(&m, 8) == 0) {              /* the other one once more */
        size_t other = second ? 2 : 2 + first, k = second ? first : size - 2 - first;
        if (k <= cap)
            memcpy(copy, data + other, k);
        cap = k <= cap ? k : n;
    } else {
        bool zt = n > 8 && memcmp(copy, "ZTEN0001", 8) == 0;
        cap = zt ? mutate_ztensor(copy, n, cap, seed) : mutate_safetensors(copy, n, cap, seed);
    }
    if (replace_range(&m, from, n, copy, cap) && !second)
        set_le(m.data, cap, 2);
    free(copy);
    return m.size;
}

typedef struct tally {
    size_t called, equal, different, only_a, only_b;
} tally;

static void note(void *context, const tn_difference *d)
{
    tally *t = context;
    REQUIRE((d->what & TN_DIFF_ONLY_A) == 0 || (d->a && !d->b));
    REQUIRE((d->what & TN_DIFF_ONLY_B) == 0 || (d->b && !d->a));
    REQUIRE((d->what & TN_DIFF_UNREAD) == 0 || (d->why && d->why[0]));
    REQUIRE(d->differing <= d->elements && d->flushed <= d->elements && d->saturated <= d->elements);
    REQUIRE((d->what & TN_DIFF_VALUES) == 0 || d->differing > 0 || d->part);
    t->called++;
    t->equal += d->what == 0;
    t->only_a += (d->what & TN_DIFF_ONLY_A) != 0;
    t->only_b += (d->what & TN_DIFF_ONLY_B) != 0;
}

/* False: one of them is damaged. */
static bool compare(const tn_file *a, const tn_file *b, tally *t)
{
    tn_compare_options options = { .size = sizeof options, .jobs = 1, .context = t };
    tn_error err = { .text = "" };
    *t = (tally){ 0 };
    tn_status status = tn_compare(a, b, &options, note, &t->different, &err);
    if (status) {
        walk_error(&err, status);
        REQUIRE(status == TN_ERR_CORRUPT || status == TN_ERR_CHECKSUM || status == TN_ERR_UNSUPPORTED ||
                status == TN_ERR_LIMIT);
        return false;
    }
    REQUIRE(t->called == t->equal + t->different);
    return true;
}

typedef struct pair { const tn_file *a, *b; } pair;

static tn_status compare_scarcely(const void *context, tn_error *err)
{
    const pair *p = context;
    tn_compare_options options = { .size = sizeof options, .jobs = 1 };
    size_t different;
    return tn_compare(p->a, p->b, &options, NULL, &different, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t first = size >= 2 ? (size_t)get_le(data, 2) : SIZE_MAX;
    tn_file *a = NULL, *b = NULL;
    tally there, back, self;
    if (size < 2 || first > size - 2)
        return 0;
    if (tn_open_memory(data + 2, first, NULL, &a, NULL) == TN_OK &&
        tn_open_memory(data + 2 + first, size - 2 - first, NULL, &b, NULL) == TN_OK &&
        walk_is_small(a) && walk_is_small(b)) {
        bool good = compare(a, b, &there);
        REQUIRE(compare(b, a, &back) == good);
        REQUIRE(there.different == back.different);
        REQUIRE(there.called == back.called && there.only_a == back.only_b && there.only_b == back.only_a);
        compare(a, a, &self);
        REQUIRE(self.only_a == 0 && self.only_b == 0);
        scarce_check(compare_scarcely, &(pair){ a, b }, scarce_choice(data, size));
    }
    tn_close(a);
    tn_close(b);
    return 0;
}
