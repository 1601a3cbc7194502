// pa_mtp with head dim 256, pages of 16 keys in E4M3FN and 8 query heads a KV head. Formula, launch and budget stand
// in pa_mtp_e4m3_d256_gfx950.inc.

        .set GQA_SHIFT, 3
#include "pa_mtp_e4m3_d256_gfx950.inc"

        KERNEL_BEGIN etalon_pa_mtp_e4m3_d256_gqa8_page16_gfx950
        PA_MTP
        KERNEL_END etalon_pa_mtp_e4m3_d256_gqa8_page16_gfx950, LDS_SIZE, KA_SIZE

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - { .name: etalon_pa_mtp_e4m3_d256_gqa8_page16_gfx950, .symbol: etalon_pa_mtp_e4m3_d256_gqa8_page16_gfx950.kd,
      .kernarg_segment_size: 328, .kernarg_segment_align: 8, .max_flat_workgroup_size: 512,
      .group_segment_fixed_size: 148480, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 70,
      .vgpr_count: 216 }
...
        .end_amdgpu_metadata
