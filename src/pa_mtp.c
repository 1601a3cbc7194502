#include "pa_mtp.h"

#include "gate_entry.h"

static const char *refuse_unless_host(const void *problem)
{
    const pa_mtp_problem *p = problem;
    return p->device == ETALON_HOST ? NULL : "the tensors are not in host memory";
}

static const char *refuse_unless_fp8(const void *problem)
{
    const pa_mtp_problem *p = problem;
    if (!dtype_is_fp8(p->k.dtype))
        return "k is not FP8";
    if (p->k.stride[p->k.rank - 1] != 1 || p->v.stride[p->v.rank - 1] != 1)
        return "the head dim of k or v is not contiguous";
    return refuse_unless_host(problem);
}

#ifdef HAVE_AMX
/* Measured: with one row the AVX-512 row is 1.1 to 1.6 times as fast, from two on it is not. */
static const char *refuse_unless_rows(const void *problem)
{
    const pa_mtp_problem *p = problem;
    if (p->tokens * p->heads < 2 * p->batch * p->kv_heads)
        return "most keys have one query row, which fills a sixteenth of a tile";
    return refuse_unless_fp8(problem);
}
#endif

#ifdef HAVE_GFX950
static const char *refuse_unless_gfx950_gqa16(const void *problem)
{
    return pa_mtp_refuse_gfx950(problem, 16);
}

static const char *refuse_unless_gfx950_gqa8(const void *problem)
{
    return pa_mtp_refuse_gfx950(problem, 8);
}

static const char *refuse_unless_gfx950_gqa4(const void *problem)
{
    return pa_mtp_refuse_gfx950(problem, 4);
}
#endif

#define KERNEL(stem, needs, workspace, refuse) GATE_RUN(stem)
#include "pa_mtp_kernels.def"
#undef KERNEL

static const gate_row rows[] = {
#define KERNEL(stem, needs, workspace, refuse) { #stem, needs, workspace, refuse, run_##stem },
#include "pa_mtp_kernels.def"
#undef KERNEL
};

GATE_ENTRY_POINTS(pa_mtp)
