/* The contract of merge_states: what it refuses and in which words, empty sides, and cases worked by hand. */
#include "merge_states.h"
#include "testing.h"

#include <math.h>

enum { T = 2, H = 3, D = 2 };

typedef struct fixture {
    etalon_merge_states_args args;
    float                    out_a[T * H * D], out_b[T * H * D], out[T * H * D];
    float                    lse_a[H * T], lse_b[H * T], lse[H * T];
    etalon_context          *ctx;
} fixture;

static etalon_tensor out_tensor(float *data)
{
    return etalon_tensor_dense(data, ETALON_F32, 3, (const int64_t[]){ T, H, D });
}

static etalon_tensor lse_tensor(float *data)
{
    return etalon_tensor_dense(data, ETALON_F32, 2, (const int64_t[]){ H, T });
}

static void set_up(fixture *f)
{
    *f = (fixture){ .args = ETALON_MERGE_STATES_ARGS_INIT };
    for (int i = 0; i < T * H * D; i++) {
        f->out_a[i] = (float)i;
        f->out_b[i] = (float)-i;
        f->out[i] = -77.0f;
    }
    for (int i = 0; i < H * T; i++) {
        f->lse_a[i] = 0.5f * (float)i;
        f->lse_b[i] = 1.0f;
        f->lse[i] = -77.0f;
    }
    f->args.out_a = out_tensor(f->out_a);
    f->args.out_b = out_tensor(f->out_b);
    f->args.out = out_tensor(f->out);
    f->args.lse_a = lse_tensor(f->lse_a);
    f->args.lse_b = lse_tensor(f->lse_b);
    f->args.lse = lse_tensor(f->lse);
    ck_assert_ok(etalon_context_create(NULL, &f->ctx));
}

static etalon_status run(fixture *f)
{
    etalon_workspace    work = { 0 };
    const etalon_status refused = etalon_merge_states_workspace_bytes(f->ctx, &f->args, &work.bytes);
    if (refused != ETALON_OK)
        return refused;
    work.data = aligned_alloc(ETALON_WORKSPACE_ALIGN, work.bytes);
    const etalon_status status = etalon_merge_states(f->ctx, &f->args, work);
    free(work.data);
    return status;
}

/* One statement breaks a good call: the sentence holds the words, and no output changed. */
#define REJECT(statement, words)                                          \
    do {                                                                  \
        fixture f;                                                        \
        set_up(&f);                                                       \
        etalon_merge_states_args *a = &f.args;                            \
        statement;                                                        \
        ck_assert_rejects(run(&f), ETALON_ERROR_INVALID_ARGUMENT, words); \
        for (int i = 0; i < T * H * D; i++)                               \
            ck_assert_float_eq(f.out[i], -77.0f);                         \
        etalon_context_destroy(f.ctx);                                    \
    } while (0)

START_TEST(refuses_wrong_arguments)
{
    REJECT(a->out_a.data = NULL, "merge_states: out_a: missing");
    REJECT(a->lse_b.data = NULL, "merge_states: lse_b: missing");
    REJECT(a->out.data = NULL, "merge_states: out: missing");
    REJECT(a->out_b.dtype = ETALON_BF16, "out_b: dtype bf16, expected f32");
    REJECT(a->lse.dtype = ETALON_F64, "lse: dtype f64, expected f32");
    REJECT(a->out_a.shape[1] = 0, "out_a.shape[1]: 0 heads, expected 1 or more");
    REJECT(a->out_b.shape[0] = 1, "out_b.shape[0]: 1, expected 2 (that of out_a)");
    REJECT(a->lse_a.shape[0] = 2, "lse_a.shape[0]: 2, expected 3 (heads of out_a)");
    REJECT(a->lse.shape[1] = 1, "lse.shape[1]: 1, expected 2 (tokens of out_a)");
    REJECT(a->lse_b.device = 2, "lse_b.device: 2, expected -1 (that of out_a)");
    REJECT(a->out.stride[0] = 1, "elements would overlap");
    REJECT((a->out.data = f.out_a, a->out.stride[0] = 1, a->out.stride[1] = 4, a->out.stride[2] = 2),
           "out: overlaps out_a in memory");
}
END_TEST

/* An empty side is -inf, or +inf as FlashAttention-2 has it; what stands in its outputs is not read. */
static const struct {
    float a, b;
    int   from; /* 0: zeros, 1: a, 2: b */
} empties[] = {
    { -INFINITY, -INFINITY, 0 }, { INFINITY, -INFINITY, 0 }, { INFINITY, INFINITY, 0 }, { -INFINITY, 0.25f, 2 },
    { INFINITY, 0.25f, 2 },      { 0.25f, -INFINITY, 1 },    { -1e30f, INFINITY, 1 },
};

START_TEST(empty_sides_are_neutral)
{
    fixture f;
    set_up(&f);
    for (int i = 0; i < H * T; i++) {
        f.lse_a[i] = empties[_i].a;
        f.lse_b[i] = empties[_i].b;
    }
    for (int i = 0; i < T * H * D; i++) {
        if (empties[_i].from != 1)
            f.out_a[i] = NAN;
        if (empties[_i].from != 2)
            f.out_b[i] = NAN;
    }
    ck_assert_ok(run(&f));
    for (int i = 0; i < T * H * D; i++)
        ck_assert_float_eq(f.out[i], empties[_i].from == 0 ? 0.0f : empties[_i].from == 1 ? f.out_a[i] : f.out_b[i]);
    for (int i = 0; i < H * T; i++)
        ck_assert_float_eq(f.lse[i], empties[_i].from == 0   ? -INFINITY
                                     : empties[_i].from == 1 ? empties[_i].a
                                                             : empties[_i].b);
    etalon_context_destroy(f.ctx);
}
END_TEST

START_TEST(nan_is_not_hidden)
{
    const float others[] = { 1.0f, -INFINITY, INFINITY, NAN };
    for (int i = 0; i < 4; i++) {
        fixture f;
        set_up(&f);
        f.lse_a[0] = NAN;
        f.lse_b[0] = others[i];
        ck_assert_ok(run(&f));
        ck_assert(isnan(f.lse[0]) && isnan(f.out[0]) && isnan(f.out[1]));
        ck_assert(!isnan(f.lse[1]) && !isnan(f.out[2]));
        etalon_context_destroy(f.ctx);
    }
}
END_TEST

/* Against the formula in double, within the docstring's bound. */
START_TEST(worked_by_hand)
{
    fixture f;
    set_up(&f);
    f.lse_b[1] = 80.0f; /* far apart: one side all but vanishes */
    ck_assert_ok(run(&f));
    const double u = 0x1p-24;
    for (int t = 0; t < T; t++)
        for (int h = 0; h < H; h++) {
            const double la = f.lse_a[h * T + t], lb = f.lse_b[h * T + t], lse = log(exp(la) + exp(lb));
            ck_assert_double_eq_tol(f.lse[h * T + t], lse, 4 * u + u * fabs(lse));
            for (int d = 0; d < D; d++) {
                const int    i = (t * H + h) * D + d;
                const double want = exp(la - lse) * f.out_a[i] + exp(lb - lse) * f.out_b[i];
                const double most = fmax(fabs((double)f.out_a[i]), fabs((double)f.out_b[i]));
                ck_assert_double_le(fabs(f.out[i] - want), (8 + 2 * fabs(la - lb)) * u * most);
            }
        }
    etalon_context_destroy(f.ctx);
}
END_TEST

START_TEST(merges_in_place)
{
    for (int side = 0; side < 2; side++) {
        fixture f;
        set_up(&f);
        ck_assert_ok(run(&f));
        float want[T * H * D], want_lse[H * T];
        memcpy(want, f.out, sizeof want);
        memcpy(want_lse, f.lse, sizeof want_lse);
        f.args.out = side == 0 ? f.args.out_a : f.args.out_b;
        f.args.lse = side == 0 ? f.args.lse_a : f.args.lse_b;
        ck_assert_ok(run(&f));
        ck_assert_mem_eq(f.args.out.data, want, sizeof want);
        ck_assert_mem_eq(f.args.lse.data, want_lse, sizeof want_lse);
        etalon_context_destroy(f.ctx);
    }
}
END_TEST

START_TEST(gate_selects)
{
    const merge_states_problem host = { .device = ETALON_HOST }, device = { .device = 0 };
    ck_assert_str_eq(gate_select(&merge_states_gate, NEEDS_NONE, &host)->name, "merge_states_ref");
    ck_assert_ptr_null(gate_select(&merge_states_gate, NEEDS_NONE, &device));
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, refuses_wrong_arguments);
    tcase_add_loop_test(tcase, empty_sides_are_neutral, 0, sizeof empties / sizeof empties[0]);
    tcase_add_test(tcase, nan_is_not_hidden);
    tcase_add_test(tcase, worked_by_hand);
    tcase_add_test(tcase, merges_in_place);
    tcase_add_test(tcase, gate_selects);
}

int main(void)
{
    return testing_main("merge_states", fill);
}
