/* out = (w_a out_a + w_b out_b) / (w_a + w_b), w_x = exp(lse_x - max(lse_a, lse_b)), in fp32. */
#include "element.h"
#include "merge_states.h"

/* FlashAttention-2 writes +inf for a row without keys. */
static float empty_is_minus_inf(float lse)
{
    return lse == INFINITY ? -INFINITY : lse;
}

/* One side's outputs as they are, or zeros if that side is NULL. */
static void copy_row(const merge_states_problem *p, const etalon_tensor *side, int64_t t, int64_t h)
{
    for (int64_t d = 0; d < p->d; d++)
        element_store(tensor_at3(&p->out, t, h, d), p->out.dtype,
                      side == NULL ? 0.0f : element_load(tensor_at3(side, t, h, d), side->dtype));
}

static void mix_row(const merge_states_problem *p, int64_t t, int64_t h, float w_a, float w_b)
{
    for (int64_t d = 0; d < p->d; d++) {
        const float a = element_load(tensor_at3(&p->out_a, t, h, d), p->out_a.dtype);
        const float b = element_load(tensor_at3(&p->out_b, t, h, d), p->out_b.dtype);
        element_store(tensor_at3(&p->out, t, h, d), p->out.dtype, (w_a * a + w_b * b) / (w_a + w_b));
    }
}

static void merge(const merge_states_problem *p, int64_t t, int64_t h)
{
    const float lse_a = empty_is_minus_inf(*(const float *)tensor_at2(&p->lse_a, h, t));
    const float lse_b = empty_is_minus_inf(*(const float *)tensor_at2(&p->lse_b, h, t));
    float       lse;
    const bool  a_empty = lse_a == -INFINITY, b_empty = lse_b == -INFINITY;
    if ((a_empty || b_empty) && !isnan(lse_a) && !isnan(lse_b)) {
        lse = a_empty ? lse_b : lse_a;
        copy_row(p, a_empty && b_empty ? NULL : a_empty ? &p->out_b : &p->out_a, t, h);
    } else {
        const float m = lse_a > lse_b ? lse_a : lse_b;
        const float w_a = expf(lse_a - m), w_b = expf(lse_b - m);
        lse = m + logf(w_a + w_b);
        mix_row(p, t, h, w_a, w_b);
    }
    if (!tensor_absent(&p->lse))
        *(float *)tensor_at2(&p->lse, h, t) = lse;
}

etalon_status etalon_merge_states_ref(const etalon_context *ctx, const merge_states_problem *p, etalon_workspace work)
{
    (void)work;
    (void)ctx;
#pragma omp parallel for num_threads(context_threads(ctx, p->tokens))
    for (int64_t t = 0; t < p->tokens; t++)
        for (int64_t h = 0; h < p->heads; h++)
            merge(p, t, h);
    return ETALON_OK;
}
