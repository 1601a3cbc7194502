/* What a kernel of fmha_varlen may assume: the only thing it sees of a call. */
#ifndef ETALON_FMHA_VARLEN_PROBLEM_H
#define ETALON_FMHA_VARLEN_PROBLEM_H

#include "attention_check.h"
#include "gate.h"

#include <etalon/fmha_varlen.h>

/* Filled by fmha_varlen_check alone. */
typedef struct fmha_varlen_problem {
    int64_t              total_q, total_k, heads, kv_heads, d_qk, d_v, batch;
    etalon_tensor        q, k, v, cu_seqlens_q, cu_seqlens_k, out, lse;
    attention_descales   descale;
    attention_mask       mask;
    double               softmax_scale;
    int64_t              max_seqlen_q, max_seqlen_k; /* 0: not given */
    int32_t              device;
    etalon_model_options model;
    const char          *kernel; /* the row that the caller named, or NULL */
} fmha_varlen_problem;

/* The one place that doubts the caller. */
etalon_status fmha_varlen_check(const etalon_fmha_varlen_args *args, fmha_varlen_problem *p);

/* What a kernel does with a problem whose tensors lie on the device. */
typedef etalon_status fmha_varlen_launch(const etalon_context *ctx, const char *stem, const fmha_varlen_problem *there,
                                         void *stream);

/* Has the problem there while `launch` runs. */
etalon_status fmha_varlen_on_device(const etalon_context *ctx, const fmha_varlen_problem *p, void *stream,
                                    const char *stem, fmha_varlen_launch *launch);

#define KERNEL(stem, needs, workspace, refuse)                                        \
    size_t etalon_##stem##_workspace(const etalon_context *ctx, const void *problem); \
    etalon_status etalon_##stem(const etalon_context *ctx, const fmha_varlen_problem *p, etalon_workspace work);
#include "fmha_varlen_kernels.def"
#undef KERNEL

#endif
