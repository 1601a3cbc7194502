/* fmha_varlen by asm/gfx1250/fmha_varlen_e4m3_d192x128_gfx1250.s and its causal twin. */
#include "fmha_varlen_gfx1250.h"
#include "context.h"
#include "offload.h"

static uint64_t address_of(const etalon_tensor *t)
{
    return (uint64_t)(uintptr_t)t->data;
}

static int log2_of(int64_t n) /* rounded up */
{
    int bits = 0;
    while (INT64_C(1) << bits < n)
        bits++;
    return bits;
}

/* Rows of all sequences: tokens times query heads of a KV head. */
static int64_t rows_of(const fmha_varlen_problem *p)
{
    return p->total_q * (p->heads / p->kv_heads);
}

/* Bytes from one index to the next; of an extent of 1 nothing depends on it. */
static int64_t stride_of(const etalon_tensor *t, int dim)
{
    return t->shape[dim] > 1 ? t->stride[dim] * (int64_t)etalon_dtype_bytes(t->dtype) : 0;
}

static bool is_below(int64_t stride, int64_t limit)
{
    return stride >= 0 && stride < limit;
}

static const char *refuse_strides(const fmha_varlen_problem *p)
{
    enum { TOKEN_LIMIT = 1 << 24 };
    const int64_t              head_limit = INT64_C(1) << 31;
    const etalon_tensor *const all[] = { &p->q, &p->k, &p->v, &p->out };
    for (int i = 0; i < 4; i++) {
        if (all[i]->stride[2] != 1)
            return "a head dim is not contiguous";
        if (!is_below(stride_of(all[i], 0), TOKEN_LIMIT))
            return "a token stride is not within [0, 2^24) bytes";
        if (!is_below(stride_of(all[i], 1), head_limit))
            return "a head stride is not within [0, 2^31) bytes";
    }
    const etalon_tensor *const factors[] = { &p->descale.q, &p->descale.k, &p->descale.v };
    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 2 && factors[i]->rank == 2; d++)
            if (!is_below(stride_of(factors[i], d), head_limit))
                return "a descale stride is not within [0, 2^31) bytes";
    if (!is_below(stride_of(&p->cu_seqlens_q, 0), head_limit) || !is_below(stride_of(&p->cu_seqlens_k, 0), head_limit))
        return "a stride of cu_seqlens is not within [0, 2^31) bytes";
    if (p->lse.data != NULL && (stride_of(&p->lse, 0) < 0 || stride_of(&p->lse, 1) < 0))
        return "a stride of lse is negative";
    return NULL;
}

/* A window that leaves every key to every row is none. */
static const char *refuse_mask(const fmha_varlen_problem *p, bool causal)
{
    const int64_t longest_q = p->max_seqlen_q > 0 ? p->max_seqlen_q : p->total_q;
    const int64_t longest_k = p->max_seqlen_k > 0 ? p->max_seqlen_k : p->total_k;
    if (p->mask.left < longest_k - 1)
        return "the left window is limited";
    if (causal)
        return p->mask.right == 0 ? NULL : "the mask is not causal";
    return p->mask.right < longest_q - 1 ? "the right window is limited" : NULL;
}

const char *fmha_varlen_gfx1250_refuse(const fmha_varlen_problem *p, bool causal)
{
    if (p->q.dtype != ETALON_E4M3FN)
        return "q is not E4M3FN";
    if (p->d_qk != 192)
        return "the head dim of q is not 192";
    if (p->d_v != 128)
        return "the head dim of v is not 128";
    if (p->out.dtype != ETALON_BF16)
        return "out is not BF16";
    if (rows_of(p) >= INT64_C(1) << 31 || p->total_k >= INT64_C(1) << 31 || p->batch >= 1 << 24)
        return "there are 2^31 rows or keys, or 2^24 sequences";
    if (p->kv_heads > 65535)
        return "there are more than 65535 KV heads";
    const char *why = refuse_mask(p, causal);
    return why != NULL ? why : refuse_strides(p);
}

int fmha_varlen_gfx1250_waves(const etalon_context *ctx, const fmha_varlen_problem *p, int64_t units)
{
    int waves = FMHA_VARLEN_GFX1250_MOST_WAVES;
    if (ctx->fmha_varlen_waves != 0)
        return ctx->fmha_varlen_waves;
    while (waves > 1 && rows_of(p) * p->kv_heads < units * waves * FMHA_VARLEN_GFX1250_ROWS)
        waves /= 2;
    return waves;
}

fmha_varlen_gfx1250 fmha_varlen_gfx1250_of(const fmha_varlen_problem *p, int waves)
{
    const int64_t              group = p->heads / p->kv_heads;
    const int                  shift = log2_of(group), log2_rows = log2_of(waves * FMHA_VARLEN_GFX1250_ROWS);
    const etalon_tensor *const factors[] = { &p->descale.q, &p->descale.k, &p->descale.v };
    fmha_varlen_gfx1250        args = {
        .q = address_of(&p->q),
        .k = address_of(&p->k),
        .v = address_of(&p->v),
        .out = address_of(&p->out),
        .lse = address_of(&p->lse),
        .cu_seqlens_q = address_of(&p->cu_seqlens_q),
        .cu_seqlens_k = address_of(&p->cu_seqlens_k),
        .q_token = (uint32_t)stride_of(&p->q, 0),
        .q_head = (uint32_t)stride_of(&p->q, 1),
        .k_token = (uint32_t)stride_of(&p->k, 0),
        .k_head = (uint32_t)stride_of(&p->k, 1),
        .v_token = (uint32_t)stride_of(&p->v, 0),
        .v_head = (uint32_t)stride_of(&p->v, 1),
        .out_token = (uint32_t)stride_of(&p->out, 0),
        .out_head = (uint32_t)stride_of(&p->out, 1),
        .cu_seqlens_q_stride = (uint32_t)stride_of(&p->cu_seqlens_q, 0),
        .cu_seqlens_k_stride = (uint32_t)stride_of(&p->cu_seqlens_k, 0),
        .batch = (uint32_t)p->batch,
        .group = (uint32_t)group,
        .magic = (uint32_t)(((UINT64_C(1) << (31 + shift)) + (uint64_t)group - 1) / (uint64_t)group),
        .shift = (uint32_t)shift,
        .scale = (float)(p->softmax_scale * 1.4426950408889634 /* log2(e) */),
        .log2_rows = (uint32_t)log2_rows,
        .places = (uint32_t)((rows_of(p) >> log2_rows) + p->batch),
        .log2_waves = (uint32_t)log2_of(waves),
    };
    if (p->lse.data != NULL) {
        args.lse_head = (uint64_t)stride_of(&p->lse, 0);
        args.lse_token = (uint64_t)stride_of(&p->lse, 1);
    }
    for (int i = 0; i < 3; i++) {
        args.descale[i] = address_of(factors[i]);
        for (int d = 0; d < 2 && factors[i]->rank == 2; d++)
            args.descale_stride[i][d] = (uint32_t)stride_of(factors[i], d);
    }
    return args;
}

static etalon_status run(const etalon_context *ctx, const char *stem, const fmha_varlen_problem *p, void *stream)
{
    enum { UNITS = 256 /* of an MI450, where the runtime does not tell */ };
    const int32_t             units = offload_place(ctx->device)->units;
    const int                 waves = fmha_varlen_gfx1250_waves(ctx, p, units > 0 ? units : UNITS);
    const fmha_varlen_gfx1250 args = fmha_varlen_gfx1250_of(p, waves);
    const launch_step         step = { .stem = stem,
                                       .groups = { args.places, (uint32_t)p->kv_heads, 1 },
                                       .threads = (uint32_t)waves * FMHA_VARLEN_GFX1250_WAVE,
                                       .args = &args,
                                       .args_bytes = sizeof args };
    return p->total_q == 0 ? ETALON_OK : offload_run(ctx->device, stream, &step, 1);
}

#define ROW(stem)                                                                                               \
    etalon_status etalon_##stem(const etalon_context *ctx, const fmha_varlen_problem *p, etalon_workspace work) \
    {                                                                                                           \
        return fmha_varlen_on_device(ctx, p, work.stream, #stem, run);                                          \
    }

ROW(fmha_varlen_e4m3_d192x128_causal_gfx1250)
ROW(fmha_varlen_e4m3_d192x128_gfx1250)
