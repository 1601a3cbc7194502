/* Random problems: every row of every table against the float64 twin within the docstring's bound, the fast rows
 * against the reference's own error, the model rows against the twin of the model, the same bits for every number of
 * threads, nothing written that should not be.
 *
 *   ETALON_SEED=N check_twin     replays; a failure names the seed and the stream of its case
 *   ETALON_SHARE=N check_twin    one test in N of each kind, where arithmetic is slow: under an emulator
 */
#include "cases.h"
#include "testing.h"
#include "twin.h"

#include <inttypes.h>
#include <math.h>

/* Errors over the size of the result that they are in, so that every case counts alike. */
typedef struct accuracy {
    double  squares, most; /* sum of squares, largest */
    int64_t count;
} accuracy;

/* What was seen of one row, over all the processes that Check forks. */
typedef struct stats {
    double   out_error, out_ratio; /* largest |measured - twin|, and the same over its bound; F32 outputs */
    double   bf16_ratio;           /* BF16 outputs */
    double   lse_error, lse_ratio;
    double   loss_ratio; /* model rows: the cost of rounding P over its bound */
    int64_t  cases, rows, rows_without_bound;
    accuracy own[2], reference[2]; /* of F32 out and of lse; the reference's over the same cases */
} stats;

static stats *seen; /* shared memory, made before any fork; one for each row */

static void raise_to(double *most, double x)
{
    *most = x > *most ? x : *most;
}

/* Which case, for the messages. */
static uint64_t    stream_now;
static const char *row_now = "";

#define CASE_FORMAT "ETALON_SEED=%" PRIu64 " stream %" PRIu64 ": %s"
#define CASE_VALUES cases_seed(), stream_now, row_now

static double ratio_of(double error, double bound)
{
    return bound > 0.0 ? error / bound : error > 0.0 ? (double)INFINITY : 0.0;
}

/* One case: what a row does to it. */
typedef struct seen_case {
    stats   *s;
    accuracy out, lse;
} seen_case;

static void count_error(accuracy *a, double error, double size)
{
    const double relative = size > 0.0 ? error / size : 0.0;
    a->squares += relative * relative;
    a->count++;
    raise_to(&a->most, relative);
}

/* Root of the mean square of what is finite. */
static double size_of(const double *x, int64_t count)
{
    double  squares = 0.0;
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(x[i])) {
            squares += x[i] * x[i];
            finite++;
        }
    return finite > 0 ? sqrt(squares / (double)finite) : 0.0;
}

static void compare_lse(const etalon_tensor *lse, const twin_attention *twin, seen_case *seen_now)
{
    stats       *s = seen_now->s;
    const double size = size_of(twin->lse, twin->hq * twin->t);
    for (int64_t i = 0; lse->data != NULL && i < cases_count(lse); i++) {
        const double got = cases_get(lse, i), want = twin->lse[i];
        cases_require((got == -(double)INFINITY) == (want == -(double)INFINITY),
                      CASE_FORMAT ": lse[%" PRId64 "]: %g, twin %g", CASE_VALUES, i, got, want);
        if (want == -(double)INFINITY)
            continue;
        const double error = fabs(got - want);
        cases_require(error <= twin->lse_bound[i],
                      CASE_FORMAT ": lse[%" PRId64 "]: %.9g, twin %.9g, error %.3g, bound %.3g", CASE_VALUES, i, got,
                      want, error, twin->lse_bound[i]);
        raise_to(&s->lse_error, error);
        raise_to(&s->lse_ratio, ratio_of(error, twin->lse_bound[i]));
        count_error(&seen_now->lse, error, size);
    }
}

static void compare_out(const etalon_tensor *out, const twin_attention *twin, seen_case *seen_now)
{
    stats       *s = seen_now->s;
    const double size = size_of(twin->out, cases_count(out));
    for (int64_t i = 0; i < cases_count(out); i++) {
        const int64_t token = i / twin->dv / twin->hq, head = i / twin->dv % twin->hq, row = head * twin->t + token;
        const double  got = cases_get(out, i), error = fabs(got - twin->out[i]);
        s->rows += i % twin->dv == 0;
        if (twin->e[row] > 0x1p-6) { /* the docstring states no bound there */
            s->rows_without_bound += i % twin->dv == 0;
            continue;
        }
        cases_require(error <= twin->out_bound[i],
                      CASE_FORMAT ": out[%" PRId64 ", %" PRId64 ", %" PRId64
                                  "]: %.9g, twin %.9g, error %.3g, bound %.3g",
                      CASE_VALUES, token, head, i % twin->dv, got, twin->out[i], error, twin->out_bound[i]);
        raise_to(out->dtype == ETALON_BF16 ? &s->bf16_ratio : &s->out_ratio, ratio_of(error, twin->out_bound[i]));
        if (out->dtype == ETALON_BF16) /* its own rounding hides the rest */
            continue;
        raise_to(&s->out_error, error);
        count_error(&seen_now->out, error, size);
    }
}

/* The rounding of P may not cost more than half a code of each weight. Both sides are the twin's, so no fp32 error
 * enters. */
static void compare_loss(const twin_attention *twin, stats *s)
{
    for (int64_t i = 0; i < twin->t * twin->hq * twin->dv; i++) {
        const double loss = fabs(twin->out[i] - twin->unrounded[i]);
        const double slack = 1e-12 * fabs(twin->unrounded[i]); /* double's own rounding, some thousand sums */
        cases_require(loss <= twin->loss_bound[i] + slack, CASE_FORMAT ": cell %" PRId64 ": loss %.3g, bound %.3g",
                      CASE_VALUES, i, loss, twin->loss_bound[i]);
        raise_to(&s->loss_ratio, ratio_of(loss > slack ? loss : 0.0, twin->loss_bound[i] + slack));
    }
}

/* A call of any operation. */
typedef struct call {
    const char  *op;
    const void  *args;
    const char **kernel; /* in args */
    etalon_status (*run)(const void *args, int threads);
    cases_memory *memory;
    etalon_tensor first, second; /* the outputs; without data where there is none */
    void (*compare)(const struct call *call, const void *twin, seen_case *seen_now);
} call;

static uint32_t *same_as_before(uint32_t *before, const etalon_tensor *t, int threads);

/* 2, 5 and 64 threads and a repeat give the bits of the first call, on one thread. Outputs are poisoned before each.
 * False, and nothing written, if the row refuses the case. */
static bool run_repeatedly(const call *c)
{
    static const int threads[] = { 1, 2, 5, 64, 1 };
    uint32_t        *first = NULL, *second = NULL;
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        cases_poison_outputs(c->memory);
        const etalon_status status = c->run(c->args, threads[i]);
        if (status == ETALON_ERROR_UNSUPPORTED && i == 0) {
            cases_untouched(&c->first, *c->kernel);
            return false;
        }
        cases_require(status == ETALON_OK, CASE_FORMAT ": %s", CASE_VALUES, etalon_last_error());
        first = same_as_before(first, &c->first, threads[i]);
        second = same_as_before(second, &c->second, threads[i]);
    }
    free(first);
    free(second);
    cases_verify(c->memory);
    return true;
}

static uint32_t *same_as_before(uint32_t *before, const etalon_tensor *t, int threads)
{
    if (t->data == NULL)
        return NULL;
    uint32_t *now = cases_bits(t);
    for (int64_t i = 0; before != NULL && i < cases_count(t); i++)
        cases_require(before[i] == now[i], CASE_FORMAT ": element %" PRId64 ": other bits with %d threads", CASE_VALUES,
                      i, threads);
    free(before);
    return now;
}

static void written(const etalon_tensor *t)
{
    for (int64_t i = 0; t->data != NULL && i < cases_count(t); i++)
        cases_require(!isnan(cases_get(t, i)), CASE_FORMAT ": element %" PRId64 " is NaN or was not written",
                      CASE_VALUES, i);
}

enum { CASES_A_TEST = 10, TESTS = 30, FAR_TESTS = 12 };

/* Stream numbers of the ops do not meet. */
enum {
    STREAM_PA_MTP,
    STREAM_PA_MTP_MODEL,
    STREAM_FMHA,
    STREAM_FMHA_MODEL,
    STREAM_MQA,
    STREAM_MERGE,
    STREAM_PAGED,
    STREAM_COUNT
};

static rng next_case(int test, int i, int op)
{
    stream_now = (uint64_t)op << 32 | (uint64_t)(test * CASES_A_TEST + i);
    return rng_make(cases_seed(), stream_now);
}

static void add_accuracy(accuracy *sum, const accuracy *a)
{
    sum->squares += a->squares;
    sum->count += a->count;
    raise_to(&sum->most, a->most);
}

/* The row's result within the bound; false if the row refuses the case. */
static bool check_row(const call *c, const char *row, const void *twin, seen_case *seen_now)
{
    *c->kernel = row_now = row;
    *seen_now = (seen_case){ .s = &seen[cases_row_number(row)] };
    if (!run_repeatedly(c))
        return false;
    c->compare(c, twin, seen_now);
    seen_now->s->cases++;
    return true;
}

/* The reference, which takes everything, then the other rows that this CPU has and that do not refuse. */
static void check_rows(const call *c, const void *twin)
{
    cases_row rows[CASES_ROWS];
    const int count = cases_rows(rows);
    seen_case reference, own;
    char      name[64];
    snprintf(name, sizeof name, "%s_ref", c->op);
    cases_require(check_row(c, name, twin, &reference), CASE_FORMAT ": %s", CASE_VALUES, etalon_last_error());
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].op, c->op) != 0 || !rows[i].available || strcmp(rows[i].name, name) == 0 ||
            !check_row(c, rows[i].name, twin, &own))
            continue;
        add_accuracy(&own.s->own[0], &own.out);
        add_accuracy(&own.s->own[1], &own.lse);
        add_accuracy(&own.s->reference[0], &reference.out);
        add_accuracy(&own.s->reference[1], &reference.lse);
    }
}

static void compare_attention(const call *c, const void *twin, seen_case *seen_now)
{
    written(&c->first);
    written(&c->second);
    compare_out(&c->first, twin, seen_now);
    compare_lse(&c->second, twin, seen_now);
}

#define CALL_OF(name, c, first_, second_, compare_) \
    { .op = #name,                                  \
      .args = &(c)->args,                           \
      .kernel = &(c)->args.kernel,                  \
      .run = run_##name,                            \
      .memory = &(c)->memory,                       \
      .first = first_,                              \
      .second = second_,                            \
      .compare = compare_ }

#define RUN_BY_ADDRESS(name)                                       \
    static etalon_status run_##name(const void *args, int threads) \
    {                                                              \
        return cases_run_##name(args, threads);                    \
    }
RUN_BY_ADDRESS(pa_mtp)
RUN_BY_ADDRESS(fmha_varlen)
RUN_BY_ADDRESS(mqa_logits)
RUN_BY_ADDRESS(mqa_logits_paged)
RUN_BY_ADDRESS(merge_states)

static void pa_mtp_case_within_bound(pa_mtp_case *c)
{
    twin_attention twin;
    const call     call_of = CALL_OF(pa_mtp, c, c->args.out, c->args.lse, compare_attention);
    twin_pa_mtp(&c->args, &twin);
    check_rows(&call_of, &twin);
    twin_attention_free(&twin);
    cases_free(&c->memory);
}

START_TEST(pa_mtp_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng         r = next_case(_i, i, STREAM_PA_MTP);
        pa_mtp_case c;
        pa_mtp_draw(&c, &r);
        pa_mtp_case_within_bound(&c);
    }
}
END_TEST

START_TEST(pa_mtp_far_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng         r = next_case(_i, i, STREAM_PA_MTP + STREAM_COUNT);
        pa_mtp_case c;
        pa_mtp_draw_far(&c, &r);
        pa_mtp_case_within_bound(&c);
    }
}
END_TEST

/* Up to eight rows share a KV head, over whole vectors of head dims, and keys end anywhere in a tile or a block of it. */
START_TEST(pa_mtp_few_rows_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng             r = next_case(_i, i, STREAM_PA_MTP_MODEL + STREAM_COUNT);
        const int64_t   q_lens[] = { rng_between(&r, 1, 4) }, k_lens[] = { rng_between(&r, 1, 600) };
        pa_mtp_case     c;
        attention_shape s = { .b = 1,
                              .hq = rng_between(&r, 1, 8 / q_lens[0]),
                              .hkv = 1,
                              .dqk = 32 * rng_between(&r, 1, ETALON_MAX_HEAD_DIM / 32),
                              .dv = 16 * rng_between(&r, 1, ETALON_MAX_HEAD_DIM / 16),
                              .q_lens = q_lens,
                              .k_lens = k_lens,
                              .q = ETALON_BF16,
                              .kv = (etalon_dtype)RNG_PICK(&r, ETALON_E4M3FN, ETALON_E4M3FNUZ),
                              .out = ETALON_F32,
                              .index = ETALON_I32,
                              .causal = rng_chance(&r, 50),
                              .window_left = (int32_t)RNG_PICK(&r, 0, 0, 65, 400),
                              .page_size = RNG_PICK(&r, 1, 3, 16, 64) };
        pa_mtp_make(&c, &r, &s);
        pa_mtp_case_within_bound(&c);
    }
}
END_TEST

static void fmha_varlen_case_within_bound(fmha_varlen_case *c)
{
    twin_attention twin;
    const call     call_of = CALL_OF(fmha_varlen, c, c->args.out, c->args.lse, compare_attention);
    twin_fmha_varlen(&c->args, &twin);
    check_rows(&call_of, &twin);
    twin_attention_free(&twin);
    cases_free(&c->memory);
}

START_TEST(fmha_varlen_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng              r = next_case(_i, i, STREAM_FMHA);
        fmha_varlen_case c;
        fmha_varlen_draw(&c, &r);
        fmha_varlen_case_within_bound(&c);
    }
}
END_TEST

START_TEST(fmha_varlen_far_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng              r = next_case(_i, i, STREAM_FMHA + STREAM_COUNT);
        fmha_varlen_case c;
        fmha_varlen_draw_far(&c, &r);
        fmha_varlen_case_within_bound(&c);
    }
}
END_TEST

static etalon_model_options draw_model(rng *r)
{
    return (etalon_model_options){ .p_scale = (etalon_p_scale)rng_below(r, 3),
                                   .tile_keys = (int32_t)RNG_PICK(r, 0, 32, 64, 96, 256),
                                   .p_terms = (int32_t)rng_below(r, 3) };
}

/* q as an _ref row must see it to have the scores of the model: rounded to E4M3FN, in its own dtype. */
static void round_q(pa_mtp_case *c)
{
    const etalon_tensor *q = &c->args.q;
    for (int64_t i = 0; i < cases_count(q) && (q->dtype == ETALON_BF16 || q->dtype == ETALON_F32); i++)
        cases_set(q, i, twin_round(cases_get(q, i), ETALON_E4M3FN));
    cases_seal(&c->memory);
}

START_TEST(pa_mtp_model_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng            r = next_case(_i, i, STREAM_PA_MTP_MODEL);
        pa_mtp_case    c;
        twin_attention twin;
        pa_mtp_draw(&c, &r);
        c.args.model = draw_model(&r);
        const call call_of = CALL_OF(pa_mtp, &c, c.args.out, c.args.lse, compare_attention);
        seen_case  seen_now;
        twin_pa_mtp_model(&c.args, &twin);
        cases_require(check_row(&call_of, "pa_mtp_model", &twin, &seen_now), CASE_FORMAT ": %s", CASE_VALUES,
                      etalon_last_error());
        compare_loss(&twin, seen_now.s);
        uint32_t *model_lse = c.args.lse.data == NULL ? NULL : cases_bits(&c.args.lse);
        round_q(&c);
        c.args.kernel = "pa_mtp_ref";
        ck_assert_ok(cases_run_pa_mtp(&c.args, 1));
        free(same_as_before(model_lse, &c.args.lse, 1));
        twin_attention_free(&twin);
        cases_free(&c.memory);
    }
}
END_TEST

START_TEST(fmha_varlen_model_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng              r = next_case(_i, i, STREAM_FMHA_MODEL);
        fmha_varlen_case c;
        twin_attention   twin;
        fmha_varlen_draw(&c, &r);
        c.args.model = draw_model(&r);
        const call call_of = CALL_OF(fmha_varlen, &c, c.args.out, c.args.lse, compare_attention);
        seen_case  seen_now;
        twin_fmha_varlen_model(&c.args, &twin);
        cases_require(check_row(&call_of, "fmha_varlen_model", &twin, &seen_now), CASE_FORMAT ": %s", CASE_VALUES,
                      etalon_last_error());
        compare_loss(&twin, seen_now.s);
        uint32_t *model_lse = c.args.lse.data == NULL ? NULL : cases_bits(&c.args.lse);
        c.args.kernel = "fmha_varlen_ref";
        ck_assert_ok(cases_run_fmha_varlen(&c.args, 1));
        free(same_as_before(model_lse, &c.args.lse, 1));
        twin_attention_free(&twin);
        cases_free(&c.memory);
    }
}
END_TEST

static void compare_logits(const call *c, const void *twin_result, seen_case *seen_now)
{
    const twin_mqa_logits_result *twin = twin_result;
    stats                        *s = seen_now->s;
    const double                  size = size_of(twin->logits, twin->m * twin->n);
    for (int64_t i = 0; i < twin->m * twin->n; i++) {
        const double        got = cases_get(&c->first, i), want = twin->logits[i];
        const etalon_tensor row = cases_fix(c->first, 0, i / twin->n);
        const etalon_tensor cell = cases_cut(row, 0, i % twin->n, 1);
        s->rows++;
        if (isnan(want)) {
            cases_untouched(&cell, "outside the window");
        } else if (isinf(want)) {
            cases_require(got == want, CASE_FORMAT ": logits[%" PRId64 "]: %g, expected -inf", CASE_VALUES, i, got);
        } else {
            const double error = fabs(got - want);
            cases_require(error <= twin->bound[i],
                          CASE_FORMAT ": logits[%" PRId64 "]: %.9g, twin %.9g, error %.3g, bound %.3g", CASE_VALUES, i,
                          got, want, error, twin->bound[i]);
            raise_to(&s->out_error, error);
            raise_to(&s->out_ratio, ratio_of(error, twin->bound[i]));
            count_error(&seen_now->out, error, size);
        }
    }
}

static void mqa_logits_case_within_bound(mqa_logits_case *c)
{
    twin_mqa_logits_result twin;
    const call             call_of = CALL_OF(mqa_logits, c, c->args.logits, (etalon_tensor){ 0 }, compare_logits);
    twin_mqa_logits(&c->args, &twin);
    check_rows(&call_of, &twin);
    twin_mqa_logits_free(&twin);
    cases_free(&c->memory);
}

START_TEST(mqa_logits_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng             r = next_case(_i, i, STREAM_MQA);
        mqa_logits_case c;
        mqa_logits_draw(&c, &r);
        mqa_logits_case_within_bound(&c);
    }
}
END_TEST

START_TEST(mqa_logits_far_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng             r = next_case(_i, i, STREAM_MQA + STREAM_COUNT);
        mqa_logits_case c;
        mqa_logits_draw_far(&c, &r);
        mqa_logits_case_within_bound(&c);
    }
}
END_TEST

static void mqa_logits_paged_case_within_bound(mqa_logits_paged_case *c)
{
    twin_mqa_logits_result twin;
    const call             call_of = CALL_OF(mqa_logits_paged, c, c->args.logits, (etalon_tensor){ 0 }, compare_logits);
    twin_mqa_logits_paged(&c->args, &twin);
    check_rows(&call_of, &twin);
    twin_mqa_logits_free(&twin);
    cases_free(&c->memory);
}

START_TEST(mqa_logits_paged_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng                   r = next_case(_i, i, STREAM_PAGED);
        mqa_logits_paged_case c;
        mqa_logits_paged_draw(&c, &r);
        mqa_logits_paged_case_within_bound(&c);
    }
}
END_TEST

START_TEST(mqa_logits_paged_far_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng                   r = next_case(_i, i, STREAM_PAGED + STREAM_COUNT);
        mqa_logits_paged_case c;
        mqa_logits_paged_draw_far(&c, &r);
        mqa_logits_paged_case_within_bound(&c);
    }
}
END_TEST

START_TEST(merge_states_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng               r = next_case(_i, i, STREAM_MERGE);
        merge_states_case c;
        twin_attention    twin;
        merge_states_draw(&c, &r);
        const call call_of = CALL_OF(merge_states, &c, c.args.out, c.args.lse, compare_attention);
        twin_merge_states(&c.args, &twin);
        check_rows(&call_of, &twin);
        twin_attention_free(&twin);
        cases_free(&c.memory);
    }
}
END_TEST

/* The twin's own formats, against values written in the header. */
START_TEST(twin_formats)
{
    static const struct {
        etalon_dtype dtype;
        uint16_t     code;
        double       value;
    } codes[] = { { ETALON_E4M3FN, 0x7E, 448.0 }, { ETALON_E4M3FN, 0x01, 0x1p-9 },  { ETALON_E4M3FN, 0x08, 0x1p-6 },
                  { ETALON_E4M3FN, 0xB8, -1.0 },  { ETALON_E4M3FNUZ, 0x7F, 240.0 }, { ETALON_E4M3FNUZ, 0x01, 0x1p-10 },
                  { ETALON_E4M3FNUZ, 0x40, 1.0 }, { ETALON_E5M2, 0x7B, 57344.0 },   { ETALON_E5M2, 0x01, 0x1p-16 },
                  { ETALON_BF16, 0x3F80, 1.0 },   { ETALON_BF16, 0xC2F7, -123.5 },  { ETALON_BF16, 0x0001, 0x1p-133 },
                  { ETALON_F16, 0x3C00, 1.0 },    { ETALON_F16, 0x7BFF, 65504.0 } };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        uint16_t back = 0;
        ck_assert_double_eq(twin_load(&codes[i].code, codes[i].dtype), codes[i].value);
        twin_store(&back, codes[i].dtype, codes[i].value);
        ck_assert_uint_eq(back, codes[i].code);
    }
    const uint8_t fn_nan = 0x7F, fnuz_nan = 0x80;
    ck_assert(isnan(twin_load(&fn_nan, ETALON_E4M3FN)) && isnan(twin_load(&fnuz_nan, ETALON_E4M3FNUZ)));
    ck_assert_double_eq(twin_round(17.0, ETALON_E4M3FN), 16.0); /* ties to even */
    ck_assert_double_eq(twin_round(19.0, ETALON_E4M3FN), 20.0);
    ck_assert_double_eq(twin_round(-1e9, ETALON_E4M3FN), -448.0);
    ck_assert_double_eq(twin_round(0x1p-10, ETALON_E4M3FN), 0.0);
}
END_TEST

static int share(void)
{
    const char *text = getenv("ETALON_SHARE");
    return text != NULL && atoi(text) > 1 ? atoi(text) : 1;
}

static void fill(TCase *tcase)
{
    const int tests = (TESTS + share() - 1) / share(), far_tests = (FAR_TESTS + share() - 1) / share();
    tcase_add_test(tcase, twin_formats);
    tcase_add_loop_test(tcase, mqa_logits_within_bound, 0, tests);
    tcase_add_loop_test(tcase, mqa_logits_far_within_bound, 0, far_tests);
    tcase_add_loop_test(tcase, mqa_logits_paged_within_bound, 0, tests);
    tcase_add_loop_test(tcase, mqa_logits_paged_far_within_bound, 0, far_tests);
    tcase_add_loop_test(tcase, merge_states_within_bound, 0, tests);
    tcase_add_loop_test(tcase, pa_mtp_within_bound, 0, tests);
    tcase_add_loop_test(tcase, pa_mtp_far_within_bound, 0, far_tests);
    tcase_add_loop_test(tcase, pa_mtp_few_rows_within_bound, 0, far_tests);
    tcase_add_loop_test(tcase, fmha_varlen_within_bound, 0, tests);
    tcase_add_loop_test(tcase, fmha_varlen_far_within_bound, 0, far_tests);
    tcase_add_loop_test(tcase, pa_mtp_model_within_bound, 0, tests);
    tcase_add_loop_test(tcase, fmha_varlen_model_within_bound, 0, tests);
}

/* A fast row has at most twice the reference's own error, in the mean: production kernels exchange sums' order for
 * speed, not accuracy. */
#define MOST_OF_REFERENCE 2.0

static double mean_error(const accuracy *a)
{
    return a->count > 0 ? sqrt(a->squares / (double)a->count) : 0.0;
}

/* True if the row is worse than it may be. */
static bool report_accuracy(const char *what, const accuracy *own, const accuracy *reference)
{
    if (own->count == 0)
        return false;
    printf("; %s error / that of _ref: rms %.3f, max %.3f", what, ratio_of(mean_error(own), mean_error(reference)),
           ratio_of(own->most, reference->most));
    return mean_error(own) > MOST_OF_REFERENCE * mean_error(reference);
}

/* False if the row is too far from the reference, if it ran nothing, or if so many rows of the problems were without a
 * bound that little was tested. */
static bool report_row(const cases_row *row, const stats *s)
{
    if (!row->available && s->cases == 0) {
        printf("# skip %s: not available here (%s)\n", row->name, row->needs);
        return true;
    }
    printf("# %s: %" PRId64 " cases, %" PRId64 " rows (%" PRId64
           " without a bound); worst error of an F32 out %.3g; worst "
           "error / bound: out F32 %.3f, BF16 %.3f",
           row->name, s->cases, s->rows, s->rows_without_bound, s->out_error, s->out_ratio, s->bf16_ratio);
    if (s->lse_error > 0.0)
        printf(", lse %.3f (error %.3g)", s->lse_ratio, s->lse_error);
    if (s->loss_ratio > 0.0)
        printf("; rounding P cost up to %.3f of its bound", s->loss_ratio);
    const bool far_out = report_accuracy("out", &s->own[0], &s->reference[0]);
    const bool far_lse = report_accuracy("lse", &s->own[1], &s->reference[1]);
    printf("%s%s\n", s->cases == 0 ? ": NOT TESTED" : "", far_out || far_lse ? ": TOO FAR" : "");
    return s->cases > 0 && !far_out && !far_lse && s->rows_without_bound * 10 <= s->rows;
}

int main(void)
{
    cases_row rows[CASES_ROWS];
    const int count = cases_rows(rows);
    seen = cases_shared(CASES_ROWS * sizeof *seen);
    printf("# ETALON_SEED=%" PRIu64 "\n", cases_seed());
    if (share() > 1)
        printf("# ETALON_SHARE=%d: one test in %d of each kind\n", share(), share());
    fflush(stdout);
    int status = testing_main("twin", fill);
    for (int i = 0; i < count; i++)
        if (!report_row(&rows[i], &seen[i]))
            status = EXIT_FAILURE;
    return status;
}
