/* pa_mtp by tiles: included once for each instruction set, with SIMD_BYTES and SIMD_STEM, the row's name, set. */
#include "attention_simd.h"
#include "pa_mtp_row.h"
#include "simd_row.h"

static attend_keys keys_of(const void *problem, int64_t b, int64_t kv_head)
{
    return pa_mtp_keys(problem, b, kv_head);
}

static int64_t length_of(const void *problem, int64_t b)
{
    return index_at(&((const pa_mtp_problem *)problem)->seq_lens, b);
}

static attention_job job_of(const pa_mtp_problem *p)
{
    return (attention_job){ .problem = p,
                            .q = &p->q,
                            .out = &p->out,
                            .lse = &p->lse,
                            .cu_seqlens_q = &p->cu_seqlens_q,
                            .descale = &p->descale,
                            .mask = p->mask,
                            .softmax_scale = p->softmax_scale,
                            .batch = p->batch,
                            .heads = p->heads,
                            .kv_heads = p->kv_heads,
                            .d_qk = p->d_qk,
                            .d_v = p->d_v,
                            .keys = keys_of,
                            .length = length_of };
}

size_t SIMD_WORKSPACE(const etalon_context *ctx, const void *problem)
{
    const attention_job job = job_of(problem);
    return attention_workspace(ctx, &job);
}

etalon_status SIMD_RUN(const etalon_context *ctx, const pa_mtp_problem *p, etalon_workspace work)
{
    const attention_job job = job_of(p);
    attention_run(ctx, &job, work);
    return ETALON_OK;
}
