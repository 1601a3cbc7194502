/* The argument of etalon_mqa_logits_paged_omp, for the kernel and for who launches it. */
#ifndef ETALON_MQA_LOGITS_PAGED_OMP_H
#define ETALON_MQA_LOGITS_PAGED_OMP_H

#include "mqa_logits_omp.h"

/* `a` is the problem of sequence 0, except for groups, which are those of the grid. */
typedef struct mqa_logits_paged_omp {
    mqa_logits_omp a;
    uint64_t       block_tables;
    int64_t        batch, block_size;
    int64_t        q_stride, context_stride, table_stride[2]; /* the first: from one sequence to the next */
    int64_t        k_stride, scale_stride;                    /* from one block to the next */
} mqa_logits_paged_omp;

#if !defined(__HIP__) && !defined(__CUDA__)

#include "mqa_logits_paged.h"

static inline int64_t mqa_logits_paged_omp_tiles(const mqa_logits_paged_problem *p, int64_t rows)
{
    return p->batch * mqa_logits_omp_tiles(p->next_n, p->n, p->columns, p->clean, rows);
}

/* All rows of a sequence, unless there are few sequences. */
static inline int64_t mqa_logits_paged_omp_rows(const mqa_logits_paged_problem *p)
{
    const int64_t least = p->h < MQA_LOGITS_OMP_ROWS ? MQA_LOGITS_OMP_ROWS / p->h : 1;
    int64_t       rows = MQA_LOGITS_OMP_ROWS;
    while (rows > least && mqa_logits_paged_omp_tiles(p, rows) < MQA_LOGITS_OMP_TILES)
        rows--;
    return rows;
}

/* At most `most` workgroups, which share the tiles. */
static inline mqa_logits_paged_omp mqa_logits_paged_omp_of(const mqa_logits_paged_problem *p, int64_t most)
{
    const int64_t        rows = mqa_logits_paged_omp_rows(p), tiles = mqa_logits_paged_omp_tiles(p, rows);
    mqa_logits_paged_omp args = { .block_tables = omp_address(&p->block_tables),
                                  .batch = p->batch,
                                  .block_size = p->block_size,
                                  .q_stride = p->q.stride[0],
                                  .context_stride = p->context_lens.stride[0],
                                  .table_stride = { p->block_tables.stride[0], p->block_tables.stride[1] },
                                  .k_stride = p->k.stride[0],
                                  .scale_stride = p->kv_scale.stride[0] };
    args.a = MQA_LOGITS_OMP(p, next_n, context_lens, 1);
    args.a.rows = rows;
    args.a.groups = tiles < most ? tiles : most;
    return args;
}

#endif

#endif
