/* What the arguments of etalon_pa_mtp_omp and etalon_fmha_varlen_omp share, for kernels and launchers. */
#ifndef ETALON_ATTENTION_OMP_H
#define ETALON_ATTENTION_OMP_H

#include <etalon/types.h>

enum { ATTENTION_OMP_ROWS = 16 /* of a group */, ATTENTION_OMP_KEYS = 256 /* of a tile */ };

/* Addresses of element 0, 0 where absent; strides in elements. */
typedef struct attention_omp {
    uint64_t q, k, v, out, lse;
    uint64_t descale[3];   /* of q, k and v */
    uint64_t cu_seqlens_q; /* [B + 1] */
    uint64_t lengths;      /* cu_seqlens_k [B + 1] or seq_lens [B] */
    uint64_t table;        /* [B, pages] */
    int64_t  batch, tokens, heads, kv_heads, d_qk, d_v, page_size;
    int64_t  q_stride[3], out_stride[3], lse_stride[2];
    int64_t  k_stride[4], v_stride[4]; /* page, slot or token, head, dim */
    int64_t  descale_stride[3][2];     /* 0 where one factor serves all */
    int64_t  cu_seqlens_q_stride, lengths_stride, table_stride[2];
    int64_t  left, right; /* of the diagonal */
    double   softmax_scale;
    int64_t  groups; /* workgroups of the grid */

    etalon_dtype q_dtype, kv_dtype, out_dtype;
    int32_t      q_quads, k_quads, v_quads;       /* see device_row */
    int32_t      cu_seqlens_q_wide, lengths_wide; /* I64 */
} attention_omp;

#if !defined(__HIP__) && !defined(__CUDA__)

#include "omp_host.h"

#include "attention_check.h"

/* Of a problem of either operation: what they share has the same names. `tokens_of` and `lengths_of` are the members that
 * differ; the rest is left at 0. */
#define ATTENTION_OMP(p, tokens_of, lengths_of)                                                     \
    ((attention_omp){ .q = omp_address(&(p)->q),                                                    \
                      .k = omp_address(&(p)->k),                                                    \
                      .v = omp_address(&(p)->v),                                                    \
                      .out = omp_address(&(p)->out),                                                \
                      .lse = omp_address(&(p)->lse),                                                \
                      .cu_seqlens_q = omp_address(&(p)->cu_seqlens_q),                              \
                      .lengths = omp_address(&(p)->lengths_of),                                     \
                      .batch = (p)->batch,                                                          \
                      .tokens = (p)->tokens_of,                                                     \
                      .heads = (p)->heads,                                                          \
                      .kv_heads = (p)->kv_heads,                                                    \
                      .d_qk = (p)->d_qk,                                                            \
                      .d_v = (p)->d_v,                                                              \
                      .q_stride = { (p)->q.stride[0], (p)->q.stride[1], (p)->q.stride[2] },         \
                      .out_stride = { (p)->out.stride[0], (p)->out.stride[1], (p)->out.stride[2] }, \
                      .lse_stride = { (p)->lse.stride[0], (p)->lse.stride[1] },                     \
                      .cu_seqlens_q_stride = (p)->cu_seqlens_q.stride[0],                           \
                      .lengths_stride = (p)->lengths_of.stride[0],                                  \
                      .left = (p)->mask.left,                                                       \
                      .right = (p)->mask.right,                                                     \
                      .softmax_scale = (p)->softmax_scale,                                          \
                      .q_dtype = (p)->q.dtype,                                                      \
                      .kv_dtype = (p)->k.dtype,                                                     \
                      .out_dtype = (p)->out.dtype,                                                  \
                      .q_quads = omp_quads(&(p)->q),                                                \
                      .k_quads = omp_quads(&(p)->k),                                                \
                      .v_quads = omp_quads(&(p)->v),                                                \
                      .cu_seqlens_q_wide = (p)->cu_seqlens_q.dtype == ETALON_I64,                   \
                      .lengths_wide = (p)->lengths_of.dtype == ETALON_I64 })

static inline void attention_omp_descales(attention_omp *a, const attention_descales *d)
{
    const etalon_tensor *const all[3] = { &d->q, &d->k, &d->v };
    for (int i = 0; i < 3; i++) {
        a->descale[i] = omp_address(all[i]);
        for (int32_t dim = 0; dim < 2 && all[i]->rank == 2; dim++)
            a->descale_stride[i][dim] = all[i]->stride[dim];
    }
}

#endif

#endif
