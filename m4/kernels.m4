# Which kernels the compiler builds. Each instruction set is a convenience library with flags of its own; a set that
# cannot be built has no library and no rows in the tables. Run-time selection is src/features.c's.

# ETALON_OPTIMISATION
# Before AC_PROG_CC. Automake puts CFLAGS last, so that its default -O2 would win over the -O3 of the kernels: levels of
# our own stand in place of the default, and none where the user set CFLAGS.
AC_DEFUN([ETALON_OPTIMISATION], [
AS_IF([test "${CFLAGS+set}" = set], [etalon_O2= etalon_O3=], [CFLAGS=-g etalon_O2=-O2 etalon_O3=-O3])
])

# ETALON_KERNELS
# HAVE_<ISA> as Automake conditionals and, for the rows in src/*_kernels.def, as macros in AM_CFLAGS; KERNEL_CFLAGS;
# <ISA>_CFLAGS; etalon_kernels for the summary.
# The kernels may contract and vectorise, but stay IEEE otherwise: infinities, NaN and the order of sums have a meaning.
AC_DEFUN([ETALON_KERNELS], [
AC_REQUIRE([AC_CANONICAL_HOST])
AX_APPEND_COMPILE_FLAGS([$etalon_O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math], [KERNEL_CFLAGS], [-Werror])
AC_SUBST([KERNEL_CFLAGS])
etalon_kernels= etalon_no_kernels=
ETALON_KERNEL_ISA([generic], [GENERIC], [*], [], [
typedef float v __attribute__((vector_size(16)));
typedef int   i __attribute__((vector_size(16)));
v probe(v a, v b)
{
    const v c = __builtin_convertvector((i)(a > b) & 1, v);
    return __builtin_shufflevector(a * b + c, a, 0, 5, 2, 7);
}])
ETALON_KERNEL_ISA([avx2], [AVX2], [x86_64-*], [-mavx2 -mfma -mf16c], [
#include <immintrin.h>
__m256 probe(__m128i halves, __m256 a, __m256 b)
{
    const __m256i twice = _mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(a));
    return _mm256_fmadd_ps(_mm256_cvtph_ps(halves), _mm256_castsi256_ps(twice), b);
}])
ETALON_KERNEL_ISA([avx512], [AVX512], [x86_64-*],
    [-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512], [
#include <immintrin.h>
__m512 probe(__m256i halves, __m512 a, __m512 b)
{
    const __mmask32 odd = _mm512_test_epi16_mask(_mm512_castps_si512(a), _mm512_set1_epi16(1));
    const __m512    x = _mm512_and_ps(a, _mm512_cvtph_ps(halves));
    const __m512i   y = _mm512_maskz_mov_epi16(odd, _mm512_castps_si512(x));
    return _mm512_fmadd_ps(x, _mm512_castsi512_ps(y), _mm512_insertf32x8(b, _mm256_rcp14_ps(_mm512_castps512_ps256(x)), 1));
}])
ETALON_KERNEL_ISA([amx], [AMX], [x86_64-*],
    [-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi -mamx-tile -mamx-bf16 -mprefer-vector-width=512], [
#include <immintrin.h>
__m512i probe(const void *shape, const void *from, void *to, __m512i a, __m512i b)
{
    _tile_loadconfig(shape);
    _tile_zero(0);
    _tile_loadd(1, from, 64);
    _tile_loadd(2, from, 64);
    _tile_dpbf16ps(0, 1, 2);
    _tile_stored(0, to, 64);
    _tile_release();
    return _mm512_permutex2var_epi8(a, _mm512_permutexvar_epi8(a, b), b);
}])
ETALON_KERNEL_ISA([neon], [NEON], [aarch64*-*], [], [
#include <arm_neon.h>
float32x4_t probe(float16x4_t halves, float32x4_t a, float32x4_t b)
{
    return vfmaq_f32(b, vcvt_f32_f16(halves), a);
}])
AS_IF([test "$etalon_cv_kernel_generic" = no],
    [AC_MSG_ERROR([$CC lacks the vector extensions of GCC (vector_size, __builtin_convertvector, __builtin_shufflevector)])])
])

# ETALON_KERNEL_ISA(name, NAME, host pattern, flags, function)
m4_define([ETALON_KERNEL_ISA], [
AS_CASE([$host_cpu-],
    [$3], [
AC_CACHE_CHECK([whether $CC builds $1 kernels], [etalon_cv_kernel_$1],
    [etalon_save_CFLAGS=$CFLAGS
     CFLAGS="$KERNEL_CFLAGS $4 $CFLAGS"
     AC_COMPILE_IFELSE([AC_LANG_SOURCE([$5])], [etalon_cv_kernel_$1=yes], [etalon_cv_kernel_$1=no])
     CFLAGS=$etalon_save_CFLAGS])
AS_IF([test "$etalon_cv_kernel_$1" = yes],
    [etalon_kernels="$etalon_kernels $1"
     AM_CFLAGS="$AM_CFLAGS -DHAVE_$2"],
    [etalon_no_kernels="$etalon_no_kernels; $1 off: $CC with CFLAGS=$CFLAGS does not build it"])],
    [etalon_cv_kernel_$1=no
     etalon_no_kernels="$etalon_no_kernels; $1 off: not for $host_cpu"])
$2_CFLAGS="$4"
AC_SUBST([$2_CFLAGS])
AM_CONDITIONAL([HAVE_$2], [test "$etalon_cv_kernel_$1" = yes])
])
