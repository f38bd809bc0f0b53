/* cli/ui/table.h - aligned columns.
 *
 * Cells are copied as they come and printed by table_end(), when the widths
 * are known: one formatting a cell, however many rows. */
#ifndef TENON_CLI_UI_TABLE_H
#define TENON_CLI_UI_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define TABLE_COLUMNS 16

typedef struct table {
    const char *const *headings;    /* NULL-terminated */
    uint32_t right;                 /* bit i: column i is aligned right */
    size_t   ncolumns;
    size_t   width[TABLE_COLUMNS];
    char    *bytes;                 /* cells and notes, each behind its cell_head */
    size_t   used, cap;
    size_t   column;                /* of the next cell */
} table;

void table_begin(table *t, const char *const *headings, uint32_t right);
void table_cell(table *t, const char *text);
void table_name(table *t, const char *untrusted);   /* escaped, and bold on a terminal in the first column */
void table_number(table *t, uint64_t number);

/* A line of its own below the row that was just completed; takes safe text. */
__attribute__((format(printf, 2, 3)))
void table_note(table *t, const char *format, ...);

void table_end(table *t);
void table_drop(table *t);          /* prints nothing */

#endif
