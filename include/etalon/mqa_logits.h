/* mqa_logits: logits of the sparse-attention indexer. */
#ifndef ETALON_MQA_LOGITS_H
#define ETALON_MQA_LOGITS_H

#include <etalon/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct etalon_mqa_logits_args {
    size_t        size; /* sizeof(etalon_mqa_logits_args), set by ETALON_MQA_LOGITS_ARGS_INIT */
    etalon_tensor q;
    etalon_tensor k;
    etalon_tensor kv_scale;
    etalon_tensor weights;
    etalon_tensor cu_seqlen_ks;
    etalon_tensor cu_seqlen_ke;
    etalon_tensor logits;
    int32_t       clean_logits;
    /* Optional from here on; zero means absent. */
    const char *kernel;
    int64_t     max_seqlen_k; /* columns of compressed logits */
} etalon_mqa_logits_args;

/* Clean logits, everything optional absent. */
#define ETALON_MQA_LOGITS_ARGS_INIT { .size = sizeof(etalon_mqa_logits_args), .clean_logits = 1 }

/**
 * Logits of an MQA indexer: all heads of a query share one key per position.
 *
 *   logits[m, n] = kv_scale[n] * sum_h weights[m, h] * relu(q[m, h, :] . k[n, :])   for ks[m] <= n < ke[m]
 *   logits[m, n] = -inf elsewhere if clean_logits, else untouched
 *
 *   With max_seqlen_k > 0 the logits are compressed: that of key n stands in column n - ks[m], for the first max_seqlen_k
 *   keys of the window; the columns after the window's are -inf if clean_logits, else untouched.
 *
 * q        [M, H, D]  E4M3FN or E4M3FNUZ
 * k        [N, D]     E4M3FN or E4M3FNUZ, each operand decoded by its own dtype
 * kv_scale [N]        F32, dequantisation factor of k
 * weights  [M, H]     F32, any sign; the query scale and the softmax scale are folded in by the caller
 * cu_seqlen_ks, cu_seqlen_ke  [M]  I32 or I64, key positions, half open; clamped to [0, N]; ks >= ke: an empty row
 * logits   [M, N]     F32, or [M, max_seqlen_k]; rows padded by a stride keep what is between them
 *
 * 1 <= D <= ETALON_MAX_HEAD_DIM; H >= 1; max_seqlen_k >= 0. kv_scale is applied after the sum, so that for the non-negative scales of
 * the field both orders agree. relu(x) is 0 for x < 0 and x otherwise: a NaN in a visible (row, key) gives NaN there
 * and nowhere else, which the kernels that compute max(x, 0) in hardware may turn into 0.
 *
 * @retval ETALON_ERROR_INVALID_ARGUMENT    a line above does not hold
 * @retval ETALON_ERROR_UNSUPPORTED         no kernel takes it, or the named one refuses
 * @retval ETALON_ERROR_WORKSPACE_TOO_SMALL
 * @retval ETALON_ERROR_DEVICE              launch failed; logits are undefined
 *
 * Accuracy of the fp32 rows, with Euclidean norms, gamma(n) = n u / (1 - n u) and u = 2^-24; the products of two FP8
 * values are exact in fp32, and a dot product is added in eight partial sums or more, or in chunks of 32 products:
 *   |logits - exact| <= gamma(max(32, ceil(D / 8)) + H + 16) * |kv_scale[n]|
 *                       * sum_h |weights[m, h]| |q[m, h, :]| |k[n, :]|
 *
 * Source: [DSA] eq. 1
 */
ETALON_API etalon_status etalon_mqa_logits(const etalon_context *ctx, const etalon_mqa_logits_args *args,
                                           etalon_workspace work);

/** Bytes of workspace that the same call of etalon_mqa_logits needs; fails as that call would. */
ETALON_API etalon_status etalon_mqa_logits_workspace_bytes(const etalon_context         *ctx,
                                                           const etalon_mqa_logits_args *args, size_t *bytes);

/** Calls row() for every kernel of the table: the one that serves the call, and why the others do not. */
ETALON_API etalon_status etalon_mqa_logits_explain(const etalon_context *ctx, const etalon_mqa_logits_args *args,
                                                   etalon_explain_fn *row, void *user);

#ifdef __cplusplus
}
#endif

#endif
