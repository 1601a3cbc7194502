/* The error measures: known answers, ulp by counting, strides, masks, poison, bounds, a plain second formulation. */
#include "testing.h"

#include "element.h"
#include "measure.h"
#include "tensor.h"

#include <math.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const etalon_dtype number_formats[] = { ETALON_F64,    ETALON_F32,      ETALON_F16, ETALON_BF16,
                                               ETALON_E4M3FN, ETALON_E4M3FNUZ, ETALON_E5M2 };

static etalon_tensor vector(void *data, etalon_dtype dtype, int64_t n)
{
    return etalon_tensor_dense(data, dtype, 1, &n);
}

static measure compare(const etalon_tensor *got, const etalon_tensor *want, measure_bound_fn *bound, const void *user)
{
    measure m;
    ck_assert(measure_compare(got, want, bound, user, &m));
    return m;
}

static measure compare_f32(float *got, float *want, int64_t n, measure_bound_fn *bound, const void *user)
{
    const etalon_tensor a = vector(got, ETALON_F32, n), b = vector(want, ETALON_F32, n);
    return compare(&a, &b, bound, user);
}

/* The same bound for every element. */
static double constant_bound(const void *user, const int64_t *index)
{
    (void)index;
    return *(const double *)user;
}

/* A bound of its own for every element of a vector. */
static double listed_bound(const void *user, const int64_t *index)
{
    return ((const double *)user)[index[0]];
}

static void assert_no_error(const measure *m)
{
    ck_assert_double_eq(m->max_abs, 0);
    ck_assert_double_eq(m->rms, 0);
    ck_assert_double_eq(m->max_err_over_std, 0);
    ck_assert_double_eq(m->cosine, 1);
    ck_assert_double_eq(m->calc_diff, 0);
    ck_assert_double_eq(m->max_bound_ratio, 0);
    ck_assert_int_eq(m->max_ulp, 0);
    ck_assert_int_eq(m->over_bound + m->inf_mismatches + m->nan_mismatches + m->unwritten, 0);
    ck_assert(!m->has_worst && !m->has_first);
    ck_assert(measure_ok(m));
}

/* ---- sums ---- */

START_TEST(known_answers)
{
    float         got[] = { 1, 2, 3, 5 }, want[] = { 1, 2, 3, 4 };
    const measure m = compare_f32(got, want, 4, NULL, NULL);
    ck_assert_int_eq(m.rank, 1);
    ck_assert_int_eq(m.elements, 4);
    ck_assert_int_eq(m.compared, 4);
    ck_assert_double_eq(m.max_abs, 1);
    ck_assert_double_eq(m.rms, 0.5);
    ck_assert_double_eq_tol(m.max_err_over_std, 1 / sqrt(1.25), 1e-15);
    ck_assert_double_eq_tol(m.cosine, 34 / sqrt(39.0 * 30.0), 1e-15);
    ck_assert_double_eq_tol(m.calc_diff, 1 - 2 * 34.0 / 69.0, 1e-15);
    ck_assert_int_eq(m.max_ulp, 1 << 21); /* 4 to 5 is a quarter of a binade of 2^23 values */
    ck_assert(m.has_worst && !m.has_first && measure_ok(&m));
    ck_assert_int_eq(m.worst.index[0], 3);
    ck_assert_double_eq(m.worst.got, 5);
    ck_assert_double_eq(m.worst.want, 4);
    ck_assert(isnan(m.worst.bound));
    ck_assert_int_eq(m.worst.ulp, 1 << 21);
}
END_TEST

START_TEST(equal_tensors_have_no_error)
{
    const etalon_dtype dtype = number_formats[_i];
    uint64_t           data[32];
    for (int i = 0; i < 32; i++) /* finite in every dtype */
        data[i] = 0x3C3830003C383000 + (uint64_t)i * 0x0101010101010101;
    const etalon_tensor t = vector(data, dtype, 32);
    const measure       m = compare(&t, &t, NULL, NULL);
    assert_no_error(&m);
    ck_assert_int_eq(m.elements, 32);
    ck_assert_int_eq(m.compared, 32);
}
END_TEST

START_TEST(zeros)
{
    float         zero[] = { 0, -0.0f, 0 }, one[] = { 1, 1, 1 };
    const measure both = compare_f32(zero, zero, 3, NULL, NULL);
    assert_no_error(&both);
    const measure got = compare_f32(zero, one, 3, NULL, NULL), want = compare_f32(one, zero, 3, NULL, NULL);
    ck_assert_double_eq(got.cosine, 0);
    ck_assert_double_eq(want.cosine, 0);
    ck_assert_double_eq(got.calc_diff, 1);
    ck_assert_double_eq(want.calc_diff, 1);
    float         minus[] = { -0.0f }, plus[] = { 0.0f };
    const measure signs = compare_f32(minus, plus, 1, NULL, NULL);
    assert_no_error(&signs);
}
END_TEST

/* Ten times 0.1 do not add up to 1 in fp64; a constant has no spread all the same. */
START_TEST(error_over_the_spread_of_a_constant)
{
    double got[10], want[10];
    for (int i = 0; i < 10; i++)
        got[i] = want[i] = 0.1;
    const etalon_tensor a = vector(got, ETALON_F64, 10), b = vector(want, ETALON_F64, 10);
    ck_assert_double_eq(compare(&a, &b, NULL, NULL).max_err_over_std, 0);
    got[9] = 0.2;
    ck_assert(isinf(compare(&a, &b, NULL, NULL).max_err_over_std));
}
END_TEST

/* The wanted value beside an unwritten element is still part of the spread. */
START_TEST(spread_is_that_of_all_finite_wanted_values)
{
    float         got[] = { 1, NAN, 4, 1 }, want[] = { 1, 3, 5, INFINITY };
    const measure m = compare_f32(got, want, 4, NULL, NULL);
    ck_assert_int_eq(m.compared, 2);
    ck_assert_double_eq_tol(m.max_err_over_std, 1 / sqrt(8.0 / 3.0), 1e-15);
}
END_TEST

START_TEST(opposite_and_orthogonal)
{
    float got[] = { 1, 2, -3 }, want[] = { -1, -2, 3 }, x[] = { 1, 0 }, y[] = { 0, 1 };
    ck_assert_double_eq(compare_f32(got, want, 3, NULL, NULL).cosine, -1);
    ck_assert_double_eq(compare_f32(got, want, 3, NULL, NULL).calc_diff, 2);
    ck_assert_double_eq(compare_f32(x, y, 2, NULL, NULL).cosine, 0);
    ck_assert_double_eq(compare_f32(x, y, 2, NULL, NULL).calc_diff, 1);
}
END_TEST

/* 2^25 elements behind strides of 0. The error of a plain sum grows with its length; ours is that of its plainly added
 * blocks, 512 units of 2^-53, twice in a quotient. */
START_TEST(long_sums_stay_exact)
{
    float         got = 1.1f, want = 1.0f;
    const int64_t shape[] = { 1 << 10, 1 << 15 };
    etalon_tensor a = etalon_tensor_dense(&got, ETALON_F32, 2, shape);
    a.stride[0] = a.stride[1] = 0;
    etalon_tensor b = a;
    b.data = &want;
    const measure m = compare(&a, &b, NULL, NULL);
    const double  apart = (double)got - 1.0, accuracy = 1024 * 0x1p-53;
    ck_assert_int_eq(m.compared, (int64_t)1 << 25);
    ck_assert_double_eq_tol(m.rms, apart, accuracy * apart);
    ck_assert_double_eq_tol(m.calc_diff, apart * apart / ((double)got * got + 1), accuracy);
    ck_assert_double_eq_tol(m.cosine, 1, accuracy);
    ck_assert(isinf(m.max_err_over_std)); /* not a rounding error's worth of spread in a constant */
}
END_TEST

/* calc_diff of two nearly equal tensors: 1 - 2xy / (x^2 + y^2) as written would leave nothing but rounding errors. */
START_TEST(calc_diff_does_not_cancel)
{
    double              got[] = { 1 + 0x1p-40, 1 }, want[] = { 1, 1 };
    const etalon_tensor a = vector(got, ETALON_F64, 2), b = vector(want, ETALON_F64, 2);
    ck_assert_double_eq_tol(compare(&a, &b, NULL, NULL).calc_diff, 0x1p-82, 0x1p-82 * 0x1p-38);
}
END_TEST

/* ---- ulp ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The distinct finite values of a dtype of one or two bytes, ascending. */
static int finite_values(etalon_dtype dtype, double *values)
{
    const int codes = etalon_dtype_bytes(dtype) == 1 ? 256 : 65536;
    int       n = 0, distinct = 0;
    for (int code = 0; code < codes; code++) {
        const uint16_t x = (uint16_t)code;
        const float    value = element_load(&x, dtype);
        if (isfinite(value))
            values[n++] = value;
    }
    qsort(values, (size_t)n, sizeof *values, by_value);
    for (int i = 0; i < n; i++)
        if (i == 0 || values[i] != values[distinct - 1])
            values[distinct++] = values[i];
    return distinct;
}

static int rank_of(const double *values, int n, double x)
{
    const double *at = bsearch(&x, values, (size_t)n, sizeof *values, by_value);
    if (at == NULL)
        ck_abort_msg("%g is not in the list", x);
    return (int)(at - values);
}

static const etalon_dtype narrow[] = { ETALON_F16, ETALON_BF16, ETALON_E4M3FN, ETALON_E4M3FNUZ, ETALON_E5M2 };

/* Every value against a few others: the distance is the difference of their places in the sorted list of all values. */
START_TEST(ulp_counts_values)
{
    const etalon_dtype dtype = narrow[_i];
    const int          codes = etalon_dtype_bytes(dtype) == 1 ? 256 : 65536, step = codes == 256 ? 1 : 4099;
    static double      values[65536];
    const int          n = finite_values(dtype, values);
    for (int g = 0; g < codes; g += step)
        for (int w = 0; w < codes; w += codes == 256 ? 1 : 7) {
            uint16_t            got = (uint16_t)g, want = (uint16_t)w;
            const etalon_tensor a = etalon_tensor_dense(&got, dtype, 0, NULL);
            const etalon_tensor b = etalon_tensor_dense(&want, dtype, 0, NULL);
            const double        x = element_load(&got, dtype), y = element_load(&want, dtype);
            measure             m;
            if (!measure_compare(&a, &b, NULL, NULL, &m))
                ck_abort_msg("refused");
            if (!isfinite(x) || !isfinite(y))
                continue;
            const int64_t right = abs(rank_of(values, n, x) - rank_of(values, n, y));
            if (m.max_ulp != right)
                ck_abort_msg("%s: %g and %g: %lld ulp, wanted %lld", etalon_dtype_name(dtype), x, y,
                             (long long)m.max_ulp, (long long)right);
        }
}
END_TEST

/* A wanted F64 value between two neighbours is rounded to the nearer one; halfway, to the one whose code is even. */
START_TEST(ulp_rounds_what_is_wanted)
{
    const etalon_dtype dtype = narrow[_i];
    const int          top = etalon_dtype_bytes(dtype) == 1 ? 0x7F : 0x7FFF;
    for (int code = 0; code < top; code++) {
        uint16_t     below = (uint16_t)code, above = (uint16_t)(code + 1);
        const double low = element_load(&below, dtype), high = element_load(&above, dtype);
        if (!isfinite(low) || !isfinite(high))
            break;
        const double middle = low + (high - low) / 2;
        double       want[] = { middle, nextafter(middle, low), nextafter(middle, high) };
        const int    right[] = { code % 2 == 0 ? 0 : 1, 0, 1 };
        for (int i = 0; i < 3; i++) {
            const etalon_tensor a = etalon_tensor_dense(&below, dtype, 0, NULL);
            const etalon_tensor b = etalon_tensor_dense(&want[i], ETALON_F64, 0, NULL);
            measure             m;
            if (!measure_compare(&a, &b, NULL, NULL, &m) || m.max_ulp != right[i])
                ck_abort_msg("%s code %d, case %d: %lld ulp, wanted %d", etalon_dtype_name(dtype), code, i,
                             (long long)m.max_ulp, right[i]);
        }
    }
}
END_TEST

/* Infinity is the next value after the largest one; where there is none, the largest value is the nearest. */
START_TEST(ulp_beyond_the_largest)
{
    static const struct {
        uint16_t largest;
        int64_t  ulp;
    } ends[] = { { 0x7BFF, 1 }, { 0x7F7F, 1 }, { 0x7E, 0 }, { 0x7F, 0 }, { 0x7B, 1 } }; /* in step with narrow[] */
    uint16_t            got = ends[_i].largest;
    double              want = 1e300;
    const etalon_tensor a = etalon_tensor_dense(&got, narrow[_i], 0, NULL);
    const etalon_tensor b = etalon_tensor_dense(&want, ETALON_F64, 0, NULL);
    ck_assert_int_eq(compare(&a, &b, NULL, NULL).max_ulp, ends[_i].ulp);
}
END_TEST

static const struct {
    etalon_dtype dtype;
    double       got, want;
    int64_t      ulp;
} ulps[] = {
    { ETALON_F32, 1, 1, 0 },
    { ETALON_F32, 1, 1 + 0x1p-23, 1 },
    { ETALON_F32, 1, 1 + 0x1p-24, 0 },      /* tie to even: 1 */
    { ETALON_F32, 1, 1 + 0x1.8p-23, 2 },    /* tie to even: 1 + 2^-22 */
    { ETALON_F32, 1, 1 - 0x1p-24, 1 },      /* half the spacing below a power of two */
    { ETALON_F32, 0x1p-149, -0x1p-149, 2 }, /* across zero */
    { ETALON_F32, -0.0, 0x1p-149, 1 },
    { ETALON_F32, 0x1p-126, 0x1.fffffcp-127, 1 }, /* across the subnormals */
    { ETALON_F32, 0x1p-149, 0x1p-150, 1 },        /* tie to even: 0 */
    { ETALON_F32, 0x1p-149, 0x1.8p-150, 0 },
    { ETALON_F32, 0x1.fffffep127, 0x1p128, 1 }, /* infinity is the next value */
    { ETALON_F64, 1, 1 + 0x1p-52, 1 },
    { ETALON_F64, 0, 0x1p-1074, 1 },
    { ETALON_F64, 0x1p-1074, -0x1p-1074, 2 },
    { ETALON_F64, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023, INT64_MAX }, /* more than fits */
};

START_TEST(ulp_table)
{
    float               single = (float)ulps[_i].got;
    double              full = ulps[_i].got, want = ulps[_i].want;
    void               *data = ulps[_i].dtype == ETALON_F32 ? (void *)&single : (void *)&full;
    const etalon_tensor a = etalon_tensor_dense(data, ulps[_i].dtype, 0, NULL);
    const etalon_tensor b = etalon_tensor_dense(&want, ETALON_F64, 0, NULL);
    const measure       m = compare(&a, &b, NULL, NULL);
    ck_assert_int_eq(m.max_ulp, ulps[_i].ulp);
    if (m.has_worst)
        ck_assert_int_eq(m.worst.ulp, ulps[_i].ulp);
}
END_TEST

/* ---- NaN, infinity, poison ---- */

enum { P = 1000 }; /* stands for the poison in the table below */

static const struct {
    float   got, want;
    int64_t compared, inf, nan, unwritten;
} masks[] = {
    { 1, 1, 1, 0, 0, 0 },
    { INFINITY, INFINITY, 0, 0, 0, 0 },
    { -INFINITY, -INFINITY, 0, 0, 0, 0 },
    { INFINITY, -INFINITY, 0, 1, 0, 0 },
    { -INFINITY, 0, 0, 1, 0, 0 },
    { 0, -INFINITY, 0, 1, 0, 0 },
    { NAN, NAN, 0, 0, 0, 0 },
    { NAN, 0, 0, 0, 1, 0 },
    { 0, NAN, 0, 0, 1, 0 },
    { NAN, -INFINITY, 0, 0, 1, 0 },
    { INFINITY, NAN, 0, 0, 1, 0 },
    { P, 0, 0, 0, 0, 1 },
    { P, NAN, 0, 0, 0, 1 },
    { P, -INFINITY, 0, 0, 0, 1 },
    { P, P, 0, 0, 0, 0 }, /* left alone, as wanted */
    { 0, P, 0, 0, 1, 0 }, /* written, though it should have been left alone */
    { NAN, P, 0, 0, 1, 0 },
};

static const etalon_dtype wide[] = { ETALON_F64, ETALON_F32, ETALON_F16, ETALON_BF16 };

/* Values that every wide dtype holds. */
static void put(void *at, etalon_dtype dtype, float x)
{
    const etalon_tensor t = etalon_tensor_dense(at, dtype, 0, NULL);
    const uint16_t      half = isnan(x) ? 0x7E00 : isinf(x) ? (x < 0 ? 0xFC00 : 0x7C00) : x == 0 ? 0 : 0x3C00 /* 1 */;
    const double        full = x;
    if (x == P)
        measure_poison(&t);
    else if (dtype == ETALON_F16)
        memcpy(at, &half, sizeof half);
    else if (dtype == ETALON_F64)
        memcpy(at, &full, sizeof full);
    else
        element_store(at, dtype, x);
}

START_TEST(masks_and_poison)
{
    for (int g = 0; g < COUNT(wide); g++)
        for (int w = 0; w < COUNT(wide); w++) {
            uint64_t            got, want;
            const etalon_tensor a = etalon_tensor_dense(&got, wide[g], 0, NULL);
            const etalon_tensor b = etalon_tensor_dense(&want, wide[w], 0, NULL);
            put(&got, wide[g], masks[_i].got);
            put(&want, wide[w], masks[_i].want);
            const measure m = compare(&a, &b, NULL, NULL);
            const bool    wrong = masks[_i].inf + masks[_i].nan + masks[_i].unwritten > 0;
            ck_assert_int_eq(m.elements, 1);
            ck_assert_int_eq(m.compared, masks[_i].compared);
            ck_assert_int_eq(m.inf_mismatches, masks[_i].inf);
            ck_assert_int_eq(m.nan_mismatches, masks[_i].nan);
            ck_assert_int_eq(m.unwritten, masks[_i].unwritten);
            ck_assert_int_eq(m.has_worst, wrong);
            ck_assert_int_eq(m.has_first, wrong);
            ck_assert_int_eq(measure_ok(&m), !wrong);
            ck_assert_int_eq(m.max_ulp, 0);
            if (wrong)
                ck_assert_int_eq(m.worst.ulp, INT64_MAX);
        }
}
END_TEST

/* What arithmetic makes of NaN, or of the poison itself, is a written NaN. */
START_TEST(computed_nan_is_not_poison)
{
    volatile float  zero = 0, infinite = INFINITY, poison;
    volatile double full;
    float           single;
    double          twice;
    etalon_tensor   t = etalon_tensor_dense(&single, ETALON_F32, 0, NULL);
    measure_poison(&t);
    memcpy((void *)&poison, &single, sizeof single);
    t = etalon_tensor_dense(&twice, ETALON_F64, 0, NULL);
    measure_poison(&t);
    memcpy((void *)&full, &twice, sizeof twice);
    float    got[] = { zero / zero,         infinite - infinite, zero * infinite,     poison + 1.0f,
                       poison * zero,       -poison + 0.0f,      sqrtf(-1.0f - zero), (float)full,
                       f32_of_e4m3fn(0x7F), f32_of_e5m2(0x7F),   f32_of_e8m0(0xFF) };
    float    want[COUNT(got)] = { 0 };
    uint16_t half[COUNT(got)];
    for (int i = 0; i < COUNT(got); i++)
        half[i] = bf16_of_f32(got[i]);
    const measure m = compare_f32(got, want, COUNT(got), NULL, NULL);
    ck_assert_int_eq(m.nan_mismatches, COUNT(got));
    ck_assert_int_eq(m.unwritten, 0);
    const etalon_tensor a = vector(half, ETALON_BF16, COUNT(got)), b = vector(want, ETALON_F32, COUNT(got));
    const measure       narrowed = compare(&a, &b, NULL, NULL);
    ck_assert_int_eq(narrowed.nan_mismatches, COUNT(got));
    ck_assert_int_eq(narrowed.unwritten, 0);
    double              sum[] = { full + 1.0 }, none[] = { 0 };
    const etalon_tensor c = vector(sum, ETALON_F64, 1), d = vector(none, ETALON_F64, 1);
    ck_assert_int_eq(compare(&c, &d, NULL, NULL).unwritten, 0);
}
END_TEST

/* An FP8 NaN code may be a kernel's own: it is a NaN mismatch, never "unwritten". */
START_TEST(fp8_poison_is_nan)
{
    static const etalon_dtype fp8[] = { ETALON_E4M3FN, ETALON_E4M3FNUZ, ETALON_E5M2, ETALON_E8M0 };
    uint8_t                   codes[4] = { 0 };
    float                     want[4] = { 0 };
    const etalon_tensor       t = vector(codes, fp8[_i], 4), b = vector(want, ETALON_F32, 4);
    measure_poison(&t);
    for (int i = 0; i < 4; i++)
        ck_assert(isnan(element_load(&codes[i], fp8[_i])));
    if (fp8[_i] == ETALON_E8M0)
        return; /* not a number format to measure_compare; see refusals */
    const measure m = compare(&t, &b, NULL, NULL);
    ck_assert_int_eq(m.nan_mismatches, 4);
    ck_assert_int_eq(m.unwritten, 0);
    ck_assert(!measure_ok(&m));
}
END_TEST

START_TEST(poison_fills_what_the_view_covers)
{
    float         data[24];
    const int64_t shape[] = { 3, 2 };
    for (int i = 0; i < 24; i++)
        data[i] = 7;
    etalon_tensor t = etalon_tensor_dense(&data[20], ETALON_F32, 2, shape);
    t.stride[0] = -8;
    t.stride[1] = 2;
    measure_poison(&t);
    for (int i = 0; i < 24; i++)
        ck_assert_int_eq(isnan(data[i]) != 0, i == 20 || i == 22 || i == 12 || i == 14 || i == 4 || i == 6);
    int32_t       index = 3;
    etalon_tensor untouched = etalon_tensor_dense(&index, ETALON_I32, 0, NULL);
    measure_poison(&untouched);
    ck_assert_int_eq(index, 3);
    const int64_t none[] = { 2, 0 };
    etalon_tensor empty = etalon_tensor_dense(data, ETALON_F32, 2, none);
    data[0] = 7;
    measure_poison(&empty);
    ck_assert_float_eq(data[0], 7);
}
END_TEST

/* ---- views ---- */

START_TEST(any_strides)
{
    float         dense[2 * 3 * 4], turned[4 * 3 * 2], back[2 * 3 * 4];
    const int64_t shape[] = { 2, 3, 4 };
    for (int i = 0; i < 24; i++) {
        dense[i] = (float)i;
        turned[i % 4 * 6 + i / 4 % 3 * 2 + i / 12] = (float)i;
        back[23 - i] = (float)i;
    }
    const etalon_tensor a = etalon_tensor_dense(dense, ETALON_F32, 3, shape);
    etalon_tensor       b = a, c = a;
    b.data = turned;
    b.stride[0] = 1, b.stride[1] = 2, b.stride[2] = 6;
    c.data = &back[23];
    c.stride[0] = -12, c.stride[1] = -4, c.stride[2] = -1;
    const measure plain = compare(&a, &a, NULL, NULL), transposed = compare(&a, &b, NULL, NULL);
    const measure reversed = compare(&c, &b, NULL, NULL);
    assert_no_error(&plain);
    assert_no_error(&transposed);
    assert_no_error(&reversed);
    back[23 - 17] += 2; /* element [1, 1, 1] */
    back[23 - 22] += 1; /* element [1, 2, 2] */
    const double  tight = 0.5;
    const measure m = compare(&c, &a, constant_bound, &tight);
    ck_assert_int_eq(m.over_bound, 2);
    ck_assert_double_eq(m.max_bound_ratio, 4);
    ck_assert_mem_eq(m.worst.index, ((int64_t[]){ 1, 1, 1, 0, 0 }), sizeof m.worst.index);
    ck_assert_mem_eq(m.first.index, ((int64_t[]){ 1, 1, 1, 0, 0 }), sizeof m.first.index);
}
END_TEST

START_TEST(stride_zero_is_a_broadcast)
{
    float         got[] = { 1, 1, 1, 2 }, want = 1;
    etalon_tensor a = vector(got, ETALON_F32, 4), b = vector(&want, ETALON_F32, 4);
    b.stride[0] = 0;
    const measure m = compare(&a, &b, NULL, NULL);
    ck_assert_double_eq(m.max_abs, 1);
    ck_assert_int_eq(m.worst.index[0], 3);
    ck_assert_int_eq(m.compared, 4);
}
END_TEST

START_TEST(rank_zero)
{
    float               got = 2, want = 1;
    const etalon_tensor a = etalon_tensor_dense(&got, ETALON_F32, 0, NULL);
    const etalon_tensor b = etalon_tensor_dense(&want, ETALON_F32, 0, NULL);
    const double        bound = 0.25;
    const measure       m = compare(&a, &b, constant_bound, &bound);
    ck_assert_int_eq(m.rank, 0);
    ck_assert_int_eq(m.elements, 1);
    ck_assert_double_eq(m.max_bound_ratio, 4);
    ck_assert_int_eq(m.over_bound, 1);
}
END_TEST

START_TEST(rank_five)
{
    float         got[32], want[32];
    const int64_t shape[] = { 2, 2, 2, 2, 2 };
    for (int i = 0; i < 32; i++)
        got[i] = want[i] = (float)i;
    got[21] = 0; /* 10101 in binary */
    const etalon_tensor a = etalon_tensor_dense(got, ETALON_F32, 5, shape);
    const etalon_tensor b = etalon_tensor_dense(want, ETALON_F32, 5, shape);
    const measure       m = compare(&a, &b, NULL, NULL);
    ck_assert_mem_eq(m.worst.index, ((int64_t[]){ 1, 0, 1, 0, 1 }), sizeof m.worst.index);
    char text[64];
    measure_index_text(&m.worst, m.rank, text, sizeof text);
    ck_assert_str_eq(text, "[1, 0, 1, 0, 1]");
}
END_TEST

START_TEST(empty_tensors)
{
    static const int64_t shapes[][3] = { { 0, 2, 3 }, { 2, 0, 3 }, { 2, 3, 0 }, { 0, 0, 0 } };
    float                data = 0;
    const etalon_tensor  t = etalon_tensor_dense(&data, ETALON_F32, 3, shapes[_i]);
    const measure        m = compare(&t, &t, NULL, NULL);
    assert_no_error(&m);
    ck_assert_int_eq(m.elements, 0);
    ck_assert_int_eq(m.compared, 0);
}
END_TEST

START_TEST(refusals)
{
    double        data[8] = { 0 };
    const int64_t two_three[] = { 2, 3 }, three_two[] = { 3, 2 };
    etalon_tensor right = etalon_tensor_dense(data, ETALON_F32, 2, two_three), wrong[7];
    wrong[0] = etalon_tensor_dense(data, ETALON_F32, 2, three_two);
    wrong[1] = etalon_tensor_dense(data, ETALON_F32, 1, two_three);
    wrong[2] = etalon_tensor_dense(data, ETALON_I32, 2, two_three);
    wrong[3] = etalon_tensor_dense(data, ETALON_U8, 2, two_three);
    wrong[4] = etalon_tensor_dense(data, ETALON_E8M0, 2, two_three);
    wrong[5] = etalon_tensor_dense(data, ETALON_DTYPE_NONE, 2, two_three);
    wrong[6] = etalon_tensor_dense(data, (etalon_dtype)99, 2, two_three);
    for (int i = 0; i < COUNT(wrong); i++) {
        measure m, before;
        memset(&m, 0x5A, sizeof m);
        before = m;
        ck_assert_msg(!measure_compare(&right, &wrong[i], NULL, NULL, &m), "case %d", i);
        ck_assert_msg(!measure_compare(&wrong[i], &right, NULL, NULL, &m), "case %d", i);
        ck_assert_mem_eq(&m, &before, sizeof m);
    }
}
END_TEST

/* ---- bounds, worst, first ---- */

START_TEST(bounds)
{
    float         got[] = { 1, 2, 3, 4, 5, 6, 7 }, want[] = { 1, 2.5f, 2, 4, 4, 5, 6 };
    const double  bound[] = { 0, 0.5, 2, NAN, 0.25, 0, NAN };
    const measure m = compare_f32(got, want, 7, listed_bound, bound);
    ck_assert(isinf(m.max_bound_ratio));
    ck_assert_int_eq(m.over_bound, 3); /* [4], [5] and [6]; [1] is just within, [0] is 0 / 0, [3] does not differ */
    ck_assert_int_eq(m.worst.index[0], 5);
    ck_assert_double_eq(m.worst.bound, 0);
    ck_assert_int_eq(m.first.index[0], 4);
    ck_assert_double_eq(m.first.bound, 0.25);
    ck_assert_double_eq(m.first.got, 5);
    ck_assert_double_eq(m.first.want, 4);
    ck_assert(!measure_ok(&m));
    const measure start = compare_f32(got, want, 4, listed_bound, bound);
    ck_assert_double_eq(start.max_bound_ratio, 1);
    ck_assert_int_eq(start.over_bound, 0);
    ck_assert_int_eq(start.worst.index[0], 1); /* the largest ratio, not the largest difference */
    ck_assert(!start.has_first && measure_ok(&start));
}
END_TEST

START_TEST(negative_bound_is_never_met)
{
    float         got[] = { 1 }, want[] = { 2 };
    const double  bound = -1;
    const measure m = compare_f32(got, want, 1, constant_bound, &bound);
    ck_assert(isinf(m.max_bound_ratio));
    ck_assert_int_eq(m.over_bound, 1);
}
END_TEST

START_TEST(mismatches_are_over_any_bound)
{
    float         got[] = { NAN, 1, 0 }, want[] = { 1, -INFINITY, 1 };
    const double  bound = INFINITY;
    const measure m = compare_f32(got, want, 3, constant_bound, &bound);
    ck_assert(isinf(m.max_bound_ratio));
    ck_assert_int_eq(m.over_bound, 2);
    ck_assert_int_eq(m.first.index[0], 0);
    ck_assert(isinf(m.first.bound));
}
END_TEST

START_TEST(worst_by_gravity)
{
    float         got[] = { 9, 1, INFINITY, INFINITY, NAN, 0, P, P }, want[] = { 0, 1, 1, -INFINITY, 0, NAN, 1, 2 };
    etalon_tensor cell = etalon_tensor_dense(&got[6], ETALON_F32, 0, NULL);
    measure_poison(&cell);
    cell.data = &got[7];
    measure_poison(&cell);
    static const int worst[] = { 0, 0, 2, 2, 4, 4, 6, 6 }; /* of the elements up to and including that one */
    for (int n = 1; n <= 8; n++) {
        const measure m = compare_f32(got, want, n, NULL, NULL);
        ck_assert_int_eq(m.worst.index[0], worst[n - 1]);
        ck_assert_int_eq(m.has_first, n > 2);
        if (n > 2)
            ck_assert_int_eq(m.first.index[0], 2);
    }
    float         graver[] = { NAN, 1, INFINITY }, plain[] = { 0, 9, 1 };
    const measure m = compare_f32(graver, plain, 3, NULL, NULL);
    ck_assert_int_eq(m.worst.index[0], 0); /* the lighter ones that follow do not take its place */
    ck_assert_int_eq(m.max_abs, 8);
}
END_TEST

START_TEST(first_of_equals_is_the_worst)
{
    float         got[] = { 1, 2, 3 }, want[] = { 1, 1, 2 };
    const measure m = compare_f32(got, want, 3, NULL, NULL);
    ck_assert_int_eq(m.worst.index[0], 1);
}
END_TEST

START_TEST(index_text)
{
    const measure_element e = { .index = { 3, 0, 17, INT64_MIN, INT64_MAX } };
    char                  text[128];
    measure_index_text(&e, 0, text, sizeof text);
    ck_assert_str_eq(text, "[]");
    measure_index_text(&e, 3, text, sizeof text);
    ck_assert_str_eq(text, "[3, 0, 17]");
    measure_index_text(&e, 5, text, sizeof text);
    ck_assert_str_eq(text, "[3, 0, 17, -9223372036854775808, 9223372036854775807]");
    measure_index_text(&e, 3, text, 5);
    ck_assert_str_eq(text, "[3, ");
}
END_TEST

/* ---- a plain second formulation ---- */

static uint64_t draw(uint64_t *state) /* splitmix64 */
{
    uint64_t x = *state += 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
}

/* Eight bytes that are numbers of moderate size in every dtype, or, now and then, NaN in every dtype but E4M3FNUZ. */
static uint64_t drawn_bits(uint64_t *seed)
{
    static const uint8_t bytes[] = { 0x3C, 0x3D, 0x3F, 0x40, 0xBC, 0xBE, 0xBF, 0xC0 };
    uint64_t             bits = 0;
    if (draw(seed) % 64 == 0)
        return UINT64_MAX;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | bytes[draw(seed) % 8];
    return bits;
}

static double bound_by_index(const void *user, const int64_t *index)
{
    (void)user;
    return 0.25 + 0.5 * (double)((index[0] + 2 * index[1] + 3 * index[2]) % 7);
}

static double value_at(const etalon_tensor *t, const int64_t *index)
{
    int64_t offset = 0;
    for (int32_t d = 0; d < t->rank; d++)
        offset += index[d] * t->stride[d];
    const char *at = (const char *)t->data + offset * (int64_t)etalon_dtype_bytes(t->dtype);
    return t->dtype == ETALON_F64 ? *(const double *)at : element_load(at, t->dtype);
}

/* A view of rank 3 with its dimensions in a drawn order in memory, each drawn forwards or backwards, with gaps. */
static etalon_tensor drawn_view(uint64_t *memory, etalon_dtype dtype, const int64_t *shape, uint64_t *seed)
{
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    etalon_tensor    t = etalon_tensor_dense(memory, dtype, 3, shape);
    const int       *order = orders[draw(seed) % 6];
    int64_t          stride = 1 + (int64_t)(draw(seed) % 2), start = 0;
    for (int i = 2; i >= 0; i--) {
        const bool backwards = draw(seed) % 2;
        t.stride[order[i]] = backwards ? -stride : stride;
        start += backwards ? (shape[order[i]] - 1) * stride : 0;
        stride *= shape[order[i]];
    }
    t.data = (char *)memory + start * (int64_t)etalon_dtype_bytes(dtype);
    return t;
}

START_TEST(agrees_with_the_plain_formulas)
{
    enum { MOST = 3 * 5 * 700 };
    static uint64_t left[2 * MOST], right[2 * MOST];
    uint64_t        seed = 1000 + (uint64_t)_i;
    const int64_t   shape[] = { 1 + (int64_t)(draw(&seed) % 3), 1 + (int64_t)(draw(&seed) % 5),
                                1 + (int64_t)(draw(&seed) % 700) };
    for (int i = 0; i < 2 * MOST; i++) {
        left[i] = drawn_bits(&seed);
        right[i] = draw(&seed) % 4 == 0 ? drawn_bits(&seed) : left[i];
    }
    const etalon_tensor a = drawn_view(left, number_formats[draw(&seed) % 4], shape, &seed);
    const etalon_tensor b = drawn_view(right, number_formats[draw(&seed) % 7], shape, &seed);
    const measure       m = compare(&a, &b, bound_by_index, NULL);

    long double xy = 0, xx = 0, yy = 0, dd = 0, sum = 0, squares = 0;
    double      max_abs = 0, max_ratio = 0;
    int64_t     compared = 0, over = 0, wanted = 0, nan = 0, unlike = 0;
    for (int64_t n = 0; n < shape[0] * shape[1] * shape[2]; n++) {
        const int64_t index[] = { n / (shape[1] * shape[2]), n / shape[2] % shape[1], n % shape[2], 0, 0 };
        const double  x = value_at(&a, index), y = value_at(&b, index), bound = bound_by_index(NULL, index);
        if (isfinite(y))
            sum += y, wanted++;
        if (isfinite(x) && isfinite(y)) {
            xy += (long double)x * y, xx += (long double)x * x, yy += (long double)y * y;
            dd += ((long double)x - y) * ((long double)x - y);
            max_abs = fmax(max_abs, fabs(x - y));
            max_ratio = fmax(max_ratio, fabs(x - y) / bound);
            over += fabs(x - y) > bound;
            compared++;
        }
        nan += isnan(x) != isnan(y);
        unlike += !(x == y || (isnan(x) && isnan(y)));
    }
    for (int64_t n = 0; n < shape[0] * shape[1] * shape[2]; n++) {
        const int64_t index[] = { n / (shape[1] * shape[2]), n / shape[2] % shape[1], n % shape[2], 0, 0 };
        const double  y = value_at(&b, index);
        if (isfinite(y))
            squares += (y - sum / wanted) * (y - sum / wanted);
    }
    /* Blocks of 512 are added plainly, 512 u each: relative where all terms are positive, and absolute for the cosine
     * (Cauchy-Schwarz); no measure here divides more than three such sums. */
    const double near = 4 * 512 * 0x1p-53;
    ck_assert_int_eq(m.elements, shape[0] * shape[1] * shape[2]);
    ck_assert_int_eq(m.compared, compared);
    ck_assert_int_eq(m.inf_mismatches, 0);
    ck_assert_int_eq(m.nan_mismatches, nan);
    ck_assert_int_eq(m.over_bound, over + nan);
    ck_assert_int_eq(m.has_worst, unlike > 0);
    ck_assert_double_eq(m.max_abs, max_abs);
    ck_assert_double_eq(m.max_bound_ratio, nan > 0 ? INFINITY : max_ratio);
    if (compared == 0 || xx == 0 || yy == 0)
        return;
    ck_assert_double_eq_tol(m.rms, (double)sqrtl(dd / compared), near * (double)sqrtl(dd / compared));
    ck_assert_double_eq_tol(m.cosine, (double)(xy / sqrtl(xx * yy)), near);
    ck_assert_double_eq_tol(m.calc_diff, (double)(1 - 2 * xy / (xx + yy)), near);
    if (squares > 0 && max_abs > 0)
        ck_assert_double_eq_tol(m.max_err_over_std, max_abs / (double)sqrtl(squares / wanted),
                                near * m.max_err_over_std);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, known_answers);
    tcase_add_loop_test(tcase, equal_tensors_have_no_error, 0, COUNT(number_formats));
    tcase_add_test(tcase, zeros);
    tcase_add_test(tcase, error_over_the_spread_of_a_constant);
    tcase_add_test(tcase, spread_is_that_of_all_finite_wanted_values);
    tcase_add_test(tcase, opposite_and_orthogonal);
    tcase_add_test(tcase, long_sums_stay_exact);
    tcase_add_test(tcase, calc_diff_does_not_cancel);
    tcase_add_loop_test(tcase, ulp_counts_values, 0, COUNT(narrow));
    tcase_add_loop_test(tcase, ulp_rounds_what_is_wanted, 0, COUNT(narrow));
    tcase_add_loop_test(tcase, ulp_beyond_the_largest, 0, COUNT(narrow));
    tcase_add_loop_test(tcase, ulp_table, 0, COUNT(ulps));
    tcase_add_loop_test(tcase, masks_and_poison, 0, COUNT(masks));
    tcase_add_test(tcase, computed_nan_is_not_poison);
    tcase_add_loop_test(tcase, fp8_poison_is_nan, 0, 4);
    tcase_add_test(tcase, poison_fills_what_the_view_covers);
    tcase_add_test(tcase, any_strides);
    tcase_add_test(tcase, stride_zero_is_a_broadcast);
    tcase_add_test(tcase, rank_zero);
    tcase_add_test(tcase, rank_five);
    tcase_add_loop_test(tcase, empty_tensors, 0, 4);
    tcase_add_test(tcase, refusals);
    tcase_add_test(tcase, bounds);
    tcase_add_test(tcase, negative_bound_is_never_met);
    tcase_add_test(tcase, mismatches_are_over_any_bound);
    tcase_add_test(tcase, worst_by_gravity);
    tcase_add_test(tcase, first_of_equals_is_the_worst);
    tcase_add_test(tcase, index_text);
    tcase_add_loop_test(tcase, agrees_with_the_plain_formulas, 0, 200);
}

int main(void)
{
    return testing_main("measure", fill);
}
