/* tests/support/format_option.h - members of a tn_create_options: one option of a format. */
#ifndef TN_TESTS_FORMAT_OPTION_H
#define TN_TESTS_FORMAT_OPTION_H

#include <tenon/writer.h>

#define FORMAT_OPTION(format, key, value) \
    .format_options = &(const tn_format_option){ format, key, value }, .nformat_options = 1
#define FILLER FORMAT_OPTION("safetensors", "filler", "yes")
#define OCP_NAMES(format) FORMAT_OPTION(format, "ocp-names", "yes")
#define SYMMETRIC FORMAT_OPTION("mtx", "symmetric", "yes")

#endif
