/* check_kernels.c - every kernel of every level this CPU has, against the definition.
 *
 * Values: each code of the destination, the midpoints between neighbours and
 * their neighbours, powers of two, subnormals, infinities, NaN with payloads,
 * -0, and random bits; every code of a narrow source.  All lengths from 0 to
 * 130 and some around the size of a block, odd addresses, inaccessible pages
 * right before and after, every way to treat overflow and NaN.
 *
 *     check_kernels [LEVEL]       only that level
 */
#include "check.h"

#include "tensor/array.h"
#include "kernels/cast/table.h"

enum { MAX_VALUES = 1 << 17, ROOM = 1 << 14 };

static const tn_dtype_info *info(tn_dtype type)
{
    return tn_dtype_get(type);
}

/* --- checks ----------------------------------------------------- */

typedef enum way { ENCODES, EXACT, ODD } way;   /* by the rules; without them and without flags; to odd */

typedef struct cast {
    char       name[80];
    tn_cast_fn kernel;
    tn_dtype   to, from;
    way        way;
    tn_encode_rules own_rules;      /* of EXACT and ODD */
} cast;

static uint64_t expected(const cast *c, const tn_cast_args *args, uint64_t code, unsigned *flags)
{
    unsigned ignored = 0;
    if (c->way == ENCODES && c->from == TN_FLOAT32 && args->has_scale) {
        uint32_t bits = (uint32_t)code;
        float x;
        memcpy(&x, &bits, 4);
        x *= args->scale;
        memcpy(&bits, &x, 4);
        code = bits;
    }
    tn_number x = tn_number_decode(info(c->from), code);
    uint64_t result = tn_number_encode(info(c->to), c->way == ENCODES ? &args->rules : &c->own_rules, x, 0,
                                       c->way == ENCODES ? flags : &ignored);
    if (c->way == ODD && x.class == TN_NUMBER_FINITE) {
        uint32_t bits = (uint32_t)result;
        float kept;
        double whole;
        memcpy(&kept, &bits, 4);
        memcpy(&whole, &code, 8);
        result |= (double)kept != whole;
    }
    return result;
}

/* --- values -------------------------------------------------------------- */

static uint8_t *values;         /* codes of the source, dense */
static uint64_t nvalues;

static void add(tn_dtype type, uint64_t code)
{
    if (nvalues == MAX_VALUES) {
        fprintf(stderr, "check_kernels: more than %d values\n", MAX_VALUES);
        exit(3);
    }
    tn_code_put(values, nvalues++, info(type)->bits, code);
}

static double number_value(tn_number x)
{
    double v = (double)x.significand;
    for (int e = x.exponent; e > 0; e--)
        v *= 2;
    for (int e = x.exponent; e < 0; e++)
        v /= 2;
    return x.negative ? -v : v;
}

/* A value with its neighbours, in float32 or float64. */
static void add_around(tn_dtype type, double v)
{
    uint64_t wide;
    uint32_t narrow;
    float f = (float)v;
    memcpy(&wide, &v, 8);
    memcpy(&narrow, &f, 4);
    for (uint64_t step = 0; step < 3; step++)
        add(type, type == TN_FLOAT64 ? wide + step - 1 : (uint64_t)(uint32_t)(narrow + step - 1));
}

/* Where the results change: codes of the destination and the middles between them. */
static void add_boundaries(tn_dtype type, const tn_dtype_info *to)
{
    unsigned above = to->bits > 11 ? to->bits - 11u : 0;
    for (uint64_t i = 0; i < (uint64_t)1 << (to->bits - above); i++) {
        uint64_t code = i << above | (bits64() & (((uint64_t)1 << above) - 1));
        tn_number a = tn_number_decode(to, code), b = tn_number_decode(to, code + 1);
        if (a.class != TN_NUMBER_FINITE)
            continue;
        add_around(type, number_value(a));
        b = b.class == TN_NUMBER_FINITE ? b : a;
        add_around(type, (number_value(a) + number_value(b)) / 2);
        /* below the first, beyond the last */
        add_around(type, number_value(a) * 1.5 - number_value(b) / 2);
        add_around(type, number_value(b) * 1.5 - number_value(a) / 2);
    }
}

static void add_specials(const tn_dtype_info *type)
{
    unsigned e = type->exponent_bits, m = type->mantissa_bits;
    for (uint64_t sign = 0; sign < 2; sign++)
        for (uint64_t exponent = 0; exponent < (uint64_t)1 << e; exponent++) {
            uint64_t code = (sign << e | exponent) << m, last = ((uint64_t)1 << m) - 1;
            const uint64_t mantissas[] = { 0, 1, last, last / 2, last / 2 + 1, last / 2 + 2,
                                           bits64() & last };
            for (unsigned i = 0; i < sizeof mantissas / sizeof mantissas[0]; i++)
                add(type->dtype, code | mantissas[i]);
        }
}

static void make_values(const cast *c)
{
    const tn_dtype_info *from = info(c->from);
    nvalues = 0;
    if (from->bits <= 16) {
        for (uint64_t code = 0; code < (uint64_t)1 << 16; code++)
            add(c->from, code);
        return;
    }
    add_boundaries(c->from, c->from == TN_FLOAT64 ? info(TN_BFLOAT16) : info(c->to));
    /* near float32 and its ties, normal or not */
    for (unsigned i = 0; c->from == TN_FLOAT64 && i < 5000; i++) {
        uint64_t exponent = 1023 - 160 + bits64() % 300, top = bits64() >> 12 >> 29 << 29;
        add(c->from, bits64() << 63 | exponent << 52 | top);
        add(c->from, exponent << 52 | top | 1 << 28);
        add(c->from, exponent << 52 | top | ((1 << 28) + 1));
        add(c->from, exponent << 52 | (top >> (bits64() % 24)));
    }
    if (c->from == TN_TF32)
        add_specials(info(TN_FLOAT32));
    else
        add_specials(from);
    for (unsigned i = 0; i < 5000; i++)
        add(c->from, bits64());
}

/* --- comparing ----------------------------------------------------------- */

static uint8_t *src_room, *dst_room;    /* ROOM bytes each */

static bool complain(const cast *c, const tn_cast_args *args, const char *what, uint64_t i, size_t n,
                     uint64_t source, uint64_t want, uint64_t got)
{
    printf("      %s: %s at element %llu of %zu: source %llx, expected %llx but found %llx (scale %g, stream "
           "%d, "
           "keep %d)\n",
           c->name, what, (unsigned long long)i, n, (unsigned long long)source, (unsigned long long)want,
           (unsigned long long)got, args->has_scale ? (double)args->scale : 1.0, args->stream,
           args->rules.keep_payload);
    return false;
}

static size_t bytes_of(tn_dtype type, size_t n)
{
    return (n * info(type)->bits + 7) / 8;
}

/* One call: results, flags, unused bits, and nothing around touched. */
static bool run(const cast *c, const tn_cast_args *args, uint8_t *dst, const uint8_t *src, size_t n)
{
    unsigned want = 0, bits = info(c->to)->bits;
    unsigned got = c->kernel(dst, src, n, args);
    for (size_t i = 0; i < n; i++) {
        uint64_t source = tn_code_get(src, i, info(c->from)->bits), w = expected(c, args, source, &want);
        if (tn_code_get(dst, i, bits) != w)
            return complain(c, args, "code", i, n, source, w, tn_code_get(dst, i, bits));
    }
    if (n * bits % 8 && dst[n * bits / 8] >> (n * bits % 8))
        return complain(c, args, "unused bits", n, n, 0, 0, dst[n * bits / 8]);
    return got == want || complain(c, args, "flags", n, n, 0, want, got);
}

/* Compared by the byte before: a loop takes two thirds of the time with sanitizers. */
static bool untouched(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == CANARY && memcmp(p, p + 1, n - 1) == 0);
}

static bool run_placed(const cast *c, const tn_cast_args *args, size_t n, size_t dst_at, size_t src_at,
                       uint64_t first)
{
    size_t dst_bytes = bytes_of(c->to, n), src_bytes = bytes_of(c->from, n);
    memset(dst_room, CANARY, ROOM);
    memcpy(src_room + src_at, values + first * info(c->from)->bits / 8, src_bytes);
    if (!run(c, args, dst_room + dst_at, src_room + src_at, n))
        return false;
    size_t end = dst_at + dst_bytes;
    if (!untouched(dst_room, dst_at))
        return complain(c, args, "a byte before the output", 0, n, 0, CANARY, dst_room[dst_at - 1]);
    if (!untouched(dst_room + end, ROOM - end))
        return complain(c, args, "a byte behind the output", n, n, 0, CANARY, dst_room[end]);
    return true;
}

static bool run_lengths(const cast *c, const tn_cast_args *args)
{
    static const size_t longer[] = { 191, 255, 256, 257, 300, 511, 512, 513, 775, 1024 };
    tn_cast_args a = *args;
    for (size_t k = 0; k < 131 + sizeof longer / sizeof longer[0]; k++) {
        size_t n = k < 131 ? k : longer[k - 131];
        size_t dst_end = ROOM - bytes_of(c->to, n), src_end = ROOM - bytes_of(c->from, n);
        uint64_t first = bits64() % (nvalues - n) / 8 * 8;
        size_t odd = 1 + bits64() % 255;
        a.stream = bits64() & 1;
        if (!run_placed(c, &a, n, 0, 0, first) || !run_placed(c, &a, n, dst_end, src_end, first))
            return false;
        a.stream = !a.stream;
        if (!run_placed(c, &a, n, odd, odd ^ 1, first) ||
            !run_placed(c, &a, n, dst_end - odd, src_end, first))
            return false;
    }
    return true;
}

/* All values in their order, in which there are whole blocks with nothing special and blocks full of it. */
static bool run_all(const cast *c, const tn_cast_args *args)
{
    uint8_t *dst = malloc(bytes_of(c->to, nvalues) + 64);
    bool good = dst && run(c, args, dst, values, nvalues);
    free(dst);
    return good;
}

static bool check_rules(const cast *c, const tn_cast_options *options, bool at_length)
{
    static const float scales[] = { 1, 0.37F, -3.5e10F, 1e-40F };
    tn_cast_args args = { .rules = tn_encode_rules_for(info(c->to), options) };
    unsigned n = c->from == TN_FLOAT32 && c->way == ENCODES ? 4 : 1;
    for (unsigned i = 0; i < n; i++) {
        args.has_scale = i > 0;
        args.scale = scales[i];
        if ((at_length || i == 1) && !run_lengths(c, &args))
            return false;
        args.stream = i & 1;
        if (at_length && !run_all(c, &args))
            return false;
    }
    return true;
}

static bool check_cast(const cast *c)
{
    static const tn_overflow overflows[] = {
        TN_OVERFLOW_DEFAULT, TN_OVERFLOW_SATURATE, TN_OVERFLOW_INF, TN_OVERFLOW_NAN
    };
    make_values(c);
    for (unsigned o = 0; o < 4; o++)
        for (unsigned nan = TN_NAN_KEEP; nan <= TN_NAN_ZERO; nan++) {
            tn_cast_options options = { .size = sizeof options, .overflow = overflows[o],
                                        .nan = (tn_nan)nan };
            if (overflows[o] == TN_OVERFLOW_INF && info(c->to)->specials != TN_SPECIALS_IEEE)
                continue;
            if (!check_rules(c, &options, o == 0 || nan == TN_NAN_ZERO))
                return false;
        }
    return true;
}

/* --- byte order ---------------------------------------------------------- */

static bool check_swap(const tn_cast_kernels *k)
{
    for (unsigned unit = 1; unit <= 8; unit *= 2)
        for (size_t n = 0; n <= 400; n += unit)
            for (unsigned place = 0; place < 3; place++) {
                uint8_t *src = place == 0 ? src_room + 1 : src_room + ROOM - n;
                uint8_t *dst = place == 0 ? dst_room + 3 : dst_room + ROOM - n;
                memset(dst_room, CANARY, ROOM);
                for (size_t i = 0; i < n; i++)
                    src[i] = (uint8_t)bits64();
                if (place == 2)
                    memcpy(dst, src, n);
                k->swap(dst, place == 2 ? dst : src, n, unit);
                for (size_t i = 0; i < n; i++)
                    if (dst[i] != src[i / unit * unit + unit - 1 - i % unit])
                        return printf("      swap of %u: byte %zu of %zu\n", unit, i, n), false;
                if (dst > dst_room && dst[-1] != CANARY)
                    return printf("      swap of %u: wrote before the output\n", unit), false;
            }
    return true;
}

/* --- levels -------------------------------------------------------------- */

static void check(const char *level, tn_cast_fn kernel, tn_dtype to, tn_dtype from, way how)
{
    tn_cast_options cut = { .size = sizeof cut, .round = TN_ROUND_TRUNC };
    if (!kernel)
        return;
    cast c = { .kernel = kernel, .to = to, .from = from, .way = how,
               .own_rules = tn_encode_rules_for(info(to), how == ODD ? &cut : NULL) };
    snprintf(c.name, sizeof c.name, "%s to %s%s", info(from)->name, info(to)->name,
             how == ODD ? ", to odd" : "");
    report(level, c.name, check_cast(&c));
}

static void check_level(unsigned cpu)
{
    tn_cast_kernels k;
    const char *level = tn_cpu_name(cpu);
    tn_cast_kernels_init(&k, cpu);
    for (tn_dtype t = TN_FLOAT64; t < TN_DTYPE_COUNT; t++) {
        check(level, k.from_f32[t], t, TN_FLOAT32, ENCODES);
        check(level, k.to_f32[t], TN_FLOAT32, t, EXACT);
    }
    check(level, k.f16_to_bf16, TN_BFLOAT16, TN_FLOAT16, ENCODES);
    check(level, k.bf16_to_f16, TN_FLOAT16, TN_BFLOAT16, ENCODES);
    check(level, k.f64_to_f32, TN_FLOAT32, TN_FLOAT64, ENCODES);
    check(level, k.f64_to_f32_odd, TN_FLOAT32, TN_FLOAT64, ODD);
    check(level, k.f32_to_f64, TN_FLOAT64, TN_FLOAT32, EXACT);
    report(level, "byte order", check_swap(&k));
}

int main(int argc, char **argv)
{
    values = malloc((size_t)MAX_VALUES * 8);
    src_room = guarded(ROOM);
    dst_room = guarded(ROOM);
    if (!values)
        return 3;
    int status = check_levels(argc, argv, check_level);
    free(values);
    return status;
}
