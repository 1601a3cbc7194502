/* Relations between calls: what one result says about another, mostly bit for bit, so that no tolerance is argued
 * about. The numbers in the section titles are the test checklist that the operations' users keep. */
#include "cases.h"
#include "testing.h"
#include "twin.h"

#include <inttypes.h>
#include <math.h>

#define LENS(...) ((const int64_t[]){ __VA_ARGS__ })
#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

/* A stream for each test, so that they stay independent of their order. */
static rng stream(const char *name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return rng_make(cases_seed(), hash);
}

/* A ragged batch that every relation can use: two KV heads, rows without keys, lengths off every tile. */
static const int64_t ragged_q[] = { 4, 1, 0, 7, 3, 2 }, ragged_k[] = { 33, 130, 20, 5, 0, 65 };

static attention_shape ragged_shape(void)
{
    return (attention_shape){ .b = 6,
                              .hq = 4,
                              .hkv = 2,
                              .dqk = 48,
                              .dv = 40,
                              .q_lens = ragged_q,
                              .k_lens = ragged_k,
                              .causal = 1,
                              .page_size = 16,
                              .spare_pages = 3 };
}

/* 1. Mass, uniform, one-hot, q = 0
 * ------------------------------- */

static bool row_visible(const attention_shape *s, int64_t b, int64_t i, int64_t j)
{
    const int64_t at = i + s->k_lens[b] - s->q_lens[b];
    if (j < 0 || j >= s->k_lens[b] || (s->causal && j > at))
        return false;
    if (s->window_left > 0 && j < at - (s->window_left - 1))
        return false;
    return s->window_right == 0 || j <= at + (s->window_right - 1);
}

/* V = 1 gives 1 where anything is visible, whatever the scores. The bound is the docstring's, with sum p |v| = 1. */
START_TEST(v_ones_gives_ones)
{
    rng                   r = stream("v_ones");
    const attention_shape s = { .b = 6,
                                .hq = 4,
                                .hkv = 2,
                                .dqk = 48,
                                .dv = 40,
                                .q_lens = ragged_q,
                                .k_lens = ragged_k,
                                .causal = _i,
                                .spread = 8.0,
                                .strided = true };
    fmha_varlen_case      c;
    twin_attention        twin;
    fmha_varlen_make(&c, &r, &s);
    cases_fill(&c.args.v, 1.0);
    cases_seal(&c.memory);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    twin_fmha_varlen(&c.args, &twin);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++) {
        const int64_t row = i / s.dv % s.hq * twin.t + i / s.dv / s.hq;
        const double  want = isinf(twin.lse[row]) ? 0.0 : 1.0;
        cases_require(fabs(cases_get(&c.args.out, i) - want) <= want * twin_out_relative(twin.e[row]),
                      "out[%" PRId64 "]: %.9g, expected %g", i, cases_get(&c.args.out, i), want);
    }
    cases_verify(&c.memory);
    twin_attention_free(&twin);
    cases_free(&c.memory);
}
END_TEST

/* q = 0: every weight is 1 / visible, so lse = ln(visible) and out is the mean of V; e of the docstring is 2 u lse. */
START_TEST(zero_q_gives_the_mean)
{
    rng             r = stream("zero_q");
    attention_shape s = ragged_shape();
    s.window_left = _i == 1 ? 6 : 0;
    pa_mtp_case c;
    pa_mtp_make(&c, &r, &s);
    cases_fill(&c.args.q, 0.0);
    cases_seal(&c.memory);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    int64_t token = 0;
    for (int64_t b = 0; b < s.b; b++)
        for (int64_t i = 0; i < s.q_lens[b]; i++, token++)
            for (int64_t h = 0; h < s.hq; h++) {
                double count = 0.0, sum = 0.0, size = 0.0;
                for (int64_t j = 0; j < s.k_lens[b]; j++)
                    if (row_visible(&s, b, i, j)) {
                        const etalon_tensor v = pa_mtp_slot(&c.args, &c.args.v_cache, b, j);
                        const double        x = cases_get(&v, h / 2 * s.dv);
                        count += 1.0;
                        sum += x;
                        size += fabs(x);
                    }
                const double lse = cases_get(&c.args.lse, h * c.args.q.shape[0] + token), want = log(count);
                const double out = cases_get(&c.args.out, (token * s.hq + h) * s.dv);
                if (count == 0.0) {
                    cases_require(lse == -(double)INFINITY && out == 0.0, "token %" PRId64 ": lse %g, out %g", token,
                                  lse, out);
                    continue;
                }
                const double e = 2.0 * TWIN_U * want;
                cases_require(fabs(lse - want) <= twin_lse_bound(e, want), "token %" PRId64 ": lse %.9g, ln(%g)", token,
                              lse, count);
                cases_require(fabs(out - sum / count) <= twin_out_relative(e) * size / count,
                              "token %" PRId64 ": out %.9g, mean %.9g", token, out, sum / count);
            }
    cases_free(&c.memory);
}
END_TEST

/* V[j] = e_j: the support of an output row is the set of keys that it sees, exactly. */
static const attention_shape supports[] = {
    { .causal = 0 },
    { .causal = 1 },
    { .causal = 0, .window_left = 1, .window_right = 1 },
    { .causal = 0, .window_left = 1 },
    { .causal = 0, .window_right = 1 },
    { .causal = 1, .window_left = 8 },
    { .causal = 1, .window_right = 9 },
    { .causal = 0, .window_left = 4, .window_right = 18 },
    { .causal = 0, .window_left = 200, .window_right = INT32_MAX },
};

START_TEST(one_hot_v_shows_the_support)
{
    enum { B = 7 };
    static const int64_t q_lens[B] = { 1, 37, 5, 8, 33, 0, 3 }, k_lens[B] = { 37, 37, 8, 3, 32, 9, 0 };
    rng                  r = stream("one_hot");
    attention_shape      s = supports[_i];
    s.b = B, s.hq = 2, s.hkv = 1, s.dqk = 16, s.dv = 37, s.q_lens = q_lens, s.k_lens = k_lens, s.strided = true;
    fmha_varlen_case c;
    fmha_varlen_make(&c, &r, &s);
    cases_fill(&c.args.v, 0.0);
    int64_t key = 0;
    for (int64_t b = 0; b < B; b++)
        for (int64_t j = 0; j < k_lens[b]; j++, key++)
            cases_set(&c.args.v, key * s.dv + j, 1.0);
    cases_seal(&c.memory);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    int64_t token = 0;
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < q_lens[b]; i++, token++)
            for (int64_t cell = 0; cell < s.hq * s.dv; cell++) {
                const int64_t j = cell % s.dv;
                const double  out = cases_get(&c.args.out, token * s.hq * s.dv + cell);
                cases_require((out != 0.0) == row_visible(&s, b, i, j),
                              "sequence %" PRId64 ", row %" PRId64 ", key %" PRId64 ": weight %g", b, i, j, out);
            }
    cases_free(&c.memory);
}
END_TEST

/* 2. Pages
 * -------- */

/* The same sequences in a pool of another size, other page ids, other garbage; page ids permute freely. */
START_TEST(page_permutation_changes_no_bit)
{
    rng             r = stream("pages"), again = r;
    attention_shape s = ragged_shape();
    s.layout = _i % 2 ? ETALON_KV_HND : ETALON_KV_NHD;
    s.out = _i / 2 ? ETALON_BF16 : ETALON_F32;
    pa_mtp_case a, b;
    pa_mtp_make(&a, &r, &s);
    s.spare_pages = 11;
    pa_mtp_make(&b, &again, &s);
    cases_copy(&b.args.q, &a.args.q);
    for (int64_t i = 0; i < s.b; i++)
        for (int64_t j = 0; j < s.k_lens[i]; j++) {
            const etalon_tensor k[2] = { pa_mtp_slot(&b.args, &b.args.k_cache, i, j),
                                         pa_mtp_slot(&a.args, &a.args.k_cache, i, j) };
            const etalon_tensor v[2] = { pa_mtp_slot(&b.args, &b.args.v_cache, i, j),
                                         pa_mtp_slot(&a.args, &a.args.v_cache, i, j) };
            cases_copy(&k[0], &k[1]);
            cases_copy(&v[0], &v[1]);
        }
    cases_seal(&b.memory);
    ck_assert_ok(cases_run_pa_mtp(&a.args, 2));
    ck_assert_ok(cases_run_pa_mtp(&b.args, 2));
    cases_same_bits(&a.args.out, &b.args.out, "out");
    cases_same_bits(&a.args.lse, &b.args.lse, "lse");
    cases_verify(&a.memory);
    cases_verify(&b.memory);
    cases_free(&a.memory);
    cases_free(&b.memory);
}
END_TEST

/* A paged call is the packed call over the gathered rows, for every page size: nothing of the paging shows in the
 * bits. */
static void gather(const pa_mtp_case *paged, const attention_shape *s, fmha_varlen_case *packed)
{
    cases_copy(&packed->args.q, &paged->args.q);
    int64_t key = 0;
    for (int64_t b = 0; b < s->b; b++)
        for (int64_t j = 0; j < s->k_lens[b]; j++, key++) {
            const etalon_tensor k = pa_mtp_slot(&paged->args, &paged->args.k_cache, b, j),
                                k_to = cases_fix(packed->args.k, 0, key);
            const etalon_tensor v = pa_mtp_slot(&paged->args, &paged->args.v_cache, b, j),
                                v_to = cases_fix(packed->args.v, 0, key);
            cases_copy(&k_to, &k);
            cases_copy(&v_to, &v);
        }
    cases_seal(&packed->memory);
}

START_TEST(paged_is_packed_on_gathered_rows)
{
    static const int64_t page_sizes[] = { 1, 3, 16, 64, 256 };
    rng                  r = stream("gather");
    attention_shape      s = ragged_shape();
    s.page_size = page_sizes[_i];
    pa_mtp_case      a;
    fmha_varlen_case b;
    pa_mtp_make(&a, &r, &s);
    fmha_varlen_make(&b, &r, &s);
    gather(&a, &s, &b);
    ck_assert_ok(cases_run_pa_mtp(&a.args, 2));
    ck_assert_ok(cases_run_fmha_varlen(&b.args, 2));
    cases_same_bits(&a.args.out, &b.args.out, "out");
    cases_same_bits(&a.args.lse, &b.args.lse, "lse");
    cases_free(&a.memory);
    cases_free(&b.memory);
}
END_TEST

/* 3. Composition of the batch
 * --------------------------- */

/* Every sequence alone gives the bits that it has in the batch. */
START_TEST(fmha_batch_composition)
{
    rng                   r = stream("fmha_batch");
    const attention_shape s = ragged_shape();
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    int64_t q_at = 0, k_at = 0;
    for (int64_t b = 0; b < s.b; q_at += s.q_lens[b], k_at += s.k_lens[b], b++) {
        fmha_varlen_case one;
        attention_shape  single = s;
        single.b = 1, single.q_lens = s.q_lens + b, single.k_lens = s.k_lens + b;
        fmha_varlen_make(&one, &r, &single);
        const etalon_tensor q = cases_cut(c.args.q, 0, q_at, s.q_lens[b]),
                            k = cases_cut(c.args.k, 0, k_at, s.k_lens[b]);
        const etalon_tensor v = cases_cut(c.args.v, 0, k_at, s.k_lens[b]),
                            out = cases_cut(c.args.out, 0, q_at, s.q_lens[b]);
        const etalon_tensor lse = cases_cut(c.args.lse, 1, q_at, s.q_lens[b]);
        cases_copy(&one.args.q, &q);
        cases_copy(&one.args.k, &k);
        cases_copy(&one.args.v, &v);
        ck_assert_ok(cases_run_fmha_varlen(&one.args, 1));
        cases_same_bits(&one.args.out, &out, "out");
        cases_same_bits(&one.args.lse, &lse, "lse");
        cases_free(&one.memory);
    }
    cases_free(&c.memory);
}
END_TEST

START_TEST(pa_mtp_batch_composition)
{
    rng                   r = stream("pa_batch");
    const attention_shape s = ragged_shape();
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    int64_t at = 0;
    for (int64_t b = 0; b < s.b; at += s.q_lens[b], b++) {
        pa_mtp_case     one;
        attention_shape single = s;
        single.b = 1, single.q_lens = s.q_lens + b, single.k_lens = s.k_lens + b;
        pa_mtp_make(&one, &r, &single);
        const etalon_tensor q = cases_cut(c.args.q, 0, at, s.q_lens[b]);
        cases_copy(&one.args.q, &q);
        one.args.k_cache = c.args.k_cache;
        one.args.v_cache = c.args.v_cache;
        one.args.block_tables = cases_cut(c.args.block_tables, 0, b, 1);
        ck_assert_ok(cases_run_pa_mtp(&one.args, 1));
        const etalon_tensor out = cases_cut(c.args.out, 0, at, s.q_lens[b]),
                            lse = cases_cut(c.args.lse, 1, at, s.q_lens[b]);
        cases_same_bits(&one.args.out, &out, "out");
        cases_same_bits(&one.args.lse, &lse, "lse");
        cases_free(&one.memory);
    }
    cases_free(&c.memory);
}
END_TEST

/* A row of the indexer does not know its neighbours. */
START_TEST(mqa_rows_are_independent)
{
    rng             r = stream("mqa_rows");
    mqa_logits_case c;
    mqa_logits_make(&c, &r, 17, 65, 5, 33);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    for (int64_t m = 0; m < 17; m++) {
        mqa_logits_case one;
        mqa_logits_make(&one, &r, 1, 65, 5, 33);
        one.args.q = cases_cut(c.args.q, 0, m, 1);
        one.args.k = c.args.k;
        one.args.kv_scale = c.args.kv_scale;
        one.args.weights = cases_cut(c.args.weights, 0, m, 1);
        ck_assert_ok(cases_run_mqa_logits(&one.args, 1));
        const etalon_tensor row = cases_cut(c.args.logits, 0, m, 1);
        cases_same_bits(&one.args.logits, &row, "logits");
        cases_free(&one.memory);
    }
    cases_free(&c.memory);
}
END_TEST

/* 4. Powers of two move between scales without a trace
 * ----------------------------------------------------- */

typedef struct scales {
    double q, k, v, softmax; /* 0: absent */
} scales;

static void set_scales(fmha_varlen_case *c, const etalon_tensor *storage, scales s)
{
    etalon_tensor *const descales[] = { &c->args.q_descale, &c->args.k_descale, &c->args.v_descale };
    const double         values[] = { s.q, s.k, s.v };
    for (int i = 0; i < 3; i++) {
        *descales[i] = values[i] == 0.0 ? (etalon_tensor){ 0 } : storage[i];
        if (values[i] != 0.0)
            cases_set(&storage[i], 0, values[i]);
    }
    c->args.softmax_scale = s.softmax;
}

START_TEST(power_of_two_descales_move)
{
    static const scales   same[] = { { 0, 0, 0, 0.125 },         { 2, 0.5, 0, 0.125 }, { 0.5, 2, 1, 0.125 },
                                     { 4, 0, 0, 0.03125 },       { 0, 0.25, 0, 0.5 },  { 8, 8, 0, 0x1p-9 },
                                     { 0x1p-6, 0x1p6, 0, 0.125 } };
    rng                   r = stream("descales");
    const attention_shape s = ragged_shape();
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    etalon_tensor storage[3];
    for (int i = 0; i < 3; i++)
        storage[i] = cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_F32, 1, LENS(1));
    uint32_t *out = NULL, *lse = NULL;
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        set_scales(&c, storage, same[i]);
        ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
        uint32_t *out_now = cases_bits(&c.args.out), *lse_now = cases_bits(&c.args.lse);
        if (out != NULL) {
            ck_assert_mem_eq(out, out_now, sizeof *out * (size_t)cases_count(&c.args.out));
            ck_assert_mem_eq(lse, lse_now, sizeof *lse * (size_t)cases_count(&c.args.lse));
        }
        free(out);
        free(lse);
        out = out_now;
        lse = lse_now;
    }
    free(out);
    free(lse);
    cases_free(&c.memory);
}
END_TEST

/* v_descale = 2^n scales the output by 2^n, bit for bit, and leaves the lse alone. */
START_TEST(power_of_two_v_descale_scales_out)
{
    rng                   r = stream("v_descale");
    const attention_shape s = ragged_shape();
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    const etalon_tensor descale = cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_F32, 0, NULL);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t *plain = cases_bits(&c.args.out), *lse = cases_bits(&c.args.lse);
    c.args.v_descale = descale;
    for (int n = -3; n <= 3; n++) {
        cases_set(&descale, 0, ldexp(1.0, n));
        ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
        for (int64_t i = 0; i < cases_count(&c.args.out); i++) {
            float before;
            memcpy(&before, &plain[i], sizeof before);
            cases_require(cases_get(&c.args.out, i) == ldexp((double)before, n),
                          "out[%" PRId64 "]: %.9g, expected 2^%d of %.9g", i, cases_get(&c.args.out, i), n,
                          (double)before);
        }
        uint32_t *lse_now = cases_bits(&c.args.lse);
        ck_assert_mem_eq(lse, lse_now, sizeof *lse * (size_t)cases_count(&c.args.lse));
        free(lse_now);
    }
    free(plain);
    free(lse);
    cases_free(&c.memory);
}
END_TEST

/* 5. Strides, GQA, heads
 * ---------------------- */

/* The case again, its tensors copied into drawn strides. */
static etalon_tensor restride(cases_memory *memory, rng *r, cases_role role, const etalon_tensor *t)
{
    if (t->data == NULL)
        return *t;
    const etalon_tensor to = cases_tensor(memory, r, role, t->dtype, t->rank, t->shape);
    if (role == CASES_INPUT)
        cases_copy(&to, t);
    return to;
}

/* Unit stride in the head dim, which fast rows ask of keys and values, and gaps between the rows. */
static etalon_tensor rows_apart(cases_memory *memory, rng *r, const etalon_tensor *t)
{
    const int32_t last = t->rank - 1;
    int64_t       shape[ETALON_MAX_RANK];
    memcpy(shape, t->shape, sizeof shape);
    shape[last] += rng_between(r, 1, 5);
    const etalon_tensor wide = cases_tensor(memory, NULL, CASES_INPUT, t->dtype, t->rank, shape);
    const etalon_tensor to = cases_cut(wide, last, 0, t->shape[last]);
    cases_copy(&to, t);
    return to;
}

START_TEST(fmha_strided_is_dense)
{
    rng              r = rng_make(cases_seed(), 5000 + (uint64_t)_i);
    attention_shape  s = ragged_shape();
    fmha_varlen_case c;
    cases_memory     memory = { .count = 0 };
    s.q = _i % 3 == 0 ? ETALON_BF16 : _i % 3 == 1 ? ETALON_E4M3FN : ETALON_F32;
    s.out = _i % 2 ? ETALON_F32 : ETALON_BF16;
    fmha_varlen_make(&c, &r, &s);
    etalon_fmha_varlen_args b = c.args;
    b.q = restride(&memory, &r, CASES_INPUT, &c.args.q);
    const bool any = _i < 6;
    b.k = any ? restride(&memory, &r, CASES_INPUT, &c.args.k) : rows_apart(&memory, &r, &c.args.k);
    b.v = any ? restride(&memory, &r, CASES_INPUT, &c.args.v) : rows_apart(&memory, &r, &c.args.v);
    b.cu_seqlens_q = restride(&memory, &r, CASES_INPUT, &c.args.cu_seqlens_q);
    b.cu_seqlens_k = restride(&memory, &r, CASES_INPUT, &c.args.cu_seqlens_k);
    b.out = restride(&memory, &r, CASES_OUTPUT, &c.args.out);
    b.lse = restride(&memory, &r, CASES_OUTPUT, &c.args.lse);
    cases_seal(&memory);
    c.args.kernel = b.kernel = cases_kernel_fmha_varlen(&b);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    ck_assert_ok(cases_run_fmha_varlen(&b, 2));
    cases_same_bits(&b.out, &c.args.out, "out");
    cases_same_bits(&b.lse, &c.args.lse, "lse");
    ck_assert(any || strcmp(cases_kernel_fmha_varlen(&c.args), b.kernel) == 0); /* no other row for such views */
    cases_verify(&memory);
    cases_free(&memory);
    cases_free(&c.memory);
}
END_TEST

START_TEST(pa_mtp_strided_is_dense)
{
    rng             r = rng_make(cases_seed(), 6000 + (uint64_t)_i);
    attention_shape s = ragged_shape();
    pa_mtp_case     c;
    cases_memory    memory = { .count = 0 };
    s.layout = _i % 2 ? ETALON_KV_HND : ETALON_KV_NHD;
    s.kv = _i % 3 ? ETALON_E4M3FN : ETALON_E4M3FNUZ;
    pa_mtp_make(&c, &r, &s);
    etalon_pa_mtp_args b = c.args;
    b.q = restride(&memory, &r, CASES_INPUT, &c.args.q);
    const bool any = _i < 6;
    b.k_cache = any ? restride(&memory, &r, CASES_INPUT, &c.args.k_cache) : rows_apart(&memory, &r, &c.args.k_cache);
    b.v_cache = any ? restride(&memory, &r, CASES_INPUT, &c.args.v_cache) : rows_apart(&memory, &r, &c.args.v_cache);
    b.block_tables = restride(&memory, &r, CASES_INPUT, &c.args.block_tables);
    b.seq_lens = restride(&memory, &r, CASES_INPUT, &c.args.seq_lens);
    b.out = restride(&memory, &r, CASES_OUTPUT, &c.args.out);
    b.lse = restride(&memory, &r, CASES_OUTPUT, &c.args.lse);
    cases_seal(&memory);
    c.args.kernel = b.kernel = cases_kernel_pa_mtp(&b);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    ck_assert_ok(cases_run_pa_mtp(&b, 2));
    cases_same_bits(&b.out, &c.args.out, "out");
    cases_same_bits(&b.lse, &c.args.lse, "lse");
    ck_assert(any || strcmp(cases_kernel_pa_mtp(&c.args), b.kernel) == 0); /* no other row for such views */
    cases_verify(&memory);
    cases_free(&memory);
    cases_free(&c.memory);
}
END_TEST

/* NHD and HND are two strides of the same cache. */
START_TEST(hnd_is_nhd)
{
    rng             r = stream("hnd");
    attention_shape s = ragged_shape();
    pa_mtp_case     c;
    pa_mtp_make(&c, &r, &s);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    uint32_t *out = cases_bits(&c.args.out);
    c.args.k_cache = cases_swap(c.args.k_cache, 1, 2);
    c.args.v_cache = cases_swap(c.args.v_cache, 1, 2);
    c.args.kv_layout = ETALON_KV_HND;
    cases_poison_outputs(&c.memory);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    uint32_t *hnd = cases_bits(&c.args.out);
    ck_assert_mem_eq(out, hnd, sizeof *out * (size_t)cases_count(&c.args.out));
    free(out);
    free(hnd);
    cases_free(&c.memory);
}
END_TEST

/* K and V with every head written out once per query head; a stride of 0 repeats them as well. */
/* Both within the bound of the first call's exact result; the reference, to the bit. A fast row may add in another order
 * when other rows share the KV head. */
static void same_attention(const etalon_fmha_varlen_args *a, const etalon_fmha_varlen_args *b)
{
    twin_attention twin;
    if (strcmp(cases_kernel_fmha_varlen(a), "fmha_varlen_ref") == 0) {
        cases_same_bits(&b->out, &a->out, "out");
        cases_same_bits(&b->lse, &a->lse, "lse");
        return;
    }
    twin_fmha_varlen(a, &twin);
    for (int64_t i = 0; i < cases_count(&a->out); i++)
        cases_require(fabs(cases_get(&a->out, i) - twin.out[i]) <= twin.out_bound[i] &&
                          fabs(cases_get(&b->out, i) - twin.out[i]) <= twin.out_bound[i],
                      "out[%" PRId64 "]: %.9g and %.9g, twin %.9g", i, cases_get(&a->out, i), cases_get(&b->out, i),
                      twin.out[i]);
    for (int64_t i = 0; i < cases_count(&a->lse); i++) {
        const double x = cases_get(&a->lse, i), y = cases_get(&b->lse, i), want = twin.lse[i];
        cases_require(isinf(want) ? x == want && y == want
                                  : fabs(x - want) <= twin.lse_bound[i] && fabs(y - want) <= twin.lse_bound[i],
                      "lse[%" PRId64 "]: %.9g and %.9g, twin %.9g", i, x, y, want);
    }
    twin_attention_free(&twin);
}

START_TEST(gqa_is_repeated_kv)
{
    rng             r = stream("gqa");
    attention_shape s = ragged_shape();
    s.hq = 6;
    fmha_varlen_case c, wide;
    fmha_varlen_make(&c, &r, &s);
    s.hkv = 6;
    fmha_varlen_make(&wide, &r, &s);
    cases_copy(&wide.args.q, &c.args.q);
    for (int64_t h = 0; h < 6; h++) {
        const etalon_tensor k = cases_fix(c.args.k, 1, h / 3), k_to = cases_fix(wide.args.k, 1, h);
        const etalon_tensor v = cases_fix(c.args.v, 1, h / 3), v_to = cases_fix(wide.args.v, 1, h);
        cases_copy(&k_to, &k);
        cases_copy(&v_to, &v);
    }
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    ck_assert_ok(cases_run_fmha_varlen(&wide.args, 2));
    same_attention(&c.args, &wide.args);
    /* One KV head, broadcast by stride 0 to six. */
    etalon_fmha_varlen_args one = c.args, broadcast = wide.args;
    one.k = cases_cut(c.args.k, 1, 1, 1);
    one.v = cases_cut(c.args.v, 1, 1, 1);
    broadcast.k = one.k, broadcast.k.shape[1] = 6, broadcast.k.stride[1] = 0;
    broadcast.v = one.v, broadcast.v.shape[1] = 6, broadcast.v.stride[1] = 0;
    ck_assert_ok(cases_run_fmha_varlen(&one, 2));
    ck_assert_ok(cases_run_fmha_varlen(&broadcast, 2));
    same_attention(&one, &broadcast);
    cases_free(&c.memory);
    cases_free(&wide.memory);
}
END_TEST

/* Heads in reverse: q, k, v, out and lse through views with negative strides. */
static etalon_tensor reversed(etalon_tensor t, int32_t dim)
{
    t.data = (char *)t.data + (t.shape[dim] - 1) * t.stride[dim] * (int64_t)etalon_dtype_bytes(t.dtype);
    t.stride[dim] = -t.stride[dim];
    return t;
}

START_TEST(head_permutation)
{
    rng              r = stream("heads");
    attention_shape  s = ragged_shape();
    fmha_varlen_case c, back;
    fmha_varlen_make(&c, &r, &s);
    fmha_varlen_make(&back, &r, &s);
    etalon_fmha_varlen_args a = c.args;
    a.q = reversed(a.q, 1);
    a.k = reversed(a.k, 1);
    a.v = reversed(a.v, 1);
    a.out = reversed(back.args.out, 1);
    a.lse = reversed(back.args.lse, 0);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    ck_assert_ok(cases_run_fmha_varlen(&a, 2));
    cases_same_bits(&back.args.out, &c.args.out, "out");
    cases_same_bits(&back.args.lse, &c.args.lse, "lse");
    cases_free(&c.memory);
    cases_free(&back.memory);
}
END_TEST

/* 6. Chunks of keys, merged
 * ------------------------- */

/* What the merged state of a row may be off by: eps for out [T, Hq, Dv], lambda for lse [Hq, T]. */
typedef struct off {
    double *out, *lse;
} off;

/* One more merge. With w = 1 / (1 + exp(lse_b - lse_a)) the merge is out = w a + (1 - w) b and lse = ln(exp(lse_a) +
 * exp(lse_b)): |d lse| <= max of the sides', |d out| <= w eps_a + (1 - w) eps_b + |dw| |a - b|, where |dw| <=
 * (lambda_a + lambda_b) / 4; the merge's own bound comes on top. Errors in w of second order are the factor 1.01. */
static void off_after_merge(off *sum, const twin_attention *chunk, const etalon_merge_states_args *m,
                            const twin_attention *merged)
{
    for (int64_t row = 0; row < merged->t * merged->hq; row++) {
        const double  a = cases_get(&m->lse_a, row), b = cases_get(&m->lse_b, row);
        const int64_t first = (row % merged->t * merged->hq + row / merged->t) * merged->dv;
        const double  w = b == -(double)INFINITY ? 1.0 : 1.0 / (1.0 + exp(b - a)),
                      lambda = sum->lse[row] + chunk->lse_bound[row];
        const bool    both = !isinf(a) && !isinf(b);
        for (int64_t d = first; d < first + merged->dv; d++) {
            const double apart = both ? fabs(cases_get(&m->out_a, d) - cases_get(&m->out_b, d)) : 0.0;
            sum->out[d] = isinf(a) && isinf(b)
                              ? 0.0
                              : 1.01 * (w * sum->out[d] + (1.0 - w) * chunk->out_bound[d] + lambda / 4.0 * apart) +
                                    merged->out_bound[d];
        }
        sum->lse[row] = fmax(sum->lse[row], chunk->lse_bound[row]) + merged->lse_bound[row];
    }
}

/* Keys [first, first + extent) of the only sequence of a non-causal call. */
static etalon_fmha_varlen_args chunk_of(const etalon_fmha_varlen_args *whole, const etalon_tensor *cu_k, int64_t first,
                                        int64_t extent)
{
    etalon_fmha_varlen_args part = *whole;
    part.k = cases_cut(whole->k, 0, first, extent);
    part.v = cases_cut(whole->v, 0, first, extent);
    part.cu_seqlens_k = *cu_k;
    cases_set(cu_k, 0, 0.0);
    cases_set(cu_k, 1, (double)extent);
    return part;
}

/* Chunks that tile [0, 150), empty ones among them; the last is causal, with the queries at its end, as in chunked
 * prefill. */
static const int64_t chunk_lists[][8] = { { 0, 75, 150, -1 },
                                          { 0, 0, 150, -1 },
                                          { 0, 64, 64, 128, 150, -1 },
                                          { 0, 1, 2, 3, 130, 150, -1 },
                                          { 0, 0, 0, 100, 120, 150, -1 } };

START_TEST(merged_chunks_are_one_call)
{
    enum { KEYS = 150, ROWS = 7, H = 4, DV = 24 };
    rng                   r = rng_make(cases_seed(), 7000 + (uint64_t)_i);
    const attention_shape s = { .b = 1,
                                .hq = H,
                                .hkv = 2,
                                .dqk = 32,
                                .dv = DV,
                                .q_lens = LENS(ROWS),
                                .k_lens = LENS(KEYS),
                                .spread = 3.0,
                                .causal = 1 };
    fmha_varlen_case      whole, part;
    fmha_varlen_make(&whole, &r, &s);
    fmha_varlen_make(&part, &r, &s);
    ck_assert_ok(cases_run_fmha_varlen(&whole.args, 2));
    etalon_merge_states_args m = ETALON_MERGE_STATES_ARGS_INIT;
    cases_memory             memory = { .count = 0 };
    m.out_a = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 3, LENS(ROWS, H, DV));
    m.lse_a = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 2, LENS(H, ROWS));
    m.out = m.out_a;
    m.lse = m.lse_a; /* in place, from the empty state on */
    cases_fill(&m.lse_a, -(double)INFINITY);
    m.out_b = part.args.out;
    m.lse_b = part.args.lse;
    off            sum = { calloc(ROWS * H * DV, sizeof(double)), calloc(ROWS * H, sizeof(double)) };
    const int64_t *edges = chunk_lists[_i];
    for (int i = 0; edges[i + 1] >= 0; i++) {
        etalon_fmha_varlen_args a = chunk_of(&whole.args, &part.args.cu_seqlens_k, edges[i], edges[i + 1] - edges[i]);
        a.out = part.args.out;
        a.lse = part.args.lse;
        a.causal = edges[i + 1] == KEYS;
        ck_assert_ok(cases_run_fmha_varlen(&a, 2));
        twin_attention chunk, merged;
        twin_fmha_varlen(&a, &chunk);
        twin_merge_states(&m, &merged);
        off_after_merge(&sum, &chunk, &m, &merged);
        ck_assert_ok(cases_run_merge_states(&m, 2));
        twin_attention_free(&chunk);
        twin_attention_free(&merged);
    }
    twin_attention twin;
    twin_fmha_varlen(&whole.args, &twin);
    for (int64_t i = 0; i < ROWS * H * DV; i++) {
        const double apart = fabs(cases_get(&m.out, i) - cases_get(&whole.args.out, i));
        cases_require(apart <= sum.out[i] + twin.out_bound[i],
                      "out[%" PRId64 "]: %.9g merged, %.9g whole, allowed %.3g", i, cases_get(&m.out, i),
                      cases_get(&whole.args.out, i), sum.out[i] + twin.out_bound[i]);
    }
    for (int64_t i = 0; i < ROWS * H; i++) {
        const double apart = fabs(cases_get(&m.lse, i) - cases_get(&whole.args.lse, i));
        cases_require(apart <= sum.lse[i] + twin.lse_bound[i], "lse[%" PRId64 "]: %.9g merged, %.9g whole", i,
                      cases_get(&m.lse, i), cases_get(&whole.args.lse, i));
    }
    twin_attention_free(&twin);
    free(sum.out);
    free(sum.lse);
    cases_free(&memory);
    cases_free(&whole.memory);
    cases_free(&part.memory);
}
END_TEST

/* The sides of a merge may change places. */
START_TEST(merge_is_symmetric)
{
    rng               r = rng_make(cases_seed(), 8000 + (uint64_t)_i);
    merge_states_case c;
    merge_states_draw(&c, &r);
    ck_assert_ok(cases_run_merge_states(&c.args, 2));
    uint32_t                *out = cases_bits(&c.args.out);
    etalon_merge_states_args b = c.args;
    b.out_a = c.args.out_b, b.out_b = c.args.out_a, b.lse_a = c.args.lse_b, b.lse_b = c.args.lse_a;
    ck_assert_ok(cases_run_merge_states(&b, 2));
    uint32_t *swapped = cases_bits(&c.args.out);
    ck_assert_mem_eq(out, swapped, sizeof *out * (size_t)cases_count(&c.args.out));
    free(out);
    free(swapped);
    cases_free(&c.memory);
}
END_TEST

/* LSE through strides: a [T, Hq] array seen as [Hq, T] holds the same numbers. */
START_TEST(lse_strides)
{
    rng                   r = stream("lse_strides");
    const attention_shape s = ragged_shape();
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    const int64_t       tokens = c.args.q.shape[0];
    const etalon_tensor by_token = cases_tensor(&c.memory, NULL, CASES_OUTPUT, ETALON_F32, 2, LENS(tokens, s.hq));
    etalon_pa_mtp_args  b = c.args;
    b.lse = cases_swap(by_token, 0, 1);
    ck_assert_ok(cases_run_pa_mtp(&b, 2));
    cases_same_bits(&b.lse, &c.args.lse, "lse");
    for (int64_t i = 0; i < tokens * s.hq; i++)
        ck_assert_double_eq(((const float *)by_token.data)[i],
                            ((const float *)c.args.lse.data)[i % s.hq * tokens + i / s.hq]);
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

/* 7. mqa_logits
 * ------------- */

/* Without an lse the output has the same bits; the lse is no by-product that steers anything. */
START_TEST(lse_is_optional)
{
    rng                   r = stream("no_lse");
    const attention_shape s = ragged_shape();
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t *with = cases_bits(&c.args.out);
    c.args.lse = (etalon_tensor){ 0 };
    cases_poison_outputs(&c.memory);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t *without = cases_bits(&c.args.out);
    ck_assert_mem_eq(with, without, sizeof *with * (size_t)cases_count(&c.args.out));
    free(with);
    free(without);
    cases_free(&c.memory);
}
END_TEST

START_TEST(mqa_power_of_two_weights)
{
    rng             r = stream("mqa_weights");
    mqa_logits_case c;
    mqa_logits_make(&c, &r, 9, 67, 7, 32);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    uint32_t *plain = cases_bits(&c.args.logits);
    static const struct {
        const char *what;
        double      by;
    } moves[] = { { "weights", 4.0 }, { "kv_scale", 0.125 }, { "weights", -0.25 /* and the first 4 */ } };
    double total = 1.0;
    for (size_t i = 0; i < COUNT_OF(moves); i++) {
        const etalon_tensor *t = strcmp(moves[i].what, "weights") == 0 ? &c.args.weights : &c.args.kv_scale;
        for (int64_t j = 0; j < cases_count(t); j++)
            cases_set(t, j, moves[i].by * cases_get(t, j));
        total *= moves[i].by;
        ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
        for (int64_t j = 0; j < 9 * 67; j++) {
            float before;
            memcpy(&before, &plain[j], sizeof before);
            cases_require(cases_get(&c.args.logits, j) == total * (double)before,
                          "%s: logits[%" PRId64 "]: %.9g, expected %.9g", moves[i].what, j,
                          cases_get(&c.args.logits, j), total * (double)before);
        }
    }
    free(plain);
    cases_free(&c.memory);
}
END_TEST

static void set_windows(const mqa_logits_case *c, int64_t first, int64_t last)
{
    cases_fill(&c->args.cu_seqlen_ks, (double)first);
    cases_fill(&c->args.cu_seqlen_ke, (double)last);
}

/* Unclean calls with [a, b) and then [b, c) leave what one call with [a, c) leaves, poison outside included. */
START_TEST(mqa_window_union)
{
    rng             r = stream("mqa_union"), again = r;
    mqa_logits_case one, two;
    mqa_logits_make(&one, &r, 5, 97, 3, 16);
    mqa_logits_make(&two, &again, 5, 97, 3, 16);
    one.args.clean_logits = two.args.clean_logits = 0;
    set_windows(&one, 10, 90);
    ck_assert_ok(cases_run_mqa_logits(&one.args, 2));
    for (int64_t from = 10; from < 90; from += 16) {
        set_windows(&two, from, from + 16);
        ck_assert_ok(cases_run_mqa_logits(&two.args, 2));
    }
    cases_same_bits(&two.args.logits, &one.args.logits, "logits");
    cases_free(&one.memory);
    cases_free(&two.memory);
}
END_TEST

/* A window over a longer K is the call over that part of K: the position of a key has no say. */
START_TEST(mqa_shifted_keys)
{
    rng             r = stream("mqa_shift");
    mqa_logits_case whole, part;
    mqa_logits_make(&whole, &r, 5, 97, 3, 16);
    mqa_logits_make(&part, &r, 5, 33, 3, 16);
    set_windows(&whole, 41, 41 + 33);
    etalon_mqa_logits_args a = whole.args;
    a.k = cases_cut(whole.args.k, 0, 41, 33);
    a.kv_scale = cases_cut(whole.args.kv_scale, 0, 41, 33);
    a.cu_seqlen_ks = part.args.cu_seqlen_ks;
    a.cu_seqlen_ke = part.args.cu_seqlen_ke;
    a.logits = part.args.logits;
    ck_assert_ok(cases_run_mqa_logits(&whole.args, 2));
    ck_assert_ok(cases_run_mqa_logits(&a, 2));
    const etalon_tensor cut = cases_cut(whole.args.logits, 1, 41, 33);
    cases_same_bits(&a.logits, &cut, "logits");
    cases_free(&whole.memory);
    cases_free(&part.memory);
}
END_TEST

/* Clean writes -inf outside the windows, unclean leaves every bit there; inside they agree. ks < 0, ke > N and ks >
 * ke included. */
START_TEST(mqa_clean_and_unclean)
{
    enum { M = 8, N = 40 };
    static const int64_t ks[M] = { 0, -5, 10, 30, 40, 41, INT32_MIN, 39 },
                         ke[M] = { 40, 7, 10, 20, 50, 60, INT32_MAX, 41 };
    static const int64_t first[M] = { 0, 0, 10, 30, 40, 40, 0, 39 }, last[M] = { 40, 7, 10, 30, 40, 40, 40, 40 };
    rng                  r = stream("mqa_clean"), again = r;
    mqa_logits_case      clean, unclean;
    mqa_logits_make(&clean, &r, M, N, 2, 8);
    mqa_logits_make(&unclean, &again, M, N, 2, 8);
    for (int64_t m = 0; m < M; m++) {
        cases_set(&clean.args.cu_seqlen_ks, m, (double)ks[m]);
        cases_set(&clean.args.cu_seqlen_ke, m, (double)ke[m]);
    }
    unclean.args.cu_seqlen_ks = clean.args.cu_seqlen_ks;
    unclean.args.cu_seqlen_ke = clean.args.cu_seqlen_ke;
    unclean.args.clean_logits = 0;
    ck_assert_ok(cases_run_mqa_logits(&clean.args, 2));
    ck_assert_ok(cases_run_mqa_logits(&unclean.args, 2));
    for (int64_t m = 0; m < M; m++) {
        const etalon_tensor row[2] = { cases_fix(clean.args.logits, 0, m), cases_fix(unclean.args.logits, 0, m) };
        for (int64_t n = 0; n < N; n++) {
            const etalon_tensor cell[2] = { cases_cut(row[0], 0, n, 1), cases_cut(row[1], 0, n, 1) };
            if (n >= first[m] && n < last[m]) {
                cases_same_bits(&cell[0], &cell[1], "inside");
                cases_written(&cell[0], "inside");
            } else {
                cases_require(cases_get(&cell[0], 0) == -(double)INFINITY, "row %" PRId64 ", key %" PRId64 ": not -inf",
                              m, n);
                cases_untouched(&cell[1], "outside");
            }
        }
    }
    cases_free(&clean.memory);
    cases_free(&unclean.memory);
}
END_TEST

/* Compressed logits are the others, moved to the left; what the width cuts off is not written. */
START_TEST(mqa_compressed_is_shifted)
{
    enum { M = 9, N = 67, MOST = 80 };
    static const int64_t ks[M] = { 0, 5, 10, 30, 66, 67, 80, -4, 40 }, ke[M] = { 67, 5, 60, 31, 67, 67, 90, 9, 20 };
    static const int64_t widths[] = { 1, 3, 50, N, MOST };
    rng                  r = stream("mqa_compressed");
    mqa_logits_case      c;
    mqa_logits_make(&c, &r, M, N, 3, 16);
    for (int64_t m = 0; m < M; m++) {
        cases_set(&c.args.cu_seqlen_ks, m, (double)ks[m]);
        cases_set(&c.args.cu_seqlen_ke, m, (double)ke[m]);
    }
    cases_seal(&c.memory);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    const etalon_tensor whole = c.args.logits;
    mqa_logits_compress(&c, widths[_i / 2]);
    c.args.clean_logits = _i % 2;
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    for (int64_t m = 0; m < M; m++) {
        const int64_t       first = ks[m] < 0 ? 0 : ks[m] > N ? N : ks[m], last = ke[m] > N ? N : ke[m];
        const etalon_tensor row = cases_fix(c.args.logits, 0, m), from = cases_fix(whole, 0, m);
        for (int64_t column = 0; column < widths[_i / 2]; column++) {
            const etalon_tensor got = cases_cut(row, 0, column, 1);
            if (first + column < last) {
                const etalon_tensor want = cases_cut(from, 0, first + column, 1);
                cases_same_bits(&got, &want, "compressed");
            } else if (_i % 2 == 1) {
                cases_require(cases_get(&got, 0) == -(double)INFINITY, "row %" PRId64 ": not -inf", m);
            } else {
                cases_untouched(&got, "after the window");
            }
        }
    }
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

/* Rows of a sequence are the rows of one-row sequences with the same blocks: next_n groups, and nothing else. */
START_TEST(mqa_next_n_is_rows)
{
    enum { B = 3, T = 4, H = 5, D = 33 };
    rng                   r = stream("mqa_next_n");
    mqa_logits_paged_case c, one;
    static const int64_t  lens[B * T] = { 61, 62, 63, 64, 0, 7, 200, 1, 90, 5, 0, 65 };
    mqa_logits_paged_make(
        &c, &r, &(mqa_logits_paged_shape){ .b = B, .next_n = T, .h = H, .d = D, .lens = lens, .block_size = 16 });
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    for (int64_t m = 0; m < B * T; m++) {
        mqa_logits_paged_make(&one, &r,
                              &(mqa_logits_paged_shape){ .b = 1,
                                                         .next_n = 1,
                                                         .h = H,
                                                         .d = D,
                                                         .lens = &lens[m],
                                                         .block_size = 16,
                                                         .max_context_len = c.args.logits.shape[1] });
        etalon_mqa_logits_paged_args a = one.args;
        a.q = cases_cut(cases_cut(c.args.q, 0, m / T, 1), 1, m % T, 1);
        a.weights = cases_cut(c.args.weights, 0, m, 1);
        a.kv_cache = c.args.kv_cache;
        a.block_tables = cases_cut(c.args.block_tables, 0, m / T, 1);
        ck_assert_ok(cases_run_mqa_logits_paged(&a, 1));
        const etalon_tensor row = cases_cut(c.args.logits, 0, m, 1);
        cases_same_bits(&a.logits, &row, "logits");
        cases_free(&one.memory);
    }
    cases_free(&c.memory);
}
END_TEST

/* The dense operation on the keys of a sequence, gathered, has the same bits: block sizes and gaps have no say. */
START_TEST(mqa_paged_is_dense)
{
    enum { T = 3, H = 6, D = 36, N = 150 };
    static const int64_t  sizes[] = { 1, 3, 16, 64, 1072 };
    rng                   r = stream("mqa_paged");
    mqa_logits_paged_case c;
    mqa_logits_case       dense;
    mqa_logits_paged_make(&c, &r,
                          &(mqa_logits_paged_shape){ .b = 1,
                                                     .next_n = T,
                                                     .h = H,
                                                     .d = D,
                                                     .lens = LENS(N - 2, N - 1, N),
                                                     .block_size = sizes[_i],
                                                     .max_context_len = N,
                                                     .spare_blocks = 2,
                                                     .gap = 4 * _i,
                                                     .head_axis = _i % 2 == 1 });
    mqa_logits_make(&dense, &r, T, N, H, D);
    for (int64_t n = 0; n < N; n++) {
        const etalon_tensor key = mqa_logits_paged_key(&c.args, 0, n), scale = mqa_logits_paged_scale(&c.args, 0, n);
        const etalon_tensor to = cases_fix(dense.args.k, 0, n), scale_to = cases_fix(dense.args.kv_scale, 0, n);
        cases_copy(&to, &key);
        cases_copy(&scale_to, &scale);
    }
    for (int64_t t = 0; t < T; t++)
        cases_set(&dense.args.cu_seqlen_ke, t, (double)(N - 2 + t));
    dense.args.q = cases_fix(c.args.q, 0, 0);
    dense.args.weights = c.args.weights;
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    ck_assert_ok(cases_run_mqa_logits(&dense.args, 2));
    cases_same_bits(&c.args.logits, &dense.args.logits, "logits");
    cases_verify(&c.memory);
    cases_free(&c.memory);
    cases_free(&dense.memory);
}
END_TEST

/* U8 is the format of q, and a fourth dimension is none. */
START_TEST(mqa_paged_views_of_a_cache)
{
    rng                   r = stream("mqa_views");
    mqa_logits_paged_case c;
    mqa_logits_paged_make(&c, &r,
                          &(mqa_logits_paged_shape){ .b = 2,
                                                     .next_n = 2,
                                                     .h = 3,
                                                     .d = 32,
                                                     .lens = LENS(5, 70, 64, 0),
                                                     .q = _i == 0 ? ETALON_E4M3FN : ETALON_E4M3FNUZ,
                                                     .kv = _i == 0 ? ETALON_E4M3FN : ETALON_E4M3FNUZ });
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    uint32_t *want = cases_bits(&c.args.logits);
    c.args.kv_cache.dtype = ETALON_U8;
    c.args.kv_cache.rank = 4;
    c.args.kv_cache.shape[3] = c.args.kv_cache.shape[2];
    c.args.kv_cache.stride[3] = 1;
    c.args.kv_cache.shape[2] = 1;
    c.args.kv_cache.stride[2] = 12345; /* of an extent of 1: nothing is asked of it */
    cases_poison_outputs(&c.memory);
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    uint32_t *got = cases_bits(&c.args.logits);
    ck_assert_mem_eq(got, want, sizeof *got * (size_t)cases_count(&c.args.logits));
    free(got);
    free(want);
    cases_free(&c.memory);
}
END_TEST

/* The order of the heads changes the order of a sum and nothing else: both orders lie within the docstring's bound. */
START_TEST(mqa_head_permutation)
{
    rng             r = stream("mqa_heads");
    mqa_logits_case c, back;
    mqa_logits_make(&c, &r, 5, 65, 32, 64);
    mqa_logits_make(&back, &r, 5, 65, 32, 64);
    etalon_mqa_logits_args a = c.args;
    a.q = reversed(a.q, 1);
    a.weights = reversed(a.weights, 1);
    a.logits = back.args.logits;
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    ck_assert_ok(cases_run_mqa_logits(&a, 2));
    twin_mqa_logits_result twin;
    twin_mqa_logits(&c.args, &twin);
    for (int64_t i = 0; i < 5 * 65; i++)
        cases_require(fabs(cases_get(&a.logits, i) - cases_get(&c.args.logits, i)) <= 2.0 * twin.bound[i],
                      "logits[%" PRId64 "]: %.9g and %.9g", i, cases_get(&a.logits, i), cases_get(&c.args.logits, i));
    twin_mqa_logits_free(&twin);
    cases_free(&c.memory);
    cases_free(&back.memory);
}
END_TEST

/* 8. Poison
 * --------- */

/* Keys that no row sees (left of the window, and past the causal edge of every row) may hold NaN or zeros. */
START_TEST(unseen_keys_have_no_say)
{
    rng              r = stream("unseen");
    attention_shape  s = { .b = 1,
                           .hq = 2,
                           .hkv = 1,
                           .dqk = 16,
                           .dv = 16,
                           .q_lens = LENS(3),
                           .k_lens = LENS(90),
                           .causal = 1,
                           .window_left = 11 };
    fmha_varlen_case c;
    fmha_varlen_make(&c, &r, &s);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t           *out = cases_bits(&c.args.out), *lse = cases_bits(&c.args.lse);
    const etalon_tensor k = cases_cut(c.args.k, 0, 0, 90 - 3 - 10), v = cases_cut(c.args.v, 0, 0, 90 - 3 - 10);
    cases_poison(&k);
    cases_poison(&v);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t *out_now = cases_bits(&c.args.out), *lse_now = cases_bits(&c.args.lse);
    ck_assert_mem_eq(out, out_now, sizeof *out * (size_t)cases_count(&c.args.out));
    ck_assert_mem_eq(lse, lse_now, sizeof *lse * (size_t)cases_count(&c.args.lse));
    free(out);
    free(lse);
    free(out_now);
    free(lse_now);
    cases_free(&c.memory);
}
END_TEST

/* NaN in the last key of K or V, at one head dim: of eight rows, two tokens of four heads, those of the second token
 * see it. */
START_TEST(last_key_nan_stays_in_its_rows)
{
    enum { DQK = 64, DV = 96, KEYS = 200, PAGE = 16, HEADS = 4, DIM = 37 };
    const bool            in_k = _i == 0;
    rng                   r = stream("last_nan");
    const attention_shape s = { .b = 1,
                                .hq = HEADS,
                                .hkv = 1,
                                .dqk = DQK,
                                .dv = DV,
                                .q_lens = LENS(2),
                                .k_lens = LENS(KEYS),
                                .q = ETALON_BF16,
                                .kv = ETALON_E4M3FN,
                                .out = ETALON_F32,
                                .index = ETALON_I32,
                                .causal = 1,
                                .page_size = PAGE };
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    const int64_t slot = (int64_t)cases_get(&c.args.block_tables, (KEYS - 1) / PAGE) * PAGE + (KEYS - 1) % PAGE;
    cases_set(in_k ? &c.args.k_cache : &c.args.v_cache, slot * (in_k ? DQK : DV) + DIM, (double)NAN);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        cases_require(isnan(cases_get(&c.args.out, i)) == (i / DV / HEADS == 1 && (in_k || i % DV == DIM)),
                      "out[%" PRId64 "]: %g", i, cases_get(&c.args.out, i));
    for (int64_t i = 0; i < cases_count(&c.args.lse); i++)
        cases_require(isnan(cases_get(&c.args.lse, i)) == (in_k && i % 2 == 1), "lse[%" PRId64 "]", i);
    cases_free(&c.memory);
}
END_TEST

/* NaN in one visible key reaches the rows and heads that see it, and no other. */
START_TEST(visible_nan_stays_in_its_rows)
{
    rng                   r = stream("nan");
    const attention_shape s = {
        .b = 2, .hq = 4, .hkv = 2, .dqk = 16, .dv = 16, .q_lens = LENS(5, 3), .k_lens = LENS(40, 20), .causal = 1
    };
    fmha_varlen_case c;
    fmha_varlen_make(&c, &r, &s);
    cases_set(&c.args.k, ((40 - 2) * 2 + 1) * 16, (double)NAN); /* sequence 0, key 38, KV head 1: rows 3 and 4 see it */
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    for (int64_t i = 0; i < cases_count(&c.args.out); i++) {
        const int64_t token = i / 16 / 4, h = i / 16 % 4;
        const bool    sees = (token == 3 || token == 4) && h >= 2;
        cases_require(isnan(cases_get(&c.args.out, i)) == sees, "out[%" PRId64 "]: %g", i, cases_get(&c.args.out, i));
    }
    for (int64_t i = 0; i < cases_count(&c.args.lse); i++)
        cases_require(isnan(cases_get(&c.args.lse, i)) == ((i % 8 == 3 || i % 8 == 4) && i / 8 >= 2),
                      "lse[%" PRId64 "]", i);
    cases_free(&c.memory);
}
END_TEST

/* 11. Empty extents
 * ----------------- */

START_TEST(fmha_empty_grid)
{
    const int64_t         batch = _i & 1 ? 2 : 0, rows = _i & 2 ? 3 : 0, keys = _i & 4 ? 5 : 0;
    const attention_shape s = { .b = batch,
                                .hq = 2,
                                .hkv = 1,
                                .dqk = 8,
                                .dv = 8,
                                .q_lens = LENS(rows, rows),
                                .k_lens = LENS(keys, keys),
                                .causal = _i & 8 };
    rng                   r = stream("empty");
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 5));
    for (int64_t i = 0; i < cases_count(&c.args.out) && keys == 0; i++)
        ck_assert_double_eq(cases_get(&c.args.out, i), 0.0);
    for (int64_t i = 0; i < cases_count(&c.args.lse) && keys == 0; i++)
        ck_assert_double_eq(cases_get(&c.args.lse, i), -(double)INFINITY);
    cases_written(&c.args.out, "out");
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

START_TEST(pa_mtp_empty_grid)
{
    const int64_t         batch = _i & 1 ? 2 : 0, rows = _i & 2 ? 3 : 0, keys = _i & 4 ? 5 : 0;
    const attention_shape s = { .b = batch,
                                .hq = 2,
                                .hkv = 1,
                                .dqk = 8,
                                .dv = 8,
                                .q_lens = LENS(rows, rows),
                                .k_lens = LENS(keys, keys),
                                .causal = _i & 8 };
    rng                   r = stream("pa_empty");
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 5));
    for (int64_t i = 0; i < cases_count(&c.args.out) && keys == 0; i++)
        ck_assert_double_eq(cases_get(&c.args.out, i), 0.0);
    for (int64_t i = 0; i < cases_count(&c.args.lse) && keys == 0; i++)
        ck_assert_double_eq(cases_get(&c.args.lse, i), -(double)INFINITY);
    cases_written(&c.args.out, "out");
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

START_TEST(mqa_empty_grid)
{
    rng             r = stream("mqa_empty");
    mqa_logits_case c;
    mqa_logits_make(&c, &r, _i & 1 ? 3 : 0, _i & 2 ? 5 : 0, 2, 8);
    c.args.clean_logits = _i & 4;
    ck_assert_ok(cases_run_mqa_logits(&c.args, 5));
    cases_written(&c.args.logits, "logits");
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

/* q_len 0 to 8 over 0 to 9 keys: row t of n sees the first L - n + t + 1 keys, none where that is not positive. With
 * q = 0 and V[j] = 2^j in E4M3FN's range the sum of what it saw is exact. */
START_TEST(short_sequences_are_tail_aligned)
{
    enum { LENGTHS = 10 };
    int64_t q_lens[LENGTHS], k_lens[LENGTHS];
    for (int64_t b = 0; b < LENGTHS; b++) {
        q_lens[b] = _i;
        k_lens[b] = b;
    }
    const attention_shape s = { .b = LENGTHS,
                                .hq = 3,
                                .hkv = 1,
                                .dqk = 4,
                                .dv = 1,
                                .q_lens = q_lens,
                                .k_lens = k_lens,
                                .causal = 1,
                                .page_size = 3 };
    rng                   r = stream("short");
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    cases_fill(&c.args.q, 0.0);
    for (int64_t b = 0; b < LENGTHS; b++)
        for (int64_t j = 0; j < k_lens[b]; j++) {
            const etalon_tensor v = pa_mtp_slot(&c.args, &c.args.v_cache, b, j);
            cases_fill(&v, ldexp(1.0, (int)j));
        }
    cases_seal(&c.memory);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    for (int64_t i = 0; i < cases_count(&c.args.out); i++) {
        const int64_t token = i / 3, b = token / _i, sees = b - _i + token % _i + 1;
        const double  out = cases_get(&c.args.out, i), lse = cases_get(&c.args.lse, i % 3 * c.args.q.shape[0] + token);
        if (sees <= 0) {
            cases_require(out == 0.0 && lse == -(double)INFINITY, "L %" PRId64 ", row %" PRId64 ": %g, lse %g", b,
                          token % _i, out, lse);
            continue;
        }
        const double want = (ldexp(1.0, (int)sees) - 1.0) / (double)sees, e = 2.0 * TWIN_U * log((double)sees);
        cases_require(fabs(out - want) <= twin_out_relative(e) * want,
                      "L %" PRId64 ", row %" PRId64 ": %.9g, expected %.9g", b, token % _i, out, want);
    }
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

/* 12. Repeats
 * ----------- */

/* Twenty calls on several threads, lengths changed and changed back in between. */
START_TEST(twenty_repeats)
{
    rng                   r = stream("repeats");
    const attention_shape s = ragged_shape();
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 1));
    uint32_t *out = cases_bits(&c.args.out);
    for (int i = 0; i < 20; i++) {
        const int threads = 1 + i % 7;
        cases_set(&c.args.seq_lens, 1, 17.0 + i);
        ck_assert_ok(cases_run_pa_mtp(&c.args, threads));
        cases_set(&c.args.seq_lens, 1, (double)s.k_lens[1]);
        cases_poison_outputs(&c.memory);
        ck_assert_ok(cases_run_pa_mtp(&c.args, threads));
        uint32_t *now = cases_bits(&c.args.out);
        ck_assert_mem_eq(out, now, sizeof *out * (size_t)cases_count(&c.args.out));
        free(now);
    }
    free(out);
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

static void fill_rows(TCase *tcase)
{
    tcase_add_loop_test(tcase, v_ones_gives_ones, 0, 2);
    tcase_add_loop_test(tcase, zero_q_gives_the_mean, 0, 2);
    tcase_add_loop_test(tcase, one_hot_v_shows_the_support, 0, (int)COUNT_OF(supports));
    tcase_add_loop_test(tcase, page_permutation_changes_no_bit, 0, 4);
    tcase_add_loop_test(tcase, paged_is_packed_on_gathered_rows, 0, 5);
    tcase_add_test(tcase, fmha_batch_composition);
    tcase_add_test(tcase, pa_mtp_batch_composition);
    tcase_add_test(tcase, mqa_rows_are_independent);
    tcase_add_test(tcase, power_of_two_descales_move);
    tcase_add_test(tcase, power_of_two_v_descale_scales_out);
    tcase_add_loop_test(tcase, fmha_strided_is_dense, 0, 12);
    tcase_add_loop_test(tcase, pa_mtp_strided_is_dense, 0, 12);
    tcase_add_test(tcase, hnd_is_nhd);
    tcase_add_test(tcase, gqa_is_repeated_kv);
    tcase_add_test(tcase, head_permutation);
    tcase_add_loop_test(tcase, merged_chunks_are_one_call, 0, (int)COUNT_OF(chunk_lists));
    tcase_add_test(tcase, lse_strides);
    tcase_add_test(tcase, lse_is_optional);
    tcase_add_test(tcase, mqa_power_of_two_weights);
    tcase_add_test(tcase, mqa_window_union);
    tcase_add_test(tcase, mqa_shifted_keys);
    tcase_add_test(tcase, mqa_clean_and_unclean);
    tcase_add_loop_test(tcase, mqa_compressed_is_shifted, 0, 10);
    tcase_add_test(tcase, mqa_next_n_is_rows);
    tcase_add_loop_test(tcase, mqa_paged_is_dense, 0, 5);
    tcase_add_loop_test(tcase, mqa_paged_views_of_a_cache, 0, 2);
    tcase_add_test(tcase, mqa_head_permutation);
    tcase_add_test(tcase, unseen_keys_have_no_say);
    tcase_add_test(tcase, visible_nan_stays_in_its_rows);
    tcase_add_loop_test(tcase, last_key_nan_stays_in_its_rows, 0, 2);
    tcase_add_loop_test(tcase, fmha_empty_grid, 0, 16);
    tcase_add_loop_test(tcase, pa_mtp_empty_grid, 0, 16);
    tcase_add_loop_test(tcase, mqa_empty_grid, 0, 8);
    tcase_add_loop_test(tcase, short_sequences_are_tail_aligned, 0, 9);
    tcase_add_test(tcase, twenty_repeats);
}

/* What runs the model rows or merge_states alone. */
static void fill_once(TCase *tcase)
{
    tcase_add_loop_test(tcase, merge_is_symmetric, 0, 20);
}

int main(void)
{
    return cases_main("metamorphic", fill_rows, fill_once);
}
