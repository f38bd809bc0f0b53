/* A datatype for the test that adds one of each: "sixteenths", int8 codes that count sixteenths. */
#include "base/error.h"
#include "quant/quantizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char name[] = "sixteenths";

static bool is_text(const char *text)
{
    return strcmp(text, name) == 0;
}

static tn_status parse(const char *text, tn_datatype **datatype, tn_error *err)
{
    tn_datatype *d = calloc(1, sizeof *d);
    if (!d || !(d->text = strdup(text))) {
        free(d);
        return tn_fail_nomem(err);
    }
    d->quantizer = &tn_sixteenths_quantizer;
    d->number = (tn_number_spec){ .kind = TN_NUMBER_INT, .bits = 8, .maxint = 127, .dtype = TN_INT8 };
    memcpy(d->number.text, name, sizeof name);
    *datatype = d;
    return TN_OK;
}

static tn_status shapes(const tn_datatype *d, uint32_t rank, const int64_t *shape, tn_scaled_shapes *s,
                        tn_error *err)
{
    tn_scaled_part *data = &s->parts[s->count++];
    (void)d, (void)err;
    *data = (tn_scaled_part){ .role = "data", .plain_dtype = TN_INT8, .dtype = TN_INT8, .rank = rank };
    for (uint32_t i = 0; i < rank; i++)
        data->shape[i] = data->plain_shape[i] = shape[i];
    return TN_OK;
}

static tn_status check(const tn_datatype *d, const tn_quantize_options *o, tn_error *err)
{
    (void)d, (void)o, (void)err;
    return TN_OK;
}

static tn_status encode(const tn_scaled_job *j, tn_scaled_scratch *w, tn_scaled_result *f, uint64_t batch,
                        uint64_t piece, tn_error *err)
{
    tn_job_block b = tn_job_block_of(j, w, batch);
    (void)piece, (void)err;
    for (size_t i = 0; i < b.n; i++)
        b.codes[i] = (uint8_t)(int8_t)fmaxf(-127, fminf(127, rintf(b.x[i] * 16)));
    tn_job_decode_block(j, w, f, &b);
    return TN_OK;
}

static tn_status open_values(tn_part_values *v, tn_error *err)
{
    (void)v, (void)err;
    return TN_OK;
}

static void read_values(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    const int8_t *codes = (const int8_t *)v->plan->data.data + (first - v->plan->data.from);
    for (size_t i = 0; i < n; i++)
        y[i] = (float)codes[i] / 16;
}

const tn_quantizer tn_sixteenths_quantizer = {
    .name = name, .is_text = is_text, .parse = parse, .shapes = shapes, .check = check,
    .encode = encode, .open = open_values, .read = read_values,
};
