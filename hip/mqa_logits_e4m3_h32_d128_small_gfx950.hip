/* mqa_logits for 32 heads of 128 dims on gfx950, 16 query rows a workgroup: see mqa_logits_device_gfx950.h. */
#include "mqa_logits_device_gfx950.h"

enum { WAVES = MQA_LOGITS_GFX950_SMALL_WAVES, BLOCKS = MQA_LOGITS_GFX950_SMALL_BLOCKS };

SHARED mqa_logits<32, WAVES, BLOCKS>::shared lds;

MQA_LOGITS_KERNEL(WAVES) void etalon_mqa_logits_e4m3_h32_d128_small_gfx950(const mqa_logits_gfx950)
{
    mqa_logits_run<32, WAVES, BLOCKS>(*(LDS mqa_logits<32, WAVES, BLOCKS>::shared *)&lds);
}
