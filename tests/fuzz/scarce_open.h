/* tests/fuzz/scarce_open.h - opening and reading bytes while memory runs out. */
#ifndef TN_FUZZ_SCARCE_OPEN_H
#define TN_FUZZ_SCARCE_OPEN_H

#include "scarce.h"

#include <tenon/tenon.h>

typedef struct scarce_bytes {
    const uint8_t *data;
    size_t         size;
    const char    *format;
} scarce_bytes;

/* The first error of opening, or of reading the parts that are small; which part is bad is no matter here. */
static inline tn_status scarce_read(const tn_file *file, tn_error *err)
{
    static uint8_t room[4096];
    tn_status first = TN_OK;
    for (size_t i = 0; i < tn_file_count(file); i++)
        for (uint32_t k = 0; k < tn_file_tensor(file, i)->nparts; k++) {
            const tn_part *part = &tn_file_tensor(file, i)->parts[k];
            tn_error why = { .text = "" };
            tn_status status = part->nbytes <= sizeof room
                    ? tn_part_read(file, part, room, part->nbytes, &why) : TN_OK;
            if (!status || (first && status != TN_ERR_NOMEM))
                continue;
            first = status;
            *err = why;
        }
    return first;
}

static inline tn_status scarce_open_bytes(const void *context, tn_error *err)
{
    const scarce_bytes *b = context;
    tn_open_options options = { .size = sizeof options, .format = b->format };
    tn_file *file = NULL;
    tn_status status = tn_open_memory(b->data, b->size, &options, &file, err);
    REQUIRE(status ? !file : file != NULL);
    if (status)
        return status;
    status = scarce_read(file, err);
    tn_close(file);
    return status;
}

static inline void scarce_open(const uint8_t *data, size_t size, const char *format)
{
    const scarce_bytes b = { data, size, format };
    scarce_check(scarce_open_bytes, &b, scarce_choice(data, size));
}

#endif
