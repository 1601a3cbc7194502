// q[128 x + 32 w + 31 - i] = sum_j<=i y[j] + sum_j y[j]
//   y[j] = p[128 x + 32 (w ^ 1) + j],   i, j < 32, w < 4, modulo 2^32
//
//   p, q [128 * workgroups] U32
//
// Each way to move values between lanes, and between waves through LDS: a sum by exchanges, a running sum by shifts, a
// reversal.
//
// Launch: workgroups of 128 work-items along x. Budget: 5 VGPRs, 13 SGPRs, 512 bytes of LDS.
//
// Source: CDNA5 ISA 7.8 (DPP), 10.10 (asynchronous copies), 16 (v_permlanex16, ds_bpermute)

        .amdgcn_target "amdgcn-amd-amdhsa--gfx1250"
        .include "kernel.inc"

        .set KA_P, 0                                                    // and q
        .set KA_SIZE, 16

        GPR_BEGIN
        SGPR    s_kernarg, 2            // s[0:1], set by the dispatcher
        SGPR    s_p, 2, 4
        SGPR    s_q, 2
        SGPR    s_t, 2, 2
        SGPR    s_low                   // lanes that lanes 0 to 7 and 8 to 15 of a row read of the other row
        SGPR    s_high
        VGPR    v_item                  // v0, set by the dispatcher
        VGPR    v_byte                  // of the item's word in the workgroup's
        VGPR    v_run                   // running sum of y
        VGPR    v_sum                   // sum of y
        VGPR    v_t

        KERNEL_BEGIN etalon_scan_u32_gfx1250
        s_load_b128             s[s_p:s_p+3], s[s_kernarg:s_kernarg+1], KA_P
        v_lshlrev_b32           v[v_byte], 2, v[v_item]
        s_lshl_b32              s[s_t], ttmp9, 9
        s_mov_b32               s[s_t+1], 0
        s_wait_kmcnt            0                                       // p, q
        s_add_nc_u64            s[s_p:s_p+1], s[s_p:s_p+1], s[s_t:s_t+1]
        s_add_nc_u64            s[s_q:s_q+1], s[s_q:s_q+1], s[s_t:s_t+1]
        global_load_async_to_lds_b32 v[v_byte], v[v_byte], s[s_p:s_p+1]
        s_mov_b32               s[s_low], 0x76543210
        s_mov_b32               s[s_high], 0xfedcba98
        s_wait_asynccnt         0                                       // the wave's part
        s_barrier_signal        -1
        v_xor_b32               v[v_t], 128, v[v_byte]
        s_barrier_wait          -1                                      // all parts

// run = y
        ds_load_b32             v[v_run], v[v_t]
        s_wait_dscnt            0                                       // y

// sum = sum_j y[j]: with the lane 16, 1, 2, 4, 8 away
        v_permlanex16_b32       v[v_t], v[v_run], s[s_low], s[s_high]
        v_add_nc_u32            v[v_sum], v[v_run], v[v_t]
        v_add_nc_u32_dpp        v[v_sum], v[v_sum], v[v_sum] row_xmask:1 row_mask:0xf bank_mask:0xf
        v_add_nc_u32_dpp        v[v_sum], v[v_sum], v[v_sum] row_xmask:2 row_mask:0xf bank_mask:0xf
        v_add_nc_u32_dpp        v[v_sum], v[v_sum], v[v_sum] row_xmask:4 row_mask:0xf bank_mask:0xf
        v_add_nc_u32_dpp        v[v_sum], v[v_sum], v[v_sum] row_xmask:8 row_mask:0xf bank_mask:0xf

// run = sum_j<=i y[j]: within rows of 16, then from lane 15 to row 1
        v_add_nc_u32_dpp        v[v_run], v[v_run], v[v_run] row_shr:1 row_mask:0xf bank_mask:0xf
        v_add_nc_u32_dpp        v[v_run], v[v_run], v[v_run] row_shr:2 row_mask:0xf bank_mask:0xf
        v_add_nc_u32_dpp        v[v_run], v[v_run], v[v_run] row_shr:4 row_mask:0xf bank_mask:0xf
        v_add_nc_u32_dpp        v[v_run], v[v_run], v[v_run] row_shr:8 row_mask:0xf bank_mask:0xf
        v_permlanex16_b32       v[v_t], v[v_run], -1, -1
        v_add_nc_u32_dpp        v[v_run], v[v_t], v[v_run] quad_perm:[0,1,2,3] row_mask:0x2 bank_mask:0xf

// q[31 - i] = run + sum
        v_add_nc_u32            v[v_run], v[v_run], v[v_sum]
        v_and_b32               v[v_t], 0x7c, v[v_byte]
        v_xor_b32               v[v_t], 0x7c, v[v_t]
        ds_bpermute_b32         v[v_run], v[v_t], v[v_run]
        s_wait_dscnt            0                                       // run
        global_store_b32        v[v_byte], v[v_run], s[s_q:s_q+1]
        s_endpgm
        KERNEL_END etalon_scan_u32_gfx1250, 512, KA_SIZE

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.kernels:
  - { .name: etalon_scan_u32_gfx1250, .symbol: etalon_scan_u32_gfx1250.kd, .kernarg_segment_size: 16,
      .kernarg_segment_align: 8, .max_flat_workgroup_size: 128, .group_segment_fixed_size: 512,
      .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 16, .vgpr_count: 5 }
...
        .end_amdgpu_metadata
