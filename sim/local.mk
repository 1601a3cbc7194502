# The simulator: everything but the runtimes and the program, with internal names in reach.
if HAVE_SIMULATOR
noinst_LTLIBRARIES += %D%/libsim.la
%C%_libsim_la_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(top_srcdir)/%D% $(LLVM_CPPFLAGS)
%C%_libsim_la_CFLAGS = $(AM_CFLAGS) $(SIM_CFLAGS)
%C%_libsim_la_LIBADD = $(LLVM_LDFLAGS) $(LLVM_LIBS) $(LIBM)
endif
%C%_libsim_la_SOURCES = \
	%D%/atomic.c \
	%D%/check.c \
	%D%/check.h \
	%D%/checks.def \
	%D%/control.c \
	%D%/control.def \
	%D%/convert.c \
	%D%/convert.h \
	%D%/counters.c \
	%D%/counters.h \
	%D%/decode.c \
	%D%/defined.c \
	%D%/device.c \
	%D%/device.h \
	%D%/elffile.c \
	%D%/elffile.h \
	%D%/execute.c \
	%D%/facts.c \
	%D%/hazards.c \
	%D%/hazards.def \
	%D%/instruction.h \
	%D%/instructions.c \
	%D%/lds.c \
	%D%/machine.h \
	%D%/matrix.c \
	%D%/matrix.def \
	%D%/matrix.h \
	%D%/memory.c \
	%D%/memory.def \
	%D%/memory.h \
	%D%/metadata.c \
	%D%/metadata.h \
	%D%/object.c \
	%D%/opcodes.h \
	%D%/parse.c \
	%D%/parse.h \
	%D%/races.c \
	%D%/requests.c \
	%D%/salu.c \
	%D%/salu.def \
	%D%/sim.h \
	%D%/tdm.c \
	%D%/valu.c \
	%D%/valu.def \
	%D%/valu.h \
	%D%/valu_special.c \
	%D%/valu_special.def \
	%D%/valu_special.h \
	%D%/valu_undef.h \
	%D%/watch.h
