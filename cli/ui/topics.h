/* cli/ui/topics.h - what "tenon help TOPIC" explains. */
#ifndef TENON_CLI_UI_TOPICS_H
#define TENON_CLI_UI_TOPICS_H

#include <stdbool.h>
#include <tenon/tenon.h>

/* Prints the topic; false: there is none of that name. */
bool topic_help(const char *name);

/* Prints the names of all topics, separated by commas. */
void out_topics(void);
void offer_topics(tn_nearest *nearest);

#endif
