/* cli/ui/report.h - convert --report: the quantization error of each tensor. */
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
void report_end(report *r, bool done);  /* not done: only closes the JSON */

#endif
