# Everything here speaks TAP. Check programs link the library statically and so may call its internal names.
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_COMPILER = $(SHELL)
TEST_EXTENSIONS = .sh

# Tests run side by side: threads that wait must not spin on the cores of the others.
AM_TESTS_ENVIRONMENT = \
	OMP_WAIT_POLICY="$${OMP_WAIT_POLICY-passive}" \
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
	ETALON_VECTORS='$(abs_top_srcdir)/%D%/vectors' ETALON='$(abs_top_builddir)/tools/etalon$(EXEEXT)' \
	CC='$(CC)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' NM='$(NM)' MAKE='$(MAKE)' PKG_CONFIG='$(PKG_CONFIG)' \
	ETALON_SIM='$(abs_top_builddir)/tools/etalon-sim$(EXEEXT)' ETALON_SIM_KERNELS='$(abs_top_builddir)/%D%/sim/kernels' \
	ETALON_HIP_KERNELS='$(abs_top_builddir)/hip' \
	ETALON_SIM_LIBRARIES='$(abs_top_builddir)/sim/runtime/.libs' ETALON_OFFLOAD='$(ETALON_OFFLOAD)' \
	bindir='$(bindir)' libdir='$(libdir)'; \
	export OMP_WAIT_POLICY top_srcdir top_builddir ETALON_VECTORS ETALON CC CFLAGS LDFLAGS NM MAKE PKG_CONFIG \
	ETALON_SIM ETALON_SIM_KERNELS ETALON_HIP_KERNELS ETALON_SIM_LIBRARIES ETALON_OFFLOAD bindir libdir;

unit_tests = \
	%D%/check_catalogue \
	%D%/check_context \
	%D%/check_features \
	%D%/check_fmha_varlen \
	%D%/check_fp8 \
	%D%/check_gate \
	%D%/check_measure \
	%D%/check_merge_states \
	%D%/check_metamorphic \
	%D%/check_mqa_logits \
	%D%/check_mqa_logits_grid \
	%D%/check_mqa_logits_paged \
	%D%/check_pa_mtp \
	%D%/check_sample \
	%D%/check_simd \
	%D%/check_status \
	%D%/check_tensor \
	%D%/check_tensorfile \
	%D%/check_twin \
	%D%/check_vectors

shell_tests = \
	%D%/check_cli.sh \
	%D%/check_docs.sh \
	%D%/check_kernels.sh \
	%D%/check_format.sh \
	%D%/check_headers.sh \
	%D%/check_install.sh \
	%D%/check_names.sh \
	%D%/check_rows.sh \
	%D%/check_symbols.sh \
	%D%/check_witness.sh

# What the witness asks for conversions and files.
check_PROGRAMS += %D%/fp8_table %D%/tensorfile_copy
%C%_fp8_table_LDADD = src/libetalon_core.la $(OFFLOAD_LIBS) $(LIBM)
%C%_tensorfile_copy_LDADD = tools/libtools.la src/libetalon_core.la $(OFFLOAD_LIBS) $(LIBM)

if HAVE_CHECK
# What several programs share: the float64 twin of each reference, and the cases.
check_LTLIBRARIES += %D%/libtesting.la
%C%_libtesting_la_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
%C%_libtesting_la_SOURCES = \
	%D%/cases.c \
	%D%/cases.h \
	%D%/testing.h \
	%D%/twin.c \
	%D%/twin.h

# simd.h with the flags of each instruction set, for check_simd.
check_LTLIBRARIES += %D%/libprobe_generic.la
%C%_libprobe_generic_la_SOURCES = %D%/simd_probe.h %D%/simd_probe_generic.c %D%/simd_probes.h
%C%_libprobe_generic_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(GENERIC_CFLAGS)
probes = %D%/libprobe_generic.la
if HAVE_AVX2
check_LTLIBRARIES += %D%/libprobe_avx2.la
%C%_libprobe_avx2_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX2_CFLAGS)
probes += %D%/libprobe_avx2.la
endif
%C%_libprobe_avx2_la_SOURCES = %D%/simd_probe_avx2.c
if HAVE_AVX512
check_LTLIBRARIES += %D%/libprobe_avx512.la
%C%_libprobe_avx512_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS)
probes += %D%/libprobe_avx512.la
endif
%C%_libprobe_avx512_la_SOURCES = %D%/simd_probe_avx512.c
if HAVE_AMX
check_LTLIBRARIES += %D%/libprobe_amx.la
%C%_libprobe_amx_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AMX_CFLAGS)
probes += %D%/libprobe_amx.la
endif
%C%_libprobe_amx_la_SOURCES = %D%/simd_probe_amx.c
if HAVE_NEON
check_LTLIBRARIES += %D%/libprobe_neon.la
%C%_libprobe_neon_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(NEON_CFLAGS)
probes += %D%/libprobe_neon.la
endif
%C%_libprobe_neon_la_SOURCES = %D%/simd_probe_neon.c
%C%_check_mqa_logits_grid_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(top_srcdir)/hip
%C%_check_simd_LDADD = $(probes) $(LDADD)

# Every row of every gate against every yardstick, and kernels that are broken on purpose.
check_PROGRAMS += %D%/xcheck
%C%_xcheck_SOURCES = \
	%D%/broken.c \
	%D%/broken.def \
	%D%/broken_device.def \
	%D%/xcheck.c \
	%D%/xcheck.h \
	%D%/xcheck_case.c \
	%D%/xcheck_device.c \
	%D%/xcheck_judge.c \
	%D%/xcheck_picture.c \
	%D%/xcheck_property.c \
	tools/gpu.c \
	tools/gpu.h
%C%_xcheck_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
%C%_xcheck_LDADD = $(LDADD) $(JANSSON_LIBS)
TESTS += %D%/check_xcheck.sh

check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
AM_CPPFLAGS += $(CHECK_CFLAGS)
LDADD = %D%/libtesting.la tools/libtools.la src/libetalon_core.la $(OFFLOAD_LIBS) $(CHECK_LIBS) $(LIBM)
else
TESTS += %D%/no_unit_tests.sh
endif

# The simulator: unit tests that need nothing, and tests of whole kernels, which a compiler for AMD GPUs makes.
sim_unit_tests = \
	%D%/check_sim_checks \
	%D%/check_sim_counters \
	%D%/check_sim_decode \
	%D%/check_sim_matrix \
	%D%/check_sim_memory \
	%D%/check_sim_object \
	%D%/check_sim_salu \
	%D%/check_sim_valu
sim_kernel_tests = \
	%D%/check_sim_compiled \
	%D%/check_sim_hip \
	%D%/check_sim_hsa \
	%D%/check_sim_kernels \
	%D%/check_sim_run
sim_shell_tests = \
	%D%/check_sim_cli.sh \
	%D%/check_sim_offload.sh
sim_kernel_sources = \
	%D%/sim/arithmetic.h \
	%D%/sim/arithmetic.hip \
	%D%/sim/compile.sh \
	%D%/sim/compiled.h \
	%D%/sim/compiled.hip \
	%D%/sim/gemm_e4m3.hip \
	%D%/sim/gemm_e4m3_gfx1250.s \
	%D%/sim/gemm_e4m3_gfx950.s \
	asm/kernel.inc \
	%D%/sim/offload.c \
	%D%/sim/run.hip \
	%D%/sim/run_gfx1250.s \
	%D%/sim/run_gfx950.s \
	%D%/sim/runtime_gfx1250.s \
	%D%/sim/runtime_gfx950.s \
	%D%/sim/scan_u32_gfx1250.s \
	%D%/sim/scan_u32_gfx950.s

if HAVE_SIMULATOR
check_PROGRAMS += %D%/fuzz_sim_object
TESTS += %D%/check_sim_corpus.sh %D%/check_triton.sh
if HAVE_CHECK
check_PROGRAMS += $(sim_unit_tests)
TESTS += $(sim_unit_tests) %D%/check_sim_hazards.sh
if HAVE_AMDGCN
check_PROGRAMS += $(sim_kernel_tests)
TESTS += $(sim_kernel_tests)
endif
endif
if HAVE_AMDGCN
TESTS += $(sim_shell_tests)
check_DATA += %D%/sim/kernels.stamp
%D%/sim/kernels.stamp: $(sim_kernel_sources)
	$(AM_V_GEN)$(MKDIR_P) %D%/sim && \
	$(SHELL) $(top_srcdir)/%D%/sim/compile.sh '$(AMDGCN_CC)' $(top_srcdir)/%D%/sim %D%/sim/kernels && touch $@
# Minutes of work, with a score for each kernel.
check-mutants: %D%/check_sim_kernels$(EXEEXT) $(mutant_drivers)
	top_srcdir='$(top_srcdir)' AMDGCN_CC='$(AMDGCN_CC)' AMD_FLAGS='$(AMD_FLAGS)' \
	SIM_KERNELS=%D%/check_sim_kernels$(EXEEXT) MUTANTS='$(MUTANTS)' $(SHELL) $(top_srcdir)/%D%/check_mutants.sh
check-mutants-long:
	$(MAKE) check-mutants MUTANTS=all
else
TESTS += %D%/no_amdgcn.sh
endif
endif
SIM_TEST_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(top_srcdir)/sim $(LLVM_CPPFLAGS)
SIM_TEST_LDADD = sim/libsim.la $(CHECK_LIBS) $(LIBM)
%C%_check_sim_checks_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_checks_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_counters_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_counters_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_decode_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_decode_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_matrix_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_matrix_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_memory_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_memory_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_object_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_object_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_salu_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_salu_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_valu_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_valu_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_compiled_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_compiled_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_kernels_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_kernels_LDADD = $(SIM_TEST_LDADD)
%C%_check_sim_run_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_run_LDADD = $(SIM_TEST_LDADD)
%C%_fuzz_sim_object_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_fuzz_sim_object_LDADD = sim/libsim.la
%C%_check_sim_checks_SOURCES = %D%/check_sim_checks.c %D%/check_sim_checks.def
%C%_check_sim_valu_SOURCES = %D%/check_sim_valu.c %D%/sim_fixture.h %D%/sim_valu_cases.def
# The runtimes are opened as a program would: by name.
%C%_check_sim_hip_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_hip_LDADD = $(CHECK_LIBS) $(LIBM)
%C%_check_sim_hsa_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_sim_hsa_LDADD = $(CHECK_LIBS) $(LIBM)

# Devices: programs that check_offload.sh runs on simulated ones, and a kernel for them.
EXTRA_DIST += %D%/check_offload.sh %D%/check_valgrind.sh %D%/devices.sh %D%/offload/loader.c %D%/offload/probe.h %D%/offload/probe.hip \
	%D%/offload/valgrind.supp %D%/offload/wrong.hip
offload_objects = \
	%D%/offload/probe.gfx950.co \
	%D%/offload/probe.gfx1250.co \
	%D%/offload/wrong.gfx950.co \
	%D%/offload/wrong.gfx1250.co
TESTS += %D%/check_offload.sh %D%/check_valgrind.sh
EXTRA_DIST += %D%/check_hip.c %D%/check_fmha_varlen_gfx1250.c %D%/check_mqa_logits_gfx950.c %D%/check_pa_mtp_gfx950.c
# Programs that draw ETALON_CASES cases more.
soak_programs =
if HAVE_CHECK
if HAVE_SIMULATOR
if HAVE_GFX1250
check_PROGRAMS += %D%/check_fmha_varlen_gfx1250
soak_programs += %D%/check_fmha_varlen_gfx1250$(EXEEXT)
TESTS += %D%/check_fmha_varlen_gfx1250
%C%_check_fmha_varlen_gfx1250_CPPFLAGS = $(SIM_TEST_CPPFLAGS)
%C%_check_fmha_varlen_gfx1250_LDADD = sim/libsim.la $(LDADD)
endif
endif
endif
if HAVE_CHECK
if HAVE_SIMULATOR
if HAVE_GFX950
if HAVE_GFX1250
check_PROGRAMS += %D%/check_hip %D%/check_launch %D%/check_offload %D%/check_pa_mtp_gfx950
check_DATA += $(offload_objects) %D%/offload/broken.stamp
TESTS += %D%/check_hip %D%/check_pa_mtp_gfx950
mutant_drivers = %D%/check_fmha_varlen_gfx1250$(EXEEXT) %D%/check_mqa_logits_gfx950$(EXEEXT) \
	%D%/check_pa_mtp_gfx950$(EXEEXT)
%C%_check_hip_CPPFLAGS = $(SIM_TEST_CPPFLAGS) -iquote $(top_srcdir)/hip
%C%_check_hip_LDADD = sim/libsim.la $(LDADD)
%C%_check_pa_mtp_gfx950_CPPFLAGS = $(SIM_TEST_CPPFLAGS) -iquote $(top_srcdir)/hip
%C%_check_pa_mtp_gfx950_LDADD = sim/libsim.la $(LDADD) $(JANSSON_LIBS)
check_PROGRAMS += %D%/check_mqa_logits_gfx950
TESTS += %D%/check_mqa_logits_gfx950
%C%_check_mqa_logits_gfx950_CPPFLAGS = $(SIM_TEST_CPPFLAGS) -iquote $(top_srcdir)/hip
%C%_check_mqa_logits_gfx950_LDADD = sim/libsim.la $(LDADD)
endif
endif
endif
endif
$(offload_objects): %D%/offload/probe.h $(hip_headers) src/code_objects.def
CLEANFILES += $(offload_objects)

# The programs' --device, and kernels that are broken on purpose.
EXTRA_DIST += %D%/check_device.sh %D%/offload/broken.sh
TESTS += %D%/check_device.sh
%D%/offload/broken.stamp: %D%/offload/broken.sh $(hip_kernels) $(hip_headers)
	$(AM_V_GEN)$(MKDIR_P) %D%/offload && \
	$(SHELL) $(top_srcdir)/%D%/offload/broken.sh $(top_srcdir)/hip %D%/offload/broken $(AMDGCN_CC) $(AMD_FLAGS) && \
	touch $@
CLEANFILES += %D%/offload/broken.stamp

TESTS += $(shell_tests)
EXTRA_DIST += $(shell_tests) $(sim_shell_tests) $(sim_kernel_sources) \
	%D%/sim/instructions_gfx1250.s \
	%D%/sim/instructions_gfx950.s \
	%D%/sim/corpus/bundle_gfx950.co \
	%D%/sim/corpus/literal_at_end_gfx950.co \
	%D%/sim/corpus/reloc_gfx950.co \
	%D%/sim/corpus/saxpy_gfx1250.co \
	%D%/sim/corpus/saxpy_gfx950.co \
	%D%/sim/corpus/saxpy_v4_gfx950.co \
	%D%/sim/corpus/saxpy_v5_gfx950.co \
	%D%/check_xcheck.sh \
	%D%/check_sim_corpus.sh \
	%D%/check_sim_hazards.sh \
	%D%/check_mutants.sh \
	%D%/check_triton.sh \
	%D%/witness_triton.py \
	%D%/mutate.py \
	%D%/sim/mutants-equivalent.txt \
	%D%/no_amdgcn.sh \
	%D%/witness_hazards.py \
	%D%/example.c \
	%D%/no_unit_tests.sh \
	%D%/tap.sh \
	%D%/witness.py \
	%D%/vectors/fmha-causal-ragged.safetensors \
	%D%/vectors/fmha-full-gqa.safetensors \
	%D%/vectors/fmha-hotkey-last-13nats.safetensors \
	%D%/vectors/fmha-hotkey-last.safetensors \
	%D%/vectors/fmha-hotkey-middle.safetensors \
	%D%/vectors/fmha-v-ones.safetensors \
	%D%/vectors/README \
	%D%/vectors/mqa_logits-compressed.safetensors \
	%D%/vectors/mqa_logits-empty.safetensors \
	%D%/vectors/mqa_logits-multi_req.safetensors \
	%D%/vectors/mqa_logits-past_end.safetensors \
	%D%/vectors/mqa_logits_paged-empty.safetensors \
	%D%/vectors/mqa_logits_paged-next_n4.safetensors \
	%D%/vectors/mqa_logits_paged-poisoned.safetensors \
	%D%/vectors/pa_mtp-ctx1000-gqa16-descale.safetensors \
	%D%/vectors/pa_mtp-ragged-gqa8.safetensors \
	%D%/vectors/real-fmha.safetensors \
	%D%/vectors/real-mqa_logits.safetensors \
	%D%/vectors/real-pa_mtp.safetensors

# What the rules below want, or a sentence.
NEED_CHECK = test -n '$(CHECK_LIBS)' || { echo '$@: xcheck needs Check, which configure did not find'; exit 1; }
NEED_OFFLOAD = case '$(ETALON_OFFLOAD)' in on*) ;; *) echo '$@: offload is $(ETALON_OFFLOAD)'; exit 1;; esac

# More cases of xcheck: minutes, and hours. XCHECKFLAGS='--op pa_mtp --seed 7' are its options.
check-long check-soak:
	@$(NEED_CHECK)
	$(MAKE) %D%/xcheck$(EXEEXT)
	%D%/xcheck$(EXEEXT) --effort $(@:check-%=%) $(XCHECKFLAGS)
	@test -z '$(soak_programs)' || $(MAKE) $(soak_programs)
	for program in $(soak_programs); do \
	    ETALON_CASES=200 ETALON_VECTORS='$(abs_top_srcdir)/%D%/vectors' $$program || exit 1; done

# The GPUs of this machine, and the same for one that has a driver and nothing else.
EXTRA_DIST += %D%/gpu/bundle.sh %D%/gpu/check.sh
gpu_bundle = etalon-$(VERSION)-gpu-bundle
gpu_tools = tools/etalon$(EXEEXT) %D%/xcheck$(EXEEXT)
check-gpu:
	@$(NEED_CHECK)
	@$(NEED_OFFLOAD)
	$(MAKE) $(gpu_tools)
	ETALON=tools/etalon$(EXEEXT) XCHECK=%D%/xcheck$(EXEEXT) ETALON_VECTORS='$(srcdir)/%D%/vectors' \
	    $(SHELL) $(srcdir)/%D%/gpu/check.sh $(XCHECKFLAGS)
gpu-bundle:
	@$(NEED_CHECK)
	@$(NEED_OFFLOAD)
	$(MAKE) $(gpu_tools) bench/bench$(EXEEXT)
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
	    ETALON_VECTORS='$(abs_top_srcdir)/%D%/vectors' \
	    $(SHELL) $(srcdir)/%D%/gpu/bundle.sh $(gpu_bundle) $(gpu_tools) bench/bench$(EXEEXT)
clean-local:
	-rm -rf %D%/sim/kernels %D%/sim/kernels.stamp %D%/offload/broken $(gpu_bundle) $(gpu_bundle).tar.xz
