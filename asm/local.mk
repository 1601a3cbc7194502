# Kernels for AMD's GPUs by hand: %D%/<arch>/<stem>.s, the object beside it. The C preprocessor runs first, so that a
# kernel may share the offsets of its arguments with the host's struct.
asm_kernels_gfx950 = \
	%D%/gfx950/pa_mtp_e4m3_d256_gqa16_page16_gfx950.s \
	%D%/gfx950/pa_mtp_e4m3_d256_gqa4_page16_gfx950.s \
	%D%/gfx950/pa_mtp_e4m3_d256_gqa8_page16_gfx950.s \
	%D%/gfx950/pa_mtp_reduce_d256_gfx950.s
asm_kernels_gfx1250 = \
	%D%/gfx1250/fmha_varlen_e4m3_d192x128_causal_gfx1250.s \
	%D%/gfx1250/fmha_varlen_e4m3_d192x128_gfx1250.s
asm_headers = \
	%D%/kernel.inc \
	%D%/gfx950/pa_mtp_e4m3_d256_gfx950.inc \
	%D%/gfx1250/fmha_varlen_e4m3_d192x128_gfx1250.inc
EXTRA_DIST += $(asm_kernels_gfx950) $(asm_kernels_gfx1250) $(asm_headers)

SUFFIXES += .s .co
asm_objects =
if HAVE_GFX950
asm_objects += $(asm_kernels_gfx950:.s=.co)
endif
if HAVE_GFX1250
asm_objects += $(asm_kernels_gfx1250:.s=.co)
endif
CLEANFILES += $(asm_objects)

ASM_FLAGS = --target=amdgcn-amd-amdhsa -x assembler-with-cpp -Wall -I$(top_srcdir)/%D% -I$(top_srcdir)/hip

.s.co:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && arch=$(@D) && \
	$(AMDGCN_CC) $(ASM_FLAGS) -mcpu=$${arch##*/} -I$(top_srcdir)/%D%/$${arch##*/} $< -o $@

$(asm_objects): $(asm_headers) $(hip_headers)
