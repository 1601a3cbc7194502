#define SIMD_BYTES 64
#define SIMD_STEM pa_mtp_avx512
#include "pa_mtp_simd.h"
