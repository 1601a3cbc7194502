/* pa_mtp: paged attention for multi-token-prediction verify, and decode. */
#ifndef ETALON_PA_MTP_H
#define ETALON_PA_MTP_H

#include <etalon/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum etalon_kv_layout {
    ETALON_KV_NHD = 0, /* [pages, page_size, Hkv, D] */
    ETALON_KV_HND = 1  /* [pages, Hkv, page_size, D] */
} etalon_kv_layout;

typedef struct etalon_pa_mtp_args {
    size_t        size; /* sizeof(etalon_pa_mtp_args), set by ETALON_PA_MTP_ARGS_INIT */
    etalon_tensor q;
    etalon_tensor k_cache;
    etalon_tensor v_cache;
    etalon_tensor block_tables;
    etalon_tensor seq_lens;
    etalon_tensor cu_seqlens_q;
    etalon_tensor out;
    /* Optional from here on; zero means absent, except for the windows, where -1 does. */
    etalon_tensor        lse;
    etalon_tensor        q_descale;
    etalon_tensor        k_descale;
    etalon_tensor        v_descale;
    double               softmax_scale;
    int32_t              causal;
    int32_t              window_left;
    int32_t              window_right;
    etalon_kv_layout     kv_layout;
    const char          *kernel;
    etalon_model_options model;
} etalon_pa_mtp_args;

/* Causal, unlimited window, everything optional absent. */
#define ETALON_PA_MTP_ARGS_INIT               \
    { .size = sizeof(etalon_pa_mtp_args),     \
      .causal = 1,                            \
      .window_left = ETALON_WINDOW_UNLIMITED, \
      .window_right = ETALON_WINDOW_UNLIMITED }

/**
 * Attention of a few query tokens per sequence over its paged KV cache.
 *
 *   Sequence b has the query tokens cu_seqlens_q[b] <= t < cu_seqlens_q[b + 1] and seq_lens[b] keys, its query tokens
 *   included: they are the last ones (tail aligned). Key j of sequence b is slot j % page_size of page
 *   block_tables[b, j / page_size]. Query head h reads KV head h / (Hq / Hkv). The softmax is the one in
 *   <etalon/attention.h> with i = t - cu_seqlens_q[b], Sq the number of query tokens and Sk = seq_lens[b].
 *
 * q             [T, Hq, Dqk]              BF16, F32, E4M3FN or E4M3FNUZ
 * k_cache       [pages, page_size, Hkv, Dqk], or [pages, Hkv, page_size, Dqk] (kv_layout)
 *                                         E4M3FN, E4M3FNUZ, BF16 or F32
 * v_cache       as k_cache with Dv        the dtype, pages and page_size of k_cache
 * block_tables  [B, max_pages]            I32, page ids; entries past ceil(seq_lens[b] / page_size) are never read
 * seq_lens      [B]                       I32 or I64, keys
 * cu_seqlens_q  [B + 1]                   I32 or I64, from 0 to T, not decreasing
 * out           [T, Hq, Dv]               BF16 or F32, written whole
 * lse           [Hq, T]                   F32, natural logarithm, from unrounded weights; strides say other layouts
 * q_descale, k_descale, v_descale         F32, (), (1) or (B, Hkv): real value = stored value * descale; finite and
 *                                         positive; absent is 1; an error for a tensor that is not FP8
 * softmax_scale                           finite and positive; 0 is 1 / sqrt(Dqk)
 *
 * Hq is a positive multiple of Hkv; 1 <= Dqk, Dv <= ETALON_MAX_HEAD_DIM; page_size >= 1; page ids lie in [0, pages).
 * The content rules of seq_lens, cu_seqlens_q, block_tables and descales are checked where they are host memory.
 *
 * @retval ETALON_ERROR_INVALID_ARGUMENT    a line above does not hold
 * @retval ETALON_ERROR_UNSUPPORTED         no kernel takes it, or the named one refuses
 * @retval ETALON_ERROR_WORKSPACE_TOO_SMALL
 * @retval ETALON_ERROR_DEVICE              launch failed; outputs are undefined
 *
 * Accuracy of the fp32 rows, in real (dequantised) values with Euclidean norms, p[j] = exp(s[j] - lse), u = 2^-24 and
 * gamma(n) = n u / (1 - n u); they add a dot product in eight partial sums or more, or in chunks of 32 products, and
 * keys in blocks of 64 or fewer:
 *
 *   e = gamma(max(32, ceil(Dqk / 8)) + 16) * softmax_scale * |q[i, :]| * max_{j visible} |k[j, :]|
 *   |lse - exact| <= e + gamma(128) + u |lse|
 *   |out - exact| <= (2 e + gamma(160)) * sum_j p[j] |v[j, d]|, and 2^-8 |exact| more where out is BF16
 *
 * for e <= 2^-6, leaving out of account weights below 2^-126 of the largest, which may vanish. Products of two FP8
 * operands are exact. The `_model` rows round q to E4M3FN (saturating) where it is BF16 or F32, and P as `model` says;
 * lse stays that of the unrounded weights.
 *
 * The `_gfx950` rows multiply on FP8 matrix units: they round q to E4M3FN (saturating) where it is BF16, and each weight
 * to the sum of two E4M3FN under a scale for 32 keys. With q so rounded, beyond the bounds above
 *
 *   |out - exact| grows by 2^-8 sum_j p[j] |v[j, d]| + 2^-17 max_j |v[j, d]|
 *
 * and lse by nothing.
 *
 * Source: [VLLM-PA], [SGL-MTP]
 */
ETALON_API etalon_status etalon_pa_mtp(const etalon_context *ctx, const etalon_pa_mtp_args *args,
                                       etalon_workspace work);

/** Bytes of workspace that the same call of etalon_pa_mtp needs; fails as that call would. */
ETALON_API etalon_status etalon_pa_mtp_workspace_bytes(const etalon_context *ctx, const etalon_pa_mtp_args *args,
                                                       size_t *bytes);

/** Calls row() for every kernel of the table: the one that serves the call, and why the others do not. */
ETALON_API etalon_status etalon_pa_mtp_explain(const etalon_context *ctx, const etalon_pa_mtp_args *args,
                                               etalon_explain_fn *row, void *user);

#ifdef __cplusplus
}
#endif

#endif
