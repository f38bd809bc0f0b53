/* pipeline/object_parts.h - the parts of an object that several processes make.
 *
 * A store takes an object in numbered parts of 5 MiB or more.  Which there are follows from the plan alone:
 * bytes that one piece makes, and whose place is known, are parts of that piece.  The rest (header and index,
 * what is compressed, ranges that are too small) belongs to no piece and is sent by whoever publishes. */
#ifndef TN_PIPELINE_OBJECT_PARTS_H
#define TN_PIPELINE_OBJECT_PARTS_H

#include "pipeline/plan.h"

/* Bytes of a part of most objects. */
#define TN_OBJECT_PART ((uint64_t)16 << 20)

/* Bytes of a usual part of an object of at most `size` bytes: so many that there are not too many parts. */
uint64_t  tn_object_part_bytes(uint64_t size);

/* Bytes that the output will have at most, about. */
uint64_t  tn_object_bytes(const tn_writer *writer);

/* Bytes of an object that a piece makes, or (TN_NO_PIECE) that none makes alone. */
typedef struct tn_object_span {
    uint64_t begin, end;
    uint32_t piece;
} tn_object_span;

/* The parts of an object of at most `size` bytes, for tn_sink_cut(): *parts is to be freed, also after a
 * failure.  Spans are in order and do not overlap.  Bytes between the parts of pieces are parts as well, and
 * need as many bytes: they take them from the piece that follows. */
tn_status tn_object_parts(const tn_object_span *spans, size_t n, uint64_t size, tn_sink_part **parts,
                          size_t *count, tn_error *err);

/* Gives the plan's objects, which are shared (tn_writer_share()), their parts. */
tn_status tn_objects_cut(const tn_plan *plan, tn_error *err);

/* Whether a piece has parts of its own. */
bool      tn_object_has_parts(const tn_plan *plan, size_t piece);

#endif
