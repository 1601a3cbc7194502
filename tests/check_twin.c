/* Random problems: the reference rows against the float64 twin within the docstring's bound, the model rows against
 * the twin of the model, the same bits for every number of threads, nothing written that should not be.
 *
 *   ETALON_SEED=N check_twin    replays; a failure names the seed and the stream of its case
 */
#include "cases.h"
#include "testing.h"
#include "twin.h"

#include <inttypes.h>
#include <math.h>
#include <sys/mman.h>

/* What was seen, over all the processes that Check forks. */
typedef struct stats {
    double  out_error, out_ratio; /* largest |measured - twin|, and the same over its bound; F32 outputs */
    double  bf16_ratio;           /* BF16 outputs */
    double  lse_error, lse_ratio;
    double  loss_ratio; /* model rows: the cost of rounding P over its bound */
    int64_t cases, rows, rows_without_bound;
} stats;

enum { STAT_PA_MTP, STAT_PA_MTP_MODEL, STAT_FMHA, STAT_FMHA_MODEL, STAT_MQA, STAT_MERGE, STAT_COUNT };

static const char *const stat_names[STAT_COUNT] = { "pa_mtp_ref",        "pa_mtp_model",   "fmha_varlen_ref",
                                                    "fmha_varlen_model", "mqa_logits_ref", "merge_states_ref" };

static stats *seen; /* shared memory, made before any fork */

static void raise_to(double *most, double x)
{
    *most = x > *most ? x : *most;
}

/* Which case, for the messages. */
static uint64_t stream_now;

#define CASE_FORMAT "ETALON_SEED=%" PRIu64 " stream %" PRIu64
#define CASE_VALUES cases_seed(), stream_now

static double ratio_of(double error, double bound)
{
    return bound > 0.0 ? error / bound : error > 0.0 ? (double)INFINITY : 0.0;
}

static void compare_lse(const etalon_tensor *lse, const twin_attention *twin, stats *s)
{
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
    }
}

static void compare_out(const etalon_tensor *out, const twin_attention *twin, stats *s)
{
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
        raise_to(&s->out_error, out->dtype == ETALON_BF16 ? 0.0 : error);
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

/* 2 and 5 threads and a repeat give the bits of the first call, on one thread. Outputs are poisoned before each. */
#define RUN_REPEATEDLY(op, c, first, second)                                                           \
    do {                                                                                               \
        static const int threads[] = { 1, 2, 5, 1 };                                                   \
        uint32_t        *bits[2] = { NULL, NULL };                                                     \
        for (int run_ = 0; run_ < 4; run_++) {                                                         \
            cases_poison_outputs(&(c)->memory);                                                        \
            const etalon_status status_ = cases_run_##op(&(c)->args, threads[run_]);                   \
            cases_require(status_ == ETALON_OK, CASE_FORMAT ": %s", CASE_VALUES, etalon_last_error()); \
            bits[0] = same_as_before(bits[0], first, threads[run_]);                                   \
            bits[1] = same_as_before(bits[1], second, threads[run_]);                                  \
        }                                                                                              \
        free(bits[0]);                                                                                 \
        free(bits[1]);                                                                                 \
        cases_verify(&(c)->memory);                                                                    \
    } while (0)

static uint32_t *same_as_before(uint32_t *before, const etalon_tensor *t, int threads)
{
    if (t == NULL || t->data == NULL)
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

enum { CASES_A_TEST = 10, TESTS = 30 };

/* Stream numbers of the ops do not meet. */
static rng next_case(int test, int i, int op)
{
    stream_now = (uint64_t)op << 32 | (uint64_t)(test * CASES_A_TEST + i);
    seen[op].cases++;
    return rng_make(cases_seed(), stream_now);
}

START_TEST(pa_mtp_ref_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng            r = next_case(_i, i, STAT_PA_MTP);
        pa_mtp_case    c;
        twin_attention twin;
        pa_mtp_draw(&c, &r);
        RUN_REPEATEDLY(pa_mtp, &c, &c.args.out, &c.args.lse);
        written(&c.args.out);
        written(&c.args.lse);
        twin_pa_mtp(&c.args, &twin);
        compare_out(&c.args.out, &twin, &seen[STAT_PA_MTP]);
        compare_lse(&c.args.lse, &twin, &seen[STAT_PA_MTP]);
        twin_attention_free(&twin);
        cases_free(&c.memory);
    }
}
END_TEST

START_TEST(fmha_varlen_ref_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng              r = next_case(_i, i, STAT_FMHA);
        fmha_varlen_case c;
        twin_attention   twin;
        fmha_varlen_draw(&c, &r);
        RUN_REPEATEDLY(fmha_varlen, &c, &c.args.out, &c.args.lse);
        written(&c.args.out);
        written(&c.args.lse);
        twin_fmha_varlen(&c.args, &twin);
        compare_out(&c.args.out, &twin, &seen[STAT_FMHA]);
        compare_lse(&c.args.lse, &twin, &seen[STAT_FMHA]);
        twin_attention_free(&twin);
        cases_free(&c.memory);
    }
}
END_TEST

static etalon_model_options draw_model(rng *r)
{
    return (etalon_model_options){ (etalon_p_scale)rng_below(r, 3), (int32_t)RNG_PICK(r, 0, 32, 64, 96, 256) };
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
        rng            r = next_case(_i, i, STAT_PA_MTP_MODEL);
        pa_mtp_case    c;
        twin_attention twin;
        pa_mtp_draw(&c, &r);
        c.args.model = draw_model(&r);
        c.args.kernel = "pa_mtp_model";
        RUN_REPEATEDLY(pa_mtp, &c, &c.args.out, &c.args.lse);
        written(&c.args.out);
        written(&c.args.lse);
        twin_pa_mtp_model(&c.args, &twin);
        compare_out(&c.args.out, &twin, &seen[STAT_PA_MTP_MODEL]);
        compare_lse(&c.args.lse, &twin, &seen[STAT_PA_MTP_MODEL]);
        compare_loss(&twin, &seen[STAT_PA_MTP_MODEL]);
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
        rng              r = next_case(_i, i, STAT_FMHA_MODEL);
        fmha_varlen_case c;
        twin_attention   twin;
        fmha_varlen_draw(&c, &r);
        c.args.model = draw_model(&r);
        c.args.kernel = "fmha_varlen_model";
        RUN_REPEATEDLY(fmha_varlen, &c, &c.args.out, &c.args.lse);
        written(&c.args.out);
        written(&c.args.lse);
        twin_fmha_varlen_model(&c.args, &twin);
        compare_out(&c.args.out, &twin, &seen[STAT_FMHA_MODEL]);
        compare_lse(&c.args.lse, &twin, &seen[STAT_FMHA_MODEL]);
        compare_loss(&twin, &seen[STAT_FMHA_MODEL]);
        uint32_t *model_lse = c.args.lse.data == NULL ? NULL : cases_bits(&c.args.lse);
        c.args.kernel = "fmha_varlen_ref";
        ck_assert_ok(cases_run_fmha_varlen(&c.args, 1));
        free(same_as_before(model_lse, &c.args.lse, 1));
        twin_attention_free(&twin);
        cases_free(&c.memory);
    }
}
END_TEST

static void compare_logits(const mqa_logits_case *c, stats *s)
{
    twin_mqa_logits_result twin;
    twin_mqa_logits(&c->args, &twin);
    for (int64_t i = 0; i < twin.m * twin.n; i++) {
        const double        got = cases_get(&c->args.logits, i), want = twin.logits[i];
        const etalon_tensor row = cases_fix(c->args.logits, 0, i / twin.n);
        const etalon_tensor cell = cases_cut(row, 0, i % twin.n, 1);
        s->rows++;
        if (isnan(want)) {
            cases_untouched(&cell, "outside the window");
        } else if (isinf(want)) {
            cases_require(got == want, CASE_FORMAT ": logits[%" PRId64 "]: %g, expected -inf", CASE_VALUES, i, got);
        } else {
            const double error = fabs(got - want);
            cases_require(error <= twin.bound[i],
                          CASE_FORMAT ": logits[%" PRId64 "]: %.9g, twin %.9g, error %.3g, bound %.3g", CASE_VALUES, i,
                          got, want, error, twin.bound[i]);
            raise_to(&s->out_error, error);
            raise_to(&s->out_ratio, ratio_of(error, twin.bound[i]));
        }
    }
    twin_mqa_logits_free(&twin);
}

START_TEST(mqa_logits_ref_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng             r = next_case(_i, i, STAT_MQA);
        mqa_logits_case c;
        mqa_logits_draw(&c, &r);
        RUN_REPEATEDLY(mqa_logits, &c, &c.args.logits, NULL);
        compare_logits(&c, &seen[STAT_MQA]);
        cases_free(&c.memory);
    }
}
END_TEST

START_TEST(merge_states_ref_within_bound)
{
    for (int i = 0; i < CASES_A_TEST; i++) {
        rng               r = next_case(_i, i, STAT_MERGE);
        merge_states_case c;
        twin_attention    twin;
        merge_states_draw(&c, &r);
        RUN_REPEATEDLY(merge_states, &c, &c.args.out, &c.args.lse);
        written(&c.args.out);
        written(&c.args.lse);
        twin_merge_states(&c.args, &twin);
        compare_out(&c.args.out, &twin, &seen[STAT_MERGE]);
        compare_lse(&c.args.lse, &twin, &seen[STAT_MERGE]);
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

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, twin_formats);
    tcase_add_loop_test(tcase, mqa_logits_ref_within_bound, 0, TESTS);
    tcase_add_loop_test(tcase, merge_states_ref_within_bound, 0, TESTS);
    tcase_add_loop_test(tcase, pa_mtp_ref_within_bound, 0, TESTS);
    tcase_add_loop_test(tcase, fmha_varlen_ref_within_bound, 0, TESTS);
    tcase_add_loop_test(tcase, pa_mtp_model_within_bound, 0, TESTS);
    tcase_add_loop_test(tcase, fmha_varlen_model_within_bound, 0, TESTS);
}

/* Few rows may be without a bound, or the suite would have tested little. */
static int report(void)
{
    int poor = 0;
    for (int i = 0; i < STAT_COUNT; i++) {
        const stats *s = &seen[i];
        printf("# %s: %" PRId64 " cases, %" PRId64 " rows (%" PRId64
               " without a bound); worst error of an F32 out %.3g; worst "
               "error / bound: out F32 %.3f, BF16 %.3f",
               stat_names[i], s->cases, s->rows, s->rows_without_bound, s->out_error, s->out_ratio, s->bf16_ratio);
        if (s->lse_error > 0.0)
            printf(", lse %.3f (error %.3g)", s->lse_ratio, s->lse_error);
        if (s->loss_ratio > 0.0)
            printf("; rounding P cost up to %.3f of its bound", s->loss_ratio);
        printf("\n");
        poor += s->rows_without_bound * 10 > s->rows;
    }
    return poor;
}

int main(void)
{
    seen = mmap(NULL, STAT_COUNT * sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return EXIT_FAILURE;
    printf("# ETALON_SEED=%" PRIu64 "\n", cases_seed());
    fflush(stdout);
    const int failed = testing_main("twin", fill);
    return report() > 0 ? EXIT_FAILURE : failed;
}
