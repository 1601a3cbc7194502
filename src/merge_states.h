/* What a kernel of merge_states may assume: the only thing it sees of a call. */
#ifndef ETALON_MERGE_STATES_PROBLEM_H
#define ETALON_MERGE_STATES_PROBLEM_H

#include "gate.h"
#include "tensor.h"

#include <etalon/merge_states.h>

/* Filled by merge_states_check alone. */
typedef struct merge_states_problem {
    int64_t       tokens, heads, d;
    etalon_tensor out_a, lse_a, out_b, lse_b, out, lse;
    int32_t       device;
    const char   *kernel; /* the row that the caller named, or NULL */
} merge_states_problem;

/* The one place that doubts the caller. */
etalon_status merge_states_check(const etalon_merge_states_args *args, merge_states_problem *p);

#define KERNEL(stem, needs, workspace, refuse) \
    etalon_status etalon_##stem(const etalon_context *ctx, const merge_states_problem *p, etalon_workspace work);
#include "merge_states_kernels.def"
#undef KERNEL

#endif
