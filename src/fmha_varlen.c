#include "fmha_varlen.h"
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

#define KERNEL(stem, needs, workspace, refuse)                                                             \
    static etalon_status run_##stem(const etalon_context *ctx, const void *problem, etalon_workspace work) \
    {                                                                                                      \
        return etalon_##stem(ctx, problem, work);                                                          \
    }
#include "fmha_varlen_kernels.def"
#undef KERNEL

static const gate_row rows[] = {
#define KERNEL(stem, needs, workspace, refuse) { #stem, needs, workspace, refuse, run_##stem },
#include "fmha_varlen_kernels.def"
#undef KERNEL
};

const gate fmha_varlen_gate = { "fmha_varlen", rows, sizeof rows / sizeof rows[0] };

static etalon_status prepare(const etalon_context *ctx, const etalon_fmha_varlen_args *args,
                             fmha_varlen_problem *problem, const gate_row **row)
{
    REQUIRE(ctx != NULL, "fmha_varlen: ctx: NULL");
    TRY(fmha_varlen_check(args, problem));
    return gate_choose(&fmha_varlen_gate, ctx, problem->kernel, problem, row);
}

etalon_status etalon_fmha_varlen(const etalon_context *ctx, const etalon_fmha_varlen_args *args, etalon_workspace work)
{
    fmha_varlen_problem problem;
    const gate_row     *row;
    TRY(prepare(ctx, args, &problem, &row));
    return gate_run(&fmha_varlen_gate, row, ctx, &problem, work);
}

etalon_status etalon_fmha_varlen_workspace_bytes(const etalon_context *ctx, const etalon_fmha_varlen_args *args,
                                                 size_t *bytes)
{
    fmha_varlen_problem problem;
    const gate_row     *row;
    REQUIRE(bytes != NULL, "fmha_varlen: bytes: NULL");
    TRY(prepare(ctx, args, &problem, &row));
    *bytes = row->workspace(ctx, &problem);
    return ETALON_OK;
}

etalon_status etalon_fmha_varlen_explain(const etalon_context *ctx, const etalon_fmha_varlen_args *args,
                                         etalon_explain_fn *row, void *user)
{
    fmha_varlen_problem problem;
    REQUIRE(ctx != NULL, "fmha_varlen: ctx: NULL");
    REQUIRE(row != NULL, "fmha_varlen: row: NULL");
    TRY(fmha_varlen_check(args, &problem));
    return gate_explain(&fmha_varlen_gate, ctx, problem.kernel, &problem, row, user);
}
