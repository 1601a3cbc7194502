# What this machine could build of the parts that this version does not have yet: each probe compiles what it promises
# and leaves one line for the summary of configure. Nothing is built from the answers.

# ETALON_PROBE_OFFLOAD: etalon_offload
# The link is the test: an object holds bitcode, so compiling works with no runtime at all. -nogpulib, because the data
# directives need no device runtime and distributions ship none.
AC_DEFUN([ETALON_PROBE_OFFLOAD], [
AC_CACHE_CHECK([whether $CC links OpenMP offload images], [etalon_cv_offload],
    [etalon_cv_offload=
     etalon_save_CFLAGS=$CFLAGS
     for etalon_arch in gfx950 gfx1250; do
         CFLAGS="$etalon_save_CFLAGS -fopenmp --offload-arch=$etalon_arch -nogpulib"
         AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <omp.h>
int main(void)
{
    int v = 0;
#pragma omp target enter data map(to : v)
#pragma omp target exit data map(from : v)
    return omp_get_mapped_ptr(&v, 0) != 0;
}]])], [etalon_cv_offload="$etalon_cv_offload $etalon_arch"])
     done
     CFLAGS=$etalon_save_CFLAGS
     test -n "$etalon_cv_offload" || etalon_cv_offload=no])
AS_IF([test "x$etalon_cv_offload" = xno],
    [etalon_offload="off: no device path in this version ($CC links no offload image; clang-22, lld-22, liboffload-22-dev do)"],
    [etalon_offload="off: no device path in this version (toolchain found:$etalon_cv_offload)"])
])

# ETALON_PROBE_HIP: etalon_hip, AMDGCN_CC and, for the simulator's tests, HAVE_AMDGCN
# By assembling and linking an instruction: a compiler's version does not tell which targets it was built with, nor
# whether its linker is there.
AC_DEFUN([ETALON_PROBE_HIP], [
AC_CHECK_PROGS([AMDGCN_CC], [clang-22 clang], [no])
AC_CACHE_CHECK([which AMD GPUs $AMDGCN_CC assembles for], [etalon_cv_amdgcn],
    [etalon_cv_amdgcn=
     AS_IF([test "x$AMDGCN_CC" != xno],
         [for etalon_arch in gfx950 gfx1250; do
              AS_CASE([$etalon_arch],
                  [gfx950],  [etalon_line='v_mfma_f32_16x16x128_f8f6f4 v[[0:3]], v[[8:15]], v[[16:23]], v[[0:3]]'],
                  [gfx1250], [etalon_line='v_wmma_f32_16x16x128_fp8_fp8 v[[0:7]], v[[16:31]], v[[32:47]], v[[0:7]]'])
              AS_ECHO(["$etalon_line"]) >conftest.s
              AS_IF([$AMDGCN_CC --target=amdgcn-amd-amdhsa -mcpu=$etalon_arch conftest.s -o conftest.co >&AS_MESSAGE_LOG_FD 2>&1],
                  [etalon_cv_amdgcn="$etalon_cv_amdgcn $etalon_arch"])
              rm -f conftest.s conftest.co
          done])
     test -n "$etalon_cv_amdgcn" || etalon_cv_amdgcn=no])
AS_IF([test "x$etalon_cv_amdgcn" = xno],
    [etalon_hip="off: no device kernel in this version (no compiler for gfx950 or gfx1250; clang-22 is one)"],
    [etalon_hip="off: no device kernel in this version ($AMDGCN_CC assembles for$etalon_cv_amdgcn)"])
AM_CONDITIONAL([HAVE_AMDGCN], [test "x$etalon_cv_amdgcn" = "x gfx950 gfx1250"])
])

# ETALON_PROBE_CUDA: etalon_cuda
# Where no CUDA is installed clang assumes a PTX version older than sm_90, hence the feature.
AC_DEFUN([ETALON_PROBE_CUDA], [
AC_CHECK_PROGS([NVPTX_CC], [clang-22 clang], [no])
AC_CHECK_PROGS([NVCC], [nvcc], [no])
AC_CACHE_CHECK([what writes PTX for sm_90], [etalon_cv_sm_90],
    [etalon_cv_sm_90=no
     AS_ECHO(["void etalon_probe(float *x) { *x = 1; }"]) >conftest.c
     AS_IF([test "x$NVPTX_CC" != xno && $NVPTX_CC --target=nvptx64-nvidia-cuda -march=sm_90 --cuda-feature=+ptx80 -nogpulib \
                -ffreestanding -S conftest.c -o conftest.ptx >&AS_MESSAGE_LOG_FD 2>&1], [etalon_cv_sm_90=$NVPTX_CC],
           [test "x$NVCC" != xno && $NVCC -arch=sm_90 -x cu -ptx conftest.c -o conftest.ptx >&AS_MESSAGE_LOG_FD 2>&1],
               [etalon_cv_sm_90=$NVCC])
     rm -f conftest.c conftest.ptx])
AS_IF([test "x$etalon_cv_sm_90" = xno],
    [etalon_cuda="off: no device kernel in this version (nothing writes PTX for sm_90; clang-22 and nvcc do)"],
    [etalon_cuda="off: no device kernel in this version ($etalon_cv_sm_90 writes PTX for sm_90)"])
])
