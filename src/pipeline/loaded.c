/* pipeline/loaded.c - the parts of a tensor of a file as memory. */
#include "pipeline/loaded.h"
#include "store/kept.h"

static tn_status check_limit(const tn_loading *l, const tn_part *p, tn_error *err)
{
    tn_kept k = { .max_bytes = l->limit ? l->limit : l->in->max_bytes };
    tn_kept_add_part(&k, l->tensor, p);
    return tn_kept_check(&k, err);
}

static tn_status load_part(tn_loading *l, tn_loaded *loaded, uint32_t k, tn_error *err)
{
    tn_part *p = &loaded->parts[k];
    tn_spooling s = { .in = l->in, .tensor = l->tensor, .part = &l->tensor->parts[k], .beside = l->beside,
                      .tick = l->tick,
                      .context = l->context };
    tn_status status = tn_part_readable(l->tensor, s.part, err);
    if (status)
        return status;
    if (p->data || !p->nbytes) {
        p->data = p->data ? p->data : "";
        status = tn_spool_check(&s, err);
        l->output_failed = s.output_failed;
        return status;
    }
    status = check_limit(l, s.part, err);
    if (status)
        return status;
    status = tn_spool_part(&s, &loaded->rooms[k], err);
    loaded->spooled = true;
    l->output_failed = s.output_failed;
    p->data = loaded->rooms[k].bytes;
    return status;
}

tn_status tn_load(tn_loading *l, tn_loaded *loaded, tn_error *err)
{
    tn_status status = TN_OK;
    loaded->tensor = *l->tensor;
    loaded->tensor.parts = loaded->parts;
    for (uint32_t k = 0; k < l->tensor->nparts && k < TN_MAX_PARTS && !status; k++) {
        loaded->parts[k] = l->tensor->parts[k];
        status = load_part(l, loaded, k, err);
    }
    return status;
}

void tn_loaded_free(tn_loaded *loaded)
{
    for (unsigned k = 0; k < TN_MAX_PARTS; k++)
        tn_room_free(&loaded->rooms[k]);
}
