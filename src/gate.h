/* The gate: one table of kernels an operation, best first, and the functions that read it.
 *
 * src/<op>_kernels.def holds the rows, KERNEL(stem, needs, workspace, refuse): the kernel etalon_<stem> serves a
 * problem if the context has `needs` and refuse(problem) is NULL; otherwise refuse says why not, in words.
 * `workspace` tells the bytes of scratch memory that it wants.
 */
#ifndef ETALON_GATE_H
#define ETALON_GATE_H

#include "context.h"
#include "error.h"

typedef struct gate_row {
    const char *name; /* the stem */
    uint32_t    needs;
    size_t (*workspace)(const etalon_context *ctx, const void *problem);
    const char *(*refuse)(const void *problem);
    etalon_status (*run)(const etalon_context *ctx, const void *problem, etalon_workspace work);
} gate_row;

typedef struct gate {
    const char     *op;
    const gate_row *rows;
    int             count;
} gate;

/* The tables, in the order in which etalon_kernel_get() counts: this list and no other. */
#define GATES GATE(pa_mtp) GATE(fmha_varlen) GATE(mqa_logits) GATE(mqa_logits_paged) GATE(merge_states)

#define GATE(op) extern const gate op##_gate;
GATES
#undef GATE

#define GATE(op) +1
enum { GATE_COUNT = GATES };
#undef GATE

extern const gate *const gates[GATE_COUNT];

/* The caller's arguments over a zeroed copy, so that a caller of an older, shorter struct keeps working. */
etalon_status gate_copy_args(const char *op, void *copy, size_t bytes, const void *args, size_t size);

/* Words for the lowest bit of needs: what it is, and why a context has it not. "" for no bit of features.def. */
const char *gate_needs(uint32_t needs);
const char *gate_lacks(uint32_t missing);

/* Why this row does not serve the problem; NULL if it does. Pure. */
const char *gate_why_not(const gate_row *row, uint32_t have, const void *problem);

/* The first row that serves the problem; NULL if none does. Pure. */
const gate_row *gate_select(const gate *g, uint32_t have, const void *problem);

/* The row of that name; NULL if there is none. */
const gate_row *gate_find(const gate *g, const char *name);

/* The named row, or the selected one if name is NULL; the error says what stands in the way. */
etalon_status gate_choose(const gate *g, const etalon_context *ctx, const char *name, const void *problem,
                          const gate_row **row);

/* Runs the row after a look at the workspace. */
etalon_status gate_run(const gate *g, const gate_row *row, const etalon_context *ctx, const void *problem,
                       etalon_workspace work);

/* Calls row() for every row of the table; fails if the named row is not there. */
etalon_status gate_explain(const gate *g, const etalon_context *ctx, const char *name, const void *problem,
                           etalon_explain_fn *row, void *user);

/* For rows that want no workspace, and for rows that take every problem. */
size_t gate_no_workspace(const etalon_context *ctx, const void *problem);
const char *gate_refuse_none(const void *problem);

#endif
