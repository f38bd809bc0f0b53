/* tenon/tenon.h - everything. */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/buffer.h>
#include <tenon/cast.h>
#include <tenon/convert.h>
#include <tenon/plan.h>
#include <tenon/datatype.h>
#include <tenon/descriptor.h>
#include <tenon/device.h>
#include <tenon/dlpack.h>
#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/export.h>
#include <tenon/file.h>
#include <tenon/layout.h>
#include <tenon/memory.h>
#include <tenon/mli.h>
#include <tenon/quantize.h>
#include <tenon/remote.h>
#include <tenon/report.h>
#include <tenon/share.h>
#include <tenon/sparse.h>
#include <tenon/stats.h>
#include <tenon/tensor.h>
#include <tenon/version.h>
#include <tenon/view.h>
#include <tenon/work.h>
#include <tenon/writer.h>

#endif
