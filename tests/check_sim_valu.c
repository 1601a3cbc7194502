/* The vector ALU of the simulator: every mnemonic against a second formula, over edge values and random ones.
 *
 * sim_valu_cases.def says what each computes, in integer division, long double and quad precision, and by searching a
 * format's codes for the nearest; compares and scaled conversions are derived from their names. What the frame adds
 * (modifiers, DPP, SDWA, halves, denormals, EXEC) has tests of its own with values worked out by hand.
 */
#include "sim_fixture.h"

#include "opcodes.h"

#include <inttypes.h>
#include <math.h>

#if defined(__x86_64__)
typedef __float128 quad;
#else
typedef long double quad; /* 113 bits on AArch64 and RISC-V */
#endif

/* Integers in other words
 * -----------------------
 */
static uint64_t power(uint64_t n)
{
    return n < 64 ? UINT64_C(1) << n : 0;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    if (b == INT64_C(1) << 31 || b > 0)
        return a >= 0 ? a / b : -((-a + b - 1) / b);
    return a < 0 ? -1 : 0; /* 2^63 as a negative number */
}

static int64_t signed16(uint64_t a)
{
    return (int64_t)(a % 65536) - (a % 65536 >= 32768 ? 65536 : 0);
}

static int64_t signed24(uint64_t a)
{
    return (int64_t)(a % 16777216) - (a % 16777216 >= 8388608 ? 16777216 : 0);
}

/* 32-bit factors by halves. */
static uint64_t high_product(uint64_t a, uint64_t b)
{
    const uint64_t al = a % 65536, ah = a / 65536, bl = b % 65536, bh = b / 65536;
    const uint64_t middle = al * bh + al * bl / 65536, middle2 = ah * bl + middle % 65536;
    return ah * bh + middle / 65536 + middle2 / 65536;
}

static int64_t sign_extended(uint64_t a, int width)
{
    if (width == 0)
        return 0;
    const uint64_t low = a % power((uint64_t)width);
    return low >= power((uint64_t)width - 1) ? (int64_t)low - (int64_t)power((uint64_t)width) : (int64_t)low;
}

/* The least, middle or greatest of three. */
static int64_t of_three(int which, int64_t a, int64_t b, int64_t c)
{
    int64_t s[3] = { a, b, c };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++)
            if (s[j] > s[j + 1]) {
                const int64_t t = s[j];
                s[j] = s[j + 1];
                s[j + 1] = t;
            }
    return s[which];
}

static uint64_t bits_from_top(uint64_t a, int width)
{
    uint64_t to = 0;
    for (int i = 0; i < width; i++, a /= 2)
        to = to * 2 + a % 2;
    return to;
}

static uint64_t count_ones(uint64_t a)
{
    uint64_t n = 0;
    for (; a != 0; a &= a - 1)
        n++;
    return n;
}

static int highest_bit(uint64_t a)
{
    int n = -1;
    for (; a != 0; a /= 2)
        n++;
    return n;
}

static uint64_t permuted_bytes(uint64_t a, uint64_t b, uint64_t selectors)
{
    uint8_t from[13];
    for (int i = 0; i < 4; i++) {
        from[i] = (uint8_t)(b >> 8 * i);
        from[4 + i] = (uint8_t)(a >> 8 * i);
    }
    for (int i = 0; i < 4; i++)
        from[8 + i] = from[2 * i + 1] >= 128 ? 255 : 0;
    from[12] = 0;
    uint64_t to = 0;
    for (int i = 3; i >= 0; i--) {
        const unsigned s = selectors >> 8 * i & 255;
        to = to * 256 + (s < 13 ? from[s] : 255);
    }
    return to;
}

static uint64_t distance(uint64_t a, uint64_t b, int width, bool masked)
{
    uint64_t sum = 0;
    for (int i = 0; i < 32; i += width) {
        const int64_t x = (int64_t)(a >> i) % (int64_t)power((uint64_t)width);
        const int64_t y = (int64_t)(b >> i) % (int64_t)power((uint64_t)width);
        sum += masked && y == 0 ? 0 : (uint64_t)llabs(x - y);
    }
    return sum;
}

static uint64_t averages(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t to = 0;
    for (int i = 24; i >= 0; i -= 8)
        to = to * 256 + ((a >> i) % 256 + (b >> i) % 256 + (c >> i) % 2) / 2;
    return to;
}

static int64_t limited(int64_t a, int64_t low, int64_t high)
{
    return a < low ? low : a > high ? high : a;
}

static uint64_t two_bytes(int64_t a, int64_t b, int64_t low, int64_t high)
{
    return (uint64_t)(uint8_t)limited(a, low, high) + (uint64_t)(uint8_t)limited(b, low, high) * 256;
}

static uint64_t two_halves(int64_t a, int64_t b, int64_t low, int64_t high)
{
    return (uint64_t)(uint16_t)limited(a, low, high) + (uint64_t)(uint16_t)limited(b, low, high) * 65536;
}

static uint64_t products(uint64_t a, uint64_t b, int width, bool is_signed)
{
    int64_t sum = 0;
    for (int i = 0; i < 32; i += width) {
        const uint64_t x = (a >> i) % power((uint64_t)width), y = (b >> i) % power((uint64_t)width);
        sum += is_signed ? sign_extended(x, width) * sign_extended(y, width) : (int64_t)(x * y);
    }
    return (uint64_t)sum;
}

/* Floats in other words
 * ---------------------
 */
static float float_of(uint64_t bits)
{
    const uint32_t b = (uint32_t)bits;
    float          f;
    memcpy(&f, &b, sizeof f);
    return f;
}

static double double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t bits32(float f)
{
    uint32_t b;
    memcpy(&b, &f, sizeof b);
    return b;
}

static uint64_t bits64(double d)
{
    uint64_t b;
    memcpy(&b, &d, sizeof b);
    return b;
}

static uint64_t f32(quad q)
{
    return bits32((float)q);
}

static uint64_t f64(quad q)
{
    return bits64((double)q);
}

static bool nan_of(quad q)
{
    return q != q;
}

static bool infinite(quad q)
{
    return q == q && q - q != 0;
}

static bool negative(quad q)
{
    return signbit((double)q) != 0;
}

static quad size_of(quad q)
{
    return negative(q) ? -q : q;
}

/* q * 2^n */
static quad times_power(quad q, int64_t n)
{
    n = limited(n, -6000, 6000);
    quad factor = n < 0 ? (quad)0.5 : (quad)2;
    for (uint64_t left = (uint64_t)llabs(n); left != 0; left /= 2, factor *= factor)
        if (left % 2 != 0)
            q *= factor;
    return q;
}

/* A format by its fields; codes of infinity and NaN, 0 where it has none. */
typedef struct format {
    int exponent, mantissa, bias, largest, infinity, nan;
} format;

static const format FP8 = { 4, 3, 7, 0x7E, 0, 0x7F }, BF8 = { 5, 2, 15, 0x7B, 0x7C, 0x7E },
                    FP6 = { 2, 3, 1, 0x1F, 0, 0 }, BF6 = { 3, 2, 3, 0x1F, 0, 0 }, FP4 = { 2, 1, 1, 7, 0, 0 },
                    F16 = { 5, 10, 15, 0x7BFF, 0x7C00, 0x7E00 }, BF16 = { 8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0 };

static int sign_of_format(const format *f)
{
    return 1 << (f->exponent + f->mantissa);
}

static quad value_of(const format *f, uint64_t code)
{
    const int size = (int)code & (sign_of_format(f) - 1), field = size >> f->mantissa;
    quad      v = size % (1 << f->mantissa) + (field != 0 ? 1 << f->mantissa : 0);
    v = times_power(v, (field != 0 ? field : 1) - f->bias - f->mantissa);
    if (f->infinity != 0 && size == f->infinity)
        v = (quad)INFINITY;
    else if (f->nan != 0 && size > f->largest)
        v = (quad)NAN;
    return (code & (uint64_t)sign_of_format(f)) != 0 ? -v : v;
}

/* The value one code above the largest, as if the exponent went on. */
static quad value_above(const format *f, int code)
{
    if (code < f->largest)
        return value_of(f, (uint64_t)code + 1);
    return 2 * value_of(f, (uint64_t)code) - value_of(f, (uint64_t)code - 1);
}

static int largest_below(const format *f, quad size)
{
    int low = 0, high = f->largest;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (value_of(f, (uint64_t)middle) <= size)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* How far x lies from the code below toward the one above, 0 to 1 or more, decides by `up`. */
static uint64_t coded(const format *f, quad x, bool (*up)(quad part, int code, uint64_t seed), uint64_t seed)
{
    const uint64_t sign = negative(x) ? (uint64_t)sign_of_format(f) : 0;
    if (nan_of(x))
        return sign + (uint64_t)(f->nan != 0 ? f->nan : f->largest);
    const int too_large = f->infinity != 0 ? f->infinity : f->nan != 0 ? f->nan : f->largest;
    if (infinite(x))
        return sign + (uint64_t)too_large;
    const int  low = largest_below(f, size_of(x));
    const quad step = value_above(f, low) - value_of(f, (uint64_t)low);
    const int  code = low + up((size_of(x) - value_of(f, (uint64_t)low)) / step, low, seed);
    return sign +
           (uint64_t)(code > f->largest || (size_of(x) - value_of(f, (uint64_t)low)) / step > 1 ? too_large : code);
}

static bool half_way(quad part, int code, uint64_t seed)
{
    (void)seed;
    return part > (quad)0.5 || (part == (quad)0.5 && code % 2 != 0);
}

static bool by_seed(quad part, int code, uint64_t seed)
{
    (void)code;
    return part + times_power((quad)(seed & 0xFFFFFFFF), -32) >= 1;
}

static uint64_t nearest(const format *f, quad x)
{
    return coded(f, x, half_way, 0);
}

static uint64_t downward(const format *f, quad x, uint64_t seed)
{
    return coded(f, x, by_seed, seed);
}

static uint64_t f16(quad x)
{
    return nearest(&F16, x);
}

static uint64_t bf16(quad x)
{
    return nearest(&BF16, x);
}

static uint64_t f16_inward(quad x)
{
    const uint64_t code = downward(&F16, x, 0);
    return code % 0x8000 == 0x7C00 && !infinite(x) ? code - 1 : code;
}

static quad half_value(uint64_t bits)
{
    return value_of(&F16, bits % 65536);
}

/* The product of two BF16 is exact; where the sum is not, its error moves it off a tie. */
static uint64_t bf16_fma(quad a, quad b, quad c)
{
    const quad p = a * b, s = p + c, back = s - p, error = (p - (s - back)) + (c - back);
    if (nan_of(error) || error == 0)
        return bf16(s);
    const quad off = times_power(size_of(s), -108);
    return bf16(error > 0 ? s + off : s - off);
}

/* Whole numbers: down -1, up 1, toward zero 0, nearest even 2. */
static quad whole(quad q, int how)
{
    if (nan_of(q) || size_of(q) >= times_power(1, 62))
        return q;
    const int64_t cut = (int64_t)q;
    const quad    part = size_of(q - cut);
    int64_t       to = cut;
    if (part != 0 && ((how == -1 && q < 0) || (how == 1 && q > 0) ||
                      (how == 2 && (part > (quad)0.5 || (part == (quad)0.5 && cut % 2 != 0)))))
        to += q < 0 ? -1 : 1;
    return to == 0 && negative(q) ? -(quad)0 : (quad)to;
}

static quad fraction(quad q, quad most)
{
    const quad part = q - whole(q, -1);
    return part > most ? most : part;
}

static int exponent_of(quad q)
{
    int n = 0;
    if (nan_of(q) || infinite(q) || q == 0)
        return 0;
    for (q = size_of(q); q >= 1; q /= 2)
        n++;
    for (; q < (quad)0.5; q *= 2)
        n--;
    return n;
}

static quad mantissa_of(quad q)
{
    return nan_of(q) || infinite(q) ? q : times_power(q, -exponent_of(q));
}

/* The larger or smaller; NaN propagates or loses; +0 is above -0. */
static quad extreme(bool larger, bool propagates, quad x, quad y)
{
    if (nan_of(x) || nan_of(y))
        return nan_of(x) && nan_of(y) ? x : propagates ? (quad)NAN : nan_of(x) ? y : x;
    const bool x_above = x > y || (x == y && negative(y));
    return x_above == larger ? x : y;
}

static bool signals32(float f)
{
    return f != f && bits32(f) % 0x800000 < 0x400000;
}

static quad ieee_extreme(bool larger, float x, float y)
{
    return signals32(x) || signals32(y) ? (quad)NAN : extreme(larger, false, x, y);
}

static quad ieee_extreme64(bool larger, double x, double y)
{
    const bool signals =
        (x != x && bits64(x) << 12 < UINT64_C(1) << 63) || (y != y && bits64(y) << 12 < UINT64_C(1) << 63);
    return signals ? (quad)NAN : extreme(larger, false, x, y);
}

static bool signals16(uint64_t a)
{
    return a % 0x8000 > 0x7C00 && a % 0x8000 < 0x7E00;
}

static quad ieee_extreme16(bool larger, uint64_t a, uint64_t b)
{
    return signals16(a) || signals16(b) ? (quad)NAN : extreme(larger, false, half_value(a), half_value(b));
}

static quad middle(quad a, quad b, quad c)
{
    if (nan_of(a) || nan_of(b) || nan_of(c))
        return extreme(false, false, extreme(false, false, a, b), c);
    const quad top = extreme(true, false, extreme(true, false, a, b), c);
    const quad rest[2] = { f64(top) == f64(a) ? b : a, f64(top) == f64(a) || f64(top) == f64(b) ? c : b };
    return extreme(true, false, rest[0], rest[1]);
}

static float flushed_in(float f)
{
    return fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}

static uint64_t flushed(uint64_t bits)
{
    return bits32(flushed_in(float_of(bits)));
}

static quad turned(long double (*function)(long double), quad q)
{
    if (nan_of(q) || infinite(q))
        return (quad)NAN;
    return function((long double)(q - whole(q, 2)) * 6.28318530717958647692528676655900577L);
}

/* Exponents so far apart that the quotient is 0, and the smallest normal one. */
typedef struct division {
    int apart, smallest;
} division;

static const division OF_F32 = { 150, -125 }, OF_F64 = { 1075, -1021 };

static int at_least(int a, int least)
{
    return a < least ? least : a;
}

static quad fixed_up(const division *of, quad q, quad b, quad c)
{
    if (nan_of(b) || nan_of(c) || b == 0 || c == 0 || infinite(b) || infinite(c))
        return c / b;
    if (of != NULL) { /* exponents of denormals count as one below the smallest normal one */
        const int of_b = at_least(exponent_of(b), of->smallest - 1), of_c = at_least(exponent_of(c), of->smallest - 1);
        if (of_b - of_c > of->apart)
            q = 0;
        else if (nan_of(q)) /* the sequence before overflowed */
            q = (quad)INFINITY;
    }
    return negative(b) != negative(c) ? -size_of(q) : size_of(q);
}

static quad product_sum(quad a, quad b, quad c, int n)
{
    return times_power(a * b + c, n);
}

static int64_t within(quad q, quad low, quad high)
{
    return nan_of(q) ? 0 : q <= low ? (int64_t)low : q >= high ? (int64_t)high : (int64_t)q;
}

static int64_t normal(quad q, quad low, quad scale)
{
    return nan_of(q) ? 0 : (int64_t)whole((q < low ? low : q > 1 ? 1 : q) * scale, 2);
}

static double dot_scale; /* of the last dot product: what its error is relative to */

static quad dotted(const format *f, uint64_t a, uint64_t b)
{
    const quad low = value_of(f, a % 65536) * value_of(f, b % 65536);
    const quad high = value_of(f, a / 65536) * value_of(f, b / 65536);
    dot_scale = (double)(size_of(low) + size_of(high));
    return low + high;
}

/* The cases
 * ---------
 */
typedef uint64_t expectation(uint64_t a, uint64_t b, uint64_t c, int l, bool vcc, uint64_t *carry);

#define CASE(id, names, operands, comparison, ...)                                                                    \
    static uint64_t expect_##id(uint64_t a, uint64_t b, uint64_t c, int l, bool vcc, uint64_t *carry)                 \
    {                                                                                                                 \
        const uint32_t ua = (uint32_t)a, ub = (uint32_t)b, uc = (uint32_t)c;                                          \
        const int64_t  ia = (int32_t)ua, ib = (int32_t)ub, ic = (int32_t)uc;                                          \
        const float    fa = float_of(a), fb = float_of(b), fc = float_of(c);                                          \
        const double   da = double_of(a), db = double_of(b), dc = double_of(c);                                       \
        const quad     ha = half_value(a), hb = half_value(b), hc = half_value(c);                                    \
        const quad ba = value_of(&BF16, a % 65536), bb = value_of(&BF16, b % 65536), bc = value_of(&BF16, c % 65536); \
        (void)ua, (void)ub, (void)uc, (void)ia, (void)ib, (void)ic, (void)fa, (void)fb, (void)fc, (void)da, (void)db; \
        (void)dc, (void)ha, (void)hb, (void)hc, (void)ba, (void)bb, (void)bc, (void)l, (void)vcc, (void)carry;        \
        return __VA_ARGS__;                                                                                           \
    }
#include "sim_valu_cases.def"
#undef CASE

typedef struct valu_case {
    const char  *names, *operands, *comparison;
    expectation *expect;
} valu_case;

static const valu_case CASES[] = {
#define CASE(id, names, operands, comparison, ...) { names, operands, #comparison, expect_##id },
#include "sim_valu_cases.def"
#undef CASE
};
enum { CASE_COUNT = sizeof CASES / sizeof CASES[0] };

/* Data
 * ----
 */
static const uint32_t EDGES[] = {
    0,          1,          2,          3,          12,         13,         15,         16,         17,
    31,         32,         33,         63,         64,         0x7F,       0x80,       0xFF,       0x7FFF,
    0x8000,     0xFFFF,     0x10000,    0x7FFFFF,   0x800000,   0xFFFFFF,   0x7FFFFFFF, 0x80000000, 0x80000001,
    0xFFFFFFFE, 0xFFFFFFFF, 0x55555555, 0x0F0F0F0F, 0x01020304, 0x3F800000, 0xBF800000, 0x3F000000, 0xBF000000,
    0x3FC00000, 0x40200000, 0xC0200000, 0x40490FDB, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001,
    0xFFA00000, 0x007FFFFF, 0x807FFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x43E00000, 0x43E80000, 0x43E80001, 0xC3E80000,
    0x47600000, 0x47680000, 0x477FE000, 0x477FF000, 0x477FEFFF, 0x4EFFFFFF, 0x4F000000, 0x4F800000, 0xCF000000,
    0x33000000, 0x33000001, 0x33800000, 0x38800000, 0x387FFFFF, 0x3B000000, 0x39800000, 0x3C003C00, 0x7C00FC00,
    0x7E017C01, 0x03FF0400, 0x7BFFFBFF, 0x80000000, 0x3F803F80, 0x7F80FF80, 0x7FC17F81, 0x007F0080, 0x42FE0000,
    0xC3170000,
};
enum { EDGE_COUNT = sizeof EDGES / sizeof EDGES[0] };

static const uint64_t WIDE_EDGES[] = {
    0,
    1,
    UINT64_MAX,
    UINT64_C(1) << 63,
    (UINT64_C(1) << 63) - 1,
    UINT64_C(0x7FF0000000000000),
    UINT64_C(0xFFF0000000000000),
    UINT64_C(0x7FF8000000000000),
    UINT64_C(0x7FF0000000000001),
    UINT64_C(0x3FF0000000000000),
    UINT64_C(0xBFF0000000000000),
    UINT64_C(0x000FFFFFFFFFFFFF),
    UINT64_C(0x0010000000000000),
    UINT64_C(0x7FEFFFFFFFFFFFFF),
    UINT64_C(0x3FE0000000000000),
    UINT64_C(0x4004000000000000),
    UINT64_C(0x41DFFFFFFFC00000),
    UINT64_C(0x41E0000000000000),
    UINT64_C(0xC1E0000000000000),
    UINT64_C(0x41F0000000000000),
    UINT64_C(0x380FFFFFFFFFFFFF),
    UINT64_C(0x36A0000000000000),
    UINT64_C(0x47EFFFFFF0000000),
};
enum { WIDE_EDGE_COUNT = sizeof WIDE_EDGES / sizeof WIDE_EDGES[0] };

static uint64_t random_state;

static uint64_t next_random(void)
{
    return sim_fixture_random(&random_state);
}

/* Half edges, half random: bits, and floats near 1. */
static uint32_t some_word(void)
{
    const uint64_t r = next_random();
    switch (r >> 60) {
    case 0:
    case 1:
    case 2:
        return (uint32_t)r;
    case 3:
    case 4:
        return (uint32_t)r % 0x0A000000u + 0x3A000000u + (uint32_t)(r >> 50 & 1) * 0x80000000u;
    case 5: /* two halves near 1 */
        return ((uint32_t)r & 0x8FFF8FFFu) | 0x30003000u;
    default:
        return EDGES[(r >> 8) % EDGE_COUNT];
    }
}

static uint64_t some_pair(void)
{
    const uint64_t r = next_random();
    switch (r >> 61) {
    case 0:
    case 1:
        return next_random();
    case 2:
        return (next_random() >> 2) % UINT64_C(0x0200000000000000) + UINT64_C(0x3EF0000000000000) +
               (r >> 50 & 1 ? UINT64_C(1) << 63 : 0);
    case 3:
        return some_word();
    default:
        return WIDE_EDGES[(r >> 8) % WIDE_EDGE_COUNT];
    }
}

static uint64_t some_exec(int round)
{
    return round % 4 < 2    ? UINT64_MAX
           : round % 4 == 2 ? next_random()
           : round % 8 == 3 ? 0
                            : UINT64_C(1) << next_random() % 32;
}

/* Running a case
 * --------------
 */
enum { RESULT = 100, SOURCE = 20, STEP = 4, MASK = 30, CARRY = 40, SCALARS = 50 };

static bool name_is(const char *names, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = names; (at = strstr(at, name)) != NULL; at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

static bool is_nan_bits(uint64_t bits, char type)
{
    switch (type) {
    case 'F':
        return float_of(bits) != float_of(bits);
    case 'D':
        return double_of(bits) != double_of(bits);
    case 'H':
        return bits % 0x8000 > 0x7C00;
    default:
        return bits % 0x8000 > 0x7F80;
    }
}

static bool in_last_place(uint64_t got, uint64_t want)
{
    const uint64_t apart = got > want ? got - want : want - got;
    return apart <= 1;
}

static bool same_one(uint64_t got, uint64_t want, char type, char how)
{
    if (got == want || (type != 'X' && is_nan_bits(got, type) && is_nan_bits(want, type)))
        return true;
    if (how == 'a')
        return in_last_place(got, want);
    if (how == 't') { /* sines: 2 pi rounded to double, times at most half a turn */
        const quad g = type == 'F' ? float_of(got) : value_of(type == 'H' ? &F16 : &BF16, got);
        const quad v = type == 'F' ? float_of(want) : value_of(type == 'H' ? &F16 : &BF16, want);
        return in_last_place(got, want) || size_of(g - v) <= times_power(1, -51);
    }
    if (how ==
        'n') /* three terms added in double: two roundings of at most 2^-53 of all magnitudes, and the last place */
        return in_last_place(got, want) || fabs((double)float_of(got) - float_of(want)) <= 0x1p-52 * dot_scale;
    return false;
}

static bool same(uint64_t got, uint64_t want, const char *comparison)
{
    const char how = comparison[0], type = comparison[strlen(comparison) - 1];
    if (strcmp(comparison, "P") == 0 || strcmp(comparison, "Q") == 0) {
        const char half = how == 'P' ? 'H' : 'B';
        return same_one(got % 65536, want % 65536, half, 0) && same_one(got >> 16, want >> 16, half, 0);
    }
    if (strcmp(comparison, "PF") == 0)
        return same_one((uint32_t)got, (uint32_t)want, 'F', 0) && same_one(got >> 32, want >> 32, 'F', 0);
    return same_one(got, want, type, how);
}

typedef struct run_of_case {
    sim_fixture *f;
    char         text[200];
    uint64_t     source[3][SIM_MAX_LANES], old[SIM_MAX_LANES], exec, vcc;
    uint8_t      op_sel, op_sel_hi, neg_lo, neg_hi;
} run_of_case;

static void append(char *text, const char *how, ...)
{
    va_list list;
    va_start(list, how);
    vsnprintf(text + strlen(text), 200 - strlen(text), how, list);
    va_end(list);
}

static void append_register(char *text, char kind, int reg, bool pair, bool wide)
{
    if (pair || (kind == 's' && wide))
        append(text, "%c[%d:%d]", kind, reg, reg + 1);
    else
        append(text, "%c%d", kind, reg);
}

static bool is_wide(char operand)
{
    return operand == '2' || operand == 'q';
}

/* Fills source k and writes its operand. Every third operand or so is a scalar, the same for all lanes. */
static void fill_source(run_of_case *r, int k, char operand, bool may_be_scalar)
{
    sim_fixture *f = r->f;
    const bool   wave64 = f->wave.lanes == 64;
    if (operand == 'm') {
        const uint64_t mask = next_random();
        sim_set_scalar64(&f->wave, MASK, mask);
        append(r->text, ", ");
        append_register(r->text, 's', MASK, false, wave64);
        for (int l = 0; l < f->wave.lanes; l++)
            r->source[k][l] = mask >> l & 1;
        return;
    }
    const int  reg = SOURCE + STEP * k;
    const bool scalar = may_be_scalar && operand != 'd' && next_random() % 4 == 0;
    uint64_t   uniform = 0;
    for (int l = 0; l < f->wave.lanes; l++) {
        const uint64_t low = some_word(), x = operand == 'd'   ? r->old[l]
                                              : operand == '2' ? some_pair()
                                              : operand == 'q' ? low | (uint64_t)some_word() << 32
                                                               : low;
        uniform = l == 0 ? x : uniform;
        r->source[k][l] = scalar ? uniform : x;
        if (operand != 'd') {
            sim_fixture_vector(f, reg)[l] = (uint32_t)x;
            sim_fixture_vector(f, reg + 1)[l] = (uint32_t)(x >> 32);
        }
    }
    if (operand == 'd')
        return;
    append(r->text, ", ");
    if (scalar)
        sim_set_scalar64(&f->wave, SCALARS + STEP * k, uniform);
    append_register(r->text, scalar ? 's' : 'v', scalar ? SCALARS + STEP * k : reg, is_wide(operand), false);
}

static uint64_t part_of(const run_of_case *r, int k, int l, int part, bool words, bool floats)
{
    const bool     high = ((part != 0 ? r->op_sel_hi : r->op_sel) >> k & 1) != 0;
    const uint64_t x = r->source[k][l], bits = words ? (high ? x >> 32 : (uint32_t)x) : (high ? x >> 16 : x) % 65536;
    const bool     flip = floats && ((part != 0 ? r->neg_hi : r->neg_lo) >> k & 1) != 0;
    return flip ? bits ^ (words ? 0x80000000u : 0x8000u) : bits;
}

static void check_lane(const run_of_case *r, const valu_case *c, int l, uint64_t carries)
{
    sim_fixture   *f = r->f;
    const char     result = c->operands[0];
    const uint64_t low = sim_fixture_vector(f, RESULT)[l], high = sim_fixture_vector(f, RESULT + 1)[l];
    const uint64_t got = is_wide(result) ? low | high << 32 : low;
    const bool     on = (r->exec >> l & 1) != 0;
    uint64_t       carry = 0, part[3];
    for (int k = 0; k < 3; k++) {
        const char *sources = strchr(c->operands, '=') + 1;
        part[k] = k < (int)strlen(sources) && (sources[k] == 'h') ? r->source[k][l] % 65536 : r->source[k][l];
    }
    if (!on) {
        ck_assert_msg(got == (is_wide(result) ? r->old[l] : (uint32_t)r->old[l]), "%s: lane %d is off but written",
                      r->text, l);
        ck_assert_msg((carries >> l & 1) == 0, "%s: lane %d is off but carries", r->text, l);
        return;
    }
    if (result == 'p' || result == 'q') {
        const bool words = result == 'q', floats = c->comparison[0] != 'X';
        for (int p = 0; p < 2; p++) {
            for (int k = 0; k < 3; k++)
                part[k] = part_of(r, k, l, p, words, floats);
            const uint64_t want = c->expect(part[0], part[1], part[2], l, false, &carry);
            const uint64_t here = words ? (p != 0 ? got >> 32 : (uint32_t)got) : (p != 0 ? got >> 16 : got % 65536);
            ck_assert_msg(same(here, want, c->comparison),
                          "%s: lane %d part %d: %" PRIx64 ", expected %" PRIx64 " of %" PRIx64 " %" PRIx64 " %" PRIx64,
                          r->text, l, p, here, want, part[0], part[1], part[2]);
        }
        return;
    }
    const uint64_t want = c->expect(part[0], part[1], part[2], l, (r->vcc >> l & 1) != 0, &carry);
    const bool     half = result == 'h' || result == 'z';
    if (half) {
        const bool     clears = result == 'z' && f->group.arch == SIM_GFX950;
        const uint64_t rest = clears ? 0 : r->old[l] >> 16 & 0xFFFF;
        ck_assert_msg(got >> 16 == rest, "%s: lane %d: other half %" PRIx64 ", expected %" PRIx64, r->text, l,
                      got >> 16, rest);
    }
    ck_assert_msg(same(half ? got % 65536 : got, want, c->comparison),
                  "%s: lane %d: %" PRIx64 ", expected %" PRIx64 " of %" PRIx64 " %" PRIx64 " %" PRIx64, r->text, l, got,
                  want, part[0], part[1], part[2]);
    if (c->operands[1] == 'c')
        ck_assert_msg((carries >> l & 1) == (carry & 1), "%s: lane %d: carry of %" PRIx64 " %" PRIx64 " %" PRIx64,
                      r->text, l, part[0], part[1], part[2]);
}

static void append_bits(char *text, const char *name, uint8_t bits, int n)
{
    append(text, " %s:[", name);
    for (int i = 0; i < n; i++)
        append(text, i == 0 ? "%d" : ",%d", bits >> i & 1);
    append(text, "]");
}

static void run_case(sim_fixture *f, const valu_case *c, const char *name, int round)
{
    run_of_case r = { .f = f, .op_sel_hi = 7 };
    const bool  wave64 = f->wave.lanes == 64, carries = c->operands[1] == 'c';
    const char *sources = strchr(c->operands, '=') + 1;
    const bool  to_acc = strcmp(name, "v_accvgpr_write_b32") == 0 || strcmp(name, "v_accvgpr_mov_b32") == 0;
    const bool  from_acc = strcmp(name, "v_accvgpr_read_b32") == 0 || strcmp(name, "v_accvgpr_mov_b32") == 0;
    r.exec = some_exec(round) & sim_all_lanes(&f->wave);
    r.vcc = next_random();
    for (int l = 0; l < f->wave.lanes; l++) {
        r.old[l] = some_word() | (uint64_t)some_word() << 32;
        if (strcmp(sources, "22d") != 0)
            r.old[l] = c->operands[0] == '2' || c->operands[0] == 'q' ? r.old[l] : (uint32_t)r.old[l];
        sim_fixture_vector(f, RESULT)[l] = (uint32_t)r.old[l];
        sim_fixture_vector(f, RESULT + 1)[l] = (uint32_t)(r.old[l] >> 32);
    }
    append(r.text, "%s ", name);
    append_register(r.text, 'v', RESULT, is_wide(c->operands[0]), false);
    if (carries) {
        append(r.text, ", ");
        append_register(r.text, 's', CARRY, false, wave64);
    }
    const bool scalars = c->operands[0] != 'q' && !to_acc && !from_acc;
    for (int k = 0; k < (int)strlen(sources); k++)
        fill_source(&r, k, sources[k], scalars);
    if (c->operands[0] == 'p' || c->operands[0] == 'q') {
        const int n = (int)strlen(sources), all = (1 << n) - 1;
        if (round % 3 != 0) {
            r.op_sel = (uint8_t)(next_random() & (uint64_t)all);
            r.op_sel_hi = (uint8_t)(next_random() & (uint64_t)all);
            append_bits(r.text, "op_sel", r.op_sel, n);
            append_bits(r.text, "op_sel_hi", r.op_sel_hi, n);
        }
        if (c->comparison[0] != 'X' && round % 2 != 0) {
            r.neg_lo = (uint8_t)(next_random() & (uint64_t)all);
            r.neg_hi = (uint8_t)(next_random() & (uint64_t)all);
            append_bits(r.text, "neg_lo", r.neg_lo, n);
            append_bits(r.text, "neg_hi", r.neg_hi, n);
        }
    }
    sim_set_scalar64(&f->wave, CARRY, UINT64_MAX);
    sim_set_scalar64(&f->wave, SIM_VCC, r.vcc);
    sim_set_exec(&f->wave, r.exec);
    if (to_acc || from_acc) { /* a register's lanes lie 256 registers higher: move them there, and back */
        char line[64];
        snprintf(line, sizeof line, "%s %c%d, %c%d", name, to_acc ? 'a' : 'v', RESULT, from_acc ? 'a' : 'v', SOURCE);
        const size_t bytes = (size_t)f->wave.lanes * sizeof(uint32_t);
        memcpy(sim_fixture_vector(f, 256 + SOURCE), sim_fixture_vector(f, SOURCE), bytes);
        memcpy(sim_fixture_vector(f, 256 + RESULT), sim_fixture_vector(f, RESULT), bytes);
        if (from_acc)
            sim_fixture_fill(f, SOURCE, 0);
        sim_fixture_run(f, "%s", line);
        if (to_acc)
            memcpy(sim_fixture_vector(f, RESULT), sim_fixture_vector(f, 256 + RESULT), bytes);
    } else {
        sim_fixture_run(f, "%s", r.text);
    }
    const uint64_t mask = carries ? (wave64 ? sim_scalar64(&f->wave, CARRY) : f->wave.s[CARRY]) : 0;
    for (int l = 0; l < f->wave.lanes; l++)
        check_lane(&r, c, l, mask);
}

enum { ROUNDS = 40 };

static void run_cases_of(sim_arch arch)
{
    sim_fixture *f = sim_fixture_create(arch);
    random_state = UINT64_C(0x9E3779B97F4A7C15);
    for (int i = 0; i < CASE_COUNT; i++) {
        char        names[200];
        const char *separators = " ";
        char       *rest;
        snprintf(names, sizeof names, "%s", CASES[i].names);
        for (char *name = strtok_r(names, separators, &rest); name != NULL; name = strtok_r(NULL, separators, &rest))
            if (sim_opcode_find(name, arch) != NULL)
                for (int round = 0; round < ROUNDS; round++)
                    run_case(f, &CASES[i], name, round);
    }
    sim_fixture_destroy(f);
}

START_TEST(formulas_gfx950)
{
    run_cases_of(SIM_GFX950);
}
END_TEST

START_TEST(formulas_gfx1250)
{
    run_cases_of(SIM_GFX1250);
}
END_TEST

/* Compares, from their names
 * --------------------------
 */
/* Which of less, equal, greater, unordered make a compare true. */
static const struct {
    const char *name;
    int         truth;
} RELATIONS[] = { { "f", 0 },    { "lt", 1 },   { "eq", 2 },   { "le", 3 },   { "gt", 4 },  { "lg", 5 },
                  { "ne", 5 },   { "ge", 6 },   { "o", 7 },    { "u", 8 },    { "nge", 9 }, { "nlg", 10 },
                  { "ngt", 11 }, { "nle", 12 }, { "neq", 13 }, { "nlt", 14 }, { "t", 15 },  { "tru", 15 } };
enum { RELATION_COUNT = sizeof RELATIONS / sizeof RELATIONS[0] };

static quad typed(const char *type, uint64_t bits)
{
    const int width = atoi(type + 1);
    if (type[0] == 'f')
        return width == 16 ? half_value(bits) : width == 32 ? (quad)float_of(bits) : (quad)double_of(bits);
    const uint64_t low = width == 64 ? bits : bits % power((uint64_t)width);
    if (type[0] == 'u')
        return (quad)low;
    return width == 64 ? (quad)(int64_t)bits : (quad)sign_extended(low, width);
}

static bool compares(const char *relation, const char *type, uint64_t a, uint64_t b)
{
    const quad x = typed(type, a), y = typed(type, b);
    const int  found = x < y ? 1 : x == y ? 2 : x > y ? 4 : 8;
    for (int i = 0; i < RELATION_COUNT; i++)
        if (strcmp(RELATIONS[i].name, relation) == 0)
            return (RELATIONS[i].truth & found) != 0;
    ck_abort_msg("no relation %s", relation);
}

/* Bits of classes from fpclassify; of F16 from the value and its size. */
static bool in_class(const char *type, uint64_t a, uint64_t mask)
{
    const quad x = typed(type, a);
    const quad smallest = times_power(1, type[1] == '1' ? -14 : type[1] == '3' ? -126 : -1022);
    const bool minus = type[1] == '1' ? a >> 15 & 1 : type[1] == '3' ? a >> 31 & 1 : a >> 63;
    int        bit = minus ? 3 : 8;
    if (nan_of(x))
        bit = type[1] == '1' ? !signals16(a) : type[1] == '3' ? !signals32(float_of(a)) : (a >> 51 & 1) != 0;
    else if (infinite(x))
        bit = minus ? 2 : 9;
    else if (x == 0)
        bit = minus ? 5 : 6;
    else if (size_of(x) < smallest)
        bit = minus ? 4 : 7;
    return (mask >> bit & 1) != 0;
}

/* v_cmp_R_T or v_cmpx_R_T: the mask goes to scalars, of cmpx to EXEC and on gfx950 to the scalars too. */
static void run_compare_case(sim_fixture *f, const char *name, int round)
{
    char       text[128], relation[16], type[8];
    const bool to_exec = strncmp(name, "v_cmpx_", 7) == 0, wave64 = f->wave.lanes == 64;
    ck_assert_int_eq(sscanf(strchr(name + 2, '_') + 1, "%15[a-z]_%7s", relation, type), 2);
    const bool     classes = strcmp(relation, "class") == 0, wide = type[1] == '6', named = !to_exec || wave64;
    const uint64_t exec = some_exec(round) & sim_all_lanes(&f->wave);
    uint64_t       a[SIM_MAX_LANES], b[SIM_MAX_LANES], want = 0;
    for (int l = 0; l < f->wave.lanes; l++) {
        a[l] = wide ? some_pair() : some_word();
        b[l] = classes ? next_random() % 1024 : next_random() % 4 == 0 ? a[l] : wide ? some_pair() : some_word();
        for (int i = 0; i < 2; i++) {
            sim_fixture_vector(f, 20 + i)[l] = (uint32_t)(a[l] >> 32 * i);
            sim_fixture_vector(f, 24 + i)[l] = (uint32_t)(b[l] >> 32 * i);
        }
        const bool is = classes ? in_class(type, a[l], b[l]) : compares(relation, type, a[l], b[l]);
        want |= (uint64_t)is << l;
    }
    text[0] = 0;
    append(text, "%s ", name);
    if (named)
        append(text, wave64 ? "s[40:41], " : "s40, ");
    append_register(text, 'v', 20, wide, false);
    append(text, ", ");
    append_register(text, 'v', 24, wide && !classes, false);
    sim_set_exec(&f->wave, exec);
    sim_set_scalar64(&f->wave, 40, UINT64_C(0x123456789ABCDEF));
    sim_fixture_run(f, "%s", text);
    const uint64_t got = wave64 ? sim_scalar64(&f->wave, 40) : f->wave.s[40];
    if (named)
        ck_assert_msg(got == (want & exec), "%s: %" PRIx64 ", expected %" PRIx64, text, got, want & exec);
    ck_assert_msg(sim_exec(&f->wave) == (to_exec ? want & exec : exec), "%s: EXEC %" PRIx64, text, sim_exec(&f->wave));
}

START_TEST(compares_by_name)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        int          names = 0;
        random_state = 77;
        for (const sim_opcode *op = sim_valu_opcodes; op->name != NULL; op++)
            if (strncmp(op->name, "v_cmp", 5) == 0 && (op->arches >> arch & 1) != 0)
                for (int round = names++ * 0; round < 16; round++)
                    run_compare_case(f, op->name, round);
        ck_assert_int_ge(names, 160);
        sim_fixture_destroy(f);
    }
}
END_TEST

/* Scaled conversions, from their names
 * ------------------------------------
 */
typedef struct scaled_name {
    const format *from, *to; /* NULL: F32 */
    int           from_bits, to_bits, items;
    bool          down, stochastic, block;
} scaled_name;

static const format *format_of_name(const char *name, int *bits)
{
    static const struct {
        const char   *name;
        const format *format;
        int           bits;
    } ROWS[] = { { "fp8", &FP8, 8 }, { "bf8", &BF8, 8 },  { "fp6", &FP6, 6 },    { "bf6", &BF6, 6 },
                 { "fp4", &FP4, 4 }, { "f16", &F16, 16 }, { "bf16", &BF16, 16 }, { "f32", NULL, 32 } };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        if (strcmp(ROWS[i].name, name) == 0) {
            *bits = ROWS[i].bits;
            return ROWS[i].format;
        }
    ck_abort_msg("no format %s", name);
}

/* v_cvt_scale[f32]_[sr_][pk[N]_]TO_FROM */
static scaled_name parse_scaled(const char *name)
{
    scaled_name s = { .items = 1, .block = strncmp(name, "v_cvt_scale_", 12) == 0 };
    const char *at = name + (s.block ? 12 : 15);
    if (strncmp(at, "sr_", 3) == 0) {
        s.stochastic = true;
        at += 3;
    }
    if (strncmp(at, "pk", 2) == 0) {
        s.items = at[2] == '_' ? 2 : atoi(at + 2);
        at = strchr(at, '_') + 1;
    }
    char to[8], from[8];
    ck_assert_int_eq(sscanf(at, "%7[a-z0-9]_%7s", to, from), 2);
    s.to = format_of_name(to, &s.to_bits);
    s.from = format_of_name(from, &s.from_bits);
    s.down = s.from_bits >= 16;
    return s;
}

static uint64_t item_of(sim_fixture *f, int reg, int l, int bit, int width)
{
    uint64_t to = 0;
    for (int i = width - 1; i >= 0; i--)
        to = to * 2 + (sim_fixture_vector(f, reg + (bit + i) / 32)[l] >> (bit + i) % 32 & 1);
    return to;
}

static void run_scaled_case(sim_fixture *f, const char *name, int round)
{
    const scaled_name s = parse_scaled(name);
    const bool        two = s.items == 2 && s.down && s.from_bits == 32 && !s.stochastic;
    const int         words = two ? 1 : (s.items * s.from_bits + 31) / 32, results = (s.items * s.to_bits + 31) / 32;
    char              text[128] = "";
    append(text, "%s v", name);
    append(text, results > 1 ? "[%d:%d], v" : "%d, v", 100, 99 + results);
    append(text, words > 1 ? "[%d:%d]" : "%d", 20, 19 + words);
    append(text, two ? ", v21" : "");
    append(text, s.stochastic ? ", v60, v61" : ", v61");
    uint32_t old[SIM_MAX_LANES][33];
    for (int l = 0; l < f->wave.lanes; l++) {
        for (int i = 0; i < 32; i++)
            sim_fixture_vector(f, 20 + i)[l] = some_word();
        sim_fixture_vector(f, 60)[l] = (uint32_t)next_random();
        sim_fixture_vector(f, 61)[l] = s.block ? (uint32_t)(next_random() & 0x0F0F0F0F) + 0x78787878u
                                               : (uint32_t)next_random() % 0x08000000u + 0x3C000000u;
        for (int i = 0; i < 33; i++)
            old[l][i] = sim_fixture_vector(f, 100 + i)[l] = some_word();
    }
    const uint64_t exec = some_exec(round) & sim_all_lanes(&f->wave);
    sim_set_exec(&f->wave, exec);
    sim_fixture_run(f, "%s", text);
    for (int l = 0; l < f->wave.lanes; l++) {
        const uint32_t scale_bits = s.block ? sim_fixture_vector(f, 61)[l % 16] : sim_fixture_vector(f, 61)[l];
        /* Without scale_sel: byte 0 for the lower half of a wave; the upper half lies in the same block for 8-bit
         * items. */
        const int byte = s.from_bits == 8 || l < 16 ? 0 : 1;
        const int exponent = s.block ? (int)(scale_bits >> 8 * byte & 255) - 127 : (int)(scale_bits >> 23 & 255) - 127;
        for (int i = 0; i < s.items; i++) {
            const uint64_t code = item_of(f, 20, l, two ? 32 * i : i * s.from_bits, s.from_bits);
            const quad     v = times_power(s.from == NULL ? (quad)float_of(code) : value_of(s.from, code),
                                           s.down ? -exponent : exponent);
            uint64_t       want = s.to == NULL ? f32(v) : nearest(s.to, v);
            if (s.stochastic)
                want = downward(s.to, v, sim_fixture_vector(f, 60)[l]);
            const uint64_t got = item_of(f, 100, l, i * s.to_bits, s.to_bits);
            const char     type = s.to == NULL ? 'F' : s.to == &F16 ? 'H' : s.to == &BF16 ? 'B' : 'X';
            if ((exec >> l & 1) != 0)
                ck_assert_msg(same_one(got, want, type, 0),
                              "%s: lane %d item %d: %" PRIx64 ", expected %" PRIx64 " of %" PRIx64 " scale %d", text, l,
                              i, got, want, code, exponent);
        }
        const int used = s.items * s.to_bits;
        for (int bit = (exec >> l & 1) != 0 ? used : 0; bit < 32 * results; bit++)
            ck_assert_msg(item_of(f, 100, l, bit, 1) == (old[l][bit / 32] >> bit % 32 & 1), "%s: lane %d bit %d", text,
                          l, bit);
    }
}

START_TEST(scaled_by_name)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        int          names = 0;
        random_state = 78;
        for (const sim_opcode *op = sim_valu_opcodes; op->name != NULL; op++)
            if (strncmp(op->name, "v_cvt_scale", 11) == 0 && (op->arches >> arch & 1) != 0)
                for (int round = names++ * 0; round < 8; round++)
                    run_scaled_case(f, op->name, round);
        ck_assert_int_ge(names, 45);
        sim_fixture_destroy(f);
    }
}
END_TEST

/* Instructions with a test of their own
 * -------------------------------------
 */
/* Register `reg` holds base + lane. */
static void number_lanes(sim_fixture *f, int reg, uint32_t base)
{
    for (int l = 0; l < f->wave.lanes; l++)
        sim_fixture_vector(f, reg)[l] = base + (uint32_t)l;
}

static uint32_t at(sim_fixture *f, int reg, int lane)
{
    return sim_fixture_vector(f, reg)[lane];
}

static const char *const LANE_NAMES =
    "v_readlane_b32 v_readfirstlane_b32 v_writelane_b32 v_swap_b32 v_permlane16_swap_b32 v_permlane32_swap_b32 "
    "v_permlane16_b32 v_permlanex16_b32 v_permlane16_var_b32 v_permlanex16_var_b32 v_permlane64_b32 "
    "v_permlane_bcast_b32 "
    "v_permlane_up_b32 v_permlane_down_b32 v_permlane_xor_b32 v_movrels_b32 v_movreld_b32 v_movrelsd_b32 v_pk_mov_b32";

START_TEST(lanes_and_moves)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        sim_wave    *w = &f->wave;
        const int    n = w->lanes;
        number_lanes(f, 1, 100);
        sim_set_exec(w, 0xF0);
        sim_fixture_run(f, "v_readlane_b32 s0, v1, 3"); /* off, and read all the same */
        ck_assert_uint_eq(w->s[0], 103);
        w->s[5] = (uint32_t)n + 2; /* wraps */
        sim_fixture_run(f, "v_readlane_b32 s0, v1, s5");
        ck_assert_uint_eq(w->s[0], 102);
        sim_fixture_run(f, "v_readfirstlane_b32 s0, v1");
        ck_assert_uint_eq(w->s[0], 104);
        sim_set_exec(w, 0);
        sim_fixture_run(f, "v_readfirstlane_b32 s0, v1");
        ck_assert_uint_eq(w->s[0], 100);
        sim_fixture_run(f, "v_writelane_b32 v1, s5, 7");
        ck_assert_uint_eq(at(f, 1, 7), (uint32_t)n + 2);
        ck_assert_uint_eq(at(f, 1, 8), 108);

        number_lanes(f, 1, 100);
        number_lanes(f, 2, 200);
        sim_set_exec(w, 1 << 4);
        sim_fixture_run(f, "v_swap_b32 v1, v2");
        for (int l = 0; l < n; l++) {
            ck_assert_uint_eq(at(f, 1, l), (uint32_t)(l == 4 ? 200 : 100) + (uint32_t)l);
            ck_assert_uint_eq(at(f, 2, l), (uint32_t)(l == 4 ? 100 : 200) + (uint32_t)l);
        }
        sim_set_exec(w, UINT64_MAX);
        number_lanes(f, 1, 100);
        number_lanes(f, 2, 200);
        sim_fixture_run(f, "v_permlane16_swap_b32 v1, v2"); /* rows 1, 3 of v1 with rows 0, 2 of v2 */
        for (int l = 0; l < n; l++) {
            ck_assert_uint_eq(at(f, 1, l), l % 32 < 16 ? 100u + (uint32_t)l : 200u + (uint32_t)l - 16);
            ck_assert_uint_eq(at(f, 2, l), l % 32 < 16 ? 100u + (uint32_t)l + 16 : 200u + (uint32_t)l);
        }
        sim_fixture_destroy(f);
    }

    sim_fixture *f = sim_fixture_create(SIM_GFX950);
    number_lanes(f, 1, 100);
    number_lanes(f, 2, 200);
    sim_fixture_run(f, "v_permlane32_swap_b32 v1, v2");
    for (int l = 0; l < 64; l++) {
        ck_assert_uint_eq(at(f, 1, l), l < 32 ? 100u + (uint32_t)l : 200u + (uint32_t)l - 32);
        ck_assert_uint_eq(at(f, 2, l), l < 32 ? 100u + (uint32_t)l + 32 : 200u + (uint32_t)l);
    }
    for (int i = 2; i < 6; i++)
        sim_fixture_fill(f, i, (uint32_t)i * 11);
    static const struct {
        const char *modifiers;
        uint32_t    low, high;
    } MOVES[] = {
        { "", 22, 44 }, { " op_sel:[1,0]", 33, 44 }, { " op_sel_hi:[0,0]", 22, 44 }, { " op_sel:[0,1]", 22, 55 }
    };
    for (size_t i = 0; i < sizeof MOVES / sizeof MOVES[0]; i++) {
        sim_fixture_run(f, "v_pk_mov_b32 v[8:9], v[2:3], v[4:5]%s", MOVES[i].modifiers);
        ck_assert_uint_eq(at(f, 8, 9), MOVES[i].low);
        ck_assert_uint_eq(at(f, 9, 9), MOVES[i].high);
    }
    sim_fixture_destroy(f);

    f = sim_fixture_create(SIM_GFX1250);
    sim_wave *w = &f->wave;
    number_lanes(f, 1, 100);
    w->s[2] = 0x01234567; /* lane i of a row takes lane 7 - i, then 15 - (i - 8) */
    w->s[3] = 0x89ABCDEF;
    sim_fixture_run(f, "v_permlane16_b32 v4, v1, s2, s3");
    sim_fixture_run(f, "v_permlanex16_b32 v5, v1, s2, s3");
    number_lanes(f, 2, 3);
    sim_fixture_run(f, "v_permlane16_var_b32 v6, v1, v2");
    sim_fixture_run(f, "v_permlanex16_var_b32 v7, v1, v2");
    sim_fixture_run(f, "v_permlane64_b32 v8, v1");
    for (int l = 0; l < 32; l++) {
        const int i = l % 16, row = l - i, swapped = i < 8 ? 7 - i : 23 - i;
        ck_assert_uint_eq(at(f, 4, l), 100u + (uint32_t)(row + swapped));
        ck_assert_uint_eq(at(f, 5, l), 100u + (uint32_t)(16 - row + swapped));
        ck_assert_uint_eq(at(f, 6, l), 100u + (uint32_t)(row + (l + 3) % 16));
        ck_assert_uint_eq(at(f, 7, l), 100u + (uint32_t)(16 - row + (l + 3) % 16));
        ck_assert_uint_eq(at(f, 8, l), 0);
    }
    sim_set_exec(w,
                 0xFFFFFF7F); /* lane 7 off: who reads it is not written, with bound_ctrl reads 0, with fi reads it */
    sim_fixture_fill(f, 4, 9);
    sim_fixture_run(f, "v_permlane16_b32 v4, v1, s2, s3");
    ck_assert_uint_eq(at(f, 4, 0), 9);
    sim_fixture_run(f, "v_permlane16_b32 v4, v1, s2, s3 op_sel:[0,1]");
    ck_assert_uint_eq(at(f, 4, 0), 0);
    sim_fixture_run(f, "v_permlane16_b32 v4, v1, s2, s3 op_sel:[1,0]");
    ck_assert_uint_eq(at(f, 4, 0), 107);
    ck_assert_uint_eq(at(f, 4, 7), 9);
    sim_set_exec(w, UINT64_MAX);
    w->s[2] = 3;
    w->s[3] = 8;
    sim_fixture_run(f, "v_permlane_bcast_b32 v4, v1, s2, s3");
    sim_fixture_run(f, "v_permlane_up_b32 v5, v1, s2, s3");
    sim_fixture_run(f, "v_permlane_down_b32 v6, v1, s2, s3");
    sim_fixture_run(f, "v_permlane_xor_b32 v7, v1, s2, s3");
    for (int l = 0; l < 32; l++) {
        ck_assert_uint_eq(at(f, 4, l), 100u + (uint32_t)(l / 8 * 8 + 3));
        ck_assert_uint_eq(at(f, 5, l), 100u + (uint32_t)(l % 8 < 3 ? l : l - 3));
        ck_assert_uint_eq(at(f, 6, l), 100u + (uint32_t)(l % 8 > 4 ? l : l + 3));
        ck_assert_uint_eq(at(f, 7, l), 100u + (uint32_t)(l ^ 3));
    }
    w->s[3] = 12;
    ck_assert(!sim_fixture_try(f, "v_permlane_up_b32 v5, v1, s2, s3"));
    w->s[SIM_M0] = 5;
    for (int i = 10; i < 30; i++)
        sim_fixture_fill(f, i, (uint32_t)i);
    sim_fixture_run(f, "v_movrels_b32 v10, v11");
    ck_assert_uint_eq(at(f, 10, 3), 16);
    sim_fixture_run(f, "v_movreld_b32 v11, v12");
    ck_assert_uint_eq(at(f, 16, 3), 12);
    sim_fixture_run(f, "v_movrelsd_b32 v13, v14");
    ck_assert_uint_eq(at(f, 18, 3), 19);
    w->s[SIM_M0] = 1023;
    ck_assert(!sim_fixture_try(f, "v_movrels_b32 v10, v11"));
    sim_fixture_destroy(f);
}
END_TEST

static const char *const DIVISION_NAMES = "v_div_scale_f32 v_div_scale_f64";

/* The sequence that LLVM emits for an f32 division, with denormals kept. */
static void divide_f32(sim_fixture *f)
{
    const char *const mask = f->wave.lanes == 64 ? "vcc" : "vcc_lo";
    const char *const other = f->wave.lanes == 64 ? "s[2:3]" : "s2";
    sim_fixture_run(f, "v_div_scale_f32 v3, %s, v2, v2, v1", other);
    sim_fixture_run(f, "v_rcp_f32_e32 v4, v3");
    sim_fixture_run(f, "v_fma_f32 v5, -v3, v4, 1.0");
    sim_fixture_run(f, "v_fmac_f32_e32 v4, v5, v4");
    sim_fixture_run(f, "v_div_scale_f32 v5, %s, v1, v2, v1", mask);
    sim_fixture_run(f, "v_mul_f32_e32 v6, v5, v4");
    sim_fixture_run(f, "v_fma_f32 v7, -v3, v6, v5");
    sim_fixture_run(f, "v_fmac_f32_e32 v6, v7, v4");
    sim_fixture_run(f, "v_fma_f32 v3, -v3, v6, v5");
    sim_fixture_run(f, "v_div_fmas_f32 v3, v3, v4, v6");
    sim_fixture_run(f, "v_div_fixup_f32 v0, v3, v2, v1");
}

static void divide_f64(sim_fixture *f)
{
    const char *const mask = f->wave.lanes == 64 ? "vcc" : "vcc_lo";
    const char *const other = f->wave.lanes == 64 ? "s[2:3]" : "s2";
    sim_fixture_run(f, "v_div_scale_f64 v[14:15], %s, v[12:13], v[12:13], v[10:11]", other);
    sim_fixture_run(f, "v_rcp_f64_e32 v[16:17], v[14:15]");
    for (int i = 0; i < 2; i++) {
        sim_fixture_run(f, "v_fma_f64 v[18:19], -v[14:15], v[16:17], 1.0");
        sim_fixture_run(f, "v_fma_f64 v[16:17], v[16:17], v[18:19], v[16:17]");
    }
    sim_fixture_run(f, "v_div_scale_f64 v[18:19], %s, v[10:11], v[12:13], v[10:11]", mask);
    sim_fixture_run(f, "v_mul_f64 v[20:21], v[18:19], v[16:17]");
    sim_fixture_run(f, "v_fma_f64 v[14:15], -v[14:15], v[20:21], v[18:19]");
    sim_fixture_run(f, "v_div_fmas_f64 v[14:15], v[14:15], v[16:17], v[20:21]");
    sim_fixture_run(f, "v_div_fixup_f64 v[8:9], v[14:15], v[12:13], v[10:11]");
}

START_TEST(divisions)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        random_state = 5;
        for (int round = 0; round < 400; round++) {
            for (int l = 0; l < f->wave.lanes; l++) {
                sim_fixture_vector(f, 1)[l] = some_word();
                sim_fixture_vector(f, 2)[l] = some_word();
                const uint64_t a = some_pair(), b = some_pair();
                for (int i = 0; i < 2; i++) {
                    sim_fixture_vector(f, 10 + i)[l] = (uint32_t)(a >> 32 * i);
                    sim_fixture_vector(f, 12 + i)[l] = (uint32_t)(b >> 32 * i);
                }
            }
            divide_f32(f);
            divide_f64(f);
            for (int l = 0; l < f->wave.lanes; l++) {
                const uint32_t a = at(f, 1, l), b = at(f, 2, l);
                const uint64_t want = bits32(float_of(a) / float_of(b));
                ck_assert_msg(same_one(at(f, 0, l), want, 'F', 0), "%x / %x: %x, expected %" PRIx64, a, b, at(f, 0, l),
                              want);
                const double   da = double_of(at(f, 10, l) | (uint64_t)at(f, 11, l) << 32);
                const double   db = double_of(at(f, 12, l) | (uint64_t)at(f, 13, l) << 32);
                const uint64_t got = at(f, 8, l) | (uint64_t)at(f, 9, l) << 32;
                ck_assert_msg(same_one(got, bits64(da / db), 'D', 0), "%a / %a: %a, expected %a", da, db,
                              double_of(got), da / db);
            }
        }
        sim_fixture_destroy(f);
    }
}
END_TEST

static const char *const BYTE_NAMES = "v_cvt_sr_fp8_f32 v_cvt_sr_bf8_f32 v_cvt_sr_fp8_f16 v_cvt_sr_bf8_f16";

START_TEST(stochastic_bytes)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        random_state = 6;
        for (int round = 0; round < 64; round++)
            for (int of_half = 0; of_half <= (arch == SIM_GFX1250); of_half++)
                for (int of_bf8 = 0; of_bf8 < 2; of_bf8++) {
                    const int byte = round % 4;
                    char      choice[32] = "";
                    if (arch == SIM_GFX950)
                        snprintf(choice, sizeof choice, " op_sel:[0,0,%d,%d]", byte & 1, byte >> 1);
                    else if (byte != 0)
                        snprintf(choice, sizeof choice, " byte_sel:%d", byte);
                    for (int l = 0; l < f->wave.lanes; l++)
                        for (int r = 0; r < 3; r++)
                            sim_fixture_vector(f, r)[l] = r == 2 ? (uint32_t)next_random() : some_word();
                    uint32_t old[SIM_MAX_LANES];
                    memcpy(old, sim_fixture_vector(f, 0), (size_t)f->wave.lanes * sizeof *old);
                    sim_fixture_run(f, "v_cvt_sr_%s_%s v0, v1, v2%s", of_bf8 ? "bf8" : "fp8", of_half ? "f16" : "f32",
                                    choice);
                    for (int l = 0; l < f->wave.lanes; l++) {
                        const quad     x = of_half ? half_value(at(f, 1, l)) : (quad)float_of(at(f, 1, l));
                        const uint64_t code = downward(of_bf8 ? &BF8 : &FP8, x, at(f, 2, l));
                        ck_assert_uint_eq(at(f, 0, l), (old[l] & ~(0xFFu << 8 * byte)) | (uint32_t)code << 8 * byte);
                    }
                }
        sim_fixture_destroy(f);
    }
}
END_TEST

static const char *const MIX_NAMES =
    "v_fma_mix_f32 v_fma_mixlo_f16 v_fma_mixhi_f16 v_fma_mix_f32_bf16 v_fma_mixlo_bf16 "
    "v_fma_mixhi_bf16 v_pk_fmac_f16";

static quad mixed_source(const format *f, uint32_t bits, bool half, bool high)
{
    return !half ? (quad)float_of(bits) : value_of(f, (high ? bits >> 16 : bits) % 65536);
}

START_TEST(mixes)
{
    static const struct {
        const char   *name;
        const format *from, *to;
        bool          high;
    } ROWS[] = { { "v_fma_mix_f32", &F16, NULL, false },      { "v_fma_mixlo_f16", &F16, &F16, false },
                 { "v_fma_mixhi_f16", &F16, &F16, true },     { "v_fma_mix_f32_bf16", &BF16, NULL, false },
                 { "v_fma_mixlo_bf16", &BF16, &BF16, false }, { "v_fma_mixhi_bf16", &BF16, &BF16, true } };
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        random_state = 7;
        for (int round = 0; round < 64; round++)
            for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
                if (sim_opcode_find(ROWS[i].name, arch) == NULL)
                    continue;
                const uint8_t sel = next_random() & 7, half = next_random() & 7;
                char          text[160] = "";
                append(text, "%s v0, v1, -v2, |v3|", ROWS[i].name);
                append_bits(text, "op_sel", sel & half, 3);
                append_bits(text, "op_sel_hi", half, 3);
                for (int r = 0; r < 4; r++)
                    for (int l = 0; l < f->wave.lanes; l++)
                        sim_fixture_vector(f, r)[l] = some_word();
                uint32_t old[SIM_MAX_LANES];
                memcpy(old, sim_fixture_vector(f, 0), (size_t)f->wave.lanes * sizeof *old);
                sim_fixture_run(f, "%s", text);
                for (int l = 0; l < f->wave.lanes; l++) {
                    quad s[3];
                    for (int k = 0; k < 3; k++)
                        s[k] = mixed_source(ROWS[i].from, at(f, 1 + k, l), (half >> k & 1) != 0, (sel >> k & 1) != 0);
                    const float    sum = fmaf((float)s[0], (float)-s[1], (float)size_of(s[2]));
                    const uint32_t got = at(f, 0, l), part = ROWS[i].high ? got >> 16 : got & 0xFFFF;
                    if (ROWS[i].to == NULL) {
                        ck_assert_msg(same_one(got, bits32(sum), 'F', 0), "%s: lane %d: %x, expected %a", text, l, got,
                                      (double)sum);
                        continue;
                    }
                    const char type = ROWS[i].to == &F16 ? 'H' : 'B';
                    ck_assert_msg(same_one(part, nearest(ROWS[i].to, sum), type, 0), "%s: lane %d: %x of %a", text, l,
                                  part, (double)sum);
                    ck_assert_uint_eq(ROWS[i].high ? got & 0xFFFF : got >> 16,
                                      ROWS[i].high ? old[l] & 0xFFFF : old[l] >> 16);
                }
            }
        sim_fixture_fill(f, 0, 0x3C004000); /* 1 and 2 */
        sim_fixture_fill(f, 1, 0x40004200); /* 2 and 3 */
        sim_fixture_fill(f, 2, 0x44004500); /* 4 and 5 */
        sim_fixture_run(f, "v_pk_fmac_f16 v0, v1, v2");
        ck_assert_uint_eq(at(f, 0, 1), 0x48804C40); /* 9 and 17 */
        sim_fixture_destroy(f);
    }
}
END_TEST

static const char *const SCALAR_NAMES = "v_s_rcp_f32 v_s_rsq_f32 v_s_sqrt_f32 v_s_exp_f32 v_s_log_f32 v_s_rcp_f16 "
                                        "v_s_rsq_f16 v_s_sqrt_f16 v_s_exp_f16 v_s_log_f16";

START_TEST(scalar_transcendentals)
{
    static const struct {
        const char *name;
        uint32_t    from, to;
    } ROWS[] = { { "v_s_rcp_f32", 0x40800000, 0x3E800000 }, { "v_s_rcp_f32", 0x80000001, 0xFF800000 }, /* flushed */
                 { "v_s_rsq_f32", 0x40800000, 0x3F000000 }, { "v_s_sqrt_f32", 0x40800000, 0x40000000 },
                 { "v_s_exp_f32", 0x40400000, 0x41000000 }, { "v_s_exp_f32", 0xC3020000, 0 }, /* 2^-130 */
                 { "v_s_log_f32", 0x41000000, 0x40400000 }, { "v_s_rcp_f16", 0x4400, 0x3400 },
                 { "v_s_rcp_f16", 0x0001, 0x7C00 },         { "v_s_rsq_f16", 0x4400, 0x3800 },
                 { "v_s_sqrt_f16", 0x4400, 0x4000 },        { "v_s_exp_f16", 0x4200, 0x4800 },
                 { "v_s_exp_f16", 0xCC00, 0x0100 },         { "v_s_log_f16", 0x4800, 0x4200 } };
    sim_fixture *f = sim_fixture_create(SIM_GFX1250);
    sim_set_exec(&f->wave, 0);
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        f->wave.s[4] = ROWS[i].from;
        sim_fixture_run(f, "%s s3, s4", ROWS[i].name);
        ck_assert_msg(f->wave.s[3] == ROWS[i].to, "%s of %x: %x", ROWS[i].name, ROWS[i].from, f->wave.s[3]);
    }
    sim_fixture_destroy(f);
}
END_TEST

/* Each half of VOPD against the instruction of its name without `dual_`, whose formula has been checked; and the pair
 * reads everything before it writes anything. */
START_TEST(dual_halves)
{
    sim_fixture *f = sim_fixture_create(SIM_GFX1250);
    random_state = 8;
    for (const sim_opcode *op = sim_valu_opcodes; op->name != NULL; op++) {
        if (strncmp(op->name, "v_dual_", 7) != 0)
            continue;
        const char *const base = op->name + 7;
        const bool        wide = strstr(base, "f64") != NULL, three = strncmp(base, "fma_", 4) == 0;
        const bool        one = strcmp(base, "mov_b32") == 0, bits = strcmp(base, "bitop2_b32") == 0,
                          dot = strncmp(base, "dot2acc", 7) == 0;
        const bool        mask = strcmp(base, "cndmask_b32") == 0;
        const bool        k_middle = strncmp(base, "fmamk", 5) == 0, k_last = strncmp(base, "fmaak", 5) == 0;
        char              sources[96], line[96] = "";
        const char       *plain = wide    ? three ? "v[2:3], v[4:5], v[6:7]" : "v[2:3], v[4:5]"
                                  : three ? "v2, v4, v6"
                                  : one   ? "v2"
                                          : "v2, v4";
        snprintf(sources, sizeof sources, "%s",
                 k_middle ? "v2, 0x40490fdb, v4"
                 : k_last ? "v2, v4, 0x40490fdb"
                          : plain);
        for (int r = 2; r < 8; r++)
            for (int l = 0; l < 32; l++)
                sim_fixture_vector(f, r)[l] = dot ? (some_word() & 0x8FFF8FFFu) | 0x30003000u : some_word();
        sim_set_scalar64(&f->wave, SIM_VCC, next_random());
        const char *to = wide ? "v[8:9]" : "v8";
        for (int l = 0; l < 32; l++)
            for (int r = 8; r < 12; r++)
                sim_fixture_vector(f, r)[l] = 0x3F800000u + (uint32_t)l * 0x1000u;
        if (bits)
            append(line, "v_dual_bitop2_b32 v8, v2, v4 bitop3:0x54 :: v_dual_mov_b32 v11, v8");
        else
            append(line, "%s %s, %s :: v_dual_mov_b32 v11, v8", op->name, to, sources);
        sim_fixture_run(f, "%s", line);
        uint32_t got[2][32];
        for (int l = 0; l < 32; l++) {
            got[0][l] = at(f, 8, l);
            got[1][l] = at(f, 9, l);
            ck_assert_msg(at(f, 11, l) == 0x3F800000u + (uint32_t)l * 0x1000u, "%s: read what it wrote", line);
            sim_fixture_vector(f, 8)[l] = 0x3F800000u + (uint32_t)l * 0x1000u;
        }
        if (bits)
            sim_fixture_run(f, "v_or_b32 v8, v2, v4");
        else if (!dot)
            sim_fixture_run(f, "v_%s %s, %s%s", base, to, sources, mask ? ", vcc_lo" : "");
        for (int l = 0; l < 32; l++) {
            uint64_t      want = at(f, 8, l);
            const format *half = strstr(base, "bf16") != NULL ? &BF16 : &F16;
            if (dot)
                want = f32(dotted(half, at(f, 2, l), at(f, 4, l)) + (quad)float_of(want));
            ck_assert_msg(dot ? same_one(got[0][l], want, 'F', 'n') : got[0][l] == want, "%s: lane %d: %x", line, l,
                          got[0][l]);
            ck_assert_msg(!wide || got[1][l] == at(f, 9, l), "%s: lane %d", line, l);
        }
    }
    sim_fixture_destroy(f);
}
END_TEST

/* The frame: what is around every formula
 * ---------------------------------------
 */
/* One line on constant registers: v1, v2, v3 hold the sources, v0 what it held; then the result of lane 5. */
typedef struct line {
    sim_arch    arch;
    const char *text;
    uint32_t    v1, v2, v3, old, want;
    uint32_t    mode; /* 0: as kernels start */
} line;

static const line LINES[] = {
    /* constants by the type that reads them */
    { SIM_GFX950, "v_add_f32 v0, 1.0, v1", 0x40000000, 0, 0, 0, 0x40400000, 0 },
    { SIM_GFX950, "v_add_f16 v0, 1.0, v1", 0x4000, 0, 0, 0xFFFFFFFF, 0x4200, 0 },
    { SIM_GFX1250, "v_add_f16 v0, 1.0, v1", 0x4000, 0, 0, 0xABCD0000, 0xABCD4200, 0 },
    { SIM_GFX950, "v_mov_b32 v0, 0.15915494", 0, 0, 0, 0, 0x3E22F983, 0 },
    { SIM_GFX950, "v_mul_f16 v0, 0.15915494, v1", 0x3C00, 0, 0, 0, 0x3118, 0 },
    { SIM_GFX950, "v_add_u32 v0, -1, v1", 5, 0, 0, 0, 4, 0 },
    { SIM_GFX950, "v_add_u32 v0, 0x12345678, v1", 1, 0, 0, 0, 0x12345679, 0 },
    { SIM_GFX950, "v_pk_add_f16 v0, v1, 1.0", 0x40004000, 0, 0, 0, 0x40004200,
      0 }, /* the constant fills the low half only */
    { SIM_GFX950, "v_pk_add_f16 v0, v1, 1.0 op_sel_hi:[1,0]", 0x40004000, 0, 0, 0, 0x42004200, 0 },
    { SIM_GFX1250, "v_fma_f32 v0, v1, 0x40400000, v2", 0x40000000, 0x3F800000, 0, 0, 0x40E00000, 0 },
    /* neg and abs */
    { SIM_GFX950, "v_add_f32_e64 v0, -v1, |v2|", 0x3F800000, 0xC0400000, 0, 0, 0x40000000, 0 },
    { SIM_GFX950, "v_add_f32_e64 v0, -|v1|, v2", 0xBF800000, 0x40400000, 0, 0, 0x40000000, 0 },
    { SIM_GFX950, "v_fma_f16 v0, -v1, v2, |v3|", 0x3C00, 0x4000, 0xC400, 0, 0x4000, 0 },
    { SIM_GFX950, "v_max_f32_e64 v0, -v1, -v1", 0x80000000, 0, 0, 1, 0, 0 },
    /* clamp: floats to [0, 1] with NaN to 0, integers to their range */
    { SIM_GFX950, "v_add_f32_e64 v0, v1, v2 clamp", 0x3F800000, 0x3F800000, 0, 0, 0x3F800000, 0 },
    { SIM_GFX950, "v_add_f32_e64 v0, v1, v2 clamp", 0xBF800000, 0, 0, 9, 0, 0 },
    { SIM_GFX950, "v_add_f32_e64 v0, v1, v2 clamp", 0x7FC00000, 0, 0, 9, 0, 0 },
    { SIM_GFX950, "v_add_f16_e64 v0, v1, v2 clamp", 0x4000, 0x4000, 0, 9, 0x3C00, 0 },
    { SIM_GFX950, "v_add_u32_e64 v0, v1, v2 clamp", 0xFFFFFFFF, 2, 0, 0, 0xFFFFFFFF, 0 },
    { SIM_GFX950, "v_sub_u32_e64 v0, v1, v2 clamp", 1, 2, 0, 7, 0, 0 },
    { SIM_GFX950, "v_add_i32 v0, v1, v2 clamp", 0x7FFFFFFF, 2, 0, 0, 0x7FFFFFFF, 0 },
    { SIM_GFX950, "v_sub_i32 v0, v1, v2 clamp", 0x80000000, 2, 0, 0, 0x80000000, 0 },
    { SIM_GFX950, "v_add_i16 v0, v1, v2 clamp", 0x7FFF, 1, 0, 0x50000, 0x57FFF, 0 },
    { SIM_GFX950, "v_sub_u16_e64 v0, v1, v2 clamp", 1, 2, 0, 7, 0, 0 },
    { SIM_GFX950, "v_mad_i32_i24 v0, v1, v2, v3 clamp", 0x7FFFFF, 0x7FFFFF, 0, 0, 0x7FFFFFFF, 0 },
    { SIM_GFX950, "v_pk_add_i16 v0, v1, v2 clamp", 0x7FFF8000, 0x0001FFFF, 0, 0, 0x7FFF8000, 0 },
    { SIM_GFX950, "v_pk_add_f16 v0, v1, v2 clamp", 0x4000BC00, 0, 0, 0, 0x3C000000, 0 },
    { SIM_GFX950, "v_dot4_u32_u8 v0, v1, v2, v3 clamp", 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0 },
    { SIM_GFX950, "v_dot4_i32_i8 v0, v1, v2, v3 clamp", 0x7F7F7F7F, 0x80808080, 0x80000000, 0, 0x80000000, 0 },
    { SIM_GFX1250, "v_add_min_u32 v0, v1, v2, v3 clamp", 0xFFFFFFFF, 5, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0 },
    { SIM_GFX1250, "v_add_max_i32 v0, v1, v2, v3 clamp", 0x80000000, 0xFFFFFFFF, 0x80000005, 0, 0x80000005, 0 },
    { SIM_GFX1250, "v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,0,0]", 0xFF, 0xFF, 5, 0, 0xFFFFFF06, 0 }, /* -1 * 255 + 5 */
    { SIM_GFX1250, "v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0]", 0xFF, 0xFF, 5, 0, 6, 0 },
    { SIM_GFX950, "v_dot2_f32_f16 v0, v1, v2, v3 neg_lo:[1,0,0]", 0x3C003C00, 0x40003C00, 0, 0, 0x3F800000, 0 },
    { SIM_GFX950, "v_dot2_f32_f16 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[0,1,1]", 0x40003C00, 0x44003C00, 0, 0,
      0x40C00000, 0 },
    /* omod only where denormals are flushed */
    { SIM_GFX950, "v_add_f32_e64 v0, v1, v2 mul:2", 0x3F800000, 0, 0, 0, 0x40000000, 0x3C0 },
    { SIM_GFX950, "v_add_f32_e64 v0, v1, v2 mul:4", 0x3F800000, 0, 0, 0, 0x40800000, 0x3C0 },
    { SIM_GFX950, "v_add_f32_e64 v0, v1, v2 div:2", 0x3F800000, 0, 0, 0, 0x3F000000, 0x3C0 },
    { SIM_GFX950, "v_add_f32_e64 v0, v1, v2 mul:2", 0x3F800000, 0, 0, 0, 0x3F800000, 0 },
    /* denormals by MODE: bits 5:4 of F32, 7:6 of F16 and F64; the lower bit of sources, the upper of results */
    { SIM_GFX950, "v_add_f32 v0, v1, v2", 0x80000001, 0, 0, 5, 0x80000001, 0x3F0 },
    { SIM_GFX950, "v_mul_f32 v0, v1, v2", 0x80000001, 0x3F800000, 0, 5, 0x80000000, 0x3C0 },
    { SIM_GFX950, "v_mul_f32 v0, v1, v2", 0x00800000, 0x3F000000, 0, 5, 0, 0x3D0 },
    { SIM_GFX950, "v_mul_f32 v0, v1, v2", 0x00400000, 0x40000000, 0, 5, 0x00800000, 0x3D0 },
    { SIM_GFX950, "v_mul_f32 v0, v1, v2", 0x00800000, 0x3F000000, 0, 5, 0x00400000, 0x3E0 },
    { SIM_GFX950, "v_mov_b32 v0, v1", 0x00400000, 0, 0, 5, 0x00400000, 0x300 },
    { SIM_GFX950, "v_mul_f16 v0, v1, v2", 0x0001, 0x3C00, 0, 5, 0, 0x330 },
    { SIM_GFX950, "v_mul_f16 v0, v1, v2", 0x0001, 0x3C00, 0, 5, 1, 0x3F0 },
    { SIM_GFX950, "v_exp_f32 v0, v1", 0xC3020000, 0, 0, 5, 0, 0 }, /* 2^-130 */
    { SIM_GFX950, "v_log_f32 v0, v1", 0x00000001, 0, 0, 5, 0xFF800000, 0 },
    /* FP16_OVFL */
    { SIM_GFX950, "v_cvt_pk_fp8_f32 v0, v1, v2", 0x44000000, 0xFF800000, 0, 0x12340000, 0x1234FF7F, 0 },
    { SIM_GFX950, "v_cvt_pk_fp8_f32 v0, v1, v2", 0x44000000, 0xFF800000, 0, 0x12340000, 0x1234FE7E, 0x8003F0 },
    { SIM_GFX950, "v_cvt_pk_bf8_f32 v0, v1, v2 op_sel:[0,0,1]", 0x48000000, 0x3F800000, 0, 0x1234, 0x3C7C1234, 0 },
    { SIM_GFX950, "v_cvt_pk_bf8_f32 v0, v1, v2 op_sel:[0,0,1]", 0x48000000, 0x3F800000, 0, 0x1234, 0x3C7B1234,
      0x8003F0 },
    { SIM_GFX950, "v_cvt_pk_fp8_f32 v0, -v1, v2", 0x3F800000, 0x40000000, 0, 0, 0x40B8, 0 },
    /* halves of registers */
    { SIM_GFX950, "v_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0,1]", 0x40003C00, 0x3C00, 0x3C00, 0x1234, 0x42001234, 0 },
    { SIM_GFX950, "v_fma_f16 v0, v1, v2, v3", 0x3C00, 0x3C00, 0x3C00, 0x12340000, 0x12344000, 0 },
    { SIM_GFX950, "v_bitop3_b16 v0, v1, v2, v3 bitop3:0x11 op_sel:[1,0,0,0]", 0xFFFF0000, 0x0F0F, 0x3333, 0x55550000,
      0x5555C0C0, 0 },
    { SIM_GFX950, "v_bitop3_b32 v0, v1, v2, v3 bitop3:0xca", 0xFFFF0000, 0x12345678, 0x9ABCDEF0, 0, 0x1234DEF0, 0 },
    { SIM_GFX950, "v_bitop3_b32 v0, v1, v2, v3 bitop3:0x80", 0xFFFFFFFF, 0x12345678, 0x0F0F0F0F, 0, 0x02040608, 0 },
    { SIM_GFX1250, "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", 0x3F800000, 0x40000000, 0, 0x5678, 0x40385678, 0 },
    { SIM_GFX1250, "v_cvt_f32_fp8 v0, v1 byte_sel:2", 0x00380000, 0, 0, 0, 0x3F800000, 0 },
    { SIM_GFX950, "v_cvt_scalef32_pk_f32_fp8 v[0:1], v2, v3 op_sel:[1,0,0]", 0, 0x40380000, 0x40000000, 0, 0x40000000,
      0 },
    { SIM_GFX950, "v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 op_sel:[0,0,0,1]", 0x40000000, 0x40800000, 0x40000000, 0x99,
      0x40380099, 0 },
    { SIM_GFX950, "v_cvt_scalef32_pk_fp8_f16 v0, v1, v3 op_sel:[0,0,1]", 0x44004000, 0, 0x40000000, 0x99, 0x40380099,
      0 },
    { SIM_GFX950, "v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3 op_sel:[0,0,1,0]", 0x40000000, 0x40C00000, 0x3F800000, 0x99,
      0x7499, 0 },
    { SIM_GFX950, "v_cvt_scalef32_f16_fp8 v0, v1, v3 op_sel:[1,0,1]", 0x3800, 0, 0x40000000, 0x99, 0x40000099, 0 },
    /* SDWA */
    { SIM_GFX950, "v_add_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1",
      0xAABBCCDD, 0x00050000, 0, 0, 0xD1, 0 },
    { SIM_GFX950, "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:DWORD",
      0x0000FF00, 3, 0, 0, 2, 0 },
    { SIM_GFX950, "v_add_u32_sdwa v0, v1, v2 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD",
      0x1F0, 0x0F, 0, 0x11223344, 0x11FF3344, 0 },
    { SIM_GFX950, "v_add_u32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:DWORD src1_sel:DWORD", 0x80,
      0, 0, 0x11223344, 0xFFFF8000, 0 },
    { SIM_GFX950, "v_add_u32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", 5, 1,
      0, 0x11223344, 0x00060000, 0 },
    { SIM_GFX950, "v_cvt_f32_fp8_sdwa v0, v1 src0_sel:BYTE_1", 0x3800, 0, 0, 0, 0x3F800000, 0 },
    { SIM_GFX950, "v_cvt_pk_f32_fp8_sdwa v[0:1], v1 src0_sel:WORD_1", 0x00380000, 0, 0, 0, 0x3F800000, 0 },
    { SIM_GFX950, "v_cvt_f32_f16_sdwa v0, -v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1", 0x3C000000, 0, 0, 0,
      0xBF800000, 0 },
};

START_TEST(modifiers)
{
    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++) {
        const line  *row = &LINES[i];
        sim_fixture *f = sim_fixture_create(row->arch);
        sim_fixture_fill(f, 0, row->old);
        sim_fixture_fill(f, 1, row->v1);
        sim_fixture_fill(f, 2, row->v2);
        sim_fixture_fill(f, 3, row->v3);
        if (row->mode != 0)
            f->wave.mode = row->mode;
        sim_fixture_run(f, "%s", row->text);
        ck_assert_msg(at(f, 0, 5) == row->want, "%s of %x %x %x: %x, expected %x", row->text, row->v1, row->v2, row->v3,
                      at(f, 0, 5), row->want);
        sim_fixture_destroy(f);
    }
    sim_fixture *f = sim_fixture_create(SIM_GFX950);
    f->wave.mode = 0x3F1; /* toward plus infinity */
    ck_assert(!sim_fixture_try(f, "v_add_f32 v0, v1, v2"));
    ck_assert(sim_fixture_try(f, "v_add_u32 v0, v1, v2"));
    sim_fixture_destroy(f);
}
END_TEST

/* Which lane lane `l` reads, -1: none; a table of the test's own, a lane at a time. */
typedef int lane_of(int l);

static int quad_1032(int l)
{
    return l ^ 1;
}

static int shl_3(int l)
{
    return l % 16 + 3 < 16 ? l + 3 : -1;
}

static int shr_2(int l)
{
    return l % 16 >= 2 ? l - 2 : -1;
}

static int ror_4(int l)
{
    return l / 16 * 16 + (l + 12) % 16;
}

static int mirror(int l)
{
    return l / 16 * 16 + 15 - l % 16;
}

static int half_mirror(int l)
{
    return l / 8 * 8 + 7 - l % 8;
}

static int wave_shr(int l)
{
    return l - 1;
}

static int wave_rol(int l)
{
    return (l + 1) % 64;
}

static int bcast_15(int l)
{
    return l < 16 ? -1 : l / 16 * 16 - 1;
}

static int bcast_31(int l)
{
    return l < 32 ? -1 : 31;
}

static int third_of_row(int l)
{
    return l / 16 * 16 + 3;
}

static int xmask_5(int l)
{
    return l ^ 5;
}

static int reversed_8(int l)
{
    return l ^ 7;
}

START_TEST(dpp)
{
    static const struct {
        sim_arch    arch;
        const char *text;
        lane_of    *from;
    } ROWS[] = {
        { SIM_GFX950, "quad_perm:[1,0,3,2]", quad_1032 },
        { SIM_GFX950, "row_shl:3", shl_3 },
        { SIM_GFX950, "row_shr:2", shr_2 },
        { SIM_GFX950, "row_ror:4", ror_4 },
        { SIM_GFX950, "row_mirror", mirror },
        { SIM_GFX950, "row_half_mirror", half_mirror },
        { SIM_GFX950, "wave_shr:1", wave_shr },
        { SIM_GFX950, "wave_rol:1", wave_rol },
        { SIM_GFX950, "row_bcast:15", bcast_15 },
        { SIM_GFX950, "row_bcast:31", bcast_31 },
        { SIM_GFX950, "row_newbcast:3", third_of_row },
        { SIM_GFX1250, "quad_perm:[1,0,3,2]", quad_1032 },
        { SIM_GFX1250, "row_shl:3", shl_3 },
        { SIM_GFX1250, "row_ror:4", ror_4 },
        { SIM_GFX1250, "row_share:3", third_of_row },
        { SIM_GFX1250, "row_xmask:5", xmask_5 },
    };
    random_state = 9;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        for (int round = 0; round < 16; round++) {
            sim_fixture   *f = sim_fixture_create(ROWS[i].arch);
            const int      rows = round % 3 == 0 ? 15 : (int)(next_random() % 16),
                           banks = round % 3 == 1 ? 15 : (int)(next_random() % 16);
            const bool     zero = round % 2 != 0, fi = ROWS[i].arch == SIM_GFX1250 && round % 4 >= 2;
            const uint64_t exec = some_exec(round) & sim_all_lanes(&f->wave);
            number_lanes(f, 1, 100);
            sim_fixture_fill(f, 2, 1000);
            sim_fixture_fill(f, 0, 7);
            sim_set_exec(&f->wave, exec);
            sim_fixture_run(f, "%s v0, v1, v2 %s row_mask:0x%x bank_mask:0x%x%s%s",
                            ROWS[i].arch == SIM_GFX950 ? "v_add_u32_dpp" : "v_add_nc_u32_dpp", ROWS[i].text, rows,
                            banks, zero ? " bound_ctrl:1" : "", fi ? " fi:1" : "");
            for (int l = 0; l < f->wave.lanes; l++) {
                const int      from = ROWS[i].from(l);
                const bool     there = from >= 0 && (fi || (exec >> from & 1) != 0);
                const bool     on = (exec >> l & 1) != 0 && (rows >> l / 16 & 1) != 0 && (banks >> l % 16 / 4 & 1) != 0;
                const uint32_t want = on && there ? 1100u + (uint32_t)from : on && zero ? 1000 : 7;
                ck_assert_msg(at(f, 0, l) == want, "%s %x %x %d: lane %d: %u, expected %u", ROWS[i].text, rows, banks,
                              zero, l, at(f, 0, l), want);
            }
            sim_fixture_destroy(f);
        }
    sim_fixture *f = sim_fixture_create(SIM_GFX1250);
    number_lanes(f, 1, 100);
    sim_fixture_run(f, "v_mov_b32_dpp v1, v1 dpp8:[7,6,5,4,3,2,1,0]"); /* in place: all read before any is written */
    for (int l = 0; l < 32; l++)
        ck_assert_uint_eq(at(f, 1, l), 100u + (uint32_t)reversed_8(l));
    sim_fixture_destroy(f);
}
END_TEST

static const char *const BITOP_NAMES = "v_bitop3_b32 v_bitop3_b16";

/* All 256 tables, a bit at a time. */
START_TEST(bitop_tables)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        random_state = 10;
        for (unsigned table = 0; table < 256; table++) {
            const uint32_t a = (uint32_t)next_random(), b = (uint32_t)next_random(), c = (uint32_t)next_random();
            uint32_t       want = 0;
            for (int i = 0; i < 32; i++)
                want |= (table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1u) << i;
            sim_fixture_fill(f, 1, a);
            sim_fixture_fill(f, 2, b);
            sim_fixture_fill(f, 3, c);
            sim_fixture_fill(f, 4, 0x12345678);
            sim_fixture_run(f, "v_bitop3_b32 v0, v1, v2, v3 bitop3:0x%x", table);
            sim_fixture_run(f, "v_bitop3_b16 v4, v1, v2, v3 bitop3:0x%x", table);
            ck_assert_uint_eq(at(f, 0, 3), want);
            ck_assert_uint_eq(at(f, 4, 3), 0x12340000 + (want & 0xFFFF));
        }
        sim_fixture_destroy(f);
    }
}
END_TEST

/* s_set_vgpr_msb: each slot moves its own operands. */
START_TEST(upper_registers)
{
    sim_fixture *f = sim_fixture_create(SIM_GFX1250);
    sim_fixture_fill(f, 256 + 1, 10);
    sim_fixture_fill(f, 512 + 2, 20);
    sim_fixture_fill(f, 768 + 3, 30);
    const uint8_t msb[] = { 1, 2, 3, 1 };
    memcpy(f->wave.msb, msb, sizeof msb);
    sim_fixture_run(f, "v_add3_u32 v0, v1, v2, v3");
    ck_assert_uint_eq(at(f, 256, 4), 60);
    ck_assert_uint_eq(at(f, 0, 4), 0);
    sim_fixture_destroy(f);
}
END_TEST

START_TEST(every_mnemonic_has_a_case)
{
    const char *const by_hand[] = { LANE_NAMES, DIVISION_NAMES, BYTE_NAMES, MIX_NAMES, SCALAR_NAMES, BITOP_NAMES };
    int               rows = 0;
    for (const sim_opcode *op = sim_valu_opcodes; op->name != NULL; op++) {
        bool found = op->arches == 0; /* a compare that only the other arch has */
        found = found || strncmp(op->name, "v_cmp", 5) == 0 || strncmp(op->name, "v_cvt_scale", 11) == 0;
        found = found || strncmp(op->name, "v_dual_", 7) == 0;
        for (int i = 0; i < CASE_COUNT; i++)
            found = found || name_is(CASES[i].names, op->name);
        for (size_t i = 0; i < sizeof by_hand / sizeof by_hand[0]; i++)
            found = found || name_is(by_hand[i], op->name);
        ck_assert_msg(found, "%s has no case", op->name);
        rows++;
    }
    ck_assert_int_ge(rows, 700);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, every_mnemonic_has_a_case);
    tcase_add_test(tcase, formulas_gfx950);
    tcase_add_test(tcase, formulas_gfx1250);
    tcase_add_test(tcase, compares_by_name);
    tcase_add_test(tcase, scaled_by_name);
    tcase_add_test(tcase, lanes_and_moves);
    tcase_add_test(tcase, divisions);
    tcase_add_test(tcase, stochastic_bytes);
    tcase_add_test(tcase, mixes);
    tcase_add_test(tcase, scalar_transcendentals);
    tcase_add_test(tcase, dual_halves);
    tcase_add_test(tcase, modifiers);
    tcase_add_test(tcase, dpp);
    tcase_add_test(tcase, bitop_tables);
    tcase_add_test(tcase, upper_registers);
}

int main(void)
{
    return testing_main("sim_valu", fill);
}
