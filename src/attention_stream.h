/* Few rows, for attention_panel.h: too few to repay transposed panels, enough for register blocks.
 *
 * K and V are decoded once, 32 codes at a time, into the first-level cache, between the multiply-adds of what was
 * decoded before. A block is up to STREAM_ROWS rows by STREAM_VECTORS vectors: of as many keys for S, of neighbouring
 * head dims for O. With more sums than the eight that the machine has under way, one that decoding has held up, which
 * takes the same units, catches up.
 *
 * Sums and operands fill the registers. The inner loops stay rolled and decoding in order, for a compiler that mixes
 * the two keeps a sum in memory, where it waits nine cycles for its last term instead of four. GCC 12 does so all the
 * same, and is left with tile_dots and tile_sums.
 */
#ifndef ETALON_ATTENTION_STREAM_H
#define ETALON_ATTENTION_STREAM_H

enum {
    STREAM_FEWEST = SIMD_BYTES == 64 ? 6 : 1, /* rows, as measured (doc/PERFORMANCE.md) */
    STREAM_ROWS = SIMD_BYTES == 64 ? 8 : 4,
    STREAM_VECTORS = 3,
    STREAM_PANELS = 3, /* of V side by side: two blocks wide */
    STREAM_STEP = 4    /* keys of V whose terms are added before as many are decoded */
};

/* Rows of the first block of one or two. */
#define STREAM_FIRST(rows) ((rows) > STREAM_ROWS ? ((rows) + 1) / 2 : (rows))

static bool stream_serves(const attend_keys *keys)
{
    return keys->d_qk % 32 == 0 && keys->d_v % PANEL == 0;
}

INLINE void stream_decode(simd_fp8 format, byte32 codes, float *to, byte32 *marks)
{
    *marks = (byte32)_mm256_max_epu8((__m256i)*marks, (__m256i)TILE_NAN_MARK(codes, format));
    simd_in_order();
    simd_decode32_to(codes, to);
}

INLINE bool stream_nan_seen(byte32 marks, simd_fp8 format)
{
    return tile_nan_seen(tile_byte32_fold(marks), format);
}

/* Keys: to[i][d] = K[row[i], d] for 32 head dims. */
INLINE void stream_decode_keys(const int n, simd_fp8 format, const uint8_t *const *row, int64_t d, float *to,
                               byte32 *marks)
{
    EACH (i, n) {
        byte32 codes;
        memcpy(&codes, row[i] + d, sizeof codes);
        stream_decode(format, codes, to + i * ETALON_MAX_HEAD_DIM + d, marks);
    }
}

/* sum[r][i] = q[r] . k[i], vectors apart; `next` keys are decoded on the way. */
INLINE void stream_dots(const int rows, const tile_problem *t, const float *q, const float *k, const int next,
                        const uint8_t *const *row, float *to, byte32 *marks, float *s)
{
    vfloat sum[STREAM_ROWS + 1][STREAM_VECTORS] = { { { 0 } } };
    for (int64_t d = 0; d < t->keys->d_qk; d += 32) {
        ROLLED
        for (int64_t e = d; e < d + 32; e += SIMD_LANES) {
            vfloat x[STREAM_VECTORS];
            EACH (i, STREAM_VECTORS)
                x[i] = simd_load(k + i * ETALON_MAX_HEAD_DIM + e);
            EACH (r, rows) {
                const vfloat y = simd_load(q + r * ETALON_MAX_HEAD_DIM + e);
                EACH (i, STREAM_VECTORS) {
                    sum[r][i] += x[i] * y;
                    simd_settle(&sum[r][i]);
                }
            }
        }
        simd_in_order();
        stream_decode_keys(next, t->format, row, d, to, marks);
    }
    for (int r = 0; r < rows; r += 2) {
        const vfloat two[8] = { sum[r][0], sum[r][1], sum[r][2], { 0 }, sum[r + 1][0], sum[r + 1][1], sum[r + 1][2] };
        const float8 all = simd_sum8(two); /* the fourth of each is overwritten, or masked */
        float4       one[2];
        memcpy(one, &all, sizeof one);
        for (int i = 0; i < 2 && r + i < rows; i++)
            memcpy(s + (r + i) * SCORE_ROW, &one[i], sizeof one[i]);
    }
}

INLINE bool stream_scores(const int rows, const tile_problem *t, int64_t first, int64_t last)
{
    enum { AHEAD = 4 * STREAM_VECTORS };
    const attend_keys *keys = t->keys;
    const int64_t      n = last - first, stride = STREAM_VECTORS * ETALON_MAX_HEAD_DIM;
    const int          one = STREAM_FIRST(rows), two = rows - one;
    const uint8_t     *row[TILE_KEYS + 2 * STREAM_VECTORS];
    float             *k = t->scratch.v, *next = k + stride;
    byte32             marks = { 0 };
    tile_ahead         values;
    tile_key_rows(keys, keys->k, keys->k_page, keys->k_slot, first, n, row);
    EACH (i, 2 * STREAM_VECTORS)
        row[n + i] = row[n - 1];
    tile_ahead_values(keys, first, last, (n + STREAM_VECTORS - 1) / STREAM_VECTORS, &values);
    for (int64_t d = 0; d < keys->d_qk; d += 32)
        stream_decode_keys(STREAM_VECTORS, t->format, row, d, k, &marks);
    for (int64_t j = 0; j < n; j += STREAM_VECTORS) {
        const uint8_t *const *then = row + j + STREAM_VECTORS;
        const int             some = two > 0 ? 2 : STREAM_VECTORS;
        tile_ahead_step(&values);
        for (int64_t i = j + AHEAD; i < tile_least(n, j + AHEAD + STREAM_VECTORS); i++)
            for (int64_t d = 0; d < keys->d_qk; d += 64)
                __builtin_prefetch(row[i] + d);
        stream_dots(one, t, t->scratch.q, k, some, then, next, &marks, t->scratch.s + j);
        if (two > 0)
            stream_dots(two, t, t->scratch.q + one * ETALON_MAX_HEAD_DIM, k, STREAM_VECTORS - some, then + some,
                        next + some * ETALON_MAX_HEAD_DIM, &marks, t->scratch.s + one * SCORE_ROW + j);
        float *const swap = k;
        k = next;
        next = swap;
    }
    return stream_nan_seen(marks, t->format);
}

/* Panels of V to decode: [BLOCK_KEYS][PANEL] each, `keys` of them used. */
typedef struct stream_panels {
    const uint8_t *const *row;
    int64_t               keys, d, left;
    float                *to;
} stream_panels;

/* Panels from head dim d for keys [first, last) of a tile, in steps; rows beyond the last one are its copies. */
static stream_panels stream_panels_at(const uint8_t *const *row, int64_t first, int64_t last, int64_t d, int64_t dims,
                                      float *to)
{
    const int64_t keys = tile_least(BLOCK_KEYS, tile_round_up(last - first, STREAM_STEP));
    return (stream_panels){ row + first, keys, d, tile_least(STREAM_PANELS, (dims - d) / PANEL), to };
}

static void stream_panel_done(stream_panels *p)
{
    p->d += PANEL;
    p->to += BLOCK_KEYS * PANEL;
    p->left--;
}

/* STREAM_STEP keys of a panel. */
INLINE void stream_decode_values(simd_fp8 format, const stream_panels *p, int64_t j, byte32 *marks)
{
    enum { KEYS = 32 / PANEL };
    for (int i = 0; i < STREAM_STEP; i += KEYS) {
        const byte32 codes = tile_panel_codes(p->row + j + i, p->d);
        stream_decode(format, codes, p->to + (j + i) * PANEL, marks);
    }
}

/* Those that no block took along. */
static void stream_finish(simd_fp8 format, stream_panels *p, byte32 *marks)
{
    for (; p->left > 0; stream_panel_done(p))
        for (int64_t j = 0; j < p->keys; j += STREAM_STEP)
            stream_decode_values(format, p, j, marks);
}

/* o[r][i] (+)= sum_j p[r][j] v[j][skip + i]; with `next`, a panel of as many keys is decoded on the way. */
INLINE void stream_block(const int rows, const int vectors, const int skip, const float *p, const float *v, int64_t n,
                         simd_fp8 format, const stream_panels *next, byte32 *marks, bool add, float *o, int64_t o_row)
{
    vfloat sum[STREAM_ROWS][STREAM_VECTORS] = { { { 0 } } };
    for (int64_t j = 0; j < n; j += STREAM_STEP) {
        ROLLED
        for (int64_t e = j; e < j + STREAM_STEP; e++) {
            vfloat x[STREAM_VECTORS];
            EACH (i, vectors)
                x[i] = simd_load(v + (skip + i) / PANEL_VECTORS * BLOCK_KEYS * PANEL + e * PANEL +
                                 (skip + i) % PANEL_VECTORS * SIMD_LANES);
            EACH (r, rows) {
                const vfloat y = simd_set(p[r * SCORE_ROW + e]);
                EACH (i, vectors) {
                    sum[r][i] += x[i] * y;
                    simd_settle(&sum[r][i]);
                }
            }
        }
        if (next != NULL) {
            simd_in_order();
            stream_decode_values(format, next, j, marks);
        }
    }
    EACH (r, rows)
        EACH (i, vectors) {
            float *at = o + r * o_row + (skip + i) * SIMD_LANES;
            simd_store(at, add ? sum[r][i] + simd_load(at) : sum[r][i]);
        }
}

INLINE void stream_products(const int rows, const int vectors, const int skip, const float *p, const float *v,
                            int64_t n, simd_fp8 format, stream_panels *next, byte32 *marks, bool add, float *o,
                            int64_t o_row)
{
    if (next->left > 0 && next->keys == n) {
        const stream_panels now = *next;
        stream_block(rows, vectors, skip, p, v, n, format, &now, marks, add, o, o_row);
        stream_panel_done(next);
    } else {
        stream_block(rows, vectors, skip, p, v, n, format, NULL, marks, add, o, o_row);
    }
}

/* All panels side by side, for a block of rows. */
INLINE void stream_values_of(const int rows, int64_t panels, const float *p, const float *v, int64_t n, simd_fp8 format,
                             stream_panels *next, byte32 *marks, bool add, float *o, int64_t o_row)
{
    if (panels == STREAM_PANELS)
        for (int skip = 0; skip < 2 * STREAM_VECTORS; skip += STREAM_VECTORS)
            stream_products(rows, STREAM_VECTORS, skip, p, v, n, format, next, marks, add, o, o_row);
    else
        for (int64_t i = 0; i < panels; i++)
            stream_products(rows, PANEL_VECTORS, 0, p, v + i * BLOCK_KEYS * PANEL, n, format, next, marks, add,
                            o + i * PANEL, o_row);
}

INLINE bool stream_values(const int rows, const tile_problem *t, int64_t first, int64_t last)
{
    const attend_keys *keys = t->keys;
    const int64_t      dims = keys->d_v, side = STREAM_PANELS * PANEL, steps = (dims + side - 1) / side;
    const int          one = STREAM_FIRST(rows), two = rows - one;
    const uint8_t     *row[TILE_KEYS + STREAM_STEP];
    float             *v = t->scratch.v, *other = v + STREAM_PANELS * BLOCK_KEYS * PANEL;
    byte32             marks = { 0 };
    for (int r = 0; r < rows; r++)
        tile_row_weights(t, r, first, last);
    tile_key_rows(keys, keys->v, keys->v_page, keys->v_slot, first, last - first, row);
    EACH (i, STREAM_STEP)
        row[last - first + i] = row[last - first - 1];
    stream_panels next = stream_panels_at(row, 0, last - first, 0, dims, v);
    stream_finish(t->format, &next, &marks);
    for (int64_t j = 0; j < last - first; j += BLOCK_KEYS) {
        const int64_t n = tile_least(BLOCK_KEYS, tile_round_up(last - first - j, STREAM_STEP)), then = j + BLOCK_KEYS;
        tile_ahead    ahead;
        if (first + then < last)
            tile_ahead_values(keys, first + then, last, steps, &ahead);
        else
            tile_ahead_keys(keys, last, t->end, steps, &ahead);
        for (int64_t d = 0; d < dims; d += side) {
            const int64_t panels = tile_least(STREAM_PANELS, (dims - d) / PANEL);
            const float  *p = t->scratch.s + j;
            float        *o = t->scratch.tile + d;
            tile_ahead_step(&ahead);
            if (d + side < dims)
                next = stream_panels_at(row, j, last - first, d + side, dims, other);
            else if (first + then < last)
                next = stream_panels_at(row, then, last - first, 0, dims, other);
            stream_values_of(one, panels, p, v, n, t->format, &next, &marks, j > 0, o, dims);
            if (two > 0)
                stream_values_of(two, panels, p + one * SCORE_ROW, v, n, t->format, &next, &marks, j > 0,
                                 o + one * dims, dims);
            stream_finish(t->format, &next, &marks);
            float *const swap = v;
            v = other;
            other = swap;
        }
    }
    return stream_nan_seen(marks, t->format);
}

#endif
