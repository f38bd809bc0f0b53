/* Stands in for the header of embARC MLI 1.0: the fields that exported sources name, at their places. */
#ifndef MLI_TYPES_H
#define MLI_TYPES_H
#include <stdint.h>

#define MLI_MAX_RANK 4

typedef enum { MLI_EL_FX_8 = 0, MLI_EL_FX_16, MLI_EL_LARGE_ENUM = 0x02000000 } mli_element_type;

typedef union {
    struct {
        uint8_t frac_bits;
    } fx;
} mli_element_params;

typedef struct {
    void *data;
    uint32_t capacity;
    uint32_t shape[MLI_MAX_RANK];
    uint32_t rank;
    mli_element_type el_type;
    mli_element_params el_params;
} mli_tensor;
#endif
