/* cli/ui/worst.c - the ten tensors with the lowest SQNR. */
#include "ui/worst.h"
#include "ui/json.h"
#include "ui/rating.h"
#include "ui/say.h"
#include "ui/table.h"

#include <stdlib.h>
#include <string.h>

void worst_add(worst_list *w, const char *name, double sqnr)
{
    size_t place = w->count;
    while (place > 0 && sqnr < w->items[place - 1].sqnr)
        place--;
    if (place == WORST)
        return;
    if (w->count == WORST)
        free(w->items[--w->count].name);
    memmove(&w->items[place + 1], &w->items[place], (w->count - place) * sizeof *w->items);
    size_t size = strlen(name) + 1;
    w->items[place].name = memcpy(must_allocate(size, 1), name, size);
    w->items[place].sqnr = sqnr;
    w->count++;
}

void worst_out(const worst_list *w)
{
    static const char *const headings[] = { "worst", "SQNR", NULL };
    table t;
    if (w->count < 2)
        return;
    table_begin(&t, headings, 1u << 1);
    for (size_t i = 0; i < w->count; i++) {
        table_name(&t, w->items[i].name);
        table_cell(&t, sqnr_text(w->items[i].sqnr).s);
    }
    table_end(&t);
}

void worst_json(const worst_list *w)
{
    json_open('[');
    for (size_t i = 0; i < w->count; i++) {
        json_open('{');
        json_text_field("name", w->items[i].name);
        json_key("sqnr");
        json_double(w->items[i].sqnr);
        json_close('}');
    }
    json_close(']');
}

void worst_free(worst_list *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->items[i].name);
    w->count = 0;
}
