/* What a kernel of mqa_logits_paged may assume: the only thing it sees of a call. */
#ifndef ETALON_MQA_LOGITS_PAGED_PROBLEM_H
#define ETALON_MQA_LOGITS_PAGED_PROBLEM_H

#include "mqa_logits.h"

#include <etalon/mqa_logits_paged.h>

/* Filled by mqa_logits_paged_check alone. */
typedef struct mqa_logits_paged_problem {
    int64_t       batch, next_n, h, d;
    int64_t       n;       /* keys that a row can see at most */
    int64_t       columns; /* of logits */
    int64_t       blocks, block_size;
    etalon_tensor q;           /* [batch, next_n, h, d] */
    etalon_tensor k, kv_scale; /* [blocks, block_size, d] and [blocks, block_size] of the cache */
    etalon_tensor weights, context_lens, block_tables, logits;
    int32_t       device;
    bool          clean;
    const char   *kernel; /* the row that the caller named, or NULL */
} mqa_logits_paged_problem;

/* The one place that doubts the caller. */
etalon_status mqa_logits_paged_check(const etalon_mqa_logits_paged_args *args, mqa_logits_paged_problem *p);

/* The rows of sequence b as a problem of mqa_logits whose keys lie in blocks. Host memory only. */
mqa_logits_problem mqa_logits_paged_sequence(const mqa_logits_paged_problem *p, int64_t b);

#define KERNEL(stem, needs, workspace, refuse)                                        \
    size_t etalon_##stem##_workspace(const etalon_context *ctx, const void *problem); \
    etalon_status etalon_##stem(const etalon_context *ctx, const mqa_logits_paged_problem *p, etalon_workspace work);
#include "mqa_logits_paged_kernels.def"
#undef KERNEL

#endif
