/* The algebra of the operations: keys permute, a split of the keys merges by its LSE, V scales the output. Each needs
 * nothing but the kernel itself, and so judges it where reference and kernel might share a mistake. */
#include "xcheck.h"

#include "testing.h"

#include <inttypes.h>
#include <math.h>

/* The kernel's own first answer, kept dense in the dtype that it came in. */
typedef struct answer {
    etalon_tensor copy[ORACLE_OUTPUTS];
} answer;

static etalon_tensor keep(const etalon_tensor *t)
{
    if (t->data == NULL)
        return (etalon_tensor){ 0 };
    void         *data = calloc((size_t)cases_count(t) + 1, etalon_dtype_bytes(t->dtype));
    etalon_tensor copy = etalon_tensor_dense(data, t->dtype, t->rank, t->shape);
    cases_copy(&copy, t);
    return copy;
}

static answer first_answer(xcheck_trial *t)
{
    answer a = { 0 };
    xcheck_stage(t, "run");
    (void)xcheck_call(t, 0, &t->c->args, &t->c->memory);
    for (int i = 0; i < t->kernel->op->output_count; i++)
        a.copy[i] = keep(xcheck_output(t->kernel->op, &t->c->args, i));
    return a;
}

static void answer_free(answer *a)
{
    for (int i = 0; i < ORACLE_OUTPUTS; i++)
        free(a->copy[i].data);
}

/* Two answers of one kernel, each within its bound of the exact one. */
typedef struct twice {
    xcheck_trial           *t;
    const xcheck_reference *r;
} twice;

static double twice_bound(const void *user, int output, const int64_t *index, double want)
{
    const twice       *u = user;
    const etalon_dtype dtype = xcheck_output(u->t->kernel->op, &u->t->c->args, output)->dtype;
    return 2.0 * bound_element(&u->r->bounds, u->t->kernel->class, output, dtype, index, want);
}

static void run_and_compare(xcheck_trial *t, const answer *want, const char *stage, xcheck_bound_fn *limit,
                            const void *user)
{
    xcheck_stage(t, "run");
    (void)xcheck_call(t, 0, &t->c->args, &t->c->memory);
    xcheck_stage(t, stage);
    for (int i = 0; i < t->kernel->op->output_count; i++)
        if (want->copy[i].data != NULL)
            xcheck_compare(t, &t->c->args, i, &want->copy[i], limit, user);
}

/* Sequences
 * --------- */

/* What pa_mtp and fmha_varlen call alike. */
typedef struct sequences {
    etalon_tensor cu_q, lengths;
    bool          paged;
    int32_t       causal, left, right;
    int64_t       batch;
} sequences;

static sequences sequences_of(const xcheck_case *c)
{
    if (c->op->id == ORACLE_PA_MTP) {
        const etalon_pa_mtp_args *a = &c->args.pa_mtp;
        return (sequences){ a->cu_seqlens_q, a->seq_lens,         true, a->causal, a->window_left,
                            a->window_right, a->seq_lens.shape[0] };
    }
    const etalon_fmha_varlen_args *a = &c->args.fmha_varlen;
    return (sequences){ a->cu_seqlens_q,
                        a->cu_seqlens_k,
                        false,
                        a->causal,
                        a->window_left,
                        a->window_right,
                        a->cu_seqlens_q.shape[0] - 1 };
}

static int64_t q_rows(const sequences *s, int64_t b)
{
    return (int64_t)(cases_get(&s->cu_q, b + 1) - cases_get(&s->cu_q, b));
}

static int64_t keys_of(const sequences *s, int64_t b)
{
    return (int64_t)(s->paged ? cases_get(&s->lengths, b) : cases_get(&s->lengths, b + 1) - cases_get(&s->lengths, b));
}

/* Keys that every row of the sequence sees, from key 0 on: j <= Sk - Sq; all where nothing is masked. */
static int64_t common_keys(const sequences *s, int64_t b)
{
    const int64_t keys = keys_of(s, b), common = s->causal ? keys - q_rows(s, b) + 1 : keys;
    return common < 0 ? 0 : common > keys ? keys : common;
}

static bool has_windows(const sequences *s)
{
    return s->left >= 0 || (s->right >= 0 && !s->causal);
}

/* Row of K (which 0) or V (1) of one key: [Hkv, D]. */
static etalon_tensor key_row(const xcheck_case *c, int which, int64_t b, int64_t j)
{
    if (c->op->id == ORACLE_PA_MTP) {
        const etalon_pa_mtp_args *a = &c->args.pa_mtp;
        return pa_mtp_slot(a, which == 0 ? &a->k_cache : &a->v_cache, b, j);
    }
    const etalon_fmha_varlen_args *a = &c->args.fmha_varlen;
    return cases_fix(which == 0 ? a->k : a->v, 0, (int64_t)cases_get(&a->cu_seqlens_k, b) + j);
}

/* Permuting keys
 * -------------- */

/* rows[j] of the sequence goes to rows[to[j]]. */
static void move_rows(const xcheck_case *c, int which, int64_t b, const int64_t *to, int64_t count)
{
    if (count < 2)
        return;
    const etalon_tensor one = key_row(c, which, b, 0);
    const int64_t       shape[3] = { count, one.shape[0], one.shape[1] };
    void               *data = calloc((size_t)(count * one.shape[0] * one.shape[1]) + 1, etalon_dtype_bytes(one.dtype));
    const etalon_tensor all = etalon_tensor_dense(data, one.dtype, 3, shape);
    for (int64_t j = 0; j < count; j++) {
        const etalon_tensor from = key_row(c, which, b, j), kept = cases_fix(all, 0, j);
        cases_copy(&kept, &from);
    }
    for (int64_t j = 0; j < count; j++) {
        const etalon_tensor kept = cases_fix(all, 0, j), target = key_row(c, which, b, to[j]);
        cases_copy(&target, &kept);
    }
    free(data);
}

/* One permutation a sequence; undone by its inverse. */
static void permute_sequences(xcheck_case *c, uint64_t seed, bool back)
{
    const sequences s = sequences_of(c);
    rng             r = rng_make(seed, 1);
    for (int64_t b = 0; b < s.batch; b++) {
        const int64_t count = common_keys(&s, b);
        int64_t      *to = calloc((size_t)count + 1, sizeof *to), *inverse = calloc((size_t)count + 1, sizeof *to);
        for (int64_t j = 0; j < count; j++)
            to[j] = j;
        rng_shuffle(&r, to, count);
        for (int64_t j = 0; j < count; j++)
            inverse[to[j]] = j;
        move_rows(c, 0, b, back ? inverse : to, count);
        move_rows(c, 1, b, back ? inverse : to, count);
        free(to);
        free(inverse);
    }
    cases_seal(&c->memory);
}

static void permute_keys(xcheck_trial *t)
{
    const sequences s = sequences_of(t->c);
    if (t->c->wide[0] != NULL || t->c->wide[1] != NULL || has_windows(&s) || t->kernel->model)
        return; /* a tile's or a block's rounding of P depends on its company */
    const twice    user = { t, xcheck_reference_of(t->y, t->kernel->class) };
    const uint64_t seed = t->c->seed + (uint64_t)t->c->number;
    answer         want = first_answer(t);
    permute_sequences(t->c, seed, false);
    run_and_compare(t, &want, "permuted keys", twice_bound, &user);
    permute_sequences(t->c, seed, true);
    answer_free(&want);
}

/* The indexer: key n with its scale moves to n', and column n of the rows that see both moves along. Keys between the
 * latest start and the earliest end are seen by all. */
static void swap_keys(etalon_mqa_logits_args *a, int64_t first, int64_t count)
{
    void *row = calloc((size_t)a->k.shape[1] + 1, etalon_dtype_bytes(a->k.dtype));
    for (int64_t i = 0; i < count / 2; i++) {
        const etalon_tensor x = cases_fix(a->k, 0, first + i), y = cases_fix(a->k, 0, first + count - 1 - i);
        const etalon_tensor kept = etalon_tensor_dense(row, a->k.dtype, 1, x.shape);
        cases_copy(&kept, &x);
        cases_copy(&x, &y);
        cases_copy(&y, &kept);
        const double s = cases_get(&a->kv_scale, first + i);
        cases_set(&a->kv_scale, first + i, cases_get(&a->kv_scale, first + count - 1 - i));
        cases_set(&a->kv_scale, first + count - 1 - i, s);
    }
    free(row);
}

typedef struct reversal {
    twice   user;
    int64_t first, count;
} reversal;

/* The bounds belong to the keys as they were. */
static double reversed_bound(const void *user, int output, const int64_t *index, double want)
{
    const reversal *r = user;
    int64_t         at[2] = { index[0], index[1] };
    if (at[1] >= r->first && at[1] < r->first + r->count)
        at[1] = 2 * r->first + r->count - 1 - at[1];
    return twice_bound(&r->user, output, at, want);
}

static void reverse_keys(xcheck_trial *t)
{
    etalon_mqa_logits_args *a = &t->c->args.mqa_logits;
    int64_t                 first = 0, last = a->k.shape[0];
    for (int64_t m = 0; m < a->q.shape[0]; m++) {
        first = (int64_t)fmax((double)first, cases_get(&a->cu_seqlen_ks, m));
        last = (int64_t)fmin((double)last, cases_get(&a->cu_seqlen_ke, m));
    }
    if (t->c->wide[0] != NULL || t->c->wide[1] != NULL || last - first < 2 || a->max_seqlen_k > 0)
        return;
    const reversal r = { { t, xcheck_reference_of(t->y, t->kernel->class) }, first, last - first };
    answer         want = first_answer(t);
    answer         moved = { { keep(&want.copy[0]) } };
    for (int64_t n = first; n < last; n++) {
        const etalon_tensor to = cases_fix(moved.copy[0], 1, first + last - 1 - n),
                            from = cases_fix(want.copy[0], 1, n);
        cases_copy(&to, &from);
    }
    swap_keys(a, first, last - first);
    cases_seal(&t->c->memory);
    run_and_compare(t, &moved, "permuted keys", reversed_bound, &r);
    swap_keys(a, first, last - first);
    cases_seal(&t->c->memory);
    answer_free(&moved);
    answer_free(&want);
}

/* Scaling
 * ------- */

/* A factor of two is exact, unless the result leaves the normal numbers of BF16 and F32. */
static double exact_bound(const void *user, int output, const int64_t *index, double want)
{
    (void)user;
    (void)output;
    (void)index;
    return fabs(want) < 0x1p-100 ? 0x1p-100 : 0.0;
}

static void scale_tensor(const etalon_tensor *t, double factor)
{
    for (int64_t i = 0; i < cases_count(t); i++)
        cases_set(t, i, factor * cases_get(t, i));
}

static void scale_by(xcheck_trial *t, const etalon_tensor *const *inputs, int count)
{
    answer want = first_answer(t);
    scale_tensor(&want.copy[0], 2.0);
    for (int i = 0; i < count; i++)
        scale_tensor(inputs[i], 2.0);
    cases_seal(&t->c->memory);
    run_and_compare(t, &want, "scaled values", exact_bound, NULL);
    for (int i = 0; i < count; i++)
        scale_tensor(inputs[i], 0.5);
    cases_seal(&t->c->memory);
    answer_free(&want);
}

/* V by way of v_descale, which is there where V is FP8. */
static void scale_v(xcheck_trial *t)
{
    const etalon_tensor *const v =
        t->c->op->id == ORACLE_PA_MTP ? &t->c->args.pa_mtp.v_descale : &t->c->args.fmha_varlen.v_descale;
    if (v->data != NULL)
        scale_by(t, &v, 1);
}

static void scale_weights(xcheck_trial *t)
{
    const etalon_tensor *const weights = &t->c->args.mqa_logits.weights;
    scale_by(t, &weights, 1);
}

static void scale_sides(xcheck_trial *t)
{
    const etalon_tensor *const sides[] = { &t->c->args.merge_states.out_a, &t->c->args.merge_states.out_b };
    if (t->c->wide[0] == NULL)
        scale_by(t, sides, 2);
}

/* Splitting
 * ---------
 * The first keys, which every row sees, and the rest under the same mask: bottom-right alignment does not move. */

/* One half: arguments, and the tensors that they have instead of the case's. */
typedef struct half {
    cases_memory memory;
    oracle_args  args;
} half;

static int64_t split_at(const xcheck_case *c, const sequences *s, int64_t b)
{
    const int64_t middle = common_keys(s, b) / 2;
    if (!s->paged)
        return middle;
    const int64_t page = c->args.pa_mtp.k_cache.shape[c->args.pa_mtp.kv_layout == ETALON_KV_HND ? 2 : 1];
    return middle / page * page;
}

static void half_outputs(half *h, const xcheck_case *c)
{
    for (int i = 0; i < c->op->output_count; i++) {
        etalon_tensor *out = xcheck_output(c->op, &h->args, i);
        *out = cases_tensor(&h->memory, NULL, CASES_OUTPUT, ETALON_F32, out->rank, out->shape);
    }
}

static void half_paged(half *h, const xcheck_case *c, const sequences *s, bool second)
{
    etalon_pa_mtp_args *a = &h->args.pa_mtp;
    const int64_t page = a->k_cache.shape[a->kv_layout == ETALON_KV_HND ? 2 : 1], width = a->block_tables.shape[1];
    const etalon_tensor *table = &c->args.pa_mtp.block_tables;
    a->block_tables = cases_tensor(&h->memory, NULL, CASES_INPUT, ETALON_I32, 2, table->shape);
    a->seq_lens = cases_tensor(&h->memory, NULL, CASES_INPUT, s->lengths.dtype, 1, s->lengths.shape);
    for (int64_t b = 0; b < s->batch; b++) {
        const int64_t at = split_at(c, s, b), keys = second ? keys_of(s, b) - at : at, shift = second ? at / page : 0;
        cases_set(&a->seq_lens, b, (double)keys);
        for (int64_t i = 0; i < width; i++)
            cases_set(&a->block_tables, b * width + i,
                      i * page < keys ? cases_get(table, b * width + i + shift) : -1.0);
    }
    a->causal = second ? a->causal : 0;
    a->window_right = second ? a->window_right : ETALON_WINDOW_UNLIMITED;
}

static void half_packed(half *h, const xcheck_case *c, const sequences *s, bool second)
{
    etalon_fmha_varlen_args *a = &h->args.fmha_varlen;
    int64_t                  total = 0, to = 0;
    a->cu_seqlens_k = cases_tensor(&h->memory, NULL, CASES_INPUT, s->lengths.dtype, 1, s->lengths.shape);
    for (int64_t b = 0; b < s->batch; b++) {
        cases_set(&a->cu_seqlens_k, b, (double)total);
        total += second ? keys_of(s, b) - split_at(c, s, b) : split_at(c, s, b);
    }
    cases_set(&a->cu_seqlens_k, s->batch, (double)total);
    const int64_t k_shape[3] = { total, a->k.shape[1], a->k.shape[2] },
                  v_shape[3] = { total, a->v.shape[1], a->v.shape[2] };
    a->k = cases_tensor(&h->memory, NULL, CASES_INPUT, a->k.dtype, 3, k_shape);
    a->v = cases_tensor(&h->memory, NULL, CASES_INPUT, a->v.dtype, 3, v_shape);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t j = second ? split_at(c, s, b) : 0; j < (second ? keys_of(s, b) : split_at(c, s, b)); j++, to++) {
            const etalon_tensor k = key_row(c, 0, b, j), v = key_row(c, 1, b, j);
            const etalon_tensor k_to = cases_fix(a->k, 0, to), v_to = cases_fix(a->v, 0, to);
            cases_copy(&k_to, &k);
            cases_copy(&v_to, &v);
        }
    a->causal = second ? a->causal : 0;
    a->window_right = second ? a->window_right : ETALON_WINDOW_UNLIMITED;
}

static etalon_status half_run(xcheck_trial *t, half *h, bool second)
{
    const sequences s = sequences_of(t->c);
    *h = (half){ .args = t->c->args };
    (s.paged ? half_paged : half_packed)(h, t->c, &s, second);
    half_outputs(h, t->c);
    cases_seal(&h->memory);
    xcheck_stage(t, "run");
    const etalon_status status = xcheck_call(t, 0, &h->args, &h->memory);
    xcheck_stage(t, "memory");
    cases_verify(&h->memory);
    return status;
}

/* Both halves' weights are off by their LSE's error, which is that of the scores, 128 roundings, and its own last
 * place; the halves and the whole are off by their bound each, and the merge by its own. A bounds sum p |v|. */
typedef struct split {
    twice                user;
    const etalon_tensor *lse_a, *lse_b; /* [H, T] */
} split;

static double split_bound(const void *user, int output, const int64_t *index, double want)
{
    const split  *s = user;
    const int64_t lse_index[2] = { output == 0 ? index[1] : index[0], output == 0 ? index[0] : index[1] };
    const double  a = xcheck_value(s->lse_a, lse_index), b = xcheck_value(s->lse_b, lse_index);
    const double  gap = isfinite(a) && isfinite(b) ? fabs(a - b) : 0.0;
    const double  size = fmax(isfinite(a) ? fabs(a) : 0.0, isfinite(b) ? fabs(b) : 0.0);
    const double  sum = output == 0 ? xcheck_value(&s->user.r->bounds.magnitude.tensor[0], index) : 1.0;
    return 2.0 * twice_bound(&s->user, output, index, want) + TWIN_U * (8.0 + 2.0 * gap + 4.0 * size) * sum;
}

static void split_keys(xcheck_trial *t)
{
    const sequences s = sequences_of(t->c);
    const bool      no_lse = xcheck_output(t->c->op, &t->c->args, 1)->data == NULL;
    if (has_windows(&s) || no_lse || t->kernel->model) /* a split moves tiles and blocks */
        return;
    const xcheck_reference *r = xcheck_reference_of(t->y, t->kernel->class);
    half                    a, b;
    if (half_run(t, &a, false) != ETALON_OK)
        return;
    if (half_run(t, &b, true) == ETALON_OK) {
        etalon_merge_states_args merge = ETALON_MERGE_STATES_ARGS_INIT;
        cases_memory             memory = { 0 };
        merge.out_a = *xcheck_output(t->c->op, &a.args, 0);
        merge.lse_a = *xcheck_output(t->c->op, &a.args, 1);
        merge.out_b = *xcheck_output(t->c->op, &b.args, 0);
        merge.lse_b = *xcheck_output(t->c->op, &b.args, 1);
        merge.out = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 3, merge.out_a.shape);
        merge.lse = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 2, merge.lse_a.shape);
        xcheck_stage(t, "run");
        ck_assert_ok(etalon_merge_states(t->y->ctx, &merge, (etalon_workspace){ 0 }));
        const answer want = { { merge.out, merge.lse } };
        const split  user = { { t, r }, &merge.lse_a, &merge.lse_b };
        run_and_compare(t, &want, "split and merged", split_bound, &user);
        cases_free(&memory);
        cases_free(&b.memory);
    }
    cases_free(&a.memory);
}

/* Sides of a merge change places. */
static void swap_sides(xcheck_trial *t)
{
    etalon_merge_states_args *a = &t->c->args.merge_states;
    const twice               user = { t, xcheck_reference_of(t->y, t->kernel->class) };
    answer                    want = first_answer(t);
    for (int turn = 0; turn < 2; turn++) {
        const etalon_tensor out = a->out_a, lse = a->lse_a;
        a->out_a = a->out_b;
        a->lse_a = a->lse_b;
        a->out_b = out;
        a->lse_b = lse;
        if (turn == 0)
            run_and_compare(t, &want, "swapped sides", twice_bound, &user);
    }
    answer_free(&want);
}

/* Compressed logits
 * ----------------- */

/* What the case's logits are by those of the other form; columns that this one lacks are as they were. */
static void shift_row(const xcheck_case *c, const etalon_mqa_logits_args *other, int64_t m, const etalon_tensor *want)
{
    const etalon_mqa_logits_args *a = &c->args.mqa_logits;
    const double                  keys = (double)a->k.shape[0];
    const double                  first = fmin(fmax(cases_get(&a->cu_seqlen_ks, m), 0.0), keys);
    const int64_t                 shift = a->max_seqlen_k > 0 ? (int64_t)first : -(int64_t)first;
    for (int64_t column = 0; column < a->logits.shape[1]; column++) {
        const int64_t from = column + shift;
        if (from < 0 || from >= other->logits.shape[1])
            continue;
        const etalon_tensor row = cases_fix(other->logits, 0, m), to = cases_fix(*want, 0, m);
        const etalon_tensor x = cases_cut(row, 0, from, 1), y = cases_cut(to, 0, column, 1);
        cases_copy(&y, &x);
    }
}

/* Compressed logits are the others, moved; the other form of the case has the same numbers. */
static void shift_columns(xcheck_trial *t)
{
    etalon_mqa_logits_args *a = &t->c->args.mqa_logits;
    cases_memory            memory = { 0 };
    oracle_args             other = t->c->args;
    answer                  want = first_answer(t);
    const int64_t           keys = a->k.shape[0], shape[2] = { a->q.shape[0], keys };
    if (keys > 0) {
        other.mqa_logits.max_seqlen_k = a->max_seqlen_k > 0 ? 0 : keys;
        other.mqa_logits.clean_logits = 1;
        other.mqa_logits.logits = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 2, shape);
        xcheck_stage(t, "run");
        if (xcheck_call(t, 0, &other, &memory) == ETALON_OK) {
            for (int64_t m = 0; m < shape[0]; m++)
                shift_row(t->c, &other.mqa_logits, m, &want.copy[0]);
            run_and_compare(t, &want, "moved columns", NULL, NULL);
        }
        cases_free(&memory);
    }
    answer_free(&want);
}

/* Paged keys
 * ---------- */

/* Blocks first and last of the cache change places, and their ids in the tables with them. */
static void swap_blocks(xcheck_case *c, int64_t first, int64_t last)
{
    etalon_mqa_logits_paged_args *a = &c->args.mqa_logits_paged;
    const etalon_tensor           x = cases_fix(a->kv_cache, 0, first), y = cases_fix(a->kv_cache, 0, last);
    const etalon_tensor           kept = keep(&x);
    cases_copy(&x, &y);
    cases_copy(&y, &kept);
    free(kept.data);
    for (int64_t i = 0; i < cases_count(&a->block_tables); i++) {
        const double id = cases_get(&a->block_tables, i);
        if (id == (double)first || id == (double)last)
            cases_set(&a->block_tables, i, (double)(first + last) - id);
    }
}

static void reverse_blocks(xcheck_case *c)
{
    const int64_t blocks = c->args.mqa_logits_paged.kv_cache.shape[0];
    for (int64_t i = 0; i < blocks / 2; i++)
        swap_blocks(c, i, blocks - 1 - i);
    cases_seal(&c->memory);
}

/* Where blocks lie has no say. */
static void move_blocks(xcheck_trial *t)
{
    if (t->c->wide[1] != NULL)
        return;
    answer want = first_answer(t);
    reverse_blocks(t->c);
    run_and_compare(t, &want, "moved blocks", NULL, NULL);
    reverse_blocks(t->c);
    answer_free(&want);
}

static void scale_paged_weights(xcheck_trial *t)
{
    const etalon_tensor *const weights = &t->c->args.mqa_logits_paged.weights;
    scale_by(t, &weights, 1);
}

typedef void property(xcheck_trial *t);

enum { PROPERTIES = 3 };

static property *const properties[][PROPERTIES] = {
    [ORACLE_PA_MTP] = { permute_keys, split_keys, scale_v },
    [ORACLE_FMHA_VARLEN] = { permute_keys, split_keys, scale_v },
    [ORACLE_MQA_LOGITS] = { reverse_keys, scale_weights, shift_columns },
    [ORACLE_MQA_LOGITS_PAGED] = { move_blocks, scale_paged_weights },
    [ORACLE_MERGE_STATES] = { swap_sides, scale_sides },
};

int xcheck_property_count(const oracle_op *op)
{
    int count = 0;
    while (count < PROPERTIES && properties[op->id][count] != NULL)
        count++;
    return count;
}

void xcheck_property(xcheck_trial *t, int number)
{
    properties[t->c->op->id][number](t);
}
