# Stands in for the simulator's tests with whole kernels where configure found no compiler for AMD GPUs.
echo "1..0 # SKIP kernels for the simulator are not built: no compiler for gfx950 and gfx1250 (Debian: clang-22, lld-22)"
