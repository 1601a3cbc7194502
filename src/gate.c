#include "gate.h"

#include "offload.h"

#include <stdbool.h>
#include <string.h>

const gate *const gates[GATE_COUNT] = {
#define GATE(op) &op##_gate,
    GATES
#undef GATE
};

etalon_status gate_copy_args(const char *op, void *copy, size_t bytes, const void *args, size_t size)
{
    REQUIRE(args != NULL, "%s: args: NULL", op);
    REQUIRE(size >= sizeof(size_t), "%s: args.size: %zu, expected sizeof(args)", op, size);
    memset(copy, 0, bytes);
    memcpy(copy, args, size < bytes ? size : bytes);
    return ETALON_OK;
}

static const struct {
    uint32_t    bit;
    const char *what, *missing;
} words[] = {
#define FEATURE(bit, number, option, what, missing) { bit, what, missing },
#include "features.def"
#undef FEATURE
};

enum { WORD_COUNT = sizeof words / sizeof words[0] };

const char *gate_needs(uint32_t needs)
{
    for (int i = 0; i < WORD_COUNT; i++)
        if (needs & words[i].bit)
            return words[i].what;
    return "";
}

const char *gate_lacks(uint32_t missing)
{
    for (int i = 0; i < WORD_COUNT; i++)
        if (missing & words[i].bit)
            return words[i].missing;
    return "";
}

const char *gate_why_not(const gate_row *row, uint32_t have, const void *problem)
{
    if ((row->needs & have) != row->needs)
        return gate_lacks(row->needs & ~have);
    return row->refuse(problem);
}

const gate_row *gate_select(const gate *g, uint32_t have, const void *problem)
{
    for (int i = 0; i < g->count; i++)
        if (gate_why_not(&g->rows[i], have, problem) == NULL)
            return &g->rows[i];
    return NULL;
}

const gate_row *gate_find(const gate *g, const char *name)
{
    for (int i = 0; i < g->count; i++)
        if (strcmp(g->rows[i].name, name) == 0)
            return &g->rows[i];
    return NULL;
}

/* The same of a row that nobody named: it has to be qualified, too. */
static const char *why_not_chosen(const gate_row *row, const etalon_context *ctx, const void *problem)
{
    const char *reason = gate_why_not(row, ctx->have, problem);
    return reason != NULL ? reason : context_why_unqualified(ctx, row);
}

/* A row that is named must be there. */
static etalon_status check_name(const gate *g, const char *name)
{
    if (name != NULL && gate_find(g, name) == NULL)
        return etalon_reject(ETALON_ERROR_UNSUPPORTED, "%s: kernel: no row is named \"%s\"", g->op, name);
    return ETALON_OK;
}

/* Without a name the last row answers for the table: it is the most general one that select may take. */
static const gate_row *last_resort(const gate *g)
{
    const gate_row *row = &g->rows[0];
    for (int i = 1; i < g->count; i++)
        if (!(g->rows[i].needs & NEEDS_NAME))
            row = &g->rows[i];
    return row;
}

etalon_status gate_choose(const gate *g, const etalon_context *ctx, const char *name, const void *problem,
                          const gate_row **row)
{
    const char *reason = "";
    if (name != NULL) {
        TRY(check_name(g, name));
        *row = gate_find(g, name);
        reason = gate_why_not(*row, ctx->have | NEEDS_NAME, problem);
    } else {
        for (int i = 0; i < g->count && reason != NULL; i++) {
            *row = &g->rows[i];
            reason = why_not_chosen(*row, ctx, problem);
        }
        if (reason != NULL) {
            *row = last_resort(g);
            reason = why_not_chosen(*row, ctx, problem);
        }
    }
    if (reason != NULL)
        return etalon_reject(ETALON_ERROR_UNSUPPORTED, "%s: %s: %s", g->op, (*row)->name, reason);
    return ETALON_OK;
}

etalon_status gate_run(const gate *g, const gate_row *row, const etalon_context *ctx, const void *problem,
                       etalon_workspace work)
{
    const size_t bytes = row->workspace(ctx, problem);
    if (bytes > 0 && (work.data == NULL || work.bytes < bytes))
        return etalon_reject(ETALON_ERROR_WORKSPACE_TOO_SMALL, "%s: workspace: %zu bytes, expected %zu (%s)", g->op,
                             work.data == NULL ? (size_t)0 : work.bytes, bytes, row->name);
    if (bytes > 0 && (uintptr_t)work.data % ETALON_WORKSPACE_ALIGN != 0)
        return etalon_reject(ETALON_ERROR_WORKSPACE_TOO_SMALL, "%s: workspace: %p is not aligned to %d bytes", g->op,
                             work.data, ETALON_WORKSPACE_ALIGN);
    if (bytes > 0 && (row->needs & NEEDS_DEVICE) != 0)
        TRY(offload_require(ctx->device, g->op, "workspace", work.data, bytes));
    return row->run(ctx, problem, work);
}

etalon_status gate_explain(const gate *g, const etalon_context *ctx, const char *name, const void *problem,
                           etalon_explain_fn *row, void *user)
{
    TRY(check_name(g, name));
    bool served = false;
    for (int i = 0; i < g->count; i++) {
        const bool  named = name != NULL && strcmp(name, g->rows[i].name) == 0;
        const char *reason = named ? gate_why_not(&g->rows[i], ctx->have | NEEDS_NAME, problem)
                                   : why_not_chosen(&g->rows[i], ctx, problem);
        if (reason == NULL && name != NULL && !named)
            reason = "another row is named";
        if (reason == NULL && served)
            reason = "an earlier row serves it";
        row(user, g->rows[i].name, reason);
        served = served || reason == NULL;
    }
    return ETALON_OK;
}

size_t gate_no_workspace(const etalon_context *ctx, const void *problem)
{
    (void)ctx;
    (void)problem;
    return 0;
}

const char *gate_refuse_none(const void *problem)
{
    (void)problem;
    return NULL;
}

etalon_status etalon_kernel_get(const etalon_context *ctx, int index, etalon_kernel_info *info)
{
    REQUIRE(ctx != NULL, "kernel_get: ctx: NULL");
    REQUIRE(info != NULL, "kernel_get: info: NULL");
    int left = index;
    for (int g = 0; g < GATE_COUNT && left >= 0; left -= gates[g++]->count) {
        if (left >= gates[g]->count)
            continue;
        const gate_row *row = &gates[g]->rows[left];
        *info = (etalon_kernel_info){ .op = gates[g]->op,
                                      .name = row->name,
                                      .needs = gate_needs(row->needs),
                                      .available = (row->needs & ctx->have) == row->needs &&
                                                   context_why_unqualified(ctx, row) == NULL };
        return ETALON_OK;
    }
    return etalon_reject(ETALON_ERROR_INVALID_ARGUMENT, "kernel_get: index: %d, there is no such row", index);
}
