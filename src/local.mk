# Everything, with internal names in reach: what the tests link.
noinst_LTLIBRARIES += %D%/libetalon_core.la
%C%_libetalon_core_la_LIBADD = ref/libref.la
%C%_libetalon_core_la_SOURCES = \
	%D%/attention_check.c \
	%D%/attention_check.h \
	%D%/context.c \
	%D%/context.h \
	%D%/dtype.def \
	%D%/element.h \
	%D%/error.h \
	%D%/features.c \
	%D%/features.def \
	%D%/features.h \
	%D%/fmha_varlen.c \
	%D%/fmha_varlen.h \
	%D%/fmha_varlen_check.c \
	%D%/fmha_varlen_kernels.def \
	%D%/fp8.h \
	%D%/gate.c \
	%D%/gate.h \
	%D%/gate_entry.h \
	%D%/merge_states.c \
	%D%/merge_states.h \
	%D%/merge_states_check.c \
	%D%/merge_states_kernels.def \
	%D%/mqa_logits.c \
	%D%/mqa_logits.h \
	%D%/mqa_logits_check.c \
	%D%/mqa_logits_kernels.def \
	%D%/mqa_logits_paged.c \
	%D%/mqa_logits_paged.h \
	%D%/mqa_logits_paged_check.c \
	%D%/mqa_logits_paged_kernels.def \
	%D%/pa_mtp.c \
	%D%/pa_mtp.h \
	%D%/pa_mtp_check.c \
	%D%/pa_mtp_kernels.def \
	%D%/qualify.c \
	%D%/qualify.h \
	%D%/status.c \
	%D%/status.def \
	%D%/tensor.c \
	%D%/tensor.h

# GPUs: with the flags that put OpenMP images into the library.
noinst_LTLIBRARIES += %D%/liboffload.la
%C%_libetalon_core_la_LIBADD += %D%/liboffload.la
%C%_liboffload_la_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(top_builddir) -iquote $(top_srcdir)/hip
%C%_liboffload_la_CFLAGS = $(AM_CFLAGS) $(OFFLOAD_CFLAGS)
%C%_liboffload_la_SOURCES = \
	%D%/code_objects.c \
	%D%/code_objects.h \
	%D%/launch.h \
	%D%/offload.c \
	%D%/offload.h
if HAVE_OFFLOAD
%C%_liboffload_la_SOURCES += \
	%D%/fmha_varlen_omp.c \
	%D%/launch.c \
	%D%/launch_cuda.c \
	%D%/launch_hip.c \
	%D%/launch_hsa.c \
	%D%/mqa_logits_omp.c \
	%D%/mqa_logits_paged_omp.c \
	%D%/pa_mtp_omp.c
if HAVE_GFX950
%C%_liboffload_la_SOURCES += %D%/pa_mtp_gfx950.c
endif
endif
if HAVE_GFX1250
%C%_liboffload_la_SOURCES += %D%/fmha_varlen_gfx1250.c %D%/fmha_varlen_gfx1250.h
endif
if HAVE_GFX950
%C%_liboffload_la_SOURCES += %D%/mqa_logits_gfx950.c
endif
# By a variable, since the rule for the object is Automake's.
code_objects = %D%/liboffload_la-code_objects.lo
$(code_objects): %D%/code_objects.def

# OBJECT(stem, arch, "file") for each of asm/ARCH/STEM.co and hip/STEM.ARCH.co; make runs in the directory that the names
# start from.
CLEANFILES += %D%/code_objects.def
%D%/code_objects.def: $(asm_objects) $(hip_objects) Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && for file in $(asm_objects) $(hip_objects); do \
	    name=$${file##*/}; stem=$${name%%.*}; \
	    case $$file in \
	    asm/*) arch=$${file#asm/}; arch=$${arch%%/*} ;; \
	    *) arch=$${name#*.}; arch=$${arch%.*} ;; \
	    esac; \
	    echo "OBJECT($$stem, $$arch, \"$$file\")"; done >$@

# Host kernels: a library for each instruction set, since no other code may be built with its flags.
kernel_headers = \
	%D%/attention_amx.h \
	%D%/attention_panel.h \
	%D%/attention_stream.h \
	%D%/attention_simd.h \
	%D%/attention_tile.h \
	%D%/fmha_varlen_simd.h \
	%D%/mqa_logits_simd.h \
	%D%/pa_mtp_simd.h \
	%D%/simd.h \
	%D%/simd_amx.h \
	%D%/simd_panel.h \
	%D%/simd_row.h

noinst_LTLIBRARIES += %D%/libgeneric.la
%C%_libetalon_core_la_LIBADD += %D%/libgeneric.la
%C%_libgeneric_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(GENERIC_CFLAGS)
%C%_libgeneric_la_SOURCES = \
	$(kernel_headers) \
	%D%/fmha_varlen_generic.c \
	%D%/mqa_logits_generic.c \
	%D%/mqa_logits_paged_generic.c \
	%D%/pa_mtp_generic.c

if HAVE_AVX2
noinst_LTLIBRARIES += %D%/libavx2.la
%C%_libetalon_core_la_LIBADD += %D%/libavx2.la
%C%_libavx2_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX2_CFLAGS)
endif
%C%_libavx2_la_SOURCES = \
	$(kernel_headers) \
	%D%/fmha_varlen_avx2.c \
	%D%/mqa_logits_avx2.c \
	%D%/mqa_logits_paged_avx2.c \
	%D%/pa_mtp_avx2.c

if HAVE_AVX512
noinst_LTLIBRARIES += %D%/libavx512.la
%C%_libetalon_core_la_LIBADD += %D%/libavx512.la
%C%_libavx512_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS)
endif
%C%_libavx512_la_SOURCES = \
	$(kernel_headers) \
	%D%/fmha_varlen_avx512.c \
	%D%/mqa_logits_avx512.c \
	%D%/mqa_logits_paged_avx512.c \
	%D%/pa_mtp_avx512.c

if HAVE_AMX
noinst_LTLIBRARIES += %D%/libamx.la
%C%_libetalon_core_la_LIBADD += %D%/libamx.la
%C%_libamx_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AMX_CFLAGS)
endif
%C%_libamx_la_SOURCES = \
	$(kernel_headers) \
	%D%/fmha_varlen_amx.c \
	%D%/mqa_logits_amx.c \
	%D%/mqa_logits_paged_amx.c \
	%D%/pa_mtp_amx.c

if HAVE_NEON
noinst_LTLIBRARIES += %D%/libneon.la
%C%_libetalon_core_la_LIBADD += %D%/libneon.la
%C%_libneon_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(NEON_CFLAGS)
endif
%C%_libneon_la_SOURCES = \
	$(kernel_headers) \
	%D%/fmha_varlen_neon.c \
	%D%/mqa_logits_neon.c \
	%D%/mqa_logits_paged_neon.c \
	%D%/pa_mtp_neon.c

# The same with the exported names alone: what is installed.
lib_LTLIBRARIES += %D%/libetalon.la
%C%_libetalon_la_SOURCES =
%C%_libetalon_la_LIBADD = %D%/libetalon_core.la $(LIBM) $(OFFLOAD_LIBS)
%C%_libetalon_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -version-info $(ETALON_LT_VERSION)
if HAVE_VERSION_SCRIPT
%C%_libetalon_la_LDFLAGS += -Wl,--version-script=$(top_srcdir)/%D%/libetalon.map
EXTRA_%C%_libetalon_la_DEPENDENCIES = %D%/libetalon.map
endif
EXTRA_DIST += %D%/libetalon.map
