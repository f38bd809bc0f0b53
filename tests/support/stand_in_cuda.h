/* tests/support/stand_in_cuda.h - what a test can see and change of the stand-in
 * for the CUDA driver: dlsym(library, "stand_in_cuda"). */
#ifndef TN_TESTS_STAND_IN_CUDA_H
#define TN_TESTS_STAND_IN_CUDA_H

typedef struct cuda_stand_in {
    int devices;                /* 0: there is none; -1: cuInit() says so already */
    int contexts;               /* retained and not released */
    int allocations, opened, registered;
    int calls, failing;         /* which call fails, counted from 1; 0: none.  Those that give back never
                                 * do */
    int failure;                /* its result */
} cuda_stand_in;

extern cuda_stand_in stand_in_cuda;

#endif
