#include "sample.h"

#include "element.h"
#include "logits.h"
#include "random.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DOUBT 4.0 /* standard errors, as many deviations as a row's bound allows */
#define DOUBT_LEAST \
    30 /* the least sample that a ratio's error is customarily estimated from: Cochran, Sampling Techniques */

/* Drawing
 * -------
 */
static bool attends(const sample *s)
{
    return s->problem->op->id == ORACLE_PA_MTP || s->problem->op->id == ORACLE_FMHA_VARLEN;
}

static int64_t extent(const oracle_problem *problem, int32_t dim)
{
    int64_t shape[3];
    oracle_output_shape(problem, 0, shape);
    return shape[dim];
}

/* Places of a hash table, a power of two and at least twice the entries; -1 is empty. */
typedef struct number_set {
    int64_t *place;
    uint64_t mask;
} number_set;

/* False if x is there already. */
static bool insert(const number_set *set, int64_t x)
{
    uint64_t hash = (uint64_t)x, i = random_splitmix(&hash) & set->mask;
    while (set->place[i] != -1 && set->place[i] != x)
        i = (i + 1) & set->mask;
    const bool is_new = set->place[i] == -1;
    set->place[i] = x;
    return is_new;
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Floyd's algorithm: each set of `count` numbers below `of` is as likely as any other. */
static void draw(const number_set *set, uint64_t seed, sample *s)
{
    random_state random = random_seed(seed);
    for (int64_t last = s->of - s->count, n = 0; n < s->count; last++, n++) {
        const int64_t x = random_between(&random, 0, last);
        s->number[n] = insert(set, x) ? x : last;
        if (s->number[n] == last)
            insert(set, last);
    }
    qsort(s->number, (size_t)s->count, sizeof s->number[0], ascending);
}

static bool draw_some(uint64_t seed, sample *s, tensorfile_error *error)
{
    uint64_t places = 2;
    while (places < 2 * (uint64_t)s->count)
        places *= 2;
    const number_set set = { malloc(places * sizeof(int64_t)), places - 1 };
    if (set.place == NULL)
        return oracle_fail(error, "sample: %" PRId64 " numbers of memory cannot be had", s->count);
    memset(set.place, 0xFF, places * sizeof(int64_t));
    draw(&set, seed, s);
    free(set.place);
    return true;
}

static bool draw_numbers(uint64_t seed, sample *s, tensorfile_error *error)
{
    s->number = calloc(s->count > 0 ? (size_t)s->count : 1, sizeof s->number[0]);
    if (s->number == NULL)
        return oracle_fail(error, "sample: %" PRId64 " numbers of memory cannot be had", s->count);
    if (s->count < s->of)
        return draw_some(seed, s, error);
    for (int64_t n = 0; n < s->count; n++)
        s->number[n] = n;
    return true;
}

/* What output 0 has in its first two dimensions for number n of the sample. */
static void place_of(const sample *s, int64_t n, int64_t *outer, int64_t *inner)
{
    *outer = s->number[n] / s->inner;
    *inner = s->number[n] % s->inner;
}

/* The inputs of merge_states have the shapes of its outputs. */
static bool gather_states(sample *s, tensorfile_error *error)
{
    const etalon_merge_states_args *from = &s->problem->args.merge_states;
    etalon_merge_states_args       *to = &s->compact.args.merge_states;
    s->compact.op = s->problem->op;
    s->compact.op->init(&s->compact.args);
    return sample_gather(s, 0, &from->out_a, &to->out_a, error) &&
           sample_gather(s, 0, &from->out_b, &to->out_b, error) &&
           sample_gather(s, 1, &from->lse_a, &to->lse_a, error) && sample_gather(s, 1, &from->lse_b, &to->lse_b, error);
}

bool sample_draw(const oracle_problem *problem, int64_t count, uint64_t seed, sample *s, tensorfile_error *error)
{
    *s = (sample){ .problem = problem, .inner = extent(problem, 1) };
    if (__builtin_mul_overflow(extent(problem, 0), s->inner, &s->of))
        return oracle_fail(error, "sample: the outputs are too many to be numbered in 64 bits");
    s->count = count < s->of ? count : s->of;
    return draw_numbers(seed, s, error) && (problem->op->id != ORACLE_MERGE_STATES || gather_states(s, error));
}

void sample_free(sample *s)
{
    if (s->compact.op != NULL) {
        free(s->compact.args.merge_states.out_a.data);
        free(s->compact.args.merge_states.lse_a.data);
        free(s->compact.args.merge_states.out_b.data);
        free(s->compact.args.merge_states.lse_b.data);
    }
    free(s->number);
    *s = (sample){ 0 };
}

const char *sample_unit(const sample *s)
{
    return logits_are_of(s->problem->op) ? "elements" : "rows";
}

/* Views
 * -----
 */
static etalon_tensor view(etalon_tensor t, int32_t dim, int64_t first, int64_t count)
{
    t.data = (char *)t.data + first * t.stride[dim] * (int64_t)etalon_dtype_bytes(t.dtype);
    t.shape[dim] = count;
    return t;
}

static etalon_tensor view2(etalon_tensor t, int64_t i, int64_t j)
{
    return view(view(t, 0, i, 1), 1, j, 1);
}

/* n elements, `stride` elements apart, one after another. */
static void copy_elements(void *to, const void *from, int64_t stride, int64_t n, size_t bytes)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)n * bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)to + (size_t)i * bytes, (const char *)from + i * stride * (int64_t)bytes, bytes);
}

/* Of an output over the sample: [N, 1, Dv], [1, N] or [N, 1]. */
static void compact_shape(const sample *s, int output, int64_t *shape)
{
    oracle_output_shape(s->problem, output, shape);
    shape[0] = output == 0 ? s->count : 1;
    shape[1] = output == 0 ? 1 : s->count;
}

bool sample_gather(const sample *s, int output, const etalon_tensor *whole, etalon_tensor *compact,
                   tensorfile_error *error)
{
    const oracle_output *o = &s->problem->op->outputs[output];
    const size_t         bytes = etalon_dtype_bytes(whole->dtype);
    int64_t              shape[3], i, j;
    compact_shape(s, output, shape);
    if (!oracle_allocate(oracle_first_name(o->names), whole->dtype, o->rank, shape, compact, error))
        return false;
    const int64_t run = o->rank == 3 ? shape[2] : 1, stride = o->rank == 3 ? whole->stride[2] : 1;
    for (int64_t n = 0; n < s->count; n++) {
        place_of(s, n, &i, &j);
        const etalon_tensor from = output == 0 ? view2(*whole, i, j) : view2(*whole, j, i);
        copy_elements((char *)compact->data + (size_t)(n * run) * bytes, from.data, stride, run, bytes);
    }
    return true;
}

/* Problems of one row
 * -------------------
 */
typedef struct one_row {
    oracle_problem problem;
    int64_t        cu_q[2], cu_k[2]; /* cu_k: or seq_lens; or start and end of a window */
    int32_t        page;
    etalon_tensor  keys, values, rounded_q; /* owned; absent where the problem has views */
} one_row;

static void free_row(one_row *row)
{
    free(row->keys.data);
    free(row->values.data);
    free(row->rounded_q.data);
}

static etalon_tensor vector(int64_t *data, int64_t n)
{
    return etalon_tensor_dense(data, ETALON_I64, 1, &n);
}

/* The sequence b with cu[b] <= t < cu[b + 1]. */
static int64_t sequence_of(const etalon_tensor *cu, int64_t t)
{
    int64_t low = 0, high = cu->shape[0] - 1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (oracle_index(cu, middle) <= t)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* (B, Hkv) becomes (). */
static etalon_tensor descale_view(etalon_tensor t, int64_t b, int64_t kv_head)
{
    if (t.data == NULL || t.rank < 2)
        return t;
    return etalon_tensor_dense(view2(t, b, kv_head).data, t.dtype, 0, NULL);
}

/* A row's mask as that of the only query row of a sequence, whose diagonal is its last key. */
typedef struct row_mask {
    int64_t keys; /* of the sequence's, from the first one on */
    int32_t left; /* window_left */
} row_mask;

/* Row i of sq over sk keys: those right of what it sees are cut off. */
static bool mask_of(int64_t i, int64_t sq, int64_t sk, bool causal, int32_t window_left, int32_t window_right,
                    row_mask *mask, tensorfile_error *error)
{
    const int64_t diagonal = i + sk - sq, first = window_left < 0 ? 0 : diagonal - window_left;
    int64_t       end = causal ? diagonal + 1 : window_right < 0 ? sk : diagonal + window_right + 1;
    end = end > sk ? sk : end;
    *mask = (row_mask){ end > 0 && end > first ? end : 0, ETALON_WINDOW_UNLIMITED };
    if (mask->keys == 0 || first <= 0)
        return true;
    if (end - 1 - first > INT32_MAX)
        return oracle_fail(error, "sample: a row sees %" PRId64 " keys, expected at most 2^31", end - first);
    mask->left = (int32_t)(end - 1 - first);
    return true;
}

/* Keys 0 to n - 1 of one (sequence, KV head) of a cache, as [1, n, 1, D]; n = 0: one slot that nobody reads. */
static bool gather_keys(const etalon_pa_mtp_args *p, const etalon_tensor *cache, int64_t b, int64_t kv_head, int64_t n,
                        etalon_tensor *to, tensorfile_error *error)
{
    const bool    nhd = p->kv_layout == ETALON_KV_NHD;
    const int32_t slots = nhd ? 1 : 2;
    const int64_t page_size = cache->shape[slots], d = cache->shape[3], shape[] = { 1, n > 0 ? n : 1, 1, d };
    const size_t  bytes = etalon_dtype_bytes(cache->dtype);
    if (!oracle_allocate("keys", cache->dtype, 4, shape, to, error))
        return false;
    const etalon_tensor head = view(*cache, nhd ? 2 : 1, kv_head, 1);
    for (int64_t j = 0; j < n; j++) {
        const int32_t page = *(const int32_t *)view2(p->block_tables, b, j / page_size).data;
        const void   *from = view(view(head, 0, page, 1), slots, j % page_size, 1).data;
        copy_elements((char *)to->data + (size_t)(j * d) * bytes, from, cache->stride[3], d, bytes);
    }
    return true;
}

static bool pa_mtp_row(const sample *s, int64_t t, int64_t h, one_row *row, tensorfile_error *error)
{
    const etalon_pa_mtp_args *from = &s->problem->args.pa_mtp;
    etalon_pa_mtp_args       *p = &row->problem.args.pa_mtp;
    const int64_t             kv_heads = from->k_cache.shape[from->kv_layout == ETALON_KV_NHD ? 2 : 1];
    const int64_t             kv_head = h / (s->inner / kv_heads), b = sequence_of(&from->cu_seqlens_q, t);
    const int64_t first = oracle_index(&from->cu_seqlens_q, b), sq = oracle_index(&from->cu_seqlens_q, b + 1) - first;
    row_mask      mask;
    if (!mask_of(t - first, sq, oracle_index(&from->seq_lens, b), from->causal != 0, from->window_left,
                 from->window_right, &mask, error) ||
        !gather_keys(from, &from->k_cache, b, kv_head, mask.keys, &row->keys, error) ||
        !gather_keys(from, &from->v_cache, b, kv_head, mask.keys, &row->values, error))
        return false;
    row->cu_k[0] = mask.keys;
    p->q = view2(from->q, t, h);
    p->k_cache = row->keys;
    p->v_cache = row->values;
    p->kv_layout = ETALON_KV_NHD;
    p->block_tables = etalon_tensor_dense(&row->page, ETALON_I32, 2, (const int64_t[]){ 1, 1 });
    p->seq_lens = vector(row->cu_k, 1);
    p->cu_seqlens_q = vector(row->cu_q, 2);
    p->q_descale = descale_view(from->q_descale, b, kv_head);
    p->k_descale = descale_view(from->k_descale, b, kv_head);
    p->v_descale = descale_view(from->v_descale, b, kv_head);
    p->window_left = mask.left;
    p->window_right = ETALON_WINDOW_UNLIMITED;
    return !s->round_q || bound_round_q(&row->problem, &row->rounded_q, &row->problem, error);
}

static bool fmha_varlen_row(const sample *s, int64_t t, int64_t h, one_row *row, tensorfile_error *error)
{
    const etalon_fmha_varlen_args *from = &s->problem->args.fmha_varlen;
    etalon_fmha_varlen_args       *p = &row->problem.args.fmha_varlen;
    const int64_t                  kv_head = h / (s->inner / from->k.shape[1]), b = sequence_of(&from->cu_seqlens_q, t);
    const int64_t first_q = oracle_index(&from->cu_seqlens_q, b), end_q = oracle_index(&from->cu_seqlens_q, b + 1);
    const int64_t first_k = oracle_index(&from->cu_seqlens_k, b), end_k = oracle_index(&from->cu_seqlens_k, b + 1);
    row_mask      mask;
    if (!mask_of(t - first_q, end_q - first_q, end_k - first_k, from->causal != 0, from->window_left,
                 from->window_right, &mask, error))
        return false;
    row->cu_k[1] = mask.keys;
    p->q = view2(from->q, t, h);
    p->k = view(view(from->k, 0, first_k, mask.keys), 1, kv_head, 1);
    p->v = view(view(from->v, 0, first_k, mask.keys), 1, kv_head, 1);
    p->cu_seqlens_q = vector(row->cu_q, 2);
    p->cu_seqlens_k = vector(row->cu_k, 2);
    p->max_seqlen_q = p->max_seqlen_k = 0;
    p->q_descale = descale_view(from->q_descale, b, kv_head);
    p->k_descale = descale_view(from->k_descale, b, kv_head);
    p->v_descale = descale_view(from->v_descale, b, kv_head);
    p->window_left = mask.left;
    p->window_right = ETALON_WINDOW_UNLIMITED;
    return true;
}

static bool sees(const sample *s, int64_t m, int64_t n)
{
    const logits_window see = logits_window_of(s->problem, m);
    return see.first <= n && n < see.last;
}

/* One element (m, n): one key, which the row sees or not. */
static void mqa_logits_row(const sample *s, int64_t m, int64_t n, one_row *row)
{
    const etalon_mqa_logits_args *from = &s->problem->args.mqa_logits;
    etalon_mqa_logits_args       *p = &row->problem.args.mqa_logits;
    const int64_t key = n + logits_origin(s->problem, m), keys = key < from->k.shape[0]; /* 0 in a column beyond them */
    row->cu_k[1] = sees(s, m, n);
    p->q = view(from->q, 0, m, 1);
    p->k = view(from->k, 0, keys * key, keys);
    p->kv_scale = view(from->kv_scale, 0, keys * key, keys);
    p->max_seqlen_k = from->max_seqlen_k > 0 ? 1 : 0;
    p->weights = view(from->weights, 0, m, 1);
    p->cu_seqlen_ks = vector(&row->cu_k[0], 1);
    p->cu_seqlen_ke = vector(&row->cu_k[1], 1);
}

/* The same with a copy of the key: slot 0 of a block of four, whose scales are aligned whatever D is. */
static bool mqa_logits_paged_row(const sample *s, int64_t m, int64_t n, one_row *row, tensorfile_error *error)
{
    enum { SLOTS = 4 };
    const etalon_mqa_logits_paged_args *from = &s->problem->args.mqa_logits_paged;
    etalon_mqa_logits_paged_args       *p = &row->problem.args.mqa_logits_paged;
    const int64_t next_n = from->q.shape[1], d = from->q.shape[3], shape[] = { 1, SLOTS, d + (int64_t)sizeof(float) };
    if (!oracle_allocate("kv_cache", from->kv_cache.dtype, 3, shape, &row->keys, error))
        return false;
    row->cu_k[0] = sees(s, m, n);
    if (row->cu_k[0] != 0) {
        float               scale;
        const etalon_tensor key = logits_key(s->problem, m, n, &scale);
        memcpy(row->keys.data, key.data, (size_t)d);
        memcpy((char *)row->keys.data + SLOTS * d, &scale, sizeof scale);
    }
    p->q = view2(from->q, m / next_n, m % next_n);
    p->kv_cache = row->keys;
    p->weights = view(from->weights, 0, m, 1);
    p->context_lens = etalon_tensor_dense(row->cu_k, ETALON_I64, 2, (const int64_t[]){ 1, 1 });
    p->block_tables = etalon_tensor_dense(&row->page, ETALON_I32, 2, (const int64_t[]){ 1, 1 });
    p->max_context_len = 1;
    return true;
}

/* The problem of number n, not of merge_states. It points into *row. */
static bool make_row(const sample *s, int64_t n, one_row *row, tensorfile_error *error)
{
    int64_t outer, inner;
    place_of(s, n, &outer, &inner);
    *row = (one_row){ .problem = *s->problem, .cu_q = { 0, 1 } };
    switch (s->problem->op->id) {
    case ORACLE_PA_MTP:
        return pa_mtp_row(s, outer, inner, row, error);
    case ORACLE_FMHA_VARLEN:
        return fmha_varlen_row(s, outer, inner, row, error);
    case ORACLE_MQA_LOGITS_PAGED:
        return mqa_logits_paged_row(s, outer, inner, row, error);
    default:
        mqa_logits_row(s, outer, inner, row);
        return true;
    }
}

/* Calls
 * -----
 */
bool sample_explain(const etalon_context *ctx, const sample *s, const char *kernel, etalon_explain_fn *row, void *user,
                    tensorfile_error *error)
{
    one_row one;
    if (s->compact.op != NULL || s->count == 0)
        return oracle_explain(ctx, s->compact.op != NULL ? &s->compact : s->problem, kernel, row, user, error);
    const bool ok = make_row(s, 0, &one, error) && oracle_explain(ctx, &one.problem, kernel, row, user, error);
    free_row(&one);
    return ok;
}

static bool allocate_compact(const sample *s, bool f32, oracle_result *result, tensorfile_error *error)
{
    for (int i = 0; i < s->problem->op->output_count; i++) {
        const oracle_output *o = &s->problem->op->outputs[i];
        int64_t              shape[3];
        compact_shape(s, i, shape);
        const etalon_dtype dtype = f32 ? ETALON_F32 : oracle_output_dtype(s->problem, i);
        if (!oracle_allocate(oracle_first_name(o->names), dtype, o->rank, shape, &result->tensor[i], error))
            return false;
    }
    return true;
}

/* A row's outputs into place n of the compact ones. */
static void put(const sample *s, const oracle_result *row, int64_t n, oracle_result *compact)
{
    for (int i = 0; i < s->problem->op->output_count; i++) {
        const etalon_tensor *from = &row->tensor[i];
        const size_t         bytes = (size_t)oracle_elements(from) * etalon_dtype_bytes(from->dtype);
        memcpy((char *)compact->tensor[i].data + (size_t)n * bytes, from->data, bytes);
    }
}

static bool run_row(const etalon_context *ctx, const sample *s, const char *kernel, int64_t n, oracle_result *compact,
                    tensorfile_error *error)
{
    one_row       row;
    oracle_result result = { 0 };
    const bool    ok = make_row(s, n, &row, error) && oracle_run(ctx, &row.problem, kernel, &result, error);
    if (ok)
        put(s, &result, n, compact);
    oracle_result_free(&result);
    free_row(&row);
    return ok;
}

bool sample_run(const etalon_context *ctx, const sample *s, const char *kernel, oracle_result *result,
                tensorfile_error *error)
{
    *result = (oracle_result){ 0 };
    if (s->compact.op != NULL)
        return oracle_run(ctx, &s->compact, kernel, result, error);
    bool ok = allocate_compact(s, false, result, error);
    for (int64_t n = 0; ok && n < s->count; n++)
        ok = run_row(ctx, s, kernel, n, result, error);
    return ok;
}

/* Bounds
 * ------
 */
static double *doubles(int64_t count, tensorfile_error *error)
{
    double *data = calloc(count > 0 ? (size_t)count : 1, sizeof *data);
    if (data == NULL)
        oracle_fail(error, "bound: %" PRId64 " numbers of memory cannot be had", count);
    return data;
}

/* N sequences of one row and one head each. */
static bool allocate_attention(const sample *s, bound_class class, bound *b, tensorfile_error *error)
{
    b->tokens = s->count;
    b->heads = b->kv_heads = 1;
    b->dv = extent(s->problem, 2);
    b->sequence = calloc(s->count > 0 ? (size_t)s->count : 1, sizeof *b->sequence);
    if (b->sequence == NULL)
        return oracle_fail(error, "bound: %" PRId64 " numbers of memory cannot be had", s->count);
    for (int64_t n = 0; n < s->count; n++)
        b->sequence[n] = n;
    if ((b->e = doubles(s->count, error)) == NULL || (b->v_max = doubles(s->count * b->dv, error)) == NULL ||
        !allocate_compact(s, true, &b->magnitude, error))
        return false;
    return class == BOUND_FP32 ||
           ((b->spread = doubles(s->count, error)) != NULL && (b->p_top = doubles(s->count, error)) != NULL &&
            allocate_compact(s, true, &b->top, error));
}

static void put_attention(const sample *s, const bound *row, int64_t n, bound *b)
{
    b->e[n] = row->e[0];
    memcpy(b->v_max + n * b->dv, row->v_max, (size_t)b->dv * sizeof(double));
    put(s, &row->magnitude, n, &b->magnitude);
    if (b->spread == NULL)
        return;
    b->spread[n] = row->spread[0];
    b->p_top[n] = row->p_top[0];
    put(s, &row->top, n, &b->top);
}

/* N rows over one key of norm 1. */
static bool allocate_logits(const sample *s, bound *b, tensorfile_error *error)
{
    b->window = calloc(s->count > 0 ? (size_t)s->count : 1, 2 * sizeof *b->window);
    b->k_first = calloc(s->count > 0 ? (size_t)s->count : 1, sizeof *b->k_first);
    if (b->window == NULL || b->k_first == NULL)
        return oracle_fail(error, "bound: %" PRId64 " numbers of memory cannot be had", s->count);
    if ((b->q_weight = doubles(s->count, error)) == NULL || (b->k_norm = doubles(1, error)) == NULL)
        return false;
    b->k_norm[0] = 1.0;
    return true;
}

static void put_logits(const bound *row, int64_t n, bound *b)
{
    b->q_weight[n] = row->window[1] > 0 ? row->q_weight[0] * row->k_norm[0] : 0.0;
    memcpy(b->window + 2 * n, row->window, 2 * sizeof *row->window);
}

static bool bound_row(const etalon_context *ctx, const sample *s, bound_class class, int64_t n, bound *b,
                      tensorfile_error *error)
{
    one_row    row;
    bound      one = { 0 };
    const bool ok = make_row(s, n, &row, error) && bound_prepare(ctx, &row.problem, class, &one, error);
    if (ok && attends(s))
        put_attention(s, &one, n, b);
    else if (ok)
        put_logits(&one, n, b);
    bound_free(&one);
    free_row(&row);
    return ok;
}

bool sample_bound(const etalon_context *ctx, const sample *s, bound_class class, bound *b, tensorfile_error *error)
{
    if (s->compact.op != NULL)
        return bound_prepare(ctx, &s->compact, class, b, error);
    *b = (bound){ .problem = s->problem };
    bool ok = attends(s) ? allocate_attention(s, class, b, error) : allocate_logits(s, b, error);
    for (int64_t n = 0; ok && n < s->count; n++)
        ok = bound_row(ctx, s, class, n, b, error);
    return ok;
}

/* Judgement
 * ---------
 */
static void locate(const sample *s, int output, int64_t *index)
{
    int64_t outer, inner;
    place_of(s, output == 0 ? index[0] : index[1], &outer, &inner);
    index[0] = output == 0 ? outer : inner;
    index[1] = output == 0 ? inner : outer;
}

static double at(const etalon_tensor *t, int64_t n)
{
    return (double)element_load(view(*t, 0, n, 1).data, t->dtype);
}

/* (x - y)^2 and x^2 + y^2 of an element; both 0 for one that takes no part. */
typedef struct squares {
    double apart, both;
} squares;

static squares squares_of(const sample *s, const bound *b, const etalon_tensor *got, const etalon_tensor *want,
                          int64_t n)
{
    const double x = at(got, n), y = at(want, n);
    const bool   open = b->window[2 * n + 1] == 0 && !logits_are_clean(s->problem);
    if (open || !isfinite(x) || !isfinite(y))
        return (squares){ 0 };
    return (squares){ (x - y) * (x - y), x * x + y * y };
}

/* calc_diff is r = sum apart / sum both. Its standard error over samples of n, f being their part of the whole, is
 * sqrt((1 - f) n / (n - 1) sum (apart - r both)^2) / sum both. */
static double calc_diff_error(const sample *s, const bound *b, const etalon_tensor *got, const etalon_tensor *want,
                              double r)
{
    double  sum = 0.0, both = 0.0;
    int64_t n = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const squares e = squares_of(s, b, got, want, i);
        const double  rest = e.apart - r * e.both;
        sum += rest * rest;
        both += e.both;
        n += e.both > 0.0;
    }
    if (n < DOUBT_LEAST)
        return INFINITY;
    return sqrt((1.0 - (double)s->count / (double)s->of) * (double)n / (double)(n - 1) * sum) / both;
}

static void doubt_calc_diff(const sample *s, const bound *b, const etalon_tensor *got, const etalon_tensor *want,
                            verdict *v)
{
    if (!v->calc_diff_over || s->count == s->of)
        return;
    verdict least = { .calc_diff_over = true };
    least.m.calc_diff = v->m.calc_diff - DOUBT * calc_diff_error(s, b, got, want, v->m.calc_diff);
    v->calc_diff_over = verdict_ratio(&least) > 1.0;
    v->pass = v->pass || (measure_ok(&v->m) && v->rows_over == 0 && !v->calc_diff_over && v->overwritten == 0);
}

bool sample_judge(const sample *s, const bound *b, bound_class class, int output, const etalon_tensor *got,
                  const etalon_tensor *want, bool poisoned, verdict *v, tensorfile_error *error)
{
    if (!bound_judge(b, class, output, got, want, poisoned, v, error))
        return false;
    doubt_calc_diff(s, b, got, want, v);
    if (v->m.has_worst)
        locate(s, output, v->m.worst.index);
    if (v->m.has_first)
        locate(s, output, v->m.first.index);
    if (v->row_ratio > 0.0)
        locate(s, 0, v->row);
    return true;
}
