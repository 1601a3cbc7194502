/* The float64 twin: every operation a second time, straight from the headers' formulas and in double.
 *
 * It shares no code with the library: formats are decoded with ldexp, softmax needs no tiles and no running maximum.
 * Next to each value stands the accuracy bound of the header's docstring, so that a test can state measured error /
 * bound. */
#ifndef ETALON_TWIN_H
#define ETALON_TWIN_H

#include <etalon/fmha_varlen.h>
#include <etalon/merge_states.h>
#include <etalon/mqa_logits.h>
#include <etalon/mqa_logits_paged.h>
#include <etalon/pa_mtp.h>

#include <stdbool.h>

#define TWIN_U 0x1p-24 /* unit roundoff of fp32 */

double twin_gamma(double n);

/* The docstrings' 2 e + gamma(160), and e + gamma(128) + u |lse|. */
double twin_out_relative(double e);
double twin_lse_bound(double e, double lse);

/* One element in double; NaN for what is not a number format. */
double twin_load(const void *at, etalon_dtype dtype);

/* Rounds to nearest, ties to even, then stores; FP8 saturates. Index types take x as it is. */
void twin_store(void *at, etalon_dtype dtype, double x);

/* The value that twin_store would leave in an FP8 or BF16 element. */
double twin_round(double x, etalon_dtype dtype);

/* Results in row-major order: out [T, Hq, Dv], lse [Hq, T], e [Hq, T]. e is the `e` of the docstring: the output
 * bound is stated for e <= 2^-6 alone. */
typedef struct twin_attention {
    int64_t t, hq, dv;
    double *out, *out_bound;
    double *lse, *lse_bound;
    double *e;
    /* Only where a model was asked for: the same rows without the rounding of P, and the most that it can have cost. */
    double *unrounded, *loss_bound;
} twin_attention;

void twin_pa_mtp(const etalon_pa_mtp_args *args, twin_attention *result);
void twin_fmha_varlen(const etalon_fmha_varlen_args *args, twin_attention *result);

/* The `_model` rows: rounds q (pa_mtp) and P as args->model says. out_bound then bounds the distance of an fp32
 * implementation of the same model; a weight that stands so near a rounding boundary that fp32 could fall on either
 * side may take the neighbouring code. */
void twin_pa_mtp_model(const etalon_pa_mtp_args *args, twin_attention *result);
void twin_fmha_varlen_model(const etalon_fmha_varlen_args *args, twin_attention *result);

void twin_attention_free(twin_attention *result);

/* logits [M, N], N counting columns: -inf outside the window if clean, NaN (for "untouched") if not. */
typedef struct twin_mqa_logits_result {
    int64_t m, n;
    double *logits, *bound;
} twin_mqa_logits_result;

void twin_mqa_logits(const etalon_mqa_logits_args *args, twin_mqa_logits_result *result);
void twin_mqa_logits_paged(const etalon_mqa_logits_paged_args *args, twin_mqa_logits_result *result);
void twin_mqa_logits_free(twin_mqa_logits_result *result);

/* Read before an in-place call overwrites its inputs. */
void twin_merge_states(const etalon_merge_states_args *args, twin_attention *result);

#endif
