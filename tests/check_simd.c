/* simd.h in every instruction set that was built and that this CPU has: 2^x to 1 ulp, FP8 codes exactly, sums of
 * lanes; what tiles hold and how they round.
 */
#include "features.h"
#include "fp8.h"
#include "simd_probes.h"
#include "testing.h"

#include <math.h>

typedef struct probe {
    const char *name;
    uint32_t    needs;
    void (*exp2)(const float *x, float *y, int64_t n);
    void (*decode)(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype);
    void (*decode_wide)(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype);
    void (*decode_wide_to)(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype);
    float (*sum)(const float *x);
    void (*sum8)(const float *x, float *y);
    int (*lanes)(void);
} probe;

#define PROBE(isa, needs)         \
    { #isa,                       \
      needs,                      \
      probe_exp2_##isa,           \
      probe_decode_##isa,         \
      probe_decode_wide_##isa,    \
      probe_decode_wide_to_##isa, \
      probe_sum_##isa,            \
      probe_sum8_##isa,           \
      probe_lanes_##isa },

static const probe probes[] = { PROBE(generic, NEEDS_NONE)
#ifdef HAVE_AVX2
                                    PROBE(avx2, NEEDS_AVX2)
#endif
#ifdef HAVE_AVX512
                                        PROBE(avx512, NEEDS_AVX512)
#endif
#ifdef HAVE_NEON
                                            PROBE(neon, NEEDS_NEON)
#endif
};

enum { PROBES = sizeof probes / sizeof probes[0] };

/* The probe of this round; NULL, and a line that says so, where the CPU lacks what it needs. */
static const probe *probe_at(int i)
{
    if ((features_detect() & probes[i].needs) == probes[i].needs)
        return &probes[i];
    printf("# %s: not run, this CPU lacks it\n", probes[i].name);
    return NULL;
}

/* Distance to the exact 2^x in units of the last place that fp32 has there. */
static double ulp_of_exp2(float x, float y)
{
    const double exact = exp2((double)x);
    int          exponent;
    frexp(exact, &exponent);
    return fabs((double)y - exact) / ldexp(1.0, exponent - 24);
}

/* Every 97th number of [-126, 0], in order of its bits, and the whole numbers. */
START_TEST(exp2_is_within_an_ulp)
{
    const probe *p = probe_at(_i);
    enum { BATCH = 4096, STRIDE = 97 };
    static float x[BATCH], y[BATCH];
    double       worst = 0.0;
    uint32_t     bits = 0x80000000; /* -0 */
    while (p != NULL && bits <= 0xC2FC0000 /* -126 */) {
        for (int i = 0; i < BATCH; i++, bits += STRIDE)
            x[i] = f32_of_bits(bits <= 0xC2FC0000 ? bits : 0xC2FC0000);
        p->exp2(x, y, BATCH);
        for (int i = 0; i < BATCH; i++)
            worst = fmax(worst, ulp_of_exp2(x[i], y[i]));
    }
    if (p != NULL)
        printf("# %s: 2^x within %.3f ulp\n", p->name, worst);
    ck_assert_double_le(worst, 1.0);
}
END_TEST

START_TEST(exp2_at_the_edges)
{
    const probe *p = probe_at(_i);
    const float  x[16] = { 0.0f,      -0.0f, -1.0f,     -2.0f,  -126.0f, -126.25f,
                           -126.501f, -1e4f, -INFINITY, -3e38f, NAN,     f32_of_bits(0xFFFFFFFF),
                           -0.5f,     -1.5f, -125.5f,   -1e-30f };
    const float  want[16] = { 1, 1,   0.5f, 0.25f,          0x1p-126f,      0x1.ae89f8p-127f, 0, 0, 0,
                              0, NAN, NAN,  0x1.6a09e6p-1f, 0x1.6a09e6p-2f, 0x1.6a09e6p-126f, 1 };
    float        y[16];
    if (p == NULL)
        return;
    p->exp2(x, y, 16);
    for (int i = 0; i < 16; i++)
        ck_assert_msg(isnan(want[i]) ? isnan(y[i])
                                     : fabsf(y[i] - want[i]) <= 0x1p-23f * want[i] + 0x1p-149f * (want[i] > 0),
                      "%s: 2^%g is %g", p->name, x[i], y[i]);
}
END_TEST

START_TEST(decodes_every_code)
{
    const probe *p = probe_at(_i);
    uint8_t      codes[256];
    float        fn[256], fnuz[256];
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    if (p == NULL)
        return;
    void (*const ways[])(const uint8_t *, float *, int64_t, etalon_dtype) = { p->decode, p->decode_wide,
                                                                              p->decode_wide_to };
    for (int way = 0; way < 3; way++) {
        ways[way](codes, fn, 256, ETALON_E4M3FN);
        ways[way](codes, fnuz, 256, ETALON_E4M3FNUZ);
        for (int i = 0; i < 256; i++) {
            const float a = f32_of_e4m3fn(codes[i]), b = f32_of_e4m3fnuz(codes[i]);
            ck_assert(isnan(a) ? isfinite(fn[i]) : bits_of_f32(a) == bits_of_f32(fn[i]));
            ck_assert(isnan(b) ? isfinite(fnuz[i]) : bits_of_f32(b) == bits_of_f32(fnuz[i]));
        }
    }
}
END_TEST

/* Powers of two: any lane left out or taken twice shows. */
START_TEST(sums_every_lane)
{
    const probe *p = probe_at(_i);
    float        x[16], want = 0.0f;
    if (p == NULL)
        return;
    for (int i = 0; i < p->lanes(); i++) {
        x[i] = (float)(1 << i);
        want += x[i];
    }
    ck_assert_float_eq(p->sum(x), want);
}
END_TEST

/* Each lane of each vector is a power of two of its own within the vector, and the vectors differ by a factor of
 * three. */
START_TEST(sums_eight_vectors)
{
    const probe *p = probe_at(_i);
    float        x[8 * 16], y[8], factor = 1.0f;
    if (p == NULL)
        return;
    const int lanes = p->lanes();
    for (int v = 0; v < 8; v++, factor *= 3.0f)
        for (int i = 0; i < lanes; i++)
            x[v * lanes + i] = factor * (float)(1 << i);
    p->sum8(x, y);
    factor = 1.0f;
    for (int v = 0; v < 8; v++, factor *= 3.0f)
        ck_assert_float_eq(y[v], factor * (float)((1 << lanes) - 1));
}
END_TEST

#ifdef HAVE_AMX
static bool no_tiles(void)
{
    if (features_detect() & NEEDS_AMX)
        return false;
    printf("# amx: not run, this CPU or this system lacks it\n");
    return true;
}

START_TEST(tiles_hold_every_code)
{
    static const etalon_dtype dtypes[] = { ETALON_E4M3FN, ETALON_E4M3FNUZ };
    for (int n = 0; n < 2 * 256 && !no_tiles(); n += 64) {
        uint8_t codes[64];
        float   got[64];
        for (int i = 0; i < 64; i++)
            codes[i] = (uint8_t)(n + i);
        probe_amx_codes(codes, got, dtypes[n / 256]);
        for (int i = 0; i < 64; i++) {
            const float want = n < 256 ? f32_of_e4m3fn(codes[i]) : f32_of_e4m3fnuz(codes[i]);
            ck_assert_msg(isnan(want) ? isnan(got[i]) : got[i] == want, "code %#x is %g, expected %g", codes[i], got[i],
                          want);
        }
    }
}
END_TEST

/* Numbers whose last bit is 2^-126 or more: three terms of one sign, their sum in any order is exact. */
START_TEST(terms_add_up)
{
    const float edges[] = { 0.0f,     1.0f, -1.0f, 0x1.fffffep-1f, 0x1.fffffep40f, -0x1.010101p3f, 0x1.000002p-103f,
                            0x1p-126f };
    for (uint32_t n = 0; n < 100000 && !no_tiles(); n += 32) {
        float x[32], y[3][32];
        for (uint32_t i = 0; i < 32; i++) { /* a stride that is prime to 2^24 walks over mantissas and exponents */
            const float walk = f32_of_bits(0x0C800000 /* 2^-102 */ + (n + i) * 0x6F4F1 % 0x58000000);
            x[i] = i < sizeof edges / sizeof edges[0] ? edges[i] : walk;
        }
        probe_amx_split(x, y[0]);
        for (int i = 0; i < 32; i++) {
            ck_assert_msg(y[0][i] + (y[1][i] + y[2][i]) == x[i], "%a: %a %a %a", x[i], y[0][i], y[1][i], y[2][i]);
            ck_assert(y[0][i] * y[1][i] >= 0.0f && y[0][i] * y[2][i] >= 0.0f);
            ck_assert(y[2][i] == 0.0f || fabsf(y[2][i]) >= 0x1p-126f);
        }
    }
}
END_TEST

/* Two chains of sixteen fused multiply-adds from 0, for the first and for the second numbers of the pairs, and their
 * sum: what the bounds in src/attention_amx.h build upon.
 */
START_TEST(tiles_round_as_the_bounds_say)
{
    uint16_t a[16 * 32], b[16 * 32];
    float    got[16 * 16];
    uint32_t state = 1;
    for (int i = 0; i < 16 * 32; i++) {
        state = state * 1664525 + 1013904223;
        a[i] = (uint16_t)(0x3F00 + (state >> 24) + (state >> 8 & 0x8000)); /* +-[1/2, 2) */
        b[i] = (uint16_t)(0x3F00 + (state >> 12 & 0xFF) + (state & 0x8000));
    }
    if (no_tiles())
        return;
    probe_amx_multiply(a, b, got);
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) {
            float chain[2] = { 0.0f, 0.0f };
            for (int i = 0; i < 32; i++)
                chain[i % 2] =
                    fmaf(f32_of_bf16(a[r * 32 + i]), f32_of_bf16(b[i / 2 * 32 + c * 2 + i % 2]), chain[i % 2]);
            ck_assert_float_eq(got[r * 16 + c], chain[0] + chain[1]);
        }
}
END_TEST
#endif

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, exp2_is_within_an_ulp, 0, PROBES);
    tcase_add_loop_test(tcase, exp2_at_the_edges, 0, PROBES);
    tcase_add_loop_test(tcase, decodes_every_code, 0, PROBES);
    tcase_add_loop_test(tcase, sums_every_lane, 0, PROBES);
    tcase_add_loop_test(tcase, sums_eight_vectors, 0, PROBES);
#ifdef HAVE_AMX
    tcase_add_test(tcase, tiles_hold_every_code);
    tcase_add_test(tcase, terms_add_up);
    tcase_add_test(tcase, tiles_round_as_the_bounds_say);
#endif
}

int main(void)
{
    return testing_main("simd", fill);
}
