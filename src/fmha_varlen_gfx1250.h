/* The arguments of asm/gfx1250/fmha_varlen_e4m3_d192x128_gfx1250.s and its causal twin, and how they are launched. */
#ifndef ETALON_FMHA_VARLEN_GFX1250_H
#define ETALON_FMHA_VARLEN_GFX1250_H

#include "fmha_varlen.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    FMHA_VARLEN_GFX1250_WAVE = 32, /* work-items */
    FMHA_VARLEN_GFX1250_ROWS = 64, /* of a wave: a row is a token and a query head of the KV head */
    FMHA_VARLEN_GFX1250_MOST_WAVES = 4
};

/* Addresses of element 0, 0 where absent; strides in bytes, those of descales 0 where one factor serves all. */
typedef struct fmha_varlen_gfx1250 {
    uint64_t q, k, v, out, lse;
    uint64_t descale[3]; /* of q, k and v */
    uint64_t cu_seqlens_q, cu_seqlens_k;
    uint32_t q_token, q_head, k_token, k_head, v_token, v_head, out_token, out_head;
    uint64_t lse_head, lse_token;
    uint32_t descale_stride[3][2]; /* sequence, KV head */
    uint32_t cu_seqlens_q_stride, cu_seqlens_k_stride;
    uint32_t batch;
    uint32_t group;        /* query heads of a KV head */
    uint32_t magic, shift; /* n / group == 2 n magic >> 32 >> shift for n < 2^31 */
    float    scale;        /* softmax_scale log2(e) */
    uint32_t log2_rows;    /* of a workgroup */
    uint32_t places;
    uint32_t log2_waves; /* of a workgroup */
} fmha_varlen_gfx1250;

_Static_assert(offsetof(fmha_varlen_gfx1250, q) == 0, "KA_Q");
_Static_assert(offsetof(fmha_varlen_gfx1250, cu_seqlens_q) == 64, "KA_CU_SEQLENS_Q");
_Static_assert(offsetof(fmha_varlen_gfx1250, descale_stride) == 128, "KA_Q_DESCALE_STRIDE");
_Static_assert(sizeof(fmha_varlen_gfx1250) == 192, "KA_SIZE");

/* NULL, or why the kernel that sees every key, or the causal one, does not take the problem. */
const char *fmha_varlen_gfx1250_refuse(const fmha_varlen_problem *p, bool causal);

/* Waves of a workgroup, 1, 2 or 4: what the context says, or as many as leave no compute unit without a workgroup. */
int fmha_varlen_gfx1250_waves(const etalon_context *ctx, const fmha_varlen_problem *p, int64_t units);

fmha_varlen_gfx1250 fmha_varlen_gfx1250_of(const fmha_varlen_problem *p, int waves);

#endif
