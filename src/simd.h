/* Vectors of fp32 in the compiler's own types: SIMD_BYTES is 16, 32 or 64, set by the file that includes this.
 *
 * Everything here is static: each instruction set compiles its own copy with its own flags.
 */
#ifndef ETALON_SIMD_H
#define ETALON_SIMD_H

#include "fp8.h"

#include <etalon/types.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif
#ifdef __ARM_NEON
#include <arm_neon.h>
#endif

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define SIMD_FUSED 1
#endif

enum { SIMD_LANES = SIMD_BYTES / 4 };

/* A loop over what registers hold: arrays are registers only where nothing is left of the loop, and with -O2 compilers leave
 * some.
 */
#ifdef __clang__
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)
#else
#define EACH(i, count) _Pragma("GCC unroll 64") for (int i = 0; i < (count); i++)
#endif

typedef float    vfloat __attribute__((vector_size(SIMD_BYTES)));
typedef double   vdouble __attribute__((vector_size(2 * SIMD_BYTES)));
typedef int32_t  vint __attribute__((vector_size(SIMD_BYTES)));
typedef uint32_t vuint __attribute__((vector_size(SIMD_BYTES)));
typedef uint8_t  byte16 __attribute__((vector_size(16))); /* sixteen codes */

static inline vfloat simd_load(const float *from)
{
    vfloat x;
    memcpy(&x, from, sizeof x);
    return x;
}

static inline void simd_store(float *to, vfloat x)
{
    memcpy(to, &x, sizeof x);
}

static inline vfloat simd_set(float x)
{
    return x - (vfloat){ 0 };
}

static inline vfloat simd_select(vint mask, vfloat yes, vfloat no)
{
    return (vfloat)(((vint)yes & mask) | ((vint)no & ~mask));
}

/* x is computed here and now: compilers that move a chain of multiply-adds apart run out of registers. */
static inline void simd_settle(vfloat *x)
{
#if SIMD_BYTES == 32
    __asm__("" : "+x"(*x));
#elif SIMD_BYTES == 64
    __asm__("" : "+v"(*x));
#else
    (void)x;
#endif
}

/* What is loaded and stored after this in the source is so in the program. */
static inline void simd_in_order(void)
{
    __asm__ volatile("" ::: "memory");
}

typedef float float4 __attribute__((vector_size(16)));

/* Quarters first, then halves: log2(lanes) additions deep. */
static inline float simd_sum(vfloat x)
{
    float4 part[SIMD_LANES / 4];
    memcpy(part, &x, sizeof part);
    for (int n = SIMD_LANES / 8; n > 0; n /= 2)
        EACH (i, n)
            part[i] += part[i + n];
    const float4 two = part[0] + __builtin_shufflevector(part[0], part[0], 2, 3, 0, 1);
    return two[0] + two[1];
}

#if SIMD_BYTES >= 32
typedef float float8 __attribute__((vector_size(32)));

/* Sums of eight vectors side by side. */
static inline float8 simd_sum8(const vfloat *x)
{
    float8 a[8];
#if SIMD_BYTES == 64
    EACH (i, 8)
        a[i] = __builtin_shufflevector(x[i], x[i], 0, 1, 2, 3, 4, 5, 6, 7) +
               __builtin_shufflevector(x[i], x[i], 8, 9, 10, 11, 12, 13, 14, 15);
#else
    memcpy(a, x, sizeof a);
#endif
    EACH (i, 4)
        a[i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13) +
               __builtin_shufflevector(a[2 * i], a[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    EACH (i, 2)
        a[i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
               __builtin_shufflevector(a[2 * i], a[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(a[0], a[1], 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(a[0], a[1], 4, 5, 6, 7, 12, 13, 14, 15);
}
#endif

/* x > m ? x : m, which is m where one of them is NaN: what the instruction does, and compilers need not see. */
static inline vfloat simd_max(vfloat x, vfloat m)
{
#if SIMD_BYTES == 64
    return (vfloat)_mm512_max_ps((__m512)x, (__m512)m);
#elif SIMD_BYTES == 32
    return (vfloat)_mm256_max_ps((__m256)x, (__m256)m);
#elif defined(__SSE2__)
    return (vfloat)_mm_max_ps((__m128)x, (__m128)m);
#else
    return simd_select(x > m, x, m);
#endif
}

/* The greatest lane, none being NaN. */
static inline float simd_greatest(vfloat x)
{
    float lane[SIMD_LANES];
    simd_store(lane, x);
    for (int n = SIMD_LANES / 2; n > 0; n /= 2)
        EACH (i, n)
            lane[i] = lane[i] > lane[i + n] ? lane[i] : lane[i + n];
    return lane[0];
}

/* 2^x for x <= 0, to 1 ulp (tests/check_simd.c); 0 below -126.5, and from there to -126 subnormal; NaN stays.
 *
 * x = n + f with whole n and |f| <= 1/2; 2^f = 1 + f q(f), q of degree 5 with the least relative error of such
 * polynomials, 2^-28.3 with fp32 coefficients. The sum that rounds x to n holds n + 127, an exponent of fp32, in its
 * last bits; -127 gives the exponent of 0.
 */
static inline vfloat simd_exp2(vfloat x)
{
    const float  shift = 0x1.8p23f + 127.0f;
    const vfloat safe = simd_max(simd_set(-127.0f), x);
    const vfloat whole = safe + shift, f = safe - (whole - shift);
    const vfloat scale = (vfloat)((vuint)whole << 23);
    vfloat       q = simd_set(0x1.416b52p-13f);
    q = q * f + 0x1.5f082ep-10f;
    q = q * f + 0x1.3b2de0p-7f;
    q = q * f + 0x1.c6af7cp-5f;
    q = q * f + 0x1.ebfbdcp-3f;
#ifdef SIMD_FUSED
    q = q * f + 0x1.62e43p-1f;
    return (q * f + 1.0f) * scale;
#else /* without fused multiply-add the last steps round too often: take them in fp64 */
    const vdouble wide = __builtin_convertvector(f, vdouble);
    const vdouble power = 1.0 + wide * (0x1.62e43p-1 + wide * __builtin_convertvector(q, vdouble));
    return __builtin_convertvector(power, vfloat) * scale;
#endif
}

/* Where an FP8 format stands beside fp16: a code's bits, widened, are the fp16 number code * 2^-shift. */
typedef struct simd_fp8 {
    uint8_t nan; /* NaN is the codes with (code & mask) == nan */
    uint8_t mask;
    float   unit; /* what decoded values are multiples of: value = decoded * unit */
    bool    fnuz;
} simd_fp8;

static inline simd_fp8 simd_fp8_of(etalon_dtype dtype)
{
    if (dtype == ETALON_E4M3FNUZ)
        return (simd_fp8){ .nan = 0x80, .mask = 0xFF, .unit = 0x1p7f, .fnuz = true };
    return (simd_fp8){ .nan = 0x7F, .mask = 0x7F, .unit = 0x1p8f, .fnuz = false };
}

/* Vectors of sixteen numbers. */
enum { SIMD_SIXTEEN = 16 / SIMD_LANES };

/* Sixteen codes to fp32, in units of simd_fp8.unit; what comes of a NaN code is finite and means nothing. */
static inline void simd_decode16(byte16 codes, vfloat *to)
{
#ifdef __F16C__
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16((__m128i)codes), 7);
    const __m256i half = _mm256_and_si256(wide, _mm256_set1_epi16((short)0xBFFF));
#if SIMD_BYTES == 64
    to[0] = (vfloat)_mm512_cvtph_ps(half);
#else
    to[0] = (vfloat)_mm256_cvtph_ps(_mm256_castsi256_si128(half));
    to[1] = (vfloat)_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
#endif
#elif defined(__ARM_NEON) && SIMD_BYTES == 16
    const uint8x16_t bytes = (uint8x16_t)codes;
    const uint16x8_t wide[2] = { vshll_n_u8(vget_low_u8(bytes), 8), vshll_high_n_u8(bytes, 8) };
    EACH (i, 2) {
        const int16x8_t   shifted = vshrq_n_s16(vreinterpretq_s16_u16(wide[i]), 1);
        const float16x8_t half = vreinterpretq_f16_s16(vbicq_s16(shifted, vdupq_n_s16(0x4000)));
        to[2 * i] = (vfloat)vcvt_f32_f16(vget_low_f16(half));
        to[2 * i + 1] = (vfloat)vcvt_high_f32_f16(half);
    }
#else
    float x[16];
    EACH (i, 16)
        x[i] = 0x1p-8f * fp8_finite(codes[i], 3, 7);
    memcpy(to, x, sizeof x);
#endif
}

#if SIMD_BYTES >= 32
typedef uint8_t byte32 __attribute__((vector_size(32)));

/* Vectors of thirty-two numbers. */
enum { SIMD_THIRTY_TWO = 32 / SIMD_LANES };

typedef uint8_t  vbyte __attribute__((vector_size(SIMD_BYTES)));
typedef uint16_t vword __attribute__((vector_size(SIMD_BYTES)));
typedef int16_t  vshort __attribute__((vector_size(SIMD_BYTES)));

/* fp16 numbers, two vectors of fp32. By memory: converted from there, they leave port 5 to the shuffles. */
static inline void simd_from_fp16(vword half, vfloat *to)
{
    __asm__("" : "+m"(half));
#if SIMD_BYTES == 64
    const __m256i *at = (const __m256i *)&half;
    EACH (i, 2)
        to[i] = (vfloat)_mm512_cvtph_ps(at[i]);
#else
    const __m128i *at = (const __m128i *)&half;
    EACH (i, 2)
        to[i] = (vfloat)_mm256_cvtph_ps(at[i]);
#endif
}

/* Codes two by two: those in the lower bytes of the words, and those in the upper ones, two vectors each. */
static inline void simd_decode_words(vword codes, vfloat *lower, vfloat *upper)
{
    simd_from_fp16((vword)((vshort)(codes << 8) >> 1) & 0xBFFF, lower);
    simd_from_fp16((vword)((vshort)codes >> 1) & 0xBF80, upper);
}

/* Thirty-two codes at once. */
static inline void simd_decode32(byte32 codes, vfloat *to)
{
#if SIMD_BYTES == 64
    const vword wide = (vword)_mm512_slli_epi16(_mm512_cvtepi8_epi16((__m256i)codes), 7);
    simd_from_fp16(wide & 0xBFFF, to);
#else
    const vword low = (vword)_mm256_unpacklo_epi8(_mm256_setzero_si256(), (__m256i)codes); /* 0 to 7, 16 to 23 */
    const vword high = (vword)_mm256_unpackhi_epi8(_mm256_setzero_si256(), (__m256i)codes);
    vfloat      x[2], y[2];
    simd_from_fp16((vword)((vshort)low >> 1) & 0xBFFF, x);
    simd_from_fp16((vword)((vshort)high >> 1) & 0xBFFF, y);
    to[0] = x[0];
    to[1] = y[0];
    to[2] = x[1];
    to[3] = y[1];
#endif
}

/* Thirty-two codes into memory; step after step, for callers whose sums leave four registers or fewer. */
static inline void simd_decode32_to(byte32 codes, float *to)
{
#if SIMD_BYTES == 64
    vfloat x[SIMD_THIRTY_TWO];
    simd_decode32(codes, x);
    EACH (v, SIMD_THIRTY_TWO)
        simd_store(to + v * SIMD_LANES, x[v]);
    simd_in_order();
#else
    const __m256i  mask = _mm256_set1_epi16((short)0xBFFF);
    __m256i        half[2];
    const __m128i *at = (const __m128i *)half; /* codes 0 to 7, 16 to 23, 8 to 15, 24 to 31 */
    half[0] = _mm256_srai_epi16(_mm256_unpacklo_epi8(_mm256_setzero_si256(), (__m256i)codes), 1);
    half[0] = _mm256_and_si256(half[0], mask);
    __asm__ volatile("" : "+m"(half[0]));
    half[1] = _mm256_srai_epi16(_mm256_unpackhi_epi8(_mm256_setzero_si256(), (__m256i)codes), 1);
    half[1] = _mm256_and_si256(half[1], mask);
    __asm__ volatile("" : "+m"(half[1]));
    EACH (v, SIMD_THIRTY_TWO) {
        simd_store(to + v * SIMD_LANES, (vfloat)_mm256_cvtph_ps(at[v % 2 * 2 + v / 2]));
        simd_in_order();
    }
#endif
}
#endif

/* Sixteen codes into memory. */
static inline void simd_decode16_to(byte16 codes, float *to)
{
    vfloat x[SIMD_SIXTEEN];
    simd_decode16(codes, x);
    EACH (v, SIMD_SIXTEEN)
        simd_store(to + v * SIMD_LANES, x[v]);
}

#endif
