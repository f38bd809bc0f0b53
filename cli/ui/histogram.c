/* cli/ui/histogram.c - a histogram in one line. */
#include "ui/histogram.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

/* Asked of a locale of our own: the program's stays "C", so that numbers look the same everywhere. */
bool utf8_wanted(void)
{
    static int wanted = -1;
    if (wanted < 0) {
        locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
        wanted = locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
        if (locale)
            freelocale(locale);
    }
    return wanted;
}

histogram_text histogram(const tn_statistics *s)
{
    static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const ascii[] = { " ", ".", ":", "-", "=", "+", "*", "#", "@" };
    const char *const *levels = utf8_wanted() ? blocks : ascii;
    histogram_text p = { "" };
    int first = 0, last = TN_STATS_BINS - 1;
    uint64_t most = 0;
    while (first < TN_STATS_BINS && !s->histogram[first])
        first++;
    while (last > first && !s->histogram[last])
        last--;
    if (first == TN_STATS_BINS)
        return p;
    for (int k = first; k <= last; k++)
        most = s->histogram[k] > most ? s->histogram[k] : most;
    size_t n = 0;
    if (first == 0)
        n += (size_t)snprintf(p.s, sizeof p.s, "0 ");
    else
        n += (size_t)snprintf(p.s, sizeof p.s, "2^%d ", first + TN_STATS_LOW);
    for (int k = first; k <= last; k++) {
        double share = (double)s->histogram[k] / (double)most;
        n += (size_t)snprintf(p.s + n, sizeof p.s - n, "%s",
                              levels[s->histogram[k] ? 1 + (int)(share * 7 + 0.5) : 0]);
    }
    if (last == TN_STATS_BINS - 1)
        snprintf(p.s + n, sizeof p.s - n, " and above");
    else
        snprintf(p.s + n, sizeof p.s - n, " 2^%d", last + 1 + TN_STATS_LOW);
    return p;
}
