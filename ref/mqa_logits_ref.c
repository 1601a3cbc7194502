/* logits[m, n] = kv_scale[n] * sum_h weights[m, h] * relu(q[m, h, :] . k[n, :]), in fp32. */
#include "dot.h"
#include "element.h"
#include "mqa_logits.h"

static float relu(float x)
{
    return x < 0.0f ? 0.0f : x; /* NaN stays */
}

static const float *weights_row(const mqa_logits_problem *p, int64_t m)
{
    return (const float *)tensor_at2(&p->weights, m, 0);
}

static void fill(const mqa_logits_problem *p, int64_t m, int64_t first, int64_t last)
{
    for (int64_t n = first; n < last; n++)
        *(float *)tensor_at2(&p->logits, m, n) = -INFINITY;
}

/* One row, head by head: logits[m, n] accumulates the weighted heads, h ascending, and is scaled last. */
static void row(const mqa_logits_problem *p, int64_t m)
{
    const key_range see = mqa_logits_window(p, m);
    float           q[ETALON_MAX_HEAD_DIM], k[ETALON_MAX_HEAD_DIM];
    if (p->clean) {
        fill(p, m, 0, see.first);
        fill(p, m, see.last, p->n);
    }
    for (int64_t h = 0; h < p->h; h++) {
        const float weight = weights_row(p, m)[h * p->weights.stride[1]];
        element_load_row(q, tensor_at3(&p->q, m, h, 0), p->q.dtype, p->q.stride[2], p->d);
        for (int64_t n = see.first; n < see.last; n++) {
            float *logit = (float *)tensor_at2(&p->logits, m, n);
            element_load_row(k, tensor_at2(&p->k, n, 0), p->k.dtype, p->k.stride[1], p->d);
            *logit = (h == 0 ? 0.0f : *logit) + weight * relu(dot(q, k, p->d));
        }
    }
    for (int64_t n = see.first; n < see.last; n++)
        *(float *)tensor_at2(&p->logits, m, n) *= ((const float *)p->kv_scale.data)[n * p->kv_scale.stride[0]];
}

etalon_status etalon_mqa_logits_ref(const etalon_context *ctx, const mqa_logits_problem *p, etalon_workspace work)
{
    (void)work;
    (void)ctx;
#pragma omp parallel for schedule(dynamic) num_threads(context_threads(ctx, p->m))
    for (int64_t m = 0; m < p->m; m++)
        row(p, m);
    return ETALON_OK;
}
