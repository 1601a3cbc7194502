// Small kernels for the simulator's tests of dispatch, scheduling and barriers, gfx1250. tests/sim/run_gfx950.s has the same,
// but for `named` and `first`.
//
// All take one segment of arguments: +0 p, +8 q (addresses), +16 n, +20 a.

        .amdgcn_target "amdgcn-amd-amdhsa--gfx1250"

// The descriptor of a kernel: LDS bytes, dwords of arguments in SGPRs.
// s[0:1] arguments, ttmp9 the workgroup's x, ttmp7 y | z << 16, v0 the packed work-item.
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
          .amdhsa_system_vgpr_workitem_id 2
          .amdhsa_next_free_vgpr 8
          .amdhsa_next_free_sgpr 24
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
        s_load_b128             s[8:11], s[0:1], 0                      // p, q
        s_load_b64              s[12:13], s[0:1], 16                    // n, a
        v_and_b32               v0, 0x3ff, v0
        v_lshl_or_b32           v0, ttmp9, 8, v0                        // i
        s_wait_kmcnt            0
        v_cmp_gt_u32            vcc_lo, s12, v0
        s_and_saveexec_b32      s14, vcc_lo
        s_cbranch_execz         saxpy_end
        v_lshlrev_b32           v1, 2, v0
        global_load_b32         v2, v1, s[8:9]
        global_load_b32         v3, v1, s[10:11]
        s_wait_loadcnt          0
        v_fmac_f32              v3, s13, v2
        global_store_b32        v1, v3, s[10:11]
saxpy_end:
        s_endpgm
        DESCRIPTOR saxpy, 0

// q[group] = sum of p[256 * group .. + 255] (32-bit integers): a tree in LDS, a barrier before each level.
        BEGIN   reduce
        s_load_b128             s[8:11], s[0:1], 0
        v_and_b32               v0, 0x3ff, v0
        v_lshl_or_b32           v1, ttmp9, 8, v0
        v_lshlrev_b32           v1, 2, v1
        v_lshlrev_b32           v2, 2, v0                               // the item's word of LDS
        s_wait_kmcnt            0
        global_load_b32         v3, v1, s[8:9]
        s_wait_loadcnt          0
        ds_store_b32            v2, v3
        s_movk_i32              s12, 128                                // items that add in this level
reduce_level:
        s_wait_dscnt            0
        s_barrier_signal        -1
        s_barrier_wait          -1
        v_cmp_gt_u32            vcc_lo, s12, v0
        s_and_saveexec_b32      s14, vcc_lo
        s_lshl_b32              s13, s12, 2
        v_add_nc_u32            v4, s13, v2
        ds_load_b32             v5, v4
        ds_load_b32             v6, v2
        s_wait_dscnt            0
        v_add_nc_u32            v6, v5, v6
        ds_store_b32            v2, v6
        s_mov_b32               exec_lo, s14
        s_lshr_b32              s12, s12, 1
        s_cmp_lg_u32            s12, 0
        s_cbranch_scc1          reduce_level
        v_cmp_eq_u32            vcc_lo, 0, v0                           // it wrote the last level itself: DS keeps its order
        s_and_saveexec_b32      s14, vcc_lo
        v_mov_b32               v1, 0
        s_lshl_b32              s12, ttmp9, 2
        s_mov_b32               s13, 0
        s_add_nc_u64            s[10:11], s[10:11], s[12:13]
        ds_load_b32             v6, v1
        s_wait_dscnt            0
        global_store_b32        v1, v6, s[10:11]
        s_endpgm
        DESCRIPTOR reduce, 1024

// Every work-item adds 1 to p[512 group + x + 8 y + 64 z], group = gx + 8 gy + 64 gz: workgroups of at most 8 items an axis,
// grids of at most 8 workgroups an axis.
        BEGIN   visit
        s_load_b64              s[8:9], s[0:1], 0
        s_and_b32               s10, ttmp7, 0xffff
        s_lshr_b32              s11, ttmp7, 16
        s_lshl_b32              s10, s10, 3
        s_lshl_b32              s11, s11, 6
        s_add_co_u32            s10, s10, ttmp9
        s_add_co_u32            s10, s10, s11                           // group
        v_and_b32               v1, 0x3ff, v0                           // x
        v_bfe_u32               v2, v0, 10, 10                          // y
        v_lshrrev_b32           v3, 20, v0                              // z
        v_lshl_add_u32          v1, v2, 3, v1
        v_lshl_add_u32          v1, v3, 6, v1
        v_lshlrev_b32           v1, 2, v1
        v_mov_b32               v4, 1
        s_lshl_b32              s10, s10, 11                            // 512 words a group
        v_add_nc_u32            v1, s10, v1
        s_wait_kmcnt            0
        global_atomic_add_u32   v1, v4, s[8:9]
        s_endpgm
        DESCRIPTOR visit, 0

// Wave 1 of each workgroup spins until wave 0 has set a flag in LDS; then it writes it to q[group]. 64 items.
        BEGIN   flag
        s_load_b128             s[8:11], s[0:1], 0
        v_and_b32               v0, 0x3ff, v0
        v_mov_b32               v1, 0
        v_mov_b32               v2, 0
        v_cmp_eq_u32            vcc_lo, 0, v0
        s_and_saveexec_b32      s14, vcc_lo
        ds_store_b32            v1, v2
        s_mov_b32               exec_lo, s14
        s_wait_dscnt            0
        s_barrier_signal        -1
        s_barrier_wait          -1
        s_wait_kmcnt            0
        v_readfirstlane_b32     s12, v0
        s_cmp_lg_u32            s12, 0
        s_cbranch_scc0          flag_set
flag_spin:
        v_mov_b32               v3, 0
        ds_add_rtn_u32          v3, v1, v3                              // an atomic read
        s_wait_dscnt            0
        v_readfirstlane_b32     s13, v3
        s_cmp_lg_u32            s13, 0
        s_cbranch_scc0          flag_spin
        s_lshl_b32              s12, ttmp9, 2
        s_mov_b32               s13, 0
        s_add_nc_u64            s[10:11], s[10:11], s[12:13]
        v_cmp_eq_u32            vcc_lo, 32, v0
        s_and_saveexec_b32      s14, vcc_lo
        global_store_b32        v1, v3, s[10:11]
        s_endpgm
flag_set:
        v_cmp_eq_u32            vcc_lo, 0, v0
        s_and_saveexec_b32      s14, vcc_lo
        v_mov_b32               v2, 7
        ds_or_b32               v1, v2
        s_endpgm
        DESCRIPTOR flag, 4

// A barrier over the grid: each workgroup of one wave adds 1 to p[0], and waits until it is n; q[group] = n.
        BEGIN   meet
        s_load_b128             s[8:11], s[0:1], 0
        s_load_b32              s12, s[0:1], 16
        s_mov_b32               exec_lo, 1
        v_mov_b32               v1, 0
        v_mov_b32               v2, 1
        s_wait_kmcnt            0
        global_atomic_add_u32   v1, v2, s[8:9] scope:SCOPE_DEV
        v_mov_b32               v2, 0
meet_spin:
        s_sleep                 1
        global_atomic_add_u32   v3, v1, v2, s[8:9] th:TH_ATOMIC_RETURN scope:SCOPE_DEV
        s_wait_loadcnt          0
        v_readfirstlane_b32     s13, v3
        s_cmp_lt_u32            s13, s12
        s_cbranch_scc1          meet_spin
        s_lshl_b32              s14, ttmp9, 2
        v_mov_b32               v1, s14
        global_store_b32        v1, v3, s[10:11]
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
        s_barrier_signal        -1
        s_barrier_wait          -1
        s_cmp_eq_u32            s12, 0
        s_cbranch_scc0          mismatch_end
        s_barrier_signal        -1
        s_barrier_wait          -1
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
        s_rfe_i64               s[0:1]
        s_endpgm
        DESCRIPTOR unsupported, 0

// Reads 4 bytes behind p[0 .. n - 1].
        BEGIN   overrun
        s_load_b64              s[8:9], s[0:1], 0
        s_load_b32              s12, s[0:1], 16
        s_mov_b32               exec_lo, 1
        s_wait_kmcnt            0
        s_lshl_b32              s12, s12, 2
        v_mov_b32               v1, s12
        global_load_b32         v2, v1, s[8:9]
        s_wait_loadcnt          0
        s_endpgm
        DESCRIPTOR overrun, 0

// What a wave begins with: q[8 group ..] = IB_STS2, MODE, exec low, exec high, then MODE[23:20] after FP16_OVFL is set.
        BEGIN   state
        s_load_b128             s[8:11], s[0:1], 0
        s_mov_b64               s[16:17], exec
        s_getreg_b32            s14, hwreg(HW_REG_IB_STS2)
        s_getreg_b32            s15, hwreg(HW_REG_WAVE_MODE)
        s_setreg_imm32_b32      hwreg(HW_REG_WAVE_MODE, 23, 1), 1
        s_nop                   1
        s_getreg_b32            s18, hwreg(HW_REG_WAVE_MODE, 20, 4)
        s_mov_b32               exec_lo, 1
        s_lshl_b32              s12, ttmp9, 5
        v_mov_b32               v1, s12
        v_mov_b32               v2, s14
        v_mov_b32               v3, s15
        v_mov_b32               v4, s16
        v_mov_b32               v5, s17
        v_mov_b32               v6, s18
        s_wait_kmcnt            0
        global_store_b128       v1, v[2:5], s[10:11]
        global_store_b32        v1, v6, s[10:11] offset:16
        s_endpgm
        DESCRIPTOR state, 0

// Waves 0 and 1 meet at named barrier 1, waves 2 and 3 at 2; q[wave] = 100 + the partner's number, through LDS. 128 items.
        BEGIN   named
        s_load_b128             s[8:11], s[0:1], 0
        v_and_b32               v0, 0x3ff, v0
        v_lshrrev_b32           v1, 5, v0                               // wave
        v_readfirstlane_b32     s12, v1
        s_cmp_eq_u32            s12, 0
        s_cbranch_scc0          named_ready
        s_mov_b32               m0, 0x20001                             // 2 members, barrier 1
        s_barrier_init          m0
        s_mov_b32               m0, 0x20002
        s_barrier_init          m0
named_ready:
        s_barrier_signal        -1
        s_barrier_wait          -1
        v_lshlrev_b32           v2, 2, v1
        v_add_nc_u32            v3, 100, v1
        s_mov_b32               exec_lo, 1
        ds_store_b32            v2, v3
        s_wait_dscnt            0
        s_cmp_lt_u32            s12, 2
        s_cbranch_scc0          named_second
        s_barrier_join          1
        s_barrier_signal        1
        s_branch                named_wait
named_second:
        s_barrier_join          2
        s_barrier_signal        2
named_wait:
        s_barrier_wait          1                                       // the one that is joined
        v_xor_b32               v4, 4, v2
        ds_load_b32             v5, v4
        s_wait_dscnt            0
        s_wait_kmcnt            0
        global_store_b32        v2, v5, s[10:11]
        s_endpgm
        DESCRIPTOR named, 16

// The wave of a workgroup that signals first: p[0] += 1, q[group] = the barrier's number of members. 128 items.
        BEGIN   first
        s_load_b128             s[8:11], s[0:1], 0
        v_mov_b32               v1, 0
        v_mov_b32               v2, 1
        s_mov_b32               exec_lo, 1
        s_get_barrier_state     s13, -1
        s_wait_kmcnt            0
        s_bfe_u32               s13, s13, 0x70004                       // members
        v_mov_b32               v3, s13
        s_barrier_signal_isfirst -1
        s_cbranch_scc0          first_wait
        global_atomic_add_u32   v1, v2, s[8:9]
        s_lshl_b32              s12, ttmp9, 2
        v_mov_b32               v4, s12
        global_store_b32        v4, v3, s[10:11]
first_wait:
        s_barrier_wait          -1
        s_endpgm
        DESCRIPTOR first, 0

// q[group] = n + group, from SGPRs that the dispatcher has loaded: s[2:3] p, s[4:5] q, s6 n, s7 a.
        BEGIN   preload
        s_add_co_u32            s6, s6, ttmp9
        s_lshl_b32              s8, ttmp9, 2
        s_mov_b32               exec_lo, 1
        v_mov_b32               v1, s8
        v_mov_b32               v2, s6
        global_store_b32        v1, v2, s[4:5]
        s_endpgm
        DESCRIPTOR preload, 0, 6

// Wave 1 waits for a barrier that it has not signalled, and wave 0 for its signal.
        BEGIN   stuck
        v_readfirstlane_b32     s12, v0
        s_cmp_eq_u32            s12, 0
        s_cbranch_scc0          stuck_wait
        s_barrier_signal        -1
stuck_wait:
        s_barrier_wait          -1
        s_endpgm
        DESCRIPTOR stuck, 0

        .fill 64, 4, 0xbf9f0000                                         // s_code_end, for the prefetcher

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.kernels:
  - { .name: saxpy, .symbol: saxpy.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: reduce, .symbol: reduce.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 1024, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: visit, .symbol: visit.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: flag, .symbol: flag.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 4, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: meet, .symbol: meet.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: endless, .symbol: endless.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: mismatch, .symbol: mismatch.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: trapped, .symbol: trapped.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: unsupported, .symbol: unsupported.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: overrun, .symbol: overrun.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: state, .symbol: state.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: named, .symbol: named.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 16, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: first, .symbol: first.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: preload, .symbol: preload.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
  - { .name: stuck, .symbol: stuck.kd, .kernarg_segment_size: 24, .kernarg_segment_align: 8,
      .max_flat_workgroup_size: 1024, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 24, .vgpr_count: 8 }
...
        .end_amdgpu_metadata
