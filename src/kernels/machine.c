/* kernels/machine.c - the tables of kernels of this machine, filled once, read-only afterwards. */
#include <pthread.h>

#include "base/cpu.h"
#include "base/sealed.h"
#include "kernels/cast/table.h"
#include "kernels/reorder/table.h"
#include "kernels/quantize/table.h"
#include "kernels/rotate/table.h"
#include "kernels/scaled_decode/table.h"
#include "kernels/scaled_encode/table.h"
#include "kernels/scaled_search/table.h"
#include "kernels/sparse/table.h"
#include "kernels/stats/table.h"

static struct TN_OWN_PAGES {
    tn_cast_kernels        cast;
    tn_reorder_kernels layout;
    tn_quant_kernels  quantize;
    tn_rotate_kernels rotate;
    tn_decode_kernels decode;
    tn_encode_kernels encode;
    tn_search_kernels search;
    tn_sparse_kernels sparse;
    tn_stats_kernels  stats;
} machine;

static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill(void)
{
    unsigned cpu = tn_cpu_detect();
    tn_cast_kernels_init(&machine.cast, cpu);
    tn_reorder_kernels_init(&machine.layout, cpu);
    tn_quant_kernels_init(&machine.quantize, cpu);
    tn_rotate_kernels_init(&machine.rotate, cpu);
    tn_decode_kernels_init(&machine.decode, cpu);
    tn_encode_kernels_init(&machine.encode, cpu);
    tn_search_kernels_init(&machine.search, cpu);
    tn_sparse_kernels_init(&machine.sparse, cpu);
    tn_stats_kernels_init(&machine.stats, cpu);
    tn_seal(&machine, sizeof machine);
}

#define GETTER(type, table)             \
    const type *type##_get(void)        \
    {                                   \
        pthread_once(&filled, fill);    \
        return &machine.table;          \
    }

GETTER(tn_cast_kernels, cast)
GETTER(tn_reorder_kernels, layout)
GETTER(tn_quant_kernels, quantize)
GETTER(tn_rotate_kernels, rotate)
GETTER(tn_decode_kernels, decode)
GETTER(tn_encode_kernels, encode)
GETTER(tn_search_kernels, search)
GETTER(tn_sparse_kernels, sparse)
GETTER(tn_stats_kernels, stats)
