/* Kernels that are wrong on purpose: one plain kernel an operation, with a line changed for each bug of broken.def.
 *
 * The plain kernel is written as kernels on GPUs are: a running maximum over tiles of keys, two splits of the keys,
 * and a reduction that weighs them. Without a bug it keeps the contract, and xcheck must find nothing in it. */
#include "attend.h"
#include "element.h"
#include "fmha_varlen.h"
#include "fmha_varlen_row.h"
#include "merge_states.h"
#include "mqa_logits_paged.h"
#include "pa_mtp.h"
#include "pa_mtp_row.h"
#include "xcheck.h"

#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef enum bug {
    SOUND,
    SOUND_FP8,
    WRONG_PAGE,
    LAST_PAGE,
    TABLE_ROW,
    WRAP_32,
    ONE_DIAGONAL,
    NAN_LEAK,
    OFF_BY_ONE,
    ONE_TOO_MANY,
    TOP_LEFT,
    WINDOW_0,
    STALE_MAX,
    REDUCE_WEIGHT,
    EMPTY_ROWS,
    LSE_BASE_2,
    LSE_ROUNDED,
    FIXED_P_SCALE,
    K_DESCALE,
    V_DESCALE_HEAD,
    SOFTMAX_SCALE,
    GQA_SWAPPED,
    HEAD_STRIDE,
    LSE_LAYOUT,
    UNWRITTEN_TAIL,
    EVERY_16TH,
    SECOND_WAVE,
    INPUT_WRITTEN,
    READS_PAST_END,
    READS_BEFORE,
    FNUZ_AS_FN,
    RACE,
    ADDS_TO_OUT,
    REMEMBERS,
    KV_SCALE,
    NO_RELU,
    WEIGHTS_ROW,
    NEVER_CLEANS,
    ALWAYS_CLEANS,
    WINDOW_END,
    ONE_FORMAT,
    TILE_TAIL,
    NOT_MOVED,
    ONE_CONTEXT,
    FIRST_SCALE,
    INTERLEAVED,
    BLOCK_SIZE_64,
    PLUS_INFINITY,
    READS_EMPTY
} bug;

enum { TILE = 128, SPLITS = 2 };

/* Attention
 * --------- */

/* One row of either operation. */
typedef struct job {
    bug         bug;
    attend_keys keys;
    attend_row  row;
    int64_t     t, h, i, sq, sk; /* row i of sq, over sk keys */
    bool        fp8;             /* P rounds to E4M3 */
} job;

static float rounded(float x)
{
    return f32_of_e4m3fn(e4m3fn_of_f32(x, FP8_SATURATE));
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t page_of(const job *w, int64_t j)
{
    const int64_t page = j / w->keys.page_size;
    return w->bug == WRONG_PAGE && page == 1 ? 0 : page;
}

/* Key j of K or V. */
static const char *key_at(const job *w, const char *base, int64_t page, int64_t slot, int64_t j)
{
    const int64_t id = w->keys.table == NULL ? 0 : w->keys.table[page_of(w, j) * w->keys.table_stride];
    const int64_t offset = id * page + (w->keys.table == NULL ? j : j % w->keys.page_size) * slot;
    return base + (w->bug == WRAP_32 ? (int64_t)(int32_t)offset : offset);
}

static void load(const job *w, const char *at, int64_t stride, int64_t n, float *x)
{
    element_load_row(x, at, w->bug == FNUZ_AS_FN ? ETALON_E4M3FN : w->keys.dtype, stride, n);
}

static void load_k(const job *w, int64_t j, float *k)
{
    load(w, key_at(w, w->keys.k, w->keys.k_page, w->keys.k_slot, j), w->keys.k_stride, w->keys.d_qk, k);
}

static void load_v(const job *w, int64_t j, float *v)
{
    load(w, key_at(w, w->keys.v, w->keys.v_page, w->keys.v_slot, j), w->keys.v_stride, w->keys.d_v, v);
}

/* Sums of a split: out under exp(-m), weights under exp(-m). */
typedef struct partial {
    float m, l, out[ETALON_MAX_HEAD_DIM];
} partial;

static float score(const job *w, int64_t j)
{
    float k[ETALON_MAX_HEAD_DIM], sum[8] = { 0 };
    load_k(w, j, k);
    for (int64_t d = 0; d < w->keys.d_qk; d++)
        sum[d % 8] += w->row.q[d] * k[d];
    return w->row.scale * (((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
}

static void rescale(const job *w, partial *p, float m)
{
    const float factor = p->m == -INFINITY || w->bug == STALE_MAX ? 1.0f : expf(p->m - m);
    p->l *= factor;
    for (int64_t d = 0; d < w->keys.d_v; d++)
        p->out[d] *= factor;
    p->m = m;
}

/* Weights of a tile under its own maximum, rounded, then moved to the running one: small weights keep their place. */
static float weight_of(const job *w, float s, float tile_m, float m)
{
    if (w->bug == FIXED_P_SCALE)
        return 0x1p-8f * rounded(0x1p8f * expf(s - m));
    if (w->fp8)
        return 0x1p-8f * rounded(0x1p8f * expf(s - tile_m)) * expf(tile_m - m);
    return expf(s - m);
}

static void add_tile(const job *w, partial *p, int64_t first, int64_t last)
{
    float s[TILE], v[ETALON_MAX_HEAD_DIM], tile_m = -INFINITY, sum[ETALON_MAX_HEAD_DIM] = { 0 }, l = 0.0f;
    for (int64_t j = first; j < last; j++) {
        s[j - first] = score(w, j);
        tile_m = s[j - first] > tile_m ? s[j - first] : tile_m;
    }
    rescale(w, p, tile_m > p->m ? tile_m : p->m);
    for (int64_t j = first; j < last; j++) {
        const float weight = weight_of(w, s[j - first], tile_m, p->m);
        l += w->bug == LSE_ROUNDED ? weight : expf(s[j - first] - p->m);
        load_v(w, j, v);
        for (int64_t d = 0; d < w->keys.d_v; d++)
            sum[d] += weight * v[d];
    }
    p->l += l;
    for (int64_t d = 0; d < w->keys.d_v; d++)
        p->out[d] += sum[d];
}

/* Tiles of 128 keys, counted from key 0 of the sequence. */
static void add_keys(const job *w, partial *p, int64_t first, int64_t last)
{
    *p = (partial){ .m = -INFINITY };
    for (int64_t j = first; j < last; j = j / TILE * TILE + TILE)
        add_tile(w, p, j, least(last, j / TILE * TILE + TILE));
}

/* Slots of the last page that no key fills: weight 0 is not nothing where they hold NaN. */
static void add_padding(const job *w, partial *p)
{
    float v[ETALON_MAX_HEAD_DIM];
    for (int64_t j = w->sk; j % w->keys.page_size != 0; j++) {
        load_v(w, j, v);
        for (int64_t d = 0; d < w->keys.d_v; d++)
            p->out[d] += 0.0f * v[d];
    }
}

/* A few keys a thread; the sums meet in the order in which the threads are done. */
static void race(const job *w, partial *p)
{
    enum { PIECE = 4 };
    const int64_t first = w->row.see.first, pieces = (w->row.see.last - first + PIECE - 1) / PIECE;
    float         m = -INFINITY;
    for (int64_t j = first; j < w->row.see.last; j++)
        m = fmaxf(m, score(w, j));
    *p = (partial){ .m = m };
#pragma omp parallel for schedule(dynamic) num_threads(4)
    for (int64_t i = 0; i < pieces; i++) {
        partial mine = { .m = m };
        for (int64_t j = first + i * PIECE; j < least(w->row.see.last, first + (i + 1) * PIECE); j++)
            add_tile(w, &mine, j, j + 1);
#pragma omp critical
        {
            p->l += mine.l;
            for (int64_t d = 0; d < w->keys.d_v; d++)
                p->out[d] += mine.out[d];
        }
    }
}

static void reduce(const job *w, const partial *part, partial *whole)
{
    *whole = (partial){ .m = fmaxf(part[0].m, part[1].m) };
    for (int i = 0; i < SPLITS; i++) {
        if (part[i].m == -INFINITY)
            continue;
        const float weight = w->bug == REDUCE_WEIGHT ? 1.0f : expf(part[i].m - whole->m);
        whole->l += weight * part[i].l;
        for (int64_t d = 0; d < w->keys.d_v; d++)
            whole->out[d] += weight * part[i].out[d];
    }
}

/* One row: out under its v_descale; the LSE. */
static float attend_plainly(const job *w, float *out)
{
    partial       part[SPLITS], whole;
    const int64_t half = (w->row.see.last - w->row.see.first) / 2 / TILE * TILE;
    const int64_t middle = w->bug == FIXED_P_SCALE ? w->row.see.last : w->row.see.first + half;
    const bool    empty = w->row.see.first >= w->row.see.last;
    if (w->bug == RACE) {
        race(w, &whole);
    } else {
        add_keys(w, &part[0], w->row.see.first, middle);
        add_keys(w, &part[1], middle, w->row.see.last);
        reduce(w, part, &whole);
    }
    if (w->bug == NAN_LEAK && w->sk > 0)
        add_padding(w, &whole);
    for (int64_t d = 0; d < w->keys.d_v; d++)
        out[d] =
            empty && w->bug != EMPTY_ROWS && w->bug != NAN_LEAK ? 0.0f : w->row.v_descale * (whole.out[d] / whole.l);
    if (empty)
        return -INFINITY;
    return w->bug == LSE_BASE_2 ? (whole.m + logf(whole.l)) * 1.44269504f /* log2(e) */ : whole.m + logf(whole.l);
}

static attention_mask broken_mask(const job *w, attention_mask mask)
{
    if (w->bug == WINDOW_0)
        return (attention_mask){ mask.left == 0 ? INT32_MAX : mask.left, mask.right };
    return mask;
}

static key_range broken_range(const job *w, attention_mask all)
{
    const attention_mask mask = broken_mask(w, all);
    const bool           causal = mask.right == 0;
    const int64_t i = w->bug == ONE_DIAGONAL ? w->sq - 1 : w->bug == TOP_LEFT && causal ? w->i - (w->sk - w->sq) : w->i;
    key_range     see = attention_visible(mask, i, w->sq, w->sk);
    if (w->bug == OFF_BY_ONE && causal && see.first < see.last)
        see.last--;
    if (w->bug == ONE_TOO_MANY && causal && see.last < w->sk)
        see.last++;
    if (w->bug == SECOND_WAVE && w->t % 64 >= 32 && see.first < see.last)
        see.last--;
    if (w->bug == LAST_PAGE && see.last == w->sk)
        see.last -= w->sk % w->keys.page_size;
    if (see.last < see.first)
        see.last = see.first;
    return see;
}

/* Loads what it has no business with; the sum keeps the compiler from leaving it out. */
static float stray_load(const job *w)
{
    volatile unsigned char x = 0;
    if (w->bug == READS_PAST_END && w->sk > 0)
        x = *(const volatile unsigned char *)key_at(w, w->keys.k, w->keys.k_page, w->keys.k_slot, w->sk);
    if (w->bug == READS_BEFORE && w->sk > 0)
        x = *(const volatile unsigned char *)key_at(w, w->keys.k, w->keys.k_page, w->keys.k_slot, -1);
    return 0.0f * (float)x;
}

static void store_row(const job *w, const float *out, float lse, etalon_tensor to_out, etalon_tensor to_lse)
{
    const int64_t columns = w->bug == UNWRITTEN_TAIL ? w->keys.d_v / 8 * 8 : w->keys.d_v;
    if (w->bug == HEAD_STRIDE)
        to_out.stride[1] = to_out.shape[2];
    if (w->bug == LSE_LAYOUT) {
        to_lse.stride[0] = 1;
        to_lse.stride[1] = to_lse.shape[0];
    }
    for (int64_t d = 0; d < columns; d++) {
        char *at = tensor_at3(&to_out, w->t, w->h, d);
        float before = w->bug == ADDS_TO_OUT ? element_load(at, to_out.dtype) : 0.0f;
        element_store(at, to_out.dtype, out[d] + before + (w->bug == EVERY_16TH && w->t % 16 == 15 ? 0.125f : 0.0f));
    }
    if (!tensor_absent(&to_lse))
        *(float *)tensor_at2(&to_lse, w->h, w->t) = lse;
}

static void finish(job *w, float softmax_ratio, const etalon_tensor *out, const etalon_tensor *lse)
{
    static int calls;
    float      result[ETALON_MAX_HEAD_DIM];
    w->row.scale *= softmax_ratio;
    w->row.scale += stray_load(w);
    if (w->bug == REMEMBERS && ++calls % 3 == 0)
        w->row.v_descale *= 1.0f + 0x1p-23f;
    const float l = attend_plainly(w, result);
    store_row(w, result, l, *out, *lse);
}

/* What softmax_scale is multiplied by, and k_descale divided out. */
static float scale_ratio(bug b, const attention_descales *descale, int64_t sequence, int64_t kv_head, double scale,
                         int64_t d_qk)
{
    if (b == K_DESCALE)
        return 1.0f / attention_descale(&descale->k, sequence, kv_head);
    if (b == SOFTMAX_SCALE)
        return (float)(1.0 / (sqrt((double)d_qk) * scale));
    return 1.0f;
}

static etalon_status plain_pa_mtp(const pa_mtp_problem *p, bug b, bool fp8)
{
    for (int64_t t = 0; t < p->tokens; t++)
        for (int64_t h = 0; h < p->heads; h++) {
            const int64_t sequence = attention_sequence(&p->cu_seqlens_q, t), group = p->heads / p->kv_heads;
            const int64_t first = index_at(&p->cu_seqlens_q, sequence);
            job           w = { .bug = b, .fp8 = fp8, .t = t, .h = h, .i = t - first };
            pa_mtp_row(p, t, h, &w.keys, &w.row);
            if (b == GQA_SWAPPED)
                w.keys = pa_mtp_keys(p, sequence, h % p->kv_heads);
            if (b == TABLE_ROW)
                w.keys.table = (const int32_t *)p->block_tables.data;
            w.sq = index_at(&p->cu_seqlens_q, sequence + 1) - first;
            w.sk = index_at(&p->seq_lens, sequence);
            w.row.see = broken_range(&w, p->mask);
            for (int64_t d = 0; d < p->d_qk && fp8 && !dtype_is_fp8(p->q.dtype); d++)
                w.row.q[d] = rounded(w.row.q[d]);
            if (b == INPUT_WRITTEN && !dtype_is_fp8(p->q.dtype))
                element_store(tensor_at3(&p->q, t, h, 0), p->q.dtype, w.row.q[0] * 0.5f);
            if (b == INPUT_WRITTEN && dtype_is_fp8(p->q.dtype))
                *(uint8_t *)tensor_at3(&p->q, t, h, 0) ^= 1;
            finish(&w, scale_ratio(b, &p->descale, sequence, h / group, p->softmax_scale, p->d_qk), &p->out, &p->lse);
        }
    return ETALON_OK;
}

static etalon_status plain_fmha_varlen(const fmha_varlen_problem *p, bug b, bool fp8)
{
    for (int64_t t = 0; t < p->total_q; t++)
        for (int64_t h = 0; h < p->heads; h++) {
            const int64_t sequence = attention_sequence(&p->cu_seqlens_q, t), group = p->heads / p->kv_heads;
            const int64_t first = index_at(&p->cu_seqlens_q, sequence);
            job           w = { .bug = b, .fp8 = fp8, .t = t, .h = h, .i = t - first };
            fmha_varlen_row(p, t, h, &w.keys, &w.row);
            w.sq = index_at(&p->cu_seqlens_q, sequence + 1) - first;
            w.sk = index_at(&p->cu_seqlens_k, sequence + 1) - index_at(&p->cu_seqlens_k, sequence);
            if (b == WRAP_32) { /* from the tensor's start, as a kernel that adds all strides up */
                const int64_t from = index_at(&p->cu_seqlens_k, sequence);
                w.keys.k += (int64_t)(int32_t)(from * w.keys.k_slot) - from * w.keys.k_slot;
                w.keys.v += (int64_t)(int32_t)(from * w.keys.v_slot) - from * w.keys.v_slot;
            }
            if (b == V_DESCALE_HEAD)
                w.row.v_descale = attention_descale(&p->descale.v, sequence, 0);
            w.row.see = broken_range(&w, p->mask);
            finish(&w, scale_ratio(b, &p->descale, sequence, h / group, p->softmax_scale, p->d_qk), &p->out, &p->lse);
        }
    return ETALON_OK;
}

/* Indexer logits
 * -------------- */

/* Where key n lies: its block, if there are blocks, and its slot. */
typedef struct key_place {
    int64_t block, slot;
} key_place;

static key_place place_of(const mqa_logits_problem *p, bug b, int64_t n)
{
    const int64_t size = b == BLOCK_SIZE_64 ? 64 : p->pages.block_size;
    if (p->pages.table == NULL)
        return (key_place){ 0, n };
    return (key_place){ p->pages.table[n / size * p->pages.table_stride], n % size };
}

static const char *logit_key(const mqa_logits_problem *p, bug b, int64_t n)
{
    const key_place at = place_of(p, b, n);
    const int64_t   slot = b == INTERLEAVED ? p->d + (int64_t)sizeof(float) : p->k.stride[0];
    const int64_t   offset = at.block * p->pages.k_bytes + at.slot * slot;
    return (const char *)p->k.data + (b == WRAP_32 ? (int64_t)(int32_t)offset : offset);
}

static float logit_scale(const mqa_logits_problem *p, bug b, int64_t n)
{
    const key_place at = place_of(p, b, n);
    const int64_t   slot = b == FIRST_SCALE ? 0 : at.slot;
    float           scale = 1.0f;
    if (b == INTERLEAVED)
        memcpy(&scale, logit_key(p, b, n) + p->d, sizeof scale);
    else if (b != KV_SCALE)
        memcpy(&scale,
               (const char *)p->kv_scale.data + at.block * p->pages.scale_bytes +
                   slot * p->kv_scale.stride[0] * (int64_t)sizeof scale,
               sizeof scale);
    return scale;
}

static float logit(const mqa_logits_problem *p, bug b, int64_t m, int64_t n)
{
    float         q[ETALON_MAX_HEAD_DIM], k[ETALON_MAX_HEAD_DIM], sum = 0.0f;
    const int64_t weights_row = b == WEIGHTS_ROW && m > 0 ? m - 1 : m;
    element_load_row(k, logit_key(p, b, n), b == ONE_FORMAT ? p->q.dtype : p->k.dtype, p->k.stride[1], p->d);
    for (int64_t h = 0; h < p->h; h++) {
        float part[8] = { 0 };
        element_load_row(q, tensor_at3(&p->q, m, h, 0), p->q.dtype, p->q.stride[2], p->d);
        for (int64_t d = 0; d < p->d; d++)
            part[d % 8] += q[d] * k[d];
        const float s = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
        sum += *(const float *)tensor_at2(&p->weights, weights_row, h) * (s < 0.0f && b != NO_RELU ? 0.0f : s);
    }
    return sum * logit_scale(p, b, n);
}

static etalon_status plain_mqa_logits(const mqa_logits_problem *p, bug b)
{
    const bool    clean = (p->clean || b == ALWAYS_CLEANS) && b != NEVER_CLEANS;
    const int64_t columns = b == TILE_TAIL ? (p->columns + 63) / 64 * 64 : p->columns;
    for (int64_t m = 0; m < p->m; m++) {
        key_range     see = mqa_logits_window(p, b == ONE_CONTEXT ? p->m - 1 : m);
        const int64_t origin = b == NOT_MOVED ? 0 : mqa_logits_origin(p, see);
        if (b == WINDOW_END && see.last < p->n && see.first < see.last && see.last - origin < columns)
            see.last++;
        for (int64_t c = 0; c < columns; c++) {
            const int64_t n = c + origin;
            float        *at = (float *)tensor_at2(&p->logits, m, c);
            if (n >= see.first && n < see.last)
                *at = logit(p, b, m, n);
            else if (clean)
                *at = -INFINITY;
        }
    }
    return ETALON_OK;
}

static etalon_status plain_mqa_logits_paged(const mqa_logits_paged_problem *p, bug b)
{
    for (int64_t i = 0; i < p->batch; i++) {
        mqa_logits_problem one = mqa_logits_paged_sequence(p, i);
        if (b == TABLE_ROW)
            one.pages = mqa_logits_paged_sequence(p, 0).pages;
        plain_mqa_logits(&one, b);
    }
    return ETALON_OK;
}

/* Merge
 * ----- */

static void merge_one(const merge_states_problem *p, bug b, int64_t t, int64_t h)
{
    const float inf = b == PLUS_INFINITY ? NAN : INFINITY; /* what the test below never equals */
    float       a = *(const float *)tensor_at2(&p->lse_a, h, t), c = *(const float *)tensor_at2(&p->lse_b, h, t);
    a = a == inf ? -INFINITY : a;
    c = c == inf ? -INFINITY : c;
    const float m = a > c ? a : c, base = m == -INFINITY ? 0.0f : m;
    const float w_a = b == LSE_BASE_2 ? exp2f(a - base) : expf(a - base);
    const float w_c = b == LSE_BASE_2 ? exp2f(c - base) : expf(c - base);
    for (int64_t d = 0; d < p->d; d++) {
        const float x = element_load(tensor_at3(&p->out_a, t, h, d), p->out_a.dtype);
        const float y = element_load(tensor_at3(&p->out_b, t, h, d), p->out_b.dtype);
        const bool  reads = b == READS_EMPTY;
        const float sum = (w_a > 0.0f || reads ? w_a * x : 0.0f) + (w_c > 0.0f || reads ? w_c * y : 0.0f);
        element_store(tensor_at3(&p->out, t, h, d), p->out.dtype, w_a + w_c > 0.0f ? sum / (w_a + w_c) : 0.0f);
    }
    if (!tensor_absent(&p->lse))
        *(float *)tensor_at2(&p->lse, h, t) = m == -INFINITY ? m : m + logf(w_a + w_c);
}

static etalon_status plain_merge_states(const merge_states_problem *p, bug b)
{
    for (int64_t t = 0; t < p->tokens; t++)
        for (int64_t h = 0; h < p->heads; h++)
            merge_one(p, b, t, h);
    return ETALON_OK;
}

/* The list
 * -------- */

#define RUN_pa_mtp(bug, class) plain_pa_mtp(problem, bug, class == BOUND_FP8)
#define RUN_fmha_varlen(bug, class) plain_fmha_varlen(problem, bug, class == BOUND_FP8)
#define RUN_mqa_logits(bug, class) plain_mqa_logits(problem, bug)
#define RUN_mqa_logits_paged(bug, class) plain_mqa_logits_paged(problem, bug)
#define RUN_merge_states(bug, class) plain_merge_states(problem, bug)

#define BROKEN(op, name, class, bug, what)                                                    \
    static etalon_status broken_##op##_##name(const etalon_context *ctx, const void *problem) \
    {                                                                                         \
        (void)ctx;                                                                            \
        return RUN_##op(bug, class);                                                          \
    }
#include "broken.def"
#undef BROKEN

static const struct {
    const char *op, *name, *what;
    bound_class class;
    bug            bug;
    xcheck_run_fn *run;
} all[] = {
#define BROKEN(op, name, class, bug, what) { #op, "broken_" #op "_" #name, what, class, bug, broken_##op##_##name },
#include "broken.def"
#undef BROKEN
};

int broken_list(xcheck_kernel *kernels, int count)
{
    tensorfile_error error;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && count < XCHECK_KERNELS; i++)
        kernels[count++] = (xcheck_kernel){ .op = oracle_find_op(all[i].op, &error),
                                            .name = all[i].name,
                                            .what = all[i].what,
                                            .row = all[i].name,
                                            .class = all[i].class,
                                            .sound = all[i].bug == SOUND || all[i].bug == SOUND_FP8,
                                            .run = all[i].run };
    return count;
}

etalon_status broken_call(const xcheck_kernel *kernel, const etalon_context *ctx, const oracle_args *args)
{
    union {
        pa_mtp_problem           pa_mtp;
        fmha_varlen_problem      fmha_varlen;
        mqa_logits_problem       mqa_logits;
        mqa_logits_paged_problem mqa_logits_paged;
        merge_states_problem     merge_states;
    } problem;
    etalon_status status = ETALON_OK;
    switch (kernel->op->id) {
    case ORACLE_PA_MTP:
        status = pa_mtp_check(&args->pa_mtp, &problem.pa_mtp);
        break;
    case ORACLE_FMHA_VARLEN:
        status = fmha_varlen_check(&args->fmha_varlen, &problem.fmha_varlen);
        break;
    case ORACLE_MQA_LOGITS:
        status = mqa_logits_check(&args->mqa_logits, &problem.mqa_logits);
        break;
    case ORACLE_MQA_LOGITS_PAGED:
        status = mqa_logits_paged_check(&args->mqa_logits_paged, &problem.mqa_logits_paged);
        break;
    case ORACLE_MERGE_STATES:
        status = merge_states_check(&args->merge_states, &problem.merge_states);
        break;
    }
    return status == ETALON_OK ? kernel->run(ctx, &problem) : status;
}
