/* pa_mtp by hip/pa_mtp_plan_omp.hip, hip/pa_mtp_omp.hip and hip/pa_mtp_reduce_omp.hip. */
#include "offload.h"
#include "pa_mtp.h"

#include "pa_mtp_omp.h"

/* Tasks that the plan aims at, whatever the device, so that all give the same bits. Measured on an H200, two places on
 * each of 132 multiprocessors, with 16 x 35k keys: 264 tasks are 3 to 30 % faster than 396, 528 or 1024. */
enum { WANTED_TASKS = 264, MOST_GROUPS = 1 << 16 };

/* Of device memory: for tensors on the host it is allocated by the call. */
static size_t bytes_there(const pa_mtp_problem *p)
{
    return p->tokens == 0 ? 0 : pa_mtp_omp_workspace(p, WANTED_TASKS);
}

size_t etalon_pa_mtp_omp_workspace(const etalon_context *ctx, const void *problem)
{
    const pa_mtp_problem *p = problem;
    (void)ctx;
    return p->device == ETALON_HOST ? 0 : bytes_there(p);
}

static etalon_status run(const etalon_context *ctx, const char *stem, const pa_mtp_problem *p, void *work, void *stream)
{
    const pa_mtp_omp  args = pa_mtp_omp_of(p, (uint64_t)(uintptr_t)work, WANTED_TASKS, MOST_GROUPS);
    const launch_step steps[] = {
        { .stem = "pa_mtp_plan_omp", .groups = { 1, 1, 1 } },
        { .stem = stem, .groups = { (uint32_t)args.a.groups, 1, 1 } },
        { .stem = "pa_mtp_reduce_omp", .groups = { (uint32_t)args.reduce_groups, 1, 1 } },
    };
    enum { STEPS = sizeof steps / sizeof steps[0] };
    launch_step all[STEPS];
    for (int i = 0; i < STEPS; i++) {
        all[i] = steps[i];
        all[i].threads = WORKGROUP;
        all[i].args = &args;
        all[i].args_bytes = sizeof args;
    }
    return offload_run(ctx->device, stream, all, STEPS);
}

/* Tensors on the host come without a workspace on the device. */
static etalon_status launch_from_host(const etalon_context *ctx, const pa_mtp_problem *there, size_t bytes,
                                      const char *stem, pa_mtp_launch *launch)
{
    void *work = offload_alloc(ctx->device, bytes);
    if (work == NULL)
        return etalon_reject(ETALON_ERROR_DEVICE, "pa_mtp: device %" PRId32 ": OpenMP found no %zu bytes there",
                             offload_number(ctx->device), bytes);
    const etalon_status status = launch(ctx, stem, there, work, NULL);
    offload_free(ctx->device, work);
    return status;
}

etalon_status pa_mtp_on_device(const etalon_context *ctx, const pa_mtp_problem *p, etalon_workspace work, size_t bytes,
                               const char *stem, pa_mtp_launch *launch)
{
    static const char *const names[] = { "q",         "k_cache",      "v_cache",   "block_tables",
                                         "seq_lens",  "cu_seqlens_q", "q_descale", "k_descale",
                                         "v_descale", "lse",          "out" };
    pa_mtp_problem           there = *p;
    etalon_tensor *const     tensors[] = {
        &there.q,         &there.k,         &there.v,         &there.block_tables, &there.seq_lens, &there.cu_seqlens_q,
        &there.descale.q, &there.descale.k, &there.descale.v, &there.lse,          &there.out
    };
    enum { INPUTS = 9, ALL = 11 };
    offload_map map;
    TRY(offload_enter(ctx->device, "pa_mtp", work.stream, tensors, names, INPUTS, ALL, &map));
    etalon_status status = ETALON_OK;
    if (p->tokens > 0)
        status = p->device == ETALON_HOST ? launch_from_host(ctx, &there, bytes, stem, launch)
                                          : launch(ctx, stem, &there, work.data, work.stream);
    return offload_exit(&map, status);
}

etalon_status etalon_pa_mtp_omp(const etalon_context *ctx, const pa_mtp_problem *p, etalon_workspace work)
{
    return pa_mtp_on_device(ctx, p, work, bytes_there(p), "pa_mtp_omp", run);
}
