/* The argument of etalon_fmha_varlen_omp, for the kernel and for who launches it. */
#ifndef ETALON_FMHA_VARLEN_OMP_H
#define ETALON_FMHA_VARLEN_OMP_H

#include "attention_omp.h"

/* Sequence b has the places (rows of q before it) / rows + b on for its groups of rows: that is room for every
 * sequence, and no length need be read to size the grid. A task is a place and a KV head. */
typedef struct fmha_varlen_omp {
    attention_omp a;
    int64_t       places;
} fmha_varlen_omp;

#if !defined(__HIP__) && !defined(__CUDA__)

#include "fmha_varlen.h"

/* At most `most` workgroups, which share the tasks. */
static inline fmha_varlen_omp fmha_varlen_omp_of(const fmha_varlen_problem *p, int64_t most)
{
    const int64_t   rows = ATTENTION_OMP_ROWS;
    fmha_varlen_omp args = { .places = p->total_q > 0 ? p->total_q * (p->heads / p->kv_heads) / rows + p->batch : 0 };
    const int64_t   tasks = args.places * p->kv_heads;
    args.a = (attention_omp){ .q = omp_address(&p->q),
                              .k = omp_address(&p->k),
                              .v = omp_address(&p->v),
                              .out = omp_address(&p->out),
                              .lse = omp_address(&p->lse),
                              .cu_seqlens_q = omp_address(&p->cu_seqlens_q),
                              .lengths = omp_address(&p->cu_seqlens_k),
                              .batch = p->batch,
                              .tokens = p->total_q,
                              .heads = p->heads,
                              .kv_heads = p->kv_heads,
                              .d_qk = p->d_qk,
                              .d_v = p->d_v,
                              .page_size = 1,
                              .q_stride = { p->q.stride[0], p->q.stride[1], p->q.stride[2] },
                              .out_stride = { p->out.stride[0], p->out.stride[1], p->out.stride[2] },
                              .lse_stride = { p->lse.stride[0], p->lse.stride[1] },
                              .k_stride = { 0, p->k.stride[0], p->k.stride[1], p->k.stride[2] },
                              .v_stride = { 0, p->v.stride[0], p->v.stride[1], p->v.stride[2] },
                              .cu_seqlens_q_stride = p->cu_seqlens_q.stride[0],
                              .lengths_stride = p->cu_seqlens_k.stride[0],
                              .left = p->mask.left,
                              .right = p->mask.right,
                              .softmax_scale = p->softmax_scale,
                              .groups = tasks < most ? tasks : most,
                              .q_dtype = p->q.dtype,
                              .kv_dtype = p->k.dtype,
                              .out_dtype = p->out.dtype,
                              .q_quads = omp_quads(&p->q),
                              .k_quads = omp_quads(&p->k),
                              .v_quads = omp_quads(&p->v),
                              .cu_seqlens_q_wide = p->cu_seqlens_q.dtype == ETALON_I64,
                              .lengths_wide = p->cu_seqlens_k.dtype == ETALON_I64 };
    attention_omp_descales(&args.a, &p->descale);
    return args;
}

#endif

#endif
