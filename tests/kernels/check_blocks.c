/* check_blocks.c - encoders and decoders of block types of every level this CPU has, against the scalar ones.
 *
 * Values of many kinds, with and without importance; 0 to 40 blocks and more, so that all vectors are whole,
 * in part or repeated; blocks at odd addresses, inaccessible pages right before and after.
 *
 *     check_blocks [LEVEL [BLOCKS]]      only that level, or "any"; so many super-blocks of each type, kind of
 *                                        values and of weights (types with grids: a quarter)
 */
#include "check.h"

#include <math.h>

#include "kernels/blocks/neighbours.h"

enum { MOST = 64, SUPERS = 48 };        /* blocks of a call, super-blocks of each kind */

/* ---- values ---- */

static float any_normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform();
    return (float)sum;
}

static float power(int low, int high) { return ldexpf(1, low + (int)below((uint64_t)(high - low))); }

static float normal(size_t i) { (void)i; return any_normal(); }
static float outliers(size_t i) { return any_normal() * (i % 97 ? 0.02f : 5); }
static float ties(size_t i) { (void)i; return (float)((int)below(65) - 32) * 0.25f; }
static float zeros(size_t i)
{
    float zero = below(2) ? 0.0f : -0.0f;
    return i / 32 % 3 == 0 || below(3) ? zero : any_normal();
}
static float tiny(size_t i) { return any_normal() * ldexpf(1, -(int)(i / 64 % 40) - 100); }
static float subnormal(size_t i) { (void)i; return any_normal() * 0x1p-140f; }
static float large(size_t i) { (void)i; return any_normal() * 0x1p100f; }
static float wide(size_t i) { (void)i; return any_normal() * power(-60, 60); }
static float constant(size_t i) { return (float)(i / 128 % 7) - 3; }
static float single(size_t i) { return i % 61 == 17 ? any_normal() : 0; }
static float positive(size_t i) { (void)i; return fabsf(any_normal()); }
static float small_steps(size_t i) { return 1 + (float)(i % 3) * 0x1p-23f; }
static float any_bits(size_t i)
{
    uint32_t bits = (uint32_t)bits64() & 0xffbfffffu;
    float x;
    memcpy(&x, &bits, sizeof x);
    return isfinite(x) ? x : (float)i;
}

static const struct kind {
    const char *name;
    float (*value)(size_t i);
} kinds[] = {
    { "normal", normal }, { "outliers", outliers }, { "ties", ties }, { "zeros", zeros }, { "tiny", tiny },
    { "subnormal", subnormal }, { "large", large }, { "wide range", wide }, { "constant", constant },
    { "one nonzero", single }, { "positive", positive }, { "small steps", small_steps },
    { "any bits", any_bits },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef enum weights { NONE, SOME, SPARSE, TINY, WEIGHTS } weights;

static float weight(weights w)
{
    float q = (float)uniform() * power(-4, 5);
    if (w == SPARSE)
        return below(4) ? q : 0;
    return w == TINY ? q * 0x1p-120f : q;
}

/* ---- one call ---- */

static tn_block_kernels scalar;

/* Whether both make the same of n blocks of values, which end at a page that must not be read. */
static bool is_encoded_alike(const tn_block_kernels *k, const tn_block_info *t, const float *x,
                             const float *q, size_t n)
{
    static uint8_t *room, *values, *importance;
    static uint8_t expected[MOST * TN_BLOCK_BYTES];
    size_t bytes = n * t->bytes, size = n * t->values * sizeof *x;
    if (!room) {
        room = guarded(MOST * TN_BLOCK_BYTES);
        values = guarded(MOST * TN_BLOCK_VALUES * sizeof *x);
        importance = guarded(MOST * TN_BLOCK_VALUES * sizeof *x);
    }
    uint8_t *made = room + MOST * TN_BLOCK_BYTES - bytes;
    float *own = (float *)(void *)(values + MOST * TN_BLOCK_VALUES * sizeof *x - size);
    float *own_q = (float *)(void *)(importance + MOST * TN_BLOCK_VALUES * sizeof *x - size);
    memset(room, CANARY, MOST * TN_BLOCK_BYTES);
    memcpy(own, x, size);
    if (q)
        memcpy(own_q, q, size);
    float mean = q ? x[0] * x[0] : 0;
    scalar.encode[t->block](x, q, mean, n, expected);
    k->encode[t->block](own, q ? own_q : NULL, mean, n, made);
    bool before = made == room || made[-1] == CANARY;
    return before && memcmp(made, expected, bytes) == 0;
}

static bool is_decoded_alike(const tn_block_kernels *k, const tn_block_info *t, const uint8_t *blocks,
                             size_t n)
{
    static uint8_t *room, *source;
    static float expected[MOST * TN_BLOCK_VALUES];
    size_t bytes = n * t->bytes, count = n * t->values;
    if (!room) {
        room = guarded(MOST * TN_BLOCK_VALUES * sizeof(float));
        source = guarded(MOST * TN_BLOCK_BYTES);
    }
    float *made = (float *)(void *)room + MOST * TN_BLOCK_VALUES - count;
    uint8_t *own = source + MOST * TN_BLOCK_BYTES - bytes;
    memset(room, CANARY, MOST * TN_BLOCK_VALUES * sizeof(float));
    memcpy(own, blocks, bytes);
    scalar.decode[t->block](blocks, n, expected);
    bool good = true;
    for (unsigned stream = 0; stream < 2; stream++) {
        (stream ? k->stream : k->decode)[t->block](own, n, made);
        good &= (uint8_t *)made == room || ((uint8_t *)made)[-1] == CANARY;
        for (size_t i = 0; i < count; i++)
            good &= (isnan(made[i]) && isnan(expected[i])) ||
                    memcmp(&made[i], &expected[i], sizeof *made) == 0;
        memset(made, CANARY, count * sizeof *made);
    }
    return good;
}

/* ---- a type ---- */

static bool needs_weights(tn_block block)
{
    return block == TN_BLOCK_IQ2_XXS || block == TN_BLOCK_IQ2_XS || block == TN_BLOCK_IQ1_S;
}

/* Numbers of blocks: each up to 20, then larger ones. */
static size_t some_blocks(size_t call) { return call <= 20 ? call : 1 + (size_t)below(MOST); }

static bool check_values(const tn_block_kernels *k, const tn_block_info *t, const struct kind *kind,
                         weights w, size_t total)
{
    static float x[MOST * TN_BLOCK_VALUES], q[MOST * TN_BLOCK_VALUES];
    bool good = true;
    for (size_t done = 0, call = 0; good && done < total; call++) {
        size_t n = some_blocks(call);
        for (size_t i = 0; i < n * t->values; i++) {
            x[i] = kind->value(i);
            q[i] = weight(w);
        }
        good = is_encoded_alike(k, t, x, w ? q : NULL, n);
        done += n;
    }
    return good;
}

/* All kinds of values and weights. */
static bool check_encoder(const tn_block_kernels *k, const tn_block_info *t, size_t total)
{
    bool good = true;
    for (size_t i = 0; i < KINDS; i++)
        for (unsigned w = needs_weights(t->block); w < WEIGHTS; w++)
            if (!check_values(k, t, &kinds[i], (weights)w, total)) {
                printf("%s differs: values %s, weights %u\n", t->name, kinds[i].name, w);
                good = false;
            }
    return good;
}

/* Any bits, and scales that are numbers. */
static bool check_decoder(const tn_block_kernels *k, const tn_block_info *t, size_t total)
{
    static uint8_t blocks[MOST * TN_BLOCK_BYTES];
    bool good = true;
    for (size_t done = 0, call = 0; good && done < total; call++) {
        size_t n = some_blocks(call);
        for (size_t i = 0; i < n * t->bytes; i++)
            blocks[i] = (uint8_t)bits64();
        for (size_t i = 0; i < n && call % 2; i++)
            for (unsigned s = 0; s < t->scales; s++)
                blocks[i * t->bytes + t->fields[0].at + 2 * s + 1] &= 0xbf;
        good = is_decoded_alike(k, t, blocks, n);
        done += n;
    }
    return good;
}

static size_t wanted = SUPERS;  /* super-blocks of each type and kind of values */

/* Types whose definition takes long. */
static bool is_slow(tn_block b)
{
    return b >= TN_BLOCK_IQ2_XXS && b <= TN_BLOCK_IQ1_M && b != TN_BLOCK_IQ4_NL && b != TN_BLOCK_IQ4_XS;
}

static void check_level(unsigned cpu)
{
    tn_block_kernels k;
    char name[80];
    if (!cpu)                   /* the definition itself */
        return;
    tn_block_kernels_init(&scalar, 0);
    tn_block_kernels_init(&k, cpu);
    for (int b = 0; b < TN_BLOCK_COUNT; b++) {
        const tn_block_info *t = tn_block_get((tn_block)b);
        size_t total = wanted * (TN_BLOCK_VALUES / t->values);
        if (!tn_block_prepare((tn_block)b))
            exit(3);
        snprintf(name, sizeof name, "%s to values", t->name);
        report(tn_cpu_name(cpu), name, check_decoder(&k, t, total * 4));
        snprintf(name, sizeof name, "values to %s", t->name);
        report(tn_cpu_name(cpu), name, check_encoder(&k, t, is_slow(t->block) ? total / 4 : total));
    }
}

int main(int argc, char **argv)
{
    if (argc > 2)
        wanted = strtoull(argv[2], NULL, 10);
    return check_levels(argc, argv, check_level);
}
