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

/* In blocks of one size, or of two: a last one of few rows would leave most of the machine idle. */
static void tile_deal_rows(tile_rows *rows)
{
    rows->blocks = (rows->count + BLOCK_ROWS - 1) / BLOCK_ROWS;
    rows->larger = rows->count % rows->blocks;
    for (int64_t b = 0; b <= rows->blocks; b++)
        rows->block[b] = b * (rows->count / rows->blocks) + tile_least(b, rows->larger);
}

/* Does something for the blocks [from, to) of n rows, n being known to the compiler; for those of one size and then those
 * of the other. A jump to the right copy for each block would often be foreseen wrongly.
 */
#define EACH_BLOCK_SIZE(t, call)                                                                               \
    for (int64_t from = 0, to = (t)->rows->larger, end = (t)->rows->blocks; from < end; from = to, to = end) { \
        const int64_t rows = from == to ? 0 : (t)->rows->block[from + 1] - (t)->rows->block[from];             \
        EACH_ROW_COUNT(call)                                                                                   \
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
    EACH (v, SIMD_SIXTEEN)
        EACH (r, rows)
            sum[r] += k[v] * simd_load(q + r * ETALON_MAX_HEAD_DIM + v * SIMD_LANES);
}

INLINE void tile_store_sums(const int rows, const vfloat *sum, float *s)
{
#if SIMD_BYTES >= 32
    if (rows == FEW_ROWS) {
        const float8 all = simd_sum8(sum);
        EACH (r, rows)
            s[r * SCORE_ROW] = all[r];
        return;
    }
#endif
    EACH (r, rows)
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
    EACH (i, 2)
        memcpy(&x[i], row[i] + d, sizeof x[i]);
    return (byte16)(two){ x[0], x[1] };
#else
    typedef uint32_t four __attribute__((vector_size(16)));
    uint32_t         x[4];
    EACH (i, 4)
        memcpy(&x[i], row[i] + d, sizeof x[i]);
    return (byte16)(four){ x[0], x[1], x[2], x[3] };
#endif
}

#if SIMD_BYTES >= 32
/* Thirty-two codes of a panel of V, of as many keys as they make; nor by memory. */
INLINE byte32 tile_panel_codes(const uint8_t *const *row, int64_t d)
{
#if SIMD_BYTES == 64
    byte32 x;
    memcpy(&x, row[0] + d, sizeof x);
    return x;
#else
    __m128i x[2];
    EACH (i, 2)
        memcpy(&x[i], row[i] + d, sizeof x[i]);
    return (byte32)_mm256_set_m128i(x[1], x[0]);
#endif
}
#endif

/* sum[r] += p[r] . codes of SIMD_SIXTEEN keys. */
INLINE void tile_sums_add(const int rows, const int ways, const float *p, byte16 codes, vfloat *sum)
{
    vfloat v[SIMD_SIXTEEN];
    simd_decode16(codes, v);
    EACH (i, SIMD_SIXTEEN)
        EACH (r, rows) {
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
    EACH (r, rows) {
        vfloat total = sum[r];
        EACH (i, ways - 1)
            total += sum[(i + 1) * rows + r];
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

/* A panel of keys, or of head dims, on its way through the blocks of rows. */
typedef struct tile_panel {
    const tile_problem *t;
    const key_range    *see;            /* the keys of each block */
    int64_t             first, j, n, d; /* the tile's first key; n keys from key j, and head dim d */
    tile_ahead          ahead;
} tile_panel;

/* Addresses go from block to block by addition: what a block begins with must not wait for loads. */
INLINE void tile_scores_of(const int rows, int64_t from, int64_t to, tile_panel *p)
{
    const tile_problem *t = p->t;
    const int64_t       dims = t->keys->d_qk, j = p->j, last = j + p->n, r = t->rows->block[from];
    const float        *q = t->scratch.q + r * dims, *k = t->scratch.k;
    float              *s = t->scratch.s + r * SCORE_ROW + (j - p->first);
    for (int64_t b = from; b < to; b++, q += rows * dims, s += rows * SCORE_ROW) {
        tile_ahead_step(&p->ahead);
        if (tile_meets(p->see[b], j, last))
            tile_chunks(rows, q, k, dims, s, SCORE_ROW);
    }
}

/* S of the tile; returns true if a key holds NaN. */
static bool tile_all_scores(const tile_problem *t, int64_t first, int64_t last, const key_range *block)
{
    const attend_keys *keys = t->keys;
    tile_panel         p = { .t = t, .see = block, .first = first, .n = PANEL };
    bool               nan = false;
    if (t->rows->count <= FEW_ROWS)
        return tile_few_scores(t, first, last);
    for (p.j = first; p.j < last; p.j += PANEL) {
        const uint8_t *row[PANEL];
        tile_panel_rows(keys, p.j, last - p.j, row);
        if (p.j + PANEL < last)
            tile_ahead_keys(keys, p.j + PANEL, last, t->rows->blocks, &p.ahead);
        else
            tile_ahead_values(keys, first, last, t->rows->blocks, &p.ahead);
        nan |= tile_pack_keys(keys, t->format, row, t->scratch.k);
#define CALL(n) tile_scores_of(n, from, to, &p)
        EACH_BLOCK_SIZE(t, CALL)
#undef CALL
    }
    return nan;
}

#if SIMD_BYTES >= 32
/* The first rows of a panel of V, all of its head dims being there. Returns how many. */
INLINE int64_t tile_load_values32(simd_fp8 format, const uint8_t *const *row, int64_t n, int64_t d, float *v,
                                  byte16 *marks)
{
    enum { KEYS = 32 / PANEL };
    byte32  seen = { 0 };
    int64_t j = 0;
    for (; j + KEYS <= n; j += KEYS) {
        const byte32 codes = tile_panel_codes(row + j, d);
        vfloat       y[SIMD_THIRTY_TWO];
        seen = (byte32)_mm256_max_epu8((__m256i)seen, (__m256i)TILE_NAN_MARK(codes, format));
        simd_decode32(codes, y);
        EACH (i, SIMD_THIRTY_TWO)
            simd_store(v + j * PANEL + i * SIMD_LANES, y[i]);
    }
    *marks = tile_byte32_fold(seen);
    return j;
}
#endif

/* v[j][i] = V[first + j, d + i]; true if one of the codes is NaN. */
static bool tile_load_values(const attend_keys *keys, simd_fp8 format, const uint8_t *const *row, int64_t n, int64_t d,
                             float *v)
{
    byte16  marks = { 0 };
    int64_t j = 0;
#if SIMD_BYTES >= 32
    if (d + PANEL <= keys->d_v)
        j = tile_load_values32(format, row, n, d, v, &marks);
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

/* O in columns d to d + PANEL (+)= P V over a block of keys. */
INLINE void tile_values_of(const int rows, int64_t from, int64_t to, tile_panel *p)
{
    const tile_problem *t = p->t;
    const int64_t       dims = tile_dims_v(t), first = p->first, j = p->j, n = p->n, r = t->rows->block[from];
    const float        *s = t->scratch.s + r * SCORE_ROW + (j - first), *v = t->scratch.v;
    float              *o = t->scratch.tile + r * dims + p->d;
    for (int64_t b = from; b < to; b++, s += rows * SCORE_ROW, o += rows * dims) {
        const key_range see = p->see[b];
        tile_ahead_step(&p->ahead);
        if (tile_meets(see, j, j + n))
            tile_multiply(rows, WAYS(rows), s, 1, SCORE_ROW, v, tile_least(n, see.last - j),
                          tile_most(see.first, first) < j, o, dims);
    }
}

/* The tile's share of O; returns true if a value is NaN. */
static bool tile_all_values(const tile_problem *t, int64_t first, int64_t last, const key_range *block)
{
    const attend_keys *keys = t->keys;
    const int64_t      dims = tile_dims_v(t), steps = dims / PANEL * t->rows->blocks;
    tile_panel         p = { .t = t, .see = block, .first = first };
    bool               nan = false;
    if (t->rows->count <= FEW_ROWS)
        return tile_few_values(t, first, last);
    for (int64_t r = 0; r < t->rows->count; r++)
        tile_row_weights(t, r, first, last);
    for (p.j = first; p.j < last; p.j += BLOCK_KEYS) {
        const uint8_t *row[BLOCK_KEYS];
        p.n = tile_least(BLOCK_KEYS, last - p.j);
        tile_key_rows(keys, keys->v, keys->v_page, keys->v_slot, p.j, p.n, row);
        if (p.j + p.n < last)
            tile_ahead_values(keys, p.j + p.n, last, steps, &p.ahead);
        else
            tile_ahead_keys(keys, last, t->end, steps, &p.ahead);
        for (p.d = 0; p.d < dims; p.d += PANEL) {
            nan |= tile_load_values(keys, t->format, row, p.n, p.d, t->scratch.v);
#define CALL(n) tile_values_of(n, from, to, &p)
            EACH_BLOCK_SIZE(t, CALL)
#undef CALL
        }
    }
    return nan;
}

#endif
