/* logits[m, n] = kv_scale[n] * sum_h weights[m, h] * relu(q[m, h, :] . k[n, :])
 *
 * A tile is 256 keys x some query rows. S = Q K^T comes 16 (row, head) pairs at a time; then each work-item adds up
 * the weighted heads of its key, h ascending. A workgroup takes tiles at a stride of the grid, so any grid serves any
 * shape.
 */
#include "device.h"

#include "mqa_logits_omp.h"

static_assert(MQA_LOGITS_OMP_ROWS == ROWS && MQA_LOGITS_OMP_KEYS == KEYS, "a tile is what is multiplied");

typedef struct tile_lds {
    float    q[STAGE], s[KEYS * PAD_ROWS];
    float    weight[ROWS];
    uint64_t k_at[KEYS];
    int32_t  first[ROWS], last[ROWS]; /* the tile's keys that row i sees */
} tile_lds;

typedef struct tile {
    int64_t m0, n0;
    int     rows, width;
} tile;

DEVICE int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Addresses of the tile's keys, the last one's beyond it; windows of its rows. */
DEVICE void tile_begin(const mqa_logits_omp &a, tile_lds &t, const tile &at)
{
    const int i = device_item();
    t.k_at[i] = a.k + (uint64_t)((at.n0 + device_least(i, at.width - 1)) * a.k_stride[0]);
    if (i >= at.rows)
        return;
    const int64_t first = clamp(device_index(a.ks, a.ks_wide, a.ks_stride, at.m0 + i), 0, a.n);
    const int64_t last = clamp(device_index(a.ke, a.ke_wide, a.ke_stride, at.m0 + i), first, a.n);
    t.first[i] = (int)clamp(first - at.n0, 0, at.width);
    t.last[i] = (int)clamp(last - at.n0, 0, at.width);
}

DEVICE bool tile_seen(const tile_lds &t, int rows)
{
    bool seen = false;
    for (int i = 0; i < rows; i++)
        seen = seen || t.first[i] < t.last[i];
    return seen;
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
        device_multiply<CODES, false>(t.q, t.k_at, k, false, d, a.d, at.width, t.s, s);
    }
    device_store_products<CODES>(t.s, s);
    device_wave_barrier();
}

DEVICE void tile_store(const mqa_logits_omp &a, const tile_lds &t, const tile &at, int row, float x)
{
    const int      key = device_item();
    const bool     seen = t.first[row] <= key && key < t.last[row];
    const uint64_t to =
        a.logits + (uint64_t)(((at.m0 + row) * a.logits_stride[0] + (at.n0 + key) * a.logits_stride[1]) * 4);
    if (key < at.width && (seen || a.clean))
        device_store<float>(to, seen ? x : -__builtin_inff());
}

template <bool CODES> DEVICE void tile_run(const mqa_logits_omp &a, tile_lds &t, const tile &at)
{
    const int     key = device_item();
    const int64_t pairs = at.rows * a.h;
    const float   scale =
        key < at.width ? device_load<float>(a.kv_scale + (uint64_t)((at.n0 + key) * a.kv_scale_stride * 4)) : 0.0f;
    float   sum = 0.0f;
    int     row = 0;
    int64_t row_end = a.h;
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

KERNEL void etalon_mqa_logits_omp(const mqa_logits_omp a)
{
    SHARED tile_lds  t;
    const device_row k = { a.k_dtype, a.k_quads, a.k_stride[1] };
    const bool       codes = device_codes(k, a.d);
    const int64_t    key_tiles = device_ceil_div(a.n, KEYS), tiles = key_tiles * device_ceil_div(a.m, a.rows);
    for (int64_t i = device_group(); i < tiles; i += a.groups) {
        const int64_t block = device_divide(i, key_tiles), m0 = block * a.rows, n0 = (i - block * key_tiles) * KEYS;
        const tile    at = { m0, n0, (int)device_least(a.rows, a.m - m0), (int)device_least<int64_t>(KEYS, a.n - n0) };
        tile_begin(a, t, at);
        device_barrier();
        if (!tile_seen(t, at.rows))
            for (int row = 0; row < at.rows; row++)
                tile_store(a, t, at, row, 0.0f);
        else if (codes)
            tile_run<true>(a, t, at);
        else
            tile_run<false>(a, t, at);
        device_barrier();
    }
}
