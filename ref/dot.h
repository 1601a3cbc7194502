/* sum_d a[d] * b[d] in fp32, in an order that depends on n alone. */
#ifndef ETALON_DOT_H
#define ETALON_DOT_H

#include <stdint.h>

/* Eight interleaved partial sums, then added pairwise: any compiler may vectorise it without changing a bit. */
static inline float dot(const float *a, const float *b, int64_t n)
{
    float sum[8] = { 0 };
    for (int64_t d = 0; d < n - n % 8; d += 8)
        for (int i = 0; i < 8; i++)
            sum[i] += a[d + i] * b[d + i];
    for (int64_t d = n - n % 8; d < n; d++)
        sum[d % 8] += a[d] * b[d];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

#endif
