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

typedef struct wish_rules {
    tn_form_rule   form;
    tn_cast_rule   cast;
    tn_layout_rule layout;
    tn_pad_rule    pad;
} wish_rules;

static inline tn_status parse_wish(const wish *w, wish_rules *r, tn_error *err)
{
    const tn_cast_rule defaults = { .is_virtual = w->is_virtual, .options = { .size = sizeof defaults.options,
                                                                              .overflow = w->overflow } };
    tn_status status = w->form ? tn_form_rule_parse(w->form, &r->form, err) : TN_OK;
    if (!status && w->layout)
        status = tn_layout_rule_parse(w->layout, &r->layout, err);
    if (!status && w->pad)
        status = tn_pad_rule_parse(w->pad, &r->pad, err);
    if (!status && w->cast)
        status = tn_cast_rule_parse(w->cast, &defaults, &r->cast, err);
    return status;
}

/* Writes OUT anew; the status of the first call that failed, parsers included. */
static inline tn_status convert_open(const tn_file *in, const char *out, wish w, tn_error *err)
{
    wish_rules r = { .cast.glob = "" };
    tn_status status = parse_wish(&w, &r, err);
    if (status)
        return status;
    w.create.size = sizeof w.create;
    w.create.replace = true;
    const tn_convert_options o = {
        .size = sizeof o, .create = &w.create, .encoding = w.create.encoding ? TN_CHOOSE : TN_KEEP,
        .checksum = w.create.checksum ? TN_CHOOSE : TN_KEEP, .forms = &r.form, .nforms = w.form != NULL,
        .casts = &r.cast,
        .ncasts = w.cast != NULL, .layouts = &r.layout, .nlayouts = w.layout != NULL, .pads = &r.pad,
        .npads = w.pad != NULL,
        .max_bytes = w.max_bytes, .dry_run = w.dry_run, .quantized = w.quantized, .progress = w.progress,
        .context = w.context,
    };
    status = tn_convert(in, in_folder(out).text, &o, w.result, err);
    tn_cast_rule_free(&r.cast);
    return status;
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
