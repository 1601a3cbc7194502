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
    return ATTENTION_JOB(p, keys_of, length_of);
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
