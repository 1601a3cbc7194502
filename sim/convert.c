/* Small float formats to and from wider ones: convert.h says which. */
#include "convert.h"

#include <math.h>

float sim_value_of_fp8[256], sim_value_of_bf8[256], sim_value_of_fp6[64], sim_value_of_bf6[64];
float sim_value_of_fp4[16], sim_value_of_e5m3[256], sim_value_of_e8m0[256];

/* A format: `exponent` and `mantissa` bits, bias, code of the largest finite value, of Inf and of NaN (0: has none). */
typedef struct format_row {
    float *table;
    int    exponent, mantissa, bias;
    bool   is_signed;
    int    largest, infinity, nan;
} format_row;

static const format_row FORMATS[SIM_SMALL_FORMATS] = {
    [SIM_FP8] = { sim_value_of_fp8, 4, 3, 7, true, 0x7E, 0, 0x7F },
    [SIM_BF8] = { sim_value_of_bf8, 5, 2, 15, true, 0x7B, 0x7C, 0x7E },
    [SIM_FP6] = { sim_value_of_fp6, 2, 3, 1, true, 0x1F, 0, 0 },
    [SIM_BF6] = { sim_value_of_bf6, 3, 2, 3, true, 0x1F, 0, 0 },
    [SIM_FP4] = { sim_value_of_fp4, 2, 1, 1, true, 0x7, 0, 0 },
    [SIM_F16] = { NULL, 5, 10, 15, true, 0x7BFF, 0x7C00, 0x7E00 },
    [SIM_BF16] = { NULL, 8, 7, 127, true, 0x7F7F, 0x7F80, 0x7FC0 },
    [SIM_E5M3] = { sim_value_of_e5m3, 5, 3, 15, false, 0xFE, 0, 0xFF },
    [SIM_E8M0] = { sim_value_of_e8m0, 8, 0, 127, false, 0xFE, 0, 0xFF },
};

int sim_format_bits(sim_format format)
{
    return FORMATS[format].exponent + FORMATS[format].mantissa + FORMATS[format].is_signed;
}

const float *sim_format_table(sim_format format)
{
    return FORMATS[format].table;
}

/* The value of a code by the definition: m * 2^(1 - bias - M) if the exponent field is 0, else (2^M + m) * 2^(e -
 * bias - M). */
static float value_by_definition(sim_format format, uint32_t code)
{
    const format_row *f = &FORMATS[format];
    const int         size = (int)(code & ((1u << (f->exponent + f->mantissa)) - 1u));
    const int         field = size >> f->mantissa, m = size & ((1 << f->mantissa) - 1);
    const bool        negative = f->is_signed && (code >> (f->exponent + f->mantissa) & 1u) != 0;
    double            value;
    if (format == SIM_E8M0) /* no zero: the field 0 is 2^-127 */
        value = ldexp(1.0, field - f->bias);
    else if (field == 0)
        value = ldexp(m, 1 - f->bias - f->mantissa);
    else
        value = ldexp(m + (1 << f->mantissa), field - f->bias - f->mantissa);
    if (f->infinity != 0 && size == f->infinity)
        value = INFINITY;
    else if (f->nan != 0 && size > f->largest)
        value = NAN;
    return (float)(negative ? -value : value);
}

/* Before main, so that no thread has to ask whether the tables are there. */
__attribute__((constructor)) static void fill_tables(void)
{
    for (int format = 0; format < SIM_SMALL_FORMATS; format++) {
        if (FORMATS[format].table == NULL)
            continue;
        for (uint32_t code = 0; code < 1u << sim_format_bits((sim_format)format); code++)
            FORMATS[format].table[code] = value_by_definition((sim_format)format, code);
    }
}

float sim_decode(sim_format format, uint32_t code)
{
    if (format == SIM_F16)
        return sim_f32_of_f16(code & 0xFFFFu);
    if (format == SIM_BF16)
        return sim_f32_of_bf16(code & 0xFFFFu);
    return FORMATS[format].table[code & ((1u << sim_format_bits(format)) - 1u)];
}

/* |x| = units * 2^quantum, where 2^quantum is the last place that the format keeps at x. Then a code is the distance
 * from the smallest normal exponent, in mantissas, plus the units: carries of rounding move on to the exponent by
 * themselves. */
static uint32_t encode(sim_format format, double x, bool stochastic, uint32_t seed, bool saturate)
{
    const format_row *f = &FORMATS[format];
    const uint32_t    sign = f->is_signed && signbit(x) ? 1u << (f->exponent + f->mantissa) : 0;
    if (isnan(x))
        return sign | (uint32_t)(f->nan != 0 ? f->nan : f->largest);
    const double   size = fabs(x);
    const int      too_large = f->infinity != 0 ? f->infinity : f->nan != 0 ? f->nan : f->largest;
    const uint32_t overflow = sign | (uint32_t)(saturate ? f->largest : too_large);
    if (isinf(x))
        return overflow;
    int exponent;
    frexp(size, &exponent); /* size in [2^(exponent - 1), 2^exponent) */
    const int smallest = 1 - f->bias;
    const int above = size == 0 || exponent - 1 < smallest ? 0 : exponent - 1 - smallest;
    if (above > 1 << f->exponent)
        return overflow;
    const double  units = ldexp(size, f->mantissa - smallest - above);
    const double  whole = stochastic ? floor(units + (double)seed * 0x1p-32) : nearbyint(units);
    const int64_t code = ((int64_t)above << f->mantissa) + (int64_t)whole;
    return code > f->largest ? overflow : sign | (uint32_t)code;
}

uint32_t sim_encode(sim_format format, double x, bool saturate)
{
    return encode(format, x, false, 0, saturate);
}

uint32_t sim_encode_stochastic(sim_format format, double x, uint32_t seed, bool saturate)
{
    return encode(format, x, true, seed, saturate);
}
