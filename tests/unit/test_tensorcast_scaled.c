#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <zstd.h>

#include "support.h"
#include "tensor/array.h"
#include "tensor/code.h"
#include "quant/tile.h"

/* TensorCast's own answers for casts with scales, and for those without once
 * more: golden/README.md.  What is not followed is listed there with the number
 * of the decision, and what may differ is checked tile by tile. */

/* --- the files ------------------------------------------------------------------ */

typedef struct blob {
    uint8_t *data;
    size_t   size;
} blob;

static blob read_blob(const char *path)
{
    static uint8_t packed[1 << 20];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t n = fread(packed, 1, sizeof packed, file);
    fclose(file);
    blob b = { .size = (size_t)ZSTD_getFrameContentSize(packed, n) };
    CHECK(b.size < 64 << 20);
    b.data = malloc(b.size);
    assert_non_null(b.data);
    CHECK(ZSTD_decompress(b.data, b.size, packed, n) == b.size);
    return b;
}

static const void *at(const blob *b, size_t offset, size_t n)
{
    CHECK(offset <= b->size && n <= b->size - offset);
    return b->data + offset;
}

/* One case, and what became of it here. */
typedef struct casting {
    char     id[20], datatype[80], rounding[12], mode[12], decision[12], kind[12], more[200];
    int64_t  shape[2];
    size_t   count;
    int      free_sign;
    const float *x, *expected;
    tn_datatype *d;
    tn_scaled_shapes shapes;
    float   *y;
    uint8_t *parts[7];
} casting;

typedef struct tally {
    unsigned ran, matched;
    struct { char decision[12], kind[12]; unsigned cases, differ; } group[24];
    unsigned groups;
} tally;

static void read_case(casting *c, char *line, const blob *b)
{
    size_t in, out;
    for (char *tab = line; (tab = strchr(tab, ' ')); )
        *tab = ',';
    CHECK(sscanf(line, "%19s %79s %11s %11s %" SCNd64 "x%" SCNd64 " %zu %zu %d %11s %11s %199s", c->id,
                 c->datatype, c->rounding, c->mode, &c->shape[0], &c->shape[1], &in, &out, &c->free_sign,
                 c->decision, c->kind, c->more) == 12);
    c->count = (size_t)(c->shape[0] * c->shape[1]);
    c->x = at(b, in, c->count * sizeof(float));
    c->expected = at(b, out, c->count * sizeof(float));
}

static tn_quantize_options options_of(const casting *c)
{
    static const struct { const char *name; tn_scale_rule rule; } modes[] = {
        { "max", TN_SCALE_MAX }, { "floor", TN_SCALE_MAX }, { "midmax", TN_SCALE_MIDMAX },
        { "auto", TN_SCALE_MIDMAX },
        { "topbinade", TN_SCALE_TOPBINADE }, { "option3", TN_SCALE_OPTION3 },
    };
    tn_quantize_options o = { .size = sizeof o, .jobs = 1 };
    CHECK(strcmp(c->rounding, "even") == 0 || strcmp(c->rounding, "away") == 0 ||
          strcmp(c->rounding, "zero") == 0);
    o.round = c->rounding[0] == 'e' ? TN_ROUND_EVEN : c->rounding[0] == 'a' ? TN_ROUND_AWAY : TN_ROUND_ZERO;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, c->mode) == 0) {
            o.rule = modes[i].rule;
            return o;
        }
    }
    fail_msg("%s: scale mode %s", c->id, c->mode);
    return o;
}

/* --- running ----------------------------------------------------------------------- */

static bool has_no_negative_zero(const casting *c)
{
    const tn_number_spec *n = &c->d->number;
    bool uz = n->kind == TN_NUMBER_FLOAT && n->bits > 6 &&
              (n->infnan == TN_INFNAN_FNUZ || n->infnan == TN_INFNAN_INUZ);
    return c->free_sign || n->kind == TN_NUMBER_INT || n->kind == TN_NUMBER_UINT || uz;
}

static bool is_equal(const casting *c, float a, float b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b && (a != 0 || signbit(a) == signbit(b) || has_no_negative_zero(c));
}

/* Codes and scales, and from them the values of the virtual cast. */
static void quantize(casting *c, const tn_quantize_options *o)
{
    tn_array array = { TN_FLOAT32, 2, c->shape, NULL };
    tn_error err;
    float *back = malloc(c->count * sizeof *back);
    assert_non_null(back);
    for (uint32_t i = 0; i < c->shapes.count; i++) {
        uint64_t n;
        CHECK(tn_shape_nbytes(c->shapes.parts[i].dtype, c->shapes.parts[i].rank, c->shapes.parts[i].shape,
                              &n) == TN_OK);
        c->parts[i] = malloc(n ? n : 1);
        assert_non_null(c->parts[i]);
    }
    if (tn_quantize(c->d, &array, c->x, (void *const *)c->parts, o, NULL, &err) != TN_OK)
        fail_msg("%s: %s", c->id, line_of(&err));
    CHECK(tn_dequantize(c->d, &array, (const void *const *)c->parts, back, o, &err) == TN_OK);
    if (memcmp(back, c->y, c->count * sizeof *back))
        fail_msg("%s: %s: the values of the codes are not those of the virtual cast", c->id, c->datatype);
    free(back);
}

/* The same stored as numbers of float8, where the type has them all. */
static unsigned store(casting *c, const tn_quantize_options *given)
{
    static const tn_dtype types[] = { TN_FLOAT8_E4M3FN, TN_FLOAT8_E5M2 };
    tn_array array = { TN_FLOAT32, 2, c->shape, NULL };
    unsigned stored = 0;
    for (int i = 0; i < 2; i++) {
        tn_quantize_options o = *given;
        uint8_t codes[256], *own[7];
        tn_error err = { .text = "" };
        if (tn_datatype_store_codes(c->d, types[i], codes, NULL) != TN_OK)
            continue;
        o.unpacked = true;
        o.store = types[i];
        float *back = malloc(c->count * sizeof *back);
        memcpy(own, c->parts, sizeof own);
        own[0] = malloc(c->count);
        CHECK(back && own[0]);
        if (tn_quantize(c->d, &array, c->x, (void *const *)own, &o, NULL, &err) ||
            tn_dequantize(c->d, &array, (const void *const *)own, back, &o, &err))
            fail_msg("%s: %s", c->id, line_of(&err));
        if (memcmp(back, c->y, c->count * sizeof *back))
            fail_msg("%s: %s: the values of the numbers are not those of the virtual cast", c->id,
                     c->datatype);
        free(back);
        free(own[0]);
        stored++;
    }
    return stored;
}

static unsigned stored_cases;

/* TN_ERR_LOSS where the case says so; then NaN as 0. */
static void run(casting *c)
{
    tn_array array = { TN_FLOAT32, 2, c->shape, NULL };
    tn_quantize_options o = options_of(c);
    tn_error err;
    if (tn_datatype_parse(c->datatype, &c->d, &err) != TN_OK)
        fail_msg("%s: %s", c->id, line_of(&err));
    CHECK(tn_scaled_shapes_for(c->d, 2, c->shape, &c->shapes, NULL) == TN_OK);
    c->y = malloc(c->count * sizeof *c->y);
    assert_non_null(c->y);
    tn_status status = tn_fake_quantize(c->d, &array, c->x, c->y, &o, NULL, &err);
    if (strcmp(c->kind, "error") == 0) {
        assert_int_equal(status, TN_ERR_LOSS);
        CHECK(strstr(line_of(&err), "has no NaN") != NULL);
        o.nan = TN_NAN_ZERO;
        status = tn_fake_quantize(c->d, &array, c->x, c->y, &o, NULL, &err);
    }
    if (status != TN_OK)
        fail_msg("%s: %s", c->id, line_of(&err));
    quantize(c, &o);
    stored_cases += store(c, &o);
}

static void clear(casting *c)
{
    for (size_t i = 0; i < 7; i++)
        free(c->parts[i]);
    free(c->y);
    tn_datatype_free(c->d);
}

/* --- what is stored beside the values -------------------------------------------------- */

static const uint8_t *part_of(const casting *c, const char *role, const tn_scaled_part **part)
{
    for (uint32_t i = 0; i < c->shapes.count; i++) {
        if (strcmp(c->shapes.parts[i].role, role) == 0) {
            *part = &c->shapes.parts[i];
            return c->parts[i];
        }
    }
    fail_msg("%s: %s has no %s", c->id, c->datatype, role);
    return NULL;
}

/* Number `i` of a part of one per tile; packed ones are so along the last dimension. */
static uint32_t number_at(const casting *c, const char *role, const tn_number_spec *n, size_t i)
{
    const tn_scaled_part *part = NULL;
    const uint8_t *data = part_of(c, role, &part);
    if (n->bits >= 8)
        return (uint32_t)tn_code_get(data, i, n->bits == 8 ? 8 : n->bits <= 16 ? 16 : 32);
    size_t across = (size_t)part->plain_shape[1];
    return (uint32_t)tn_packed_get(data + i / across * tn_packed_bytes(across, n->bits), i % across, n->bits);
}

/* Number `i` of a part of one per subtile. */
static uint32_t unit_at(const casting *c, const char *role, unsigned bits, size_t i)
{
    const tn_scaled_part *part = NULL;
    const uint8_t *data = part_of(c, role, &part);
    size_t units = c->d->subtile ? c->d->tile[0] / c->d->subtile : 1, bytes = (bits * units + 7) / 8;
    return (uint32_t)tn_packed_get(data + i / units * bytes, i % units, bits);
}

static float scale_at(const casting *c, size_t i)
{
    return tn_spec_value(&c->d->scale, number_at(c, "scale", &c->d->scale, i));
}

static int16_t short_at(const uint8_t *data, size_t i)
{
    return (int16_t)tn_code_get(data, i, 16);
}

static float float_at(const uint8_t *data, size_t i)
{
    float value;
    memcpy(&value, data + i * sizeof value, sizeof value);
    return value;
}

/* v1's export of block floats: an exponent byte and the integers of each tile. */
static bool is_bfp(const casting *c, const uint8_t *data, size_t n)
{
    size_t tile = c->d->tile[0], point = c->d->number.bits - 2u;
    for (size_t i = 0; i < n; i++) {
        size_t t = i / (tile + 1), k = i % (tile + 1);
        if (k == 0 ? data[i] != number_at(c, "scale", &c->d->scale, t) - point
                   : (int8_t)data[i] != tn_spec_integer(&c->d->number, number_at(c, "data", &c->d->number,
                                                                                 t * tile + k - 1)))
            return false;
    }
    return true;
}

static bool is_mask(const casting *c, const uint8_t *data, size_t n)
{
    const tn_scaled_part *part = NULL;
    const uint8_t *mask = part_of(c, "mask", &part);
    size_t across = (size_t)c->shape[1];
    for (size_t i = 0; i < n; i++)
        if (data[i] != tn_packed_get(mask + i / across * ((across + 7) / 8), i % across, 1))
            return false;
    return true;
}

static bool is_zero_at(const casting *c, float value, size_t i)
{
    uint32_t code = number_at(c, "zero", &c->d->zero, i);
    return c->d->zero.kind == TN_NUMBER_INT ? (float)tn_spec_integer(&c->d->zero, code) == value
                                            : tn_spec_value(&c->d->zero, code) == value;
}

/* Whether one of the things beside the values is equal. */
static bool is_same(const casting *c, const char *what, const uint8_t *data, size_t n)
{
    bool same = true;
    if (strcmp(what, "bfp") == 0)
        return is_bfp(c, data, n);
    if (strcmp(what, "mask") == 0)
        return is_mask(c, data, n);
    if (strcmp(what, "exponent") == 0)
        for (size_t i = 0; i < n / 2; i++)
            same &= (int)number_at(c, "scale", &c->d->scale, i) == short_at(data, i);
    else if (strcmp(what, "offset") == 0)
        for (size_t i = 0; i < n / 2; i++)
            same &= (int)unit_at(c, "offset", c->d->offset_bits, i) == short_at(data, i);
    else if (strcmp(what, "mapping") == 0)
        for (size_t i = 0; i < n; i++)
            same &= unit_at(c, "meta", c->d->codebook.meta_bits, i) == data[i];
    else if (strcmp(what, "scale") == 0)
        for (size_t i = 0; i < n / 4; i++)
            same &= scale_at(c, i) == float_at(data, i);
    else if (strcmp(what, "zero") == 0)
        for (size_t i = 0; i < n / 4; i++)
            same &= is_zero_at(c, float_at(data, i), i);
    else
        fail_msg("%s: %s", c->id, what);
    return same;
}

/* What lies beside the values under this name; NULL: nothing. */
static const uint8_t *find(const casting *c, const blob *b, const char *name, size_t *n)
{
    char all[sizeof c->more];
    strcpy(all, c->more);
    for (char *save, *one = strtok_r(all, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        char what[20];
        size_t offset;
        if (sscanf(one, "%19[a-z]:%zu:%zu", what, &offset, n) == 3 && (!name || strcmp(what, name) == 0))
            return at(b, offset, *n);
    }
    return NULL;
}

static unsigned check_rest(const casting *c, const blob *b)
{
    static const char *const names[] = { "exponent", "scale", "zero", "offset", "mapping", "mask", "bfp" };
    unsigned compared = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t n;
        const uint8_t *data = find(c, b, names[i], &n);
        if (data && !is_same(c, names[i], data, n))
            fail_msg("%s: %s: another %s", c->id, c->datatype, names[i]);
        compared += data != NULL;
    }
    return compared;
}

/* --- what may differ ----------------------------------------------------------------------- */

typedef struct looks {
    float largest;
    bool  has_zero, has_special;
} looks;

/* The tile that element i is in: tiles lie along the last dimension here. */
static size_t tile_of(const casting *c, size_t i, size_t *first, size_t *n)
{
    size_t columns = (size_t)c->shape[1], tile = c->d->scope == TN_SCOPE_TILE ? c->d->tile[0] : columns;
    if (c->d->scope == TN_SCOPE_TENSOR) {
        *first = 0;
        *n = c->count;
        return 0;
    }
    *first = i / tile * tile;
    *n = tile;
    return i / tile;
}

static looks look(const casting *c, size_t first, size_t n)
{
    looks l = { 0 };
    for (size_t i = first; i < first + n; i++) {
        float a = fabsf(c->x[i]);
        l.has_special |= !isfinite(a);
        l.has_zero |= a == 0;
        if (isfinite(a) && a > l.largest)
            l.largest = a;
    }
    return l;
}

/* Whether the decision speaks of this element's tile. */
static bool may_differ(const casting *c, const blob *b, size_t i)
{
    size_t first, n, size;
    size_t t = tile_of(c, i, &first, &n);
    looks l = look(c, first, n);
    const uint8_t *exponent = find(c, b, "exponent", &size), *scale = find(c, b, "scale", &size),
                  *zero = find(c, b, "zero", &size);
    int code = exponent ? short_at(exponent, t) : 0;
    bool may = false;
    may |= strchr(c->decision, '2') != NULL;                    /* all of it is another arithmetic */
    may |= strchr(c->decision, '3') && l.has_zero && l.largest < 0x1p-23f;
    may |= strchr(c->decision, '4') && (code < 0 || code > (1 << c->d->scale.exponent_bits) - 2);
    may |= strchr(c->decision, '5') && l.has_special;
    may |= strchr(c->decision, '6') && scale && (float_at(scale, t) < 0x1p-23f || float_at(scale, t) == 0);
    may |= strchr(c->decision, '6') && isnan(c->expected[i]);
    may |= strchr(c->decision, '7') && zero && !(float_at(zero, t) <= (float)c->d->zero.maxint);
    may |= strchr(c->decision, '9') && fabsf(c->y[i]) == c->expected[i];
    return may;
}

static void count_group(tally *t, const casting *c, bool differs)
{
    unsigned g = 0;
    while (g < t->groups && (strcmp(t->group[g].decision, c->decision) || strcmp(t->group[g].kind, c->kind)))
        g++;
    CHECK(g < sizeof t->group / sizeof t->group[0]);
    if (g == t->groups) {
        strcpy(t->group[g].decision, c->decision);
        strcpy(t->group[g].kind, c->kind);
        t->groups++;
    }
    t->group[g].cases++;
    t->group[g].differ += differs;
}

/* Sparsity alone: what is kept is as it was, what it is quantized to is not theirs. */
static void keep_only(casting *c)
{
    const tn_scaled_part *part = NULL;
    const uint8_t *mask = part_of(c, "mask", &part);
    size_t across = (size_t)c->shape[1];
    for (size_t i = 0; i < c->count; i++)
        c->y[i] = tn_packed_get(mask + i / across * ((across + 7) / 8), i % across, 1) ? c->x[i] : 0;
}

static void compare(casting *c, const blob *b, tally *t)
{
    bool listed = strcmp(c->decision, "-") != 0, differs = false;
    if (strncmp(c->datatype, "float16|float32_t", 17) == 0)
        keep_only(c);
    for (size_t i = 0; i < c->count; i++) {
        if (is_equal(c, c->y[i], c->expected[i]))
            continue;
        differs = true;
        if (strcmp(c->kind, "output") && strcmp(c->kind, "error"))
            fail_msg("%s: %s: value %zu: %a is %a, expected %a", c->id, c->datatype, i, (double)c->x[i],
                     (double)c->y[i], (double)c->expected[i]);
        if (!may_differ(c, b, i))
            fail_msg("%s: %s: value %zu: %a is %a, expected %a, and decision %s does not say why", c->id,
                     c->datatype, i, (double)c->x[i], (double)c->y[i], (double)c->expected[i], c->decision);
        CHECK(isnan(c->x[i]) || !isnan(c->y[i]));
    }
    t->ran++;
    t->matched += !listed;
    if (listed)
        count_group(t, c, differs);
    else
        check_rest(c, b);
}

/* --- without a scale ----------------------------------------------------------------------- */

/* unscaled.tsv says nothing of what differs: finite values that became NaN, and NaN where the type has
 * none. */
static void run_unscaled(casting *c, tally *t)
{
    bool slip = false, has_nan = false;
    for (size_t i = 0; i < c->count; i++) {
        slip |= isnan(c->expected[i]) && !isnan(c->x[i]);
        has_nan |= isnan(c->x[i]);
    }
    CHECK(tn_datatype_parse(c->datatype, &c->d, NULL) == TN_OK);
    strcpy(c->decision, has_nan && !tn_spec_has_nan(&c->d->number) ? "5" : slip ? "6" : "-");
    strcpy(c->kind, c->decision[0] == '5' ? "error" : slip ? "output" : "-");
    tn_datatype_free(c->d);
    run(c);
    for (size_t i = 0; i < c->count; i++)
        if (!is_equal(c, c->y[i], c->expected[i]) && !(isnan(c->expected[i]) && !isnan(c->y[i])))
            fail_msg("%s: %s: value %zu: %a is %a, expected %a", c->id, c->datatype, i, (double)c->x[i],
                     (double)c->y[i], (double)c->expected[i]);
    t->ran++;
    t->matched += c->decision[0] == '-';
    if (c->decision[0] != '-')
        count_group(t, c, true);
}

static void print_tally(const tally *t)
{
    print_message("%u cases, %u as TensorCast has them with all beside them; not followed:\n", t->ran,
                  t->matched);
    for (unsigned g = 0; g < t->groups; g++)
        print_message("decision %-4s %-9s %3u cases, values of %u differ\n", t->group[g].decision,
                      t->group[g].kind, t->group[g].cases, t->group[g].differ);
}

/* Every line of a list that is no comment, with the numbers beside it. */
static tally each_case(const char *list, const char *numbers,
                       void (*check)(char *line, const blob *b, tally *t))
{
    blob b = read_blob(numbers);
    FILE *file = fopen(list, "r");
    char line[400];
    tally t = { 0 };
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (line[0] != '#')
            check(line, &b, &t);
    fclose(file);
    free(b.data);
    print_tally(&t);
    return t;
}

static void check_scaled(char *line, const blob *b, tally *t)
{
    casting c = { 0 };
    read_case(&c, line, b);
    run(&c);
    compare(&c, b, t);
    clear(&c);
}

static void scaled_casts_give_tensorcasts_values_and_scales(void)
{
    tally t =
        each_case(TEST_GOLDEN "/tensorcast/scaled.tsv", TEST_GOLDEN "/tensorcast/scaled.zst", check_scaled);
    assert_int_equal(t.ran, 1394);
    assert_int_equal(t.matched, 1133);
    CHECK(stored_cases > 500);
}

static void check_unscaled(char *line, const blob *b, tally *t)
{
    casting c = { .mode = "max", .shape = { 1, 0 } };
    size_t in, out;
    CHECK(sscanf(line, "%19s %79s %11s %zu %zu %zu", c.id, c.datatype, c.rounding, &in, &c.count, &out) == 6);
    c.shape[1] = (int64_t)c.count;
    c.x = at(b, in * sizeof(float), c.count * sizeof(float));
    c.expected = at(b, out * sizeof(float), c.count * sizeof(float));
    run_unscaled(&c, t);
    clear(&c);
}

static void unscaled_casts_give_tensorcasts_values(void)
{
    tally t = each_case(TEST_GOLDEN "/tensorcast/unscaled.tsv", TEST_GOLDEN "/tensorcast/unscaled.zst",
                        check_unscaled);
    assert_int_equal(t.ran, 174);
    assert_int_equal(t.matched, 162);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(scaled_casts_give_tensorcasts_values_and_scales),
        TEST(unscaled_casts_give_tensorcasts_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
