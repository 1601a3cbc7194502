/* The problems that are timed: named shapes, and what a call of one does. */
#ifndef ETALON_BENCH_PROBLEM_H
#define ETALON_BENCH_PROBLEM_H

#include "generate.h"

/* A shape with a name. Lengths are "number,number,...", taken in turn by the sequences; NULL: all as the shape says. */
typedef struct bench_shape {
    const char *op, *name;
    const char *text;    /* keys of `etalon gen --shape` */
    const char *pattern; /* of `etalon gen --pattern` */
    const char *queries, *keys;
    bool        large; /* seconds to hours here: timed only where it is named */
} bench_shape;

/* All named shapes, ending with one without a name. */
extern const bench_shape bench_shapes[];

/** The named shape, or "key=value,..." with `pattern=NAME` among the keys, which outlives the result. */
bool bench_find_shape(const char *op, const char *name, bench_shape *shape, tensorfile_error *error);

/* A call, and what it amounts to. */
typedef struct bench_problem {
    tensorfile     file;
    oracle_problem problem;
    oracle_result  result;
    oracle_args    args;        /* with the outputs */
    double         pairs;       /* visible (query row, key) pairs, a query head each in attention */
    double         flops;       /* of the products over them */
    const uint8_t *codes[2];    /* K and V where they are E4M3FN, else NULL */
    int64_t        elements[2]; /* of K and V that some row sees */
    int64_t        kv_bytes;
    int64_t        bytes; /* of memory for all tensors */
} bench_problem;

/** Random numbers from a fixed seed. Free the problem, failure or not. */
bool bench_make(const bench_shape *shape, bench_problem *problem, tensorfile_error *error);

/** A small problem of the same kind as `like`, for the speed of the reference. */
bool bench_make_small(const bench_shape *shape, const bench_problem *like, bench_problem *problem,
                      tensorfile_error *error);

void bench_free(bench_problem *problem);

#endif
