/* The argument of etalon_mqa_logits_omp, for the kernel and for who launches it. */
#ifndef ETALON_MQA_LOGITS_OMP_H
#define ETALON_MQA_LOGITS_OMP_H

#include <etalon/types.h>

enum {
    MQA_LOGITS_OMP_KEYS = 256,  /* of a tile */
    MQA_LOGITS_OMP_ROWS = 16,   /* of a tile at most; and (row, head) pairs at a time */
    MQA_LOGITS_OMP_TILES = 1024 /* that are better had than rows in a tile: a few for each place of a large device */
};

typedef struct mqa_logits_omp {
    uint64_t     q, k, kv_scale, weights, ks, ke, logits; /* addresses of element 0; ks 0: every window starts at 0 */
    int64_t      m, n, h, d;
    int64_t      columns; /* of logits */
    int64_t      q_stride[3], k_stride[2], kv_scale_stride, weights_stride[2], ks_stride, ke_stride, logits_stride[2];
    int64_t      rows;   /* of a tile */
    int64_t      groups; /* workgroups of the grid */
    etalon_dtype q_dtype, k_dtype;
    int32_t      q_quads, k_quads; /* see device_row */
    int32_t      ks_wide, ke_wide; /* I64 */
    int32_t      clean, compressed;
} mqa_logits_omp;

#if !defined(__HIP__) && !defined(__CUDA__)

#include "omp_host.h"

#include "mqa_logits.h"

/* Of keys, or of columns to clean. */
static inline int64_t mqa_logits_omp_tiles(int64_t m, int64_t n, int64_t columns, bool clean, int64_t rows)
{
    const int64_t most = clean && columns > n ? columns : n;
    return ((most + MQA_LOGITS_OMP_KEYS - 1) / MQA_LOGITS_OMP_KEYS) * ((m + rows - 1) / rows);
}

/* Query rows of a tile: as many as leave enough tiles, but as fill the pairs. */
static inline int64_t mqa_logits_omp_rows(const mqa_logits_problem *p)
{
    const int64_t least = p->h < MQA_LOGITS_OMP_ROWS ? MQA_LOGITS_OMP_ROWS / p->h : 1;
    int64_t       rows = MQA_LOGITS_OMP_ROWS;
    while (rows > least && mqa_logits_omp_tiles(p->m, p->n, p->columns, p->clean, rows) < MQA_LOGITS_OMP_TILES)
        rows--;
    return rows;
}

/* What the dense and the paged problem share; a paged tensor has a dimension before those of one sequence, `first` = 1. */
#define MQA_LOGITS_OMP(p, rows_of, ends_of, first)                                                                   \
    ((mqa_logits_omp){ .q = omp_address(&(p)->q),                                                                    \
                       .k = omp_address(&(p)->k),                                                                    \
                       .kv_scale = omp_address(&(p)->kv_scale),                                                      \
                       .weights = omp_address(&(p)->weights),                                                        \
                       .ke = omp_address(&(p)->ends_of),                                                             \
                       .logits = omp_address(&(p)->logits),                                                          \
                       .m = (p)->rows_of,                                                                            \
                       .n = (p)->n,                                                                                  \
                       .h = (p)->h,                                                                                  \
                       .d = (p)->d,                                                                                  \
                       .columns = (p)->columns,                                                                      \
                       .q_stride = { (p)->q.stride[first], (p)->q.stride[(first) + 1], (p)->q.stride[(first) + 2] }, \
                       .k_stride = { (p)->k.stride[first], (p)->k.stride[(first) + 1] },                             \
                       .kv_scale_stride = (p)->kv_scale.stride[first],                                               \
                       .weights_stride = { (p)->weights.stride[0], (p)->weights.stride[1] },                         \
                       .ke_stride = (p)->ends_of.stride[first],                                                      \
                       .logits_stride = { (p)->logits.stride[0], (p)->logits.stride[1] },                            \
                       .q_dtype = (p)->q.dtype,                                                                      \
                       .k_dtype = (p)->k.dtype,                                                                      \
                       .q_quads = omp_quads(&(p)->q),                                                                \
                       .k_quads = omp_quads(&(p)->k),                                                                \
                       .ke_wide = (p)->ends_of.dtype == ETALON_I64,                                                  \
                       .clean = (p)->clean })

/* At most `most` workgroups, which share the tiles. */
static inline mqa_logits_omp mqa_logits_omp_of(const mqa_logits_problem *p, int64_t most)
{
    const int64_t  rows = mqa_logits_omp_rows(p);
    const int64_t  tiles = mqa_logits_omp_tiles(p->m, p->n, p->columns, p->clean, rows);
    mqa_logits_omp args = MQA_LOGITS_OMP(p, m, ke, 0);
    args.ks = omp_address(&p->ks);
    args.ks_stride = p->ks.stride[0];
    args.ks_wide = p->ks.dtype == ETALON_I64;
    args.rows = rows;
    args.groups = tiles < most ? tiles : most;
    args.compressed = p->compressed;
    return args;
}

#endif

#endif
