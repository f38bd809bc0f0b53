/* cli/ui/report.c - convert --report: the quantization error of each tensor. */
#include "ui/report.h"
#include "ui/json.h"
#include "ui/say.h"

void report_begin(report *r, bool json)
{
    static const char *const headings[] = { "name", "datatype", RATING_HEADINGS, NULL };
    *r = (report){ .json = json };
    table_begin(&r->rows, headings, 0x7c);
    if (json) {
        json_key("report");
        json_open('{');
        json_key("tensors");
        json_open('[');
    }
}

void report_add(report *r, const tn_quantize_report *q)
{
    rating one = { 0 };
    rating_add(&one, q);
    rating_add(&r->total, q);
    r->tensors++;
    if (q->report->values)
        worst_add(&r->worst, q->name, rating_sqnr(q->report));
    if (!r->json) {
        table_name(&r->rows, q->name);
        table_cell(&r->rows, datatype_name(q->datatype).s);
        rating_cells(&r->rows, &one);
        return;
    }
    json_open('{');
    json_text_field("name", q->name);
    json_text_field("datatype", q->datatype);
    rating_fields(&one);
    json_close('}');
}

static void json_closing(const report *r)
{
    json_close(']');
    json_key("total");
    json_open('{');
    rating_fields(&r->total);
    json_close('}');
    json_key("worst");
    worst_json(&r->worst);
    json_close('}');
}

void report_end(report *r, bool done)
{
    if (r->json) {
        json_closing(r);
    } else if (done && r->tensors) {
        table_end(&r->rows);
        out("%s, %s: ", counted(r->tensors, "tensor").s, counted(r->total.report.values, "value").s);
        rating_out(&r->total);
        out_text("\n");
        worst_out(&r->worst);
    } else if (done) {
        out_text("no tensor was given a datatype\n");
    }
    table_drop(&r->rows);
    worst_free(&r->worst);
}
