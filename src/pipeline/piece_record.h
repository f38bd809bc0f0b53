/* pipeline/piece_record.h - what a process that made a piece leaves for the one that publishes. */
#ifndef TN_PIPELINE_PIECE_RECORD_H
#define TN_PIPELINE_PIECE_RECORD_H

#include "pipeline/plan.h"

/* What is known of piece i after tn_plan_run_apart(), as text that ends in its own checksum.  `id` is that of
 * the plan. */
tn_status tn_piece_record_write(const tn_plan *plan, size_t i, uint32_t id, tn_buf *text, tn_error *err);

/* Bytes that the record of piece i has at most. */
uint64_t tn_piece_record_most(const tn_plan *plan, size_t i);

/* Bytes that have no place yet, in a file of their own, of a whole record; UINT64_MAX: it does not say. */
uint64_t tn_piece_record_part(tn_text text);

/* Reads it into the plan: sizes and checksums of entries, sums of blocks.  *part is the size of the file
 * with the bytes that have no place.  TN_ERR_CORRUPT: it is damaged, or of another plan or piece. */
tn_status tn_piece_record_read(tn_plan *plan, size_t i, uint32_t id, tn_text text, uint64_t *part,
                               tn_error *err);

#endif
