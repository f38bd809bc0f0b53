/* store/names.c - the name table. */
#include "store/names.h"
#include "base/pages.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t seed;
static pthread_once_t seeded = PTHREAD_ONCE_INIT;

static void make_seed(void)
{
    /* Without entropy the table still works; a file could only make it slow. */
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)(uintptr_t)&seed;
}

static uint64_t hash_of(const char *name)
{
    return XXH3_64bits_withSeed(name, strlen(name), seed);
}

static bool allocate(tn_names *t, size_t n)
{
    size_t room = 16;
    while (room / 4 * 3 < n)    /* at most three quarters full */
        room *= 2;
    t->slots = tn_pages_alloc(room * sizeof *t->slots);
    if (t->slots)
        memset(t->slots, 0, room * sizeof *t->slots);
    t->mask = room - 1;
    t->count = 0;
    return t->slots != NULL;
}

bool tn_names_init(tn_names *t, size_t n)
{
    pthread_once(&seeded, make_seed);
    return n < UINT32_MAX / 2 && allocate(t, n);
}

void tn_names_free(tn_names *t)
{
    free(t->slots);
    *t = (tn_names){ 0 };
}

/* The slot that holds `name`, or the empty one where it belongs. */
static struct tn_name_slot *locate(const tn_names *t, const void *owner, tn_name_at name_at, const char *name,
                                   uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t k = (size_t)hash & t->mask;; k = (k + 1) & t->mask) {
        struct tn_name_slot *s = &t->slots[k];
        if (!s->index_plus_1 || (s->tag == tag && strcmp(name_at(owner, s->index_plus_1 - 1), name) == 0))
            return s;
    }
}

static bool grow(tn_names *t, const void *owner, tn_name_at name_at)
{
    tn_names bigger;
    if (t->mask >= UINT32_MAX / 2 || !allocate(&bigger, t->mask))
        return false;
    for (size_t k = 0; k <= t->mask; k++) {
        if (!t->slots[k].index_plus_1)
            continue;
        const char *name = name_at(owner, t->slots[k].index_plus_1 - 1);
        *locate(&bigger, owner, name_at, name, hash_of(name)) = t->slots[k];
        bigger.count++;
    }
    free(t->slots);
    *t = bigger;
    return true;
}

static size_t insert(tn_names *t, const void *owner, tn_name_at name_at, size_t i, uint64_t hash)
{
    struct tn_name_slot *s = locate(t, owner, name_at, name_at(owner, i), hash);
    if (s->index_plus_1)
        return s->index_plus_1 - 1;
    *s = (struct tn_name_slot){ .tag = (uint32_t)(hash >> 32), .index_plus_1 = (uint32_t)i + 1 };
    t->count++;
    return TN_NAMES_ADDED;
}

size_t tn_names_add(tn_names *t, const void *owner, tn_name_at name_at, size_t i)
{
    if (!t->slots && !tn_names_init(t, 0))
        return TN_NAMES_NOMEM;
    if (t->count > t->mask / 4 * 3 && !grow(t, owner, name_at))
        return TN_NAMES_NOMEM;
    return insert(t, owner, name_at, i, hash_of(name_at(owner, i)));
}

size_t tn_names_add_all(tn_names *t, const void *owner, tn_name_at name_at, size_t n, size_t *other)
{
    enum { GROUP = 16 };        /* slots are anywhere: prefetch some before any is needed */
    uint64_t hash[GROUP];
    for (size_t from = 0; from < n; from += GROUP) {
        size_t group = n - from < GROUP ? n - from : GROUP;
        for (size_t k = 0; k < group; k++) {
            hash[k] = hash_of(name_at(owner, from + k));
            __builtin_prefetch(&t->slots[hash[k] & t->mask], 1);
        }
        for (size_t k = 0; k < group; k++)
            if ((*other = insert(t, owner, name_at, from + k, hash[k])) != TN_NAMES_ADDED)
                return from + k;
    }
    return n;
}

size_t tn_names_find(const tn_names *t, const void *owner, tn_name_at name_at, const char *name)
{
    if (!t->slots)
        return SIZE_MAX;
    struct tn_name_slot *s = locate(t, owner, name_at, name, hash_of(name));
    return s->index_plus_1 ? s->index_plus_1 - 1 : SIZE_MAX;
}
