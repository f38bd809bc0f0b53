/* tenon/version.h - which library this is. */
#ifndef TENON_VERSION_H
#define TENON_VERSION_H

#include <tenon/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

/* The version, "0.1.0", of the library that is loaded, which may be newer than the headers. */
TN_API const char *tn_version(void);

/* Line i of what this build was made with ("zstd 1.5.4", "isa-l
 * 2.30.0", "OpenSSL 3.0.19"); NULL when i is out of range. */
TN_API const char *tn_build_fact(size_t i);

#ifdef __cplusplus
}
#endif
#endif
