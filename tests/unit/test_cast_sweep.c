#include <math.h>

#include "support.h"
#include "sweep.h"

/* scripts/exhaustive does the same with all 2^32 patterns. */

static uint32_t patterns[SWEEP_BLOCK];
static size_t   held;

static void flush(const sweep *s)
{
    sweep_difference d;
    while (held % 8)
        patterns[held++] = 0;
    if (held && !sweep_block(s, patterns, held, &d))
        fail_msg("float32 %#010x to %s: %s gives %#llx, the definition %#llx", d.pattern, s->type->name,
                 d.level, (unsigned long long)d.found, (unsigned long long)d.expected);
    held = 0;
}

static void try_pattern(const sweep *s, uint32_t pattern)
{
    patterns[held++] = pattern;
    if (held == SWEEP_BLOCK)
        flush(s);
}

static void try_around(const sweep *s, double x)
{
    float f = (float)x;
    uint32_t pattern;
    memcpy(&pattern, &f, sizeof pattern);
    for (uint32_t beside = 0; beside < 5; beside++) {
        try_pattern(s, pattern + beside - 2);
        try_pattern(s, (pattern + beside - 2) ^ 0x80000000);
    }
}

/* Every value of the type and every point half-way to the next. */
static void try_boundaries(const sweep *s)
{
    double last = 0;
    for (uint64_t code = 0; code <= tn_dtype_limit(s->type, false); code++) {
        tn_number x = tn_number_decode(s->type, code);
        double value = ldexp((double)x.significand, x.exponent);
        try_around(s, value);
        try_around(s, value / 2 + last / 2);
        try_around(s, value + (value - last) / 2);
        last = value;
    }
}

static void sampled_float32_patterns_are_cast_as_the_definition_says(void)
{
    for (int t = 0; t < SWEEP_TYPES; t++)
        for (int mode = 0; mode < 2; mode++) {
            const tn_dtype_info *type = tn_dtype_get(sweep_types[t]);
            bool lacks_nan = !tn_dtype_has_nan(type);
            const tn_cast_options options = {
                .size = sizeof options,
                .nan = lacks_nan ? TN_NAN_ZERO : TN_NAN_KEEP,
                .overflow = mode == 0   ? TN_OVERFLOW_DEFAULT
                            : lacks_nan ? TN_OVERFLOW_SATURATE
                                        : TN_OVERFLOW_NAN,
            };
            sweep *s = malloc(sizeof *s);
            assert_non_null(s);
            CHECK(sweep_begin(s, sweep_types[t], &options));
            const uint32_t step = 4099 * (mode == 0 ? 1 : 7);
            for (uint64_t pattern = 0; pattern <= UINT32_MAX; pattern += step)
                try_pattern(s, (uint32_t)pattern);
            try_boundaries(s);
            flush(s);
            free(s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sampled_float32_patterns_are_cast_as_the_definition_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
