/* bench_claims.c - what it costs to divide pieces among processes, without making any.
 *
 *     bench-claims FOLDER PIECES
 *
 * Prints seconds: to claim all pieces and release them; to claim, record and release them, as a process
 * does that makes them; to look for free pieces where all are made. */
#include "bytes/claims.h"
#include "clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool run(tn_claims *c, size_t n, bool record, tn_claim expected)
{
    static const char text[] = "{\"format\":\"tenon piece 1\",\"part\":0,\"found\":[],\"entries\":[]}\n";
    for (size_t i = 0; i < n; i++) {
        tn_claim got;
        int lock;
        if (tn_claim_piece(c, i, &got, &lock, NULL) || got != expected)
            return false;
        if (record && tn_claim_put(c, i, ".done", (tn_text){ text, sizeof text - 1 }, NULL))
            return false;
        tn_claim_release(lock);
        if (got == TN_CLAIM_MINE)
            tn_claims_check(c);
    }
    return true;
}

int main(int argc, char **argv)
{
    tn_claims c;
    if (argc != 3 || atoi(argv[2]) < 1) {
        fprintf(stderr, "usage: bench-claims FOLDER PIECES\n");
        return 2;
    }
    size_t n = (size_t)atoi(argv[2]);
    int folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = folder >= 0 && mkdirat(folder, "pieces", 0700) == 0 && mkdirat(folder, "processes", 0700) == 0 &&
                tn_claims_open(&c, folder, NULL) == TN_OK && tn_claims_join(&c, NULL) == TN_OK;
    double began = now();
    good = good && run(&c, n, false, TN_CLAIM_MINE);
    double claimed = now();
    good = good && run(&c, n, true, TN_CLAIM_MINE);
    double recorded = now();
    good = good && run(&c, n, false, TN_CLAIM_DONE);
    double looked = now();
    if (!good) {
        fprintf(stderr, "bench-claims: %s: expected an empty folder\n", argv[1]);
        return 1;
    }
    printf("%.6f %.6f %.6f\n", claimed - began, recorded - claimed, looked - recorded);
    tn_claims_close(&c);
    return 0;
}
