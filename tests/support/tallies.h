/* tests/support/tallies.h - scales found by several tallies, window by window. */
#ifndef TN_TESTS_TALLIES_H
#define TN_TESTS_TALLIES_H

#include "affine.h"
#include "random.h"
#include "quant/scale_search.h"

enum { TALLIED = 3000 };

/* 3000 float32 of shape [10, 15, 20] in windows of 200, in any order and by any
 * of three tallies: the same as affine_choose_scales() finds.  zeros: whether there
 * are zero points. */
static inline void check_tallies(const float *x, tn_dtype codes, const affine_options *o,
                                 unsigned expected_rounds, bool zeros)
{
    enum { THREADS = 3, WINDOW = 200, WINDOWS = TALLIED / WINDOW };
    const int64_t shape[] = { 10, 15, 20 };
    const tn_array a = { .dtype = TN_FLOAT32, .rank = 3, .shape = shape };
    float scale[2][20] = { { 0 } };
    int32_t zero[2][20] = { { 0 } };
    tn_scale_tally *tallies[THREADS];
    tn_scale_index index;
    const tn_affine affine = affine_of(codes, o);
    const tn_quantize_options rules = affine_rules(o);
    unsigned rounds = 0;
    CHECK(tn_scale_index_for(3, shape, o->axis, &index, NULL) == TN_OK);
    for (int k = 0; k < THREADS; k++)
        CHECK(tn_scale_tally_new(&affine, &rules, TN_FLOAT32, index, &tallies[k], NULL) == TN_OK);
    for (bool again = true; again; rounds++) {
        for (size_t i = 0; i < WINDOWS; i++) {
            size_t window = (i * 7 + rounds) % WINDOWS;         /* 7 has nothing in common with 15 */
            tn_scale_tally_add(tallies[bits64() % THREADS], x + window * WINDOW, window * WINDOW, WINDOW);
        }
        for (int k = 1; k < THREADS; k++)
            tn_scale_tally_join(tallies[0], tallies[k]);
        again = tn_scale_tally_more(tallies[0]);
        for (int k = 1; again && k < THREADS; k++)
            tn_scale_tally_again(tallies[k], tallies[0]);
    }
    CHECK(rounds == expected_rounds);
    tn_scale_tally_scales(tallies[0], scale[0], zeros ? zero[0] : NULL);
    CHECK(affine_choose_scales(codes, &a, x, o, scale[1], zeros ? zero[1] : NULL, NULL) == TN_OK);
    CHECK(memcmp(scale[0], scale[1], sizeof scale[0]) == 0 && memcmp(zero[0], zero[1], sizeof zero[0]) == 0);
    for (int k = 0; k < THREADS; k++)
        tn_scale_tally_free(tallies[k]);
}

#endif
