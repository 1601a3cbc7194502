/* Problems drawn from a seed: random ones, and those on which kernels in the field were wrong. */
#ifndef ETALON_GENERATE_H
#define ETALON_GENERATE_H

#include "oracle.h"

#include <stdio.h>

typedef struct generate_request {
    const oracle_op   *op;
    const char *const *shape; /* texts "key=value,key=value" */
    int                shape_count;
    const char        *pattern; /* NULL: "random" */
    uint64_t           seed;
} generate_request;

/**
 * Tensors and metadata as a file would hold them; the same bytes for the same request on every machine.
 * Refuses unknown keys and patterns with a list of the known ones, and sizes beyond 64 bits or this machine's memory
 * before it allocates any tensor. Free with generate_free, failure or not.
 */
bool generate(const generate_request *request, tensorfile *file, tensorfile_error *error);

/** Adds expected_* tensors, computed by the operation's reference row. */
bool generate_expected(const etalon_context *ctx, tensorfile *file, tensorfile_error *error);

void generate_free(tensorfile *file);

/** One line a pattern of the operation: its name and what it is. */
void generate_list_patterns(const oracle_op *op, FILE *to);

/** One line a shape key of the operation: its name, its default and what it is. */
void generate_list_keys(const oracle_op *op, FILE *to);

#endif
