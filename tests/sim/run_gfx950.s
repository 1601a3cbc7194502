// Small kernels for the simulator's tests of dispatch, scheduling and barriers, gfx950. tests/sim/run_gfx1250.s has the same.
//
// All take one segment of arguments: +0 p, +8 q (addresses), +16 n, +20 a.

        .amdgcn_target "amdgcn-amd-amdhsa--gfx950"

// The descriptor of a kernel: LDS bytes, dwords of arguments in SGPRs.
// s[0:1] arguments, s2, s3, s4 the workgroup's x, y, z, v0 the packed work-item.
.macro DESCRIPTOR name, lds, preloaded=0
        .size \name, . - \name
        .p2align 8
        .rodata
        .p2align 6
        .amdhsa_kernel \name
          .amdhsa_group_segment_fixed_size \lds
          .amdhsa_kernarg_size 24
          .amdhsa_user_sgpr_count 2 + \preloaded
          .amdhsa_user_sgpr_kernarg_preload_length \preloaded
          .amdhsa_user_sgpr_kernarg_segment_ptr 1
          .amdhsa_system_sgpr_workgroup_id_x 1
          .amdhsa_system_sgpr_workgroup_id_y 1
          .amdhsa_system_sgpr_workgroup_id_z 1
          .amdhsa_system_vgpr_workitem_id 2
          .amdhsa_next_free_vgpr 8
          .amdhsa_next_free_sgpr 24
          .amdhsa_accum_offset 8
          .amdhsa_ieee_mode 0
        .end_amdhsa_kernel
        .text
.endm

.macro BEGIN name
        .globl  \name
        .p2align 8
        .type   \name, @function
\name:
.endm

        .text

// q[i] = a * p[i] + q[i] for i < n; workgroups of 256 along x.
        BEGIN   saxpy
        s_load_dwordx4          s[8:11], s[0:1], 0                      // p, q
        s_load_dwordx2          s[12:13], s[0:1], 16                    // n, a
        v_and_b32               v0, 0x3ff, v0
        v_lshl_or_b32           v0, s2, 8, v0                           // i
        s_waitcnt               lgkmcnt(0)
        v_cmp_gt_u32            vcc, s12, v0
        s_and_saveexec_b64      s[14:15], vcc
        s_cbranch_execz         saxpy_end
        v_lshlrev_b32           v1, 2, v0
        global_load_dword       v2, v1, s[8:9]
        global_load_dword       v3, v1, s[10:11]
        s_waitcnt               vmcnt(0)
        v_fmac_f32              v3, s13, v2
        global_store_dword      v1, v3, s[10:11]
saxpy_end:
        s_endpgm
        DESCRIPTOR saxpy, 0

// q[group] = sum of p[256 * group .. + 255] (32-bit integers): a tree in LDS, a barrier before each level.
        BEGIN   reduce
        s_load_dwordx4          s[8:11], s[0:1], 0
        v_and_b32               v0, 0x3ff, v0
        v_lshl_or_b32           v1, s2, 8, v0
        v_lshlrev_b32           v1, 2, v1
        v_lshlrev_b32           v2, 2, v0                               // the item's word of LDS
        s_waitcnt               lgkmcnt(0)
        global_load_dword       v3, v1, s[8:9]
        s_waitcnt               vmcnt(0)
        ds_write_b32            v2, v3
        s_movk_i32              s12, 128                                // items that add in this level
reduce_level:
        s_waitcnt               lgkmcnt(0)
        s_barrier
        v_cmp_gt_u32            vcc, s12, v0
        s_and_saveexec_b64      s[14:15], vcc
        s_lshl_b32              s13, s12, 2
        v_add_u32               v4, s13, v2
        ds_read_b32             v5, v4
        ds_read_b32             v6, v2
        s_waitcnt               lgkmcnt(0)
        v_add_u32               v6, v5, v6
        ds_write_b32            v2, v6
        s_mov_b64               exec, s[14:15]
        s_lshr_b32              s12, s12, 1
        s_cmp_lg_u32            s12, 0
        s_cbranch_scc1          reduce_level
        v_cmp_eq_u32            vcc, 0, v0                              // it wrote the last level itself: DS keeps its order
        s_and_saveexec_b64      s[14:15], vcc
        v_mov_b32               v1, 0
        s_lshl_b32              s13, s2, 2
        s_add_u32               s10, s10, s13
        s_addc_u32              s11, s11, 0
        ds_read_b32             v6, v1
        s_waitcnt               lgkmcnt(0)
        global_store_dword      v1, v6, s[10:11]
        s_endpgm
        DESCRIPTOR reduce, 1024

// Every work-item adds 1 to p[512 group + x + 8 y + 64 z], group = gx + 8 gy + 64 gz: workgroups of at most 8 items an axis,
// grids of at most 8 workgroups an axis.
        BEGIN   visit
        s_load_dwordx2          s[8:9], s[0:1], 0
        s_lshl_b32              s10, s3, 3
        s_lshl_b32              s11, s4, 6
        s_add_u32               s10, s10, s2
        s_add_u32               s10, s10, s11                           // group
        v_and_b32               v1, 0x3ff, v0                           // x
        v_bfe_u32               v2, v0, 10, 10                          // y
        v_lshrrev_b32           v3, 20, v0                              // z
        v_lshl_add_u32          v1, v2, 3, v1
        v_lshl_add_u32          v1, v3, 6, v1
        v_lshlrev_b32           v1, 2, v1
        v_mov_b32               v4, 1
        s_lshl_b32              s10, s10, 11                            // 512 words a group
        v_add_u32               v1, s10, v1
        s_waitcnt               lgkmcnt(0)
        global_atomic_add       v1, v4, s[8:9]
        s_endpgm
        DESCRIPTOR visit, 0

// Wave 1 of each workgroup spins until wave 0 has set a flag in LDS; then it writes it to q[group]. 128 items.
        BEGIN   flag
        s_load_dwordx4          s[8:11], s[0:1], 0
        v_and_b32               v0, 0x3ff, v0
        v_mov_b32               v1, 0
        v_mov_b32               v2, 0
        v_cmp_eq_u32            vcc, 0, v0
        s_and_saveexec_b64      s[14:15], vcc
        ds_write_b32            v1, v2
        s_mov_b64               exec, s[14:15]
        s_waitcnt               lgkmcnt(0)
        s_barrier
        v_readfirstlane_b32     s12, v0
        s_cmp_lg_u32            s12, 0
        s_cbranch_scc0          flag_set
flag_spin:
        v_mov_b32               v3, 0
        ds_add_rtn_u32          v3, v1, v3                              // an atomic read
        s_waitcnt               lgkmcnt(0)
        v_readfirstlane_b32     s13, v3
        s_cmp_lg_u32            s13, 0
        s_cbranch_scc0          flag_spin
        s_lshl_b32              s14, s2, 2
        s_add_u32               s10, s10, s14
        s_addc_u32              s11, s11, 0
        v_cmp_eq_u32            vcc, 64, v0
        s_and_saveexec_b64      s[14:15], vcc
        global_store_dword      v1, v3, s[10:11]
        s_endpgm
flag_set:
        v_cmp_eq_u32            vcc, 0, v0
        s_and_saveexec_b64      s[14:15], vcc
        v_mov_b32               v2, 7
        ds_or_b32               v1, v2
        s_endpgm
        DESCRIPTOR flag, 4

// A barrier over the grid: each workgroup of one wave adds 1 to p[0], and waits until it is n; q[group] = n.
        BEGIN   meet
        s_load_dwordx4          s[8:11], s[0:1], 0
        s_load_dword            s12, s[0:1], 16
        s_mov_b64               exec, 1
        v_mov_b32               v1, 0
        v_mov_b32               v2, 1
        s_waitcnt               lgkmcnt(0)
        global_atomic_add       v1, v2, s[8:9] sc1
        v_mov_b32               v2, 0
meet_spin:
        s_sleep                 1
        global_atomic_add       v3, v1, v2, s[8:9] sc0 sc1
        s_waitcnt               vmcnt(0)
        v_readfirstlane_b32     s13, v3
        s_cmp_lt_u32            s13, s12
        s_cbranch_scc1          meet_spin
        s_lshl_b32              s14, s2, 2
        v_mov_b32               v1, s14
        global_store_dword      v1, v3, s[10:11]
        s_endpgm
        DESCRIPTOR meet, 0

// Never ends.
        BEGIN   endless
        s_nop                   0
endless_loop:
        s_branch                endless_loop
        DESCRIPTOR endless, 0

// Wave 0 comes to two barriers, the others to one.
        BEGIN   mismatch
        v_readfirstlane_b32     s12, v0
        s_barrier
        s_cmp_eq_u32            s12, 0
        s_cbranch_scc0          mismatch_end
        s_barrier
mismatch_end:
        s_endpgm
        DESCRIPTOR mismatch, 0

        BEGIN   trapped
        s_trap                  2
        s_endpgm
        DESCRIPTOR trapped, 0

// An instruction that the simulator does not have.
        BEGIN   unsupported
        s_nop                   0
        s_set_gpr_idx_on        s2, 1
        s_endpgm
        DESCRIPTOR unsupported, 0

// Reads 4 bytes behind p[0 .. n - 1].
        BEGIN   overrun
        s_load_dwordx2          s[8:9], s[0:1], 0
        s_load_dword            s12, s[0:1], 16
        s_mov_b64               exec, 1
        s_waitcnt               lgkmcnt(0)
        s_lshl_b32              s12, s12, 2
        v_mov_b32               v1, s12
        global_load_dword       v2, v1, s[8:9]
        s_waitcnt               vmcnt(0)
        s_endpgm
        DESCRIPTOR overrun, 0

// What a wave begins with: of workgroup 0's item 0, q[0..] = XCC_ID, MODE, exec low, exec high.
        BEGIN   state
        s_load_dwordx4          s[8:11], s[0:1], 0
        s_mov_b64               s[16:17], exec
        s_getreg_b32            s14, hwreg(HW_REG_XCC_ID)
        s_getreg_b32            s15, hwreg(HW_REG_MODE)
        s_setreg_imm32_b32      hwreg(HW_REG_MODE, 23, 1), 1
        s_nop                   1
        s_getreg_b32            s18, hwreg(HW_REG_MODE, 20, 4)
        s_mov_b64               exec, 1
        s_lshl_b32              s12, s2, 5
        v_mov_b32               v1, s12
        v_mov_b32               v2, s14
        v_mov_b32               v3, s15
        v_mov_b32               v4, s16
        v_mov_b32               v5, s17
        v_mov_b32               v6, s18
        s_waitcnt               lgkmcnt(0)
        global_store_dwordx4    v1, v[2:5], s[10:11]
        global_store_dword      v1, v6, s[10:11] offset:16
        s_endpgm
        DESCRIPTOR state, 0

// q[group] = n + group, from SGPRs that the dispatcher has loaded: s[2:3] p, s[4:5] q, s6 n, s7 a, s8 the workgroup's x. The
// first 256 bytes are for firmware that does not load them.
        BEGIN   preload
        s_trap                  2
        .p2align 8, 0
        s_add_u32               s6, s6, s8
        s_lshl_b32              s8, s8, 2
        s_mov_b64               exec, 1
        v_mov_b32               v1, s8
        v_mov_b32               v2, s6
        global_store_dword      v1, v2, s[4:5]
        s_endpgm
        DESCRIPTOR preload, 0, 6

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - { .name: saxpy, .symbol: saxpy.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: reduce, .symbol: reduce.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 1024, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: visit, .symbol: visit.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: flag, .symbol: flag.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 4, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: meet, .symbol: meet.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: endless, .symbol: endless.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: mismatch, .symbol: mismatch.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: trapped, .symbol: trapped.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: unsupported, .symbol: unsupported.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: overrun, .symbol: overrun.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: state, .symbol: state.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: preload, .symbol: preload.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,
      .sgpr_count: 24, .vgpr_count: 8 }
...
        .end_amdgpu_metadata
