/* kernels/scaled_decode/halves_x86.h - floats of 8 bits or fewer by way of float16, 16 at a time.
 *
 * Their bits, moved to where float16 has them, are a number that is too small by a power of two; the
 * processor converts subnormal ones as well.  The level has defined vf and LANES. */
enum { HALVES = 16, HALF_BIAS = 15, HALF_EXPONENT = 5 };

typedef struct half_rules {
    __m256i magnitude, sign, below_top;         /* of codes in 16 bits */
    __m128i shift, sign_shift;
    bool    has_top;            /* codes above below_top are infinite or NaN */
    float   base;
} half_rules;

/* Bits of the exponent. */
static inline unsigned exponent_bits(const tn_decode_number *c)
{
    return 31 - c->up - (23 - c->shift);
}

/* Whether float16 has all mantissas and exponents of a number of at most 8 bits, and infinities and NaN where
 * it has them. */
static inline bool has_halves(const tn_decode_number *c)
{
    unsigned exponent = exponent_bits(c);
    bool topped = c->kind == TN_DECODE_TOPPED, like_half = topped && c->top == c->sign - c->one;
    return c->ones <= 255 && c->sign && c->rebias >> 23 <= 254 - HALF_BIAS &&
           (exponent < HALF_EXPONENT || (exponent == HALF_EXPONENT && like_half));
}

static inline half_rules half_rules_of(const tn_decode_number *c)
{
    const uint32_t base = c->rebias + (HALF_BIAS << 23);
    half_rules h = {
        .magnitude = _mm256_set1_epi16((short)(c->sign - 1)), .sign = _mm256_set1_epi16((short)c->sign),
        .below_top = _mm256_set1_epi16((short)(c->top - 1)), .shift = _mm_cvtsi32_si128((int)c->shift - 13),
        .sign_shift = _mm_cvtsi32_si128((int)c->up - 16), .has_top = c->kind == TN_DECODE_TOPPED,
    };
    memcpy(&h.base, &base, sizeof base);
    return h;
}

/* 16 codes as float16. */
static inline __m256i halves_of(const uint8_t *codes, const half_rules *h)
{
    __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)codes));
    __m256i magnitude = _mm256_and_si256(w, h->magnitude);
    __m256i half = _mm256_or_si256(_mm256_sll_epi16(magnitude, h->shift),
                                   _mm256_sll_epi16(_mm256_and_si256(w, h->sign), h->sign_shift));
    __m256i above = _mm256_cmpgt_epi16(magnitude, h->below_top);
    return h->has_top ? _mm256_or_si256(half, _mm256_and_si256(above, _mm256_set1_epi16(0x7c00))) : half;
}
