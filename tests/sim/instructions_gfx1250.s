// Instructions that the simulator must know, as LLVM 22 prints them for gfx1250: tests/check_sim_decode.c assembles and
// decodes each. From compiled kernels at -O1 to -O3, from hand-written ones, and forms that exercise the parser.
buffer_atomic_add_u32 v0, v1, s[4:7], null offen
buffer_atomic_add_u32 v0, v1, s[4:7], null offen th:TH_ATOMIC_RETURN
buffer_load_b128 v[0:3], v4, s[4:7], s8 offen
buffer_load_b32 v0, off, s[4:7], m0
buffer_load_b32 v0, v1, s[4:7], null offen
buffer_load_b32 v0, v[2:3], s[4:7], m0 idxen offen
buffer_load_u16 v0, v1, s[4:7], null offen
buffer_store_b32 v0, off, s[4:7], null offset:16
cluster_load_async_to_lds_b128 v0, v2, s[4:5]
cluster_load_b128 v[0:3], v4, s[4:5]
ds_add_f32 v0, v1
ds_add_rtn_u32 v0, v1, v2
ds_add_u32 v0, v1 offset:4
ds_add_u32 v6, v3
ds_atomic_async_barrier_arrive_b64 v0
ds_atomic_async_barrier_arrive_b64 v0 offset:8
ds_atomic_barrier_arrive_rtn_b64 v[0:1], v2, v[4:5]
ds_atomic_barrier_arrive_rtn_b64 v[0:1], v2, v[4:5] offset:8
ds_bpermute_b32 v0, v1, v2
ds_bpermute_b32 v1, v1, v3
ds_cmpstore_rtn_b32 v0, v1, v2, v3
ds_load_2addr_b32 v[0:1], v2 offset0:1 offset1:4
ds_load_2addr_b32 v[4:5], v2 offset1:32
ds_load_2addr_stride64_b32 v[0:1], v2 offset0:1 offset1:4
ds_load_2addr_stride64_b32 v[4:5], v2 offset1:2
ds_load_b128 v[0:3], v4 offset:64
ds_load_b32 v2, v6
ds_load_b64 v[0:1], v2
ds_load_b96 v[0:2], v4
ds_load_tr16_b128 v[0:3], v4 offset:64
ds_load_tr4_b64 v[0:1], v2
ds_load_tr6_b96 v[0:2], v4
ds_load_tr8_b64 v[0:1], v2
ds_load_tr8_b64 v[0:1], v2 offset:64
ds_load_u16_d16 v0, v1
ds_load_u8 v0, v1
ds_max_u32 v0, v1
ds_permute_b32 v0, v1, v2
ds_store_2addr_b64 v0, v[2:3], v[4:5] offset1:1
ds_store_2addr_stride64_b32 v0, v1, v2 offset0:2 offset1:6
ds_store_b128 v4, v[0:3]
ds_store_b16 v0, v1
ds_store_b32 v6, v1
ds_store_b64 v2, v[0:1]
ds_store_b8 v0, v1
ds_store_b96 v4, v[0:2]
ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,3)
ds_swizzle_b32 v3, v2 offset:swizzle(SWAP,4)
flat_atomic_add_u32 v0, v[2:3], v4 th:TH_ATOMIC_RETURN
flat_load_b32 v0, v2, s[2:3] offset:4 scale_offset
flat_load_b32 v0, v[2:3] offset:4
flat_load_b32 v1, v[2:3]
flat_store_b64 v[0:1], v[2:3]
global_atomic_add_f32 v0, v1, s[4:5] scale_offset scope:SCOPE_DEV
global_atomic_add_f64 v0, v[2:3], s[6:7] scale_offset scope:SCOPE_DEV
global_atomic_add_u32 v0, v1, s[0:1] scale_offset scope:SCOPE_SYS
global_atomic_add_u32 v0, v[2:3], v4, off th:TH_ATOMIC_NT_RETURN
global_atomic_add_u32 v0, v[2:3], v4, off th:TH_ATOMIC_RETURN
global_atomic_add_u32 v0, v[2:3], v4, off th:TH_ATOMIC_RETURN scope:SCOPE_DEV
global_atomic_add_u32 v[2:3], v4, off scope:SCOPE_SYS
global_atomic_add_u64 v[2:3], v0, v[2:3], s[8:9] offset:72 scale_offset th:TH_ATOMIC_RETURN scope:SCOPE_DEV
global_atomic_cmpswap_b32 v0, v[2:3], v[4:5], off th:TH_ATOMIC_RETURN
global_atomic_cmpswap_b32 v1, v0, v[4:5], s[10:11] offset:396 scale_offset th:TH_ATOMIC_RETURN scope:SCOPE_DEV
global_atomic_max_u32 v0, v1, s[0:1] offset:1024 scale_offset scope:SCOPE_DEV
global_atomic_max_u64 v[0:1], v[2:3], off
global_atomic_min_i32 v0, v4, s[10:11] scale_offset scope:SCOPE_DEV
global_atomic_or_b32 v0, v4, s[10:11] scale_offset scope:SCOPE_DEV
global_atomic_pk_add_bf16 v[0:1], v2, off
global_atomic_swap_b32 v1, v0, v2, s[10:11] offset:28 scale_offset th:TH_ATOMIC_RETURN scope:SCOPE_SYS
global_inv scope:SCOPE_DEV
global_inv scope:SCOPE_SYS
global_load_async_to_lds_b128 v0, v2, s[4:5] offset:64
global_load_async_to_lds_b128 v0, v2, s[4:5] offset:64 th:TH_LOAD_NT scope:SCOPE_DEV
global_load_async_to_lds_b128 v0, v[2:3], off
global_load_async_to_lds_b128 v0, v[2:3], off offset:64
global_load_async_to_lds_b32 v0, v2, s[4:5]
global_load_async_to_lds_b64 v0, v2, s[4:5]
global_load_async_to_lds_b8 v0, v2, s[4:5]
global_load_async_to_lds_b8 v0, v[2:3], off
global_load_b128 v[0:3], v4, s[2:3] offset:16
global_load_b128 v[0:3], v4, s[2:3] offset:16 scale_offset
global_load_b128 v[0:3], v[0:1], off
global_load_b32 v0, v[2:3], off offset:-16 th:TH_LOAD_LU
global_load_b32 v0, v[2:3], off offset:-8388608 nv
global_load_b32 v3, v2, s[8:9] scale_offset
global_load_b32 v5, v[2:3], off
global_load_b64 v[0:1], v2, s[10:11] scale_offset
global_load_b64 v[12:13], v[10:11], off
global_load_b96 v[0:2], v[4:5], off
global_load_d16_b16 v0, v[2:3], off
global_load_d16_hi_b16 v0, v[2:3], off
global_load_i8 v0, v[2:3], off
global_load_tr16_b128 v[0:3], v[4:5], off
global_load_tr8_b64 v[0:1], v[2:3], off
global_load_u16 v6, v0, s[4:5] scale_offset
global_load_u16 v6, v[8:9], off
global_load_u8 v0, v[2:3], off
global_load_u8 v3, v0, s[2:3]
global_load_u8 v6, v[4:5], off
global_prefetch_b8 v[0:1], off
global_store_async_from_lds_b128 v2, v0, s[4:5]
global_store_async_from_lds_b128 v[2:3], v0, off offset:64
global_store_b128 v4, v[0:3], s[2:3]
global_store_b16 v2, v1, s[4:5] scale_offset
global_store_b32 v0, v1, s[10:11] offset:4 scale_offset
global_store_b32 v2, v12, s[4:5] scale_offset
global_store_b32 v[2:3], v0, off th:TH_STORE_BYPASS scope:SCOPE_SYS
global_store_b32 v[4:5], v7, off
global_store_b64 v18, v[0:1], s[2:3] scale_offset
global_store_b64 v[2:3], v[0:1], off
global_store_b8 v3, v1, s[4:5]
global_store_b8 v[2:3], v0, off
global_store_d16_hi_b16 v[2:3], v0, off
global_wb scope:SCOPE_DEV
global_wb scope:SCOPE_SYS
global_wbinv scope:SCOPE_SYS
s_add_co_ci_u32 s0, s1, s2
s_add_co_ci_u32 s0, s21, s13
s_add_co_i32 s2, s2, 1
s_add_co_u32 s0, s20, s22
s_add_f32 s0, s1, s2
s_add_nc_u64 s[0:1], s[2:3], s[4:5]
s_add_nc_u64 s[10:11], s[4:5], s[10:11]
s_add_pc_i64 s[0:1]
s_addk_co_i32 s0, 0x123
s_and_b32 s3, ttmp6, 15
s_and_b64 s[16:17], s[14:15], s[16:17]
s_and_not1_b32 exec_lo, exec_lo, s9
s_and_not1_b64 s[0:1], s[2:3], s[4:5]
s_and_not1_saveexec_b32 s0, s1
s_and_not1_saveexec_b32 s2, s2
s_and_saveexec_b32 s0, vcc_lo
s_ashr_i32 s7, s6, 31
s_barrier_init 1
s_barrier_init m0
s_barrier_join 1
s_barrier_join m0
s_barrier_leave
s_barrier_signal -1
s_barrier_signal -3
s_barrier_signal 3
s_barrier_signal m0
s_barrier_signal_isfirst -1
s_barrier_wait 0xfffd
s_barrier_wait 0xffff
s_barrier_wait 3
s_bcnt1_i32_b32 s0, s1
s_bcnt1_i32_b32 s0, vcc_lo
s_bfe_u32 s2, ttmp6, 0x4000c
s_bfm_b32 s0, s1, s2
s_bitcmp1_b32 s0, 3
s_branch 5
s_branch 8
s_brev_b32 s0, s1
s_buffer_load_b32 s0, s[4:7], 0x10
s_cbranch_execnz 65521
s_cbranch_execz 25
s_cbranch_scc0 65525
s_cbranch_scc1 15
s_cbranch_vccnz 9
s_cbranch_vccz 12
s_ceil_f32 s0, s1
s_clause 0x2
s_clause 0x3
s_clz_i32_u32 s0, s1
s_cmov_b32 s0, s1
s_cmp_eq_u32 s7, 0
s_cmp_eq_u64 s[0:1], s[2:3]
s_cmp_ge_i32 s0, s1
s_cmp_gt_i32 s2, 31
s_cmp_lg_u32 s9, 0
s_cmp_lt_f32 s0, s1
s_cmp_lt_i32 s2, 1
s_cmp_lt_u32 s3, 0xffffffc1
s_cselect_b32 s8, ttmp9, s3
s_ctz_i32_b32 s0, s1
s_cvt_f16_f32 s0, s0
s_cvt_f32_i32 s0, s1
s_cvt_f32_u32 s0, s1
s_cvt_f32_u32 s0, s2
s_cvt_i32_f32 s0, s1
s_cvt_u32_f32 s0, s1
s_cvt_u32_f32 s15, s13
s_delay_alu instid0(SALU_CYCLE_1)
s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(TRANS32_DEP_1)
s_endpgm
s_fmaak_f32 s0, s1, s2, 0x3f800000
s_fmac_f32 s0, s1, s2
s_fmac_f32 s0, s13, 0x4f800000
s_get_barrier_state s0, -1
s_get_barrier_state s0, 3
s_get_barrier_state s0, m0
s_get_pc_i64 s[0:1]
s_get_pc_i64 s[4:5]
s_get_shader_cycles_u64 s[0:1]
s_getreg_b32 s0, hwreg(HW_REG_IB_STS2, 6, 4)
s_getreg_b32 s0, hwreg(HW_REG_WAVE_HW_ID1)
s_getreg_b32 s7, hwreg(HW_REG_IB_STS2, 6, 4)
s_load_b128 s[4:7], s[0:1], 0x0
s_load_b256 s[4:11], s[0:1], 0x0
s_load_b32 s0, s[2:3], -0x10
s_load_b32 s0, s[2:3], 0x0
s_load_b32 s0, s[2:3], 0x0 scale_offset
s_load_b32 s0, s[2:3], s4 offset:0x10
s_load_b32 s0, s[2:3], s4 offset:0x10 scale_offset th:TH_LOAD_NT
s_load_b32 s2, s[0:1], 0x10
s_load_b512 s[0:15], s[16:17], 0x40
s_load_b64 s[0:1], s[0:1], 0x0
s_load_b96 s[0:2], s[4:5], 0x0
s_load_b96 s[4:6], s[0:1], 0x8
s_load_u8 s0, s[2:3], 0x0
s_lshl_b32 s2, s2, 1
s_lshl_b64 s[10:11], s[2:3], 2
s_lshr_b32 s7, s7, 1
s_lshr_b64 s[0:1], s[2:3], s4
s_max_num_f32 s0, s1, s2
s_max_u32 s0, s1, s2
s_min_i32 s0, s1, s2
s_monitor_sleep 1
s_mov_b32 null, s0
s_mov_b32 s0, lit(0x0)
s_mov_b32 s0, ttmp9
s_mov_b32 s9, 0
s_mov_b64 s[0:1], 0x123456789abcdef0
s_mov_b64 s[0:1], lit64(0x0)
s_mov_b64 s[0:1], src_shared_base
s_mov_b64 s[16:17], lit64(0xffffffff)
s_mov_b64 s[4:5], s[0:1]
s_movk_i32 s0, 0xfffb
s_movk_i32 s7, 0x80
s_mul_f32 s0, s0, 0x5f7ffffc
s_mul_f32 s0, s1, s2
s_mul_hi_u32 s0, s1, s2
s_mul_hi_u32 s21, s14, s19
s_mul_i32 s2, ttmp9, s2
s_mul_u64 s[0:1], s[2:3], s[4:5]
s_mul_u64 s[2:3], s[6:7], s[8:9]
s_mulk_i32 s0, 0x10
s_nop 0
s_or_b32 s9, vcc_lo, s9
s_or_b64 s[0:1], s[2:3], s[4:5]
s_or_not1_b32 s3, s0, exec_lo
s_or_saveexec_b32 s0, s12
s_pack_ll_b32_b16 s0, s1, s2
s_prefetch_data s[0:1], 0x0, s2, 1
s_prefetch_data_pc_rel 0x0, s2, 1
s_prefetch_inst s[0:1], 0x0, s2, 1
s_prefetch_inst_pc_rel 0x0, null, 1
s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_REALTIME)
s_set_pc_i64 s[0:1]
s_set_pc_i64 s[30:31]
s_set_vgpr_msb 0x4100
s_set_vgpr_msb 0x44
s_set_vgpr_msb 0xff
s_set_vgpr_msb 1
s_setprio 1
s_setprio_inc_wg 3
s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), s0
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 4, 4), 15
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2
s_sext_i32_i16 s0, s1
s_sleep 3
s_sleep_var s0
s_sub_co_ci_u32 s0, s1, s2
s_sub_co_i32 s0, s1, s2
s_sub_co_i32 s1, 0, s2
s_sub_co_u32 s0, s1, s2
s_sub_nc_u64 s[0:1], s[2:3], s[4:5]
s_sub_nc_u64 s[16:17], 0, s[2:3]
s_trunc_f32 s13, s13
s_wait_alu 0xfffe
s_wait_alu depctr_sa_sdst(0)
s_wait_alu depctr_va_vdst(0)
s_wait_asynccnt 0x0
s_wait_dscnt 0x0
s_wait_kmcnt 0x0
s_wait_loadcnt 0x0
s_wait_loadcnt 0x3
s_wait_loadcnt 0x3f
s_wait_loadcnt_dscnt 0x0
s_wait_storecnt 0x0
s_wait_storecnt_dscnt 0x0
s_wait_tensorcnt 0x0
s_wait_xcnt 0x0
s_wakeup_barrier 1
s_wakeup_barrier m0
s_xor_b32 s12, exec_lo, s0
s_xor_saveexec_b32 s0, s1
scratch_load_b128 v[0:3], off, off offset:16
scratch_load_b32 v0, off, off
scratch_load_b32 v0, off, s0 offset:4
scratch_load_b32 v0, v1, s0 offset:4
scratch_load_b32 v8, off, s7
scratch_store_b128 off, v[0:3], s4
scratch_store_b32 off, v0, s7
scratch_store_b64 off, v[0:1], s6
tensor_load_to_lds s[0:3], s[4:11]
tensor_load_to_lds s[0:3], s[4:11] th:TH_LOAD_NT scope:SCOPE_DEV
tensor_load_to_lds s[0:3], s[4:11], s[12:15], s[16:19]
tensor_store_from_lds s[0:3], s[4:11]
tensor_store_from_lds s[0:3], s[4:11], s[12:15], s[16:19]
v_add3_u32 v2, s1, s0, v2
v_add_co_ci_u32_e32 v0, vcc_lo, v1, v2, vcc_lo
v_add_co_ci_u32_e32 v14, vcc_lo, v7, v11, vcc_lo
v_add_co_u32 v0, vcc_lo, v1, v2
v_add_co_u32 v6, vcc_lo, v6, v10
v_add_f16_e32 v0.l, v1.l, v2.l
v_add_f32_dpp v0, v1, v2 row_ror:8 row_mask:0xf bank_mask:0xf bound_ctrl:1
v_add_f32_e32 v0, v1, v2
v_add_f32_e32 v8, 0x42800000, v7
v_add_f32_e64 v0, |v1|, -v2 clamp mul:2
v_add_f32_e64_dpp v0, |v1|, -v2 clamp dpp8:[7,6,5,4,3,2,1,0]
v_add_f32_e64_dpp v0, |v1|, -v2 clamp quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf
v_add_f64_e32 v[0:1], 0x3ff123456789abcd, v[2:3]
v_add_f64_e32 v[0:1], v[2:3], v[4:5]
v_add_f64_e32 v[2:3], v[4:5], v[8:9]
v_add_lshl_u32 v0, v1, v2, v3
v_add_nc_u16 v0.l, v1.l, v2.l
v_add_nc_u16 v0.h, v1.h, v2.l op_sel:[1,0,1]
v_add_nc_u16 v1.l, v1.l, v3.l
v_add_nc_u32_dpp v2, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
v_add_nc_u32_dpp v2, v2, v2 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf bound_ctrl:1
v_add_nc_u32_dpp v2, v2, v2 row_mirror row_mask:0xf bank_mask:0xf bound_ctrl:1
v_add_nc_u32_e32 v4, 0x100, v4
v_add_nc_u64_e32 v[0:1], v[2:3], v[4:5]
v_add_nc_u64_e32 v[2:3], s[10:11], v[2:3]
v_alignbit_b32 v0, v1, v2, v3.l
v_and_b32_e32 v2, 0x80000000, v4
v_and_or_b32 v0, v1, v2, v3
v_ashrrev_i16 v4.l, 2, v8.l
v_ashrrev_i32_e32 v3, 31, v2
v_ashrrev_i64 v[8:9], 3, v[12:13]
v_bfe_i32 v0, v1, 8, 8
v_bfe_u32 v0, v1, v2, v3
v_bfi_b32 v0, v1, v2, v3
v_bfi_b32 v3, 0x7fffffff, v3, v20
v_bfrev_b32_e32 v4, v2
v_bitop3_b16 v0.h, v1.h, v2.l, v3.l bitop3:0x27 op_sel:[1,0,0,1]
v_bitop3_b16 v9.l, v11.l, 3, v9.l bitop3:0xc8
v_bitop3_b32 v0, v1, v2, v3 bitop3:0xca
v_ceil_f32_e32 v6, v20
v_clz_i32_u32_e32 v3, v3
v_cmp_class_f32_e32 vcc_lo, v0, v1
v_cmp_class_f32_e64 s0, v14, 0x260
v_cmp_class_f64_e64 vcc_lo, v[4:5], 0x260
v_cmp_eq_f32_e64 vcc_lo, 0x40400000, |v4|
v_cmp_eq_u32_e32 vcc_lo, s3, v14
v_cmp_eq_u32_e64 s0, s3, v16
v_cmp_ge_f32_e32 vcc_lo, 0x40400000, v1
v_cmp_ge_f32_e64 s0, |v3|, 0.5
v_cmp_ge_u32_e32 vcc_lo, v8, v5
v_cmp_gt_f32_e32 vcc_lo, 0xc2aeac50, v7
v_cmp_gt_f32_e64 s0, 0xc2fc0000, v20
v_cmp_gt_f64_e32 vcc_lo, 0x10000000, v[0:1]
v_cmp_gt_i32_e32 vcc_lo, 13, v5
v_cmp_gt_u32_e64 s0, 0x80, v0
v_cmp_gt_u64_e32 vcc_lo, v[0:1], v[2:3]
v_cmp_le_i32_e32 vcc_lo, s6, v4
v_cmp_le_i32_e64 s0, s10, v2
v_cmp_le_u32_e32 vcc_lo, s2, v8
v_cmp_le_u32_e64 s0, s2, v13
v_cmp_lt_f16_e32 vcc_lo, v0.l, v1.l
v_cmp_lt_f32_e32 vcc_lo, v0, v1
v_cmp_lt_f32_e64 s2, 0, v11
v_cmp_lt_f32_e64 s2, v0, v1
v_cmp_lt_f32_e64_dpp s0, v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
v_cmp_lt_i32_e32 vcc_lo, 3, v2
v_cmp_lt_i64_e32 vcc_lo, v[8:9], v[14:15]
v_cmp_lt_u32_e32 vcc_lo, v0, v1
v_cmp_ne_u16_e64 s1, 0, v9.l
v_cmp_ne_u32_e32 vcc_lo, 0, v13
v_cmp_ne_u32_e64 s0, v7, v8
v_cmp_ne_u64_e32 vcc_lo, 0, v[6:7]
v_cmp_ngt_f32_e32 vcc_lo, 0xc2ce8ed0, v7
v_cmp_ngt_f32_e64 s8, 0xc2ce8ed0, v7
v_cmp_nle_f32_e64 vcc_lo, 0x7f800000, |v4|
v_cmp_nlt_f32_e32 vcc_lo, 0x42b17218, v7
v_cmp_nlt_f32_e64 s2, 0x40400000, |v4|
v_cmp_u_f32_e64 s1, v14, v14
v_cmpx_class_f32_e32 v0, v1
v_cmpx_eq_u32_e32 0, v0
v_cmpx_ge_i16_e64 v8.l, v9.l
v_cmpx_gt_i32_e32 13, v6
v_cmpx_gt_i32_e64 s6, v0
v_cmpx_gt_u32_e64 s7, v0
v_cmpx_gt_u32_e64 v0, v1
v_cmpx_lt_f16_e32 v0.l, v1.l
v_cmpx_lt_f32_e64 -v0, |v1|
v_cmpx_lt_i32_e32 12, v5
v_cmpx_lt_u32_e32 0x2ff, v3
v_cmpx_lt_u32_e32 v0, v1
v_cmpx_ne_u32_e32 0, v3
v_cndmask_b32_e32 v0, v1, v2, vcc_lo
v_cndmask_b32_e32 v7, v7, v8, vcc_lo
v_cndmask_b32_e64 v0, -v1, |v2|, s4
v_cndmask_b32_e64 v0, v1, v2, s4
v_cndmask_b32_e64 v17, 0, -1, vcc_lo
v_cos_f32_e32 v5, v5
v_cvt_f16_f32_e32 v0.l, v1
v_cvt_f16_f32_e32 v3.l, v5
v_cvt_f32_bf16_e32 v0, v1.l
v_cvt_f32_bf8_e32 v0, v1
v_cvt_f32_bf8_e64 v16, v16 byte_sel:3
v_cvt_f32_f16_e32 v0, v1.l
v_cvt_f32_fp8_e64 v0, v1 byte_sel:2
v_cvt_f32_fp8_e64 v17, v2 byte_sel:2
v_cvt_f32_i32_e32 v2, v2
v_cvt_f32_u32_e32 v6, v5
v_cvt_f64_i32_e32 v[24:25], v1
v_cvt_f64_u32_e32 v[8:9], v18
v_cvt_i32_f32_e32 v9, v10
v_cvt_i32_f64_e32 v1, v[20:21]
v_cvt_pk_bf16_f32 v0, v1, v2
v_cvt_pk_bf16_f32 v1, v5, s0
v_cvt_pk_bf8_f32 v0.l, v1, v2
v_cvt_pk_f16_f32 v0, v1, v2
v_cvt_pk_f32_bf8_e32 v[0:1], v2.l
v_cvt_pk_f32_fp8_e32 v[12:13], v2.l
v_cvt_pk_f32_fp8_e64 v[0:1], v2.h op_sel:[1,0]
v_cvt_pk_f32_fp8_e64 v[8:9], v2.h op_sel:[1,0]
v_cvt_pk_fp8_f32 v0.l, v1, v2
v_cvt_pk_fp8_f32 v0.l, v1, v2 clamp
v_cvt_pk_fp8_f32 v0.h, v1, v2 op_sel:[0,0,1]
v_cvt_pk_fp8_f32 v7.l, v3, v2
v_cvt_pk_fp8_f32 v7.h, v4, v1 op_sel:[0,0,1]
v_cvt_scale_pk8_f32_fp4 v[0:7], v8, v10 scale_sel:7
v_cvt_scale_pk8_f32_fp8 v[0:7], v[8:9], v10
v_cvt_scale_pk8_f32_fp8 v[0:7], v[8:9], v10 scale_sel:3
v_cvt_scalef32_pk8_fp8_bf16 v[0:1], v[2:5], v10
v_cvt_scalef32_pk8_fp8_f32 v[0:1], v[2:9], v10
v_cvt_sr_fp8_f32 v0, v1, v2
v_cvt_sr_fp8_f32 v0, v1, v2 byte_sel:3
v_cvt_u32_f32_e32 v6, v6
v_div_fixup_f32 v4, v4, 0x40400000, v20
v_div_fixup_f64 v[8:9], v[14:15], v[8:9], v[12:13]
v_div_fmas_f32 v4, v7, v9, v5
v_div_fmas_f64 v[14:15], v[14:15], v[16:17], v[26:27]
v_div_scale_f32 v0, vcc_lo, v1, v2, v3
v_div_scale_f32 v8, null, 0x40400000, 0x40400000, v20
v_div_scale_f64 v[14:15], null, v[8:9], v[8:9], v[12:13]
v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0]
v_dual_add_f32 v0, v1, v2 :: v_dual_mov_b32 v1, s0
v_dual_add_f32 v1, v3, v1 :: v_dual_bitop2_b32 v4, 8, v2 bitop3:0x14
v_dual_add_f32 v12, v1, v12 :: v_dual_fmamk_f32 v21, v15, 0x3284fbcf, v22
v_dual_add_f32 v2, v2, v5 :: v_dual_mul_f32 v5, 0.15915494, v20
v_dual_add_f32 v8, v14, v12 :: v_dual_add_f32 v11, v11, v21
v_dual_add_f32 v8, v9, v8 :: v_dual_sub_f32 v9, v10, v11
v_dual_add_f64 v[6:7], v[8:9], v[6:7] :: v_dual_sub_f32 v14, v15, v17
v_dual_add_nc_u32 v0, 16, v2 :: v_dual_subrev_f32 v3, s4, v5
v_dual_add_nc_u32 v13, 1, v6 :: v_dual_mov_b32 v7, 0
v_dual_add_nc_u32 v13, 1, v6 :: v_dual_sub_nc_u32 v7, v0, v7
v_dual_add_nc_u32 v2, 1, v18 :: v_dual_add_nc_u32 v12, 2, v18
v_dual_add_nc_u32 v9, 1, v6 :: v_dual_bitop2_b32 v7, s3, v1 bitop3:0x54
v_dual_cndmask_b32 v0, v1, v2, s4 :: v_dual_cndmask_b32 v3, v4, v5, s6
v_dual_cndmask_b32 v1, 1.0, v5, vcc_lo :: v_dual_bitop2_b32 v3, 1, v2 bitop3:0x54
v_dual_cndmask_b32 v10, v10, v14 :: v_dual_sub_nc_u32 v15, v11, v13
v_dual_cndmask_b32 v11, v11, v15 :: v_dual_add_nc_u32 v14, 1, v10
v_dual_cndmask_b32 v3, v6, v9 :: v_dual_ashrrev_i32 v10, 31, v3
v_dual_cndmask_b32 v5, 0x7fc00000, v5 :: v_dual_add_f32 v8, v9, v8
v_dual_cndmask_b32 v6, v6, v9, vcc_lo :: v_dual_cndmask_b32 v8, v8, v11, vcc_lo
v_dual_fma_f32 v0, -v1, v2, v6 :: v_dual_mul_f32 v3, v4, -v5
v_dual_fma_f32 v0, v1, v2, v6 :: v_dual_fmac_f32 v3, v4, v5
v_dual_fma_f32 v7, -v8, v5, v11 :: v_dual_add_f32 v2, v2, v6
v_dual_fmamk_f32 v0, v1, 0x3f800001, v6 :: v_dual_fmaak_f32 v3, v4, v5, 0x3f800001
v_dual_lshlrev_b32 v1, v2, v1 :: v_dual_bitop2_b32 v4, v3, v8 bitop3:0x14
v_dual_lshrrev_b32 v10, 31, v7 :: v_dual_ashrrev_i32 v7, 2, v7
v_dual_lshrrev_b32 v3, 8, v6 :: v_dual_mov_b32 v1, 0
v_dual_max_num_f32 v1, v1, v1 :: v_dual_add_nc_u32 v4, 0x100, v4
v_dual_max_num_f32 v1, v1, v1 :: v_dual_max_num_f32 v2, v2, v2
v_dual_min_num_f32 v3, v4, v5 :: v_dual_max_i32 v0, v1, v2
v_dual_mov_b32 v0, 0x12345678 :: v_dual_mov_b32 v3, s4
v_dual_mov_b32 v1, 0xff800000 :: v_dual_mov_b32 v4, v0
v_dual_mov_b32 v10, s7 :: v_dual_max_num_f32 v7, v8, v8
v_dual_mov_b32 v2, v0 :: v_dual_lshrrev_b32 v3, 8, v6
v_dual_mov_b32 v3, 0 :: v_dual_bitop2_b32 v5, v3, v10 bitop3:0x14
v_dual_mov_b32 v3, 0 :: v_dual_lshlrev_b32 v2, 2, v0
v_dual_mov_b32 v5, v7 :: v_dual_mul_f32 v0, s0, v0
v_dual_mov_b32 v6, s1 :: v_dual_sub_nc_u32 v9, v4, v11
v_dual_mov_b32 v7, v6 :: v_dual_add_nc_u32 v5, -12, v5
v_dual_mul_f32 v0, v1, v2 :: v_dual_cndmask_b32 v3, v4, v5, vcc_lo
v_dual_mul_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5
v_dual_mul_f32 v13, 0x3fb8aa3b, v13 :: v_dual_mul_f32 v6, 0x3fb8aa3b, v6
v_dual_mul_f32 v20, 0.15915494, v4 :: v_dual_cndmask_b32 v14, v4, v14, s0
v_dual_mul_f32 v3, s0, v3 :: v_dual_bitop2_b32 v4, 2, v1 bitop3:0x54
v_dual_mul_f32 v5, v11, v9 :: v_dual_add_f32 v3, v4, v3
v_dual_mul_f32 v5, v5, v1 :: v_dual_add_nc_u32 v0, 0x100, v0
v_dual_sub_f32 v11, v4, v10 :: v_dual_add_f32 v8, v9, v8
v_dual_sub_f32 v3, v7, v15 :: v_dual_fmamk_f32 v6, v7, 0x3f317218, v6
v_dual_sub_f32 v7, v7, v1 :: v_dual_add_nc_u32 v2, 0x100, v2
v_dual_sub_f32 v8, v8, v10 :: v_dual_fmac_f32 v9, 0x32a5705f, v7
v_dual_sub_nc_u32 v5, 0, v3 :: v_dual_sub_nc_u32 v8, 0, v4
v_dual_sub_nc_u32 v8, v8, v9 :: v_dual_add_nc_u32 v9, 1, v6
v_exp_bf16_e32 v0.l, v1.l
v_exp_f32_e32 v7, v7
v_floor_f32_e32 v4, v20
v_floor_f64_e32 v[4:5], v[0:1]
v_fma_f32 v11, -v8, v9, 1.0
v_fma_f32_e64_dpp v0, |v1|, -v2, v3 clamp quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf
v_fma_f64 v[10:11], -v[6:7], v[8:9], 0.5
v_fma_mix_f32 v0, v1, -v2, |v3|
v_fma_mix_f32 v0, v1, -v2, |v3| op_sel_hi:[1,0,1]
v_fma_mix_f32_bf16 v0, v1, v2, v3
v_fma_mixlo_bf16 v0, v1, -v2, v3 op_sel:[1,0,0] op_sel_hi:[1,0,1]
v_fmaak_f32 v0, v1, v2, 0x3f800000
v_fmaak_f64 v[0:1], v[2:3], v[4:5], 0x3ff123456789abcd
v_fmac_f16_e32 v3.l, s0, v6.l
v_fmac_f32_e32 v9, v11, v9
v_fmac_f64_e32 v[12:13], 2.0, v[0:1]
v_fmamk_f32 v0, v1, 0x3f800001, v2
v_fmamk_f32 v6, v7, 0x3e9a209b, v6
v_fmamk_f64 v[12:13], v[20:21], 0xc1f00000, v[22:23]
v_frexp_exp_i32_f32_e32 v7, v4
v_frexp_mant_f32_e64 v3, |v4|
v_ldexp_f32 v0, v1, v2
v_ldexp_f32 v7, v20, v7
v_ldexp_f64 v[4:5], v[0:1], v4
v_log_f32_e32 v7, v7
v_lshl_add_u32 v1, s7, 2, v6
v_lshl_add_u64 v[0:1], v[2:3], 2, v[4:5]
v_lshl_add_u64 v[4:5], s[2:3], 2, v[2:3]
v_lshl_or_b32 v0, v1, v2, v3
v_lshlrev_b16 v3.l, 3, v3.l
v_lshlrev_b32_e32 v6, 2, v0
v_lshlrev_b64_e32 v[0:1], 2, v[2:3]
v_lshlrev_b64_e32 v[4:5], 2, v[2:3]
v_lshrrev_b32_e32 v0, v1, v2
v_lshrrev_b64 v[8:9], 3, v[8:9]
v_mad_co_u64_u32 v[0:1], s2, v2, v3, v[4:5]
v_mad_nc_i64_i32 v[0:1], v2, v3, v[4:5]
v_mad_nc_u64_u32 v[0:1], v2, v3, v[4:5]
v_mad_nc_u64_u32 v[10:11], v1, 0xcccccccd, v[8:9]
v_mad_u32 v0, v1, v0, 7
v_mad_u32 v0, v1, v2, v3
v_max3_num_f32 v0, v1, v2, v3
v_max_i32_e32 v5, v5, v3
v_max_num_f32_e32 v1, v1, v5
v_max_u64 v[0:1], v[2:3], v[4:5]
v_maximum3_f32 v0, v1, v2, v3
v_maxmin_num_f32 v3, v3, s1, 0x43e00000
v_mbcnt_hi_u32_b32 v0, -1, v0
v_mbcnt_lo_u32_b32 v0, -1, 0
v_med3_num_f32 v0, v1, v2, v3
v_med3_num_f32 v6, v1, 1.0, 2.0
v_min3_num_f32 v0, v1, v2, v3
v_min_num_f32_e32 v0, v1, v2
v_minimum_f32 v0, v1, v2
v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]
v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0] fi:1
v_mov_b32_dpp v0, v1 row_half_mirror row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 row_mirror row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 row_share:3 row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1 fi:1
v_mov_b32_dpp v0, v1 row_xmask:3 row_mask:0xf bank_mask:0xf
v_mov_b32_e32 v0, exec_lo
v_mov_b32_e32 v0, null
v_mov_b32_e32 v0, src_flat_scratch_base_lo
v_mov_b32_e32 v0, src_scc
v_mov_b32_e32 v0, v1
v_mov_b32_e32 v1, 0xff800000
v_mov_b64_e32 v[0:1], 0x123456789abcdef0
v_mov_b64_e32 v[2:3], 3
v_movrels_b32_e32 v0, v1
v_mul_f32_e32 v7, 0x3fb8aa3b, v7
v_mul_f64_e32 v[8:9], v[4:5], v[6:7]
v_mul_hi_i32 v7, v4, 0x92492493
v_mul_hi_u32 v7, v6, v7
v_mul_lo_u16 v1.l, v1.l, v8.l
v_mul_lo_u32 v7, v7, v6
v_mul_u32_u24_e32 v0, v1, v2
v_mul_u64_e32 v[0:1], v[2:3], v[4:5]
v_mul_u64_e32 v[6:7], s[0:1], v[6:7]
v_nop
v_not_b32_e32 v0, v1
v_or_b32_e32 v2, 1, v1
v_perm_b32 v0, v1, v2, s3
v_permlane16_b32 v0, v1, s2, s3
v_permlane16_b32 v0, v1, s2, s3 op_sel:[1,0]
v_permlane16_swap_b32_e32 v0, v1
v_permlane64_b32 v0, v1
v_permlane_bcast_b32 v0, v1, s2, s3
v_permlane_up_b32 v0, v1, s2, s3
v_permlane_xor_b32 v0, v1, s2, s3
v_permlanex16_b32 v0, v1, s2, s3
v_pk_add_bf16 v0, v1, v2
v_pk_add_f16 v0, v1, 1.0
v_pk_add_f32 v[14:15], v[18:19], v[4:5] neg_lo:[0,1] neg_hi:[0,1]
v_pk_add_f32 v[8:9], v[14:15], v[8:9]
v_pk_fma_bf16 v0, v1, v2, v3
v_pk_fma_f16 v0, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,0,1] neg_lo:[1,0,0] neg_hi:[0,0,1] clamp
v_pk_fma_f16 v1, v2, v1, v3
v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]
v_pk_fma_f32 v[2:3], v[14:15], v[12:13], v[8:9]
v_pk_mad_u16 v1, v2, v1, v3
v_pk_max_num_bf16 v0, v1, v2
v_pk_minimum3_f16 v0, v1, v2, v3
v_pk_mul_bf16 v0, v1, v2
v_pk_mul_f16 v0, v1, v2
v_pk_mul_f32 v[0:1], v[2:3], v[4:5]
v_pk_mul_f32 v[8:9], v[10:11], v[8:9]
v_prng_b32_e32 v0, v1
v_rcp_f32_e32 v6, v6
v_rcp_f64_e32 v[14:15], v[2:3]
v_rcp_iflag_f32_e32 v6, v6
v_readfirstlane_b32 s1, v2
v_readlane_b32 s0, v1, s2
v_readlane_b32 s0, v2, 3
v_rndne_f32_e32 v5, v20
v_rsq_f32_e32 v0, v1
v_rsq_f64_e32 v[6:7], v[4:5]
v_s_rcp_f32 s0, s0
v_sin_f32_e32 v3, v5
v_sqrt_f32_e32 v0, v1
v_sqrt_f32_e32 v14, v20
v_sub_co_ci_u32_e64 v16, null, v1, v9, vcc_lo
v_sub_co_u32 v8, vcc_lo, v0, v8
v_sub_f32_e32 v3, v20, v10
v_sub_nc_u16 v1.l, v1.l, v4.l
v_sub_nc_u32_e32 v7, 0, v5
v_sub_nc_u64_e32 v[0:1], v[0:1], v[8:9]
v_sub_nc_u64_e32 v[0:1], v[2:3], v[4:5]
v_subrev_co_ci_u32_e32 v0, vcc_lo, v1, v2, vcc_lo
v_subrev_co_ci_u32_e64 v10, null, s3, v10, vcc_lo
v_subrev_f32_e32 v0, v1, v2
v_subrev_nc_u32_e32 v0, v1, v2
v_subrev_nc_u32_e32 v14, s2, v7
v_swap_b32 v0, v1
v_tanh_bf16_e32 v0.l, v1.l
v_tanh_f32_e32 v0, v1
v_trunc_f32_e32 v10, v20
v_trunc_f64_e32 v[4:5], v[0:1]
v_trunc_f64_e64 v[6:7], |v[12:13]|
v_wmma_bf16f32_16x16x32_bf16 v[0:3], v[16:23], v[32:39], v[8:15]
v_wmma_f16_16x16x128_fp8_fp8 v[0:3], v[16:31], v[32:47], v[0:3]
v_wmma_f16_16x16x32_f16 v[0:3], v[16:23], v[32:39], v[0:3]
v_wmma_f32_16x16x128_bf8_bf8 v[0:7], v[16:31], v[32:47], v[0:7]
v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[16:23], v[32:39], v[0:7] matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_FP4
v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[16:27], v[32:43], v[0:7] matrix_a_fmt:MATRIX_FMT_FP6 matrix_b_fmt:MATRIX_FMT_BF6
v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:39], v[0:7] matrix_b_fmt:MATRIX_FMT_FP4
v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[0:7]
v_wmma_f32_16x16x128_fp8_bf8 v[0:7], v[16:31], v[32:47], v[0:7]
v_wmma_f32_16x16x128_fp8_fp8 v[0:7], v[16:31], v[32:47], 0
v_wmma_f32_16x16x128_fp8_fp8 v[0:7], v[16:31], v[32:47], v[0:7]
v_wmma_f32_16x16x32_bf16 v[0:7], v[16:23], v[32:39], v[0:7]
v_wmma_f32_16x16x32_bf16 v[0:7], v[16:23], v[32:39], v[0:7] neg_lo:[0,0,1]
v_wmma_f32_16x16x32_f16 v[0:7], v[16:23], v[32:39], v[0:7]
v_wmma_f32_16x16x4_f32 v[0:7], v[16:17], v[32:33], 1.0
v_wmma_f32_16x16x4_f32 v[0:7], v[16:17], v[32:33], v[0:7]
v_wmma_f32_16x16x4_f32 v[0:7], v[16:17], v[32:33], v[0:7] neg_lo:[0,0,1] neg_hi:[0,0,1]
v_wmma_f32_16x16x64_bf8_fp8 v[0:7], v[16:23], v[32:39], v[0:7]
v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[16:23], v[32:39], v[0:7]
v_wmma_f32_32x16x128_f4 v[0:15], v[16:31], v[32:39], v[0:15]
v_wmma_i32_16x16x64_iu8 v[0:7], v[16:23], v[32:39], v[0:7] neg_lo:[1,1,0]
v_wmma_scale16_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[0:7], v[48:49], v[50:51]
v_wmma_scale16_f32_32x16x128_f4 v[0:15], v[16:31], v[32:39], v[0:15], v[48:49], v[50:51]
v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:39], v[0:7], v48, v49 matrix_b_fmt:MATRIX_FMT_FP4 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3
v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[0:7], s2, s3
v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[0:7], v48, v49
v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[0:7], v48, v49 matrix_a_reuse matrix_b_reuse
v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[0:7], v48, v49 matrix_a_scale:MATRIX_SCALE_ROW1 matrix_b_scale:MATRIX_SCALE_ROW1
v_wmma_scale_f32_32x16x128_f4 v[0:15], v[16:31], v[32:39], v[0:15], v48, v49
v_writelane_b32 v0, 3, 4
v_writelane_b32 v0, s1, m0
v_xad_u32 v6, v0, -1, s10
v_xor_b32_e32 v3, v4, v3
