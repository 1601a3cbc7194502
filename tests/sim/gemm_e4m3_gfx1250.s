// c[m, n] = scale * sum_k a[m, k] * b[k, n]
//
//   a [M, K] E4M3FN, row-major    b [K, N] E4M3FN, row-major    c [M, N] F32    scale F32
//   M, N, K are any but 0; N < 2^25.
//
// Launch: workgroups of 128 work-items (4 waves); workgroup (x, y) makes c[64 y .. + 63, 64 x .. + 63], its wave w the
// 32 x 32 at (32 (w / 2), 32 (w % 2)), as 2 x 2 products of 16 x 16 x 128.
// Budget: 112 VGPRs, 46 SGPRs; LDS 51 KiB: two buffers of a[64, 128], rows of 144 bytes, and b[128, 64], rows of 80.
//
// Each wave has the tensor mover bring its quarter of the tiles: 16 rows of a, 32 of b. What lies outside of the
// matrices arrives as zeros. b goes through the transposing load: a register holds 4 values of k of one column. Byte
// 16 j + i of a lane's row or column is k = 32 j + 16 h + i, the same for both, which is all that the product wants.
//
// Source: CDNA5 ISA 7.12.2 (layouts), 10.11 (tensor mover), 11 (transposed loads)

        .amdgcn_target "amdgcn-amd-amdhsa--gfx1250"
        .include "kernel.inc"

        .set KA_A, 0
        .set KA_B, 8
        .set KA_C, 16
        .set KA_M, 24                                                   // M, N, K, scale
        .set KA_SIZE, 40

        .set ROW_A, 128 + 16                                            // bytes of LDS
        .set ROW_B, 64 + 16
        .set LDS_B, 64 * ROW_A                                          // of b in a buffer
        .set LDS_BUFFER, 32768                                          // from one buffer to the other
        .set LDS_SIZE, LDS_BUFFER + LDS_B + 128 * ROW_B

        .set PAD_16, 1 << 20 | 3 << 25                                  // 4 (3 + 1) bytes behind every
        .set EVERY_64, 3 << 22                                          // 8 << 3
        .set EVERY_128, 4 << 22

        GPR_BEGIN
        SGPR    s_kernarg, 2            // s[0:1], set by the dispatcher
        SGPR    s_c, 2, 2               // address of c[64 y, 64 x]
        SGPR    s_a, 2, 4               // then of c[64 y + 16, 64 x]
        SGPR    s_b, 2
        SGPR    s_m, 1, 4
        SGPR    s_n
        SGPR    s_k                     // then K - k of the next tile
        SGPR    s_scale
        SGPR    s_ga0, 4, 4             // descriptor of the wave's part of a: addresses
        SGPR    s_ga1, 8, 4             // extents
        SGPR    s_gb0, 4, 4
        SGPR    s_gb1, 8, 4
        SGPR    s_x                     // 64 x
        SGPR    s_y                     // 64 y
        SGPR    s_t, 2, 2
        SGPR    s_u, 2, 2
        SGPR    s_wave
        SGPR    s_first                 // 32 wave: the wave's first k of b
        SGPR    s_tiles                 // left after this one
        SGPR    s_step                  // bytes between b[k, :] and b[k + 128, :]
        VGPR    v_item                  // v0, set by the dispatcher
        VGPR    v_h                     // lane / 16
        VGPR    v_ra                    // LDS address of the lane's a[row, 16 h ..]
        VGPR    v_rb                    // of the 8 bytes that the lane reads of b
        VGPR    v_c, 8                  // offset of the lane's c[row + r, column]
        VGPR    v_rows                  // rows of c from the lane's first on
        VGPR    v_columns
        VGPR    v_t
        VGPR    v_lane
        VGPR    v_ta0, 16, 2            // a[16 i + lane % 16, :]
        VGPR    v_ta1, 16
        VGPR    v_tb0, 16               // b[:, 16 j + lane % 16]
        VGPR    v_tb1, 16
        VGPR    v_acc, 32               // c[16 i + 8 h + r, 16 j + lane % 16] at 16 i + 8 j + r

// The wave's part of a[:, k .. k + 127] and b[k .. k + 127, :] -> LDS
.macro FETCH
        s_min_i32               s[s_t], s[s_k], 128
        s_lshl_b32              s[s_ga1+1], s[s_t], 16                  // columns of a
        s_sub_co_i32            s[s_t], s[s_k], s[s_first]
        s_max_i32               s[s_t], s[s_t], 0
        s_min_i32               s[s_t], s[s_t], 32
        s_lshl_b32              s[s_gb1+2], s[s_t], 16                  // rows of b
        tensor_load_to_lds      s[s_ga0:s_ga0+3], s[s_ga1:s_ga1+7]
        tensor_load_to_lds      s[s_gb0:s_gb0+3], s[s_gb1:s_gb1+7]
.endm

// k += 128, the other buffer is next. Behind the wait for the copies: until then they may read the descriptors again.
.macro ADVANCE
        s_add_co_u32            s[s_ga0+2], s[s_ga0+2], 128
        s_add_co_ci_u32         s[s_ga0+3], s[s_ga0+3], 0
        s_add_co_u32            s[s_gb0+2], s[s_gb0+2], s[s_step]
        s_add_co_ci_u32         s[s_gb0+3], s[s_gb0+3], 0
        s_xor_b32               s[s_ga0+1], s[s_ga0+1], LDS_BUFFER
        s_xor_b32               s[s_gb0+1], s[s_gb0+1], LDS_BUFFER
        s_sub_co_i32            s[s_k], s[s_k], 128
.endm

        KERNEL_BEGIN etalon_gemm_e4m3_gfx1250
        s_load_b128             s[s_a:s_a+3], s[s_kernarg:s_kernarg+1], KA_A
        s_load_b128             s[s_m:s_m+3], s[s_kernarg:s_kernarg+1], KA_M
        s_load_b64              s[s_c:s_c+1], s[s_kernarg:s_kernarg+1], KA_C
        v_lshrrev_b32           v[v_t], 5, v[v_item]
        v_and_b32               v[v_lane], 31, v[v_item]
        v_bfe_u32               v[v_h], v[v_item], 4, 1
        v_readfirstlane_b32     s[s_wave], v[v_t]
        s_and_b32               s[s_y], ttmp7, 0xffff
        s_lshl_b32              s[s_y], s[s_y], 6
        s_lshl_b32              s[s_x], ttmp9, 6
        s_lshl_b32              s[s_first], s[s_wave], 5
        s_wait_kmcnt            0                                       // the arguments
        s_lshl_b32              s[s_step], s[s_n], 7
        s_add_co_u32            s[s_tiles], s[s_k], 127
        s_lshr_b32              s[s_tiles], s[s_tiles], 7

// a[64 y + 16 wave .., 0 ..]: 16 rows of 128 bytes, M - row of them and K - k of those inside
        s_lshl_b32              s[s_t], s[s_wave], 4
        s_mul_i32               s[s_ga0+1], s[s_t], ROW_A
        s_add_co_u32            s[s_t], s[s_y], s[s_t]
        s_sub_co_i32            s[s_ga1+2], s[s_m], s[s_t]
        s_max_i32               s[s_ga1+2], s[s_ga1+2], 0
        s_min_i32               s[s_ga1+2], s[s_ga1+2], 16
        s_lshl_b32              s[s_ga1+2], s[s_ga1+2], 16
        s_mov_b32               s[s_t+1], 0
        s_mov_b32               s[s_u], s[s_k]
        s_mov_b32               s[s_u+1], 0
        s_mul_u64               s[s_t:s_t+1], s[s_t:s_t+1], s[s_u:s_u+1]
        s_add_nc_u64            s[s_ga0+2:s_ga0+3], s[s_a:s_a+1], s[s_t:s_t+1]
        s_or_b32                s[s_ga0+3], s[s_ga0+3], 2 << 30
        s_mov_b32               s[s_ga0], 1
        s_mov_b32               s[s_ga1], PAD_16 | EVERY_128
        s_mov_b32               s[s_ga1+3], 128 << 16
        s_mov_b32               s[s_ga1+4], 16
        s_mov_b32               s[s_ga1+5], s[s_k]
        s_mov_b64               s[s_ga1+6:s_ga1+7], 0

// b[32 wave .., 64 x ..]: 32 rows of 64 bytes, K - k of them and N - column of those inside
        s_mul_i32               s[s_gb0+1], s[s_first], ROW_B
        s_add_co_u32            s[s_gb0+1], s[s_gb0+1], LDS_B
        s_mov_b32               s[s_t], s[s_first]
        s_mov_b32               s[s_t+1], 0
        s_mov_b32               s[s_u], s[s_n]
        s_mul_u64               s[s_t:s_t+1], s[s_t:s_t+1], s[s_u:s_u+1]
        s_add_nc_u64            s[s_gb0+2:s_gb0+3], s[s_b:s_b+1], s[s_t:s_t+1]
        s_add_co_u32            s[s_gb0+2], s[s_gb0+2], s[s_x]
        s_add_co_ci_u32         s[s_gb0+3], s[s_gb0+3], 0
        s_or_b32                s[s_gb0+3], s[s_gb0+3], 2 << 30
        s_sub_co_i32            s[s_t], s[s_n], s[s_x]
        s_min_i32               s[s_t], s[s_t], 64
        s_lshl_b32              s[s_gb1+1], s[s_t], 16
        s_mov_b32               s[s_gb0], 1
        s_mov_b32               s[s_gb1], PAD_16 | EVERY_64
        s_mov_b32               s[s_gb1+3], 64 << 16
        s_mov_b32               s[s_gb1+4], 32
        s_mov_b32               s[s_gb1+5], s[s_n]
        s_mov_b64               s[s_gb1+6:s_gb1+7], 0

        FETCH                                                           // tile 0

// c += 4 (64 y N + 64 x)
        s_mov_b32               s[s_t], s[s_y]
        s_mov_b32               s[s_t+1], 0
        s_mul_u64               s[s_t:s_t+1], s[s_t:s_t+1], s[s_u:s_u+1]
        s_lshl_b64              s[s_t:s_t+1], s[s_t:s_t+1], 2
        s_add_nc_u64            s[s_c:s_c+1], s[s_c:s_c+1], s[s_t:s_t+1]
        s_lshl_b32              s[s_t], s[s_x], 2
        s_mov_b32               s[s_t+1], 0
        s_add_nc_u64            s[s_c:s_c+1], s[s_c:s_c+1], s[s_t:s_t+1]

// rows = M - 64 y - 32 (wave / 2) - 8 h; ra = ROW_A (32 (wave / 2) + lane % 16) + 16 h
        s_lshr_b32              s[s_t], s[s_wave], 1
        s_lshl_b32              s[s_t], s[s_t], 5                       // 32 (wave / 2)
        v_and_b32               v[v_columns], 15, v[v_lane]
        v_add_nc_u32            v[v_ra], s[s_t], v[v_columns]
        v_mul_u32_u24           v[v_ra], ROW_A, v[v_ra]
        v_lshl_add_u32          v[v_ra], v[v_h], 4, v[v_ra]
        v_lshl_add_u32          v[v_t], v[v_h], 3, s[s_t]               // 32 (wave / 2) + 8 h
        s_sub_co_i32            s[s_t], s[s_m], s[s_y]
        v_sub_nc_u32            v[v_rows], s[s_t], v[v_t]

// columns = N - 64 x - 32 (wave % 2) - lane % 16; c = 4 (row N + column)
        s_and_b32               s[s_wave], s[s_wave], 1
        s_lshl_b32              s[s_wave], s[s_wave], 5                 // 32 (wave % 2)
        v_mul_lo_u32            v[v_c], v[v_t], s[s_n]
        v_add_nc_u32            v[v_columns], s[s_wave], v[v_columns]
        v_add_lshl_u32          v[v_c], v[v_c], v[v_columns], 2
        s_sub_co_i32            s[s_t], s[s_n], s[s_x]
        v_sub_nc_u32            v[v_columns], s[s_t], v[v_columns]

// rb = LDS_B + ROW_B (16 h + lane % 4 + 4 (lane / 8 % 2)) + 32 (wave % 2) + 8 (lane / 4 % 2)
        v_and_b32               v[v_rb], 3, v[v_lane]
        v_bfe_u32               v[v_t], v[v_lane], 3, 1
        v_lshl_add_u32          v[v_rb], v[v_t], 2, v[v_rb]
        v_lshl_add_u32          v[v_rb], v[v_h], 4, v[v_rb]
        v_mul_u32_u24           v[v_rb], ROW_B, v[v_rb]
        v_bfe_u32               v[v_t], v[v_lane], 2, 1
        v_lshl_add_u32          v[v_rb], v[v_t], 3, v[v_rb]
        v_add3_u32              v[v_rb], v[v_rb], s[s_wave], LDS_B
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        v_mov_b32               v[v_acc+\i], 0
        v_mov_b32               v[v_acc+16+\i], 0
        .endr

.Ltile:
        s_wait_tensorcnt        0                                       // the wave's part of the tile
        s_barrier_signal        -1
        s_sub_co_u32            s[s_tiles], s[s_tiles], 1
        s_cmp_lg_u32            s[s_tiles], 0
        s_barrier_wait          -1                                      // all parts; and all have read the other buffer
        s_cbranch_scc0          .Lread
        ADVANCE
        FETCH
.Lread:
        .irp j, 0, 1, 2, 3
        ds_load_b128            v[v_ta0+4*\j:v_ta0+4*\j+3], v[v_ra] offset:32*\j
        .endr
        .irp i, 0, 1, 2, 3
        ds_load_tr8_b64         v[v_tb0+4*\i:v_tb0+4*\i+1], v[v_rb] offset:32*\i*ROW_B
        ds_load_tr8_b64         v[v_tb0+4*\i+2:v_tb0+4*\i+3], v[v_rb] offset:(32*\i+8)*ROW_B
        .endr
        .irp i, 0, 1, 2, 3
        ds_load_tr8_b64         v[v_tb1+4*\i:v_tb1+4*\i+1], v[v_rb] offset:32*\i*ROW_B+16
        ds_load_tr8_b64         v[v_tb1+4*\i+2:v_tb1+4*\i+3], v[v_rb] offset:(32*\i+8)*ROW_B+16
        .endr
        .irp j, 0, 1, 2, 3
        ds_load_b128            v[v_ta1+4*\j:v_ta1+4*\j+3], v[v_ra] offset:16*ROW_A+32*\j
        .endr
        v_xor_b32               v[v_ra], LDS_BUFFER, v[v_ra]
        v_xor_b32               v[v_rb], LDS_BUFFER, v[v_rb]
// acc[i, j] += a[16 i .., :] b[:, 16 j ..]
        s_wait_dscnt            12                                      // ta0, tb0
        v_wmma_f32_16x16x128_fp8_fp8 v[v_acc:v_acc+7], v[v_ta0:v_ta0+15], v[v_tb0:v_tb0+15], v[v_acc:v_acc+7]
        s_wait_dscnt            4                                       // tb1
        v_wmma_f32_16x16x128_fp8_fp8 v[v_acc+8:v_acc+15], v[v_ta0:v_ta0+15], v[v_tb1:v_tb1+15], v[v_acc+8:v_acc+15]
        s_wait_dscnt            0                                       // ta1: the wave has read this buffer
        v_wmma_f32_16x16x128_fp8_fp8 v[v_acc+16:v_acc+23], v[v_ta1:v_ta1+15], v[v_tb0:v_tb0+15], v[v_acc+16:v_acc+23]
        v_wmma_f32_16x16x128_fp8_fp8 v[v_acc+24:v_acc+31], v[v_ta1:v_ta1+15], v[v_tb1:v_tb1+15], v[v_acc+24:v_acc+31]
        s_cmp_lg_u32            s[s_tiles], 0
        s_cbranch_scc1          .Ltile

// c = scale acc, where there is a row and a column. A store whose address faults runs again: neither its address nor
// EXEC changes before that is settled.
        v_cmp_lt_i32            s[s_u], 0, v[v_columns]
        v_cmp_lt_i32            s[s_u+1], 16, v[v_columns]
        v_nop                                                           // acc: 4 VALU instructions after its product
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        v_mul_f32               v[v_acc+16+\i], s[s_scale], v[v_acc+16+\i]
        .endr
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        v_mul_f32               v[v_acc+\i], s[s_scale], v[v_acc+\i]
        .endr
        s_lshl_b32              s[s_t], s[s_n], 2
        .irp r, 0, 1, 2, 3, 4, 5, 6
        v_add_nc_u32            v[v_c+\r+1], s[s_t], v[v_c+\r]
        .endr
        s_mov_b32               s[s_t+1], 0
        s_lshl_b64              s[s_a:s_a+1], s[s_t:s_t+1], 4
        s_add_nc_u64            s[s_a:s_a+1], s[s_a:s_a+1], s[s_c:s_c+1]
.macro STORE_ROW base, i, r
        v_cmp_lt_i32            vcc_lo, 16*\i+\r, v[v_rows]
        s_and_b32               exec_lo, vcc_lo, s[s_u]
        global_store_b32        v[v_c+\r], v[v_acc+16*\i+\r], s[\base:\base+1]
        s_wait_xcnt             0                                       // the store; EXEC may change
        s_and_b32               exec_lo, vcc_lo, s[s_u+1]
        global_store_b32        v[v_c+\r], v[v_acc+16*\i+8+\r], s[\base:\base+1] offset:4*16
.endm
        STORE_ROW s_c, 0, 0
        .irp r, 1, 2, 3, 4, 5, 6, 7
        s_wait_xcnt             0                                       // the store; EXEC may change
        s_mov_b32               exec_lo, -1
        STORE_ROW s_c, 0, \r
        .endr
        .irp r, 0, 1, 2, 3, 4, 5, 6, 7
        s_wait_xcnt             0                                       // the store; EXEC may change
        s_mov_b32               exec_lo, -1
        STORE_ROW s_a, 1, \r
        .endr
        s_endpgm
        KERNEL_END etalon_gemm_e4m3_gfx1250, LDS_SIZE, KA_SIZE

        .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.kernels:
  - { .name: etalon_gemm_e4m3_gfx1250, .symbol: etalon_gemm_e4m3_gfx1250.kd, .kernarg_segment_size: 40,
      .kernarg_segment_align: 8, .max_flat_workgroup_size: 128, .group_segment_fixed_size: 52224,
      .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 56, .vgpr_count: 112 }
...
        .end_amdgpu_metadata
