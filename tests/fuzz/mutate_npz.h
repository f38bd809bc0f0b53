/* tests/fuzz/mutate_npz.h - archives whose members are changed and put together
 * again, with all their sizes, places and checksums. */
#ifndef TN_FUZZ_MUTATE_NPZ_H
#define TN_FUZZ_MUTATE_NPZ_H

#include "mutate.h"

#include "bytes/codec.h"

#ifndef CHECK
#define CHECK REQUIRE
#define assert_non_null(pointer) REQUIRE((pointer) != NULL)
#endif
#include "npz_bytes.h"

enum { MEMBERS_MAX = 12, MEMBER_BYTES = 16384, MEMBER_NAME = 80 };

typedef struct zip_parts {
    size_t count;
    struct {
        char     name[MEMBER_NAME];
        unsigned method;
        uint8_t *bytes;         /* decoded, with room for MEMBER_BYTES */
        size_t   size;
    } at[MEMBERS_MAX];
} zip_parts;

static inline void zip_free(zip_parts *z)
{
    for (size_t i = 0; i < z->count; i++)
        free(z->at[i].bytes);
}

static inline bool inflate_raw(const uint8_t *bytes, size_t n, uint8_t *out, size_t *size)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (unsigned)n, .next_out = out,
                   .avail_out = MEMBER_BYTES };
    if (inflateInit2(&z, -15) != Z_OK)
        return false;
    bool done = inflate(&z, Z_FINISH) == Z_STREAM_END;
    *size = MEMBER_BYTES - z.avail_out;
    inflateEnd(&z);
    return done;
}

/* The member whose entry stands at `entry`; false if it cannot be taken apart. */
static inline bool zip_take(zip_parts *z, const uint8_t *data, size_t size, const uint8_t *entry)
{
    size_t name = (size_t)get_le(entry + 28, 2), n = (size_t)get_le(entry + ENTRY_SIZE, 4);
    size_t at = (size_t)get_le(entry + ENTRY_PLACE, 4);
    if (z->count == MEMBERS_MAX || name >= MEMBER_NAME || entry + ENTRY_NAME + name > data + size ||
        size < LOCAL_NAME ||
        at > size - LOCAL_NAME)
        return false;
    size_t from = at + LOCAL_NAME + (size_t)get_le(data + at + 26, 2) + (size_t)get_le(data + at + 28, 2);
    if (from > size || n > size - from || n > MEMBER_BYTES)
        return false;
    uint8_t *bytes = malloc(MEMBER_BYTES);
    REQUIRE(bytes);
    z->at[z->count].method = (unsigned)get_le(entry + ENTRY_METHOD, 2);
    z->at[z->count].size = n;
    if (z->at[z->count].method == TN_ZIP_STORED)
        memcpy(bytes, data + from, n);
    else if (z->at[z->count].method != TN_ZIP_DEFLATED ||
             !inflate_raw(data + from, n, bytes, &z->at[z->count].size)) {
        free(bytes);
        return false;
    }
    memcpy(z->at[z->count].name, entry + ENTRY_NAME, name);
    z->at[z->count].name[name] = '\0';
    z->at[z->count++].bytes = bytes;
    return true;
}

static inline bool zip_read(zip_parts *z, const uint8_t *data, size_t size)
{
    size_t end = size < 22 ? 0 : size - 22;
    while (end > 0 && memcmp(data + end, "PK\5\6", 4) != 0)
        end--;
    if (!end)
        return false;
    size_t count = (size_t)get_le(data + end + 10, 2), at = (size_t)get_le(data + end + 16, 4);
    for (size_t i = 0; i < count; i++) {
        if (at > size || size - at < ENTRY_NAME || !zip_take(z, data, size, data + at))
            return false;
        const uint8_t *sizes = data + at + 28;          /* of its name, extra field and comment */
        at += ENTRY_NAME + (size_t)(get_le(sizes, 2) + get_le(sizes + 2, 2) + get_le(sizes + 4, 2));
    }
    return count > 0;
}

/* Changes the content of a member; returns its size. */
typedef size_t (*change_member)(mutant *m);

static inline void zip_change(zip_parts *z, mutant *m, change_member change)
{
    size_t i = mutant_pick(m, z->count), k = mutant_pick(m, z->count), n;
    char name[MEMBER_NAME];
    mutant member = { .data = z->at[i].bytes, .size = z->at[i].size, .cap = MEMBER_BYTES,
                      .random = mutant_random(m) };
    switch (mutant_pick(m, 8)) {
    case 0:
        memcpy(name, z->at[i].name, sizeof name);
        n = LLVMFuzzerMutate((uint8_t *)name, strlen(name), sizeof name - 1);
        name[n] = '\0';
        memcpy(z->at[i].name, name, sizeof name);
        break;
    case 1:
        z->at[i].method = z->at[i].method == TN_ZIP_STORED ? TN_ZIP_DEFLATED : TN_ZIP_STORED;
        break;
    case 2:
        memcpy(z->at[i].bytes, z->at[k].bytes, z->at[i].size = z->at[k].size);
        break;
    case 3:
        memcpy(name, z->at[i].name, sizeof name);
        memcpy(z->at[i].name, z->at[k].name, sizeof name);
        memcpy(z->at[k].name, name, sizeof name);
        break;
    case 4:
        if (z->count > 1) {
            free(z->at[i].bytes);
            z->at[i] = z->at[--z->count];
        }
        break;
    default:
        z->at[i].size = change(&member);
    }
}

static inline size_t mutate_zip(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                                change_member change)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    zip_parts z = { 0 };
    archive a = { .wide = mutant_pick(&m, 8) == 0 };
    if (mutant_pick(&m, 5) == 0 || !zip_read(&z, data, size)) {
        zip_free(&z);
        return LLVMFuzzerMutate(data, size, max_size);
    }
    zip_change(&z, &m, change);
    for (size_t i = 0; i < z.count; i++)
        add_member(&a, z.at[i].name, a.wide ? TN_ZIP_STORED : z.at[i].method, z.at[i].bytes, z.at[i].size);
    end_archive(&a);
    zip_free(&z);
    size_t n = a.bytes.size <= max_size ? a.bytes.size : 0;
    if (n)
        memcpy(data, a.bytes.data, n);
    tn_buf_free(&a.bytes);
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}

static inline size_t mutate_npz(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_zip(data, size, max_size, seed, mutate_npy_bytes);
}

#endif
