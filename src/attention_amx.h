/* Scores and values of attention_tile.h in tiles of AMX-BF16.
 *
 * S = Q K^T: an instruction adds 32 products, which is the docstrings' chunk: a sum takes sixteen roundings in each
 * and one more to be added, for each of q's terms: 16 + ceil(Dqk / 32) in all, or 16 + 3 ceil(Dqk / 32) for q in fp32.
 * With Dqk up to ETALON_MAX_HEAD_DIM that is at most max(32, ceil(Dqk / 8)) + 16. Head dims are filled up to a
 * multiple of 64 by zeros, which round nothing.
 *
 * O = P V: a weight is the sum of three bf16 terms, all exact, in units of 2^-40: the last term of the smallest weight,
 * 2^-126 * 2^-23, times the smallest value, 2^-17 in units of the format, is 2^-126 then, and nothing that is a sum of
 * such products falls below that and becomes 0. A sum over a tile's 256 keys is 16 + 3 * 256 / 32 = 40 roundings deep:
 * fewer than the 64 and more of the docstrings' blocks of 64 keys. It stays below 2^40 * 2 * 256 = 2^49.
 */
#ifndef ETALON_ATTENTION_AMX_H
#define ETALON_ATTENTION_AMX_H

#include "simd_amx.h"

#define TILE_VALUES_UNIT 0x1p-40f /* of tile_all_values */

enum {
    TILE_STEPS = TILE_KEYS / AMX_STEP,
    HALF_STEPS = TILE_STEPS / 2 /* P of as many for AMX_BLOCK rows stays in the first-level cache: 24 KiB */
};

static inline int64_t tile_scratch_floats(int64_t d_qk, int64_t d_v)
{
    const int64_t k = AMX_PANEL / AMX_ROWS * amx_steps(d_qk), v = tile_round_up(d_v, AMX_CODES) / AMX_ROWS * TILE_STEPS;
    const int64_t p = AMX_BLOCK / AMX_ROWS * HALF_STEPS * AMX_TERMS;
    const int64_t q = GROUP_ROWS / AMX_ROWS * amx_steps(d_qk) * AMX_TERMS;
    return GROUP_ROWS * (SCORE_ROW + 3 * tile_round_up(d_v, PANEL)) + amx_floats(AMX_TILE) * (k + v + p + q);
}

static inline tile_scratch tile_scratch_at(float *at, int64_t d_qk, int64_t d_v)
{
    const int64_t sums = GROUP_ROWS * tile_round_up(d_v, PANEL), tile = amx_floats(AMX_TILE);
    tile_scratch  t;
    t.s = at;
    t.tile = t.s + GROUP_ROWS * SCORE_ROW;
    t.sum = t.tile + sums;
    t.lost = t.sum + sums;
    t.k = t.lost + sums;
    t.v = t.k + AMX_PANEL / AMX_ROWS * amx_steps(d_qk) * tile;
    t.p = t.v + tile_round_up(d_v, AMX_CODES) / AMX_ROWS * TILE_STEPS * tile;
    t.q = t.p + AMX_BLOCK / AMX_ROWS * HALF_STEPS * AMX_TERMS * tile;
    return t;
}

static void tile_deal_rows(tile_rows *rows)
{
    rows->blocks = (rows->count + AMX_BLOCK - 1) / AMX_BLOCK;
    for (int64_t b = 0; b <= rows->blocks; b++)
        rows->block[b] = tile_least(b * AMX_BLOCK, rows->count);
}

/* S of the tile; returns true if a key holds NaN. */
static bool tile_all_scores(const tile_problem *t, int64_t first, int64_t last, const key_range *block)
{
    const attend_keys *keys = t->keys;
    const int64_t      steps = amx_steps(keys->d_qk), a_row = steps * t->q_terms * AMX_TILE;
    const int64_t      share = AMX_PANEL * AMX_BLOCK / tile_round_up(t->rows->count, AMX_BLOCK); /* keys to ask for */
    uint16_t          *k = (uint16_t *)t->scratch.k;
    bool               nan = false;
    for (int64_t j = first; j < last; j += AMX_PANEL) {
        const uint8_t *row[AMX_PANEL];
        amx_key_rows(keys, keys->k, keys->k_page, keys->k_slot, j, last - j, AMX_PANEL, row);
        nan |= amx_pack_k(t->format, row, keys->d_qk, k);
        for (int64_t r = 0, ask = j; r < t->rows->count; r += AMX_BLOCK, ask += share) {
            const amx_product p = { .a = (const uint16_t *)t->scratch.q + r / AMX_ROWS * a_row,
                                    .a_row = a_row,
                                    .b = k,
                                    .b_column = steps * AMX_TILE,
                                    .steps = steps,
                                    .terms = t->q_terms };
            amx_prefetch(keys, keys->v, keys->v_page, keys->v_slot, keys->d_v, ask, share, last);
            if (tile_meets(block[r / AMX_BLOCK], j, j + AMX_PANEL))
                amx_multiply(&p, t->rows->count - r, AMX_PANEL / AMX_ROWS, false,
                             t->scratch.s + r * SCORE_ROW + (j - first), SCORE_ROW);
        }
    }
    return nan;
}

/* P of rows r to r + n, n <= AMX_BLOCK, and steps [from, to) of the tile: A tiles [row tile][step][term]. */
static void tile_split_weights(const tile_problem *t, int64_t r, int64_t n, int64_t from, int64_t to)
{
    for (int64_t i = 0; i < n; i++) {
        const float *row = t->scratch.s + (r + i) * SCORE_ROW;
        uint16_t    *a = amx_row((uint16_t *)t->scratch.p, i, HALF_STEPS * AMX_TERMS);
        for (int64_t s = from; s < to; s++, a += AMX_TERMS * AMX_TILE)
            amx_split(simd_load(row + s * AMX_STEP) * (1.0f / TILE_VALUES_UNIT),
                      simd_load(row + s * AMX_STEP + SIMD_LANES) * (1.0f / TILE_VALUES_UNIT), AMX_TERMS, a);
    }
}

/* What is done between products: P of the rows that come next, and K of the next tile on its way into the cache. */
typedef struct tile_queue {
    const tile_problem *t;
    int64_t             first, last, row, end, ask, share;
} tile_queue;

static void tile_meanwhile(void *queue)
{
    tile_queue        *q = queue;
    const attend_keys *keys = q->t->keys;
    amx_prefetch(keys, keys->k, keys->k_page, keys->k_slot, keys->d_qk, q->ask, q->share,
                 tile_least(q->last + TILE_KEYS, q->t->end));
    q->ask += q->share;
    if (q->row < q->end)
        tile_row_weights(q->t, q->row++, q->first, q->last);
}

/* The tile's share of O, in units of TILE_VALUES_UNIT; returns true if a value is NaN. */
static bool tile_all_values(const tile_problem *t, int64_t first, int64_t last, const key_range *block)
{
    const attend_keys *keys = t->keys;
    const int64_t      dims = tile_dims_v(t), column = TILE_STEPS * AMX_TILE;
    uint16_t          *v = (uint16_t *)t->scratch.v;
    bool               nan = false;
    for (int64_t j = first; j < last; j += AMX_STEP) {
        const uint8_t *row[AMX_STEP];
        amx_key_rows(keys, keys->v, keys->v_page, keys->v_slot, j, last - j, AMX_STEP, row);
        nan |= amx_pack_v(t->format, row, keys->d_v, v + (j - first) / AMX_STEP * AMX_TILE, column);
    }
    const int64_t moments = (t->rows->count + AMX_BLOCK - 1) / AMX_BLOCK * tile_most(1, dims / AMX_CODES) * TILE_STEPS;
    tile_queue    queue = { t, first, last, 0, 0, last, (TILE_KEYS + moments - 1) / moments };
    for (int64_t r = 0; r < t->rows->count; r += AMX_BLOCK) {
        const int64_t n = tile_least(AMX_BLOCK, t->rows->count - r);
        for (; queue.row < r + n; queue.row++)
            tile_row_weights(t, queue.row, first, last);
        queue.end = tile_least(r + 2 * AMX_BLOCK, t->rows->count);
        const int64_t from = (tile_most(block[r / AMX_BLOCK].first, first) - first) / AMX_STEP;
        const int64_t to = (tile_least(block[r / AMX_BLOCK].last, last) - first + AMX_STEP - 1) / AMX_STEP;
        for (int64_t s = from; s < to; s += HALF_STEPS) {
            const amx_product p = { .a = (const uint16_t *)t->scratch.p,
                                    .a_row = AMX_TERMS * HALF_STEPS * AMX_TILE,
                                    .b = v + s * AMX_TILE,
                                    .b_column = column,
                                    .steps = tile_least(HALF_STEPS, to - s),
                                    .terms = AMX_TERMS,
                                    .meanwhile = tile_meanwhile,
                                    .state = &queue };
            tile_split_weights(t, r, n, s, s + p.steps);
            amx_multiply(&p, n, dims / AMX_ROWS, s > from, t->scratch.tile + r * dims, dims);
        }
    }
    return nan;
}

#endif
