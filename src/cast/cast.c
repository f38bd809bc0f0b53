/* cast/cast.c - chooses how to cast one type to another, and casts blocks of dense
 * elements. */
#include "cast/cast.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fenv.h"
#include "base/options.h"
#include "tensor/array.h"
#include "tensor/indices.h"

/* Elements that are staged at a time: a multiple of 8, so that packed types end
 * on a byte, and few enough for the L1 cache. */
enum { BLOCK = 1024, CODES = 256, MAX_ELEMENT = 16 };

/* --- what is allowed ----------------------------------------------------- */

static tn_status check_options(const tn_cast_options *o, tn_error *err)
{
    const struct { const char *name; unsigned found, last; } modes[] = {
        { "a rounding", (unsigned)o->round, TN_ROUND_STOCHASTIC },
        { "an overflow", (unsigned)o->overflow, TN_OVERFLOW_ERROR },
        { "an underflow", (unsigned)o->underflow, TN_UNDERFLOW_ERROR },
        { "a NaN", (unsigned)o->nan, TN_NAN_ERROR },
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (modes[i].found > modes[i].last)
            return tn_fail(err, TN_ERR_ARGUMENT, "expected %s mode of 0 to %u but found %d", modes[i].name,
                           modes[i].last, (int)modes[i].found);
    if (!isfinite(o->scale))
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a finite scale but found %f", (double)o->scale);
    return TN_OK;
}

static const char *name_of(const tn_dtype_info *type)
{
    return type ? type->name : "an unknown type";
}

static tn_status check_pair(tn_dtype to, tn_dtype from, const tn_cast_options *o, tn_error *err)
{
    const tn_dtype_info *t = tn_dtype_get(to), *f = tn_dtype_get(from);
    if (!t || !f)
        return tn_fail(err, TN_ERR_ARGUMENT, "a cast needs two known types but found one from %s to %s",
                       name_of(f), name_of(t));
    TN_TRY(check_options(o, err));
    if (f->kind == TN_KIND_COMPLEX && t->kind != TN_KIND_COMPLEX && !o->drop_imaginary)
        return tn_fail(err, TN_ERR_LOSS, "%s to %s would lose the imaginary parts", f->name, t->name);
    return TN_OK;
}

tn_status tn_cast_check(tn_dtype to, tn_dtype from, const tn_cast_options *options, tn_error *err)
{
    tn_cast_options own = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_cast_options, jobs), &own, options, err));
    return check_pair(to, from, &own, err);
}

/* The flags that the options turn into errors. */
static unsigned refused_flags(const tn_dtype_info *to, const tn_cast_options *o)
{
    bool inf = tn_dtype_has_infinity(to), nan = tn_dtype_has_nan(to);
    unsigned refused = 0;
    if (o->overflow == TN_OVERFLOW_ERROR || (o->overflow == TN_OVERFLOW_INF && !inf) ||
        (o->overflow == TN_OVERFLOW_NAN && !inf && !nan))
        refused |= TN_ENCODED_OVERFLOW;
    if (o->nan == TN_NAN_ERROR || (o->nan == TN_NAN_KEEP && !nan && to->kind != TN_KIND_BOOL))
        refused |= TN_ENCODED_NAN;
    if (o->underflow == TN_UNDERFLOW_ERROR)
        refused |= TN_CAST_FLUSHED;
    return refused;
}

/* --- one element, by the definition -------------------------------------- */

/* The value as float32, times the scale, in float32. */
static tn_number scaled(tn_number x, float scale)
{
    const tn_dtype_info *f32 = tn_dtype_get(TN_FLOAT32);
    const tn_encode_rules rules = tn_encode_rules_for(f32, NULL);
    unsigned ignored = 0;
    uint32_t bits = (uint32_t)tn_number_encode(f32, &rules, x, 0, &ignored);
    float y;
    memcpy(&y, &bits, sizeof y);
    if (x.class != TN_NUMBER_NAN)
        y *= scale;
    memcpy(&bits, &y, sizeof bits);
    /* finite, but beyond the largest number of every type */
    if (x.class == TN_NUMBER_FINITE && isinf(y))
        return (tn_number){ .negative = signbit(y), .significand = 1, .exponent = 2000 };
    return tn_number_decode(f32, bits);
}

static tn_number number_of(const tn_cast_plan *plan, uint64_t code)
{
    tn_number x = tn_number_decode(plan->from, code);
    return plan->args.has_scale ? scaled(x, plan->args.scale) : x;
}

static uint64_t define(const tn_cast_plan *plan, uint64_t code, uint64_t index, unsigned *flags)
{
    return tn_number_encode(plan->to, &plan->args.rules, number_of(plan, code), index, flags);
}

unsigned tn_cast_flags(const tn_cast_plan *plan, uint64_t code, uint64_t index)
{
    unsigned flags = 0;
    tn_number x = tn_number_decode(plan->from, code),
              y = tn_number_decode(plan->to, define(plan, code, index, &flags));
    bool had_value = x.class == TN_NUMBER_FINITE && x.significand,
         is_zero = y.class == TN_NUMBER_FINITE && !y.significand;
    return had_value && is_zero && !(flags & TN_ENCODED_OVERFLOW) ? flags | TN_CAST_FLUSHED : flags;
}

/* --- the plan ------------------------------------------------------------ */

static tn_cast_parts parts_of(const tn_dtype_info *to, const tn_dtype_info *from)
{
    if (to->kind == TN_KIND_COMPLEX)
        return from->kind == TN_KIND_COMPLEX ? TN_PARTS_BOTH : TN_PARTS_ADD;
    return from->kind == TN_KIND_COMPLEX ? TN_PARTS_DROP : TN_PARTS_REAL;
}

/* Whether a float64 may be rounded to odd in float32 first: float32 then has at
 * least two more bits than the type at every magnitude. */
static bool narrow_enough(const tn_dtype_info *to)
{
    if (to->kind == TN_KIND_FLOAT)
        return to->exponent_bits <= 8 && to->mantissa_bits <= 21;
    return to->bits <= 16;
}

static bool use(tn_cast_plan *plan, tn_cast_fn kernel, tn_cast_fn second, bool needs_second)
{
    if (!kernel || (needs_second && !second))
        return false;
    plan->kernel = kernel;
    plan->second = second;
    plan->route = needs_second ? TN_ROUTE_FLOAT32 : TN_ROUTE_KERNEL;
    return true;
}

/* To a type that has every value of the source: rounding does not matter, but the
 * kernels ignore the options. */
static bool choose_exact(tn_cast_plan *plan, const tn_cast_kernels *k)
{
    tn_dtype to = plan->to->dtype, from = plan->from->dtype;
    if (to == TN_FLOAT32) {
        plan->prefers_ordinary = k->ordinary_to_f32[from];
        return use(plan, k->to_f32[from], NULL, false);
    }
    if (to == TN_FLOAT64 && from == TN_FLOAT32) {
        plan->prefers_ordinary = k->ordinary_from_f32[to];
        return use(plan, k->f32_to_f64, NULL, false);
    }
    if (to == TN_FLOAT64)
        return use(plan, k->to_f32[from], k->f32_to_f64, true);
    return false;
}

static bool choose_rounding(tn_cast_plan *plan, const tn_cast_kernels *k)
{
    tn_dtype to = plan->to->dtype, from = plan->from->dtype;
    bool scale = plan->args.has_scale;
    if (!scale && from == TN_FLOAT16 && to == TN_BFLOAT16 && use(plan, k->f16_to_bf16, NULL, false))
        return true;
    if (!scale && from == TN_BFLOAT16 && to == TN_FLOAT16 && use(plan, k->bf16_to_f16, NULL, false))
        return true;
    if (from == TN_FLOAT32) {
        plan->prefers_ordinary = k->ordinary_from_f32[to];
        return use(plan, k->from_f32[to], NULL, false);
    }
    if (from != TN_FLOAT64)
        return use(plan, k->to_f32[from], k->from_f32[to], true);
    if (scale)
        return use(plan, k->f64_to_f32, k->from_f32[to], true);
    if (to == TN_FLOAT32)
        return use(plan, k->f64_to_f32, NULL, false);
    return narrow_enough(plan->to) && use(plan, k->f64_to_f32_odd, k->from_f32[to], true);
}

bool tn_round_rules_for(tn_round_rules *rules, const tn_dtype_info *to, tn_round round, uint64_t seed)
{
    if (to->kind == TN_KIND_BOOL || to->specials == TN_SPECIALS_E8M0)
        return false;
    *rules = (tn_round_rules){ .round = round, .seed = seed, .lowest = 127 + 23 };
    if (to->kind != TN_KIND_FLOAT)
        return true;
    if (to->mantissa_bits < 1 || to->mantissa_bits >= 23 || to->bias > 127)
        return false;
    rules->shift = 23u - to->mantissa_bits;
    rules->lowest = 128 - to->bias;
    return to->bias == 127 || (int)rules->shift + rules->lowest > 23;   /* its smallest number is normal */
}

/* Other modes than to even. */
static bool choose_rounder(tn_cast_plan *plan, const tn_cast_kernels *k)
{
    bool wide = plan->from->dtype == TN_FLOAT32;
    plan->kernel = wide ? NULL : k->to_f32[plan->from->dtype];
    plan->second = k->from_f32[plan->to->dtype];
    plan->rounder = tn_round_kernels_get()->round;
    if (plan->args.has_scale || !(wide || plan->kernel) || !plan->second ||
        !tn_round_rules_for(&plan->round_rules, plan->to, plan->args.rules.round, plan->args.rules.seed))
        return false;
    plan->route = TN_ROUTE_ROUNDED;
    return true;
}

static void choose_route(tn_cast_plan *plan, const tn_cast_kernels *k, const tn_cast_options *o)
{
    /* Codes that both types have do not change. */
    bool plain = !plan->args.has_scale && (o->nan == TN_NAN_KEEP || !tn_dtype_has_nan(plan->from)) &&
                 (o->overflow != TN_OVERFLOW_SATURATE || !tn_dtype_has_infinity(plan->from));
    /* A kernel cannot tell a product that overflows float32 from an infinity. */
    bool watched = plan->args.has_scale && plan->refused & TN_ENCODED_OVERFLOW &&
                   tn_dtype_has_infinity(plan->to);

    plan->route = TN_ROUTE_COPY;
    if (plain && plan->to == plan->from)
        return;
    if (plain && choose_exact(plan, k))
        return;
    if (o->round == TN_ROUND_EVEN && !watched && choose_rounding(plan, k))
        return;
    if (o->round != TN_ROUND_EVEN && choose_rounder(plan, k))
        return;
    plan->route = TN_ROUTE_DEFINITION;
    if (plan->from->bits > 8 || o->round == TN_ROUND_STOCHASTIC)
        return;
    plan->route = TN_ROUTE_TABLE;
    for (unsigned code = 0; code < 1u << plan->from->bits; code++) {
        unsigned flags = 0;
        plan->table[code] = define(plan, code, 0, &flags);
        plan->table_flags[code] = (uint8_t)flags;
    }
}

static tn_status make_plan(tn_cast_plan *plan, const tn_cast_kernels *kernels, tn_cast_types types,
                           const tn_cast_options *options, tn_error *err)
{
    tn_cast_options own = { 0 };
    TN_TRY(tn_take_options(TN_SIZED(tn_cast_options, jobs), &own, options, err));
    TN_TRY(check_pair(types.to, types.from, &own, err));
    if (types.order != TN_LITTLE_ENDIAN && types.order != TN_BIG_ENDIAN)
        return tn_fail(err, TN_ERR_ARGUMENT, "%d is no byte order", (int)types.order);
    const tn_dtype_info *to = tn_dtype_get(types.to), *from = tn_dtype_get(types.from);
    memset(plan, 0, offsetof(tn_cast_plan, table));
    plan->to = tn_real_type(to);
    plan->from = tn_real_type(from);
    plan->to_name = tn_real_type(to)->name;
    plan->to_dtype = types.to;
    plan->from_dtype = types.from;
    plan->parts = parts_of(to, from);
    plan->swapper = kernels->swap;
    plan->first = own.first;
    plan->refuses_every_nan = own.nan == TN_NAN_ERROR;
    if (types.order != TN_HOST_ORDER && plan->from->swap_bytes > 1)
        plan->swap = plan->from->swap_bytes;
    plan->refused = refused_flags(plan->to, &own);
    plan->args = (tn_cast_args){
        .rules = tn_encode_rules_for(plan->to, &own), .scale = own.scale, .has_scale = own.scale != 0,
    };
    plan->first_args.rules = tn_encode_rules_for(tn_dtype_get(TN_FLOAT32), NULL);
    choose_route(plan, kernels, &own);
    if (plan->refused & TN_CAST_FLUSHED)
        tn_cast_plan_count(plan, kernels);
    return TN_OK;
}

/* Tables contain products, which need the default floating-point environment. */
tn_status tn_cast_plan_with(tn_cast_plan *plan, const tn_cast_kernels *kernels, tn_cast_types types,
                            const tn_cast_options *options, tn_error *err)
{
    tn_fenv callers;
    tn_fenv_enter(&callers);
    tn_status status = make_plan(plan, kernels, types, options, err);
    tn_fenv_leave(&callers);
    return status;
}

tn_status tn_cast_plan_make(tn_cast_plan *plan, tn_dtype to, tn_dtype from, tn_byte_order order,
                            const tn_cast_options *options, tn_error *err)
{
    tn_cast_types types = { .to = to, .from = from, .order = order };
    return tn_cast_plan_with(plan, tn_cast_kernels_get(), types, options, err);
}

/* --- real elements in host order ------------------------------------------ */

static unsigned cast_through_float32(const tn_cast_plan *plan, uint8_t *dst, const uint8_t *src, size_t n)
{
    float middle[BLOCK];
    unsigned flags = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t count = n - i < BLOCK ? n - i : BLOCK;
        plan->kernel(middle, src + tn_dense_offset(i, plan->from->bits), count, &plan->first_args);
        flags |= plan->second(dst + tn_dense_offset(i, plan->to->bits), middle, count, &plan->args);
    }
    return flags;
}

static unsigned cast_codes(const tn_cast_plan *plan, uint64_t *codes, size_t n, uint64_t index)
{
    unsigned flags = 0;
    if (plan->route == TN_ROUTE_TABLE)
        for (size_t i = 0; i < n; i++) {
            flags |= plan->table_flags[codes[i]];
            codes[i] = plan->table[codes[i]];
        }
    else if (!plan->args.has_scale)
        return tn_codes_cast(plan->to, &plan->args.rules, plan->from, codes, n, index);
    else
        for (size_t i = 0; i < n; i++)
            codes[i] = define(plan, codes[i], index + i, &flags);
    return flags;
}

/* The last byte may have unused bits. */
static void clear_unused_bits(uint8_t *dst, size_t n, unsigned bits)
{
    unsigned used = (unsigned)(n % 8 * bits % 8);
    if (used)
        dst[tn_dense_bytes(n, bits) - 1] &= (uint8_t)((1u << used) - 1);
}

static unsigned cast_by_code(const tn_cast_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                             uint64_t index)
{
    uint64_t codes[CODES];
    unsigned flags = 0, to = plan->to->bits, from = plan->from->bits;
    for (size_t i = 0; i < n; i += CODES) {
        size_t count = n - i < CODES ? n - i : CODES;
        for (size_t k = 0; k < count; k++)
            codes[k] = tn_code_get(src, i + k, from);
        flags |= cast_codes(plan, codes, count, index + i);
        for (size_t k = 0; k < count; k++)
            tn_code_put(dst, i + k, to, codes[k]);
    }
    clear_unused_bits(dst, n, to);
    return flags;
}

static unsigned cast_rounded(const tn_cast_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                             uint64_t index)
{
    float block[BLOCK];
    unsigned flags = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t count = n - i < BLOCK ? n - i : BLOCK;
        const uint8_t *in = src + tn_dense_offset(i, plan->from->bits);
        uint8_t *out = dst + tn_dense_offset(i, plan->to->bits);
        if (plan->kernel)
            plan->kernel(block, in, count, &plan->first_args);
        else
            memcpy(block, in, count * sizeof *block);
        if (plan->rounder(block, block, count, index + i, &plan->round_rules))
            flags |= plan->second(out, block, count, &plan->args);
        else
            flags |= cast_by_code(plan, out, in, count, index + i);
    }
    return flags;
}

static void copy_codes(uint8_t *dst, const uint8_t *src, size_t n, unsigned bits)
{
    if (n)
        memcpy(dst, src, tn_dense_bytes(n, bits));
    clear_unused_bits(dst, n, bits);
}

static unsigned cast_real(const tn_cast_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                          uint64_t index)
{
    switch (plan->route) {
    case TN_ROUTE_COPY:
        copy_codes(dst, src, n, plan->to->bits);
        return 0;
    case TN_ROUTE_KERNEL:
        return plan->kernel(dst, src, n, &plan->args);
    case TN_ROUTE_FLOAT32:
        return cast_through_float32(plan, dst, src, n);
    case TN_ROUTE_ROUNDED:
        return cast_rounded(plan, dst, src, n, index);
    default:
        return cast_by_code(plan, dst, src, n, index);
    }
}

/* --- byte order and complex numbers --------------------------------------- */

/* Every other element of `size` bytes. */
static void take_real_parts(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++)
        memcpy(dst + i * size, src + 2 * i * size, size);
}

static void add_imaginary_parts(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(dst + 2 * i * size, src + i * size, size);
        memset(dst + (2 * i + 1) * size, 0, size);
    }
}

/* Elements without a change of byte order; complex to complex is twice as many real ones. */
static unsigned cast_direct(const tn_cast_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                            uint64_t index)
{
    unsigned each = plan->parts == TN_PARTS_BOTH ? 2 : 1;
    return cast_real(plan, dst, src, each * n, each * index);
}

/* At most BLOCK elements. */
static unsigned cast_staged(const tn_cast_plan *plan, uint8_t *dst, const uint8_t *src, size_t n,
                            uint64_t index)
{
    uint8_t host[BLOCK * MAX_ELEMENT], half[BLOCK * MAX_ELEMENT / 2];
    if (plan->swap) {
        plan->swapper(host, src, tn_dense_bytes(n, tn_dtype_get(plan->from_dtype)->bits), plan->swap);
        src = host;
    }
    if (plan->parts == TN_PARTS_DROP) {
        take_real_parts(half, src, n, plan->from->bits / 8u);
        return cast_real(plan, dst, half, n, index);
    }
    if (plan->parts == TN_PARTS_ADD) {
        unsigned flags = cast_real(plan, half, src, n, index);
        add_imaginary_parts(dst, half, n, plan->to->bits / 8u);
        return flags;
    }
    return cast_direct(plan, dst, src, n, index);
}

static unsigned cast_any(const tn_cast_plan *plan, uint8_t *dst, const uint8_t *src, size_t n, uint64_t index)
{
    if (!plan->swap && (plan->parts == TN_PARTS_REAL || plan->parts == TN_PARTS_BOTH))
        return cast_direct(plan, dst, src, n, index);
    unsigned to = tn_dtype_get(plan->to_dtype)->bits, from = tn_dtype_get(plan->from_dtype)->bits, flags = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        uint8_t *out = dst + tn_dense_offset(i, to);
        const uint8_t *in = src + tn_dense_offset(i, from);
        flags |= cast_staged(plan, out, in, n - i < BLOCK ? n - i : BLOCK, index + i);
    }
    return flags;
}

/* --- what was refused ------------------------------------------------------ */

/* Copies element `i` in host order; *x: the number that was encoded.  Returns its refused flags. */
static unsigned look_at(const tn_cast_plan *plan, const uint8_t *src, size_t i, uint64_t index,
                        uint8_t *element, tn_number *x)
{
    const tn_dtype_info *whole = tn_dtype_get(plan->from_dtype);
    unsigned bits = plan->from->bits, flags = 0;
    if (whole->bits < 8)
        element[0] = (uint8_t)tn_code_get(src, i, whole->bits);
    else if (plan->swap)
        plan->swapper(element, src + tn_dense_offset(i, whole->bits), whole->bits / 8u, plan->swap);
    else
        memcpy(element, src + tn_dense_offset(i, whole->bits), whole->bits / 8u);

    unsigned parts = plan->parts == TN_PARTS_BOTH ? 2 : 1;
    for (unsigned k = 0; k < parts && !(flags & plan->refused); k++) {
        uint64_t code = tn_code_get(element, k, bits);
        flags |= tn_cast_flags(plan, code, parts * index + k);
        *x = number_of(plan, code);
    }
    return flags & plan->refused;
}

void tn_element_text(char *text, size_t cap, uint64_t index, uint32_t rank, const int64_t *shape)
{
    if (rank)
        snprintf(text, cap, "element [%s]", tn_indices_show(index, rank, shape).text);
    else
        snprintf(text, cap, "the element");
}

/* At least as many digits as float32 has, to show that a value is beyond a limit. */
static void write_value(char *text, size_t cap, tn_dtype dtype, const void *element)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    bool short_float = type->kind == TN_KIND_FLOAT && type->mantissa_bits < 23;
    tn_value_format(text, cap, short_float ? TN_FLOAT32 : dtype, tn_value_get(dtype, element, 0));
}

static tn_status refuse(const tn_cast_plan *plan, const uint8_t *element, tn_number x, unsigned flags,
                        const char *where, tn_error *err)
{
    char value[100], limit[100], scale[100] = "";
    uint8_t code[8];
    bool zero = x.class == TN_NUMBER_FINITE && x.significand == 0;
    bool below = plan->to->specials == TN_SPECIALS_E8M0 && (x.negative || zero);
    const tn_dtype_info *exceeded = plan->to;
    if (plan->args.has_scale && plan->to->dtype == TN_FLOAT64)
        exceeded = tn_dtype_get(TN_FLOAT32);    /* products are computed in float32 */
    write_value(value, sizeof value, plan->from_dtype, element);
    if (flags & TN_CAST_FLUSHED)
        return tn_fail(err, TN_ERR_LOSS, "%s is %s, which becomes 0 in %s", where, value, plan->to_name);
    if (flags & TN_ENCODED_NAN && plan->refuses_every_nan)
        return tn_fail(err, TN_ERR_LOSS, "%s is %s, which the NaN mode refuses", where, value);
    if (flags & TN_ENCODED_NAN)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_NAN, "zero", "%s is %s, and %s has no NaN", where, value,
                         plan->to_name);
    if (plan->args.has_scale)
        snprintf(scale, sizeof scale, "times the scale %.9g ", (double)plan->args.scale);
    uint64_t last = tn_dtype_limit(exceeded, x.negative || below);
    tn_code_put(code, 0, exceeded->bits < 8 ? 8 : exceeded->bits, last);
    write_value(limit, sizeof limit, exceeded->dtype, code);
    if (below)
        return tn_fail(err, TN_ERR_LOSS, "%s is %s, %sbelow %s's smallest %s", where, value, scale,
                       exceeded->name, limit);
    return tn_fail(err, TN_ERR_LOSS, "%s is %s, %sbeyond %s's %s %s", where, value, scale, exceeded->name,
                   x.negative ? "lowest" : "largest", limit);
}

static tn_status refuse_first(const tn_cast_plan *plan, const void *src, size_t n, uint64_t first,
                              uint32_t rank, const int64_t *shape, tn_error *err)
{
    uint8_t element[MAX_ELEMENT];
    tn_number x = { 0 };
    char where[200];
    for (size_t i = 0; i < n; i++) {
        unsigned flags = look_at(plan, src, i, plan->first + first + i, element, &x);
        if (flags) {
            tn_element_text(where, sizeof where, first + i, rank, shape);
            return refuse(plan, element, x, flags, where, err);
        }
    }
    return tn_fail(err, TN_ERR_LOSS, "a kernel refused an element of %s that the definition allows",
                   plan->from->name);
}

tn_status tn_cast_block(const tn_cast_plan *plan, void *dst, const void *src, size_t n, uint64_t first,
                        uint32_t rank, const int64_t *shape, tn_error *err)
{
    unsigned flags = cast_any(plan, dst, src, n, plan->first + first);
    tn_cast_lost lost = { 0 };
    if (plan->refused & TN_CAST_FLUSHED)
        tn_cast_count(plan, dst, src, n, first, &lost);
    if (flags & plan->refused || lost.flushed)
        return refuse_first(plan, src, n, first, rank, shape, err);
    return TN_OK;
}
