/* One kernel on one case: its calls, every yardstick, and the report of what is off. */
#include "xcheck.h"

#include "error.h"
#include "measure.h"
#include "testing.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

enum { NEIGHBOURS = 3 };

void xcheck_stage(xcheck_trial *t, const char *name)
{
    snprintf(t->stage, 32, "%s", name);
}

/* Elements
 * -------- */

void xcheck_index(const etalon_tensor *t, int64_t i, int64_t *index)
{
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        index[d] = i % t->shape[d];
        i /= t->shape[d];
    }
}

const void *xcheck_at(const etalon_tensor *t, const int64_t *index)
{
    int64_t offset = 0;
    for (int32_t d = 0; d < t->rank; d++)
        offset += index[d] * t->stride[d];
    return (const char *)t->data + offset * (int64_t)etalon_dtype_bytes(t->dtype);
}

double xcheck_value(const etalon_tensor *t, const int64_t *index)
{
    return twin_load(xcheck_at(t, index), t->dtype);
}

static bool mqa_specified(const etalon_mqa_logits_args *a, int64_t m, int64_t column)
{
    const double first = cases_get(&a->cu_seqlen_ks, m), keys = (double)a->k.shape[0];
    const double n = (double)column + (a->max_seqlen_k > 0 ? fmin(fmax(first, 0.0), keys) : 0.0);
    return a->clean_logits != 0 || (first <= n && n < cases_get(&a->cu_seqlen_ke, m) && n < keys);
}

static bool paged_specified(const etalon_mqa_logits_paged_args *a, int64_t m, int64_t n)
{
    return a->clean_logits != 0 ||
           ((double)n < cases_get(&a->context_lens, m) && n < a->block_tables.shape[1] * a->kv_cache.shape[1]);
}

bool xcheck_specified(const oracle_op *op, const oracle_args *args, const int64_t *index)
{
    if (op->id == ORACLE_MQA_LOGITS_PAGED)
        return paged_specified(&args->mqa_logits_paged, index[0], index[1]);
    return op->id != ORACLE_MQA_LOGITS || mqa_specified(&args->mqa_logits, index[0], index[1]);
}

/* Reports
 * ------- */

/* What the flags of an output were made of. */
typedef struct comparison {
    xcheck_trial        *t;
    const oracle_args   *args;
    const etalon_tensor *got, *want; /* want NULL: the question is whether elements were written */
    xcheck_bound_fn     *bound;
    const void          *user;
    int                  output;
} comparison;

static void print_index(const etalon_tensor *t, const int64_t *index, FILE *to)
{
    for (int32_t d = 0; d < t->rank; d++)
        fprintf(to, "%s%" PRId64, d > 0 ? ", " : "[", index[d]);
    fputc(']', to);
}

/* Along the last axis, a few elements to either side. */
static void print_neighbours(const etalon_tensor *t, const int64_t *index, const char *what, FILE *to)
{
    const int32_t last = t->rank - 1;
    int64_t       at[ETALON_MAX_RANK];
    memcpy(at, index, sizeof at);
    fprintf(to, "    %-4s", what);
    for (int64_t i = index[last] - NEIGHBOURS; i <= index[last] + NEIGHBOURS; i++) {
        at[last] = i;
        if (i >= 0 && i < t->shape[last])
            fprintf(to, i == index[last] ? " [%.9g]" : " %.9g", xcheck_value(t, at));
    }
    fputc('\n', to);
}

/* Steps from value to value of got's dtype, as measure.h counts them; -1 where there is no such distance. */
static int64_t ulp_between(const etalon_tensor *got, const etalon_tensor *want, const int64_t *index)
{
    double        x = xcheck_value(want, index);
    etalon_tensor a = etalon_tensor_dense((void *)(uintptr_t)xcheck_at(got, index), got->dtype, 0, NULL);
    etalon_tensor b = etalon_tensor_dense(&x, ETALON_F64, 0, NULL);
    measure       m;
    return measure_compare(&a, &b, NULL, NULL, &m) && m.compared == 1 ? m.max_ulp : -1;
}

static void print_element(const comparison *c, int64_t i, const char *what, FILE *to)
{
    int64_t index[ETALON_MAX_RANK] = { 0 };
    xcheck_index(c->got, i, index);
    fprintf(to, "  %s ", what);
    print_index(c->got, index, to);
    fprintf(to, ": got %.9g", xcheck_value(c->got, index));
    if (c->want != NULL) {
        const double  want = xcheck_value(c->want, index), got = xcheck_value(c->got, index);
        const int64_t ulp = ulp_between(c->got, c->want, index);
        fprintf(to, ", expected %.9g", want);
        if (c->bound != NULL)
            fprintf(to, " within %.3g, off by %.3g", c->bound(c->user, c->output, index, want), fabs(got - want));
        if (ulp >= 0)
            fprintf(to, ", %" PRId64 " ulp", ulp);
    }
    fputc('\n', to);
    print_neighbours(c->got, index, "got", to);
    if (c->want != NULL)
        print_neighbours(c->want, index, "want", to);
}

/* Which flagged element is the worst: the largest error beside its bound, whatever is not a number first. */
static int64_t worst_of(const comparison *c, const char *flags)
{
    double  most = -1.0;
    int64_t worst = 0;
    for (int64_t i = 0; i < cases_count(c->got); i++) {
        int64_t index[ETALON_MAX_RANK];
        double  ratio = INFINITY;
        if (flags[i] == '.')
            continue;
        xcheck_index(c->got, i, index);
        if (flags[i] == '#') {
            const double want = xcheck_value(c->want, index);
            const double limit = c->bound == NULL ? 1.0 : c->bound(c->user, c->output, index, want);
            ratio = fabs(xcheck_value(c->got, index) - want) / (limit > 0.0 ? limit : 0x1p-149);
        }
        if (ratio > most) {
            most = ratio;
            worst = i;
        }
    }
    return worst;
}

static xcheck_picture picture_of(const comparison *c, const char *flags)
{
    xcheck_picture p = { .flags = flags, .rank = c->got->rank, .shape = c->got->shape };
    const bool     logits = logits_are_of(c->t->kernel->op);
    p.axis[0] = logits ? "row" : c->got->rank == 2 ? "head" : "token";
    p.axis[1] = logits ? "column" : c->got->rank == 2 ? "token" : "head";
    p.axis[2] = "column";
    return p;
}

/* Sequences
 * ---------
 * Which of a batch are wrong, and what they have in common. */

typedef struct sequence {
    int64_t first, tokens, keys, page; /* page: 0 where there are none */
    int64_t all, wrong;
} sequence;

static bool page_not_full(const sequence *s, int64_t b)
{
    (void)b;
    return s->page > 0 && s->keys % s->page != 0;
}

static bool several_pages(const sequence *s, int64_t b)
{
    (void)b;
    return s->page > 0 && s->keys > s->page;
}

static bool several_tokens(const sequence *s, int64_t b)
{
    (void)b;
    return s->tokens > 1;
}

static bool short_of_keys(const sequence *s, int64_t b)
{
    (void)b;
    return s->keys < s->tokens;
}

static bool not_the_first(const sequence *s, int64_t b)
{
    (void)s;
    return b > 0;
}

static const struct {
    bool (*holds)(const sequence *s, int64_t b);
    const char *words;
} common[] = {
    { page_not_full, "the sequences whose last page is not full" },
    { several_pages, "the sequences of more than one page" },
    { several_tokens, "the sequences of more than one query token" },
    { short_of_keys, "the sequences with fewer keys than query tokens" },
    { not_the_first, "the sequences after the first" },
};

enum { COMMON = sizeof common / sizeof common[0] };

/* True if exactly the wrong ones of the sequences that have elements are so, and some are right. */
static bool tells_apart(int rule, const sequence *s, int64_t count)
{
    int64_t right = 0, wrong = 0;
    for (int64_t b = 0; b < count; b++) {
        if (s[b].all == 0)
            continue;
        if (common[rule].holds(&s[b], b) != (s[b].wrong > 0))
            return false;
        right += s[b].wrong == 0;
        wrong += s[b].wrong > 0;
    }
    return right > 0 && wrong > 0;
}

static int64_t batch_of(const oracle_op *op, const oracle_args *args)
{
    return (op->id == ORACLE_PA_MTP ? args->pa_mtp.cu_seqlens_q : args->fmha_varlen.cu_seqlens_q).shape[0] - 1;
}

static sequence sequence_at(const oracle_op *op, const oracle_args *args, int64_t b)
{
    const bool           paged = op->id == ORACLE_PA_MTP;
    const etalon_tensor *cu = paged ? &args->pa_mtp.cu_seqlens_q : &args->fmha_varlen.cu_seqlens_q;
    const etalon_tensor *lengths = paged ? &args->pa_mtp.seq_lens : &args->fmha_varlen.cu_seqlens_k;
    const int64_t        first = (int64_t)cases_get(cu, b);
    sequence             s = { first, (int64_t)cases_get(cu, b + 1) - first, (int64_t)cases_get(lengths, b), 0, 0, 0 };
    if (paged)
        s.page = args->pa_mtp.k_cache.shape[args->pa_mtp.kv_layout == ETALON_KV_HND ? 2 : 1];
    else
        s.keys = (int64_t)cases_get(lengths, b + 1) - s.keys;
    return s;
}

static void count_elements(const comparison *c, const char *flags, sequence *s)
{
    for (int64_t i = 0; i < cases_count(c->got); i++) {
        int64_t index[ETALON_MAX_RANK];
        xcheck_index(c->got, i, index);
        const int64_t token = index[c->got->rank == 3 ? 0 : 1];
        if (token < s->first || token >= s->first + s->tokens)
            continue;
        s->all++;
        s->wrong += flags[i] != '.';
    }
}

enum { SEQUENCES_SHOWN = 8 };

static void print_sequences(const comparison *c, const char *flags)
{
    const oracle_op *op = c->t->kernel->op;
    if (op->id != ORACLE_PA_MTP && op->id != ORACLE_FMHA_VARLEN)
        return;
    const int64_t batch = batch_of(op, c->args);
    sequence     *all = calloc((size_t)batch + 1, sizeof *all);
    for (int64_t b = 0; b < batch; b++) {
        all[b] = sequence_at(op, c->args, b);
        count_elements(c, flags, &all[b]);
        if (all[b].wrong == 0 || b >= SEQUENCES_SHOWN)
            continue;
        printf("  sequence %" PRId64 ": %" PRId64 " tokens from %" PRId64 ", %" PRId64 " keys", b, all[b].tokens,
               all[b].first, all[b].keys);
        if (all[b].page > 0)
            printf(" in pages of %" PRId64 ", %" PRId64 " in the last", all[b].page,
                   all[b].keys == 0 ? 0 : (all[b].keys - 1) % all[b].page + 1);
        printf(": %" PRId64 " of %" PRId64 " wrong\n", all[b].wrong, all[b].all);
    }
    for (int i = 0; i < COMMON; i++)
        if (tells_apart(i, all, batch)) {
            printf("  sequences: wrong are %s\n", common[i].words);
            break;
        }
    free(all);
}

static void report(const comparison *c, const char *flags, int64_t wrong)
{
    const xcheck_trial *t = c->t;
    int64_t             first = 0;
    if (t->quiet)
        return;
    while (flags[first] == '.')
        first++;
    const int64_t worst = worst_of(c, flags);
    printf("%s, case %" PRId64 " (%s), yardstick %s: %s, %" PRId64 " of %" PRId64 " elements\n", t->kernel->name,
           t->c->number, t->c->source, t->stage, oracle_first_name(t->kernel->op->outputs[c->output].names), wrong,
           cases_count(c->got));
    print_element(c, first, "first", stdout);
    if (worst != first)
        print_element(c, worst, "worst", stdout);
    const xcheck_picture p = picture_of(c, flags);
    xcheck_draw(&p, stdout);
    print_sequences(c, flags);
    fflush(stdout);
}

/* Judges
 * ------ */

/* Reports and fails the case if any flag is up. */
static void settle(const comparison *c, char *flags)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < cases_count(c->got); i++)
        wrong += flags[i] != '.';
    if (wrong > 0)
        report(c, flags, wrong);
    free(flags);
    cases_require(wrong == 0, "%s: %" PRId64 " elements", oracle_first_name(c->t->kernel->op->outputs[c->output].names),
                  wrong);
}

static char flag_of(double got, double want, const comparison *c, const int64_t *index)
{
    if (got == want || (isnan(got) && isnan(want)))
        return '.';
    if (!isfinite(got) || !isfinite(want))
        return 'N';
    return c->bound != NULL && fabs(got - want) <= c->bound(c->user, c->output, index, want) ? '.' : '#';
}

static char *flags_for(const etalon_tensor *t)
{
    const size_t count = (size_t)cases_count(t);
    return memset(malloc(count + 1), '.', count + 1);
}

void xcheck_compare(xcheck_trial *t, const oracle_args *args, int output, const etalon_tensor *want,
                    xcheck_bound_fn *limit, const void *user)
{
    oracle_args          copy = *args;
    const etalon_tensor *got = xcheck_output(t->kernel->op, &copy, output);
    const comparison     c = { t, args, got, want, limit, user, output };
    char                *flags = flags_for(got);
    for (int64_t i = 0; i < cases_count(got); i++) {
        int64_t index[ETALON_MAX_RANK];
        xcheck_index(got, i, index);
        if (xcheck_specified(t->kernel->op, args, index))
            flags[i] = flag_of(xcheck_value(got, index), xcheck_value(want, index), &c, index);
    }
    settle(&c, flags);
}

/* Elements that hold what was there before the call: none that is specified, all that are not. */
static void check_written(xcheck_trial *t, const oracle_args *args, int output)
{
    oracle_args          copy = *args;
    const etalon_tensor *got = xcheck_output(t->kernel->op, &copy, output);
    const comparison     c = { t, args, got, NULL, NULL, NULL, output };
    uint32_t            *bits = cases_bits(got);
    char                *flags = flags_for(got);
    for (int64_t i = 0; i < cases_count(got); i++) {
        int64_t index[ETALON_MAX_RANK];
        xcheck_index(got, i, index);
        const bool kept = bits[i] == t->poison[output][i];
        if (xcheck_specified(t->kernel->op, args, index) == kept)
            flags[i] = kept ? '_' : '#';
    }
    free(bits);
    for (int64_t i = 0; i < cases_count(got); i++) /* a stray write has nothing that it should have been */
        flags[i] = flags[i] == '#' ? 'N' : flags[i];
    settle(&c, flags);
}

typedef struct class_bound {
    const bound *bounds;
    bound_class class;
    oracle_args *args;
} class_bound;

static double bound_of_class(const void *user, int output, const int64_t *index, double want)
{
    const class_bound *b = user;
    return bound_element(b->bounds, b->class, output, xcheck_output(b->bounds->problem->op, b->args, output)->dtype,
                         index, want);
}

/* FP8 units may drop a NaN of the reference: bound_judge() knows, so that it decides what is compared there. */
static void judge_by_reference(xcheck_trial *t, const oracle_args *args)
{
    oracle_args copy = *args;
    const bound_class class = t->kernel->class;
    const xcheck_reference *r = xcheck_reference_of(t->y, class);
    const class_bound       user = { &r->bounds, class, &copy };
    xcheck_stage(t, "ref");
    for (int i = 0; i < t->kernel->op->output_count; i++) {
        const etalon_tensor *got = xcheck_output(t->kernel->op, &copy, i);
        verdict              v;
        tensorfile_error     error;
        if (got->data == NULL)
            continue;
        cases_require(bound_judge(&r->bounds, class, i, got, &r->result.tensor[i], false, &v, &error), "%s",
                      error.text);
        if (v.pass)
            continue;
        xcheck_compare(t, args, i, &r->result.tensor[i], bound_of_class, &user);
        ck_abort_msg("%s: every element is within its bound, but %" PRId64 " rows (the worst: token %" PRId64
                     ", head %" PRId64 ", norm %.3g beyond %.3g)%s",
                     oracle_first_name(t->kernel->op->outputs[i].names), v.rows_over, v.row[0], v.row[1], v.row_error,
                     v.row_bound, v.calc_diff_over ? ", and calc_diff is over" : "");
    }
}

typedef struct twin_user {
    const xcheck_trial *t;
    const xcheck_twin  *twin;
    bool                attends;
} twin_user;

/* The output bound is stated for e <= 2^-6 alone. */
static double bound_of_twin(const void *user, int output, const int64_t *index, double want)
{
    const twin_user     *u = user;
    const etalon_tensor *shape = &u->twin->want[output];
    int64_t              i = 0;
    (void)want;
    for (int32_t d = 0; d < shape->rank; d++)
        i = i * shape->shape[d] + index[d];
    if (u->attends && output == 0 && u->twin->attention.e[index[1] * u->twin->attention.t + index[0]] > 0x1p-6)
        return INFINITY;
    return u->twin->bound[output][i];
}

static void judge_by_twin(xcheck_trial *t, const oracle_args *args)
{
    oracle_args        copy = *args;
    const xcheck_twin *twin = xcheck_twin_of(t->y, t->kernel->model);
    const oracle_id    id = t->kernel->op->id;
    const twin_user    user = { t, twin, id == ORACLE_PA_MTP || id == ORACLE_FMHA_VARLEN };
    xcheck_stage(t, t->kernel->model ? "float64 model" : "float64");
    for (int i = 0; i < t->kernel->op->output_count; i++)
        if (xcheck_output(t->kernel->op, &copy, i)->data != NULL)
            xcheck_compare(t, args, i, &twin->want[i], bound_of_twin, &user);
}

static etalon_p_scale p_scale_of(const xcheck_trial *t)
{
    return t->kernel->op->id == ORACLE_PA_MTP ? t->c->args.pa_mtp.model.p_scale : t->c->args.fmha_varlen.model.p_scale;
}

void xcheck_judge(xcheck_trial *t, const oracle_args *args)
{
    oracle_args copy = *args;
    xcheck_stage(t, "written");
    for (int i = 0; i < t->kernel->op->output_count; i++)
        if (xcheck_output(t->kernel->op, &copy, i)->data != NULL)
            check_written(t, args, i);
    /* A fixed scale for P loses small weights by its definition: the model of it has no bound around the reference. */
    if (!(t->kernel->model && p_scale_of(t) == ETALON_P_SCALE_FIXED))
        judge_by_reference(t, args);
    if (t->y->with_twin && (t->kernel->class == BOUND_FP32 || t->kernel->model))
        judge_by_twin(t, args);
}

/* Calls
 * ----- */

/* A row of a gate, by its name; the workspace is poisoned, and ends at a page without access. */
static etalon_status call_row(const xcheck_trial *t, etalon_context *ctx, oracle_args *args, cases_memory *scratch)
{
    const oracle_op *op = t->kernel->op;
    size_t           bytes;
    *(const char **)((char *)args + op->kernel) = t->kernel->row;
    const etalon_status status = op->workspace_bytes(ctx, args, &bytes);
    if (status != ETALON_OK)
        return status;
    etalon_workspace work = { .bytes = bytes };
    if (bytes > 0) {
        const int64_t       floats = (int64_t)(bytes / sizeof(float));
        const etalon_tensor memory = cases_tensor(scratch, NULL, CASES_OUTPUT, ETALON_F32, 1, &floats);
        work.data = memory.data;
    }
    return op->run(ctx, args, work);
}

static etalon_status call_kernel(xcheck_trial *t, etalon_context *ctx, oracle_args *args)
{
    cases_memory scratch = { 0 };
    if (t->kernel->run != NULL)
        return broken_call(t->kernel, ctx, args);
    if (t->kernel->route != XCHECK_HOST)
        return xcheck_call_there(t, ctx, args);
    const etalon_status status = call_row(t, ctx, args, &scratch);
    cases_free(&scratch);
    return status;
}

/* What a simulator has found since the last look fails the case: its first line. */
static void check_findings(xcheck_trial *t)
{
    char          text[256];
    const ssize_t bytes = t->report < 0 ? 0 : pread(t->report, text, sizeof text - 1, t->report_read);
    if (bytes <= 0)
        return;
    text[bytes] = '\0';
    t->report_read = lseek(t->report, 0, SEEK_END);
    xcheck_stage(t, "simulator");
    ck_abort_msg("%.*s", (int)strcspn(text, "\n"), text);
}

etalon_status xcheck_call(xcheck_trial *t, int context, const oracle_args *args, cases_memory *memory)
{
    const oracle_op *op = t->kernel->op;
    oracle_args      copy = *args;
    cases_poison_outputs(memory);
    for (int i = 0; i < op->output_count; i++) {
        const etalon_tensor *out = xcheck_output(op, &copy, i);
        free(t->poison[i]);
        t->poison[i] = out->data == NULL ? NULL : cases_bits(out);
    }
    const etalon_status status = call_kernel(t, t->ctx[context], &copy);
    t->lost = t->lost || status == ETALON_ERROR_DEVICE;
    check_findings(t);
    cases_require(status == ETALON_OK || status == ETALON_ERROR_UNSUPPORTED, "%s: %s", etalon_status_string(status),
                  etalon_last_error());
    return status;
}

/* Bits of all outputs, to compare calls by. */
typedef struct bits {
    etalon_tensor copy[ORACLE_OUTPUTS];
} bits;

static bits bits_take(const oracle_op *op, oracle_args *args)
{
    bits b = { 0 };
    for (int i = 0; i < op->output_count; i++) {
        const etalon_tensor *out = xcheck_output(op, args, i);
        if (out->data == NULL)
            continue;
        void *data = calloc((size_t)cases_count(out) + 1, etalon_dtype_bytes(out->dtype));
        b.copy[i] = etalon_tensor_dense(data, out->dtype, out->rank, out->shape);
        cases_copy(&b.copy[i], out);
    }
    return b;
}

static void bits_free(bits *b)
{
    for (int i = 0; i < ORACLE_OUTPUTS; i++)
        free(b->copy[i].data);
}

/* -0 and 0, or two NaN, are different bits, too. */
static void same_bits(xcheck_trial *t, const oracle_args *args, const bits *before)
{
    oracle_args copy = *args;
    for (int n = 0; n < t->kernel->op->output_count; n++) {
        const etalon_tensor *got = xcheck_output(t->kernel->op, &copy, n);
        const comparison     c = { t, args, got, &before->copy[n], NULL, NULL, n };
        if (got->data == NULL)
            continue;
        char        *flags = flags_for(got);
        const size_t bytes = etalon_dtype_bytes(got->dtype);
        for (int64_t i = 0; i < cases_count(got); i++)
            if (memcmp(cases_at(got, i), cases_at(&before->copy[n], i), bytes) != 0)
                flags[i] = '#';
        settle(&c, flags);
    }
}

static void verify_memory(xcheck_trial *t)
{
    xcheck_stage(t, "memory");
    cases_verify(&t->c->memory);
}

static void repeat(xcheck_trial *t, int context, const char *stage, const bits *first)
{
    xcheck_stage(t, "run");
    (void)xcheck_call(t, context, &t->c->args, &t->c->memory);
    xcheck_stage(t, stage);
    same_bits(t, &t->c->args, first);
}

/* With little effort each case is for one property, and by one route. */
static void run_properties(xcheck_trial *t)
{
    const int count = xcheck_property_count(t->kernel->op);
    if (t->effort == XCHECK_CHECK && t->kernel->of_device && t->c->number / count % XCHECK_ROUTES != t->kernel->route)
        return;
    for (int i = 0; i < count; i++)
        if (t->effort != XCHECK_CHECK || t->c->number % count == i)
            xcheck_property(t, i);
}

etalon_status xcheck_try(xcheck_trial *t)
{
    xcheck_stage(t, "run");
    if (t->kernel->of_device && t->kernel->route == XCHECK_HOST && (t->c->wide[0] != NULL || t->c->wide[1] != NULL))
        return etalon_reject(ETALON_ERROR_UNSUPPORTED, "the library copies host tensors whole, and these have gaps "
                                                       "without access");
    if (xcheck_call(t, 0, &t->c->args, &t->c->memory) == ETALON_ERROR_UNSUPPORTED)
        return ETALON_ERROR_UNSUPPORTED;
    verify_memory(t);
    xcheck_judge(t, &t->c->args);
    bits first = bits_take(t->kernel->op, &t->c->args);
    repeat(t, 0, "repeat", &first);
    for (int i = 1; i < t->contexts; i++)
        repeat(t, i, "threads", &first);
    if (t->contexts > 1)
        repeat(t, t->contexts - 1, "repeat", &first);
    bits_free(&first);
    verify_memory(t);
    run_properties(t);
    return ETALON_OK;
}
