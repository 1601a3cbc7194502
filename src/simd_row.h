/* Names of a SIMD row from its stem. */
#define SIMD_JOIN2(a, b, c) a##b##c
#define SIMD_JOIN(a, b, c) SIMD_JOIN2(a, b, c)
#define SIMD_RUN SIMD_JOIN(etalon_, SIMD_STEM, )
#define SIMD_WORKSPACE SIMD_JOIN(etalon_, SIMD_STEM, _workspace)
