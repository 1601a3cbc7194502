/* The vector ALU: the frame around the formulas of valu.def.
 *
 * An instruction runs over rows of lanes. Sources are the registers' own rows where nothing modifies them, else rows
 * made from them: broadcast scalars and constants, DPP, SDWA, halves, neg and abs, flushed denormals. Results go
 * straight to the register when EXEC is full and nothing modifies them, else through a row that is clamped, scaled
 * and blended. Lanes depend on nothing but the same lane of each row, so rows may overlap (the loops say so to the
 * compiler).
 *
 * Rounding is to nearest even: MODE with another rounding stops the float instructions. Transcendentals are the
 * host's libm in double, rounded once: the hardware's are within about 1 ulp of that and not specified bit by bit.
 * f32 forms of rcp, rsq, sqrt, exp and log flush denormals on both sides, as LLVM's expansions assume.
 */
#include "valu_special.h"

#include "opcodes.h"

#include <math.h>

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* calls of libm and the like stay loops */
#define LANES _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < x->n; l++)
#else
#define LANES _Pragma("GCC ivdep") for (int l = 0; l < x->n; l++)
#endif

#if defined(__x86_64__)
#define WITH_FMA __attribute__((target("avx2,fma")))
#else
#define WITH_FMA
#endif

#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define MORE(a, b) ((a) > (b) ? (a) : (b))
#define DISTANCE(a, b) ((a) > (b) ? (a) - (b) : (b) - (a))
#define F16_OF(a) sim_f32_of_f16(sim_f16_of_f32(a)) /* rounded */
#define SATURATE(a, low, high) ((a) < (low) ? (low) : (a) > (high) ? (high) : (a))

/* Formulas that take more than an expression
 * ------------------------------------------
 */
static inline uint32_t u24(uint32_t a)
{
    return a & 0xFFFFFFu;
}

static inline int64_t i24(int32_t a)
{
    return (int32_t)((uint32_t)a << 8) >> 8;
}

/* Bits of an offset and a width that runs over the top: what is there, sign-extended (ISA: V_BFE_I32). */
static inline int32_t bfe_i32(int32_t a, uint32_t offset, uint32_t width)
{
    if (width == 0)
        return 0;
    if (offset + width >= 32)
        return a >> offset;
    return (int32_t)((uint32_t)a << (32 - offset - width)) >> (32 - width);
}

static inline uint32_t reverse(uint32_t a)
{
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0F0F0F0Fu) | (a & 0x0F0F0F0Fu) << 4;
    return __builtin_bswap32(a);
}

/* Leading bits equal to the sign; -1 if all are. */
static inline int32_t sign_run(int32_t a)
{
    const uint32_t differs = (uint32_t)(a ^ a >> 31);
    return differs == 0 ? -1 : __builtin_clz(differs);
}

/* The mask of lanes below `l`, of 32. */
static inline uint32_t below(int l)
{
    return l <= 0 ? 0 : l >= 32 ? 0xFFFFFFFFu : (1u << l) - 1u;
}

/* Bit n of the table is the result where a, b, c are the bits of n, a highest. */
static inline uint32_t bitop3(uint32_t table, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t to = 0;
    for (uint32_t n = 0; n < 8; n++) {
        const uint32_t here = (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
        to |= here & -(table >> n & 1);
    }
    return to;
}

/* Selectors 0 to 7: a byte; 8 to 11: the sign of bytes 1, 3, 5, 7 spread; 12: 0; above: 0xFF. */
static inline uint32_t perm(uint64_t data, uint32_t selectors)
{
    uint32_t to = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t s = selectors >> 8 * i & 0xFF;
        uint32_t       byte = 0xFF;
        if (s < 8)
            byte = data >> 8 * s & 0xFF;
        else if (s < 12)
            byte = data >> (16 * (s - 8) + 15) & 1 ? 0xFF : 0;
        else if (s == 12)
            byte = 0;
        to |= byte << 8 * i;
    }
    return to;
}

static inline uint32_t sad_u8(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (int i = 0; i < 32; i += 8)
        sum += DISTANCE(a >> i & 0xFF, b >> i & 0xFF);
    return sum;
}

/* Bytes whose reference, the second source, is 0 do not count. */
static inline uint32_t msad_u8(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (int i = 0; i < 32; i += 8)
        sum += (b >> i & 0xFF) == 0 ? 0 : DISTANCE(a >> i & 0xFF, b >> i & 0xFF);
    return sum;
}

static inline uint32_t lerp_u8(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t to = 0;
    for (int i = 0; i < 32; i += 8)
        to |= ((a >> i & 0xFF) + (b >> i & 0xFF) + (c >> i & 1)) >> 1 << i;
    return to;
}

static inline uint32_t add_sat(uint32_t a, uint32_t b, bool clamp)
{
    return clamp && a + b < a ? 0xFFFFFFFFu : a + b;
}

static inline int32_t add_sat_i(int32_t a, int32_t b, bool clamp)
{
    const int64_t sum = (int64_t)a + b;
    return clamp ? (int32_t)SATURATE(sum, INT32_MIN, INT32_MAX) : (int32_t)sum;
}

static inline int32_t to_i8(int32_t a)
{
    return SATURATE(a, -128, 127);
}

static inline int32_t to_u8(int32_t a)
{
    return SATURATE(a, 0, 255);
}

static inline int32_t to_i16(int32_t a)
{
    return SATURATE(a, -32768, 32767);
}

static inline uint32_t bytes(int32_t low, int32_t high)
{
    return ((uint32_t)low & 0xFF) | ((uint32_t)high & 0xFF) << 8;
}

static inline uint32_t halves(uint32_t low, uint32_t high)
{
    return (low & 0xFFFF) | high << 16;
}

static inline uint64_t pair(float low, float high)
{
    return sim_bits_of(low) | (uint64_t)sim_bits_of(high) << 32;
}

/* Toward zero, saturated, NaN to 0. */
static inline int32_t to_i32(double a)
{
    return a >= 2147483647.0 ? INT32_MAX : a <= -2147483648.0 ? INT32_MIN : a == a ? (int32_t)a : 0;
}

static inline uint32_t to_u32(double a)
{
    return a >= 4294967295.0 ? UINT32_MAX : a > 0 ? (uint32_t)a : 0;
}

static inline uint32_t to_snorm(float a)
{
    return (uint32_t)(isnan(a) ? 0 : (int32_t)rint(SATURATE((double)a, -1.0, 1.0) * 32767.0));
}

static inline uint32_t to_unorm(float a)
{
    return isnan(a) ? 0 : (uint32_t)rint(SATURATE((double)a, 0.0, 1.0) * 65535.0);
}

static inline uint32_t f16_toward_zero(float a)
{
    const uint32_t nearest = sim_f16_of_f32(a);
    return fabsf(sim_f32_of_f16(nearest)) > fabsf(a) ? nearest - 1 : nearest; /* of Inf: the largest */
}

/* A double as a float rounded to odd: a second rounding, to fewer bits, then gives what one rounding would have. */
static inline float odd(double a)
{
    const float    f = (float)a;
    const uint32_t bits = sim_bits_of(f);
    if ((double)f == a || isnan(a) || (bits & 1) != 0)
        return f;
    return sim_float_of(fabs((double)f) > fabs(a) ? bits - 1 : bits + 1);
}

/* a * b + c, the product exact, rounded to odd in double: the error of the sum says where the exact value lies. */
static inline double sum_odd(double product, double c)
{
    const double   sum = product + c, back = sum - product;
    const double   error = (product - (sum - back)) + (c - back);
    const uint64_t bits = sim_bits_of_double(sum);
    if (error == 0 || !isfinite(sum) || (bits & 1) != 0)
        return sum;
    return sim_double_of((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

static inline float fma_odd(float a, float b, float c)
{
    return odd(sum_odd((double)a * b, c));
}

static inline float quiet(float a)
{
    return sim_float_of(sim_bits_of(a) | 0x400000u);
}

static inline bool is_signalling(float a)
{
    return isnan(a) && (sim_bits_of(a) & 0x400000u) == 0;
}

/* A number wins over a NaN, and +0 is above -0. */
static inline float max_num(float a, float b)
{
    return isnan(a) ? b : isnan(b) || a > b || (a == b && !signbit(a)) ? a : b;
}

static inline float min_num(float a, float b)
{
    return isnan(a) ? b : isnan(b) || a < b || (a == b && signbit(a)) ? a : b;
}

static inline float maximum(float a, float b)
{
    return isnan(a) ? quiet(a) : isnan(b) ? quiet(b) : max_num(a, b);
}

static inline float minimum(float a, float b)
{
    return isnan(a) ? quiet(a) : isnan(b) ? quiet(b) : min_num(a, b);
}

/* With MODE.IEEE a signalling NaN is made quiet and wins (ISA: V_MAX_F32). */
static inline float max_ieee(const lane_rows *x, float a, float b)
{
    if (x->ieee && (is_signalling(a) || is_signalling(b)))
        return quiet(is_signalling(a) ? a : b);
    return max_num(a, b);
}

static inline float min_ieee(const lane_rows *x, float a, float b)
{
    if (x->ieee && (is_signalling(a) || is_signalling(b)))
        return quiet(is_signalling(a) ? a : b);
    return min_num(a, b);
}

static inline float med3(float a, float b, float c)
{
    if (isnan(a) || isnan(b) || isnan(c))
        return min_num(min_num(a, b), c);
    return max_num(min_num(a, b), min_num(max_num(a, b), c));
}

static inline double quiet64(double a)
{
    return sim_double_of(sim_bits_of_double(a) | UINT64_C(1) << 51);
}

static inline bool is_signalling64(double a)
{
    return isnan(a) && (sim_bits_of_double(a) >> 51 & 1) == 0;
}

static inline double max_num64(double a, double b)
{
    return isnan(a) ? b : isnan(b) || a > b || (a == b && !signbit(a)) ? a : b;
}

static inline double min_num64(double a, double b)
{
    return isnan(a) ? b : isnan(b) || a < b || (a == b && signbit(a)) ? a : b;
}

static inline double maximum64(double a, double b)
{
    return isnan(a) ? quiet64(a) : isnan(b) ? quiet64(b) : max_num64(a, b);
}

static inline double minimum64(double a, double b)
{
    return isnan(a) ? quiet64(a) : isnan(b) ? quiet64(b) : min_num64(a, b);
}

static inline double max_ieee64(const lane_rows *x, double a, double b)
{
    if (x->ieee && (is_signalling64(a) || is_signalling64(b)))
        return quiet64(is_signalling64(a) ? a : b);
    return max_num64(a, b);
}

static inline double min_ieee64(const lane_rows *x, double a, double b)
{
    if (x->ieee && (is_signalling64(a) || is_signalling64(b)))
        return quiet64(is_signalling64(a) ? a : b);
    return min_num64(a, b);
}

/* a - floor(a), kept below 1: `most` is the format's largest number that is. */
static inline double fract(double a, double most)
{
    const double part = a - floor(a);
    return part > most ? most : part;
}

static inline double frexp_mantissa(double a)
{
    int exponent;
    return isfinite(a) ? frexp(a, &exponent) : a;
}

static inline int32_t frexp_exponent(double a)
{
    int exponent = 0;
    if (isfinite(a))
        frexp(a, &exponent);
    return exponent;
}

/* Of revolutions. Whole ones are taken off first, exactly, so that large arguments keep their phase. */
static inline double sine(double a)
{
    return sin(remainder(a, 1.0) * 6.283185307179586476925);
}

static inline double cosine(double a)
{
    return cos(remainder(a, 1.0) * 6.283185307179586476925);
}

/* The quotient `q` of c / b, or what the operands make of it (ISA: V_DIV_FIXUP_F32, where b is S1 and c is S2). */
static inline float div_fixup(float q, float b, float c)
{
    const bool negative = signbit(b) != signbit(c);
    if (isnan(c) || isnan(b))
        return quiet(isnan(c) ? c : b);
    if ((b == 0 && c == 0) || (isinf(b) && isinf(c)))
        return sim_float_of(0xFFC00000u);
    if (b == 0 || isinf(c))
        return negative ? -INFINITY : INFINITY;
    if (isinf(b) || c == 0)
        return negative ? -0.0f : 0.0f;
    return negative ? -fabsf(q) : fabsf(q);
}

/* As above, and of F32: exponents more than 150 apart give 0. Of two numbers the sequence before makes a NaN only
 * where it went through Inf - Inf: the quotient is too large. The manual's test for that, an exponent of S1 that is
 * all ones, cannot hold here; a NaN instead of Inf would make every compiled division wrong. */
static inline float div_fixup32(float q, float b, float c)
{
    const int of_b = (int)(sim_bits_of(b) >> 23 & 0xFF), of_c = (int)(sim_bits_of(c) >> 23 & 0xFF);
    if (isfinite(b) && b != 0 && isfinite(c) && c != 0)
        q = of_c - of_b < -150 ? 0.0f : isnan(q) ? INFINITY : q;
    return div_fixup(q, b, c);
}

static inline double div_fixup64(double q, double b, double c)
{
    const bool negative = signbit(b) != signbit(c);
    const int  of_b = (int)(sim_bits_of_double(b) >> 52 & 0x7FF), of_c = (int)(sim_bits_of_double(c) >> 52 & 0x7FF);
    if (isnan(c) || isnan(b))
        return quiet64(isnan(c) ? c : b);
    if ((b == 0 && c == 0) || (isinf(b) && isinf(c)))
        return sim_double_of(UINT64_C(0xFFF8000000000000));
    if (b == 0 || isinf(c))
        return negative ? -INFINITY : INFINITY;
    if (isinf(b) || c == 0 || of_c - of_b < -1075)
        return negative ? -0.0 : 0.0;
    q = isnan(q) ? INFINITY : fabs(q);
    return negative ? -q : q;
}

/* fma(a, b, c), and where v_div_scale scaled one operand only, by 2^64 or 2^-64 to undo it: large quotients up, small
 * ones down. One rounding in all, so that a denormal quotient is rounded once. */
static inline float div_fmas(float a, float b, float c, bool undo)
{
    const double exact = sum_odd((double)a * b, c);
    if (!undo)
        return (float)exact;
    return (float)(exact * (fabsf(c) >= 2.0f ? 0x1p64 : 0x1p-64));
}

static inline double div_fmas64(double a, double b, double c, bool undo)
{
    const double sum = fma(a, b, c);
    if (!undo)
        return sum;
    if (fabs(c) >= 2.0)
        return sum * 0x1p128;
    if (sum == 0 || !isfinite(sum) || fabs(sum) >= 0x1p-894) /* 2^128 times the smallest normal number: exact */
        return sum * 0x1p-128;
    /* Into the denormals with one rounding: the sum and its error in long double, rounded to odd there. c - sum is
     * exact where a * b corrects the quotient c in its last places. */
    const double rest = fma(a, b, c - sum);
    long double  exact = (long double)sum + rest;
    uint64_t     low; /* of the mantissa, on every little-endian host */
    memcpy(&low, &exact, sizeof low);
    if (exact - sum != rest && (low & 1) == 0)
        exact = nextafterl(exact, exact - sum < rest ? INFINITY : -INFINITY);
    return (double)(exact * 0x1p-128L);
}

/* The bits of V_CMP_CLASS: signalling NaN, quiet NaN, -Inf, -normal, -denormal, -0, +0, +denormal, +normal, +Inf. */
static inline uint32_t classes(uint64_t bits, int exponent, int mantissa)
{
    const uint64_t fraction = bits & ((UINT64_C(1) << mantissa) - 1),
                   field = bits >> mantissa & ((1u << exponent) - 1u);
    const bool     negative = bits >> (exponent + mantissa) & 1;
    if (field == (1u << exponent) - 1u && fraction != 0)
        return fraction >> (mantissa - 1) & 1 ? 2 : 1;
    const int size = field == (1u << exponent) - 1u ? 3 : field != 0 ? 2 : fraction != 0 ? 1 : 0;
    return 1u << (negative ? 5 - size : 6 + size);
}

static inline uint32_t classes16(uint32_t a)
{
    return classes(a & 0xFFFF, 5, 10);
}

static inline uint32_t classes32(uint32_t a)
{
    return classes(a, 8, 23);
}

static inline uint32_t classes64(uint64_t a)
{
    return classes(a, 11, 52);
}

static uint32_t sr(const lane_rows *x, sim_format format, float a, uint32_t seed)
{
    return sim_encode_stochastic(format, a, seed, x->saturate);
}

static int32_t fp8(const lane_rows *x, float a)
{
    return (int32_t)sim_encode(x->inst->clamp ? SIM_E5M3 : SIM_FP8, a, x->saturate);
}

static int32_t bf8(const lane_rows *x, float a)
{
    return (int32_t)sim_encode(SIM_BF8, a, x->saturate);
}

static inline float fp8_value(const lane_rows *x, uint32_t a)
{
    return (x->inst->clamp ? sim_value_of_e5m3 : sim_value_of_fp8)[a & 0xFF];
}

static uint32_t f16_pair(const float *table, uint32_t a)
{
    return halves(sim_f16_of_f32(table[a & 0xFF]), sim_f16_of_f32(table[a >> 8 & 0xFF]));
}

/* Loads, stores and C types of the lane types
 * -------------------------------------------
 */
#define C_U32 uint32_t
#define C_I32 int32_t
#define C_F32 float
#define C_U64 uint64_t
#define C_I64 int64_t
#define C_F64 double
#define C_U16 uint16_t
#define C_I16 int16_t
#define C_F16 float
#define C_BF16 float
#define C_MASK uint32_t

#define WORDS(k) (x->s[k][0][l] | (uint64_t)x->s[k][1][l] << 32)
#define GET_U32(k) x->s[k][0][l]
#define GET_I32(k) (int32_t)x->s[k][0][l]
#define GET_F32(k) sim_float_of(x->s[k][0][l])
#define GET_U64(k) WORDS(k)
#define GET_I64(k) (int64_t)WORDS(k)
#define GET_F64(k) sim_double_of(WORDS(k))
#define GET_U16(k) (uint16_t)x->s[k][0][l]
#define GET_I16(k) (int16_t)(uint16_t)x->s[k][0][l]
#define GET_F16(k) sim_f32_of_f16(x->s[k][0][l] & 0xFFFFu)
#define GET_BF16(k) sim_f32_of_bf16(x->s[k][0][l] & 0xFFFFu)
#define GET_MASK(k) x->s[k][0][l]

#define PUT_U32(v) x->d[0][l] = (uint32_t)(v)
#define PUT_I32(v) x->d[0][l] = (uint32_t)(v)
#define PUT_F32(v) x->d[0][l] = sim_bits_of((float)(v))
#define PUT_WORDS(v) x->d[0][l] = (uint32_t)(v), x->d[1][l] = (uint32_t)((v) >> 32)
#define PUT_U64(v)            \
    const uint64_t to_ = (v); \
    PUT_WORDS(to_)
#define PUT_I64(v)                      \
    const uint64_t to_ = (uint64_t)(v); \
    PUT_WORDS(to_)
#define PUT_F64(v)                                \
    const uint64_t to_ = sim_bits_of_double((v)); \
    PUT_WORDS(to_)
#define PUT_U16(v) x->d[0][l] = (uint16_t)(v)
#define PUT_I16(v) x->d[0][l] = (uint16_t)(v)
#define PUT_F16(v) x->d[0][l] = sim_f16_of_f32((float)(v))
#define PUT_BF16(v) x->d[0][l] = sim_bf16_of_f32((float)(v))
#define PUT_SATURATED(v, type, low, high) \
    const int64_t to_ = (v);              \
    x->d[0][l] = (uint32_t)(type)(x->clamp ? SATURATE(to_, (int64_t)(low), (int64_t)(high)) : to_)
#define PUT_SU32(v) PUT_SATURATED(v, uint32_t, 0, UINT32_MAX)
#define PUT_SI32(v) PUT_SATURATED(v, int32_t, INT32_MIN, INT32_MAX)
#define PUT_SU16(v) PUT_SATURATED(v, uint16_t, 0, UINT16_MAX)
#define PUT_SI16(v) PUT_SATURATED(v, uint16_t, INT16_MIN, INT16_MAX)
#define PUT_MASK(v) x->d[0][l] = (v) ? 1u : 0u

/* Mixed sources: a half where op_sel_hi says so; the frame has already moved the chosen half down. */
enum { MIX_F16 = 0, MIX_BF16 = 1, MIX_HIGH = 2 };

static inline float mixed(const lane_rows *x, int k, int l, bool bf16)
{
    const uint32_t bits = x->s[k][0][l];
    if (!x->inst->has_op_sel_hi || (x->inst->op_sel_hi >> k & 1) == 0)
        return sim_float_of(bits);
    return bf16 ? sim_f32_of_bf16(bits & 0xFFFF) : sim_f32_of_f16(bits & 0xFFFF);
}

/* Dot products: elements of `width` bits of the first two sources. Float ones are summed in double and rounded once:
 * the hardware's order is not documented. */
enum { DOT_UNSIGNED, DOT_SIGNED, DOT_BY_NEG, DOT_F16, DOT_BF16 };

static inline int64_t element(uint32_t bits, int i, int width, bool is_signed)
{
    const uint32_t e = bits << (32 - width * (i + 1));
    return is_signed ? (int64_t)((int32_t)e >> (32 - width)) : (int64_t)(e >> (32 - width));
}

static inline uint32_t dot_integer(const lane_rows *x, uint32_t a, uint32_t b, uint32_t c, int width, int kind)
{
    const bool signs = kind == DOT_SIGNED;
    const bool a_signed = kind == DOT_BY_NEG ? x->inst->neg_lo & 1 : signs;
    const bool b_signed = kind == DOT_BY_NEG ? x->inst->neg_lo >> 1 & 1 : signs;
    int64_t    sum = kind == DOT_UNSIGNED ? (int64_t)c : (int64_t)(int32_t)c;
    for (int i = 0; i < 32 / width; i++)
        sum += element(a, i, width, a_signed) * element(b, i, width, b_signed);
    if (!x->clamp)
        return (uint32_t)sum;
    return kind == DOT_UNSIGNED ? (uint32_t)SATURATE(sum, 0, (int64_t)UINT32_MAX)
                                : (uint32_t)SATURATE(sum, (int64_t)INT32_MIN, (int64_t)INT32_MAX);
}

static inline float dot_half(uint32_t bits, int kind)
{
    return kind == DOT_F16 ? sim_f32_of_f16(bits & 0xFFFF) : sim_f32_of_bf16(bits & 0xFFFF);
}

static inline uint32_t dot_float(uint32_t a, uint32_t b, uint32_t c, int kind)
{
    const double low = (double)dot_half(a, kind) * dot_half(b, kind);
    const double high = (double)dot_half(a >> 16, kind) * dot_half(b >> 16, kind);
    return sim_bits_of((float)(low + high + sim_float_of(c)));
}

static inline uint32_t dot(const lane_rows *x, uint32_t a, uint32_t b, uint32_t c, int width, int kind)
{
    return kind >= DOT_F16 ? dot_float(a, b, c, kind) : dot_integer(x, a, b, c, width, kind);
}

/* One function for each formula
 * -----------------------------
 */
#define BODY1(D, A, formula)        \
    LANES                           \
    {                               \
        const C_##A a = GET_##A(0); \
        (void)l;                    \
        PUT_##D(formula);           \
    }
#define BODY2(D, A, B, formula)     \
    LANES                           \
    {                               \
        const C_##A a = GET_##A(0); \
        const C_##B b = GET_##B(1); \
        PUT_##D(formula);           \
    }
#define BODY3(D, A, B, C, formula)  \
    LANES                           \
    {                               \
        const C_##A a = GET_##A(0); \
        const C_##B b = GET_##B(1); \
        const C_##C c = GET_##C(2); \
        PUT_##D(formula);           \
    }
#define BODYACC(D, A, B, formula)   \
    LANES                           \
    {                               \
        const C_##A a = GET_##A(0); \
        const C_##B b = GET_##B(1); \
        const C_##D d = GET_##D(2); \
        PUT_##D(formula);           \
    }

/* A copy of the rows' addresses that no store of a lane can reach: else no loop is vectorised. */
#define LANES_OF(name, ...)                         \
    static void lanes_##name(const lane_rows *rows) \
    {                                               \
        const lane_rows here = *rows, *x = &here;   \
        __VA_ARGS__                                 \
    }
#define LANES_WITH_FMA(name, ...)                                \
    LANES_OF(name, __VA_ARGS__)                                  \
    WITH_FMA static void lanes_fma_##name(const lane_rows *rows) \
    {                                                            \
        const lane_rows here = *rows, *x = &here;                \
        __VA_ARGS__                                              \
    }

#define V1(name, arches, options, D, A, formula) LANES_OF(name, BODY1(D, A, formula))
#define V2(name, arches, options, D, A, B, formula) LANES_OF(name, BODY2(D, A, B, formula))
#define V3(name, arches, options, D, A, B, C, formula) LANES_OF(name, BODY3(D, A, B, C, formula))
#define V3F(name, arches, options, D, A, B, C, formula) LANES_WITH_FMA(name, BODY3(D, A, B, C, formula))
#define ACC2(name, arches, options, D, A, B, formula) LANES_OF(name, BODYACC(D, A, B, formula))
#define ACC2F(name, arches, options, D, A, B, formula) LANES_WITH_FMA(name, BODYACC(D, A, B, formula))
#define VS1(name, D, options, formula) LANES_OF(name, BODY1(D, D, formula))
#define PK2(name, arches, D, A, B, formula) LANES_OF(name, BODY2(D, A, B, formula))
#define PK3(name, arches, D, A, B, C, formula) LANES_OF(name, BODY3(D, A, B, C, formula))
#define PKACC(name, arches, D, A, B, formula) LANES_OF(name, BODYACC(D, A, B, formula))
#define PW2(name, D, A, B, formula) LANES_OF(name, BODY2(D, A, B, formula))
#define PW3F(name, D, A, B, C, formula) LANES_WITH_FMA(name, BODY3(D, A, B, C, formula))
#define CARRY_BODY(formula)         \
    const uint64_t sum = (formula); \
    x->d[0][l] = (uint32_t)sum;     \
    x->carry[l] = (uint32_t)(sum >> 32) & 1u;
#define CARRY2(name, arches, formula)                      \
    LANES_OF(                                              \
        name, LANES {                                      \
            const uint32_t a = GET_U32(0), b = GET_U32(1); \
            CARRY_BODY(formula)                            \
        })
#define CARRY3(name, arches, formula)                                       \
    LANES_OF(                                                               \
        name, LANES {                                                       \
            const uint32_t a = GET_U32(0), b = GET_U32(1), c = GET_MASK(2); \
            CARRY_BODY(formula)                                             \
        })
#define CARRY64(name, arches, A, C, formula)                        \
    LANES_OF(                                                       \
        name, LANES {                                               \
            const C_##A             a = GET_##A(0), b = GET_##A(1); \
            const C_##C             c = GET_##C(2);                 \
            const unsigned __int128 sum = (formula);                \
            x->d[0][l] = (uint32_t)sum;                             \
            x->d[1][l] = (uint32_t)(sum >> 32);                     \
            x->carry[l] = (uint32_t)(sum >> 64) & 1u;               \
        })
#define MIX(name, arches, how, D)                                                            \
    LANES_WITH_FMA(                                                                          \
        name, LANES {                                                                        \
            const bool bf16 = ((how) & MIX_BF16) != 0;                                       \
            PUT_##D(fmaf(mixed(x, 0, l, bf16), mixed(x, 1, l, bf16), mixed(x, 2, l, bf16))); \
        })
#define DOT(name, arches, width, kind) \
    LANES_OF(name, LANES { x->d[0][l] = dot(x, GET_U32(0), GET_U32(1), GET_U32(2), width, kind); })
#define DOTC(name, width, kind) DOT(name, GFX950, width, kind)
#define CMP(what, arches, A, B, formula) LANES_OF(v_cmp_##what, BODY2(MASK, A, B, formula))
#define DUAL(name, base, flags)
#define CMP_FLOATS(type, A)                                \
    CMP(f_##type, GFX950, A, A, ((void)a, (void)b, false)) \
    CMP(lt_##type, BOTH, A, A, a < b)                      \
    CMP(eq_##type, BOTH, A, A, a == b)                     \
    CMP(le_##type, BOTH, A, A, a <= b)                     \
    CMP(gt_##type, BOTH, A, A, a > b)                      \
    CMP(lg_##type, BOTH, A, A, a<b || a> b)                \
    CMP(ge_##type, BOTH, A, A, a >= b)                     \
    CMP(o_##type, BOTH, A, A, a == a && b == b)            \
    CMP(u_##type, BOTH, A, A, a != a || b != b)            \
    CMP(nge_##type, BOTH, A, A, !(a >= b))                 \
    CMP(nlg_##type, BOTH, A, A, !(a < b || a > b))         \
    CMP(ngt_##type, BOTH, A, A, !(a > b))                  \
    CMP(nle_##type, BOTH, A, A, !(a <= b))                 \
    CMP(neq_##type, BOTH, A, A, !(a == b))                 \
    CMP(nlt_##type, BOTH, A, A, !(a < b))                  \
    CMP(tru_##type, GFX950, A, A, ((void)a, (void)b, true))
#define CMP_INTEGERS(type, A)                              \
    CMP(f_##type, GFX950, A, A, ((void)a, (void)b, false)) \
    CMP(lt_##type, BOTH, A, A, a < b)                      \
    CMP(eq_##type, BOTH, A, A, a == b)                     \
    CMP(le_##type, BOTH, A, A, a <= b)                     \
    CMP(gt_##type, BOTH, A, A, a > b)                      \
    CMP(ne_##type, BOTH, A, A, a != b)                     \
    CMP(ge_##type, BOTH, A, A, a >= b)                     \
    CMP(t_##type, GFX950, A, A, ((void)a, (void)b, true))

LANES_OF(v_bitop2_b32, LANES { x->d[0][l] = bitop3(x->inst->bitop3, GET_U32(0), GET_U32(1), 0); })
#include "valu.def"
#include "valu_undef.h"

/* Operands as rows
 * ----------------
 */
/* 0 or all ones for each bit of a byte: eight lanes of a mask at a time. */
static uint32_t expanded[256][8];

__attribute__((constructor)) static void fill_expanded(void)
{
    for (int byte = 0; byte < 256; byte++)
        for (int bit = 0; bit < 8; bit++)
            expanded[byte][bit] = byte >> bit & 1 ? UINT32_MAX : 0;
}

void valu_expand(uint32_t *to, uint64_t mask, int lanes)
{
    for (int l = 0; l < lanes; l += 8)
        memcpy(to + l, expanded[mask >> l & 0xFF], 8 * sizeof *to);
}

void valu_write(uint32_t *to, const uint32_t *t, uint64_t mask, int lanes)
{
    if (mask == (lanes == 64 ? UINT64_MAX : 0xFFFFFFFFu)) {
        memmove(to, t, (size_t)lanes * sizeof *to);
        return;
    }
    for (int l = 0; l < lanes; l += 8) {
        const uint32_t *keep = expanded[mask >> l & 0xFF];
        for (int i = 0; i < 8; i++)
            to[l + i] = (to[l + i] & ~keep[i]) | (t[l + i] & keep[i]);
    }
}

static uint64_t mask_of(const uint32_t *bits, int lanes)
{
    uint64_t mask = 0;
    for (int l = 0; l < lanes; l++)
        mask |= (uint64_t)(bits[l] & 1u) << l;
    return mask;
}

static bool is_register(const sim_operand *o)
{
    return o->kind == SIM_VECTOR || o->kind == SIM_ACC;
}

/* 1 / (2 pi) is printed with fewer digits than it has. */
static uint64_t real_bits(double real, uint8_t type)
{
    const bool inverse = real > 0.15915 && real < 0.15916;
    switch (type) {
    case T_F64:
    case T_U64:
    case T_I64:
        return inverse ? UINT64_C(0x3FC45F306DC9C882) : sim_bits_of_double(real);
    case T_BF16:
        return inverse ? 0x3E22u : sim_bf16_of_f32((float)real);
    case T_F16:
    case T_U16:
    case T_I16:
        return inverse ? 0x3118u : sim_f16_of_f32((float)real);
    default:
        return inverse ? 0x3E22F983u : sim_bits_of((float)real);
    }
}

uint64_t valu_uniform(const sim_wave *w, const sim_operand *o, uint8_t type)
{
    switch (o->kind) {
    case SIM_REAL:
        return real_bits(o->real, type);
    case SIM_INTEGER: /* of 32 bits in a double: the high half; signed 64-bit sources extend it */
        if (o->literal && o->count < 2 && type == T_F64)
            return (uint64_t)(uint32_t)o->value << 32;
        if (o->literal && o->count < 2 && type == T_I64)
            return (uint64_t)(int64_t)(int32_t)o->value;
        if (o->literal && o->count < 2)
            return (uint32_t)o->value;
        return (uint64_t)o->value;
    case SIM_SCALAR:
        if (o->reg + 1 < SIM_SCALARS && (lane_type_is_pair(type) || (type == T_MASK && w->lanes == 64)))
            return sim_scalar64(w, o->reg);
        return w->s[o->reg];
    default:
        return lane_type_is_pair(type) ? sim_scalar_source64(w, o, false) : sim_scalar_source(w, o);
    }
}

const uint32_t *valu_word(const sim_wave *w, const sim_operand *o, int i, uint8_t type, uint32_t *room)
{
    if (is_register(o))
        return sim_vector(w, o, i);
    const uint32_t word = (uint32_t)(valu_uniform(w, o, type) >> 32 * i);
    for (int l = 0; l < w->lanes; l++)
        room[l] = word;
    return room;
}

/* The lane that a DPP lane reads, or -1: outside the row or the wave. */
static int dpp_source(const sim_instruction *inst, int l, int lanes)
{
    const int row = l & ~15, i = l & 15, n = (int)inst->dpp_arg;
    switch (inst->dpp) {
    case SIM_DPP_QUAD_PERM:
        return (l & ~3) + (n >> 2 * (l & 3) & 3);
    case SIM_DPP_ROW_SHL:
        return i + n < 16 ? l + n : -1;
    case SIM_DPP_ROW_SHR:
        return i >= n ? l - n : -1;
    case SIM_DPP_ROW_ROR:
        return row + ((i - n) & 15);
    case SIM_DPP_WAVE_SHL:
        return l + 1 < lanes ? l + 1 : -1;
    case SIM_DPP_WAVE_SHR:
        return l - 1;
    case SIM_DPP_WAVE_ROL:
        return (l + 1) % lanes;
    case SIM_DPP_WAVE_ROR:
        return (l + lanes - 1) % lanes;
    case SIM_DPP_ROW_MIRROR:
        return row + 15 - i;
    case SIM_DPP_ROW_HALF_MIRROR:
        return (l & ~7) + 7 - (l & 7);
    case SIM_DPP_ROW_BCAST: /* lane 15 of a row to the next one, or lane 31 to the upper half */
        return n == 15 ? row - 1 : l >= 32 ? 31 : -1;
    case SIM_DPP_ROW_NEWBCAST:
    case SIM_DPP_ROW_SHARE:
        return row + (n & 15);
    case SIM_DPP_ROW_XMASK:
        return row + (i ^ (n & 15));
    case SIM_DPP8:
        return (l & ~7) + (n >> 3 * (l & 7) & 7);
    default:
        return l;
    }
}

/* Lanes that a DPP instruction writes: its rows and banks, and those with a source. A source that EXEC has switched
 * off counts as missing unless fi says otherwise; where bound_ctrl is set, what is missing reads 0 instead. */
static uint64_t dpp_lanes(const sim_wave *w, const sim_instruction *inst)
{
    const uint64_t exec = sim_exec(w);
    uint64_t       lanes = 0;
    for (int l = 0; l < w->lanes; l++) {
        const int  from = dpp_source(inst, l, w->lanes);
        const bool there = from >= 0 && (inst->fetch_inactive || (exec >> from & 1) != 0);
        const bool masked = inst->dpp != SIM_DPP8 &&
                            ((inst->row_mask >> (l >> 4 & 3) & 1) == 0 || (inst->bank_mask >> (l >> 2 & 3) & 1) == 0);
        if (!masked && (there || inst->bound_ctrl || inst->dpp == SIM_DPP8))
            lanes |= UINT64_C(1) << l;
    }
    return lanes;
}

static void dpp_fetch(const sim_wave *w, const sim_instruction *inst, const uint32_t *from, uint32_t *to)
{
    const uint64_t exec = sim_exec(w);
    lane_row       copy;
    for (int l = 0; l < w->lanes; l++) {
        const int  lane = dpp_source(inst, l, w->lanes);
        const bool there = lane >= 0 && (inst->fetch_inactive || (exec >> lane & 1) != 0);
        copy[l] = there ? from[lane] : 0;
    }
    memcpy(to, copy, (size_t)w->lanes * sizeof *to);
}

static void select_part(uint32_t *row, int lanes, uint8_t select, bool sext)
{
    const int width = select >= SIM_WORD_0 ? 16 : 8;
    const int shift = select >= SIM_WORD_0 ? 16 * (select - SIM_WORD_0) : 8 * (select - SIM_BYTE_0);
    for (int l = 0; l < lanes; l++) {
        const uint32_t top = row[l] >> shift << (32 - width);
        row[l] = sext ? (uint32_t)((int32_t)top >> (32 - width)) : top >> (32 - width);
    }
}

/* MODE's denormal bits, of F32 and of F16 and F64: 1 keeps those of sources, 2 those of results (ISA: MODE). */
static bool keeps_denormals(const sim_wave *w, uint8_t type, bool result)
{
    const int shift = type == T_F32 ? 4 : 6;
    return type == T_BF16 || (w->mode >> shift >> (result ? 1 : 0) & 1) != 0;
}

static void flush(uint32_t *low, uint32_t *high, int lanes, uint8_t type)
{
    for (int l = 0; l < lanes; l++) {
        if (type == T_F32 && (low[l] & 0x7F800000u) == 0)
            low[l] &= 0x80000000u;
        else if ((type == T_F16 || type == T_BF16) && (low[l] & (type == T_F16 ? 0x7C00u : 0x7F80u)) == 0)
            low[l] &= 0x8000u;
        else if (type == T_F64 && (high[l] & 0x7FF00000u) == 0)
            low[l] = 0, high[l] &= 0x80000000u;
    }
}

/* abs, then neg, on the sign bit of the type. */
static void change_sign(uint32_t *row, int lanes, uint32_t bit, bool absolute, bool negate)
{
    for (int l = 0; l < lanes; l++) {
        const uint32_t size = absolute ? row[l] & ~bit : row[l];
        row[l] = negate ? size ^ bit : size;
    }
}

/* How a source is to be read, beside its operand. */
typedef struct fetch_how {
    uint8_t type;
    bool    high;   /* the upper half, moved down; of packed words: the second word */
    bool    negate; /* beside the operand's own */
    bool    dpp, flush;
} fetch_how;

static void fetch(const sim_wave *w, const sim_instruction *inst, const sim_operand *o, fetch_how how,
                  const uint32_t *row[2], lane_row room[2])
{
    const int  n = w->lanes;
    const bool pair = lane_type_is_pair(how.type);
    if (how.type == T_MASK) {
        valu_expand(room[0], valu_uniform(w, o, T_MASK), n);
        row[0] = row[1] = room[0];
        return;
    }
    for (int i = 0; i <= (int)pair; i++)
        row[i] = valu_word(w, o, i, how.type, room[i]);
    if (!pair)
        row[1] = row[0];
    const bool selected = o->select != SIM_DWORD && is_register(o);
    if (!how.dpp && !selected && !how.high && !how.negate && !how.flush && !o->negate && !o->absolute)
        return;
    for (int i = 0; i <= (int)pair; i++) {
        if (how.dpp)
            dpp_fetch(w, inst, row[i], room[i]);
        else if (row[i] != room[i])
            memcpy(room[i], row[i], (size_t)n * sizeof room[i][0]);
        row[i] = room[i];
    }
    if (!pair)
        row[1] = row[0];
    if (selected)
        select_part(room[0], n, o->select, o->sext);
    if (how.high)
        select_part(room[0], n, SIM_WORD_1, false);
    /* A half that SDWA or op_sel chose, or the low one of a register: its sign is bit 15. */
    const uint32_t sign = lane_type_is_half(how.type) ? 0x8000u : 0x80000000u;
    if (o->absolute || o->negate || how.negate) {
        change_sign(room[pair], n, sign, o->absolute, o->negate);
        change_sign(room[pair], n, sign, false, how.negate);
    }
    if (how.flush)
        flush(room[0], room[1], n, how.type);
}

/* Results
 * -------
 */
static double scale_of_omod(uint8_t omod)
{
    return omod == 1 ? 2.0 : omod == 2 ? 4.0 : 0.5;
}

/* omod, then clamp to [0, 1] with NaN to 0, on a row of a float type. */
static void modify_floats(lane_row row[2], int lanes, uint8_t type, uint8_t omod, bool clamp)
{
    for (int l = 0; l < lanes; l++) {
        double v = type == T_F64   ? sim_double_of(row[0][l] | (uint64_t)row[1][l] << 32)
                   : type == T_F32 ? (double)sim_float_of(row[0][l])
                   : type == T_F16 ? (double)sim_f32_of_f16(row[0][l] & 0xFFFF)
                                   : (double)sim_f32_of_bf16(row[0][l] & 0xFFFF);
        if (omod != 0)
            v *= scale_of_omod(omod);
        if (clamp)
            v = v > 1 ? 1 : v > 0 ? v : 0;
        if (type == T_F64) {
            row[0][l] = (uint32_t)sim_bits_of_double(v);
            row[1][l] = (uint32_t)(sim_bits_of_double(v) >> 32);
        } else if (type == T_F32) {
            row[0][l] = sim_bits_of((float)v);
        } else {
            row[0][l] = type == T_F16 ? sim_f16_of_f32((float)v) : sim_bf16_of_f32((float)v);
        }
    }
}

/* Puts a part of the result in its place: SDWA's dst_sel, or a half of the register. */
static void place_part(uint32_t *row, const uint32_t *old, int lanes, uint8_t select, uint8_t unused)
{
    const int      width = select >= SIM_WORD_0 ? 16 : 8;
    const int      shift = select >= SIM_WORD_0 ? 16 * (select - SIM_WORD_0) : 8 * (select - SIM_BYTE_0);
    const uint32_t bits = ((1u << width) - 1u) << shift;
    for (int l = 0; l < lanes; l++) {
        const uint32_t part = row[l] << shift & bits;
        if (unused == 2) /* preserve */
            row[l] = (old[l] & ~bits) | part;
        else if (unused == 1) /* sign above, 0 below */
            row[l] = (uint32_t)((int32_t)(part << (32 - width - shift)) >> (32 - width)) << shift;
        else
            row[l] = part;
    }
}

enum { UNUSED_PAD = 0, UNUSED_PRESERVE = 2 };

/* Which part of the destination a half or SDWA result goes to; SIM_DWORD: all of it. */
static uint8_t destination_part(const sim_wave *w, const sim_instruction *inst, const lane_shape *shape,
                                uint8_t *unused)
{
    if (inst->sdwa && inst->dst_select != SIM_DWORD) {
        *unused = inst->dst_unused;
        return inst->dst_select;
    }
    if (!lane_type_is_half(shape->result) || inst->sdwa)
        return SIM_DWORD;
    const sim_operand *to = &inst->operand[0];
    const bool         bit = (inst->op_sel >> shape->sources & 1) != 0 && (shape->options & OPT_HIGH) == 0;
    const bool         high = to->select == SIM_WORD_1 || bit || (shape->options & OPT_HIGH) != 0;
    *unused = UNUSED_PRESERVE;
    if (!high && (shape->options & OPT_H0) != 0 && w->group->arch == SIM_GFX950)
        return SIM_DWORD;
    return high ? SIM_WORD_1 : SIM_WORD_0;
}

static lane_function *lanes_of(const lane_shape *shape)
{
#if defined(__x86_64__)
    if (shape->lanes_fma != NULL && __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"))
        return shape->lanes_fma;
#endif
    return shape->lanes;
}

static bool has_floats(const lane_shape *shape)
{
    bool floats = lane_type_is_float(shape->result);
    for (int k = 0; k < shape->sources; k++)
        floats = floats || lane_type_is_float(shape->source[k]);
    return floats;
}

/* Rounding other than to nearest even is not modelled. */
static bool is_unsupported(sim_wave *w, const sim_instruction *inst, const lane_shape *shape)
{
    if ((w->mode & 0xFu) != 0 && has_floats(shape)) {
        sim_fail(w, inst, "MODE asks for a rounding other than to nearest even");
        return true;
    }
    return false;
}

static void start_rows(lane_rows *x, const sim_wave *w, const sim_instruction *inst)
{
    x->n = w->lanes;
    x->inst = inst;
    x->vcc = sim_scalar64(w, SIM_VCC);
    x->clamp = inst->clamp;
    x->ieee = w->group->arch == SIM_GFX950 && (w->mode >> 9 & 1) != 0;
    x->saturate = (w->mode & SIM_MODE_FP16_OVFL) != 0;
}

static bool flushes(const sim_wave *w, const lane_shape *shape, uint8_t type, bool result)
{
    return lane_type_is_float(type) && ((shape->options & OPT_FLUSH) != 0 || !keeps_denormals(w, type, result));
}

/* Sources of the plain forms: one operand each, as printed behind the results. */
static void fetch_sources(lane_rows *x, const sim_wave *w, const sim_instruction *inst, const lane_shape *shape,
                          lane_row room[4][2])
{
    for (int k = 0; k < shape->sources; k++) {
        const bool         accumulator = (shape->options & OPT_ACC) != 0 && k + 1 == shape->sources;
        const int          number = accumulator ? 0 : inst->op->results + k;
        sim_operand        vcc = { .kind = SIM_SCALAR, .reg = SIM_VCC, .count = 2 };
        const sim_operand *o =
            number < inst->operand_count ? &inst->operand[number] : &vcc; /* VOPD does not print it */
        const bool half = lane_type_is_half(shape->source[k]);
        fetch_how  how = { .type = shape->source[k], .dpp = k == 0 && inst->dpp != SIM_DPP_NONE };
        how.high = half && !accumulator && o->select == SIM_DWORD && (inst->op_sel >> k & 1) != 0;
        how.flush = flushes(w, shape, how.type, false);
        fetch(w, inst, o, how, x->s[k], room[k]);
        if ((shape->options & OPT_BYTE) != 0) { /* gfx1250 prints byte_sel; an SDWA select has been applied already */
            if (x->s[k][0] != room[k][0])
                memcpy(room[k][0], x->s[k][0], (size_t)x->n * sizeof room[k][0][0]);
            if (inst->byte_sel != 0)
                select_part(room[k][0], x->n, (uint8_t)(SIM_BYTE_0 + inst->byte_sel), false);
            x->s[k][0] = room[k][0];
        }
    }
}

static uint64_t written_lanes(const sim_wave *w, const sim_instruction *inst)
{
    return inst->dpp == SIM_DPP_NONE ? sim_exec(w) : sim_exec(w) & dpp_lanes(w, inst);
}

/* The row goes to the register: modified, placed, blended. */
static void finish(sim_wave *w, const sim_instruction *inst, const lane_shape *shape, lane_row t[2], uint64_t mask)
{
    const sim_operand *to = &inst->operand[0];
    const uint8_t      type = shape->result;
    const bool         pair = lane_type_is_pair(type);
    if (lane_type_is_float(type)) {
        const bool kept = !flushes(w, shape, type, true);
        if (!kept)
            flush(t[0], t[1], w->lanes, type);
        const uint8_t omod = keeps_denormals(w, type, true) ? 0 : inst->omod; /* ISA: ignored if denormals are kept */
        const bool    clamp = inst->clamp && (shape->options & OPT_E5M3) == 0;
        if (omod != 0 || clamp)
            modify_floats(t, w->lanes, type, omod, clamp);
    }
    uint8_t       unused = UNUSED_PAD;
    const uint8_t part = destination_part(w, inst, shape, &unused);
    if (part != SIM_DWORD)
        place_part(t[0], sim_vector(w, to, 0), w->lanes, part, unused);
    for (int i = 0; i <= (int)pair; i++)
        valu_write(sim_vector(w, to, i), t[i], mask, w->lanes);
}

static void write_mask(sim_wave *w, const sim_operand *to, uint64_t mask)
{
    if (to->kind != SIM_SCALAR)
        return;
    w->s[to->reg] = (uint32_t)mask;
    if (w->lanes == 64)
        w->s[to->reg + 1] = (uint32_t)(mask >> 32);
}

/* Whether results may go straight to the register: nothing to modify, and every lane written. */
static bool goes_straight(const sim_wave *w, const sim_instruction *inst, const lane_shape *shape, uint64_t mask)
{
    if (mask != sim_all_lanes(w) || inst->sdwa || (inst->clamp && lane_type_is_float(shape->result)) || inst->omod != 0)
        return false;
    if (flushes(w, shape, shape->result, true))
        return false;
    uint8_t unused;
    return destination_part(w, inst, shape, &unused) == SIM_DWORD;
}

static void run_lanes(sim_wave *w, const sim_instruction *inst)
{
    const lane_shape *shape = inst->op->detail;
    lane_row          room[4][2], t[2], carry;
    lane_rows         x;
    if (is_unsupported(w, inst, shape))
        return;
    start_rows(&x, w, inst);
    fetch_sources(&x, w, inst, shape, room);
    const uint64_t mask = written_lanes(w, inst);
    const bool     straight = goes_straight(w, inst, shape, mask);
    for (int i = 0; i < 2; i++)
        x.d[i] = straight && (i == 0 || lane_type_is_pair(shape->result)) ? sim_vector(w, &inst->operand[0], i) : t[i];
    x.carry = carry;
    lanes_of(shape)(&x);
    if (!straight)
        finish(w, inst, shape, t, mask);
    if ((shape->options & OPT_CARRY) != 0)
        write_mask(w, &inst->operand[1], mask_of(carry, w->lanes) & mask);
}

/* Compares: a bit a lane, 0 for lanes that are off. */
static uint64_t compare(sim_wave *w, const sim_instruction *inst)
{
    const lane_shape *shape = inst->op->detail;
    lane_row          room[4][2], t;
    lane_rows         x;
    start_rows(&x, w, inst);
    fetch_sources(&x, w, inst, shape, room);
    x.d[0] = x.d[1] = t;
    shape->lanes(&x);
    return mask_of(t, w->lanes) & written_lanes(w, inst);
}

static void run_compare(sim_wave *w, const sim_instruction *inst)
{
    write_mask(w, &inst->operand[0], compare(w, inst));
}

/* gfx950 writes the named mask too (ISA: V_CMPX); gfx1250 names none. */
static void run_compare_exec(sim_wave *w, const sim_instruction *inst)
{
    const uint64_t mask = compare(w, inst);
    if (inst->op->results > 0)
        write_mask(w, &inst->operand[0], mask);
    sim_set_exec(w, mask);
}

/* Packed forms: the formula runs once for each part. op_sel and neg_lo are the low part's, op_sel_hi and neg_hi the
 * high's; op_sel_hi is all ones where it is not printed. */
static bool packed_bit(const sim_instruction *inst, bool high, int k)
{
    const uint8_t hi = inst->has_op_sel_hi ? inst->op_sel_hi : 0xFF;
    return ((high ? hi : inst->op_sel) >> k & 1) != 0;
}

static void run_packed_halves(sim_wave *w, const sim_instruction *inst)
{
    const lane_shape *shape = inst->op->detail;
    lane_row          room[4][2], t[2][2], joined;
    lane_rows         x;
    if (is_unsupported(w, inst, shape))
        return;
    start_rows(&x, w, inst);
    for (int part = 0; part < 2; part++) {
        for (int k = 0; k < shape->sources; k++) {
            const bool accumulator = (shape->options & OPT_ACC) != 0 && k + 1 == shape->sources;
            fetch_how  how = { .type = shape->source[k] };
            how.high = accumulator ? part != 0 : packed_bit(inst, part != 0, k);
            how.negate = ((part != 0 ? inst->neg_hi : inst->neg_lo) >> k & 1) != 0;
            how.flush = flushes(w, shape, how.type, false);
            fetch(w, inst, &inst->operand[accumulator ? 0 : 1 + k], how, x.s[k], room[k]);
        }
        x.d[0] = x.d[1] = t[part][0];
        shape->lanes(&x);
        if (lane_type_is_float(shape->result) && flushes(w, shape, shape->result, true))
            flush(t[part][0], t[part][1], w->lanes, shape->result);
        if (lane_type_is_float(shape->result) && inst->clamp)
            modify_floats(t[part], w->lanes, shape->result, 0, true);
    }
    for (int l = 0; l < w->lanes; l++)
        joined[l] = (t[0][0][l] & 0xFFFF) | t[1][0][l] << 16;
    valu_write(sim_vector(w, &inst->operand[0], 0), joined, sim_exec(w), w->lanes);
}

/* The word of a packed operand: of registers and scalars the first or second, of constants the value and 0. */
static void packed_word(const sim_wave *w, const sim_instruction *inst, int k, int part, const uint32_t *row[2],
                        lane_row room[2])
{
    sim_operand o = inst->operand[1 + k];
    const bool  second = packed_bit(inst, part != 0, k);
    if (second && (is_register(&o) || o.kind == SIM_SCALAR))
        o.reg++;
    else if (second)
        o = (sim_operand){ .kind = SIM_NONE };
    const bool negate = ((part != 0 ? inst->neg_hi : inst->neg_lo) >> k & 1) != 0;
    fetch(w, inst, &o, (fetch_how){ .type = T_F32, .negate = negate, .flush = !keeps_denormals(w, T_F32, false) }, row,
          room);
}

static void run_packed_words(sim_wave *w, const sim_instruction *inst)
{
    const lane_shape *shape = inst->op->detail;
    lane_row          room[4][2], t[2][2];
    lane_rows         x;
    if (is_unsupported(w, inst, shape))
        return;
    start_rows(&x, w, inst);
    for (int part = 0; part < 2; part++) {
        for (int k = 0; k < shape->sources; k++)
            packed_word(w, inst, k, part, x.s[k], room[k]);
        x.d[0] = x.d[1] = t[part][0];
        lanes_of(shape)(&x);
        if (!keeps_denormals(w, T_F32, true))
            flush(t[part][0], t[part][1], w->lanes, T_F32);
        if (inst->clamp)
            modify_floats(t[part], w->lanes, T_F32, 0, true);
    }
    for (int part = 0; part < 2; part++)
        valu_write(sim_vector(w, &inst->operand[0], part), t[part][0], sim_exec(w), w->lanes);
}

/* v_fma_mix*: neg and abs belong to the half or word that is chosen. */
static void run_mixed(sim_wave *w, const sim_instruction *inst)
{
    const lane_shape *shape = inst->op->detail;
    const bool        bf16 = shape->source[0] == T_BF16;
    lane_row          room[4][2], t[2];
    lane_rows         x;
    if (is_unsupported(w, inst, shape))
        return;
    start_rows(&x, w, inst);
    for (int k = 0; k < 3; k++) {
        const bool    half = inst->has_op_sel_hi && (inst->op_sel_hi >> k & 1) != 0;
        const uint8_t type = !half ? T_F32 : bf16 ? T_BF16 : T_F16;
        fetch_how     how = { .type = type, .high = half && (inst->op_sel >> k & 1) != 0 };
        how.flush = flushes(w, shape, type, false);
        fetch(w, inst, &inst->operand[1 + k], how, x.s[k], room[k]);
    }
    x.d[0] = t[0];
    x.d[1] = t[1];
    lanes_of(shape)(&x);
    finish(w, inst, shape, t, sim_exec(w));
}

/* Dot products: op_sel chooses halves of 16-bit elements, neg_lo and neg_hi their signs. */
static void dot_source(const sim_wave *w, const sim_instruction *inst, const lane_shape *shape, int k, lane_row to)
{
    const bool      wide = (shape->options & OPT_WIDE) != 0;
    const bool      floats = shape->source[k] == T_F16;
    const uint32_t *word = valu_word(w, &inst->operand[1 + k], 0, shape->source[k], to);
    const bool      lo = wide && packed_bit(inst, false, k), hi = !wide || packed_bit(inst, true, k);
    for (int l = 0; l < w->lanes; l++) {
        uint32_t low = lo ? word[l] >> 16 : word[l] & 0xFFFF, high = hi ? word[l] >> 16 : word[l] & 0xFFFF;
        if (floats) {
            low ^= (uint32_t)(inst->neg_lo >> k & 1) << 15;
            high ^= (uint32_t)(inst->neg_hi >> k & 1) << 15;
        }
        to[l] = low | high << 16;
    }
}

static void run_dot(sim_wave *w, const sim_instruction *inst)
{
    const lane_shape *shape = inst->op->detail;
    lane_row          source[3], t[2];
    lane_rows         x;
    start_rows(&x, w, inst);
    if (inst->dpp != SIM_DPP_NONE || inst->sdwa) {
        sim_fail(w, inst, "DPP of a dot product");
        return;
    }
    for (int k = 0; k < 2; k++) {
        dot_source(w, inst, shape, k, source[k]);
        x.s[k][0] = source[k];
    }
    const sim_operand *c = &inst->operand[shape->sources == 3 ? 3 : 0];
    const bool         floats = shape->source[0] == T_F16;
    memcpy(source[2], valu_word(w, c, 0, floats ? T_F32 : T_U32, source[2]), (size_t)w->lanes * sizeof source[2][0]);
    if (floats)
        change_sign(source[2], w->lanes, 0x80000000u, (inst->neg_hi >> 2 & 1) != 0, (inst->neg_lo >> 2 & 1) != 0);
    x.s[2][0] = source[2];
    x.d[0] = t[0];
    shape->lanes(&x);
    if (floats && inst->clamp)
        modify_floats(t, w->lanes, T_F32, 0, true);
    valu_write(sim_vector(w, &inst->operand[0], 0), t[0], sim_exec(w), w->lanes);
}

/* Transcendentals of scalars. A half goes to the low half; the rest of the register is cleared. */
static void run_scalar_result(sim_wave *w, const sim_instruction *inst)
{
    const lane_shape *shape = inst->op->detail;
    lane_row          room[4][2], t[2];
    lane_rows         x;
    if (is_unsupported(w, inst, shape))
        return;
    start_rows(&x, w, inst);
    fetch_sources(&x, w, inst, shape, room);
    x.n = 1;
    x.d[0] = t[0];
    x.d[1] = t[1];
    shape->lanes(&x);
    if (flushes(w, shape, shape->result, true))
        flush(t[0], t[1], 1, shape->result);
    if (inst->clamp)
        modify_floats(t, 1, shape->result, 0, true);
    sim_set_scalar(w, &inst->operand[0], t[0][0]);
}

/* VOPD: both halves read before either writes. The first one's result is set aside while the second runs. */
static void run_half(sim_wave *w, const sim_instruction *inst)
{
    const lane_shape *shape = inst->op->detail;
    (shape->options & OPT_DOT) != 0 ? run_dot(w, inst) : run_lanes(w, inst);
}

static void run_dual(sim_wave *w, const sim_instruction *inst)
{
    const sim_operand *to = &inst->operand[0];
    lane_row           old[2], new[2];
    const int          words = to->count > 1 ? 2 : 1;
    const size_t       bytes = (size_t)w->lanes * sizeof old[0][0];
    for (int i = 0; i < words; i++)
        memcpy(old[i], sim_vector(w, to, i), bytes);
    run_half(w, inst);
    if (inst->dual == NULL)
        return;
    for (int i = 0; i < words; i++) {
        memcpy(new[i], sim_vector(w, to, i), bytes);
        memcpy(sim_vector(w, to, i), old[i], bytes);
    }
    run_half(w, inst->dual);
    for (int i = 0; i < words; i++)
        memcpy(sim_vector(w, to, i), new[i], bytes);
}

/* Shapes, then the table
 * ----------------------
 */
enum {
    TRANS = 1 << 8,
    COPY = 1 << 9,
    VCC_IN = 1 << 10,
    H0 = OPT_H0,
    FLUSH = OPT_FLUSH,
    BYTE = OPT_BYTE,
    E5M3 = OPT_E5M3
};

#define SHAPE(name, fma, D, options, count, ...) \
    static const lane_shape shape_##name = { lanes_##name, fma, D, { __VA_ARGS__ }, count, (options) & 0xFF };
#define V1(name, arches, options, D, A, formula) SHAPE(name, NULL, T_##D, options, 1, T_##A)
#define V2(name, arches, options, D, A, B, formula) SHAPE(name, NULL, T_##D, options, 2, T_##A, T_##B)
#define V3(name, arches, options, D, A, B, C, formula) SHAPE(name, NULL, T_##D, options, 3, T_##A, T_##B, T_##C)
#define V3F(name, arches, options, D, A, B, C, formula) \
    SHAPE(name, lanes_fma_##name, T_##D, options, 3, T_##A, T_##B, T_##C)
#define ACC2(name, arches, options, D, A, B, formula) \
    SHAPE(name, NULL, T_##D, (options) | OPT_ACC, 3, T_##A, T_##B, T_##D)
#define ACC2F(name, arches, options, D, A, B, formula) \
    SHAPE(name, lanes_fma_##name, T_##D, (options) | OPT_ACC, 3, T_##A, T_##B, T_##D)
#define VS1(name, D, options, formula) SHAPE(name, NULL, T_##D, options, 1, T_##D)
#define PK2(name, arches, D, A, B, formula) SHAPE(name, NULL, T_##D, 0, 2, T_##A, T_##B)
#define PK3(name, arches, D, A, B, C, formula) SHAPE(name, NULL, T_##D, 0, 3, T_##A, T_##B, T_##C)
#define PKACC(name, arches, D, A, B, formula) SHAPE(name, NULL, T_##D, OPT_ACC, 3, T_##A, T_##B, T_##D)
#define PW2(name, D, A, B, formula) SHAPE(name, NULL, T_##D, 0, 2, T_##A, T_##B)
#define PW3F(name, D, A, B, C, formula) SHAPE(name, lanes_fma_##name, T_##D, 0, 3, T_##A, T_##B, T_##C)
#define CARRY2(name, arches, formula) SHAPE(name, NULL, T_U32, OPT_CARRY, 2, T_U32, T_U32)
#define CARRY3(name, arches, formula) SHAPE(name, NULL, T_U32, OPT_CARRY, 3, T_U32, T_U32, T_MASK)
#define CARRY64(name, arches, A, C, formula) SHAPE(name, NULL, T_U64, OPT_CARRY, 3, T_##A, T_##A, T_##C)
#define MIX(name, arches, how, D)                                                   \
    SHAPE(name, lanes_fma_##name, T_##D, ((how) & MIX_HIGH) != 0 ? OPT_HIGH : 0, 3, \
          ((how) & MIX_BF16) != 0 ? T_BF16 : T_F16)
#define DOT_SHAPE(name, width, kind, count)                                                     \
    static const lane_shape shape_##name = {                                                    \
        lanes_##name, NULL,                                                                     \
        T_U32,        { (kind) >= DOT_F16 ? T_F16 : T_U32, (kind) >= DOT_F16 ? T_F16 : T_U32 }, \
        count,        OPT_DOT | ((width) == 16 ? OPT_WIDE : 0)                                  \
    };
#define DOT(name, arches, width, kind) DOT_SHAPE(name, width, kind, 3)
#define DOTC(name, width, kind) DOT_SHAPE(name, width, kind, 2)
#define CMP(what, arches, A, B, formula) SHAPE(v_cmp_##what, NULL, T_MASK, 0, 2, T_##A, T_##B)
#define DUAL(name, base, flags)
SHAPE(v_bitop2_b32, NULL, T_U32, 0, 2, T_U32, T_U32)
#include "valu.def"
#include "valu_undef.h"

#define GFX950 SIM_ON_GFX950
#define GFX1250 SIM_ON_GFX1250
#define BOTH SIM_ON_BOTH
#define IS_PAIR(type) ((type) == T_U64 || (type) == T_I64 || (type) == T_F64)
#define IS_HALF(type) (((type) >= T_U16 && (type) <= T_BF16) || (type) == T_SU16 || (type) == T_SI16)

#define KIND(options) (((options) & TRANS) != 0 ? SIM_TRANS : SIM_VALU)
/* A half that keeps the other one reads its register. */
#define FLAGS(options, D, A, B, C)                                                                  \
    ((((options) & COPY) != 0 ? SIM_COPIES : 0) | (((options) & VCC_IN) != 0 ? SIM_READS_VCC : 0) | \
     (IS_HALF(D) && ((options) & H0) == 0 ? SIM_READS_RESULT : 0) |                                 \
     (IS_PAIR(D) || IS_PAIR(A) || IS_PAIR(B) || IS_PAIR(C) ? SIM_EVEN : 0))
#define ROW(name, arches, kind, results, flags, run) { #name, arches, kind, results, flags, run, &shape_##name },
#define V1(name, arches, options, D, A, formula) \
    ROW(name, arches, KIND(options), 1, FLAGS(options, T_##D, T_##A, 0, 0), run_lanes)
#define V2(name, arches, options, D, A, B, formula) \
    ROW(name, arches, KIND(options), 1, FLAGS(options, T_##D, T_##A, T_##B, 0), run_lanes)
#define V3(name, arches, options, D, A, B, C, formula) \
    ROW(name, arches, KIND(options), 1, FLAGS(options, T_##D, T_##A, T_##B, T_##C), run_lanes)
#define V3F V3
#define ACC2(name, arches, options, D, A, B, formula) \
    ROW(name, arches, SIM_VALU, 1, FLAGS(options, T_##D, T_##A, T_##B, 0) | SIM_READS_RESULT, run_lanes)
#define ACC2F ACC2
#define VS1(name, D, options, formula) ROW(name, GFX1250, SIM_TRANS, 1, SIM_IGNORES_EXEC, run_scalar_result)
#define PK2(name, arches, D, A, B, formula) ROW(name, arches, SIM_VALU, 1, 0, run_packed_halves)
#define PK3(name, arches, D, A, B, C, formula) ROW(name, arches, SIM_VALU, 1, 0, run_packed_halves)
#define PKACC(name, arches, D, A, B, formula) ROW(name, arches, SIM_VALU, 1, SIM_READS_RESULT, run_packed_halves)
#define PW2(name, D, A, B, formula) ROW(name, BOTH, SIM_VALU, 1, SIM_EVEN, run_packed_words)
#define PW3F(name, D, A, B, C, formula) ROW(name, BOTH, SIM_VALU, 1, SIM_EVEN, run_packed_words)
#define CARRY2(name, arches, formula) ROW(name, arches, SIM_VALU, 2, 0, run_lanes)
#define CARRY3(name, arches, formula) ROW(name, arches, SIM_VALU, 2, 0, run_lanes)
#define CARRY64(name, arches, A, C, formula) ROW(name, arches, SIM_VALU, 2, SIM_EVEN, run_lanes)
#define MIX(name, arches, how, D) ROW(name, arches, SIM_VALU, 1, FLAGS(0, T_##D, 0, 0, 0), run_mixed)
#define DOT(name, arches, width, kind) ROW(name, arches, SIM_VALU, 1, 0, run_dot)
#define DOTC(name, width, kind) ROW(name, GFX950, SIM_VALU, 1, SIM_READS_RESULT, run_dot)
#define CMP(what, arches, A, B, formula)                                                                     \
    { "v_cmp_" #what, arches, SIM_VALU, 1, FLAGS(0, 0, T_##A, T_##B, 0), run_compare, &shape_v_cmp_##what }, \
        { "v_cmpx_" #what,  (arches) & GFX950,  SIM_VALU, 1, FLAGS(0, 0, T_##A, T_##B, 0) | SIM_WRITES_EXEC, \
          run_compare_exec, &shape_v_cmp_##what },                                                           \
        { "v_cmpx_" #what, (arches) & GFX1250, SIM_VALU, 0, SIM_WRITES_EXEC, run_compare_exec, &shape_v_cmp_##what },
#define DUAL(name, base, flags) { #name, GFX1250, SIM_VALU, 1, flags, run_dual, &shape_##base },

/* What is not a formula of one lane: valu_special.c. */
#define SWAPS (SIM_BOTH_WRITTEN | SIM_READS_RESULT | SIM_CROSS_LANE | SIM_COPIES)
static const int           swap_16 = 16, swap_32 = 32;
static const permlane16    same_row = { 0, false }, other_row = { 16, false };
static const permlane16    same_row_var = { 0, true }, other_row_var = { 16, true };
static const permlane_kind lane_bcast = LANE_BCAST, lane_up = LANE_UP, lane_down = LANE_DOWN, lane_xor = LANE_XOR;
static const relative      relative_source = { true, false }, relative_result = { false, true };
static const relative      relative_both = { true, true };
static const bool          of_f32 = false, of_f64 = true;
static const to_byte       fp8_from_f32 = { SIM_FP8, false }, bf8_from_f32 = { SIM_BF8, false };
static const to_byte       fp8_from_f16 = { SIM_FP8, true }, bf8_from_f16 = { SIM_BF8, true };

#define SPECIAL(name, arches, kind, results, flags, run, detail) { #name, arches, kind, results, flags, run, detail },

/* Those that write a part of their register keep the rest. */
#define SCALED(name, arches, from, to, items, how) \
    {                                              \
        #name,                                     \
        arches,                                    \
        SIM_VALU,                                  \
        1,                                         \
        SCALED_FLAGS(to, items, how),              \
        sim_run_scaled,                            \
        &(const scaled){ from, to, items, how }    \
    },
#define SCALED_FLAGS(to, items, how)                                                                          \
    (((how) & BLOCK_SCALE) != 0                                                            ? SIM_CROSS_LANE   \
     : ((items) == 1 && (int)(to) != OF_F32) || ((items) == 2 && (int)(to) < (int)SIM_F16) ? SIM_READS_RESULT \
                                                                                           : 0)

const sim_opcode sim_valu_opcodes[] = {
#include "valu.def"
#include "valu_special.def"
    { .name = NULL },
};
