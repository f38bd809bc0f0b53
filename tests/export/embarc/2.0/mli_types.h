/* Stands in for the header of embARC MLI 2.0: the fields that exported sources name, at their places. */
#ifndef MLI_TYPES_H
#define MLI_TYPES_H
#include <stdint.h>

#define MLI_MAX_RANK 4

typedef enum {
    MLI_EL_FX_4 = 0x004, MLI_EL_FX_8 = 0x008, MLI_EL_FX_16 = 0x010, MLI_EL_SA_8 = 0x108, MLI_EL_SA_32 = 0x120,
    MLI_EL_FP_16 = 0x210, MLI_EL_FP_32 = 0x220, MLI_EL_LARGE_ENUM = 0x02000000
} mli_element_type;

typedef enum { MLI_EL_PARAM_SC16_ZP16 = 0, MLI_EL_PARAM_LARGE_ENUM = 0x02000000 } mli_element_param_type;

typedef struct {
    uint32_t capacity;
    union {
        int32_t *pi32;
        int16_t *pi16;
        int8_t *pi8;
        float *pf32;
        int32_t i32;
        int16_t i16;
        int8_t i8;
        float f32;
        void *void_p;
    } mem;
} mli_data_container;

typedef union {
    struct {
        int8_t frac_bits;
    } fx;
    struct {
        mli_element_param_type type;
        mli_data_container zero_point;
        mli_data_container scale;
        int32_t dim;
        mli_data_container scale_frac_bits;
    } sa;
} mli_element_params;

typedef struct {
    mli_data_container data;
    int32_t mem_stride[MLI_MAX_RANK];
    uint32_t shape[MLI_MAX_RANK];
    uint32_t rank;
    mli_element_type el_type;
    mli_element_params el_params;
} mli_tensor;
#endif
