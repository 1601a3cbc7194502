# Calls the public interface alone: a program adds the library that it wants, shared or with internal names.
noinst_LTLIBRARIES += %D%/libtools.la
%C%_libtools_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_libtools_la_LIBADD = $(JANSSON_LIBS) $(LIBM)
%C%_libtools_la_SOURCES = \
	%D%/aiter.c \
	%D%/bound.c \
	%D%/bound.h \
	%D%/generate.c \
	%D%/generate.h \
	%D%/logits.c \
	%D%/logits.h \
	%D%/measure.c \
	%D%/measure.h \
	%D%/npy.c \
	%D%/oracle.c \
	%D%/oracle.h \
	%D%/random.h \
	%D%/safetensors.c \
	%D%/sample.c \
	%D%/sample.h \
	%D%/tensorfile.c \
	%D%/tensorfile.h \
	%D%/tensorfile_formats.h

bin_PROGRAMS += %D%/etalon
%C%_etalon_SOURCES = \
	%D%/cmd_check.c \
	%D%/cmd_compare.c \
	%D%/cmd_gen.c \
	%D%/cmd_list.c \
	%D%/cmd_run.c \
	%D%/etalon.c \
	%D%/program.h \
	%D%/report.c
%C%_etalon_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_etalon_LDADD = %D%/libtools.la src/libetalon.la $(LIBM)
dist_man_MANS = %D%/etalon.1

if HAVE_SIMULATOR
bin_PROGRAMS += %D%/etalon-sim
dist_man_MANS += %D%/etalon-sim.1
else
EXTRA_DIST += %D%/etalon-sim.1
endif
%C%_etalon_sim_SOURCES = %D%/etalon_sim.c %D%/random.h
%C%_etalon_sim_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_etalon_sim_LDADD = sim/libsim.la $(JANSSON_LIBS) $(LIBM)
