/* pa_mtp_ref with the FP8 rounding of the GPU kernels: q to E4M3FN, unscaled and saturating, where it comes wider,
 * and the weights by the policy of <etalon/attention.h>. */
#include "pa_mtp_row.h"

static void round_q(float *q, int64_t n)
{
    for (int64_t d = 0; d < n; d++)
        q[d] = f32_of_e4m3fn(e4m3fn_of_f32(q[d], FP8_SATURATE));
}

etalon_status etalon_pa_mtp_model(const etalon_context *ctx, const pa_mtp_problem *p, etalon_workspace work)
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
        if (!dtype_is_fp8(p->q.dtype))
            round_q(row.q, p->d_qk);
        const float lse = attend_model(&keys, &row, &p->model, out);
        attend_store(out, lse, &p->out, &p->lse, t, h);
    }
    return ETALON_OK;
}
