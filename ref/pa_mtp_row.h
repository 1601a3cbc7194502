/* One (token, query head) of pa_mtp as a row over its sequence's paged keys. */
#ifndef ETALON_PA_MTP_ROW_H
#define ETALON_PA_MTP_ROW_H

#include "attend.h"
#include "element.h"
#include "pa_mtp.h"

static inline attend_keys pa_mtp_keys(const pa_mtp_problem *p, int64_t b, int64_t kv_head)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(p->k.dtype);
    return (attend_keys){ .k = tensor_at3(&p->k, 0, 0, kv_head),
                          .v = tensor_at3(&p->v, 0, 0, kv_head),
                          .dtype = p->k.dtype,
                          .k_slot = p->k.stride[1] * bytes,
                          .v_slot = p->v.stride[1] * bytes,
                          .k_page = p->k.stride[0] * bytes,
                          .v_page = p->v.stride[0] * bytes,
                          .k_stride = p->k.stride[3],
                          .v_stride = p->v.stride[3],
                          .d_qk = p->d_qk,
                          .d_v = p->d_v,
                          .page_size = p->page_size,
                          .table = (const int32_t *)tensor_at2(&p->block_tables, b, 0),
                          .table_stride = p->block_tables.stride[1] };
}

static inline void pa_mtp_row(const pa_mtp_problem *p, int64_t t, int64_t h, attend_keys *keys, attend_row *row)
{
    const int64_t b = attention_sequence(&p->cu_seqlens_q, t), kv_head = h / (p->heads / p->kv_heads);
    const int64_t first = index_at(&p->cu_seqlens_q, b), sq = index_at(&p->cu_seqlens_q, b + 1) - first;
    *keys = pa_mtp_keys(p, b, kv_head);
    row->scale = (float)(p->softmax_scale * attention_descale(&p->descale.q, b, kv_head) *
                         attention_descale(&p->descale.k, b, kv_head));
    row->v_descale = attention_descale(&p->descale.v, b, kv_head);
    row->see = attention_visible(p->mask, t - first, sq, index_at(&p->seq_lens, b));
    element_load_row(row->q, tensor_at3(&p->q, t, h, 0), p->q.dtype, p->q.stride[2], p->d_qk);
}

#endif
