/* cli/ui/table.c - aligned columns. */
#include "ui/table.h"
#include "ui/say.h"
#include "ui/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A longer cell shifts its own row only. */
#define WIDEST 64

/* Precedes each text in `bytes`, so that printing need not measure it again. */
typedef struct cell_head {
    size_t length;
    size_t width;               /* characters; NOTE: a line of its own */
} cell_head;
#define NOTE SIZE_MAX

static size_t width_of(const char *text, size_t length)
{
    size_t width = 0;
    for (size_t i = 0; i < length; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;   /* counts characters, approximately */
    return width;
}

/* Reserves a text of n bytes with its NUL; returns where it begins. */
static char *reserve(table *t, size_t n)
{
    n += sizeof(cell_head) + 1;
    if (t->cap - t->used < n) {
        t->cap = 2 * t->cap + n + 4096;
        t->bytes = must_resize(t->bytes, t->cap);
    }
    return t->bytes + t->used + sizeof(cell_head);
}

static void keep(table *t, size_t length, size_t width)
{
    memcpy(t->bytes + t->used, &(cell_head){ length, width }, sizeof(cell_head));
    t->used += sizeof(cell_head) + length + 1;
}

static void keep_cell(table *t, const char *text, size_t length)
{
    size_t width = width_of(text, length);
    if (width > t->width[t->column] && width <= WIDEST)
        t->width[t->column] = width;
    keep(t, length, width);
    t->column = (t->column + 1) % t->ncolumns;
}

void table_begin(table *t, const char *const *headings, uint32_t right)
{
    *t = (table){ .headings = headings, .right = right };
    while (headings[t->ncolumns])
        t->ncolumns++;
    for (size_t i = 0; i < t->ncolumns; i++)
        table_cell(t, headings[i]);
}

void table_cell(table *t, const char *text)
{
    size_t length = strlen(text);
    keep_cell(t, memcpy(reserve(t, length), text, length + 1), length);
}

void table_name(table *t, const char *untrusted)
{
    size_t n = strlen(untrusted);
    char *text = reserve(t, n);
    size_t length = tn_escape(text, n + 1, untrusted, n);
    if (length > n)
        tn_escape(text = reserve(t, length), length + 1, untrusted, n);
    keep_cell(t, text, length);
}

void table_number(table *t, uint64_t number)
{
    char digits[24];
    *put_number(digits, number) = '\0';
    table_cell(t, digits);
}

void table_note(table *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length >= 0) {
        vsnprintf(reserve(t, (size_t)length), (size_t)length + 1, format, again);
        keep(t, (size_t)length, NOTE);
    }
    va_end(again);
    va_end(args);
}

static void out_spaces(size_t n)
{
    static const char spaces[WIDEST + 2] =
        "                                                                  ";
    out_bytes(spaces, n);
}

static void out_cell(const table *t, size_t column, const char *text, const cell_head *head, bool bold)
{
    size_t pad = head->width < t->width[column] ? t->width[column] - head->width : 0;
    bool last = column + 1 == t->ncolumns, right = t->right >> column & 1;
    if (right)
        out_spaces(pad);
    if (bold)
        out_text(style_on_stdout(STYLE_BOLD));
    out_bytes(text, head->length);
    if (bold)
        out_text(style_on_stdout(STYLE_PLAIN));
    if (last)
        out_bytes("\n", 1);
    else
        out_spaces(2 + (right ? 0 : pad));
}

void table_end(table *t)
{
    size_t column = 0;
    bool heading = true;
    for (const char *at = t->bytes, *end = t->bytes + t->used; at < end;) {
        cell_head head;
        memcpy(&head, at, sizeof head);
        const char *text = at + sizeof head;
        at = text + head.length + 1;
        if (head.width == NOTE) {
            out("    %s\n", text);
            continue;
        }
        out_cell(t, column, text, &head, column == 0 && !heading);
        column = (column + 1) % t->ncolumns;
        heading = heading && column != 0;
    }
    table_drop(t);
}

void table_drop(table *t)
{
    free(t->bytes);
    t->bytes = NULL;
}
