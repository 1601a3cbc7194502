#include "mqa_logits_paged.h"
#include "mqa_logits_row.h"

etalon_status etalon_mqa_logits_paged_ref(const etalon_context *ctx, const mqa_logits_paged_problem *p,
                                          etalon_workspace work)
{
    const int64_t rows = p->batch * p->next_n;
    (void)work;
    (void)ctx;
#pragma omp parallel for schedule(dynamic) num_threads(context_threads(ctx, rows))
    for (int64_t m = 0; m < rows; m++) {
        const mqa_logits_problem sequence = mqa_logits_paged_sequence(p, m / p->next_n);
        mqa_logits_row(&sequence, m % p->next_n);
    }
    return ETALON_OK;
}
