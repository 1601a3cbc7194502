/* Every (token, query head) is one row over its sequence's paged keys, in fp32. */
#include "pa_mtp_row.h"

etalon_status etalon_pa_mtp_ref(const etalon_context *ctx, const pa_mtp_problem *p, etalon_workspace work)
{
    (void)work;
    (void)ctx;
#pragma omp parallel for schedule(dynamic) num_threads(context_threads(ctx, p->tokens * p->heads))
    for (int64_t i = 0; i < p->tokens * p->heads; i++) {
        const int64_t t = i / p->heads, h = i % p->heads;
        attend_keys   keys;
        attend_row    row;
        float         out[ETALON_MAX_HEAD_DIM];
        pa_mtp_row(p, t, h, &keys, &row);
        const float lse = attend(&keys, &row, out);
        attend_store(out, lse, &p->out, &p->lse, t, h);
    }
    return ETALON_OK;
}
