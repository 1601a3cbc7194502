#include "bound.h"

#include "element.h"
#include "logits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNIT 0x1p-24            /* half the distance of fp32 numbers, relative */
#define P_ROUNDING 0x1p-4       /* E4M3FN: three mantissa bits */
#define P_FLOOR (128 * 0x1p-18) /* a tile of 128 weights that each lose half a quantum, 2^-10 of a maximum of 2^8 */
#define TOP_SHARPNESS 0x1p14    /* exp(-2^14 x) is nothing for a score that is 2^-10 below the largest */
#define TOP_ROUNDING 0x1p-10    /* what such a score leaves of the largest weight's exactness */
#define OUT_ROUNDING 0x1p-8     /* as the docstrings say for BF16 */
#define SCORE_ERROR_MAX 0x1p-6
#define LSE_FP8 1e-3
#define MQA_FP8 0x1p-11
#define MQA_CALC_DIFF 5e-6

double bound_gamma(int64_t n)
{
    const double nu = (double)n * UNIT;
    return nu / (1.0 - nu);
}

/* Views
 * -----
 */
static const char *element(const etalon_tensor *t, const int64_t *index)
{
    int64_t offset = 0;
    for (int32_t d = 0; d < t->rank; d++)
        offset += index[d] * t->stride[d];
    return (const char *)t->data + offset * (int64_t)etalon_dtype_bytes(t->dtype);
}

static double value(const etalon_tensor *t, const int64_t *index)
{
    return (double)element_load(element(t, index), t->dtype);
}

static double value2(const etalon_tensor *t, int64_t i, int64_t j)
{
    return value(t, (const int64_t[]){ i, j });
}

static double norm(const char *row, etalon_dtype dtype, int64_t stride, int64_t n)
{
    float  x[ETALON_MAX_HEAD_DIM];
    double sum = 0.0;
    element_load_row(x, row, dtype, stride, n);
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static void *zeros(int64_t count, size_t size, tensorfile_error *error)
{
    void *data = calloc(count > 0 ? (size_t)count : 1, size);
    if (data == NULL)
        oracle_fail(error, "bound: %lld elements of memory cannot be had", (long long)count);
    return data;
}

/* Attention
 * ---------
 * What pa_mtp and fmha_varlen share, and where a key lies in each.
 */
typedef struct attention {
    const etalon_pa_mtp_args *paged; /* NULL: packed */
    etalon_tensor             q, k, v, q_descale, k_descale, v_descale, cu_q, lengths;
    int64_t                   batch, tokens, heads, kv_heads, dqk, dv;
    double                    scale;
} attention;

static attention attention_of(const oracle_problem *problem)
{
    attention a = { 0 };
    if (problem->op->id == ORACLE_PA_MTP) {
        const etalon_pa_mtp_args *p = &problem->args.pa_mtp;
        a = (attention){ .paged = p,
                         .q = p->q,
                         .k = p->k_cache,
                         .v = p->v_cache,
                         .q_descale = p->q_descale,
                         .k_descale = p->k_descale,
                         .v_descale = p->v_descale,
                         .cu_q = p->cu_seqlens_q,
                         .lengths = p->seq_lens,
                         .scale = p->softmax_scale };
        a.kv_heads = p->k_cache.shape[p->kv_layout == ETALON_KV_NHD ? 2 : 1];
    } else {
        const etalon_fmha_varlen_args *p = &problem->args.fmha_varlen;
        a = (attention){ .q = p->q,
                         .k = p->k,
                         .v = p->v,
                         .q_descale = p->q_descale,
                         .k_descale = p->k_descale,
                         .v_descale = p->v_descale,
                         .cu_q = p->cu_seqlens_q,
                         .lengths = p->cu_seqlens_k,
                         .scale = p->softmax_scale };
        a.kv_heads = p->k.shape[1];
    }
    a.batch = a.cu_q.shape[0] - 1;
    a.tokens = a.q.shape[0];
    a.heads = a.q.shape[1];
    a.dqk = a.q.shape[2];
    a.dv = a.v.shape[a.v.rank - 1];
    if (a.scale == 0.0)
        a.scale = 1.0 / sqrt((double)a.dqk);
    return a;
}

static int64_t key_count(const attention *a, int64_t b)
{
    if (a->paged != NULL)
        return oracle_index(&a->lengths, b);
    return oracle_index(&a->lengths, b + 1) - oracle_index(&a->lengths, b);
}

/* Row of key j of sequence b in K or V. */
static const char *key_row(const attention *a, const etalon_tensor *t, int64_t b, int64_t j, int64_t head)
{
    if (a->paged == NULL)
        return element(t, (const int64_t[]){ oracle_index(&a->lengths, b) + j, head, 0 });
    const bool           nhd = a->paged->kv_layout == ETALON_KV_NHD;
    const int64_t        page_size = t->shape[nhd ? 1 : 2];
    const etalon_tensor *table = &a->paged->block_tables;
    const int64_t        page = *(const int32_t *)element(table, (const int64_t[]){ b, j / page_size });
    const int64_t        slot = j % page_size;
    return element(t, nhd ? (const int64_t[]){ page, slot, head, 0 } : (const int64_t[]){ page, head, slot, 0 });
}

/* (), (1) or (B, Hkv); absent is 1. */
static double descale(const etalon_tensor *t, int64_t b, int64_t head)
{
    if (t->data == NULL)
        return 1.0;
    return value(t, t->rank == 2 ? (const int64_t[]){ b, head } : (const int64_t[]){ 0, 0 });
}

/* max_j |k[j, :]|, real values; NaN counts for nothing. */
static double key_norm_max(const attention *a, int64_t b, int64_t head)
{
    double        most = 0.0;
    const int64_t keys = key_count(a, b);
    for (int64_t j = 0; j < keys; j++)
        most = fmax(most, norm(key_row(a, &a->k, b, j, head), a->k.dtype, a->k.stride[a->k.rank - 1], a->dqk));
    return most * descale(&a->k_descale, b, head);
}

/* most[d] = max_j |v[j, d]|, real values; NaN counts for nothing. */
static void value_max(const attention *a, int64_t b, int64_t head, double *most)
{
    float         row[ETALON_MAX_HEAD_DIM];
    const int64_t keys = key_count(a, b);
    const double  scale = descale(&a->v_descale, b, head);
    for (int64_t j = 0; j < keys; j++) {
        element_load_row(row, key_row(a, &a->v, b, j, head), a->v.dtype, a->v.stride[a->v.rank - 1], a->dv);
        for (int64_t d = 0; d < a->dv; d++)
            most[d] = fmax(most[d], fabs((double)row[d]) * scale);
    }
}

static bool empty_row(double lse)
{
    return lse == -INFINITY;
}

/* max(32, ceil(n / 8)): the longest partial sum of a dot product. */
static int64_t longest_sum(int64_t n)
{
    const int64_t eighth = n / 8 + (n % 8 != 0);
    return eighth > 32 ? eighth : 32;
}

/* e = gamma(max(32, ceil(Dqk / 8)) + 16) * softmax_scale * |q| * max |k| for the rows of one sequence and KV head. */
static void score_errors(bound *b, const attention *a, int64_t sequence, int64_t kv_head)
{
    const double  k_max = key_norm_max(a, sequence, kv_head);
    const int64_t group = a->heads / a->kv_heads;
    const double  q_scale = descale(&a->q_descale, sequence, kv_head);
    for (int64_t t = oracle_index(&a->cu_q, sequence); t < oracle_index(&a->cu_q, sequence + 1); t++)
        for (int64_t h = kv_head * group; h < (kv_head + 1) * group; h++) {
            const double q = norm(element(&a->q, (const int64_t[]){ t, h, 0 }), a->q.dtype, a->q.stride[2], a->dqk);
            b->sequence[t] = sequence;
            if (!empty_row(value2(&b->magnitude.tensor[1], h, t)))
                b->e[t * a->heads + h] = bound_gamma(longest_sum(a->dqk) + 16) * a->scale * q_scale * q * k_max;
        }
}

/* A copy of V without signs. NaN stays NaN: E4M3FNUZ has it where negative zero would be. */
static bool magnitudes(const etalon_tensor *t, etalon_tensor *copy, tensorfile_error *error)
{
    if (!oracle_allocate("|v|", t->dtype, t->rank, t->shape, copy, error))
        return false;
    const size_t  bytes = etalon_dtype_bytes(t->dtype);
    const int64_t n = oracle_elements(copy);
    int64_t       index[ETALON_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++) {
        unsigned char *to = (unsigned char *)copy->data + (size_t)i * bytes;
        memcpy(to, element(t, index), bytes);
        if (!(t->dtype == ETALON_E4M3FNUZ && *to == 0x80))
            to[bytes - 1] &= 0x7F;
        for (int32_t d = t->rank - 1; d >= 0 && ++index[d] == t->shape[d]; d--)
            index[d] = 0;
    }
    return true;
}

static void set_values(oracle_problem *problem, const etalon_tensor *v)
{
    if (problem->op->id == ORACLE_PA_MTP)
        problem->args.pa_mtp.v_cache = *v;
    else
        problem->args.fmha_varlen.v = *v;
}

static void set_scale(oracle_problem *problem, double scale)
{
    if (problem->op->id == ORACLE_PA_MTP)
        problem->args.pa_mtp.softmax_scale = scale;
    else
        problem->args.fmha_varlen.softmax_scale = scale;
}

static const double *v_max_of(const bound *b, int64_t t, int64_t h)
{
    const int64_t kv_head = h / (b->heads / b->kv_heads);
    return b->v_max + (b->sequence[t] * b->kv_heads + kv_head) * b->dv;
}

/* The row's largest weight p, and sum_d max_j |v[j, d]| (sum_j p[j]^2 |v[j, d]| - what the largest weight adds). */
static void row_weights(bound *b, const oracle_result *twice, int64_t t, int64_t h)
{
    const double lse = value2(&b->magnitude.tensor[1], h, t), lse2 = value2(&twice->tensor[1], h, t);
    if (empty_row(lse))
        return;
    const int64_t row = t * b->heads + h;
    const double  p = exp(value2(&b->top.tensor[1], h, t) / TOP_SHARPNESS - lse), squares = exp(lse2 - 2.0 * lse);
    const double *v_max = v_max_of(b, t, h);
    b->p_top[row] = p;
    for (int64_t d = 0; d < b->dv; d++) {
        const int64_t at[] = { t, h, d };
        const double  rest = squares * value(&twice->tensor[0], at) - p * p * fabs(value(&b->top.tensor[0], at));
        b->spread[row] += v_max[d] * fmax(rest, 0.0);
    }
}

static bool prepare_weights(const etalon_context *ctx, oracle_problem *absolute, double scale, bound *b,
                            tensorfile_error *error)
{
    oracle_problem sharp = *b->problem;
    oracle_result  twice;
    oracle_want_f32(&sharp);
    set_scale(absolute, 2.0 * scale);
    set_scale(&sharp, TOP_SHARPNESS * scale);
    b->spread = zeros(b->tokens * b->heads, sizeof *b->spread, error);
    b->p_top = zeros(b->tokens * b->heads, sizeof *b->p_top, error);
    const bool ok = oracle_run(ctx, absolute, NULL, &twice, error) && oracle_run(ctx, &sharp, NULL, &b->top, error) &&
                    b->spread != NULL && b->p_top != NULL;
    for (int64_t i = 0; ok && i < b->tokens * b->heads; i++)
        row_weights(b, &twice, i / b->heads, i % b->heads);
    oracle_result_free(&twice);
    return ok;
}

static bool prepare_rows(const attention *a, bound *b, tensorfile_error *error)
{
    b->tokens = a->tokens;
    b->heads = a->heads;
    b->kv_heads = a->kv_heads;
    b->dv = a->dv;
    b->sequence = zeros(a->tokens, sizeof *b->sequence, error);
    b->e = zeros(a->tokens * a->heads, sizeof *b->e, error);
    b->v_max = zeros(a->batch * a->kv_heads * a->dv, sizeof *b->v_max, error);
    if (b->sequence == NULL || b->e == NULL || b->v_max == NULL)
        return false;
    for (int64_t s = 0; s < a->batch; s++)
        for (int64_t g = 0; g < a->kv_heads; g++) {
            score_errors(b, a, s, g);
            value_max(a, s, g, b->v_max + (s * a->kv_heads + g) * a->dv);
        }
    return true;
}

static bool prepare_attention(const etalon_context *ctx, bound_class class, bound *b, tensorfile_error *error)
{
    oracle_problem       absolute = *b->problem;
    etalon_tensor        v = { 0 };
    const etalon_tensor *values =
        b->problem->op->id == ORACLE_PA_MTP ? &b->problem->args.pa_mtp.v_cache : &b->problem->args.fmha_varlen.v;
    oracle_want_f32(&absolute);
    bool ok = magnitudes(values, &v, error);
    if (ok) {
        set_values(&absolute, &v);
        ok = oracle_run(ctx, &absolute, NULL, &b->magnitude, error); /* all checks pass before anything is read */
    }
    if (ok) {
        const attention a = attention_of(b->problem);
        ok = prepare_rows(&a, b, error) && (class == BOUND_FP32 || prepare_weights(ctx, &absolute, a.scale, b, error));
    }
    free(v.data);
    return ok;
}

/* Indexer logits
 * --------------
 */
static double row_weight(const oracle_problem *problem, int64_t m)
{
    const etalon_tensor q = logits_query(problem, m);
    double              sum = 0.0;
    for (int64_t h = 0; h < q.shape[0]; h++)
        sum += fabs(value2(logits_weights(problem), m, h)) *
               norm(element(&q, (const int64_t[]){ h, 0 }), q.dtype, q.stride[1], q.shape[1]);
    return sum;
}

/* Of the columns [first, last) of row m. */
static void fill_key_norms(bound *b, int64_t m, int64_t first, int64_t last)
{
    for (int64_t n = first; n < last; n++) {
        float               scale;
        const etalon_tensor k = logits_key(b->problem, m, n, &scale);
        b->k_norm[b->k_first[m] + n] = fabs((double)scale) * norm(k.data, k.dtype, k.stride[0], k.shape[0]);
    }
}

/* Rows of a sequence share its keys; without pages, all rows share them. */
static bool prepare_logits(bound *b, tensorfile_error *error)
{
    const bool    paged = b->problem->op->id == ORACLE_MQA_LOGITS_PAGED;
    const int64_t next_n = paged ? b->problem->args.mqa_logits_paged.q.shape[1] : 1;
    int64_t       shape[3];
    oracle_output_shape(b->problem, 0, shape);
    const int64_t rows = shape[0], keys = paged ? shape[1] : b->problem->args.mqa_logits.k.shape[0];
    b->q_weight = zeros(rows, sizeof *b->q_weight, error);
    b->k_norm = zeros((paged ? rows / next_n : 1) * keys, sizeof *b->k_norm, error);
    b->k_first = zeros(rows, sizeof *b->k_first, error);
    b->window = zeros(2 * rows, sizeof *b->window, error);
    if (b->q_weight == NULL || b->k_norm == NULL || b->k_first == NULL || b->window == NULL)
        return false;
    for (int64_t m = 0, done = 0; m < rows; m++) {
        const logits_window see = logits_window_of(b->problem, m);
        b->q_weight[m] = row_weight(b->problem, m);
        b->k_first[m] = paged ? m / next_n * keys : logits_origin(b->problem, m);
        b->window[2 * m] = see.first;
        b->window[2 * m + 1] = see.last;
        done = paged && m % next_n == 0 ? 0 : done;
        if (paged) {
            fill_key_norms(b, m, done, see.last);
            done = see.last > done ? see.last : done;
        } else if (m == 0) {
            fill_key_norms(b, 0, -b->k_first[0], keys - b->k_first[0]);
        }
    }
    return true;
}

static bool visible(const bound *b, int64_t m, int64_t n)
{
    return b->window[2 * m] <= n && n < b->window[2 * m + 1];
}

bound_class bound_class_of(const char *kernel)
{
    static const char suffix[] = "_model";
    const size_t      length = strlen(kernel), tail = sizeof suffix - 1;
    const bool        model = length > tail && strcmp(kernel + length - tail, suffix) == 0;
    return model || strstr(kernel, "_e4m3_") != NULL ? BOUND_FP8 : BOUND_FP32;
}

/* Elements
 * --------
 */
static double lse_bound(const bound *b, bound_class class, const int64_t *index, double want)
{
    const double e = b->e[index[1] * b->heads + index[0]];
    const double fp32 = e + bound_gamma(128) + UNIT * fabs(want);
    return class == BOUND_FP32 ? fp32 : fmax(fp32, LSE_FP8);
}

/* 2 e + gamma(160): the relative error of a weight and of the sum over the keys. */
static double weight_error(double e)
{
    return 2.0 * e + bound_gamma(160);
}

static double attention_bound(const bound *b, bound_class class, const int64_t *index)
{
    const int64_t row = index[0] * b->heads + index[1];
    const double  e = b->e[row], a = value(&b->magnitude.tensor[0], index);
    const double  v_max = v_max_of(b, index[0], index[1])[index[2]];
    if (e > SCORE_ERROR_MAX)
        return 2.0 * v_max;
    if (class == BOUND_FP32)
        return weight_error(e) * a;
    const double top = b->p_top[row] * fabs(value(&b->top.tensor[0], index));
    return P_ROUNDING * fmax(a - top, 0.0) + TOP_ROUNDING * top + P_FLOOR * v_max + weight_error(e) * a;
}

static double logits_bound(const bound *b, bound_class class, const int64_t *index)
{
    const etalon_tensor q = logits_query(b->problem, 0);
    const double relative = class == BOUND_FP8 ? MQA_FP8 : bound_gamma(longest_sum(q.shape[1]) + q.shape[0] + 16);
    if (!visible(b, index[0], index[1]))
        return 0.0;
    return relative * b->q_weight[index[0]] * b->k_norm[b->k_first[index[0]] + index[1]];
}

static bool neutral(double lse)
{
    return isinf(lse);
}

/* (8 + 2 |lse_a - lse_b|) u max(|out_a|, |out_b|); one side empty: the other one, as it is. */
static double merge_bound(const bound *b, const int64_t *index)
{
    const etalon_merge_states_args *p = &b->problem->args.merge_states;
    const double lse_a = value2(&p->lse_a, index[1], index[0]), lse_b = value2(&p->lse_b, index[1], index[0]);
    if (neutral(lse_a) || neutral(lse_b))
        return 0.0;
    return (8.0 + 2.0 * fabs(lse_a - lse_b)) * UNIT *
           fmax(fabs(value(&p->out_a, index)), fabs(value(&p->out_b, index)));
}

static bool is_short(etalon_dtype dtype)
{
    return dtype != ETALON_F32 && dtype != ETALON_F64;
}

double bound_element(const bound *b, bound_class class, int output, etalon_dtype got_dtype, const int64_t *index,
                     double want)
{
    const oracle_id id = b->problem->op->id;
    const bool      attends = id == ORACLE_PA_MTP || id == ORACLE_FMHA_VARLEN;
    const bool      rounded = is_short(got_dtype) || (attends && output == 0 && class == BOUND_FP8);
    const double    rounding = rounded ? OUT_ROUNDING * fabs(want) : 0.0;
    if (logits_are_of(b->problem->op))
        return logits_bound(b, class, index) + rounding;
    if (id == ORACLE_MERGE_STATES)
        return (output == 0 ? merge_bound(b, index) : 4.0 * UNIT + UNIT * fabs(want)) + rounding;
    return (output == 0 ? attention_bound(b, class, index) : lse_bound(b, class, index, want)) + rounding;
}

/* Judgement
 * ---------
 */
typedef struct judged {
    const bound *b;
    bound_class class;
    int                  output;
    etalon_dtype         got_dtype;
    const etalon_tensor *want;
} judged;

static double element_bound(const void *user, const int64_t *index)
{
    const judged *j = user;
    return bound_element(j->b, j->class, j->output, j->got_dtype, index, value(j->want, index));
}

/* Norms over a row: of the fp32 bound, of max |v|, of got - want, of want, of what the largest weight adds to it, and
 * of what all others do. */
typedef struct row_norms {
    double arithmetic, v_max, error, want, top, rest;
} row_norms;

static row_norms row_norms_of(const bound *b, const etalon_tensor *got, const etalon_tensor *want, int64_t t, int64_t h)
{
    row_norms     sum = { 0 };
    const double  relative = weight_error(b->e[t * b->heads + h]), p_top = b->p_top[t * b->heads + h];
    const double *v_max = v_max_of(b, t, h);
    for (int64_t d = 0; d < b->dv; d++) {
        const int64_t at[] = { t, h, d };
        const double  x = value(got, at), y = value(want, at), a = relative * value(&b->magnitude.tensor[0], at);
        const double  top = p_top * value(&b->top.tensor[0], at);
        sum.arithmetic += a * a;
        sum.v_max += v_max[d] * v_max[d];
        sum.error += (x - y) * (x - y);
        sum.want += y * y;
        sum.top += top * top;
        sum.rest += (y - top) * (y - top);
    }
    return (row_norms){ sqrt(sum.arithmetic), sqrt(sum.v_max), sqrt(sum.error),
                        sqrt(sum.want),       sqrt(sum.top),   sqrt(sum.rest) };
}

static void judge_row(const bound *b, const etalon_tensor *got, const etalon_tensor *want, int64_t t, int64_t h,
                      verdict *v)
{
    const row_norms n = row_norms_of(b, got, want, t, h);
    const double    independent = 4.0 * P_ROUNDING / sqrt(3.0) * sqrt(b->spread[t * b->heads + h]);
    const double    limit = P_ROUNDING * n.rest + independent + TOP_ROUNDING * n.top + P_FLOOR * n.v_max +
                            OUT_ROUNDING * n.want + n.arithmetic;
    if (!isfinite(n.error) || !isfinite(n.want)) /* NaN and infinity are judged element by element */
        return;
    const double ratio = n.error == 0.0 ? 0.0 : n.error / limit;
    v->rows_over += !(ratio <= 1.0);
    if (ratio <= v->row_ratio)
        return;
    v->row_ratio = ratio;
    v->row[0] = t;
    v->row[1] = h;
    v->row_error = n.error;
    v->row_bound = limit;
    v->row_norm = n.want;
}

static void judge_rows(const bound *b, bound_class class, const etalon_tensor *got, const etalon_tensor *want,
                       verdict *v)
{
    for (int64_t t = 0; t < b->tokens; t++)
        for (int64_t h = 0; h < b->heads; h++) {
            if (b->e[t * b->heads + h] > SCORE_ERROR_MAX)
                v->unbounded_rows++;
            else if (class == BOUND_FP8)
                judge_row(b, got, want, t, h, v);
        }
}

static bool still_poisoned(const etalon_tensor *t, const int64_t *index)
{
    char          mark[8];
    etalon_tensor one = etalon_tensor_dense(mark, t->dtype, 0, NULL);
    measure_poison(&one);
    return memcmp(element(t, index), mark, etalon_dtype_bytes(t->dtype)) == 0;
}

/* F32 copies of both sides of the logits in which elements that nothing specifies read -inf. */
static void specify(const bound *b, bound_class class, const etalon_tensor *got, const etalon_tensor *want,
                    bool poisoned, float *x, float *y, verdict *v)
{
    const bool clean = logits_are_clean(b->problem);
    for (int64_t m = 0; m < want->shape[0]; m++)
        for (int64_t n = 0; n < want->shape[1]; n++, x++, y++) {
            const int64_t index[] = { m, n };
            const bool    inside = visible(b, m, n);
            *x = element_load(element(got, index), got->dtype); /* and not through fp64: poison must keep its bits */
            *y = element_load(element(want, index), want->dtype);
            if (!inside && !clean && poisoned)
                v->overwritten += !still_poisoned(got, index);
            if ((!inside && !clean) || (inside && class == BOUND_FP8 && isnan(*y)))
                *x = *y = -INFINITY;
        }
}

/* Whether some elements of the logits are not to be compared. */
static bool leaves_open(const bound *b, bound_class class)
{
    return logits_are_of(b->problem->op) && (class == BOUND_FP8 || !logits_are_clean(b->problem));
}

static bool same_shape(const etalon_tensor *a, const etalon_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

static bool compare(judged *j, const etalon_tensor *got, const etalon_tensor *want, measure *m, tensorfile_error *error)
{
    j->want = want;
    j->got_dtype = got->dtype;
    return measure_compare(got, want, element_bound, j, m) ||
           oracle_fail(error, "%s: the result's shape or dtype does not fit",
                       oracle_first_name(j->b->problem->op->outputs[j->output].names));
}

static bool compare_specified(judged *j, const etalon_tensor *got, const etalon_tensor *want, bool poisoned, verdict *v,
                              tensorfile_error *error)
{
    etalon_tensor x = { 0 }, y = { 0 };
    bool          ok = oracle_allocate("logits", ETALON_F32, want->rank, want->shape, &x, error) &&
                       oracle_allocate("logits", ETALON_F32, want->rank, want->shape, &y, error);
    if (ok) {
        specify(j->b, j->class, got, want, poisoned, x.data, y.data, v);
        ok = compare(j, &x, &y, &v->m, error);
    }
    free(x.data);
    free(y.data);
    return ok;
}

bool bound_judge(const bound *b, bound_class class, int output, const etalon_tensor *got, const etalon_tensor *want,
                 bool poisoned, verdict *v, tensorfile_error *error)
{
    judged     j = { b, class, output, got->dtype, want };
    const bool open = leaves_open(b, class) && same_shape(got, want);
    *v = (verdict){ 0 };
    if (!(open ? compare_specified(&j, got, want, poisoned, v, error) : compare(&j, got, want, &v->m, error)))
        return false;
    if (b->e != NULL && output == 0)
        judge_rows(b, class, got, want, v);
    v->calc_diff_over = logits_are_of(b->problem->op) && class == BOUND_FP8 && v->m.calc_diff > MQA_CALC_DIFF;
    v->pass = measure_ok(&v->m) && v->rows_over == 0 && !v->calc_diff_over && v->overwritten == 0;
    return true;
}

double verdict_ratio(const verdict *v)
{
    if (v->overwritten > 0)
        return INFINITY;
    return fmax(fmax(v->m.max_bound_ratio, v->row_ratio), v->calc_diff_over ? v->m.calc_diff / MQA_CALC_DIFF : 0.0);
}

/* Queries that are rounded
 * ------------------------
 */
bool bound_may_round_q(const oracle_problem *problem)
{
    const etalon_dtype dtype = problem->args.pa_mtp.q.dtype;
    return problem->op->id == ORACLE_PA_MTP && (dtype == ETALON_BF16 || dtype == ETALON_F32);
}

bool bound_round_q(const oracle_problem *problem, etalon_tensor *q, oracle_problem *rounded, tensorfile_error *error)
{
    const etalon_tensor *from = &problem->args.pa_mtp.q;
    *rounded = *problem;
    if (!oracle_allocate("q", from->dtype, from->rank, from->shape, q, error))
        return false;
    rounded->args.pa_mtp.q = *q;
    for (int64_t t = 0; t < q->shape[0]; t++)
        for (int64_t h = 0; h < q->shape[1]; h++)
            for (int64_t d = 0; d < q->shape[2]; d++) {
                const int64_t index[] = { t, h, d };
                const float   x = element_load(element(from, index), from->dtype);
                element_store((char *)q->data + (element(q, index) - (const char *)q->data), q->dtype,
                              f32_of_e4m3fn(e4m3fn_of_f32(x, FP8_SATURATE)));
            }
    return true;
}

/* Set-up
 * ------
 */
bool bound_prepare(const etalon_context *ctx, const oracle_problem *problem, bound_class class, bound *b,
                   tensorfile_error *error)
{
    *b = (bound){ .problem = problem };
    switch (problem->op->id) {
    case ORACLE_MQA_LOGITS:
    case ORACLE_MQA_LOGITS_PAGED:
        return oracle_serving_row(ctx, problem, error) != NULL && prepare_logits(b, error);
    case ORACLE_MERGE_STATES:
        return oracle_serving_row(ctx, problem, error) != NULL;
    default:
        return prepare_attention(ctx, class, b, error);
    }
}

void bound_free(bound *b)
{
    oracle_result_free(&b->magnitude);
    oracle_result_free(&b->top);
    free(b->sequence);
    free(b->e);
    free(b->spread);
    free(b->p_top);
    free(b->v_max);
    free(b->q_weight);
    free(b->k_norm);
    free(b->k_first);
    free(b->window);
    *b = (bound){ 0 };
}
