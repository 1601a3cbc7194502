/* One (query row, query head) of fmha_varlen as a row over its sequence's keys. */
#ifndef ETALON_FMHA_VARLEN_ROW_H
#define ETALON_FMHA_VARLEN_ROW_H

#include "attend.h"
#include "element.h"
#include "fmha_varlen.h"

/* Keys from row `first` of k and v on. */
static inline attend_keys fmha_varlen_keys(const fmha_varlen_problem *p, int64_t first, int64_t kv_head)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(p->k.dtype);
    return (attend_keys){ .k = tensor_at3(&p->k, first, kv_head, 0),
                          .v = tensor_at3(&p->v, first, kv_head, 0),
                          .dtype = p->k.dtype,
                          .k_slot = p->k.stride[0] * bytes,
                          .v_slot = p->v.stride[0] * bytes,
                          .k_stride = p->k.stride[2],
                          .v_stride = p->v.stride[2],
                          .d_qk = p->d_qk,
                          .d_v = p->d_v,
                          .page_size = INT64_MAX };
}

static inline void fmha_varlen_row(const fmha_varlen_problem *p, int64_t t, int64_t h, attend_keys *keys,
                                   attend_row *row)
{
    const int64_t b = attention_sequence(&p->cu_seqlens_q, t), kv_head = h / (p->heads / p->kv_heads);
    const int64_t first_q = index_at(&p->cu_seqlens_q, b), sq = index_at(&p->cu_seqlens_q, b + 1) - first_q;
    const int64_t first_k = index_at(&p->cu_seqlens_k, b), sk = index_at(&p->cu_seqlens_k, b + 1) - first_k;
    *keys = fmha_varlen_keys(p, first_k, kv_head);
    row->scale = (float)(p->softmax_scale * attention_descale(&p->descale.q, b, kv_head) *
                         attention_descale(&p->descale.k, b, kv_head));
    row->v_descale = attention_descale(&p->descale.v, b, kv_head);
    row->see = attention_visible(p->mask, t - first_q, sq, sk);
    element_load_row(row->q, tensor_at3(&p->q, t, h, 0), p->q.dtype, p->q.stride[2], p->d_qk);
}

#endif
