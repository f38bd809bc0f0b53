/* check_round.c - rounding of float32 to narrower types in every mode, against the definition.
 *
 *     check_round [LEVEL|any]
 *
 * Plain C, also for emulated processors. */
#include "check.h"

#include "kernels/round/table.h"
#include "tensor/number.h"

enum { N = 1003, ROUNDS = 12 };

static const tn_dtype types[] = {
    TN_FLOAT16, TN_BFLOAT16, TN_TF32, TN_FLOAT8_E4M3FN, TN_FLOAT8_E5M2, TN_FLOAT8_E4M3FNUZ,
    TN_FLOAT8_E5M2FNUZ, TN_FLOAT6_E2M3, TN_FLOAT6_E3M2, TN_FLOAT4_E2M1, TN_INT8, TN_UINT8, TN_INT16, TN_INT32,
};

static tn_round_rules rules_of(const tn_dtype_info *to, tn_round mode, uint64_t seed)
{
    tn_round_rules r = { .round = mode, .seed = seed, .lowest = 127 + 23 };
    if (to->kind == TN_KIND_FLOAT) {
        r.shift = 23u - to->mantissa_bits;
        r.lowest = 128 - to->bias;
    }
    return r;
}

/* Numbers of all exponents, those near numbers of the type, ties, zeros and specials. */
static float make_value(const tn_dtype_info *to, unsigned kind)
{
    uint64_t r = bits64();
    uint32_t bits = (uint32_t)r, shift = to->kind == TN_KIND_FLOAT ? 23u - to->mantissa_bits : 10;
    float x;
    if (kind % 4 == 1)          /* of ordinary size */
        bits = (bits & 0x807fffff) | (uint32_t)(120 + r % 16) << 23;
    if (kind % 4 == 2)          /* what is dropped is nothing, half, or one off */
        bits = (bits >> shift << shift) + (uint32_t)(r >> 40 & 1) * (UINT32_C(1) << (shift - 1)) +
               (uint32_t)(r % 3) - 1;
    if (kind % 4 == 3 && r % 5 == 0)
        bits = (uint32_t)(r >> 32 & 1) << 31 | (r & 64 ? 0x7f800000 : 0) | (r & 128 && r & 64 ? 1 : 0);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool is_same(const tn_dtype_info *to, const tn_encode_rules *rules, float x, float y, uint64_t index)
{
    unsigned before = 0, after = 0;
    uint64_t expected = tn_number_encode(to, rules, tn_number_of_float(x), index, &before);
    return expected == tn_number_encode(to, rules, tn_number_of_float(y), index, &after) && before == after;
}

/* Whether the definition must round a number, see tn_round_fn. */
static bool may_be_refused(float x, const tn_round_rules *r)
{
    tn_number n = tn_number_of_float(x);
    return n.class == TN_NUMBER_FINITE && n.significand &&
           (n.exponent > 100 || (r->lowest == 1 && n.exponent < -127));
}

static bool check_values(const tn_round_kernels *k, const tn_dtype_info *to, tn_round mode, unsigned kind)
{
    static float x[N], y[N + 1];
    size_t n = bits64() % N;
    uint64_t index = bits64() >> 20;
    const tn_cast_options o = { .size = sizeof o, .round = mode, .seed = bits64() };
    const tn_encode_rules rules = tn_encode_rules_for(to, &o);
    const tn_round_rules r = rules_of(to, mode, o.seed);
    bool good = true, allowed = false;
    for (size_t i = 0; i < n; i++) {
        x[i] = make_value(to, kind);
        allowed |= may_be_refused(x[i], &r);
    }
    memset(y, CANARY, sizeof y);
    if (!k->round(y, x, n, index, &r))
        return allowed;
    for (size_t i = 0; i < n && good; i++)
        good = is_same(to, &rules, x[i], y[i], index + i);
    for (size_t i = 0; i < sizeof *y; i++)
        good &= ((const uint8_t *)(y + n))[i] == CANARY;
    return good;
}

static void check_level(unsigned cpu)
{
    tn_round_kernels k;
    tn_round_kernels_init(&k, cpu);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        bool good = true;
        for (tn_round mode = TN_ROUND_AWAY; mode <= TN_ROUND_STOCHASTIC; mode++)
            for (unsigned i = 0; i < ROUNDS; i++)
                good &= check_values(&k, tn_dtype_get(types[t]), mode, i);
        report(tn_cpu_name(cpu), tn_dtype_get(types[t])->name, good);
    }
}

int main(int argc, char **argv)
{
    return check_levels(argc, argv, check_level);
}
