/* cli/commands/compliance.c - tests the library against WIA-AI-011. */
#include "compliance/compliance.h"
#include "ui/json.h"
#include "ui/opts.h"
#include "ui/progress.h"
#include "ui/table.h"

typedef struct review {
    const opts *o;
    table       rows;
} review;

static void report(void *context, const compliance *result)
{
    review *r = context;
    if (r->o->json) {
        json_open('{');
        json_uint_field("level", (uint64_t)result->level);
        json_text_field("requirement", result->requirement);
        json_text_field("state", result->met ? "compliant" : "not_compliant");
        json_text_field("evidence", result->evidence);
        json_close('}');
        return;
    }
    table_number(&r->rows, (uint64_t)result->level);
    table_cell(&r->rows, result->requirement);
    table_cell(&r->rows, result->met ? "yes" : "NO");
    table_name(&r->rows, result->evidence);
}

static void begin(review *r)
{
    static const char *const headings[] = { "level", "requirement", "met", "evidence", NULL };
    table_begin(&r->rows, headings, 0);
    if (r->o->json) {
        json_open('{');
        json_text_field("specification", TN_WIA_VERSION);
        json_text_field("library", tn_version());
        json_key("requirements");
        json_open('[');
    }
}

static void end(review *r, tn_status status, int asked, int reached, const tn_error *why)
{
    if (r->o->json) {
        json_close(']');
        json_error_field(NULL, why);
        json_uint_field("asked", (uint64_t)asked);
        json_uint_field("reached", (uint64_t)reached);
        json_close('}');
        json_end();
    }
    if (r->o->json || status != TN_OK) {
        table_drop(&r->rows);
        return;
    }
    table_end(&r->rows);
    if (reached == 0)
        out(TN_WIA_VERSION ": no level reached, level %d asked for\n", asked);
    else
        out(TN_WIA_VERSION ": level %d reached, level %d asked for\n", reached, asked);
}

static int run(const opts *o)
{
    review r = { .o = o };
    int asked = o->compliance ? o->compliance : 3, reached = 0;
    tn_error err;
    signals_catch();            /* temporary files are removed before a signal takes effect */
    begin(&r);
    tn_status status = compliance_run(asked, report, &r, &reached, &err);
    end(&r, status, asked, reached, status == TN_OK ? NULL : &err);
    if (status != TN_OK)
        return say_error(NULL, &err);
    return reached >= asked ? EXIT_DONE : EXIT_BAD;
}

const command cmd_compliance = {
    .name = "compliance",
    .operands = "",
    .summary = "Test this library against each requirement of WIA-AI-011.",
    .about = "Tests levels 1 (basic), 2 (standard) and 3 (advanced), up to --level (default:\n"
             "3).  Values are cast, stored, loaded, reordered and compared in a temporary\n"
             "folder.  Exit status 1 if the level is not reached.",
    .example = "  $ tenon compliance --level 2",
    .accepts = OPTIONS(OPT_LEVEL, OPT_JSON),
    .run = run,
};
