/* Attention of a group of rows over their common keys, tile by tile: what every SIMD row of pa_mtp and fmha_varlen
 * runs.
 *
 * A group is up to GROUP_ROWS query rows of one sequence that share a KV head: a few tokens times the heads of the
 * group (GQA), or many tokens of one head. Keys come in tiles of TILE_KEYS, counted from key 0 of the sequence:
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
#ifdef SIMD_AMX
    GROUP_ROWS = 288, /* decoding weighs more beside faster products */
#else
    GROUP_ROWS = 144,
#endif
    TILE_KEYS = 256,
    SCORE_ROW = TILE_KEYS + 16, /* floats: at a distance of 1 KiB a tile's rows would share few sets of the cache */
    BLOCK_KEYS = 64,            /* keys that a register adds up: the docstrings' bounds count on it */
    FEW_ROWS = 8
};

/* Scratch memory of one thread. */
typedef struct tile_scratch {
    float *q;    /* blocks of rows: [d][rows of the block] */
    float *k;    /* [d][PANEL] */
    float *s;    /* [GROUP_ROWS][SCORE_ROW]: S, then P */
    float *v;    /* [BLOCK_KEYS][PANEL] */
    float *tile; /* [GROUP_ROWS][d_v]: the tile's share of O */
    float *sum;  /* [GROUP_ROWS][d_v]: O, and what rounding took from it */
    float *lost;
#ifdef SIMD_AMX
    float *p; /* P of half a tile for AMX_BLOCK rows; q, k, v and p hold bf16 numbers */
#endif
} tile_scratch;

/* State of the rows of a group. */
typedef struct tile_rows {
    int64_t   count, blocks;                      /* rows, and the register blocks that they are dealt to */
    int64_t   larger;                             /* the first blocks, which have a row more than the others */
    int64_t   block[GROUP_ROWS / BLOCK_ROWS + 2]; /* the first row of each, and the end */
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
    int64_t            end; /* of the keys that tile_attend goes through */
#ifdef SIMD_AMX
    int64_t q_terms; /* bf16 numbers that one of q is the sum of */
#endif
} tile_problem;

static inline int64_t tile_dims_v(const tile_problem *t)
{
    return tile_round_up(t->keys->d_v, PANEL);
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

/* NaN where a row sees a key that holds one. */
static void tile_place_nan_scores(const tile_problem *t, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j++) {
        if (!tile_row_has_nan((const uint8_t *)attend_key_at(t->keys, t->keys->k, t->keys->k_page, t->keys->k_slot, j),
                              t->keys->d_qk, t->format))
            continue;
        for (int64_t r = 0; r < t->rows->count; r++)
            if (tile_meets(t->rows->see[r], j, j + 1))
                t->scratch.s[r * SCORE_ROW + (j - first)] = NAN;
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

/* The largest score of a row; NaN is passed over. Several maxima, as each waits for its last one. */
static float tile_max_score(const float *s, int64_t width)
{
    enum { WAYS = 4 };
    vfloat most[WAYS];
    EACH (i, WAYS)
        most[i] = simd_set(-INFINITY);
    int64_t j = 0;
    for (; j + WAYS * SIMD_LANES <= width; j += WAYS * SIMD_LANES)
        EACH (i, WAYS)
            most[i] = simd_max(simd_load(s + j + i * SIMD_LANES), most[i]);
    for (; j < width; j += SIMD_LANES)
        most[0] = simd_max(simd_load(s + j), most[0]);
    return simd_greatest(simd_max(simd_max(most[0], most[1]), simd_max(most[2], most[3])));
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
    float     *s = t->scratch.s + r * SCORE_ROW;
    const bool masked = see.first > 0 || see.last < width;
    tile_fill(s, see.last, width, 0.0f);
    width = tile_round_up(see.last, SIMD_LANES);
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

/* P of row r for keys [first, last) of a tile. */
static void tile_row_weights(const tile_problem *t, int64_t r, int64_t first, int64_t last)
{
    const int64_t   width = tile_round_up(last - first, PANEL);
    const key_range see = { tile_most(t->rows->see[r].first, first) - first,
                            tile_least(t->rows->see[r].last, last) - first };
    if (see.first < see.last)
        tile_weights(t, r, see, width);
    else
        tile_fill(t->scratch.s + r * SCORE_ROW, 0, width, 0.0f);
}

/* The layout of tile_scratch, tile_deal_rows, tile_all_scores and tile_all_values. */
#ifdef SIMD_AMX
#include "attention_amx.h"
#else
#include "attention_panel.h"
#endif

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
        tile_add(&a, &b, simd_load(tile + d) * TILE_VALUES_UNIT);
        simd_store(sum + d, a);
        simd_store(lost + d, b);
    }
}

/* Keys [first, last) of one tile for all rows of the group. */
static void tile_run(const tile_problem *t, int64_t first, int64_t last)
{
    key_range block[GROUP_ROWS];
    for (int64_t b = 0; b < t->rows->blocks; b++)
        block[b] = tile_union(t->rows, t->rows->block[b], t->rows->block[b + 1] - t->rows->block[b]);
    if (tile_all_scores(t, first, last, block))
        tile_place_nan_scores(t, first, last);
    if (tile_all_values(t, first, last, block))
        tile_place_nan_values(t, first, last);
    for (int64_t r = 0; r < t->rows->count; r++)
        if (tile_meets(t->rows->see[r], first, last))
            tile_add_values(t, r);
}

/* All keys of [from, to) for the group; scratch.q, rows->count and rows->see are set. */
static void tile_attend(tile_problem *t, int64_t from, int64_t to)
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
    to = t->end = tile_least(to, all.last);
    for (int64_t first = from, last; first < to; first = last) {
        last = tile_least(first / TILE_KEYS * TILE_KEYS + TILE_KEYS, to);
        tile_run(t, first, last);
    }
}

#endif
