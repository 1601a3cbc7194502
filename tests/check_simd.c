/* simd.h in every instruction set that was built and that this CPU has: 2^x to 1 ulp, FP8 codes exactly, sums of lanes. */
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
    float (*sum)(const float *x);
    int (*lanes)(void);
} probe;

#define PROBE(isa, needs) { #isa, needs, probe_exp2_##isa, probe_decode_##isa, probe_sum_##isa, probe_lanes_##isa },

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
    const float  x[16] = { 0.0f,      -0.0f,  -1.0f, -2.0f, -126.0f, -126.0001f, -127.0f, -1e4f,
                           -INFINITY, -3e38f, NAN,   -NAN,  -0.5f,   -1.5f,      -125.5f, -1e-30f };
    const float  want[16] = { 1,   1,   0.5f,           0.25f,          0x1p-126f,        0, 0, 0, 0, 0,
                              NAN, NAN, 0x1.6a09e6p-1f, 0x1.6a09e6p-2f, 0x1.6a09e6p-126f, 1 };
    float        y[16];
    if (p == NULL)
        return;
    p->exp2(x, y, 16);
    for (int i = 0; i < 16; i++)
        ck_assert_msg(isnan(want[i]) ? isnan(y[i]) : fabsf(y[i] - want[i]) <= 0x1p-23f * want[i], "%s: 2^%g is %g",
                      p->name, x[i], y[i]);
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
    p->decode(codes, fn, 256, ETALON_E4M3FN);
    p->decode(codes, fnuz, 256, ETALON_E4M3FNUZ);
    for (int i = 0; i < 256; i++) {
        const float a = f32_of_e4m3fn(codes[i]), b = f32_of_e4m3fnuz(codes[i]);
        ck_assert(isnan(a) ? isfinite(fn[i]) : bits_of_f32(a) == bits_of_f32(fn[i]));
        ck_assert(isnan(b) ? isfinite(fnuz[i]) : bits_of_f32(b) == bits_of_f32(fnuz[i]));
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

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, exp2_is_within_an_ulp, 0, PROBES);
    tcase_add_loop_test(tcase, exp2_at_the_edges, 0, PROBES);
    tcase_add_loop_test(tcase, decodes_every_code, 0, PROBES);
    tcase_add_loop_test(tcase, sums_every_lane, 0, PROBES);
}

int main(void)
{
    return testing_main("simd", fill);
}
