/* The pickle machine: every opcode, as protocols 0 to 5 write it, and pickles that are none. */
#include "support.h"

#include "formats/pytorch/machine.h"

#include <math.h>

/* A pickle that ran; free it. */
typedef struct ran {
    tn_arena     *arena;
    tn_pt_machine machine;
    tn_pt_value   root;
    tn_status     status;
    tn_error      err;
    uint8_t      *copy;
} ran;

static ran run(const char *pickle, size_t n)
{
    ran r = { .copy = exact_copy(pickle, n), .arena = calloc(1, sizeof *r.arena) };
    CHECK(r.arena);
    r.machine = (tn_pt_machine){ .arena = r.arena, .cur = { .base = r.copy, .end = n } };
    r.status = tn_pt_run(&r.machine, &r.root, &r.err);
    return r;
}

static void end(ran *r)
{
    tn_pt_machine_free(&r->machine);
    tn_arena_free(r->arena);
    free(r->arena);
    free(r->copy);
}

#define RUN(text) run(text, sizeof text - 1)

static void check_int(const char *pickle, size_t n, int64_t expected)
{
    ran r = run(pickle, n);
    CHECK(r.status == TN_OK && r.root.kind == TN_PT_INT && r.root.i == expected);
    end(&r);
}

#define INT(text, expected) check_int(text, sizeof text - 1, expected)

static void integers_of_all_widths_are_read(void)
{
    INT("K\xff.", 255);
    INT("M\xff\xff.", 65535);
    INT("J\xff\xff\xff\xff.", -1);
    INT("I42\n.", 42);
    INT("I-42\n.", -42);
    INT("L9000000000L\n.", 9000000000);
    INT("\x8a\x00.", 0);
    INT("\x8a\x01\xff.", -1);
    INT("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", INT64_MIN);
    INT("\x8a\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xff.", -2);
    INT("\x8b\x02\x00\x00\x00\x00\x01.", 256);
}

static void check_kind(const char *pickle, size_t n, tn_pt_kind kind)
{
    ran r = run(pickle, n);
    if (r.status || r.root.kind != kind)
        fail_msg("%d %s", (int)r.root.kind, r.status ? r.err.text : "");
    end(&r);
}

#define KIND(text, kind) check_kind(text, sizeof text - 1, kind)

static void each_kind_of_value_is_made(void)
{
    KIND("N.", TN_PT_NONE);
    KIND("\x88.", TN_PT_BOOL);
    KIND("I01\n.", TN_PT_BOOL);
    KIND("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.", TN_PT_UINT);
    KIND("L18446744073709551615\n.", TN_PT_UINT);
    KIND("L18446744073709551616\n.", TN_PT_BIG);
    KIND("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", TN_PT_BIG);
    KIND("G\x3f\xf0\x00\x00\x00\x00\x00\x00.", TN_PT_FLOAT);
    KIND("X\x01\x00\x00\x00x.", TN_PT_TEXT);
    KIND("\x8c\x01x.", TN_PT_TEXT);
    KIND("\x8d\x01\x00\x00\x00\x00\x00\x00\x00x.", TN_PT_TEXT);
    KIND("T\x01\x00\x00\x00x.", TN_PT_TEXT);
    KIND("U\x01\xff.", TN_PT_BYTES);
    KIND("S'\\xff'\n.", TN_PT_BYTES);
    KIND("B\x01\x00\x00\x00x.", TN_PT_BYTES);
    KIND("C\x01x.", TN_PT_BYTES);
    KIND("\x8e\x01\x00\x00\x00\x00\x00\x00\x00x.", TN_PT_BYTES);
    KIND("\x96\x01\x00\x00\x00\x00\x00\x00\x00x.", TN_PT_BYTES);
    KIND("].", TN_PT_LIST);
    KIND("(K\x01l.", TN_PT_LIST);
    KIND("].", TN_PT_LIST);
    KIND("](K\x01K\x02" "e.", TN_PT_LIST);
    KIND("]K\x01" "a.", TN_PT_LIST);
    KIND("(t.", TN_PT_TUPLE);
    KIND("NNN\x87.", TN_PT_TUPLE);
    KIND("(NNd.", TN_PT_DICT);
    KIND("}NNs.", TN_PT_DICT);
    KIND("\x8f(N\x90.", TN_PT_SET);
    KIND("(N\x91.", TN_PT_SET);
    KIND("cposix\nsystem\n.", TN_PT_GLOBAL);
    KIND("\x8c\x05posix\x8c\x06system\x93.", TN_PT_GLOBAL);
    KIND("cposix\nsystem\n)R.", TN_PT_OBJECT);
    KIND("cposix\nsystem\n)}\x92.", TN_PT_OBJECT);
    KIND("(iposix\nsystem\n.", TN_PT_OBJECT);
    KIND("(cposix\nsystem\no.", TN_PT_OBJECT);
    KIND("Np0\n0g0\n.", TN_PT_NONE);
    KIND("\x80\x05\x95\x03\x00\x00\x00\x00\x00\x00\x00N\x94.", TN_PT_NONE);
    KIND("K\x01(N1.", TN_PT_INT);
    KIND("K\x01(0.", TN_PT_INT);
    KIND("N2\x86.", TN_PT_TUPLE);
}

static void check_text(const char *pickle, size_t n, const char *expected)
{
    ran r = run(pickle, n);
    CHECK(r.status == TN_OK && r.root.kind == TN_PT_TEXT && tn_text_is(tn_pt_text(&r.root), expected));
    end(&r);
}

#define TEXT(text, expected) check_text(text, sizeof text - 1, expected)

static void texts_of_protocol_0_have_escapes(void)
{
    TEXT("S'a\\n\\\\\\'\\x41'\n.", "a\n\\'A");
    TEXT("S\"a\"\n.", "a");
    TEXT("Va\\u00e9\\U0001f600b\xe9\n.", "a\xc3\xa9\xf0\x9f\x98\x80" "b\xc3\xa9");
    TEXT("V\\x\n.", "\\x");
}

static void floats_of_protocol_0_are_words_or_numbers(void)
{
    static const struct { const char *text; double value; } rows[] = {
        { "F0.1\n.", 0.1 }, { "F-1e-05\n.", -1e-5 }, { "Finf\n.", (double)INFINITY },
        { "F-inf\n.", -(double)INFINITY },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ran r = run(rows[i].text, strlen(rows[i].text));
        CHECK(r.status == TN_OK && r.root.kind == TN_PT_FLOAT && r.root.f == rows[i].value);
        end(&r);
    }
}

static void check_refused(const char *pickle, size_t n, tn_status status)
{
    ran r = run(pickle, n);
    if (r.status != status)
        fail_msg("expected status %d but found %d", (int)status, (int)r.status);
    end(&r);
}

#define REFUSED(text, status) check_refused(text, sizeof text - 1, status)

static void what_is_no_pickle_is_refused(void)
{
    REFUSED("", TN_ERR_TRUNCATED);
    REFUSED("N", TN_ERR_TRUNCATED);
    REFUSED(".", TN_ERR_CORRUPT);
    REFUSED("\xff.", TN_ERR_CORRUPT);
    REFUSED("\x80\x06N.", TN_ERR_UNSUPPORTED);
    REFUSED("\x82\x01.", TN_ERR_UNSUPPORTED);
    REFUSED("\x97.", TN_ERR_UNSUPPORTED);
    REFUSED("X\xff\xff\xff\xffx.", TN_ERR_TRUNCATED);
    REFUSED("X\x01\x00\x00\x00\xff.", TN_ERR_CORRUPT);
    REFUSED("X\x03\x00\x00\x00\xed\xa0\x80.", TN_ERR_CORRUPT);  /* a lone surrogate */
    REFUSED("S'a\n.", TN_ERR_CORRUPT);
    REFUSED("S'\\q'\n.", TN_ERR_CORRUPT);
    REFUSED("V\\u12\n.", TN_ERR_CORRUPT);
    REFUSED("V\\U00110000\n.", TN_ERR_CORRUPT);
    REFUSED("Ix\n.", TN_ERR_CORRUPT);
    REFUSED("I\n.", TN_ERR_CORRUPT);
    REFUSED("F1,5\n.", TN_ERR_CORRUPT);
    REFUSED("Nq\xff.", TN_ERR_CORRUPT);
    REFUSED("h\x00.", TN_ERR_CORRUPT);
    REFUSED("t.", TN_ERR_CORRUPT);
    REFUSED("(Nd.", TN_ERR_CORRUPT);
    REFUSED("}(Nu.", TN_ERR_CORRUPT);
    REFUSED("N(Ne.", TN_ERR_CORRUPT);
    REFUSED("NNR.", TN_ERR_CORRUPT);
    REFUSED("(o.", TN_ERR_CORRUPT);
    REFUSED("Pid\n.", TN_ERR_CORRUPT);
    REFUSED("NQ.", TN_ERR_CORRUPT);
    REFUSED("(Na.", TN_ERR_CORRUPT);                            /* below a mark */
    REFUSED("(\x86.", TN_ERR_CORRUPT);
}

static void numbers_have_a_limit(void)
{
    char line[1100] = "L";
    memset(line + 1, '1', 1025);
    memcpy(line + 1026, "\n.", 2);
    check_refused(line, 1028, TN_ERR_LIMIT);
    memcpy(line + 1025, "\n.", 2);
    check_kind(line, 1027, TN_PT_BIG);
    REFUSED("\x8b\xff\xff\xff\x7f.", TN_ERR_LIMIT);
}

/* A global that is called is a name with arguments, and nothing else comes of it. */
static void calls_are_noted_once_and_never_made(void)
{
    ran r = RUN("(cposix\nsystem\nq\x00U\x04true\x85Rh\x00)Rc__builtin__\neval\n)Rcposix\nsystem\n)Rt.");
    CHECK(r.status == TN_OK && r.machine.ncalls == 2 && r.root.items->count == 4);
    CHECK(tn_text_is(r.machine.calls[0].global->name, "system"));
    CHECK(tn_text_is(r.machine.calls[1].global->module, "builtins"));
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(integers_of_all_widths_are_read),
        TEST(each_kind_of_value_is_made),
        TEST(texts_of_protocol_0_have_escapes),
        TEST(floats_of_protocol_0_are_words_or_numbers),
        TEST(what_is_no_pickle_is_refused),
        TEST(numbers_have_a_limit),
        TEST(calls_are_noted_once_and_never_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
