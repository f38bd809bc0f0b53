/* verbs/convert.h - tn_convert() into an open descriptor. */
#ifndef TN_VERBS_CONVERT_H
#define TN_VERBS_CONVERT_H

#include <tenon/convert.h>

/* The new file is written into `fd` (a memfd, say), which the caller keeps, and
 * gets its size; `name` stands for it in messages.  A container of one file only,
 * which create->format must name. */
tn_status tn_convert_into(const tn_file *file, int fd, const char *name, const tn_convert_options *options,
                          tn_error *err);

#endif
