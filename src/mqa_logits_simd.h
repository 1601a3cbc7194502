/* mqa_logits by panels of 16 keys: included once for each instruction set, with SIMD_BYTES and SIMD_STEM, the row's name, set.
 *
 * A task is a block of query rows, about 192 (row, head) pairs, over a chunk of the keys. Each panel of K is decoded once a
 * task; relu, weight and the sum over heads follow each block of scores while it is in the cache, and no score is stored.
 */
#include "context.h"
#include "element.h"
#include "mqa_logits.h"
#include "simd_panel.h"
#include "simd_row.h"

enum { BLOCK_PAIRS = 192, CHUNK_KEYS = 2048 };

/* Query rows of one task. */
static int64_t block_rows(const mqa_logits_problem *p)
{
    return tile_most(1, BLOCK_PAIRS / p->h);
}

static int64_t row_blocks(const mqa_logits_problem *p)
{
    return (p->m + block_rows(p) - 1) / block_rows(p);
}

static int64_t task_count(const mqa_logits_problem *p)
{
    return row_blocks(p) * ((p->n + CHUNK_KEYS - 1) / CHUNK_KEYS);
}

/* Scratch memory of one thread: packed q, weights, a panel of K, a block of scores, the sums over heads. */
typedef struct scratch {
    float *q, *weights, *k, *s, *sum;
} scratch;

static int64_t scratch_floats(const mqa_logits_problem *p)
{
    const int64_t pairs = block_rows(p) * p->h;
    const int64_t floats = pairs * (p->d + 1) + PANEL * (p->d + BLOCK_ROWS + block_rows(p));
    return tile_aligned(floats);
}

static scratch scratch_at(const mqa_logits_problem *p, float *at)
{
    const int64_t pairs = block_rows(p) * p->h;
    scratch       t;
    t.k = at;
    t.s = t.k + PANEL * p->d;
    t.sum = t.s + PANEL * BLOCK_ROWS;
    t.q = t.sum + PANEL * block_rows(p);
    t.weights = t.q + pairs * p->d;
    return t;
}

/* Rows [first, first + rows) of q and weights; pairs in blocks, [d][pairs of the block]. */
static void pack_rows(const mqa_logits_problem *p, int64_t first, int64_t rows, const scratch *t)
{
    float row[ETALON_MAX_HEAD_DIM];
    for (int64_t i = 0; i < rows * p->h; i++) {
        const int64_t m = first + i / p->h, h = i % p->h;
        const int64_t block = i / BLOCK_ROWS * BLOCK_ROWS, width = tile_least(BLOCK_ROWS, rows * p->h - block);
        element_load_row(row, tensor_at3(&p->q, m, h, 0), p->q.dtype, p->q.stride[2], p->d);
        for (int64_t d = 0; d < p->d; d++)
            t->q[block * p->d + d * width + (i - block)] = row[d];
        t->weights[i] = *(const float *)tensor_at2(&p->weights, m, h);
    }
}

/* sum[m][0..15] += weight * relu(s) for a block of pairs; NaN stays. */
static void add_heads(const mqa_logits_problem *p, const scratch *t, int64_t first, int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++) {
        float *to = t->sum + (first + i) / p->h * PANEL;
        for (int v = 0; v < PANEL; v += SIMD_LANES) {
            const vfloat s = simd_load(t->s + i * PANEL + v);
            const vfloat relu = simd_select(s < simd_set(0.0f), simd_set(0.0f), s);
            simd_store(to + v, simd_load(to + v) + t->weights[first + i] * relu);
        }
    }
}

/* The sums over heads of a panel, in units of the format of K; true if a key holds NaN. */
static bool sum_panel(const mqa_logits_problem *p, const attend_keys *keys, simd_fp8 format, const key_range *see,
                      int64_t rows, int64_t n, int64_t last, const scratch *t)
{
    const uint8_t *row[PANEL];
    tile_panel_rows(keys, n, last - n, row);
    const bool nan = tile_pack_keys(keys, format, row, t->k);
    memset(t->sum, 0, (size_t)(rows * PANEL) * sizeof(float));
    for (int64_t i = 0; i < rows * p->h; i += BLOCK_ROWS) {
        const int64_t pairs = tile_least(BLOCK_ROWS, rows * p->h - i);
        bool          seen = false;
        for (int64_t m = i / p->h; m <= (i + pairs - 1) / p->h; m++)
            seen |= tile_meets(see[m], n, n + PANEL);
        if (!seen)
            continue;
        for (int64_t d = 0; d < p->d; d += CHUNK_DIMS)
            tile_scores(pairs, t->q + i * p->d + d * pairs, t->k + d * PANEL, tile_least(CHUNK_DIMS, p->d - d), d > 0,
                        t->s, PANEL);
        add_heads(p, t, i, pairs);
    }
    return nan;
}

static bool key_is_nan(const mqa_logits_problem *p, simd_fp8 format, int64_t n)
{
    return tile_row_has_nan((const uint8_t *)tensor_at2(&p->k, n, 0), p->d, format);
}

/* What row m sees of a panel; a key that holds NaN gives NaN. */
static void store_panel(const mqa_logits_problem *p, simd_fp8 format, int64_t m, key_range see, int64_t n, int64_t last,
                        bool nan, const float *sum)
{
    const int64_t from = tile_most(see.first, n), to = tile_least(tile_least(see.last, n + PANEL), last);
    for (int64_t i = from; i < to; i++) {
        const float scale = format.unit * ((const float *)p->kv_scale.data)[i * p->kv_scale.stride[0]];
        *(float *)tensor_at2(&p->logits, m, i) = nan && key_is_nan(p, format, i) ? NAN : scale * sum[i - n];
    }
}

static void fill(const mqa_logits_problem *p, int64_t m, int64_t from, int64_t to)
{
    for (int64_t n = from; n < to; n++)
        *(float *)tensor_at2(&p->logits, m, n) = -INFINITY;
}

/* Keys [from, to) that a row of the task sees; -inf goes where it does not, if that is wanted. */
static key_range windows_of(const mqa_logits_problem *p, int64_t first, int64_t rows, int64_t from, int64_t to,
                            key_range *see)
{
    key_range all = { to, from };
    for (int64_t i = 0; i < rows; i++) {
        const key_range whole = mqa_logits_window(p, first + i);
        see[i] = (key_range){ tile_most(whole.first, from), tile_least(whole.last, to) };
        if (see[i].first >= see[i].last)
            see[i] = (key_range){ to, to };
        if (p->clean) {
            fill(p, first + i, from, see[i].first);
            fill(p, first + i, see[i].last, to);
        }
        if (see[i].first < to) {
            all.first = tile_least(all.first, see[i].first);
            all.last = tile_most(all.last, see[i].last);
        }
    }
    return all;
}

static void task(const mqa_logits_problem *p, int64_t i, float *memory)
{
    const int64_t   first = i % row_blocks(p) * block_rows(p), rows = tile_least(block_rows(p), p->m - first);
    const int64_t   from = i / row_blocks(p) * CHUNK_KEYS, to = tile_least(p->n, from + CHUNK_KEYS);
    key_range       see[BLOCK_PAIRS];
    const key_range all = windows_of(p, first, rows, from, to, see);
    if (all.first >= all.last)
        return;
    const scratch     t = scratch_at(p, memory);
    const simd_fp8    format = simd_fp8_of(p->k.dtype);
    const attend_keys keys = {
        .k = p->k.data, .dtype = p->k.dtype, .k_slot = p->k.stride[0], .d_qk = p->d, .page_size = INT64_MAX
    };
    pack_rows(p, first, rows, &t);
    for (int64_t n = all.first; n < all.last; n += PANEL) {
        const bool nan = sum_panel(p, &keys, format, see, rows, n, all.last, &t);
        for (int64_t m = 0; m < rows; m++)
            store_panel(p, format, first + m, see[m], n, all.last, nan, t.sum + m * PANEL);
    }
}

size_t SIMD_WORKSPACE(const etalon_context *ctx, const void *problem)
{
    const mqa_logits_problem *p = problem;
    return sizeof(float) * (size_t)(context_threads(ctx, task_count(p)) * scratch_floats(p));
}

etalon_status SIMD_RUN(const etalon_context *ctx, const mqa_logits_problem *p, etalon_workspace work)
{
    const int64_t tasks = task_count(p);
    (void)ctx;
#pragma omp parallel num_threads(context_threads(ctx, tasks))
    {
        float *const mine = (float *)work.data + tile_thread() * scratch_floats(p);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < tasks; i++)
            task(p, i, mine);
    }
    return ETALON_OK;
}
