/* The golden vectors: every one passes, and no wrong byte or wrong result does. */
#include "testing.h"

#include "bound.h"
#include "cases.h"
#include "fp8.h"
#include "logits.h"
#include "oracle.h"
#include "random.h"

#include <etalon/etalon.h>
#include <glob.h>
#include <math.h>

enum {
    FLIPS = 8 /* wrong bytes tried at each place of each expected tensor */,
    MANTISSA = 2,
    EXPONENT = 3 /* the bytes of an F32 that matter */
};

#define LSE_RELATIVE 2e-6 /* of the vectors' own statement */
#define LSE_ABSOLUTE 1e-5

static glob_t   vectors;
static int64_t *judged_by_row; /* shared: outputs of each row that were judged */

/* One vector, computed by the reference. */
typedef struct vector {
    const char      *path;
    etalon_context  *ctx;
    tensorfile       file;
    oracle_problem   problem;
    oracle_result    result;
    bound            bound;
    etalon_tensor    expected[ORACLE_OUTPUTS];
    random_state     random;
    tensorfile_error error;
} vector;

static const char *base_name(const vector *v)
{
    const char *slash = strrchr(v->path, '/');
    return slash == NULL ? v->path : slash + 1;
}

#define ck_assert_done(v, call) ck_assert_msg(call, "%s: %s", base_name(v), (v)->error.text)

static void open_vector(vector *v, int i)
{
    *v = (vector){ .path = vectors.gl_pathv[i], .random = random_seed((uint64_t)i) };
    ck_assert_ok(etalon_context_create(NULL, &v->ctx));
    ck_assert_done(v, tensorfile_read(v->path, &v->file, &v->error));
    ck_assert_done(v, oracle_bind(&v->file, NULL, &v->problem, &v->error));
    ck_assert_done(v, oracle_run(v->ctx, &v->problem, v->problem.op->reference, &v->result, &v->error));
    ck_assert_done(v, bound_prepare(v->ctx, &v->problem, BOUND_FP8, &v->bound, &v->error));
    for (int o = 0; o < v->problem.op->output_count; o++) {
        const tensorfile_entry *entry;
        ck_assert_done(v, oracle_find_tensor(&v->file, v->problem.op->outputs[o].expected, &entry, &v->error));
        ck_assert_msg(entry != NULL, "%s: no %s", base_name(v), v->problem.op->outputs[o].expected);
        ck_assert_int_eq(entry->tensor.dtype, ETALON_F32);
        v->expected[o] = entry->tensor;
    }
}

static void close_vector(vector *v)
{
    bound_free(&v->bound);
    oracle_result_free(&v->result);
    tensorfile_free(&v->file);
    etalon_context_destroy(v->ctx);
}

static const char *output_name(const vector *v, int output)
{
    return oracle_first_name(v->problem.op->outputs[output].names);
}

/* Passing
 * -------
 */
static void check_lse(const vector *v, const char *row, const oracle_result *result)
{
    const int64_t n = v->problem.op->output_count > 1 ? oracle_elements(&v->expected[1]) : 0;
    for (int64_t i = 0; i < n; i++) {
        const double got = (double)((const float *)result->tensor[1].data)[i];
        const double want = (double)((const float *)v->expected[1].data)[i];
        if (isinf(want))
            ck_assert_double_eq(got, want);
        else
            ck_assert_msg(fabs(got - want) <= fmax(LSE_RELATIVE * fabs(want), LSE_ABSOLUTE),
                          "%s: %s: lse element %lld: %.9g, want %.9g", base_name(v), row, (long long)i, got, want);
    }
}

static void expect_row_passes(vector *v, const char *row, const oracle_result *got)
{
    for (int o = 0; o < v->problem.op->output_count; o++) {
        verdict judged;
        ck_assert_done(
            v, bound_judge(&v->bound, BOUND_FP32, o, &got->tensor[o], &v->expected[o], true, &judged, &v->error));
        ck_assert_msg(judged.pass, "%s: %s: %s: error / bound %g", base_name(v), row, output_name(v, o),
                      verdict_ratio(&judged));
        ck_assert_double_le(verdict_ratio(&judged), 1.0);
        ck_assert_int_eq(judged.unbounded_rows, 0);
        judged_by_row[cases_row_number(row)]++;
    }
    check_lse(v, row, got);
}

/* Every row of the operation that this CPU has: no row refuses a vector. */
START_TEST(vector_passes)
{
    vector    v;
    cases_row rows[CASES_ROWS];
    const int count = cases_rows(rows);
    open_vector(&v, _i);
    for (int i = 0; i < count; i++) {
        oracle_result got;
        if (!rows[i].available || strcmp(rows[i].op, v.problem.op->name) != 0)
            continue;
        ck_assert_done(&v, oracle_run(v.ctx, &v.problem, rows[i].name, &got, &v.error));
        expect_row_passes(&v, rows[i].name, &got);
        oracle_result_free(&got);
    }
    close_vector(&v);
}
END_TEST

/* Wrong bytes
 * -----------
 */
static void index_of(const etalon_tensor *t, int64_t i, int64_t *index)
{
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        index[d] = i % t->shape[d];
        i /= t->shape[d];
    }
}

/* Whether the other value must be told from the first one, which itself may be one bound off. */
static bool is_significant(const vector *v, int output, const int64_t *index, double was, double is)
{
    if (isnan(is) || isinf(is) || isinf(was))
        return true;
    const double limit = bound_element(&v->bound, BOUND_FP32, output, ETALON_F32, index, was) +
                         bound_element(&v->bound, BOUND_FP32, output, ETALON_F32, index, is);
    return fabs(was - is) > limit;
}

/* Flips bits in one byte of element i of an expected tensor, judges, and restores it. False if they did not matter. */
static bool flip_is_found(vector *v, int output, int64_t i, int byte)
{
    etalon_tensor      *want = &v->expected[output];
    unsigned char      *at = (unsigned char *)want->data + i * 4 + byte;
    float              *element = (float *)want->data + i;
    const double        was = (double)*element;
    const unsigned char saved = *at;
    int64_t             index[ETALON_MAX_RANK];
    verdict             judged;
    index_of(want, i, index);
    *at ^= (unsigned char)random_between(&v->random, 1, 255);
    const double is = (double)*element;
    const bool   significant = is_significant(v, output, index, was, is);
    if (significant) {
        ck_assert_done(
            v, bound_judge(&v->bound, BOUND_FP32, output, &v->result.tensor[output], want, true, &judged, &v->error));
        ck_assert_msg(!judged.pass, "%s: %s element %lld passes as %.9g, was %.9g", base_name(v),
                      output_name(v, output), (long long)i, is, was);
        ck_assert(judged.m.has_worst && judged.m.has_first);
        ck_assert_mem_eq(judged.m.worst.index, index, (size_t)want->rank * sizeof index[0]);
        ck_assert_mem_eq(judged.m.first.index, index, (size_t)want->rank * sizeof index[0]);
        ck_assert_int_eq(judged.m.over_bound + judged.m.inf_mismatches + judged.m.nan_mismatches > 0, 1);
    }
    *at = saved;
    return significant;
}

static void flip_anywhere(vector *v, int output, int byte)
{
    enum { TRIES = 200 };
    int found = 0;
    for (int t = 0; t < TRIES && found < FLIPS; t++)
        found +=
            flip_is_found(v, output, random_between(&v->random, 0, oracle_elements(&v->expected[output]) - 1), byte);
    ck_assert_msg(found == FLIPS, "%s: %s: only %d significant flips", base_name(v), output_name(v, output), found);
}

static void flip_masked(vector *v, int output)
{
    for (int64_t i = 0, found = 0; i < oracle_elements(&v->expected[output]) && found < FLIPS; i++)
        if (isinf(((const float *)v->expected[output].data)[i]))
            found += flip_is_found(v, output, i, found % 2 == 0 ? MANTISSA : EXPONENT);
}

START_TEST(wrong_bytes_are_found)
{
    vector v;
    open_vector(&v, _i);
    for (int o = 0; o < v.problem.op->output_count; o++) {
        flip_anywhere(&v, o, MANTISSA);
        flip_anywhere(&v, o, EXPONENT);
        flip_masked(&v, o);
    }
    close_vector(&v);
}
END_TEST

/* Wrong results
 * -------------
 * What a kernel could have left in the file, in the class that such files are held to.
 */
static bool passes(vector *v, const oracle_result *got)
{
    bool all = true;
    for (int o = 0; o < v->problem.op->output_count; o++) {
        verdict judged;
        ck_assert_done(
            v, bound_judge(&v->bound, BOUND_FP8, o, &got->tensor[o], &v->result.tensor[o], false, &judged, &v->error));
        all = all && judged.pass;
    }
    return all;
}

static void run_changed(vector *v, const oracle_problem *changed, oracle_result *got)
{
    ck_assert_done(v, oracle_run(v->ctx, changed, changed->op->reference, got, &v->error));
}

static void zeros_fail(vector *v)
{
    oracle_result got;
    run_changed(v, &v->problem, &got);
    memset(got.tensor[0].data, 0, (size_t)oracle_elements(&got.tensor[0]) * sizeof(float));
    ck_assert_msg(!passes(v, &got), "%s", base_name(v));
    oracle_result_free(&got);
}

/* Row t holds what row t + 1 should. The hot-key vectors alone have rows that are all alike, with nothing to tell. */
static void shuffled_rows_fail(vector *v)
{
    static const char *const alike[] = { "fmha-hotkey", "fmha-underflow", "fmha-v-ones" };
    oracle_result            got;
    for (size_t i = 0; i < sizeof alike / sizeof alike[0]; i++)
        if (strncmp(base_name(v), alike[i], strlen(alike[i])) == 0)
            return;
    run_changed(v, &v->problem, &got);
    const etalon_tensor *t = &got.tensor[0];
    const size_t         row = (size_t)t->stride[0] * sizeof(float), all = row * (size_t)t->shape[0];
    memcpy(t->data, (const char *)v->result.tensor[0].data + row, all - row);
    memcpy((char *)t->data + (all - row), v->result.tensor[0].data, row);
    ck_assert_msg(!passes(v, &got), "%s", base_name(v));
    oracle_result_free(&got);
}

static etalon_tensor *descale_of(oracle_problem *p)
{
    if (p->op->id == ORACLE_PA_MTP)
        return &p->args.pa_mtp.v_descale;
    return p->op->id == ORACLE_FMHA_VARLEN ? &p->args.fmha_varlen.v_descale : &p->args.mqa_logits.kv_scale;
}

static void scale_by(const etalon_tensor *t, float factor)
{
    for (int64_t i = 0; i < oracle_elements(t); i++)
        ((float *)t->data)[i] *= factor; /* a private mapping */
}

/* The scales in the blocks of a cache. */
static void scale_blocks_by(const etalon_mqa_logits_paged_args *a, float factor)
{
    const int64_t size = a->kv_cache.shape[1], d = a->q.shape[3];
    for (int64_t i = 0; i < a->kv_cache.shape[0] * size; i++) {
        char *const at = (char *)a->kv_cache.data + i / size * a->kv_cache.stride[0] + size * d;
        ((float *)(void *)at)[i % size] *= factor;
    }
}

static void wrong_block_scales_fail(vector *v)
{
    oracle_result got;
    scale_blocks_by(&v->problem.args.mqa_logits_paged, 2.0f);
    run_changed(v, &v->problem, &got);
    scale_blocks_by(&v->problem.args.mqa_logits_paged, 0.5f);
    ck_assert_msg(!passes(v, &got), "%s", base_name(v));
    oracle_result_free(&got);
}

/* A descale, of V or of the indexer's K, applied twice as large. */
static void wrong_descale_fails(vector *v)
{
    if (v->problem.op->id == ORACLE_MQA_LOGITS_PAGED) {
        wrong_block_scales_fail(v);
        return;
    }
    oracle_result        got;
    const etalon_tensor *descale = descale_of(&v->problem);
    const size_t         bytes = (size_t)oracle_elements(descale) * sizeof(float);
    void                *saved = malloc(bytes);
    memcpy(saved, descale->data, bytes);
    scale_by(descale, 2.0f);
    run_changed(v, &v->problem, &got);
    memcpy(descale->data, saved, bytes);
    free(saved);
    ck_assert_msg(!passes(v, &got), "%s", base_name(v));
    oracle_result_free(&got);
}

/* The diagonal one key too far to the right; of a paged indexer to the left, where there are blocks. Vectors that are not causal have none. */
static bool move_diagonal(oracle_problem *p)
{
    if (p->op->id == ORACLE_PA_MTP) {
        p->args.pa_mtp.causal = 0;
        p->args.pa_mtp.window_right = 1;
        return true;
    }
    if (p->op->id == ORACLE_MQA_LOGITS) {
        const etalon_tensor *ke = &p->args.mqa_logits.cu_seqlen_ke;
        for (int64_t m = 0; m < ke->shape[0]; m++)
            ((int32_t *)ke->data)[m]++;
        return true;
    }
    if (p->op->id == ORACLE_MQA_LOGITS_PAGED) {
        const etalon_tensor *lens = &p->args.mqa_logits_paged.context_lens;
        for (int64_t i = 0; i < oracle_elements(lens); i++)
            lens->dtype == ETALON_I64 ? ((int64_t *)lens->data)[i]-- : ((int32_t *)lens->data)[i]--;
        return true;
    }
    const bool causal = p->args.fmha_varlen.causal != 0;
    p->args.fmha_varlen.causal = 0;
    p->args.fmha_varlen.window_right = 1;
    return causal;
}

/* Windows that all reach past the last key lose nothing by reaching farther: those of past_end. */
static void moved_diagonal_fails(vector *v)
{
    oracle_result  got;
    oracle_problem changed = v->problem;
    if (strncmp(base_name(v), "mqa_logits-past_end", 19) == 0 || !move_diagonal(&changed))
        return;
    run_changed(v, &changed, &got);
    ck_assert_msg(!passes(v, &got), "%s", base_name(v));
    oracle_result_free(&got);
}

START_TEST(wrong_results_fail)
{
    vector v;
    open_vector(&v, _i);
    ck_assert_msg(passes(&v, &v.result), "%s: its own result fails", base_name(&v));
    zeros_fail(&v);
    shuffled_rows_fail(&v);
    wrong_descale_fails(&v);
    moved_diagonal_fails(&v); /* leaves the windows of the indexer changed */
    close_vector(&v);
}
END_TEST

/* The rounding models
 * -------------------
 */
static void expect_pass(vector *v, const bound *b, const oracle_result *got, const oracle_result *want)
{
    for (int o = 0; o < v->problem.op->output_count; o++) {
        verdict judged;
        ck_assert_done(v, bound_judge(b, BOUND_FP8, o, &got->tensor[o], &want->tensor[o], true, &judged, &v->error));
        ck_assert_msg(judged.pass, "%s: model: %s: error / bound %g", base_name(v), output_name(v, o),
                      verdict_ratio(&judged));
    }
}

/* The same out as a kernel writes it. */
static void round_to_bf16(const vector *v, const oracle_result *from, oracle_result *to)
{
    tensorfile_error     error;
    const etalon_tensor *out = &from->tensor[0];
    *to = *from;
    ck_assert_msg(oracle_allocate("out", ETALON_BF16, out->rank, out->shape, &to->tensor[0], &error), "%s: %s",
                  base_name(v), error.text);
    for (int64_t i = 0; i < oracle_elements(out); i++)
        ((uint16_t *)to->tensor[0].data)[i] = bf16_of_f32(((const float *)out->data)[i]);
}

/* A model that rounds q solves another problem, that of the rounded q. */
static void expect_pass_rounded(vector *v, const oracle_result *got)
{
    etalon_tensor  q;
    oracle_problem rounded;
    oracle_result  want;
    bound          b;
    ck_assert_done(v, bound_round_q(&v->problem, &q, &rounded, &v->error));
    ck_assert_done(v, oracle_run(v->ctx, &rounded, rounded.op->reference, &want, &v->error));
    ck_assert_done(v, bound_prepare(v->ctx, &rounded, BOUND_FP8, &b, &v->error));
    expect_pass(v, &b, got, &want);
    bound_free(&b);
    oracle_result_free(&want);
    free(q.data);
}

START_TEST(model_passes_as_fp8)
{
    vector        v;
    oracle_result got;
    char          name[64];
    open_vector(&v, _i);
    snprintf(name, sizeof name, "%s_model", v.problem.op->name);
    if (!logits_are_of(v.problem.op)) { /* nothing is rounded there */
        measure plain;
        ck_assert_done(&v, oracle_run(v.ctx, &v.problem, name, &got, &v.error));
        ck_assert(measure_compare(&got.tensor[0], &v.result.tensor[0], NULL, NULL, &plain));
        ck_assert_msg(plain.max_abs > 0.0, "%s: %s rounds nothing", base_name(&v), name);
        oracle_result short_out;
        round_to_bf16(&v, &got, &short_out);
        if (bound_may_round_q(&v.problem))
            expect_pass_rounded(&v, &short_out);
        else
            expect_pass(&v, &v.bound, &short_out, &v.result);
        free(short_out.tensor[0].data);
        oracle_result_free(&got);
    }
    close_vector(&v);
}
END_TEST

static void fill(TCase *tcase)
{
    char        pattern[4096];
    const char *directory = getenv("ETALON_VECTORS");
    snprintf(pattern, sizeof pattern, "%s/*.safetensors", directory == NULL ? "tests/vectors" : directory);
    if (glob(pattern, 0, NULL, &vectors) != 0) {
        printf("Bail out! no vector matches %s\n", pattern);
        exit(EXIT_FAILURE);
    }
    const int n = (int)vectors.gl_pathc;
    tcase_add_loop_test(tcase, vector_passes, 0, n);
    tcase_add_loop_test(tcase, wrong_bytes_are_found, 0, n);
    tcase_add_loop_test(tcase, wrong_results_fail, 0, n);
    tcase_add_loop_test(tcase, model_passes_as_fp8, 0, n);
}

int main(void)
{
    cases_row rows[CASES_ROWS];
    const int count = cases_rows(rows);
    judged_by_row = cases_shared(CASES_ROWS * sizeof *judged_by_row);
    int status = testing_main("vectors", fill);
    for (int i = 0; i < count; i++) {
        const bool idle = rows[i].available && judged_by_row[i] == 0 && strcmp(rows[i].op, "merge_states") != 0;
        if (strcmp(rows[i].needs, "by name only") == 0)
            continue; /* the models have tests of their own */
        if (!rows[i].available)
            printf("# skip %s: not available here (%s)\n", rows[i].name, rows[i].needs);
        else
            printf("# %s: %lld outputs judged\n", rows[i].name, (long long)judged_by_row[i]);
        status = idle ? EXIT_FAILURE : status; /* there is no vector of merge_states */
    }
    return status;
}
