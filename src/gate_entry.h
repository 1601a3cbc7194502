/* The entry points of an operation, which go the same way for all: src/<op>.c says which rows there are and what each
 * refuses. */
#ifndef ETALON_GATE_ENTRY_H
#define ETALON_GATE_ENTRY_H

#include "gate.h"

/* run_<stem>: the kernel, as the table has it. */
#define GATE_RUN(stem)                                                                                     \
    static etalon_status run_##stem(const etalon_context *ctx, const void *problem, etalon_workspace work) \
    {                                                                                                      \
        return etalon_##stem(ctx, problem, work);                                                          \
    }

/* <op>_gate over `rows`, and etalon_<op>, etalon_<op>_workspace_bytes and etalon_<op>_explain over <op>_check. */
#define GATE_ENTRY_POINTS(op)                                                                                      \
    const gate op##_gate = { #op, rows, sizeof rows / sizeof rows[0] };                                            \
                                                                                                                   \
    static etalon_status prepare(const etalon_context *ctx, const etalon_##op##_args *args, op##_problem *problem, \
                                 const gate_row **row)                                                             \
    {                                                                                                              \
        REQUIRE(ctx != NULL, #op ": ctx: NULL");                                                                   \
        TRY(op##_check(args, problem));                                                                            \
        return gate_choose(&op##_gate, ctx, problem->kernel, problem, row);                                        \
    }                                                                                                              \
                                                                                                                   \
    etalon_status etalon_##op(const etalon_context *ctx, const etalon_##op##_args *args, etalon_workspace work)    \
    {                                                                                                              \
        op##_problem    problem;                                                                                   \
        const gate_row *row;                                                                                       \
        TRY(prepare(ctx, args, &problem, &row));                                                                   \
        return gate_run(&op##_gate, row, ctx, &problem, work);                                                     \
    }                                                                                                              \
                                                                                                                   \
    etalon_status etalon_##op##_workspace_bytes(const etalon_context *ctx, const etalon_##op##_args *args,         \
                                                size_t *bytes)                                                     \
    {                                                                                                              \
        op##_problem    problem;                                                                                   \
        const gate_row *row;                                                                                       \
        REQUIRE(bytes != NULL, #op ": bytes: NULL");                                                               \
        TRY(prepare(ctx, args, &problem, &row));                                                                   \
        *bytes = row->workspace(ctx, &problem);                                                                    \
        return ETALON_OK;                                                                                          \
    }                                                                                                              \
                                                                                                                   \
    etalon_status etalon_##op##_explain(const etalon_context *ctx, const etalon_##op##_args *args,                 \
                                        etalon_explain_fn *row, void *user)                                        \
    {                                                                                                              \
        op##_problem problem;                                                                                      \
        REQUIRE(ctx != NULL, #op ": ctx: NULL");                                                                   \
        REQUIRE(row != NULL, #op ": row: NULL");                                                                   \
        TRY(op##_check(args, &problem));                                                                           \
        return gate_explain(&op##_gate, ctx, problem.kernel, &problem, row, user);                                 \
    }

#endif
