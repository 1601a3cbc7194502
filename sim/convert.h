/* Small float formats: what matrix.c and the conversions of valu.c share.
 *
 * FP8 E4M3FN (bias 7, max 448, NaN S.1111.111, no Inf), BF8 E5M2 (bias 15, IEEE-like), FP6 E2M3 (bias 1, max 7.5),
 * BF6 E3M2 (bias 3, max 28), FP4 E2M1 (max 6), F16, BF16, and the block scales E8M0 (2^(x - 127), 0xFF NaN) and E5M3
 * (unsigned, bias 15, 0xFF NaN, max 114688). OCP OFP8 and OCP MX; CDNA5 for E5M3.
 */
#ifndef ETALON_SIM_CONVERT_H
#define ETALON_SIM_CONVERT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The first five in the order of cbsz, blgp and MATRIX_FMT_*. */
typedef enum sim_format {
    SIM_FP8,
    SIM_BF8,
    SIM_FP6,
    SIM_BF6,
    SIM_FP4,
    SIM_F16,
    SIM_BF16,
    SIM_E5M3,
    SIM_E8M0,
    SIM_SMALL_FORMATS
} sim_format;

/* Every code's value: 256, 256, 64, 64, 16 entries for FP8 .. FP4, 256 for E5M3 and E8M0; filled before main. */
extern float sim_value_of_fp8[256], sim_value_of_bf8[256], sim_value_of_fp6[64], sim_value_of_bf6[64];
extern float sim_value_of_fp4[16], sim_value_of_e5m3[256], sim_value_of_e8m0[256];

/* The table of a format of at most 8 bits, and how many bits a code has. */
const float *sim_format_table(sim_format format);
int sim_format_bits(sim_format format);

/* The value of a code; bits above the format's width are ignored. */
float sim_decode(sim_format format, uint32_t code);

/* x to the nearest code, ties to even. Out of range: formats without Inf and NaN (FP6, BF6, FP4) take the largest;
 * FP8 takes NaN, BF8 and F16 Inf, unless `saturate` (MODE.FP16_OVFL), where the largest is taken for them, also for
 * an infinite x. Not for the scale formats. */
uint32_t sim_encode(sim_format format, double x, bool saturate);

/* The same with stochastic rounding: x in units of the last place kept, plus seed / 2^32, rounded toward zero. */
uint32_t sim_encode_stochastic(sim_format format, double x, uint32_t seed, bool saturate);

static inline float sim_float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t sim_bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline double sim_double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static inline uint64_t sim_bits_of_double(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static inline float sim_f32_of_bf16(uint32_t h)
{
    return sim_float_of(h << 16);
}

/* Exact. The product by 2^112 moves the exponent's bias, of denormals too; Inf and NaN keep their payload. */
static inline float sim_f32_of_f16(uint32_t h)
{
    const uint32_t size = h & 0x7FFFu;
    const uint32_t finite = sim_bits_of(sim_float_of(size << 13) * 0x1p112f);
    return sim_float_of((h & 0x8000u) << 16 | (size >= 0x7C00u ? 0x7F800000u | size << 13 : finite));
}

/* Nearest, ties to even; a NaN becomes quiet and keeps the payload's high bits. */
static inline uint32_t sim_bf16_of_f32(float f)
{
    const uint32_t x = sim_bits_of(f);
    const uint32_t rounded = (x + 0x7FFFu + (x >> 16 & 1u)) >> 16;
    return (x & 0x7FFFFFFFu) > 0x7F800000u ? (x >> 16 | 0x40u) : rounded;
}

/* Nearest, ties to even; overflow gives Inf; a NaN becomes quiet and keeps the payload's high bits. Denormal results:
 * adding half moves the f16 quantum 2^-24 to the last place of an f32 in [0.5, 1), where the sum rounds. */
static inline uint32_t sim_f16_of_f32(float f)
{
    const uint32_t x = sim_bits_of(f), sign = x >> 16 & 0x8000u, size = x & 0x7FFFFFFFu;
    const uint32_t normal = (size - 0x38000000u + 0xFFFu + (size >> 13 & 1u)) >> 13;
    const uint32_t denormal = sim_bits_of(sim_float_of(size) + 0.5f) - 0x3F000000u;
    uint32_t       to = size < 0x38800000u ? denormal : normal;
    to = size >= 0x477FF000u ? 0x7C00u : to;
    return sign | (size > 0x7F800000u ? (0x7E00u | (size >> 13 & 0x3FFu)) : to);
}

#endif
