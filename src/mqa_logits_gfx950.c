/* mqa_logits by hip/mqa_logits_e4m3_*_gfx950.hip: 32 or 64 heads of 128 dims. */
#include "mqa_logits.h"
#include "offload.h"

#include "mqa_logits_gfx950.h"

/* What is refused
 * ---------------
 * Kernels take 32-bit offsets behind an address of 64 bits: of a tile's keys, and of a block's rows of logits.
 */
enum {
    ALIGN = 4,            /* of what a lane takes, a dword or four */
    MOST_KEYS = 1 << 30,  /* positions, and a tile beyond, are int32_t */
    MOST_K_ROW = 1 << 25, /* 64 keys of a tile within 2 GiB */
    MOST_SCALE_ROW = 1 << 25
};

static bool aligned(const etalon_tensor *t)
{
    bool yes = (uintptr_t)t->data % ALIGN == 0;
    for (int32_t d = 0; d + 1 < t->rank; d++)
        yes = yes && mqa_logits_gfx950_stride(t, d) % ALIGN == 0;
    return yes;
}

static bool together(const etalon_tensor *t)
{
    return t->stride[t->rank - 1] == 1 || t->shape[t->rank - 1] < 2;
}

static bool within(const etalon_tensor *t, int64_t most)
{
    const int64_t stride = mqa_logits_gfx950_stride(t, 0);
    return stride >= 0 && stride < most;
}

/* The last column of a block's last row, in bytes behind its first: 32 bits. */
static bool logits_within(const mqa_logits_problem *p, bool small)
{
    const int64_t rows = mqa_logits_gfx950_block(p->h, small), row = mqa_logits_gfx950_stride(&p->logits, 0);
    return row >= 0 && row < (int64_t)1 << 32 && (rows - 1) * row + 4 * (p->n + 64) < (int64_t)1 << 32;
}

/* Half as many rows a workgroup, which reads keys twice as often, but takes twice as many CUs. Windows may be out of
 * the host's reach; the choice is that of rows which see all keys. */
static bool small_is_faster(const mqa_logits_problem *p)
{
    const mqa_logits_grid small = mqa_logits_gfx950_grid(p->h, p->n, p->clean, true);
    const mqa_logits_grid large = mqa_logits_gfx950_grid(p->h, p->n, p->clean, false);
    return mqa_logits_grid_whole(&small, p->m, MQA_LOGITS_GFX950_GROUPS) <=
           mqa_logits_grid_whole(&large, p->m, MQA_LOGITS_GFX950_GROUPS);
}

static const char *refuse(const mqa_logits_problem *p, int64_t heads, bool small)
{
    if (p->h != heads)
        return heads == 32 ? "H is not 32" : "H is not 64";
    if (p->d != MQA_LOGITS_GFX950_DIM)
        return "D is not 128";
    if (p->compressed)
        return "logits are compressed";
    if (p->q.dtype != ETALON_E4M3FN || p->k.dtype != ETALON_E4M3FN)
        return "q or k is not E4M3FN";
    if (!together(&p->q) || !together(&p->k))
        return "the head dim of q or k is not contiguous";
    if (!aligned(&p->q) || !aligned(&p->k))
        return "rows of q or k do not begin at multiples of 4 bytes";
    if (!together(&p->weights))
        return "the heads of weights are not contiguous";
    if (!together(&p->logits))
        return "the columns of logits are not contiguous";
    if (p->logits.shape[1] != p->n)
        return "logits have not a column for each key";
    if (p->n > MOST_KEYS)
        return "N is above 2^30";
    if (!within(&p->k, MOST_K_ROW))
        return "a row of k begins before the last, or 32 MiB or more behind it";
    if (!within(&p->kv_scale, MOST_SCALE_ROW))
        return "an element of kv_scale lies before the last, or 32 MiB or more behind it";
    if (!logits_within(p, small))
        return "a block of rows of logits runs backwards, or over 4 GiB";
    if (p->m > LAUNCH_MAX_STEPS * mqa_logits_gfx950_rows(heads, small))
        return "M is more than 16 launches take";
    if (small && !small_is_faster(p))
        return "so many rows and keys are faster in larger blocks of rows";
    return NULL;
}

const char *mqa_logits_refuse_h32_gfx950(const void *problem)
{
    return refuse(problem, 32, false);
}

const char *mqa_logits_refuse_h32_small_gfx950(const void *problem)
{
    return refuse(problem, 32, true);
}

const char *mqa_logits_refuse_h64_gfx950(const void *problem)
{
    return refuse(problem, 64, false);
}

const char *mqa_logits_refuse_h64_small_gfx950(const void *problem)
{
    return refuse(problem, 64, true);
}

/* Launch
 * ------
 */
static etalon_status run(const etalon_context *ctx, const char *stem, const mqa_logits_problem *p, void *stream,
                         bool small)
{
    mqa_logits_gfx950 args[LAUNCH_MAX_STEPS];
    launch_step       steps[LAUNCH_MAX_STEPS];
    const int64_t     most = mqa_logits_gfx950_rows(p->h, small);
    const uint32_t    waves = small ? MQA_LOGITS_GFX950_SMALL_WAVES : MQA_LOGITS_GFX950_WAVES;
    int               count = 0;
    for (int64_t row = 0; row < p->m && p->n > 0; row += most, count++) {
        args[count] = mqa_logits_gfx950_of(p, row, p->m - row < most ? p->m - row : most, MQA_LOGITS_GFX950_GROUPS);
        steps[count] = (launch_step){ .stem = stem,
                                      .groups = { MQA_LOGITS_GFX950_GROUPS, 1, 1 },
                                      .threads = 64 * waves,
                                      .args = &args[count],
                                      .args_bytes = sizeof args[count] };
    }
    return count == 0 ? ETALON_OK : offload_run(ctx->device, stream, steps, count);
}

static etalon_status run_large(const etalon_context *ctx, const char *stem, const mqa_logits_problem *p, void *stream)
{
    return run(ctx, stem, p, stream, false);
}

static etalon_status run_small(const etalon_context *ctx, const char *stem, const mqa_logits_problem *p, void *stream)
{
    return run(ctx, stem, p, stream, true);
}

#define ROW(stem, run)                                                                                         \
    etalon_status etalon_##stem(const etalon_context *ctx, const mqa_logits_problem *p, etalon_workspace work) \
    {                                                                                                          \
        return mqa_logits_on_device(ctx, p, work.stream, #stem, run);                                          \
    }

ROW(mqa_logits_e4m3_h32_d128_gfx950, run_large)
ROW(mqa_logits_e4m3_h32_d128_small_gfx950, run_small)
ROW(mqa_logits_e4m3_h64_d128_gfx950, run_large)
ROW(mqa_logits_e4m3_h64_d128_small_gfx950, run_small)
