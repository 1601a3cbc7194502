/* Panels of keys and blocks of rows in registers: what the SIMD rows of all operations are made of.
 *
 * A panel is PANEL keys, or PANEL head dims of V, side by side: fp32, decoded from FP8 on the way into the cache. A
 * block is as many rows as the registers hold beside a panel. NaN codes are found while decoding, for the caller to
 * put in their place afterwards; what they decode to is finite and means nothing.
 */
#ifndef ETALON_SIMD_PANEL_H
#define ETALON_SIMD_PANEL_H

#include "attend.h"
#include "simd.h"

#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    CHUNK_DIMS = 32, /* head dims that a register adds up: the docstrings' bounds count on it */
    PANEL = SIMD_BYTES == 64 ? 32 : 16,
    PANEL_VECTORS = PANEL / SIMD_LANES,
    BLOCK_ROWS = SIMD_BYTES == 64   ? 12
                 : SIMD_BYTES == 32 ? 6
                                    : 2
};

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL_TWICE _Pragma("unroll 2")
#define ROLLED _Pragma("nounroll")
#else
#define UNROLL_TWICE _Pragma("GCC unroll 2")
#endif

/* Number of this thread in its team. */
static inline int tile_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

static inline int64_t tile_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tile_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t tile_round_up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

/* Floats, made a multiple of the workspace's alignment. */
static inline int64_t tile_aligned(int64_t floats)
{
    return tile_round_up(floats, ETALON_WORKSPACE_ALIGN / (int64_t)sizeof(float));
}

static inline bool tile_meets(key_range a, int64_t first, int64_t last)
{
    return a.first < last && first < a.last;
}

/* Keys
 * ----
 */
/* row[i] = the bytes of key j + i, for n keys; from page to page by one division, and then by counting. Every page is
 * touched: one walk of the page tables after the other would stop the work each time, several at once do it once.
 */
static inline void tile_key_rows(const attend_keys *keys, const char *base, int64_t page, int64_t slot, int64_t j,
                                 int64_t n, const uint8_t **row)
{
    for (int64_t i = 0; i < n;) {
        const uint8_t *at = (const uint8_t *)attend_key_at(keys, base, page, slot, j + i);
        const int64_t  same = tile_least(n - i, keys->page_size - (j + i) % keys->page_size);
        __builtin_prefetch(at);
        for (const int64_t end = i + same; i < end; i++, at += slot)
            row[i] = at;
    }
}

/* Rows of K for a panel from key j, of n that are left; beyond them, the last one again: they are masked. */
static inline void tile_panel_rows(const attend_keys *keys, int64_t j, int64_t n, const uint8_t **row)
{
    const int64_t have = tile_least(n, PANEL);
    tile_key_rows(keys, keys->k, keys->k_page, keys->k_slot, j, have, row);
    for (int64_t i = have; i < PANEL; i++)
        row[i] = row[have - 1];
}

#define LOW_HALVES(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_HALVES(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* 16 x 16 bytes: four rounds of interleaving row i with row i + 8. */
#define TRANSPOSE(x, y, LOW, HIGH)               \
    for (int round_ = 0; round_ < 2; round_++) { \
        for (int i = 0; i < 8; i++) {            \
            y[2 * i] = LOW(x[i], x[i + 8]);      \
            y[2 * i + 1] = HIGH(x[i], x[i + 8]); \
        }                                        \
        for (int i = 0; i < 8; i++) {            \
            x[2 * i] = LOW(y[i], y[i + 8]);      \
            x[2 * i + 1] = HIGH(y[i], y[i + 8]); \
        }                                        \
    }

/* Marks the largest byte of what is NaN alone: 0xFE for E4M3FN, 0xFF for E4M3FNUZ. Codes are a vector of any length. */
#define TILE_NAN_MARK(codes, format) ((format).fnuz ? (codes) ^ 0x7F : (codes) + (codes))

INLINE bool tile_nan_seen(byte16 marks, simd_fp8 format)
{
    typedef uint64_t two64 __attribute__((vector_size(16)));
    const two64      hits = (two64)(marks == (format.fnuz ? (byte16){ 0 } + 0xFF : (byte16){ 0 } + 0xFE));
    return (hits[0] | hits[1]) != 0;
}

INLINE byte16 tile_byte_max(byte16 a, byte16 b)
{
#ifdef __SSE2__
    return (byte16)_mm_max_epu8((__m128i)a, (__m128i)b);
#else
    const byte16 more = (byte16)(a > b);
    return (a & more) | (b & ~more);
#endif
}

#if SIMD_BYTES >= 32
/* In each half by itself. */
#define LOW_HALVES2(a, b)                                                                                             \
    __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 16, 48, 17, 49, 18, 50, 19, \
                            51, 20, 52, 21, 53, 22, 54, 23, 55)
#define HIGH_HALVES2(a, b)                                                                                          \
    __builtin_shufflevector(a, b, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 24, 56, 25, 57, 26, \
                            58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63)

/* Head dims d to d + 31 of sixteen keys, two blocks of sixteen side by side; returns the marks of their codes. */
INLINE byte16 tile_pack32(simd_fp8 format, const uint8_t *const *row, int64_t d, float *k)
{
    byte32 x[16], y[16], marks = { 0 };
    for (int i = 0; i < 16; i++) {
        memcpy(&x[i], row[i] + d, 32);
        marks = (byte32)_mm256_max_epu8((__m256i)marks, (__m256i)TILE_NAN_MARK(x[i], format));
    }
    TRANSPOSE(x, y, LOW_HALVES2, HIGH_HALVES2)
    for (int i = 0; i < 16; i++) {
        vfloat z[SIMD_THIRTY_TWO];
        simd_decode32(x[i], z);
        for (int v = 0; v < SIMD_SIXTEEN; v++) {
            simd_store(k + (d + i) * PANEL + v * SIMD_LANES, z[v]);
            simd_store(k + (d + 16 + i) * PANEL + v * SIMD_LANES, z[SIMD_SIXTEEN + v]);
        }
    }
    byte16 both[2];
    memcpy(both, &marks, sizeof both);
    return tile_byte_max(both[0], both[1]);
}
#endif

/* k[d][i] = K[j + i, d] for sixteen keys of a panel; returns the marks of their codes. */
INLINE byte16 tile_pack16(const attend_keys *keys, simd_fp8 format, const uint8_t *const *row, float *k)
{
    byte16        marks = { 0 };
    const int64_t whole = keys->d_qk / 16 * 16;
    int64_t       d = 0;
#if SIMD_BYTES >= 32
    for (; d + 32 <= keys->d_qk; d += 32)
        marks = tile_byte_max(marks, tile_pack32(format, row, d, k));
#endif
    for (; d < keys->d_qk; d += 16) {
        byte16 x[16], y[16];
        for (int i = 0; i < 16; i++) {
            x[i] = (byte16){ 0 };
            if (d < whole)
                memcpy(&x[i], row[i] + d, 16);
            else
                memcpy(&x[i], row[i] + d, (size_t)(keys->d_qk - d));
            marks = tile_byte_max(marks, TILE_NAN_MARK(x[i], format));
        }
        TRANSPOSE(x, y, LOW_HALVES, HIGH_HALVES)
        const int64_t n = tile_least(16, keys->d_qk - d);
        for (int64_t i = 0; i < n; i++)
            simd_decode16_to(x[i], k + (d + i) * PANEL);
    }
    return marks;
}

#ifndef SIMD_AMX
/* k[d][i] = K[j + i, d] for a panel; true if one of the codes is NaN. */
static bool tile_pack_keys(const attend_keys *keys, simd_fp8 format, const uint8_t *const *row, float *k)
{
    byte16 marks = { 0 };
    for (int i = 0; i < PANEL; i += 16)
        marks = tile_byte_max(marks, tile_pack16(keys, format, row + i, k + i));
    return tile_nan_seen(marks, format);
}

#endif

static inline bool tile_is_nan(uint8_t code, simd_fp8 format)
{
    return (code & format.mask) == format.nan;
}

static inline bool tile_row_has_nan(const uint8_t *row, int64_t n, simd_fp8 format)
{
    for (int64_t i = 0; i < n; i++)
        if (tile_is_nan(row[i], format))
            return true;
    return false;
}

/* Register blocks
 * ---------------
 * For a number of rows that the compiler knows: to[r][i] (+)= sum_n a[n, r] b[n][i], with a[n, r] at a + n a_n + r a_r.
 * A sum waits four cycles for its last term, and two are begun each cycle: few rows take several terms side by side.
 */
enum { BUSY_SUMS = 8 };

#define WAYS(rows) ((rows) * PANEL_VECTORS >= BUSY_SUMS ? 1 : BUSY_SUMS / ((rows) * PANEL_VECTORS))

INLINE void tile_multiply(const int rows, const int ways, const float *a, const int64_t a_n, const int64_t a_r,
                          const float *b, int64_t count, bool add, float *to, int64_t to_row)
{
    vfloat        sum[BLOCK_ROWS * PANEL_VECTORS + BUSY_SUMS] = { { 0 } };
    const int64_t whole = count / ways * ways;
    UNROLL_TWICE
    for (int64_t n = 0; n < whole; n += ways)
        for (int w = 0; w < ways; w++)
            for (int r = 0; r < rows; r++)
                for (int v = 0; v < PANEL_VECTORS; v++)
                    sum[(w * rows + r) * PANEL_VECTORS + v] +=
                        a[(n + w) * a_n + r * a_r] * simd_load(b + (n + w) * PANEL + v * SIMD_LANES);
    for (int64_t n = whole; n < count; n++)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < PANEL_VECTORS; v++)
                sum[r * PANEL_VECTORS + v] += a[n * a_n + r * a_r] * simd_load(b + n * PANEL + v * SIMD_LANES);
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < PANEL_VECTORS; v++) {
            float *at = to + r * to_row + v * SIMD_LANES;
            vfloat total = sum[r * PANEL_VECTORS + v];
            for (int w = 1; w < ways; w++)
                total += sum[(w * rows + r) * PANEL_VECTORS + v];
            simd_store(at, add ? total + simd_load(at) : total);
        }
}

/* One copy for each number of rows up to BLOCK_ROWS. */
#define EACH_ROW_COUNT(call) \
    switch (rows) {          \
        ROW_COUNTS_2(call)   \
        ROW_COUNTS_6(call)   \
        ROW_COUNTS_12(call)  \
    }
#define ROW_COUNT(n, call) \
    case n:                \
        call(n);           \
        break;
#define ROW_COUNTS_2(call) ROW_COUNT(1, call) ROW_COUNT(2, call)
#if SIMD_BYTES >= 32
#define ROW_COUNTS_6(call) ROW_COUNT(3, call) ROW_COUNT(4, call) ROW_COUNT(5, call) ROW_COUNT(6, call)
#else
#define ROW_COUNTS_6(call)
#endif
#if SIMD_BYTES >= 64
#define ROW_COUNTS_12(call) \
    ROW_COUNT(7, call) ROW_COUNT(8, call) ROW_COUNT(9, call) ROW_COUNT(10, call) ROW_COUNT(11, call) ROW_COUNT(12, call)
#else
#define ROW_COUNTS_12(call)
#endif

#ifndef SIMD_AMX
/* s[r][i] (+)= sum_d q[d][r] k[d][i] over a chunk of head dims. */
static void tile_scores(int64_t rows, const float *q, const float *k, int64_t dims, bool add, float *s, int64_t s_row)
{
#define CALL(n) tile_multiply(n, WAYS(n), q, n, 1, k, dims, add, s, s_row)
    EACH_ROW_COUNT(CALL)
#undef CALL
}
#endif

#endif
