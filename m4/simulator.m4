# ETALON_SIMULATOR
# HAVE_SIMULATOR as an Automake conditional; LLVM_CPPFLAGS, LLVM_LDFLAGS, LLVM_LIBS, SIM_CFLAGS; etalon_simulator for the
# summary. The simulator decodes through LLVM's C disassembler and reads its text, which no promise keeps from release to
# release: the version is part of the interface.
m4_define([etalon_llvm], [22])

AC_DEFUN([ETALON_SIMULATOR], [
AC_ARG_ENABLE([simulator],
    [AS_HELP_STRING([--disable-simulator], [leave out the simulator of AMD GPUs (etalon-sim)])], [],
    [enable_simulator=yes])
AC_ARG_VAR([LLVM_CONFIG], [llvm-config of LLVM ]etalon_llvm)
AC_CHECK_PROGS([LLVM_CONFIG], [llvm-config-etalon_llvm llvm-config], [no])
AS_IF([test "x$enable_simulator" = xno], [etalon_simulator="off: --disable-simulator"],
      [test "x$LLVM_CONFIG" = xno],
          [etalon_simulator="off: llvm-config not found (Debian: llvm-etalon_llvm-dev)"],
      [etalon_llvm_version=`$LLVM_CONFIG --version 2>/dev/null`
       AS_CASE([$etalon_llvm_version],
           [etalon_llvm.*], [ETALON_CHECK_DISASSEMBLER],
           [etalon_simulator="off: $LLVM_CONFIG is LLVM $etalon_llvm_version, etalon_llvm is wanted (Debian: llvm-etalon_llvm-dev)"])])
AC_SUBST([LLVM_CPPFLAGS])
AC_SUBST([LLVM_LDFLAGS])
AC_SUBST([LLVM_LIBS])

# The instructions' rounding is the program's: no contraction, no reassociation.
AX_APPEND_COMPILE_FLAGS(
    [-std=gnu11 $etalon_O3 -ffp-contract=off -fno-fast-math -fno-math-errno -fno-trapping-math -pthread],
    [SIM_CFLAGS], [-Werror])
AC_SUBST([SIM_CFLAGS])
AM_CONDITIONAL([HAVE_SIMULATOR], [AS_CASE([$etalon_simulator], [on:*], [:], [false])])
])

# The link is the test: headers without the library, or a library without the target, are no use.
AC_DEFUN([ETALON_CHECK_DISASSEMBLER], [
LLVM_CPPFLAGS="-isystem `$LLVM_CONFIG --includedir`"
LLVM_LDFLAGS=`$LLVM_CONFIG --ldflags`
LLVM_LIBS="`$LLVM_CONFIG --libs` `$LLVM_CONFIG --system-libs`"
AC_CACHE_CHECK([for the C disassembler of LLVM $etalon_llvm_version], [etalon_cv_disassembler],
    [etalon_save_CPPFLAGS=$CPPFLAGS etalon_save_LDFLAGS=$LDFLAGS etalon_save_LIBS=$LIBS
     CPPFLAGS="$CPPFLAGS $LLVM_CPPFLAGS" LDFLAGS="$LDFLAGS $LLVM_LDFLAGS" LIBS="$LLVM_LIBS $LIBS"
     AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
int main(void)
{
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    return LLVMCreateDisasmCPU("amdgcn-amd-amdhsa", "gfx1250", 0, 0, 0, 0) == 0;
}]])], [etalon_cv_disassembler=yes], [etalon_cv_disassembler=no])
     CPPFLAGS=$etalon_save_CPPFLAGS LDFLAGS=$etalon_save_LDFLAGS LIBS=$etalon_save_LIBS])
AS_IF([test $etalon_cv_disassembler = yes], [etalon_simulator="on: LLVM $etalon_llvm_version"],
      [etalon_simulator="off: LLVM $etalon_llvm_version does not link with its C disassembler for AMDGPU"])
])
