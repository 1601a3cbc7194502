/* fmha_varlen_ref with the weights rounded to E4M3FN by the policy of <etalon/attention.h>, as the GPU kernels do. */
#include "fmha_varlen_row.h"

etalon_status etalon_fmha_varlen_model(const etalon_context *ctx, const fmha_varlen_problem *p, etalon_workspace work)
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
        const float lse = attend_model(&keys, &row, &p->model, out);
        attend_store(out, lse, &p->out, &p->lse, t, h);
    }
    return ETALON_OK;
}
