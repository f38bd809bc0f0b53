/* cli/ui/array_text.h - values in nested brackets, laid out as NumPy does. */
#ifndef TENON_CLI_UI_ARRAY_TEXT_H
#define TENON_CLI_UI_ARRAY_TEXT_H

#include "ui/elements.h"
#include "ui/slice.h"

/* Prints a window; `summarise`: of long dimensions only both ends, with "..." between. */
tn_status array_print(elements *e, const window *w, bool summarise, tn_error *err);

/* Prints every value of a window as nested JSON arrays. */
tn_status array_json(elements *e, const window *w, tn_error *err);

#endif
