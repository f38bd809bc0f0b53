/* Tables of function pointers that are filled at run time cannot be changed afterwards. */
#include "support.h"
#include "held.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

static volatile char *place;

static void write_there(void)
{
    signal(SIGSEGV, SIG_DFL);           /* neither cmocka nor a sanitizer asks what it was */
    *place = 1;
}

static bool is_read_only(const void *p)
{
    place = (volatile char *)(uintptr_t)p;
    int status = in_child(write_there);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void a_sealed_table_is_read_only_and_its_neighbours_are_not(void)
{
    static struct TN_OWN_PAGES { void (*call)(void); } before, table, after;
    table.call = abort;
    CHECK(sizeof table == TN_LARGEST_PAGE && !is_read_only(&table));
    tn_seal(&table, sizeof table);
    CHECK(is_read_only(&table) && table.call == abort);
    CHECK(!is_read_only(&before) && !is_read_only(&after));
}

static void the_tables_of_kernels_are_read_only(void)
{
    const void *tables[] = {
        tn_cast_kernels_get(),        tn_reorder_kernels_get(), tn_quant_kernels_get(),
        tn_rotate_kernels_get(), tn_decode_kernels_get(), tn_encode_kernels_get(),
        tn_search_kernels_get(), tn_sparse_kernels_get(), tn_stats_kernels_get(),
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        CHECK(is_read_only(tables[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sealed_table_is_read_only_and_its_neighbours_are_not),
        TEST(the_tables_of_kernels_are_read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
