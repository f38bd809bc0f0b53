/* cli/ui/report.h - convert --report: what datatypes did to each tensor. */
#ifndef TENON_CLI_UI_REPORT_H
#define TENON_CLI_UI_REPORT_H

#include "ui/rating.h"
#include "ui/worst.h"

typedef struct report {
    bool       json;
    table      rows;
    rating     total;
    uint64_t   tensors;
    worst_list worst;
} report;

void report_begin(report *r, bool json);
void report_add(report *r, const tn_quantize_report *quantized);
void report_end(report *r, bool done);  /* not done: only what JSON needs to be well-formed is printed */

#endif
