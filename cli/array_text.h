/* cli/array_text.h - values in nested brackets, laid out as NumPy does. */
#ifndef TENON_CLI_ARRAY_TEXT_H
#define TENON_CLI_ARRAY_TEXT_H

#include "elements.h"
#include "slice.h"

/* Prints a window; `summarise`: of long dimensions only both ends, with "..." between. */
tn_status array_print(elements *e, const window *w, bool summarise, tn_error *err);

/* Prints every value of a window as nested JSON arrays. */
tn_status array_json(elements *e, const window *w, tn_error *err);

#endif
