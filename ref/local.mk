# The formulas: a library of their own, because no other code may share its floating-point flags.
noinst_LTLIBRARIES += %D%/libref.la
%C%_libref_la_CFLAGS = $(AM_CFLAGS) $(REF_CFLAGS)
%C%_libref_la_SOURCES = \
	%D%/attend.c \
	%D%/attend.h \
	%D%/dot.h \
	%D%/fmha_varlen_model.c \
	%D%/fmha_varlen_ref.c \
	%D%/fmha_varlen_row.h \
	%D%/merge_states_ref.c \
	%D%/mqa_logits_paged_ref.c \
	%D%/mqa_logits_ref.c \
	%D%/mqa_logits_row.h \
	%D%/pa_mtp_model.c \
	%D%/pa_mtp_ref.c \
	%D%/pa_mtp_row.h
