// Kernels for the tests of etalon-sim and of the stand-in runtimes, gfx950. tests/sim/runtime_gfx1250.s has the same.

        .amdgcn_target "amdgcn-amd-amdhsa--gfx950"

// s[0:1] arguments, s2 the workgroup, v0 the work-item.
.macro DESCRIPTOR name, kernarg, lds=0
        .size \name, . - \name
        .p2align 8
        .rodata
        .p2align 6
        .amdhsa_kernel \name
          .amdhsa_group_segment_fixed_size \lds
          .amdhsa_kernarg_size \kernarg
          .amdhsa_user_sgpr_count 2
          .amdhsa_user_sgpr_kernarg_segment_ptr 1
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

// y[i] = a * x[i] + y[i] for i < n; the size of a workgroup is a hidden argument.
.macro SAXPY name, wait
        BEGIN   \name
        s_load_dwordx2          s[8:9], s[0:1], 0                       // a, n
        s_load_dwordx4          s[12:15], s[0:1], 8                     // x, y
        s_load_dword            s10, s[0:1], 36                         // sizes of a workgroup, x in the low half
        s_waitcnt               lgkmcnt(0)
        s_and_b32               s10, s10, 0xffff
        s_mul_i32               s10, s10, s2
        v_add_u32               v0, s10, v0                             // i
        v_cmp_gt_u32            vcc, s9, v0
        s_and_saveexec_b64      s[16:17], vcc
        s_cbranch_execz         \name\()_end
        v_lshlrev_b32           v1, 2, v0
        global_load_dword       v2, v1, s[12:13]
        global_load_dword       v3, v1, s[14:15]
        s_waitcnt               vmcnt(\wait)
        v_fmac_f32              v3, s8, v2
        global_store_dword      v1, v3, s[14:15]
\name\()_end:
        s_endpgm
        DESCRIPTOR \name, 40
.endm

        SAXPY   saxpy, 0
        SAXPY   saxpy_early, 1                                          // y may be on its way

// p[1] = p[0], p[0] = value: tells in which order launches ran.
        BEGIN   stamp
        s_load_dwordx2          s[8:9], s[0:1], 0                       // p
        s_load_dword            s10, s[0:1], 8                          // value
        v_mov_b32               v1, 0
        s_waitcnt               lgkmcnt(0)
        global_load_dword       v2, v1, s[8:9]
        v_mov_b32               v3, s10
        s_waitcnt               vmcnt(0)
        global_store_dword      v1, v2, s[8:9] offset:4
        global_store_dword      v1, v3, s[8:9]
        s_endpgm
        DESCRIPTOR stamp, 16

// p[i] = i through LDS, the words of which are the launch's to give.
        BEGIN   dynamic
        s_load_dwordx2          s[8:9], s[0:1], 0                       // p
        v_lshlrev_b32           v1, 2, v0
        ds_write_b32            v1, v0
        ds_read_b32             v2, v1
        s_waitcnt               lgkmcnt(0)
        global_store_dword      v1, v2, s[8:9]
        s_endpgm
        DESCRIPTOR dynamic, 8

// Never ends.
        BEGIN   spin
        s_branch                spin
        s_endpgm
        DESCRIPTOR spin, 0

// 16 bytes of arguments, of which no metadata tells: p, and a word that goes there.
        BEGIN   plain
        s_load_dwordx2          s[8:9], s[0:1], 0
        s_load_dword            s10, s[0:1], 8
        v_mov_b32               v1, 0
        s_waitcnt               lgkmcnt(0)
        v_mov_b32               v2, s10
        global_store_dword      v1, v2, s[8:9]
        s_endpgm
        DESCRIPTOR plain, 12

        .data
        .globl  table
        .p2align 4
        .type   table, @object
table:
        .long   2, 3, 5, 7
        .size   table, 16
        .text

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.kernels:
  - .name: saxpy
    .symbol: saxpy.kd
    .kernarg_segment_size: 40
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 24
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - { .name: a, .offset: 0, .size: 4, .value_kind: by_value }
      - { .name: n, .offset: 4, .size: 4, .value_kind: by_value }
      - { .name: x, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: y, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .offset: 36, .size: 2, .value_kind: hidden_group_size_x }
      - { .offset: 38, .size: 2, .value_kind: hidden_group_size_y }
  - .name: saxpy_early
    .symbol: saxpy_early.kd
    .kernarg_segment_size: 40
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 24
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - { .name: a, .offset: 0, .size: 4, .value_kind: by_value }
      - { .name: n, .offset: 4, .size: 4, .value_kind: by_value }
      - { .name: x, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: y, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .offset: 36, .size: 2, .value_kind: hidden_group_size_x }
      - { .offset: 38, .size: 2, .value_kind: hidden_group_size_y }
  - .name: stamp
    .symbol: stamp.kd
    .kernarg_segment_size: 16
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 24
    .vgpr_count: 8
    .max_flat_workgroup_size: 64
    .args:
      - { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: value, .offset: 8, .size: 4, .value_kind: by_value }
  - .name: dynamic
    .symbol: dynamic.kd
    .kernarg_segment_size: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 24
    .vgpr_count: 8
    .max_flat_workgroup_size: 64
    .args:
      - { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
...
        .end_amdgpu_metadata
