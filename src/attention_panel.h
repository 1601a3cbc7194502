/* Scores and values of attention_tile.h in panels of fp32. */
#ifndef ETALON_ATTENTION_PANEL_H
#define ETALON_ATTENTION_PANEL_H

#define TILE_VALUES_UNIT 1.0f /* of tile_all_values */

#if SIMD_BYTES >= 32 && defined(__clang__)
#define TILE_STREAM 1
#endif

enum {
#ifdef TILE_STREAM
    VALUE_PANELS = 6 /* of scratch.v */
#else
    VALUE_PANELS = 1
#endif
};

/* Floats that tile_scratch_at lays out. */
static inline int64_t tile_scratch_floats(int64_t d_qk, int64_t d_v)
{
    const int64_t dims_v = tile_round_up(d_v, PANEL);
    return tile_most(GROUP_ROWS * d_qk, FEW_ROWS * ETALON_MAX_HEAD_DIM) + PANEL * d_qk + GROUP_ROWS * SCORE_ROW +
           VALUE_PANELS * BLOCK_KEYS * PANEL + 3 * GROUP_ROWS * dims_v;
}

static inline tile_scratch tile_scratch_at(float *at, int64_t d_qk, int64_t d_v)
{
    const int64_t dims_v = tile_round_up(d_v, PANEL);
    tile_scratch  t;
    t.s = at;
    t.v = t.s + GROUP_ROWS * SCORE_ROW;
    t.tile = t.v + VALUE_PANELS * BLOCK_KEYS * PANEL;
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

/* o[r][i] (+)= sum_j p[r][j] v[j][i] over a block of keys. */
static void tile_values(int64_t rows, const float *p, const float *v, int64_t keys, bool add, float *o, int64_t o_row)
{
#define CALL(n) tile_multiply(n, WAYS(n), p, 1, SCORE_ROW, v, keys, add, o, o_row)
    EACH_ROW_COUNT(CALL)
#undef CALL
}

/* Rows of K or V that are read next: their cache lines are fetched a few at a time, spread over the work before, so
 * that they neither wait for each other nor make it wait.
 */
typedef struct tile_ahead {
    const uint8_t *row[BLOCK_KEYS];
    int64_t        rows, bytes, at_row, at_byte, step; /* lines fetched at a time */
} tile_ahead;

static void tile_ahead_begin(tile_ahead *a, int64_t bytes, int64_t steps)
{
    const int64_t lines = a->rows * ((bytes + 63) / 64);
    a->bytes = bytes;
    a->at_row = a->at_byte = 0;
    a->step = (lines + steps - 1) / steps;
}

static void tile_ahead_keys(const attend_keys *keys, int64_t j, int64_t last, int64_t steps, tile_ahead *a)
{
    a->rows = tile_most(0, tile_least(PANEL, last - j));
    tile_key_rows(keys, keys->k, keys->k_page, keys->k_slot, j, a->rows, a->row);
    tile_ahead_begin(a, keys->d_qk, steps);
}

static void tile_ahead_values(const attend_keys *keys, int64_t j, int64_t last, int64_t steps, tile_ahead *a)
{
    a->rows = tile_most(0, tile_least(BLOCK_KEYS, last - j));
    tile_key_rows(keys, keys->v, keys->v_page, keys->v_slot, j, a->rows, a->row);
    tile_ahead_begin(a, keys->d_v, steps);
}

INLINE void tile_ahead_step(tile_ahead *a)
{
    for (int64_t i = 0; i < a->step && a->at_row < a->rows; i++) {
        __builtin_prefetch(a->row[a->at_row] + a->at_byte);
        a->at_byte += 64;
        if (a->at_byte >= a->bytes) {
            a->at_byte = 0;
            a->at_row++;
        }
    }
}

/* Few rows
 * --------
 * Where a panel would be read a few times only, K and V are decoded in registers and never stored: s[r][j] one key at a
 * time, o[r][d] a vector of head dims at a time, for as many rows as there are registers; q in rows of its own.
 *
 * sum[r] += q[r][d..d + 15] . k for sixteen codes of a key.
 */
INLINE void tile_dots_add(const int rows, const float *q, byte16 codes, vfloat *sum)
{
    vfloat k[SIMD_SIXTEEN];
    simd_decode16(codes, k);
    for (int v = 0; v < SIMD_SIXTEEN; v++)
        for (int r = 0; r < rows; r++)
            sum[r] += k[v] * simd_load(q + r * ETALON_MAX_HEAD_DIM + v * SIMD_LANES);
}

INLINE void tile_store_sums(const int rows, const vfloat *sum, float *s)
{
#if SIMD_BYTES >= 32
    if (rows == FEW_ROWS) {
        const float8 all = simd_sum8(sum);
        for (int r = 0; r < rows; r++)
            s[r * SCORE_ROW] = all[r];
        return;
    }
#endif
    for (int r = 0; r < rows; r++)
        s[r * SCORE_ROW] = simd_sum(sum[r]);
}

INLINE bool tile_dots(const int rows, const tile_problem *t, int64_t first, int64_t last)
{
    const attend_keys *keys = t->keys;
    const int64_t      whole = keys->d_qk / 16 * 16, rest = keys->d_qk - whole;
    const uint8_t     *row[TILE_KEYS];
    byte16             marks = { 0 }, x;
    tile_ahead         values;
    tile_key_rows(keys, keys->k, keys->k_page, keys->k_slot, first, last - first, row);
    tile_ahead_values(keys, first, last, last - first, &values);
    for (int64_t j = 0; j < last - first; j++) {
        vfloat sum[FEW_ROWS] = { { 0 } };
        tile_ahead_step(&values);
        for (int64_t d = 0; d < keys->d_qk && j + 8 < last - first; d += 64) /* eight keys ahead, line by line */
            __builtin_prefetch(row[j + 8] + d);
        for (int64_t d = 0; d < whole; d += 16) {
            memcpy(&x, row[j] + d, sizeof x);
            marks = tile_byte_max(marks, TILE_NAN_MARK(x, t->format));
            tile_dots_add(rows, t->scratch.q + d, x, sum);
        }
        if (rest > 0) {
            x = (byte16){ 0 };
            memcpy(&x, row[j] + whole, (size_t)rest);
            marks = tile_byte_max(marks, TILE_NAN_MARK(x, t->format));
            tile_dots_add(rows, t->scratch.q + whole, x, sum);
        }
        tile_store_sums(rows, sum, t->scratch.s + j);
    }
    return tile_nan_seen(marks, t->format);
}

/* Codes of as many head dims as a vector holds, of SIMD_SIXTEEN keys; never by memory, which would have to wait for its
 * parts to be stored.
 */
INLINE byte16 tile_gather_codes(const uint8_t *const *row, int64_t d)
{
#if SIMD_BYTES == 64
    byte16 x;
    memcpy(&x, row[0] + d, sizeof x);
    return x;
#elif SIMD_BYTES == 32
    typedef uint64_t two __attribute__((vector_size(16)));
    uint64_t         x[2];
    for (int i = 0; i < 2; i++)
        memcpy(&x[i], row[i] + d, sizeof x[i]);
    return (byte16)(two){ x[0], x[1] };
#else
    typedef uint32_t four __attribute__((vector_size(16)));
    uint32_t         x[4];
    for (int i = 0; i < 4; i++)
        memcpy(&x[i], row[i] + d, sizeof x[i]);
    return (byte16)(four){ x[0], x[1], x[2], x[3] };
#endif
}

/* sum[r] += p[r] . codes of SIMD_SIXTEEN keys. */
INLINE void tile_sums_add(const int rows, const int ways, const float *p, byte16 codes, vfloat *sum)
{
    vfloat v[SIMD_SIXTEEN];
    simd_decode16(codes, v);
    for (int i = 0; i < SIMD_SIXTEEN; i++)
        for (int r = 0; r < rows; r++) {
            sum[i % ways * rows + r] += v[i] * p[r * SCORE_ROW + i];
            simd_settle(&sum[i % ways * rows + r]);
        }
}

/* o[r][d + i] (+)= sum_j p[r][j] V[j, d + i] for as many head dims as a vector holds, n keys. Sixteen codes are those of
 * SIMD_SIXTEEN keys. Returns their marks.
 */
INLINE byte16 tile_sums_at(const int rows, const tile_problem *t, const uint8_t *const *row, int64_t n, int64_t d,
                           const float *p, bool add, float *o, int64_t o_row)
{
    const int     ways = rows > FEW_ROWS / 2 ? 1 : SIMD_SIXTEEN;
    const int64_t dims = tile_most(0, tile_least(SIMD_LANES, t->keys->d_v - d));
    const int64_t whole = dims < SIMD_LANES ? 0 : n / SIMD_SIXTEEN * SIMD_SIXTEEN;
    vfloat        sum[FEW_ROWS + SIMD_SIXTEEN * FEW_ROWS / 2] = { { 0 } };
    byte16        marks = { 0 };
    for (int64_t j = 0; j < whole; j += SIMD_SIXTEEN) {
        const byte16 x = tile_gather_codes(row + j, d);
        marks = tile_byte_max(marks, TILE_NAN_MARK(x, t->format));
        tile_sums_add(rows, ways, p + j, x, sum);
    }
    for (int64_t j = whole; j < n; j += SIMD_SIXTEEN) {
        byte16 x = { 0 };
        for (int i = 0; i < SIMD_SIXTEEN && j + i < n; i++)
            memcpy((char *)&x + i * SIMD_LANES, row[j + i] + d, (size_t)dims);
        marks = tile_byte_max(marks, TILE_NAN_MARK(x, t->format));
        tile_sums_add(rows, ways, p + j, x, sum);
    }
    for (int r = 0; r < rows; r++) {
        vfloat total = sum[r];
        for (int i = 1; i < ways; i++)
            total += sum[i * rows + r];
        float *at = o + r * o_row;
        simd_store(at, add ? total + simd_load(at) : total);
    }
    return marks;
}

INLINE bool tile_sums(const int rows, const tile_problem *t, int64_t first, int64_t last)
{
    const attend_keys *keys = t->keys;
    const int64_t      dims = tile_dims_v(t), steps = dims / SIMD_LANES;
    byte16             marks = { 0 };
    for (int r = 0; r < rows; r++)
        tile_row_weights(t, r, first, last);
    for (int64_t j = first; j < last; j += BLOCK_KEYS) {
        const int64_t  n = tile_least(BLOCK_KEYS, last - j);
        const uint8_t *row[BLOCK_KEYS];
        tile_ahead     ahead;
        tile_key_rows(keys, keys->v, keys->v_page, keys->v_slot, j, n, row);
        if (j + n < last)
            tile_ahead_values(keys, j + n, last, steps, &ahead);
        else
            tile_ahead_keys(keys, last, t->end, steps, &ahead);
        for (int64_t d = 0; d < dims; d += SIMD_LANES) {
            tile_ahead_step(&ahead);
            marks = tile_byte_max(marks, tile_sums_at(rows, t, row, n, d, t->scratch.s + (j - first), j > first,
                                                      t->scratch.tile + d, dims));
        }
    }
    return tile_nan_seen(marks, t->format);
}

#ifdef TILE_STREAM
#include "attention_stream.h"
#endif

/* S and O of few rows, the best way. */
INLINE bool tile_rows_scores(const int rows, const tile_problem *t, int64_t first, int64_t last)
{
#ifdef TILE_STREAM
    if (rows >= STREAM_FEWEST && stream_serves(t->keys))
        return stream_scores(rows, t, first, last);
#endif
    return tile_dots(rows, t, first, last);
}

INLINE bool tile_rows_values(const int rows, const tile_problem *t, int64_t first, int64_t last)
{
#ifdef TILE_STREAM
    if (rows >= STREAM_FEWEST && stream_serves(t->keys))
        return stream_values(rows, t, first, last);
#endif
    return tile_sums(rows, t, first, last);
}

/* One copy for each number of rows up to FEW_ROWS. */
#define FEW_ROWS_COPIES(name, copy)                                      \
    static bool name(const tile_problem *t, int64_t first, int64_t last) \
    {                                                                    \
        switch (t->rows->count) {                                        \
        case 1:                                                          \
            return copy(1, t, first, last);                              \
        case 2:                                                          \
            return copy(2, t, first, last);                              \
        case 3:                                                          \
            return copy(3, t, first, last);                              \
        case 4:                                                          \
            return copy(4, t, first, last);                              \
        case 5:                                                          \
            return copy(5, t, first, last);                              \
        case 6:                                                          \
            return copy(6, t, first, last);                              \
        case 7:                                                          \
            return copy(7, t, first, last);                              \
        default:                                                         \
            return copy(8, t, first, last);                              \
        }                                                                \
    }

FEW_ROWS_COPIES(tile_few_scores, tile_rows_scores)
FEW_ROWS_COPIES(tile_few_values, tile_rows_values)

/* S of the tile; returns true if a key holds NaN. */
static bool tile_all_scores(const tile_problem *t, int64_t first, int64_t last, const key_range *block)
{
    const attend_keys *keys = t->keys;
    bool               nan = false;
    if (t->rows->count <= FEW_ROWS)
        return tile_few_scores(t, first, last);
    const int64_t blocks = (t->rows->count + t->rows->block - 1) / t->rows->block;
    for (int64_t j = first; j < last; j += PANEL) {
        const uint8_t *row[PANEL];
        tile_ahead     ahead;
        tile_panel_rows(keys, j, last - j, row);
        if (j + PANEL < last)
            tile_ahead_keys(keys, j + PANEL, last, blocks, &ahead);
        else
            tile_ahead_values(keys, first, last, blocks, &ahead);
        nan |= tile_pack_keys(keys, t->format, row, t->scratch.k);
        for (int64_t r = 0, b = 0; r < t->rows->count; r += t->rows->block, b++) {
            const int64_t n = tile_least(t->rows->block, t->rows->count - r);
            tile_ahead_step(&ahead);
            if (tile_meets(block[b], j, j + PANEL))
                for (int64_t d = 0; d < keys->d_qk; d += CHUNK_DIMS)
                    tile_scores(n, t->scratch.q + r * keys->d_qk + d * n, t->scratch.k + d * PANEL,
                                tile_least(CHUNK_DIMS, keys->d_qk - d), d > 0,
                                t->scratch.s + r * SCORE_ROW + (j - first), SCORE_ROW);
        }
    }
    return nan;
}

/* v[j][i] = V[first + j, d + i]; true if one of the codes is NaN. */
static bool tile_load_values(const attend_keys *keys, simd_fp8 format, const uint8_t *const *row, int64_t n, int64_t d,
                             float *v)
{
    byte16  marks = { 0 };
    int64_t j = 0;
#if SIMD_BYTES == 32
    for (; d + PANEL <= keys->d_v && j + 2 <= n; j += 2) {
        byte16 x[2];
        vfloat y[SIMD_THIRTY_TWO];
        for (int i = 0; i < 2; i++) {
            memcpy(&x[i], row[j + i] + d, sizeof x[i]);
            marks = tile_byte_max(marks, TILE_NAN_MARK(x[i], format));
        }
        simd_decode32((byte32)_mm256_set_m128i((__m128i)x[1], (__m128i)x[0]), y);
        for (int i = 0; i < SIMD_THIRTY_TWO; i++)
            simd_store(v + j * PANEL + i * SIMD_LANES, y[i]);
    }
#endif
    for (; j < n; j++)
        for (int64_t i = 0; i < PANEL; i += 16) {
            const int64_t dims = tile_least(16, keys->d_v - d - i);
            byte16        x = { 0 };
            if (dims == 16)
                memcpy(&x, row[j] + d + i, 16);
            else if (dims > 0)
                memcpy(&x, row[j] + d + i, (size_t)dims);
            marks = tile_byte_max(marks, TILE_NAN_MARK(x, format));
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
    if (t->rows->count <= FEW_ROWS)
        return tile_few_values(t, first, last);
    const int64_t blocks = (t->rows->count + t->rows->block - 1) / t->rows->block;
    for (int64_t r = 0; r < t->rows->count; r++)
        tile_row_weights(t, r, first, last);
    for (int64_t j = first; j < last; j += BLOCK_KEYS) {
        const int64_t  n = tile_least(BLOCK_KEYS, last - j);
        const uint8_t *row[BLOCK_KEYS];
        tile_ahead     ahead;
        tile_key_rows(keys, keys->v, keys->v_page, keys->v_slot, j, n, row);
        if (j + n < last)
            tile_ahead_values(keys, j + n, last, dims / PANEL * blocks, &ahead);
        else
            tile_ahead_keys(keys, last, t->end, dims / PANEL * blocks, &ahead);
        for (int64_t d = 0; d < dims; d += PANEL) {
            nan |= tile_load_values(keys, t->format, row, n, d, t->scratch.v);
            for (int64_t r = 0, b = 0; r < t->rows->count; r += t->rows->block, b++) {
                tile_ahead_step(&ahead);
                if (tile_meets(block[b], j, j + n))
                    tile_values(tile_least(t->rows->block, t->rows->count - r),
                                t->scratch.s + r * SCORE_ROW + (j - first), t->scratch.v,
                                tile_least(n, block[b].last - j), begun[b], t->scratch.tile + r * dims + d, dims);
            }
        }
        for (int64_t b = 0; b < blocks; b++)
            begun[b] |= tile_meets(block[b], j, j + n);
    }
    return nan;
}

#endif
