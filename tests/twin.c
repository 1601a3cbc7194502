#include "twin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double twin_gamma(double n)
{
    return n * TWIN_U / (1.0 - n * TWIN_U);
}

/* Of the docstrings: in eight partial sums or more, or in chunks of 32. */
static double longest_sum(int64_t products)
{
    return fmax(32.0, ceil((double)products / 8.0));
}

double twin_out_relative(double e)
{
    return 2.0 * e + twin_gamma(160);
}

double twin_lse_bound(double e, double lse)
{
    return e + twin_gamma(128) + TWIN_U * fabs(lse);
}

/* Formats
 * ------- */

/* sign (1), exponent, mantissa: a value is (1 + mantissa / 2^m) 2^(exponent - bias), or mantissa / 2^m 2^(1 - bias). */
typedef struct format {
    int    mantissa, bits, bias;
    double max;
} format;

static const format format_e4m3fn = { 3, 8, 7, 448.0 };
static const format format_e4m3fnuz = { 3, 8, 8, 240.0 };
static const format format_e5m2 = { 2, 8, 15, 57344.0 };
static const format format_f16 = { 10, 16, 15, 65504.0 };
static const format format_bf16 = { 7, 16, 127, 0x1.FEp127 };

static const format *format_of(etalon_dtype dtype)
{
    switch (dtype) {
    case ETALON_E4M3FN:
        return &format_e4m3fn;
    case ETALON_E4M3FNUZ:
        return &format_e4m3fnuz;
    case ETALON_E5M2:
        return &format_e5m2;
    case ETALON_F16:
        return &format_f16;
    case ETALON_BF16:
        return &format_bf16;
    default:
        return NULL;
    }
}

static double decode(unsigned code, const format *f)
{
    const unsigned sign = code >> (f->bits - 1) & 1;
    const int      exponent_bits = f->bits - 1 - f->mantissa;
    const int      exponent = (int)(code >> f->mantissa & ((1u << exponent_bits) - 1));
    const unsigned mantissa = code & ((1u << f->mantissa) - 1);
    const double   size = exponent == 0 ? ldexp(mantissa, 1 - f->bias - f->mantissa)
                                        : ldexp(mantissa + (1u << f->mantissa), exponent - f->bias - f->mantissa);
    return sign ? -size : size;
}

/* Codes without a finite value. */
static bool special(unsigned code, etalon_dtype dtype, double *x)
{
    switch (dtype) {
    case ETALON_E4M3FN:
        *x = NAN;
        return (code & 0x7F) == 0x7F;
    case ETALON_E4M3FNUZ:
        *x = NAN;
        return code == 0x80;
    default: { /* IEEE-like: the largest exponent is infinity, or NaN */
        const format  *f = format_of(dtype);
        const unsigned mantissa = code & ((1u << f->mantissa) - 1);
        const unsigned top = (1u << (f->bits - 1 - f->mantissa)) - 1;
        *x = mantissa != 0 ? (double)NAN : code >> (f->bits - 1) ? -(double)INFINITY : (double)INFINITY;
        return (code >> f->mantissa & top) == top;
    }
    }
}

double twin_load(const void *at, etalon_dtype dtype)
{
    switch (dtype) {
    case ETALON_F64: {
        double x;
        memcpy(&x, at, sizeof x);
        return x;
    }
    case ETALON_F32: {
        float x;
        memcpy(&x, at, sizeof x);
        return (double)x;
    }
    case ETALON_I32: {
        int32_t x;
        memcpy(&x, at, sizeof x);
        return x;
    }
    case ETALON_I64: {
        int64_t x;
        memcpy(&x, at, sizeof x);
        return (double)x;
    }
    default:
        break;
    }
    const format *f = format_of(dtype);
    if (f == NULL)
        return NAN;
    unsigned code = *(const uint8_t *)at;
    if (f->bits == 16) {
        uint16_t wide;
        memcpy(&wide, at, sizeof wide);
        code = wide;
    }
    double x;
    return special(code, dtype, &x) ? x : decode(code, f);
}

static int exponent_of(double size, const format *f)
{
    int exponent;
    frexp(size, &exponent);
    return size == 0.0 || exponent - 1 < 1 - f->bias ? 1 - f->bias : exponent - 1;
}

double twin_round(double x, etalon_dtype dtype)
{
    const format *f = format_of(dtype);
    if (x != x)
        return x;
    const double quantum = ldexp(1.0, exponent_of(fabs(x), f) - f->mantissa);
    const double size = isinf(x) ? INFINITY : nearbyint(fabs(x) / quantum) * quantum;
    return copysign(size > f->max ? f->max : size, x);
}

static unsigned encode(double x, etalon_dtype dtype)
{
    const format *f = format_of(dtype);
    if (x != x)
        return dtype == ETALON_E4M3FNUZ ? 0x80 : dtype == ETALON_E4M3FN ? 0x7F : f->bits == 8 ? 0x7E : 0x7FC0;
    const double   value = twin_round(x, dtype), size = fabs(value);
    const int      exponent = exponent_of(size, f);
    const unsigned steps = (unsigned)ldexp(size, f->mantissa - exponent); /* 2^mantissa and up where normal */
    const unsigned code = steps + ((unsigned)(exponent + f->bias - 1) << f->mantissa);
    const bool     negative = signbit(value) && !(dtype == ETALON_E4M3FNUZ && size == 0.0);
    return code | (unsigned)negative << (f->bits - 1);
}

void twin_store(void *at, etalon_dtype dtype, double x)
{
    switch (dtype) {
    case ETALON_F64:
        memcpy(at, &x, sizeof x);
        return;
    case ETALON_F32: {
        const float y = (float)x;
        memcpy(at, &y, sizeof y);
        return;
    }
    case ETALON_I32: {
        const int32_t y = (int32_t)x;
        memcpy(at, &y, sizeof y);
        return;
    }
    case ETALON_I64: {
        const int64_t y = (int64_t)x;
        memcpy(at, &y, sizeof y);
        return;
    }
    default:
        break;
    }
    const unsigned code = encode(x, dtype);
    const uint8_t  narrow = (uint8_t)code;
    const uint16_t wide = (uint16_t)code;
    if (format_of(dtype)->bits == 16)
        memcpy(at, &wide, sizeof wide);
    else
        memcpy(at, &narrow, sizeof narrow);
}

/* Views
 * ----- */

static double at1(const etalon_tensor *t, int64_t i)
{
    return twin_load((const char *)t->data + i * t->stride[0] * (int64_t)etalon_dtype_bytes(t->dtype), t->dtype);
}

static double at2(const etalon_tensor *t, int64_t i, int64_t j)
{
    return twin_load((const char *)t->data +
                         (i * t->stride[0] + j * t->stride[1]) * (int64_t)etalon_dtype_bytes(t->dtype),
                     t->dtype);
}

static double at3(const etalon_tensor *t, int64_t i, int64_t j, int64_t k)
{
    return twin_load((const char *)t->data + (i * t->stride[0] + j * t->stride[1] + k * t->stride[2]) *
                                                 (int64_t)etalon_dtype_bytes(t->dtype),
                     t->dtype);
}

static double descale_at(const etalon_tensor *t, int64_t b, int64_t head)
{
    if (t->data == NULL)
        return 1.0;
    return t->rank == 0 ? twin_load(t->data, t->dtype) : t->rank == 1 ? at1(t, 0) : at2(t, b, head);
}

static double *doubles(int64_t n)
{
    double *x = calloc(n > 0 ? (size_t)n : 1, sizeof *x);
    if (x == NULL)
        abort();
    return x;
}

/* Attention
 * --------- */

/* Both operations as one: who asks, and where row j of K and V stands. */
typedef struct attention {
    const etalon_tensor        *q, *k, *v;
    const etalon_tensor        *q_descale, *k_descale, *v_descale;
    const etalon_tensor        *block_tables; /* NULL: k and v are packed along the token axis */
    etalon_kv_layout            layout;
    double                      scale;
    bool                        causal;
    int64_t                     left, right;
    bool                        out_bf16;
    bool                        round_q;
    const etalon_model_options *model; /* NULL: P is not rounded */
} attention;

typedef struct sequence {
    int64_t b;
    int64_t q_first, q_rows; /* query tokens */
    int64_t k_first, k_rows; /* packed keys; k_first is 0 for a paged cache */
} sequence;

/* Element d of key (or value) j of a KV head. */
static double kv_at(const attention *a, const etalon_tensor *t, const sequence *s, int64_t j, int64_t head, int64_t d)
{
    if (a->block_tables == NULL)
        return at3(t, s->k_first + j, head, d);
    const bool    hnd = a->layout == ETALON_KV_HND;
    const int64_t page_size = t->shape[hnd ? 2 : 1];
    const int64_t page = (int64_t)at2(a->block_tables, s->b, j / page_size), slot = j % page_size;
    const int64_t offset =
        page * t->stride[0] + slot * t->stride[hnd ? 2 : 1] + head * t->stride[hnd ? 1 : 2] + d * t->stride[3];
    return twin_load((const char *)t->data + offset * (int64_t)etalon_dtype_bytes(t->dtype), t->dtype);
}

static bool visible(const attention *a, const sequence *s, int64_t i, int64_t j)
{
    const int64_t diagonal = i + s->k_rows - s->q_rows;
    if (a->causal && j > diagonal)
        return false;
    if (a->left >= 0 && j < diagonal - a->left)
        return false;
    return a->right < 0 || j <= diagonal + a->right;
}

/* Scratch for one query row. */
typedef struct row {
    const double *q, *k, *v; /* real values: [D], [keys, D], [keys, Dv] */
    double       *s;         /* scores; -inf where the key is not visible */
    double       *weight;    /* what multiplies v[j, :] */
    double       *spread;    /* how far fp32 may take that weight to either side */
    double       *loss;      /* how far the rounding of P may */
} row;

static double norm(const double *x, int64_t n)
{
    double sum = 0.0;
    for (int64_t d = 0; d < n; d++)
        sum += x[d] * x[d];
    return sqrt(sum);
}

/* The P^ of the header for one weight, w = lift * exp(s - m), as fp32 might see it: w (1 - delta) to w (1 + delta). */
typedef struct rounded {
    double low, middle, high;
} rounded;

static double round_to_terms(double w, int terms)
{
    const double first = twin_round(w, ETALON_E4M3FN);
    return terms == 2 ? first + twin_round(w - first, ETALON_E4M3FN) : first;
}

static rounded round_weight(double w, double delta, int terms)
{
    return (rounded){ round_to_terms(w * (1.0 - delta), terms), round_to_terms(w, terms),
                      round_to_terms(w * (1.0 + delta), terms) };
}

/* As round_weight after a division by the block's power of two, which fp32 might see one step off at its own
 * boundary. */
static rounded round_in_block(double w, double delta, double most, int terms)
{
    const double  low = ldexp(1.0, (int)ceil(log2(most * (1.0 - delta) / 448.0)));
    const double  middle = ldexp(1.0, (int)ceil(log2(most / 448.0)));
    const double  high = ldexp(1.0, (int)ceil(log2(most * (1.0 + delta) / 448.0)));
    const rounded a = round_weight(w / low, delta, terms), b = round_weight(w / middle, delta, terms),
                  c = round_weight(w / high, delta, terms);
    return (rounded){ fmin(a.low * low, c.low * high), b.middle * middle, fmax(a.high * low, c.high * high) };
}

static double largest(const double *x, int64_t from, int64_t to)
{
    double most = -INFINITY;
    for (int64_t j = from; j < to; j++)
        most = fmax(most, x[j]);
    return most;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Replaces the exact weights by the rounded ones. `e` bounds the error of one score.
 *
 * fp32 knows s - m to 2 e, its rounding adds u |s - m|, the exponential and the products around it a few u. */
static void round_weights(const etalon_model_options *model, const row *r, int64_t keys, double lse, double e)
{
    const int64_t tile_keys = model->tile_keys > 0 ? model->tile_keys : 128;
    const int     terms = model->p_terms == 2 ? 2 : 1;
    double        running = -INFINITY;
    for (int64_t from = 0; from < keys; from += tile_keys) {
        const int64_t to = min64(keys, from + tile_keys);
        const double  own = largest(r->s, from, to);
        running = fmax(running, own);
        if (own == -INFINITY)
            continue;
        const double m = model->p_scale == ETALON_P_SCALE_TILE ? own : running;
        const double back = exp(m - lse) / 256.0; /* from P^ back to a weight */
        for (int64_t j = from; j < to; j++) {
            if (r->s[j] == -INFINITY)
                continue;
            const double w = 256.0 * exp(r->s[j] - m);
            const double delta = 2.0 * e + twin_gamma(8) + TWIN_U * (m - r->s[j]);
            rounded      p;
            double       floor_ = 0x1p-10; /* half the quantum of E4M3FN below its smallest normal, 2^-6 */
            if (model->p_scale == ETALON_P_SCALE_BLOCK32) {
                const int64_t block = j - j % 32;
                const double  most = 256.0 * exp(largest(r->s, block, min64(to, block + 32)) - m);
                p = round_in_block(w, delta, most, terms);
                floor_ *= most / 224.0; /* X < 2 most / 448 */
            } else {
                p = round_weight(w, delta, terms);
            }
            r->loss[j] = fmax((terms == 2 ? 0x1p-8 : 0x1p-4) * r->weight[j], floor_ * back);
            r->weight[j] = p.middle * back;
            r->spread[j] = fmax(p.high - p.middle, p.middle - p.low) * back;
        }
    }
}

static void attend_row(const attention *a, const sequence *s, int64_t i, int64_t h, const row *r,
                       twin_attention *result)
{
    const int64_t keys = s->k_rows, dqk = a->q->shape[2], dv = result->dv, at = h * result->t + s->q_first + i;
    double        m = -INFINITY, sum = 0.0, k_norm = 0.0;
    for (int64_t j = 0; j < keys; j++) {
        r->s[j] = -INFINITY;
        if (!visible(a, s, i, j))
            continue;
        double dot = 0.0;
        for (int64_t d = 0; d < dqk; d++)
            dot += r->q[d] * r->k[j * dqk + d];
        r->s[j] = a->scale * dot;
        k_norm = fmax(k_norm, norm(r->k + j * dqk, dqk));
        m = r->s[j] > m || dot != dot ? r->s[j] : m; /* NaN stays */
    }
    double *out = result->out + ((s->q_first + i) * result->hq + h) * dv;
    if (m == -INFINITY) {
        result->lse[at] = -INFINITY;
        return; /* outputs and bounds are 0 */
    }
    for (int64_t j = 0; j < keys; j++)
        sum += r->s[j] == -INFINITY ? 0.0 : exp(r->s[j] - m);
    const double lse = m + log(sum);
    const double e = twin_gamma(longest_sum(dqk) + 16.0) * a->scale * norm(r->q, dqk) * k_norm;
    result->lse[at] = lse;
    result->lse_bound[at] = twin_lse_bound(e, lse);
    result->e[at] = e;
    for (int64_t j = 0; j < keys; j++) {
        r->weight[j] = r->s[j] == -INFINITY ? 0.0 : exp(r->s[j] - lse);
        r->spread[j] = r->loss[j] = 0.0;
    }
    const int64_t row_at = out - result->out;
    if (a->model != NULL) {
        for (int64_t j = 0; j < keys; j++)
            for (int64_t d = 0; d < dv && r->s[j] != -INFINITY; d++)
                result->unrounded[row_at + d] += r->weight[j] * r->v[j * dv + d];
        round_weights(a->model, r, keys, lse, e);
    }
    double *bound = result->out_bound + row_at;
    for (int64_t j = 0; j < keys; j++) {
        if (r->s[j] == -INFINITY)
            continue;
        for (int64_t d = 0; d < dv; d++) {
            const double v = r->v[j * dv + d];
            out[d] += r->weight[j] * v;
            bound[d] += (twin_out_relative(e) * (r->weight[j] + r->spread[j]) + r->spread[j]) * fabs(v);
            if (a->model != NULL)
                result->loss_bound[row_at + d] += r->loss[j] * fabs(v);
        }
    }
    for (int64_t d = 0; d < dv && a->out_bf16; d++)
        bound[d] += 0x1p-8 * fabs(out[d]);
}

/* Keys of one KV head in real values, then every row of every query head that reads it. */
static void attend_sequence(const attention *a, const sequence *s, twin_attention *result)
{
    const int64_t keys = s->k_rows, dqk = a->q->shape[2], dv = result->dv;
    const int64_t heads_kv = a->block_tables == NULL ? a->k->shape[1] : a->k->shape[a->layout == ETALON_KV_HND ? 1 : 2];
    const int64_t group = heads_kv > 0 ? result->hq / heads_kv : 0;
    double       *q = doubles(dqk), *k = doubles(keys * dqk), *v = doubles(keys * dv), *scratch = doubles(4 * keys);
    const row     r = { q, k, v, scratch, scratch + keys, scratch + 2 * keys, scratch + 3 * keys };
    for (int64_t kv = 0; kv < heads_kv; kv++) {
        const double k_descale = descale_at(a->k_descale, s->b, kv), v_descale = descale_at(a->v_descale, s->b, kv);
        for (int64_t j = 0; j < keys; j++) {
            for (int64_t d = 0; d < dqk; d++)
                k[j * dqk + d] = k_descale * kv_at(a, a->k, s, j, kv, d);
            for (int64_t d = 0; d < dv; d++)
                v[j * dv + d] = v_descale * kv_at(a, a->v, s, j, kv, d);
        }
        for (int64_t h = kv * group; h < (kv + 1) * group; h++)
            for (int64_t i = 0; i < s->q_rows; i++) {
                for (int64_t d = 0; d < dqk; d++) {
                    const double x = at3(a->q, s->q_first + i, h, d);
                    q[d] = descale_at(a->q_descale, s->b, kv) * (a->round_q ? twin_round(x, ETALON_E4M3FN) : x);
                }
                attend_row(a, s, i, h, &r, result);
            }
    }
    free(scratch);
    free(v);
    free(k);
    free(q);
}

static void result_make(const attention *a, const etalon_tensor *out, twin_attention *result)
{
    const int64_t rows = out->shape[0] * out->shape[1], cells = rows * out->shape[2];
    *result = (twin_attention){ .t = out->shape[0], .hq = out->shape[1], .dv = out->shape[2] };
    result->out = doubles(cells);
    result->out_bound = doubles(cells);
    result->lse = doubles(rows);
    result->lse_bound = doubles(rows);
    result->e = doubles(rows);
    if (a != NULL && a->model != NULL) {
        result->unrounded = doubles(cells);
        result->loss_bound = doubles(cells);
    }
}

void twin_attention_free(twin_attention *result)
{
    free(result->out);
    free(result->out_bound);
    free(result->lse);
    free(result->lse_bound);
    free(result->e);
    free(result->unrounded);
    free(result->loss_bound);
    *result = (twin_attention){ 0 };
}

static bool wide(const etalon_tensor *q)
{
    return q->dtype == ETALON_BF16 || q->dtype == ETALON_F32;
}

static void pa_mtp(const etalon_pa_mtp_args *args, bool model, twin_attention *result)
{
    const attention a = { .q = &args->q,
                          .k = &args->k_cache,
                          .v = &args->v_cache,
                          .q_descale = &args->q_descale,
                          .k_descale = &args->k_descale,
                          .v_descale = &args->v_descale,
                          .block_tables = &args->block_tables,
                          .layout = args->kv_layout,
                          .scale =
                              args->softmax_scale == 0.0 ? 1.0 / sqrt((double)args->q.shape[2]) : args->softmax_scale,
                          .causal = args->causal != 0,
                          .left = args->window_left,
                          .right = args->window_right,
                          .out_bf16 = args->out.dtype == ETALON_BF16,
                          .round_q = model && wide(&args->q),
                          .model = model ? &args->model : NULL };
    result_make(&a, &args->out, result);
    for (int64_t b = 0; b < args->seq_lens.shape[0]; b++) {
        const int64_t  first = (int64_t)at1(&args->cu_seqlens_q, b), last = (int64_t)at1(&args->cu_seqlens_q, b + 1);
        const sequence s = { b, first, last - first, 0, (int64_t)at1(&args->seq_lens, b) };
        attend_sequence(&a, &s, result);
    }
}

static void fmha_varlen(const etalon_fmha_varlen_args *args, bool model, twin_attention *result)
{
    const attention a = { .q = &args->q,
                          .k = &args->k,
                          .v = &args->v,
                          .q_descale = &args->q_descale,
                          .k_descale = &args->k_descale,
                          .v_descale = &args->v_descale,
                          .scale =
                              args->softmax_scale == 0.0 ? 1.0 / sqrt((double)args->q.shape[2]) : args->softmax_scale,
                          .causal = args->causal != 0,
                          .left = args->window_left,
                          .right = args->window_right,
                          .out_bf16 = args->out.dtype == ETALON_BF16,
                          .model = model ? &args->model : NULL };
    result_make(&a, &args->out, result);
    for (int64_t b = 0; b + 1 < args->cu_seqlens_q.shape[0]; b++) {
        const int64_t  q = (int64_t)at1(&args->cu_seqlens_q, b), k = (int64_t)at1(&args->cu_seqlens_k, b);
        const sequence s = { b, q, (int64_t)at1(&args->cu_seqlens_q, b + 1) - q, k,
                             (int64_t)at1(&args->cu_seqlens_k, b + 1) - k };
        attend_sequence(&a, &s, result);
    }
}

void twin_pa_mtp(const etalon_pa_mtp_args *args, twin_attention *result)
{
    pa_mtp(args, false, result);
}

void twin_pa_mtp_model(const etalon_pa_mtp_args *args, twin_attention *result)
{
    pa_mtp(args, true, result);
}

void twin_fmha_varlen(const etalon_fmha_varlen_args *args, twin_attention *result)
{
    fmha_varlen(args, false, result);
}

void twin_fmha_varlen_model(const etalon_fmha_varlen_args *args, twin_attention *result)
{
    fmha_varlen(args, true, result);
}

/* Indexer logits
 * -------------- */

/* One logit: q [H, D] of the row and k [D] in double, decoded once. */
static void logit(const double *q, const double *k, const double *weights, double scale, int64_t heads, int64_t dim,
                  double *value, double *bound)
{
    double sum = 0.0, size = 0.0;
    for (int64_t h = 0; h < heads; h++) {
        double dot = 0.0, q_squares = 0.0, k_squares = 0.0;
        for (int64_t d = 0; d < dim; d++) {
            const double x = q[h * dim + d], y = k[d];
            dot += x * y;
            q_squares += x * x;
            k_squares += y * y;
        }
        sum += weights[h] * (dot < 0.0 ? 0.0 : dot);
        size += fabs(weights[h]) * sqrt(q_squares) * sqrt(k_squares);
    }
    *value = scale * sum;
    *bound = twin_gamma(longest_sum(dim) + (double)heads + 16.0) * fabs(scale) * size;
}

/* The row's weights, in double. */
static void load_weights(const etalon_tensor *weights, int64_t m, double *to)
{
    for (int64_t h = 0; h < weights->shape[1]; h++)
        to[h] = at2(weights, m, h);
}

void twin_mqa_logits(const etalon_mqa_logits_args *args, twin_mqa_logits_result *result)
{
    const int64_t rows = args->q.shape[0], keys = args->k.shape[0], heads = args->q.shape[1], dim = args->q.shape[2];
    const int64_t columns = args->max_seqlen_k > 0 ? args->max_seqlen_k : keys;
    double       *q = doubles(rows * heads * dim), *k = doubles(keys * dim), *weights = doubles(heads);
    for (int64_t i = 0; i < rows * heads * dim; i++)
        q[i] = at3(&args->q, i / dim / heads, i / dim % heads, i % dim);
    for (int64_t i = 0; i < keys * dim; i++)
        k[i] = at2(&args->k, i / dim, i % dim);
    *result = (twin_mqa_logits_result){ rows, columns, doubles(rows * columns), doubles(rows * columns) };
    for (int64_t m = 0; m < rows; m++) {
        const double first = at1(&args->cu_seqlen_ks, m), last = at1(&args->cu_seqlen_ke, m);
        const double origin = args->max_seqlen_k > 0 ? fmin(fmax(first, 0.0), (double)keys) : 0.0;
        load_weights(&args->weights, m, weights);
        for (int64_t c = 0; c < columns; c++) {
            const int64_t n = c + (int64_t)origin;
            double       *at = result->logits + m * columns + c;
            if (n < keys && (double)n >= first && (double)n < last)
                logit(q + m * heads * dim, k + n * dim, weights, at1(&args->kv_scale, n), heads, dim, at,
                      result->bound + m * columns + c);
            else
                *at = args->clean_logits ? -(double)INFINITY : (double)NAN;
        }
    }
    free(weights);
    free(k);
    free(q);
}

/* Key n of sequence b, and its scale: byte by byte from the planar block. */
static double load_key(const etalon_mqa_logits_paged_args *args, int64_t b, int64_t n, double *k)
{
    const int64_t      size = args->kv_cache.shape[1], dim = args->q.shape[3], slot = n % size;
    const etalon_dtype dtype = args->kv_cache.dtype == ETALON_U8 ? args->q.dtype : args->kv_cache.dtype;
    const int64_t      block = (int64_t)at2(&args->block_tables, b, n / size);
    const char        *at = (const char *)args->kv_cache.data + block * args->kv_cache.stride[0];
    for (int64_t d = 0; d < dim; d++)
        k[d] = twin_load(at + slot * dim + d, dtype);
    return twin_load(at + size * dim + 4 * slot, ETALON_F32);
}

/* The view [next_n, H, D] of one sequence. */
static etalon_tensor sequence_q(const etalon_mqa_logits_paged_args *args, int64_t b)
{
    const etalon_tensor *q = &args->q;
    return (etalon_tensor){ .data = (char *)q->data + b * q->stride[0],
                            .dtype = q->dtype,
                            .rank = 3,
                            .shape = { q->shape[1], q->shape[2], q->shape[3] },
                            .stride = { q->stride[1], q->stride[2], q->stride[3] } };
}

void twin_mqa_logits_paged(const etalon_mqa_logits_paged_args *args, twin_mqa_logits_result *result)
{
    const int64_t next_n = args->q.shape[1], heads = args->q.shape[2], dim = args->q.shape[3];
    const int64_t rows = args->q.shape[0] * next_n, columns = args->logits.shape[1];
    const int64_t room = args->block_tables.shape[1] * args->kv_cache.shape[1];
    double       *q = doubles(heads * dim), *k = doubles(dim), *weights = doubles(heads);
    *result = (twin_mqa_logits_result){ rows, columns, doubles(rows * columns), doubles(rows * columns) };
    for (int64_t m = 0; m < rows; m++) {
        const etalon_tensor own = sequence_q(args, m / next_n);
        const double        last = at2(&args->context_lens, m / next_n, m % next_n);
        for (int64_t i = 0; i < heads * dim; i++)
            q[i] = at3(&own, m % next_n, i / dim, i % dim);
        load_weights(&args->weights, m, weights);
        for (int64_t n = 0; n < columns; n++) {
            double *at = result->logits + m * columns + n;
            if (n < room && (double)n < last) {
                const double scale = load_key(args, m / next_n, n, k);
                logit(q, k, weights, scale, heads, dim, at, result->bound + m * columns + n);
            } else {
                *at = args->clean_logits ? -(double)INFINITY : (double)NAN;
            }
        }
    }
    free(weights);
    free(k);
    free(q);
}

void twin_mqa_logits_free(twin_mqa_logits_result *result)
{
    free(result->logits);
    free(result->bound);
    *result = (twin_mqa_logits_result){ 0 };
}

/* Merge
 * ----- */

static double merge_lse(double a, double b)
{
    const double m = fmax(a, b);
    return a != a || b != b ? (double)NAN : m + log(exp(a - m) + exp(b - m));
}

static void merge_row(const etalon_merge_states_args *args, int64_t t, int64_t h, twin_attention *result)
{
    const double  a = at2(&args->lse_a, h, t), b = at2(&args->lse_b, h, t);
    const bool    empty_a = isinf(a), empty_b = isinf(b);
    const int64_t at = h * result->t + t;
    double       *out = result->out + (t * result->hq + h) * result->dv;
    double       *bound = result->out_bound + (t * result->hq + h) * result->dv;
    result->lse[at] = empty_a && empty_b ? -(double)INFINITY : empty_a ? b : empty_b ? a : merge_lse(a, b);
    result->lse_bound[at] = empty_a || empty_b ? 0.0 : 4.0 * TWIN_U + TWIN_U * fabs(result->lse[at]);
    for (int64_t d = 0; d < result->dv && !(empty_a && empty_b); d++) {
        const double x = empty_a ? 0.0 : at3(&args->out_a, t, h, d), y = empty_b ? 0.0 : at3(&args->out_b, t, h, d);
        const double w = 1.0 / (1.0 + exp(b - a));
        out[d] = empty_a ? y : empty_b ? x : w * x + (1.0 - w) * y;
        bound[d] = empty_a || empty_b ? 0.0 : (8.0 + 2.0 * fabs(a - b)) * TWIN_U * fmax(fabs(x), fabs(y));
        if (args->out.dtype == ETALON_BF16)
            bound[d] += 0x1p-8 * fabs(out[d]);
    }
}

void twin_merge_states(const etalon_merge_states_args *args, twin_attention *result)
{
    result_make(NULL, &args->out, result);
    for (int64_t t = 0; t < result->t; t++)
        for (int64_t h = 0; h < result->hq; h++)
            merge_row(args, t, h, result);
}
