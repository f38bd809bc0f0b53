/* bytes/process.h - which process it is, as others can read it in a file. */
#ifndef TN_BYTES_PROCESS_H
#define TN_BYTES_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_process {
    char     host[65];          /* "": not known */
    char     boot[37];          /* which boot of which machine */
    uint64_t pid, start;        /* start: ticks since the boot */
} tn_process;

typedef enum tn_process_state {
    TN_PROCESS_ELSEWHERE,       /* of another machine, or not seen from here */
    TN_PROCESS_ENDED,
    TN_PROCESS_RUNS,
    TN_PROCESS_STOPPED          /* by a signal */
} tn_process_state;

#define TN_PROCESS_TEXT 160     /* bytes of the text with its NUL */

tn_process       tn_process_self(void);
void             tn_process_format(const tn_process *p, char text[TN_PROCESS_TEXT]);
bool             tn_process_parse(const char *text, size_t n, tn_process *p);
tn_process_state tn_process_look(const tn_process *p);

#endif
