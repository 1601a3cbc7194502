#include "mqa_logits.h"

#include "gate_entry.h"

static const char *refuse_unless_host(const void *problem)
{
    const mqa_logits_problem *p = problem;
    return p->device == ETALON_HOST ? NULL : "the tensors are not in host memory";
}

static const char *refuse_unless_fp8(const void *problem)
{
    const mqa_logits_problem *p = problem;
    if (!dtype_is_fp8(p->k.dtype))
        return "k is not FP8";
    if (p->k.stride[p->k.rank - 1] != 1)
        return "the head dim of k or v is not contiguous";
    return refuse_unless_host(problem);
}

#define KERNEL(stem, needs, workspace, refuse) GATE_RUN(stem)
#include "mqa_logits_kernels.def"
#undef KERNEL

static const gate_row rows[] = {
#define KERNEL(stem, needs, workspace, refuse) { #stem, needs, workspace, refuse, run_##stem },
#include "mqa_logits_kernels.def"
#undef KERNEL
};

GATE_ENTRY_POINTS(mqa_logits)
