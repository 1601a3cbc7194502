#include "mqa_logits_paged.h"

static const char *refuse_unless_host(const void *problem)
{
    const mqa_logits_paged_problem *p = problem;
    return p->device == ETALON_HOST ? NULL : "the tensors are not in host memory";
}

#define KERNEL(stem, needs, workspace, refuse)                                                             \
    static etalon_status run_##stem(const etalon_context *ctx, const void *problem, etalon_workspace work) \
    {                                                                                                      \
        return etalon_##stem(ctx, problem, work);                                                          \
    }
#include "mqa_logits_paged_kernels.def"
#undef KERNEL

static const gate_row rows[] = {
#define KERNEL(stem, needs, workspace, refuse) { #stem, needs, workspace, refuse, run_##stem },
#include "mqa_logits_paged_kernels.def"
#undef KERNEL
};

const gate mqa_logits_paged_gate = { "mqa_logits_paged", rows, sizeof rows / sizeof rows[0] };

static etalon_status prepare(const etalon_context *ctx, const etalon_mqa_logits_paged_args *args,
                             mqa_logits_paged_problem *problem, const gate_row **row)
{
    REQUIRE(ctx != NULL, "mqa_logits_paged: ctx: NULL");
    TRY(mqa_logits_paged_check(args, problem));
    return gate_choose(&mqa_logits_paged_gate, ctx, problem->kernel, problem, row);
}

etalon_status etalon_mqa_logits_paged(const etalon_context *ctx, const etalon_mqa_logits_paged_args *args,
                                      etalon_workspace work)
{
    mqa_logits_paged_problem problem;
    const gate_row          *row;
    TRY(prepare(ctx, args, &problem, &row));
    return gate_run(&mqa_logits_paged_gate, row, ctx, &problem, work);
}

etalon_status etalon_mqa_logits_paged_workspace_bytes(const etalon_context               *ctx,
                                                      const etalon_mqa_logits_paged_args *args, size_t *bytes)
{
    mqa_logits_paged_problem problem;
    const gate_row          *row;
    REQUIRE(bytes != NULL, "mqa_logits_paged: bytes: NULL");
    TRY(prepare(ctx, args, &problem, &row));
    *bytes = row->workspace(ctx, &problem);
    return ETALON_OK;
}

etalon_status etalon_mqa_logits_paged_explain(const etalon_context *ctx, const etalon_mqa_logits_paged_args *args,
                                              etalon_explain_fn *row, void *user)
{
    mqa_logits_paged_problem problem;
    REQUIRE(ctx != NULL, "mqa_logits_paged: ctx: NULL");
    REQUIRE(row != NULL, "mqa_logits_paged: row: NULL");
    TRY(mqa_logits_paged_check(args, &problem));
    return gate_explain(&mqa_logits_paged_gate, ctx, problem.kernel, &problem, row, user);
}
