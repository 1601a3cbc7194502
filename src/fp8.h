/* Conversions between fp32 and the storage formats. Inline: the innermost loops of every host kernel call them.
 *
 * Every value of E4M3FN, E4M3FNUZ, E5M2, E8M0 and BF16 is exact in fp32 (E8M0's smallest, 2^-127, as a subnormal), so
 * decoding is exact. Encoding rounds to nearest, ties to even. What lies beyond the largest finite value follows
 * `mode`.
 */
#ifndef ETALON_FP8_H
#define ETALON_FP8_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum fp8_mode {
    FP8_SATURATE = 0, /* out of range, infinity included: the largest finite value with the sign; NaN stays NaN */
    FP8_NAN           /* out of range, infinity included: NaN, as AMD's v_cvt_pk_fp8_f32 does without FP16_OVFL;
                         E5M2 has infinity, and takes it */
} fp8_mode;

static inline uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float f32_of_bf16(uint16_t x)
{
    return f32_of_bits((uint32_t)x << 16);
}

/* Round to nearest even; overflow goes to infinity as in IEEE; NaN keeps its sign and becomes quiet. */
static inline uint16_t bf16_of_f32(float x)
{
    const uint32_t bits = bits_of_f32(x);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline float f32_of_f16(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16;
    const uint32_t exponent = x >> 10 & 0x1F, mantissa = x & 0x3FF;
    if (exponent == 0)
        return f32_of_bits(sign | bits_of_f32((float)mantissa * 0x1p-24f));
    if (exponent == 0x1F)
        return f32_of_bits(sign | 0x7F800000 | mantissa << 13);
    return f32_of_bits(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
}

/* A sign bit, exponent bits, `mantissa` bits, and the given exponent bias. */
typedef struct fp8_format {
    int     mantissa;
    int     bias;
    uint8_t max;  /* code of the largest finite value */
    uint8_t over; /* code of what lies beyond it in FP8_NAN mode, without its sign */
    uint8_t nan;  /* code of NaN, without its sign */
    bool    fnuz; /* no negative zero: its code is the only NaN */
} fp8_format;

static const fp8_format fp8_e4m3fn = { 3, 7, 0x7E, 0x7F, 0x7F, false };
static const fp8_format fp8_e4m3fnuz = { 3, 8, 0x7F, 0x80, 0x80, true };
static const fp8_format fp8_e5m2 = { 2, 15, 0x7B, 0x7C, 0x7E, false };

/* The finite value of a code; the caller has dealt with NaN and infinity. */
static inline float fp8_finite(uint8_t x, int mantissa, int bias)
{
    const uint32_t sign = (uint32_t)(x & 0x80) << 24;
    const uint32_t magnitude = x & 0x7F;
    const uint32_t normal = (magnitude << (23 - mantissa)) + ((uint32_t)(127 - bias) << 23);
    const float    quantum = f32_of_bits((uint32_t)(127 + 1 - bias - mantissa) << 23);
    const uint32_t subnormal = bits_of_f32((float)magnitude * quantum);
    return f32_of_bits(sign | (magnitude >> mantissa != 0 ? normal : subnormal));
}

static inline float f32_of_e4m3fn(uint8_t x)
{
    return (x & 0x7F) == 0x7F ? NAN : fp8_finite(x, 3, 7);
}

static inline float f32_of_e4m3fnuz(uint8_t x)
{
    return x == 0x80 ? NAN : fp8_finite(x, 3, 8);
}

static inline float f32_of_e5m2(uint8_t x)
{
    if ((x & 0x7F) == 0x7C)
        return x & 0x80 ? -INFINITY : INFINITY;
    return (x & 0x7F) > 0x7C ? NAN : fp8_finite(x, 2, 15);
}

static inline float f32_of_e8m0(uint8_t x)
{
    if (x == 0xFF)
        return NAN;
    return f32_of_bits(x == 0 ? 0x00400000u /* 2^-127 */ : (uint32_t)x << 23);
}

/* Round to nearest even in integers, so that the caller's rounding mode has no say. */
static inline uint8_t fp8_of_f32(float x, const fp8_format *f, fp8_mode mode)
{
    const uint32_t bits = bits_of_f32(x), magnitude = bits & 0x7FFFFFFF;
    const uint8_t  sign = (uint8_t)(bits >> 24 & 0x80);
    if (magnitude > 0x7F800000)
        return f->fnuz ? f->nan : (uint8_t)(sign | f->nan);
    uint32_t code;
    if (magnitude < (uint32_t)(127 + 1 - f->bias) << 23) { /* below the smallest normal: multiples of one quantum */
        const float    quanta = f32_of_bits(magnitude) * f32_of_bits((uint32_t)(127 - 1 + f->bias + f->mantissa) << 23);
        const uint32_t whole = (uint32_t)quanta;
        const float    rest = quanta - (float)whole;
        code = whole + (rest > 0.5f || (rest == 0.5f && (whole & 1)));
    } else {
        const int      drop = 23 - f->mantissa;
        const uint32_t half = (1u << (drop - 1)) - 1 + (magnitude >> drop & 1);
        code = ((magnitude + half) >> drop) - ((uint32_t)(127 - f->bias) << f->mantissa);
    }
    if (code > f->max)
        code = mode == FP8_SATURATE ? f->max : f->over;
    if (f->fnuz && code == 0) /* no -0; NaN, 0x80, holds the sign bit anyway */
        return 0;
    return (uint8_t)(sign | code);
}

static inline uint8_t e4m3fn_of_f32(float x, fp8_mode mode)
{
    return fp8_of_f32(x, &fp8_e4m3fn, mode);
}

static inline uint8_t e4m3fnuz_of_f32(float x, fp8_mode mode)
{
    return fp8_of_f32(x, &fp8_e4m3fnuz, mode);
}

static inline uint8_t e5m2_of_f32(float x, fp8_mode mode)
{
    return fp8_of_f32(x, &fp8_e5m2, mode);
}

/* The smallest power of two that is at least x, for x > 0, within [2^-127, 2^127]; NaN, negative x and zero give NaN.
 * */
static inline uint8_t e8m0_ceil_of_f32(float x)
{
    if (!(x > 0.0f))
        return 0xFF;
    const uint32_t bits = bits_of_f32(x);
    if (bits <= 0x00400000)
        return 0;
    const uint32_t exponent = (bits >> 23) + ((bits & 0x7FFFFF) != 0);
    return (uint8_t)(exponent < 0xFE ? exponent : 0xFE);
}

#endif
