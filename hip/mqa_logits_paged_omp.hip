/* logits[m, n] = scale[n] * sum_h weights[m, h] * relu(q[m, h, :] . k[n, :]), keys and scales in blocks of a cache
 *
 * A workgroup takes tiles of all sequences at a stride of the grid, so any grid serves any shape.
 */
#include "mqa_logits_device.h"

#include "mqa_logits_paged_omp.h"

/* Blocks of one sequence. */
typedef struct mqa_logits_blocks {
    uint64_t table;
    int64_t  table_stride, size, k_bytes, scale_bytes;
} mqa_logits_blocks;

typedef struct place {
    int64_t block, slot;
} place;

DEVICE place place_of(const mqa_logits_blocks &b, int64_t n)
{
    const int64_t i = device_divide(n, b.size);
    return place{ device_load<int32_t>(b.table + (uint64_t)(i * b.table_stride * 4)), n - i * b.size };
}

DEVICE uint64_t mqa_logits_key_at(const mqa_logits_omp &a, const mqa_logits_blocks &b, int64_t n)
{
    const place at = place_of(b, n);
    return a.k + (uint64_t)(at.block * b.k_bytes + at.slot * a.k_stride[0]);
}

DEVICE uint64_t mqa_logits_scale_at(const mqa_logits_omp &a, const mqa_logits_blocks &b, int64_t n)
{
    const place at = place_of(b, n);
    return a.kv_scale + (uint64_t)(at.block * b.scale_bytes + at.slot * a.kv_scale_stride * 4);
}

/* The problem of one sequence. */
DEVICE mqa_logits_omp sequence_of(const mqa_logits_paged_omp &p, int64_t b)
{
    mqa_logits_omp a = p.a;
    a.q += (uint64_t)(b * p.q_stride);
    a.weights += (uint64_t)(b * a.m * a.weights_stride[0] * 4);
    a.ke += (uint64_t)(b * p.context_stride * (a.ke_wide ? 8 : 4));
    a.logits += (uint64_t)(b * a.m * a.logits_stride[0] * 4);
    return a;
}

KERNEL void etalon_mqa_logits_paged_omp(const mqa_logits_paged_omp p)
{
    SHARED tile_lds t;
    const int64_t   each = mqa_logits_key_tiles(p.a) * mqa_logits_row_tiles(p.a), tiles = p.batch * each;
    for (int64_t i = device_group(); i < tiles; i += p.a.groups) {
        const int64_t           b = device_divide(i, each);
        const mqa_logits_blocks blocks = { p.block_tables + (uint64_t)(b * p.table_stride[0] * 4), p.table_stride[1],
                                           p.block_size, p.k_stride, p.scale_stride * 4 };
        mqa_logits_tile(sequence_of(p, b), blocks, t, i - b * each);
    }
}
