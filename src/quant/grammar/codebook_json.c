/* quant/grammar/codebook_json.c - codebooks from JSON. */
#include "bytes/json.h"
#include "bytes/source.h"
#include "quant/grammar/datatype_read.h"

#include <stdlib.h>

#define FILE_SUFFIX ".json"

enum { MAX_MAPPINGS = 256, MAX_VALUES = 127, ROW = MAX_VALUES + 1, MAX_FILE = 4 << 20 };

typedef struct table {
    tn_json   j;
    bool      has_compute, has_mappings, has_positive;
    uint32_t  mappings, values;         /* values per mapping, without the implicit 0 */
    double   *value;                    /* [MAX_MAPPINGS][ROW] */
    tn_number_spec compute;
    tn_error *err;
} table;

static void too_many_values(table *t)
{
    tn_json_reject(&t->j, TN_ERR_LIMIT, "expected at most %d values in a mapping but found more", MAX_VALUES);
}

/* Reads the values of one mapping: zeros, then ascending.  Returns how many. */
static uint32_t read_values(table *t, double *row)
{
    uint32_t n = 0;
    double before = 0;
    tn_json_array(&t->j);
    for (; tn_json_item(&t->j); n++) {
        size_t from = t->j.pos;
        double value = tn_json_f64(&t->j);
        bool zero = value == 0 && before == 0 && tn_digits_are_zero(t->j.text + from, t->j.pos - from);
        if (n == ROW)
            too_many_values(t);
        else if (!t->j.status && !(value > before) && !zero)
            tn_json_reject(&t->j, TN_ERR_ARGUMENT, "expected a value above %.9g but found %.9g", before,
                           value);
        if (t->j.status)
            return 0;
        row[n] = before = value == 0 ? 0 : value;       /* no -0 */
    }
    t->has_positive |= before > 0;
    return n;
}

/* Reads one mapping.  It has as many values as the first one.  The implicit 0 may be
 * written.  Further zeros are codes that also mean 0. */
static void read_mapping(table *t)
{
    double *row = t->value + (size_t)t->mappings * ROW;
    if (t->mappings == MAX_MAPPINGS)
        tn_json_reject(&t->j, TN_ERR_LIMIT, "expected at most %d mappings but found more", MAX_MAPPINGS);
    if (t->j.status)
        return;
    uint32_t n = read_values(t, row);
    if (t->j.status)
        return;
    bool says_zero = n > 1 && !(n & (n - 1)) && row[0] == 0;    /* the implicit 0 is written */
    if (says_zero) {
        memmove(row, row + 1, --n * sizeof *row);
    } else if (n > MAX_VALUES) {
        too_many_values(t);
        return;
    }
    if (n & (n + 1) || !n)
        tn_json_reject(&t->j, TN_ERR_ARGUMENT,
                       "expected 1, 3, 7, 15, 31, 63 or 127 values in a mapping but found %u", n);
    else if (t->mappings && n != t->values)
        tn_json_reject(&t->j, TN_ERR_ARGUMENT,
                       "expected %u values in a mapping, as in the first, but found %u", t->values, n);
    t->values = n;
    t->mappings++;
}

static void read_mappings(table *t)
{
    tn_json_array(&t->j);
    while (tn_json_item(&t->j))
        read_mapping(t);
    if (t->j.status)
        return;
    if (!t->mappings || (t->mappings & (t->mappings - 1)))
        tn_json_reject(&t->j, TN_ERR_ARGUMENT,
                       "expected 1, 2, 4, 8, 16, 32, 64, 128 or 256 mappings but found %u", t->mappings);
    else if (!t->has_positive)
        tn_json_reject(&t->j, TN_ERR_ARGUMENT,
                       "expected a value above 0 in one of the mappings but found none");
}

/* Errors in the compute type refer to its text, not to the JSON. */
static tn_status read_compute(table *t)
{
    char name[64];
    tn_text text = tn_json_string(&t->j);
    if (t->j.status)
        return TN_OK;
    if (text.len >= sizeof name || tn_text_has_nul(text)) {
        tn_json_reject(&t->j, TN_ERR_ARGUMENT, "expected a number to compute with but found %s",
                       tn_quote(text.ptr, text.len).text);
        return TN_OK;
    }
    memcpy(name, text.ptr, text.len);
    name[text.len] = '\0';
    tn_reading r = { .text = name, .at = name, .end = name + text.len, .err = t->err };
    tn_status status = tn_number_read(&r, &t->compute);
    if (status == TN_OK && t->compute.kind != TN_NUMBER_FLOAT && t->compute.kind != TN_NUMBER_INT)
        return tn_reading_fail(&r, TN_ERR_ARGUMENT, name,
                               "expected a float or an int to compute with but found %s", t->compute.text);
    return status;
}

static tn_status read_table(table *t)
{
    tn_text key;
    tn_status status = TN_OK;
    tn_json_object(&t->j);
    while (status == TN_OK && tn_json_key(&t->j, &key)) {
        bool compute = tn_text_is(key, "compute"), mappings = tn_text_is(key, "mappings");
        if ((!compute && !mappings) || (compute ? t->has_compute : t->has_mappings)) {
            tn_json_reject(&t->j, TN_ERR_ARGUMENT,
                           "expected \"compute\" and \"mappings\", once each, but found %s",
                           tn_quote(key.ptr, key.len).text);
        } else if (compute) {
            t->has_compute = true;
            status = read_compute(t);
        } else {
            t->has_mappings = true;
            read_mappings(t);
        }
    }
    if (status)
        return status;
    if (!t->j.status && !(t->has_compute && t->has_mappings))
        tn_json_reject(&t->j, TN_ERR_ARGUMENT, "expected \"compute\" and \"mappings\" but found no %s",
                       t->has_compute ? "\"mappings\"" : "\"compute\"");
    tn_json_done(&t->j);
    return t->j.status ? tn_json_fail(&t->j, 0, t->err) : TN_OK;
}

static unsigned bits_of(uint32_t count)
{
    return (unsigned)__builtin_ctz(count);
}

/* Converts the values and adds the implicit 0 of each mapping. */
static tn_status make_book(const table *t, tn_codebook *book)
{
    *book = (tn_codebook){ .index_bits = bits_of(t->values + 1) + 1, .meta_bits = bits_of(t->mappings),
                           .compute = t->compute,
                           .mappings = t->mappings, .values = t->values + 1, .table = true };
    float *value = calloc((size_t)book->mappings * book->values, sizeof *value);
    TN_NEED(value, t->err);
    for (uint32_t i = 0; i < t->mappings; i++) {
        for (uint32_t k = 0; k < t->values; k++) {
            uint32_t index;
            double v = t->value[(size_t)i * ROW + k];
            if (!tn_number_find(&t->compute, v, &index)) {
                free(value);
                return tn_fail(t->err, TN_ERR_ARGUMENT,
                               "mapping %u, value %u: expected a number of %s but found %.9g", i, k,
                               t->compute.text, v);
            }
            value[i * book->values + k + 1] = (float)v;
        }
    }
    book->value = value;
    return TN_OK;
}

/* The caller frees book->value. */
static tn_status read_book(const char *json, size_t n, tn_codebook *book, tn_error *err)
{
    tn_arena arena = { 0 };
    table t = { .value = malloc(sizeof(double) * MAX_MAPPINGS * ROW), .err = err };
    TN_NEED(t.value, err);
    tn_json_init(&t.j, json, n, &arena);
    tn_status status = read_table(&t);
    if (status == TN_OK)
        status = make_book(&t, book);
    free(t.value);
    tn_arena_free(&arena);
    return status;
}

tn_status tn_datatype_codebook(const char *json, size_t n, const char *scale, tn_datatype **datatype,
                               tn_error *err)
{
    tn_codebook book;
    if (!json || !scale || !datatype)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a table of values and a scale but found none");
    tn_status status = read_book(json, n, &book, err);
    return status ? status : tn_datatype_of_codebook(&book, scale, datatype, err);
}

/* ---- files ---- */

static tn_status read_json(const tn_source *source, tn_codebook *book, tn_error *err)
{
    uint64_t size = tn_source_size(source);
    if (size > MAX_FILE)
        return tn_fail(err, TN_ERR_LIMIT, "expected a table of values of at most %d bytes but found %llu",
                       MAX_FILE, (unsigned long long)size);
    char *json = malloc(size ? (size_t)size : 1);
    TN_NEED(json, err);
    tn_status status = tn_source_read(source, 0, json, (size_t)size, err);
    if (status == TN_OK)
        status = read_book(json, (size_t)size, book, err);
    free(json);
    return status;
}

/* Errors name the file. */
static tn_status load_book(const char *path, tn_codebook *book, tn_error *err)
{
    tn_error own;
    tn_source *source = NULL;
    err = err ? err : &own;
    tn_status status = tn_source_open(path, TN_IO_PREAD, &source, err);
    if (status == TN_OK)
        status = read_json(source, book, err);
    tn_source_close(source);
    return tn_in_file(status, path, err);
}

/* The length of the NUMBER if it is the name of a file, else 0. */
static size_t file_name(const char *text)
{
    size_t n = strcspn(text, "|"), suffix = strlen(FILE_SUFFIX);
    return n > suffix && memcmp(text + n - suffix, FILE_SUFFIX, suffix) == 0 ? n : 0;
}

tn_status tn_datatype_load(const char *text, tn_datatype **datatype, tn_error *err)
{
    tn_codebook book;
    size_t n = text ? file_name(text) : 0;
    if (!n || !datatype)
        return tn_datatype_parse(text, datatype, err);
    if (!text[n])
        return tn_fail(err, TN_ERR_ARGUMENT,
                       "%s: a codebook needs a scale: expected | and one, as in |e8m0_t32, but found the end",
                       tn_quote_z(text).text);
    tn_arena arena = { 0 };
    const char *path = tn_arena_text(&arena, text, n);
    tn_status status = path ? load_book(path, &book, err) : tn_fail_nomem(err);
    tn_arena_free(&arena);
    return status ? status : tn_datatype_of_codebook(&book, text + n + 1, datatype, err);
}
