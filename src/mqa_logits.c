#include "mqa_logits.h"

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

#define KERNEL(stem, needs, workspace, refuse)                                                             \
    static etalon_status run_##stem(const etalon_context *ctx, const void *problem, etalon_workspace work) \
    {                                                                                                      \
        return etalon_##stem(ctx, problem, work);                                                          \
    }
#include "mqa_logits_kernels.def"
#undef KERNEL

static const gate_row rows[] = {
#define KERNEL(stem, needs, workspace, refuse) { #stem, needs, workspace, refuse, run_##stem },
#include "mqa_logits_kernels.def"
#undef KERNEL
};

const gate mqa_logits_gate = { "mqa_logits", rows, sizeof rows / sizeof rows[0] };

static etalon_status prepare(const etalon_context *ctx, const etalon_mqa_logits_args *args, mqa_logits_problem *problem,
                             const gate_row **row)
{
    REQUIRE(ctx != NULL, "mqa_logits: ctx: NULL");
    TRY(mqa_logits_check(args, problem));
    return gate_choose(&mqa_logits_gate, ctx, problem->kernel, problem, row);
}

etalon_status etalon_mqa_logits(const etalon_context *ctx, const etalon_mqa_logits_args *args, etalon_workspace work)
{
    mqa_logits_problem problem;
    const gate_row    *row;
    TRY(prepare(ctx, args, &problem, &row));
    return gate_run(&mqa_logits_gate, row, ctx, &problem, work);
}

etalon_status etalon_mqa_logits_workspace_bytes(const etalon_context *ctx, const etalon_mqa_logits_args *args,
                                                size_t *bytes)
{
    mqa_logits_problem problem;
    const gate_row    *row;
    REQUIRE(bytes != NULL, "mqa_logits: bytes: NULL");
    TRY(prepare(ctx, args, &problem, &row));
    *bytes = row->workspace(ctx, &problem);
    return ETALON_OK;
}

etalon_status etalon_mqa_logits_explain(const etalon_context *ctx, const etalon_mqa_logits_args *args,
                                        etalon_explain_fn *row, void *user)
{
    mqa_logits_problem problem;
    REQUIRE(ctx != NULL, "mqa_logits: ctx: NULL");
    REQUIRE(row != NULL, "mqa_logits: row: NULL");
    TRY(mqa_logits_check(args, &problem));
    return gate_explain(&mqa_logits_gate, ctx, problem.kernel, &problem, row, user);
}
