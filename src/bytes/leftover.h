/* bytes/leftover.h - what would be left if the process ended now: temporary files and folders with a name.
 *
 * Most temporary files have no name and need none of this. */
#ifndef TN_BYTES_LEFTOVER_H
#define TN_BYTES_LEFTOVER_H

#include <stdbool.h>

/* Zero-initialise; its owner has it as a member. */
typedef struct tn_leftover {
    int                 folder;     /* an open descriptor */
    const char         *name;       /* "": there is nothing any more */
    bool                is_parking; /* a folder of a set (sink_set.c) */
    bool                is_listed;
    struct tn_leftover *next;
} tn_leftover;

void tn_leftover_add(tn_leftover *l);
void tn_leftover_remove(tn_leftover *l);    /* also if it was never added */

/* Around giving names to files: nobody ends the process between them. */
void tn_publishing_begin(void);
void tn_publishing_end(void);

#endif
