/* kernels/scaled_search/scalar.c - which kernels a machine has. */
#include "kernels/scaled_search/table.h"


void tn_search_kernels_init_scalar(tn_search_kernels *k)
{
    *k = (tn_search_kernels){ 0 };
}
