/* The plan of pa_mtp from the lengths on the device: segments of one length, so that about as many tasks come out as
 * are wanted. One workgroup.
 */
#include "pa_mtp_device.h"

typedef struct plan_lds {
    int64_t sum[WORKGROUP];
} plan_lds;

/* Each work-item's x, added up over those before it and over all; ends with a barrier. */
typedef struct plan_scan {
    int64_t before, all;
} plan_scan;

DEVICE plan_scan scan(plan_lds &t, int64_t x)
{
    const int i = device_item();
    int64_t   sum = x;
#pragma unroll 1
    for (int step = 1; step < WORKGROUP; step *= 2) {
        t.sum[i] = sum;
        device_barrier();
        sum += i >= step ? t.sum[i - step] : 0;
        device_barrier();
    }
    t.sum[i] = sum;
    device_barrier();
    const plan_scan s = { sum - x, t.sum[WORKGROUP - 1] };
    device_barrier();
    return s;
}

/* Keys times groups of sequences [first, last), or their tasks. */
DEVICE int64_t total(const pa_mtp_omp &args, int64_t first, int64_t last, int64_t segment_keys)
{
    int64_t sum = 0;
    for (int64_t b = first; b < last; b++) {
        const pa_mtp_sequence s = pa_mtp_sequence_of(args.a, b, segment_keys);
        sum += s.groups * args.a.kv_heads * (segment_keys > 0 ? s.segments : s.see.last - s.see.first);
    }
    return sum;
}

KERNEL void etalon_pa_mtp_plan_omp(const pa_mtp_omp args)
{
    SHARED plan_lds t;
    const int64_t   share = (args.a.batch + WORKGROUP - 1) / WORKGROUP;
    const int64_t   first = device_least(device_item() * share, args.a.batch);
    const int64_t   last = device_least(first + share, args.a.batch);
    const int64_t   work = scan(t, total(args, first, last, 0)).all;
    const int64_t   least = device_divide(work + args.wanted_tasks - 1, args.wanted_tasks);
    const int64_t   keys =
        device_most<int64_t>(1, (least + PA_MTP_OMP_LEAST_KEYS - 1) / PA_MTP_OMP_LEAST_KEYS) * PA_MTP_OMP_LEAST_KEYS;
    const plan_scan tasks = scan(t, total(args, first, last, keys));
    int64_t         next = tasks.before;
    for (int64_t b = first; b < last; b++) {
        device_store<int64_t>(args.plan + (uint64_t)(8 * (b + 1)), next);
        const pa_mtp_sequence s = pa_mtp_sequence_of(args.a, b, keys);
        next += s.groups * args.a.kv_heads * s.segments;
    }
    if (device_item() == 0) {
        device_store<int64_t>(args.plan, keys);
        device_store<int64_t>(args.plan + (uint64_t)(8 * (args.a.batch + 1)), tasks.all);
    }
}
