# Kernels for GPUs, by clang alone: no ROCm, no CUDA. One object for each kernel and architecture, which
# src/code_objects.c embeds. A kernel is for all of them, or for the one that its name ends in.
hip_kernels = \
	%D%/fmha_varlen_omp.hip \
	%D%/mqa_logits_omp.hip \
	%D%/mqa_logits_paged_omp.hip \
	%D%/pa_mtp_omp.hip \
	%D%/pa_mtp_plan_omp.hip \
	%D%/pa_mtp_reduce_omp.hip
hip_kernels_gfx950 = \
	%D%/mqa_logits_e4m3_h32_d128_gfx950.hip \
	%D%/mqa_logits_e4m3_h32_d128_small_gfx950.hip \
	%D%/mqa_logits_e4m3_h64_d128_gfx950.hip \
	%D%/mqa_logits_e4m3_h64_d128_small_gfx950.hip \
	%D%/pa_mtp_plan_gfx950.hip
hip_kernels_gfx1250 =
hip_headers = \
	%D%/attention_device.h \
	%D%/attention_omp.h \
	%D%/device.h \
	%D%/fmha_varlen_omp.h \
	%D%/mqa_logits_device.h \
	%D%/mqa_logits_device_gfx950.h \
	%D%/mqa_logits_gfx950.h \
	%D%/mqa_logits_grid.h \
	%D%/mqa_logits_omp.h \
	%D%/mqa_logits_paged_omp.h \
	%D%/omp_host.h \
	%D%/pa_mtp_device.h \
	%D%/pa_mtp_gfx950.h \
	%D%/pa_mtp_omp.h \
	%D%/workgroup.h
EXTRA_DIST += $(hip_kernels) $(hip_kernels_gfx950) $(hip_kernels_gfx1250) $(hip_headers)

SUFFIXES += .hip .gfx950.co .gfx1250.co .sm_90.ptx
hip_objects =
if HAVE_GFX950
hip_objects += $(hip_kernels:.hip=.gfx950.co) $(hip_kernels_gfx950:.hip=.gfx950.co)
endif
if HAVE_GFX1250
hip_objects += $(hip_kernels:.hip=.gfx1250.co) $(hip_kernels_gfx1250:.hip=.gfx1250.co)
endif
if HAVE_SM_90
hip_objects += $(hip_kernels:.hip=.sm_90.ptx)
endif
CLEANFILES += $(hip_objects)

# No v_pk_*_f32: gfx950 at times miscomputes some of the selections of halves that LLVM 22 gives v_pk_fma_f32. No VOPD:
# LLVM 22 keeps a transcendental's source from the VALU instruction that follows on gfx1250 by a v_nop, but does not look
# at the results of v_dual_*.
HIP_FLAGS = -O3 -std=c++17 -Wall -Wextra -I$(top_srcdir)/include -iquote $(top_builddir)
AMD_FLAGS = -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib \
	-Xclang -target-feature -Xclang -packed-fp32-ops -mllvm -amdgpu-enable-vopd=0 $(HIP_FLAGS)
NVIDIA_FLAGS = -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx80 -Wno-unknown-cuda-version \
	$(HIP_FLAGS)

.hip.gfx950.co:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AMDGCN_CC) $(AMD_FLAGS) --offload-arch=gfx950 $< -o $@
.hip.gfx1250.co:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AMDGCN_CC) $(AMD_FLAGS) --offload-arch=gfx1250 $< -o $@
.hip.sm_90.ptx:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(NVPTX_CC) $(NVIDIA_FLAGS) --cuda-gpu-arch=sm_90 -S $< -o $@

$(hip_objects): $(hip_headers)
