/* cli/ui/url.h - URLs on the command line: their queries may hold a signature and are never shown. */
#ifndef TENON_CLI_UI_URL_H
#define TENON_CLI_UI_URL_H

#include <stddef.h>

/* Cuts the query off every http(s) URL among the words and remembers it. */
void urls_hide(char **words, size_t n);

/* The whole URL of a word that was cut; any other word is returned as it is. */
const char *url_whole(const char *word);

#endif
