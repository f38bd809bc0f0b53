/* cli/ui/lost.c - what casts lose, said once per conversion. */
#include "ui/lost.h"
#include "ui/json.h"
#include "ui/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lost_add(lost_values *all, const tn_cast_report *lost)
{
    if (!all->tensors++) {
        all->name = must_allocate(strlen(lost->name) + 1, 1);
        strcpy(all->name, lost->name);
        all->dtype = lost->dtype;
    }
    all->values += lost->values;
    all->flushed += lost->flushed;
    all->saturated += lost->saturated;
}

/* How the values could be kept. */
static void find_way_out(const tn_dtype_info *type, char *text, size_t cap)
{
    bool is_integer = type->kind == TN_KIND_INT || type->kind == TN_KIND_UINT;
    if (is_integer && type->bits <= 16)
        snprintf(text, cap, "codes with scales keep them, as in --cast %s,per=tensor", type->name);
    else if (type->kind == TN_KIND_FLOAT && type->bits <= 8)
        snprintf(text, cap, "types with scales keep them, as mxfp8 and mxfp4, and so does bf16");
    else
        snprintf(text, cap, "a type of a larger range keeps them, as %s",
                 type->exponent_bits < 8 ? "bf16 or f32" : "f64");
}

void say_lost(const lost_values *all)
{
    char what[120] = "", more[100] = "", way_out[120];
    if (!all->tensors)
        return;
    const tn_dtype_info *type = tn_dtype_get(all->dtype);
    if (all->tensors > 1)
        snprintf(more, sizeof more, " and %s", counted(all->tensors - 1, "other tensor").s);
    if (all->flushed)
        snprintf(what, sizeof what, "%llu became 0", (unsigned long long)all->flushed);
    if (all->saturated)
        snprintf(what + strlen(what), sizeof what - strlen(what), "%s%llu were beyond the largest value",
                 all->flushed ? " and " : "", (unsigned long long)all->saturated);
    find_way_out(type, way_out, sizeof way_out);
    say("warning: tensor \"%s\"%s: of %llu values other than 0, %s in %s: %s (--strict makes this an error)",
        escaped(all->name), more, (unsigned long long)all->values, what, type->name, way_out);
}

void json_lost(const lost_values *all)
{
    json_key("lost");
    if (!all->tensors) {
        json_word("null");
        return;
    }
    json_open('{');
    json_uint_field("tensors", all->tensors);
    json_text_field("first", all->name);
    json_uint_field("values", all->values);
    json_uint_field("flushed", all->flushed);
    json_uint_field("saturated", all->saturated);
    json_close('}');
}

void lost_free(lost_values *all)
{
    free(all->name);
}
