/* descriptor/parse_dtype.c - element type and quantization. */
#include "descriptor/reader.h"

static void read_base_type(tn_wia_reader *r)
{
    tn_descriptor *d = r->d;
    size_t at;
    tn_text text = tn_wia_string(r, &at);
    if (tn_text_is(text, "FLOAT32")) {          /* the usual type needs no copy */
        d->dtype = TN_FLOAT32;
        d->base_type = "FLOAT32";
        return;
    }
    d->base_type = tn_wia_kept(r, text);
    d->dtype = tn_wia_type(d->base_type);
}

static void read_scales(tn_wia_reader *r)
{
    tn_wia_quantization *q = &r->d->quantization;
    if (q->scales)
        tn_wia_reject(r, r->j.pos, "expected one of scale and scales but found both");
    r->nwords = 0;
    bool many = tn_json_peek(&r->j) == TN_JSON_ARRAY;
    if (many)
        tn_json_array(&r->j);
    while (!r->j.status && (many ? tn_json_item(&r->j) : r->nwords == 0)) {
        double scale = tn_wia_f64(r);
        uint64_t word;
        memcpy(&word, &scale, sizeof word);
        if (!tn_wia_push(r, word))
            return;
    }
    q->scales = tn_wia_copy(r, r->words, r->nwords * sizeof *r->words);
    q->nscales = r->nwords;
}

static void read_zero_points(tn_wia_reader *r)
{
    tn_wia_quantization *q = &r->d->quantization;
    if (q->zero_points)
        tn_wia_reject(r, r->j.pos, "expected one of zero_point and zero_points but found both");
    if (tn_json_peek(&r->j) == TN_JSON_ARRAY) {
        q->zero_points = tn_wia_integers(r, &q->nzero_points);
        return;
    }
    int64_t zero = tn_json_i64(&r->j);
    q->zero_points = tn_wia_copy(r, &zero, sizeof zero);
    q->nzero_points = 1;
}

static void read_range(tn_wia_reader *r)
{
    size_t n, at = tn_wia_at(r);
    const int64_t *range = tn_wia_integers(r, &n);
    if (n != 2)
        tn_wia_reject(r, at, "expected the lowest and the highest code but found %zu numbers", n);
    if (r->j.status)
        return;
    r->d->quantization.has_range = true;
    memcpy(r->d->quantization.range, range, 2 * sizeof *range);
}

static void read_axis(tn_wia_reader *r)
{
    r->d->quantization.has_axis = true;
    r->d->quantization.channel_axis = tn_json_i64(&r->j);
}

/* Reads the next object: whether its scheme is one of the four. It must have a scheme. */
static bool has_known_scheme(tn_wia_reader *r)
{
    size_t begin = r->j.pos, at;
    bool found = false, known = false;
    tn_text key;
    tn_json_object(&r->j);
    while (tn_json_key(&r->j, &key)) {
        if (!tn_text_is(key, "scheme")) {
            tn_json_skip(&r->j);
            continue;
        }
        tn_text scheme = tn_wia_string(r, &at);
        found = true;
        for (int i = 1; i < tn_quant_scheme_words.count && !known; i++)
            known = tn_text_is(scheme, tn_quant_scheme_words.words[i]);
    }
    if (!found)
        tn_wia_reject(r, begin, "expected a scheme but found none");
    return known;
}

static const tn_wia_field quantization_fields[] = {
    TN_WIA_WORD("scheme", TN_WIA_ENUM, quantization.scheme, &tn_quant_scheme_words),
    TN_WIA_FIELD("scale", read_scales), TN_WIA_FIELD("scales", read_scales),
    TN_WIA_FIELD("zero_point", read_zero_points), TN_WIA_FIELD("zero_points", read_zero_points),
    TN_WIA_FIELD("range", read_range), TN_WIA_FIELD("channel_axis", read_axis)
};

bool tn_wia_is_quantization_member(tn_text name)
{
    return tn_wia_has_field(quantization_fields, TN_WIA_COUNT(quantization_fields), name);
}

void tn_wia_read_quantization_alone(tn_wia_reader *r, size_t at)
{
    r->j.pos = at;
    if (!has_known_scheme(r) || r->j.status)
        return;
    r->j.pos = at;
    r->nextra = 0;
    tn_wia_object(r, "", quantization_fields, TN_WIA_COUNT(quantization_fields), r->d);
}

/* An unknown scheme is kept as an extra member. */
static void read_quantization(tn_wia_reader *r)
{
    tn_json_type type = tn_json_peek(&r->j);
    if (type == TN_JSON_NULL) {
        tn_json_null(&r->j);
        return;
    }
    if (type != TN_JSON_OBJECT) {
        tn_json_unexpected(&r->j, "null or an object");
        return;
    }
    tn_json begin = r->j;
    bool known = has_known_scheme(r);
    if (r->j.status)
        return;
    r->j = begin;
    if (known)
        tn_wia_object(r, "dtype.quantization", quantization_fields, TN_WIA_COUNT(quantization_fields), r->d);
    else
        tn_wia_keep(r, "dtype", (tn_text){ "quantization", strlen("quantization") });
}

void tn_wia_read_dtype(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("base_type", read_base_type), TN_WIA_FIELD("quantization", read_quantization),
        TN_WIA_WORD("byte_order", TN_WIA_ENUM, byte_order, &tn_byte_order_words)
    };
    size_t at = tn_wia_at(r);
    if (!(tn_wia_object(r, "dtype", fields, TN_WIA_COUNT(fields), r->d) & 1))
        tn_wia_reject(r, at, "expected a base_type but found none");
}
