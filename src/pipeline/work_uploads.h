/* pipeline/work_uploads.h - the uploads of objects that processes make together, as the work folder has them.
 *
 *     uploads/head, 0, 1 ...      the object and the id of its upload: who needs it first begins it
 *     uploads/head.coming ...     the ETag that the object is about to have
 *
 * The store keeps what was sent until the upload is finished or ended.  Nothing here is secret. */
#ifndef TN_PIPELINE_WORK_UPLOADS_H
#define TN_PIPELINE_WORK_UPLOADS_H

#include "pipeline/work.h"

/* Lets this process send parts of file `file` of the output. */
tn_status tn_work_join_upload(tn_work *w, uint32_t file, tn_error *err);

/* Before the output is published: joins the uploads of large objects, and notes what is about to come. */
tn_status tn_work_prepare_uploads(tn_work *w, tn_error *err);

/* After a process was killed while it published: notes that the object `head` is there, if it is the one that
 * was about to come. */
tn_status tn_work_settle_uploads(int folder, const char *head, tn_error *err);

/* Ends all uploads that a work folder names, of objects beside `output`.  Those that are gone are no
 * error. */
tn_status tn_work_end_uploads(int folder, const char *output, tn_error *err);

#endif
