/* base/nearest.c - "did you mean": the known word that is nearest to an unknown one. */
#include "base/nearest.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    LONGEST = 255,              /* letters of a word that is looked for */
    MOST    = 5,                /* letters that may differ */
    INSIDE  = MOST + 1          /* the distance of a word that contains the other */
};

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

static bool same(char a, char b) { return tn_lower(a) == tn_lower(b); }

/* Letters to change, add, leave out or swap with the next, or any number above `limit`.  One row of the
 * table at a time; a swap looks two rows back. */
static unsigned distance(tn_text a, tn_text b, unsigned limit)
{
    unsigned rows[3][LONGEST + MOST + 1];
    for (size_t k = 0; k <= b.len; k++)
        rows[0][k] = (unsigned)k;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        unsigned best = row[0] = (unsigned)i;
        for (size_t k = 1; k <= b.len; k++) {
            char x = a.ptr[i - 1], y = b.ptr[k - 1];
            row[k] = least(least(above[k], row[k - 1]) + 1, above[k - 1] + !same(x, y));
            if (i > 1 && k > 1 && same(x, b.ptr[k - 2]) && same(a.ptr[i - 2], y))
                row[k] = least(row[k], two_above[k - 2] + 1);
            best = least(best, row[k]);
        }
        if (best > limit)
            return best;
    }
    return rows[a.len % 3][b.len];
}

static bool contains(tn_text text, tn_text word)
{
    for (size_t at = 0; text.len - at >= word.len; at++) {
        size_t n = 0;
        while (n < word.len && same(text.ptr[at + n], word.ptr[n]))
            n++;
        if (n == word.len)
            return true;
    }
    return false;
}

void tn_nearest_offer(tn_nearest *nearest, const char *word)
{
    if (!nearest || !nearest->word || !word)
        return;
    const tn_text a = { nearest->word, strlen(nearest->word) }, b = { word, strlen(word) };
    unsigned limit = a.len < 6 ? 1 : least((unsigned)least(LONGEST, (unsigned)a.len) / 3, MOST);
    if (nearest->found)
        limit = least(limit, (unsigned)nearest->distance - 1);
    if (a.len == 0 || a.len > LONGEST)
        return;
    size_t gap = a.len > b.len ? a.len - b.len : b.len - a.len;
    unsigned far = gap <= limit ? distance(a, b, limit) : limit + 1;
    if (far > limit && (nearest->found || a.len < 3 || b.len < a.len || !contains(b, a)))
        return;
    nearest->found = word;
    nearest->distance = far > limit ? INSIDE : far;
}

tn_status tn_and_nearest(tn_status status, const tn_nearest *nearest, tn_error *err)
{
    char text[sizeof(tn_quoted) + 20];
    if (!nearest->found || !nearest->distance)
        return status;
    snprintf(text, sizeof text, ": did you mean %s?", tn_quote_z(nearest->found).text);
    return tn_and_say(status, text, err);
}
