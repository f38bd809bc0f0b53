/* cli/ui/histogram.h - a histogram in one line. */
#ifndef TENON_CLI_UI_HISTOGRAM_H
#define TENON_CLI_UI_HISTOGRAM_H

#include <tenon/tenon.h>

typedef struct histogram_text { char s[300]; } histogram_text;

/* One character a power of two, as high as its share of the largest; "" of no values. */
histogram_text histogram(const tn_statistics *s);

/* Whether the terminal's characters are UTF-8. */
bool utf8_wanted(void);

#endif
