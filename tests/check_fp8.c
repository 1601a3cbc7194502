/* src/fp8.h, exhaustively, against the definitions of the formats: a list of the values of each by ldexp in double, and
 * the nearest of them by bisection between neighbours. Loops report a mismatch only: millions of assertions would take
 * minutes. */
#include "testing.h"

#include "fp8.h"

#include <fenv.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* A format as the standards describe it. */
typedef struct definition {
    const char *name;
    float (*decode)(uint8_t);
    uint8_t (*encode)(float, fp8_mode);
    int     mantissa, bias;
    uint8_t finite; /* finite codes without a sign are 0 to this one */
    bool    has_infinity;
    bool    fnuz;      /* 0x80 is NaN, and zero has no sign */
    uint8_t beyond[2]; /* code without a sign for what rounds beyond the largest value, by fp8_mode */
} definition;

static const definition formats[] = {
    { "e4m3fn", f32_of_e4m3fn, e4m3fn_of_f32, 3, 7, 0x7E, false, false, { 0x7E, 0x7F } },
    { "e4m3fnuz", f32_of_e4m3fnuz, e4m3fnuz_of_f32, 3, 8, 0x7F, false, true, { 0x7F, 0x80 } },
    { "e5m2", f32_of_e5m2, e5m2_of_f32, 2, 15, 0x7B, true, false, { 0x7B, 0x7C } },
};

static const fp8_mode modes[] = { FP8_SATURATE, FP8_NAN };

/* The value of a code without its sign, as if every exponent held numbers. */
static double defined_value(const definition *f, int magnitude)
{
    const int exponent = magnitude >> f->mantissa, fraction = magnitude & ((1 << f->mantissa) - 1);
    if (exponent == 0)
        return ldexp(fraction, 1 - f->bias - f->mantissa);
    return ldexp((1 << f->mantissa) + fraction, exponent - f->bias - f->mantissa);
}

static bool defined_nan(const definition *f, int code)
{
    const int magnitude = code & 0x7F;
    return f->fnuz ? code == 0x80 : magnitude > f->finite && !(f->has_infinity && magnitude == f->finite + 1);
}

/* Between code and code + 1; past the largest finite code, where it would be if the format went on. */
static void fill_middles(const definition *f, double *middle)
{
    for (int code = 0; code <= f->finite; code++)
        middle[code] = (defined_value(f, code) + defined_value(f, code + 1)) / 2;
}

/* The code nearest to a magnitude, ties to the even code; finite + 1 for what rounds beyond the largest. */
static int nearest(const definition *f, const double *middle, double magnitude)
{
    int low = 0, high = f->finite + 1;
    while (low < high) {
        const int  at = (low + high) / 2;
        const bool above = magnitude > middle[at] || (magnitude == middle[at] && at % 2 == 1);
        if (above)
            low = at + 1;
        else
            high = at;
    }
    return low;
}

static int defined_code(const definition *f, const double *middle, float x, fp8_mode mode)
{
    const int sign = signbit(x) ? 0x80 : 0;
    const int magnitude = nearest(f, middle, fabs((double)x));
    const int code = magnitude > f->finite ? f->beyond[mode] : magnitude;
    return f->fnuz && (code == 0 || code == 0x80) ? code : sign | code;
}

static void check_encode(const definition *f, const double *middle, float x)
{
    for (int m = 0; m < COUNT(modes); m++) {
        const int got = f->encode(x, modes[m]);
        if (isnan(x) ? !defined_nan(f, got) || (!f->fnuz && (got & 0x80) != (signbit(x) ? 0x80 : 0))
                     : got != defined_code(f, middle, x, modes[m]))
            ck_abort_msg("%s mode %d of %a: 0x%02X, wanted 0x%02X", f->name, m, (double)x, got,
                         isnan(x) ? 0xFF : defined_code(f, middle, x, modes[m]));
    }
}

/* fp32 values in the middle of a rounding interval, at its ends and beside them: 2^20 upper parts, these lower ones. */
static const uint32_t lower[] = { 0, 1, 0x7FF, 0x800, 0x801, 0xFFF };

START_TEST(decode_fp8)
{
    const definition *f = &formats[_i];
    for (int code = 0; code < 256; code++) {
        const float  got = f->decode((uint8_t)code);
        const int    magnitude = code & 0x7F;
        const double size =
            f->has_infinity && magnitude == f->finite + 1 ? (double)INFINITY : defined_value(f, magnitude);
        if (defined_nan(f, code))
            ck_assert(isnan(got));
        else {
            ck_assert_double_eq(fabs((double)got), size);
            ck_assert_int_eq(signbit(got) != 0, code >= 0x80);
        }
    }
}
END_TEST

START_TEST(largest_values)
{
    ck_assert_float_eq(f32_of_e4m3fn(0x7E), 448);
    ck_assert_float_eq(f32_of_e4m3fnuz(0x7F), 240);
    ck_assert_float_eq(f32_of_e5m2(0x7B), 57344);
    ck_assert_float_eq(f32_of_e4m3fn(0x01), 0x1p-9f);
    ck_assert_float_eq(f32_of_e4m3fnuz(0x01), 0x1p-10f);
    ck_assert_float_eq(f32_of_e5m2(0x01), 0x1p-16f);
    ck_assert_float_eq(f32_of_e5m2(0x7C), INFINITY);
    ck_assert_float_eq(f32_of_e5m2(0xFC), -INFINITY);
}
END_TEST

START_TEST(decode_e8m0)
{
    for (int code = 0; code < 255; code++)
        ck_assert_double_eq((double)f32_of_e8m0((uint8_t)code), ldexp(1, code - 127));
    ck_assert(isnan(f32_of_e8m0(0xFF)));
}
END_TEST

/* Codes come back from their values. */
START_TEST(round_trip)
{
    const definition *f = &formats[_i];
    for (int code = 0; code < 256; code++) {
        const float x = f->decode((uint8_t)code);
        if (!isnan(x) && !isinf(x))
            for (int m = 0; m < COUNT(modes); m++)
                ck_assert_int_eq(f->encode(x, modes[m]), code);
    }
}
END_TEST

START_TEST(encode_from_bf16)
{
    double middle[256];
    fill_middles(&formats[_i], middle);
    for (uint32_t code = 0; code < 65536; code++)
        check_encode(&formats[_i], middle, f32_of_bits(code << 16));
}
END_TEST

START_TEST(encode_from_f32)
{
    double middle[256];
    fill_middles(&formats[_i], middle);
    for (uint32_t upper = 0; upper < 1 << 20; upper++)
        for (int i = 0; i < COUNT(lower); i++)
            check_encode(&formats[_i], middle, f32_of_bits(upper << 12 | lower[i]));
}
END_TEST

/* At every boundary between two codes, and one fp32 to each side of it. */
START_TEST(encode_at_boundaries)
{
    const definition *f = &formats[_i];
    double            middle[256];
    fill_middles(f, middle);
    for (int code = 0; code <= f->finite; code++)
        for (int sign = 0; sign < 2; sign++) {
            const float x = (float)(sign ? -middle[code] : middle[code]);
            ck_assert_double_eq(fabs((double)x), middle[code]);
            check_encode(f, middle, x);
            check_encode(f, middle, nextafterf(x, 0));
            check_encode(f, middle, nextafterf(x, 2 * x));
        }
}
END_TEST

/* The encoders give the same codes whatever the caller's rounding mode is. */
START_TEST(rounding_mode_has_no_say)
{
    static const int directions[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    for (uint32_t upper = 0; upper < 1 << 16; upper++)
        for (int i = 0; i < COUNT(lower); i++) {
            const volatile float x = f32_of_bits(upper << 16 | lower[i] << 4);
            uint32_t             first = 0;
            for (int d = 0; d < COUNT(directions); d++) {
                fesetround(directions[d]);
                uint32_t codes = bf16_of_f32(x);
                for (int f = 0; f < COUNT(formats); f++)
                    codes = codes * 251 + formats[f].encode(x, FP8_SATURATE);
                codes = codes * 251 + e8m0_ceil_of_f32(x);
                fesetround(FE_TONEAREST);
                first = d == 0 ? codes : first;
                if (codes != first)
                    ck_abort_msg("%a: other codes in rounding mode %d", (double)x, directions[d]);
            }
        }
}
END_TEST

/* ---- bf16 and f16 ---- */

START_TEST(decode_bf16)
{
    for (int code = 0; code < 65536; code++) {
        const int    exponent = code >> 7 & 0xFF, fraction = code & 0x7F;
        const float  got = f32_of_bf16((uint16_t)code);
        const double size = exponent == 0 ? ldexp(fraction, -126 - 7) : ldexp(128 + fraction, exponent - 127 - 7);
        const bool   right = exponent < 255 ? fabs((double)got) == size : fraction == 0 ? isinf(got) : isnan(got);
        if (!right || (signbit(got) != 0) != (code >= 0x8000))
            ck_abort_msg("0x%04X: %a", code, (double)got);
    }
}
END_TEST

START_TEST(decode_f16)
{
    for (int code = 0; code < 65536; code++) {
        const int    exponent = code >> 10 & 0x1F, fraction = code & 0x3FF;
        const float  got = f32_of_f16((uint16_t)code);
        const double size = exponent == 0 ? ldexp(fraction, -14 - 10) : ldexp(1024 + fraction, exponent - 15 - 10);
        const bool   right = exponent < 31 ? fabs((double)got) == size : fraction == 0 ? isinf(got) : isnan(got);
        if (!right || (signbit(got) != 0) != (code >= 0x8000))
            ck_abort_msg("0x%04X: %a", code, (double)got);
    }
}
END_TEST

/* |x| as a number of quanta (the spacing of bf16 there), rounded to nearest even. */
static double bf16_magnitude(double x)
{
    int exponent;
    frexp(x, &exponent); /* x = f 2^exponent, 0.5 <= f < 1 */
    const int    quantum = (exponent - 1 > -126 ? exponent - 1 : -126) - 7;
    const double quanta = ldexp(x, -quantum), whole = floor(quanta), rest = quanta - whole;
    const double rounded = whole + (rest > 0.5 || (rest == 0.5 && fmod(whole, 2) == 1) ? 1 : 0);
    return rounded * ldexp(1, quantum) >= 0x1p128 ? (double)INFINITY : ldexp(rounded, quantum);
}

START_TEST(encode_bf16)
{
    for (uint32_t upper = 0; upper < 1 << 20; upper++)
        for (int i = 0; i < COUNT(lower); i++) {
            const float    x = f32_of_bits(upper << 12 | lower[i]);
            const uint16_t got = bf16_of_f32(x);
            const float    back = f32_of_bf16(got);
            const bool     right = isnan(x) ? isnan(back) && (got & 0x40) != 0 /* quiet */
                                            : fabs((double)back) == bf16_magnitude(fabs((double)x));
            if (!right || (signbit(back) != 0) != (signbit(x) != 0))
                ck_abort_msg("%a: 0x%04X", (double)x, got);
        }
}
END_TEST

START_TEST(bf16_round_trip)
{
    for (uint32_t code = 0; code < 65536; code++) {
        const float x = f32_of_bf16((uint16_t)code);
        if (!isnan(x) && bf16_of_f32(x) != code)
            ck_abort_msg("0x%04X", code);
    }
}
END_TEST

/* Known ties and neighbours; 0x8000 below the upper half is half a unit. */
START_TEST(bf16_table)
{
    static const struct {
        uint32_t x;
        uint16_t want;
    } table[] = {
        { 0x3F800000, 0x3F80 },
        { 0x3F808000, 0x3F80 },
        { 0x3F808001, 0x3F81 },
        { 0x3F818000, 0x3F82 },
        { 0x7F7F8000, 0x7F80 } /* overflow */,
        { 0x7F7F7FFF, 0x7F7F },
        { 0xFF7FFFFF, 0xFF80 },
        { 0x00008000, 0x0000 },
        { 0x00008001, 0x0001 },
        { 0x80000000, 0x8000 },
        { 0x7FA00000, 0x7FE0 } /* NaN */,
        { 0xFF800001, 0xFFC0 } /* a NaN whose payload lies below */,
    };
    ck_assert_int_eq(bf16_of_f32(f32_of_bits(table[_i].x)), table[_i].want);
}
END_TEST

/* ---- e8m0 ---- */

START_TEST(encode_e8m0)
{
    for (uint32_t upper = 0; upper < 1 << 20; upper++)
        for (int i = 0; i < COUNT(lower); i++) {
            const float x = f32_of_bits(upper << 12 | lower[i]);
            int         exponent, want = 0xFF;
            if (x > 0) {
                const double fraction = frexp((double)x, &exponent);
                const int    power = isinf(x) ? 127 : fraction == 0.5 ? exponent - 1 : exponent;
                want = 127 + (power < -127 ? -127 : power > 127 ? 127 : power);
            }
            if (e8m0_ceil_of_f32(x) != want)
                ck_abort_msg("%a: 0x%02X, wanted 0x%02X", (double)x, e8m0_ceil_of_f32(x), want);
        }
}
END_TEST

/* ---- the bug catalogue ---- */

/* B56: a cast in the field saturates at 256 (fn) or 128 (fnuz), and rounds half up. */
START_TEST(b56_saturation_and_ties)
{
    static const struct {
        float x, fn, fnuz;
    } table[] = {
        { 17, 16, 16 },
        { 19, 20, 20 },
        { 21, 20, 20 },
        { 23, 24, 24 },
        { 128, 128, 128 },
        { 136, 128, 128 },
        { 200, 192, 192 },
        { 216, 224, 224 },
        { 240, 240, 240 },
        { 256, 256, 240 },
        { 300, 288, 240 },
        { 416, 416, 240 },
        { 448, 448, 240 },
        { 1.0625f, 1, 1 },
        { 1.1875f, 1.25f, 1.25f },
        { 0x1p-10f, 0, 0x1p-10f },
        { 0x1.8p-9f, 0x1p-8f, 0x1.8p-9f },
        { 0x1p-11f, 0, 0 },
    };
    for (int i = 0; i < COUNT(table); i++)
        for (int sign = 1; sign >= -1; sign -= 2) {
            const float x = (float)sign * table[i].x;
            ck_assert_float_eq(f32_of_e4m3fn(e4m3fn_of_f32(x, FP8_SATURATE)), (float)sign * table[i].fn);
            ck_assert_float_eq(f32_of_e4m3fnuz(e4m3fnuz_of_f32(x, FP8_SATURATE)), (float)sign * table[i].fnuz);
        }
}
END_TEST

/* B57: overflow is 448 here and NaN in hardware without FP16_OVFL. */
START_TEST(b57_overflow)
{
    static const struct {
        float x;
        int   saturate, nan;
    } table[] = {
        { 448, 0x7E, 0x7E },  { 464, 0x7E, 0x7E },      { 464.0001f, 0x7E, 0x7F }, { 480, 0x7E, 0x7F },
        { 1000, 0x7E, 0x7F }, { INFINITY, 0x7E, 0x7F }, { NAN, 0x7F, 0x7F },
    };
    for (int i = 0; i < COUNT(table); i++) {
        ck_assert_int_eq(e4m3fn_of_f32(table[i].x, FP8_SATURATE) & 0x7F, table[i].saturate);
        ck_assert_int_eq(e4m3fn_of_f32(table[i].x, FP8_NAN) & 0x7F, table[i].nan);
        ck_assert_int_eq(e4m3fn_of_f32(-table[i].x, FP8_SATURATE) & 0x7F, table[i].saturate);
        ck_assert_int_eq(e4m3fn_of_f32(-table[i].x, FP8_NAN) & 0x7F, table[i].nan);
    }
    ck_assert_int_eq(e4m3fnuz_of_f32(247.9f, FP8_NAN), 0x7F);
    ck_assert_int_eq(e4m3fnuz_of_f32(-248, FP8_NAN), 0x80); /* halfway to 256, whose code would be even */
    ck_assert_int_eq(e4m3fnuz_of_f32(-248, FP8_SATURATE), 0xFF);
    ck_assert_int_eq(e4m3fnuz_of_f32(NAN, FP8_SATURATE), 0x80);
    ck_assert_int_eq(e5m2_of_f32(-61440, FP8_NAN), 0xFC); /* halfway to 65536: infinity, as in IEEE */
    ck_assert_int_eq(e5m2_of_f32(61440, FP8_SATURATE), 0x7B);
    ck_assert_int_eq(e5m2_of_f32(INFINITY, FP8_SATURATE), 0x7B);
    ck_assert_int_eq(e5m2_of_f32(INFINITY, FP8_NAN), 0x7C);
}
END_TEST

/* B58: the scale of amax = 0.3 is rounded up to a power of two. */
START_TEST(b58_power_of_two_scale)
{
    const float scale = 0.3f / 448.0f;
    ck_assert_float_eq(f32_of_e8m0(e8m0_ceil_of_f32(scale)), 0x1p-10f);
    ck_assert_float_eq(f32_of_e8m0(e8m0_ceil_of_f32(0x1p-10f)), 0x1p-10f);
    ck_assert_float_eq(f32_of_e8m0(e8m0_ceil_of_f32(nextafterf(0x1p-10f, 1))), 0x1p-9f);
    ck_assert_int_eq(e8m0_ceil_of_f32(0), 0xFF);
    ck_assert_int_eq(e8m0_ceil_of_f32(-1), 0xFF);
    ck_assert_int_eq(e8m0_ceil_of_f32(NAN), 0xFF);
    ck_assert_int_eq(e8m0_ceil_of_f32(INFINITY), 0xFE);
    ck_assert_int_eq(e8m0_ceil_of_f32(0x1p-149f), 0);
}
END_TEST

/* B55: one set of bits, two formats: fnuz is half of fn, and 0x80 is its NaN. */
START_TEST(b55_fnuz_is_half_of_fn)
{
    for (int code = 0; code < 256; code++) {
        const float fn = f32_of_e4m3fn((uint8_t)code), fnuz = f32_of_e4m3fnuz((uint8_t)code);
        if (code == 0x80)
            ck_assert(isnan(fnuz) && fn == 0 && signbit(fn));
        else if ((code & 0x7F) == 0x7F)
            ck_assert(isnan(fn) && fabsf(fnuz) == 240);
        else
            ck_assert_float_eq(fnuz, fn / 2);
    }
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, decode_fp8, 0, COUNT(formats));
    tcase_add_test(tcase, largest_values);
    tcase_add_test(tcase, decode_e8m0);
    tcase_add_loop_test(tcase, round_trip, 0, COUNT(formats));
    tcase_add_loop_test(tcase, encode_from_bf16, 0, COUNT(formats));
    tcase_add_loop_test(tcase, encode_from_f32, 0, COUNT(formats));
    tcase_add_loop_test(tcase, encode_at_boundaries, 0, COUNT(formats));
    tcase_add_test(tcase, rounding_mode_has_no_say);
    tcase_add_test(tcase, decode_bf16);
    tcase_add_test(tcase, decode_f16);
    tcase_add_test(tcase, encode_bf16);
    tcase_add_test(tcase, bf16_round_trip);
    tcase_add_loop_test(tcase, bf16_table, 0, 12);
    tcase_add_test(tcase, encode_e8m0);
    tcase_add_test(tcase, b55_fnuz_is_half_of_fn);
    tcase_add_test(tcase, b56_saturation_and_ties);
    tcase_add_test(tcase, b57_overflow);
    tcase_add_test(tcase, b58_power_of_two_scale);
}

int main(void)
{
    return testing_main("fp8", fill);
}
