/* Every (query row, query head) is one row over the keys of its sequence, in fp32. */
#include "fmha_varlen_row.h"

etalon_status etalon_fmha_varlen_ref(const etalon_context *ctx, const fmha_varlen_problem *p, etalon_workspace work)
{
    (void)work;
    (void)ctx;
#pragma omp parallel for schedule(dynamic) num_threads(context_threads(ctx, p->total_q * p->heads))
    for (int64_t i = 0; i < p->total_q * p->heads; i++) {
        const int64_t t = i / p->heads, h = i % p->heads;
        attend_keys   keys;
        attend_row    row;
        float         out[ETALON_MAX_HEAD_DIM];
        fmha_varlen_row(p, t, h, &keys, &row);
        const float lse = attend(&keys, &row, out);
        attend_store(out, lse, &p->out, &p->lse, t, h);
    }
    return ETALON_OK;
}
