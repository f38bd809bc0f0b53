/* A datatype for the test that adds one of each: "sixteenths", int8 codes that count sixteenths. */
#include "base/error.h"
#include "quant/quantizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SOME = 4096 };

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

static bool streams(const tn_scaled_plan *plan)
{
    (void)plan;
    return true;
}

static bool turns(const tn_scaled_plan *plan)
{
    (void)plan;
    return false;
}

static tn_status encode(const tn_scaled_work *w, tn_error *err)
{
    const float *x = w->src;
    uint64_t count = w->plan->count;
    int8_t codes[SOME], *data = (int8_t *)w->plan->data.data;
    tn_status status = TN_OK;
    if (w->src_type != TN_FLOAT32 || (!data && !w->emit))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "sixteenths are made of float32");
    for (uint64_t at = 0; at < count && !status; at += SOME) {
        size_t n = count - at < SOME ? (size_t)(count - at) : SOME;
        for (size_t i = 0; i < n; i++)
            codes[i] = (int8_t)fmaxf(-127, fminf(127, rintf(x[at + i] * 16)));
        if (w->emit)
            status = w->emit(w->context, (const uint8_t *)codes, n, err);
        else
            memcpy(data + at, codes, n);
    }
    return status;
}

static tn_status open_values(tn_part_values *v, tn_error *err)
{
    (void)v, (void)err;
    return TN_OK;
}

static void read_values(const tn_part_values *v, uint64_t first, size_t n, float *y)
{
    const int8_t *codes = (const int8_t *)v->plan->data.data + first;
    for (size_t i = 0; i < n; i++)
        y[i] = (float)codes[i] / 16;
}

static void close_values(tn_part_values *v)
{
    (void)v;
}

const tn_quantizer tn_sixteenths_quantizer = {
    .name = name, .is_text = is_text, .parse = parse, .shapes = shapes, .check = check, .streams = streams,
    .turns = turns, .encode = encode, .open = open_values, .read = read_values, .close = close_values,
};
