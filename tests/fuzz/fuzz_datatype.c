/* Datatypes and codebooks: refused with a reason and a place, or read into something that reads back the same
 * and has parts. */
#include <stdlib.h>
#include <string.h>

#include <tenon/datatype.h>

#include "require.h"
#include "scarce.h"

/* Shapes of every kind, each refused or cut into parts of sizes that make sense. */
static void check_shapes(const tn_datatype *d)
{
    static const int64_t shapes[][4] = { { 0, 0, 0, 0 }, { 1, 1, 1, 1 }, { 3, 70, 33, 129 },
                                         { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX } };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (uint32_t rank = 0; rank <= 4; rank++) {
            tn_scaled_shapes s;
            tn_error err = { .text = "" };
            if (tn_scaled_shapes_for(d, rank, shapes[i], &s, &err)) {
                REQUIRE(err.text[0]);
                continue;
            }
            REQUIRE(s.count >= 1 && s.count <= 7);
            for (uint32_t k = 0; k < s.count; k++)
                for (uint32_t dim = 0; dim < s.parts[k].rank; dim++)
                    REQUIRE(s.parts[k].shape[dim] >= 0 && s.parts[k].plain_shape[dim] >= 0);
        }
    }
}

static void check_error(tn_status status, const tn_error *err)
{
    REQUIRE(err->status == status && err->text[0] && strlen(err->text) < sizeof err->text);
}

/* Its text is all that it is. */
static void check_again(const tn_datatype *d)
{
    tn_datatype *again = NULL;
    REQUIRE(tn_datatype_parse(tn_datatype_text(d), &again, NULL) == TN_OK);
    REQUIRE(strcmp(tn_datatype_text(d), tn_datatype_text(again)) == 0 &&
            tn_datatype_bits(d) == tn_datatype_bits(again));
    tn_datatype_free(again);
}

static void check_text(const char *text)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    tn_status status = tn_datatype_parse(text, &d, &err);
    if (status) {
        REQUIRE(status == TN_ERR_ARGUMENT || status == TN_ERR_UNSUPPORTED);
        check_error(status, &err);
        return;
    }
    check_again(d);
    REQUIRE(tn_datatype_bits(d) > 0 && tn_datatype_bits(d) < 100);
    check_shapes(d);
    tn_datatype_free(d);
}

static void check_json(const char *json, size_t n)
{
    tn_datatype *d = NULL;
    tn_error err = { .text = "" };
    tn_status status = tn_datatype_codebook(json, n, "e8m0_t32s4", &d, &err);
    if (status) {
        check_error(status, &err);
        return;
    }
    check_again(d);
    check_shapes(d);
    tn_datatype_free(d);
}

static tn_status parse_scarcely(const void *text, tn_error *err)
{
    tn_datatype *d = NULL;
    tn_status status = tn_datatype_parse(text, &d, err);
    tn_datatype_free(d);
    return status;
}

static tn_status read_scarcely(const void *json, tn_error *err)
{
    tn_datatype *d = NULL;
    tn_status status = tn_datatype_codebook(json, strlen(json), "e8m0_t32s4", &d, err);
    tn_datatype_free(d);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    REQUIRE(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check_text(text);
    check_json(text, size);
    scarce_check(parse_scarcely, text, scarce_choice(data, size));
    scarce_check(read_scarcely, text, scarce_choice(data, size));
    free(text);
    return 0;
}
