/* How far a result may be from a reference: the bounds that the headers state, evaluated.
 *
 * Two classes. BOUND_FP32 is that of the fp32 rows, as the docstrings give it. BOUND_FP8 is for kernels that compute on
 * FP8 matrix units. With e, p, gamma of <etalon/pa_mtp.h>, A[d] = sum_j p[j] |v[j, d]|, V[d] = max_j |v[j, d]|, and 1
 * for the key of the row's largest weight:
 *
 *   pa_mtp, fmha_varlen, for every element and for every row (t, h):
 *     |out - ref|   <= 2^-4 (A[d] - p[1] |v[1, d]|) + 2^-10 p[1] |v[1, d]| + 2^-11 V[d] + (2 e + gamma(160)) A[d]
 *                      + 2^-8 |ref|
 *     ||out - ref|| <= 2^-4 ||ref - p[1] v[1]|| + 4 (2^-4 / sqrt 3) sqrt(sum_d S[d]) + 2^-10 ||p[1] v[1]||
 *                      + 2^-11 ||V|| + ||(2 e + gamma(160)) A|| + 2^-8 ||ref||
 *     where S[d] >= sum_{j != 1} p[j]^2 v[j, d]^2.
 *     P is rounded to E4M3, each weight by at most 2^-4 of itself. The largest is 1, or 2^n, and exact; 2^-10 allows
 *     for scores that close to it. Weights that are subnormal beside the largest of their tile of 128 lose at most
 *     2^-11 of the tile's largest together; there is no other floor: a kernel that loses small weights is wrong.
 *     Errors that all keys share scale the row. Independent ones add in quadrature: an error uniform in +-2^-4 has
 *     the deviation 2^-4 / sqrt 3, and the sum over keys stays within four deviations.
 *     S[d] = V[d] (exp(lse2 - 2 lse) A2[d] - p[1]^2 |v[1, d]|), with A2 and lse2 those of twice the softmax scale.
 *     p[1] and v[1] come from the operation at 2^14 times the softmax scale; where keys tie, v[1] is their mean.
 *     |lse - ref| <= the fp32 bound or 1e-3, whichever is larger: the field's bar for sums of rounded exponentials.
 *   mqa_logits, mqa_logits_paged: 2^-11 in place of gamma, for accumulators that truncate at 13 fractional bits, once for each of four
 *     instructions that 128 products take; and calc_diff <= 5e-6 over the finite elements, the field's bar for logits
 *     from equally quantised inputs. NaN in the reference is not compared: hardware's max(x, 0) may drop it.
 *   merge_states: the fp32 bound.
 *
 * Where out has fewer bits than F32, 2^-8 |ref| is added in either class. A row whose scores are so large that e > 2^-6
 * has no bound worth the name: its elements may be 2 V[d] off, and it counts in `unbounded_rows`.
 */
#ifndef ETALON_BOUND_H
#define ETALON_BOUND_H

#include "measure.h"
#include "oracle.h"

typedef enum bound_class { BOUND_FP32, BOUND_FP8 } bound_class;

/* That of a row by its name: FP8 for a `_model`, and for a kernel whose dtype token is e4m3, which computes on FP8 matrix
 * units. */
bound_class bound_class_of(const char *kernel);

/* What the bounds of one problem are made of. */
typedef struct bound {
    const oracle_problem *problem;
    oracle_result         magnitude; /* A and lse: the operation with |v| in place of v */

    /* attention: T tokens, H query heads, G = H / Hkv */
    int64_t       tokens, heads, kv_heads, dv;
    int64_t      *sequence; /* [T] */
    double       *e;        /* [T, H], error of a score */
    double       *spread;   /* [T, H], sum_d S[d]; this and the next two only for BOUND_FP8 */
    double       *p_top;    /* [T, H], the row's largest weight */
    oracle_result top;      /* v at that weight, and 2^14 times its score */
    double       *v_max;    /* [B, Hkv, Dv], max_j |v| */

    /* mqa_logits and mqa_logits_paged: bound = gamma q_weight[m] k_norm[k_first[m] + column] */
    double  *q_weight; /* [M], sum_h |weights[m, h]| |q[m, h, :]| */
    double  *k_norm;   /* [N], |kv_scale[n]| |k[n, :]|; paged: [B, N], where a row of the sequence sees the key */
    int64_t *k_first;  /* [M] */
    int64_t *window;   /* [M, 2], columns of the keys that the row sees */
} bound;

/* One output under test against its reference. */
typedef struct verdict {
    bool    pass;
    measure m;

    int64_t rows_over;                      /* rows (t, h) whose norm is over its bound */
    double  row_ratio;                      /* the largest error / bound of a row; 0 where rows are not judged */
    int64_t row[2];                         /* its t and h */
    double  row_error, row_bound, row_norm; /* norms of out - ref, their bound, the norm of ref */

    bool    calc_diff_over;
    int64_t unbounded_rows;
    int64_t overwritten; /* elements outside the window that a row with clean_logits = 0 has written */
} verdict;

/** gamma(n) = n u / (1 - n u), u = 2^-24: n roundings to fp32. */
double bound_gamma(int64_t n);

/**
 * Evaluates what the bounds of the class need: one call of the operation, three for BOUND_FP8, with the row that serves
 * the problem. The bound borrows the problem. Free it, failure or not.
 */
bool bound_prepare(const etalon_context *ctx, const oracle_problem *problem, bound_class class, bound *b,
                   tensorfile_error *error);

void bound_free(bound *b);

/** The bound of one element of an output, `got_dtype` being that of the result; want: the reference's value there. */
double bound_element(const bound *b, bound_class class, int output, etalon_dtype got_dtype, const int64_t *index,
                     double want);

/**
 * Judges got, of any number format, against want. poisoned: got was computed into poisoned memory, so that with
 * clean_logits = 0 the poison must still be there outside the window.
 */
bool bound_judge(const bound *b, bound_class class, int output, const etalon_tensor *got, const etalon_tensor *want,
                 bool poisoned, verdict *v, tensorfile_error *error);

/** True if a kernel on FP8 matrix units rounds q to E4M3FN before anything else: pa_mtp with BF16 or F32 q. */
bool bound_may_round_q(const oracle_problem *problem);

/** The problem with q rounded so, saturating, in its own dtype, which holds every such value. Free q->data. */
bool bound_round_q(const oracle_problem *problem, etalon_tensor *q, oracle_problem *rounded, tensorfile_error *error);

/** error / bound of the worst element or row; infinity if something fails that has no ratio. */
double verdict_ratio(const verdict *v);

#endif
