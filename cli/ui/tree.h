/* cli/ui/tree.h - names with dots as a tree. */
#ifndef TENON_CLI_UI_TREE_H
#define TENON_CLI_UI_TREE_H

#include "ui/chosen.h"

/* Prints the tensors below what their names have in common; sorts them by name. */
void out_tree(chosen *c);

#endif
