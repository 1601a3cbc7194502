// c[m, n] = scale * sum_k a[m, k] * b[k, n]
//
//   a [M, K] E4M3FN, row-major    b [K, N] E4M3FN, row-major    c [M, N] F32    scale F32
//   M and N are multiples of 64, K is one of 128 and not 0.
//
// Launch: workgroups of 256 work-items (4 waves); workgroup (x, y) makes c[64 y .. + 63, 64 x .. + 63], its wave w the
// 32 x 32 at (32 (w / 2), 32 (w % 2)), as 2 x 2 products of 16 x 16 x 128.
// Budget: 64 VGPRs, 20 SGPRs; LDS 32 KiB: two buffers of a[64, 128] and b[128, 64].
//
// Copies fill LDS in the order of lanes, 16 bytes a lane, so what is permuted is the source. Chunk c (16 bytes) of row
// m of a lies at chunk c ^ (m & 7), chunk c of row k of b at c ^ (bit 2 of k | bit 4 of k << 1): neither kind of read
// then has bank conflicts. b goes through the transposing read: a register holds 4 values of k of one column.
//
// Source: CDNA4 ISA 7.1.4 (layouts), 9.1.9 (copies to LDS), 11.4 (transposed reads)

        .amdgcn_target "amdgcn-amd-amdhsa--gfx950"
        .include "kernel.inc"

        .set KA_A, 0
        .set KA_B, 8
        .set KA_C, 16
        .set KA_M, 24                                                   // M, N, K, scale
        .set KA_SIZE, 40

        .set LDS_B, 8192                                                // of b in a buffer
        .set LDS_BUFFER, 16384

        GPR_BEGIN
        SGPR    s_kernarg, 2            // s[0:1], set by the dispatcher
        SGPR    s_x                     // s2, workgroup, set by the dispatcher
        SGPR    s_y                     // s3
        SGPR    s_a, 2, 4               // address of a[64 y, k]
        SGPR    s_b, 2                  // address of b[k, 64 x]
        SGPR    s_m, 1, 4
        SGPR    s_n
        SGPR    s_k
        SGPR    s_scale
        SGPR    s_c, 2, 2               // address of c[64 y, 64 x], then 16 rows on
        SGPR    s_wave
        SGPR    s_fill                  // where the wave's part of the next tile goes
        SGPR    s_tiles                 // left after this one
        SGPR    s_step                  // bytes between b[k, :] and b[k + 128, :]
        SGPR    s_t, 2, 2
        VGPR    v_item                  // v0, set by the dispatcher
        VGPR    v_lane
        VGPR    v_g                     // lane / 16
        VGPR    v_a0                    // offset of the lane's 16 bytes of a[16 wave + lane / 8, :]
        VGPR    v_a1                    // 8 rows on
        VGPR    v_b0                    // of b[32 wave + lane / 4, :]
        VGPR    v_b1                    // 16 rows on
        VGPR    v_ra                    // LDS address of the lane's a[row, 16 g ..]
        VGPR    v_ra64                  // and of a[row, 64 + 16 g ..]
        VGPR    v_rb                    // LDS address of the 8 bytes that the lane reads of b, columns 0 to 15
        VGPR    v_rb16                  // columns 16 to 31
        VGPR    v_c, 4                  // offset of the lane's c[row + r, column]
        VGPR    v_t
        VGPR    v_ta0, 8, 2             // a[16 i + lane % 16, 16 g .. and 64 + 16 g ..]
        VGPR    v_ta1, 8
        VGPR    v_tb0, 8                // b[16 g .. and 64 + 16 g .., 16 j + lane % 16]
        VGPR    v_tb1, 8
        VGPR    v_acc, 16               // c[16 i + 4 g + r, 16 j + lane % 16] at 8 i + 4 j + r

// The wave's 4 KiB of a[:, k .. k + 127] and b[k .. k + 127, :] -> LDS at s_fill; k += 128, the other buffer is next.
.macro FETCH
        s_mov_b32               m0, s[s_fill]
        s_nop                   0                                       // m0
        global_load_lds_dwordx4 v[v_a0], s[s_a:s_a+1]
        s_add_u32               m0, s[s_fill], 1024
        s_nop                   0                                       // m0
        global_load_lds_dwordx4 v[v_a1], s[s_a:s_a+1]
        s_add_u32               m0, s[s_fill], LDS_B
        s_add_u32               s[s_a], s[s_a], 128
        s_addc_u32              s[s_a+1], s[s_a+1], 0
        global_load_lds_dwordx4 v[v_b0], s[s_b:s_b+1]
        s_add_u32               m0, s[s_fill], LDS_B + 1024
        s_nop                   0                                       // m0
        global_load_lds_dwordx4 v[v_b1], s[s_b:s_b+1]
        s_add_u32               s[s_b], s[s_b], s[s_step]
        s_addc_u32              s[s_b+1], s[s_b+1], 0
        s_xor_b32               s[s_fill], s[s_fill], LDS_BUFFER
.endm

        KERNEL_BEGIN etalon_gemm_e4m3_gfx950
        s_load_dwordx4          s[s_a:s_a+3], s[s_kernarg:s_kernarg+1], KA_A
        s_load_dwordx4          s[s_m:s_m+3], s[s_kernarg:s_kernarg+1], KA_M
        s_load_dwordx2          s[s_c:s_c+1], s[s_kernarg:s_kernarg+1], KA_C
        v_lshrrev_b32           v[v_t], 6, v[v_item]
        v_and_b32               v[v_lane], 63, v[v_item]
        v_readfirstlane_b32     s[s_wave], v[v_t]
        s_waitcnt               lgkmcnt(0)                              // the arguments

// a += 64 y K; b += 64 x; c += 4 (64 y N + 64 x)
        s_lshl_b32              s[s_y], s[s_y], 6
        s_lshl_b32              s[s_x], s[s_x], 6
        s_mul_i32               s[s_t], s[s_y], s[s_k]
        s_mul_hi_u32            s[s_t+1], s[s_y], s[s_k]
        s_add_u32               s[s_a], s[s_a], s[s_t]
        s_addc_u32              s[s_a+1], s[s_a+1], s[s_t+1]
        s_add_u32               s[s_b], s[s_b], s[s_x]
        s_addc_u32              s[s_b+1], s[s_b+1], 0
        s_mul_i32               s[s_t], s[s_y], s[s_n]
        s_mul_hi_u32            s[s_t+1], s[s_y], s[s_n]
        s_add_u32               s[s_t], s[s_t], s[s_x]
        s_addc_u32              s[s_t+1], s[s_t+1], 0
        s_lshl_b64              s[s_t:s_t+1], s[s_t:s_t+1], 2
        s_add_u32               s[s_c], s[s_c], s[s_t]
        s_addc_u32              s[s_c+1], s[s_c+1], s[s_t+1]
        s_lshl_b32              s[s_step], s[s_n], 7
        s_lshr_b32              s[s_tiles], s[s_k], 7
        s_lshl_b32              s[s_fill], s[s_wave], 11

// a0 = (16 wave + lane / 8) K + 16 ((lane % 8) ^ (lane / 8)); a1 = a0 + 8 K
        v_lshrrev_b32           v[v_t], 3, v[v_lane]
        v_and_b32               v[v_a1], 7, v[v_lane]
        v_xor_b32               v[v_a1], v[v_a1], v[v_t]
        s_lshl_b32              s[s_t], s[s_wave], 4
        v_add_u32               v[v_t], s[s_t], v[v_t]
        v_mul_lo_u32            v[v_t], v[v_t], s[s_k]
        v_lshl_add_u32          v[v_a0], v[v_a1], 4, v[v_t]
        s_lshl_b32              s[s_t], s[s_k], 3
        v_add_u32               v[v_a1], s[s_t], v[v_a0]

// b0 = (32 wave + lane / 4) N + 16 ((lane % 4) ^ (lane / 16 % 2)); b1: 16 rows on, and bit 4 of k is set: chunk ^ 2
        v_lshrrev_b32           v[v_t], 2, v[v_lane]
        s_lshl_b32              s[s_t], s[s_wave], 5
        v_add_u32               v[v_t], s[s_t], v[v_t]
        v_mul_lo_u32            v[v_t], v[v_t], s[s_n]
        v_bfe_u32               v[v_b0], v[v_lane], 4, 1
        v_and_b32               v[v_b1], 3, v[v_lane]
        v_xor_b32               v[v_b0], v[v_b0], v[v_b1]
        v_xor_b32               v[v_b1], 2, v[v_b0]
        v_lshl_add_u32          v[v_b0], v[v_b0], 4, v[v_t]
        v_lshl_add_u32          v[v_b1], v[v_b1], 4, v[v_t]
        s_lshl_b32              s[s_t], s[s_n], 4
        v_add_u32               v[v_b1], s[s_t], v[v_b1]

        FETCH                                                           // tile 0

// ra = 128 (32 (wave / 2) + lane % 16) + 16 (g ^ (lane & 7)); the chunk of 64 + 16 g has bit 2 flipped
        v_lshrrev_b32           v[v_g], 4, v[v_lane]
        v_and_b32               v[v_t], 7, v[v_lane]
        v_xor_b32               v[v_t], v[v_g], v[v_t]
        v_and_b32               v[v_ra], 15, v[v_lane]
        v_lshlrev_b32           v[v_ra], 7, v[v_ra]
        v_lshl_add_u32          v[v_ra], v[v_t], 4, v[v_ra]
        s_lshr_b32              s[s_t], s[s_wave], 1
        s_lshl_b32              s[s_t+1], s[s_t], 12
        v_add_u32               v[v_ra], s[s_t+1], v[v_ra]
        v_xor_b32               v[v_ra64], 64, v[v_ra]

// rb = LDS_B + 64 (16 g + lane % 16 / 2) + 16 ((2 (wave % 2)) ^ (lane / 8 % 4)) + 8 (lane % 2); columns + 16: chunk ^ 1
        v_bfe_u32               v[v_rb], v[v_lane], 1, 3
        v_lshlrev_b32           v[v_rb], 6, v[v_rb]
        v_lshl_add_u32          v[v_rb], v[v_g], 10, v[v_rb]
        v_and_b32               v[v_t], 1, v[v_lane]
        v_lshl_add_u32          v[v_rb], v[v_t], 3, v[v_rb]
        v_bfe_u32               v[v_t], v[v_lane], 3, 2
        s_and_b32               s[s_wave], s[s_wave], 1
        s_lshl_b32              s[s_t+1], s[s_wave], 1
        v_xor_b32               v[v_t], s[s_t+1], v[v_t]
        v_lshl_add_u32          v[v_rb], v[v_t], 4, v[v_rb]
        v_add_u32               v[v_rb], LDS_B, v[v_rb]
        v_xor_b32               v[v_rb16], 16, v[v_rb]

// c[r] = 4 ((32 (wave / 2) + 4 g + r) N + 32 (wave % 2) + lane % 16)
        s_lshl_b32              s[s_t], s[s_t], 5
        v_lshl_add_u32          v[v_t], v[v_g], 2, s[s_t]
        v_mul_lo_u32            v[v_t], v[v_t], s[s_n]
        v_and_b32               v[v_c], 15, v[v_lane]
        s_lshl_b32              s[s_t], s[s_wave], 5
        v_add3_u32              v[v_t], v[v_t], s[s_t], v[v_c]
        v_lshlrev_b32           v[v_c], 2, v[v_t]
        s_lshl_b32              s[s_t], s[s_n], 2
        v_add_u32               v[v_c+1], s[s_t], v[v_c]
        v_add_u32               v[v_c+2], s[s_t], v[v_c+1]
        v_add_u32               v[v_c+3], s[s_t], v[v_c+2]
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        v_mov_b32               v[v_acc+\i], 0
        .endr

.Ltile:
        s_waitcnt               vmcnt(0)                                // the wave's part of the tile
        s_barrier                                                       // all parts; and all have read the other buffer
        s_sub_u32               s[s_tiles], s[s_tiles], 1
        s_cmp_eq_u32            s[s_tiles], 0
        s_cbranch_scc1          .Lread
        FETCH
.Lread:
        ds_read_b128            v[v_ta0:v_ta0+3], v[v_ra]
        ds_read_b128            v[v_ta0+4:v_ta0+7], v[v_ra64]
        ds_read_b64_tr_b8       v[v_tb0:v_tb0+1], v[v_rb]
        ds_read_b64_tr_b8       v[v_tb0+2:v_tb0+3], v[v_rb] offset:8*64
        ds_read_b64_tr_b8       v[v_tb0+4:v_tb0+5], v[v_rb] offset:64*64
        ds_read_b64_tr_b8       v[v_tb0+6:v_tb0+7], v[v_rb] offset:72*64
        ds_read_b64_tr_b8       v[v_tb1:v_tb1+1], v[v_rb16]
        ds_read_b64_tr_b8       v[v_tb1+2:v_tb1+3], v[v_rb16] offset:8*64
        ds_read_b64_tr_b8       v[v_tb1+4:v_tb1+5], v[v_rb16] offset:64*64
        ds_read_b64_tr_b8       v[v_tb1+6:v_tb1+7], v[v_rb16] offset:72*64
        ds_read_b128            v[v_ta1:v_ta1+3], v[v_ra] offset:16*128
        ds_read_b128            v[v_ta1+4:v_ta1+7], v[v_ra64] offset:16*128
        v_xor_b32               v[v_ra], LDS_BUFFER, v[v_ra]
        v_xor_b32               v[v_ra64], LDS_BUFFER, v[v_ra64]
        v_xor_b32               v[v_rb], LDS_BUFFER, v[v_rb]
        v_xor_b32               v[v_rb16], LDS_BUFFER, v[v_rb16]
// acc[i, j] += a[16 i .., :] b[:, 16 j ..]
        s_waitcnt               lgkmcnt(6)                              // ta0, tb0
        v_mfma_f32_16x16x128_f8f6f4 v[v_acc:v_acc+3], v[v_ta0:v_ta0+7], v[v_tb0:v_tb0+7], v[v_acc:v_acc+3]
        s_waitcnt               lgkmcnt(2)                              // tb1
        v_mfma_f32_16x16x128_f8f6f4 v[v_acc+4:v_acc+7], v[v_ta0:v_ta0+7], v[v_tb1:v_tb1+7], v[v_acc+4:v_acc+7]
        s_waitcnt               lgkmcnt(0)                              // ta1: the wave has read this buffer
        v_mfma_f32_16x16x128_f8f6f4 v[v_acc+8:v_acc+11], v[v_ta1:v_ta1+7], v[v_tb0:v_tb0+7], v[v_acc+8:v_acc+11]
        v_mfma_f32_16x16x128_f8f6f4 v[v_acc+12:v_acc+15], v[v_ta1:v_ta1+7], v[v_tb1:v_tb1+7], v[v_acc+12:v_acc+15]
        s_cmp_lg_u32            s[s_tiles], 0
        s_cbranch_scc1          .Ltile

// c = scale acc
        s_lshl_b32              s[s_t], s[s_n], 6
        s_nop                   3                                       // acc: 12 states after its product
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        v_mul_f32               v[v_acc+\i], s[s_scale], v[v_acc+\i]
        .endr
        .irp r, 0, 1, 2, 3
        global_store_dword      v[v_c+\r], v[v_acc+\r], s[s_c:s_c+1]
        global_store_dword      v[v_c+\r], v[v_acc+4+\r], s[s_c:s_c+1] offset:4*16
        .endr
        s_add_u32               s[s_c], s[s_c], s[s_t]
        s_addc_u32              s[s_c+1], s[s_c+1], 0
        .irp r, 0, 1, 2, 3
        global_store_dword      v[v_c+\r], v[v_acc+8+\r], s[s_c:s_c+1]
        global_store_dword      v[v_c+\r], v[v_acc+12+\r], s[s_c:s_c+1] offset:4*16
        .endr
        s_endpgm
        KERNEL_END etalon_gemm_e4m3_gfx950, 2 * LDS_BUFFER, KA_SIZE

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - { .name: etalon_gemm_e4m3_gfx950, .symbol: etalon_gemm_e4m3_gfx950.kd, .kernarg_segment_size: 40,
      .kernarg_segment_align: 8, .max_flat_workgroup_size: 256, .group_segment_fixed_size: 32768,
      .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 26, .vgpr_count: 64 }
...
        .end_amdgpu_metadata
