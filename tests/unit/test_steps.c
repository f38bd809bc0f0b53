/* Steps in any order: slices, orders, shapes, what is cut and joined again, casts, codes and forms, against
 * index arithmetic on plain numbers. */
#include "support.h"

#include "convert.h"
#include "random.h"

#include <tenon/view.h>

#include <math.h>
#include <stdio.h>

enum { MOST = 4096, RULES = 8 };

/* A tensor as plain numbers. */
typedef struct numbers {
    uint32_t rank;
    int64_t  shape[8];
    int      value[MOST];
} numbers;

/* What is asked for, one rule after another. */
typedef struct chain {
    tn_rule rules[3 * RULES];
    char    text[3 * RULES][200];
    size_t  count;
} chain;

static const char *const types[] = { "uint8", "int4", "uint4", "float6_e2m3", "int16", "float32", "float16",
                                     "int64" };        /* all of them have 0 to 7 */

static int64_t count_of(const numbers *a)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < a->rank; i++)
        n *= a->shape[i];
    return n;
}

/* Dimension i of the result was order[i], of which every step[order[i]]th index from start on is taken. */
static void arrange(numbers *a, uint32_t rank, const uint32_t *order, const int64_t *extent,
                    const int64_t *start, const int64_t *step)
{
    static numbers b;
    int64_t stride[8], n = 1;
    for (uint32_t i = a->rank; i-- > 0; n *= a->shape[i])
        stride[i] = n;
    b.rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        b.shape[i] = extent[i];
    for (int64_t k = 0; k < count_of(&b); k++) {
        int64_t at = 0, rest = k;
        for (uint32_t i = 0; i < a->rank; i++)
            at += start[i] * stride[i];
        for (uint32_t i = rank; i-- > 0; rest /= extent[i])
            at += rest % extent[i] * step[order[i]] * stride[order[i]];
        b.value[k] = a->value[at];
    }
    *a = b;
}

static void say_rule(chain *c, const char *step, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->text[c->count], sizeof c->text[0], format, args);
    va_end(args);
    c->rules[c->count] = (tn_rule){ step, c->text[c->count] };
    c->count++;
}

static void slice(numbers *a, chain *c)
{
    char text[160] = "";
    uint32_t order[8], rank = 0;
    int64_t extent[8], start[8], step[8];
    for (uint32_t i = 0; i < a->rank; i++) {
        bool index = below(6) == 0;
        start[i] = (int64_t)below((uint64_t)a->shape[i]);
        step[i] = index ? 1 : 1 + (int64_t)below(3);
        int64_t stop = start[i] + 1 + (int64_t)below((uint64_t)(a->shape[i] - start[i]));
        size_t n = strlen(text);
        if (index)
            snprintf(text + n, sizeof text - n, "%s%d", i ? "," : "", (int)(start[i] - (below(2) ? a->shape[i] : 0)));
        else
            snprintf(text + n, sizeof text - n, "%s%d:%d:%d", i ? "," : "", (int)start[i], (int)stop, (int)step[i]);
        if (index)
            continue;
        extent[rank] = (stop - start[i] - 1) / step[i] + 1;
        order[rank++] = i;
    }
    if (!a->rank)
        return;
    say_rule(c, "slice", "t=%s", text);
    arrange(a, rank, order, extent, start, step);
}

static void transpose(numbers *a, chain *c)
{
    char text[160] = "";
    uint32_t order[8];
    int64_t extent[8], start[8] = { 0 }, step[8];
    for (uint32_t i = 0; i < a->rank; i++)
        order[i] = i;
    for (uint32_t i = a->rank; i > 1; i--) {
        uint32_t k = (uint32_t)below(i), other = order[i - 1];
        order[i - 1] = order[k];
        order[k] = other;
    }
    for (uint32_t i = 0; i < a->rank; i++) {
        extent[i] = a->shape[order[i]];
        step[i] = 1;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u", i ? "," : "", order[i]);
    }
    if (!a->rank)
        return;
    say_rule(c, "transpose", "%s%s", below(2) ? "t=" : "", text);
    arrange(a, a->rank, order, extent, start, step);
}

static void reshape(numbers *a, chain *c)
{
    char text[160] = "";
    int64_t left = count_of(a), shape[8];
    uint32_t rank = 1 + (uint32_t)below(4), rest = (uint32_t)below(5);
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = i + 1 == rank ? left : 1 + (int64_t)below(4);
        while (left % shape[i])
            shape[i]--;
        left /= shape[i];
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? "," : "",
                 i == rest ? -1 : (int)shape[i]);
    }
    say_rule(c, "reshape", "t=%s", text);
    a->rank = rank;
    memcpy(a->shape, shape, sizeof shape);
}

/* Cut in two along a dimension, and joined the other way round. */
static void turn(numbers *a, chain *c)
{
    static numbers b;
    uint32_t axis = a->rank ? (uint32_t)below(a->rank) : 0;
    if (!a->rank)
        return;
    int64_t first = (int64_t)below((uint64_t)a->shape[axis] + 1), inner = 1, extent = a->shape[axis];
    say_rule(c, "split", "t=a+b.x,axis=%u,sizes=%d+%d", axis, (int)first, (int)(extent - first));
    say_rule(c, "concat", "t=b.x+a,axis=%d", (int)axis - (below(2) ? (int)a->rank : 0));
    for (uint32_t i = axis + 1; i < a->rank; i++)
        inner *= a->shape[i];
    b = *a;
    for (int64_t k = 0; k < count_of(a); k++) {
        int64_t at = k / inner % extent, from = (at + first) % extent;
        a->value[k] = b.value[k + (from - at) * inner];
    }
}

/* One tensor per index of a dimension, and these stacked along another. */
static void restack(numbers *a, chain *c)
{
    uint32_t order[8], n = 0;
    int64_t extent[8], start[8] = { 0 }, step[8];
    if (!a->rank)
        return;
    uint32_t from = (uint32_t)below(a->rank), to = (uint32_t)below(a->rank);
    say_rule(c, "split", "t=p.*,unstack=%u", from);
    say_rule(c, "concat", "t=p.*,stack=%u", to);
    for (uint32_t i = 0, k = 0; i < a->rank; i++) {
        k += k == from;
        order[i] = i == to ? from : k++;
        extent[i] = a->shape[order[i]];
        step[i] = 1;
        n++;
    }
    arrange(a, n, order, extent, start, step);
}

/* Some indices more of each dimension, which the step after it has as elements. */
static void pad(numbers *a, chain *c)
{
    static numbers b;
    char text[160] = "";
    int value = (int)below(8);
    b = *a;
    for (uint32_t i = 0; i < a->rank; i++) {
        int64_t to = 1 + (int64_t)below(5);
        b.shape[i] = (a->shape[i] + to - 1) / to * to;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%u=%d,", i, (int)to);
    }
    if (!a->rank || count_of(&b) > MOST / 4)
        return;
    for (int64_t k = 0; k < count_of(&b); k++) {
        int64_t at = 0, rest = k, stride = 1;
        bool inside = true;
        for (uint32_t i = a->rank; i-- > 0; rest /= b.shape[i], stride *= a->shape[i]) {
            inside &= rest % b.shape[i] < a->shape[i];
            at += rest % b.shape[i] * stride;
        }
        b.value[k] = inside ? a->value[at] : value;
    }
    *a = b;
    say_rule(c, "pad", "t=%svalue=%d", text, value);
    if (below(2))
        say_rule(c, "cast", "t=%s", types[below(sizeof types / sizeof *types)]);
    reshape(a, c);
}

static void cast(numbers *a, chain *c)
{
    (void)a;
    say_rule(c, "cast", "*=%s", types[below(sizeof types / sizeof *types)]);
}

/* Entries, with another type and in another form, and dense again. */
static void make_sparse(numbers *a, chain *c)
{
    bool has_rows = a->rank == 2 || a->rank == 3;
    const char *forms[] = { "coo", has_rows ? "csr" : "coo" };
    if (!a->rank || c->count > 2 * RULES)
        return;
    say_rule(c, "cast", "t=float32");
    say_rule(c, "form", "t=%s", forms[below(2)]);
    if (below(2))
        say_rule(c, "cast", "t=%s", below(2) ? "int16" : "float16");
    if (below(2))
        say_rule(c, "form", "t=%s", forms[below(2)]);
    say_rule(c, "form", "t=dense");
}

/* Codes in which all of the numbers have their values, other codes of these, and values. */
static void encode(numbers *a, chain *c)
{
    const char *codes[] = { "mxfp8", a->rank > 1 ? "mxfp8s" : "mxfp8e4" };
    if (!a->rank || c->count > 2 * RULES)
        return;
    say_rule(c, "cast", "t=float32");
    say_rule(c, "cast", "t=%s", codes[below(2)]);
    if (below(2))
        say_rule(c, "cast", "t=%s", codes[below(2)]);
    say_rule(c, "cast", "t=%s", below(2) ? "float32" : "float16");
}

static void check_result(const numbers *want, const chain *c)
{
    tn_file *f = open_file("out.zt");
    const tn_tensor *t = tn_file_find(f, "t");
    assert_non_null(t);
    bool same = t->rank == want->rank;
    for (uint32_t i = 0; i < want->rank && same; i++)
        same = t->shape[i] == want->shape[i];
    for (int64_t k = 0; k < count_of(want) && same; k++) {
        tn_value v = tn_value_get(t->dtype, t->parts[0].data, (uint64_t)k);
        same = (v.kind == TN_KIND_FLOAT ? v.re : v.kind == TN_KIND_INT ? (double)v.i : (double)v.u) == want->value[k];
    }
    for (size_t i = 0; i < c->count && !same; i++)
        print_error("%s \"%s\"\n", c->rules[i].step, c->rules[i].text);
    CHECK(same);
    tn_close(f);
}

static void random_numbers(numbers *a)
{
    *a = (numbers){ .rank = 1 + (uint32_t)below(4) };
    for (uint32_t i = 0; i < a->rank; i++)
        a->shape[i] = 1 + (int64_t)below(7);
    for (int64_t i = 0; i < count_of(a); i++)
        a->value[i] = (int)below(8);
}

/* The numbers as a tensor of some type in a file, compressed or not. */
static void write_numbers(const numbers *a)
{
    static uint8_t values[MOST], data[16 * MOST];
    simple s = { .name = "t", .dtype = tn_dtype_parse(types[below(sizeof types / sizeof *types)]),
                 .rank = a->rank, .data = data };
    memcpy(s.shape, a->shape, a->rank * sizeof *a->shape);
    for (int64_t i = 0; i < count_of(a); i++)
        values[i] = (uint8_t)a->value[i];
    const tn_array to = { s.dtype, a->rank, a->shape, NULL }, from = { TN_UINT8, a->rank, a->shape, NULL };
    CHECK(tn_cast(&to, data, &from, values, TN_LITTLE_ENDIAN, NULL, NULL) == TN_OK);
    write_file("in.zt", (tn_create_options){ .replace = true, .encoding = below(3) ? TN_ENCODING_RAW
                                                                                   : TN_ENCODING_ZSTD }, &s, 1);
}

static void any_order_of_steps_is_right_element_by_element(void)
{
    static void (*const steps[])(numbers *, chain *) = { slice, transpose, reshape, turn, restack, cast,
                                                         pad, make_sparse, encode };
    static numbers a;
    for (int round = 0; round < 400; round++) {
        chain c = { .count = 0 };
        random_numbers(&a);
        write_numbers(&a);
        for (unsigned n = 1 + (unsigned)below(5); n > 0 && c.count < RULES; n--)
            steps[below(sizeof steps / sizeof *steps)](&a, &c);
        tn_file *f = open_file("in.zt");
        const tn_create_options create = { .size = sizeof create, .replace = true,
                                           .jobs = 1 + (unsigned)below(2) };
        const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = c.rules, .nrules = c.count,
                                       .in_order = true, .encoding = TN_CHOOSE };
        tn_error err = { .text = "" };
        if (tn_convert(f, in_folder("out.zt").text, &o, NULL, &err)) {
            for (size_t i = 0; i < c.count; i++)
                print_error("%s \"%s\"\n", c.rules[i].step, c.rules[i].text);
            fail_msg("%s", line_of(&err));
        }
        tn_close(f);
        check_result(&a, &c);
    }
}

static tn_view *open_a_view(tn_file *f, const char *name)
{
    tn_view *v = NULL;
    CHECK(tn_view_open(f, tn_file_find(f, name), &v, NULL) == TN_OK);
    return v;
}

static void views_take_steps_by_name_and_are_joined(void)
{
    static const float data[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
    static const simple tensors[] = {
        { .name = "a", .dtype = TN_FLOAT32, .rank = 2, .shape = { 3, 4 }, .data = data },
        { .name = "b", .dtype = TN_FLOAT32, .rank = 2, .shape = { 6, 1 }, .data = data },
    };
    static const char *const wrong[][2] = { { "slice", "9" }, { "slice", "a=1" }, { "concat", "x=y" },
                                            { "turn", "1" }, { "reshape", "5,5" }, { "cast", "nothing" },
                                            { "transpose", "2,1,0" } };
    write_file("in.zt", (tn_create_options){ .replace = true }, tensors, 2);
    tn_file *f = open_file("in.zt");
    tn_view *v[2] = { open_a_view(f, "a"), open_a_view(f, "b") }, *both = NULL;
    tn_error err = { .text = "" };
    uint8_t half[12];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_view *before = v[0];
        CHECK(tn_view_add(&v[0], wrong[i][0], wrong[i][1], &err) == TN_ERR_ARGUMENT && v[0] == before);
    }
    CHECK(tn_view_add(&v[0], "slice", "0:2,1::2", &err) == TN_OK);         /* 1 3, 5 7 */
    CHECK(tn_view_join(v, 2, "c", NULL, &both, &err) == TN_ERR_ARGUMENT && !both);
    CHECK(tn_view_add(&v[1], "slice", "-1:2:1", &err) == TN_OK);           /* nothing */
    CHECK(tn_view_tensor(v[1])->shape[0] == 0);
    tn_view_close(v[1]);
    v[1] = open_a_view(f, "a");
    CHECK(tn_view_add(&v[1], "slice", "2:,1::2", &err) == TN_OK);          /* 9 11 */
    CHECK(tn_view_join((tn_view *[]){ v[0], v[0] }, 2, "c", "", &both, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_view_join(v, 2, "c", "axis=0", &both, &err) == TN_OK);
    CHECK(tn_view_add(&both, "cast", "float16", &err) == TN_OK);
    CHECK(tn_view_add(&both, "transpose", "1,0", &err) == TN_OK);
    CHECK(tn_view_add(&both, "reshape", "-1", &err) == TN_OK && tn_view_tensor(both)->rank == 1);
    CHECK(strcmp(tn_view_tensor(both)->name, "c") == 0 && tn_view_tensor(both)->shape[0] == 6);
    CHECK(tn_view_read(both, 0, 0, 6, half, sizeof half, &err) == TN_OK);
    for (uint64_t i = 0; i < 6; i++)            /* 1 5 9, 3 7 11 */
        CHECK(tn_value_get(TN_FLOAT16, half, i).re == (i < 3 ? 1 + 4 * (double)i : 3 + 4 * (double)(i - 3)));
    tn_view_close(both);
    both = open_a_view(f, "a");
    CHECK(tn_view_add(&both, "cast", "mxfp4", &err) == TN_OK && tn_view_tensor(both)->form == TN_FORM_SCALED);
    CHECK(tn_view_add(&both, "reshape", "-1", &err) == TN_ERR_UNSUPPORTED);
    tn_view_close(both);
    tn_close(f);
}

static tn_status convert_by(const tn_rule *rules, size_t n, tn_error *err)
{
    static const float data[24] = { 1, 2, 3 };
    static const simple tensors[] = {
        { .name = "a.0", .dtype = TN_FLOAT32, .rank = 2, .shape = { 4, 6 }, .data = data },
        { .name = "a.1", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 6 }, .data = data },
        { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { 6 }, .data = data },
    };
    write_file("in.zt", (tn_create_options){ .replace = true }, tensors, 3);
    tn_file *f = open_file("in.zt");
    const tn_create_options create = { .size = sizeof create, .replace = true };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = rules, .nrules = n };
    tn_status status = tn_convert(f, in_folder("out.zt").text, &o, NULL, err);
    tn_close(f);
    return status;
}

static void what_does_not_fit_is_refused_with_a_reason(void)
{
    static const struct { tn_rule rule; const char *why; } cases[] = {
        { { "slice", "a.0=9" }, "tensor \"a.0\": expected an index of dimension 0 from -4 to 3 but found 9" },
        { { "slice", "b=0,0" }, "it has 1 dimension but the slice has 2" },
        { { "transpose", "a.0=1,0,2" }, "it has 2 dimensions but the order has 3" },
        { { "reshape", "a.0=5,5" }, "expected a shape of its 24 elements but found one of 25" },
        { { "reshape", "a.0=5,-1" }, "its 24 elements are no multiple of 5" },
        { { "concat", "c=a.0+b" }, "tensor \"a.0\": expected tensors of one type to join but found float32 and uint8 of \"b\": "
          "cast them to one (cast)" },
        { { "concat", "c=a.*,axis=1" }, "expected tensors of 4 indices of dimension 0 to join but found 2 of \"a.1\"" },
        { { "concat", "c=a.*,stack=0" }, "expected tensors of 4 indices of dimension 0 to join but found 2 of \"a.1\"" },
        { { "concat", "c=a.*,axis=2" }, "expected one of its 2 dimensions to join along but found 2" },
        { { "concat", "c=x+y" }, "no tensor matches" },
        { { "concat", "c=a.*+x" }, "tensor \"c\": no tensor matches \"x\"" },
        { { "concat", "c=a.0+a.0" }, "no tensor matches \"a.0\", or earlier globs take them all" },
        { { "split", "a.0=x+y+z" }, "its 4 indices are no multiple of 3 pieces: name their sizes" },
        { { "split", "a.0=x+y,sizes=1+2" }, "expected sizes of 4 indices together but found 3" },
        { { "split", "a.0=x+y+z,sizes=9223372036854775807+1+5" }, "of 4 indices together but found 2^63 or more" },
        { { "split", "b=x+y,axis=1" }, "expected one of its 1 dimensions to split but found 1" },
        { { "split", "a.*=x+y" }, "x" },       /* two tensors of one name */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_error err = { .text = "" };
        tn_status status = convert_by(&cases[i].rule, 1, &err);
        if (!status || !strstr(line_of(&err), cases[i].why))
            fail_msg("%s \"%s\": %s", cases[i].rule.step, cases[i].rule.text, line_of(&err));
        CHECK(access(in_folder("out.zt").text, F_OK) != 0);
    }
}

static void texts_that_are_no_rules_are_refused(void)
{
    static const tn_rule wrong[] = {
        { "slice", "" }, { "slice", "a=1:2:0" }, { "slice", "a=1:2:-1" }, { "slice", "1:2:3:4" },
        { "slice", "x" }, { "slice", "=1" }, { "transpose", "0,0" }, { "transpose", "1,2" },
        { "transpose", "-1,0" }, { "transpose", "" }, { "reshape", "-1,-1" }, { "reshape", "-2" },
        { "reshape", "1,,2" }, { "concat", "a+b" }, { "concat", "c=a++b" }, { "concat", "c.*=a+b" },
        { "concat", "c=a+b,axis=x" }, { "concat", "c=a+b,axis=0,stack=0" }, { "concat", "c=a,sizes=1" },
        { "split", "a" }, { "split", "a=b.*" }, { "split", "a=b+c,sizes=1" }, { "split", "a=b,unstack=0" },
        { "split", "a=b+c,sizes=1+x" }, { "split", "a=b+c,sizes=1+2,sizes=1+2" }, { "turn", "a" },
    };
    static const tn_rule right[] = {
        { "slice", "0" }, { "slice", ":" }, { "slice", "::2,-1,3:" }, { "transpose", "0" }, { "reshape", "-1" },
        { "reshape", "0,3" }, { "concat", "c=a+b" }, { "concat", "l.*.w=l.*.e.*.w,stack=-1" },
        { "split", "qkv.*=q.*+k.*+v.*,axis=-1,sizes=4+2+2" }, { "split", "w.*=e.*.*,unstack=0" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = { .text = "" };
        if (tn_rule_check(&wrong[i], NULL, &err) != TN_ERR_ARGUMENT || !err.text[0])
            fail_msg("%s \"%s\" is taken", wrong[i].step, wrong[i].text);
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        CHECK(tn_rule_check(&right[i], NULL, NULL) == TN_OK && tn_rule_makes(&right[i], NULL) == 0);
}

static void names_of_joined_tensors_are_in_the_order_of_their_numbers(void)
{
    static float data[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
    static const char *const names[] = { "m.10.w", "m.9.w", "m.2.w", "n.3.w", "n.1.w" };
    static const tn_rule rules[] = { { "concat", "*=*.*.w" } };
    simple tensors[5];
    for (int i = 0; i < 5; i++)
        tensors[i] = (simple){ .name = names[i], .dtype = TN_FLOAT32, .rank = 1, .shape = { 1 }, .data = &data[i] };
    write_file("in.zt", (tn_create_options){ .replace = true }, tensors, 5);
    tn_file *f = open_file("in.zt");
    const tn_convert_options o = { .size = sizeof o, .rules = rules, .nrules = 1 };
    CHECK(tn_convert(f, in_folder("out.zt").text, &o, NULL, NULL) == TN_OK);
    tn_close(f);
    f = open_file("out.zt");
    CHECK(tn_file_count(f) == 2);
    const float m[] = { 2, 1, 0 }, n[] = { 4, 3 };
    CHECK(memcmp(tn_file_find(f, "m")->parts[0].data, m, sizeof m) == 0);
    CHECK(memcmp(tn_file_find(f, "n")->parts[0].data, n, sizeof n) == 0);
    tn_close(f);
}

/* Writes tensors of no elements, converts them by rules one after another. */
static tn_status convert_empty(const char *name, int64_t extent, const tn_rule *rules, size_t n, tn_error *err)
{
    const simple empty = { .name = name, .dtype = TN_FLOAT32, .rank = 2, .shape = { extent, 0 }, .data = "" };
    write_file("in.zt", (tn_create_options){ .replace = true }, &empty, 1);
    tn_file *f = open_file("in.zt");
    const tn_create_options create = { .size = sizeof create, .replace = true };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = rules, .nrules = n,
                                   .in_order = true };
    tn_status status = tn_convert(f, in_folder("out.zt").text, &o, NULL, err);
    tn_close(f);
    return status;
}

static void what_a_few_bytes_become_is_limited(void)
{
    static const tn_rule unstack = { "split", "w=p.*,unstack=0" };
    tn_rule again[16];
    tn_error err = { .text = "" };
    CHECK(convert_empty("w", (1 << 18) + 1, &unstack, 1, &err) == TN_ERR_LIMIT);
    CHECK(strstr(line_of(&err), "tensor \"w\": expected at most 262144 tensors"));
    for (int i = 0; i < 16; i += 2) {           /* each source is read 16 times as often after two of them */
        again[i] = (tn_rule){ "split", "w=a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p" };
        again[i + 1] = (tn_rule){ "concat", "w=a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p" };
    }
    CHECK(convert_empty("w", 16, again, 6, &err) == TN_OK);
    CHECK(convert_empty("w", 16, again, 16, &err) == TN_ERR_LIMIT);
    CHECK(strstr(line_of(&err), "expected at most 65535 tensors to join"));
    static tn_rule same[65];
    for (int i = 0; i < 65; i++)
        same[i] = (tn_rule){ "cast", "f32" };
    CHECK(convert_empty("w", 16, same, 64, &err) == TN_OK);
    CHECK(convert_empty("w", 16, same, 65, &err) == TN_ERR_LIMIT);
    CHECK(strstr(line_of(&err), "expected at most 64 rules for a tensor"));
}

static void stars_are_matched_without_trying_all_that_they_could_be(void)
{
    static const tn_rule rule = { "concat", "*.*=*a*a*a*a*a*a*a*a*a*a*b" }, found = { "concat", "*.*=*a*a*b*" };
    static char name[2001];
    tn_error err = { .text = "" };
    memset(name, 'a', sizeof name - 1);
    CHECK(convert_empty(name, 1, &rule, 1, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "no tensor matches"));
    CHECK(convert_empty("xaayaabab", 1, &found, 1, &err) == TN_OK);
    tn_file *f = open_file("out.zt");
    CHECK(strcmp(tn_file_tensor(f, 0)->name, "x.") == 0);
    tn_close(f);
}

static void a_glob_may_have_as_many_stars_as_it_has_room_for(void)
{
    char text[3 * 255], name[256] = "";
    tn_error err = { .text = "" };
    for (int i = 0; i < 120; i++)
        strcat(name, "ab");
    for (size_t stars = 15; stars <= 120; stars += 15) {       /* a new name of that many b */
        const tn_rule rule = { "concat", text };
        memset(text, '*', stars);
        strcpy(text + stars, "=");
        for (size_t i = 0; i < 120; i++)
            strcat(text, i < stars ? "a*" : "ab");
        CHECK(convert_empty(name, 1, &rule, 1, &err) == TN_OK);
        tn_file *f = open_file("out.zt");
        const char *made = tn_file_tensor(f, 0)->name;
        CHECK(strlen(made) == stars && strspn(made, "b") == stars);
        tn_close(f);
    }
    char many[600] = "w=";              /* and one that counts may have more */
    memset(many + 2, '*', 500);
    strcpy(many + 502, "b");
    CHECK(convert_empty(name, 1, &(tn_rule){ "concat", many }, 1, &err) == TN_OK);
    many[502] = 'c';
    CHECK(convert_empty(name, 1, &(tn_rule){ "concat", many }, 1, &err) == TN_ERR_ARGUMENT);
}

static void a_tensor_that_has_no_indices_is_not_cut_at_each_of_them(void)
{
    static const tn_rule unstack[] = { { "split", "w=p.*,unstack=0" }, { "split", "w=p.*,unstack=-1" } };
    tn_error err = { .text = "" };
    CHECK(convert_empty("w", 0, unstack, 1, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "tensor \"w\": expected at least one index to cut it at but dimension 0 has none"));
    CHECK(convert_empty("w", 3, &unstack[1], 1, &err) == TN_ERR_ARGUMENT);
    CHECK(convert_empty("w", 3, unstack, 1, &err) == TN_OK);
}

static void a_step_beyond_the_dimension_takes_one_index(void)
{
    static const tn_rule rule = { "slice", "a.0=1::9223372036854775807,2:3:9223372036854775807" };
    tn_error err = { .text = "" };
    CHECK(convert_by(&rule, 1, &err) == TN_OK);
    tn_file *f = open_file("out.zt");
    const tn_tensor *t = tn_file_find(f, "a.0");
    CHECK(t->rank == 2 && t->shape[0] == 1 && t->shape[1] == 1);
    tn_close(f);
}

static void compressed_codes_are_sliced_beside_their_scales(void)
{
    static const tn_rule cast = { "cast", "a.0=int8,per=tensor,scale=1" }, slice = { "slice", "a.0=0:1,1:3" };
    static const tn_create_options create = { .size = sizeof create, .replace = true,
                                              .encoding = TN_ENCODING_ZSTD };
    tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &cast, .nrules = 1,
                             .encoding = TN_CHOOSE };
    tn_error err = { .text = "" };
    CHECK(convert_by(&slice, 1, &err) == TN_OK);        /* writes in.zt */
    tn_file *f = open_file("in.zt");
    CHECK(tn_convert(f, in_folder("codes.zt").text, &o, NULL, NULL) == TN_OK);
    tn_close(f);
    f = open_file("codes.zt");
    o.rules = &slice;
    CHECK(tn_convert(f, in_folder("out.zt").text, &o, NULL, NULL) == TN_OK);
    tn_close(f);
    f = open_file("out.zt");
    const tn_tensor *t = tn_file_find(f, "a.0");
    float values[2];
    CHECK(t->scaling && t->rank == 2 && t->shape[0] == 1 && t->shape[1] == 2);
    CHECK(tn_read(f, t, TN_FLOAT32, values, sizeof values, NULL) == TN_OK);
    CHECK(values[0] == 2 && values[1] == 3);
    tn_close(f);
}

static const tn_rule layouts[] = { { "layout", "a.0=NC,from=NC" }, { "layout", "a.1=CN,from=CN" } };

/* in.zt has tensors with layouts, and is converted by one more rule. */
static tn_status convert_layouts(const tn_rule *rule, tn_error *err)
{
    static const tn_create_options create = { .size = sizeof create, .replace = true };
    tn_convert_options o = { .size = sizeof o, .create = &create, .rules = layouts, .nrules = 2 };
    CHECK(convert_by(layouts, 2, err) == TN_OK);
    tn_file *f = open_file("out.zt");
    o.rules = rule;
    o.nrules = 1;
    tn_status status = tn_convert(f, in_folder("new.zt").text, &o, NULL, err);
    tn_close(f);
    return status;
}

static void layouts_lose_the_letters_of_dimensions_that_go(void)
{
    static const tn_rule index = { "slice", "a.*=0" }, turn = { "transpose", "a.*=1,0" };
    static const char *const expected[2][2] = { { "C", "N" }, { "CN", "NC" } };
    for (int i = 0; i < 2; i++) {
        CHECK(convert_layouts(i ? &turn : &index, NULL) == TN_OK);
        tn_file *f = open_file("new.zt");
        CHECK(strcmp(tn_file_find(f, "a.0")->layout, expected[i][0]) == 0);
        CHECK(strcmp(tn_file_find(f, "a.1")->layout, expected[i][1]) == 0);
        tn_close(f);
    }
}

static void tensors_of_different_layouts_are_not_joined(void)
{
    static const tn_rule join = { "concat", "c=a.*" };
    tn_error err = { .text = "" };
    CHECK(convert_layouts(&join, &err) == TN_ERR_ARGUMENT);
    CHECK(strstr(line_of(&err), "expected tensors of one layout to join but found NC and CN of \"a.1\""));
}

/* Joins a.0, a.1 and a.2, of which some have a layout; the layout of the result or why there is none. */
static const char *layout_joined(const char *const layouts_of[3], const char *how)
{
    static char result[TN_ERROR_LINE];
    static const uint8_t data[4];
    const int64_t shape[] = { 2, 2 };
    const tn_rule rule = { "concat", how };
    const tn_create_options create = { .size = sizeof create, .replace = true };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1 };
    const tn_part part = { .role = "data", .array = { TN_UINT8, 2, shape, NULL }, .nbytes = 4, .data = data };
    tn_tensor t[3];
    for (int i = 0; i < 3; i++)
        t[i] = (tn_tensor){ .name = (const char *[]){ "a.0", "a.1", "a.2" }[i], .dtype = TN_UINT8, .rank = 2,
                            .shape = shape, .parts = &part, .nparts = 1, .layout = layouts_of[i] };
    tn_error err = { .text = "" };
    CHECK(try_write_tensors("in.zt", create, (const tn_tensor *const[]){ &t[0], &t[1], &t[2] }, 3, &err) == TN_OK);
    tn_file *f = open_file("in.zt");
    tn_status status = tn_convert(f, in_folder("out.zt").text, &o, NULL, &err);
    tn_close(f);
    if (status)
        return said_of(&err);
    f = open_file("out.zt");
    snprintf(result, sizeof result, "%s", tn_file_tensor(f, 0)->layout ? tn_file_tensor(f, 0)->layout : "none");
    tn_close(f);
    return result;
}

static void a_layout_that_some_have_is_that_of_all_that_are_joined(void)
{
    static const struct { const char *layouts[3], *result; } cases[] = {
        { { "NC", NULL, NULL }, "NC" }, { { NULL, "NC", NULL }, "NC" }, { { NULL, NULL, "NC" }, "NC" },
        { { NULL, NULL, NULL }, "none" }, { { "NC", NULL, "NC" }, "NC" },
        { { NULL, "NC", "CN" }, "tensor \"a.0\": expected tensors of one layout to join but found NC and CN of "
                                "\"a.2\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(layout_joined(cases[i].layouts, "c=a.*"), cases[i].result);
    assert_string_equal(layout_joined(cases[0].layouts, "c=a.*,stack=0"), "none");     /* no letter for it */
}

static void all_that_is_joined_is_decoded_and_what_is_cut_once(void)
{
    static const uint8_t zeros[1 << 16];
    static const tn_rule rules[] = { { "concat", "w=w.*" }, { "split", "w.0=p.*,unstack=0" } };
    simple tensors[4];
    for (int i = 0; i < 4; i++)
        tensors[i] = (simple){ .name = (const char *[]){ "w.0", "w.1", "w.2", "w.3" }[i], .dtype = TN_UINT8,
                               .rank = 2, .shape = { 16, 1 << 12 }, .data = zeros };
    for (int i = 0; i < 2; i++) {
        tn_error err = { .text = "" };
        write_file("in.zt", (tn_create_options){ .replace = true, .encoding = TN_ENCODING_ZSTD }, tensors,
                   i ? 1 : 4);
        tn_file *f = open_file("in.zt");
        const tn_convert_options o = { .size = sizeof o, .rules = &rules[i], .nrules = 1, .max_bytes = 100000,
                                       .encoding = TN_CHOOSE };
        tn_status status = tn_convert(f, in_folder("out.zt").text, &o, NULL, &err);
        CHECK(status == (i ? TN_OK : TN_ERR_LIMIT));
        CHECK(i || strstr(line_of(&err), "4 tensors, the largest is \"w.0\""));
        tn_close(f);
    }
}

/* What becomes of the metadata of w.0, w.1 and w.2 when they are joined: "KEY=VALUE ..." or why nothing does. */
static const char *meta_joined(const tn_meta meta[3][2], const uint32_t nmeta[3], bool drop)
{
    static char result[TN_ERROR_LINE];
    static const tn_rule rule = { "concat", "w=w.*" };
    static const uint8_t data[1];
    simple tensors[3];
    for (int i = 0; i < 3; i++)
        tensors[i] = (simple){ .name = (const char *[]){ "w.0", "w.1", "w.2" }[i], .dtype = TN_UINT8, .rank = 1,
                               .shape = { 1 }, .data = data, .meta = meta[i], .nmeta = nmeta[i] };
    const tn_create_options create = { .size = sizeof create, .replace = true, .drop_metadata = drop };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1 };
    tn_error err = { .text = "" };
    write_file("in.zt", (tn_create_options){ .replace = true }, tensors, 3);
    tn_file *f = open_file("in.zt");
    tn_status status = tn_convert(f, in_folder("out.zt").text, &o, NULL, &err);
    tn_close(f);
    if (status)
        return said_of(&err);
    f = open_file("out.zt");
    const tn_tensor *t = tn_file_find(f, "w");
    result[0] = '\0';
    for (uint32_t i = 0; i < t->nmeta; i++)
        snprintf(result + strlen(result), sizeof result - strlen(result), "%s=%s ", t->meta[i].key, t->meta[i].text);
    tn_close(f);
    return result;
}

static void metadata_that_all_joined_tensors_have_is_kept_and_no_other_is_lost(void)
{
#define LOST(tensor, key) "tensor \"" tensor "\": its metadata \"" key "\" is not that of \"w.0\", which it is joined to " \
                          "(drop_metadata)"
    static const struct { tn_meta meta[3][2]; uint32_t nmeta[3]; const char *result, *dropped; } cases[] = {
        { { { { .key = "a", .text = "1" }, { .key = "b", .text = "2" } },
            { { .key = "b", .text = "2" }, { .key = "a", .text = "1" } },
            { { .key = "a", .text = "1" }, { .key = "b", .text = "2" } } }, { 2, 2, 2 }, "a=1 b=2 ", "a=1 b=2 " },
        { { { { .key = "a", .text = "1" } }, { { .key = "a", .text = "2" } }, { { .key = "a", .text = "1" } } },
          { 1, 1, 1 }, LOST("w.1", "a"), "" },
        { { { { .key = "a", .text = "1" }, { .key = "b", .text = "2" } },
            { { .key = "a", .text = "1" }, { .key = "b", .text = "2" } },
            { { .key = "a", .text = "1" } } }, { 2, 2, 1 }, LOST("w.2", "b"), "a=1 " },
        { { { { .key = "b", .text = "2" } }, { { .key = "b", .text = "2" } },
            { { .key = "a", .text = "1" }, { .key = "b", .text = "2" } } }, { 1, 1, 2 }, LOST("w.2", "a"), "b=2 " },
        { { { { .key = NULL } }, { { .key = "a", .text = "1" } }, { { .key = NULL } } }, { 0, 1, 0 },
          LOST("w.1", "a"), "" },
        { { { { .key = NULL } } }, { 0, 0, 0 }, "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(meta_joined(cases[i].meta, cases[i].nmeta, false), cases[i].result);
        assert_string_equal(meta_joined(cases[i].meta, cases[i].nmeta, true), cases[i].dropped);
    }
}

/* Of tensors a.0 (float32), a.1 (float16) and b (uint8), joined and cast so; why not, or "". */
static const char *join_types(const char *globs, const char *cast, float *values)
{
    static const float single[2] = { 1.5f, 3e9f };
    static const uint16_t half[2] = { 0x4000, 0x3c00 };         /* 2, 1 */
    static const uint8_t whole[2] = { 3, 255 };
    static const simple tensors[] = {
        { .name = "a.0", .dtype = TN_FLOAT32, .rank = 1, .shape = { 2 }, .data = single },
        { .name = "a.1", .dtype = TN_FLOAT16, .rank = 1, .shape = { 2 }, .data = half },
        { .name = "b", .dtype = TN_UINT8, .rank = 1, .shape = { 2 }, .data = whole },
    };
    char text[40];
    snprintf(text, sizeof text, "j=%s", globs);
    const tn_rule rules[] = { { "concat", text }, { "cast", cast ? cast : "" } };
    const tn_create_options create = { .size = sizeof create, .replace = true };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = rules, .nrules = cast ? 2 : 1 };
    tn_error err = { .text = "" };
    write_file("in.zt", (tn_create_options){ .replace = true }, tensors, 3);
    tn_file *f = open_file("in.zt");
    tn_status status = tn_convert(f, in_folder("out.zt").text, &o, NULL, &err);
    tn_close(f);
    if (status)
        return said_of(&err);
    f = open_file("out.zt");
    const tn_tensor *t = tn_file_find(f, "j");
    CHECK(tn_read(f, t, TN_FLOAT32, values, (size_t)t->shape[0] * sizeof *values, NULL) == TN_OK);
    tn_close(f);
    return "";
}

static void tensors_of_different_types_are_joined_as_what_they_are_cast_to(void)
{
    static const float all[] = { 1.5f, 3e9f, 2, 1, 3, 255 }, twice[] = { 3, 6e9f, 4, 2, 6, 510 },
                       half[] = { 1.5f, INFINITY, 2, 1, 3, 255 }, near[] = { 0, 3221225472.0f, 0, 0 };
    float found[6];
    assert_string_equal(join_types("a.*+b", "j=f32", found), "");
    CHECK(memcmp(found, all, sizeof all) == 0);
    assert_string_equal(join_types("a.*+b", "j=f32,times=2", found), "");      /* each once */
    CHECK(memcmp(found, twice, sizeof twice) == 0);
    assert_string_equal(join_types("a.*+b", "j=f16", found), "");
    CHECK(memcmp(found, half, sizeof half) == 0);
    assert_string_equal(join_types("a.*", "j=mxfp4", found), "");              /* as float32 values */
    CHECK(memcmp(found, near, sizeof near) == 0);
    assert_string_equal(join_types("a.*", NULL, found), "tensor \"a.0\": expected tensors of one type to join but found "
                        "float32 and float16 of \"a.1\": cast them to one (cast)");
    CHECK(strstr(join_types("a.*+b", "j=mxfp4", found), "but found float32 and uint8 of \"b\""));
    CHECK(strstr(join_types("a.*", "j=2:4", found), "but found float32 and float16 of \"a.1\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(any_order_of_steps_is_right_element_by_element),
        IN_FOLDER(views_take_steps_by_name_and_are_joined),
        IN_FOLDER(what_does_not_fit_is_refused_with_a_reason),
        TEST(texts_that_are_no_rules_are_refused),
        IN_FOLDER(names_of_joined_tensors_are_in_the_order_of_their_numbers),
        IN_FOLDER(what_a_few_bytes_become_is_limited),
        IN_FOLDER(stars_are_matched_without_trying_all_that_they_could_be),
        IN_FOLDER(a_glob_may_have_as_many_stars_as_it_has_room_for),
        IN_FOLDER(a_tensor_that_has_no_indices_is_not_cut_at_each_of_them),
        IN_FOLDER(a_step_beyond_the_dimension_takes_one_index),
        IN_FOLDER(compressed_codes_are_sliced_beside_their_scales),
        IN_FOLDER(layouts_lose_the_letters_of_dimensions_that_go),
        IN_FOLDER(tensors_of_different_layouts_are_not_joined),
        IN_FOLDER(a_layout_that_some_have_is_that_of_all_that_are_joined),
        IN_FOLDER(all_that_is_joined_is_decoded_and_what_is_cut_once),
        IN_FOLDER(metadata_that_all_joined_tensors_have_is_kept_and_no_other_is_lost),
        IN_FOLDER(tensors_of_different_types_are_joined_as_what_they_are_cast_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
