/* cli/ui/url.c - URLs on the command line: their queries may hold a signature and are never shown. */
#include "ui/url.h"
#include "ui/say.h"

#include <string.h>

typedef struct cut_url {
    const char *whole, *shown;
} cut_url;

static cut_url *cuts;
static size_t ncuts;

static char *copy_of(const char *text, size_t n)
{
    char *copy = must_allocate(n + 1, 1);
    memcpy(copy, text, n);
    return copy;
}

void urls_hide(char **words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = strcspn(words[i], "?#");
        bool web = strncmp(words[i], "http://", 7) == 0 || strncmp(words[i], "https://", 8) == 0;
        if (!web || !words[i][length])
            continue;
        cuts = must_resize(cuts, (ncuts + 1) * sizeof *cuts);
        cuts[ncuts++] = (cut_url){ copy_of(words[i], strlen(words[i])), copy_of(words[i], length) };
        words[i][length] = '\0';        /* also for those who list processes */
    }
}

const char *url_whole(const char *word)
{
    for (size_t i = 0; i < ncuts; i++)
        if (strcmp(cuts[i].shown, word) == 0)
            return cuts[i].whole;
    return word;
}
