// Joins the parts of the segments: with M = max m over those with l > 0,
//
//   out = sum 2^(m - M) O / sum 2^(m - M) l        lse = ln 2 (M - 8 + log2 sum 2^(m - M) l)
//
// and 0 and -inf where there is none. O has the descale of v already; P and l are 2^8 times what they stand for.
//
// Launch: workgroups of 512 work-items (8 waves); workgroup (x, y) takes token x and query head y.
// Budget: 8 KiB of LDS for F32 [8 waves, 256 columns], of which a lane has 16 bytes.
//
// Lane i has m and l of segment i, 64 segments at a time, in every wave. Wave w then adds segments w, w + 8, .., w + 56,
// four columns a lane: up to 8 loads of a wave on their way, and those of the next 64 m and l. A segment without weight
// is not read. Sums are in a fixed order: a plan always gives the same bits.

#include "pa_mtp_gfx950.h"

        .amdgcn_target "amdgcn-amd-amdhsa--gfx950"
        .include "kernel.inc"

        .set LDS_SIZE, 8192

        GPR_BEGIN
        SGPR    s_kernarg, 2            // s[0:1], set by the dispatcher
        SGPR    s_x                     // s2, token, set by the dispatcher
        SGPR    s_y                     // s3, query head, set by the dispatcher
        SGPR    s_row, 4, 4             // of the plan
        SGPR    s_parts, 2, 2           // address of the part of lane 0's segment, and of the next 64
        SGPR    s_step, 2, 2            // to the next segment's
        SGPR    s_step8, 2, 2           // to the wave's next
        SGPR    s_t, 4, 4
        SGPR    s_exec, 2, 2
        SGPR    s_has, 2, 2             // lanes whose segment has weight
        SGPR    s_o, 2, 2               // address of O of the segment
        SGPR    s_heads, 2, 2           // KV heads, query heads
        SGPR    s_ratio, 2, 2           // query heads of a KV head; out is F32
        SGPR    s_wave
        SGPR    s_kv                    // KV head
        SGPR    s_n
        SGPR    s_first                 // segment of lane 0
        SGPR    s_weight, 8             // of the wave's segments
        VGPR    v_item                  // v0, set by the dispatcher
        VGPR    v_lane
        VGPR    v_at, 2, 2
        VGPR    v_m
        VGPR    v_l
        VGPR    v_none                  // -inf
        VGPR    v_most                  // M so far
        VGPR    v_sum                   // of l
        VGPR    v_w                     // weight of the lane's segment
        VGPR    v_t, 2, 2
        VGPR    v_off                   // 16 lane
        VGPR    v_lds                   // 16 item
        VGPR    v_acc, 4, 4
        VGPR    v_o, 32, 4

// x = max or sum over all lanes, in all lanes; x + 1 is lost
.macro ALL x, op
        .irp n, 1, 2, 4, 8
        .if \n == 1
        v_mov_b32_dpp           v[\x+1], v[\x] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        .elseif \n == 2
        v_mov_b32_dpp           v[\x+1], v[\x] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        .elseif \n == 4
        v_mov_b32_dpp           v[\x+1], v[\x] row_half_mirror row_mask:0xf bank_mask:0xf
        .else
        v_mov_b32_dpp           v[\x+1], v[\x] row_mirror row_mask:0xf bank_mask:0xf
        .endif
        \op                     v[\x], v[\x], v[\x+1]
        .if \n < 8
        s_nop                   1                                       // DPP
        .endif
        .endr
        v_mov_b32               v[\x+1], v[\x]
        s_nop                   1                                       // swap
        v_permlane16_swap_b32   v[\x], v[\x+1]
        \op                     v[\x], v[\x], v[\x+1]
        v_mov_b32               v[\x+1], v[\x]
        s_nop                   1                                       // swap
        v_permlane32_swap_b32   v[\x], v[\x+1]
        \op                     v[\x], v[\x], v[\x+1]
.endm

// m and l of the lane's segment, on their way: parts + step lane + PART_M + 4 row
.macro LOAD_M_L
        v_mov_b32               v[v_m], v[v_none]
        v_mov_b32               v[v_l], 0
        s_sub_u32               s[s_n], s[s_row+2], s[s_first]
        v_cmp_gt_i32            vcc, s[s_n], v[v_lane]
        s_and_saveexec_b64      s[s_exec:s_exec+1], vcc
        v_mov_b32               v[v_t], s[s_parts]
        v_mov_b32               v[v_t+1], s[s_parts+1]
        v_mad_u64_u32           v[v_at:v_at+1], s[s_t:s_t+1], v[v_lane], s[s_step], v[v_t:v_t+1]
        v_mul_lo_u32            v[v_t], v[v_lane], s[s_step+1]
        v_add_u32               v[v_at+1], v[v_at+1], v[v_t]
        s_lshl_b32              s[s_n], s[s_row+3], 2
        s_add_u32               s[s_n], s[s_n], PART_M
        v_mov_b32               v[v_t], s[s_n]
        v_add_co_u32            v[v_at], vcc, v[v_at], v[v_t]
        s_nop                   1                                       // vcc
        v_addc_co_u32           v[v_at+1], vcc, 0, v[v_at+1], vcc
        global_load_dword       v[v_m], v[v_at:v_at+1], off
        global_load_dword       v[v_l], v[v_at:v_at+1], off offset:256
        s_mov_b64               exec, s[s_exec:s_exec+1]
.endm

        KERNEL_BEGIN etalon_pa_mtp_reduce_d256_gfx950
        s_load_dwordx2          s[s_t:s_t+1], s[s_kernarg:s_kernarg+1], KA_ROWS
        s_load_dwordx2          s[s_parts:s_parts+1], s[s_kernarg:s_kernarg+1], KA_PARTS
        s_load_dwordx2          s[s_heads:s_heads+1], s[s_kernarg:s_kernarg+1], KA_KV_HEADS
        s_load_dwordx2          s[s_ratio:s_ratio+1], s[s_kernarg:s_kernarg+1], KA_GQA
        v_lshrrev_b32           v[v_t], 6, v[v_item]
        v_and_b32               v[v_lane], 63, v[v_item]
        v_readfirstlane_b32     s[s_wave], v[v_t]
        v_lshlrev_b32           v[v_lds], 4, v[v_item]
        s_lshl_b32              s[s_n], s[s_x], 4
        s_lshr_b32              s[s_first], s[s_x], 28
        s_waitcnt               lgkmcnt(0)                              // the arguments
        s_add_u32               s[s_t], s[s_t], s[s_n]
        s_addc_u32              s[s_t+1], s[s_t+1], s[s_first]
        s_load_dwordx4          s[s_row:s_row+3], s[s_t:s_t+1], 0
// KV head, and the row: + head % ratio; the ratio is a power of two
        s_ff1_i32_b32           s[s_n], s[s_ratio]
        s_lshr_b32              s[s_kv], s[s_y], s[s_n]
        s_sub_u32               s[s_n], s[s_ratio], 1
        s_and_b32               s[s_n], s[s_n], s[s_y]
        s_waitcnt               lgkmcnt(0)                              // s_row
        s_add_u32               s[s_row+3], s[s_row+3], s[s_n]
// part (task Hkv + KV head)
        s_mul_i32               s[s_t], s[s_row], s[s_heads]
        s_add_u32               s[s_t], s[s_t], s[s_kv]
        s_mul_i32               s[s_t+1], s[s_t], PART_SIZE
        s_mul_hi_u32            s[s_t+2], s[s_t], PART_SIZE
        s_add_u32               s[s_parts], s[s_parts], s[s_t+1]
        s_addc_u32              s[s_parts+1], s[s_parts+1], s[s_t+2]
        s_mul_i32               s[s_t], s[s_row+1], s[s_heads]
        s_mul_i32               s[s_step], s[s_t], PART_SIZE
        s_mul_hi_u32            s[s_step+1], s[s_t], PART_SIZE
        s_lshl_b64              s[s_step8:s_step8+1], s[s_step:s_step+1], 3
// O of the wave's first segment
        s_mul_i32               s[s_o], s[s_step], s[s_wave]
        s_mul_hi_u32            s[s_o+1], s[s_step], s[s_wave]
        s_mul_i32               s[s_n], s[s_step+1], s[s_wave]
        s_add_u32               s[s_o+1], s[s_o+1], s[s_n]
        s_add_u32               s[s_o], s[s_o], s[s_parts]
        s_addc_u32              s[s_o+1], s[s_o+1], s[s_parts+1]
        v_lshlrev_b32           v[v_off], 4, v[v_lane]
        s_lshl_b32              s[s_n], s[s_row+3], 10
        v_add_u32               v[v_off], s[s_n], v[v_off]              // of the row's four columns
        v_mov_b32               v[v_none], 0xff800000
        v_mov_b32               v[v_most], v[v_none]
        v_mov_b32               v[v_sum], 0
        .irp n, 0, 1, 2, 3
        v_mov_b32               v[v_acc+\n], 0
        .endr
        s_mov_b32               s[s_first], 0
        LOAD_M_L

// 64 segments or fewer
.Lsome:
        s_waitcnt               vmcnt(0)                                // v_m, v_l
// M; what there was is scaled by 2^(old M - M)
        v_cmp_neq_f32           s[s_has:s_has+1], 0, v[v_l]             // NaN has weight
        s_nop                   1                                       // s_has
        v_cndmask_b32           v[v_m], v[v_none], v[v_m], s[s_has:s_has+1]
        v_mov_b32               v[v_t], v[v_m]
        s_nop                   1                                       // DPP
        ALL                     v_t, v_max_f32
        v_max_f32               v[v_t], v[v_t], v[v_most]
        v_sub_f32               v[v_at], v[v_most], v[v_t]
        v_mov_b32               v[v_most], v[v_t]
        v_cvt_i32_f32           v[v_at], v[v_at]                        // 0 while there was none, and is none
        v_ldexp_f32             v[v_sum], v[v_sum], v[v_at]
        .irp n, 0, 1, 2, 3
        v_ldexp_f32             v[v_acc+\n], v[v_acc+\n], v[v_at]
        .endr
        v_sub_f32               v[v_w], v[v_m], v[v_most]
        v_cvt_i32_f32           v[v_w], v[v_w]
        v_ldexp_f32             v[v_w], 1.0, v[v_w]
        v_cndmask_b32           v[v_w], 0, v[v_w], s[s_has:s_has+1]
        v_mul_f32               v[v_t], v[v_w], v[v_l]
        s_nop                   1                                       // DPP
        ALL                     v_t, v_add_f32
        v_add_f32               v[v_sum], v[v_sum], v[v_t]
// acc += weight O of the wave's segments
        s_mov_b32               s[s_n], s[s_wave]
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7
        v_readlane_b32          s[s_weight+\i], v[v_w], s[s_n]
        s_cmp_eq_u32            s[s_weight+\i], 0
        s_cbranch_scc1          .Lskipped\i
        global_load_dwordx4     v[v_o+4*\i:v_o+4*\i+3], v[v_off], s[s_o:s_o+1]
.Lskipped\i:
        s_add_u32               s[s_o], s[s_o], s[s_step8]
        s_addc_u32              s[s_o+1], s[s_o+1], s[s_step8+1]
        .if \i < 7
        s_add_u32               s[s_n], s[s_n], 8
        .endif
        .endr
        s_lshl_b64              s[s_t:s_t+1], s[s_step:s_step+1], 6
        s_add_u32               s[s_parts], s[s_parts], s[s_t]
        s_addc_u32              s[s_parts+1], s[s_parts+1], s[s_t+1]
        s_add_u32               s[s_first], s[s_first], 64
        LOAD_M_L
        s_waitcnt               vmcnt(2)                                // v_o
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7
        s_cmp_eq_u32            s[s_weight+\i], 0
        s_cbranch_scc1          .Ladded\i
        .irp n, 0, 1, 2, 3
        v_fma_f32               v[v_acc+\n], s[s_weight+\i], v[v_o+4*\i+\n], v[v_acc+\n]
        .endr
.Ladded\i:
        .endr
        s_cmp_lt_u32            s[s_first], s[s_row+2]
        s_cbranch_scc1          .Lsome

// the waves' sums, added by the first
        ds_write_b128           v[v_lds], v[v_acc:v_acc+3]
        s_waitcnt               lgkmcnt(0)
        s_barrier
        s_cmp_eq_u32            s[s_wave], 0
        s_cbranch_scc0          .Lend
        .irp i, 1, 2, 3, 4, 5, 6, 7
        ds_read_b128            v[v_o+4*\i:v_o+4*\i+3], v[v_lds] offset:1024*\i
        .endr
        .irp i, 1, 2, 3, 4, 5, 6, 7
        s_waitcnt               lgkmcnt(7-\i)                           // v_o
        .irp n, 0, 1, 2, 3
        v_add_f32               v[v_acc+\n], v[v_acc+\n], v[v_o+4*\i+\n]
        .endr
        .endr

// out = acc / l, 0 where l = 0
        v_rcp_f32               v[v_w], v[v_sum]
        v_cmp_eq_f32            vcc, 0, v[v_sum]
        v_log_f32               v[v_t], v[v_sum]
        .irp n, 0, 1, 2, 3
        v_mul_f32               v[v_acc+\n], v[v_acc+\n], v[v_w]
        .endr
        .irp n, 0, 1, 2, 3
        v_cndmask_b32           v[v_acc+\n], v[v_acc+\n], 0, vcc
        .endr
// lse = ln2 (M - 8) + ln2 log2 l
        v_add_f32               v[v_most], 0xc1000000, v[v_most]
        v_add_f32               v[v_t], v[v_most], v[v_t]
        v_mul_f32               v[v_t], 0x3f317218, v[v_t]
        v_cndmask_b32           v[v_t], v[v_t], v[v_none], vcc
        s_load_dwordx2          s[s_o:s_o+1], s[s_kernarg:s_kernarg+1], KA_OUT
        s_load_dwordx4          s[s_row:s_row+3], s[s_kernarg:s_kernarg+1], KA_OUT_STRIDE
        s_waitcnt               lgkmcnt(0)                              // out
        .irp i, 0, 1
        .if \i == 0
        .set s_by, s_x
        .else
        .set s_by, s_y
        .endif
        s_mul_i32               s[s_t], s[s_by], s[s_row+2*\i]
        s_mul_hi_u32            s[s_t+1], s[s_by], s[s_row+2*\i]
        s_add_u32               s[s_o], s[s_o], s[s_t]
        s_addc_u32              s[s_o+1], s[s_o+1], s[s_t+1]
        s_mul_i32               s[s_t], s[s_by], s[s_row+2*\i+1]
        s_add_u32               s[s_o+1], s[s_o+1], s[s_t]
        .endr
        s_cmp_eq_u32            s[s_ratio+1], 0
        s_cbranch_scc1          .Lbf16
        v_lshlrev_b32           v[v_off], 4, v[v_lane]
        global_store_dwordx4    v[v_off], v[v_acc:v_acc+3], s[s_o:s_o+1]
        s_branch                .Llse
.Lbf16:
        v_cvt_pk_bf16_f32       v[v_o], v[v_acc], v[v_acc+1]
        v_cvt_pk_bf16_f32       v[v_o+1], v[v_acc+2], v[v_acc+3]
        v_lshlrev_b32           v[v_off], 3, v[v_lane]
        global_store_dwordx2    v[v_off], v[v_o:v_o+1], s[s_o:s_o+1]
.Llse:
        s_load_dwordx2          s[s_o:s_o+1], s[s_kernarg:s_kernarg+1], KA_LSE
        s_load_dwordx4          s[s_row:s_row+3], s[s_kernarg:s_kernarg+1], KA_LSE_STRIDE
        s_waitcnt               lgkmcnt(0)                              // lse
        s_cmp_eq_u64            s[s_o:s_o+1], 0
        s_cbranch_scc1          .Lend
        .irp i, 0, 1
        .if \i == 0
        .set s_by, s_y
        .else
        .set s_by, s_x
        .endif
        s_mul_i32               s[s_t], s[s_by], s[s_row+2*\i]
        s_mul_hi_u32            s[s_t+1], s[s_by], s[s_row+2*\i]
        s_add_u32               s[s_o], s[s_o], s[s_t]
        s_addc_u32              s[s_o+1], s[s_o+1], s[s_t+1]
        s_mul_i32               s[s_t], s[s_by], s[s_row+2*\i+1]
        s_add_u32               s[s_o+1], s[s_o+1], s[s_t]
        .endr
        v_mov_b32               v[v_off], 0
        s_mov_b64               exec, 1
        global_store_dword      v[v_off], v[v_t], s[s_o:s_o+1]
.Lend:
        s_endpgm
        KERNEL_END etalon_pa_mtp_reduce_d256_gfx950, LDS_SIZE, KA_SIZE

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - { .name: etalon_pa_mtp_reduce_d256_gfx950, .symbol: etalon_pa_mtp_reduce_d256_gfx950.kd,
      .kernarg_segment_size: 328, .kernarg_segment_align: 8, .max_flat_workgroup_size: 512,
      .group_segment_fixed_size: 8192, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 48,
      .vgpr_count: 52 }
...
        .end_amdgpu_metadata
