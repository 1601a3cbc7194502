/* What one logit of the indexer is made of, for both operations that give logits. */
#ifndef ETALON_LOGITS_H
#define ETALON_LOGITS_H

#include "oracle.h"

/** True for mqa_logits and mqa_logits_paged. */
bool logits_are_of(const oracle_op *op);

/** clean_logits */
bool logits_are_clean(const oracle_problem *problem);

/* Columns of a row, half open: those of the keys that it sees. */
typedef struct logits_window {
    int64_t first, last;
} logits_window;

logits_window logits_window_of(const oracle_problem *problem, int64_t m);

/** The key of column 0. */
int64_t logits_origin(const oracle_problem *problem, int64_t m);

/** [M, H] */
const etalon_tensor *logits_weights(const oracle_problem *problem);

/** [H, D], of row m */
etalon_tensor logits_query(const oracle_problem *problem, int64_t m);

/** [D], the key of a column of row m, and its scale; of mqa_logits_paged only in the row's window. */
etalon_tensor logits_key(const oracle_problem *problem, int64_t m, int64_t column, float *scale);

#endif
