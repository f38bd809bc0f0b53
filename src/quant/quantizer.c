/* quant/quantizer.c - the table of quantizers. */
#include "quant/quantizer.h"

static const tn_quantizer *const quantizers[] = {
    &tn_affine_quantizer,
    &tn_block_quantizer,
    &tn_lookup_quantizer,
    &tn_variant_quantizer,
    &tn_tile_quantizer,         /* last: any text can be one of its datatypes */
};

const tn_quantizer *tn_quantizer_for(const char *text)
{
    const tn_quantizer *const *q = quantizers;
    while (!(*q)->is_text(text))
        q++;
    return *q;
}
