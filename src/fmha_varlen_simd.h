/* fmha_varlen by tiles: included once for each instruction set, with SIMD_BYTES and SIMD_STEM, the row's name, set. */
#include "attention_simd.h"
#include "fmha_varlen_row.h"
#include "simd_row.h"

static attend_keys keys_of(const void *problem, int64_t b, int64_t kv_head)
{
    return fmha_varlen_keys(problem, index_at(&((const fmha_varlen_problem *)problem)->cu_seqlens_k, b), kv_head);
}

static int64_t length_of(const void *problem, int64_t b)
{
    const etalon_tensor *cu = &((const fmha_varlen_problem *)problem)->cu_seqlens_k;
    return index_at(cu, b + 1) - index_at(cu, b);
}

static attention_job job_of(const fmha_varlen_problem *p)
{
    return ATTENTION_JOB(p, keys_of, length_of);
}

size_t SIMD_WORKSPACE(const etalon_context *ctx, const void *problem)
{
    const attention_job job = job_of(problem);
    return attention_workspace(ctx, &job);
}

etalon_status SIMD_RUN(const etalon_context *ctx, const fmha_varlen_problem *p, etalon_workspace work)
{
    const attention_job job = job_of(p);
    attention_run(ctx, &job, work);
    return ETALON_OK;
}
