etalonincludedir = $(includedir)/etalon
etaloninclude_HEADERS = \
	%D%/etalon/attention.h \
	%D%/etalon/etalon.h \
	%D%/etalon/fmha_varlen.h \
	%D%/etalon/merge_states.h \
	%D%/etalon/mqa_logits.h \
	%D%/etalon/mqa_logits_paged.h \
	%D%/etalon/pa_mtp.h \
	%D%/etalon/types.h
nodist_etaloninclude_HEADERS = %D%/etalon/version.h
