/* kernels/lookup/vbmi.c - codes as other tools lay them, with AVX-512 VBMI. */
#include <immintrin.h>

#include "kernels/lookup/table.h"

enum { AT_ONCE = 128 };         /* words: a cache line of each row */

/* 16 words of eight codes: the bytes of two neighbours in each row, a row's together. */
INLINE __m512i pairs_of(const uint32_t *words)
{
    /* of each quadword: the codes of the first word in low halves, those of the second in high halves */
    const __m512i low = _mm512_set1_epi64(0x1c1814100c080400), high = _mm512_set1_epi64(0x3834302c2824201c);
    const __m512i by_row = _mm512_set_epi64(
        0x3f372f271f170f07, 0x3e362e261e160e06, 0x3d352d251d150d05, 0x3c342c241c140c04,
        0x3b332b231b130b03, 0x3a322a221a120a02, 0x3931292119110901, 0x3830282018100800);
    const __m512i v = _mm512_loadu_si512(words), halves = _mm512_set1_epi8(15);
    const __m512i a = _mm512_multishift_epi64_epi8(low, v), b = _mm512_multishift_epi64_epi8(high, v);
    const __m512i both = _mm512_ternarylogic_epi64(halves, a, b, 0xca);     /* halves ? a : b */
    return _mm512_permutexvar_epi8(by_row, both);
}

/* Quadwords of eight vectors: those in place r of all become vector r. */
INLINE void turn_eight(__m512i v[8])
{
    __m512i a[8], b[8];
    for (unsigned i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_epi64(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi64(v[i], v[i + 1]);
    }
    for (unsigned i = 0; i < 8; i += 4)
        for (unsigned k = 0; k < 2; k++) {
            b[i + k] = _mm512_shuffle_i64x2(a[i + k], a[i + 2 + k], 0x88);
            b[i + 2 + k] = _mm512_shuffle_i64x2(a[i + k], a[i + 2 + k], 0xdd);
        }
    for (unsigned k = 0; k < 2; k++) {
        v[k] = _mm512_shuffle_i64x2(b[k], b[4 + k], 0x88);
        v[4 + k] = _mm512_shuffle_i64x2(b[k], b[4 + k], 0xdd);
        v[2 + k] = _mm512_shuffle_i64x2(b[2 + k], b[6 + k], 0x88);
        v[6 + k] = _mm512_shuffle_i64x2(b[2 + k], b[6 + k], 0xdd);
    }
}

static void eights_vbmi(uint8_t *const out[8], const uint32_t *restrict words, size_t n)
{
    size_t i = 0;
    for (; n - i >= AT_ONCE; i += AT_ONCE) {
        __m512i v[8];
        for (unsigned k = 0; k < 8; k++)
            v[k] = pairs_of(words + i + 16 * k);
        turn_eight(v);
        for (unsigned r = 0; r < 8; r++)
            _mm512_storeu_si512(out[r] + i / 2, v[r]);
    }
    tn_lookup_eights_from(out, words, i, n);
}

void tn_lookup_kernels_init_vbmi(tn_lookup_kernels *k)
{
    k->eights = eights_vbmi;
}
