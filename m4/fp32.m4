# ETALON_CHECK_FP32
# Stops where the compiler, or the CFLAGS that the user chose, would compute the reference in something other than IEEE
# binary32: -ffast-math in CFLAGS comes after our own flags and would win.
AC_DEFUN([ETALON_CHECK_FP32], [
AC_CACHE_CHECK([whether $CC computes float as IEEE binary32], [etalon_cv_fp32],
    [etalon_save_CFLAGS=$CFLAGS
     CFLAGS="$AM_CFLAGS $REF_CFLAGS $CFLAGS"
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <float.h>
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || FLT_EVAL_METHOD != 0
#error "not IEEE binary32"
#endif
]])], [etalon_cv_fp32=yes], [etalon_cv_fp32=no])
     CFLAGS=$etalon_save_CFLAGS])
AS_IF([test "$etalon_cv_fp32" = no],
    [AC_MSG_ERROR([the reference needs IEEE arithmetic in float: no -ffast-math in CFLAGS; on i386 add -msse2 -mfpmath=sse])])
])
