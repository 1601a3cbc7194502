// Joins the parts of the segments: with M = max m over those with l > 0,
//
//   out = sum 2^(m - M) O / sum 2^(m - M) l        lse = ln 2 (M - 8 + log2 sum 2^(m - M) l)
//
// and 0 and -inf where there is none. O has the descale of v already; P and l are 2^8 times what they stand for.
//
// Launch: workgroups of 256 work-items (4 waves); wave w of workgroup (x, y) takes token x and query head 4 y + w.
// Budget: no LDS.
//
// Lane i has m and l of segment i, 64 segments at a time; then O of each segment, four columns a lane. A segment
// without weight is not read. Sums are in a fixed order: a plan always gives the same bits.

#include "pa_mtp_gfx950.h"

        .amdgcn_target "amdgcn-amd-amdhsa--gfx950"
        .include "kernel.inc"


        GPR_BEGIN
        SGPR    s_kernarg, 2            // s[0:1], set by the dispatcher
        SGPR    s_x                     // s2, token, set by the dispatcher
        SGPR    s_y                     // s3, four query heads
        SGPR    s_row, 4, 4             // of the plan
        SGPR    s_parts, 2, 2           // address of the first segment's part, then of that of the next
        SGPR    s_step, 2, 2            // to the next segment's
        SGPR    s_t, 4, 4
        SGPR    s_exec, 2, 2
        SGPR    s_heads, 2, 2           // KV heads, query heads
        SGPR    s_ratio, 2, 2           // query heads of a KV head; out is F32
        SGPR    s_head                  // query head
        SGPR    s_kv                    // KV head
        SGPR    s_n
        SGPR    s_w
        SGPR    s_first                 // segment of lane 0
        SGPR    s_some                  // segments of these lanes
        SGPR    s_o, 2, 2               // address of O of the segment
        VGPR    v_item                  // v0, set by the dispatcher
        VGPR    v_lane
        VGPR    v_at, 2, 2
        VGPR    v_m
        VGPR    v_l
        VGPR    v_most                  // M so far
        VGPR    v_sum                   // of l
        VGPR    v_w                     // weight of the lane's segment
        VGPR    v_t, 2, 2
        VGPR    v_off                   // 16 lane
        VGPR    v_acc, 4, 4
        VGPR    v_o, 16, 4

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

        KERNEL_BEGIN etalon_pa_mtp_reduce_d256_gfx950
        s_load_dwordx2          s[s_t:s_t+1], s[s_kernarg:s_kernarg+1], KA_ROWS
        s_load_dwordx2          s[s_parts:s_parts+1], s[s_kernarg:s_kernarg+1], KA_PARTS
        s_load_dwordx2          s[s_heads:s_heads+1], s[s_kernarg:s_kernarg+1], KA_KV_HEADS
        s_load_dwordx2          s[s_ratio:s_ratio+1], s[s_kernarg:s_kernarg+1], KA_GQA
        v_lshrrev_b32           v[v_t], 6, v[v_item]
        v_and_b32               v[v_lane], 63, v[v_item]
        v_readfirstlane_b32     s[s_n], v[v_t]
        s_lshl_b32              s[s_head], s[s_y], 2
        s_add_u32               s[s_head], s[s_head], s[s_n]
        s_waitcnt               lgkmcnt(0)                              // the arguments
        s_cmp_ge_u32            s[s_head], s[s_heads+1]
        s_cbranch_scc0          .Lbegin
        s_endpgm
.Lbegin:
        s_lshl_b32              s[s_n], s[s_x], 4
        s_lshr_b32              s[s_w], s[s_x], 28
        s_add_u32               s[s_t], s[s_t], s[s_n]
        s_addc_u32              s[s_t+1], s[s_t+1], s[s_w]
        s_load_dwordx4          s[s_row:s_row+3], s[s_t:s_t+1], 0
// KV head, and the row: + head % ratio; the ratio is a power of two
        s_ff1_i32_b32           s[s_n], s[s_ratio]
        s_lshr_b32              s[s_kv], s[s_head], s[s_n]
        s_sub_u32               s[s_n], s[s_ratio], 1
        s_and_b32               s[s_n], s[s_n], s[s_head]
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
        v_lshlrev_b32           v[v_off], 4, v[v_lane]
        s_lshl_b32              s[s_n], s[s_row+3], 10
        v_add_u32               v[v_off], s[s_n], v[v_off]              // of the row's four columns
        v_mov_b32               v[v_most], 0xff800000
        v_mov_b32               v[v_sum], 0
        .irp n, 0, 1, 2, 3
        v_mov_b32               v[v_acc+\n], 0
        .endr
        s_mov_b32               s[s_first], 0
        s_mov_b64               s[s_o:s_o+1], s[s_parts:s_parts+1]
        s_branch                .Lsome_next

// 64 segments or fewer
.Lsome:
        s_sub_u32               s[s_some], s[s_row+2], s[s_first]
        s_min_u32               s[s_some], s[s_some], 64
        v_mov_b32               v[v_m], 0xff800000
        v_mov_b32               v[v_l], 0
        v_cmp_gt_u32            vcc, s[s_some], v[v_lane]
        s_and_saveexec_b64      s[s_exec:s_exec+1], vcc
// m and l of the lane's segment: parts + step lane + PART_M + 4 row
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
        s_waitcnt               vmcnt(0)                                // v_m, v_l
        s_mov_b64               exec, s[s_exec:s_exec+1]
// M; what there was is scaled by 2^(old M - M)
        v_mov_b32               v[v_w], 0xff800000
        v_cmp_neq_f32           vcc, 0, v[v_l]                          // NaN has weight
        s_nop                   1                                       // vcc
        v_cndmask_b32           v[v_m], v[v_w], v[v_m], vcc
        v_mov_b32               v[v_t], v[v_m]
        s_nop                   1                                       // DPP
        ALL                     v_t, v_max_f32
        v_max_f32               v[v_t], v[v_t], v[v_most]
        v_sub_f32               v[v_at], v[v_most], v[v_t]
        v_mov_b32               v[v_most], v[v_t]
        v_cmp_eq_f32            vcc, v[v_w], v[v_t]                     // no segment has weight
        s_cbranch_vccnz         .Lsome_done
        v_cvt_i32_f32           v[v_at], v[v_at]
        v_ldexp_f32             v[v_sum], v[v_sum], v[v_at]
        .irp n, 0, 1, 2, 3
        v_ldexp_f32             v[v_acc+\n], v[v_acc+\n], v[v_at]
        .endr
        v_sub_f32               v[v_w], v[v_m], v[v_most]
        v_cvt_i32_f32           v[v_w], v[v_w]
        v_ldexp_f32             v[v_w], 1.0, v[v_w]                     // 0 of a segment without weight
        v_mul_f32               v[v_t], v[v_w], v[v_l]
        s_nop                   1                                       // DPP
        ALL                     v_t, v_add_f32
        v_add_f32               v[v_sum], v[v_sum], v[v_t]
// acc += weight O, four segments at a time
        s_mov_b32               s[s_n], 0
.Lfour:
        .irp i, 0, 1, 2, 3
        .irp n, 0, 1, 2, 3
        v_mov_b32               v[v_o+4*\i+\n], 0
        .endr
        s_mov_b32               s[s_t+\i], 0
        s_cmp_lt_u32            s[s_n], s[s_some]
        s_cbranch_scc0          .Lloaded\i
        v_readlane_b32          s[s_t+\i], v[v_w], s[s_n]
        s_cmp_eq_u32            s[s_t+\i], 0
        s_cbranch_scc1          .Lskipped\i
        global_load_dwordx4     v[v_o+4*\i:v_o+4*\i+3], v[v_off], s[s_o:s_o+1]
.Lskipped\i:
        s_add_u32               s[s_o], s[s_o], s[s_step]
        s_addc_u32              s[s_o+1], s[s_o+1], s[s_step+1]
        s_add_u32               s[s_n], s[s_n], 1
.Lloaded\i:
        .endr
        s_waitcnt               vmcnt(0)                                // v_o
        .irp i, 0, 1, 2, 3
        .irp n, 0, 1, 2, 3
        v_fma_f32               v[v_acc+\n], s[s_t+\i], v[v_o+4*\i+\n], v[v_acc+\n]
        .endr
        .endr
        s_cmp_lt_u32            s[s_n], s[s_some]
        s_cbranch_scc1          .Lfour
        s_branch                .Lsome_end
.Lsome_done:
        s_mul_i32               s[s_t], s[s_step], s[s_some]
        s_mul_hi_u32            s[s_t+1], s[s_step], s[s_some]
        s_mul_i32               s[s_t+2], s[s_step+1], s[s_some]
        s_add_u32               s[s_t+1], s[s_t+1], s[s_t+2]
        s_add_u32               s[s_o], s[s_o], s[s_t]
        s_addc_u32              s[s_o+1], s[s_o+1], s[s_t+1]
.Lsome_end:
        s_add_u32               s[s_first], s[s_first], s[s_some]
        s_mov_b64               s[s_parts:s_parts+1], s[s_o:s_o+1]
.Lsome_next:
        s_cmp_lt_u32            s[s_first], s[s_row+2]
        s_cbranch_scc1          .Lsome

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
        v_mov_b32               v[v_m], 0xff800000
        v_cndmask_b32           v[v_t], v[v_t], v[v_m], vcc
        s_load_dwordx2          s[s_o:s_o+1], s[s_kernarg:s_kernarg+1], KA_OUT
        s_load_dwordx4          s[s_row:s_row+3], s[s_kernarg:s_kernarg+1], KA_OUT_STRIDE
        s_waitcnt               lgkmcnt(0)                              // out
        .irp i, 0, 1
        .if \i == 0
        .set s_by, s_x
        .else
        .set s_by, s_head
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
        .set s_by, s_head
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
        KERNEL_END etalon_pa_mtp_reduce_d256_gfx950, 0, KA_SIZE

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - { .name: etalon_pa_mtp_reduce_d256_gfx950, .symbol: etalon_pa_mtp_reduce_d256_gfx950.kd,
      .kernarg_segment_size: 328, .kernarg_segment_align: 8, .max_flat_workgroup_size: 256,
      .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 44,
      .vgpr_count: 32 }
...
        .end_amdgpu_metadata
