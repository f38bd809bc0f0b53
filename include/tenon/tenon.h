/* tenon/tenon.h - everything. */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/cast.h>
#include <tenon/convert.h>
#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/file.h>
#include <tenon/stats.h>
#include <tenon/tensor.h>
#include <tenon/version.h>
#include <tenon/writer.h>

#endif
