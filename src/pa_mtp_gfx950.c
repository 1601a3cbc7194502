/* pa_mtp by asm/gfx950/pa_mtp_e4m3_d256_*_gfx950.s between hip/pa_mtp_plan_gfx950.hip and
 * asm/gfx950/pa_mtp_reduce_d256_gfx950.s. */
#include "offload.h"
#include "pa_mtp.h"

#include "pa_mtp_gfx950.h"

enum {
    WANTED_TASKS = 256, /* a CU of MI355X each: one workgroup fits there. The same on any device, so that all give the
                         * same bits */
    MOST_SLOT = 1 << 26 /* bytes between keys: an offset in a page has 32 bits */
};

static int64_t wanted_of(const pa_mtp_problem *p)
{
    return p->kv_heads < WANTED_TASKS ? WANTED_TASKS / p->kv_heads : 1;
}

/* Bytes of one step in a dimension. */
static int64_t step_of(const etalon_tensor *t, int32_t dim)
{
    return t->stride[dim] * (int64_t)etalon_dtype_bytes(t->dtype);
}

static bool address_aligned(const etalon_tensor *t, int64_t bytes)
{
    return (uintptr_t)t->data % (uintptr_t)bytes == 0;
}

/* Head dims stand together, and the first of each at a multiple of `bytes`. What lies on the host is copied to where
 * memory of the device begins. */
static bool rows_aligned(const pa_mtp_problem *p, const etalon_tensor *t, int64_t bytes)
{
    bool aligned = t->stride[t->rank - 1] == 1 && (p->device == ETALON_HOST || address_aligned(t, bytes));
    for (int32_t d = 0; d < t->rank - 1; d++)
        aligned = aligned && (t->shape[d] < 2 || step_of(t, d) % bytes == 0);
    return aligned;
}

static int64_t alignment_of_out(const pa_mtp_problem *p)
{
    return p->out.dtype == ETALON_F32 ? 16 : 8;
}

static bool addresses_aligned(const pa_mtp_problem *p)
{
    return address_aligned(&p->q, 16) && address_aligned(&p->k, 16) && address_aligned(&p->v, 16) &&
           address_aligned(&p->out, alignment_of_out(p));
}

static bool slot_fits(const etalon_tensor *cache)
{
    return step_of(cache, 1) >= 0 && step_of(cache, 1) <= MOST_SLOT;
}

/* Query tokens that some sequence has at least; what it has where the host can read it. */
static int64_t longest_q(const pa_mtp_problem *p)
{
    int64_t most = p->batch > 0 ? (p->tokens + p->batch - 1) / p->batch : 0;
    for (int64_t b = 0; b < p->batch && p->device == ETALON_HOST && p->cu_seqlens_q.data != NULL; b++) {
        const int64_t sq = index_at(&p->cu_seqlens_q, b + 1) - index_at(&p->cu_seqlens_q, b);
        most = sq > most ? sq : most;
    }
    return most;
}

/* What one task has; longer sequences are served too, but then K and V are read more than once. */
static const char *refuse_q_len(const pa_mtp_problem *p, int64_t ratio)
{
    if (longest_q(p) <= PA_MTP_GFX950_ROWS / ratio)
        return NULL;
    return ratio == 16  ? "q_len 5 and more are more rows than the 64 that share a pass over the keys"
           : ratio == 8 ? "q_len 9 and more are more rows than the 64 that share a pass over the keys"
                        : "q_len 17 and more are more rows than the 64 that share a pass over the keys";
}

const char *pa_mtp_refuse_gfx950(const pa_mtp_problem *p, int64_t ratio)
{
    const int64_t groups = p->tokens / (PA_MTP_GFX950_ROWS / ratio) + p->batch; /* of rows, at most */
    if (p->k.dtype != ETALON_E4M3FN)
        return "k is not E4M3FN";
    if (p->q.dtype != ETALON_BF16 && p->q.dtype != ETALON_E4M3FN)
        return "q is neither BF16 nor E4M3FN";
    if (p->d_qk != PA_MTP_GFX950_D || p->d_v != PA_MTP_GFX950_D)
        return "a head dim is not 256";
    if (p->page_size != PA_MTP_GFX950_PAGE)
        return "a page does not hold 16 keys";
    if (p->heads != ratio * p->kv_heads)
        return ratio == 16  ? "a KV head does not have 16 query heads"
               : ratio == 8 ? "a KV head does not have 8 query heads"
                            : "a KV head does not have 4 query heads";
    if (p->mask.left < INT32_MAX)
        return "there is a window to the left";
    if (!rows_aligned(p, &p->q, 16) || !rows_aligned(p, &p->k, 16) || !rows_aligned(p, &p->v, 16))
        return "rows of q, k or v are not 16-byte aligned, or have gaps in the head dim";
    if (!rows_aligned(p, &p->out, alignment_of_out(p)))
        return "rows of out are not aligned, or have gaps in the head dim";
    if (!slot_fits(&p->k) || !slot_fits(&p->v))
        return "keys of a page stand more than 2^26 bytes apart, or backwards";
    if (p->block_tables.shape[1] > 1 && p->block_tables.stride[1] != 1)
        return "block_tables has gaps between columns";
    if (p->block_tables.shape[1] >= INT32_MAX / PA_MTP_GFX950_PAGE || groups + WANTED_TASKS >= INT32_MAX / p->kv_heads)
        return "more than 2^31 keys or parts";
    if (groups * (p->block_tables.shape[1] * PA_MTP_GFX950_PAGE / PA_MTP_GFX950_TILE + 1) >= INT32_MAX)
        return "more than 2^31 tiles of all sequences";
    return refuse_q_len(p, ratio);
}

static size_t bytes_there(const pa_mtp_problem *p)
{
    return p->tokens == 0 ? 0 : pa_mtp_gfx950_layout_of(p, wanted_of(p)).bytes;
}

static size_t workspace(const pa_mtp_problem *p)
{
    return p->device == ETALON_HOST ? 0 : bytes_there(p);
}

static etalon_status run(const etalon_context *ctx, const char *stem, const pa_mtp_problem *p, void *work, void *stream)
{
    if (!addresses_aligned(p))
        return ETALON_ERROR_UNSUPPORTED;
    const pa_mtp_gfx950 args = pa_mtp_gfx950_of(p, (uint64_t)(uintptr_t)work, wanted_of(p));
    launch_step         steps[] = {
        { .stem = "pa_mtp_plan_gfx950", .groups = { 1, 1, 1 }, .threads = PA_MTP_GFX950_PLAN_ITEMS },
        { .stem = stem,
          .groups = { (uint32_t)args.most_tasks, (uint32_t)args.kv_heads, 1 },
          .threads = PA_MTP_GFX950_ITEMS },
        { .stem = "pa_mtp_reduce_d256_gfx950",
          .groups = { (uint32_t)args.tokens, (uint32_t)args.heads, 1 },
          .threads = PA_MTP_GFX950_REDUCE_ITEMS },
    };
    enum { STEPS = sizeof steps / sizeof steps[0] };
    for (int i = 0; i < STEPS; i++) {
        steps[i].args = &args;
        steps[i].args_bytes = sizeof args;
    }
    return offload_run(ctx->device, stream, steps, STEPS);
}

/* What the caller has mapped may lie anywhere: no copies of ours, which are aligned. */
static etalon_status serve(const etalon_context *ctx, const char *stem, const pa_mtp_problem *p, etalon_workspace work)
{
    const etalon_status status = pa_mtp_on_device(ctx, p, work, bytes_there(p), stem, run);
    return status == ETALON_ERROR_UNSUPPORTED && p->device == ETALON_HOST ? etalon_pa_mtp_omp(ctx, p, work) : status;
}

#define ROW(stem)                                                                                          \
    size_t etalon_##stem##_workspace(const etalon_context *ctx, const void *problem)                       \
    {                                                                                                      \
        (void)ctx;                                                                                         \
        return workspace(problem);                                                                         \
    }                                                                                                      \
                                                                                                           \
    etalon_status etalon_##stem(const etalon_context *ctx, const pa_mtp_problem *p, etalon_workspace work) \
    {                                                                                                      \
        return serve(ctx, #stem, p, work);                                                                 \
    }

ROW(pa_mtp_e4m3_d256_gqa16_page16_gfx950)
ROW(pa_mtp_e4m3_d256_gqa8_page16_gfx950)
ROW(pa_mtp_e4m3_d256_gqa4_page16_gfx950)
