/* Importance data: blocks are those that ggml makes with the same weights, for each matrix its own. */
#include "support.h"

#include "convert.h"
#include "files.h"

#include "tensor/block.h"

#include <limits.h>
#include <math.h>

#define QUANTS TEST_GOLDEN "/gguf/quants"

enum { ROWS = 16, COLUMNS = 512, MATRICES = 3 };

static const char *const weights[MATRICES] = { "w1", "w0", "wc" };

static void *load(const char *kind, const char *name, const char *end)
{
    char path[300];
    size_t n;
    snprintf(path, sizeof path, QUANTS "/%s%s%s", kind, name, end);
    return load_file(path, &n);
}

/* The values of the golden vectors once for each matrix, and importance data: counts of 4, 1 and 0 (which
 * stands for weights of 1). */
static void make_files(const char *name)
{
    static float values[MATRICES][ROWS * COLUMNS], sums[MATRICES][COLUMNS];
    static const float counts[MATRICES] = { 4, 1, 0 };
    float *normal = load("in/", "normal", ".f32");
    char of_sums[60], of_counts[60];
    for (size_t m = 0; m < MATRICES; m++) {
        float *w = load("in/", weights[m], ".f32");
        memcpy(values[m], normal, sizeof values[m]);
        for (size_t i = 0; i < COLUMNS; i++)
            sums[m][i] = counts[m] > 0 ? w[i] * counts[m] : 7;
        free(w);
    }
    free(normal);
    snprintf(of_sums, sizeof of_sums, "%s.in_sum2", name);
    snprintf(of_counts, sizeof of_counts, "%s.counts", name);
    const simple model = { .name = "w", .dtype = TN_FLOAT32, .rank = 3, .shape = { MATRICES, ROWS, COLUMNS },
                           .data = values };
    const simple matrix[] = {
        { .name = of_sums, .dtype = TN_FLOAT32, .rank = 2, .shape = { MATRICES, COLUMNS }, .data = sums },
        { .name = of_counts, .dtype = TN_FLOAT32, .rank = 2, .shape = { MATRICES, 1 }, .data = counts },
    };
    write_file("model.zt", (tn_create_options){ 0 }, &model, 1);
    write_file("imatrix.zt", (tn_create_options){ 0 }, matrix, 2);
}

/* Where the blocks of the golden vectors are. */
static size_t find_blocks(const char *type, const char *weight)
{
    char line[1000], op[8], found[32], input[64], w[32], file[64];
    size_t offset = SIZE_MAX, at, rows, columns;
    FILE *f = fopen(QUANTS "/index.tsv", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%7s %31s %63s %31s %zu %zu %63s %zu", op, found, input, w, &rows, &columns, file,
                   &at) == 8 && strcmp(op, "enc") == 0 && strcmp(found, type) == 0 &&
            strcmp(input, "normal") == 0 && strcmp(w, weight) == 0)
            offset = at;
    fclose(f);
    return offset;
}

static void check_blocks(const char *out, const char *type)
{
    tn_file *file = open_file(out);
    const tn_block_info *info = tn_block_named(type);
    size_t each = (size_t)ROWS * COLUMNS / info->values * info->bytes;
    const tn_part *data = &tn_file_tensor(file, 0)->parts[0];
    uint8_t *blocks = load("enc/", type, ".bin"), *made = read_part(file, data);
    CHECK(data->nbytes == MATRICES * each);
    for (size_t m = 0; m < MATRICES; m++) {
        size_t at = find_blocks(type, weights[m]);
        CHECK(at != SIZE_MAX);
        if (memcmp(made + m * each, blocks + at, each) != 0)
            fail_msg("%s with weights %s", type, weights[m]);
    }
    free(blocks);
    free(made);
    tn_close(file);
}

static void each_matrix_has_weights_of_its_own(void)
{
    static const char *const types[] = { "q4_0", "q4_1", "q5_0", "q5_1", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K",
                                         "iq4_nl", "iq4_xs", "iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs",
                                         "iq1_s", "iq1_m" };
    char cast[PATH_MAX + 60];
    make_files("w");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(cast, sizeof cast, "%s,importance=%s", types[i], in_folder("imatrix.zt").text);
        must_convert("model.zt", "out.zt", (wish){ .cast = cast });
        check_blocks("out.zt", types[i]);
    }
}

static void the_new_name_is_looked_up_first(void)
{
    char cast[PATH_MAX + 60];
    const char *const rename[] = { "w=blk.0.w" };
    const tn_rule rule = { "cast", cast };
    const tn_create_options create = { .size = sizeof create, .replace = true };
    const tn_convert_options o = { .size = sizeof o, .create = &create, .rules = &rule, .nrules = 1,
                                   .rename = rename, .nrename = 1 };
    make_files("blk.0.w");
    snprintf(cast, sizeof cast, "iq2_xs,importance=%s", in_folder("imatrix.zt").text);
    tn_file *file = open_file("model.zt");
    CHECK(tn_convert(file, in_folder("out.zt").text, &o, NULL, NULL) == TN_OK);
    tn_close(file);
    check_blocks("out.zt", "iq2_xs");
}

static void an_error_has_the_new_name_too(void)
{
    char cast[PATH_MAX + 60];
    const char *const rename[] = { "w=blk.0.w" };
    const tn_rule rule = { "cast", cast };
    const tn_convert_options o = { .size = sizeof o, .rules = &rule, .nrules = 1, .rename = rename,
                                   .nrename = 1 };
    tn_error err = { .text = "" };
    make_files("other");
    snprintf(cast, sizeof cast, "iq2_xs,importance=%s", in_folder("imatrix.zt").text);
    tn_file *file = open_file("model.zt");
    check_status(tn_convert(file, in_folder("out.zt").text, &o, NULL, &err), &err, TN_ERR_ARGUMENT,
                 "importance data; its name there is \"blk.0.w\"");
    CHECK(strcmp(err.tensor, "w") == 0);
    tn_close(file);
}

static void types_that_need_it_are_refused_without(void)
{
    static const char *const need[] = { "iq2_xxs", "iq2_xs", "iq1_s" }, *const want[] = { "iq2_s", "iq3_xxs", "iq1_m" };
    char cast[PATH_MAX + 60];
    tn_error err = { .text = "" };
    make_files("other");
    for (size_t i = 0; i < 3; i++) {
        snprintf(cast, sizeof cast, "%s,importance=none", need[i]);
        check_status(try_convert("model.zt", "out.zt", (wish){ .cast = cast }, &err), &err, TN_ERR_ARGUMENT,
                     "can only be encoded with importance data");
        snprintf(cast, sizeof cast, "%s,importance=%s", want[i], in_folder("imatrix.zt").text);
        check_status(try_convert("model.zt", "out.zt", (wish){ .cast = cast }, &err), &err, TN_ERR_ARGUMENT,
                     "needs importance data to be good: give some, or \"none\" to do without");
        CHECK(err.reason == TN_REASON_IMPORTANCE);
        snprintf(cast, sizeof cast, "%s,importance=none", want[i]);
        must_convert("model.zt", "out.zt", (wish){ .cast = cast });
    }
}

static void damaged_importance_is_refused(void)
{
    static float sums[COLUMNS], counts[3] = { 1, 1, 1 };
    char cast[PATH_MAX + 60];
    tn_error err = { .text = "" };
    simple matrix[] = {
        { .name = "w.in_sum2", .dtype = TN_FLOAT32, .rank = 1, .shape = { COLUMNS }, .data = sums },
        { .name = "w.counts", .dtype = TN_FLOAT32, .rank = 1, .shape = { 1 }, .data = counts },
    };
    make_files("w");
    snprintf(cast, sizeof cast, "q4_K,importance=%s", in_folder("bad.zt").text);
    const struct { float value; int64_t counts, columns; tn_status status; const char *text; } bad[] = {
        { -1, 1, COLUMNS, TN_ERR_CORRUPT, "column 9 of \"w\" is -1" },
        { NAN, 1, COLUMNS, TN_ERR_CORRUPT, "is nan" },
        { 1, 3, COLUMNS, TN_ERR_CORRUPT, "512 sums of 512 columns for 3 counts" },
        { 1, 2, COLUMNS, TN_ERR_CORRUPT, "512 sums of 512 columns for 2 counts" },
        { 1, 1, COLUMNS / 2, TN_ERR_CORRUPT,
          "expected importance data of \"w\" for 512 columns of 3 matrices but found 256 columns of 1" },
        { 1, 0, COLUMNS, TN_ERR_CORRUPT, "512 sums of 512 columns for 0 counts" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sums[9] = bad[i].value;
        matrix[0].shape[0] = bad[i].columns;
        matrix[1].shape[0] = bad[i].counts;
        write_file("bad.zt", (tn_create_options){ .replace = true }, matrix, 2);
        check_status(try_convert("model.zt", "out.zt", (wish){ .cast = cast }, &err), &err, bad[i].status,
                     bad[i].text);
    }
    snprintf(cast, sizeof cast, "q4_K,importance=%s", in_folder("model.zt").text);
    check_status(try_convert("model.zt", "out.zt", (wish){ .cast = cast }, &err), &err, TN_ERR_ARGUMENT,
                 "expected importance data");
    snprintf(cast, sizeof cast, "mxfp4,importance=%s", in_folder("imatrix.zt").text);
    check_status(try_convert("model.zt", "out.zt", (wish){ .cast = cast }, &err), &err, TN_ERR_ARGUMENT,
                 "importance is for block types");
}

/* As many numbers as the weight has columns, or columns in all matrices, but in other rows. */
static void importance_of_another_shape_is_refused(void)
{
    static float sums[MATRICES * COLUMNS], counts[MATRICES * COLUMNS];
    char cast[PATH_MAX + 60];
    tn_error err = { .text = "" };
    const struct { int64_t rows, columns; const char *found; } bad[] = {
        { 1, MATRICES * COLUMNS, "found 1536 columns of 1" }, { 2, COLUMNS / 2, "found 256 columns of 2" },
        { COLUMNS, MATRICES, "found 3 columns of 512" },
        { 2, COLUMNS, "found 512 columns of 2" }, { 6, COLUMNS / 2, "found 256 columns of 6" },
    };
    make_files("w");
    snprintf(cast, sizeof cast, "q4_K,importance=%s", in_folder("bad.zt").text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const simple matrix[] = {
            { .name = "w.in_sum2", .dtype = TN_FLOAT32, .rank = 2, .shape = { bad[i].rows, bad[i].columns },
              .data = sums },
            { .name = "w.counts", .dtype = TN_FLOAT32, .rank = 2, .shape = { bad[i].rows, 1 }, .data = counts },
        };
        write_file("bad.zt", (tn_create_options){ .replace = true }, matrix, 2);
        check_status(try_convert("model.zt", "out.zt", (wish){ .cast = cast }, &err), &err, TN_ERR_CORRUPT,
                     bad[i].found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(each_matrix_has_weights_of_its_own),
        IN_FOLDER(the_new_name_is_looked_up_first),
        IN_FOLDER(an_error_has_the_new_name_too),
        IN_FOLDER(types_that_need_it_are_refused_without),
        IN_FOLDER(damaged_importance_is_refused),
        IN_FOLDER(importance_of_another_shape_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
