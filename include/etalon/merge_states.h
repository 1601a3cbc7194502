/* merge_states: joins two attention results over disjoint sets of keys. */
#ifndef ETALON_MERGE_STATES_H
#define ETALON_MERGE_STATES_H

#include <etalon/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct etalon_merge_states_args {
    size_t        size; /* sizeof(etalon_merge_states_args), set by ETALON_MERGE_STATES_ARGS_INIT */
    etalon_tensor out_a;
    etalon_tensor lse_a;
    etalon_tensor out_b;
    etalon_tensor lse_b;
    etalon_tensor out;
    /* Optional from here on; zero means absent. */
    etalon_tensor lse;
    const char   *kernel;
} etalon_merge_states_args;

#define ETALON_MERGE_STATES_ARGS_INIT { .size = sizeof(etalon_merge_states_args) }

/**
 * The attention over the union of two disjoint sets of keys, from the attention over each.
 *
 *   m      = max(lse_a, lse_b),  w_x = exp(lse_x - m)
 *   out    = (w_a out_a + w_b out_b) / (w_a + w_b)
 *   lse    = m + ln(w_a + w_b)
 *
 * out_a, out_b  [T, H, D]  F32 or BF16, one dtype
 * lse_a, lse_b  [H, T]     F32, natural logarithm; -inf is an empty side, and so is +inf (FlashAttention-2)
 * out           [T, H, D]  F32 or BF16; may be out_a or out_b itself, element for element
 * lse           [H, T]     F32; may be lse_a or lse_b itself, element for element
 *
 * An empty side is neutral and its out is not read (0 * NaN counts): the other side is returned as it is. Both sides
 * empty: out = 0, lse = -inf. NaN in an LSE gives NaN.
 *
 * @retval ETALON_ERROR_INVALID_ARGUMENT    a line above does not hold
 * @retval ETALON_ERROR_UNSUPPORTED         no kernel takes it, or the named one refuses
 * @retval ETALON_ERROR_WORKSPACE_TOO_SMALL
 *
 * Accuracy of the fp32 rows, u = 2^-24:
 *   |lse - exact| <= 4 u + u |lse|
 *   |out - exact| <= (8 + 2 |lse_a - lse_b|) u * max(|out_a|, |out_b|), and 2^-8 |exact| more where out is BF16
 *
 * Source: [CASCADE]
 */
ETALON_API etalon_status etalon_merge_states(const etalon_context *ctx, const etalon_merge_states_args *args,
                                             etalon_workspace work);

/** Bytes of workspace that the same call of etalon_merge_states needs; fails as that call would. */
ETALON_API etalon_status etalon_merge_states_workspace_bytes(const etalon_context           *ctx,
                                                             const etalon_merge_states_args *args, size_t *bytes);

/** Calls row() for every kernel of the table: the one that serves the call, and why the others do not. */
ETALON_API etalon_status etalon_merge_states_explain(const etalon_context *ctx, const etalon_merge_states_args *args,
                                                     etalon_explain_fn *row, void *user);

#ifdef __cplusplus
}
#endif

#endif
