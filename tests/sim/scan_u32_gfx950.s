// q[256 x + 64 w + 63 - i] = sum_j<=i y[j] + sum_j y[j]
//   y[j] = p[256 x + 64 (w ^ 1) + j],   i, j < 64, w < 4, modulo 2^32
//
//   p, q [256 * workgroups] U32
//
// Each way to move values between lanes, and between waves through LDS: a sum by exchanges, a running sum by shifts, a
// reversal.
//
// Launch: workgroups of 256 work-items along x. Budget: 5 VGPRs, 10 SGPRs, 1 KiB of LDS.
//
// Source: CDNA4 ISA 2.7 (DPP), 9.1.9 (copies to LDS), 12 (v_permlane*_swap, ds_bpermute)

        .amdgcn_target "amdgcn-amd-amdhsa--gfx950"
        .include "kernel.inc"

        .set KA_P, 0                                                    // and q
        .set KA_SIZE, 16

        GPR_BEGIN
        SGPR    s_kernarg, 2            // s[0:1], set by the dispatcher
        SGPR    s_x                     // s2, set by the dispatcher
        SGPR    s_y                     // s3
        SGPR    s_p, 2, 4
        SGPR    s_q, 2
        SGPR    s_wave
        SGPR    s_t
        VGPR    v_item                  // v0, set by the dispatcher
        VGPR    v_byte                  // of the item's word in the workgroup's
        VGPR    v_run                   // running sum of y
        VGPR    v_sum                   // sum of y
        VGPR    v_t

        KERNEL_BEGIN etalon_scan_u32_gfx950
        s_load_dwordx4          s[s_p:s_p+3], s[s_kernarg:s_kernarg+1], KA_P
        v_lshrrev_b32           v[v_t], 6, v[v_item]
        v_lshlrev_b32           v[v_byte], 2, v[v_item]
        v_readfirstlane_b32     s[s_wave], v[v_t]
        s_lshl_b32              m0, s[s_wave], 8
        s_lshl_b32              s[s_t], s[s_x], 10
        s_waitcnt               lgkmcnt(0)                              // p, q
        s_add_u32               s[s_p], s[s_p], s[s_t]
        s_addc_u32              s[s_p+1], s[s_p+1], 0
        s_add_u32               s[s_q], s[s_q], s[s_t]
        s_addc_u32              s[s_q+1], s[s_q+1], 0
        global_load_lds_dword   v[v_byte], s[s_p:s_p+1]
        s_waitcnt               vmcnt(0)                                // the wave's part
        s_barrier                                                       // all parts

// run = y
        v_xor_b32               v[v_t], 256, v[v_byte]
        ds_read_b32             v[v_run], v[v_t]
        s_waitcnt               lgkmcnt(0)                              // y

// sum = sum_j y[j]: with the lane 1, 2, 4, 8, 16, 32 away or one of as much
        v_mov_b32               v[v_sum], v[v_run]
        s_nop                   1                                       // sum: 2 states before another lane reads it
        v_add_u32_dpp           v[v_sum], v[v_sum], v[v_sum] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop                   1
        v_add_u32_dpp           v[v_sum], v[v_sum], v[v_sum] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop                   1
        v_add_u32_dpp           v[v_sum], v[v_sum], v[v_sum] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop                   1
        v_add_u32_dpp           v[v_sum], v[v_sum], v[v_sum] row_mirror row_mask:0xf bank_mask:0xf
        v_mov_b32               v[v_t], v[v_sum]
        s_nop                   1                                       // t: 2 states before a swap
        v_permlane16_swap_b32   v[v_sum], v[v_t]
        v_add_u32               v[v_sum], v[v_sum], v[v_t]
        v_mov_b32               v[v_t], v[v_sum]
        s_nop                   1
        v_permlane32_swap_b32   v[v_sum], v[v_t]
        v_add_u32               v[v_sum], v[v_sum], v[v_t]

// run = sum_j<=i y[j]: within rows of 16, then from row 0 to 1 and 2 to 3, then from row 1 to 2 and 3
        v_add_u32_dpp           v[v_run], v[v_run], v[v_run] row_shr:1 row_mask:0xf bank_mask:0xf
        s_nop                   1                                       // run: as sum
        v_add_u32_dpp           v[v_run], v[v_run], v[v_run] row_shr:2 row_mask:0xf bank_mask:0xf
        s_nop                   1
        v_add_u32_dpp           v[v_run], v[v_run], v[v_run] row_shr:4 row_mask:0xf bank_mask:0xf
        s_nop                   1
        v_add_u32_dpp           v[v_run], v[v_run], v[v_run] row_shr:8 row_mask:0xf bank_mask:0xf
        s_nop                   1
        v_add_u32_dpp           v[v_run], v[v_run], v[v_run] row_bcast:15 row_mask:0xa bank_mask:0xf
        s_nop                   1
        v_add_u32_dpp           v[v_run], v[v_run], v[v_run] row_bcast:31 row_mask:0xc bank_mask:0xf

// q[63 - i] = run + sum
        v_add_u32               v[v_run], v[v_run], v[v_sum]
        v_and_b32               v[v_t], 0xfc, v[v_byte]
        v_xor_b32               v[v_t], 0xfc, v[v_t]
        ds_bpermute_b32         v[v_run], v[v_t], v[v_run]
        s_waitcnt               lgkmcnt(0)                              // run
        global_store_dword      v[v_byte], v[v_run], s[s_q:s_q+1]
        s_endpgm
        KERNEL_END etalon_scan_u32_gfx950, 1024, KA_SIZE

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - { .name: etalon_scan_u32_gfx950, .symbol: etalon_scan_u32_gfx950.kd, .kernarg_segment_size: 16,
      .kernarg_segment_align: 8, .max_flat_workgroup_size: 256, .group_segment_fixed_size: 1024,
      .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 5 }
...
        .end_amdgpu_metadata
