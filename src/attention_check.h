/* What pa_mtp and fmha_varlen check alike, and the mask that both normalise to. */
#ifndef ETALON_ATTENTION_CHECK_H
#define ETALON_ATTENTION_CHECK_H

#include "tensor.h"

#include <etalon/attention.h>

#define ATTENTION_MAX_TILE 1024 /* keys a tile of the rounding model */

/* Keys to the left and right of the bottom-right diagonal that a row sees; causality is right == 0. */
typedef struct attention_mask {
    int64_t left, right;
} attention_mask;

/* Dequantisation factors of one (sequence, KV head); tensors may be absent. */
typedef struct attention_descales {
    etalon_tensor q, k, v;
} attention_descales;

attention_mask attention_mask_of(int32_t causal, int32_t window_left, int32_t window_right);

/* Row i of sq query rows over sk keys. */
key_range attention_visible(attention_mask mask, int64_t i, int64_t sq, int64_t sk);

/* 1 where the tensor is absent. */
float attention_descale(const etalon_tensor *descale, int64_t b, int64_t kv_head);

/* The sequence that owns packed row t: cu[b] <= t < cu[b + 1]. */
int64_t attention_sequence(const etalon_tensor *cu_seqlens, int64_t t);

etalon_status attention_check_heads(const char *op, int64_t heads, int64_t kv_heads, int64_t d_qk, int64_t d_v);

/* `of` is the tensor that the factor belongs to, named of_name. */
etalon_status attention_check_descale(const char *op, const char *name, const etalon_tensor *descale,
                                      const char *of_name, const etalon_tensor *of, int64_t batch, int64_t kv_heads);

/* *scale: what the caller gave, or 1 / sqrt(d_qk). */
etalon_status attention_check_scale(const char *op, double softmax_scale, int64_t d_qk, double *scale);

/* *checked: with the default tile filled in. */
etalon_status attention_check_model(const char *op, const etalon_model_options *options, etalon_model_options *checked);

/* The optional lse [heads, tokens]. */
etalon_status attention_check_lse(const char *op, const etalon_tensor *lse, int64_t heads, int64_t tokens);

#endif
