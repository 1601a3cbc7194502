/* The plan of pa_mtp for gfx950 from the lengths on the device: tasks of as many keys each as make about the number of
 * tasks that is wanted, whatever the sequences' lengths; a whole number of tiles. One workgroup.
 *
 * A sequence's tokens come in groups of 64 rows or fewer, its keys in segments; its tasks are segments x groups, the
 * groups of a segment together. One without keys or tokens has none.
 */
#include "device.h"

#include "pa_mtp_gfx950.h"

typedef struct plan_lds {
    int64_t sum[WORKGROUP];
    int32_t first[WORKGROUP + 1]; /* tasks before the sequence's, in its batch of WORKGROUP sequences */
} plan_lds;

/* One sequence. Tokens, keys and tasks have 31 bits, as pa_mtp_refuse_gfx950 has it. */
typedef struct sequence {
    int64_t token;
    int32_t sq, sk;
    int32_t keys; /* that the last token sees */
    int32_t group_tokens, groups, segments;
} sequence;

/* The lower half of an I64, too: what is counted here fits 31 bits. */
DEVICE int32_t index_at(uint64_t at, int64_t stride, int64_t i)
{
    return device_load<int32_t>(at + (uint64_t)(i * stride));
}

/* a / b of numbers that are not negative. */
DEVICE int32_t divide(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a / (uint32_t)b);
}

/* Rounded up. */
DEVICE int32_t parts_of(int32_t a, int32_t b)
{
    return (int32_t)(((uint32_t)a + (uint32_t)b - 1) / (uint32_t)b);
}

/* segment_keys 0: no segments. */
DEVICE sequence sequence_of(const pa_mtp_gfx950 &args, int64_t b, int32_t segment_keys)
{
    sequence      s;
    const int32_t token = index_at(args.cu_seqlens_q, args.cu_seqlens_q_stride, b);
    s.token = token;
    s.sq = index_at(args.cu_seqlens_q, args.cu_seqlens_q_stride, b + 1) - token;
    s.sk = index_at(args.lengths, args.lengths_stride, b);
    s.keys = s.sq > 0 ? s.sk : 0;
    s.group_tokens = divide(PA_MTP_GFX950_ROWS, args.ratio);
    s.groups = parts_of(s.sq, s.group_tokens);
    s.segments = segment_keys > 0 ? parts_of(s.keys, segment_keys) : 0;
    return s;
}

/* Each work-item's x, added up over those before it and over all. A barrier stands before t is used again. */
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
    return { sum - x, t.sum[WORKGROUP - 1] };
}

/* Of all sequences there are fewer than 2^31 tiles. */
DEVICE int32_t segment_keys_of(const pa_mtp_gfx950 &args, plan_lds &t)
{
    int64_t work = 0;
    for (int64_t b = device_item(); b < args.batch; b += WORKGROUP) {
        const sequence s = sequence_of(args, b, 0);
        work += (int64_t)s.groups * s.keys;
    }
    const int64_t tiles = (scan(t, work).all + PA_MTP_GFX950_TILE - 1) / PA_MTP_GFX950_TILE;
    device_barrier();
    return device_most(1, parts_of((int32_t)tiles, args.wanted_tasks)) * PA_MTP_GFX950_TILE;
}

DEVICE pa_mtp_gfx950_task task_of(const pa_mtp_gfx950 &args, int64_t b, const sequence &s, int32_t i,
                                  int32_t segment_keys)
{
    const int32_t segment = divide(i, s.groups), group = i - segment * s.groups;
    const int32_t first = group * s.group_tokens, count = device_least(s.group_tokens, s.sq - first);
    const int64_t limit = device_least<int64_t>(s.sk, (int64_t)s.sk - s.sq + 1 + first + args.right);
    const int64_t last = device_least<int64_t>(s.sk, limit + count - 1);
    return { (int32_t)b,
             (int32_t)s.token + first,
             count,
             segment * segment_keys,
             (int32_t)device_least(last, (segment + 1) * (int64_t)segment_keys),
             (int32_t)limit,
             {} };
}

/* The sequence of the batch that has task i. */
DEVICE int sequence_of_task(const plan_lds &t, int32_t i)
{
    int low = 0, high = WORKGROUP;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (t.first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

DEVICE void store_rows(const pa_mtp_gfx950 &args, const sequence &s, int64_t first)
{
    for (int32_t i = 0; i < s.sq; i++) {
        const int32_t           group = divide(i, s.group_tokens);
        const pa_mtp_gfx950_row row = { (int32_t)first + group, s.groups, s.segments,
                                        (i - group * s.group_tokens) * args.ratio };
        device_store<pa_mtp_gfx950_row>(args.rows + (uint64_t)((s.token + i) * (int64_t)sizeof row), row);
    }
}

DEVICE void store_task(const pa_mtp_gfx950 &args, int64_t i, const pa_mtp_gfx950_task &task)
{
    device_store<pa_mtp_gfx950_task>(args.tasks + (uint64_t)(i * (int64_t)sizeof task), task);
}

KERNEL void etalon_pa_mtp_plan_gfx950(const pa_mtp_gfx950 args)
{
    SHARED plan_lds t;
    const int32_t   keys = segment_keys_of(args, t);
    int64_t         next = 0;
    for (int64_t batch = 0; batch < args.batch; batch += WORKGROUP) {
        const int64_t b = batch + device_item();
        sequence      s = {};
        if (b < args.batch)
            s = sequence_of(args, b, keys);
        const plan_scan tasks = scan(t, (int64_t)s.groups * s.segments);
        t.first[device_item()] = (int32_t)tasks.before;
        if (b < args.batch)
            store_rows(args, s, next + tasks.before);
        device_barrier();
        for (int64_t i = device_item(); i < tasks.all; i += WORKGROUP) {
            const int      n = sequence_of_task(t, (int32_t)i);
            const sequence of = sequence_of(args, batch + n, keys);
            store_task(args, next + i, task_of(args, batch + n, of, (int32_t)i - t.first[n], keys));
        }
        next += tasks.all;
    }
    for (int64_t i = next + device_item(); i < args.most_tasks; i += WORKGROUP)
        store_task(args, i, { -1, 0, 0, 0, 0, 0, {} });
}
