/* Attention forward over packed sequences; see attention_device.h for the mathematics. A workgroup takes tasks, groups
 * of rows for each KV head, at a stride of the grid, the last groups first: under a causal mask they see the most keys.
 */
#include "attention_device.h"

#include "fmha_varlen_omp.h"

DEVICE int64_t first_place(const attention_omp &a, int64_t b)
{
    return device_divide(attention_cu_q(a, b) * attention_ratio(a), ROWS) + b;
}

/* first place of b <= place < first place of b + 1 */
DEVICE int64_t sequence_of_place(const attention_omp &a, int64_t place)
{
    int64_t low = 0, high = a.batch;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (first_place(a, middle) <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

KERNEL void etalon_fmha_varlen_omp(const fmha_varlen_omp args)
{
    SHARED attention_lds t;
    const attention_omp &a = args.a;
    for (int64_t i = device_group(); i < args.places * a.kv_heads; i += a.groups) {
        const int64_t   back = device_divide(i, a.kv_heads), place = args.places - 1 - back;
        const int64_t   b = sequence_of_place(a, place);
        attention_group g = {};
        g.b = b;
        g.kv_head = i - back * a.kv_heads;
        g.first_q = attention_cu_q(a, b);
        g.sq = attention_cu_q(a, b + 1) - g.first_q;
        g.first_k = attention_length(a, b);
        g.sk = attention_length(a, b + 1) - g.first_k;
        g.first_row = (place - first_place(a, b)) * ROWS;
        g.rows = device_least<int64_t>(ROWS, g.sq * attention_ratio(a) - g.first_row);
        if (g.rows <= 0)
            continue;
        const attention_range see = attention_group_sees(a, g);
        g.from = see.first;
        g.to = see.last;
        attention_run_group(a, g, t, 0);
    }
}
