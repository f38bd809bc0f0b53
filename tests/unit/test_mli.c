/* test_mli.c - MLI's tensors: every rule broken once, sub-tensors element by element, conversions against an
 * oracle. */
#include "support.h"

#include <math.h>

#include <tenon/mli.h>

static uint32_t seed = 1;

static uint32_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

static int16_t elements[64];

static tn_mli10_tensor sample10(void)
{
    return (tn_mli10_tensor){ elements, sizeof elements, { 2, 4, 8 }, 3, TN_MLI1_FX16, { { 12 } } };
}

static tn_mli11_tensor sample11(void)
{
    return (tn_mli11_tensor){ elements, sizeof elements, { 32, 8, 1 }, { 2, 4, 8 }, 3, TN_MLI1_FX16,
                              { { 12 } } };
}

static tn_mli20_tensor sample20(void)
{
    tn_mli20_tensor t = { .data = { .capacity = sizeof elements }, .mem_stride = { 32, 8, 1 },
                          .shape = { 2, 4, 8 },
                          .rank = 3, .el_type = TN_MLI2_FX16 };
    t.data.mem.pi16 = elements;
    t.el_params.fx.frac_bits = -3;
    return t;
}

/* One scale for each of the four indices of dimension 1. */
static int16_t zeros[4] = { 10, -20, 30, -40 }, scales[4] = { 1, 2, 3, 4 };
static int32_t long_scales[4] = { 100000, 200000, 300000, 400000 };
static int8_t scale_bits[4] = { 5, -6, 7, -8 };

static tn_mli11_tensor per_axis11(void)
{
    tn_mli11_tensor t = sample11();
    t.el_type = TN_MLI1_SA8;
    t.el_params.asym.zero_point.pi16 = zeros;
    t.el_params.asym.scale.pi32 = long_scales;
    t.el_params.asym.dim = 1;
    t.el_params.asym.scale_frac_bits = 9;
    return t;
}

static tn_mli20_tensor per_axis20(void)
{
    tn_mli20_tensor t = sample20();
    t.el_type = TN_MLI2_SA8;
    t.el_params.sa.type = 0;
    t.el_params.sa.zero_point.capacity = sizeof zeros;
    t.el_params.sa.zero_point.mem.pi16 = zeros;
    t.el_params.sa.scale.capacity = sizeof scales;
    t.el_params.sa.scale.mem.pi16 = scales;
    t.el_params.sa.dim = 1;
    t.el_params.sa.scale_frac_bits.capacity = sizeof scale_bits;
    t.el_params.sa.scale_frac_bits.mem.pi8 = scale_bits;
    return t;
}

static tn_mli20_tensor per_tensor20(void)
{
    tn_mli20_tensor t = sample20();
    t.el_type = TN_MLI2_SA8;
    t.el_params.sa.type = 0;
    t.el_params.sa.zero_point = (tn_mli20_container){ .mem = { .i16 = -3 } };
    t.el_params.sa.scale = (tn_mli20_container){ .mem = { .i16 = 7 } };
    t.el_params.sa.dim = -1;
    t.el_params.sa.scale_frac_bits = (tn_mli20_container){ .mem = { .i8 = 9 } };
    return t;
}

/* ---- Checks ---- */

/* One field of a good tensor changed, and the status that must follow. */
#define BROKEN(version, make, change, expected) do { \
        tn_mli##version##_tensor t = make(); \
        CHECK(tn_mli##version##_check(&t) == TN_MLI_OK); \
        change; \
        CHECK(tn_mli##version##_check(&t) == (expected)); \
    } while (0)

static void every_rule_of_the_specification_is_checked(void)
{
    BROKEN(10, sample10, t.rank = 5, TN_MLI_BAD_TENSOR);
    BROKEN(10, sample10, { t.rank = 5; t.shape[3] = 1; t.capacity = UINT32_MAX; }, TN_MLI_BAD_TENSOR);
    BROKEN(10, sample10, t.rank = UINT32_MAX, TN_MLI_BAD_TENSOR);
    BROKEN(10, sample10, t.capacity--, TN_MLI_NOT_ENOUGH_MEM);
    BROKEN(10, sample10, t.shape[1] = 0, TN_MLI_BAD_TENSOR);
    BROKEN(10, sample10, t.data = NULL, TN_MLI_BAD_TENSOR);
    BROKEN(10, sample10, t.el_type = TN_MLI1_SA8, TN_MLI_BAD_TENSOR);
    BROKEN(10, sample10, t.el_type = 0x02000000, TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, t.rank = 5, TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, t.capacity--, TN_MLI_NOT_ENOUGH_MEM);
    BROKEN(11, sample11, t.shape[2] = 0, TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, t.data = NULL, TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, t.el_type = 4, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.rank = 5, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.data.capacity--, TN_MLI_NOT_ENOUGH_MEM);
    BROKEN(20, sample20, t.shape[0] = 0, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.data.mem.void_p = NULL, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.el_type = 0, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.el_type = 4, TN_MLI_BAD_TENSOR);
    CHECK(tn_mli10_check(NULL) == TN_MLI_BAD_TENSOR);
    CHECK(tn_mli11_check(NULL) == TN_MLI_BAD_TENSOR);
    CHECK(tn_mli20_check(NULL) == TN_MLI_BAD_TENSOR);
}

static void sizes_beyond_32_bits_are_refused(void)
{
    BROKEN(10, sample10, t.shape[0] = 1u << 31, TN_MLI_BAD_TENSOR);
    BROKEN(10, sample10, { t.shape[0] = t.shape[1] = t.shape[2] = 1u << 16; t.capacity = UINT32_MAX; },
           TN_MLI_BAD_TENSOR);
    BROKEN(10, sample10, { t.shape[0] = t.shape[1] = t.shape[2] = UINT32_MAX; t.capacity = UINT32_MAX; },
           TN_MLI_BAD_TENSOR);
    BROKEN(10, sample10, { t.shape[0] = t.shape[1] = 3037000500u; t.rank = 2; t.capacity = UINT32_MAX; },
           TN_MLI_BAD_TENSOR);          /* modulo 2^64 these are 290948384 bytes */
    BROKEN(11, sample11, { t.shape[0] = 1u << 31; t.mem_stride[0] = INT32_MAX; }, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20,
           { t.rank = 1; t.el_type = TN_MLI2_FX8; t.mem_stride[0] = 1; t.shape[0] = INT32_MAX; },
           TN_MLI_NOT_ENOUGH_MEM);
    BROKEN(20, sample20, { t.rank = 1; t.el_type = TN_MLI2_FX8; t.mem_stride[0] = 1; t.shape[0] = 1u << 31; },
           TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.data.capacity = 1u << 31, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.shape[0] = INT32_MAX, TN_MLI_BAD_TENSOR);

    tn_mli10_tensor t = { elements, 0, { UINT32_MAX, 1, 1, 1 }, 4, TN_MLI1_FX8, { { 0 } } };
    uint32_t bytes = 0;
    CHECK(tn_mli10_bytes(&t, &bytes) == TN_MLI_OK && bytes == UINT32_MAX);
    CHECK(tn_mli10_count(&t, 0) == UINT32_MAX);
    t.shape[3] = 2;
    CHECK(tn_mli10_bytes(&t, &bytes) == TN_MLI_BAD_TENSOR && bytes == UINT32_MAX);
    CHECK(tn_mli10_count(&t, 0) == 0 && tn_mli10_count(&t, 1) == 2);
    t.shape[3] = 1;
    t.el_type = TN_MLI1_FX16;
    CHECK(tn_mli10_bytes(&t, &bytes) == TN_MLI_BAD_TENSOR);
}

static void strides_step_over_what_lies_inside(void)
{
    BROKEN(11, sample11, t.mem_stride[1] = -8, TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, { t.mem_stride[0] = -1; t.shape[0] = 1; }, TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, t.mem_stride[1] = 7, TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, t.mem_stride[0] = 31, TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, t.mem_stride[0] = 33, TN_MLI_NOT_ENOUGH_MEM);
    BROKEN(11, sample11, t.mem_stride[0] = 0, TN_MLI_OK);
    /* one 0: none counts */
    BROKEN(11, sample11, { t.mem_stride[0] = 0; t.mem_stride[1] = 1; }, TN_MLI_OK);
    BROKEN(11, sample11, { t.mem_stride[0] = 0; t.mem_stride[1] = -1; }, TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, t.mem_stride[3] = -1, TN_MLI_OK);                              /* beyond the rank */
    BROKEN(20, sample20, t.mem_stride[2] = 0, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.mem_stride[0] = 0, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.mem_stride[0] = INT32_MIN, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, { t.mem_stride[0] = -1; t.shape[0] = 1; }, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.mem_stride[1] = 7, TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.mem_stride[0] = 33, TN_MLI_NOT_ENOUGH_MEM);
    BROKEN(20, sample20, { t.mem_stride[0] = 33; t.shape[2] = 7; }, TN_MLI_OK);
}

static void parameters_of_affine_types_are_checked(void)
{
    int16_t bad_scales[4] = { 1, 2, 0, 4 };
    int32_t bad_long_scales[4] = { 1, 2, 3, -4 };
    BROKEN(11, per_axis11, t.el_params.asym.dim = 3, TN_MLI_BAD_TENSOR);
    BROKEN(11, per_axis11, t.el_params.asym.scale.pi32 = NULL, TN_MLI_BAD_TENSOR);
    BROKEN(11, per_axis11, t.el_params.asym.zero_point.pi16 = NULL, TN_MLI_BAD_TENSOR);
    BROKEN(11, per_axis11, t.el_params.asym.scale.pi32 = bad_long_scales, TN_MLI_BAD_TENSOR);
    BROKEN(11, per_axis11, { t.el_params.asym.dim = -1; t.el_params.asym.scale.i32 = 0; }, TN_MLI_BAD_TENSOR);
    BROKEN(11, per_axis11, { t.el_params.asym.dim = -1; t.el_params.asym.scale.i32 = 0x18000; }, TN_MLI_OK);
    BROKEN(20, per_axis20, t.el_params.sa.dim = 3, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_params.sa.type = 1, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_params.sa.scale.capacity--, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_params.sa.zero_point.capacity--, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_params.sa.scale_frac_bits.capacity--, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_params.sa.scale_frac_bits.mem.pi8 = NULL, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_params.sa.scale.mem.pi16 = bad_scales, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_type = TN_MLI2_SA32, TN_MLI_NOT_ENOUGH_MEM);
    BROKEN(20, per_tensor20, t.el_params.sa.scale.mem.i16 = -1, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_tensor20, t.el_params.sa.dim = -7, TN_MLI_OK);
}

/* With dim < 0 the values are in the fields; a capacity says that they are elsewhere. */
static void parameters_in_their_fields_have_no_capacity(void)
{
    BROKEN(20, per_tensor20, t.el_params.sa.zero_point.capacity = 2, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_tensor20, t.el_params.sa.scale.capacity = 2, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_tensor20, t.el_params.sa.scale_frac_bits.capacity = 1, TN_MLI_BAD_TENSOR);
    BROKEN(20, per_tensor20, { t.el_type = TN_MLI2_SA32; t.data.capacity *= 4; }, TN_MLI_OK);
    BROKEN(20, per_tensor20,
           { t.el_type = TN_MLI2_SA32; t.data.capacity *= 4; t.el_params.sa.zero_point.capacity = 2; },
           TN_MLI_BAD_TENSOR);
    BROKEN(20, per_tensor20, { t.el_type = TN_MLI2_FX8; t.el_params.sa.zero_point.capacity = 2; }, TN_MLI_OK);
}

static void parameters_of_a_shape_without_room_are_not_read(void)
{
    tn_mli11_tensor t = per_axis11();           /* AddressSanitizer sees who reads beyond the four entries */
    t.mem_stride[0] = 0;
    t.shape[1] = 1u << 24;
    CHECK(tn_mli11_check(&t) == TN_MLI_NOT_ENOUGH_MEM);
    tn_mli20_tensor u = per_axis20();
    u.data.capacity = 63;
    u.el_params.sa.scale.capacity = 0;
    CHECK(tn_mli20_check(&u) == TN_MLI_NOT_ENOUGH_MEM);
}

/* An address with so many bytes behind it, and none after them. */
static void *bytes_from_the_end(uintptr_t bytes)
{
    return (void *)(UINTPTR_MAX - bytes);
}

static void memory_ends_within_the_address_space(void)
{
    BROKEN(10, sample10, t.data = bytes_from_the_end(128), TN_MLI_OK);
    BROKEN(10, sample10, t.data = bytes_from_the_end(127), TN_MLI_BAD_TENSOR);
    BROKEN(11, sample11, t.data = bytes_from_the_end(127), TN_MLI_BAD_TENSOR);
    BROKEN(20, sample20, t.data.mem.void_p = bytes_from_the_end(127), TN_MLI_BAD_TENSOR);
    BROKEN(11, per_axis11, t.el_params.asym.zero_point.pi16 = bytes_from_the_end(8), TN_MLI_OK);
    BROKEN(11, per_axis11, t.el_params.asym.zero_point.pi16 = bytes_from_the_end(7), TN_MLI_BAD_TENSOR);
    BROKEN(11, per_axis11, t.el_params.asym.scale.pi32 = bytes_from_the_end(15), TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_params.sa.zero_point.mem.pi16 = bytes_from_the_end(7), TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_params.sa.scale.mem.pi16 = bytes_from_the_end(7), TN_MLI_BAD_TENSOR);
    BROKEN(20, per_axis20, t.el_params.sa.scale_frac_bits.mem.pi8 = bytes_from_the_end(4), TN_MLI_OK);
    BROKEN(20, per_axis20, t.el_params.sa.scale_frac_bits.mem.pi8 = bytes_from_the_end(3), TN_MLI_BAD_TENSOR);
}

static void elements_are_counted_from_a_dimension_on(void)
{
    tn_mli10_tensor a = sample10();
    tn_mli11_tensor b = sample11();
    tn_mli20_tensor c = sample20();
    static const uint32_t counts[] = { 64, 32, 8, 0, 0 };
    for (uint32_t i = 0; i < 5; i++)
        CHECK(tn_mli10_count(&a, i) == counts[i] && tn_mli11_count(&b, i) == counts[i] &&
              tn_mli20_count(&c, i) == counts[i]);
    a.shape[1] = 0;
    CHECK(tn_mli10_count(&a, 0) == 0 && tn_mli10_count(&a, 2) == 8);
    a.rank = 0;
    CHECK(tn_mli10_count(&a, 0) == 1 && tn_mli10_count(&a, 1) == 0);
    a.rank = 5;
    CHECK(tn_mli10_count(&a, 0) == 0);
    CHECK(tn_mli10_count(NULL, 0) == 0 && tn_mli11_count(NULL, 0) == 0 && tn_mli20_count(NULL, 0) == 0);
    CHECK(tn_mli10_element_size(TN_MLI1_FX8) == 1 && tn_mli10_element_size(TN_MLI1_FX16) == 2);
    CHECK(tn_mli10_element_size(TN_MLI1_SA8) == 0 && tn_mli11_element_size(TN_MLI1_SA8) == 1);
    CHECK(tn_mli11_element_size(TN_MLI1_SA32) == 4 && tn_mli11_element_size(4) == 0);
    CHECK(tn_mli20_element_size(TN_MLI2_FX8) == 1 && tn_mli20_element_size(TN_MLI2_SA8) == 1);
    CHECK(tn_mli20_element_size(TN_MLI2_FX16) == 2 && tn_mli20_element_size(TN_MLI2_FP16) == 2);
    CHECK(tn_mli20_element_size(TN_MLI2_SA32) == 4 && tn_mli20_element_size(TN_MLI2_FP32) == 4);
    CHECK(tn_mli20_element_size(0) == 0 && tn_mli20_element_size(0x02000000) == 0);
}

static void bytes_needed_include_the_gaps(void)
{
    tn_mli11_tensor t = sample11();
    uint32_t bytes = 7;
    CHECK(tn_mli11_bytes(&t, &bytes) == TN_MLI_OK && bytes == 128);
    t.mem_stride[0] = 100;
    t.data = NULL;
    t.capacity = 0;
    CHECK(tn_mli11_bytes(&t, &bytes) == TN_MLI_OK && bytes == 2 * (1 + 100 + 3 * 8 + 7));
    CHECK(tn_mli11_bytes(&t, NULL) == TN_MLI_ARGUMENT_ERROR);
    CHECK(tn_mli11_bytes(NULL, &bytes) == TN_MLI_BAD_TENSOR);
    t.rank = 0;
    CHECK(tn_mli11_bytes(&t, &bytes) == TN_MLI_OK && bytes == 0);
    tn_mli20_tensor u = sample20();
    CHECK(tn_mli20_bytes(&u, &bytes) == TN_MLI_OK && bytes == 128);
    u.rank = 0;
    CHECK(tn_mli20_bytes(&u, &bytes) == TN_MLI_OK && bytes == 2);
    u.data.capacity = 0;
    CHECK(tn_mli20_bytes(&u, &bytes) == TN_MLI_OK && bytes == 0);
    u = sample20();
    u.data.capacity = UINT32_MAX;
    CHECK(tn_mli20_bytes(&u, &bytes) == TN_MLI_OK && bytes == 128);
}

/* ---- Sub-tensors ---- */

/* Whether each element of the box lies where the tensor has it; dropped dimensions have size 1. */
static void check_box(const tn_mli20_tensor *in, const tn_mli_cut *cfg, const tn_mli20_tensor *out)
{
    for (uint32_t n = 0; n < tn_mli20_count(out, 0); n++) {
        uint32_t rest = n, from = 0, to = 0;
        for (uint32_t i = in->rank; i-- > 0; rest /= cfg->size[i])
            from += (cfg->offset[i] + rest % cfg->size[i]) * (uint32_t)in->mem_stride[i];
        rest = n;
        for (uint32_t i = out->rank; i-- > 0; rest /= out->shape[i])
            to += rest % out->shape[i] * (uint32_t)out->mem_stride[i];
        CHECK(in->data.mem.pi8 + from == out->data.mem.pi8 + to);
    }
}

static tn_mli20_tensor random_tensor(int8_t *data, uint32_t room)
{
    tn_mli20_tensor t = { .data = { .capacity = room }, .rank = 1 + next_random() % 4,
                          .el_type = TN_MLI2_FX8 };
    t.data.mem.pi8 = data;
    uint32_t inside = 1;
    for (uint32_t i = t.rank; i-- > 0;) {
        t.shape[i] = 1 + next_random() % 4;
        t.mem_stride[i] = (int32_t)(inside + next_random() % 3);
        inside = (uint32_t)t.mem_stride[i] * t.shape[i];
    }
    return t;
}

static void boxes_hold_the_elements_of_their_tensor(void)
{
    static int8_t data[4096];
    for (int round = 0; round < 20000; round++) {
        tn_mli20_tensor in = random_tensor(data, sizeof data), out;
        tn_mli_cut cfg = { .sub_tensor_rank = in.rank };
        uint32_t ones = 0, drop;
        for (uint32_t i = 0; i < in.rank; i++) {
            cfg.offset[i] = next_random() % in.shape[i];
            cfg.size[i] = 1 + next_random() % (in.shape[i] - cfg.offset[i]);
            ones += cfg.size[i] == 1;
        }
        drop = next_random() % (in.rank + 1);
        cfg.sub_tensor_rank -= drop;
        tn_mli_status status = tn_mli20_create_subtensor(&in, &cfg, &out);
        CHECK(status == (drop <= ones && drop < in.rank ? TN_MLI_OK : TN_MLI_BAD_FUNC_CFG));
        if (status)
            continue;
        CHECK(out.rank == cfg.sub_tensor_rank && tn_mli20_check(&out) == TN_MLI_OK);
        CHECK(out.data.capacity == sizeof data - (uint32_t)(out.data.mem.pi8 - data));
        check_box(&in, &cfg, &out);
        CHECK(tn_mli20_create_subtensor(&in, &cfg, &in) == TN_MLI_OK);
        CHECK(memcmp(&in.shape, &out.shape, sizeof in.shape) == 0 && in.data.mem.pi8 == out.data.mem.pi8);
    }
}

static void a_point_means_a_piece_of_one_dimension(void)
{
    tn_mli10_tensor in = sample10(), out;
    tn_mli_point cfg = { .start_coord = { 1, 2 }, .coord_num = 2, .first_out_dim_size = 2 };
    CHECK(tn_mli10_point_to_subtensor(&in, &cfg, &out) == TN_MLI_OK);
    CHECK(out.data == elements + 48 && out.capacity == 32 && out.rank == 2 && out.shape[0] == 2 &&
          out.shape[1] == 8);
    CHECK(out.shape[2] == 0 && out.shape[3] == 0 && out.el_type == TN_MLI1_FX16 &&
          out.el_params.fx.frac_bits == 12);
    cfg = (tn_mli_point){ .start_coord = { 1, 3, 5 }, .coord_num = 3, .first_out_dim_size = 3 };
    CHECK(tn_mli10_point_to_subtensor(&in, &cfg, &out) == TN_MLI_OK);
    CHECK(out.data == elements + 61 && out.capacity == 6 && out.rank == 1 && out.shape[0] == 3);

    tn_mli11_tensor in11 = sample11(), out11;
    memset(&out11, 0x55, sizeof out11);
    in11.shape[2] = 7;
    CHECK(tn_mli11_point_to_subtensor(&in11, &cfg, &out11) == TN_MLI_BAD_FUNC_CFG);
    cfg.first_out_dim_size = 2;
    CHECK(tn_mli11_point_to_subtensor(&in11, &cfg, &out11) == TN_MLI_OK);
    CHECK(out11.data == elements + 61 && out11.capacity == 4 && out11.mem_stride[0] == 1 &&
          out11.mem_stride[1] == 0);
    tn_mli20_tensor in20 = sample20(), out20;
    in20.mem_stride[0] = in20.mem_stride[1] = in20.mem_stride[2] = 0;   /* missing ones are computed */
    CHECK(tn_mli20_point_to_subtensor(&in20, &cfg, &out20) == TN_MLI_OK);
    CHECK(out20.data.mem.pi16 == elements + 61 && out20.data.capacity == 4 && out20.mem_stride[0] == 1);
    CHECK(out20.el_params.fx.frac_bits == -3);
}

static void sub_tensors_outside_are_refused(void)
{
    static const tn_mli_point points[] = {
        { { 0 }, 0, 1 }, { { 0 }, 4, 1 }, { { 0 }, UINT32_MAX, 1 }, { { 2 }, 1, 1 }, { { 1 }, 1, 2 },
        { { 0 }, 1, 0 },
        { { 1, 4 }, 2, 1 }, { { 1, 3 }, 2, UINT32_MAX }, { { UINT32_MAX }, 1, 2 },
    };
    static const tn_mli_cut cuts[] = {
        { { 0 }, { 2, 4, 8 }, 0 }, { { 0 }, { 2, 4, 8 }, 4 }, { { 0 }, { 2, 4, 8 }, 2 },
        { { 0 }, { 2, 0, 8 }, 3 },
        { { 0, 4, 0 }, { 1, 1, 1 }, 3 }, { { 0, 1, 0 }, { 1, 4, 1 }, 3 }, { { 1 }, { UINT32_MAX, 1, 1 }, 3 },
    };
    tn_mli10_tensor in = sample10(), out = { .rank = 77 };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        CHECK(tn_mli10_point_to_subtensor(&in, &points[i], &out) == TN_MLI_BAD_FUNC_CFG && out.rank == 77);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        CHECK(tn_mli10_create_subtensor(&in, &cuts[i], &out) == TN_MLI_BAD_FUNC_CFG && out.rank == 77);
    tn_mli_cut whole = { { 0 }, { 2, 4, 8 }, 3 };
    CHECK(tn_mli10_create_subtensor(&in, NULL, &out) == TN_MLI_BAD_FUNC_CFG);
    CHECK(tn_mli10_point_to_subtensor(&in, NULL, &out) == TN_MLI_BAD_FUNC_CFG);
    CHECK(tn_mli10_create_subtensor(&in, &whole, NULL) == TN_MLI_BAD_TENSOR);
    CHECK(tn_mli10_create_subtensor(NULL, &whole, &out) == TN_MLI_BAD_TENSOR);
    CHECK(tn_mli10_create_subtensor(&in, &whole, &out) == TN_MLI_OK && memcmp(&in, &out, sizeof in) == 0);
    in.capacity--;
    CHECK(tn_mli10_create_subtensor(&in, &whole, &out) == TN_MLI_NOT_ENOUGH_MEM);
    in.rank = 0;
    CHECK(tn_mli10_create_subtensor(&in, &whole, &out) == TN_MLI_BAD_FUNC_CFG);
}

static void without_strides_only_dense_boxes_exist(void)
{
    tn_mli10_tensor in = sample10(), out = { .rank = 77 };
    tn_mli_cut columns = { { 0, 0, 2 }, { 2, 4, 3 }, 3 }, rows = { { 1, 1, 0 }, { 1, 2, 8 }, 2 },
    row = { { 1, 2, 3 }, { 1, 1, 4 }, 3 };
    CHECK(tn_mli10_create_subtensor(&in, &columns, &out) == TN_MLI_NOT_SUPPORTED && out.rank == 77);
    CHECK(tn_mli10_create_subtensor(&in, &rows, &out) == TN_MLI_OK && out.data == elements + 40 &&
          out.capacity == 48);
    CHECK(tn_mli10_create_subtensor(&in, &row, &out) == TN_MLI_OK && out.data == elements + 51 &&
          out.rank == 3);
    tn_mli11_tensor in11 = sample11(), out11;
    in11.mem_stride[1] = 0;
    CHECK(tn_mli11_create_subtensor(&in11, &columns, &out11) == TN_MLI_OK && out11.data == elements + 2);
    CHECK(out11.mem_stride[0] == 32 && out11.mem_stride[1] == 8 && out11.mem_stride[2] == 1 &&
          out11.shape[2] == 3);
    tn_mli20_tensor in20 = sample20(), out20;
    /* missing ones are computed, the other stays */
    in20.mem_stride[0] = in20.mem_stride[2] = 0;
    CHECK(tn_mli20_create_subtensor(&in20, &columns, &out20) == TN_MLI_OK &&
          out20.data.mem.pi16 == elements + 2);
    CHECK(out20.mem_stride[0] == 32 && out20.mem_stride[1] == 8 && out20.mem_stride[2] == 1);
    in20.shape[0] = 1000;
    in20.shape[1] = 65536;
    in20.mem_stride[1] = 65536;
    in20.rank = 2;
    in20.el_type = TN_MLI2_FX8;
    CHECK(tn_mli20_create_subtensor(&in20, &columns, &out20) == TN_MLI_BAD_TENSOR);     /* a stride of 2^32 */
    in11 = (tn_mli11_tensor){ elements, 3000000000u, { 0 }, { 1, 3000000000u }, 2, TN_MLI1_FX8, { { 0 } } };
    tn_mli_cut one = { { 0 }, { 1, 1 }, 2 };
    CHECK(tn_mli11_create_subtensor(&in11, &one, &out11) == TN_MLI_NOT_SUPPORTED);
}

static void parameters_follow_their_dimension(void)
{
    tn_mli_cut keep = { { 1, 1, 0 }, { 1, 2, 8 }, 2 }, drop = { { 0, 3, 0 }, { 2, 1, 8 }, 2 };
    tn_mli20_tensor in = per_axis20(), out;
    CHECK(tn_mli20_create_subtensor(&in, &keep, &out) == TN_MLI_OK && tn_mli20_check(&out) == TN_MLI_OK);
    CHECK(out.el_params.sa.dim == 0 && out.el_params.sa.scale.mem.pi16 == scales + 1 &&
          out.el_params.sa.scale.capacity == 6);
    CHECK(out.el_params.sa.zero_point.mem.pi16 == zeros + 1 && out.el_params.sa.zero_point.capacity == 6);
    CHECK(out.el_params.sa.scale_frac_bits.mem.pi8 == scale_bits + 1 &&
          out.el_params.sa.scale_frac_bits.capacity == 3);
    CHECK(tn_mli20_create_subtensor(&in, &drop, &out) == TN_MLI_OK && tn_mli20_check(&out) == TN_MLI_OK);
    CHECK(out.el_params.sa.dim == -1 && out.el_params.sa.scale.mem.i16 == 4 &&
          out.el_params.sa.scale.capacity == 0);
    tn_mli20_container only20 = { 0, { NULL } };
    only20.mem.i16 = -40;
    CHECK(memcmp(&out.el_params.sa.zero_point.mem, &only20.mem, sizeof only20.mem) == 0);
    CHECK(out.el_params.sa.scale_frac_bits.mem.i8 == -8);

    tn_mli11_tensor in11 = per_axis11(), out11;
    CHECK(tn_mli11_create_subtensor(&in11, &keep, &out11) == TN_MLI_OK &&
          tn_mli11_check(&out11) == TN_MLI_OK);
    CHECK(out11.el_params.asym.dim == 0 && out11.el_params.asym.scale.pi32 == long_scales + 1);
    CHECK(out11.el_params.asym.zero_point.pi16 == zeros + 1 && out11.el_params.asym.scale_frac_bits == 9);
    CHECK(tn_mli11_create_subtensor(&in11, &drop, &out11) == TN_MLI_OK &&
          tn_mli11_check(&out11) == TN_MLI_OK);
    CHECK(out11.el_params.asym.dim == -1 && out11.el_params.asym.scale.i32 == 400000);
    tn_mli11_container only = { NULL };
    only.i16 = -40;
    CHECK(memcmp(&out11.el_params.asym.zero_point, &only, sizeof only) == 0);
    only.pi32 = NULL;
    only.i32 = 400000;
    CHECK(memcmp(&out11.el_params.asym.scale, &only, sizeof only) == 0);
    in11.el_params.asym.dim = -1;
    in11.el_params.asym.scale.i32 = 12;
    CHECK(tn_mli11_create_subtensor(&in11, &drop, &out11) == TN_MLI_OK &&
          out11.el_params.asym.scale.i32 == 12);
}

/* ---- Fields of any value ---- */

static uint32_t any_number(void)
{
    static const uint32_t edges[] = { 0, 1, 2, 3, 4, 5, 8, 16, 127, 128, 0x108, 0x120, 0x220, 65535, 65536,
                                      INT32_MAX, 1u << 31, UINT32_MAX };
    return next_random() % 8 ? edges[next_random() % (sizeof edges / sizeof *edges)] : next_random();
}

static uint32_t any_of(const uint32_t *usual, size_t n)
{
    return next_random() % 8 ? usual[next_random() % n] : any_number();
}

/* What 1.1 and 2.0 share; half of the dimensions are small, so that some tensors are good. */
static void any_shape(uint32_t *shape, int32_t *stride, uint32_t *rank)
{
    *rank = next_random() % 8 ? next_random() % 5 : any_number();
    for (int i = 0; i < 4; i++) {
        shape[i] = next_random() % 8 ? 1 + next_random() % 4 : any_number();
        stride[i] = next_random() % 2 ? 0 : (int32_t)(next_random() % 4 ? 1u << 2 * (3 - i) : any_number());
    }
}

static void any_cuts(tn_mli_cut *cut, tn_mli_point *point)
{
    for (int i = 0; i < 4; i++) {
        cut->offset[i] = point->start_coord[i] = next_random() % 4 ? next_random() % 3 : any_number();
        cut->size[i] = next_random() % 8 ? 1 + next_random() % 2 : any_number();
    }
    cut->sub_tensor_rank = next_random() % 8 ? next_random() % 5 : any_number();
    point->coord_num = next_random() % 8 ? next_random() % 5 : any_number();
    point->first_out_dim_size = next_random() % 8 ? 1 + next_random() % 2 : any_number();
}

/* Arrays have 128 entries, and no dimension that 128 bytes have room for has more. */
static int16_t many_zeros[128], many_scales[128];
static int32_t many_long_scales[128];
static int8_t many_bits[128];

static void tensors_of_1_1_with_any_fields_are_answered(void)
{
    static const uint32_t types[] = { 0, 1, 2, 3 };
    unsigned good = 0, cuts = 0;
    for (int i = 0; i < 128; i++)
        many_long_scales[i] = 1 + i;
    for (int round = 0; round < 300000; round++) {
        tn_mli11_tensor t = { elements, next_random() % 129, { 0 }, { 0 }, 0, any_of(types, 4), { { 3 } } },
        out;
        tn_mli_cut cut;
        tn_mli_point point;
        int32_t value;
        uint32_t bytes;
        any_shape(t.shape, t.mem_stride, &t.rank);
        t.el_params.asym.dim = next_random() % 4 ? (int32_t)(next_random() % 4) - 1 : (int32_t)any_number();
        t.el_params.asym.scale.pi32 = next_random() % 8 ? many_long_scales : NULL;
        t.el_params.asym.zero_point.pi16 = next_random() % 8 ? many_zeros : NULL;
        any_cuts(&cut, &point);
        good += tn_mli11_check(&t) == TN_MLI_OK;
        CHECK(tn_mli11_check(&t) != TN_MLI_OK ||
              (tn_mli11_bytes(&t, &bytes) == TN_MLI_OK && bytes <= t.capacity) || t.rank == 0);
        tn_mli11_count(&t, any_number());
        tn_mli11_scalar_get(&t, &value);
        if (tn_mli11_create_subtensor(&t, &cut, &out) == TN_MLI_OK) {
            cuts++;
            CHECK(tn_mli11_check(&out) == TN_MLI_OK);
            CHECK((uint8_t *)out.data + out.capacity == (uint8_t *)elements + t.capacity);
        }
        if (tn_mli11_point_to_subtensor(&t, &point, &out) == TN_MLI_OK) {
            cuts++;
            CHECK(tn_mli11_check(&out) == TN_MLI_OK);
            CHECK((uint8_t *)out.data + out.capacity <= (uint8_t *)elements + t.capacity);
        }
    }
    CHECK(good > 1000 && cuts > 1000);
}

static void any_container(tn_mli20_container *c, void *array, uint32_t size)
{
    c->mem.void_p = next_random() % 8 ? array : NULL;
    c->capacity = next_random() % 4 ? size : next_random() % (size + 1);
    if (next_random() % 4 == 0)
        c->capacity = 0;
}

static void tensors_of_2_0_with_any_fields_are_answered(void)
{
    static const uint32_t types[] = { TN_MLI2_FX8, TN_MLI2_FX16, TN_MLI2_SA8, TN_MLI2_SA8, TN_MLI2_SA32,
                                      TN_MLI2_FP32 };
    unsigned good = 0, cuts = 0;
    for (int i = 0; i < 128; i++)
        many_scales[i] = (int16_t)(1 + i);
    for (int round = 0; round < 300000; round++) {
        tn_mli20_tensor t = { .el_type = any_of(types, 6) }, out;
        tn_mli_cut cut;
        tn_mli_point point;
        int32_t value;
        uint32_t bytes;
        any_container(&t.data, elements, sizeof elements);
        if (next_random() % 16 == 0)
            t.data.capacity = any_number();             /* believed: only addresses are computed from it */
        any_shape(t.shape, t.mem_stride, &t.rank);
        t.el_params.sa.type = next_random() % 16 == 0;
        t.el_params.sa.dim = next_random() % 4 ? (int32_t)(next_random() % 4) - 1 : (int32_t)any_number();
        any_container(&t.el_params.sa.zero_point, many_zeros, sizeof many_zeros);
        any_container(&t.el_params.sa.scale, many_scales, sizeof many_scales);
        any_container(&t.el_params.sa.scale_frac_bits, many_bits, sizeof many_bits);
        any_cuts(&cut, &point);
        good += tn_mli20_check(&t) == TN_MLI_OK;
        CHECK(tn_mli20_check(&t) != TN_MLI_OK ||
              (tn_mli20_bytes(&t, &bytes) == TN_MLI_OK && bytes <= t.data.capacity));
        tn_mli20_count(&t, any_number());
        tn_mli20_scalar_get(&t, &value);
        if (tn_mli20_create_subtensor(&t, &cut, &out) == TN_MLI_OK) {
            cuts++;
            CHECK(tn_mli20_check(&out) == TN_MLI_OK);
            CHECK((uintptr_t)out.data.mem.pi8 + out.data.capacity == (uintptr_t)elements + t.data.capacity);
        }
        if (tn_mli20_point_to_subtensor(&t, &point, &out) == TN_MLI_OK) {
            cuts++;
            CHECK(tn_mli20_check(&out) == TN_MLI_OK);
            CHECK((uintptr_t)out.data.mem.pi8 + out.data.capacity <= (uintptr_t)elements + t.data.capacity);
        }
    }
    CHECK(good > 1000 && cuts > 1000);
}

/* ---- Scalars ---- */

static void scalars_are_kept_behind_the_pointer_or_in_it(void)
{
    static const int32_t values[] = { 0, 1, -1, 127, -128, 32767, -32768, INT32_MAX, INT32_MIN };
    static const uint32_t types1[] = { TN_MLI1_FX8, TN_MLI1_FX16, TN_MLI1_SA32 }, widths[] = { 8, 16, 32 };
    static const uint32_t types2[] = { TN_MLI2_FX8, TN_MLI2_FX16, TN_MLI2_SA32 };
    for (int rank = 0; rank < 2; rank++) {
        for (size_t k = 0; k < 3; k++) {
            int32_t room = 0, back;
            tn_mli11_tensor t = { &room, 4, { 1 }, { 1 }, (uint32_t)rank, types1[k], { { 0 } } };
            t.el_params.asym.dim = -1;
            t.el_params.asym.scale.i32 = 1;
            tn_mli20_tensor u = { .data = { .capacity = rank ? 4 : 0 }, .mem_stride = { 1 }, .shape = { 1 },
                                  .rank = (uint32_t)rank, .el_type = types2[k] };
            u.data.mem.void_p = &room;
            u.el_params.sa.dim = -1;
            u.el_params.sa.scale.mem.i16 = 1;
            for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
                int64_t half = INT64_C(1) << (widths[k] - 1);
                bool is_in = values[i] < half && values[i] >= -half;
                CHECK(tn_mli11_scalar_set(&t, values[i]) == (is_in ? TN_MLI_OK : TN_MLI_ARGUMENT_ERROR));
                CHECK(!is_in || (tn_mli11_scalar_get(&t, &back) == TN_MLI_OK && back == values[i]));
                CHECK(tn_mli20_scalar_set(&u, values[i]) == (is_in ? TN_MLI_OK : TN_MLI_ARGUMENT_ERROR));
                CHECK(!is_in || (tn_mli20_scalar_get(&u, &back) == TN_MLI_OK && back == values[i]));
            }
        }
    }
}

static void scalars_in_the_field_are_where_mli_looks(void)
{
    int32_t value = 5;
    tn_mli10_tensor t = { .rank = 0, .el_type = TN_MLI1_FX16 };
    CHECK(tn_mli10_check(&t) == TN_MLI_OK);                             /* NULL is the value 0 here */
    CHECK(tn_mli10_scalar_get(&t, &value) == TN_MLI_OK && value == 0);
    CHECK(tn_mli10_scalar_set(&t, -2) == TN_MLI_OK && (int16_t)(intptr_t)t.data == -2);
    t.data = (void *)(intptr_t)0x7fff8001;
    CHECK(tn_mli10_scalar_get(&t, &value) == TN_MLI_OK && value == -32767);
    t.el_type = TN_MLI1_FX8;
    CHECK(tn_mli10_scalar_get(&t, &value) == TN_MLI_OK && value == 1);
    CHECK(tn_mli10_scalar_get(&t, NULL) == TN_MLI_ARGUMENT_ERROR);
    tn_mli20_tensor u = { .rank = 0, .el_type = TN_MLI2_FX8 };
    u.data.mem.i32 = -1;
    CHECK(tn_mli20_scalar_set(&u, 3) == TN_MLI_OK && u.data.mem.i8 == 3 && u.data.mem.i32 == 3);
    CHECK(tn_mli20_scalar_get(&u, NULL) == TN_MLI_ARGUMENT_ERROR);
    u.data.capacity = 1;                                                /* a pointer, and no good one */
    u.data.mem.void_p = NULL;
    CHECK(tn_mli20_scalar_get(&u, &value) == TN_MLI_BAD_TENSOR);
}

static void only_one_integer_is_a_scalar(void)
{
    int32_t value = 7;
    tn_mli10_tensor t = sample10();
    tn_mli20_tensor u = sample20();
    CHECK(tn_mli10_scalar_get(&t, &value) == TN_MLI_SHAPE_MISMATCH &&
          tn_mli10_scalar_set(&t, 1) == TN_MLI_SHAPE_MISMATCH);
    CHECK(tn_mli20_scalar_get(&u, &value) == TN_MLI_SHAPE_MISMATCH &&
          tn_mli20_scalar_set(&u, 1) == TN_MLI_SHAPE_MISMATCH);
    t.shape[0] = t.shape[1] = 1;
    CHECK(tn_mli10_scalar_get(&t, &value) == TN_MLI_SHAPE_MISMATCH);
    t.shape[2] = 2;
    CHECK(tn_mli10_scalar_set(&t, 5) == TN_MLI_SHAPE_MISMATCH && value == 7);
    /* MLI takes one element of any rank */
    t.shape[2] = 1;
    CHECK(tn_mli10_scalar_set(&t, 5) == TN_MLI_OK && elements[0] == 5 && elements[1] == 0);
    CHECK(tn_mli10_scalar_get(&t, &value) == TN_MLI_OK && value == 5);
    value = 7;
    t.rank = 1;
    t.data = NULL;
    CHECK(tn_mli10_scalar_get(&t, &value) == TN_MLI_BAD_TENSOR &&
          tn_mli10_scalar_set(&t, 1) == TN_MLI_BAD_TENSOR);
    u.rank = 1;
    u.shape[0] = 1;
    u.el_type = TN_MLI2_FP32;
    CHECK(tn_mli20_scalar_get(&u, &value) == TN_MLI_TYPE_MISMATCH &&
          tn_mli20_scalar_set(&u, 1) == TN_MLI_TYPE_MISMATCH);
    u.el_type = TN_MLI2_FP16;
    CHECK(tn_mli20_scalar_get(&u, &value) == TN_MLI_TYPE_MISMATCH);
    CHECK(tn_mli10_scalar_set(NULL, 1) == TN_MLI_BAD_TENSOR &&
          tn_mli11_scalar_set(NULL, 1) == TN_MLI_BAD_TENSOR);
    CHECK(tn_mli20_scalar_set(NULL, 1) == TN_MLI_BAD_TENSOR && value == 7);
}

/* ---- Conversions ---- */

/* The definition: y rounded and cut to a number of bits. */
static int32_t oracle(long double y, tn_mli_round round, int bits)
{
    long double floor = floorl(y), rest = y - floor, top = ldexpl(1, bits - 1);
    bool up = rest > 0.5L;
    if (rest == 0.5L)
        up = round == TN_FX_HALF_UP ||
             (round == TN_FX_HALF_EVEN ? fmodl(floor, 2) != 0 : round == TN_FX_HALF_AWAY && y > 0);
    long double whole = floor + (up ? 1 : 0);
    return (int32_t)(whole > top - 1 ? top - 1 : whole < -top ? -top : whole);
}

static int8_t to_fx8(float x, int32_t frac_bits, tn_mli_round round)
{
    int8_t q = 99;
    CHECK(tn_mli_float_to_fx8(x, frac_bits, round, &q) == TN_MLI_OK);
    return q;
}

static int16_t to_fx16(float x, int32_t frac_bits, tn_mli_round round)
{
    int16_t q = 99;
    CHECK(tn_mli_float_to_fx16(x, frac_bits, round, &q) == TN_MLI_OK);
    return q;
}

static void the_examples_of_mlis_text_hold(void)
{
    CHECK(tn_mli_fx_to_float(0x4000, 15) == 0.5f && tn_mli_fx_to_float(0x4000, 14) == 1.0f);
    CHECK(to_fx8(0.85f, 7, TN_FX_HALF_AWAY) == 109);
    CHECK(to_fx16(-1.09f, 10, TN_FX_HALF_AWAY) == -1116);
    CHECK(tn_mli_fx_to_fx16(0x24, 8, 12, TN_FX_HALF_UP) == 0x240);
    CHECK(tn_mli_fx_to_fx8(0x24, 4, 1, TN_FX_HALF_UP) == 5);
    CHECK(tn_mli_fx_to_fx8(0x24, 4, 1, TN_FX_HALF_EVEN) == 4);
    CHECK(to_fx16(0.49999997f, 0, TN_FX_FLOAT_STEPS) == 1 && to_fx16(0.49999997f, 0, TN_FX_HALF_AWAY) == 0);
    CHECK(to_fx16(3e9f, 0, TN_FX_FLOAT_STEPS) == -32768 && to_fx16(3e9f, 0, TN_FX_HALF_AWAY) == 32767);
    CHECK(to_fx16(8388609.0f, -9, TN_FX_HALF_AWAY) == 16384);
}

static void nan_is_an_error_and_zero_and_infinities_saturate(void)
{
    int8_t a = 99;
    int16_t b = 99;
    CHECK(tn_mli_float_to_fx8(NAN, 3, TN_FX_HALF_AWAY, &a) == TN_MLI_ARGUMENT_ERROR && a == 0);
    CHECK(tn_mli_float_to_fx16(-NAN, -300, TN_FX_HALF_EVEN, &b) == TN_MLI_ARGUMENT_ERROR && b == 0);
    CHECK(to_fx8(NAN, 3, TN_FX_FLOAT_STEPS) == -128 && to_fx8(INFINITY, 3, TN_FX_FLOAT_STEPS) == -128);
    CHECK(tn_mli_float_to_fx8(1, 0, TN_FX_HALF_AWAY, NULL) == TN_MLI_ARGUMENT_ERROR);
    CHECK(tn_mli_float_to_fx16(1, 0, TN_FX_HALF_AWAY, NULL) == TN_MLI_ARGUMENT_ERROR);
    for (int32_t n = -2000; n <= 2000; n += 400)
        CHECK(to_fx8(INFINITY, n, TN_FX_HALF_UP) == 127 && to_fx16(-INFINITY, n, TN_FX_HALF_UP) == -32768);
    CHECK(to_fx8(1, INT32_MAX, TN_FX_HALF_UP) == 127 && to_fx8(-1e-45f, INT32_MAX, TN_FX_HALF_UP) == -128);
    CHECK(to_fx8(3e38f, INT32_MIN, TN_FX_HALF_UP) == 0 && to_fx8(0, INT32_MAX, TN_FX_HALF_UP) == 0);
    CHECK(to_fx8(-0.0f, INT32_MAX, TN_FX_FLOAT_STEPS) == 0);
}

static void floats_become_the_nearest_fixed_point(void)
{
    for (int i = 0; i < 400000; i++) {
        uint32_t bits = next_random();
        float x;
        int32_t n = (int32_t)(next_random() % 41) - 12;
        if (i % 4)              /* near the range: a few bits, so that many lie half-way */
            x = ldexpf((float)(int32_t)(next_random() % 140000) - 70000.0f,
                       -(n + (int32_t)(next_random() % 12)));
        else
            memcpy(&x, &bits, 4);
        if (i % 4 == 0)
            n = (int32_t)(next_random() % 601) - 300;
        if (isnan(x))
            continue;
        for (int mode = TN_FX_HALF_AWAY; mode <= TN_FX_HALF_EVEN; mode++) {
            tn_mli_round round = (tn_mli_round)mode;
            long double y = isinf(x) ? (long double)x : ldexpl((long double)x, n);
            CHECK(to_fx8(x, n, round) == oracle(isinf(x) ? copysignl(1e9L, y) : y, round, 8));
            CHECK(to_fx16(x, n, round) == oracle(isinf(x) ? copysignl(1e9L, y) : y, round, 16));
        }
    }
}

static void mlis_steps_are_those_of_binary32(void)
{
    for (int i = 0; i < 400000; i++) {
        uint32_t bits = next_random();
        int32_t n = (int32_t)(next_random() % 31) - 8;
        bits = (bits & 0x807fffff) | (100 + next_random() % 60) << 23;
        if (i % 3 == 0)
            bits |= 0x7ffffe;
        float x;
        memcpy(&x, &bits, 4);
        volatile float p = x * ldexpf(1, n);
        p = x > 0 ? p + 0.5f : p - 0.5f;
        int32_t q = fabsf(p) >= 2147483648.0f ? INT32_MIN : (int32_t)p;
        CHECK(to_fx16(x, n, TN_FX_FLOAT_STEPS) == (q > 32767 ? 32767 : q < -32768 ? -32768 : q));
        CHECK(to_fx8(x, n, TN_FX_FLOAT_STEPS) == (q > 127 ? 127 : q < -128 ? -128 : q));
    }
}

static void every_fixed_point_becomes_its_float(void)
{
    for (int32_t n = -140; n <= 180; n++) {
        int32_t step = n >= 0 && n <= 16 ? 1 : 37;
        for (int32_t q = INT16_MIN; q <= INT16_MAX; q += step) {
            float y = tn_mli_fx_to_float((int16_t)q, n), wanted = (float)ldexp(q, -n);
            CHECK(memcmp(&y, &wanted, 4) == 0);
        }
        for (int32_t q = INT8_MIN; q <= INT8_MAX; q++) {
            float y = tn_mli_fx_to_float((int16_t)q, n), wanted = (float)ldexp(q, -n);
            CHECK(memcmp(&y, &wanted, 4) == 0);
        }
    }
    CHECK(tn_mli_fx_to_float(-1, INT32_MIN) == -INFINITY && tn_mli_fx_to_float(1, INT32_MAX) == 0);
    CHECK(tn_mli_fx_to_float(0, INT32_MIN) == 0 && signbit(tn_mli_fx_to_float(-1, INT32_MAX)));
}

static void fixed_point_changes_its_fraction_exactly(void)
{
    for (int32_t shift = -20; shift <= 20; shift++) {
        for (int mode = TN_FX_HALF_AWAY; mode <= TN_FX_HALF_EVEN; mode++) {
            tn_mli_round round = (tn_mli_round)mode;
            for (int32_t q = INT16_MIN; q <= INT16_MAX; q += q >= -300 && q <= 300 ? 1 : 5) {
                long double y = ldexpl(q, shift);
                CHECK(tn_mli_fx_to_fx16((int16_t)q, 5, 5 + shift, round) == oracle(y, round, 16));
                CHECK(tn_mli_fx_to_fx8((int16_t)q, -3, shift - 3, round) == oracle(y, round, 8));
            }
        }
    }
    CHECK(tn_mli_fx_to_fx16(1, INT32_MIN, INT32_MAX, TN_FX_HALF_UP) == 32767);
    CHECK(tn_mli_fx_to_fx16(-32768, INT32_MAX, INT32_MIN, TN_FX_HALF_AWAY) == 0);
    CHECK(tn_mli_fx_to_fx16(0, INT32_MIN, INT32_MAX, TN_FX_HALF_UP) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_rule_of_the_specification_is_checked),
        TEST(sizes_beyond_32_bits_are_refused),
        TEST(strides_step_over_what_lies_inside),
        TEST(parameters_of_affine_types_are_checked),
        TEST(parameters_in_their_fields_have_no_capacity),
        TEST(parameters_of_a_shape_without_room_are_not_read),
        TEST(memory_ends_within_the_address_space),
        TEST(elements_are_counted_from_a_dimension_on),
        TEST(bytes_needed_include_the_gaps),
        TEST(boxes_hold_the_elements_of_their_tensor),
        TEST(a_point_means_a_piece_of_one_dimension),
        TEST(sub_tensors_outside_are_refused),
        TEST(without_strides_only_dense_boxes_exist),
        TEST(parameters_follow_their_dimension),
        TEST(tensors_of_1_1_with_any_fields_are_answered),
        TEST(tensors_of_2_0_with_any_fields_are_answered),
        TEST(scalars_are_kept_behind_the_pointer_or_in_it),
        TEST(scalars_in_the_field_are_where_mli_looks),
        TEST(only_one_integer_is_a_scalar),
        TEST(the_examples_of_mlis_text_hold),
        TEST(nan_is_an_error_and_zero_and_infinities_saturate),
        TEST(floats_become_the_nearest_fixed_point),
        TEST(mlis_steps_are_those_of_binary32),
        TEST(every_fixed_point_becomes_its_float),
        TEST(fixed_point_changes_its_fraction_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
