/* tests/support/types_table.c - prints the generated part of docs/types.md,
 * markers included.  test_dtype fails when the page and the table differ. */
#include "types_table.h"

int main(void)
{
    fputs(TYPES_TABLE_BEGIN, stdout);
    types_table_print(stdout);
    fputs(TYPES_TABLE_END, stdout);
    return ferror(stdout) ? 1 : 0;
}
