#include "merge_states.h"

#include "gate_entry.h"

static const char *refuse_unless_host(const void *problem)
{
    const merge_states_problem *p = problem;
    return p->device == ETALON_HOST ? NULL : "the tensors are not in host memory";
}

#define KERNEL(stem, needs, workspace, refuse) GATE_RUN(stem)
#include "merge_states_kernels.def"
#undef KERNEL

static const gate_row rows[] = {
#define KERNEL(stem, needs, workspace, refuse) { #stem, needs, workspace, refuse, run_##stem },
#include "merge_states_kernels.def"
#undef KERNEL
};

GATE_ENTRY_POINTS(merge_states)
