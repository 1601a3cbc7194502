#include "merge_states.h"

static const char *refuse_unless_host(const void *problem)
{
    const merge_states_problem *p = problem;
    return p->device == ETALON_HOST ? NULL : "the tensors are not in host memory";
}

#define KERNEL(stem, needs, workspace, refuse)                                                             \
    static etalon_status run_##stem(const etalon_context *ctx, const void *problem, etalon_workspace work) \
    {                                                                                                      \
        return etalon_##stem(ctx, problem, work);                                                          \
    }
#include "merge_states_kernels.def"
#undef KERNEL

static const gate_row rows[] = {
#define KERNEL(stem, needs, workspace, refuse) { #stem, needs, workspace, refuse, run_##stem },
#include "merge_states_kernels.def"
#undef KERNEL
};

const gate merge_states_gate = { "merge_states", rows, sizeof rows / sizeof rows[0] };

static etalon_status prepare(const etalon_context *ctx, const etalon_merge_states_args *args,
                             merge_states_problem *problem, const gate_row **row)
{
    REQUIRE(ctx != NULL, "merge_states: ctx: NULL");
    TRY(merge_states_check(args, problem));
    return gate_choose(&merge_states_gate, ctx, problem->kernel, problem, row);
}

etalon_status etalon_merge_states(const etalon_context *ctx, const etalon_merge_states_args *args,
                                  etalon_workspace work)
{
    merge_states_problem problem;
    const gate_row      *row;
    TRY(prepare(ctx, args, &problem, &row));
    return gate_run(&merge_states_gate, row, ctx, &problem, work);
}

etalon_status etalon_merge_states_workspace_bytes(const etalon_context *ctx, const etalon_merge_states_args *args,
                                                  size_t *bytes)
{
    merge_states_problem problem;
    const gate_row      *row;
    REQUIRE(bytes != NULL, "merge_states: bytes: NULL");
    TRY(prepare(ctx, args, &problem, &row));
    *bytes = row->workspace(ctx, &problem);
    return ETALON_OK;
}

etalon_status etalon_merge_states_explain(const etalon_context *ctx, const etalon_merge_states_args *args,
                                          etalon_explain_fn *row, void *user)
{
    merge_states_problem problem;
    REQUIRE(ctx != NULL, "merge_states: ctx: NULL");
    REQUIRE(row != NULL, "merge_states: row: NULL");
    TRY(merge_states_check(args, &problem));
    return gate_explain(&merge_states_gate, ctx, problem.kernel, &problem, row, user);
}
