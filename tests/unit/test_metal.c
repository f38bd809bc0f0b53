/* metal_shared: what it says here, and what it does with IOSurfaces, compiled
 * against a stand-in for Apple's frameworks that knows them in one process. */
#include "support.h"

#include <stdbool.h>

#include "share/provider.h"

static const tn_provider *const metal_here = &tn_provider_metal;

#define __APPLE__ 1
#define tn_provider_metal metal_of_apple
extern const tn_provider metal_of_apple;
#include "share/metal.c"

/* ---- the frameworks ---- */

typedef struct object {         /* of every kind */
    int      references;
    int64_t  number;
    const struct object *keys[8], *values[8];           /* of a dictionary, or of what made a surface */
    size_t   n;
    uint32_t id;
    uint8_t *bytes;
    int      locked;            /* 1: for reading, 2: for writing */
} object;

static object names[6], truth;
static object *surfaces[10];
static int objects, calls, failing;

const CFAllocatorRef kCFAllocatorDefault = NULL;
const CFBooleanRef kCFBooleanTrue = (const void *)&truth;
const CFDictionaryKeyCallBacks kCFTypeDictionaryKeyCallBacks;
const CFDictionaryValueCallBacks kCFTypeDictionaryValueCallBacks;
const CFStringRef kIOSurfaceAllocSize = (const void *)&names[0], kIOSurfaceWidth = (const void *)&names[1],
                  kIOSurfaceHeight = (const void *)&names[2],
                  kIOSurfaceBytesPerElement = (const void *)&names[3],
                  kIOSurfaceBytesPerRow = (const void *)&names[4],
                  kIOSurfaceIsGlobal = (const void *)&names[5];

static object *new_object(void)
{
    if (++calls == failing)
        return NULL;
    object *o = calloc(1, sizeof *o);
    CHECK(o != NULL);
    o->references = 1;
    objects++;
    return o;
}

CFNumberRef CFNumberCreate(CFAllocatorRef allocator, CFNumberType type, const void *value)
{
    CHECK(allocator == NULL && type == kCFNumberSInt64Type);
    object *o = new_object();
    if (o)
        memcpy(&o->number, value, sizeof o->number);
    return (CFNumberRef)(void *)o;
}

CFMutableDictionaryRef CFDictionaryCreateMutable(CFAllocatorRef allocator, CFIndex capacity,
                                                 const CFDictionaryKeyCallBacks *keys,
                                                 const CFDictionaryValueCallBacks *values)
{
    CHECK(allocator == NULL && capacity == 0 && keys == &kCFTypeDictionaryKeyCallBacks &&
          values == &kCFTypeDictionaryValueCallBacks);
    return (void *)new_object();
}

void CFDictionarySetValue(CFMutableDictionaryRef dictionary, const void *key, const void *value)
{
    object *d = (void *)dictionary, *v = (void *)(uintptr_t)value;
    CHECK(d->n < 8);
    d->keys[d->n] = key;
    d->values[d->n++] = v;
    v->references++;
}

void CFRelease(CFTypeRef reference)
{
    object *o = (void *)(uintptr_t)reference;
    CHECK(o->references > 0);
    if (--o->references > 0 || o == &truth)
        return;
    for (size_t i = 0; i < o->n; i++)
        CFRelease(o->values[i]);
    if (o->id)
        surfaces[o->id - 40] = NULL;
    free(o->bytes);
    free(o);
    objects--;
}

static int64_t property(const object *d, CFStringRef key)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->keys[i] == (const void *)key)
            return d->values[i] == &truth ? 1 : d->values[i]->number;
    return -1;
}

IOSurfaceRef IOSurfaceCreate(CFDictionaryRef properties)
{
    const object *d = (const void *)properties;
    int64_t bytes = property(d, kIOSurfaceAllocSize);
    CHECK(property(d, kIOSurfaceIsGlobal) == 1 && property(d, kIOSurfaceWidth) == bytes &&
          property(d, kIOSurfaceHeight) == 1);
    CHECK(property(d, kIOSurfaceBytesPerElement) == 1 && property(d, kIOSurfaceBytesPerRow) == bytes &&
          bytes > 0);
    object *o = new_object();
    if (!o)
        return NULL;
    uint32_t i = 0;
    while (surfaces[i])
        i++;
    surfaces[i] = o;
    o->id = 40 + i;
    o->number = (bytes + 4095) / 4096 * 4096;
    o->bytes = aligned_alloc(4096, (size_t)o->number);
    memset(o->bytes, 0xcd, (size_t)o->number);
    return (void *)o;
}

IOSurfaceRef IOSurfaceLookup(IOSurfaceID id)
{
    object *o = id >= 40 && id < 50 ? surfaces[id - 40] : NULL;
    if (o)
        o->references++;
    return (void *)o;
}

IOSurfaceID IOSurfaceGetID(IOSurfaceRef s)          { return ((object *)(void *)s)->id; }
void       *IOSurfaceGetBaseAddress(IOSurfaceRef s) { return ((object *)(void *)s)->bytes; }
size_t      IOSurfaceGetAllocSize(IOSurfaceRef s)   { return (size_t)((object *)(void *)s)->number; }

int IOSurfaceLock(IOSurfaceRef s, IOSurfaceLockOptions options, uint32_t *seed)
{
    object *o = (void *)s;
    CHECK(options <= 1 && seed == NULL && !o->locked);
    if (++calls == failing)
        return 5;
    o->locked = options ? 1 : 2;
    return 0;
}

int IOSurfaceUnlock(IOSurfaceRef s, IOSurfaceLockOptions options, uint32_t *seed)
{
    object *o = (void *)s;
    CHECK(options <= 1 && seed == NULL && o->locked == (options ? 1 : 2));
    o->locked = 0;
    return 0;
}

/* ---- the provider ---- */

enum { BYTES = 10000 };

static tn_status make(tn_buffer *b, unsigned flags, uint64_t alignment, tn_error *err)
{
    tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_METAL, .flags = flags,
                                  .alignment = alignment };
    memset(b, 0, sizeof *b);
    b->size = BYTES;
    b->fd = -1;
    return metal_of_apple.allocate(b, &options, err);
}

static tn_status take_over(tn_buffer *b, const tn_exported *e, tn_error *err)
{
    memset(b, 0, sizeof *b);
    b->size = e->bytes;
    b->offset = e->offset;
    b->fd = -1;
    return metal_of_apple.import(b, e, false, err);
}

static void here_it_is_not_available(void)
{
    const char *why;
    tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_METAL };
    tn_exported e = { .type = TN_HANDLE_METAL, .bytes = 4, .fd = -1 };
    tn_buffer *b;
    tn_error err;
    CHECK(!metal_here->query(&why) && strcmp(why, "not an Apple system") == 0);
    CHECK(tn_buffer_new(BYTES, &options, &b, &err) == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "not an Apple system"));
    CHECK(tn_buffer_import(&e, false, &b, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "metal_shared"));
    CHECK(metal_of_apple.query(&why) && strstr(why, "read-only"));
}

static void a_surface_is_memory_of_the_cpu_that_is_found_by_its_number(void)
{
    tn_buffer mine, theirs;
    tn_exported e = { .type = TN_HANDLE_METAL, .bytes = BYTES - 100, .offset = 100, .fd = -1 };
    CHECK(make(&mine, 0, 256, NULL) == TN_OK && mine.flags == TN_MEM_SHARED && mine.handle == 40);
    for (size_t i = 0; i < BYTES; i++)
        CHECK(mine.data[i] == 0);
    strcpy((char *)mine.data + 100, "text");
    CHECK(metal_of_apple.export(&mine, false, &e, NULL) == TN_OK);
    CHECK(take_over(&theirs, &e, NULL) == TN_OK && strcmp((char *)theirs.data, "text") == 0);
    metal_of_apple.free(&mine);
    CHECK(strcmp((char *)theirs.data, "text") == 0 && objects == 1);
    metal_of_apple.free(&theirs);
    CHECK(objects == 0);
    CHECK(take_over(&theirs, &e, NULL) == TN_ERR_CORRUPT);      /* there is no 40 any more */
}

static void access_locks_the_surface(void)
{
    tn_buffer b;
    tn_error err;
    CHECK(make(&b, 0, 64, NULL) == TN_OK);
    for (int write = 0; write < 2; write++) {
        CHECK(metal_of_apple.sync(&b, true, write, NULL) == TN_OK && ((object *)b.own)->locked == 1 + write);
        CHECK(metal_of_apple.sync(&b, false, write, NULL) == TN_OK && ((object *)b.own)->locked == 0);
    }
    calls = 0;
    failing = 1;
    CHECK(metal_of_apple.sync(&b, true, true, &err) == TN_ERR_IO &&
          strstr(line_of(&err), "cannot lock an IOSurface: result 5"));
    failing = 0;
    metal_of_apple.free(&b);
}

static void what_cannot_be_had_is_refused(void)
{
    tn_buffer b, other;
    tn_error err;
    CHECK(make(&b, TN_MEM_PINNED, 64, &err) == TN_ERR_UNSUPPORTED && objects == 0);
    CHECK(make(&b, 0, 64, NULL) == TN_OK);
    tn_exported e = { .type = TN_HANDLE_METAL, .bytes = BYTES, .fd = -1 };
    CHECK(metal_of_apple.export(&b, true, &e, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "read-only"));
    CHECK(metal_of_apple.export(&b, false, &e, NULL) == TN_OK);
    static const uint64_t lies[][2] = { { 0, 12289 }, { 12288, 1 }, { 1, 12288 }, { UINT64_MAX, 1 },
                                        { 0, UINT64_MAX } };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        e.offset = lies[i][0];
        e.bytes = lies[i][1];
        CHECK(take_over(&other, &e, &err) == TN_ERR_CORRUPT);
    }
    e.offset = 0;
    e.bytes = 4;
    e.fd = 0;
    CHECK(take_over(&other, &e, &err) == TN_ERR_CORRUPT && strstr(line_of(&err), "descriptor"));
    e.fd = -1;
    e.read_only = true;
    CHECK(take_over(&other, &e, NULL) == TN_OK && other.flags == (TN_MEM_SHARED | TN_MEM_READ_ONLY));
    metal_of_apple.free(&other);
    metal_of_apple.free(&b);
    CHECK(objects == 0);
}

static void whatever_fails_nothing_is_left_behind(void)
{
    for (failing = 1; failing <= 7; failing++) {        /* a dictionary, five numbers, a surface */
        tn_buffer b;
        calls = 0;
        CHECK(make(&b, 0, 64, NULL) == TN_ERR_NOMEM && objects == 0);
    }
    failing = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(here_it_is_not_available),
        TEST(a_surface_is_memory_of_the_cpu_that_is_found_by_its_number),
        TEST(access_locks_the_surface),
        TEST(what_cannot_be_had_is_refused),
        TEST(whatever_fails_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
