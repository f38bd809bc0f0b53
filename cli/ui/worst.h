/* cli/ui/worst.h - the ten tensors with the lowest SQNR. */
#ifndef TENON_CLI_UI_WORST_H
#define TENON_CLI_UI_WORST_H

#include <stddef.h>

enum { WORST = 10 };

/* Zero-initialise to begin. */
typedef struct worst_list {
    /* the worst first; of equal ones, in the order added */
    struct { char *name; double sqnr; } items[WORST];
    size_t count;
} worst_list;

void worst_add(worst_list *w, const char *name, double sqnr);
void worst_out(const worst_list *w);    /* nothing for fewer than two */
void worst_json(const worst_list *w);   /* an array */
void worst_free(worst_list *w);

#endif
