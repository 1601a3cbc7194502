/* fmha_varlen by hip/fmha_varlen_omp.hip. */
#include "fmha_varlen.h"
#include "offload.h"

#include "fmha_varlen_omp.h"

enum { MOST_GROUPS = 1 << 16 };

static etalon_status run(const etalon_context *ctx, const char *stem, const fmha_varlen_problem *p, void *stream)
{
    const fmha_varlen_omp args = fmha_varlen_omp_of(p, MOST_GROUPS);
    const launch_step     step = { .stem = stem,
                                   .groups = { (uint32_t)args.a.groups, 1, 1 },
                                   .threads = WORKGROUP,
                                   .args = &args,
                                   .args_bytes = sizeof args };
    return args.a.groups == 0 ? ETALON_OK : offload_run(ctx->device, stream, &step, 1);
}

etalon_status fmha_varlen_on_device(const etalon_context *ctx, const fmha_varlen_problem *p, void *stream,
                                    const char *stem, fmha_varlen_launch *launch)
{
    static const char *const names[] = { "q",         "k",         "v",         "cu_seqlens_q", "cu_seqlens_k",
                                         "q_descale", "k_descale", "v_descale", "lse",          "out" };
    fmha_varlen_problem      there = *p;
    etalon_tensor *const     tensors[] = {
        &there.q,         &there.k,         &there.v,         &there.cu_seqlens_q, &there.cu_seqlens_k,
        &there.descale.q, &there.descale.k, &there.descale.v, &there.lse,          &there.out
    };
    enum { INPUTS = 8, ALL = 10 };
    offload_map map;
    TRY(offload_enter(ctx->device, "fmha_varlen", stream, tensors, names, INPUTS, ALL, &map));
    return offload_exit(&map, launch(ctx, stem, &there, stream));
}

etalon_status etalon_fmha_varlen_omp(const etalon_context *ctx, const fmha_varlen_problem *p, etalon_workspace work)
{
    return fmha_varlen_on_device(ctx, p, work.stream, "fmha_varlen_omp", run);
}
