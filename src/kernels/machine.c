/* kernels/machine.c - fills tables of kernels; each of this machine when it is first used, read-only
 * afterwards. */
#include <pthread.h>

#include "base/cpu.h"
#include "base/sealed.h"
#include "kernels/blocks/table.h"
#include "kernels/cast/table.h"
#include "kernels/lookup/table.h"
#include "kernels/quantize/table.h"
#include "kernels/reorder/table.h"
#include "kernels/rotate/table.h"
#include "kernels/round/table.h"
#include "kernels/scaled_decode/table.h"
#include "kernels/scaled_encode/table.h"
#include "kernels/scaled_search/table.h"
#include "kernels/sparse/table.h"
#include "kernels/stats/table.h"

/* X(type, name of this machine's, levels above the scalar one, CHOOSE: what some families do better) */
#define EACH_TABLE(X)                             \
    X(tn_block_kernels, blocks, AVX_NEON, NONE)   \
    X(tn_cast_kernels, cast, AVX_NEON, CHOOSE)    \
    X(tn_lookup_kernels, lookup, VBMI, NONE)      \
    X(tn_quant_kernels, quantize, AVX, NONE)      \
    X(tn_reorder_kernels, reorder, VBMI_NEON, CHOOSE) \
    X(tn_rotate_kernels, rotate, AVX, NONE)       \
    X(tn_round_kernels, rounding, AVX_NEON, NONE) \
    X(tn_decode_kernels, decode, VBMI, CHOOSE)    \
    X(tn_encode_kernels, encode, AVX, NONE)       \
    X(tn_search_kernels, search, AVX, NONE)       \
    X(tn_sparse_kernels, sparse, AVX, NONE)       \
    X(tn_stats_kernels, stats, AVX, NONE)

/* --- levels ------------------------------------------------------------------ */

#define ADD_LEVEL(T, feature, level)    \
    if (cpu & feature)                  \
        T##_init_##level(k);

#if defined(__x86_64__)
#define AVX2(T) ADD_LEVEL(T, TN_CPU_AVX2, avx2)
#define AVX(T) AVX2(T) ADD_LEVEL(T, TN_CPU_AVX512, avx512)
#define VBMI(T) AVX(T) ADD_LEVEL(T, TN_CPU_VBMI, vbmi)
#else
#define AVX2(T)
#define AVX(T)
#define VBMI(T)
#endif
#if defined(__aarch64__)
#define NEON(T) ADD_LEVEL(T, TN_CPU_NEON, neon)
#else
#define NEON(T)
#endif
#define AVX_NEON(T) AVX(T) NEON(T)
#define VBMI_NEON(T) VBMI(T) NEON(T)
#define NONE(T)

#define CHOOSE(T) T##_choose(k, cpu);

#define DEFINE_INIT(T, name, levels, choices)   \
    void T##_init(T *k, unsigned cpu)           \
    {                                           \
        (void)cpu;                              \
        T##_init_scalar(k);                     \
        levels(T)                               \
        choices(T)                              \
    }
EACH_TABLE(DEFINE_INIT)

/* --- this machine ------------------------------------------------------------ */

static unsigned level;

static void find_level(void)
{
    level = tn_cpu_detect();
}

/* The same for all tables, whatever becomes of the environment meanwhile. */
static unsigned machine_level(void)
{
    static pthread_once_t found = PTHREAD_ONCE_INIT;
    pthread_once(&found, find_level);
    return level;
}

#define DEFINE_GET(T, name, levels, choices)                  \
    static struct TN_OWN_PAGES { T table; } name;             \
    static void fill_##name(void)                             \
    {                                                           \
        T##_init(&name.table, machine_level());               \
        tn_seal(&name, sizeof name);                        \
    }                                                           \
    const T *T##_get(void)                                      \
    {                                                           \
        static pthread_once_t filled = PTHREAD_ONCE_INIT;       \
        pthread_once(&filled, fill_##name);                   \
        return &name.table;                                   \
    }
EACH_TABLE(DEFINE_GET)
