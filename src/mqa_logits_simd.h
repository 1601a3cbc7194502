/* mqa_logits by panels of keys, and with SIMD_PAGED mqa_logits_paged, one sequence of it like the other: included once for
 * each instruction set, with SIMD_BYTES and SIMD_STEM, the row's name, set.
 *
 * A task is a block of query rows, about 192 (row, head) pairs, over a chunk of the keys. Each panel of K is decoded
 * once a task; relu, weight and the sum over heads follow each block of scores while it is in the cache, and no score
 * is stored.
 */
#include "context.h"
#include "element.h"
#include "mqa_logits_paged.h"
#include "simd_panel.h"
#include "simd_row.h"

#ifdef SIMD_AMX
#include "simd_amx.h"
#endif

enum { BLOCK_PAIRS = 192, CHUNK_KEYS = 2048 };

#ifdef SIMD_AMX
enum { KEYS = AMX_PANEL, PAIRS = AMX_BLOCK }; /* of a block of scores */
#else
enum { KEYS = PANEL, PAIRS = BLOCK_ROWS };
#endif

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
    const int64_t most = p->clean ? tile_most(p->n, p->columns) : p->n;
    return row_blocks(p) * ((most + CHUNK_KEYS - 1) / CHUNK_KEYS);
}

/* Scratch memory of one thread: packed q, weights, a panel of K, a block of scores, the sums over heads. */
typedef struct scratch {
    float *q, *weights, *k, *s, *sum;
} scratch;

static int64_t q_floats(const mqa_logits_problem *p)
{
    const int64_t pairs = block_rows(p) * p->h;
#ifdef SIMD_AMX
    return amx_floats(amx_row_tiles(pairs) * amx_steps(p->d) * AMX_TILE);
#else
    return pairs * p->d;
#endif
}

static int64_t k_floats(const mqa_logits_problem *p)
{
#ifdef SIMD_AMX
    return amx_floats(KEYS / AMX_ROWS * amx_steps(p->d) * AMX_TILE);
#else
    return KEYS * p->d;
#endif
}

static int64_t scratch_floats(const mqa_logits_problem *p)
{
    return tile_aligned(k_floats(p) + KEYS * (PAIRS + block_rows(p)) + q_floats(p) + block_rows(p) * p->h);
}

static scratch scratch_at(const mqa_logits_problem *p, float *at)
{
    scratch t;
    t.k = at;
    t.s = t.k + k_floats(p);
    t.sum = t.s + KEYS * PAIRS;
    t.q = t.sum + KEYS * block_rows(p);
    t.weights = t.q + q_floats(p);
    return t;
}

#ifdef SIMD_AMX
/* Pair i of q: A tiles, [row tile][step], in units of the format. */
static void pack_pair(const mqa_logits_problem *p, const uint8_t *from, int64_t i, int64_t pairs, const scratch *t)
{
    uint8_t codes[ETALON_MAX_HEAD_DIM];
    (void)pairs;
    for (int64_t d = 0; d < p->d; d++)
        codes[d] = from[d * p->q.stride[2]];
    amx_pack_codes(simd_fp8_of(p->q.dtype), codes, p->d, amx_row((uint16_t *)t->q, i, amx_steps(p->d)), AMX_TILE);
}

/* What scores are multiples of. */
static float unit_of(const mqa_logits_problem *p)
{
    return simd_fp8_of(p->q.dtype).unit * simd_fp8_of(p->k.dtype).unit;
}

static bool pack_keys(const attend_keys *keys, simd_fp8 format, int64_t n, int64_t left, float *k)
{
    const uint8_t *row[KEYS];
    amx_key_rows(keys, keys->k, keys->k_page, keys->k_slot, n, left, KEYS, row);
    return amx_pack_k(format, row, keys->d_qk, (uint16_t *)k);
}

/* Scores of a block of pairs: sixteen roundings in each chunk of 32 head dims and one more to add it, which is within
 * the docstring's max(32, ceil(D / 8)) + 16. The smallest product, 2^-9 * 2^-17, is far from what a tile takes as 0.
 */
static void multiply(const mqa_logits_problem *p, int64_t first, int64_t pairs, const scratch *t)
{
    const int64_t     steps = amx_steps(p->d);
    const amx_product product = { .a = amx_row((uint16_t *)t->q, first, steps),
                                  .a_row = steps * AMX_TILE,
                                  .b = (const uint16_t *)t->k,
                                  .b_column = steps * AMX_TILE,
                                  .steps = steps,
                                  .terms = 1 };
    amx_multiply(&product, pairs, KEYS / AMX_ROWS, false, t->s, KEYS);
}
#else
/* Pair i of q: in blocks of pairs, [d][pairs of the block]. */
static void pack_pair(const mqa_logits_problem *p, const uint8_t *from, int64_t i, int64_t pairs, const scratch *t)
{
    float row[ETALON_MAX_HEAD_DIM];
    element_load_row(row, from, p->q.dtype, p->q.stride[2], p->d);
    const int64_t block = i / PAIRS * PAIRS, width = tile_least(PAIRS, pairs - block);
    for (int64_t d = 0; d < p->d; d++)
        t->q[block * p->d + d * width + (i - block)] = row[d];
}

/* What scores are multiples of. */
static float unit_of(const mqa_logits_problem *p)
{
    return simd_fp8_of(p->k.dtype).unit;
}

static bool pack_keys(const attend_keys *keys, simd_fp8 format, int64_t n, int64_t left, float *k)
{
    const uint8_t *row[KEYS];
    tile_panel_rows(keys, n, left, row);
    return tile_pack_keys(keys, format, row, k);
}

/* Scores of a block of pairs. */
static void multiply(const mqa_logits_problem *p, int64_t first, int64_t rows, const scratch *t)
{
#define CALL(n) tile_chunks(n, t->q + first * p->d, t->k, p->d, t->s, KEYS)
    EACH_ROW_COUNT(CALL)
#undef CALL
}
#endif

/* Rows [first, first + rows) of q and weights. */
static void pack_rows(const mqa_logits_problem *p, int64_t first, int64_t rows, const scratch *t)
{
    for (int64_t i = 0; i < rows * p->h; i++) {
        const int64_t m = first + i / p->h, h = i % p->h;
        pack_pair(p, (const uint8_t *)tensor_at3(&p->q, m, h, 0), i, rows * p->h, t);
        t->weights[i] = *(const float *)tensor_at2(&p->weights, m, h);
    }
}

/* max(x, 0); NaN stays. */
static vfloat relu(vfloat x)
{
#if SIMD_BYTES == 64
    return (vfloat)_mm512_max_ps(_mm512_setzero_ps(), (__m512)x); /* the second operand where one is NaN */
#elif SIMD_BYTES == 32
    return (vfloat)_mm256_max_ps(_mm256_setzero_ps(), (__m256)x);
#else
    return simd_select(x < simd_set(0.0f), simd_set(0.0f), x);
#endif
}

/* sum[m][key] += weight * relu(s) for a block of pairs, the heads of one row at a time; NaN stays. */
static void add_heads(const mqa_logits_problem *p, const scratch *t, int64_t first, int64_t pairs)
{
    enum { VECTORS = KEYS / SIMD_LANES };
    for (int64_t i = 0, end; i < pairs; i = end) {
        const int64_t m = (first + i) / p->h;
        vfloat        sum[VECTORS];
        end = tile_least(pairs, (m + 1) * p->h - first);
        memcpy(sum, t->sum + m * KEYS, sizeof sum);
        for (int64_t n = i; n < end; n++)
            EACH (v, VECTORS)
                sum[v] += t->weights[first + n] * relu(simd_load(t->s + n * KEYS + v * SIMD_LANES));
        memcpy(t->sum + m * KEYS, sum, sizeof sum);
    }
}

/* The sums over heads of a panel, in units of the format of K; true if a key holds NaN. */
static bool sum_panel(const mqa_logits_problem *p, const attend_keys *keys, simd_fp8 format, const key_range *see,
                      int64_t rows, int64_t n, int64_t last, const scratch *t)
{
    const bool nan = pack_keys(keys, format, n, last - n, t->k);
    memset(t->sum, 0, (size_t)(rows * KEYS) * sizeof(float));
    for (int64_t i = 0; i < rows * p->h; i += PAIRS) {
        const int64_t pairs = tile_least(PAIRS, rows * p->h - i);
        bool          seen = false;
        for (int64_t m = i / p->h; m <= (i + pairs - 1) / p->h; m++)
            seen |= tile_meets(see[m], n, n + KEYS);
        if (!seen)
            continue;
        multiply(p, i, pairs, t);
        add_heads(p, t, i, pairs);
    }
    return nan;
}

/* The scales of a panel's keys, as far as there are any. */
static void load_scales(const attend_keys *keys, int64_t n, int64_t last, float *scale)
{
    const uint8_t *at[KEYS];
    const int64_t  count = tile_least(KEYS, last - n);
    tile_key_rows(keys, keys->v, keys->v_page, keys->v_slot, n, count, at);
    for (int64_t i = 0; i < count; i++)
        scale[i] = *(const float *)at[i];
}

/* What row m sees of a panel, from column n - origin on; a key that holds NaN gives NaN. */
static void store_panel(const mqa_logits_problem *p, const attend_keys *keys, simd_fp8 format, int64_t m,
                        int64_t origin, key_range see, int64_t n, int64_t last, bool nan, const float *scale,
                        const float *sum)
{
    const int64_t from = tile_most(see.first, n) - n, to = tile_least(tile_least(see.last, n + KEYS), last) - n;
    const int64_t step = p->logits.stride[1];
    const float   unit = unit_of(p);
    float        *logits = (float *)tensor_at2(&p->logits, m, n - origin);
    if (step == 1)
        for (int64_t i = from; i < to; i++)
            logits[i] = scale[i] * (unit * sum[i]);
    else
        for (int64_t i = from; i < to; i++)
            logits[i * step] = scale[i] * (unit * sum[i]);
    for (int64_t i = from; nan && i < to; i++)
        if (tile_row_has_nan(mqa_logits_key(keys, n + i), p->d, format))
            logits[i * step] = NAN;
}

/* -inf in the columns of [from, from + CHUNK_KEYS) that have no key of the row's window. */
static void fill(const mqa_logits_problem *p, int64_t m, key_range see, int64_t from)
{
    const int64_t origin = mqa_logits_origin(p, see), to = tile_least(p->columns, from + CHUNK_KEYS);
    for (int64_t c = from; c < tile_least(see.first - origin, to); c++)
        *(float *)tensor_at2(&p->logits, m, c) = -INFINITY;
    for (int64_t c = tile_most(see.last - origin, from); c < to; c++)
        *(float *)tensor_at2(&p->logits, m, c) = -INFINITY;
}

/* Keys [from, to) that a row of the task sees, and where its logits begin; -inf goes into the same columns where no key
 * belongs, if that is wanted. */
static key_range windows_of(const mqa_logits_problem *p, int64_t first, int64_t rows, int64_t from, int64_t to,
                            key_range *see, int64_t *origin)
{
    key_range all = { to, from };
    for (int64_t i = 0; i < rows; i++) {
        const key_range whole = mqa_logits_window(p, first + i);
        origin[i] = mqa_logits_origin(p, whole);
        see[i] = (key_range){ tile_most(whole.first, from), tile_least(whole.last, to) };
        if (see[i].first >= see[i].last)
            see[i] = (key_range){ to, to };
        if (p->clean)
            fill(p, first + i, whole, from);
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
    const int64_t   from = i / row_blocks(p) * CHUNK_KEYS, to = tile_most(from, tile_least(p->n, from + CHUNK_KEYS));
    key_range       see[BLOCK_PAIRS];
    int64_t         origin[BLOCK_PAIRS];
    const key_range all = windows_of(p, first, rows, from, to, see, origin);
    if (all.first >= all.last)
        return;
    const scratch     t = scratch_at(p, memory);
    const simd_fp8    format = simd_fp8_of(p->k.dtype);
    const attend_keys keys = mqa_logits_keys(p);
    pack_rows(p, first, rows, &t);
#ifdef SIMD_AMX
    amx_begin(rows * p->h);
#endif
    for (int64_t n = all.first; n < all.last; n += KEYS) {
        const bool nan = sum_panel(p, &keys, format, see, rows, n, all.last, &t);
        float      scale[KEYS];
        load_scales(&keys, n, all.last, scale);
        for (int64_t m = 0; m < rows; m++)
            store_panel(p, &keys, format, first + m, origin[m], see[m], n, all.last, nan, scale, t.sum + m * KEYS);
    }
#ifdef SIMD_AMX
    amx_end();
#endif
}

#ifdef SIMD_PAGED
typedef mqa_logits_paged_problem whole_problem;

static int64_t part_count(const whole_problem *whole)
{
    return whole->batch;
}

static mqa_logits_problem part_of(const whole_problem *whole, int64_t b)
{
    return mqa_logits_paged_sequence(whole, b);
}
#else
typedef mqa_logits_problem whole_problem;

static int64_t part_count(const whole_problem *whole)
{
    (void)whole;
    return 1;
}

static mqa_logits_problem part_of(const whole_problem *whole, int64_t b)
{
    (void)b;
    return *whole;
}
#endif

size_t SIMD_WORKSPACE(const etalon_context *ctx, const void *problem)
{
    const whole_problem     *whole = problem;
    const mqa_logits_problem like = part_of(whole, 0); /* all parts have one shape */
    const int64_t            tasks = part_count(whole) * task_count(&like);
    return sizeof(float) * (size_t)(context_threads(ctx, tasks) * scratch_floats(&like));
}

etalon_status SIMD_RUN(const etalon_context *ctx, const whole_problem *whole, etalon_workspace work)
{
    const mqa_logits_problem like = part_of(whole, 0);
    const int64_t            each = task_count(&like), tasks = part_count(whole) * each;
    (void)ctx;
#pragma omp parallel num_threads(context_threads(ctx, tasks))
    {
        float *const mine = (float *)work.data + tile_thread() * scratch_floats(&like);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < tasks; i++) {
            const mqa_logits_problem part = part_of(whole, i / each);
            task(&part, i % each, mine);
        }
    }
    return ETALON_OK;
}
