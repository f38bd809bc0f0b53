/* tenon/mli.h - the tensors of embARC MLI 1.0, 1.1 and 2.0, for firmware and host.
 *
 * This header and src/firmware/mli.c are all there is: C99 (or C++11), freestanding,
 * no heap, no stdio, no libm, no floating-point arithmetic, no global state.
 * Add both to a firmware project, or link libtenon on the host.
 *
 *     static const int16_t taps[2][3] = { ... };
 *     tn_mli10_tensor t = { (void *)taps, sizeof taps, { 2, 3 }, 2, TN_MLI1_FX16, { { 12 } } };
 *     if (tn_mli10_check(&t) != TN_MLI_OK) ...
 *
 * Ownership: a tensor borrows its data and its arrays of parameters; nothing
 * here allocates, frees or copies them.  A sub-tensor points into the data of
 * the tensor it was made from and lives no longer than that.  Functions write
 * their result on TN_MLI_OK only, unless they say otherwise.  All of them are
 * reentrant: a tensor must not change while another thread reads it.
 *
 * The structures have MLI's fields at MLI's offsets, on 32-bit and on 64-bit
 * targets, so that a pointer to one can be handed to MLI's kernels; the names
 * differ, so that both headers can be included.  Element types are uint32_t
 * here: compilers that shorten enums lay them out alike. */
#ifndef TENON_MLI_H
#define TENON_MLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TN_API
#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TN_MLI_MAX_RANK 4

typedef enum tn_mli_status {    /* MLI's values */
    TN_MLI_OK                   = 0,
    TN_MLI_BAD_TENSOR           = 1,    /* fields that contradict each other or the rules of tn_mli10_check */
    TN_MLI_SHAPE_MISMATCH       = 2,
    TN_MLI_INCOMPATIBLE_TENSORS = 3,
    TN_MLI_BAD_FUNC_CFG         = 4,    /* a sub-tensor that is not inside its tensor */
    TN_MLI_NOT_ENOUGH_MEM       = 5,    /* the shape needs more bytes than the capacity */
    TN_MLI_NOT_SUPPORTED        = 6,    /* valid, but this version's structure cannot hold it */
    TN_MLI_SPEC_PARAM_MISMATCH  = 7,
    TN_MLI_ARGUMENT_ERROR       = 8,
    TN_MLI_LENGTH_ERROR         = 9,
    TN_MLI_SIZE_MISMATCH        = 10,
    TN_MLI_RANK_MISMATCH        = 11,
    TN_MLI_TYPE_MISMATCH        = 12,
    TN_MLI_MEM_BANK_MISMATCH    = 13,   /* this and the next: 2.0 only */
    TN_MLI_MISALIGNMENT_ERROR   = 14
} tn_mli_status;

enum tn_mli1_element {          /* el_type of 1.0 (the first two) and 1.1 */
    TN_MLI1_FX8  = 0,
    TN_MLI1_FX16 = 1,
    TN_MLI1_SA8  = 2,           /* MLI 1.1 calls them ASYM_I8 and ASYM_I32 */
    TN_MLI1_SA32 = 3
};

enum tn_mli2_element {          /* el_type of 2.0: the low byte is the width in bits */
    TN_MLI2_FX8  = 0x008,
    TN_MLI2_FX16 = 0x010,
    TN_MLI2_SA8  = 0x108,
    TN_MLI2_SA32 = 0x120,
    TN_MLI2_FP16 = 0x210,
    TN_MLI2_FP32 = 0x220
};

/* fx8, fx16: value = integer / 2^frac_bits, the integer an int8_t or int16_t.
 * frac_bits may exceed the integer's width; 1.x has none below zero.
 *
 * sa8, sa32: value = (integer - zero_point) * scale / 2^scale_frac_bits, the
 * integer an int8_t or int32_t, scale above zero.  dim < 0: one zero point and
 * one scale, held in the unions themselves.  dim >= 0: one for each index of
 * that dimension, in arrays that the unions point to. */

/* ---- 1.0 ---- */

typedef union tn_mli10_element_params {
    struct {
        uint8_t frac_bits;
    } fx;
} tn_mli10_element_params;

typedef struct tn_mli10_tensor {
    void                   *data;       /* rank 0: the value itself, see tn_mli10_scalar_get */
    uint32_t                capacity;   /* bytes at data */
    uint32_t                shape[TN_MLI_MAX_RANK]; /* the first changes slowest */
    uint32_t                rank;
    uint32_t                el_type;
    tn_mli10_element_params el_params;
} tn_mli10_tensor;

/* ---- 1.1 ---- */

typedef union tn_mli11_container {      /* an array, or the only value */
    int32_t *pi32;
    int16_t *pi16;
    int8_t  *pi8;
    int32_t  i32;
    int16_t  i16;
    int8_t   i8;
} tn_mli11_container;

typedef union tn_mli11_element_params {
    struct {
        uint8_t frac_bits;
    } fx;
    struct {
        tn_mli11_container zero_point;      /* int16_t */
        tn_mli11_container scale;           /* int32_t */
        int32_t            dim;
        int8_t             scale_frac_bits; /* for every scale */
    } asym;
} tn_mli11_element_params;

typedef struct tn_mli11_tensor {
    void                   *data;
    uint32_t                capacity;
    /* in elements, not negative; one of 0: dense, whatever the others are */
    int32_t                 mem_stride[TN_MLI_MAX_RANK];
    uint32_t                shape[TN_MLI_MAX_RANK];
    uint32_t                rank;
    uint32_t                el_type;
    tn_mli11_element_params el_params;
} tn_mli11_tensor;

/* ---- 2.0 ---- */

typedef struct tn_mli20_container {
    uint32_t capacity;          /* bytes at the pointer; 0 if the value is in mem itself */
    union {
        int32_t *pi32;
        int16_t *pi16;
        int8_t  *pi8;
        float   *pf32;
        int32_t  i32;
        int16_t  i16;
        int8_t   i8;
        float    f32;
        void    *void_p;
    } mem;
} tn_mli20_container;

typedef union tn_mli20_element_params {
    struct {
        int8_t frac_bits;
    } fx;
    struct {
        uint32_t           type;            /* 0: zero points and scales are int16_t; there is no other */
        tn_mli20_container zero_point;      /* int16_t */
        tn_mli20_container scale;           /* int16_t */
        int32_t            dim;
        tn_mli20_container scale_frac_bits; /* int8_t */
    } sa;
} tn_mli20_element_params;

typedef struct tn_mli20_tensor {
    tn_mli20_container      data;
    int32_t                 mem_stride[TN_MLI_MAX_RANK];    /* in elements; 0 is not allowed */
    uint32_t                shape[TN_MLI_MAX_RANK];
    uint32_t                rank;
    uint32_t                el_type;
    tn_mli20_element_params el_params;
} tn_mli20_tensor;

/* ---- Checks and sizes ---- */

/* Whether a tensor can be used: the rules of the specification, and of its
 * version's structure.
 *
 * TN_MLI_BAD_TENSOR: no tensor; rank above TN_MLI_MAX_RANK; an element type
 * the version does not have; a dimension of 0; data that is NULL or would end
 * beyond the last address; strides that are negative (2.0: or 0) or shorter
 * than what lies inside of them; a size beyond 32 bits (2.0: a dimension or
 * capacity beyond 31); sa: dim not below rank, a scale of 0 or less, arrays
 * missing or (2.0) too short, an unknown type; dim < 0 and (2.0) a parameter
 * whose capacity is not 0.
 * TN_MLI_NOT_ENOUGH_MEM: shape and strides are right, but capacity is too small.
 * Parameters are looked at only if it is not: arrays of 1.1, which tell no
 * capacity, must then have an entry for each index of their dimension.
 *
 * A scalar of rank 0 keeps its value in the data field (2.0: if capacity is 0)
 * and passes whatever the field holds.  Few kernels take it; rank 1 and
 * shape[0] = 1 is what all of them take. */
TN_API tn_mli_status tn_mli10_check(const tn_mli10_tensor *tensor);
TN_API tn_mli_status tn_mli11_check(const tn_mli11_tensor *tensor);
TN_API tn_mli_status tn_mli20_check(const tn_mli20_tensor *tensor);

/* Bytes of one element; 0 if the version has no such element type. */
TN_API uint32_t tn_mli10_element_size(uint32_t el_type);
TN_API uint32_t tn_mli11_element_size(uint32_t el_type);
TN_API uint32_t tn_mli20_element_size(uint32_t el_type);

/* Elements in the dimensions from start_dim on; start_dim 0 counts them all.
 * A scalar of rank 0 has one.  0 if start_dim is not below the rank, the rank
 * is above TN_MLI_MAX_RANK, or the product does not fit. */
TN_API uint32_t tn_mli10_count(const tn_mli10_tensor *tensor, uint32_t start_dim);
TN_API uint32_t tn_mli11_count(const tn_mli11_tensor *tensor, uint32_t start_dim);
TN_API uint32_t tn_mli20_count(const tn_mli20_tensor *tensor, uint32_t start_dim);

/* Bytes from the first element to the end of the last, strides included: the
 * least capacity.  0 for a value held in the data field.  Looks at neither
 * data nor (but for rank 0 of 2.0) capacity; TN_MLI_BAD_TENSOR as above. */
TN_API tn_mli_status tn_mli10_bytes(const tn_mli10_tensor *tensor, uint32_t *bytes);
TN_API tn_mli_status tn_mli11_bytes(const tn_mli11_tensor *tensor, uint32_t *bytes);
TN_API tn_mli_status tn_mli20_bytes(const tn_mli20_tensor *tensor, uint32_t *bytes);

/* ---- Sub-tensors: other views of the same data ---- */

typedef struct tn_mli_point {
    uint32_t start_coord[TN_MLI_MAX_RANK];
    uint32_t coord_num;                     /* coordinates given: 1 to the rank */
    uint32_t first_out_dim_size;            /* how many indices of the last coordinate's dimension */
} tn_mli_point;

/* The indices start_coord[n-1] .. + first_out_dim_size - 1 of dimension n-1, at
 * the coordinates before it, with all of the dimensions behind it: coord_num 2
 * of an HWC image is a piece of one row.  The result has rank - n + 1
 * dimensions and a capacity of exactly its bytes.
 *
 * `out` may be `in`.  Its unused dimensions become 0.  Strides that are 0 (2.0
 * too) count as dense.  If the dimension of per-axis parameters stays, their
 * arrays are advanced; if it goes, its one set of values moves into the
 * unions.  Statuses of the check; TN_MLI_BAD_FUNC_CFG: no configuration, or
 * one that reaches outside; TN_MLI_NOT_SUPPORTED: the result has strides which
 * the structure cannot hold (1.0: any but dense). */
TN_API tn_mli_status tn_mli10_point_to_subtensor(const tn_mli10_tensor *in, const tn_mli_point *cfg,
                                                 tn_mli10_tensor *out);
TN_API tn_mli_status tn_mli11_point_to_subtensor(const tn_mli11_tensor *in, const tn_mli_point *cfg,
                                                 tn_mli11_tensor *out);
TN_API tn_mli_status tn_mli20_point_to_subtensor(const tn_mli20_tensor *in, const tn_mli_point *cfg,
                                                 tn_mli20_tensor *out);

typedef struct tn_mli_cut {
    uint32_t offset[TN_MLI_MAX_RANK];       /* of the tensor's rank */
    uint32_t size[TN_MLI_MAX_RANK];         /* at least 1 */
    /* 1 to the rank; dimensions of size 1 are dropped from the first on to reach it */
    uint32_t sub_tensor_rank;
} tn_mli_cut;

/* The box of `size` at `offset`.  Its capacity is what remains behind its first
 * element.  Everything else as above; TN_MLI_BAD_FUNC_CFG too if there are not
 * enough dimensions of size 1 to drop. */
TN_API tn_mli_status tn_mli10_create_subtensor(const tn_mli10_tensor *in, const tn_mli_cut *cfg,
                                               tn_mli10_tensor *out);
TN_API tn_mli_status tn_mli11_create_subtensor(const tn_mli11_tensor *in, const tn_mli_cut *cfg,
                                               tn_mli11_tensor *out);
TN_API tn_mli_status tn_mli20_create_subtensor(const tn_mli20_tensor *in, const tn_mli_cut *cfg,
                                               tn_mli20_tensor *out);

/* ---- Scalars ---- */

/* The stored integer of a scalar: a tensor of one element, as rank 1 with
 * shape[0] = 1, or rank 0 with the value in the data field (1.x: the low bits of
 * the pointer; 2.0: data.mem.i8, .i16 or .i32).  For a new scalar of rank 0,
 * fill in rank, el_type and el_params (2.0: capacity 0) and set it.
 *
 * Statuses of the check; TN_MLI_SHAPE_MISMATCH: more than one element;
 * TN_MLI_TYPE_MISMATCH: a float; TN_MLI_ARGUMENT_ERROR: no place for the value,
 * or a value that does not fit the element type. */
TN_API tn_mli_status tn_mli10_scalar_get(const tn_mli10_tensor *tensor, int32_t *value);
TN_API tn_mli_status tn_mli11_scalar_get(const tn_mli11_tensor *tensor, int32_t *value);
TN_API tn_mli_status tn_mli20_scalar_get(const tn_mli20_tensor *tensor, int32_t *value);
TN_API tn_mli_status tn_mli10_scalar_set(tn_mli10_tensor *tensor, int32_t value);
TN_API tn_mli_status tn_mli11_scalar_set(tn_mli11_tensor *tensor, int32_t value);
TN_API tn_mli_status tn_mli20_scalar_set(tn_mli20_tensor *tensor, int32_t value);

/* ---- Conversion of one value ---- */

typedef enum tn_mli_round {     /* to the nearest; a value half-way between two goes */
    TN_FX_HALF_AWAY   = 0,      /* away from zero: MLI's own for floats */
    TN_FX_HALF_UP     = 1,      /* up: MLI's own for fixed point on VPX */
    TN_FX_HALF_EVEN   = 2,      /* to the even one: the same on EM and HS ("convergent") */
    TN_FX_FLOAT_STEPS = 3       /* floats only: what MLI computes on x86, see tn_mli_float_to_fx8 */
} tn_mli_round;

/* round(value * 2^frac_bits), computed exactly and cut to the type's range by
 * its sign, infinities too; any frac_bits.
 *
 * NaN: TN_MLI_ARGUMENT_ERROR, and *fx = 0 for those who go on.
 * TN_FX_FLOAT_STEPS rounds as binary32 does after each step of MLI's code
 * (0.49999997 becomes 1), and makes NaN and everything beyond 32 bits the
 * lowest integer with TN_MLI_OK, as MLI does; frac_bits -128 to 127. */
TN_API tn_mli_status tn_mli_float_to_fx8(float value, int32_t frac_bits, tn_mli_round round, int8_t *fx);
TN_API tn_mli_status tn_mli_float_to_fx16(float value, int32_t frac_bits, tn_mli_round round, int16_t *fx);

/* fx / 2^frac_bits: exact wherever binary32 has the value, else the nearest
 * (ties to even; subnormal, zero or infinite). */
TN_API float tn_mli_fx_to_float(int16_t fx, int32_t frac_bits);

/* round(fx * 2^(to - from)), cut to the type's range: the same value with
 * another number of fractional bits.  Equal to MLI's for HALF_UP and HALF_EVEN. */
TN_API int8_t tn_mli_fx_to_fx8(int16_t fx, int32_t from_frac_bits, int32_t to_frac_bits, tn_mli_round round);
TN_API int16_t tn_mli_fx_to_fx16(int16_t fx, int32_t from_frac_bits, int32_t to_frac_bits,
                                 tn_mli_round round);

#ifdef __cplusplus
}
#endif
#endif
