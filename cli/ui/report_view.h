/* cli/ui/report_view.h - a report in the terminal. */
#ifndef TENON_CLI_UI_REPORT_VIEW_H
#define TENON_CLI_UI_REPORT_VIEW_H

#include <tenon/tenon.h>

/* Prints the totals, the matrix of layers and roles, what is odd, the types and what has changed. */
void out_report(const char *path, const char *against, const tn_report *report);

#endif
