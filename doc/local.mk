EXTRA_DIST += \
	%D%/BIBLIOGRAPHY \
	%D%/DESIGN.md \
	%D%/EVIDENCE.md \
	%D%/GAPS.md \
	%D%/KERNELS-fmha_varlen.md \
	%D%/KERNELS-mqa_logits.md \
	%D%/KERNELS.md \
	%D%/SIMULATOR.md
