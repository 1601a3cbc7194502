#define SIMD_BYTES 64
#define SIMD_STEM fmha_varlen_avx512
#include "fmha_varlen_simd.h"
