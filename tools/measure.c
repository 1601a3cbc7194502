#include "measure.h"

#include "element.h"

#include <inttypes.h>
#include <stdio.h>

/* Elements that are decoded at a time: a few kilobytes of fp64, and sums short enough to be added plainly. */
enum { BLOCK = 512 };

/* A sum whose rounding errors are collected beside it (Neumaier), so that its length does not matter. */
typedef struct long_sum {
    double sum, rest;
} long_sum;

/* Count, mean and sum of squared distances from the mean. */
typedef struct spread {
    double count, mean, squares;
} spread;

/* How an element came out, by rising gravity. */
typedef enum verdict { MATCH, DIFFERENT, WRONG_INFINITY, WRONG_NAN, UNWRITTEN } verdict;

typedef struct comparison {
    const etalon_tensor *got, *want;
    measure_bound_fn    *bound;
    const void          *user;
    measure              m;
    verdict              gravest; /* verdict of m.worst */
    double               key;     /* what the worst element is the largest by, where it is finite */
    long_sum             xy, xx, yy, dd;
    spread               y;
} comparison;

static bool is_number_format(etalon_dtype dtype)
{
    enum { FLOATING, FP8, SCALE, INTEGER };
    switch (dtype) {
#define DTYPE(dtype, name, bytes, kind) \
    case dtype:                         \
        return kind == FLOATING || kind == FP8;
#include "dtype.def"
#undef DTYPE
    case ETALON_DTYPE_NONE:
        break;
    }
    return false;
}

/* Poison: signalling NaN where the dtype has one. */
static uint64_t poison_code(etalon_dtype dtype)
{
    switch (dtype) {
    case ETALON_F64:
        return 0x7FF5A5A5A5A5A5A5;
    case ETALON_F32:
        return 0x7FA5A5A5;
    case ETALON_F16:
        return 0x7DA5;
    case ETALON_BF16:
        return 0x7FA5;
    case ETALON_E4M3FN:
    case ETALON_E5M2:
        return 0x7F;
    case ETALON_E4M3FNUZ:
        return 0x80;
    default:
        return 0xFF; /* E8M0 */
    }
}

static bool holds_poison(const char *at, etalon_dtype dtype)
{
    const uint64_t poison = poison_code(dtype);
    const size_t   bytes = etalon_dtype_bytes(dtype);
    return bytes > 1 && memcmp(at, &poison, bytes) == 0; /* little endian, as the file formats are */
}

/* A magnitude in a binary format as its code, which rises by one from value to value. Rounds to nearest, ties to even,
 * in integers. `top` is the code of infinity, or of the largest value where there is none. */
static int64_t round_to_code(double magnitude, int mantissa, int bias, uint64_t top)
{
    uint64_t bits, code;
    memcpy(&bits, &magnitude, sizeof bits);
    if (bits < (uint64_t)(1023 + 1 - bias) << 52) { /* below the smallest normal: multiples of one quantum */
        const double quanta = ldexp(magnitude, bias - 1 + mantissa), rest = quanta - floor(quanta);
        code = (uint64_t)quanta;
        code += rest > 0.5 || (rest == 0.5 && (code & 1));
    } else {
        const int      drop = 52 - mantissa;
        const uint64_t half = ((uint64_t)1 << (drop - 1)) - 1 + (bits >> drop & 1);
        code = ((bits + half) >> drop) - ((uint64_t)(1023 - bias) << mantissa);
    }
    return (int64_t)(code < top ? code : top);
}

static int64_t magnitude_code(double magnitude, etalon_dtype dtype)
{
    int64_t code;
    switch (dtype) {
    case ETALON_F32:
        return round_to_code(magnitude, 23, 127, 0x7F800000);
    case ETALON_F16:
        return round_to_code(magnitude, 10, 15, 0x7C00);
    case ETALON_BF16:
        return round_to_code(magnitude, 7, 127, 0x7F80);
    case ETALON_E4M3FN:
        return round_to_code(magnitude, 3, 7, 0x7E);
    case ETALON_E4M3FNUZ:
        return round_to_code(magnitude, 3, 8, 0x7F);
    case ETALON_E5M2:
        return round_to_code(magnitude, 2, 15, 0x7C);
    default: /* F64 */
        memcpy(&code, &magnitude, sizeof code);
        return code;
    }
}

static int64_t ulp_distance(double x, double y, etalon_dtype dtype)
{
    if (!isfinite(x) || !isfinite(y))
        return INT64_MAX;
    const int64_t a = magnitude_code(fabs(x), dtype), b = magnitude_code(fabs(y), dtype);
    if (signbit(x) == signbit(y))
        return a > b ? a - b : b - a;
    return a > INT64_MAX - b ? INT64_MAX : a + b; /* F64 alone can get there */
}

static void long_sum_add(long_sum *s, double x)
{
    const double sum = s->sum + x;
    s->rest += fabs(s->sum) >= fabs(x) ? (s->sum - sum) + x : (x - sum) + s->sum;
    s->sum = sum;
}

static double long_sum_value(const long_sum *s)
{
    return s->sum + s->rest;
}

/* Of the finite values of a block; distances from the first one, so that a constant has no spread at all. */
static spread spread_of(const double *y, int64_t n)
{
    int64_t i = 0;
    while (i < n && !isfinite(y[i]))
        i++;
    if (i == n)
        return (spread){ 0, 0, 0 };
    const double origin = y[i];
    double       count = 0, sum = 0, squares = 0;
    for (int64_t k = i; k < n; k++) {
        count += isfinite(y[k]) ? 1 : 0;
        sum += isfinite(y[k]) ? y[k] - origin : 0;
    }
    const double mean = origin + sum / count;
    for (; i < n; i++)
        squares += isfinite(y[i]) ? (y[i] - mean) * (y[i] - mean) : 0;
    return (spread){ count, mean, squares };
}

/* The spread of both sets together (Chan, Golub and LeVeque). */
static spread spread_join(spread a, spread b)
{
    if (a.count == 0 || b.count == 0)
        return a.count == 0 ? b : a;
    const double count = a.count + b.count, apart = b.mean - a.mean;
    return (spread){ count, a.mean + apart * (b.count / count),
                     a.squares + b.squares + apart * apart * (a.count * b.count / count) };
}

/* n elements, `step` bytes apart. A case per dtype, so that the loops need not ask. */
static void load(double *row, const char *at, etalon_dtype dtype, int64_t step, int64_t n)
{
    switch (dtype) {
    case ETALON_F64: /* element_load would round it */
        for (int64_t i = 0; i < n; i++)
            row[i] = *(const double *)(at + i * step);
        return;
#define LOAD(dtype)                                      \
    case dtype:                                          \
        for (int64_t i = 0; i < n; i++)                  \
            row[i] = element_load(at + i * step, dtype); \
        return;
        LOAD(ETALON_F32)
        LOAD(ETALON_F16)
        LOAD(ETALON_BF16)
        LOAD(ETALON_E4M3FN)
        LOAD(ETALON_E4M3FNUZ)
        LOAD(ETALON_E5M2)
#undef LOAD
    default:
        return;
    }
}

static measure_element element(const comparison *c, const int64_t *index, double x, double y, double bound)
{
    measure_element e = { .got = x, .want = y, .bound = bound, .ulp = ulp_distance(x, y, c->got->dtype) };
    memcpy(e.index, index, sizeof e.index);
    return e;
}

/* Both finite and not equal. */
static void judge_difference(comparison *c, const int64_t *index, double x, double y)
{
    const double  apart = fabs(x - y);
    const double  bound = c->bound != NULL ? c->bound(c->user, index) : NAN;
    const double  ratio = c->bound == NULL ? 0.0 : bound > 0.0 ? apart / bound : INFINITY;
    const bool    over = c->bound != NULL && !(apart <= bound);
    const double  key = c->bound != NULL ? ratio : apart;
    const int64_t ulp = ulp_distance(x, y, c->got->dtype);
    c->m.max_abs = fmax(c->m.max_abs, apart);
    c->m.max_bound_ratio = fmax(c->m.max_bound_ratio, ratio);
    c->m.max_ulp = ulp > c->m.max_ulp ? ulp : c->m.max_ulp;
    c->m.over_bound += over;
    if (c->gravest == MATCH || (c->gravest == DIFFERENT && key > c->key)) {
        c->gravest = DIFFERENT;
        c->key = key;
        c->m.worst = element(c, index, x, y, bound);
    }
    if (over && !c->m.has_first) {
        c->m.has_first = true;
        c->m.first = element(c, index, x, y, bound);
    }
}

/* At least one side is not finite. */
static verdict verdict_on(double x, double y, bool x_poison, bool y_poison)
{
    if (x_poison != y_poison)
        return x_poison ? UNWRITTEN : WRONG_NAN;
    if (isnan(x) != isnan(y))
        return WRONG_NAN;
    return isnan(x) || x == y ? MATCH : WRONG_INFINITY;
}

static void judge_mismatch(comparison *c, const int64_t *index, double x, double y, verdict v)
{
    c->m.inf_mismatches += v == WRONG_INFINITY;
    c->m.nan_mismatches += v == WRONG_NAN;
    c->m.unwritten += v == UNWRITTEN;
    if (c->bound != NULL) {
        c->m.over_bound++;
        c->m.max_bound_ratio = INFINITY;
    }
    if (v <= c->gravest)
        return; /* so there was a mismatch before this one */
    c->gravest = v;
    c->m.worst = element(c, index, x, y, c->bound != NULL ? c->bound(c->user, index) : NAN);
    if (!c->m.has_first) {
        c->m.has_first = true;
        c->m.first = c->m.worst;
    }
}

/* n elements from index on, along the last dimension. `at` and `step`: of got and want, in bytes. */
static void compare_block(comparison *c, int64_t *index, const char *const at[2], const int64_t step[2], int64_t n)
{
    double  x[BLOCK], y[BLOCK], xy = 0, xx = 0, yy = 0, dd = 0;
    int64_t unused, *last = c->m.rank > 0 ? &index[c->m.rank - 1] : &unused;
    load(x, at[0], c->got->dtype, step[0], n);
    load(y, at[1], c->want->dtype, step[1], n);
    const int64_t base = c->m.rank > 0 ? *last : 0;
    for (int64_t i = 0; i < n; i++) {
        *last = base + i;
        if (isfinite(x[i]) && isfinite(y[i])) {
            xy += x[i] * y[i];
            xx += x[i] * x[i];
            yy += y[i] * y[i];
            dd += (x[i] - y[i]) * (x[i] - y[i]);
            c->m.compared++;
            if (x[i] != y[i])
                judge_difference(c, index, x[i], y[i]);
            continue;
        }
        const verdict v = verdict_on(x[i], y[i], holds_poison(at[0] + i * step[0], c->got->dtype),
                                     holds_poison(at[1] + i * step[1], c->want->dtype));
        if (v != MATCH)
            judge_mismatch(c, index, x[i], y[i], v);
    }
    *last = base;
    long_sum_add(&c->xy, xy);
    long_sum_add(&c->xx, xx);
    long_sum_add(&c->yy, yy);
    long_sum_add(&c->dd, dd);
    c->y = spread_join(c->y, spread_of(y, n));
    c->m.elements += n;
}

/* Where a row along the last dimension starts, how far apart its elements are (bytes), and how many there are. */
static char *row_at(const etalon_tensor *t, const int64_t *index)
{
    int64_t offset = 0;
    for (int32_t d = 0; d + 1 < t->rank; d++)
        offset += index[d] * t->stride[d];
    return (char *)t->data + offset * (int64_t)etalon_dtype_bytes(t->dtype);
}

static int64_t row_step(const etalon_tensor *t)
{
    return t->rank > 0 ? t->stride[t->rank - 1] * (int64_t)etalon_dtype_bytes(t->dtype) : 0;
}

static int64_t row_extent(const etalon_tensor *t)
{
    return t->rank > 0 ? t->shape[t->rank - 1] : 1;
}

/* Moves index to the next row; false after the last one. */
static bool next_row(const etalon_tensor *t, int64_t *index)
{
    for (int32_t d = t->rank - 2; d >= 0; d--) {
        if (++index[d] < t->shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static void compare_row(comparison *c, int64_t *index)
{
    const int64_t     n = row_extent(c->got);
    const int64_t     step[2] = { row_step(c->got), row_step(c->want) };
    const char *const row[2] = { row_at(c->got, index), row_at(c->want, index) };
    for (int64_t i = 0; i < n; i += BLOCK) {
        const char *const at[2] = { row[0] + i * step[0], row[1] + i * step[1] };
        if (c->m.rank > 0)
            index[c->m.rank - 1] = i;
        compare_block(c, index, at, step, n - i < BLOCK ? n - i : BLOCK);
    }
}

static void finish(comparison *c)
{
    const double xy = long_sum_value(&c->xy), xx = long_sum_value(&c->xx), yy = long_sum_value(&c->yy);
    const double dd = long_sum_value(&c->dd), std = c->y.count > 0 ? sqrt(c->y.squares / c->y.count) : 0;
    c->m.has_worst = c->gravest != MATCH;
    c->m.rms = c->m.compared > 0 ? sqrt(dd / (double)c->m.compared) : 0;
    c->m.max_err_over_std = c->m.max_abs == 0 ? 0 : c->m.max_abs / std;
    c->m.cosine = xx == 0 || yy == 0 ? (xx == yy ? 1.0 : 0.0) : fmin(fmax(xy / yy / sqrt(xx / yy), -1.0), 1.0);
    c->m.calc_diff = dd == 0 ? 0 : dd / (xx + yy); /* its definition without the cancellation */
}

static bool same_shape(const etalon_tensor *a, const etalon_tensor *b)
{
    if (a->rank != b->rank || a->rank < 0 || a->rank > ETALON_MAX_RANK)
        return false;
    for (int32_t d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d])
            return false;
    return true;
}

static bool has_elements(const etalon_tensor *t)
{
    for (int32_t d = 0; d < t->rank; d++)
        if (t->shape[d] <= 0)
            return false;
    return true;
}

bool measure_compare(const etalon_tensor *got, const etalon_tensor *want, measure_bound_fn *bound, const void *user,
                     measure *result)
{
    if (!same_shape(got, want) || !is_number_format(got->dtype) || !is_number_format(want->dtype))
        return false;
    comparison c = { .got = got, .want = want, .bound = bound, .user = user, .m.rank = got->rank };
    int64_t    index[ETALON_MAX_RANK] = { 0 };
    if (has_elements(got)) {
        do
            compare_row(&c, index);
        while (next_row(got, index));
    }
    finish(&c);
    *result = c.m;
    return true;
}

static bool is_integer(etalon_dtype dtype)
{
    return dtype == ETALON_I64 || dtype == ETALON_I32 || dtype == ETALON_U8;
}

void measure_poison(const etalon_tensor *t)
{
    const uint64_t poison = poison_code(t->dtype);
    const size_t   bytes = etalon_dtype_bytes(t->dtype);
    int64_t        index[ETALON_MAX_RANK] = { 0 };
    if (is_integer(t->dtype) || !has_elements(t))
        return;
    do {
        char *row = row_at(t, index);
        for (int64_t i = 0; i < row_extent(t); i++)
            memcpy(row + i * row_step(t), &poison, bytes);
    } while (next_row(t, index));
}

void measure_index_text(const measure_element *e, int64_t rank, char *text, size_t bytes)
{
    char   whole[ETALON_MAX_RANK * 22 + 3] = "["; /* 20 characters hold any int64_t; two more part them */
    size_t used = 1;
    for (int64_t d = 0; d < rank && d < ETALON_MAX_RANK; d++)
        used += (size_t)snprintf(whole + used, sizeof whole - used, "%s%" PRId64, d > 0 ? ", " : "", e->index[d]);
    snprintf(text, bytes, "%s]", whole);
}

bool measure_ok(const measure *m)
{
    return m->inf_mismatches == 0 && m->nan_mismatches == 0 && m->unwritten == 0 && m->over_bound == 0;
}
