#define SIMD_BYTES 64
#define SIMD_AMX 1
#define SIMD_STEM pa_mtp_amx
#include "pa_mtp_simd.h"
