#include "fmha_varlen.h"

#include "gate_entry.h"
#ifdef HAVE_GFX1250
#include "fmha_varlen_gfx1250.h"
#endif

static const char *refuse_unless_host(const void *problem)
{
    const fmha_varlen_problem *p = problem;
    return p->device == ETALON_HOST ? NULL : "the tensors are not in host memory";
}

static const char *refuse_unless_fp8(const void *problem)
{
    const fmha_varlen_problem *p = problem;
    if (!dtype_is_fp8(p->k.dtype))
        return "k is not FP8";
    if (p->k.stride[p->k.rank - 1] != 1 || p->v.stride[p->v.rank - 1] != 1)
        return "the head dim of k or v is not contiguous";
    return refuse_unless_host(problem);
}

#ifdef HAVE_GFX1250
static const char *refuse_unless_gfx1250_causal(const void *problem)
{
    return fmha_varlen_gfx1250_refuse(problem, true);
}

static const char *refuse_unless_gfx1250(const void *problem)
{
    return fmha_varlen_gfx1250_refuse(problem, false);
}
#endif

#define KERNEL(stem, needs, workspace, refuse) GATE_RUN(stem)
#include "fmha_varlen_kernels.def"
#undef KERNEL

static const gate_row rows[] = {
#define KERNEL(stem, needs, workspace, refuse) { #stem, needs, workspace, refuse, run_##stem },
#include "fmha_varlen_kernels.def"
#undef KERNEL
};

GATE_ENTRY_POINTS(fmha_varlen)
