/* mqa_logits by hip/mqa_logits_omp.hip. */
#include "mqa_logits.h"
#include "offload.h"

#include "mqa_logits_omp.h"

enum { MOST_GROUPS = 1 << 16 };

static etalon_status run(const etalon_context *ctx, const char *stem, const mqa_logits_problem *p, void *stream)
{
    const mqa_logits_omp args = mqa_logits_omp_of(p, MOST_GROUPS);
    const launch_step    step = { .stem = stem,
                                  .groups = { (uint32_t)args.groups, 1, 1 },
                                  .threads = WORKGROUP,
                                  .args = &args,
                                  .args_bytes = sizeof args };
    return args.groups == 0 ? ETALON_OK : offload_run(ctx->device, stream, &step, 1);
}

etalon_status mqa_logits_on_device(const etalon_context *ctx, const mqa_logits_problem *p, void *stream,
                                   const char *stem, mqa_logits_launch *launch)
{
    static const char *const names[] = { "q", "k", "kv_scale", "weights", "cu_seqlen_ks", "cu_seqlen_ke", "logits" };
    mqa_logits_problem       there = *p;
    etalon_tensor *const     tensors[] = { &there.q,  &there.k,  &there.kv_scale, &there.weights,
                                           &there.ks, &there.ke, &there.logits };
    enum { INPUTS = 6, ALL = 7 };
    offload_map map;
    TRY(offload_enter(ctx->device, "mqa_logits", stream, tensors, names, INPUTS, ALL, &map));
    return offload_exit(&map, launch(ctx, stem, &there, stream));
}

etalon_status etalon_mqa_logits_omp(const etalon_context *ctx, const mqa_logits_problem *p, etalon_workspace work)
{
    return mqa_logits_on_device(ctx, p, work.stream, "mqa_logits_omp", run);
}
