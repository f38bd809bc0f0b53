/* Going through chosen tensors: patterns, progress, cancelling and threads are the same for every verb. */
#include "support.h"

#include "base/vector.h"
#include "convert.h"
#include "files.h"
#include "held.h"
#include "pipeline/walk.h"

#include <tenon/export.h>

/* ---- items ---- */

static void a_range_is_cut_without_gaps(void)
{
    static const uint64_t sizes[] = { 0, 1, 7, 8, 9, 16, 17 };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (uint64_t span = 0; span <= 8; span += 8) {
            tn_items items = { 0 };
            uint64_t end = 0, bytes = 0;
            CHECK(tn_items_cut(&items, (tn_item){ .subject = 5, .n = sizes[k] }, span, 4, NULL) == TN_OK);
            CHECK(items.count == (span && sizes[k] ? (sizes[k] + span - 1) / span : 1));
            for (size_t i = 0; i < items.count; i++) {
                const tn_item *it = &items.list[i];
                CHECK(it->subject == 5 && it->count == 1 && it->from == end);
                CHECK(it->last == (i + 1 == items.count));
                end += it->n;
                bytes += it->bytes;
            }
            CHECK(end == sizes[k] && bytes == (sizes[k] + 1) / 2);
            free(items.list);
        }
    }
}

static void small_subjects_are_packed_behind_each_other_only(void)
{
    tn_items items = { 0 };
    static const uint64_t sizes[] = { 4, 4, 3, 20, 1, 0, 0, 0 };
    static const struct { size_t subject; uint32_t count; uint64_t n; } expected[] = {
        { 0, 2, 8 }, { 2, 1, 3 }, { 3, 1, 20 }, { 4, 3, 1 },
        { 7, 1, 0 }, { 8, 1, 9 }, { 8, 1, 1 }, { 9, 1, 0 },
    };
    for (size_t i = 0; i < 8; i++)
        CHECK(tn_items_pack(&items, (tn_item){ .subject = i, .n = sizes[i], .bytes = 2 * sizes[i] }, 3, 10,
                            NULL) == TN_OK);
    CHECK(tn_items_cut(&items, (tn_item){ .subject = 8, .n = 10 }, 9, 8, NULL) == TN_OK);
    CHECK(tn_items_pack(&items, (tn_item){ .subject = 9 }, 3, 10, NULL) == TN_OK);
    CHECK(items.count == 8);
    for (size_t i = 0; i < 8; i++) {
        const tn_item *it = &items.list[i];
        CHECK(it->subject == expected[i].subject && it->count == expected[i].count && it->n == expected[i].n);
    }
    CHECK(items.list[0].bytes == 16 && items.list[3].bytes == 2);
    CHECK(tn_items_pack(&items, (tn_item){ .subject = 11 }, 3, 10, NULL) == TN_OK);     /* 10 is missing */
    CHECK(tn_items_pack(&items, (tn_item){ .subject = 12, .part = 1 }, 3, 10, NULL) == TN_OK);
    CHECK(items.count == 10 && items.list[8].count == 1 && items.list[9].count == 1);
    free(items.list);
}

/* ---- every verb ---- */

/* Large enough for several items. */
enum { LARGE = 2200000, SMALL = 96 };

/* One call of a verb. */
typedef struct call {
    tn_file           *a, *b;
    unsigned           jobs;
    const char *const *only;
    size_t             nonly;
    int                stop;        /* at this call of progress; 0: never */
    int                calls;
    uint64_t           done, total;
    tn_buf             told;        /* everything that a callback got */
} call;

static int progress(void *context, uint64_t done, uint64_t total)
{
    call *c = context;
    REQUIRE(c->calls != c->stop || !c->stop);       /* never again after it asked to stop */
    REQUIRE(done >= c->done && done <= total);
    c->done = done;
    c->total = total;
    tn_buf_printf(&c->told, "%llu of %llu\n", (unsigned long long)done, (unsigned long long)total);
    return ++c->calls == c->stop;
}

static void tell_verdict(void *context, const tn_tensor *t, const tn_part *p, tn_verdict verdict,
                         const tn_error *why)
{
    tn_buf_printf(&((call *)context)->told, "%s %s %d %s\n", t->name, p->role, (int)verdict, line_of(why));
}

static tn_status verify(call *c, tn_error *err)
{
    tn_verify_options o = { .size = sizeof o, .jobs = c->jobs, .progress = progress, .context = c };
    return tn_verify(c->a, &o, tell_verdict, err);
}

static void tell_figures(void *context, const tn_tensor *t, const tn_statistics *s, const tn_error *why)
{
    tn_buf_printf(&((call *)context)->told, "%s %llu %a %a %a %a %s\n", t ? t->name : "-",
                  (unsigned long long)s->count, s->min, s->max, s->mean, s->deviation,
                  why ? line_of(why) : "");
}

static tn_status stats(call *c, tn_error *err)
{
    tn_stats_options o = { .size = sizeof o, .jobs = c->jobs, .progress = progress, .context = c,
                           .only = c->only, .nonly = c->nonly };
    return tn_stats(c->a, &o, tell_figures, err);
}

static void tell_difference(void *context, const tn_difference *d)
{
    tn_buf_printf(&((call *)context)->told, "%s %u %llu %llu %llu %a %a %a %a\n", d->a ? d->a->name : "-",
                  d->what, (unsigned long long)d->differing, (unsigned long long)d->first,
                  (unsigned long long)d->bits, d->max_abs, d->max_rel, d->max_ulp, d->sqnr);
}

static tn_status compare(call *c, tn_error *err)
{
    tn_compare_options o = { .size = sizeof o, .jobs = c->jobs, .progress = progress, .context = c };
    return tn_compare(c->a, c->b, &o, tell_difference, NULL, err);
}

static void tell_quantized(void *context, const tn_quantize_report *q)
{
    tn_buf_printf(&((call *)context)->told, "%s %s %a %a\n", q->name, q->datatype, q->bits,
                  q->report ? q->report->noise : 0);
}

static tn_status compare_types(call *c, tn_error *err)
{
    tn_datatype *types[2];
    tn_compare_datatypes_options o = { .size = sizeof o, .jobs = c->jobs, .progress = progress, .context = c,
                          .only = c->only, .nonly = c->nonly };
    CHECK(tn_datatype_parse("mxfp4", &types[0], NULL) == TN_OK);
    CHECK(tn_datatype_parse("nvfp4", &types[1], NULL) == TN_OK);
    tn_status status =
        tn_compare_datatypes(c->a, (const tn_datatype *const *)types, 2, &o, tell_quantized, err);
    tn_datatype_free(types[0]);
    tn_datatype_free(types[1]);
    return status;
}

static tn_status export(call *c, tn_error *err)
{
    tn_export_options o = { .size = sizeof o, .mli = TN_FOR_MLI_2_0, .binary = true, .name = "out",
                            .progress = progress, .context = c, .only = c->only, .nonly = c->nonly };
    return tn_export_c(c->a, in_folder("c").text, &o, NULL, err);
}

static tn_status convert(call *c, tn_error *err)
{
    tn_create_options create = { .size = sizeof create, .jobs = c->jobs };
    tn_convert_options o = { .size = sizeof o, .create = &create, .progress = progress, .context = c,
                             .only = c->only, .nonly = c->nonly };
    return tn_convert(c->a, in_folder("out.zt").text, &o, NULL, err);
}

static tn_status convert_as(call *c, wish w, tn_error *err)
{
    w.create.jobs = c->jobs;
    w.progress = progress;
    w.quantized = tell_quantized;
    w.context = c;
    return convert_open(c->a, "out.zt", w, err);
}

static tn_status compress(call *c, tn_error *err)
{
    return convert_as(c, (wish){ .create.encoding = TN_ENCODING_ZSTD }, err);
}

/* Its scales are searched first. */
static tn_status quantize(call *c, tn_error *err)
{
    return convert_as(c, (wish){ .cast = "int8,per=tensor,percentile=99" }, err);
}

static tn_status quantize_by_datatype(call *c, tn_error *err)
{
    return convert_as(c, (wish){ .cast = "mxfp4" }, err);
}

static tn_status reorder(call *c, tn_error *err)
{
    return convert_as(c, (wish){ .layout = "NHWC,from=NCHW" }, err);
}

static tn_status make_sparse(call *c, tn_error *err)
{
    return convert_as(c, (wish){ .form = "coo" }, err);
}

typedef struct verb {
    const char *name;
    tn_status (*call)(call *c, tn_error *err);
    const char *outputs[2];     /* in the test's folder */
} verb;

static const verb verbs[] = {
    { "verify", verify, { NULL } },
    { "stats", stats, { NULL } },
    { "diff", compare, { NULL } },
    { "compare-types", compare_types, { NULL } },
    { "export", export, { "c/out.bin", "c/out.h" } },
    { "convert", convert, { "out.zt" } },
    { "compress", compress, { "out.zt" } },
    { "quantize", quantize, { "out.zt" } },
    { "quantize by datatype", quantize_by_datatype, { "out.zt" } },
    { "reorder", reorder, { "out.zt" } },
    { "make sparse", make_sparse, { "out.zt" } },
};
enum { VERBS = sizeof verbs / sizeof *verbs };

/* Files that differ in a few places, a.zt compressed in part. */
static void make_inputs(void)
{
    float *x = malloc(LARGE * sizeof *x);
    simple tensors[] = {
        { .name = "a", .dtype = TN_FLOAT32, .rank = 4, .shape = { 1, 3, 4, 8 }, .data = x },
        { .name = "large", .dtype = TN_FLOAT32, .rank = 4, .shape = { 1, 2, 1100, 1000 }, .data = x },
        { .name = "z", .dtype = TN_FLOAT32, .rank = 4, .shape = { 1, 1, 1, 5 }, .data = x + 9 },
    };
    CHECK(x && LARGE == 2 * 1100 * 1000 && SMALL == 3 * 4 * 8);
    for (uint32_t i = 0; i < LARGE; i++)
        x[i] = i % 5 ? 0 : (float)((int32_t)(i * UINT32_C(2654435761)) >> 16) / 256;
    write_file("a.zt", (tn_create_options){ .checksum = TN_CHECKSUM_CRC32C }, tensors, 3);
    x[7] += 1;
    x[LARGE - 3] *= 2;
    write_file("b.zt", (tn_create_options){ 0 }, tensors, 3);
    free(x);
}

static void begin(call *c, unsigned jobs, int stop)
{
    *c = (call){ .a = c->a, .b = c->b, .jobs = jobs, .stop = stop };
}

static void remove_outputs(const verb *v)
{
    for (size_t i = 0; i < 2 && v->outputs[i]; i++)
        CHECK(unlink(in_folder(v->outputs[i]).text) == 0);
    rmdir(in_folder("c").text);
}

/* How often progress is told. */
static int count_calls(const verb *v, call *c)
{
    tn_error err = { .text = "" };
    begin(c, 2, 0);
    if (v->call(c, &err))
        fail_msg("%s: %s", v->name, line_of(&err));
    CHECK(c->calls > 0 && c->done == c->total);
    tn_buf_free(&c->told);
    remove_outputs(v);
    return c->calls;
}

static void check_cancelling(const verb *v, call *c, unsigned jobs, int at)
{
    tn_error err = { .text = "" };
    int before = held_descriptors();
    begin(c, jobs, at);
    tn_status status = v->call(c, &err);
    rmdir(in_folder("c").text);             /* export makes the folder first */
    if (status != TN_ERR_CANCELLED || strcmp(said_of(&err), "cancelled") != 0 || c->calls != at)
        fail_msg("%s, %u threads, cancelled at call %d of progress: %d calls, status %d, \"%s\"", v->name,
                 jobs, at, c->calls, (int)status, line_of(&err));
    CHECK(count_entries(folder) == 2 && held_descriptors() == before);
    tn_buf_free(&c->told);
}

static void every_verb_stops_when_progress_says_so_and_leaves_nothing(void)
{
    call c = { 0 };
    make_inputs();
    c.a = open_file("a.zt");
    c.b = open_file("b.zt");
    for (size_t k = 0; k < VERBS; k++) {
        int calls = count_calls(&verbs[k], &c), at[] = { 1, 2, calls / 2, calls };
        for (size_t i = 0; i < 4; i++)
            for (unsigned jobs = 1; jobs <= 7; jobs += 3)
                if (at[i] > 0 && at[i] <= calls)
                    check_cancelling(&verbs[k], &c, jobs, at[i]);
    }
    tn_close(c.a);
    tn_close(c.b);
}

/* All that callbacks get, and all that is written. */
static tn_buf result_of(const verb *v, call *c, unsigned jobs)
{
    tn_error err = { .text = "" };
    begin(c, jobs, 0);
    if (v->call(c, &err))
        fail_msg("%s with %u threads: %s", v->name, jobs, line_of(&err));
    for (size_t i = 0; i < 2 && v->outputs[i]; i++) {
        size_t n;
        uint8_t *bytes = load_file(in_folder(v->outputs[i]).text, &n);
        tn_buf_put(&c->told, bytes, n);
        free(bytes);
    }
    remove_outputs(v);
    CHECK(!c->told.bad && c->told.size > 0);
    return c->told;
}

static void no_result_depends_on_the_number_of_threads(void)
{
    static const unsigned jobs[] = { 2, 7 };
    call c = { 0 };
    make_inputs();
    c.a = open_file("a.zt");
    c.b = open_file("b.zt");
    for (size_t k = 0; k < VERBS; k++) {
        tn_buf one = result_of(&verbs[k], &c, 1);
        for (size_t i = 0; i < 2; i++) {
            tn_buf more = result_of(&verbs[k], &c, jobs[i]);
            if (more.size != one.size || memcmp(more.data, one.data, one.size) != 0)
                fail_msg("%s: 1 and %u threads differ", verbs[k].name, jobs[i]);
            tn_buf_free(&more);
        }
        tn_buf_free(&one);
    }
    tn_close(c.a);
    tn_close(c.b);
}

/* ---- patterns ---- */

static void a_pattern_without_a_match_gets_one_message(void)
{
    static const float x[5] = { 1 };
    static const char *const only[] = { "a*", "[bc]?d\n" };
    static const simple tensor = { .name = "a", .dtype = TN_FLOAT32, .rank = 1, .shape = { 5 }, .data = x };
    static tn_status (*const choosing[])(call *, tn_error *) = { stats, compare_types, export, convert };
    write_file("a.zt", (tn_create_options){ 0 }, &tensor, 1);
    for (size_t i = 0; i < 4; i++) {
        call c = { .a = open_file("a.zt"), .only = only, .nonly = 2 };
        tn_error err = { .text = "" };
        CHECK(choosing[i](&c, &err) == TN_ERR_ARGUMENT);
        const char *text = strstr(line_of(&err), "no tensor");
        CHECK(text && strcmp(text, "no tensor matches \"[bc]?d\\n\"") == 0);
        CHECK(c.calls == 0 && c.told.size == 0 && count_entries(folder) == 1);
        tn_close(c.a);
    }
}

static void tensors_are_chosen_in_the_order_of_the_file(void)
{
    static const float x[5] = { 1 };
    static const char *const only[] = { "c", "[!b]", "?" };
    const simple tensors[] = {
        { .name = "a", .dtype = TN_FLOAT32, .rank = 1, .shape = { 5 }, .data = x },
        { .name = "bb", .dtype = TN_FLOAT32, .rank = 1, .shape = { 5 }, .data = x },
        { .name = "c", .dtype = TN_FLOAT32, .rank = 1, .shape = { 5 }, .data = x },
    };
    write_file("a.zt", (tn_create_options){ 0 }, tensors, 3);
    tn_file *f = open_file("a.zt");
    tn_walk some = { .jobs = 1 }, all = { .jobs = 1 };
    CHECK(tn_walk_choose(&some, f, only, 3, NULL) == TN_OK && some.count == 2);
    CHECK(some.tensors[0] == tn_file_tensor(f, 0) && some.tensors[1] == tn_file_tensor(f, 2));
    CHECK(tn_walk_choose(&all, f, NULL, 0, NULL) == TN_OK && all.count == 3);
    tn_walk_end(&some);
    tn_walk_end(&all);
    tn_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_range_is_cut_without_gaps),
        TEST(small_subjects_are_packed_behind_each_other_only),
        IN_FOLDER(every_verb_stops_when_progress_says_so_and_leaves_nothing),
        IN_FOLDER(no_result_depends_on_the_number_of_threads),
        IN_FOLDER(a_pattern_without_a_match_gets_one_message),
        IN_FOLDER(tensors_are_chosen_in_the_order_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
