/* logits[m, n] = kv_scale[n] * sum_h weights[m, h] * relu(q[m, h, :] . k[n, :])
 *
 * A tile is 256 keys x some query rows. S = Q K^T comes 16 (row, head) pairs at a time; then each work-item adds up
 * the weighted heads of its key, h ascending. Where a key lies is what PAGES tells: mqa_logits_key_at() and
 * mqa_logits_scale_at() for it.
 */
#ifndef ETALON_MQA_LOGITS_DEVICE_H
#define ETALON_MQA_LOGITS_DEVICE_H

#include "device.h"

#include "mqa_logits_omp.h"

static_assert(MQA_LOGITS_OMP_ROWS == ROWS && MQA_LOGITS_OMP_KEYS == KEYS, "a tile is what is multiplied");

/* Keys and columns are the tile's. */
typedef struct tile_lds {
    float    q[STAGE], s[KEYS * PAD_ROWS];
    float    weight[ROWS];
    uint64_t k_at[KEYS];
    int64_t  origin[ROWS];                    /* key n of row i has column n - origin[i] */
    int32_t  first[ROWS], last[ROWS];         /* keys that row i sees */
    int32_t  col_first[ROWS], col_last[ROWS]; /* columns of row i that keys of any tile have */
} tile_lds;

/* Keys [first, last) are seen by one of the rows, or are between such. */
typedef struct tile {
    int64_t m0, n0;
    int     rows, first, last;
} tile;

/* Keys are the rows of k. */
typedef struct mqa_logits_dense {
} mqa_logits_dense;

DEVICE uint64_t mqa_logits_key_at(const mqa_logits_omp &a, const mqa_logits_dense &, int64_t n)
{
    return a.k + (uint64_t)(n * a.k_stride[0]);
}

DEVICE uint64_t mqa_logits_scale_at(const mqa_logits_omp &a, const mqa_logits_dense &, int64_t n)
{
    return a.kv_scale + (uint64_t)(n * a.kv_scale_stride * 4);
}

DEVICE int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The part of [first, last) that is in the tile. */
DEVICE void tile_clip(int64_t first, int64_t last, int64_t n0, int32_t &from, int32_t &to)
{
    from = (int32_t)clamp(first - n0, 0, KEYS);
    to = (int32_t)clamp(last - n0, 0, KEYS);
}

/* Windows of the tile's rows. */
DEVICE void tile_windows(const mqa_logits_omp &a, tile_lds &t, const tile &at)
{
    const int i = device_item();
    if (i >= at.rows)
        return;
    const int64_t start = a.ks == 0 ? 0 : device_index(a.ks, a.ks_wide, a.ks_stride, at.m0 + i);
    const int64_t first = clamp(start, 0, a.n),
                  most = a.compressed ? device_least(a.columns, a.n - first) + first : a.n;
    const int64_t last = clamp(device_index(a.ke, a.ke_wide, a.ke_stride, at.m0 + i), first, most);
    const int64_t origin = a.compressed ? first : 0;
    t.origin[i] = origin;
    tile_clip(first, last, at.n0, t.first[i], t.last[i]);
    tile_clip(first - origin, last - origin, at.n0, t.col_first[i], t.col_last[i]);
}

/* What is seen of the tile; nothing: last is 0. */
DEVICE void tile_bounds(const tile_lds &t, tile &at)
{
    at.first = KEYS;
    at.last = 0;
    for (int i = 0; i < at.rows; i++)
        if (t.first[i] < t.last[i]) {
            at.first = device_least<int>(at.first, t.first[i]);
            at.last = device_most<int>(at.last, t.last[i]);
        }
}

/* -inf in the columns that no key has. */
DEVICE void tile_clean(const mqa_logits_omp &a, const tile_lds &t, const tile &at)
{
    const int     i = device_item();
    const int64_t column = at.n0 + i;
    for (int row = 0; row < at.rows; row++) {
        const uint64_t to =
            a.logits + (uint64_t)(((at.m0 + row) * a.logits_stride[0] + column * a.logits_stride[1]) * 4);
        if (column < a.columns && (i < t.col_first[row] || t.col_last[row] <= i))
            device_store<float>(to, -__builtin_inff());
    }
}

/* S of pairs [pair, pair + count), for the work-items of each wave in LDS, and their weights. */
template <bool CODES>
DEVICE void tile_products(const mqa_logits_omp &a, tile_lds &t, const tile &at, int64_t pair, int count)
{
    const device_row q = { a.q_dtype, a.q_quads, a.q_stride[2] }, k = { a.k_dtype, a.k_quads, a.k_stride[1] };
    const int        i = device_item() % ROWS;
    const int64_t    row = device_divide(pair + i, a.h), m = at.m0 + row, h = pair + i - row * a.h;
    const uint64_t   q_at = i < count ? a.q + (uint64_t)(m * a.q_stride[0] + h * a.q_stride[1]) : 0;
    float4v          s[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
    if (device_item() < count) {
        const int64_t weight = m * a.weights_stride[0] + h * a.weights_stride[1];
        t.weight[i] = device_load<float>(a.weights + (uint64_t)(weight * 4));
    }
#pragma unroll 1
    for (int64_t d = 0; d < a.d; d += DIMS) {
        if (d > 0)
            device_barrier();
        device_stage<CODES>(t.q, q_at, q, d, a.d);
        device_barrier();
        device_multiply<CODES, false>(t.q, t.k_at, k, false, d, a.d, at.last, t.s, s);
    }
    device_store_products<CODES>(t.s, s);
    device_wave_barrier();
}

DEVICE void tile_store(const mqa_logits_omp &a, const tile_lds &t, const tile &at, int row, float x)
{
    const int      key = device_item();
    const int64_t  column = at.n0 + key - t.origin[row];
    const uint64_t to = a.logits + (uint64_t)(((at.m0 + row) * a.logits_stride[0] + column * a.logits_stride[1]) * 4);
    if (t.first[row] <= key && key < t.last[row])
        device_store<float>(to, x);
}

template <bool CODES, typename PAGES>
DEVICE void tile_run(const mqa_logits_omp &a, const PAGES &pages, tile_lds &t, const tile &at)
{
    const int     key = device_item();
    const int64_t pairs = at.rows * a.h;
    const bool    seen = at.first <= key && key < at.last;
    const float   scale = seen ? device_load<float>(mqa_logits_scale_at(a, pages, at.n0 + key)) : 0.0f;
    float         sum = 0.0f;
    int           row = 0;
    int64_t       row_end = a.h;
#pragma unroll 1
    for (int64_t pair = 0; pair < pairs; pair += ROWS) {
        const int count = (int)device_least<int64_t>(ROWS, pairs - pair);
        tile_products<CODES>(a, t, at, pair, count);
#pragma unroll
        for (int p = 0; p < ROWS; p++) {
            const float s = t.s[key * PAD_ROWS + p];
            if (p >= count)
                continue;
            sum += t.weight[p] * (s < 0.0f ? 0.0f : s); /* NaN stays */
            if (pair + p + 1 != row_end)
                continue;
            tile_store(a, t, at, row, scale * sum);
            sum = 0.0f;
            row++;
            row_end += a.h;
        }
        device_barrier();
    }
}

/* Addresses of the keys: beyond those that are seen, of the nearest one. */
template <typename PAGES>
DEVICE void tile_keys(const mqa_logits_omp &a, const PAGES &pages, tile_lds &t, const tile &at)
{
    const int key = device_least(device_most(device_item(), at.first), at.last - 1);
    t.k_at[device_item()] = mqa_logits_key_at(a, pages, at.n0 + key);
}

/* Tiles of keys, or of columns to clean; and of rows. */
DEVICE int64_t mqa_logits_key_tiles(const mqa_logits_omp &a)
{
    return device_ceil_div(a.clean ? device_most(a.n, a.columns) : a.n, KEYS);
}

DEVICE int64_t mqa_logits_row_tiles(const mqa_logits_omp &a)
{
    return device_ceil_div(a.m, a.rows);
}

/* Tile i of all, keys first. */
template <typename PAGES>
DEVICE void mqa_logits_tile(const mqa_logits_omp &a, const PAGES &pages, tile_lds &t, int64_t i)
{
    const device_row k = { a.k_dtype, a.k_quads, a.k_stride[1] };
    const int64_t    block = device_divide(i, mqa_logits_key_tiles(a)), m0 = block * a.rows;
    const int64_t    n0 = (i - block * mqa_logits_key_tiles(a)) * KEYS;
    tile             at = { m0, n0, (int)device_least(a.rows, a.m - m0), 0, 0 };
    tile_windows(a, t, at);
    device_barrier();
    tile_bounds(t, at);
    if (a.clean)
        tile_clean(a, t, at);
    if (at.last > 0) {
        tile_keys(a, pages, t, at);
        device_barrier();
        if (device_codes(k, a.d))
            tile_run<true>(a, pages, t, at);
        else
            tile_run<false>(a, pages, t, at);
    }
    device_barrier();
}

#endif
