# `make check` compiles the benchmark and runs a tiny problem; `make bench` times. BENCHFLAGS='--threads 1,2' are its options.
check_PROGRAMS += %D%/bench
%C%_bench_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_bench_LDADD = tools/libtools.la src/libetalon_core.la $(OFFLOAD_LIBS) $(JANSSON_LIBS) $(LIBM)
%C%_bench_SOURCES = \
	%D%/bench.c \
	%D%/bench.h \
	%D%/problem.c \
	%D%/problem.h \
	%D%/report.c \
	%D%/rotation.c \
	%D%/rotation.h \
	%D%/timing.c \
	%D%/yardstick.c \
	%D%/yardstick.h \
	tools/gpu.c \
	tools/gpu.h

# The simulator's own speed: sim_gemm tests/sim/kernels/gemm_e4m3_gfx950.co
if HAVE_SIMULATOR
check_PROGRAMS += %D%/sim_gemm
endif
%C%_sim_gemm_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(top_srcdir)/sim
%C%_sim_gemm_LDADD = sim/libsim.la
%C%_sim_gemm_SOURCES = %D%/sim_gemm.c

TESTS += tests/check_bench.sh
EXTRA_DIST += tests/check_bench.sh %D%/estimate.sh %D%/plot.gp doc/PERFORMANCE.md

# A table that was cut short is not kept.
bench: %D%/bench$(EXEEXT)
	@{ %D%/bench$(EXEEXT) $(BENCHFLAGS) || echo '#failed'; } | tee %D%/bench.tmp
	@! grep -q '^#failed' %D%/bench.tmp && mv %D%/bench.tmp %D%/bench.txt

# Draws the table of the last `make bench`.
bench-plot:
	@command -v gnuplot >/dev/null || { echo 'bench-plot: gnuplot is not installed (Debian: gnuplot-nox)'; exit 1; }
	@test -f %D%/bench.txt || $(MAKE) bench
	gnuplot -e "table='%D%/bench.txt'; drawing='%D%/bench.svg'" $(srcdir)/%D%/plot.gp
	@echo '%D%/bench.svg'

# What the simulator makes of the kernels for one architecture: counts and an estimate, nothing measured.
bench-sim: tools/etalon$(EXEEXT)
	@ETALON=tools/etalon$(EXEEXT) SIM_RUNTIME='$(abs_top_builddir)/sim/runtime/.libs' $(SHELL) $(srcdir)/%D%/estimate.sh

CLEANFILES += %D%/bench.tmp %D%/bench.txt %D%/bench.svg
