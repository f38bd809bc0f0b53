/* cli/ui/progress.h - the bar on stderr, and stopping when a signal asks.
 *
 * The bar appears only on a terminal, only when the work takes a while, and
 * is gone when the work is done.  It is drawn again at least every second,
 * also while nothing is heard from the library. */
#ifndef TENON_CLI_UI_PROGRESS_H
#define TENON_CLI_UI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool   shown;               /* may be drawn at all */
    bool   drawn;
    double began, last;         /* seconds */
    uint64_t input;             /* bytes that will be read, if they are known: the bar counts those */
    uint64_t done, total;       /* as the library counts */
} progress;

double now(void);               /* seconds of a monotonic clock */

void progress_begin(progress *p, bool quiet);
void progress_end(progress *p);

/* A tn_progress_fn whose context is a progress. */
int progress_step(void *context, uint64_t done, uint64_t total);

/* A tn_note_fn whose context is a progress, or NULL: prints the note, even with --quiet. */
void progress_note(void *context, const char *path, const char *text);

/* From now on SIGINT, SIGTERM and SIGHUP ask the work to stop, so that it can
 * clean up.  If it has not by then, the program ends after a quarter of a second,
 * without temporary files.  A second signal ends it at once. */
void signals_catch(void);
bool signals_came(void);

/* If a signal came, ends the program by it, so that the shell sees it. */
void signals_pass_on(void);

#endif
