/* etalon check: computes what files hold the inputs of, and judges what they hold the outputs of. */
#include "bound.h"
#include "program.h"
#include "sample.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct check {
    etalon_context  *ctx;
    const oracle_op *op;     /* NULL: each file's own */
    const char      *kernel; /* NULL: the row that serves the call */
    bool             all;    /* every row */
    program_settings settings;
    bound_class      file_class;
    int64_t          sample; /* outputs to verify; 0: all */
    uint64_t         seed;
    bool             json;
    int              file_width;
    bool             header; /* is printed */
    int              passed, failed, skipped;
} check;

/* One file under test. */
typedef struct subject {
    const char    *path;
    tensorfile     file;
    oracle_problem problem;
    const char    *row; /* computes what results are compared with */
    bound          bound;
    etalon_tensor  expected[ORACLE_OUTPUTS], result[ORACLE_OUTPUTS]; /* absent, or the file's; with --sample, copies */
    sample         sample;                                           /* its problem is NULL without --sample */

    oracle_result computed; /* of `row`; made when first needed */
    bool          has_computed;

    /* pa_mtp: the same problem with q rounded to E4M3FN, as kernels on FP8 matrix units do; made when first needed */
    bool           has_rounded;
    etalon_tensor  rounded_q;
    oracle_problem rounded_problem;
    sample         rounded_sample; /* shares the numbers of `sample` */
    oracle_result  rounded;
    bound          rounded_bound;
} subject;

/* One line of the report. */
typedef struct line {
    const char *kernel;
    bound_class class;
    bool        judged[ORACLE_OUTPUTS];
    verdict     v[ORACLE_OUTPUTS];
    const char *yardstick[ORACLE_OUTPUTS]; /* "q" or "e4m3(q)"; NULL where there is no choice */
} line;

/* Report
 * ------
 */
static bool line_passes(const line *l)
{
    for (int i = 0; i < ORACLE_OUTPUTS; i++)
        if (l->judged[i] && !l->v[i].pass)
            return false;
    return true;
}

static double line_ratio(const line *l)
{
    double ratio = 0.0;
    for (int i = 0; i < ORACLE_OUTPUTS; i++)
        if (l->judged[i])
            ratio = fmax(ratio, verdict_ratio(&l->v[i]));
    return ratio;
}

static const char *class_name(bound_class class)
{
    return class == BOUND_FP32 ? "fp32" : "fp8";
}

static const char *output_name(const subject *s, int output)
{
    return oracle_first_name(s->problem.op->outputs[output].names);
}

static json_t *verdict_json(const verdict *v, const char *yardstick)
{
    json_t *object = report_measure(&v->m);
    json_object_set_new(object, "pass", json_boolean(v->pass));
    json_object_set_new(object, "row_ratio", report_number(v->row_ratio));
    json_object_set_new(object, "rows_over", json_integer(v->rows_over));
    json_object_set_new(object, "worst_row", json_pack("[I,I]", (json_int_t)v->row[0], (json_int_t)v->row[1]));
    json_object_set_new(object, "worst_row_error", report_number(v->row_error));
    json_object_set_new(object, "worst_row_bound", report_number(v->row_bound));
    json_object_set_new(object, "worst_row_norm", report_number(v->row_norm));
    json_object_set_new(object, "calc_diff_over", json_boolean(v->calc_diff_over));
    json_object_set_new(object, "unbounded_rows", json_integer(v->unbounded_rows));
    json_object_set_new(object, "overwritten", json_integer(v->overwritten));
    json_object_set_new(object, "yardstick", yardstick == NULL ? json_null() : json_string(yardstick));
    return object;
}

static bool samples(const subject *s)
{
    return s->sample.problem != NULL;
}

static void print_json(const check *c, const subject *s, const line *l)
{
    json_t *object = json_object(), *tensors = json_object();
    for (int i = 0; i < s->problem.op->output_count; i++)
        if (l->judged[i])
            json_object_set_new(tensors, output_name(s, i), verdict_json(&l->v[i], l->yardstick[i]));
    json_object_set_new(object, "file", json_string(s->path));
    json_object_set_new(object, "op", json_string(s->problem.op->name));
    json_object_set_new(object, "kernel", json_string(l->kernel));
    json_object_set_new(object, "verdict", json_string(line_passes(l) ? "PASS" : "FAIL"));
    json_object_set_new(object, "tolerance", json_string(class_name(l->class)));
    json_object_set_new(object, "ratio", report_number(line_ratio(l)));
    json_object_set_new(object, "row_ratio", report_number(l->judged[0] ? l->v[0].row_ratio : 0.0));
    json_object_set_new(object, "lse_max_abs", l->judged[1] ? report_number(l->v[1].m.max_abs) : json_null());
    if (samples(s)) {
        json_object_set_new(object, "sampled", json_integer(s->sample.count));
        json_object_set_new(object, "of", json_integer(s->sample.of));
        json_object_set_new(object, "unit", json_string(sample_unit(&s->sample)));
        json_object_set_new(object, "seed", json_sprintf("%" PRIu64, c->seed)); /* JSON's integers are signed here */
    }
    json_object_set_new(object, "tensors", tensors);
    report_json(object);
}

enum { KERNEL_WIDTH = 24 };

static void print_header(check *c)
{
    if (c->header || c->json)
        return;
    printf("%-*s  %-16s  %-*s  %-7s  %9s  %9s  %9s  %9s  %12s  %9s  %10s  %9s%s\n", c->file_width, "file", "op",
           KERNEL_WIDTH, "kernel", "verdict", "err/bound", "row ratio", "max abs", "err/std", "cosine", "calc_diff",
           "max ulp", "lse diff", c->sample > 0 ? "  verified" : "");
    c->header = true;
}

static void print_lead(check *c, const subject *s, const char *kernel, const char *word)
{
    print_header(c);
    printf("%-*s  %-16s  %-*s  %-7s", c->file_width, s->path, s->problem.op->name, KERNEL_WIDTH, kernel, word);
}

static void print_ulp(int64_t ulp)
{
    if (ulp == INT64_MAX)
        printf("  %10s", "-");
    else
        printf("  %10" PRId64, ulp);
}

/* Rows are judged as wholes in the FP8 class alone. */
static void print_row_ratio(const line *l)
{
    if (l->class == BOUND_FP8)
        printf("  %9.3g", l->v[0].row_ratio);
    else
        printf("  %9s", "-");
}

static void print_numbers(const line *l)
{
    const measure *m = &l->v[0].m;
    printf("  %9.3g", line_ratio(l));
    if (l->judged[0]) {
        print_row_ratio(l);
        printf("  %9.3g  %9.3g  %12.9f  %9.2e", m->max_abs, m->max_err_over_std, m->cosine, m->calc_diff);
        print_ulp(m->max_ulp);
    } else {
        printf("  %9s  %9s  %9s  %12s  %9s  %10s", "-", "-", "-", "-", "-", "-");
    }
    if (l->judged[1])
        printf("  %9.3g", l->v[1].m.max_abs);
    else
        printf("  %9s", "-");
}

static void print_row(const char *name, const verdict *v)
{
    printf("    %s row [%" PRId64 ", %" PRId64
           "]: norm of the error %.6g, bound %.6g, norm of the reference %.6g; %" PRId64 " rows over the bound\n",
           name, v->row[0], v->row[1], v->row_error, v->row_bound, v->row_norm, v->rows_over);
}

static void print_why(const subject *s, const line *l)
{
    for (int i = 0; i < s->problem.op->output_count; i++) {
        const verdict *v = &l->v[i];
        const char    *name = output_name(s, i);
        if (!l->judged[i])
            continue;
        if (!measure_ok(&v->m))
            report_failure(name, &v->m);
        if (v->rows_over > 0)
            print_row(name, v);
        if (v->calc_diff_over)
            printf("    %s: calc_diff %.3g is over its bound\n", name, v->m.calc_diff);
        if (v->overwritten > 0)
            printf("    %s: %" PRId64 " elements outside the window were written, though clean_logits is 0\n", name,
                   v->overwritten);
        if (!v->pass && l->yardstick[i] != NULL)
            printf("    %s: that is against the reference of %s, the nearer one\n", name, l->yardstick[i]);
    }
}

static void print_notes(const subject *s, const line *l)
{
    for (int i = 0; i < s->problem.op->output_count; i++) {
        const verdict *v = &l->v[i];
        if (l->judged[i] && v->unbounded_rows > 0)
            printf("    note: %" PRId64
                   " rows of %s have scores too large for fp32 (e > 2^-6): their bound is 2 max |v|\n",
                   v->unbounded_rows, output_name(s, i));
        if (l->judged[i] && v->pass && l->yardstick[i] != NULL && strcmp(l->yardstick[i], "q") != 0)
            printf("    note: %s passes against the reference of %s\n", output_name(s, i), l->yardstick[i]);
    }
}

static void print_line(check *c, const subject *s, const line *l)
{
    const bool pass = line_passes(l);
    program_progress_end();
    *(pass ? &c->passed : &c->failed) += 1;
    if (c->json) {
        print_json(c, s, l);
        return;
    }
    print_lead(c, s, l->kernel, pass ? "PASS" : "FAIL");
    print_numbers(l);
    if (samples(s))
        printf("  %" PRId64 " of %" PRId64 " %s", s->sample.count, s->sample.of, sample_unit(&s->sample));
    putchar('\n');
    if (!pass)
        print_why(s, l);
    print_notes(s, l);
    fflush(stdout);
}

static void print_skip(check *c, const subject *s, const char *kernel, const char *reason)
{
    program_progress_end();
    c->skipped++;
    if (c->json) {
        report_json(json_pack("{s:s,s:s,s:s,s:s,s:s}", "file", s->path, "op", s->problem.op->name, "kernel", kernel,
                              "verdict", "SKIP", "reason", reason));
        return;
    }
    print_lead(c, s, kernel, "SKIP");
    printf("  %s\n", reason);
}

static int print_error(check *c, const char *path, const char *sentence)
{
    program_progress_end();
    fflush(stdout);
    program_error(path, "%s", sentence);
    if (c->json)
        report_json(json_pack("{s:s,s:s,s:s}", "file", path, "verdict", "ERROR", "error", sentence));
    return EXIT_BAD;
}

/* Calls
 * -----
 * Of the whole problem, or of the sample.
 */
static bool explain(const check *c, const subject *s, const char *kernel, etalon_explain_fn *row, void *user,
                    tensorfile_error *error)
{
    if (samples(s))
        return sample_explain(c->ctx, &s->sample, kernel, row, user, error);
    return oracle_explain(c->ctx, &s->problem, kernel, row, user, error);
}

static bool run(const check *c, const subject *s, const char *kernel, oracle_result *result, tensorfile_error *error)
{
    program_progress("%s: %s", s->path, kernel);
    if (samples(s))
        return sample_run(c->ctx, &s->sample, kernel, result, error);
    return oracle_run(c->ctx, &s->problem, kernel, result, error);
}

static bool prepare(const check *c, subject *s, bound_class class, tensorfile_error *error)
{
    program_progress("%s: bounds", s->path);
    if (samples(s))
        return sample_bound(c->ctx, &s->sample, class, &s->bound, error);
    return bound_prepare(c->ctx, &s->problem, class, &s->bound, error);
}

static bool judge(const subject *s, const bound *b, bound_class class, int output, const etalon_tensor *got,
                  const etalon_tensor *want, bool poisoned, verdict *v, tensorfile_error *error)
{
    if (samples(s))
        return sample_judge(&s->sample, b, class, output, got, want, poisoned, v, error);
    return bound_judge(b, class, output, got, want, poisoned, v, error);
}

static bool wants_f32(const subject *s)
{
    return oracle_output_dtype(&s->problem, 0) == ETALON_F32;
}

/* What s->row computes in F32: once, though a file may hold both what to expect and a result. */
static bool compute(const check *c, subject *s, tensorfile_error *error)
{
    if (s->has_computed)
        return true;
    s->has_computed = true;
    if (wants_f32(s))
        return run(c, s, s->row, &s->computed, error);
    subject exact = *s;
    oracle_want_f32(&exact.problem);
    exact.sample.problem = &exact.problem;
    return run(c, &exact, s->row, &s->computed, error);
}

/* Judgement
 * ---------
 */
static bool rounds_q(const subject *s, bound_class class)
{
    return class == BOUND_FP8 && bound_may_round_q(&s->problem);
}

static bool prepare_rounded(const check *c, subject *s, tensorfile_error *error)
{
    if (s->has_rounded)
        return true;
    s->has_rounded = true;
    program_progress("%s: rounded q", s->path);
    if (samples(s)) {
        s->rounded_problem = s->problem;
        oracle_want_f32(&s->rounded_problem);
        s->rounded_sample = s->sample;
        s->rounded_sample.problem = &s->rounded_problem;
        s->rounded_sample.round_q = true;
        return sample_run(c->ctx, &s->rounded_sample, s->row, &s->rounded, error) &&
               sample_bound(c->ctx, &s->rounded_sample, BOUND_FP8, &s->rounded_bound, error);
    }
    if (!bound_round_q(&s->problem, &s->rounded_q, &s->rounded_problem, error))
        return false;
    oracle_want_f32(&s->rounded_problem);
    return oracle_run(c->ctx, &s->rounded_problem, s->row, &s->rounded, error) &&
           bound_prepare(c->ctx, &s->rounded_problem, BOUND_FP8, &s->rounded_bound, error);
}

/* One output; where q may be rounded, the verdict of the yardstick that accepts it, or of the nearer one. */
static bool judge_output(const check *c, subject *s, int output, const etalon_tensor *got, const etalon_tensor *want,
                         bool poisoned, line *l, tensorfile_error *error)
{
    verdict *v = &l->v[output];
    l->judged[output] = true;
    if (!judge(s, &s->bound, l->class, output, got, want, poisoned, v, error))
        return false;
    if (!rounds_q(s, l->class))
        return true;
    verdict other;
    l->yardstick[output] = "q";
    if (v->pass)
        return true;
    if (!prepare_rounded(c, s, error) ||
        !judge(s, &s->rounded_bound, l->class, output, got, &s->rounded.tensor[output], poisoned, &other, error))
        return false;
    if (!other.pass && !(verdict_ratio(&other) < verdict_ratio(v)))
        return true;
    *v = other;
    l->yardstick[output] = "e4m3(q)";
    return true;
}

static bool check_computed(check *c, subject *s, const char *kernel, const oracle_result *computed,
                           tensorfile_error *error)
{
    line l = { .kernel = kernel, .class = bound_class_of(kernel) };
    for (int i = 0; i < s->problem.op->output_count; i++)
        if (s->expected[i].data != NULL &&
            !judge_output(c, s, i, &computed->tensor[i], &s->expected[i], true, &l, error))
            return false;
    print_line(c, s, &l);
    return true;
}

static bool check_row(check *c, subject *s, const char *kernel, tensorfile_error *error)
{
    oracle_result computed = { 0 };
    if (strcmp(kernel, s->row) == 0 && wants_f32(s))
        return compute(c, s, error) && check_computed(c, s, kernel, &s->computed, error);
    const bool ok = run(c, s, kernel, &computed, error) && check_computed(c, s, kernel, &computed, error);
    oracle_result_free(&computed);
    return ok;
}

static bool check_result(check *c, subject *s, tensorfile_error *error)
{
    line l = { .kernel = "(file)", .class = c->file_class };
    if (!compute(c, s, error))
        return false;
    for (int i = 0; i < s->problem.op->output_count; i++)
        if (s->result[i].data != NULL &&
            !judge_output(c, s, i, &s->result[i], &s->computed.tensor[i], false, &l, error))
            return false;
    print_line(c, s, &l);
    return true;
}

/* Rows
 * ----
 */
typedef struct row_reason {
    const char *kernel;
    char        text[160]; /* "" if it serves */
} row_reason;

static void note_reason(void *user, const char *kernel, const char *reason)
{
    row_reason *r = user;
    if (strcmp(kernel, r->kernel) == 0)
        snprintf(r->text, sizeof r->text, "%s", reason == NULL ? "" : reason);
}

static bool check_row_or_skip(check *c, subject *s, const char *kernel, tensorfile_error *error)
{
    row_reason reason = { .kernel = kernel };
    if (!explain(c, s, kernel, note_reason, &reason, error))
        return false;
    if (reason.text[0] == '\0')
        return check_row(c, s, kernel, error);
    print_skip(c, s, kernel, reason.text);
    return true;
}

static bool check_all_rows(check *c, subject *s, tensorfile_error *error)
{
    etalon_kernel_info info;
    for (int i = 0; etalon_kernel_get(c->ctx, i, &info) == ETALON_OK; i++)
        if (strcmp(info.op, s->problem.op->name) == 0 && !check_row_or_skip(c, s, info.name, error))
            return false;
    return true;
}

/* Files
 * -----
 */
static bool has_any(const etalon_tensor *tensors)
{
    return tensors[0].data != NULL || tensors[1].data != NULL;
}

static bool is_number(etalon_dtype dtype)
{
    switch (dtype) {
    case ETALON_F64:
    case ETALON_F32:
    case ETALON_F16:
    case ETALON_BF16:
    case ETALON_E4M3FN:
    case ETALON_E4M3FNUZ:
    case ETALON_E5M2:
        return true;
    default:
        return false;
    }
}

/* A tensor that a file holds of an output fits the inputs. */
static bool check_output(const subject *s, int output, const tensorfile_entry *entry, tensorfile_error *error)
{
    etalon_tensor want = { .rank = s->problem.op->outputs[output].rank };
    if (entry == NULL)
        return true;
    oracle_output_shape(&s->problem, output, want.shape);
    if (!is_number(entry->tensor.dtype))
        return oracle_fail(error, "%s: dtype %s, expected a floating-point one", entry->name,
                           etalon_dtype_name(entry->tensor.dtype));
    if (entry->tensor.rank == want.rank &&
        memcmp(entry->tensor.shape, want.shape, (size_t)want.rank * sizeof want.shape[0]) == 0)
        return true;
    char has[160], needs[160];
    report_shape(&entry->tensor, has, sizeof has);
    report_shape(&want, needs, sizeof needs);
    return oracle_fail(error, "%s: shape %s, expected %s", entry->name, has, needs);
}

/* The tensor under one of the names, if the file has one. */
static bool find_output(const subject *s, int output, const char *names, etalon_tensor *t, tensorfile_error *error)
{
    const tensorfile_entry *entry;
    if (!oracle_find_tensor(&s->file, names, &entry, error) || !check_output(s, output, entry, error))
        return false;
    if (entry != NULL)
        *t = entry->tensor;
    return true;
}

static bool find_outputs(subject *s, tensorfile_error *error)
{
    for (int i = 0; i < s->problem.op->output_count; i++) {
        const oracle_output *o = &s->problem.op->outputs[i];
        if (!find_output(s, i, o->expected, &s->expected[i], error) ||
            !find_output(s, i, o->names, &s->result[i], error))
            return false;
    }
    if (has_any(s->expected) || has_any(s->result))
        return true;
    const oracle_output *first = &s->problem.op->outputs[0];
    return oracle_fail(error, "nothing to check: no tensor %s to compare the reference with, and no %s of a kernel",
                       oracle_first_name(first->expected), oracle_first_name(first->names));
}

/* Copies of what the sample needs of the file's tensor, in its place. */
static bool gather(const subject *s, int output, etalon_tensor *t, tensorfile_error *error)
{
    const etalon_tensor whole = *t;
    *t = (etalon_tensor){ 0 };
    return whole.data == NULL || sample_gather(&s->sample, output, &whole, t, error);
}

static bool draw_sample(const check *c, subject *s, tensorfile_error *error)
{
    if (c->sample == 0)
        return true;
    if (!sample_draw(&s->problem, c->sample, c->seed, &s->sample, error))
        return false;
    bool ok = true;
    for (int i = 0; i < ORACLE_OUTPUTS; i++) { /* all of them, so that none is left that must not be freed */
        ok = gather(s, i, &s->expected[i], error) && ok;
        ok = gather(s, i, &s->result[i], error) && ok;
    }
    return ok;
}

static bool is_known(const oracle_op *op, const char *name)
{
    for (int i = 0; i < op->input_count; i++)
        if (oracle_is_name(op->inputs[i].names, name))
            return true;
    for (int i = 0; i < op->output_count; i++)
        if (oracle_is_name(op->outputs[i].names, name) || oracle_is_name(op->outputs[i].expected, name))
            return true;
    return false;
}

/* A misspelt q_descale must not pass for a missing one. */
static void note_unknown(const subject *s)
{
    for (int i = 0; i < s->file.count; i++)
        if (!is_known(s->problem.op, s->file.entries[i].name))
            program_error(s->path, "note: tensor %s is not one of %s: ignored", s->file.entries[i].name,
                          s->problem.op->name);
}

/* The bound of FP8 rows costs two more calls of the operation: only where something is held to it. */
static bound_class class_needed(const check *c, const subject *s)
{
    const bool result = has_any(s->result) && c->file_class == BOUND_FP8;
    const bool row = has_any(s->expected) && (c->all || bound_class_of(s->row) == BOUND_FP8);
    return result || row ? BOUND_FP8 : BOUND_FP32;
}

static bool check_subject(check *c, subject *s, tensorfile_error *error)
{
    const bool rows = has_any(s->expected), result = has_any(s->result);
    if (!prepare(c, s, class_needed(c, s), error))
        return false;
    if (rows && c->all && !check_all_rows(c, s, error))
        return false;
    if (rows && !c->all && !check_row(c, s, s->row, error))
        return false;
    return !result || check_result(c, s, error);
}

/* Named, or the one that serves the call; of a sample, the formula. */
static bool choose_row(const check *c, subject *s, tensorfile_error *error)
{
    const char *serving = oracle_serving_row(c->ctx, &s->problem, error); /* and every check of the call */
    s->row = c->kernel != NULL ? c->kernel : c->sample > 0 ? s->problem.op->reference : serving;
    return serving != NULL;
}

static bool open_subject(const check *c, subject *s, tensorfile_error *error)
{
    return tensorfile_read(s->path, &s->file, error) &&
           program_bind(&s->file, c->op, &c->settings, &s->problem, error) && choose_row(c, s, error) &&
           find_outputs(s, error) && draw_sample(c, s, error);
}

static void close_subject(subject *s)
{
    for (int i = 0; i < ORACLE_OUTPUTS && samples(s); i++) {
        free(s->expected[i].data);
        free(s->result[i].data);
    }
    bound_free(&s->bound);
    bound_free(&s->rounded_bound);
    oracle_result_free(&s->computed);
    oracle_result_free(&s->rounded);
    free(s->rounded_q.data);
    sample_free(&s->sample);
    tensorfile_free(&s->file);
}

static int check_file(check *c, const char *path)
{
    subject          s = { .path = path };
    tensorfile_error error;
    const int        failed = c->failed;
    int              code = 0;
    if (!open_subject(c, &s, &error)) {
        code = print_error(c, path, error.text);
    } else {
        note_unknown(&s);
        if (!check_subject(c, &s, &error))
            code = print_error(c, path, error.text);
        else if (c->failed > failed)
            code = EXIT_DIFFERS;
    }
    close_subject(&s);
    return code;
}

static int check_files(check *c, char **paths)
{
    int code = 0;
    for (char **path = paths; *path != NULL; path++)
        if ((int)strlen(*path) > c->file_width)
            c->file_width = (int)strlen(*path);
    for (char **path = paths; *path != NULL; path++) {
        const int own = check_file(c, *path);
        code = own > code ? own : code;
    }
    program_progress_end();
    if (!c->json)
        printf("%d passed, %d failed", c->passed, c->failed);
    if (!c->json && c->skipped > 0)
        printf(", %d skipped", c->skipped);
    if (!c->json)
        putchar('\n');
    return code;
}

static bool read_sample(const char *text, int64_t *count)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    *count = value;
    if (end != text && *end == '\0' && errno == 0 && value > 0)
        return true;
    program_error(NULL, "--sample: \"%s\", expected a number from 1 to 2^63 - 1", text);
    return false;
}

int cmd_check(int argc, char **argv)
{
    enum { OP = 1, KERNEL, SET, TOLERANCE, SAMPLE, SEED, JSON, THREADS, DEVICE, HELP };
    static const struct option options[] = {
        { "op", required_argument, NULL, OP },
        { "kernel", required_argument, NULL, KERNEL },
        { "set", required_argument, NULL, SET },
        { "tolerance", required_argument, NULL, TOLERANCE },
        { "sample", required_argument, NULL, SAMPLE },
        { "seed", required_argument, NULL, SEED },
        { "json", no_argument, NULL, JSON },
        { "threads", required_argument, NULL, THREADS },
        { "device", required_argument, NULL, DEVICE },
        { "help", no_argument, NULL, HELP },
        { 0 },
    };
    check       c = { .file_class = BOUND_FP8, .seed = 1, .file_width = 4 };
    bool        has_seed = false;
    const char *op = NULL, *threads = NULL, *device = NULL, *tolerance = "fp8";
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case OP:
            op = optarg;
            break;
        case KERNEL:
            c.kernel = optarg;
            break;
        case SET:
            if (!program_add_setting(&c.settings, optarg))
                return EXIT_BAD;
            break;
        case TOLERANCE:
            tolerance = optarg;
            break;
        case SAMPLE:
            if (!read_sample(optarg, &c.sample))
                return program_bad_usage("check");
            break;
        case SEED:
            if (!program_seed(optarg, &c.seed))
                return program_bad_usage("check");
            has_seed = true;
            break;
        case JSON:
            c.json = true;
            break;
        case THREADS:
            threads = optarg;
            break;
        case DEVICE:
            device = optarg;
            break;
        case HELP:
            return program_help("check");
        default:
            return program_bad_usage("check");
        }
    }
    if (strcmp(tolerance, "fp32") != 0 && strcmp(tolerance, "fp8") != 0) {
        program_error(NULL, "--tolerance: \"%s\", expected fp32 or fp8", tolerance);
        return program_bad_usage("check");
    }
    if (has_seed && c.sample == 0) {
        program_error(NULL, "--seed: nothing is drawn without --sample");
        return program_bad_usage("check");
    }
    if (optind == argc) {
        program_error(NULL, "check: no file");
        return program_bad_usage("check");
    }
    c.file_class = strcmp(tolerance, "fp32") == 0 ? BOUND_FP32 : BOUND_FP8;
    c.all = c.kernel != NULL && strcmp(c.kernel, "all") == 0;
    if (c.all)
        c.kernel = NULL;
    if (!program_op(op, &c.op) || (c.ctx = program_context(threads, device)) == NULL)
        return EXIT_BAD;
    const int code = check_files(&c, argv + optind);
    etalon_context_destroy(c.ctx);
    return code;
}
