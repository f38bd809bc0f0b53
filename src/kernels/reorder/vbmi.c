/* kernels/reorder/vbmi.c - interleaving with AVX-512 VBMI. */
#include <immintrin.h>

#include "kernels/reorder/table.h"

enum { WIDTH = 64 };
typedef __m512i bytes;

static inline bytes load_bytes(const void *p)
{
    return _mm512_loadu_si512(p);
}

static inline void put_bytes(void *p, bytes v, bool stream)
{
    if (stream)
        _mm512_stream_si512(p, v);
    else
        _mm512_storeu_si512(p, v);
}

static inline bytes pick(bytes from, bytes v)
{
    return _mm512_maskz_permutexvar_epi8(_knot_mask64(_mm512_movepi8_mask(from)), from, v);
}

#include "kernels/reorder/interleave.h"

void tn_reorder_kernels_init_vbmi(tn_reorder_kernels *k)
{
    add_interleave(k);
}
