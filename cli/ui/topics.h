/* cli/ui/topics.h - what "tenon help TOPIC" explains. */
#ifndef TENON_CLI_UI_TOPICS_H
#define TENON_CLI_UI_TOPICS_H

#include <stdbool.h>
#include <stddef.h>

/* The name of a topic; NULL after the last. */
const char *topic_at(size_t i);

/* Prints the topic; false: there is none of that name. */
bool topic_help(const char *name);

/* Prints the names of all topics, separated by commas. */
void out_topics(void);

/* ": did you mean ...?", or "". */
const char *nearest_topic(const char *name);

#endif
