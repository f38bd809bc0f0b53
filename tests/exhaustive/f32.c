/* tests/exhaustive/f32.c [TYPE...] - all 2^32 float32 patterns to each narrow
 * type: every fast path of this machine against the definition, and float16
 * against the conversion of the hardware (F16C). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/pool.h"
#include "sweep.h"

enum { ITEMS = 4096, PER_ITEM = 1 << 20 };

typedef struct state {
    sweep  sweep;
    struct timespec began;
} state;

#if defined(__x86_64__)
__attribute__((target("avx,f16c")))
static bool agrees_with_f16c(const sweep *s, const uint32_t *patterns, size_t n, sweep_difference *d)
{
    uint64_t codes[SWEEP_BLOCK];
    for (size_t i = 0; i < n; i++)
        codes[i] = patterns[i];
    tn_codes_cast(s->type, &s->rules, tn_dtype_get(TN_FLOAT32), codes, n, 0);
    for (size_t i = 0; i < n; i += 8) {
        uint16_t out[8];
        __m256 x = _mm256_castsi256_ps(_mm256_loadu_si256((const void *)(patterns + i)));
        _mm_storeu_si128((void *)out, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
        for (size_t k = 0; k < 8; k++)
            if (codes[i + k] != out[k]) {
                *d = (sweep_difference){ "F16C", patterns[i + k], out[k], codes[i + k] };
                return false;
            }
    }
    return true;
}
#else
static bool agrees_with_f16c(const sweep *s, const uint32_t *patterns, size_t n, sweep_difference *d)
{
    (void)s, (void)patterns, (void)n, (void)d;
    return true;
}
#endif

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const state *st = context;
    uint32_t patterns[SWEEP_BLOCK];
    (void)use;
    for (uint32_t at = 0; at < PER_ITEM; at += SWEEP_BLOCK) {
        sweep_difference d;
        for (uint32_t i = 0; i < SWEEP_BLOCK; i++)
            patterns[i] = (uint32_t)item * PER_ITEM + at + i;
        if (!sweep_block(&st->sweep, patterns, SWEEP_BLOCK, &d) ||
            (st->sweep.type->dtype == TN_FLOAT16 && tn_cpu_detect() & TN_CPU_AVX2 &&
             !agrees_with_f16c(&st->sweep, patterns, SWEEP_BLOCK, &d)))
            return tn_fail(err, TN_ERR_CORRUPT, "%#010x: %s gives %#llx, the definition %#llx", d.pattern,
                           d.level, (unsigned long long)d.found, (unsigned long long)d.expected);
    }
    return TN_OK;
}

static double seconds_since(const struct timespec *began)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) * 1e-9;
}

static tn_status emit(void *context, uint64_t item, unsigned result, tn_error *err)
{
    const state *st = context;
    (void)result, (void)err;
    if (item % 64 == 63) {
        fprintf(stderr, "\r%-16s %3d %%  %.0f s ", st->sweep.type->name, (int)((item + 1) * 100 / ITEMS),
                seconds_since(&st->began));
        fflush(stderr);
    }
    return TN_OK;
}

static bool run(tn_pool *pool, state *st, tn_dtype to)
{
    const tn_cast_options options = {
        .size = sizeof options, .nan = tn_dtype_has_nan(tn_dtype_get(to)) ? TN_NAN_KEEP : TN_NAN_ZERO,
    };
    const tn_ordered task = { .work = work, .emit = emit, .context = st };
    tn_error err = { 0 };
    clock_gettime(CLOCK_MONOTONIC, &st->began);
    bool good = sweep_begin(&st->sweep, to, &options) && tn_pool_run(pool, ITEMS, &task, &err) == TN_OK;
    fputs("\r", stderr);
    printf("%s  %s: ", good ? "ok  " : "FAIL", st->sweep.type->name);
    for (unsigned i = 0; i < st->sweep.levels; i++)
        printf("%s ", st->sweep.names[i]);
    printf("%s %.0f s%s%s\n", to == TN_FLOAT16 && tn_cpu_detect() & TN_CPU_AVX2 ? "F16C" : "",
           seconds_since(&st->began), good ? "" : ": ", err.text);
    fflush(stdout);
    return good;
}

int main(int argc, char **argv)
{
    tn_pool *pool;
    state *st = malloc(sizeof *st);
    if (!st || tn_pool_new(0, &pool, NULL) != TN_OK)
        return 3;
    int passed = 0, failed = 0;
    for (int i = 0; i < (argc > 1 ? argc - 1 : SWEEP_TYPES); i++) {
        tn_dtype to = argc > 1 ? tn_dtype_parse(argv[i + 1]) : sweep_types[i];
        const tn_dtype_info *type = tn_dtype_get(to);
        if (!type || type->bits > 16) {
            fprintf(stderr, "%s: expected a type of at most 16 bits\n", argv[i + 1]);
            return 2;
        }
        if (run(pool, st, to))
            passed++;
        else
            failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    tn_pool_free(pool);
    free(st);
    return failed ? 1 : 0;
}
