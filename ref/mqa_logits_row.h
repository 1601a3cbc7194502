/* logits[m, n] = kv_scale[n] * sum_h weights[m, h] * relu(q[m, h, :] . k[n, :]) for one row, in fp32: what mqa_logits_ref
 * and mqa_logits_paged_ref share. */
#ifndef ETALON_MQA_LOGITS_ROW_H
#define ETALON_MQA_LOGITS_ROW_H

#include "dot.h"
#include "element.h"
#include "mqa_logits.h"

static inline float mqa_logits_relu(float x)
{
    return x < 0.0f ? 0.0f : x; /* NaN stays */
}

/* -inf in the columns [first, last). */
static inline void mqa_logits_fill(const mqa_logits_problem *p, int64_t m, int64_t first, int64_t last)
{
    for (int64_t c = first; c < last; c++)
        *(float *)tensor_at2(&p->logits, m, c) = -INFINITY;
}

/* Head by head: the logit accumulates the weighted heads, h ascending, and is scaled last. */
static inline void mqa_logits_row(const mqa_logits_problem *p, int64_t m)
{
    const key_range   see = mqa_logits_window(p, m);
    const int64_t     origin = mqa_logits_origin(p, see);
    const attend_keys keys = mqa_logits_keys(p);
    float             q[ETALON_MAX_HEAD_DIM], k[ETALON_MAX_HEAD_DIM];
    if (p->clean) {
        mqa_logits_fill(p, m, 0, see.first - origin);
        mqa_logits_fill(p, m, see.last - origin, p->columns);
    }
    for (int64_t h = 0; h < p->h; h++) {
        const float weight = *(const float *)tensor_at2(&p->weights, m, h);
        element_load_row(q, tensor_at3(&p->q, m, h, 0), p->q.dtype, p->q.stride[2], p->d);
        for (int64_t n = see.first; n < see.last; n++) {
            float *logit = (float *)tensor_at2(&p->logits, m, n - origin);
            element_load_row(k, mqa_logits_key(&keys, n), p->k.dtype, p->k.stride[1], p->d);
            *logit = (h == 0 ? 0.0f : *logit) + weight * mqa_logits_relu(dot(q, k, p->d));
        }
    }
    for (int64_t n = see.first; n < see.last; n++)
        *(float *)tensor_at2(&p->logits, m, n - origin) *= mqa_logits_scale(&keys, n);
}

#endif
