# GPUs: OpenMP images in the library, so that devices register, and kernels for them.
#
# --with-offload-archs=LIST decides for which GPUs. Two things are asked of each:
#   - that $CC links an OpenMP image for it. The link is the test: an object holds bitcode, so compiling works with no
#     runtime at all. -nogpulib, because the data directives need no device runtime and distributions ship none. Without
#     images for GPUs the whole part is off: OpenMP sees only devices that it has an image for.
#   - that AMDGCN_CC or NVPTX_CC, which may be another compiler, makes a kernel for it: no ROCm, no CUDA.
m4_define([etalon_offload_archs], [gfx950 gfx1250 sm_90])

# ETALON_OFFLOAD
# OFFLOAD_CFLAGS and OFFLOAD_LIBS; HAVE_OFFLOAD as an Automake conditional and, for the rows in src/*_kernels.def, as a
# macro in AM_CFLAGS; HAVE_GFX950, HAVE_GFX1250, HAVE_SM_90 (kernels for it are embedded) as both; AMDGCN_CC, NVPTX_CC; HAVE_AMDGCN for the simulator's tests; etalon_offload and etalon_kernel_objects for the summary.
AC_DEFUN([ETALON_OFFLOAD], [
AC_ARG_WITH([offload-archs],
    [AS_HELP_STRING([--with-offload-archs=LIST],
        [GPUs to build for, or no @<:@gfx950,gfx1250,sm_90, as far as the compilers can@:>@])],
    [], [with_offload_archs=yes])
AS_CASE([$with_offload_archs],
    [yes], [etalon_archs="etalon_offload_archs"],
    [no],  [etalon_archs=],
    [etalon_archs=`AS_ECHO(["$with_offload_archs"]) | tr , ' '`])
for etalon_arch in $etalon_archs; do
    AS_CASE([" etalon_offload_archs "],
        [*" $etalon_arch "*], [],
        [AC_MSG_ERROR([--with-offload-archs: "$etalon_arch", expected some of etalon_offload_archs, or no])])
done
ETALON_OFFLOAD_IMAGES
ETALON_AMDGCN
ETALON_NVPTX
ETALON_KERNEL_OBJECTS
])

# Which of $etalon_archs get an image: etalon_images.
# GPUs go by --offload-arch=, never by -Xopenmp-target=... -march=...: libtool lets -m* through and drops the other. Nor
# does it keep --offload-arch for a shared library, unless -XCClinker stands before each word. No image for the host's own
# processor: it would take the first device numbers, and LLVM 22 reaches no GPU behind them (src/offload.c). The images are
# empty, so that no sanitizer has a place in them; their run time for GPUs would be missing.
m4_define([etalon_image_flags], [-nogpulib -fno-gpu-sanitize -Wno-option-ignored])

AC_DEFUN([ETALON_OFFLOAD_IMAGES], [
etalon_images= OFFLOAD_CFLAGS= OFFLOAD_LIBS=
AS_IF([test -n "$OPENMP_CFLAGS"],
    [for etalon_arch in $etalon_archs; do
         AS_VAR_PUSHDEF([etalon_cv], [etalon_cv_offload_$etalon_arch])
         AC_CACHE_CHECK([whether $CC links OpenMP images for $etalon_arch], [etalon_cv],
             [etalon_save_CFLAGS=$CFLAGS
              CFLAGS="$CFLAGS $OPENMP_CFLAGS --offload-arch=$etalon_arch etalon_image_flags"
              AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <omp.h>
int main(void)
{
    int           v = 0;
    omp_interop_t o = omp_interop_none;
#pragma omp interop init(target : o) device(0)
#pragma omp target enter data map(to : v)
#pragma omp target exit data map(from : v)
    return omp_get_mapped_ptr(&v, 0) != 0 && o != omp_interop_none;
}]])], [AS_VAR_SET([etalon_cv], [yes])], [AS_VAR_SET([etalon_cv], [no])])
              CFLAGS=$etalon_save_CFLAGS])
         AS_VAR_IF([etalon_cv], [yes], [etalon_images="$etalon_images $etalon_arch"])
         AS_VAR_POPDEF([etalon_cv])
     done])
AS_IF([test -n "$etalon_images"],
    [for etalon_arch in $etalon_images; do
         OFFLOAD_CFLAGS="$OFFLOAD_CFLAGS --offload-arch=$etalon_arch"
     done
     OFFLOAD_CFLAGS="$OPENMP_CFLAGS$OFFLOAD_CFLAGS etalon_image_flags"
     for etalon_flag in $OFFLOAD_CFLAGS; do
         OFFLOAD_LIBS="$OFFLOAD_LIBS -XCClinker $etalon_flag"
     done
     ETALON_OFFLOAD_LIBDIR
     # Loaded again after it was unloaded, the library would find no device: libomp looks libomptarget up only once.
     OFFLOAD_LIBS="$OFFLOAD_LIBS -Wl,-z,nodelete"
     AM_CFLAGS="$AM_CFLAGS -DHAVE_OFFLOAD"
     etalon_offload="on:$etalon_images"],
    [test "x$with_offload_archs" = xno], [etalon_offload="off: --with-offload-archs=no"],
    [test -z "$OPENMP_CFLAGS"], [etalon_offload="off: no OpenMP"],
    [etalon_offload="off: $CC links no OpenMP image for$(printf ' %s' $etalon_archs); clang-22, lld-22 and liboffload-22-dev do"])
AC_SUBST([OFFLOAD_CFLAGS])
AC_SUBST([OFFLOAD_LIBS])
AC_SUBST([ETALON_OFFLOAD], [$etalon_offload])
AM_CONDITIONAL([HAVE_OFFLOAD], [test -n "$etalon_images"])
])

# A compiler of its own tree may keep libomptarget.so where the loader does not look.
AC_DEFUN([ETALON_OFFLOAD_LIBDIR], [
AC_CACHE_CHECK([whether libomptarget needs a run path], [etalon_cv_offload_libdir],
    [etalon_save_CFLAGS=$CFLAGS
     CFLAGS="$CFLAGS $OFFLOAD_CFLAGS"
     etalon_cv_offload_libdir=`dirname "\`$CC -print-file-name=libomptarget.so\`"`
     AC_RUN_IFELSE([AC_LANG_PROGRAM([[#include <omp.h>]], [[return omp_get_num_devices() < 0;]])],
         [etalon_cv_offload_libdir=no], [], [:])
     CFLAGS=$etalon_save_CFLAGS])
AS_IF([test "x$etalon_cv_offload_libdir" != xno], [OFFLOAD_LIBS="$OFFLOAD_LIBS -R $etalon_cv_offload_libdir"])
])

# AMDGCN_CC, HAVE_AMDGCN: by assembling and linking an instruction, since a compiler's version does not tell which targets
# it was built with, nor whether its linker is there.
AC_DEFUN([ETALON_AMDGCN], [
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
AM_CONDITIONAL([HAVE_AMDGCN], [test "x$etalon_cv_amdgcn" = "x gfx950 gfx1250"])
])

# NVPTX_CC. Where no CUDA is installed clang assumes a PTX version older than sm_90, hence the feature.
AC_DEFUN([ETALON_NVPTX], [
AC_CHECK_PROGS([NVPTX_CC], [clang-22 clang], [no])
AC_CACHE_CHECK([whether $NVPTX_CC writes PTX for sm_90], [etalon_cv_nvptx],
    [etalon_cv_nvptx=no
     AS_ECHO(['extern "C" __attribute__((global)) void probe(float *x) { *x = 1; }']) >conftest.cu
     AS_IF([test "x$NVPTX_CC" != xno && $NVPTX_CC -x cuda --cuda-gpu-arch=sm_90 --cuda-device-only -nocudainc -nocudalib \
                --cuda-feature=+ptx80 -Wno-unknown-cuda-version -S conftest.cu -o conftest.ptx >&AS_MESSAGE_LOG_FD 2>&1],
         [etalon_cv_nvptx=yes])
     rm -f conftest.cu conftest.ptx])
])

# HAVE_<ARCH>: an image for it, and a compiler for its kernels. The macro is for rows of one architecture.
AC_DEFUN([ETALON_KERNEL_OBJECTS], [
etalon_kernel_objects=
for etalon_arch in $etalon_images; do
    AS_CASE(["$etalon_arch:$etalon_cv_nvptx:$etalon_cv_amdgcn "],
        [gfx*:*" $etalon_arch "* | sm_90:yes:*],
            [etalon_kernel_objects="$etalon_kernel_objects $etalon_arch"
             AM_CFLAGS="$AM_CFLAGS -DHAVE_`AS_ECHO(["$etalon_arch"]) | tr a-z A-Z`"])
done
AS_IF([test -n "$etalon_kernel_objects"], [etalon_kernel_objects="on:$etalon_kernel_objects"],
      [test -z "$etalon_images"], [etalon_kernel_objects="off: no offload"],
      [etalon_kernel_objects="off: neither $AMDGCN_CC nor $NVPTX_CC makes kernels; clang-22 with lld-22 does"])
AM_CONDITIONAL([HAVE_GFX950], [AS_CASE(["$etalon_kernel_objects "], [*" gfx950 "*], [:], [false])])
AM_CONDITIONAL([HAVE_GFX1250], [AS_CASE(["$etalon_kernel_objects "], [*" gfx1250 "*], [:], [false])])
AM_CONDITIONAL([HAVE_SM_90], [AS_CASE(["$etalon_kernel_objects "], [*" sm_90 "*], [:], [false])])
])
