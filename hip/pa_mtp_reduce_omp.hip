/* Joins the parts of the segments: with M = max m, out = sum 2^(m - M) O / sum 2^(m - M) l. The powers of two are
 * exact, and the sums are compensated. A workgroup takes rows (token, query head) at a stride of the grid.
 */
#include "pa_mtp_device.h"

/* cu[b] <= token < cu[b + 1] */
DEVICE int64_t sequence_of_token(const attention_omp &a, int64_t token)
{
    int64_t low = 0, high = a.batch;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (attention_cu_q(a, middle) <= token)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The parts of one row: `step` bytes apart; m, l and O[0] of the row at these. */
typedef struct row_parts {
    uint64_t m, l, o;
    int64_t  step, count;
} row_parts;

DEVICE row_parts row_parts_of(const pa_mtp_omp &args, int64_t task, int64_t row, const pa_mtp_sequence &s)
{
    const uint64_t first = pa_mtp_part(args, task), m = first + (uint64_t)((ROWS * args.a.d_v + row) * 4);
    return { m, m + ROWS * 4, first + (uint64_t)(row * args.a.d_v * 4),
             (int64_t)(pa_mtp_part(args, task + s.groups) - first), s.segments };
}

DEVICE float most_of(const row_parts &parts)
{
    float most = -__builtin_inff();
#pragma unroll 8
    for (int64_t i = 0; i < parts.count; i++)
        most = device_most(most, device_load<float>(parts.m + (uint64_t)(i * parts.step)));
    return most;
}

/* The weighted sums of l and of O[d]; a part without a maximum holds zeros, or NaN. */
typedef struct row_sums {
    float l, o;
} row_sums;

DEVICE row_sums joined(const row_parts &parts, float most, int64_t d)
{
    float l = 0.0f, l_lost = 0.0f, o = 0.0f, o_lost = 0.0f;
#pragma unroll 8
    for (int64_t i = 0; i < parts.count; i++) {
        const uint64_t skip = (uint64_t)(i * parts.step);
        const float    m = device_load<float>(parts.m + skip);
        const float    weight = m == -__builtin_inff() ? 1.0f : device_power_of_two(m - most);
        device_add(l, l_lost, weight * device_load<float>(parts.l + skip));
        device_add(o, o_lost, weight * device_load<float>(parts.o + (uint64_t)(d * 4) + skip));
    }
    return { l + l_lost, o + o_lost };
}

KERNEL void etalon_pa_mtp_reduce_omp(const pa_mtp_omp args)
{
    const attention_omp &a = args.a;
    const int64_t        ratio = attention_ratio(a), segment_keys = pa_mtp_segment_keys(args);
    for (int64_t i = device_group(); i < a.tokens * a.heads; i += args.reduce_groups) {
        const int64_t         token = device_divide(i, a.heads), head = i - token * a.heads;
        const int64_t         b = sequence_of_token(a, token), kv_head = device_divide(head, ratio);
        const pa_mtp_sequence s = pa_mtp_sequence_of(a, b, segment_keys);
        if (s.segments == 1)
            continue;
        const int64_t   row = (token - s.first_q) * ratio + head - kv_head * ratio, group = device_divide(row, ROWS);
        const row_parts parts = row_parts_of(args, pa_mtp_first_task(args, b) + kv_head * s.segments * s.groups + group,
                                             row - group * ROWS, s);
        const float     most = most_of(parts), descale = attention_descale(a, 2, b, kv_head);
        const attention_range see = attention_visible(a, token - s.first_q, 1, s.sq, s.sk);
        const bool            empty = see.first >= see.last;
        const attention_place at = { token, head };
        for (int64_t d = device_item(); d < a.d_v; d += WORKGROUP) {
            const row_sums sums = joined(parts, most, d);
            attention_store(a, at, d, empty ? 0.0f : descale * (sums.o / sums.l));
            if (d == 0)
                attention_store_lse(a, at, empty, most, sums.l);
        }
    }
}
