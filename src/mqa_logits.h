/* What a kernel of mqa_logits may assume: the only thing it sees of a call. */
#ifndef ETALON_MQA_LOGITS_PROBLEM_H
#define ETALON_MQA_LOGITS_PROBLEM_H

#include "gate.h"
#include "tensor.h"

#include <etalon/mqa_logits.h>

/* Filled by mqa_logits_check alone. */
typedef struct mqa_logits_problem {
    int64_t       m, n, h, d;
    etalon_tensor q, k, kv_scale, weights, ks, ke, logits;
    int32_t       device;
    bool          clean;
    const char   *kernel; /* the row that the caller named, or NULL */
} mqa_logits_problem;

/* The one place that doubts the caller. */
etalon_status mqa_logits_check(const etalon_mqa_logits_args *args, mqa_logits_problem *p);

/* Keys that one row sees, clamped. */
key_range mqa_logits_window(const mqa_logits_problem *p, int64_t m);

#define KERNEL(stem, needs, workspace, refuse)                                        \
    size_t etalon_##stem##_workspace(const etalon_context *ctx, const void *problem); \
    etalon_status etalon_##stem(const etalon_context *ctx, const mqa_logits_problem *p, etalon_workspace work);
#include "mqa_logits_kernels.def"
#undef KERNEL

#endif
