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
	%D%/fmha_varlen.c \
	%D%/fmha_varlen.h \
	%D%/fmha_varlen_check.c \
	%D%/fmha_varlen_kernels.def \
	%D%/fp8.h \
	%D%/gate.c \
	%D%/gate.h \
	%D%/merge_states.c \
	%D%/merge_states.h \
	%D%/merge_states_check.c \
	%D%/merge_states_kernels.def \
	%D%/mqa_logits.c \
	%D%/mqa_logits.h \
	%D%/mqa_logits_check.c \
	%D%/mqa_logits_kernels.def \
	%D%/pa_mtp.c \
	%D%/pa_mtp.h \
	%D%/pa_mtp_check.c \
	%D%/pa_mtp_kernels.def \
	%D%/status.c \
	%D%/status.def \
	%D%/tensor.c \
	%D%/tensor.h

# The same with the exported names alone: what is installed.
lib_LTLIBRARIES += %D%/libetalon.la
%C%_libetalon_la_SOURCES =
%C%_libetalon_la_LIBADD = %D%/libetalon_core.la $(LIBM)
%C%_libetalon_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -version-info $(ETALON_LT_VERSION)
if HAVE_VERSION_SCRIPT
%C%_libetalon_la_LDFLAGS += -Wl,--version-script=$(top_srcdir)/%D%/libetalon.map
EXTRA_%C%_libetalon_la_DEPENDENCIES = %D%/libetalon.map
endif
EXTRA_DIST += %D%/libetalon.map
