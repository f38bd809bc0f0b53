/* Plans by chosen rules over a small file: pieces in any order, some of them twice, give the bytes of
 * tn_convert().  The first bytes choose, the rest is a zTensor or safetensors file. */
#include "conversions.h"
#include "mutate.h"

#include "pipeline/plan.h"

enum { CHOICES = 16 };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    if (size <= CHOICES)
        return LLVMFuzzerMutate(data, size, max_size);
    if (mutant_pick(&m, 2)) {
        data[mutant_pick(&m, CHOICES)] = (uint8_t)mutant_random(&m);
        return size;
    }
    uint8_t *file = data + CHOICES;
    size_t n = size - CHOICES, cap = max_size - CHOICES;
    bool zt = n > 8 && memcmp(file, "ZTEN0001", 8) == 0;
    return CHOICES + (zt ? mutate_ztensor(file, n, cap, seed) : mutate_safetensors(file, n, cap, seed));
}

/* Runs the pieces from the one that is chosen on, around, in either direction. */
static tn_status run_pieces(tn_plan *made, chooser *c, tn_error *err)
{
    size_t n = tn_plan_count(made), first = n ? choose_bits(c) % n : 0;
    bool backward = choose_bits(c) & 1, twice = choose_bits(c) & 1;
    tn_status status = TN_OK;
    for (size_t i = 0; i < n && !status; i++) {
        size_t k = backward ? (first + n - i) % n : (first + i) % n;
        status = tn_plan_run(made, k, err);
        if (!status && twice)
            status = tn_plan_run(made, first, err);
    }
    return status;
}

static bool same_bytes(int a, int b)
{
    off_t n = lseek(a, 0, SEEK_END);
    static uint8_t x[4096], y[4096];
    if (n != lseek(b, 0, SEEK_END))
        return false;
    for (off_t at = 0; at < n; at += (off_t)sizeof x) {
        ssize_t got = pread(a, x, sizeof x, at);
        if (got != pread(b, y, sizeof y, at) || got <= 0 || memcmp(x, y, (size_t)got) != 0)
            return false;
    }
    return true;
}

static void check(tn_file *file, chooser *c)
{
    plan p = { .file = file, .options = { .size = sizeof p.options } };
    tn_error err = { .text = "" }, other = { .text = "" };
    tn_plan *made = NULL;
    choose_output(&p, c, 1);
    choose_rules(&p, c);
    p.options.dry_run = false;
    if (p.by_path)
        return;
    int pieces = memory_file(2);
    tn_status whole = convert(&p, &err);
    tn_status status = tn_plan_make_into(file, "pieces", pieces, &p.options, &made, &other);
    if (!status)
        status = run_pieces(made, c, &other);
    if (!status)
        status = tn_plan_finish(made, NULL, &other);
    tn_plan_free(made);
    REQUIRE((whole == TN_OK) == (status == TN_OK));
    REQUIRE(status || same_bytes(p.fd, pieces));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chooser c = { .bytes = data, .left = size < CHOICES ? size : CHOICES };
    tn_file *file = NULL;
    if (size <= CHOICES || tn_open_memory(data + CHOICES, size - CHOICES, NULL, &file, NULL))
        return 0;
    tn_piece_bytes = 1 + choose_bits(&c);
    if (walk_is_small(file))
        check(file, &c);
    tn_close(file);
    return 0;
}
