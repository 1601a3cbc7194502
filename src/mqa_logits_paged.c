#include "mqa_logits_paged.h"

#include "gate_entry.h"

static const char *refuse_unless_host(const void *problem)
{
    const mqa_logits_paged_problem *p = problem;
    return p->device == ETALON_HOST ? NULL : "the tensors are not in host memory";
}

#define KERNEL(stem, needs, workspace, refuse) GATE_RUN(stem)
#include "mqa_logits_paged_kernels.def"
#undef KERNEL

static const gate_row rows[] = {
#define KERNEL(stem, needs, workspace, refuse) { #stem, needs, workspace, refuse, run_##stem },
#include "mqa_logits_paged_kernels.def"
#undef KERNEL
};

GATE_ENTRY_POINTS(mqa_logits_paged)
