# Stand-ins for AMD's runtimes, found through LD_LIBRARY_PATH and in nobody's way: they lie in a directory of their own.
# The names are AMD's: OpenMP's plugin opens libhsa-runtime64.so, ROCm 6 programs want libamdhip64.so.6.
# nodelete: a handler that sets the exit status has to be there at exit. as-needed: no OpenMP runtime, for a program has
# its own.
if HAVE_SIMULATOR
pkglib_LTLIBRARIES += %D%/libhsa-runtime64.la %D%/libamdhip64.la
endif
%C%_libhsa_runtime64_la_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(top_srcdir)/sim
%C%_libhsa_runtime64_la_LDFLAGS = -version-info 1:0:0 -shared -Wl,-z,nodelete -Wl,--as-needed -pthread
%C%_libhsa_runtime64_la_LIBADD = sim/libsim.la
%C%_libhsa_runtime64_la_SOURCES = \
	%D%/hsa.c \
	%D%/hsa.h \
	%D%/hsa_api.h \
	%D%/hsa_queue.c \
	%D%/runtime.c \
	%D%/runtime.h
%C%_libamdhip64_la_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(top_srcdir)/sim
%C%_libamdhip64_la_LDFLAGS = -version-info 6:0:0 -shared -Wl,-z,nodelete -Wl,--as-needed -pthread
%C%_libamdhip64_la_LIBADD = %D%/libhsa-runtime64.la
%C%_libamdhip64_la_SOURCES = \
	%D%/hip.c \
	%D%/hip_api.h \
	%D%/hip_stream.c \
	%D%/hip_stream.h
