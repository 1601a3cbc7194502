/* mqa_logits_paged: logits of the sparse-attention indexer over a paged cache of keys. */
#ifndef ETALON_MQA_LOGITS_PAGED_H
#define ETALON_MQA_LOGITS_PAGED_H

#include <etalon/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct etalon_mqa_logits_paged_args {
    size_t        size; /* sizeof(etalon_mqa_logits_paged_args), set by ETALON_MQA_LOGITS_PAGED_ARGS_INIT */
    etalon_tensor q;
    etalon_tensor kv_cache;
    etalon_tensor weights;
    etalon_tensor context_lens;
    etalon_tensor block_tables;
    etalon_tensor logits;
    int32_t       clean_logits;
    /* Optional from here on; zero means absent. */
    int64_t     max_context_len;
    const char *kernel;
} etalon_mqa_logits_paged_args;

/* Clean logits, everything optional absent. */
#define ETALON_MQA_LOGITS_PAGED_ARGS_INIT { .size = sizeof(etalon_mqa_logits_paged_args), .clean_logits = 1 }

/**
 * Logits of an MQA indexer for the next_n query rows of each of B sequences, whose keys lie in blocks of a cache.
 *
 *   logits[m, n] = scale[n] * sum_h weights[m, h] * relu(q[b, t, h, :] . k[n, :])   for 0 <= n < context_lens[b, t]
 *   logits[m, n] = -inf elsewhere if clean_logits, else untouched
 *   with m = b next_n + t; key n of sequence b is slot n % block_size of block block_tables[b, n / block_size]
 *
 * q             [B, next_n, H, D]          E4M3FN or E4M3FNUZ
 * kv_cache      [blocks, block_size, D + 4], or [blocks, block_size, 1, D + 4]
 *                                          E4M3FN or E4M3FNUZ, the format of the keys; or U8: that of q
 * weights       [B next_n, H]              F32, any sign; the query scale and the softmax scale are folded in
 * context_lens  [B, next_n]                I32 or I64, keys that the row sees, clamped to [0, N] and to what a row of
 *                                          block_tables has room for
 * block_tables  [B, max_blocks]            I32, block ids; entries past the sequence's longest row are never read
 * logits        [B next_n, N]              F32, N = max_context_len, or max_blocks block_size if that is 0; rows padded
 *                                          by a stride keep what is between them
 *
 * A block of the cache is planar and has no gaps: first the keys of all its slots, block_size x D bytes, then the scales
 * of all its slots, block_size F32. The extents of kv_cache count a slot's share of both, D + 4 bytes; they do not mean
 * that a scale follows its key. Blocks may lie any distance apart that is a multiple of 4; addresses and block_size D are
 * multiples of 4, too.
 *
 * 1 <= D <= ETALON_MAX_HEAD_DIM; H, next_n and block_size >= 1. Block ids lie in [0, blocks), which is checked where
 * they are host memory. relu, NaN and the order of kv_scale are those of <etalon/mqa_logits.h>: the logits have the bits
 * of mqa_logits on the same row's gathered keys, from the row of the same target.
 *
 * @retval ETALON_ERROR_INVALID_ARGUMENT    a line above does not hold
 * @retval ETALON_ERROR_UNSUPPORTED         no kernel takes it, or the named one refuses
 * @retval ETALON_ERROR_WORKSPACE_TOO_SMALL
 * @retval ETALON_ERROR_DEVICE              launch failed; logits are undefined
 *
 * Accuracy: that of mqa_logits.
 *
 * Source: [DSA] eq. 1, [DEEPGEMM]
 */
ETALON_API etalon_status etalon_mqa_logits_paged(const etalon_context *ctx, const etalon_mqa_logits_paged_args *args,
                                                 etalon_workspace work);

/** Bytes of workspace that the same call of etalon_mqa_logits_paged needs; fails as that call would. */
ETALON_API etalon_status etalon_mqa_logits_paged_workspace_bytes(const etalon_context               *ctx,
                                                                 const etalon_mqa_logits_paged_args *args,
                                                                 size_t                             *bytes);

/** Calls row() for every kernel of the table: the one that serves the call, and why the others do not. */
ETALON_API etalon_status etalon_mqa_logits_paged_explain(const etalon_context               *ctx,
                                                         const etalon_mqa_logits_paged_args *args,
                                                         etalon_explain_fn *row, void *user);

#ifdef __cplusplus
}
#endif

#endif
