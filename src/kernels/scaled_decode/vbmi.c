/* kernels/scaled_decode/vbmi.c - unpacks codes with AVX-512 VBMI. */
#include <immintrin.h>

#include "kernels/scaled_decode/table.h"
#include "tensor/code.h"

/* Unpacks eight codes into the bytes of a quadword, from the `bits` bytes that hold them. */
typedef struct picker {
    __m512i bytes, places, ones;
} picker;

static picker picker_of(unsigned bits)
{
    uint8_t bytes[64], places[64];
    for (unsigned i = 0; i < 64; i++) {
        bytes[i] = (uint8_t)((i / 8 * bits + i % 8) % 64);
        places[i] = (uint8_t)(i % 8 * bits);
    }
    return (picker){ _mm512_loadu_si512(bytes), _mm512_loadu_si512(places),
                     _mm512_set1_epi8((char)((1u << bits) - 1)) };
}

static void unpack(uint8_t *restrict codes, const uint8_t *restrict packed, size_t n, unsigned bits)
{
    const picker p = picker_of(bits);
    for (size_t i = 0; i < n; i += 64) {
        size_t left_over = (size_t)tn_packed_bytes(n - i < 64 ? n - i : 64, bits);
        fetch_ahead(packed + i / 8 * bits);
        __m512i some = _mm512_maskz_loadu_epi8(~UINT64_C(0) >> (64 - left_over), packed + i / 8 * bits);
        some = _mm512_multishift_epi64_epi8(p.places, _mm512_permutexvar_epi8(p.bytes, some));
        _mm512_storeu_si512(codes + i, _mm512_and_si512(some, p.ones));
    }
}

void tn_decode_kernels_init_vbmi(tn_decode_kernels *k)
{
    k->unpack = unpack;
}
