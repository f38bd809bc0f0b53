/* The configuration beside a model: whatever the text, it is refused with a reason or names a short method. */
#include "mutate.h"
#include "scarce.h"

#include "formats/conventions/conventions.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_text(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t i = 0; tn_config_name(i); i++) {
        tn_arena arena = { 0 };
        tn_error err = { .text = "" };
        tn_quant_config config = { 0 };
        tn_status status = tn_config_read(i, (tn_text){ (const char *)data, size }, &arena, &config, &err);
        REQUIRE(!status || (err.status == status && err.text[0] && err.offset <= size));
        REQUIRE(status || !config.method || strlen(config.method) <= size + 10);
        tn_arena_free(&arena);
    }
    return 0;
}
