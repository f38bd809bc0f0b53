/* Codes of GPTQ and AWQ, which are put in order some lines at a time where their values are wanted: any range
 * of any length, mapped or read, with every number of bits. */
#include "support.h"

#include "files.h"
#include "make.h"
#include "random.h"
#include "safetensors_bytes.h"

enum { COLUMNS = 96, GROUP = 32, GROUPS = COLUMNS / GROUP };

/* A weight of random codes, and its values. */
typedef struct weight {
    unsigned  bits, rows;       /* of a code; of the values */
    bool      awq;
    uint32_t *code, *zero;      /* [rows][COLUMNS], [rows][GROUPS] */
    uint16_t *scale;            /* [rows][GROUPS] */
    float    *value;
} weight;

static void make_weight(weight *w)
{
    const size_t n = (size_t)w->rows * COLUMNS;
    w->code = calloc(n, sizeof *w->code);
    w->zero = calloc((size_t)w->rows * GROUPS, sizeof *w->zero);
    w->scale = calloc((size_t)w->rows * GROUPS, sizeof *w->scale);
    w->value = calloc(n, sizeof *w->value);
    CHECK(w->code && w->zero && w->scale && w->value);
    for (size_t i = 0; i < n; i++)
        w->code[i] = (uint32_t)below(UINT64_C(1) << w->bits);
    for (size_t i = 0; i < (size_t)w->rows * GROUPS; i++) {
        w->zero[i] = (uint32_t)below(UINT64_C(1) << w->bits);
        w->scale[i] = (uint16_t)(0x3c00 + below(1024));         /* 1 to 2 */
    }
    for (size_t i = 0; i < n; i++) {
        const size_t group = i / COLUMNS * GROUPS + i % COLUMNS / GROUP;
        const float zero = (float)w->zero[group] + (w->awq ? 0 : 1);
        w->value[i] = ((float)w->code[i] - zero) * (1 + (float)(w->scale[group] - 0x3c00) / 1024);
    }
}

static void free_weight(weight *w)
{
    free(w->code);
    free(w->zero);
    free(w->scale);
    free(w->value);
}

/* ---- as the tools store it ---- */

/* Bits of a stream of words that lie `step` apart. */
static void put_bits(uint32_t *words, size_t step, size_t at, unsigned bits, uint32_t code)
{
    for (unsigned i = 0; i < bits; i++)
        words[(at + i) / 32 * step] |= (code >> i & 1) << (at + i) % 32;
}

/* The place of a column in its word of AWQ. */
static size_t place_of(const weight *w, size_t row)
{
    static const uint8_t order[] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    return w->awq ? row / 8 * 8 + order[row % 8] : row;
}

static void put_weight(const weight *w)
{
    const size_t across = (size_t)w->rows * w->bits / 32, down = COLUMNS * w->bits / 32;
    const size_t words = across * COLUMNS, zeros = across * GROUPS, scales = (size_t)w->rows * GROUPS;
    char header[600];
    size_t n;
    snprintf(header, sizeof header,
             "{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[%zu,%zu],\"data_offsets\":[0,%zu]},"
             "\"a.qzeros\":{\"dtype\":\"I32\",\"shape\":[%d,%zu],\"data_offsets\":[%zu,%zu]},"
             "\"a.scales\":{\"dtype\":\"F16\",\"shape\":[%d,%u],\"data_offsets\":[%zu,%zu]}}",
             w->awq ? COLUMNS : down, w->awq ? across : w->rows, 4 * words, GROUPS, across, 4 * words,
             4 * (words + zeros), GROUPS, w->rows, 4 * (words + zeros), 4 * (words + zeros) + 2 * scales);
    uint32_t *all = calloc(words + zeros + scales, sizeof *all);
    CHECK(all != NULL);
    for (size_t r = 0; r < w->rows; r++)
        for (size_t c = 0; c < COLUMNS; c++) {
            const uint32_t code = w->code[r * COLUMNS + c];
            if (w->awq)
                put_bits(all + c * across, 1, place_of(w, r) * w->bits, w->bits, code);
            else
                put_bits(all + r, w->rows, c * w->bits, w->bits, code);
        }
    uint16_t *scale = (uint16_t *)(void *)(all + words + zeros);
    for (size_t r = 0; r < w->rows; r++)
        for (size_t g = 0; g < GROUPS; g++) {
            put_bits(all + words + g * across, 1, place_of(w, r) * w->bits, w->bits, w->zero[r * GROUPS + g]);
            scale[g * w->rows + r] = w->scale[r * GROUPS + g];
        }
    uint8_t *file = make_file(header, 4 * (words + zeros) + 2 * scales, &n);
    memcpy(file + 8 + strlen(header), all, 4 * (words + zeros) + 2 * scales);
    put_bytes("model.safetensors", file, n);
    snprintf(header, sizeof header, "{\"quantization_config\":{\"quant_method\":\"%s\",\"bits\":%u,"
             "\"group_size\":%d,\"desc_act\":false,\"sym\":false}}", w->awq ? "awq" : "gptq", w->bits, GROUP);
    put_file("config.json", header);
    free(file);
    free(all);
}

/* ---- checks ---- */

static void check_range(const tn_file *f, const tn_tensor *t, const weight *w, size_t first, size_t n)
{
    float *found = malloc(n * sizeof *found + 1);
    tn_view *view = NULL;
    tn_error err = { .text = "" };
    if (tn_view_open(f, t, &view, &err) || tn_view_add_values(&view, TN_FLOAT32, &err) ||
        tn_view_read(view, 0, first, n, found, n * sizeof *found, &err))
        fail_msg("%s", line_of(&err));
    for (size_t i = 0; i < n; i++)
        if (found[i] != w->value[first + i])
            fail_msg("%u bits: value %zu is %g, not %g", w->bits, first + i, (double)found[i],
                     (double)w->value[first + i]);
    tn_view_close(view);
    free(found);
}

static void check_weight(weight w, tn_io io)
{
    make_weight(&w);
    put_weight(&w);
    tn_file *f = open_at(folder, "model.safetensors", NULL, io);
    const tn_tensor *t = tn_file_find(f, "a.weight");
    const size_t n = (size_t)w.rows * COLUMNS;
    CHECK(t && t->scaling);
    check_range(f, t, &w, 0, n);
    for (unsigned i = 0; i < 40; i++) {
        const size_t first = (size_t)below(n);
        check_range(f, t, &w, first, (size_t)below(n - first) + 1);
    }
    float *all = malloc(n * sizeof *all);
    CHECK(tn_read(f, t, TN_FLOAT32, all, n * sizeof *all, NULL) == TN_OK);
    assert_memory_equal(all, w.value, n * sizeof *all);
    free(all);
    tn_close(f);
    free_weight(&w);
}

static void every_range_of_gptq_has_its_values(void)
{
    static const unsigned bits[] = { 2, 3, 4, 8 };
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        check_weight((weight){ .bits = bits[i], .rows = 160 }, TN_IO_MMAP);
        check_weight((weight){ .bits = bits[i], .rows = 32 }, TN_IO_PREAD);
    }
}

static void every_range_of_awq_has_its_values(void)
{
    check_weight((weight){ .bits = 4, .rows = 1048, .awq = true }, TN_IO_MMAP);
    check_weight((weight){ .bits = 4, .rows = 8, .awq = true }, TN_IO_MMAP);
    check_weight((weight){ .bits = 4, .rows = 136, .awq = true }, TN_IO_PREAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_range_of_gptq_has_its_values),
        IN_FOLDER(every_range_of_awq_has_its_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
