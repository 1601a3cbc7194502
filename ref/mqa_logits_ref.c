#include "mqa_logits_row.h"

etalon_status etalon_mqa_logits_ref(const etalon_context *ctx, const mqa_logits_problem *p, etalon_workspace work)
{
    (void)work;
    (void)ctx;
#pragma omp parallel for schedule(dynamic) num_threads(context_threads(ctx, p->m))
    for (int64_t m = 0; m < p->m; m++)
        mqa_logits_row(p, m);
    return ETALON_OK;
}
