/* Attention over a paged KV cache, task by task of the plan; see attention_device.h for the mathematics. A workgroup
 * takes tasks at a stride of the grid. Groups run fastest, so that those which share keys run at the same time. A
 * sequence of one segment is written out; else each task leaves a part for pa_mtp_reduce_omp.
 */
#include "pa_mtp_device.h"

/* The sequence of a task: first task of b <= task < first task of b + 1. */
DEVICE int64_t sequence_of_task(const pa_mtp_omp &args, int64_t task)
{
    int64_t low = 0, high = args.a.batch;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (pa_mtp_first_task(args, middle) <= task)
            low = middle;
        else
            high = middle;
    }
    return low;
}

KERNEL void etalon_pa_mtp_omp(const pa_mtp_omp args)
{
    SHARED attention_lds t;
    const attention_omp &a = args.a;
    const int64_t        tasks = pa_mtp_first_task(args, a.batch), segment_keys = pa_mtp_segment_keys(args);
    for (int64_t task = device_group(); task < tasks; task += a.groups) {
        const int64_t         b = sequence_of_task(args, task);
        const pa_mtp_sequence s = pa_mtp_sequence_of(a, b, segment_keys);
        const int64_t         i = task - pa_mtp_first_task(args, b), outer = device_divide(i, s.groups);
        const int64_t         kv_head = device_divide(outer, s.segments), segment = outer - kv_head * s.segments;
        attention_group       g = {};
        g.b = b;
        g.kv_head = kv_head;
        g.first_q = s.first_q;
        g.sq = s.sq;
        g.sk = s.sk;
        g.first_row = (i - outer * s.groups) * ROWS;
        g.rows = device_least<int64_t>(ROWS, s.sq * attention_ratio(a) - g.first_row);
        const attention_range see = attention_group_sees(a, g);
        g.from = device_most(see.first, s.see.first + segment * segment_keys);
        g.to = device_least(see.last, s.see.first + (segment + 1) * segment_keys);
        attention_run_group(a, g, t, s.segments > 1 ? pa_mtp_part(args, task) : 0);
    }
}
