/* What src/share/metal.c uses of IOSurface, declared as Apple documents it. */
#ifndef TN_TESTS_IOSURFACE_H
#define TN_TESTS_IOSURFACE_H

#include <CoreFoundation/CoreFoundation.h>

#include <stddef.h>
#include <stdint.h>

typedef struct __IOSurface *IOSurfaceRef;
typedef uint32_t IOSurfaceID;
typedef uint32_t IOSurfaceLockOptions;
enum { kIOSurfaceLockReadOnly = 1 };

extern const CFStringRef kIOSurfaceAllocSize, kIOSurfaceWidth, kIOSurfaceHeight, kIOSurfaceBytesPerElement,
    kIOSurfaceBytesPerRow, kIOSurfaceIsGlobal;

IOSurfaceRef IOSurfaceCreate(CFDictionaryRef properties);
IOSurfaceRef IOSurfaceLookup(IOSurfaceID id);
IOSurfaceID  IOSurfaceGetID(IOSurfaceRef surface);
void        *IOSurfaceGetBaseAddress(IOSurfaceRef surface);
size_t       IOSurfaceGetAllocSize(IOSurfaceRef surface);
int          IOSurfaceLock(IOSurfaceRef surface, IOSurfaceLockOptions options, uint32_t *seed);
int          IOSurfaceUnlock(IOSurfaceRef surface, IOSurfaceLockOptions options, uint32_t *seed);

#endif
