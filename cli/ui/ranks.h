/* cli/ui/ranks.h - which of how many processes this is, as the launcher says. */
#ifndef TENON_CLI_UI_RANKS_H
#define TENON_CLI_UI_RANKS_H

#include <stdbool.h>
#include <stdint.h>

/* "R/N" with R from 0 to N - 1. */
bool parse_ranks(const char *text, uint32_t *rank, uint32_t *ranks);

/* From the environment of mpirun, srun, a job array and others; *ranks is 0 if there is none. */
void find_ranks(uint32_t *rank, uint32_t *ranks);

#endif
