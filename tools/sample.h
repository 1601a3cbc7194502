/* Some outputs of a problem too large to compute whole: drawn from a seed, and verified as exactly as all would be.
 *
 * What is drawn, without replacement, and counted:
 *
 *   pa_mtp, fmha_varlen, merge_states   rows (t, h): out[t, h, :] and lse[h, t]
 *   mqa_logits, mqa_logits_paged        elements (m, n) of logits, not rows of it: as much work as one row of N keys finds a
 *                                       wrong tile, head or window much sooner when it is spread over all rows
 *
 * Each is the whole result of a problem of one query row, which oracle_run() and bound_prepare() take as any other. Its
 * tensors are views of the problem's, except for the keys of pa_mtp: the one head of the one sequence that the row reads
 * is copied, since a bound copies V, and all pages of a cache are too many. So memory goes by the longest sequence, and
 * nothing of the file is read beyond what the drawn outputs depend on.
 *
 * The results are compact: number n of the sample is row n of out [N, 1, Dv], of lse [1, N], and of logits [N, 1].
 * Rows are bits of the whole result for kernels that work row by row, as `_ref` and `_model` do.
 */
#ifndef ETALON_SAMPLE_H
#define ETALON_SAMPLE_H

#include "bound.h"

typedef struct sample {
    const oracle_problem *problem;
    int64_t               count, of; /* drawn, of how many */
    int64_t              *number;    /* [count], ascending: t Hq + h, or m N + n */
    int64_t               inner;     /* Hq, or N */
    bool                  round_q;   /* before anything else, as bound_round_q() does */
    oracle_problem        compact;   /* merge_states: the problem of the sample alone; its tensors are owned */
} sample;

/**
 * Draws `count` outputs, or all if there are no more. The sample borrows the problem, which must be one that
 * oracle_explain() accepts. Free it, failure or not.
 */
bool sample_draw(const oracle_problem *problem, int64_t count, uint64_t seed, sample *s, tensorfile_error *error);

void sample_free(sample *s);

/** "rows" or "elements" */
const char *sample_unit(const sample *s);

/** The sample's part of an output of the whole problem, in its own dtype, bit for bit. Free compact->data. */
bool sample_gather(const sample *s, int output, const etalon_tensor *whole, etalon_tensor *compact,
                   tensorfile_error *error);

/** oracle_explain() for the first of the problems that sample_run() runs. */
bool sample_explain(const etalon_context *ctx, const sample *s, const char *kernel, etalon_explain_fn *row, void *user,
                    tensorfile_error *error);

/** The compact result. kernel NULL: the row that serves each problem. Free the result, failure or not. */
bool sample_run(const etalon_context *ctx, const sample *s, const char *kernel, oracle_result *result,
                tensorfile_error *error);

/** bound_prepare() for compact results; a row's maxima go over its own keys. Free the bound, failure or not. */
bool sample_bound(const etalon_context *ctx, const sample *s, bound_class class, bound *b, tensorfile_error *error);

/**
 * bound_judge() for compact results, with the indices of the whole problem in the verdict. "First" is first in the
 * order of the sample. calc_diff, a measure of the whole, fails a sample only beyond doubt: where four standard errors
 * of its estimate do not explain it.
 */
bool sample_judge(const sample *s, const bound *b, bound_class class, int output, const etalon_tensor *got,
                  const etalon_tensor *want, bool poisoned, verdict *v, tensorfile_error *error);

#endif
