#define SIMD_BYTES 32
#define SIMD_STEM pa_mtp_avx2
#include "pa_mtp_simd.h"
