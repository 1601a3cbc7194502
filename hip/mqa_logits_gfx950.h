/* The argument of the gfx950 kernels of mqa_logits, for them and for who launches them. */
#ifndef ETALON_MQA_LOGITS_GFX950_H
#define ETALON_MQA_LOGITS_GFX950_H

#include <stdint.h>

enum {
    MQA_LOGITS_GFX950_DIM = 128,
    MQA_LOGITS_GFX950_WAVES = 8,       /* of a workgroup; a wave holds the 128 heads of 4 rows, or of 2 */
    MQA_LOGITS_GFX950_SMALL_WAVES = 4, /* of one for few rows */
    MQA_LOGITS_GFX950_WAVE_HEADS = 128,
    MQA_LOGITS_GFX950_BLOCKS = 4096, /* of one launch: their windows lie in LDS */
    MQA_LOGITS_GFX950_SMALL_BLOCKS = 512,
    /* Workgroups of a launch: one for each CU of an MI355X, all there at once; one that is left without work ends. A CU
     * has room for eight waves of 256 registers, which those for few rows leave half empty. */
    MQA_LOGITS_GFX950_GROUPS = 256,
    MQA_LOGITS_GFX950_XCDS = 8 /* which take workgroups in turn */
};

/* Strides in bytes. Elements of a row of q, k, weights and logits stand together; rows of q and k are aligned to 4
 * bytes. */
typedef struct mqa_logits_gfx950 {
    uint64_t q, k, kv_scale, weights, ks, ke, logits; /* addresses of element 0 */
    int64_t  q_row, q_head, weights_row, ks_row, ke_row, logits_row;
    int32_t  k_row, kv_scale_row;
    int32_t  m, n;
    int32_t  groups;           /* workgroups of the grid */
    int32_t  ks_wide, ke_wide; /* I64 */
    int32_t  clean;
} mqa_logits_gfx950;

#if !defined(__HIP__)

#include "mqa_logits.h"

#include "mqa_logits_grid.h"

/* Rows of a workgroup. */
static inline int64_t mqa_logits_gfx950_block(int64_t heads, bool small)
{
    const int64_t waves = small ? MQA_LOGITS_GFX950_SMALL_WAVES : MQA_LOGITS_GFX950_WAVES;
    return waves * MQA_LOGITS_GFX950_WAVE_HEADS / heads;
}

/* Rows of a launch at most. */
static inline int64_t mqa_logits_gfx950_rows(int64_t heads, bool small)
{
    return mqa_logits_gfx950_block(heads, small) * (small ? MQA_LOGITS_GFX950_SMALL_BLOCKS : MQA_LOGITS_GFX950_BLOCKS);
}

static inline mqa_logits_grid mqa_logits_gfx950_grid(int64_t heads, int64_t n, bool clean, bool small)
{
    return (mqa_logits_grid){ .rows = (int32_t)mqa_logits_gfx950_block(heads, small),
                              .tiles = (int32_t)((n + MQA_LOGITS_GRID_KEYS - 1) / MQA_LOGITS_GRID_KEYS),
                              .wave_rows = (int32_t)(MQA_LOGITS_GFX950_WAVE_HEADS / heads),
                              .clean = clean };
}

static inline uint64_t mqa_logits_gfx950_address(const etalon_tensor *t, int64_t row)
{
    return (uint64_t)(uintptr_t)t->data + (uint64_t)(row * t->stride[0] * (int64_t)etalon_dtype_bytes(t->dtype));
}

static inline int64_t mqa_logits_gfx950_stride(const etalon_tensor *t, int32_t dim)
{
    return t->shape[dim] < 2 ? 0 : t->stride[dim] * (int64_t)etalon_dtype_bytes(t->dtype);
}

/* Rows [row, row + count). */
static inline mqa_logits_gfx950 mqa_logits_gfx950_of(const mqa_logits_problem *p, int64_t row, int64_t count,
                                                     int32_t groups)
{
    return (mqa_logits_gfx950){ .q = mqa_logits_gfx950_address(&p->q, row),
                                .k = mqa_logits_gfx950_address(&p->k, 0),
                                .kv_scale = mqa_logits_gfx950_address(&p->kv_scale, 0),
                                .weights = mqa_logits_gfx950_address(&p->weights, row),
                                .ks = mqa_logits_gfx950_address(&p->ks, row),
                                .ke = mqa_logits_gfx950_address(&p->ke, row),
                                .logits = mqa_logits_gfx950_address(&p->logits, row),
                                .q_row = mqa_logits_gfx950_stride(&p->q, 0),
                                .q_head = mqa_logits_gfx950_stride(&p->q, 1),
                                .weights_row = mqa_logits_gfx950_stride(&p->weights, 0),
                                .ks_row = mqa_logits_gfx950_stride(&p->ks, 0),
                                .ke_row = mqa_logits_gfx950_stride(&p->ke, 0),
                                .logits_row = mqa_logits_gfx950_stride(&p->logits, 0),
                                .k_row = (int32_t)mqa_logits_gfx950_stride(&p->k, 0),
                                .kv_scale_row = (int32_t)mqa_logits_gfx950_stride(&p->kv_scale, 0),
                                .m = (int32_t)count,
                                .n = (int32_t)p->n,
                                .groups = groups,
                                .ks_wide = p->ks.dtype == ETALON_I64,
                                .ke_wide = p->ke.dtype == ETALON_I64,
                                .clean = p->clean };
}

#endif

#endif
