/* The argument of etalon_pa_mtp_plan_omp, etalon_pa_mtp_omp and etalon_pa_mtp_reduce_omp, which run in this order. */
#ifndef ETALON_PA_MTP_OMP_H
#define ETALON_PA_MTP_OMP_H

#include "attention_omp.h"

enum { PA_MTP_OMP_LEAST_KEYS = 256 /* of a segment, and what its length is a multiple of: a tile */ };

/* Tasks: (sequence, KV head, group of rows, segment of keys). The plan is I64 [B + 2]: keys of a segment, then the
 * number of the first task of each sequence, and of all. A task's part is F32: O [16, d_v], m [16], l [16]. */
typedef struct pa_mtp_omp {
    attention_omp a;
    uint64_t      plan, parts;
    int64_t       wanted_tasks;  /* what the plan aims at */
    int64_t       reduce_groups; /* workgroups of the grid of the reduction */
} pa_mtp_omp;

#if !defined(__HIP__) && !defined(__CUDA__)

#include "pa_mtp.h"

/* Tasks that a plan can have at most: sequences share no group, so each has up to one that is not full, and each group
 * a segment that is not full. */
static inline int64_t pa_mtp_omp_most_tasks(const pa_mtp_problem *p, int64_t wanted)
{
    const int64_t rows = p->tokens * (p->heads / p->kv_heads);
    return wanted + p->kv_heads * (rows / ATTENTION_OMP_ROWS + p->batch);
}

static inline size_t pa_mtp_omp_plan_bytes(const pa_mtp_problem *p)
{
    const size_t bytes = sizeof(int64_t) * (size_t)(p->batch + 2);
    return (bytes + ETALON_WORKSPACE_ALIGN - 1) / ETALON_WORKSPACE_ALIGN * ETALON_WORKSPACE_ALIGN;
}

static inline size_t pa_mtp_omp_workspace(const pa_mtp_problem *p, int64_t wanted)
{
    const int64_t part = ATTENTION_OMP_ROWS * (p->d_v + 2);
    const size_t  bytes = sizeof(float) * (size_t)(part * pa_mtp_omp_most_tasks(p, wanted));
    return pa_mtp_omp_plan_bytes(p) +
           (bytes + ETALON_WORKSPACE_ALIGN - 1) / ETALON_WORKSPACE_ALIGN * ETALON_WORKSPACE_ALIGN;
}

/* `wanted` tasks, over at most `most` workgroups; `work` is the address of the workspace. */
static inline pa_mtp_omp pa_mtp_omp_of(const pa_mtp_problem *p, uint64_t work, int64_t wanted, int64_t most)
{
    const int64_t tasks = p->tokens > 0 ? pa_mtp_omp_most_tasks(p, wanted) : 0, rows = p->tokens * p->heads;
    pa_mtp_omp    args = { .plan = work,
                           .parts = work + pa_mtp_omp_plan_bytes(p),
                           .wanted_tasks = wanted,
                           .reduce_groups = rows < most ? rows : most };
    args.a = ATTENTION_OMP(p, tokens, seq_lens);
    args.a.groups = tasks < most ? tasks : most;
    args.a.page_size = p->page_size;
    args.a.table = omp_address(&p->block_tables);
    for (int i = 0; i < 4; i++) {
        args.a.k_stride[i] = p->k.stride[i];
        args.a.v_stride[i] = p->v.stride[i];
    }
    for (int i = 0; i < 2; i++)
        args.a.table_stride[i] = p->block_tables.stride[i];
    attention_omp_descales(&args.a, &p->descale);
    return args;
}

#endif

#endif
