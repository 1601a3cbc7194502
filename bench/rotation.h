/* Tensors on a device, so often that a call finds nothing of them in a cache: calls take the copies in turn. */
#ifndef ETALON_BENCH_ROTATION_H
#define ETALON_BENCH_ROTATION_H

#include "problem.h"

typedef struct rotation {
    oracle_args *args;   /* of each copy */
    void       **memory; /* of each copy, all tensors of it */
    int          count, next;
    int32_t      device;
    int64_t      bytes; /* that calls touch in one turn: K and V that some row sees, and outputs */
} rotation;

/** Copies until so many bytes lie between two uses of one, as far as the device has memory. Free it, failure or not. */
bool rotation_make(const bench_problem *problem, int32_t device, int64_t bytes, rotation *r, tensorfile_error *error);
void rotation_free(rotation *r);

/** The arguments of the next call. */
oracle_args rotation_next(rotation *r);

#endif
