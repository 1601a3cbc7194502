EXTRA_DIST += \
	%D%/BIBLIOGRAPHY \
	%D%/DESIGN.md \
	%D%/EVIDENCE.md \
	%D%/GAPS.md \
	%D%/KERNELS.md \
	%D%/SIMULATOR.md
