/* mqa_logits_paged by hip/mqa_logits_paged_omp.hip. */
#include "mqa_logits_paged.h"
#include "offload.h"

#include "mqa_logits_paged_omp.h"

enum { MOST_GROUPS = 1 << 16 };

static etalon_status run(const etalon_context *ctx, const mqa_logits_paged_problem *p, void *stream)
{
    const mqa_logits_paged_omp args = mqa_logits_paged_omp_of(p, MOST_GROUPS);
    const launch_step          step = { .stem = "mqa_logits_paged_omp",
                                        .groups = { (uint32_t)args.a.groups, 1, 1 },
                                        .threads = WORKGROUP,
                                        .args = &args,
                                        .args_bytes = sizeof args };
    return args.a.groups == 0 ? ETALON_OK : offload_run(ctx->device, stream, &step, 1);
}

etalon_status etalon_mqa_logits_paged_omp(const etalon_context *ctx, const mqa_logits_paged_problem *p,
                                          etalon_workspace work)
{
    static const char *const names[] = { "q",       "kv_cache",     "kv_cache", "context_lens",
                                         "weights", "block_tables", "logits" };
    mqa_logits_paged_problem there = *p;
    etalon_tensor *const     tensors[] = {
        &there.q, &there.k, &there.kv_scale, &there.context_lens, &there.weights, &there.block_tables, &there.logits
    };
    enum { INPUTS = 6, ALL = 7 };
    offload_map map;
    TRY(offload_enter(ctx->device, "mqa_logits_paged", work.stream, tensors, names, INPUTS, ALL, &map));
    return offload_exit(&map, run(ctx, &there, work.stream));
}
