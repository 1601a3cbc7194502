#define SIMD_BYTES 64
#define PROBE avx512
#include "simd_probe.h"
