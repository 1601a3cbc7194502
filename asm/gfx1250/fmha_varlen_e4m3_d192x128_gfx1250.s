// fmha_varlen for FP8, head dims 192 and 128: rows see every key. The .inc has all of it.

        .set CAUSAL, 0
        .include "fmha_varlen_e4m3_d192x128_gfx1250.inc"

        KERNEL_BEGIN etalon_fmha_varlen_e4m3_d192x128_gfx1250
        FMHA_VARLEN
        KERNEL_END etalon_fmha_varlen_e4m3_d192x128_gfx1250, LDS_SIZE, KA_SIZE

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.kernels:
  - { .name: etalon_fmha_varlen_e4m3_d192x128_gfx1250,
      .symbol: etalon_fmha_varlen_e4m3_d192x128_gfx1250.kd, .kernarg_segment_size: 192,
      .kernarg_segment_align: 8, .max_flat_workgroup_size: 128,
      .group_segment_fixed_size: 147456, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 106,
      .vgpr_count: 1024 }
...
        .end_amdgpu_metadata
