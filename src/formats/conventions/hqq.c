/* formats/conventions/hqq.c - HQQ: unsigned codes with a scale and a zero point in units of codes.
 *
 * The values are rows of [N * K / g, g].  P.W_q has several of them in each of its rows, the first in the
 * highest bits (planes.c): two of 4 bits, four of 2, eight of 1 in a byte, ten of 3 in 30 bits of a word.
 * P.scale and P.zero have one number for each row.  P.shape has N and K. */
#include "formats/conventions/unpack.h"
#include "base/error.h"

#include <string.h>

enum { W_Q, SCALE, ZERO, SHAPE, NBITS, GROUP_SIZE, AXIS };

typedef struct grouped {
    int64_t rows, columns;      /* N, K */
    int64_t groups, group;      /* N * K / g, g */
    int64_t bits;
} grouped;

static bool find_shape(tn_unpacking *u, grouped *g)
{
    int64_t shape[2], axis = 1;
    uint64_t groups = 0;
    if (u->from[SHAPE]->dtype != TN_INT64 || !tn_unpack_read(u, u->from[SHAPE], shape, sizeof shape) ||
        !tn_unpack_number(u, u->from[NBITS], &g->bits) ||
        (u->from[AXIS] && !tn_unpack_number(u, u->from[AXIS], &axis)))
        return false;
    tn_shape_count(u->from[SCALE]->rank, u->from[SCALE]->shape, &groups);
    g->rows = u->shape[0] = shape[0];
    g->columns = u->shape[1] = shape[1];
    g->groups = (int64_t)groups;
    u->rank = 2;
    if (axis != 1)
        return tn_unpack_refuse(u, "its groups lie across rows (axis %lld)", (long long)axis);
    if (shape[0] < 1 || shape[1] < 1 || shape[1] > TN_UNPACK_LINE || shape[0] > INT64_MAX / shape[1] ||
        !groups || groups > INT64_MAX || shape[0] * shape[1] % g->groups)
        return tn_unpack_refuse(u, "its shape and its groups disagree");
    g->group = shape[0] * shape[1] / g->groups;
    return g->columns % g->group == 0 || tn_unpack_refuse(u, "its groups cross rows");
}

/* 8 bits are as Tenon has them. */
static bool use_data(tn_unpacking *u, const grouped *g)
{
    const tn_tensor *codes = u->from[W_Q];
    bool words = codes->dtype == TN_INT32, is_three = g->bits == 3;
    unsigned planes = is_three ? 10 : 8 / (unsigned)g->bits;
    if (g->bits == 8)
        return tn_unpack_take(u, "data", codes);
    if (words != is_three || codes->rank != 2 || codes->shape[1] != g->group ||
        codes->shape[0] != g->groups / planes + (g->groups % planes != 0))
        return tn_unpack_refuse(u, "its codes do not have the shape of %lld bits", (long long)g->bits);
    const tn_lines how = { .columns = (uint64_t)g->group, .rows = (uint64_t)codes->shape[0],
                           .count = (uint64_t)g->groups, .bits = (uint32_t)g->bits, .is_apart = true,
                           .width = words ? 4 : 1, .add = is_three ? 27 : 8 - (int32_t)g->bits };
    return tn_unpack_planes(u, &how, codes, planes);
}

bool tn_unpack_hqq(tn_unpacking *u)
{
    const tn_tensor *scale = u->from[SCALE], *zero = u->from[ZERO];
    const char *kind = tn_unpack_spelling(scale->dtype);
    grouped g = { 0 };
    if (!kind || scale->dtype == TN_UINT8 || zero->dtype != scale->dtype)
        return tn_unpack_refuse(u, "its scales or zero points are quantized themselves");
    if (!tn_unpack_rename(u, ".weight") || !find_shape(u, &g))
        return false;
    if (g.bits != 1 && g.bits != 2 && g.bits != 3 && g.bits != 4 && g.bits != 8)
        return tn_unpack_refuse(u, "%lld bits are none of 1, 2, 3, 4 and 8", (long long)g.bits);
    u->dtype = scale->dtype;
    return tn_unpack_as(u, "hqq:uint%lld|%s_%s_t%lld", (long long)g.bits, kind, kind,
                        (long long)(g.group == g.columns ? 0 : g.group)) &&
           use_data(u, &g) && tn_unpack_take(u, "scale", scale) && tn_unpack_take(u, "zero", zero);
}
