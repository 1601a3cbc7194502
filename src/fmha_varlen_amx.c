#define SIMD_BYTES 64
#define SIMD_AMX 1
#define SIMD_STEM fmha_varlen_amx
#include "fmha_varlen_simd.h"
