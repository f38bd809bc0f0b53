/* Stands in for the header of embARC MLI 1.1: the fields that exported sources name, at their places. */
#ifndef MLI_TYPES_H
#define MLI_TYPES_H
#include <stdint.h>

#define MLI_MAX_RANK 4

typedef enum {
    MLI_EL_FX_8 = 0, MLI_EL_FX_16, MLI_EL_ASYM_I8, MLI_EL_ASYM_I32, MLI_EL_LARGE_ENUM = 0x02000000
} mli_element_type;

typedef union {
    int32_t *pi32;
    int16_t *pi16;
    int8_t *pi8;
    int32_t i32;
    int16_t i16;
    int8_t i8;
} mli_data_container;

typedef union {
    struct {
        uint8_t frac_bits;
    } fx;
    struct {
        mli_data_container zero_point;
        mli_data_container scale;
        int32_t dim;
        int8_t scale_frac_bits;
    } asym;
} mli_element_params;

typedef struct {
    void *data;
    uint32_t capacity;
    int32_t mem_stride[MLI_MAX_RANK];
    uint32_t shape[MLI_MAX_RANK];
    uint32_t rank;
    mli_element_type el_type;
    mli_element_params el_params;
} mli_tensor;
#endif
