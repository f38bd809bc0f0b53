/* cli/ui/ranks.c - ranks, from the environment that launchers set. */
#include "ui/ranks.h"

#include <stdlib.h>
#include <string.h>

/* NULL: the launcher does not say how many there are. */
static const struct { const char *rank, *ranks, *first; } launchers[] = {
    { "TENON_RANK", "TENON_RANKS", NULL },
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL },           /* Open MPI */
    { "PMI_RANK", "PMI_SIZE", NULL },                                   /* MPICH, Intel MPI, Cray */
    { "PMIX_RANK", "PMIX_SIZE", NULL },
    { "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN" },
    { "SLURM_PROCID", "SLURM_NTASKS", NULL },                           /* srun */
    { "JOB_COMPLETION_INDEX", "TENON_RANKS", NULL },                    /* Kubernetes, indexed */
};

static bool read_number(const char *text, uint32_t *number)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    unsigned long value = strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return *end == '\0' && value <= INT32_MAX;
}

bool parse_ranks(const char *text, uint32_t *rank, uint32_t *ranks)
{
    char first[12];
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : sizeof first;
    if (n >= sizeof first)
        return false;
    memcpy(first, text, n);
    first[n] = '\0';
    return read_number(first, rank) && read_number(slash + 1, ranks) && *rank < *ranks;
}

void find_ranks(uint32_t *rank, uint32_t *ranks)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        uint32_t r, n, from = 0;
        if (launchers[i].first && !read_number(getenv(launchers[i].first), &from))
            from = 0;
        if (read_number(getenv(launchers[i].rank), &r) && read_number(getenv(launchers[i].ranks), &n) &&
            r >= from && r - from < n) {
            *rank = r - from;
            *ranks = n;
            return;
        }
    }
    *rank = *ranks = 0;
}
