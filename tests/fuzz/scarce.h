/* tests/fuzz/scarce.h - memory that runs out in the middle of a target's run.
 *
 * The linker gives the allocations of the library to scarce.c (--wrap), which
 * makes one of them fail; those inside shared libraries do not. */
#ifndef TN_FUZZ_SCARCE_H
#define TN_FUZZ_SCARCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <tenon/error.h>

#include "require.h"

/* The n-th allocation from here on fails; 0: none.  Returns how many there were since the last call. */
long scarce_from(long n);

/* Whether one has failed since scarce_from(). */
bool scarce_failed(void);

static inline uint64_t scarce_choice(const uint8_t *data, size_t size)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);      /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        h = (h ^ data[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

/* What must come out whichever allocation fails: the same as before, or TN_ERR_NOMEM. The input chooses which
 * ones. */
typedef tn_status (*scarce_fn)(const void *context, tn_error *err);

static inline void scarce_check(scarce_fn run, const void *context, uint64_t choice)
{
    tn_error err = { .text = "" };
    scarce_from(0);
    tn_status plain = run(context, &err);
    long n = scarce_from(0);
    for (int i = 0; i < 2 && n; i++) {
        err = (tn_error){ .text = "" };
        scarce_from(1 + (long)(choice % (uint64_t)n));
        tn_status status = run(context, &err);
        bool failed = scarce_failed();
        scarce_from(0);
        snprintf(require_note, sizeof require_note,
                 "(allocation %ld of %ld: status %d, not %d; the error says %d: %.100s)",
                 1 + (long)(choice % (uint64_t)n), n, (int)status, (int)plain, (int)err.status, err.text);
        REQUIRE(status == plain || (failed && status == TN_ERR_NOMEM));
        REQUIRE(!status || (err.status == status && err.text[0]));
        require_note[0] = '\0';
        choice /= (uint64_t)n;
    }
}

#endif
