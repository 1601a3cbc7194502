/* The tasks of the SIMD rows of pa_mtp and fmha_varlen: groups of rows, splits of the keys, threads.
 *
 * The plan depends on the problem alone, so the bits of the result do not depend on the number of threads. Where the
 * groups are too few to keep a machine busy, the keys of each are split, and the parts are joined in order.
 */
#ifndef ETALON_ATTENTION_SIMD_H
#define ETALON_ATTENTION_SIMD_H

#include "attention_tile.h"
#include "context.h"

enum {
    ENOUGH_TASKS = 64, /* to keep the threads of a large machine busy and balanced */
    MOST_SPLITS = 32,
    LEAST_SPLIT_KEYS = 2048 /* eight tiles: joining costs a hundredth of them */
};

/* What the two operations have in common. */
typedef struct attention_job {
    const void               *problem;
    const etalon_tensor      *q, *out, *lse, *cu_seqlens_q;
    const attention_descales *descale;
    attention_mask            mask;
    double                    softmax_scale;
    int64_t                   batch, heads, kv_heads, d_qk, d_v;
    attend_keys (*keys)(const void *problem, int64_t b, int64_t kv_head);
    int64_t (*length)(const void *problem, int64_t b); /* keys of a sequence */
} attention_job;

/* Of a problem of either operation: what they share has the same names. */
#define ATTENTION_JOB(p, keys_of, length_of)               \
    ((attention_job){ .problem = (p),                      \
                      .q = &(p)->q,                        \
                      .out = &(p)->out,                    \
                      .lse = &(p)->lse,                    \
                      .cu_seqlens_q = &(p)->cu_seqlens_q,  \
                      .descale = &(p)->descale,            \
                      .mask = (p)->mask,                   \
                      .softmax_scale = (p)->softmax_scale, \
                      .batch = (p)->batch,                 \
                      .heads = (p)->heads,                 \
                      .kv_heads = (p)->kv_heads,           \
                      .d_qk = (p)->d_qk,                   \
                      .d_v = (p)->d_v,                     \
                      .keys = (keys_of),                   \
                      .length = (length_of) })

typedef struct attention_plan {
    int64_t groups; /* of the longest sequence, for each KV head */
    int64_t rows;   /* of the largest group */
    int64_t splits, tasks;
} attention_plan;

/* One group: sequence, KV head, rows. */
typedef struct attention_group {
    int64_t b, kv_head, first_token, tokens, first_row;
} attention_group;

static int64_t attention_ratio(const attention_job *job)
{
    return job->heads / job->kv_heads;
}

static attention_plan attention_plan_of(const attention_job *job)
{
    int64_t rows = 0, keys = 0;
    for (int64_t b = 0; b < job->batch; b++) {
        const int64_t tokens = index_at(job->cu_seqlens_q, b + 1) - index_at(job->cu_seqlens_q, b);
        rows = tile_most(rows, tokens * attention_ratio(job));
        keys = tile_most(keys, job->length(job->problem, b));
    }
    attention_plan plan = { .groups = (rows + GROUP_ROWS - 1) / GROUP_ROWS, .rows = tile_least(rows, GROUP_ROWS) };
    const int64_t  whole = tile_most(1, job->batch * job->kv_heads * plan.groups);
    const int64_t  most = tile_least(tile_least(ENOUGH_TASKS / whole, MOST_SPLITS), keys / LEAST_SPLIT_KEYS);
    /* a power of two, as threads mostly are: 17 splits would keep two of them busy for 9 */
    for (plan.splits = 1; 2 * plan.splits <= most; plan.splits *= 2)
        ;
    plan.tasks = job->batch * job->kv_heads * plan.groups * plan.splits;
    return plan;
}

/* The part of one split: O, M and l of each row. */
static int64_t attention_part_floats(const attention_job *job)
{
    return tile_aligned(GROUP_ROWS * (job->d_v + 2));
}

static int64_t attention_scratch_floats(const attention_job *job)
{
    return tile_aligned(tile_scratch_floats(job->d_qk, job->d_v));
}

static size_t attention_workspace(const etalon_context *ctx, const attention_job *job)
{
    const attention_plan plan = attention_plan_of(job);
    const int64_t        parts = plan.splits > 1 ? plan.tasks * attention_part_floats(job) : 0;
    return sizeof(float) * (size_t)(context_threads(ctx, plan.tasks) * attention_scratch_floats(job) + parts);
}

/* Groups in descending order: under a causal mask the last ones have the most keys. */
static attention_group attention_group_at(const attention_job *job, attention_plan plan, int64_t i)
{
    attention_group g;
    g.first_row = (plan.groups - 1 - i % plan.groups) * GROUP_ROWS;
    g.kv_head = i / plan.groups % job->kv_heads;
    g.b = i / plan.groups / job->kv_heads;
    g.first_token = index_at(job->cu_seqlens_q, g.b);
    g.tokens = index_at(job->cu_seqlens_q, g.b + 1) - g.first_token;
    return g;
}

static int64_t attention_group_rows(const attention_job *job, const attention_group *g)
{
    return tile_most(0, tile_least(GROUP_ROWS, g->tokens * attention_ratio(job) - g->first_row));
}

/* Query token, counted in its sequence, and query head of a row of the group. */
static int64_t attention_token(const attention_job *job, const attention_group *g, int64_t r)
{
    return (g->first_row + r) / attention_ratio(job);
}

static int64_t attention_head(const attention_job *job, const attention_group *g, int64_t r)
{
    return g->kv_head * attention_ratio(job) + (g->first_row + r) % attention_ratio(job);
}

static const void *attention_q_at(const attention_job *job, const attention_group *g, int64_t r)
{
    return tensor_at3(job->q, g->first_token + attention_token(job, g, r), attention_head(job, g, r), 0);
}

static void attention_load_q(const attention_job *job, const attention_group *g, int64_t r, float *row)
{
    element_load_row(row, attention_q_at(job, g, r), job->q->dtype, job->q->stride[2], job->d_qk);
}

#ifndef SIMD_AMX
/* A row of q on its way into the cache: rows of many heads lie far apart, a page each. */
static void attention_ask_for_q(const attention_job *job, const attention_group *g, int64_t r)
{
    const char   *at = attention_q_at(job, g, r);
    const int64_t bytes = job->q->stride[2] * (int64_t)etalon_dtype_bytes(job->q->dtype);
    for (int64_t d = 0; d < job->d_qk; d += 16)
        __builtin_prefetch(at + d * bytes);
}

/* q of the group: in blocks of rows, [d][rows of the block]; of few rows each in one piece, zeros after it. */
static void attention_pack_q(const attention_job *job, const attention_group *g, const tile_rows *rows, float *q)
{
    enum { AHEAD = 16 };
    float row[ETALON_MAX_HEAD_DIM] = { 0 };
    for (int64_t r = 0, b = 0; r < rows->count; r++) {
        b += r == rows->block[b + 1];
        const int64_t first = rows->block[b], width = rows->block[b + 1] - first;
        if (r + AHEAD < rows->count)
            attention_ask_for_q(job, g, r + AHEAD);
        attention_load_q(job, g, r, row);
        if (rows->count <= FEW_ROWS)
            memcpy(q + r * ETALON_MAX_HEAD_DIM, row, sizeof row);
        float *const to = q + first * job->d_qk + (r - first);
        for (int64_t d = 0; d < job->d_qk && rows->count > FEW_ROWS; d++)
            to[d * width] = row[d];
    }
}

#else
/* q of the group in FP8: A tiles, [row tile][step]. Returns what they are multiples of. */
static double attention_pack_codes(const attention_job *job, const attention_group *g, const tile_problem *t)
{
    const simd_fp8 format = simd_fp8_of(job->q->dtype);
    for (int64_t r = 0; r < t->rows->count; r++) {
        const uint8_t *from = attention_q_at(job, g, r);
        uint8_t        codes[ETALON_MAX_HEAD_DIM];
        for (int64_t d = 0; d < job->d_qk; d++)
            codes[d] = from[d * job->q->stride[2]];
        amx_pack_codes(format, codes, job->d_qk, amx_row((uint16_t *)t->scratch.q, r, amx_steps(job->d_qk)), AMX_TILE);
    }
    return format.unit;
}

/* q of the group in BF16 or F32: A tiles, [row tile][step][term]. What they are multiples of is returned: a power of
 * two that leaves the largest element between 1 and 2, so that what falls below 2^-126, where AMX takes it as 0, is as
 * small beside the score that this element has a part in.
 */
static double attention_pack_numbers(const attention_job *job, const attention_group *g, const tile_problem *t)
{
    const int64_t steps = amx_steps(job->d_qk);
    float         most = 0.0f, row[ETALON_MAX_HEAD_DIM] = { 0 };
    for (int64_t r = 0; r < t->rows->count; r++) {
        attention_load_q(job, g, r, row);
        for (int64_t d = 0; d < job->d_qk; d++)
            most = fabsf(row[d]) > most && fabsf(row[d]) < INFINITY ? fabsf(row[d]) : most;
    }
    const double unit = most > 0.0f ? ldexp(1.0, ilogbf(most)) : 1.0;
    for (int64_t r = 0; r < t->rows->count; r++) {
        attention_load_q(job, g, r, row);
        for (int64_t d = 0; d < job->d_qk; d++)
            row[d] = (float)(row[d] * (1.0 / unit));
        amx_pack_numbers(row, job->d_qk, t->q_terms, amx_row((uint16_t *)t->scratch.q, r, steps * t->q_terms));
    }
    return unit;
}

static void attention_pack_tiles(const attention_job *job, const attention_group *g, tile_problem *t)
{
    t->q_terms = job->q->dtype == ETALON_F32 ? AMX_TERMS : 1;
    const double unit =
        dtype_is_fp8(job->q->dtype) ? attention_pack_codes(job, g, t) : attention_pack_numbers(job, g, t);
    t->c = (float)(t->c * unit);
    t->c_low = (float)(t->c_low * unit);
}
#endif

/* log2(e) * scale in two parts: what the first one loses matters for large scores. */
static void attention_set_scale(const attention_job *job, const attention_group *g, tile_problem *t)
{
    const double c = 0x1.71547652b82fep0 /* log2(e) */ * job->softmax_scale *
                     attention_descale(&job->descale->q, g->b, g->kv_head) *
                     attention_descale(&job->descale->k, g->b, g->kv_head) * t->format.unit;
    t->c = (float)c;
    t->c_low = (float)(c - t->c);
}

/* out = v_descale * O / l, lse = ln(2) (M + log2(l)); a row that saw no key: 0 and -inf. `o` is in units of the
 * format. */
static void attention_store(const attention_job *job, const attention_group *g, int64_t r, float m, float l,
                            const float *o, float unit)
{
    const int64_t t = g->first_token + attention_token(job, g, r), h = attention_head(job, g, r);
    const bool    none = m == -INFINITY && l == 0.0f;
    const float   factor = none ? 0.0f : unit * attention_descale(&job->descale->v, g->b, g->kv_head);
    float         out[ETALON_MAX_HEAD_DIM];
    for (int64_t d = 0; d < job->d_v; d++)
        out[d] = none ? 0.0f : factor * (o[d] / l);
    const float lse = none ? -INFINITY : (float)(0x1.62e42fefa39efp-1 /* ln(2) */ * (double)m + log((double)l));
    attend_store(out, lse, job->out, job->lse, t, h);
}

/* Where a split keeps its rows: O [GROUP_ROWS, d_v], then M and l. */
typedef struct attention_part {
    float *o, *m, *l;
} attention_part;

static attention_part attention_part_at(const attention_job *job, float *parts, int64_t i)
{
    float *const o = parts + i * attention_part_floats(job);
    return (attention_part){ o, o + GROUP_ROWS * job->d_v, o + GROUP_ROWS * (job->d_v + 1) };
}

/* O of a row, its compensation added. */
static void attention_collect(const tile_problem *t, int64_t r, float *o)
{
    const int64_t dims = tile_dims_v(t);
    for (int64_t d = 0; d < t->keys->d_v; d++)
        o[d] = t->scratch.sum[r * dims + d] + t->scratch.lost[r * dims + d];
}

/* One split of one group, into its part or, where there is one split, into the result. */
static void attention_task(const attention_job *job, attention_plan plan, int64_t i, float *scratch, float *parts)
{
    const attention_group g = attention_group_at(job, plan, i / plan.splits);
    const int64_t         sk = job->length(job->problem, g.b), split = i % plan.splits;
    const int64_t         tiles = (sk + TILE_KEYS - 1) / TILE_KEYS;
    tile_rows             rows = { .count = attention_group_rows(job, &g) };
    if (rows.count == 0)
        return;
    const attend_keys keys = job->keys(job->problem, g.b, g.kv_head);
    tile_problem      t = { .keys = &keys,
                            .format = simd_fp8_of(keys.dtype),
                            .scratch = tile_scratch_at(scratch, job->d_qk, job->d_v),
                            .rows = &rows };
    attention_set_scale(job, &g, &t);
    tile_deal_rows(&rows);
#ifdef SIMD_AMX
    attention_pack_tiles(job, &g, &t);
    amx_begin(rows.count);
#else
    attention_pack_q(job, &g, &rows, t.scratch.q);
#endif
    for (int64_t r = 0; r < rows.count; r++)
        rows.see[r] = attention_visible(job->mask, attention_token(job, &g, r), g.tokens, sk);
    tile_attend(&t, split * tiles / plan.splits * TILE_KEYS, (split + 1) * tiles / plan.splits * TILE_KEYS);
#ifdef SIMD_AMX
    amx_end();
#endif
    const attention_part part = attention_part_at(job, parts, i);
    for (int64_t r = 0; r < rows.count; r++) {
        const float l = rows.l[r] + rows.l_lost[r];
        float one[ETALON_MAX_HEAD_DIM], *const o = plan.splits == 1 ? one : part.o + r * job->d_v;
        attention_collect(&t, r, o);
        if (plan.splits == 1) {
            attention_store(job, &g, r, rows.m[r], l, o, t.format.unit);
        } else {
            part.m[r] = rows.m[r];
            part.l[r] = l;
        }
    }
}

/* Joins the splits of one row in order; every factor is a power of two. A split that saw no key is neutral. */
static void attention_join_row(const attention_job *job, attention_plan plan, const attention_group *g, int64_t i,
                               int64_t r, float *parts, float unit)
{
    float m = -INFINITY, l = 0.0f, l_lost = 0.0f, o[ETALON_MAX_HEAD_DIM] = { 0 }, lost[ETALON_MAX_HEAD_DIM] = { 0 };
    for (int64_t s = 0; s < plan.splits; s++)
        m = fmaxf(m, attention_part_at(job, parts, i * plan.splits + s).m[r]);
    for (int64_t s = 0; s < plan.splits; s++) {
        const attention_part part = attention_part_at(job, parts, i * plan.splits + s);
        if (part.m[r] == -INFINITY && part.l[r] == 0.0f)
            continue;
        const float factor = part.m[r] == -INFINITY ? 1.0f /* NaN */ : tile_power_of_two(part.m[r] - m);
        tile_add_one(&l, &l_lost, factor * part.l[r]);
        for (int64_t d = 0; d < job->d_v; d++)
            tile_add_one(&o[d], &lost[d], factor * part.o[r * job->d_v + d]);
    }
    for (int64_t d = 0; d < job->d_v; d++)
        o[d] += lost[d];
    attention_store(job, g, r, m, l + l_lost, o, unit);
}

/* Row r of group i. */
static void attention_join(const attention_job *job, attention_plan plan, int64_t i, int64_t r, float *parts)
{
    const attention_group g = attention_group_at(job, plan, i);
    if (r < attention_group_rows(job, &g))
        attention_join_row(job, plan, &g, i, r, parts, simd_fp8_of(job->keys(job->problem, g.b, g.kv_head).dtype).unit);
}

static void attention_run(const etalon_context *ctx, const attention_job *job, etalon_workspace work)
{
    const attention_plan plan = attention_plan_of(job);
    const int            threads = context_threads(ctx, plan.tasks);
    const int64_t        scratch = attention_scratch_floats(job);
    float *const         parts = (float *)work.data + threads * scratch;
#pragma omp parallel num_threads(threads)
    {
        float *const mine = (float *)work.data + tile_thread() * scratch;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < plan.tasks; i++)
            attention_task(job, plan, i, mine, parts);
        if (plan.splits > 1) {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < plan.tasks / plan.splits * plan.rows; i++)
                attention_join(job, plan, i / plan.rows, i % plan.rows, parts);
        }
    }
}

#endif
