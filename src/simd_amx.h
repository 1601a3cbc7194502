/* Tiles of AMX-BF16: what the AMX rows of all operations are made of.
 *
 * A tile register holds 1 KiB: of A, 16 rows of 32 bf16 numbers; of B, 16 columns of 32, [16 pairs][16 columns][2]; of
 * C, 16 x 16 fp32 sums. TDPBF16PS adds A B to C: for each sum two chains of sixteen fused multiply-adds, one over the
 * first and one over the second numbers of the pairs, both from 0; then their sum; then C plus that. Every result is
 * rounded to nearest; subnormal numbers are taken as 0 and results below 2^-126 become 0, whatever the rounding mode
 * of the thread.
 *
 * FP8 codes are exact in bf16, and so are the products of two bf16 numbers in fp32. A fp32 number is the sum of three
 * bf16 ones: its 24 bits, eight at a time.
 *
 * Which of the 32 numbers of a step are a pair is free as long as A and B agree: here number i and number i + 16, and
 * what has which number is what costs the fewest instructions.
 */
#ifndef ETALON_SIMD_AMX_H
#define ETALON_SIMD_AMX_H

#include "simd_panel.h"

enum {
    AMX_ROWS = 16, /* of A and C; and columns of B and C */
    AMX_STEP = 32, /* numbers that one instruction multiplies for each sum */
    AMX_TILE = AMX_ROWS * AMX_STEP,
    AMX_CODES = 64, /* of a vector, that a key's row is read by: two steps of K, four columns of V */
    AMX_PANEL = 64, /* keys of a panel of K: four columns */
    AMX_TERMS = 3,  /* bf16 numbers that a fp32 one is the sum of */
    AMX_BLOCK = 32  /* rows of A that share a B tile in a register */
};

/* Steps over n numbers, in whole vectors of codes. */
static inline int64_t amx_steps(int64_t n)
{
    return tile_round_up(n, AMX_CODES) / AMX_STEP;
}

static inline int64_t amx_row_tiles(int64_t rows)
{
    return (rows + AMX_ROWS - 1) / AMX_ROWS;
}

/* Row r of A tiles of which every row tile has so many. */
static inline uint16_t *amx_row(uint16_t *tiles, int64_t r, int64_t count)
{
    return tiles + r / AMX_ROWS * count * AMX_TILE + r % AMX_ROWS * AMX_STEP;
}

/* row[i] = the bytes of key j + i, for n keys of `count`; beyond them, the last one again: they are masked. */
static inline void amx_key_rows(const attend_keys *keys, const char *base, int64_t page, int64_t slot, int64_t j,
                                int64_t n, int64_t count, const uint8_t **row)
{
    const int64_t have = tile_least(n, count);
    tile_key_rows(keys, base, page, slot, j, have, row);
    for (int64_t i = have; i < count; i++)
        row[i] = row[have - 1];
}

/* Asks for n keys from j, as far as they lie before `end`: they come while tiles are multiplied. */
static inline void amx_prefetch(const attend_keys *keys, const char *base, int64_t page, int64_t slot, int64_t dims,
                                int64_t j, int64_t n, int64_t end)
{
    const uint8_t *row[AMX_PANEL];
    n = tile_least(n, end - j);
    tile_key_rows(keys, base, page, slot, j, n, row);
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < dims; d += 64) /* line by line, into the second-level cache */
            __builtin_prefetch(row[i] + d, 0, 2);
}

/* Floats in the place of so many bf16 numbers. */
static inline int64_t amx_floats(int64_t numbers)
{
    return numbers / 2;
}

/* Tile registers
 * --------------
 * The intrinsics of some compilers do not say that they read memory.
 */
#define AMX_MEMORY_IS_READ() __asm__ volatile("" : : : "memory")

typedef struct amx_shape {
    uint8_t  palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t  rows[16];
} amx_shape;

/* Sets up the registers of this thread, 0 to 3: C, 4 and 5: A, 6 and 7: B. Fewer rows than 16 take less time. */
static void amx_begin(int64_t rows)
{
    amx_shape shape __attribute__((aligned(64))) = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        shape.row_bytes[i] = 64;
        shape.rows[i] = (uint8_t)(i < 6 ? tile_least(rows, AMX_ROWS) : AMX_STEP / 2);
    }
    AMX_MEMORY_IS_READ();
    _tile_loadconfig(&shape);
}

/* Gives them back: a thread switch need not save them. */
static void amx_end(void)
{
    _tile_release();
}

/* Products
 * --------
 * c[r][i] (+)= sum of a[r] b[i] over all steps and terms. A tiles lie [row tile][step][term], B tiles [column
 * tile][step]; the distances a_row and b_column are in numbers, c_row in floats.
 */
typedef struct amx_product {
    const uint16_t *a, *b;
    int64_t         a_row, b_column, steps, terms;
    void (*meanwhile)(void *state); /* called in each step, if not NULL: work for the vector units */
    void *state;
} amx_product;

/* Two row tiles and two columns: a register is loaded for every instruction. */
static void amx_multiply_2x2(const amx_product *p, int64_t column, bool add, float *c, int64_t c_row)
{
    const uint16_t *a = p->a, *b = p->b + column * p->b_column;
    AMX_MEMORY_IS_READ();
    if (add) {
        _tile_loadd(0, c, 4 * c_row);
        _tile_loadd(1, c + AMX_ROWS, 4 * c_row);
        _tile_loadd(2, c + AMX_ROWS * c_row, 4 * c_row);
        _tile_loadd(3, c + AMX_ROWS * c_row + AMX_ROWS, 4 * c_row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t s = 0; s < p->steps; s++, b += AMX_TILE) {
        _tile_loadd(6, b, 64);
        _tile_loadd(7, b + p->b_column, 64);
        for (int64_t t = 0; t < p->terms; t++, a += AMX_TILE) {
            _tile_loadd(4, a, 64);
            _tile_loadd(5, a + p->a_row, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        if (p->meanwhile != NULL)
            p->meanwhile(p->state);
    }
    _tile_stored(0, c, 4 * c_row);
    _tile_stored(1, c + AMX_ROWS, 4 * c_row);
    _tile_stored(2, c + AMX_ROWS * c_row, 4 * c_row);
    _tile_stored(3, c + AMX_ROWS * c_row + AMX_ROWS, 4 * c_row);
}

/* One row tile and four columns: as many sums that do not wait for each other. */
static void amx_multiply_1x4(const amx_product *p, int64_t column, bool add, float *c, int64_t c_row)
{
    const uint16_t *a = p->a, *b = p->b + column * p->b_column;
    AMX_MEMORY_IS_READ();
    if (add) {
        _tile_loadd(0, c, 4 * c_row);
        _tile_loadd(1, c + AMX_ROWS, 4 * c_row);
        _tile_loadd(2, c + 2 * AMX_ROWS, 4 * c_row);
        _tile_loadd(3, c + 3 * AMX_ROWS, 4 * c_row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t s = 0; s < p->steps; s++, b += AMX_TILE) {
        for (int64_t t = 0; t < p->terms; t++, a += AMX_TILE) {
            _tile_loadd(4, a, 64);
            _tile_loadd(6, b, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, b + p->b_column, 64);
            _tile_dpbf16ps(1, 4, 7);
            _tile_loadd(6, b + 2 * p->b_column, 64);
            _tile_dpbf16ps(2, 4, 6);
            _tile_loadd(7, b + 3 * p->b_column, 64);
            _tile_dpbf16ps(3, 4, 7);
        }
        if (p->meanwhile != NULL)
            p->meanwhile(p->state);
    }
    _tile_stored(0, c, 4 * c_row);
    _tile_stored(1, c + AMX_ROWS, 4 * c_row);
    _tile_stored(2, c + 2 * AMX_ROWS, 4 * c_row);
    _tile_stored(3, c + 3 * AMX_ROWS, 4 * c_row);
}

/* The same for the last two columns. */
static void amx_multiply_1x2(const amx_product *p, int64_t column, bool add, float *c, int64_t c_row)
{
    const uint16_t *a = p->a, *b = p->b + column * p->b_column;
    AMX_MEMORY_IS_READ();
    if (add) {
        _tile_loadd(0, c, 4 * c_row);
        _tile_loadd(1, c + AMX_ROWS, 4 * c_row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
    }
    for (int64_t s = 0; s < p->steps; s++, b += AMX_TILE) {
        _tile_loadd(6, b, 64);
        _tile_loadd(7, b + p->b_column, 64);
        for (int64_t t = 0; t < p->terms; t++, a += AMX_TILE) {
            _tile_loadd(4, a, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (p->meanwhile != NULL)
            p->meanwhile(p->state);
    }
    _tile_stored(0, c, 4 * c_row);
    _tile_stored(1, c + AMX_ROWS, 4 * c_row);
}

/* For up to AMX_BLOCK rows and an even number of columns. Rows of c are written in whole row tiles. */
static void amx_multiply(const amx_product *p, int64_t rows, int64_t columns, bool add, float *c, int64_t c_row)
{
    int64_t i = 0;
    if (rows > AMX_ROWS)
        for (; i < columns; i += 2)
            amx_multiply_2x2(p, i, add, c + i * AMX_ROWS, c_row);
    for (; i + 4 <= columns; i += 4)
        amx_multiply_1x4(p, i, add, c + i * AMX_ROWS, c_row);
    for (; i < columns; i += 2)
        amx_multiply_1x2(p, i, add, c + i * AMX_ROWS, c_row);
}

/* fp32 numbers
 * ------------
 * 32 numbers into the same row of a tile for each term. Every term has the leading eight bits of what is left, so that
 * all have one sign, and pairs need no shuffle, only the upper halves of two vectors.
 */
INLINE void amx_split(vfloat a, vfloat b, int64_t terms, uint16_t *to)
{
    const __m512i top = _mm512_set1_epi32((int)0xFFFF0000);
    for (int64_t t = 0; t < terms; t++) {
        const __m512i x = (__m512i)a, y = (__m512i)b;
        _mm512_storeu_si512(to + t * AMX_TILE,
                            _mm512_ternarylogic_epi32(top, y, _mm512_srli_epi32(x, 16), 0xCA /* top ? y : x */));
        a -= (vfloat)_mm512_and_si512(x, top);
        b -= (vfloat)_mm512_and_si512(y, top);
    }
}

/* FP8 codes
 * ---------
 * Low and high bytes of the bf16 numbers of 128 codes, in units of simd_fp8.unit as simd_decode16 has them: code *
 * 2^-8.
 */
typedef uint8_t byte64 __attribute__((vector_size(64)));

typedef struct amx_decoder {
    __m512i low[2], high[2];
} amx_decoder;

INLINE amx_decoder amx_decoder_of_codes(void)
{
#define EIGHT(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
    const byte64 code = { EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56) };
#undef EIGHT
    /* Sign, exponent and mantissa move by four bits; bias 7 and the unit give exponent 127 - 7 - 8 for 0. */
    const byte64 low[2] = { code << 4, (code + 64) << 4 };
    const byte64 high[2] = { (code >> 4) + 0x38, ((code + 64) >> 4) + 0x38 };
    /* Codes 0 to 7 are subnormal: i * 2^-17, which bf16 has as normal numbers. */
    const __m512i tiny_low = _mm512_set1_epi64(0x60402000C0800000), tiny_high = _mm512_set1_epi64(0x3838383837373700);
    return (amx_decoder){ .low = { _mm512_mask_mov_epi8((__m512i)low[0], 0xFF, tiny_low), (__m512i)low[1] },
                          .high = { _mm512_mask_mov_epi8((__m512i)high[0], 0xFF, tiny_high), (__m512i)high[1] } };
}

/* 64 codes: the numbers of the first and third byte of each four, and of the second and fourth. */
INLINE void amx_decode(const amx_decoder *of, __m512i codes, uint16_t *even, uint16_t *odd)
{
    const __m512i low = _mm512_permutex2var_epi8(of->low[0], codes, of->low[1]);
    const __m512i positive = _mm512_permutex2var_epi8(of->high[0], codes, of->high[1]);
    const __m512i high = _mm512_ternarylogic_epi32(positive, codes, _mm512_set1_epi8((char)0x80), 0xF8 /* | sign */);
    const __m512i bytes = _mm512_set1_epi16(0xFF);
    _mm512_storeu_si512(even, _mm512_ternarylogic_epi32(bytes, low, _mm512_slli_epi16(high, 8), 0xCA));
    _mm512_storeu_si512(odd, _mm512_ternarylogic_epi32(bytes, _mm512_srli_epi16(low, 8), high, 0xCA));
}

/* See TILE_NAN_MARK. */
INLINE __m512i amx_nan_marks(__m512i marks, __m512i codes, simd_fp8 format)
{
    return _mm512_max_epu8(marks, format.fnuz ? _mm512_xor_si512(codes, _mm512_set1_epi8(0x7F))
                                              : _mm512_add_epi8(codes, codes));
}

INLINE bool amx_nan_seen(__m512i marks, simd_fp8 format)
{
    return _mm512_cmpeq_epi8_mask(marks, _mm512_set1_epi8((char)(format.fnuz ? 0xFF : 0xFE))) != 0;
}

/* n codes, 64 at most, and zeros. */
INLINE __m512i amx_load_codes(const uint8_t *from, int64_t n)
{
    return _mm512_maskz_loadu_epi8(n < AMX_CODES ? ((uint64_t)1 << n) - 1 : UINT64_MAX, from);
}

/* Rows of q
 * ---------
 * A row of A tiles that are `step` numbers apart, zeros to a whole number of vectors. Number i of the first and of the
 * second step of a chunk of 64 head dims are 4 i (and, 16 later, 4 i + 2) and 4 i + 1 (4 i + 3): as amx_pack_k leaves
 * K.
 */
static inline void amx_pack_codes(simd_fp8 format, const uint8_t *x, int64_t dims, uint16_t *to, int64_t step)
{
    enum { NAN_OF_BF16 = 0x7FC0 };
    const amx_decoder of = amx_decoder_of_codes();
    __m512i           marks = _mm512_setzero_si512();
    for (int64_t d = 0; d < dims; d += AMX_CODES) {
        const __m512i codes = amx_load_codes(x + d, dims - d);
        marks = amx_nan_marks(marks, codes, format);
        amx_decode(&of, codes, to + d / AMX_STEP * step, to + (d / AMX_STEP + 1) * step);
    }
    for (int64_t d = 0; amx_nan_seen(marks, format) && d < dims; d++)
        if (tile_is_nan(x[d], format))
            to[(d / AMX_CODES * 2 + d % 2) * step + d % AMX_CODES / 4 * 2 + d / 2 % 2] = NAN_OF_BF16;
}

#define EVENS(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)

/* The same of fp32 numbers: the tiles of the terms follow each other. x has zeros up to a whole number of vectors. */
static inline void amx_pack_numbers(const float *x, int64_t dims, int64_t terms, uint16_t *to)
{
    for (int64_t d = 0; d < dims; d += AMX_CODES, to += 2 * terms * AMX_TILE) {
        const vfloat a = simd_load(x + d), b = simd_load(x + d + 16);
        const vfloat c = simd_load(x + d + 32), e = simd_load(x + d + 48);
        const vfloat even[2] = { EVENS(a, b), EVENS(c, e) }, odd[2] = { ODDS(a, b), ODDS(c, e) };
        amx_split(EVENS(even[0], even[1]), ODDS(even[0], even[1]), terms, to);
        amx_split(EVENS(odd[0], odd[1]), ODDS(odd[0], odd[1]), terms, to + terms * AMX_TILE);
    }
}

/* Panels of K and V
 * -----------------
 * 64 head dims of sixteen keys: two tiles of a column. Fours of head dims are transposed as they come, so that a pair
 * is what amx_decode finds in one: dims 4 i and 4 i + 2 in the first tile, 4 i + 1 and 4 i + 3 in the second.
 */
INLINE __m512i amx_pack_k16(const amx_decoder *of, simd_fp8 format, const uint8_t *const *row, int64_t d, __m512i marks,
                            uint16_t *to)
{
    EACH (n, AMX_CODES / 16) {
        __m512i x[4]; /* sixteen bytes of keys i, i + 4, i + 8, i + 12 */
        EACH (i, 4) {
            x[i] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(row[i] + d + 16 * n)));
            x[i] = _mm512_inserti32x4(x[i], _mm_loadu_si128((const __m128i *)(row[i + 4] + d + 16 * n)), 1);
            x[i] = _mm512_inserti32x4(x[i], _mm_loadu_si128((const __m128i *)(row[i + 8] + d + 16 * n)), 2);
            x[i] = _mm512_inserti32x4(x[i], _mm_loadu_si128((const __m128i *)(row[i + 12] + d + 16 * n)), 3);
        }
        const __m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpacklo_epi32(x[2], x[3]);
        const __m512i c = _mm512_unpackhi_epi32(x[0], x[1]), e = _mm512_unpackhi_epi32(x[2], x[3]);
        const __m512i fours[4] = { _mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b),
                                   _mm512_unpacklo_epi64(c, e), _mm512_unpackhi_epi64(c, e) };
        EACH (i, 4) {
            marks = amx_nan_marks(marks, fours[i], format);
            amx_decode(of, fours[i], to + (4 * n + i) * AMX_STEP, to + AMX_TILE + (4 * n + i) * AMX_STEP);
        }
    }
    return marks;
}

/* A panel of K, AMX_PANEL keys: B tiles [column][step]; true if one of the codes is NaN. */
static inline bool amx_pack_k(simd_fp8 format, const uint8_t *const *row, int64_t dims, uint16_t *to)
{
    const amx_decoder of = amx_decoder_of_codes();
    __m512i           marks = _mm512_setzero_si512();
    const int64_t     whole = dims / AMX_CODES * AMX_CODES;
    for (int i = 0; i < AMX_PANEL; i += AMX_ROWS) {
        for (int64_t d = 0; d < whole; d += AMX_CODES, to += 2 * AMX_TILE)
            marks = amx_pack_k16(&of, format, row + i, d, marks, to);
        if (whole == dims)
            continue;
        uint8_t        rest[AMX_ROWS][AMX_CODES];
        const uint8_t *rest_row[AMX_ROWS];
        for (int r = 0; r < AMX_ROWS; r++) {
            _mm512_storeu_si512(rest[r], amx_load_codes(row[i + r] + whole, dims - whole));
            rest_row[r] = rest[r];
        }
        marks = amx_pack_k16(&of, format, rest_row, 0, marks, to);
        to += 2 * AMX_TILE;
    }
    return amx_nan_seen(marks, format);
}

/* V of one step, AMX_STEP keys: one tile for each column of sixteen head dims, `column` numbers apart, in whole
 * vectors of codes; true if one of the codes is NaN. Keys i and i + 16 are a pair. Head dims c, c + 16, c + 32 and c +
 * 48 stand side by side first, so that interleaving and decoding leave them in four columns.
 */
#define FOUR(c) c, c + 16, c + 1, c + 17, c + 2, c + 18, c + 3, c + 19

static inline bool amx_pack_v(simd_fp8 format, const uint8_t *const *row, int64_t dims, uint16_t *to, int64_t column)
{
    const amx_decoder of = amx_decoder_of_codes();
    __m512i           marks = _mm512_setzero_si512();
    const byte64      order = { FOUR(0), FOUR(32), FOUR(4), FOUR(36), FOUR(8), FOUR(40), FOUR(12), FOUR(44) };
    for (int64_t d = 0; d < dims; d += AMX_CODES, to += 4 * column)
        for (int i = 0; i < AMX_STEP / 2; i++) {
            const __m512i x = _mm512_permutexvar_epi8((__m512i)order, amx_load_codes(row[i] + d, dims - d));
            const __m512i y = _mm512_permutexvar_epi8((__m512i)order, amx_load_codes(row[i + 16] + d, dims - d));
            uint16_t     *at = to + i * AMX_STEP;
            marks = amx_nan_marks(amx_nan_marks(marks, x, format), y, format);
            amx_decode(&of, _mm512_unpacklo_epi16(x, y), at, at + column);
            amx_decode(&of, _mm512_unpackhi_epi16(x, y), at + 2 * column, at + 3 * column);
        }
    return amx_nan_seen(marks, format);
}

#endif
