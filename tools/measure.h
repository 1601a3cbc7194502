/* Error measures: how far a tensor is from the one it should be. */
#ifndef ETALON_MEASURE_H
#define ETALON_MEASURE_H

#include <etalon/types.h>
#include <stdbool.h>

typedef struct measure_element {
    int64_t index[ETALON_MAX_RANK];
    double  got, want, bound; /* bound: NaN where none was given */
    int64_t ulp; /* distance in units of the last place of got's dtype; INT64_MAX if either is not finite */
} measure_element;

/* All sums in fp64. x is got, y is want, over the elements where both are finite; "std" is the population standard
 * deviation of all finite wanted values. Equal infinities match, and so do two NaN; neither takes part in a sum.
 *
 * An ulp distance counts steps from value to value of got's dtype: want is rounded to that dtype first (nearest, ties
 * to even; beyond the largest value to infinity, or to the largest value where the dtype has none). +0 and -0 are one
 * value.
 *
 * Every element has at most one mismatch: unwritten before NaN before infinity. Squares of F64 values beyond 1e+-150
 * leave the range of the sums.
 */
typedef struct measure {
    int64_t rank;
    int64_t elements;         /* in the tensor */
    int64_t compared;         /* both finite */
    double  max_abs;          /* max |x - y| */
    double  rms;              /* sqrt(mean (x - y)^2) */
    double  max_err_over_std; /* max |x - y| / std(y); 0 if all equal; infinity if std is 0 and they differ */
    double  cosine;           /* sum x y / sqrt(sum x^2 sum y^2); 1 if both are all zero, 0 if one is */
    double  calc_diff;        /* 1 - 2 sum x y / sum (x^2 + y^2); 0 if both are all zero */
    int64_t max_ulp;          /* over the compared elements */
    double  max_bound_ratio;  /* max |x - y| / bound; 0/0 is 0; a mismatch counts as infinity, and so does a difference
                                 whose bound is zero, negative or NaN. 0 without bounds */
    int64_t over_bound;       /* elements whose ratio is above 1, mismatches included. 0 without bounds */
    int64_t inf_mismatches;   /* one side is -inf or +inf and the other is something else, no NaN */
    int64_t nan_mismatches;   /* NaN on one side only, or written where want holds the poison; unwritten left out */
    int64_t unwritten;        /* elements that still hold the poison of measure_poison(), unless want does, too */
    bool    has_worst;        /* something differs */
    measure_element worst;    /* the element that decides: largest ratio, or largest |x - y| without bounds; unwritten,
                                 then NaN, then infinity mismatches come before any finite one; the first of equals */
    measure_element first;    /* the first element, in index order, that is over its bound or mismatched */
    bool            has_first;
} measure;

/* Bound of the element at index, as a non-negative absolute difference. Asked only where got and want differ. */
typedef double measure_bound_fn(const void *user, const int64_t *index);

/**
 * Compares two host tensors of one shape, any floating-point or FP8 dtypes, any strides. bound may be NULL.
 * Returns false, touching nothing, if the shapes differ or a dtype is not a number format (integers, E8M0).
 */
bool measure_compare(const etalon_tensor *got, const etalon_tensor *want, measure_bound_fn *bound, const void *user,
                     measure *result);

/**
 * Fills every element with a NaN of a chosen payload, which measure_compare tells from other NaN. It is a signalling
 * NaN, and no arithmetic delivers one: what a kernel computes, be it from the poison itself, is never the poison.
 * FP8 and E8M0 get their NaN code, which a kernel may well write: there measure_compare counts NaN mismatches and
 * nothing as unwritten. Integer tensors stay as they are.
 */
void measure_poison(const etalon_tensor *t);

/* "[3, 0, 17]"; "[]" for rank 0. Cut to bytes, terminator included. */
void measure_index_text(const measure_element *e, int64_t rank, char *text, size_t bytes);

/** True if nothing is mismatched, unwritten or over its bound. */
bool measure_ok(const measure *m);

#endif
