/* store/numbers.c - the integers of a part, one after the other. */
#include "store/numbers.h"
#include "tensor/code.h"

tn_status tn_numbers_open(tn_numbers *s, const tn_file *file, const tn_tensor *t, const tn_part *p,
                          tn_checksum kind, tn_error *err)
{
    s->dtype = p->array.dtype;
    return tn_stream_open(&s->stream, file, t, p, 0, p->nbytes, kind, err);
}

tn_status tn_numbers_next(tn_numbers *s, uint64_t *value, bool *any, tn_error *err)
{
    *any = true;
    if (s->next == s->count) {
        size_t n = 0;
        tn_status status = tn_stream_next(&s->stream, &s->bytes, &n, err);
        s->next = 0;
        s->count = n / (tn_dtype_get(s->dtype)->bits / 8);
        *any = !status && s->count;
        if (!*any)
            return status;
    }
    *value = tn_index_get(s->dtype, s->bytes, s->next++);
    s->taken++;
    return TN_OK;
}
