/* logits[m, n] = kv_scale[n] * sum_h weights[m, h] * relu(q[m, h, :] . k[n, :])
 *
 * A workgroup takes tiles at a stride of the grid, so any grid serves any shape.
 */
#include "mqa_logits_device.h"

KERNEL void etalon_mqa_logits_omp(const mqa_logits_omp a)
{
    SHARED tile_lds t;
    const int64_t   tiles = mqa_logits_key_tiles(a) * mqa_logits_row_tiles(a);
    for (int64_t i = device_group(); i < tiles; i += a.groups)
        mqa_logits_tile(a, mqa_logits_dense{}, t, i);
}
