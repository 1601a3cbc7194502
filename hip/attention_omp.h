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
