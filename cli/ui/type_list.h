/* cli/ui/type_list.h - the datatypes of --types. */
#ifndef TENON_CLI_UI_TYPE_LIST_H
#define TENON_CLI_UI_TYPE_LIST_H

#include "ui/say.h"

typedef struct type_item {
    char        *text;          /* as it was given */
    tn_datatype *datatype;
} type_item;

typedef struct type_list {
    type_item *items;
    size_t     count;
} type_list;

/* Reads "mxfp4,int8,per=tensor".  Returns EXIT_DONE, or another code after saying what is wrong and where;
 * either way the list is to be freed. */
int  types_read(type_list *types, const char *list);
void types_free(type_list *types);

#endif
