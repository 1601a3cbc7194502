#define SIMD_BYTES 16
#define SIMD_STEM fmha_varlen_neon
#include "fmha_varlen_simd.h"
