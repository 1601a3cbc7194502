/* The plan of pa_mtp, which its three portable kernels read alike. */
#ifndef ETALON_PA_MTP_DEVICE_H
#define ETALON_PA_MTP_DEVICE_H

#include "attention_device.h"

#include "pa_mtp_omp.h"

/* One sequence under the plan. */
typedef struct pa_mtp_sequence {
    int64_t         first_q, sq, sk;
    attention_range see;              /* of all its tokens */
    int64_t         groups, segments; /* of rows, for each KV head; of keys, at least one */
} pa_mtp_sequence;

/* segment_keys 0: segments are left out. */
DEVICE pa_mtp_sequence pa_mtp_sequence_of(const attention_omp &a, int64_t b, int64_t segment_keys)
{
    pa_mtp_sequence s;
    s.first_q = attention_cu_q(a, b);
    s.sq = attention_cu_q(a, b + 1) - s.first_q;
    s.sk = attention_length(a, b);
    s.see = attention_visible(a, 0, s.sq, s.sq, s.sk);
    s.groups = device_divide(s.sq * attention_ratio(a) + ROWS - 1, ROWS);
    s.segments = 1;
    if (segment_keys > 0 && s.see.last > s.see.first)
        s.segments = device_divide(s.see.last - s.see.first + segment_keys - 1, segment_keys);
    return s;
}

DEVICE int64_t pa_mtp_segment_keys(const pa_mtp_omp &args)
{
    return device_load<int64_t>(args.plan);
}

DEVICE int64_t pa_mtp_first_task(const pa_mtp_omp &args, int64_t b)
{
    return device_load<int64_t>(args.plan + (uint64_t)(8 * (b + 1)));
}

DEVICE uint64_t pa_mtp_part(const pa_mtp_omp &args, int64_t task)
{
    return args.parts + (uint64_t)(task * ROWS * (args.a.d_v + 2) * 4);
}

#endif
