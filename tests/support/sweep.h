/* tests/support/sweep.h - float32 patterns through the fast paths and through
 * the definition, side by side. */
#ifndef TN_TESTS_SWEEP_H
#define TN_TESTS_SWEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cpu.h"
#include "tensor/array.h"
#include "cast/cast.h"

/* Everything that float32 is narrowed to and that can be swept in minutes. */
static const tn_dtype sweep_types[] = {
    TN_FLOAT16,         TN_BFLOAT16,    TN_FLOAT8_E4M3FN, TN_FLOAT8_E5M2, TN_FLOAT8_E4M3FNUZ,
    TN_FLOAT8_E5M2FNUZ, TN_FLOAT8_E4M3, TN_FLOAT8_E3M4,   TN_FLOAT8_E8M0, TN_INT8,
    TN_UINT8,           TN_FLOAT6_E2M3, TN_FLOAT6_E3M2,   TN_FLOAT4_E2M1, TN_INT4,
};
enum { SWEEP_TYPES = sizeof sweep_types / sizeof sweep_types[0], SWEEP_LEVELS = 4, SWEEP_BLOCK = 4096 };

/* One destination, at every level that this machine has. */
typedef struct sweep {
    const tn_dtype_info *type;
    tn_encode_rules rules;
    unsigned        levels;
    const char     *names[SWEEP_LEVELS];
    tn_cast_plan    plans[SWEEP_LEVELS];
} sweep;

static inline bool sweep_begin(sweep *s, tn_dtype to, const tn_cast_options *options)
{
    static const unsigned masks[SWEEP_LEVELS] = { 0, TN_CPU_AVX2, TN_CPU_AVX2 | TN_CPU_AVX512, TN_CPU_NEON };
    unsigned here = tn_cpu_detect();
    s->type = tn_dtype_get(to);
    s->rules = tn_encode_rules_for(s->type, options);
    s->levels = 0;
    for (int i = 0; i < SWEEP_LEVELS; i++) {
        if ((masks[i] & here) != masks[i])
            continue;
        tn_cast_kernels kernels;
        tn_cast_kernels_init(&kernels, masks[i]);
        s->names[s->levels] = tn_cpu_name(masks[i]);
        tn_cast_types types = { .to = to, .from = TN_FLOAT32, .order = TN_HOST_ORDER };
        if (tn_cast_plan_with(&s->plans[s->levels++], &kernels, types, options, NULL) != TN_OK)
            return false;
    }
    return true;
}

typedef struct sweep_difference {
    const char *level;
    uint32_t    pattern;
    uint64_t    found, expected;
} sweep_difference;

/* At most SWEEP_BLOCK patterns, a multiple of 8; false with the first difference. */
static inline bool sweep_block(const sweep *s, const uint32_t *patterns, size_t n,
                               sweep_difference *difference)
{
    uint8_t expected[SWEEP_BLOCK * 2], out[SWEEP_BLOCK * 2];
    const int64_t shape[] = { (int64_t)n };
    const tn_dtype_info *f32 = tn_dtype_get(TN_FLOAT32);
    unsigned bits = s->type->bits;
    uint64_t codes[SWEEP_BLOCK];
    for (size_t i = 0; i < n; i++)
        codes[i] = patterns[i];
    tn_codes_cast(s->type, &s->rules, f32, codes, n, 0);
    for (size_t i = 0; i < n; i++)
        tn_code_put(expected, i, bits, codes[i]);
    for (unsigned level = 0; level < s->levels; level++) {
        *difference = (sweep_difference){ .level = s->names[level], .pattern = patterns[0] };
        if (tn_cast_block(&s->plans[level], out, patterns, n, 0, 1, shape, NULL) != TN_OK)
            return false;
        if (memcmp(out, expected, n / 8 * bits) == 0)
            continue;
        for (size_t i = n; i-- > 0;)
            if (tn_code_get(out, i, bits) != tn_code_get(expected, i, bits))
                *difference = (sweep_difference){ s->names[level], patterns[i], tn_code_get(out, i, bits),
                                                  tn_code_get(expected, i, bits) };
        return false;
    }
    return true;
}

#endif
