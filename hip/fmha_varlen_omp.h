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
    args.a = ATTENTION_OMP(p, total_q, cu_seqlens_k);
    args.a.groups = tasks < most ? tasks : most;
    args.a.page_size = 1;
    for (int i = 0; i < 3; i++) { /* no pages: the first stride is not used */
        args.a.k_stride[i + 1] = p->k.stride[i];
        args.a.v_stride[i + 1] = p->v.stride[i];
    }
    attention_omp_descales(&args.a, &p->descale);
    return args;
}

#endif

#endif
