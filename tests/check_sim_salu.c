/* The scalar ALU of the simulator: every mnemonic against a second formula over edge values, with what becomes of
 * SCC. */
#include "sim_fixture.h"

#include "opcodes.h"

#include <inttypes.h>
#include <math.h>

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
    return sim_fixture_random(&random_state);
}

static const uint64_t EDGES[] = {
    0,
    1,
    2,
    3,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x10000,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFE,
    0xFFFFFFFF,
    UINT64_C(0x100000000),
    UINT64_C(0x7FFFFFFFFFFFFFFF),
    UINT64_C(0x8000000000000000),
    UINT64_MAX,
    0x00100000,
    0x00040004,
    0x001F0001,
    0x00200000,
    0x0020001F,
    0x007F0005,
    0x00400020,
    0x3F800000,
    0xBF800000,
    0x40200000,
    0xC0200000,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x00000001,
    0x807FFFFF,
    0x7F7FFFFF,
    0x4F000000,
    0x4F800000,
    0xCF000000,
    0x3C00,
    0xBC00,
    0x7C00,
    0xFC00,
    0x7E00,
    0x0001,
    0x03FF,
    0x7BFF,
    0x3C003C00,
    0x477FEFFF,
    0x477FF000,
    0x33000001,
};
enum { EDGE_COUNT = sizeof EDGES / sizeof EDGES[0] };

static uint64_t some_value(void)
{
    const uint64_t r = next_random();
    return r >> 63                                    ? next_random()
           : (r >> 62 & 1) != 0 && (r >> 61 & 1) != 0 ? next_random() % 0x08000000 + 0x3C000000
                                                      : EDGES[(r >> 8) % EDGE_COUNT];
}

static uint64_t power(uint64_t n)
{
    return n < 64 ? UINT64_C(1) << n : 0;
}

static float float_of(uint64_t bits)
{
    const uint32_t b = (uint32_t)bits;
    float          f;
    memcpy(&f, &b, sizeof f);
    return f;
}

static uint64_t bits32(double d)
{
    const float f = (float)d;
    uint32_t    b;
    memcpy(&b, &f, sizeof b);
    return b;
}

/* F16 by its fields, and the nearest code by search. */
static double half_of(uint64_t bits)
{
    const int    field = bits >> 10 & 31, m = bits & 1023;
    const double v = field == 31  ? (m != 0 ? (double)NAN : (double)INFINITY)
                     : field == 0 ? ldexp(m, -24)
                                  : ldexp(m + 1024, field - 25);
    return (bits >> 15 & 1) != 0 ? -v : v;
}

static uint64_t half_below(double size)
{
    uint64_t low = 0, high = 0x7BFF;
    while (low < high) {
        const uint64_t middle = (low + high + 1) / 2;
        if (half_of(middle) <= size)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static uint64_t half_toward_zero(double v)
{
    const uint64_t sign = signbit(v) ? 0x8000 : 0;
    return isnan(v) ? 0x7E00 : isinf(v) ? sign + 0x7C00 : sign + half_below(fabs(v));
}

static uint64_t half_nearest(double v)
{
    const uint64_t sign = signbit(v) ? 0x8000 : 0;
    if (isnan(v) || isinf(v))
        return isnan(v) ? 0x7E00 : sign + 0x7C00;
    const uint64_t low = half_below(fabs(v));
    const double   below = half_of(low), above = low == 0x7BFF ? 65536 : half_of(low + 1);
    const double   part = (fabs(v) - below) / (above - below);
    return sign + low + (part > 0.5 || (part == 0.5 && low % 2 != 0));
}

static uint64_t reversed(uint64_t a, int width)
{
    uint64_t to = 0;
    for (int i = 0; i < width; i++, a /= 2)
        to = to * 2 + a % 2;
    return to;
}

static uint64_t ones(uint64_t a)
{
    uint64_t n = 0;
    for (; a != 0; a &= a - 1)
        n++;
    return n;
}

static int64_t highest(uint64_t a)
{
    int64_t n = -1;
    for (; a != 0; a /= 2)
        n++;
    return n;
}

static int64_t lowest(uint64_t a)
{
    return highest(a & -a);
}

static int64_t sign_run(int64_t a, int width)
{
    return a == 0 || a == -1 ? -1 : width - 1 - highest(a < 0 ? ~(uint64_t)a : (uint64_t)a);
}

static unsigned __int128 field(__int128 a, uint64_t offset, uint64_t width, bool is_signed)
{
    unsigned __int128 bits = (unsigned __int128)(a >> offset);
    if (width < 128)
        bits &= ((unsigned __int128)1 << width) - 1;
    if (is_signed && width > 0 && width < 128 && (bits >> (width - 1) & 1) != 0)
        bits -= (unsigned __int128)1 << width;
    return bits;
}

static uint64_t each_quad(uint64_t a, bool whole)
{
    uint64_t to = 0;
    for (int i = 15; i >= 0; i--)
        to = whole ? to * 16 + (a >> 4 * i & 15 ? 15 : 0) : to * 2 + ((a >> 4 * i & 15) != 0);
    return to;
}

static double larger(double x, double y, bool propagates)
{
    if (isnan(x) || isnan(y))
        return propagates ? (double)NAN : isnan(x) ? y : x;
    return x == y ? (signbit(x) ? y : x) : x > y ? x : y;
}

static double smaller(double x, double y, bool propagates)
{
    return -larger(-x, -y, propagates);
}

static int64_t within(double v, double low, double high)
{
    return isnan(v) ? 0 : v <= low ? (int64_t)low : v >= high ? (int64_t)high : (int64_t)v;
}

static double nearest_even(double v)
{
    if (!(fabs(v) < 0x1p52))
        return v;
    const double cut = trunc(v), part = fabs(v - cut);
    const bool   up = part > 0.5 || (part == 0.5 && fmod(cut, 2) != 0);
    return copysign(fabs(cut) + up, v);
}

/* Expectations
 * ------------
 */
typedef struct inputs {
    uint64_t a, b, d; /* sources, what the result held */
    int64_t  k;
    bool     scc;
} inputs;

typedef struct outcome {
    uint64_t to;
    bool     scc;
} outcome;

typedef outcome expectation(const inputs *in);

typedef struct salu_case {
    const char  *names;
    const char  *operands;   /* result=sources: 1, 2 words, k a constant, K a literal; "=" alone in front: SCC only */
    char         comparison; /* X bits, F an F32, H an F16: any NaN is as good */
    expectation *expect;
} salu_case;

#define CASES(CASE)                                                                                                  \
    CASE(mov, "s_mov_b32", "1=1", 'X', a, scc)                                                                       \
    CASE(mov64, "s_mov_b64", "2=2", 'X', a, scc)                                                                     \
    CASE(cmov, "s_cmov_b32", "1=1", 'X', scc ? a : d, scc)                                                           \
    CASE(cmov64, "s_cmov_b64", "2=2", 'X', scc ? a : d, scc)                                                         \
    CASE(cselect, "s_cselect_b32", "1=11", 'X', scc ? a : b, scc)                                                    \
    CASE(cselect64, "s_cselect_b64", "2=22", 'X', scc ? a : b, scc)                                                  \
    CASE(movk, "s_movk_i32", "1=k", 'X', k, scc)                                                                     \
    CASE(cmovk, "s_cmovk_i32", "1=k", 'X', scc ? (uint64_t)k : d, scc)                                               \
    CASE(mulk, "s_mulk_i32", "1=k", 'X', (int64_t)d *k, scc)                                                         \
    CASE(addk, "s_addk_i32 s_addk_co_i32", "1=k", 'X', d + (uint64_t)k, (int32_t)d + k != (int32_t)((int32_t)d + k)) \
    CASE(add, "s_add_u32 s_add_co_u32", "1=11", 'X', a + b, (a + b) >> 32)                                           \
    CASE(sub, "s_sub_u32 s_sub_co_u32", "1=11", 'X', a - b, a < b)                                                   \
    CASE(addi, "s_add_i32 s_add_co_i32", "1=11", 'X', a + b, ((~(a ^ b) & (a ^ (a + b))) >> 31 & 1))                 \
    CASE(subi, "s_sub_i32 s_sub_co_i32", "1=11", 'X', a - b, (((a ^ b) & (a ^ (a - b))) >> 31 & 1))                  \
    CASE(addc, "s_addc_u32 s_add_co_ci_u32", "1=11", 'X', a + b + scc, (a + b + scc) >> 32)                          \
    CASE(subb, "s_subb_u32 s_sub_co_ci_u32", "1=11", 'X', a - b - scc, a < b + scc)                                  \
    CASE(add64, "s_add_nc_u64", "2=22", 'X', a - ~b - 1, scc)                                                        \
    CASE(sub64, "s_sub_nc_u64", "2=22", 'X', a + ~b + 1, scc)                                                        \
    CASE(mul, "s_mul_i32", "1=11", 'X', a *b, scc)                                                                   \
    CASE(mulhi, "s_mul_hi_u32", "1=11", 'X', (uint64_t)(a * b) / 4294967296, scc)                                    \
    CASE(mulhii, "s_mul_hi_i32", "1=11", 'X', a *b / 4294967296 - (a >> 31 ? b : 0) - (b >> 31 ? a : 0), scc)        \
    CASE(mul64, "s_mul_u64", "2=22", 'X', (uint64_t)((unsigned __int128)a * b), scc)                                 \
    CASE(shl1, "s_lshl1_add_u32", "1=11", 'X', a * 2 + b, (a * 2 + b) >> 32 != 0)                                    \
    CASE(shl2, "s_lshl2_add_u32", "1=11", 'X', a * 4 + b, (a * 4 + b) >> 32 != 0)                                    \
    CASE(shl3, "s_lshl3_add_u32", "1=11", 'X', a * 8 + b, (a * 8 + b) >> 32 != 0)                                    \
    CASE(shl4, "s_lshl4_add_u32", "1=11", 'X', a * 16 + b, (a * 16 + b) >> 32 != 0)                                  \
    CASE(abs, "s_abs_i32", "1=1", 'X', llabs((int32_t)a), a != 0)                                                    \
    CASE(absdiff, "s_absdiff_i32", "1=11", 'X', llabs((int32_t)(a - b)), a != b)                                     \
    CASE(mini, "s_min_i32", "1=11", 'X', (int32_t)a < (int32_t)b ? a : b, (int32_t)a < (int32_t)b)                   \
    CASE(minu, "s_min_u32", "1=11", 'X', a < b ? a : b, a < b)                                                       \
    CASE(maxi, "s_max_i32", "1=11", 'X', (int32_t)a < (int32_t)b ? b : a, (int32_t)a >= (int32_t)b)                  \
    CASE(maxu, "s_max_u32", "1=11", 'X', a < b ? b : a, a >= b)                                                      \
    CASE(and, "s_and_b32", "1=11", 'X', ~(~a | ~b), (~(~a | ~b)) != 0)                                               \
    CASE(and64, "s_and_b64", "2=22", 'X', ~(~a | ~b), (~(~a | ~b)) != 0)                                             \
    CASE(or, "s_or_b32", "1=11", 'X', ~(~a & ~b), a + b != 0)                                                        \
    CASE(or64, "s_or_b64", "2=22", 'X', ~(~a & ~b), a != 0 || b != 0)                                                \
    CASE(xor, "s_xor_b32", "1=11", 'X', (a | b) - (a & b), a != b)                                                   \
    CASE(xor64, "s_xor_b64", "2=22", 'X', (a | b) - (a & b), a != b)                                                 \
    CASE(nand, "s_nand_b32", "1=11", 'X', ~a | ~b, (uint32_t)(~a | ~b) != 0)                                         \
    CASE(nand64, "s_nand_b64", "2=22", 'X', ~a | ~b, (~a | ~b) != 0)                                                 \
    CASE(nor, "s_nor_b32", "1=11", 'X', ~a & ~b, (uint32_t)(~a & ~b) != 0)                                           \
    CASE(nor64, "s_nor_b64", "2=22", 'X', ~a & ~b, (~a & ~b) != 0)                                                   \
    CASE(xnor, "s_xnor_b32", "1=11", 'X', (a & b) | (~a & ~b), (uint32_t)((a & b) | (~a & ~b)) != 0)                 \
    CASE(xnor64, "s_xnor_b64", "2=22", 'X', (a & b) | (~a & ~b), ((a & b) | (~a & ~b)) != 0)                         \
    CASE(andn, "s_andn2_b32 s_and_not1_b32", "1=11", 'X', a - (a & b), a != (a & b))                                 \
    CASE(andn64, "s_andn2_b64 s_and_not1_b64", "2=22", 'X', a - (a & b), a != (a & b))                               \
    CASE(orn, "s_orn2_b32 s_or_not1_b32", "1=11", 'X', ~(b - (a & b)), (uint32_t)~(b - (a & b)) != 0)                \
    CASE(orn64, "s_orn2_b64 s_or_not1_b64", "2=22", 'X', ~(b - (a & b)), ~(b - (a & b)) != 0)                        \
    CASE(not, "s_not_b32", "1=1", 'X', 4294967295 - a, a != 4294967295)                                              \
    CASE(not64, "s_not_b64", "2=2", 'X', UINT64_MAX - a, a != UINT64_MAX)                                            \
    CASE(shl, "s_lshl_b32", "1=11", 'X', a *power(b % 32), (uint32_t)(a * power(b % 32)) != 0)                       \
    CASE(shl64, "s_lshl_b64", "2=21", 'X', a *power(b % 64), a *power(b % 64) != 0)                                  \
    CASE(shr, "s_lshr_b32", "1=11", 'X', a / power(b % 32), a >= power(b % 32))                                      \
    CASE(shr64, "s_lshr_b64", "2=21", 'X', a / power(b % 64), a >= power(b % 64))                                    \
    CASE(sar, "s_ashr_i32", "1=11", 'X', a >> 31 ? ~((4294967295 - a) / power(b % 32)) : a / power(b % 32),          \
         a >> 31 || a >= power(b % 32))                                                                              \
    CASE(sar64, "s_ashr_i64", "2=21", 'X', a >> 63 ? ~(~a / power(b % 64)) : a / power(b % 64),                      \
         a >> 63 || a >= power(b % 64))                                                                              \
    CASE(bfm, "s_bfm_b32", "1=11", 'X', (power(a % 32) - 1) * power(b % 32), scc)                                    \
    CASE(bfm64, "s_bfm_b64", "2=11", 'X', (power(a % 64) - 1) * power(b % 64), scc)                                  \
    CASE(bfeu, "s_bfe_u32", "1=11", 'X', field(a, b % 32, b >> 16 & 127, false),                                     \
         field(a, b % 32, b >> 16 & 127, false) != 0)                                                                \
    CASE(bfei, "s_bfe_i32", "1=11", 'X', field((int32_t)a, b % 32, b >> 16 & 127, true),                             \
         (uint32_t)field((int32_t)a, b % 32, b >> 16 & 127, true) != 0)                                              \
    CASE(bfeu64, "s_bfe_u64", "2=21", 'X', field(a, b % 64, b >> 16 & 127, false),                                   \
         field(a, b % 64, b >> 16 & 127, false) != 0)                                                                \
    CASE(bfei64, "s_bfe_i64", "2=21", 'X', field((int64_t)a, b % 64, b >> 16 & 127, true),                           \
         (uint64_t)field((int64_t)a, b % 64, b >> 16 & 127, true) != 0)                                              \
    CASE(brev, "s_brev_b32", "1=1", 'X', reversed(a, 32), scc)                                                       \
    CASE(brev64, "s_brev_b64", "2=2", 'X', reversed(a, 64), scc)                                                     \
    CASE(bcnt0, "s_bcnt0_i32_b32", "1=1", 'X', 32 - ones(a), ones(a) != 32)                                          \
    CASE(bcnt064, "s_bcnt0_i32_b64", "1=2", 'X', 64 - ones(a), ones(a) != 64)                                        \
    CASE(bcnt1, "s_bcnt1_i32_b32", "1=1", 'X', ones(a), a != 0)                                                      \
    CASE(bcnt164, "s_bcnt1_i32_b64", "1=2", 'X', ones(a), a != 0)                                                    \
    CASE(ff0, "s_ff0_i32_b32", "1=1", 'X', lowest(4294967295 - a), scc)                                              \
    CASE(ff064, "s_ff0_i32_b64", "1=2", 'X', lowest(~a), scc)                                                        \
    CASE(ff1, "s_ff1_i32_b32 s_ctz_i32_b32", "1=1", 'X', lowest(a), scc)                                             \
    CASE(ff164, "s_ff1_i32_b64 s_ctz_i32_b64", "1=2", 'X', lowest(a), scc)                                           \
    CASE(clz, "s_flbit_i32_b32 s_clz_i32_u32", "1=1", 'X', a == 0 ? -1 : 31 - highest(a), scc)                       \
    CASE(clz64, "s_flbit_i32_b64 s_clz_i32_u64", "1=2", 'X', a == 0 ? -1 : 63 - highest(a), scc)                     \
    CASE(cls, "s_flbit_i32 s_cls_i32", "1=1", 'X', sign_run((int32_t)a, 32), scc)                                    \
    CASE(cls64, "s_flbit_i32_i64 s_cls_i32_i64", "1=2", 'X', sign_run((int64_t)a, 64), scc)                          \
    CASE(sext8, "s_sext_i32_i8", "1=1", 'X', a % 256 - (a % 256 >= 128 ? 256 : 0), scc)                              \
    CASE(sext16, "s_sext_i32_i16", "1=1", 'X', a % 65536 - (a % 65536 >= 32768 ? 65536 : 0), scc)                    \
    CASE(bitset0, "s_bitset0_b32", "1=1", 'X', d - (d & power(a % 32)), scc)                                         \
    CASE(bitset064, "s_bitset0_b64", "2=1", 'X', d - (d & power(a % 64)), scc)                                       \
    CASE(bitset1, "s_bitset1_b32", "1=1", 'X', d - (d & power(a % 32)) + power(a % 32), scc)                         \
    CASE(bitset164, "s_bitset1_b64", "2=1", 'X', d - (d & power(a % 64)) + power(a % 64), scc)                       \
    CASE(replicate, "s_bitreplicate_b64_b32", "2=1", 'X', doubled(a), scc)                                           \
    CASE(quadmask, "s_quadmask_b32", "1=1", 'X', each_quad(a, false), a != 0)                                        \
    CASE(quadmask64, "s_quadmask_b64", "2=2", 'X', each_quad(a, false), a != 0)                                      \
    CASE(wqm, "s_wqm_b32", "1=1", 'X', each_quad(a, true), a != 0)                                                   \
    CASE(wqm64, "s_wqm_b64", "2=2", 'X', each_quad(a, true), a != 0)                                                 \
    CASE(packll, "s_pack_ll_b32_b16", "1=11", 'X', a % 65536 + b % 65536 * 65536, scc)                               \
    CASE(packlh, "s_pack_lh_b32_b16", "1=11", 'X', a % 65536 + b / 65536 * 65536, scc)                               \
    CASE(packhl, "s_pack_hl_b32_b16", "1=11", 'X', a / 65536 + b % 65536 * 65536, scc)                               \
    CASE(packhh, "s_pack_hh_b32_b16", "1=11", 'X', a / 65536 + b / 65536 * 65536, scc)                               \
    CASE(bitcmp0, "s_bitcmp0_b32", "=11", 'X', 0, a / power(b % 32) % 2 == 0)                                        \
    CASE(bitcmp064, "s_bitcmp0_b64", "=21", 'X', 0, a / power(b % 64) % 2 == 0)                                      \
    CASE(bitcmp1, "s_bitcmp1_b32", "=11", 'X', 0, a / power(b % 32) % 2 == 1)                                        \
    CASE(bitcmp164, "s_bitcmp1_b64", "=21", 'X', 0, a / power(b % 64) % 2 == 1)                                      \
    CASE(fadd, "s_add_f32", "1=11", 'F', bits32((double)fa + fb), scc)                                               \
    CASE(fsub, "s_sub_f32", "1=11", 'F', bits32((double)fa - fb), scc)                                               \
    CASE(fmul, "s_mul_f32", "1=11", 'F', bits32((double)fa *fb), scc)                                                \
    CASE(fmac, "s_fmac_f32", "1=11", 'F', bits32((double)fmaf(fa, fb, float_of(d))), scc)                            \
    CASE(fmaak, "s_fmaak_f32", "1=11K", 'F', bits32((double)fmaf(fa, fb, 3.25f)), scc)                               \
    CASE(fmamk, "s_fmamk_f32", "1=1K1", 'F', bits32((double)fmaf(fa, 3.25f, fb)), scc)                               \
    CASE(fmin, "s_min_num_f32", "1=11", 'F', bits32(smaller(fa, fb, false)), scc)                                    \
    CASE(fmax, "s_max_num_f32", "1=11", 'F', bits32(larger(fa, fb, false)), scc)                                     \
    CASE(fminimum, "s_minimum_f32", "1=11", 'F', bits32(smaller(fa, fb, true)), scc)                                 \
    CASE(fmaximum, "s_maximum_f32", "1=11", 'F', bits32(larger(fa, fb, true)), scc)                                  \
    CASE(fceil, "s_ceil_f32", "1=1", 'F', bits32(ceil(fa)), scc)                                                     \
    CASE(ffloor, "s_floor_f32", "1=1", 'F', bits32(floor(fa)), scc)                                                  \
    CASE(ftrunc, "s_trunc_f32", "1=1", 'F', bits32(trunc(fa)), scc)                                                  \
    CASE(frndne, "s_rndne_f32", "1=1", 'F', bits32(nearest_even(fa)), scc)                                           \
    CASE(hadd, "s_add_f16", "1=11", 'H', half_nearest(ha + hb), scc)                                                 \
    CASE(hsub, "s_sub_f16", "1=11", 'H', half_nearest(ha - hb), scc)                                                 \
    CASE(hmul, "s_mul_f16", "1=11", 'H', half_nearest(ha *hb), scc)                                                  \
    CASE(hmac, "s_fmac_f16", "1=11", 'H', half_nearest(ha *hb + half_of(d)), scc)                                    \
    CASE(hmin, "s_min_num_f16", "1=11", 'H', half_nearest(smaller(ha, hb, false)), scc)                              \
    CASE(hmax, "s_max_num_f16", "1=11", 'H', half_nearest(larger(ha, hb, false)), scc)                               \
    CASE(hminimum, "s_minimum_f16", "1=11", 'H', half_nearest(smaller(ha, hb, true)), scc)                           \
    CASE(hmaximum, "s_maximum_f16", "1=11", 'H', half_nearest(larger(ha, hb, true)), scc)                            \
    CASE(hceil, "s_ceil_f16", "1=1", 'H', half_nearest(ceil(ha)), scc)                                               \
    CASE(hfloor, "s_floor_f16", "1=1", 'H', half_nearest(floor(ha)), scc)                                            \
    CASE(htrunc, "s_trunc_f16", "1=1", 'H', half_nearest(trunc(ha)), scc)                                            \
    CASE(hrndne, "s_rndne_f16", "1=1", 'H', half_nearest(nearest_even(ha)), scc)                                     \
    CASE(cvtfi, "s_cvt_f32_i32", "1=1", 'F', bits32((int32_t)a), scc)                                                \
    CASE(cvtfu, "s_cvt_f32_u32", "1=1", 'F', bits32((double)a), scc)                                                 \
    CASE(cvtif, "s_cvt_i32_f32", "1=1", 'X', within(fa, -2147483648.0, 2147483647.0), scc)                           \
    CASE(cvtuf, "s_cvt_u32_f32", "1=1", 'X', within(fa, 0, 4294967295.0), scc)                                       \
    CASE(cvthf, "s_cvt_f16_f32", "1=1", 'H', half_nearest(fa), scc)                                                  \
    CASE(cvtfh, "s_cvt_f32_f16", "1=1", 'F', bits32(ha), scc)                                                        \
    CASE(cvtfhh, "s_cvt_hi_f32_f16", "1=1", 'F', bits32(half_of(a >> 16)), scc)                                      \
    CASE(cvtpk, "s_cvt_pk_rtz_f16_f32", "1=11", 'P', half_toward_zero(fa) + half_toward_zero(fb) * 65536, scc)

static uint64_t doubled(uint64_t a)
{
    uint64_t to = 0;
    for (int i = 31; i >= 0; i--)
        to = to * 4 + 3 * (a >> i & 1);
    return to;
}

#define EXPECT(id, names, operands, comparison, result, bit)                                   \
    static outcome expect_##id(const inputs *in)                                               \
    {                                                                                          \
        const uint64_t a = in->a, b = in->b, d = in->d;                                        \
        const int64_t  k = in->k;                                                              \
        const bool     scc = in->scc;                                                          \
        const float    fa = float_of(a), fb = float_of(b);                                     \
        const double   ha = half_of(a), hb = half_of(b);                                       \
        (void)a, (void)b, (void)d, (void)k, (void)scc, (void)fa, (void)fb, (void)ha, (void)hb; \
        return (outcome){ (uint64_t)(result), (bit) != 0 };                                    \
    }
CASES(EXPECT)

#define ROW(id, names, operands, comparison, result, bit) { names, operands, comparison, expect_##id },
static const salu_case ROWS[] = { CASES(ROW) };
enum { ROW_COUNT = sizeof ROWS / sizeof ROWS[0] };

static bool name_is(const char *names, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = names; (at = strstr(at, name)) != NULL; at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

static bool same(uint64_t got, uint64_t want, char comparison)
{
    if (got == want)
        return true;
    if (comparison == 'F')
        return isnan(float_of(got)) && isnan(float_of(want));
    if (comparison == 'P')
        return same(got & 0xFFFF, want & 0xFFFF, 'H') && same(got >> 16, want >> 16, 'H');
    return comparison == 'H' && got >> 16 == 0 && isnan(half_of(got)) && isnan(half_of(want));
}

static void append(char *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(text + strlen(text), 120 - strlen(text), format, list);
    va_end(list);
}

enum { RESULT = 8, SOURCE = 20 };

static void run_row(sim_fixture *f, const salu_case *row, const char *name)
{
    sim_wave   *w = &f->wave;
    char        text[120] = "";
    inputs      in = { .d = some_value(), .scc = next_random() >> 63 };
    const bool  has_result = row->operands[0] != '=', wide = row->operands[0] == '2';
    const char *sources = strchr(row->operands, '=') + 1;
    append(text, "%s ", name);
    if (has_result)
        append(text, wide ? "s[%d:%d]" : "s%d", RESULT, RESULT + 1);
    in.d = wide ? in.d : (uint32_t)in.d;
    int used = 0;
    for (int k = 0; sources[k] != 0; k++) {
        append(text, has_result || k > 0 ? ", " : "");
        if (sources[k] == 'k') {
            in.k = (int16_t)some_value();
            append(text, "0x%x", (unsigned)(uint16_t)in.k);
            continue;
        }
        if (sources[k] == 'K') {
            append(text, "0x40500000"); /* 3.25 */
            continue;
        }
        const uint64_t x = sources[k] == '2' ? some_value() : (uint32_t)some_value();
        const int      reg = SOURCE + 4 * k;
        sim_set_scalar64(w, reg, sources[k] == '2' ? x : x | UINT64_C(0xDEAD) << 32);
        append(text, sources[k] == '2' ? "s[%d:%d]" : "s%d", reg, reg + 1);
        *(used++ == 0 ? &in.a : &in.b) = x;
    }
    sim_set_scalar64(w, RESULT, wide ? in.d : in.d | UINT64_C(0xBEEF) << 32);
    w->scc = in.scc;
    sim_fixture_run(f, "%s", text);
    const outcome  want = row->expect(&in);
    const uint64_t got = wide ? sim_scalar64(w, RESULT) : w->s[RESULT];
    if (has_result)
        ck_assert_msg(same(got, wide ? want.to : (uint32_t)want.to, row->comparison),
                      "%s of %" PRIx64 " %" PRIx64 " %" PRIx64 ": %" PRIx64 ", expected %" PRIx64, text, in.a, in.b,
                      in.d, got, want.to);
    ck_assert_msg(w->scc == want.scc, "%s of %" PRIx64 " %" PRIx64 " %" PRIx64 ": SCC %d", text, in.a, in.b, in.d,
                  w->scc);
    if (!wide)
        ck_assert_uint_eq(w->s[RESULT + 1], 0xBEEF);
}

enum { ROUNDS = 2000 };

START_TEST(formulas)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        random_state = UINT64_C(0x1234567);
        for (const sim_opcode *op = sim_salu_opcodes; op->name != NULL; op++)
            for (int i = 0; i < ROW_COUNT && (op->arches >> arch & 1) != 0; i++)
                if (name_is(ROWS[i].names, op->name))
                    for (int round = 0; round < ROUNDS; round++)
                        run_row(f, &ROWS[i], op->name);
        sim_fixture_destroy(f);
    }
}
END_TEST

/* Which of less, equal, greater, unordered make a compare true. */
static int truth_of(const char *relation)
{
    static const char *const NAMES[] = { "",  "lt",  "eq",  "le",  "gt",  "lg",  "ge", "o",
                                         "u", "nge", "nlg", "ngt", "nle", "neq", "nlt" };
    for (int i = 0; i < 15; i++)
        if (strcmp(NAMES[i], relation) == 0)
            return i;
    ck_abort_msg("no relation %s", relation);
}

static int relation_of(const char *type, uint64_t a, uint64_t b)
{
    if (strcmp(type, "f32") == 0 || strcmp(type, "f16") == 0) {
        const double x = type[1] == '3' ? (double)float_of(a) : half_of(a),
                     y = type[1] == '3' ? (double)float_of(b) : half_of(b);
        return x < y ? 1 : x == y ? 2 : x > y ? 4 : 8;
    }
    const __int128 x = type[0] == 'u' ? (__int128)a : (int32_t)a, y = type[0] == 'u' ? (__int128)b : (int32_t)b;
    return x < y ? 1 : x == y ? 2 : 4;
}

START_TEST(compares)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        for (const sim_opcode *op = sim_salu_opcodes; op->name != NULL; op++) {
            if (strncmp(op->name, "s_cmp", 5) != 0 || (op->arches >> arch & 1) == 0)
                continue;
            char       relation[8], type[8];
            const bool constant = op->name[5] == 'k';
            ck_assert_int_eq(sscanf(op->name + (constant ? 7 : 6), "%7[a-z]_%7s", relation, type), 2);
            for (int round = 0; round < 500; round++) {
                const bool     wide = strcmp(type, "u64") == 0;
                const uint64_t a = wide ? some_value() : (uint32_t)some_value();
                uint64_t       b = round % 3 == 0 ? a : wide ? some_value() : (uint32_t)some_value();
                char           text[80];
                if (constant) {
                    const unsigned k = (unsigned)b & 0xFFFF;
                    b = type[0] == 'u' ? k : (uint32_t)(int16_t)k;
                    snprintf(text, sizeof text, "%s s4, 0x%x", op->name, k);
                } else {
                    snprintf(text, sizeof text, wide ? "%s s[4:5], s[6:7]" : "%s s4, s6", op->name);
                }
                sim_set_scalar64(&f->wave, 4, a);
                sim_set_scalar64(&f->wave, 6, b);
                sim_fixture_run(f, "%s", text);
                ck_assert_msg(f->wave.scc == ((truth_of(relation) & relation_of(type, a, b)) != 0),
                              "%s of %" PRIx64 " %" PRIx64, text, a, b);
            }
        }
        sim_fixture_destroy(f);
    }
}
END_TEST

/* What becomes of EXEC, a bit at a time: table bit 2 * source + EXEC. */
static const struct {
    const char *name;
    int         table;
    bool        before; /* the result is EXEC before, not after */
} EXEC_ROWS[] = {
    { "s_and_saveexec", 8, true },      { "s_or_saveexec", 14, true },      { "s_xor_saveexec", 6, true },
    { "s_nand_saveexec", 7, true },     { "s_nor_saveexec", 1, true },      { "s_xnor_saveexec", 9, true },
    { "s_andn1_saveexec", 2, true },    { "s_andn2_saveexec", 4, true },    { "s_orn1_saveexec", 11, true },
    { "s_orn2_saveexec", 13, true },    { "s_andn1_wrexec", 2, false },     { "s_andn2_wrexec", 4, false },
    { "s_and_not0_saveexec", 2, true }, { "s_and_not1_saveexec", 4, true }, { "s_or_not0_saveexec", 11, true },
    { "s_or_not1_saveexec", 13, true }, { "s_and_not0_wrexec", 2, false },  { "s_and_not1_wrexec", 4, false },
};
enum { EXEC_COUNT = sizeof EXEC_ROWS / sizeof EXEC_ROWS[0] };

static bool is_exec_name(const char *name, int row, const char *suffix)
{
    char whole[40];
    snprintf(whole, sizeof whole, "%s%s", EXEC_ROWS[row].name, suffix);
    return strcmp(whole, name) == 0;
}

START_TEST(exec_masks)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        sim_wave    *w = &f->wave;
        for (int i = 0; i < EXEC_COUNT; i++)
            for (int wide = 0; wide < 2; wide++) {
                char name[40];
                snprintf(name, sizeof name, "%s%s", EXEC_ROWS[i].name, wide ? "_b64" : "_b32");
                if (sim_opcode_find(name, arch) == NULL)
                    continue;
                for (int round = 0; round < 200; round++) {
                    const uint64_t a = some_value(), exec = some_value(), bits = wide ? UINT64_MAX : UINT32_MAX;
                    uint64_t       want = 0;
                    for (int bit = 0; bit < (wide ? 64 : 32); bit++)
                        want |= (uint64_t)(EXEC_ROWS[i].table >> ((a >> bit & 1) * 2 + (exec >> bit & 1)) & 1) << bit;
                    sim_set_scalar64(w, 4, a);
                    sim_set_scalar64(w, SIM_EXEC, exec);
                    sim_fixture_run(f, wide ? "%s s[6:7], s[4:5]" : "%s s6, s4", name);
                    ck_assert_uint_eq(sim_scalar64(w, SIM_EXEC) & bits, want);
                    ck_assert_uint_eq(sim_scalar64(w, 6) & bits, (EXEC_ROWS[i].before ? exec : want) & bits);
                    ck_assert_int_eq(w->scc, want != 0);
                }
            }
        sim_fixture_destroy(f);
    }
}
END_TEST

static const char *const OTHER_NAMES = "s_movrels_b32 s_movrels_b64 s_movreld_b32 s_movreld_b64 s_movrelsd_2_b32 "
                                       "s_getpc_b64 s_setpc_b64 s_swappc_b64 s_call_b64 "
                                       "s_get_pc_i64 s_set_pc_i64 s_swap_pc_i64 s_add_pc_i64 s_call_i64";

START_TEST(program_counter_and_m0)
{
    for (sim_arch arch = SIM_GFX950; arch < SIM_ARCHS; arch++) {
        sim_fixture *f = sim_fixture_create(arch);
        sim_wave    *w = &f->wave;
        const bool   old = arch == SIM_GFX950;
        w->pc = UINT64_C(0x100000FFC); /* as the core leaves it: of the next instruction */
        sim_fixture_run(f, "%s s[2:3]", old ? "s_getpc_b64" : "s_get_pc_i64");
        ck_assert_uint_eq(w->pc, UINT64_C(0x100000FFC));
        ck_assert_uint_eq(sim_scalar64(w, 2), UINT64_C(0x100000FFC));
        sim_set_scalar64(w, 4, UINT64_C(0x200000100));
        sim_fixture_run(f, "%s s[2:3], s[4:5]", old ? "s_swappc_b64" : "s_swap_pc_i64");
        ck_assert_uint_eq(w->pc, UINT64_C(0x200000100));
        ck_assert_uint_eq(sim_scalar64(w, 2), UINT64_C(0x100000FFC));
        sim_set_scalar64(w, 4, UINT64_C(0x300));
        sim_fixture_run(f, "%s s[4:5]", old ? "s_setpc_b64" : "s_set_pc_i64");
        ck_assert_uint_eq(w->pc, 0x300);
        sim_fixture_run(f, "%s s[2:3], 65534", old ? "s_call_b64" : "s_call_i64"); /* two dwords back */
        ck_assert_uint_eq(w->pc, sim_scalar64(w, 2) - 8);
        if (!old) {
            const uint64_t here = w->pc;
            sim_set_scalar64(w, 4, UINT64_MAX - 15);
            sim_fixture_run(f, "s_add_pc_i64 s[4:5]");
            ck_assert_uint_eq(w->pc, here - 16);
        }
        for (int i = 0; i < 60; i++)
            w->s[i] = 1000u + (uint32_t)i;
        w->s[SIM_M0] = 4;
        sim_fixture_run(f, "s_movrels_b32 s0, s10");
        ck_assert_uint_eq(w->s[0], 1014);
        sim_fixture_run(f, "s_movrels_b64 s[0:1], s[10:11]");
        ck_assert_uint_eq(w->s[0], 1014);
        ck_assert_uint_eq(w->s[1], 1015);
        sim_fixture_run(f, "s_movreld_b32 s20, s30");
        ck_assert_uint_eq(w->s[24], 1030);
        sim_fixture_run(f, "s_movreld_b64 s[20:21], s[32:33]");
        ck_assert_uint_eq(w->s[24], 1032);
        ck_assert_uint_eq(w->s[25], 1033);
        if (!old) {
            w->s[SIM_M0] = 3u << 16 | 5u;
            sim_fixture_run(f, "s_movrelsd_2_b32 s40, s50");
            ck_assert_uint_eq(w->s[43], 1055);
        }
        w->s[SIM_M0] = 200;
        ck_assert(!sim_fixture_try(f, "s_movrels_b32 s0, s10"));
        sim_fixture_destroy(f);
    }
}
END_TEST

/* Constants, special sources and null. */
START_TEST(sources)
{
    sim_fixture *f = sim_fixture_create(SIM_GFX950);
    sim_wave    *w = &f->wave;
    sim_fixture_run(f, "s_mov_b32 s0, -5");
    ck_assert_uint_eq(w->s[0], 0xFFFFFFFB);
    sim_fixture_run(f, "s_mov_b32 s0, 0.5");
    ck_assert_uint_eq(w->s[0], 0x3F000000);
    sim_fixture_run(f, "s_mov_b64 s[0:1], -1");
    ck_assert_uint_eq(sim_scalar64(w, 0), UINT64_MAX);
    sim_fixture_run(f, "s_mov_b64 s[0:1], 0xffff0000"); /* a literal is not extended */
    ck_assert_uint_eq(sim_scalar64(w, 0), 0xFFFF0000);
    sim_fixture_run(f, "s_ashr_i64 s[0:1], 0xffff0000, 8"); /* but of a signed source */
    ck_assert_uint_eq(sim_scalar64(w, 0), UINT64_C(0xFFFFFFFFFFFFFF00));
    sim_fixture_run(f, "s_mov_b64 s[0:1], src_shared_base");
    ck_assert_uint_eq(sim_scalar64(w, 0), SIM_SHARED_APERTURE);
    w->scc = true;
    sim_set_exec(w, 0);
    sim_set_scalar64(w, SIM_VCC, 4);
    sim_fixture_run(f, "s_mov_b32 s0, src_scc");
    sim_fixture_run(f, "s_mov_b32 s1, src_execz");
    sim_fixture_run(f, "s_mov_b32 s2, src_vccz");
    ck_assert_uint_eq(w->s[0], 1);
    ck_assert_uint_eq(w->s[1], 1);
    ck_assert_uint_eq(w->s[2], 0);
    sim_fixture_destroy(f);
    f = sim_fixture_create(SIM_GFX1250);
    sim_fixture_run(f, "s_add_co_u32 null, s1, -1"); /* only SCC */
    ck_assert_int_eq(f->wave.scc, false);
    sim_fixture_run(f, "s_add_f16 s0, 1.0, 0.5");
    ck_assert_uint_eq(f->wave.s[0], 0x3E00);
    sim_fixture_run(f, "s_add_f32 s0, 1.0, 0.5");
    ck_assert_uint_eq(f->wave.s[0], 0x3FC00000);
    sim_fixture_destroy(f);
}
END_TEST

START_TEST(every_mnemonic_has_a_case)
{
    int rows = 0;
    for (const sim_opcode *op = sim_salu_opcodes; op->name != NULL; op++) {
        bool found = op->arches == 0 || strncmp(op->name, "s_cmp", 5) == 0 || name_is(OTHER_NAMES, op->name);
        for (int i = 0; i < ROW_COUNT; i++)
            found = found || name_is(ROWS[i].names, op->name);
        for (int i = 0; i < EXEC_COUNT; i++)
            found = found || is_exec_name(op->name, i, "_b32") || is_exec_name(op->name, i, "_b64");
        ck_assert_msg(found, "%s has no case", op->name);
        rows++;
    }
    ck_assert_int_ge(rows, 200);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, every_mnemonic_has_a_case);
    tcase_add_test(tcase, formulas);
    tcase_add_test(tcase, compares);
    tcase_add_test(tcase, exec_masks);
    tcase_add_test(tcase, program_counter_and_m0);
    tcase_add_test(tcase, sources);
}

int main(void)
{
    return testing_main("sim_salu", fill);
}
