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
#define UNROLL_4 _Pragma("unroll 4")
#define ROLLED _Pragma("nounroll")
#else
#define UNROLL_4 _Pragma("GCC unroll 4")
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
    EACH (round_, 2) {                           \
        EACH (i, 8) {                            \
            y[2 * i] = LOW(x[i], x[i + 8]);      \
            y[2 * i + 1] = HIGH(x[i], x[i + 8]); \
        }                                        \
        EACH (i, 8) {                            \
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
INLINE vbyte tile_bytes_max(vbyte a, vbyte b)
{
#if SIMD_BYTES == 64
    return (vbyte)_mm512_max_epu8((__m512i)a, (__m512i)b);
#else
    return (vbyte)_mm256_max_epu8((__m256i)a, (__m256i)b);
#endif
}

/* The greater bytes of the halves. */
INLINE byte16 tile_byte32_fold(byte32 x)
{
    byte16 half[2];
    memcpy(half, &x, sizeof half);
    return tile_byte_max(half[0], half[1]);
}

#if SIMD_BYTES == 64
#define LOW_WORDS(a, b) (vword) _mm512_unpacklo_epi16((__m512i)(a), (__m512i)(b))
#define HIGH_WORDS(a, b) (vword) _mm512_unpackhi_epi16((__m512i)(a), (__m512i)(b))
#else
#define LOW_WORDS(a, b) (vword) _mm256_unpacklo_epi16((__m256i)(a), (__m256i)(b))
#define HIGH_WORDS(a, b) (vword) _mm256_unpackhi_epi16((__m256i)(a), (__m256i)(b))
#endif

/* Thirty-two codes of key i; with AVX-512, of keys i and i + 8, sixteen of the one and sixteen of the other in turn. */
INLINE vbyte tile_codes32(const uint8_t *const *row, int i, int64_t d)
{
    vbyte x;
#if SIMD_BYTES == 64
    __m256i one, other;
    memcpy(&one, row[i] + d, sizeof one);
    memcpy(&other, row[i + 8] + d, sizeof other);
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(one), other, 1);
    x = (vbyte)_mm512_shuffle_i64x2(both, both, 0xD8 /* 0, 2, 1, 3 */);
#else
    memcpy(&x, row[i] + d, sizeof x);
#endif
    return x;
}

/* Head dims d to d + 31 of as many keys as a vector has lanes; returns the marks of their codes. Pairs of head dims are
 * transposed, 8 x 8 of them in each sixteen bytes: three rounds of interleaving row i with row i + 4.
 */
INLINE vbyte tile_pack32(simd_fp8 format, const uint8_t *const *row, int64_t d, vbyte marks, float *k)
{
    vword x[8], y[8];
    EACH (i, 8) {
        const vbyte codes = tile_codes32(row, i, d);
        marks = tile_bytes_max(marks, TILE_NAN_MARK(codes, format));
        x[i] = (vword)codes;
    }
    EACH (n, 3) {
        EACH (i, 4) {
            y[2 * i] = LOW_WORDS(x[i], x[i + 4]);
            y[2 * i + 1] = HIGH_WORDS(x[i], x[i + 4]);
        }
        memcpy(x, y, sizeof x);
    }
    EACH (i, 8) {
        vfloat lower[2], upper[2];
        simd_decode_words(x[i], lower, upper);
        EACH (n, 2) {
            simd_store(k + (d + 16 * n + 2 * i) * PANEL, lower[n]);
            simd_store(k + (d + 16 * n + 2 * i + 1) * PANEL, upper[n]);
        }
    }
    return marks;
}
#endif

/* k[d][i] = K[j + i, d] for sixteen keys of a panel; returns the marks of their codes. */
INLINE byte16 tile_pack16(const attend_keys *keys, simd_fp8 format, const uint8_t *const *row, float *k)
{
    byte16        marks = { 0 };
    const int64_t whole = keys->d_qk / 16 * 16;
    int64_t       d = 0;
#if SIMD_BYTES >= 32
    vbyte wide = { 0 };
    for (; d + 32 <= keys->d_qk; d += 32)
        for (int i = 0; i < 16; i += SIMD_LANES)
            wide = tile_pack32(format, row + i, d, wide, k + i);
#if SIMD_BYTES == 64
    byte32 half[2];
    memcpy(half, &wide, sizeof half);
    marks = tile_byte_max(tile_byte32_fold(half[0]), tile_byte32_fold(half[1]));
#else
    marks = tile_byte32_fold(wide);
#endif
#endif
    for (; d < keys->d_qk; d += 16) {
        byte16 x[16], y[16];
        EACH (i, 16) {
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

/* sum[r][v] += a[n, r] b[n][v] for one n. */
INLINE void tile_multiply_add(const int rows, const float *a, const int64_t a_r, const float *b, vfloat *sum)
{
    EACH (i, rows * PANEL_VECTORS)
        sum[i] += a[i / PANEL_VECTORS * a_r] * simd_load(b + i % PANEL_VECTORS * SIMD_LANES);
}

INLINE void tile_multiply(const int rows, const int ways, const float *a, const int64_t a_n, const int64_t a_r,
                          const float *b, int64_t count, bool add, float *to, int64_t to_row)
{
    vfloat        sum[BLOCK_ROWS * PANEL_VECTORS + BUSY_SUMS] = { { 0 } };
    const int     sums = rows * PANEL_VECTORS;
    const int64_t whole = count / ways * ways;
    UNROLL_4
    for (int64_t n = 0; n < whole; n += ways) {
        EACH (w, ways)
            tile_multiply_add(rows, a + (n + w) * a_n, a_r, b + (n + w) * PANEL, sum + w * sums);
    }
    for (int64_t n = whole; n < count; n++)
        tile_multiply_add(rows, a + n * a_n, a_r, b + n * PANEL, sum);
    EACH (i, sums) {
        float *at = to + i / PANEL_VECTORS * to_row + i % PANEL_VECTORS * SIMD_LANES;
        vfloat total = sum[i];
        EACH (w, ways - 1)
            total += sum[(w + 1) * sums + i];
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
/* s[r][i] = sum_d q[d][r] k[d][i], chunk by chunk. */
INLINE void tile_chunks(const int rows, const float *q, const float *k, int64_t dims, float *s, int64_t s_row)
{
    for (int64_t d = 0; d < dims; d += CHUNK_DIMS)
        tile_multiply(rows, WAYS(rows), q + d * rows, rows, 1, k + d * PANEL, tile_least(CHUNK_DIMS, dims - d), d > 0,
                      s, s_row);
}
#endif

#endif
