#define SIMD_BYTES 16
#define SIMD_STEM pa_mtp_generic
#include "pa_mtp_simd.h"
