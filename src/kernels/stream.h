/* kernels/stream.h - copies cache lines past the caches.
 *
 * For data that goes to many places at once and is read much later: a line
 * written whole need not be read first, and does not drive out others. */
#ifndef TN_KERNELS_STREAM_H
#define TN_KERNELS_STREAM_H

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { TN_LINE = 64 };          /* bytes of a cache line */

/* Copies TN_LINE bytes.  Both are aligned to 16; lines of dst are best. */
static inline void tn_stream_line(void *dst, const void *src)
{
#ifdef __SSE2__
    for (int i = 0; i < TN_LINE / 16; i++)
        _mm_stream_si128((__m128i *)dst + i, _mm_load_si128((const __m128i *)src + i));
#else
    memcpy(dst, src, TN_LINE);
#endif
}

/* Call after streaming, before another thread reads the data. */
static inline void tn_stream_fence(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

#endif
