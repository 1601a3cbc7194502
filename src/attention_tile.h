/* Attention of a group of rows over their common keys, tile by tile: what every SIMD row of pa_mtp and fmha_varlen runs.
 *
 * A group is up to GROUP_ROWS query rows of one sequence that share a KV head: a few tokens times the heads of the group
 * (GQA), or many tokens of one head. Keys come in tiles of TILE_KEYS, counted from key 0 of the sequence:
 *
 *   S = Q K^T            K decoded and transposed 16 keys at a time, dot products in chunks of 32 head dims
 *   P = 2^(c S - M)      c = scale log2(e); M the running maximum, rounded up to a whole number
 *   l, O += sums over P  O in blocks of 64 keys, and tiles added with compensation [NEUMAIER]
 *
 * With a whole M every rescaling is by a power of two and exact, so the error does not grow with the number of keys.
 * NaN codes are found while decoding and put in their place afterwards: 0 * NaN of a masked key reaches nothing.
 */
#ifndef ETALON_ATTENTION_TILE_H
#define ETALON_ATTENTION_TILE_H

#include "element.h"
#include "simd_panel.h"

enum {
    GROUP_ROWS = 144,
    TILE_KEYS = 256,
    BLOCK_KEYS = 64, /* keys that a register adds up: the docstrings' bounds count on it */
    FEW_ROWS = 8
};

/* Scratch memory of one thread. */
typedef struct tile_scratch {
    float *q;    /* blocks of rows: [d][rows of the block] */
    float *k;    /* [d][PANEL] */
    float *s;    /* [GROUP_ROWS][TILE_KEYS]: S, then P */
    float *v;    /* [BLOCK_KEYS][PANEL] */
    float *tile; /* [GROUP_ROWS][d_v]: the tile's share of O */
    float *sum;  /* [GROUP_ROWS][d_v]: O, and what rounding took from it */
    float *lost;
} tile_scratch;

/* State of the rows of a group. */
typedef struct tile_rows {
    int64_t   count, block; /* rows, and of those the ones that a register block takes */
    key_range see[GROUP_ROWS];
    float     m[GROUP_ROWS]; /* whole, or -inf before the first key */
    float     l[GROUP_ROWS], l_lost[GROUP_ROWS];
} tile_rows;

typedef struct tile_problem {
    const attend_keys *keys;
    simd_fp8           format;
    float              c, c_low; /* scale * log2(e) * unit of K, in two parts */
    tile_scratch       scratch;
    tile_rows         *rows;
} tile_problem;

/* Floats that tile_scratch_at lays out. */
static inline int64_t tile_scratch_floats(int64_t d_qk, int64_t d_v)
{
    const int64_t dims_v = tile_round_up(d_v, PANEL);
    return tile_most(GROUP_ROWS * d_qk, FEW_ROWS * ETALON_MAX_HEAD_DIM) + PANEL * d_qk + GROUP_ROWS * TILE_KEYS +
           BLOCK_KEYS * PANEL + 3 * GROUP_ROWS * dims_v;
}

static inline tile_scratch tile_scratch_at(float *at, int64_t d_qk, int64_t d_v)
{
    const int64_t dims_v = tile_round_up(d_v, PANEL);
    tile_scratch  t;
    t.s = at;
    t.v = t.s + GROUP_ROWS * TILE_KEYS;
    t.tile = t.v + BLOCK_KEYS * PANEL;
    t.sum = t.tile + GROUP_ROWS * dims_v;
    t.lost = t.sum + GROUP_ROWS * dims_v;
    t.k = t.lost + GROUP_ROWS * dims_v;
    t.q = t.k + PANEL * d_qk;
    return t;
}

/* Register blocks of equal size: a last one of a row or two would leave most of the machine idle. */
static inline int64_t tile_block_rows(int64_t count)
{
    const int64_t blocks = (count + BLOCK_ROWS - 1) / BLOCK_ROWS;
    return (count + blocks - 1) / blocks;
}

static inline int64_t tile_dims_v(const tile_problem *t)
{
    return tile_round_up(t->keys->d_v, PANEL);
}

/* o[r][i] (+)= sum_j p[r][j] v[j][i] over a block of keys. */
static void tile_values(int64_t rows, const float *p, const float *v, int64_t keys, bool add, float *o, int64_t o_row)
{
#define CALL(n) tile_multiply(n, WAYS(n), p, 1, TILE_KEYS, v, keys, add, o, o_row)
    EACH_ROW_COUNT(CALL)
#undef CALL
}

/* A tile
 * ------
 * Keys that some row of [r, r + n) sees.
 */
static key_range tile_union(const tile_rows *rows, int64_t r, int64_t n)
{
    key_range all = { INT64_MAX, 0 };
    for (int64_t i = r; i < r + n; i++)
        if (rows->see[i].first < rows->see[i].last) {
            all.first = tile_least(all.first, rows->see[i].first);
            all.last = tile_most(all.last, rows->see[i].last);
        }
    return all;
}

/* Few rows
 * --------
 * Where a panel would be read a few times only, K is decoded in registers, one key at a time, and never stored: s[r][j]
 * for as many rows as there are registers, q in rows of its own.
 */
INLINE bool tile_dots(const int rows, const tile_problem *t, int64_t first, int64_t last)
{
    const attend_keys *keys = t->keys;
    const int64_t      whole = keys->d_qk / 16 * 16, rest = keys->d_qk - whole;
    const uint8_t     *row[TILE_KEYS];
    byte16             marks = { 0 };
    tile_key_rows(keys, keys->k, keys->k_page, keys->k_slot, first, last - first, row);
    for (int64_t j = 0; j < last - first; j++) {
        vfloat sum[FEW_ROWS];
        for (int64_t d = 0; d < keys->d_qk && j + 8 < last - first; d += 64) /* eight keys ahead, line by line */
            __builtin_prefetch(row[j + 8] + d);
        for (int r = 0; r < rows; r++)
            sum[r] = (vfloat){ 0 };
        for (int64_t d = 0; d < keys->d_qk; d += 16) {
            byte16 x = { 0 };
            vfloat k[SIMD_SIXTEEN];
            if (d < whole)
                memcpy(&x, row[j] + d, 16);
            else
                memcpy(&x, row[j] + d, (size_t)rest);
            marks = tile_byte_max(marks, tile_nan_mark(x, t->format));
            simd_decode16(x, k);
            for (int v = 0; v < SIMD_SIXTEEN; v++)
                for (int r = 0; r < rows; r++)
                    sum[r] += k[v] * simd_load(t->scratch.q + r * ETALON_MAX_HEAD_DIM + d + v * SIMD_LANES);
        }
        for (int r = 0; r < rows; r++)
            t->scratch.s[r * TILE_KEYS + j] = simd_sum(sum[r]);
    }
    return tile_nan_seen(marks, t->format);
}

static bool tile_few_scores(const tile_problem *t, int64_t first, int64_t last)
{
    switch (t->rows->count) {
    case 1:
        return tile_dots(1, t, first, last);
    case 2:
        return tile_dots(2, t, first, last);
    case 3:
        return tile_dots(3, t, first, last);
    case 4:
        return tile_dots(4, t, first, last);
    case 5:
        return tile_dots(5, t, first, last);
    case 6:
        return tile_dots(6, t, first, last);
    case 7:
        return tile_dots(7, t, first, last);
    default:
        return tile_dots(8, t, first, last);
    }
}

/* S of the tile; returns true if a key holds NaN. */
static bool tile_all_scores(const tile_problem *t, int64_t first, int64_t last, const key_range *block)
{
    const attend_keys *keys = t->keys;
    bool               nan = false;
    if (t->rows->count <= FEW_ROWS)
        return tile_few_scores(t, first, last);
    for (int64_t j = first; j < last; j += PANEL) {
        const uint8_t *row[PANEL];
        tile_panel_rows(keys, j, last - j, row);
        nan |= tile_pack_keys(keys, t->format, row, t->scratch.k);
        for (int64_t d = 0; d < keys->d_qk; d += CHUNK_DIMS)
            for (int64_t r = 0; r < t->rows->count; r += t->rows->block) {
                const int64_t n = tile_least(t->rows->block, t->rows->count - r);
                if (tile_meets(block[r / t->rows->block], j, j + PANEL))
                    tile_scores(n, t->scratch.q + r * keys->d_qk + d * n, t->scratch.k + d * PANEL,
                                tile_least(CHUNK_DIMS, keys->d_qk - d), d > 0,
                                t->scratch.s + r * TILE_KEYS + (j - first), TILE_KEYS);
            }
    }
    return nan;
}

/* NaN where a row sees a key that holds one. */
static void tile_place_nan_scores(const tile_problem *t, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j++) {
        if (!tile_row_has_nan((const uint8_t *)attend_key_at(t->keys, t->keys->k, t->keys->k_page, t->keys->k_slot, j),
                              t->keys->d_qk, t->format))
            continue;
        for (int64_t r = 0; r < t->rows->count; r++)
            if (tile_meets(t->rows->see[r], j, j + 1))
                t->scratch.s[r * TILE_KEYS + (j - first)] = NAN;
    }
}

static void tile_fill(float *s, int64_t from, int64_t to, float x)
{
    for (int64_t j = from; j < to; j++)
        s[j] = x;
}

/* 2^n for whole n <= 0; 0 where fp32 has none. */
static float tile_power_of_two(float n)
{
    return n < -126.0f ? 0.0f : f32_of_bits((uint32_t)((int32_t)n + 127) << 23);
}

/* Multiplies a row's sums by a power of two. */
static void tile_rescale(const tile_problem *t, int64_t r, float factor)
{
    const int64_t dims = tile_dims_v(t);
    t->rows->l[r] *= factor;
    t->rows->l_lost[r] *= factor;
    for (int64_t d = 0; d < dims; d++) {
        t->scratch.sum[r * dims + d] *= factor;
        t->scratch.lost[r * dims + d] *= factor;
    }
}

/* *sum + *lost += x, whichever is larger; exact but for the last bit of lost. */
INLINE void tile_add(vfloat *sum, vfloat *lost, vfloat x)
{
    const vfloat total = *sum + x, part = total - *sum;
    *lost += (*sum - (total - part)) + (x - part);
    *sum = total;
}

INLINE void tile_add_one(float *sum, float *lost, float x)
{
    const float total = *sum + x, part = total - *sum;
    *lost += (*sum - (total - part)) + (x - part);
    *sum = total;
}

/* The largest score of a row; NaN is passed over. */
static float tile_max_score(const float *s, int64_t width)
{
    vfloat most = simd_set(-INFINITY);
    for (int64_t j = 0; j < width; j += SIMD_LANES)
        most = simd_max(simd_load(s + j), most);
    float m = -INFINITY;
    for (int i = 0; i < SIMD_LANES; i++)
        m = most[i] > m ? most[i] : m;
    return m;
}

/* s = 2^(c s - base), and returns the sum. */
static float tile_exp(const tile_problem *t, float *s, int64_t width, float base)
{
    vfloat sum = { 0 };
    for (int64_t j = 0; j < width; j += SIMD_LANES) {
        const vfloat x = simd_load(s + j), p = simd_exp2(x * t->c - base + x * t->c_low);
        simd_store(s + j, p);
        sum += p;
    }
    return simd_sum(sum);
}

static float tile_total(const float *p, int64_t width)
{
    vfloat sum = { 0 };
    for (int64_t j = 0; j < width; j += SIMD_LANES)
        sum += simd_load(p + j);
    return simd_sum(sum);
}

/* P of one row in place of S; keys are counted from the tile's first one, `width` is a multiple of a panel. */
static void tile_weights(const tile_problem *t, int64_t r, key_range see, int64_t width)
{
    float     *s = t->scratch.s + r * TILE_KEYS;
    const bool masked = see.first > 0 || see.last < width;
    tile_fill(s, 0, see.first, -INFINITY);
    tile_fill(s, see.last, width, -INFINITY);
    const float m = tile_max_score(s, width), whole = ceilf(m * t->c), before = t->rows->m[r];
    if (whole > before) {
        t->rows->m[r] = whole;
        if (before != -INFINITY)
            tile_rescale(t, r, tile_power_of_two(before - whole));
    }
    const float base = t->rows->m[r] == -INFINITY ? 0.0f : t->rows->m[r]; /* -inf: every score so far is NaN */
    float       l = tile_exp(t, s, width, base);
    if (masked) {
        tile_fill(s, 0, see.first, 0.0f);
        tile_fill(s, see.last, width, 0.0f);
        l = tile_total(s, width);
    }
    tile_add_one(&t->rows->l[r], &t->rows->l_lost[r], l);
}

/* v[j][i] = V[first + j, d + i]; true if one of the codes is NaN. */
static bool tile_load_values(const attend_keys *keys, simd_fp8 format, const uint8_t *const *row, int64_t n, int64_t d,
                             float *v)
{
    byte16 marks = { 0 };
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < PANEL; i += 16) {
            const int64_t dims = tile_least(16, keys->d_v - d - i);
            byte16        x = { 0 };
            if (dims == 16)
                memcpy(&x, row[j] + d + i, 16);
            else if (dims > 0)
                memcpy(&x, row[j] + d + i, (size_t)dims);
            marks = tile_byte_max(marks, tile_nan_mark(x, format));
            simd_decode16_to(x, v + j * PANEL + i);
        }
    return tile_nan_seen(marks, format);
}

/* The tile's share of O; returns true if a value is NaN. */
static bool tile_all_values(const tile_problem *t, int64_t first, int64_t last, const key_range *block)
{
    const attend_keys *keys = t->keys;
    const int64_t      dims = tile_dims_v(t);
    bool               nan = false, begun[GROUP_ROWS] = { false };
    for (int64_t j = first; j < last; j += BLOCK_KEYS) {
        const int64_t  n = tile_least(BLOCK_KEYS, last - j);
        const uint8_t *row[BLOCK_KEYS];
        tile_key_rows(keys, keys->v, keys->v_page, keys->v_slot, j, n, row);
        for (int64_t d = 0; d < dims; d += PANEL) {
            nan |= tile_load_values(keys, t->format, row, n, d, t->scratch.v);
            for (int64_t r = 0; r < t->rows->count; r += t->rows->block)
                if (tile_meets(block[r / t->rows->block], j, j + n))
                    tile_values(tile_least(t->rows->block, t->rows->count - r),
                                t->scratch.s + r * TILE_KEYS + (j - first), t->scratch.v, n, begun[r / t->rows->block],
                                t->scratch.tile + r * dims + d, dims);
        }
        for (int64_t r = 0; r < t->rows->count; r += t->rows->block)
            begun[r / t->rows->block] |= tile_meets(block[r / t->rows->block], j, j + n);
    }
    return nan;
}

static void tile_place_nan_values(const tile_problem *t, int64_t first, int64_t last)
{
    const int64_t dims = tile_dims_v(t);
    for (int64_t j = first; j < last; j++) {
        const uint8_t *v = (const uint8_t *)attend_key_at(t->keys, t->keys->v, t->keys->v_page, t->keys->v_slot, j);
        for (int64_t d = 0; d < t->keys->d_v; d++)
            for (int64_t r = 0; tile_is_nan(v[d], t->format) && r < t->rows->count; r++)
                if (tile_meets(t->rows->see[r], j, j + 1))
                    t->scratch.tile[r * dims + d] = NAN;
    }
}

/* Adds the tile's share to a row of O. */
static void tile_add_values(const tile_problem *t, int64_t r)
{
    const int64_t dims = tile_dims_v(t);
    const float  *tile = t->scratch.tile + r * dims;
    float        *sum = t->scratch.sum + r * dims, *lost = t->scratch.lost + r * dims;
    for (int64_t d = 0; d < dims; d += SIMD_LANES) {
        vfloat a = simd_load(sum + d), b = simd_load(lost + d);
        tile_add(&a, &b, simd_load(tile + d));
        simd_store(sum + d, a);
        simd_store(lost + d, b);
    }
}

/* Keys [first, last) of one tile for all rows of the group. */
static void tile_run(const tile_problem *t, int64_t first, int64_t last)
{
    const int64_t width = tile_round_up(last - first, PANEL);
    key_range     block[GROUP_ROWS];
    for (int64_t r = 0; r < t->rows->count; r += t->rows->block)
        block[r / t->rows->block] = tile_union(t->rows, r, tile_least(t->rows->block, t->rows->count - r));
    if (tile_all_scores(t, first, last, block))
        tile_place_nan_scores(t, first, last);
    for (int64_t r = 0; r < t->rows->count; r++) {
        const key_range see = { tile_most(t->rows->see[r].first, first) - first,
                                tile_least(t->rows->see[r].last, last) - first };
        if (see.first < see.last)
            tile_weights(t, r, see, width);
        else
            tile_fill(t->scratch.s + r * TILE_KEYS, 0, width, 0.0f);
    }
    if (tile_all_values(t, first, last, block))
        tile_place_nan_values(t, first, last);
    for (int64_t r = 0; r < t->rows->count; r++)
        if (tile_meets(t->rows->see[r], first, last))
            tile_add_values(t, r);
}

/* All keys of [from, to) for the group; scratch.q, rows->count and rows->see are set. */
static void tile_attend(const tile_problem *t, int64_t from, int64_t to)
{
    const int64_t dims = tile_dims_v(t);
    for (int64_t r = 0; r < t->rows->count; r++) {
        t->rows->m[r] = -INFINITY;
        t->rows->l[r] = t->rows->l_lost[r] = 0.0f;
    }
    memset(t->scratch.sum, 0, (size_t)(t->rows->count * dims) * sizeof(float));
    memset(t->scratch.lost, 0, (size_t)(t->rows->count * dims) * sizeof(float));
    const key_range all = tile_union(t->rows, 0, t->rows->count);
    from = tile_most(from, all.first);
    to = tile_least(to, all.last);
    for (int64_t first = from, last; first < to; first = last) {
        last = tile_least(first / TILE_KEYS * TILE_KEYS + TILE_KEYS, to);
        tile_run(t, first, last);
    }
}

#endif
