// Instructions that the simulator must know, as LLVM 22 prints them for gfx950: tests/check_sim_decode.c assembles and
// decodes each. From compiled kernels at -O1 to -O3, from hand-written ones, and forms that exercise the parser.
buffer_atomic_add v0, v1, s[4:7], 0 offen
buffer_atomic_add v0, v1, s[4:7], 0 offen sc0
buffer_inv sc0 sc1
buffer_inv sc1
buffer_load_dword v0, off, s[4:7], m0
buffer_load_dword v0, s[4:7], s8 offen lds
buffer_load_dword v0, v1, s[4:7], 0 idxen offset:4095 sc1
buffer_load_dword v0, v[2:3], s[4:7], 0 idxen offen
buffer_load_dwordx3 v[0:2], v1, s[4:7], 0 offen
buffer_load_dwordx4 off, s[4:7], s8 offset:32 lds
buffer_load_dwordx4 v0, s[4:7], s8 offen lds
buffer_load_dwordx4 v[0:3], v4, s[4:7], s8 offen offset:16
buffer_load_ushort v0, v1, s[4:7], 0 offen
buffer_store_dword v0, off, s[4:7], 0 offset:16
buffer_store_dwordx4 v[0:3], v4, s[4:7], 0 offen
buffer_store_short v0, v1, s[4:7], 0 offen
buffer_wbl2 sc0 sc1
buffer_wbl2 sc1
ds_add_f32 v0, v1
ds_add_rtn_u32 v0, v1, v2
ds_add_u32 v0, v1 offset:4
ds_add_u32 v3, v6
ds_bpermute_b32 v0, v1, v2
ds_bpermute_b32 v2, v2, v1
ds_cmpst_rtn_b32 v0, v1, v2, v3
ds_max_u32 v0, v1
ds_permute_b32 v0, v1, v2
ds_read2_b32 v[0:1], v2 offset0:1 offset1:4
ds_read2_b32 v[4:5], v2 offset1:32
ds_read2_b64 v[0:3], v4 offset0:1 offset1:2
ds_read2st64_b32 v[0:1], v4 offset0:1 offset1:2
ds_read2st64_b32 v[4:5], v2 offset1:2
ds_read_b128 v[0:3], v4 offset:64
ds_read_b32 v2, v4
ds_read_b64 v[0:1], v2
ds_read_b64_tr_b16 v[0:1], v2 offset:512
ds_read_b64_tr_b4 v[0:1], v2
ds_read_b64_tr_b8 a[0:1], v2
ds_read_b64_tr_b8 v[0:1], v2
ds_read_b64_tr_b8 v[0:1], v2 offset:512
ds_read_b96 v[0:2], v4
ds_read_b96_tr_b6 v[0:2], v3
ds_read_i8 v0, v1
ds_read_u16 v0, v1
ds_read_u16_d16 v0, v1
ds_read_u16_d16_hi v0, v1
ds_read_u8 v0, v1
ds_swizzle_b32 v0, v1
ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,"0001p")
ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,"01pip")
ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,8,3)
ds_swizzle_b32 v0, v1 offset:swizzle(FFT,3)
ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,3)
ds_swizzle_b32 v0, v1 offset:swizzle(REVERSE,8)
ds_swizzle_b32 v0, v1 offset:swizzle(ROTATE,0,9)
ds_swizzle_b32 v0, v1 offset:swizzle(ROTATE,1,3)
ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)
ds_swizzle_b32 v9, v8 offset:swizzle(SWAP,4)
ds_write2_b32 v0, v1, v2 offset1:3
ds_write2_b64 v0, v[2:3], v[4:5] offset1:1
ds_write2st64_b32 v0, v1, v2 offset0:2 offset1:6
ds_write_b128 v4, v[0:3] offset:64
ds_write_b16 v0, v1
ds_write_b32 v4, v1
ds_write_b64 v2, v[0:1]
ds_write_b8 v0, v1
ds_write_b96 v4, v[0:2]
flat_atomic_add v0, v[2:3], v4 sc0
flat_load_dword v0, v[2:3] offset:4
flat_load_dword v1, v[2:3]
flat_store_dwordx2 v[0:1], v[2:3]
global_atomic_add v0, v1, s[0:1] sc1
global_atomic_add v0, v1, s[2:3]
global_atomic_add v0, v[2:3], v4, off sc0
global_atomic_add_f32 v0, v[2:3], v4, off sc0 nt sc1
global_atomic_add_f32 v4, v0, s[2:3]
global_atomic_add_f32 v4, v1, s[4:5]
global_atomic_add_f64 v5, v[0:1], s[6:7]
global_atomic_add_x2 v[0:1], v5, v[0:1], s[8:9] offset:72 sc0
global_atomic_cmpswap v0, v4, v[2:3], s[10:11] offset:396 sc0
global_atomic_cmpswap v0, v[2:3], v[4:5], off sc0
global_atomic_or v4, v0, s[10:11]
global_atomic_pk_add_bf16 v4, v0, s[2:3]
global_atomic_smin v4, v0, s[10:11]
global_atomic_swap v2, v4, v1, s[10:11] offset:28 sc0 sc1
global_atomic_swap_x2 v[0:1], v[2:3], v[4:5], off sc0
global_atomic_umax v0, v1, s[0:1] offset:1024
global_atomic_umax_x2 v[0:1], v[2:3], off
global_load_dword a0, v[2:3], off
global_load_dword v0, v[2:3], off offset:-16
global_load_dword v3, v4, s[10:11]
global_load_dword v5, v[2:3], off
global_load_dwordx2 v[8:9], v[6:7], off
global_load_dwordx3 v[0:2], v[4:5], off
global_load_dwordx4 v[0:3], v4, s[2:3] offset:16
global_load_dwordx4 v[0:3], v[0:1], off
global_load_lds_dword v[0:1], off
global_load_lds_dwordx3 v[0:1], off
global_load_lds_dwordx4 v0, s[2:3] offset:16 sc0 nt
global_load_lds_dwordx4 v[0:1], off
global_load_lds_dwordx4 v[0:1], off offset:16
global_load_sbyte v0, v[2:3], off
global_load_short_d16 v0, v[2:3], off
global_load_short_d16_hi v0, v[2:3], off
global_load_sshort v0, v[2:3], off
global_load_ubyte v0, v[2:3], off
global_load_ubyte v3, v[4:5], off
global_load_ubyte v9, v0, s[8:9]
global_load_ubyte_d16 v0, v[2:3], off
global_load_ushort v15, v[4:5], off
global_store_byte v10, v8, s[4:5]
global_store_byte v[2:3], v0, off
global_store_dword v0, v1, s[0:1]
global_store_dword v4, v2, s[10:11] offset:4
global_store_dword v[4:5], v7, off
global_store_dwordx2 v5, v[0:1], s[8:9]
global_store_dwordx2 v[6:7], v[0:1], off
global_store_dwordx3 v[4:5], v[0:2], off
global_store_dwordx4 v4, v[0:3], s[2:3]
global_store_short v[6:7], v3, off
global_store_short_d16_hi v[2:3], v0, off
s_abs_i32 s0, s1
s_add_i32 s9, s9, s8
s_add_u32 s8, s6, s8
s_addc_u32 s1, s1, lit(0xffffffff)
s_addc_u32 s9, s7, s9
s_addk_i32 s0, 0x123
s_and_b32 s7, s4, 63
s_and_b64 s[0:1], exec, s[0:1]
s_and_b64 vcc, exec, s[0:1]
s_and_b64 vcc, exec, vcc
s_and_saveexec_b64 s[4:5], vcc
s_and_saveexec_b64 s[6:7], s[2:3]
s_andn2_b32 s0, s1, s2
s_andn2_b64 exec, exec, s[8:9]
s_andn2_saveexec_b64 s[0:1], s[2:3]
s_andn2_saveexec_b64 s[0:1], s[4:5]
s_ashr_i32 s3, s14, 31
s_ashr_i64 s[0:1], s[2:3], s4
s_barrier
s_bcnt1_i32_b64 s0, s[2:3]
s_bcnt1_i32_b64 s1, vcc
s_bfe_i32 s0, s1, s2
s_bfe_u32 s0, s1, 0x80010
s_bfe_u64 s[0:1], s[2:3], s4
s_bfm_b32 s0, s1, s2
s_bfm_b64 s[0:1], s2, s3
s_bitcmp0_b32 s0, s1
s_bitcmp1_b32 s0, 3
s_bitset1_b32 s0, 3
s_branch 5
s_branch 6
s_brev_b32 s0, s1
s_brev_b32 s5, 8
s_buffer_load_dword s0, s[4:7], 0x10
s_cbranch_execnz 65524
s_cbranch_execz 30
s_cbranch_execz 65535
s_cbranch_scc0 65527
s_cbranch_scc0 65533
s_cbranch_scc1 14
s_cbranch_vccnz 12
s_cbranch_vccnz 5
s_cbranch_vccz 12
s_cmov_b32 s0, s1
s_cmp_eq_u32 s8, 0
s_cmp_eq_u64 s[0:1], s[2:3]
s_cmp_ge_i32 s0, s1
s_cmp_gt_i32 s3, 31
s_cmp_lg_i32 s0, s1
s_cmp_lg_u32 s9, 0
s_cmp_lt_i32 s6, 1
s_cmp_lt_u32 s0, 0xffffffc1
s_cmpk_eq_i32 s0, 0x12
s_cmpk_eq_u32 s0, 0xfff2
s_cmpk_gt_i32 s0, 0x100
s_cmpk_lg_u32 s0, 0x100
s_cmpk_lt_u32 s0, 0x100
s_cselect_b32 s0, s1, s2
s_cselect_b64 s[0:1], -1, 0
s_endpgm
s_ff1_i32_b32 s0, s1
s_ff1_i32_b64 s0, s[2:3]
s_flbit_i32_b32 s0, s1
s_getpc_b64 s[0:1]
s_getreg_b32 s0, hwreg(51, 4, 2)
s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 2)
s_getreg_b32 s0, hwreg(HW_REG_XCC_ID)
s_load_dword s0, s[2:3], -0x10
s_load_dword s0, s[2:3], m0
s_load_dword s0, s[2:3], s4
s_load_dword s0, s[2:3], s4 offset:0x10
s_load_dword s14, s[0:1], 0x10
s_load_dwordx16 s[0:15], s[16:17], 0x40
s_load_dwordx2 s[6:7], s[0:1], 0x8
s_load_dwordx4 s[4:7], s[0:1], 0x0
s_load_dwordx8 s[4:11], s[0:1], 0x0
s_lshl1_add_u32 s0, s1, s2
s_lshl2_add_u32 s0, s1, s2
s_lshl3_add_u32 s0, s1, s2
s_lshl4_add_u32 s0, s1, s2
s_lshl_b32 s3, s3, 1
s_lshl_b64 s[8:9], s[8:9], 2
s_lshr_b32 s8, s8, 1
s_lshr_b64 s[0:1], s[2:3], s4
s_max_u32 s0, s1, s2
s_memrealtime s[0:1]
s_memtime s[0:1]
s_min_i32 s0, s1, s2
s_mov_b32 m0, s0
s_mov_b32 s0, 0x80000000
s_mov_b32 s15, 0xc2aeac50
s_mov_b64 exec, -1
s_mov_b64 s[0:1], 0x12345
s_mov_b64 s[0:1], src_shared_base
s_mov_b64 s[8:9], 0
s_mov_b64 ttmp[0:1], s[2:3]
s_mov_b64 vcc, 0
s_mov_b64 vcc, exec
s_mov_b64 vcc, s[2:3]
s_movk_i32 s0, 0xfffb
s_movk_i32 s8, 0x80
s_movrels_b32 s0, s1
s_mul_hi_i32 s0, s1, s2
s_mul_hi_u32 s0, s1, s2
s_mul_hi_u32 s9, s14, s2
s_mul_i32 s8, s3, s2
s_mulk_i32 s0, 0x10
s_nand_b64 s[0:1], s[2:3], s[4:5]
s_nop 0
s_nop 1
s_nop 7
s_not_b64 s[0:1], s[2:3]
s_or_b32 s0, s1, s2
s_or_b64 exec, exec, s[8:9]
s_or_b64 s[10:11], s[4:5], s[10:11]
s_or_b64 s[8:9], vcc, s[8:9]
s_or_saveexec_b64 s[0:1], s[2:3]
s_orn2_b64 s[6:7], s[0:1], exec
s_pack_ll_b32_b16 s0, s1, s2
s_sendmsg sendmsg(MSG_INTERRUPT)
s_setpc_b64 s[30:31]
s_setprio 1
s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s0
s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3
s_sext_i32_i16 s0, s1
s_sext_i32_i8 s0, s1
s_sleep 1
s_sub_i32 s0, s1, s2
s_sub_i32 s3, 0, s2
s_sub_u32 s0, 0, s2
s_sub_u32 s0, s1, s2
s_subb_u32 s0, s1, s2
s_subb_u32 s1, 0, s3
s_swappc_b64 s[30:31], s[0:1]
s_swappc_b64 s[30:31], s[4:5]
s_waitcnt expcnt(1)
s_waitcnt lgkmcnt(0)
s_waitcnt lgkmcnt(3)
s_waitcnt vmcnt(0)
s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
s_waitcnt vmcnt(0) lgkmcnt(0)
s_waitcnt vmcnt(3) lgkmcnt(0)
s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)
s_wqm_b64 s[0:1], s[2:3]
s_xor_b32 s0, s1, s2
s_xor_b64 s[4:5], exec, s[0:1]
s_xor_saveexec_b64 s[0:1], s[2:3]
scratch_load_dword v0, off, off
scratch_load_dword v0, off, s0 offset:4
scratch_load_dword v0, v1, off
scratch_load_dword v6, off, s0
scratch_load_dwordx4 v[0:3], off, s4
scratch_store_dword off, v0, s7
scratch_store_dword v0, v1, off
scratch_store_dwordx2 off, v[0:1], s5
scratch_store_dwordx4 off, v[0:3], s4
v_accvgpr_mov_b32 a0, a1
v_accvgpr_read_b32 v0, a0
v_accvgpr_write_b32 a0, v0
v_accvgpr_write_b32 a255, 1.0
v_add3_u32 v15, v13, v16, v15
v_add_co_u32_e32 v0, vcc, v1, v2
v_add_co_u32_e32 v10, vcc, v10, v16
v_add_co_u32_e64 v0, s[2:3], v1, v2
v_add_f32_dpp v0, -v1, |v2| row_shr:3 row_mask:0xa bank_mask:0xf
v_add_f32_e32 v0, -4.0, v1
v_add_f32_e32 v0, 0.15915494, v1
v_add_f32_e32 v0, 0x40490fdb, v1
v_add_f32_e32 v8, 0x42800000, v7
v_add_f32_e64 v0, v1, -|v2| div:2
v_add_f32_e64 v0, |v1|, -v2 clamp mul:2
v_add_f32_sdwa v0, v1, -v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:BYTE_3
v_add_f64 v[0:1], v[2:3], 0.5
v_add_f64 v[0:1], v[4:5], v[0:1]
v_add_lshl_u32 v0, v1, v2, v3
v_add_u16_e32 v9, v10, v9
v_add_u16_e64 v0, v1, v2 clamp
v_add_u32_dpp v8, v6, v6 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
v_add_u32_dpp v8, v8, v8 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf bound_ctrl:1
v_add_u32_dpp v8, v8, v8 row_mirror row_mask:0xf bank_mask:0xf bound_ctrl:1
v_add_u32_e32 v4, 0x100, v4
v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:DWORD
v_addc_co_u32_e32 v0, vcc, v1, v2, vcc
v_addc_co_u32_e32 v10, vcc, v11, v17, vcc
v_alignbit_b32 v0, v1, v0, 3
v_alignbit_b32 v0, v1, v2, v3
v_alignbyte_b32 v0, v1, v2, v3
v_and_b32_e32 v0, 0xff, v1
v_and_b32_e32 v2, 0x80000000, v6
v_and_or_b32 v0, v1, v2, v3
v_ashr_pk_i8_i32 v0, v1, v2, v3
v_ashrrev_i16_e32 v11, 2, v8
v_ashrrev_i32_e32 v18, 2, v18
v_ashrrev_i64 v[16:17], 3, v[14:15]
v_bfe_i32 v0, v1, 8, 8
v_bfe_u32 v0, v1, v2, v3
v_bfi_b32 v0, v1, v2, v3
v_bfi_b32 v29, s6, v20, v12
v_bfrev_b32_e32 v0, v1
v_bfrev_b32_e32 v8, v8
v_bitop3_b16 v11, v14, 3, v11 bitop3:0xc8
v_bitop3_b32 v0, v1, v2, v3 bitop3:0xca
v_ceil_f32_e32 v24, v20
v_cmp_class_f32_e32 vcc, v0, v1
v_cmp_class_f32_e64 s[2:3], v15, v24
v_cmp_class_f64_e32 vcc, v[0:1], v2
v_cmp_class_f64_e32 vcc, v[12:13], v1
v_cmp_eq_f32_e64 vcc, |v6|, s4
v_cmp_eq_u32_e32 vcc, s3, v15
v_cmp_eq_u32_e64 s[0:1], s3, v12
v_cmp_ge_f32_e32 vcc, s0, v6
v_cmp_ge_f32_e64 s[0:1], |v17|, 0.5
v_cmp_ge_i16_e32 vcc, v8, v9
v_cmp_ge_u32_e32 vcc, v16, v15
v_cmp_gt_f32_e32 vcc, s15, v7
v_cmp_gt_f32_e64 s[0:1], s3, v20
v_cmp_gt_f64_e32 vcc, s[0:1], v[4:5]
v_cmp_gt_f64_e64 s[4:5], s[4:5], v[6:7]
v_cmp_gt_i32_e32 vcc, s14, v0
v_cmp_gt_u32_e32 vcc, s8, v0
v_cmp_gt_u32_e64 s[0:1], s0, v0
v_cmp_gt_u64_e32 vcc, v[0:1], v[2:3]
v_cmp_gt_u64_e64 s[0:1], s[2:3], v[2:3]
v_cmp_le_i32_e32 vcc, s14, v4
v_cmp_le_i32_e64 s[4:5], s14, v6
v_cmp_le_u32_e32 vcc, s3, v15
v_cmp_le_u32_e64 s[0:1], s3, v12
v_cmp_lt_f32_e32 vcc, v0, v1
v_cmp_lt_f32_e64 s[0:1], |v14|, s10
v_cmp_lt_f32_e64 s[2:3], v0, v1
v_cmp_lt_f32_sdwa vcc, v0, v1 src0_sel:BYTE_0 src1_sel:DWORD
v_cmp_lt_i16_e32 vcc, v0, v1
v_cmp_lt_i32_e32 vcc, 3, v8
v_cmp_lt_i64_e32 vcc, v[14:15], v[12:13]
v_cmp_lt_u32_e64 s[0:1], s0, v3
v_cmp_lt_u64_e32 vcc, v[0:1], v[2:3]
v_cmp_ne_u16_e64 s[2:3], 0, v11
v_cmp_ne_u32_e32 vcc, 0, v15
v_cmp_ne_u32_e64 s[0:1], 0, v19
v_cmp_ne_u64_e32 vcc, 0, v[12:13]
v_cmp_nge_f32_e64 s[0:1], |v6|, s10
v_cmp_ngt_f32_e32 vcc, s14, v8
v_cmp_ngt_f32_e64 s[2:3], |v6|, s4
v_cmp_nle_f32_e32 vcc, v0, v1
v_cmp_nlt_f32_e32 vcc, s15, v8
v_cmp_nlt_f32_e64 s[16:17], s34, v8
v_cmp_o_f32_e32 vcc, v0, v1
v_cmp_t_u32_e32 vcc, v0, v1
v_cmp_u_f32_e64 s[2:3], v14, v14
v_cmpx_eq_f32_e32 vcc, v0, v1
v_cmpx_gt_u32_e64 s[0:1], v0, v1
v_cmpx_lt_u32_e32 vcc, v0, v1
v_cndmask_b32_e32 v0, v1, v2, vcc
v_cndmask_b32_e32 v7, v7, v8, vcc
v_cndmask_b32_e64 v0, v1, v2, s[4:5]
v_cndmask_b32_e64 v16, 0, -1, s[0:1]
v_cndmask_b32_e64 v17, 0, -1, vcc
v_cos_f32_e32 v0, v1
v_cos_f32_e32 v1, v1
v_cvt_f16_f32_e32 v0, v1
v_cvt_f16_f32_e32 v8, s0
v_cvt_f32_bf8_e32 v0, v1
v_cvt_f32_bf8_sdwa v16, v16 src0_sel:BYTE_3
v_cvt_f32_f16_sdwa v0, |v1| dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1
v_cvt_f32_f64_e32 v0, 0x40080000
v_cvt_f32_f64_e32 v0, v[2:3]
v_cvt_f32_fp8_e32 v0, v1
v_cvt_f32_fp8_sdwa v0, v1 src0_sel:BYTE_1
v_cvt_f32_fp8_sdwa v7, v7 src0_sel:BYTE_2
v_cvt_f32_i32_e32 v9, v8
v_cvt_f32_u32_e32 v17, v15
v_cvt_f32_ubyte0_e32 v0, v1
v_cvt_f32_ubyte3_e32 v0, v1
v_cvt_f64_f32_e32 v[0:1], v2
v_cvt_f64_i32_e32 v[8:9], v1
v_cvt_f64_u32_e32 v[0:1], v0
v_cvt_i32_f32_e32 v11, v11
v_cvt_i32_f64_e32 v1, v[8:9]
v_cvt_pk_bf16_f32 v0, v1, v2
v_cvt_pk_bf16_f32 v3, v10, s0
v_cvt_pk_bf8_f32 v0, v1, v2
v_cvt_pk_bf8_f32 v0, v1, v2 op_sel:[0,0,1]
v_cvt_pk_f16_f32 v0, v1, v2
v_cvt_pk_f32_bf8_e32 v[0:1], v2
v_cvt_pk_f32_fp8_e32 v[0:1], v2
v_cvt_pk_f32_fp8_e32 v[8:9], v7
v_cvt_pk_f32_fp8_sdwa v[0:1], v2 src0_sel:WORD_1
v_cvt_pk_f32_fp8_sdwa v[10:11], v7 src0_sel:WORD_1
v_cvt_pk_fp8_f32 v0, v1, v2
v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]
v_cvt_pk_fp8_f32 v16, v1, v2
v_cvt_pk_fp8_f32 v16, v14, v11 op_sel:[0,0,1]
v_cvt_pkrtz_f16_f32 v0, v1, v2
v_cvt_scalef32_f32_fp8 v0, v2, v3
v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[32:37], v40
v_cvt_scalef32_pk_bf16_fp8 v0, v2, v3
v_cvt_scalef32_pk_bf8_f32 v0, v1, v2, v3
v_cvt_scalef32_pk_f16_fp8 v0, v2, v3
v_cvt_scalef32_pk_f32_bf8 v[0:1], v2, v3 op_sel:[1,0,0]
v_cvt_scalef32_pk_f32_fp4 v[0:1], v2, v3
v_cvt_scalef32_pk_f32_fp8 v[0:1], v2, v3
v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3
v_cvt_scalef32_pk_fp8_bf16 v0, v1, v2
v_cvt_scalef32_pk_fp8_f16 v0, v1, v2
v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3
v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 op_sel:[0,0,0,1]
v_cvt_scalef32_sr_fp8_f32 v0, v1, v2, v3
v_cvt_sr_bf8_f32 v0, v1, v2
v_cvt_sr_fp8_f32 v0, v1, v2
v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,1,1]
v_cvt_u32_f32_e32 v17, v17
v_div_fixup_f32 v22, v22, s7, v20
v_div_fixup_f64 v[0:1], v[2:3], v[4:5], v[6:7]
v_div_fixup_f64 v[6:7], v[6:7], v[10:11], v[14:15]
v_div_fmas_f32 v0, v1, v2, v3
v_div_fmas_f32 v22, v22, v32, v37
v_div_fmas_f64 v[0:1], v[2:3], v[4:5], v[6:7]
v_div_fmas_f64 v[6:7], v[6:7], v[18:19], v[12:13]
v_div_scale_f32 v0, vcc, v1, v2, v3
v_div_scale_f32 v11, vcc, v8, v6, v8
v_div_scale_f32 v27, s[2:3], s7, s7, v20
v_div_scale_f64 v[0:1], vcc, v[2:3], v[4:5], v[6:7]
v_div_scale_f64 v[16:17], s[0:1], v[10:11], v[10:11], v[14:15]
v_div_scale_f64 v[6:7], vcc, v[14:15], v[10:11], v[14:15]
v_dot2_f32_bf16 v0, v1, v2, v3
v_dot2_f32_f16 v0, v1, v2, v3
v_dot2c_f32_bf16_e32 v0, v1, v2
v_dot4_i32_i8 v0, v1, v2, v3
v_exp_f32_e32 v0, v1
v_exp_f32_e32 v7, v7
v_ffbh_u32_e32 v0, v1
v_ffbh_u32_e32 v11, v11
v_ffbl_b32_e32 v0, v1
v_floor_f32_e32 v23, v20
v_floor_f64_e32 v[4:5], v[6:7]
v_fma_f16 v0, v1, v2, v3 op_sel:[0,0,0,1]
v_fma_f16 v2, v15, v8, v2
v_fma_f32 v17, -v27, v32, 1.0
v_fma_f64 v[18:19], -v[14:15], v[16:17], 0.5
v_fma_mix_f32 v0, v1, -v2, |v3|
v_fma_mixlo_f16 v0, v1, v2, v3
v_fmaak_f32 v0, v1, v2, 0x3f800000
v_fmac_f32_e32 v32, v17, v32
v_fmac_f64_e32 v[0:1], v[2:3], v[4:5]
v_fmac_f64_e32 v[16:17], v[16:17], v[18:19]
v_fmamk_f32 v0, v1, 0x3f800001, v2
v_fmamk_f32 v10, v12, 0x4f800000, v10
v_fract_f32_e32 v0, v1
v_frexp_exp_i32_f32_e32 v0, v1
v_frexp_exp_i32_f32_e32 v7, v6
v_frexp_mant_f32_e32 v0, v1
v_frexp_mant_f32_e64 v3, |v6|
v_ldexp_f32 v19, v20, v15
v_ldexp_f64 v[0:1], v[2:3], v4
v_ldexp_f64 v[12:13], v[6:7], v12
v_log_f32_e32 v19, v19
v_lshl_add_u32 v1, s8, 2, v4
v_lshl_add_u64 v[0:1], v[2:3], 2, v[4:5]
v_lshl_add_u64 v[2:3], s[8:9], 0, v[2:3]
v_lshl_or_b32 v0, v1, v2, v3
v_lshlrev_b16_e32 v9, 3, v9
v_lshlrev_b16_e64 v0, 8, v1
v_lshlrev_b32_e32 v2, 2, v0
v_lshlrev_b64 v[4:5], 2, v[10:11]
v_lshrrev_b32_e32 v20, 31, v18
v_mad_i64_i32 v[0:1], vcc, v2, v3, v[4:5]
v_mad_u16 v0, v1, v2, v3 op_sel:[1,0,0,1]
v_mad_u32_u24 v0, v1, v2, v3
v_mad_u64_u32 v[0:1], s[2:3], v2, v3, v[4:5]
v_mad_u64_u32 v[12:13], s[0:1], v8, s6, 0
v_max3_f32 v0, v1, v2, v3
v_max_f32_e32 v1, v1, v5
v_max_f32_e64 v0, -1.0, |v1| mul:4
v_max_f32_e64 v0, -|v1|, 1.0
v_max_i32_e32 v15, v17, v15
v_maximum3_f32 v0, v1, v2, v3
v_mbcnt_hi_u32_b32 v0, -1, v0
v_mbcnt_lo_u32_b32 v0, -1, 0
v_med3_f32 v0, v1, v2, v3
v_med3_f32 v10, v6, 1.0, 2.0
v_med3_i32 v0, v1, v2, v3
v_mfma_f32_16x16x128_f8f6f4 a[0:3], v[8:15], v[16:23], a[0:3]
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:11], v[16:19], v[0:3] cbsz:4 blgp:4
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:13], v[16:21], v[0:3] cbsz:2 blgp:3
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:19], v[0:3] blgp:4
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3]
v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[8:9], v[0:3]
v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[8:9], v[0:3] cbsz:1 abid:1 blgp:3
v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]
v_mfma_f32_16x16x32_bf8_fp8 v[0:3], v[4:5], v[6:7], v[0:3]
v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]
v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[4:5], v[6:7], v[0:3]
v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3]
v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[20:23], v[0:15]
v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]
v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[16:17], v[18:19], v[0:15]
v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]
v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], 0
v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15]
v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15] cbsz:1 blgp:1
v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[20:21], v[0:15]
v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], v[0:3]
v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7]
v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7] neg:[1,0,0]
v_mfma_i32_16x16x64_i8 v[0:3], v[4:7], v[8:11], v[0:3]
v_mfma_i32_32x32x32_i8 a[0:15], v[16:19], v[20:23], a[0:15]
v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], a[8:15], v[16:23], a[0:3], v24, v25 op_sel_hi:[0,0,0]
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[8:11], v[16:19], v[0:3], v24, v25 op_sel:[1,1,0] op_sel_hi:[1,1,0] cbsz:4 blgp:4
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3], v24, v25 op_sel:[1,0,0] op_sel_hi:[0,1,0]
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3], v24, v25 op_sel_hi:[0,0,0]
v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15], v32, v33 op_sel_hi:[0,0,0]
v_min3_u32 v0, v1, v2, v3
v_min_f32_e32 v0, v1, v2
v_min_f32_e32 v1, 0x43e00000, v1
v_minimum3_f32 v0, v1, v2, v3
v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 row_bcast:15 row_mask:0xa bank_mask:0xf
v_mov_b32_dpp v0, v1 row_bcast:31 row_mask:0xa bank_mask:0xf
v_mov_b32_dpp v0, v1 row_half_mirror row_mask:0xa bank_mask:0xf
v_mov_b32_dpp v0, v1 row_mirror row_mask:0xa bank_mask:0xf
v_mov_b32_dpp v0, v1 row_newbcast:3 row_mask:0xa bank_mask:0xf
v_mov_b32_dpp v0, v1 row_ror:4 row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
v_mov_b32_dpp v0, v1 wave_rol:1 row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 wave_ror:1 row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 wave_shl:1 row_mask:0xa bank_mask:0xf
v_mov_b32_dpp v0, v1 wave_shr:1 row_mask:0xf bank_mask:0xf
v_mov_b32_e32 v0, exec_hi
v_mov_b32_e32 v0, src_execz
v_mov_b32_e32 v0, src_private_limit
v_mov_b32_e32 v0, src_scc
v_mov_b32_e32 v0, src_shared_base
v_mov_b32_e32 v0, src_shared_limit
v_mov_b32_e32 v0, src_vccz
v_mov_b32_e32 v0, ttmp3
v_mov_b32_e32 v0, v255
v_mov_b32_e32 v0, vcc_lo
v_mov_b32_e32 v1, 0xff800000
v_mov_b64_e32 v[0:1], 3
v_mov_b64_e32 v[0:1], v[2:3]
v_mul_f32_dpp v0, v1, v2 quad_perm:[0,0,2,2] row_mask:0xf bank_mask:0xf bound_ctrl:1
v_mul_f32_e32 v7, 0x3fb8aa3b, v7
v_mul_f64 v[16:17], v[12:13], v[14:15]
v_mul_hi_i32 v18, v14, s6
v_mul_hi_u32 v18, v17, v18
v_mul_lo_u16_e32 v10, v10, v8
v_mul_lo_u32 v18, v18, 7
v_mul_u32_u24_e32 v0, v1, v2
v_nop
v_not_b32_e32 v0, v1
v_not_b32_e32 v16, 63
v_or3_b32 v0, v1, v2, v3
v_or_b32_e32 v13, s3, v9
v_or_b32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_SEXT src0_sel:BYTE_0 src1_sel:WORD_0
v_perm_b32 v0, v1, v2, s3
v_permlane16_swap_b32_e32 v0, v1
v_permlane16_swap_b32_e64 v0, v1
v_permlane32_swap_b32_e32 v0, v1
v_pk_add_f16 v0, v1, 1.0
v_pk_add_f32 v[0:1], v[2:3], v[4:5]
v_pk_add_f32 v[14:15], v[18:19], v[4:5] neg_lo:[0,1] neg_hi:[0,1]
v_pk_add_f32 v[8:9], v[14:15], v[8:9]
v_pk_add_u16 v0, v1, 1
v_pk_fma_f16 v0, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,0,1] neg_lo:[1,0,0] neg_hi:[0,0,1] clamp
v_pk_fma_f16 v2, v3, v2, v4
v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel_hi:[1,0,1]
v_pk_fma_f32 v[8:9], v[14:15], v[8:9], v[10:11]
v_pk_mad_i16 v0, v1, v2, v3
v_pk_mad_u16 v10, v11, v10, v12
v_pk_max_f16 v0, v1, v2
v_pk_maximum3_f16 v0, v1, v2, v3
v_pk_minimum3_f16 v0, v1, v2, v3
v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]
v_pk_mul_f32 v[0:1], v[2:3], v[4:5]
v_pk_mul_f32 v[10:11], v[12:13], v[10:11]
v_pk_mul_lo_u16 v0, v1, v2
v_prng_b32_e32 v0, v1
v_rcp_f32_e32 v6, v2
v_rcp_f64_e32 v[0:1], v[2:3]
v_rcp_f64_e32 v[14:15], v[8:9]
v_rcp_iflag_f32_e32 v17, v17
v_readfirstlane_b32 s0, v0
v_readfirstlane_b32 s6, v12
v_readlane_b32 s0, v1, s2
v_readlane_b32 s1, v8, 3
v_readlane_b32 vcc_lo, v1, 3
v_rndne_f32_e32 v26, v20
v_rsq_f32_e32 v0, v1
v_rsq_f32_e64 v0, |s1|
v_rsq_f64_e32 v[14:15], v[12:13]
v_sad_u32 v0, v1, v2, v3
v_sin_f32_e32 v30, v1
v_sqrt_f32_e32 v22, v20
v_sqrt_f64_e32 v[0:1], v[2:3]
v_sub_co_u32_e32 v18, vcc, v8, v12
v_sub_f32_e32 v7, v7, v1
v_sub_u16_e32 v10, v10, v11
v_sub_u32_e32 v17, 0, v15
v_subb_co_u32_e32 v0, vcc, v1, v2, vcc
v_subb_co_u32_e32 v15, vcc, v9, v15, vcc
v_subb_co_u32_e64 v12, s[0:1], v13, v16, vcc
v_subbrev_co_u32_e64 v12, s[0:1], 0, v12, s[0:1]
v_subrev_co_u32_e32 v0, vcc, v1, v2
v_subrev_co_u32_e64 v13, s[0:1], s2, v18
v_subrev_f32_e32 v0, v1, v2
v_subrev_u32_e32 v0, v1, v2
v_subrev_u32_e32 v13, s2, v11
v_swap_b32 v0, v1
v_trunc_f32_e32 v12, v12
v_trunc_f64_e32 v[6:7], v[6:7]
v_trunc_f64_e64 v[4:5], |v[4:5]|
v_writelane_b32 v0, 3, 4
v_writelane_b32 v0, s1, m0
v_xad_u32 v8, v0, -1, s33
v_xor_b32_e32 v10, v14, v15
