/* formats/pytorch/machine.h - the stack machine that runs a pickle.
 *
 * It makes values.  It imports nothing, calls nothing and looks up no name but in its own table of words
 * (calls.c): a global is a text, and a call of one that the table does not have is an object, which is
 * data. */
#ifndef TN_PYTORCH_MACHINE_H
#define TN_PYTORCH_MACHINE_H

#include "base/arena.h"
#include "base/cursor.h"
#include "base/error.h"
#include "formats/pytorch/values.h"

/* Names of globals that are called and not known: at most so many are kept. */
enum { TN_PT_MAX_CALLS = 100 };

typedef struct tn_pt_call {
    const tn_pt_global *global;
    uint64_t            at;     /* byte of the pickle */
} tn_pt_call;

/* Zero-initialise to begin; `arena`, `cur` and `base` are set by the caller, and `most_opcodes` where few
 * bytes of a file may be very many of a pickle. */
typedef struct tn_pt_machine {
    tn_arena      *arena;
    tn_cur         cur;         /* the pickle, at most 1 GiB */
    uint64_t       base;        /* its byte in the file, or TN_NO_OFFSET: it is deflated */
    tn_pt_value   *stack;
    size_t         count, cap;
    size_t        *marks;       /* heights of the stack */
    size_t         nmarks, marks_cap;
    tn_pt_value   *memo;
    size_t         nmemo, memo_cap;
    tn_pt_items   *no_items;    /* of every empty tuple, which never grows; NULL: there was none yet */
    uint64_t       opcodes, most_opcodes;   /* 0: any number */
    uint64_t       copied;      /* bytes that calls have copied */
    size_t         op;          /* byte of the present opcode */
    bool           is_script;   /* TorchScript: its own classes are not worth a word */
    tn_pt_call     calls[TN_PT_MAX_CALLS];
    size_t         ncalls, dropped_calls;
    tn_pt_storage **storages;   /* in the order of their persistent ids */
    size_t         nstorages, storages_cap;
} tn_pt_machine;

/* Runs one pickle, to its STOP; the cursor is behind it.  May be called again for the next pickle.
 * TN_ERR_CORRUPT: not a pickle.  TN_ERR_TRUNCATED: it does not end.  TN_ERR_UNSUPPORTED: a protocol, opcode
 * or storage class that is not read.  TN_ERR_LIMIT: an integer that is too long. */
tn_status tn_pt_run(tn_pt_machine *m, tn_pt_value *root, tn_error *err);
void      tn_pt_machine_free(tn_pt_machine *m);

/* --- for calls.c --- */

/* Fails at the present opcode. */
__attribute__((format(printf, 4, 5)))
tn_status tn_pt_fail(const tn_pt_machine *m, tn_error *err, tn_status status, const char *format, ...);

/* Appends to a LIST, SET or DICT. */
tn_status tn_pt_append(tn_pt_machine *m, tn_pt_items *items, const tn_pt_value *values, size_t n,
                       tn_error *err);

/* Counts bytes that a call copies or searches: the same value may be given to call after call.
 * TN_ERR_LIMIT: these are more than a constant times the bytes of the pickle. */
tn_status tn_pt_count_copied(tn_pt_machine *m, uint64_t bytes, tn_error *err);

/* A new LIST, TUPLE, SET or DICT with these items. */
tn_status tn_pt_new_items(tn_pt_machine *m, tn_pt_kind kind, const tn_pt_value *values, size_t n,
                          tn_pt_value *out, tn_error *err);

/* --- calls.c --- */

tn_status tn_pt_new_global(tn_pt_machine *m, tn_text module, tn_text name, tn_pt_value *out, tn_error *err);

/* What calling `function` with these arguments gives. */
tn_status tn_pt_call_value(tn_pt_machine *m, const tn_pt_value *function, const tn_pt_value *args, size_t n,
                           tn_pt_value *out, tn_error *err);

/* Whether it is a type of torch, such as torch.float32. */
bool tn_pt_is_dtype(const tn_pt_global *global);

/* What BUILD makes of a value. */
tn_status tn_pt_build(tn_pt_machine *m, tn_pt_value *object, const tn_pt_value *state, tn_error *err);

/* What a persistent id stands for: a storage, or a class. */
tn_status tn_pt_persistent(tn_pt_machine *m, const tn_pt_value *id, tn_pt_value *out, tn_error *err);

#endif
