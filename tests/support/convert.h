/* tests/support/convert.h - conversions in the test's folder, by rules as the
 * command line has them.  Include it after support.h. */
#ifndef TN_TESTS_CONVERT_H
#define TN_TESTS_CONVERT_H

#include "make.h"

/* How to convert a file; members that are not set change nothing. */
typedef struct wish {
    const char        *form, *cast, *layout, *pad;  /* a rule each */
    bool               is_virtual;                  /* unless the cast says otherwise */
    tn_overflow        overflow;                    /* the same */
    tn_create_options  create;                      /* an encoding or checksum given here is chosen */
    uint64_t           max_bytes;
    bool               dry_run;
    tn_quantize_report_fn    quantized;
    tn_progress_fn     progress;
    void              *context;
    tn_convert_result *result;
} wish;

/* What all casts of a wish are like. */
static inline const char *wish_defaults(const wish *w)
{
    static const char *const texts[][2] = {
        { NULL, "virtual=yes" },
        { "overflow=saturate", "virtual=yes,overflow=saturate" },
        { "overflow=inf", "virtual=yes,overflow=inf" },
        { "overflow=nan", "virtual=yes,overflow=nan" },
        { "overflow=error", "virtual=yes,overflow=error" },
    };
    return texts[w->overflow][w->is_virtual];
}

/* Writes OUT anew. */
static inline tn_status convert_open(const tn_file *in, const char *out, wish w, tn_error *err)
{
    const tn_rule all[] = { { "form", w.form }, { "layout", w.layout }, { "pad", w.pad }, { "cast", w.cast } };
    tn_rule rules[4];
    size_t n = 0;
    for (size_t i = 0; i < 4; i++)
        if (all[i].text)
            rules[n++] = all[i];
    w.create.size = sizeof w.create;
    w.create.replace = true;
    const tn_convert_options o = {
        .size = sizeof o, .create = &w.create, .encoding = w.create.encoding ? TN_CHOOSE : TN_KEEP,
        .checksum = w.create.checksum ? TN_CHOOSE : TN_KEEP, .rules = rules, .nrules = n,
        .cast_defaults = wish_defaults(&w),
        .max_bytes = w.max_bytes, .dry_run = w.dry_run, .quantized = w.quantized, .progress = w.progress,
        .context = w.context,
    };
    return tn_convert(in, in_folder(out).text, &o, w.result, err);
}

/* The same of a file; OUT may be IN. */
static inline tn_status try_convert(const char *in, const char *out, wish w, tn_error *err)
{
    tn_file *f = open_file(in);
    tn_status status = convert_open(f, out, w, err);
    tn_close(f);
    return status;
}

static inline void must_convert(const char *in, const char *out, wish w)
{
    tn_error err = { .text = "" };
    if (try_convert(in, out, w, &err))
        fail_msg("%s to %s, cast %s, form %s, layout %s, pad %s: %s", in, out, w.cast ? w.cast : "-",
                 w.form ? w.form : "-", w.layout ? w.layout : "-", w.pad ? w.pad : "-", line_of(&err));
}

/* A wish's progress: cancels. */
static inline int stop_at_once(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    REQUIRE(done <= total);
    return 1;
}

/* A dry run leaves nothing behind and says how many bytes the run takes, or less than `more` too many. */
static inline void check_dry_run(const char *in, const char *out, uint64_t more)
{
    tn_convert_result dry, real;
    int before = count_entries(folder);
    must_convert(in, out, (wish){ .dry_run = true, .result = &dry });
    CHECK(count_entries(folder) == before);
    must_convert(in, out, (wish){ .result = &real });
    CHECK(dry.bytes_out >= real.bytes_out && dry.bytes_out < real.bytes_out + more);
}

/* One conversion gives the values and the description that two give, one after the other. */
static inline void must_equal_two(const char *in, wish both, wish first, wish second)
{
    tn_error err = { .text = "" };
    size_t different = 0;
    must_convert(in, "one.zt", both);
    must_convert(in, "between.zt", first);
    must_convert("between.zt", "two.zt", second);
    tn_file *a = open_file("one.zt"), *b = open_file("two.zt");
    if (tn_compare(a, b, NULL, NULL, &different, &err))
        fail_msg("%s", line_of(&err));
    tn_close(a);
    tn_close(b);
    CHECK(different == 0);
}

/* Refused with this status and a message that has `text` in it, and nothing is left. */
static inline void must_fail(const char *in, wish w, tn_status status, const char *text)
{
    tn_error err = { .text = "" };
    tn_status found = try_convert(in, "never.zt", w, &err);
    check_status(found, &err, status, text);
    CHECK(access(in_folder("never.zt").text, F_OK) != 0);
}

#endif
