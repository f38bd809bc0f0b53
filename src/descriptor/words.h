/* descriptor/words.h - the words of the specification for enum values. */
#ifndef TN_DESCRIPTOR_WORDS_H
#define TN_DESCRIPTOR_WORDS_H

#include <stdbool.h>

/* The word of value i is words[i]; a value without one has NULL. */
typedef struct tn_words {
    const char *const *words;
    int                count;
    bool               any_case;    /* "cpu" is read as "CPU" */
} tn_words;

extern const tn_words tn_quant_scheme_words, tn_handle_type_words, tn_device_type_words,
    tn_memory_space_words, tn_byte_order_words, tn_permission_words, tn_access_mode_words,
    tn_sparse_format_words, tn_index_type_words;

#endif
