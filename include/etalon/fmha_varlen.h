/* fmha_varlen: variable-length attention forward over packed sequences (prefill), with LSE. */
#ifndef ETALON_FMHA_VARLEN_H
#define ETALON_FMHA_VARLEN_H

#include <etalon/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct etalon_fmha_varlen_args {
    size_t        size; /* sizeof(etalon_fmha_varlen_args), set by ETALON_FMHA_VARLEN_ARGS_INIT */
    etalon_tensor q;
    etalon_tensor k;
    etalon_tensor v;
    etalon_tensor cu_seqlens_q;
    etalon_tensor cu_seqlens_k;
    etalon_tensor out;
    /* Optional from here on; zero means absent, except for the windows, where -1 does. */
    etalon_tensor        lse;
    etalon_tensor        q_descale;
    etalon_tensor        k_descale;
    etalon_tensor        v_descale;
    double               softmax_scale;
    int64_t              max_seqlen_q;
    int64_t              max_seqlen_k;
    int32_t              causal;
    int32_t              window_left;
    int32_t              window_right;
    const char          *kernel;
    etalon_model_options model;
} etalon_fmha_varlen_args;

/* Not causal, unlimited window, everything optional absent. */
#define ETALON_FMHA_VARLEN_ARGS_INIT           \
    { .size = sizeof(etalon_fmha_varlen_args), \
      .window_left = ETALON_WINDOW_UNLIMITED,  \
      .window_right = ETALON_WINDOW_UNLIMITED }

/**
 * Attention forward over sequences packed along the token axis.
 *
 *   Sequence b has the query rows cu_seqlens_q[b] <= t < cu_seqlens_q[b + 1] and the keys cu_seqlens_k[b] <= n <
 *   cu_seqlens_k[b + 1]. Query head h reads KV head h / (Hq / Hkv). The softmax is the one in <etalon/attention.h>.
 *
 * q             [Tq, Hq, Dqk]    E4M3FN, E4M3FNUZ, BF16 or F32
 * k             [Tk, Hkv, Dqk]   the dtype of q
 * v             [Tk, Hkv, Dv]    the dtype of q
 * cu_seqlens_q  [B + 1]          I32 or I64, from 0 to Tq, not decreasing
 * cu_seqlens_k  [B + 1]          the dtype of cu_seqlens_q, from 0 to Tk, not decreasing
 * out           [Tq, Hq, Dv]     BF16 or F32, written whole
 * lse           [Hq, Tq]         F32, natural logarithm, from unrounded weights; strides say other layouts
 * q_descale, k_descale, v_descale   F32, (), (1) or (B, Hkv): real value = stored value * descale; finite and positive;
 *                                absent is 1; an error where the tensors are not FP8
 * softmax_scale                  finite and positive; 0 is 1 / sqrt(Dqk)
 * max_seqlen_q, max_seqlen_k     at least the longest sequence; 0: not given. Device kernels size their grid by them
 *
 * Hq is a positive multiple of Hkv; 1 <= Dqk, Dv <= ETALON_MAX_HEAD_DIM.
 * The content rules of cu_seqlens_q, cu_seqlens_k and descales are checked where they are host memory.
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
 * operands are exact. The `_model` rows round P as `model` says; lse stays that of the unrounded weights. The rows for
 * gfx1250 round P to two E4M3 terms, relative to tiles of 128 keys:
 *
 *   |lse - exact| <= as above + gamma(64 + ceil(Tk / 128)) + 4 u |lse|
 *   |out - exact| <= as above + (2^-8 + 2^-7) (max_{j visible} |v[j, :]| + |exact|)
 *
 * Source: [FA2], [FA3]
 */
ETALON_API etalon_status etalon_fmha_varlen(const etalon_context *ctx, const etalon_fmha_varlen_args *args,
                                            etalon_workspace work);

/** Bytes of workspace that the same call of etalon_fmha_varlen needs; fails as that call would. */
ETALON_API etalon_status etalon_fmha_varlen_workspace_bytes(const etalon_context          *ctx,
                                                            const etalon_fmha_varlen_args *args, size_t *bytes);

/** Calls row() for every kernel of the table: the one that serves the call, and why the others do not. */
ETALON_API etalon_status etalon_fmha_varlen_explain(const etalon_context *ctx, const etalon_fmha_varlen_args *args,
                                                    etalon_explain_fn *row, void *user);

#ifdef __cplusplus
}
#endif

#endif
