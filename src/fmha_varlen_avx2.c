#define SIMD_BYTES 32
#define SIMD_STEM fmha_varlen_avx2
#include "fmha_varlen_simd.h"
