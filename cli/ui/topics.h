/* cli/ui/topics.h - what "tenon help TOPIC" explains. */
#ifndef TENON_CLI_UI_TOPICS_H
#define TENON_CLI_UI_TOPICS_H

#include "ui/opts.h"

typedef struct topic {
    const char *name;
    const char *also;           /* another name, or NULL */
    const char *summary;        /* one line */
    const char *about;
    opt_list    options;        /* or NULL */
    const char *example;        /* lines after "$ " */
} topic;

/* NULL after the last. */
const topic *topic_at(size_t i);

/* NULL: there is none of that name. */
const topic *find_topic(const char *name);
void         topic_help(const topic *t);

/* Prints the names of all topics, separated by commas. */
void out_topics(void);

/* ": did you mean ...?", or "". */
const char *nearest_topic(const char *name);

#endif
